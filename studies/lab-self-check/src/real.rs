//! Slowdowns planted in real work: one MAYO-1 verification and Magma's CTR over 16 KiB, each with the chain of [`crate::subjects`]
//! behind it, which takes a part of the operation's time.
//!
//! The chain starts from what the operation gives, and the next operation from where the chain ends, so that neither hides behind the
//! other. Its length comes from timing both before a race, so that the part is only about what was asked for.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use lanework_race::gate::{Gate, GateRow};
use lanework_race::subject::{Facts, Runnable, Subject, Unavailable, Variant, work};
use lanework_suite::Context;

use crate::subjects::{EQUALS, SIZES, chain, slower};

/// The subjects' paths, and what each is in words.
pub(crate) const PATHS: [(&str, &str); 2] =
    [("self-check/mayo1-verify", "MAYO-1 verifications"), ("self-check/ctr-16384", "CTR of 16 KiB")];

/// An operation that depends on a number that is always 0, gives a number that depends on all of it, and says whether it was right.
type Operation = Box<dyn FnMut(u64) -> (u64, bool)>;

fn unavailable(why: impl std::fmt::Display) -> Unavailable {
    Unavailable::because(why.to_string())
}

/// An operation, and the backend that does it.
fn operation(context: &Context, path: &str) -> Result<(Operation, String), Unavailable> {
    if path == PATHS[0].0 { verification(context) } else { counter(context) }
}

fn verification(context: &Context) -> Result<(Operation, String), Unavailable> {
    use lanework_mayo::{Engine, Params, Round, SecretKey, Set};

    let engine = Engine::choose(&context.cpu, context.settings.select("mayo")).map_err(unavailable)?;
    let params = Params::of(Round::Three, Set::Mayo1);
    let secret = SecretKey::from_seed(params, &[7; 24]).map_err(unavailable)?;
    let public = secret.public_key(engine);
    let mut message = *b"what is verified again and again";
    let signature = secret.sign(engine, &message).map_err(unavailable)?;
    let first = message[0];
    let run = move |zero: u64| {
        message[0] = first ^ zero as u8;
        let valid = public.verify(engine, &message, &signature).is_ok();
        (u64::from(valid), valid)
    };
    Ok((Box::new(run), engine.name().to_owned()))
}

fn counter(context: &Context) -> Result<(Operation, String), Unavailable> {
    use lanework_magma::modes::{Ctr, Stream as _};
    use lanework_magma::{Engine, Limits, Magma};

    let engine = Engine::choose(&context.cpu, context.settings.select("magma")).map_err(unavailable)?;
    let key = Magma::with(&[7; 32], engine).with_limits(Limits::Unlimited);
    let text = vec![0x5a; 16_384];
    let mut out = vec![0; text.len()];
    let run = move |zero: u64| {
        let iv = [zero as u8, 1, 2, 3];
        let done = Ctr::with_key(&key, &iv).and_then(|mut ctr| ctr.apply_to(&text, &mut out));
        (u64::from(out[0]) | u64::from(out[16_383]) << 8, done.is_ok())
    };
    Ok((Box::new(run), engine.name().to_owned()))
}

/// The nanoseconds of one of `count` runs, the best of some.
fn best(count: u64, mut run: impl FnMut()) -> f64 {
    let time = |run: &mut dyn FnMut()| {
        let begin = Instant::now();
        (0..count).for_each(|_| run());
        begin.elapsed().as_nanos() as f64 / count as f64
    };
    (0..20).map(|_| time(&mut run)).fold(f64::INFINITY, f64::min)
}

/// The steps of a chain that takes this part of the operation's time.
fn steps(operation: &mut Operation, part: f64) -> u64 {
    const LONG: u64 = 3_200;
    let whole = best(8, || {
        black_box(operation(black_box(0)));
    });
    let step = best(8, || {
        black_box(chain(black_box(1), black_box(LONG)));
    });
    (part * whole / (step / LONG as f64)).round() as u64
}

fn prepared(context: &Context, path: &str, thousandths: u64) -> Result<Box<dyn Runnable>, Unavailable> {
    let (mut operation, backend) = operation(context, path)?;
    let steps = if thousandths == 0 { 0 } else { steps(&mut operation, thousandths as f64 / 1000.0) };
    let mut x = 1_u64;
    let body = move || {
        let (given, right) = operation(black_box(x) & black_box(0));
        assert!(right, "the operation failed");
        x = chain(black_box(x ^ given), black_box(steps));
    };
    Ok(work(body, move || Facts { backend: backend.clone(), notes: Vec::new() }))
}

/// One subject: the operation alone, again, and with each size of a slowdown.
fn subject(context: &Context, path: &'static str) -> Subject {
    let equals = EQUALS.iter().map(|name| ((*name).to_owned(), 0));
    let mut variants = equals.chain(SIZES.iter().map(|&size| (slower(size), size))).map(|(name, size)| {
        let context = context.clone();
        Variant::new(name, move || prepared(&context, path, size))
    });
    let first =
        variants.next().unwrap_or_else(|| Variant::new("none", || Err(Unavailable::because("no variant"))));
    variants.fold(Subject::new(path, gate(context, path), first), Subject::with)
}

/// The operation is right, ten times over, and gives the same each time.
fn gate(context: &Context, path: &'static str) -> Gate {
    let context = context.clone();
    Gate::new(move || {
        let (passed, backend, why) = match operation(&context, path) {
            Ok((mut operation, backend)) => {
                let given: Vec<(u64, bool)> = (0..10).map(|_| operation(black_box(0))).collect();
                let right = given.iter().filter(|g| g.1 && g.0 == given[0].0).count() as u64;
                (right, backend, "the operation failed, or gave something else".to_owned())
            }
            Err(why) => (0, EQUALS[0].to_owned(), why.to_string()),
        };
        Ok(vec![GateRow {
            what: "the operation is right".to_owned(),
            backend,
            passed,
            failed: 10 - passed,
            skipped: 0,
            why: if passed == 10 { String::new() } else { why },
        }])
    })
}

/// All subjects of real work.
pub(crate) fn subjects(context: &Context) -> Vec<Subject> {
    PATHS.iter().map(|(path, _)| subject(context, path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operations_are_right_and_a_failure_would_be_seen() {
        let context = Context::new(lanework_cpu::Settings::default());
        for (path, _) in PATHS {
            let rows = gate(&context, path).pass().expect("passes").rows().to_vec();
            assert!(rows.iter().map(|row| row.passed).sum::<u64>() == 10, "{path}");
            // Another number than 0 is another message, or another nonce.
            let (mut run, _) = operation(&context, path).expect("here");
            let (given, right) = run(0);
            assert!(right && run(1) != (given, true), "{path} does not depend on what it is given");
        }
    }
}
