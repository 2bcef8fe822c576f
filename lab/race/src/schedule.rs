//! The schedule: when the baseline meets each contestant, and which of the two runs first.
//!
//! A *turn* is four runs of two contestants, A B B A or B A A B. A drift that is linear over the four cancels in either. Any other
//! effect of the place among the four (a slow first run, a drift that bends) favours one contestant in A B B A and the
//! other, equally, in B A A B. So the two orders alternate.
#![forbid(unsafe_code)]

use crate::stats::Rng;

/// One of the two contestants of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The baseline.
    Baseline,
    /// The other contestant.
    Variant,
}

/// The results of a turn's four runs, each side's in the order taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Four<T> {
    /// The baseline's two.
    pub baseline: [T; 2],
    /// The other contestant's two.
    pub variant: [T; 2],
}

/// A meeting of the baseline with one contestant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Which contestant.
    pub contestant: usize,
    /// The side that runs first and last.
    outer: Side,
}

impl Turn {
    /// Runs all four, one after the other.
    ///
    /// # Errors
    /// The first error of `run`, after which nothing more is run.
    pub fn take<T, E>(self, mut run: impl FnMut(Side) -> Result<T, E>) -> Result<Four<T>, E> {
        let inner = match self.outer {
            Side::Baseline => Side::Variant,
            Side::Variant => Side::Baseline,
        };
        let (first, second, third, last) = (run(self.outer)?, run(inner)?, run(inner)?, run(self.outer)?);
        let (outer, inner) = ([first, last], [second, third]);
        Ok(match self.outer {
            Side::Baseline => Four { baseline: outer, variant: inner },
            Side::Variant => Four { baseline: inner, variant: outer },
        })
    }
}

/// Rounds of one turn for each contestant, in an order shuffled anew for each round, so that none always follows the same one.
#[derive(Debug, Clone)]
pub struct Schedule {
    rng: Rng,
    order: Vec<usize>,
    round: usize,
}

impl Schedule {
    /// A schedule for this many contestants. The first order alternates with `launch`, since a launch may have an odd number of
    /// rounds.
    #[must_use]
    pub fn new(seed: u64, contestants: usize, launch: u32) -> Self {
        let rng = Rng::new(seed ^ (u64::from(launch) << 32));
        Self { rng, order: (0..contestants).collect(), round: launch as usize }
    }

    /// The turns of the next round.
    pub fn round(&mut self) -> Vec<Turn> {
        self.rng.shuffle(&mut self.order);
        let round = self.round;
        self.round += 1;
        let turn = |&contestant: &usize| Turn {
            contestant,
            outer: if (round + contestant).is_multiple_of(2) { Side::Baseline } else { Side::Variant },
        };
        self.order.iter().map(turn).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The letters of each turn of a contestant, over `rounds` rounds.
    fn orders(contestant: usize, launch: u32, rounds: usize) -> Vec<String> {
        let mut schedule = Schedule::new(7, 3, launch);
        let mut out = Vec::new();
        for _ in 0..rounds {
            let turns = schedule.round();
            assert_eq!(turns.len(), 3);
            for turn in turns.into_iter().filter(|t| t.contestant == contestant) {
                let mut letters = String::new();
                let four = turn.take(|side| -> Result<usize, ()> {
                    letters.push(if side == Side::Baseline { 'A' } else { 'B' });
                    Ok(letters.len())
                });
                let four = four.expect("nothing fails");
                let places = |letter: char| -> Vec<usize> {
                    letters.char_indices().filter(|(_, c)| *c == letter).map(|(i, _)| i + 1).collect()
                };
                assert_eq!(four.baseline.to_vec(), places('A'));
                assert_eq!(four.variant.to_vec(), places('B'));
                out.push(letters);
            }
        }
        out
    }

    #[test]
    fn every_contestant_has_both_orders_by_turns() {
        assert_eq!(orders(0, 0, 4), ["ABBA", "BAAB", "ABBA", "BAAB"]);
        assert_eq!(orders(1, 0, 4), ["BAAB", "ABBA", "BAAB", "ABBA"]);
        // Launches of one round each have both too.
        assert_eq!((orders(0, 0, 1), orders(0, 1, 1)), (vec!["ABBA".into()], vec!["BAAB".into()]));
    }

    #[test]
    fn nothing_runs_after_an_error() {
        let mut runs = 0;
        let turn = Schedule::new(1, 1, 0).round()[0];
        let failed = turn.take(|_| {
            runs += 1;
            if runs == 2 { Err("no") } else { Ok(()) }
        });
        assert_eq!((failed, runs), (Err("no"), 2));
    }
}
