//! The delay function as subjects: `vdf/1024/square` and its siblings.
//!
//! | path | a unit of work |
//! |---|---|
//! | `vdf/1024/square` | one squaring in a chain that goes on from sample to sample; starting is not timed |
//! | `vdf/1024/prove` | one squaring of the 20,000 that a challenge, its discriminant, the chain and the proof are made with |
//! | `vdf/1024/verify` | one published proof of one segment, for a discriminant that is known |
//! | `vdf/1024/discriminant` | one discriminant from a challenge; each iteration makes the same eight, since their times differ tenfold |
#![forbid(unsafe_code)]

use std::hint::black_box;

use lanework_cpu::{Cpu, Select, Threads};
use lanework_race::gate::{Gate, GateRow};
use lanework_race::subject::{Facts, Runnable, Subject, Unavailable, Variant, work};
use lanework_vdf::chain::Chain;
use lanework_vdf::internals::check as checks;
use lanework_vdf::internals::known::{self, Record};
use lanework_vdf::{Discriminant, Engine, Form, Limits, Options, Question, Strict, Task, verify};

use crate::magma::Filler;
use crate::{Context, Depth, Job, checked, missing, row, skipped};

mod agreement;
mod floor;
#[cfg(feature = "peers")]
pub mod peers;

pub(crate) use floor::floor;

/// The operations that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Squarings of one form.
    Square,
    /// Verifying a proof of one segment.
    Verify,
    /// A discriminant from a challenge.
    Discriminant,
    /// Discriminant, squarings and proof.
    Prove,
}

impl Operation {
    /// All four.
    pub const ALL: [Operation; 4] =
        [Operation::Square, Operation::Verify, Operation::Discriminant, Operation::Prove];

    /// The last component of the subject's path.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Square => "square",
            Operation::Verify => "verify",
            Operation::Discriminant => "discriminant",
            Operation::Prove => "prove",
        }
    }

    /// The command that does it.
    #[must_use]
    pub const fn command(self) -> &'static str {
        match self {
            Operation::Square => "vdf evaluate",
            Operation::Verify => "vdf verify",
            Operation::Discriminant => "vdf discriminant",
            Operation::Prove => "vdf prove",
        }
    }

    /// The name of units of work.
    const fn counted(self) -> &'static str {
        match self {
            Operation::Square | Operation::Prove => "squarings",
            Operation::Verify => "proofs",
            Operation::Discriminant => "discriminants",
        }
    }

    /// Units of an iteration of ours.
    const fn units(self) -> u64 {
        match self {
            Operation::Square => 1000,
            Operation::Verify => 1,
            Operation::Discriminant => CHALLENGES as u64,
            Operation::Prove => PROVED,
        }
    }
}

/// Bits of the discriminants that race.
pub const BITS: usize = 1024;
/// Squarings of a proof that is raced.
pub const PROVED: u64 = 20_000;
/// Challenges whose discriminants are made in an iteration.
const CHALLENGES: usize = 8;
/// Published proofs that are verified in turn.
const PROOFS: usize = 16;

/// Every subject of the delay function.
#[must_use]
pub fn subjects(context: &Context) -> Vec<Subject> {
    Operation::ALL.into_iter().map(|operation| subject(context, operation)).collect()
}

/// The squaring chain: what the delay is made of.
#[must_use]
pub fn headline(context: &Context) -> Vec<Subject> {
    vec![subject(context, Operation::Square)]
}

