//! A class group on a backend, and its operation: by kernels or in machine words where a form has their
//! shape, else by the general code.
#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;

use lanework_integer::limbs;

use crate::backend::{BESIDE, Engine, FormLimbs};
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::form::layout::Layout;
use crate::form::num::Num;
use crate::form::power::product_of_powers;
use crate::form::words;
use crate::prime;

/// A discriminant, and the backend whose kernels compute with its forms. All forms passed to it must have the
/// discriminant.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    discriminant: &'a Discriminant,
    engine: Engine,
}

/// The group on the fastest backend of this CPU; each call looks it up.
impl<'a> From<&'a Discriminant> for Group<'a> {
    fn from(discriminant: &'a Discriminant) -> Group<'a> {
        Group::new(discriminant, Engine::best())
    }
}

/// Products of shorter discriminants are left to the general code, down to those of `form::words`.
const LEAST_BITS: usize = 200;
/// The most bits by which c may exceed half the discriminant's length; every number of a kernel then fits.
const IMBALANCE: usize = 48;

impl<'a> Group<'a> {
    /// The group of a discriminant on a backend; the same as [`Discriminant::on`].
    #[must_use]
    pub fn new(discriminant: &'a Discriminant, engine: Engine) -> Group<'a> {
        Group { discriminant, engine }
    }

    /// The discriminant.
    #[must_use]
    pub fn discriminant(self) -> &'a Discriminant {
        self.discriminant
    }

    /// The backend.
    #[must_use]
    pub fn engine(self) -> Engine {
        self.engine
    }

    /// [`Discriminant::is_prime`] by this backend.
    #[must_use]
    pub fn is_prime(self) -> bool {
        prime::is_prime_on(self.engine, self.discriminant.number().magnitude())
    }

    /// The form squared n times.
    pub(crate) fn square_times(self, x: &Form, n: u64) -> Form {
        let (mut out, mut left) = (x.clone(), n);
        while left > 0 {
            let squared = Layout::limbs(&out, self.discriminant.bits()).and_then(|mut form| {
                let done = form.square(self, left);
                (done > 0).then(|| (form.unreduced(), done))
            });
            let done;
            (out, done) = squared.unwrap_or_else(|| (out.square_generally(self.discriminant), 1));
            out.reduce();
            left -= done;
        }
        out
    }

    /// Whether the kernels take a form whose last coefficient has this many bits.
    fn fits(self, c: usize) -> bool {
        let bits = self.discriminant.bits();
        bits >= LEAST_BITS && c <= bits / 2 + IMBALANCE
    }

    /// The product, if a kernel finds it.
    fn product(self, x: &Form, y: &Form) -> Option<Form> {
        let bits = self.discriminant.bits();
        let mut z = self.kernel_product(&Layout::limbs(x, bits)?, &Layout::limbs(y, bits)?)?.unreduced();
        z.reduce();
        Some(z)
    }

    /// The product, if a kernel finds it, as the kernel leaves it.
    pub(crate) fn kernel_product(self, x: &Layout, y: &Layout) -> Option<Layout> {
        let (d, engine, stop) = (self.discriminant, self.engine, self.discriminant.stop());
        match (x, y) {
            (Layout::Form512(x), Layout::Form512(y)) if d.bits() <= words::MAX_BITS => {
                words::compose(x, y, d).map(Layout::Form512)
            }
            _ if ![x, y].iter().all(|form| self.fits(limbs::bits(form.parts().3))) => None,
            (Layout::Form512(x), Layout::Form512(y)) => engine.compose512(x, y, stop).map(Layout::Form512),
            (Layout::Form1024(x), Layout::Form1024(y)) => {
                engine.compose1024(x, y, stop).map(Layout::Form1024)
            }
            (Layout::Form2048(x), Layout::Form2048(y)) => {
                engine.compose2048(x, y, stop).map(Box::new).map(Layout::Form2048)
            }
            _ => None,
        }
    }
}

impl Group<'_> {
    /// Whether products of so many forms are faster side by side.
    pub(crate) fn multiplies(self, forms: usize) -> bool {
        (513..=1024).contains(&self.discriminant.bits()) && forms >= self.engine.worthwhile
    }
}

