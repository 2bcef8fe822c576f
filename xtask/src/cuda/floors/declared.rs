//! `floors.toml`: how often the warps of an operation go through each loop, as formulas over the parameters.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use serde::Deserialize;

/// `floors.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declared {
    /// The fat binary, and the header with the parameter sets.
    pub(super) code: String,
    pub(super) header: String,
    /// What operations ask of memories, counted where they are executed.
    pub(super) traffic: Option<String>,
    pub(super) sets: Vec<String>,
    pub(super) card: Card,
    /// Kernels whose trips do not follow from the parameters, and why.
    pub(super) undeclared: BTreeMap<String, String>,
    /// Kernels with loops in which an access was never executed where they were counted, and why.
    #[serde(default)]
    pub(super) unseen: BTreeMap<String, String>,
    /// Names for the formulas of all kernels.
    #[serde(default)]
    pub(super) with: BTreeMap<String, Formula>,
    pub(super) kernel: Vec<Kernel>,
    /// Kernels that an operation takes one after another.
    #[serde(default)]
    pub(super) whole: BTreeMap<String, Vec<String>>,
}

/// The file of `traffic`: sums over so many operations, by set and kernel.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Traffic {
    pub(super) operations: f64,
    pub(super) set: BTreeMap<String, BTreeMap<String, Asked>>,
}

/// Accesses of warps to shared memory, their wavefronts, and these without conflicts; to device memory, their sectors, and these if bytes
/// lay side by side.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    pub(super) shared: f64,
    pub(super) wavefronts: f64,
    pub(super) least_wavefronts: f64,
    pub(super) global: f64,
    pub(super) sectors: f64,
    pub(super) least_sectors: f64,
    /// Runs of its instructions that access memories, in the order of the text: how many, their name, and the wavefronts or sectors
    /// of an execution, or `-` if none was executed.
    #[serde(default)]
    pub(super) accesses: Vec<String>,
}

/// Instructions that access memories.
pub(super) const ACCESSES: [&str; 5] = ["LDS", "STS", "ATOMS", "LDG", "STG"];

impl Asked {
    /// The name of each of `accesses`, and what an execution asks for.
    pub(super) fn each(&self) -> Result<Vec<(String, Option<f64>)>, String> {
        let mut all = Vec::new();
        for run in &self.accesses {
            let parts: Vec<&str> = run.split(' ').collect();
            let read = match parts[..] {
                [count, name, "-"] => count.parse().ok().map(|count| (count, name, None)),
                [count, name, mean] => {
                    count.parse().ok().zip(mean.parse().ok()).map(|(c, m)| (c, name, Some(m)))
                }
                _ => None,
            };
            let (count, name, mean) = read.ok_or_else(|| format!("'{run}': not a run of accesses"))?;
            all.extend(std::iter::repeat_n((name.to_owned(), mean), count));
        }
        Ok(all)
    }

    /// Clocks beyond one for each access, in sum: a wavefront takes one, and so do four sectors.
    pub(super) fn longer(&self) -> f64 {
        (self.wavefronts - self.shared) + (self.sectors / 4.0 - self.global).max(0.0)
    }
}

/// The card that was measured.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Card {
    pub(super) name: String,
    pub(super) architecture: String,
    pub(super) multiprocessors: f64,
    pub(super) ghz: f64,
}

/// A kernel of every set, or of none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kernel {
    pub(super) name: String,
    /// Names for its formulas, before those of all.
    #[serde(default)]
    pub(super) with: BTreeMap<String, Formula>,
    /// The code outside of loops, and the loops by their places in the code.
    pub(super) straight: Trips,
    #[serde(default)]
    pub(super) loops: Vec<Trips>,
    /// Nanoseconds of an operation on the card, by set.
    #[serde(default)]
    pub(super) measured: BTreeMap<String, f64>,
}

/// One formula for all sets, or a number for each.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Formula {
    One(String),
    Each(Vec<f64>),
}

