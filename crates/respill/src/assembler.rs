//! The machine's assembler: a text's bytes, and the place of each statement's bytes.
//!
//! A label is put before every instruction of a copy of the text; labels change no byte, and the object file's symbols
//! then give the place of every line, independent of the text's own line information.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};

use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationKind, RelocationTarget, SymbolKind,
};

use crate::encoded;
use crate::text::{Edits, Kind, Text};

/// Why assembling failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum AssembleError {
    /// No assembler could be started.
    Missing {
        /// The commands that were tried.
        tried: Vec<String>,
    },
    /// The assembler refused a statement.
    Refused {
        /// Its line, if the assembler names one.
        line: Option<usize>,
        /// All lines that it complains about.
        all: Vec<usize>,
        /// Its message.
        why: String,
    },
    /// The object file is not supported.
    Object(String),
    /// The object, or its sections when they are loaded, have more bytes than [`LARGEST`].
    Large {
        /// At least this many.
        bytes: u64,
    },
    /// A file could not be written or read.
    Io(io::Error),
}

impl fmt::Display for AssembleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AssembleError::Missing { tried } => {
                write!(
                    f,
                    "no assembler: could not start {}; binutils or clang has one, LANEWORK_AS names another",
                    tried.join(" or ")
                )
            }
            AssembleError::Refused { why, .. } => f.write_str(why),
            AssembleError::Object(why) => write!(f, "the assembled object cannot be read: {why}"),
            AssembleError::Large { bytes } => {
                write!(f, "the assembled object has {bytes} bytes or more; the limit is {LARGEST}")
            }
            AssembleError::Io(e) => write!(f, "a temporary file: {e}"),
        }
    }
}

impl core::error::Error for AssembleError {}

impl From<object::Error> for AssembleError {
    fn from(e: object::Error) -> AssembleError {
        AssembleError::Object(e.to_string())
    }
}

impl From<io::Error> for AssembleError {
    fn from(e: io::Error) -> AssembleError {
        AssembleError::Io(e)
    }
}

/// A place in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The section's number.
    pub section: usize,
    /// Bytes from its start.
    pub offset: u64,
}

/// A symbol that the text defines.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// Whether other files see it.
    pub global: bool,
    /// Whether it was declared to be a function.
    pub function: bool,
    /// Whether another file may define it instead.
    pub weak: bool,
    /// Whether it was declared to be data.
    pub(crate) data: bool,
}

/// What the linker and other files see of a symbol, apart from its place in code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) name: String,
    /// Its binding and type, and its visibility.
    flags: (u8, u8),
    home: SeenAt,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SeenAt {
    /// In a section with code.
    Code(usize),
    /// In another section, with its bytes.
    Data(Place, u64),
    /// Nowhere yet: in another file, or this many bytes with this alignment.
    Elsewhere(u64, u64),
    /// A number.
    Number(u64),
}

/// What the linker sees of a section, apart from its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    name: String,
    kind: object::SectionKind,
    flags: u64,
    align: u64,
    /// Its bytes when it is loaded, unless it holds code.
    size: u64,
}

/// A reference for the linker to fill in.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The symbol, or nothing for one that the file itself defines without a name.
    pub name: Option<String>,
    /// Its place, if this file defines it, the addend of a section's symbol included.
    pub place: Option<Place>,
    /// The addend of its address.
    pub addend: i64,
    /// Whether the address itself is filled in, not a distance.
    pub absolute: bool,
    /// The number of its kind in the x86-64 ELF supplement.
    pub(crate) kind: u32,
}

impl Reference {
    /// The bytes of its field. A mark of a call by a descriptor has none.
    pub(crate) const fn width(&self) -> u64 {
        match self.kind {
            35 => 0,
            14 | 15 => 1,
            12 | 13 => 2,
            1 | 16 | 17 | 18 | 24 | 25 | 27..=31 | 33 | 36 | 37 | 38 => 8,
            _ => 4,
        }
    }
}

