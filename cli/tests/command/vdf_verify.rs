//! `lanework vdf verify`: every member of a file must agree with what is verified, and proofs must be meaningful in the group.

use crate::common::{Place, code, hex, json, no, stderr, yes};
use lanework_integer::{Int, Uint};
use lanework_vdf::form::LIMBS;
use lanework_vdf::internals::known;
use lanework_vdf::{Discriminant, Form, Limits, Options, Question, Strict, Task, number, prove, verify};
use serde_json::{Value, json};

/// A proof in a file, with one segment before the last.
fn proved(place: &Place) -> Value {
    let ask =
        ["vdf", "prove", "--challenge", "00ff", "--bits", "512", "--iterations", "70000", "--witness", "1"];
    yes(place, &[&ask[..], &["-o", "p.json"]].concat());
    json(&place.get("p.json"))
}

/// The exit code for a file, and what is printed.
fn verified(place: &Place, file: &Value, more: &[&str]) -> (i32, String) {
    place.put("t.json", file.to_string().as_bytes());
    let output = place.run(&[&["vdf", "verify", "t.json"], more].concat());
    (code(&output), String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output))
}

/// With one digit changed.
fn changed(digits: &str, at: usize) -> String {
    let other = if digits.as_bytes()[at] == b'0' { "1" } else { "0" };
    format!("{}{other}{}", &digits[..at], &digits[at + 1..])
}

fn with(file: &Value, member: &str, value: impl Into<Value>) -> Value {
    let mut file = file.clone();
    file[member] = value.into();
    file
}

fn without(file: &Value, members: &[&str]) -> Value {
    let mut file = file.clone();
    members.iter().for_each(|member| drop(file.as_object_mut().expect("an object").remove(*member)));
    file
}

#[test]
fn every_member_of_a_file_must_agree() {
    let place = Place::new();
    let file = proved(&place);
    let text = |member: &str| file[member].as_str().expect(member).to_owned();
    let (y, b, compact, proof) = (text("y"), text("b"), text("compact"), text("proof"));
    let (code, told) = verified(&place, &file, &[]);
    assert!(code == 0 && told.contains(&format!("\ny {y}\n")), "{told}");
    // Figures do not affect the proof, and digits may be upper case.
    for fine in [
        with(&file, "n_slow", 77),
        with(&file, "y", y.to_uppercase()),
        without(&file, &["y", "b", "compact", "challenge", "input"]),
        without(&file, &["discriminant"]),
    ] {
        assert_eq!(verified(&place, &fine, &[]).0, 0, "{fine}");
    }
    let other = Discriminant::from_seed(b"another", 512).expect("a discriminant").value();
    let shorter = Discriminant::from_seed(b"another", 504).expect("a discriminant").value();
    for (member, value, exit, says) in [
        ("y", json!(changed(&y, 5)), 1, "t.json: y: byte 3 is"),
        ("y", json!(changed(&y, 199)), 1, "t.json: y: byte 100 is"),
        ("y", json!(""), 2, "t.json: y: 0 bytes, expected 100"),
        ("y", json!(y[2..]), 2, "t.json: y: 99 bytes"),
        ("y", json!(y[1..]), 2, "t.json: y: 199 digits, expected two per byte"),
        ("y", json!("zz"), 2, "t.json: y: character 1"),
        ("y", json!(5), 2, "not a proof in JSON"),
        ("y", json!(null), 2, "not a proof in JSON"),
        ("b", json!(changed(&b, 40)), 1, "t.json: b: byte 21 is"),
        ("b", json!(b[2..]), 2, "t.json: b: 32 bytes, expected 33"),
        ("compact", json!(changed(&compact, 9)), 1, "t.json: compact: byte 5 is"),
        ("compact", json!(compact[..200]), 2, "t.json: compact: 100 bytes, expected 241"),
        (
            "discriminant",
            json!(number::to_hexadecimal(&other)),
            1,
            "t.json: discriminant: not the one of t.json: challenge",
        ),
        (
            "discriminant",
            json!(number::to_hexadecimal(&shorter)),
            1,
            "t.json: discriminant: a number of 504 bits, t.json: bits: 512",
        ),
        ("discriminant", json!("23"), 2, "t.json: discriminant: the discriminant is not negative"),
        ("discriminant", json!("hello"), 2, "t.json: discriminant: character 1"),
        ("challenge", json!("00fe"), 1, "t.json: discriminant: not the one of t.json: challenge"),
        ("challenge", json!(""), 2, "t.json: challenge: the challenge is empty"),
        ("challenge", json!("0"), 2, "t.json: challenge: 1 digits"),
        ("bits", json!(520), 1, "t.json: bits: 520"),
        ("bits", json!(2056), 2, "t.json: bits: "),
        ("bits", json!("512"), 2, "not a proof in JSON"),
        ("input", json!(y), 1, "segment 0: the proof is not one for its B"),
        ("input", json!(""), 2, "t.json: input: a form of 0 bytes"),
        ("iterations", json!(70_001), 1, "REFUSED"),
        ("iterations", json!(-5), 2, "not a proof in JSON"),
        ("witness", json!(0), 2, "t.json: proof: a proof of 341 bytes"),
        ("witness", json!(64), 2, "t.json: witness: "),
        ("proof", json!(changed(&proof, 5)), 1, "t.json: y: byte 3 is"),
        ("proof", json!(proof[2..]), 2, "t.json: proof: a proof of 340 bytes"),
    ] {
        let (code, told) = verified(&place, &with(&file, member, value.clone()), &[]);
        assert!(code == exit && told.contains(says), "{member} {value}: {code}: {told}");
        if exit == 1 {
            assert!(told.starts_with("PROOF REFUSED: ") && told.lines().count() == 1, "{told}");
        }
    }
    // A wrong result, in all members that hold it.
    let lie = changed(&y, 5);
    let lie = with(&with(&file, "y", lie.clone()), "proof", lie + &proof[200..]);
    let (code, told) = verified(&place, &lie, &[]);
    assert!(code == 1 || code == 2, "{told}");
    // The same member twice: which one counts?
    let twice = file.to_string().replacen('{', &format!("{{\"y\":\"{y}\","), 1);
    place.put("twice.json", twice.as_bytes());
    no(&place, &["vdf", "verify", "twice.json"], 2, "duplicate field `y`");
    // Without a challenge, the discriminant's length is known.
    let bare = without(&with(&file, "bits", 520), &["challenge"]);
    let (code, told) = verified(&place, &bare, &[]);
    assert!(code == 1 && told.contains("t.json: bits: 520 bits, t.json: discriminant has 512"), "{told}");
    let output = place.run(&["vdf", "verify", "t.json", "--json"]);
    assert_eq!(json(&output.stdout)["valid"], false, "{}", stderr(&output));
}

