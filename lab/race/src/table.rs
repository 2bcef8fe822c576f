//! Reports: a terminal table, CSV, and the formats of figures.
#![forbid(unsafe_code)]

use std::fmt::Write as _;

use comfy_table::presets::{NOTHING, UTF8_HORIZONTAL_ONLY};
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table};

use crate::record::{Record, ResultRow};
use crate::verdict::Verdict;

/// Rounds to three significant digits, so that the displayed value decides units and decimals.
fn rounded(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}

/// Three significant digits, without an exponent.
fn three(x: f64) -> String {
    let x = rounded(x);
    let digits = if x == 0.0 { 2 } else { 2 - x.abs().log10().floor() as i32 };
    format!("{x:.*}", usize::try_from(digits.clamp(0, 9)).unwrap_or(0))
}

/// A time given in nanoseconds, in the unit that suits it.
#[must_use]
pub fn time(ns: f64) -> String {
    let ns = rounded(ns);
    let (x, unit) = match ns.abs() {
        x if x < 1e3 => (ns, "ns"),
        x if x < 1e6 => (ns / 1e3, "µs"),
        x if x < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three(x))
}

/// A median or a mean in its result's own unit.
#[must_use]
pub fn amount(row: &ResultRow, x: f64) -> String {
    quantity(&row.unit, x)
}

/// A figure in a result's unit: a time, or a number of KiB.
#[must_use]
pub fn quantity(unit: &str, x: f64) -> String {
    if unit == "ns" { time(x) } else { format!("{x:.0} {unit}") }
}

/// A verdict in the words of its result's unit.
#[must_use]
pub fn verdict(row: &ResultRow) -> &'static str {
    word(&row.unit, row.verdict)
}

/// A verdict in the words of a unit: a figure that is not a time is not faster, but less.
#[must_use]
pub fn word(unit: &str, verdict: Verdict) -> &'static str {
    match (unit, verdict) {
        ("ns", verdict) => verdict.word(),
        (_, Verdict::Faster) => "less",
        (_, Verdict::Slower) => "more",
        (_, verdict) => verdict.word(),
    }
}

/// A fraction as a percentage.
#[must_use]
pub fn percent(fraction: f64) -> String {
    format!("{} %", three(fraction * 100.0))
}

/// A number with a comma after every three digits.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let groups = digits.as_bytes()[first..].chunks(3).map(|g| String::from_utf8_lossy(g).into_owned());
    let first = Some(digits[..first].to_owned()).filter(|s| !s.is_empty());
    first.into_iter().chain(groups).collect::<Vec<_>>().join(",")
}

/// A noise floor. Beyond tenfold the figure says only that nothing could be measured.
pub(crate) fn floor(fraction: f64) -> String {
    if fraction > 10.0 { ">1000 %".to_owned() } else { percent(fraction) }
}

/// A ratio: four digits near 1, where the third decimal matters, and three elsewhere.
#[must_use]
pub fn times(ratio: f64) -> String {
    if (0.5..2.0).contains(&ratio) { format!("×{ratio:.3}") } else { format!("×{}", three(ratio)) }
}

/// A ratio with its interval. Ends that are a thousandfold off say only that nothing could be measured; the record keeps
/// their figures.
pub(crate) fn interval(r: &ResultRow) -> String {
    let [low, high] = ends(r);
    let low = if r.low < r.ratio / 1e3 { "?" } else { &low };
    let high = if r.high > r.ratio * 1e3 { "?" } else { &high };
    format!("{low} … {high}")
}

/// The ends of a ratio's interval, with enough digits to tell them apart.
#[must_use]
pub fn ends(r: &ResultRow) -> [String; 2] {
    let usual = [r.low, r.high].map(times);
    if usual[0] != usual[1] {
        return usual;
    }
    let finer = (4..=7).map(|digits| [r.low, r.high].map(|x| format!("×{x:.digits$}")));
    finer.into_iter().find(|[low, high]| low != high).unwrap_or(usual)
}

