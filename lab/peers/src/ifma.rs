//! chiavdf's integers in 52-bit limbs: the assembly that its `CHIA_ENABLE_AVX512_IFMA` switches on, alone.
//!
//! chiavdf's generator writes it as for its own programs. [`IFMA`] is a library of that file, in which addresses
//! are relative to the instruction (a shared library can have no others).
#![forbid(unsafe_code)]

use std::path::Path;

use crate::card::Card;
use crate::delay::{IFMA, flavour};
use crate::sys::ifma::Functions;
use crate::{Peers, Unavailable};

/// Words of the longest number that a function of the library takes, 33 limbs, in whole vectors.
const WORDS: usize = 40;
/// Vectors of the longest number of 52-bit limbs, 41 of them.
const VECTORS: usize = 6;

/// A number as GMP has it: a magnitude's limbs of 64 bits, and their count with the sign.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub struct Limbs {
    pub(crate) words: [u64; WORDS],
    pub(crate) size: i64,
}

impl Limbs {
    /// 0.
    pub const ZERO: Limbs = Limbs { words: [0; WORDS], size: 0 };

    /// From the limbs of a magnitude, lowest first; `None` if more than 33 are significant.
    #[must_use]
    pub fn new(limbs: &[u64], negative: bool) -> Option<Limbs> {
        let significant = limbs.iter().rposition(|&x| x != 0).map_or(0, |i| i + 1);
        let mut out = Limbs::ZERO;
        out.words[..33].get_mut(..significant)?.copy_from_slice(&limbs[..significant]);
        out.size = if negative { -(significant as i64) } else { significant as i64 };
        Some(out)
    }

    /// The significant limbs, lowest first.
    #[must_use]
    pub fn limbs(&self) -> &[u64] {
        &self.words[..usize::try_from(self.size.unsigned_abs()).unwrap_or(WORDS).min(WORDS)]
    }

    /// Whether it is below 0.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.size < 0
    }

    /// Makes it the lowest limbs of its magnitude, `count` at most. Stores nothing but the count.
    #[inline]
    pub fn keep(&mut self, count: i64) {
        self.size = self.size.abs().min(count);
    }
}

/// A number in chiavdf's 52-bit limbs: a vector of zeros, up to six of limbs, another of zeros, and a sign.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub struct Radix52 {
    before: [u64; 8],
    vectors: [[u64; 8]; VECTORS],
    after: [u64; 8],
    pub(crate) sign: u64,
}

impl Radix52 {
    /// 0.
    pub const ZERO: Radix52 = Radix52 { before: [0; 8], vectors: [[0; 8]; VECTORS], after: [0; 8], sign: 0 };

    /// The limbs, lowest first, in vectors.
    #[must_use]
    pub fn vectors(&self) -> &[[u64; 8]; VECTORS] {
        &self.vectors
    }

    /// The limbs, to be written: all have 52 bits.
    pub fn vectors_mut(&mut self) -> &mut [[u64; 8]; VECTORS] {
        &mut self.vectors
    }

    /// The whole number with the distance to its limbs, since functions reach the vectors before and after.
    #[inline]
    pub(crate) fn data(&self) -> *const u64 {
        std::ptr::from_ref(self).cast::<u64>().wrapping_add(8)
    }

    #[inline]
    pub(crate) fn data_mut(&mut self) -> *mut u64 {
        std::ptr::from_mut(self).cast::<u64>().wrapping_add(8)
    }
}

/// The operations of one width.
#[derive(Clone)]
pub struct Ifma(Functions);

impl std::fmt::Debug for Ifma {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ifma").finish_non_exhaustive()
    }
}

impl Ifma {
    /// To 52-bit limbs.
    #[inline]
    pub fn to(&self, x: &Limbs, out: &mut Radix52) {
        self.0.to(x, out);
    }

    /// To limbs of 64 bits, from an operand's width.
    #[inline]
    pub fn from(&self, x: &Radix52, out: &mut Limbs) {
        self.0.from(x, out);
    }

    /// To limbs of 64 bits, from a product's width.
    #[inline]
    pub fn from_wide(&self, x: &Radix52, out: &mut Limbs) {
        self.0.wide_from(x, out);
    }

    /// out = x + y.
    #[inline]
    pub fn add(&self, x: &Radix52, y: &Radix52, out: &mut Radix52) {
        self.0.add(x, y, out);
    }

    /// out = x y, in a product's width.
    #[inline]
    pub fn mul(&self, x: &Radix52, y: &Radix52, out: &mut Radix52) {
        self.0.mul(x, y, out);
    }
}

/// Whether this CPU has the instructions.
fn runs_here() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512ifma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

impl Peers {
    /// chiavdf's 52-bit limbs from the library in `dir`: operations on 512 bits (12 limbs) and on 1,024 bits (21 limbs).
    ///
    /// # Errors
    /// [`Unavailable`]: not built, damaged, built for another CPU, or without AVX-512 IFMA here.
    pub fn ifma(dir: &Path) -> Result<([Ifma; 2], Card), Unavailable> {
        let flavour = flavour(IFMA);
        let (path, card) = flavour.checked(dir)?;
        if !runs_here() {
            return Err(flavour.unavailable(dir, "this CPU has no AVX-512 IFMA".to_owned()));
        }
        let functions = Functions::open(&path).map_err(|why| flavour.unavailable(dir, why))?;
        Ok((functions.map(Ifma), card))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limbs_lead_back() {
        let x = Limbs::new(&[1, 2, 0, 0], true).expect("fits");
        assert_eq!((x.limbs(), x.is_negative()), (&[1, 2][..], true));
        let mut y = x.clone();
        y.keep(1);
        assert_eq!((y.limbs(), y.is_negative()), (&[1][..], false));
        assert!(Limbs::new(&[1; 34], false).is_none() && Limbs::new(&[1; 33], false).is_some());
        assert!(Limbs::new(&[0; 50], true).is_some_and(|x| x.limbs().is_empty() && !x.is_negative()));
    }

    #[test]
    fn an_empty_directory_says_how_to_get_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let why = Peers::ifma(dir.path()).map(|_| ()).expect_err("nothing is there");
        assert!(why.why.contains("does not exist") && why.remedy.contains("--only chiavdf-ifma"), "{why}");
    }
}
