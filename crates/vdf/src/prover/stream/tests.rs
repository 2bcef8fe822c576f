//! Streams against the textbook proofs.
#![forbid(unsafe_code)]

use super::*;
use crate::backend::Engine;
use crate::prover::Task;
use crate::spec;

/// Long enough for any machine; a test that waits this long fails.
const PATIENCE: Duration = Duration::from_secs(120);
/// Segments of 1,024, 4,096 and 16,384 squarings: proving is not much slower than squaring.
const SHORT: Scheme = Scheme { shortest: 10, lengths: 3, witnesses: 8 };

fn group() -> (Discriminant, Form) {
    let d = Discriminant::from_seed(b"a stream", 256).expect("a discriminant");
    let x = Form::generator(&d).expect("a generator");
    (d, x)
}

fn options(threads: usize) -> Options<'static> {
    Options::new(Engine::portable()).threads(threads)
}

/// The next answer, which must equal the textbook proof for the same segments and have at most the allowed number.
fn right(stream: &Stream, d: &Discriminant, x: &Form, scheme: Scheme) -> (u64, usize) {
    let (iterations, proof) = stream.receive(PATIENCE).expect("no fault").expect("a proof in time");
    let lengths: Vec<u64> = proof.segments.iter().map(|segment| segment.iterations).collect();
    let task = Task { segments: lengths.clone(), ..Task::new(d.clone(), x.clone(), iterations) };
    let expected = spec::prove(&task).expect("a proof");
    assert!(proof == expected, "{iterations} in {lengths:?}");
    assert!(lengths.len() <= scheme.witnesses, "{lengths:?}");
    let left = iterations - lengths.iter().sum::<u64>();
    assert!(left == iterations % scheme.length(0) || left == scheme.length(0) || lengths.is_empty());
    (iterations, lengths.len())
}

#[test]
fn requests_ahead_and_behind_are_answered() {
    let (d, x) = group();
    for threads in [2, 3] {
        let stream = Stream::with_scheme(&d, &x, &options(threads), SHORT).expect("a stream");
        let ahead = [1, 1023, 1024, 1025, 4000, 4096, 9000, 2048, 4000];
        for iterations in ahead {
            stream.request(iterations).expect("asked");
        }
        let mut answered: Vec<u64> = ahead.iter().map(|_| right(&stream, &d, &x, SHORT).0).collect();
        answered.sort_unstable();
        assert_eq!(answered, [1, 1023, 1024, 1025, 2048, 4000, 4000, 4096, 9000]);
        // By now the chain is past these.
        for iterations in [5, 5120, 8191] {
            assert!(stream.progress().squared >= 9000);
            stream.request(iterations).expect("asked");
            assert_eq!(right(&stream, &d, &x, SHORT).0, iterations);
        }
        // Long after, the longest segments are proved and used.
        while stream.progress().proved < 20_000 {
            assert!(stream.receive(Duration::from_millis(20)).expect("no fault").is_none());
        }
        stream.request(16_384 + 7).expect("asked");
        let (_, witnesses) = right(&stream, &d, &x, SHORT);
        assert!((1..=8).contains(&witnesses), "{witnesses}");
        assert!(matches!(stream.request(0), Err(ProverError::NoIterations)));
        let end = stream.stop();
        assert!(end.squared >= 20_000 && end.waiting == 0, "{end:?}");
    }
}

#[test]
fn what_is_not_reached_is_not_answered_and_stops_at_once() {
    let (d, x) = group();
    let stream = Stream::start(&d, &x, &options(2)).expect("a stream");
    stream.request(1 << 35).expect("asked");
    stream.request(1000).expect("asked");
    assert_eq!(right(&stream, &d, &x, Scheme::default()), (1000, 0));
    assert!(stream.receive(Duration::from_millis(10)).expect("no fault").is_none());
    assert_eq!(stream.stop().waiting, 1);
}

