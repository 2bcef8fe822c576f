//! Batches of generated functions: rewritten for every home, linked with the driver at once, and run against the originals.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lanework_respill::homes::Bank;
use lanework_respill::plan::{self, Plan, Stays};
use lanework_respill::rewrite::{self, Options as Rewriting};
use lanework_respill::validate::{Failure, Options, validate};
use lanework_respill::{Analysis, Program};

use super::generator::{Features, Generated, PREFIX, Privacy, function};
use super::native::{runs_here, wish};

/// Functions with consecutive seeds, in one text.
pub(crate) struct Batch {
    pub(crate) functions: Vec<Generated>,
    pub(crate) text: String,
}

impl Batch {
    /// In one batch of eight, functions call others of it through pointers.
    pub(crate) fn new(seeds: std::ops::Range<u64>, here: Features) -> Batch {
        let indirect = seeds.start / 100 % 8 == 7;
        Batch::of(seeds.map(|seed| function(seed, indirect, here)).collect())
    }

    pub(crate) fn of(functions: Vec<Generated>) -> Batch {
        let mut text = "\t.text\n".to_owned();
        functions.iter().for_each(|one| text.push_str(&one.text));
        text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
        Batch { functions, text }
    }

    pub(crate) fn analysis(&self) -> Analysis {
        Analysis::new(Program::new("batch.s", self.text.clone()).unwrap_or_else(|e| panic!("{e}")))
    }
}

/// An accepted rewrite, or why there is none.
pub(crate) struct Rewrite {
    pub(crate) text: String,
    /// The plan that was accepted; without homes, nothing moved.
    pub(crate) plan: Plan,
    /// Slots that the check refused after they had been planned.
    pub(crate) refused: BTreeSet<(usize, usize)>,
}

/// The rewrite that is accepted without an input, as the command makes it.
///
/// # Panics
/// If the rewriter's text does not assemble.
pub(crate) fn accepted(original: &Analysis, bank: Bank) -> Result<Rewrite, String> {
    let mut wish = wish(bank);
    loop {
        let plan = plan::plan(original, &wish);
        let made = rewrite::rewrite(original, &plan, Rewriting::default()).map_err(|e| e.to_string())?;
        let (text, refused) = (made.text, wish.stay.clone());
        if plan.homes.is_empty() {
            return Ok(Rewrite { text, plan, refused });
        }
        let other = Program::new("rewritten.s", text.clone()).unwrap_or_else(|e| panic!("{bank}: {e}"));
        match validate(original, &other, &[], &Options::default()) {
            Ok(_) => return Ok(Rewrite { text, plan, refused }),
            Err(Failure::Refused(why)) => {
                wish.stay.extend(why.stay());
                if wish.stay.len() == refused.len() {
                    return Err(why.to_string());
                }
            }
            Err(failure) => panic!("{failure}"),
        }
    }
}

/// A difference that a run found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bad {
    pub(crate) function: String,
    /// Nothing for the original against itself.
    pub(crate) version: Option<usize>,
    pub(crate) what: String,
}

/// Compiles the driver.
pub(crate) fn driver(directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generated/driver.c");
    let object = directory.join("driver.o");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-w", "-mgeneral-regs-only", "-fno-pie", "-c", "-o"]).arg(&object).arg(&source);
    let out = cc.output().expect("cc");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    object
}

/// Links a batch's original and up to five other versions of it with the driver, and runs each function of each version. The versions
/// are texts that define the same names. Returns how many calls were compared, and the differences.
pub(crate) fn run(
    batch: &Batch,
    versions: &[Option<&str>],
    driver: &Path,
    inputs: usize,
    directory: &Path,
) -> (u64, Vec<Bad>) {
    assert!(versions.len() <= 5);
    let all: Vec<&str> = batch.functions.iter().map(|one| one.name.as_str()).collect();
    let called = |n: usize, name: &str| name.replacen(PREFIX, &format!("v{n}_"), 1);
    let mut table =
        format!("\t.data\n\t.globl batch_size, batch\n\t.align 8\nbatch_size: .quad {}\nbatch:\n", all.len());
    for name in &all {
        let entry = |n: usize| match n {
            0 => (*name).to_owned(),
            n if versions.get(n - 1).copied().flatten().is_some() => called(n, name),
            _ => "0".to_owned(),
        };
        let row: Vec<String> = (0..6).map(entry).collect();
        writeln!(table, "\t.quad {}", row.join(", ")).expect("written");
    }
    table.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    let mut sources = vec![("table.s".to_owned(), table), ("v0.s".to_owned(), batch.text.clone())];
    for (n, text) in versions.iter().enumerate() {
        if let Some(text) = text {
            sources.push((format!("v{}.s", n + 1), text.replace(PREFIX, &format!("v{}_", n + 1))));
        }
    }
    let program = directory.join("batch");
    let mut cc = Command::new("cc");
    cc.args(["-no-pie", "-Wl,-z,now", "-o"]).arg(&program).arg(driver);
    for (name, text) in sources {
        let path = directory.join(name);
        std::fs::write(&path, text).expect("written");
        cc.arg(path);
    }
    let out = cc.output().expect("cc");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let out = Command::new(&program).arg(inputs.to_string()).output().expect("it starts");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{}: {said}", out.status);
    let (mut runs, mut bad) = (None, Vec::new());
    for line in said.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["done", count] => runs = count.parse().ok(),
            ["bad", function, version, what] => {
                let function = all[function.parse::<usize>().expect("a number")].to_owned();
                let version = version.parse::<usize>().expect("a number").checked_sub(1);
                bad.push(Bad { function, version, what: (*what).to_owned() });
            }
            _ => panic!("{line}"),
        }
    }
    (runs.expect("the end"), bad)
}

