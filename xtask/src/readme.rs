//! `cargo xtask readme`: the README's tables of figures, from the records that they come from.
//!
//! Between `<!-- figures RECORD SUBJECT... -->` and `<!-- /figures -->` stands a table of that record: of each subject that one of the
//! patterns selects, the fastest variant beside the baseline. Nobody types a figure.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use lanework_lab::history;
use lanework_lab::record::{Record, ResultRow};
use lanework_lab::table::{amount, times, verdict};

const OPEN: &str = "<!-- figures ";
const END: &str = " -->";
const CLOSE: &str = "<!-- /figures -->";

/// `readme`.
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if the file is not as its records have it.
    #[arg(long)]
    check: bool,
    /// The file.
    #[arg(default_value = "README.md")]
    file: String,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    match renewed(options) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{}: {why}", options.file);
            ExitCode::FAILURE
        }
    }
}

fn renewed(options: &Options) -> Result<String, String> {
    let path = Path::new(&options.file);
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut tables = 0;
    let spliced = splice(&text, |what| {
        tables += 1;
        let mut words = what.split_whitespace();
        let record = words.next().ok_or("a mark names no record")?;
        let entry = history::load(&folder.join(record)).map_err(|e| e.to_string())?;
        table(record, &entry.record, &words.collect::<Vec<_>>())
    })?;
    if tables == 0 {
        return Err(format!("it has no mark '{OPEN}...{END}'"));
    }
    if spliced == text {
        return Ok(format!("{}: {tables} tables as their records have them", options.file));
    }
    if options.check {
        return Err("its tables are not as their records have them; `cargo xtask readme` renews them".into());
    }
    fs::write(path, spliced).map_err(|e| e.to_string())?;
    Ok(format!("{}: {tables} tables renewed", options.file))
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

fn table(name: &str, record: &Record, patterns: &[&str]) -> Result<String, String> {
    let mut best: Vec<&ResultRow> = Vec::new();
    for row in record.results.iter().filter(|r| selected(patterns, &r.subject)) {
        match best.iter_mut().find(|b| (&b.subject, &b.baseline) == (&row.subject, &row.baseline)) {
            Some(known) if row.median < known.median => *known = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    if best.is_empty() {
        return Err(format!("{name} has no subject '{}'", patterns.join(" ")));
    }
    let mut out = String::from(
        "| job | baseline | fastest | ratio | interval | verdict | noise floor |\n|---|---:|---:|---:|---|---|---:|\n",
    );
    for r in best {
        out += &format!(
            "| `{}` | {} {} | {} {} | {} | {} … {} | {} | {:.2} % |\n",
            r.subject,
            r.baseline,
            amount(r, r.baseline_median),
            r.variant,
            amount(r, r.median),
            times(r.ratio),
            times(r.low),
            times(r.high),
            verdict(r),
            r.noise * 100.0
        );
    }
    let day = record.date.get(..10).unwrap_or("undated");
    out += &format!(
        "\n{}, {day}, from [its record]({name}); made by `{}`.\n",
        record.machine.cpu, record.command
    );
    Ok(out)
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
        let clock = lanework_lab::clock::Monotonic::new();
        let mut record =
            Record::new("s", "lanework bench s", lanework_lab::machine::Machine::inspect(&clock, vec![]));
        for (variant, ns) in [("avx2", 50.0), ("avx512", 25.0)] {
            let ratio = 100.0 / ns;
            let row = serde_json::json!({
                "subject": "s/op", "variant": variant, "baseline": "portable", "ratio": ratio, "low": ratio, "high": ratio,
                "noise": 0.001, "verdict": "faster", "unit": "ns", "median": ns, "mean": ns, "min": ns, "q1": ns, "q3": ns,
                "ticks": null, "baseline_median": 100.0, "baseline_mean": 100.0, "baseline_min": 100.0, "margin": 0.005,
                "detectable": 0.01, "backend": variant, "baseline_backend": "portable", "cores": 1, "iterations": [1, 1],
                "launch_pairs": [0], "samples": [], "baseline_samples": [],
            });
            record.results.push(serde_json::from_value(row).expect("a row"));
        }
        let saved = record.save(folder.path()).expect("saved");
        let name = saved.strip_prefix(folder.path()).expect("inside").display().to_string();
        let file = folder.path().join("README.md");
        fs::write(&file, format!("# x\n<!-- figures {name} s -->\n×99 by hand\n<!-- /figures -->\n"))
            .expect("written");
        let options = |check| Options { check, file: file.display().to_string() };
        assert!(renewed(&options(true)).is_err_and(|e| e.contains("not as their records")));
        assert!(renewed(&options(false)).is_ok());
        let text = fs::read_to_string(&file).expect("read");
        assert!(text.contains("avx512 25.0 ns") && text.contains("×4.00") && !text.contains("×99"), "{text}");
        assert!(renewed(&options(true)).is_ok());
        fs::write(&file, text.replace("×4.00", "×5.00")).expect("written");
        assert!(renewed(&options(true)).is_err());
        fs::write(&file, "no marks").expect("written");
        assert!(renewed(&options(true)).is_err_and(|e| e.contains("no mark")));
    }
}
