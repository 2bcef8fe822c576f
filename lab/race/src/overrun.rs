//! Launches that took longer than their budget, counted and reported in one line.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

use crate::table::time;

/// A launch that took longer than its budget by more than half.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrun {
    /// What it raced.
    pub subject: String,
    /// How long it took, in nanoseconds.
    pub took_ns: u64,
    /// Its budget, in nanoseconds.
    pub budget_ns: u64,
    /// The pairs that it must take, however long they take.
    pub pairs: usize,
}

impl Overrun {
    /// By what factor it overran its budget.
    fn factor(&self) -> f64 {
        self.took_ns as f64 / self.budget_ns.max(1) as f64
    }
}

/// The overruns of many launches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overruns {
    launches: usize,
    over: usize,
    worst: Option<Overrun>,
}

impl Overruns {
    /// Counts launches, each with its overrun if it had one.
    #[must_use]
    pub fn of<'a>(launches: impl Iterator<Item = Option<&'a Overrun>>) -> Self {
        launches.fold(Self::default(), |mut all, launch| {
            all.add(&Self { launches: 1, over: usize::from(launch.is_some()), worst: launch.cloned() });
            all
        })
    }

    /// Adds more of them.
    pub fn add(&mut self, more: &Self) {
        self.launches += more.launches;
        self.over += more.over;
        let worse = |new: &Overrun| self.worst.as_ref().is_none_or(|known| new.factor() > known.factor());
        if let Some(new) = more.worst.as_ref().filter(|new| worse(new)) {
            self.worst = Some(new.clone());
        }
    }

    /// All of them in one remark; `None` if there are none.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        let worst = self.worst.as_ref()?;
        let [took, had] = [worst.took_ns, worst.budget_ns].map(|ns| time(ns as f64));
        Some(format!(
            "{} of {} launches outran their budget by more than half to take the pairs that they must; the worst took {took} instead \
             of {had} for {} pairs of {}",
            self.over, self.launches, worst.pairs, worst.subject
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_launches_are_one_line_with_the_worst_of_them() {
        let over = |subject: &str, took_ns| Overrun {
            subject: subject.into(),
            took_ns,
            budget_ns: 1_000_000_000,
            pairs: 2,
        };
        let (slow, slower) = (over("a", 2_000_000_000), over("b", 3_100_000_000));
        let mut all = Overruns::of([Some(&slow), None, Some(&slower)].into_iter());
        all.add(&Overruns::of([None, Some(&slow)].into_iter()));
        let told = all.told().expect("some did");
        assert!(
            told.starts_with("3 of 5 launches")
                && told.ends_with("3.10 s instead of 1.00 s for 2 pairs of b"),
            "{told}"
        );
        assert_eq!(Overruns::of([None, None].into_iter()).told(), None);
    }
}
