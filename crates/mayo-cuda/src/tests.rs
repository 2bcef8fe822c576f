//! The device's kernels and the code around them on the emulated device, against the CPU and the published answers.
#![forbid(unsafe_code)]

mod bits;
pub(crate) mod every_set;
mod fused;
mod lanes;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod secrecy;
pub(crate) mod threads;
#[cfg(feature = "ptx")]
mod traffic;
mod verdicts;

use lanework_cuda::{Control, Device, Emulation, Order};
use lanework_mayo::hazmat::sign_with_randomizer;
use lanework_mayo::{Engine, Error, Params, PublicKey, Round, SecretKey, Set, SignOptions, Signature};
use zeroize::Zeroizing;

use self::every_set::with_a_restart;
use crate::check::{self, Depth};
use crate::{
    Expand, Fleet, FleetSigners, FleetVerifiers, Gpu, GpuError, GpuSigners, GpuVerifiers, Multiply, Options,
    Release, Ring, Tally,
};

/// Everything on the device, in chunks that no batch size below is a multiple of.
pub(crate) const OPTIONS: Options = Options {
    chunk: 40,
    streams: 3,
    ring: Ring::Operations(17),
    expand: Expand::Alone,
    multiply: Multiply::Masks,
    break_even: 0,
    cpu_share: 0.0,
    cpu_threads: 1,
    spot_check: 64,
};

fn gpu(how: Emulation, options: Options) -> (Gpu, Control) {
    on(Device::emulated(how), options)
}

/// The same on a device that is there.
pub(crate) fn on((device, control): (Device, Control), options: Options) -> (Gpu, Control) {
    (Gpu::of(device, Engine::best(), options).unwrap(), control)
}

fn plain() -> (Gpu, Control) {
    gpu(Emulation::default(), OPTIONS)
}

/// Different seeds, messages of different lengths and randomizers.
struct Batch {
    params: &'static Params,
    keys: Vec<SecretKey>,
    messages: Vec<Vec<u8>>,
    randomizers: Vec<Zeroizing<Vec<u8>>>,
}

fn bytes(count: usize, tag: usize, i: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 73 + i * 151 + i / 256 + tag * 29) as u8).collect()
}

impl Batch {
    fn new(params: &'static Params, count: usize) -> Batch {
        let salt = params.salt_bytes();
        Batch {
            params,
            keys: (0..count).map(|i| SecretKey::from_seed(params, &bytes(salt, 1, i)).unwrap()).collect(),
            messages: (0..count).map(|i| bytes(i % 200, 2, i)).collect(),
            randomizers: (0..count).map(|i| Zeroizing::new(bytes(salt, 3, i))).collect(),
        }
    }

    /// The CPU's signature of message `i` under `key`.
    fn signature(&self, key: &SecretKey, i: usize) -> Signature {
        let options = SignOptions::default();
        let (signer, randomizer) = ((Engine::best(), key), &self.randomizers[i]);
        sign_with_randomizer(&signer, &self.messages[i], randomizer, options).unwrap()
    }

    fn sign(&self, gpu: &Gpu, signers: GpuSigners<'_>) -> (Vec<Result<Signature, Error>>, Tally) {
        gpu.sign_randomized(self.params, signers, &self.messages, &self.randomizers, Release::Verified)
            .unwrap()
    }
}

fn all_known_answers(round: Round, set: Set) {
    let (gpu, control) = gpu(Emulation::default(), check::ALONE);
    let params = Params::of(round, set);
    gpu.test(params).unwrap();
    let tested = control.launched().len();
    let row = check::known_answers(&gpu, params, Depth::Full);
    assert!(row.ok() && row.passed == 100, "{row:?}");
    // One launch for all of them.
    let name = format!("mayo_verify_{}", params.index());
    let launched = control.launched();
    assert_eq!(
        launched[tested..].iter().filter(|l| l.kernel == name).count(),
        2,
        "when signing and when verifying"
    );
}