/// An assembled text.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The statements that the assembler does not know; a byte that is not an instruction replaces each.
    pub unknown: BTreeSet<usize>,
    /// The beginning of the bytes of each statement that is an instruction, or may be one.
    pub places: HashMap<usize, Place>,
    /// The bytes of each section that holds code, by number.
    pub code: HashMap<usize, Vec<u8>>,
    /// The symbols, without those that were added here.
    pub symbols: Vec<Symbol>,
    /// References of code and of data that are loaded, by the place of the field.
    pub references: HashMap<Place, Reference>,
    /// The names and bytes of sections that are loaded and hold no code, without those that only unwinders read.
    pub data: Vec<(String, Vec<u8>)>,
    /// Sections that a program may write.
    pub written: BTreeSet<usize>,
    /// The names of sections that are not loaded, or that only unwinders read.
    pub idle: BTreeSet<String>,
    /// The symbols that other files see or define, in the order of their names.
    pub(crate) seen: Vec<Seen>,
    /// The sections that are loaded, but for those that only unwinders read.
    pub(crate) shapes: Vec<Shape>,
}

/// The most bytes of an object, and of all its sections when they are loaded.
pub const LARGEST: u64 = 1 << 30;

/// The beginning of the labels that are put before instructions.
pub(crate) const MARK: &str = ".Llanework.";

/// The commands that assemble: LANEWORK_AS alone if it is set, else GNU as, else clang.
fn commands() -> Vec<Vec<String>> {
    let words = |said: &str| said.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    match std::env::var("LANEWORK_AS") {
        Ok(said) if !said.trim().is_empty() => vec![words(&said)],
        _ => vec![words("as --64"), words("clang -c -x assembler -Wno-unused-command-line-argument")],
    }
}

fn keep_locals(command: &[String]) -> &'static str {
    if command.iter().any(|word| word.contains("clang")) { "-Wa,-L" } else { "--keep-locals" }
}

/// Runs the first available assembler over `text`, and the next if it refuses: each supports directives that others do
/// not.
///
/// # Errors
/// No assembler, or the first one's message.
pub fn object_of(text: &str, keep: bool, object: &Path) -> Result<(), AssembleError> {
    let source = object.with_extension("s");
    std::fs::write(&source, text)?;
    let (mut tried, mut refused) = (Vec::new(), None);
    for command in commands() {
        let mut run = Command::new(&command[0]);
        run.args(&command[1..]).arg("-o").arg(object).env("LC_ALL", "C");
        if keep {
            run.arg(keep_locals(&command));
        }
        match output_of(run.arg(&source)) {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) if wrote_too_much(output.status) => {
                return Err(AssembleError::Large { bytes: LARGEST + 1 });
            }
            Ok(output) => {
                refused.get_or_insert_with(|| refusal(&output, &source));
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => tried.push(command[0].clone()),
            Err(e) => return Err(e.into()),
        }
    }
    Err(refused.unwrap_or(AssembleError::Missing { tried }))
}

/// What an assembler says, which may write no file of more than [`LARGEST`] bytes where the system can limit that.
fn output_of(run: &mut Command) -> io::Result<Output> {
    let child = run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    crate::sys::limit_files(child.id(), LARGEST)?;
    child.wait_with_output()
}

/// Whether a process ended since its file became too large.
fn wrote_too_much(status: ExitStatus) -> bool {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    return std::os::unix::process::ExitStatusExt::signal(&status) == Some(libc::SIGXFSZ);
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    return {
        let _ = status;
        false
    };
}

/// The first complaint, with its line: `file:12: Error: ...` and `file:12:3: error: ...` are what assemblers print.
fn refusal(output: &Output, source: &Path) -> AssembleError {
    let said = String::from_utf8_lossy(&output.stderr);
    let prefix = format!("{}:", source.display());
    let complaints: Vec<(usize, String)> = said
        .lines()
        .filter_map(|line| {
            let rest = line.strip_prefix(&prefix)?;
            let (number, rest) = rest.split_once(':')?;
            let number: usize = number.trim().parse().ok()?;
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':').trim();
            complaint(rest).map(|why| (number, why))
        })
        .collect();
    let all = complaints.iter().map(|&(line, _)| line).collect();
    match complaints.into_iter().next() {
        Some((line, why)) => AssembleError::Refused { line: Some(line), all, why },
        None => AssembleError::Refused { line: None, all, why: without_line(&said, &prefix) },
    }
}

/// What follows `Error:` or `Fatal error:`.
fn complaint(said: &str) -> Option<String> {
    let lower = said.to_ascii_lowercase();
    let length = ["error", "fatal error"].iter().find(|word| lower.starts_with(**word))?.len();
    Some(said[length..].trim_start_matches(':').trim().to_owned())
}

