//! The words of the inverse: runs of a fixed number of steps, their matrices, and the correction of a run that went too
//! far.

use core::arch::asm;

use lanework_integer::kernels::unpack;

use super::LEAST;

/// Steps of a window's runs: even.
pub(super) const FIRST: usize = 14;
pub(super) const SECOND: usize = 12;
/// Low bits of a word that are its number's.
pub(super) const EXACT: u32 = 38;
const LOW: u64 = (1 << EXACT) - 1;

/// Rows (f0, g0) and (f1, g1) that shift by `shift`.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) f0: i64,
    pub(super) g0: i64,
    pub(super) f1: i64,
    pub(super) g1: i64,
    pub(super) shift: u32,
}

impl Matrix {
    /// As long as the longer row's sum of absolute values.
    #[inline(always)]
    pub(super) fn size(&self) -> u64 {
        let size = |f: i64, g: i64| f.unsigned_abs().wrapping_add(g.unsigned_abs());
        size(self.f0, self.g0) | size(self.f1, self.g1)
    }

    /// Bits of the longer row's sum, scaled up to at least `LEAST` shifts.
    #[inline(always)]
    pub(super) fn length(&self) -> u32 {
        64 - self.size().leading_zeros() + LEAST.saturating_sub(self.shift)
    }

    /// The matrix of `m`, then this one.
    #[inline(always)]
    pub(super) fn after(&self, m: &Matrix) -> Matrix {
        // Runs' entries have 32 bits with their signs.
        let sum = |x: i64, y: i64, z: i64, w: i64| x.wrapping_mul(y).wrapping_add(z.wrapping_mul(w));
        Matrix {
            f0: sum(self.f0, m.f0, self.g0, m.f1),
            g0: sum(self.f0, m.g0, self.g0, m.g1),
            f1: sum(self.f1, m.f0, self.g1, m.f1),
            g1: sum(self.f1, m.g0, self.g1, m.g1),
            shift: self.shift + m.shift,
        }
    }
}

/// N steps, N even, of the binary algorithm on words of odd numbers: the packed rows, as of `Lane::halve31`.
///
/// # Safety
/// BMI1 and BMI2.
#[inline(always)]
pub(super) unsafe fn steps<const N: usize>(a: u64, b: u64) -> (u64, u64) {
    let (mut m0, mut m1) = (1u64, 1u64 << 32);
    // SAFETY: registers only; the instructions are there by the caller's promise. Two steps a turn: t = b - a, the
    // rows' difference and its negative, and the carry of a - b chooses.
    unsafe {
        asm!(
            ".rept {turns}",
            "mov {t}, {b}",
            "sub {t}, {a}",
            "tzcnt {z}, {t}",
            "mov {r}, {m0}",
            "sub {r}, {m1}",
            "mov {n}, {m1}",
            "sub {n}, {m0}",
            "mov {d}, {a}",
            "sub {d}, {b}",
            "cmovc {b}, {a}",
            "cmovc {d}, {t}",
            "cmovc {m1}, {m0}",
            "cmovc {r}, {n}",
            "shrx {a}, {d}, {z}",
            "shlx {m1}, {m1}, {z}",
            "mov {t}, {b}",
            "sub {t}, {a}",
            "tzcnt {z}, {t}",
            "mov {m0}, {r}",
            "sub {m0}, {m1}",
            "mov {n}, {m1}",
            "sub {n}, {r}",
            "mov {d}, {a}",
            "sub {d}, {b}",
            "cmovc {b}, {a}",
            "cmovc {d}, {t}",
            "cmovc {m1}, {r}",
            "cmovc {m0}, {n}",
            "shrx {a}, {d}, {z}",
            "shlx {m1}, {m1}, {z}",
            ".endr",
            turns = const N / 2,
            a = inout(reg) a => _, b = inout(reg) b => _, m0 = inout(reg) m0, m1 = inout(reg) m1,
            t = out(reg) _, z = out(reg) _, r = out(reg) _, n = out(reg) _, d = out(reg) _,
            options(pure, nomem, nostack)
        );
    }
    (m0, m1)
}