macro_rules! known_answers {
    ($($name:ident: $round:ident $set:ident),*) => {$(
        #[test]
        fn $name() {
            all_known_answers(Round::$round, Set::$set);
        }
    )*};
}
known_answers!(
    all_known_answers_of_mayo1_round3: Three Mayo1,
    all_known_answers_of_mayo2_round3: Three Mayo2,
    all_known_answers_of_mayo3_round3: Three Mayo3,
    all_known_answers_of_mayo5_round3: Three Mayo5,
    all_known_answers_of_mayo1_round2: Two Mayo1,
    all_known_answers_of_mayo2_round2: Two Mayo2,
    all_known_answers_of_mayo3_round2: Two Mayo3,
    all_known_answers_of_mayo5_round2: Two Mayo5
);

/// Keys, signatures by compact and by expanded keys, one and many, and verdicts on some that are corrupted.
pub(crate) fn agrees(gpu: &Gpu, params: &'static Params, count: usize) {
    let what = format!("{}, {count} operations", params.name());
    let batch = Batch::new(params, count);
    let (public, tally) = gpu.keygen(&batch.keys).unwrap();
    assert_eq!((tally.device, tally.trouble), (count, None), "{what}");
    let expected: Vec<PublicKey> = batch.keys.iter().map(|k| k.public_key(Engine::best())).collect();
    assert!(public == expected, "public keys of {what}");
    let (signed, tally) = batch.sign(gpu, GpuSigners::Each(&batch.keys));
    assert_eq!((tally.device, tally.trouble), (count, None), "{what}");
    let expected: Vec<_> = (0..count).map(|i| Ok(batch.signature(&batch.keys[i], i))).collect();
    assert!(signed == expected, "signatures of {what}");
    if count == 0 {
        let none = Error::Count { what: "keys", expected: 1, got: 0 };
        assert_eq!(gpu.expand_secret(&[]).unwrap_err(), GpuError::Batch(none));
        return;
    }
    // Three expanded keys in turn, and the first of them for all.
    let few = &batch.keys[..count.min(3)];
    let held = gpu.expand_secret(few).unwrap();
    assert!(held.public_keys() == &public[..few.len()]);
    let which: Vec<usize> = (0..count).map(|i| i * 7 % few.len()).collect();
    let (signed, tally) = batch.sign(gpu, GpuSigners::Of(&held, &which));
    assert_eq!((tally.device, tally.trouble), (count, None), "{what}");
    let expected: Vec<_> = (0..count).map(|i| Ok(batch.signature(&few[which[i]], i))).collect();
    assert!(signed == expected, "signatures of {what} with expanded keys");
    let (signed, _) = batch.sign(gpu, GpuSigners::One(&held));
    let expected: Vec<_> = (0..count).map(|i| Ok(batch.signature(&few[0], i))).collect();
    assert!(signed == expected, "signatures of {what} with one expanded key");

    let mut signatures: Vec<Signature> = signed.into_iter().map(Result::unwrap).collect();
    let spoil = |i: usize| i % 3 == 1;
    for (i, signature) in signatures.iter_mut().enumerate().filter(|(i, _)| spoil(*i)) {
        let mut bytes = signature.clone().into_bytes();
        let bit = i * 37 % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        *signature = Signature::from_bytes(params, &bytes).unwrap();
    }
    let verdicts: Vec<_> = (0..count).map(|i| if spoil(i) { Err(Error::Refused) } else { Ok(()) }).collect();
    let same = vec![public[0].clone(); count];
    let verifying = gpu.expand_public(&public[..few.len()]).unwrap();
    let firsts = vec![0; count];
    for verifiers in
        [GpuVerifiers::Each(&same), GpuVerifiers::One(&verifying), GpuVerifiers::Of(&verifying, &firsts)]
    {
        let (got, tally) = gpu.verify(verifiers, &batch.messages, &signatures).unwrap();
        assert!(got == verdicts, "verdicts of {what}");
        assert_eq!(tally.device, count, "{what}");
    }
}

/// None, one, and one more than a warp, a chunk and all streams' chunks hold; in the long run also those around them.
fn odd_batch_sizes(round: Round, set: Set) {
    let (gpu, _) = plain();
    let around: &[usize] = match std::env::var_os("LANEWORK_BATCHES") {
        Some(all) if all == "all" => &[31, 32, 39, 40, 80, 119, 120, 132, 133],
        _ => &[],
    };
    for &count in [0, 1, 33, 41, 121].iter().chain(around) {
        agrees(&gpu, Params::of(round, set), count);
    }
}

