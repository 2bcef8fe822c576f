//! Instructions a second of each way of tracing: `cargo run --release -p lanework-trace --example speed`.
#![cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), no_main)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::hint::black_box;
use std::time::Instant;

use lanework_trace::{Advance, Correspondence, Engine, Operation, Options, Snapshot, Unavailable};

/// Loads, stores, branches and calls, about 17 instructions a turn.
struct Work(u64);

#[inline(never)]
fn turn(table: &mut [u64; 256], x: u64) -> u64 {
    let at = (x >> 24) as usize % 256;
    table[at] = table[at].rotate_left(7) ^ x;
    if table[at] & 1 == 0 { x.wrapping_mul(3) } else { x.wrapping_add(table[255 - at]) }
}

#[inline(never)]
extern "C" fn turns(table: &mut [u64; 256], n: u64) {
    let mut x = 1;
    for _ in 0..n {
        x = black_box(turn(table, x)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
}

impl Operation for Work {
    type Input = [u64; 256];

    fn prepare(&self, _: usize) -> [u64; 256] {
        core::array::from_fn(|i| i as u64)
    }

    fn operate(&self, table: &mut [u64; 256]) {
        turns(table, self.0);
    }

    fn stack(&self, case: usize) -> u64 {
        case as u64
    }
}

fn say(what: &str, steps: u64, begin: Instant) {
    let seconds = begin.elapsed().as_secs_f64();
    println!("{what:<44} {:>12.0} a second ({steps} in {seconds:.2} s)", steps as f64 / seconds);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let copies = |writes, extended_state| Options { writes, extended_state, ..Options::default() };
    let work = Work(100_000);
    for (what, options, n) in [
        ("copies", copies(false, false), 100_000),
        ("copies, with written bytes", copies(true, false), 100_000),
        ("copies, with the extended state", copies(false, true), 10_000),
    ] {
        let mut snapshot = Snapshot::take(&Work(n), options)?;
        snapshot.run(0, |_, _| true)?;
        let begin = Instant::now();
        say(what, snapshot.run(0, |_, _| true)?.steps, begin);
    }
    let mut snapshot = Snapshot::take(&work, copies(false, false))?;
    let mut accesses = Vec::new();
    let begin = Instant::now();
    let outcome = snapshot.run(0, |step, fs_base| {
        step.site.accesses(step, fs_base, &mut accesses);
        true
    })?;
    say("copies, addresses and widths of all accesses", outcome.steps, begin);
    let begin = Instant::now();
    let report = snapshot.compare(&[0, 1, 2])?;
    assert!(report.differences.is_empty());
    say("two runs compared for leaks", report.compared, begin);
    let begin = Instant::now();
    let first = turns as *const () as u64;
    let mut snapshot = Snapshot::take(&work, copies(true, false))?;
    let lockstep = snapshot.lockstep([0, 1], &Correspondence::shifted(first..first + 1000, first))?;
    assert!(lockstep.divergence.is_none());
    say("two versions in lockstep, with written bytes", lockstep.compared, begin);
    let steps = Options { engine: Engine::Steps, ..Options::default() };
    match Snapshot::take(&Work(3000), steps) {
        Ok(mut snapshot) => {
            let begin = Instant::now();
            say("single steps (ptrace)", snapshot.run(0, |_, _| true)?.steps, begin);
            let begin = Instant::now();
            let outcomes = snapshot.pair([0, 1], |_, _, _| Advance::Both)?;
            say("pairs of single steps", outcomes[0].steps, begin);
        }
        Err(Unavailable { why }) => println!("no single steps: {why}"),
    }
    Ok(())
}
