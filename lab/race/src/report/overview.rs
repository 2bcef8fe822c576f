//! The first screen: ours against other people's code, and the answers of the studies that ask a report's question again.
#![forbid(unsafe_code)]

use serde::Serialize;

use super::chart::{self, ChartError, Ratio};
use super::figures::{Figure, signed};
use crate::record::{Record, ResultRow};
use crate::table;
use crate::verdict::Verdict;

/// What the page opens with.
#[derive(Debug, Default, Serialize)]
pub(super) struct Overview {
    /// One chart for each headline job that a record has beside other people's code.
    pub(super) figures: Vec<Figure>,
}

/// Whether a variant is this peer, or one of its forms.
fn is_of(peer: &str, variant: &str) -> bool {
    variant.strip_prefix(peer).is_some_and(|form| form.is_empty() || form.starts_with('-'))
}

/// Ours against a peer, from a row in which ours is the baseline.
fn ours(row: &ResultRow) -> Ratio {
    Ratio {
        name: row.variant.clone(),
        ratio: 1.0 / row.ratio,
        low: 1.0 / row.high,
        high: 1.0 / row.low,
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
        let peers = &record.machine.peers;
        let is_peer = |name: &str| peers.iter().any(|p| is_of(&p.name, name));
        let of = |r: &&ResultRow| r.subject == subject && is_peer(&r.variant) && !is_peer(&r.baseline);
        record.results.iter().filter(of).cloned().collect()
    };
    let with_rows = records.iter().map(|record| (record, rows(record))).filter(|(_, rows)| !rows.is_empty());
    let Some((record, mut rows)) = with_rows.max_by(|(a, _), (b, _)| a.date.cmp(&b.date)) else {
        return Ok(None);
    };
    rows.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let ratios: Vec<Ratio> = rows.iter().map(ours).collect();
    let told = |r: &Ratio| format!("{} {} {}", r.name, table::times(r.ratio), signed(r.verdict));
    let spoken: Vec<String> = ratios.iter().map(told).collect();
    let builds: Vec<String> = record
        .machine
        .peers
        .iter()
        .filter(|p| rows.iter().any(|r| is_of(&p.name, &r.variant)))
        .map(|p| format!("{} is {}", p.name, p.version))
        .collect();
    Figure::of(
        words.to_owned(),
        &chart::ratios(&ratios, "times as fast as the peer", &format!("{words}: {}", spoken.join("; ")))?,
        format!(
            "Ours is {} on one thread, {}. {}. {}, {}.",
            rows[0].baseline,
            table::amount(&rows[0], rows[0].baseline_median),
            builds.join("; "),
            record.machine.cpu,
            record.date.get(..10).unwrap_or("undated"),
        ),
    )
    .map(Some)
}

/// The first screen of these records.
pub(super) fn of(records: &[Record], headline: &[(&str, &str)]) -> Result<Overview, ChartError> {
    let mut overview = Overview::default();
    for (subject, words) in headline {
        overview.figures.extend(against_peers(records, subject, words)?);
    }
    Ok(overview)
}
