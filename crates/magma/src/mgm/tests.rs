//! MGM against the RFCs' messages and against the specification, on every backend, whole, cut anywhere, and on threads.

use inout::InOutBuf;
use lanework_cpu::Threads;

use super::*;
use crate::internals::known::mgm::{INSIDES, MESSAGES};
use crate::internals::known::modes::engines;
use crate::internals::known::{array, bytes};
use crate::internals::spec;
use crate::internals::spec::modes::mgm as slowly;
use crate::limits::Limits;
use crate::sbox::Sbox;

fn each(test: impl Fn(Engine)) {
    engines().into_iter().for_each(test);
}

fn numbers(seed: u64, n: usize) -> Vec<u8> {
    let mut state = seed;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

#[test]
fn the_rfcs_messages_are_sealed_and_opened() {
    each(|engine| {
        for m in MESSAGES {
            let mgm = Mgm::with(&array(m.key), 8, engine).expect("8 bytes of tag");
            let (nonce, aad) = (bytes(m.nonce), bytes(m.aad));
            let mut data = bytes(m.plaintext);
            let tag = mgm.seal(&nonce, &aad, &mut data).expect("a message");
            assert_eq!(data, bytes(m.ciphertext), "{} {}", engine.name(), m.source);
            assert_eq!(tag.as_slice(), bytes(m.tag), "{} {}", engine.name(), m.source);
            mgm.open(&nonce, &aad, &mut data, tag.as_slice()).expect("its own tag");
            assert_eq!(data, bytes(m.plaintext), "{} {}", engine.name(), m.source);
        }
    });
}

#[test]
fn rfc_9058_inside() {
    each(|engine| {
        for inside in INSIDES {
            let m = &MESSAGES[inside.message];
            let mgm = Mgm::with(&array(m.key), 8, engine).expect("8 bytes of tag");
            let start = Start::new(mgm.core(), array(m.nonce));
            assert_eq!(start.encrypt.at(0).to_be_bytes(), array(inside.y));
            assert_eq!(start.hash.at(0).to_be_bytes(), array(inside.z));
            let (gamma, factors) = (bytes(inside.gamma), bytes(inside.factors));
            let mut out = vec![0; gamma.len()];
            mgm.core().keystream(start.encrypt, &mut out);
            assert_eq!(out, gamma);
            out.resize(factors.len(), 0);
            mgm.core().keystream(start.hash, &mut out);
            assert_eq!(out, factors);
            let (aad, ciphertext) = (bytes(m.aad), bytes(m.ciphertext));
            let mut padded = aad.clone();
            padded.resize(aad.len().next_multiple_of(8), 0);
            padded.extend(&ciphertext);
            padded.resize(padded.len().next_multiple_of(8), 0);
            for (i, sum) in bytes(inside.sums).chunks(8).enumerate() {
                let mut work = Work::new(mgm.core());
                work.absorb(start.hash, &padded[..8 * i + 8]);
                assert_eq!(field::reduce(work.sum).to_be_bytes(), sum, "after block {}", i + 1);
            }
            padded.extend(lengths(aad.len(), ciphertext.len()));
            let mut work = Work::new(mgm.core());
            work.absorb(start.hash, &padded);
            assert_eq!(field::reduce(work.sum).to_be_bytes(), array(inside.sum));
            assert_eq!(work.tag(), array(m.tag));
        }
    });
}

#[test]
fn every_length_is_the_specifications() {
    let key: [u8; 32] = array(MESSAGES[0].key);
    let lengths = (0..=41usize).flat_map(|n| [(0, n), (n, 0), (n, 23), (13, n)]).chain([
        (1000, 0),
        (1016, 0),
        (1017, 7),
        (0, 503),
        (0, 504),
        (0, 505),
        (8, 1000),
        (0, 2040),
        (1, 2040),
        (13, 2029),
        (0, 248),
        (1, 248),
        (0, 249),
        (504, 0),
        (505, 0),
        (0, 4088),
        (1, 4080),
        (1, 4081),
        (4088, 0),
        (4089, 0),
        (200, 4096),
        (3, 8191),
        (0, 8192),
        (0, 8193),
        (8200, 16391),
        (20000, 40001),
    ]);
    each(|engine| {
        let mgm = Mgm::with(&key, 8, engine).expect("8 bytes of tag");
        for (a, n) in lengths.clone().filter(|&(a, n)| a + n > 0) {
            let (aad, plaintext) = (numbers(a as u64, a), numbers(n as u64 + 99, n));
            let nonce: [u8; 8] = (0x7fff_0000_0000_0000 ^ (a * 100_000 + n) as u64).to_be_bytes();
            let (ciphertext, tag) = slowly(&key, nonce, &aad, &plaintext);
            let mut out = vec![0xa5; n];
            let got = mgm.seal_to(&nonce, &aad, &plaintext, &mut out).expect("a message");
            assert!(out == ciphertext && got.as_slice() == tag, "{} {a}+{n}: sealed", engine.name());
            let mut in_place = plaintext.clone();
            let got = mgm.seal(&nonce, &aad, &mut in_place).expect("a message");
            assert!(in_place == ciphertext && got.as_slice() == tag, "{} {a}+{n}: in place", engine.name());
            out.fill(0xa5);
            mgm.open_to(&nonce, &aad, &ciphertext, &mut out, &tag).expect("its own tag");
            assert!(out == plaintext, "{} {a}+{n}: opened", engine.name());
            mgm.open(&nonce, &aad, &mut in_place, &tag).expect("its own tag");
            assert!(in_place == plaintext, "{} {a}+{n}: opened in place", engine.name());
        }
    });
}

#[test]
fn counters_that_wrap_stay_within_their_halves() {
    // Nonces, found by search, for which Y_1's lower half or Z_1's upper half starts within 4,000 of its end.
    let key = [7; 32];
    let words = spec::magma_words(&key);
    let nonces = [0x1a_6424u64, 0xdac];
    let y = spec::encrypt(Sbox::Z.rows(), &words, nonces[0]) as u32;
    let z = (spec::encrypt(Sbox::Z.rows(), &words, nonces[1] | 1 << 63) >> 32) as u32;
    assert!(y > u32::MAX - 4000 && z > u32::MAX - 4000, "{y:08x} {z:08x}");
    let plaintext = numbers(5, 8 * 4100);
    for nonce in nonces.map(u64::to_be_bytes) {
        let (ciphertext, tag) = slowly(&key, nonce, b"wraps", &plaintext);
        each(|engine| {
            let mgm = Mgm::with(&key, 8, engine).expect("8 bytes of tag");
            let mut data = plaintext.clone();
            let got = mgm.seal(&nonce, b"wraps", &mut data).expect("a message");
            assert!(data == ciphertext && got.as_slice() == tag, "{}", engine.name());
        });
    }
}

#[test]
fn pieces_cut_anywhere_are_the_same_message() {
    let key: [u8; 32] = array(MESSAGES[1].key);
    let (aad, plaintext) = (numbers(1, 61), numbers(2, 9000));
    let nonce = [1, 2, 3, 4, 5, 6, 7, 8];
    let (ciphertext, tag) = slowly(&key, nonce, &aad, &plaintext);
    each(|engine| {
        let mgm = Mgm::with(&key, 8, engine).expect("8 bytes of tag");
        for step in [1, 2, 3, 7, 8, 9, 16, 61, 100, 1000, 8195, 9000] {
            let mut sealer = mgm.sealer(&nonce).expect("a nonce");
            let mut opener = mgm.opener(&nonce).expect("a nonce");
            let mut verifier = mgm.verifier(&nonce).expect("a nonce");
            for piece in aad.chunks(step) {
                sealer.aad(piece).expect("taken");
                opener.aad(piece).expect("taken");
                verifier.aad(piece).expect("taken");
            }
            let (mut sealed, mut opened) = (plaintext.clone(), vec![0; plaintext.len()]);
            for piece in sealed.chunks_mut(step) {
                sealer.data(piece).expect("taken");
            }
            assert!(sealed == ciphertext, "{} {step}: sealed", engine.name());
            assert_eq!(sealer.finish().expect("a message").as_slice(), tag, "{} {step}", engine.name());
            for (from, to) in ciphertext.chunks(step).zip(opened.chunks_mut(step)) {
                verifier.data(from).expect("taken");
                opener.data_unverified_inout(InOutBuf::new(from, to).expect("one length")).expect("taken");
            }
            assert!(opened == plaintext, "{} {step}: opened", engine.name());
            opener.finish(&tag).expect("its own tag");
            let mut decrypter = verifier.finish(&tag).expect("its own tag");
            for piece in sealed.chunks_mut(step) {
                assert!(!decrypter.is_complete());
                decrypter.data(piece).expect("verified");
            }
            assert!(decrypter.is_complete());
            assert!(sealed == plaintext, "{} {step}: verified and decrypted", engine.name());
            assert_eq!(decrypter.data(&mut [0]), Err(Error::TooLong { limit: 9000 }));
        }
    });
}

#[test]
fn threads_change_nothing() {
    let key = [3; 32];
    let nonce = [0; 8];
    let pool = Threads::pool(3).expect("three threads");
    each(|engine| {
        let mgm = Mgm::with(&key, 6, engine).expect("6 bytes of tag");
        for n in [0, 5, 98_303, 98_304, 100_003, 262_144, 1_000_001] {
            let plaintext = numbers(n as u64, n);
            let mut alone = plaintext.clone();
            let tag = mgm.seal(&nonce, b"aad", &mut alone).expect("a message");
            for threads in [Threads::One, Threads::Own(2), Threads::Pool(&pool)] {
                let mut data = plaintext.clone();
                let got = mgm.seal_with(threads, &nonce, b"aad", &mut data).expect("a message");
                assert!(data == alone && got.as_slice() == tag.as_slice(), "{} {n}", engine.name());
                mgm.open_with(threads, &nonce, b"aad", &mut data, tag.as_slice()).expect("its own tag");
                assert!(data == plaintext, "{} {n}: opened", engine.name());
                let mut bad = alone.clone();
                let wrong = mgm.open_with(threads, &nonce, b"aax", &mut bad, tag.as_slice());
                assert_eq!(wrong, Err(Error::Refused));
                assert!(bad.iter().all(|&byte| byte == 0), "{} {n}: wiped", engine.name());
            }
        }
    });
}

#[test]
fn a_changed_bit_anywhere_is_refused_and_leaves_zeros() {
    each(|engine| {
        for (a, n) in [(5, 11), (20, 700)] {
            let mgm = Mgm::with(&[9; 32], 8, engine).expect("8 bytes of tag");
            let nonce = [0x11; 8];
            let (aad, mut sealed) = (numbers(1, a), numbers(2, n));
            let plaintext = sealed.clone();
            let tag = mgm.seal(&nonce, &aad, &mut sealed).expect("a message");
            let tag: [u8; 8] = tag.as_slice().try_into().expect("8 bytes");
            let message: Vec<u8> = [&nonce[..], &aad, &sealed, &tag].concat();
            for bit in 0..8 * message.len() {
                let mut bad = message.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                if bad[0] & 0x80 != 0 {
                    continue;
                }
                let (head, rest) = bad.split_at(8 + a);
                let (data, tag) = rest.split_at(n);
                let mut out = vec![0xa5; n];
                let refused = mgm.open_to(&head[..8], &head[8..], data, &mut out, tag);
                assert_eq!(refused, Err(Error::Refused), "{} bit {bit}", engine.name());
                assert!(out.iter().all(|&byte| byte == 0), "{} bit {bit}", engine.name());
                let mut opener = mgm.opener(&head[..8]).expect("a nonce");
                let mut verifier = mgm.verifier(&head[..8]).expect("a nonce");
                opener.aad(&head[8..]).and_then(|()| verifier.aad(&head[8..])).expect("taken");
                verifier.data(data).expect("taken");
                opener.data_unverified(&mut data.to_vec()).expect("taken");
                assert_eq!(opener.finish(tag), Err(Error::Refused));
                assert_eq!(verifier.finish(tag).err(), Some(Error::Refused));
            }
            mgm.open(&nonce, &aad, &mut sealed, &tag).expect("the unchanged message");
            assert!(sealed == plaintext);
        }
    });
}

#[test]
fn short_tags_are_the_whole_ones_beginning() {
    let key = array(MESSAGES[0].key);
    for length in 4..=8 {
        let mgm = Mgm::with(&key, length, Engine::best()).expect("4 to 8");
        let mut data = bytes(MESSAGES[0].plaintext);
        let tag = mgm.seal(&bytes(MESSAGES[0].nonce), &bytes(MESSAGES[0].aad), &mut data).expect("a message");
        assert_eq!(tag.as_slice(), &bytes(MESSAGES[0].tag)[..length]);
        assert_eq!(mgm.tag_length(), length);
    }
}

#[test]
fn a_nonce_is_one_that_mgm_takes() {
    struct Ones;
    impl rand_core::TryRng for Ones {
        type Error = core::convert::Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            Ok(u32::MAX)
        }
        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            Ok(u64::MAX)
        }
        fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
            out.fill(0xff);
            Ok(())
        }
    }
    impl rand_core::TryCryptoRng for Ones {}
    let Ok(nonce) = Nonce::random(&mut Ones);
    assert_eq!(nonce.as_ref(), [0x7f, 255, 255, 255, 255, 255, 255, 255]);
    assert!(Mgm::new(&[7; 32]).seal(nonce.as_ref(), b"", &mut [1]).is_ok());
    assert_eq!(Nonce::try_from(nonce.as_ref()), Ok(nonce));
    assert_eq!(Nonce::try_from([0x80, 0, 0, 0, 0, 0, 0, 0]), Err(Error::NonceTopBit));
    assert_eq!(Nonce::try_from(&[0; 7][..]), Err(Error::NonceLength { got: 7, want: "8" }));
}

