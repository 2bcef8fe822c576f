//! How much one key may process, as a policy on the key.
//!
//! A block of 64 bits is short: after q blocks under one key, a ciphertext in CTR, CBC, CFB or OFB differs from noise
//! with an advantage of about q^2 / 2^65, and this crate processes 2^32 blocks in seconds. Every key therefore counts
//! the blocks that the modes process under it, all clones together, as 8 bytes each. It refuses a piece that exceeds its
//! limit with [`Error::KeyExhausted`], and processes none of it.
//!
//! A block that a piece begins counts in full, and the rest of it is free. So a message of one byte counts as 8 bytes. A
//! clone counts the block again that its message was in, since it may end it differently.
//!
//! | mode | calls of the cipher for a message | counted blocks |
//! |---|---|---|
//! | ECB, CBC | n | n |
//! | CTR, CFB, OFB | n | n |
//! | CTR-ACPKM | n, and 4 for each further key | n, up to a section |
//! | OMAC | n + 1 | n |
//! | OMAC-ACPKM | n, and those of its key material | n, up to a section |
//! | MGM | a + 2n + 4 | a + n + 4 |
//! | CNT | n + 1 | n + 1 |
//! | IMIT | n, and one more up to 8 bytes | n |
//!
//! Here n is the number of the data's blocks, begun ones included, and a that of the associated data. MGM's number is
//! the s + 4q of its bounds (RFC 9058, 6), for one message: two first counters, the lengths and the tag take four calls.
//! Calls that are the same in every message do not count: OMAC's on the zero block, and ACPKM's on its constants.
//! CFB and OFB encrypt their whole register, and what no data was added to does not count.
//!
//! # Section keys
//!
//! Some modes change their key after every section: CTR-ACPKM, OMAC-ACPKM, key meshing. The keys follow from the given
//! one alone, so they are the same in every message. A message is charged up to the length of one section. No section
//! key processes more of it than that. One count therefore bounds all keys of the chain, over all messages. The rest of
//! a cloned stream may differ, so a clone is charged like another message.
//!
//! In CTR-ACPKM and key meshing, the chain begins with the given key, and the count is the given key's. In OMAC-ACPKM the
//! given key makes only key material, which it is charged for. The section keys have a count of their own under the same
//! limit. [`Keyed::used`](crate::Keyed::used) does not include it.
//!
//! # Forgeries
//!
//! Forged messages have their own account. Sealing never draws on it, so forgeries cannot use up the key for its owner.
//! When [`Limits::REFUSED`] bytes have been refused, the key verifies and opens nothing more
//! ([`Error::TooManyRefused`], before any decryption). It still seals: agree on another key under it. Reaching the limit
//! means that tags are being guessed, or that two sides do not share a key.
//!
//! A refused message counts with its associated data and data, and as [`Limits::LEAST_REFUSED`] bytes if it is shorter. A
//! refused code of OMAC, OMAC-ACPKM, IMIT or KExp15 counts as that many bytes, whatever its message's length: the key was
//! charged for the message itself.
//! The message that reaches the limit counts in full. Clones share the account, which lives as long as they do. A caller
//! that makes a new key for each message (a leaf of a tree, a process for each file) must count refused messages itself.
//!
//! Where the number comes from: RFC 9058, 6, bounds the chance of one forgery of l blocks after sealed messages of s
//! blocks by 3(s + 4q + l + 3)^2 / 2^64 + 2 / 2^S, for q messages and tags of S bits. For several forgeries, l is the
//! sum of their blocks, and the last term counts once for each; this is how RFC 9001, B.2, counts them for CCM, not a
//! theorem of RFC 9058. 2^28 bytes are 2^25 blocks, as many as [`Limits::Rfc9227`] lets the key seal. With s + 4q
//! = l = 2^25 the first term is 2^-10.4, where sealing alone reaches 2^-12.4. As each refused message counts 256 bytes or
//! more, there are at most 2^20 of them: the last term is 2^-43 for whole tags and 2^-11 for tags of 4 bytes.
#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::modes::BLOCK;

/// A policy for one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limits {
    /// 2^28 bytes, the limit of RFC 9227 (5) for one Magma key in IPsec: the advantage stays below 2^-15. The default.
    #[default]
    Rfc9227,
    /// The traffic of a TLS 1.2 key of RFC 9189 before TLSTREE replaces it: 4096 records, each with a MAC over at most
    /// 2^14 bytes and 13 of header, which begin 2^11 + 2 blocks. Encryption changes its key every 1 KiB by itself (RFC
    /// 9189, 4.3.3).
    Rfc9189,
    /// The caller's own numbers.
    Custom {
        /// The most bytes under one key, counted in whole blocks of 8.
        bytes: u64,
        /// The bytes of an ACPKM section: a positive multiple of 8, up to [`Limits::LONGEST_SECTION`].
        section: usize,
    },
    /// No limit on bytes, neither processed nor refused. The modes' own limits (a counter that would repeat, a message
    /// that is too long) remain. Callers must count elsewhere, or accept that traffic under the key differs from noise
    /// and that tags can be guessed without limit.
    Unlimited,
}