/// A rate given in bytes a second, in the unit that suits it; decimal, as for memory and disks.
#[must_use]
pub fn rate(bytes: f64) -> String {
    let bytes = rounded(bytes);
    let (x, unit) = match bytes {
        x if x < 1e6 => (bytes / 1e3, "kB/s"),
        x if x < 1e9 => (bytes / 1e6, "MB/s"),
        _ => (bytes / 1e9, "GB/s"),
    };
    format!("{} {unit}", three(x))
}

/// A count per second: three digits, with K or M where there are many.
#[must_use]
pub fn count_rate(number: f64, of: &str) -> String {
    let number = rounded(number);
    let (x, unit) = match number {
        x if x < 1e3 => (number, ""),
        x if x < 1e6 => (number / 1e3, "K"),
        _ => (number / 1e6, "M"),
    };
    format!("{}{unit} {of}/s", three(x))
}

/// The result's speed as a rate: bytes or counted units per second.
pub(crate) fn shown_rate(row: &ResultRow, ns: f64) -> String {
    match (row.rate(ns), &row.counted) {
        (Some(bytes), _) => rate(bytes),
        (None, Some(of)) => count_rate(1e9 / ns, of),
        (None, None) => String::new(),
    }
}

/// Core cycles per byte, at the frequency that the calibration found.
pub(crate) fn cycles(record: &Record, row: &ResultRow, ns: f64) -> String {
    let before = record.machine.calibration_before.known();
    match (row.bytes, before) {
        (Some(bytes), Some(chain)) => three(ns * chain.median_ghz / bytes as f64),
        _ => String::new(),
    }
}

/// Whether a table may have lines and colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text only, in columns: for pipes, files and `NO_COLOR`.
    Plain,
    /// Lines, bold and colours.
    Terminal,
}

impl Style {
    /// What suits standard output, given the value of `NO_COLOR` if it is set: the caller reads the environment, not
    /// the laboratory. An empty `NO_COLOR` counts as unset, as its convention says.
    #[must_use]
    pub fn for_stdout(no_color: Option<&str>) -> Self {
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
        if terminal && no_color.is_none_or(str::is_empty) { Self::Terminal } else { Self::Plain }
    }
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn verdict_cell(row: &ResultRow, style: Style) -> Cell {
    let cell = Cell::new(verdict(row));
    match (style, row.verdict) {
        (Style::Plain, _) => cell,
        (_, Verdict::Faster) => cell.fg(Color::Green).add_attribute(Attribute::Bold),
        (_, Verdict::Slower) => cell.fg(Color::Red),
        (_, Verdict::Same) => cell,
        (_, Verdict::CannotTell | Verdict::Void) => cell.fg(Color::Yellow),
    }
}

/// A table that fits `width`, if that is known: cells are broken instead of lines.
fn new_table(style: Style, width: Option<u16>) -> Table {
    let mut table = Table::new();
    match style {
        Style::Plain => {
            table.load_style(NOTHING);
            table.force_no_tty();
        }
        Style::Terminal => {
            table.load_style(UTF8_HORIZONTAL_ONLY);
            table.enforce_styling();
        }
    }
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table
}

/// The columns of the terminal that standard output is.
fn terminal_width() -> Option<u16> {
    #[cfg(unix)]
    return rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col).filter(|&w| w > 0);
    #[cfg(not(unix))]
    None
}

/// The results as a table, each subject's baseline above its challengers. Below it are the variants that could not
/// run, the notes, the remarks and the command. On a terminal, the table fits its width.
#[must_use]
pub fn render(record: &Record, style: Style) -> String {
    within(record, style, if style == Style::Terminal { terminal_width() } else { None })
}

