//! The page: which flags matter, and by how much, as the rows say.
#![forbid(unsafe_code)]

use lanework_race::record::ResultRow;
use lanework_race::table::{folded, percent, times};
use lanework_race::verdict::Verdict;
use lanework_study::markdown::{NONE, strings, table};
use serde::Serialize;

use super::question::Question;
use super::races::{Measured, tagged};

/// The results of one build, over all backends and jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Flag {
    pub(super) build: String,
    pub(super) word: String,
    pub(super) faster: usize,
    pub(super) slower: usize,
    pub(super) same: usize,
    pub(super) cannot_tell: usize,
    /// The geometric mean of all ratios.
    pub(super) mean: f64,
    /// The race that gained most by a verdict, and the one that lost most: subject, backend, ratio.
    pub(super) best: Option<(String, String, f64)>,
    pub(super) worst: Option<(String, String, f64)>,
}

/// What the template names.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Page {
    question: String,
    machine: String,
    command: String,
    method: String,
    builds: String,
    ratios: String,
    backends: String,
    pub(super) flags: Vec<Flag>,
    pub(super) verdict: Vec<String>,
    not_here: Vec<String>,
    remarks: Vec<String>,
}

fn mean(rows: &[&ResultRow]) -> Option<f64> {
    let logs: f64 = rows.iter().map(|r| r.ratio.ln()).sum();
    (!rows.is_empty()).then(|| (logs / rows.len() as f64).exp())
}

/// The rows of one build decided: a flag matters where a race has a winner by at least `worth`.
fn decide(build: &str, rows: &[&ResultRow], worth: f64) -> Option<Flag> {
    let count = |verdict| rows.iter().filter(|r| r.verdict == verdict).count();
    let [faster, slower, same, cannot_tell] =
        [Verdict::Faster, Verdict::Slower, Verdict::Same, Verdict::CannotTell].map(count);
    // A void race settles as little as one that cannot tell.
    let cannot_tell = cannot_tell + count(Verdict::Void);
    let extreme = |verdict: Verdict| {
        let of = rows.iter().filter(|r| r.verdict == verdict);
        let far = of.max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()))?;
        Some((far.subject.clone(), tagged(far)?.1.to_owned(), far.ratio))
    };
    let (best, worst) = (extreme(Verdict::Faster), extreme(Verdict::Slower));
    let matters = |e: &Option<(String, String, f64)>| {
        e.as_ref().is_some_and(|(_, _, ratio)| ratio.ln().abs() >= worth.ln_1p())
    };
    let word = match (matters(&best), matters(&worst)) {
        (true, true) => "MATTERS BOTH WAYS",
        (true, false) => "HELPS",
        (false, true) => "HURTS",
        // Winners by less than anyone would rebuild for.
        (false, false) if faster + slower > 0 => "HARDLY MATTERS",
        (false, false) if same > 0 && same >= cannot_tell => "DOES NOT MATTER",
        (false, false) => "CANNOT TELL",
    };
    let (build, word) = (build.to_owned(), word.to_owned());
    Some(Flag { build, word, faster, slower, same, cannot_tell, mean: mean(rows)?, best, worst })
}

fn told(flag: &Flag, what: &str) -> String {
    let extreme = |how: &str, e: &Option<(String, String, f64)>| {
        e.as_ref().map_or(String::new(), |(subject, backend, ratio)| {
            format!(", {how} {} for {subject} with {backend}", times(*ratio))
        })
    };
    format!(
        "`{}` ({what}): **{}**{}{}. Of {} races {} faster, {} slower, {} the same, {} cannot be told; the geometric mean is {}.",
        flag.build,
        flag.word,
        extreme("at best", &flag.best),
        extreme("at worst", &flag.worst),
        flag.faster + flag.slower + flag.same + flag.cannot_tell,
        flag.faster,
        flag.slower,
        flag.same,
        flag.cannot_tell,
        times(flag.mean)
    )
}

fn cell(row: &ResultRow) -> String {
    let mark = match row.verdict {
        Verdict::Faster | Verdict::Slower => "",
        Verdict::Same => " =",
        Verdict::CannotTell | Verdict::Void => " ?",
    };
    format!("{}{mark}", times(row.ratio))
}

