//! Texts that several tests rewrite.
#![allow(dead_code, reason = "each test uses a part")]

#[cfg(not(miri))]
pub(crate) mod batch;
#[cfg(not(miri))]
pub(crate) mod generator;
pub(crate) mod mutants;
#[cfg(not(miri))]
pub(crate) mod native;

/// A function with a loop, a helper that is called while values live, an operand, a constant and 4-byte values.
pub(crate) const PROGRAM: &str = "
        .text
        .globl work
work:   subq $88, %rsp
        movq %rdi, 8(%rsp)
        movq %rsi, 16(%rsp)
        movl %edx, 24(%rsp)
        movq $0, 32(%rsp)
        movq $5, 40(%rsp)
.Lnext: movq 16(%rsp), %rax
        addq %rax, 32(%rsp)
        movl 24(%rsp), %edx
        call L_mix
        addq 8(%rsp), %rdx
        movq %rdx, 16(%rsp)
        decq 40(%rsp)
        jnz .Lnext
        movq 32(%rsp), %rax
        imulq 16(%rsp), %rax
        movl 24(%rsp), %ecx
        addq %rcx, %rax
        addq $88, %rsp
        ret
L_mix:  subq $24, %rsp
        movq %rdx, 8(%rsp)
        movq %rax, (%rsp)
        rolq $7, %rdx
        xorq (%rsp), %rdx
        movq 8(%rsp), %rax
        addq %rax, %rdx
        addq $24, %rsp
        ret
";