impl Limits {
    /// The last record number of TLS 1.2 with Magma: SNMAX (RFC 9189, 4.3.5).
    pub const RFC9189_LAST_RECORD: u64 = (1 << 32) - 1;

    /// The most bytes of messages that one key may refuse before it opens nothing more, unless it is
    /// [`Limits::Unlimited`].
    pub const REFUSED: u64 = 1 << 28;

    /// The least number of bytes that a refused message counts as.
    pub const LEAST_REFUSED: u64 = 256;

    /// The longest ACPKM section: one key processes one section, and RFC 9227 (5) allows one Magma key 2^28 bytes. RFC
    /// 8645 (6.2) leaves the number to protocols and to the lifetime of a key.
    pub const LONGEST_SECTION: usize = 1 << 28;

    /// The most bytes that one key may process, in blocks of which a begun one counts in full; [`u64::MAX`] means
    /// unlimited.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Limits::Rfc9227 => 1 << 28,
            Limits::Rfc9189 => 4096 * ((1 << 14) + 16),
            Limits::Custom { bytes, .. } => bytes,
            Limits::Unlimited => u64::MAX,
        }
    }

    /// The most bytes of refused messages; [`u64::MAX`] means unlimited.
    #[must_use]
    pub const fn refused(self) -> u64 {
        match self {
            Limits::Unlimited => u64::MAX,
            _ => Limits::REFUSED,
        }
    }

    /// The bytes of an ACPKM section unless the caller sets another number: 1 KiB (RFC 9189, 4.3.3).
    #[must_use]
    pub const fn section(self) -> usize {
        match self {
            Limits::Custom { section, .. } => section,
            _ => 1024,
        }
    }
}

/// Bytes of the blocks that `bytes` more begin, after `before` bytes of the same message. What is beyond a `u64` is
/// [`u64::MAX`].
pub(crate) fn begun(before: u64, bytes: u64) -> u64 {
    let free = before.wrapping_neg() % BLOCK as u64;
    bytes.saturating_sub(free).checked_next_multiple_of(BLOCK as u64).unwrap_or(u64::MAX)
}

/// Bytes of forged messages. The count saturates.
#[derive(Debug, Default)]
pub(crate) struct Refusals(AtomicU64);

impl Refusals {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether another message may be verified.
    pub(crate) fn allow(&self, limit: u64) -> Result<(), Error> {
        if self.bytes() < limit || limit == u64::MAX { Ok(()) } else { Err(Error::TooManyRefused { limit }) }
    }

    /// Counts a refused message of this many bytes.
    pub(crate) fn count(&self, bytes: u64) {
        let more = |sum: u64| Some(sum.saturating_add(bytes.max(Limits::LEAST_REFUSED)));
        // Relaxed: the count guards nothing but itself. The update always has a value, so it cannot fail.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

/// The bytes that a key and all its clones have processed and refused together.
#[derive(Debug, Default)]
struct Account {
    used: AtomicU64,
    /// Bytes under the first section key of OMAC-ACPKM.
    sections: AtomicU64,
    refused: Refusals,
}

/// An account, and the limits of one of its keys. A clone with other limits shares the account.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    limits: Limits,
    account: Arc<Account>,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Budget {
        Budget { limits, account: Arc::default() }
    }

    /// Other limits on the same count.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn used(&self) -> u64 {
        self.account.used.load(Ordering::Relaxed)
    }

    pub(crate) fn refused(&self) -> u64 {
        self.account.refused.bytes()
    }

    /// Whether this many bytes are left.
    pub(crate) fn allows(&self, bytes: u64) -> Result<(), Error> {
        let limit = self.limits.bytes();
        match self.used().checked_add(bytes) {
            Some(sum) if sum <= limit => Ok(()),
            _ => Err(Error::KeyExhausted { limit }),
        }
    }

    /// Takes `bytes` from the rest, all or nothing.
    pub(crate) fn spend(&self, bytes: u64) -> Result<(), Error> {
        self.count(&self.account.used, bytes)
    }

    /// The same for the section keys of OMAC-ACPKM.
    pub(crate) fn spend_on_sections(&self, bytes: u64) -> Result<(), Error> {
        self.count(&self.account.sections, bytes)
    }

