//! `leak-evidence`: all that is known of leaks, as one page and one record.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use lanework_race::clock::Monotonic;
use lanework_race::machine::Machine;
use lanework_race::record::Record;
use lanework_race::study::Study;
use lanework_race::table::folded;
use lanework_study::markdown::{NONE, table};
use lanework_study::races::{allowed, peer_builds};
use lanework_study::{CORRECT, Failure, Found, Options, Outcome, Session, document, leaks};
use lanework_suite::leaks::Evidence;
use lanework_suite::leaks::evidence::{Finding, Means, PlantedRow, Row};
use serde::{Deserialize, Serialize};

/// Operations, and the means to check them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    what: String,
    means: Vec<String>,
    #[serde(default)]
    seconds: Option<f64>,
}

/// The study as data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    quick: Vec<Part>,
    full: Vec<Part>,
}

fn named(name: &str) -> Option<Means> {
    Means::ALL.into_iter().find(|m| m.name() == name)
}

impl Question {
    fn of(study: &Study) -> Result<Question, Failure> {
        let wrong = |why: String| Failure::input(format!("{}/study.toml: {why}", study.name)).help(CORRECT);
        let asked: Question =
            study.table.clone().try_into().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
        for part in asked.quick.iter().chain(&asked.full) {
            if let Some(stranger) = part.means.iter().find(|m| named(m).is_none()) {
                return Err(wrong(format!("there are no means '{stranger}'")));
            }
            if part.means.is_empty() || part.what.is_empty() {
                return Err(wrong("a part names operations and means".into()));
            }
            if let Some(Err(why)) = part.seconds.map(allowed) {
                return Err(wrong(format!("seconds of a series: {why}")));
            }
        }
        if asked.quick.is_empty() || asked.full.is_empty() {
            return Err(wrong("nothing is asked".into()));
        }
        Ok(asked)
    }
}

/// What the template names.
#[derive(Clone, Debug, Serialize)]
struct Page {
    question: String,
    machine: String,
    command: String,
    form: &'static str,
    summary: String,
    planted: String,
    verdict: Vec<String>,
    kinds: String,
    operations: String,
    suspicions: Vec<String>,
    reasons: Vec<String>,
    remarks: Vec<String>,
}

/// The first component of a path.
fn primitive(row: &Row) -> &str {
    row.what.split('/').next().unwrap_or(&row.what)
}

/// "72 clean, 1 known", or nothing.
fn counted(rows: &[&Row]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for word in rows.iter().map(|row| row.finding.word()) {
        match counts.iter_mut().find(|(w, _)| *w == word) {
            Some((_, n)) => *n += 1,
            None => counts.push((word, 1)),
        }
    }
    let said: Vec<String> = counts.iter().map(|(word, n)| format!("{n} {word}")).collect();
    if said.is_empty() { NONE.to_owned() } else { said.join(", ") }
}

fn header(first: &[&str]) -> Vec<String> {
    first.iter().copied().chain(Means::ALL.map(Means::name)).map(str::to_owned).collect()
}

/// Keys in the order in which they first appear.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    all.for_each(|one| {
        if !seen.contains(&one) {
            seen.push(one);
        }
    });
    seen
}

fn summary(rows: &[&Row]) -> String {
    let lines = distinct(rows.iter().map(|row| (primitive(row), row.backend.as_str())));
    let cells = lines.into_iter().map(|(of, backend)| {
        let own = |means| -> Vec<&Row> {
            let is = |row: &&&Row| primitive(row) == of && row.backend == backend && row.means == means;
            rows.iter().filter(is).copied().collect()
        };
        [of.to_owned(), backend.to_owned()].into_iter().chain(Means::ALL.map(|m| counted(&own(m)))).collect()
    });
    table(&header(&["primitive", "backend"]), &cells.collect::<Vec<Vec<String>>>())
}

