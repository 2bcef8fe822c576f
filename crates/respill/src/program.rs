//! A text with its decoded instructions.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

use crate::assembler::{self, AssembleError, Assembled, Place, Reference, Seen, Shape};
use crate::encoded;
use crate::text::{Kind, Text, TextError};

/// Why a file is not a program, with the file and, if known, the line.
#[derive(Debug)]
pub struct ProgramError {
    /// The file's name.
    pub file: String,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub why: Why,
}

/// What is wrong with a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Why {
    /// The text cannot be cut into statements.
    Text(TextError),
    /// It cannot be assembled.
    Assemble(AssembleError),
    /// It has no instruction.
    Empty,
    /// The assembler refuses this instruction, perhaps since a jump reaches too far, and the original does not have it.
    Unknown,
    /// Its repetitions do not mean what they seem to mean.
    Repeats,
    /// The linker fills in bytes of this instruction that are not one of its constants, as `.reloc` can make it.
    Reference,
    /// It has more bytes than [`Program::LONGEST`].
    Long,
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        match &self.why {
            Why::Text(e) => write!(f, ": {e}"),
            Why::Assemble(e) => write!(f, ": {e}"),
            Why::Repeats => f.write_str(": its repetitions could not be written out"),
            Why::Unknown => f.write_str(": the assembler refuses this instruction"),
            Why::Reference => f.write_str(
                ": the linker fills in bytes of this instruction that are not one of its constants",
            ),
            Why::Long => write!(f, ": longer than {} bytes", Program::LONGEST),
            Why::Empty => f.write_str(": there is no instruction in it"),
        }
    }
}

impl core::error::Error for ProgramError {}

/// The target of a branch or a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To an instruction of this file, by its number.
    Op(usize),
    /// To a symbol of another file.
    External(String),
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Op {
    /// Its statement.
    pub statement: usize,
    /// The place of its bytes.
    pub place: Place,
    /// The decoded bytes. Its address is the offset in its section.
    pub instruction: Instruction,
    /// Its branch target, or the code address that it computes from its own.
    pub target: Option<Target>,
    /// The place to which it branches or whose address it computes from its own, if it is in this file.
    pub(crate) aim: Option<Place>,
    /// References of its fields for the linker, in the order of the fields, and how far inside each field begins.
    pub(crate) references: Vec<Reference>,
    pub(crate) fields: Vec<u64>,
    /// What lies between it and the next instruction of its section.
    pub(crate) after: Gap,
}

/// Bytes of a code section that belong to no instruction statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gap {
    /// None.
    #[default]
    Nothing,
    /// Instructions without effect: alignment, the marks of jump targets.
    Filling,
    /// Any other bytes.
    Bytes(Vec<u8>),
}

impl Gap {
    fn of(bytes: &[u8]) -> Gap {
        if bytes.is_empty() {
            return Gap::Nothing;
        }
        if Decoder::new(64, bytes, DecoderOptions::NONE).iter().all(|i| is_idle(&i)) {
            Gap::Filling
        } else {
            Gap::Bytes(bytes.to_vec())
        }
    }
}

impl Gap {
    /// Whether two gaps differ at most in the filling at their ends: up to an alignment, it differs in length.
    pub(crate) fn is_like(&self, other: &Gap) -> bool {
        let [a, b]: [&[u8]; 2] = [self, other].map(|gap| match gap {
            Gap::Bytes(bytes) => bytes.as_slice(),
            Gap::Nothing | Gap::Filling => &[],
        });
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let filled =
            |at: usize| [a, b].into_iter().all(|bytes| !matches!(Gap::of(&bytes[at..]), Gap::Bytes(_)));
        a == b || (same.saturating_sub(64)..=same).rev().any(filled)
    }
}

/// Whether an instruction has no effect.
pub(crate) fn is_idle(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Endbr32)
}

/// A place, counted from the instruction before it: so it is the same in two versions of a text, whatever the length of their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// At an instruction, or at the filling before it.
    Op(usize),
    /// This many bytes inside one.
    Inside(usize, u64),
    /// This many bytes behind one.
    Behind(usize, u64),
    /// Before the first one of its section.
    Lead(Place),
    /// In a section without code.
    Data(Place),
}

/// A symbol in code at which no instruction is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dark {
    pub(crate) place: Place,
    /// Whether code outside may call it: other files see it, or it was declared to be a function, and not to be data.
    pub(crate) called: bool,
    /// How far it lies behind the end of its section, if it does.
    pub(crate) beyond: Option<u64>,
}

