//! Fixed-width arithmetic on 52-bit limbs in vectors and on 64-bit limbs: what the study times. The contract that every backend
//! fulfils, and the table of backends.
//!
//! A [`Number`] is in its backend's own format from the moment it is read to the moment it is written, so that conversions are
//! paid at the ends of a computation and not at every operation: 64-bit limbs in `portable` and `adx`, 52-bit limbs in vector
//! registers in `avx512`. All are a sign and a magnitude, and all values are public: times depend on them.

use core::cmp::Ordering;

#[cfg(target_arch = "x86_64")]
use lanework_cpu::Feature;
use lanework_cpu::{Backend, Backends, Features};

use lanework_integer::{Int, Uint};

#[cfg(target_arch = "x86_64")]
mod adx;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub mod check;
#[cfg(test)]
pub(crate) mod faulty;
pub(crate) mod portable;

/// A signed number in a backend's format: V runs of eight words. Widths go by pairs, see [`Arithmetic`].
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<const V: usize> {
    pub(crate) words: [[u64; 8]; V],
    /// 0 is never negative.
    pub(crate) negative: bool,
    pub(crate) radix: u8,
}

/// A sum under way: words that may hold carries not yet carried, of either sign, until [`Arithmetic::settle`].
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Sum<const D: usize> {
    pub(crate) words: [[u64; 8]; D],
    pub(crate) terms: u32,
    pub(crate) radix: u8,
}

/// Up to 512 bits.
pub type Number512 = Number<2>;
/// Up to 1,024 bits.
pub type Number1024 = Number<3>;
/// Up to 2,112 bits.
pub type Number2112 = Number<6>;
/// Up to 4,224 bits: products of the widest.
pub type Number4224 = Number<11>;

/// An odd modulus, with what Montgomery's reduction needs of it.
#[derive(Clone, Copy, Debug)]
pub struct Modulus<const V: usize> {
    pub(crate) value: Number<V>,
    /// -1 / value modulo 2^64.
    pub(crate) factor: u64,
}

impl<const V: usize> Modulus<V> {
    /// The modulus itself.
    #[must_use]
    pub const fn value(&self) -> &Number<V> {
        &self.value
    }
}

/// A matrix of two rows: out\[i\] = m\[i\]\[0\] x\[0\] + m\[i\]\[1\] x\[1\].
pub type Matrix = [[i64; 2]; 2];

/// The operations of one width, V runs of words for an operand and D for a product.
///
/// Operands of every kernel are in this backend's format; outputs are written whole. A result that may be too long for its width
/// comes with a truth value: whether it fits. If it does not, the output has the right format and is otherwise unspecified.
#[derive(Clone, Copy, Debug)]
pub struct Arithmetic<const V: usize, const D: usize> {
    /// Bits of an operand; a multiple of 64.
    pub(crate) bits: usize,
    /// Bits of a double-width number.
    pub(crate) wide_bits: usize,
    /// Bits of a limb.
    pub(crate) radix: u8,
    /// The power of two that Montgomery's reduction divides by.
    pub(crate) montgomery: u32,
    /// From the limbs of a magnitude, lowest first, `bits` / 64 at most, with a sign to take if it is not 0.
    pub(crate) read: unsafe fn(&[u64], bool, &mut Number<V>),
    pub(crate) read_wide: unsafe fn(&[u64], bool, &mut Number<D>),
    /// All `bits` / 64 limbs of the magnitude; returns how many are significant.
    pub(crate) write: unsafe fn(&Number<V>, &mut [u64]) -> usize,
    pub(crate) write_wide: unsafe fn(&Number<D>, &mut [u64]) -> usize,
    /// x + y, or x - y.
    pub(crate) add: unsafe fn(&Number<V>, &Number<V>, bool, &mut Number<V>) -> bool,
    pub(crate) mul: unsafe fn(&Number<V>, &Number<V>, &mut Number<D>),
    pub(crate) square: unsafe fn(&Number<V>, &mut Number<D>),
    /// The quotient, if there is no remainder and it fits. The divisor is not 0.
    pub(crate) div_exact: unsafe fn(&Number<D>, &Number<V>, &mut Number<V>) -> bool,
    /// x 2^-`montgomery` modulo m, from 0 to m - 1, for |x| < 2^`bits` m.
    pub(crate) reduce: unsafe fn(&Number<D>, &Modulus<V>, &mut Number<V>),
    /// The magnitude times 2^k; bits beyond the width are lost. k < `bits`.
    pub(crate) shift_left: unsafe fn(&Number<V>, usize, &mut Number<V>),
    /// The magnitude divided by 2^k and rounded down. k < `bits`.
    pub(crate) shift_right: unsafe fn(&Number<V>, usize, &mut Number<V>),
    pub(crate) compare: unsafe fn(&Number<V>, &Number<V>) -> Ordering,
    /// No entry is -2^63.
    pub(crate) apply: unsafe fn(&[Number<V>; 2], &Matrix, &mut [Number<V>; 2]) -> bool,
    /// sum + x y, or sum - x y.
    pub(crate) add_product: unsafe fn(&mut Sum<D>, &Number<V>, &Number<V>, bool),
    pub(crate) add_wide: unsafe fn(&mut Sum<D>, &Number<D>, bool),
    pub(crate) settle: unsafe fn(&Sum<D>, &mut Number<D>) -> bool,
}

