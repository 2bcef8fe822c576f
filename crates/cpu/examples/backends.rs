//! A table of two backends: lists both, then runs the requested one, or the fastest.
//!
//! `cargo run -p lanework-cpu --example backends -- [NAME]`

use lanework_cpu::{Backend, Backends, Cpu, Engine, Features, Select};

/// The kernels of one backend. The field is private, so safe code can reach it only through an [`Engine`].
#[derive(Debug)]
struct Sums {
    sum: unsafe fn(&[u32]) -> u32,
}

impl Sums {
    /// The sum of all words, modulo 2^32.
    fn sum(&self, words: &[u32]) -> u32 {
        // SAFETY: calls come through an `Engine`, so the CPU has the features of the table's row.
        unsafe { (self.sum)(words) }
    }
}

fn portable(words: &[u32]) -> u32 {
    words.iter().fold(0, |sum, &word| sum.wrapping_add(word))
}

/// The same source, compiled for wider vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(words: &[u32]) -> u32 {
    words.iter().fold(0, |sum, &word| sum.wrapping_add(word))
}

impl Backends for Sums {
    const PRIMITIVE: &'static str = "sums";
    // SAFETY: each row needs the features that its kernel enables.
    const BACKENDS: &'static [Backend<Sums>] = unsafe {
        &[
            Backend::new("portable", "plain Rust", Features::NONE, &Sums { sum: portable }),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "avx2",
                "256-bit vectors",
                Features::of(&[lanework_cpu::Feature::Avx2]),
                &Sums { sum: avx2 },
            ),
        ]
    };
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cpu = Cpu::detect();
    for row in Sums::BACKENDS {
        match row.get(&cpu) {
            Ok(engine) => println!("{}: {}", engine.name(), row.summary()),
            Err(why) => println!("{why}"),
        }
    }
    let wanted = std::env::args().nth(1);
    let engine: Engine<Sums> = Engine::choose(&cpu, wanted.as_deref().map_or(Select::Best, Select::Named))?;
    let words: Vec<u32> = (1..=1000).collect();
    println!("sum on {}: {}", engine.name(), engine.sum(&words));
    Ok(())
}
