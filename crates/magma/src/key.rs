//! Keys: the two ciphers as types, and their common parts.
#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;

use inout::InOutBuf;

use crate::backend::Engine;
use crate::error::Error;
use crate::limits::{Budget, Limits};
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Counter, Schedule, wipe_words, word};

/// The common part of both ciphers: schedules for both directions, and the kernels that run them.
#[doc(hidden)]
pub struct Core {
    pub(crate) words: [u32; 8],
    pub(crate) encrypt: Schedule,
    pub(crate) decrypt: Schedule,
    pub(crate) engine: Engine,
    pub(crate) budget: Budget,
}

impl Drop for Core {
    fn drop(&mut self) {
        wipe_words(&mut self.words);
    }
}

impl Core {
    /// On the heap from the start: a value that moves leaves a copy of itself on the stack, which nothing wipes.
    pub(crate) fn new(key: &[u8; 32], sbox: Sbox, order: ByteOrder, engine: Engine) -> Arc<Core> {
        let budget = Budget::new(Limits::default());
        let mut core = Core::without_a_key(sbox, order, engine, budget);
        Core::own(&mut core).change(key);
        core
    }

    fn without_a_key(sbox: Sbox, order: ByteOrder, engine: Engine, budget: Budget) -> Arc<Core> {
        let zeros = [0; 8];
        Arc::new(Core {
            words: zeros,
            encrypt: Schedule::encrypt(&zeros, sbox, order),
            decrypt: Schedule::decrypt(&zeros, sbox, order),
            engine,
            budget,
        })
    }

    /// Becomes another key of the same kind, in the same memory and on the same account. Words are written in place one
    /// by one, without a copy on the stack.
    pub(crate) fn change(&mut self, key: &[u8; 32]) {
        let order = self.encrypt.order;
        for (word, bytes) in self.words.iter_mut().zip(key.as_chunks::<4>().0) {
            *word = order.word(*bytes);
        }
        self.spread();
    }

    /// The schedules of the words.
    fn spread(&mut self) {
        for schedule in [&mut self.encrypt, &mut self.decrypt] {
            let rising = schedule.rising;
            for (r, round) in schedule.rounds.iter_mut().enumerate() {
                *round = self.words[word(r, rising)];
            }
        }
    }

    /// The same key on the same account, in separate memory.
    fn another(&self) -> Arc<Core> {
        let Schedule { sbox, order, .. } = self.encrypt;
        let mut core = Core::without_a_key(sbox, order, self.engine, self.budget.clone());
        let new = Core::own(&mut core);
        new.words.copy_from_slice(&self.words);
        new.spread();
        core
    }

    /// A core to change: this one, or a copy in its place if it is shared.
    pub(crate) fn own(core: &mut Arc<Core>) -> &mut Core {
        if Arc::get_mut(core).is_none() {
            *core = core.another();
        }
        Arc::get_mut(core).expect("nobody else has it")
    }

    /// The same key under other limits. It still counts together with its clones, which keep their limits.
    pub(crate) fn limit(&mut self, limits: Limits) {
        self.budget.set_limits(limits);
    }

    /// Whole blocks, in place or not.
    pub(crate) fn encrypt_blocks(&self, data: InOutBuf<'_, '_, u8>) {
        self.engine.blocks(&self.encrypt, data);
    }

    /// Whole blocks, in place or not.
    pub(crate) fn decrypt_blocks(&self, data: InOutBuf<'_, '_, u8>) {
        self.engine.blocks(&self.decrypt, data);
    }

    /// One block as bytes.
    pub(crate) fn encrypt_block(&self, block: &mut [u8; 8]) {
        self.engine.blocks(&self.encrypt, block.as_mut_slice().into());
    }

    /// Any number of bytes.
    pub(crate) fn counter(&self, counter: Counter, data: InOutBuf<'_, '_, u8>) {
        self.engine.counter(&self.encrypt, counter, data);
    }

    /// Whole blocks of keystream.
    pub(crate) fn keystream(&self, counter: Counter, out: &mut [u8]) {
        self.engine.keystream(&self.encrypt, counter, out);
    }
}

mod sealed {
    pub trait Sealed {
        fn core(&self) -> &super::Core;
    }
}
pub(crate) use sealed::Sealed;

