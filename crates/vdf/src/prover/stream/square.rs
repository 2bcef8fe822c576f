//! The squaring thread.
#![forbid(unsafe_code)]

use super::{Failure, Inner, Pending, Shared, Tail};
use crate::chain::{Chain, ChainError};
use crate::form::packed::PackedForms;

/// Squarings between two checks for requests.
const STEP: u64 = 4096;

/// Segments of one length that may wait for their proofs.
const WINDOW: usize = 20;

/// The forms kept in the segment of one length that is being squared.
struct Level {
    length: u64,
    every: u64,
    start: u64,
    /// The squaring after which the next form is kept.
    next: u64,
    kept: PackedForms,
}

pub(super) fn run(shared: &Shared, mut chain: Chain) {
    let mut levels: Vec<Level> = shared
        .parameters
        .iter()
        .enumerate()
        .map(|(level, parameters)| Level {
            length: shared.scheme.length(level),
            every: parameters.every(),
            start: 0,
            next: 0,
            kept: PackedForms::new(&shared.d),
        })
        .collect();
    let mut n = 0;
    while !shared.meter.stopped() && n < shared.longest {
        if let Err(e) = steps(shared, &mut chain, &mut levels, &mut n) {
            shared.fail(Failure::Chain(e));
        }
    }
}

/// Squares a number of steps, then reports them.
fn steps(shared: &Shared, chain: &mut Chain, levels: &mut [Level], n: &mut u64) -> Result<(), ChainError> {
    let block = shared.scheme.length(0);
    let stop = (*n + STEP).min((*n / block + 1) * block).min(shared.longest);
    while *n < stop {
        let mut next = stop;
        for level in &mut *levels {
            if level.next == *n {
                chain.pack(&mut level.kept.words);
                level.next += level.every;
            }
            next = next.min(level.next);
        }
        chain.run(next - *n)?;
        *n = next;
    }
    chain.check()?;
    let end = n.is_multiple_of(block).then(|| chain.packed());
    let mut inner = shared.lock();
    inner.squared = *n;
    inner.slow = chain.slow();
    let current = &levels[0];
    let Inner { requests, held, .. } = &mut *inner;
    for request in requests {
        if matches!(request.tail, Tail::Ahead) && request.iterations <= *n {
            request.tail = match request.iterations.checked_sub(current.start) {
                Some(length) if *held <= shared.most => {
                    let kept = current.kept.first(length.div_ceil(current.every) as usize);
                    *held += kept.words.len();
                    Tail::Ready(kept)
                }
                // Where memory is short, it is squared again.
                _ => Tail::Passed,
            };
        }
    }
    if let Some(end) = end {
        inner.ends.push(end);
        for (i, level) in levels.iter_mut().enumerate() {
            if *n == level.start + level.length {
                let kept = std::mem::replace(&mut level.kept, PackedForms::new(&shared.d));
                inner.held += kept.words.len();
                inner.pending[i].push_back(Pending { start: level.start, kept });
                (level.start, level.next) = (*n, *n);
            }
        }
        shared.news.notify_all();
        // Slow provers delay the squaring: it could not be proved in time, and memory is limited.
        let behind = |inner: &Inner| {
            inner.held > shared.most || inner.pending.iter().any(|waiting| waiting.len() > WINDOW)
        };
        while behind(&inner) && !shared.meter.stopped() {
            inner = shared.wait(inner);
        }
    }
    drop(inner);
    shared.news.notify_all();
    Ok(())
}
