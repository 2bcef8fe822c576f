//! `lanework respill measure`, `auto` and `cpu` as their users run them. Races are kept short: nothing here depends on their outcome.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::os::unix::process::ExitStatusExt as _;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Place, code, json, stderr};

/// A sum over a buffer, with its pointer, its length and the sum on the stack.
const SUM: &str = "\
\t.text
\t.globl sum
sum:
\tsubq $40, %rsp
\tmovq %rdi, 8(%rsp)
\tmovl %esi, 16(%rsp)
\tmovq $0, 24(%rsp)
1:
\tmovq 8(%rsp), %rax
\tmovq (%rax), %rcx
\taddq %rcx, 24(%rsp)
\taddq $8, %rax
\tmovq %rax, 8(%rsp)
\tmovl 16(%rsp), %esi
\tdecl %esi
\tmovl %esi, 16(%rsp)
\tjnz 1b
\tmovq 24(%rsp), %rax
\tmovq %rax, (%rdi)
\taddq $40, %rsp
\tret
\t.section .note.GNU-stack,\"\",@progbits
";

const CALL: &str = "a = random 64; measure sum(a: inout, 8)";
const SHORT: [&str; 4] = ["--seconds", "0.4", "--launches", "1"];

fn place() -> Place {
    let place = Place::new();
    place.put("sum.s", SUM.as_bytes());
    place
}

