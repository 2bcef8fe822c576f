//! Round 1 against liboqs 0.12: the same bytes from the same randomness, and each accepts the other's signatures.
#![cfg(feature = "peers")]
#![forbid(unsafe_code)]

use std::path::PathBuf;

use lanework_cpu::Cpu;
use lanework_mayo::internals::Sizes;
use lanework_mayo::internals::known::{Maker, NistDrbg};
use lanework_peers::{Peers, STACK_BYTES, SignaturePeer, set_random};
use study_mayo_simd_threads::backends::{engine, names};
use study_mayo_simd_threads::round1::SETS;
use study_mayo_simd_threads::sets::Set;

fn peers() -> Vec<Box<dyn SignaturePeer>> {
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    let dir = std::env::var_os("LANEWORK_PEERS").map_or(built, Into::into);
    let required = std::env::var_os("LANEWORK_REQUIRE_PEERS").is_some_and(|v| v == "1");
    Peers::discover(&dir)
        .into_iter()
        .filter_map(|found| match found {
            Ok(peer) => (peer.round() == "round1").then_some(peer),
            Err(why) => {
                assert!(!required, "required: {why}");
                eprintln!("SKIPPED {why}");
                None
            }
        })
        .collect()
}

/// Answers for the next requests of 24 to 40 bytes: first the seed, then the randomizer.
fn drawn(sizes: &Sizes, entropy: &[u8; 48]) -> (Vec<u8>, Vec<u8>) {
    let mut drbg = NistDrbg::new(entropy);
    let (mut seed, mut randomizer) = (vec![0; sizes.secret_key_bytes()], vec![0; sizes.salt_bytes]);
    drbg.fill(&mut seed);
    drbg.fill(&mut randomizer);
    (seed, randomizer)
}

fn cross(peer: &dyn SignaturePeer) {
    let cpu = Cpu::detect();
    for (at, (set, sizes)) in SETS.iter().enumerate() {
        let theirs = peer.set(set).expect("all sets are there");
        for salt in 0..4u8 {
            let entropy = [salt; 48];
            let message = vec![salt ^ 0x5c; 33 * usize::from(salt)];
            let mut drbg = NistDrbg::new(&entropy);
            set_random(Box::new(move |out| drbg.fill(out)));
            let mut pk = vec![0; theirs.public_key];
            let mut sk = vec![0; theirs.secret_key];
            let mut signature = vec![0; theirs.signature];
            peer.keypair(theirs.id, &mut pk, &mut sk).expect("a key");
            peer.sign(theirs.id, &mut signature, &message, &sk).expect("a signature");
            let (seed, randomizer) = drawn(sizes, &entropy);
            assert_eq!(sk, seed, "{} {set}", peer.name());
            for row in names() {
                let Ok(ours) = engine(row, &cpu) else { continue };
                let ours = ours.scheme(Set::Round1(at));
                let what = format!("{} {row} {set}", peer.name());
                assert_eq!(ours.public_key(&seed), pk, "{what}");
                assert_eq!(ours.sign(&seed, &message, &randomizer).as_ref(), Some(&signature), "{what}");
                assert!(ours.verify(&pk, &message, &signature), "{what}");
                // A signature that the peer did not make itself.
                let other = ours.sign(&seed, &message, &seed).expect("honest seeds sign");
                assert_ne!(other, signature);
                assert_eq!(peer.verify(theirs.id, &message, &other, &pk), Ok(true), "{what}");
                let mut bad = other;
                bad[0] ^= 1;
                assert_eq!(peer.verify(theirs.id, &message, &bad, &pk), Ok(false), "{what}");
                assert!(!ours.verify(&pk, &message, &bad), "{what}");
            }
        }
    }
}

#[test]
fn round_1_is_liboqs_12s() {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(|| {
        for peer in peers() {
            cross(peer.as_ref());
        }
    });
    if let Err(panic) = thread.expect("a thread").join() {
        std::panic::resume_unwind(panic);
    }
}
