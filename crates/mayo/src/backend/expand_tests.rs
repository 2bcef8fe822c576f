//! Known answers and agreement of the `expand` kernels, for every instruction set this machine has.

#[cfg(target_arch = "x86_64")]
use super::operands::Matrices;
use super::{Engine, portable};
#[cfg(target_arch = "x86_64")]
use super::{SLACK, bytes};
use crate::internals::symmetric_spec as spec;
#[cfg(target_arch = "x86_64")]
use crate::sys::Block;

/// One instruction set's functions, made safe by the detection in [`tiers`].
struct Tier {
    name: &'static str,
    aes128_ctr: fn(&[u8; 16], u32, &mut [u8]),
    aes128_ctr_xor: fn(&[u8; 16], &[u8; 16], &mut [u8]),
    /// Absent where the file under test has AES only.
    shake: Option<Shake>,
}

struct Shake {
    shake256: fn(&[&[u8]], &mut [u8]),
    shake256_xn: fn(&[&[u8]], &mut [&mut [u8]]),
}

/// The tiers that can run here; prints the others to standard error.
fn tiers() -> Vec<Tier> {
    #[allow(unused_mut)]
    let mut tiers = vec![Tier {
        name: "portable",
        aes128_ctr: portable::expand::aes128_ctr,
        aes128_ctr_xor: portable::expand::aes128_ctr_xor,
        shake: Some(Shake {
            shake256: portable::expand::shake256,
            shake256_xn: portable::expand::shake256_xn,
        }),
    }];
    #[cfg(target_arch = "x86_64")]
    x86::add(&mut tiers);
    tiers
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Shake, Tier};
    use crate::backend::{aesni, avx2, avx512};

    /// Wraps a `target_feature` function; sound only behind the detection in `add`.
    macro_rules! wrap {
        (fn($($arg:ident: $type:ty),*) $function:path) => {
            // SAFETY: `add` returns the tier only after detecting the function's features.
            |$($arg: $type),*| unsafe { $function($($arg),*) }
        };
    }

    macro_rules! tier {
        ($name:expr, $module:path, $shake:expr) => {{
            use $module as kernel;
            Tier {
                name: $name,
                aes128_ctr: wrap!(fn(k: &[u8; 16], n: u32, o: &mut [u8]) kernel::aes128_ctr),
                aes128_ctr_xor: wrap!(fn(k: &[u8; 16], n: &[u8; 16], o: &mut [u8]) kernel::aes128_ctr_xor),
                shake: $shake,
            }
        }};
    }

    macro_rules! shake {
        ($module:path) => {{
            use $module as kernel;
            Some(Shake {
                shake256: wrap!(fn(m: &[&[u8]], o: &mut [u8]) kernel::shake256),
                shake256_xn: wrap!(fn(m: &[&[u8]], o: &mut [&mut [u8]]) kernel::shake256_xn),
            })
        }};
    }

    macro_rules! missing {
        ($($feature:tt)*) => {
            [$(($feature, is_x86_feature_detected!($feature))),*]
                .iter().filter(|(_, here)| !here).map(|(feature, _)| *feature).collect::<Vec<_>>()
        };
    }

    pub(super) fn add(tiers: &mut Vec<Tier>) {
        let mut offer = |missing: Vec<&str>, tier: Tier| {
            if missing.is_empty() {
                tiers.push(tier);
            } else {
                eprintln!("SKIPPED tier {}: this CPU lacks {}", tier.name, missing.join(", "));
            }
        };
        offer(missing!("aes" "sse4.1"), tier!("aesni", aesni, None));
        offer(missing!("aes" "vaes" "avx2"), tier!("vaes256", aesni::vaes256, None));
        offer(missing!("aes" "avx2" "bmi1" "bmi2"), tier!("avx2", avx2::expand, shake!(avx2::expand)));
        offer(
            missing!("avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512vbmi" "avx512vbmi2" "vaes" "aes" "bmi1" "bmi2"),
            tier!("avx512", avx512::expand, shake!(avx512::expand)),
        );
    }
}

fn hex<const N: usize>(text: &str) -> [u8; N] {
    assert_eq!(text.len(), 2 * N, "hexadecimal of the wrong length");
    core::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("a hexadecimal digit"))
}

/// Repeatable bytes that differ between seeds (xorshift64*).
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn noise16(seed: u64) -> [u8; 16] {
    noise(seed, 16).try_into().expect("sixteen bytes")
}