fn operations(rows: &[&Row]) -> String {
    let mut order: Vec<&str> = Vec::new();
    let mut lines: BTreeMap<(&str, usize), [&str; 4]> = BTreeMap::new();
    for row in rows {
        let at = order.iter().position(|b| *b == row.backend).unwrap_or_else(|| {
            order.push(&row.backend);
            order.len() - 1
        });
        let line = lines.entry((row.what.as_str(), at)).or_insert([NONE; 4]);
        if let Some(column) = Means::ALL.iter().position(|m| *m == row.means) {
            line[column] = row.finding.word();
        }
    }
    let cells = lines
        .into_iter()
        .map(|((what, at), found)| [what, order[at]].into_iter().chain(found).map(str::to_owned).collect());
    table(&header(&["operation", "backend"]), &cells.collect::<Vec<Vec<String>>>())
}

fn planted_table(planted: &[&PlantedRow]) -> String {
    let cells = distinct(planted.iter().map(|row| row.tier)).into_iter().map(|tier| {
        let cell = |means| {
            let of = |sound: bool| {
                planted.iter().filter(move |r| (r.tier, r.means, r.sound) == (tier, means, sound))
            };
            let (leaks, sound) = (of(false).count(), of(true).count());
            if leaks + sound == 0 {
                return NONE.to_owned();
            }
            let right = |sound| of(sound).filter(|r| r.right).count();
            let passed =
                if sound == 0 { String::new() } else { format!(", {} of {sound} sound", right(true)) };
            format!("{} of {leaks} found{passed}", right(false))
        };
        [tier.to_owned()].into_iter().chain(Means::ALL.map(cell)).collect()
    });
    table(&header(&["tier"]), &cells.collect::<Vec<Vec<String>>>())
}

/// Whether it holds, and in words.
fn verdict(rows: &[&Row], planted: &[&PlantedRow]) -> (bool, Vec<String>) {
    let count = |word: &str| rows.iter().filter(|row| row.finding.word() == word).count();
    let mut lines = Vec::new();
    let (clean, failed) = (count("clean"), rows.iter().filter(|row| row.finding.fails()).count());
    lines.push(format!(
        "{clean} judgements are clean, {} leaks, {} checks went wrong; {} operations have a declared leak and no other; of {} a means \
         has nothing to say, for the reasons below.",
        count("LEAK"),
        count("BROKEN"),
        count("known"),
        count("n/a")
    ));
    for row in rows.iter().filter(|row| row.finding.fails()) {
        let detail = row.finding.detail();
        lines.push(format!(
            "**{}** {} of {}, {}: {detail}",
            row.finding.word(),
            row.what,
            row.backend,
            row.means
        ));
    }
    let leaks: Vec<_> = planted.iter().filter(|row| !row.sound).collect();
    let found = leaks.iter().filter(|row| row.right).count();
    let sound = planted.len() - leaks.len();
    lines.push(format!(
        "{found} of {} planted leaks were found and named; {} of {sound} sound twins passed.",
        leaks.len(),
        planted.iter().filter(|row| row.sound && row.right).count()
    ));
    for row in planted.iter().filter(|row| !row.right) {
        let how = if row.sound { "accused" } else { "missed" };
        lines.push(format!(
            "**{how}** the planted `{}` of {}, {}: {}",
            row.plant, row.tier, row.means, row.said
        ));
    }
    let holds = failed == 0 && clean > 0 && !leaks.is_empty() && planted.iter().all(|row| row.right);
    lines.push(if holds { "It holds." } else { "IT DOES NOT HOLD." }.to_owned());
    (holds, lines)
}

pub(crate) fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    leaks::optimised()?;
    let asked = Question::of(study)?;
    let record = Record::new(
        crate::ENTRY.name,
        &session.command,
        Machine::inspect(&Monotonic::new(), peer_builds(session)),
    );
    let mut all = Vec::new();
    for part in if options.full { &asked.full } else { &asked.quick } {
        let means = part.means.iter().filter_map(|m| named(m)).collect();
        all.extend(leaks::gather(session, &part.what, means, part.seconds)?);
    }
    found(study, options.full, record, &all)
}

