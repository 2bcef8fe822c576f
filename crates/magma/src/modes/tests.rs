//! Modes against their plain descriptions at every length, in every cut, on every backend and over threads; and their
//! refusals.
#![forbid(unsafe_code)]

use lanework_cpu::Threads;

use super::hazmat::{EcbDecryptor, EcbEncryptor};
use super::legacy::{self, Imit, Meshing};
use super::*;
use crate::backend::Engine;
use crate::internals::known::modes::engines;
use crate::internals::spec::modes as plain;
use crate::key::{Gost28147, Keyed, Magma};
use crate::limits::Limits;
use crate::sbox::Sbox;

mod errors;

/// Reproducible pseudorandom numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }

    fn key(&mut self) -> [u8; 32] {
        core::array::from_fn(|_| self.next() as u8)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Lengths around blocks, sections, buffers and batches.
fn lengths(numbers: &mut Numbers) -> Vec<usize> {
    let mut lengths: Vec<usize> = (0..=50).collect();
    for n in [64, 256, 512, 1024, 2048, 4096, 8192, 12_345] {
        lengths.extend([n - 1, n, n + 1, n + 8, n + numbers.below(100)]);
    }
    lengths
}

/// Processes `data` in random pieces that are multiples of `granule`: in place, between buffers or within one buffer.
fn cut(numbers: &mut Numbers, granule: usize, mut state: impl Stream, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let most = [8, 40, 300, 5000][numbers.below(4)];
    let mut rest = data;
    while !rest.is_empty() {
        let n = numbers.below(most + 1).next_multiple_of(granule).min(rest.len());
        let (now, later) = rest.split_at(n);
        let mut piece = vec![0xa5; n];
        match numbers.below(4) {
            0 => {
                piece.copy_from_slice(now);
                state.apply(&mut piece).unwrap();
            }
            1 => state.apply_to(now, &mut piece).unwrap(),
            turn => {
                // Forwards and backwards within one buffer.
                let (from, to) = if turn == 2 { (0, n + 3) } else { (n + 1, 0) };
                let mut buffer = vec![0xa5; 2 * n + 3];
                buffer[from..from + n].copy_from_slice(now);
                state.apply_within(&mut buffer, from..from + n, to).unwrap();
                piece.copy_from_slice(&buffer[to..to + n]);
            }
        }
        out.extend(piece);
        rest = later;
    }
    out
}

/// Compares a mode in both directions with its plain description `want`.
fn both_ways<E: Stream + Clone, D: Stream + Clone>(
    what: &str,
    granule: usize,
    numbers: &mut Numbers,
    (forth, back): (E, D),
    data: &[u8],
    want: &[u8],
) {
    let mut whole = data.to_vec();
    forth.clone().apply(&mut whole).unwrap();
    assert!(whole == want, "{what}: {} bytes", data.len());
    assert!(cut(numbers, granule, forth, data) == want, "{what}: {} bytes in pieces", data.len());
    back.clone().apply(&mut whole).unwrap();
    assert!(whole == data, "{what}: {} bytes back", data.len());
    assert!(cut(numbers, granule, back, want) == data, "{what}: {} bytes back in pieces", data.len());
}

/// Both ciphers, by a key and its block function.
fn general<K: Keyed + Copy>(what: &str, key: K, plain: &plain::Cipher, numbers: &mut Numbers) {
    for n in lengths(numbers) {
        let data = numbers.bytes(n);
        for z in [1, 2, 3, 17] {
            let iv = numbers.bytes(8 * z);
            let say = |mode: &str| format!("{what} {mode}, z = {z}");
            let ofb = Ofb::with_key(key, &iv).unwrap();
            both_ways(&say("OFB"), 1, numbers, (ofb.clone(), ofb), &data, &plain.ofb(&iv, &data));
            let cfb = (CfbEncryptor::with_key(key, &iv).unwrap(), CfbDecryptor::with_key(key, &iv).unwrap());
            both_ways(&say("CFB"), 1, numbers, cfb, &data, &plain.cfb(&iv, &data));
            let whole = &data[..n / 8 * 8];
            let cbc = (CbcEncryptor::with_key(key, &iv).unwrap(), CbcDecryptor::with_key(key, &iv).unwrap());
            both_ways(&say("CBC"), 8, numbers, cbc, whole, &plain.cbc(&iv, whole));
        }
        let whole = &data[..n / 8 * 8];
        let ecb = (EcbEncryptor::with_key(key), EcbDecryptor::with_key(key));
        both_ways(&format!("{what} ECB"), 8, numbers, ecb, whole, &plain.ecb(whole));
        let mut mac = Omac::with_key(key, 8).unwrap();
        mac.update(&data).unwrap();
        let want = plain.omac(&data);
        assert_eq!(mac.finish().as_ref(), want, "{what} OMAC of {n} bytes");
        let mut mac = Omac::with_key(key, 5).unwrap();
        for piece in data.chunks(1 + numbers.below(20)) {
            mac.update(piece).unwrap();
        }
        assert_eq!(mac.finish().as_ref(), &want[..5], "{what} OMAC of {n} bytes in pieces");
    }
}

#[test]
fn magma_is_as_described() {
    for engine in engines() {
        let mut numbers = Numbers(1);
        let bytes = numbers.key();
        let key = &Magma::with(&bytes, engine);
        let plain = plain::Cipher::magma(&bytes);
        general(engine.name(), key, &plain, &mut numbers);
        for n in lengths(&mut numbers) {
            let (data, iv) = (numbers.bytes(n), numbers.bytes(4));
            let ctr = Ctr::with_key(key, &iv).unwrap();
            let what = format!("{} CTR", engine.name());
            both_ways(&what, 1, &mut numbers, (ctr.clone(), ctr), &data, &plain.ctr(&iv, &data));
            for section in [8, 24, 1024, 4096, 1 << 20] {
                let state = CtrAcpkm::with_section(key, &iv, section).unwrap();
                let want = plain::ctr_acpkm(&bytes, &iv, section, &data);
                let what = format!("{} CTR-ACPKM with sections of {section}", engine.name());
                both_ways(&what, 1, &mut numbers, (state.clone(), state), &data, &want);
                for frequency in [40, 120] {
                    let mut mac = OmacAcpkm::with_key(key, section, frequency, 8).unwrap();
                    for piece in data.chunks(1 + numbers.below(2000)) {
                        mac.update(piece).unwrap();
                    }
                    let want = plain::omac_acpkm(&bytes, section, frequency, &data);
                    assert_eq!(mac.finish().as_ref(), want, "OMAC-ACPKM, {section}, {frequency}, {n} bytes");
                }
            }
        }
    }
}

#[test]
fn gost28147_is_as_described() {
    for engine in engines() {
        let mut numbers = Numbers(2);
        for sbox in [Sbox::Z, Sbox::CryptoProB] {
            let bytes = numbers.key();
            let key = &Gost28147::with(&bytes, sbox, engine);
            let plain = plain::Cipher::gost28147(&bytes, sbox);
            general(engine.name(), key, &plain, &mut numbers);
            for n in lengths(&mut numbers) {
                let (data, iv) = (numbers.bytes(n), numbers.bytes(8));
                for meshing in [Meshing::None, Meshing::CryptoPro] {
                    let mesh = meshing == Meshing::CryptoPro;
                    let what = |mode: &str| format!("{} {sbox:?} {mode}, {meshing:?}", engine.name());
                    let cnt = legacy::Cnt::with_key(key, &iv, meshing).unwrap();
                    let want = plain::cnt(&bytes, sbox, &iv, mesh, &data);
                    both_ways(&what("CNT"), 1, &mut numbers, (cnt.clone(), cnt), &data, &want);
                    let cfb = (
                        legacy::CfbEncryptor::with_key(key, &iv, meshing).unwrap(),
                        legacy::CfbDecryptor::with_key(key, &iv, meshing).unwrap(),
                    );
                    let want = plain::cfb_meshing(&bytes, sbox, &iv, mesh, &data);
                    both_ways(&what("CFB"), 1, &mut numbers, cfb, &data, &want);
                    let mut mac = Imit::with_iv(key, &iv[..].try_into().unwrap(), meshing);
                    for piece in data.chunks(1 + numbers.below(50)) {
                        mac.update(piece).unwrap();
                    }
                    let want = plain::imit(&bytes, sbox, &iv, mesh, &data);
                    assert_eq!(mac.finish().as_ref(), want, "{}: {n} bytes", what("IMIT"));
                }
            }
        }
    }
}

/// States can move to another thread and be shared, with keys that they own.
#[test]
fn states_are_send_and_sync() {
    fn holds<T: Send + Sync + 'static>() {}
    holds::<(Ctr<Magma>, CtrAcpkm, Ofb<Magma>, CbcEncryptor<Gost28147>, CbcDecryptor<Magma>)>();
    holds::<(CfbEncryptor<Magma>, CfbDecryptor<Gost28147>, Omac<Magma>, OmacAcpkm)>();
    holds::<(legacy::Cnt, legacy::CfbEncryptor, legacy::CfbDecryptor, Imit)>();
}

/// Long enough to be spread, from any position, and continued afterwards.
#[test]
fn threads_change_nothing() {
    let pool = Threads::pool(3).unwrap();
    let engine = Engine::best();
    let mut numbers = Numbers(3);
    let (bytes, iv4, iv) = (numbers.key(), numbers.bytes(4), numbers.bytes(24));
    let key = &Magma::with(&bytes, engine).with_limits(Limits::Unlimited);
    let plain = plain::Cipher::magma(&bytes);
    let len = 1 << 19;
    let data = numbers.bytes(len + 3000);
    let whole = &data[..len + 2968];
    let (ctr, acpkm) = (plain.ctr(&iv4, &data), plain::ctr_acpkm(&bytes, &iv4, 1024, &data));
    let (cbc, cfb) = (plain.cbc(&iv, whole), plain.cfb(&iv, &data));
    for threads in [Threads::One, Threads::Own(2), Threads::Pool(&pool)] {
        for head in [0, 1, 8, 24, 1000, 1024, 1029] {
            macro_rules! spread {
                ($what:literal, $state:expr, $head:expr, $from:expr, $want:expr) => {{
                    let (mut state, mut out, head) = ($state, $from.to_vec(), $head);
                    let (first, rest) = out.split_at_mut(head);
                    let (middle, last) = rest.split_at_mut(len);
                    state.apply(first).unwrap();
                    state.apply_with(threads, middle).unwrap();
                    state.apply(last).unwrap();
                    assert!(out == $want, "{} from {head} on, {threads:?}", $what);
                }};
            }
            spread!("CTR", Ctr::with_key(key, &iv4).unwrap(), head, data, ctr);
            spread!("CTR-ACPKM", CtrAcpkm::with_key(key, &iv4).unwrap(), head, data, acpkm);
            spread!("CFB", CfbDecryptor::with_key(key, &iv).unwrap(), head, cfb, data);
            spread!("CBC", CbcDecryptor::with_key(key, &iv).unwrap(), head / 8 * 8, cbc, whole);
            spread!("ECB", EcbEncryptor::with_key(key), head / 8 * 8, whole, plain.ecb(whole));
            spread!("ECB", EcbDecryptor::with_key(key), head / 8 * 8, plain.ecb(whole), whole);
        }
    }
}

/// More than one window of section keys, whose keys are made while others are used.
#[test]
fn acpkm_windows_follow_each_other() {
    let mut numbers = Numbers(4);
    let (bytes, iv) = (numbers.key(), numbers.bytes(4));
    let key = &Magma::new(&bytes);
    // Sections of 8 bytes make windows of 32 KiB; pieces are at least 64 KiB, and windows grow with them.
    let mut data = numbers.bytes(400_008);
    let mut want = data.clone();
    CtrAcpkm::with_section(key, &iv, 8).unwrap().apply(&mut want).unwrap();
    CtrAcpkm::with_section(key, &iv, 8).unwrap().apply_with(Threads::Own(2), &mut data).unwrap();
    assert!(data == want);
}

#[test]
fn ctr_goes_to_any_block() {
    let mut numbers = Numbers(5);
    let (bytes, iv, data) = (numbers.key(), numbers.bytes(4), numbers.bytes(3000));
    let key = Magma::new(&bytes);
    let want = plain::Cipher::magma(&bytes).ctr(&iv, &data);
    let mut state = Ctr::with_key(&key, &iv).unwrap();
    for block in [0, 1, 200, 7, 374] {
        // A block that was begun leaves nothing behind.
        state.apply(&mut [0; 3]).unwrap();
        state.seek_block(block).unwrap();
        assert_eq!(state.position(), 8 * block);
        let mut out = data[8 * block as usize..].to_vec();
        state.apply(&mut out).unwrap();
        assert!(out == want[8 * block as usize..]);
    }
}