macro_rules! odd_batch_sizes {
    ($($name:ident: $round:ident $set:ident),*) => {$(
        #[test]
        fn $name() {
            odd_batch_sizes(Round::$round, Set::$set);
        }
    )*};
}
odd_batch_sizes!(
    odd_batch_sizes_of_mayo1_round3: Three Mayo1,
    odd_batch_sizes_of_mayo2_round3: Three Mayo2,
    odd_batch_sizes_of_mayo3_round3: Three Mayo3,
    odd_batch_sizes_of_mayo5_round3: Three Mayo5,
    odd_batch_sizes_of_mayo1_round2: Two Mayo1,
    odd_batch_sizes_of_mayo2_round2: Two Mayo2,
    odd_batch_sizes_of_mayo3_round2: Two Mayo3,
    odd_batch_sizes_of_mayo5_round2: Two Mayo5
);

#[test]
fn every_set_agrees_in_every_order_of_turns() {
    for order in [Order::Forward, Order::Reverse, Order::Shuffled(5)] {
        let (gpu, _) = gpu(Emulation { order, ..Emulation::default() }, OPTIONS);
        Params::all().for_each(|params| agrees(&gpu, params, 2));
    }
}

#[test]
fn a_ring_of_any_size_gives_what_the_cpu_gives() {
    let params = Params::of(Round::Three, Set::Mayo1);
    let batch = with_a_restart(params);
    let signed: Vec<_> = (0..5).map(|i| Ok(batch.signature(&batch.keys[i], i))).collect();
    let public: Vec<PublicKey> = batch.keys.iter().map(|k| k.public_key(Engine::best())).collect();
    let mut signatures: Vec<Signature> = signed.iter().flatten().cloned().collect();
    signatures.swap(1, 2);
    let name = |kernel: &str| format!("mayo_{kernel}_{}", params.index());
    // 32 MiB of cache, half of it, over one stream: all five fit.
    for (ring, parts) in
        [(Ring::Operations(1), 5), (Ring::Operations(2), 3), (Ring::Whole, 1), (Ring::Cache, 1)]
    {
        let (gpu, control) = gpu(Emulation::default(), Options { ring, ..OPTIONS });
        gpu.test(params).unwrap();
        let before = control.launched().len();
        let (keys, _) = gpu.keygen(&batch.keys).unwrap();
        assert!(keys == public, "{ring:?}");
        let (made, tally) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
        assert!(made == signed, "{ring:?}");
        assert_eq!((tally.restarts, tally.device), (1, 5), "{ring:?}");
        let (verdicts, _) = gpu.verify(GpuVerifiers::Each(&public), &batch.messages, &signatures).unwrap();
        let valid: Vec<bool> = verdicts.iter().map(Result::is_ok).collect();
        assert_eq!(valid, [true, false, false, true, true], "{ring:?}");
        let launched = control.launched();
        let count = |kernel: &str| launched[before..].iter().filter(|l| l.kernel == name(kernel)).count();
        // Signing processes the list once, then the rest again, and is verified part by part.
        assert_eq!(count("sign"), parts + 1, "{ring:?}");
        assert_eq!((count("keygen"), count("verify")), (2 * parts, 2 * parts), "{ring:?}");
    }
}

#[test]
fn a_ring_takes_the_memory_of_its_places_alone() {
    let params = Params::of(SMALL.0, SMALL.1);
    let batch = Batch::new(params, 12);
    let limit = 5 * crate::bytes_in_flight(params)[1] as u64;
    for (ring, halved) in [(Ring::Whole, true), (Ring::Operations(2), false)] {
        let (gpu, control) = gpu(Emulation::default(), Options { chunk: 12, ring, ..OPTIONS });
        gpu.test(params).unwrap();
        control.limit_memory(limit);
        let (_, tally) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
        assert_eq!((tally.halvings > 0, tally.device), (halved, 12), "{ring:?}: {tally:?}");
    }
}

