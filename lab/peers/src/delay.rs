//! Wesolowski's delay function in class groups: chiavdf, as the crate offers it and as its own benchmark squares.
//!
//! Four files of `cargo xtask peers` belong to it, all from the sources inside the package `chiavdf` and over one build of
//! GMP: a library with the package's three functions ([`DelayLibrary`]); a process that squares on request
//! ([`DelayChain`]), since the chain of two threads is assembly that no shared library can hold; chiavdf's own
//! `vdf_bench`, unchanged ([`vdf_bench`]); and the assembly of its 52-bit limbs ([`crate::ifma`]).
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::card::Card;
use crate::signature::PeerError;
use crate::sys::chiavdf::Functions;
use crate::{Peers, REMEDY, Unavailable};

/// A package of the Rust registry that carries C or C++ sources.
#[derive(Debug, PartialEq, Eq)]
pub struct Sources {
    /// The package's name.
    pub package: &'static str,
    /// Its exact version.
    pub version: &'static str,
    /// SHA-256 of its archive, as the registry's index gives it.
    pub checksum: &'static str,
    /// The folder of the sources in it.
    pub folder: &'static str,
}

/// chiavdf.
pub static CHIAVDF: Sources = Sources {
    package: "chiavdf",
    version: "1.2.2",
    checksum: "aa7411c237042774a3c906074725357c87020045fddf4ac7b8d332b5f3d6fc39",
    folder: "cpp",
};

/// GMP 6.3.0, inside the package that binds it.
pub static GMP: Sources = Sources {
    package: "gmp-mpfr-sys",
    version: "1.7.1",
    checksum: "7db155b537cb791b133341f99f68371d86ee7fa4c79aacfbc376d72d23c70531",
    folder: "gmp-6.3.0-c",
};

/// One file that is built from chiavdf, as data.
#[derive(Debug, PartialEq, Eq)]
pub struct DelayFlavour {
    /// The peer's name, unique among peers, and the stem of its files.
    pub name: &'static str,
    /// What it is, for a list.
    pub what: &'static str,
    /// Whether it is a program, not a library.
    pub program: bool,
}

/// The package's functions.
pub const LIBRARY: &str = "chiavdf";
/// The process that squares on request.
pub const CHAIN: &str = "chiavdf-chain";
/// chiavdf's own benchmark.
pub const BENCH: &str = "chiavdf-vdf_bench";
/// The assembly of its 52-bit limbs alone ([`crate::ifma`]).
pub const IFMA: &str = "chiavdf-ifma";

/// Everything that is built from chiavdf, in the order in which it is listed.
pub static DELAY_FLAVOURS: &[DelayFlavour] = &[
    DelayFlavour {
        name: LIBRARY,
        what: "chiavdf 1.2.2: discriminants, proving and verifying, as the Rust package offers them",
        program: false,
    },
    DelayFlavour {
        name: CHAIN,
        what: "chiavdf's two chains of squarings in a process that squares on request",
        program: true,
    },
    DelayFlavour { name: BENCH, what: "chiavdf's own benchmark, unchanged", program: true },
    DelayFlavour { name: IFMA, what: "chiavdf's assembly for AVX-512 IFMA, as a library", program: false },
];

impl DelayFlavour {
    /// Its file's name on this platform.
    #[must_use]
    pub fn file(&self) -> String {
        let suffix = if self.program { std::env::consts::EXE_SUFFIX } else { std::env::consts::DLL_SUFFIX };
        format!("{}{suffix}", self.name)
    }

    /// The file name of its card.
    #[must_use]
    pub fn card(&self) -> String {
        format!("{}.json", self.name)
    }

    /// The file name of the note that says why it could not be built.
    #[must_use]
    pub fn note(&self) -> String {
        format!("{}.unavailable", self.name)
    }

    pub(crate) fn unavailable(&self, dir: &Path, why: String) -> Unavailable {
        Unavailable {
            name: self.name.to_owned(),
            why,
            remedy: format!("{REMEDY} --only {} --out {}", self.name, dir.display()),
        }
    }

    /// Its file and card, where the file is the one that the card describes and may run on this CPU.
    pub(crate) fn checked(&self, dir: &Path) -> Result<(PathBuf, Card), Unavailable> {
        crate::card::checked(dir, self.name, &self.file(), &self.note())
            .map_err(|why| self.unavailable(dir, why))
    }
}

pub(crate) fn flavour(name: &str) -> &'static DelayFlavour {
    // Called with the constants above only.
    DELAY_FLAVOURS.iter().find(|f| f.name == name).unwrap_or(&DELAY_FLAVOURS[0])
}