/// How often the warps of an operation go through a loop, all together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trips {
    pub(super) trips: String,
    /// `trips` are instructions of this name, however many of them the compiler put into one trip.
    pub(super) per: Option<String>,
    /// Guarded parts with an instruction of this name run too, on the share of all trips that `share` gives, or on all.
    pub(super) also: Option<String>,
    pub(super) share: Option<String>,
    /// So many loops behind one another, of which `i` is the number.
    pub(super) repeat: Option<String>,
    /// The sets that have the loop; otherwise all.
    pub(super) sets: Option<Vec<usize>>,
}

/// Values of names in formulas.
pub(super) struct Names<'a> {
    pub(super) set: usize,
    pub(super) parameters: &'a BTreeMap<String, f64>,
    pub(super) with: [&'a BTreeMap<String, Formula>; 2],
    pub(super) i: f64,
    /// Names that stand for names, so that a circle ends.
    pub(super) depth: usize,
}

impl Names<'_> {
    pub(super) fn value(&self, formula: &str) -> Result<f64, String> {
        let mut rest = formula;
        let value = self.sum(&mut rest).map_err(|why| format!("'{formula}': {why}"))?;
        if rest.trim().is_empty() && value.is_finite() {
            return Ok(value);
        }
        Err(format!("'{formula}': not a number, or more than one"))
    }

    fn sum(&self, rest: &mut &str) -> Result<f64, String> {
        let mut sum = self.product(rest)?;
        loop {
            match taken(rest, "+-") {
                Some('+') => sum += self.product(rest)?,
                Some(_) => sum -= self.product(rest)?,
                None => return Ok(sum),
            }
        }
    }

    fn product(&self, rest: &mut &str) -> Result<f64, String> {
        let mut product = self.factor(rest)?;
        loop {
            match taken(rest, "*/") {
                Some('*') => product *= self.factor(rest)?,
                Some(_) => product /= self.factor(rest)?,
                None => return Ok(product),
            }
        }
    }

    fn factor(&self, rest: &mut &str) -> Result<f64, String> {
        let mut arguments = Vec::new();
        let text = rest.trim_start();
        let (word, behind) =
            text.split_at(text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len()));
        *rest = behind;
        if taken(rest, "(").is_some() {
            loop {
                arguments.push(self.sum(rest)?);
                match taken(rest, ",)") {
                    Some(',') => {}
                    Some(_) => break,
                    None => return Err("a bracket is not closed".into()),
                }
            }
        }
        match (word, arguments.as_slice()) {
            ("", [value]) => Ok(*value),
            ("ceil", [value]) => Ok(value.ceil()),
            ("floor", [value]) => Ok(value.floor()),
            ("odd", [value]) => Ok(value + 1.0 - value % 2.0),
            ("min", [a, b]) => Ok(a.min(*b)),
            ("max", [a, b]) => Ok(a.max(*b)),
            ("i", []) => Ok(self.i),
            (word, []) => self.name(word),
            _ => Err(format!("unknown function {word}")),
        }
    }

    fn name(&self, word: &str) -> Result<f64, String> {
        if let Ok(number) = word.parse() {
            return Ok(number);
        }
        match (self.with.iter().find_map(|names| names.get(word)), self.parameters.get(word)) {
            (Some(Formula::Each(values)), _) => values
                .get(self.set)
                .copied()
                .ok_or_else(|| format!("{word} has no value for set {}", self.set)),
            (Some(Formula::One(_)), _) if self.depth > 9 => Err(format!("{word} needs itself")),
            (Some(Formula::One(formula)), _) => Names { depth: self.depth + 1, ..*self }.value(formula),
            (None, Some(value)) => Ok(*value),
            (None, None) => Err(format!("unknown name '{word}'")),
        }
    }
}

/// Takes one of these characters off the front.
pub(super) fn taken(rest: &mut &str, any: &str) -> Option<char> {
    let text = rest.trim_start();
    let first = text.chars().next().filter(|c| any.contains(*c))?;
    *rest = &text[1..];
    Some(first)
}

/// The numbers of each parameter set in the kernels' header.
pub(super) fn parameters(header: &str) -> Vec<BTreeMap<String, f64>> {
    let sets = header.split("struct Set").skip(1);
    sets.map(|set| {
        let lines = set.lines().filter_map(|line| line.trim().strip_prefix("static constexpr int "));
        let pairs = lines.filter_map(|line| line.trim_end_matches(';').split_once(" = "));
        pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
    })
    .collect()
}
