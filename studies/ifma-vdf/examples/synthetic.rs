//! Prints the first half of the study `ifma-vdf`: `cargo run --release -p study-ifma-vdf --example synthetic [ROUNDS]`, with
//! `--features peers` for GMP's lines.
#![forbid(unsafe_code)]

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(200);
    #[cfg(target_arch = "x86_64")]
    match study_ifma_vdf::synthetic::measure(&lanework_cpu::Cpu::detect(), rounds) {
        Ok(found) => {
            println!("{:.3} ticks a cycle\n\n{}\n{}", found.ticks_per_cycle, found.report(), found.probes());
            found.findings().iter().for_each(|line| println!("- {line}"));
            found.missing.iter().for_each(|why| println!("- missing: {why}"));
        }
        Err(why) => {
            eprintln!("{why}");
            std::process::exit(3);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    println!("for x86-64 only ({rounds} rounds)");
}
