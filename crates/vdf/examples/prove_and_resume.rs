//! Proves a delay with progress, resumes from its checkpoint after an interruption, and verifies the proof.
//!
//! `cargo run --release -p lanework-vdf --example prove_and_resume -- CHALLENGE ITERATIONS CHECKPOINT [STOP-AFTER]`
//!
//! After STOP-AFTER squarings the run stops as if interrupted. The same command without it resumes from there.
#![forbid(unsafe_code)]

use std::path::Path;

use lanework_vdf::{Discriminant, Form, Limits, Options, Question, Strict, Task, prove, verify_challenge};

/// Bits of the group's discriminant: what Chia uses.
const BITS: usize = 1024;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [challenge, iterations, checkpoint, rest @ ..] = &words[..] else {
        return Err("usage: prove_and_resume CHALLENGE ITERATIONS CHECKPOINT [STOP-AFTER]".into());
    };
    let stop: u64 = rest.first().map_or(Ok(u64::MAX), |text| text.parse())?;
    let d = Discriminant::from_seed(challenge.as_bytes(), BITS)?;
    let x = Form::generator(&d).ok_or("the discriminant has no generator")?;
    let task = Task::new(d, x, iterations.parse()?);

    let options = Options::default().checkpoint(Path::new(checkpoint));
    let mut told = None;
    let proved = prove(&task, &options, &mut |progress| {
        // One line for each tenth of each phase.
        let tenth = (progress.phase, 10 * progress.done / progress.total.max(1));
        if told.replace(tenth) != Some(tenth) {
            eprintln!("{}: {} of {}", progress.phase, progress.done, progress.total);
        }
        progress.done < stop
    })?;
    println!("resumed after {} squarings", proved.resumed);

    // A verifier has only the challenge and these bytes.
    let d = &task.discriminant;
    let (x, proof) = (task.x.to_bytes(d), proved.proof.to_bytes(d));
    let depth = proved.proof.depth();
    let question = Question { x: &x, proof: &proof, iterations: task.iterations, depth };
    verify_challenge(Strict, challenge.as_bytes(), BITS, &question, &Limits::default())?;
    println!("verified {} squarings by a proof of {} bytes", task.iterations, proof.len());

    // The proof is done; there is nothing left to resume.
    std::fs::remove_file(checkpoint)?;
    Ok(())
}