fn within(record: &Record, style: Style, width: Option<u16>) -> String {
    let mut out = String::new();
    if !record.results.is_empty() {
        let mut table = new_table(style, width);
        // Empty columns are left out.
        let rates = record.results.iter().any(|r| r.bytes.is_some() || r.counted.is_some());
        let bytes = record.results.iter().any(|r| r.bytes.is_some());
        let mut header = vec!["subject", "variant", "median", "mean"];
        if rates {
            header.push("rate");
        }
        if bytes {
            header.push("cycles/B");
        }
        header.extend(["ratio", "interval", "verdict", "noise floor", "seen above"]);
        table.set_header(header);
        let timed = |r: &ResultRow, median: f64, mean: f64| {
            let mut cells = vec![right(amount(r, median)), right(amount(r, mean))];
            if rates {
                cells.push(right(shown_rate(r, median)));
            }
            if bytes {
                cells.push(right(cycles(record, r, median)));
            }
            cells
        };
        let mut last: Option<(&str, &str)> = None;
        for r in &record.results {
            let head = (r.subject.as_str(), r.baseline.as_str());
            if last != Some(head) {
                let mut cells = vec![Cell::new(&r.subject), Cell::new(&r.baseline)];
                cells.extend(timed(r, r.baseline_median, r.baseline_mean));
                cells.extend([
                    right("×1".into()),
                    Cell::new(""),
                    Cell::new("baseline"),
                    Cell::new(""),
                    Cell::new(""),
                ]);
                table.add_row(cells);
                last = Some(head);
            }
            let mut cells = vec![Cell::new(""), Cell::new(&r.variant)];
            cells.extend(timed(r, r.median, r.mean));
            cells.extend([
                right(times(r.ratio)),
                Cell::new(interval(r)),
                verdict_cell(r, style),
                right(floor(r.noise)),
                right(floor(r.detectable)),
            ]);
            table.add_row(cells);
        }
        out.push_str(&table.trim_fmt());
        out.push('\n');
    }
    let absent = record.not_here.iter().map(|n| (n.subject.as_str(), n.variant.as_str(), n.why.as_str()));
    for line in folded(absent) {
        let _ = writeln!(out, "not here: {line}");
    }
    let notes = record
        .results
        .iter()
        .flat_map(|r| r.notes.iter().map(|note| (r.subject.as_str(), r.variant.as_str(), note.as_str())));
    for line in folded(notes) {
        let _ = writeln!(out, "note: {line}");
    }
    for remark in &record.remarks {
        let _ = writeln!(out, "remark: {remark}");
    }
    if !record.command.is_empty() {
        let _ = writeln!(out, "made by: {}", record.command);
    }
    out
}

/// Lines about (subject, variant, text), in order of first appearance. A variant's text that is equal for several
/// subjects appears once.
#[must_use]
pub fn folded<'a>(said: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> Vec<String> {
    let mut groups: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for (subject, variant, text) in said {
        match groups.iter_mut().find(|(v, t, _)| (*v, *t) == (variant, text)) {
            Some((_, _, subjects)) if subjects.contains(&subject) => {}
            Some((_, _, subjects)) => subjects.push(subject),
            None => groups.push((variant, text, vec![subject])),
        }
    }
    groups
        .into_iter()
        .map(|(variant, text, subjects)| match subjects.as_slice() {
            [subject] => format!("{subject} {variant}: {text}"),
            many => format!("{variant}, {} subjects: {text}", many.len()),
        })
        .collect()
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

