//! A study's answer in a few sentences, filled in from a record: the table `[answer]` of its `study.toml`.
//!
//! ```toml
//! [answer]
//! claimed = "What the report says."
//! found = "Here it is {{ ratio('a/subject', 'variant', 'baseline') }} as fast."
//! why = "Why they differ."
//! chart = [["a/subject", "variant", "baseline", "What the chart calls it"]]
//! ```
//!
//! A sentence may use `ratio(subject, variant, baseline)`: the ratio of that row, or the least and the greatest where the subject
//! has a `*` in place of a component and several rows match. It says so where a row is not settled. `count(subject, variants,
//! baseline, verdict)` is how many rows have the verdict ("" for all), and `rate(subjects, variants)` how often all subjects together
//! are done in a second, each by the fastest of these variants. A row that the record lacks is an error, so a sentence asks
//! `has(variant)` first where not every machine has that variant: AVX-512, say. The chart, which must name the variant, leaves its row
//! out there.
#![forbid(unsafe_code)]

use std::sync::Arc;

use minijinja::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::record::{Record, ResultRow};
use crate::study::{Study, StudyError, engine};
use crate::table;
use crate::verdict::Verdict;

/// What a study answers, in sentences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The study's question.
    pub question: String,
    /// What the report claimed; empty for a question of our own.
    pub claimed: String,
    /// What the record shows.
    pub found: String,
    /// Why the two differ.
    pub why: String,
    /// The rows that decide: the record's row, and its name in words.
    #[serde(skip)]
    pub rows: Vec<(usize, String)>,
}

/// The table `[answer]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sentences {
    #[serde(default)]
    claimed: String,
    found: String,
    #[serde(default)]
    why: String,
    /// Subject, variant, baseline, and the row's name.
    #[serde(default)]
    chart: Vec<[String; 4]>,
}

/// Whether a subject is this one, where `*` stands for any one component.
fn is(pattern: &str, subject: &str) -> bool {
    let (mut p, mut s) = (pattern.split('/'), subject.split('/'));
    loop {
        match (p.next(), s.next()) {
            (None, None) => return true,
            (Some(p), Some(s)) if p == "*" || p == s => {}
            _ => return false,
        }
    }
}

fn missing(what: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("the record has no row {what}"))
}

fn ratio(rows: &[ResultRow], subject: &str, variant: &str, baseline: &str) -> Result<String, Error> {
    let found =
        rows.iter().filter(|r| is(subject, &r.subject) && r.variant == variant && r.baseline == baseline);
    let found: Vec<&ResultRow> = found.collect();
    let (Some(least), Some(most)) = (
        found.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio)),
        found.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio)),
    ) else {
        return Err(missing(format!("of {subject}: {variant} against {baseline}")));
    };
    let unsettled = |r: &&ResultRow| matches!(r.verdict, Verdict::CannotTell | Verdict::Void);
    let words = match found.iter().filter(|r| unsettled(r)).count() {
        0 => String::new(),
        _ if found.len() == 1 => " (cannot tell)".to_owned(),
        n => format!(" ({n} of {} cannot be told)", found.len()),
    };
    Ok(if found.len() == 1 {
        format!("{}{words}", table::times(least.ratio))
    } else {
        format!("{} to {}{words}", table::times(least.ratio), table::times(most.ratio))
    })
}

fn count(rows: &[ResultRow], subject: &str, variants: &[String], baseline: &str, verdict: &str) -> usize {
    let counts = |r: &&ResultRow| {
        is(subject, &r.subject)
            && variants.contains(&r.variant)
            && r.baseline == baseline
            && (verdict.is_empty() || r.verdict.word() == verdict)
    };
    rows.iter().filter(counts).count()
}

fn rate(rows: &[ResultRow], subjects: &[String], variants: &[String]) -> Result<String, Error> {
    let mut ns = 0.0;
    for subject in subjects {
        let of = rows.iter().filter(|r| r.subject == *subject && r.unit == "ns");
        let times = of.flat_map(|r| [(&r.variant, r.median), (&r.baseline, r.baseline_median)]);
        let best = times.filter(|(name, _)| variants.contains(name)).map(|(_, ns)| ns);
        ns += best
            .min_by(f64::total_cmp)
            .ok_or_else(|| missing(format!("of {subject} by {}", variants.join(" or "))))?;
    }
    Ok(table::thousands((1e9 / ns).round() as u64))
}

/// Whether the record has any row of a variant: it was raced on this machine.
fn has(rows: &[ResultRow], variant: &str) -> bool {
    rows.iter().any(|r| r.variant == variant || r.baseline == variant)
}