const LENGTHS: [usize; 24] = [
    0, 1, 7, 8, 15, 16, 17, 31, 63, 64, 65, 127, 128, 135, 136, 137, 255, 256, 257, 1025, 2049, 4095, 4096,
    4097,
];

/// Lengths in bytes of streams that are compared with the oracle: [`LENGTHS`], and two chunks of the longest batch,
/// around their end. The interpreter, some thousand times slower, gets a few short ones.
fn lengths() -> Vec<usize> {
    if cfg!(miri) {
        return vec![0, 17, 137, 300];
    }
    LENGTHS.into_iter().chain([8191, 8192, 8193, 9000]).collect()
}

/// FIPS 197 appendix B and C.1, SP 800-38A F.1.1 and the CTR vectors of F.5.1, all as single blocks.
const AES_BLOCKS: [(&str, &str, &str); 7] = [
    (
        "2b7e151628aed2a6abf7158809cf4f3c",
        "3243f6a8885a308d313198a2e0370734",
        "3925841d02dc09fbdc118597196a0b32",
    ),
    (
        "000102030405060708090a0b0c0d0e0f",
        "00112233445566778899aabbccddeeff",
        "69c4e0d86a7b0430d8cdb78070b4c55a",
    ),
    (
        "2b7e151628aed2a6abf7158809cf4f3c",
        "6bc1bee22e409f96e93d7e117393172a",
        "3ad77bb40d7a3660a89ecaf32466ef97",
    ),
    (
        "2b7e151628aed2a6abf7158809cf4f3c",
        "ae2d8a571e03ac9c9eb76fac45af8e51",
        "f5d3d58503b9699de785895a96fdbaaf",
    ),
    (
        "2b7e151628aed2a6abf7158809cf4f3c",
        "30c81c46a35ce411e5fbc1191a0a52ef",
        "43b1cd7f598ece23881b00e3ed030688",
    ),
    (
        "2b7e151628aed2a6abf7158809cf4f3c",
        "f69f2445df4f9b17ad2b417be66c3710",
        "7b0c785e27e8ad3f8223207104725dd4",
    ),
    (
        "2b7e151628aed2a6abf7158809cf4f3c",
        "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        "ec8cdf7398607cb0f2d21675ea9ea1e4",
    ),
];

#[test]
fn aes_known_answers() {
    for (key, block, answer) in AES_BLOCKS {
        let (key, block, answer) = (hex::<16>(key), hex::<16>(block), hex::<16>(answer));
        assert_eq!(spec::aes128_encrypt_block(&key, &block), answer, "the oracle itself");
        for tier in tiers() {
            let mut out = [0; 16];
            (tier.aes128_ctr_xor)(&key, &block, &mut out);
            assert_eq!(out, answer, "{}", tier.name);
        }
    }
}

#[test]
fn aes_agrees_with_the_standard_at_every_length_and_carry() {
    let (key, nonce) = (noise16(1), noise16(2));
    let tiers = tiers();
    let lengths = lengths();
    let longest = lengths[lengths.len() - 1];
    let firsts = [0, 1, 3, 250, 255, 256, 65_530, 0xff_fff0, u32::MAX - 3];
    for &first in if cfg!(miri) { &firsts[7..] } else { &firsts[..] } {
        let mut expected = vec![0; longest];
        spec::aes128_ctr(&key, &[0; 16], first, &mut expected);
        for tier in &tiers {
            for &len in &lengths {
                let mut out = vec![0xee; len + 1];
                (tier.aes128_ctr)(&key, first, &mut out[..len]);
                assert!(out[..len] == expected[..len], "{}: {len} bytes from block {first}", tier.name);
                assert_eq!(out[len], 0xee, "{}: wrote past {len} bytes", tier.name);
            }
        }
    }
    let mut expected = vec![0; longest];
    spec::aes128_ctr(&key, &nonce, 0, &mut expected);
    for tier in &tiers {
        for &len in &lengths {
            let mut out = vec![0xee; len + 1];
            (tier.aes128_ctr_xor)(&key, &nonce, &mut out[..len]);
            assert!(out[..len] == expected[..len], "{}: {len} bytes with a nonce", tier.name);
            assert_eq!(out[len], 0xee, "{}: wrote past {len} bytes with a nonce", tier.name);
        }
    }
}

