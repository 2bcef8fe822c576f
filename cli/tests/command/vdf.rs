//! `lanework vdf` as its users run it: known answers, files, bad input, exit codes.

use crate::common::{Place, code, hex, json, no, stderr, yes};
use lanework_vdf::internals::known;

#[test]
fn discriminants_in_every_format() {
    let place = Place::new();
    for (challenge, magnitude) in known::DISCRIMINANTS {
        let ask = ["vdf", "discriminant", "--challenge", challenge, "--bits", "512"];
        let object = json(&yes(&place, &ask));
        assert_eq!(object["discriminant"], format!("-0x{magnitude}"));
        assert_eq!(object["bits"], 512);
        let text = yes(&place, &[&ask[..], &["--format", "hex"]].concat());
        assert_eq!(String::from_utf8_lossy(&text).trim(), format!("-0x{magnitude}"));
        let bytes = yes(&place, &[&ask[..], &["--format", "raw"]].concat());
        assert_eq!(hex(&bytes), magnitude);
        yes(&place, &[&ask[..], &["-o", challenge]].concat());
        assert_eq!(json(&place.get(challenge))["decimal"], object["decimal"]);
        no(&place, &[&ask[..], &["-o", challenge]].concat(), 2, "--force");
    }
}

#[test]
fn evaluate_gives_the_known_forms() {
    let place = Place::new();
    let discriminant = known::SQUARINGS_D.replacen('-', "-0x", 1);
    for (iterations, a, b) in &known::SQUARINGS[..2] {
        let iterations = iterations.to_string();
        let ask = [
            "vdf",
            "evaluate",
            "--discriminant",
            &discriminant,
            "--iterations",
            &iterations,
            "--coefficients",
        ];
        let object = json(&yes(&place, &ask));
        assert_eq!(object["a"], format!("0x{a}"));
        assert_eq!(object["b"], b.strip_prefix('-').map_or(format!("0x{b}"), |b| format!("-0x{b}")));
        assert!(object["n_slow"].is_u64() && object["squarings_per_second"].is_f64());
        let text = yes(&place, &[&ask[..], &["--format", "hex"]].concat());
        assert_eq!(object["y"], String::from_utf8_lossy(&text).trim());
        // Ten more, from that form on.
        let y = object["y"].as_str().expect("digits");
        let more = ["vdf", "evaluate", "--discriminant", &discriminant, "--iterations", "10", "--input", y];
        let raw = yes(&place, &[&more[..], &["--format", "raw"]].concat());
        assert_eq!(raw.len(), 100);
        assert_ne!(hex(&raw), y);
    }
}

#[test]
fn proofs_are_made_written_and_verified() {
    let place = Place::new();
    let ask = ["vdf", "prove", "--challenge", "00ff", "--bits", "512", "--iterations", "150000"];
    for witness in ["0", "1", "2"] {
        let file = format!("proof{witness}.json");
        let made = yes(&place, &[&ask[..], &["--witness", witness, "-o", &file]].concat());
        assert!(String::from_utf8_lossy(&made).contains("150,000 squarings proved and verified"));
        yes(&place, &["vdf", "verify", &file]);
        let object = json(&place.get(&file));
        let member = |name: &str| object[name].as_str().expect(name).to_owned();
        assert_eq!(object["witness"].to_string(), witness);
        assert_eq!(format!("{}{}", member("y"), member("compact")), member("proof"));
        // The same with only options, and as a compact proof.
        let (input, proof, compact, b) = (member("input"), member("proof"), member("compact"), member("b"));
        let verify = [
            "vdf",
            "verify",
            "--challenge",
            "00ff",
            "--bits",
            "512",
            "--input",
            &input,
            "--iterations",
            "150000",
            "--witness",
            witness,
        ];
        yes(&place, &[&verify[..], &["--proof", &proof]].concat());
        let by_number = ["--discriminant", &member("discriminant")].map(str::to_owned);
        let by_number: Vec<&str> = by_number.iter().map(String::as_str).collect();
        yes(&place, &[&["vdf", "verify", &file][..], &by_number].concat());
        let small = json(&yes(&place, &[&verify[..], &["--proof", &compact, "--b", &b, "--json"]].concat()));
        assert_eq!(small["y"], member("y"));
        // Another question has another answer.
        let refused = place.run(&["vdf", "verify", &file, "--iterations", "150001", "--json"]);
        assert_eq!(code(&refused), 1, "{}", stderr(&refused));
        assert_eq!(json(&refused.stdout)["valid"], false);
        let refused = place.run(&["vdf", "verify", &file, "--challenge", "00fe", "--bits", "512"]);
        assert!(code(&refused) == 1 || code(&refused) == 2);
        let wrong = if b.ends_with('1') { "3" } else { "1" };
        let wrong = format!("{}{wrong}", &b[..65]);
        let refused = place.run(&[&verify[..], &["--proof", &compact, "--b", &wrong]].concat());
        assert_eq!(code(&refused), 1);
        assert!(String::from_utf8_lossy(&refused.stdout).starts_with("PROOF REFUSED: "));
    }
    // The one segment's bytes do not depend on how they are written.
    let proof = json(&place.get("proof0.json"))["proof"].as_str().expect("digits").to_owned();
    assert_eq!(hex(&yes(&place, &[&ask[..], &["--format", "raw"]].concat())), proof);
}