/// The first complaint about the file as a whole; else the first line that is not a heading. Our own name of the file is
/// left out.
fn without_line(said: &str, prefix: &str) -> String {
    let bare = |line: &str| line.trim_start_matches(prefix).trim().to_owned();
    let mut lines = said.lines().map(bare);
    let whole = lines.clone().find_map(|line| complaint(&line));
    let heading = |line: &String| line.eq_ignore_ascii_case("assembler messages:");
    let first = || lines.find(|line| !heading(line) && !line.is_empty());
    let why = whole.or_else(first).unwrap_or_else(|| "the assembler failed without a message".to_owned());
    why.replace(prefix, "")
}

/// Assembles a text and finds the bytes of each of its instructions.
///
/// # Errors
/// [`AssembleError`].
pub fn assemble(text: &Text) -> Result<Assembled, AssembleError> {
    let (bytes, unknown) = isolated(text)?;
    let mut out = read(&bytes)?;
    out.unknown = unknown;
    Ok(out)
}

/// Whether a clang directive only informs the linker's folding: GNU as does not support these, and they change no byte.
fn for_the_linker(said: &str) -> bool {
    let name = said.split_ascii_whitespace().next().unwrap_or_default();
    matches!(name, ".addrsig" | ".addrsig_sym" | ".cg_profile")
}

/// The object of an unchanged text.
///
/// # Errors
/// [`AssembleError`].
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn plain_object(text: &Text) -> Result<Vec<u8>, AssembleError> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("plain.o");
    object_of(&text.edited(&readable(text)), false, &path)?;
    content(&path)
}

/// An object, if it is not too large.
fn content(path: &Path) -> Result<Vec<u8>, AssembleError> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes > LARGEST {
        return Err(AssembleError::Large { bytes });
    }
    let bytes = std::fs::read(path)?;
    loaded_size(&object::File::parse(&*bytes)?)?;
    Ok(bytes)
}

/// The bytes of all sections when they are loaded, each with its alignment.
fn loaded_size(file: &object::File<'_>) -> Result<u64, AssembleError> {
    let room = |section: object::Section<'_, '_>| section.size().saturating_add(section.align());
    let bytes = file.sections().map(room).fold(0, u64::saturating_add);
    if bytes > LARGEST { Err(AssembleError::Large { bytes }) } else { Ok(bytes) }
}

/// The object of a text with a label before each instruction.
///
/// # Errors
/// [`AssembleError`].
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn marked_object(text: &Text) -> Result<Vec<u8>, AssembleError> {
    isolated(text).map(|(bytes, _)| bytes)
}

/// Whether the cut text and the given one assemble to the same object, to the last byte.
///
/// # Errors
/// [`AssembleError`].
pub(crate) fn is_given(text: &Text) -> Result<bool, AssembleError> {
    let Some(given) = text.given() else { return Ok(true) };
    let directory = tempfile::tempdir()?;
    let object = |text: &str| -> Result<Vec<u8>, AssembleError> {
        let path = directory.path().join("given.o");
        object_of(text, false, &path)?;
        content(&path)
    };
    Ok(object(given)? == object(text.text())?)
}

/// Leaves out what only the linker reads.
fn readable(text: &Text) -> Edits {
    let mut edits = Edits::default();
    for i in (0..text.statements().len()).filter(|&i| for_the_linker(text.of(i))) {
        edits.instead(i, "");
    }
    edits
}

/// The most often that an assembler complains about further statements.
const ROUNDS: usize = 16;

/// A byte that is not an instruction, in place of one that the assembler does not know.
const UNKNOWN: &str = ".byte 0x06";

