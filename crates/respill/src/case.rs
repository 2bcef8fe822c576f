//! A call under test: buffers, calls that prepare them, and the measured call.
//!
//! One step a line, or several with `;` between; `#` begins a comment:
//!
//! ```text
//! seed = random 64                  # other bytes for every input
//! table = zero 32                   # constant; also: bytes 0x00ff17
//! call keypair(pk: out 1184, sk: out 2400, seed)
//! call enc(ct: out 1088, ss: out 32, pk, coins: random 32)
//! measure dec(ss2: out 32, ct, sk)  # the call that is compared or timed
//! ```
//!
//! An argument is a buffer by its name, a buffer that is made there (`name: random 32`, `name: zero 8`, `name: out 32`, which says that
//! it is written, `name: inout 32`), or a plain number. Buffers lie 64 bytes apart at multiples of 64, all in one piece of memory.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::load::Loaded;
use crate::sys::{self, Called};

/// Bytes of dead stack that are filled before a call.
pub const POISON: usize = 256 * 1024;

/// Bytes between buffers.
const GAP: usize = 64;

/// The most bytes of a case's buffers.
const MOST: usize = 256 << 20;

/// What is wrong with a case's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case, line {}: {}", self.line, self.why)
    }
}

impl core::error::Error for CaseError {}

/// A function that a case calls, but the program lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the program has no function `{}`, which the case calls", self.0)
    }
}

impl core::error::Error for Missing {}

/// A buffer's content before the first call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Random,
    Zero,
    Constant(Vec<u8>),
}

/// A buffer of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Buffer {
    name: String,
    range: Range<usize>,
    content: Content,
    written: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Argument {
    Buffer(usize),
    Number(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    function: String,
    arguments: Vec<Argument>,
}

/// The steps of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    buffers: Vec<Buffer>,
    before: Vec<Call>,
    measured: Call,
    bytes: usize,
}

#[derive(Default)]
struct Reader {
    buffers: Vec<Buffer>,
    names: BTreeMap<String, usize>,
    bytes: usize,
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// [`CaseError`], with the line.
    pub fn parse(text: &str) -> Result<Case, CaseError> {
        let mut reader = Reader::default();
        let (mut before, mut measured) = (Vec::new(), None);
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            for step in line.split(';').map(str::trim).filter(|step| !step.is_empty()) {
                let fail = |why: String| CaseError { line: number + 1, why };
                if measured.is_some() {
                    return Err(fail("nothing can come after the measured call".into()));
                }
                let word = step.split_whitespace().next().unwrap_or_default();
                match word {
                    "call" | "measure" => {
                        let call = reader.call(step[word.len()..].trim()).map_err(fail)?;
                        if word == "call" { before.push(call) } else { measured = Some(call) }
                    }
                    _ => {
                        let (name, said) = step.split_once('=').ok_or_else(|| {
                            fail(format!("`{step}` is neither `name = ...` nor `call ...` nor `measure ...`"))
                        })?;
                        reader.buffer(name.trim(), said.trim(), false).map_err(fail)?;
                    }
                }
            }
        }
        let line = text.lines().count().max(1);
        let measured =
            measured.ok_or_else(|| CaseError { line, why: "no `measure function(...)` in it".into() })?;
        Ok(Case { buffers: reader.buffers, before, measured, bytes: reader.bytes + GAP })
    }

    /// The function that is measured.
    #[must_use]
    pub fn measured(&self) -> &str {
        &self.measured.function
    }

    /// The functions that prepare, in their order.
    pub fn preparing(&self) -> impl Iterator<Item = &str> {
        self.before.iter().map(|call| call.function.as_str())
    }

    /// Memory for its buffers. Keep it for all inputs: the addresses are then the same.
    #[must_use]
    pub fn arena(&self) -> Arena {
        Arena { bytes: vec![0; self.bytes + GAP] }
    }

    /// Fills the buffers for the input of this number, and has `loaded` prepare them.
    ///
    /// # Errors
    /// A missing function.
    ///
    /// # Panics
    /// If the arena is another case's.
    pub fn prepare(&self, loaded: &Loaded, arena: &mut Arena, input: u64) -> Result<Ready, Missing> {
        let mut stream = Stream::new(input);
        sys::seed_random_bytes(stream.word());
        arena.bytes.fill(0xc7);
        let begin = arena.begin();
        for buffer in &self.buffers {
            let to = &mut arena.bytes[begin..][buffer.range.clone()];
            match &buffer.content {
                Content::Random => stream.fill(to),
                Content::Zero => to.fill(0),
                Content::Constant(bytes) => to.copy_from_slice(bytes),
            }
        }
        for call in &self.before {
            let _ = self.ready(call, loaded, arena)?.call(&[]);
        }
        // The measured call gets the same random bytes for all preparations.
        sys::seed_random_bytes(stream.word());
        self.ready(&self.measured, loaded, arena)
    }

    /// The measured call with these buffers, of this version of the program.
    ///
    /// # Errors
    /// A missing function.
    pub fn ready_in(&self, loaded: &Loaded, arena: &mut Arena) -> Result<Ready, Missing> {
        self.ready(&self.measured, loaded, arena)
    }

    fn ready(&self, call: &Call, loaded: &Loaded, arena: &mut Arena) -> Result<Ready, Missing> {
        let function = loaded.symbol(&call.function).ok_or_else(|| Missing(call.function.clone()))?;
        let begin = arena.bytes.as_mut_ptr() as u64 + arena.begin() as u64;
        let mut ready = Ready { function, arguments: [0; sys::ARGUMENTS], count: call.arguments.len() };
        for (to, argument) in ready.arguments.iter_mut().zip(&call.arguments) {
            *to = match argument {
                Argument::Buffer(n) => begin + self.buffers[*n].range.start as u64,
                Argument::Number(n) => *n,
            };
        }
        Ok(ready)
    }

    /// The buffer of an arena's byte, and the offset in it.
    #[must_use]
    pub fn buffer_at(&self, byte: usize) -> Option<(&str, usize)> {
        let buffer = self.buffers.iter().find(|buffer| buffer.range.contains(&byte))?;
        Some((&buffer.name, byte - buffer.range.start))
    }

    /// The buffers that calls write, by the case's text.
    pub fn written(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.buffers.iter().filter(|b| b.written).map(|b| (b.name.as_str(), b.range.clone()))
    }
}

