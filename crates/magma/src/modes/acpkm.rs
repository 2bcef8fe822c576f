//! CTR-ACPKM, RFC 8645, 6.2: CTR that changes its key after every section.
#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use inout::InOutBuf;
use lanework_cpu::Threads;
use lanework_cpu::memory::{wipe, wipe_stack_and_registers};

use super::ctr::{counter, iv4};
use super::parallel::piece;
use super::{BLOCK, Stream, xor};
use crate::backend::Engine;
use crate::error::Error;
use crate::key::{Core, Magma, Sealed};
use crate::limits::{Budget, Charge, Limits};
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Schedule};

/// D1 to D4 of RFC 8645, 6.2.1.
const D: [u8; 32] = {
    let mut d = [0; 32];
    let mut i = 0;
    while i < 32 {
        d[i] = 0x80 + i as u8;
        i += 1;
    }
    d
};

/// The most bytes of one message: 2^31 blocks (RFC 8645, 6.2.2, with c = 32).
const LONGEST: u64 = (1 << 31) * BLOCK as u64;

/// Sections whose keys are made ahead for threads: enough that the work of one window, at 1 KiB each, outweighs the cost
/// of distributing it.
const WINDOW: usize = 4096;

/// Wipes what kernels have left of new keys on the stack below the caller: a new key is their output. Called once for a
/// piece of a message, and before the stack is used for values that move to the heap.
pub(super) fn wipe_derived() {
    /// The portable kernels need almost all of it, AVX2 less than 4 KiB. `tests/wiping.rs` looks for the remains.
    const STACK: usize = 12 << 10;
    wipe_stack_and_registers::<STACK>();
}

/// The key of one section, only for encryption, which is enough. On the heap, because a value that moves leaves a copy of
/// itself on the stack.
pub(super) struct SectionKey {
    pub(super) schedule: Box<Schedule>,
    pub(super) engine: Engine,
}

impl Clone for SectionKey {
    fn clone(&self) -> SectionKey {
        SectionKey::copied(&self.schedule.rounds, self.engine)
    }
}

impl SectionKey {
    fn copied(rounds: &[u32; 32], engine: Engine) -> SectionKey {
        let mut schedule = Box::new(Schedule::encrypt(&[0; 8], Sbox::Z, ByteOrder::Big));
        schedule.rounds.copy_from_slice(rounds);
        SectionKey { schedule, engine }
    }

    fn new(bytes: &[u8; 32], engine: Engine) -> SectionKey {
        let mut key = SectionKey::copied(&[0; 32], engine);
        key.change(bytes);
        key
    }

    pub(super) fn first(core: &Core) -> SectionKey {
        SectionKey::copied(&core.encrypt.rounds, core.engine)
    }

    /// Writes the key's bytes in place, for the same reason.
    fn write(&self, bytes: &mut [u8; 32]) {
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(&self.schedule.rounds) {
            *bytes = word.to_be_bytes();
        }
    }

    /// Takes another key, in the memory of this one.
    pub(super) fn change(&mut self, bytes: &[u8; 32]) {
        let rounds = &mut self.schedule.rounds;
        for (i, bytes) in bytes.as_chunks().0.iter().enumerate() {
            let word = u32::from_be_bytes(*bytes);
            for r in [i, 8 + i, 16 + i, 31 - i] {
                rounds[r] = word;
            }
        }
    }

    /// ACPKM: writes the section key that follows in place.
    fn next(&self, bytes: &mut [u8; 32]) {
        *bytes = D;
        self.engine.blocks(&self.schedule, bytes.as_mut_slice().into());
    }

    /// Becomes the section key that follows.
    fn step(&mut self) {
        let mut bytes = [0; 32];
        self.next(&mut bytes);
        self.change(&bytes);
        wipe(&mut bytes);
    }
}

/// Magma in CTR-ACPKM: encryption and decryption are one. The IV (ICN) is the counter's upper half; after every section
/// of N bytes the key becomes ACPKM of itself. Never repeat an IV under one key.
///
/// A message is charged to the given key up to the length of one section, which bounds all its section keys
/// ([`crate::limits`]). [`Stream::process`] returns [`Error::TooLong`] beyond 2^31 blocks and [`Error::KeyExhausted`]
/// beyond the key's limits.
#[derive(Clone)]
pub struct CtrAcpkm {
    budget: Budget,
    key: SectionKey,
    /// The section, counted from 0, that `key` is for.
    current: u64,
    /// N, in bytes.
    section: u64,
    iv: u32,
    /// Bytes from the beginning of the message.
    position: u64,
    /// Keystream of the block that `position` lies within, if that is known.
    gamma: Option<[u8; BLOCK]>,
    charge: Charge,
}

