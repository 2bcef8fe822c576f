//! The worker against a timelord that behaves as Chia's does: it parks workers, pauses at any time, and sends requests
//! in any order.
#![forbid(unsafe_code)]

mod timelord;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use lanework_vdf::client::{ClientError, Event, MOST_REQUESTS, Summary, serve};
use lanework_vdf::{Discriminant, Form, Lenient, Limits, Options};
use rustix::net::sockopt;
use timelord::{PATIENCE, check, meet, meet_watched, never, proof, read, request, task};

/// Much shorter than the silences of these timelords.
const SHORT: Duration = Duration::from_millis(300);

fn group(seed: &[u8]) -> (Discriminant, Vec<u8>) {
    let d = Discriminant::from_seed(seed, 512).expect("a discriminant");
    let x = Form::generator(&d).expect("D is 1 modulo 8").to_bytes(&d);
    (d, x)
}

/// Writes the task as Chia's timelord does: kind, discriminant and form apart.
fn send_task(peer: &mut TcpStream, d: &Discriminant, x: &[u8]) {
    let task = task("N", d, x);
    let form = task.len() - 1 - x.len();
    for part in [&task[..1], &task[1..form], &task[form..]] {
        peer.write_all(part).expect("the worker listens");
    }
    assert_eq!(&read::<2>(peer), b"OK");
}

fn ask(peer: &mut TcpStream, requests: impl IntoIterator<Item = u64>) {
    let text: String = requests.into_iter().map(request).collect();
    peer.write_all(text.as_bytes()).expect("the worker listens");
}

/// The next `count` proofs.
fn proofs(peer: &mut TcpStream, count: usize) -> BTreeMap<u64, (u64, Vec<u8>)> {
    let mut out = BTreeMap::new();
    while out.len() < count {
        let length = read::<4>(peer);
        assert_ne!(&length, b"STOP", "the worker gave up");
        let (iterations, depth, bytes) = proof(peer, length);
        out.insert(iterations, (depth, bytes));
    }
    out
}

fn stop(peer: &mut TcpStream) {
    peer.write_all(b"010").expect("the worker listens");
    loop {
        let length = read::<4>(peer);
        if &length == b"STOP" {
            break;
        }
        // A proof that was on its way.
        proof(peer, length);
    }
    peer.write_all(b"ACK").expect("the worker listens");
    assert_eq!(peer.read(&mut [0]).expect("the end"), 0, "nothing follows");
}

#[test]
fn a_parked_worker_waits_for_its_task_and_for_requests() {
    let (d, x) = group(b"parked");
    let (proofs, result, _) = meet(SHORT, &never(), |mut peer| {
        // Silence for longer than a frame may take.
        std::thread::sleep(4 * SHORT);
        send_task(&mut peer, &d, &x);
        std::thread::sleep(4 * SHORT);
        ask(&mut peer, [70_000]);
        let mut all = proofs(&mut peer, 1);
        // Late requests: the chain has passed them, in the first and in the second of Chia's segments.
        ask(&mut peer, [66_000, 5]);
        all.extend(proofs(&mut peer, 2));
        std::thread::sleep(2 * SHORT);
        stop(&mut peer);
        all
    });
    check(&d, &x, &proofs, &Limits::default());
    assert_eq!(proofs.keys().copied().collect::<Vec<_>>(), [5, 66_000, 70_000]);
    let summary = result.expect("a whole conversation");
    assert_eq!((summary.requests, summary.proofs), (3, 3));
}

#[test]
fn a_parked_worker_is_ended_by_its_caller() {
    let over = never();
    let (heard, result, _) = meet(PATIENCE, &over, |mut peer| {
        over.store(true, Ordering::Relaxed);
        let mut heard = Vec::new();
        let _ = peer.read_to_end(&mut heard);
        heard
    });
    assert!(matches!(result, Err(ClientError::Interrupted)), "{result:?}");
    assert!(heard.is_empty());
}

#[test]
fn a_timelord_that_leaves_a_parked_worker_ends_the_conversation() {
    let ((), result, _) = meet(SHORT, &never(), |peer| {
        std::thread::sleep(2 * SHORT);
        drop(peer);
    });
    assert!(matches!(result, Err(ClientError::Closed { .. })), "{result:?}");
}

#[test]
fn near_requests_are_answered_whatever_waits() {
    let (d, x) = group(b"far and near");
    let (proofs, result, _) = meet(PATIENCE, &never(), |mut peer| {
        send_task(&mut peer, &d, &x);
        // More requests than may wait, and none that the chain reaches while this test runs.
        ask(&mut peer, (0..MOST_REQUESTS as u64 + 5).map(|i| (1 << 35) + i));
        ask(&mut peer, [20_000, 300]);
        let proofs = proofs(&mut peer, 2);
        stop(&mut peer);
        proofs
    });
    check(&d, &x, &proofs, &Limits::default());
    assert_eq!(proofs.keys().copied().collect::<Vec<_>>(), [300, 20_000]);
    let summary = result.expect("a whole conversation");
    assert_eq!((summary.requests, summary.proofs), (MOST_REQUESTS as u64 + 7, 2));
}

