//! Buckets for odd digits, one for each magnitude.
#![forbid(unsafe_code)]

use std::ops::RangeInclusive;

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

/// The width with the fewest products for T squarings that has at most this many buckets, or the least.
pub(super) fn width(iterations: u64, most: usize) -> u32 {
    let fits = |width: &u32| *width == 2 || count(*width) <= most;
    WIDTHS.filter(fits).min_by_key(|&width| products(iterations, width)).unwrap_or(2)
}
