//! Every form of verification refuses inadmissible items with the reason, and no others.
#![forbid(unsafe_code)]

use lanework_cpu::{Cpu, Threads};

use super::*;
use crate::backend::Engine;
use crate::batch::{self, Verifiers};
use crate::digest::{MessageDigest, MessageHasher};
use crate::expanded::VerifyingKey;
use crate::keys::{PublicKey, SecretKey};
use crate::params::{Round, Set};

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
    let wrong_set = Err(Error::WrongSet { expected: KEY.set, got: ANOTHER_SET.set });
    let wrong_round = Err(Error::WrongRound { expected: KEY.round, got: ANOTHER_ROUND.round });
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
fn only_what_is_planted_is_refused_on_the_cpu() {
    let Planted { public, messages, digests, signatures, expected: [whole, hashed] } = planted();
    for engine in Engine::all(&Cpu::detect()).flatten() {
        let name = engine.name();
        let verifying = VerifyingKey::new(engine, &public);
        for (i, signature) in signatures.iter().enumerate() {
            assert_eq!(public.verify(engine, &messages[i], signature), whole[i], "{name}: {i}");
            assert_eq!(public.verify_digest(engine, &digests[i], signature), hashed[i], "{name}: {i}");
            assert_eq!(verifying.verify(&messages[i], signature), whole[i], "{name}: {i}");
        }
        let (keys, expanded) = (vec![public.clone(); 9], vec![verifying.clone(); 9]);
        for verifiers in [
            Verifiers::One(&verifying),
            Verifiers::Each(&expanded),
            Verifiers::OneCompact(engine, &public),
            Verifiers::EachCompact(engine, &keys),
        ] {
            for threads in [Threads::One, Threads::Own(2)] {
                let verdicts = batch::verify(verifiers, &messages, &signatures, threads);
                assert_eq!(verdicts.as_ref(), Ok(&whole), "{name}: {verifiers:?}");
                let verdicts = batch::verify_digests(verifiers, &digests, &signatures, threads);
                assert_eq!(verdicts.as_ref(), Ok(&hashed), "{name}: {verifiers:?}");
            }
        }
    }
}

/// A list that is too short would lose items without a verdict.
#[test]
#[should_panic(expected = "a signature for each message")]
fn a_message_without_a_signature_is_not_passed_over() {
    let signature = Signature::from_bytes(KEY, &vec![0; KEY.signature_bytes()]).unwrap();
    let messages = [Message::Whole(b"signed"), Message::Whole(b"not signed")];
    admit_each(|_| KEY, &messages, &[signature]);
}
