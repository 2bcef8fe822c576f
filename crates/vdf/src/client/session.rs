//! One conversation with a timelord: reading, squaring and answering, each on its own thread, without spinning. This
//! module answers.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use super::frames::{self, Assignment, Awaited, FrameError, Kind, Message};
use super::reader::{LOOK, Reader, is_only_late, keep_alive};
use super::squarer::{Ask, square};
use crate::proof::Proof;
use crate::prover::{Options, ProverError};
use crate::serial::Mode;

/// Requests that may wait for the chain; beyond that, the farthest get no answer.
pub const MOST_REQUESTS: usize = 1000;
/// The most squarings of a request: 31 hours at 600,000 a second, and the most that Chia's segments can prove.
pub const LONGEST: u64 = (63 << 30) + (1 << 16) - 1;

/// The summary of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Requests that came.
    pub requests: u64,
    /// Proofs that were sent.
    pub proofs: u64,
    /// Squarings of the chain.
    pub squarings: u64,
}

/// An event for the observer.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The assignment came; squaring begins.
    Assignment(&'a Assignment),
    /// A proof of this many squarings was requested.
    Requested(u64),
    /// This request, or an earlier and farther one, gets no answer: too many are waiting, or the chain will not reach it.
    Ignored(u64),
    /// A proof was sent.
    Sent {
        /// Its squarings.
        iterations: u64,
        /// Its segments before the last.
        depth: u64,
    },
    /// The timelord ended the requests.
    Stopped,
}

/// Why a conversation ended before its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The timelord sent a malformed frame.
    Frame(FrameError),
    /// The connection was closed.
    Closed {
        /// What should have arrived next.
        awaited: Awaited,
    },
    /// Nothing arrived in time.
    Silent {
        /// What should have arrived.
        awaited: Awaited,
    },
    /// The connection failed.
    Io(io::Error),
    /// The chain could not be squared or proved.
    Prover(ProverError),
    /// The caller ended the conversation.
    Interrupted,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Frame(e) => write!(f, "malformed: {e}"),
            ClientError::Closed { awaited } => write!(f, "the connection was closed before {awaited}"),
            ClientError::Silent { awaited } => write!(f, "nothing came for too long, instead of {awaited}"),
            ClientError::Io(e) => write!(f, "the connection failed: {e}"),
            ClientError::Prover(e) => e.fmt(f),
            ClientError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl core::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            ClientError::Frame(e) => Some(e),
            ClientError::Io(e) => Some(e),
            ClientError::Prover(e) => Some(e),
            _ => None,
        }
    }
}

impl From<io::Error> for ClientError {
    fn from(e: io::Error) -> ClientError {
        ClientError::Io(e)
    }
}

/// All events, in one queue.
pub(super) enum Happening {
    Said(Message),
    /// The reader has ended.
    Unread(ClientError),
    Proved {
        iterations: u64,
        proof: Box<Proof>,
    },
    /// The squarer has ended, after this many squarings.
    Squared(u64),
    Unsquared(ProverError),
}

/// Serves a timelord until it ends the requests, the connection ends, or `over` becomes true.
///
/// `patience` limits the time for the timelord's assignment, from its first byte on, and for its last frame. Before the
/// assignment and between the two it may be silent without limit: Chia's timelord parks workers until it has a task for
/// them. It also limits the time for which the timelord may read nothing of an answer. A connection that does not answer
/// keepalives fails after two minutes.
///
/// # Errors
/// The reason why the conversation ended early. All threads have ended by then, and the connection is closed.
pub fn serve<M: Mode>(
    connection: &TcpStream,
    mode: M,
    options: Options<'_>,
    patience: Duration,
    over: &AtomicBool,
    observer: &mut dyn FnMut(Event<'_>),
) -> Result<Summary, ClientError> {
    connection.set_nodelay(true)?;
    keep_alive(connection)?;
    connection.set_read_timeout(Some(LOOK))?;
    connection.set_write_timeout(Some(LOOK))?;
    let (happen, happenings) = channel();
    let (ended, unhandled) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let reader = Reader {
            connection,
            patience,
            over,
            ended: &ended,
            unhandled: &unhandled,
            happen: happen.clone(),
        };
        let spawned =
            std::thread::Builder::new().name("timelord".into()).spawn_scoped(scope, || reader.run(mode));
        let result = match spawned {
            Ok(_) => converse(
                &Line { connection, patience, over },
                options,
                &unhandled,
                happen,
                &happenings,
                observer,
            ),
            Err(e) => Err(ClientError::Prover(ProverError::Thread(e))),
        };
        ended.store(true, Ordering::Relaxed);
        // Wakes the reader. If the other end is already gone, the error can be ignored.
        let _ = connection.shutdown(Shutdown::Both);
        result
    })
}

