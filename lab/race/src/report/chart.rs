//! Charts as SVG, drawn by `plotters`.
//!
//! A chart is narrow enough for a phone, and its colours are the light page's. Each is complete by itself; the page shrinks it.
#![forbid(unsafe_code)]

use std::fmt;

use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::axis::Axis;
use super::figures::{ratio_of, signed, told};
use super::plane::paint::{GRID, INK, QUIET, SERIES};
use super::plane::{FONT, Rows, SMALL, failed, label, short, svg, verdict_colour};
use crate::record::ResultRow;
use crate::stats::{Summary, quantile_of_sorted};
use crate::verdict::Verdict;

/// A chart could not be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartError(String);

impl ChartError {
    pub(super) fn because(e: impl fmt::Display) -> Self {
        Self(e.to_string())
    }
}

impl fmt::Display for ChartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a chart could not be drawn: {}", self.0)
    }
}

impl std::error::Error for ChartError {}

/// Pixels of a chart's row: its name, and its mark below.
const ROW: u32 = 42;

/// A row of a chart of ratios.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// Its name.
    pub name: String,
    /// The ratio.
    pub ratio: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The noise floor beside it, as a fraction.
    pub noise: f64,
    /// The verdict, shown by the mark's colour and the text.
    pub verdict: Verdict,
}

/// Ratios against a baseline with their intervals, the noise floor shaded around 1. `under` is the text under the axis.
///
/// # Errors
/// [`ChartError`] where there are no rows or the drawing fails.
pub fn ratios(rows: &[Ratio], under: &str, words: &str) -> Result<String, ChartError> {
    let told: Vec<String> = rows.iter().map(|r| signed(r.verdict)).collect();
    told_ratios(rows, &told, under, words)
}

/// [`ratios`] of results by their names, with the axis and the verdicts in the words of their units.
///
/// # Errors
/// As [`ratios`].
pub fn results(rows: &[(String, &ResultRow)], words: &str) -> Result<String, ChartError> {
    let ratios: Vec<Ratio> = rows.iter().map(|(name, row)| ratio_of(row, name.clone())).collect();
    let words_of: Vec<String> = rows.iter().map(|(_, row)| told(row)).collect();
    told_ratios(&ratios, &words_of, under(rows.iter().map(|(_, row)| row.unit.as_str())), words)
}

/// The text under an axis of ratios between figures of these units.
pub(super) fn under<'a>(mut units: impl Iterator<Item = &'a str>) -> &'static str {
    if units.all(|unit| unit == "ns") { "times as fast as the baseline" } else { "baseline / variant" }
}

/// `told` has each row's verdict in words.
fn told_ratios(rows: &[Ratio], told: &[String], under: &str, words: &str) -> Result<String, ChartError> {
    // Ends that are far off say only that nothing could be measured: they leave the chart at its edge.
    let within = |r: &Ratio, x: f64| x.clamp(r.ratio / 4.0, r.ratio * 4.0);
    let ends = rows.iter().flat_map(|r| [within(r, r.low), within(r, r.high), r.ratio]);
    let axis = Axis::about(1.0, ends).ok_or_else(|| failed("no ratios"))?;
    // The bands and the line at 1 are beside the marks only: they would strike through names and words.
    let row = f64::from(ROW);
    let beside = |i: usize| (row * (i as f64 + 0.04), row * (i as f64 + 0.54));
    let bands: Vec<_> = rows
        .iter()
        .rev()
        .enumerate()
        .map(|(i, r)| {
            let (left, right) = axis.clamped(1.0 / (1.0 + r.noise), 1.0 + r.noise);
            [(left, beside(i).0), (right, beside(i).1)]
        })
        .collect();
    let chart = Rows {
        axis: &axis,
        count: rows.len(),
        each: ROW,
        text: |x| Axis::text(x, "×"),
        under,
        bands: &bands,
    };
    chart.drawn(words, |plane| {
        let ones = (0..rows.len())
            .map(|i| PathElement::new(vec![(1.0, beside(i).0), (1.0, beside(i).1)], QUIET.stroke_width(1)));
        plane.draw_series(ones).map_err(failed)?;
        // One verdict at a time, so that marks of one colour follow each other and become one path on the page.
        for verdict in Verdict::ALL {
            let colour = verdict_colour(verdict);
            let of = || {
                let all = rows.iter().zip(told).enumerate().filter(move |(_, (r, _))| r.verdict == verdict);
                all.map(|(i, (r, told))| (r, told, chart.foot(i) + row))
            };
            let bar = |(r, _, top): (&Ratio, &String, f64)| {
                let (low, high) = axis.clamped(r.low, r.high);
                let mark = top - 0.70 * row;
                PathElement::new(vec![(low, mark), (high, mark)], colour.stroke_width(5))
            };
            plane.draw_series(of().map(bar)).map_err(failed)?;
            let dot = |(r, _, top): (&Ratio, &String, f64)| {
                Circle::new((axis.clamped(r.ratio, r.ratio).0, top - 0.70 * row), 5, colour.filled())
            };
            plane.draw_series(of().map(dot)).map_err(failed)?;
            for (r, told, top) in of() {
                let told = format!("{} {told}", crate::table::times(r.ratio));
                let (start, end) = (axis.range().start, axis.range().end);
                let name = short(&r.name, &told);
                let name = Text::new(name, (start, top - 4.0), label(FONT, INK, HPos::Left, VPos::Top));
                let told = Text::new(told, (end, top - 4.0), label(FONT, colour, HPos::Right, VPos::Top));
                plane.draw_series([name, told]).map_err(failed)?;
            }
        }
        Ok(())
    })
}

