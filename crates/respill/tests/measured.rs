//! The basis of measuring: exact counts of executed instructions, repeated calls without other work, and controls equal
//! to the measured code.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::HashMap;

use lanework_cpu::{Cpu, Feature, Features};
use lanework_respill::case::Case;
use lanework_respill::counts::{CountError, counts, shares};
use lanework_respill::homes::Bank;
use lanework_respill::load::{Externals, Loaded};
use lanework_respill::measure::{Job, Role, Variant, unchanged, variants};
use lanework_respill::plan::{Policy, Wish, plan, weight};
use lanework_respill::slots::Class;
use lanework_respill::timed::{Code, Timed};
use lanework_respill::{Analysis, Program};

/// Adds rsi to the buffer's first word seven times, by way of the stack; puts the stack pointer into the second.
const TEXT: &str = "
        .text
        .globl work
work:   movq %rsi, -8(%rsp)
        movl $7, %ecx
1:      movq -8(%rsp), %rax
        addq %rax, (%rdi)
        decl %ecx
        jnz 1b
        movq %rsp, 8(%rdi)
        cmpq $99, %rsi
        jne 2f
        movq -8(%rsp), %rax
        ud2
2:      ret
        .globl seventh
seventh: movq 8(%rsp), %rax
        movq %rax, (%rdi)
        ret
";

fn program() -> Program {
    Program::new("work.s", TEXT).unwrap_or_else(|e| panic!("{e}"))
}