impl Study {
    /// The study's answer from one of its records; `None` if its `study.toml` has no `[answer]`.
    ///
    /// # Errors
    /// [`StudyError`] where the table is faulty or the record lacks a row that a sentence needs.
    pub fn answer(&self, record: &Record) -> Result<Option<Answer>, StudyError> {
        let Some(table) = self.table.get("answer") else { return Ok(None) };
        let sentences: Sentences = table.clone().try_into().map_err(|e: toml::de::Error| {
            StudyError::Malformed { path: self.name.clone().into(), why: format!("[answer]: {e}") }
        })?;
        let rows: Arc<Vec<ResultRow>> = Arc::new(record.results.clone());
        let mut engine = engine()?;
        let of = rows.clone();
        engine.add_function("ratio", move |subject: String, variant: String, baseline: String| {
            ratio(&of, &subject, &variant, &baseline)
        });
        let of = rows.clone();
        engine.add_function(
            "count",
            move |subject: String, variants: Vec<String>, baseline: String, verdict: String| {
                count(&of, &subject, &variants, &baseline, &verdict)
            },
        );
        let of = rows.clone();
        engine.add_function("rate", move |subjects: Vec<String>, variants: Vec<String>| {
            rate(&of, &subjects, &variants)
        });
        let (of, charted) = (rows.clone(), sentences.chart.clone());
        engine.add_function("has", move |name: String| {
            // A misspelt name would hide its words on every machine.
            if !charted.iter().any(|[_, variant, ..]| *variant == name) {
                let what = format!("has('{name}'): the chart has no such variant");
                return Err(Error::new(ErrorKind::InvalidOperation, what));
            }
            Ok(has(&of, &name))
        });
        let told =
            |name: &str, text: &str| engine.render_named_str(name, text, ()).map_err(StudyError::Template);
        let mut shown = Vec::new();
        for [subject, variant, baseline, words] in sentences.chart {
            let of = |r: &ResultRow| r.subject == subject && r.variant == variant && r.baseline == baseline;
            match rows.iter().position(of) {
                Some(found) => shown.push((found, words)),
                None if has(&rows, &variant) => {
                    let what = format!("of {subject}: {variant} against {baseline}");
                    return Err(StudyError::Template(missing(what)));
                }
                None => {}
            }
        }
        Ok(Some(Answer {
            question: self.question.clone(),
            claimed: told("claimed", &sentences.claimed)?,
            found: told("found", &sentences.found)?,
            why: told("why", &sentences.why)?,
            rows: shown,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Monotonic;
    use crate::machine::Machine;

    fn record() -> Record {
        let row = |subject: &str, variant: &str, ratio: f64, verdict: &str| {
            serde_json::json!({
                "subject": subject, "variant": variant, "baseline": "plain", "ratio": ratio, "low": ratio, "high": ratio,
                "noise": 0.001, "verdict": verdict, "unit": "ns", "median": 100.0 / ratio, "mean": 1.0, "min": 1.0, "q1": 1.0,
                "q3": 1.0, "ticks": null, "baseline_median": 100.0, "baseline_mean": 1.0, "baseline_min": 1.0, "margin": 0.005,
                "detectable": 0.01, "backend": "b", "baseline_backend": "b", "cores": 1, "iterations": [1, 1],
                "launch_pairs": [1], "samples": [], "baseline_samples": [],
            })
        };
        let mut record = Record::new("s", "lanework study s", Machine::inspect(&Monotonic::new(), vec![]));
        let rows = serde_json::json!([
            row("s/a/x", "wide", 4.0, "faster"),
            row("s/b/x", "wide", 5.0, "faster"),
            row("s/b/x", "wide+one", 10.0, "faster"),
            row("s/c", "wide", 1.01, "cannot tell"),
        ]);
        record.results = serde_json::from_value(rows).expect("rows");
        record
    }

    fn answer(sentences: &str) -> Result<Option<Answer>, StudyError> {
        Study::from_toml("s", &format!("question = \"?\"\n{sentences}")).expect("a study").answer(&record())
    }

    #[test]
    fn sentences_take_their_figures_from_the_record() {
        let told = answer(
            "[answer]\nclaimed = \"Twice.\"\n\
             found = \"{{ ratio('s/a/x', 'wide', 'plain') }}; {{ ratio('s/*/x', 'wide', 'plain') }}; \
             {{ ratio('s/c', 'wide', 'plain') }}; {{ count('s/*/x', ['wide', 'wide+one'], 'plain', 'faster') }}; \
             {{ rate(['s/a/x', 's/b/x'], ['wide', 'wide+one']) }}{% if has('wider') %}; {{ ratio('s/a/x', 'wider', 'plain') }}\
             {% endif %}.\"\nwhy = \"So.\"\nchart = [[\"s/a/x\", \"wider\", \"plain\", \"not here\"],\
             [\"s/b/x\", \"wide+one\", \"plain\", \"one more\"]]\n",
        );
        let told = told.expect("renders").expect("an answer");
        assert_eq!(
            (told.question.as_str(), told.claimed.as_str(), told.why.as_str()),
            ("?", "Twice.", "So.")
        );
        // 25 ns of a and 10 of b's faster variant.
        assert_eq!(told.found, "×4.00; ×4.00 to ×5.00; ×1.010 (cannot tell); 3; 28,571,429.");
        assert_eq!(told.rows, [(2, "one more".to_owned())]);
        assert_eq!(answer("").expect("reads"), None);
    }

    #[test]
    fn what_the_record_lacks_is_not_told() {
        for wrong in [
            "[answer]\nfound = \"{{ ratio('s/d', 'wide', 'plain') }}\"",
            "[answer]\nfound = \"{{ rate(['s/a/x', 's/d'], ['wide']) }}\"",
            "[answer]\nfound = \"\"\nchart = [[\"s/a/x\", \"wide+one\", \"plain\", \"words\"]]",
            "[answer]\nfound = \"{% if has('wide') %}so{% endif %}\"",
            "[answer]\nfound = \"{{ nothing }}\"",
            "[answer]\nfond = \"\"",
        ] {
            assert!(answer(wrong).is_err(), "{wrong}");
        }
    }
}
