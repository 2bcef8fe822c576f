//! One thread to a whole operation, on the emulated device, against the CPU.
#![forbid(unsafe_code)]

use getrandom::SysRng;
use lanework_cuda::{Device, Emulation, Error as DeviceError};
use lanework_mayo::hazmat::sign_with_randomizer;
use lanework_mayo::{Engine, Error, Params, PublicKey, Round, SecretKey, Set, SignOptions, Signature};
use zeroize::Zeroizing;

use crate::{GpuError, GpuThreads, Release, ThreadLaunch, ThreadMemory};

fn open() -> GpuThreads {
    let (device, _) = Device::emulated(Emulation::default());
    GpuThreads::open(&device, Engine::best(), 0).unwrap()
}

/// Keys, messages, randomizers, and the CPU's results.
struct Batch {
    keys: Vec<SecretKey>,
    messages: Vec<Vec<u8>>,
    randomizers: Vec<Zeroizing<Vec<u8>>>,
    public: Vec<PublicKey>,
    signatures: Vec<Signature>,
}

fn batch(params: &'static Params, count: usize) -> Batch {
    let engine = Engine::best();
    let bytes = |tag: usize, i: usize| -> Vec<u8> {
        (0..params.salt_bytes()).map(|at| (at * 41 + i * 97 + tag) as u8).collect()
    };
    let keys: Vec<SecretKey> =
        (0..count).map(|i| SecretKey::from_seed(params, &bytes(1, i)).unwrap()).collect();
    let messages: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; i * 50]).collect();
    let randomizers: Vec<_> = (0..count).map(|i| Zeroizing::new(bytes(2, i))).collect();
    let public = keys.iter().map(|key| key.public_key(engine)).collect();
    let sign = |i: usize| {
        sign_with_randomizer(&(engine, &keys[i]), &messages[i], &randomizers[i], SignOptions::default())
    };
    let signatures = (0..count).map(|i| sign(i).unwrap()).collect();
    Batch { keys, messages, randomizers, public, signatures }
}

/// `count` keys, signatures and verdicts by one launch after the other.
pub(crate) fn agrees(threads: &GpuThreads, params: &'static Params, launch: ThreadLaunch, count: usize) {
    let what = format!("{} by {launch:?}", params.name());
    let b = batch(params, count);
    let (made, times) = threads.keygen(launch, &b.keys).unwrap();
    assert!(made == b.public, "public keys of {what}");
    assert_eq!(times.launches, count.div_ceil(launch.in_flight()), "{what}");
    let (signed, _) =
        threads.sign_randomized(launch, &b.keys, &b.messages, &b.randomizers, Release::Verified).unwrap();
    let signed: Vec<Signature> = signed.into_iter().map(Result::unwrap).collect();
    assert!(signed == b.signatures, "signatures of {what}");
    let (verdicts, _) = threads.verify(launch, &b.public, &b.messages, &b.signatures).unwrap();
    assert_eq!(verdicts, vec![Ok(()); count], "{what}");
    // Another key's signature, and one with a bit changed.
    let mut spoilt = b.signatures.clone();
    spoilt.rotate_left(1);
    let mut bytes = b.signatures[0].as_bytes().to_vec();
    bytes[7] ^= 2;
    spoilt[0] = Signature::from_bytes(params, &bytes).unwrap();
    let (verdicts, _) = threads.verify(launch, &b.public, &b.messages, &spoilt).unwrap();
    assert_eq!(verdicts, vec![Err(Error::Refused); count], "{what}");
}

#[test]
fn every_set_as_published() {
    let threads = open();
    for params in Params::all() {
        agrees(&threads, params, ThreadLaunch::PUBLISHED, 3);
    }
}

#[test]
fn stacks_hold_the_smaller_sets_and_refuse_the_others() {
    let threads = open();
    let launch = ThreadLaunch { blocks: 2, threads: 1, memory: ThreadMemory::Stack };
    for params in Params::all() {
        let bytes = threads.bytes(params);
        assert!(bytes > params.p12_bytes() && bytes < 2_000_000, "{}: {bytes}", params.name());
        assert!(threads.has(params, ThreadMemory::Heap));
        if threads.has(params, ThreadMemory::Stack) {
            assert!(bytes < 512 << 10, "{}: {bytes}", params.name());
            agrees(&threads, params, launch, 2);
        } else {
            let refused = threads.keygen(launch, &batch(params, 1).keys);
            assert!(matches!(refused, Err(GpuError::Device(DeviceError::NoKernel { .. }))), "{refused:?}");
        }
    }
}

#[test]
fn launches_of_any_shape_give_the_same() {
    let (threads, params) = (open(), Params::of(Round::Three, Set::Mayo2));
    for (blocks, size, count) in [(1, 1, 3), (3, 2, 14), (1, 32, 5)] {
        agrees(&threads, params, ThreadLaunch { blocks, threads: size, memory: ThreadMemory::Heap }, count);
    }
    assert_eq!(ThreadLaunch::PUBLISHED.in_flight(), 16);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (threads, params) = (open(), Params::of(Round::Three, Set::Mayo2));
    let b = batch(params, 2);
    let (none, times) = threads.keygen(ThreadLaunch::PUBLISHED, &[]).unwrap();
    assert!(none.is_empty() && times.launches == 0);
    let short = threads.verify(ThreadLaunch::PUBLISHED, &b.public, &b.messages[..1], &b.signatures);
    assert!(matches!(short, Err(GpuError::Batch(Error::Count { what: "messages", expected: 2, got: 1 }))));
    for keys in [&[], &b.keys[..1]] {
        let signed = threads.sign(ThreadLaunch::PUBLISHED, keys, &b.messages, Release::Verified, &mut SysRng);
        let count = Error::Count { what: "messages", expected: keys.len(), got: 2 };
        assert_eq!(signed, Err(GpuError::Batch(count)));
    }
    for (blocks, size) in [(0, 4), (4, 0), (1, 5000)] {
        let launch = ThreadLaunch { blocks, threads: size, memory: ThreadMemory::Heap };
        let refused = threads.keygen(launch, &b.keys);
        assert!(matches!(refused, Err(GpuError::Device(DeviceError::Shape(_)))), "{refused:?}");
    }
    let other = batch(Params::of(Round::Two, Set::Mayo2), 1);
    let mixed = threads.keygen(ThreadLaunch::PUBLISHED, &[b.keys[0].clone(), other.keys[0].clone()]);
    assert!(matches!(mixed, Err(GpuError::Batch(Error::WrongRound { .. }))), "{mixed:?}");
}
