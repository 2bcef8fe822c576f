//! Every form of verification on a device refuses inadmissible items with the reason, and no others. For those of the
//! CPU, `verify/tests.rs` of `lanework-mayo` has the same test.
#![forbid(unsafe_code)]

use lanework_cuda::{Device, Emulation};
use lanework_mayo::{
    Engine, Error, MessageDigest, MessageHasher, Params, PublicKey, Round, SecretKey, Set, Signature,
};

use crate::check::ALONE;
use crate::{Fleet, FleetVerifiers, Gpu, GpuThreads, GpuVerifiers, Options, ThreadLaunch};

/// The signatures and digests of MAYO-3 have the same bytes in both rounds.
const KEY: &Params = Params::of(Round::Three, Set::Mayo3);
const ANOTHER_SET: &Params = Params::of(Round::Three, Set::Mayo1);
const ANOTHER_ROUND: &Params = Params::of(Round::Two, Set::Mayo3);

/// Valid items, among which others are planted.
struct Planted {
    public: PublicKey,
    messages: Vec<Vec<u8>>,
    digests: Vec<MessageDigest>,
    signatures: Vec<Signature>,
    /// The verdicts on signatures with their messages, and with their digests.
    expected: [Vec<Result<(), Error>>; 2],
}

fn digest(params: &Params, message: &[u8]) -> MessageDigest {
    let mut hasher = MessageHasher::new(Engine::best(), params);
    hasher.update(message);
    hasher.finish()
}

fn planted() -> Planted {
    let engine = Engine::best();
    let key = |params: &Params| SecretKey::from_seed(params, &vec![7; params.secret_key_bytes()]).unwrap();
    let messages: Vec<Vec<u8>> = (0..9).map(|i| vec![i as u8; 40 * i]).collect();
    let signed = |params, message: &Vec<u8>| key(params).sign(engine, message).unwrap();
    let mut signatures: Vec<Signature> = messages.iter().map(|message| signed(KEY, message)).collect();
    let mut digests: Vec<MessageDigest> = messages.iter().map(|message| digest(KEY, message)).collect();
    let wrong_set = Err(Error::WrongSet { expected: KEY.set(), got: ANOTHER_SET.set() });
    let wrong_round = Err(Error::WrongRound { expected: KEY.round(), got: ANOTHER_ROUND.round() });
    let mut whole = vec![Ok(()); messages.len()];
    for (i, params, refusal) in [(1, ANOTHER_SET, &wrong_set), (4, ANOTHER_ROUND, &wrong_round)] {
        signatures[i] = signed(params, &messages[i]);
        whole[i] = refusal.clone();
    }
    signatures[6] = signed(KEY, &messages[5]);
    whole[6] = Err(Error::Refused);
    let mut hashed = whole.clone();
    for (i, params, refusal) in [(2, ANOTHER_SET, &wrong_set), (7, ANOTHER_ROUND, &wrong_round)] {
        digests[i] = digest(params, &messages[i]);
        hashed[i] = refusal.clone();
    }
    Planted { public: key(KEY).public_key(engine), messages, digests, signatures, expected: [whole, hashed] }
}

#[test]
fn only_what_is_planted_is_refused() {
    let Planted { public, messages, digests, signatures, expected: [whole, hashed] } = planted();
    let (keys, numbers) = (vec![public.clone(); 9], [0; 9]);
    // All on the device, all on the CPU beside it, and a part on each.
    for (share, on_device) in [(0.0, 9), (1.0, 0), (0.5, 4)] {
        let options = Options { cpu_share: share, ..ALONE };
        let gpu = || Gpu::of(Device::emulated(Emulation::default()).0, Engine::best(), options).unwrap();
        let (one, fleet) = (gpu(), Fleet::of(vec![gpu()]));
        let held = one.expand_public(std::slice::from_ref(&public)).unwrap();
        for verifiers in
            [GpuVerifiers::Each(&keys), GpuVerifiers::One(&held), GpuVerifiers::Of(&held, &numbers)]
        {
            let (verdicts, tally) = one.verify(verifiers, &messages, &signatures).unwrap();
            assert_eq!(verdicts, whole, "{share}: {verifiers:?}");
            assert_eq!((tally.device, tally.trouble), (on_device, None), "{share}: {verifiers:?}");
        }
        let held = fleet.expand_public(std::slice::from_ref(&public)).unwrap();
        for verifiers in
            [FleetVerifiers::Each(&keys), FleetVerifiers::One(&held), FleetVerifiers::Of(&held, &numbers)]
        {
            let (verdicts, _) = fleet.verify(verifiers, &messages, &signatures).unwrap();
            assert_eq!(verdicts, whole, "{share}: {verifiers:?}");
            let (verdicts, tallies) = fleet.verify_digests(verifiers, &digests, &signatures).unwrap();
            assert_eq!(verdicts, hashed, "{share}: {verifiers:?}");
            assert_eq!(
                (tallies[0].device, &tallies[0].trouble),
                (on_device, &None),
                "{share}: {verifiers:?}"
            );
        }
    }
    let (device, _) = Device::emulated(Emulation::default());
    let threads = GpuThreads::open(&device, Engine::best(), 0).unwrap();
    let (verdicts, _) = threads.verify(ThreadLaunch::PUBLISHED, &keys, &messages, &signatures).unwrap();
    assert_eq!(verdicts, whole);
}
