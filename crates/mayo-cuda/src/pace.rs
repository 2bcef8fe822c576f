//! The batch size from which a device pays off, and the shares of device and CPU. The caller measures the times.
#![forbid(unsafe_code)]

use super::Options;

/// Times of batches, in any one unit: two sizes on a device, and one operation of a batch on the CPU's threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Operations of the smaller batch, and its time on the device.
    pub small: (usize, f64),
    /// The same for a larger one.
    pub large: (usize, f64),
    /// Time for one operation on the CPU, with all threads that it is to use.
    pub cpu: f64,
}

impl Pace {
    /// The device's fixed time and the time of each operation, by the line through both sizes. A larger batch that was
    /// not slower makes that line flat.
    #[must_use]
    pub fn line(&self) -> (f64, f64) {
        let more = self.large.0.saturating_sub(self.small.0).max(1) as f64;
        let each = ((self.large.1 - self.small.1) / more).max(0.0);
        ((self.small.1 - each * self.small.0 as f64).max(0.0), each)
    }

    /// The pace of devices that share each batch by their rates: the slowest start counts, and rates add up. `None` for
    /// no devices; the CPU's time is the first's.
    #[must_use]
    pub fn together(all: &[Pace]) -> Option<Pace> {
        let fixed = all.iter().map(|pace| pace.line().0).fold(0.0, f64::max);
        let rate: f64 = all.iter().map(|pace| 1.0 / pace.line().1).sum();
        // Two points of that line. A flat line of one of them makes the sum flat.
        let many = 1 << 20;
        Some(Pace { small: (0, fixed), large: (many, fixed + many as f64 / rate), cpu: all.first()?.cpu })
    }

    /// Shares of a large batch by these devices' rates, in any one unit: all equal where one of them took no measurable
    /// time.
    #[must_use]
    pub fn weights(all: &[Pace]) -> Vec<f64> {
        let rates: Vec<f64> = all.iter().map(|pace| 1.0 / pace.line().1).collect();
        if rates.iter().all(|rate| rate.is_finite()) { rates } else { vec![1.0; all.len()] }
    }

    /// The smallest batch that the device finishes no later than the CPU, if any.
    #[must_use]
    pub fn break_even(&self) -> Option<usize> {
        let (fixed, each) = self.line();
        let won = self.cpu - each;
        (won > 0.0).then(|| ((fixed / won).ceil() as usize).max(1))
    }

    /// The share of a large batch that the CPU finishes while the device does the rest, 0 to 1.
    #[must_use]
    pub fn cpu_share(&self) -> f64 {
        let (_, each) = self.line();
        let both = each + self.cpu;
        if both > 0.0 { each / both } else { 0.0 }
    }

    /// `options` with the break-even and share of these times; a device that never pays off gets no batch.
    #[must_use]
    pub fn picked(&self, options: Options, together: bool) -> Options {
        let break_even = self.break_even().unwrap_or(usize::MAX);
        Options { break_even, cpu_share: if together { self.cpu_share() } else { 0.0 }, ..options }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_break_even_is_where_the_lines_meet() {
        // 100 to start and 1 each, against 3 each: at 50 both take 150.
        let pace = Pace { small: (10, 110.0), large: (1000, 1100.0), cpu: 3.0 };
        assert_eq!(pace.line(), (100.0, 1.0));
        assert_eq!(pace.break_even(), Some(50));
        assert!((pace.cpu_share() - 0.25).abs() < 1e-12);
        let options = pace.picked(Options::default(), true);
        assert_eq!((options.break_even, options.cpu_share), (50, 0.25));
        assert_eq!(pace.picked(Options::default(), false).cpu_share, 0.0);
    }

    #[test]
    fn devices_add_their_rates_and_share_by_them() {
        let first = Pace { small: (10, 110.0), large: (1000, 1100.0), cpu: 3.0 };
        let second = Pace { small: (10, 230.0), large: (1000, 3200.0), cpu: 3.0 };
        assert_eq!((first.line(), second.line()), ((100.0, 1.0), (200.0, 3.0)));
        let both = Pace::together(&[first, second]).unwrap();
        let (fixed, each) = both.line();
        assert_eq!(fixed, 200.0);
        assert!((each - 0.75).abs() < 1e-9, "{each}");
        assert_eq!(both.break_even(), Some(89), "200 to start and 0.75 each, against 3 each");
        let weights = Pace::weights(&[first, second]);
        assert!((weights[0] / weights[1] - 3.0).abs() < 1e-9, "{weights:?}");
        assert_eq!(Pace::together(&[]), None);
        let flat = Pace { small: (10, 5.0), large: (20, 5.0), cpu: 3.0 };
        assert_eq!(Pace::weights(&[first, flat]), [1.0, 1.0]);
        assert_eq!(Pace::together(&[first, flat]).unwrap().line(), (100.0, 0.0));
    }

    #[test]
    fn a_device_that_never_pays_gets_nothing() {
        let pace = Pace { small: (10, 110.0), large: (1000, 4100.0), cpu: 3.0 };
        assert_eq!(pace.break_even(), None);
        assert_eq!(pace.picked(Options::default(), true).break_even, usize::MAX);
    }

    #[test]
    fn noise_makes_no_negative_times() {
        let pace = Pace { small: (10, 110.0), large: (1000, 90.0), cpu: 3.0 };
        assert_eq!(pace.line(), (110.0, 0.0));
        assert_eq!((pace.break_even(), pace.cpu_share()), (Some(37), 0.0));
    }
}
