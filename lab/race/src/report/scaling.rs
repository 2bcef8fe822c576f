//! Charts of scaling: threads that share the work, and batches of more and more items.
#![forbid(unsafe_code)]

use super::chart::{self, ChartError, Line};
use super::figures::Figure;
use crate::record::ResultRow;
use crate::table;

/// More lines than this cannot be told apart: then each family of subjects has a chart.
const LINES: usize = 8;

/// Splits `avx512+threads=2` into a name and a number of threads. A batch on one thread counts as one; where there is none, the
/// plain operation does, marked by `false`. `+inside=2` are threads that share one operation. `None` where the number of threads is
/// not a positive integer.
fn threaded(name: &str) -> Option<(String, f64, bool)> {
    let mut parts = name.split('+');
    let mut kept = vec![parts.next()?.to_owned()];
    let (mut batch, mut threads, mut inside) = (false, None, None);
    for part in parts {
        if part == "batch" {
            batch = true;
        } else if let Some(n) = part.strip_prefix("threads=") {
            threads = Some(f64::from(n.parse::<u32>().ok()?));
        } else if let Some(n) = part.strip_prefix("inside=") {
            inside = Some(f64::from(n.parse::<u32>().ok()?));
        } else {
            kept.push(part.to_owned());
        }
    }
    let stem = kept.join("+");
    let (stem, n, sure) = match (batch, threads, inside) {
        (_, Some(n), Some(i)) => (format!("{stem}+inside={i}"), n, true),
        (_, Some(n), None) => (stem, n, true),
        (_, None, Some(n)) => (format!("{stem}, inside an operation"), n, true),
        (true, None, None) => (stem, 1.0, true),
        (false, None, None) => (stem, 1.0, false),
    };
    (n >= 1.0).then_some((stem, n, sure))
}

/// One backend's times by threads, in the race against one baseline: two races may have done different amounts of work.
struct Threaded<'a> {
    subject: &'a str,
    baseline: &'a str,
    stem: String,
    points: Vec<(f64, f64)>,
    /// The time without threads and not in a batch.
    plain: Option<f64>,
}

fn gathered<'a>(rows: &[&'a ResultRow]) -> Vec<Threaded<'a>> {
    let mut found: Vec<Threaded<'a>> = Vec::new();
    let mut add = |row: &'a ResultRow, name: &str, ns: f64| {
        let Some((stem, n, sure)) = threaded(name) else { return };
        let (subject, baseline) = (row.subject.as_str(), row.baseline.as_str());
        let same = |t: &Threaded<'_>| t.subject == subject && t.baseline == baseline && t.stem == stem;
        let at = found.iter().position(same).unwrap_or_else(|| {
            found.push(Threaded { subject, baseline, stem, points: Vec::new(), plain: None });
            found.len() - 1
        });
        let of = &mut found[at];
        if !sure {
            of.plain.get_or_insert(ns);
        } else if !of.points.iter().any(|p| p.0 == n) {
            of.points.push((n, ns));
        }
    };
    for r in rows.iter().filter(|r| r.unit == "ns") {
        add(r, &r.baseline, r.baseline_median);
        add(r, &r.variant, r.median);
    }
    for t in &mut found {
        if let Some(ns) = t.plain.filter(|_| !t.points.iter().any(|p| p.0 == 1.0)) {
            t.points.push((1.0, ns));
        }
        t.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    // Of equal ones from several races, the first with the most points.
    let mut kept: Vec<Threaded<'a>> = Vec::new();
    for t in found {
        match kept.iter_mut().find(|k| k.subject == t.subject && k.stem == t.stem) {
            Some(k) if k.points.len() >= t.points.len() => {}
            Some(k) => *k = t,
            None => kept.push(t),
        }
    }
    kept
}

/// Speed against the number of threads, for everything that ran on one and on more.
pub(super) fn threads(rows: &[&ResultRow]) -> Result<Vec<Figure>, ChartError> {
    let mut lines: Vec<(&str, Line)> = Vec::new();
    for t in gathered(rows) {
        if let [(n, first), _, ..] = t.points[..] {
            let points = t.points.iter().map(|&(x, ns)| (x, n * first / ns)).collect();
            lines.push((t.subject, Line { name: t.stem, points, computed: false }));
        }
    }
    let family = |subject: &str| subject.rsplit_once('/').map_or(subject, |(family, _)| family).to_owned();
    let all_in_one = lines.len() <= LINES;
    let mut groups: Vec<(String, Vec<(&str, Line)>)> = Vec::new();
    for (subject, line) in lines {
        let group = if all_in_one { String::new() } else { family(subject) };
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, lines)) => lines.push((subject, line)),
            None => groups.push((group, vec![(subject, line)])),
        }
    }
    groups.into_iter().map(|(group, lines)| figure_of_threads(&group, lines)).collect()
}

