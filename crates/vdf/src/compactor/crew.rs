//! The threads that fill the buckets: the squaring thread itself, or others, each with a range of every claim's buckets.
#![forbid(unsafe_code)]

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, Scope};

use lanework_cpu::Threads;

use super::buckets;
use crate::buckets::{Buckets, Halt, WAITING};
use crate::form::Form;
use crate::form::layout::Layout;
use crate::form::packed;
use crate::group::Group;

/// Forms that are handed over together.
const BATCH: usize = 64;
/// Batches that may wait for a thread.
const QUEUE: usize = 8;

/// A form of the chain, and where it goes.
pub(super) struct Entry {
    claim: usize,
    digit: i32,
    form: Layout,
}

enum Work {
    Fill(Vec<Entry>),
    /// Empties a claim's buckets and answers.
    Empty(usize),
    /// Forgets a claim's buckets.
    Forget(usize),
    /// Sends the buckets of every claim that has some, packed.
    Copy(Sender<Vec<Option<Vec<u64>>>>),
}

/// A part of a claim's proof.
pub(super) struct Part {
    pub(super) claim: usize,
    pub(super) product: Result<Option<Form>, Halt>,
}

/// One range of every claim's buckets.
struct Hand<'a> {
    group: Group<'a>,
    /// The first bucket of each claim's range, and the range.
    claims: Vec<Option<(usize, Buckets)>>,
    to: Sender<Part>,
}

impl Hand<'_> {
    /// Fills buckets; fails with the claim if one of its forms does not have the discriminant.
    fn fill(&mut self, entries: Vec<Entry>) -> Result<(), usize> {
        for Entry { claim, digit, form } in entries {
            if let Some((low, buckets)) = &mut self.claims[claim] {
                let form = if digit < 0 { form.inverse() } else { form };
                buckets.add(buckets::of_digit(digit) - *low, form, self.group).map_err(|_| claim)?;
            }
        }
        Ok(())
    }

    /// False if it is pointless to go on.
    fn work(&mut self, work: Work) -> bool {
        let answer = match work {
            Work::Fill(entries) => match self.fill(entries) {
                Ok(()) => return true,
                Err(claim) => Part { claim, product: Err(Halt::Corrupted) },
            },
            Work::Empty(claim) => {
                // Bucket i belongs to digit 2 i + 1.
                let product = self.claims[claim].take().map_or(Ok(None), |(low, buckets)| {
                    buckets.empty((2 * low as u64 + 1, 2), self.group, &mut |_| true)
                });
                Part { claim, product }
            }
            Work::Forget(claim) => {
                self.claims[claim] = None;
                return true;
            }
            Work::Copy(to) => {
                let (group, limbs) = (self.group, packed::size(self.group.discriminant().bits()));
                let copy = |(_, buckets): &mut (usize, Buckets)| {
                    let mut out = Vec::new();
                    buckets.pack(limbs, group, &mut out).map(|()| out)
                };
                let copies: Result<_, _> =
                    self.claims.iter_mut().map(|claim| claim.as_mut().map(copy).transpose()).collect();
                return copies.is_ok_and(|copies| to.send(copies).is_ok());
            }
        };
        let right = answer.product.is_ok();
        self.to.send(answer).is_ok() && right
    }
}

/// The place of a range of buckets.
enum Place<'a> {
    Here(Hand<'a>),
    Elsewhere(SyncSender<Work>),
}

/// The number of ranges for `threads` threads, the caller's included. More than the buckets of the largest claim would
/// be empty.
pub(super) fn ranges(threads: usize, counts: &[usize]) -> usize {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    threads.min(Threads::MOST).saturating_sub(1).clamp(1, most)
}

/// The forms that may wait for each range of a claim's buckets, and for all ranges, where the claim has room for `forms`.
/// At most half of the room is for them; the rest is for buckets, and a range needs one of each.
pub(super) fn waiting(threads: usize, forms: usize) -> (usize, usize) {
    let ranges = ranges(threads, &[forms.div_ceil(2)]);
    let each = (forms / 2 / ranges).clamp(1, WAITING);
    (each, ranges * each)
}

/// All ranges.
pub(super) struct Crew<'a> {
    places: Vec<(Place<'a>, Vec<Entry>)>,
    /// Buckets of each claim.
    counts: Vec<usize>,
    /// Parts of proofs, as many for each emptied claim as there are ranges.
    pub(super) parts: Receiver<Part>,
}

