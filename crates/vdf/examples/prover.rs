//! The cost of a proof relative to its squarings: `prover BACKEND ITERATIONS [SEGMENTS [ROUNDS [THREADS
//! [MIB]]]]]`, from the generator of a 1,024-bit group. SEGMENTS is the most before the last, of Chia's lengths, and MIB
//! the memory for kept forms. Squaring alone and proving take turns.
#![forbid(unsafe_code)]

#[path = "processor/mod.rs"]
mod processor;

use lanework_cpu::{Cpu, Select};
use lanework_vdf::{Discriminant, Engine, Form, Options, Task, evaluate, prove};
use processor::processor;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, otherwise: usize| arguments.get(i).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let name = arguments.first().map_or("adx", String::as_str);
    let engine = Engine::choose(&Cpu::detect(), Select::Named(name)).expect("a backend that runs here");
    let d = Discriminant::from_seed(b"what a proof costs", 1024).expect("a discriminant");
    let x = Form::generator(&d).expect("a generator");
    let task = Task::new(d, x, number(1, 1_000_000) as u64).in_chia_segments(number(2, 0));
    let options = Options::new(engine).threads(number(4, 2)).memory(number(5, 256) << 20);
    let mut ratios = Vec::new();
    let (mut alone_time, mut proof_time) = (Some(0.0), Some(0.0));
    let add = |sum: &mut Option<f64>, begin: Option<f64>| {
        *sum = sum.zip(processor()).zip(begin).map(|((sum, end), begin)| sum + end - begin);
    };
    for round in 0..number(3, 3) {
        let mut squaring = |task: &Task| {
            let begin = processor();
            let seconds = evaluate(task, &options, &mut |_| true).expect("no fault").seconds.squaring;
            add(&mut alone_time, begin);
            seconds
        };
        // The order within a pair alternates.
        let before = (round % 2 == 0).then(|| squaring(&task));
        let begin = processor();
        let proved = prove(&task, &options, &mut |_| true).expect("no fault");
        add(&mut proof_time, begin);
        let alone = before.unwrap_or_else(|| squaring(&task));
        let seconds = proved.seconds;
        let all = seconds.squaring + seconds.proving + seconds.verifying;
        ratios.push(all / alone);
        println!(
            "{name}, {} segments: squaring alone {alone:.4} s ({:.0}K/s), in the proof {:.4} s, proving {:.4} s, verifying {:.4} s: {:.3} times",
            task.segments.len() + 1,
            task.iterations as f64 / alone / 1e3,
            seconds.squaring,
            seconds.proving,
            seconds.verifying,
            all / alone
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!("median {:.3} times", ratios[ratios.len() / 2]);
    if let (Some(alone), Some(proof)) = (alone_time, proof_time) {
        let rest = proof - alone;
        println!(
            "processor time: squaring {alone:.2} s, with the proof {proof:.2} s; on {} threads the proof is {:.1} % more",
            options.threads,
            100.0 * rest / alone / options.threads as f64
        );
    }
}
