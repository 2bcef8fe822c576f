//! `respill` on a file that a compiler has just made: rewritten, checked, and refused once it is damaged.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::process::Command;

use crate::common::{Place, code, json, stderr};
use lanework_respill::{Analysis, Program};

/// A file that was not written by hand, as a user would have it.
#[test]
fn a_fresh_file_of_a_compiler_is_rewritten_and_checked() {
    let place = Place::new();
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
    // Padding that is run through is not yet distinguished from instructions, so loops are not aligned.
    let flags = "-O2 -fno-align-loops -fno-align-jumps -fno-align-labels";
    place.put("mix.c", c.as_bytes());
    let mut gcc = Command::new("gcc");
    gcc.args(flags.split(' ')).args(["-S", "mix.c", "-o", "mix.s"]).current_dir(place.path(""));
    match gcc.status() {
        Ok(made) => assert!(made.success(), "{made}"),
        Err(why) => {
            println!("SKIPPED: gcc: {why}");
            return;
        }
    }
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
    // With its `emms` taken out, the linter and validation both report it.
    let text = String::from_utf8(place.get("mm.s")).expect("text");
    place.put("bad.s", text.replace("emms", "").as_bytes());
    let output = place.run(&["respill", "lint", "bad.s", "--call", call]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(code(&output) == 1 && said.contains("without emms") && said.contains("NaN"), "{said}");
    let output = place.run(&["respill", "validate", "mix.s", "bad.s", "--call", call, "--json"]);
    assert_eq!(code(&output), 1);
    assert!(json(&output.stdout)["reasons"].to_string().contains("missing-emms"), "{}", json(&output.stdout));
    // The text alone decides which slots nothing else can touch, and refuses those it cannot decide.
    assert_eq!(code(&place.run(&["respill", "validate", "mix.s", "xmm.s"])), 0);
    let programs = Analysis::new(
        Program::new("mix.s", String::from_utf8(place.get("mix.s")).expect("text")).expect("a program"),
    );
    assert!(programs.units[0].slots.len() > 3);
}
