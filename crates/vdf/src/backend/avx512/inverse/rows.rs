//! The rows of the inverse: digits in lanes, one window of a matrix at a time.

use core::arch::x86_64::*;

use super::DIGIT;
use super::words::Matrix;

/// The bias of a lane's digit.
pub(super) const BIAS: i64 = 1 << 51;
/// Digits of a cofactor.
pub(super) const LANES: usize = 16;
/// Index in a stored row of the lowest digit; there are zeros below.
pub(super) const BASE: usize = 8;

/// A row's digits, stored for the words to read: the lowest at `BASE`, on a line of its own.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Stored(pub(super) [i64; BASE + LANES]);

impl Stored {
    /// 64 bits from bit `at` on; from -92 at the lowest.
    #[inline(always)]
    pub(super) fn top(&self, at: i64) -> i64 {
        let at = (at + 2 * i64::from(DIGIT)) as u64;
        // at / 46 for what is below 2,000.
        let index = (at * 1425) >> 16;
        let bit = at - u64::from(DIGIT) * index;
        let index = BASE - 2 + (index as usize & 15);
        let d: &[i64; 3] = self.0[index..].first_chunk().expect("three digits");
        (d[0] >> bit).wrapping_add((d[1].wrapping_add(d[2] << DIGIT)) << (u64::from(DIGIT) - bit))
    }

    /// The low 128 bits, as two words.
    #[inline(always)]
    pub(super) fn bottom(&self) -> (u64, u64) {
        let d: &[i64; 3] = self.0[BASE..].first_chunk().expect("three digits");
        let (low, carry) = (d[0] as u64).overflowing_add((d[1] << DIGIT) as u64);
        let above = (d[0] >> 63) + (d[1] >> (64 - DIGIT));
        let high = above.wrapping_add(d[2] << (2 * DIGIT - 64)) as u64;
        (low, high.wrapping_add(u64::from(carry)))
    }
}

/// A matrix in the lanes' layout.
#[derive(Clone, Copy)]
pub(super) struct Factors {
    f: [__m512i; 2],
    g: [__m512i; 2],
    /// The negative of the digits' bias in the upper sums.
    less: [__m512i; 2],
}

/// The positions of eight digits in eight limbs.
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
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,lzcnt,bmi1,bmi2,adx")]
        $item
    )* };
}

