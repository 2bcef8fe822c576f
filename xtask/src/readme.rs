//! `cargo xtask readme`: the README's tables of figures and the results of the studies, from the records that they come from.
//!
//! Between `<!-- figures RECORD SUBJECT... -->` and `<!-- /figures -->` stands a table of that record: of each subject that one of the
//! patterns selects, the fastest variant beside the baseline. RECORD is a file, or what a record is about (`bench-mayo`), which
//! stands for the newest of it on every machine. Where RECORD ends in `-peers`, the table has ours beside the fastest of other people's. `studies/<name>/results.md` is the page of the newest record of that study. Nobody types
//! a figure.
#![forbid(unsafe_code)]

mod peers;
mod results;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use lanework_race::history::{self, Entry};
use lanework_race::record::{Record, ResultRow};
use lanework_race::table::{amount, ends, times, verdict};

const OPEN: &str = "<!-- figures ";
const END: &str = " -->";
const CLOSE: &str = "<!-- /figures -->";

/// `readme`.
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if the file is not as its records have it.
    #[arg(long)]
    check: bool,
    /// Only this file; otherwise README.md and the results of all studies.
    file: Option<String>,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let file = options.file.as_deref().unwrap_or("README.md");
    let mut all = vec![renewed(Path::new(file), options.check).map_err(|why| format!("{file}: {why}"))];
    all.extend(unreadable(folder_of(Path::new(file))).into_iter().map(Err));
    if options.file.is_none() {
        all.extend(results::renew_all(Path::new("."), options.check));
    }
    for line in &all {
        match line {
            Ok(said) => println!("{said}"),
            Err(why) => eprintln!("{why}"),
        }
    }
    if all.iter().all(Result::is_ok) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The newest record of every study on every machine, in the folder of the repository. Files that cannot be read are passed over
/// here and told by [`unreadable`].
fn newest(root: &Path) -> Result<Vec<Entry>, String> {
    let all = history::load_all(&root.join("records")).map_err(|e| e.to_string())?;
    Ok(history::newest_of_each(all.entries))
}

/// The records that cannot be read, and why.
fn unreadable(root: &Path) -> Vec<String> {
    match history::load_all(&root.join("records")) {
        Ok(all) => all.skipped.iter().map(ToString::to_string).collect(),
        Err(e) => vec![e.to_string()],
    }
}

/// The folder that a file lies in.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A record's file as seen from the folder `root`, with slashes.
fn seen_from(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/")
}

/// What stands at a mark.
fn figures(root: &Path, what: &str) -> Result<String, String> {
    let mut words = what.split_whitespace();
    let record = words.next().ok_or("a mark names no record")?;
    let patterns: Vec<&str> = words.collect();
    if record.ends_with(".json") {
        let entry = history::load(&root.join(record)).map_err(|e| e.to_string())?;
        return one(record, &entry.record, &patterns);
    }
    let entries: Vec<Entry> = newest(root)?.into_iter().filter(|e| e.record.study == record).collect();
    if entries.is_empty() {
        return Ok(format!("No record of `{record}` is kept here yet.\n"));
    }
    let tables = entries.iter().map(|e| one(&seen_from(root, &e.path), &e.record, &patterns));
    Ok(tables.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

fn renewed(path: &Path, check: bool) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let folder = folder_of(path);
    let mut tables = 0;
    let spliced = splice(&text, |what| {
        tables += 1;
        figures(folder, what)
    })?;
    if tables == 0 {
        return Err(format!("it has no mark '{OPEN}...{END}'"));
    }
    if spliced == text {
        return Ok(format!("{}: {tables} tables as their records have them", path.display()));
    }
    if check {
        return Err("its tables are not as their records have them; `cargo xtask readme` renews them".into());
    }
    fs::write(path, spliced).map_err(|e| e.to_string())?;
    Ok(format!("{}: {tables} tables renewed", path.display()))
}

/// Puts what `make` makes between each pair of marks.
fn splice(text: &str, mut make: impl FnMut(&str) -> Result<String, String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        let from = at + OPEN.len();
        let what = rest[from..].find(END).map(|n| &rest[from..from + n]).ok_or("a mark does not end")?;
        let body = from + what.len() + END.len();
        let close = rest[body..].find(CLOSE).ok_or_else(|| format!("'{what}' lacks {CLOSE}"))?;
        if rest[body..body + close].contains(OPEN) {
            return Err(format!("'{what}' lacks {CLOSE}"));
        }
        out += &rest[..body];
        out += "\n\n";
        out += &make(what)?;
        out += "\n";
        out += CLOSE;
        rest = &rest[body + close + CLOSE.len()..];
    }
    Ok(out + rest)
}

