//! A backend's squarings against known forms, and its chains and proofs against the books' on new random inputs.
#![forbid(unsafe_code)]

use std::hash::{BuildHasher, RandomState};

use lanework_vdf::chain::Chain;
use lanework_vdf::internals::check::Row;
use lanework_vdf::internals::known;
use lanework_vdf::{
    Discriminant, Engine, Form, Limits, Options, Question, Strict, Task, prove, spec, verify,
};

use crate::Depth;
use crate::magma::Filler;

/// Chiavdf's forms after many squarings of the generator: the first in a quick check, a million only in a full one.
pub(super) fn squarings(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("chiavdf's forms after many squarings", engine.name());
    let most = match depth {
        Depth::Quick => 1000,
        Depth::KnownAnswers => 100_000,
        Depth::Full => 1_000_000,
    };
    let chain = |d: &Discriminant, row: &mut Row| -> Result<(), String> {
        let x = Form::generator(d).ok_or("no generator")?;
        let mut chain = Chain::new(d.on(engine), &x).map_err(|e| e.to_string())?;
        for (count, a, b) in known::SQUARINGS.iter().filter(|(count, _, _)| *count <= most) {
            chain.square(count - chain.done()).map_err(|e| e.to_string())?;
            let form = chain.form().map_err(|e| e.to_string())?;
            row.case(form.a() == known::number(a) && form.b() == known::number(b), || {
                format!("after {count}")
            });
        }
        Ok(())
    };
    let done = Discriminant::new(&known::number(known::SQUARINGS_D))
        .map_err(|e| e.to_string())
        .and_then(|d| chain(&d, &mut row));
    if let Err(why) = done {
        row.case(false, || why);
    }
    row
}

/// Published proofs, with discriminants and verification on this backend: one of every depth, or all. Each is refused for another
/// number of squarings.
pub(super) fn verifies(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("chiavdf's published proofs, on this backend", engine.name());
    let mut seen = Vec::new();
    for (i, record) in known::records().enumerate() {
        if depth == Depth::Quick && seen.contains(&record.depth) {
            continue;
        }
        seen.push(record.depth);
        let verdict = |iterations: u64| {
            let d = Discriminant::from_seed_on(engine, &record.challenge, record.bits)
                .map_err(|e| e.to_string())?;
            let question = Question { x: &record.x, proof: &record.proof, iterations, depth: record.depth };
            verify(Strict, d.on(engine), &question, &Limits::default()).map_err(|e| e.to_string())
        };
        let right = verdict(record.iterations);
        row.case(right.is_ok(), || format!("record {i}: {right:?}"));
        if i == 0 {
            let wrong = verdict(record.iterations + 1);
            row.case(wrong.is_err(), || format!("record {i} is accepted for one squaring more"));
        }
    }
    row
}

/// Fresh discriminants of three lengths, each a chain with a proof: forms and proofs are those of the books. A failure
/// names the seed, and the seed gives it again.
pub(super) fn with_spec(engine: Engine, depth: Depth) -> Row {
    let seed = RandomState::new().hash_one(engine.name());
    seeded(engine, seed, if depth == Depth::Full { 8 } else { 1 })
}

fn seeded(engine: Engine, seed: u64, rounds: usize) -> Row {
    let mut row = Row::new("forms and proofs as in the books, fresh inputs", engine.name());
    let mut filler = Filler::new(seed);
    for round in 0..rounds {
        for bits in [512, 1024, 1536] {
            let challenge = filler.bytes(32);
            let iterations = 200 + filler.next() % 200;
            let power = filler.next() | 1;
            let case = || format!("seed {seed:#x}, round {round}, {bits} bits");
            let wrong = compare(engine, &challenge, bits, power, iterations).err();
            row.case(wrong.is_none(), || format!("{}: {}", case(), wrong.unwrap_or_default()));
        }
    }
    row
}

fn compare(engine: Engine, challenge: &[u8], bits: usize, power: u64, iterations: u64) -> Result<(), String> {
    let plainly = Engine::portable();
    let d = Discriminant::from_seed_on(plainly, challenge, bits).map_err(|e| e.to_string())?;
    if Discriminant::from_seed_on(engine, challenge, bits).as_ref() != Ok(&d) {
        return Err("another discriminant".to_owned());
    }
    let x = Form::generator(&d).ok_or("no generator")?.power(power, d.on(plainly));
    let mut chain = Chain::new(d.on(engine), &x).map_err(|e| e.to_string())?;
    let mut form = x.clone();
    // In steps of 1, 2, 4 and so on: what a kernel keeps between calls is seen too.
    for step in (0..7).map(|i| 1 << i) {
        chain.square(step).map_err(|e| e.to_string())?;
        for _ in 0..step {
            form = spec::square(&form, &d).map_err(|e| e.to_string())?;
        }
        if chain.form().as_ref() != Ok(&form) {
            return Err(format!("another form within {step} squarings"));
        }
    }
    let task = Task { segments: vec![iterations / 3], ..Task::new(d, x, iterations) };
    let proved = prove(&task, &Options::new(engine), &mut |_| true).map_err(|e| e.to_string())?;
    let expected = spec::prove(&task).map_err(|e| e.to_string())?;
    if proved.proof == expected { Ok(()) } else { Err("another proof".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_checks_the_same() {
        let engine = Engine::portable();
        let row = seeded(engine, 7, 1);
        assert_eq!((row.passed, row.failed), (3, 0), "{}", row.why);
    }
}
