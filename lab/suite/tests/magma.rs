//! Magma against other people's: byte for byte the same, at every length from 0 to 4,100 and at large ones, in both
//! directions, on every backend.
#![cfg(feature = "peers")]
#![forbid(unsafe_code)]

use std::path::PathBuf;

use lanework_cpu::{Cpu, Select};
use lanework_magma::Engine;
use lanework_magma::backend::BACKENDS;
use lanework_peers::{AeadContext, Card};
use lanework_peers::{
    CIPHER_FLAVOURS, CipherContext, CipherKey, CipherMode, CipherPeer, CipherPlaces, CipherSet, Direction,
    MacContext, PeerError, Peers,
};
use lanework_suite::magma::peers::{Lengths, agreement, unanswered};

fn peers() -> Vec<Box<dyn CipherPeer>> {
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    let places = CipherPlaces {
        built: std::env::var_os("LANEWORK_PEERS").map_or(built, Into::into),
        gost_engine: std::env::var_os("LANEWORK_GOST_ENGINE").map(PathBuf::from),
    };
    let required = std::env::var_os("LANEWORK_REQUIRE_PEERS").is_some_and(|v| v == "1");
    Peers::discover_ciphers(&places)
        .into_iter()
        .zip(CIPHER_FLAVOURS)
        .filter_map(|(found, flavour)| match found {
            Ok(peer) => Some(peer),
            Err(why) => {
                assert!(!required || flavour.optional, "required: {why}");
                eprintln!("SKIPPED {why}");
                None
            }
        })
        .collect()
}

#[test]
fn every_length_is_the_same_on_both_sides() {
    for peer in peers() {
        let row = agreement(peer.as_ref(), Engine::best(), Lengths::All);
        assert_eq!(row.failed, 0, "{}: {}", row.backend, row.why);
        assert!(row.passed > 8_000, "{}: only {} cases", row.backend, row.passed);
        println!("ran: {} ({} cases); not ours: {:?}", row.backend, row.passed, unanswered(peer.as_ref()));
    }
}

#[test]
fn every_backend_agrees() {
    let cpu = Cpu::detect();
    for peer in peers() {
        for backend in BACKENDS {
            let Ok(engine) = Engine::choose(&cpu, Select::Named(backend.name())) else { continue };
            let row = agreement(peer.as_ref(), engine, Lengths::Sample);
            assert_eq!(row.failed, 0, "{}: {}", row.backend, row.why);
            assert!(row.passed > 80, "{}: only {} cases", row.backend, row.passed);
        }
    }
}

/// A peer that spoils the last byte of long messages.
struct Spoilt<'p>(&'p dyn CipherPeer);

struct SpoiltContext(Box<dyn CipherContext>);

impl CipherContext for SpoiltContext {
    fn rekey(&mut self, key: &CipherKey, iv: &[u8]) -> Result<(), PeerError> {
        self.0.rekey(key, iv)
    }

    fn restart(&mut self, iv: &[u8]) -> Result<(), PeerError> {
        self.0.restart(iv)
    }

    fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<(), PeerError> {
        self.0.update(input, output)?;
        if let Some(last) = output.get_mut(4095) {
            *last ^= 1;
        }
        Ok(())
    }
}

impl CipherPeer for Spoilt<'_> {
    fn name(&self) -> &str {
        "spoilt"
    }

    fn card(&self) -> &Card {
        self.0.card()
    }

    fn sets(&self) -> &[CipherSet] {
        self.0.sets()
    }

    fn cipher(
        &self,
        mode: CipherMode,
        direction: Direction,
        key: &CipherKey,
        iv: &[u8],
    ) -> Result<Box<dyn CipherContext>, PeerError> {
        Ok(Box::new(SpoiltContext(self.0.cipher(mode, direction, key, iv)?)))
    }

    fn mac(&self, mode: CipherMode, key: &CipherKey) -> Result<Box<dyn MacContext>, PeerError> {
        self.0.mac(mode, key)
    }

    fn aead(&self, mode: CipherMode, key: &CipherKey) -> Result<Box<dyn AeadContext>, PeerError> {
        self.0.aead(mode, key)
    }
}

#[test]
fn one_wrong_byte_is_noticed() {
    for peer in peers() {
        let row = agreement(&Spoilt(peer.as_ref()), Engine::best(), Lengths::Sample);
        assert!(row.failed > 0 && row.passed > 0, "{}: {} failed", peer.name(), row.failed);
    }
}
