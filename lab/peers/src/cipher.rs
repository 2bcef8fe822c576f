//! The trait of the family of GOST's 64-bit block cipher, and the types its methods use.
//!
//! The family is Magma (GOST R 34.12-2015, RFC 8891) and the cipher it grew from, GOST 28147-89 (RFC 5830):
//! encryption modes, message authentication codes, and MGM. Peers are taken as they are: a peer's
//! [`CipherSet`]s give its name for a mode, the length of its initialisation vector and the order in which it
//! reads bytes.
#![forbid(unsafe_code)]

use crate::card::Card;
use crate::signature::PeerError;

/// Bytes of a key, in every mode.
pub const KEY_BYTES: usize = 32;

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 8;

/// A key, in the byte order of its cipher's own document.
pub type CipherKey = [u8; KEY_BYTES];

/// The substitution of GOST 28147-89 that a peer uses; Magma has just one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sbox {
    /// `id-tc26-gost-28147-param-Z` of RFC 7836, which Magma adopted.
    Tc26Z,
    /// `id-Gost28147-89-CryptoPro-A-ParamSet` of RFC 4357.
    CryptoProA,
    /// `id-GostR3411-94-TestParamSet`, the example in the standard of the old hash function: libgcrypt's
    /// default.
    Gost94Test,
}

/// A way of running GOST 28147-89.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gost89Mode {
    /// Simple substitution (RFC 5830, section 5).
    Ecb,
    /// Gamma: the standard's own counter mode (RFC 5830, section 6).
    Cnt,
    /// Gamma with feedback (RFC 5830, section 7).
    Cfb,
    /// Cipher block chaining, which the standard does not have (RFC 4357, section 2.1).
    Cbc,
    /// Output feedback as other ciphers do it, not the standard's gamma.
    Ofb,
    /// A counter as other ciphers have it, big-endian over the block's bytes; not the standard's gamma.
    Ctr,
    /// The standard's own authentication code of sixteen rounds (RFC 5830, section 8).
    Imit,
    /// CMAC as other ciphers have it, over this block.
    Cmac,
}

/// A mode that a peer may offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CipherMode {
    /// Magma, block by block.
    MagmaEcb,
    /// Magma in counter mode (GOST R 34.13-2015), vector of four bytes.
    MagmaCtr,
    /// Counter mode whose key changes after every section (RFC 8645, R 1323565.1.017-2018).
    MagmaCtrAcpkm,
    /// Cipher block chaining; the peers take a vector of one block only.
    MagmaCbc,
    /// Cipher feedback; the peers take a vector of one block only.
    MagmaCfb,
    /// Output feedback; the peers take a vector of one block only.
    MagmaOfb,
    /// The authentication code of GOST R 34.13-2015, which is CMAC.
    MagmaOmac,
    /// The authentication code whose key changes after every section.
    MagmaOmacAcpkm,
    /// Authenticated encryption (RFC 9058).
    MagmaMgm,
    /// GOST 28147-89, little-endian.
    Gost89 {
        /// How it is run.
        mode: Gost89Mode,
        /// With which substitution.
        sbox: Sbox,
        /// Whether the key and the vector change after every 1,024 bytes (RFC 4357, section 2.3.2).
        meshing: bool,
    },
}

impl CipherMode {
    /// GOST 28147-89 in `mode`.
    pub const fn gost89(mode: Gost89Mode, sbox: Sbox, meshing: bool) -> Self {
        Self::Gost89 { mode, sbox, meshing }
    }

    /// What kind of context the mode needs.
    pub const fn kind(self) -> CipherKind {
        match self {
            Self::MagmaMgm => CipherKind::Aead,
            Self::MagmaOmac
            | Self::MagmaOmacAcpkm
            | Self::Gost89 { mode: Gost89Mode::Imit | Gost89Mode::Cmac, .. } => CipherKind::Mac,
            _ => CipherKind::Cipher,
        }
    }
}

/// Which of [`CipherPeer`]'s three methods opens a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CipherKind {
    /// [`CipherPeer::cipher`].
    Cipher,
    /// [`CipherPeer::mac`].
    Mac,
    /// [`CipherPeer::aead`].
    Aead,
}

/// Encrypt or decrypt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Plain text in, cipher text out.
    Encrypt,
    /// Cipher text in, plain text out.
    Decrypt,
}

/// What a peer offers under one mode. All sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CipherSet {
    /// The mode.
    pub mode: CipherMode,
    /// What the peer itself calls it.
    pub native: &'static str,
    /// Size of the initialisation vector or nonce; 0 where there is none.
    pub iv: usize,
    /// Size of the tag; 0 for modes that only encrypt.
    pub tag: usize,
    /// Inputs must be a multiple of this: 8 where the mode works on whole blocks, else 1.
    pub granule: usize,
}

/// Somebody else's implementation of Magma or of GOST 28147-89.
///
/// A context is opened once for a mode and used for many messages. Contexts are single-threaded and
/// may be moved to another thread; several may be used at once.
pub trait CipherPeer: Send + Sync {
    /// The peer's name, unique among peers.
    fn name(&self) -> &str;

    /// Where the peer came from and how it was built, as far as that is known.
    fn card(&self) -> &Card;

    /// What it offers.
    fn sets(&self) -> &[CipherSet];

    /// What it offers under `mode`, if anything.
    fn set(&self, mode: CipherMode) -> Option<&CipherSet> {
        self.sets().iter().find(|set| set.mode == mode)
    }

    /// Opens an encryption mode.
    ///
    /// # Errors
    /// [`PeerError::UnknownMode`] where the peer lacks the mode or it is of another kind,
    /// [`PeerError::Length`] for the vector, or [`PeerError::Refused`].
    fn cipher(
        &self,
        mode: CipherMode,
        direction: Direction,
        key: &CipherKey,
        iv: &[u8],
    ) -> Result<Box<dyn CipherContext>, PeerError>;

