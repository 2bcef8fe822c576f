//! Trees of keys: TLSTREE of the TLS suites (RFC 9189, 8.1) and the tree of ESP (RFC 9227, 4.1).
//!
//! Both derive a message's key from a root in three steps, and neighbouring messages share the upper steps: each level
//! is kept until its number changes, so most records need no derivation.
#![forbid(unsafe_code)]

use core::fmt;

use zeroize::{Zeroize, Zeroizing};

use crate::backend::Engine;
use crate::error::Error;
use crate::kdf::Prf;
use crate::key::Magma;

/// The labels of the three levels, the same in both standards.
const LABELS: [&[u8]; 3] = [b"level1", b"level2", b"level3"];

/// A root and the most recent path. Wiped when dropped.
#[derive(Clone)]
struct Tree {
    root: Prf,
    /// The last leaf's seed at each level, and the levels' keys: two that derive, and the leaf.
    seeds: [Option<[u8; 8]>; 3],
    inner: [Option<Prf>; 2],
    leaf: Zeroizing<[u8; 32]>,
}

impl Tree {
    fn new(root: &[u8]) -> Tree {
        Tree { root: Prf::new(root), seeds: [None; 3], inner: [None, None], leaf: Zeroizing::new([0; 32]) }
    }

    /// The leaf under three seeds of `lengths` bytes at the end of each array; whether it changed.
    fn walk(&mut self, seeds: [[u8; 8]; 3], lengths: [usize; 3]) -> bool {
        let from = (0..3).find(|&level| self.seeds[level] != Some(seeds[level]));
        let Some(from) = from else { return false };
        for level in from..3 {
            let parent = match level {
                0 => Some(&self.root),
                _ => self.inner[level - 1].as_ref(),
            };
            let Some(parent) = parent else { unreachable!("levels are made from the root down") };
            let key = parent.derive(LABELS[level], &seeds[level][8 - lengths[level]..]);
            match level {
                2 => self.leaf.copy_from_slice(&*key),
                _ => self.inner[level] = Some(Prf::new(&*key)),
            }
            self.seeds[level] = Some(seeds[level]);
        }
        true
    }
}

/// The suites that use TLSTREE with Magma.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// TLS_GOSTR341112_256_WITH_MAGMA_CTR_OMAC of TLS 1.2 (RFC 9189): a new key every 4,096 records, 2^32 records at
    /// most.
    CtrOmac,
    /// TLS_GOSTR341112_256_WITH_MAGMA_MGM_L of TLS 1.3 (RFC 9367): a new key every 128 records.
    MgmL,
    /// TLS_GOSTR341112_256_WITH_MAGMA_MGM_S of TLS 1.3 (RFC 9367): a new key for every record, 2^39 records at most.
    MgmS,
}

impl Suite {
    /// All suites.
    pub const ALL: [Suite; 3] = [Suite::CtrOmac, Suite::MgmL, Suite::MgmS];

    /// C_1, C_2 and C_3: the bits of a record's number at each level.
    #[must_use]
    pub const fn masks(self) -> [u64; 3] {
        match self {
            Suite::CtrOmac => [0xffff_ffc0_0000_0000, 0xffff_ffff_fe00_0000, 0xffff_ffff_ffff_f000],
            Suite::MgmL => [0xffe0_0000_0000_0000, 0xffff_ffff_c000_0000, 0xffff_ffff_ffff_ff80],
            Suite::MgmS => [0xffff_ffff_fc00_0000, 0xffff_ffff_ffff_e000, 0xffff_ffff_ffff_ffff],
        }
    }

    /// SNMAX, the last number that a record may have.
    #[must_use]
    pub const fn last(self) -> u64 {
        match self {
            Suite::CtrOmac => (1 << 32) - 1,
            Suite::MgmL => u64::MAX,
            Suite::MgmS => (1 << 39) - 1,
        }
    }
}

/// TLSTREE: the keys of a connection's records in one direction. Wiped when dropped.
#[derive(Clone)]
pub struct TlsTree {
    tree: Tree,
    suite: Suite,
    magma: Option<Magma>,
}

impl TlsTree {
    /// A tree under a root: a sender's write key, or its MAC key.
    #[must_use]
    pub fn new(root: &[u8; 32], suite: Suite) -> TlsTree {
        TlsTree { tree: Tree::new(root), suite, magma: None }
    }

    /// The suite.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The key of record `number`.
    ///
    /// # Errors
    /// [`Error::SequenceOverflow`] if the suite does not allow this many records.
    pub fn key(&mut self, number: u64) -> Result<&[u8; 32], Error> {
        if number > self.suite.last() {
            return Err(Error::SequenceOverflow { last: self.suite.last() });
        }
        Ok(self.leaf(number))
    }

