//! `digest::Mac` for OMAC.
#![forbid(unsafe_code)]

use core::fmt;

use cipher::consts::{U8, U32};
use digest::{FixedOutput, KeyInit, MacMarker, Output, OutputSizeUser, Reset, Update};
use digest::{FixedOutputReset, common::KeySizeUser};
use zeroize::ZeroizeOnDrop;

use crate::backend::Engine;
use crate::key::Magma;
use crate::limits::Limits;
use crate::modes::Omac;

/// OMAC over Magma with the whole tag, for the `digest` traits.
///
/// Those traits cannot refuse data, so the key has [`Limits::Unlimited`]. Use [`Omac`](crate::modes::Omac) where a
/// limit matters, or where tags are shorter.
#[derive(Clone)]
pub struct MagmaOmac {
    key: Magma,
    omac: Omac<Magma>,
}

impl MagmaOmac {
    /// A key on a chosen backend.
    #[must_use]
    pub fn with(key: &[u8; 32], engine: Engine) -> MagmaOmac {
        let key = Magma::with(key, engine).with_limits(Limits::Unlimited);
        MagmaOmac { omac: begin(&key), key }
    }
}

fn begin(key: &Magma) -> Omac<Magma> {
    match Omac::with_key(key.clone(), 8) {
        Ok(omac) => omac,
        Err(_) => unreachable!("a whole block is a tag"),
    }
}

impl KeySizeUser for MagmaOmac {
    type KeySize = U32;
}

/// On this machine's best backend.
impl KeyInit for MagmaOmac {
    fn new(key: &digest::Key<MagmaOmac>) -> MagmaOmac {
        MagmaOmac::with(&key.0, Engine::best())
    }
}

impl MacMarker for MagmaOmac {}

impl OutputSizeUser for MagmaOmac {
    type OutputSize = U8;
}

impl Update for MagmaOmac {
    fn update(&mut self, data: &[u8]) {
        match self.omac.update(data) {
            Ok(()) => {}
            // 2^64 bytes under one key and all its clones.
            Err(_) => unreachable!("a key without a limit"),
        }
    }
}

impl FixedOutput for MagmaOmac {
    fn finalize_into(self, out: &mut Output<Self>) {
        out.copy_from_slice(self.omac.finish().as_ref());
    }
}

impl Reset for MagmaOmac {
    fn reset(&mut self) {
        self.omac = begin(&self.key);
    }
}

impl FixedOutputReset for MagmaOmac {
    fn finalize_into_reset(&mut self, out: &mut Output<Self>) {
        let omac = core::mem::replace(&mut self.omac, begin(&self.key));
        out.copy_from_slice(omac.finish().as_ref());
    }
}

impl fmt::Debug for MagmaOmac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MagmaOmac").finish_non_exhaustive()
    }
}

impl ZeroizeOnDrop for MagmaOmac {}
