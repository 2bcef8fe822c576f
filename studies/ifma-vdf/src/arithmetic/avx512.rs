//! Radix 2^52 in vectors of eight limbs, for CPUs with AVX-512 IFMA.
//!
//! A number of n limbs is the sum of limb\[i\] 2^(52 i); limbs above it are 0. Within an operation lanes hold up to 63 bits, and
//! carries are settled once at its end (`carry.rs`). Widths are 5, 10, 20 and 41 limbs. A number that does not fit 256, 512,
//! 1,024 or 2,112 bits is reported although the limbs could hold it, so that all backends agree.

use core::arch::x86_64::*;

use super::{Arithmetic, Kernels, Matrix, Modulus, Number, Sum};

pub(crate) mod carry;
pub(crate) mod convert;
pub(crate) mod exact;
pub(crate) mod linear;
pub(crate) mod product;

/// A vector of eight limbs or sums of such.
pub(crate) type Z = __m512i;

/// Bits of a limb.
pub(crate) const BITS: usize = 52;
/// A limb of all ones.
pub(crate) const LIMB: u64 = (1 << BITS) - 1;

/// Limbs that hold this many bits.
pub(crate) const fn limbs(bits: usize) -> usize {
    bits.div_ceil(BITS)
}

impl<const V: usize> Number<V> {
    #[inline(always)]
    pub(crate) unsafe fn load(&self) -> [Z; V] {
        // SAFETY: the caller has the features.
        unsafe {
            let mut out = [_mm512_setzero_si512(); V];
            for t in 0..V {
                out[t] = _mm512_load_si512(self.words[t].as_ptr().cast());
            }
            out
        }
    }

    /// Whether it is negative, by a load of its own: joined with a limb's load it would span two stores, and wait for both.
    #[inline(always)]
    pub(crate) fn sign(&self) -> bool {
        // SAFETY: a reference.
        unsafe { core::ptr::read_volatile(&self.negative) }
    }

    /// Writes limbs below 2^52 and a sign that is only set if they are not all 0.
    #[inline(always)]
    pub(crate) unsafe fn store(&mut self, x: &[Z; V], negative: bool) {
        // SAFETY: the caller has the features.
        unsafe {
            for t in 0..V {
                _mm512_store_si512(self.words[t].as_mut_ptr().cast(), x[t]);
            }
            self.negative = negative;
            self.radix = BITS as u8;
        }
    }
}

/// One width: N 64-bit limbs an operand, W a double-width number.
macro_rules! width {
    ($n:literal, $w:literal) => {
        Arithmetic {
            bits: 64 * $n,
            wide_bits: 64 * $w,
            radix: BITS as u8,
            montgomery: (BITS * limbs(64 * $n)) as u32,
            read: convert::read,
            read_wide: convert::read,
            write: convert::write,
            write_wide: convert::write,
            add: linear::add::<_, $n>,
            mul: product::mul::<_, _, $n>,
            square: product::square::<_, _, $n>,
            div_exact: exact::div_exact::<_, _, $n>,
            reduce: exact::reduce::<_, _, $n>,
            shift_left: linear::shift_left::<_, $n>,
            shift_right: linear::shift_right::<_, $n>,
            compare: linear::compare,
            apply: linear::apply::<_, $n>,
            add_product: product::add_product::<_, _, $n>,
            add_wide: product::add_wide,
            settle: product::settle::<_, $w>,
        }
    };
}

/// The kernels of this backend.
pub(crate) static KERNELS: Kernels =
    Kernels { w256: width!(4, 8), w512: width!(8, 16), w1024: width!(16, 33), w2112: width!(33, 66) };
