//! `lanework history`: past records, and what became of their figures.
#![forbid(unsafe_code)]

mod check;
mod plot;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lanework_race::history::{self, Change, Comparison, Entry, History, HistoryError, Step};
use lanework_race::record::ResultRow;
use lanework_race::table::{percent, quantity, times, word};
use lanework_race::verdict::Verdict;
use lanework_study::{Failure, Outcome};
use serde_json::json;

use crate::ui::{Session, counted};

// `history`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Directory of records.
    #[arg(long, global = true, value_name = "DIR", default_value = "records")]
    records: PathBuf,
    #[command(subcommand)]
    job: Job,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Job {
    /// List the records, oldest first.
    List,
    /// Compare two records. For two machines: which is faster at what, beyond noise.
    Compare {
        /// The older record, or one machine's.
        a: PathBuf,
        /// The newer record, or the other machine's.
        b: PathBuf,
    },
    /// Show one figure across all records that have it, as text; with --output, also as a chart.
    Plot {
        /// The subject's path.
        subject: String,
        /// Show only this variant.
        #[arg(long, value_name = "NAME")]
        variant: Option<String>,
        /// Write an SVG chart here; `-` for standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace an existing file.
        #[arg(long)]
        force: bool,
    },
    /// Look for regressions between the two newest records of each study on this machine. Each suspicion is raced again in
    /// pairs. Exits 1 for a regression, 2 for an unreadable record, 3 if nothing was compared or a suspicion was not judged.
    Check(check::CheckArgs),
}

pub(crate) fn run(session: &Session, args: &HistoryArgs) -> Result<Outcome, Failure> {
    match &args.job {
        Job::List => list(session, &args.records),
        Job::Compare { a, b } => compare(session, a, b),
        Job::Plot { subject, variant, output, force } => {
            plot::run(session, &args.records, subject, variant.as_deref(), output.as_deref(), *force)
        }
        Job::Check(how) => check::run(session, &args.records, how),
    }
}

/// The records in a directory, and the files that cannot be used.
pub(crate) fn load_all(root: &Path) -> Result<History, Failure> {
    history::load_all(root).map_err(|e| Failure::input(e).help("name another directory with --records"))
}

/// A record that was named.
pub(crate) fn load(path: &Path) -> Result<Entry, Failure> {
    history::load(path).map_err(|e| Failure::input(e).help("`lanework history list` shows the records"))
}

/// Skipped files, as data.
pub(crate) fn skipped_json(skipped: &[HistoryError]) -> serde_json::Value {
    skipped.iter().map(|e| json!({ "file": e.path(), "why": e.why() })).collect()
}

/// Skipped files, in words; none if there are none.
pub(crate) fn skipped_told(skipped: &[HistoryError]) -> Option<String> {
    let files: Vec<String> = skipped.iter().map(ToString::to_string).collect();
    let number = counted(files.len() as u64, "file was", "files were");
    (!files.is_empty()).then(|| format!("{number} skipped: {}", files.join("; ")))
}

/// The outcome of a command that has done what it could: skipped files count as malformed input.
pub(crate) fn ended(skipped: &[HistoryError]) -> Result<Outcome, Failure> {
    match skipped_told(skipped) {
        Some(why) => Err(Failure::input(why).help("correct or remove these files").beside_data()),
        None => Ok(Outcome::Yes),
    }
}

fn commit(entry: &Entry) -> &str {
    let commit = &entry.record.machine.build.commit;
    commit.get(..10).unwrap_or(commit)
}

/// Prints lines that hold texts of records, which may have come from anywhere.
fn print_escaped(lines: &str) {
    lines.lines().for_each(|line| println!("{}", lanework_study::text::whole(line)));
}