/// An object, and the statements that the assembler does not know. If these are most, it is not a text for this assembler.
fn isolated(text: &Text) -> Result<(Vec<u8>, BTreeSet<usize>), AssembleError> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("text.o");
    let instructions = || {
        let all = text.statements().iter().enumerate();
        all.filter(|(_, statement)| statement.kind == Kind::Instruction)
    };
    let (mut unknown, mut rounds): (BTreeSet<usize>, usize) = Default::default();
    loop {
        let mut edits = readable(text);
        for i in (0..text.statements().len()).filter(|&i| encoded::may_be_one(text, i)) {
            edits.before(i, format!("{MARK}{i}: "));
            if unknown.contains(&i) {
                edits.instead(i, UNKNOWN);
            }
        }
        match object_of(&text.edited(&edits), true, &path) {
            Ok(()) => return Ok((content(&path)?, unknown)),
            Err(AssembleError::Refused { line, all, why }) => {
                let before = unknown.len();
                let lines: HashSet<usize> = all.iter().copied().collect();
                unknown.extend(
                    instructions().filter(|(_, statement)| lines.contains(&statement.line)).map(|(i, _)| i),
                );
                rounds += 1;
                let many = 2 * unknown.len() > instructions().count() || rounds > ROUNDS;
                if unknown.len() == before || many {
                    return Err(AssembleError::Refused { line, all, why });
                }
            }
            Err(e) => return Err(e),
        }
    }
}

fn read(bytes: &[u8]) -> Result<Assembled, AssembleError> {
    let file = object::File::parse(bytes)?;
    let mut out = Assembled {
        unknown: BTreeSet::new(),
        places: HashMap::new(),
        code: HashMap::new(),
        symbols: Vec::new(),
        references: HashMap::new(),
        data: Vec::new(),
        written: BTreeSet::new(),
        idle: BTreeSet::new(),
        seen: Vec::new(),
        shapes: Vec::new(),
    };
    for symbol in file.symbols() {
        out.seen.extend(seen(&file, &symbol)?);
        let (Some(section), Ok(name)) = (symbol.section_index(), symbol.name()) else { continue };
        let place = Place { section: section.0, offset: symbol.address() };
        if let Some(number) = name.strip_prefix(MARK).and_then(|n| n.parse().ok()) {
            out.places.insert(number, place);
        } else if !name.is_empty() && symbol.kind() != SymbolKind::Section {
            // Only their place distinguishes names without a declared type from data.
            let function = symbol.kind() == SymbolKind::Text;
            let (global, weak) = (symbol.is_global(), symbol.is_weak());
            let data = symbol.kind() == SymbolKind::Data;
            out.symbols.push(Symbol { name: name.to_owned(), place, global, function, weak, data });
        }
    }
    out.seen.sort();
    let flag = |section: &object::Section<'_, '_>, flag: u32| flags(section) & u64::from(flag) != 0;
    let loaded = |section: &object::Section<'_, '_>| flag(section, object::elf::SHF_ALLOC);
    // Tables of unwinders are data like others if something else refers to them.
    let of_unwinders =
        |name: &str| name == ".eh_frame" || name == ".sframe" || name.starts_with(".gcc_except_table");
    let mut named = HashSet::new();
    for section in file
        .sections()
        .filter(|section| loaded(section) && section.name().is_ok_and(|name| !of_unwinders(name)))
    {
        let targets = section.relocations().filter_map(|(_, relocation)| match relocation.target() {
            RelocationTarget::Symbol(target) => file.symbol_by_index(target).ok()?.section_index(),
            _ => None,
        });
        named.extend(targets);
    }
    let mut busy = BTreeSet::new();
    for section in file.sections() {
        let name = section.name()?;
        let code = section.kind() == object::SectionKind::Text;
        let idle = !code && (!loaded(&section) || of_unwinders(name) && !named.contains(&section.index()));
        if idle { &mut out.idle } else { &mut busy }.insert(name.to_owned());
        if !idle {
            out.shapes.push(Shape {
                name: name.to_owned(),
                kind: section.kind(),
                flags: flags(&section),
                align: section.align(),
                size: if code { 0 } else { section.size() },
            });
        }
        if !code {
            if !idle {
                out.data.push((name.to_owned(), section.data()?.to_vec()));
            }
            if flag(&section, object::elf::SHF_WRITE) && !name.starts_with(".data.rel.ro") {
                out.written.insert(section.index().0);
            }
            if idle {
                continue;
            }
        } else {
            out.code.insert(section.index().0, section.data()?.to_vec());
        }
        let number = section.index().0;
        for (offset, relocation) in section.relocations() {
            let kind = match relocation.flags() {
                object::RelocationFlags::Elf { r_type } => r_type,
                _ => u32::MAX,
            };
            // It fills nothing in.
            if kind == object::elf::R_X86_64_NONE {
                continue;
            }
            let absolute = relocation.kind() == RelocationKind::Absolute;
            let addend = relocation.addend();
            let mut reference = Reference { name: None, place: None, addend, absolute, kind };
            let field = Place { section: number, offset };
            let whole = offset.checked_add(reference.width()).is_some_and(|end| end <= section.size());
            let RelocationTarget::Symbol(target) = relocation.target() else {
                refer(&mut out, field, reference, whole)?;
                continue;
            };
            let symbol = file.symbol_by_index(target)?;
            // A symbol that other files may define instead, or that only finds the function to run, is not the code that is called.
            let elsewhere = symbol.is_weak()
                || matches!(symbol.flags(), object::SymbolFlags::Elf { st_info, .. } if st_info & 15 == 10);
            let place = symbol.section_index().filter(|_| !elsewhere).map(|section| {
                let base = if symbol.kind() == SymbolKind::Section { 0 } else { symbol.address() };
                Place { section: section.0, offset: base }
            });
            reference.name = symbol.name().ok().filter(|name| !name.is_empty()).map(str::to_owned);
            reference.place = place;
            refer(&mut out, field, reference, whole)?;
        }
    }
    out.idle.retain(|name| !busy.contains(name));
    Ok(out)
}

