//! A form as the kernels take it, for chains and buckets.
#![forbid(unsafe_code)]

use alloc::boxed::Box;

#[cfg(any(test, feature = "std"))]
use super::packed;
use super::{Form, words};
use crate::backend::{Form512, Form1024, Form2048, FormLimbs};
use crate::group::Group;

/// A form in the layout of the kernels for its discriminant's length.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    Form512(Form512),
    Form1024(Form1024),
    Form2048(Box<Form2048>),
    /// A shape that only the general code takes; the next step tries a kernel again.
    General(Box<Form>),
}

impl Layout {
    /// Bytes of a form with its place, but for the rare shapes that only the general code takes.
    #[cfg(any(test, feature = "std"))]
    pub(crate) fn bytes(bits: usize) -> usize {
        size_of::<(usize, Layout)>() + if bits > 1024 { size_of::<Form2048>() } else { 0 }
    }

    /// The form as the kernels take it, if it fits.
    pub(crate) fn limbs(form: &Form, bits: usize) -> Option<Layout> {
        match bits {
            ..=512 => FormLimbs::of(form).map(Layout::Form512),
            513..=1024 => FormLimbs::of(form).map(Layout::Form1024),
            _ => FormLimbs::of(form).map(Box::new).map(Layout::Form2048),
        }
    }

    /// The form as the kernels take it, or unchanged.
    pub(crate) fn of(form: Form, bits: usize) -> Layout {
        Layout::limbs(&form, bits).unwrap_or_else(|| Layout::General(Box::new(form)))
    }

    /// Squares up to n > 0 times in place, and returns how often. If that is less than n, the general code must do the
    /// next squaring.
    pub(crate) fn square(&mut self, group: Group<'_>, n: u64) -> u64 {
        let (d, engine) = (group.discriminant(), group.engine());
        match self {
            Layout::Form512(form) if d.bits() <= words::MAX_BITS => words::square(form, d, n),
            Layout::Form512(form) => engine.square512(form, d.stop(), n),
            Layout::Form1024(form) => engine.square1024(form, d.stop(), n),
            Layout::Form2048(form) => engine.square2048(form, d.stop(), n),
            Layout::General(_) => 0,
        }
    }

    pub(crate) fn unreduced(&self) -> Form {
        match self {
            Layout::Form512(form) => form.unreduced(),
            Layout::Form1024(form) => form.unreduced(),
            Layout::Form2048(form) => form.unreduced(),
            Layout::General(form) => Form::clone(form),
        }
    }

    /// a, |b|, whether b is negative, and c.
    pub(crate) fn parts(&self) -> (&[u64], &[u64], bool, &[u64]) {
        match self {
            Layout::Form512(form) => (&form.a, &form.b, form.negative, &form.c),
            Layout::Form1024(form) => (&form.a, &form.b, form.negative, &form.c),
            Layout::Form2048(form) => (&form.a, &form.b, form.negative, &form.c),
            Layout::General(form) => {
                (form.a.magnitude(), form.b.magnitude(), form.b.is_negative(), form.c.magnitude())
            }
        }
    }
}

impl Layout {
    /// The inverse.
    pub(crate) fn inverse(mut self) -> Layout {
        match &mut self {
            Layout::Form512(form) => form.negative ^= true,
            Layout::Form1024(form) => form.negative ^= true,
            Layout::Form2048(form) => form.negative ^= true,
            Layout::General(form) => **form = form.inverse(),
        }
        self
    }

    /// A packed form that kernels left; `None` if it does not have the group's discriminant.
    #[cfg(any(test, feature = "std"))]
    pub(crate) fn unpacked(packed: &[u64], group: Group<'_>) -> Option<Layout> {
        let d = group.discriminant();
        let form = match d.bits() {
            ..=512 => packed::limbs_of::<4, 5, 6>(d, packed).map(Layout::Form512),
            513..=1024 => packed::limbs_of::<8, 9, 10>(d, packed).map(Layout::Form1024),
            _ => packed::limbs_of::<16, 17, 18>(d, packed).map(|form| Layout::Form2048(Box::new(form))),
        };
        form.or_else(|| packed::unpack(d, packed).ok().map(|form| Layout::of(form, d.bits())))
    }

    /// The form, reduced; `None` if it does not have the group's discriminant.
    pub(crate) fn form(&self, group: Group<'_>) -> Option<Form> {
        let mut form = self.unreduced();
        // Checked before the reduction, which may not end for a form of another discriminant.
        form.has_discriminant(group.discriminant()).then(|| {
            form.reduce();
            form
        })
    }

    /// The product; `None` if a form is found not to have the group's discriminant. Only the general code checks that.
    pub(crate) fn compose(&self, other: &Layout, group: Group<'_>) -> Option<Layout> {
        if let Some(product) = group.kernel_product(self, other) {
            return Some(product);
        }
        let product = self.form(group)?.compose_generally(&other.form(group)?, group.discriminant());
        Some(Layout::of(product, group.discriminant().bits()))
    }
}
