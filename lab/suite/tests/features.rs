//! Every CPU feature that a backend's sources enable is one that its row in `BACKENDS` requires.
#![cfg(target_arch = "x86_64")]

use std::path::Path;

use lanework_suite::features::{self, needs};

#[test]
fn rows_require_what_their_kernels_enable() {
    let src =
        |krate: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates").join(krate).join("src");
    features::check(&src("mayo"), "backend", &needs(lanework_mayo::internals::BACKENDS).collect::<Vec<_>>());
    features::check(&src("magma"), "backend", &needs(lanework_magma::backend::BACKENDS).collect::<Vec<_>>());
    features::check(&src("vdf"), "backend", &needs(lanework_vdf::backend::BACKENDS).collect::<Vec<_>>());
    features::check(&src("integer"), "backend", &needs(lanework_integer::BACKENDS).collect::<Vec<_>>());
}
