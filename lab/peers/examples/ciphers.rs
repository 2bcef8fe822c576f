//! A rough look at the speed of the GOST family's peers: best of a few runs, in megabytes a second.
//!
//! For seeing that a peer does what it should, and no more: nothing here is paired, repeated over launches
//! or checked for noise. The laboratory measures. Takes the peers' directory and the bytes of a message.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use lanework_peers::{
    CipherKind, CipherPeer, CipherPlaces, CipherSet, Direction, PeerError, Peers, STACK_BYTES,
};

/// How long each figure may take.
const BUDGET: Duration = Duration::from_millis(60);

/// Megabytes a second of `work`, which does `bytes` of them.
fn speed(bytes: usize, mut work: impl FnMut() -> Result<(), PeerError>) -> Result<f64, PeerError> {
    work()?;
    let (start, mut best) = (Instant::now(), f64::INFINITY);
    while start.elapsed() < BUDGET {
        let before = Instant::now();
        for _ in 0..8 {
            work()?;
        }
        best = best.min(before.elapsed().as_secs_f64() / 8.0);
    }
    Ok(bytes as f64 / best / 1e6)
}

fn look(peer: &dyn CipherPeer, set: &CipherSet, bytes: usize) -> Result<f64, PeerError> {
    let (key, iv, input) = ([7; 32], vec![1; set.iv], vec![5; bytes]);
    let (mut output, mut tag) = (vec![0; bytes], vec![0; set.tag]);
    match set.mode.kind() {
        CipherKind::Cipher => {
            let mut context = peer.cipher(set.mode, Direction::Encrypt, &key, &iv)?;
            speed(bytes, || context.restart(&iv).and_then(|()| context.update(&input, &mut output)))
        }
        CipherKind::Mac => {
            let mut context = peer.mac(set.mode, &key)?;
            speed(bytes, || context.mac(&input, &mut tag))
        }
        CipherKind::Aead => {
            let mut context = peer.aead(set.mode, &key)?;
            speed(bytes, || context.seal(&iv, b"", &input, &mut output, &mut tag))
        }
    }
}

fn show(built: std::path::PathBuf, bytes: usize) {
    let gost_engine = std::env::var_os("LANEWORK_GOST_ENGINE").map(Into::into);
    for found in Peers::discover_ciphers(&CipherPlaces { built, gost_engine }) {
        match found {
            Err(unavailable) => println!("{unavailable}"),
            Ok(peer) => {
                println!("{}: {} {}", peer.name(), peer.card().project, peer.card().version);
                for set in peer.sets() {
                    match look(peer.as_ref(), set, bytes) {
                        Ok(speed) => println!("{speed:9.1} MB/s  {:28} {:?}", set.native, set.mode),
                        Err(error) => println!("{:>9}       {:28} {error}", "-", set.native),
                    }
                }
            }
        }
    }
}

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let directory = arguments.next().unwrap_or_else(|| "target/peers".into());
    let bytes = arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(16_384);
    let work = move || show(directory.into(), bytes);
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).expect("a thread").join().expect("done");
}
