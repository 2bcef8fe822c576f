//! Timing a subject: what runs between two readings of the clock, and how often.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use super::again::{Again, told};
use super::{Largest, PROCESSES, SUSPECT, Series, confirmed};
use crate::evidence::{Finding, Job, Means, PlantedRow, Row, Subject};
use crate::plants::{self, popcount_turns};
use crate::sys::clock::ticks;

/// How many samples are taken.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Samples of an operation shorter than [`Effort::SHORT`].
    pub samples: u64,
    /// Time for one series of a longer operation, with as many samples as it gives.
    pub time: Duration,
    /// Time after which a series of a short operation ends even if it is incomplete: preparing a case may take far longer than
    /// the timed operation.
    pub patience: Duration,
}

impl Effort {
    /// A shorter operation counts as short.
    pub const SHORT: Duration = Duration::from_micros(50);

    /// This much time for every series, those of short operations too.
    #[must_use]
    pub fn within(time: Duration) -> Effort {
        Effort { time, patience: time, ..Effort::default() }
    }

    /// Samples and time for a series of an operation that takes as long as this.
    fn of(&self, one: Duration) -> (u64, Duration) {
        if one < Effort::SHORT { (self.samples, self.patience) } else { (u64::MAX, self.time) }
    }

    /// A tenth of the effort.
    fn less(&self) -> Effort {
        Effort { samples: self.samples / 10, time: self.time / 10, patience: self.patience / 10 }
    }
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { samples: 1_000_000, time: Duration::from_secs(60), patience: Duration::from_secs(600) }
    }
}

/// Samples that set the crops.
const FIRST: usize = 2000;

/// Fewer samples say nothing.
const FEWEST: u64 = 2000;

/// Random numbers that decide on classes and cases; fixed seeds would let an effect of the order repeat.
#[derive(Debug)]
pub(super) struct Dice(pub(super) u64);

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

/// What is timed: the operation, and a planted loop if any.
pub(super) struct Watched<'a> {
    subject: &'a Subject,
    /// Turns of a loop planted after the operation, for every bit that is set in the secret's first byte.
    turns: u32,
}

