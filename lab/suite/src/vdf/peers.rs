//! chiavdf beside ours: variants for the races, and the check that both give the same bytes.
//!
//! Its chains run in a process of their own that is started, and warmed up, before anything is timed; a sample asks for 5,000
//! squarings and waits for the answer, which costs some ten microseconds of about twenty-five milliseconds. The pipeline
//! starts its second thread anew for each request, some fifty microseconds more; it does so in chiavdf's own programs
//! as well, once for each run.
#![forbid(unsafe_code)]

use std::path::Path;

use lanework_cpu::Cpu;
use lanework_peers::delay::{BENCH, CHAIN, IFMA, LIBRARY, vdf_bench};
use lanework_peers::{Card, DelayPath, Peers};
use lanework_race::gate::GateRow;
use lanework_race::machine::PeerBuild;
use lanework_race::subject::{Facts, Runnable, Unavailable, Variant, work};
use lanework_vdf::chain::Chain;
use lanework_vdf::internals::known;
use lanework_vdf::{Discriminant, Engine, Form, Limits, Question, Strict, Task, spec, verify};

use super::{BITS, Operation, PROVED, challenges, engine, failed, generator, prove, published};
use crate::Context;
use crate::magma::Filler;

/// Squarings that a sample asks for.
const ASKED: u64 = 5000;

/// The chains of chiavdf that race: their name, how they square, and with IFMA or not.
const CHAINS: [(&str, DelayPath, bool); 3] = [
    ("chiavdf-asm", DelayPath::Pipeline, false),
    ("chiavdf-asm+ifma", DelayPath::Pipeline, true),
    ("chiavdf-square", DelayPath::Gmp, false),
];

/// Compilers and flags of the files that are there, for the machine card.
#[must_use]
pub fn builds(dir: &Path) -> Vec<PeerBuild> {
    let build = |card: &Card| PeerBuild {
        name: card.name.clone(),
        version: format!("{} {} ({})", card.project, card.version, card.options.join(" ")),
        compiler: card.compiler_version.clone(),
        flags: card.flags.clone(),
    };
    let library = Peers::delay_library(dir).ok().map(|l| build(l.card()));
    let chain = Peers::delay_chain(dir, &magnitude(), false).ok().map(|c| build(c.card()));
    let bench = vdf_bench(dir, false).ok().map(|(_, card)| build(&card));
    let ifma = Peers::ifma(dir).ok().map(|(_, card)| build(&card));
    library.into_iter().chain(chain).chain(bench).chain(ifma).collect()
}

/// Each of its files, or why it is missing, for the doctor.
#[must_use]
pub fn found(dir: &Path) -> Vec<(String, Result<String, String>)> {
    let line = |card: &Card| format!("{} {}, {}", card.project, card.version, card.compiler_version);
    vec![
        (LIBRARY.to_owned(), Peers::delay_library(dir).map(|l| line(l.card())).map_err(|u| u.to_string())),
        (
            CHAIN.to_owned(),
            Peers::delay_chain(dir, &magnitude(), false).map(|c| line(c.card())).map_err(|u| u.to_string()),
        ),
        (BENCH.to_owned(), vdf_bench(dir, false).map(|(_, c)| line(&c)).map_err(|u| u.to_string())),
        (IFMA.to_owned(), Peers::ifma(dir).map(|(_, c)| line(&c)).map_err(|u| u.to_string())),
    ]
}

/// The magnitude of the discriminant of chiavdf's own benchmark, in hexadecimal.
fn magnitude() -> String {
    known::SQUARINGS_D.trim_start_matches('-').to_owned()
}

/// chiavdf as variants; a missing file gives the reason when it is run.
pub(super) fn variants(context: &Context, operation: Operation) -> Vec<Variant> {
    let Some(dir) = context.peers.clone() else { return Vec::new() };
    if operation == Operation::Square {
        return CHAINS
            .iter()
            .map(|&(name, path, ifma)| {
                let dir = dir.clone();
                let cores = if path == DelayPath::Pipeline { 2 } else { 1 };
                Variant::new(name, move || squares(&dir, name, path, ifma)).cores(cores).units(ASKED)
            })
            .collect();
    }
    vec![Variant::new(LIBRARY, move || calls(&dir, operation)).units(operation.units())]
}

