//! The crate's checks, each as a test. `lanework check vdf` runs all of them in full.
#![forbid(unsafe_code)]

use lanework_cpu::Settings;
use lanework_vdf::Engine;
use lanework_vdf::internals::check::{self, Depth, Row};

/// Every backend of this CPU that the environment allows.
fn targets() -> Vec<Engine> {
    let settings = Settings::from_env().expect("settings");
    Engine::available(&settings.cpu()).collect()
}

fn right(row: &Row) {
    assert!(
        row.ok(),
        "{}: {} of {} wrong, first {:.300}",
        row.what,
        row.failed,
        row.passed + row.failed,
        row.why
    );
}

#[test]
fn group_law() {
    targets().into_iter().for_each(|target| right(&check::group_law(target, Depth::Quick)));
}

#[test]
fn primes() {
    targets().into_iter().for_each(|target| right(&check::primes(target, Depth::Quick)));
}

#[test]
fn discriminants() {
    targets().into_iter().for_each(|target| right(&check::discriminants(target)));
}

#[test]
fn squarings() {
    right(&check::plain_squarings(Depth::Full));
}

#[test]
fn encodings() {
    right(&check::encodings(Depth::Full));
}

#[test]
fn malleability() {
    right(&check::malleability());
}

#[test]
fn refusals() {
    right(&check::refusals());
}

#[test]
fn published_proofs() {
    targets().into_iter().for_each(|target| right(&check::published_proofs(target, Depth::Full)));
}

#[test]
fn corruptions() {
    targets().into_iter().for_each(|target| right(&check::corruptions(target, Depth::Quick)));
}

#[test]
fn proving() {
    targets().into_iter().for_each(|target| right(&check::proving(target, Depth::Quick)));
}