impl Watched<'_> {
    /// A subject, with a loop after it of this many turns for each bit set in the secret's first byte.
    pub(super) fn of(subject: &Subject, turns: u32) -> Watched<'_> {
        Watched { subject, turns }
    }

    /// Ticks of one run of a case, after its preparation.
    fn time(&self, case: usize) -> u64 {
        let mut job = self.subject.prepare(case);
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
    pub(super) fn series(&self, (samples, time): (u64, Duration), dice: &mut Dice) -> Series {
        let mut series = Series::new(FIRST);
        let start = Instant::now();
        while series.samples() < samples {
            // The code before the operation is the same for both classes.
            let (random, other) = (dice.next() & 1, 1 + dice.next() % (self.subject.cases as u64 - 1));
            let (random, case) = (random == 1, (random * other) as usize);
            series.push(random, self.time(case) as f64);
            if series.samples().is_multiple_of(64) && start.elapsed() > time {
                break;
            }
        }
        series
    }

    /// The median of a few runs, in ticks and in time.
    fn median(&self) -> (u64, Duration) {
        let mut times: Vec<(u64, Duration)> = (0..31)
            .map(|i| {
                let mut job = self.subject.prepare(i % self.subject.cases);
                let (start, before) = (Instant::now(), ticks());
                job.run();
                (ticks().saturating_sub(before), start.elapsed())
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    }
}

/// What became of a suspicion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Confirmed {
    leaks: bool,
    /// Processes that repeated the series; 0 where nothing was suspicious. If it is not a leak, the last did not show it.
    asked: usize,
}

impl Confirmed {
    /// In words, why a suspicion is not a leak; `None` where there was none or it is one.
    fn dropped(self) -> Option<String> {
        match (self.leaks, self.asked) {
            (false, 1) => Some("suspicious, and another process did not show it".to_owned()),
            (false, n) if n > 1 => {
                Some(format!("suspicious, and the last of {n} other processes did not show it"))
            }
            _ => None,
        }
    }
}

/// Repeats a suspicious series until a process does not show the same.
fn confirm(
    largest: &Largest,
    order: &Again,
    dice: &mut Dice,
    again: &dyn Fn(&Again) -> Result<String, String>,
) -> Result<Confirmed, String> {
    let mut so_far = Confirmed { leaks: largest.t.abs() > SUSPECT, asked: 0 };
    while so_far.leaks && so_far.asked < PROCESSES {
        let order = Again { seed: dice.next(), ..order.clone() };
        so_far.leaks = confirmed(largest, &told(&again(&order)?)?);
        so_far.asked += 1;
    }
    Ok(so_far)
}

/// A series, and what became of its suspicion.
fn watch(
    watched: &Watched<'_>,
    (samples, time): (u64, Duration),
    dice: &mut Dice,
    again: &dyn Fn(&Again) -> Result<String, String>,
) -> Result<(Series, Largest, Confirmed), String> {
    let series = watched.series((samples, time), dice);
    let largest = series.largest();
    let (what, backend) = (watched.subject.what.clone(), watched.subject.backend.to_owned());
    let order = Again { what, backend, samples, time, turns: watched.turns, seed: 0 };
    let confirmed = confirm(&largest, &order, dice, again)?;
    Ok((series, largest, confirmed))
}

/// Turns of the planted loop that make a difference of about one part in `part` between the classes.
fn turns(median: u64, part: u64) -> u32 {
    // Random bytes have four bits set on average. Case 0 is expected to have none or all of them, so that the classes
    // differ by four bits' worth. A turn is a tick or a little more.
    u32::try_from((median / part / 4).max(8)).unwrap_or(u32::MAX)
}

/// Times a subject, and then with a loop planted after it that runs for about 1 % longer under the average secret. If
/// that is not found, there were too few samples to say anything. `again` runs [`series`](super::series) in a process of its own.
#[must_use]
pub fn judge(
    subject: &Subject,
    effort: Effort,
    seed: u64,
    again: &dyn Fn(&Again) -> Result<String, String>,
) -> Row {
    let row = |finding, extent| subject.row(Means::Timing, finding, extent);
    if subject.cases < 3 {
        return row(Finding::NotApplicable("it has too few cases".into()), String::new());
    }
    let mut dice = Dice(seed);
    let sound = Watched::of(subject, 0);
    let (median, time) = sound.median();
    let (asked, limit) = effort.of(time);
    let (series, largest, found) = match watch(&sound, (asked, limit), &mut dice, again) {
        Ok(found) => found,
        Err(why) => return row(Finding::Broken(why), String::new()),
    };
    let samples = series.samples();
    let extent = format!(
        "{samples}{} samples of {:.1} us, |t| {:.1} {}",
        if asked < u64::MAX && samples < asked { format!(" of {asked}") } else { String::new() },
        time.as_secs_f64() * 1e6,
        largest.t.abs(),
        largest.which
    );
    let suspicion = found.dropped();
    let row = |finding, extent| Row { suspicion: suspicion.clone(), ..row(finding, extent) };
    if found.leaks {
        let what = format!(
            "|t| is {:.1} {} and was above {SUSPECT} in {} other processes too: fixed secrets change the time by {:+.3} %",
            largest.t.abs(),
            largest.which,
            found.asked,
            100.0 * largest.relative
        );
        return row(Finding::Leak(what), extent);
    }
    if samples < FEWEST {
        let what = format!("{samples} samples in the time given are too few");
        return row(Finding::NotApplicable(what), extent);
    }
    // A tenth of the effort usually suffices for the plant: what is found with less is found with more.
    let twin = Watched::of(subject, turns(median, 100));
    let mut t = 0.0;
    for effort in [effort.less(), effort] {
        match watch(&twin, effort.of(time), &mut dice, again) {
            Ok((_, _, planted)) if planted.leaks => return row(Finding::Clean, extent),
            Ok((_, planted, _)) => t = planted.t.abs(),
            Err(why) => return row(Finding::Broken(why), extent),
        }
    }
    // Noise is not a fault of the code or of the check, which can then say nothing.
    row(
        Finding::NotApplicable(format!("a loop of 1 % was planted after it and not found: |t| {t:.1}")),
        extent,
    )
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

/// A tier, a function of `plants`, whether its time is the same for all secrets, and the call.
type Timed = (&'static str, &'static str, bool, fn(&[u8]));

/// Functions that timing must judge, each repeated so that it takes a microsecond or so.
const TIMED: [Timed; 5] = [
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

fn bare(&(tier, plant, _, run): &Timed) -> Subject {
    Subject::new(format!("{}{plant}", Again::PLANTED), tier, 256, move |case| {
        // The fixed secret is made by the same instructions as the others.
        let mut dice = Dice(case as u64);
        let mask = [0, 255][case.min(1)];
        let secret = core::array::from_fn(|_| dice.next() as u8 & mask);
        Bare { secret, run }
    })
}

/// The planted leak of that name and tier, if this processor can run it.
pub(super) fn planted(tier: &str, name: &str) -> Option<Subject> {
    let all = TIMED.iter().find(|(of, plant, ..)| (*of, *plant) == (tier, name));
    all.filter(|(of, ..)| plants::runs(of)).map(bare)
}

/// Whether variable time is found, and a sound function passes. `again` as for [`judge`].
#[must_use]
pub fn plants(
    effort: Effort,
    seed: u64,
    again: &dyn Fn(&Again) -> Result<String, String>,
) -> Vec<PlantedRow> {
    let mut dice = Dice(seed);
    let runs = TIMED.iter().filter(|(tier, ..)| plants::runs(tier));
    let judge = |one: &Timed| {
        let &(tier, plant, sound, _) = one;
        let subject = bare(one);
        let samples = effort.samples.min(200_000);
        let row = |right, said| PlantedRow { tier, plant, means: Means::Timing, sound, right, said };
        match watch(&Watched::of(&subject, 0), (samples, effort.time), &mut dice, again) {
            Err(why) => row(false, why),
            Ok((series, Largest { which, t, relative }, found)) => {
                let (t, percent, samples) = (t.abs(), 100.0 * relative, series.samples());
                let said = format!("|t| {t:.1} {which} in {samples} samples, {percent:+.2} %");
                let said = found.dropped().into_iter().fold(said, |said, why| said + "; " + &why);
                row(found.leaks != sound, said)
            }
        }
    };
    runs.map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Which;
    use super::*;

    #[test]
    fn short_operations_have_a_million_samples_and_long_ones_a_minute() {
        let all = Effort::default();
        let (short, long) = (Duration::from_micros(49), Duration::from_micros(50));
        assert_eq!(all.of(short), (1_000_000, Duration::from_secs(600)));
        assert_eq!(all.of(long), (u64::MAX, Duration::from_secs(60)));
        assert_eq!(all.less().of(short), (100_000, Duration::from_secs(60)));
        // A given time is the limit for short operations too.
        let asked = Effort::within(Duration::from_secs(2));
        assert_eq!((asked.of(short).1, asked.of(long).1), (Duration::from_secs(2), Duration::from_secs(2)));
        assert_eq!(asked.less().of(long).1, Duration::from_millis(200));
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

    /// The output of a process in which only [`Which::All`] has a t.
    fn says(t: f64) -> String {
        let line = |which: Which| match which {
            Which::All => format!("all {t:?} 0.1\n"),
            Which::Second => "second 0.0 0.0\n".to_owned(),
            Which::Crop(number) => format!("{number} 0.0 0.0\n"),
        };
        Which::each().map(line).collect()
    }

    /// A suspicion, and processes that give these answers.
    fn asking(t: f64, answers: &[f64]) -> Result<(Confirmed, Vec<u64>), String> {
        let (what, backend) = ("magma/ctr".to_owned(), "avx2".to_owned());
        let order = Again { what, backend, samples: 4000, time: Duration::from_secs(1), turns: 9, seed: 0 };
        let seeds = std::cell::RefCell::new(Vec::new());
        let again = |asked: &Again| {
            assert_eq!(Again { seed: 0, ..asked.clone() }, order);
            seeds.borrow_mut().push(asked.seed);
            answers.get(seeds.borrow().len() - 1).map(|t| says(*t)).ok_or("it died".to_owned())
        };
        let largest = Largest { which: Which::All, t, relative: -0.1 };
        let found = confirm(&largest, &order, &mut Dice(3), &again)?;
        Ok((found, seeds.into_inner()))
    }

    #[test]
    fn a_leak_is_what_every_process_shows() {
        let (found, seeds) = asking(-20.0, &[-20.0, -30.0, -11.0]).expect("all answered");
        assert_eq!(found, Confirmed { leaks: true, asked: 3 });
        assert_eq!(found.dropped(), None);
        assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2], "the same draw again");
        let (found, _) = asking(-8.0, &[-20.0, 8.0]).expect("all answered");
        assert_eq!(found, Confirmed { leaks: false, asked: 2 });
        assert_eq!(
            found.dropped().as_deref(),
            Some("suspicious, and the last of 2 other processes did not show it")
        );
        let (found, _) = asking(-20.0, &[1.0]).expect("all answered");
        assert_eq!(found.dropped().as_deref(), Some("suspicious, and another process did not show it"));
        // A series that is not suspicious costs nothing.
        let (found, seeds) = asking(SUSPECT, &[]).expect("no process was asked");
        assert_eq!((found, seeds.len()), (Confirmed { leaks: false, asked: 0 }, 0));
        assert_eq!(found.dropped(), None);
    }

    #[test]
    fn a_process_that_dies_or_says_nonsense_breaks_the_check() {
        assert_eq!(asking(-20.0, &[-20.0]), Err("it died".into()));
        let largest = Largest { which: Which::All, t: 20.0, relative: 0.1 };
        let (what, backend) = ("magma/ctr".to_owned(), "avx2".to_owned());
        let order = Again { what, backend, samples: 1, time: Duration::ZERO, turns: 0, seed: 0 };
        assert!(confirm(&largest, &order, &mut Dice(3), &|_| Ok("all 20.0".into())).is_err());
    }
}
