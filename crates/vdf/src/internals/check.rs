//! The checks, as functions: the tests, the command and the laboratory call the same ones. Each gives a [`Row`].
#![forbid(unsafe_code)]

mod backends;
mod refusals;

use crate::backend::Engine;
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::group::Group;
use crate::internals::known::{self, Record};
use crate::proof::Proof;
use crate::prover::{Options, Task, prove};
use crate::serial::{Lenient, Mode, Strict};
use crate::spec;
use crate::verify::{self, Limits, Question};

use lanework_cpu::{Cpu, Threads};

pub use backends::{group_law, primes, targets};
pub use lanework_cpu::check::{Depth, Row};
pub use refusals::{malleability, refusals};

/// The backend name of checks that use no kernels, or only compare them with the plain code.
const BACKEND: &str = "portable";

fn question(record: &Record) -> Question<'_> {
    Question { x: &record.x, proof: &record.proof, iterations: record.iterations, depth: record.depth }
}

/// All published proofs, or a choice with every depth: each verifies, in both modes.
#[must_use]
pub fn published_proofs(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("chiavdf's published proofs", engine.name());
    let mut seen = Vec::new();
    for (i, record) in known::records().enumerate() {
        if depth == Depth::Quick && seen.contains(&record.depth) {
            continue;
        }
        seen.push(record.depth);
        let d = match Discriminant::from_seed_on(engine, &record.challenge, record.bits) {
            Ok(d) => d,
            Err(e) => {
                row.case(false, || format!("record {i}: {e}"));
                continue;
            }
        };
        let group = d.on(engine);
        let strict = verify::verify(Strict, group, &question(&record), &Limits::default());
        row.case(strict.is_ok(), || format!("record {i}, strict: {strict:?}"));
        if depth == Depth::Full {
            let lenient = verify::verify(Lenient, group, &question(&record), &Limits::default());
            row.case(lenient.is_ok(), || format!("record {i}, lenient: {lenient:?}"));
            // The proof survives a round trip, with and without its result.
            let again = compact_and_back(group, &record);
            row.case(again == Ok(true), || format!("record {i}, compact: {again:?}"));
        }
    }
    row
}

fn compact_and_back(group: Group<'_>, record: &Record) -> Result<bool, verify::VerifyError> {
    let (d, limits) = (group.discriminant(), Limits::default());
    let proof = Proof::from_bytes(Strict, d, &record.proof, record.depth, limits.depth)?;
    let b = verify::verify_with_b(Strict, group, &question(record), &limits)?;
    let compact = proof.compact().to_bytes(d);
    let y = verify::verify_compact(
        Strict,
        group,
        &b,
        &Question { proof: &compact, ..question(record) },
        &limits,
    )?;
    Ok(y == proof.y && proof.to_bytes(d) == record.proof)
}

