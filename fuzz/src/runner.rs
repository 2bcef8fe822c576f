//! A runner without instrumentation: the corpus, and mutations of it. It finds only by chance what libFuzzer finds. Its purpose
//! is to test every change with every kept input, and some new ones.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Target;

/// How long to go on.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Mutated inputs.
    pub runs: u64,
    /// Time, if that ends it first.
    pub time: Option<Duration>,
    /// The seed of the mutations.
    pub seed: u64,
}

/// The outcome for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Inputs of the corpus, those among them that the target makes itself.
    pub corpus: u64,
    /// Mutated inputs that were run.
    pub mutated: u64,
    /// The input that broke a promise, and which.
    pub broken: Option<(Vec<u8>, String)>,
}

/// Inputs longer than this are cut.
const LONGEST: usize = 4096;

/// The corpus of a target: files of its folder, by name, then its own seeds.
///
/// # Errors
/// A folder or file exists and cannot be read.
pub fn corpus(target: &Target, folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut files: Vec<PathBuf> = match fs::read_dir(folder.join(target.name)) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    files.sort();
    let mut inputs: Vec<Vec<u8>> = files.iter().map(fs::read).collect::<io::Result<_>>()?;
    for seed in (target.seeds)() {
        if !inputs.contains(&seed) {
            inputs.push(seed);
        }
    }
    Ok(inputs)
}

/// Writes a target's own seeds into its folder of the corpus, for fuzzers that begin there.
///
/// # Errors
/// A file cannot be written.
pub fn write_seeds(target: &Target, folder: &Path) -> io::Result<usize> {
    let folder = folder.join(target.name);
    fs::create_dir_all(&folder)?;
    let seeds = (target.seeds)();
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:02}")), seed)?;
    }
    Ok(seeds.len())
}

/// Runs a target on its corpus and on mutations of it, until one breaks a promise or the effort is spent.
#[must_use]
pub fn run(target: &Target, corpus: &[Vec<u8>], effort: Effort) -> Outcome {
    let mut outcome = Outcome { corpus: 0, mutated: 0, broken: None };
    for input in corpus {
        outcome.corpus += 1;
        if let Some(why) = broken(target, input) {
            outcome.broken = Some((input.clone(), why));
            return outcome;
        }
    }
    let start = Instant::now();
    let mut dice = Dice(effort.seed);
    while outcome.mutated < effort.runs && effort.time.is_none_or(|time| start.elapsed() < time) {
        let input = mutation(corpus, &mut dice);
        outcome.mutated += 1;
        if let Some(why) = broken(target, &input) {
            outcome.broken = Some((shortened(target, input), why));
            return outcome;
        }
    }
    outcome
}

fn broken(target: &Target, input: &[u8]) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| (target.run)(input))).err()?;
    let text = panic.downcast_ref::<String>().map(String::as_str);
    Some(text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned())
}

/// The input without the parts that are not needed to break the promise.
fn shortened(target: &Target, mut input: Vec<u8>) -> Vec<u8> {
    let mut piece = input.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at + piece <= input.len() {
            let mut less = input.clone();
            less.drain(at..at + piece);
            if broken(target, &less).is_some() {
                input = less;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    input
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Bytes at which code tends to branch.
const EDGES: [u8; 10] = [0, 1, 0x7f, 0x80, 0xff, b'0', b'9', b'-', b'\n', 64];

fn mutation(corpus: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut input = match corpus.get(dice.below(corpus.len())) {
        Some(input) => input.clone(),
        None => Vec::new(),
    };
    for _ in 0..=dice.below(4) {
        let at = dice.below(input.len());
        match dice.below(8) {
            0 if !input.is_empty() => input[at] ^= 1 << dice.below(8),
            1 if !input.is_empty() => input[at] = EDGES[dice.below(EDGES.len())],
            2 if !input.is_empty() => input[at] = dice.next() as u8,
            3 => input.truncate(at),
            4 => {
                let fresh: Vec<u8> = (0..dice.below(16)).map(|_| dice.next() as u8).collect();
                input.splice(at..at, fresh);
            }
            5 => {
                let end = at + dice.below(input.len() - at);
                input.drain(at..end);
            }
            6 => {
                let end = at + dice.below((input.len() - at).min(64));
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
            _ => {
                if let Some(other) = corpus.get(dice.below(corpus.len())) {
                    let from = dice.below(other.len());
                    input.truncate(at);
                    input.extend_from_slice(&other[from..]);
                }
            }
        }
    }
    input.truncate(LONGEST);
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TARGETS;

    /// A fault that only a changed input meets: the right first byte is in the corpus, the second is not.
    fn faulty(data: &[u8]) {
        assert!(!(data.len() > 3 && data[0] == b'a' && data[1] & 0x40 == 0), "planted");
    }

    const FAULTY: Target = Target::new("faulty", faulty, || vec![b"apple".to_vec()]);

    #[test]
    fn a_planted_fault_is_found_and_its_input_made_short() {
        let corpus = corpus(&FAULTY, Path::new("nowhere")).expect("a missing folder is not an error");
        let sound = run(&FAULTY, &corpus, Effort { runs: 0, time: None, seed: 1 });
        assert_eq!(sound, Outcome { corpus: 1, mutated: 0, broken: None });
        let outcome = run(&FAULTY, &corpus, Effort { runs: 10_000, time: None, seed: 1 });
        let (input, why) = outcome.broken.expect("it is found");
        assert_eq!((why.as_str(), input.len(), input[0]), ("planted", 4, b'a'));
    }

    #[test]
    fn a_kept_input_is_replayed() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("faulty")).expect("a folder in it");
        fs::write(folder.path().join("faulty/one"), b"a\0\0\0").expect("a file");
        let corpus = corpus(&FAULTY, folder.path()).expect("it can be read");
        let outcome = run(&FAULTY, &corpus, Effort { runs: 0, time: None, seed: 1 });
        assert_eq!(outcome.broken, Some((b"a\0\0\0".to_vec(), "planted".to_owned())));
        // Seeds that were written are read, and no seed appears twice.
        assert_eq!(write_seeds(&FAULTY, folder.path()).expect("it can be written"), 1);
        assert_eq!(super::corpus(&FAULTY, folder.path()).expect("it can be read").len(), 2);
    }

    #[test]
    fn every_target_holds_on_its_corpus_and_a_few_mutations() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        for target in TARGETS {
            let corpus = corpus(target, &folder).expect("it can be read");
            assert!(!corpus.is_empty(), "{} has nothing to begin with", target.name);
            let outcome = run(target, &corpus, Effort { runs: 20, time: None, seed: 7 });
            let broken = outcome.broken.map(|(input, why)| format!("{why}: {input:02x?}"));
            assert_eq!(broken, None, "{}", target.name);
        }
    }
}