fn selected(patterns: &[&str], subject: &str) -> bool {
    let selects = |pattern: &&str| {
        let mut parts = subject.split('/');
        pattern.split('/').all(|want| parts.next().is_some_and(|have| want == "*" || want == have))
    };
    patterns.is_empty() || patterns.iter().any(selects)
}

/// What a reader of a record's figures must know.
fn remarks(record: &Record) -> String {
    record.remarks.iter().map(|r| format!(" Remark: {r}.")).collect()
}

/// Where a table's figures come from.
fn source(name: &str, record: &Record) -> String {
    let day = record.date.get(..10).unwrap_or("undated");
    format!(
        "\n{}, {day}, from [its record]({name}); made by `{}`.{}\n",
        record.machine.cpu,
        record.command,
        remarks(record)
    )
}

/// The table of one record, of the kind that its name asks for.
fn one(name: &str, record: &Record, patterns: &[&str]) -> Result<String, String> {
    if record.study.ends_with("-peers") {
        peers::table(name, record, patterns)
    } else {
        table(name, record, patterns)
    }
}

/// Of each subject and baseline the fastest row.
fn fastest<'a>(rows: impl Iterator<Item = &'a ResultRow>) -> Vec<&'a ResultRow> {
    let mut best: Vec<&ResultRow> = Vec::new();
    for row in rows {
        match best.iter_mut().find(|b| (&b.subject, &b.baseline) == (&row.subject, &row.baseline)) {
            Some(known) if row.median < known.median => *known = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    best
}

fn table(name: &str, record: &Record, patterns: &[&str]) -> Result<String, String> {
    let best = fastest(record.results.iter().filter(|r| selected(patterns, &r.subject)));
    if best.is_empty() {
        return Err(format!("{name} has no subject '{}'", patterns.join(" ")));
    }
    let mut out = String::from(
        "| job | baseline | fastest | ratio | interval | verdict | noise floor |\n|---|---:|---:|---:|---|---|---:|\n",
    );
    for r in best {
        let [low, high] = ends(r);
        out += &format!(
            "| `{}` | {} {} | {} {} | {} | {low} … {high} | {} | {:.2} % |\n",
            r.subject,
            r.baseline,
            amount(r, r.baseline_median),
            r.variant,
            amount(r, r.median),
            times(r.ratio),
            verdict(r),
            r.noise * 100.0
        );
    }
    Ok(out + &source(name, record))
}

/// A row for tests: `variant` takes `ns` where `portable` takes 100 ns.
#[cfg(test)]
fn planted(variant: &str, ns: f64) -> ResultRow {
    let ratio = 100.0 / ns;
    let row = serde_json::json!({
        "subject": "s/op", "variant": variant, "baseline": "portable", "ratio": ratio, "low": ratio, "high": ratio,
        "noise": 0.001, "verdict": "faster", "unit": "ns", "median": ns, "mean": ns, "min": ns, "q1": ns, "q3": ns,
        "ticks": null, "baseline_median": 100.0, "baseline_mean": 100.0, "baseline_min": 100.0, "margin": 0.005,
        "detectable": 0.01, "backend": variant, "baseline_backend": "portable", "cores": 1, "iterations": [1, 1],
        "launch_pairs": [0], "samples": [], "baseline_samples": [],
    });
    serde_json::from_value(row).expect("a row")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_the_marks_is_replaced_and_nothing_else() {
        let text = "a\n<!-- figures r.json x -->\nold\n<!-- /figures -->\nb\n<!-- figures s.json -->\n<!-- /figures -->\n";
        let make = |what: &str| Ok(format!("[{what}]\n"));
        let once = splice(text, make).expect("splices");
        assert_eq!(
            once,
            "a\n<!-- figures r.json x -->\n\n[r.json x]\n\n<!-- /figures -->\nb\n<!-- figures s.json -->\n\n[s.json]\n\n<!-- /figures -->\n"
        );
        assert_eq!(splice(&once, make).expect("splices"), once, "a second time changes nothing");
        assert_eq!(splice("no marks", make).expect("splices"), "no marks");
    }

    #[test]
    fn broken_marks_are_refused() {
        let make = |_: &str| Ok(String::new());
        assert!(splice("<!-- figures r.json", make).is_err());
        assert!(splice("<!-- figures r.json -->\nold\n", make).is_err());
        assert!(splice("<!-- figures r --> <!-- figures s --> <!-- /figures -->", make).is_err());
        assert!(splice("<!-- figures r --><!-- /figures -->", |_| Err("no".into())).is_err());
    }

    #[test]
    fn patterns_select_by_component() {
        assert!(selected(&[], "a/b") && selected(&["x", "a"], "a/b") && selected(&["*/b"], "a/b"));
        assert!(!selected(&["a/b/c"], "a/b") && !selected(&["b"], "a/b"));
    }

    #[test]
    fn a_drifted_file_fails_the_check_and_a_renewed_one_passes() {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = lanework_race::clock::Monotonic::new();
        let mut record =
            Record::new("s", "lanework bench s", lanework_race::machine::Machine::inspect(&clock, vec![]));
        for (variant, ns) in [("avx2", 50.0), ("avx512", 25.0)] {
            record.results.push(planted(variant, ns));
        }
        let saved = record.save(folder.path()).expect("saved");
        let name = saved.strip_prefix(folder.path()).expect("inside").display().to_string();
        let file = folder.path().join("README.md");
        fs::write(&file, format!("# x\n<!-- figures {name} s -->\n×99 by hand\n<!-- /figures -->\n"))
            .expect("written");
        assert!(renewed(&file, true).is_err_and(|e| e.contains("not as their records")));
        assert!(renewed(&file, false).is_ok());
        let text = fs::read_to_string(&file).expect("read");
        assert!(text.contains("avx512 25.0 ns") && text.contains("×4.00") && !text.contains("×99"), "{text}");
        assert!(renewed(&file, true).is_ok());
        fs::write(&file, text.replace("×4.00", "×5.00")).expect("written");
        assert!(renewed(&file, true).is_err());
        // By what a record is about; the newest of it stands for all.
        let mut newer = record.clone();
        (newer.date, newer.results[1].ratio) = ("2999-01-01T00:00:00Z".into(), 8.0);
        (newer.results[1].low, newer.results[1].high) = (8.0, 8.0);
        newer.remarks.push("planted".into());
        newer.save(&folder.path().join("records")).expect("saved");
        record.save(&folder.path().join("records")).expect("saved");
        fs::write(&file, "<!-- figures s -->\n<!-- /figures -->\n<!-- figures t -->\n<!-- /figures -->\n")
            .expect("written");
        assert!(renewed(&file, false).is_ok());
        let text = fs::read_to_string(&file).expect("read");
        assert!(
            text.contains("×8.00") && !text.contains("×4.00") && text.contains("Remark: planted."),
            "{text}"
        );
        assert!(text.contains("(records/") && text.contains("No record of `t` is kept here yet."), "{text}");
        // A record that cannot be read is named, and holds nothing else up.
        assert_eq!(unreadable(folder.path()), Vec::<String>::new());
        let bad = folder.path().join("records").join(record.machine.slug()).join("bad.json");
        fs::write(&bad, "{").expect("written");
        assert!(renewed(&file, true).is_ok());
        assert!(matches!(&unreadable(folder.path())[..], [why] if why.contains("bad.json: not a record")));
        fs::write(&file, "no marks").expect("written");
        assert!(renewed(&file, true).is_err_and(|e| e.contains("no mark")));
    }
}
