//! A rough look at every peer's speed: medians in microseconds, one run after the other.
//!
//! For choosing the best build of each compiler, and no more: nothing here is paired, repeated over
//! launches or checked for noise. The laboratory measures. Takes the peers' directory and, if wanted,
//! the set's name.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use lanework_peers::{ExpandedKey, Peers, STACK_BYTES, SignaturePeer, SignatureSet, seed_random};

/// How long each figure may take.
const BUDGET: Duration = Duration::from_millis(120);

fn median(mut work: impl FnMut()) -> f64 {
    for _ in 0..3 {
        work();
    }
    let start = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < 5 || start.elapsed() < BUDGET {
        let before = Instant::now();
        work();
        samples.push(before.elapsed());
    }
    samples.sort_unstable();
    samples[samples.len() / 2].as_secs_f64() * 1e6
}

fn look(peer: &dyn SignaturePeer, set: &SignatureSet) -> Result<[f64; 4], lanework_peers::PeerError> {
    seed_random(1);
    let message = [7; 32];
    let mut public_key = vec![0; set.public_key];
    let mut secret_key = vec![0; set.secret_key];
    let mut signature = vec![0; set.signature];
    let mut expanded = ExpandedKey::new(set.expanded_key.unwrap_or(0));
    peer.keypair(set.id, &mut public_key, &mut secret_key)?;
    peer.sign(set.id, &mut signature, &message, &secret_key)?;
    let (mut pk, mut sk) = (public_key.clone(), secret_key.clone());
    let mut other = signature.clone();
    Ok([
        median(|| _ = peer.keypair(set.id, &mut pk, &mut sk)),
        median(|| _ = peer.sign(set.id, &mut other, &message, &secret_key)),
        median(|| assert_eq!(peer.verify(set.id, &message, &signature, &public_key), Ok(true))),
        median(|| _ = peer.expand_pk(set.id, &public_key, &mut expanded)),
    ])
}

fn show(directory: PathBuf, only: Option<String>) {
    println!("{:22} {:6} {:>9} {:>9} {:>9} {:>9}", "peer", "set", "keypair", "sign", "verify", "expand");
    for found in Peers::discover(&directory) {
        let peer = match found {
            Ok(peer) => peer,
            Err(unavailable) => {
                println!("{unavailable}");
                continue;
            }
        };
        for set in peer.sets().iter().filter(|set| only.as_ref().is_none_or(|name| set.name == name)) {
            match look(peer.as_ref(), set) {
                Ok([keypair, sign, verify, expand]) => println!(
                    "{:22} {:6} {keypair:9.1} {sign:9.1} {verify:9.1} {expand:9.1}",
                    peer.name(),
                    set.name
                ),
                Err(error) => println!("{:22} {:6} {error}", peer.name(), set.name),
            }
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        eprintln!("usage: medians DIRECTORY [SET]");
        std::process::exit(2);
    };
    let only = arguments.next();
    let thread = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || show(directory.into(), only))
        .expect("a thread can be started");
    if thread.join().is_err() {
        std::process::exit(1);
    }
}
