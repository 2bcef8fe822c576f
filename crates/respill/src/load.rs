//! A program in this process: its assembled object placed in memory, references filled in, names and instructions known by address.
//!
//! No linker is used. The object's few kinds of references are filled in here, in the low 2 GiB. So code that was not
//! made for a shared object (absolute tables, 32-bit addresses) runs unchanged, and each instruction's address is known
//! exactly. Constructors do not run, and thread-local data are not supported.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;

use object::elf;
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget, SectionKind,
};

use crate::assembler::{self, AssembleError, Place};
use crate::program::Program;
use crate::sys::{self, Mapping, PAGE, Rights};

/// Why a program was not loaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// This machine does not run x86-64 Linux programs.
    Unavailable(&'static str),
    /// It could not be assembled.
    Assemble(AssembleError),
    /// Its object is not supported.
    Object(String),
    /// A symbol that the program, the given symbols and this process lack.
    Undefined(String),
    /// An unsupported kind of reference, to this symbol.
    Reference {
        /// Its number in the x86-64 ELF supplement.
        kind: u32,
        /// The symbol.
        symbol: String,
    },
    /// A reference to this symbol has no room for its distance.
    Far(String),
    /// No memory.
    Memory(io::Error),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unavailable(why) => f.write_str(why),
            LoadError::Assemble(e) => write!(f, "{e}"),
            LoadError::Object(why) => write!(f, "the assembled object cannot be loaded: {why}"),
            LoadError::Undefined(name) => write!(f, "the program needs `{name}`, which is not defined"),
            LoadError::Reference { kind, symbol } => {
                write!(f, "a reference of kind {kind} to `{symbol}`, which is not supported")
            }
            LoadError::Far(symbol) => write!(f, "`{symbol}` is too far away for the code that refers to it"),
            LoadError::Memory(e) => write!(f, "no memory for the program: {e}"),
        }
    }
}

impl core::error::Error for LoadError {}

impl From<AssembleError> for LoadError {
    fn from(e: AssembleError) -> LoadError {
        LoadError::Assemble(e)
    }
}

impl From<object::Error> for LoadError {
    fn from(e: object::Error) -> LoadError {
        LoadError::Object(e.to_string())
    }
}

/// The sources of symbols that a program does not define.
#[derive(Clone, Debug)]
pub struct Externals {
    /// By name.
    pub known: BTreeMap<String, u64>,
    /// Whether others are looked up among the functions of this process (the C library's).
    pub process: bool,
}

impl Default for Externals {
    /// This process's functions, and random bytes that follow from a seed ([`sys::seed_random_bytes`]).
    fn default() -> Externals {
        let random = sys::random_bytes as *const () as u64;
        let names = ["randombytes", "__jasmin_syscall_randombytes__", "OQS_randombytes", "jade_randombytes"];
        Externals { known: names.into_iter().map(|name| (name.to_owned(), random)).collect(), process: true }
    }
}

impl Externals {
    fn find(&self, name: &str) -> Option<u64> {
        self.known.get(name).copied().or_else(|| if self.process { sys::function(name) } else { None })
    }
}

/// A section in memory.
#[derive(Clone, Debug)]
struct Piece {
    name: String,
    kind: Group,
    bytes: Vec<u8>,
    /// Whether it has no references, so that it is the same at every address.
    plain: bool,
    address: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Code,
    Constant,
    Data,
}

/// A program in this process, until it is dropped.
#[derive(Debug)]
pub struct Loaded {
    symbols: HashMap<String, u64>,
    addresses: Vec<u64>,
    ops: HashMap<u64, usize>,
    pieces: Vec<Piece>,
    code: Range<u64>,
    stubs: Range<u64>,
    _mapping: Mapping,
}

