//! Rewrites of other people's assembly: what was moved without asking who else touches it passes random testing and is refused, and what
//! is accepted does the same.

mod common;

use common::{Place, code, json, stderr};
use lanework_respill::case::{Case, poison};
use lanework_respill::load::{Externals, Loaded};
use lanework_respill::{Analysis, Program};
use lanework_suite::spill::packages::Packages;

const DEC: &str = "\
call jade_kem_kyber_kyber768_amd64_ref_keypair_derand(pk: out 1184, sk: out 2400, seed: random 64)
call jade_kem_kyber_kyber768_amd64_ref_enc_derand(ct: out 1088, ss: out 32, pk, coins: random 32)
measure jade_kem_kyber_kyber768_amd64_ref_dec(got: out 32, ct, sk)
";
const RANDOM_DEC: &str =
    "measure jade_kem_kyber_kyber768_amd64_ref_dec(got: out 32, ct: random 1088, sk: random 2400)";
const MULX: &str = "measure jade_scalarmult_curve25519_amd64_mulx(q: out 32, n: random 32, p: random 32)";

/// A file of the corpus; a machine without it skips, saying why, unless it must not.
fn corpus(package: &str, path: &str) -> Option<String> {
    match Packages::find().and_then(|packages| packages.assembly(package, path)) {
        Ok(assembly) => Some(assembly.text),
        Err(why) => {
            assert!(std::env::var("LANEWORK_REQUIRE_CORPUS").as_deref() != Ok("1"), "{why}");
            println!("SKIPPED: {why}");
            None
        }
    }
}

/// Inputs of a case on which another version leaves other bytes: each run beside the original's, as a tester does who knows nothing of
/// stacks, or with the dead stack filled in between.
fn differing(original: &Loaded, other: &Loaded, case: &str, inputs: u64, poisoned: bool) -> u64 {
    let case = Case::parse(case).expect("a case");
    let mut arena = case.arena();
    let mut out = 0;
    for input in 0..inputs {
        let fill = |seed: u64| if poisoned { poison(seed) } else { Vec::new() };
        let ready = case.prepare(original, &mut arena, input).expect("its functions are there");
        let before = arena.contents().to_vec();
        let one = ready.call(&fill(2 * input));
        let after = arena.contents().to_vec();
        arena.restore(&before);
        let ready = case.ready_in(other, &mut arena).expect("its functions are there");
        let two = ready.call(&fill(2 * input + 1));
        out += u64::from(after != arena.contents() || one.result != two.result);
    }
    out
}

