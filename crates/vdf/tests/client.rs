//! A listening timelord and the worker that calls it: like chiavdf's emulator, and misbehaving.
#![forbid(unsafe_code)]

mod timelord;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lanework_vdf::client::ClientError;
use lanework_vdf::client::frames::{Awaited, FrameError};
use lanework_vdf::{DecodeError, Discriminant, DiscriminantError, Form, Limits};
use timelord::{PATIENCE, check, meet, never, proof, read, request, task};

/// The emulator: sends the task and the requests, takes `expect` proofs, and stops. Returns the proofs.
fn emulator(
    mut peer: TcpStream,
    task: &[u8],
    requests: &[u64],
    expect: usize,
) -> BTreeMap<u64, (u64, Vec<u8>)> {
    peer.write_all(task).expect("the worker listens");
    assert_eq!(&read::<2>(&mut peer), b"OK");
    let text: String = requests.iter().map(|&iterations| request(iterations)).collect();
    peer.write_all(text.as_bytes()).expect("the worker listens");
    let mut proofs = BTreeMap::new();
    while proofs.len() < expect {
        let length = read::<4>(&mut peer);
        assert_ne!(&length, b"STOP", "the worker gave up");
        let (iterations, depth, bytes) = proof(&mut peer, length);
        proofs.insert(iterations, (depth, bytes));
    }
    peer.write_all(b"010").expect("the worker listens");
    loop {
        let length = read::<4>(&mut peer);
        if &length == b"STOP" {
            break;
        }
        // A proof that was on its way.
        let (iterations, depth, bytes) = proof(&mut peer, length);
        proofs.insert(iterations, (depth, bytes));
    }
    peer.write_all(b"ACK").expect("the worker listens");
    assert_eq!(peer.read(&mut [0]).expect("the end"), 0, "nothing follows");
    proofs
}

#[test]
fn a_timelord_gets_its_proofs() {
    let d = Discriminant::from_seed(b"a timelord", 512).expect("a discriminant");
    let start = Form::generator(&d).expect("D is 1 modulo 8").power(77, &d);
    for (kind, x) in [("T", Form::generator(&d).expect("D is 1 modulo 8")), ("N", start)] {
        let x = x.to_bytes(&d);
        // Out of order, one of them twice, and one that the chain does not reach before it is stopped.
        let requests = [90_000, 1, 40_000, 40_000, 65_536, 1 << 35];
        let (proofs, result, sent) =
            meet(PATIENCE, &never(), |peer| emulator(peer, &task(kind, &d, &x), &requests, 4));
        check(&d, &x, &proofs, &Limits::default());
        assert_eq!(proofs.keys().copied().collect::<Vec<_>>(), [1, 40_000, 65_536, 90_000]);
        let summary = result.expect("a whole conversation");
        assert_eq!((summary.requests, summary.proofs, sent.len()), (6, 4, 4));
        assert!(summary.squarings >= 90_000);
    }
}

#[test]
fn one_segment_for_one_request() {
    let d = Discriminant::from_seed(b"one request", 1024).expect("a discriminant");
    let x = Form::generator(&d).expect("D is 1 modulo 8").to_bytes(&d);
    let (proofs, result, _) =
        meet(PATIENCE, &never(), |peer| emulator(peer, &task("S", &d, &x), &[20_000, 10_000], 1));
    check(&d, &x, &proofs, &Limits { depth: 0, ..Limits::default() });
    assert_eq!(proofs.keys().copied().collect::<Vec<_>>(), [20_000], "the second is ignored");
    assert_eq!(result.expect("a whole conversation").proofs, 1);
}

#[test]
fn a_timelord_that_stops_at_once() {
    let d = Discriminant::from_seed(b"no request", 512).expect("a discriminant");
    let x = Form::generator(&d).expect("D is 1 modulo 8").to_bytes(&d);
    for kind in ["T", "S", "N"] {
        let (proofs, result, _) =
            meet(PATIENCE, &never(), |peer| emulator(peer, &task(kind, &d, &x), &[], 0));
        assert!(proofs.is_empty());
        assert_eq!(result.expect("a whole conversation").proofs, 0);
    }
}

/// A timelord's frames and the answers, with the connection left open.
fn saying(mut peer: TcpStream, bytes: &[u8]) -> Vec<u8> {
    // A worker that is already gone needs no more.
    let _ = peer.write_all(bytes);
    let mut heard = Vec::new();
    let _ = peer.read_to_end(&mut heard);
    heard
}

