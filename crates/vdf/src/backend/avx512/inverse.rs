//! The inverse modulo b: the binary algorithm with its words in general registers and its rows in IFMA lanes.
//!
//! A row is a number in signed digits of radix 2^46: 64-bit lanes that hold the digit and 2^51, so that the multiplier, which
//! takes 52 bits without a sign, sees a sign after all (F (x + 2^51) less F 2^51, which is known beforehand). A lane's sum is
//! never carried through: its upper part moves up one lane with every product, and division by the window's 2^s moves a
//! part of it down again, so digits stay below 2^49.
//!
//! The words run ahead of the rows. A window is two runs of a fixed number of steps on words whose upper bits are those of the numbers' top and
//! whose lower bits are those of their bottom; top and bottom after a window come from the rows as they were before
//! it, one window late, so that no step waits for a row. Tops only decide which number is taken for the larger: were they
//! wrong, a number would turn negative and the end come later. Bottoms are exact.

use core::arch::asm;
use core::arch::x86_64::*;

use lanework_integer::gcd::binary::Inverse;
use lanework_integer::kernels::unpack;

/// Bits of a digit.
const DIGIT: u32 = 46;
/// Shifts of a window at least, by scaling up its matrix if need be: what is left of a lane's sum after so many is small enough
/// that a number's digits end where the number does, and a negative number has no endless sign.
const LEAST: u32 = DIGIT + 3;
/// Shifts of two runs that make a window; with fewer there is a third.
const ENOUGH: u32 = 34;
/// Steps of a window's runs: even.
const FIRST: usize = 14;
const SECOND: usize = 12;
/// Low bits of a word that are its number's.
const EXACT: u32 = 38;
const LOW: u64 = (1 << EXACT) - 1;
/// What a lane holds beside its digit.
const BIAS: i64 = 1 << 51;
/// Digits of a cofactor.
const LANES: usize = 16;
/// Bits of a cofactor, at most, so that it and its sign are in the lowest 11 limbs.
const ROOM: u32 = 700;
/// Index in a stored row of the lowest digit; there are zeros below.
const BASE: usize = 8;

/// A row's digits, stored for the words to read: the lowest at `BASE`, on a line of its own.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Stored([i64; BASE + LANES]);

impl Stored {
    /// 64 bits from bit `at` on; from -92 at the lowest.
    #[inline(always)]
    fn top(&self, at: i64) -> i64 {
        let at = (at + 2 * i64::from(DIGIT)) as u64;
        // at / 46 for what is below 2,000.
        let index = (at * 1425) >> 16;
        let bit = at - u64::from(DIGIT) * index;
        let index = BASE - 2 + (index as usize & 15);
        let d: &[i64; 3] = self.0[index..].first_chunk().expect("three digits");
        (d[0] >> bit).wrapping_add((d[1].wrapping_add(d[2] << DIGIT)) << (u64::from(DIGIT) - bit))
    }

    /// The low 128 bits: 64 of them as a signed number, and what is above.
    #[inline(always)]
    fn bottom(&self) -> (i64, i64) {
        let d: &[i64; 3] = self.0[BASE..].first_chunk().expect("three digits");
        let low = i128::from(d[0]).wrapping_add(i128::from(d[1]) << DIGIT);
        let high = ((low >> 64) as i64).wrapping_add(d[2] << (2 * DIGIT - 64));
        (low as i64, high.wrapping_add((low as i64) >> 63 & 1))
    }
}

/// Rows (f0, g0) and (f1, g1) that shift by `shift`.
#[derive(Clone, Copy)]
struct Matrix {
    f0: i64,
    g0: i64,
    f1: i64,
    g1: i64,
    shift: u32,
}

impl Matrix {
    /// As long as the longer row's sum of absolute values.
    #[inline(always)]
    fn size(&self) -> u64 {
        let size = |f: i64, g: i64| f.unsigned_abs().wrapping_add(g.unsigned_abs());
        size(self.f0, self.g0) | size(self.f1, self.g1)
    }

    /// Bits of the longer row's sum, scaled up to at least `LEAST` shifts.
    #[inline(always)]
    fn length(&self) -> u32 {
        64 - self.size().leading_zeros() + LEAST.saturating_sub(self.shift)
    }

