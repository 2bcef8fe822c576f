//! A chain that is proved while it is squared, so that proofs of any number of squarings can be given on the way.
//!
//! The chain runs from station to station, and each stretch between two of them is proved by all threads as soon as it is squared. A
//! proof of N squarings consists of the stretches up to the last station before N, and of one from there. Where a request is
//! known in time, a station is put there and the proof is ready at once; where it comes late, its last stretch is squared
//! again. A proof has at most 63 segments before the last, so stretches grow with the chain, and so does what a late request costs:
//! a quarter of the squarings at most, or 2^16.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use super::frames::{Kind, Task};
use crate::form::Form;
use crate::proof::{Challenge, Proof, Segment};
use crate::prover::{self, Job, Options, Progress, ProverError};

/// Segments before the last that a proof may have: one byte says how many, and Chia allows 64 in all.
pub const DEPTH: usize = 63;
/// The shortest stretch that nobody asked for.
const SHORTEST: u64 = 1 << 16;
/// The longest chain that growing stretches reach within [`DEPTH`]; a request beyond it is not taken.
pub const LONGEST: u64 = 1 << 36;

/// A point of the chain up to which everything is proved.
#[derive(Clone, Debug)]
struct Station {
    /// Squarings from the start.
    at: u64,
    form: Form,
}

/// A chain and its proofs.
#[derive(Debug)]
pub struct Stations<'a> {
    task: &'a Task,
    options: Options<'a>,
    stations: Vec<Station>,
    /// The stretches between them.
    segments: Vec<Segment>,
}

