//! The product of many forms, each to the power of a small number: a bucket for each number gathers the forms with that
//! power, and at the end the buckets are multiplied together. Products that do not depend on each other are computed side by
//! side.
#![forbid(unsafe_code)]

use crate::backend::BESIDE;
use crate::form::Form;
use crate::form::layout::Layout;
use crate::form::packed;
use crate::group::{Group, gather, multiply};

/// Forms that wait until [`BESIDE`] of them have different buckets, at most.
pub(crate) const WAITING: usize = 4 * BESIDE;

/// Why there is no product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// It was stopped.
    Stopped,
    /// A form does not have the discriminant.
    Corrupted,
}

/// Told how many products follow; returns whether to go on.
pub(crate) type Tick<'a> = dyn FnMut(u64) -> bool + 'a;

/// A range of buckets.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    held: Vec<Option<Layout>>,
    /// Forms on their way to a bucket that already has some, up to the capacity.
    waiting: Vec<(usize, Layout)>,
}

impl Buckets {
    /// With these contents; at most `waiting` forms wait, which is 1 or more.
    pub(crate) fn new(held: Vec<Option<Layout>>, waiting: usize) -> Buckets {
        Buckets { held, waiting: Vec::with_capacity(waiting) }
    }

    /// Multiplies a form into a bucket, now or later.
    pub(crate) fn add(&mut self, bucket: usize, form: Layout, group: Group<'_>) -> Result<(), Halt> {
        if self.held[bucket].is_none() {
            self.held[bucket] = Some(form);
            return Ok(());
        }
        self.waiting.push((bucket, form));
        if self.waiting.len() == self.waiting.capacity() { self.multiply(group) } else { Ok(()) }
    }

    /// Multiplies waiting forms with different buckets, the earliest first.
    fn multiply(&mut self, group: Group<'_>) -> Result<(), Halt> {
        let (mut places, mut pairs) = (Vec::with_capacity(BESIDE), Vec::with_capacity(BESIDE));
        let held = &mut self.held;
        let taken = |&mut (bucket, ref form): &mut (usize, Layout)| {
            let held = if places.len() < BESIDE { held[bucket].take() } else { None };
            let Some(held) = held else { return false };
            places.push(bucket);
            pairs.push((held, form.clone()));
            true
        };
        self.waiting.extract_if(.., taken).for_each(drop);
        multiply(&mut pairs, |_| group).ok_or(Halt::Corrupted)?;
        for (bucket, (product, _)) in places.into_iter().zip(pairs) {
            self.held[bucket] = Some(product);
        }
        Ok(())
    }

    /// Multiplies all waiting forms into their buckets.
    fn settle(&mut self, group: Group<'_>) -> Result<(), Halt> {
        while !self.waiting.is_empty() {
            self.multiply(group)?;
        }
        Ok(())
    }

    /// Appends the contents, packed in `limbs` limbs a number; an empty bucket gives zeros.
    pub(crate) fn pack(&mut self, limbs: usize, group: Group<'_>, out: &mut Vec<u64>) -> Result<(), Halt> {
        self.settle(group)?;
        for bucket in &self.held {
            match bucket.as_ref().map(Layout::parts) {
                Some((a, b, negative, _)) => packed::append(limbs, a, b, negative, out),
                None => out.resize(out.len() + 2 * limbs, 0),
            }
        }
        Ok(())
    }

    /// The product of bucket i to the power `first` + i `step`, over all i; `None` if all buckets are empty.
    pub(crate) fn empty(
        mut self,
        (first, step): (u64, u64),
        group: Group<'_>,
        tick: &mut Tick<'_>,
    ) -> Result<Option<Form>, Halt> {
        self.settle(group)?;
        let (sum, weighted) = sums(self.held, group, tick)?;
        let power = |form: Option<Layout>, e: u64| {
            form.map(|form| Ok(form.form(group).ok_or(Halt::Corrupted)?.power(e, group))).transpose()
        };
        let (sum, weighted) = (power(sum, first)?, power(weighted, step)?);
        Ok(match (sum, weighted) {
            (Some(sum), Some(weighted)) => Some(sum.compose(&weighted, group)),
            (sum, _) => sum,
        })
    }
}