/// A text, its instructions in the order of the text, and its names.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file's name, for messages.
    pub file: String,
    /// The text.
    pub text: Text,
    /// The instructions.
    pub ops: Vec<Op>,
    /// All names of each instruction that has one.
    pub names: BTreeMap<usize, Vec<Name>>,
    /// The instruction at each place, or after the filling there.
    pub(crate) at: HashMap<Place, usize>,
    /// What lies before the first instruction of each section.
    pub(crate) lead: BTreeMap<usize, Gap>,
    /// The instructions to which a branch goes, by a name or by a distance.
    pub(crate) targets: BTreeSet<usize>,
    /// Instructions that the assembler does not know.
    pub(crate) unknown: Vec<usize>,
    /// Symbols in code at which no instruction is known.
    pub(crate) dark: BTreeMap<String, Dark>,
    /// The instruction that begins at each place.
    pub(crate) starts: BTreeMap<Place, usize>,
    /// The bytes of each section that holds code.
    code: HashMap<usize, Vec<u8>>,
    /// What the linker sees of symbols and sections, apart from places in code.
    pub(crate) seen: Vec<Seen>,
    pub(crate) shapes: Vec<Shape>,
    /// The names and bytes of sections that are loaded and hold no code.
    pub(crate) data: Vec<(String, Vec<u8>)>,
    /// References that no instruction makes: of data, and of what lies between instructions.
    pub(crate) pointers: BTreeMap<Place, Reference>,
    /// The places of all names that no other file may define instead.
    pub(crate) places: HashMap<String, Place>,
    /// Sections that a program may write.
    pub(crate) written: BTreeSet<usize>,
    /// The names of sections that are not loaded, or that only unwinders read.
    pub(crate) idle: BTreeSet<String>,
    /// Whether string instructions may run downwards.
    pub(crate) downwards: bool,
}

/// A symbol at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The symbol.
    pub name: String,
    /// Whether other files see it.
    pub global: bool,
    /// Whether it was declared to be a function.
    pub function: bool,
}

impl Program {
    /// The most bytes of a text.
    pub const LONGEST: u64 = 1 << 28;

