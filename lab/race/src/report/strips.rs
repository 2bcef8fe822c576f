//! Repeated races: a dot for each, in a strip for each variant, so that two hundred take no more room than ten.
#![forbid(unsafe_code)]

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::axis::Axis;
use super::chart::{ChartError, Ratio, under};
use super::plane::paint::{INK, QUIET};
use super::plane::{FONT, Rows, SMALL, failed, label, short, verdict_colour};
use crate::stats::median;
use crate::table::word;
use crate::verdict::Verdict;

/// The races of one variant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Strip {
    /// The variant.
    pub(super) name: String,
    /// What its figures are counted in.
    pub(super) unit: String,
    /// What each of its races found.
    pub(super) races: Vec<Ratio>,
}

/// Columns that dots are stacked in.
const COLUMNS: usize = 86;
/// Pixels of a strip: its two lines of text, a dot where there is room, and the limits of its height.
const LINES: u32 = 38;
const DOT: u32 = 5;
const STRIP: (u32, u32) = (72, 118);

/// Verdicts as words in words: `197 same, 3 faster`.
pub(super) fn counted<'a>(verdicts: impl Iterator<Item = &'a str>) -> String {
    const WORDS: [&str; 7] = ["same", "faster", "less", "slower", "more", "cannot tell", "void"];
    let verdicts: Vec<&str> = verdicts.collect();
    let parts: Vec<String> = WORDS
        .into_iter()
        .map(|word| (word, verdicts.iter().filter(|v| **v == word).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    parts.join(", ")
}

impl Strip {
    /// Its races' verdicts in words.
    pub(super) fn counted(&self) -> String {
        counted(self.races.iter().map(|race| word(&self.unit, race.verdict)))
    }
}

/// The verdicts of a strip's races by column: faster and slower at the bottom, where they are seen.
fn columns(axis: &Axis, strip: &Strip) -> Vec<Vec<Verdict>> {
    let (start, end) = (axis.range().start.ln(), axis.range().end.ln());
    let mut columns: Vec<Vec<Verdict>> = vec![Vec::new(); COLUMNS];
    for race in &strip.races {
        let at = (race.ratio.ln() - start) / (end - start) * COLUMNS as f64;
        columns[(at.max(0.0) as usize).min(COLUMNS - 1)].push(race.verdict);
    }
    for column in &mut columns {
        column.sort_by_key(|v| !matches!(v, Verdict::Faster | Verdict::Slower));
    }
    columns
}

/// A dot for each race at its ratio, in the colour of its verdict; a line at each strip's median; the median noise floor of its
/// races, shaded. `each` names what a dot is.
///
/// # Errors
/// [`ChartError`] where there are no races or the drawing fails.
pub(super) fn strips(strips: &[Strip], each: &str, words: &str) -> Result<String, ChartError> {
    let all = || strips.iter().flat_map(|s| &s.races);
    let axis = Axis::about(1.0, all().map(|r| r.ratio)).ok_or_else(|| failed("no races"))?;
    let stacked: Vec<Vec<Vec<Verdict>>> = strips.iter().map(|s| columns(&axis, s)).collect();
    let most = stacked.iter().flatten().map(Vec::len).max().unwrap_or(0).max(1) as u32;
    let tall = (LINES + 8 + DOT * most).clamp(STRIP.0, STRIP.1);
    let filled = f64::from(tall - LINES - 6);
    let bands: Vec<_> = strips
        .iter()
        .rev()
        .enumerate()
        .map(|(i, strip)| {
            let noise = median(&strip.races.iter().map(|r| r.noise).collect::<Vec<_>>()).unwrap_or(0.0);
            let (left, right) = axis.clamped(1.0 / (1.0 + noise), 1.0 + noise);
            let foot = f64::from(tall) * i as f64;
            [(left, foot + 2.0), (right, foot + filled + 4.0)]
        })
        .collect();
    let chart = Rows {
        axis: &axis,
        count: strips.len(),
        each: tall,
        text: |x| Axis::text(x, "×"),
        under: &format!("{}, a dot for each {each}", under(strips.iter().map(|s| s.unit.as_str()))),
        bands: &bands,
    };
    chart.drawn(words, |plane| {
        let (start, end) = (axis.range().start.ln(), axis.range().end.ln());
        // One verdict at a time, so that dots of one colour follow each other and become one path on the page.
        for verdict in Verdict::ALL {
            for (i, columns) in stacked.iter().enumerate() {
                for (at, column) in columns.iter().enumerate() {
                    let x = (start + (end - start) * (at as f64 + 0.5) / COLUMNS as f64).exp();
                    let step = f64::from(DOT).min(filled / column.len().max(1) as f64);
                    let colour = verdict_colour(verdict);
                    let here = column.iter().enumerate().filter(|(_, v)| **v == verdict);
                    let dots = here.map(|(n, _)| {
                        Circle::new((x, chart.foot(i) + 4.0 + step * (n as f64 + 0.5)), 2, colour.filled())
                    });
                    plane.draw_series(dots).map_err(failed)?;
                }
            }
        }
        for (i, strip) in strips.iter().enumerate() {
            let (left, right) = (axis.range().start, axis.range().end);
            let (foot, top) = (chart.foot(i), chart.foot(i) + f64::from(tall));
            let mut told = String::new();
            if let Some(middle) = median(&strip.races.iter().map(|r| r.ratio).collect::<Vec<_>>()) {
                let line = vec![(middle, foot + 2.0), (middle, foot + filled + 4.0)];
                plane.draw_series([PathElement::new(line, INK.stroke_width(1))]).map_err(failed)?;
                told = format!("median {}", crate::table::times(middle));
            }
            let count = format!("{} {each}s: {}", strip.races.len(), strip.counted());
            let first = top - 6.0;
            let name = short(&strip.name, &told);
            let name = Text::new(name, (left, first), label(FONT, INK, HPos::Left, VPos::Top));
            let told = Text::new(told, (right, first), label(FONT, QUIET, HPos::Right, VPos::Top));
            let count = Text::new(count, (left, top - 22.0), label(SMALL, QUIET, HPos::Left, VPos::Top));
            plane.draw_series([name, told, count]).map_err(failed)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn race(ratio: f64, verdict: Verdict) -> Ratio {
        Ratio { name: "twin".into(), ratio, low: ratio * 0.99, high: ratio * 1.01, noise: 0.002, verdict }
    }

    #[test]
    fn every_race_has_a_dot_and_two_hundred_take_little_more_room_than_two() {
        let many: Vec<Ratio> = (0..200)
            .map(|i| {
                let verdict = if i % 40 == 0 { Verdict::Faster } else { Verdict::Same };
                race(1.0 + f64::from(i % 11) * 1e-4, verdict)
            })
            .collect();
        let strip = |races: &[Ratio]| Strip { name: "twin".into(), unit: "ns".into(), races: races.to_vec() };
        let svg = strips(&[strip(&many)], "race", "words").expect("draws");
        assert_eq!(svg.matches("<circle").count(), 200);
        assert_eq!(svg.matches("<circle").count() - svg.matches("fill=\"#1A7F4B\"").count(), 195);
        let tall = |svg: &str| {
            let h = svg.split(" height=\"").nth(1).and_then(|t| t.split('"').next()).map(str::parse::<u32>);
            h.expect("a height").expect("a number")
        };
        let few = strips(&[strip(&many[..2])], "race", "words").expect("draws");
        assert!(tall(&svg) <= tall(&few) + STRIP.1 - STRIP.0, "{} {}", tall(&svg), tall(&few));
        assert!(svg.contains("200 races: 195 same, 5 faster"), "{}", &svg[svg.len() - 900..]);
        let memory = Strip { unit: "KiB".into(), ..strip(&many) };
        let svg = strips(&[memory], "race", "words").expect("draws");
        assert!(svg.contains("195 same, 5 less") && !svg.contains("fast"), "{}", &svg[svg.len() - 900..]);
        assert!(strips(&[], "race", "").is_err());
    }
}
