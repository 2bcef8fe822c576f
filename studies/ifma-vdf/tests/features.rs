//! Every CPU feature that the study's sources enable is one that its row requires.
#![cfg(target_arch = "x86_64")]

use std::path::Path;

use lanework_suite::features::{check, needs};
use study_ifma_vdf::{arithmetic, probes};

#[test]
fn rows_require_what_their_kernels_enable() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    check(&src, "arithmetic", &needs(arithmetic::BACKENDS).collect::<Vec<_>>());
    let probes: Vec<_> =
        needs(probes::PRODUCTS).chain([(probes::PROBES.name(), probes::PROBES.needs())]).collect();
    check(&src, "probes", &probes);
}