impl Reader {
    /// `random 32`, `zero 32`, `bytes 0x..`.
    fn buffer(&mut self, name: &str, said: &str, written: bool) -> Result<usize, String> {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(format!("`{name}` is not a name for a buffer"));
        }
        if self.names.contains_key(name) {
            return Err(format!("`{name}` is defined twice"));
        }
        let (kind, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
        let size = || number(rest).map(|n| n as usize).filter(|n| *n <= MOST);
        let (content, size) = match kind {
            "random" => (Content::Random, size()),
            "zero" => (Content::Zero, size()),
            "bytes" => {
                let bytes = hexadecimal(rest.trim()).ok_or_else(|| format!("`{rest}` is not hex bytes"))?;
                let size = bytes.len();
                (Content::Constant(bytes), Some(size))
            }
            _ => {
                return Err(format!("`{said}` is neither `random BYTES` nor `zero BYTES` nor `bytes 0x...`"));
            }
        };
        let size = size.ok_or_else(|| format!("`{rest}` is not a number of bytes, or too large"))?;
        let start = (self.bytes + GAP).next_multiple_of(GAP);
        self.bytes = start + size;
        if self.bytes > MOST {
            return Err(format!("more than {MOST} bytes of buffers"));
        }
        let range = start..start + size;
        self.buffers.push(Buffer { name: name.to_owned(), range, content, written });
        self.names.insert(name.to_owned(), self.buffers.len() - 1);
        Ok(self.buffers.len() - 1)
    }

    fn call(&mut self, said: &str) -> Result<Call, String> {
        let whole = || format!("`{said}` is not `function(argument, ...)`");
        let (function, rest) = said.split_once('(').ok_or_else(whole)?;
        let inside = rest.trim_end().strip_suffix(')').ok_or_else(whole)?;
        let function = function.trim();
        if function.is_empty() || function.contains(char::is_whitespace) {
            return Err(whole());
        }
        let mut arguments = Vec::new();
        for argument in inside.split(',').map(str::trim).filter(|_| !inside.trim().is_empty()) {
            arguments.push(self.argument(argument)?);
        }
        if arguments.len() > sys::ARGUMENTS {
            return Err(format!("`{function}` has more than {} arguments", sys::ARGUMENTS));
        }
        Ok(Call { function: function.to_owned(), arguments })
    }

    fn argument(&mut self, said: &str) -> Result<Argument, String> {
        if let Some(number) = number(said) {
            return Ok(Argument::Number(number));
        }
        let Some((name, how)) = said.split_once(':').map(|(name, how)| (name.trim(), how.trim())) else {
            return self
                .names
                .get(said)
                .map(|&n| Argument::Buffer(n))
                .ok_or_else(|| format!("no buffer `{said}` is defined"));
        };
        let (kind, rest) = how.split_once(char::is_whitespace).unwrap_or((how, ""));
        let rest = rest.trim();
        match (kind, self.names.get(name)) {
            ("out" | "inout", Some(&n)) => {
                let size = self.buffers[n].range.len();
                if !rest.is_empty() && number(rest) != Some(size as u64) {
                    return Err(format!("`{name}` has {size} bytes, not {rest}"));
                }
                self.buffers[n].written = true;
                Ok(Argument::Buffer(n))
            }
            // Write-only buffers begin as noise, so that bytes left unwritten are the same in all versions.
            ("out" | "inout", None) if number(rest).is_some() => {
                Ok(Argument::Buffer(self.buffer(name, &format!("random {rest}"), true)?))
            }
            ("inout", None) => Ok(Argument::Buffer(self.buffer(name, rest, true)?)),
            ("out", None) => Err(format!("`{name}: out` needs a number of bytes")),
            _ => Ok(Argument::Buffer(self.buffer(name, how, false)?)),
        }
    }
}

