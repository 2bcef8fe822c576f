//! Shrinks a chart for the page: plotters' drawing in as few letters as possible.
//!
//! plotters writes every mark as an element with all its attributes. Here consecutive marks of one kind become one path,
//! styled by a class, and texts of one kind become a group. Nothing is added, and anything unknown is an error, so that
//! no mark can be lost.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plotters::style::RGBColor;

use super::chart::ChartError;
use super::plane::{failed, paint};

/// A point of the drawing; plotters has whole pixels only.
type Point = (i32, i32);

/// An element of a drawing, with its text.
struct Element<'a> {
    name: &'a str,
    attributes: BTreeMap<&'a str, &'a str>,
    text: &'a str,
}

/// All elements, the outermost one first.
fn elements(svg: &str) -> Result<Vec<Element<'_>>, ChartError> {
    let mut found = Vec::new();
    let mut rest = svg;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with('/') {
            continue;
        }
        let end = rest.find([' ', '/', '>']).ok_or_else(|| failed("a tag without end"))?;
        let name = &rest[..end];
        rest = rest[end..].trim_start();
        let mut attributes = BTreeMap::new();
        // A value may have any character but its quotes.
        while !rest.starts_with(['/', '>']) {
            let (key, after) = rest.split_once("=\"").ok_or_else(|| failed("a tag without end"))?;
            let (value, after) = after.split_once('"').ok_or_else(|| failed("a value without end"))?;
            attributes.insert(key, value);
            rest = after.trim_start();
        }
        let inside = rest.strip_prefix('>').map(|r| r.split('<').next().unwrap_or_default());
        found.push(Element { name, attributes, text: inside.unwrap_or_default().trim() });
    }
    Ok(found)
}

impl<'a> Element<'a> {
    fn get(&self, key: &str) -> &'a str {
        self.attributes.get(key).copied().unwrap_or_default()
    }

    fn number(&self, key: &str) -> Result<i32, ChartError> {
        self.get(key).parse().map_err(|_| self.unknown(key))
    }

    fn unknown(&self, key: &str) -> ChartError {
        failed(format!("<{}> has {key}=\"{}\"", self.name, self.get(key)))
    }

    /// The style sheet's name of a colour.
    fn colour(&self, key: &str) -> Result<&'static str, ChartError> {
        let is = |RGBColor(r, g, b): RGBColor| {
            self.get(key).eq_ignore_ascii_case(&format!("#{r:02x}{g:02x}{b:02x}"))
        };
        paint::NAMES
            .into_iter()
            .find(|(colour, _)| is(*colour))
            .map(|(_, name)| name)
            .ok_or_else(|| self.unknown(key))
    }

    /// Checks that the element has no other attributes.
    fn only(&self, known: &[&str]) -> Result<(), ChartError> {
        match self.attributes.keys().find(|key| !known.contains(key)) {
            Some(key) => Err(self.unknown(key)),
            None => Ok(()),
        }
    }

    fn points(&self) -> Result<Vec<Point>, ChartError> {
        self.get("points")
            .split_whitespace()
            .map(|pair| {
                let (x, y) = pair.split_once(',')?;
                Some((x.parse().ok()?, y.parse().ok()?))
            })
            .collect::<Option<Vec<Point>>>()
            .filter(|points| points.len() > 1)
            .ok_or_else(|| self.unknown("points"))
    }

    fn stroke(&self) -> Result<String, ChartError> {
        let colour = self.colour("stroke")?;
        Ok(match self.get("stroke-width") {
            "" | "1" => format!("line {colour}"),
            "2" => format!("line w2 {colour}"),
            "5" => format!("line w5 {colour}"),
            _ => return Err(self.unknown("stroke-width")),
        })
    }
}

/// The letters of a path.
#[derive(Default)]
struct Path {
    letters: String,
    at: Point,
}

impl Path {
    /// Appends the shorter of two forms of a place.
    fn say(&mut self, absolute: String, relative: String) {
        self.letters += if relative.len() < absolute.len() { &relative } else { &absolute };
    }

    fn to(&mut self, [far, near]: [char; 2], to: Point) {
        let pair = |x: i32, y: i32| if y < 0 { format!("{x}{y}") } else { format!("{x} {y}") };
        let relative = pair(to.0 - self.at.0, to.1 - self.at.1);
        let first = self.letters.is_empty();
        self.say(
            format!("{far}{}", pair(to.0, to.1)),
            format!("{}{relative}", if first { far } else { near }),
        );
        self.at = to;
    }

    /// A line through points; those on the straight way between others are dropped.
    fn through(&mut self, points: &[Point], closed: bool) {
        let mut kept: Vec<Point> = Vec::new();
        for &p in points {
            while let [.., a, b] = kept[..] {
                let (one, two) = ((b.0 - a.0, b.1 - a.1), (p.0 - b.0, p.1 - b.1));
                let straight = one.0 * two.1 == one.1 * two.0 && one.0 * two.0 + one.1 * two.1 >= 0;
                if !straight {
                    break;
                }
                kept.pop();
            }
            if kept.last() != Some(&p) {
                kept.push(p);
            }
        }
        let Some((&start, rest)) = kept.split_first() else { return };
        self.to(['M', 'm'], start);
        for &p in rest {
            if p.1 == self.at.1 {
                self.say(format!("H{}", p.0), format!("h{}", p.0 - self.at.0));
            } else if p.0 == self.at.0 {
                self.say(format!("V{}", p.1), format!("v{}", p.1 - self.at.1));
            } else {
                self.to(['L', 'l'], p);
                continue;
            }
            self.at = p;
        }
        if closed {
            self.letters.push('z');
            self.at = start;
        } else if rest.is_empty() {
            // A line shorter than a pixel becomes a pixel long.
            self.letters += "h1";
            self.at.0 += 1;
        }
    }

