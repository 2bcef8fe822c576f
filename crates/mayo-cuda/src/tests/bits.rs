//! Verification by products of bits on the emulated device, against the CPU.
#![forbid(unsafe_code)]

use lanework_cuda::{Emulation, Order};
use lanework_mayo::{Engine, Error, Params, PublicKey, Round, Set, Signature};

use super::{Batch, OPTIONS, gpu};
use crate::{GpuError, GpuVerifiers, Multiply, Options};

const BITS: Options = Options { multiply: Multiply::Bits, ..OPTIONS };

/// The kernels of a verification's products.
const VERIFY: [&str; 3] = ["mayo_verify", "mayo_bits_each", "mayo_bits_one"];

fn flipped(signature: &Signature, bit: usize) -> Signature {
    let mut bytes = signature.clone().into_bytes();
    bytes[bit / 8] ^= 1 << (bit % 8);
    Signature::from_bytes(signature.params(), &bytes).unwrap()
}

/// `count` signatures under three keys in turn and under the second alone, a third of them corrupted, and their
/// launches.
fn agrees(how: Emulation, params: &'static Params, count: usize) {
    let what = format!("{}, {count} signatures, {:?}", params.name(), how.order);
    let (gpu, control) = gpu(how, BITS);
    let batch = Batch::new(params, count.max(3));
    let public: Vec<PublicKey> = batch.keys[..3].iter().map(|k| k.public_key(Engine::best())).collect();
    let held = gpu.expand_public(&public).unwrap();
    assert_eq!((held.len(), held.multiply()), (3, Multiply::Bits));
    let bits = if count == 0 { 8 } else { batch.signature(&batch.keys[0], 0).as_bytes().len() * 8 };
    let spoilt = |i: usize| i % 3 == 1 || i + 1 == count && count > 2;
    let messages = &batch.messages[..count];
    let launched = || -> Vec<String> {
        let all = control.launched();
        let names = all.iter().map(|l| l.kernel.clone());
        names.filter(|n| VERIFY.iter().any(|v| n.starts_with(v))).collect()
    };
    let turns: Vec<usize> = (0..count).map(|i| i * 5 % 3).collect();
    let seconds = vec![1; count];
    for (which, each) in [(&turns, true), (&seconds, false)] {
        let signatures: Vec<Signature> = (0..count)
            .map(|i| batch.signature(&batch.keys[which[i]], i))
            .enumerate()
            .map(|(i, s)| if spoilt(i) { flipped(&s, (i * 389 + 5) % bits) } else { s })
            .collect();
        let before = launched().len();
        let (verdicts, tally) = gpu.verify(GpuVerifiers::Of(&held, which), messages, &signatures).unwrap();
        assert_eq!((tally.device, tally.trouble), (count, None), "{what}");
        for (i, verdict) in verdicts.iter().enumerate() {
            let expected = public[which[i]].verify(Engine::best(), &messages[i], &signatures[i]);
            assert_eq!(*verdict, expected, "{what}: {i}");
            assert_eq!(expected.is_err(), spoilt(i), "{what}: {i}");
        }
        // Chunks of forty: one launch each, and of one kernel, for a chunk of one has one key.
        let names = &launched()[before..];
        assert_eq!(names.len(), count.div_ceil(BITS.chunk), "{what}");
        let name = if each && count > 1 { "mayo_bits_each" } else { "mayo_bits_one" };
        assert!(names.iter().all(|n| *n == format!("{name}_{}", params.index())), "{what}: {names:?}");
    }
}

#[test]
fn odd_numbers_of_signatures_get_the_verdicts_of_the_cpu() {
    for count in [0, 1, 31, 32, 33] {
        agrees(Emulation::default(), Params::of(Round::Two, Set::Mayo2), count);
        agrees(Emulation::default(), Params::of(Round::Three, Set::Mayo2), count);
    }
}

#[test]
fn every_set_gets_the_verdicts_of_the_cpu_in_any_order_of_turns() {
    for params in Params::all() {
        agrees(Emulation::default(), params, 5);
        let order = if params.round() == Round::Three { Order::Reverse } else { Order::Shuffled(11) };
        agrees(Emulation { order, ..Emulation::default() }, params, 3);
    }
}

#[test]
fn a_bit_of_any_byte_spoils_a_signature() {
    let params = Params::of(Round::Two, Set::Mayo2);
    let batch = Batch::new(params, 1);
    let public = [batch.keys[0].public_key(Engine::best())];
    let good = batch.signature(&batch.keys[0], 0);
    let (gpu, _) = gpu(Emulation::default(), BITS);
    let held = gpu.expand_public(&public).unwrap();
    let length = params.signature_bytes();
    let mut signatures: Vec<Signature> = (0..length).map(|i| flipped(&good, i * 8 + i % 8)).collect();
    signatures.push(good);
    let messages = vec![batch.messages[0].clone(); length + 1];
    let (verdicts, _) = gpu.verify(GpuVerifiers::One(&held), &messages, &signatures).unwrap();
    let refused = verdicts.iter().filter(|v| **v == Err(Error::Refused)).count();
    assert_eq!((refused, verdicts[length].is_ok()), (length, true));
}

