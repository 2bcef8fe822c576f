//! The cost of a spill and a reload on this processor, for each home: small loops of generated assembly, each timed
//! beside a chain of additions. So the figures are core cycles, independent of the clock.
//!
//! The loops are in [`kernels`]. Each is compared with its calibrator in ABBA order; a figure is the median of the
//! ratios and its spread the quartiles. The cost of a pair beside busy ports is the difference to the same loop without
//! the pair; the table's line of two `nop` gives the cost of two more instructions alone.
#![forbid(unsafe_code)]

pub mod kernels;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod loops;

use core::fmt;

use lanework_cpu::Features;
use serde::Serialize;

use kernels::{Kernel, Kind, Shape, UNITS};

/// A time in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The median.
    pub cycles: f64,
    /// The first quartile.
    pub low: f64,
    /// The third quartile.
    pub high: f64,
}

impl Figure {
    fn map(self, f: impl Fn(f64) -> f64) -> Figure {
        Figure { cycles: f(self.cycles), low: f(self.low), high: f(self.high) }
    }
}

/// The costs of one home.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// A spill and a reload in a dependent chain, without the addition.
    pub dependent: Figure,
    /// An independent spill and reload.
    pub pair: Figure,
    /// A reload alone.
    pub reload: Figure,
    /// A spill alone.
    pub spill: Figure,
    /// The cost of a pair beside loads and stores that keep their ports busy.
    pub beside_memory: Figure,
    /// The cost of a pair beside vector arithmetic that keeps its ports busy.
    pub beside_vectors: Figure,
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The home.
    pub home: String,
    /// Its costs, or the missing features.
    pub costs: Result<Costs, String>,
}

/// The whole table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// A line for each home.
    pub lines: Vec<Line>,
    /// The cost of two `nop` beside busy memory ports and beside busy vector ports: the part of a pair's cost
    /// independent of its home.
    pub nops: [Figure; 2],
    /// The busy loads and stores and the busy vector arithmetic alone, a unit of ten and of eight instructions.
    pub busy: [Figure; 2],
    /// A spill to an MMX register and `emms`.
    pub emms: Figure,
    /// The length of a cycle in nanoseconds, by the calibrator.
    pub cycle_ns: Figure,
}

/// Runs a loop and returns its time in nanoseconds.
pub trait Stopwatch {
    /// Runs `kernel` for `turns`.
    fn time(&mut self, kernel: Kernel, turns: u64) -> f64;
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Comparisons for each figure, of four samples each.
    pub pairs: usize,
    /// The least length of a sample in nanoseconds.
    pub sample_ns: f64,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { pairs: 31, sample_ns: 60_000.0 }
    }
}

/// A clock that returns 0 or less for work that takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenClock;

impl fmt::Display for BrokenClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the clock stood still while a loop ran")
    }
}

impl core::error::Error for BrokenClock {}

struct Measure<'a> {
    watch: &'a mut dyn Stopwatch,
    effort: Effort,
}

impl Measure<'_> {
    /// Turns after which `kernel` has run for a sample's time.
    fn turns(&mut self, kernel: Kernel) -> Result<u64, BrokenClock> {
        let mut turns = 64u64;
        loop {
            let took = self.watch.time(kernel, turns);
            if took >= self.effort.sample_ns {
                return Ok(turns);
            }
            if turns > 1 << 40 || !took.is_finite() {
                return Err(BrokenClock);
            }
            let more = if took > 0.0 { (self.effort.sample_ns / took * 1.1).clamp(2.0, 64.0) } else { 64.0 };
            turns = (turns as f64 * more) as u64;
        }
    }

    /// The time of a unit of `kernel` relative to a unit of `base`: median and quartiles.
    fn ratio(&mut self, base: Kernel, kernel: Kernel) -> Result<Figure, BrokenClock> {
        let (base_turns, turns) = (self.turns(base)?, self.turns(kernel)?);
        let mut ratios = Vec::with_capacity(self.effort.pairs);
        for round in 0..self.effort.pairs.max(1) {
            // A B B A, or B A A B by turns: linear drift cancels.
            let mut took = [0.0; 2];
            for first in if round % 2 == 0 { [0, 1, 1, 0] } else { [1, 0, 0, 1] } {
                let (which, turns) = if first == 0 { (base, base_turns) } else { (kernel, turns) };
                took[first] += self.watch.time(which, turns) / turns as f64;
            }
            if !took.iter().all(|t| *t > 0.0) {
                return Err(BrokenClock);
            }
            ratios.push(took[1] / took[0]);
        }
        ratios.sort_by(f64::total_cmp);
        let at = |part: f64| ratios[((ratios.len() - 1) as f64 * part).round() as usize];
        Ok(Figure { cycles: at(0.5), low: at(0.25), high: at(0.75) })
    }

    /// Cycles of a unit.
    fn cycles(&mut self, kernel: Kernel) -> Result<Figure, BrokenClock> {
        self.ratio(Kernel::Chain, kernel)
    }

    /// The additional cycles of `kernel` over `base`, whose unit takes `cycles`.
    fn more(&mut self, base: Kernel, cycles: Figure, kernel: Kernel) -> Result<Figure, BrokenClock> {
        Ok(self.ratio(base, kernel)?.map(|ratio| cycles.cycles * (ratio - 1.0)))
    }
}