/// Bytes of a form for discriminants of up to 1,024 bits.
pub const FORM_BYTES: usize = 100;
/// The longest discriminant, in bytes.
pub const MOST_BYTES: usize = 128;

/// The functions of the package `chiavdf`.
pub struct DelayLibrary {
    card: Card,
    functions: Functions,
}

impl std::fmt::Debug for DelayLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DelayLibrary").field("card", &self.card).finish_non_exhaustive()
    }
}

impl DelayLibrary {
    /// Its card.
    #[must_use]
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The magnitude of the discriminant that a challenge stands for, big-endian, as long as `out`.
    ///
    /// # Errors
    /// [`PeerError::Length`] for an output that is empty or longer than [`MOST_BYTES`]; [`PeerError::Refused`].
    pub fn discriminant(&self, challenge: &[u8], out: &mut [u8]) -> Result<(), PeerError> {
        if out.is_empty() || out.len() > MOST_BYTES {
            return Err(PeerError::Length { what: "discriminant", expected: MOST_BYTES, actual: out.len() });
        }
        if self.functions.discriminant(challenge, out) {
            Ok(())
        } else {
            Err(PeerError::Refused { what: "make a discriminant", status: 0 })
        }
    }

    /// The result of squaring x, a form of [`FORM_BYTES`], with the proof in one segment.
    ///
    /// # Errors
    /// [`PeerError::Length`], [`PeerError::Refused`].
    pub fn prove(
        &self,
        challenge: &[u8],
        x: &[u8],
        bits: usize,
        iterations: u64,
    ) -> Result<Vec<u8>, PeerError> {
        crate::cipher::check_length("form", x.len(), FORM_BYTES)?;
        self.functions
            .prove(challenge, x, bits, iterations)
            .ok_or(PeerError::Refused { what: "prove", status: 0 })
    }

    /// Whether the proof of `depth` segments before the last is accepted. The discriminant is given by its magnitude,
    /// big-endian.
    ///
    /// # Errors
    /// [`PeerError::Length`]: the package takes a pointer to x without its length, and would read beyond it.
    pub fn verify(
        &self,
        discriminant: &[u8],
        x: &[u8],
        proof: &[u8],
        iterations: u64,
        depth: u64,
    ) -> Result<bool, PeerError> {
        crate::cipher::check_length("form", x.len(), FORM_BYTES)?;
        Ok(self.functions.verify(discriminant, x, proof, iterations, depth))
    }
}

/// How a chain of chiavdf squares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayPath {
    /// `square_asm`: its fast pipeline, two threads that spin.
    Pipeline,
    /// `square`: NUDUPL over GMP, one thread.
    Gmp,
}

/// A chain of squarings in a process of chiavdf's code. It starts once, from the generator; a request costs a few
/// microseconds.
#[derive(Debug)]
pub struct DelayChain {
    card: Card,
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// What went wrong with the process.
#[derive(Debug)]
pub struct ChainFailed(String);

impl std::fmt::Display for ChainFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "chiavdf's chain: {}", self.0)
    }
}

impl std::error::Error for ChainFailed {}

/// The variables that choose chiavdf's instructions.
const ENABLE_IFMA: &str = "CHIA_ENABLE_AVX512_IFMA";
const NO_AVX2: &str = "CHIA_DISABLE_AVX2";

/// Makes the program use IFMA or not, whatever the environment says.
fn with_ifma(command: &mut Command, ifma: bool) {
    command.env_remove(ENABLE_IFMA).env_remove(NO_AVX2);
    if ifma {
        command.env(ENABLE_IFMA, "1");
    }
}

impl DelayChain {
    /// Its card.
    #[must_use]
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Squares `count` times; returns how many of these its fast path could not do.
    ///
    /// # Errors
    /// [`ChainFailed`]: the process has ended or gave another answer. It cannot be used again.
    pub fn square(&mut self, path: DelayPath, count: u64) -> Result<u64, ChainFailed> {
        let word = if path == DelayPath::Pipeline { "asm" } else { "square" };
        let answer = self.ask(&format!("{word} {count}\n"))?;
        answer.trim().parse().map_err(|_| ChainFailed(format!("said {answer:?} for a number")))
    }

    /// The form reached, reduced: a, b and c in hexadecimal.
    ///
    /// # Errors
    /// As [`DelayChain::square`].
    pub fn form(&mut self) -> Result<[String; 3], ChainFailed> {
        let answer = self.ask("form\n")?;
        let parts: Vec<String> = answer.split_whitespace().map(str::to_owned).collect();
        parts.try_into().map_err(|_| ChainFailed(format!("said {answer:?} for a form")))
    }