/// A block cipher of this crate under a key: 8-byte blocks, 32-byte keys.
pub trait Keyed: Sealed {
    /// The backend in use.
    fn backend(&self) -> &'static str {
        self.core().engine.name()
    }

    /// The S-box set.
    fn sbox(&self) -> Sbox {
        self.core().encrypt.sbox
    }

    /// The policy of this key.
    fn limits(&self) -> Limits {
        self.core().budget.limits()
    }

    /// The bytes of all blocks that the modes have begun under this key and its clones, and 32 for each message of MGM.
    /// Section keys of OMAC-ACPKM have a count of their own (see [`crate::limits`]).
    fn used(&self) -> u64 {
        self.core().budget.used()
    }

    /// The bytes of messages that this key and its clones have refused; short ones count as more (see
    /// [`crate::limits`]).
    fn refused(&self) -> u64 {
        self.core().budget.refused()
    }
}

/// A borrowed key is a key: modes take either.
impl<K: Sealed> Sealed for &K {
    fn core(&self) -> &Core {
        (**self).core()
    }
}
impl<K: Keyed> Keyed for &K {}

/// Magma under a key (GOST R 34.12-2015, RFC 8891): big-endian, S-box set Z. Wiped when dropped.
pub struct Magma(Arc<Core>);

/// GOST 28147-89 under a key (RFC 5830): little-endian, an S-box set of the caller's choice. Wiped when dropped.
pub struct Gost28147(Arc<Core>);

impl Clone for Magma {
    fn clone(&self) -> Magma {
        Magma(self.0.another())
    }
}

impl Clone for Gost28147 {
    fn clone(&self) -> Gost28147 {
        Gost28147(self.0.another())
    }
}

impl Sealed for Magma {
    fn core(&self) -> &Core {
        &self.0
    }
}
impl Keyed for Magma {}

impl Sealed for Gost28147 {
    fn core(&self) -> &Core {
        &self.0
    }
}
impl Keyed for Gost28147 {}

impl Magma {
    /// The key under other limits than [`Limits::default`]. It still counts together with its
    /// clones, which keep their limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Magma {
        Core::own(&mut self.0).limit(limits);
        self
    }

    /// A key on this machine's best backend.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Magma {
        Magma::with(key, Engine::best())
    }

    /// A key on a chosen backend.
    #[must_use]
    pub fn with(key: &[u8; 32], engine: Engine) -> Magma {
        Magma(Core::new(key, Sbox::Z, ByteOrder::Big, engine))
    }

    /// A key from a slice; its length is checked.
    ///
    /// # Errors
    /// [`Error::KeyLength`].
    pub fn from_slice(key: &[u8], engine: Engine) -> Result<Magma, Error> {
        Ok(Magma::with(key.try_into().map_err(|_| Error::KeyLength(key.len()))?, engine))
    }
}

impl Gost28147 {
    /// The key under other limits than [`Limits::default`]. It still counts together with its
    /// clones, which keep their limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Gost28147 {
        Core::own(&mut self.0).limit(limits);
        self
    }

    /// A key on this machine's best backend.
    #[must_use]
    pub fn new(key: &[u8; 32], sbox: Sbox) -> Gost28147 {
        Gost28147::with(key, sbox, Engine::best())
    }

    /// A key on a chosen backend.
    #[must_use]
    pub fn with(key: &[u8; 32], sbox: Sbox, engine: Engine) -> Gost28147 {
        Gost28147(Core::new(key, sbox, ByteOrder::Little, engine))
    }

    /// The common part, shared: the key stays in memory until its last owner is dropped.
    pub(crate) fn share(&self) -> Arc<Core> {
        self.0.clone()
    }

    /// A key from a slice; its length is checked.
    ///
    /// # Errors
    /// [`Error::KeyLength`].
    pub fn from_slice(key: &[u8], sbox: Sbox, engine: Engine) -> Result<Gost28147, Error> {
        Ok(Gost28147::with(key.try_into().map_err(|_| Error::KeyLength(key.len()))?, sbox, engine))
    }
}

impl fmt::Debug for Magma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Magma").field("backend", &self.backend()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Gost28147 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gost28147")
            .field("sbox", &self.sbox())
            .field("backend", &self.backend())
            .finish_non_exhaustive()
    }
}