#[test]
fn aes_tiers_agree_on_long_streams() {
    // 65 792 blocks cross both the 2^8 and the 2^16 boundary; the oracle checks samples where it is slow.
    let (key, nonce) = (noise16(5), noise16(6));
    let len = 16 * 65_792 + 5;
    let (mut plain, mut nonced) = (vec![0; len], vec![0; len]);
    portable::expand::aes128_ctr(&key, 0, &mut plain);
    portable::expand::aes128_ctr_xor(&key, &nonce, &mut nonced);
    for block in [0u32, 255, 256, 257, 9031, 65_535, 65_536, 65_791] {
        let at = 16 * block as usize;
        let (mut a, mut b) = ([0; 16], nonce);
        spec::aes128_ctr(&key, &[0; 16], block, &mut a);
        assert_eq!(plain[at..at + 16], a, "block {block}");
        for (byte, counter) in b[12..].iter_mut().zip(block.to_be_bytes()) {
            *byte ^= counter;
        }
        assert_eq!(nonced[at..at + 16], spec::aes128_encrypt_block(&key, &b), "block {block} with a nonce");
    }
    for tier in tiers() {
        for offset in [0, 1] {
            let mut out = vec![0; len + offset];
            (tier.aes128_ctr)(&key, 0, &mut out[offset..]);
            assert!(out[offset..] == plain, "{}", tier.name);
            (tier.aes128_ctr_xor)(&key, &nonce, &mut out[offset..]);
            assert!(out[offset..] == nonced, "{} with a nonce", tier.name);
        }
        let mut pieces = vec![0; len];
        for (i, piece) in pieces.chunks_mut(16 * 37).enumerate() {
            (tier.aes128_ctr)(&key, 37 * i as u32, piece);
        }
        assert!(pieces == plain, "{} in pieces", tier.name);
    }
}

#[test]
fn shake256_known_answers() {
    // FIPS 202 example values: the empty message, and 1600 bits of 0xa3 (both 512 bytes long; the first and last 32).
    let cases: [(&[u8], &str, &str); 2] = [
        (
            &[],
            "46b9dd2b0ba88d13233b3feb743eeb243fcd52ea62b81b82b50c27646ed5762f",
            "ab0bae316339894304e35877b0c28a9b1fd166c796b9cc258a064a8f57e27f2a",
        ),
        (
            &[0xa3; 200],
            "cd8a920ed141aa0407a22d59288652e9d9f1a7ee0c1e7c1ca699424da84a904d",
            "6a1a9d7846436e4dca5728b6f760eef0ca92bf0be5615e96959d767197a0beeb",
        ),
    ];
    for (message, first, last) in cases {
        let mut out = [0; 512];
        spec::shake256(message, &mut out);
        assert_eq!(out[..32], hex::<32>(first), "the oracle itself");
        assert_eq!(out[480..], hex::<32>(last), "the oracle itself");
        for tier in tiers() {
            let Some(shake) = &tier.shake else { continue };
            let mut out = [0; 512];
            (shake.shake256)(&[message], &mut out);
            assert_eq!(out[..32], hex::<32>(first), "{}", tier.name);
            assert_eq!(out[480..], hex::<32>(last), "{}", tier.name);
        }
    }
}

#[test]
fn shake256_agrees_with_the_standard_at_every_length() {
    for tier in tiers() {
        let Some(shake) = &tier.shake else { continue };
        let lengths = if cfg!(miri) { lengths() } else { LENGTHS.to_vec() };
        for &input in &lengths {
            let message = noise(7 + input as u64, input);
            let mut expected = vec![0; lengths[lengths.len() - 1]];
            spec::shake256(&message, &mut expected);
            for &len in &lengths {
                let mut out = vec![0xee; len + 1];
                (shake.shake256)(&[&message], &mut out[..len]);
                assert!(out[..len] == expected[..len], "{}: {input} bytes to {len}", tier.name);
                assert_eq!(out[len], 0xee, "{}: wrote past {len} bytes", tier.name);
            }
        }
    }
}

