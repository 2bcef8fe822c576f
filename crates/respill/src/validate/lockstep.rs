//! Both versions instruction by instruction: all general registers and the flags before each, and the writes of each.
//!
//! The two stacks below the entry hold different bytes, so a value that was never put into its home cannot agree by
//! chance. Allowed differences:
//!
//! - addresses of code that correspond;
//! - a register that the other version has borrowed on the way to a home, until it gets another value, while it is not
//!   read;
//! - flags that an instruction leaves undefined, and the memory of a moved slot;
//! - a distance between two places in code, as a `switch` reads it from its table, until its jump. It may be moved,
//!   extended and added to another register, and must become a corresponding address before any other use.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use iced_x86::{InstructionInfoFactory, RflagsBits};
use lanework_trace::iced_x86::{Mnemonic, OpKind, Register};
use lanework_trace::{Access, Advance, Ending, FLAGS, Snapshot, Step, Unavailable};

use super::pairs::{Pairs, through, transfer};
use super::reason::{Place, Reason};
use super::runs::{Versions, in_words};
use crate::analysis::Analysis;
use crate::frame::GENERAL;
use crate::load::Loaded;
use crate::program::Program;
use crate::registers::{Set, Use, bit, set, usage};

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Lockstep {
    /// Pairs of instructions compared.
    pub(super) compared: u64,
    /// Instructions that only the other version has.
    pub(super) added: u64,
    pub(super) reason: Option<Reason>,
    /// How a version ended that did not return.
    pub(super) ended: Option<Ending>,
}

/// Registers that are dead after a call: all that a callee may change except the results.
fn forgotten() -> Set {
    let kept = [Register::RBX, Register::RSP, Register::RBP, Register::R12, Register::R13, Register::R14];
    !(set(&kept) | set(&[Register::R15, Register::RAX, Register::RDX]))
}

/// Whether it does nothing and lies between the program's statements.
fn filling(loaded: &Loaded, step: &Step<'_>) -> bool {
    matches!(step.site.instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Endbr64)
        && loaded.code().contains(&step.address())
        && loaded.op_at(step.address()).is_none()
}

/// The decoder's names of flags as the bits of the flags register.
fn flags_of(names: u32) -> u64 {
    let bits = [
        (RflagsBits::CF, 0),
        (RflagsBits::PF, 2),
        (RflagsBits::AF, 4),
        (RflagsBits::ZF, 6),
        (RflagsBits::SF, 7),
        (RflagsBits::DF, 10),
        (RflagsBits::OF, 11),
    ];
    bits.into_iter().filter(|(name, _)| names & name != 0).map(|(_, bit)| 1 << bit).sum()
}

struct Walk<'a> {
    analysis: &'a Analysis,
    other: &'a Program,
    pairs: &'a Pairs,
    versions: &'a Versions,
    uses: Vec<Use>,
    /// For each changed instruction, the register that has replaced its memory operand.
    changed: Vec<Option<Set>>,
    outside: HashMap<u64, Use>,
    info: InstructionInfoFactory,
    entry: Option<u64>,
    /// Where both begin, if with filling. The caller has these addresses in a register.
    begin: [Option<u64>; 2],
    /// General registers that the other version has borrowed on the way to a home.
    borrowed: Set,
    /// Registers that hold a distance between places in code, and the flags that were made of one.
    distances: Set,
    flags: u64,
    /// Flags that the manual leaves undefined: processors set them one way for memory and another for a register.
    undefined: u64,
    room: Vec<Access>,
    last: Option<(usize, usize)>,
    out: Lockstep,
    found: Option<String>,
    over: bool,
}