impl<'a> Crew<'a> {
    /// Starts with the buckets of each claim that has not ended: on the caller's thread if `threads` is 1, else on at
    /// most `threads` - 1 others. At most `waiting` forms wait for each range.
    ///
    /// # Errors
    /// The operating system refused a thread.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        group: Group<'a>,
        mut claims: Vec<Option<Vec<Option<Layout>>>>,
        threads: usize,
        waiting: usize,
    ) -> std::io::Result<Crew<'a>>
    where
        'a: 'scope,
    {
        let counts: Vec<usize> = claims.iter().map(|claim| claim.as_ref().map_or(0, Vec::len)).collect();
        let (to, parts) = channel();
        let ranges = ranges(threads, &counts);
        let mut places = Vec::new();
        // The highest range first: it is split off from the end.
        for n in (0..ranges).rev() {
            let cut = |(claim, count): (&mut Option<Vec<Option<Layout>>>, &usize)| {
                let low = n * count / ranges;
                claim.as_mut().map(|held| (low, Buckets::new(held.split_off(low), waiting)))
            };
            let claims = claims.iter_mut().zip(&counts).map(cut).collect();
            let mut hand = Hand { group, claims, to: to.clone() };
            let place = if threads > 1 {
                let (to, from) = sync_channel(QUEUE);
                Builder::new()
                    .spawn_scoped(scope, move || while from.recv().is_ok_and(|work| hand.work(work)) {})?;
                Place::Elsewhere(to)
            } else {
                Place::Here(hand)
            };
            places.push((place, Vec::with_capacity(BATCH)));
        }
        places.reverse();
        Ok(Crew { places, counts, parts })
    }

    /// Ranges of each claim's buckets.
    pub(super) fn ranges(&self) -> usize {
        self.places.len()
    }

    /// Has a form multiplied into its bucket. False if a thread is gone; its last part has the reason.
    pub(super) fn add(&mut self, claim: usize, digit: i32, form: &Layout) -> bool {
        let (ranges, count) = (self.places.len(), self.counts[claim]);
        // The range n with n count / ranges <= bucket < (n + 1) count / ranges.
        let at = ((buckets::of_digit(digit) + 1) * ranges - 1) / count;
        let (place, entries) = &mut self.places[at];
        entries.push(Entry { claim, digit, form: form.clone() });
        let due = matches!(place, Place::Here(_)) || entries.len() >= BATCH;
        !due || place.take(Work::Fill(std::mem::replace(entries, Vec::with_capacity(BATCH))))
    }

    /// Hands over what has gathered.
    fn flush(&mut self) -> bool {
        self.places.iter_mut().all(|(place, entries)| place.take(Work::Fill(std::mem::take(entries))))
    }

    /// Has a claim's buckets emptied, or forgotten.
    pub(super) fn finish(&mut self, claim: usize, wanted: bool) -> bool {
        let work = || if wanted { Work::Empty(claim) } else { Work::Forget(claim) };
        self.flush() && self.places.iter_mut().all(|(place, _)| place.take(work()))
    }

    /// The buckets of every claim that has some, packed; `None` if a thread is gone.
    pub(super) fn copy(&mut self) -> Option<Vec<Option<Vec<u64>>>> {
        if !self.flush() {
            return None;
        }
        let mut all: Vec<Option<Vec<u64>>> = vec![None; self.counts.len()];
        for (place, _) in &mut self.places {
            let (to, from) = channel();
            if !place.take(Work::Copy(to)) {
                return None;
            }
            for (claim, copy) in all.iter_mut().zip(from.recv().ok()?) {
                if let Some(copy) = copy {
                    claim.get_or_insert_default().extend(copy);
                }
            }
        }
        Some(all)
    }
}

impl Place<'_> {
    fn take(&mut self, work: Work) -> bool {
        match self {
            Place::Here(hand) => hand.work(work),
            Place::Elsewhere(to) => to.send(work).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_ranges_has_bounds() {
        let wide = 1 << 16;
        for (threads, counts, expected) in [
            (0, &[8][..], 1),
            (1, &[8], 1),
            (2, &[8], 1),
            (6, &[1, 64, 2], 5),
            (100, &[1, 64, 2], 64),
            (usize::MAX, &[1, 64, 2], 64),
            (usize::MAX, &[1, 1], 1),
            // Claims that have all ended.
            (usize::MAX, &[0, 0], 1),
            (usize::MAX, &[wide], Threads::MOST - 1),
            (Threads::MOST + 1, &[2, wide], Threads::MOST - 1),
        ] {
            assert_eq!(ranges(threads, counts), expected, "{threads} threads for {counts:?}");
        }
    }

    /// Each form is sent to the range that owns its bucket.
    #[test]
    fn every_bucket_has_one_range() {
        for (ranges, count) in [(1usize, 1usize), (3, 1), (5, 4), (2, 8), (3, 64), (7, 16)] {
            for bucket in 0..count {
                let at = ((bucket + 1) * ranges - 1) / count;
                assert!(
                    at * count / ranges <= bucket && bucket < (at + 1) * count / ranges,
                    "{bucket} of {count}"
                );
            }
        }
    }
}
