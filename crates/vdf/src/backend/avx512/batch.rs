//! Products side by side: eight pairs of forms at once, one pair a lane.
//!
//! The algorithm is `generic::nucomp`'s, with Euclid's algorithm from the top for the inverse too. A lane whose numbers are
//! too long for it, whose forms have a common divisor, or whose product has another discriminant modulo 2^64 - 1, is left to
//! the code for one product.

use core::arch::x86_64::*;
use core::array;

use super::Form1024;
use crate::backend::generic::compose::{reduce, residue};
use crate::backend::generic::nucomp::Operands;
use euclid::Rows;
use lanes::{
    L, Numbers, carry, chosen, difference, load, minus_inverse, montgomery, negated, negative, quotient,
    signed, signed_times_plus, store, times_plus,
};

mod euclid;
mod lanes;
mod reduction;

/// Pairs in a group of lanes. Two groups take turns, since Euclid's algorithm waits for its divisions.
const LANES: usize = 8;

/// Bits within which v1, v2, s and m have to lie, besides a sign.
const LONGEST: usize = 64 * 8 + 7;

/// Nine words of eight numbers.
type Words = [[u64; LANES]; 9];

/// Sets one number of eight.
#[inline(always)]
fn put(words: &mut Words, lane: usize, x: &[u64; 9]) {
    for (words, &x) in words.iter_mut().zip(x) {
        words[lane] = x;
    }
}

/// Whether a number in two's complement lies within `LONGEST` bits.
#[inline(always)]
fn short(x: &[u64; 9]) -> bool {
    let top = x[8] as i64 >> (LONGEST - 512);
    top == 0 || top == -1
}

/// Multiplies the first form of each of up to sixteen pairs by the second. The result has a bit for each pair that was
/// multiplied; the others are as they were.
///
/// # Safety
/// The CPU must have the features that the table of backends lists for this one.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
pub(super) unsafe fn multiply(pairs: &mut [(Form1024, Form1024)], stop: usize) -> u64 {
    if pairs.len() > LANES { groups::<2>(pairs, stop) } else { groups::<1>(pairs, stop) }
}

/// The same in this many groups of lanes.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
#[inline]
fn groups<const G: usize>(pairs: &mut [(Form1024, Form1024)], stop: usize) -> u64 {
    let operands = array::from_fn(|g| Lanes::of(&pairs[g * LANES..]));
    let Some(products) = products::<G>(&operands, stop) else { return 0 };
    let discriminant = |form: &Form1024| residue(&form.a, &form.b, &form.c);
    let (mut a, mut b, mut c) = ([[0; LANES]; 9], [[0; LANES]; 9], [[0; LANES]; 9]);
    let mut done = 0;
    for (g, (product, right)) in products.iter().enumerate() {
        store(&product.a, &mut a);
        store(&product.b, &mut b);
        store(&product.c, &mut c);
        for lane in 0..LANES {
            if (operands[g].taken & right) >> lane & 1 == 0 {
                continue;
            }
            let [a, b, c] = [&a, &b, &c].map(|words| words.map(|words| words[lane]));
            let Some(mut form) = reduce::<8, 9>(a, b, c, product.odd >> lane & 1 != 0) else { continue };
            form.negative ^= operands[g].inverse >> lane & 1 != 0;
            let at = g * LANES + lane;
            if discriminant(&form) == discriminant(&pairs[at].0) {
                pairs[at].0 = form;
                done |= 1 << at;
            }
        }
    }
    done
}

/// The operands of `generic::nucomp`.
struct Lanes {
    v1: Numbers<L>,
    v2: Numbers<L>,
    s: Numbers<L>,
    m: Numbers<L>,
    c2: Numbers<L>,
    /// The lanes that have a pair.
    taken: __mmask8,
    /// The lanes that square a form, for which v2 k = m does not determine k, but s k = -c2 does.
    squares: __mmask8,
    /// Those among them that square its inverse.
    inverse: __mmask8,
}

/// Forms, nearly reduced; b has the other sign in the lanes `odd`.
struct Product {
    a: Numbers<11>,
    b: Numbers<11>,
    c: Numbers<11>,
    odd: __mmask8,
}

/// The lowest six limbs.
#[inline(always)]
fn low(x: &Numbers<L>) -> Numbers<6> {
    array::from_fn(|i| x[i])
}

/// The products, and the lanes in which they are right; `None` if it does not come to an end.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
#[inline]
fn products<const G: usize>(operands: &[Lanes; G], stop: usize) -> Option<[(Product, __mmask8); G]> {
    let zero = _mm512_setzero_si512();
    let (mut one, none) = ([zero; L], [zero; L]);
    one[0] = _mm512_set1_epi64(1);
    let minus_inverses = operands.each_ref().map(|operands| minus_inverse(operands.v1[0]));
    let start = |x: Numbers<L>, y: Numbers<L>| Rows { x, y, p: none, q: one, odd: 0 };
    let mut rows = array::from_fn(|g| {
        // v2 or s over 2^520, so that the last reduction takes the power out again.
        let mut wide = [zero; 2 * L];
        let Lanes { v2, s, squares, .. } = &operands[g];
        wide[..L].copy_from_slice(&chosen(*squares, s, v2));
        start(operands[g].v1, montgomery(wide, &operands[g].v1, minus_inverses[g]))
    });
    euclid::run::<G>(&mut rows, 0)?;
    let mut right = [0; G];
    let mut rows = array::from_fn(|g| {
        let k;
        (k, right[g]) = operands[g].k(&rows[g], minus_inverses[g]);
        // Lanes without an inverse end at once.
        start(chosen(right[g], &operands[g].v1, &one), chosen(right[g], &k, &none))
    });
    euclid::run::<G>(&mut rows, stop)?;
    Some(array::from_fn(|g| (operands[g].form(&rows[g], minus_inverses[g]), right[g])))
}

