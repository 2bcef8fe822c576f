//! The crate's checks, each as a test.
#![forbid(unsafe_code)]

use lanework_vdf::check::{self, Depth, Row};

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
    right(&check::group_law(Depth::Quick));
}

#[test]
fn discriminants() {
    right(&check::discriminants());
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
    right(&check::published_proofs(Depth::Full));
}

#[test]
fn corruptions() {
    right(&check::corruptions(Depth::Quick));
}

#[test]
fn proving() {
    right(&check::proving(Depth::Quick));
}

/// Takes some seconds in release, more otherwise.
#[test]
fn in_full() {
    right(&check::proving(Depth::Full));
    right(&check::corruptions(Depth::Full));
}
