//! Squarings per second: `chain BACKEND N`, from the generator of chiavdf's benchmark discriminant.

use std::time::Instant;

use lanework_cpu::{Cpu, Select};
use lanework_integer::{Int, Uint};
use lanework_vdf::Engine;
use lanework_vdf::chain::{Chain, Coefficients};

const MAGNITUDE: &str = include_str!("magnitude.txt");

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "adx".to_owned());
    let n: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let engine = Engine::choose(&Cpu::detect(), Select::Named(&name)).expect("a backend that runs here");
    let mut magnitude = Uint::<32>::ZERO;
    for digit in MAGNITUDE.trim().chars() {
        magnitude = (magnitude << 4).plus(&Uint::from_u64(digit.to_digit(16).expect("hex").into()));
    }
    let c = magnitude.plus(&Uint::ONE) >> 3;
    let form = Coefficients { a: Uint::from_u64(2), b: Int::ONE, c };
    let mut chain = Chain::new(engine, &magnitude, &form).expect("a form");
    chain.square(1000).expect("no fault");
    let start = Instant::now();
    chain.square(n).expect("no fault");
    let seconds = start.elapsed().as_secs_f64();
    println!("{name}: {:.1}K squarings/s, {} slow", n as f64 / seconds / 1e3, chain.slow());
}