impl Lanes {
    /// Of the first eight pairs.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    #[inline]
    fn of(pairs: &[(Form1024, Form1024)]) -> Lanes {
        let [mut v1, mut v2, mut s, mut m, mut c2] = [[[0; LANES]; 9]; 5];
        let (mut taken, mut squares, mut inverse) = (0, 0, 0);
        for (lane, (x, y)) in pairs.iter().enumerate().take(LANES) {
            let bit = 1 << lane;
            let operands = if x == y {
                Operands::of_square(x).map(|(operands, turned)| {
                    squares |= bit;
                    inverse |= if turned { bit } else { 0 };
                    operands
                })
            } else {
                Operands::of(x, y)
            };
            let Some(operands) = operands else { continue };
            let all = [&operands.v1, &operands.v2, &operands.s, &operands.m, &operands.c2];
            if !all[..4].iter().all(|x| short(x)) {
                continue;
            }
            taken |= bit;
            for (words, x) in [&mut v1, &mut v2, &mut s, &mut m, &mut c2].into_iter().zip(all) {
                put(words, lane, x);
            }
        }
        // The others have numbers for which everything ends.
        for lane in (0..LANES).filter(|lane| taken >> lane & 1 == 0) {
            (v1[0][lane], v2[0][lane]) = (3, 1);
        }
        let [v1, v2, s, m, c2] = [&v1, &v2, &s, &m, &c2].map(|words| load(words));
        Lanes { v1, v2, s, m, c2, taken, squares, inverse }
    }

    /// k = m / v2 modulo v1, or -c2 / s, from the rows at the end of Euclid's algorithm on v1 and that divisor over 2^520, and the
    /// lanes in which it has an inverse.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    #[inline]
    fn k(&self, rows: &Rows, minus_inverse: __m512i) -> (Numbers<L>, __mmask8) {
        let minus = negative(&rows.x);
        let unit = negated(rows.x, minus);
        let mut right = _mm512_cmpeq_epi64_mask(unit[0], _mm512_set1_epi64(1));
        for limb in &unit[1..] {
            right &= _mm512_testn_epi64_mask(*limb, *limb);
        }
        let dividend = chosen(self.squares, &negated(self.c2, 0xff), &self.m);
        let (minus_m, minus_p) = (negative(&dividend), negative(&rows.p));
        let (m, p) = (negated(dividend, minus_m), negated(rows.p, minus_p));
        let mut product = times_plus(&m, &p, [_mm512_setzero_si512(); 2 * L]);
        carry(&mut product);
        let k = montgomery(product, &self.v1, minus_inverse);
        // Below 2 v1.
        let less = difference(&k, &self.v1);
        let k = chosen(negative(&less), &k, &less);
        (chosen(minus ^ minus_m ^ minus_p, &difference(&self.v1, &k), &k), right)
    }

    /// The form of the lattice that the rows of Euclid's algorithm on v1 and k span, nearly reduced.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    #[inline]
    fn form(&self, rows: &Rows, minus_inverse: __m512i) -> Product {
        let zero = _mm512_setzero_si512();
        // M = (v2 r - m y) / v1 and N = (s r + c2 y) / v1 of both rows.
        let [v2, s, c2] = [low(&self.v2), low(&self.s), low(&self.c2)];
        let minus_m = negated(low(&self.m), 0xff);
        let column = |x: &Numbers<6>, r: &Numbers<6>, z: &Numbers<6>, y: &Numbers<6>| {
            quotient(times_plus(x, r, times_plus(z, y, [zero; 6])), &self.v1, minus_inverse)
        };
        let (r0, y0, r1, y1) = (low(&rows.x), low(&rows.p), low(&rows.y), low(&rows.q));
        let (m0, n0) = (column(&v2, &r0, &minus_m, &y0), column(&s, &r0, &c2, &y0));
        let (m1, n1) = (column(&v2, &r1, &minus_m, &y1), column(&s, &r1, &c2, &y1));
        let sum = |r: &Numbers<6>, m: &Numbers<6>, y: &Numbers<6>, n: &Numbers<6>| {
            let mut out = signed_times_plus(r, m, signed_times_plus(y, n, [zero; 11]));
            carry(&mut out);
            out
        };
        let (mut a, mut c, mixed) =
            (sum(&r0, &m0, &y0, &n0), sum(&r1, &m1, &y1, &n1), sum(&r0, &m1, &y0, &n1));
        // The other mixed product differs from this one by b1 = s + m, and by its sign where the rows' orientation did.
        let mut b: Numbers<11> = array::from_fn(|i| {
            let b1 = match i {
                ..9 => _mm512_add_epi64(self.s[i], self.m[i]),
                9 => _mm512_add_epi64(signed(self.s[9]), signed(self.m[9])),
                _ => zero,
            };
            let twice = _mm512_add_epi64(mixed[i], mixed[i]);
            let (more, less) = (_mm512_add_epi64(twice, b1), _mm512_sub_epi64(twice, b1));
            _mm512_mask_blend_epi64(rows.odd, more, less)
        });
        carry(&mut b);
        reduction::reduce(&mut a, &mut b, &mut c);
        Product { a, b, c, odd: rows.odd }
    }
}
