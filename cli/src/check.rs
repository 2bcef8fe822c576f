//! `lanework check`.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use lanework_race::gate::GateRow;
use lanework_study::{Failure, Outcome};
use lanework_suite::Depth;

use crate::args::CheckArgs;
use crate::ui::{Session, counted};

pub(crate) fn run(session: &Session, args: &CheckArgs) -> Result<Outcome, Failure> {
    let depth = match (args.quick, args.known_answers) {
        (true, _) => Depth::Quick,
        (_, true) => Depth::KnownAnswers,
        _ => Depth::Full,
    };
    session.device_there()?;
    let what = args.what.as_deref().unwrap_or_default();
    let rows = lanework_suite::check(&session.context, what, depth, &mut |row| {
        session.say(line(row));
    });
    if rows.is_empty() {
        let among = if args.known_answers { "no known answers" } else { "nothing to check" };
        return Err(Failure::input(format!("{among} under '{what}'")).help(format!(
            "choose mayo, mayo/round3, mayo/round2/mayo5, magma{} or vdf",
            if args.known_answers { "" } else { ", integer" }
        )));
    }
    let failed: u64 = rows.iter().map(|r| r.failed).sum();
    let passed: u64 = rows.iter().map(|r| r.passed).sum();
    let skipped: u64 = rows.iter().map(|r| r.skipped).sum();
    if session.json {
        let results: Vec<_> = rows.iter().map(as_json).collect();
        println!("{}", serde_json::json!({ "results": results }));
    } else {
        println!("{}", ran(&rows));
        println!("{passed} passed, {failed} failed, {skipped} skipped");
    }
    if passed == 0 {
        return Err(Failure::unavailable("no backend could be checked here")
            .help("`lanework doctor` says why each is unavailable"));
    }
    Ok(Outcome::from_bool(failed == 0))
}

fn as_json(row: &GateRow) -> serde_json::Value {
    serde_json::json!({
        "what": row.what, "backend": row.backend, "passed": row.passed, "failed": row.failed,
        "skipped": row.skipped, "why": row.why,
    })
}

/// One row as text.
pub(crate) fn line(row: &GateRow) -> String {
    let verdict = match (row.failed, row.passed) {
        (0, 0) => "skipped",
        (0, _) => "ok",
        _ => "FAILED",
    };
    let counts = match (row.failed, row.passed) {
        (0, 0) => String::new(),
        (0, passed) => format!(" ({passed})"),
        (failed, passed) => format!(" ({failed} of {})", failed + passed),
    };
    let why = if row.why.is_empty() { String::new() } else { format!(": {}", row.why) };
    format!("{verdict:7} {:20} {}{counts}{why}", row.backend, row.what)
}

/// Which backends ran and which did not, and why: the line that makes a skipped tier visible.
pub(crate) fn ran(rows: &[GateRow]) -> String {
    let mut ran: BTreeMap<&str, u64> = BTreeMap::new();
    let mut not: BTreeMap<&str, &str> = BTreeMap::new();
    for row in rows {
        if lanework_suite::ran(row) {
            *ran.entry(&row.backend).or_default() += row.passed + row.failed;
        } else {
            not.entry(&row.backend).or_insert(&row.why);
        }
    }
    let mut text: Vec<String> =
        ran.iter().map(|(b, n)| format!("{b} ({})", counted(*n, "case", "cases"))).collect();
    text.extend(not.iter().filter(|(b, _)| !ran.contains_key(*b)).map(|(b, why)| format!("not {b}: {why}")));
    format!("ran: {}", text.join("; "))
}