/// Multiplies the first form of each pair by the second in that pair's group, several at once where a kernel can; `None` as of
/// [`Layout::compose`]. The groups have one engine, and discriminants of one length.
pub(crate) fn multiply<'a>(pairs: &mut [(Layout, Layout)], group: impl Fn(usize) -> Group<'a>) -> Option<()> {
    for (n, pairs) in pairs.chunks_mut(BESIDE).enumerate() {
        let first = group(n * BESIDE);
        let (mut places, mut forms) = (Vec::with_capacity(BESIDE), Vec::with_capacity(BESIDE));
        for (i, pair) in pairs.iter().enumerate() {
            if let (Layout::Form1024(x), Layout::Form1024(y)) = pair
                && [x, y].iter().all(|form| first.fits(limbs::bits(&form.c)))
            {
                places.push(i);
                forms.push((*x, *y));
            }
        }
        let done = if forms.is_empty() {
            0
        } else {
            first.engine.multiply1024(&mut forms, first.discriminant.stop())
        };
        let mut left = [true; BESIDE];
        for (n, (i, (product, _))) in places.into_iter().zip(forms).enumerate() {
            if done >> n & 1 == 1 {
                pairs[i].0 = Layout::Form1024(product);
                left[i] = false;
            }
        }
        for (i, (x, y)) in pairs.iter_mut().enumerate().filter(|&(i, _)| left[i]) {
            *x = x.compose(y, group(n * BESIDE + i))?;
        }
    }
    Some(())
}

/// Multiplies each form of `from`, if there is one, into the one at the same place, if there is one; as [`multiply`].
pub(crate) fn gather<'a>(
    into: &mut [Option<Layout>],
    from: Vec<Option<Layout>>,
    group: impl Fn(usize) -> Group<'a>,
) -> Option<()> {
    let (mut places, mut pairs) = (Vec::with_capacity(into.len()), Vec::with_capacity(into.len()));
    for (place, form) in from.into_iter().enumerate() {
        let Some(form) = form else { continue };
        match into[place].take() {
            Some(x) => {
                places.push(place);
                pairs.push((x, form));
            }
            None => into[place] = Some(form),
        }
    }
    multiply(&mut pairs, |i| group(places[i]))?;
    for (place, (product, _)) in places.into_iter().zip(pairs) {
        into[place] = Some(product);
    }
    Some(())
}

impl Form {
    /// The product of two classes.
    #[must_use]
    pub fn compose<'a>(&self, other: &Form, group: impl Into<Group<'a>>) -> Form {
        let group = group.into();
        group.product(self, other).unwrap_or_else(|| self.compose_generally(other, group.discriminant))
    }

    /// The square of a class.
    #[must_use]
    pub fn square<'a>(&self, group: impl Into<Group<'a>>) -> Form {
        group.into().square_times(self, 1)
    }

    /// The power x^e.
    #[must_use]
    pub fn power<'a>(&self, e: u64, group: impl Into<Group<'a>>) -> Form {
        product_of_powers(&[(self, &Num::from_u64(e))], group.into())
    }
}

impl<const N: usize, const C: usize> FormLimbs<N, C> {
    /// A form in this layout, if its coefficients fit.
    pub(crate) fn of(form: &Form) -> Option<FormLimbs<N, C>> {
        fn limbs<const K: usize>(x: &Num) -> Option<[u64; K]> {
            let mut out = [0; K];
            out.get_mut(..x.len())?.copy_from_slice(x.magnitude());
            Some(out)
        }
        Some(FormLimbs {
            a: limbs(&form.a)?,
            b: limbs(&form.b)?,
            negative: form.b.is_negative(),
            c: limbs(&form.c)?,
        })
    }

    /// The form, reduced. It must have a negative discriminant, or reduction may not end.
    #[cfg(test)]
    pub(crate) fn form(&self) -> Form {
        let mut out = self.unreduced();
        out.reduce();
        out
    }

    pub(crate) fn unreduced(&self) -> Form {
        Form {
            a: Num::from_limbs(false, &self.a),
            b: Num::from_limbs(self.negative, &self.b),
            c: Num::from_limbs(false, &self.c),
        }
    }
}
