//! Evidence on secrets, gathered in processes of the command.
#![forbid(unsafe_code)]

use std::time::Duration;

use lanework_suite::leaks::evidence::{Means, PlantedRow, Row};
use lanework_suite::leaks::{self, Children, Evidence, Request, TimingOrder};

use crate::{Failure, Session};

/// Refuses builds in which leaks cannot be checked.
///
/// # Errors
/// [`Failure::unavailable`] in a build with debug assertions.
pub fn optimised() -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        return Err(Failure::unavailable("debug assertions branch on secrets, so leaks cannot be checked")
            .help("use an optimised build, `cargo run --release`"));
    }
    Ok(())
}

/// All evidence of the operations under `what`; each piece is printed as it comes.
///
/// # Errors
/// [`Failure::unavailable`] where the system has no random numbers.
pub fn gather(
    session: &Session,
    what: &str,
    means: Vec<Means>,
    seconds: Option<f64>,
) -> Result<Vec<Evidence>, Failure> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|e| Failure::unavailable(format!("no random numbers: {e}")))?;
    let request = Request {
        what: what.to_owned(),
        means,
        time: seconds.map(Duration::from_secs_f64),
        seed: u64::from_le_bytes(seed),
    };
    let child = ["__memcheck".to_owned(), what.to_owned()];
    let valgrind = || leaks::run_under_valgrind(&child);
    let again = |order: &TimingOrder| leaks::run_again(&arguments(order));
    let children = Children { valgrind: &valgrind, again: &again };
    Ok(leaks::gather(&session.context, &request, &children, &mut |piece| match piece {
        Evidence::Operation(row) => session.say(line(row)),
        Evidence::Planted(row) => session.say(planted(row)),
    }))
}

/// A row as text.
#[must_use]
pub fn line(row: &Row) -> String {
    let Row { what, backend, means, finding, extent, suspicion, .. } = row;
    let parts = [extent.as_str(), suspicion.as_deref().unwrap_or_default(), finding.detail()];
    let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{:7} {means:12} {backend:10} {what}: {}", finding.word(), said.join("; "))
}

/// A planted leak as text.
#[must_use]
pub fn planted(row: &PlantedRow) -> String {
    let word = match (row.sound, row.right) {
        (false, true) => "found",
        (true, true) => "sound",
        (false, false) => "MISSED",
        (true, false) => "ACCUSED",
    };
    format!("{word:7} {:12} {:10} planted {}: {}", row.means, row.tier, row.plant, row.said)
}

/// The rows as data.
#[must_use]
pub fn json(rows: &[&Row], planted: &[&PlantedRow]) -> serde_json::Value {
    let row = |row: &&Row| {
        serde_json::json!({
            "what": row.what, "backend": row.backend, "means": row.means.name(),
            "finding": row.finding.word().to_lowercase(), "detail": row.finding.detail(),
            "extent": row.extent, "unpromised": row.unpromised, "suspicion": row.suspicion,
        })
    };
    let plant = |row: &&PlantedRow| {
        serde_json::json!({
            "tier": row.tier, "plant": row.plant, "means": row.means.name(), "sound": row.sound,
            "right": row.right, "said": row.said,
        })
    };
    serde_json::json!({
        "results": rows.iter().map(row).collect::<Vec<_>>(),
        "planted": planted.iter().map(plant).collect::<Vec<_>>(),
    })
}

/// The arguments of the process that repeats a series of timings.
#[must_use]
pub fn arguments(order: &TimingOrder) -> Vec<String> {
    let TimingOrder { what, backend, samples, time, turns, seed } = order;
    let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let options = [
        ("--samples", *samples),
        ("--nanoseconds", nanoseconds),
        ("--turns", u64::from(*turns)),
        ("--seed", *seed),
    ];
    let options = options.into_iter().flat_map(|(name, value)| [name.to_owned(), value.to_string()]);
    ["__timing", what, backend].map(str::to_owned).into_iter().chain(options).collect()
}