/// Published proofs with one byte changed, every byte in turn: each is refused, in both modes.
#[must_use]
pub fn corruptions(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("every byte of a proof counts", engine.name());
    let wanted: &[u64] = if depth == Depth::Full { &[0, 2, 4] } else { &[0] };
    for &wanted in wanted {
        let Some(record) = known::records().find(|record| record.depth == wanted) else {
            row.case(false, || format!("there is no record of depth {wanted}"));
            continue;
        };
        let Ok(d) = Discriminant::from_seed_on(engine, &record.challenge, record.bits) else {
            row.case(false, || "the record has no discriminant".to_owned());
            continue;
        };
        let group = d.on(engine);
        // All of them again side by side, with the right proof in between.
        let (mut bads, mut verdicts) = (vec![record.clone()], vec![Ok(())]);
        for at in 0..record.proof.len() {
            let mut bad = record.clone();
            bad.proof[at] ^= 1 << (at % 8);
            let verdict = verify::verify(Strict, group, &question(&bad), &Limits::default());
            row.case(verdict.is_err(), || format!("depth {wanted}, byte {at} of the proof, strict"));
            bads.push(bad.clone());
            verdicts.push(verdict);
            if at % 10 == 0 {
                bads.push(record.clone());
                verdicts.push(Ok(()));
            }
            if depth == Depth::Full {
                // The lenient decoder takes some other encodings for the same proof, and for no other.
                let verdict = verify::verify(Lenient, group, &question(&bad), &Limits::default());
                let read = |record: &Record| Proof::from_bytes(Lenient, &d, &record.proof, wanted, wanted);
                row.case(verdict.is_err() || read(&bad) == read(&record), || {
                    format!("depth {wanted}, byte {at} of the proof, lenient")
                });
            }
        }
        for at in 0..record.x.len() {
            let mut bad = record.clone();
            bad.x[at] ^= 1 << (at % 8);
            let verdict = verify::verify(Strict, group, &question(&bad), &Limits::default());
            row.case(verdict.is_err(), || format!("depth {wanted}, byte {at} of the input"));
        }
        for iterations in [record.iterations - 1, record.iterations + 1, record.iterations * 2] {
            let bad = Record { iterations, ..record.clone() };
            let verdict = verify::verify(Strict, group, &question(&bad), &Limits::default());
            row.case(verdict.is_err(), || format!("depth {wanted}, {iterations} squarings"));
        }
        let questions: Vec<_> = bads.iter().map(|bad| (group, question(bad))).collect();
        let many = verify::verify_all(Strict, &questions, &Limits::default(), Threads::One);
        row.case(many.is_ok_and(|many| many == verdicts), || format!("depth {wanted}, side by side"));
    }
    row
}

/// Challenges whose discriminants are known.
#[must_use]
pub fn discriminants(engine: Engine) -> Row {
    let mut row = Row::new("chiavdf's discriminants", engine.name());
    for (seed, magnitude) in known::DISCRIMINANTS {
        let d = known::bytes(seed).and_then(|seed| Discriminant::from_seed_on(engine, &seed, 512).ok());
        row.case(d.map(|d| -d.value()) == Some(known::number(magnitude)), || format!("challenge {seed}"));
    }
    row
}

/// The generator squared 1,000 times, and in full 100,000 times, by the general code behind every kernel.
#[must_use]
pub fn plain_squarings(depth: Depth) -> Row {
    let mut row = Row::new("chiavdf's forms after many squarings", BACKEND);
    let d = Discriminant::new(&known::number(known::SQUARINGS_D));
    let Some((d, mut form)) = d.ok().and_then(|d| Form::generator(&d).map(|x| (d, x))) else {
        row.case(false, || "the chain has no start".to_owned());
        return row;
    };
    let most = if depth == Depth::Full { 100_000 } else { 1000 };
    let mut done = 0;
    for (count, a, b) in known::SQUARINGS.into_iter().filter(|(count, ..)| *count <= most) {
        (done..count).for_each(|_| form = form.square_generally(&d));
        done = count;
        row.case(form.a() == known::number(a) && form.b() == known::number(b), || format!("after {count}"));
    }
    row
}

