//! Functions written to break a spill rewriter: a rewrite is refused, or its program prints what the original prints.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#![forbid(unsafe_code)]

mod common;

use std::path::{Path, PathBuf};

use common::native::{Outcome, Tried, every_home, library, moved, own};
use lanework_respill::analysis::Opaque;
use lanework_respill::homes::Bank;
use lanework_respill::validate::{Options, validate};
use lanework_respill::{Analysis, Program};

fn corpus() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adversarial");
    let files = std::fs::read_dir(&directory).expect("the functions");
    let mut out: Vec<PathBuf> = files
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "s"))
        .collect();
    out.sort();
    out
}

/// The verdicts in one table, for the reader of a failure; the faults by themselves.
fn table(all: &[Tried]) -> (String, Vec<&Tried>) {
    let told = all.iter().map(|one| format!("{one}\n")).collect();
    (told, all.iter().filter(|one| one.outcome.is_wrong()).collect())
}

#[test]
fn no_function_of_the_corpus_is_accepted_and_wrong() {
    let mut all = Vec::new();
    for path in corpus() {
        let driver = path.with_extension("c");
        let directory = tempfile::tempdir().expect("a directory");
        let driver = library(&driver, directory.path());
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a text");
        all.extend(every_home(&name, &text, &driver, directory.path()));
    }
    let (told, wrong) = table(&all);
    println!("{told}");
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), all.len(), table_of(&wrong));
    // Refusing everything would pass too.
    let right = all.iter().filter(|one| matches!(one.outcome, Outcome::Right(_))).count();
    assert!(right >= 1, "{right} of {} were accepted\n{told}", all.len());
}

#[test]
fn no_function_of_our_own_is_accepted_and_wrong() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adversarial/own");
    let directory = tempfile::tempdir().expect("a directory");
    let driver = library(&place.join("driver.c"), directory.path());
    let mut all = Vec::new();
    for (name, text) in own(&std::fs::read_to_string(place.join("functions.txt")).expect("the functions")) {
        all.extend(every_home(&name, &text, &driver, directory.path()));
    }
    let (told, wrong) = table(&all);
    println!("{told}");
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), all.len(), table_of(&wrong));
    // What is private by the rules must move.
    let right = |name: &str| {
        all.iter().any(|one| one.is_of(name) && matches!(one.outcome, Outcome::Right(_) | Outcome::NotRun(_)))
    };
    for name in [
        "bounded_index",
        "bounded_loop",
        "loop_ne_down",
        "loop_carried",
        "flags_kept",
        "aligned_array",
        "two_alignments",
        "word_slot",
        "jump_over_a_store",
        "bytes_of_endbr",
        "segment_stack",
        "return_xmm0",
        "above_pointer",
        "above_loop",
        "above_moving",
        "goto_frame",
        "tail_pointer",
        "tail_local",
        "tail_both",
        "stop_unbalanced",
        "address_no_link",
        "bytes_of_a_return",
        "half_tail",
        "half_tail_outside",
        "recursion_beside",
        "recursion_of_two",
        "shared_end",
        "parted",
        "repeated",
        "next_function",
        "exit_behind_a_call",
        "characters",
    ] {
        assert!(right(name), "{name} stays\n{told}");
    }
}

#[test]
fn a_verdict_names_the_tables_whose_index_it_does_not_bound() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adversarial");
    let masked = std::fs::read_to_string(place.join("31_jumptable.s")).expect("the function");
    // Four entries: a wider mask goes beyond them. So may the jump of a function that has no slot.
    let wide = masked.replace("andl $3,", "andl $7,");
    let none = "\t.text\n\t.globl g\ng:\tjmp *.Lt(,%rdi,8)\n.Lx:\tret\n\t.section .rodata\n.Lt:\t.quad .Lx\n";
    let other = format!("{none}{masked}");
    // Compared with a number that only the linker knows.
    let linked = std::fs::read_to_string(place.join("own/linked_bound.s")).expect("the function");
    let under = "proved under tables";
    for (text, want) in [(&masked, "proved"), (&wide, under), (&other, under), (&linked, under)] {
        let original = Analysis::new(Program::new("f.s", text.as_str()).expect("a program"));
        let Ok((1.., made)) = moved(&original, Bank::Xmm) else { panic!("it stays\n{text}") };
        let other = Program::new("rewritten.s", made).expect("a program");
        let report = validate(&original, &other, &[], &Options::default()).expect("accepted");
        assert_eq!(report.verdict().to_string(), want, "{report}");
        assert_eq!(report.to_string().contains("assumes tables: the index"), want != "proved", "{report}");
    }
}