#[test]
fn further_attempts_are_valid_in_every_set() {
    for params in Params::all() {
        let batch = Batch::new(params, 3);
        let (gpu, control) = gpu(Emulation::default(), Options { ring: Ring::Operations(2), ..OPTIONS });
        gpu.test(params).unwrap();
        let held = gpu.expand_secret(&batch.keys).unwrap();
        for (signers, what) in
            [(GpuSigners::Each(&batch.keys), "compact"), (GpuSigners::Of(&held, &[0, 1, 2]), "expanded")]
        {
            let what = format!("{}, {what} keys", params.name());
            // The first download has the attempts' flags; by them the last one failed.
            control.corrupt_download(0, 2, 1);
            let (signed, tally) = batch.sign(&gpu, signers);
            assert_eq!((tally.restarts, tally.device, tally.trouble), (1, 3, None), "{what}");
            for (i, made) in signed.iter().enumerate() {
                let (made, expected) = (made.as_ref().unwrap(), batch.signature(&batch.keys[i], i));
                // Another attempt has other vinegar: another valid signature.
                assert_eq!(*made == expected, i < 2, "{what}: {i}");
                let public = batch.keys[i].public_key(Engine::best());
                assert!(public.verify(Engine::best(), &batch.messages[i], made).is_ok(), "{what}: {i}");
            }
        }
    }
}

const SMALL: (Round, Set) = (Round::Two, Set::Mayo2);

#[test]
fn a_lost_device_leaves_the_rest_to_the_cpu() {
    let params = Params::of(SMALL.0, SMALL.1);
    let batch = Batch::new(params, 12);
    let expected: Vec<_> = (0..12).map(|i| Ok(batch.signature(&batch.keys[i], i))).collect();
    for after in [0, 5, 17, 40] {
        let (gpu, control) = gpu(Emulation::default(), Options { chunk: 3, ..OPTIONS });
        gpu.test(params).unwrap();
        control.lose_device_after(after);
        let (signed, tally) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
        assert!(signed == expected, "after {after} launches");
        assert!(tally.trouble.is_some() && tally.cpu > 0 && tally.cpu + tally.device == 12, "{tally:?}");
        // All later operations go to the CPU at once.
        let (public, tally) = gpu.keygen(&batch.keys).unwrap();
        assert_eq!((tally.cpu, tally.trouble.is_some()), (12, true));
        assert!(public[7] == batch.keys[7].public_key(Engine::best()));
    }
}

#[test]
fn too_little_memory_halves_the_chunk() {
    let params = Params::of(SMALL.0, SMALL.1);
    let batch = Batch::new(params, 12);
    let expected: Vec<_> = (0..12).map(|i| Ok(batch.signature(&batch.keys[i], i))).collect();
    let (gpu, control) = gpu(Emulation::default(), Options { chunk: 12, ring: Ring::Whole, ..OPTIONS });
    gpu.test(params).unwrap();
    let one = crate::bytes_in_flight(params)[1] as u64;
    control.limit_memory(5 * one);
    let (signed, tally) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
    assert!(signed == expected);
    assert!(tally.halvings > 0 && tally.device == 12, "{tally:?}");
    // Not even one fits, and nothing is kept of the batch before.
    control.limit_memory(one / 2);
    gpu.kept.release();
    let (signed, tally) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
    assert!(signed == expected);
    assert!(tally.trouble.is_some() && tally.cpu == 12, "{tally:?}");
}

#[test]
fn wrong_public_keys_are_found_and_made_again() {
    let params = Params::of(SMALL.0, SMALL.1);
    let batch = Batch::new(params, 4);
    let (gpu, control) = gpu(Emulation::default(), Options { spot_check: 1, ..OPTIONS });
    gpu.test(params).unwrap();
    control.corrupt_download(0, 100, 4);
    let (public, tally) = gpu.keygen(&batch.keys).unwrap();
    let expected: Vec<PublicKey> = batch.keys.iter().map(|k| k.public_key(Engine::best())).collect();
    assert!(public == expected);
    assert!(tally.cpu == 4 && gpu.device().is_dead(), "{tally:?}");
}