lanes_fn! {
    /// Entries times 2^up.
    pub(super) fn factors(m: &Matrix, up: u32) -> Factors {
        let all = |x: u64| _mm512_set1_epi64((x << (up + 52 - DIGIT)) as i64);
        let (f, g) = ([all(m.f0), all(m.f1)], [all(m.g0), all(m.g1)]);
        let less = |f: __m512i, g: __m512i| {
            let sum = _mm512_srli_epi64::<1>(_mm512_add_epi64(f, g));
            _mm512_sub_epi64(_mm512_setzero_si512(), sum)
        };
        Factors { f, g, less: [less(f[0], g[0]), less(f[1], g[1])] }
    }

    /// Row i of the matrix on one register of each number: lower parts, and upper parts before they move up.
    fn products(m: &Factors, i: usize, x: __m512i, y: __m512i) -> (__m512i, __m512i) {
        let zero = _mm512_setzero_si512();
        let low = _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(zero, x, m.f[i]), y, m.g[i]);
        let high = _mm512_madd52hi_epu64(_mm512_madd52hi_epu64(m.less[i], x, m.f[i]), y, m.g[i]);
        (_mm512_srli_epi64::<{ 52 - DIGIT }>(low), high)
    }

    /// A cofactor's row of one register.
    pub(super) fn factor_row(m: &Factors, i: usize, x: __m512i, y: __m512i) -> __m512i {
        let (low, high) = products(m, i, x, y);
        let up = _mm512_alignr_epi64::<7>(high, _mm512_setzero_si512());
        _mm512_add_epi64(_mm512_add_epi64(low, _mm512_set1_epi64(BIAS)), up)
    }

    /// A cofactor's row of two.
    pub(super) fn factor_rows(m: &Factors, i: usize, x: [__m512i; 2], y: [__m512i; 2]) -> [__m512i; 2] {
        let (low0, high0) = products(m, i, x[0], y[0]);
        let (low1, high1) = products(m, i, x[1], y[1]);
        let bias = _mm512_set1_epi64(BIAS);
        let up0 = _mm512_alignr_epi64::<7>(high0, _mm512_setzero_si512());
        let up1 = _mm512_alignr_epi64::<7>(high1, high0);
        [_mm512_add_epi64(_mm512_add_epi64(low0, bias), up0), _mm512_add_epi64(_mm512_add_epi64(low1, bias), up1)]
    }

    /// Sums of lanes, rounded and cut at the division's bit: the part that stays in a lane, and the part for the lane
    /// below.
    fn cut(x: __m512i, by: &Division) -> (__m512i, __m512i) {
        let stays = _mm512_srav_epi64(_mm512_add_epi64(x, by.round), by.shift);
        let down = _mm512_srai_epi64::<{ 64 - DIGIT }>(_mm512_sllv_epi64(x, by.rest));
        (stays, down)
    }

    /// A number's row of one register, divided; without bias.
    pub(super) fn row(m: &Factors, i: usize, x: __m512i, y: __m512i, by: &Division) -> __m512i {
        let (low, high) = products(m, i, x, y);
        // The lowest sum is a multiple of 2^46: it goes up whole.
        let high = _mm512_add_epi64(high, _mm512_maskz_srli_epi64::<DIGIT>(1, low));
        // Everything one lane lower: the upper parts are back in their places.
        let zero = _mm512_setzero_si512();
        let sum = _mm512_add_epi64(_mm512_alignr_epi64::<1>(zero, low), high);
        let (stays, down) = cut(sum, by);
        _mm512_add_epi64(stays, _mm512_alignr_epi64::<1>(zero, down))
    }

    /// A number's row of two.
    pub(super) fn rows(m: &Factors, i: usize, x: [__m512i; 2], y: [__m512i; 2], by: &Division) -> [__m512i; 2] {
        let (low0, high0) = products(m, i, x[0], y[0]);
        let (low1, high1) = products(m, i, x[1], y[1]);
        let high0 = _mm512_add_epi64(high0, _mm512_maskz_srli_epi64::<DIGIT>(1, low0));
        let zero = _mm512_setzero_si512();
        let sum0 = _mm512_add_epi64(_mm512_alignr_epi64::<1>(low1, low0), high0);
        let sum1 = _mm512_add_epi64(_mm512_alignr_epi64::<1>(zero, low1), high1);
        let (stays0, down0) = cut(sum0, by);
        let (stays1, down1) = cut(sum1, by);
        [
            _mm512_add_epi64(stays0, _mm512_alignr_epi64::<1>(down1, down0)),
            _mm512_add_epi64(stays1, _mm512_alignr_epi64::<1>(zero, down1)),
        ]
    }

    /// Stored digits.
    pub(super) fn load(x: &Stored) -> [__m512i; 2] {
        let at = x.0[BASE..].as_ptr();
        // SAFETY: sixteen lanes are there.
        unsafe { [_mm512_load_si512(at.cast()), _mm512_load_si512(at.add(8).cast())] }
    }

    pub(super) fn division(shift: u32) -> Division {
        let shift = _mm512_set1_epi64(i64::from(shift - DIGIT));
        let one = _mm512_set1_epi64(1);
        Division {
            shift,
            rest: _mm512_sub_epi64(_mm512_set1_epi64(64), shift),
            round: _mm512_srli_epi64::<1>(_mm512_sllv_epi64(one, shift)),
        }
    }

    /// Digits of up to 8 limbs, with their bias.
    pub(super) fn digits(x: &[u64; 8]) -> [__m512i; 2] {
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

    pub(super) fn store(x: [__m512i; 2], out: &mut Stored) {
        let [low, high] = {
            let (low, high) = out.0[BASE..].split_at_mut(8);
            [low.as_mut_ptr(), high.as_mut_ptr()]
        };
        // SAFETY: each half has eight lanes.
        unsafe {
            _mm512_store_si512(low.cast(), x[0]);
            _mm512_store_si512(high.cast(), x[1]);
        }
    }
}

/// A window of fewer bits than a digit, in memory.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,lzcnt,bmi1,bmi2,adx")]
pub(super) fn short_window(factors: &Factors, shift: u32, stored: &mut [Stored; 2]) {
    let bias = _mm512_set1_epi64(BIAS);
    let zero = _mm512_setzero_si512();
    let [x, y] = [load(&stored[0]), load(&stored[1])].map(|x| x.map(|x| _mm512_add_epi64(x, bias)));
    let by = &division(shift + DIGIT);
    for (i, out) in stored.iter_mut().enumerate() {
        let (low0, high0) = products(factors, i, x[0], y[0]);
        let (low1, high1) = products(factors, i, x[1], y[1]);
        let sum0 = _mm512_add_epi64(low0, _mm512_alignr_epi64::<7>(high0, zero));
        let sum1 = _mm512_add_epi64(low1, _mm512_alignr_epi64::<7>(high1, high0));
        let (stays0, down0) = cut(sum0, by);
        let (stays1, down1) = cut(sum1, by);
        let low = _mm512_add_epi64(stays0, _mm512_alignr_epi64::<1>(down1, down0));
        store([low, _mm512_add_epi64(stays1, _mm512_alignr_epi64::<1>(zero, down1))], out);
    }
}

/// Division by a window's power of two, less a digit.
pub(super) struct Division {
    shift: __m512i,
    rest: __m512i,
    round: __m512i,
}
