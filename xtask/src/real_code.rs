//! `cargo xtask real-code`: respill on third-party code.
//!
//! Each file of a pinned list is analysed and rewritten for each home. Every proved rewrite is built, and must print what the
//! original prints: its project's own test, known answers, or a hash of its results on many inputs. The counts are in one committed table.
#![forbid(unsafe_code)]

mod entered;
mod list;
mod race;
mod survey;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use lanework_respill::homes::Bank;

use crate::Complaint;
use list::{Build, Here};
use race::Races;
use serde::{Deserialize, Serialize};
use survey::{Counts, Survey, Surveyed, sha256, survey};

const TABLE: &str = "crates/respill/real-code.toml";
const HEADER: &str = "\
# respill on code that nobody here wrote: `cargo xtask real-code --bless` writes this file, `.ci/run` compares a sample of it and
# `.ci/long` all. `moved` counts slots that are proved without inputs, and whose file was built and printed what the original prints.

";

/// `real-code`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the rows that every change checks.
    #[arg(long)]
    sample: bool,
    /// Write the table instead of comparing it.
    #[arg(long)]
    bless: bool,
    /// Only rows whose name contains this; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Also race each program, rewritten for each home, against the original, in this many rounds of runs.
    #[arg(long, value_name = "ROUNDS")]
    race: Option<usize>,
    /// Save the races' results as a record.
    #[arg(long, requires = "race")]
    save: bool,
}

/// The most processor time of an analysis: 5 MB in 10 seconds, as shipped.
const MOST_PER_MEGABYTE: f64 = 2.0;

/// Bytes that were analysed, and the processor time.
#[derive(Debug, Default)]
struct Speed {
    bytes: usize,
    seconds: f64,
}

impl Speed {
    fn per_megabyte(&self) -> f64 {
        self.seconds / (self.bytes as f64 / 1e6).max(1e-6)
    }

    /// Whether this is enough text to tell, and its analysis takes too long.
    fn is_slow(&self) -> bool {
        self.bytes >= 1_000_000 && self.per_megabyte() > MOST_PER_MEGABYTE
    }
}

/// The committed table.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Table {
    /// Sums of all rows, by the origin of the code.
    total: BTreeMap<String, Total>,
    /// A file, or a unit as one compiler compiles it.
    row: BTreeMap<String, Survey>,
}

/// Sums of several rows.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Total {
    rows: usize,
    lines: usize,
    functions: usize,
    opaque: usize,
    opaque_percent: usize,
    slots: usize,
    moved: Counts,
}

impl Table {
    fn totals(&self) -> BTreeMap<String, Total> {
        let mut out: BTreeMap<String, Total> = BTreeMap::new();
        for (name, row) in &self.row {
            let origin = match name.split(['/', ' ']).next() {
                Some("libjade" | "liboqs" | "formosa") => "Jasmin",
                Some("ring" | "aws-lc") => "perlasm",
                Some("s2n-bignum") => "s2n-bignum",
                _ if name.contains("rustc") => "rustc",
                _ if name.contains("gcc") => "gcc",
                _ => "clang",
            };
            for origin in [origin, "all"] {
                let total = out.entry(origin.to_owned()).or_default();
                total.rows += 1;
                total.lines += row.lines;
                total.functions += row.functions;
                total.opaque += row.opaque;
                total.opaque_percent = (100 * total.opaque).div_ceil(total.functions.max(1));
                total.slots += row.slots;
                for (home, one) in &row.homes {
                    *total.moved.entry(home.clone()).or_default() += one.moved;
                }
            }
        }
        out
    }
}

pub(crate) fn run(options: &Options) -> ExitCode {
    match go(options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            Complaint::from(why).print();
            ExitCode::from(2)
        }
    }
}

