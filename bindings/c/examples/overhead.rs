//! What a call through the C interface takes beside the same work in Rust: `cargo run --release -p lanework-c --example overhead`.
//!
//! Both sides of a pair alternate in one process and one thread. Where a key lies in memory changes the time by more than the entry
//! takes, so both sides have several keys, and the first line is a control: Rust against Rust. A line has the medians, and the median of
//! the pairs' differences.

use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use lanework::mayo::{LW_MAYO2, lw_mayo_public_key_from_bytes, lw_mayo_verify};
use lanework::status::lw_status;
use lanework_mayo::{Engine, Params, Round, SecretKey, Set, Signature, VerifyingKey};

const PAIRS: usize = 601;
const CALLS: usize = 256;
/// Copies of the key on each side.
const KEYS: usize = 12;

/// Nanoseconds of one call, over many.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let begun = Instant::now();
    (0..CALLS).for_each(|_| call());
    begun.elapsed().as_secs_f64() * 1e9 / CALLS as f64
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Both functions get the number of a key.
fn race(name: &str, first: impl Fn(usize), second: impl Fn(usize)) {
    let pairs: Vec<(f64, f64)> = (0..PAIRS)
        .map(|i| {
            // Each key of one side meets each of the other's.
            let (a, b) = (|| nanoseconds(|| first(i % KEYS)), || nanoseconds(|| second(i / KEYS % KEYS)));
            if i % 2 == 0 {
                let first = a();
                (first, b())
            } else {
                let second = b();
                (a(), second)
            }
        })
        .collect();
    let [first, second, apart] = [|p: &(f64, f64)| p.0, |p: &(f64, f64)| p.1, |p: &(f64, f64)| p.0 - p.1]
        .map(|of| median(pairs.iter().map(of).collect()));
    println!("{name}: {first:.0} ns and {second:.0} ns, apart {apart:+.0} ns");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let params = Params::of(Round::Three, Set::Mayo2);
    let engine = Engine::best();
    let secret = SecretKey::generate_os(params)?;
    let message = b"a message of thirty-two bytes...";
    let signature = secret.sign(engine, message)?;
    let public = secret.public_key(engine);
    // Behind pointers, as in a program that loads the library.
    let from_bytes = black_box(lw_mayo_public_key_from_bytes as unsafe extern "C" fn(_, _, _, _) -> _);
    let verify = black_box(lw_mayo_verify as unsafe extern "C" fn(_, _, _, _, _) -> _);
    let bytes = public.as_bytes();
    let (mut handles, mut controls, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..KEYS {
        let mut key = ptr::null();
        // SAFETY: the key's bytes live, and `key` is a place for a handle.
        assert_eq!(unsafe { from_bytes(LW_MAYO2, bytes.as_ptr(), bytes.len(), &raw mut key) }, lw_status::Ok);
        handles.push(key);
        controls.push(VerifyingKey::new(engine, &public));
        keys.push(VerifyingKey::new(engine, &public));
    }
    let signed = signature.as_bytes();
    let rust = |key: &VerifyingKey| {
        let read = Signature::from_bytes(params, signed).expect("a signature");
        key.verify(message, &read).expect("it is right");
    };
    race("MAYO-2, verify, Rust and Rust", |n| rust(&controls[n]), |n| rust(&keys[n]));
    let c = |n: usize| {
        // SAFETY: the handle is never freed, and the buffers live.
        let status =
            unsafe { verify(handles[n], message.as_ptr(), message.len(), signed.as_ptr(), signed.len()) };
        assert_eq!(status, lw_status::Ok);
    };
    race("MAYO-2, verify, C and Rust", c, |n| rust(&keys[n]));
    Ok(())
}
