//! Every scheme that races beside MAYO signs, verifies and refuses, and a signer that does not is noticed.
#![cfg(feature = "peers")]
#![forbid(unsafe_code)]

use std::path::PathBuf;

use lanework_cpu::Settings;
use lanework_peers::flavour::LIBOQS_13;
use lanework_race::subject::Facts;
use lanework_suite::signatures::{Signer, checked, gate_rows, subjects};
use lanework_suite::{Context, matching};

fn context() -> Context {
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    let mut context = Context::new(Settings::default());
    context.peers = Some(std::env::var_os("LANEWORK_PEERS").map_or(built, Into::into));
    context
}

#[test]
fn every_scheme_passes_the_gate() {
    let rows = gate_rows(&context());
    let required = std::env::var_os("LANEWORK_REQUIRE_PEERS").is_some_and(|v| v == "1");
    for row in &rows {
        assert_eq!(row.failed, 0, "{} {}: {}", row.what, row.backend, row.why);
        if row.skipped > 0 {
            assert!(!required, "required: {} {}: {}", row.what, row.backend, row.why);
            eprintln!("SKIPPED {} {}: {}", row.what, row.backend, row.why);
        }
    }
    for name in ["mayo1", "mayo2", "mayo3", "mayo5", "ed25519"] {
        assert!(rows.iter().any(|r| r.what.contains(name) && r.what.contains("changed")), "{name}");
    }
}

#[test]
fn each_operation_is_one_race_of_all_schemes() {
    let context = context();
    let found = subjects(&context);
    let paths: Vec<&str> = found.iter().map(lanework_race::subject::Subject::path).collect();
    assert_eq!(paths, ["signatures/keygen", "signatures/sign", "signatures/verify"]);
    for subject in &found {
        assert_eq!(subject.baseline().name(), "mayo1");
        // Three builds of each, ours but the baseline, and Ed25519.
        assert_eq!(subject.challengers().count(), 3 + 3 * LIBOQS_13.others.len() + 1);
    }
    assert_eq!(matching(&context, "signatures").len(), 3);
    assert!(matching(&context, "").iter().all(|s| !s.path().starts_with("signatures")));
    assert!(matching(&Context::new(Settings::default()), "signatures").is_empty());
}

/// Signs with the message itself, and goes wrong in one way.
struct Planted {
    refuses: bool,
    accepts_all: bool,
}

impl Signer for Planted {
    fn keygen(&mut self) -> bool {
        true
    }

    fn sign(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        Some(message.to_vec())
    }

    fn verify(&mut self, message: &[u8], signature: &[u8]) -> bool {
        !self.refuses && (self.accepts_all || message == signature)
    }

    fn facts(&self) -> Facts {
        Facts::default()
    }
}

#[test]
fn a_signer_that_is_wrong_keeps_the_gate_shut() {
    let of = |refuses, accepts_all| checked("planted", "test", Ok(Planted { refuses, accepts_all }));
    assert_eq!((of(false, false).passed, of(false, false).failed), (32, 0));
    assert_eq!((of(true, false).failed, of(true, false).why.as_str()), (1, "it refuses its own signature"));
    assert!(of(false, true).failed == 1 && of(false, true).why.contains("changed message"));
}
