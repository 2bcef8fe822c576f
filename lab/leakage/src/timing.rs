//! Whether time depends on secrets: fixed ones against random ones, by Welch's t-test.
//!
//! The method is that of O. Reparaz, J. Balasch and I. Verbauwhede, "Dude, is my code constant time?" (2016). The operation is
//! timed under one fixed secret and under random ones, in random order. Besides all times, each of a hundred crops is
//! tested, which drop the times above a quantile, since interruptions hide small differences in the bulk. So is the second
//! moment, for code whose spread depends on its secret. The quantiles come from a first batch, which is not tested.
//!
//! A t above [`SUSPECT`] is suspicious but not proof: with a hundred tests for each of many operations, some pass it by chance or
//! because of something else on the machine. A million samples also show differences of a tick that are there in one process and
//! not in the next; why is not known. A dependence on data is there in each. So a suspicious series is repeated, with new samples,
//! in [`PROCESSES`] processes of their own. A leak shows in the *same* test with the same sign in all of them, or with a |t| above
//! 10 in any test of each, with either sign.
#![forbid(unsafe_code)]

mod again;
mod measure;

pub use again::{Again, series, told};
pub use measure::{Effort, judge, plants};

/// What |t| must pass: a chance of 7 in a million for one test of sound code.
pub const SUSPECT: f64 = 4.5;

/// Processes that must confirm a suspicion, one after the other: the first that does not ends it.
pub const PROCESSES: usize = 3;

/// Beyond this in both series any two tests confirm each other, whatever their signs.
const CERTAIN: f64 = 10.0;

/// Samples of each class below which a test says nothing.
const FEWEST: u64 = 100;

/// The number of crops.
const CROPS: usize = 100;

/// Count, mean and sum of squared deviations, updated sample by sample (B. P. Welford, 1962).
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn push(&mut self, x: f64) {
        self.count += 1;
        let delta = x - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (x - self.mean);
    }

    fn variance(&self) -> f64 {
        self.squares / (self.count as f64 - 1.0)
    }
}

/// Welch's test of two classes: [fixed, random].
#[derive(Clone, Copy, Debug, Default)]
struct Test([Moments; 2]);

impl Test {
    fn push(&mut self, random: bool, x: f64) {
        self.0[usize::from(random)].push(x);
    }

    /// (mean of the fixed - mean of the random) / standard error; 0 where there are too few samples.
    fn t(&self) -> f64 {
        let [fixed, random] = &self.0;
        if fixed.count < FEWEST || random.count < FEWEST {
            return 0.0;
        }
        let error = (fixed.variance() / fixed.count as f64 + random.variance() / random.count as f64).sqrt();
        let difference = fixed.mean - random.mean;
        match (error > 0.0, difference == 0.0) {
            (true, _) => difference / error,
            (false, true) => 0.0,
            // Two constants that differ.
            (false, false) => difference.signum() * f64::INFINITY,
        }
    }
}

/// Which of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All times.
    All,
    /// Times up to the crop of this number.
    Crop(usize),
    /// Squared deviations from the class's mean.
    Second,
}

impl Which {
    /// All of them.
    fn each() -> impl Iterator<Item = Which> {
        [Which::All, Which::Second].into_iter().chain((0..CROPS).map(Which::Crop))
    }
}

impl core::fmt::Display for Which {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Which::All => f.write_str("of all times"),
            Which::Crop(number) => write!(f, "of the fastest {:.1} %", 100.0 * quantile_of(*number)),
            Which::Second => f.write_str("of the spread"),
        }
    }
}

/// The largest t of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Largest {
    /// The test.
    pub which: Which,
    /// Its t: below 0 where the fixed secret is the faster.
    pub t: f64,
    /// The difference of the classes in this test, as a fraction of the random class's mean.
    pub relative: f64,
}

/// Crop `number` keeps this part of the times: many crops among the slow ones, few among the fast.
fn quantile_of(number: usize) -> f64 {
    1.0 - 0.5f64.powf(10.0 * (number as f64 + 1.0) / CROPS as f64)
}