/// What became of the slots, with one home.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count {
    /// By privacy: slots that moved, slots without a register, and other slots that stay.
    pub(crate) by: BTreeMap<Privacy, [usize; 3]>,
    /// Private slots that stay although there are registers, by reason, with a function.
    pub(crate) why: BTreeMap<String, (usize, String)>,
    /// Private slots without a register, by reason.
    pub(crate) lack: BTreeMap<String, usize>,
}

impl Count {
    pub(crate) fn add(&mut self, batch: &Batch, analysis: &Analysis, rewrite: &Rewrite) {
        let known: BTreeMap<(&str, bool, i64), Privacy> = batch
            .functions
            .iter()
            .flat_map(|one| &one.slots)
            .map(|slot| ((slot.function.as_str(), slot.aligned, slot.offset), slot.privacy))
            .collect();
        for (n, unit) in analysis.units.iter().enumerate() {
            for (s, slot) in unit.slots.iter().enumerate() {
                let Some(&privacy) =
                    known.get(&(unit.function.name(), slot.address.base != 0, slot.address.offset))
                else {
                    continue;
                };
                // A cell that is written and never read is not a value.
                let stays = rewrite.plan.stays.get(&(n, s)).copied();
                let moved = rewrite.plan.homes.contains_key(&(n, s));
                let lack = matches!(
                    stays,
                    Some(Stays::Full | Stays::Refused(_) | Stays::Across(_) | Stays::Operand(_))
                );
                let column = if moved {
                    0
                } else if lack {
                    1
                } else {
                    2
                };
                self.by.entry(privacy).or_default()[column] += 1;
                if !is_private(privacy) || moved {
                    continue;
                }
                let Some(stays) = stays else { continue };
                let said = match stays {
                    Stays::Class(class) => format!("{class:?}"),
                    Stays::Opaque(why) => format!("opaque: {}", name_of(&format!("{why:?}"))),
                    other => name_of(&format!("{other:?}")),
                };
                if lack {
                    *self.lack.entry(said).or_default() += 1;
                } else {
                    let entry = self.why.entry(format!("{privacy:?}: {said}")).or_insert((0, String::new()));
                    entry.0 += 1;
                    entry.1 = format!("{} at {}", unit.function.name(), slot.address.offset);
                }
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Count) {
        for (&privacy, numbers) in &other.by {
            let own = self.by.entry(privacy).or_default();
            (0..3).for_each(|n| own[n] += numbers[n]);
        }
        for (why, (count, example)) in &other.why {
            let own = self.why.entry(why.clone()).or_insert((0, example.clone()));
            own.0 += count;
        }
        for (why, count) in &other.lack {
            *self.lack.entry(why.clone()).or_default() += count;
        }
    }

    /// Private slots: moved, without a register, others.
    pub(crate) fn private(&self) -> [usize; 3] {
        let mut sum = [0; 3];
        for (_, numbers) in self.by.iter().filter(|(privacy, _)| is_private(**privacy)) {
            (0..3).for_each(|n| sum[n] += numbers[n]);
        }
        sum
    }
}

fn name_of(debug: &str) -> String {
    debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

pub(crate) const fn is_private(privacy: Privacy) -> bool {
    matches!(privacy, Privacy::Private | Privacy::Beside(_))
}

/// A batch rewritten for all five homes, counted and run.
pub(crate) struct Tried {
    pub(crate) counts: BTreeMap<Bank, Count>,
    pub(crate) refused: Vec<String>,
    pub(crate) runs: u64,
    pub(crate) bad: Vec<Bad>,
    pub(crate) accepted: usize,
}

pub(crate) fn tried(batch: &Batch, driver: &Path, inputs: usize, directory: &Path) -> Tried {
    let analysis = batch.analysis();
    let mut out =
        Tried { counts: BTreeMap::new(), refused: Vec::new(), runs: 0, bad: Vec::new(), accepted: 0 };
    let mut texts: Vec<Option<String>> = Vec::new();
    for bank in Bank::ALL {
        match accepted(&analysis, bank) {
            Ok(rewrite) => {
                out.counts.entry(bank).or_default().add(batch, &analysis, &rewrite);
                let units: BTreeSet<usize> = rewrite.plan.homes.keys().map(|key| key.0).collect();
                out.accepted += units.len();
                texts.push(runs_here(bank).then_some(rewrite.text));
            }
            Err(why) => {
                out.refused.push(format!("{bank}: {why}"));
                texts.push(None);
            }
        }
    }
    let versions: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
    (out.runs, out.bad) = run(batch, &versions, driver, inputs, directory);
    out
}
