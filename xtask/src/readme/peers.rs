//! A record of `lanework bench --peers` as a table: ours beside the fastest of other people's.
#![forbid(unsafe_code)]

use lanework_race::record::{Record, ResultRow};
use lanework_race::table::{amount, times};
use lanework_race::verdict::Verdict;

use super::{fastest, selected, source};

/// The rows of a record in which ours is the baseline and a peer the challenger. Peers are the variants that the record's
/// machine card names as other people's builds.
pub(super) fn rows(record: &Record) -> Result<Vec<&ResultRow>, String> {
    let is_peer = |variant: &str| record.machine.peer(variant).is_some();
    let rows: Vec<&ResultRow> = record.results.iter().filter(|r| is_peer(&r.variant)).collect();
    match rows.iter().find(|row| is_peer(&row.baseline)) {
        Some(row) => Err(format!("the baseline of {} is a peer itself, {}", row.subject, row.baseline)),
        None => Ok(rows),
    }
}

/// The verdict from our side.
pub(super) fn word(row: &ResultRow) -> &'static str {
    match row.verdict {
        Verdict::Faster => "ours slower",
        Verdict::Slower => "ours faster",
        Verdict::Same => "same",
        Verdict::CannotTell => "cannot tell",
        Verdict::Void => "void",
    }
}

/// How many rows against peers a record has, and those in which ours is not faster.
pub(super) fn not_faster(record: &Record) -> Result<(usize, Vec<String>), String> {
    let all = rows(record)?;
    let shown = all.iter().filter(|r| r.verdict != Verdict::Slower).map(|r| {
        let [ratio, low, high] = r.factor().map(times);
        format!("`{}` | {} | {} | {ratio} | {low} … {high} | {}", r.subject, r.baseline, r.variant, word(r))
    });
    Ok((all.len(), shown.collect()))
}

/// For each subject that one of the patterns selects, ours beside the fastest peer.
pub(super) fn table(name: &str, record: &Record, patterns: &[&str]) -> Result<String, String> {
    let rows = rows(record).map_err(|why| format!("{name}: {why}"))?;
    let best = fastest(rows.into_iter().filter(|r| selected(patterns, &r.subject)));
    if best.is_empty() {
        return Err(format!("{name} has no peer in a subject '{}'", patterns.join(" ")));
    }
    let mut out = String::from(
        "| job | ours | fastest peer | peer over ours | interval | verdict | noise floor |\n|---|---:|---:|---:|---|---|---:|\n",
    );
    for r in best {
        let [ratio, low, high] = r.factor().map(times);
        out += &format!(
            "| `{}` | {} {} | {} {} | {ratio} | {low} … {high} | {} | {:.2} % |\n",
            r.subject,
            r.baseline,
            amount(r, r.baseline_median),
            r.variant,
            amount(r, r.median),
            word(r),
            r.noise * 100.0
        );
    }
    Ok(out + &source(name, record))
}

#[cfg(test)]
mod tests {
    use lanework_race::clock::Monotonic;
    use lanework_race::machine::{Machine, PeerBuild};

    use super::super::planted;
    use super::*;

    #[test]
    fn the_fastest_peer_stands_beside_ours_and_the_ratio_is_the_readers() {
        let peer = |name: &str| PeerBuild {
            name: name.into(),
            version: "1".into(),
            compiler: "cc".into(),
            flags: "-O2".into(),
        };
        let mut record = Record::new(
            "bench-s-peers",
            "lanework bench s --peers",
            Machine::inspect(&Monotonic::new(), vec![peer("slow"), peer("quick")]),
        );
        record.results = vec![
            planted("slow", 900.0),
            planted("quick-two", 400.0),
            planted("quicker", 10.0),
            planted("avx2", 50.0),
        ];
        (record.results[1].low, record.results[1].high) = (0.2, 0.5);
        record.results[1].verdict = Verdict::Slower;
        let text = table("r.json", &record, &["s"]).expect("a table");
        assert!(
            text.contains("| portable 100 ns | quick-two 400 ns | ×4.00 | ×2.00 … ×5.00 | ours faster |"),
            "{text}"
        );
        assert!(!text.contains("slow ") && !text.contains("avx2"), "{text}");
        assert!(text.contains("(r.json)"));
        record.results[1].baseline = "slow".into();
        assert!(table("r.json", &record, &[]).is_err_and(|e| e.contains("is a peer itself")));
        record.results.truncate(0);
        assert!(table("r.json", &record, &[]).is_err_and(|e| e.contains("no peer")));
    }
}
