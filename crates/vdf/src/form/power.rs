//! Powers, and products of two powers, which share their squarings.
#![forbid(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;

use super::Form;
use super::layout::Layout;
use super::num::Num;
use crate::backend::BESIDE;
use crate::group::{self, Group};

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

/// Bits of a window where products are side by side: all cases have their products at the same places.
const FIXED: usize = 4;

/// The exponent in digits from -8 to 7 to the base 16, lowest first.
fn fixed_digits(e: &Num) -> Vec<i8> {
    let mut carry = 0;
    let digit = |at: usize| {
        let digit = (0..FIXED).fold(carry, |word, j| word + (i8::from(e.bit(at + j)) << j));
        carry = i8::from(digit >= 1 << (FIXED - 1));
        digit - (carry << FIXED)
    };
    // One bit more than there are, since a digit of 7 at the top may have a carry to take.
    (0..e.bits() + 2).step_by(FIXED).map(digit).collect()
}

/// [`product_of_powers`] of two forms in each case's group, side by side where that is faster and the groups have one backend.
pub(crate) fn products_of_powers(cases: &[(Group<'_>, [(&Form, &Num); 2])]) -> Vec<Form> {
    let kind = |group: Group<'_>| (group.discriminant().bits(), group.engine().name());
    let products = |cases: &[(Group<'_>, [(&Form, &Num); 2])]| {
        let alike = cases.iter().all(|&(group, _)| kind(group) == kind(cases[0].0));
        let beside = if alike && cases[0].0.multiplies(cases.len()) { side_by_side(cases) } else { None };
        beside
            .unwrap_or_else(|| cases.iter().map(|(group, pairs)| product_of_powers(pairs, *group)).collect())
    };
    cases.chunks(BESIDE).flat_map(products).collect()
}

/// `None` if a form is found not to have its group's discriminant.
fn side_by_side(cases: &[(Group<'_>, [(&Form, &Num); 2])]) -> Option<Vec<Form>> {
    let group = |i: usize| cases[i].0;
    let bits = group(0).discriminant().bits();
    // x, x² ... x⁸ of each first form, and of each second.
    let table = |k: usize| {
        let first: Vec<_> =
            cases.iter().map(|(_, pairs)| Some(Layout::of(pairs[k].0.clone(), bits))).collect();
        let mut powers = vec![first.clone()];
        for i in 1..1 << (FIXED - 1) {
            let mut next = powers[i - 1].clone();
            group::gather(&mut next, first.clone(), group)?;
            powers.push(next);
        }
        Some(powers)
    };
    let tables = [table(0)?, table(1)?];
    let digits: Vec<[Vec<i8>; 2]> =
        cases.iter().map(|(_, pairs)| pairs.map(|(_, e)| fixed_digits(e))).collect();
    let longest = digits.iter().flatten().map(Vec::len).max().unwrap_or(0);
    let mut out = vec![None; cases.len()];
    for place in (0..longest).rev() {
        for _ in 0..FIXED {
            let same = out.clone();
            group::gather(&mut out, same, group)?;
        }
        for (k, powers) in tables.iter().enumerate() {
            let factor = |i: usize| {
                let digit = digits[i][k].get(place).copied().filter(|&digit| digit != 0)?;
                let form = powers[usize::from(digit.unsigned_abs()) - 1][i].clone()?;
                Some(if digit < 0 { form.inverse() } else { form })
            };
            group::gather(&mut out, (0..cases.len()).map(factor).collect(), group)?;
        }
    }
    let form = |(i, product): (usize, Option<Layout>)| match product {
        Some(product) => product.form(group(i)),
        None => Some(Form::identity(group(i).discriminant())),
    };
    out.into_iter().enumerate().map(form).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Engine;
    use crate::discriminant::Discriminant;
    use lanework_cpu::Cpu;

    /// Of numbers of every length up to 300 bits: all ones, whose digits all carry, and mixed ones.
    #[test]
    fn fixed_digits_make_up_the_exponent() {
        for bits in 0..300 {
            let ones = Num::from_u64(1).shift_left(bits).sub(&Num::from_u64(1));
            let carried = ones.sub(&Num::from_u64(7).shift_left(bits / 8 * 4));
            for e in [ones, carried.abs(), ones.div_rem(&Num::from_u64(11)).0] {
                let mut sum = Num::ZERO;
                for &digit in fixed_digits(&e).iter().rev() {
                    assert!((-8..8).contains(&digit));
                    let digit = Num::from_limbs(digit < 0, &[u64::from(digit.unsigned_abs())]);
                    sum = sum.shift_left(FIXED).add(&digit);
                }
                assert!(sum == e, "{bits} bits");
            }
        }
    }

    /// Random exponents of about the length of a challenge, and forms that go on from the results.
    #[test]
    fn long_powers_side_by_side_are_powers() {
        let engine = Engine::best();
        let groups: Vec<Discriminant> =
            (0..16u8).map(|i| Discriminant::from_seed(&[i, 2], 1024).expect("a discriminant")).collect();
        let start = |d: &Discriminant| {
            Form::generator(d).expect("D is 1 modulo 8").power(0x1234_5678_9abc, d.on(engine))
        };
        let mut forms: Vec<[Form; 2]> =
            groups.iter().map(|d| [start(d), start(d).square(d.on(engine))]).collect();
        let mut seed = 1u64;
        let mut exponent = |bits: usize| {
            let mut limbs = [0; 5];
            for limb in &mut limbs {
                seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                *limb = seed ^ seed >> 31;
            }
            Num::from_limbs(false, &limbs).div_rem(&Num::from_u64(1).shift_left(bits)).1
        };
        for round in 0..4 {
            let exponents: Vec<[Num; 2]> =
                (0..16).map(|i| [exponent(264), exponent(255 + (round + i) % 10)]).collect();
            let cases: Vec<_> = (0..16)
                .map(|i| {
                    let ([x, y], [e, f]) = (&forms[i], &exponents[i]);
                    (groups[i].on(engine), [(x, e), (y, f)])
                })
                .collect();
            let single: Vec<_> =
                cases.iter().map(|(group, pairs)| product_of_powers(pairs, *group)).collect();
            assert!(side_by_side(&cases) == Some(single.clone()), "round {round}");
            for (forms, product) in forms.iter_mut().zip(single) {
                *forms = [product, forms[0].clone()];
            }
        }
    }

    /// Cases of different groups and exponents, among them 0, 1 and long ones, side by side and one at a time.
    #[test]
    fn powers_side_by_side_are_powers() {
        let groups: Vec<Discriminant> =
            (0..5u8).map(|i| Discriminant::from_seed(&[i, 1], 1024).expect("a discriminant")).collect();
        for engine in Engine::available(&Cpu::detect()) {
            let forms: Vec<_> = groups
                .iter()
                .map(|d| {
                    Form::generator(d).expect("D is 1 modulo 8").power(0xfedc_ba98_7654_3210, d.on(engine))
                })
                .collect();
            let others: Vec<_> =
                groups.iter().zip(&forms).map(|(d, form)| form.power(77, d.on(engine)).inverse()).collect();
            let exponents: Vec<_> =
                [&[][..], &[1], &[7], &[8], &[0x8888_8888], &[u64::MAX; 4], &[3, 0, 0, 0, 255]]
                    .map(|limbs| Num::from_limbs(false, limbs))
                    .into();
            for count in [1, 4, 17] {
                let case = |i: usize| {
                    let (x, y) = (&exponents[i % 7], &exponents[(i / 2 + 3) % 7]);
                    (groups[i % 5].on(engine), [(&forms[i % 5], x), (&others[i % 5], y)])
                };
                let cases: Vec<_> = (0..count).map(case).collect();
                let single: Vec<_> =
                    cases.iter().map(|(group, pairs)| product_of_powers(pairs, *group)).collect();
                assert!(side_by_side(&cases) == Some(single.clone()), "{count} cases, {}", engine.name());
                assert!(products_of_powers(&cases) == single, "{count} cases, {}", engine.name());
            }
        }
    }
}
