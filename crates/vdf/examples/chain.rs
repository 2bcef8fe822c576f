//! Squarings per second: `chain BACKEND N`, from the generator of chiavdf's benchmark discriminant.

use std::time::Instant;

use lanework_cpu::{Cpu, Select};
use lanework_vdf::chain::Chain;
use lanework_vdf::{Discriminant, Engine, Form, known};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "adx".to_owned());
    let n: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let engine = Engine::choose(&Cpu::detect(), Select::Named(&name)).expect("a backend that runs here");
    let d = Discriminant::new(&known::number(known::SQUARINGS_D)).expect("a discriminant");
    let x = Form::generator(&d).expect("a generator");
    let mut chain = Chain::new(d.on(engine), &x).expect("a form");
    chain.square(1000).expect("no fault");
    let start = Instant::now();
    chain.square(n).expect("no fault");
    let seconds = start.elapsed().as_secs_f64();
    println!("{name}: {:.1}K squarings/s, {} slow", n as f64 / seconds / 1e3, chain.slow());
}
