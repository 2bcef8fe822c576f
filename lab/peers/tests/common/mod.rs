//! What the tests share: where the peers are, and what to do when they are not.
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::io::Write;
use std::path::{Path, PathBuf};

use lanework_peers::{CIPHER_FLAVOURS, CipherPeer, CipherPlaces, Peers, STACK_BYTES, SignaturePeer};

/// `LANEWORK_PEERS`, or where `cargo xtask peers` puts them by default.
pub(crate) fn directory() -> PathBuf {
    match std::env::var_os("LANEWORK_PEERS") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
    }
}

/// The peers that are here. Each missing one is reported on the real standard error, which the test
/// harness does not swallow; under `LANEWORK_REQUIRE_PEERS=1` it is a failure instead.
pub(crate) fn present(test: &str) -> Vec<Box<dyn SignaturePeer>> {
    let required = std::env::var_os("LANEWORK_REQUIRE_PEERS").is_some_and(|value| value == "1");
    let mut present = Vec::new();
    let dir = directory();
    for found in Peers::discover(&dir).into_iter().chain(Peers::discover_flag_builds(&dir)) {
        match found {
            Ok(peer) => present.push(peer),
            Err(unavailable) if required => panic!("required: {unavailable}"),
            Err(unavailable) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {unavailable}");
            }
        }
    }
    present
}

/// Where the peers of the GOST family are.
pub(crate) fn places() -> CipherPlaces {
    let gost_engine = std::env::var_os("LANEWORK_GOST_ENGINE").map(PathBuf::from);
    CipherPlaces { built: directory(), gost_engine }
}

/// As [`present`], for the GOST family; an optional peer that is missing is never a failure.
pub(crate) fn present_ciphers(test: &str) -> Vec<Box<dyn CipherPeer>> {
    let required = std::env::var_os("LANEWORK_REQUIRE_PEERS").is_some_and(|value| value == "1");
    let mut present = Vec::new();
    for (found, flavour) in Peers::discover_ciphers(&places()).into_iter().zip(CIPHER_FLAVOURS) {
        match found {
            Ok(peer) => present.push(peer),
            Err(unavailable) if required && !flavour.optional => panic!("required: {unavailable}"),
            Err(unavailable) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {unavailable}");
            }
        }
    }
    present
}

/// Bytes from hexadecimal digits, spaces between them allowed.
pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("digits");
    digits.chunks(2).map(byte).collect()
}

/// Runs `work` on a thread with the stack that peers need, and lets its panic through.
pub(crate) fn with_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).expect("a thread");
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// A key pair and a signature of `message`, each in its own allocation.
pub(crate) struct Signed {
    pub(crate) public_key: Vec<u8>,
    pub(crate) secret_key: Vec<u8>,
    pub(crate) signature: Vec<u8>,
}

/// Makes a key with `peer` and signs with it.
pub(crate) fn sign(peer: &dyn SignaturePeer, set: &str, message: &[u8]) -> Signed {
    let set = peer.set(set).expect("the peer has the set");
    let mut public_key = vec![0; set.public_key];
    let mut secret_key = vec![0; set.secret_key];
    let mut signature = vec![0; set.signature];
    peer.keypair(set.id, &mut public_key, &mut secret_key).expect("a key pair");
    let written = peer.sign(set.id, &mut signature, message, &secret_key).expect("a signature");
    assert_eq!(written, set.signature, "{} {}", peer.name(), set.name);
    Signed { public_key, secret_key, signature }
}
