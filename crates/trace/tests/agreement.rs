//! The copies against the processor's own single steps: every instruction, with all registers and flags.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::hint::black_box;

use lanework_trace::{Engine, Operation, Options, Snapshot, Step, Unavailable};

/// If set to 1, a machine without tracing is a failure.
const REQUIRE: &str = "LANEWORK_REQUIRE_TRACE";

/// The snapshot, or `None` with a message.
fn snapshot(operation: &impl Operation, engine: Engine) -> Option<Snapshot> {
    let options = Options { engine, ..Options::default() };
    match Snapshot::take(operation, options) {
        Ok(snapshot) => Some(snapshot),
        Err(Unavailable { why }) => {
            assert!(std::env::var_os(REQUIRE).is_none_or(|v| v != "1"), "{REQUIRE}=1, and {why}");
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

/// A sample of compiled code, without the heap, whose addresses depend on the tracer's own use.
struct Mixture;

trait Shape {
    fn area(&self) -> u64;
}
impl Shape for u32 {
    fn area(&self) -> u64 {
        u64::from(*self) * 3
    }
}
impl Shape for u64 {
    fn area(&self) -> u64 {
        self.rotate_left(7)
    }
}

fn digits(mut n: u64, depth: u32) -> u64 {
    if n < 10 || depth == 0 {
        return n;
    }
    let low = n % 10;
    n /= 10;
    low + digits(n, depth - 1)
}

fn named(word: u64) -> u64 {
    match word % 11 {
        0 => 17,
        1 => word >> 3,
        2 => word.wrapping_mul(word),
        3 => !word,
        4 => word.swap_bytes(),
        5 => u64::from(word.count_ones()),
        6 => word ^ 0x5555,
        7 => digits(word, 30),
        8 => word.leading_zeros().into(),
        9 => word.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        _ => 1,
    }
}

impl Operation for Mixture {
    type Input = [u64; 96];

    fn prepare(&self, case: usize) -> [u64; 96] {
        core::array::from_fn(|i| (i as u64 + case as u64).wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn operate(&self, words: &mut [u64; 96]) {
        words.sort_unstable();
        for i in 0..words.len() {
            words[i] = named(words[i]).wrapping_add(words[(i * 7) % 96]);
        }
        let mut bytes = [0u8; 700];
        for n in [0, 1, 3, 8, 15, 31, 33, 64, 100, 257, 600] {
            let (from, to) = bytes.split_at_mut(300);
            let n = black_box(n).min(300);
            to[..n].copy_from_slice(&from[..n]);
            bytes.copy_within(..black_box(n), 50);
            bytes[black_box(n)] = n as u8;
            words[0] ^= bytes.iter().position(|&b| b == black_box(33)).unwrap_or(5) as u64;
        }
        let wide = (u128::from(words[1]) << 64 | u128::from(words[2])) / (u128::from(words[3]) << 17 | 12345);
        words[4] = wide as u64;
        let real = black_box(words[5] as f64).sqrt().sin() * 1e6 + f64::from(words[6] as f32).ln();
        words[7] ^= real.to_bits();
        let shapes: [&dyn Shape; 2] = [&black_box(7u32), &black_box(9u64)];
        for i in 0..6 {
            words[8] ^= shapes[black_box(i) % 2].area();
        }
        words[9] = bytes.chunks(5).map(|c| c.iter().map(|&b| u64::from(b)).sum::<u64>()).max().unwrap_or(0);
    }

    fn answer(&self, words: &[u64; 96]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
}

fn record(step: &Step<'_>) -> (u64, [u64; 17]) {
    (step.address(), step.state())
}

fn copies_do_what_the_processor_does(case: usize) {
    let (Some(mut copies), Some(mut steps)) =
        (snapshot(&Mixture, Engine::Copies), snapshot(&Mixture, Engine::Steps))
    else {
        return;
    };
    let (mut all, mut at) = (Vec::new(), 0);
    let one = copies.run(case, |step, _| {
        all.push(record(step));
        true
    });
    let two = steps.run(case, |step, _| {
        let (address, state) = record(step);
        let (known, before) = all[at];
        assert_eq!(
            (address, state.map(|w| format!("{w:x}"))),
            (known, before.map(|w| format!("{w:x}"))),
            "step {at}: {}",
            step.site.instruction
        );
        at += 1;
        true
    });
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.steps, &one.ending), (two.steps, &two.ending));
    assert_eq!((at, all.len()), (two.steps as usize, one.steps as usize));
    let mut untraced = Mixture.prepare(case);
    Mixture.operate(&mut untraced);
    assert!(one.answer == Mixture.answer(&untraced) && two.answer == one.answer, "case {case}");
    println!("case {case}: {at} steps agree in address, registers and flags");
    assert!(at > 5000);
}

// Single steps take one core, so the cases are tests of their own.
#[test]
fn copies_do_what_the_processor_does_in_one_case() {
    copies_do_what_the_processor_does(0);
}

#[test]
fn copies_do_what_the_processor_does_in_another() {
    copies_do_what_the_processor_does(1);
}

#[test]
fn a_case_equals_itself() {
    let Some(mut snapshot) = snapshot(&Mixture, Engine::Copies) else { return };
    let report = snapshot.compare(&[1, 1, 1]).unwrap();
    assert_eq!(report.differences, []);
    assert!(report.cases == 2 && report.compared == 2 * report.steps && report.touched > 1000, "{report:?}");
    // It differs from another case: it sorts and indexes by its data.
    assert!(!snapshot.compare(&[1, 2]).unwrap().differences.is_empty());
}