impl Walk<'_> {
    /// Whether two values are equal, or addresses that correspond.
    fn same(&self, one: u64, two: u64) -> bool {
        if one == two || [Some(one), Some(two)] == self.begin {
            return true;
        }
        let (original, rewritten) = (&self.versions.original, &self.versions.rewritten);
        if let (Some(o), Some(r)) = (original.op_at(one), rewritten.op_at(two)) {
            return self.pairs.begins(o, r);
        }
        original.corresponds(rewritten, one, two)
    }

    fn same_bytes(&self, one: &[u8], two: &[u8]) -> bool {
        let word = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
        one == two
            || one.len() == two.len()
                && one.chunks(8).zip(two.chunks(8)).all(|(a, b)| {
                    a == b || matches!((word(a), word(b)), (Some(a), Some(b)) if self.same(a, b))
                })
    }

    fn state(&self, a: &Step<'_>, b: &Step<'_>, leave_out: Set) -> Option<String> {
        for (number, register) in GENERAL.into_iter().enumerate() {
            let [one, two] = [a.general(number), b.general(number)];
            if one != two && leave_out & bit(register) == 0 && !self.same(one, two) {
                let register = format!("{register:?}").to_ascii_lowercase();
                return Some(format!("{register} is {one:#x} in the original and {two:#x} here"));
            }
        }
        let [one, two] = [a, b].map(|step| step.flags() & FLAGS & !(self.flags | self.undefined));
        (one != two).then(|| format!("the flags are {one:#x} in the original and {two:#x} here"))
    }

    /// Registers that held a distance and now hold a corresponding address, or equal values, are like all others again.
    fn arrived(&mut self, a: &Step<'_>, b: &Step<'_>) {
        for (number, register) in GENERAL.into_iter().enumerate() {
            if self.distances & bit(register) != 0 && self.same(a.general(number), b.general(number)) {
                self.distances &= !bit(register);
            }
        }
    }

    /// Whether an instruction reads from a table a distance that differs between the versions.
    fn reads_distance(&mut self, a: &Step<'_>, b: &Step<'_>) -> bool {
        let i = &a.site.instruction;
        let moves = matches!(i.mnemonic(), Mnemonic::Mov | Mnemonic::Movsxd);
        if !moves || i.op1_kind() != OpKind::Memory || i.memory_size().size() != 4 {
            return false;
        }
        let mut read = |step: &Step<'_>| {
            step.site.accesses(step, 0, &mut self.room);
            self.room.first().map_or(0, |access| access.address)
        };
        let (one, two) = (read(a), read(b));
        self.versions.original.filled_apart(&self.versions.rewritten, one, two, 4)
    }

    /// The registers that hold a distance after an instruction.
    fn by_distance(&mut self, a: &Step<'_>, b: &Step<'_>, used: Use) -> Result<(), &'static str> {
        let i = a.site.instruction;
        let read = self.reads_distance(a, b);
        if !read && self.distances == 0 && self.flags == 0 {
            return Ok(());
        }
        if flags_of(i.rflags_read()) & self.flags != 0 {
            return Err("a flag is read that a distance between places in code has set");
        }
        let from = used.read & self.distances != 0;
        self.distances &= !used.kill;
        self.flags &= !flags_of(i.rflags_written() | i.rflags_cleared() | i.rflags_set());
        if !read && !from {
            return Ok(());
        }
        let registers = i.op0_kind() == OpKind::Register && i.op1_kind() == OpKind::Register;
        let to = match i.mnemonic() {
            Mnemonic::Cdqe => Register::RAX,
            Mnemonic::Mov | Mnemonic::Movsxd if read || registers => i.op0_register(),
            Mnemonic::Add if registers => i.op0_register(),
            _ => return Err("a distance between places in code is used for more than a jump"),
        };
        self.distances |= bit(to);
        self.flags |= flags_of(i.rflags_modified());
        Ok(())
    }

    fn used(&mut self, op: Option<usize>, step: &Step<'_>) -> Use {
        match op {
            Some(op) => self.uses[op],
            None => {
                let info = &mut self.info;
                *self.outside.entry(step.address()).or_insert_with(|| usage(&step.site.instruction, info))
            }
        }
    }

    fn part(&mut self, what: impl Into<String>) -> Advance {
        self.found = Some(what.into());
        Advance::Stop
    }

    fn look(&mut self, one: Option<&Step<'_>>, two: Option<&Step<'_>>) -> Advance {
        if self.over {
            return Advance::Both;
        }
        let versions = self.versions;
        // Alignment padding belongs to no statement, and may differ in length.
        for (n, (step, loaded)) in
            [(one, &versions.original), (two, &versions.rewritten)].into_iter().enumerate()
        {
            if let Some(step) = step.filter(|step| filling(loaded, step)) {
                if self.entry.is_none() {
                    self.begin[n].get_or_insert(step.address());
                }
                return if n == 0 { Advance::First } else { Advance::Second };
            }
        }
        let o = one.and_then(|step| versions.original.op_at(step.address()));
        let r = two.and_then(|step| versions.rewritten.op_at(step.address()));
        let Some(entry) = self.entry else {
            // Code before the entries is the caller's.
            return match (one, two, o, r) {
                (Some(_), _, None, _) => Advance::First,
                (_, Some(_), _, None) => Advance::Second,
                (Some(a), Some(b), Some(_), Some(_)) if a.general(4) == b.general(4) => {
                    self.entry = Some(a.general(4));
                    self.pair(a, b, o, r)
                }
                _ => self.part("one version is not called, or with another stack"),
            };
        };
        let (Some(a), Some(b)) = (one, two) else {
            return self.part("one version goes on where the other has ended");
        };
        if a.general(4) > entry && b.general(4) > entry {
            self.over = true;
            if let Some(what) = self.state(a, b, forgotten()) {
                return self.part(what);
            }
            if self.borrowed & !forgotten() != 0 {
                return self.part("a borrowed register is not put back before the return");
            }
            return Advance::Both;
        }
        if let Some(r) = r
            && self.pairs.back[r].is_none()
        {
            self.out.added += 1;
            if let Some((general, _, _, false)) = transfer(&self.other.ops[r].instruction) {
                self.borrowed |= bit(general);
            }
            return Advance::Second;
        }
        self.pair(a, b, o, r)
    }

    fn pair(&mut self, a: &Step<'_>, b: &Step<'_>, o: Option<usize>, r: Option<usize>) -> Advance {
        if let Some(r) = r
            && self.pairs.back[r].is_none()
        {
            self.out.added += 1;
            return Advance::Second;
        }
        let alike = match (o, r) {
            (Some(o), Some(r)) => self.pairs.of[o] == r,
            (None, None) => self.same(a.address(), b.address()),
            _ => false,
        };
        self.arrived(a, b);
        if let Some(what) = self.state(a, b, self.borrowed | self.distances) {
            return self.part(what);
        }
        if !alike {
            return self.part("the paths diverge");
        }
        let used = self.used(o, a);
        if let Err(what) = self.by_distance(a, b, used) {
            return self.part(what);
        }
        let i = &a.site.instruction;
        self.undefined &= !flags_of(i.rflags_written() | i.rflags_cleared() | i.rflags_set());
        self.undefined |= flags_of(i.rflags_undefined());
        if used.read & self.borrowed != 0 {
            return self.part("a register is read that was borrowed on the way to a home");
        }
        self.borrowed &= !used.kill;
        if let Some(pair) = o.zip(r) {
            self.last = Some(pair);
        }
        self.out.compared += 1;
        if let Some(through) = o.and_then(|o| self.changed[o]) {
            // One has the value in memory, the other in a home.
            self.borrowed |= through;
            return Advance::Both;
        }
        match (a.written(), b.written()) {
            (None, None) => Advance::Both,
            (Some((at, bytes)), Some((there, same)))
                if (at == there || self.same(at, there)) && self.same_bytes(&bytes, &same) =>
            {
                Advance::Both
            }
            (first, second) => {
                let said = |what: Option<(u64, Vec<u8>)>| match what {
                    Some((at, bytes)) => format!("{bytes:02x?} at {at:#x}"),
                    None => "nothing".to_owned(),
                };
                self.last = o.zip(r).or(self.last);
                let (first, second) = (said(first), said(second));
                self.part(format!("the original writes {first}, this {second}"))
            }
        }
    }
}

