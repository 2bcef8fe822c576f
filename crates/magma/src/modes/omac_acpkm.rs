//! OMAC-ACPKM, RFC 8645, 6.3.6 and R 1323565.1.017-2018: OMAC whose sections have their own keys.
#![forbid(unsafe_code)]

use lanework_cpu::memory::wipe;
use zeroize::Zeroize;

use super::BLOCK;
use super::acpkm::{CtrAcpkm, SectionKey, checked_section, wipe_derived};
use super::omac::{Chain, Tag, tag_length};
use crate::error::Error;
use crate::key::{Magma, Sealed};
use crate::limits::{Charge, Limits};

/// d = k + n: a section's key and the block that its last block is masked with.
const MATERIAL: usize = 32 + BLOCK;

/// OMAC-ACPKM of one message, with a tag of 4 to 8 bytes. Serial.
///
/// The key material of all sections comes from the keystream of CTR-ACPKM under the given key, in sections of T* bytes;
/// the given key is charged for that. The section keys are the same in every message, and have a count of their own under
/// the same limits ([`crate::limits`]). [`OmacAcpkm::update`] returns [`Error::TooLong`] beyond the keystream's 2^31
/// blocks: (2^31 * 8 / 40) sections.
#[derive(Clone)]
pub struct OmacAcpkm {
    master: CtrAcpkm,
    key: SectionKey,
    /// K^i_1, for a message that ends in this section.
    mask: u64,
    /// Blocks of the message that still go under `key`.
    left: u64,
    /// N, in blocks.
    section: u64,
    bytes: u64,
    longest: u64,
    charge: Charge,
    chain: Chain,
    tag: usize,
}

impl OmacAcpkm {
    /// A message under a key, with sections of N = `section` bytes and master keys that change after T* = `frequency`
    /// bytes of key material; its tag will have `tag` bytes.
    ///
    /// # Errors
    /// [`Error::Section`] unless N is a positive multiple of 8, [`Error::Parameter`] unless T* is one of 40, both up to
    /// [`Limits::LONGEST_SECTION`]; [`Error::TagLength`] unless 4 <= `tag` <= 8; [`Error::KeyExhausted`].
    pub fn with_key(key: &Magma, section: usize, frequency: usize, tag: usize) -> Result<OmacAcpkm, Error> {
        let section = checked_section(section)? / BLOCK as u64;
        if frequency == 0 || !frequency.is_multiple_of(MATERIAL) || frequency > Limits::LONGEST_SECTION {
            return Err(Error::Parameter("T*, which must be a positive multiple of 40 bytes, below 2^28"));
        }
        let tag = tag_length(tag)?;
        let mut master = CtrAcpkm::with_section(key, &[0xff; 4], frequency)?;
        let mut section_key = SectionKey::first(key.core());
        master.admit(MATERIAL as u64)?;
        let mask = next(&mut master, &mut section_key);
        wipe_derived();
        let longest = ((1 << 31) * BLOCK as u64 / MATERIAL as u64).saturating_mul(section * BLOCK as u64);
        Ok(OmacAcpkm {
            master,
            key: section_key,
            mask,
            left: section,
            section,
            bytes: 0,
            longest,
            charge: Charge::new(section * BLOCK as u64),
            chain: Chain::new(),
            tag,
        })
    }

    /// The next piece of the message.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::KeyExhausted`] where the limits of the given key or of its section keys do not allow
    /// the piece. The piece is not part of the message then.
    pub fn update(&mut self, data: &[u8]) -> Result<(), Error> {
        let end = self.bytes.checked_add(data.len() as u64).filter(|&end| end <= self.longest);
        let end = end.ok_or(Error::TooLong { limit: self.longest })?;
        self.admit(end)?;
        let mut changed = false;
        let OmacAcpkm { master, key, mask, left, section, .. } = self;
        self.chain.update(data, |block| {
            // A block is encrypted only when another one follows, so the section's key changes only here: a message that
            // ends with its section needs no further key.
            key.engine.blocks(&key.schedule, block.as_mut_slice().into());
            *left -= 1;
            if *left == 0 {
                *left = *section;
                *mask = next(master, key);
                changed = true;
            }
        });
        if changed {
            wipe_derived();
        }
        self.bytes = end;
        Ok(())
    }

    /// Whether the message may have `end` bytes. Charges the section keys for what is new, and the given key for the key
    /// material that it needs. Nothing has changed after an error.
    fn admit(&mut self, end: u64) -> Result<(), Error> {
        let changes = |bytes: u64| bytes.saturating_sub(1) / (self.section * BLOCK as u64);
        let material = (changes(end) - changes(self.bytes)) * MATERIAL as u64;
        let due = self.charge.due(self.bytes, end - self.bytes);
        self.master.budget().spend_on_sections(due)?;
        if let Err(why) = self.master.admit(material) {
            self.master.budget().take_back_from_sections(due);
            return Err(why);
        }
        self.charge.paid(due);
        Ok(())
    }

    /// The tag. An empty message has one too: that of an empty last block in the first section.
    #[must_use]
    pub fn finish(mut self) -> Tag {
        let mut value = self.chain.end(self.mask);
        self.key.engine.blocks(&self.key.schedule, value.as_mut_slice().into());
        Tag::new(value, self.tag)
    }

    /// Sets the position without processing, for tests of a message's end.
    #[cfg(test)]
    pub(super) fn jump(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// Whether `tag` is the message's, in constant time.
    ///
    /// # Errors
    /// [`Error::TagLength`] unless it has the length chosen at the beginning; [`Error::Refused`] if it is wrong;
    /// [`Error::TooManyRefused`] if the given key has refused too many ([`crate::limits`]).
    pub fn verify(self, tag: &[u8]) -> Result<(), Error> {
        let budget = self.master.budget().clone();
        budget.judge(0, || self.finish().verify(tag))
    }
}

impl Drop for OmacAcpkm {
    fn drop(&mut self) {
        self.mask.zeroize();
    }
}

/// Takes the next section's key, and returns its mask. The master key has been charged.
fn next(master: &mut CtrAcpkm, key: &mut SectionKey) -> u64 {
    let mut material = [0; MATERIAL];
    master.run(material.as_mut_slice().into());
    key.change(material.first_chunk().expect("longer than a key"));
    let mask = u64::from_be_bytes(core::array::from_fn(|i| material[32 + i]));
    wipe(&mut material);
    mask
}
