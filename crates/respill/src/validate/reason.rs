//! Why a rewrite is refused, by name and place.
#![forbid(unsafe_code)]

use core::fmt;

use iced_x86::Register;
use serde::Serialize;

use crate::analysis::Analysis;
use crate::homes::Home;
use crate::program::Program;

/// An instruction of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, counted from 1; 0 if the code belongs to no known file.
    pub line: usize,
    /// The text of the instruction.
    pub said: String,
}

impl Place {
    /// The place of an instruction of a program.
    #[must_use]
    pub fn of(program: &Program, op: usize) -> Place {
        let line = program.line(op);
        Place { file: program.file.clone(), line, said: program.said(op).to_owned() }
    }

    /// Code outside the program.
    #[must_use]
    pub fn outside(address: u64) -> Place {
        Place { file: format!("other code at {address:#x}"), line: 0, said: String::new() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.write_str(&self.file);
        }
        let said: Vec<&str> = self.said.split_whitespace().collect();
        write!(f, "{}:{}: `{}`", self.file, self.line, said.join(" "))
    }
}

/// A slot's name for messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotName {
    /// Its function's number and its own, as the analysis counts.
    pub key: (usize, usize),
    /// The function.
    pub function: String,
    /// Bytes from the stack pointer at the function's entry, or from where that was aligned.
    pub offset: i64,
}

impl SlotName {
    /// The name of a slot of an analysis.
    #[must_use]
    pub fn of(analysis: &Analysis, key: (usize, usize)) -> SlotName {
        let unit = &analysis.units[key.0];
        SlotName { key, function: unit.function.name().to_owned(), offset: unit.slots[key.1].address.offset }
    }
}

impl fmt::Display for SlotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the slot at {} of {}", self.offset, self.function)
    }
}

/// Why a rewrite is refused.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The two texts differ in a label or a directive.
    Directive {
        /// The original's text there; `None` at its end.
        original: Option<String>,
        /// The rewritten file.
        file: String,
        /// Its line, 0 at its end.
        line: usize,
    },
    /// The file is too large to be analysed: its functions share too many instructions, or have too many cells, jumps or moved slots.
    Large(String),
    /// A condition of the text, or a number for the unwinder, is not made of constants: it may depend on the length of the code.
    NotConstant(Place),
    /// A symbol is not the same in the two objects: its place, its value, its size or who sees it.
    Symbol(String),
    /// An instruction of the original is missing.
    Missing(Place),
    /// An instruction was changed or added, but not as a move to or from a home.
    Unexplained(Place),
    /// A changed or added instruction changes other flags than before.
    FlagsChanged(Place),
    /// A jump goes somewhere else than before.
    Target(Place),
    /// An instruction, or what follows it, is not the same in the two objects although the text is: a constant depends on the
    /// length of the code.
    Decoded(Place),
    /// The data of the two objects differ.
    Data,
    /// A move has another width than the slot.
    Width(SlotName, Place),
    /// A register that may be live is used on the way.
    Borrowed(Register, Place),
    /// A value is taken from its home and not returned, or put there and not taken.
    HalfMoved(SlotName, Place),
    /// A slot was moved for some of its uses only: this one still names it.
    Partly(SlotName, Place),
    /// A slot has one home here and another there.
    TwoHomes(SlotName, [Home; 2]),
    /// The function cannot be analysed.
    Opaque(SlotName, String),
    /// It is not a spilled value: its bytes are used in parts, or the caller's unwinder needs them.
    NoSpill(SlotName, crate::slots::Class),
    /// Something else touches the slot's bytes.
    Aliased {
        /// The slot.
        slot: SlotName,
        /// What touches it.
        by: Place,
        /// Whether it writes; else it reads.
        writes: bool,
    },
    /// The slot is read on a path without a store.
    LoadBeforeStore(SlotName, Place),
    /// Another instruction writes the home while the value is live.
    HomeClobbered {
        /// The slot.
        slot: SlotName,
        /// Its home.
        home: Home,
        /// The instruction, or the call.
        at: Place,
        /// The callee that does it.
        callee: Option<String>,
    },
    /// A caller or a callee of the function uses the home by itself.
    HomeTaken {
        /// The slot.
        slot: SlotName,
        /// The instruction that does.
        at: Place,
        /// The home and its user, in words.
        why: String,
    },
    /// The value lives across a call to code that is not in the file.
    AcrossUnknown(SlotName, Place),
    /// The assembler refuses the text with the slot moved: code that grows leaves a place out of reach, or a register is not allowed there.
    NotAssembled(SlotName, String),
    /// MMX is left in use where floating point must be free to begin.
    MissingEmms {
        /// The return, jump or call.
        at: Place,
        /// The MMX instruction before it.
        after: Place,
    },
    /// An x87 instruction while MMX is in use.
    X87WhileMmx {
        /// The x87 instruction.
        at: Place,
        /// The MMX instruction before it.
        after: Place,
    },
    /// Only a run of this instruction shows whether something else touches the slot, and it never ran.
    NeverRan(SlotName, Place),
    /// Only a run can decide, and there was no case to run.
    NotRun(SlotName),
    /// The versions ran differently.
    Diverged {
        /// Instructions compared before.
        step: u64,
        /// The difference, in words.
        what: String,
        /// The last instruction of the original before it.
        original: Place,
        /// Its counterpart in the other version.
        rewritten: Place,
        /// The input.
        input: u64,
    },
    /// The versions gave different results.
    Results {
        /// The input.
        input: u64,
        /// The result: a buffer and byte, or a register.
        what: String,
    },
    /// The original's own results depend on old stack contents.
    OriginalDepends {
        /// The input.
        input: u64,
        /// Which result.
        what: String,
    },
    /// A version crashed or did not end.
    Crashed {
        /// Whether it is the rewritten one.
        rewritten: bool,
        /// How, in words.
        how: String,
        /// The input.
        input: u64,
    },
}

