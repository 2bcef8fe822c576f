//! What is fuzzed: a [`Target`] is a function over any bytes that panics where a promise is broken.
//!
//! Each is called from two sides: by libFuzzer (`fuzz_targets/`, a nightly toolchain and cargo-fuzz), which follows the
//! branches that inputs take; and by [`runner`], which is blind and needs a stable toolchain alone: it replays the committed
//! corpus, mutates it for a while, and is what CI runs.
#![forbid(unsafe_code)]

mod bytes;
mod checkpoint;
mod integer;
mod magma;
mod mayo;
mod programs;
pub mod runner;
mod texts;
mod vdf;

/// Something to be fuzzed.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, which is that of the file in `fuzz_targets` and of the folder in `corpus`.
    pub name: &'static str,
    /// The function. It panics where a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs to begin with: well-formed ones, which mutation alone would not find.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

impl core::fmt::Debug for Target {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Target").field(&self.name).finish()
    }
}

/// All targets.
pub const TARGETS: [Target; 20] = [
    Target { name: "mayo_keys", run: mayo::keys, seeds: mayo::key_seeds },
    Target { name: "mayo_sign", run: mayo::sign, seeds: mayo::sign_seeds },
    Target { name: "mayo_verify", run: mayo::verify, seeds: mayo::verify_seeds },
    Target { name: "magma_modes", run: magma::modes, seeds: magma::plain_seeds },
    Target { name: "magma_mgm", run: magma::mgm, seeds: magma::plain_seeds },
    Target { name: "magma_kexp15", run: magma::kexp15, seeds: magma::plain_seeds },
    Target { name: "magma_container", run: magma::container, seeds: magma::container_seeds },
    Target { name: "integer_arithmetic", run: integer::arithmetic, seeds: integer::arithmetic_seeds },
    Target { name: "integer_gcd", run: integer::gcds, seeds: integer::gcd_seeds },
    Target { name: "vdf_numbers", run: vdf::numbers, seeds: vdf::number_seeds },
    Target { name: "vdf_forms", run: vdf::forms, seeds: vdf::form_seeds },
    Target { name: "vdf_verify", run: vdf::verify, seeds: vdf::verify_seeds },
    Target { name: "vdf_client", run: vdf::client, seeds: vdf::client_seeds },
    Target { name: "vdf_checkpoint", run: checkpoint::checkpoint, seeds: checkpoint::checkpoint_seeds },
    Target { name: "settings", run: texts::settings, seeds: texts::settings_seeds },
    Target { name: "assembly", run: texts::assembly, seeds: texts::assembly_seeds },
    Target { name: "program", run: programs::program, seeds: programs::program_seeds },
    Target { name: "case", run: programs::case, seeds: programs::case_seeds },
    Target { name: "record", run: texts::record, seeds: texts::record_seeds },
    Target { name: "study", run: texts::study, seeds: texts::study_seeds },
];

/// The target of a name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    static ALL: [Target; 20] = TARGETS;
    ALL.iter().find(|target| target.name == name)
}

/// Runs the target of a name, for `fuzz_targets`.
///
/// # Panics
/// Where a promise is broken; and if there is no such target.
pub fn run(name: &str, data: &[u8]) {
    let target = target(name).unwrap_or_else(|| panic!("there is no target {name}"));
    (target.run)(data);
}
