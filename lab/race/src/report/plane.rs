//! The plane that charts of rows are drawn on, and what all charts share: fonts, colours, the SVG around them.
#![forbid(unsafe_code)]

use std::fmt::Write as _;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::chart::ChartError;
use crate::verdict::Verdict;

/// A chart's colours and their names in `page.css`, which has each for the light page and for the dark one.
pub(super) mod paint {
    use plotters::style::RGBColor;

    pub(in super::super) const INK: RGBColor = RGBColor(0x1f, 0x24, 0x30);
    pub(in super::super) const QUIET: RGBColor = RGBColor(0x5b, 0x64, 0x72);
    pub(in super::super) const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xeb);
    pub(in super::super) const NOISE: RGBColor = RGBColor(0xf0, 0xe6, 0xcc);
    pub(in super::super) const FASTER: RGBColor = RGBColor(0x1a, 0x7f, 0x4b);
    pub(in super::super) const SLOWER: RGBColor = RGBColor(0xb4, 0x23, 0x3a);
    pub(in super::super) const SAME: RGBColor = RGBColor(0x3d, 0x56, 0x8c);
    pub(in super::super) const UNTOLD: RGBColor = RGBColor(0x9a, 0x67, 0x00);
    /// For series: colours that colour-blind readers can tell apart too (Okabe and Ito's, in another order).
    pub(in super::super) const SERIES: [RGBColor; 8] = [
        RGBColor(0x00, 0x72, 0xb2),
        RGBColor(0xd5, 0x5e, 0x00),
        RGBColor(0x00, 0x9e, 0x73),
        RGBColor(0xcc, 0x79, 0xa7),
        RGBColor(0xc7, 0x8a, 0x00),
        RGBColor(0x56, 0xb4, 0xe9),
        RGBColor(0x7a, 0x5f, 0xa8),
        RGBColor(0x7c, 0x7c, 0x00),
    ];

    /// The style sheet's names.
    pub(in super::super) const NAMES: [(RGBColor, &str); 16] = [
        (INK, "ink"),
        (QUIET, "quiet"),
        (GRID, "rule"),
        (NOISE, "noise"),
        (FASTER, "faster"),
        (SLOWER, "slower"),
        (SAME, "same"),
        (UNTOLD, "untold"),
        (SERIES[0], "c0"),
        (SERIES[1], "c1"),
        (SERIES[2], "c2"),
        (SERIES[3], "c3"),
        (SERIES[4], "c4"),
        (SERIES[5], "c5"),
        (SERIES[6], "c6"),
        (SERIES[7], "c7"),
    ];
}
use paint::{FASTER, GRID, NOISE, QUIET, SAME, SLOWER, UNTOLD};

/// Every chart's width, in pixels before the page scales it: a telephone's, where no text may shrink below 11 pixels.
const WIDTH: u32 = 356;
/// plotters writes a font's size divided by 1.24.
pub(super) const FONT: f64 = 13.5 * 1.24;
pub(super) const SMALL: f64 = 12.0 * 1.24;
/// Pixels around the rows: above them, and below them the axis with its text.
const ABOUT: u32 = 44;
/// Letters of a row's name and of the text at its other end, together. Longer names are cut; the table has them whole.
const LETTERS: usize = 43;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Plane<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, RangedCoordf64>>;

pub(super) fn failed(e: impl std::fmt::Display) -> ChartError {
    ChartError::because(e)
}

pub(super) fn label(size: f64, colour: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour).pos(Pos::new(h, v))
}