/// Adds a reference. Each has a field of its own inside its section.
fn refer(out: &mut Assembled, field: Place, reference: Reference, whole: bool) -> Result<(), AssembleError> {
    if !whole {
        return Err(AssembleError::Object(format!(
            "a reference beyond the end of section {}",
            field.section
        )));
    }
    match out.references.insert(field, reference) {
        None => Ok(()),
        Some(_) => {
            let Place { section, offset } = field;
            Err(AssembleError::Object(format!("two references for byte {offset} of section {section}")))
        }
    }
}

fn flags(section: &object::Section<'_, '_>) -> u64 {
    if let object::SectionFlags::Elf { sh_flags } = section.flags() { sh_flags } else { 0 }
}

/// What other files see of a symbol: nothing, if it is local.
fn seen(file: &object::File<'_>, symbol: &object::Symbol<'_, '_>) -> Result<Option<Seen>, AssembleError> {
    let name = symbol.name()?;
    if symbol.is_local() || name.is_empty() {
        return Ok(None);
    }
    let flags = match symbol.flags() {
        object::SymbolFlags::Elf { st_info, st_other } => (st_info, st_other),
        _ => (0, 0),
    };
    let home = match symbol.section_index() {
        Some(section) if file.section_by_index(section)?.kind() == object::SectionKind::Text => {
            SeenAt::Code(section.0)
        }
        Some(section) => SeenAt::Data(Place { section: section.0, offset: symbol.address() }, symbol.size()),
        None if symbol.is_undefined() || symbol.is_common() => {
            SeenAt::Elsewhere(symbol.address(), symbol.size())
        }
        None => SeenAt::Number(symbol.address()),
    };
    Ok(Some(Seen { name: name.to_owned(), flags, home }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn refused(said: &str) -> (Option<usize>, String) {
        let output = Output {
            status: std::process::ExitStatus::from_raw(256),
            stdout: Vec::new(),
            stderr: said.as_bytes().to_vec(),
        };
        match refusal(&output, Path::new("/tmp/x/text.s")) {
            AssembleError::Refused { line, why, .. } => (line, why),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn the_first_complaint_is_told_without_our_own_path() {
        let heading = "/tmp/x/text.s: Assembler messages:\n";
        for (said, line, why) in [
            ("/tmp/x/text.s:3: Error: bad\n/tmp/x/text.s:4: Error: worse\n", Some(3), "bad"),
            ("/tmp/x/text.s:3:7: error: bad\n", Some(3), "bad"),
            ("/tmp/x/text.s:3: Fatal error: bad\n", Some(3), "bad"),
            ("/tmp/x/text.s: Error: open CFI\n", None, "open CFI"),
            ("other.s:2: Warning: odd\nother.s:2: Error: bad\n", None, "other.s:2: Warning: odd"),
            ("", None, "the assembler failed without a message"),
        ] {
            assert_eq!(refused(said), (line, why.to_owned()), "{said}");
            assert_eq!(refused(&format!("{heading}{said}")), (line, why.to_owned()), "{said}");
        }
    }
}