impl<'a> Stations<'a> {
    /// A chain that has not moved yet. It keeps no checkpoint.
    #[must_use]
    pub fn new(task: &'a Task, options: Options<'a>) -> Stations<'a> {
        // Each stretch is a computation of its own.
        let options = Options { checkpoint: None, ..options };
        let stations = vec![Station { at: 0, form: task.x.clone() }];
        Stations { task, options, stations, segments: Vec::new() }
    }

    /// Squarings that are done and proved.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.stations.last().map_or(0, |station| station.at)
    }

    /// How far the chain shall go next, if these proofs are wanted; nothing if it had better wait for a request.
    #[must_use]
    pub fn next_stretch(&self, wanted: &BTreeSet<u64>) -> Option<u64> {
        let position = self.position();
        let next = wanted.range(position + 1..).next().map(|next| next - position);
        if self.task.kind == Kind::One {
            return next;
        }
        if position >= LONGEST || self.segments.len() > DEPTH {
            return None;
        }
        let stretch = grown(position);
        // A station that somebody wants takes a segment that the way to the end may need.
        let spare = self.segments.len() + 1 + stretches_left(position) <= DEPTH;
        Some(next.filter(|_| spare).map_or(stretch, |next| next.min(stretch)))
    }

    /// Squares and proves one stretch.
    ///
    /// # Errors
    /// As [`prover::prove`]. The chain then stands where it stood before.
    pub fn advance(
        &mut self,
        stretch: u64,
        observer: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(), ProverError> {
        let last = self.stations.len() - 1;
        let (y, segment) = self.stretch(last, stretch, observer)?;
        self.stations.push(Station { at: self.stations[last].at + stretch, form: y });
        self.segments.push(segment);
        Ok(())
    }

    /// One stretch from a station on.
    fn stretch(
        &self,
        from: usize,
        length: u64,
        observer: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(Form, Segment), ProverError> {
        let (d, x) = (&self.task.discriminant, &self.stations[from].form);
        let Proof { y, pi, .. } =
            prover::prove(&Job::new(d.clone(), x.clone(), length), &self.options, observer)?.proof;
        let b = Challenge::of(d, x, &y);
        Ok((y, Segment { iterations: length, b, pi }))
    }

    /// The proof of so many squarings, of at most [`Stations::position`]; nothing for 0 squarings, or if it would have too
    /// many segments.
    ///
    /// # Errors
    /// As [`prover::prove`], where a stretch has to be squared again.
    pub fn proof(
        &self,
        iterations: u64,
        observer: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Option<Proof>, ProverError> {
        if iterations == 0 || iterations > self.position() {
            return Ok(None);
        }
        let from = self.stations.partition_point(|station| station.at < iterations) - 1;
        if from > DEPTH {
            return Ok(None);
        }
        let rest = iterations - self.stations[from].at;
        let (y, last) = match self.segments.get(from) {
            Some(segment) if segment.iterations == rest => {
                (self.stations[from + 1].form.clone(), segment.clone())
            }
            _ => self.stretch(from, rest, observer)?,
        };
        Ok(Some(Proof { y, pi: last.pi, segments: self.segments[..from].to_vec() }))
    }
}

/// A stretch that grows with the chain.
fn grown(position: u64) -> u64 {
    (position / 3).max(SHORTEST)
}

/// The stretches from here to the longest chain if nobody wants a station on the way.
fn stretches_left(mut position: u64) -> usize {
    let mut out = 0;
    while position < LONGEST {
        position += grown(position);
        out += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use lanework_cpu::Cpu;

    use super::*;
    use crate::backend::BACKENDS;
    use crate::discriminant::Discriminant;
    use crate::verify::verify_proof;

    fn task(kind: Kind) -> Task {
        let discriminant = Discriminant::from_seed(b"stations", 256).expect("a discriminant");
        let x = Form::generator(&discriminant).expect("D is 1 modulo 8");
        Task { kind, discriminant, x }
    }

    fn options() -> Options<'static> {
        Options::new(BACKENDS[0].get(&Cpu::baseline()).expect("portable")).threads(1)
    }

    #[test]
    fn growing_stretches_reach_the_longest_chain() {
        let left = stretches_left(0);
        assert!((30..DEPTH - 10).contains(&left), "{left}: room is left for requests");
        // However many requests come, each answer keeps within the depth as long as the chain goes on.
        let task = task(Kind::Many);
        let mut line = Stations::new(&task, options());
        let segment = Segment { iterations: 1, b: Challenge::from_bytes(&[0x81; 33]), pi: task.x.clone() };
        while line.position() < LONGEST {
            let at = line.position();
            let wanted: BTreeSet<u64> = (1..200).map(|i| at + i * 1000).collect();
            let stretch = line.next_stretch(&wanted).expect("it goes on");
            assert!(stretch > 0);
            line.stations.push(Station { at: at + stretch, form: task.x.clone() });
            line.segments.push(segment.clone());
        }
        assert!(line.segments.len() <= DEPTH + 1, "{} segments", line.segments.len());
        assert_eq!(line.next_stretch(&BTreeSet::new()), None);
    }

    #[test]
    fn requests_in_time_and_late() {
        let task = task(Kind::Many);
        let mut line = Stations::new(&task, options());
        let wanted: BTreeSet<u64> = [700, 65_000].into();
        assert_eq!(line.next_stretch(&wanted), Some(700));
        line.advance(700, &mut |_| true).expect("no fault");
        assert_eq!(line.next_stretch(&wanted), Some(64_300));
        line.advance(300, &mut |_| true).expect("no fault");
        assert_eq!(line.position(), 1000);
        let (d, x) = (&task.discriminant, &task.x);
        for (iterations, depth) in [(1, 0), (700, 0), (701, 1), (999, 1), (1000, 1)] {
            let proof = line.proof(iterations, &mut |_| true).expect("no fault").expect("in reach");
            assert_eq!(proof.depth(), depth, "{iterations}");
            assert_eq!(verify_proof(d, x, &proof, iterations), Ok(()), "{iterations}");
            assert!(verify_proof(d, x, &proof, iterations + 1).is_err());
        }
        for out_of_reach in [0, 1001, u64::MAX] {
            assert!(line.proof(out_of_reach, &mut |_| true).expect("no fault").is_none());
        }
        let stopped = line.proof(999, &mut |_| false);
        assert!(matches!(stopped, Err(ProverError::Cancelled { .. })), "{stopped:?}");
    }

    #[test]
    fn one_segment_is_one_segment() {
        let task = task(Kind::One);
        let line = Stations::new(&task, options());
        assert_eq!(line.next_stretch(&BTreeSet::new()), None, "it waits");
        assert_eq!(line.next_stretch(&[1_000_000].into()), Some(1_000_000));
    }
}
