//! The S-boxes as circuits of AND, OR, XOR and AND NOT, the operations of every vector unit.
//!
//! A circuit computes S(x) ^ S(0). The missing `CONSTANT` costs no gates: see [`super::rounds`]. Inputs a to d are bits
//! 0 to 3, every further letter is one gate, and the outputs are listed from bit 0 on. The circuits come from a beam
//! search over sets of functions of four bits, guided by each output's distance in gates; the tests evaluate all of
//! them on all inputs. Gates of all eight boxes together: Z 121, A 116, B 123, C 121, D 122, Test 107.
#![forbid(unsafe_code)]

use super::plane::Plane;
use crate::sbox::{Rows, Sbox};

/// A set's circuits: box i on the bits 4i to 4i + 3.
pub(super) trait Circuits {
    /// The constant that the circuits omit: the S-boxes' values at 0, rotated left by 11 as for the other half.
    const CONSTANT: u32;
    fn s0(x: [Plane; 4]) -> [Plane; 4];
    fn s1(x: [Plane; 4]) -> [Plane; 4];
    fn s2(x: [Plane; 4]) -> [Plane; 4];
    fn s3(x: [Plane; 4]) -> [Plane; 4];
    fn s4(x: [Plane; 4]) -> [Plane; 4];
    fn s5(x: [Plane; 4]) -> [Plane; 4];
    fn s6(x: [Plane; 4]) -> [Plane; 4];
    fn s7(x: [Plane; 4]) -> [Plane; 4];
}

const fn constant(rows: &Rows) -> u32 {
    let mut word = 0;
    let mut i = 0;
    while i < 8 {
        word |= (rows[i][0] as u32) << (4 * i);
        i += 1;
    }
    word.rotate_left(11)
}

macro_rules! circuits {
    ($($set:ident = $sbox:path {
        $($name:ident($a:ident, $b:ident, $c:ident, $d:ident) { $($gate:ident = $value:expr;)* }
            => $y0:ident, $y1:ident, $y2:ident, $y3:ident;)*
    })*) => {$(
        #[doc = concat!("Circuits of `", stringify!($sbox), "`.")]
        pub(super) struct $set;

        impl Circuits for $set {
            const CONSTANT: u32 = constant($sbox.rows());
            $(
                #[inline(always)]
                fn $name([$a, $b, $c, $d]: [Plane; 4]) -> [Plane; 4] {
                    $(let $gate = $value;)*
                    [$y0, $y1, $y2, $y3]
                }
            )*
        }
    )*};
}