    /// A line without length, which its round ends make a dot.
    fn dot(&mut self, at: Point) {
        self.to(['M', 'm'], at);
        self.letters += "h0";
    }
}

/// A text's class, and the place of its foot.
fn text_class(e: &Element<'_>) -> Result<(String, Point), ChartError> {
    e.only(&["x", "y", "dy", "text-anchor", "font-family", "font-size", "fill"])?;
    let mut class = e.colour("fill")?.to_owned();
    let size: f64 = e.get("font-size").parse().map_err(|_| e.unknown("font-size"))?;
    match (size * 10.0).round() as i32 {
        135 => {}
        120 => class += " small",
        _ => return Err(e.unknown("font-size")),
    }
    match e.get("text-anchor") {
        "start" => {}
        "middle" => class += " mid",
        "end" => class += " end",
        _ => return Err(e.unknown("text-anchor")),
    }
    // Half the height of an x is nearly a quarter of the size.
    let down = match e.get("dy") {
        "0.76em" => 0.76,
        "0.5ex" => 0.26,
        "-0.5ex" => -0.26,
        _ => return Err(e.unknown("dy")),
    };
    Ok((class, (e.number("x")?, e.number("y")? + (down * size).round() as i32)))
}

/// The drawing, for the page and its style sheet alone.
///
/// # Errors
/// [`ChartError`] if the drawing has something unknown.
pub(super) fn lean(svg: &str) -> Result<String, ChartError> {
    let all = elements(svg)?;
    let (head, marks) =
        all.split_first().filter(|(h, _)| h.name == "svg").ok_or_else(|| failed("no drawing"))?;
    let mut paths: Vec<(String, Path)> = Vec::new();
    let mut texts: Vec<(String, Vec<(Point, &str)>)> = Vec::new();
    for e in marks {
        if e.name == "text" {
            let (class, at) = text_class(e)?;
            match texts.iter_mut().find(|(known, _)| *known == class) {
                Some((_, of)) => of.push((at, e.text)),
                None => texts.push((class, vec![(at, e.text)])),
            }
            continue;
        }
        let mut onto = |class: String| -> usize {
            // Only consecutive marks: later ones lie over earlier ones.
            if paths.last().is_none_or(|(known, _)| *known != class) {
                paths.push((class, Path::default()));
            }
            paths.len() - 1
        };
        match e.name {
            "rect" => {
                e.only(&["x", "y", "width", "height", "fill", "stroke"])?;
                let (x, y, w, h) = (e.number("x")?, e.number("y")?, e.number("width")?, e.number("height")?);
                let at = onto(format!("area {}", e.colour("fill")?));
                // Each side is at least a pixel long, so that a narrow area stays visible.
                let (w, h) = (w.max(1), h.max(1));
                paths[at].1.through(&[(x, y), (x + w, y), (x + w, y + h), (x, y + h)], true);
            }
            "polygon" => {
                e.only(&["opacity", "points", "fill"])?;
                let half = match e.get("opacity") {
                    "" => "",
                    "0.55" => " half",
                    _ => return Err(e.unknown("opacity")),
                };
                let at = onto(format!("area{half} {}", e.colour("fill")?));
                paths[at].1.through(&e.points()?, true);
            }
            "polyline" => {
                e.only(&["fill", "points", "stroke", "stroke-width"])?;
                let at = onto(e.stroke()?);
                paths[at].1.through(&e.points()?, false);
            }
            "line" => {
                e.only(&["stroke", "stroke-width", "x1", "x2", "y1", "y2"])?;
                let ends = [(e.number("x1")?, e.number("y1")?), (e.number("x2")?, e.number("y2")?)];
                let at = onto(e.stroke()?);
                paths[at].1.through(&ends, false);
            }
            "circle" => {
                e.only(&["cx", "cy", "r", "fill", "stroke"])?;
                let size = e.number("r")?;
                if ![2, 3, 5].contains(&size) {
                    return Err(e.unknown("r"));
                }
                let at = onto(format!("dot r{size} {}", e.colour("fill")?));
                paths[at].1.dot((e.number("cx")?, e.number("cy")?));
            }
            other => return Err(failed(format!("a mark <{other}>"))),
        }
    }
    let mut out = format!(
        "<svg role=\"img\" aria-label=\"{}\" viewBox=\"{}\">",
        head.get("aria-label"),
        head.get("viewBox")
    );
    let mut put = |args: std::fmt::Arguments<'_>| out.write_fmt(args).map_err(failed);
    for (class, path) in &paths {
        put(format_args!("<path class=\"{class}\" d=\"{}\"/>", path.letters))?;
    }
    // Texts lie beside the marks and not under them, so their order does not matter.
    for (class, of) in &texts {
        put(format_args!("<g class=\"{class}\">"))?;
        for ((x, y), text) in of {
            put(format_args!("<text x=\"{x}\" y=\"{y}\">{text}</text>"))?;
        }
        put(format_args!("</g>"))?;
    }
    out += "</svg>";
    Ok(out)
}
