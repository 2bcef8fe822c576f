//! CTR-ACPKM, RFC 8645, 6.2: CTR that changes its key after every section.
#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;

use inout::InOutBuf;
use lanework_cpu::Threads;
use lanework_cpu::memory::wipe;

use super::ctr::{counter, iv4};
use super::parallel::piece;
use super::{BLOCK, Stream, xor};
use crate::backend::Engine;
use crate::error::Error;
use crate::key::{Core, Magma, Sealed};
use crate::limits::{Budget, Limits};
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Schedule, wipe_words};

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

    pub(super) fn new(words: &[u32; 8], engine: Engine) -> SectionKey {
        let mut key = SectionKey::copied(&[0; 32], engine);
        key.change(words);
        key
    }

    pub(super) fn first(core: &Core) -> SectionKey {
        SectionKey::copied(&core.encrypt.rounds, core.engine)
    }

    pub(super) fn words(&self) -> [u32; 8] {
        core::array::from_fn(|i| self.schedule.rounds[i])
    }

    /// Takes another key, in the memory of this one.
    pub(super) fn change(&mut self, words: &[u32; 8]) {
        self.schedule.rounds = Schedule::encrypt_rounds(words);
    }

    /// ACPKM: the words of the section key that follows.
    pub(super) fn next(&self) -> [u32; 8] {
        let mut key = D;
        self.engine.blocks(&self.schedule, key.as_mut_slice().into());
        let words = ByteOrder::Big.words(&key);
        wipe(&mut key);
        words
    }
}

/// Magma in CTR-ACPKM: encryption and decryption are one. The IV (ICN) is the counter's upper half; after every section
/// of N bytes the key becomes ACPKM of itself. Never repeat an IV under one key.
///
/// The given key is charged only for the first section. [`Stream::process`] returns [`Error::TooLong`] beyond 2^31 blocks
/// and [`Error::KeyExhausted`] beyond the key's limits.
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
        Ok(CtrAcpkm { budget, key, current: 0, section, iv, position: 0, gamma: None })
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
        self.admit(data.len())?;
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
        let mut keys = Keys::new(self.key.words(), sections(data.len().min(window)), engine);
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
        self.key.change(&keys.last());
        self.current = (self.position - 1) / self.section;
        Ok(())
    }

    /// The part of the next `bytes` that is charged to the first section's key.
    fn charge(&self, bytes: u64) -> Result<u64, Error> {
        let end = self.position.checked_add(bytes).filter(|&end| end <= LONGEST);
        let end = end.ok_or(Error::TooLong { limit: LONGEST })?;
        Ok(end.min(self.section) - self.position.min(self.section))
    }

    /// Whether this many bytes may follow; charges the first section's key.
    fn admit(&self, bytes: usize) -> Result<(), Error> {
        self.budget.spend(self.charge(bytes as u64)?)
    }

    /// Takes the key of a section at or after the current one.
    fn reach(&mut self, section: u64) {
        while self.current < section {
            let mut words = self.key.next();
            self.key.change(&words);
            wipe_words(&mut words);
            self.current += 1;
        }
    }

    fn run(&mut self, mut data: InOutBuf<'_, '_, u8>) {
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
                let next = (!rest.is_empty()).then(|| self.key.next());
                let counter = counter(self.iv, self.position / BLOCK as u64);
                self.key.engine.counter(&self.key.schedule, counter, now);
                if let Some(mut words) = next {
                    self.key.change(&words);
                    wipe_words(&mut words);
                    self.current += 1;
                }
                self.position += n as u64;
                data = rest;
            }
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
        self.admit(data.len())?;
        self.run(data);
        Ok(())
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        self.budget.allows(self.charge(bytes)?)
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
struct Keys(Vec<[u32; 8]>);

impl Keys {
    /// `count` keys from `first` on.
    fn new(first: [u32; 8], count: usize, engine: Engine) -> Keys {
        let mut keys = Vec::with_capacity(count);
        let mut key = SectionKey::new(&first, engine);
        keys.push(first);
        for _ in 1..count {
            let words = key.next();
            key.change(&words);
            keys.push(words);
        }
        Keys(keys)
    }

    fn last(&self) -> [u32; 8] {
        self.0.last().copied().unwrap_or_default()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|words| wipe_words(words));
    }
}

/// A thread's task in a long message.
enum Task<'a> {
    /// The `count` keys that follow `from`.
    Derive { from: [u32; 8], count: usize, keys: Option<Keys> },
    /// Sections under their own keys, from block number `block` on.
    Encrypt { data: &'a mut [u8], keys: &'a [[u32; 8]], block: u64 },
}

impl Task<'_> {
    fn run(&mut self, engine: Engine, iv: u32, section: usize) {
        match self {
            Task::Derive { from, count, keys } => {
                let first = SectionKey::new(from, engine).next();
                wipe_words(from);
                *keys = Some(Keys::new(first, *count, engine));
            }
            Task::Encrypt { data, keys, block } => {
                let mut key = SectionKey::new(&keys[0], engine);
                for (i, (data, words)) in data.chunks_mut(section).zip(keys.iter()).enumerate() {
                    key.change(words);
                    let counter = counter(iv, *block + (i * section / BLOCK) as u64);
                    engine.counter(&key.schedule, counter, data.into());
                }
            }
        }
    }
}
