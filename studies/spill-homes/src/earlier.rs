//! Rewrites that an earlier record accepted and this run does not, or no longer proves.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;

use lanework_race::history;
use lanework_race::record::Record;
use serde_json::Value;

use super::races::{Column, Row};

/// The records of this study in `records`, the newest first.
pub(super) fn records(study: &str) -> Vec<Record> {
    let all = history::load_all(Path::new("records")).map(|all| all.entries).unwrap_or_default();
    let of_study = all.into_iter().map(|entry| entry.record).filter(|record| record.study == study);
    let mut out: Vec<Record> = of_study.collect();
    out.sort_by(|a, b| b.date.cmp(&a.date));
    out
}

/// A change of a verdict since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Refused,
    Tested,
    Fewer,
}

impl Change {
    fn says(self) -> &'static str {
        match self {
            Change::Refused => "refused now",
            Change::Tested => "proved by the text then, tested on runs now",
            Change::Fewer => "accepted with fewer slots now",
        }
    }
}

/// The rewrites whose verdict is weaker than in the newest of these findings that has the row from the same file.
pub(super) fn weaker(rows: &[Row], findings: &[Value]) -> Vec<String> {
    let then: Vec<&Value> = findings.iter().filter_map(|one| one["rows"].as_array()).flatten().collect();
    let (mut all, mut changed) = (0, BTreeMap::<Change, Vec<String>>::new());
    for row in rows {
        let same = |old: &&&Value| old["name"] == row.name.as_str() && old["from"] == row.from.as_str();
        let Some(old) = then.iter().find(same) else { continue };
        for (home, now) in &row.homes {
            let old = &old["homes"][home]["checks"];
            let (Some(text), Some(runs)) = (old["by_text"].as_u64(), old["by_runs"].as_u64()) else {
                continue;
            };
            all += 1;
            let change = match now {
                Column::Not { .. } => Change::Refused,
                Column::Checked { checks, .. } if runs == 0 && !checks.proved => Change::Tested,
                Column::Checked { checks, .. }
                    if ((checks.by_text + checks.by_runs) as u64) < text + runs =>
                {
                    Change::Fewer
                }
                Column::Checked { .. } => continue,
            };
            changed.entry(change).or_default().push(format!("{} in {home}", row.name));
        }
    }
    if all == 0 {
        return Vec::new();
    }
    let weaker: usize = changed.values().map(Vec::len).sum();
    let mut out = vec![format!(
        "Of {all} rewrites that an earlier record accepted and this run judges again, {} have a verdict as strong as then.",
        all - weaker
    )];
    out.extend(changed.iter().map(|(change, names)| format!("{}: {}.", change.says(), names.join(", "))));
    out
}

#[cfg(test)]
mod tests {
    use lanework_race::verdict::Verdict;
    use serde_json::json;

    use super::*;
    use crate::races::Checks;
    use crate::verdict::tests::row;

    #[test]
    fn a_weaker_verdict_is_named() {
        let now = |checks: Checks| {
            let mut row = row(0.0, Verdict::Same, Verdict::Same);
            row.homes.insert("own".to_owned(), Column::Checked { checks, finding: None });
            row
        };
        let then = |text: u64, runs: u64, from: &str| {
            let checks = json!({ "checks": { "by_text": text, "by_runs": runs } });
            json!({ "rows": [{ "name": "f", "from": from, "homes": { "own": checks } }] })
        };
        let say = |row: &Row, then: &Value| {
            weaker(std::slice::from_ref(row), &[Value::Null, then.clone(), json!({ "rows": [] })]).join("\n")
        };
        let proved = now(Checks { by_text: 3, proved: true, ..Checks::default() });
        let tested = now(Checks { by_text: 2, by_runs: 1, ..Checks::default() });
        let said = say(&proved, &then(3, 0, ""));
        assert!(said.contains("Of 1 rewrites that an earlier record accepted"), "{said}");
        assert!(said.contains(", 1 have a verdict as strong as then."), "{said}");
        assert!(!said.contains('\n'), "{said}");
        assert!(say(&proved, &then(4, 0, "")).contains("fewer slots now: f in own."));
        assert!(say(&tested, &then(3, 0, "")).contains("tested on runs now: f in own."));
        assert!(!say(&tested, &then(2, 1, "")).contains("f in own"));
        let mut refused = tested;
        refused.homes.insert("own".to_owned(), Column::Not { why: "no slot is left to move".to_owned() });
        assert!(say(&refused, &then(2, 1, "")).contains("refused now: f in own."));
        // Another text under the same name is not compared.
        assert_eq!(say(&refused, &then(2, 1, "other.s")), "");
        assert_eq!(say(&refused, &Value::Null), "");
    }
}
