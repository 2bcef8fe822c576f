//! `lanework respill` as its users run it: slots shown, text rewritten, bad input, exit codes.

use crate::common::{Place, code, json, no, stderr, yes};

/// A function with a pointer, a value and an array that it indexes; a helper that only this file calls.
const TEXT: &str = "\
\t.text
\t.globl\tf
f:
\tsubq\t$72, %rsp
\tmovq\t%rdi, 48(%rsp)\t# the pointer
\tmovq\t%rsi, 56(%rsp)
\tmovq\t%rdx, (%rsp,%rdx,8)
\tcall\tL_g
\tmovq\t48(%rsp), %rdi
\tmovq\t(%rdi), %rax
\taddq\t56(%rsp), %rax
\taddq\t$72, %rsp
\tret
L_g:
\tmovq\t%rdi, -8(%rsp)
\taddq\t%rdx, %rdi
\tmovq\t-8(%rsp), %rdx
\tret
";

#[test]
fn slots_are_shown_with_their_suspects_and_homes() {
    let place = Place::new();
    place.put("f.s", TEXT.as_bytes());
    let object = json(&yes(&place, &["respill", "analyse", "f.s", "--json"]));
    let f = &object["functions"][0];
    assert_eq!(
        (f["name"].as_str(), f["line"].as_u64(), f["frame_bytes"].as_i64()),
        (Some("f"), Some(4), Some(72))
    );
    assert_eq!(f["calls"][0], "L_g");
    let slot = &f["slots"][0];
    assert_eq!((slot["slot"].as_str(), slot["class"].as_str()), (Some("-24"), Some("pointer")));
    // The index of line 7 counts from below both slots.
    assert_eq!(slot["suspects"][0], 7);
    assert_eq!(slot["homes"].as_array().map(Vec::len), Some(5));
    let g = &object["functions"][1];
    assert_eq!((g["name"].as_str(), g["global"].as_bool()), (Some("L_g"), Some(false)));
    assert_eq!(g["slots"][0]["suspects"].as_array().map(Vec::len), Some(0));
    let mm = &object["homes"][0];
    assert_eq!(
        (mm["home"].as_str(), mm["fit"].as_u64(), mm["suspected"].as_u64()),
        (Some("mm"), Some(3), Some(2))
    );
    let text = String::from_utf8(yes(&place, &["respill", "analyse", "f.s"])).expect("text");
    assert!(text.contains("f (f.s:4)") && text.contains("line 7") && text.contains("xmm32"), "{text}");
    // A single function, and standard input.
    let one = yes(&place, &["respill", "analyse", "f.s", "--function", "L_g", "--json"]);
    assert_eq!(json(&one)["functions"].as_array().map(Vec::len), Some(1));
    let piped = place.fed(&["respill", "analyse", "-", "--json"], TEXT.as_bytes());
    assert_eq!(json(&piped.stdout)["file"], "standard input");
}

