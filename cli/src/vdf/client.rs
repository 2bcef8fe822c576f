//! `client`: work for a timelord.
#![forbid(unsafe_code)]

use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use lanework_study::text::echoed;
use lanework_study::{Failure, Outcome};
use lanework_suite::Job;
use lanework_suite::vdf::{BITS, Operation};
use lanework_vdf::client::{ClientError, Event, Summary, serve};
use lanework_vdf::{Lenient, Options, Strict};

use super::args::ClientArgs;
use super::interrupt::{Interrupt, shell_status};
use super::meter::counted;
use crate::ui::Session;

/// Before a timelord is called again: it may have been out of reach, or have sent nonsense.
const PAUSE: Duration = Duration::from_secs(2);
/// Between two checks for a signal in that pause.
const LOOK: Duration = Duration::from_millis(100);

pub(super) fn run(session: &Session, args: &ClientArgs) -> Result<Outcome, Failure> {
    let job = Job::Vdf(Operation::Prove, BITS);
    let engine = session.engine(job)?;
    let options = Options::new(engine).threads(session.threads(args.threads, job).count());
    let interrupt = Interrupt::listen()?;
    let mut told = Told { session, id: &args.id };
    loop {
        let end = conversation(args, options, &interrupt, &mut told);
        if let Some(signal) = interrupt.signal() {
            return Err(Failure::interrupted(
                shell_status(signal),
                format!("worker {}: interrupted", args.id),
            ));
        }
        match end {
            Ok(summary) => told.ended(engine.name(), summary),
            Err(e) if !args.repeat => return Err(e),
            // Another conversation may go better.
            Err(e) => e.warn(),
        }
        if !args.repeat {
            return Ok(Outcome::Yes);
        }
        let begin = Instant::now();
        while begin.elapsed() < PAUSE && interrupt.signal().is_none() {
            std::thread::sleep(LOOK);
        }
    }
}

/// One conversation, from connecting to its end.
fn conversation(
    args: &ClientArgs,
    options: Options<'_>,
    interrupt: &Interrupt,
    told: &mut Told<'_>,
) -> Result<Summary, Failure> {
    let ClientArgs { host, port, id, .. } = args;
    let patience = Duration::from_secs(args.timeout);
    let at = |e: &dyn std::fmt::Display| format!("worker {id}: {}:{port}: {e}", echoed(host));
    let connection = connect_or_stop(host, *port, patience, interrupt).map_err(|e| {
        Failure::unavailable(at(&e)).help("check that a timelord listens there, and the host and port")
    })?;
    let over = interrupt.any();
    let mut observer = |event: Event<'_>| told.event(&event);
    let end = if args.strict {
        serve(&connection, Strict, options, patience, over, &mut observer)
    } else {
        serve(&connection, Lenient, options, patience, over, &mut observer)
    };
    end.map_err(|e| match &e {
        ClientError::Prover(_) => Failure::refused(at(&e)),
        _ => Failure::input(at(&e)),
    })
}

/// [`connect`] on a thread of its own, since neither the search for the host nor the attempt at a connection can be interrupted. A
/// signal leaves the thread behind, and the command ends.
fn connect_or_stop(
    host: &str,
    port: u16,
    patience: Duration,
    interrupt: &Interrupt,
) -> std::io::Result<TcpStream> {
    let (give, take) = mpsc::channel();
    let host = host.to_owned();
    std::thread::Builder::new().name("connect".into()).spawn(move || {
        // Nobody waits for it after a signal.
        let _ = give.send(connect(&host, port, patience));
    })?;
    loop {
        match take.recv_timeout(LOOK) {
            Ok(connection) => return connection,
            Err(RecvTimeoutError::Timeout) if interrupt.signal().is_none() => {}
            Err(_) => return Err(std::io::ErrorKind::Interrupted.into()),
        }
    }
}

/// A connection to the first of the host's addresses that answers.
fn connect(host: &str, port: u16, patience: Duration) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(connection) => return Ok(connection),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Prints each event: as a line of text, or under `--json` as an object.
struct Told<'a> {
    session: &'a Session,
    id: &'a str,
}

impl Told<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let (name, text, rest) = match event {
            Event::Assignment(assignment) => (
                "task",
                format!(
                    "a task of {} bits, kind {}",
                    assignment.discriminant.bits(),
                    assignment.kind.letter()
                ),
                serde_json::json!({ "bits": assignment.discriminant.bits(), "kind": assignment.kind.letter().to_string() }),
            ),
            Event::Requested(n) => (
                "requested",
                format!("asked for a proof of {}", counted(*n, "squarings")),
                serde_json::json!({ "iterations": n }),
            ),
            Event::Ignored(n) => (
                "ignored",
                format!("the request for {} will not be answered", counted(*n, "squarings")),
                serde_json::json!({ "iterations": n }),
            ),
            Event::Sent { iterations, depth } => (
                "sent",
                format!("sent a proof of {}, witness type {depth}", counted(*iterations, "squarings")),
                serde_json::json!({ "iterations": iterations, "witness": depth }),
            ),
            Event::Stopped => ("stopped", "the timelord asked to stop".to_owned(), serde_json::json!({})),
        };
        self.tell(name, &text, rest);
    }

    fn ended(&self, backend: &str, summary: Summary) {
        let Summary { requests, proofs, squarings } = summary;
        let text = format!(
            "done: {requests} requests, {proofs} proofs, {} with {backend}",
            counted(squarings, "squarings")
        );
        let rest = serde_json::json!({
            "requests": requests, "proofs": proofs, "squarings": squarings, "backend": backend,
        });
        self.tell("done", &text, rest);
    }

    fn tell(&self, name: &str, text: &str, rest: serde_json::Value) {
        if self.session.json {
            let mut object = super::members(serde_json::json!({ "event": name, "worker": self.id }));
            object.extend(super::members(rest));
            println!("{}", serde_json::Value::Object(object));
        } else {
            println!("worker {}: {text}", self.id);
        }
    }
}
