//! Instructions as their opcodes say: each form by its section of the PTX ISA 9.0, every other form refused by name.
#![forbid(unsafe_code)]

use core::ops::Range;
use std::collections::HashMap;

use super::parse::{Entry, Item, Lexer, Operand, Outline, Statement, Wrong, item, type_bytes};
use super::program::{Class, Compare, Constant, Kind, LOCAL_BASE, LOCAL_WINDOW, LONGS, SHARED_BASE};

mod forms;

/// A register, or a constant in a register's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Register {
    pub(super) class: Class,
    pub(super) number: u32,
}

/// An instruction before its registers have places.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) kind: Kind,
    pub(super) code: u8,
    pub(super) count: u8,
    pub(super) guard: Option<(Register, bool)>,
    /// Operands in the order of [`Kind`]; true for those that it writes.
    pub(super) operands: Vec<(Register, bool)>,
    pub(super) aux: u64,
    pub(super) target: Option<u32>,
    pub(super) line: u32,
}

/// A body before its registers have places.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) name: String,
    pub(super) parameters: Vec<super::parse::Parameter>,
    pub(super) max_threads: u32,
    pub(super) drafts: Vec<Draft>,
    /// Registers of each class, constants included.
    pub(super) registers: [u32; 3],
    pub(super) constants: HashMap<Register, Constant>,
    pub(super) local: Range<u64>,
}

/// Registers of one declaration: the first number, how many, and their bytes.
#[derive(Clone, Copy)]
struct Declared {
    first: u32,
    count: Option<u32>,
    bytes: u32,
}

struct Decoder<'a> {
    outline: &'a Outline,
    entry: &'a Entry,
    drafts: Vec<Draft>,
    /// Declarations by name, of each block that is open.
    scopes: Vec<HashMap<&'a str, Declared>>,
    registers: [u32; 3],
    constants: HashMap<Register, Constant>,
    places: HashMap<(Class, Constant), Register>,
    locals: HashMap<&'a str, u64>,
    /// Addresses of the thread's own memory.
    local: Range<u64>,
    labels: HashMap<&'a str, u32>,
    jumps: Vec<(usize, &'a str)>,
    line: u32,
}

/// The class of registers of so many bytes; 0 for predicates.
pub(super) fn class_of(bytes: u32) -> Class {
    match bytes {
        0 => Class::Predicate,
        8 => Class::Long,
        _ => Class::Word,
    }
}

/// The next place that is a multiple of the alignment and of no greater one: more is not promised (5.4.5).
fn just_aligned(at: u64, align: u32) -> u64 {
    let align = u64::from(align.max(1));
    (at + align).next_multiple_of(2 * align) - align
}

pub(super) fn body(text: &str, outline: &Outline, entry: &Entry) -> Result<Body, Wrong> {
    let mut lexer = Lexer::new(text, entry.body.clone(), entry.line);
    let mut decoder = Decoder {
        outline,
        entry,
        drafts: Vec::new(),
        scopes: vec![HashMap::new()],
        registers: [0; 3],
        constants: HashMap::new(),
        places: HashMap::new(),
        locals: HashMap::new(),
        local: LOCAL_BASE..LOCAL_BASE,
        labels: HashMap::new(),
        jumps: Vec::new(),
        line: entry.line,
    };
    // Place 0 of the predicates guards what has no guard.
    decoder.constant(Class::Predicate, Constant::Value(1));
    while let Some((line, item)) = item(&mut lexer)? {
        decoder.line = line;
        decoder.take(item)?;
    }
    // A body ends with a return, written or not.
    decoder.push(Kind::Return, vec![]);
    decoder.finish()
}

impl<'a> Decoder<'a> {
    fn wrong(&self, why: impl Into<String>) -> Wrong {
        Wrong { line: self.line, why: why.into() }
    }

    fn take(&mut self, item: Item<'a>) -> Result<(), Wrong> {
        match item {
            Item::Open => self.scopes.push(HashMap::new()),
            Item::Close => {
                self.scopes.pop();
                if self.scopes.is_empty() {
                    return Err(self.wrong("a brace too many"));
                }
            }
            Item::Label(name) => {
                if self.labels.insert(name, self.drafts.len() as u32).is_some() {
                    return Err(self.wrong(format!("the label '{name}' is there twice")));
                }
            }
            Item::Registers { bytes, name, count } => self.declare(name, bytes, count)?,
            Item::Argument { name, bytes } => self.declare(name, bytes, None)?,
            Item::Local { name, bytes, align } => {
                let at = just_aligned(self.local.end, align);
                self.locals.insert(name, at);
                let start = if self.local.is_empty() { at } else { self.local.start };
                self.local = start..at.saturating_add(bytes);
                if self.local.end > 1 << 30 {
                    return Err(self.wrong("more than 1 GiB of a thread's own memory"));
                }
            }
            Item::Instruction(statement) => self.instruction(&statement)?,
        }
        Ok(())
    }