    /// Reads a text, assembles it and decodes it.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub fn new(file: &str, text: impl Into<String>) -> Result<Program, ProgramError> {
        let fail = |line: Option<usize>, why: Why| ProgramError { file: file.to_owned(), line, why };
        let text = text.into();
        if text.len() as u64 > Program::LONGEST {
            return Err(fail(None, Why::Long));
        }
        let text = Text::new(text).map_err(|e| fail(Some(e.line()), Why::Text(e)))?;
        let of_assembler = |e| {
            let line = if let AssembleError::Refused { line, .. } = &e { *line } else { None };
            fail(line, Why::Assemble(e))
        };
        if !assembler::is_given(&text).map_err(of_assembler)? {
            return Err(fail(None, Why::Repeats));
        }
        let assembled = assembler::assemble(&text).map_err(of_assembler)?;
        let mut ops = encoded::decode(&text, &assembled);
        if ops.is_empty() {
            return Err(fail(None, Why::Empty));
        }
        // Each statement's bytes end where the next one's begin, unless something else lies between. Bytes that are not one instruction are
        // not decoded as one.
        for n in 1..ops.len() {
            let [a, b] = [&ops[n - 1], &ops[n]];
            let end = a.place.offset + a.instruction.len() as u64;
            let beside = (a.statement + 1..b.statement).all(|s| text.statements()[s].kind == Kind::Label);
            if !a.instruction.is_invalid()
                && a.place.section == b.place.section
                && (b.place.offset < end || beside && b.place.offset != end)
            {
                ops[n - 1].instruction = Instruction::default();
            }
        }
        let mut at: HashMap<Place, usize> = HashMap::new();
        let lead = gaps(&mut ops, &mut at, &assembled);
        at.extend(ops.iter().enumerate().map(|(i, op)| (op.place, i)));
        let starts: BTreeMap<Place, usize> = ops.iter().enumerate().map(|(i, op)| (op.place, i)).collect();
        if let Some(op) = torn(&ops, &starts, &assembled) {
            return Err(fail(Some(text.statements()[ops[op].statement].line), Why::Reference));
        }
        for op in &mut ops {
            op.target = match aim(&op.instruction, op.place, &assembled) {
                Some(Aim::Place(place)) => {
                    op.aim = Some(place);
                    at.get(&place).map(|&op| Target::Op(op))
                }
                Some(Aim::External(name)) => Some(Target::External(name)),
                None => None,
            };
            for by in 0..op.instruction.len() as u64 {
                let field = Place { offset: op.place.offset + by, ..op.place };
                if let Some(reference) = assembled.references.get(&field) {
                    op.references.push(reference.clone());
                    op.fields.push(by);
                }
            }
        }
        let fields = |op: &Op| {
            let Place { section, offset } = op.place;
            (offset..offset + op.instruction.len() as u64).map(move |offset| Place { section, offset })
        };
        let inside: HashSet<Place> = ops.iter().flat_map(fields).collect();
        let outside = assembled.references.iter().filter(|(place, _)| !inside.contains(place));
        let pointers = outside.map(|(&place, reference)| (place, reference.clone())).collect();
        let own = assembled.symbols.iter().filter(|symbol| !symbol.weak);
        let places = own.map(|symbol| (symbol.name.clone(), symbol.place)).collect();
        let written = assembled.written.clone();
        let mut names: BTreeMap<usize, Vec<Name>> = BTreeMap::new();
        let mut dark = BTreeMap::new();
        for symbol in &assembled.symbols {
            if let Some(&op) = at.get(&symbol.place) {
                let (name, global, function) = (symbol.name.clone(), symbol.global, symbol.function);
                names.entry(op).or_default().push(Name { name, global, function });
            } else if let Some(code) = assembled.code.get(&symbol.place.section) {
                let place = symbol.place;
                let called = (symbol.function || symbol.global) && !symbol.data;
                let beyond = place.offset.checked_sub(code.len() as u64);
                dark.insert(symbol.name.clone(), Dark { place, called, beyond });
            }
        }
        let unknown = (0..ops.len()).filter(|&op| assembled.unknown.contains(&ops[op].statement)).collect();
        use Mnemonic::{Iret, Iretd, Iretq, Popf, Popfq, Std};
        let sets = |op: &Op| {
            op.instruction.is_invalid()
                || matches!(op.after, Gap::Bytes(_))
                || matches!(op.instruction.mnemonic(), Std | Popf | Popfq | Iret | Iretd | Iretq)
        };
        let downwards = ops.iter().any(sets) || lead.values().any(|gap| matches!(gap, Gap::Bytes(_)));
        let branch = |op: &Op| match op.target {
            Some(Target::Op(to)) if is_near_branch(&op.instruction) => Some(to),
            _ => None,
        };
        let targets = ops.iter().filter_map(branch).collect();
        let (file, data, idle) = (file.to_owned(), assembled.data, assembled.idle);
        Ok(Program {
            file,
            text,
            ops,
            names,
            at,
            lead,
            targets,
            unknown,
            dark,
            starts,
            code: assembled.code,
            seen: assembled.seen,
            shapes: assembled.shapes,
            data,
            pointers,
            places,
            written,
            idle,
            downwards,
        })
    }

    /// Reads a rewrite of this text. The assembler must know every new instruction.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub fn again(&self, file: &str, text: impl Into<String>) -> Result<Program, ProgramError> {
        let out = Program::new(file, text)?;
        let said: Vec<&str> = self.unknown.iter().map(|&op| self.said(op)).collect();
        match out.unknown.iter().find(|&&op| !said.contains(&out.said(op))) {
            None => Ok(out),
            Some(&op) => {
                Err(ProgramError { file: file.to_owned(), line: Some(out.line(op)), why: Why::Unknown })
            }
        }
    }

    /// The line of an instruction.
    #[must_use]
    pub fn line(&self, op: usize) -> usize {
        self.text.statements()[self.ops[op].statement].line
    }

    /// Whether an instruction's statement is the whole instruction, by name: neither bytes nor a prefix of what follows.
    #[must_use]
    pub fn is_plain(&self, op: usize) -> bool {
        let kind = self.text.statements()[self.ops[op].statement].kind;
        kind == Kind::Instruction && !encoded::is_prefix(self.said(op))
    }

    /// The spot of a place.
    pub(crate) fn spot(&self, place: Place) -> Spot {
        if !self.lead.contains_key(&place.section) {
            return Spot::Data(place);
        }
        if let Some(&op) = self.at.get(&place) {
            return Spot::Op(op);
        }
        let first = Place { offset: 0, ..place };
        let Some((begin, &op)) = self.starts.range(first..=place).next_back() else {
            return Spot::Lead(place);
        };
        // The decoder does not know the length of an invalid one.
        let instruction = &self.ops[op].instruction;
        let length = if instruction.is_invalid() { 0 } else { instruction.len() as u64 };
        let by = place.offset - begin.offset;
        if by < length { Spot::Inside(op, by) } else { Spot::Behind(op, by - length) }
    }

    /// The bytes from a place inside an instruction to its end, if they are one instruction, too: one without some of the prefixes.
    pub(crate) fn tail(&self, place: Place) -> Option<&[u8]> {
        let Spot::Inside(op, by) = self.spot(place) else { return None };
        let end = place.offset as usize + self.ops[op].instruction.len() - by as usize;
        let bytes = self.code.get(&place.section)?.get(place.offset as usize..end)?;
        let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        (!instruction.is_invalid() && instruction.len() == bytes.len()).then_some(bytes)
    }

    /// The text of an instruction.
    #[must_use]
    pub fn said(&self, op: usize) -> &str {
        self.text.of(self.ops[op].statement)
    }
}