    /// TLSTREE without a last number.
    fn leaf(&mut self, number: u64) -> &[u8; 32] {
        let seeds = self.suite.masks().map(|mask| (number & mask).to_be_bytes());
        if self.tree.walk(seeds, [8; 3]) {
            self.magma = None;
        }
        &self.tree.leaf
    }

    /// The cipher of record `number`. It is made again, on `engine`, only when its key differs from the last record's. A
    /// key counts processed and refused bytes ([`crate::limits`]) while it is the last record's. TLS ends a connection at
    /// the first refused record. Protocols that continue, as DTLS does, must count refused records over all keys.
    ///
    /// # Errors
    /// [`Error::SequenceOverflow`] if the suite does not allow this many records.
    pub fn cipher(&mut self, number: u64, engine: Engine) -> Result<&Magma, Error> {
        let mut key = Zeroizing::new([0; 32]);
        key.copy_from_slice(self.key(number)?);
        Ok(self.magma.get_or_insert_with(|| Magma::with(&key, engine)))
    }
}

impl fmt::Debug for TlsTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsTree").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// A packet's IV: its key's place in the tree of ESP, and its number under that key (RFC 9227, 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EspPath {
    /// The first level.
    pub i1: u8,
    /// The second level.
    pub i2: u16,
    /// The third level.
    pub i3: u16,
    /// The packet's number under its key, below 2^24.
    pub number: u32,
}

impl EspPath {
    /// Reads an IV.
    #[must_use]
    pub fn from_iv(iv: [u8; 8]) -> EspPath {
        EspPath {
            i1: iv[0],
            i2: u16::from_be_bytes([iv[1], iv[2]]),
            i3: u16::from_be_bytes([iv[3], iv[4]]),
            number: u32::from_be_bytes([0, iv[5], iv[6], iv[7]]),
        }
    }

    /// The IV.
    ///
    /// # Errors
    /// [`Error::SequenceOverflow`] if the packet's number has more than 24 bits: it is time for the next key.
    pub fn iv(&self) -> Result<[u8; 8], Error> {
        let number = self.number()?;
        let (i2, i3) = (self.i2.to_be_bytes(), self.i3.to_be_bytes());
        Ok([self.i1, i2[0], i2[1], i3[0], i3[1], number[0], number[1], number[2]])
    }

    fn number(&self) -> Result<[u8; 3], Error> {
        match self.number.to_be_bytes() {
            [0, a, b, c] => Ok([a, b, c]),
            _ => Err(Error::SequenceOverflow { last: (1 << 24) - 1 }),
        }
    }
}

/// The tree of ENCR_MAGMA_MGM_KTREE and ENCR_MAGMA_MGM_MAC_KTREE (RFC 9227). Wiped when dropped.
#[derive(Clone)]
pub struct EspTree {
    tree: Tree,
    salt: [u8; 4],
}

impl Drop for EspTree {
    fn drop(&mut self) {
        self.salt.zeroize();
    }
}

impl EspTree {
    /// The most bytes that one leaf key may protect (RFC 9227, 5).
    pub const BUDGET: u64 = 1 << 28;

    /// A tree under a transform key: the root's 32 bytes and 4 bytes of salt (RFC 9227, 4.4).
    #[must_use]
    pub fn new(transform: &[u8; 36]) -> EspTree {
        let (root, salt) = transform.split_at(32);
        EspTree { tree: Tree::new(root), salt: [salt[0], salt[1], salt[2], salt[3]] }
    }

    /// K_msg, the key of a packet. A forger can choose a packet's path, and with it a key that has counted nothing yet.
    /// Count refused packets over all paths, and agree on another root when there are too many (RFC 9227, 5).
    pub fn key(&mut self, path: EspPath) -> &[u8; 32] {
        let seeds = [u64::from(path.i1), u64::from(path.i2), u64::from(path.i3)].map(u64::to_be_bytes);
        // Each level's number has two bytes: 0x00 | i1, i2, i3.
        self.tree.walk(seeds, [2; 3]);
        &self.tree.leaf
    }

    /// The packet's nonce for MGM (RFC 9227, 4.3.2).
    ///
    /// # Errors
    /// [`Error::SequenceOverflow`] if the packet's number has more than 24 bits.
    pub fn nonce(&self, path: EspPath) -> Result<[u8; 8], Error> {
        let number = path.number()?;
        let mut nonce = [0; 8];
        nonce[1..4].copy_from_slice(&number);
        nonce[4..].copy_from_slice(&self.salt);
        Ok(nonce)
    }
}

impl fmt::Debug for EspTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EspTree").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