#[test]
fn a_function_is_raced_in_its_homes_beside_its_controls() {
    let place = place();
    let args = ["respill", "measure", "sum.s", "--call", CALL, "--home", "mm", "--inputs", "40", "--json"];
    let output = place.run(&[&args[..], &SHORT].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let object = json(&output.stdout);
    let rows = object["results"].as_array().expect("rows");
    let said = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let pairs: Vec<[String; 3]> =
        rows.iter().map(|row| ["subject", "baseline", "variant"].map(|name| said(row, name))).collect();
    // Variants that differ in only one thing are raced against each other.
    let want = [
        ["spill/sum", "stack", "copy"],
        ["spill/sum", "stack", "mm"],
        ["spill/sum", "stack", "mm+placebo"],
        ["spill/sum/mm/home-alone", "mm+placebo", "mm+level"],
        ["spill/sum/mm/wiping", "mm+unwiped", "mm"],
    ];
    assert_eq!(pairs, want.map(|row| row.map(str::to_owned)));
    assert_eq!((rows[1]["slots"].as_u64(), rows[1]["stack_bytes"].as_u64()), (Some(3), Some(20)));
    let gate = object["gate"].as_array().expect("a gate");
    assert!(gate.len() == 5 && gate.iter().all(|row| row["passed"] == 40), "{gate:?}");
    let finding = &object["findings"][0];
    assert_eq!((finding["home"].as_str(), finding["slots"].as_u64()), (Some("mm"), Some(3)));
    for part in ["whole", "home_alone", "layout_alone", "wiping"] {
        assert!(finding[part]["verdict"].is_string(), "{part}: {finding}");
    }
}

#[test]
fn bad_cases_are_refused_before_anything_is_timed() {
    let place = place();
    place.put("dies.s", SUM.replace("\tret\n", "\tud2\n").as_bytes());
    for (file, call, exit, says) in [
        ("sum.s", "a = random 64", 2, "no `measure"),
        ("sum.s", "measure nowhere()", 2, "nowhere"),
        ("dies.s", CALL, 2, "did not come back: it was killed by SIGILL (illegal instruction) at dies.s:"),
    ] {
        for verb in ["measure", "auto"] {
            let output = place.run(&["respill", verb, file, "--call", call]);
            let told = stderr(&output);
            assert_eq!(code(&output), exit, "{verb} {call}: {told}");
            assert!(told.contains(says) && output.stdout.is_empty(), "{verb} {call}: {told}");
        }
    }
    let output = place.run(&["respill", "measure", "sum.s"]);
    assert_eq!(code(&output), 2, "without a case");
    let output = place.run(&["respill", "__race", "sum.s", "3"]);
    assert_eq!(code(&output), 2, "by hand");
}

#[test]
fn the_search_says_why_a_home_is_refused() {
    let place = Place::new();
    let text = "\t.globl g\ng:\tmovq %rdi, -8(%rsp)\n\tleaq -16(%rsp), %rcx\n\tandq $1, %rsi\n\tmovq $5, (%rcx,%rsi,8)\n\tmovq -8(%rsp), %rax\n\tret\n";
    place.put("g.s", text.as_bytes());
    let output = place.run(&["respill", "auto", "g.s", "--call", "measure g(3,1)", "--home", "mm"]);
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(
        said.starts_with("mm, 1 moved: refused (diverged): g.s as rewritten:6: `movq %mm0, %rax` against g.s:6: `movq -8(%rsp), %rax`: "),
        "{said}"
    );
}

#[test]
fn the_search_says_what_it_tried() {
    let place = place();
    let args = ["respill", "auto", "sum.s", "--call", CALL, "--home", "xmm", "--one-by-one", "1"];
    let more = ["--inputs", "40", "-o", "out.s", "--json"];
    let output = place.run(&[&args[..], &more, &SHORT].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let object = json(&output.stdout);
    let trials = object["trials"].as_array().expect("trials");
    assert!(trials.len() >= 2 && trials[0]["what"] == "xmm" && trials[0]["moved"] == 3, "{trials:?}");
    // Slots have the names that `analyse` and `--slots` know.
    let of_slots = trials.iter().filter_map(|trial| trial["what"].as_str()?.split_once("sum:"));
    assert!(
        of_slots.clone().count() > 0 && of_slots.clone().all(|(_, place)| place.starts_with('-')),
        "{trials:?}"
    );
    let text = String::from_utf8(place.get("out.s")).expect("a text");
    let moved = object["homes"].as_object().expect("homes").len();
    assert_eq!(moved == 0, text == SUM, "what stays is written as it was");
}

#[test]
fn a_signal_leaves_no_temporary_file() {
    let place = place();
    let folder = place.path("temporary");
    std::fs::create_dir(&folder).expect("a directory");
    let entries = || std::fs::read_dir(&folder).expect("a directory").count();
    let args = ["respill", "auto", "sum.s", "--call", CALL, "--home", "xmm", "--seconds", "60"];
    let mut child = place.command(&args).env("TMPDIR", &folder).spawn().expect("it runs");
    let begun = std::time::Instant::now();
    while entries() == 0 && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(entries(), 1, "one directory for all");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is ours");
    assert_eq!(child.wait().expect("it ends").signal(), Some(15));
    assert_eq!(entries(), 0, "{:?}", std::fs::read_dir(&folder));
}

/// A profile of this machine with homes for `sum` as it is.
fn kept(place: &Place, change: impl FnOnce(&mut serde_json::Value, String)) {
    let args = ["respill", "auto", "sum.s", "--call", CALL, "--home", "xmm", "--one-by-one", "0"];
    let output = place.run(&[&args[..], &["--inputs", "10", "--keep"], &SHORT].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let mut profile = json(&place.get("no-profile.json"));
    let names: Vec<String> = profile["spills"].as_object().expect("spills").keys().cloned().collect();
    assert!(names.len() == 1 && names[0].starts_with("sum#"), "{names:?}");
    change(&mut profile, names[0].clone());
    place.put("no-profile.json", profile.to_string().as_bytes());
}

#[test]
fn what_the_profile_keeps_is_taken_and_nothing_for_another_function_of_the_name() {
    let place = place();
    let rewrite = |more: &[&'static str]| {
        place.run(
            &[&["respill", "rewrite", "sum.s", "--policy", "auto", "--json", "-o", "out.s"], more].concat(),
        )
    };
    let output = rewrite(&[]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("no homes are kept for sum"), "{}", stderr(&output));
    // The winner does not matter here: the sum's slot is put where the test needs it.
    kept(&place, |profile, key| profile["spills"][key]["homes"] = serde_json::json!({ "sum:-16": "xmm15" }));
    let output = rewrite(&["--call", CALL]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let object = json(&output.stdout);
    assert_eq!(
        (object["checked"].as_bool(), object["moved"][0]["slot"].as_str()),
        (Some(true), Some("sum:-16"))
    );
    let text = String::from_utf8(place.get("out.s")).expect("a text");
    assert!(text.contains("%xmm15") && text.contains("movq %rdi, 8(%rsp)"), "{text}");
    // The command shows the homes that the profile holds, and tuning keeps them.
    let shown = |want: &str| {
        let output = place.run(&["doctor"]);
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.lines().any(|line| line.contains("sum#") && line.contains(want)), "{text}");
        let output = place.run(&[&["tune", "magma/mgm-seal/16384"], &SHORT[..]].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).expect("text");
        let said = |line: &str| line.starts_with("spilled values of sum#") && line.contains(want);
        assert!(text.lines().any(said), "{text}");
    };
    shown("sum:-16 in xmm15");
    // Leaving everything on the stack is an answer too.
    kept(&place, |profile, key| profile["spills"][key]["homes"] = serde_json::json!({}));
    shown("all on the stack");
    let output = rewrite(&["--force"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(place.get("out.s"), SUM.as_bytes());
    // The same name with other instructions; different labels alone do not make another function.
    place.put("sum.s", SUM.replace("1:", ".Lagain:").replace("1b", ".Lagain").as_bytes());
    assert_eq!(code(&rewrite(&["--force"])), 0);
    place.put("sum.s", SUM.replace("addq $8, %rax", "addq $16, %rax").as_bytes());
    let output = rewrite(&["--force"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("only for another `sum`"), "{}", stderr(&output));
    let output = place.run(&["respill", "measure", "sum.s", "--call", CALL, "--policy", "auto"]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
}

#[test]
fn slots_are_shown_with_what_ran() {
    let place = place();
    let output = place.run(&["respill", "analyse", "sum.s", "--call", CALL, "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let object = json(&output.stdout);
    // 4 before the loop, 9 in each of 8 turns, 4 after it.
    assert_eq!(object["runs"]["runs"][0]["inside"], 80);
    let f = &object["functions"][0];
    assert_eq!((f["executed"].as_u64(), f["executed_slots"].as_u64()), (Some(80), Some(3 + 8 * 5 + 1)));
    let slot = f["slots"].as_array().expect("slots").iter().find(|s| s["slot"] == "-16").expect("the sum");
    assert_eq!((slot["executed"].as_u64(), slot["executed_share"].as_f64()), (Some(10), Some(10.0 / 80.0)));
    assert_eq!(object["homes"][0]["executed_share"], 1.0);
    let text = place.run(&["respill", "analyse", "sum.s", "--call", CALL]);
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.contains("80 instructions executed, 44 of them name a slot"), "{text}");
    // Without a case there are no counts, and a case that cannot run is an error.
    let object = json(&place.run(&["respill", "analyse", "sum.s", "--json"]).stdout);
    assert!(object["runs"].is_null() && object["functions"][0]["executed"].is_null());
    assert_eq!(code(&place.run(&["respill", "analyse", "sum.s", "--call", "measure nowhere()"])), 2);
}

#[test]
fn the_processors_costs_are_shown() {
    let place = place();
    let output = place.run(&["respill", "cpu", "--pairs", "3", "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let object = json(&output.stdout);
    let lines = object["table"]["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 11);
    assert!(lines[0]["costs"]["Ok"]["pair"]["cycles"].is_number(), "{}", lines[0]);
}
