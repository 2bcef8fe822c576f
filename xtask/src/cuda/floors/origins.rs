//! Which instruction of the text each access of the machine code comes from, as the assembler says.
//!
//! The program ships without line information. So the text that ships in it is assembled once more, with lines. Only if that
//! makes the machine code that ships, byte by byte, do its lines hold for it.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;

use super::declared::{ACCESSES, Asked};
use super::{ARCHITECTURES, Counted};
use crate::cuda::compile::Toolchain;
use crate::cuda::sass::{Function, Instruction};

/// A kernel's instructions that access memories, in the order of the text, and for each place of the machine code that accesses one
/// which of them it comes from.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Origins {
    text: BTreeMap<String, Vec<&'static str>>,
    code: BTreeMap<(String, String), BTreeMap<u64, usize>>,
}

impl Origins {
    /// Assembles the text in a fat binary for every architecture, and compares.
    pub(super) fn of(
        toolchain: &Toolchain,
        code: &Path,
        listing: &str,
        functions: &[Function],
    ) -> Result<Origins, String> {
        let scratch = tempfile::tempdir().map_err(|e| e.to_string())?;
        let text = toolchain.text(code, scratch.path()).map_err(|e| e.to_string())?;
        let again = thread::scope(|scope| {
            let start = |architecture| {
                let text = &text;
                scope.spawn(move || toolchain.lines(text, architecture))
            };
            let all = ARCHITECTURES.map(start);
            all.map(|one| {
                one.join().unwrap_or_else(|e| std::panic::resume_unwind(e)).map_err(|e| e.to_string())
            })
        });
        let text = fs::read_to_string(&text).map_err(|e| format!("{}: {e}", text.display()))?;
        let again: Vec<String> = again.into_iter().collect::<Result<_, _>>()?;
        let headed = ARCHITECTURES.iter().zip(again).map(|(name, lines)| format!("code for {name}\n{lines}"));
        origins(functions, listing, &text, &headed.collect::<String>())
    }

    /// For each access of a loop what an execution asks for, in the order of `Counted::accesses`; of an operation to each thread, and
    /// of kernels that were not executed, nothing is known.
    pub(super) fn asked(
        &self,
        function: &Function,
        asked: Option<&Asked>,
        loops: &[Counted],
    ) -> Result<Vec<Trip>, String> {
        let Some(asked) = asked else {
            let unknown = |one: &Counted| Trip { unseen: one.accesses.len() as f64, ..Trip::default() };
            return Ok(loops.iter().map(unknown).collect());
        };
        let executed = asked.each()?;
        let text = self.text.get(&function.name).map_or(&[][..], Vec::as_slice);
        if !executed.iter().map(|(name, _)| name.as_str()).eq(text.iter().copied()) {
            return Err(
                "the text has other accesses than the ones that were executed: count them again".into()
            );
        }
        let code = self.code.get(&(function.architecture.clone(), function.name.clone()));
        let trip = |one: &Counted| {
            let mut trip = Trip::default();
            for at in &one.accesses {
                let origin = code.and_then(|code| code.get(at));
                let (name, mean) = origin
                    .map(|n| &executed[*n])
                    .ok_or_else(|| format!("no origin of the access at {at:#x}"))?;
                match (mean, name.ends_with('G')) {
                    (None, _) => trip.unseen += 1.0,
                    (Some(sectors), true) => {
                        (trip.global, trip.sectors) = (trip.global + 1.0, trip.sectors + sectors)
                    }
                    (Some(waves), false) => {
                        (trip.shared, trip.wavefronts) = (trip.shared + 1.0, trip.wavefronts + waves)
                    }
                }
            }
            Ok(trip)
        };
        loops.iter().map(trip).collect()
    }
}

/// What the accesses of a loop ask for, each executed once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Trip {
    shared: f64,
    pub(super) wavefronts: f64,
    global: f64,
    pub(super) sectors: f64,
    /// Accesses that were never executed where they were counted, which are in none of these.
    pub(super) unseen: f64,
}

impl Trip {
    /// Clocks beyond one for each access.
    pub(super) fn longer(self) -> f64 {
        (self.wavefronts - self.shared) + (self.sectors / 4.0 - self.global).max(0.0)
    }
}

/// Whether the instruction is an access that is counted.
pub(super) fn access(i: &Instruction) -> bool {
    ACCESSES.contains(&i.root.as_str())
}