impl Reason {
    /// A short name, for tables and tests.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Reason::Directive { .. } => "directive",
            Reason::Large(_) => "large",
            Reason::NotConstant(_) => "not-constant",
            Reason::Symbol(_) => "symbol",
            Reason::Missing(_) => "missing",
            Reason::Unexplained(_) => "unexplained",
            Reason::FlagsChanged(_) => "flags-changed",
            Reason::Target(_) => "target",
            Reason::Decoded(_) => "decoded",
            Reason::Data => "data",
            Reason::Width(..) => "width",
            Reason::Borrowed(..) => "borrowed",
            Reason::HalfMoved(..) => "half-moved",
            Reason::Partly(..) => "partly",
            Reason::TwoHomes(..) => "two-homes",
            Reason::Opaque(..) => "opaque",
            Reason::NoSpill(..) => "no-spill",
            Reason::Aliased { .. } => "aliased",
            Reason::LoadBeforeStore(..) => "load-before-store",
            Reason::HomeClobbered { .. } => "home-clobbered",
            Reason::HomeTaken { .. } => "home-taken",
            Reason::AcrossUnknown(..) => "across-unknown",
            Reason::NotAssembled(..) => "not-assembled",
            Reason::MissingEmms { .. } => "missing-emms",
            Reason::X87WhileMmx { .. } => "x87-while-mmx",
            Reason::NeverRan(..) => "never-ran",
            Reason::NotRun(_) => "not-run",
            Reason::Diverged { .. } => "diverged",
            Reason::Results { .. } => "results",
            Reason::OriginalDepends { .. } => "original-depends",
            Reason::Crashed { .. } => "crashed",
        }
    }

    /// Whether another home may do, since the slot itself is not at fault.
    #[must_use]
    pub const fn is_of_home(&self) -> bool {
        matches!(
            self,
            Reason::HomeClobbered { .. }
                | Reason::HomeTaken { .. }
                | Reason::MissingEmms { .. }
                | Reason::X87WhileMmx { .. }
        )
    }

    /// The slot that should have stayed, if one slot is at fault.
    #[must_use]
    pub const fn slot(&self) -> Option<&SlotName> {
        match self {
            Reason::Width(slot, _)
            | Reason::HalfMoved(slot, _)
            | Reason::Partly(slot, _)
            | Reason::TwoHomes(slot, _)
            | Reason::Opaque(slot, _)
            | Reason::NoSpill(slot, _)
            | Reason::Aliased { slot, .. }
            | Reason::LoadBeforeStore(slot, _)
            | Reason::HomeClobbered { slot, .. }
            | Reason::HomeTaken { slot, .. }
            | Reason::AcrossUnknown(slot, _)
            | Reason::NotAssembled(slot, _)
            | Reason::NeverRan(slot, _)
            | Reason::NotRun(slot) => Some(slot),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Directive { original: None, file, line } => {
                write!(f, "{file}:{line}: a statement after the end of the original")
            }
            Reason::Directive { original: Some(original), file, line: 0 } => {
                write!(f, "{file}: ends before `{original}`, which the original has")
            }
            Reason::Directive { original: Some(original), file, line } => {
                write!(f, "{file}:{line}: is not `{original}`, as in the original")
            }
            Reason::Large(file) => {
                write!(
                    f,
                    "{file}: has too many shared instructions, cells, jumps or moved slots to be followed"
                )
            }
            Reason::NotConstant(at) => {
                write!(f, "{at}: is not made of constants, and may depend on the length of the code")
            }
            Reason::Symbol(name) => write!(f, "`{name}` is not the same symbol in both objects"),
            Reason::Missing(at) => write!(f, "{at}: has no counterpart in the rewritten text"),
            Reason::Unexplained(at) => write!(f, "{at}: is not a move to or from a home"),
            Reason::FlagsChanged(at) => write!(f, "{at}: changes other flags than the original does there"),
            Reason::Decoded(at) => write!(f, "{at}: is not the same in both objects"),
            Reason::Data => {
                f.write_str("the data of the two objects differ: some depend on the length of the code")
            }
            Reason::Target(at) => write!(f, "{at}: goes somewhere else than in the original"),
            Reason::Width(slot, at) => write!(f, "{at}: moves a different width than {slot} has"),
            Reason::Borrowed(register, at) => {
                let register = format!("{register:?}").to_ascii_lowercase();
                write!(f, "{at}: goes through {register}, which may still be needed")
            }
            Reason::HalfMoved(slot, at) => {
                write!(f, "{at}: {slot} is not both taken from its home and put back")
            }
            Reason::Partly(slot, at) => write!(f, "{at}: still names {slot}, which has moved elsewhere"),
            Reason::TwoHomes(slot, [one, two]) => write!(f, "{slot} lives in {one} here and in {two} there"),
            Reason::Opaque(slot, why) => write!(f, "{slot}: its function cannot be followed ({why})"),
            Reason::NoSpill(slot, class) => write!(f, "{slot} holds no spilled value ({})", class.name()),
            Reason::Aliased { slot, by, writes } => {
                write!(f, "{by}: {} the bytes of {slot}", if *writes { "writes" } else { "reads" })
            }
            Reason::LoadBeforeStore(slot, at) => write!(f, "{at}: {slot} is read before it is stored"),
            Reason::HomeClobbered { slot, home, at, callee: Some(callee) } => {
                write!(f, "{at}: {callee} changes {home} while {slot} lives there")
            }
            Reason::HomeClobbered { slot, home, at, callee: None } => {
                write!(f, "{at}: changes {home} while {slot} lives there")
            }
            Reason::HomeTaken { slot, at, why } => write!(f, "{at}: {why}; {slot} lives there"),
            Reason::AcrossUnknown(slot, at) => write!(f, "{at}: unknown code is called while {slot} lives"),
            Reason::NotAssembled(slot, why) => write!(f, "{slot}: its function does not assemble: {why}"),
            Reason::MissingEmms { at, after } => {
                write!(f, "{at}: no emms since {after}: the next x87 instruction gives NaN")
            }
            Reason::X87WhileMmx { at, after } => write!(f, "{at}: x87 while MMX is in use since {after}"),
            Reason::NeverRan(slot, at) => write!(f, "{at}: may touch {slot}, and never ran"),
            Reason::NotRun(slot) => {
                write!(f, "{slot}: only a run can show what touches it, and none was given")
            }
            Reason::Diverged { step, what, original, rewritten, input } => {
                write!(f, "{rewritten} against {original}: {what} (input {input}, after {step} instructions)")
            }
            Reason::Results { input, what } => write!(f, "different results with input {input}: {what}"),
            Reason::OriginalDepends { input, what } => {
                write!(f, "the original's own result depends on old stack contents (input {input}): {what}")
            }
            Reason::Crashed { rewritten, how, input } => {
                let which = if *rewritten { "the rewritten version" } else { "the original" };
                write!(f, "{which} {how} with input {input}")
            }
        }
    }
}