/// Bars of a histogram.
const BINS: usize = 44;
/// Pixels of a histogram with its name, of its highest bar, and from its foot to the name's top: the name touches no bar.
const SHAPE: u32 = 66;
const BAR: f64 = 38.0;
const NAME: f64 = 56.0;
const _: () = assert!(NAME + 5.0 < SHAPE as f64 && NAME - FONT > BAR);

/// How the samples of each series lie around its own median: histograms, each with its own vertical scale and the
/// quartiles marked. `series` are names and times in nanoseconds.
///
/// # Errors
/// [`ChartError`] where there are no samples or the drawing fails.
pub fn distributions(series: &[(String, Vec<f64>)], words: &str) -> Result<String, ChartError> {
    struct Shape<'a> {
        name: &'a str,
        median: f64,
        deviations: Vec<f64>,
    }
    let shapes: Vec<Shape<'_>> = series
        .iter()
        .filter_map(|(name, samples)| {
            let median = Summary::of(samples)?.median;
            let mut deviations: Vec<f64> = samples.iter().map(|t| t / median - 1.0).collect();
            deviations.sort_unstable_by(f64::total_cmp);
            Some(Shape { name, median, deviations })
        })
        .collect();
    // The outermost hundredths are not shown; the page says so.
    let quantiles = |q: f64| shapes.iter().filter_map(move |s| quantile_of_sorted(&s.deviations, q));
    let low = quantiles(0.01).fold(f64::INFINITY, f64::min).clamp(-0.5, -0.001);
    let high = quantiles(0.99).fold(f64::NEG_INFINITY, f64::max).clamp(0.001, 1.0);
    if shapes.is_empty() {
        return Err(failed("no samples"));
    }
    let axis = Axis::linear(low * 100.0, high * 100.0);
    let chart = Rows {
        axis: &axis,
        count: shapes.len(),
        each: SHAPE,
        text: |x| Axis::text(x, "%"),
        under: "from the median",
        bands: &[],
    };
    chart.drawn(words, |plane| {
        let (start, end) = (axis.range().start, axis.range().end);
        for (i, shape) in shapes.iter().enumerate() {
            let foot = chart.foot(i);
            let mut bins = [0_usize; BINS];
            for d in &shape.deviations {
                let at = (d * 100.0 - start) / (end - start) * BINS as f64;
                if (0.0..BINS as f64).contains(&at) {
                    bins[at as usize] += 1;
                }
            }
            let most = bins.iter().copied().max().unwrap_or(0).max(1) as f64;
            let x = |b: usize| start + (end - start) * b as f64 / BINS as f64;
            let mut outline = vec![(start, foot)];
            for (b, count) in bins.iter().enumerate() {
                let y = foot + BAR * *count as f64 / most;
                outline.extend([(x(b), y), (x(b + 1), y)]);
            }
            outline.push((end, foot));
            let colour = SERIES[i % SERIES.len()];
            plane.draw_series([Polygon::new(outline, colour.mix(0.55).filled())]).map_err(failed)?;
        }
        // Lines of one kind follow each other and become one path on the page.
        for (width, quantiles) in [(1, &[0.25, 0.75][..]), (2, &[0.5])] {
            for (i, shape) in shapes.iter().enumerate() {
                let lines = quantiles.iter().filter_map(|q| {
                    let (d, _) = {
                        let d = 100.0 * quantile_of_sorted(&shape.deviations, *q)?;
                        axis.clamped(d, d)
                    };
                    let line = vec![(d, chart.foot(i)), (d, chart.foot(i) + BAR)];
                    Some(PathElement::new(line, INK.stroke_width(width)))
                });
                plane.draw_series(lines).map_err(failed)?;
            }
        }
        for (i, shape) in shapes.iter().enumerate() {
            let top = chart.foot(i) + NAME;
            let median = crate::table::time(shape.median);
            let name = short(shape.name, &median);
            let name = Text::new(name, (start, top), label(FONT, INK, HPos::Left, VPos::Top));
            let median = Text::new(median, (end, top), label(FONT, QUIET, HPos::Right, VPos::Top));
            plane.draw_series([name, median]).map_err(failed)?;
        }
        Ok(())
    })
}

