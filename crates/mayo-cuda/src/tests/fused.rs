//! Expansion beside and within products on the emulated device: the same results, by the requested kernels.
#![forbid(unsafe_code)]

use lanework_cuda::{Control, Device, Emulation, Order};
use lanework_mayo::{Engine, Params, PublicKey, Round, Set, Signature};

use super::every_set::with_a_restart;
use super::{Batch, OPTIONS, agrees, gpu};
use crate::check::{self, Depth};
use crate::launch::fuse::{Fused, fused_shape};
use crate::launch::shape::{self, Products};
use crate::{Expand, Gpu, GpuSigners, GpuVerifiers, Options, Release, Ring};

/// A block's shared memory on sm_90; every operation is fused there.
const LARGE: u32 = 227 * 1024;
const FUSED: Options = Options { expand: Expand::Fused, ..OPTIONS };

fn fused(order: Order, options: Options) -> (Gpu, Control) {
    gpu(Emulation { shared_per_block: LARGE, multiprocessors: 1, order, ..Emulation::default() }, options)
}

/// The launches of a kernel from launch `before` on.
fn count(control: &Control, before: usize, name: &str, params: &Params) -> usize {
    let name = format!("mayo_{name}_{}", params.index());
    control.launched()[before..].iter().filter(|l| l.kernel == name).count()
}

#[test]
fn host_and_fused_kernels_agree_on_sizes() {
    let (device, _) = Device::emulated(Emulation::default());
    let said = Fused::shapes(&device, &device.module(&crate::launch::IMAGE).unwrap()).unwrap();
    for p in Params::all() {
        let ours: Vec<u32> = [Products::Keygen, Products::Sign, Products::Verify]
            .into_iter()
            .flat_map(|what| {
                let (threads, shared) = fused_shape(p, what);
                assert!(threads <= 512 && shared <= LARGE as usize, "{} {what:?}", p.name());
                [threads, shared as u32]
            })
            .collect();
        assert_eq!(ours, said[6 * p.index()..][..6], "{}", p.name());
    }
}

/// Public keys, signatures and verdicts of a set, only by the fused kernels.
fn fused_alone(params: &'static Params, order: Order) {
    let what = format!("{} in {order:?}", params.name());
    let (gpu, control) = fused(order, FUSED);
    assert_eq!(gpu.fused(params), Ok([true; 3]), "{what}");
    let (before, batch) = (control.launched().len(), Batch::new(params, 5));
    let (public, tally) = gpu.keygen(&batch.keys).unwrap();
    assert_eq!((tally.device, tally.trouble), (5, None), "{what}");
    let expected: Vec<PublicKey> = batch.keys.iter().map(|k| k.public_key(Engine::best())).collect();
    assert!(public == expected, "public keys of {what}");
    let (signed, tally) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
    assert_eq!((tally.device, tally.trouble), (5, None), "{what}");
    let expected: Vec<_> = (0..5).map(|i| Ok(batch.signature(&batch.keys[i], i))).collect();
    assert!(signed == expected, "signatures of {what}");
    // A corrupted one, one of another message, and a key that is not the signer's.
    let mut signatures: Vec<Signature> = signed.into_iter().flatten().collect();
    let mut bytes = signatures[1].clone().into_bytes();
    bytes[params.n() * params.k() / 4] ^= 0x10;
    signatures[1] = Signature::from_bytes(params, &bytes).unwrap();
    signatures[3] = batch.signature(&batch.keys[3], 2);
    let mut keys = public;
    let mut bytes = keys[4].as_bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    keys[4] = PublicKey::from_bytes(params, &bytes).unwrap();
    let (verdicts, tally) = gpu.verify(GpuVerifiers::Each(&keys), &batch.messages, &signatures).unwrap();
    assert_eq!((tally.device, tally.trouble), (5, None), "{what}");
    let valid: Vec<bool> = verdicts.iter().map(Result::is_ok).collect();
    assert_eq!(valid, [true, false, true, false, false], "verdicts of {what}");
    // Every signature is verified from its seed before it is returned.
    for (name, times) in [("fused_keygen", 2), ("fused_sign", 1), ("fused_verify", 2)] {
        assert_eq!(count(&control, before, name, params), times, "{name} of {what}");
    }
    for name in ["keygen", "sign", "verify", "place"] {
        assert_eq!(count(&control, before, name, params), 0, "{name} of {what}");
    }
    // Lambda has its own kernel: when signing and when verifying.
    assert_eq!(count(&control, before, "expand", params), if params.linear_term() { 2 } else { 0 }, "{what}");
    // One multiprocessor, five operations: a block continues with the next one. Memory of secrets is cleared.
    for launch in control.launched()[before..].iter().filter(|l| l.kernel.starts_with("mayo_fused")) {
        let cleared = !launch.kernel.starts_with("mayo_fused_verify");
        assert!(launch.blocks < 3 && launch.collectives > 0, "{launch:?}");
        assert_eq!(launch.left == 0, cleared, "{launch:?}");
    }
}

macro_rules! fused_alone {
    ($($name:ident: $round:ident $set:ident),*) => {$(
        #[test]
        fn $name() {
            for order in [Order::Forward, Order::Reverse, Order::Shuffled(11)] {
                fused_alone(Params::of(Round::$round, Set::$set), order);
            }
        }
    )*};
}
fused_alone!(
    fused_kernels_of_mayo1_round3: Three Mayo1,
    fused_kernels_of_mayo2_round3: Three Mayo2,
    fused_kernels_of_mayo3_round3: Three Mayo3,
    fused_kernels_of_mayo5_round3: Three Mayo5,
    fused_kernels_of_mayo1_round2: Two Mayo1,
    fused_kernels_of_mayo2_round2: Two Mayo2,
    fused_kernels_of_mayo3_round2: Two Mayo3,
    fused_kernels_of_mayo5_round2: Two Mayo5
);

