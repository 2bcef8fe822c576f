//! What the statistics promise, checked on synthetic series whose truth is known.

mod common;

use common::normal;
use lanework_race::pairing::Pair;
use lanework_race::stats::{Rng, interval};
use lanework_race::verdict::{Rules, Verdict, judge, noise_floor};

/// How a synthetic machine misbehaves.
#[derive(Clone, Copy)]
struct Noise {
    /// Standard deviation of the logarithm of each sample.
    each: f64,
    /// Standard deviation of a launch's own lasting shift of the ratio (memory layout).
    launch: f64,
    /// Relative drift over a launch.
    drift: f64,
    /// Share of samples with a delay, exponentially distributed, of 20 % on average.
    outliers: f64,
    /// Correlation of neighbouring pairs' ratios.
    sticky: f64,
}

const PLAIN: Noise = Noise { each: 0.006, launch: 0.0, drift: 0.03, outliers: 0.03, sticky: 0.0 };
const LAYOUT: Noise = Noise { launch: 0.003, ..PLAIN };
const STICKY: Noise = Noise { sticky: 0.5, ..PLAIN };

/// Log ratios of `launches` × `pairs` pairs whose true ratio is `truth`.
fn series(rng: &mut Rng, truth: f64, launches: usize, pairs: usize, n: Noise) -> Vec<Vec<f64>> {
    (0..launches)
        .map(|_| {
            let shift = n.launch * normal(rng);
            let mut slow = 0.0;
            (0..pairs)
                .map(|i| {
                    slow = n.sticky * slow + (1.0 - n.sticky * n.sticky).sqrt() * n.each * normal(rng);
                    let lasting = shift + if n.sticky > 0.0 { slow } else { 0.0 };
                    let mut at = |place: usize, base: f64| {
                        let drift = 1.0 + n.drift * (i * 4 + place) as f64 / (pairs * 4) as f64;
                        let mut t = base * drift * (n.each * normal(rng)).exp();
                        if rng.unit() < n.outliers {
                            t *= 1.0 - 0.2 * (1.0 - rng.unit()).ln();
                        }
                        t
                    };
                    let variant = 1000.0 / truth * lasting.exp();
                    let [a, b, c, d] = [at(0, 1000.0), at(1, variant), at(2, variant), at(3, 1000.0)];
                    Pair { baseline: [a, d], variant: [b, c] }.log_ratio()
                })
                .collect()
        })
        .collect()
}

fn verdict(rng: &mut Rng, truth: f64, launches: usize, pairs: usize, n: Noise) -> Verdict {
    let rules = Rules::default();
    let seed = rng.next_u64();
    let mut get = |truth, seed| {
        let logs = series(rng, truth, launches, pairs, n);
        interval(&logs, rules.alpha, 400, seed).expect("enough pairs").exp()
    };
    let control = get(1.0, seed);
    let ratio = get(truth, seed ^ 1);
    judge(ratio, noise_floor(control), &rules).verdict
}

/// The count that a rate of `rate` exceeds in `n` tries only once in ten thousand times.
fn at_most(n: f64, rate: f64) -> usize {
    (n * rate + 3.72 * (n * rate * (1.0 - rate)).sqrt()).floor() as usize
}

#[test]
fn races_of_equals_give_false_verdicts_no_oftener_than_promised() {
    let races = 2000;
    for (launches, pairs, noise) in
        [(1, 40, PLAIN), (1, 12, PLAIN), (5, 12, LAYOUT), (3, 12, LAYOUT), (2, 8, LAYOUT), (1, 60, STICKY)]
    {
        let mut rng = Rng::new(42 + launches as u64 * 100 + pairs as u64);
        let wrong = (0..races)
            .filter(|_| {
                matches!(verdict(&mut rng, 1.0, launches, pairs, noise), Verdict::Faster | Verdict::Slower)
            })
            .count();
        assert!(
            wrong <= at_most(races as f64, 0.01),
            "{wrong} of {races} races of equals ({launches} launches × {pairs} pairs) had a winner"
        );
    }
}

#[test]
fn half_a_percent_is_found() {
    let mut rng = Rng::new(8);
    let races = 200;
    for (truth, right) in [(1.005, Verdict::Faster), (1.0 / 1.005, Verdict::Slower)] {
        let found = (0..races).filter(|_| verdict(&mut rng, truth, 5, 100, PLAIN) == right).count();
        assert!(found * 100 >= races * 95, "{right} found in {found} of {races}");
    }
}

#[test]
fn equals_are_called_the_same_when_the_data_allow() {
    let mut rng = Rng::new(9);
    let races = 200;
    let same = (0..races).filter(|_| verdict(&mut rng, 1.0, 5, 100, PLAIN) == Verdict::Same).count();
    assert!(same * 100 >= races * 95, "{same} of {races}");
    // And a real difference of three times the margin never is.
    let same = (0..races).filter(|_| verdict(&mut rng, 1.015, 5, 100, PLAIN) == Verdict::Same).count();
    assert_eq!(same, 0);
}

#[test]
fn intervals_cover_the_truth_as_often_as_promised() {
    let trials = 2000;
    for alpha in [0.01, 0.05] {
        for (launches, pairs, noise) in [
            (1, 10, PLAIN),
            (1, 100, PLAIN),
            (3, 10, LAYOUT),
            (5, 20, LAYOUT),
            (10, 20, LAYOUT),
            (2, 10, LAYOUT),
        ] {
            let mut rng = Rng::new(launches as u64 * 1000 + pairs as u64);
            let missed = (0..trials)
                .filter(|_| {
                    let logs = series(&mut rng, 1.03, launches, pairs, noise);
                    let i = interval(&logs, alpha, 400, rng.next_u64()).expect("enough").exp();
                    !(i.low <= 1.03 && 1.03 <= i.high)
                })
                .count();
            assert!(
                missed <= at_most(f64::from(trials), alpha),
                "α = {alpha}, {launches} × {pairs}: missed {missed} of {trials}"
            );
        }
    }
}

/// The checker must be able to fail: an interval at a fivefold error rate does not pass as one at 1 %.
#[test]
fn an_interval_that_is_too_narrow_would_be_caught() {
    let mut rng = Rng::new(77);
    let trials = 2000;
    let missed = (0..trials)
        .filter(|_| {
            let logs = series(&mut rng, 1.0, 1, 40, PLAIN);
            let i = interval(&logs, 0.10, 400, rng.next_u64()).expect("enough");
            !(i.low <= 0.0 && 0.0 <= i.high)
        })
        .count();
    assert!(missed > at_most(f64::from(trials), 0.01), "{missed}");
}
