//! The vector squaring against the plain one, on random forms and on shapes that are hard for lanes.

use lanework_cpu::{Cpu, Select};
use lanework_integer::kernels::Portable;
use lanework_integer::limbs;

use super::{Form1024, square1024};
use crate::backend::generic::nudupl;
use crate::backend::{Engine, FormLimbs};
use crate::chain::Chain;
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

/// Up to sixteen products at once against one at a time, over 20,000 of them, of every number of pairs; all but a few are
/// taken.
#[test]
fn products_side_by_side_equal_single_ones() {
    let Ok(engine) = Engine::choose(&Cpu::detect(), Select::Named("avx512")) else { return };
    for bits in [1024, 1016, 904, 776, 648, 520] {
        let d = Discriminant::from_seed(b"side by side", bits).expect("a discriminant");
        let mut chain =
            Chain::new(d.on(engine), &Form::generator(&d).expect("D is 1 modulo 8")).expect("a form");
        chain.square(1_000).expect("no fault");
        let (mut all, mut refused) = (0, 0);
        for round in 0..400 {
            let mut form = || {
                chain.square(1).expect("no fault");
                let mut form = chain.form1024().expect("a kernel's form").0;
                form.negative ^= round % 2 == 1;
                form
            };
            let mut pairs: Vec<_> = (0..round % 16 + 1).map(|_| (form(), form())).collect();
            // Some squares among them.
            pairs.iter_mut().step_by(3 + round % 5).for_each(|(x, y)| *y = *x);
            let mut ours = pairs.clone();
            // SAFETY: the engine was found on this CPU.
            let done = unsafe { super::batch::multiply(&mut ours, d.stop()) };
            for (i, ((x, y), (product, other))) in pairs.iter().zip(&ours).enumerate() {
                all += 1;
                assert!(other == y, "the second form was changed");
                if done >> i & 1 == 0 {
                    refused += 1;
                    assert!(product == x, "a form that was not multiplied was changed");
                    continue;
                }
                assert!(
                    limbs::compare(&product.b, &product.a).is_le()
                        && limbs::compare(&product.a, &product.c[..8]).is_le()
                        || product.c[8] != 0
                );
                // SAFETY: the engine was found on this CPU.
                let single = unsafe { super::adx::compose1024(x, y, d.stop()) };
                let single =
                    single.map_or_else(|| x.form().compose_generally(&y.form(), &d), |form| form.form());
                assert!(product.form() == single, "{bits} bits, pair {i} of {}", pairs.len());
            }
            assert_eq!(done >> pairs.len(), 0, "a bit without a pair");
        }
        assert!(refused * 40 < all, "{bits} bits: {refused} of {all} were refused");
    }
}

/// Squares, inverses, forms with a short coefficient and forms that lost their discriminant are refused or multiplied rightly, and
/// disturb no other pair.
#[test]
fn hard_pairs_side_by_side_disturb_no_others() {
    let Ok(engine) = Engine::choose(&Cpu::detect(), Select::Named("avx512")) else { return };
    let d = Discriminant::from_seed(b"hard pairs", 1024).expect("a discriminant");
    let mut chain = Chain::new(d.on(engine), &Form::generator(&d).expect("D is 1 modulo 8")).expect("a form");
    let mut form = || loop {
        chain.square(1).expect("no fault");
        // The first forms are too long for kernels, those after them have a short a.
        if let Some((form, _)) = chain.form1024() {
            return form;
        }
    };
    // Each with the product that it may have.
    let mut hard = vec![];
    let mut add = |x: Form1024, y: Form1024, wrong: Option<usize>| {
        let right = x.form().compose_generally(&y.form(), &d);
        let flipped = |mut form: Form1024, bit: usize| {
            let limbs = form.a.iter_mut().chain(&mut form.b).chain(&mut form.c);
            *limbs.into_iter().nth(bit / 64).expect("25 limbs") ^= 1 << (bit % 64);
            form
        };
        match wrong {
            Some(bit) => hard.extend([((flipped(x, bit), y), right.clone()), ((x, flipped(y, bit)), right)]),
            None => hard.push(((x, y), right)),
        }
    };
    let short: Vec<_> = (0..6).map(|_| form()).collect();
    for _ in 0..500 {
        form();
    }
    for short in short {
        add(short, form(), None);
        add(form(), short, None);
        add(short, short, None);
        add(short, Form1024 { negative: !short.negative, ..short }, None);
    }
    let x = form();
    add(x, x, None);
    add(x, Form1024 { negative: !x.negative, ..x }, None);
    for bit in (0..64 * 25).step_by(37) {
        add(form(), form(), Some(bit));
    }
    let mut refused = 0;
    for (n, (pair, right)) in hard.iter().enumerate() {
        // Its lane changes, but never the first: that one tells which discriminant is right.
        let at = 1 + n % 15;
        let mut pairs: Vec<_> = (0..16).map(|_| (form(), form())).collect();
        let good = pairs.clone();
        let mut done = [0; 2];
        // SAFETY: the engine was found on this CPU.
        done[0] = unsafe { super::batch::multiply(&mut pairs, d.stop()) };
        let mut with: Vec<_> = good;
        with[at] = *pair;
        // SAFETY: the engine was found on this CPU.
        done[1] = unsafe { super::batch::multiply(&mut with, d.stop()) };
        assert_eq!(done[0] & !(1 << at), done[1] & !(1 << at), "pair {n}");
        for i in (0..16).filter(|&i| i != at) {
            assert!(pairs[i] == with[i], "pair {n} disturbed pair {i}");
        }
        if done[1] >> at & 1 == 0 {
            refused += 1;
            assert!(with[at] == *pair);
        } else {
            // A coefficient that is not read may be wrong.
            assert!(with[at].0.form() == *right, "pair {n}");
        }
    }
    assert!(refused > hard.len() / 4 && refused < hard.len(), "{refused} of {} refused", hard.len());
}
