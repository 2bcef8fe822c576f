//! Schedules: the words of a key in the order of the rounds that use them.
#![forbid(unsafe_code)]

use lanework_cpu::memory::wipe_vector_registers;

use crate::sbox::Sbox;

/// The order in which eight bytes of a block make the number a1 * 2^32 + a0: the only difference between the two
/// standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Magma, GOST R 34.12-2015.
    Big,
    /// GOST 28147-89.
    Little,
}

impl ByteOrder {
    /// The number of a block.
    #[must_use]
    pub fn number(self, block: [u8; 8]) -> u64 {
        match self {
            ByteOrder::Big => u64::from_be_bytes(block),
            ByteOrder::Little => u64::from_le_bytes(block),
        }
    }

    /// The block of a number.
    #[must_use]
    pub fn block(self, number: u64) -> [u8; 8] {
        match self {
            ByteOrder::Big => number.to_be_bytes(),
            ByteOrder::Little => number.to_le_bytes(),
        }
    }

    /// The eight words of a key, in the order of the first rounds.
    #[must_use]
    pub fn words(self, key: &[u8; 32]) -> [u32; 8] {
        core::array::from_fn(|i| self.word([key[4 * i], key[4 * i + 1], key[4 * i + 2], key[4 * i + 3]]))
    }

    /// One word of a key.
    pub(crate) fn word(self, bytes: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Big => u32::from_be_bytes(bytes),
            ByteOrder::Little => u32::from_le_bytes(bytes),
        }
    }
}

/// A key in one direction. Kernels use nothing else of a key: both directions, both byte orders and all S-boxes share the
/// same code. Wiped when dropped.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Schedule {
    /// The round keys in the order of use.
    pub(crate) rounds: [u32; 32],
    /// Rounds that take K1 to K8 in rising order before the falling ones begin: 24 for encryption, 8 for decryption.
    /// Kernels with data for each word of the key, not for each round, use it to find the word.
    pub(crate) rising: usize,
    pub(crate) sbox: Sbox,
    pub(crate) order: ByteOrder,
}

impl Schedule {
    /// For encryption: K1 to K8 three times, then K8 to K1.
    pub(crate) fn encrypt(words: &[u32; 8], sbox: Sbox, order: ByteOrder) -> Schedule {
        Schedule { rounds: Schedule::encrypt_rounds(words), rising: 24, sbox, order }
    }

    /// The round keys of [`Schedule::encrypt`].
    pub(crate) fn encrypt_rounds(words: &[u32; 8]) -> [u32; 32] {
        core::array::from_fn(|i| words[word(i, 24)])
    }

    /// The round keys of [`Schedule::decrypt`].
    pub(crate) fn decrypt_rounds(words: &[u32; 8]) -> [u32; 32] {
        core::array::from_fn(|i| words[word(i, 8)])
    }

    /// For decryption: K1 to K8 once, then K8 to K1 three times.
    pub(crate) fn decrypt(words: &[u32; 8], sbox: Sbox, order: ByteOrder) -> Schedule {
        Schedule { rounds: Schedule::decrypt_rounds(words), rising: 8, sbox, order }
    }
}

/// The word of the key for round r, in a schedule with this many [`rising`](Schedule::rising) rounds.
pub(crate) const fn word(r: usize, rising: usize) -> usize {
    if r < rising { r % 8 } else { 7 - r % 8 }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        wipe_words(&mut self.rounds);
        wipe_vector_registers();
    }
}

/// Zeroes words by writes that the compiler must keep.
pub(crate) fn wipe_words(words: &mut [u32]) {
    use zeroize::Zeroize;
    words.zeroize();
}

/// Numbers of blocks that count: block i is (high + i * step_high) * 2^32 + (low + i * step_low), each half modulo
/// 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) high: u32,
    pub(crate) low: u32,
    pub(crate) step_high: u32,
    pub(crate) step_low: u32,
}

impl Counter {
    /// Counts in the lower half: CTR, and MGM's encryption.
    pub(crate) fn low(start: u64) -> Counter {
        Counter { high: (start >> 32) as u32, low: start as u32, step_high: 0, step_low: 1 }
    }

    /// Counts in the upper half: MGM's authentication.
    pub(crate) fn high(start: u64) -> Counter {
        Counter { high: (start >> 32) as u32, low: start as u32, step_high: 1, step_low: 0 }
    }

    /// Block i.
    pub(crate) fn at(&self, i: u32) -> u64 {
        let high = self.high.wrapping_add(self.step_high.wrapping_mul(i));
        let low = self.low.wrapping_add(self.step_low.wrapping_mul(i));
        u64::from(high) << 32 | u64::from(low)
    }

    /// The counter from block i on.
    pub(crate) fn from(&self, i: u32) -> Counter {
        let start = self.at(i);
        Counter { high: (start >> 32) as u32, low: start as u32, ..*self }
    }
}
