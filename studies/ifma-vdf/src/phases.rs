//! The account behind the second half of the study `ifma-vdf`: cycles of a squaring, phase by phase, without IFMA and with it.
//!
//! A backend's code runs on forms of one chain up to the end of a phase, and up to the end of the next; a phase is the difference. Every
//! form is waited for, so that the sum is a little more than a squaring takes in the chain, where the next one begins before all of
//! this one has ended.

mod account;

use std::hint::black_box;

use crate::probes::PROBES;
use lanework_cpu::Cpu;
use lanework_race::clock::{Clock, Monotonic};
use lanework_race::stats::median;
use lanework_vdf::Engine;
use lanework_vdf::internals::known;
use lanework_vdf::{Discriminant, Form};

use super::synthetic::Fault;
pub(crate) use account::{Account, Phase};

/// Forms of a sample.
const FORMS: usize = 128;
/// Squarings before the first of them: the generator's forms are short.
const SKIPPED: u64 = 1000;
/// Turns of 64 additions of the chain that counts cycles.
const CHAIN: u64 = 2000;

/// A phase's name in tables.
#[must_use]
pub(crate) const fn title(phase: Phase) -> &'static str {
    match phase {
        Phase::Inverse => "inverse of a modulo b",
        Phase::Multiples => "m and k: two exact quotients",
        Phase::Partial => "partial GCD with its columns",
        Phase::Forms => "products and reduction",
    }
}

/// One backend's cycles.
#[derive(Clone, Debug)]
pub(crate) struct Spent {
    /// Its name.
    pub backend: String,
    /// Cycles of the core for each phase alone, in the phases' order: medians.
    pub cycles: [f64; 4],
}

impl Spent {
    /// All phases.
    #[must_use]
    pub(crate) fn together(&self) -> f64 {
        self.cycles.iter().sum()
    }
}

/// Where each backend that can run spends its cycles, from `rounds` samples of each phase, in turns. Nothing is timed before
/// every phase agrees with the chain.
///
/// # Errors
/// [`Fault::Unavailable`] without a time-stamp counter or the chain that counts cycles; [`Fault::Wrong`] where a phase is wrong.
pub(crate) fn measure(cpu: &Cpu, rounds: usize) -> Result<Vec<Spent>, Fault> {
    let probes = PROBES.get(cpu)?;
    let clock = Monotonic::new();
    if clock.ticks().is_none() {
        return Err(Fault::Unavailable("there is no time-stamp counter".to_owned()));
    }
    let wrong = |e: &dyn std::fmt::Display| Fault::Wrong(format!("phases of a squaring: {e}"));
    let d = Discriminant::new(&known::number(known::SQUARINGS_D)).map_err(|e| wrong(&e))?;
    let x = Form::generator(&d).ok_or_else(|| wrong(&"there is no generator"))?;
    let mut accounts = Vec::new();
    for engine in Engine::available(cpu) {
        let Some(account) = Account::new(engine, &d, &x, SKIPPED, FORMS).map_err(|e| wrong(&e))? else {
            continue;
        };
        if account.forms() != FORMS || !account.agrees() {
            return Err(wrong(&format!("{} does not end in the chain's squares", engine.name())));
        }
        accounts.push((engine.name(), account));
    }
    let ticks = || clock.ticks().unwrap_or(0);
    let timed = |f: &mut dyn FnMut()| {
        let start = ticks();
        f();
        ticks().saturating_sub(start) as f64
    };
    let mut chain = Vec::with_capacity(rounds);
    let mut samples = vec![[const { Vec::new() }; 4]; accounts.len()];
    for round in 0..=rounds {
        let cycles = timed(&mut || probes.cycles(CHAIN));
        // The first round warms up.
        if round > 0 {
            chain.push(cycles);
        }
        for ((_, account), samples) in accounts.iter().zip(&mut samples) {
            for (phase, samples) in Phase::ALL.into_iter().zip(samples) {
                let took = timed(&mut || {
                    black_box(account.run(phase));
                });
                if round > 0 {
                    samples.push(took);
                }
            }
        }
    }
    let per_cycle = median(&chain).unwrap_or(1.0) / (64 * CHAIN) as f64;
    let spent = accounts.iter().zip(samples).map(|((name, _), samples)| {
        let upto = samples.map(|s| median(&s).unwrap_or(f64::NAN) / per_cycle / FORMS as f64);
        let mut cycles = upto;
        for i in 1..cycles.len() {
            cycles[i] = upto[i] - upto[i - 1];
        }
        Spent { backend: (*name).to_owned(), cycles }
    });
    Ok(spent.collect())
}

/// What IFMA saves and in which phase, in words: `on` beside `off`.
#[must_use]
pub(crate) fn told(off: &Spent, on: &Spent) -> String {
    let saved = off.together() - on.together();
    let parts: Vec<String> = Phase::ALL
        .into_iter()
        .zip(off.cycles.iter().zip(on.cycles))
        .map(|(phase, (off, on))| format!("{}: {:+.0}", title(phase), on - off))
        .collect();
    format!(
        "A squaring takes {:.0} cycles without IFMA and {:.0} with it, {saved:.0} fewer; by phases: {}.",
        off.together(),
        on.together(),
        parts.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_s_phases_are_measured_where_cycles_can_be() {
        let found = match measure(&Cpu::detect(), 1) {
            Ok(found) => found,
            Err(fault) => {
                assert!(matches!(fault, Fault::Unavailable(_)), "{fault}");
                return;
            }
        };
        assert_eq!(found.len(), Engine::available(&Cpu::detect()).count());
        assert!(found.iter().all(|spent| spent.cycles[0] > 0.0 && spent.together().is_finite()));
    }

    #[test]
    fn differences_are_told_phase_by_phase() {
        let spent = |cycles| Spent { backend: String::new(), cycles };
        let told = told(&spent([4500.0, 800.0, 2900.0, 1000.0]), &spent([4000.0, 600.0, 2100.0, 1100.0]));
        assert!(told.contains("9200 cycles without IFMA and 7800 with it, 1400 fewer"), "{told}");
        assert!(
            told.contains("partial GCD with its columns: -800") && told.contains("reduction: +100"),
            "{told}"
        );
    }
}
