//! The figures for a record's results.
#![forbid(unsafe_code)]

use serde::Serialize;

use super::chart::{self, ChartError, Line, Ratio};
use super::lean::lean;
use super::races::{self, Race};
use super::scaling;
use super::strips::{self, Strip};
use crate::record::{Record, ResultRow};
use crate::table;
use crate::verdict::Verdict;

/// A chart with its title and caption.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) svg: String,
    pub(super) caption: String,
}

impl Figure {
    pub(super) fn of(title: String, drawing: &str, caption: String) -> Result<Self, ChartError> {
        Ok(Self { title, svg: lean(drawing)?, caption })
    }
}

/// The figures of one subject, where there are too many subjects to show at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Group {
    pub(super) title: String,
    pub(super) words: String,
    pub(super) figures: Vec<Figure>,
}

/// The charts of one primitive.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(super) struct Figures {
    /// Shown at once.
    pub(super) shown: Vec<Figure>,
    /// Left folded, by subject.
    pub(super) groups: Vec<Group>,
    /// Left folded: for some readers only.
    pub(super) folded: Vec<Figure>,
}

/// More races than this are shown as a whole first, and each one folded.
const MANY: usize = 40;

/// The style sheet's name of a verdict.
pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Same => "same",
        Verdict::CannotTell | Verdict::Void => "untold",
    }
}

/// A verdict's sign, for readers who cannot tell its colour.
fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "\u{25b2}",
        Verdict::Slower => "\u{25bc}",
        Verdict::Same => "=",
        Verdict::CannotTell | Verdict::Void => "?",
    }
}

/// A verdict with its sign.
pub(super) fn signed(verdict: Verdict) -> String {
    format!("{} {}", sign(verdict), verdict.word())
}

/// A row's verdict with its sign, in the words of its unit.
pub(super) fn told(row: &ResultRow) -> String {
    format!("{} {}", sign(row.verdict), table::verdict(row))
}

/// The rows of a chart in words, for those who cannot see it.
pub(super) fn spoken(rows: &[Ratio]) -> String {
    let told = |r: &Ratio| format!("{} {} {}", r.name, table::times(r.ratio), signed(r.verdict));
    rows.iter().map(told).collect::<Vec<_>>().join("; ")
}

/// The same of results, in the words of their units.
fn spoken_rows(rows: &[(String, &ResultRow)]) -> String {
    let one = |(name, r): &(String, &ResultRow)| format!("{name} {} {}", table::times(r.ratio), told(r));
    rows.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The rows that decide a study's question, by their names in words.
pub(super) fn deciding(record: &Record, rows: &[(usize, String)]) -> Result<Option<Figure>, ChartError> {
    if rows.is_empty() {
        return Ok(None);
    }
    let rows: Vec<(String, &ResultRow)> =
        rows.iter().map(|(row, words)| (words.clone(), &record.results[*row])).collect();
    Figure::of(
        "What decides".to_owned(),
        &chart::results(&rows, &format!("What decides: {}", spoken_rows(&rows)))?,
        "Rows of the tables below.".to_owned(),
    )
    .map(Some)
}

/// All figures for the rows of one primitive.
pub(super) fn of(record: &Record, rows: &[&ResultRow]) -> Result<Figures, ChartError> {
    let races = races::of(rows);
    let mut figures = Figures::default();
    figures.shown.extend(sizes(record, rows)?);
    figures.shown.extend(scaling::batches(rows)?);
    figures.shown.extend(scaling::threads(rows)?);
    figures.shown.extend(floors(rows)?);
    let many = races.len() > MANY;
    if many {
        figures.shown.extend(overviews(rows)?);
    }
    for race in &races {
        let chart = match repeated(race) {
            Some(families) => over_and_over(race, families)?,
            None => against(race)?,
        };
        let spread = spread(race)?;
        if !many {
            figures.shown.push(chart);
            figures.folded.extend(spread);
            continue;
        }
        let at = figures.groups.iter().position(|g| g.title == race.title).unwrap_or_else(|| {
            let of = races.iter().filter(|r| r.title == race.title).flat_map(|r| &r.rows);
            let words = strips::counted(of.map(|r| table::verdict(r)));
            figures.groups.push(Group { title: race.title.clone(), words, figures: Vec::new() });
            figures.groups.len() - 1
        });
        figures.groups[at].figures.push(chart);
        figures.groups[at].figures.extend(spread);
    }
    Ok(figures)
}

/// A row of a chart of ratios.
pub(super) fn ratio_of(row: &ResultRow, name: String) -> Ratio {
    Ratio { name, ratio: row.ratio, low: row.low, high: row.high, noise: row.noise, verdict: row.verdict }
}

/// More races than this of one variant against one baseline are shown together.
const REPEATED: usize = 4;

/// Rows grouped by `name` and unit, in order of first appearance.
fn strips_of<'a>(
    rows: impl Iterator<Item = &'a ResultRow>,
    name: impl Fn(&ResultRow) -> String,
) -> Vec<Strip> {
    let mut strips: Vec<Strip> = Vec::new();
    for row in rows {
        let (name, race) = (name(row), ratio_of(row, String::new()));
        match strips.iter_mut().find(|s| s.name == name && s.unit == row.unit) {
            Some(strip) => strip.races.push(race),
            None => strips.push(Strip { name, unit: row.unit.clone(), races: vec![race] }),
        }
    }
    strips
}

