//! How much one key may process, as a policy on the key.
//!
//! A block of 64 bits is short: after q blocks under one key, a ciphertext in CTR, CBC, CFB or OFB can be told from noise with an
//! advantage of about q^2 / 2^65, and at the speeds of this crate 2^32 blocks pass in seconds. Every key therefore counts the
//! bytes that the modes put through it, all clones of a key together, and refuses with [`Error::KeyExhausted`] what
//! would go beyond its limit. Nothing of a refused piece is processed. Modes that change their key themselves (CTR-ACPKM,
//! OMAC-ACPKM, key meshing) charge the key that they were given for its own section only.
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::error::Error;

/// A policy for one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limits {
    /// 2^28 bytes, what RFC 9227 (5) allows one Magma key in IPsec: the advantage stays below 2^-15. The default.
    #[default]
    Rfc9227,
    /// What a TLS 1.2 key of RFC 9189 meets before TLSTREE replaces it: 4096 records, each with a MAC over at most 2^14 bytes
    /// and 13 of header. Encryption changes its key every 1 KiB by itself (RFC 9189, 4.3.3).
    Rfc9189,
    /// The caller's own numbers.
    Custom {
        /// The most bytes under one key.
        bytes: u64,
        /// The bytes of an ACPKM section: a positive multiple of 8.
        section: usize,
    },
    /// No limit on bytes. The modes' own limits (a counter that would repeat, a message that is too long) remain. Whoever asks
    /// for this keeps the count elsewhere, or accepts that traffic under the key can be told from noise.
    Unlimited,
}

impl Limits {
    /// The last record number of TLS 1.2 with Magma: SNMAX (RFC 9189, 4.3.5).
    pub const RFC9189_LAST_RECORD: u64 = (1 << 32) - 1;

    /// The most bytes that one key may process; [`u64::MAX`] is no limit.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Limits::Rfc9227 => 1 << 28,
            Limits::Rfc9189 => 4096 * ((1 << 14) + 13),
            Limits::Custom { bytes, .. } => bytes,
            Limits::Unlimited => u64::MAX,
        }
    }

    /// The bytes of an ACPKM section where the caller does not say otherwise: 1 KiB (RFC 9189, 4.3.3).
    #[must_use]
    pub const fn section(self) -> usize {
        match self {
            Limits::Custom { section, .. } => section,
            _ => 1024,
        }
    }
}

/// What a key and all its clones have processed together, and how much this one of them may. A clone shares the count, so that
/// other limits for it do not open a second account.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    limits: Limits,
    used: Arc<AtomicU64>,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Budget {
        Budget { limits, used: Arc::default() }
    }

    /// Other limits on the same count.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether so many bytes are left.
    pub(crate) fn allows(&self, bytes: u64) -> Result<(), Error> {
        let limit = self.limits.bytes();
        match self.used().checked_add(bytes) {
            Some(sum) if sum <= limit => Ok(()),
            _ => Err(Error::KeyExhausted { limit }),
        }
    }

    /// Takes `bytes` from what is left, all or nothing.
    pub(crate) fn spend(&self, bytes: u64) -> Result<(), Error> {
        let limit = self.limits.bytes();
        let within = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= limit);
        // Relaxed: the count guards nothing but itself.
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::KeyExhausted { limit }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_to_the_byte_and_refuses_whole_pieces() {
        let budget = Budget::new(Limits::Custom { bytes: 100, section: 8 });
        budget.spend(60).unwrap();
        assert_eq!(budget.spend(41), Err(Error::KeyExhausted { limit: 100 }));
        assert_eq!(budget.used(), 60);
        budget.spend(40).unwrap();
        assert_eq!(budget.spend(1), Err(Error::KeyExhausted { limit: 100 }));
        budget.spend(0).unwrap();
    }

    #[test]
    fn sums_that_overflow_are_refused_even_without_a_limit() {
        let budget = Budget::new(Limits::Unlimited);
        budget.spend(u64::MAX - 1).unwrap();
        budget.spend(1).unwrap();
        assert!(budget.spend(1).is_err());
    }

    #[test]
    fn other_limits_are_no_second_account() {
        let first = Budget::new(Limits::Custom { bytes: 100, section: 8 });
        let mut second = first.clone();
        second.set_limits(Limits::Custom { bytes: 150, section: 8 });
        first.spend(80).unwrap();
        second.spend(60).unwrap();
        assert_eq!((first.used(), second.used()), (140, 140));
        assert_eq!(first.spend(1), Err(Error::KeyExhausted { limit: 100 }));
        assert_eq!(second.spend(11), Err(Error::KeyExhausted { limit: 150 }));
        second.spend(10).unwrap();
    }

    #[test]
    fn the_default_is_a_limit() {
        assert_eq!(Limits::default().bytes(), 268_435_456);
        assert_eq!(Limits::default().section(), 1024);
    }
}
