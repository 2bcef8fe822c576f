//! The reading end of a conversation.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::frames::{Awaited, Decoder, Message};
use super::session::{ClientError, Happening, MOST_REQUESTS};
use crate::serial::Mode;

/// Time between two checks for the end of the conversation while nothing arrives or leaves.
pub(super) const LOOK: Duration = Duration::from_millis(200);

/// Time between two looks at the messages not yet handled, while they are too many.
const CATCH_UP: Duration = Duration::from_millis(5);

/// Silence after which keepalives are sent.
#[cfg(unix)]
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// Time between two keepalives.
#[cfg(unix)]
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Unanswered keepalives after which the connection has failed.
#[cfg(unix)]
const KEEPALIVE_COUNT: u32 = 4;

/// Makes the connection fail two minutes after its other end vanished.
#[cfg(unix)]
pub(super) fn keep_alive(connection: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(connection, true)?;
    sockopt::set_tcp_keepidle(connection, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(connection, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(connection, KEEPALIVE_COUNT)?;
    Ok(())
}

/// Elsewhere the system's own settings apply.
#[cfg(not(unix))]
pub(super) fn keep_alive(_: &TcpStream) -> io::Result<()> {
    Ok(())
}

/// Whether nothing arrived or left for [`LOOK`]. Windows reports that as `TimedOut`; elsewhere that kind means that
/// keepalives had no answer.
pub(super) fn is_only_late(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::WouldBlock || cfg!(windows) && e.kind() == io::ErrorKind::TimedOut
}

/// The reading end.
pub(super) struct Reader<'a> {
    pub(super) connection: &'a TcpStream,
    pub(super) patience: Duration,
    pub(super) over: &'a AtomicBool,
    pub(super) ended: &'a AtomicBool,
    /// The messages that were read and not yet handled.
    pub(super) unhandled: &'a AtomicUsize,
    pub(super) happen: Sender<Happening>,
}

impl Reader<'_> {
    fn is_to_end(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.over.load(Ordering::Relaxed)
    }

    pub(super) fn run<M: Mode>(self, mode: M) {
        let end = self.read(mode);
        if let Err(e) = end {
            // Without a receiver the conversation is over.
            let _ = self.happen.send(Happening::Unread(e));
        }
    }

    fn read<M: Mode>(&self, mode: M) -> Result<(), ClientError> {
        let mut decoder = Decoder::new(mode);
        let (mut bytes, mut messages) = ([0; 4096], Vec::new());
        let mut since = Instant::now();
        let mut connection = self.connection;
        while decoder.awaited() != Awaited::Nothing {
            let awaited = decoder.awaited();
            match connection.read(&mut bytes) {
                Ok(0) => return Err(ClientError::Closed { awaited }),
                Ok(n) => {
                    let fed = decoder.feed(&bytes[..n], &mut messages);
                    if messages.iter().any(|m| matches!(m, Message::Assignment(_) | Message::Stop)) {
                        since = Instant::now();
                    }
                    self.unhandled.fetch_add(messages.len(), Ordering::Relaxed);
                    for message in messages.drain(..) {
                        if self.happen.send(Happening::Said(message)).is_err() {
                            return Ok(());
                        }
                    }
                    fed.map_err(ClientError::Frame)?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted || is_only_late(&e) => {}
                Err(e) => return Err(e.into()),
            }
            // A timelord that asks faster than it is answered fills the connection, not this process.
            while self.unhandled.load(Ordering::Relaxed) > MOST_REQUESTS && !self.is_to_end() {
                std::thread::sleep(CATCH_UP);
            }
            if self.ended.load(Ordering::Relaxed) {
                return Ok(());
            }
            if self.over.load(Ordering::Relaxed) {
                return Err(ClientError::Interrupted);
            }
            let awaited = decoder.awaited();
            // Timelords park workers until they have a task, and requests may come or not. Half a frame is malformed.
            let may_be_silent =
                matches!(awaited, Awaited::Kind | Awaited::RequestLength) && !decoder.is_torn();
            if !may_be_silent && since.elapsed() >= self.patience {
                return Err(ClientError::Silent { awaited });
            }
            if may_be_silent {
                since = Instant::now();
            }
        }
        Ok(())
    }
}
