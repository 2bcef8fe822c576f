//! Batches by their size: `mayo/round3/mayo1/verify-batch/16` and its siblings.
//!
//! A unit of work is one item of the batch, so the figures of all sizes lie side by side: they show what the batch calls save, and from
//! how many items on threads pay.
#![forbid(unsafe_code)]

use lanework_cpu::{Select, Threads};
use lanework_mayo::internals::BACKENDS;
use lanework_mayo::{Engine, Params, Round, Set};
use lanework_race::gate::Gate;
use lanework_race::subject::{Subject, Unavailable, Variant};

use super::{Operation, fastest, gate_rows, in_batches, place};
use crate::Context;

/// Items of a batch.
const SIZES: [usize; 5] = [1, 4, 16, 64, 256];

/// The operations that run in batches of several sizes.
const OPERATIONS: [Operation; 2] = [Operation::Sign, Operation::Verify];

/// Round 3's sets.
pub(super) fn subjects(context: &Context) -> Vec<Subject> {
    Set::ALL
        .into_iter()
        .flat_map(|set| OPERATIONS.map(|operation| (Params::of(Round::DEFAULT, set), operation)))
        .flat_map(|(params, operation)| {
            SIZES.into_iter().map(move |items| subject(context, params, operation, items))
        })
        .collect()
}

/// Every backend on one thread, `portable` first, and the best one on every core.
fn subject(context: &Context, params: &'static Params, operation: Operation, items: usize) -> Subject {
    let cpu = context.cpu;
    let variant = |name: String, engine: Result<Engine, Unavailable>, threads: usize| {
        let made = move || in_batches(engine.clone()?, fastest(&cpu)?, params, operation, (items, threads));
        Variant::new(name, made).cores(threads).units(items as u64)
    };
    // The variant's name is the backend's, so the reason does not repeat it.
    let named = |name| Engine::choose(&cpu, Select::Named(name)).map_err(|u| Unavailable::because(u.why));
    let mut variants = BACKENDS.iter().map(|b| variant(b.name().to_owned(), named(b.name()), 1));
    let first =
        variants.next().unwrap_or_else(|| Variant::new("none", || Err(Unavailable::because("no backend"))));
    let gated = context.clone();
    let gate = Gate::new(move || Ok(gate_rows(&gated, params)));
    let path = format!("{}/{}-batch/{items}", place(params), operation.name());
    let subject = variants.fold(Subject::new(path, gate, first), Subject::with);
    let cores = Threads::Own(0).count();
    if cores < 2 {
        return subject;
    }
    let best = Engine::choose(&cpu, context.settings.select("mayo"));
    let best = best.map_err(|u| Unavailable::because(u.to_string()));
    let name = format!("{}+threads={cores}", best.as_ref().map_or("best", Engine::name));
    subject.with(variant(name, best, cores))
}

#[cfg(test)]
mod tests {
    use lanework_cpu::Settings;

    use super::*;

    #[test]
    fn every_size_has_a_subject_whose_work_runs() {
        let context = Context::new(Settings::default());
        let all = subjects(&context);
        assert_eq!(all.len(), 4 * 2 * SIZES.len());
        let paths: Vec<&str> = all.iter().map(Subject::path).collect();
        assert!(paths.contains(&"mayo/round3/mayo2/verify-batch/16"), "{paths:?}");
        // The work itself asserts that every signature is made and verifies.
        let engine = Engine::choose(&context.cpu, Select::Named("portable")).expect("always there");
        let params = Params::of(Round::DEFAULT, Set::Mayo2);
        for operation in OPERATIONS {
            let mut work = in_batches(engine, engine, params, operation, (3, 1)).expect("prepares");
            work.run(1);
        }
    }
}