fn found(study: &Study, full: bool, record: Record, all: &[Evidence]) -> Result<Found, Failure> {
    let rows: Vec<&Row> = all
        .iter()
        .filter_map(|piece| if let Evidence::Operation(row) = piece { Some(row) } else { None })
        .collect();
    // Each part plants again; a plant that was missed once stays missed.
    let mut planted: Vec<&PlantedRow> = Vec::new();
    for piece in all {
        if let Evidence::Planted(row) = piece {
            match planted.iter_mut().find(|p| (p.tier, p.plant, p.means) == (row.tier, row.plant, row.means))
            {
                Some(kept) if kept.right => *kept = row,
                Some(_) => {}
                None => planted.push(row),
            }
        }
    }
    let (holds, told) = verdict(&rows, &planted);
    let kinds: BTreeSet<&str> = rows.iter().flat_map(|r| &r.unpromised).map(String::as_str).collect();
    let silent = rows.iter().filter_map(|row| match &row.finding {
        Finding::NotApplicable(why) | Finding::Known(why) => {
            Some((row.what.clone(), format!("{} {}", row.backend, row.means), why.clone()))
        }
        _ => None,
    });
    let silent: Vec<(String, String, String)> = silent.collect();
    let suspicions = rows.iter().filter_map(|row| {
        let why = row.suspicion.as_ref()?;
        Some(format!("{} {} {}: {}; {why}", row.what, row.backend, row.means, row.extent))
    });
    let page = Page {
        question: study.question.clone(),
        machine: record.machine.summary(),
        command: record.command.clone(),
        form: if full { "" } else { " (the quick form: some operations and means; `--full` judges all)" },
        summary: summary(&rows),
        planted: planted_table(&planted),
        verdict: told.clone(),
        kinds: kinds.iter().copied().collect::<Vec<_>>().join(" "),
        operations: operations(&rows),
        suspicions: suspicions.collect(),
        reasons: folded(silent.iter().map(|(what, of, why)| (what.as_str(), of.as_str(), why.as_str()))),
        remarks: record.remarks.clone(),
    };
    let mut findings = leaks::json(&rows, &planted);
    findings["holds"] = holds.into();
    findings["told"] = told.into();
    Ok(Found { page: document(&page)?, findings, outcome: Outcome::from_bool(holds), record })
}

#[cfg(test)]
mod tests {
    use lanework_race::study::render;

    use super::*;

    fn row(what: &str, backend: &str, means: Means, finding: Finding) -> Evidence {
        let unpromised =
            if means == Means::Instructions { vec!["vpermb".into(), "rol".into()] } else { Vec::new() };
        Evidence::Operation(Row {
            what: what.into(),
            backend: backend.into(),
            means,
            finding,
            extent: String::new(),
            unpromised,
            suspicion: None,
        })
    }

    fn plant(plant: &'static str, means: Means, sound: bool, right: bool) -> Evidence {
        Evidence::Planted(PlantedRow {
            tier: "avx2",
            plant,
            means,
            sound,
            right,
            said: "what was said".into(),
        })
    }

    fn told(all: &[Evidence]) -> (bool, String) {
        let study = Study::from_toml(crate::ENTRY.name, crate::ENTRY.toml).expect("a study");
        let record = Record::new(
            crate::ENTRY.name,
            "lanework study leak-evidence",
            Machine::inspect(&Monotonic::new(), vec![]),
        );
        let found = found(&study, true, record, all).expect("a page");
        (found.findings["holds"] == true, render(crate::ENTRY.template, &found.page).expect("it renders"))
    }