#[test]
fn every_misuse_has_its_error_and_changes_nothing() {
    let engine = Engine::best();
    for length in [0, 1, 3, 9, 16] {
        assert_eq!(Mgm::with(&[0; 32], length, engine).err(), Some(Error::TagLength(length)));
    }
    let mgm = Mgm::new(&[0; 32]);
    let mut data = [1, 2, 3];
    for got in [0, 7, 9, 16] {
        let wrong = Some(Error::NonceLength { got, want: "8" });
        assert_eq!(mgm.seal(&vec![0; got], b"", &mut data).err(), wrong);
        assert_eq!(mgm.open(&vec![0; got], b"", &mut data, &[0; 8]).err(), wrong);
        assert_eq!(mgm.sealer(&vec![0; got]).err(), wrong);
        assert_eq!(mgm.opener(&vec![0; got]).err(), wrong);
        assert_eq!(mgm.verifier(&vec![0; got]).err(), wrong);
    }
    let top = [0x80, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(mgm.seal(&top, b"", &mut data).err(), Some(Error::NonceTopBit));
    assert_eq!(mgm.open(&top, b"", &mut data, &[0; 8]).err(), Some(Error::NonceTopBit));
    assert_eq!(mgm.sealer(&top).err(), Some(Error::NonceTopBit));
    assert_eq!(mgm.seal(&[0; 8], b"", &mut []).err(), Some(Error::EmptyMessage));
    assert_eq!(mgm.open(&[0; 8], b"", &mut [], &[0; 8]).err(), Some(Error::EmptyMessage));
    assert_eq!(mgm.sealer(&[0; 8]).expect("a nonce").finish().err(), Some(Error::EmptyMessage));
    assert_eq!(mgm.opener(&[0; 8]).expect("a nonce").finish(&[0; 8]).err(), Some(Error::EmptyMessage));
    assert_eq!(mgm.open(&[0; 8], b"", &mut data, &[0; 7]).err(), Some(Error::TagLength(7)));
    assert_eq!(mgm.opener(&[0; 8]).expect("a nonce").finish(&[0; 4]).err(), Some(Error::TagLength(4)));
    let mut out = [0; 2];
    let wrong = Some(Error::Lengths { input: 3, output: 2 });
    assert_eq!(mgm.seal_to(&[0; 8], b"", &data, &mut out).err(), wrong);
    assert_eq!(mgm.open_to(&[0; 8], b"", &data, &mut out, &[0; 8]).err(), wrong);
    assert_eq!((data, out), ([1, 2, 3], [0, 0]));
    let mut sealer = mgm.sealer(&[0; 8]).expect("a nonce");
    sealer.data(&mut [0; 5]).expect("taken");
    assert_eq!(sealer.aad(b"late"), Err(Error::OutOfOrder));
}

#[test]
fn a_message_of_two_to_the_29_bytes_is_too_long() {
    // Unwritten zeros take no memory: the refused calls return before they access them.
    let mgm = Mgm::new(&[0; 32]);
    let long = vec![0; 1 << 29];
    let too_long = Some(Error::TooLong { limit: LONGEST });
    assert_eq!(admit(&[0; 8], LONGEST as usize, 0).err(), None);
    assert_eq!(admit(&[0; 8], 1, LONGEST as usize - 1).err(), None);
    assert_eq!(admit(&[0; 8], 1, LONGEST as usize).err(), too_long);
    assert_eq!(admit(&[0; 8], usize::MAX, usize::MAX).err(), too_long);
    assert_eq!(mgm.seal(&[0; 8], &long, &mut []).err(), too_long);
    let mut sealer = mgm.sealer(&[0; 8]).expect("a nonce");
    sealer.aad(&[0; 100]).expect("taken");
    assert_eq!(sealer.aad(&long[..(1 << 29) - 100]).err(), too_long);
    let mut verifier = mgm.verifier(&[0; 8]).expect("a nonce");
    verifier.data(&[0; 100]).expect("taken");
    assert_eq!(verifier.data(&long[..(1 << 29) - 100]).err(), too_long);
}

#[test]
fn limits_count_what_is_sealed_and_what_is_authentic() {
    let limits = Limits::Custom { bytes: 1000, section: 8 };
    let mgm = || Mgm::with_key(Magma::new(&[4; 32]).with_limits(limits), 8).expect("8 bytes of tag");
    let exhausted = Error::KeyExhausted { limit: 1000 };
    let nonce = [0; 8];
    for (aad, n) in [(5, 15), (100, 700)] {
        let (sealing, opening) = (mgm(), mgm());
        let aad = vec![1; aad];
        let mut data = vec![2; n];
        let each = 8 * (aad.len().div_ceil(8) + n.div_ceil(8) + 4) as u64;
        let tag = sealing.seal(&nonce, &aad, &mut data).expect("within limits");
        assert_eq!(sealing.cipher().used(), each);
        // A thousand forgeries do not use the key up.
        for _ in 0..1000 {
            let mut forged = data.clone();
            assert_eq!(opening.open(&nonce, &aad, &mut forged, &[0; 8]).err(), Some(Error::Refused));
            assert!(forged.iter().all(|&byte| byte == 0));
        }
        assert_eq!(opening.cipher().used(), 0);
        for _ in 0..1000 / each {
            let mut verifier = opening.verifier(&nonce).expect("a nonce");
            verifier.aad(&aad).and_then(|()| verifier.data(&data)).expect("taken");
            verifier.finish(tag.as_slice()).expect("its own tag");
        }
        // Data beyond the limit stays unchanged.
        let before = data.clone();
        assert_eq!(opening.open(&nonce, &aad, &mut data, tag.as_slice()), Err(exhausted.clone()));
        let rest = 1000 - each as usize - 32;
        let mut long = vec![3; rest + 1];
        assert_eq!(sealing.seal(&nonce, b"", &mut long).err(), Some(exhausted.clone()));
        assert!(data == before && long.iter().all(|&byte| byte == 3));
        assert_eq!(sealing.would_seal(0, rest as u64 + 1), Err(exhausted.clone()));
        assert_eq!(sealing.would_seal(rest as u64 / 16 * 8, rest as u64 / 16 * 8), Ok(()));
        assert_eq!(sealing.would_seal(0, rest as u64), Ok(()));
        assert_eq!(sealing.cipher().used(), each, "asking costs nothing");
        let mut sealer = sealing.sealer(&nonce).expect("room for a message");
        assert_eq!(sealer.data(&mut long), Err(exhausted.clone()));
        assert_eq!(sealer.aad(&long), Err(exhausted.clone()));
        assert!(long.iter().all(|&byte| byte == 3));
        sealer.data(&mut long[1..]).expect("to the block");
        assert_eq!(sealing.cipher().used(), 1000);
        assert_eq!(sealing.sealer(&nonce).err(), Some(exhausted.clone()));
    }
    assert_eq!(mgm().would_seal(0, 0), Err(Error::EmptyMessage));
    for (aad, data) in [(LONGEST, 1), (0, LONGEST + 1), (u64::MAX, u64::MAX), (u64::MAX, 1)] {
        assert_eq!(mgm().would_seal(aad, data), Err(Error::TooLong { limit: LONGEST }));
    }
}

/// The bounds of RFC 9058, 6, have the square of s + 4q: s begun blocks of q messages. Short messages use a key up by it.
#[test]
fn every_way_to_seal_counts_begun_blocks_and_four() {
    for (aad, data) in [(0, 1), (1, 0), (8, 8), (9, 7), (100, 333), (0, 200_000), (1, 200_001)] {
        let want = 8 * (usize::div_ceil(aad, 8) + usize::div_ceil(data, 8) + 4) as u64;
        let (aad, text) = (vec![1; aad], vec![2; data]);
        let fresh = || Mgm::new(&[4; 32]);
        let one = fresh();
        let mut sealed = text.clone();
        let tag = one.seal(&[0; 8], &aad, &mut sealed).expect("a message");
        assert_eq!(one.cipher().used(), want);
        let threads = fresh();
        threads.seal_with(Threads::Own(2), &[0; 8], &aad, &mut text.clone()).expect("a message");
        assert_eq!(threads.cipher().used(), want);
        let pieces = fresh();
        let mut sealer = pieces.sealer(&[0; 8]).expect("a nonce");
        aad.chunks(3).for_each(|piece| sealer.aad(piece).expect("taken"));
        text.clone().chunks_mut(4001).for_each(|piece| sealer.data(piece).expect("taken"));
        sealer.finish().expect("a message");
        assert_eq!(pieces.cipher().used(), want);
        let opening = fresh();
        opening.open(&[0; 8], &aad, &mut sealed.clone(), tag.as_slice()).expect("its own tag");
        opening.open_with(Threads::Own(2), &[0; 8], &aad, &mut sealed, tag.as_slice()).expect("its own tag");
        assert_eq!(opening.cipher().used(), 2 * want);
    }
    let key = Magma::new(&[4; 32]).with_limits(Limits::Custom { bytes: 1000, section: 8 });
    let mgm = Mgm::with_key(key, 8).expect("8 bytes of tag");
    let sealed = (0..).take_while(|&n: &u64| mgm.seal(&n.to_be_bytes(), b"", &mut [0]).is_ok()).count();
    assert_eq!(sealed, 1000 / 40);
}

/// Real forgeries reach the limit, on every way to open a message. The key then opens nothing, and still seals.
#[test]
fn forgeries_close_a_key_for_opening_and_not_for_sealing() {
    if cfg!(miri) {
        // 256 MiB of forgeries: the account itself is tested in `limits`.
        return;
    }
    const LONG: usize = 8 << 20;
    let mgm = Mgm::new(&[4; 32]);
    let nonce = [0; 8];
    let mut good = vec![2; 100];
    let tag = mgm.seal(&nonce, b"aad", &mut good).expect("a message");
    let (sealed, used) = (good.clone(), mgm.cipher().used());
    let mut forged = vec![0xff; LONG];
    let wrong = [0; 8];
    let mut refusals = 0;
    while mgm.cipher().refused() < Limits::REFUSED {
        let verdict = match refusals % 4 {
            0 => mgm.open(&nonce, b"", &mut forged, &wrong),
            1 => mgm.open_with(Threads::Own(2), &nonce, b"", &mut forged, &wrong),
            2 => mgm.verifier(&nonce).and_then(|mut v| {
                v.data(&forged)?;
                v.finish(&wrong).map(drop)
            }),
            _ => mgm.opener(&nonce).and_then(|mut o| {
                o.data_unverified(&mut forged)?;
                o.finish(&wrong)
            }),
        };
        assert_eq!(verdict, Err(Error::Refused));
        refusals += 1;
    }
    assert_eq!(refusals, Limits::REFUSED / LONG as u64);
    assert_eq!(mgm.cipher().used(), used, "nothing of what the owner may seal");
    let closed = Error::TooManyRefused { limit: Limits::REFUSED };
    // Messages begun before are no longer verified either.
    let fresh = Mgm::new(&[4; 32]);
    let mut began = fresh.verifier(&nonce).expect("a nonce");
    began.aad(b"aad").and_then(|()| began.data(&good)).expect("taken");
    Sealed::core(&fresh.key).budget.judge(Limits::REFUSED, || Err(Error::Refused)).expect_err("planted");
    assert_eq!(began.finish(tag.as_slice()).err(), Some(closed.clone()));
    // Neither right nor wrong messages, on any path and under any clone; nothing is decrypted.
    for mgm in [&mgm, &mgm.clone()] {
        for tag in [tag.as_slice(), &wrong] {
            assert_eq!(mgm.open(&nonce, b"aad", &mut good, tag), Err(closed.clone()));
            assert_eq!(mgm.open_with(Threads::Own(2), &nonce, b"aad", &mut forged, tag), Err(closed.clone()));
        }
        assert_eq!(mgm.verifier(&nonce).err(), Some(closed.clone()));
        assert_eq!(mgm.opener(&nonce).err(), Some(closed.clone()));
    }
    assert_eq!(good, sealed);
    mgm.seal(&[1; 8], b"aad", &mut good).expect("sealing goes on");
    // Without a limit none applies.
    let free = Mgm::with_key(mgm.cipher().clone().with_limits(Limits::Unlimited), 8).expect("8 bytes");
    assert_eq!(free.open(&nonce, b"aad", &mut sealed.clone(), tag.as_slice()), Ok(()));
}
