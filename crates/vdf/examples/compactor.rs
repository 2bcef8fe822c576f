//! The cost of proofs that are gathered while squaring: `compactor BACKEND ITERATIONS [ROUNDS]`, for one result and for
//! eight of one chain, on one thread and on two. Squaring alone and each of these take turns. Figures are medians of
//! ratios to the squaring in the same round.
#![forbid(unsafe_code)]

#[path = "processor/mod.rs"]
mod processor;

use std::time::Instant;

use lanework_cpu::{Cpu, Select};
use lanework_vdf::{Claim, Claims, Discriminant, Engine, Form, Options, Outcome, Task, compact, evaluate};
use processor::processor;

/// Seconds of processor time and on the clock.
fn timed(work: impl FnOnce()) -> [f64; 2] {
    let (begin, clock) = (processor().unwrap_or(0.0), Instant::now());
    work();
    [processor().unwrap_or(0.0) - begin, clock.elapsed().as_secs_f64()]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, otherwise: u64| arguments.get(i).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let name = arguments.first().map_or("adx", String::as_str);
    let engine = Engine::choose(&Cpu::detect(), Select::Named(name)).expect("a backend that runs here");
    let d = Discriminant::from_seed(b"what a compact proof costs", 1024).expect("a discriminant");
    let x = Form::generator(&d).expect("a generator");
    let (iterations, options) = (number(1, 1_000_000), Options::new(engine));
    let squared = |n: u64| {
        let task = Task::new(d.clone(), x.clone(), n);
        evaluate(&task, &options, &mut |_| true).expect("no fault").y
    };
    // Results at the end and before it, an eightieth apart.
    let all: Vec<Claim> = (0..8)
        .map(|n| iterations - n * (iterations / 80))
        .map(|iterations| Claim { iterations, y: squared(iterations) })
        .collect();
    let cases = [(1, 1), (1, 2), (8, 1), (8, 2)];
    let mut ratios = vec![[vec![], vec![]]; cases.len()];
    for _ in 0..number(2, 3) {
        let alone = timed(|| _ = squared(iterations));
        for (&(results, threads), ratios) in cases.iter().zip(&mut ratios) {
            let claims = Claims { discriminant: d.clone(), x: x.clone(), claims: all[..results].to_vec() };
            let took = timed(|| {
                let options = options.threads(threads);
                compact(&claims, &options, &mut |_| true, &mut |_, outcome| {
                    assert!(outcome != Outcome::Wrong)
                })
                .map(drop)
                .expect("no fault");
            });
            (0..2).for_each(|i| ratios[i].push(took[i] / alone[i]));
        }
        println!("{name}: {iterations} squarings alone took {:.3} s", alone[1]);
    }
    for ((results, threads), mut ratios) in cases.into_iter().zip(ratios) {
        let [processor, clock] = [0, 1].map(|i| {
            ratios[i].sort_by(f64::total_cmp);
            ratios[i][ratios[i].len() / 2]
        });
        println!(
            "{results} results, {threads} threads: processor time {processor:.3} times, clock {clock:.3} times"
        );
    }
}
