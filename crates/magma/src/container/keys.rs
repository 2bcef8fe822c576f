//! From the user's secret to the key of a chunk.
//!
//! secret -> file key and commitment (one `KDF_TREE`) -> branch keys, one for 256 chunks (`KDF`) -> chunk keys (Magma
//! itself: the branch key's first 1024 blocks of gamma, four for a key). The last step avoids an HMAC for each chunk.
//! An HMAC of Streebog takes some 10 microseconds, a quarter of a chunk's time; four blocks of Magma in bulk take
//! almost no time.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError};

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::Error;
use super::header::{Header, HeaderStart, Source};

use crate::backend::Engine;
use crate::kdf;
use crate::key::{Magma, Sealed};
use crate::mgm::Mgm;
use crate::release::equal;
use crate::schedule::Counter;

/// The label of the file's key and its commitment.
const FILE_LABEL: &[u8] = b"lanework magma container: file";
/// The label of a branch's key.
const BRANCH_LABEL: &[u8] = b"lanework magma container: branch";

/// Chunks whose keys come from one branch key.
pub(super) const BRANCH: u64 = 256;

/// The user's secret. Wiped when dropped.
pub enum Secret {
    /// A key of 32 bytes.
    Key(Zeroizing<[u8; 32]>),
    /// A passphrase, in any encoding: RFC 9337 recommends UTF-8.
    Passphrase(Zeroizing<Vec<u8>>),
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Secret::Key(_) => "Key(..)",
            Secret::Passphrase(_) => "Passphrase(..)",
        })
    }
}

impl Secret {
    /// Whether it is a passphrase.
    #[must_use]
    pub const fn is_passphrase(&self) -> bool {
        matches!(self, Secret::Passphrase(_))
    }

    /// The root of the key tree: the key itself, or the one `made` from the passphrase.
    fn root<'a>(&'a self, start: &HeaderStart, made: &'a mut [u8; 32]) -> Result<&'a [u8; 32], Error> {
        match (self, start.source()) {
            (Secret::Key(key), Source::Key) => Ok(key),
            (Secret::Passphrase(text), Source::Passphrase { .. }) if text.is_empty() => {
                Err(Error::EmptyPassphrase)
            }
            (Secret::Passphrase(text), Source::Passphrase { iterations }) => {
                kdf::pbkdf2(text, start.salt(), iterations, made)
                    .map_err(|_| Error::Iterations(iterations))?;
                Ok(made)
            }
            (Secret::Key(_), Source::Passphrase { .. }) => Err(Error::NeedsPassphrase),
            (Secret::Passphrase(_), Source::Key) => Err(Error::NeedsKey),
        }
    }
}

/// The keys of one container.
pub(super) struct Keys {
    /// On the heap: a value that moves leaves a copy of itself on the stack.
    file: Box<Zeroizing<[u8; 32]>>,
    engine: Engine,
    /// The two most recent branches, by parity: concurrent threads use at most two neighbouring branches.
    branches: [Mutex<Option<Arc<Branch>>>; 2],
}

/// The chunk keys of one branch. Wiped when dropped.
#[derive(ZeroizeOnDrop)]
struct Branch {
    #[zeroize(skip)]
    number: u64,
    keys: Vec<u8>,
}

impl Keys {
    /// The keys of a new container and its header.
    pub(super) fn create(
        secret: &Secret,
        start: HeaderStart,
        engine: Engine,
    ) -> Result<(Keys, Header), Error> {
        let (keys, commitment) = Keys::derive(secret, &start, engine)?;
        Ok((keys, Header { start, commitment: *commitment }))
    }

    /// The keys of an existing container, if its header commits to the secret.
    pub(super) fn check(secret: &Secret, header: &Header, engine: Engine) -> Result<Keys, Error> {
        let (keys, commitment) = Keys::derive(secret, &header.start, engine)?;
        if equal(commitment.as_slice(), &header.commitment) { Ok(keys) } else { Err(Error::WrongKey) }
    }

    fn derive(
        secret: &Secret,
        start: &HeaderStart,
        engine: Engine,
    ) -> Result<(Keys, Zeroizing<[u8; 32]>), Error> {
        let mut made = Zeroizing::new([0; 32]);
        let root = secret.root(start, &mut made)?;
        let mut both = Zeroizing::new([0; 64]);
        if kdf::kdf_tree(root, FILE_LABEL, &start.bytes(), 1, both.as_mut_slice()).is_err() {
            unreachable!("two keys are within a counter of one byte");
        }
        let mut file = Box::new(Zeroizing::new([0; 32]));
        let mut commitment = Zeroizing::new([0; 32]);
        file.copy_from_slice(&both[..32]);
        commitment.copy_from_slice(&both[32..]);
        Ok((Keys { file, engine, branches: [Mutex::new(None), Mutex::new(None)] }, commitment))
    }

    /// The cipher of a chunk.
    pub(super) fn chunk(&self, chunk: u64) -> Mgm {
        let branch = self.branch(chunk / BRANCH);
        let at = (chunk % BRANCH) as usize * 32;
        let mut key = [0; 32];
        key.copy_from_slice(&branch.keys[at..at + 32]);
        let mgm = Mgm::with(&key, super::TAG, self.engine);
        key.zeroize();
        match mgm {
            Ok(mgm) => mgm,
            Err(_) => unreachable!("MGM has tags of 8 bytes"),
        }
    }

    fn branch(&self, number: u64) -> Arc<Branch> {
        let mut slot = self.branches[(number % 2) as usize].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(branch) = slot.as_ref().filter(|b| b.number == number) {
            return Arc::clone(branch);
        }
        let root = kdf::kdf(self.file.as_slice(), BRANCH_LABEL, &number.to_be_bytes());
        let mut keys = vec![0; BRANCH as usize * 32];
        Magma::with(&root, self.engine).core().keystream(Counter::low(0), &mut keys);
        let branch = Arc::new(Branch { number, keys });
        *slot = Some(Arc::clone(&branch));
        branch
    }
}