/// Measures every home that a processor with these features has.
///
/// # Errors
/// [`BrokenClock`].
pub fn measure(
    watch: &mut dyn Stopwatch,
    features: Features,
    effort: Effort,
    mut progress: impl FnMut(usize, usize),
) -> Result<Table, BrokenClock> {
    let mut m = Measure { watch, effort };
    let turns = m.turns(Kernel::Chain)?;
    let mut chain: Vec<f64> = (0..effort.pairs.max(1))
        .map(|_| m.watch.time(Kernel::Chain, turns) / (turns * UNITS) as f64)
        .collect();
    chain.sort_by(f64::total_cmp);
    let at = |part: f64| chain[((chain.len() - 1) as f64 * part).round() as usize];
    let cycle_ns = Figure { cycles: at(0.5), low: at(0.25), high: at(0.75) };
    let memory = m.cycles(Kernel::Memory)?;
    let vectors = m.cycles(Kernel::Vectors)?;
    let nops = [
        m.more(Kernel::Memory, memory, Kernel::MemoryAndNops)?,
        m.more(Kernel::Vectors, vectors, Kernel::VectorsAndNops)?,
    ];
    let emms = m.cycles(Kernel::Home(Kind::Mm, Shape::Emms))?;
    let mut lines = Vec::new();
    for (done, kind) in Kind::ALL.into_iter().enumerate() {
        progress(done, Kind::ALL.len());
        let missing: Vec<&str> =
            kind.extensions().iter().filter(|f| !features.contains(**f)).map(|f| f.name()).collect();
        let costs = if features.includes(kind.needs()) {
            Ok(Costs {
                dependent: m.cycles(Kernel::Home(kind, Shape::Dependent))?.map(|c| c - 1.0),
                pair: m.cycles(Kernel::Home(kind, Shape::Pair))?,
                reload: m.cycles(Kernel::Home(kind, Shape::Reload))?,
                spill: m.cycles(Kernel::Home(kind, Shape::Spill))?,
                beside_memory: m.more(Kernel::Memory, memory, Kernel::Home(kind, Shape::BesideMemory))?,
                beside_vectors: m.more(Kernel::Vectors, vectors, Kernel::Home(kind, Shape::BesideVectors))?,
            })
        } else {
            Err(format!("this processor has no {}", missing.join(" ")))
        };
        lines.push(Line { home: kind.name().to_owned(), costs });
    }
    progress(Kind::ALL.len(), Kind::ALL.len());
    Ok(Table { lines, nops, busy: [memory, vectors], emms, cycle_ns })
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["dependent", "pair", "reload", "spill", "beside memory", "beside vectors"];
        write!(f, "{:<26}", "cycles")?;
        heads.iter().try_for_each(|head| write!(f, "{head:>16}"))?;
        writeln!(f)?;
        let say = |x: Figure| format!("{:.2} ±{:.2}", x.cycles + 0.0, ((x.high - x.low) / 2.0).abs());
        for line in &self.lines {
            write!(f, "{:<26}", line.home)?;
            match &line.costs {
                Ok(c) => {
                    for x in [c.dependent, c.pair, c.reload, c.spill, c.beside_memory, c.beside_vectors] {
                        write!(f, "{:>16}", say(x))?;
                    }
                    writeln!(f)?;
                }
                Err(why) => writeln!(f, "    {why}")?,
            }
        }
        write!(f, "{:<26}{:>64}", "two nop instead", "")?;
        self.nops.iter().try_for_each(|x| write!(f, "{:>16}", say(*x)))?;
        writeln!(f)?;
        writeln!(f, "a spill to mm with emms: {}", say(self.emms))?;
        writeln!(
            f,
            "busy alone: ten loads and stores {}, eight vector additions {}; a cycle is {:.3} ns by a chain of additions",
            say(self.busy[0]),
            say(self.busy[1]),
            self.cycle_ns.cycles
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanework_cpu::Feature;

    /// A machine whose clock rate drifts, on which every loop takes planted cycles.
    struct Planted {
        rate: f64,
        still: bool,
    }

    fn planted(kernel: Kernel) -> f64 {
        match kernel {
            Kernel::Chain => 1.0,
            Kernel::Memory => 4.0,
            Kernel::MemoryAndNops => 4.25,
            Kernel::Vectors | Kernel::VectorsAndNops => 2.0,
            Kernel::Home(Kind::Mm, Shape::Emms) => 1.5,
            Kernel::Home(kind, shape) => match shape {
                Shape::Dependent => 8.0 + kind as u8 as f64,
                Shape::Pair => 1.0,
                Shape::Reload => 0.5,
                Shape::Spill => 0.75,
                Shape::BesideMemory => 4.5,
                Shape::BesideVectors => 3.0,
                Shape::Emms => 9.0,
            },
        }
    }

    impl Stopwatch for Planted {
        fn time(&mut self, kernel: Kernel, turns: u64) -> f64 {
            if self.still {
                return 0.0;
            }
            // Every sample a little slower than the one before.
            self.rate *= 1.0001;
            planted(kernel) * (turns * UNITS) as f64 * self.rate
        }
    }

    #[test]
    fn planted_costs_are_found_in_spite_of_drift() {
        let mut watch = Planted { rate: 0.3, still: false };
        let all = Features::of(Feature::ALL);
        let table =
            measure(&mut watch, all, Effort { pairs: 8, sample_ns: 1e4 }, |_, _| ()).expect("a table");
        let near = |figure: Figure, want: f64| {
            assert!((figure.cycles - want).abs() < 0.002, "{figure:?} is not {want}");
        };
        for (line, kind) in table.lines.iter().zip(Kind::ALL) {
            let c = line.costs.as_ref().expect("every home is there");
            near(c.dependent, 7.0 + kind as u8 as f64);
            near(c.pair, 1.0);
            near(c.reload, 0.5);
            near(c.spill, 0.75);
            near(c.beside_memory, 0.5);
            near(c.beside_vectors, 1.0);
        }
        near(table.nops[0], 0.25);
        near(table.nops[1], 0.0);
        near(table.emms, 1.5);
        let said = table.to_string();
        assert!(said.contains("xmm17") && said.contains("two nop instead"), "{said}");
    }

    #[test]
    fn missing_extensions_are_named_and_not_run() {
        struct Plain(Planted);
        impl Stopwatch for Plain {
            fn time(&mut self, kernel: Kernel, turns: u64) -> f64 {
                if let Kernel::Home(kind, _) = kernel {
                    assert_eq!(kind.needs(), Features::NONE, "{kernel:?} must not run");
                }
                self.0.time(kernel, turns)
            }
        }
        let mut watch = Plain(Planted { rate: 1.0, still: false });
        let table = measure(&mut watch, Features::NONE, Effort { pairs: 3, sample_ns: 1e4 }, |_, _| ())
            .expect("a table");
        let missing: Vec<&Line> = table.lines.iter().filter(|line| line.costs.is_err()).collect();
        assert_eq!(missing.len(), 5);
        assert!(table.to_string().contains("this processor has no avx"), "{table}");
    }

    #[test]
    fn a_clock_that_stands_still_is_an_error() {
        let mut watch = Planted { rate: 1.0, still: true };
        assert_eq!(measure(&mut watch, Features::NONE, Effort::default(), |_, _| ()), Err(BrokenClock));
    }
}