    /// This one after another.
    #[inline(always)]
    fn after(&self, m: &Matrix) -> Matrix {
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
unsafe fn steps<const N: usize>(a: u64, b: u64) -> (u64, u64) {
    let (mut m0, mut m1) = (1u64, 1u64 << 32);
    // SAFETY: registers only; the instructions are there by the caller's promise. Two steps a turn: t = b - a, the rows' difference and
    // its negative, and the carry of a - b chooses.
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

/// The same by few enough steps that no more than `most` bits are shifted out, where [`steps`] went too far.
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
        // By masks: the outcome is a coin's.
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
/// The words of a run may lie about what is even, and the packed rows overflow. So the outcome is checked, and that is all that it is
/// trusted for: rows of determinant 2^s or its negative whose values on the numbers are multiples of 2^s keep the pair's lattice.
///
/// # Safety
/// BMI1 and BMI2.
#[inline(always)]
unsafe fn run<const N: usize>(high: (u64, u64), low: (u64, u64), most: u32) -> (Matrix, (u64, u64)) {
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

/// A matrix as the lanes take it.
#[derive(Clone, Copy)]
struct Factors {
    f: [__m512i; 2],
    g: [__m512i; 2],
    /// What the digits' bias adds to the upper sums, negative.
    less: [__m512i; 2],
    /// Of negative factors.
    minus_f: [__mmask8; 2],
    minus_g: [__mmask8; 2],
}

/// Where eight digits lie in eight limbs.
struct Cut {
    limb: [u64; 8],
    bit: [u64; 8],
    next: [u64; 8],
    back: [u64; 8],
    inside: [__mmask8; 2],
}

static CUTS: [Cut; 2] = [cut_table(0), cut_table(8)];

const fn cut_table(first: u64) -> Cut {
    let mut t = Cut { limb: [0; 8], bit: [0; 8], next: [0; 8], back: [0; 8], inside: [0; 2] };
    let mut i = 0;
    while i < 8 {
        let bit = DIGIT as u64 * (first + i as u64);
        (t.limb[i], t.bit[i]) = ((bit / 64) & 7, bit % 64);
        (t.next[i], t.back[i]) = ((bit / 64 + 1) & 7, 64 - bit % 64);
        t.inside[0] |= ((bit / 64 < 8) as u8) << i;
        t.inside[1] |= ((bit / 64 + 1 < 8) as u8) << i;
        i += 1;
    }
    t
}

macro_rules! lanes_fn {
    ($($item:item)*) => { $(
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,bmi1,bmi2,adx")]
        $item
    )* };
}

lanes_fn! {
    fn factors(m: &Matrix) -> Factors {
        let all = |x: i64| _mm512_set1_epi64(x << (52 - DIGIT));
        let sign = |x: i64| (x >> 63) as __mmask8;
        let less = |f: i64, g: i64| _mm512_set1_epi64(-(f + g) << (51 - DIGIT));
        Factors {
            f: [all(m.f0), all(m.f1)],
            g: [all(m.g0), all(m.g1)],
            less: [less(m.f0, m.g0), less(m.f1, m.g1)],
            minus_f: [sign(m.f0), sign(m.f1)],
            minus_g: [sign(m.g0), sign(m.g1)],
        }
    }

    /// Row i of the matrix on one register of each number: lower parts, and upper parts before they move up.
    fn products(m: &Factors, i: usize, x: __m512i, y: __m512i) -> (__m512i, __m512i) {
        let zero = _mm512_setzero_si512();
        let low = _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(zero, x, m.f[i]), y, m.g[i]);
        let high = _mm512_madd52hi_epu64(m.less[i], x, m.f[i]);
        let other = _mm512_madd52hi_epu64(zero, y, m.g[i]);
        let high = _mm512_mask_sub_epi64(high, m.minus_f[i], high, x);
        let other = _mm512_mask_sub_epi64(other, m.minus_g[i], other, y);
        (_mm512_srli_epi64::<{ 52 - DIGIT }>(low), _mm512_add_epi64(high, other))
    }

    /// A cofactor's row of one register.
    fn factor_row(m: &Factors, i: usize, x: __m512i, y: __m512i) -> __m512i {
        let (low, high) = products(m, i, x, y);
        let up = _mm512_alignr_epi64::<7>(high, _mm512_setzero_si512());
        _mm512_add_epi64(_mm512_add_epi64(low, _mm512_set1_epi64(BIAS)), up)
    }

    /// A cofactor's row of two.
    fn factor_rows(m: &Factors, i: usize, x: [__m512i; 2], y: [__m512i; 2]) -> [__m512i; 2] {
        let (low0, high0) = products(m, i, x[0], y[0]);
        let (low1, high1) = products(m, i, x[1], y[1]);
        let bias = _mm512_set1_epi64(BIAS);
        let up0 = _mm512_alignr_epi64::<7>(high0, _mm512_setzero_si512());
        let up1 = _mm512_alignr_epi64::<7>(high1, high0);
        [_mm512_add_epi64(_mm512_add_epi64(low0, bias), up0), _mm512_add_epi64(_mm512_add_epi64(low1, bias), up1)]
    }

    /// Sums of lanes, rounded and cut at bit `shift` - DIGIT: what stays in a lane, and what goes to the one below.
    fn cut(x: __m512i, shift: __m128i, rest: __m128i, round: __m512i) -> (__m512i, __m512i) {
        let stays = _mm512_sra_epi64(_mm512_add_epi64(x, round), shift);
        let down = _mm512_srai_epi64::<{ 64 - DIGIT }>(_mm512_sll_epi64(x, rest));
        (stays, down)
    }

    /// A number's row of one register, divided; without bias.
    fn row(m: &Factors, i: usize, x: __m512i, y: __m512i, by: &Division) -> __m512i {
        let (low, high) = products(m, i, x, y);
        // The lowest sum is a multiple of 2^46: it goes up whole.
        let high = _mm512_add_epi64(high, _mm512_maskz_srli_epi64::<DIGIT>(1, low));
        // Everything one lane lower than it is: the upper parts where they were.
        let zero = _mm512_setzero_si512();
        let sum = _mm512_add_epi64(_mm512_alignr_epi64::<1>(zero, low), high);
        let (stays, down) = cut(sum, by.shift, by.rest, by.round);
        _mm512_add_epi64(stays, _mm512_alignr_epi64::<1>(zero, down))
    }

    /// A number's row of two.
    fn rows(m: &Factors, i: usize, x: [__m512i; 2], y: [__m512i; 2], by: &Division) -> [__m512i; 2] {
        let (low0, high0) = products(m, i, x[0], y[0]);
        let (low1, high1) = products(m, i, x[1], y[1]);
        let high0 = _mm512_add_epi64(high0, _mm512_maskz_srli_epi64::<DIGIT>(1, low0));
        let zero = _mm512_setzero_si512();
        let sum0 = _mm512_add_epi64(_mm512_alignr_epi64::<1>(low1, low0), high0);
        let sum1 = _mm512_add_epi64(_mm512_alignr_epi64::<1>(zero, low1), high1);
        let (stays0, down0) = cut(sum0, by.shift, by.rest, by.round);
        let (stays1, down1) = cut(sum1, by.shift, by.rest, by.round);
        [
            _mm512_add_epi64(stays0, _mm512_alignr_epi64::<1>(down1, down0)),
            _mm512_add_epi64(stays1, _mm512_alignr_epi64::<1>(zero, down1)),
        ]
    }

    /// Stored digits.
    fn load(x: &Stored) -> [__m512i; 2] {
        let at = x.0[BASE..].as_ptr();
        // SAFETY: sixteen lanes are there.
        unsafe { [_mm512_load_si512(at.cast()), _mm512_load_si512(at.add(8).cast())] }
    }

    fn division(shift: u32) -> Division {
        let shift = u64::from(shift - DIGIT);
        Division {
            shift: _mm_cvtsi64_si128(shift as i64),
            rest: _mm_cvtsi64_si128(64 - shift as i64),
            round: _mm512_set1_epi64(1 << shift >> 1),
        }
    }

    /// Digits of up to 8 limbs, with their bias.
    fn digits(x: &[u64; 8]) -> [__m512i; 2] {
        // SAFETY: eight limbs are read, and eight lanes of each table.
        let load = |x: &[u64; 8]| unsafe { _mm512_loadu_si512(x.as_ptr().cast()) };
        let limbs = load(x);
        let part = |t: &Cut| {
            let low = _mm512_maskz_permutexvar_epi64(t.inside[0], load(&t.limb), limbs);
            let high = _mm512_maskz_permutexvar_epi64(t.inside[1], load(&t.next), limbs);
            let low = _mm512_srlv_epi64(low, load(&t.bit));
            let high = _mm512_sllv_epi64(high, load(&t.back));
            let digit = _mm512_and_si512(_mm512_or_si512(low, high), _mm512_set1_epi64((1 << DIGIT) - 1));
            _mm512_add_epi64(digit, _mm512_set1_epi64(BIAS))
        };
        [part(&CUTS[0]), part(&CUTS[1])]
    }

    fn store(x: [__m512i; 2], out: &mut Stored) {
        let [low, high] = {
            let (low, high) = out.0[BASE..].split_at_mut(8);
            [low.as_mut_ptr(), high.as_mut_ptr()]
        };
        // SAFETY: eight lanes each, which is what the halves have.
        unsafe {
            _mm512_store_si512(low.cast(), x[0]);
            _mm512_store_si512(high.cast(), x[1]);
        }
    }
}

/// A window by fewer bits than a digit has, in memory.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,bmi1,bmi2,adx")]
fn short_window(m: Matrix, stored: &mut [Stored; 2]) {
    let bias = _mm512_set1_epi64(BIAS);
    let zero = _mm512_setzero_si512();
    let [x, y] = [load(&stored[0]), load(&stored[1])].map(|x| x.map(|x| _mm512_add_epi64(x, bias)));
    let (factors, by) = (factors(&m), division(m.shift + DIGIT));
    for (i, out) in stored.iter_mut().enumerate() {
        let (low0, high0) = products(&factors, i, x[0], y[0]);
        let (low1, high1) = products(&factors, i, x[1], y[1]);
        let sum0 = _mm512_add_epi64(low0, _mm512_alignr_epi64::<7>(high0, zero));
        let sum1 = _mm512_add_epi64(low1, _mm512_alignr_epi64::<7>(high1, high0));
        let (stays0, down0) = cut(sum0, by.shift, by.rest, by.round);
        let (stays1, down1) = cut(sum1, by.shift, by.rest, by.round);
        let low = _mm512_add_epi64(stays0, _mm512_alignr_epi64::<1>(down1, down0));
        store([low, _mm512_add_epi64(stays1, _mm512_alignr_epi64::<1>(zero, down1))], out);
    }
}

/// Division by a window's power of two, less a digit.
struct Division {
    shift: __m128i,
    rest: __m128i,
    round: __m512i,
}

/// Bits of the longer number, at most, from which one register holds both: seven digits, and a bit to spare.
const SHORT: i64 = 7 * DIGIT as i64 - 4;

/// The inverse of a modulo an odd b, as `lanework_integer::gcd::binary::invert` gives it, of numbers of up to 8 limbs.
///
/// Nothing if they have a divisor in common, and in rare cases that the other function serves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,bmi1,bmi2,adx")]
pub(super) fn invert<const M: usize>(a: &[u64; 8], b: &[u64; 8]) -> Option<Inverse<M>> {
    let zeros = a[0].trailing_zeros();
    if b[0] & 1 == 0 || zeros == 64 {
        return None;
    }
    // Both odd from here on.
    let mut odd = [0; 8];
    for i in 0..8 {
        let above = if i < 7 { a[i + 1] } else { 0 };
        odd[i] = a[i] >> zeros | above << 1 << (63 - zeros);
    }
    let a = &odd;
    let mut n = 8;
    while n > 1 && a[n - 1] | b[n - 1] == 0 {
        n -= 1;
    }
    let lead = (a[n - 1] | b[n - 1]).leading_zeros();
    let top = |x: &[u64; 8]| {
        let below = if n > 1 { x[n - 2] } else { 0 };
        x[n - 1] << lead | below >> 1 >> (63 - lead)
    };
    // The numbers' tops are their values by 2^exponent.
    let (mut high, mut low) = ((top(a), top(b)), (a[0], b[0]));
    let mut exponent = 64 * n as i64 - 64 - i64::from(lead);

    let bias = _mm512_set1_epi64(BIAS);
    let unbias = |x: [__m512i; 2]| [_mm512_sub_epi64(x[0], bias), _mm512_sub_epi64(x[1], bias)];
    let (mut x, mut y) = (digits(a), digits(b));
    let mut stored = [Stored([0; BASE + LANES]); 2];
    store(unbias(x), &mut stored[0]);
    store(unbias(y), &mut stored[1]);
    let (mut u, mut v) = ([bias; 2], [bias; 2]);
    u[0] = _mm512_mask_add_epi64(bias, 1, bias, _mm512_set1_epi64(1));

    let (mut shift, mut window, mut growth, mut wide) = (zeros, 0, 1, true);
    loop {
        let length_before = exponent + 64;
        // SAFETY: the features are there.
        let (mut m, mut l) = unsafe { run::<FIRST>(high, low, EXACT - 1) };
        // The middle: tops of 40 bits do, and are all a multiplication has room for.
        let (p, q) = ((high.0 >> 24) as i64, (high.1 >> 24) as i64);
        let mut t0 = m.f0.wrapping_mul(p).wrapping_add(m.g0.wrapping_mul(q));
        let mut t1 = m.f1.wrapping_mul(p).wrapping_add(m.g1.wrapping_mul(q));
        if (t0 | t1) < 0 {
            turn(t0 < 0, &mut m.f0, &mut m.g0, &mut l.0, &mut t0);
            turn(t1 < 0, &mut m.f1, &mut m.g1, &mut l.1, &mut t1);
        }
        let first = m;
        let lead = (t0 | t1).leading_zeros() & 63;
        let tops = ((t0 as u64) << lead, (t1 as u64) << lead);
        // SAFETY: the features are there.
        let (k, mut l) = unsafe { run::<SECOND>(tops, l, (63 - m.shift).min(EXACT - 1)) };
        m = k.after(&m);
        if m.shift < ENOUGH {
            if m.size() >> 32 != 0 {
                return None;
            }
            let (p, q) = ((tops.0 >> 24) as i64, (tops.1 >> 24) as i64);
            let mut t0 = k.f0.wrapping_mul(p).wrapping_add(k.g0.wrapping_mul(q));
            let mut t1 = k.f1.wrapping_mul(p).wrapping_add(k.g1.wrapping_mul(q));
            if (t0 | t1) < 0 {
                turn(t0 < 0, &mut m.f0, &mut m.g0, &mut l.0, &mut t0);
                turn(t1 < 0, &mut m.f1, &mut m.g1, &mut l.1, &mut t1);
            }
            let lead = (t0 | t1).leading_zeros() & 63;
            let tops = ((t0 as u64) << lead, (t1 as u64) << lead);
            m = careful(tops, l, 62 - m.shift).after(&m);
        }
        // Entries that would be too long, in one window of some hundreds: half of it does, or its shifts are few and remain so.
        let length = m.length();
        let few = length >= DIGIT;
        if few && m.shift >= DIGIT - 1 {
            m = first;
        }
        // The window's end, from the rows before it.
        let at = exponent + 2;
        let (p, q) = (stored[0].top(at), stored[1].top(at));
        let sum = |f: i64, g: i64, p: i64, q: i64| {
            (i128::from(f) * i128::from(p)).wrapping_add(i128::from(g) * i128::from(q))
        };
        let (mut t0, mut t1) = (sum(m.f0, m.g0, p, q), sum(m.f1, m.g1, p, q));
        let ((p0, p1), (q0, q1)) = (stored[0].bottom(), stored[1].bottom());
        let bottom = |f: i64, g: i64| {
            let low = sum(f, g, p0, q0);
            let above = ((low >> 64) as u64)
                .wrapping_add((f as u64).wrapping_mul(p1 as u64))
                .wrapping_add((g as u64).wrapping_mul(q1 as u64));
            low as u64 >> m.shift | above << 1 << (63 - m.shift)
        };
        let mut l = (bottom(m.f0, m.g0), bottom(m.f1, m.g1));
        if (t0 | t1) < 0 {
            turn_wide(t0 < 0, &mut m.f0, &mut m.g0, &mut l.0, &mut t0);
            turn_wide(t1 < 0, &mut m.f1, &mut m.g1, &mut l.1, &mut t1);
        }
        let (h0, h1) = ((t0 >> 64) as u64, (t1 >> 64) as u64);
        let mut lead = (h0 | h1).leading_zeros();
        low = l;
        if lead < 64 {
            let top = |h: u64, t: i128| h << lead | t as u64 >> 1 >> (63 - lead);
            high = (top(h0, t0), top(h1, t1));
        } else {
            // Near the end numbers may shrink by more than a word at once.
            let more = (t0 as u64 | t1 as u64).leading_zeros();
            high = ((t0 as u64) << (more & 63), (t1 as u64) << (more & 63));
            lead += more;
        }
        exponent = (at - i64::from(m.shift) + 64 - i64::from(lead)).max(-64);

        // The lanes.
        let end = low.0 & low.1 & 1 == 0;
        let up = if end || few { 0 } else { LEAST.saturating_sub(m.shift) };
        let m =
            Matrix { f0: m.f0 << up, g0: m.g0 << up, f1: m.f1 << up, g1: m.g1 << up, shift: m.shift + up };
        growth += if few { DIGIT } else { length };
        if growth > ROOM || m.shift == 0 && !end {
            return None;
        }
        shift += m.shift;
        let by = m.shift;
        let matrix = m;
        let m = factors(&m);
        if !end {
            wide &= length_before > SHORT;
            if few {
                short_window(matrix, &mut stored);
                x = load(&stored[0]).map(|x| _mm512_add_epi64(x, bias));
                y = load(&stored[1]).map(|x| _mm512_add_epi64(x, bias));
            } else if wide {
                let by = division(by);
                let next = [rows(&m, 0, x, y, &by), rows(&m, 1, x, y, &by)];
                store(next[0], &mut stored[0]);
                store(next[1], &mut stored[1]);
                x = next[0].map(|x| _mm512_add_epi64(x, bias));
                y = next[1].map(|x| _mm512_add_epi64(x, bias));
            } else {
                let by = division(by);
                let next = [row(&m, 0, x[0], y[0], &by), row(&m, 1, x[0], y[0], &by)];
                store([next[0], _mm512_setzero_si512()], &mut stored[0]);
                store([next[1], _mm512_setzero_si512()], &mut stored[1]);
                x[0] = _mm512_add_epi64(next[0], bias);
                y[0] = _mm512_add_epi64(next[1], bias);
            }
        }
        if window < 7 {
            (u[0], v[0]) = (factor_row(&m, 0, u[0], v[0]), factor_row(&m, 1, u[0], v[0]));
        } else {
            (u, v) = (factor_rows(&m, 0, u, v), factor_rows(&m, 1, u, v));
        }
        window += 1;
        if end {
            // Short as they were, the bottoms are all of the numbers.
            if length_before > 62 {
                return None;
            }
            break;
        }
    }
    // One of the numbers is 0, the other the divisor that they have in common: 1 or -1, or else there is no inverse.
    let (one, zero, factor) = if low.0 & 1 != 0 { (low.0, low.1, u) } else { (low.1, low.0, v) };
    let negative = one == u64::MAX;
    if zero != 0 || one != 1 && !negative {
        return None;
    }
    let mut digits = Stored([0; BASE + LANES]);
    store(unbias(factor), &mut digits);
    let (mut magnitude, mut carry) = ([0; M], 0i128);
    let (mut next, mut have) = (0, 0);
    for &digit in &digits.0[BASE..] {
        carry += i128::from(digit) << have;
        have += DIGIT;
        if have >= 64 {
            magnitude[next] = carry as u64;
            carry >>= 64;
            (next, have) = (next + 1, have - 64);
        }
    }
    let minus = magnitude[10] >> 63 != 0;
    if minus {
        let mut carry = true;
        for limb in &mut magnitude[..11] {
            (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
        }
    }
    // A multiple of 2^64, so that whoever divides by it need not shift.
    let more = shift.wrapping_neg() & 63;
    for i in (0..12).rev() {
        let below = if i > 0 { magnitude[i - 1] } else { 0 };
        magnitude[i] = magnitude[i] << more | below >> 1 >> (63 - more);
    }
    shift += more;
    let limbs = if magnitude[10] | magnitude[11] == 0 { 10 } else { 12 };
    Some(Inverse { magnitude, limbs, negative: minus ^ negative, shift })
}

/// Turns a row around that came out negative.
#[inline(always)]
fn turn(negative: bool, f: &mut i64, g: &mut i64, low: &mut u64, top: &mut i64) {
    if negative {
        (*f, *g, *low, *top) = (-*f, -*g, low.wrapping_neg(), top.wrapping_neg());
    }
}

/// Likewise.
#[inline(always)]
fn turn_wide(negative: bool, f: &mut i64, g: &mut i64, low: &mut u64, top: &mut i128) {
    if negative {
        (*f, *g, *low, *top) = (-*f, -*g, low.wrapping_neg(), top.wrapping_neg());
    }
}

#[cfg(test)]
mod tests;
