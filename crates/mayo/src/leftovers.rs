//! No operation reads an earlier one's remains in the workspace: the answer is the same in fresh memory and in memory
//! full of a pattern, on every backend.
#![forbid(unsafe_code)]

use getrandom::SysRng;
use lanework_cpu::{Cpu, Threads};

use crate::backend::operands::{Keygen, Matrices, Sign, Solve, Verify};
use crate::backend::{Engine, altered};
use crate::backend::{Kernels, SetKernels, portable};
use crate::batch::{self, Signers, Verifiers};
use crate::digest::MessageHasher;
use crate::error::Error;
use crate::expanded::{SigningKey, VerifyingKey};
use crate::hazmat::sign_deterministic_with;
use crate::internals::known::{Library, Maker};
use crate::keys::{PublicKey, SecretKey, SignOptions, Signature};
use crate::params::{Params, Round, Set};
use crate::sys::Block;
use crate::workspace::poison;

/// The results of every operation: public keys, signatures and verdicts. `before` runs before each.
fn answers(engine: Engine, params: &Params, before: impl Fn()) -> Vec<(&'static str, Vec<u8>)> {
    let mut answers = Vec::new();
    let mut note = |what, answer| answers.push((what, answer));
    let bytes =
        |signature: Result<Signature, Error>| signature.map_or_else(|_| Vec::new(), Signature::into_bytes);
    let yes = |verdict: Result<(), Error>| vec![u8::from(verdict.is_ok())];
    // Two keys, one after the other, so that the second runs over the first one's remains even without a pattern.
    for fill in [0x31, 0x77] {
        let key = SecretKey::from_seed(params, &vec![fill; params.secret_key_bytes()]).unwrap();
        before();
        let public = key.public_key(engine);
        note("public key", public.as_bytes().to_vec());
        let options = SignOptions { verify: false };
        before();
        let signature = sign_deterministic_with(&(engine, &key), b"message", options).unwrap();
        note("signature", signature.as_bytes().to_vec());
        before();
        let signing = SigningKey::new(engine, &key);
        before();
        note("signature, expanded", bytes(sign_deterministic_with(&signing, b"message", options)));
        before();
        note(
            "signature, verified",
            bytes(sign_deterministic_with(&signing, b"message", SignOptions { verify: true })),
        );
        before();
        let verifying = VerifyingKey::new(engine, &public);
        let mut hasher = MessageHasher::new(engine, params);
        hasher.update(b"message");
        let digest = hasher.finish();
        for (what, message) in
            [("verdict on a valid one", b"message"), ("verdict on another message", b"massage")]
        {
            before();
            note(what, yes(public.verify(engine, message, &signature)));
            before();
            note(what, yes(verifying.verify(message, &signature)));
        }
        before();
        note("verdict by digest", yes(public.verify_digest(engine, &digest, &signature)));
        // Groups, of all sizes that a thread takes at a time.
        for count in 1..=engine.expand().lanes() + 1 {
            let messages = vec![b"message"; count];
            let keys = vec![key.clone(); count];
            before();
            let made = batch::keygen(engine, &keys, Threads::One).unwrap();
            note("batch of public keys", made.iter().flat_map(|key| key.as_bytes().to_vec()).collect());
            for signers in [Signers::One(&signing), Signers::EachCompact(engine, &keys)] {
                before();
                // Hedged, so verdicts are compared instead of signatures.
                let made = batch::sign(signers, &messages, options, &mut SysRng, Threads::One).unwrap();
                let made: Vec<Signature> = made.into_iter().flatten().collect();
                for verifiers in [Verifiers::One(&verifying), Verifiers::OneCompact(engine, &public)] {
                    before();
                    let verdicts = batch::verify(verifiers, &messages, &made, Threads::One).unwrap();
                    note("batch of verdicts", verdicts.into_iter().flat_map(yes).collect());
                }
            }
        }
    }
    answers
}

/// The operations whose answers differ between fresh memory and memory full of patterns.
fn differing(engine: Engine, params: &Params) -> Vec<&'static str> {
    let fresh = std::thread::scope(|s| s.spawn(|| answers(engine, params, || ())).join().unwrap());
    let mut differing = Vec::new();
    // No pattern has a field element in every byte; the first has none.
    for pattern in [0xff, 0xa5, 0x5a] {
        let poisoned = answers(engine, params, || poison(pattern));
        assert_eq!(fresh.len(), poisoned.len());
        let unlike = fresh.iter().zip(&poisoned).filter(|(a, b)| a != b);
        differing.extend(unlike.map(|((what, _), _)| *what));
    }
    differing
}

