//! The words of the inverse: runs of a fixed number of steps, their matrices, and the correction of a run that went too
//! far.

use core::arch::asm;

use super::LEAST;

/// Steps of a window's runs: even.
pub(super) const FIRST: usize = 14;
pub(super) const SECOND: usize = 12;
/// Low bits of a word that are its number's.
pub(super) const EXACT: u32 = 40;
const LOW: u64 = (1 << EXACT) - 1;

/// Rows that shift by `shift`. Of numbers x and y, one positive and one negative, the next two are f0 x + g0 y and
/// f1 x + g1 y, each over 2^shift; again one is positive and one negative. So no entry ever has a sign.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) f0: u64,
    pub(super) g0: u64,
    pub(super) f1: u64,
    pub(super) g1: u64,
    pub(super) shift: u32,
}

impl Matrix {
    /// As long as the longer row's sum.
    #[inline(always)]
    pub(super) fn size(&self) -> u64 {
        self.f0.wrapping_add(self.g0) | self.f1.wrapping_add(self.g1)
    }

    /// Bits of the longer row's sum, scaled up to at least `LEAST` shifts.
    #[inline(always)]
    pub(super) fn length(&self) -> u32 {
        64 - self.size().leading_zeros() + LEAST.saturating_sub(self.shift)
    }

    /// The matrix of `m`, then this one.
    #[inline(always)]
    pub(super) fn after(&self, m: &Matrix) -> Matrix {
        // Runs' entries have 31 bits.
        let sum = |x: u64, y: u64, z: u64, w: u64| x.wrapping_mul(y).wrapping_add(z.wrapping_mul(w));
        Matrix {
            f0: sum(self.f0, m.f0, self.g0, m.f1),
            g0: sum(self.f0, m.g0, self.g0, m.g1),
            f1: sum(self.f1, m.f0, self.g1, m.f1),
            g1: sum(self.f1, m.g0, self.g1, m.g1),
            shift: self.shift + m.shift,
        }
    }

    /// The values of the rows on the sizes of a positive and a negative number, modulo 2^64.
    #[inline(always)]
    pub(super) fn values(&self, a: u64, b: u64) -> (u64, u64) {
        let value = |f: u64, g: u64| f.wrapping_mul(a).wrapping_sub(g.wrapping_mul(b));
        (value(self.f0, self.g0), value(self.f1, self.g1))
    }
}

/// N steps, N even, of the binary algorithm on words of odd numbers. Rows are packed: the factor of the first number is
/// in the low half, that of the second in the upper half.
///
/// # Safety
/// BMI1 and BMI2.
#[inline(always)]
unsafe fn steps<const N: usize>(a: u64, b: u64) -> (u64, u64) {
    let (mut m0, mut m1) = (1u64, 1u64 << 32);
    // SAFETY: registers only; the instructions are there by the caller's promise. Two steps a turn: t = b - a, and the
    // carry of a - b chooses. The difference of two numbers is the sum of their rows, since one of them is negative.
    unsafe {
        asm!(
            ".rept {turns}",
            "mov {t}, {b}",
            "sub {t}, {a}",
            "tzcnt {z}, {t}",
            "lea {r}, [{m0} + {m1}]",
            "mov {d}, {a}",
            "sub {d}, {b}",
            "cmovc {b}, {a}",
            "cmovc {d}, {t}",
            "cmovc {m1}, {m0}",
            "shrx {a}, {d}, {z}",
            "shlx {m1}, {m1}, {z}",
            "mov {t}, {b}",
            "sub {t}, {a}",
            "tzcnt {z}, {t}",
            "lea {m0}, [{r} + {m1}]",
            "mov {d}, {a}",
            "sub {d}, {b}",
            "cmovc {b}, {a}",
            "cmovc {d}, {t}",
            "cmovc {m1}, {r}",
            "shrx {a}, {d}, {z}",
            "shlx {m1}, {m1}, {z}",
            ".endr",
            turns = const N / 2,
            a = inout(reg) a => _, b = inout(reg) b => _, m0 = inout(reg) m0, m1 = inout(reg) m1,
            t = out(reg) _, z = out(reg) _, r = out(reg) _, d = out(reg) _,
            options(pure, nomem, nostack)
        );
    }
    (m0, m1)
}

/// The same where [`steps`] went too far, with few enough steps to shift out at most `most` bits.
#[inline(always)]
fn careful(high: (u64, u64), low: (u64, u64), most: u32) -> Matrix {
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
        let less = 0u64.wrapping_sub(u64::from(less));
        let choose = |no: u64, yes: u64| no ^ ((no ^ yes) & less);
        (m.f0, m.f1) = (m.f0 + m.f1, choose(m.f1, m.f0) << zeros);
        (m.g0, m.g1) = (m.g0 + m.g1, choose(m.g1, m.g0) << zeros);
        m.shift += zeros;
        b = choose(b, a);
        a = ((difference ^ less).wrapping_sub(less)) >> zeros;
    }
    m
}

/// One run on the sizes of two numbers, one positive and one negative: its matrix, of at most `most` shifts, and the low
/// words of the numbers after it, with the signs that they have if the first was positive.
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
    // Entries of 31 bits have a determinant of 63.
    const ROOM: u64 = 0x8000_0000_8000_0000;
    let word = |high: u64, low: u64| high & !LOW | low & LOW;
    // SAFETY: the caller's promise.
    let (m0, m1) = unsafe { steps::<N>(word(high.0, low.0), word(high.1, low.1)) };
    let half = |m: u64| (u64::from(m as u32), m >> 32);
    let ((f0, g0), (f1, g1)) = (half(m0), half(m1));
    let det = f0.wrapping_mul(g1).wrapping_sub(f1.wrapping_mul(g0)) as i64;
    let m = Matrix { f0, g0, f1, g1, shift: det.trailing_zeros() };
    if m.shift <= most {
        let (x0, x1) = m.values(low.0, low.1);
        let cut = (x0 | x1) & ((1 << m.shift) - 1);
        if (det >> m.shift).wrapping_add(1) as u64 & !2 | cut | (m0 | m1) & ROOM == 0 {
            return (m, (x0 >> m.shift, x1 >> m.shift));
        }
    }
    let m = careful(high, low, most);
    let (x0, x1) = m.values(low.0, low.1);
    (m, (x0 >> m.shift, x1 >> m.shift))
}

/// The sign of a number in two's complement: 0, or all ones.
#[inline(always)]
pub(super) fn sign(x: u64) -> u64 {
    (x as i64 >> 63) as u64
}

/// A number, or its negative where the sign is all ones.
#[inline(always)]
pub(super) fn signed(x: u64, sign: u64) -> u64 {
    (x ^ sign).wrapping_sub(sign)
}
