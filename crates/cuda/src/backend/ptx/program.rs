//! Programs in the form that is executed: every operand a place in a file of registers, every branch with the place where its
//! paths meet again.
#![forbid(unsafe_code)]

use core::ops::Range;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::container;
use super::decode;
use super::flow;
use super::parse::{Outline, Parameter, Wrong, outline};

/// Files of registers: predicates, words of up to 32 bits, words of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    Predicate,
    Word,
    Long,
}

/// What an instruction does. `o` are its operands, the result first, except where noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Move,
    And,
    Or,
    Xor,
    Not,
    Neg,
    Add,
    Sub,
    MulLo,
    MadLo,
    Shl,
    ShrUnsigned,
    ShrSigned,
    MinUnsigned,
    MaxUnsigned,
    DivUnsigned,
    FunnelLeft,
    FunnelRight,
    Insert,
    Permute,
    Logic3,
    Dot4,
    Dot2,
    /// Two halves into a word.
    Pack,
    MulWide16,
    MulWideUnsigned,
    MulWideSigned,
    Select,
    MoveLong,
    AndLong,
    OrLong,
    XorLong,
    NotLong,
    NegLong,
    AddLong,
    SubLong,
    MulLoLong,
    MulHiLong,
    ShlLong,
    ShrLong,
    InsertLong,
    SelectLong,
    MovePredicate,
    AndPredicate,
    OrPredicate,
    XorPredicate,
    NotPredicate,
    /// Comparisons; `code` is a [`Compare`].
    SetUnsigned,
    SetSigned,
    SetUnsignedLong,
    SetSignedLong,
    /// Keeps the bits of `aux`, from word to word, word to long and long to word.
    Narrow,
    Widen,
    Shorten,
    /// From a signed word of `code` bits to a long, or to a word kept to the bits of `aux`.
    Extend,
    ExtendWord,
    Clock,
    /// Memory: the address, then [`Inst::values`] of `code` bytes each; `aux` is added to the address.
    LoadGlobal,
    LoadShared,
    LoadLocal,
    LoadGeneric,
    StoreGlobal,
    StoreShared,
    StoreLocal,
    StoreGeneric,
    /// Old value, address, operand.
    AtomicXorShared,
    /// To shared memory from global memory, 16 bytes.
    CopyAsync,
    CopyCommit,
    /// `aux` groups may stay pending.
    CopyWait,
    /// Result, predicate, value, lane, segment, members.
    ShuffleButterfly,
    ShuffleIndex,
    Ballot,
    ReduceOr,
    ReduceXor,
    /// Four results, four words of the left matrix, two of the right, four sums.
    MultiplyBits,
    /// Number, and threads if `count` is 2.
    BarrierSync,
    BarrierArrive,
    BarrierWarp,
    /// To instruction `aux`; the paths meet at instruction `meet`.
    Branch,
    Return,
    Allocate,
    Free,
}

/// 9.7.7: comparisons of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    pub(super) const ALL: [Compare; 6] =
        [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge];
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inst {
    pub(super) kind: Kind,
    pub(super) code: u8,
    pub(super) count: u8,
    /// Whether it happens where the guard is false.
    pub(super) negated: bool,
    /// Place 0 of the predicates is true everywhere.
    pub(super) guard: u16,
    pub(super) o: [u16; 6],
    /// Where its operands are in the kernel's list, if they are more than six; of a branch, where its paths meet.
    pub(super) meet: u32,
    pub(super) aux: u64,
    pub(super) line: u32,
}

/// In the count of values that are loaded or stored: their registers have 64 bits.
pub(super) const LONGS: u8 = 0x80;

impl Inst {
    /// How many values are loaded or stored.
    #[inline(always)]
    pub(super) fn values(&self) -> usize {
        (self.count & !LONGS).into()
    }

    #[inline(always)]
    pub(super) fn is_long(&self) -> bool {
        self.count & LONGS != 0
    }
}

/// Paths that meet only at the end.
pub(super) const NEVER: u32 = u32::MAX;

