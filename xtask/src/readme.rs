//! `cargo xtask readme`: the tables and the picture of the README, the tables of `docs/figures.md` and `docs/losing-rows.md`, the results
//! of the studies, the comparison in MAYO's README, all from the committed records, and the floors in the design of `mayo-cuda`.
//!
//! Between `<!-- figures WHAT -->` and `<!-- /figures -->` is the text that WHAT selects:
//!
//! | WHAT | text |
//! |---|---|
//! | `RECORD SUBJECT...` | for each subject that a pattern selects, the fastest variant beside the baseline |
//! | `RECORD-peers SUBJECT...` | ours beside the fastest peer |
//! | `bench-signatures-peers` | sizes and speeds of MAYO and of other signature schemes |
//! | `headline`, then lines `RECORD-peers SUBJECT LABEL` | ours beside the fastest peer, one row per line |
//! | `picture FILE` | the document's headline as a picture of all peers, in that file |
//! | `behind peers` | every row against a peer whose verdict is not *ours faster* |
//! | `behind baseline` | every row of our own variants whose verdict is not *faster* |
//! | `section FILE HEADING` | what another document has below a heading |
//!
//! RECORD is a file, or the topic of records (`bench-mayo`), which selects the newest of them on every machine, the newest
//! machine first. `studies/<name>/results.md` is the page of the newest record of that study.
#![forbid(unsafe_code)]

mod headline;
mod peers;
mod picture;
mod results;
mod signatures;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use lanework_race::history::{self, Entry};
use lanework_race::record::{Record, ResultRow, stem};
use lanework_race::table::{amount, ends, times, verdict};
use lanework_race::verdict::Verdict;

use crate::Complaint;

const OPEN: &str = "<!-- figures ";
const END: &str = "-->";
const CLOSE: &str = "<!-- /figures -->";

/// The files with marks.
const FILES: [&str; 5] = [
    "README.md",
    "docs/figures.md",
    "docs/losing-rows.md",
    "crates/mayo-cuda/DESIGN.md",
    "crates/mayo/README.md",
];

/// `readme`.
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a file differs from its records.
    #[arg(long)]
    check: bool,
    /// Only this file; otherwise all with marks, and the results of all studies.
    file: Option<String>,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let root = Path::new(".");
    let files: Vec<&str> = options.file.as_deref().map_or(FILES.to_vec(), |file| vec![file]);
    let mut all: Vec<_> = files.iter().map(|file| renewed(root, file, options.check)).collect();
    all.extend(unreadable(root).into_iter().map(Err));
    if options.file.is_none() {
        all.extend(results::renew_all(root, options.check));
    }
    for line in &all {
        match line {
            Ok(said) => println!("{said}"),
            Err(why) if options.check => {
                Complaint::from(why.clone()).help("`cargo xtask readme` renews it from the records").print();
            }
            Err(why) => Complaint::from(why.clone()).print(),
        }
    }
    if all.iter().all(Result::is_ok) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The newest record of every study on every machine, in the folder of the repository. Unreadable files are skipped here and
/// reported by [`unreadable`].
fn newest(root: &Path) -> Result<Vec<Entry>, String> {
    let all = history::load_all(&root.join("records")).map_err(|e| e.to_string())?;
    Ok(history::newest_of_each(all.entries))
}

/// Those that `wanted` selects by study, the newest first.
fn newest_first(root: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = newest(root)?.into_iter().filter(|e| wanted(&e.record.study)).collect();
    entries.sort_by(|a, b| b.record.date.cmp(&a.record.date));
    Ok(entries)
}

/// The records that cannot be read, and why.
fn unreadable(root: &Path) -> Vec<String> {
    match history::load_all(&root.join("records")) {
        Ok(all) => all.skipped.iter().map(ToString::to_string).collect(),
        Err(e) => vec![e.to_string()],
    }
}

/// A record's file as seen from the folder `root`, with slashes.
fn seen_from(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/")
}

/// A document with marks: the repository's root, and the document's path from there.
struct Document<'a> {
    root: &'a Path,
    file: &'a str,
}