/// Fills in everything.
pub(super) fn page(question: &str, asked: &Question, found: &Measured, full: bool) -> Page {
    let record = &found.record;
    let raced: Vec<&str> = found
        .builds
        .iter()
        .map(|b| b.name.as_str())
        .filter(|name| {
            *name != asked.baseline && record.results.iter().any(|r| tagged(r).is_some_and(|t| t.0 == *name))
        })
        .collect();
    let of = |build: &str| -> Vec<&ResultRow> {
        record.results.iter().filter(|r| tagged(r).is_some_and(|t| t.0 == build)).collect()
    };
    let mut jobs: Vec<(&str, &str, &ResultRow)> = Vec::new();
    let mut kinds: Vec<&str> = Vec::new();
    for row in &record.results {
        let Some((_, backend)) = tagged(row) else { continue };
        if !jobs.iter().any(|j| (j.0, j.1) == (row.subject.as_str(), backend)) {
            jobs.push((&row.subject, backend, row));
        }
        if !kinds.contains(&backend) {
            kinds.push(backend);
        }
    }
    let mut header = strings(&["job", "backend"]);
    header.extend(raced.iter().map(|name| (*name).to_owned()));
    header.push("noise floor".to_owned());
    let ratios: Vec<Vec<String>> = jobs
        .iter()
        .map(|&(subject, backend, first)| {
            let own = |build: &&str| {
                let row = of(build)
                    .into_iter()
                    .find(|r| r.subject == subject && tagged(r).is_some_and(|t| t.1 == backend));
                row.map_or_else(|| NONE.to_owned(), cell)
            };
            let mut cells = strings(&[subject, backend]);
            cells.extend(raced.iter().map(own));
            cells.push(percent(first.noise));
            cells
        })
        .collect();
    let by_kind: Vec<Vec<String>> = kinds
        .iter()
        .map(|kind| {
            let own = |build: &&str| {
                let rows: Vec<&ResultRow> =
                    of(build).into_iter().filter(|r| tagged(r).is_some_and(|t| t.1 == *kind)).collect();
                mean(&rows).map_or_else(|| NONE.to_owned(), times)
            };
            let mut cells = strings(&[kind]);
            cells.extend(raced.iter().map(own));
            cells
        })
        .collect();
    let mut kinds_header = strings(&["backend"]);
    kinds_header.extend(raced.iter().map(|name| (*name).to_owned()));
    let builds: Vec<Vec<String>> = found
        .builds
        .iter()
        .map(|b| {
            let size = b.kib.map_or_else(|| NONE.to_owned(), |kib| kib.to_string());
            vec![b.name.clone(), b.what.clone(), size, format!("`{}`", b.made_by)]
        })
        .collect();
    let mut flags: Vec<Flag> =
        raced.iter().filter_map(|build| decide(build, &of(build), asked.worth)).collect();
    // What matters most comes first.
    let reach = |f: &Flag| {
        let far = |e: &Option<(String, String, f64)>| e.as_ref().map_or(0.0, |x| x.2.ln().abs());
        far(&f.best).max(far(&f.worst))
    };
    flags.sort_by(|a, b| reach(b).total_cmp(&reach(a)));
    let what = |name: &str| asked.named(name).map_or("", |f| f.what.as_str());
    let mode = if full { &asked.full } else { &asked.quick };
    Page {
        question: question.to_owned(),
        machine: record.machine.summary(),
        command: record.command.clone(),
        method: format!(
            "{}: {} rounds of each race, about {} seconds each without building; in every round each build meets the baseline in four \
             processes. A flag matters from {} on.{}",
            if full { "Full form" } else { "Quick form, some flags and backends" },
            mode.rounds,
            mode.seconds,
            percent(asked.worth),
            if full { "" } else { " `--full` takes all of them, and enough for publishing." }
        ),
        builds: table(&strings(&["build", "what", "KiB", "made by"]), &builds),
        ratios: if ratios.is_empty() { String::new() } else { table(&header, &ratios) },
        backends: if by_kind.is_empty() { String::new() } else { table(&kinds_header, &by_kind) },
        verdict: flags.iter().map(|f| told(f, what(&f.build))).collect(),
        flags,
        not_here: folded(
            record.not_here.iter().map(|n| (n.subject.as_str(), n.variant.as_str(), n.why.as_str())),
        ),
        remarks: record.remarks.clone(),
    }
}

#[cfg(test)]
mod tests {
    use lanework_race::clock::Monotonic;
    use lanework_race::machine::Machine;
    use lanework_race::pairing::NotHere;
    use lanework_race::record::Record;
    use lanework_race::study::render;