#[test]
fn a_signature_that_fails_its_verification_is_made_again() {
    let params = Params::of(SMALL.0, SMALL.1);
    let batch = Batch::new(params, 4);
    let expected: Vec<_> = (0..4).map(|i| Ok(batch.signature(&batch.keys[i], i))).collect();
    let (gpu, control) = plain();
    gpu.test(params).unwrap();
    // The second download of the only chunk is that of the verdicts.
    control.corrupt_download(1, 2, 1);
    let (signed, tally) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
    assert!(signed == expected);
    assert!(tally.cpu == 1 && gpu.device().is_dead(), "{tally:?}");
}

#[test]
fn a_device_that_fails_its_self_test_is_not_used() {
    let params = Params::of(SMALL.0, SMALL.1);
    for download in 0..6 {
        let (gpu, control) = plain();
        control.corrupt_download(download, 0, 1);
        assert!(gpu.test(params).is_err(), "download {download}");
        let batch = Batch::new(params, 2);
        let (_, tally) = gpu.keygen(&batch.keys).unwrap();
        assert!(tally.cpu == 2 && tally.trouble.is_some(), "{tally:?}");
    }
}

#[test]
fn small_batches_and_a_share_of_large_ones_go_to_the_cpu() {
    let params = Params::of(SMALL.0, SMALL.1);
    let (gpu, control) = gpu(Emulation::default(), Options { break_even: 8, cpu_share: 0.25, ..OPTIONS });
    let batch = Batch::new(params, 8);
    let expected: Vec<_> = (0..8).map(|i| Ok(batch.signature(&batch.keys[i], i))).collect();
    let (_, tally) = gpu.keygen(&batch.keys[..7]).unwrap();
    assert_eq!(tally, Tally { cpu: 7, ..Tally::default() });
    assert!(control.launched().is_empty(), "nothing is worth the device yet");
    let (signed, tally) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
    assert!(signed == expected);
    assert_eq!((tally.device, tally.cpu), (6, 2));
}

#[test]
fn secrets_are_cleared_on_the_device() {
    let params = Params::of(Round::Three, Set::Mayo2);
    let (gpu, control) = plain();
    agrees(&gpu, params, 3);
    drop(gpu);
    let freed = control.freed();
    assert!(freed.iter().filter(|f| f.secret && f.zero && f.bytes > 1000).count() > 10);
    assert!(freed.iter().all(|f| !f.secret || f.zero), "a secret buffer was freed without clearing");
    let secret = ["mayo_keygen", "mayo_sign", "mayo_solve", "mayo_lower"];
    let launched = control.launched();
    for name in secret {
        assert!(launched.iter().any(|l| l.kernel.starts_with(name)), "{name} ran");
        let left = launched.iter().filter(|l| l.kernel.starts_with(name)).map(|l| l.left).max();
        assert_eq!(left, Some(0), "{name} does not clear shared memory");
    }
    // The check can fail: verification, of public data, clears nothing.
    assert!(launched.iter().any(|l| l.kernel.starts_with("mayo_verify") && l.left > 0));
}

#[test]
fn batches_of_several_sets_are_refused() {
    let (gpu, control) = plain();
    let mut keys = Batch::new(Params::of(Round::Two, Set::Mayo3), 1).keys;
    keys.extend(Batch::new(Params::of(Round::Three, Set::Mayo3), 1).keys);
    let wrong = Error::WrongRound { expected: Round::Two, got: Round::Three };
    assert_eq!(gpu.keygen(&keys).unwrap_err(), wrong);
    assert!(control.launched().is_empty());
}

#[test]
fn keys_of_another_device_are_left_to_the_cpu() {
    let params = Params::of(SMALL.0, SMALL.1);
    let batch = Batch::new(params, 2);
    let [(here, _), (there, _)] = [plain(), plain()];
    let held = there.expand_secret(&batch.keys).unwrap();
    let (signed, tally) = batch.sign(&here, GpuSigners::Of(&held, &[0, 1]));
    assert_eq!((tally.device, tally.cpu), (0, 2));
    assert!(tally.trouble.unwrap().contains("on another device"));
    let signatures: Vec<Signature> = signed.into_iter().map(Result::unwrap).collect();
    assert_eq!(signatures[1], batch.signature(&batch.keys[1], 1));
    let held = there.expand_public(held.public_keys()).unwrap();
    let (verdicts, tally) =
        here.verify(GpuVerifiers::Of(&held, &[0, 1]), &batch.messages, &signatures).unwrap();
    assert_eq!((verdicts, tally.device), (vec![Ok(()), Ok(())], 0));
    assert!(tally.trouble.unwrap().contains("on another device"));
    // This device is none the worse.
    assert_eq!(batch.sign(&here, GpuSigners::Each(&batch.keys)).1.device, 2);
}

