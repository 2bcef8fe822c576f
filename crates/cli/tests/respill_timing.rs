//! `lanework respill measure`, `auto` and `cpu` as their users run them. Races are kept short: nothing here depends on who wins.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{Place, code, json, stderr};

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
    let names: Vec<&str> = rows.iter().filter_map(|row| row["variant"].as_str()).collect();
    assert_eq!(names, ["copy", "mm", "mm+unwiped", "mm+placebo", "mm+level"]);
    assert!(rows.iter().all(|row| row["subject"] == "spill/sum" && row["baseline"] == "stack"));
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
        ("dies.s", CALL, 1, "did not come back"),
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
fn the_search_says_what_it_tried() {
    let place = place();
    let args = ["respill", "auto", "sum.s", "--call", CALL, "--home", "xmm", "--one-by-one", "1"];
    let more = ["--inputs", "40", "-o", "out.s", "--json"];
    let output = place.run(&[&args[..], &more, &SHORT].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let object = json(&output.stdout);
    let trials = object["trials"].as_array().expect("trials");
    assert!(trials.len() >= 2 && trials[0]["what"] == "xmm" && trials[0]["moved"] == 3, "{trials:?}");
    let text = String::from_utf8(place.get("out.s")).expect("a text");
    let moved = object["homes"].as_object().expect("homes").len();
    assert_eq!(moved == 0, text == SUM, "what stays is written as it was");
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