fn go(options: &Options) -> Result<bool, String> {
    let out = out();
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    // Tools run in other folders.
    let here = Here::find(&out.canonicalize().map_err(|e| format!("{}: {e}", out.display()))?)?;
    let rows = here.rows(options.sample, &options.only);
    if rows.is_empty() {
        return Err(format!("no row is called {}", options.only.join(" or ")));
    }
    let mut table = read(Path::new(TABLE))?;
    let mut races = options.race.map(Races::new);
    // Rows passed and failed; homes skipped.
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut speed = Speed::default();
    for (subject, by) in rows {
        let begun = Instant::now();
        let build = here.build(&subject, &by)?;
        let mut surveyed = survey(&build.name(), &build.text, &Bank::ALL);
        let wrong = tried(&here, &build, &mut surveyed);
        let own = Speed { bytes: build.text.len(), seconds: surveyed.seconds.unwrap_or(0.0) };
        // Only the long run fails for it: it runs what ships, with nothing else beside it.
        let slow = !options.sample && !cfg!(debug_assertions) && own.is_slow();
        if slow {
            println!(
                "SLOW {}: its analysis takes {:.2} s a megabyte, and {MOST_PER_MEGABYTE} are the most",
                build.name(),
                own.per_megabyte()
            );
        }
        speed = Speed { bytes: speed.bytes + own.bytes, seconds: speed.seconds + own.seconds };
        skipped += surveyed.rewritten.keys().filter(|home| !runs_here(**home)).count();
        if let Some(races) = races.as_mut().filter(|_| wrong.is_empty() && !surveyed.rewritten.is_empty()) {
            races.race(&here, &build, &surveyed)?;
        }
        let (name, Surveyed { survey, .. }) = (build.name(), surveyed);
        println!(
            "{name}: {} functions, {} opaque, {} slots; {} ({:.0} s)",
            survey.functions,
            survey.opaque,
            survey.slots,
            moved(&survey),
            begun.elapsed().as_secs_f64()
        );
        wrong.iter().for_each(|why| println!("WRONG {name}: {why}"));
        let differs = !options.bless && table.row.get(&name) != Some(&survey);
        if differs {
            println!(
                "DIFFERS {name}: {TABLE} says\n{}\nfound\n{}",
                toml(table.row.get(&name)),
                toml(Some(&survey))
            );
        }
        if wrong.is_empty() && !differs && !slow {
            passed += 1
        } else {
            failed += 1
        }
        // A wrong result is never blessed.
        if wrong.is_empty() && options.bless {
            table.row.insert(name, survey);
        }
    }
    if options.bless {
        if !options.sample && options.only.is_empty() {
            let named: Vec<String> = here.rows(false, &[]).iter().map(|(s, by)| list::row(s, by)).collect();
            table.row.retain(|name, _| named.contains(name));
        }
        table.total = table.totals();
        let text = toml::to_string(&table).map_err(|e| e.to_string())?;
        fs::write(TABLE, format!("{HEADER}{text}")).map_err(|e| format!("{TABLE}: {e}"))?;
    }
    if table.total != table.totals() {
        failed += 1;
        println!("DIFFERS: the totals in {TABLE} are not the sums of its rows");
    }
    if let Some(races) = races {
        print!("{}", races.told(options.save)?);
    }
    println!(
        "analysed: {:.1} MB in {:.1} s of processor time, {:.2} s a megabyte",
        speed.bytes as f64 / 1e6,
        speed.seconds,
        speed.per_megabyte()
    );
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(failed == 0)
}

/// How many slots moved to each home.
fn moved(survey: &Survey) -> String {
    let homes: Vec<String> = survey.homes.iter().map(|(home, one)| format!("{home} {}", one.moved)).collect();
    format!("moved: {}", homes.join(", "))
}

/// `target/real-code` of the workspace.
fn out() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    package.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).join("target/real-code")
}

fn read(path: &Path) -> Result<Table, String> {
    match fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Table::default()),
        Err(e) => Err(format!("{}: {e}", path.display())),
    }
}

fn toml(survey: Option<&Survey>) -> String {
    survey.map_or("nothing".to_owned(), |survey| toml::to_string(survey).unwrap_or_default())
}

fn runs_here(home: Bank) -> bool {
    matches!(home, Bank::Mm | Bank::Xmm)
        || std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("avx512dq")
}

