//! `lanework history plot`: one figure over time.
#![forbid(unsafe_code)]

use std::path::Path;

use lanework_race::record::ResultRow;
use lanework_race::report::chart;
use lanework_race::table::{amount, times};
use lanework_study::{Failure, Outcome};
use serde_json::json;

use super::{Entry, History, commit, ended, load_all, print_escaped, skipped_json, skipped_told};
use crate::files::{self, Access, Sink};
use crate::ui::Session;

/// Characters for the intervals.
const WIDTH: usize = 40;

pub(super) fn run(
    session: &Session,
    root: &Path,
    subject: &str,
    variant: Option<&str>,
    output: Option<&Path>,
    force: bool,
) -> Result<Outcome, Failure> {
    let sink = output.map(|path| Sink::create(path, Access::Public, force)).transpose()?;
    let History { entries, skipped } = load_all(root)?;
    files::check_distinct(entries.iter().map(|e| e.path.as_path()), output)?;
    // Where a figure is missing, a file that could not be read may be why.
    let also = skipped_told(&skipped).map_or_else(String::new, |why| format!(" ({why})"));
    let points: Vec<(&Entry, &ResultRow)> = entries
        .iter()
        .flat_map(|e| e.record.results.iter().map(move |r| (e, r)))
        .filter(|(_, r)| r.subject == subject && variant.is_none_or(|v| r.variant == v))
        .collect();
    if points.is_empty() {
        if entries.is_empty() {
            return Err(
                Failure::file(root, format!("no records{also}")).help("`lanework bench --save` makes one")
            );
        }
        let rows = || entries.iter().flat_map(|e| &e.record.results);
        let list = |mut known: Vec<&str>| {
            known.sort_unstable();
            known.dedup();
            known.join(", ")
        };
        let variants: Vec<&str> =
            rows().filter(|r| r.subject == subject).map(|r| r.variant.as_str()).collect();
        let (what, known) = match variant.filter(|_| !variants.is_empty()) {
            Some(v) => (format!("no record of '{subject}' has a variant '{v}'"), variants),
            None => {
                let all = rows().map(|r| r.subject.as_str()).collect();
                (format!("no record has a subject '{subject}'"), all)
            }
        };
        let known = lanework_study::text::whole(&list(known));
        return Err(Failure::input(what + &also).help(format!("choose among {known}")));
    }
    if let Some(sink) = sink {
        let name = |e: &Entry, r: &ResultRow| format!("{} {} {}", date(e), commit(e), r.variant);
        let rows: Vec<(String, &ResultRow)> = points.iter().map(|(e, r)| (name(e, r), *r)).collect();
        let svg = chart::results(&rows, &format!("{subject} over time")).map_err(Failure::input)?;
        sink.put(svg.as_bytes())?;
        if output.is_some_and(|path| path.as_os_str() == "-") {
            return ended(&skipped);
        }
    }
    if session.json {
        let rows: Vec<_> = points
            .iter()
            .map(|(e, r)| {
                json!({
                    "date": e.record.date, "file": e.path, "machine": e.record.machine.slug(),
                    "commit": e.record.machine.build.commit, "variant": r.variant, "baseline": r.baseline, "ratio": r.ratio,
                    "low": r.low, "high": r.high, "noise": r.noise, "median": r.median, "unit": r.unit,
                })
            })
            .collect();
        println!("{}", json!({ "subject": subject, "points": rows, "skipped": skipped_json(&skipped) }));
    } else {
        print_escaped(&drawn(subject, &points));
    }
    ended(&skipped)
}

fn date(entry: &Entry) -> &str {
    entry.record.date.get(..16).unwrap_or(&entry.record.date)
}

/// A line for each record: when, what, and the interval, on an axis shared by all records of a variant.
fn drawn(subject: &str, points: &[(&Entry, &ResultRow)]) -> String {
    let mut out = format!("{subject}\n");
    let mut groups: Vec<(&str, &str)> = Vec::new();
    for (_, r) in points {
        if !groups.contains(&(&r.variant, &r.baseline)) {
            groups.push((&r.variant, &r.baseline));
        }
    }
    for (variant, baseline) in groups {
        let of: Vec<_> =
            points.iter().filter(|(_, r)| r.variant == variant && r.baseline == baseline).collect();
        // Far ends only mean that nothing could be measured.
        let near = |r: &ResultRow| (r.low.max(r.ratio / 2.0), r.high.min(r.ratio * 2.0));
        let low = of.iter().map(|(_, r)| near(r).0).fold(f64::INFINITY, f64::min);
        let high = of.iter().map(|(_, r)| near(r).1).fold(0.0, f64::max).max(low * 1.000_001);
        let axis =
            if of.iter().all(|(_, r)| r.unit == "ns") { "times as fast" } else { "baseline / variant" };
        out += &format!(
            "\n{variant} against {baseline}, {axis}, from {} to {} (logarithmic):\n",
            times(low),
            times(high)
        );
        for (e, r) in of {
            let place = |x: f64| {
                let share = (x / low).ln() / (high / low).ln();
                (share.clamp(0.0, 1.0) * (WIDTH - 1) as f64).round() as usize
            };
            let mut bar = vec![' '; WIDTH];
            let (from, to) = near(r);
            bar[place(from)..=place(to)].fill('-');
            bar[place(r.ratio)] = '*';
            out += &format!(
                "  {}  {:10}  {}  |{}|  {:>8}  {}\n",
                date(e),
                commit(e),
                e.record.machine.slug(),
                bar.into_iter().collect::<String>(),
                times(r.ratio),
                amount(r, r.median)
            );
        }
    }
    out
}