#[test]
fn host_and_kernels_agree_on_sizes() {
    use crate::launch::shape::{self, Products};
    let (device, _) = Device::emulated(Emulation::default());
    let module = device.module(&crate::launch::IMAGE).unwrap();
    let [said, bits] = crate::launch::kernels::Kernels::shapes(&device, &module).unwrap();
    for p in Params::all() {
        let products = [Products::Keygen, Products::Sign, Products::SignExpanded, Products::Verify];
        let mut ours =
            vec![shape::seed(p), shape::target(p), shape::SALT, shape::drawn(p), shape::EXPAND_SHARED];
        ours.extend(products.map(|what| shape::products_shared(p, what)));
        ours.push(shape::solve_shared(p));
        ours.extend(products.map(|what| shape::product_threads(p, what) as usize));
        let theirs: Vec<usize> = said[14 * p.index()..][..14].iter().map(|&w| w as usize).collect();
        assert_eq!(ours, theirs, "{}", p.name());
        let b = shape::Bits::of(p);
        let ours = [b.key, b.many, b.parts, b.threads as usize, b.shared_each, b.shared_one];
        let theirs: Vec<usize> = bits[6 * p.index()..][..6].iter().map(|&w| w as usize).collect();
        assert_eq!(ours[..], theirs, "{}", p.name());
    }
}

/// The rows of the checks of every other form.
fn forms(how: Emulation, before: impl FnOnce(&Control)) -> Vec<check::Row> {
    let (params, mut rows) = (Params::of(SMALL.0, SMALL.1), Vec::new());
    let (gpu, control) = gpu(how, check::ALONE);
    gpu.test(params).unwrap();
    before(&control);
    check::forms(&gpu, params, Depth::Quick, &mut |row| rows.push(row));
    rows
}

#[test]
fn every_other_form_is_checked_or_says_why_not() {
    let right = forms(Emulation::default(), |_| ());
    assert_eq!(right.len(), 3);
    assert!(right.iter().all(|row| row.ok() && row.skipped == 0), "{right:?}");
    // Neither tensor cores with products of bits, nor room for a fused kernel.
    let bare = forms(
        Emulation {
            capability: (7, 5),
            shared_per_block: crate::launch::shape::EXPAND_SHARED as u32,
            ..Emulation::default()
        },
        |_| (),
    );
    let why: Vec<(usize, &str)> = bare.iter().map(|row| (row.skipped, row.why.as_str())).collect();
    assert_eq!(why[0], (0, ""));
    assert!(why[1].0 == 1 && why[1].1.contains("shared memory"), "{why:?}");
    assert!(why[2].0 == 1 && why[2].1.contains("tensor cores"), "{why:?}");
    // A public key of the first form, and verdicts of the others: only the form with the fault fails.
    for (download, at) in [(0, 0), (33, 1), (52, 2)] {
        let wrong = forms(Emulation::default(), |control| control.corrupt_download(download, 100, 1));
        let ok: Vec<bool> = wrong.iter().map(check::Row::ok).collect();
        assert_eq!(ok, [0, 1, 2].map(|form| form != at), "{wrong:?}");
    }
}

/// Two devices of different speed.
fn fleet(options: Options) -> (Fleet, [Control; 2]) {
    let (first, one) = gpu(Emulation::default(), options);
    let (second, two) = gpu(Emulation { multiprocessors: 12, ..Emulation::default() }, options);
    (Fleet::of(vec![first, second]), [one, two])
}