/// Shares of what the silicon allows: a bar each, of 100 % at most if the computed floor is right.
///
/// # Errors
/// [`ChartError`] where there are no rows or the drawing fails.
pub fn shares(rows: &[(String, f64)], words: &str) -> Result<String, ChartError> {
    if rows.is_empty() {
        return Err(failed("no shares"));
    }
    let most = rows.iter().map(|r| r.1).fold(1.0, f64::max);
    let axis = Axis::linear(0.0, 100.0 * most);
    let row = f64::from(ROW);
    let chart = Rows {
        axis: &axis,
        count: rows.len(),
        each: ROW,
        text: |x| format!("{x:.0} %"),
        under: "of the speed that the silicon allows, as computed",
        bands: &[],
    };
    chart.drawn(words, |plane| {
        for (i, (_, share)) in rows.iter().enumerate() {
            let foot = chart.foot(i);
            let bar = Rectangle::new(
                [(0.0, foot + 0.15 * row), (100.0 * share, foot + 0.48 * row)],
                SERIES[0].filled(),
            );
            plane.draw_series([bar]).map_err(failed)?;
        }
        for (i, (name, share)) in rows.iter().enumerate() {
            let top = chart.foot(i) + 0.9 * row;
            let told = format!("{:.0} %", 100.0 * share);
            let name = Text::new(short(name, &told), (0.0, top), label(FONT, INK, HPos::Left, VPos::Top));
            let told = Text::new(told, (100.0 * most, top), label(FONT, QUIET, HPos::Right, VPos::Top));
            plane.draw_series([name, told]).map_err(failed)?;
        }
        Ok(())
    })
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its points, by ascending x. All are positive.
    pub points: Vec<(f64, f64)>,
    /// Computed and not measured: drawn dashed and without marks.
    pub computed: bool,
}