    /// Opens an authentication code.
    ///
    /// # Errors
    /// As [`CipherPeer::cipher`].
    fn mac(&self, mode: CipherMode, key: &CipherKey) -> Result<Box<dyn MacContext>, PeerError>;

    /// Opens an authenticated encryption mode.
    ///
    /// # Errors
    /// As [`CipherPeer::cipher`].
    fn aead(&self, mode: CipherMode, key: &CipherKey) -> Result<Box<dyn AeadContext>, PeerError>;
}

/// An encryption mode with its key, somewhere in a message.
pub trait CipherContext: Send {
    /// Starts a new message under another key, in the same memory: the peer's cheapest way.
    ///
    /// # Errors
    /// [`PeerError::Length`] for the vector, or [`PeerError::Refused`].
    fn rekey(&mut self, key: &CipherKey, iv: &[u8]) -> Result<(), PeerError>;

    /// Starts a new message under the same key.
    ///
    /// # Errors
    /// As [`CipherContext::rekey`].
    fn restart(&mut self, iv: &[u8]) -> Result<(), PeerError>;

    /// Goes on with the message: `output` becomes `input` encrypted or decrypted.
    ///
    /// # Errors
    /// [`PeerError::Length`] where the two differ in length, [`PeerError::Unaligned`] where the mode
    /// needs whole blocks, or [`PeerError::Refused`].
    fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<(), PeerError>;
}

/// An authentication code with its key.
pub trait MacContext: Send {
    /// Replaces the key, in the same memory.
    ///
    /// # Errors
    /// [`PeerError::Refused`].
    fn rekey(&mut self, key: &CipherKey) -> Result<(), PeerError>;

    /// Writes the code of `message` to `tag`, which must have the mode's size.
    ///
    /// # Errors
    /// [`PeerError::Length`] or [`PeerError::Refused`].
    fn mac(&mut self, message: &[u8], tag: &mut [u8]) -> Result<(), PeerError>;
}

/// An authenticated encryption mode with its key.
pub trait AeadContext: Send {
    /// Replaces the key, in the same memory.
    ///
    /// # Errors
    /// [`PeerError::Refused`].
    fn rekey(&mut self, key: &CipherKey) -> Result<(), PeerError>;

    /// Encrypts `plain` to `sealed`, which has the same length, and writes the tag, which has the mode's size.
    ///
    /// Peers differ on what RFC 9058 forbids: one refuses a nonce whose top bit is set, another silently
    /// clears the bit.
    ///
    /// # Errors
    /// [`PeerError::Length`] or [`PeerError::Refused`].
    fn seal(
        &mut self,
        nonce: &[u8],
        aad: &[u8],
        plain: &[u8],
        sealed: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), PeerError>;

    /// Decrypts `sealed` to `plain` and says whether the tag is right. If not, `plain` is meaningless.
    ///
    /// # Errors
    /// As [`AeadContext::seal`].
    fn open(
        &mut self,
        nonce: &[u8],
        aad: &[u8],
        sealed: &[u8],
        plain: &mut [u8],
        tag: &[u8],
    ) -> Result<bool, PeerError>;
}

/// A Magma key as GOST 28147-89 reads it, and back: the same numbers, each 32-bit word reversed.
pub fn reorder_key(key: &CipherKey) -> CipherKey {
    let mut key = *key;
    key.as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
    key
}

/// Magma's blocks as GOST 28147-89 with [`Sbox::Tc26Z`] reads them, and back: each block reversed.
///
/// With the key of [`reorder_key`] this turns one cipher into the other in [`Gost89Mode::Ecb`],
/// [`Gost89Mode::Cbc`], [`Gost89Mode::Cfb`] and [`Gost89Mode::Ofb`] without meshing, vectors included;
/// a counter counts at the block's other end. A partial last block is left as it is.
pub fn reorder_blocks(text: &mut [u8]) {
    text.as_chunks_mut::<BLOCK_BYTES>().0.iter_mut().for_each(|block| block.reverse());
}

/// Checks what every peer's [`CipherContext::update`] must.
pub(crate) fn check_update(granule: usize, input: &[u8], output: &[u8]) -> Result<(), PeerError> {
    check_length("output", output.len(), input.len())?;
    if input.len().is_multiple_of(granule) {
        Ok(())
    } else {
        Err(PeerError::Unaligned { granule, actual: input.len() })
    }
}

/// Checks one length.
pub(crate) fn check_length(what: &'static str, actual: usize, expected: usize) -> Result<(), PeerError> {
    if actual == expected { Ok(()) } else { Err(PeerError::Length { what, expected, actual }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reordering_twice_changes_nothing() {
        let key: CipherKey = std::array::from_fn(|i| i as u8);
        assert_eq!(reorder_key(&key)[..5], [3, 2, 1, 0, 7]);
        assert_eq!(reorder_key(&reorder_key(&key)), key);
        let mut text: Vec<u8> = (0..19).collect();
        reorder_blocks(&mut text);
        assert_eq!(text, [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 16, 17, 18]);
    }

    #[test]
    fn lengths_are_judged_by_the_modes_granule() {
        assert_eq!(check_update(8, &[0; 16], &[0; 16]), Ok(()));
        assert_eq!(check_update(1, &[0; 15], &[0; 15]), Ok(()));
        assert_eq!(check_update(8, &[0; 15], &[0; 15]), Err(PeerError::Unaligned { granule: 8, actual: 15 }));
        let wrong = PeerError::Length { what: "output", expected: 16, actual: 15 };
        assert_eq!(check_update(8, &[0; 16], &[0; 15]), Err(wrong));
    }
}
