//! The proving threads.
#![forbid(unsafe_code)]

use lanework_cpu::Threads;

use super::{Failure, Inner, Pending, Request, Shared, Tail};
use crate::chain::{Chain, ChainError};
use crate::form::Form;
use crate::form::num::Num;
use crate::form::packed::{self, PackedForms};
use crate::proof::{Challenge, Proof, Segment};
use crate::prover::ProverError;
use crate::prover::plan::Part;
use crate::prover::segment::Squared;

/// Something to prove.
enum Task {
    /// The segment of this level.
    Segment(usize, Pending, Vec<u64>, Vec<u64>),
    /// The last segment of request `number`: its start, the form there, and its length; and kept forms, if there are
    /// any.
    Tail { number: u64, start: u64, x: Vec<u64>, length: u64, kept: Option<PackedForms> },
}

pub(super) fn run(shared: &Shared) {
    loop {
        let mut inner = shared.lock();
        let (urgency, task) = loop {
            if shared.meter.stopped() {
                return;
            }
            deliver(shared, &mut inner);
            match next(shared, &mut inner, usize::MAX) {
                Some(task) => break task,
                None => inner = shared.wait(inner),
            }
        };
        drop(inner);
        finish(shared, urgency, task);
    }
}

fn finish(shared: &Shared, urgency: usize, task: Task) {
    // The squaring may have waited for room.
    shared.news.notify_all();
    match carry_out(shared, urgency, task) {
        Err(ProverError::Chain(e)) => shared.fail(Failure::Chain(e)),
        Err(ProverError::Wrong { why, .. }) => shared.fail(Failure::Wrong(why)),
        // Done, or stopped.
        _ => (),
    }
}

/// More urgent work interrupts the current task, so that a long proof does not delay a short one.
fn in_between(shared: &Shared, urgency: usize) {
    loop {
        let mut inner = shared.lock();
        let Some((urgency, task)) = next(shared, &mut inner, urgency) else { return };
        drop(inner);
        finish(shared, urgency, task);
        deliver(shared, &mut shared.lock());
    }
}

/// The next task: the smallest request's missing segments, its last one (urgency 0) and then the earlier ones; those of
/// the next request; and finally the shortest segments (urgency 1 and up). `None` unless more urgent than `than`.
fn next(shared: &Shared, inner: &mut Inner, than: usize) -> Option<(usize, Task)> {
    if than == 0 {
        return None;
    }
    for i in 0..inner.requests.len() {
        let iterations = inner.requests[i].iterations;
        match inner.requests[i].tail {
            Tail::Ready(_) | Tail::Passed => return last_segment(shared, inner, i).map(|task| (0, task)),
            Tail::Taken | Tail::Done(_) => {
                let task = shortest_segment(shared, inner, than, iterations);
                if task.is_some() {
                    return task;
                }
            }
            Tail::Ahead => {}
        }
    }
    shortest_segment(shared, inner, than, u64::MAX)
}

/// The last segment of a request, squared already.
fn last_segment(shared: &Shared, inner: &mut Inner, i: usize) -> Option<Task> {
    let block = shared.scheme.length(0);
    let request = &mut inner.requests[i];
    let kept = match std::mem::replace(&mut request.tail, Tail::Taken) {
        Tail::Ready(kept) => Some(kept),
        _ => None,
    };
    let (number, length) = (request.number, request.iterations % block);
    let start = request.iterations - length;
    inner.held -= kept.as_ref().map_or(0, |kept| kept.words.len());
    let x = inner.ends.get((start / block) as usize)?.clone();
    // With its last squaring a segment may have ended, and the next begun with nothing kept.
    let kept = kept.filter(|kept| kept.len() as u64 >= length.div_ceil(shared.parameters[0].every()));
    Some(Task::Tail { number, start, x, length, kept })
}

/// The shortest segment that waits and ends at `until` or before, with its urgency.
fn shortest_segment(shared: &Shared, inner: &mut Inner, than: usize, until: u64) -> Option<(usize, Task)> {
    let ends = |level: usize, pending: &Pending| pending.start + shared.scheme.length(level);
    let level = (0..inner.pending.len().min(than - 1))
        .find(|&level| inner.pending[level].front().is_some_and(|first| ends(level, first) <= until))?;
    let pending = inner.pending[level].pop_front()?;
    inner.held -= pending.kept.words.len();
    let at = |n: u64| inner.ends.get((n / shared.scheme.length(0)) as usize).cloned();
    let (x, y) = (at(pending.start)?, at(ends(level, &pending))?);
    Some((level + 1, Task::Segment(level, pending, x, y)))
}

fn form(shared: &Shared, form: &[u64], after: u64) -> Result<Form, ChainError> {
    packed::unpack(&shared.d, form).map_err(|_| ChainError::Corrupted { good: after })
}