impl Loaded {
    /// Places a program.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn new(program: &Program, externals: &Externals) -> Result<Loaded, LoadError> {
        Loaded::beside(program, externals, None)
    }

    /// Places a version of a program: it shares equal constants and variables with the version loaded before, so that
    /// both compute with the same addresses. The other must outlive this one.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn beside(
        program: &Program,
        externals: &Externals,
        other: Option<&Loaded>,
    ) -> Result<Loaded, LoadError> {
        let places: Vec<Place> = program.ops.iter().map(|op| op.place).collect();
        Loaded::placed(&assembler::marked_object(&program.text)?, &places, externals, other)
    }

    /// Places the object of a text, without addresses of instructions.
    ///
    /// # Errors
    /// [`LoadError`].
    pub(crate) fn object(bytes: &[u8], externals: &Externals) -> Result<Loaded, LoadError> {
        Loaded::placed(bytes, &[], externals, None)
    }

    fn placed(
        bytes: &[u8],
        places: &[Place],
        externals: &Externals,
        other: Option<&Loaded>,
    ) -> Result<Loaded, LoadError> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(LoadError::Unavailable("programs can be loaded on x86-64 Linux only"));
        }
        let file = object::File::parse(bytes)?;
        let mut placed: BTreeMap<usize, Piece> = BTreeMap::new();
        let mut align: HashMap<usize, u64> = HashMap::new();
        for section in file.sections() {
            let name = section.name()?;
            let kind = match section.kind() {
                SectionKind::Text => Group::Code,
                SectionKind::ReadOnlyData
                | SectionKind::ReadOnlyString
                | SectionKind::ReadOnlyDataWithRel
                    if !name.starts_with(".eh_frame") && !name.starts_with(".note") =>
                {
                    Group::Constant
                }
                SectionKind::Data | SectionKind::UninitializedData => Group::Data,
                _ => continue,
            };
            // The object's reader has bounded the sizes of all sections.
            let mut bytes = section.data()?.to_vec();
            bytes.resize(section.size() as usize, 0);
            let plain = section.relocations().next().is_none();
            align.insert(section.index().0, section.align().max(1));
            placed.insert(section.index().0, Piece { name: name.to_owned(), kind, bytes, plain, address: 0 });
        }
        let mut room = Room::new(&file, &placed)?;
        let mut offset = 0usize;
        let mut ends = [0usize; 3];
        for group in [Group::Code, Group::Constant, Group::Data] {
            offset = offset.next_multiple_of(PAGE);
            for (number, piece) in placed.iter_mut().filter(|(_, piece)| piece.kind == group) {
                let shared = other.and_then(|other| other.same(piece));
                piece.address = match shared {
                    Some(address) => address,
                    None => {
                        let to = align[number].max(64) as usize;
                        offset = offset.next_multiple_of(to);
                        let at = offset as u64;
                        offset += piece.bytes.len();
                        at
                    }
                };
                if shared.is_some() {
                    room.shared.push(*number);
                }
            }
            offset = offset.next_multiple_of(16);
            match group {
                Group::Code => {
                    room.stubs_at = offset as u64;
                    offset += 16 * room.stubs.len();
                }
                Group::Constant => {
                    room.table_at = offset as u64;
                    offset += 8 * room.table.len();
                }
                Group::Data => (),
            }
            ends[group as usize] = offset;
        }
        let mut mapping = Mapping::new(offset).map_err(LoadError::Memory)?;
        let base = mapping.address();
        for (number, piece) in &mut placed {
            piece.address += if room.shared.contains(number) { 0 } else { base };
        }
        room.stubs_at += base;
        room.table_at += base;
        room.resolve(&file, &placed, externals)?;
        let filled = room.fill(&file, &placed)?;
        for (number, bytes) in &filled {
            if !room.shared.contains(number) {
                mapping.write((placed[number].address - base) as usize, bytes);
            }
        }
        for (number, bytes) in filled {
            // The file's content decides whether two sections are equal.
            if let Some(piece) = placed.get_mut(&number).filter(|piece| !piece.plain) {
                piece.bytes = bytes;
            }
        }
        mapping.write((room.stubs_at - base) as usize, &room.stub_bytes());
        mapping.write((room.table_at - base) as usize, &room.table_bytes());
        let code_end = ends[0].next_multiple_of(PAGE);
        mapping
            .protect(0, code_end.min(offset.next_multiple_of(PAGE)), Rights::Code)
            .map_err(LoadError::Memory)?;
        let constants = ends[1].next_multiple_of(PAGE);
        if constants > code_end {
            mapping.protect(code_end, constants - code_end, Rights::Constant).map_err(LoadError::Memory)?;
        }
        let addresses: Vec<u64> = places
            .iter()
            .map(|place| placed.get(&place.section).map_or(0, |piece| piece.address + place.offset))
            .collect();
        let mut symbols = HashMap::new();
        for symbol in file.symbols() {
            if let (Some(section), Ok(name)) = (symbol.section_index(), symbol.name())
                && let Some(piece) = placed.get(&section.0)
                && !name.is_empty()
                && !name.starts_with(assembler::MARK)
            {
                symbols.insert(name.to_owned(), piece.address + symbol.address());
            }
        }
        Ok(Loaded {
            symbols,
            ops: addresses.iter().enumerate().map(|(op, &address)| (address, op)).collect(),
            addresses,
            pieces: placed.into_values().collect(),
            code: base..base + ends[0] as u64,
            stubs: room.stubs_at..base + ends[0] as u64,
            _mapping: mapping,
        })
    }

    /// The address of a name that the program defines.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.get(name).copied()
    }

    /// The instruction at an address.
    #[must_use]
    pub fn op_at(&self, address: u64) -> Option<usize> {
        self.ops.get(&address).copied()
    }

    /// The address of an instruction.
    ///
    /// # Panics
    /// If the program has no such instruction.
    #[must_use]
    pub fn address_of(&self, op: usize) -> u64 {
        self.addresses[op]
    }

    /// The ranges of its code, stubs to other code included.
    #[must_use]
    pub fn code(&self) -> Range<u64> {
        self.code.clone()
    }

    /// Whether two addresses are the same place of the same section, in this version and in another, or beside it.
    #[must_use]
    pub fn corresponds(&self, other: &Loaded, here: u64, there: u64) -> bool {
        // An address just after a section belongs to it only if it lies in no other.
        let find = |of: &Loaded, address: u64| {
            let own =
                || of.pieces.iter().filter(|piece| piece.kind != Group::Code && !piece.bytes.is_empty());
            let end = |piece: &Piece| piece.address + piece.bytes.len() as u64;
            own()
                .find(|piece| (piece.address..end(piece)).contains(&address))
                .or_else(|| own().find(|piece| end(piece) == address))
                .map(|piece| (piece.name.clone(), address - piece.address))
        };
        let stub = |of: &Loaded, address: u64| of.stubs.contains(&address).then(|| address - of.stubs.start);
        match (find(self, here), find(other, there)) {
            (Some(one), Some(two)) => one == two,
            (None, None) => matches!((stub(self, here), stub(other, there)), (Some(a), Some(b)) if a == b),
            _ => false,
        }
    }

    /// Whether the `bytes` at two addresses are the same place of the same constants, and differ because of a reference that was filled
    /// in there: a distance between two places in code, where one version is longer.
    #[must_use]
    pub fn filled_apart(&self, other: &Loaded, here: u64, there: u64, bytes: usize) -> bool {
        let find = |of: &'_ Loaded, address: u64| -> Option<(String, usize, Vec<u8>)> {
            let own = of.pieces.iter().filter(|piece| piece.kind == Group::Constant && !piece.plain);
            own.into_iter().find_map(|piece| {
                let at = usize::try_from(address.checked_sub(piece.address)?).ok()?;
                Some((piece.name.clone(), at, piece.bytes.get(at..at.checked_add(bytes)?)?.to_vec()))
            })
        };
        match (find(self, here), find(other, there)) {
            (Some((name, at, one)), Some((same, place, two))) => (name, at) == (same, place) && one != two,
            _ => false,
        }
    }

    /// The current content of its variables.
    #[must_use]
    pub fn variables(&self) -> Vec<(u64, Vec<u8>)> {
        let own = self.pieces.iter().filter(|piece| piece.kind == Group::Data && !piece.bytes.is_empty());
        own.map(|piece| (piece.address, sys::kept(piece.address, piece.bytes.len()))).collect()
    }

    /// Restores its variables to their content at [`Loaded::variables`].
    ///
    /// # Panics
    /// If they are another program's.
    pub fn put_back(&self, variables: &[(u64, Vec<u8>)]) {
        for (address, bytes) in variables {
            let own = |piece: &&Piece| piece.address == *address && piece.bytes.len() == bytes.len();
            assert!(
                self.pieces.iter().any(|piece| own(&piece) && piece.kind == Group::Data),
                "its own variables"
            );
            sys::restore(*address, bytes);
        }
    }

    /// Restores its variables to their content at loading.
    pub fn reset(&self) {
        for piece in self.pieces.iter().filter(|piece| piece.kind == Group::Data) {
            sys::restore(piece.address, &piece.bytes);
        }
    }

    /// The place of an equal, position-independent section of this one.
    fn same(&self, piece: &Piece) -> Option<u64> {
        let equal = |mine: &&Piece| mine.name == piece.name && mine.plain && mine.bytes == piece.bytes;
        (piece.kind != Group::Code && piece.plain)
            .then(|| self.pieces.iter().find(equal).map(|mine| mine.address))
            .flatten()
    }
}