circuits! {
    Z = Sbox::Z {
        s0(a, b, c, d) {
            e = c ^ a; f = d | c; g = f & b; h = e ^ b; i = h & f; j = e ^ d; k = c & a; l = k | g; m = k ^ b;
            n = m & j; o = n ^ i; p = d | b; q = p ^ i; r = h & !j; s = r ^ a;
        } => l, q, o, s;
        s1(a, b, c, d) {
            e = a & !b; f = c ^ a; g = f & b; h = e ^ d; i = e | c; j = i & !g; k = i ^ d; l = h & !g;
            m = l ^ c; n = b & !c; o = d & !n; p = l | k; q = p ^ b; r = f & !l; s = r ^ o;
        } => s, m, q, j;
        s2(a, b, c, d) {
            e = b ^ a; f = c ^ a; g = d ^ b; h = d & !e; i = e & !c; j = c & !a; k = f & !i; l = k | h;
            m = g & !j; n = m ^ h; o = l & !g; p = o | i; q = a & !k; r = i | d; s = r ^ q;
        } => l, n, s, p;
        s3(a, b, c, d) {
            e = b ^ a; f = c ^ a; g = c | b; h = d ^ a; i = g & f; j = d & !e; k = j | i; l = c & !h; m = g ^ d;
            n = l ^ b; o = n ^ k; p = m | j; q = p & !l; r = p & !i; s = r ^ h;
        } => k, o, s, q;
        s4(a, b, c, d) {
            e = b ^ a; f = c & !e; g = c | b; h = g ^ e; i = g & a; j = c ^ a; k = g ^ d; l = j & b; m = j ^ d;
            n = k | i; o = n & !l; p = f | d; q = p ^ i; r = n & m; s = r | l;
        } => s, o, q, h;
        s5(a, b, c, d) {
            e = c ^ a; f = c ^ b; g = e ^ d; h = g | b; i = f | d; j = f & !g; k = j ^ b; l = h ^ e; m = i & a;
            n = h & !m; o = n | l; p = i ^ g; q = p ^ o; r = k & i; s = r ^ l;
        } => k, s, q, n;
        s6(a, b, c, d) {
            e = d ^ a; f = d ^ c; g = f | b; h = c & b; i = h | e; j = i ^ g; k = j ^ d; l = i & !a; m = f & e;
            n = m ^ g; o = m ^ b; p = o | l; q = p & i; r = l | j; s = r ^ b;
        } => q, k, s, n;
        s7(a, b, c, d) {
            e = b ^ a; f = d ^ b; g = c & !e; h = f & !g; i = f & !c; j = b & !h; k = c | a; l = k ^ d;
            m = e & !c; n = m | j; o = d & !a; p = o ^ h; q = a & !g; r = q | i; s = l | i; t = s ^ a;
        } => t, n, r, p;
    }
    CryptoProA = Sbox::CryptoProA {
        s0(a, b, c, d) {
            e = c & !a; f = d & !e; g = f ^ a; h = b & !g; i = g ^ c; j = i | h; k = j ^ c; l = j ^ d;
            m = l | i; n = m & !h; o = b & !d; p = e | b; q = p ^ l; r = m & a; s = r | o;
        } => n, k, q, s;
        s1(a, b, c, d) {
            e = d ^ b; f = e & c; g = f | b; h = g ^ c; i = h ^ a; j = e | a; k = j & i; l = j & !i; m = l ^ c;
            n = k ^ f; o = n ^ d; p = a & !e; q = p ^ i; r = c | a; s = r ^ k;
        } => q, m, o, s;
        s2(a, b, c, d) {
            e = c ^ a; f = d ^ b; g = f & e; h = c & !f; i = g | d; j = c | b; k = b ^ a; l = k ^ g; m = k & i;
            n = m | h; o = k & !h; p = j & !o; q = a & !h; r = q ^ i;
        } => n, r, p, l;
        s3(a, b, c, d) {
            e = c ^ b; f = d ^ a; g = e & !f; h = f ^ c; i = g ^ d; j = i ^ c; k = i | h; l = k ^ e; m = b & !h;
            n = m ^ i; o = n ^ l; p = n & !j; q = o ^ h; r = q ^ p;
        } => o, r, j, l;
        s4(a, b, c, d) {
            e = b ^ a; f = c ^ b; g = f & !d; h = a & !g; i = h ^ f; j = h & f; k = j ^ d; l = e & !c;
            m = l | h; n = k ^ b; o = d & b; p = i & !o; q = n & !l; r = q ^ a; s = c & !r; t = s | k;
        } => t, p, r, m;
        s5(a, b, c, d) {
            e = d ^ a; f = e | c; g = f ^ b; h = c ^ a; i = g & !h; j = i ^ e; k = g ^ d; l = k & j; m = l ^ h;
            n = m ^ k; o = m & j; p = o ^ d;
        } => n, m, p, j;
        s6(a, b, c, d) {
            e = c ^ a; f = b & !e; g = a & !f; h = g ^ d; i = h ^ b; j = d & !i; k = h & b; l = k ^ e;
            m = j & !c; n = m ^ h; o = c & !h; p = f & !d; q = p ^ c; r = l & !o; s = r ^ i;
        } => s, q, l, n;
        s7(a, b, c, d) {
            e = c ^ a; f = c & !d; g = f ^ b; h = g & e; i = h ^ d; j = g ^ c; k = i | a; l = k & !j; m = l | f;
            n = m ^ e; o = i ^ b; p = l & !a; q = p ^ n; r = o & j; s = r ^ n;
        } => m, q, s, i;
    }
    CryptoProB = Sbox::CryptoProB {
        s0(a, b, c, d) {
            e = d | b; f = d & !c; g = e ^ a; h = f ^ a; i = c ^ b; j = i & !h; k = j ^ d; l = i & e; m = k | h;
            n = m & c; o = h & g; p = o ^ d; q = n ^ l; r = q & !f; s = j | g; t = s ^ l;
        } => r, k, p, t;
        s1(a, b, c, d) {
            e = d ^ b; f = e ^ c; g = f | b; h = c | b; i = d & a; j = i ^ f; k = j & e; l = k ^ d; m = a & !l;
            n = i | c; o = n & g; p = m ^ h; q = p ^ f; r = g & !a; s = r ^ h;
        } => q, l, o, s;
        s2(a, b, c, d) {
            e = b ^ a; f = d & c; g = f | e; h = c ^ a; i = g & !h; j = f | b; k = j & a; l = d | c; m = l & !i;
            n = l ^ j; o = c & !b; p = o ^ g; q = n | k; r = q ^ d; s = d & !k; t = s ^ i;
        } => m, p, r, t;
        s3(a, b, c, d) {
            e = b ^ a; f = d | c; g = f ^ b; h = g & !e; i = h ^ d; j = i & !e; k = j ^ c; l = k | e; m = f & a;
            n = m ^ l; o = k ^ b; p = g & !j; q = p ^ c; r = m & !j; s = r | o;
        } => s, n, q, i;
        s4(a, b, c, d) {
            e = c & !b; f = b & !d; g = e | a; h = c & !d; i = h ^ a; j = i | f; k = j ^ c; l = k ^ g;
            m = l & !h; n = i & b; o = n ^ l; p = m ^ e; q = p ^ d; r = d & !b; s = r ^ g;
        } => s, q, k, o;
        s5(a, b, c, d) {
            e = a & !b; f = a & !c; g = d & !f; h = e ^ c; i = f ^ d; j = g ^ a; k = j ^ h; l = j ^ b;
            m = i & h; n = m ^ b; o = i & !l; p = o ^ a; q = n & !f; r = q | o; s = r ^ h;
        } => p, n, k, s;
        s6(a, b, c, d) {
            e = d ^ c; f = c & !d; g = f ^ a; h = c ^ b; i = e & a; j = h & g; k = h | g; l = k ^ e; m = d & !i;
            n = l | h; o = n ^ m; p = o | c; q = j ^ i; r = q ^ p; s = b & !q; t = s ^ j;
        } => r, l, o, t;
        s7(a, b, c, d) {
            e = b & !a; f = d & !b; g = a & !f; h = g ^ d; i = h | e; j = i & c; k = j ^ g; l = j | e;
            m = i ^ c; n = a & !m; o = n ^ b; p = o ^ d; q = a & !o; r = m | f; s = r & !q;
        } => l, p, k, s;
    }
    CryptoProC = Sbox::CryptoProC {
        s0(a, b, c, d) {
            e = c & a; f = a & !d; g = f ^ c; h = d & !a; i = b & !h; j = i | g; k = e | b; l = k ^ g;
            m = l ^ i; n = b & !e; o = n | h; p = d | a; q = p & j; r = j | d; s = r ^ m;
        } => o, q, s, l;
        s1(a, b, c, d) {
            e = c ^ b; f = a & !d; g = a & !e; h = d ^ b; i = h & !c; j = c & !d; k = a & !i; l = f | b;
            m = l ^ g; n = k ^ f; o = e & !f; p = o ^ i; q = m ^ j; r = q ^ n; s = j | e; t = s ^ k;
        } => t, r, m, p;
        s2(a, b, c, d) {
            e = c & !a; f = a & !c; g = c ^ b; h = e | d; i = d ^ b; j = i & h; k = a & !g; l = k | j;
            m = g & !f; n = m ^ h; o = l & !n; p = o ^ i; q = p ^ e; r = q ^ k; s = r & n; t = s ^ h;
        } => n, l, t, q;
        s3(a, b, c, d) {
            e = b & a; f = d ^ c; g = e ^ c; h = g & f; i = h ^ b; j = i & !d; k = j | a; l = k ^ g; m = l | f;
            n = m ^ j; o = n ^ a; p = k & g; q = n & !f; r = q ^ p;
        } => l, i, r, o;
        s4(a, b, c, d) {
            e = c & !b; f = d & !c; g = a & !f; h = d ^ b; i = h & !e; j = i ^ g; k = c ^ b; l = k | j;
            m = l & !i; n = l & c; o = l ^ d; p = h & a; q = p ^ n; r = n | a; s = r ^ o;
        } => j, s, m, q;
        s5(a, b, c, d) {
            e = a & !c; f = e ^ d; g = f | b; h = g ^ a; i = d ^ c; j = i & g; k = j ^ b; l = k | e; m = k ^ d;
            n = l | h; o = n ^ c; p = m & a; q = p | j; r = o | m; s = r ^ j;
        } => l, h, s, q;
        s6(a, b, c, d) {
            e = d ^ a; f = d | b; g = f & !a; h = g ^ c; i = h & !b; j = i ^ e; k = j & f; l = k & c; m = l ^ h;
            n = l | a; o = n ^ i; p = o ^ k; q = h ^ b; r = q & o; s = f & !r;
        } => p, j, m, s;
        s7(a, b, c, d) {
            e = b | a; f = d & !a; g = f ^ c; h = g & e; i = h ^ d; j = i ^ e; k = g ^ b; l = k & i; m = l ^ c;
            n = k ^ a; o = n ^ m; p = j & !o; q = p ^ k; r = l & c; s = r ^ n;
        } => s, j, q, m;
    }
    CryptoProD = Sbox::CryptoProD {
        s0(a, b, c, d) {
            e = b & !a; f = c | a; g = f & !d; h = g ^ e; i = d | b; j = i & !c; k = d ^ a; l = a & !c;
            m = k ^ b; n = j ^ d; o = a & !m; p = o | n; q = m | g; r = q & !l; s = k | e; t = s ^ j;
        } => h, t, p, r;
        s1(a, b, c, d) {
            e = d ^ a; f = d & b; g = e & !b; h = c ^ a; i = a & !d; j = i ^ b; k = h & !d; l = f ^ c;
            m = l & !g; n = m | k; o = h | g; p = o & !f; q = j & !k; r = q ^ e; s = h & !j; t = s | f;
        } => n, t, p, r;
        s2(a, b, c, d) {
            e = d ^ b; f = c & !d; g = f ^ a; h = g & e; i = h ^ c; j = i ^ e; k = g ^ d; l = g ^ b; m = k | i;
            n = m ^ b; o = k & !i; p = a & !l; q = p | o; r = l | f; s = r & m;
        } => q, j, s, n;
        s3(a, b, c, d) {
            e = c ^ a; f = e & d; g = b & !f; h = g ^ d; i = c & !a; j = i ^ g; k = j | d; l = j | a; m = h & b;
            n = k & c; o = n ^ h; p = l & !m; q = p ^ k; r = p ^ e; s = r ^ o;
        } => o, s, q, j;
        s4(a, b, c, d) {
            e = b ^ a; f = e ^ c; g = e | d; h = g ^ a; i = h | f; j = b & !f; k = i ^ d; l = k ^ h; m = h ^ c;
            n = m & k; o = c & !n; p = d & !j; q = p ^ o; r = p ^ i; s = m | k; t = s ^ e;
        } => t, q, l, r;
        s5(a, b, c, d) {
            e = c | b; f = d ^ a; g = e ^ a; h = f ^ b; i = h | g; j = i ^ f; k = d & b; l = k ^ a; m = k | h;
            n = m & e; o = l & !c; p = o ^ m; q = p ^ g; r = i & !c; s = r ^ l;
        } => s, j, n, q;
        s6(a, b, c, d) {
            e = b & !a; f = d & !e; g = f ^ c; h = b & !g; i = h ^ a; j = e ^ d; k = j ^ a; l = h | a;
            m = k & g; n = m ^ b; o = n & l; p = o ^ j; q = i & !j; r = q ^ g;
        } => i, r, n, p;
        s7(a, b, c, d) {
            e = d ^ c; f = c & !d; g = a & !f; h = g & !b; i = h ^ e; j = b & !g; k = i | b; l = k ^ j;
            m = k & !a; n = j | d; o = n ^ i; p = i & !c; q = p ^ b; r = n & c; s = r ^ m;
        } => q, o, s, l;
    }
    Test = Sbox::Test {
        s0(a, b, c, d) {
            e = d & a; f = e | c; g = f ^ b; h = g & d; i = g ^ a; j = h ^ c; k = i & !j; l = k ^ d; m = l & !g;
            n = m ^ i; o = m & a; p = o ^ j;
        } => g, l, p, n;
        s1(a, b, c, d) {
            e = b ^ a; f = e & c; g = e | c; h = d & !f; i = h ^ b; j = h ^ g; k = d & !i; l = k ^ e; m = f ^ d;
            n = b & !c; o = j & !n; p = k & j; q = p ^ m;
        } => l, i, o, q;
        s2(a, b, c, d) {
            e = b & !a; f = e ^ c; g = d ^ b; h = g ^ a; i = f ^ d; j = h & !i; k = j ^ b; l = f | d;
            m = f & !k; n = m ^ d; o = l & k; p = o ^ h;
        } => k, f, p, n;
        s3(a, b, c, d) {
            e = c ^ a; f = c & !d; g = d & !e; h = b ^ a; i = f | b; j = h | g; k = h & !g; l = k | f;
            m = j & !e; n = m ^ i; o = m & i; p = l & i; q = p ^ j; r = d ^ a; s = r ^ o;
        } => l, q, s, n;
        s4(a, b, c, d) {
            e = c ^ a; f = d & !a; g = b & !f; h = e & !d; i = h ^ b; j = g ^ d; k = c & a; l = k | g;
            m = j ^ i; n = m ^ c; o = a & !i; p = o ^ m;
        } => p, l, i, n;
        s5(a, b, c, d) {
            e = c ^ a; f = c & !a; g = f ^ b; h = g | d; i = h ^ e; j = e ^ b; k = h & c; l = j | f; m = l & h;
            n = e & !m; o = j | g; p = o ^ k; q = d ^ c; r = q ^ n;
        } => r, p, i, m;
        s6(a, b, c, d) {
            e = c ^ b; f = d ^ a; g = e ^ d; h = d & a; i = c & !h; j = f | e; k = g & f; l = k | i; m = k ^ b;
            n = h ^ b; o = n & !i; p = o | k; q = j & !g; r = q ^ i;
        } => p, r, m, l;
        s7(a, b, c, d) {
            e = b | a; f = c ^ a; g = f | d; h = b ^ a; i = d ^ b; j = f ^ e; k = g & !h; l = k ^ b; m = j & i;
            n = e & c; o = g & !n; p = d ^ a; q = p ^ m; r = k | c; s = r & !m;
        } => l, o, s, q;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entries of `rows` that the circuits of S do not compute, as (box, input).
    fn differences<S: Circuits>(rows: &Rows) -> Vec<(usize, usize)> {
        let boxes = [S::s0, S::s1, S::s2, S::s3, S::s4, S::s5, S::s6, S::s7];
        let mut wrong = Vec::new();
        for (i, (circuit, row)) in boxes.into_iter().zip(rows).enumerate() {
            // All sixteen inputs side by side.
            let out = circuit([0xaaaa, 0xcccc, 0xf0f0, 0xff00].map(Plane::splat));
            for x in 0..16 {
                let value = (0..4).fold(0, |v, j| v | (out[j].0[x % 2] >> x & 1) << j);
                let missing = S::CONSTANT.rotate_right(11) >> (4 * i) & 15;
                if value as u32 ^ missing != u32::from(row[x]) {
                    wrong.push((i, x));
                }
            }
        }
        wrong
    }

    /// The circuits compute the set, and any changed entry is found.
    fn check<S: Circuits>(sbox: Sbox) {
        assert_eq!(differences::<S>(sbox.rows()), [], "{sbox:?}");
        for (i, x) in (0..8).flat_map(|i| (0..16).map(move |x| (i, x))) {
            for flip in 1..16 {
                let mut rows = *sbox.rows();
                rows[i][x] ^= flip;
                assert_eq!(differences::<S>(&rows), [(i, x)], "{sbox:?}");
            }
        }
    }

    #[test]
    fn circuits_are_the_tables() {
        check::<Z>(Sbox::Z);
        check::<CryptoProA>(Sbox::CryptoProA);
        check::<CryptoProB>(Sbox::CryptoProB);
        check::<CryptoProC>(Sbox::CryptoProC);
        check::<CryptoProD>(Sbox::CryptoProD);
        check::<Test>(Sbox::Test);
    }
}