/// All the tests of one series of times.
#[derive(Clone, Debug)]
struct Series {
    /// The samples, until the crops are known.
    first: Vec<f64>,
    first_batch: usize,
    crops: Vec<f64>,
    all: Test,
    cropped: Vec<Test>,
    second: Test,
    samples: u64,
}

impl Series {
    /// A series whose first `first_batch` samples set the crops.
    fn new(first_batch: usize) -> Series {
        Series {
            first: Vec::with_capacity(first_batch),
            first_batch,
            crops: Vec::new(),
            all: Test::default(),
            cropped: vec![Test::default(); CROPS],
            second: Test::default(),
            samples: 0,
        }
    }

    /// Takes a sample of the random or the fixed class.
    fn push(&mut self, random: bool, time: f64) {
        if self.crops.is_empty() {
            self.first.push(time);
            if self.first.len() >= self.first_batch {
                self.first.sort_by(f64::total_cmp);
                let last = self.first.len() - 1;
                let at = |number| self.first[(quantile_of(number) * last as f64) as usize];
                self.crops = (0..CROPS).map(at).collect();
            }
            return;
        }
        self.samples += 1;
        self.all.push(random, time);
        for (crop, test) in self.crops.iter().zip(&mut self.cropped) {
            if time < *crop {
                test.push(random, time);
            }
        }
        // The means have settled well before this counts for much.
        let class = &self.all.0[usize::from(random)];
        if class.count > FEWEST {
            let deviation = time - class.mean;
            self.second.push(random, deviation * deviation);
        }
    }

    /// Samples tested.
    fn samples(&self) -> u64 {
        self.samples
    }

    fn test(&self, which: Which) -> &Test {
        match which {
            Which::All => &self.all,
            Which::Crop(number) => &self.cropped[number],
            Which::Second => &self.second,
        }
    }

    /// The result of one test.
    fn of(&self, which: Which) -> Largest {
        let test = self.test(which);
        let [fixed, random] = &test.0;
        let relative = if random.mean == 0.0 { 0.0 } else { (fixed.mean - random.mean) / random.mean };
        Largest { which, t: test.t(), relative }
    }

    /// The result of each test, [`Which::All`] first.
    fn tests(&self) -> Vec<Largest> {
        Which::each().map(|which| self.of(which)).collect()
    }

    /// The test with the largest |t|.
    fn largest(&self) -> Largest {
        largest(&self.tests())
    }
}

/// The test with the largest |t|; a t of 0 where there is none.
fn largest(tests: &[Largest]) -> Largest {
    let none = Largest { which: Which::All, t: 0.0, relative: 0.0 };
    tests.iter().fold(none, |most, one| if one.t.abs() > most.t.abs() { *one } else { most })
}