/// One subject with all its variants; `portable` is the baseline.
#[must_use]
pub fn subject(context: &Context, operation: Operation) -> Subject {
    let cpu = context.cpu;
    let variant = move |name: String, backend: &'static str, threads: usize| {
        let variant = Variant::new(name, move || prepare(&cpu, backend, operation, threads));
        variant.units(operation.units()).cores(threads)
    };
    let mut variants =
        lanework_vdf::backend::BACKENDS.iter().map(|b| variant(b.name().to_owned(), b.name(), 1));
    let first =
        variants.next().unwrap_or_else(|| Variant::new("none", || Err(Unavailable::because("no backend"))));
    let gated = context.clone();
    let gate = Gate::new(move || Ok(gate_rows(&gated)));
    let path = Job::Vdf(operation, BITS).to_string();
    let subject = variants.fold(Subject::new(path, gate, first).counted(operation.counted()), Subject::with);
    let cores = Threads::Own(0).count();
    let subject = match Engine::choose(&cpu, context.settings.select("vdf")) {
        // Proving after the squaring is work for every core.
        Ok(best) if operation == Operation::Prove && cores > 1 => [1, cores]
            .iter()
            .fold(subject, |s, &n| s.with(variant(format!("{}+threads={n}", best.name()), best.name(), n))),
        _ => subject,
    };
    #[cfg(feature = "peers")]
    let subject = peers::variants(context, operation).into_iter().fold(subject, Subject::with);
    subject
}

fn failed(e: impl ToString) -> Unavailable {
    Unavailable::because(e.to_string())
}

fn engine(cpu: &Cpu, name: &str) -> Result<Engine, Unavailable> {
    // The variant's name is the backend's, so the reason does not repeat it.
    Engine::choose(cpu, Select::Named(name)).map_err(|u| Unavailable::because(u.why))
}

/// A chain from the generator of the discriminant of chiavdf's own benchmark.
///
/// # Errors
/// None in practice: tests check its constants.
pub fn chain(engine: Engine) -> Result<Chain, Unavailable> {
    let d = Discriminant::new(&known::number(known::SQUARINGS_D)).map_err(failed)?;
    Chain::new(d.on(engine), &generator(&d)?).map_err(failed)
}

fn generator(d: &Discriminant) -> Result<Form, Unavailable> {
    Form::generator(d).ok_or_else(|| Unavailable::because("the discriminant has no generator"))
}

/// Challenges of 32 bytes, the same in every process.
fn challenges() -> Vec<Vec<u8>> {
    let mut filler = Filler::new(1);
    (0..CHALLENGES).map(|_| filler.bytes(32)).collect()
}

/// Published proofs of one segment with their discriminants.
fn published(engine: Engine) -> Result<Vec<(Discriminant, Record)>, Unavailable> {
    known::records()
        .filter(|record| record.depth == 0 && record.bits == BITS)
        .take(PROOFS)
        .map(|record| {
            let d = Discriminant::from_seed_on(engine, &record.challenge, record.bits).map_err(failed)?;
            Ok((d, record))
        })
        .collect()
}

/// The proof of `iterations` squarings, from the challenge on: what chiavdf's `prove` does.
fn prove(engine: Engine, challenge: &[u8], iterations: u64, threads: usize) -> Result<Vec<u8>, Unavailable> {
    let d = Discriminant::from_seed_on(engine, challenge, BITS).map_err(failed)?;
    let x = generator(&d)?;
    let task = Task::new(d, x, iterations);
    let proved = lanework_vdf::prove(&task, &Options::new(engine).threads(threads), &mut |_| true);
    Ok(proved.map_err(failed)?.proof.to_bytes(&task.discriminant))
}

