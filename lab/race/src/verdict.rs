//! From intervals to words.
#![forbid(unsafe_code)]

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::stats::Interval;

/// What can be said about a variant against its baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// It takes less time.
    #[serde(rename = "faster")]
    Faster,
    /// It takes more time.
    #[serde(rename = "slower")]
    Slower,
    /// It takes the same time, to within the margin.
    #[serde(rename = "same")]
    Same,
    /// The measurement does not settle it.
    #[serde(rename = "cannot tell")]
    CannotTell,
    /// The race's A/A control failed, and the effect is not far beyond its noise.
    #[serde(rename = "void")]
    Void,
}

impl Verdict {
    /// The word, as in a record.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::CannotTell => "cannot tell",
            Self::Void => "void",
        }
    }

    /// Every verdict, the unsettled ones first.
    pub const ALL: [Self; 5] = [Self::Void, Self::CannotTell, Self::Same, Self::Faster, Self::Slower];

    /// Whether it answers the question: neither *cannot tell* nor *void*.
    #[must_use]
    pub fn is_settled(self) -> bool {
        !matches!(self, Self::CannotTell | Self::Void)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// How verdicts are reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// The error rate of each verdict: 0.01 is one wrong *faster* or *slower* in a hundred at most.
    pub alpha: f64,
    /// Differences up to this fraction count as the same, when the noise floor is lower.
    pub margin: f64,
    /// However noisy the machine, a difference above this fraction is never called the same.
    pub widest_margin: f64,
}

impl Default for Rules {
    fn default() -> Self {
        Self { alpha: 0.01, margin: 0.005, widest_margin: 0.02 }
    }
}

/// A verdict and the quantities it rests on, all as fractions (0.01 is 1 %).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// The word.
    pub verdict: Verdict,
    /// Differences within this fraction count as the same.
    pub margin: f64,
    /// The smallest effect that this measurement could have seen.
    pub detectable: f64,
}

/// The noise floor that an A/A control shows: how far from 1 its ratio, which truly *is* 1, may appear.
#[must_use]
pub fn noise_floor(control: Interval) -> f64 {
    control.low.ln().abs().max(control.high.ln().abs()).exp_m1()
}

/// How many times larger than a failed control's noise floor an effect must be to count anyway.
pub const FAR_BEYOND: f64 = 10.0;

/// Whether an A/A control fails: its interval excludes 1, the ratio of a thing to itself.
#[must_use]
pub fn fails(control: Interval) -> bool {
    control.excludes(1.0)
}

/// Whether a comparison is [`Verdict::Void`]: the race's control fails, and the effect is not [`FAR_BEYOND`] times its noise floor.
/// Whatever the laboratory did to one of two equals, it may have done to the others, by an amount not known exactly.
#[must_use]
pub fn is_void(control: Interval, ratio: f64) -> bool {
    fails(control) && ratio.ln().abs() <= FAR_BEYOND * noise_floor(control).ln_1p()
}

/// Judges the interval of a ratio (baseline's time / variant's time) against the noise floor.
#[must_use]
pub fn judge(ratio: Interval, noise: f64, rules: &Rules) -> Judgement {
    let margin = rules.margin.max(noise).min(rules.widest_margin.max(rules.margin));
    let half = (ratio.high / ratio.estimate).ln().max((ratio.estimate / ratio.low).ln()).exp_m1();
    let detectable = half.max(noise);
    let beyond_noise = ratio.estimate.ln().abs() > noise.ln_1p();
    let verdict = if ratio.low > 1.0 && beyond_noise {
        Verdict::Faster
    } else if ratio.high < 1.0 && beyond_noise {
        Verdict::Slower
    } else if ratio.low >= 1.0 / (1.0 + margin) && ratio.high <= 1.0 + margin {
        Verdict::Same
    } else {
        Verdict::CannotTell
    };
    Judgement { verdict, margin, detectable }
}

/// Whether a lane pays on this machine: the last line of a tour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "lane", rename_all = "snake_case")]
pub enum Lane {
    /// It is faster by this ratio.
    Pays {
        /// Baseline's time / the lane's time.
        ratio: f64,
    },
    /// It is no faster.
    DoesNotPay {
        /// Baseline's time / the lane's time.
        ratio: f64,
    },
    /// The measurement does not settle it.
    CannotTell {
        /// The smallest effect that could have been seen, as a fraction.
        detectable: f64,
    },
    /// The race's A/A control failed.
    Void,
    /// It cannot run on this machine.
    NotHere {
        /// Why not.
        why: String,
    },
}