/// Handles events one after the other.
fn converse(
    line: &Line<'_>,
    options: Options<'_>,
    unhandled: &AtomicUsize,
    happen: Sender<Happening>,
    happenings: &Receiver<Happening>,
    observer: &mut dyn FnMut(Event<'_>),
) -> Result<Summary, ClientError> {
    let assignment = match happenings.recv() {
        Ok(Happening::Said(Message::Assignment(assignment))) => assignment,
        Ok(Happening::Unread(e)) => return Err(e),
        // The decoder returns nothing before the assignment, and there are no other senders yet.
        _ => return Err(ClientError::Closed { awaited: Awaited::Kind }),
    };
    unhandled.fetch_sub(1, Ordering::Relaxed);
    observer(Event::Assignment(&assignment));
    // Twice as many as may wait: each may displace another, which is withdrawn.
    let (request, requests) = sync_channel(2 * MOST_REQUESTS);
    let halt = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (assignment, halt) = (&*assignment, &halt);
        let squarer = move || square(assignment, options, halt, requests, &happen);
        std::thread::Builder::new()
            .name("squarer".into())
            .spawn_scoped(scope, squarer)
            .map_err(|e| ClientError::Prover(ProverError::Thread(e)))?;
        let talk =
            Talk { line, assignment, halt, unhandled, request: Some(request), waiting: BTreeSet::new() };
        let result = talk.run(happenings, observer);
        halt.store(true, Ordering::Relaxed);
        result
    })
}

/// The writing end.
struct Line<'a> {
    connection: &'a TcpStream,
    patience: Duration,
    over: &'a AtomicBool,
}

impl Line<'_> {
    /// Writes all of it, unless the timelord reads nothing for too long or the caller ends the conversation meanwhile.
    fn say(&self, mut bytes: &[u8]) -> Result<(), ClientError> {
        let (mut connection, mut since) = (self.connection, Instant::now());
        while !bytes.is_empty() {
            match connection.write(bytes) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(n) => (bytes, since) = (&bytes[n..], Instant::now()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if !is_only_late(&e) => return Err(e.into()),
                Err(_) if self.over.load(Ordering::Relaxed) => return Err(ClientError::Interrupted),
                Err(_) if since.elapsed() >= self.patience => {
                    let why = "the other end reads nothing";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why).into());
                }
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// The conversation after the assignment.
struct Talk<'a> {
    line: &'a Line<'a>,
    assignment: &'a Assignment,
    /// Tells the squarer to stop.
    halt: &'a AtomicBool,
    /// The messages that were read and not yet handled.
    unhandled: &'a AtomicUsize,
    /// The squarer's queue; the squarer holds its other end, and drops it when it ends.
    request: Option<SyncSender<Ask>>,
    /// The requests to the squarer.
    waiting: BTreeSet<u64>,
}

impl Talk<'_> {
    fn run(
        mut self,
        happenings: &Receiver<Happening>,
        observer: &mut dyn FnMut(Event<'_>),
    ) -> Result<Summary, ClientError> {
        let mut summary = Summary::default();
        let (mut stopped, mut squarer_ended) = (false, false);
        self.line.say(frames::OK)?;
        // The squarer's end of the queue lives as long as this loop.
        while let Ok(happening) = happenings.recv() {
            if matches!(happening, Happening::Said(_)) {
                self.unhandled.fetch_sub(1, Ordering::Relaxed);
            }
            match happening {
                Happening::Said(Message::Request(iterations)) => {
                    summary.requests += 1;
                    observer(Event::Requested(iterations));
                    if let Some(ignored) = self.take(iterations, summary.requests) {
                        observer(Event::Ignored(ignored));
                    }
                }
                Happening::Said(Message::Stop) => {
                    // Proofs that are not finished by now are not needed.
                    stopped = true;
                    self.halt.store(true, Ordering::Relaxed);
                    self.request = None;
                    observer(Event::Stopped);
                    if squarer_ended {
                        self.line.say(frames::STOP)?;
                    }
                }
                Happening::Said(Message::Acknowledged) => break,
                Happening::Said(Message::Assignment(_)) => {}
                // Skip proofs that the timelord no longer wants.
                Happening::Proved { iterations, proof } if !stopped && self.waiting.remove(&iterations) => {
                    self.line.say(&frames::proof(&self.assignment.discriminant, iterations, &proof))?;
                    summary.proofs += 1;
                    observer(Event::Sent { iterations, depth: proof.depth() });
                }
                Happening::Proved { .. } => {}
                Happening::Squared(squarings) => {
                    summary.squarings = squarings;
                    squarer_ended = true;
                    // Its message means that it has stopped.
                    if stopped {
                        self.line.say(frames::STOP)?;
                    }
                }
                Happening::Unsquared(e) => {
                    // Nothing more follows from here, so the timelord need not wait.
                    let _ = self.line.say(frames::STOP);
                    return Err(ClientError::Prover(e));
                }
                Happening::Unread(e) => {
                    // It may still listen after an error. If not, the message is lost.
                    if !(stopped && squarer_ended) {
                        let _ = self.line.say(frames::STOP);
                    }
                    return Err(e);
                }
            }
        }
        Ok(summary)
    }

    /// Passes a request on; returns the request that gets no answer, if any.
    fn take(&mut self, iterations: u64, number: u64) -> Option<u64> {
        if iterations > LONGEST || (self.assignment.kind == Kind::One && number > 1) {
            return Some(iterations);
        }
        if !self.waiting.insert(iterations) {
            return None;
        }
        // The chain reaches the nearest request first, not the earliest.
        let farthest = if self.waiting.len() > MOST_REQUESTS { self.waiting.pop_last() } else { None };
        if farthest == Some(iterations) {
            return farthest;
        }
        let asks = farthest.map(Ask::Nothing).into_iter().chain([Ask::Proof(iterations)]);
        for ask in asks {
            if self.request.as_ref().is_none_or(|request| request.send(ask).is_err()) {
                return Some(iterations);
            }
        }
        farthest
    }
}