/// Compares both versions on one input.
///
/// # Errors
/// If nothing can be traced.
pub(super) fn compare(
    snapshot: &mut Snapshot,
    analysis: &Analysis,
    other: &Program,
    pairs: &Pairs,
    versions: &Versions,
    input: u64,
) -> Result<Lockstep, Unavailable> {
    let mut info = InstructionInfoFactory::new();
    let ops = &analysis.program.ops;
    let mut changed = vec![None; ops.len()];
    for &op in &pairs.changed {
        let free = through(&ops[op].instruction, &other.ops[pairs.of[op]].instruction);
        changed[op] = Some(free.map_or(0, |(_, register)| bit(register)));
    }
    let mut walk = Walk {
        analysis,
        other,
        pairs,
        versions,
        uses: ops.iter().map(|op| usage(&op.instruction, &mut info)).collect(),
        changed,
        outside: HashMap::new(),
        info,
        entry: None,
        begin: [None; 2],
        borrowed: 0,
        distances: 0,
        flags: 0,
        undefined: 0,
        room: Vec::new(),
        last: None,
        out: Lockstep::default(),
        found: None,
        over: false,
    };
    let case = 2 * input as usize;
    let outcomes = snapshot.pair([case, case + 1], |one, two, _| walk.look(one, two))?;
    let mut out = std::mem::take(&mut walk.out);
    if let Some(what) = walk.found.take() {
        let (o, r) = walk.last.unwrap_or_default();
        let (original, rewritten) = (Place::of(&walk.analysis.program, o), Place::of(other, r));
        out.reason = Some(Reason::Diverged { step: out.compared, what, original, rewritten, input });
        return Ok(out);
    }
    for (outcome, rewritten) in outcomes.iter().zip([false, true]) {
        if outcome.ending != Ending::Returned {
            let how = if rewritten {
                in_words(&outcome.ending, &versions.rewritten, other)
            } else {
                in_words(&outcome.ending, &versions.original, &analysis.program)
            };
            out.reason = Some(Reason::Crashed { rewritten, how, input });
            out.ended = Some(outcome.ending.clone());
            return Ok(out);
        }
    }
    let [one, two] = &outcomes;
    if one.answer[8..] != two.answer[8..] {
        out.reason = Some(Reason::Results { input, what: "a buffer after both had returned".to_owned() });
    }
    Ok(out)
}
