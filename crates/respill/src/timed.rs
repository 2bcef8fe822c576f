//! A case's call, repeated for timing.
//!
//! The loop around the call is generated assembly, loaded like the program itself: it loads the arguments, calls and
//! counts. Before the first call it lowers the stack pointer by a given amount, since the place of a frame can change a
//! function's time.
#![forbid(unsafe_code)]

use core::fmt;
use std::sync::OnceLock;

use crate::assembler::{self, AssembleError};
use crate::case::{Arena, Case, Missing};
use crate::load::{Externals, LoadError, Loaded};
use crate::program::{ProgramError, Why};
use crate::sys;
use crate::text::Text;

/// Calls rdi with the twelve arguments at rsi, rdx times, with the stack pointer rcx bytes further down.
const LOOP: &str = "
        .text
        .globl lanework_repeat
        .type lanework_repeat, @function
        .p2align 6
lanework_repeat:
        pushq %rbp
        movq %rsp, %rbp
        pushq %rbx
        pushq %r12
        pushq %r13
        pushq %r14
        subq %rcx, %rsp
        andq $-64, %rsp
        subq $64, %rsp
        movq %rdi, %r12
        movq %rsi, %r13
        movq %rdx, %rbx
        testq %rbx, %rbx
        jz 2f
        .p2align 6
1:      movq 48(%r13), %rax
        movq 56(%r13), %rcx
        movq %rax, (%rsp)
        movq %rcx, 8(%rsp)
        movq 64(%r13), %rax
        movq 72(%r13), %rcx
        movq %rax, 16(%rsp)
        movq %rcx, 24(%rsp)
        movq 80(%r13), %rax
        movq 88(%r13), %rcx
        movq %rax, 32(%rsp)
        movq %rcx, 40(%rsp)
        movq (%r13), %rdi
        movq 8(%r13), %rsi
        movq 16(%r13), %rdx
        movq 24(%r13), %rcx
        movq 32(%r13), %r8
        movq 40(%r13), %r9
        xorl %eax, %eax
        call *%r12
        decq %rbx
        jnz 1b
2:      leaq -32(%rbp), %rsp
        popq %r14
        popq %r13
        popq %r12
        popq %rbx
        popq %rbp
        ret
        .section .note.GNU-stack,\"\",@progbits
";

/// Why a call cannot be timed.
#[derive(Debug)]
#[non_exhaustive]
pub enum TimedError {
    /// The text is not a program.
    Program(ProgramError),
    /// It cannot be loaded.
    Load(LoadError),
    /// It lacks the called function.
    Missing(Missing),
}

impl fmt::Display for TimedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimedError::Program(e) => e.fmt(f),
            TimedError::Load(e) => e.fmt(f),
            TimedError::Missing(e) => e.fmt(f),
        }
    }
}

impl core::error::Error for TimedError {}

impl From<ProgramError> for TimedError {
    fn from(e: ProgramError) -> TimedError {
        TimedError::Program(e)
    }
}

impl From<LoadError> for TimedError {
    fn from(e: LoadError) -> TimedError {
        TimedError::Load(e)
    }
}

impl From<Missing> for TimedError {
    fn from(e: Missing) -> TimedError {
        TimedError::Missing(e)
    }
}

/// An assembled text, to be loaded any number of times.
///
/// Assembling takes as long as a hundred calls; a race has a limited time, so this comes before it.
#[derive(Clone, Debug)]
pub struct Code {
    object: Vec<u8>,
}

/// The object of the loop, assembled once.
static AROUND: OnceLock<Code> = OnceLock::new();

impl Code {
    /// Assembles a text. `file` is its name, for messages.
    ///
    /// # Errors
    /// [`TimedError`].
    pub fn new(file: &str, text: &str) -> Result<Code, TimedError> {
        let fail = |line: Option<usize>, why: Why| ProgramError { file: file.to_owned(), line, why };
        let text = Text::new(text).map_err(|e| fail(Some(e.line()), Why::Text(e)))?;
        let object = assembler::plain_object(&text).map_err(|e| {
            // Nothing is added to the text, so that the assembler's lines are its own.
            let line = if let AssembleError::Refused { line, .. } = &e { *line } else { None };
            fail(line, Why::Assemble(e))
        })?;
        Ok(Code { object })
    }

    fn around() -> Result<&'static Code, TimedError> {
        match AROUND.get() {
            Some(code) => Ok(code),
            None => Code::new("the loop around calls", LOOP).map(|code| AROUND.get_or_init(|| code)),
        }
    }

    /// In this process.
    ///
    /// # Errors
    /// [`TimedError`].
    pub(crate) fn loaded(&self, externals: &Externals) -> Result<Loaded, TimedError> {
        Ok(Loaded::object(&self.object, externals)?)
    }
}

/// A program with its own buffers, ready to be called repeatedly.
#[derive(Debug)]
pub struct Timed {
    // The program must outlive the calls: fields are dropped in this order.
    around: Loaded,
    program: Loaded,
    arena: Arena,
    function: u64,
    arguments: Box<[u64; sys::ARGUMENTS]>,
    shift: u64,
}

/// The most that the stack pointer is moved.
pub const MOST_SHIFT: u64 = 3072;

impl Timed {
    /// Loads a text, prepares the case's input of this number, and will call with the stack pointer `shift` bytes further down, at
    /// most [`MOST_SHIFT`], in steps of 64.
    ///
    /// # Errors
    /// [`TimedError`].
    pub fn new(
        code: &Code,
        externals: &Externals,
        case: &Case,
        input: u64,
        shift: u64,
    ) -> Result<Timed, TimedError> {
        let around = Code::around()?.loaded(externals)?;
        let program = code.loaded(externals)?;
        let mut arena = case.arena();
        let ready = case.prepare(&program, &mut arena, input)?;
        let mut arguments = Box::new([0; sys::ARGUMENTS]);
        arguments[..ready.arguments().len()].copy_from_slice(ready.arguments());
        let shift = shift.min(MOST_SHIFT);
        Ok(Timed { around, program, arena, function: ready.function, arguments, shift })
    }

    /// Makes the call `turns` times. The foreign code runs in this process; it has already passed its checks in a child.
    pub fn run(&mut self, turns: u64) {
        let (function, arguments) = (self.function, self.arguments.as_ptr() as u64);
        debug_assert!(self.program.code().contains(&function));
        if let Some(repeat) = self.around.symbol("lanework_repeat") {
            let _ = sys::call(repeat, &[function, arguments, turns, self.shift], &[]);
        }
    }

    /// The buffers as the calls left them.
    #[must_use]
    pub fn contents(&self) -> &[u8] {
        self.arena.contents()
    }
}