impl CtrAcpkm {
    /// A message under a key and an IV of 4 bytes, with the section length of the key's limits, by default 1 KiB.
    ///
    /// # Errors
    /// [`Error::NonceLength`]; [`Error::Section`].
    pub fn with_key(key: &Magma, iv: &[u8]) -> Result<CtrAcpkm, Error> {
        CtrAcpkm::with_section(key, iv, key.core().budget.limits().section())
    }

    /// A message with sections of `section` bytes.
    ///
    /// # Errors
    /// [`Error::NonceLength`]; [`Error::Section`] unless `section` is a positive multiple of 8, up to
    /// [`Limits::LONGEST_SECTION`].
    pub fn with_section(key: &Magma, iv: &[u8], section: usize) -> Result<CtrAcpkm, Error> {
        let (core, iv) = (key.core(), iv4(iv)?);
        let (budget, key, section) =
            (core.budget.clone(), SectionKey::first(core), checked_section(section)?);
        let charge = Charge::new(section);
        Ok(CtrAcpkm { budget, key, current: 0, section, iv, position: 0, gamma: None, charge })
    }

    /// Bytes from the beginning of the message to where the next piece begins.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The account of the given key.
    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The next piece in place, spread over threads: one makes the keys of later sections while the others encrypt.
    ///
    /// # Errors
    /// As [`Stream::process`]; [`Error::Threads`], and nothing has happened then.
    pub fn apply_with(&mut self, threads: Threads<'_>, data: &mut [u8]) -> Result<(), Error> {
        let left = self.section - self.position % self.section;
        // A section that does not fit into memory cannot be one of several in `data` either.
        let (Ok(left), Ok(section)) = (usize::try_from(left), usize::try_from(self.section)) else {
            return self.apply(data);
        };
        let piece = piece(data.len().min(WINDOW.saturating_mul(section)), section, threads);
        if threads.count() == 1 || data.len() < left.saturating_add(2 * piece) {
            return self.apply(data);
        }
        let own = match threads {
            Threads::Own(count) => Some(Threads::pool(count)?),
            _ => None,
        };
        let threads = own.as_ref().map_or(threads, Threads::Pool);
        self.admit(data.len() as u64)?;
        let (head, bulk) = data.split_at_mut(left);
        self.run(head.into());
        self.bulk(threads, bulk, section, piece)
    }

    /// Whole sections and perhaps a part of one, from a section's beginning on.
    fn bulk(
        &mut self,
        threads: Threads<'_>,
        data: &mut [u8],
        section: usize,
        piece: usize,
    ) -> Result<(), Error> {
        let sections = |bytes: usize| bytes.div_ceil(section);
        let per_piece = piece / section;
        let window = WINDOW.next_multiple_of(per_piece).saturating_mul(section);
        let (iv, engine) = (self.iv, self.key.engine);
        self.reach(self.position / self.section);
        let mut keys = Keys::new(self.key.clone(), sections(data.len().min(window)));
        wipe_derived();
        let mut windows = data.chunks_mut(window).peekable();
        while let Some(data) = windows.next() {
            let (start, len) = (self.position / BLOCK as u64, data.len());
            let mut tasks = Vec::with_capacity(len.div_ceil(piece) + 1);
            // The longest task first: the keys that the next window needs.
            if let Some(next) = windows.peek() {
                tasks.push(Task::Derive { from: keys.last(), count: sections(next.len()), keys: None });
            }
            for (i, (data, keys)) in data.chunks_mut(piece).zip(keys.0.chunks(per_piece)).enumerate() {
                tasks.push(Task::Encrypt { data, keys, block: start + (i * piece / BLOCK) as u64 });
            }
            threads.for_each(&mut tasks, |_, task| task.run(engine, iv, section))?;
            self.position += len as u64;
            if let Some(Task::Derive { keys: Some(made), .. }) = tasks.into_iter().next() {
                keys = made;
            }
        }
        self.key.change(keys.last());
        self.current = (self.position - 1) / self.section;
        Ok(())
    }

    /// Whether the message has room for this many bytes.
    fn fits(&self, bytes: u64) -> Result<(), Error> {
        match self.position.checked_add(bytes) {
            Some(end) if end <= LONGEST => Ok(()),
            _ => Err(Error::TooLong { limit: LONGEST }),
        }
    }

    /// Whether this many bytes may follow; charges the given key for them.
    pub(super) fn admit(&mut self, bytes: u64) -> Result<(), Error> {
        self.fits(bytes)?;
        self.charge.spend(&self.budget, self.position, bytes)
    }

