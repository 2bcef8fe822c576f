//! The record of one executed instruction.
#![forbid(unsafe_code)]

use iced_x86::Register;

use crate::emit::number;
use crate::layout::WORDS;
use crate::site::Site;

/// Flags that a program can read and its arithmetic sets: carry, parity, adjust, zero, sign, direction, overflow.
pub const FLAGS: u64 = 0xcd5;

/// The state in which one instruction was executed: that just before it.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The instruction.
    pub site: &'a Site,
    /// The number of instructions executed before it.
    pub number: u64,
    words: &'a [u64],
    written: &'a [u64],
}

impl<'a> Step<'a> {
    pub(crate) fn new(site: &'a Site, number: u64, words: &'a [u64], written: &'a [u64]) -> Step<'a> {
        Step { site, number, words, written }
    }

    /// The instruction's address.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.site.address
    }

    /// A general register, of which a part may be named.
    ///
    /// # Panics
    /// If it is not a general register.
    #[must_use]
    pub fn register(&self, register: Register) -> u64 {
        assert!(register.is_gpr(), "a general register");
        let whole = self.general(number(register));
        match register.size() {
            8 => whole,
            4 => whole & 0xffff_ffff,
            2 => whole & 0xffff,
            _ if (Register::AH..=Register::BH).contains(&register) => whole >> 8 & 0xff,
            _ => whole & 0xff,
        }
    }

    /// A general register by its number: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    ///
    /// # Panics
    /// If the number is above 15.
    #[must_use]
    pub fn general(&self, number: usize) -> u64 {
        assert!(number < 16, "16 general registers");
        self.words[16 - number]
    }

    /// The flags named in [`FLAGS`].
    #[must_use]
    pub fn flags(&self) -> u64 {
        self.words[WORDS - 1] & FLAGS
    }

    fn extra(&self) -> &'a [u64] {
        self.words.get(self.site.shape.extra_at()..).unwrap_or_default()
    }

    /// An element of the index vector, of `size` bytes.
    pub(crate) fn index(&self, element: usize, size: usize) -> u64 {
        let at = element * size;
        let word = self.extra().get(at / 8).copied().unwrap_or(0);
        if size == 4 { i64::from((word >> (at % 8 * 8)) as i32) as u64 } else { word }
    }

    /// The mask register of an instruction whose addresses depend on one.
    pub(crate) fn mask(&self, wide: bool) -> u64 {
        let word = self.extra().get(8).copied().unwrap_or(0);
        if wide { word } else { word & 0xffff }
    }

    /// Whether a lane of a gather or scatter is on. By a vector's top bits (AVX2), or by a mask register.
    pub(crate) fn has_lane(&self, lane: usize, by_vector: bool, element: usize) -> bool {
        if by_vector {
            let at = lane * element;
            let word = self.extra().get(8 + at / 8).copied().unwrap_or(0);
            word >> (at % 8 * 8 + element * 8 - 1) & 1 == 1
        } else {
            self.mask(false) >> lane & 1 == 1
        }
    }

    /// The processor's extended state as `xsave` writes it (x87 and MMX, vectors, masks), if recorded; otherwise empty.
    #[must_use]
    pub fn extended_state(&self) -> &'a [u64] {
        let shape = self.site.shape;
        if shape.state == 0 { &[] } else { &self.words[shape.head() / 8..][..shape.state / 8] }
    }

    /// The instruction's write through its memory operand, if recorded: the address and the bytes, padded with zeros to
    /// words.
    #[must_use]
    pub fn written(&self) -> Option<(u64, Vec<u8>)> {
        let (address, data) = self.written.split_first()?;
        let mut bytes: Vec<u8> = data.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(self.site.written);
        Some((*address, bytes))
    }

    /// Registers in the order of [`Step::general`] and the flags.
    #[must_use]
    pub fn state(&self) -> [u64; 17] {
        core::array::from_fn(|i| if i < 16 { self.general(i) } else { self.flags() })
    }
}
