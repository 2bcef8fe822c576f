//! The checks that every backend must pass, as functions: the tests, the command and the laboratory call the same ones.
//!
//! Each returns a [`Row`]. Inputs come from a seeded generator, so that a failure can be repeated. The oracle is
//! [`crate::internals::spec`], which shares no code with any backend.
#![forbid(unsafe_code)]

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::backend::Engine;
use crate::error::Error;
use crate::internals::known::mgm::{MESSAGES, Message};
use crate::internals::known::modes::{Answer, LEGACY, MAGMA};
use crate::internals::known::{array, bytes};
use crate::key::Keyed;
use crate::mgm::Mgm;

pub use lanework_cpu::check::{Depth, Row};

mod batches;
mod kernels;
mod refusals;
pub(crate) mod streams;
#[cfg(test)]
mod tests;

pub use batches::batches;
pub use kernels::{blocks, counters, lanes, products};
pub use refusals::{damage, refusals};
pub use streams::{aead, codes, pieces, streams};

/// Reproducible pseudorandom numbers. Every check has its own, the same on every backend.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        core::array::from_fn(|_| self.next() as u8)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Lengths in bytes: around blocks, sections of 1 KiB and whole batches of every backend; in full depth, all up to 300.
fn lengths(depth: Depth, numbers: &mut Numbers) -> Vec<usize> {
    let (mut all, around): (Vec<usize>, &[usize]) = match depth {
        Depth::Quick => (vec![0, 1, 7, 8, 9, 24, 63, 65, 129], &[1024, 4096]),
        Depth::Full => ((0..=300).collect(), &[512, 1024, 2048, 4096, 8192, 16_384]),
    };
    for &n in around {
        all.extend([n - 1, n, n + 1, n + 8, n + numbers.below(200)]);
    }
    all
}

/// Messages longer than this are left for [`Depth::Full`].
const QUICK_BYTES: usize = 1 << 16;

/// Answers from the standards and from other implementations' tests, both ways, whole and cut.
#[must_use]
pub fn known_answers(engine: Engine, depth: Depth) -> Row {
    let answers: Vec<Answer> = MAGMA.iter().chain(LEGACY).copied().collect();
    known_answers_of(engine, depth, &answers, MESSAGES)
}

/// The same for a choice of answers.
#[must_use]
pub fn known_answers_of(engine: Engine, depth: Depth, answers: &[Answer], messages: &[Message]) -> Row {
    let mut row = Row::new("known answers", engine.name());
    let kept = |a: &&Answer| depth == Depth::Full || a.plain.zeros <= QUICK_BYTES;
    for answer in answers.iter().filter(kept) {
        for cuts in [&[][..], &[1016, 5, 8]] {
            let holds = answer.holds(engine, cuts);
            row.case(holds == Ok(true), || {
                format!("{} ({}) in pieces of {cuts:?}: {holds:?}", answer.name, answer.source)
            });
        }
    }
    for m in messages {
        let (nonce, aad, plain) = (bytes(m.nonce), bytes(m.aad), bytes(m.plaintext));
        let mut data = plain.clone();
        let done = Mgm::with(&array(m.key), 8, engine).and_then(|mgm| {
            let tag = mgm.seal(&nonce, &aad, &mut data)?;
            let sealed = data == bytes(m.ciphertext) && tag.as_slice() == bytes(m.tag);
            mgm.open(&nonce, &aad, &mut data, tag.as_slice())?;
            Ok(sealed && data == plain)
        });
        row.case(done == Ok(true), || format!("{}: {done:?}", m.source));
    }
    row
}

/// Every check on one backend; passes on each row when it is done.
pub fn run(engine: Engine, depth: Depth, each: &mut dyn FnMut(Row)) {
    each(known_answers(engine, depth));
    each(blocks(engine, depth));
    each(counters(engine, depth));
    each(lanes(engine, depth));
    each(products(engine, depth));
    each(streams(engine, depth));
    each(codes(engine, depth));
    each(aead(engine, depth));
    each(pieces(engine, depth));
    each(batches(engine, depth));
    each(refusals(engine));
    each(damage(engine, depth));
}

/// Whether a key uses the backend that was chosen for it.
fn runs_here(key: &impl Keyed, engine: Engine) -> bool {
    key.backend() == engine.name()
}

/// A call's outcome, with the bytes that it produced.
fn done(result: Result<(), Error>, data: Vec<u8>) -> Result<Vec<u8>, Error> {
    result.map(|()| data)
}