#[test]
fn long_discriminants_have_their_own_encoding() {
    let place = Place::new();
    let ask = ["vdf", "prove", "--challenge", "07", "--bits", "2048", "--iterations", "500", "-o", "p.json"];
    yes(&place, &ask);
    let object = json(&place.get("p.json"));
    assert_eq!(object["y"].as_str().expect("digits").len(), 2 * (4 + 2 * 128));
    yes(&place, &["vdf", "verify", "p.json"]);
    yes(&place, &["vdf", "verify", "p.json", "--lenient"]);
}

#[test]
fn the_published_proofs_verify_and_spoilt_ones_do_not() {
    let place = Place::new();
    let mut seen = [0; 8];
    for record in known::records() {
        // One of each depth; the library's tests verify all of them.
        seen[record.depth as usize] += 1;
        if seen[record.depth as usize] > 1 {
            continue;
        }
        let (challenge, bits, x) = (hex(&record.challenge), record.bits.to_string(), hex(&record.x));
        let (iterations, depth) = (record.iterations.to_string(), record.depth.to_string());
        let ask = [
            "vdf",
            "verify",
            "--challenge",
            &challenge,
            "--bits",
            &bits,
            "--input",
            &x,
            "--iterations",
            &iterations,
            "--witness",
            &depth,
            "--proof",
        ];
        for mode in ["--strict", "--lenient"] {
            yes(&place, &[&ask[..], &[&hex(&record.proof), mode]].concat());
        }
        for at in (0..record.proof.len()).step_by(23) {
            let mut bad = record.proof.clone();
            bad[at] ^= 0x10;
            let output = place.run(&[&ask[..], &[&hex(&bad)]].concat());
            let told = String::from_utf8_lossy(&output.stdout);
            match code(&output) {
                1 => {
                    assert!(told.starts_with("PROOF REFUSED: ") && told.lines().count() == 1, "{at}: {told}")
                }
                2 => assert!(told.is_empty() && stderr(&output).starts_with("error: --proof: "), "{at}"),
                other => panic!("byte {at}: exit code {other}"),
            }
        }
    }
    assert!(seen.iter().filter(|&&n| n > 0).count() >= 6, "{seen:?}");
}