/// All widths of one backend.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    pub(crate) w256: Arithmetic<1, 2>,
    pub(crate) w512: Arithmetic<2, 3>,
    pub(crate) w1024: Arithmetic<3, 6>,
    pub(crate) w2112: Arithmetic<6, 11>,
}

impl Kernels {
    /// Operands of up to 256 bits, products as [`Number512`].
    #[must_use]
    pub const fn w256(&self) -> &Arithmetic<1, 2> {
        &self.w256
    }

    /// Operands of up to 512 bits, products as [`Number1024`].
    #[must_use]
    pub const fn w512(&self) -> &Arithmetic<2, 3> {
        &self.w512
    }

    /// Operands of up to 1,024 bits, products as [`Number2112`].
    #[must_use]
    pub const fn w1024(&self) -> &Arithmetic<3, 6> {
        &self.w1024
    }

    /// Operands of up to 2,112 bits, products as [`Number4224`].
    #[must_use]
    pub const fn w2112(&self) -> &Arithmetic<6, 11> {
        &self.w2112
    }
}

/// Every backend, from the plainest, which needs nothing, to the fastest.
pub static BACKENDS: &[Backend<Kernels>] =
    // SAFETY: a row's list has every feature that its kernels enable; `lab/suite/tests/features.rs` compares it with the sources.
    unsafe {
        &[
            Backend::new("portable", "plain Rust on 64-bit limbs", Features::NONE, &portable::KERNELS),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "adx",
                "64-bit limbs with MULX and two chains of carries",
                Features::of(&[Feature::Bmi1, Feature::Bmi2, Feature::Lzcnt, Feature::Adx]),
                &adx::KERNELS,
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "avx512",
                "52-bit limbs in vectors, carried once an operation",
                Features::AVX512.union(Features::of(&[Feature::Adx])),
                &avx512::KERNELS,
            ),
        ]
    };

/// A backend of this arithmetic that this CPU can run.
pub type Engine = lanework_cpu::Engine<Kernels>;

impl Backends for Kernels {
    const PRIMITIVE: &'static str = "arithmetic";
    const BACKENDS: &'static [Backend<Kernels>] = BACKENDS;
}

impl<const V: usize, const D: usize> Arithmetic<V, D> {
    /// Bits of an operand's magnitude, at most.
    #[must_use]
    pub const fn bits(&self) -> usize {
        self.bits
    }