#[test]
fn a_seed_and_its_stream_agree_with_the_standards_at_every_length() {
    // Around the 48 steps of 128 or 256 bytes beside a permutation, and as many blocks of output as they can serve.
    let streams = [0, 5, 127, 128, 4096, 6143, 6144, 6145, 12_288, 12_300, 24_576, 40_000, 101_376];
    let hashes = [16, 135, 136, 137, 272, 273, 560, 1000];
    let longest = streams[streams.len() - 1];
    for engine in Engine::available(&lanework_cpu::Cpu::detect()) {
        let e = engine.kernels().expand();
        for seed_bytes in [0, 24, 40, 135, 136, 300] {
            let seed = noise(11 + seed_bytes as u64, seed_bytes);
            let (mut expected, mut stream) = (vec![0; 1000], vec![0; longest]);
            spec::shake256(&seed, &mut expected);
            spec::aes128_ctr(expected.first_chunk().expect("a key"), &[0; 16], 0, &mut stream);
            for hash_bytes in hashes {
                for stream_bytes in streams {
                    let (mut hash, mut out) = (vec![0xee; hash_bytes + 1], vec![0xee; stream_bytes + 1]);
                    e.seed_and_stream(&seed, &mut hash[..hash_bytes], &mut out[..stream_bytes]);
                    let name = format!("{}: {seed_bytes} to {hash_bytes}, {stream_bytes}", engine.name());
                    assert!(hash[..hash_bytes] == expected[..hash_bytes], "{name}");
                    assert!(out[..stream_bytes] == stream[..stream_bytes], "{name}");
                    assert_eq!(
                        (hash[hash_bytes], out[stream_bytes]),
                        (0xee, 0xee),
                        "{name}: wrote past them"
                    );
                }
            }
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn every_byte_of_an_expanded_public_key_is_written() {
    for engine in Engine::available(&lanework_cpu::Cpu::detect()) {
        for kernels in engine.kernels().sets().iter().filter(|set| set.public.is_some()) {
            let set = kernels.sizes;
            let p = noise(21, set.p12_bytes() + SLACK);
            let p3 = noise(22, set.p3_vecs() * set.m_bytes() + SLACK);
            let [a, b] = [0, 0xff].map(|before| {
                let mut layout = vec![Block([before; 64]); kernels.public_blocks()];
                kernels.expand_public(Matrices { p: &p, p3: &p3 }, &mut layout);
                // The last block may be left over in part.
                layout.pop();
                layout
            });
            assert!(bytes(&a) == bytes(&b), "{}: bytes that are left as they were", engine.name());
        }
    }
}

#[test]
fn shake256_takes_its_message_in_any_parts() {
    let message = noise(8, 300);
    let mut expected = [0; 200];
    spec::shake256(&message, &mut expected);
    for tier in tiers() {
        let Some(shake) = &tier.shake else { continue };
        for cut in (0..=message.len()).step_by(if cfg!(miri) { 67 } else { 1 }) {
            let (a, b) = message.split_at(cut);
            let mut out = [0; 200];
            (shake.shake256)(&[a, &[], b], &mut out);
            assert_eq!(out, expected, "{}: cut at {cut}", tier.name);
        }
        let singles: Vec<&[u8]> = message.chunks(1).collect();
        let mut out = [0; 200];
        (shake.shake256)(&singles, &mut out);
        assert_eq!(out, expected, "{}: byte by byte", tier.name);
    }
    let mut empty = [0; 32];
    let mut none = [0; 32];
    portable::expand::shake256(&[&[]], &mut empty);
    for tier in tiers() {
        let Some(shake) = &tier.shake else { continue };
        (shake.shake256)(&[], &mut none);
        assert_eq!(none, empty, "{}: no part is the empty message", tier.name);
    }
}

#[test]
fn shake256_lanes_are_independent() {
    for tier in tiers() {
        let Some(shake) = &tier.shake else { continue };
        for lanes in 0..=if cfg!(miri) { 3 } else { 17 } {
            for (input, len) in
                [(0, 1), (1, 136), (8, 137), (80, 312), (135, 7), (136, 272), (137, 0), (300, 600)]
            {
                let messages: Vec<_> = (0..lanes).map(|lane| noise(100 + lane, input)).collect();
                check_lanes(&tier, shake, &messages, &vec![len; lanes as usize]);
            }
        }
        // Lengths that differ are outside the fast path, but must still be right.
        let messages: Vec<_> = (0..9).map(|lane| noise(200 + lane, 60 * lane as usize)).collect();
        check_lanes(&tier, shake, &messages, &[5, 0, 136, 137, 300, 1, 2, 3, 4]);
    }
}

fn check_lanes(tier: &Tier, shake: &Shake, messages: &[Vec<u8>], lens: &[usize]) {
    let views: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let mut outs: Vec<Vec<u8>> = lens.iter().map(|len| vec![0xee; *len]).collect();
    let mut slots: Vec<&mut [u8]> = outs.iter_mut().map(Vec::as_mut_slice).collect();
    (shake.shake256_xn)(&views, &mut slots);
    for (lane, (message, out)) in messages.iter().zip(&outs).enumerate() {
        let mut expected = vec![0; out.len()];
        spec::shake256(message, &mut expected);
        assert!(*out == expected, "{}: lane {lane} of {}", tier.name, messages.len());
    }
}
