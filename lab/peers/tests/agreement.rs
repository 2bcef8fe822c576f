//! Every peer that is here does what a signature scheme does, and builds of one round agree.
#![forbid(unsafe_code)]

mod common;

use common::{present, sign, with_stack};
use lanework_peers::flavour::Tuning;
use lanework_peers::{ExpandedKey, FLAG_BUILDS, FLAVOURS, PeerError, SetId, SignaturePeer, seed_random};

const MESSAGE: &[u8] = b"a message of no particular length";

fn for_each_set(test: &'static str, check: fn(&dyn SignaturePeer, &'static str, SetId)) {
    with_stack(move || {
        for peer in present(test) {
            assert_eq!(peer.sets().len(), 4, "{}", peer.name());
            for set in peer.sets() {
                check(peer.as_ref(), set.name, set.id);
            }
        }
    });
}

#[test]
fn accepts_its_own_and_rejects_what_was_tampered_with() {
    for_each_set("accepts_its_own", |peer, name, id| {
        seed_random(1);
        let what = format!("{} {name}", peer.name());
        let signed = sign(peer, name, MESSAGE);
        let verify = |message: &[u8], signature: &[u8], key: &[u8]| {
            peer.verify(id, message, signature, key).expect("lengths are right")
        };
        assert!(verify(MESSAGE, &signed.signature, &signed.public_key), "{what}");

        let last = signed.signature.len() - 1;
        for (byte, bit) in [(0, 0), (last / 2, 3), (last, 7)] {
            let mut tampered = signed.signature.clone();
            tampered[byte] ^= 1 << bit;
            assert!(!verify(MESSAGE, &tampered, &signed.public_key), "{what}: signature byte {byte}");
        }
        for byte in [0, signed.public_key.len() - 1] {
            let mut tampered = signed.public_key.clone();
            tampered[byte] ^= 0x10;
            assert!(!verify(MESSAGE, &signed.signature, &tampered), "{what}: key byte {byte}");
        }
        let mut other = MESSAGE.to_vec();
        other[5] ^= 1;
        assert!(!verify(&other, &signed.signature, &signed.public_key), "{what}: message");
        assert!(!verify(b"", &signed.signature, &signed.public_key), "{what}: empty message");
        assert!(!verify(MESSAGE, &signed.signature[1..], &signed.public_key), "{what}: short signature");
    });
}

#[test]
fn schemes_beside_mayo_sign_and_refuse() {
    with_stack(|| {
        for peer in present("schemes_beside_mayo") {
            assert_eq!(peer.others().len(), if peer.round() == "round2" { 6 } else { 0 }, "{}", peer.name());
            for set in peer.others() {
                let what = format!("{} {}", peer.name(), set.name);
                seed_random(9);
                let (mut public, mut secret) = (vec![0; set.public_key], vec![0; set.secret_key]);
                peer.keypair(set.id, &mut public, &mut secret).expect("a key pair");
                let mut signature = vec![0; set.signature];
                let written = peer.sign(set.id, &mut signature, MESSAGE, &secret).expect("signed");
                assert_eq!(written, set.signature, "{what}: one length");
                let verify = |message: &[u8], signature: &[u8]| {
                    peer.verify(set.id, message, signature, &public).expect("lengths are right")
                };
                assert!(verify(MESSAGE, &signature), "{what}");
                assert!(!verify(&MESSAGE[1..], &signature), "{what}: message");
                signature[set.signature / 2] ^= 1;
                assert!(!verify(MESSAGE, &signature), "{what}: signature");
            }
        }
    });
}

#[test]
fn wrong_lengths_are_named_not_passed_on() {
    for_each_set("wrong_lengths", |peer, name, id| {
        seed_random(2);
        let mut signed = sign(peer, name, MESSAGE);
        let long = signed.public_key.len() + 1;
        let error = peer.keypair(id, &mut vec![0; long], &mut signed.secret_key).expect_err("too long");
        assert_eq!(error, PeerError::Length { what: "public key", expected: long - 1, actual: long });
        let error = peer.sign(id, &mut [], MESSAGE, &signed.secret_key).expect_err("no room");
        assert!(matches!(error, PeerError::Length { what: "signature", actual: 0, .. }), "{error}");
        let error = peer.verify(id, MESSAGE, &signed.signature, &[]).expect_err("no key");
        assert!(matches!(error, PeerError::Length { what: "public key", actual: 0, .. }), "{error}");
        let error = peer.expand_pk(id, &signed.public_key, &mut ExpandedKey::new(8)).expect_err("no room");
        assert!(matches!(error, PeerError::Length { what: "expanded key", actual: 8, .. }), "{error}");
    });
}

#[test]
fn the_seed_decides_everything() {
    for_each_set("the_seed_decides", |peer, name, _| {
        let make = |seed| {
            seed_random(seed);
            let signed = sign(peer, name, MESSAGE);
            (signed.public_key, signed.secret_key, signed.signature)
        };
        let first = make(3);
        assert_eq!(make(3), first, "{} {name}", peer.name());
        let other = make(4);
        assert!(other.0 != first.0 && other.1 != first.1 && other.2 != first.2, "{} {name}", peer.name());
    });
}

