//! Every CPU feature that the arithmetic's sources enable is one that its row requires.
#![cfg(target_arch = "x86_64")]

use std::path::Path;

#[test]
fn rows_require_what_their_kernels_enable() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    lanework_suite::features::check(&src, "arithmetic", study_ifma_vdf::arithmetic::BACKENDS);
}