    /// Takes the key of a section at or after the current one.
    fn reach(&mut self, section: u64) {
        let before = self.current;
        while self.current < section {
            self.key.step();
            self.current += 1;
        }
        if self.current != before {
            wipe_derived();
        }
    }

    /// The next piece, which [`CtrAcpkm::admit`] has admitted.
    pub(super) fn run(&mut self, mut data: InOutBuf<'_, '_, u8>) {
        let mut changed = false;
        while !data.is_empty() {
            self.reach(self.position / self.section);
            let at = (self.position % BLOCK as u64) as usize;
            if at > 0 {
                let n = data.len().min(BLOCK - at);
                let (now, rest) = data.split_at(n);
                if self.gamma.is_none() {
                    let mut gamma = [0; BLOCK];
                    let counter = counter(self.iv, self.position / BLOCK as u64);
                    self.key.engine.keystream(&self.key.schedule, counter, &mut gamma);
                    self.gamma = Some(gamma);
                }
                if let Some(gamma) = &self.gamma {
                    xor(now, &gamma[at..at + n]);
                }
                self.position += n as u64;
                if at + n == BLOCK {
                    self.forget();
                }
                data = rest;
            } else {
                let left = self.section - self.position % self.section;
                let n = usize::try_from(left).map_or(data.len(), |left| left.min(data.len()));
                let (now, rest) = data.split_at(n);
                // If another section follows, its key is made first: the long chain of its four blocks then overlaps
                // the beginning of this section.
                let mut next = [0; 32];
                if !rest.is_empty() {
                    self.key.next(&mut next);
                }
                let counter = counter(self.iv, self.position / BLOCK as u64);
                self.key.engine.counter(&self.key.schedule, counter, now);
                if !rest.is_empty() {
                    self.key.change(&next);
                    wipe(&mut next);
                    self.current += 1;
                    changed = true;
                }
                self.position += n as u64;
                data = rest;
            }
        }
        if changed {
            wipe_derived();
        }
    }

    /// Sets the position without processing, for tests of a message's end.
    #[cfg(test)]
    pub(super) fn jump(&mut self, position: u64) {
        (self.position, self.current) = (position, position / self.section);
    }

    fn forget(&mut self) {
        if let Some(gamma) = &mut self.gamma {
            wipe(gamma);
        }
        self.gamma = None;
    }
}

impl Stream for CtrAcpkm {
    fn process(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        self.admit(data.len() as u64)?;
        self.run(data);
        Ok(())
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        self.fits(bytes)?;
        self.budget.allows(self.charge.due(self.position, bytes))
    }
}

impl Drop for CtrAcpkm {
    fn drop(&mut self) {
        self.forget();
    }
}

/// N, checked.
pub(super) fn checked_section(section: usize) -> Result<u64, Error> {
    if section == 0 || !section.is_multiple_of(BLOCK) || section > Limits::LONGEST_SECTION {
        return Err(Error::Section(section));
    }
    Ok(section as u64)
}

/// The keys of consecutive sections.
struct Keys(Vec<[u8; 32]>);

impl Keys {
    /// `count` keys from `key` on, at least one. Each is written in its place.
    fn new(mut key: SectionKey, count: usize) -> Keys {
        let mut keys = Keys(vec![[0; 32]; count]);
        let (first, others) = keys.0.split_first_mut().expect("a section has a key");
        key.write(first);
        for bytes in others {
            key.next(bytes);
            key.change(bytes);
        }
        keys
    }

    fn last(&self) -> &[u8; 32] {
        self.0.last().expect("a section has a key")
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        wipe(self.0.as_flattened_mut());
    }
}

/// A thread's task in a long message.
enum Task<'a> {
    /// The `count` keys that follow `from`.
    Derive { from: &'a [u8; 32], count: usize, keys: Option<Keys> },
    /// Sections under their own keys, from block number `block` on.
    Encrypt { data: &'a mut [u8], keys: &'a [[u8; 32]], block: u64 },
}

impl Task<'_> {
    fn run(&mut self, engine: Engine, iv: u32, section: usize) {
        match self {
            Task::Derive { from, count, keys } => {
                let mut key = SectionKey::new(from, engine);
                key.step();
                *keys = Some(Keys::new(key, *count));
                wipe_derived();
            }
            Task::Encrypt { data, keys, block } => {
                let mut key = SectionKey::new(&keys[0], engine);
                for (i, (data, bytes)) in data.chunks_mut(section).zip(keys.iter()).enumerate() {
                    key.change(bytes);
                    let counter = counter(iv, *block + (i * section / BLOCK) as u64);
                    engine.counter(&key.schedule, counter, data.into());
                }
            }
        }
    }
}
