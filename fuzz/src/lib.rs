//! What is fuzzed: a [`Target`] is a function over any bytes that panics where a promise is broken.
//!
//! Each has two callers. One is libFuzzer (`fuzz_targets/`, a nightly toolchain and cargo-fuzz), which follows the
//! branches that inputs take. The other is [`runner`], which is blind and needs only a stable toolchain: it replays the committed
//! corpus, mutates it for a while, and is what CI runs.
#![forbid(unsafe_code)]

mod bytes;
mod checkpoint;
mod integer;
mod magma;
mod mayo;
#[cfg(feature = "peers")]
mod peers;
mod respill;
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
    /// Why it cannot be run here, if so.
    pub missing: fn() -> Option<String>,
}

impl Target {
    const fn new(name: &'static str, run: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Target {
        Target { name, run, seeds, missing: || None }
    }
}

impl core::fmt::Debug for Target {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Target").field(&self.name).finish()
    }
}

/// All targets of our own.
pub const TARGETS: &[Target] = &[
    Target::new("mayo_keys", mayo::keys, mayo::key_seeds),
    Target::new("mayo_sign", mayo::sign, mayo::sign_seeds),
    Target::new("mayo_verify", mayo::verify, mayo::verify_seeds),
    Target::new("magma_modes", magma::modes, magma::plain_seeds),
    Target::new("magma_mgm", magma::mgm, magma::plain_seeds),
    Target::new("magma_kexp15", magma::kexp15, magma::plain_seeds),
    Target::new("magma_container", magma::container, magma::container_seeds),
    Target::new("integer_arithmetic", integer::arithmetic, integer::arithmetic_seeds),
    Target::new("integer_gcd", integer::gcds, integer::gcd_seeds),
    Target::new("vdf_numbers", vdf::numbers, vdf::number_seeds),
    Target::new("vdf_forms", vdf::forms, vdf::form_seeds),
    Target::new("vdf_verify", vdf::verify, vdf::verify_seeds),
    Target::new("vdf_client", vdf::client, vdf::client_seeds),
    Target::new("vdf_checkpoint", checkpoint::checkpoint, checkpoint::checkpoint_seeds),
    Target::new("settings", texts::settings, texts::settings_seeds),
    Target::new("assembly", respill::assembly, respill::assembly_seeds),
    Target::new("program", respill::program, respill::program_seeds),
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Target::new("case", respill::case, respill::case_seeds),
    Target::new("record", texts::record, texts::record_seeds),
    Target::new("study", texts::study, texts::study_seeds),
];

/// Targets that compare with other people's implementations.
#[cfg(feature = "peers")]
pub const PEERS: [Target; 4] = [
    Target { missing: peers::no_signers, ..Target::new("peers_mayo", peers::signatures, mayo::verify_seeds) },
    Target { missing: peers::no_ciphers, ..Target::new("peers_magma", peers::ciphers, peers::cipher_seeds) },
    Target { missing: peers::no_delay, ..Target::new("peers_vdf", peers::proofs, vdf::verify_seeds) },
    Target::new("peers_integer", peers::integers, integer::arithmetic_seeds),
];
/// Targets that compare with other people's implementations: none without the feature `peers`.
#[cfg(not(feature = "peers"))]
pub const PEERS: [Target; 0] = [];

/// Every target that was built.
pub fn targets() -> impl Iterator<Item = Target> {
    TARGETS.iter().copied().chain(PEERS)
}

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    targets().find(|target| target.name == name)
}

/// Runs the target of this name, for `fuzz_targets`.
///
/// # Panics
/// Where a promise is broken, or if there is no such target.
pub fn run(name: &str, data: &[u8]) {
    let target = target(name).unwrap_or_else(|| panic!("there is no target {name}"));
    (target.run)(data);
}