/// The farthest come first, so that nearer ones displace them: at least as many as may wait are answered.
#[test]
fn the_nearest_of_many_requests_at_once_are_answered() {
    let (d, x) = group(b"many at once");
    let most = MOST_REQUESTS as u64;
    let (proofs, result, _) = meet(PATIENCE, &never(), |mut peer| {
        send_task(&mut peer, &d, &x);
        ask(&mut peer, (1..=most + 100).rev());
        let mut all = BTreeMap::new();
        while all.range(..=most).count() < MOST_REQUESTS {
            all.extend(proofs(&mut peer, 1));
        }
        stop(&mut peer);
        all
    });
    let some = proofs.into_iter().filter(|(n, _)| n % 97 == 1).collect();
    check(&d, &x, &some, &Limits::default());
    assert_eq!(result.expect("a whole conversation").requests, most + 100);
}

/// A timelord that asks faster than the worker handles requests fills the connection, not the worker's memory.
#[test]
fn a_flood_of_requests_stalls_the_timelord() {
    /// More than two sockets hold.
    const FLOOD: usize = 64 << 20;
    let (d, x) = group(b"a flood");
    let (stalled, over) = (AtomicBool::new(false), never());
    let timelord = |mut peer: TcpStream| {
        send_task(&mut peer, &d, &x);
        peer.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
        let (text, mut written) = (request(5).repeat(1 << 16), 0);
        while written < FLOOD {
            match peer.write(text.as_bytes()) {
                Ok(n) => written += n,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(e) => panic!("{e}"),
            }
        }
        over.store(true, Ordering::Relaxed);
        stalled.store(true, Ordering::Relaxed);
        written
    };
    let mut busy = |event: &Event<'_>| {
        while matches!(event, Event::Requested(_)) && !stalled.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let (written, result, _) = meet_watched(PATIENCE, &over, timelord, &mut busy);
    assert!(written < FLOOD, "{written} bytes were read and kept");
    assert!(matches!(result, Err(ClientError::Interrupted | ClientError::Io(_))), "{result:?}");
}

/// A timelord that asks and reads no answer; `over` is set once the worker cannot write, if it is given.
fn unheard(patience: Duration, over: Option<&AtomicBool>) -> (usize, Result<Summary, ClientError>) {
    let (d, x) = group(b"unheard");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    // Accepted connections inherit it.
    sockopt::set_socket_recv_buffer_size(&listener, 4096).expect("a small buffer");
    let address = listener.local_addr().expect("an address");
    let (sent, never, (end, ended)) = (AtomicUsize::new(0), never(), channel());
    std::thread::scope(|scope| {
        let sent = &sent;
        scope.spawn(move || {
            let (mut peer, _) = listener.accept().expect("a worker");
            send_task(&mut peer, &d, &x);
            ask(&mut peer, 1..=MOST_REQUESTS as u64);
            if let Some(over) = over {
                let mut before = 0;
                while before == 0 || sent.load(Ordering::Relaxed) > before {
                    before = sent.load(Ordering::Relaxed);
                    std::thread::sleep(Duration::from_secs(1));
                }
                over.store(true, Ordering::Relaxed);
            }
            // The connection stays open until the worker has left.
            ended.recv().expect("the worker leaves");
        });
        let connection = TcpStream::connect(address).expect("a timelord");
        sockopt::set_socket_send_buffer_size(&connection, 4096).expect("a small buffer");
        let result =
            serve(&connection, Lenient, Options::default(), patience, over.unwrap_or(&never), &mut |event| {
                if matches!(event, Event::Sent { .. }) {
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        end.send(()).expect("the timelord waits");
        (sent.load(Ordering::Relaxed), result)
    })
}

#[test]
fn a_timelord_that_reads_nothing_holds_nobody_back() {
    let (sent, result) = unheard(Duration::from_secs(20), Some(&never()));
    assert!(matches!(result, Err(ClientError::Interrupted)), "{result:?}");
    assert!(sent < MOST_REQUESTS, "the connection took all answers");
    let (sent, result) = unheard(SHORT, None);
    let late = |e: &ClientError| matches!(e, ClientError::Io(e) if e.kind() == ErrorKind::TimedOut);
    assert!(result.as_ref().is_err_and(late), "{result:?}");
    assert!(sent < MOST_REQUESTS, "the connection took all answers");
}