#[test]
fn an_option_replaces_the_member_of_its_name_and_no_other() {
    let place = Place::new();
    let file = proved(&place);
    let text = |member: &str| file[member].as_str().expect(member).to_owned();
    let (y, b, compact, proof) = (text("y"), text("b"), text("compact"), text("proof"));
    let other = Discriminant::from_seed(&[0, 0xfe], 512).expect("a discriminant").value();
    let other = number::to_hexadecimal(&other);
    let bare = without(&file, &["challenge"]);
    let wrong = |member: &str, value: &str| with(&file, member, value);
    for (file, options, exit, says) in [
        // The wrong member is replaced.
        (wrong("challenge", "00fe"), &["--challenge", "00ff"][..], 0, y.as_str()),
        (wrong("discriminant", &other), &["--discriminant", &text("discriminant")], 0, &y),
        (with(&file, "bits", 520), &["--bits", "512"], 0, &y),
        (wrong("input", &y), &["--input", &text("input")], 0, &y),
        (with(&file, "iterations", 5), &["--iterations", "70000"], 0, &y),
        (with(&file, "witness", 0), &["--witness", "1"], 0, &y),
        (wrong("proof", "00"), &["--proof", &proof], 0, &y),
        (wrong("b", "00"), &["--b", &b], 0, &y),
        (without(&file, &["proof"]), &["--b", &b], 0, &y),
        (without(&file, &["proof", "compact"]), &["--b", &b, "--proof", &compact], 0, &y),
        // A challenge other than the file's: its discriminant shows it.
        (file.clone(), &["--challenge", "00fe"], 1, "t.json: discriminant: not the one of --challenge"),
        (bare.clone(), &["--bits", "520"], 1, "--bits: 520 bits, t.json: discriminant has 512"),
        (
            with(&bare, "challenge", "00fe"),
            &["--discriminant", &text("discriminant")],
            1,
            "t.json: challenge: ",
        ),
        // The members that depend on the replaced one.
        (wrong("y", &changed(&y, 7)), &["--proof", &proof], 1, "t.json: y: "),
        (wrong("compact", &changed(&compact, 7)), &["--proof", &proof], 1, "t.json: compact: "),
        (wrong("b", &changed(&b, 7)), &["--proof", &proof], 1, "t.json: b: "),
        (wrong("y", &changed(&y, 7)), &["--b", &b], 1, "t.json: y: "),
        (wrong("proof", &changed(&proof, 7)), &["--b", &b], 1, "t.json: proof: "),
        (file.clone(), &["--b", &changed(&b, 7)], 1, "REFUSED"),
    ] {
        let (code, told) = verified(&place, &file, options);
        assert!(code == exit && told.contains(says), "{file} {options:?}: {code}: {told}");
    }
}