#[test]
fn what_a_pointer_may_lead_to_is_shown_to_keep_to_the_abi_or_assumed() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adversarial/own/pointers.txt");
    let mut accepted = 0;
    let breaks = own(&std::fs::read_to_string(place).expect("the functions"));
    // With a function that keeps to the ABI, and with one that only code outside could break.
    let kept = |g: &str| {
        let f = "subq $24,%rsp\nmovq %rdi,8(%rsp)\nleaq g(%rip),%rax\ncall *%rax\nmovq 8(%rsp),%rax\naddq $24,%rsp\nret\n";
        format!("\t.text\n\t.globl f\n\t.type f,@function\nf:\n{f}\t.type g,@function\ng:\n{g}ret\n")
    };
    let keeps = ["movl $3,%eax\n", "pushq %rbx\nmovl $3,%ebx\npopq %rbx\n"].map(|g| ("keeps", kept(g)));
    let breaks = breaks.iter().map(|(name, text)| (name.as_str(), text.clone()));
    for (name, text) in breaks.chain(keeps) {
        let original = Analysis::new(Program::new(name, text.as_str()).expect("a program"));
        for bank in Bank::ALL {
            let Ok((1.., made)) = moved(&original, bank) else { continue };
            let other = Program::new("rewritten.s", made).expect("a program");
            let report = validate(&original, &other, &[], &Options::default()).expect("accepted");
            let named = report.verdict().to_string().contains("abi");
            assert_eq!(named, name != "keeps", "{name}: {report}");
            accepted += 1;
        }
    }
    assert!(accepted >= 8, "{accepted}");
}

#[test]
fn a_table_of_the_unwinder_is_that_of_its_whole_procedure() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adversarial/own/landing.s");
    let text = std::fs::read_to_string(place).expect("the function");
    let pads = |text: &str| {
        let analysis = Analysis::new(Program::new("landing.s", text).expect("a program"));
        let f = analysis.units.iter().find(|unit| unit.function.name() == "f").expect("f");
        (f.function.pads.len(), f.opaque.is_some())
    };
    let (count, opaque) = pads(&text);
    assert!(count > 0 && !opaque);
    // Named at the end of the procedure.
    let begin = text.find("\t.cfi_lsda").expect("a table");
    let line = &text[begin..=begin + text[begin..].find('\n').expect("a line")];
    let end = begin + text[begin..].find("\t.cfi_endproc").expect("an end");
    let late = format!("{}{}{line}{}", &text[..begin], &text[begin + line.len()..end], &text[end..]);
    assert_eq!(pads(&late), (count, false));
    // Another function of the same procedure begins before it.
    let entry = text.find("\nf:").expect("f") + 1;
    assert!(entry < begin);
    let before = "\t.globl f0\nf0:\n\t.cfi_startproc\n\tret\n\t.globl f\nf:\n";
    let after = text[entry..].replacen("f:\n", "", 1).replacen("\t.cfi_startproc\n", "", 1);
    let two = format!("{}{before}{after}", &text[..entry]);
    assert_eq!(pads(&two).0, count, "{two}");
}

#[test]
fn what_returns_behind_its_call_is_not_followed() {
    let text = "\t.globl f\nf:\tcall __morestack\n\tret\n\tmovq %rdi,-8(%rsp)\n\tmovq -8(%rsp),%rax\n\tret\n";
    let analysis = Analysis::new(Program::new("f.s", text).expect("a program"));
    assert!(matches!(analysis.units[0].opaque, Some(Opaque::Calls(_))), "{:?}", analysis.units[0].opaque);
}

#[test]
fn masks_are_made_behind_the_mark_of_an_entry() {
    let text = "\t.text\n\t.globl f\nf:\tendbr64\n\tmovq %rdi,-8(%rsp)\n\tmovq -8(%rsp),%rax\n\tret\n";
    let original = Analysis::new(Program::new("f.s", text).expect("a program"));
    let Ok((1.., made)) = moved(&original, Bank::ZmmLane) else { panic!("it stays") };
    assert!(made.contains("f:\tendbr64\n") && made.contains("kxnorb"), "{made}");
}

#[test]
fn what_a_mask_may_not_read_may_be_an_argument() {
    let text = |read: &str| {
        format!(
            "\t.globl f\nf:\tsubq $24,%rsp\n\tmovq %rsi,(%rsp)\n\tcall outside\n\t{read}\n\taddq $24,%rsp\n\tret\n"
        )
    };
    for (read, stays) in [("movsd (%rsp),%xmm1", false), ("vmovsd (%rsp),%xmm1{%k1}{z}", true)] {
        let analysis = Analysis::new(Program::new("f.s", text(read)).expect("a program"));
        let slot = &analysis.units[0].slots[0];
        assert_eq!(!slot.suspects.is_empty(), stays, "{read}: {slot:?}");
    }
}

