//! A signed release, verified in one batch: every FILE has its signature beside it in FILE.sig.
//!
//! `cargo run -p lanework-mayo --example verify_release -- KEY.pem FILE ...`
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::Read;
use std::process::ExitCode;

use lanework_cpu::Threads;
use lanework_mayo::batch::{Verifiers, verify_digests};
use lanework_mayo::{Engine, MessageDigest, MessageHasher, Params, PublicKey, Signature, VerifyingKey};

type Failure = Box<dyn std::error::Error>;

/// Hashes a file of any size without holding it in memory.
fn digest(engine: Engine, params: &Params, name: &str) -> Result<MessageDigest, std::io::Error> {
    let (mut file, mut hasher, mut piece) =
        (File::open(name)?, MessageHasher::new(engine, params), vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            n => hasher.update(&piece[..n]),
        }
    }
}

/// Prints a verdict on each file, and says whether all are good.
fn run(key: &str, files: &[String]) -> Result<bool, Failure> {
    let engine = Engine::best();
    let public = PublicKey::from_pem(&fs::read_to_string(key).map_err(|e| format!("{key}: {e}"))?)?;
    let params = public.params();
    let (mut digests, mut signatures) = (Vec::new(), Vec::new());
    for name in files {
        digests.push(digest(engine, params, name).map_err(|e| format!("{name}: {e}"))?);
        let beside = format!("{name}.sig");
        let bytes = fs::read(&beside).map_err(|e| format!("{beside}: {e}"))?;
        signatures.push(Signature::from_bytes(params, &bytes).map_err(|e| format!("{beside}: {e}"))?);
    }
    // One key for all: what depends only on it is computed once.
    let verifying = VerifyingKey::new(engine, &public);
    let verdicts = verify_digests(Verifiers::One(&verifying), &digests, &signatures, Threads::Own(0))?;
    for (name, verdict) in files.iter().zip(&verdicts) {
        match verdict {
            Ok(()) => println!("{name}: good"),
            Err(why) => println!("{name}: {why}"),
        }
    }
    Ok(verdicts.iter().all(Result::is_ok))
}

fn main() -> Result<ExitCode, Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [key, files @ ..] = &words[..] else { return Err("usage: verify_release KEY.pem FILE ...".into()) };
    if files.is_empty() {
        return Err("no file to verify".into());
    }
    Ok(if run(key, files)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