fn list(session: &Session, root: &Path) -> Result<Outcome, Failure> {
    let History { entries, skipped } = load_all(root)?;
    if session.json {
        let rows: Vec<_> = entries
            .iter()
            .map(|e| {
                json!({
                    "file": e.path, "date": e.record.date, "study": e.record.study, "machine": e.record.machine.slug(),
                    "commit": e.record.machine.build.commit, "tree": e.record.machine.build.tree,
                    "results": e.record.results.len(), "command": e.record.command,
                })
            })
            .collect();
        println!("{}", json!({ "records": rows, "skipped": skipped_json(&skipped) }));
    } else if entries.is_empty() && skipped.is_empty() {
        println!("{}: no records: `lanework bench --save` makes one", lanework_study::text::shown(root));
    } else {
        for e in &entries {
            let r = &e.record;
            let changed = if r.machine.build.tree == "clean" { "" } else { " (changed)" };
            print_escaped(&format!(
                "{}  {}  {}  {}{changed}  {}  {}",
                r.date,
                r.study,
                r.machine.slug(),
                commit(e),
                counted(r.results.len() as u64, "result", "results"),
                e.path.display()
            ));
        }
    }
    ended(&skipped)
}

/// The row of a record that a change is about.
fn row_of<'a>(entry: &'a Entry, c: &Change) -> Option<&'a ResultRow> {
    let is = |r: &&ResultRow| r.subject == c.subject && r.variant == c.variant && r.baseline == c.baseline;
    entry.record.results.iter().find(is)
}

/// A change as one line; its medians are in `unit`.
fn line(c: &Change, unit: &str) -> String {
    format!(
        "{} {}: {} -> {}, {} ({}); against {} {} -> {}, {} ({})",
        c.subject,
        c.variant,
        quantity(unit, c.medians[0]),
        quantity(unit, c.medians[1]),
        span(&c.time),
        word(unit, c.time.verdict),
        c.baseline,
        times(c.ratios[0]),
        times(c.ratios[1]),
        span(&c.against_baseline),
        word(unit, c.against_baseline.verdict)
    )
}

/// A factor with its interval.
fn span(step: &Step) -> String {
    format!("{} from {} to {}", times(step.factor), times(step.low), times(step.high))
}

fn compare(session: &Session, a: &Path, b: &Path) -> Result<Outcome, Failure> {
    let [old, new] = [a, b].map(load);
    let (old, new) = (old?, new?);
    let found = history::compare(&old.record, &new.record);
    if session.json {
        println!("{}", serde_json::to_string(&found).map_err(Failure::input)?);
        return Ok(Outcome::Yes);
    }
    print_escaped(&told(&old, &new, &found));
    Ok(Outcome::Yes)
}

fn told(old: &Entry, new: &Entry, found: &Comparison) -> String {
    let mut out = String::new();
    for (name, e) in [("A", old), ("B", new)] {
        out += &format!(
            "{name}: {} {} {}, commit {}\n",
            e.record.date,
            e.record.study,
            e.record.machine.cpu,
            commit(e)
        );
    }
    let same = found.machines.is_empty();
    if same {
        out += &format!(
            "One machine. Times from two sessions are off by up to {}, plus the intervals shown beside them: a verdict is \
             given only where both leave no doubt. `history check` races the suspects again.\n",
            percent(history::UNPAIRED)
        );
    } else {
        out += &format!(
            "Two machines ({}). Neither is called faster where noise could explain it: differences below {}, or within the \
             interval shown beside them, are not reported.\n",
            found.machines.join("; "),
            percent(history::UNPAIRED)
        );
    }
    out.push('\n');
    for c in &found.changes {
        let unit = row_of(new, c).map_or("ns", |row| row.unit.as_str());
        if same {
            out += &line(c, unit);
        } else {
            let wins = if unit == "ns" { "is faster" } else { "takes less" };
            let winner = match c.time.verdict {
                Verdict::Faster => format!("B {wins}, {}", times(c.time.factor)),
                Verdict::Slower => format!("A {wins}, {}", times(1.0 / c.time.factor)),
                _ => format!("cannot tell ({})", span(&c.time)),
            };
            out += &format!(
                "{} {}: A {} ({} against {}), B {} ({}): {winner}",
                c.subject,
                c.variant,
                quantity(unit, c.medians[0]),
                times(c.ratios[0]),
                c.baseline,
                quantity(unit, c.medians[1]),
                times(c.ratios[1]),
            );
        }
        out.push('\n');
    }
    for (name, list) in [("A", &found.gone), ("B", &found.new)] {
        if !list.is_empty() {
            out += &format!("only in {name}: {}\n", list.join(", "));
        }
    }
    if found.changes.is_empty() {
        out += "The two records have no figure in common.\n";
    }
    out
}