#[test]
fn bad_input_is_told_in_a_line() {
    let place = Place::new();
    place.put("text.json", b"this is no JSON");
    place.put("empty.json", b"{}");
    place.put("big.json", &vec![b' '; 2 << 20]);
    place.put("odd.json", br#"{"challenge":"0g","bits":512,"iterations":5,"proof":"00"}"#);
    let evaluate = ["vdf", "evaluate", "--iterations", "5"];
    let with = |more: &[&'static str]| [&evaluate[..], more].concat();
    let generator = format!("08{}", "00".repeat(99));
    let proof = format!("{generator}{generator}");
    let verify = |more: &[&str]| -> Vec<String> {
        let ask =
            ["vdf", "verify", "--challenge", "00ff", "--bits", "512", "--iterations", "5", "--proof", &proof];
        ask.iter().chain(more).map(|&a| a.to_owned()).collect()
    };
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (with(&[]), "--challenge or a --discriminant"),
        (with(&["--challenge", "0"]), "expected two per byte"),
        (with(&["--challenge", "zz"]), "character 1"),
        (with(&["--challenge", ""]), "empty"),
        (with(&["--challenge", "00", "--bits", "0"]), "--bits: "),
        (with(&["--challenge", "00", "--bits", "1023"]), "multiple of 8"),
        (with(&["--challenge", "00", "--bits", "2056"]), "at most 2048"),
        (with(&["--challenge", "00", "--discriminant", "-23"]), "cannot be used with"),
        (with(&["--discriminant", "hello"]), "no digit"),
        (with(&["--discriminant", "23"]), "not negative"),
        (with(&["--discriminant", "0"]), "not negative"),
        (with(&["--discriminant", "-22"]), "1 modulo 4"),
        (with(&["--discriminant", "-19"]), "--input"),
        (with(&["--challenge", "0000", "--input", "0800"]), "2 bytes"),
        (with(&["--challenge", "00"]), "too short"),
        (with(&["--challenge", "0000", "-o", "empty.json"]), "exists"),
        (with(&["--challenge", "0000", "-o", "no/such/place"]), "no directory"),
        (vec!["vdf", "evaluate", "--challenge", "0000", "--iterations", "0"], "--iterations: "),
        (vec!["vdf", "evaluate", "--challenge", "0000", "--iterations", "281474976710657"], "--iterations: "),
        (vec!["vdf", "evaluate", "--challenge", "0000", "--iterations", "-5"], "--iterations"),
        (vec!["vdf", "prove", "--challenge", "0000", "--iterations", "100", "--witness", "1"], "--witness: "),
        (vec!["vdf", "prove", "--challenge", "0000", "--iterations", "100", "--witness", "64"], "--witness"),
        (vec!["vdf", "verify", "--challenge", "0000", "--proof", "00"], "--iterations"),
        (vec!["vdf", "verify", "--challenge", "0000", "--iterations", "5"], "--proof"),
        (vec!["vdf", "verify", "nothing.json"], "nothing.json"),
        (vec!["vdf", "verify", "text.json"], "JSON"),
        (vec!["vdf", "verify", "big.json"], "longer"),
        (vec!["vdf", "verify", "empty.json"], "--challenge or a --discriminant"),
        (vec!["vdf", "verify", "odd.json"], "odd.json: challenge: "),
        (vec!["vdf", "client", "localhost", "65536"], "65536"),
    ];
    for (args, says) in cases {
        no(&place, &args, 2, says);
    }
    for (more, says) in [
        (&["--witness", "1"][..], "--proof: "),
        (&["--witness", "64"], "--witness: "),
        (&["--witness", "18446744073709551615"], "--witness: "),
        (&["--iterations", "281474976710657"], "cannot be used multiple times"),
        (&["--b", "00"], "--b: 1 bytes"),
        (&["--input", "00"], "--input: "),
        (&["--strict", "--lenient"], "cannot be used with"),
    ] {
        let args = verify(more);
        no(&place, &args.iter().map(String::as_str).collect::<Vec<_>>(), 2, says);
    }
    // With --json, errors are objects too.
    let output = place.run(&with(&["--challenge", "0000", "--format", "hex", "--json"]));
    assert_eq!(code(&output), 2);
    assert!(json(&output.stdout)["error"].as_str().is_some_and(|told| told.contains("--format")));
    no(
        &place,
        &[&with(&["--challenge", "0000"])[..], &["--backend", "portable=x"]].concat(),
        2,
        "no primitive",
    );
}

#[test]
fn a_backend_can_be_forced_and_all_agree() {
    let place = Place::new();
    let ask = ["vdf", "evaluate", "--challenge", "0102", "--bits", "1024", "--iterations", "3000"];
    let plain = json(&yes(&place, &[&ask[..], &["--backend", "portable"]].concat()));
    assert_eq!(plain["backend"], "portable");
    assert_eq!(json(&yes(&place, &ask))["y"], plain["y"]);
}
