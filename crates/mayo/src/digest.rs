//! The digest of a message that arrives in pieces.
//!
//! MAYO hashes every message before anything else: M_digest = SHAKE256(M) is the first line of MAYO.Sign (algorithm 8)
//! and of MAYO.Verify (algorithm 9), in rounds 2 and 3, and M is used nowhere else. Hashing by pieces computes that
//! line, so a signature over a [`MessageDigest`] is the signature over its message. This is not a "prehash" variant,
//! which would sign the digest as if it were a message.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;

use zeroize::Zeroize;

use crate::backend::Engine;
use crate::backend::sponge::RATE;
use crate::error::Error;
use crate::keys::{canonical, expect};
use crate::params::Params;

/// Hashes a message of any length for signing or verifying, with 336 bytes of state.
///
/// ```
/// use lanework_mayo::{Engine, MessageHasher, Params, Round, SecretKey, Set, SignOptions};
/// # fn main() -> Result<(), lanework_mayo::Error> {
/// let (engine, params) = (Engine::best(), Params::of(Round::Three, Set::Mayo2));
/// let mut hasher = MessageHasher::new(engine, params);
/// hasher.update(b"a message ");
/// hasher.update(b"in two pieces");
/// let digest = hasher.finish();
///
/// let key = SecretKey::generate_os(params)?;
/// let signature = key.sign_digest_with(engine, &digest, SignOptions::default(), &mut getrandom::SysRng)?;
/// key.public_key(engine).verify(engine, b"a message in two pieces", &signature)?;
/// # Ok(())
/// # }
/// ```
pub struct MessageHasher {
    engine: Engine,
    params: &'static Params,
    state: [u64; 25],
    /// The first `filled` bytes wait for the rest of their block.
    block: [u8; RATE],
    filled: usize,
}

impl MessageHasher {
    /// Starts a message that is to be signed or verified with a key of `params`.
    #[must_use]
    pub const fn new(engine: Engine, params: &Params) -> MessageHasher {
        MessageHasher { engine, params: canonical(params), state: [0; 25], block: [0; RATE], filled: 0 }
    }

    /// Adds the next piece, of any length.
    pub fn update(&mut self, mut piece: &[u8]) {
        if self.filled > 0 {
            let (now, later) = piece.split_at(piece.len().min(RATE - self.filled));
            self.block[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            piece = later;
            if self.filled < RATE {
                return;
            }
            self.engine.expand().shake256_absorb(&mut self.state, &self.block);
        }
        let (whole, rest) = piece.split_at(piece.len() - piece.len() % RATE);
        self.engine.expand().shake256_absorb(&mut self.state, whole);
        self.block[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    /// The digest of all pieces.
    #[must_use]
    pub fn finish(mut self) -> MessageDigest {
        // SHAKE's suffix 1111 and the padding 10*1 (FIPS 202, sections 6.2 and 5.1).
        self.block[self.filled..].fill(0);
        self.block[self.filled] = 0x1f;
        self.block[RATE - 1] |= 0x80;
        self.engine.expand().shake256_absorb(&mut self.state, &self.block);
        let mut bytes = [0; 64];
        for (out, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(&self.state) {
            *out = word.to_le_bytes();
        }
        bytes[self.params.digest_bytes()..].fill(0);
        MessageDigest { params: self.params, bytes }
    }
}

impl Drop for MessageHasher {
    fn drop(&mut self) {
        self.state.zeroize();
        self.block.zeroize();
    }
}

impl zeroize::ZeroizeOnDrop for MessageHasher {}

impl fmt::Debug for MessageHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageHasher({}, {}, ..)", self.params.name(), self.engine.name())
    }
}

/// M_digest, the only part of a message that signing and verifying use, with the set and round it was hashed for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MessageDigest {
    params: &'static Params,
    /// [`Params::digest_bytes`] of them, then zeros.
    bytes: [u8; 64],
}

impl MessageDigest {
    /// The set and round.
    #[must_use]
    pub const fn params(&self) -> &'static Params {
        self.params
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.params.digest_bytes()]
    }
}

impl fmt::Debug for MessageDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageDigest({}, {:02x?}..)", self.params.name(), &self.bytes[..8])
    }
}

