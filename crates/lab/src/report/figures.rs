//! Which figures a record's results make.
#![forbid(unsafe_code)]

use serde::Serialize;

use super::chart::{self, ChartError, Line, Ratio};
use super::scaling;
use super::strips::{self, Strip};
use crate::record::{Record, ResultRow};
use crate::table;
use crate::verdict::Verdict;

/// A chart with what stands about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) svg: String,
    pub(super) caption: String,
}

/// The style sheet's name of a verdict.
pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Same => "same",
        Verdict::CannotTell => "untold",
    }
}

/// Everything that the rows of one primitive give: what is shown at once, and what is folded away.
pub(super) fn of(record: &Record, rows: &[&ResultRow]) -> Result<(Vec<Figure>, Vec<Figure>), ChartError> {
    let mut races: Vec<(&str, &str, Vec<&ResultRow>)> = Vec::new();
    for row in rows {
        match races.iter_mut().find(|(s, b, _)| *s == row.subject && *b == row.baseline) {
            Some((_, _, of)) => of.push(row),
            None => races.push((&row.subject, &row.baseline, vec![row])),
        }
    }
    let mut shown = Vec::new();
    let mut folded = Vec::new();
    shown.extend(sizes(record, rows)?);
    shown.extend(scaling::batches(rows)?);
    shown.extend(scaling::threads(rows)?);
    shown.extend(floors(rows)?);
    for (subject, baseline, rows) in &races {
        shown.push(match repeated(rows) {
            Some(families) => over_and_over(subject, baseline, families)?,
            None => against(subject, baseline, rows)?,
        });
        folded.extend(spread(subject, baseline, rows)?);
    }
    Ok((shown, folded))
}

fn ratio_of(row: &ResultRow) -> Ratio {
    Ratio {
        name: row.variant.clone(),
        ratio: row.ratio,
        low: row.low,
        high: row.high,
        noise: row.noise,
        verdict: row.verdict,
    }
}

/// More races than this of one variant against one baseline are shown together.
const REPEATED: usize = 4;

/// The races by variant, where some variant was raced over and over.
fn repeated(rows: &[&ResultRow]) -> Option<Vec<Strip>> {
    let mut strips: Vec<Strip> = Vec::new();
    for row in rows {
        match strips.iter_mut().find(|s| s.name == row.variant) {
            Some(strip) => strip.races.push(ratio_of(row)),
            None => strips.push(Strip { name: row.variant.clone(), races: vec![ratio_of(row)] }),
        }
    }
    strips.iter().any(|s| s.races.len() > REPEATED).then_some(strips)
}

fn over_and_over(subject: &str, baseline: &str, families: Vec<Strip>) -> Result<Figure, ChartError> {
    let words: Vec<String> = families
        .iter()
        .map(|s| format!("{}: {} races, {}", s.name, s.races.len(), strips::counted(&s.races)))
        .collect();
    let floors: Vec<f64> = families.iter().flat_map(|s| &s.races).map(|r| r.noise).collect();
    let noise = crate::stats::median(&floors).unwrap_or(0.0);
    Ok(Figure {
        title: subject.to_owned(),
        svg: strips::strips(&families, &format!("{subject} against {baseline}: {}", words.join("; ")))?,
        caption: format!(
            "Against {baseline}, over and over. Each race is a dot at its ratio in the colour of its verdict, the line is their median; the shaded band is \
             the median noise floor of {}, and each race had its own. The table has every race.",
            table::floor(noise)
        ),
    })
}

fn against(subject: &str, baseline: &str, rows: &[&ResultRow]) -> Result<Figure, ChartError> {
    let ratios: Vec<Ratio> = rows.iter().map(|r| ratio_of(r)).collect();
    let first = rows
        .first()
        .map_or(String::new(), |r| format!(", which takes {}", table::amount(r, r.baseline_median)));
    let noise = rows.iter().map(|r| r.noise).fold(0.0, f64::max);
    let words: Vec<String> = rows
        .iter()
        .map(|r| format!("{} {} {}", r.variant, table::times(r.ratio), table::verdict(r)))
        .collect();
    Ok(Figure {
        title: subject.to_owned(),
        svg: chart::ratios(&ratios, &format!("{subject} against {baseline}: {}", words.join("; ")))?,
        caption: format!(
            "Against {baseline}{first}. Bars are intervals at an error rate of 1 %; the shaded band is the noise floor of {}.",
            table::floor(noise)
        ),
    })
}

