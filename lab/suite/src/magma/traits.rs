//! The RustCrypto project's traits against the direct calls, on the backend that is chosen: what generic code costs.
#![forbid(unsafe_code)]

use std::hint::black_box;

use cipher::{Array, BlockCipherEncrypt, InnerIvInit, StreamCipher, StreamCipherSeek};
use lanework_magma::modes::hazmat::EcbEncryptor;
use lanework_magma::modes::{Ctr, Stream};
use lanework_magma::{Engine, Limits, Magma};
use lanework_race::subject::{Facts, Runnable, Subject, Unavailable, Variant, work};

use super::{Filler, choose, gate};
use crate::Context;

/// Bytes of the text, in place.
const BYTES: usize = 16_384;

type Make = fn(Engine) -> Box<dyn Runnable>;

/// Block by block, and counter mode; the direct call is the baseline.
pub(super) fn subjects(context: &Context) -> Vec<Subject> {
    let engine = choose(&context.cpu, context.settings.select("magma"));
    let blocks: [(&str, Make); 2] = [("", direct_blocks), ("+encrypt_blocks", trait_blocks)];
    let streams: [(&str, Make); 3] =
        [("", direct_stream), ("+StreamCipher", trait_stream), ("+ctr-package", generic_stream)];
    vec![
        subject(context, "magma/encrypt-blocks/16384", &engine, &blocks),
        subject(context, "magma/stream-cipher/16384", &engine, &streams),
    ]
}

fn subject(
    context: &Context,
    path: &str,
    engine: &Result<Engine, Unavailable>,
    ways: &[(&str, Make)],
) -> Subject {
    let backend = engine.as_ref().map_or("best", Engine::name);
    let mut variants = ways.iter().map(|(suffix, make)| {
        let (engine, make) = (engine.clone(), *make);
        Variant::new(format!("{backend}{suffix}"), move || Ok(make(engine.clone()?)))
    });
    let direct =
        variants.next().unwrap_or_else(|| Variant::new("none", || Err(Unavailable::because("no way"))));
    let subject = Subject::new(path, gate(context), direct).bytes(BYTES as u64);
    variants.fold(subject, Subject::with)
}

fn facts(engine: Engine) -> impl Fn() -> Facts {
    move || Facts { backend: engine.name().to_owned(), notes: Vec::new() }
}

fn key(engine: Engine) -> Magma {
    Magma::with(&Filler::new(1).key(), engine).with_limits(Limits::Unlimited)
}

fn text() -> Vec<u8> {
    Filler::new(2).bytes(BYTES)
}

fn direct_blocks(engine: Engine) -> Box<dyn Runnable> {
    let (mut text, mut mode) = (text(), EcbEncryptor::with_key(key(engine)));
    work(move || assert!(black_box(mode.apply(black_box(&mut text))).is_ok()), facts(engine))
}

fn trait_blocks(engine: Engine) -> Box<dyn Runnable> {
    let (text, key) = (text(), key(engine));
    let mut blocks: Vec<Array<u8, _>> =
        text.chunks_exact(8).map(|b| Array(core::array::from_fn(|i| b[i]))).collect();
    work(move || key.encrypt_blocks(black_box(&mut blocks)), facts(engine))
}

/// Each message begins at the first block again: a race is longer than one IV's keystream.
fn direct_stream(engine: Engine) -> Box<dyn Runnable> {
    let (mut text, key) = (text(), key(engine));
    work(
        move || {
            let done = Ctr::with_key(&key, &[1; 4]).and_then(|mut ctr| ctr.apply(black_box(&mut text)));
            assert!(black_box(done).is_ok());
        },
        facts(engine),
    )
}

fn trait_stream(engine: Engine) -> Box<dyn Runnable> {
    let (mut text, ctr) = (text(), Ctr::with_key(key(engine), &[1; 4]));
    let mut ctr = ctr.expect("an IV of 4 bytes");
    work(
        move || {
            let sought = ctr.try_seek(0u64);
            let done = ctr.try_apply_keystream(black_box(&mut text));
            assert!(sought.is_ok() && black_box(done).is_ok());
        },
        facts(engine),
    )
}

fn generic(engine: Engine) -> ctr::Ctr64BE<Magma> {
    ctr::Ctr64BE::from_core(ctr::CtrCore::inner_iv_init(key(engine), &Array([1, 1, 1, 1, 0, 0, 0, 0])))
}

/// The package `ctr` over our block cipher; its counter of 64 bits does not end.
fn generic_stream(engine: Engine) -> Box<dyn Runnable> {
    let mut text = text();
    let mut ctr = generic(engine);
    work(move || assert!(black_box(ctr.try_apply_keystream(black_box(&mut text))).is_ok()), facts(engine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_give_the_same_keystream() {
        let engine = Engine::best();
        let (mut a, mut b, mut c) = (text(), text(), text());
        Ctr::with_key(key(engine), &[1; 4]).expect("an IV").apply(&mut a).expect("short");
        Ctr::with_key(key(engine), &[1; 4]).expect("an IV").apply_keystream(&mut b);
        generic(engine).apply_keystream(&mut c);
        assert!(a == b && a == c);
    }
}
