//! The lanes: pieces of hardware that usually idle, and the races that ask whether they pay.
#![forbid(unsafe_code)]

use lanework_lab::record::ResultRow;
use lanework_lab::verdict::{Lane, Verdict};

/// A lane as the tour's last lines show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneQuestion {
    /// Its name.
    pub name: &'static str,
    /// What the figure compares.
    pub compares: &'static str,
    /// Why there is nothing to race, for a lane that no primitive of this version uses.
    pub absent: Option<&'static str>,
}

/// Every lane, in the order of the tour's last lines.
pub const LANES: [LaneQuestion; 5] = [
    LaneQuestion {
        name: "vector lanes",
        compares: "the best vector backend against portable code",
        absent: None,
    },
    LaneQuestion {
        name: "other threads",
        compares: "a batch on every core against the same batch on one",
        absent: None,
    },
    LaneQuestion {
        name: "wide multiplier",
        compares: "52-bit multiply-add against 64-bit multiplication",
        absent: Some("no primitive of this version multiplies wide integers"),
    },
    LaneQuestion {
        name: "spare registers",
        compares: "spilled values in spare registers against the stack",
        absent: Some("this version does not rewrite spills"),
    },
    LaneQuestion {
        name: "GPU",
        compares: "a batch on the GPU against every core",
        absent: Some("this version has no GPU backend"),
    },
];

/// One line for a lane from all races that asked about it: the geometric mean of the ratios, under the verdict that
/// the races agree on. Races that disagree, or of which one could not tell, leave the lane untold.
#[must_use]
pub fn summarise<'a>(rows: impl Iterator<Item = &'a ResultRow>) -> Option<Lane> {
    let rows: Vec<&ResultRow> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let ratio = (rows.iter().map(|r| r.ratio.ln()).sum::<f64>() / rows.len() as f64).exp();
    let detectable = rows.iter().map(|r| r.detectable).fold(0.0, f64::max);
    let all = |f: fn(Verdict) -> bool| rows.iter().all(|r| f(r.verdict));
    Some(if all(|v| v == Verdict::Faster) {
        Lane::Pays { ratio }
    } else if all(|v| matches!(v, Verdict::Same | Verdict::Slower)) {
        Lane::DoesNotPay { ratio }
    } else {
        Lane::CannotTell { detectable }
    })
}