impl Lane {
    /// From a verdict, the ratio it is about, and the smallest effect that could have been seen.
    #[must_use]
    pub fn of(verdict: Verdict, ratio: f64, detectable: f64) -> Self {
        match verdict {
            Verdict::Faster => Self::Pays { ratio },
            Verdict::Slower | Verdict::Same => Self::DoesNotPay { ratio },
            Verdict::CannotTell => Self::CannotTell { detectable },
            Verdict::Void => Self::Void,
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pays { ratio } if *ratio < 1.1 => write!(f, "PAYS ×{ratio:.3}"),
            Self::Pays { ratio } => write!(f, "PAYS ×{ratio:.2}"),
            Self::DoesNotPay { ratio } => write!(f, "DOES NOT PAY (×{ratio:.3})"),
            Self::CannotTell { detectable } if *detectable >= 1.0 => {
                f.write_str("CANNOT TELL (the machine is too busy: even a factor of two drowns here)")
            }
            Self::CannotTell { detectable } => {
                write!(f, "CANNOT TELL (effects below {:.2} % drown here)", detectable * 100.0)
            }
            Self::Void => f.write_str("VOID (the A/A control differs from itself; race again)"),
            Self::NotHere { why } => write!(f, "NOT HERE: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(low: f64, estimate: f64, high: f64) -> Interval {
        Interval { estimate, low, high }
    }

    fn word(ratio: Interval, noise: f64) -> Verdict {
        judge(ratio, noise, &Rules::default()).verdict
    }

    #[test]
    fn the_four_words() {
        assert_eq!(word(at(1.01, 1.02, 1.03), 0.001), Verdict::Faster);
        assert_eq!(word(at(0.95, 0.96, 0.97), 0.001), Verdict::Slower);
        assert_eq!(word(at(0.998, 1.0, 1.002), 0.001), Verdict::Same);
        assert_eq!(word(at(0.98, 1.01, 1.04), 0.001), Verdict::CannotTell);
    }

    #[test]
    fn a_clear_interval_below_the_noise_floor_is_no_verdict() {
        assert_eq!(word(at(1.01, 1.012, 1.015), 0.013), Verdict::CannotTell);
        assert_eq!(word(at(1.01, 1.012, 1.015), 0.016), Verdict::Same);
    }

    #[test]
    fn noise_never_makes_large_differences_the_same() {
        assert_eq!(word(at(0.92, 1.0, 1.08), 0.10), Verdict::CannotTell);
    }

    #[test]
    fn noise_floor_is_the_far_end() {
        let n = noise_floor(at(0.99, 1.0, 1.002));
        assert!((n - (1.0 / 0.99 - 1.0)).abs() < 1e-12, "{n}");
    }

    #[test]
    fn a_control_fails_when_its_interval_excludes_one() {
        assert!(!fails(at(0.99, 1.0, 1.002)) && !fails(at(1.0, 1.0, 1.002)) && !fails(at(0.998, 0.999, 1.0)));
        let off = at(1.0029, 1.0036, 1.0043);
        assert!(fails(off) && fails(at(0.9963, 0.997, 0.9978)));
        // Ten times 0.43 % are 4.4 %, either way.
        assert!(is_void(off, 1.043) && is_void(off, 0.958) && !is_void(off, 1.045) && !is_void(off, 0.957));
        assert!(!is_void(at(0.9999, 1.0, 1.0043), 1.001));
    }

    #[test]
    fn detectable_is_the_wider_of_interval_and_noise() {
        let j = judge(at(0.98, 1.0, 1.01), 0.001, &Rules::default());
        assert!((j.detectable - (1.0 / 0.98 - 1.0)).abs() < 1e-12);
        assert_eq!(judge(at(0.999, 1.0, 1.001), 0.007, &Rules::default()).detectable, 0.007_f64.max(0.001));
    }

    #[test]
    fn lane_lines() {
        assert_eq!(Lane::of(Verdict::Faster, 3.9, 0.01).to_string(), "PAYS ×3.90");
        assert_eq!(Lane::of(Verdict::Slower, 0.9, 0.01).to_string(), "DOES NOT PAY (×0.900)");
        let untold = |detectable| Lane::CannotTell { detectable }.to_string();
        assert_eq!(untold(0.034), "CANNOT TELL (effects below 3.40 % drown here)");
        assert!(untold(5e11).contains("factor of two"), "{}", untold(5e11));
        assert!(Lane::NotHere { why: "no avx512".into() }.to_string().starts_with("NOT HERE: no avx512"));
    }
}