    /// Bits of a double-width number's magnitude, at most.
    #[must_use]
    pub const fn wide_bits(&self) -> usize {
        self.wide_bits
    }

    /// The exponent e of [`Arithmetic::reduce`]'s 2^-e.
    #[must_use]
    pub const fn montgomery(&self) -> u32 {
        self.montgomery
    }

    /// 0.
    #[must_use]
    pub const fn zero(&self) -> Number<V> {
        Number { words: [[0; 8]; V], negative: false, radix: self.radix }
    }

    /// 0, in double width.
    #[must_use]
    pub const fn wide_zero(&self) -> Number<D> {
        Number { words: [[0; 8]; D], negative: false, radix: self.radix }
    }

    /// An empty sum.
    #[must_use]
    pub const fn sum(&self) -> Sum<D> {
        Sum { words: [[0; 8]; D], terms: 0, radix: self.radix }
    }

    /// A number of another backend would be read as a different number.
    #[inline]
    fn own(&self, radix: u8) {
        assert!(radix == self.radix, "a number is used with the backend that made it");
    }

    /// Reads a magnitude's limbs, lowest first, and a sign. False, with nothing written, if limbs above the width are not 0.
    #[inline]
    pub fn read(&self, limbs: &[u64], negative: bool, out: &mut Number<V>) -> bool {
        let Some(limbs) = cut(limbs, self.bits / 64) else { return false };
        // SAFETY: this value is reachable only through a backend whose features were checked; the length is as agreed.
        unsafe { (self.read)(limbs, negative, out) }
        true
    }

    /// [`Arithmetic::read`] in double width.
    #[inline]
    pub fn read_wide(&self, limbs: &[u64], negative: bool, out: &mut Number<D>) -> bool {
        let Some(limbs) = cut(limbs, self.wide_bits / 64) else { return false };
        // SAFETY: as above.
        unsafe { (self.read_wide)(limbs, negative, out) }
        true
    }

    /// Writes the magnitude's limbs, lowest first, and returns how many of them are significant.
    ///
    /// # Panics
    /// If `out` is shorter than the width, or the number is another backend's.
    #[inline]
    pub fn write(&self, x: &Number<V>, out: &mut [u64]) -> usize {
        self.own(x.radix);
        // SAFETY: as above; slicing panics if the length is not as agreed.
        unsafe { (self.write)(x, &mut out[..self.bits / 64]) }
    }

    /// [`Arithmetic::write`] in double width.
    ///
    /// # Panics
    /// As there.
    #[inline]
    pub fn write_wide(&self, x: &Number<D>, out: &mut [u64]) -> usize {
        self.own(x.radix);
        // SAFETY: as above.
        unsafe { (self.write_wide)(x, &mut out[..self.wide_bits / 64]) }
    }

    /// From a number of 64-bit limbs; `None` if it does not fit.
    #[must_use]
    pub fn number<const N: usize>(&self, x: &Int<N>) -> Option<Number<V>> {
        let mut out = self.zero();
        self.read(x.magnitude().limbs(), x.is_negative(), &mut out).then_some(out)
    }

    /// From a number of 64-bit limbs, in double width; `None` if it does not fit.
    #[must_use]
    pub fn wide_number<const N: usize>(&self, x: &Int<N>) -> Option<Number<D>> {
        let mut out = self.wide_zero();
        self.read_wide(x.magnitude().limbs(), x.is_negative(), &mut out).then_some(out)
    }

    /// To a number of 64-bit limbs; `None` if it does not fit.
    ///
    /// # Panics
    /// If the number is another backend's.
    #[must_use]
    pub fn int<const N: usize>(&self, x: &Number<V>) -> Option<Int<N>> {
        let mut limbs = [0; 66];
        let n = self.write(x, &mut limbs);
        resized(&limbs[..n], x.negative)
    }

