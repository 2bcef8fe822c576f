//! Other people's implementations of what Lanework implements, behind one trait per family.
//!
//! A peer is a shared library that `cargo xtask peers` built outside the source tree from its
//! authors' published sources, with a [`Card`] beside it saying which sources, which compiler and
//! which flags. This crate finds the libraries, refuses those that are missing, damaged or not what
//! their card says, and hands out the rest as [`SignaturePeer`]s. It uses none of Lanework's own
//! primitives and nothing of the laboratory; the caller that races a peer joins both.
//!
//! The GOST family's [`CipherPeer`]s come from the system as well, or are built by the same command.
//!
//! ```no_run
//! for found in lanework_peers::Peers::discover("target/peers".as_ref()) {
//!     match found {
//!         Ok(peer) => println!("{}: {} {}", peer.name(), peer.family(), peer.round()),
//!         Err(unavailable) => println!("{unavailable}"),
//!     }
//! }
//! ```
//!
//! Peers draw randomness from [`random`], a cheap and predictable stream, so that no race measures
//! the operating system's generator. **Keys and signatures made through this crate are worthless
//! for anything but measuring and checking.**
#![deny(unsafe_code)]

pub mod card;
pub mod cipher;
pub mod delay;
pub mod ed25519;
mod elf;
pub mod flavour;
#[cfg(feature = "gmp")]
pub mod gmp;
pub mod gost;
pub mod ifma;
mod liboqs;
pub mod machine;
pub mod random;
pub mod signature;
#[allow(unsafe_code)]
mod sys;

use std::path::Path;

pub use card::Card;
pub use cipher::{
    AeadContext, CipherContext, CipherKey, CipherKind, CipherMode, CipherPeer, CipherSet, Direction,
    Gost89Mode, MacContext, Sbox,
};
pub use delay::{ChainFailed, DELAY_FLAVOURS, DelayChain, DelayFlavour, DelayLibrary, DelayPath};
pub use flavour::{FLAG_BUILDS, FLAVOURS, Flavour, Release};
pub use gost::{CIPHER_FLAVOURS, CipherFlavour, CipherPlaces};
pub use random::{seed_random, set_random};
pub use signature::{ExpandedKey, PeerError, SetId, SignaturePeer, SignatureSet};

/// The remedy for a missing peer that has to be built.
pub const REMEDY: &str = "cargo xtask peers";

/// Stack, in bytes, that a thread should have before it calls a peer; a spawned thread has this much by default.
///
/// The implementations keep whole expanded keys in local variables: the largest set takes more than a
/// mebibyte, and code that runs out of stack there dies by a signal.
pub const STACK_BYTES: usize = 2 << 20;

/// The peers of one directory.
#[derive(Debug, Clone, Copy)]
pub struct Peers;

impl Peers {
    /// Loads every peer this crate knows from `dir`, in the order of [`FLAVOURS`].
    ///
    /// One entry per flavour, always: a peer that cannot be used here says why instead. This runs
    /// the initialisers of the libraries it loads, so `dir` must be trusted as a program's own
    /// directory is; a library whose length or SHA-256 is not what its card says is not loaded.
    pub fn discover(dir: &Path) -> Vec<Result<Box<dyn SignaturePeer>, Unavailable>> {
        FLAVOURS.iter().map(|flavour| Self::load(dir, flavour)).collect()
    }

    /// The same for [`FLAG_BUILDS`].
    pub fn discover_flag_builds(dir: &Path) -> Vec<Result<Box<dyn SignaturePeer>, Unavailable>> {
        FLAG_BUILDS.iter().map(|flavour| Self::load(dir, flavour)).collect()
    }

    /// Loads the one peer called `name` from `dir`, of either list.
    ///
    /// # Errors
    /// [`Unavailable`] when no flavour has that name, or for the reasons of [`Peers::discover`].
    pub fn find(dir: &Path, name: &str) -> Result<Box<dyn SignaturePeer>, Unavailable> {
        match FLAVOURS.iter().chain(FLAG_BUILDS).find(|flavour| flavour.name == name) {
            Some(flavour) => Self::load(dir, flavour),
            None => {
                let known: Vec<_> = FLAVOURS.iter().map(|flavour| flavour.name).collect();
                Err(Unavailable {
                    name: name.to_owned(),
                    why: format!("no peer has that name; known are {}", known.join(", ")),
                    remedy: String::new(),
                })
            }
        }
    }

    fn load(dir: &Path, flavour: &'static Flavour) -> Result<Box<dyn SignaturePeer>, Unavailable> {
        match liboqs::Liboqs::load(dir, flavour) {
            Ok(peer) => Ok(Box::new(peer)),
            Err(why) => Err(Unavailable {
                name: flavour.name.to_owned(),
                why,
                remedy: format!("{REMEDY} --only {} --out {}", flavour.name, dir.display()),
            }),
        }
    }
}

/// A peer that cannot be used here. Unlike a backend (`lanework_cpu::Unavailable`) it can often be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// The peer's name, as in [`Flavour::name`].
    pub name: String,
    /// What is wrong: a missing file, a card that does not fit, a symbol not found.
    pub why: String,
    /// The command that may help; empty when none would.
    pub remedy: String,
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is unavailable: {}", self.name, self.why)?;
        if !self.remedy.is_empty() {
            write!(f, " (try `{}`)", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for Unavailable {}
