//! Restarts and corrupted inputs on the emulated device, for every set.
#![forbid(unsafe_code)]

use lanework_cuda::Emulation;
use lanework_mayo::{Engine, Error, Params, PublicKey, Round, SecretKey, Set, Signature};
use zeroize::Zeroizing;

use super::{Batch, OPTIONS, gpu, plain};
use crate::{Gpu, GpuSigners, GpuVerifiers, Options, Ring};

/// By the key below, the first system of the message "restart N" has too small a rank. Found by trying: one message in
/// a few hundred to a million.
fn restarting(params: &Params) -> u32 {
    match (params.round(), params.set()) {
        (Round::Three, Set::Mayo1) => 27,
        (Round::Three, Set::Mayo2) => 684,
        (Round::Three, Set::Mayo3) => 421,
        (Round::Three, Set::Mayo5) => 8965,
        (Round::Two, Set::Mayo1) => 5285,
        (Round::Two, Set::Mayo2) => 145_057,
        (Round::Two, Set::Mayo3) => 1021,
        (Round::Two, Set::Mayo5) => 1769,
    }
}

/// Five, of which the fourth takes a second attempt.
pub(super) fn with_a_restart(params: &'static Params) -> Batch {
    let seed: Vec<u8> = (0..params.salt_bytes()).map(|i| (i * 151 + 77) as u8).collect();
    let mut batch = Batch::new(params, 5);
    batch.keys[3] = SecretKey::from_seed(params, &seed).unwrap();
    batch.messages[3] = format!("restart {}", restarting(params)).into_bytes();
    batch.randomizers[3] = Zeroizing::new(vec![0x42; params.salt_bytes()]);
    batch
}

#[test]
fn restarts_give_what_the_cpu_gives_in_every_set() {
    for params in Params::all() {
        let (gpu, _) = gpu(Emulation::default(), Options { ring: Ring::Operations(2), ..OPTIONS });
        restarts(&gpu, params);
    }
}

/// A batch with one further attempt, by compact and by expanded keys.
pub(crate) fn restarts(gpu: &Gpu, params: &'static Params) {
    let batch = with_a_restart(params);
    let what = params.name();
    let expected: Vec<_> = (0..5).map(|i| Ok(batch.signature(&batch.keys[i], i))).collect();
    let held = gpu.expand_secret(&batch.keys).unwrap();
    for signers in [GpuSigners::Each(&batch.keys), GpuSigners::Of(&held, &[0, 1, 2, 3, 4])] {
        let (signed, tally) = batch.sign(gpu, signers);
        assert_eq!((tally.restarts, tally.device, tally.trouble), (1, 5, None), "{what}");
        assert!(signed == expected, "{what}");
    }
}

/// Flips bit `bit` from the start, or from the end if it is negative.
fn flip(bytes: &mut [u8], bit: isize) {
    let bit = bit.rem_euclid(bytes.len() as isize * 8) as usize;
    bytes[bit / 8] ^= 1 << (bit % 8);
}

#[test]
fn corrupted_inputs_are_refused_in_every_set() {
    for params in Params::all() {
        corrupted(&plain().0, params);
    }
}

/// Signatures, keys and messages with a bit changed, by compact and by expanded keys.
pub(crate) fn corrupted(gpu: &Gpu, params: &'static Params) {
    let (salt, public_bytes) = (params.salt_bytes() as isize * 8, params.public_key_bytes());
    let mut batch = Batch::new(params, 12);
    let mut public: Vec<PublicKey> = batch.keys.iter().map(|k| k.public_key(Engine::best())).collect();
    let mut signatures: Vec<Signature> = (0..12).map(|i| batch.signature(&batch.keys[i], i)).collect();
    // The first and the last bit of s, of the salt and of the key's seed, the first and the last vector of P3.
    for (i, bit) in [(1, 0), (2, -salt - 1), (3, -salt), (4, -1)] {
        let mut bytes = signatures[i].clone().into_bytes();
        flip(&mut bytes, bit);
        signatures[i] = Signature::from_bytes(params, &bytes).unwrap();
    }
    for (i, bit) in [(5, 0), (6, 127), (7, 128), (8, -1)] {
        let mut bytes = public[i].as_bytes().to_vec();
        flip(&mut bytes, bit);
        public[i] = PublicKey::from_bytes(params, &bytes).unwrap();
    }
    flip(&mut batch.messages[9], 3);
    signatures[10] = Signature::from_bytes(params, &vec![0; params.signature_bytes()]).unwrap();
    public[11] = PublicKey::from_bytes(params, &vec![0; public_bytes]).unwrap();
    let on_cpu = |i: usize| public[i].verify(Engine::best(), &batch.messages[i], &signatures[i]);
    let expected: Vec<Result<(), Error>> = (0..12).map(on_cpu).collect();
    assert!(expected[0].is_ok() && expected[1..].iter().all(|v| *v == Err(Error::Refused)));
    let held = gpu.expand_public(&public).unwrap();
    let which: Vec<usize> = (0..12).collect();
    for verifiers in [GpuVerifiers::Each(&public), GpuVerifiers::Of(&held, &which)] {
        let (verdicts, tally) = gpu.verify(verifiers, &batch.messages, &signatures).unwrap();
        assert_eq!((tally.device, tally.trouble), (12, None), "{}", params.name());
        assert!(verdicts == expected, "{}: {verdicts:?}", params.name());
    }
}
