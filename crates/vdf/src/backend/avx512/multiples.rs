//! The multiples m and k of `generic::nudupl` for numbers of eight limbs: rows of products with two chains of carries.

use core::arch::asm;

use lanework_integer::gcd::binary::Inverse;
use lanework_integer::limbs;

use crate::backend::Form1024;
use crate::backend::generic::nudupl::inverse64;

/// t += f x over the limbs at the given offsets in bytes; returns the limb above and the second limb of t.
macro_rules! row {
    ($t:expr, $x:expr, $f:expr, $($offset:literal)*) => {{
        let (high, second): (u64, u64);
        // SAFETY: BMI2 and ADX are the caller's promise; both runs have the limbs of all offsets, by the types of the
        // callers.
        unsafe {
            asm!(
                "xor {l:e}, {l:e}",
                "mulx {h}, {l}, qword ptr [{x}]",
                "adcx {l}, qword ptr [{t}]",
                "mov qword ptr [{t}], {l}",
                "mulx {g}, {n}, qword ptr [{x} + 8]",
                "adox {n}, {h}",
                "adcx {n}, qword ptr [{t} + 8]",
                "mov qword ptr [{t} + 8], {n}",
                "mov {h}, {g}",
                $(
                    concat!("mulx {g}, {l}, qword ptr [{x} + ", $offset, "]"),
                    "adox {l}, {h}",
                    concat!("adcx {l}, qword ptr [{t} + ", $offset, "]"),
                    concat!("mov qword ptr [{t} + ", $offset, "], {l}"),
                    "mov {h}, {g}",
                )*
                "mov {l:e}, 0",
                "adox {h}, {l}",
                "adcx {h}, {l}",
                t = in(reg) $t, x = in(reg) $x, in("rdx") $f,
                l = out(reg) _, h = out(reg) high, g = out(reg) _, n = out(reg) second,
                options(nostack)
            );
        }
        (high, second)
    }};
}

/// Room for products: those of nine limbs by thirteen.
type Product = [u64; 24];

/// # Safety
/// The CPU must have BMI2 and ADX.
#[inline(always)]
unsafe fn nine(t: &mut Product, at: usize, x: &[u64; 9], f: u64) -> u64 {
    let t: &mut [u64; 9] = t[at..at + 9].first_chunk_mut().expect("nine limbs");
    row!(t.as_mut_ptr(), x.as_ptr(), f, 16 24 32 40 48 56 64).0
}

/// # Safety
/// The CPU must have BMI2 and ADX.
#[inline(always)]
unsafe fn eight(t: &mut Product, at: usize, x: &[u64; 8], f: u64) -> (u64, u64) {
    let t: &mut [u64; 8] = t[at..at + 8].first_chunk_mut().expect("eight limbs");
    row!(t.as_mut_ptr(), x.as_ptr(), f, 16 24 32 40 48 56)
}

/// The lower four limbs of x only.
///
/// # Safety
/// The CPU must have BMI2 and ADX.
#[inline(always)]
unsafe fn four(t: &mut Product, at: usize, x: &[u64; 8], f: u64) -> (u64, u64) {
    let t: &mut [u64; 4] = t[at..at + 4].first_chunk_mut().expect("four limbs");
    row!(t.as_mut_ptr(), x.as_ptr(), f, 16 24)
}

/// c v / 2^shift modulo b, as in `generic::nudupl`: a row of c for each limb of v, then one of b for each word divided
/// out.
///
/// # Safety
/// The CPU must have BMI2 and ADX.
#[inline(always)]
unsafe fn divide(c: &[u64; 9], inverse: &Inverse<13>, b: &[u64; 8], minus: u64) -> Option<[u64; 8]> {
    let words = inverse.shift.div_ceil(64) as usize;
    let shift = 64 * words as u32 - inverse.shift;
    // For a short b an inverse may come with limbs of 0.
    let factors = &inverse.magnitude[..inverse.limbs.min(13)];
    let factors = &factors[..limbs::significant(factors)];
    if factors.len() > words || words > 13 || c[8] >> 1 >> (63 - shift) != 0 {
        return None;
    }
    let mut scaled = [0; 9];
    for i in 0..9 {
        let below = if i > 0 { c[i - 1] } else { 0 };
        scaled[i] = c[i] << shift | below >> 1 >> (63 - shift);
    }
    let mut t: Product = [0; 24];
    for (i, &factor) in factors.iter().enumerate() {
        // SAFETY: the caller's promise.
        t[i + 9] = unsafe { nine(&mut t, i, &scaled, factor) };
    }
    let (mut low, mut carry) = (t[0], false);
    for i in 0..words {
        // SAFETY: the caller's promise.
        let (high, second) = unsafe { eight(&mut t, i, b, low.wrapping_mul(minus)) };
        low = second;
        (t[i + 8], carry) = t[i + 8].carrying_add(high, carry);
    }
    if carry || t[words + 8..].iter().any(|&x| x != 0) {
        return None;
    }
    t[words..].first_chunk().copied()
}

/// (a m - c) / b modulo 2^512.
///
/// # Safety
/// The CPU must have BMI2 and ADX.
#[inline(always)]
unsafe fn quotient(a: &[u64; 8], m: &[u64; 8], c: &[u64; 9], b: &[u64; 8], minus: u64) -> [u64; 8] {
    let mut t: Product = [0; 24];
    for (i, &factor) in m.iter().enumerate() {
        // SAFETY: the caller's promise.
        let _ = unsafe { if i < 4 { eight(&mut t, i, a, factor) } else { four(&mut t, i, a, factor) } };
    }
    limbs::sub(&mut t[..8], &c[..8]);
    // -k b is added, a word at a time.
    let (mut k, mut low) = ([0; 8], t[0]);
    for (i, k) in k.iter_mut().enumerate() {
        *k = low.wrapping_mul(minus);
        // SAFETY: the caller's promise.
        (_, low) = unsafe { if i < 4 { eight(&mut t, i, b, *k) } else { four(&mut t, i, b, *k) } };
    }
    let mut carry = true;
    for k in &mut k {
        (*k, carry) = (!*k).overflowing_add(u64::from(carry));
    }
    k
}

/// m = c / a modulo b and k = (a m - c) / b, or `None` if a number has an unusual length.
///
/// # Safety
/// The CPU must have BMI2 and ADX.
#[inline(always)]
pub unsafe fn multiples(
    form: &Form1024,
    invert: impl FnOnce(&[u64; 8], &[u64; 8]) -> Option<Inverse<13>>,
) -> Option<([u64; 8], [u64; 8])> {
    let Form1024 { a, b, c, .. } = form;
    let minus = inverse64(b[0]).wrapping_neg();
    let inverse = invert(a, b)?;
    // SAFETY: the caller's promise.
    let mut m = unsafe { divide(c, &inverse, b, minus)? };
    if inverse.negative {
        let mut rest = *b;
        if limbs::sub(&mut rest, &m) {
            return None;
        }
        m = rest;
    }
    // SAFETY: the caller's promise.
    let k = unsafe { quotient(a, &m, c, b, minus) };
    // A k that is negative, or not the quotient, is not below a.
    if limbs::compare(&k, a).is_ge() || k == [0; 8] {
        return None;
    }
    Some((m, k))
}