    /// To a number of 64-bit limbs, from double width; `None` if it does not fit.
    ///
    /// # Panics
    /// If the number is another backend's.
    #[must_use]
    pub fn wide_int<const N: usize>(&self, x: &Number<D>) -> Option<Int<N>> {
        let mut limbs = [0; 66];
        let n = self.write_wide(x, &mut limbs);
        resized(&limbs[..n], x.negative)
    }

    /// out = x + y; returns whether it fits.
    ///
    /// # Panics
    /// If a number is another backend's. This holds for all operations below.
    #[inline]
    pub fn add(&self, x: &Number<V>, y: &Number<V>, out: &mut Number<V>) -> bool {
        self.own(x.radix);
        self.own(y.radix);
        // SAFETY: features as above.
        unsafe { (self.add)(x, y, false, out) }
    }

    /// out = x - y; returns whether it fits.
    #[inline]
    pub fn sub(&self, x: &Number<V>, y: &Number<V>, out: &mut Number<V>) -> bool {
        self.own(x.radix);
        self.own(y.radix);
        // SAFETY: features as above.
        unsafe { (self.add)(x, y, true, out) }
    }

    /// out = x y.
    #[inline]
    pub fn mul(&self, x: &Number<V>, y: &Number<V>, out: &mut Number<D>) {
        self.own(x.radix);
        self.own(y.radix);
        // SAFETY: features as above.
        unsafe { (self.mul)(x, y, out) }
    }

    /// out = x^2.
    #[inline]
    pub fn square(&self, x: &Number<V>, out: &mut Number<D>) {
        self.own(x.radix);
        // SAFETY: features as above.
        unsafe { (self.square)(x, out) }
    }

    /// out = x / d if there is no remainder, the quotient fits and d is not 0; returns whether that is so.
    #[inline]
    pub fn div_exact(&self, x: &Number<D>, d: &Number<V>, out: &mut Number<V>) -> bool {
        self.own(x.radix);
        self.own(d.radix);
        // SAFETY: features as above; the divisor is not 0.
        !d.is_zero() && unsafe { (self.div_exact)(x, d, out) }
    }

    /// A modulus for [`Arithmetic::reduce`]: the magnitude of x; `None` if that is even.
    #[must_use]
    pub fn modulus(&self, x: &Number<V>) -> Option<Modulus<V>> {
        self.own(x.radix);
        let low = x.words[0][0] | x.words[0][1] << (self.radix & 63);
        let low = if self.radix == 64 { x.words[0][0] } else { low };
        let value = Number { negative: false, ..*x };
        (low & 1 == 1).then(|| Modulus { value, factor: word_inverse(low).wrapping_neg() })
    }

    /// out = x 2^-e modulo m, from 0 to m - 1, where e is [`Arithmetic::montgomery`]. The magnitude of x must be below
    /// 2^[`bits`](Arithmetic::bits) m, as is every product of two numbers if one is below m. Otherwise the result is congruent,
    /// but perhaps not below m, or cut to the width.
    #[inline]
    pub fn reduce(&self, x: &Number<D>, m: &Modulus<V>, out: &mut Number<V>) {
        self.own(x.radix);
        self.own(m.value.radix);
        // SAFETY: features as above.
        unsafe { (self.reduce)(x, m, out) }
    }

    /// The magnitude times 2^k, with the sign of x; bits beyond the width are lost.
    #[inline]
    pub fn shift_left(&self, x: &Number<V>, k: usize, out: &mut Number<V>) {
        self.own(x.radix);
        if k >= self.bits {
            *out = self.zero();
        } else {
            // SAFETY: features as above; k is below the width.
            unsafe { (self.shift_left)(x, k, out) }
        }
    }

    /// The magnitude divided by 2^k and rounded down, with the sign of x.
    #[inline]
    pub fn shift_right(&self, x: &Number<V>, k: usize, out: &mut Number<V>) {
        self.own(x.radix);
        if k >= self.bits {
            *out = self.zero();
        } else {
            // SAFETY: features as above; k is below the width.
            unsafe { (self.shift_right)(x, k, out) }
        }
    }