/// Whether the tests of a second series confirm a suspicion of a first one.
fn confirmed(first: &Largest, second: &[Largest]) -> bool {
    let same = second.iter().find(|test| test.which == first.which).is_some_and(|again| {
        first.t.abs().min(again.t.abs()) > SUSPECT && again.t.signum() == first.t.signum()
    });
    // In the next series a crop lies elsewhere. Between two clusters of times it cuts off more of the slower class, whose rest is
    // then the faster. For differences as large as these the sign says nothing.
    same || first.t.abs().min(largest(second).t.abs()) > CERTAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform numbers: SplitMix64 (Steele, Lea and Flood, 2014).
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ z >> 31) as f64 / 18_446_744_073_709_551_616.0
        }

        /// Nearly normal, mean 0 and deviation 1.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.next()).sum::<f64>() - 6.0
        }
    }

    /// Times around 1000 with deviation 10 and, once in 20, an interruption of up to 5000; `change` alters those of a class.
    fn series(seed: u64, samples: usize, change: impl Fn(bool, f64) -> f64) -> Series {
        let mut numbers = Numbers(seed);
        let mut series = Series::new(5000);
        for _ in 0..samples {
            let random = numbers.next() < 0.5;
            let time = change(random, 1000.0 + 10.0 * numbers.normal());
            let interrupted = if numbers.next() < 0.05 { 5000.0 * numbers.next() } else { 0.0 };
            series.push(random, time + interrupted);
        }
        series
    }

    #[test]
    fn equal_classes_are_not_confirmed_to_differ() {
        let mut suspicious = 0;
        for seed in 0..20 {
            let one = series(2 * seed, 60_000, |_, t| t);
            let largest = one.largest();
            suspicious += usize::from(largest.t.abs() > SUSPECT);
            assert!(
                !confirmed(&largest, &series(2 * seed + 1, 60_000, |_, t| t).tests()),
                "seed {seed}: {largest:?}"
            );
        }
        assert!(suspicious <= 1, "{suspicious} of 20 sound series look suspicious");
    }

    #[test]
    fn a_small_difference_is_found_below_interruptions_that_hide_it() {
        // 0.1 % of the time; the interruptions' deviation is hundreds of times as large.
        let leaky = |random: bool, t: f64| if random { t + 1.0 } else { t };
        let (one, two) = (series(1, 100_000, leaky), series(2, 100_000, leaky));
        let largest = one.largest();
        assert!(largest.t < -SUSPECT && matches!(largest.which, Which::Crop(_)), "{largest:?}");
        assert!(confirmed(&largest, &two.tests()));
        assert!(one.of(Which::All).t.abs() < SUSPECT, "found without crops: the series is too easy");
        assert_eq!(one.samples(), 95_000);
    }

    #[test]
    fn a_difference_in_spread_alone_is_found() {
        let leaky = |random: bool, t: f64| if random { 1000.0 + 1.5 * (t - 1000.0) } else { t };
        let mut numbers = Numbers(7);
        let mut one = Series::new(1000);
        for _ in 0..50_000 {
            let random = numbers.next() < 0.5;
            one.push(random, leaky(random, 1000.0 + 10.0 * numbers.normal()));
        }
        assert!(one.of(Which::All).t.abs() < SUSPECT);
        assert!(one.of(Which::Second).t < -SUSPECT, "{:?}", one.of(Which::Second));
    }

    #[test]
    fn what_shows_once_only_is_no_leak() {
        let leaky = |random: bool, t: f64| if random { t + 1.0 } else { t };
        let largest = series(1, 60_000, leaky).largest();
        assert!(largest.t.abs() > SUSPECT);
        assert!(!confirmed(&largest, &series(2, 60_000, |_, t| t).tests()));
        // Nor a small difference with the opposite sign.
        let largest = series(1, 25_000, leaky).largest();
        assert!((SUSPECT..CERTAIN).contains(&largest.t.abs()), "{largest:?}");
        let turned = series(2, 25_000, |random, t| leaky(!random, t));
        assert!(turned.largest().t > SUSPECT && !confirmed(&largest, &turned.tests()));
    }

    /// A leak of 1 % in times of two clusters: a crop into the slower cluster turns the sign.
    #[test]
    fn a_crop_between_clusters_does_not_hide_a_leak() {
        let clusters = |seed: u64, slow: f64| {
            let mut numbers = Numbers(seed);
            let mut series = Series::new(2000);
            for _ in 0..40_000 {
                let random = numbers.next() < 0.5;
                let time = if numbers.next() < slow { 3000.0 } else { 1000.0 } + 3.0 * numbers.normal();
                series.push(random, if random { 1.01 * time } else { time });
            }
            series
        };
        let (one, two) = (clusters(1, 0.05), clusters(2, 0.5));
        let turned =
            one.tests().into_iter().filter(|test| test.t > CERTAIN).max_by(|a, b| a.t.total_cmp(&b.t));
        let turned = turned.expect("a crop where the fixed class looks slower");
        assert!(two.largest().t < -CERTAIN, "{:?}", two.largest());
        assert!(confirmed(&turned, &two.tests()) && confirmed(&one.largest(), &two.tests()));
    }

    #[test]
    fn too_few_samples_say_nothing() {
        let mut one = Series::new(10);
        for i in 0..100 {
            one.push(i % 2 == 0, if i % 2 == 0 { 1.0 } else { 2.0 });
        }
        assert!(one.largest().t == 0.0, "{:?}", one.largest());
    }

    #[test]
    fn constants_that_differ_differ_infinitely() {
        let mut one = Series::new(10);
        for i in 0..1000 {
            one.push(i % 2 == 0, if i % 2 == 0 { 1.0 } else { 2.0 });
        }
        assert!(one.of(Which::All).t == f64::INFINITY);
    }
}
