//! `lanework respill rewrite`: homes that callers and callees refuse, and slots that something may touch out of sight. Each
//! refused text has one slot with no other objection.

use crate::common::{Place, code, json, stderr};

fn text_of(output: &std::process::Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// A function with one spilled value, which may move.
fn spill(label: &str) -> String {
    format!(
        "{label}:\tmovq %rdi, -8(%rsp)\n\tleaq (%rsi,%rsi,2), %rdi\n\tmovq -8(%rsp), %rax\n\taddq %rdi, %rax\n\tret\n"
    )
}

/// Instructions that use the mask registers from k0 on.
fn masks(count: usize) -> String {
    (0..count).map(|n| format!("\tkmovq %rdi, %k{n}\n")).collect()
}

/// The rewritten text, or the reason why there is none.
fn rewritten(place: &Place, text: &str, home: &str) -> Result<String, String> {
    place.put("f.s", text.as_bytes());
    let output = place.run(&["respill", "rewrite", "f.s", "--home", home]);
    match code(&output) {
        0 => Ok(String::from_utf8(output.stdout).expect("text")),
        1 => Err(stderr(&output)),
        other => panic!("exit code {other}: {}\n{text}", stderr(&output)),
    }
}

#[track_caller]
fn refused(text: &str, home: &str, says: &str) {
    match rewritten(&Place::new(), text, home) {
        Ok(out) => panic!("accepted in {home}, and not: {says}\n{text}\nbecame\n{out}"),
        Err(why) => assert!(why.contains(says), "{says}\n{why}\n{text}"),
    }
}

#[track_caller]
fn accepted(text: &str, home: &str) -> String {
    rewritten(&Place::new(), text, home).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// A spilled value in an exported function, and what follows before it returns.
fn then(rest: &str) -> String {
    format!(
        "\t.globl g\ng:\tsubq $24, %rsp\n\tmovq %rdi, 8(%rsp)\n\tleaq (%rsi,%rsi,2), %rdi\n\tmovq 8(%rsp), %rax\n{rest}\taddq $24, %rsp\n\tret\n"
    )
}

/// The same before a call of outside code, which cannot take the value for an argument: another one lies below it and is wanted later.
fn before_a_call(rest: &str) -> String {
    let rest = format!("{rest}\tmovq (%rsp), %rsi\n");
    then(&rest).replace("\tmovq %rdi, 8(%rsp)", "\tmovq %rsi, (%rsp)\n\tmovq %rdi, 8(%rsp)")
}

#[test]
fn a_register_that_a_caller_or_callee_uses_is_no_home() {
    let all = masks(8);
    let caller = format!("\t.globl f\nf:\n{all}\tcall L_g\n\tret\n{}", spill("L_g"));
    refused(&caller, "k", "k1 is used in line 4 by f, a caller");
    let far = format!("\t.globl f\nf:\n{all}\tcall L_m\n\tret\nL_m:\tcall L_g\n\tret\n{}", spill("L_g"));
    refused(&far, "k", "k1 is used in line 4 by f, a caller");
    let callee = format!("{}L_h:\n{all}\tret\n", then("\tcall L_h\n"));
    refused(&callee, "k", "k1 is used in line 11 by L_h, a callee");
    let below = format!("{}L_h:\tcall L_i\n\tret\nL_i:\n{all}\tret\n", then("\tcall L_h\n"));
    refused(&below, "k", "k1 is used in line 13 by L_i, a callee");
    let jump = format!("\t.globl f\nf:\n{all}\tjmp L_g\n\t.type L_g, @function\n{}", spill("L_g"));
    refused(&jump, "k", "k1 is used in line 4 by f, a caller");
    let beside = format!("\t.globl f\nf:\tcall L_g\n\tcall L_h\n\tret\n{}L_h:\n{all}\tret\n", spill("L_g"));
    refused(&beside, "k", "by L_h, reached through a caller or a pointer");
    let pointer = format!("\t.globl f\nf:\n{all}\tcall *%rdi\n\tret\n\t.globl g\n{}", spill("g"));
    refused(&pointer, "k", "k1 is used in line 4 by f, reached through a caller or a pointer");
    let taken = format!(
        "\t.globl f\nf:\n{all}\tmovq table(%rip), %rax\n\tcall *%rax\n\tret\n\t.type L_g, @function\n{}\t.data\ntable:\t.quad L_g\n",
        spill("L_g")
    );
    refused(&taken, "k", "k1 is used in line 4 by f, reached through a caller or a pointer");
    let stray = format!("\t.globl g\n{}{all}", spill("g"));
    refused(&stray, "k", "line 8 uses k1, and no path leads to line 8");
    // The whole state is saved and restored without naming a register.
    refused(&then("\tfxsave (%rsi)\n"), "k", "k1 is used in line 6 by g, the function itself");
    // Free registers are taken. Code that cannot run in the same calls does not count, nor does code that keeps to the ABI.
    let some = format!("\t.globl f\nf:\n{}\tcall L_g\n\tret\n{}", masks(4), spill("L_g"));
    assert!(accepted(&some, "k").contains("kmovq\t%rdi, %k4\n"));
    let apart = format!("\t.globl f\nf:\n{all}\tret\n\t.globl g\n{}", spill("g"));
    assert!(accepted(&apart, "k").contains("kmovq\t%rdi, %k1\n"));
    let outside = format!("\t.globl f\nf:\n{all}\tcall elsewhere\n\tret\n\t.globl g\n{}", spill("g"));
    assert!(accepted(&outside, "k").contains("kmovq\t%rdi, %k1\n"));
}

#[test]
fn x87_around_a_function_refuses_mmx() {
    let float = "\tfld1\n\tfstp %st(0)\n";
    let caller = format!("\t.globl f\nf:\n{float}\tcall L_g\n\tret\n{}", spill("L_g"));
    refused(&caller, "mm", "mm0 is a register of x87, which is used in line 3 by f, a caller");
    let callee = format!("{}L_h:\n{float}\tret\n", then("\tcall L_h\n"));
    refused(&callee, "mm", "mm0 is a register of x87, which is used in line 10 by L_h, a callee");
    refused(
        &before_a_call("\tcall elsewhere\n"),
        "mm",
        "code outside the file may return a value in st(0) when called in line 7 by g, the function itself",
    );
    assert!(accepted(&caller, "xmm").contains("%xmm15"));
    // Names that show what is returned, or that nothing is.
    let panics = "_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check";
    for name in ["memcpy", "_ZN4core3fmt5write17h0123456789abcdefE", panics] {
        assert!(
            accepted(&before_a_call(&format!("\tcall {name}\n")), "mm")
                .contains(&format!("\temms\n\tcall {name}\n")),
            "{name}"
        );
    }
    assert!(accepted(&then(&format!("\tcall {panics}\n")), "zmm-lane").contains("kxnorb"));
    refused(&then("\tcall memcpy\n"), "zmm-lane", "needs a mask");
    // The same through a register, if every path to the call loads it.
    let loaded = |call: &str| format!("\tmovq memcpy@GOTPCREL(%rip), %rbx\n{call}\tcall *%rbx\n");
    assert!(accepted(&then(&loaded("\tcall memset\n")), "mm").contains("%mm0"));
    refused(
        &before_a_call(&loaded("\ttestq %rdi, %rdi\n\tje 1f\n\tmovq %rsi, %rbx\n1:\n")),
        "mm",
        "may return a value in st(0)",
    );
    refused(&before_a_call("\tcall _ZN3foo3barEv\n"), "mm", "may return a value in st(0)");
}

#[test]
fn what_calls_leave_in_registers_is_no_home() {
    refused(
        &before_a_call("\tcall elsewhere\n"),
        "zmm-lane",
        "zmm16[1] needs a mask that code outside the file may change when called in line 7 by g",
    );
    // Results and arguments pass through a function that does not name them.
    let many = |call: &str| {
        let at = |n: usize| 8 * n + 16;
        let store: String =
            (0..15).map(|n| format!("\tleaq {n}(%rdi,%rsi), %rax\n\tmovq %rax, {}(%rsp)\n", at(n))).collect();
        let load: String =
            (0..15).map(|n| format!("\tmovq {}(%rsp), %rcx\n\taddq %rcx, %rax\n", at(n))).collect();
        format!(
            "\t.globl g\ng:\tsubq $152, %rsp\n\tmovq %rsi, (%rsp)\n{store}\txorl %eax, %eax\n{load}{call}\tmovq (%rsp), %rcx\n\taddq $152, %rsp\n\tret\n"
        )
    };
    let text = accepted(&many(""), "xmm");
    assert!(text.contains("%xmm2\n") && !text.contains("%xmm1\n") && !text.contains("%xmm0\n"), "{text}");
    let text = accepted(&many("\tmovq %rax, %rdi\n\tcall elsewhere\n"), "xmm");
    assert!(text.contains("%xmm8\n") && !text.contains("%xmm7\n"), "{text}");
}

#[test]
fn what_is_entered_from_outside_clears_its_own_homes() {
    // Foreign code calls it by its address; its caller in the file jumps to it.
    for begin in ["\t.globl f\nf:\tleaq L_g(%rip), %rdx\n\tjmp driver\n", "\t.globl f\nf:\tjmp L_g\n"] {
        let text = format!("{begin}\t.type L_g, @function\n{}", spill("L_g"));
        assert!(accepted(&text, "mm").ends_with("\tpxor\t%mm0, %mm0\n\temms\n\tret\n"), "{begin}");
        assert!(accepted(&text, "zmm-lane").contains("L_g:\tkxnorb\t%k1, %k1, %k1\n"), "{begin}");
    }
    // Outside code's result in st(0) may be passed on, so nothing can free MMX after it.
    let caller = |of: &str| format!("\t.globl f\nf:\tcall L_g\n\tcall {of}\n\tret\n{}", spill("L_g"));
    refused(&caller("elsewhere"), "mm", "may return a value in st(0) when called in line 3 by f, a caller");
    let text = accepted(&caller("memcpy"), "mm");
    assert!(
        text.contains("\tcall L_g\n\temms\n\tcall memcpy\n\tpxor\t%mm0, %mm0\n\temms\n\tret\n"),
        "{text}"
    );
    // A local function that is only called leaves that to its caller.
    let text = format!("\t.globl f\nf:\tcall L_g\n\tret\n{}", spill("L_g"));
    assert!(accepted(&text, "mm").contains("\tcall L_g\n\tpxor\t%mm0, %mm0\n\temms\n\tret\nL_g:"));
}

#[test]
fn calls_out_of_the_file_and_known_callers_are_seen_through_callees() {
    let across = "\t.globl g\ng:\tsubq $24, %rsp\n\tmovq %rdi, 8(%rsp)\n\tcall L_h\n\tmovq 8(%rsp), %rax\n\taddq $24, %rsp\n\tret\nL_h:\tsubq $8, %rsp\n";
    let end = "\taddq $8, %rsp\n\tret\n";
    refused(&format!("{across}\tcall elsewhere\n{end}"), "xmm", "lives across a call to unknown code");
    assert!(accepted(&format!("{across}{end}"), "xmm").contains("%xmm15"));
    // A caller in the file may rely on rcx being left alone, so nothing goes through it.
    let borrows = "\t.globl g\ng:\tmovq %rdi, -8(%rsp)\n\txorl %eax, %eax\n\taddq $1, -8(%rsp)\n\taddq -8(%rsp), %rax\n\tret\n";
    let knows = "\t.globl f\nf:\tmovl $7, %ecx\n\tcall g\n\taddq %rcx, %rax\n\tret\n";
    refused(&format!("{borrows}{knows}"), "xmm", "is named by an instruction that cannot be rewritten here");
    assert!(accepted(borrows, "xmm").contains("%rcx"));
}

#[test]
fn slots_that_are_touched_out_of_sight_stay() {
    let touched = "something else may touch";
    for (what, text) in [
        (
            "an index that counts up to zero",
            "subq $72, %rsp\n\tmovq %rdi, (%rsp)\n\tmovq $-16, %rcx\n1:\taddq $5, 16(%rsp,%rcx)\n\taddq $8, %rcx\n\tjne 1b\n\tmovq (%rsp), %rax\n\taddq $72, %rsp",
        ),
        (
            "a pointer less a register",
            "movq %rsp, %rax\n\tsubq %rsi, %rax\n\tmovq %rdi, -8(%rsp)\n\taddq $3, (%rax)\n\tmovq -8(%rsp), %rax",
        ),
        (
            "a vector register",
            "subq $24, %rsp\n\tmovq %rdi, 8(%rsp)\n\tmovq %rsp, %xmm0\n\tmovq %xmm0, %rax\n\taddq $3, 8(%rax)\n\tmovq 8(%rsp), %rax\n\taddq $24, %rsp",
        ),
        (
            "memory",
            "subq $24, %rsp\n\tmovq %rdi, 8(%rsp)\n\tmovq %rsp, kept(%rip)\n\tmovq kept(%rip), %rax\n\taddq $3, 8(%rax)\n\tmovq 8(%rsp), %rax\n\taddq $24, %rsp",
        ),
        (
            "a conditional move",
            "subq $24, %rsp\n\tmovq %rdi, 8(%rsp)\n\txorl %eax, %eax\n\ttestq %rsp, %rsp\n\tcmovneq %rsp, %rax\n\taddq $3, 8(%rax)\n\tmovq 8(%rsp), %rax\n\taddq $24, %rsp",
        ),
        (
            "a repeated move",
            "subq $72, %rsp\n\tmovq %rsi, (%rsp)\n\tmovq %rdx, 8(%rsp)\n\tmovq %rsp, %rsi\n\tmovl $2, %ecx\n\trep movsq\n\tmovq 8(%rsp), %rax\n\taddq $72, %rsp",
        ),
        (
            "arguments on the stack",
            "subq $24, %rsp\n\tmovq %rsi, (%rsp)\n\tmovq %rdi, 8(%rsp)\n\tcall elsewhere\n\taddq $24, %rsp",
        ),
    ] {
        let text = format!("\t.globl f\nf:\t{text}\n\tret\n\t.comm kept,8,8\n");
        println!("{what}");
        refused(&text, "xmm", touched);
    }
    let address = "\t.globl f\nf:\tmovq %rdi, -8(%rsp)\n\tcall h\n\tmovq -8(%rsp), %rax\n\tret\nh:\txorl %eax, %eax\n\tret\n";
    refused(address, "xmm", touched);
    let above = "\t.globl f\nf:\tmovq %rdi, 8(%rsp)\n\tmovq %rsi, %rdi\n\tmovq 8(%rsp), %rax\n\tret\n";
    refused(above, "xmm", "lies in the caller's frame");
    // A local function's values may lie in its caller's frame, and the caller may read them.
    let local = "\t.globl f\nf:\tsubq $24, %rsp\n\tcall L_g\n\tmovq (%rsp), %rax\n\taddq $24, %rsp\n\tret\nL_g:\tmovq %rdi, 8(%rsp)\n\tmovq 8(%rsp), %rax\n\tret\n";
    refused(local, "xmm", touched);
    // An array.
    let array = "\t.globl f\nf:\tsubq $40, %rsp\n\tmovq %rdi, (%rsp)\n\tmovq %rdx, 16(%rsp)\n\tincq 16(%rsp,%rsi,8)\n\tmovq (%rsp), %rax\n\taddq $40, %rsp\n\tret\n";
    refused(array, "xmm", touched);
    // A frame whose addresses do not escape.
    assert!(accepted(&then(""), "xmm").contains("%xmm15"));
}

#[test]
fn where_one_home_is_refused_the_next_is_tried() {
    // A constant counts the bytes of code, which moves of another length change.
    let text = "\t.globl f\nf:\tsubq $24, %rsp\n\tmovq %rdi, 8(%rsp)\n1:\tmovq 8(%rsp), %rax\n2:\taddq $2b-1b, %rax\n\taddq $24, %rsp\n\tret\n";
    let place = Place::new();
    place.put("f.s", text.as_bytes());
    let of = |homes: &str| place.run(&["respill", "rewrite", "f.s", "--home", homes, "-o", "g.s", "--force"]);
    assert_eq!(code(&of("mm")), 1);
    let said = text_of(&of("mm,xmm"));
    assert!(said.starts_with("mm is refused, so xmm is taken: decoded: "), "{said}");
    assert!(said.contains("proved: 1 slot moved"), "{said}");
    let said =
        json(&place.run(&["respill", "rewrite", "f.s", "--home", "mm,xmm", "-o", "h.s", "--json"]).stdout);
    assert_eq!(said["homes_refused"][0]["home"], "mm", "{said}");
    // The plan refuses MMX beside x87, before any check.
    let text = "\t.globl f\nf:\tmovq %rdi, -8(%rsp)\n\tfldz\n\tfstp %st(0)\n\tmovq %rsi, %rdi\n\tmovq -8(%rsp), %rax\n\tret\n";
    place.put("f.s", text.as_bytes());
    let said = text_of(&of("mm,xmm"));
    assert!(
        said.starts_with("mm is refused, so xmm is taken: mm0 is a register of x87, which is used in line 3"),
        "{said}"
    );
    assert!(said.contains("proved: 1 slot moved"), "{said}");
    let words = ["respill", "rewrite", "f.s", "--home", "mm,xmm", "-o", "i.s", "--json"];
    let said = json(&place.run(&words).stdout);
    assert_eq!(
        (&said["homes_refused"][0]["home"], &said["homes_refused"][0]["taken"]),
        (&"mm".into(), &serde_json::json!(["xmm"])),
        "{said}"
    );
}

#[test]
fn the_verdict_names_what_never_ran() {
    let text = "\t.globl g\ng:\tmovq %rdi, -8(%rsp)\n\tleaq -16(%rsp), %rcx\n\ttestq %rsi, %rsi\n\tjz 1f\n\tmovq $5, (%rcx,%rsi,8)\n1:\tmovq -8(%rsp), %rax\n\tret\n";
    let place = Place::new();
    place.put("u.s", text.as_bytes());
    let call = ["--call", "measure g(3,0)", "--unreached"];
    let ask = |more: &[&'static str]| place.run(&[&["respill"], more, &call].concat());
    let named =
        "tested on 1000 inputs, unreached: 1 instruction that may touch a moved slot was never run: u.s:6";
    let said = text_of(&ask(&["rewrite", "u.s", "-o", "un.s"]));
    assert!(said.contains(named) && said.contains("separation: not checked for 1 slot"), "{said}");
    let said = text_of(&ask(&["validate", "u.s", "un.s"]));
    assert!(said.contains(named) && said.contains("1 not checked: instructions that may"), "{said}");
    let said = json(&ask(&["validate", "u.s", "un.s", "--json"]).stdout);
    assert_eq!((&said["verdict"], &said["report"]["unreached"][0]["line"]), (&named.into(), &6.into()));
    assert_eq!(said["report"]["slots"][0]["means"]["alone"], "unreached");
}

/// An indexed store that reaches a slot by a negative number.
const INDEXED: &str = "\t.globl f\nf:\tsubq $40, %rsp\n\tmovq %rdi, (%rsp)\n\tmovq %rdx, 16(%rsp)\n\tincq 16(%rsp,%rsi,8)\n\tmovq (%rsp), %rax\n\taddq 16(%rsp), %rax\n\taddq $40, %rsp\n\tret\n";

#[test]
fn what_a_run_refuses_is_told_with_the_first_line() {
    let place = Place::new();
    place.put("f.s", INDEXED.as_bytes());
    let of = |call: &'static str| {
        place.run(&["respill", "rewrite", "f.s", "--call", call, "-o", "g.s", "--force"])
    };
    let by = "something else touches 1 (f.s:5: `incq 16(%rsp,%rsi,8)`)";
    let said = text_of(&of("measure f(1,-2,3)"));
    assert!(said.contains("1 slot moved") && said.contains(&format!("1 slot stays: {by}")), "{said}");
    // Without a case, the same account.
    let output = place.run(&["respill", "rewrite", "f.s"]);
    let said = stderr(&output);
    assert!(said.contains("f.s: no slot can move: something else may touch 2 (first: line 5)"), "{said}");
    assert!(said.contains("with --case or --call\n"), "{said}");
    // What never ran, where nothing is left to move.
    place.put(
        "f.s",
        INDEXED
            .replace("\tincq", "\ttestq %rsi, %rsi\n\tjz 1f\n\tincq")
            .replace("\tmovq (%rsp), %rax", "1:\tmovq (%rsp), %rax")
            .as_bytes(),
    );
    let output = of("measure f(1,0,3)");
    assert_eq!(code(&output), 1);
    let said = stderr(&output);
    let never = "no slot can move: 2 are named or possibly touched by an instruction that never ran (first: f.s:7: `incq";
    assert!(said.contains(never), "{said}");
}

#[test]
fn what_is_validated_is_what_is_rewritten() {
    let place = Place::new();
    place.put("f.s", INDEXED.as_bytes());
    let call = ["--call", "measure f(1,-2,3)"];
    let rewritten = place.run(&[&["respill", "rewrite", "f.s", "--json", "-o", "g.s"][..], &call].concat());
    let validated = place.run(&[&["respill", "validate", "f.s", "--json"][..], &call].concat());
    assert_eq!((code(&rewritten), code(&validated)), (0, 0), "{}", stderr(&validated));
    let [rewritten, validated] = [rewritten, validated].map(|output| json(&output.stdout));
    assert_eq!(validated["verdict"], "tested on 1000 inputs");
    assert_eq!(rewritten["report"]["slots"], validated["report"]["slots"]);
    // A refusal names the file that is refused.
    place.put("wrong.s", INDEXED.replace("\tmovq (%rsp), %rax\n", "").as_bytes());
    let output = place.run(&["respill", "validate", "f.s", "wrong.s"]);
    assert_eq!(code(&output), 1);
    assert!(text_of(&output).starts_with("wrong.s: REFUSED\n"), "{}", text_of(&output));
    let said = json(&place.run(&["respill", "validate", "f.s", "wrong.s", "--json"]).stdout);
    assert_eq!(said["file"], "wrong.s");
    let longer = format!("{INDEXED}\t.p2align 4\n");
    place.put("longer.s", longer.as_bytes());
    let said = text_of(&place.run(&["respill", "validate", "f.s", "longer.s"]));
    assert!(said.contains("longer.s:10: a statement after the end of the original"), "{said}");
}

#[test]
fn a_case_that_crashes_the_original_is_an_error() {
    let place = Place::new();
    let text = "\t.globl f\nf:\tmovq %rdi, -8(%rsp)\n\tmovq (%rsi), %rax\n\taddq -8(%rsp), %rax\n\tret\n";
    place.put("f.s", text.as_bytes());
    let says = "error: f.s: the case of `f` fails: the original was killed by SIGSEGV (segmentation fault) at f.s:3: `movq (%rsi), %rax`";
    for words in [&["rewrite", "f.s"][..], &["validate", "f.s"], &["validate", "f.s", "f.s"]] {
        let output = place.run(&[&["respill"], words, &["--call", "measure f(1,2)"]].concat());
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}

#[test]
fn what_lint_cannot_follow_is_not_clean() {
    let place = Place::new();
    place.put("typo.s", b"\t.globl f\nf:\tmovqq %rdi, %mm0\n\tfldz\n\tfstp %st(0)\n\tret\n");
    let output = place.run(&["respill", "lint", "typo.s"]);
    assert_eq!(
        (code(&output), text_of(&output)),
        (1, "f: not checked: the instruction in line 2 is unknown\n".to_owned())
    );
    let said = json(&place.run(&["respill", "lint", "typo.s", "--json"]).stdout);
    assert_eq!((&said["clean"], &said["not_checked"][0]["function"]), (&false.into(), &"f".into()));
    place.put("crash.s", b"\t.globl f\nf:\tmovl $1, 8\n\tret\n");
    assert_eq!(code(&place.run(&["respill", "lint", "crash.s"])), 0);
    let output = place.run(&["respill", "lint", "crash.s", "--call", "measure f()"]);
    assert_eq!(code(&output), 1);
    let said = text_of(&output);
    assert!(
        said.contains("did not come back: it was killed by SIGSEGV") && !said.contains("nothing found"),
        "{said}"
    );
}

#[test]
fn the_verdict_of_an_unbounded_table_names_it() {
    let text = "\t.globl f\nf:\tmovq %rdi, -8(%rsp)\n\tmovl %esi, %eax\n\tandl $7, %eax\n\tmovq %rsi, %rdi\n\tjmp *.Lt(,%rax,8)\n.La:\tmovq -8(%rsp), %rax\n.Lb:\tret\n\t.section .rodata\n.Lt:\t.quad .La, .Lb\n";
    let place = Place::new();
    place.put("f.s", text.as_bytes());
    let words = ["respill", "rewrite", "f.s", "--json", "-o", "g.s"];
    let said = json(&place.run(&words).stdout);
    assert_eq!(
        (&said["verdict"], &said["report"]["assumes"]),
        (&"proved under tables".into(), &serde_json::json!(["tables"]))
    );
    place.put("f.s", text.replace("andl $7", "andl $1").as_bytes());
    let said = text_of(&place.run(&["respill", "validate", "f.s"]));
    assert!(said.contains("proved: 1 slot moved"), "{said}");
}

#[test]
fn what_is_not_assembly_is_named() {
    let place = Place::new();
    place.put("f.c", b"int f(void) { return g(1, 2); }\n");
    let output = place.run(&["respill", "analyse", "f.c"]);
    assert_eq!(code(&output), 2);
    assert!(
        stderr(&output).contains("help: this looks like C: `cc -S` writes assembly"),
        "{}",
        stderr(&output)
    );
    place.put("f.s", b"\t.globl f\nf:\tnop\n\tret\0\n");
    let output = place.run(&["respill", "analyse", "f.s"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("f.s:3: a NUL byte"), "{}", stderr(&output));
}

#[test]
fn a_function_that_does_not_assemble_once_it_grows_keeps_its_slots() {
    // `loop` reaches 128 bytes back: 20 additions to a slot fit, and 20 that go through a register do not.
    let f = format!(
        "\t.globl f\nf:\tmovq %rdi, -8(%rsp)\n\tmovl $3, %ecx\n.La:\n{}\tloop .La\n\tmovq -8(%rsp), %rax\n\tret\n",
        "\taddq %rsi, -8(%rsp)\n".repeat(20)
    );
    let g = "\t.globl g\ng:\tmovq %rdi, -8(%rsp)\n\tmovq -8(%rsp), %rax\n\tret\n";
    let place = Place::new();
    place.put("f.s", format!("{f}{g}").as_bytes());
    let said = text_of(&place.run(&["respill", "rewrite", "f.s", "-o", "g.s"]));
    assert!(said.contains("proved: 1 slot moved") && said.contains("does not assemble"), "{said}");
    let text = String::from_utf8(place.get("g.s")).expect("text");
    assert!(text.starts_with(&f) && !text.ends_with(g), "{text}");
    // Alone it is the answer.
    place.put("f.s", f.as_bytes());
    let output = place.run(&["respill", "rewrite", "f.s", "-o", "h.s"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("does not assemble"), "{}", stderr(&output));
}