/// The rewrite that asks nobody, as text.
fn naive(place: &Place, file: &str, function: &str, more: &[&str]) -> String {
    let ask = ["respill", "rewrite", file, "--function", function, "--moves-only", "--naive"];
    let output = place.run(&[&ask[..], more].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// The function's own spilled values, not those of what it calls, by name.
fn own_slots(place: &Place, file: &str, function: &str) -> String {
    let output = place.run(&["respill", "analyse", file, "--function", function, "--json"]);
    let said = json(&output.stdout);
    let all = said["functions"].as_array().expect("functions");
    let own = all.iter().find(|f| f["name"] == function).expect("the function");
    let values = own["slots"].as_array().expect("slots").iter().filter(|slot| {
        matches!(slot["class"].as_str(), Some("spill" | "pointer")) && slot["stays"].is_null()
    });
    let names: Vec<&str> = values.filter_map(|slot| slot["slot"].as_str()).collect();
    names.join(",")
}

fn loaded(text: &str) -> Loaded {
    let program = Program::new("test.s", text).unwrap_or_else(|e| panic!("{e}"));
    Loaded::new(&program, &Externals::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// The naive rewrite is refused, by the name of what is wrong, and what is accepted instead passes what the naive one does not.
fn refused_and_mended(place: &Place, file: &str, case: &str, function: &str) -> Loaded {
    place.put("the.case", case.as_bytes());
    let ask =
        ["respill", "validate", file, "naive.s", "--case", "the.case", "--inputs", "5", "--traced", "1"];
    let output = place.run(&[&ask[..], &["--json"]].concat());
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let said = json(&output.stdout);
    let aliased =
        said["reasons"].as_array().expect("reasons").iter().filter(|r| r["reason"] == "aliased").count();
    assert!(said["accepted"] == false && aliased > 0, "{said}");
    println!("{function}: {aliased} slots refused since something else touches them");
    let mend = [
        "respill",
        "rewrite",
        file,
        "--function",
        function,
        "--home",
        "mm",
        "--moves-only",
        "--case",
        "the.case",
        "--inputs",
        "20",
        "--traced",
        "1",
        "--json",
        "-o",
        "checked.s",
    ];
    let output = place.run(&mend);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let said = json(&output.stdout);
    assert!(said["checked"] == true && !said["taken_back"].as_array().expect("slots").is_empty());
    loaded(&String::from_utf8(place.get("checked.s")).expect("text"))
}

#[test]
fn a_naive_rewrite_of_kyber_decapsulation_passes_random_tests_and_is_refused() {
    let Some(text) = corpus("oqs-sys", "liboqs/src/kem/kyber/libjade_kyber768_ref/kem.S") else { return };
    let place = Place::new();
    place.put("kem.S", text.as_bytes());
    let function = "jade_kem_kyber_kyber768_amd64_ref_dec";
    let slots = own_slots(&place, "kem.S", function);
    let naive = naive(&place, "kem.S", function, &["--home", "mm,xmm", "--slots", &slots]);
    place.put("naive.s", naive.as_bytes());
    let (original, other) = (loaded(&text), loaded(&naive));
    // The case's own steps run the original before each: valid ciphertexts, and still nothing to see.
    println!("kyber: valid ciphertexts that differ: {}", differing(&original, &other, DEC, 20, false));
    assert_eq!(differing(&original, &other, RANDOM_DEC, 20, false), 0, "random inputs say nothing");
    assert_eq!(differing(&original, &other, DEC, 20, true), 20, "and yet all is wrong");
    let checked = refused_and_mended(&place, "kem.S", DEC, function);
    assert_eq!(differing(&original, &checked, DEC, 20, true), 0);
}

#[test]
fn a_naive_rewrite_of_x25519_passes_random_tests_and_is_refused() {
    let Some(text) = corpus("libjade-sys", "jazz/x25519_mulx.s") else { return };
    if !std::arch::is_x86_feature_detected!("bmi2") || !std::arch::is_x86_feature_detected!("adx") {
        println!("SKIPPED: this processor has no MULX");
        return;
    }
    let place = Place::new();
    place.put("x.s", text.as_bytes());
    let function = "jade_scalarmult_curve25519_amd64_mulx";
    let naive = naive(&place, "x.s", function, &["--home", "mm"]);
    place.put("naive.s", naive.as_bytes());
    let (original, other) = (loaded(&text), loaded(&naive));
    assert_eq!(differing(&original, &other, MULX, 20, false), 0, "random inputs say nothing");
    assert_eq!(differing(&original, &other, MULX, 20, true), 20, "and yet all is wrong");
    let checked = refused_and_mended(&place, "x.s", MULX, function);
    assert_eq!(differing(&original, &checked, MULX, 20, true), 0);
}

/// A file that nobody here wrote: as a stranger would.
#[test]
fn a_fresh_file_of_a_compiler_is_rewritten_and_checked() {
    let place = Place::new();
    let Ok(gcc) = lanework_suite::spill::compile::Compiler::gcc() else {
        println!("SKIPPED: no gcc on this machine");
        return;
    };
    let rounds: String = (0..24)
        .map(|i| {
            format!(
                "    x{0} = (x{0} ^ x{1}) * 0x9e3779b97f4a7c15u + (x{2} << {3} | x{2} >> {4});\n",
                i % 20,
                (i * 7 + 3) % 20,
                (i * 11 + 5) % 20,
                i % 23 + 1,
                63 - i % 23
            )
        })
        .collect();
    let load: String = (0..20).map(|i| format!("  unsigned long x{i} = in[{i}];\n")).collect();
    let store: String = (0..20).map(|i| format!("  out[{i}] = x{i};\n")).collect();
    let c = format!(
        "void mix(unsigned long *out, const unsigned long *in, unsigned long n) {{\n{load}  while (n--) {{\n{rounds}  }}\n{store}}}\n"
    );
    // Padding that is run through is not told from instructions yet, so loops are not aligned.
    let flags = "-O2 -fno-align-loops -fno-align-jumps -fno-align-labels";
    let made = gcc.assembly("mix.c", &c, flags, None).expect("compiled");
    place.put("mix.s", made.text.as_bytes());
    let call = "measure mix(out: out 160, in: random 160, 9)";
    for home in ["mm", "xmm"] {
        let out = format!("{home}.s");
        let ask = [
            "respill", "rewrite", "mix.s", "--home", home, "--call", call, "--inputs", "200", "--json", "-o",
            &out,
        ];
        let output = place.run(&ask);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert!(!json(&output.stdout)["moved"].as_array().expect("slots").is_empty());
        let output = place.run(&["respill", "validate", "mix.s", &out, "--call", call]);
        assert_eq!(code(&output), 0, "{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert_eq!(code(&place.run(&["respill", "lint", &out, "--call", call])), 0);
    }
    // Its `emms` taken out, the linter and the judge both say so.
    let text = String::from_utf8(place.get("mm.s")).expect("text");
    place.put("bad.s", text.replace("emms", "").as_bytes());
    let output = place.run(&["respill", "lint", "bad.s", "--call", call]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(code(&output) == 1 && said.contains("without emms") && said.contains("NaN"), "{said}");
    let output = place.run(&["respill", "validate", "mix.s", "bad.s", "--call", call, "--json"]);
    assert_eq!(code(&output), 1);
    assert!(json(&output.stdout)["reasons"].to_string().contains("missing-emms"), "{}", json(&output.stdout));
    // The text alone decides what nobody else can touch, and refuses what it cannot.
    assert_eq!(code(&place.run(&["respill", "validate", "mix.s", "xmm.s"])), 0);
    let programs = Analysis::new(Program::new("mix.s", made.text).expect("a program"));
    assert!(programs.units[0].slots.len() > 3);
}
