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