/// Where shared memory begins in its space, so that address 0 is nothing.
pub(super) const SHARED_BASE: u32 = 1024;
/// Where a thread's own memory begins in its space, and that space among generic addresses.
pub(super) const LOCAL_BASE: u64 = 256;
pub(super) const LOCAL_WINDOW: u64 = 1 << 32;

/// A value that no instruction makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Constant {
    Value(u64),
    Thread,
    Threads,
    Block,
    Blocks,
    Lane,
    /// Bytes of the launch's parameters: offset and size.
    Parameter(u32, u32),
    /// The address of the module's variable.
    Global(usize),
}

/// A kernel, decoded.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) name: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) max_threads: u32,
    pub(super) insts: Vec<Inst>,
    pub(super) lists: Vec<u16>,
    /// Constants, which fill the first places of each file in this order.
    pub(super) words: Vec<Constant>,
    pub(super) longs: Vec<Constant>,
    pub(super) predicates: Vec<Constant>,
    /// Places of each file, constants included.
    pub(super) places: [usize; 3],
    /// Whether some path reads a register that it has not written.
    pub(super) early_reads: bool,
    /// Addresses of a thread's own memory.
    pub(super) local: Range<u64>,
}

impl Code {
    /// Bytes of a thread's own memory.
    pub(super) fn local_bytes(&self) -> usize {
        (self.local.end - self.local.start) as usize
    }
}

/// Puts lines before each end of a kernel, if the text has it.
fn plant(text: &mut String, kernel: &str, lines: &str) {
    let Some(start) = text.find(&format!(".entry {kernel}(")) else { return };
    let end = text[start..].find("\n}").map_or(text.len(), |length| start + length);
    let with =
        |line: &str| if line.trim() == "ret;" { format!("{lines}\n{line}\n") } else { format!("{line}\n") };
    let body: String = text[start..end].lines().map(with).collect();
    text.replace_range(start..end, &body);
}

/// A program: its text, and the kernels that were asked for so far.
#[derive(Debug)]
pub(crate) struct Program {
    pub(super) text: String,
    pub(super) outline: Outline,
    codes: Mutex<HashMap<String, Arc<Code>>>,
}

impl Program {
    /// A program as it ships, which is unpacked once in a process, or with these lines before the ends of these kernels.
    pub(crate) fn of(code: &'static [u8], planted: &[(String, String)]) -> Result<Arc<Program>, String> {
        if !planted.is_empty() {
            let mut text = container::text(code).map_err(|refusal| refusal.to_string())?;
            for (kernel, lines) in planted {
                plant(&mut text, kernel, lines);
            }
            return Program::from_text(text).map(Arc::new).map_err(|wrong| wrong.to_string());
        }
        type Known = Mutex<HashMap<(usize, usize), Arc<Program>>>;
        static KNOWN: OnceLock<Known> = OnceLock::new();
        let mut known = KNOWN.get_or_init(Known::default).lock().unwrap_or_else(PoisonError::into_inner);
        let place = (code.as_ptr().addr(), code.len());
        if let Some(program) = known.get(&place) {
            return Ok(Arc::clone(program));
        }
        let text = container::text(code).map_err(|refusal| refusal.to_string())?;
        let program = Arc::new(Program::from_text(text).map_err(|wrong| wrong.to_string())?);
        known.insert(place, Arc::clone(&program));
        Ok(program)
    }

    pub(super) fn from_text(text: String) -> Result<Program, Wrong> {
        let outline = outline(&text)?;
        Ok(Program { text, outline, codes: Mutex::default() })
    }

    /// The kernel of this name, decoded at the first call; `None` if there is none.
    pub(super) fn kernel(&self, name: &str) -> Option<Result<Arc<Code>, Wrong>> {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = codes.get(name) {
            return Some(Ok(Arc::clone(code)));
        }
        let entry = self.outline.entries.iter().find(|entry| entry.name == name)?;
        Some(decode::body(&self.text, &self.outline, entry).and_then(flow::arrange).map(|code| {
            let code = Arc::new(code);
            codes.insert(name.to_owned(), Arc::clone(&code));
            code
        }))
    }

    /// A line of its text.
    pub(super) fn line(&self, line: u32) -> &str {
        self.text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim()
    }
}
