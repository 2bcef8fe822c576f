//! Programs in this process: references of all kinds, arguments, the state after a call, and crashes that stay in a
//! child.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![forbid(unsafe_code)]

use std::time::Duration;

use lanework_respill::Program;
use lanework_respill::case::{Case, Stream, poison};
use lanework_respill::load::{Externals, LoadError, Loaded};
use lanework_respill::sys::{self, Ended};

fn loaded(text: &str) -> Loaded {
    let program = Program::new("test.s", text).unwrap_or_else(|e| panic!("{e}"));
    Loaded::new(&program, &Externals::default()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn references_of_all_kinds_are_filled_in() {
    let program = Program::new(
        "test.s",
        "
        .text
        .globl sum
sum:    leaq table(%rip), %rax
        movq (%rax), %rax               # of the constants
        addq counter(%rip), %rax        # of the data
        movq counter@GOTPCREL(%rip), %rcx
        addq $1, (%rcx)
        addq blank(%rip), %rax
        movslq %edi, %rdi
        jmp *ways(,%rdi,8)              # an absolute address of 32 bits, and addresses of 64 in the table
.L0:    addq $1000, %rax
        ret
.L1:    addq $2000, %rax
        ret
        .globl length
length: subq $8, %rsp
        call strlen@PLT
        addq $8, %rsp
        ret
        .section .rodata
        .balign 32
table:  .quad 5
ways:   .quad .L0, .L1
        .data
counter: .quad 70
        .bss
        .balign 8
blank:  .zero 8
",
    )
    .unwrap();
    let loaded = Loaded::new(&program, &Externals::default()).unwrap();
    let sum = loaded.symbol("sum").unwrap();
    let call = |way: u64| sys::call(sum, &[way], &[]).result;
    assert_eq!([call(0), call(1), call(0)], [1075, 2076, 1077]);
    for op in 0..program.ops.len() {
        assert_eq!(loaded.op_at(loaded.address_of(op)), Some(op));
    }
    assert_eq!(loaded.op_at(sum), Some(0));
    let text = b"fourteen bytes\0";
    let length = loaded.symbol("length").unwrap();
    assert_eq!(sys::call(length, &[text.as_ptr() as u64], &poison(1)).result, 14);
}

#[test]
fn what_cannot_be_loaded_is_named() {
    let refused = |text: &str| {
        let program = Program::new("test.s", text).unwrap();
        Loaded::new(&program, &Externals::default()).expect_err("refused")
    };
    assert!(
        matches!(refused("f: call no_such_function_here\nret\n"), LoadError::Undefined(n) if n == "no_such_function_here")
    );
    assert!(matches!(
        refused("f: movq %fs:mine@tpoff, %rax\nret\n.section .tbss,\"awT\",@nobits\nmine: .zero 8\n"),
        LoadError::Reference { .. } | LoadError::Undefined(_)
    ));
}

#[test]
fn twelve_arguments_and_what_a_call_leaves() {
    let loaded = loaded(
        "
        .globl f, bad, mmx
f:      leaq (%rdi,%rsi,2), %rax
        leaq (%rax,%r9,4), %rax
        addq 8(%rsp), %rax
        addq 48(%rsp), %rax
        ret
bad:    movl $3, %ebx
        ret
mmx:    movq %rdi, %mm3
        ret
",
    );
    let f = loaded.symbol("f").unwrap();
    let got = sys::call(f, &[1, 10, 0, 0, 0, 100, 1000, 0, 0, 0, 0, 10000], &[]);
    assert_eq!(got.result, 1 + 20 + 400 + 1000 + 10000);
    assert!(got.kept && got.x87_empty && got.float == [4.5, 4.5]);
    assert!(!sys::call(loaded.symbol("bad").unwrap(), &[], &[]).kept);
    let got = sys::call(loaded.symbol("mmx").unwrap(), &[7], &[]);
    assert!(!got.x87_empty && got.float[0] == 4.5 && got.float[1].is_nan(), "{got:?}");
    // The next call is correct again.
    assert_eq!(sys::call(f, &[1], &[]).float, [4.5, 4.5]);
}

#[test]
fn cases_prepare_call_and_poison() {
    let loaded = loaded(
        "
        .globl put, work, stale
put:    movq %rsi, (%rdi)
        ret
work:   movq (%rsi), %rax
        addq %rdx, %rax
        movq %rax, (%rdi)
        jmp randombytes_here
randombytes_here:
        leaq 8(%rdi), %rdi
        movl $8, %esi
        jmp randombytes
stale:  movq -200000(%rsp), %rax
        ret
",
    );
    let case = Case::parse("call put(in: out 8, 0x55); measure work(o: out 16, in, 17)").unwrap();
    let mut arena = case.arena();
    let run = |arena: &mut _, input| {
        let ready = case.prepare(&loaded, arena, input).unwrap();
        let _ = ready.call(&[]);
        let (_, range) = case.written().find(|(name, _)| *name == "o").unwrap();
        arena.contents()[range].to_vec()
    };
    let one = run(&mut arena, 1);
    assert_eq!(one[..8], 0x66u64.to_le_bytes());
    assert_eq!(run(&mut arena, 1), one);
    assert_ne!(run(&mut arena, 2)[8..], one[8..], "other random bytes");
    let stale = loaded.symbol("stale").unwrap();
    assert_ne!(sys::call(stale, &[], &poison(1)).result, sys::call(stale, &[], &poison(2)).result);
    let missing = Case::parse("measure gone()").unwrap();
    assert_eq!(missing.prepare(&loaded, &mut missing.arena(), 0).unwrap_err().0, "gone");
    assert_ne!(Stream::new(1).word(), Stream::new(2).word());
}

#[test]
fn a_crash_stays_in_its_child() {
    let loaded = loaded("f: movl $1, 8\nret\ng: jmp g\n");
    let (f, g) = (loaded.symbol("f").unwrap(), loaded.symbol("g").unwrap());
    let (said, ended) = sys::child(Duration::from_secs(20), |voice| {
        voice.say(b"before");
        let _ = sys::call(f, &[], &[]);
        voice.say(b"after");
    })
    .unwrap();
    assert_eq!((&said[..], ended), (&b"before"[..], Ended::Signal(11)));
    let (_, ended) = sys::child(Duration::from_millis(100), |_| {
        let _ = sys::call(g, &[], &[]);
    })
    .unwrap();
    assert_eq!(ended, Ended::TimedOut);
    let (said, ended) = sys::child(Duration::from_secs(20), |voice| voice.say(&vec![7; 1 << 20])).unwrap();
    assert_eq!((said.len(), ended), (1 << 20, Ended::Done));
}