    /// Compares signed values.
    #[inline]
    #[must_use]
    pub fn compare(&self, x: &Number<V>, y: &Number<V>) -> Ordering {
        self.own(x.radix);
        self.own(y.radix);
        // SAFETY: features as above.
        unsafe { (self.compare)(x, y) }
    }

    /// Applies a matrix to a pair; returns whether both results fit. False also if an entry is -2^63.
    #[inline]
    pub fn apply(&self, x: &[Number<V>; 2], m: &Matrix, out: &mut [Number<V>; 2]) -> bool {
        self.own(x[0].radix);
        self.own(x[1].radix);
        if m.iter().flatten().any(|&entry| entry == i64::MIN) {
            return false;
        }
        // SAFETY: features as above; no entry is -2^63.
        unsafe { (self.apply)(x, m, out) }
    }

    /// sum += x y.
    #[inline]
    pub fn add_product(&self, sum: &mut Sum<D>, x: &Number<V>, y: &Number<V>) {
        self.own(sum.radix);
        self.own(x.radix);
        self.own(y.radix);
        // SAFETY: features as above.
        unsafe { (self.add_product)(sum, x, y, false) }
    }

    /// sum -= x y.
    #[inline]
    pub fn sub_product(&self, sum: &mut Sum<D>, x: &Number<V>, y: &Number<V>) {
        self.own(sum.radix);
        self.own(x.radix);
        self.own(y.radix);
        // SAFETY: features as above.
        unsafe { (self.add_product)(sum, x, y, true) }
    }

    /// sum += x.
    #[inline]
    pub fn add_wide(&self, sum: &mut Sum<D>, x: &Number<D>) {
        self.own(sum.radix);
        self.own(x.radix);
        // SAFETY: features as above.
        unsafe { (self.add_wide)(sum, x, false) }
    }

    /// sum -= x.
    #[inline]
    pub fn sub_wide(&self, sum: &mut Sum<D>, x: &Number<D>) {
        self.own(sum.radix);
        self.own(x.radix);
        // SAFETY: features as above.
        unsafe { (self.add_wide)(sum, x, true) }
    }

    /// Carries a sum once; returns whether it fits. At most some 2^20 terms may have been added to a sum.
    #[inline]
    pub fn settle(&self, sum: &Sum<D>, out: &mut Number<D>) -> bool {
        self.own(sum.radix);
        // SAFETY: features as above.
        unsafe { (self.settle)(sum, out) }
    }
}

impl<const V: usize> Number<V> {
    /// Whether it is below 0.
    #[must_use]
    pub const fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether it is 0.
    #[inline]
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.words.as_flattened().iter().fold(0, |all, &x| all | x) == 0
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negated(mut self) -> Number<V> {
        self.negative = !self.negative && !self.is_zero();
        self
    }
}

/// The first n limbs, if those above are 0.
#[inline]
fn cut(limbs: &[u64], n: usize) -> Option<&[u64]> {
    match limbs.split_at_checked(n) {
        None => Some(limbs),
        Some((low, high)) => high.iter().all(|&x| x == 0).then_some(low),
    }
}

fn resized<const N: usize>(limbs: &[u64], negative: bool) -> Option<Int<N>> {
    let mut out = [0; N];
    out.get_mut(..limbs.len())?.copy_from_slice(limbs);
    Some(Int::new(negative, Uint::from_limbs(out)))
}

/// 1 / x modulo 2^64 for odd x.
#[inline]
pub(crate) fn word_inverse(x: u64) -> u64 {
    // x is its own inverse modulo 8; 3 x ^ 2 modulo 32. Every step doubles the bits that are right.
    let mut y = x.wrapping_mul(3) ^ 2;
    for _ in 0..4 {
        y = y.wrapping_mul(2u64.wrapping_sub(x.wrapping_mul(y)));
    }
    y
}
