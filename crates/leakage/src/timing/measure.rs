//! Timing a subject: what is done between two looks at the clock, and how often.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use super::{Largest, SUSPECT, Series, confirmed};
use crate::evidence::{Finding, Job, Means, PlantedRow, Row, Subject};
use crate::plants::{self, popcount_turns};
use crate::sys::clock::ticks;

/// How many samples are taken.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Of operations shorter than [`Effort::SHORT`].
    pub samples: u64,
    /// Time for one series of a longer operation: as many samples as it gives.
    pub time: Duration,
    /// Time after which a series of a short operation ends, be its samples complete or not: preparing a case may take far longer than
    /// what is timed.
    pub patience: Duration,
}

impl Effort {
    /// What counts as short.
    pub const SHORT: Duration = Duration::from_micros(50);

    /// So much time for every series, those of short operations too.
    #[must_use]
    pub fn within(time: Duration) -> Effort {
        Effort { time, patience: time, ..Effort::default() }
    }

    /// Samples and time for a series of an operation that takes as long as this.
    fn of(&self, one: Duration) -> (u64, Duration) {
        if one < Effort::SHORT { (self.samples, self.patience) } else { (u64::MAX, self.time) }
    }

    /// A fifth of it.
    fn less(&self) -> Effort {
        Effort { samples: self.samples / 5, time: self.time / 5, patience: self.patience / 5 }
    }
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { samples: 1_000_000, time: Duration::from_secs(60), patience: Duration::from_secs(600) }
    }
}

/// Samples that set the crops.
const FIRST: usize = 2000;

/// Fewer say nothing.
const FEWEST: u64 = 2000;

/// Random numbers that decide on classes and cases; fixed seeds would let an effect of the order repeat.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// What is timed: a case's preparation, and the operation.
pub struct Watched<'a> {
    cases: usize,
    prepare: Box<dyn Fn(usize) -> Box<dyn Job> + 'a>,
    /// Turns of a loop planted behind the operation, for every bit that is set in the secret's first byte.
    turns: u32,
}

impl core::fmt::Debug for Watched<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Watched").field("turns", &self.turns).finish_non_exhaustive()
    }
}

