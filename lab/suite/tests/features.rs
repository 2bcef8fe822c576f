//! Every CPU feature that a backend's sources enable is one that its row in `BACKENDS` requires.
#![cfg(target_arch = "x86_64")]

use std::path::Path;

use lanework_suite::features;

#[test]
fn rows_require_what_their_kernels_enable() {
    let src =
        |krate: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates").join(krate).join("src");
    features::check(&src("mayo"), "backend", lanework_mayo::backend::BACKENDS);
    features::check(&src("magma"), "backend", lanework_magma::backend::BACKENDS);
    features::check(&src("vdf"), "backend", lanework_vdf::backend::BACKENDS);
    features::check(&src("integer"), "backend", lanework_integer::BACKENDS);
}