    fn declare(&mut self, name: &'a str, bytes: u32, count: Option<u32>) -> Result<(), Wrong> {
        let registers = &mut self.registers[class_of(bytes) as usize];
        let first = *registers;
        *registers = registers
            .checked_add(count.unwrap_or(1))
            .filter(|n| *n < 1 << 24)
            .ok_or_else(|| Wrong { line: self.line, why: "more registers than any kernel has".to_owned() })?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, Declared { first, count, bytes });
        }
        Ok(())
    }

    /// The register of this name and its bytes.
    fn find(&self, name: &str) -> Option<(Register, u32)> {
        for scope in self.scopes.iter().rev() {
            if let Some(range) = scope.get(name).filter(|range| range.count.is_none()) {
                let class = class_of(range.bytes);
                return Some((Register { class, number: range.first }, range.bytes));
            }
            let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
            if let Some(range) = scope.get(letters)
                && let (Ok(number), Some(count)) = (name[letters.len()..].parse::<u32>(), range.count)
                && number < count
            {
                let class = class_of(range.bytes);
                return Some((Register { class, number: range.first + number }, range.bytes));
            }
        }
        None
    }

    fn constant(&mut self, class: Class, value: Constant) -> Register {
        if let Some(register) = self.places.get(&(class, value)) {
            return *register;
        }
        let number = self.registers[class as usize];
        self.registers[class as usize] += 1;
        let register = Register { class, number };
        self.constants.insert(register, value);
        self.places.insert((class, value), register);
        register
    }

    /// The address of a variable, by its name, in a register of this class.
    fn address(&mut self, name: &str, class: Class) -> Option<Register> {
        let value = if self.outline.dynamic_shared.iter().any(|known| known == name) {
            Constant::Value(SHARED_BASE.into())
        } else if let Some(at) = self.locals.get(name) {
            Constant::Value(*at)
        } else if class == Class::Long {
            Constant::Global(self.outline.globals.iter().position(|global| global.name == name)?)
        } else {
            return None;
        };
        Some(self.constant(class, value))
    }

    /// A source of this many bytes: a register of exactly this size, an integer, a special register (10) or an address.
    fn source(&mut self, operand: &Operand<'a>, bytes: u32) -> Result<Register, Wrong> {
        let class = class_of(bytes);
        match operand {
            Operand::Number(value) => {
                let kept = match bytes {
                    0 => u64::from(*value != 0),
                    8 => *value,
                    _ => value & ((1 << (8 * bytes)) - 1),
                };
                Ok(self.constant(class, Constant::Value(kept)))
            }
            Operand::Name(name) => {
                let special = match *name {
                    "%tid.x" => Some(Constant::Thread),
                    "%ntid.x" => Some(Constant::Threads),
                    "%ctaid.x" => Some(Constant::Block),
                    "%nctaid.x" => Some(Constant::Blocks),
                    "%laneid" => Some(Constant::Lane),
                    _ => None,
                };
                if let Some(special) = special.filter(|_| bytes == 4) {
                    return Ok(self.constant(class, special));
                }
                match self.find(name) {
                    Some((register, found)) if found == bytes => Ok(register),
                    Some((_, found)) => {
                        Err(self.wrong(format!("'{name}' has {} bits, not {}", 8 * found, 8 * bytes)))
                    }
                    None => self
                        .address(name, class)
                        .ok_or_else(|| self.wrong(format!("the name '{name}' is unknown"))),
                }
            }
            other => Err(self.wrong(format!("{other:?} is not a source"))),
        }
    }

    /// A register that has at least this many bytes (9.4: loads, stores and conversions take wider ones).
    fn wider(&mut self, operand: &Operand<'a>, bytes: u32) -> Result<Register, Wrong> {
        if let Operand::Name(name) = operand
            && let Some((register, found)) = self.find(name)
        {
            if found >= bytes && found > 0 {
                return Ok(register);
            }
            return Err(self.wrong(format!("'{name}' has {} bits, fewer than {}", 8 * found, 8 * bytes)));
        }
        self.source(operand, bytes)
    }

    /// A destination of exactly this many bytes.
    fn result(&self, operand: &Operand<'a>, bytes: u32) -> Result<Register, Wrong> {
        let Operand::Name(name) = operand else {
            return Err(self.wrong(format!("{operand:?} is not a destination")));
        };
        match self.find(name) {
            Some((register, found)) if found == bytes => Ok(register),
            Some((_, found)) => {
                Err(self.wrong(format!("'{name}' has {} bits, not {}", 8 * found, 8 * bytes)))
            }
            None => Err(self.wrong(format!("the register '{name}' is unknown"))),
        }
    }

    fn push(&mut self, kind: Kind, operands: Vec<(Register, bool)>) -> &mut Draft {
        let line = self.line;
        self.drafts.push(Draft {
            kind,
            code: 0,
            count: 0,
            guard: None,
            operands,
            aux: 0,
            target: None,
            line,
        });
        let last = self.drafts.len() - 1;
        &mut self.drafts[last]
    }

    fn finish(mut self) -> Result<Body, Wrong> {
        for (at, label) in &self.jumps {
            let target = self.labels.get(label);
            let line = self.drafts[*at].line;
            self.drafts[*at].target =
                Some(*target.ok_or_else(|| Wrong { line, why: format!("the label '{label}' is unknown") })?);
        }
        Ok(Body {
            name: self.entry.name.clone(),
            parameters: self.entry.parameters.clone(),
            max_threads: self.entry.max_threads.unwrap_or(1024).min(1024),
            drafts: self.drafts,
            registers: self.registers,
            constants: self.constants,
            local: self.local,
        })
    }

    fn instruction(&mut self, statement: &Statement<'a>) -> Result<(), Wrong> {
        let at = self.drafts.len();
        let parts: Vec<&str> = statement.opcode.split('.').collect();
        self.form(&parts, statement)?;
        if let Some((name, negated)) = statement.guard {
            let guard = self.source(&Operand::Name(name), 0)?;
            for draft in &mut self.drafts[at..] {
                draft.guard = Some((guard, negated));
            }
        }
        Ok(())
    }
}
