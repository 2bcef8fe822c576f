//! The proof of a segment: kept forms are sorted into buckets by the digits of 2^T / B, by several threads.
//!
//! A pass has one bucket for each absolute value of a digit; a form with a negative digit is inverted. Each thread owns
//! a range of buckets and reads all digits, so no bucket is filled twice and no lock is needed.
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::digits;
use super::plan::{Parameters, Part};
use crate::form::Form;
use crate::form::packed::{self, PackedForms};
use crate::group::Group;
use crate::proof::Challenge;

/// A proof's progress and stop flag, shared with the waiting thread.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Products done.
    pub(crate) done: AtomicU64,
    /// Set to stop; no proof is made then.
    pub(crate) stop: AtomicBool,
}

impl Meter {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The approximate number of products of a proof.
pub(crate) fn products(part: &Part) -> u64 {
    let Parameters { k, l } = part.parameters;
    part.length / u64::from(k) + u64::from(l) * (1 << k)
}

/// Why there is no proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// It was stopped.
    Stopped,
    /// A kept form does not have the discriminant.
    Corrupted,
}

/// x^(2^T / B rounded down), where x is the first of the kept forms. Every thread calls `pause` after every 64
/// products.
pub(crate) fn prove(
    group: Group<'_>,
    part: &Part,
    forms: &PackedForms,
    b: &Challenge,
    threads: usize,
    meter: &Meter,
    pause: &(dyn Fn() + Sync),
) -> Result<Form, Halt> {
    let Parameters { k, l } = part.parameters;
    let buckets = 1usize << (k - 1);
    let threads = threads.clamp(1, buckets);
    let mut out: Option<Form> = None;
    for pass in (0..l).rev() {
        let digits = digits::of_pass(part.length, part.parameters, pass, b);
        if let Some(form) = &mut out {
            for _ in 0..k {
                *form = form.square(group);
            }
        }
        let share = |t: usize| (t * buckets / threads, (t + 1) * buckets / threads);
        let own = |t: usize| fill(group, &digits, forms, share(t), meter, pause);
        let sums: Vec<Result<Option<Form>, Halt>> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|t| (t, std::thread::Builder::new().spawn_scoped(scope, move || own(t))))
                .collect();
            let mut sums = vec![own(0)];
            for (t, other) in others {
                // This thread takes the share of a thread that could not be started.
                sums.push(match other {
                    Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    Err(_) => own(t),
                });
            }
            sums
        });
        for sum in sums {
            if let Some(sum) = sum? {
                out = Some(out.map_or_else(|| sum.clone(), |out| out.compose(&sum, group)));
            }
        }
    }
    Ok(out.unwrap_or_else(|| Form::identity(group.discriminant())))
}

/// The product of bucket v to the power v for all v above `low` and not above `high`; `None` if these buckets are
/// empty.
fn fill(
    group: Group<'_>,
    digits: &[i32],
    forms: &PackedForms,
    (low, high): (usize, usize),
    meter: &Meter,
    pause: &(dyn Fn() + Sync),
) -> Result<Option<Form>, Halt> {
    let mut buckets: Vec<Option<Form>> = vec![None; high - low];
    let mut since = 0u64;
    let mut tick = |n: u64| {
        since += n;
        if since >= 64 {
            meter.done.fetch_add(since, Ordering::Relaxed);
            since = 0;
            pause();
        }
        !meter.stopped()
    };
    for (i, digit) in digits.iter().enumerate() {
        let value = digit.unsigned_abs() as usize;
        if value <= low || value > high {
            continue;
        }
        let form = forms.get(i).ok_or(Halt::Corrupted)?;
        let mut form = packed::unpack(group.discriminant(), form).map_err(|_| Halt::Corrupted)?;
        if *digit < 0 {
            form = form.inverse();
        }
        let bucket = &mut buckets[value - low - 1];
        *bucket = Some(match bucket.take() {
            Some(product) => product.compose(&form, group),
            None => form,
        });
        if !tick(1) {
            return Err(Halt::Stopped);
        }
    }
    // Every bucket is multiplied into a running product from the highest down, and the running products together hold
    // the bucket of `low` + i exactly i times.
    let (mut running, mut out) = (None::<Form>, None::<Form>);
    for bucket in buckets.iter().rev() {
        if let Some(form) = bucket {
            running = Some(running.map_or_else(|| form.clone(), |running| running.compose(form, group)));
        }
        if let Some(running) = &running {
            out = Some(out.map_or_else(|| running.clone(), |out| out.compose(running, group)));
        }
        if !tick(2) {
            return Err(Halt::Stopped);
        }
    }
    match (running, out) {
        (Some(running), Some(out)) if low > 0 => {
            Ok(Some(out.compose(&running.power(low as u64, group), group)))
        }
        (_, out) => Ok(out),
    }
}