fn squares(
    dir: &Path,
    name: &'static str,
    path: DelayPath,
    ifma: bool,
) -> Result<Box<dyn Runnable>, Unavailable> {
    let mut chain = Peers::delay_chain(dir, &magnitude(), ifma).map_err(failed)?;
    let compiler = chain.card().compiler_version.clone();
    chain.square(path, 1000).map_err(failed)?;
    let notes = vec![format!("a process of its own, {ASKED} squarings a request; {compiler}")];
    Ok(work(
        move || assert!(chain.square(path, ASKED).is_ok()),
        move || Facts { backend: name.to_owned(), notes: notes.clone() },
    ))
}

fn calls(dir: &Path, operation: Operation) -> Result<Box<dyn Runnable>, Unavailable> {
    let library = Peers::delay_library(dir).map_err(failed)?;
    let notes = vec![library.card().compiler_version.clone()];
    let facts = move || Facts { backend: LIBRARY.to_owned(), notes: notes.clone() };
    Ok(match operation {
        Operation::Prove => {
            let challenge = challenges().swap_remove(0);
            let d = Discriminant::from_seed(&challenge, BITS).map_err(failed)?;
            let x = generator(&d)?.to_bytes(&d);
            work(move || assert!(library.prove(&challenge, &x, BITS, PROVED).is_ok()), facts)
        }
        Operation::Verify => {
            let pool: Vec<_> = published(engine(&Cpu::baseline(), "portable")?)?
                .into_iter()
                .map(|(d, record)| (big_endian(&d), record))
                .collect();
            let mut next = 0;
            work(
                move || {
                    next = (next + 1) % pool.len();
                    let (d, r) = &pool[next];
                    assert_eq!(library.verify(d, &r.x, &r.proof, r.iterations, r.depth), Ok(true));
                },
                facts,
            )
        }
        Operation::Discriminant => {
            let (challenges, mut out) = (challenges(), [0; BITS / 8]);
            work(
                move || {
                    for challenge in &challenges {
                        assert!(library.discriminant(challenge, &mut out).is_ok());
                    }
                },
                facts,
            )
        }
        Operation::Square => return Err(Unavailable::because("the package's interface has no squaring")),
    })
}

/// A discriminant's magnitude as chiavdf's interface takes it.
#[must_use]
pub fn big_endian(d: &Discriminant) -> Vec<u8> {
    let bytes = d.bits().div_ceil(8);
    let value = d.value();
    let limbs = value.magnitude().limbs();
    (0..bytes).rev().map(|i| (limbs[i / 8] >> (8 * (i % 8))) as u8).collect()
}

/// Ours and chiavdf's give the same: one row for its functions, one for each of its chains.
pub(super) fn gate_rows(context: &Context) -> Vec<GateRow> {
    let Some(dir) = &context.peers else { return Vec::new() };
    let row = |what: &str, name: &str, cases: Result<Vec<(&'static str, bool)>, String>| {
        let mut row = GateRow {
            what: what.to_owned(),
            backend: name.to_owned(),
            passed: 0,
            failed: 0,
            skipped: 0,
            why: String::new(),
        };
        match cases {
            Err(why) => (row.skipped, row.why) = (1, why),
            Ok(cases) => {
                for (what, held) in cases {
                    if held {
                        row.passed += 1;
                    } else {
                        row.failed += 1;
                        row.why = what.to_owned();
                    }
                }
            }
        }
        row
    };
    let seed = Filler::new(std::process::id().into()).next();
    let library = Peers::delay_library(dir).map_err(|u| u.to_string());
    let both = library.and_then(|library| {
        let fresh = Filler::new(seed).bytes(32);
        both_ways(&library, &context.cpu, &fresh, 300).map_err(|u| u.why)
    });
    let mut rows = vec![row("proofs and discriminants both ways", LIBRARY, both)];
    for (name, path, ifma) in CHAINS {
        rows.push(row("the form after 600 squarings", name, same_form(dir, path, ifma)));
    }
    rows
}