    use super::*;
    use crate::ENTRY;
    use crate::question::tests::asked;
    use crate::races::{Built, tag};

    fn row(subject: &str, backend: &str, build: &str, ratio: f64, verdict: &str) -> ResultRow {
        let ns = 100.0 / ratio;
        let mut row: ResultRow = serde_json::from_value(serde_json::json!({
            "subject": subject, "variant": format!("{backend} at {build}"), "baseline": format!("{backend} at release"),
            "ratio": ratio, "low": ratio, "high": ratio, "noise": 0.001, "verdict": verdict, "unit": "ns", "median": ns,
            "mean": ns, "min": ns, "q1": ns, "q3": ns, "ticks": null, "baseline_median": 100.0, "baseline_mean": 100.0,
            "baseline_min": 100.0, "margin": 0.005, "detectable": 0.01, "backend": backend, "baseline_backend": backend,
            "cores": 1, "iterations": [1, 1], "launch_pairs": [8], "samples": [], "baseline_samples": [],
        }))
        .expect("a row");
        tag(&mut row, backend);
        row
    }

    #[test]
    fn flags_are_decided_by_their_races() {
        let word = |rows: &[ResultRow]| {
            decide("o1", &rows.iter().collect::<Vec<_>>(), 0.02).map(|flag| flag.word).unwrap_or_default()
        };
        let r = |ratio, verdict| row("s", "avx2", "o1", ratio, verdict);
        assert_eq!(word(&[r(0.7, "slower"), r(1.0, "same")]), "HURTS");
        assert_eq!(word(&[r(1.3, "faster"), r(1.0, "cannot tell")]), "HELPS");
        assert_eq!(word(&[r(1.3, "faster"), r(0.9, "slower")]), "MATTERS BOTH WAYS");
        assert_eq!(word(&[r(1.01, "faster"), r(0.99, "slower")]), "HARDLY MATTERS");
        assert_eq!(word(&[r(1.0, "same"), r(1.001, "same")]), "DOES NOT MATTER");
        // A large figure without a verdict moves nothing.
        assert_eq!(word(&[r(2.0, "cannot tell")]), "CANNOT TELL");
        assert_eq!(word(&[]), "");
    }

    #[test]
    fn the_template_shows_builds_ratios_and_what_is_missing() {
        let mut record = Record::new(
            ENTRY.name,
            "lanework study codegen-flags",
            Machine::inspect(&Monotonic::new(), Vec::new()),
        );
        record.results = vec![
            row("magma/ctr/16384", "portable", "o1", 0.5, "slower"),
            row("magma/ctr/16384", "portable", "native", 1.25, "faster"),
            row("magma/ctr/16384", "avx512", "o1", 0.98, "slower"),
            row("magma/ctr/16384", "avx512", "native", 1.001, "same"),
            row("vdf/1024/square", "portable", "o1", 0.72, "slower"),
            row("vdf/1024/square", "portable", "native", 1.07, "cannot tell"),
        ];
        record.not_here.push(NotHere {
            subject: "every subject".into(),
            variant: "build pgo".into(),
            why: "no tool".into(),
        });
        let built = |name: &str| Built {
            name: name.into(),
            what: format!("what {name} is"),
            made_by: "cargo build".into(),
            kib: Some(4321),
        };
        let found = Measured { record, builds: ["release", "o1", "native", "pgo"].map(built).to_vec() };
        let page = page("Which?", &asked(), &found, false);
        assert_eq!(page.flags.iter().map(|f| f.build.as_str()).collect::<Vec<_>>(), ["o1", "native"]);
        let text = render(ENTRY.template, &page).expect("the template renders");
        for part in [
            "# Which?",
            "what native is",
            "4321",
            "| magma/ctr/16384 | portable | ×0.500 |   ×1.250 |",
            "| magma/ctr/16384 |   avx512 | ×0.980 | ×1.001 = |",
            "×1.070 ?",
            // The square root of a half times 0.72.
            "| portable | ×0.600 | ×1.157 |",
            "`o1` (opt-level 1): **HURTS**, at worst ×0.500 for magma/ctr/16384 with portable. Of 3 races 0 faster, 3 slower",
            "`native` (this CPU alone): **HELPS**, at best ×1.250",
            "build pgo",
            "no tool",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
