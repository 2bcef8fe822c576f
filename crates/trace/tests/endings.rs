//! Runs that do not return: each ends soon, with its reason.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::hint::black_box;
use std::time::Duration;

use lanework_trace::{Ending, Operation, Options, Snapshot};

struct Endings;

#[inline(never)]
fn bottomless(n: u64) -> u64 {
    let room = black_box([n; 1000]);
    if n == u64::MAX { 0 } else { bottomless(n + 1) + room[7] }
}

const RETURNS: usize = 0;
const ABORTS: usize = 1;
const OVERFLOWS: usize = 2;
const PANICS: usize = 3;
const PANICS_BEFORE: usize = 4;
const EXITS: usize = 5;
const SPAWNS: usize = 6;
const GOES_ON: usize = 7;
const SLEEPS: usize = 8;

impl Operation for Endings {
    type Input = usize;

    fn prepare(&self, case: usize) -> usize {
        assert!(case != PANICS_BEFORE, "no input");
        case
    }

    fn operate(&self, case: &mut usize) {
        match *case {
            ABORTS => std::process::abort(),
            OVERFLOWS => {
                black_box(bottomless(0));
            }
            PANICS => std::panic::resume_unwind(Box::new("a reason".to_string())),
            EXITS => std::process::exit(3),
            SPAWNS => {
                let _ = std::thread::Builder::new().spawn(|| ());
            }
            GOES_ON => loop {
                black_box(());
            },
            SLEEPS => std::thread::sleep(Duration::from_secs(1000)),
            _ => *case = 77,
        }
    }

    fn answer(&self, case: &usize) -> Vec<u8> {
        vec![*case as u8]
    }
}

fn take(options: Options) -> Option<Snapshot> {
    match Snapshot::take(&Endings, options) {
        Ok(snapshot) => Some(snapshot),
        Err(why) => {
            assert!(std::env::var_os("LANEWORK_REQUIRE_TRACE").is_none_or(|v| v != "1"), "{why}");
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

#[test]
fn every_ending_has_its_reason() {
    let options = Options { steps: 2_000_000, ..Options::default() };
    let Some(mut snapshot) = take(options) else { return };
    let mut ending = |case| snapshot.run(case, |_, _| true).unwrap();
    assert_eq!((ending(RETURNS).ending, ending(RETURNS).answer), (Ending::Returned, vec![77]));
    assert!(matches!(ending(ABORTS).ending, Ending::Signal { signal: libc::SIGABRT, .. }));
    let overflow = ending(OVERFLOWS).ending;
    let Ending::Signal { signal: libc::SIGSEGV, address } = overflow else { panic!("{overflow:?}") };
    assert_eq!(ending(PANICS).ending, Ending::Panicked("a reason".into()));
    assert_eq!(ending(PANICS_BEFORE).ending, Ending::Panicked("no input".into()));
    assert_eq!(ending(EXITS).ending, Ending::Exited);
    assert!(matches!(ending(SPAWNS).ending, Ending::Unsupported { why, .. } if why.contains("thread")));
    assert_eq!(ending(GOES_ON).ending, Ending::TooLong);
    // The snapshot still works.
    assert_eq!(ending(RETURNS).ending, Ending::Returned);
    let place = snapshot.symbols().place(address);
    assert!(place.is_in("bottomless"), "{place}");
}

#[test]
fn a_run_that_waits_is_ended() {
    let options = Options { time: Duration::from_millis(300), ..Options::default() };
    let Some(mut snapshot) = take(options) else { return };
    assert_eq!(snapshot.run(SLEEPS, |_, _| true).unwrap().ending, Ending::TimedOut);
    // Killed, so this snapshot is unusable, and says so.
    assert!(snapshot.run(RETURNS, |_, _| true).is_err());
}

#[test]
fn who_looks_can_stop() {
    let Some(mut snapshot) = take(Options::default()) else { return };
    let mut left = 10;
    let outcome = snapshot.run(GOES_ON, |_, _| {
        left -= 1;
        left > 0
    });
    assert_eq!(outcome.unwrap().ending, Ending::Stopped);
    assert_eq!(snapshot.run(RETURNS, |_, _| true).unwrap().ending, Ending::Returned);
}

#[test]
fn the_longest_time_is_a_time() {
    let Some(mut snapshot) = take(Options { time: Duration::MAX, ..Options::default() }) else { return };
    assert_eq!(snapshot.run(RETURNS, |_, _| true).unwrap().ending, Ending::Returned);
}
