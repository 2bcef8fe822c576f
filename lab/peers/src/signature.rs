//! The trait of the signature family, and the types its methods use.
#![forbid(unsafe_code)]

use crate::card::Card;

/// A parameter set of one peer, as an index into [`SignaturePeer::sets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetId(pub(crate) usize);

/// What a peer offers under one parameter set. All sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureSet {
    /// Identifies this set in the peer's methods.
    pub id: SetId,
    /// Short name, the same for every peer of the family: `mayo1`.
    pub name: &'static str,
    /// Size of a public key.
    pub public_key: usize,
    /// Size of a secret key.
    pub secret_key: usize,
    /// Size of a signature.
    pub signature: usize,
    /// Size of a public key once expanded; `None` where the peer keeps that step to itself.
    pub expanded_key: Option<usize>,
    /// The code that runs for this set on this CPU, in the peer's own words: `avx2`, `opt`. Empty where it does not say.
    pub code: String,
}

/// Somebody else's implementation of a signature scheme.
///
/// All methods are single-threaded, need [`crate::STACK_BYTES`] of stack, draw randomness from
/// [`crate::random`] and may be called from several threads at once. Buffers must have exactly the
/// sizes of the set.
pub trait SignaturePeer: Send + Sync {
    /// The peer's name, unique among peers.
    fn name(&self) -> &str;

    /// Where the peer came from and how it was built.
    fn card(&self) -> &Card;

    /// The family of schemes: `mayo`.
    fn family(&self) -> &str {
        &self.card().family
    }

    /// The submission round it implements: `round1`, `round2`. Rounds do not interoperate.
    fn round(&self) -> &str {
        &self.card().round
    }

    /// The parameter sets it offers.
    fn sets(&self) -> &[SignatureSet];

    /// The set called `name`, if the peer offers it.
    fn set(&self, name: &str) -> Option<&SignatureSet> {
        self.sets().iter().find(|set| set.name == name)
    }

    /// Parameter sets of other schemes in the same library. They sign and verify as MAYO's do, and expand no key.
    fn others(&self) -> &[SignatureSet] {
        &[]
    }

    /// How AES-128 in counter mode, which the scheme relies on, runs on this CPU: `aes-ni`, `c`.
    fn aes(&self) -> &str;

    /// Makes a key pair.
    ///
    /// # Errors
    /// [`PeerError::UnknownSet`], [`PeerError::Length`], or [`PeerError::Refused`].
    fn keypair(&self, set: SetId, public_key: &mut [u8], secret_key: &mut [u8]) -> Result<(), PeerError>;

    /// Signs `message`, writing to the front of `signature`; returns the bytes written.
    ///
    /// # Errors
    /// As [`SignaturePeer::keypair`].
    fn sign(
        &self,
        set: SetId,
        signature: &mut [u8],
        message: &[u8],
        secret_key: &[u8],
    ) -> Result<usize, PeerError>;

    /// Whether `signature` is valid for `message`. A signature of the wrong length is refused, not an
    /// error, as the peer itself would have it.
    ///
    /// # Errors
    /// [`PeerError::UnknownSet`], or [`PeerError::Length`] for the public key.
    fn verify(
        &self,
        set: SetId,
        message: &[u8],
        signature: &[u8],
        public_key: &[u8],
    ) -> Result<bool, PeerError>;

    /// The first step of verifying, alone: expands `public_key` into `out`, which must have been made
    /// for this set. Subtracting its time from that of [`SignaturePeer::verify`] leaves the cost for a
    /// verifier whose keys are expanded already.
    ///
    /// # Errors
    /// As [`SignaturePeer::keypair`], or [`PeerError::Hidden`].
    fn expand_pk(&self, set: SetId, public_key: &[u8], out: &mut ExpandedKey) -> Result<(), PeerError>;
}

/// Space for an expanded public key, in the peer's own layout, on a 64-byte boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandedKey {
    lines: Vec<Line>,
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
struct Line([u64; 8]);

impl ExpandedKey {
    /// Zeroed space for `bytes` bytes, and one 64-byte line after them.
    pub fn new(bytes: usize) -> Self {
        Self { lines: vec![Line([0; 8]); bytes.div_ceil(64) + 1], bytes }
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it holds nothing at all.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The content as 64-bit words, [`ExpandedKey::len`] rounded up to a multiple of eight bytes.
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.lines.iter().flat_map(|line| line.0).take(self.bytes.div_ceil(8))
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u64 {
        self.lines.as_mut_ptr().cast()
    }
}

/// Why a peer's method failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerError {
    /// The peer has no such parameter set.
    UnknownSet,
    /// A buffer does not have the set's size.
    Length {
        /// Which buffer.
        what: &'static str,
        /// The size it must have, in bytes.
        expected: usize,
        /// The size it has, in bytes.
        actual: usize,
    },
    /// The peer's code returned a failure.
    Refused {
        /// The step that failed.
        what: &'static str,
        /// What it returned.
        status: i32,
    },
    /// The peer does not offer this step by itself.
    Hidden,
    /// The peer does not offer this mode, or it is of another kind than the method called.
    UnknownMode,
    /// An input does not consist of whole blocks where the mode needs them.
    Unaligned {
        /// What its length must be a multiple of, in bytes.
        granule: usize,
        /// The length it has, in bytes.
        actual: usize,
    },
}

impl std::fmt::Display for PeerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownSet => write!(f, "the peer has no such parameter set"),
            Self::Length { what, expected, actual } => {
                write!(f, "the {what} has {actual} bytes where the set needs {expected}")
            }
            Self::Refused { what, status } => write!(f, "the peer failed to {what} (status {status})"),
            Self::Hidden => write!(f, "the peer does not offer this step by itself"),
            Self::UnknownMode => write!(f, "the peer does not offer this mode in this way"),
            Self::Unaligned { granule, actual } => {
                write!(f, "the input has {actual} bytes where the mode needs a multiple of {granule}")
            }
        }
    }
}

impl std::error::Error for PeerError {}
