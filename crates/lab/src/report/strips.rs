//! Races that were run over and over: a dot for each, in a strip for each variant, so that two hundred take no more room than ten.
#![forbid(unsafe_code)]

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::axis::Axis;
use super::chart::paint::{GRID, INK, NOISE, QUIET};
use super::chart::{ChartError, FONT, Ratio, SMALL, failed, label, short, svg, verdict_colour};
use crate::stats::median;
use crate::verdict::Verdict;

/// The races of one variant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Strip {
    /// The variant.
    pub(super) name: String,
    /// What each of its races found.
    pub(super) races: Vec<Ratio>,
}

/// Pixels of a strip: two lines of text, and dots below.
const STRIP: u32 = 118;
/// Columns that dots are stacked in.
const COLUMNS: usize = 86;
/// The part of a strip's height that dots may fill, and what a dot takes of it where there is room.
const FILLED: f64 = 0.62;
const DOT: f64 = 0.045;

/// In words: `197 same, 3 faster`.
pub(super) fn counted(races: &[Ratio]) -> String {
    let words = [Verdict::Same, Verdict::Faster, Verdict::Slower, Verdict::CannotTell];
    let parts: Vec<String> = words
        .into_iter()
        .map(|word| (word, races.iter().filter(|r| r.verdict == word).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| format!("{count} {}", word.word()))
        .collect();
    parts.join(", ")
}

/// A dot for each race at its ratio, in the colour of its verdict; a line at each strip's median; shaded the races' median noise floor.
///
/// # Errors
/// [`ChartError`] where there are no races or the drawing fails.
pub(super) fn strips(strips: &[Strip], words: &str) -> Result<String, ChartError> {
    let all = || strips.iter().flat_map(|s| &s.races);
    let axis = Axis::about(1.0, all().map(|r| r.ratio)).ok_or_else(|| failed("no races"))?;
    let noise = median(&all().map(|r| r.noise).collect::<Vec<_>>()).unwrap_or(0.0);
    let height = 44 + STRIP * strips.len() as u32;
    svg(height, words, |area| {
        let mut plane = ChartBuilder::on(area)
            .margin_left(14)
            .margin_right(14)
            .margin_top(4)
            .x_label_area_size(38)
            .build_cartesian_2d(axis.clone(), 0.0..strips.len() as f64)
            .map_err(failed)?;
        let (left, right) = axis.clamped(1.0 / (1.0 + noise), 1.0 + noise);
        for i in 0..strips.len() {
            let band = Rectangle::new([(left, i as f64 + 0.02), (right, i as f64 + 0.68)], NOISE.filled());
            plane.draw_series([band]).map_err(failed)?;
        }
        plane
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .axis_style(GRID)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .x_label_formatter(&|x| Axis::text(*x, "×"))
            .x_label_style(label(SMALL, QUIET, HPos::Center, VPos::Top))
            .x_desc("times as fast as the baseline, a dot for each race")
            .axis_desc_style(label(SMALL, QUIET, HPos::Center, VPos::Bottom))
            .draw()
            .map_err(failed)?;
        let (start, end) = (axis.range().start.ln(), axis.range().end.ln());
        for (i, strip) in strips.iter().enumerate() {
            let foot = (strips.len() - i - 1) as f64;
            // Equal verdicts next to each other in a column, winners below, where they are seen.
            let mut columns: Vec<Vec<Verdict>> = vec![Vec::new(); COLUMNS];
            for race in &strip.races {
                let at = (race.ratio.ln() - start) / (end - start) * COLUMNS as f64;
                columns[(at.max(0.0) as usize).min(COLUMNS - 1)].push(race.verdict);
            }
            let most = columns.iter().map(Vec::len).max().unwrap_or(0).max(1);
            let step = DOT.min(FILLED / most as f64);
            for (at, column) in columns.iter_mut().enumerate() {
                column.sort_by_key(|v| matches!(v, Verdict::Same | Verdict::CannotTell));
                let x = (start + (end - start) * (at as f64 + 0.5) / COLUMNS as f64).exp();
                for (n, verdict) in column.iter().enumerate() {
                    let y = foot + 0.04 + step * (n as f64 + 0.5);
                    let dot = Circle::new((x, y), 2, verdict_colour(*verdict).filled());
                    plane.draw_series([dot]).map_err(failed)?;
                }
            }
            if let Some(middle) = median(&strip.races.iter().map(|r| r.ratio).collect::<Vec<_>>()) {
                let line = vec![(middle, foot), (middle, foot + 0.68)];
                plane.draw_series([PathElement::new(line, INK.stroke_width(1))]).map_err(failed)?;
                let told = format!("median {}", crate::table::times(middle));
                let told = Text::new(
                    told,
                    (axis.range().end, foot + 0.97),
                    label(FONT, QUIET, HPos::Right, VPos::Top),
                );
                plane.draw_series([told]).map_err(failed)?;
            }
            let edge = axis.range().start;
            let name =
                Text::new(short(&strip.name), (edge, foot + 0.97), label(FONT, INK, HPos::Left, VPos::Top));
            let count = format!("{} races: {}", strip.races.len(), counted(&strip.races));
            let count = Text::new(count, (edge, foot + 0.82), label(SMALL, QUIET, HPos::Left, VPos::Top));
            plane.draw_series([name, count]).map_err(failed)?;
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
    fn every_race_has_a_dot_and_two_hundred_take_no_more_room_than_two() {
        let many: Vec<Ratio> = (0..200)
            .map(|i| {
                let verdict = if i % 40 == 0 { Verdict::Faster } else { Verdict::Same };
                race(1.0 + f64::from(i % 11) * 1e-4, verdict)
            })
            .collect();
        let strip = |races: &[Ratio]| Strip { name: "twin".into(), races: races.to_vec() };
        let svg = strips(&[strip(&many)], "words").expect("draws");
        assert_eq!(svg.matches("<circle").count(), 200);
        assert_eq!(svg.matches("<circle").count() - svg.matches("fill=\"#1A7F4B\"").count(), 195);
        let tall = |svg: &str| {
            let h = svg.split(" height=\"").nth(1).and_then(|t| t.split('"').next()).map(str::parse::<u32>);
            h.expect("a height").expect("a number")
        };
        let few = strips(&[strip(&many[..2])], "words").expect("draws");
        assert_eq!(tall(&svg), tall(&few));
        assert!(svg.contains("200 races: 195 same, 5 faster"), "{}", &svg[svg.len() - 900..]);
        assert!(strips(&[], "").is_err());
    }
}