#[test]
fn no_operation_reads_what_another_left() {
    for engine in Engine::all(&Cpu::detect()).flatten() {
        for params in Params::all() {
            // Once, so that the workspace has all its memory and the pattern is everywhere.
            let answers = answers(engine, params, || ());
            let wrong = |(what, answer): &&(&str, Vec<u8>)| what.ends_with("valid one") && *answer != [1];
            assert_eq!(answers.iter().find(wrong), None);
            let differing = differing(engine, params);
            assert!(differing.is_empty(), "{}, {}: {differing:?}", engine.name(), params.name());
        }
    }
}

/// The portable backend with one kernel that omits a write, or reads too far.
fn planted(plant: impl FnOnce(&mut SetKernels)) -> (Engine, &'static Params) {
    let params = Params::of(Round::Three, Set::Mayo2);
    let mut kernels = Kernels { expand: portable::KERNELS.expand, sets: portable::KERNELS.sets };
    plant(&mut kernels.sets[params.index()]);
    (altered("planted", kernels), params)
}

fn sound() -> &'static SetKernels {
    &portable::KERNELS.sets[Params::of(Round::Three, Set::Mayo2).index()]
}

#[test]
fn a_write_that_is_left_out_is_found() {
    /// P3 stays unchanged.
    fn keygen(Keygen { p, o, p3, scratch }: Keygen<'_>) {
        let left = scratch[0].0[0];
        sound().keygen(Keygen { p, o, p3, scratch });
        p3[0] ^= left;
    }
    /// The first of the products begins with a sum in scratch that was not set to 0.
    fn verify(Verify { key: Matrices { p, p3 }, s, lambda, u, scratch }: Verify<'_, Matrices<'_>>) {
        let left = scratch[0].0[0];
        sound().verify(Verify { key: Matrices { p, p3 }, s, lambda, u, scratch });
        u[0].0[0] ^= left;
    }
    /// The first of the products of an expanded key stays unchanged.
    fn sign_expanded(Sign { key: layout, o, vinegar, lambda, m, u, scratch }: Sign<'_, &[Block]>) {
        let left = m[0];
        sound().sign_expanded(Sign { key: layout, o, vinegar, lambda, m, u, scratch });
        m[0] = left;
    }
    /// One variable stays unchanged.
    fn solve(Solve { m, u, t, r, x, scratch }: Solve<'_>) -> bool {
        let left = x[3];
        let solved = sound().solve(Solve { m, u, t, r, x, scratch });
        x[3] = left & 0xf;
        solved
    }
    type Plant = fn(&mut SetKernels);
    let plants: [(&str, Plant); 4] = [
        ("public key", |k| k.keygen = keygen),
        ("batch of verdicts", |k| k.verify = verify),
        ("signature, expanded", |k| k.sign_expanded = sign_expanded),
        ("signature", |k| k.solve = solve),
    ];
    for (what, plant) in plants {
        let (engine, params) = planted(plant);
        answers(engine, params, || ());
        let differing = differing(engine, params);
        assert!(differing.contains(&what), "{what}: {differing:?}");
    }
    let (engine, params) = planted(|_| ());
    answers(engine, params, || ());
    assert_eq!(differing(engine, params), Vec::<&str>::new(), "without a plant");
}

#[test]
fn a_key_that_is_cut_short_verifies_nothing() {
    let (engine, params) = (Engine::best(), Params::of(Round::Three, Set::Mayo1));
    let ours = Library { engine, params };
    let key = SecretKey::from_seed(params, &[5; 24]).unwrap();
    let (public, signature) = (key.public_key(engine), key.sign(engine, b"m").unwrap());
    assert_eq!(public.verify(engine, b"m", &signature), Ok(()));
    // The workspace now holds the rest of the key.
    for length in [16, 17, 18, public.as_bytes().len() - 1] {
        let (short, signature) = (&public.as_bytes()[..length], signature.as_bytes());
        assert!(!ours.verify(short, b"m", signature), "{length} bytes of a public key");
        assert!(PublicKey::from_bytes(params, short).is_err());
    }
    for length in [0, 5, 463, 465, 564] {
        let mut odd = signature.as_bytes().to_vec();
        odd.resize(length, 0x11);
        // The salt of a longer one, where verification reads it.
        if let Some(at) = length.checked_sub(24) {
            odd[at..].copy_from_slice(&signature.as_bytes()[464 - 24..]);
        }
        assert!(!ours.verify(public.as_bytes(), b"m", &odd), "a signature of {length} bytes");
        assert!(Signature::from_bytes(params, &odd).is_err());
    }
    for length in [0, 23, 25] {
        assert!(ours.public_key(&vec![5; length]).is_empty());
        assert!(ours.sign(&vec![5; length], b"m", &[0; 24]).is_none());
        assert!(ours.sign(&[5; 24], b"m", &vec![0; length]).is_none());
    }
}
