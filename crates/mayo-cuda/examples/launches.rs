//! Launches the kernels of one set with batches of one chunk, for a profiler to time. Where CUDA's profiler is installed:
//!
//! ```text
//! cargo build --release -p lanework-mayo-cuda --example launches
//! ncu --clock-control none --metrics gpu__time_duration.sum --csv target/release/examples/launches round3/mayo1 1056
//! ```
//!
//! A kernel's largest launch has the whole batch; its self-test and further attempts at signatures have fewer operations.
#![forbid(unsafe_code)]

use std::error::Error;

use getrandom::SysRng;
use lanework_mayo::{Engine, Params, SecretKey};
use lanework_mayo_cuda::check::ALONE;
use lanework_mayo_cuda::{Expand, Gpu, GpuSigners, GpuVerifiers, Multiply, Options, Release, Ring, Tally};

/// An operation's result, once the device is known to have made all of it.
fn made<T>(what: &str, (result, tally): (T, Tally)) -> Result<T, Box<dyn Error>> {
    if let Some(why) = tally.trouble {
        return Err(format!("{what}: {why}").into());
    }
    println!("{what}: {} on the device, {} attempts more", tally.device, tally.restarts);
    Ok(result)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: launches SET COUNT, where SET is round3/mayo1 and so on, and COUNT at most 65536";
    let [set, count] = arguments.as_slice() else { return Err(usage.into()) };
    let params = Params::all().find(|p| p.path() == *set).ok_or(usage)?;
    let count: usize = count.parse().ok().filter(|n| (1..=65_536).contains(n)).ok_or(usage)?;

    let options = Options {
        chunk: count,
        streams: 1,
        ring: Ring::Whole,
        expand: Expand::Alone,
        multiply: Multiply::Masks,
        ..ALONE
    };
    let gpu = Gpu::open(0, Engine::best(), options)?;
    let keys: Vec<SecretKey> = (0..count)
        .map(|i| {
            let seed: Vec<u8> = (0..params.salt_bytes()).map(|at| (i >> (at % 3 * 8)) as u8).collect();
            SecretKey::from_seed(params, &seed)
        })
        .collect::<Result<_, _>>()?;
    let messages: Vec<[u8; 8]> = (0..count as u64).map(u64::to_le_bytes).collect();
    let own: Vec<usize> = (0..count).collect();
    let (mut public, mut signatures) = (Vec::new(), Vec::new());
    for expand in [Expand::Alone, Expand::Fused] {
        let gpu = gpu.with(Options { expand, ..options });
        public = made(&format!("keygen, {expand:?}"), gpu.keygen(&keys)?)?;
        let signers = GpuSigners::Each(&keys);
        let signed = gpu.sign(signers, &messages, Release::Unverified, &mut SysRng)?;
        signatures =
            made(&format!("sign, {expand:?}"), signed)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let verdicts = made(
            &format!("verify, {expand:?}"),
            gpu.verify(GpuVerifiers::Each(&public), &messages, &signatures)?,
        )?;
        verdicts.into_iter().collect::<Result<Vec<()>, _>>()?;
    }
    let expanded = gpu.expand_secret(&keys)?;
    for (name, signers) in
        [("own keys", GpuSigners::Of(&expanded, &own)), ("one key", GpuSigners::One(&expanded))]
    {
        let signed = gpu.sign(signers, &messages, Release::Unverified, &mut SysRng)?;
        made(&format!("sign, expanded, {name}"), signed)?;
    }
    for multiply in [Multiply::Masks, Multiply::Bits] {
        let gpu = gpu.with(Options { multiply, ..options });
        let expanded = gpu.expand_public(&public)?;
        for (name, verifiers) in
            [("own keys", GpuVerifiers::Of(&expanded, &own)), ("one key", GpuVerifiers::One(&expanded))]
        {
            made(
                &format!("verify, expanded, {multiply:?}, {name}"),
                gpu.verify(verifiers, &messages, &signatures)?,
            )?;
        }
    }
    Ok(())
}
