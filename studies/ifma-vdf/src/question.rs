//! The published report's figures, and how its question is asked again.
#![forbid(unsafe_code)]

use lanework_race::stats::median;
use lanework_race::study::Study;
use serde::Deserialize;

/// `study.toml` behind its question.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Plan {
    pub(super) original: Original,
    pub(super) quick: Effort,
    pub(super) full: Effort,
    pub(super) busy: Busy,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Original {
    pub(super) title: String,
    pub(super) machine: String,
    pub(super) command: String,
    pub(super) iterations: u64,
    pub(super) slow: u64,
    pub(super) off_ms: Vec<f64>,
    pub(super) on_ms: Vec<f64>,
    pub(super) cause: String,
    pub(super) multiply: Multiply,
}

/// Cycles of a 512-bit multiplication.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Multiply {
    pub(super) gmp: f64,
    pub(super) ifma_converted: f64,
}

/// Samples of the synthetic benchmark's lines, how long a run lasts, how many pairs a comparison takes, and the most
/// squarings of a run.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Effort {
    pub(super) rounds: usize,
    pub(super) milliseconds: u64,
    pub(super) pairs: usize,
    /// Pairs of ours on against off, which is the question.
    pub(super) own_pairs: usize,
    pub(super) most: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Busy {
    pub(super) slowest: f64,
}

impl Plan {
    pub(super) fn of(study: &Study) -> Result<Plan, String> {
        let plan: Plan = toml::Value::Table(study.table.clone())
            .try_into()
            .map_err(|e| format!("{}/study.toml: {e}", study.name))?;
        let times = plan.original.off_ms.iter().chain(&plan.original.on_ms);
        let positive = times.clone().count() > 0 && times.clone().all(|ms| *ms > 0.0);
        if !positive || plan.original.off_ms.is_empty() || plan.original.on_ms.is_empty() {
            return Err(format!("{}/study.toml: the report's times must be positive", study.name));
        }
        for effort in [plan.quick, plan.full] {
            if effort.rounds == 0
                || effort.pairs == 0
                || effort.own_pairs == 0
                || effort.milliseconds == 0
                || effort.most < LEAST
            {
                return Err(format!("{}/study.toml: no effort may be empty", study.name));
            }
        }
        Ok(plan)
    }

    /// The speed of "on" over that of "off", as the report measured it: below 1 it lost.
    pub(super) fn their_gain(&self) -> f64 {
        let middle = |times: &[f64]| median(times).unwrap_or(f64::NAN);
        middle(&self.original.off_ms) / middle(&self.original.on_ms)
    }
}

/// The least squarings of a run, so that the generator's first short forms do not weigh.
pub(super) const LEAST: u64 = 2000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ENTRY;

    fn plan(toml: &str) -> Result<Plan, String> {
        Plan::of(&Study::from_toml(ENTRY.name, toml).expect("a study"))
    }

    #[test]
    fn the_report_lost_six_per_cent() {
        let plan = plan(ENTRY.toml).expect("the built-in study is whole");
        assert!((plan.their_gain() - 15_095.0 / 15_966.0).abs() < 1e-9);
    }

    #[test]
    fn a_study_without_effort_is_refused() {
        for wrong in ["own-pairs = 0", "own_pairs = 24"] {
            let bad = ENTRY.toml.replacen("own-pairs = 24", wrong, 1);
            assert!(bad != ENTRY.toml && plan(&bad).is_err(), "{wrong}");
        }
        let bad = ENTRY.toml.replacen("\npairs = 6", "\npairs = 0", 1);
        assert!(plan(&bad).is_err_and(|e| e.contains("effort")));
        let bad = ENTRY.toml.replace("rounds = 40", "rounds = 0");
        assert!(plan(&bad).is_err_and(|e| e.contains("effort")));
        let bad = ENTRY.toml.replace("off_ms = [15208, 14981, 15160, 14919, 15095]", "off_ms = []");
        assert!(plan(&bad).is_err_and(|e| e.contains("positive")));
    }
}
