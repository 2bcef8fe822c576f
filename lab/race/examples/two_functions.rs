//! Two ways to count the bits of a buffer, checked, then raced in pairs.
//!
//! `cargo run --release -p lanework-race --example two_functions [-- SECONDS]`

use std::error::Error;
use std::hint::black_box;

use lanework_race::clock::Monotonic;
use lanework_race::gate::{Gate, GateRow};
use lanework_race::machine::Machine;
use lanework_race::pairing::Plan;
use lanework_race::race::in_process;
use lanework_race::record::Record;
use lanework_race::subject::{Facts, Subject, Variant, work};
use lanework_race::table::{Style, render};

type Count = fn(&[u64]) -> u32;

/// Kernighan's method: one iteration for each set bit.
fn one_by_one(words: &[u64]) -> u32 {
    let count = |mut word: u64| {
        let mut bits = 0;
        while word != 0 {
            word &= word - 1;
            bits += 1;
        }
        bits
    };
    words.iter().map(|&word| count(word)).sum()
}

/// The standard library's method.
fn built_in(words: &[u64]) -> u32 {
    words.iter().map(|word| word.count_ones()).sum()
}

const BOTH: [(&str, Count); 2] = [("one-by-one", one_by_one), ("built-in", built_in)];

/// A contestant: it prepares its input once and is then timed call by call.
fn variant((name, count): (&'static str, Count)) -> Variant {
    Variant::new(name, move || {
        let words: Vec<u64> = (0..1000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        Ok(work(
            move || {
                black_box(count(black_box(&words)));
            },
            move || Facts { backend: name.into(), notes: vec![] },
        ))
    })
}

/// Nothing is timed unless cases passed and none failed.
fn gate() -> Gate {
    let cases: [(&[u64], u32); 4] =
        [(&[], 0), (&[0], 0), (&[u64::MAX, 1], 65), (&[0x8000_0000_0000_0001], 2)];
    Gate::new(move || {
        let row = |(name, count): (&str, Count)| {
            let passed = cases.iter().filter(|(words, bits)| count(words) == *bits).count();
            GateRow {
                what: "counted by hand".into(),
                backend: name.into(),
                passed: passed as u64,
                failed: (cases.len() - passed) as u64,
                skipped: 0,
                why: String::new(),
            }
        };
        Ok(BOTH.map(row).to_vec())
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(3.0), |text| text.parse())?;
    let plan = Plan { budget_ns: (seconds * 1e9) as u64, ..Plan::default() };
    let clock = Monotonic::new();
    let mut machine = Machine::inspect(&clock, vec![]);
    let subject = Subject::new("bits/1000", gate(), variant(BOTH[0])).with(variant(BOTH[1]));
    let outcome = in_process(&subject, &plan, &clock)?;
    machine.finish(&clock);
    let mut record = Record::new("bits", "two_functions", machine);
    record.plan = Some(plan);
    record.add(outcome);
    print!("{}", render(&record, Style::for_stdout(std::env::var("NO_COLOR").ok().as_deref())));
    Ok(())
}
