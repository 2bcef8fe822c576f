//! How fast the squaring is and how long it will take.
#![forbid(unsafe_code)]

use std::time::Duration;

/// Speed and time left, from how much was done when. The caller passes the time; no clock is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    last: Option<(Duration, u64)>,
    /// Recent squarings per second.
    rate: Option<f64>,
}

/// Between two readings of the speed: shorter ones would show the scheduler, not the chain.
const BETWEEN: Duration = Duration::from_millis(500);
/// The weight of the newest reading.
const NEWEST: f64 = 0.3;

impl Meter {
    /// Takes a reading.
    pub(super) fn read(&mut self, now: Duration, done: u64) {
        let Some((then, before)) = self.last else {
            self.last = Some((now, done));
            return;
        };
        let passed = now.saturating_sub(then);
        if passed < BETWEEN {
            return;
        }
        self.last = Some((now, done));
        let newest = done.saturating_sub(before) as f64 / passed.as_secs_f64();
        self.rate = Some(self.rate.map_or(newest, |rate| rate + NEWEST * (newest - rate)));
    }

    /// The last readings as text.
    pub(super) fn words(&self, left: u64, unit: &str) -> String {
        match self.rate {
            Some(rate) if rate >= 1.0 => {
                let seconds = (left as f64 / rate).ceil();
                format!("{}/s, {} left", counted(rate.round() as u64, unit), clock(seconds as u64))
            }
            _ => String::new(),
        }
    }
}

/// A number of things, its digits in threes.
pub(super) fn counted(number: u64, unit: &str) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    format!("{out} {unit}")
}

/// Seconds as hours, minutes and seconds.
fn clock(seconds: u64) -> String {
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3599 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_and_time_left() {
        let mut meter = Meter::default();
        assert_eq!(meter.words(1000, "squarings"), "", "nothing is known yet");
        let seconds = Duration::from_millis;
        // Squarings from a checkpoint do not count towards this run's speed.
        meter.read(seconds(0), 5_000_000);
        meter.read(seconds(100), 5_040_000);
        assert_eq!(meter.words(1000, "squarings"), "", "too early to tell");
        meter.read(seconds(1000), 5_400_000);
        assert_eq!(meter.words(4_000_000, "squarings"), "400,000 squarings/s, 10 s left");
        meter.read(seconds(2000), 5_800_000);
        assert_eq!(meter.words(400_000_000, "squarings"), "400,000 squarings/s, 16:40 min left");
        meter.read(seconds(3000), 6_300_000);
        assert_eq!(meter.words(43_000_000_000, "squarings"), "430,000 squarings/s, 27:46 h left");
        for i in 4..60 {
            meter.read(seconds(i * 1000), 6_300_000);
        }
        assert_eq!(meter.words(1000, "squarings"), "", "it stands still");
    }

    #[test]
    fn digits_in_threes() {
        let text: Vec<String> = [0, 999, 1000, 123_456, 1_234_567].map(|n| counted(n, "x")).into();
        assert_eq!(text, ["0 x", "999 x", "1,000 x", "123,456 x", "1,234,567 x"]);
    }
}
