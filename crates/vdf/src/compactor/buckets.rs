//! Buckets for odd digits, one for each magnitude. A form with a negative digit is inverted.
#![forbid(unsafe_code)]

use std::ops::RangeInclusive;

use crate::form::layout::Layout;
use crate::form::packed;
use crate::group::Group;

/// The widths. The longest has 2^16 buckets of some 200 bytes, which are emptied in less than a second.
pub(super) const WIDTHS: RangeInclusive<u32> = 2..=18;

/// Buckets of a width.
pub(super) fn count(width: u32) -> usize {
    1 << (width - 2)
}

/// The bucket of a digit.
pub(super) fn of_digit(digit: i32) -> usize {
    digit.unsigned_abs() as usize / 2
}

/// The approximate number of products of a claim: T / (w + 1) fill the buckets, and two for each empty them.
fn products(iterations: u64, width: u32) -> u64 {
    iterations / u64::from(width + 1) + 2 * count(width) as u64
}

/// The width with the fewest products for T squarings whose buckets fit the memory.
pub(super) fn width(iterations: u64, bytes: usize) -> u32 {
    let fits =
        |width: &u32| *width == 2 || count(*width).saturating_mul(size_of::<Option<Layout>>()) <= bytes;
    WIDTHS.filter(fits).min_by_key(|&width| products(iterations, width)).unwrap_or(2)
}

/// A form does not have the discriminant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Corrupted;

/// The buckets of one claim, from `low` on.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    low: usize,
    held: Vec<Option<Layout>>,
}

impl Buckets {
    pub(super) fn new(low: usize, held: Vec<Option<Layout>>) -> Buckets {
        Buckets { low, held }
    }

    /// Appends their contents, packed in `limbs` limbs a number; an empty bucket gives zeros.
    pub(super) fn pack(&self, limbs: usize, out: &mut Vec<u64>) {
        for bucket in &self.held {
            match bucket.as_ref().map(Layout::parts) {
                Some((a, b, negative, _)) => packed::append(limbs, a, b, negative, out),
                None => out.resize(out.len() + 2 * limbs, 0),
            }
        }
    }

    /// Multiplies a form into its digit's bucket.
    pub(super) fn add(&mut self, digit: i32, form: Layout, group: Group<'_>) -> Result<(), Corrupted> {
        let form = if digit < 0 { form.inverse() } else { form };
        let bucket = &mut self.held[of_digit(digit) - self.low];
        *bucket = Some(product(bucket.take(), &form, group)?);
        Ok(())
    }

    /// The product of every bucket to the power of its digit; `None` if all are empty.
    pub(super) fn empty(self, group: Group<'_>) -> Result<Option<Layout>, Corrupted> {
        // Every bucket is multiplied into a running product from the highest down, and the running products together
        // hold bucket low + i exactly i times.
        let (mut running, mut out): (Option<Layout>, Option<Layout>) = (None, None);
        for (i, bucket) in self.held.into_iter().enumerate().rev() {
            if let Some(form) = bucket {
                running = Some(product(running, &form, group)?);
            }
            if let Some(running) = running.as_ref().filter(|_| i > 0) {
                out = Some(product(out, running, group)?);
            }
        }
        let Some(running) = running else { return Ok(None) };
        // Bucket i belongs to digit 2 i + 1.
        let (bits, form) = (group.discriminant().bits(), running.form(group).ok_or(Corrupted)?);
        let rest = Layout::of(form.power(2 * self.low as u64 + 1, group), bits);
        match out {
            Some(out) => out
                .compose(&out, group)
                .and_then(|twice| twice.compose(&rest, group))
                .map(Some)
                .ok_or(Corrupted),
            None => Ok(Some(rest)),
        }
    }
}

/// x y, or y if x is missing.
pub(super) fn product(x: Option<Layout>, y: &Layout, group: Group<'_>) -> Result<Layout, Corrupted> {
    x.map_or_else(|| Ok(y.clone()), |x| x.compose(y, group).ok_or(Corrupted))
}