impl Watched<'_> {
    /// A subject, with a loop behind it of as many turns for each bit of the first byte of the secret.
    fn of(subject: &Subject, turns: u32) -> Watched<'_> {
        Watched { cases: subject.cases, prepare: Box::new(|case| subject.prepare(case)), turns }
    }

    /// Ticks of one run of a case, after its preparation.
    fn time(&self, case: usize) -> u64 {
        let mut job = (self.prepare)(case);
        let before = ticks();
        job.run();
        if self.turns > 0 {
            popcount_turns(job.secret(), self.turns);
        }
        let after = ticks();
        drop(job);
        after.saturating_sub(before)
    }

    /// One series, of as many samples as asked for or as the time allows.
    fn series(&self, (samples, time): (u64, Duration), dice: &mut Dice) -> Series {
        let mut series = Series::new(FIRST);
        let until = Instant::now() + time;
        while series.samples() < samples {
            // What stands before the operation is the same for both classes.
            let (random, other) = (dice.next() & 1, 1 + dice.next() % (self.cases as u64 - 1));
            let (random, case) = (random == 1, (random * other) as usize);
            series.push(random, self.time(case) as f64);
            if series.samples().is_multiple_of(64) && Instant::now() > until {
                break;
            }
        }
        series
    }

    /// The median of a few runs, in ticks and in time.
    fn median(&self) -> (u64, Duration) {
        let mut times: Vec<(u64, Duration)> = (0..31)
            .map(|i| {
                let mut job = (self.prepare)(i % self.cases);
                let (start, before) = (Instant::now(), ticks());
                job.run();
                (ticks().saturating_sub(before), start.elapsed())
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    }
}

/// A series, and a second one where the first is suspicious.
fn watch(watched: &Watched<'_>, effort: (u64, Duration), dice: &mut Dice) -> (Series, Largest, bool) {
    let first = watched.series(effort, dice);
    let largest = first.largest();
    let leaks = largest.t.abs() > SUSPECT && confirmed(&largest, &watched.series(effort, dice));
    (first, largest, leaks)
}

/// Turns of the planted loop that make a difference of about one part in `part` between the classes.
fn turns(median: u64, part: u64) -> u32 {
    // Random bytes have four bits set on average; case 0 is expected to have none or all of them, so that the classes
    // differ by four bits' worth; a turn is a tick or little more.
    u32::try_from((median / part / 4).max(8)).unwrap_or(u32::MAX)
}

/// Times a subject, and the same with a loop planted behind it that runs for about 1 % longer under the average secret: where
/// that is not found, there were too few samples to say anything.
#[must_use]
pub fn judge(subject: &Subject, effort: Effort, seed: u64) -> Row {
    let row = |finding, extent| subject.row(Means::Timing, finding, extent);
    if subject.cases < 3 {
        return row(Finding::NotApplicable("it has too few cases".into()), String::new());
    }
    let mut dice = Dice(seed);
    let sound = Watched::of(subject, 0);
    let (median, time) = sound.median();
    let (asked, limit) = effort.of(time);
    let (series, largest, leaks) = watch(&sound, (asked, limit), &mut dice);
    let extent = format!(
        "{}{} samples of {:.1} us, |t| {:.1} {}",
        series.samples(),
        if asked < u64::MAX && series.samples() < asked { format!(" of {asked}") } else { String::new() },
        time.as_secs_f64() * 1e6,
        largest.t.abs(),
        largest.which
    );
    if leaks {
        let what = format!(
            "|t| is {:.1} {} and was above {SUSPECT} in a second series too: fixed secrets take {:+.3} %",
            largest.t.abs(),
            largest.which,
            100.0 * largest.relative
        );
        return row(Finding::Leak(what), extent);
    }
    if series.samples() < FEWEST {
        let what = format!("{} samples in the time given are too few", series.samples());
        return row(Finding::NotApplicable(what), extent);
    }
    // A fifth of the effort suffices for the plant: what is found with less is found with more.
    let twin = Watched::of(subject, turns(median, 100));
    let (_, planted, found) = watch(&twin, effort.less().of(time), &mut dice);
    if found {
        row(Finding::Clean, extent)
    } else {
        let what = format!("a loop of 1 % was planted behind it and not found: |t| {:.1}", planted.t.abs());
        // Noise is no fault of the code nor of the check: there is nothing that it could say.
        row(Finding::NotApplicable(what), extent)
    }
}

/// A job that is nothing but a secret.
struct Bare {
    secret: [u8; 16],
    run: fn(&[u8]),
}

impl Job for Bare {
    fn run(&mut self) {
        (self.run)(&self.secret);
    }

    fn answer(&self) -> Vec<u8> {
        self.secret.to_vec()
    }

    fn secret(&self) -> &[u8] {
        &self.secret
    }
}

/// Functions that timing has to judge, each repeated so that it takes a microsecond or so.
const TIMED: [(&str, &str, bool, fn(&[u8])); 5] = [
    ("portable", "loop_over_bits", false, |secret| repeat(secret, plants::loop_over_bits)),
    ("portable", "compare_until_different", false, |secret| {
        repeat(secret, |s| {
            std::hint::black_box(plants::compare_until_different(s, &[0; 16]));
        });
    }),
    ("portable", "select_by_byte", true, |secret| repeat(secret, plants::select_by_byte)),
    ("avx2", "loop_over_lanes", false, |secret| repeat(secret, plants::loop_lanes)),
    ("avx512", "loop_over_wide_lanes", false, |secret| repeat(secret, plants::loop_wide)),
];

fn repeat(secret: &[u8], what: fn(&[u8])) {
    for _ in 0..32 {
        what(std::hint::black_box(secret));
    }
}

/// Whether variable time is found, and a sound function let alone.
#[must_use]
pub fn plants(effort: Effort, seed: u64) -> Vec<PlantedRow> {
    let mut dice = Dice(seed);
    let runs = TIMED.iter().filter(|(tier, ..)| plants::runs(tier));
    let judge = |&(tier, plant, sound, run): &(&'static str, &'static str, bool, fn(&[u8]))| {
        let subject = Subject::new(plant, tier, 256, move |case| {
            // The fixed secret is made by the same instructions as the others.
            let mut dice = Dice(case as u64);
            let mask = [0, 255][case.min(1)];
            let secret = core::array::from_fn(|_| dice.next() as u8 & mask);
            Bare { secret, run }
        });
        let samples = effort.samples.min(200_000);
        let (series, largest, found) = watch(&Watched::of(&subject, 0), (samples, effort.time), &mut dice);
        let said = format!(
            "|t| {:.1} {} in {} samples, {:+.2} %",
            largest.t.abs(),
            largest.which,
            series.samples(),
            100.0 * largest.relative
        );
        PlantedRow { tier, plant, means: Means::Timing, sound, right: found != sound, said }
    };
    runs.map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_operations_have_a_million_samples_and_long_ones_a_minute() {
        let all = Effort::default();
        let (short, long) = (Duration::from_micros(49), Duration::from_micros(50));
        assert_eq!(all.of(short), (1_000_000, Duration::from_secs(600)));
        assert_eq!(all.of(long), (u64::MAX, Duration::from_secs(60)));
        assert_eq!(all.less().of(short), (200_000, Duration::from_secs(120)));
        // Who says how long waits no longer.
        let asked = Effort::within(Duration::from_secs(2));
        assert_eq!((asked.of(short).1, asked.of(long).1), (Duration::from_secs(2), Duration::from_secs(2)));
        assert_eq!(asked.less().of(long).1, Duration::from_millis(400));
    }

    /// However short the time, a series ends; and one whose samples are complete does not wait for its time.
    #[test]
    fn a_series_ends_by_its_count_or_by_its_time() {
        let subject =
            Subject::new("nothing", "portable", 256, |case| Bare { secret: [case as u8; 16], run: |_| {} });
        let watched = Watched::of(&subject, 0);
        let mut dice = Dice(1);
        assert_eq!(watched.series((300, Duration::from_secs(600)), &mut dice).samples(), 300);
        let cut = watched.series((u64::MAX, Duration::ZERO), &mut dice).samples();
        assert!(cut <= 64, "{cut}");
    }
}