impl Document<'_> {
    /// A link from this document to a file, given by its path from the root.
    fn link(&self, to: &str) -> String {
        "../".repeat(self.file.matches('/').count()) + to
    }

    /// The same to a record.
    fn link_to(&self, entry: &Entry) -> String {
        self.link(&seen_from(self.root, &entry.path))
    }

    /// The text at a mark.
    fn figures(&self, what: &str, seen: &mut Seen) -> Result<String, String> {
        let mut words = what.split_whitespace();
        let record = words.next().ok_or("a mark names no record")?;
        let patterns: Vec<&str> = words.collect();
        match (record, &patterns[..]) {
            ("headline", _) => {
                let lines: Vec<&str> = what.lines().skip(1).collect();
                let headline = headline::read(self, &lines)?;
                let table = headline::table(self, &headline);
                seen.headline = Some(headline);
                return Ok(table);
            }
            ("picture", [file]) => {
                let headline = seen.headline.as_ref().ok_or("a picture comes before its headline")?;
                seen.pictures.push(((*file).to_owned(), picture::svg(headline)));
                return Ok(headline::shown(self, headline, file));
            }
            ("section", [file, heading]) => {
                let text = fs::read_to_string(self.root.join(file)).map_err(|e| format!("{file}: {e}"))?;
                return section(&text, heading).ok_or_else(|| format!("{file} has no heading '{heading}'"));
            }
            ("behind", ["peers"]) => {
                // Other schemes are not peers of ours.
                let wanted = |study: &str| study.ends_with("-peers") && study != signatures::STUDY;
                return behind(self, wanted, peers::not_faster);
            }
            ("behind", ["baseline"]) => {
                let ours = |study: &str| study.starts_with("bench-") && !study.ends_with("-peers");
                return behind(self, ours, not_faster);
            }
            _ => {}
        }
        if stem(Path::new(record)).is_some() {
            let entry = history::load(&self.root.join(record)).map_err(|e| e.to_string())?;
            return one(&self.link(record), &entry.record, &patterns);
        }
        let entries = newest_first(self.root, |study| study == record)?;
        if entries.is_empty() {
            return Ok(format!("There is not yet a record of `{record}`.\n"));
        }
        let tables = entries.iter().map(|e| one(&self.link_to(e), &e.record, &patterns));
        Ok(tables.collect::<Result<Vec<_>, _>>()?.join("\n"))
    }
}

/// The text below a heading of the second level, to the next one.
fn section(text: &str, heading: &str) -> Option<String> {
    let (_, behind) = text.split_once(&format!("\n## {heading}\n"))?;
    let own = behind.split("\n## ").next().unwrap_or_default();
    Some(format!("{}\n", own.trim()))
}

/// What the marks of a document have produced so far.
#[derive(Default)]
struct Seen {
    marks: usize,
    headline: Option<headline::Headline>,
    /// Each with its path from the root.
    pictures: Vec<(String, String)>,
}

/// Writes `due` to `path`, or with `check` compares; returns whether it had to change.
fn put(path: &Path, due: &str, check: bool) -> Result<bool, String> {
    if fs::read_to_string(path).is_ok_and(|found| found == due) {
        return Ok(false);
    }
    if check {
        return Err("it differs from its records".into());
    }
    fs::write(path, due).map_err(|e| e.to_string())?;
    Ok(true)
}

fn renewed(root: &Path, file: &str, check: bool) -> Result<String, String> {
    let wrong = |file: &str, why: String| format!("{file}: {why}");
    let path = root.join(file);
    let text = fs::read_to_string(&path).map_err(|e| wrong(file, e.to_string()))?;
    let document = Document { root, file };
    let mut seen = Seen::default();
    let spliced = splice(&text, |what| {
        seen.marks += 1;
        document.figures(what, &mut seen)
    });
    let spliced = spliced.map_err(|why| wrong(file, why))?;
    if seen.marks == 0 {
        return Err(wrong(file, format!("it has no mark '{OPEN}...{END}'")));
    }
    let mut changed = put(&path, &spliced, check).map_err(|why| wrong(file, why))?;
    for (picture, svg) in &seen.pictures {
        changed |= put(&root.join(picture), svg, check).map_err(|why| wrong(picture, why))?;
    }
    let state = if changed { "renewed" } else { "as in the records" };
    Ok(format!("{file}: {} marks, {} pictures, {state}", seen.marks, seen.pictures.len()))
}

/// Puts the output of `make` between each pair of marks.
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
        out += &make(what.trim())?;
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

/// A record's remarks, which readers of its figures must know.
fn remarks(record: &Record) -> String {
    record.remarks.iter().map(|r| format!(" Remark: {r}.")).collect()
}

/// Where a table's figures come from.
fn source(name: &str, record: &Record) -> String {
    let day = record.date.get(..10).unwrap_or("undated");
    format!(
        "\n{}, {day}, from [its record]({name}); made by `{}`.{}\n",
        record.machine.title(),
        record.command,
        remarks(record)
    )
}

/// The table of one record, in the form that its name selects.
fn one(name: &str, record: &Record, patterns: &[&str]) -> Result<String, String> {
    if record.study == signatures::STUDY {
        signatures::table(name, record)
    } else if record.study.ends_with("-peers") {
        peers::table(name, record, patterns)
    } else {
        table(name, record, patterns)
    }
}

/// The fastest row of each subject and baseline.
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

/// A record's rows that a reader should not miss.
type Selection = fn(&Record) -> Result<(usize, Vec<String>), String>;