type Column = (&'static str, fn(&ResultRow) -> String);

const COLUMNS: &[Column] = &[
    ("subject", |r| field(&r.subject)),
    ("variant", |r| field(&r.variant)),
    ("baseline", |r| field(&r.baseline)),
    ("ratio", |r| r.ratio.to_string()),
    ("low", |r| r.low.to_string()),
    ("high", |r| r.high.to_string()),
    ("noise", |r| r.noise.to_string()),
    ("verdict", |r| r.verdict.word().to_owned()),
    ("unit", |r| field(&r.unit)),
    ("median", |r| r.median.to_string()),
    ("mean", |r| r.mean.to_string()),
    ("min", |r| r.min.to_string()),
    ("q1", |r| r.q1.to_string()),
    ("q3", |r| r.q3.to_string()),
    ("ticks", |r| r.ticks.map_or_else(String::new, |t| t.to_string())),
    ("baseline_median", |r| r.baseline_median.to_string()),
    ("baseline_mean", |r| r.baseline_mean.to_string()),
    ("detectable", |r| r.detectable.to_string()),
    ("backend", |r| field(&r.backend)),
    ("cores", |r| r.cores.to_string()),
    ("pairs", |r| r.launch_pairs.iter().sum::<usize>().to_string()),
    ("launches", |r| r.launch_pairs.len().to_string()),
    ("bytes", |r| r.bytes.map_or_else(String::new, |b| b.to_string())),
    ("bytes_per_second", |r| r.rate(r.median).map_or_else(String::new, |b| format!("{b:.0}"))),
    ("floor", |r| r.floor.map_or_else(String::new, |f| f.to_string())),
    ("counted", |r| field(r.counted.as_deref().unwrap_or_default())),
    ("counted_per_second", |r| {
        r.counted.as_ref().map_or_else(String::new, |_| format!("{:.1}", 1e9 / r.median))
    }),
];

/// The columns of [`csv`].
pub(crate) fn columns() -> Vec<&'static str> {
    COLUMNS.iter().map(|(name, _)| *name).collect()
}

/// The results as CSV (RFC 4180 quoting, line feeds), with a header line.
#[must_use]
pub fn csv(results: &[ResultRow]) -> String {
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let mut out = line(COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect());
    for r in results {
        out += &line(COLUMNS.iter().map(|(_, get)| get(r)).collect());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!(time(12.345), "12.3 ns");
        assert_eq!(time(1_234.5), "1.23 µs");
        assert_eq!(time(99_999_999.0), "100 ms");
        assert_eq!(time(999.7), "1.00 µs");
        assert_eq!(time(2.5e9), "2.50 s");
        assert_eq!(rate(67.04e6), "67.0 MB/s");
        assert_eq!(rate(999.9e6), "1.00 GB/s");
        assert_eq!(rate(5.41e9), "5.41 GB/s");
        assert_eq!(count_rate(276_543.0, "squarings"), "277K squarings/s");
        assert_eq!(count_rate(227.9, "proofs"), "228 proofs/s");
        assert_eq!(count_rate(1.5e6, "x"), "1.50M x/s");
        assert_eq!(percent(0.001_234), "0.123 %");
        assert_eq!(times(1.0049), "×1.005");
        assert_eq!(times(3.912), "×3.91");
        assert_eq!(times(0.25), "×0.250");
    }

    #[test]
    fn a_table_fits_the_terminal() {
        use crate::history::tests::{record, row};
        let record = record(vec![row("avx512-bitslice+threads=16", 100.0, 4.0, 1)]);
        // The row lines, without what stands below the table and without colours.
        let widest = |width| {
            let text = within(&record, Style::Plain, width);
            text.lines().filter(|l| !l.starts_with("made by")).map(|l| l.chars().count()).max().unwrap_or(0)
        };
        assert!(widest(None) > 80, "{}", widest(None));
        assert!(widest(Some(80)) <= 80, "{}", widest(Some(80)));
        assert_eq!(widest(Some(400)), widest(None));
    }

    #[test]
    fn a_noise_floor_beyond_measure_says_so() {
        assert_eq!(floor(1140.0), ">1000 %");
        assert_eq!(floor(0.02), percent(0.02));
    }

    #[test]
    fn what_is_said_of_many_subjects_is_said_once() {
        let said =
            [("a", "x", "batches"), ("b", "x", "batches"), ("b", "x", "batches"), ("a", "y", "batches")];
        assert_eq!(folded(said.into_iter()), ["x, 2 subjects: batches", "a y: batches"]);
    }

    #[test]
    fn csv_quotes_what_must_be_quoted() {
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(field("plain"), "plain");
    }
}