/// -17 p for a prime p, a form of order 2 in its group, and a false result with a proof that satisfies all equations.
fn false_proof() -> (String, Vec<u8>) {
    let p = Discriminant::from_seed(b"seventeen times", 504).expect("a discriminant").value();
    let product: Uint<LIMBS> = p.magnitude().times(&Uint::<1>::from_u64(17));
    let d = Discriminant::new(&Int::new(true, product)).expect("1 modulo 8");
    let seventeen = Int::from_i64(17);
    let e = Form::new(&d, &seventeen, &seventeen).expect("a form of order 2");
    assert!(e != Form::identity(&d) && e.compose(&e, &d) == Form::identity(&d));
    let x = Form::generator(&d).expect("1 modulo 8");
    let task = Task::new(d, x, 100);
    let mut proof = prove(&task, &Options::default(), &mut |_| true).expect("a proof").proof;
    let Task { discriminant: d, x, .. } = task;
    let truth = proof.y.clone();
    // 100 squarings are fewer than B has bits: an honest pi is the identity, whatever B is.
    (proof.y, proof.pi) = (proof.y.compose(&e, &d), proof.pi.compose(&e, &d));
    assert!(proof.y != truth);
    let (x, bytes) = (x.to_bytes(&d), proof.to_bytes(&d));
    let question = Question { x: &x, proof: &bytes, iterations: 100, depth: 0 };
    assert_eq!(verify(Strict, &d, &question, &Limits::default()), Ok(()), "so much for such groups");
    assert!(!d.is_prime());
    (number::to_decimal(&d.value()), bytes)
}

#[test]
fn composite_discriminants_are_refused() {
    let place = Place::new();
    let (d, proof) = false_proof();
    let ask = ["vdf", "verify", "--discriminant", &d, "--iterations", "100", "--proof", &hex(&proof)];
    let output = place.run(&ask);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(code(&output), 1, "{told}");
    assert!(told.starts_with("PROOF REFUSED: --discriminant: not the negative of a prime"), "{told}");
    yes(&place, &[&ask[..], &["--trust-discriminant"]].concat());
    // From a file, and where the group is too small for any proof.
    let file = json!({ "discriminant": d, "iterations": 100, "proof": hex(&proof) });
    let (exit, told) = verified(&place, &file, &[]);
    assert!(exit == 1 && told.contains("t.json: discriminant: not the negative of a prime"), "{told}");
    assert_eq!(verified(&place, &file, &["--trust-discriminant"]).0, 0);
    let identity = format!("04{}", "00".repeat(99));
    let fifteen =
        ["vdf", "verify", "--discriminant", "-15", "--iterations", "2", "--proof", &identity.repeat(2)];
    let output = place.run(&fifteen);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    // Squaring in such a group needs an option.
    for job in ["evaluate", "prove"] {
        let ask = ["vdf", job, "--discriminant", &d, "--iterations", "100"];
        no(&place, &ask, 1, "--discriminant: not the negative of a prime");
        yes(&place, &[&ask[..], &["--trust-discriminant"]].concat());
    }
    // Chia's own discriminant, and one from a challenge, need none.
    let prime = known::SQUARINGS_D.replacen('-', "-0x", 1);
    yes(&place, &["vdf", "evaluate", "--discriminant", &prime, "--iterations", "10"]);
}

#[test]
fn a_missing_member_of_a_file_is_named() {
    let place = Place::new();
    let b = "00".repeat(33);
    let file = json!({ "challenge": "00ff", "bits": 512, "iterations": 5, "b": b, "compact": "08" });
    for (file, more, said) in [
        (
            file.clone(),
            &[][..],
            "t.json: proof: missing\nhelp: its compact proof is verified with --b B, its own b",
        ),
        (without(&file, &["b"]), &[], "t.json: proof: missing\nhelp: name --proof"),
        (without(&file, &["compact"]), &["--b", &b], "t.json: compact: missing\nhelp: name --proof"),
        (
            without(&file, &["iterations"]),
            &["--proof", "08"],
            "t.json: iterations: missing\nhelp: name --iterations",
        ),
    ] {
        let (code, told) = verified(&place, &file, more);
        assert!(code == 2 && told.contains(said), "{told}");
    }
    // Longer than any proof: the file is not one.
    place.put("t.json", &vec![b' '; (1 << 20) + 1]);
    let output = place.run(&["vdf", "verify", "t.json"]);
    let told = stderr(&output);
    assert!(code(&output) == 2 && told.contains("longer than the") && !told.contains("key"), "{told}");
}

