//! Backends with planted faults: signing must emit nothing, and the checks must find the fault.
#![forbid(unsafe_code)]

use crate::backend::operands::{Finish, Keygen, Matrices, Sign, Solve, Verify};
use crate::backend::{Engine, altered};
use crate::backend::{Kernels, SetKernels, portable};
use crate::digest::Message;
use crate::error::Error;
use crate::expanded::SigningKey;
use crate::hazmat::{sign_deterministic, sign_deterministic_with, sign_with_randomizer};
use crate::internals::check::{self, Depth, Row};
use crate::keys::{SecretKey, SignOptions};
use crate::params::{Params, Round, Set};
use crate::scheme::{self, SecretSource};
use crate::sys::Block;
use crate::workspace::left;

/// The set that the faults are planted in.
const SET: Set = Set::Mayo2;

fn params() -> &'static Params {
    Params::of(Round::Three, SET)
}

fn sound() -> &'static SetKernels {
    &portable::KERNELS.sets[params().index()]
}

/// The portable backend with one set's kernels changed.
fn engine(name: &'static str, plant: impl FnOnce(&mut SetKernels)) -> Engine {
    let mut kernels = Kernels { expand: portable::KERNELS.expand, sets: portable::KERNELS.sets };
    plant(&mut kernels.sets[params().index()]);
    altered(name, kernels)
}

/// Every system has too small a rank. Its x must not be released either.
fn singular(Solve { r, x, .. }: Solve<'_>) -> bool {
    x.copy_from_slice(r);
    false
}

/// One flipped bit in the oil part of the signature.
fn flipped(Finish { o, vinegar, x, s }: Finish<'_>) {
    sound().finish(Finish { o, vinegar, x, s });
    s[params().n() - 1] ^= 1;
}

fn unsolvable() -> Engine {
    engine("unsolvable", |k| k.solve = singular)
}

fn flipping() -> Engine {
    engine("flipping", |k| k.finish = flipped)
}

fn key() -> SecretKey {
    SecretKey::from_seed(params(), &[7; 24]).unwrap()
}

#[test]
fn exhausted_attempts_emit_nothing() {
    let key = key();
    let expanded = SigningKey::new(unsolvable(), &key);
    let options = SignOptions::default();
    assert_eq!(key.sign(unsolvable(), b"m"), Err(Error::Exhausted));
    assert_eq!(key.sign_message(unsolvable(), b"m"), Err(Error::Exhausted));
    assert_eq!(expanded.sign(b"m"), Err(Error::Exhausted));
    assert_eq!(sign_deterministic(&expanded, b"m"), Err(Error::Exhausted));
    assert_eq!(sign_with_randomizer(&(unsolvable(), &key), b"m", &[1; 24], options), Err(Error::Exhausted));
    // The signature's buffer holds neither s nor salt.
    let mut buffer = vec![0xff; params().signature_bytes()];
    let compact = SecretSource::Compact;
    let signed = scheme::sign(
        unsolvable().kernels().scheme(params()),
        key.expose_seed(),
        compact,
        Message::Whole(b"m"),
        &[1; 24],
        &mut buffer,
    );
    assert_eq!(signed, Err(Error::Exhausted));
    assert!(buffer.iter().all(|&b| b == 0));
}

#[test]
fn a_fault_is_found_before_anything_is_emitted() {
    let key = key();
    let expanded = SigningKey::new(flipping(), &key);
    let verifying = SignOptions { verify: true };
    // The signature is not left in the workspace either.
    let is_found = |signed| {
        assert_eq!(signed, Err(Error::Fault));
        assert_eq!(left().0, 0);
    };
    is_found(sign_deterministic(&(flipping(), &key), b"m"));
    is_found(sign_deterministic(&expanded, b"m"));
    is_found(sign_with_randomizer(&(flipping(), &key), b"m", &[1; 24], verifying));
    is_found(sign_with_randomizer(&expanded, b"m", &[1; 24], verifying));
    // Without the check the fault is released, so the check caused the two results above.
    let public = key.public_key(Engine::portable());
    let faulty = sign_deterministic_with(&expanded, b"m", SignOptions { verify: false }).unwrap();
    assert_eq!(public.verify(Engine::portable(), b"m", &faulty), Err(Error::Refused));
}

#[test]
fn the_same_engines_sign_where_no_fault_is_planted() {
    let elsewhere = SecretKey::from_seed(Params::of(Round::Two, SET), &[7; 24]).unwrap();
    for engine in [unsolvable(), flipping()] {
        assert!(sign_deterministic(&(engine, &elsewhere), b"m").is_ok(), "{}", engine.name());
    }
}

fn rows(engine: Engine) -> Vec<Row> {
    let mut rows = Vec::new();
    check::run(engine, params(), Depth::Quick, &mut |row| rows.push(row));
    rows
}

fn failing(engine: Engine) -> Vec<String> {
    rows(engine).into_iter().filter(|r| !r.ok()).map(|r| r.what).collect()
}

fn assert_fails(engine: Engine, checks: &[&str]) {
    let failing = failing(engine);
    for check in checks {
        assert!(
            failing.iter().any(|f| f.starts_with(check)),
            "{}: {check} passed; {failing:?}",
            engine.name()
        );
    }
}

#[test]
fn the_sound_backend_passes_every_check() {
    assert_eq!(failing(engine("sound", |_| ())), Vec::<String>::new());
}

#[test]
fn the_checks_find_a_wrong_public_key() {
    fn wrong(Keygen { p, o, p3, scratch }: Keygen<'_>) {
        sound().keygen(Keygen { p, o, p3, scratch });
        *p3.last_mut().unwrap() ^= 0x80;
    }
    let engine = engine("wrong key", |k| k.keygen = wrong);
    assert_fails(engine, &["known answer", "agreement"]);
}

#[test]
fn the_checks_find_a_wrong_signature() {
    assert_fails(flipping(), &["known answer", "agreement", "expanded"]);
    assert_fails(
        unsolvable(),
        &["known answer", "agreement", "expanded", "flipped signature", "wrong lengths"],
    );
}

#[test]
fn the_checks_find_a_verifier_that_overlooks_a_bit() {
    fn blind(Verify { key: Matrices { p, p3 }, s, lambda, u, scratch }: Verify<'_, Matrices<'_>>) {
        let mut s = s.to_vec();
        s[0] &= 0xe;
        sound().verify(Verify { key: Matrices { p, p3 }, s: &s, lambda, u, scratch });
    }
    let engine = engine("blind", |k| k.verify = blind);
    // Whether the sound signature or the flipped one is now refused depends on the bit; either way a row shows it.
    assert_fails(engine, &["flipped signature bits"]);
}

#[test]
fn the_checks_find_an_expansion_that_disagrees() {
    fn wrong(Sign { key: layout, o, vinegar, lambda, m, u, scratch }: Sign<'_, &[Block]>) {
        sound().sign_expanded(Sign { key: layout, o, vinegar, lambda, m, u, scratch });
        u[0].0[0] ^= 1;
    }
    let engine = engine("wrong expansion", |k| k.sign_expanded = wrong);
    assert_fails(engine, &["expanded against compact"]);
}