#[test]
fn bad_frames_end_the_conversation() {
    let d = Discriminant::from_seed(b"bad frames", 512).expect("a discriminant");
    let x = Form::generator(&d).expect("D is 1 modulo 8").to_bytes(&d);
    let good = task("T", &d, &x);
    let after = |tail: &[u8]| [good.as_slice(), tail].concat();
    let mut no_form = x.clone();
    no_form[0] = 0;
    let is = |error: FrameError| move |e: &ClientError| matches!(e, ClientError::Frame(e) if *e == error);
    type Expected = Box<dyn Fn(&ClientError) -> bool>;
    let cases: Vec<(&str, Vec<u8>, Expected)> = vec![
        ("a letter", b"Q".to_vec(), Box::new(is(FrameError::Kind { got: b'Q' }))),
        (
            "a length of letters",
            b"Txyz".to_vec(),
            Box::new(is(FrameError::Digits { what: Awaited::DiscriminantLength })),
        ),
        (
            "an oversized discriminant",
            [b"T999", &[b'1'; 999][..]].concat(),
            Box::new(is(FrameError::Length { what: Awaited::Discriminant, got: 999, most: 349 })),
        ),
        (
            "an even discriminant",
            b"T005-1024".to_vec(),
            Box::new(is(FrameError::Discriminant(DiscriminantError::NotOneModuloFour))),
        ),
        (
            "a positive discriminant",
            b"T0041023".to_vec(),
            Box::new(is(FrameError::Discriminant(DiscriminantError::NotNegative))),
        ),
        ("a form of no group", task("N", &d, &no_form), Box::new(is(FrameError::Form(DecodeError::NoA)))),
        (
            "a form of 255 bytes",
            task("N", &d, &[8; 255]),
            Box::new(is(FrameError::Form(DecodeError::Length { expected: 100, got: 255 }))),
        ),
        (
            "an oversized request",
            after(b"99123"),
            Box::new(is(FrameError::Length { what: Awaited::Request, got: 99, most: 20 })),
        ),
        (
            "a request of letters",
            after(b"05hello"),
            Box::new(is(FrameError::Digits { what: Awaited::Request })),
        ),
        ("2^64 squarings", after(b"2018446744073709551616"), Box::new(is(FrameError::Overflow))),
        ("no ACK", after(b"010NAK"), Box::new(is(FrameError::Ack))),
        ("a megabyte", vec![b'7'; 1 << 20], Box::new(is(FrameError::Kind { got: b'7' }))),
    ];
    for (what, bytes, is_right) in cases {
        let (heard, result, _) = meet(PATIENCE, &never(), |peer| saying(peer, &bytes));
        let error = result.expect_err(what);
        assert!(is_right(&error), "{what}: {error:?}");
        // A worker that had begun reports that it has stopped, if the timelord still listens.
        if bytes.starts_with(&good) {
            assert_eq!(heard, b"OKSTOP", "{what}");
        }
    }
}

#[test]
fn a_connection_that_ends_early() {
    let d = Discriminant::from_seed(b"early ends", 512).expect("a discriminant");
    let x = Form::generator(&d).expect("D is 1 modulo 8").to_bytes(&d);
    let whole = [task("N", &d, &x).as_slice(), b"0512345"].concat();
    let size = whole.len();
    for cut in [0, 1, 3, 40, size - 107, size - 50, size - 7, size - 6, size - 2, size] {
        let (_, result, _) = meet(PATIENCE, &never(), |mut peer| {
            peer.write_all(&whole[..cut]).expect("the worker listens");
        });
        // A peer that is gone shows as an end or as a connection reset.
        let error = result.expect_err("an early end");
        assert!(matches!(error, ClientError::Closed { .. } | ClientError::Io(_)), "{cut}: {error:?}");
    }
}

#[test]
fn silence_within_a_frame_ends_a_conversation() {
    let d = Discriminant::from_seed(b"silence", 512).expect("a discriminant");
    let x = Form::generator(&d).expect("D is 1 modulo 8").to_bytes(&d);
    let good = task("N", &d, &x);
    let patience = Duration::from_millis(700);
    for (said, missing) in [
        (b"N".to_vec(), Awaited::DiscriminantLength),
        (good[..100].to_vec(), Awaited::Discriminant),
        ([good.as_slice(), b"07123"].concat(), Awaited::Request),
        ([good.as_slice(), b"0"].concat(), Awaited::RequestLength),
        ([good.as_slice(), b"010"].concat(), Awaited::Ack),
    ] {
        let (_, result, _) = meet(patience, &never(), |peer| saying(peer, &said));
        let error = result.expect_err("silence");
        assert!(
            matches!(error, ClientError::Silent { awaited } if awaited == missing),
            "{missing}: {error:?}"
        );
    }
}

#[test]
fn the_caller_can_end_it() {
    let d = Discriminant::from_seed(b"interrupted", 512).expect("a discriminant");
    let x = Form::generator(&d).expect("D is 1 modulo 8").to_bytes(&d);
    let over = never();
    let (heard, result, _) = meet(PATIENCE, &over, |mut peer| {
        peer.write_all(&task("N", &d, &x)).expect("the worker listens");
        assert_eq!(&read::<2>(&mut peer), b"OK");
        over.store(true, Ordering::Relaxed);
        saying(peer, b"")
    });
    assert!(matches!(result, Err(ClientError::Interrupted)), "{result:?}");
    assert_eq!(heard, b"STOP");
}