fn spread(subject: &str, baseline: &str, rows: &[&ResultRow]) -> Result<Option<Figure>, ChartError> {
    let mut series: Vec<(String, Vec<f64>)> = Vec::new();
    for r in rows.iter().filter(|r| r.unit == "ns" && !r.samples.is_empty()) {
        // What was raced over and over has one shape.
        match series.iter_mut().find(|(name, _)| *name == r.variant) {
            Some((_, samples)) => samples.extend_from_slice(&r.samples),
            None => series.push((r.variant.clone(), r.samples.clone())),
        }
    }
    // The baseline has samples in every one of its comparisons.
    let of_baseline: Vec<f64> =
        rows.iter().filter(|r| r.unit == "ns").flat_map(|r| r.baseline_samples.iter().copied()).collect();
    if series.is_empty() {
        return Ok(None);
    }
    series.insert(0, (format!("{baseline} (baseline)"), of_baseline));
    Ok(Some(Figure {
        title: subject.to_owned(),
        svg: chart::distributions(&series, &format!("{subject}: how the samples of each variant are spread"))?,
        caption: "How single samples lie about their own median; lines mark the median and the quartiles, the outermost \
                  hundredths are cut off."
            .to_owned(),
    }))
}

/// Where the same operation was raced on several sizes.
fn sizes(record: &Record, rows: &[&ResultRow]) -> Result<Vec<Figure>, ChartError> {
    let ghz = record.machine.ghz();
    let mut groups: Vec<(&str, Vec<&ResultRow>)> = Vec::new();
    // Batches grow by messages, which another chart has.
    for row in rows.iter().filter(|r| r.bytes.is_some() && scaling::batch(r).is_none()) {
        let Some((family, _)) = row.subject.rsplit_once('/') else { continue };
        match groups.iter_mut().find(|(f, _)| *f == family) {
            Some((_, of)) => of.push(row),
            None => groups.push((family, vec![row])),
        }
    }
    let mut figures = Vec::new();
    for (family, rows) in groups {
        let mut lines: Vec<Line> = Vec::new();
        let mut add = |name: &str, computed: bool, bytes: u64, ns: f64| {
            let point = (bytes as f64, ns * ghz.unwrap_or(1.0) / bytes as f64);
            match lines.iter_mut().find(|l| l.name == name) {
                // A baseline stands in several races of one size: the first is kept.
                Some(l) if l.points.iter().any(|p| p.0 == point.0) => {}
                Some(l) => l.points.push(point),
                None => lines.push(Line { name: name.to_owned(), points: vec![point], computed }),
            }
        };
        for r in &rows {
            let bytes = r.bytes.unwrap_or(1);
            add(&r.baseline, false, bytes, r.baseline_median);
            add(&r.variant, false, bytes, r.median);
        }
        for r in &rows {
            if let (Some(floor), Some(bytes)) = (r.floor, r.bytes) {
                add(&format!("{}: computed floor", r.variant), true, bytes, floor);
            }
        }
        lines.retain(|l| l.points.len() > 1);
        for l in &mut lines {
            l.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        if lines.is_empty() {
            continue;
        }
        let unit = if ghz.is_some() { "cycles per byte" } else { "ns per byte" };
        let words = format!("{family}: {unit} against buffer size, for {} series", lines.len());
        figures.push(Figure {
            title: format!("{family}: by size"),
            svg: chart::lines(&lines, "bytes in a buffer", unit, &words)?,
            caption: match ghz {
                Some(ghz) => format!(
                    "Medians; cycles at the {ghz:.3} GHz of the calibration chain, since ticks of the time-stamp counter are none. \
                     Lower is faster."
                ),
                None => "Medians; the core's frequency is not known here. Lower is faster.".to_owned(),
            },
        });
    }
    Ok(figures)
}

fn floors(rows: &[&ResultRow]) -> Result<Option<Figure>, ChartError> {
    let mut shares: Vec<(String, f64)> = Vec::new();
    for r in rows {
        if let Some(floor) = r.floor {
            let name = format!("{} {}", r.subject, r.variant);
            if !shares.iter().any(|(known, _)| *known == name) {
                shares.push((name, floor / r.median));
            }
        }
    }
    if shares.is_empty() {
        return Ok(None);
    }
    Ok(Some(Figure {
        title: "Distance to the floor".to_owned(),
        svg: chart::shares(&shares, "speed as a share of what the silicon allows")?,
        caption: "The floor counts the operations of a design against what a core can start in a cycle, and nothing else: no load, \
                  no store, no call. It is computed and was never measured."
            .to_owned(),
    }))
}
