//! The general registers that hold a live value.
#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet};

use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, Register};

use crate::flow::{Callee, Exit, Function};
use crate::frame::{self, CALLEE_SAVED, GENERAL};
use crate::program::Program;

/// A set of general registers, a bit for each of [`GENERAL`].
pub type Set = u16;

const ALL: Set = !0;

pub(crate) fn bit(register: Register) -> Set {
    let full = register.full_register();
    GENERAL.iter().position(|&r| r == full).map_or(0, |i| 1 << i)
}

pub(crate) fn set(registers: &[Register]) -> Set {
    registers.iter().fold(0, |out, &register| out | bit(register))
}

/// The registers that an external callee may change (System V).
const CLOBBERED: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

/// The registers that carry arguments, the number of vector arguments and a static chain: all of those but the last.
const ARGUMENTS: &[Register] = CLOBBERED.split_at(8).0;

/// For each instruction, the general registers that it uses in any way, and those that are live after it.
#[derive(Clone, Debug, Default)]
pub struct Registers {
    used: HashMap<usize, Set>,
    after: HashMap<usize, Set>,
}

impl Registers {
    /// A register that `op` does not use and that is not live after it: free from before it until after it.
    #[must_use]
    pub fn free(&self, op: usize) -> Option<Register> {
        let taken = self.used.get(&op)? | self.after.get(&op)? | bit(Register::RSP);
        // Registers that need no longer encoding come first.
        GENERAL.into_iter().find(|&register| taken & bit(register) == 0)
    }

    /// Whether `op` does not use this register, and it is not live after it.
    #[must_use]
    pub fn is_free(&self, op: usize, register: Register) -> bool {
        let taken = self.used.get(&op).zip(self.after.get(&op)).map(|(used, after)| used | after);
        taken.is_some_and(|taken| (taken | bit(Register::RSP)) & bit(register) == 0)
    }
}

/// What an instruction does with general registers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Use {
    /// Registers whose values it needs, or keeps in part.
    pub(crate) read: Set,
    /// Registers that it overwrites whole.
    pub(crate) kill: Set,
    /// Registers that it names or implies.
    pub(crate) used: Set,
}

/// What an instruction does with general registers.
pub(crate) fn usage(instruction: &Instruction, info: &mut InstructionInfoFactory) -> Use {
    let mut out = Use::default();
    for register in info.info(instruction).used_registers() {
        let this = bit(register.register());
        out.used |= this;
        match register.access() {
            // A write of 8 or 16 bits keeps the rest.
            OpAccess::Write if register.register().size() >= 4 && !frame::may_keep(instruction) => {
                out.kill |= this;
            }
            OpAccess::None | OpAccess::NoMemAccess => (),
            _ => out.read |= this,
        }
    }
    out
}

/// Follows the registers of a function backwards.
///
/// A function that only outside code calls follows System V. One that this file calls (`known`) may return values in
/// any register, and its caller may rely on registers that it leaves unchanged. So all registers are live at its end,
/// and at a call to it or through a pointer.
#[must_use]
pub fn registers(program: &Program, function: &Function, known: bool) -> Registers {
    let mut info = InstructionInfoFactory::new();
    let mut out = Registers::default();
    let mut reads: HashMap<usize, Set> = HashMap::new();
    let mut kills: HashMap<usize, Set> = HashMap::new();
    for &i in &function.body {
        let Use { mut read, mut kill, used } = usage(&program.ops[i].instruction, &mut info);
        if let Some(call) = function.calls.get(&i) {
            match call.callee {
                // A pointer may lead to a function of this file with its own convention.
                Callee::Local(_) | Callee::Unknown => read = ALL,
                // The unwinder may continue in a caller, with these.
                Callee::External(_) => {
                    read |= set(ARGUMENTS) | set(&CALLEE_SAVED);
                    kill |= set(&CLOBBERED) & !read;
                }
            }
        }
        reads.insert(i, read);
        kills.insert(i, kill);
        out.used.insert(i, used);
    }
    let before = function.before();
    let mut live: HashMap<usize, Set> = HashMap::new();
    let mut todo = function.body.clone();
    let mut waiting: HashSet<usize> = todo.iter().copied().collect();
    while let Some(i) = todo.pop() {
        waiting.remove(&i);
        let mut after =
            function.next[&i].iter().fold(0, |all, next| all | live.get(next).copied().unwrap_or(0));
        if let Some(exit) = function.exits.get(&i) {
            after |= match exit {
                Exit::Return if !known => ALL & !set(&CLOBBERED) | set(&[Register::RAX, Register::RDX]),
                Exit::Stop => 0,
                _ => ALL,
            };
        }
        out.after.insert(i, after);
        let now = after & !kills[&i] | reads[&i];
        if live.insert(i, now) != Some(now) {
            for &from in before.get(&i).into_iter().flatten() {
                if waiting.insert(from) {
                    todo.push(from);
                }
            }
        }
    }
    out
}