#[test]
fn a_bit_of_any_byte_spoils_a_key() {
    for params in Params::all() {
        let batch = Batch::new(params, 1);
        let public = batch.keys[0].public_key(Engine::best());
        let length = public.as_bytes().len();
        let spoil = |at: usize| {
            let mut bytes = public.as_bytes().to_vec();
            bytes[at] ^= 1 << (at % 8);
            PublicKey::from_bytes(params, &bytes).unwrap()
        };
        // The seed, and P3 from its first to its last byte.
        let mut keys: Vec<PublicKey> = (0..6).map(|i| spoil(i * (length - 1) / 5)).collect();
        keys.insert(3, public.clone());
        let (gpu, _) = gpu(Emulation::default(), BITS);
        let held = gpu.expand_public(&keys).unwrap();
        let which: Vec<usize> = (0..keys.len()).collect();
        let signatures = vec![batch.signature(&batch.keys[0], 0); keys.len()];
        let messages = vec![batch.messages[0].clone(); keys.len()];
        let (verdicts, _) = gpu.verify(GpuVerifiers::Of(&held, &which), &messages, &signatures).unwrap();
        for (i, verdict) in verdicts.iter().enumerate() {
            let expected = keys[i].verify(Engine::best(), &messages[i], &signatures[i]);
            assert_eq!((verdict, expected.is_ok()), (&expected, i == 3), "{}: {i}", params.name());
        }
    }
}

#[test]
fn many_keys_are_laid_a_part_at_a_time_and_take_no_more_than_they_say() {
    let params = Params::of(Round::Two, Set::Mayo2);
    let batch = Batch::new(params, 67);
    let public: Vec<PublicKey> = batch.keys.iter().map(|k| k.public_key(Engine::best())).collect();
    let (gpu, control) = gpu(Emulation::default(), Options { chunk: 20, ..BITS });
    let held = gpu.expand_public(&public).unwrap();
    // 11 blocks of rows by 6 of columns, 256 bytes of each of 8 words.
    assert_eq!(held.device_bytes(), 67 * 11 * 6 * 256 * 8);
    let name = format!("mayo_bits_lay_{}", params.index());
    // Twice the self-test's pair at most, then 67 in twenties.
    let laid = control.launched().iter().filter(|l| l.kernel == name).count();
    assert_eq!(laid, 1 + 4);
    let which: Vec<usize> = (0..67).rev().collect();
    let signatures: Vec<Signature> = (0..67).map(|i| batch.signature(&batch.keys[which[i]], i)).collect();
    let (verdicts, _) = gpu.verify(GpuVerifiers::Of(&held, &which), &batch.messages, &signatures).unwrap();
    assert!(verdicts.iter().all(Result::is_ok));
    let (verdicts, _) =
        gpu.verify(GpuVerifiers::Of(&held, &vec![66; 67]), &batch.messages, &signatures).unwrap();
    let valid: Vec<usize> = (0..67).filter(|&i| verdicts[i].is_ok()).collect();
    assert_eq!(valid, [0]);
}

#[test]
fn keys_are_used_as_they_were_laid() {
    let params = Params::of(Round::Two, Set::Mayo2);
    let batch = Batch::new(params, 2);
    let public: Vec<PublicKey> = batch.keys.iter().map(|k| k.public_key(Engine::best())).collect();
    let signatures: Vec<Signature> = (0..2).map(|i| batch.signature(&batch.keys[i], i)).collect();
    let (mut gpu, control) = gpu(Emulation::default(), BITS);
    let bits = gpu.expand_public(&public).unwrap();
    gpu.set_options(OPTIONS);
    let masks = gpu.expand_public(&public).unwrap();
    assert_eq!((bits.multiply(), masks.multiply()), (Multiply::Bits, Multiply::Masks));
    for (held, name) in [(&bits, "mayo_bits_each"), (&masks, "mayo_verify")] {
        let (verdicts, _) =
            gpu.verify(GpuVerifiers::Of(held, &[0, 1]), &batch.messages, &signatures).unwrap();
        assert_eq!(verdicts, [Ok(()), Ok(())]);
        let launched = control.launched();
        let last = launched.iter().rev().find(|l| VERIFY.iter().any(|v| l.kernel.starts_with(v))).unwrap();
        assert_eq!(last.kernel, format!("{name}_{}", params.index()));
    }
}

#[test]
fn architectures_that_emulate_the_instruction_get_masks_with_the_reason() {
    let params = Params::of(Round::Two, Set::Mayo2);
    let public = [Batch::new(params, 1).keys[0].public_key(Engine::best())];
    for (capability, here) in
        [((7, 5), false), ((8, 0), true), ((9, 0), true), ((10, 0), false), ((12, 0), false)]
    {
        let (gpu, _) = gpu(Emulation { capability, ..Emulation::default() }, BITS);
        let expected = if here { Multiply::Bits } else { Multiply::Masks };
        assert_eq!(gpu.expand_public(&public).unwrap().multiply(), expected, "{capability:?}");
        match Multiply::Bits.on(gpu.device().card()) {
            Ok(()) => assert!(here, "{capability:?}"),
            Err(why) => {
                assert!(!here && why.contains("products of bits need tensor cores"), "{capability:?}: {why}");
            }
        }
    }
}

#[test]
fn a_device_that_multiplies_bits_wrongly_is_not_used() {
    let params = Params::of(Round::Two, Set::Mayo2);
    let public = [Batch::new(params, 1).keys[0].public_key(Engine::best())];
    for download in 0..4 {
        let (gpu, control) = gpu(Emulation::default(), BITS);
        gpu.test(params).unwrap();
        control.corrupt_download(download, 0, 1);
        let failed = gpu.expand_public(&public);
        assert!(
            matches!(&failed, Err(GpuError::Unusable(why)) if why.contains("by products of bits")),
            "{download}"
        );
        assert!(gpu.device().is_dead(), "{download}");
    }
}