    fn ask(&mut self, line: &str) -> Result<String, ChainFailed> {
        let failed = |e: std::io::Error| ChainFailed(e.to_string());
        let input = self.input.as_mut().ok_or_else(|| ChainFailed("it has ended".to_owned()))?;
        input.write_all(line.as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        if self.output.read_line(&mut answer).map_err(failed)? == 0 {
            self.input = None;
            return Err(ChainFailed("it ended without an answer: a fault in its squarings".to_owned()));
        }
        Ok(answer)
    }
}

impl Drop for DelayChain {
    fn drop(&mut self) {
        // It ends by itself when its input closes; a process that does not is killed.
        self.input = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Peers {
    /// The functions of the package `chiavdf`, from the library in `dir`.
    ///
    /// # Errors
    /// [`Unavailable`]: not built, damaged, or built for another CPU.
    pub fn delay_library(dir: &Path) -> Result<DelayLibrary, Unavailable> {
        let flavour = flavour(LIBRARY);
        let (path, card) = flavour.checked(dir)?;
        let functions = Functions::open(&path).map_err(|why| flavour.unavailable(dir, why))?;
        Ok(DelayLibrary { card, functions })
    }

    /// A chain of chiavdf's, started from the generator of the discriminant of that magnitude (hexadecimal digits), with
    /// or without its multiplications by AVX-512 IFMA.
    ///
    /// # Errors
    /// [`Unavailable`]: not built, damaged, built for another CPU, or it does not start.
    pub fn delay_chain(dir: &Path, magnitude: &str, ifma: bool) -> Result<DelayChain, Unavailable> {
        let flavour = flavour(CHAIN);
        let (path, card) = flavour.checked(dir)?;
        let mut command = Command::new(&path);
        with_ifma(&mut command, ifma);
        command.arg(magnitude).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let failed = |why: String| flavour.unavailable(dir, format!("{}: {why}", path.display()));
        let mut process = command.spawn().map_err(|e| failed(e.to_string()))?;
        match (process.stdin.take(), process.stdout.take()) {
            (input @ Some(_), Some(output)) => {
                Ok(DelayChain { card, process, input, output: BufReader::new(output) })
            }
            _ => Err(failed("it has no streams".to_owned())),
        }
    }
}

/// chiavdf's own benchmark with its card: run it as `square_asm N`, `square N` or `discr N`. The command is made to use its
/// multiplications by AVX-512 IFMA, or not.
///
/// # Errors
/// [`Unavailable`]: not built, damaged, or built for another CPU.
pub fn vdf_bench(dir: &Path, ifma: bool) -> Result<(Command, Card), Unavailable> {
    let (path, card) = flavour(BENCH).checked(dir)?;
    let mut command = Command::new(path);
    with_ifma(&mut command, ifma);
    Ok((command, card))
}

/// What one run of `vdf_bench` printed, in the form of its authors' report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchLine {
    /// Milliseconds by its own clock, without starting and printing.
    pub milliseconds: u64,
    /// Squarings that the fast path could not do, where it reports them.
    pub slow: Option<u64>,
}

impl BenchLine {
    /// Reads `Time: 4458 ms; n_slow: 213; speed: 224.3K ips`.
    #[must_use]
    pub fn parse(line: &str) -> Option<BenchLine> {
        let rest = line.trim().strip_prefix("Time: ")?;
        let (milliseconds, rest) = rest.split_once(" ms; ")?;
        let slow = rest.strip_prefix("n_slow: ").and_then(|rest| rest.split_once(';'));
        rest.contains("speed: ").then_some(BenchLine {
            milliseconds: milliseconds.parse().ok()?,
            slow: slow.map(|(n, _)| n.parse()).transpose().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_s_lines_are_read() {
        let line = |text| BenchLine::parse(text);
        assert_eq!(
            line("Time: 15208 ms; n_slow: 213; speed: 65.7K ips"),
            Some(BenchLine { milliseconds: 15_208, slow: Some(213) })
        );
        assert_eq!(
            line("Time: 4750 ms; speed: 210.5K ips\n"),
            Some(BenchLine { milliseconds: 4750, slow: None })
        );
        for bad in ["", "Time: x ms; speed: 1K ips", "Time: 4 s", "n_slow: 213; speed: 65.7K ips"] {
            assert_eq!(line(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_was_never_built_says_how_to_get_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let why = Peers::delay_library(dir.path()).map(|_| ()).expect_err("nothing is there");
        assert!(why.why.contains("does not exist") && why.remedy.contains("--only chiavdf"), "{why}");
        std::fs::write(dir.path().join("chiavdf-chain.unavailable"), "m4 is missing\n").expect("written");
        let why = Peers::delay_chain(dir.path(), "7", false).map(|_| ()).expect_err("nothing is there");
        assert!(why.why.contains("m4 is missing"), "{why}");
    }
}