/// An operation on a backend. A result that is wrong ends the race by a panic, which the laboratory reports as a failed
/// launch.
fn prepare(
    cpu: &Cpu,
    name: &'static str,
    operation: Operation,
    threads: usize,
) -> Result<Box<dyn Runnable>, Unavailable> {
    let engine = engine(cpu, name)?;
    let facts = |notes: Vec<String>| move || Facts { backend: name.to_owned(), notes: notes.clone() };
    Ok(match operation {
        Operation::Square => {
            let mut chain = chain(engine)?;
            // The first squarings from the generator are of short numbers, and slow.
            chain.square(operation.units()).map_err(failed)?;
            work(move || assert!(chain.square(operation.units()).is_ok()), facts(Vec::new()))
        }
        Operation::Prove => {
            let challenge = challenges().swap_remove(0);
            work(
                move || assert!(black_box(prove(engine, &challenge, PROVED, threads)).is_ok()),
                facts(vec!["verifies its own proof before it gives it out".to_owned()]),
            )
        }
        Operation::Verify => {
            let pool = published(engine)?;
            let mut next = 0;
            work(
                move || {
                    next = (next + 1) % pool.len();
                    let (d, record) = &pool[next];
                    let question = Question {
                        x: &record.x,
                        proof: &record.proof,
                        iterations: record.iterations,
                        depth: record.depth,
                    };
                    assert_eq!(verify(Strict, d.on(engine), &question, &Limits::default()), Ok(()));
                },
                facts(Vec::new()),
            )
        }
        Operation::Discriminant => {
            let challenges = challenges();
            work(
                move || {
                    for challenge in &challenges {
                        assert!(black_box(Discriminant::from_seed_on(engine, challenge, BITS)).is_ok());
                    }
                },
                facts(Vec::new()),
            )
        }
    })
}

/// What must hold before the delay function is timed: the quick checks, and every backend that can run agrees with the
/// books on a fresh discriminant and has chiavdf's forms.
fn gate_rows(context: &Context) -> Vec<GateRow> {
    let mut rows = Vec::new();
    each(context, Depth::Quick, &mut |r| rows.push(r), skipped);
    rows
}

/// Every check, one after the other; `absent` makes the row of a backend that cannot run.
fn each(
    context: &Context,
    depth: Depth,
    push: &mut dyn FnMut(GateRow),
    absent: impl Fn(&str, &lanework_cpu::Unavailable) -> GateRow,
) {
    let inner = if depth == Depth::Full { checks::Depth::Full } else { checks::Depth::Quick };
    if depth == Depth::KnownAnswers {
        let (targets, refused) = checks::targets(&context.cpu);
        targets.into_iter().for_each(|target| push(row(checks::discriminants(target))));
        refused.into_iter().for_each(|checked| push(row(checked)));
    } else {
        checks::all_on(&context.cpu, inner).into_iter().for_each(|checked| push(row(checked)));
    }
    for engine in Engine::all(&context.cpu) {
        match engine {
            Ok(engine) => {
                push(row(agreement::squarings(engine, depth)));
                push(row(agreement::verifies(engine, depth)));
                if depth != Depth::KnownAnswers {
                    push(row(agreement::with_spec(engine, depth)));
                }
            }
            Err(unavailable) => push(absent("the squaring chain", &unavailable)),
        }
    }
    #[cfg(feature = "peers")]
    peers::gate_rows(context).into_iter().for_each(push);
}

/// All checks of the delay function on every backend; a required backend that cannot run is a failed row.
pub fn check(
    context: &Context,
    pattern: &str,
    depth: Depth,
    progress: &mut dyn FnMut(&GateRow),
) -> Vec<GateRow> {
    checked("vdf", pattern, progress, |push| {
        each(context, depth, push, |what, unavailable| missing(context, what, unavailable));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_proofs_to_verify() {
        let pool =
            published(engine(&Cpu::baseline(), "portable").expect("always there")).expect("all are good");
        assert_eq!(pool.len(), PROOFS);
        assert!(pool.iter().all(|(d, _)| d.bits() == BITS));
    }

    #[test]
    fn a_proof_that_is_raced_verifies() {
        let challenge = challenges().swap_remove(0);
        let iterations = 300;
        let engine = engine(&Cpu::baseline(), "portable").expect("always there");
        let proof = prove(engine, &challenge, iterations, 2).expect("a proof");
        let d = Discriminant::from_seed(&challenge, BITS).expect("a discriminant");
        let x = generator(&d).expect("a generator").to_bytes(&d);
        let question = Question { x: &x, proof: &proof, iterations, depth: 0 };
        assert_eq!(verify(Strict, &d, &question, &Limits::default()), Ok(()));
    }
}
