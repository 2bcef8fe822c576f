//! Which rows of a record share a chart.
#![forbid(unsafe_code)]

use crate::record::ResultRow;

/// A race against one baseline, or several such races of one row each, of a family of subjects.
#[derive(Debug)]
pub(super) struct Race<'a> {
    /// The subject, or the common prefix of the family's subjects.
    pub(super) title: String,
    pub(super) rows: Vec<&'a ResultRow>,
    /// Whether it consists of several races.
    pub(super) merged: bool,
}

/// The part before the last `/`, or everything.
fn parent(subject: &str) -> &str {
    subject.rsplit_once('/').map_or(subject, |(parent, _)| parent)
}

/// The rows by race, in order of first appearance. A chart of a single row says little and takes much room: the single rows of a
/// family share one.
pub(super) fn of<'a>(rows: &[&'a ResultRow]) -> Vec<Race<'a>> {
    let mut races: Vec<Vec<&ResultRow>> = Vec::new();
    for &row in rows {
        match races.iter_mut().find(|r| r[0].subject == row.subject && r[0].baseline == row.baseline) {
            Some(of) => of.push(row),
            None => races.push(vec![row]),
        }
    }
    let large: Vec<&str> = races.iter().filter(|r| r.len() > 1).map(|r| r[0].subject.as_str()).collect();
    // The family is the nearest subject above with a race of several rows, if there is one.
    let family = |row: &'a ResultRow| {
        let mut above = parent(&row.subject);
        while above.contains('/') && !large.contains(&above) {
            above = parent(above);
        }
        if large.contains(&above) { above } else { parent(&row.subject) }
    };
    let mut found: Vec<Race<'a>> = Vec::new();
    for rows in races {
        let single = rows.len() == 1;
        let title = if single { family(rows[0]) } else { &rows[0].subject };
        match found.iter_mut().find(|r| single && r.merged && r.title == title) {
            Some(race) => race.rows.extend(rows),
            None => found.push(Race { title: title.to_owned(), rows, merged: single }),
        }
    }
    for race in found.iter_mut().filter(|r| r.merged && r.rows.len() == 1) {
        (race.title, race.merged) = (race.rows[0].subject.clone(), false);
    }
    found
}

impl Race<'_> {
    /// What comes after the family in a row's subject.
    fn rest<'r>(&self, row: &'r ResultRow) -> &'r str {
        row.subject.strip_prefix(self.title.as_str()).map_or("", |rest| rest.trim_start_matches('/'))
    }

    /// A variant's name without what that rest already says: beside `mm/alone`, `mm+level` is `+level`.
    fn beside<'r>(&self, row: &'r ResultRow, name: &'r str) -> &'r str {
        let said = |part: &str| {
            let more = name.strip_prefix(part).filter(|more| more.is_empty() || more.starts_with('+'));
            more.filter(|_| !part.is_empty())
        };
        self.rest(row).split('/').find_map(said).unwrap_or(name)
    }

    /// A chart's title: the subject, or the common prefix of these rows' subjects.
    pub(super) fn over(&self) -> String {
        if self.merged { format!("{}/…", self.title) } else { self.title.clone() }
    }

    fn one_baseline(&self) -> bool {
        self.rows.iter().all(|r| r.baseline == self.rows[0].baseline)
    }

    /// A row's name in this chart.
    pub(super) fn name(&self, row: &ResultRow) -> String {
        if !self.merged {
            return row.variant.clone();
        }
        let words = [self.rest(row), self.beside(row, &row.variant)];
        let mut name = words.into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ");
        if !self.one_baseline() {
            name += &format!(" vs {}", self.beside(row, &row.baseline));
        }
        name
    }

    /// The name of a row's baseline in this chart.
    pub(super) fn baseline_name(&self, row: &ResultRow) -> String {
        if self.merged {
            format!("{} {} (baseline)", self.rest(row), row.baseline).trim_start().to_owned()
        } else {
            format!("{} (baseline)", row.baseline)
        }
    }

    /// What the rows were raced against, in words.
    pub(super) fn against(&self) -> &str {
        if self.one_baseline() { &self.rows[0].baseline } else { "a baseline for each, named in the table" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subject: &str, variant: &str, baseline: &str) -> ResultRow {
        serde_json::from_value(serde_json::json!({
            "subject": subject, "variant": variant, "baseline": baseline, "ratio": 1.0, "low": 1.0, "high": 1.0, "noise": 0.001,
            "verdict": "same", "unit": "ns", "median": 1.0, "mean": 1.0, "min": 1.0, "q1": 1.0, "q3": 1.0, "ticks": null,
            "baseline_median": 1.0, "baseline_mean": 1.0, "baseline_min": 1.0, "margin": 0.005, "detectable": 0.01, "backend": "b",
            "baseline_backend": "b", "cores": 1, "iterations": [1, 1], "launch_pairs": [1], "samples": [1.0],
            "baseline_samples": [1.0],
        }))
        .expect("a row")
    }

    fn told(rows: &[ResultRow]) -> Vec<(String, Vec<String>, bool)> {
        let rows: Vec<&ResultRow> = rows.iter().collect();
        let told = |r: &Race<'_>| (r.title.clone(), r.rows.iter().map(|x| r.name(x)).collect(), r.merged);
        of(&rows).iter().map(told).collect()
    }

    #[test]
    fn single_rows_of_a_family_share_a_chart() {
        let rows = [
            row("s/f", "k", "stack"),
            row("s/f", "mm", "stack"),
            row("s/f/k/alone", "k", "k+placebo"),
            row("s/f/mm/alone", "mm+level", "mm+placebo"),
            row("s/g/k/alone", "k", "k+placebo"),
        ];
        let names = |list: &[&str]| list.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            told(&rows),
            [
                ("s/f".to_owned(), names(&["k", "mm"]), false),
                ("s/f".to_owned(), names(&["k/alone vs +placebo", "mm/alone +level vs +placebo"]), true),
                ("s/g/k/alone".to_owned(), names(&["k"]), false),
            ]
        );
        // Without a subject above, the part before the last one; a common baseline is not repeated.
        let rows = [
            row("m/one/sign", "gpu", "core"),
            row("m/one/verify", "gpu", "core"),
            row("m/two/sign", "gpu", "core"),
        ];
        assert_eq!(
            told(&rows),
            [
                ("m/one".to_owned(), names(&["sign gpu", "verify gpu"]), true),
                ("m/two/sign".to_owned(), names(&["gpu"]), false),
            ]
        );
    }

    #[test]
    fn no_row_is_lost() {
        let rows: Vec<ResultRow> = (0..60)
            .map(|i| row(&format!("s/{}/{}", i % 5, i % 7), &format!("v{}", i % 3), &format!("b{}", i % 2)))
            .collect();
        assert_eq!(told(&rows).iter().map(|(_, names, _)| names.len()).sum::<usize>(), rows.len());
    }
}
