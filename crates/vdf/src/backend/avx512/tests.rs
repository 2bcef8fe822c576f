//! The vector squaring against the plain one, on random forms and on shapes that are hard for lanes.

use lanework_cpu::{Cpu, Select};
use lanework_integer::kernels::Portable;

use super::{Form1024, square1024};
use crate::backend::generic::nudupl;
use crate::backend::{Engine, FormLimbs};
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::form::num::Num;

fn available() -> bool {
    Engine::choose(&Cpu::detect(), Select::Named("avx512")).is_ok()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let x = (self.0 ^ self.0 >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^ x >> 32
    }
}

/// A discriminant of `bits` bits and a form of it with a given a of half that length or less. It needs no prime, since
/// choosing c, and with it D, makes b^2 + |D| = 4 a c true.
fn form(random: &mut Random, bits: usize, a_bits: usize, sparse: bool) -> Option<(Discriminant, Form)> {
    let mut number = |bits: usize| {
        let mut limbs = [0u64; 32];
        for limb in &mut limbs[..bits.div_ceil(64)] {
            *limb = match random.next() % 4 {
                0 if sparse => 0,
                1 if sparse => u64::MAX,
                _ => random.next(),
            };
        }
        limbs[(bits - 1) / 64] |= 1 << ((bits - 1) % 64);
        (bits..2048).for_each(|i| limbs[i / 64] &= !(1 << (i % 64)));
        limbs
    };
    let (a, mut b, c) = (number(a_bits), number(a_bits - 1), number(bits - a_bits - 2));
    b[0] |= 1;
    let number = |limbs: [u64; 32]| Num::from_limbs(false, &limbs);
    let mut form = Form { a: number(a), b: number(b).neg_if(random.next() & 1 != 0), c: number(c) };
    let d = form.b.square().sub(&form.a.mul(&form.c).shift_left(2));
    if !d.is_negative() || d.bits() > 1024 {
        return None;
    }
    form.reduce();
    Some((Discriminant::new(&d.to_int()).expect("negative, and 1 modulo 4"), form))
}

/// Both squares of the form, which are equal as classes and so as reduced forms; or which code refused it.
fn compare(form: &Form1024, stop: usize) -> Result<Form1024, [bool; 2]> {
    let mut plain = *form;
    let invert = |a: &_, b: &_| lanework_integer::gcd::binary::invert::<_, 8, 13>(Portable, a, b);
    let taken = nudupl::square::<_, 8, 9, 5, 13>(Portable, &mut plain, stop, invert);
    let mut ours = *form;
    // SAFETY: `available` found the features on this CPU.
    let done = unsafe { square1024(&mut ours, stop, 1) };
    if done == 0 || !taken {
        assert!(done != 0 || ours == *form, "an unsquared form was changed");
        return Err([!taken, done == 0]);
    }
    assert!(ours.form() == plain.form(), "squares of one form differ");
    Ok(ours)
}

/// Walks of 60 squarings from random forms of every length that this code serves: over 100,000 squarings.
#[test]
fn squares_equal_the_plain_ones() {
    if !available() {
        return;
    }
    let mut random = Random(5);
    let (mut taken, mut refused) = (0u64, 0u64);
    for round in 0..2_000 {
        let bits = match round % 4 {
            0 | 1 => 1024,
            2 => 1016 + (random.next() % 9) as usize,
            _ => 513 + (random.next() % 512) as usize,
        };
        let a_bits = bits / 2 - (random.next() % 40) as usize;
        let Some((d, start)) = form(&mut random, bits, a_bits, round % 3 == 0) else { continue };
        let stop = d.stop();
        let Some(mut form) = FormLimbs::of(&start) else { continue };
        for _ in 0..60 {
            match compare(&form, stop) {
                Ok(next) => {
                    form = next;
                    taken += 1;
                }
                Err([plain, ours]) => {
                    // Both refuse a common divisor of a and b, which is frequent if the discriminant has small ones.
                    refused += u64::from(plain != ours);
                    let Some(next) = FormLimbs::of(&form.form().square_generally(&d)) else { break };
                    form = next;
                }
            }
        }
    }
    assert!(taken > 100_000, "{taken} squarings compared");
    assert!(refused < taken / 1000, "{refused} refused of {taken}");
}

/// Forms with a long common run of zeros or ones, or an a much shorter than half the discriminant: they may be
/// refused, but never squared wrongly.
#[test]
fn hard_shapes_are_squared_or_refused() {
    if !available() {
        return;
    }
    let mut random = Random(9);
    let mut compared = 0;
    for round in 0..3_000usize {
        let bits = 520 + round % 505;
        let a_bits = 8 + (random.next() as usize) % (bits / 2 - 8);
        let Some((d, start)) = form(&mut random, bits, a_bits, true) else { continue };
        let stop = d.stop();
        if d.bits() <= 512 {
            continue;
        }
        let Some(form) = FormLimbs::of(&start) else { continue };
        compared += u64::from(compare(&form, stop).is_ok());
    }
    assert!(compared > 100, "{compared} compared");
}

#[test]
fn rounding_without_the_standard_library_is_the_same() {
    for eighths in -530_000..530_000 {
        let x = f64::from(eighths) / 8.0;
        assert_eq!(super::partial::nearest_by_sums(x), x.round_ties_even(), "{x}");
    }
    assert!(super::partial::nearest_by_sums(f64::NAN).is_nan());
}