/// A name, cut so that `beside` still fits in its line.
pub(super) fn short(name: &str, beside: &str) -> String {
    let most = LETTERS.saturating_sub(beside.chars().count());
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

pub(super) fn verdict_colour(verdict: Verdict) -> RGBColor {
    match verdict {
        Verdict::Faster => FASTER,
        Verdict::Slower => SLOWER,
        Verdict::Same => SAME,
        Verdict::CannotTell | Verdict::Void => UNTOLD,
    }
}

/// Draws into an SVG of this height, whose label is `words`.
pub(super) fn svg(
    height: u32,
    words: &str,
    draw: impl FnOnce(&Area<'_>) -> Result<(), ChartError>,
) -> Result<String, ChartError> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        draw(&area)?;
        area.present().map_err(failed)?;
    }
    // For screen readers. The text is escaped, and plotters' own first tag has no such attribute.
    let mut escaped = String::new();
    for c in words.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    // plotters marks everything as opaque, and writes each text on a line of its own.
    let text = text
        .replace(" opacity=\"1\"", "")
        .replace(" stroke-width=\"1\"", "")
        .replace(">\n", ">")
        .replace("\n</text>", "</text>");
    let mut tag = String::from("<svg ");
    let _ = write!(tag, "role=\"img\" aria-label=\"{escaped}\" ");
    Ok(text.replacen("<svg ", &tag, 1))
}

/// A chart whose rows lie below each other over one axis.
pub(super) struct Rows<'a> {
    /// The axis of the values.
    pub(super) axis: &'a Axis,
    /// How many rows there are, and how many pixels each has.
    pub(super) count: usize,
    pub(super) each: u32,
    /// The label of a value, and the text under the axis.
    pub(super) text: fn(f64) -> String,
    pub(super) under: &'a str,
    /// Areas shaded under everything, by their corners.
    pub(super) bands: &'a [[(f64, f64); 2]],
}

impl Rows<'_> {
    /// The chart with what `draw` draws. The plane's vertical unit is a pixel.
    pub(super) fn drawn(
        &self,
        words: &str,
        draw: impl FnOnce(&mut Plane<'_>) -> Result<(), ChartError>,
    ) -> Result<String, ChartError> {
        let tall = self.each * self.count as u32;
        svg(ABOUT + tall, words, |area| {
            let mut plane = ChartBuilder::on(area)
                .margin_left(14)
                .margin_right(14)
                .margin_top(4)
                .x_label_area_size(38)
                .build_cartesian_2d(self.axis.clone(), 0.0..f64::from(tall))
                .map_err(failed)?;
            let bands = self.bands.iter().map(|corners| Rectangle::new(*corners, NOISE.filled()));
            plane.draw_series(bands).map_err(failed)?;
            plane
                .configure_mesh()
                .disable_y_mesh()
                .disable_y_axis()
                .axis_style(GRID)
                .bold_line_style(GRID)
                .light_line_style(TRANSPARENT)
                .x_label_formatter(&|x| (self.text)(*x))
                .x_label_style(label(SMALL, QUIET, HPos::Center, VPos::Top))
                .x_desc(self.under)
                .axis_desc_style(label(SMALL, QUIET, HPos::Center, VPos::Bottom))
                .draw()
                .map_err(failed)?;
            draw(&mut plane)
        })
    }

    /// The foot of a row, counted from the top.
    pub(super) fn foot(&self, row: usize) -> f64 {
        f64::from(self.each) * (self.count - row - 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leaves_room_for_what_stands_beside_it() {
        assert_eq!(short("name", "×1.00 same"), "name");
        let long = "n".repeat(80);
        let cut = short(&long, "×1.00 cannot tell");
        assert_eq!(cut.chars().count() + "×1.00 cannot tell".chars().count(), LETTERS);
        assert!(cut.ends_with('…') && short(&long, "").chars().count() == LETTERS);
    }

    /// A chart by itself and the light page share one set of colours.
    #[test]
    fn the_style_sheet_has_the_same_colours() {
        let css = include_str!("page.css");
        let (light, dark) = css.split_once("prefers-color-scheme: dark").expect("a dark half");
        for (RGBColor(r, g, b), name) in paint::NAMES {
            let said = format!("--{name}: #{r:02x}{g:02x}{b:02x};");
            assert!(light.contains(&said), "{said}");
            assert!(dark.contains(&format!("--{name}: #")), "{name} has no dark colour");
            assert!(css.contains(&format!("svg .{name} {{ --c: var(--{name}); }}")), "no rule for {name}");
        }
    }
}