fn figure_of_threads(group: &str, lines: Vec<(&str, Line)>) -> Result<Figure, ChartError> {
    let one_subject = lines.iter().all(|(subject, _)| *subject == lines[0].0);
    let mut lines: Vec<Line> = lines
        .into_iter()
        .map(|(subject, line)| {
            let short = subject.strip_prefix(group).map_or(subject, |rest| rest.trim_start_matches('/'));
            let name =
                if one_subject && !group.is_empty() { line.name } else { format!("{short} {}", line.name) };
            Line { name, ..line }
        })
        .collect();
    let most = lines.iter().flat_map(|l| &l.points).map(|p| p.0).fold(1.0, f64::max);
    lines.push(Line {
        name: "linear speed-up".to_owned(),
        points: vec![(1.0, 1.0), (most, most)],
        computed: true,
    });
    let title = if group.is_empty() { "By threads".to_owned() } else { format!("{group}: by threads") };
    let words = format!("{title}: speed against the number of threads");
    let svg = chart::lines(&lines, "threads", "times as fast as one", &words)?;
    Figure::of(
        title,
        &svg,
        "Medians of the same work on one thread and on more. Where a line stays below the dashed one, threads share \
         something: cores, above all."
            .to_owned(),
    )
}

/// The family of a batch, its number of items, and how many of them make a unit of work. `magma/omac-batch/128x1024` has 128
/// messages of 1,024 bytes, and its unit is all of them; `mayo/round3/mayo1/verify-batch/16` has 16, and its unit is one.
pub(super) fn batch(row: &ResultRow) -> Option<(String, u64, f64)> {
    let (family, last) = row.subject.rsplit_once('/').filter(|(family, _)| family.ends_with("-batch"))?;
    let (items, each) = match last.split_once('x') {
        Some((items, bytes)) => (items.parse::<u64>().ok()?, Some(bytes.parse::<u64>().ok()?)),
        None => (last.parse().ok()?, None),
    };
    if items == 0 {
        return None;
    }
    Some(match each {
        Some(bytes) => {
            let whole = row.bytes.is_some() && row.bytes == items.checked_mul(bytes);
            (format!("{family}, messages of {bytes} bytes"), items, if whole { items as f64 } else { 1.0 })
        }
        None => (family.to_owned(), items, 1.0),
    })
}

/// The time of an item against the size of its batch, where batches of several sizes were raced.
pub(super) fn batches(rows: &[&ResultRow]) -> Result<Vec<Figure>, ChartError> {
    let mut families: Vec<(String, Vec<Line>)> = Vec::new();
    for row in rows.iter().filter(|r| r.unit == "ns") {
        let Some((family, items, of)) = batch(row) else { continue };
        let at = families.iter().position(|(known, _)| *known == family).unwrap_or_else(|| {
            families.push((family, Vec::new()));
            families.len() - 1
        });
        let lines = &mut families[at].1;
        for (name, ns) in [(&row.baseline, row.baseline_median), (&row.variant, row.median)] {
            let point = (items as f64, ns / of / 1000.0);
            match lines.iter_mut().find(|l| l.name == *name) {
                // A baseline is part of every comparison of a race: the first is kept.
                Some(line) if line.points.iter().any(|p| p.0 == point.0) => {}
                Some(line) => line.points.push(point),
                None => lines.push(Line { name: name.clone(), points: vec![point], computed: false }),
            }
        }
    }
    let mut figures = Vec::new();
    for (family, mut lines) in families {
        lines.retain(|l| l.points.len() > 1);
        for l in &mut lines {
            l.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        if lines.is_empty() {
            continue;
        }
        let gains: Vec<String> = lines
            .iter()
            .filter_map(|l| {
                let ((_, first), (most, last)) = (l.points.first()?, l.points.last()?);
                Some(format!("{} {} in batches of {most}", l.name, table::times(first / last)))
            })
            .collect();
        let words =
            format!("{family}: microseconds an item against the size of the batch; {}", gains.join(", "));
        figures.push(Figure::of(
            format!("{family}: by size of the batch"),
            &chart::lines(&lines, "items in a batch", "µs an item", &words)?,
            "Medians. Lower is faster; a flat line gains nothing from more items.".to_owned(),
        )?);
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read_from_names() {
        let of = |name: &str| threaded(name).map(|(stem, n, sure)| (stem, n as u32, sure));
        assert_eq!(of("avx512"), Some(("avx512".into(), 1, false)));
        assert_eq!(of("avx512+batch"), Some(("avx512".into(), 1, true)));
        assert_eq!(of("avx512+threads=8"), Some(("avx512".into(), 8, true)));
        assert_eq!(of("avx512+ctr-package"), Some(("avx512+ctr-package".into(), 1, false)));
        assert_eq!(of("avx2+aligned+threads=2"), Some(("avx2+aligned".into(), 2, true)));
        assert_eq!(of("avx2+inside=4"), Some(("avx2, inside an operation".into(), 4, true)));
        assert_eq!(of("avx2+inside=2+threads=3"), Some(("avx2+inside=2".into(), 3, true)));
        for n in ["0", "-1", "2.5", "inf", "nan", "1e308", "4294967296", ""] {
            assert_eq!(of(&format!("avx512+threads={n}")), None, "{n}");
            assert_eq!(of(&format!("avx512+inside={n}")), None, "{n}");
        }
    }
}