/// The room beside the sections: jumps to far functions, and the table of addresses that code made for shared objects looks up.
#[derive(Default)]
struct Room {
    stubs: BTreeMap<String, u64>,
    stubs_at: u64,
    table: BTreeMap<usize, u64>,
    table_at: u64,
    shared: Vec<usize>,
    /// Symbols by their numbers.
    addresses: HashMap<usize, u64>,
}

impl Room {
    fn new(file: &object::File<'_>, placed: &BTreeMap<usize, Piece>) -> Result<Room, LoadError> {
        let mut out = Room::default();
        for section in file.sections().filter(|section| placed.contains_key(&section.index().0)) {
            for (_, relocation) in section.relocations() {
                let RelocationTarget::Symbol(number) = relocation.target() else { continue };
                let symbol = file.symbol_by_index(number)?;
                if symbol.is_undefined() {
                    out.stubs.insert(symbol.name()?.to_owned(), 0);
                }
                if table_kind(relocation.flags()) {
                    out.table.insert(number.0, 0);
                }
            }
        }
        Ok(out)
    }

    fn resolve(
        &mut self,
        file: &object::File<'_>,
        placed: &BTreeMap<usize, Piece>,
        externals: &Externals,
    ) -> Result<(), LoadError> {
        for symbol in file.symbols() {
            let address = match symbol.section_index() {
                Some(section) => placed.get(&section.0).map(|piece| piece.address + symbol.address()),
                None if symbol.is_undefined() => self
                    .stubs
                    .get(symbol.name()?)
                    .and_then(|_| externals.find(symbol.name().unwrap_or_default())),
                None => None,
            };
            if let Some(address) = address {
                self.addresses.insert(symbol.index().0, address);
                if let Some(stub) = symbol
                    .is_undefined()
                    .then(|| symbol.name().ok())
                    .flatten()
                    .and_then(|n| self.stubs.get_mut(n))
                {
                    *stub = address;
                }
            }
        }
        for (number, entry) in &mut self.table {
            let symbol = file.symbol_by_index(object::SymbolIndex(*number))?;
            let name = || LoadError::Undefined(symbol.name().unwrap_or_default().to_owned());
            *entry = *self.addresses.get(number).ok_or_else(name)?;
        }
        Ok(())
    }

