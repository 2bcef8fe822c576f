//! The squarer of a conversation: the prover on its own thread.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use super::frames::{Assignment, Kind};
use super::session::Happening;
use crate::prover::{self, Options, ProverError, Stream, Task};

/// Time between two checks for requests while no proof is ready.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(20);

/// A request to the squarer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask {
    /// A proof of this many squarings.
    Proof(u64),
    /// Withdraws the request for this many squarings.
    Nothing(u64),
}

/// The squarer: passes requests to the prover and returns its proofs until the conversation ends. It owns its end of the
/// queue, so that nobody waits to put a request into the queue of a squarer that has ended.
pub(super) fn square(
    assignment: &Assignment,
    options: Options<'_>,
    halt: &AtomicBool,
    requests: Receiver<Ask>,
    happen: &Sender<Happening>,
) {
    // A conversation never keeps a checkpoint.
    let options = Options { checkpoint: None, ..options };
    let end = match assignment.kind {
        Kind::One => one(assignment, &options, halt, &requests, happen),
        Kind::Three | Kind::Many => many(assignment, &options, halt, &requests, happen),
    };
    drop(requests);
    // Without a receiver the answer is not needed.
    let _ = happen.send(match end {
        Ok(squared) => Happening::Squared(squared),
        Err(ProverError::Cancelled { after, .. }) => Happening::Squared(after),
        Err(e) => Happening::Unsquared(e),
    });
}

/// One segment for one request.
fn one(
    assignment: &Assignment,
    options: &Options<'_>,
    halt: &AtomicBool,
    requests: &Receiver<Ask>,
    happen: &Sender<Happening>,
) -> Result<u64, ProverError> {
    let Ok(Ask::Proof(iterations)) = requests.recv() else { return Ok(0) };
    let task = Task::new(assignment.discriminant.clone(), assignment.x.clone(), iterations);
    let proved = prover::prove(&task, options, &mut |_| !halt.load(Ordering::Relaxed))?;
    let _ = happen.send(Happening::Proved { iterations, proof: Box::new(proved.proof) });
    Ok(iterations)
}

/// Any number of segments, for any number of requests.
fn many(
    assignment: &Assignment,
    options: &Options<'_>,
    halt: &AtomicBool,
    requests: &Receiver<Ask>,
    happen: &Sender<Happening>,
) -> Result<u64, ProverError> {
    let stream = Stream::start(&assignment.discriminant, &assignment.x, options)?;
    while !halt.load(Ordering::Relaxed) {
        loop {
            match requests.try_recv() {
                Ok(Ask::Proof(iterations)) => stream.request(iterations)?,
                Ok(Ask::Nothing(iterations)) => stream.withdraw(iterations),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(stream.stop().squared),
            }
        }
        if let Some((iterations, proof)) = stream.receive(BETWEEN_REQUESTS)?
            && happen.send(Happening::Proved { iterations, proof: Box::new(proof) }).is_err()
        {
            break;
        }
    }
    Ok(stream.stop().squared)
}
