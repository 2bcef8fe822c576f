//! CryptoPro key meshing, RFC 4357, 2.3.2.
#![forbid(unsafe_code)]

use alloc::sync::Arc;

use lanework_cpu::memory::wipe;

use super::Meshing;
use crate::error::Error;
use crate::key::{Core, Gost28147};
use crate::limits::Charge;

/// The constant C, which the old key decrypts into the new one.
const C: [u8; 32] = [
    0x69, 0x00, 0x72, 0x22, 0x64, 0xc9, 0x04, 0x23, 0x8d, 0x3a, 0xdb, 0x96, 0x46, 0xe9, 0x2a, 0xc4, 0x18,
    0xfe, 0xac, 0x94, 0x00, 0xed, 0x07, 0x12, 0xc0, 0x86, 0xdc, 0xc2, 0xef, 0x4c, 0xa9, 0x2b,
];

/// Bytes under one key.
const SECTION: usize = 1024;

/// A key with or without meshing.
#[derive(Clone)]
pub(super) struct Meshed {
    /// The current key, on the account of the given one. Copying a key takes as long as two blocks.
    pub(super) core: Arc<Core>,
    meshing: Meshing,
    charge: Charge,
    /// Bytes under the current key.
    used: usize,
}

impl Meshed {
    pub(super) fn new(key: &Gost28147, meshing: Meshing) -> Meshed {
        let section = match meshing {
            Meshing::None => u64::MAX,
            Meshing::CryptoPro => SECTION as u64,
        };
        Meshed { core: key.share(), meshing, charge: Charge::new(section), used: 0 }
    }

    /// Charges the given key for its part of the next `bytes`, of which the first is byte `at` of its block.
    pub(super) fn admit(&mut self, at: usize, bytes: usize) -> Result<(), Error> {
        self.charge.spend(&self.core.budget, at as u64, bytes as u64)
    }

    /// Whether this many bytes may follow, without charging the key.
    pub(super) fn would_take(&self, at: usize, bytes: u64) -> Result<(), Error> {
        self.core.budget.allows(self.charge.due(at as u64, bytes))
    }

    /// Whether the key changes before the next byte.
    pub(super) fn due(&self) -> bool {
        self.meshing == Meshing::CryptoPro && self.used == SECTION
    }

    /// The number of bytes that may go under the current key, at most `n`.
    pub(super) fn reach(&self, n: usize) -> usize {
        match self.meshing {
            Meshing::None => n,
            Meshing::CryptoPro => n.min(SECTION - self.used),
        }
    }

    /// Counts this many bytes under the key.
    pub(super) fn count(&mut self, n: usize) {
        if self.meshing == Meshing::CryptoPro {
            self.used += n;
        }
    }

    /// Changes the key, and encrypts the IV under the new one.
    pub(super) fn change(&mut self, iv: Option<&mut [u8; 8]>) {
        let mut key = C;
        self.core.decrypt_blocks(key.as_mut_slice().into());
        Core::own(&mut self.core).change(&key);
        wipe(&mut key);
        if let Some(iv) = iv {
            self.core.encrypt_block(iv);
        }
        self.used = 0;
    }
}