/// Lines over something that grows by factors (sizes, threads).
///
/// # Errors
/// [`ChartError`] where there are no points or the drawing fails.
pub fn lines(lines: &[Line], x_words: &str, y_words: &str, words: &str) -> Result<String, ChartError> {
    let points = || lines.iter().flat_map(|l| l.points.iter().copied());
    let mut xs: Vec<f64> = points().map(|p| p.0).collect();
    xs.sort_unstable_by(f64::total_cmp);
    xs.dedup();
    let across = Axis::through(&xs).ok_or_else(|| failed("no points"))?;
    let up = Axis::around(points().map(|p| p.1)).ok_or_else(|| failed("no points"))?;
    let legend = 20 * lines.len() as u32 + 8;
    svg(300 + legend, words, |area| {
        let (top, bottom) = area.split_vertically(300);
        let mut plane = ChartBuilder::on(&top)
            .margin_left(6)
            .margin_right(20)
            .margin_top(26)
            .x_label_area_size(40)
            .y_label_area_size(54)
            .build_cartesian_2d(across.clone(), up.clone())
            .map_err(failed)?;
        plane
            .configure_mesh()
            .axis_style(GRID)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .x_label_formatter(&|x| Axis::text(*x, ""))
            .y_label_formatter(&|y| Axis::text(*y, ""))
            .x_label_style(label(SMALL, QUIET, HPos::Center, VPos::Top))
            .y_label_style(label(SMALL, QUIET, HPos::Right, VPos::Center))
            .x_desc(x_words)
            .axis_desc_style(label(SMALL, QUIET, HPos::Center, VPos::Bottom))
            .draw()
            .map_err(failed)?;
        top.draw(&Text::new(y_words.to_owned(), (8, 4), label(SMALL, QUIET, HPos::Left, VPos::Top)))
            .map_err(failed)?;
        for (i, line) in lines.iter().enumerate() {
            let colour = SERIES[i % SERIES.len()];
            let at = line.points.clone();
            let style = colour.stroke_width(2);
            let y = 4 + 20 * i as i32;
            if line.computed {
                plane.draw_series(DashedLineSeries::new(at, 5, 4, style)).map_err(failed)?;
                let key = vec![(14, y + 8), (20, y + 8)];
                let more = vec![(26, y + 8), (32, y + 8)];
                bottom.draw(&PathElement::new(key, style)).map_err(failed)?;
                bottom.draw(&PathElement::new(more, style)).map_err(failed)?;
            } else {
                plane.draw_series([PathElement::new(at.clone(), style)]).map_err(failed)?;
                plane
                    .draw_series(at.into_iter().map(|p| Circle::new(p, 3, colour.filled())))
                    .map_err(failed)?;
                bottom.draw(&PathElement::new(vec![(14, y + 8), (32, y + 8)], style)).map_err(failed)?;
                bottom.draw(&Circle::new((23, y + 8), 3, colour.filled())).map_err(failed)?;
            }
            let name = Text::new(short(&line.name, ""), (42, y), label(FONT, INK, HPos::Left, VPos::Top));
            bottom.draw(&name).map_err(failed)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, ratio: f64, low: f64, high: f64, verdict: Verdict) -> Ratio {
        Ratio { name: name.into(), ratio, low, high, noise: 0.01, verdict }
    }

    /// Circles of this colour, as (x, y).
    fn circles(svg: &str, colour: &str) -> Vec<(f64, f64)> {
        let number = |tag: &str, name: &str| -> f64 {
            let from = tag.find(&format!(" {name}=\"")).expect("the attribute") + name.len() + 3;
            tag[from..].split('"').next().expect("a value").parse().expect("a number")
        };
        svg.split("<circle")
            .skip(1)
            .filter(|tag| tag.split('>').next().is_some_and(|t| t.contains(colour)))
            .map(|tag| (number(tag, "cx"), number(tag, "cy")))
            .collect()
    }

    #[test]
    fn marks_lie_where_their_ratios_say() {
        let rows = [
            row("a", 1.0, 0.999, 1.001, Verdict::Same),
            row("b", 2.0, 1.9, 2.1, Verdict::Faster),
            row("c", 4.0, 3.9, 4.1, Verdict::Faster),
            row("d", 0.5, 0.4, 0.6, Verdict::Slower),
        ];
        let svg = ratios(&rows, "under", "four & \"more\"").expect("draws");
        let (same, fast, slow) =
            (circles(&svg, "#3D568C"), circles(&svg, "#1A7F4B"), circles(&svg, "#B4233A"));
        assert_eq!((same.len(), fast.len(), slow.len()), (1, 2, 1), "{svg}");
        // Equal factors are equal distances, and rows go down.
        let step = fast[1].0 - fast[0].0;
        assert!((fast[0].0 - same[0].0 - step).abs() <= 2.0 && (same[0].0 - slow[0].0 - step).abs() <= 2.0);
        assert!(same[0].1 < fast[0].1 && fast[0].1 < fast[1].1 && fast[1].1 < slow[0].1);
        assert!(svg.contains("aria-label=\"four &amp; &quot;more&quot;\""));
        assert!(
            svg.contains("×2.00 ▲ faster") && svg.contains("×0.500 ▼ slower") && svg.contains("#F0E6CC"),
            "no band or no words"
        );
    }

    #[test]
    fn an_interval_without_end_does_not_squeeze_the_rest() {
        let rows =
            [row("a", 1.1, 1.05, 1.15, Verdict::Faster), row("lost", 1.0, 1e-12, 1e12, Verdict::CannotTell)];
        let svg = ratios(&rows, "under", "").expect("draws");
        let (a, lost) = (circles(&svg, "#1A7F4B")[0], circles(&svg, "#9A6700")[0]);
        assert!(a.0 - lost.0 > 5.0, "{a:?} {lost:?}");
    }

    #[test]
    fn nothing_is_an_error_and_not_an_empty_chart() {
        assert!(ratios(&[], "under", "").is_err());
        assert!(distributions(&[], "").is_err());
        assert!(distributions(&[("a".into(), vec![])], "").is_err());
        assert!(lines(&[], "", "", "").is_err());
        assert!(shares(&[], "").is_err());
    }

    #[test]
    fn names_are_escaped_and_cut() {
        let long = "x".repeat(80);
        let svg = ratios(
            &[row("<b>&", 1.0, 0.9, 1.1, Verdict::Same), row(&long, 1.0, 0.9, 1.1, Verdict::Same)],
            "",
            "",
        )
        .expect("draws");
        assert!(!svg.contains("<b>") && !svg.contains(&long) && svg.contains('…'));
    }

    #[test]
    fn distributions_and_lines_have_every_series() {
        let samples: Vec<f64> = (0..500).map(|i| 1000.0 + f64::from(i % 37)).collect();
        let svg =
            distributions(&[("one".into(), samples.clone()), ("two".into(), samples)], "").expect("draws");
        assert_eq!(svg.matches("<polygon").count(), 2, "{svg}");
        let line = |name: &str, computed| Line {
            name: name.into(),
            points: vec![(16.0, 40.0), (64.0, 20.0), (1024.0, 10.0)],
            computed,
        };
        let svg =
            lines(&[line("measured", false), line("floor", true)], "bytes", "cycles", "").expect("draws");
        assert_eq!(circles(&svg, "#0072B2").len(), 4, "three points and the key");
        assert_eq!(circles(&svg, "#D55E00").len(), 0);
        assert!(svg.contains("measured") && svg.contains("floor"));
    }
}