    /// The sections' bytes with all references filled in.
    fn fill(
        &self,
        file: &object::File<'_>,
        placed: &BTreeMap<usize, Piece>,
    ) -> Result<BTreeMap<usize, Vec<u8>>, LoadError> {
        let mut out = BTreeMap::new();
        for section in file.sections() {
            let Some(piece) = placed.get(&section.index().0) else { continue };
            let mut bytes = piece.bytes.clone();
            for (offset, relocation) in section.relocations() {
                let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
                let RelocationTarget::Symbol(number) = relocation.target() else { continue };
                let symbol = file.symbol_by_index(number)?;
                let name = || {
                    let name = symbol.name().unwrap_or_default();
                    if name.is_empty() { piece.name.clone() } else { name.to_owned() }
                };
                let target = *self.addresses.get(&number.0).ok_or_else(|| LoadError::Undefined(name()))?;
                let at = piece.address.wrapping_add(offset);
                let plus = |address: u64| address.wrapping_add_signed(relocation.addend());
                let relative = |address: u64| plus(address).wrapping_sub(at);
                let (value, size, signed) = match r_type {
                    elf::R_X86_64_NONE => continue,
                    elf::R_X86_64_64 => (plus(target), 8, true),
                    elf::R_X86_64_PC64 => (relative(target), 8, true),
                    elf::R_X86_64_32 => (plus(target), 4, false),
                    elf::R_X86_64_32S => (plus(target), 4, true),
                    elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => {
                        let near = i32::try_from(relative(target) as i64).is_ok();
                        let stub = self.stub(symbol.name().unwrap_or_default());
                        // A call or a jump may go through a stub, a read may not.
                        let branch = r_type == elf::R_X86_64_PLT32
                            || offset > 0 && matches!(bytes.get(offset as usize - 1), Some(0xe8 | 0xe9));
                        match stub {
                            Some(stub) if !near && branch => (relative(stub), 4, true),
                            _ => (relative(target), 4, true),
                        }
                    }
                    kind if table_kind(relocation.flags()) => {
                        let _ = kind;
                        let place = self.table.keys().position(|n| *n == number.0).unwrap_or(0) as u64;
                        (relative(self.table_at + 8 * place), 4, true)
                    }
                    kind => return Err(LoadError::Reference { kind, symbol: name() }),
                };
                let fits = size == 8
                    || if signed {
                        i32::try_from(value as i64).is_ok()
                    } else {
                        u32::try_from(value).is_ok()
                    };
                let begin = offset as usize;
                let field = begin.checked_add(size).and_then(|end| bytes.get_mut(begin..end));
                match field {
                    Some(field) if fits => field.copy_from_slice(&value.to_le_bytes()[..size]),
                    Some(_) => return Err(LoadError::Far(name())),
                    None => {
                        return Err(LoadError::Object(format!(
                            "a reference beyond the end of {}",
                            piece.name
                        )));
                    }
                }
            }
            out.insert(section.index().0, bytes);
        }
        Ok(out)
    }

    fn stub(&self, name: &str) -> Option<u64> {
        self.stubs.keys().position(|n| n == name).map(|n| self.stubs_at + 16 * n as u64)
    }

    /// `jmp *0(%rip)`, the address, two bytes of room.
    fn stub_bytes(&self) -> Vec<u8> {
        let one =
            |address: &u64| [&[0xff, 0x25, 0, 0, 0, 0][..], &address.to_le_bytes(), &[0xcc, 0xcc]].concat();
        self.stubs.values().flat_map(one).collect()
    }

    fn table_bytes(&self) -> Vec<u8> {
        self.table.values().flat_map(|address| address.to_le_bytes()).collect()
    }
}

fn table_kind(flags: RelocationFlags) -> bool {
    matches!(
        flags,
        RelocationFlags::Elf {
            r_type: elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX
        }
    )
}