/// A timeout that no clock reaches is a wait without end.
#[test]
fn any_timeout_is_possible() {
    let (d, x) = group();
    let stream = Stream::with_scheme(&d, &x, &options(2), SHORT).expect("a stream");
    for timeout in [Duration::MAX, Duration::from_secs(u64::MAX / 2), Duration::from_secs(1 << 40)] {
        stream.request(1000).expect("asked");
        let answer = stream.receive(timeout).expect("no fault");
        assert!(answer.is_some_and(|(iterations, _)| iterations == 1000), "{timeout:?}");
    }
    assert!(stream.receive(Duration::ZERO).expect("no fault").is_none());
}

#[test]
fn the_number_of_threads_has_bounds() {
    assert_eq!([0, 1, 2, 3, 9].map(provers), [1, 1, 1, 2, 8]);
    assert_eq!([Threads::MOST, Threads::MOST + 1, usize::MAX].map(provers), [Threads::MOST - 1; 3]);
}

/// One proving thread starts after all requests: it takes them from the smallest on, with the segments of each.
#[test]
fn the_smallest_request_is_served_first() {
    let (d, x) = group();
    let (mut stream, chain) = Stream::at_rest(&d, &x, &options(2), SHORT).expect("a stream");
    stream.spawn("squaring", move |shared| square::run(shared, chain)).expect("a thread");
    while stream.progress().squared < 10_000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut asked: Vec<u64> = (1..10).rev().map(|i| 1001 * i).chain([4096, 5, 700]).collect();
    for &iterations in &asked {
        stream.request(iterations).expect("asked");
    }
    // A request is withdrawn.
    stream.request(2500).expect("asked");
    stream.withdraw(2500);
    stream.withdraw(2501);
    stream.spawn("proving", prove::run).expect("a thread");
    let answered: Vec<u64> = asked.iter().map(|_| right(&stream, &d, &x, SHORT).0).collect();
    asked.sort_unstable();
    assert_eq!(answered, asked);
    assert_eq!(stream.stop().waiting, 0);
}

/// With little memory the squaring waits for the proofs, and continues.
#[test]
fn little_memory_is_enough() {
    let (d, x) = group();
    let stream = Stream::with_scheme(&d, &x, &options(2).memory(10_000), SHORT).expect("a stream");
    stream.request(5000).expect("asked");
    assert_eq!(right(&stream, &d, &x, SHORT).0, 5000);
}

/// The chain ends where no segments prove more, and later requests are answered all the same.
#[test]
fn a_stream_has_an_end() {
    assert_eq!(Scheme::default().longest(), crate::client::LONGEST);
    let scheme = Scheme { shortest: 4, lengths: 2, witnesses: 3 };
    let most = 3 * 64 + 15;
    assert_eq!(scheme.longest(), most);
    let (d, x) = group();
    let stream = Stream::with_scheme(&d, &x, &options(2), scheme).expect("a stream");
    let refused = stream.request(most + 1);
    assert!(
        matches!(refused, Err(ProverError::TooMany { got, most: 207 }) if got == most + 1),
        "{refused:?}"
    );
    stream.request(most).expect("asked");
    assert_eq!(right(&stream, &d, &x, scheme), (most, 3));
    assert_eq!(stream.progress().squared, most);
    for (iterations, segments) in [(most, 3), (most - 1, 3), (80, 1), (5, 0), (65, 1)] {
        stream.request(iterations).expect("asked");
        assert_eq!(right(&stream, &d, &x, scheme), (iterations, segments));
    }
    let end = stream.stop();
    assert_eq!((end.squared, end.waiting), (most, 0));
}

#[test]
fn impossible_streams_are_refused() {
    let (d, x) = group();
    for scheme in [
        Scheme { shortest: 3, ..SHORT },
        Scheme { shortest: 31, ..SHORT },
        Scheme { lengths: 0, ..SHORT },
        Scheme { shortest: 30, lengths: 17, ..SHORT },
        Scheme { lengths: u32::MAX, ..SHORT },
    ] {
        let refused = Stream::with_scheme(&d, &x, &options(2), scheme);
        assert!(matches!(refused, Err(ProverError::Segments)), "{scheme:?}");
    }
    let other = Discriminant::from_seed(b"another stream", 256).expect("a discriminant");
    assert!(matches!(Stream::start(&other, &x, &options(2)), Err(ProverError::Chain(ChainError::Form))));
}