/// A message, or its digest.
#[derive(Clone, Copy)]
pub enum Message<'a> {
    /// Still to be hashed.
    Whole(&'a [u8]),
    /// Hashed piece by piece.
    Hashed(&'a MessageDigest),
}

impl<'a> Message<'a> {
    /// Messages that are still to be hashed.
    pub fn whole<M: AsRef<[u8]>>(messages: &'a [M]) -> Vec<Message<'a>> {
        messages.iter().map(|message| Message::Whole(message.as_ref())).collect()
    }

    /// Messages that were hashed piece by piece.
    pub fn hashed(digests: &'a [MessageDigest]) -> Vec<Message<'a>> {
        digests.iter().map(Message::Hashed).collect()
    }

    /// Refuses a digest that was made for another set.
    ///
    /// # Errors
    /// [`Error::WrongRound`] and [`Error::WrongSet`].
    pub fn expect(self, params: &Params) -> Result<(), Error> {
        match self {
            Message::Whole(_) => Ok(()),
            Message::Hashed(digest) => expect(params, digest.params),
        }
    }

    /// The message with the place of its digest, if it is still to be hashed; otherwise the digest is put there.
    pub fn to_hash<'b>(self, place: &'b mut [u8]) -> Option<(&'a [u8], &'b mut [u8])> {
        match self {
            Message::Whole(bytes) => Some((bytes, place)),
            Message::Hashed(digest) => {
                place.copy_from_slice(digest.as_bytes());
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{self, Signers, Verifiers};
    use crate::expanded::{SigningKey, VerifyingKey};
    use crate::internals::symmetric_spec;
    use crate::keys::{SecretKey, SignOptions};
    use crate::params::{Round, Set};
    use getrandom::SysRng;
    use lanework_cpu::{Cpu, Threads};

    fn in_pieces(engine: Engine, params: &Params, message: &[u8], size: usize) -> MessageDigest {
        let mut hasher = MessageHasher::new(engine, params);
        message.chunks(size).for_each(|piece| hasher.update(piece));
        hasher.finish()
    }

    #[test]
    fn pieces_of_every_size_give_the_digest_of_the_whole() {
        let message: Vec<u8> = (0..1000u32).map(|i| (i * i / 7) as u8).collect();
        for engine in Engine::all(&Cpu::detect()).flatten() {
            for set in [Set::Mayo1, Set::Mayo3, Set::Mayo5] {
                let params = Params::of(Round::Three, set);
                for length in [0, 1, 135, 136, 137, 271, 272, 273, 1000] {
                    let message = &message[..length];
                    let mut expected = vec![0; params.digest_bytes()];
                    symmetric_spec::shake256(message, &mut expected);
                    for size in [1, 7, 8, 135, 136, 137, 272, 500, 1000] {
                        let digest = in_pieces(engine, params, message, size);
                        assert_eq!(digest.as_bytes(), expected, "{}, {length} by {size}", engine.name());
                    }
                }
                // Empty pieces change nothing, in any position.
                let mut hasher = MessageHasher::new(engine, params);
                for piece in [&b""[..], &message[..136], b"", &message[136..200], b"", &message[200..]] {
                    hasher.update(piece);
                }
                assert_eq!(hasher.finish(), in_pieces(engine, params, &message, 1000), "{}", engine.name());
            }
        }
    }

    #[test]
    fn a_digest_of_another_set_is_refused_by_name() {
        let engine = Engine::best();
        let params = Params::of(Round::Three, Set::Mayo3);
        let key = SecretKey::from_seed(params, &[3; 32]).unwrap();
        let (public, options) = (key.public_key(engine), SignOptions::default());
        let (signing, verifying) = (SigningKey::new(engine, &key), VerifyingKey::new(engine, &public));
        let right = MessageHasher::new(engine, params).finish();
        let signature = key.sign(engine, b"").unwrap();
        assert_eq!(public.verify_digest(engine, &right, &signature), Ok(()));
        // The first has the bytes of the right one.
        for (round, set) in [(Round::Two, Set::Mayo3), (Round::Three, Set::Mayo1)] {
            let digest = MessageHasher::new(engine, Params::of(round, set)).finish();
            let refusal = if round == Round::Two {
                Error::WrongRound { expected: Round::Three, got: round }
            } else {
                Error::WrongSet { expected: Set::Mayo3, got: set }
            };
            let signed = key.sign_digest_with(engine, &digest, options, &mut SysRng);
            assert_eq!(signed, Err(refusal.clone()));
            assert_eq!(public.verify_digest(engine, &digest, &signature), Err(refusal.clone()));
            let (digests, signatures) = ([right, digest], [signature.clone(), signature.clone()]);
            let signed =
                batch::sign_digests(Signers::One(&signing), &digests, options, &mut SysRng, Threads::One);
            assert_eq!(signed, Err(refusal.clone()));
            let verifiers = Verifiers::One(&verifying);
            let verified = batch::verify_digests(verifiers, &digests, &signatures, Threads::One);
            assert_eq!(verified, Ok(vec![Ok(()), Err(refusal)]));
        }
    }

    #[test]
    fn batches_of_digests_give_what_batches_of_messages_give() {
        let messages: Vec<Vec<u8>> = (0..11).map(|i| vec![i as u8; 61 * i]).collect();
        let options = SignOptions { verify: true };
        for engine in Engine::all(&Cpu::detect()).flatten() {
            for params in Params::all() {
                let key = SecretKey::from_seed(params, &vec![9; params.secret_key_bytes()]).unwrap();
                let (signing, verifying) =
                    (SigningKey::new(engine, &key), VerifyingKey::new(engine, &key.public_key(engine)));
                let digests: Vec<MessageDigest> =
                    messages.iter().map(|message| in_pieces(engine, params, message, 100)).collect();
                for threads in [Threads::One, Threads::Own(2)] {
                    let signers = Signers::One(&signing);
                    let made = batch::sign_digests(signers, &digests, options, &mut SysRng, threads).unwrap();
                    let mut made: Vec<_> = made.into_iter().map(Result::unwrap).collect();
                    made.swap(2, 3);
                    let verifiers = Verifiers::One(&verifying);
                    let whole = batch::verify(verifiers, &messages, &made, threads).unwrap();
                    let hashed = batch::verify_digests(verifiers, &digests, &made, threads).unwrap();
                    assert_eq!(whole, hashed);
                    let refused: Vec<usize> = (0..made.len()).filter(|&i| whole[i].is_err()).collect();
                    assert_eq!(refused, [2, 3], "{}, {}", engine.name(), params.name());
                }
            }
        }
    }
}
