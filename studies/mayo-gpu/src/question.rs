//! The published report's figures, what follows from them, and what to measure.
#![forbid(unsafe_code)]

use crate::subjects::sizes;
use lanework_mayo::{Params, Round};
use lanework_race::study::Study;
use lanework_suite::mayo::Operation;
use lanework_suite::mayo::threads::Shape;
use serde::Deserialize;

/// The sets, in the order of the report's table.
pub(super) const SETS: [&str; 4] = ["mayo1", "mayo2", "mayo3", "mayo5"];

/// `study.toml` behind its question.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Plan {
    pub(super) original: Original,
    pub(super) quick: Sweep,
    pub(super) full: Sweep,
    pub(super) emulated: Sweep,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Original {
    pub(super) title: String,
    pub(super) cpu: String,
    pub(super) gpu: String,
    pub(super) ghz: f64,
    pub(super) grid: u32,
    pub(super) block: u32,
    pub(super) table: Table,
    pub(super) profile: Vec<Profile>,
}

/// One figure for each of [`SETS`].
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Table {
    pub(super) cpu: [f64; 4],
    pub(super) gpu: [f64; 4],
    pub(super) gain_percent: [f64; 4],
    pub(super) latency_ms: [f64; 4],
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Profile {
    pub(super) operation: String,
    pub(super) whole: u64,
    pub(super) parts: Vec<Part>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) phase: String,
    pub(super) cycles: u64,
}

/// What one form of the study runs.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sweep {
    pub(super) sets: Vec<String>,
    pub(super) operations: Vec<String>,
    pub(super) batches: Vec<usize>,
    pub(super) seconds: f64,
    pub(super) launches: u32,
    pub(super) joules_seconds: f64,
    /// Blocks, and threads of each, of the thread variant, beside the report's own; how often each is run.
    pub(super) thread_launches: Vec<Shape>,
    pub(super) thread_turns: usize,
    /// Sets, with their rounds, that go through compute-sanitizer where it is installed.
    pub(super) sanitized: Vec<String>,
}

impl Plan {
    pub(super) fn of(study: &Study) -> Result<Plan, String> {
        let wrong = |e: String| format!("{}/study.toml: {e}", study.name);
        let plan: Plan =
            toml::Value::Table(study.table.clone()).try_into().map_err(|e| wrong(format!("{e}")))?;
        for sweep in [&plan.quick, &plan.full, &plan.emulated] {
            sweep.params().map_err(wrong)?;
            sweep.operations().map_err(wrong)?;
            sweep.sanitized().map_err(wrong)?;
            if sweep.batches.is_empty() || !sweep.batches.is_sorted() {
                return Err(wrong("batches must be a rising list".to_owned()));
            }
            if let Some(stranger) = sweep.batches.iter().find(|b| !sizes().any(|n| n == **b)) {
                return Err(wrong(format!("no batch of {stranger}: batches are powers of two")));
            }
            if let Some((blocks, threads)) = sweep
                .thread_launches
                .iter()
                .find(|(b, t)| !(1..=65_535).contains(b) || !(1..=1024).contains(t))
            {
                return Err(wrong(format!("{blocks} blocks of {threads} threads are not a launch")));
            }
        }
        Ok(plan)
    }
}

impl Sweep {
    /// The sets of round 3.
    pub(super) fn params(&self) -> Result<Vec<&'static Params>, String> {
        let of = |name: &String| {
            Params::all()
                .find(|p| p.round() == Round::DEFAULT && p.path().ends_with(&format!("/{name}")))
                .ok_or_else(|| format!("there is no set '{name}'"))
        };
        self.sets.iter().map(of).collect()
    }

    /// The sets for compute-sanitizer.
    pub(super) fn sanitized(&self) -> Result<Vec<&'static Params>, String> {
        let of = |name: &String| {
            Params::all().find(|p| p.path() == *name).ok_or_else(|| format!("there is no set '{name}'"))
        };
        self.sanitized.iter().map(of).collect()
    }

    pub(super) fn operations(&self) -> Result<Vec<Operation>, String> {
        let of = |name: &String| {
            Operation::ALL
                .into_iter()
                .find(|o| o.name() == name && *o != Operation::ExpandPublic)
                .ok_or_else(|| format!("there are no races of '{name}'"))
        };
        self.operations.iter().map(of).collect()
    }

    /// Launches of the thread variant, the report's first, each once.
    pub(super) fn shapes(&self, published: Shape) -> Vec<Shape> {
        let others = self.thread_launches.iter().copied().filter(|shape| *shape != published);
        std::iter::once(published).chain(others).collect()
    }

    pub(super) fn largest(&self) -> usize {
        self.batches.last().copied().unwrap_or(1)
    }
}

impl Original {
    /// Operations in flight on its GPU, by its own throughput and latency, for each set.
    pub(super) fn in_flight(&self) -> [f64; 4] {
        std::array::from_fn(|i| self.table.gpu[i] * self.table.latency_ms[i] / 1e3)
    }

    /// Its launch.
    pub(super) fn shape(&self) -> Shape {
        (self.grid, self.block)
    }

    /// Threads of its launch.
    pub(super) fn launched(&self) -> u32 {
        self.grid * self.block
    }

    /// MAYO-1 per second on one thread, from the cycles of its profile alone.
    pub(super) fn computed_cpu(&self) -> f64 {
        let cycles: u64 = self.profile.iter().map(|p| p.whole).sum();
        self.ghz * 1e9 / cycles as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ENTRY;

    fn study() -> Study {
        Study::from_toml(ENTRY.name, ENTRY.toml).expect("a study")
    }

    #[test]
    fn the_reports_figures_hang_together() {
        let plan = Plan::of(&study()).expect("a plan");
        let o = &plan.original;
        // Throughput times latency is one number in all four columns, and the CPU's row follows from the profile.
        assert!(o.in_flight().iter().all(|n| (n - 64.0).abs() < 0.05), "{:?}", o.in_flight());
        assert_eq!(o.launched(), 16);
        assert_eq!(o.shape(), lanework_suite::mayo::threads::PUBLISHED);
        assert!((o.computed_cpu() - o.table.cpu[0]).abs() < 0.01, "{}", o.computed_cpu());
        for i in 0..4 {
            let gain = (o.table.gpu[i] / o.table.cpu[i] - 1.0) * 100.0;
            assert!((gain - o.table.gain_percent[i]).abs() < 0.02, "{gain}");
        }
    }

    #[test]
    fn what_cannot_be_raced_is_refused() {
        for (from, to, why) in [
            ("batches = [1, 2]", "batches = [1, 3]", "powers of two"),
            ("batches = [1, 2]", "batches = [2, 1]", "rising"),
            ("thread_launches = [[2, 2]]", "thread_launches = [[2, 1025]]", "2 blocks of 1025"),
            ("thread_launches = [[2, 2]]", "thread_launches = [[0, 1]]", "0 blocks of 1"),
            ("sets = [\"mayo2\"]", "sets = [\"mayo4\"]", "mayo4"),
            (
                "\"verify-expanded\"]\nbatches = [1, 2]",
                "\"expand-public\"]\nbatches = [1, 2]",
                "expand-public",
            ),
        ] {
            assert!(ENTRY.toml.contains(from), "{from}");
            let study = Study::from_toml("mayo-gpu", &ENTRY.toml.replace(from, to)).expect("a study");
            let error = Plan::of(&study).expect_err(to);
            assert!(error.contains(why), "{error}");
        }
    }
}