/// The product of all forms, and that of form i to the power i.
fn sums(
    mut held: Vec<Option<Layout>>,
    group: Group<'_>,
    tick: &mut Tick<'_>,
) -> Result<(Option<Layout>, Option<Layout>), Halt> {
    let one = |_| group;
    // Equal parts, side by side. In each, every form is multiplied into a running product from the highest down; the
    // running products before the last hold form i exactly i times.
    let parts = if held.len() > BESIDE { BESIDE } else { 1 };
    let length = held.len().div_ceil(parts);
    let (mut running, mut weighted) = (vec![None; parts], vec![None; parts]);
    for i in (0..length).rev() {
        let row = (0..parts).map(|part| held.get_mut(part * length + i).and_then(Option::take)).collect();
        gather(&mut running, row, one).ok_or(Halt::Corrupted)?;
        if i > 0 {
            gather(&mut weighted, running.clone(), one).ok_or(Halt::Corrupted)?;
        }
        if !tick(2 * parts as u64) {
            return Err(Halt::Stopped);
        }
    }
    let mut all = vec![None];
    for form in weighted {
        gather(&mut all, vec![form], one).ok_or(Halt::Corrupted)?;
    }
    if parts == 1 {
        return Ok((running.remove(0), all.remove(0)));
    }
    // Form i of part j is form j length + i.
    let (sum, by_part) = sums(running, group, tick)?;
    if let Some(by_part) = by_part {
        let form = by_part.form(group).ok_or(Halt::Corrupted)?.power(length as u64, group);
        let form = Layout::of(form, group.discriminant().bits());
        gather(&mut all, vec![Some(form)], one).ok_or(Halt::Corrupted)?;
    }
    Ok((sum, all.remove(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Engine;
    use crate::chain::Chain;
    use crate::discriminant::Discriminant;
    use lanework_cpu::Cpu;

    /// Forms in buckets, with many in one and some in none, against powers one by one; on every backend, in every layout.
    #[test]
    fn buckets_make_the_product_of_powers() {
        let engines: Vec<_> = Engine::available(&Cpu::detect()).collect();
        let cases = [64, 400, 1024, 1200]
            .into_iter()
            .flat_map(|bits| engines.iter().map(move |&engine| (bits, engine)));
        for (bits, engine) in cases {
            let d = Discriminant::from_seed(b"buckets", bits).expect("a discriminant");
            let group = d.on(engine);
            let mut chain =
                Chain::new(group, &Form::generator(&d).expect("D is 1 modulo 8")).expect("a form");
            for (count, forms, first, step, waiting) in
                [(1, 3, 1, 1, 1), (5, 9, 1, 2, WAITING), (40, 150, 7, 1, WAITING), (70, 60, 9, 2, 5)]
            {
                let mut buckets = Buckets::new(vec![None; count], waiting);
                let mut expected = Form::identity(&d);
                for n in 0..forms {
                    chain.square(1).expect("no fault");
                    let bucket = if n % 3 == 0 { count - 1 } else { n * n % count };
                    buckets.add(bucket, chain.layout().clone(), group).expect("a form of the group");
                    let form = chain.form().expect("no fault").power(first + bucket as u64 * step, group);
                    expected = expected.compose(&form, group);
                    assert_eq!(buckets.waiting.capacity(), waiting, "more forms wait");
                }
                let mut products = 0;
                let product = buckets.empty((first, step), group, &mut |n| {
                    products += n;
                    true
                });
                assert_eq!(product, Ok(Some(expected)), "{bits} bits, {count} buckets, {}", engine.name());
                assert!(products >= 2 * count as u64);
            }
            assert_eq!(Buckets::new(vec![None; 30], WAITING).empty((1, 1), group, &mut |_| true), Ok(None));
            let stopped = Buckets::new(vec![None; 30], WAITING).empty((1, 1), group, &mut |_| false);
            assert_eq!(stopped, Err(Halt::Stopped));
        }
    }

    /// A form that lost its discriminant, wherever it waits, is noticed, or the coefficient that is wrong is never read.
    #[test]
    fn a_corrupted_form_is_noticed() {
        let d = Discriminant::from_seed(b"corrupted", 1024).expect("a discriminant");
        for engine in Engine::available(&Cpu::detect()) {
            let group = d.on(engine);
            let mut start =
                Chain::new(group, &Form::generator(&d).expect("D is 1 modulo 8")).expect("a form");
            start.square(500).expect("no fault");
            let product = |wrong: usize| {
                let (mut chain, mut buckets) = (start.clone(), Buckets::new(vec![None; 20], WAITING));
                for n in 0..40 {
                    chain.square(1).expect("no fault");
                    let mut form = chain.clone();
                    if n == wrong {
                        form.corrupt(100);
                    }
                    buckets.add(n % 20, form.layout().clone(), group)?;
                }
                buckets.empty((1, 1), group, &mut |_| true)
            };
            let right = product(40);
            let products: Vec<_> = (0..40).map(product).collect();
            assert!(right.is_ok() && products.iter().all(|x| *x == right || *x == Err(Halt::Corrupted)));
            let noticed = products.iter().filter(|x| x.is_err()).count();
            assert!(noticed > 5, "{noticed} of 40 were noticed, {}", engine.name());
        }
    }
}
