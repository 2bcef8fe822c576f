//! Powers, and products of two powers, which share their squarings.
#![forbid(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;

use super::Form;
use super::num::Num;
use crate::group::Group;

/// Bits of a window of signed digits: they are odd, and below 16.
const WINDOW: usize = 5;

/// The exponent in signed digits that are 0 or odd, lowest first, at most one nonzero within [`WINDOW`] places.
/// (Inverting a form costs nothing, so negative digits are free.)
fn digits(e: &Num) -> Vec<i8> {
    let bits = e.bits() + 1;
    let mut out = vec![0; bits];
    let (mut i, mut carry) = (0, 0u8);
    while i < bits {
        if u8::from(e.bit(i)) == carry {
            i += 1;
            continue;
        }
        let width = WINDOW.min(bits - i);
        let word = (0..width).fold(carry, |word, j| word + (u8::from(e.bit(i + j)) << j));
        carry = word >> (WINDOW - 1) & 1;
        out[i] = word as i8 - ((carry as i8) << WINDOW);
        i += width;
    }
    out
}

/// x, x³, x⁵ ... x¹⁵, as far as the digits need them.
fn odd_powers(x: &Form, digits: &[i8], group: Group<'_>) -> Vec<Form> {
    let highest = digits.iter().map(|digit| digit.unsigned_abs()).max().unwrap_or(0);
    let mut out = vec![x.clone()];
    if highest > 1 {
        let square = x.square(group);
        for i in 1..=usize::from(highest / 2) {
            let next = out[i - 1].compose(&square, group);
            out.push(next);
        }
    }
    out
}

/// The product of x^e over all pairs of forms and exponents; exponents are not negative.
pub(crate) fn product_of_powers(pairs: &[(&Form, &Num)], group: Group<'_>) -> Form {
    let tables: Vec<(Vec<i8>, Vec<Form>)> = pairs
        .iter()
        .map(|(x, e)| {
            let digits = digits(e);
            let powers = odd_powers(x, &digits, group);
            (digits, powers)
        })
        .collect();
    let longest = tables.iter().map(|(digits, _)| digits.len()).max().unwrap_or(0);
    let mut out: Option<Form> = None;
    // Squarings due before the next product.
    let mut due = 0;
    for i in (0..longest).rev() {
        due += 1;
        for (digits, powers) in &tables {
            let digit = digits.get(i).copied().unwrap_or(0);
            if digit == 0 {
                continue;
            }
            let factor = &powers[usize::from(digit.unsigned_abs() / 2)];
            let factor = if digit < 0 { factor.inverse() } else { factor.clone() };
            out = Some(match out {
                Some(form) => group.square_times(&form, due).compose(&factor, group),
                None => factor,
            });
            due = 0;
        }
    }
    if let Some(form) = &mut out {
        *form = group.square_times(form, due);
    }
    out.unwrap_or_else(|| Form::identity(group.discriminant()))
}