/// The races by variant, where some variant was raced repeatedly.
fn repeated(race: &Race<'_>) -> Option<Vec<Strip>> {
    let strips = strips_of(race.rows.iter().copied(), |r| race.name(r));
    strips.iter().any(|s| s.races.len() > REPEATED).then_some(strips)
}

fn in_words(families: &[Strip], each: &str) -> String {
    let words: Vec<String> =
        families.iter().map(|s| format!("{}: {} {each}s, {}", s.name, s.races.len(), s.counted())).collect();
    words.join("; ")
}

fn over_and_over(race: &Race<'_>, families: Vec<Strip>) -> Result<Figure, ChartError> {
    let floors: Vec<f64> = families.iter().flat_map(|s| &s.races).map(|r| r.noise).collect();
    let noise = crate::stats::median(&floors).unwrap_or(0.0);
    let words = format!("{} against {}: {}", race.over(), race.against(), in_words(&families, "race"));
    Figure::of(
        race.over(),
        &strips::strips(&families, "race", &words)?,
        format!(
            "Repeated races against {}. Each race is a dot at its ratio, in the colour of its verdict; the line is their median. The shaded \
             bands are the median noise floors, {} over all; each race had its own. The table has every race.",
            race.against(),
            table::floor(noise)
        ),
    )
}

/// Each variant over all subjects, where there are many: first against the most common baseline, then against others.
fn overviews(rows: &[&ResultRow]) -> Result<Vec<Figure>, ChartError> {
    let count = |baseline: &str| rows.iter().filter(|r| r.baseline == baseline).count();
    let Some(most) = rows.iter().map(|r| r.baseline.as_str()).max_by_key(|b| count(b)) else {
        return Ok(Vec::new());
    };
    let mut figures = Vec::new();
    for common in [true, false] {
        let of = rows.iter().copied().filter(|r| (r.baseline == most) == common);
        let strips = strips_of(of, |r| {
            if common { r.variant.clone() } else { format!("{} vs {}", r.variant, r.baseline) }
        });
        if strips.is_empty() {
            continue;
        }
        let against = if common { format!("against {most}") } else { "against others".to_owned() };
        let title = format!("All subjects, {against}");
        figures.push(Figure::of(
            title.clone(),
            &strips::strips(&strips, "subject", &format!("{title}: {}", in_words(&strips, "subject")))?,
            "Each subject is a dot at its ratio, in the colour of its verdict; the line is their median. The shaded bands are the median \
             noise floors; each race had its own. Below, every subject has its charts."
                .to_owned(),
        )?);
    }
    Ok(figures)
}

fn against(race: &Race<'_>) -> Result<Figure, ChartError> {
    let rows: Vec<(String, &ResultRow)> = race.rows.iter().map(|r| (race.name(r), *r)).collect();
    let takes = match race.rows.as_slice() {
        [first, ..] if !race.merged => {
            format!(", which takes {}", table::amount(first, first.baseline_median))
        }
        _ => String::new(),
    };
    let noise = race.rows.iter().map(|r| r.noise).fold(0.0, f64::max);
    Figure::of(
        race.over(),
        &chart::results(
            &rows,
            &format!("{} against {}: {}", race.over(), race.against(), spoken_rows(&rows)),
        )?,
        format!("Against {}{takes}. The noise floors are {} at most.", race.against(), table::floor(noise)),
    )
}

fn spread(race: &Race<'_>) -> Result<Option<Figure>, ChartError> {
    let mut series: Vec<(String, Vec<f64>)> = Vec::new();
    // A variant raced repeatedly has one shape, and a baseline has samples in each of its comparisons.
    let mut add = |name: String, samples: &[f64]| match series.iter_mut().find(|(known, _)| *known == name) {
        _ if samples.is_empty() => {}
        Some((_, known)) => known.extend_from_slice(samples),
        None => series.push((name, samples.to_vec())),
    };
    for r in race.rows.iter().filter(|r| r.unit == "ns") {
        add(race.baseline_name(r), &r.baseline_samples);
        add(race.name(r), &r.samples);
    }
    if series.is_empty() {
        return Ok(None);
    }
    let words = format!("{}: how the samples of each variant are spread", race.over());
    let drawing = chart::distributions(&series, &words)?;
    Figure::of(format!("{}: samples", race.over()), &drawing, String::new()).map(Some)
}

/// Where the same operation was raced on several sizes.
fn sizes(record: &Record, rows: &[&ResultRow]) -> Result<Vec<Figure>, ChartError> {
    let ghz = record.machine.ghz();
    let mut groups: Vec<(&str, Vec<&ResultRow>)> = Vec::new();
    // Batches grow by messages; another chart shows them.
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
                // A baseline is part of several races of one size: the first is kept.
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
        figures.push(Figure::of(
            format!("{family}: by size"),
            &chart::lines(&lines, "bytes in a buffer", unit, &words)?,
            match ghz {
                Some(ghz) => format!(
                    "Medians; cycles at the {ghz:.3} GHz of the calibration chain, since time-stamp ticks are not core cycles. \
                     Lower is faster."
                ),
                None => "Medians; the core's frequency is not known here. Lower is faster.".to_owned(),
            },
        )?);
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
    Figure::of(
        "Distance to the floor".to_owned(),
        &chart::shares(&shares, "speed as a share of what the silicon allows")?,
        "The floor counts the operations of a design against what a core can start in a cycle, and nothing else: no load, \
         no store, no call. It is computed, never measured."
            .to_owned(),
    )
    .map(Some)
}
