//! The group's operation: Shanks' NUCOMP and NUDUPL, which compose and reduce at once.
//!
//! Composing (a1, b1, c1) and (a2, b2, c2) with g = gcd(a1, a2, s), s = (b1 + b2) / 2, m = (b1 - b2) / 2, v1 = a1 / g,
//! v2 = a2 / g gives (v1 v2, b2 + 2 v2 k, ...) for the k that solves v2 k = m and s k = -g c2 modulo v1. Its value at
//! (x, y) is, with r = x v1 + y k, equal to r M + y N, where M = (v2 r - m y) / v1 and N = (s r + g c2 y) / v1 are
//! whole numbers. Two consecutive rows of Euclid's algorithm on (v1, k), taken where remainder and cofactor have the
//! same length, are a basis in which all three coefficients are short; only a few steps of reduction are left.
//! (Jacobson and van der Poorten, Computational Aspects of NUCOMP; the formulas are rederived so that nothing is divided
//! by 4a.)
#![forbid(unsafe_code)]

use super::Form;
use super::euclid::{euclid, gcd_inverse};
use super::num::Num;
use crate::discriminant::Discriminant;

/// The operands of [`Composition::finish`].
struct Composition<'a> {
    v1: &'a Num,
    v2: &'a Num,
    k: &'a Num,
    b1: &'a Num,
    m: &'a Num,
    s: &'a Num,
    /// g c2.
    gc2: &'a Num,
    bound: &'a Num,
}

impl Composition<'_> {
    /// M and N of a row.
    fn at(&self, r: &Num, y: &Num) -> (Num, Num) {
        let n = self.s.mul(r).add(&self.gc2.mul(y)).div_exact(self.v1);
        if self.m.is_zero() && self.v1 == self.v2 {
            return (*r, n);
        }
        (self.v2.mul(r).sub(&self.m.mul(y)).div_exact(self.v1), n)
    }

    fn finish(&self) -> Form {
        let rows = euclid(self.v1, self.k, self.bound, true);
        let (r0, y0, r1, y1) = (&rows.r0, rows.cofactor_before(), &rows.r1, rows.cofactor());
        let (m0, n0) = self.at(r0, &y0);
        let (m1, n1) = self.at(r1, &y1);
        let a = r1.mul(&m1).add(&y1.mul(&n1));
        let c = r0.mul(&m0).add(&y0.mul(&n0));
        // The reversed mixed product differs by b1, its sign by the rows' parity. The same parity says whether the rows
        // reverse orientation.
        let half = r0.mul(&m1).add(&y0.mul(&n1));
        let b = half.double().add(&self.b1.neg_if(rows.odd)).neg_if(!rows.odd);
        let mut out = Form { a, b, c };
        out.reduce();
        out
    }
}

impl Form {
    /// The product without any kernel.
    pub(crate) fn compose_generally(&self, other: &Form, d: &Discriminant) -> Form {
        // a2 must be the longer one: then c2 is so short that no product with it is longer than D.
        let (f1, f2) = if self.a.compare_magnitude(&other.a).is_le() { (self, other) } else { (other, self) };
        let s = f1.b.add(&f2.b).half();
        let m = f1.b.sub(&f2.b).half();
        let (g1, y) = gcd_inverse(&f2.a.modulo(&f1.a), &f1.a);
        let ready = |v1: &Num, v2: &Num, k: &Num, gc2: &Num| {
            Composition { v1, v2, k, b1: &f1.b, m: &m, s: &s, gc2, bound: d.fourth_root() }.finish()
        };
        if g1.is_one() {
            let k = y.mul(&m).modulo(&f1.a);
            return ready(&f1.a, &f2.a, &k, &f2.c);
        }
        // x2 s + y2 g1 = g.
        let (g, x2) = gcd_inverse(&s.modulo(&g1), &g1);
        let y2 = g.sub(&x2.mul(&s)).div_exact(&g1);
        let (v1, v2) = (f1.a.div_exact(&g), f2.a.div_exact(&g));
        // Modulo v1 before each product: no intermediate is longer than the discriminant.
        let first = y2.modulo(&v1).mul(&y.modulo(&v1)).modulo(&v1).mul(&m.modulo(&v1));
        let second = x2.modulo(&v1).mul(&f2.c.modulo(&v1));
        let k = first.sub(&second).modulo(&v1);
        ready(&v1, &v2, &k, &g.mul(&f2.c))
    }

    /// The square without any kernel.
    pub(crate) fn square_generally(&self, d: &Discriminant) -> Form {
        let (g, u) = gcd_inverse(&self.b.abs().modulo(&self.a), &self.a);
        let u = u.neg_if(!self.b.is_negative());
        let ready = |v: &Num, k: &Num, gc: &Num| {
            let (m, s) = (Num::ZERO, &self.b);
            Composition { v1: v, v2: v, k, b1: s, m: &m, s, gc2: gc, bound: d.fourth_root() }.finish()
        };
        // U c must fit the store, even where a is short and c therefore long.
        let c = if self.c.len() > self.a.len() + 1 { self.c.modulo(&self.a) } else { self.c };
        if g.is_one() {
            let k = u.mul(&c).modulo(&self.a);
            return ready(&self.a, &k, &self.c);
        }
        let v = self.a.div_exact(&g);
        let k = u.modulo(&v).mul(&self.c.modulo(&v)).modulo(&v);
        ready(&v, &k, &g.mul(&self.c))
    }
}