/// Builds and runs the original and every accepted rewrite; says what is wrong.
fn tried(here: &Here, build: &Build, surveyed: &mut Surveyed) -> Vec<String> {
    if surveyed.rewritten.is_empty() {
        return Vec::new();
    }
    let original = match here.prints(build, &build.text) {
        Ok(printed) => printed,
        Err(why) => return vec![format!("the original: {why}")],
    };
    surveyed.survey.prints = Some(sha256(original.as_bytes()));
    let mut wrong = Vec::new();
    let touched: BTreeSet<String> = surveyed.touched.values().flatten().cloned().collect();
    match entered::never(here, build, &touched) {
        Ok(never) => surveyed.survey.unreached = never,
        Err(why) => wrong.push(why),
    }
    for (&home, text) in &surveyed.rewritten {
        let way = home.name();
        if !runs_here(home) {
            println!("SKIPPED {} {way}: this processor has no such home", build.name());
            continue;
        }
        match here.prints(build, text) {
            Ok(printed) if printed == original => (),
            Ok(printed) => wrong.push(format!("{way} prints {}, not {}", printed.trim(), original.trim())),
            Err(why) => wrong.push(format!("{way}: {why}")),
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(folder: &Path) -> Option<Here> {
        match Here::find(folder) {
            Ok(here) => Some(here),
            Err(why) => {
                assert!(std::env::var("LANEWORK_REQUIRE_CORPUS").as_deref() != Ok("1"), "{why}");
                println!("SKIPPED: {why}");
                None
            }
        }
    }

    #[test]
    fn five_megabytes_in_ten_seconds_are_the_most() {
        let slow = |bytes, seconds| Speed { bytes, seconds }.is_slow();
        let most = 5.0 * MOST_PER_MEGABYTE;
        assert!(slow(5_000_000, most + 0.1) && !slow(5_000_000, most - 0.1));
        // What a short file takes is the start of the assembler.
        assert!(!slow(1000, 1.0));
    }

    /// The text with the `n`th load from an MMX register as one from the next register.
    fn planted(text: &str, n: usize) -> Option<String> {
        let mut at =
            text.match_indices("%mm").filter(|(at, _)| text[at + 4..].starts_with(", %r")).map(|(at, _)| at);
        let digit = at.nth(n)? + 3;
        let next = (text[digit..].bytes().next()? - b'0' + 1) % 8;
        Some(format!("{}{next}{}", &text[..digit], &text[digit + 1..]))
    }

    #[test]
    fn a_wrong_rewrite_prints_something_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(here) = here(folder.path()) else { return };
        for (name, sites) in [("ring/sha512-x86_64", 8), ("libjade/x25519_mulx", 8)] {
            let rows = here.rows(false, &[name.to_owned()]);
            let (subject, by) = rows.first().expect("a row");
            let build = here.build(subject, by).expect("a build");
            let mut surveyed = survey(&build.name(), &build.text, &[Bank::Mm]);
            assert_eq!(tried(&here, &build, &mut surveyed), Vec::<String>::new());
            let right = surveyed.rewritten[&Bank::Mm].clone();
            for n in 0..sites {
                surveyed.rewritten.insert(Bank::Mm, planted(&right, n).expect("a load"));
                let wrong = tried(&here, &build, &mut surveyed);
                assert!(wrong.len() == 1 && wrong[0].starts_with("mm prints"), "{name}, load {n}: {wrong:?}");
            }
        }
    }

    #[test]
    fn x87_left_in_use_prints_something_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(here) = here(folder.path()) else { return };
        let rows = here.rows(false, &["ring/sha512-x86_64".to_owned()]);
        let build = here.build(&rows[0].0, &rows[0].1).expect("a build");
        let mut surveyed = survey(&build.name(), &build.text, &[Bank::Mm]);
        let text = surveyed.rewritten[&Bank::Mm].clone();
        assert!(text.contains("emms"));
        surveyed.rewritten.insert(Bank::Mm, text.replace("emms", "nop"));
        assert_eq!(tried(&here, &build, &mut surveyed).len(), 1);
    }

    #[test]
    fn a_program_tells_which_functions_it_enters() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(here) = here(folder.path()) else { return };
        for name in ["ring/sha512-x86_64", "sha2", "s2n-bignum/p384_montjadd"] {
            let rows = here.rows(false, &[name.to_owned()]);
            let (subject, by) = rows.first().expect("a row");
            let mut build = here.build(subject, by).expect("a build");
            let surveyed = survey(&build.name(), &build.text, &[Bank::Mm]);
            let mut touched: BTreeSet<String> = surveyed.touched.values().flatten().cloned().collect();
            // One that nothing calls.
            build.text += "\t.text\nnobody:\tret\n";
            touched.insert("nobody".to_owned());
            assert!(touched.len() > 1);
            assert_eq!(entered::never(&here, &build, &touched), Ok(vec!["nobody".to_owned()]), "{name}");
            touched.insert("nowhere".to_owned());
            assert_eq!(entered::never(&here, &build, &touched), Err("no label of nowhere".to_owned()));
        }
    }
}