/// The rows that `select` picks from the newest records of the studies that `wanted` selects, as one table.
fn behind(
    document: &Document<'_>,
    wanted: impl Fn(&str) -> bool,
    select: Selection,
) -> Result<String, String> {
    let (mut all, mut rows) = (0, String::new());
    let entries = newest_first(document.root, wanted)?;
    for entry in &entries {
        let link = document.link_to(entry);
        let (seen, found) = select(&entry.record).map_err(|why| format!("{link}: {why}"))?;
        all += seen;
        for row in found {
            rows += &format!("| {row} | [{}]({link}) |\n", entry.record.study);
        }
    }
    if rows.is_empty() {
        return Ok(format!("None of {all} rows in {} records.\n", entries.len()));
    }
    let count = rows.lines().count();
    Ok(format!(
        "{count} of {all} rows in {} records:\n\n| job | raced | against | ratio | interval | verdict | record |\n\
         |---|---|---|---:|---|---|---|\n{rows}",
        entries.len()
    ))
}

/// How many rows a record of our own variants has, and those that are not faster than their baseline.
fn not_faster(record: &Record) -> Result<(usize, Vec<String>), String> {
    let rows = record.results.iter().filter(|r| r.verdict != Verdict::Faster);
    let shown = rows.map(|r| {
        let [low, high] = ends(r);
        let (ratio, word) = (times(r.ratio), verdict(r));
        format!("`{}` | {} | {} | {ratio} | {low} … {high} | {word}", r.subject, r.variant, r.baseline)
    });
    Ok((record.results.len(), shown.collect()))
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
        "launch_pairs": [1], "samples": [], "baseline_samples": [],
    });
    serde_json::from_value(row).expect("a row")
}

#[cfg(test)]
mod tests {
    use lanework_race::machine::Fact;

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
    fn a_section_ends_at_the_next_heading() {
        let text = "# T\n\n## One\n\na\n\n### b\n\nc\n\n## Two\n\nd\n";
        assert_eq!(section(text, "One").as_deref(), Some("a\n\n### b\n\nc\n"));
        assert_eq!(section(text, "Two").as_deref(), Some("d\n"));
        assert_eq!(section(text, "Three"), None);
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
        let renewed = |_: &Path, check| renewed(folder.path(), "README.md", check);
        fs::write(&file, format!("# x\n<!-- figures {name} s -->\n×99 by hand\n<!-- /figures -->\n"))
            .expect("written");
        assert!(renewed(&file, true).is_err_and(|e| e.contains("differs from its records")));
        assert!(renewed(&file, false).is_ok());
        let text = fs::read_to_string(&file).expect("read");
        assert!(text.contains("avx512 25.0 ns") && text.contains("×4.00") && !text.contains("×99"), "{text}");
        assert!(renewed(&file, true).is_ok());
        fs::write(&file, text.replace("×4.00", "×5.00")).expect("written");
        assert!(renewed(&file, true).is_err());
        // By topic: the newest record is used.
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
        assert!(text.contains("(records/") && text.contains("not yet a record of `t`."), "{text}");
        // An unreadable record is reported, and blocks nothing else.
        assert_eq!(unreadable(folder.path()), Vec::<String>::new());
        let bad = folder.path().join("records").join(record.machine.slug()).join("bad.json");
        fs::write(&bad, "{").expect("written");
        assert!(renewed(&file, true).is_ok());
        assert!(matches!(&unreadable(folder.path())[..], [why] if why.contains("bad.json: not a record")));
        fs::write(&file, "no marks").expect("written");
        assert!(renewed(&file, true).is_err_and(|e| e.contains("no mark")));
    }