#[test]
fn the_checks_see_a_device_that_computes_wrongly() {
    let params = Params::of(SMALL.0, SMALL.1);
    let (right, _) = gpu(Emulation::default(), check::ALONE);
    for row in
        [check::known_answers(&right, params, Depth::Quick), check::agreement(&right, params, Depth::Quick)]
    {
        assert!(row.ok() && row.backend == "emulated", "{row:?}");
    }
    // A public key, a signature's verdict, a verdict.
    for (download, at) in [(0, 100), (2, 0), (4, 0)] {
        let (gpu, control) = gpu(Emulation::default(), check::ALONE);
        gpu.test(params).unwrap();
        control.corrupt_download(download, at, 1);
        assert!(!check::known_answers(&gpu, params, Depth::Quick).ok(), "download {download}");
        let (gpu, control) = self::gpu(Emulation::default(), check::ALONE);
        gpu.test(params).unwrap();
        control.corrupt_download(download, at, 1);
        assert!(!check::agreement(&gpu, params, Depth::Quick).ok(), "download {download}");
    }
}

#[test]
fn two_devices_and_the_cpu_share_a_batch() {
    let params = Params::of(SMALL.0, SMALL.1);
    let batch = Batch::new(params, 24);
    let (fleet, controls) = fleet(Options { cpu_share: 0.25, chunk: 5, break_even: 9, ..OPTIONS });
    let shares = |tallies: &[Tally]| -> Vec<(usize, usize)> {
        assert!(tallies.iter().all(|t| t.trouble.is_none()), "{tallies:?}");
        tallies.iter().map(|t| (t.device, t.cpu)).collect()
    };
    // A quarter is the CPU's; the second device has three times the multiprocessors.
    let (public, tallies) = fleet.keygen(&batch.keys).unwrap();
    let expected: Vec<PublicKey> = batch.keys.iter().map(|k| k.public_key(Engine::best())).collect();
    assert!(public == expected);
    assert!(shares(&tallies) == [(5, 0), (13, 6)] || shares(&tallies) == [(4, 0), (14, 6)], "{tallies:?}");
    let held = fleet.expand_secret(&batch.keys[..2]).unwrap();
    let which: Vec<usize> = (0..24).map(|i| i % 2).collect();
    let mut signatures = Vec::new();
    for (signers, keys) in
        [(FleetSigners::Each(&batch.keys), None), (FleetSigners::Of(&held, &which), Some(&which))]
    {
        let mut rng = Counter(7);
        let (signed, tallies) = fleet.sign(signers, &batch.messages, Release::Verified, &mut rng).unwrap();
        assert_eq!(tallies.iter().map(|t| t.device + t.cpu).sum::<usize>(), 24);
        // The same generator, the same signatures, however the batch was cut.
        let mut rng = Counter(7);
        signatures.clear();
        for (i, made) in signed.into_iter().enumerate() {
            let key = &batch.keys[keys.map_or(i, |which| which[i])];
            let made = made.unwrap();
            assert!(key.public_key(Engine::best()).verify(Engine::best(), &batch.messages[i], &made).is_ok());
            let alone =
                key.sign_with(Engine::best(), &batch.messages[i], SignOptions::default(), &mut rng).unwrap();
            assert!(alone == made, "signature {i}");
            signatures.push(made);
        }
    }
    signatures.swap(3, 20);
    let verifying = fleet.expand_public(held.public_keys()).unwrap();
    let (verdicts, _) =
        fleet.verify(FleetVerifiers::Of(&verifying, &which), &batch.messages, &signatures).unwrap();
    let refused: Vec<usize> = (0..24).filter(|&i| verdicts[i].is_err()).collect();
    assert_eq!(refused, [3, 20]);
    // Below the break-even nothing is launched.
    let before = controls.each_ref().map(|c| c.launched().len());
    let (_, tallies) = fleet.keygen(&batch.keys[..8]).unwrap();
    assert_eq!(tallies.iter().map(|t| t.cpu).sum::<usize>(), 8);
    assert_eq!(controls.each_ref().map(|c| c.launched().len()), before);
    let short = FleetSigners::Of(&held, &which[..3]);
    assert!(fleet.sign(short, &batch.messages, Release::Verified, &mut Counter(1)).is_err());
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let params = Params::of(SMALL.0, SMALL.1);
    let batch = Batch::new(params, 3);
    let signatures: Vec<Signature> = (0..3).map(|i| batch.signature(&batch.keys[i], i)).collect();
    let (gpu, _) = plain();
    let (fleet, _) = fleet(OPTIONS);
    let (held, shared) = (gpu.expand_secret(&batch.keys).unwrap(), fleet.expand_secret(&batch.keys).unwrap());
    let public = held.public_keys();
    let (known, common) = (gpu.expand_public(public).unwrap(), fleet.expand_public(public).unwrap());
    let (messages, numbers, release) = (&batch.messages[..2], [0; 3], Release::Verified);
    let rng = &mut Counter(1);
    // One too few, and one too many.
    for got in [1, 3] {
        let count = |what| Error::Count { what, expected: 2, got };
        for (signers, what) in [
            (GpuSigners::Each(&batch.keys[..got]), "keys"),
            (GpuSigners::Of(&held, &numbers[..got]), "key numbers"),
        ] {
            assert_eq!(gpu.sign(signers, messages, release, rng), Err(count(what)));
        }
        for (signers, what) in [
            (FleetSigners::Each(&batch.keys[..got]), "keys"),
            (FleetSigners::Of(&shared, &numbers[..got]), "key numbers"),
        ] {
            assert_eq!(fleet.sign(signers, messages, release, rng), Err(count(what)));
        }
        for (verifiers, signatures, what) in [
            (GpuVerifiers::Each(&public[..got]), &signatures[..2], "keys"),
            (GpuVerifiers::Of(&known, &numbers[..got]), &signatures[..2], "key numbers"),
            (GpuVerifiers::One(&known), &signatures[..got], "signatures"),
        ] {
            assert_eq!(gpu.verify(verifiers, messages, signatures), Err(count(what)));
        }
        for (verifiers, signatures, what) in [
            (FleetVerifiers::Each(&public[..got]), &signatures[..2], "keys"),
            (FleetVerifiers::Of(&common, &numbers[..got]), &signatures[..2], "key numbers"),
            (FleetVerifiers::One(&common), &signatures[..got], "signatures"),
        ] {
            assert_eq!(fleet.verify(verifiers, messages, signatures), Err(count(what)));
        }
    }
    // Numbers of keys that do not exist, and keys that not every device has.
    let none = Error::Count { what: "expanded keys", expected: 4, got: 3 };
    assert_eq!(gpu.sign(GpuSigners::Of(&held, &[0, 3]), messages, release, rng), Err(none.clone()));
    assert_eq!(gpu.verify(GpuVerifiers::Of(&known, &[0, 3]), messages, &signatures[..2]), Err(none));
    let alone = Fleet::of(vec![plain().0]);
    let elsewhere = Error::Count { what: "devices with expanded keys", expected: 1, got: 2 };
    assert_eq!(alone.sign(FleetSigners::One(&shared), messages, release, rng), Err(elsewhere.clone()));
    assert_eq!(alone.verify(FleetVerifiers::One(&common), messages, &signatures[..2]), Err(elsewhere));
}