/// The same where [`steps`] went too far, with few enough steps to shift out at most `most` bits.
#[inline(always)]
pub(super) fn careful(high: (u64, u64), low: (u64, u64), most: u32) -> Matrix {
    const MASK: u64 = (1 << 31) - 1;
    let word = |high: u64, low: u64| high & !MASK | low & MASK;
    let (mut a, mut b) = (word(high.0, low.0), word(high.1, low.1));
    let mut m = Matrix { f0: 1, g0: 0, f1: 0, g1: 1, shift: 0 };
    for _ in 0..FIRST {
        let (difference, less) = a.overflowing_sub(b);
        let zeros = difference.trailing_zeros();
        if m.shift + zeros > most.min(30) {
            break;
        }
        // By masks: a branch would be mispredicted half of the time.
        let less = -i64::from(less);
        let choose = |no: i64, yes: i64| no ^ ((no ^ yes) & less);
        let turn = |x: i64| (x ^ less) - less;
        let next = |m0: i64, m1: i64| (turn(m0 - m1), choose(m1, m0) << zeros);
        ((m.f0, m.f1), (m.g0, m.g1)) = (next(m.f0, m.f1), next(m.g0, m.g1));
        m.shift += zeros;
        b = choose(b as i64, a as i64) as u64;
        a = (turn(difference as i64) as u64) >> zeros;
    }
    m
}

/// One run: its matrix, of at most `most` shifts, and the low words after it.
///
/// The words of a run may be wrong about parity, and the packed rows may overflow. So the outcome is checked: rows of
/// determinant 2^s or its negative, whose values on the numbers are multiples of 2^s, keep the pair's lattice.
///
/// # Safety
/// BMI1 and BMI2.
#[inline(always)]
pub(super) unsafe fn run<const N: usize>(
    high: (u64, u64),
    low: (u64, u64),
    most: u32,
) -> (Matrix, (u64, u64)) {
    let word = |high: u64, low: u64| high & !LOW | low & LOW;
    // SAFETY: the caller's promise.
    let (m0, m1) = unsafe { steps::<N>(word(high.0, low.0), word(high.1, low.1)) };
    let ((f0, g0), (f1, g1)) = (unpack(m0), unpack(m1));
    let det = f0.wrapping_mul(g1).wrapping_sub(f1.wrapping_mul(g0));
    let shift = det.trailing_zeros();
    let value = |f: i64, g: i64| (f as u64).wrapping_mul(low.0).wrapping_add((g as u64).wrapping_mul(low.1));
    let (x0, x1) = (value(f0, g0), value(f1, g1));
    let cut = (x0 | x1) << 1 << (63 - (shift & 63));
    if (det >> (shift & 63)).wrapping_add(1) & !2 | cut as i64 != 0 || shift > most {
        let m = careful(high, low, most);
        return (m, (value(m.f0, m.g0) >> m.shift, value(m.f1, m.g1) >> m.shift));
    }
    (Matrix { f0, g0, f1, g1, shift }, (x0 >> shift, x1 >> shift))
}

/// Negates a row that is negative.
#[inline(always)]
pub(super) fn turn(negative: bool, f: &mut i64, g: &mut i64, low: &mut u64, top: &mut i64) {
    if negative {
        (*f, *g, *low, *top) = (-*f, -*g, low.wrapping_neg(), top.wrapping_neg());
    }
}

/// Likewise.
#[inline(always)]
pub(super) fn turn_wide(negative: bool, f: &mut i64, g: &mut i64, low: &mut u64, top: &mut i128) {
    if negative {
        (*f, *g, *low, *top) = (-*f, -*g, low.wrapping_neg(), top.wrapping_neg());
    }
}
