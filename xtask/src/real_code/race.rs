//! Races whole programs: rewritten for each home against the original, and the original against itself.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use lanework_race::clock::Monotonic;
use lanework_race::gate::{Gate, GateRow};
use lanework_race::machine::Machine;
use lanework_race::pairing::Plan;
use lanework_race::process::{self, Program};
use lanework_race::record::{Record, ResultRow};
use lanework_race::stats::least_pairs;
use lanework_race::table::{percent, time, times};
use lanework_race::verdict::{Rules, Verdict};
use tempfile::TempDir;

use super::list::{Build, Here, INPUTS, said};
use super::runs_here;
use super::survey::Surveyed;

/// A run of a driver takes at least this long, so that not only the start of a process is timed.
const SECONDS: f64 = 0.05;

/// The races of all programs, as they come.
pub(crate) struct Races {
    rounds: usize,
    clock: Monotonic,
    record: Record,
    /// How many slots a rewrite moved, by its race's subject and variant.
    moved: BTreeMap<(String, String), usize>,
}

/// The lines that are compared of what a program prints.
fn printed(program: &Program, build: &Build) -> Result<String, String> {
    said(Command::new(&program.program).args(&program.args)).map(|printed| build.compared(&printed))
}

/// All runs of the program in a folder, as one command.
fn command(name: &str, build: &Build, folder: &Path, inputs: usize) -> Program {
    let runs = if build.takes_inputs() { vec![inputs.to_string()] } else { build.runs() };
    let runs: Vec<String> = runs.iter().map(|words| format!("./program {words}")).collect();
    let script = format!("cd '{}' && {}", folder.display(), runs.join(" && "));
    Program::new(name, "/bin/sh", ["-c".to_owned(), script])
}

/// How many inputs make a run long enough.
fn inputs(build: &Build, folder: &Path) -> Result<usize, String> {
    let mut inputs = INPUTS;
    while build.takes_inputs() && inputs < 1 << 24 {
        let begun = Instant::now();
        printed(&command("", build, folder, inputs), build)?;
        if begun.elapsed().as_secs_f64() >= SECONDS {
            break;
        }
        inputs *= 2;
    }
    Ok(inputs)
}

impl Races {
    pub(crate) fn new(rounds: usize) -> Races {
        let clock = Monotonic::new();
        let words: Vec<String> = std::env::args().skip(1).collect();
        let command = format!("cargo xtask {}", words.join(" "));
        let mut record = Record::new("real-code", &command, Machine::inspect(&clock, Vec::new()));
        let rules = Rules::default();
        // Both orders of a turn count alike.
        let rounds = rounds.max(least_pairs(rules.alpha)).next_multiple_of(2);
        record.plan =
            Some(Plan { launches: 1, min_pairs: rounds, max_pairs: rounds, rules, ..Plan::default() });
        Races { rounds, clock, record, moved: BTreeMap::new() }
    }