#[test]
fn what_a_lost_device_leaves_the_others_do() {
    let params = Params::of(SMALL.0, SMALL.1);
    let batch = Batch::new(params, 16);
    let (mut fleet, [_, second]) = fleet(Options { chunk: 3, ..OPTIONS });
    fleet.set_weights(&[1.0, 1.0]).unwrap();
    assert!(fleet.set_weights(&[1.0]).is_err());
    fleet.gpus().iter().for_each(|gpu| gpu.test(params).unwrap());
    second.lose_device_after(4);
    let expected: Vec<PublicKey> = batch.keys.iter().map(|k| k.public_key(Engine::best())).collect();
    let (public, tallies) = fleet.keygen(&batch.keys).unwrap();
    assert!(public == expected);
    assert!(tallies[0].device == 8 && tallies[1].cpu > 0 && tallies[1].trouble.is_some(), "{tallies:?}");
    // From now on the first has everything.
    let (public, tallies) = fleet.keygen(&batch.keys).unwrap();
    assert!(public == expected);
    assert_eq!((tallies[0].device, &tallies[1]), (16, &Tally::default()));
}

/// Consecutive numbers, for reproducible signatures.
struct Counter(u64);

impl rand_core::TryRng for Counter {
    type Error = core::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.0 += 1;
        Ok(self.0 as u32)
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.0 += 1;
        Ok(self.0)
    }
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        self.0 += 1;
        out.iter_mut().zip(self.0.to_le_bytes().iter().cycle()).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Counter {}
