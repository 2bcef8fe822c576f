//! What measuring rests on: exact counts of executed instructions, calls that are repeated and nothing else, and controls that do the
//! same as what they control.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::HashMap;

use lanework_respill::case::Case;
use lanework_respill::counts::{CountError, counts, shares};
use lanework_respill::load::{Externals, Loaded};
use lanework_respill::plan::weight;
use lanework_respill::slots::Class;
use lanework_respill::timed::Timed;
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
    let shares = shares(&analysis, &found);
    assert_eq!(shares[&Some(Class::Spill)], shares[&None]);
    assert_eq!((shares[&None].slots, shares[&None].executed), (1, 8));
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
        Timed::new("work.s", TEXT, &Externals::default(), &case, 0, shift).unwrap_or_else(|e| panic!("{e}"))
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
    let mut timed = Timed::new("work.s", TEXT, &Externals::default(), &case, 0, 0).expect("loaded");
    assert_eq!(words(&mut timed, 2)[0], 77);
}