    /// Races a program, as rewritten for each home that runs here.
    ///
    /// # Errors
    /// A program is not built, fails, or prints something else than the original.
    pub(crate) fn race(&mut self, here: &Here, build: &Build, surveyed: &Surveyed) -> Result<(), String> {
        let built = |text: &str| -> Result<TempDir, String> {
            let folder = tempfile::tempdir().map_err(|e| format!("a temporary folder: {e}"))?;
            here.program(build, text, folder.path())?;
            Ok(folder)
        };
        let original = built(&build.text)?;
        let inputs = inputs(build, original.path())?;
        let baseline = command("stack", build, original.path(), inputs);
        let due = printed(&baseline, build)?;
        let (mut folders, mut variants, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let subject = format!("real-code/{}", build.name());
        for (&home, text) in surveyed.rewritten.iter().filter(|(home, _)| runs_here(**home)) {
            let folder = built(text)?;
            let program = command(home.name(), build, folder.path(), inputs);
            let right = printed(&program, build)? == due;
            rows.push(GateRow {
                what: format!("{subject} prints what the original prints"),
                backend: program.name.clone(),
                passed: u64::from(right),
                failed: u64::from(!right),
                skipped: 0,
                why: String::new(),
            });
            let moved = surveyed.survey.homes.get(home.name()).map_or(0, |one| one.moved);
            self.moved.insert((subject.clone(), program.name.clone()), moved);
            folders.push(folder);
            variants.push(program);
        }
        if variants.is_empty() {
            return Ok(());
        }
        let passed = Gate::new(move || Ok(rows.clone())).pass().map_err(|e| e.to_string())?;
        let plan = self.record.plan.clone().unwrap_or_default();
        let found = process::race(&subject, &passed, &baseline, &variants, self.rounds, &plan, &self.clock)
            .map_err(|e| e.to_string())?;
        for row in &found.outcome.results {
            println!(
                "{} {}: {} {}, noise floor {}",
                row.subject,
                row.variant,
                times(row.ratio),
                row.verdict.word(),
                percent(row.noise)
            );
        }
        self.record.add(found.outcome);
        Ok(())
    }

    /// The races' results as a page; kept with the record in `records/` if it is to be saved.
    ///
    /// # Errors
    /// Nothing was raced, or the record cannot be written.
    pub(crate) fn told(mut self, save: bool) -> Result<String, String> {
        if self.record.results.is_empty() {
            return Err("nothing was raced: no rewrite is accepted".to_owned());
        }
        self.record.machine.finish(&self.clock);
        let page = page(&self.record.results, &self.moved, self.rounds);
        self.record.page = Some(page.clone());
        if !save {
            return Ok(page);
        }
        let path = self.record.without_samples().save(Path::new("records")).map_err(|e| e.to_string())?;
        Ok(format!("{page}\nsaved: {}\n", path.display()))
    }
}

/// A program's name, without what all of them begin with.
fn name(row: &ResultRow) -> &str {
    row.subject.trim_start_matches("real-code/")
}

/// The races' results in words, and a table of all.
fn page(rows: &[ResultRow], moved: &BTreeMap<(String, String), usize>, rounds: usize) -> String {
    let mut programs: Vec<&str> = rows.iter().map(name).collect();
    programs.dedup();
    let with = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let mut out = format!(
        "# Where does a home beat the stack in whole programs that nobody here wrote?\n\n\
         Each of {} programs ran with its values on the stack, and with all that may move in each home: {rounds} rounds of \
         four runs in turns, beside the program against itself. A ratio above ×1 is a faster program. Of {} rewrites, {} are slower by more than the noise \
         floor, {} the same, {} faster, of {} it cannot be told, and {} are void, since the program differs from itself.\n\n",
        programs.len(),
        rows.len(),
        with(Verdict::Slower),
        with(Verdict::Same),
        with(Verdict::Faster),
        with(Verdict::CannotTell),
        with(Verdict::Void)
    );
    let faster: Vec<String> = rows
        .iter()
        .filter(|row| row.verdict == Verdict::Faster)
        .map(|row| {
            format!(
                "{} in {} ({}, noise floor {})",
                name(row),
                row.variant,
                times(row.ratio),
                percent(row.noise)
            )
        })
        .collect();
    out += &match &faster[..] {
        [] => "No home beats the stack by more than the noise floor: nowhere.\n\n".to_owned(),
        all => format!("A home beats the stack by more than the noise floor here: {}.\n\n", all.join("; ")),
    };
    out += "| program | home | slots moved | on the stack | ratio | interval | verdict |\n|---|---|--:|--:|--:|--:|---|\n";
    for row in rows {
        let moved = moved.get(&(row.subject.clone(), row.variant.clone())).copied().unwrap_or_default();
        let [low, high] = lanework_race::table::ends(row);
        out += &format!(
            "| {} | {} | {moved} | {} | {} | {low} to {high} | {} |\n",
            name(row),
            row.variant,
            time(row.baseline_median),
            times(row.ratio),
            row.verdict.word()
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::list::Here;
    use super::super::survey::survey;
    use super::*;
    use lanework_respill::homes::Bank;

    #[test]
    fn a_program_is_raced_as_it_is_and_as_rewritten_and_a_wrong_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = match Here::find(folder.path()) {
            Ok(here) => here,
            Err(why) => {
                assert!(std::env::var("LANEWORK_REQUIRE_CORPUS").as_deref() != Ok("1"), "{why}");
                println!("SKIPPED: {why}");
                return;
            }
        };
        let rows = here.rows(false, &["ring/sha512-x86_64".to_owned()]);
        let build = here.build(&rows[0].0, &rows[0].1).expect("a build");
        let mut surveyed = survey(&build.name(), &build.text, &[Bank::Mm]);
        let mut races = Races::new(1);
        races.race(&here, &build, &surveyed).expect("raced");
        let row = &races.record.results[0];
        assert_eq!((row.subject.as_str(), row.variant.as_str()), ("real-code/ring/sha512-x86_64", "mm"));
        let page = races.told(false).expect("a page");
        let slots = surveyed.survey.homes["mm"].moved;
        assert!(page.contains(&format!("| ring/sha512-x86_64 | mm | {slots} |")), "{page}");

        for text in surveyed.rewritten.values_mut() {
            *text = text.replace("emms", "nop");
        }
        let why = Races::new(1).race(&here, &build, &surveyed).expect_err("another program");
        assert!(why.contains("prints what the original prints"), "{why}");
        assert!(Races::new(1).told(false).is_err_and(|why| why.contains("nothing was raced")));
    }
}