/// Bits of an instruction, and the line of the text that it is said to come from.
type Encoded = BTreeMap<(String, String, u64), (u128, Option<usize>)>;

/// All instructions of a listing by architecture, kernel and address. Both of the disassemblers' forms are read.
fn encoded(listing: &str) -> Encoded {
    let mut all = Encoded::new();
    let (mut architecture, mut kernel, mut line, mut last) = ("", "", None, None);
    for text in listing.lines().map(str::trim) {
        let bits = || {
            let (_, bits) = text.strip_suffix("*/")?.rsplit_once("/* 0x")?;
            u128::from_str_radix(bits.trim(), 16).ok()
        };
        let section = text.strip_prefix(".text.").and_then(|name| name.strip_suffix(':'));
        if let Some(name) = text.strip_prefix("code for ") {
            architecture = name;
        } else if let Some(name) = text.strip_prefix("Function : ").or(section) {
            (kernel, line, last) = (name, None, None);
        } else if let Some((_, number)) = text.split_once("\".nv_debug_ptx_txt\", line ") {
            line = number.parse().ok();
        } else if let Some((at, _)) = text.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) {
            if let Ok(at) = u64::from_str_radix(at, 16) {
                let key = (architecture.to_owned(), kernel.to_owned(), at);
                last = Some(key.clone());
                all.insert(key, (bits().unwrap_or(0), line));
            } else if let (Some(upper), Some(own)) = (bits(), last.take().and_then(|key| all.get_mut(&key))) {
                // The second half of an instruction is on a line of its own.
                own.0 |= upper << 64;
            }
        }
    }
    all
}

/// The accesses of the text by line: the kernel, the instruction of the machine code, and how many are before it in the kernel.
fn accesses(text: &str) -> BTreeMap<usize, (&str, &'static str, usize)> {
    let (mut all, mut kernel, mut count) = (BTreeMap::new(), "", 0);
    for (n, line) in text.lines().enumerate() {
        if let Some((_, rest)) = line.split_once(".entry ") {
            (kernel, count) = (rest.split('(').next().unwrap_or_default().trim(), 0);
        }
        let words = line.split_whitespace().skip_while(|word| word.starts_with('@'));
        let parts: Vec<&str> = words.take(1).flat_map(|word| word.split('.')).collect();
        let kind = |part: &&str| matches!(*part, "shared" | "global");
        let name = match (parts.first(), parts.iter().find(|part| kind(part))) {
            (Some(&"ld"), Some(&"shared")) => "LDS",
            (Some(&"st"), Some(&"shared")) => "STS",
            (Some(&"atom"), Some(&"shared")) => "ATOMS",
            (Some(&"ld"), Some(&"global")) => "LDG",
            (Some(&"st"), Some(&"global")) => "STG",
            _ => continue,
        };
        all.insert(n + 1, (kernel, name, count));
        count += 1;
    }
    all
}

/// From the listing that ships, the text, and the listing of what was made from it again.
pub(super) fn origins(
    functions: &[Function],
    listing: &str,
    text: &str,
    again: &str,
) -> Result<Origins, String> {
    let (ships, again) = (encoded(listing), encoded(again));
    if let Some(((architecture, kernel, at), _)) = ships
        .iter()
        .find(|(key, (bits, _))| again.get(key).is_none_or(|(other, _)| other != bits))
        .or_else(|| again.iter().find(|(key, _)| !ships.contains_key(key)))
    {
        return Err(format!(
            "{kernel} ({architecture}) at {at:#x}: the text, assembled again, gives other machine code than what ships"
        ));
    }
    let accesses = accesses(text);
    let mut found = Origins::default();
    for (kernel, name, _) in accesses.values() {
        found.text.entry((*kernel).to_owned()).or_default().push(name);
    }
    for function in functions {
        let key = (function.architecture.clone(), function.name.clone());
        let own = found.code.entry(key).or_default();
        for i in function.code.iter().filter(|i| access(i)) {
            let line = again.get(&(function.architecture.clone(), function.name.clone(), i.at));
            let line = line.and_then(|(_, line)| *line);
            match line.and_then(|line| accesses.get(&line)) {
                Some((kernel, name, n)) if *kernel == function.name && *name == i.root => {
                    _ = own.insert(i.at, *n)
                }
                _ => {
                    return Err(format!(
                        "{} ({}): '{}' at {:#x} is said to come from line {line:?} of the text, which has no such access",
                        function.name, function.architecture, i.text, i.at
                    ));
                }
            }
        }
    }
    Ok(found)
}
