//! Where values lie on a chart, and which of them are labelled.
#![forbid(unsafe_code)]

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// An axis of a chart, logarithmic or linear.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    log: bool,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

/// The most labels on an axis, roughly.
const TICKS: usize = 5;

impl Axis {
    /// For ratios: `centre` is on it, and a factor up is as far as the same factor down. `None` without positive values.
    pub(super) fn about(centre: f64, values: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut low, mut high) = extremes(values)?;
        (low, high) = (low.min(centre), high.max(centre));
        // Room beside the outermost values, and never so short an axis that 0.1 % looks like much.
        let room = (high / low).powf(0.06).max(1.004);
        Some(Self::logarithmic(low / room, high * room))
    }

    /// For values that differ by factors. `None` without positive values.
    pub(super) fn around(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = extremes(values)?;
        let room = (high / low).powf(0.08).max(1.05);
        Some(Self::logarithmic(low / room, high * room))
    }

    /// A logarithmic axis with labels at these values only, as many as there is room for. `None` without positive values.
    pub(super) fn through(values: &[f64]) -> Option<Self> {
        let (low, high) = extremes(values.iter().copied())?;
        let room = (high / low).powf(0.04).max(1.1);
        let mut axis = Self::logarithmic(low / room, high * room);
        let step = values.len().div_ceil(TICKS + 1);
        axis.ticks = values.iter().copied().rev().step_by(step.max(1)).collect();
        Some(axis)
    }

    fn logarithmic(low: f64, high: f64) -> Self {
        let ticks = if high / low < 2.5 {
            even(low, high)
        } else {
            let mut ticks = Vec::new();
            let first = low.log10().floor() as i32;
            let last = high.log10().ceil() as i32;
            // As fine as there is room for.
            for steps in [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0][..], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]] {
                ticks = (first..=last)
                    .flat_map(|decade| steps.iter().map(move |s| s * 10_f64.powi(decade)))
                    .filter(|t| (low..=high).contains(t))
                    .collect();
                if ticks.len() <= TICKS + 1 {
                    break;
                }
            }
            let step = ticks.len().div_ceil(TICKS + 1).max(1);
            ticks.into_iter().step_by(step).collect()
        };
        Self { log: true, low, high, ticks }
    }

    /// A linear axis; 0 has a label where it is on the axis.
    pub(super) fn linear(low: f64, high: f64) -> Self {
        Self { log: false, low, high, ticks: even(low, high) }
    }

    /// The value on the axis's scale.
    fn measure(&self, x: f64) -> f64 {
        if self.log { x.max(f64::MIN_POSITIVE).ln() } else { x }
    }

    /// Two values, clamped to the axis's ends.
    pub(super) fn clamped(&self, low: f64, high: f64) -> (f64, f64) {
        (low.clamp(self.low, self.high), high.clamp(self.low, self.high))
    }

    /// The label of a value.
    pub(super) fn text(x: f64, unit: &str) -> String {
        // As many decimals as tell neighbours apart.
        let text = if x.abs() >= 1000.0 {
            let k = x / 1024.0;
            if x >= 1e6 && (x / 1048576.0).fract().abs() < 1e-6 {
                format!("{:.0}M", x / 1048576.0)
            } else if (k - k.round()).abs() < 1e-6 {
                format!("{k:.0}K")
            } else if x.abs() >= 1e6 {
                format!("{:.3e}", x)
            } else {
                format!("{x:.0}")
            }
        } else {
            let text = format!("{x:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let text = if text == "-0" { "0".to_owned() } else { text };
        match unit {
            "×" => format!("×{text}"),
            "%" if x > 0.0 => format!("+{text} %"),
            "%" => format!("{text} %").replace('-', "−"),
            _ => text,
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let (low, high) = (self.measure(self.low), self.measure(self.high));
        // Values beyond an end stay at it: plotters' dashed lines to far-off pixels never end.
        let share = ((self.measure(*value) - low) / (high - low)).clamp(0.0, 1.0);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        Axis::text(*value, "")
    }
}

fn extremes(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for x in values.filter(|x| x.is_finite() && *x > 0.0) {
        // An interval of two processes may end anywhere; an axis does not follow it there.
        let x = x.clamp(1e-30, 1e30);
        (low, high) = (low.min(x), high.max(x));
    }
    (high > 0.0).then_some((low, high))
}

/// Multiples of a step of 1, 2 or 5 within the ends.
fn even(low: f64, high: f64) -> Vec<f64> {
    let span = high - low;
    if span.is_nan() || span <= 0.0 {
        return vec![low];
    }
    let rough = span / (TICKS - 1) as f64;
    let decade = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * decade).find(|s| *s >= rough).unwrap_or(span);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(axis: &Axis, unit: &str) -> Vec<String> {
        axis.ticks.iter().map(|t| Axis::text(*t, unit)).collect()
    }

    #[test]
    fn what_is_written_out() {
        let axis = Axis::about(1.0, [0.98, 1.05].into_iter()).expect("an axis");
        assert_eq!(written(&axis, "×"), ["×0.98", "×1", "×1.02", "×1.04"]);
        let axis = Axis::about(1.0, [9.0, 30.0].into_iter()).expect("an axis");
        assert_eq!(written(&axis, "×"), ["×1", "×2", "×5", "×10", "×20"]);
        let axis = Axis::through(&[16.0, 64.0, 256.0, 1024.0, 16384.0, 1048576.0]).expect("an axis");
        assert_eq!(written(&axis, ""), ["1M", "16K", "1K", "256", "64", "16"]);
        assert_eq!(written(&Axis::linear(-0.9, 2.2), "%"), ["0 %", "+1 %", "+2 %"]);
        assert_eq!(written(&Axis::linear(-0.06, 0.1), "%")[0], "−0.05 %");
    }

    #[test]
    fn nothing_positive_makes_no_axis() {
        assert_eq!(Axis::about(1.0, [0.0, -1.0, f64::NAN].into_iter()), None);
        let far = Axis::about(1.0, [1e-320, 1e308].into_iter()).expect("an axis");
        assert!(far.low > 0.0 && far.high < f64::INFINITY && far.ticks.len() <= TICKS + 1, "{far:?}");
        assert_eq!(Axis::around([].into_iter()), None);
        assert_eq!(Axis::through(&[]), None);
    }

    #[test]
    fn values_beyond_stay_at_the_edge() {
        let axis = Axis::about(1.0, [0.5, 2.0].into_iter()).expect("an axis");
        let (low, high) = axis.clamped(1e-12, 1e12);
        assert_eq!((low, high), (axis.low, axis.high));
        // A factor is a distance.
        let at = |x: f64| axis.map(&x, (0, 1000));
        assert_eq!((at(low), at(1.0), at(high)), (0, 500, 1000));
        assert_eq!(at(2.0) - at(1.0), at(1.0) - at(0.5));
        for axis in [axis, Axis::linear(0.5, 2.0)] {
            let at = |x: f64| axis.map(&x, (10, 90));
            assert_eq!((at(1e-300), at(-1e300), at(1e300), at(f64::INFINITY)), (10, 10, 90, 90));
        }
    }
}
