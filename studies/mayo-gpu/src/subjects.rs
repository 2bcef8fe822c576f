//! The study `mayo-gpu`: what is a GPU worth for MAYO?
//!
//! Batches on one thread of a CPU backend, on all cores and on devices, over a sweep of batch sizes.
#![forbid(unsafe_code)]

use lanework_cpu::{Select, Threads};
use lanework_mayo::{Engine, Params};
use lanework_mayo_cuda::{Expand, Multiply, Release, Ring};
use lanework_race::gate::Gate;
use lanework_race::subject::{Subject, Unavailable, Variant};
use lanework_suite::Context;
use lanework_suite::mayo::cuda::{How, variant};
use lanework_suite::mayo::{BATCH, Operation, fastest, gate_rows, in_batches};

/// The baseline: the best backend here, batches on one thread.
pub(crate) const ONE: &str = "one-core";
/// The same on every core.
pub(crate) const ALL: &str = "all-cores";

/// The largest batch of the sweep, a power of two.
pub(crate) const LARGEST: usize = 1 << 16;

/// Batch sizes that there are variants of: powers of two.
pub(crate) fn sizes() -> impl Iterator<Item = usize> {
    (0..).map(|i| 1 << i).take_while(|&n| n <= LARGEST)
}

/// The path of an operation's races.
#[must_use]
pub(crate) fn path(params: &Params, operation: Operation) -> String {
    // The part before the last slash selects the gate.
    format!("mayo-gpu/{}/{}", params.path().replace('/', "-"), operation.name())
}

/// Every subject: each set of both rounds, each operation that has a batch call on the CPU.
#[must_use]
pub(crate) fn subjects(context: &Context) -> Vec<Subject> {
    let operations = Operation::ALL.into_iter().filter(|o| *o != Operation::ExpandPublic);
    Params::all().flat_map(|p| operations.clone().map(move |o| subject(context, p, o))).collect()
}

/// A batch on this many threads of the best CPU backend; its facts name the backend.
fn on_cpu(context: &Context, params: &'static Params, operation: Operation, threads: usize) -> Variant {
    let context = context.clone();
    let name = if threads == 1 { ONE } else { ALL };
    Variant::new(name, move || {
        let engine = match context.settings.select("mayo") {
            Select::Best => fastest(&context.cpu)?,
            forced => {
                Engine::choose(&context.cpu, forced).map_err(|u| Unavailable::because(u.to_string()))?
            }
        };
        in_batches(engine, fastest(&context.cpu)?, params, operation, (BATCH, threads))
    })
    .cores(threads)
    .units(BATCH as u64)
}

fn subject(context: &Context, params: &'static Params, operation: Operation) -> Subject {
    let gate_context = context.clone();
    let gate = Gate::new(move || Ok(gate_rows(&gate_context, params)));
    let mut subject = Subject::new(path(params, operation), gate, on_cpu(context, params, operation, 1));
    let cores = Threads::Own(0).count();
    if cores > 1 {
        subject = subject.with(on_cpu(context, params, operation, cores));
    }
    for batch in sizes() {
        subject = subject.with(variant(context, params, operation, How::of(batch)));
        if matches!(operation, Operation::Keygen | Operation::Sign | Operation::Verify) {
            let how = How { ring: Ring::Whole, ..How::of(batch) };
            subject = subject.with(variant(context, params, operation, how));
            for expand in [Expand::Beside, Expand::Fused] {
                let how = How { expand, ..How::of(batch) };
                subject = subject.with(variant(context, params, operation, how));
            }
        }
        if matches!(operation, Operation::Sign | Operation::SignExpanded) {
            let how = How { release: Release::Unverified, ..How::of(batch) };
            subject = subject.with(variant(context, params, operation, how));
        }
        if operation == Operation::VerifyExpanded {
            let how = How { multiply: Multiply::Bits, ..How::of(batch) };
            subject = subject.with(variant(context, params, operation, how));
        }
    }
    subject
}
