//! Edits of correct rewrites, each of which breaks one obligation, are refused without an input.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#![forbid(unsafe_code)]

mod common;

use common::PROGRAM;
use common::mutants::{CYCLES, PATHS, mutants};
use common::native::wish;
use lanework_respill::homes::Bank;
use lanework_respill::plan;
use lanework_respill::rewrite::{self, Options as Rewriting};
use lanework_respill::validate::{Failure, Options, validate};
use lanework_respill::{Analysis, Program};

fn analysed(text: &str) -> Analysis {
    Analysis::new(Program::new("test.s", text).unwrap_or_else(|e| panic!("{e}")))
}

/// Whether a text is accepted as a rewrite without an input; one that does not assemble is not.
fn accepted(original: &Analysis, text: &str) -> Result<(), String> {
    let other = Program::new("rewritten.s", text).map_err(|e| e.to_string())?;
    match validate(original, &other, &[], &Options::default()) {
        Ok(_) => Ok(()),
        Err(Failure::Refused(refused)) => Err(refused.to_string()),
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn no_edit_of_a_right_rewrite_is_accepted() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for text in [PROGRAM, PATHS, CYCLES] {
        let original = analysed(text);
        for bank in Bank::ALL {
            let plan = plan::plan(&original, &wish(bank));
            // Masks do not outlive the call of outside code.
            if text == PATHS && bank == Bank::ZmmLane {
                assert!(plan.homes.is_empty());
                continue;
            }
            // Nor do they outlive an entry of the function itself.
            if text == CYCLES && bank == Bank::ZmmLane {
                assert_eq!(plan.homes.len(), 1);
                continue;
            }
            assert!(plan.homes.len() >= 3, "{bank}: {:?}", plan.stays);
            let right = rewrite::rewrite(&original, &plan, Rewriting::default()).expect("rewritten").text;
            accepted(&original, &right).unwrap_or_else(|why| panic!("{bank}: {why}\n{right}"));
            for (what, mutant) in mutants(&right) {
                tried += 1;
                if accepted(&original, &mutant).is_ok() {
                    wrong.push(format!("{bank}: {what}"));
                }
            }
        }
    }
    println!("{tried} edits");
    assert!(wrong.is_empty(), "{} of {tried} were accepted:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried >= 200, "{tried}");
}

/// `f` calls a helper that goes to `memset`, and `part` jumps to one.
const ON_THE_WAY: &str = "
        .globl f, g
f:      subq $24, %rsp
        movq %rdi, 8(%rsp)
        movq 8(%rsp), %rax
        call helper
        addq $24, %rsp
        ret
g:      subq $8, %rsp
        call part
        call inside
        call helper
        addq $8, %rsp
        ret
part:   movq %rdi, -8(%rsp)
        movq -8(%rsp), %rax
        jmp inside
inside: ret
helper: subq $8, %rsp
        movl $8, %edx
        call memset
        addq $8, %rsp
        ret
";

#[test]
fn mmx_is_freed_on_the_way_to_code_outside() {
    let original = analysed(ON_THE_WAY);
    let plan = plan::plan(&original, &wish(Bank::Mm));
    assert_eq!(plan.homes.len(), 2, "{:?}", plan.stays);
    let text = rewrite::rewrite(&original, &plan, Rewriting::default()).expect("rewritten").text;
    accepted(&original, &text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    for way in ["call helper", "jmp inside"] {
        let freed = format!("emms\n\t{way}");
        assert!(text.contains(&freed), "{way}: {text}");
        let refused = accepted(&original, &text.replacen(&freed, way, 1)).expect_err(way);
        assert!(refused.contains("no emms since"), "{refused}");
    }
}

/// `f` keeps two values over a change of section in the text.
const PARTED: &str = "
        .globl f
f:      movq %rdi, -8(%rsp)
        movq %rsi, -16(%rsp)
        leaq 1(%rsi), %rax
        .section .text.other, \"ax\", @progbits
        .text
        addq -8(%rsp), %rax
        addq -16(%rsp), %rax
        ret
";

#[test]
fn a_move_that_does_not_run_or_clears_more_is_refused() {
    let original = analysed(PARTED);
    let rewritten = |bank: Bank| {
        let plan = plan::plan(&original, &wish(bank));
        assert_eq!(plan.homes.len(), 2, "{:?}", plan.stays);
        let text = rewrite::rewrite(&original, &plan, Rewriting::default()).expect("rewritten").text;
        accepted(&original, &text).unwrap_or_else(|why| panic!("{why}\n{text}"));
        text
    };
    let (lanes, vectors) = (rewritten(Bank::ZmmLane), rewritten(Bank::Xmm));
    for (text, from, to) in [
        // A shorter register's move clears the lanes above; a masked shift keeps what was in the lowest lane.
        (&lanes, "%zmm16{%k1}", "%ymm16{%k1}"),
        (&lanes, "%zmm16{%k2}", "%xmm16{%k2}"),
        (&lanes, "%zmm16, %zmm31", "%zmm16, %zmm31{%k1}"),
        // In another section it does not run.
        (&vectors, ".text\n        movq\t%xmm14, %rcx", "movq\t%xmm14, %rcx\n\t.text"),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let mutant = text.replacen(from, to, 1);
        assert!(accepted(&original, &mutant).is_err(), "{mutant}");
    }
}

/// The right rewrite is accepted, and the wrong one refused for this reason.
#[track_caller]
fn apart(original: &str, right: &str, wrong: &str, reason: &str) {
    let original = analysed(original);
    accepted(&original, right).unwrap_or_else(|why| panic!("{why}\n{right}"));
    let why = accepted(&original, wrong).expect_err(wrong);
    assert!(why.contains(&format!("refused ({reason})")), "{why}\n{wrong}");
}

/// The making of a lane's mask.
const MASK: &str = "kxnorb %k1, %k1, %k1\n kshiftrb $7, %k1, %k1\n kshiftlb $1, %k1, %k1\n";
/// A value in a lane: its store and its load.
const LANE: [&str; 2] =
    ["vpbroadcastq %rdi, %zmm16{%k1}", "valignq $1, %zmm16, %zmm16, %zmm31\n vmovq %xmm31, %rax"];
const STACK: [&str; 2] = ["movq %rdi, -8(%rsp)", "movq -8(%rsp), %rax"];

#[test]
fn a_jump_to_a_numbered_label_skips_what_lies_before_it() {
    let text = |store: &str, before: &str, behind: &str, add: &str| {
        format!(
            ".globl f\nf: {store}\n movl $1f, %eax\n jmp *%rax\n {before}\n1: {behind}\n {add}\n movq %rsi, %rax\n \
             xorl %ecx, %ecx\n ret\n"
        )
    };
    let (put, take, add) = ("movq %rdi, %xmm15", "movq %xmm15, %rcx", "addq %rcx, %rsi");
    let original = text(STACK[0], "", "", "addq -8(%rsp), %rsi");
    apart(&original, &text(put, "", take, add), &text(put, take, "", add), "target");
}

#[test]
fn a_jump_to_a_place_without_a_label_skips_what_lies_before_it() {
    // Behind a store of eight bytes, and where that has four, behind four more.
    let text = |put: &str, before: &str, add: &str, end: &str| {
        format!(
            ".globl f\nf: subq $152, %rsp\n {put}\n movl $.+20, %eax\n testq %rdx, %rdx\n je .Lx\n jmp *%rax\n\
             .Lx: {before}\n {put}\n {add}\n movq %rsi, %rax\n xorl %ecx, %ecx\n addq $152, %rsp\n {end}\n ret\n"
        )
    };
    let (put, add) = ("movq %rdi, %mm0", "movq %mm0, %rcx\n addq %rcx, %rsi");
    let original = text("movq %rdi, 136(%rsp)", "", "addq 136(%rsp), %rsi", "");
    apart(&original, &text(put, "emms\n emms", add, "emms"), &text(put, "", add, "emms"), "target");
}

#[test]
fn a_pointer_to_a_numbered_label_skips_what_lies_before_it() {
    let text = |before: &str, behind: &str, [store, load]: [&str; 2]| {
        format!(
            ".globl f\nf: ret\n {before}\n1: {behind}\n {store}\n {load}\n ret\n.section .rodata\n.globl t\nt: .quad 1b\n"
        )
    };
    apart(&text("", "", STACK), &text("", MASK, LANE), &text(MASK, "", LANE), "home-clobbered");
}

#[test]
fn a_distance_to_a_numbered_label_skips_what_lies_before_it() {
    // Another file calls by `t`. Its entry is also the distance of `.La` from `.Lt`, and in the wrong text, where the mask's 16 bytes
    // lie before the label, that of `.Lb`.
    let text = |before: &str, behind: &str, [store, load]: [&str; 2]| {
        let filled = "nopl (%rax,%rax)\n".repeat(4);
        format!(
            ".globl f\nf: ret\n.La: {filled}.Lb: {before}\n1: {behind}\n {store}\n {load}\n ret\n.section .rodata\n\
             .Lt: .long .La-.Lt\n.long .Lb-.Lt\n.quad 0\n.globl t\nt: .long 1b-t\n"
        )
    };
    apart(&text("", "", STACK), &text("", MASK, LANE), &text(MASK, "", LANE), "home-clobbered");
}

#[test]
fn code_outside_that_enters_in_the_middle_has_made_no_mask() {
    let text = |before: &str, behind: &str, [store, load]: [&str; 2]| {
        format!(
            ".globl f\nf: movq %rdi, %rcx\n {before}\n.L5: {behind}\n {store}\n {load}\n ret\n.section .rodata\n.globl t\n\
             t: .quad .L5\n"
        )
    };
    apart(&text("", "", STACK), &text("", MASK, LANE), &text(MASK, "", LANE), "home-clobbered");
}

#[test]
fn blanks_between_quotes_count() {
    let text = |[store, load]: [&str; 2], rest: &str| {
        format!(
            ".globl f\nf: .cfi_startproc\n {store}\n leaq 1(%rdi), %rdi\n {load}\n ret\n{rest}\n.cfi_endproc\n"
        )
    };
    let xmm = ["movq %rdi, %xmm15", "movq %xmm15, %rax"];
    let table = |said: &str| format!(".section .gcc_except_table,\"a\"\n{said}\n.text");
    let names = |name: &str| {
        format!(".globl {name}\n\"g  1\": ret\n\"g 1\": ret\na\u{a0}\u{a0}b: ret\na\u{a0}b: ret")
    };
    for (one, other) in [
        (names("\"g  1\""), names("\"g 1\"")),
        (names("a\u{a0}\u{a0}b"), names("a\u{a0}b")),
        (table(".ascii \"a  b\""), table(".ascii \"a b\"")),
        (table(".ascii \"a\\\"  b\""), table(".ascii \"a\\\" b\"")),
        (table(".byte '\t"), table(".byte ' ")),
        (".cfi_personality 0x9b,\"h  1\"".to_owned(), ".cfi_personality 0x9b,\"h 1\"".to_owned()),
        ("\"g  1\": ret".to_owned(), "\"g 1\": ret".to_owned()),
    ] {
        apart(&text(STACK, &one), &text(xmm, &one), &text(xmm, &other), "directive");
    }
    // Elsewhere they do not.
    let [one, other] = [".p2align 4\n.byte 1, 2", ".p2align\t 4\n.byte\t1,  2"];
    accepted(&analysed(&text(STACK, one)), &text(xmm, other)).expect("accepted");
}
