//! The group and the proof by their textbook definitions. Slow, readable, the oracle.
//!
//! Composition is Gauss's and Dirichlet's, then comes reduction (Cohen, A Course in Computational Algebraic Number
//! Theory, algorithms 5.4.2 and 5.4.7). It shares no code with [`crate::form`]: numbers have one width that holds every
//! intermediate, and divide by long division. The proof is Wesolowski's (Efficient Verifiable Delay Functions,
//! algorithms 4 and 5), on the general code of [`crate::form`]: it uses no kernel, and is ten times as fast as the
//! textbook composition.
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "std"))]
mod prove;

use lanework_integer::Int;

use crate::discriminant::Discriminant;
use crate::form::{Form, FormError};

#[cfg(any(test, feature = "std"))]
pub use prove::prove;

/// A number that holds the square of a product of two coefficients.
type Wide = Int<72>;

/// A form, not necessarily reduced.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plain {
    a: Wide,
    b: Wide,
    c: Wide,
}

fn half(x: &Wide) -> Wide {
    x.div_floor::<72>(&Wide::from_i64(2)).0
}

fn times(x: &Wide, y: &Wide) -> Wide {
    x.times(y)
}

fn modulo(x: &Wide, y: &Wide) -> Wide {
    x.div_floor(y).1
}

/// g, u and v with u x + v y = g = gcd(x, y), g >= 0.
fn extended_gcd(x: &Wide, y: &Wide) -> (Wide, Wide, Wide) {
    let (mut r0, mut r1) = (*x, *y);
    let (mut u0, mut u1) = (Wide::ONE, Wide::ZERO);
    let (mut v0, mut v1) = (Wide::ZERO, Wide::ONE);
    while !r1.is_zero() {
        let (q, rest) = r0.div_floor(&r1);
        (r0, r1) = (r1, rest);
        (u0, u1) = (u1, u0.minus(&times(&q, &u1)));
        (v0, v1) = (v1, v0.minus(&times(&q, &v1)));
    }
    if r0.is_negative() { (-r0, -u0, -v0) } else { (r0, u0, v0) }
}

impl Plain {
    fn of(f: &Form) -> Plain {
        Plain { a: f.a().resize(), b: f.b().resize(), c: f.c().resize() }
    }

    fn reduce(mut self) -> Plain {
        loop {
            let twice = self.a << 1;
            // b = 2 a q + r with -a < r <= a.
            let (mut q, mut r) = self.b.div_floor(&twice);
            if r > self.a {
                r = r.minus(&twice);
                q = q.plus(&Wide::ONE);
            }
            self.c = self.c.minus(&half(&times(&q, &self.b.plus(&r))));
            self.b = r;
            if self.a > self.c {
                self = Plain { a: self.c, b: -self.b, c: self.a };
                continue;
            }
            if self.a == self.c && self.b.is_negative() {
                self.b = -self.b;
            }
            return self;
        }
    }

    fn checked(self, d: &Discriminant) -> Result<Form, FormError> {
        let narrow = |x: &Wide| x.try_resize().ok_or(FormError::TooLarge);
        Form::new(d, &narrow(&self.a)?, &narrow(&self.b)?)
    }
}

/// The product of two classes.
///
/// # Errors
/// If the result is not a form of this discriminant, which happens only if an argument is not.
pub fn compose(f1: &Form, f2: &Form, d: &Discriminant) -> Result<Form, FormError> {
    let (f1, f2) = (Plain::of(f1), Plain::of(f2));
    let number: Wide = d.value().resize();
    let s = half(&f1.b.plus(&f2.b));
    let n = f2.b.minus(&s);
    let (g, y1, _) = extended_gcd(&f2.a, &f1.a);
    let (g1, x2, y2) = extended_gcd(&s, &g);
    let y2 = -y2;
    let v1 = f1.a.div_floor(&g1).0;
    let v2 = f2.a.div_floor(&g1).0;
    let r = times(&times(&modulo(&y1, &v1), &modulo(&y2, &v1)), &n).minus(&times(&x2, &f2.c));
    let r = modulo(&r, &v1);
    let b = f2.b.plus(&(times(&v2, &r) << 1));
    let a = times(&v1, &v2);
    let c = times(&b, &b).minus(&number).div_exact(&(a << 2)).ok_or(FormError::WrongDiscriminant)?;
    Plain { a, b, c }.reduce().checked(d)
}

/// The square of a class.
///
/// # Errors
/// As [`compose`].
pub fn square(f: &Form, d: &Discriminant) -> Result<Form, FormError> {
    compose(f, f, d)
}