fn carry_out(shared: &Shared, urgency: usize, task: Task) -> Result<(), ProverError> {
    match task {
        Task::Segment(level, Pending { start, kept }, x, y) => {
            let length = shared.scheme.length(level);
            let (x, y) = (form(shared, &x, start)?, form(shared, &y, start)?);
            let part = Part { start, length, parameters: shared.parameters[level] };
            let segment = segment(shared, urgency, Squared { index: 0, part, x, y, kept })?.0;
            let mut words = packed::pack(&shared.d, &segment.pi);
            words.extend_from_slice(segment.b.0.magnitude());
            let mut inner = shared.lock();
            let position = (start / length) as usize;
            let proved = &mut inner.proved[level];
            if proved.len() <= position {
                proved.resize(position + 1, None);
            }
            proved[position] = Some(words.into_boxed_slice());
        }
        Task::Tail { number, start, x, length, kept } => {
            let x = form(shared, &x, start)?;
            let (segment, y) = if length == 0 {
                (None, x)
            } else {
                let parameters = shared.parameters[0];
                let (kept, y) = tail(shared, &x, start, length, kept)?;
                let part = Part { start, length, parameters };
                let (segment, y) = segment(shared, urgency, Squared { index: 0, part, x, y, kept })?;
                (Some(segment), y)
            };
            let mut inner = shared.lock();
            if let Some(request) = inner.requests.iter_mut().find(|request| request.number == number) {
                request.tail = Tail::Done(Box::new((segment, y)));
            }
        }
    }
    Ok(())
}

fn segment(shared: &Shared, urgency: usize, work: Squared) -> Result<(Segment, Form), ProverError> {
    let iterations = work.part.length;
    let finished =
        work.answer_between(shared.group(), Threads::One, &shared.meter, &|| in_between(shared, urgency))?;
    Ok((Segment { iterations, b: finished.b, pi: finished.pi }, finished.y))
}

/// The kept forms and the end of a last segment, which is squared again from its start if none were kept.
fn tail(
    shared: &Shared,
    x: &Form,
    start: u64,
    length: u64,
    kept: Option<PackedForms>,
) -> Result<(PackedForms, Form), ProverError> {
    let every = shared.parameters[0].every();
    let chain = |form: &Form| Chain::resume(shared.group(), form, start, 0);
    if let Some(kept) = kept {
        let last = (length - 1) / every;
        let packed = kept.get(last as usize).ok_or(ChainError::Corrupted { good: start })?;
        let mut chain = chain(&form(shared, packed, start)?)?;
        chain.run(length - last * every)?;
        let y = chain.form()?;
        return Ok((kept, y));
    }
    let (mut chain, mut kept, mut at) = (chain(x)?, PackedForms::new(&shared.d), 0);
    while at < length {
        chain.pack(&mut kept.words);
        let step = every.min(length - at);
        chain.run(step)?;
        at += step;
        if shared.meter.stopped() {
            return Err(ProverError::cancelled(start));
        }
    }
    chain.check()?;
    let y = chain.form()?;
    Ok((kept, y))
}

/// Answers the requests whose segments are all proved.
fn deliver(shared: &Shared, inner: &mut Inner) {
    let mut answered = false;
    let mut i = 0;
    while i < inner.requests.len() {
        match answer(shared, inner, i) {
            Some(proof) => {
                let request = inner.requests.remove(i);
                inner.answers.push_back((request.iterations, proof));
                answered = true;
            }
            None => i += 1,
        }
    }
    if answered {
        shared.news.notify_all();
    }
}

fn answer(shared: &Shared, inner: &Inner, index: usize) -> Option<Proof> {
    let Request { iterations, tail: Tail::Done(done), .. } = &inner.requests[index] else { return None };
    let (last, y) = &**done;
    let whole = iterations - iterations % shared.scheme.length(0);
    let (mut found, mut at) = (Vec::new(), 0);
    for level in (0..shared.scheme.levels()).rev() {
        let length = shared.scheme.length(level);
        // Every length is a multiple of the next, so that longer segments end where shorter ones begin.
        while at + length <= whole && found.len() <= shared.scheme.witnesses {
            let Some(Some(words)) = inner.proved[level].get((at / length) as usize) else { break };
            found.push((length, &**words));
            at += length;
        }
    }
    if at < whole || found.len() > shared.scheme.witnesses {
        return None;
    }
    let segment = |(iterations, words): (u64, &[u64])| {
        let (pi, b) = words.split_at(2 * packed::size(shared.d.bits()));
        // They are forms of the group, since they have been verified.
        let pi = packed::unpack(&shared.d, pi).ok()?;
        Some(Segment { iterations, b: Challenge(Num::from_limbs(false, b)), pi })
    };
    let mut segments = found.into_iter().map(segment).collect::<Option<Vec<_>>>()?;
    segments.extend(last.clone());
    let last = segments.pop()?;
    Some(Proof { y: y.clone(), pi: last.pi, segments })
}