#[test]
fn what_a_handler_reads_stays() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adversarial/own");
    let directory = tempfile::tempdir().expect("a directory");
    let driver = library(&place.join("driver.c"), directory.path());
    let text = std::fs::read_to_string(place.join("landing.s")).expect("the function");
    let all = every_home("landing", &text, &driver, directory.path());
    let (told, wrong) = table(&all);
    assert!(wrong.is_empty(), "{told}");
    assert_eq!(all.iter().map(|one| one.outcome.moved()).max(), Some(2), "{told}");
    let by_hand = std::fs::read_to_string(place.join("by_hand.s")).expect("the function");
    let all = every_home("by_hand", &by_hand, &driver, directory.path());
    assert!(all.iter().all(|one| matches!(one.outcome, Outcome::Nothing)), "{}", table(&all).0);
    // Tables that are not understood.
    for (from, to) in [
        ("__gxx_personality_v0", "personality_of_mine"),
        (".byte\t0xff", ".byte\t0x1b"),
        (".LLSDACSB1:", ".LLSDACSB1:\n\t.long 1\n"),
    ] {
        let program = Program::new("landing.s", text.replace(from, to)).expect("a program");
        let analysis = Analysis::new(program);
        let f = analysis.units.iter().find(|unit| unit.function.name() == "f").expect("f");
        assert!(matches!(f.opaque, Some(Opaque::Landing(_))), "{to}: {:?}", f.opaque);
    }
    // A register that the unwinder finds in the frame by an expression, the frame's address in one of its cells, and a size alone.
    for (escape, opaque) in [
        ("0x10,0x3,0x2,0x76,0x70", true),
        ("0xf,0x3,0x77,0x8,0x6", true),
        ("0x2e,0x10,0xf,0x3,0x77,0x8,0x6", true),
        ("0x2e, 0x10", true),
        ("0x2e, 0x00", false),
    ] {
        let text = text.replace(".LEHB0:", &format!("\t.cfi_escape {escape}\n.LEHB0:"));
        let analysis = Analysis::new(Program::new("landing.s", text).expect("a program"));
        let f = analysis.units.iter().find(|unit| unit.function.name() == "f").expect("f");
        assert_eq!(matches!(f.opaque, Some(Opaque::Unwinding(_))), opaque, "{escape}: {:?}", f.opaque);
    }
}

fn table_of(all: &[&Tried]) -> String {
    all.iter().map(|one| format!("{one}\n")).collect()
}

/// Whether some slot of a text moves to a home of this kind.
fn moves(name: &str, text: &str, bank: Bank) -> bool {
    let program = Program::new(name, text).expect("a program");
    matches!(moved(&Analysis::new(program), bank), Ok((1.., _)))
}

#[test]
fn what_is_cleared_around_an_address_may_lie_below_it() {
    // `g` gets the first byte of its caller's object; its own slot is in the same line.
    let text = |clears: &str| {
        format!(
            ".text\n.globl f\n.type f,@function\nf: subq $88,%rsp\nmovq %rdi,%rsi\nmovq %rsp,%rdx\nleaq .Lb(%rip),%r11\njmp g\n\
             .Lb: addq $88,%rsp\nret\n.type g,@function\ng: movq %rsi,-8(%rsp)\nleaq (%rsi,%rsi),%rcx\nmovq %rdx,%rax\n{clears}\n\
             movq -8(%rsp),%rax\naddq %rcx,%rax\njmp *%r11\n"
        )
    };
    assert!(moves("nothing", &text("nop"), Bank::Xmm));
    assert!(!moves("cleared", &text("clzero"), Bank::Xmm));
}

#[test]
fn a_personality_is_called_from_outside() {
    // Named by nothing else than a call, `pers` may use MMX registers where its caller clears them.
    let text = |directive: &str| {
        format!(
            ".text\n.globl f\n.type f,@function\nf: .cfi_startproc\n{directive}\nsubq $8,%rsp\n.cfi_adjust_cfa_offset 8\n\
             call thrower\naddq $8,%rsp\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.type pers,@function\n\
             pers: movq %rdi,-8(%rsp)\nmovq -8(%rsp),%rax\nret\n.globl g\n.type g,@function\n\
             g: subq $8,%rsp\ncall pers\naddq $8,%rsp\nret\n"
        )
    };
    let entered = |directive: &str| {
        let program = Program::new("personality", text(directive).as_str()).expect("a program");
        let original = Analysis::new(program);
        moved(&original, Bank::Mm).map(|(_, made)| made.matches("emms").count())
    };
    let counts = |directive| entered(directive).unwrap_or(0);
    assert!(counts(".cfi_personality 0x1b,pers") > counts(""), "it clears before it returns to the unwinder");
}