    fn sound() -> Vec<Evidence> {
        vec![
            plant("load_by_lanes", Means::Traced, false, true),
            plant("select_by_lanes", Means::Traced, true, true),
            row("magma/ctr", "avx2", Means::Traced, Finding::Clean),
            row("magma/ctr", "avx2", Means::Instructions, Finding::Clean),
            row(
                "magma/omac",
                "avx512-vbmi",
                Means::Valgrind,
                Finding::NotApplicable("it knows no AVX-512".into()),
            ),
            // Planted once more with the next part.
            plant("load_by_lanes", Means::Traced, false, true),
        ]
    }

    #[test]
    fn what_is_clean_holds_and_stands_in_the_tables() {
        let (holds, text) = told(&sound());
        assert!(holds, "{text}");
        let squeezed: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "| magma | avx2 | 1 clean | 1 clean | - | - |",
            "| magma | avx512-vbmi | - | - | 1 n/a | - |",
            "| avx2 | 1 of 1 found, 1 of 1 sound | - | - | - |",
            "| magma/ctr | avx2 | clean | clean | - | - |",
            "1 of 1 planted leaks were found and named; 1 of 1 sound twins passed",
            "magma/omac avx512-vbmi valgrind: it knows no AVX-512",
            "rol vpermb.",
            "It holds.",
        ] {
            assert!(squeezed.contains(part), "{part:?} is not in\n{text}");
        }
    }

    #[test]
    fn what_one_process_saw_and_others_did_not_is_told_and_is_no_leak() {
        let (_, text) = told(&sound());
        assert!(!text.contains("Suspicions"), "{text}");
        let mut seen = row("magma/mgm", "avx2", Means::Timing, Finding::Clean);
        if let Evidence::Operation(row) = &mut seen {
            row.extent = "1000 samples, |t| 12.0 of all".into();
            row.suspicion = Some("suspicious, and another process did not show it".into());
        }
        let (holds, text) = told(&[sound(), vec![seen]].concat());
        let line = "- magma/mgm avx2 timing: 1000 samples, |t| 12.0 of all; suspicious, and another process did not show it";
        assert!(holds && text.contains("## Suspicions that did not hold") && text.contains(line), "{text}");
    }

    #[test]
    fn a_leak_a_missed_plant_or_nothing_at_all_does_not_hold() {
        let with = |more: Evidence| told(&[sound(), vec![more]].concat());
        let (holds, text) = with(row("magma/mgm", "avx2", Means::Traced, Finding::Leak("`je` in f".into())));
        assert!(!holds && text.contains("**LEAK** magma/mgm of avx2, traced: `je` in f"), "{text}");
        assert!(!with(row("magma/mgm", "avx2", Means::Timing, Finding::Broken("why".into()))).0);
        let (holds, text) = with(plant("loop_by_byte", Means::Timing, false, false));
        assert!(!holds && text.contains("**missed** the planted `loop_by_byte`"), "{text}");
        assert!(!with(plant("select_by_lanes", Means::Traced, true, false)).0, "a sound twin was accused");
        // Missed in one part, found in another.
        assert!(!with(plant("load_by_lanes", Means::Traced, false, false)).0);
        assert!(!told(&sound()[..2]).0 && !told(&sound()[2..5]).0);
    }

    #[test]
    fn the_study_reads_and_nonsense_is_refused() {
        let study = |text: &str| Study::from_toml(crate::ENTRY.name, text).expect("a study");
        assert!(Question::of(&study(crate::ENTRY.toml)).is_ok());
        for (from, to) in [
            ("\"traced\"", "\"guessed\""),
            ("means = [\"traced\"]", "means = []"),
            ("what = \"magma\"", "what = \"\""),
            ("means = [\"valgrind\"]", "means = [\"valgrind\"]\nseconds = 0.0"),
            ("means = [\"valgrind\"]", "means = [\"valgrind\"]\nseconds = 1e30"),
            ("[[quick]]", "[[quickly]]"),
        ] {
            assert!(crate::ENTRY.toml.contains(from), "{from}");
            assert!(Question::of(&study(&crate::ENTRY.toml.replacen(from, to, 1))).is_err(), "{to}");
        }
    }
}
