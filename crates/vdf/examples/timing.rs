//! Prints the cost of the group's operations and of verification here.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use lanework_cpu::Cpu;
use lanework_vdf::Engine;
use lanework_vdf::prime::is_prime_on;
use lanework_vdf::{Discriminant, Form, Limits, Question, Strict, known, verify};

fn best<T>(times: u32, runs: u32, mut f: impl FnMut() -> T) -> f64 {
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..times {
                black_box(f());
            }
            start.elapsed().as_secs_f64() / f64::from(times)
        })
        .fold(f64::INFINITY, f64::min)
}

/// Seconds of processor time that a longer piece of work takes: others may use the machine meanwhile.
fn used(f: impl FnOnce()) -> f64 {
    let now = || {
        let statistics = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        statistics.split(' ').next().and_then(|x| x.parse().ok()).unwrap_or(f64::NAN) / 1e9
    };
    let start = now();
    f();
    now() - start
}

fn main() {
    let wanted = std::env::args().nth(1);
    for engine in Engine::all(&Cpu::detect()) {
        match engine {
            Ok(engine) if wanted.as_deref().is_none_or(|name| name == engine.name()) => {
                println!("{}", engine.name());
                report(engine);
            }
            Ok(_) => (),
            Err(e) => println!("{e}"),
        }
    }
}

fn report(engine: Engine) {
    let record = known::records().next().expect("the records are not empty");
    let d = Discriminant::from_seed_on(engine, &record.challenge, record.bits);
    let d = d.expect("the record has a discriminant");
    let group = d.on(engine);
    let x = Form::generator(&d).expect("D is 1 modulo 8");
    let mut x = x.power(u64::MAX, group).power(u64::MAX, group);
    let y = x.power(12345, group);
    println!("square        {:9.3} us", 1e6 * best(50, 100, || x = x.square(group)));
    println!("compose       {:9.3} us", 1e6 * best(50, 100, || x = x.compose(&y, group)));
    let bytes = x.to_bytes(&d);
    println!("encode        {:9.3} us", 1e6 * best(100, 10, || x.to_bytes(&d)));
    println!("decode        {:9.3} us", 1e6 * best(100, 10, || Form::from_bytes(Strict, &d, &bytes)));
    let forms: Vec<Form> = (0..1000u64).map(|i| x.power(2 * i + 1, group)).collect();
    let challenge = used(|| {
        forms.iter().for_each(|form| {
            black_box(lanework_vdf::Challenge::of(group, form, &y));
        });
    });
    println!("challenge     {:9.3} us of processor time", 1e6 * challenge / forms.len() as f64);
    let question =
        Question { x: &record.x, proof: &record.proof, iterations: record.iterations, depth: record.depth };
    println!(
        "verify        {:9.3} us",
        1e6 * best(1, 100, || verify(Strict, group, &question, &Limits::default()))
    );
    let prime = *d.value().magnitude();
    println!("prime test    {:9.3} us", 1e6 * best(1, 20, || is_prime_on(engine, prime.limbs())));
    let seeds: Vec<_> = known::records().map(|record| record.challenge).take(100).collect();
    let all = used(|| {
        seeds.iter().for_each(|seed| {
            black_box(Discriminant::from_seed_on(engine, seed, 1024).is_ok());
        });
    });
    println!("discriminant  {:9.3} us of processor time", 1e6 * all / seeds.len() as f64);
}