/// Whether a chain of chiavdf's reaches the form that ours does.
fn same_form(dir: &Path, path: DelayPath, ifma: bool) -> Result<Vec<(&'static str, bool)>, String> {
    let mut theirs = Peers::delay_chain(dir, &magnitude(), ifma).map_err(|u| u.to_string())?;
    let mut held = |done: u64| -> Result<bool, String> {
        theirs.square(path, 300).map_err(|e| e.to_string())?;
        let d = Discriminant::new(&known::number(known::SQUARINGS_D)).map_err(|e| e.to_string())?;
        let x = generator(&d).map_err(|u| u.why)?;
        let mut ours = Chain::new(&d, &x).map_err(|e| e.to_string())?;
        ours.square(done).map_err(|e| e.to_string())?;
        let form = ours.form().map_err(|e| e.to_string())?;
        let [a, b, c] = theirs.form().map_err(|e| e.to_string())?;
        Ok((form.a(), form.b(), form.c()) == (known::number(&a), known::number(&b), known::number(&c)))
    };
    Ok(vec![("the form differs", held(300)?), ("the form after going on differs", held(600)?)])
}

/// What must hold between chiavdf's functions and ours for one challenge.
///
/// # Errors
/// A call of theirs that fails, or a step of ours.
pub fn both_ways(
    library: &lanework_peers::DelayLibrary,
    cpu: &Cpu,
    challenge: &[u8],
    iterations: u64,
) -> Result<Vec<(&'static str, bool)>, Unavailable> {
    let d = Discriminant::from_seed(challenge, BITS).map_err(failed)?;
    let mut theirs = vec![0; BITS / 8];
    library.discriminant(challenge, &mut theirs).map_err(failed)?;
    let number = big_endian(&d);
    let mut cases = vec![("the discriminant differs", theirs == number)];

    let x = generator(&d)?;
    let x_bytes = x.to_bytes(&d);
    let proof = library.prove(challenge, &x_bytes, BITS, iterations).map_err(failed)?;
    for engine in Engine::available(cpu) {
        cases.push(("the proof differs", prove(engine, challenge, iterations, 2)? == proof));
    }
    let here = |proof: &[u8], iterations: u64, depth: u64| {
        let question = Question { x: &x_bytes, proof, iterations, depth };
        verify(Strict, &d, &question, &Limits::default()).is_ok()
    };
    let there = |proof: &[u8], iterations: u64, depth: u64| {
        library.verify(&number, &x_bytes, proof, iterations, depth) == Ok(true)
    };
    cases.push(("their proof is refused here", here(&proof, iterations, 0)));
    cases.push(("their proof is refused there", there(&proof, iterations, 0)));
    let damaged = |at: usize| {
        let mut bytes = proof.clone();
        bytes[at] ^= 1;
        bytes
    };
    // A byte of the result, and one of the proof.
    for at in [40, 140] {
        cases.push(("a damaged proof is accepted here", !here(&damaged(at), iterations, 0)));
        cases.push(("a damaged proof is accepted there", !there(&damaged(at), iterations, 0)));
    }
    // In three segments.
    let lengths = vec![iterations / 4, iterations / 3];
    let task = Task { segments: lengths, ..Task::new(d.clone(), x, iterations) };
    let segments = spec::prove(&task).map_err(failed)?.to_bytes(&d);
    cases.push(("our proof of three segments is refused there", there(&segments, iterations, 2)));
    cases.push(("our proof is accepted there for another chain", !there(&segments, iterations + 1, 2)));
    Ok(cases)
}

/// A form that a test may start from other than the generator.
#[must_use]
pub fn start(d: &Discriminant, power: u64) -> Option<Form> {
    Some(Form::generator(d)?.power(power, d))
}
