//! The lanes: pieces of hardware that usually idle, and the races that ask whether they pay.
#![forbid(unsafe_code)]

use lanework_race::record::ResultRow;
use lanework_race::verdict::{Lane, Verdict};

/// A lane as the tour's last lines show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneQuestion {
    /// Its name.
    pub name: &'static str,
    /// What the figure compares.
    pub compares: &'static str,
}

/// Every lane, in the order of the tour's last lines.
pub const LANES: [LaneQuestion; 5] = [
    LaneQuestion { name: "vector lanes", compares: "the best vector backend against portable code" },
    LaneQuestion { name: "other threads", compares: "a batch on every core against the same batch on one" },
    LaneQuestion { name: "wide multiplier", compares: "52-bit multiply-add against 64-bit multiplication" },
    LaneQuestion { name: "spare registers", compares: "spilled values in spare registers against the stack" },
    LaneQuestion { name: "GPU", compares: "a batch on the GPU against every core" },
];

/// What the races say about a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The line's word and figure.
    pub lane: Lane,
    /// How many races gave that word.
    pub agree: usize,
    /// How many races gave a settled verdict.
    pub told: usize,
    /// How many of these found the lane faster.
    pub faster: usize,
    /// How many races asked.
    pub races: usize,
}

/// One line for a lane from all races that asked about it: the word that more than half of them gave and none
/// contradicts, with the geometric mean of their ratios. A race that cannot tell, or is void, contradicts nothing, but it
/// does not count as agreeing either.
#[must_use]
pub fn summarise<'a>(rows: impl Iterator<Item = &'a ResultRow>) -> Option<Finding> {
    let rows: Vec<&ResultRow> = rows.collect();
    let races = rows.len();
    if races == 0 {
        return None;
    }
    let told: Vec<&ResultRow> = rows.iter().copied().filter(|r| r.verdict.is_settled()).collect();
    let ratio = (told.iter().map(|r| r.ratio.ln()).sum::<f64>() / told.len().max(1) as f64).exp();
    let faster = told.iter().filter(|r| r.verdict == Verdict::Faster).count();
    let lane = if 2 * told.len() <= races || (faster > 0 && faster < told.len()) {
        // The median: one disturbed race does not speak for the machine.
        let mut detectable: Vec<f64> = rows.iter().map(|r| r.detectable).collect();
        detectable.sort_by(f64::total_cmp);
        let lane = Lane::CannotTell { detectable: detectable[races / 2] };
        return Some(Finding { lane, agree: races - told.len(), told: told.len(), faster, races });
    } else if faster > 0 {
        Lane::Pays { ratio }
    } else {
        Lane::DoesNotPay { ratio }
    };
    Some(Finding { lane, agree: told.len(), told: told.len(), faster, races })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A result of this verdict, with nothing else in it that a summary looks at.
    fn row(verdict: &str, ratio: f64, detectable: f64) -> ResultRow {
        serde_json::from_value(serde_json::json!({
            "subject": "s", "variant": "v", "baseline": "b", "ratio": ratio, "low": ratio, "high": ratio,
            "noise": 0.001, "verdict": verdict, "unit": "ns", "median": 1.0, "mean": 1.0, "min": 1.0, "q1": 1.0,
            "q3": 1.0, "ticks": null, "baseline_median": 1.0, "baseline_mean": 1.0, "baseline_min": 1.0,
            "margin": 0.005, "detectable": detectable, "backend": "v", "baseline_backend": "b", "cores": 1,
            "iterations": [1, 1], "launch_pairs": [1], "samples": [], "baseline_samples": [],
        }))
        .expect("a row")
    }

    fn found(rows: &[ResultRow]) -> Finding {
        summarise(rows.iter()).expect("races")
    }

    #[test]
    fn races_that_agree_pay() {
        let f = found(&[row("faster", 2.0, 0.1), row("faster", 8.0, 0.1)]);
        assert!(matches!(f.lane, Lane::Pays { ratio } if (ratio - 4.0).abs() < 1e-9), "{f:?}");
        assert_eq!((f.agree, f.races), (2, 2));
        assert_eq!(summarise([].iter()), None);
    }

    #[test]
    fn one_untold_race_does_not_hide_the_others_but_is_counted() {
        let f = found(&[row("faster", 2.0, 0.1), row("faster", 2.0, 0.1), row("cannot tell", 90.0, 50.0)]);
        assert!(matches!(f.lane, Lane::Pays { ratio } if (ratio - 2.0).abs() < 1e-9), "{f:?}");
        assert_eq!((f.agree, f.races), (2, 3));
    }

    #[test]
    fn contradiction_and_silence_are_no_answer() {
        for verdict in ["slower", "same"] {
            let f = found(&[row("faster", 2.0, 0.1), row("faster", 2.0, 0.1), row(verdict, 0.9, 0.1)]);
            assert!(matches!(f.lane, Lane::CannotTell { .. }), "{f:?}");
        }
        let f = found(&[row("faster", 2.0, 0.1), row("void", 90.0, 0.3), row("faster", 8.0, 0.1)]);
        assert!(matches!(f.lane, Lane::Pays { ratio } if (ratio - 4.0).abs() < 1e-9), "{f:?}");
        assert_eq!((f.agree, f.races), (2, 3));
        let f = found(&[row("faster", 2.0, 0.1), row("cannot tell", 2.0, 0.3)]);
        assert_eq!(f.lane, Lane::CannotTell { detectable: 0.3 });
        let f = found(&[row("slower", 0.5, 0.1), row("same", 1.0, 0.1)]);
        assert!(matches!(f.lane, Lane::DoesNotPay { .. }), "{f:?}");
    }
}