/// A challenge without a prime would be blamed if its discriminant were searched.
#[test]
fn what_needs_no_group_is_refused_before_the_search() {
    let place = Place::new();
    let generator = format!("08{}", "00".repeat(99));
    let verify = ["vdf", "verify", "--challenge", "00", "--iterations", "5", "--proof"];
    no(
        &place,
        &[&verify[..], &[&generator.repeat(2)]].concat(),
        2,
        "--challenge: the challenge is too short",
    );
    no(&place, &[&verify[..], &["00"]].concat(), 2, "--proof: a proof of 1 bytes");
    no(
        &place,
        &[&verify[..], &[&generator.repeat(2), "--input", "00"]].concat(),
        2,
        "--input: a form of 1 bytes",
    );
    let evaluate = ["vdf", "evaluate", "--challenge", "00", "--iterations", "5"];
    no(&place, &evaluate, 2, "--challenge: the challenge is too short");
    no(&place, &[&evaluate[..], &["--input", "00"]].concat(), 2, "--input: a form of 1 bytes");
    no(&place, &[&evaluate[..], &["--checkpoint", "no/such/place"]].concat(), 2, "no/such/place: ");
    let prove = ["vdf", "prove", "--challenge", "00", "--iterations", "5", "--witness", "1"];
    no(&place, &prove, 2, "--witness: ");
}

#[test]
fn what_users_write_is_repeated_in_part() {
    let place = Place::new();
    // The system's longest argument has 128 KiB.
    let long = "7".repeat(102_400);
    let letters = "z".repeat(102_400);
    let escape = "\u{1b}[31mred";
    let key: [&str; 4] = ["--key-file", "K", "-o", "out"];
    place.put("K", &[7; 32]);
    place.put("type.json", format!("{{\"iterations\":\"{letters}\"}}").as_bytes());
    let cases: Vec<Vec<&str>> = vec![
        vec!["vdf", "evaluate", "--iterations", "5", "--discriminant", &long],
        vec!["vdf", "evaluate", "--iterations", "5", "--discriminant", &letters],
        vec!["vdf", "evaluate", "--iterations", "5", "--challenge", &letters],
        vec!["vdf", "evaluate", "--challenge", "0000", "--iterations", &long],
        vec![
            "vdf",
            "evaluate",
            "--challenge",
            "0000",
            "--iterations",
            "5",
            "--every",
            &long,
            "--checkpoint",
            "c",
        ],
        vec!["vdf", "evaluate", "--challenge", "0000", "--iterations", "5", "--format", &letters],
        vec!["vdf", "verify", "--proof", &letters],
        vec!["vdf", "verify", "type.json"],
        vec!["vdf", "client", "localhost", &long],
        vec!["vdf", &letters],
        vec!["vdf", "verify", "--challenge", escape],
        [&["magma", "seal", "--nonce", &letters][..], &key].concat(),
        [&["magma", "seal", "--nonce", "0000000000000001", "--aad", &letters][..], &key].concat(),
        [&["magma", "seal", "--nonce", "0000000000000001", "--key-limit", &letters][..], &key].concat(),
        [&["magma", "encrypt", "--mode", "cfb", "--iv", &letters][..], &key].concat(),
        [&["magma", "encrypt", "--mode", &letters][..], &key].concat(),
        [&["magma", "encrypt", "--mode", "cfb", "--sbox", &letters][..], &key].concat(),
        vec!["magma", "mac", "--key-file", "K", "--verify", &letters, "K"],
    ];
    let unknown = format!("--{letters}");
    for case in cases.iter().chain([&vec!["vdf", "verify", &unknown]]) {
        for json in [&[][..], &["--json"]] {
            let output = place.run(&[&case[..], json].concat());
            let told = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
            let what = case.iter().map(|arg| &arg[..arg.len().min(20)]).collect::<Vec<_>>();
            assert_eq!(code(&output), 2, "{what:?}: {told}");
            assert!(told.len() < 2500, "{what:?}: {} bytes", told.len());
            assert!(!told.contains(escape), "{what:?}");
        }
    }
    let output = place.run(&cases[0]);
    let told = stderr(&output);
    assert!(
        told.contains(&format!("'{}... (102400 characters)' for '--discriminant", "7".repeat(60))),
        "{told}"
    );
    // A short text is repeated in full.
    no(&place, &["vdf", "evaluate", "--iterations", "5", "--discriminant", "hello"], 2, "'hello'");
    no(&place, &["vdf", "verify", "--no-such-option"], 2, "'--no-such-option'");
}
