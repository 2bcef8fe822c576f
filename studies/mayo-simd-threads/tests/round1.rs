//! Round 1 against liboqs 0.12: the same bytes from the same randomness, and each accepts the other's signatures.
#![cfg(feature = "peers")]
#![forbid(unsafe_code)]

use std::path::PathBuf;

use lanework_cpu::Cpu;
use lanework_mayo::Params;
use lanework_mayo::known::{Maker, NistDrbg};
use lanework_mayo::study::{engine, rows};
use lanework_peers::{Peers, STACK_BYTES, SignaturePeer, set_random};

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

/// What the next requests of 24 to 40 bytes give, first the seed, then the randomizer.
fn drawn(set: &Params, entropy: &[u8; 48]) -> (Vec<u8>, Vec<u8>) {
    let mut drbg = NistDrbg::new(entropy);
    let (mut seed, mut randomizer) = (vec![0; set.secret_key_bytes()], vec![0; set.salt_bytes()]);
    drbg.fill(&mut seed);
    drbg.fill(&mut randomizer);
    (seed, randomizer)
}

fn cross(peer: &dyn SignaturePeer) {
    let cpu = Cpu::detect();
    for set in Params::study_only() {
        let theirs = peer.set(&format!("mayo{}", set.set().number())).expect("all sets are there");
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
            let (seed, randomizer) = drawn(set, &entropy);
            assert_eq!(sk, seed, "{} {}", peer.name(), set.name());
            for row in rows() {
                let Ok(ours) = engine(row.name(), &cpu) else { continue };
                let what = format!("{} {} {}", peer.name(), row.name(), set.name());
                assert_eq!(ours.public_key(set, &seed), pk, "{what}");
                assert_eq!(ours.sign(set, &seed, &message, &randomizer).as_ref(), Some(&signature), "{what}");
                assert!(ours.verify(set, &pk, &message, &signature), "{what}");
                // A signature that the peer did not make itself.
                let other = ours.sign(set, &seed, &message, &seed).expect("honest seeds sign");
                assert_ne!(other, signature);
                assert_eq!(peer.verify(theirs.id, &message, &other, &pk), Ok(true), "{what}");
                let mut bad = other;
                bad[0] ^= 1;
                assert_eq!(peer.verify(theirs.id, &message, &bad, &pk), Ok(false), "{what}");
                assert!(!ours.verify(set, &pk, &message, &bad), "{what}");
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