    #[test]
    fn the_headline_its_picture_and_what_is_behind_follow_their_records() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let peers = ["slow", "quick"].map(|name| lanework_race::machine::PeerBuild {
            name: name.into(),
            version: "1".into(),
            compiler: "cc".into(),
            flags: "-O2".into(),
        });
        let clock = lanework_race::clock::Monotonic::new();
        let machine = lanework_race::machine::Machine::inspect(&clock, peers.into());
        let mut record = Record::new("bench-s-peers", "lanework bench s --peers --only slow,quick", machine);
        record.machine.build.tree = "clean".into();
        record.results = vec![planted("slow", 900.0), planted("quick", 400.0)];
        for row in &mut record.results {
            row.verdict = Verdict::Slower;
        }
        record.save(&root.join("records")).expect("saved");
        fs::create_dir(root.join("docs")).expect("created");
        let marks = "<!-- figures headline\nbench-s-peers s/op A job\n-->\n<!-- /figures -->\n\
                     <!-- figures picture docs/p.svg -->\n<!-- /figures -->\n\
                     <!-- figures behind peers -->\n<!-- /figures -->\n";
        fs::write(root.join("docs/x.md"), marks).expect("written");
        let read = |file: &str| fs::read_to_string(root.join(file)).expect("read");
        assert!(renewed(root, "docs/x.md", true).is_err());
        renewed(root, "docs/x.md", false).expect("renewed");
        renewed(root, "docs/x.md", true).expect("as in the records");
        let text = read("docs/x.md");
        for part in
            ["| A job | portable 100 ns | quick 400 ns | **×4.00** |", "(../records/", "(../docs/p.svg)"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(text.contains("slow ×9.00") && text.contains("None of 2 rows in 1 records."), "{text}");
        let svg = read("docs/p.svg");
        assert!(svg.contains(">quick<") && svg.contains(">×9.00<"), "{svg}");
        // A picture that was changed by hand fails the check by its own name.
        fs::write(root.join("docs/p.svg"), svg.replace("×9.00", "×90.0")).expect("written");
        assert!(renewed(root, "docs/x.md", true).is_err_and(|e| e.starts_with("docs/p.svg: ")));
        // A newer record in which a peer wins is shown as such.
        record.date = "2999-01-01T00:00:00Z".into();
        record.results[1] = planted("quick", 50.0);
        record.save(&root.join("records")).expect("saved");
        assert!(renewed(root, "docs/x.md", true).is_err());
        renewed(root, "docs/x.md", false).expect("renewed");
        let text = read("docs/x.md");
        assert!(text.contains("| **×0.500** |") && text.contains("1 of 2 rows in 1 records:"), "{text}");
        assert!(
            text.contains("| `s/op` | portable | quick | ×0.500 | ×0.500 … ×0.500 | ours slower |"),
            "{text}"
        );
        // A newer machine stays behind until it has every job; the other is then named.
        record.date = "2999-02-01T00:00:00Z".into();
        record.machine.cpu = Fact::Known("Newer".into());
        (record.results[0].subject, record.results[1].subject) = ("s/x".into(), "s/x".into());
        record.save(&root.join("records")).expect("saved");
        renewed(root, "docs/x.md", false).expect("renewed");
        let others = format!("Other machines: [{}](../docs/figures.md).", record.machine.title());
        assert!(read("docs/x.md").contains(&others));
        record.date = "2999-03-01T00:00:00Z".into();
        record.results = vec![planted("slow", 900.0), planted("quick", 950.0)];
        record.results.iter_mut().for_each(|row| row.verdict = Verdict::Slower);
        record.save(&root.join("records")).expect("saved");
        renewed(root, "docs/x.md", false).expect("renewed");
        let text = read("docs/x.md");
        let measured = format!("Measured on {}: ", record.machine.title());
        assert!(text.contains(&measured) && text.contains("| slow 900 ns |"), "{text}");
        // What is not fit for a front page is refused, for each reason alone.
        let sound = record.clone();
        type Plant = (fn(&mut Record), &'static str);
        let faults: [Plant; 5] = [
            (|r| r.machine.build.tree = "changed".into(), "of a changed tree"),
            (|r| r.command += " --quick", "of a quick form"),
            (|r| r.command += " --only fast", "no row of the peer fast"),
            (
                |r| (r.results[0].noise, r.results[0].detectable) = (0.051, 0.051),
                "noise floor of 5.1 % against slow",
            ),
            (
                |r| {
                    let row = &mut r.results[1];
                    (row.low, row.high, row.verdict) = (0.1, 1.2, Verdict::CannotTell);
                },
                "'cannot tell' against quick",
            ),
        ];
        for (n, (plant, says)) in faults.into_iter().enumerate() {
            let mut bad = sound.clone();
            bad.date = format!("2999-04-{:02}T00:00:00Z", n + 1);
            plant(&mut bad);
            bad.save(&root.join("records")).expect("saved");
            assert!(renewed(root, "docs/x.md", true).is_err_and(|e| e.contains(says)), "{says}");
        }
        record.date = "2999-05-01T00:00:00Z".into();
        record.save(&root.join("records")).expect("saved");
        renewed(root, "docs/x.md", false).expect("renewed");
        fs::write(root.join("docs/y.md"), "<!-- figures picture docs/p.svg -->\n<!-- /figures -->\n")
            .expect("written");
        assert!(renewed(root, "docs/y.md", false).is_err_and(|e| e.contains("before its headline")));
        // A job that no record has.
        fs::write(root.join("docs/x.md"), marks.replace("s/op", "s/other")).expect("written");
        assert!(renewed(root, "docs/x.md", false).is_err_and(|e| e.contains("no machine has a record")));
        fs::write(root.join("docs/x.md"), marks.replace(" A job", "")).expect("written");
        assert!(renewed(root, "docs/x.md", false).is_err_and(|e| e.contains("not RECORD SUBJECT LABEL")));
    }
}