#[test]
fn odd_batch_sizes_fused_give_what_the_cpu_gives() {
    let (gpu, _) = fused(Order::Shuffled(3), FUSED);
    for count in [0, 1, 31, 32, 33, 131, 132, 133] {
        agrees(&gpu, Params::of(Round::Three, Set::Mayo2), count);
    }
}

#[test]
fn known_answers_come_out_of_fused_kernels() {
    let (gpu, control) = fused(Order::Forward, Options { expand: Expand::Fused, ..check::ALONE });
    let params = Params::of(Round::Two, Set::Mayo1);
    let row = check::known_answers(&gpu, params, Depth::Full);
    assert!(row.ok() && row.passed == 100, "{row:?}");
    assert!(count(&control, 0, "fused_sign", params) > 0);
}

#[test]
fn further_attempts_are_made_by_fused_kernels_too() {
    let params = Params::of(Round::Three, Set::Mayo1);
    let batch = with_a_restart(params);
    let (gpu, control) = fused(Order::Forward, FUSED);
    gpu.test(params).unwrap();
    let before = control.launched().len();
    let (signed, tally) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
    assert_eq!((tally.restarts, tally.device), (1, 5));
    let expected: Vec<_> = (0..5).map(|i| Ok(batch.signature(&batch.keys[i], i))).collect();
    assert!(signed == expected);
    assert_eq!(count(&control, before, "fused_sign", params), 2);
}

#[test]
fn what_does_not_fit_keeps_its_kernels() {
    // As on sm_89: 99 KiB.
    for (round, set, fits) in [
        (Round::Three, Set::Mayo1, [true, false, true]),
        (Round::Three, Set::Mayo2, [false, false, true]),
        (Round::Three, Set::Mayo5, [false; 3]),
    ] {
        let params = Params::of(round, set);
        let (gpu, control) = gpu(Emulation::default(), FUSED);
        assert_eq!(gpu.fused(params), Ok(fits), "{}", params.name());
        let before = control.launched().len();
        agrees(&gpu, params, 2);
        for (name, fits) in ["keygen", "sign", "verify"].into_iter().zip(fits) {
            let own = count(&control, before, &format!("fused_{name}"), params);
            assert_eq!(own > 0, fits, "{name} of {}", params.name());
        }
        assert!(count(&control, before, "sign", params) > 0, "{}", params.name());
    }
}

#[test]
fn fused_operations_take_no_memory_for_matrices() {
    let params = Params::of(Round::Two, Set::Mayo2);
    let batch = Batch::new(params, 12);
    let options = Options { chunk: 12, ring: Ring::Whole, ..FUSED };
    let limit = 5 * crate::bytes_in_flight(params)[1] as u64;
    for (expand, halved) in [(Expand::Alone, true), (Expand::Fused, false)] {
        let (gpu, control) = fused(Order::Forward, Options { expand, ..options });
        gpu.test(params).unwrap();
        control.limit_memory(limit);
        let (_, tally) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
        assert_eq!((tally.halvings > 0, tally.device), (halved, 12), "{expand:?}: {tally:?}");
    }
}

#[test]
fn a_fused_kernel_that_computes_wrongly_is_not_used() {
    let params = Params::of(Round::Two, Set::Mayo2);
    let (gpu, control) = fused(Order::Forward, OPTIONS);
    gpu.test(params).unwrap();
    // Its own self-test runs first, and finds a wrong public key; the other kernels have passed theirs.
    let gpu = gpu.with(FUSED);
    control.corrupt_download(0, 100, 1);
    assert!(gpu.test(params).is_err_and(|why| why.contains("public")) && gpu.device().is_dead());
}

#[test]
fn a_block_beside_products_has_half_the_threads_where_there_is_room() {
    let params = Params::of(Round::Two, Set::Mayo2);
    for (shared, threads) in [(LARGE, 512), (99 << 10, 1024)] {
        let how = Emulation { shared_per_block: shared, ..Emulation::default() };
        let (gpu, control) = gpu(how, Options { expand: Expand::Beside, ..OPTIONS });
        gpu.test(params).unwrap();
        let before = control.launched().len();
        let batch = Batch::new(params, 3);
        let (signed, _) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
        let expected: Vec<_> = (0..3).map(|i| Ok(batch.signature(&batch.keys[i], i))).collect();
        assert!(signed == expected);
        let launched = control.launched();
        let expands = launched[before..].iter().filter(|l| l.kernel.starts_with("mayo_expand"));
        let all: Vec<u32> = expands.map(|l| l.threads).collect();
        assert!(!all.is_empty() && all.iter().all(|&t| t == threads), "{all:?}");
        assert!(shape::EXPAND_SHARED + shape::products_shared(params, Products::Sign) > 99 << 10);
    }
}

#[test]
fn unverified_signatures_are_fused_too() {
    let params = Params::of(Round::Three, Set::Mayo2);
    let (gpu, control) = fused(Order::Forward, FUSED);
    gpu.test(params).unwrap();
    let (before, batch) = (control.launched().len(), Batch::new(params, 2));
    let signers = GpuSigners::Each(&batch.keys);
    let (signed, _) = gpu
        .sign_randomized(params, signers, &batch.messages, &batch.randomizers, Release::Unverified)
        .unwrap();
    let expected: Vec<_> = (0..2).map(|i| Ok(batch.signature(&batch.keys[i], i))).collect();
    assert!(signed == expected);
    assert_eq!(
        (count(&control, before, "fused_sign", params), count(&control, before, "fused_verify", params)),
        (1, 0)
    );
}
