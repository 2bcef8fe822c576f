//! The time of a proof's verification by itself and among others: `verifier BACKEND [PROOFS [ROUNDS]]`. Each proof has a 1,024-bit
//! group of its own and 3,000 squarings, from the generator and from another form. One thread; the order takes turns.
#![forbid(unsafe_code)]

use std::time::Instant;

use lanework_cpu::{Cpu, Select, Threads};
use lanework_vdf::{
    Discriminant, Engine, Form, Limits, Options, Question, Strict, Task, prove, verify, verify_all,
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, otherwise: usize| arguments.get(i).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let name = arguments.first().map_or("avx512", String::as_str);
    let engine = Engine::choose(&Cpu::detect(), Select::Named(name)).expect("a backend that runs here");
    let (count, rounds, iterations) = (number(1, 32), number(2, 5), 3_000);
    for (start, exponent) in [("the generator", 1), ("another form", 0x1234_5678_9abc_def1)] {
        let proved = |seed: u32| {
            let d = Discriminant::from_seed(&seed.to_be_bytes(), 1024).expect("a discriminant");
            let x = Form::generator(&d).expect("a generator").power(exponent, d.on(engine));
            let task = Task::new(d.clone(), x, iterations);
            let proof = prove(&task, &Options::new(engine), &mut |_| true).expect("no fault").proof;
            (task.x.to_bytes(&d), proof.to_bytes(&d), d)
        };
        let proofs: Vec<_> = (0..count as u32).map(proved).collect();
        let questions: Vec<_> = proofs
            .iter()
            .map(|(x, proof, d)| (d.on(engine), Question { x, proof, iterations, depth: 0 }))
            .collect();
        let limits = Limits::default();
        let alone = || {
            let valid =
                questions.iter().all(|(group, question)| verify(Strict, *group, question, &limits).is_ok());
            assert!(valid, "a proof is refused");
        };
        let together = || {
            let outcomes =
                verify_all(Strict, &questions, &limits, Threads::One).expect("no threads are started");
            assert!(outcomes.iter().all(Result::is_ok), "a proof is refused beside others");
        };
        let timed = |work: &dyn Fn()| {
            let begin = Instant::now();
            work();
            1e3 * begin.elapsed().as_secs_f64() / count as f64
        };
        let mut times: Vec<[f64; 2]> = (0..rounds)
            .map(|round| {
                let first = (round % 2 == 0).then(|| timed(&alone));
                let second = timed(&together);
                [first.unwrap_or_else(|| timed(&alone)), second]
            })
            .collect();
        times.sort_by(|x, y| (x[0] / x[1]).total_cmp(&(y[0] / y[1])));
        let [alone, together] = times[times.len() / 2];
        println!(
            "{name}, from {start}: {alone:.3} ms a proof alone, {together:.3} ms among {count}: {:.2} times as fast",
            alone / together
        );
    }
}