/// All libraries are open at once here, so this also shows that their symbols do not mix: the two
/// rounds give different bytes for the same seed, and every build of one round the same.
#[test]
fn builds_of_one_round_agree_and_rounds_do_not() {
    with_stack(|| {
        let peers = present("builds_of_one_round_agree");
        for name in ["mayo1", "mayo2", "mayo3", "mayo5"] {
            let mut made: Vec<(&dyn SignaturePeer, common::Signed)> = Vec::new();
            for peer in &peers {
                seed_random(5);
                made.push((peer.as_ref(), sign(peer.as_ref(), name, MESSAGE)));
            }
            for (one, ours) in &made {
                for (other, theirs) in &made {
                    let what = format!("{} and {} on {name}", one.name(), other.name());
                    if one.round() == other.round() {
                        assert_eq!(ours.public_key, theirs.public_key, "{what}");
                        assert_eq!(ours.secret_key, theirs.secret_key, "{what}");
                        assert_eq!(ours.signature, theirs.signature, "{what}");
                        let set = one.set(name).expect("it was used above");
                        let verdict = one.verify(set.id, MESSAGE, &theirs.signature, &theirs.public_key);
                        assert_eq!(verdict, Ok(true), "{what}");
                    } else {
                        assert_ne!(ours.public_key, theirs.public_key, "{what}");
                    }
                }
            }
        }
    });
}

#[test]
fn expanding_is_offered_and_agrees_between_builds() {
    with_stack(|| {
        let peers = present("expanding_is_offered");
        for name in ["mayo1", "mayo2", "mayo3", "mayo5"] {
            let mut seen: Vec<(String, ExpandedKey)> = Vec::new();
            for peer in &peers {
                let set = peer.set(name).expect("the peer has the set");
                let bytes = set.expanded_key.expect("every build offers it");
                assert!(bytes > 10 * set.public_key, "{} {name}: {bytes}", peer.name());
                seed_random(6);
                let signed = sign(peer.as_ref(), name, MESSAGE);
                let mut expanded = ExpandedKey::new(bytes);
                peer.expand_pk(set.id, &signed.public_key, &mut expanded).expect("it expands");
                let zeros = expanded.words().filter(|&word| word == 0).count();
                assert!(zeros < bytes / 8 / 100, "{} {name}: {zeros} zero words", peer.name());
                match seen.iter().find(|(round, _)| round == peer.round()) {
                    Some((_, first)) => assert!(*first == expanded, "{} {name}", peer.name()),
                    None => seen.push((peer.round().to_owned(), expanded)),
                }
            }
        }
    });
}

#[test]
fn the_code_that_runs_is_the_flavours() {
    for peer in present("the_code_that_runs") {
        let flavour = FLAVOURS.iter().chain(FLAG_BUILDS).find(|f| f.name == peer.name()).expect("known");
        let by_hand = match flavour.tuning {
            Tuning::Generic => false,
            Tuning::Native | Tuning::Dispatch => true,
            Tuning::Flags(flags) => flags.native() && !flags.plain,
        };
        #[cfg(target_arch = "x86_64")]
        let (avx2, aes) =
            (std::arch::is_x86_feature_detected!("avx2"), std::arch::is_x86_feature_detected!("aes"));
        #[cfg(not(target_arch = "x86_64"))]
        let (avx2, aes) = (false, peer.aes() != "c");
        let code = if by_hand && avx2 { "avx2" } else { "opt" };
        assert!(peer.sets().iter().all(|set| set.code == code), "{}", peer.name());
        assert_eq!(peer.aes() != "c", by_hand && aes, "{}", peer.name());
        assert_eq!(peer.family(), "mayo");
    }
}

/// Which builds by flags are the same program, by the digest of their code: the flags decide it, not their number.
#[cfg(target_arch = "x86_64")]
#[test]
fn flags_that_change_nothing_give_the_same_code() {
    let digests: Vec<(String, String)> = present("flags_that_change_nothing")
        .iter()
        .filter_map(|peer| Some((peer.name().to_owned(), peer.card().code.clone()?.digest)))
        .collect();
    let of =
        |name: &str| digests.iter().find(|(n, _)| n == &format!("liboqs12-flags-{name}")).map(|(_, d)| d);
    // OpenMP without pragmas, and pragmas without OpenMP.
    for (one, other) in [("omp", "o3"), ("avx2-omp", "avx2"), ("avx2-pragmas", "avx2")] {
        assert_eq!(of(one), of(other), "{one} {other}");
    }
    if let (Some(threads), Some(none)) = (of("omp-pragmas"), of("omp")) {
        assert_ne!(threads, none);
    }
}

#[test]
fn threads_do_not_disturb_each_other() {
    let make = |seed: u64| {
        with_stack(move || {
            let mut all = Vec::new();
            for peer in present("threads_do_not_disturb") {
                seed_random(seed);
                for _ in 0..8 {
                    all.push(sign(peer.as_ref(), "mayo1", MESSAGE).signature);
                }
            }
            all
        })
    };
    let alone = make(8);
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = [8, 9, 8].map(|seed| scope.spawn(move || make(seed))).into();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(together[0], alone);
    assert_eq!(together[2], alone);
    if !alone.is_empty() {
        assert_ne!(together[1], alone);
    }
}
