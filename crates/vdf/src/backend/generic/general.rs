//! Squaring and reduction for any form: what the fast code falls back on. Slow, and short.
#![forbid(unsafe_code)]

use lanework_integer::{Int, Uint};

/// Room for the square of a product of two numbers of half the longest discriminant, and signs.
type Wide = Int<72>;

/// A form of any shape; numbers of up to 2,048 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct General {
    pub(crate) a: Wide,
    pub(crate) b: Wide,
    pub(crate) c: Wide,
}

/// g = gcd(a, b) and v with v b = g modulo a; a > 0.
fn cofactor(a: &Wide, b: &Wide) -> (Wide, Wide) {
    let (mut x, mut y) = (*a, b.div_floor(a).1);
    let (mut u, mut v) = (Wide::ZERO, Wide::ONE);
    while !y.is_zero() {
        let (q, rest) = x.div_floor(&y);
        (x, y) = (y, rest);
        let next = u.minus(&q.times(&v));
        (u, v) = (v, next);
    }
    (x, u)
}

impl General {
    /// The reduced form of the class.
    pub(crate) fn reduced(mut self) -> General {
        loop {
            // -a < b <= a.
            let two = self.a << 1;
            let (q, rest) = self.b.plus(&self.a.minus(&Wide::ONE)).div_floor(&two);
            let b = rest.minus(&self.a.minus(&Wide::ONE));
            let half = Int::new(self.b.plus(&b).is_negative(), *self.b.plus(&b).magnitude() >> 1);
            self.c = self.c.minus(&q.times(&half));
            self.b = b;
            if self.a > self.c {
                (self.a, self.c) = (self.c, self.a);
                self.b = -self.b;
                continue;
            }
            if self.a == self.c && self.b.is_negative() {
                self.b = -self.b;
            }
            return self;
        }
    }

    /// The square, reduced, under the discriminant -`magnitude`; nothing if this is not the form's.
    pub(crate) fn square(&self, magnitude: &Uint<32>) -> Option<General> {
        let (b, product): (Wide, Wide) = (self.b.times(&self.b), self.a.times(&self.c));
        let magnitude: Wide = Int::new(false, magnitude.resize());
        if b.plus(&magnitude) != product << 2 {
            return None;
        }
        let (g, v) = cofactor(&self.a, &self.b);
        let a = self.a.div_exact(&g)?;
        let product: Wide = self.c.times(&v);
        let k = (-product).div_floor(&a).1;
        let step: Wide = a.times(&k);
        let b = self.b.plus(&(step << 1));
        let a: Wide = a.times(&a);
        let square: Wide = b.times(&b);
        let over = square.plus(&magnitude);
        let c = over.div_exact(&(a << 2))?;
        Some(General { a, b, c }.reduced())
    }
}