/// Chains proved here: the proof equals that of [`spec::prove`] and verifies, or has chiavdf's bytes.
#[must_use]
pub fn proving(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("proofs made here", engine.name());
    let chains: &[(usize, u64, &[u64])] = &[
        (256, 1, &[]),
        (256, 7, &[1, 2]),
        (512, 1000, &[]),
        (1024, 1500, &[100, 700]),
        (1024, 2047, &[1024, 1, 1]),
        (1064, 500, &[200]),
        (2048, 300, &[]),
    ];
    for &(bits, iterations, lengths) in chains {
        let case = || format!("{bits} bits, {iterations} squarings in {} segments", lengths.len() + 1);
        let d = Discriminant::from_seed(b"proving", bits);
        let Some((d, x)) = d.ok().and_then(|d| Form::generator(&d).map(|x| (d, x))) else {
            row.case(false, case);
            continue;
        };
        let task = Task { segments: lengths.to_vec(), ..Task::new(d, x, iterations) };
        let d = &task.discriminant;
        let Ok(proved) = prove(&task, &Options::new(engine), &mut |_| true) else {
            row.case(false, case);
            continue;
        };
        let (x, proof) = (task.x.to_bytes(d), proved.proof.to_bytes(d));
        let question = Question { x: &x, proof: &proof, iterations, depth: lengths.len() as u64 };
        let verdict = verify::verify_with_b(Strict, d.on(engine), &question, &Limits::default());
        row.case(verdict == Ok(proved.b), case);
        row.case(spec::prove(&task).is_ok_and(|expected| expected == proved.proof), case);
    }
    if depth == Depth::Full {
        let (challenge, expected) = known::MILLION;
        row.case(chia_proof(engine, challenge, 1024, None, 1_000_000) == known::bytes(expected), || {
            "a million squarings have another proof than chiavdf's".to_owned()
        });
        let (challenge, x) = known::OVERFLOWED;
        row.case(chia_proof(engine, challenge, 512, Some(x), 90_909).is_some(), || {
            "90,909 squarings".to_owned()
        });
    }
    row
}

fn chia_proof(
    engine: Engine,
    challenge: &str,
    bits: usize,
    x: Option<&str>,
    iterations: u64,
) -> Option<Vec<u8>> {
    let d = Discriminant::from_seed(&known::bytes(challenge)?, bits).ok()?;
    let x = match x {
        Some(x) => Form::from_bytes(Strict, &d, &known::bytes(x)?).ok()?,
        None => Form::generator(&d)?,
    };
    let task = Task::new(d, x, iterations);
    let proved = prove(&task, &Options::new(engine), &mut |_| true).ok()?;
    Some(proved.proof.to_bytes(&task.discriminant))
}

/// Every form of a chain is written and read back, in all sizes and both modes, and so are forms with common divisors
/// of a and t.
#[must_use]
pub fn encodings(depth: Depth) -> Row {
    let mut row = Row::new("forms as bytes and back", BACKEND);
    let count = if depth == Depth::Full { 3000 } else { 200 };
    for bits in [32usize, 64, 256, 504, 512, 1016, 1024, 1032, 2048] {
        let d = Discriminant::from_seed(b"encodings", bits);
        let Some((d, mut x)) = d.ok().and_then(|d| Form::generator(&d).map(|x| (d, x))) else {
            row.case(false, || format!("no group of {bits} bits"));
            continue;
        };
        row.case(back(Strict, &d, &Form::identity(&d)), || format!("{bits} bits, the identity"));
        for i in 0..count {
            row.case(back(Strict, &d, &x) && back(Lenient, &d, &x), || format!("{bits} bits, form {i}"));
            row.case(back(Strict, &d, &x.inverse()), || format!("{bits} bits, inverse of form {i}"));
            x = x.square(&d);
        }
    }
    row
}

fn back<M: Mode>(mode: M, d: &Discriminant, x: &Form) -> bool {
    Form::from_bytes(mode, d, &x.to_bytes(d)).as_ref() == Ok(x)
}

/// [`all_on`] this CPU, with no feature masked.
#[must_use]
pub fn all(depth: Depth) -> Vec<Row> {
    all_on(&Cpu::detect(), depth)
}

/// All checks of this crate, those of kernels on every backend that the CPU can run.
#[must_use]
pub fn all_on(cpu: &Cpu, depth: Depth) -> Vec<Row> {
    let (targets, mut rows) = targets(cpu);
    for target in targets {
        rows.extend([
            group_law(target, depth),
            primes(target, depth),
            discriminants(target),
            published_proofs(target, depth),
            corruptions(target, depth),
            proving(target, depth),
        ]);
    }
    rows.extend([plain_squarings(depth), encodings(depth), malleability(), refusals()]);
    rows
}