#[test]
fn texts_are_rewritten_and_otherwise_kept() {
    let place = Place::new();
    place.put("f.s", TEXT.as_bytes());
    // Slots that the indexed store may touch stay; the helper's slot moves, and the exported function clears it.
    let text = String::from_utf8(yes(&place, &["respill", "rewrite", "f.s", "--home", "mm"])).expect("text");
    assert!(text.contains("movq\t%rdi, 48(%rsp)\t# the pointer\n"), "{text}");
    assert!(text.contains("movq\t%rdi, %mm0") && text.contains("emms\n\tret\nL_g:"), "{text}");
    let ask = ["respill", "rewrite", "f.s", "--home", "mm:1,xmm", "--naive", "-o", "out.s"];
    let told = String::from_utf8(yes(&place, &ask)).expect("text");
    assert!(told.starts_with("out.s: 3 slots moved"), "{told}");
    let all = String::from_utf8(place.get("out.s")).expect("text");
    assert!(all.contains("%mm0") && all.contains("%xmm15") && !all.contains("(%rsp)\t#"), "{all}");
    no(&place, &ask, 2, "--force");
    let object = json(&yes(&place, &[&ask[..], &["--force", "--json", "--slots", "L_g:-8"]].concat()));
    assert_eq!(object["moved"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (object["moved"][0]["slot"].as_str(), object["checked"].as_bool()),
        (Some("L_g:-8"), Some(false))
    );
    // Checks have names, and so has what is not decided; slots moved with --naive are not checked.
    let said = yes(&place, &["respill", "rewrite", "f.s", "--home", "mm", "-o", "said.s"]);
    let said = String::from_utf8(said).expect("text");
    for part in [
        "said.s: proved: 1 slot moved",
        "checked: uses of the slot, separation of the slot",
        "tested on no input",
        "not decided: that no code guesses an address of the stack",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // The text on standard output has its verdict on standard error.
    let piped = place.run(&["respill", "rewrite", "f.s", "--home", "mm"]);
    let told_apart = stderr(&piped);
    assert!(told_apart.starts_with("standard output: proved: 1 slot moved"), "{told_apart}");
    // A rewrite that changes nothing has no slots to list.
    let same = place.run(&["respill", "validate", "f.s", "f.s"]);
    let same = String::from_utf8(same.stdout).expect("text");
    assert!(same == "f.s: nothing moved: 14 instructions of both texts are the same\n", "{same}");
    // The assembler knows no such instruction, so nothing is said of its function.
    place.put(
        "typo.s",
        b"\t.globl f\nf:\tmovq %rdi, -8(%rsp)\n\tmvoq -8(%rsp), %rax\n\tmovq %rdi, %rax\n\tret\n",
    );
    let same = place.run(&["respill", "validate", "typo.s", "typo.s", "--json"]);
    assert_eq!((code(&same), json(&same.stdout)["verdict"].as_str()), (0, Some("nothing moved")));
    assert!(told.contains("nothing checked or tested"), "{told}");
    for ask in [&["respill", "validate", "--help"][..], &["respill", "rewrite", "--help"]] {
        let help = String::from_utf8(yes(&place, ask)).expect("text");
        assert!(help.contains("liveness of the home: ") && help.contains("Not decided:"), "{help}");
    }
    // The policy chooses: only pointers.
    let only = ["respill", "rewrite", "f.s", "--naive", "--policy", "pointers", "--json", "-o", "p.s"];
    assert_eq!(json(&yes(&place, &only))["moved"][0]["slot"], "f:-24");
    // Nothing but what was asked for is in the directory.
    assert_eq!(place.names(), ["f.s", "out.s", "p.s", "said.s", "typo.s"]);
}

#[test]
fn bad_input_is_one_error_with_file_line_and_reason() {
    let place = Place::new();
    place.put("f.s", TEXT.as_bytes());
    for (name, text, says) in [
        ("register.s", "f:\n\tmovq %rax, %nosuch\n", "register.s:2: "),
        ("directive.s", "f:\tret\n\t.nosuch 3\n", "directive.s:2: "),
        ("macro.s", "f:\tret\n.macro m\n.endm\n", "macro.s:2: `.macro`"),
        ("cpp.S", "#include <x.h>\nf:\tret\n", "cpp.S:1: the C preprocessor"),
        ("string.s", "f:\tret\n\t.ascii \"x\n", "string.s:2: "),
        ("empty.s", "", "empty.s: there is no instruction in it"),
        ("mark.s", "\u{feff}\t.globl f\nf:\tret\n", "mark.s:1: a UTF-8 byte order mark"),
        ("cfi.s", "\t.globl f\nf:\t.cfi_startproc\n\tret\n", "cfi.s: open CFI at the end of file"),
        ("data.s", "\t.data\n\t.byte 1\n", "data.s: there is no instruction in it"),
    ] {
        place.put(name, text.as_bytes());
        no(&place, &["respill", "analyse", name], 2, says);
        no(&place, &["respill", "rewrite", name, "-o", "out.s"], 2, says);
    }
    place.put("bytes.s", b"f:\tret\n\xff\n");
    no(&place, &["respill", "analyse", "bytes.s"], 2, "bytes.s:2: not text");
    no(&place, &["respill", "analyse", "nowhere.s"], 2, "nowhere.s: ");
    no(&place, &["respill", "analyse", "/dev/zero"], 2, "/dev/zero: longer than 268435456 bytes");
    no(
        &place,
        &["respill", "analyse", "f.s", "--function", "h"],
        2,
        "f.s: no function 'h' in it\nhelp: choose among f",
    );
    let rewrite = |more: &[&'static str]| [&["respill", "rewrite", "f.s"][..], more].concat();
    no(&place, &rewrite(&["--home", "ymm"]), 2, "no home 'ymm'");
    no(&place, &rewrite(&["--home", "mm:0"]), 2, "'0' is not a number of registers");
    no(&place, &rewrite(&["--slots", "f:-16"]), 1, "f:-16 stays: something else may touch it");
    no(&place, &rewrite(&["--home", "mm:9"]), 2, "'mm:9': there are 8 mm homes");
    no(&place, &rewrite(&["--naive", "--unreached"]), 2, "cannot be used with");
    for more in [
        &["--home", "mm"][..],
        &["--slots", "f:-24"],
        &["--policy", "coldest"],
        &["--naive"],
        &["--moves-only"],
    ] {
        no(&place, &[&["respill", "validate", "f.s", "f.s"][..], more].concat(), 2, "cannot be used with");
    }
    no(&place, &rewrite(&["--slots", "-24"]), 2, "no function named");
    no(&place, &rewrite(&["--slots", "f:-1000"]), 2, "'f' has no slot -1000");
    no(&place, &rewrite(&["--slots", "f"]), 2, "is not a slot");
    let output = place.run(&rewrite(&["--json"]));
    assert_eq!((code(&output), json(&output.stdout)["exit"].as_u64()), (2, Some(2)));
    assert!(stderr(&output).contains("with -o"), "{}", stderr(&output));
    no(&place, &rewrite(&["-o", "nowhere/out.s"]), 2, "nowhere");
    // A text without a function is not a text in which nothing was found.
    place.put("none.s", b"f:\tmovq %rdi, -8(%rsp)\n\tret\n");
    for job in ["analyse", "rewrite", "lint"] {
        no(&place, &["respill", job, "none.s"], 2, "none.s: no function in it");
    }
    // A function without a frame, and one that cannot be followed.
    place.put("leaf.s", b"\t.globl f\nf:\tleaq 1(%rdi), %rax\n\tret\n");
    no(&place, &["respill", "rewrite", "leaf.s"], 1, "leaf.s: no slot can move: there is none in the frame");
    place.put("pushed.s", b"\t.globl f\nf:\tmovq %rdi, -16(%rsp)\n\tpushq %rdi\n\tret\n");
    let why = "at the exit in line 4 the stack pointer differs from its value at entry";
    no(
        &place,
        &["respill", "rewrite", "pushed.s"],
        1,
        &format!("2 lie in a function that cannot be followed: {why}"),
    );
    let shown = String::from_utf8(yes(&place, &["respill", "analyse", "pushed.s"])).expect("text");
    assert!(shown.contains(why), "{shown}");
    // Without an assembler there is no verdict, which is not the file's fault.
    let output = place
        .command(&["respill", "analyse", "f.s"])
        .env("LANEWORK_AS", "no-such-assembler")
        .output()
        .expect("it runs");
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("no assembler"), "{}", stderr(&output));
    assert!(!place.names().iter().any(|name| name == "out.s"), "a file was left behind");
}
