//! The proof of a segment: kept forms are sorted into buckets by the digits of 2^T / B, by several threads.
//!
//! A pass has one bucket for each absolute value of a digit; a form with a negative digit is inverted. Each thread owns
//! a range of buckets and reads all digits, so no bucket is filled twice and no lock is needed.
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lanework_cpu::Threads;

use super::digits;
use super::plan::{Parameters, Part};
use crate::buckets::{Buckets, Halt, WAITING};
use crate::form::Form;
use crate::form::layout::Layout;
use crate::form::packed::PackedForms;
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

/// x^(2^T / B rounded down), where x is the first of the kept forms. Every thread calls `pause` after every 64
/// products.
pub(crate) fn prove(
    group: Group<'_>,
    part: &Part,
    forms: &PackedForms,
    b: &Challenge,
    threads: Threads<'_>,
    meter: &Meter,
    pause: &(dyn Fn() + Sync),
) -> Result<Form, Halt> {
    let Parameters { k, l } = part.parameters;
    let buckets = 1usize << (k - 1);
    let count = threads.count().min(buckets);
    let mut out: Option<Form> = None;
    for pass in (0..l).rev() {
        let digits = digits::of_pass(part.length, part.parameters, pass, b);
        if let Some(form) = &mut out {
            for _ in 0..k {
                *form = form.square(group);
            }
        }
        let mut shares: Vec<_> = (0..count)
            .map(|t| ((t * buckets / count, (t + 1) * buckets / count), Err(Halt::Stopped)))
            .collect();
        let share = |_, (range, sum): &mut ((usize, usize), _)| {
            *sum = fill(group, &digits, forms, *range, meter, pause);
        };
        let ran = threads.for_each(&mut shares, share);
        debug_assert!(ran.is_ok(), "only a pool that is made for the call can fail");
        for (_, sum) in shares {
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
    let mut buckets = Buckets::new(vec![None; high - low], WAITING);
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
        let form = forms.get(i).and_then(|form| Layout::unpacked(form, group)).ok_or(Halt::Corrupted)?;
        let form = if *digit < 0 { form.inverse() } else { form };
        buckets.add(value - low - 1, form, group)?;
        if !tick(1) {
            return Err(Halt::Stopped);
        }
    }
    buckets.empty((low as u64 + 1, 1), group, &mut tick)
}