fn number(said: &str) -> Option<u64> {
    let said = said.trim();
    if let Some(digits) = said.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    said.parse().ok().or_else(|| said.parse::<i64>().ok().map(|n| n as u64))
}

fn hexadecimal(said: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = said
        .strip_prefix("0x")?
        .bytes()
        .filter(|b| *b != b'_')
        .map(|b| char::from(b).to_digit(16).map(|d| d as u8))
        .collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The memory of a case's buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arena {
    bytes: Vec<u8>,
}

impl Arena {
    /// The beginning of the buffers, a multiple of 64.
    fn begin(&self) -> usize {
        self.bytes.as_ptr().align_offset(GAP)
    }

    /// All buffers and the bytes between them.
    #[must_use]
    pub fn contents(&self) -> &[u8] {
        &self.bytes[self.begin()..]
    }

    /// Restores saved contents.
    ///
    /// # Panics
    /// If they are another arena's.
    pub fn restore(&mut self, contents: &[u8]) {
        let begin = self.begin();
        self.bytes[begin..].copy_from_slice(contents);
    }
}

/// A call that can be made.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// The function's address.
    pub function: u64,
    arguments: [u64; sys::ARGUMENTS],
    count: usize,
}

impl Ready {
    /// Makes it, with the dead stack filled with `poison` first. The foreign code runs in this process: see [`sys::call`].
    #[must_use]
    pub fn call(&self, poison: &[u64]) -> Called {
        sys::call(self.function, self.arguments(), poison)
    }

    /// Its arguments.
    #[must_use]
    pub fn arguments(&self) -> &[u64] {
        &self.arguments[..self.count]
    }
}

/// The noise of the dead stack: words from a seed.
#[must_use]
pub fn poison(seed: u64) -> Vec<u64> {
    let mut stream = Stream::new(seed ^ 0x706f_6973_6f6e);
    (0..POISON / 8).map(|_| stream.word()).collect()
}

/// Numbers that follow from a seed.
#[derive(Clone, Debug)]
pub struct Stream(u64);

impl Stream {
    /// The stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Stream {
        Stream(mixed(seed))
    }

    /// The next word.
    pub const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// Fills bytes.
    pub fn fill(&mut self, to: &mut [u8]) {
        for chunk in to.chunks_mut(8) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Steele, Lea and Flood's finalizer of SplitMix64, which spreads each bit over all.
pub(crate) const fn mixed(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_case_is_named_with_its_line() {
        for (text, line, said) in [
            ("", 1, "no `measure"),
            ("a = random 3\nmeasure f(b)", 2, "no buffer `b`"),
            ("a = random many\nmeasure f(a)", 1, "not a number"),
            ("a = bytes 0x123\n", 1, "not hex bytes"),
            ("a = zero 3; a = zero 4", 1, "defined twice"),
            ("measure f(a: out)", 1, "needs a number"),
            ("measure f()\ncall g()", 2, "after the measured call"),
            ("a = zero 3\nmeasure f(a: out 4)", 2, "has 3 bytes"),
            ("measure f(1,2,3,4,5,6,7,8,9,10,11,12,13)", 1, "more than 12"),
            ("\nnonsense", 2, "neither"),
            ("a = zero 999999999999\nmeasure f(a)", 1, "too large"),
        ] {
            let error = Case::parse(text).expect_err(text);
            assert!(error.line == line && error.why.contains(said), "{text:?}: {error}");
        }
    }

    #[test]
    fn buffers_lie_apart() {
        let case =
            Case::parse("a = random 65 # x\nmeasure f(a, b: out 7, c: inout zero 1, -1, 0x10)").unwrap();
        let ranges: Vec<Range<usize>> = case.buffers.iter().map(|b| b.range.clone()).collect();
        assert_eq!(ranges, [64..129, 256..263, 384..385]);
        assert_eq!(case.buffer_at(258), Some(("b", 2)));
        assert_eq!(case.buffer_at(200), None);
        assert_eq!(case.written().count(), 2);
        assert!(case.arena().contents().len() >= 385 + 64);
    }
}
