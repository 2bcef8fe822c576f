//! The charts of the first screen: ours against other people's code.
#![forbid(unsafe_code)]

use super::chart::{self, ChartError, Ratio};
use super::figures::{Figure, spoken};
use crate::record::{Record, ResultRow};
use crate::table;
use crate::verdict::Verdict;

/// Ours against a peer, from a row in which ours is the baseline.
fn ours(row: &ResultRow) -> Ratio {
    let [ratio, low, high] = row.factor();
    Ratio {
        name: row.variant.clone(),
        ratio,
        low,
        high,
        noise: row.noise,
        verdict: match row.verdict {
            Verdict::Faster => Verdict::Slower,
            Verdict::Slower => Verdict::Faster,
            other => other,
        },
    }
}

/// The chart of one job, from the newest record that races it against a peer.
fn against_peers(records: &[Record], subject: &str, words: &str) -> Result<Option<Figure>, ChartError> {
    let rows = |record: &Record| -> Vec<ResultRow> {
        let machine = &record.machine;
        let of = |r: &&ResultRow| {
            r.subject == subject && machine.peer(&r.variant).is_some() && machine.peer(&r.baseline).is_none()
        };
        record.results.iter().filter(of).cloned().collect()
    };
    let with_rows = records.iter().map(|record| (record, rows(record))).filter(|(_, rows)| !rows.is_empty());
    let Some((record, mut rows)) = with_rows.max_by(|(a, _), (b, _)| a.date.cmp(&b.date)) else {
        return Ok(None);
    };
    rows.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let ratios: Vec<Ratio> = rows.iter().map(ours).collect();
    let mut builds: Vec<String> = Vec::new();
    for peer in rows.iter().filter_map(|r| record.machine.peer(&r.variant)) {
        let build = format!("{} is {}", peer.name, peer.version);
        if !builds.contains(&build) {
            builds.push(build);
        }
    }
    Figure::of(
        words.to_owned(),
        &chart::ratios(&ratios, "times as fast as the peer", &format!("{words}: {}", spoken(&ratios)))?,
        format!(
            "Ours is {}, {}. {}. {}, {}.",
            rows[0].baseline,
            table::amount(&rows[0], rows[0].baseline_median),
            builds.join("; "),
            record.machine.title(),
            record.date.get(..10).unwrap_or("undated"),
        ),
    )
    .map(Some)
}

/// One chart for each headline job that a record has beside other people's code.
pub(super) fn of(records: &[Record], headline: &[(&str, &str)]) -> Result<Vec<Figure>, ChartError> {
    let charts = headline.iter().map(|(subject, words)| against_peers(records, subject, words));
    Ok(charts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}