fn case(text: &str) -> Case {
    Case::parse(text).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_instruction_is_counted_as_often_as_it_ran() {
    let program = program();
    let loaded = Loaded::new(&program, &Externals::default()).expect("loaded");
    let found = counts(&loaded, &case("a = zero 16; measure work(a: inout, 5)"), 0).expect("counted");
    let of = |op: usize| found.by_op.get(&op).copied().unwrap_or(0);
    let want: Vec<u64> = [1, 1, 7, 7, 7, 7, 1, 1, 1, 0, 0, 1, 0, 0, 0].to_vec();
    assert_eq!((0..program.ops.len()).map(of).collect::<Vec<_>>(), want);
    assert_eq!(found.inside, want.iter().sum::<u64>());
    assert!(found.outside > 0, "the call itself is made outside");

    let analysis = Analysis::new(program);
    let unit = &analysis.units[0];
    assert_eq!(weight(unit, &unit.slots[0], Some(&found.by_op)), 8);
    assert_eq!(weight(unit, &unit.slots[0], Some(&HashMap::new())), 0);
    // The stack pointer is stored in the buffer, whose readers are unknown.
    let shares = shares(&analysis, &found);
    assert_eq!(shares[&Some(Class::Spill)], shares[&None]);
    assert_eq!((shares[&None].slots, shares[&None].executed, shares[&None].alone), (1, 8, 0));
    let mut twice = found.clone();
    twice.add(&found);
    assert_eq!((twice.inside, twice.by_op[&2]), (2 * found.inside, 14));
    assert!((shares[&None].share - 8.0 / 34.0).abs() < 1e-12);
}

#[test]
fn a_call_that_does_not_come_back_is_named() {
    let loaded = Loaded::new(&program(), &Externals::default()).expect("loaded");
    let error =
        counts(&loaded, &case("a = zero 16; measure work(a: inout, 99)"), 0).expect_err("it ends in ud2");
    assert!(matches!(error, CountError::Ended(_)), "{error}");
    let error = counts(&loaded, &case("measure nowhere()"), 0).expect_err("it is not there");
    assert!(matches!(error, CountError::Missing(_)), "{error}");
}

#[inline(never)]
fn words(timed: &mut Timed, turns: u64) -> [u64; 2] {
    timed.run(turns);
    let bytes = timed.contents();
    [64, 72].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a word")))
}

#[test]
fn calls_are_repeated_with_the_stack_moved() {
    let case = case("a = zero 16; measure work(a: inout, 5)");
    let timed = |shift: u64| {
        let code = Code::new("work.s", TEXT).unwrap_or_else(|e| panic!("{e}"));
        Timed::new(&code, &Externals::default(), &case, 0, shift).unwrap_or_else(|e| panic!("{e}"))
    };
    let (mut plain, mut moved) = (timed(0), timed(1024));
    let [sum, here] = words(&mut plain, 3);
    assert_eq!(sum, 3 * 7 * 5, "three calls");
    assert_eq!(words(&mut plain, 0)[0], 3 * 7 * 5, "no call");
    let [sum, there] = words(&mut moved, 1);
    assert_eq!(sum, 7 * 5);
    assert_eq!(here.wrapping_sub(there), 1024);
}

#[test]
fn arguments_beyond_six_come_on_the_stack() {
    let case = case("a = zero 16; measure seventh(a: out, 2, 3, 4, 5, 6, 77)");
    let code = Code::new("work.s", TEXT).expect("assembled");
    let mut timed = Timed::new(&code, &Externals::default(), &case, 0, 0).expect("loaded");
    assert_eq!(words(&mut timed, 2)[0], 77);
}

/// A sum over a buffer with its pointer, its length and the sum spilled.
const SUM: &str = "
        .text
        .globl sum
sum:    subq $40, %rsp
        movq %rdi, 8(%rsp)
        movl %esi, 16(%rsp)
        movq $0, 24(%rsp)
        .p2align 4
1:      movq 8(%rsp), %rax
        movq (%rax), %rcx
        addq %rcx, 24(%rsp)
        addq $8, %rax
        movq %rax, 8(%rsp)
        movl 16(%rsp), %esi
        decl %esi
        movl %esi, 16(%rsp)
        jnz 1b
        movq 24(%rsp), %rax
        movq %rax, (%rdi)
        addq $40, %rsp
        ret
        .section .note.GNU-stack,\"\",@progbits
";

fn runs_here(bank: Bank) -> bool {
    let needs = match bank {
        Bank::Mm | Bank::Xmm => Features::NONE,
        _ => Features::of(&[Feature::Avx512bw, Feature::Avx512dq, Feature::Avx512vl]),
    };
    Cpu::detect().features().includes(needs)
}

fn job(variants: Vec<Variant>) -> Job {
    Job {
        subject: "spill/sum".into(),
        file: "sum.s".into(),
        case: "a = random 64; measure sum(a: inout, 8)".into(),
        input: 0,
        variants,
    }
}

#[test]
fn every_variant_does_the_same() {
    let analysis = Analysis::new(Program::new("sum.s", SUM).expect("a program"));
    let mut all = unchanged(&analysis).to_vec();
    for bank in Bank::ALL.into_iter().filter(|bank| runs_here(*bank)) {
        let wish = Wish {
            banks: vec![(bank, None)],
            policy: Policy::Hottest,
            counts: None,
            stay: Default::default(),
            only: Default::default(),
            operands: true,
        };
        let plan = plan(&analysis, &wish);
        assert_eq!(plan.homes.len(), 3, "{bank}: {:?}", plan.stays);
        let made = variants(&analysis, bank.name(), &plan, true).unwrap_or_else(|e| panic!("{bank}: {e}"));
        let roles: Vec<Role> = made.iter().map(|v| v.role).collect();
        assert_eq!(roles[..3], [Role::Home, Role::Unwiped, Role::Placebo], "{bank}");
        assert_eq!((made[0].slots, made[0].stack_bytes), (3, 8 + 4 + 8));
        assert_eq!((made[2].slots, made[2].stack_bytes), (0, 0));
        all.extend(made);
    }
    let job = job(all).assembled();
    let case = case(&job.job.case);
    for row in job.agreement(&case, 50) {
        assert_eq!((row.same, row.different), (50, 0), "{}: {}", row.name, row.why);
    }
    for (n, variant) in job.job.variants.iter().enumerate() {
        // As in a race: many calls, and then the same bytes.
        let mut timed = job.timed(n, &case, 640).unwrap_or_else(|e| panic!("{}: {e}", variant.name));
        let mut plain = job.timed(0, &case, 0).expect("loaded");
        assert_eq!(words(&mut timed, 20), words(&mut plain, 20), "{}", variant.name);
    }
}

#[test]
fn a_variant_that_differs_or_dies_is_named() {
    let analysis = Analysis::new(Program::new("sum.s", SUM).expect("a program"));
    let [stack, copy] = unchanged(&analysis);
    let with = |name: &str, from: &str, to: &str| {
        assert!(copy.text.contains(from));
        Variant { name: name.into(), text: copy.text.replace(from, to), ..copy.clone() }
    };
    let job = job(vec![
        stack.clone(),
        with("wrong", "addq %rcx, 24(%rsp)", "subq %rcx, 24(%rsp)"),
        with("uninitialised", "movq $0, 24(%rsp)", "nop"),
        with("mmx", "movq $0, 24(%rsp)", "movq $0, 24(%rsp); movq %rax, %mm0"),
        with("dies", "movq $0, 24(%rsp)", "ud2"),
        with("lost", ".globl sum\nsum:", ".globl other\nother:"),
        copy.clone(),
        with("no-assembly", "subq $40, %rsp", "subq $40, %rspp"),
    ])
    .assembled();
    let said = job.agreement(&case(&job.job.case), 10);
    let why: Vec<(&str, u64)> = said.iter().map(|row| (row.why.as_str(), row.same)).collect();
    assert_eq!(why[0], ("input 0: byte 0 of a differs", 0));
    assert_eq!(why[1].1, 0, "stacks are filled differently: {why:?}");
    assert_eq!(why[2], ("input 0: what a callee must keep differs", 0));
    assert!(why[3].0.contains("SIGILL (illegal instruction)"), "{why:?}");
    assert!(why[4].0.contains("no function `sum`"), "{why:?}");
    assert_eq!(why[5], ("", 10));
    assert!(why[6].0.starts_with("sum.s:4: "), "{why:?}");
}
