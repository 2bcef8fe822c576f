//! The delay function against chiavdf: the same discriminants and proofs, each accepts the other's, both refuse what is damaged.
#![cfg(feature = "peers")]
#![forbid(unsafe_code)]

use std::path::PathBuf;

use lanework_cpu::Cpu;
use lanework_peers::{DelayLibrary, Peers};
use lanework_suite::vdf::peers::{big_endian, both_ways, start};
use lanework_vdf::internals::known;
use lanework_vdf::{Discriminant, Lenient, Limits, Question, Strict, Task, spec, verify};

fn library() -> Option<DelayLibrary> {
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    let dir = std::env::var_os("LANEWORK_PEERS").map_or(built, Into::into);
    let required = std::env::var_os("LANEWORK_REQUIRE_PEERS").is_some_and(|v| v == "1");
    match Peers::delay_library(&dir) {
        Ok(library) => Some(library),
        Err(why) => {
            assert!(!required, "required: {why}");
            eprintln!("SKIPPED {why}");
            None
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A seed that is new in each run and printed, so that a failure can be repeated.
fn seed() -> u64 {
    let seed = std::env::var("LANEWORK_SEED").ok().and_then(|s| s.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("LANEWORK_SEED={seed}");
    seed
}

#[test]
fn random_challenges_and_lengths_agree_both_ways() {
    let Some(library) = library() else { return };
    let mut state = seed();
    for _ in 0..6 {
        // Of one byte, most challenges lead to no prime: here that is an error, there an endless loop.
        let challenge: Vec<u8> = (0..2 + next(&mut state) % 39).map(|_| next(&mut state) as u8).collect();
        let iterations = 3 + next(&mut state) % 3000;
        let cases = both_ways(&library, &Cpu::detect(), &challenge, iterations).expect("all calls succeed");
        assert!(cases.len() > 8);
        for (what, held) in cases {
            assert!(held, "{what}: challenge {challenge:02x?}, {iterations} squarings");
        }
    }
}

/// Smaller discriminants, starts that are not the generator, segments of uneven lengths.
#[test]
fn proofs_of_several_segments_verify_there() {
    let Some(library) = library() else { return };
    let mut state = seed();
    for (bits, depth) in [(512, 1), (768, 3), (1024, 5), (1024, 0)] {
        let challenge = next(&mut state).to_be_bytes();
        let d = Discriminant::from_seed(&challenge, bits).expect("a discriminant");
        let x = start(&d, next(&mut state) | 1).expect("a form");
        let lengths: Vec<u64> = (0..depth).map(|_| 1 + next(&mut state) % 200).collect();
        let iterations = lengths.iter().sum::<u64>() + 1 + next(&mut state) % 500;
        let task = Task { segments: lengths.clone(), ..Task::new(d.clone(), x.clone(), iterations) };
        let proof = spec::prove(&task).expect("a proof").to_bytes(&d);
        let (number, x) = (big_endian(&d), x.to_bytes(&d));
        let there = |x: &[u8], proof: &[u8], iterations, depth| {
            library.verify(&number, x, proof, iterations, depth).expect("lengths are right")
        };
        let what =
            format!("{bits} bits, {iterations} squarings, segments {lengths:?}, challenge {challenge:02x?}");
        assert!(there(&x, &proof, iterations, depth), "{what}");
        assert!(!there(&x, &proof, iterations, depth + 1), "{what}");
        assert!(!there(&x, &proof, iterations + 1, depth), "{what}");
        assert!(!there(&x, &proof[..proof.len() - 1], iterations, depth), "{what}");
        if depth == 0 {
            let theirs = library.prove(&challenge, &x, bits, iterations).expect("a proof");
            assert_eq!(theirs, proof, "{what}");
        }
    }
}

/// Published proofs with a byte changed anywhere: the strict mode says what chiavdf 1.2.2 says, byte by byte. The lenient
/// mode is that of older releases, so it may take more, never less.
#[test]
fn damaged_proofs_are_refused_by_both() {
    let Some(library) = library() else { return };
    let mut state = seed();
    for wanted in [0, 2] {
        let record = known::records().find(|r| r.depth == wanted).expect("there are such records");
        let d = Discriminant::from_seed(&record.challenge, record.bits).expect("a discriminant");
        let number = big_endian(&d);
        let length = record.proof.len();
        let mut refused = 0;
        for turn in 0..60 {
            let (mut x, mut proof, mut iterations) =
                (record.x.clone(), record.proof.clone(), record.iterations);
            let what = match turn {
                0 => "nothing",
                1 => {
                    iterations += 1;
                    "one squaring more"
                }
                2 => {
                    x[0] ^= 1;
                    "the input's sign"
                }
                3 => {
                    x = vec![0; 100];
                    x[0] = 0x08;
                    x[99] = 7;
                    "a generator with something behind it"
                }
                4 => {
                    proof.truncate(length - 1);
                    "a byte less"
                }
                5 => {
                    proof.push(0);
                    "a byte more"
                }
                _ => {
                    let at = (next(&mut state) % length as u64) as usize;
                    proof[at] ^= 1 << (next(&mut state) % 8);
                    "a bit of the proof"
                }
            };
            let question = Question { x: &x, proof: &proof, iterations, depth: record.depth };
            let limits = Limits::default();
            let ours = verify(Strict, &d, &question, &limits).is_ok();
            let theirs = library.verify(&number, &x, &proof, iterations, record.depth) == Ok(true);
            assert_eq!(ours, theirs, "depth {wanted}: {what} (turn {turn})");
            assert!(!ours || verify(Lenient, &d, &question, &limits).is_ok(), "depth {wanted}: {what}");
            assert_eq!(ours, turn == 0, "depth {wanted}: {what} (turn {turn})");
            refused += u32::from(!ours);
        }
        assert!(refused >= 50, "{refused} refused");
    }
}

/// Published proofs of every depth, in both.
#[test]
fn published_proofs_verify_in_both() {
    let Some(library) = library() else { return };
    let mut seen = 0;
    for record in known::records().step_by(5) {
        let d = Discriminant::from_seed(&record.challenge, record.bits).expect("a discriminant");
        let mut theirs = vec![0; record.bits / 8];
        library.discriminant(&record.challenge, &mut theirs).expect("a discriminant");
        assert_eq!(theirs, big_endian(&d));
        let accepted = library.verify(&theirs, &record.x, &record.proof, record.iterations, record.depth);
        assert_eq!(accepted, Ok(true));
        let question = Question {
            x: &record.x,
            proof: &record.proof,
            iterations: record.iterations,
            depth: record.depth,
        };
        assert_eq!(verify(Strict, &d, &question, &Limits::default()), Ok(()));
        seen += 1;
    }
    assert!(seen >= 20);
}