    /// Takes back what [`Budget::spend_on_sections`] has counted for a piece that is refused for another reason.
    pub(crate) fn take_back_from_sections(&self, bytes: u64) {
        self.account.sections.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn count(&self, count: &AtomicU64, bytes: u64) -> Result<(), Error> {
        let limit = self.limits.bytes();
        let within = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= limit);
        // Relaxed: the count guards nothing but itself.
        match count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::KeyExhausted { limit }),
        }
    }

    /// Whether a message with this charge may be opened at all, authentic or not.
    pub(crate) fn may_open(&self, charge: u64) -> Result<(), Error> {
        self.account.refused.allow(self.limits.refused())?;
        self.allows(charge)
    }

    /// Verifies a message of this many bytes, unless the key has refused too many; counts a refusal.
    pub(crate) fn judge(&self, bytes: u64, verify: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        self.account.refused.allow(self.limits.refused())?;
        let verdict = verify();
        if verdict == Err(Error::Refused) {
            self.account.refused.count(bytes);
        }
        verdict
    }

    /// Charges the key with `charge` for a message of `bytes` that is authentic, and counts one that is not.
    pub(crate) fn open(&self, bytes: u64, charge: u64, authentic: bool) -> Result<(), Error> {
        self.judge(bytes, || if authentic { Ok(()) } else { Err(Error::Refused) })?;
        self.spend(charge)
    }
}

/// What a message still has to be charged for: the length of one section in all, where its key changes.
///
/// No key of the chain processes more of a message than that (see the module's documentation).
#[derive(Debug)]
pub(crate) struct Charge {
    section: u64,
    left: u64,
    /// Whether the message's unfinished block is counted.
    counted: bool,
}

impl Charge {
    /// Of a message in sections of this many bytes; [`u64::MAX`] if its key does not change.
    pub(crate) fn new(section: u64) -> Charge {
        Charge { section, left: section, counted: false }
    }

    /// The charge for the next `bytes`, at this place of the message.
    pub(crate) fn due(&self, place: u64, bytes: u64) -> u64 {
        let at = place % BLOCK as u64;
        let blocks =
            if self.counted || bytes == 0 { begun(at, bytes) } else { begun(0, bytes.saturating_add(at)) };
        blocks.min(self.left)
    }

    /// Notes that [`Charge::due`] has been charged for some bytes.
    pub(crate) fn paid(&mut self, due: u64) {
        self.left -= due;
        self.counted |= due > 0;
    }

    /// Charges the key for the next `bytes` at this place of the message, all or nothing.
    pub(crate) fn spend(&mut self, budget: &Budget, place: u64, bytes: u64) -> Result<(), Error> {
        let due = self.due(place, bytes);
        budget.spend(due)?;
        self.paid(due);
        Ok(())
    }
}

/// The clone of a message is another message: it may continue differently under the same keys, from the unfinished
/// block on.
impl Clone for Charge {
    fn clone(&self) -> Charge {
        Charge::new(self.section)
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
    fn a_block_counts_when_it_is_begun() {
        for before in 0..40u64 {
            for bytes in 0..40u64 {
                let blocks = |bytes: u64| 8 * bytes.div_ceil(8);
                assert_eq!(begun(before, bytes), blocks(before + bytes) - blocks(before), "{before} {bytes}");
            }
        }
        assert_eq!((begun(0, u64::MAX), begun(1, u64::MAX - 7)), (u64::MAX, u64::MAX - 7));
        assert_eq!(begun(u64::MAX, 9), 8);
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
    fn refusals_are_capped_by_themselves() {
        let limits = Limits::Custom { bytes: 100, section: 8 };
        let budget = Budget::new(limits);
        let clone = budget.clone();
        // Short messages count as 256 bytes; the one that reaches the limit counts in full.
        for refused in 1..=1000 {
            assert_eq!(budget.open(7, 7, false), Err(Error::Refused));
            assert_eq!(clone.refused(), 256 * refused);
        }
        assert_eq!(budget.open(Limits::REFUSED - 256_001, 0, false), Err(Error::Refused));
        assert_eq!(budget.judge(0, || Ok(())), Ok(()), "a byte is left");
        assert_eq!(budget.open(1 << 29, 0, false), Err(Error::Refused));
        // No clone verifies another message, and sealing continues.
        let closed = Err(Error::TooManyRefused { limit: Limits::REFUSED });
        for budget in [&budget, &clone] {
            assert_eq!(budget.may_open(1), closed);
            assert_eq!((budget.open(1, 1, true), budget.open(1, 1, false)), (closed.clone(), closed.clone()));
            assert_eq!(budget.judge(0, || unreachable!("nothing is verified")), closed);
        }
        assert_eq!(budget.used(), 0);
        budget.spend(100).unwrap();
    }

    #[test]
    fn a_count_of_refusals_stays_at_its_end() {
        let refusals = Refusals::default();
        refusals.count(u64::MAX - 1);
        refusals.count(1);
        refusals.count(u64::MAX);
        assert_eq!(refusals.bytes(), u64::MAX);
        assert!(refusals.allow(u64::MAX - 1).is_err());
        assert_eq!(refusals.allow(Limits::Unlimited.refused()), Ok(()));
    }

    #[test]
    fn the_default_is_a_limit() {
        assert_eq!(Limits::default().bytes(), 268_435_456);
        assert_eq!(Limits::default().section(), 1024);
    }
}
