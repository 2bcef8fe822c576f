//! The common part of the worker's tests: a timelord's side of a connection.
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lanework_vdf::Engine;
use lanework_vdf::client::{ClientError, Event, Summary, serve};
use lanework_vdf::internals::known;
use lanework_vdf::prover::Options;
use lanework_vdf::{Discriminant, Lenient, Limits, Question, number, verify};
use rustix::net::sockopt;

/// Longer than the slowest machine takes to send.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

fn options() -> Options<'static> {
    Options::new(Engine::best()).threads(2)
}

/// A worker against this timelord; the results of both.
pub(crate) fn meet<T: Send>(
    patience: Duration,
    over: &AtomicBool,
    timelord: impl FnOnce(TcpStream) -> T + Send,
) -> (T, Result<Summary, ClientError>, Vec<u64>) {
    meet_watched(patience, over, timelord, &mut |_| {})
}

/// The same; the worker tells `watch` of each event.
pub(crate) fn meet_watched<T: Send>(
    patience: Duration,
    over: &AtomicBool,
    timelord: impl FnOnce(TcpStream) -> T + Send,
    watch: &mut dyn FnMut(&Event<'_>),
) -> (T, Result<Summary, ClientError>, Vec<u64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::scope(|scope| {
        let timelord = scope.spawn(move || {
            let (peer, _) = listener.accept().expect("a worker");
            // A test that waits for ever has no result.
            peer.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
            timelord(peer)
        });
        let connection = TcpStream::connect(address).expect("a timelord");
        let mut sent = Vec::new();
        let result = serve(&connection, Lenient, options(), patience, over, &mut |event| {
            watch(&event);
            if let Event::Sent { iterations, .. } = event {
                sent.push(iterations);
            }
        });
        // The worker notices a timelord that vanished.
        assert_eq!(sockopt::socket_keepalive(&connection), Ok(true));
        assert_eq!(sockopt::tcp_keepidle(&connection), Ok(Duration::from_secs(60)));
        assert_eq!(sockopt::tcp_keepintvl(&connection), Ok(Duration::from_secs(15)));
        assert_eq!(sockopt::tcp_keepcnt(&connection), Ok(4));
        drop(connection);
        (timelord.join().expect("the timelord"), result, sent)
    })
}

pub(crate) fn never() -> AtomicBool {
    AtomicBool::new(false)
}

pub(crate) fn task(kind: &str, d: &Discriminant, x: &[u8]) -> Vec<u8> {
    let text = number::to_decimal(&d.value());
    let mut out = format!("{kind}{:03}{text}", text.len()).into_bytes();
    out.push(x.len() as u8);
    out.extend_from_slice(x);
    out
}

pub(crate) fn request(iterations: u64) -> String {
    let text = iterations.to_string();
    format!("{:02}{text}", text.len())
}

pub(crate) fn read<const N: usize>(peer: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    peer.read_exact(&mut bytes).expect("bytes of the worker");
    bytes
}

/// A proof as the emulator takes it apart, with its four bytes of length already read.
pub(crate) fn proof(peer: &mut TcpStream, length: [u8; 4]) -> (u64, u64, Vec<u8>) {
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    peer.read_exact(&mut text).expect("a proof");
    let content = known::bytes(std::str::from_utf8(&text).expect("text")).expect("digits");
    let iterations = u64::from_be_bytes(content[..8].try_into().expect("8 bytes"));
    let length = u64::from_be_bytes(content[8..16].try_into().expect("8 bytes")) as usize;
    let depth = u64::from(content[16 + length]);
    (iterations, depth, [&content[16..16 + length], &content[17 + length..]].concat())
}

pub(crate) fn check(d: &Discriminant, x: &[u8], proofs: &BTreeMap<u64, (u64, Vec<u8>)>, limits: &Limits) {
    for (&iterations, (depth, bytes)) in proofs {
        let question = Question { x, proof: bytes, iterations, depth: *depth };
        assert_eq!(verify(Lenient, d, &question, limits), Ok(()), "{iterations}");
        let other = Question { iterations: iterations + 1, ..question };
        assert!(verify(Lenient, d, &other, limits).is_err(), "a proof of any number is none");
    }
}