/// An instruction of which a reference fills in other bytes than one whole constant that is zero until then.
fn torn(ops: &[Op], starts: &BTreeMap<Place, usize>, assembled: &Assembled) -> Option<usize> {
    let of = |(&field, reference): (&Place, &Reference)| {
        let code = assembled.code.get(&field.section)?;
        let end = Place { offset: field.offset + reference.width(), ..field };
        if let Some((_, &over)) = starts.range(field..end).find(|(place, _)| **place > field) {
            return Some(over);
        }
        let (begin, &op) = starts.range(Place { offset: 0, ..field }..=field).next_back()?;
        let (by, instruction) = (field.offset - begin.offset, &ops[op].instruction);
        if instruction.is_invalid() || by >= instruction.len() as u64 {
            return None;
        }
        let bytes = code.get(begin.offset as usize..)?;
        let mut decoder = Decoder::with_ip(64, bytes, begin.offset, DecoderOptions::NONE);
        let decoded = decoder.decode();
        let constants = decoder.get_constant_offsets(&decoded);
        let width = reference.width();
        let is = |offset: usize, size: usize| (offset as u64, size as u64) == (by, width);
        let whole = is(constants.displacement_offset(), constants.displacement_size()) && width >= 4
            || is(constants.immediate_offset(), constants.immediate_size())
            || is(constants.immediate_offset2(), constants.immediate_size2());
        let empty = code[field.offset as usize..end.offset as usize].iter().all(|&byte| byte == 0);
        // The call of a descriptor is marked as a whole.
        let right = if width == 0 { by == 0 } else { whole && empty };
        (!right).then_some(op)
    };
    assembled.references.iter().filter_map(of).min()
}

/// Finds what lies between the instructions of each section. Places in filling stand for the instruction after it.
fn gaps(ops: &mut [Op], at: &mut HashMap<Place, usize>, assembled: &Assembled) -> BTreeMap<usize, Gap> {
    let mut lead = BTreeMap::new();
    let mut orders: HashMap<usize, Vec<usize>> = HashMap::new();
    for (i, op) in ops.iter().enumerate() {
        orders.entry(op.place.section).or_default().push(i);
    }
    for (&section, code) in &assembled.code {
        let mut order = orders.remove(&section).unwrap_or_default();
        order.sort_by_key(|&i| ops[i].place.offset);
        let mut begin = 0;
        let mut last: Option<usize> = None;
        for next in order.into_iter().map(Some).chain([None]) {
            let end = next.map_or(code.len(), |i| ops[i].place.offset as usize);
            let bytes = code.get(begin..end).unwrap_or_default();
            let gap = Gap::of(bytes);
            if gap == Gap::Filling
                && let Some(next) = next
            {
                let idle = Decoder::with_ip(64, bytes, begin as u64, DecoderOptions::NONE);
                at.extend(idle.into_iter().map(|i| (Place { section, offset: i.ip() }, next)));
            }
            match last {
                // A statement that is not decoded may have any length.
                Some(last) if ops[last].instruction.is_invalid() => (),
                Some(last) => ops[last].after = gap,
                None => {
                    lead.insert(section, gap);
                }
            }
            last = next;
            begin = next.map_or(end, |i| end + ops[i].instruction.len());
        }
    }
    lead
}

/// Where a near branch goes, or what an operand relative to the instruction pointer names.
pub(crate) enum Aim {
    /// A place of the file.
    Place(Place),
    /// A symbol of another file.
    External(String),
}

/// The aim of an instruction at a place.
pub(crate) fn aim(instruction: &Instruction, at: Place, assembled: &Assembled) -> Option<Aim> {
    let branch = is_near_branch(instruction);
    if !branch && !instruction.is_ip_rel_memory_operand() {
        return None;
    }
    let section = at.section;
    let end = at.offset + instruction.len() as u64;
    let field = (at.offset..end)
        .find_map(|offset| assembled.references.get(&Place { section, offset }).map(|r| (offset, r)));
    let Some((offset, Reference { name, place, addend, .. })) = field else {
        let offset =
            if branch { instruction.near_branch_target() } else { instruction.ip_rel_memory_address() };
        return Some(Aim::Place(Place { section, offset }));
    };
    // The addend counts from the field, the address from the instruction's end.
    let distance = addend.wrapping_add((end - offset) as i64);
    match place {
        Some(place) => {
            let offset = place.offset.wrapping_add_signed(distance);
            Some(Aim::Place(Place { section: place.section, offset }))
        }
        None => name.clone().map(Aim::External),
    }
}

/// Whether an instruction is a jump or call to a place that it names itself.
pub(crate) fn is_near_branch(instruction: &Instruction) -> bool {
    matches!(instruction.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16)
}
