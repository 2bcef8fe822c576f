//! The modes as their documents describe them, one block or byte at a time over the specification's cipher: slow,
//! readable, and the oracle of the checks. A wrong length panics.
#![forbid(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;

use crate::internals::spec;
use crate::sbox::{Rows, Sbox};
use crate::schedule::ByteOrder;

type Block = [u8; 8];

fn block(bytes: &[u8]) -> Block {
    bytes.try_into().expect("8 bytes")
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// A cipher under a key.
pub struct Cipher {
    rows: &'static Rows,
    words: [u32; 8],
    order: ByteOrder,
}

impl Cipher {
    /// Magma's.
    #[must_use]
    pub fn magma(key: &[u8; 32]) -> Cipher {
        Cipher { rows: Sbox::Z.rows(), words: spec::magma_words(key), order: ByteOrder::Big }
    }

    /// That of 28147-89 with an S-box set.
    #[must_use]
    pub fn gost28147(key: &[u8; 32], sbox: Sbox) -> Cipher {
        Cipher { rows: sbox.rows(), words: spec::gost28147_words(key), order: ByteOrder::Little }
    }

    fn encrypt(&self, block: Block) -> Block {
        self.order.block(spec::encrypt(self.rows, &self.words, self.order.number(block)))
    }

    fn decrypt(&self, block: Block) -> Block {
        self.order.block(spec::decrypt(self.rows, &self.words, self.order.number(block)))
    }

    /// 34.13, 5.1.
    #[must_use]
    pub fn ecb(&self, data: &[u8]) -> Vec<u8> {
        data.chunks(8).flat_map(|b| self.encrypt(block(b))).collect()
    }

    /// 34.13, 5.2: the IV, then zeros, counted up as one number.
    #[must_use]
    pub fn ctr(&self, iv: &[u8], data: &[u8]) -> Vec<u8> {
        let start = u64::from_be_bytes(block(&[iv, &[0; 4]].concat()));
        let gamma = |i: usize| self.encrypt((start + i as u64).to_be_bytes());
        data.chunks(8).enumerate().flat_map(|(i, b)| xor(b, &gamma(i))).collect()
    }

    /// 34.13, 5.3: the register's first block makes keystream, which shifts in at its end.
    #[must_use]
    pub fn ofb(&self, iv: &[u8], data: &[u8]) -> Vec<u8> {
        let mut register = iv.to_vec();
        let mut step = |b: &[u8]| {
            let gamma = self.encrypt(block(&register[..8]));
            register = [&register[8..], &gamma].concat();
            xor(b, &gamma)
        };
        data.chunks(8).flat_map(&mut step).collect()
    }

    /// 34.13, 5.4.
    #[must_use]
    pub fn cbc(&self, iv: &[u8], data: &[u8]) -> Vec<u8> {
        let mut register = iv.to_vec();
        let mut step = |b: &[u8]| {
            let c = self.encrypt(block(&xor(b, &register[..8])));
            register = [&register[8..], &c].concat();
            c
        };
        data.chunks(8).flat_map(&mut step).collect()
    }

    /// 34.13, 5.5.
    #[must_use]
    pub fn cfb(&self, iv: &[u8], data: &[u8]) -> Vec<u8> {
        let mut register = iv.to_vec();
        let mut step = |b: &[u8]| {
            let c = xor(b, &self.encrypt(block(&register[..8])));
            register = [&register[8..], &c].concat();
            c
        };
        data.chunks(8).flat_map(&mut step).collect()
    }

    /// 34.13, 5.6.
    #[must_use]
    pub fn omac(&self, data: &[u8]) -> Block {
        let r = u64::from_be_bytes(self.encrypt([0; 8]));
        let k1 = twice(r);
        let (head, last) = data.split_at(data.len().saturating_sub(1) / 8 * 8);
        let chain = head.chunks(8).fold([0; 8], |c, b| self.encrypt(block(&xor(&c, b))));
        self.encrypt(closing(&chain, last, k1))
    }
}

/// Polynomials: twice, modulo x^64 + x^4 + x^3 + x + 1.
fn twice(x: u64) -> u64 {
    let carried = u128::from(x) << 1;
    let reduced = if carried >> 64 == 1 { carried ^ (1 << 64 | 0x1b) } else { carried };
    reduced as u64
}

/// The last block, padded if needed, with the chain and its mask.
fn closing(chain: &[u8], last: &[u8], k1: u64) -> Block {
    let (mut padded, mask) = (last.to_vec(), if last.len() == 8 { k1 } else { twice(k1) });
    if last.len() < 8 {
        padded.push(0x80);
        padded.resize(8, 0);
    }
    block(&xor(&xor(&padded, chain), &mask.to_be_bytes()))
}

/// RFC 8645, 6.2.1.
fn acpkm(key: &[u8; 32]) -> [u8; 32] {
    let d: Vec<u8> = (0x80..0xa0).collect();
    Cipher::magma(key).ecb(&d).try_into().expect("32 bytes")
}

/// RFC 8645, 6.2.2.
#[must_use]
pub fn ctr_acpkm(key: &[u8; 32], iv: &[u8], section: usize, data: &[u8]) -> Vec<u8> {
    let (mut key, mut out) = (*key, Vec::new());
    for (i, part) in data.chunks(section).enumerate() {
        // The counter's whole keystream under this key; the section's part of it is used.
        let start = u64::from_be_bytes(block(&[iv, &[0; 4]].concat())) + (i * section / 8) as u64;
        let cipher = Cipher::magma(&key);
        for (j, b) in part.chunks(8).enumerate() {
            out.extend(xor(b, &cipher.encrypt((start + j as u64).to_be_bytes())));
        }
        key = acpkm(&key);
    }
    out
}

/// RFC 8645, 6.3.6.
///
/// # Panics
/// If `section` or `frequency` is not a positive multiple of 8.
#[must_use]
pub fn omac_acpkm(key: &[u8; 32], section: usize, frequency: usize, data: &[u8]) -> Block {
    let sections = data.len().div_ceil(section).max(1);
    let material = ctr_acpkm(key, &[0xff; 4], frequency, &vec![0; 40 * sections]);
    let of = |i: usize| &material[40 * i..40 * i + 40];
    let (head, last) = data.split_at(data.len().saturating_sub(1) / 8 * 8);
    let mut chain = [0; 8];
    for (j, b) in head.chunks(8).enumerate() {
        let key = of(8 * j / section)[..32].try_into().expect("32 bytes");
        chain = Cipher::magma(&key).encrypt(block(&xor(&chain, b)));
    }
    let end = of(sections - 1);
    let key = end[..32].try_into().expect("32 bytes");
    let k1 = u64::from_be_bytes(block(&end[32..]));
    Cipher::magma(&key).encrypt(closing(&chain, last, k1))
}

/// RFC 4357, 2.3.2: the key that follows.
fn meshed(key: &[u8; 32], sbox: Sbox) -> [u8; 32] {
    let c = [
        0x6900_7222u32,
        0x64c9_0423,
        0x8d3a_db96,
        0x46e9_2ac4,
        0x18fe_ac94,
        0x00ed_0712,
        0xc086_dcc2,
        0xef4c_a92b,
    ];
    let c: Vec<u8> = c.iter().flat_map(|word| word.to_be_bytes()).collect();
    let cipher = Cipher::gost28147(key, sbox);
    let key: Vec<u8> = c.chunks(8).flat_map(|b| cipher.decrypt(block(b))).collect();
    key.try_into().expect("32 bytes")
}

/// RFC 5830, 6, the registers counted one step at a time.
#[must_use]
pub fn cnt(key: &[u8; 32], sbox: Sbox, iv: &[u8], mesh: bool, data: &[u8]) -> Vec<u8> {
    let mut key = *key;
    let mut state = Cipher::gost28147(&key, sbox).encrypt(block(iv));
    let mut out = Vec::new();
    for (i, b) in data.chunks(8).enumerate() {
        if mesh && i > 0 && i % 128 == 0 {
            key = meshed(&key, sbox);
            state = Cipher::gost28147(&key, sbox).encrypt(state);
        }
        let state_number = u64::from_le_bytes(state);
        let n3 = (state_number as u32).wrapping_add(0x0101_0101);
        let sum = (state_number >> 32) + 0x0101_0104;
        let n4 = if sum > u64::from(u32::MAX) { sum - u64::from(u32::MAX) } else { sum };
        state = (n4 << 32 | u64::from(n3)).to_le_bytes();
        out.extend(xor(b, &Cipher::gost28147(&key, sbox).encrypt(state)));
    }
    out
}

/// RFC 5830, 7.
#[must_use]
pub fn cfb_meshing(key: &[u8; 32], sbox: Sbox, iv: &[u8], mesh: bool, data: &[u8]) -> Vec<u8> {
    let (mut key, mut state) = (*key, block(iv));
    let mut out = Vec::new();
    for (i, b) in data.chunks(8).enumerate() {
        if mesh && i > 0 && i % 128 == 0 {
            key = meshed(&key, sbox);
            state = Cipher::gost28147(&key, sbox).encrypt(state);
        }
        let c = xor(b, &Cipher::gost28147(&key, sbox).encrypt(state));
        if c.len() == 8 {
            state = block(&c);
        }
        out.extend(c);
    }
    out
}

/// RFC 5830, 8: sixteen rounds, and the block that implementations add for messages of one block.
///
/// # Panics
/// If the initialisation vector is not 8 bytes.
#[must_use]
pub fn imit(key: &[u8; 32], sbox: Sbox, iv: &[u8], mesh: bool, data: &[u8]) -> [u8; 4] {
    let mut message = data.to_vec();
    message.resize(data.len().next_multiple_of(8), 0);
    if message.len() == 8 {
        message.resize(16, 0);
    }
    let (mut key, mut chain) = (*key, block(iv));
    for (i, b) in message.chunks(8).enumerate() {
        if mesh && i > 0 && i % 128 == 0 {
            key = meshed(&key, sbox);
        }
        let words = spec::gost28147_words(&key);
        let number = u64::from_le_bytes(block(&xor(&chain, b)));
        // The specification's rounds leave their halves unswapped at the end, as the last round of 32 does; the
        // sixteenth of an encryption does not.
        let swapped = spec::rounds(sbox.rows(), (0..16).map(|i| words[i % 8]), number);
        chain = swapped.rotate_left(32).to_le_bytes();
    }
    chain[..4].try_into().expect("4 bytes")
}

/// RFC 9058, 4.1: ciphertext and whole tag.
#[must_use]
pub fn mgm(key: &[u8; 32], nonce: [u8; 8], aad: &[u8], plaintext: &[u8]) -> (Vec<u8>, Block) {
    let words = spec::magma_words(key);
    let e = |block: u64| spec::encrypt(Sbox::Z.rows(), &words, block);
    let times =
        |x: u64, y: u64| (0..64).rev().fold(0, |sum, bit| twice(sum) ^ if y >> bit & 1 == 1 { x } else { 0 });
    let icn = u64::from_be_bytes(nonce);
    let mut y = e(icn);
    let mut ciphertext = Vec::new();
    for b in plaintext.chunks(8) {
        ciphertext.extend(xor(b, &e(y).to_be_bytes()));
        y = y & 0xffff_ffff_0000_0000 | u64::from((y as u32).wrapping_add(1));
    }
    let mut z = e(icn | 1 << 63);
    let mut sum = 0;
    let lengths = ((aad.len() * 8) as u64) << 32 | (ciphertext.len() * 8) as u64;
    for b in aad.chunks(8).chain(ciphertext.chunks(8)).chain([&lengths.to_be_bytes()[..]]) {
        let mut padded = [0; 8];
        padded[..b.len()].copy_from_slice(b);
        sum ^= times(e(z), u64::from_be_bytes(padded));
        z = z.wrapping_add(1 << 32);
    }
    (ciphertext, e(sum).to_be_bytes())
}
