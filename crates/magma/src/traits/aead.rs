//! `aead` for MGM.
#![forbid(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

use aead::consts::{U4, U5, U6, U7, U8, U32};
use aead::{AeadCore, AeadInOut, Key, KeyInit, KeySizeUser, Nonce, Tag, TagPosition};
use cipher::array::{Array, ArraySize};
use inout::InOutBuf;
use zeroize::ZeroizeOnDrop;

use crate::error::Error;
use crate::mgm::{self, Mgm};

mod sealed {
    pub trait Sealed {}
}

/// The lengths that a tag of MGM over Magma may have: 4 to 8 bytes.
pub trait TagLength: ArraySize + sealed::Sealed {}

macro_rules! tag_lengths {
    ($($length:ty),*) => { $(
        impl sealed::Sealed for $length {}
        impl TagLength for $length {}
    )* };
}
tag_lengths!(U4, U5, U6, U7, U8);

/// [`Mgm`] with its tag's length in the type, for the `aead` traits. The tag follows the ciphertext.
///
/// Those traits have one error. [`Error::NonceTopBit`], [`Error::EmptyMessage`], [`Error::TooLong`],
/// [`Error::KeyExhausted`] and [`Error::TooManyRefused`] become `aead::Error`; use [`Mgm`] where that matters.
#[derive(Clone)]
pub struct MagmaMgm<T: TagLength = U8> {
    mgm: Mgm,
    tag: PhantomData<T>,
}

impl<T: TagLength> TryFrom<Mgm> for MagmaMgm<T> {
    type Error = Error;

    /// A key with its backend and limits, and tags of the type's length.
    fn try_from(mgm: Mgm) -> Result<MagmaMgm<T>, Error> {
        if mgm.tag_length() != T::USIZE {
            return Err(Error::TagLength(mgm.tag_length()));
        }
        Ok(MagmaMgm { mgm, tag: PhantomData })
    }
}

impl<T: TagLength> KeySizeUser for MagmaMgm<T> {
    type KeySize = U32;
}

/// On this machine's best backend.
impl<T: TagLength> KeyInit for MagmaMgm<T> {
    fn new(key: &Key<Self>) -> Self {
        match Mgm::with(&key.0, T::USIZE, crate::Engine::best()) {
            Ok(mgm) => MagmaMgm { mgm, tag: PhantomData },
            Err(_) => unreachable!("the type allows 4 to 8 bytes"),
        }
    }
}

impl<T: TagLength> AeadCore for MagmaMgm<T> {
    type NonceSize = U8;
    type TagSize = T;
    const TAG_POSITION: TagPosition = TagPosition::Postfix;
}

/// For the `aead` traits, whose random nonces MGM refuses half of the time.
impl From<mgm::Nonce> for Array<u8, U8> {
    fn from(nonce: mgm::Nonce) -> Array<u8, U8> {
        Array(nonce.into())
    }
}

impl<T: TagLength> AeadInOut for MagmaMgm<T> {
    fn encrypt_inout_detached(
        &self,
        nonce: &Nonce<Self>,
        aad: &[u8],
        data: InOutBuf<'_, '_, u8>,
    ) -> aead::Result<Tag<Self>> {
        let tag = self.mgm.seal_inout(nonce, aad, data).map_err(|_| aead::Error)?;
        Tag::<Self>::try_from(tag.as_slice()).map_err(|_| aead::Error)
    }

    fn decrypt_inout_detached(
        &self,
        nonce: &Nonce<Self>,
        aad: &[u8],
        data: InOutBuf<'_, '_, u8>,
        tag: &Tag<Self>,
    ) -> aead::Result<()> {
        self.mgm.open_inout(nonce, aad, data, tag).map_err(|_| aead::Error)
    }
}

impl<T: TagLength> fmt::Debug for MagmaMgm<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mgm.fmt(f)
    }
}

impl ZeroizeOnDrop for Mgm {}
impl<T: TagLength> ZeroizeOnDrop for MagmaMgm<T> {}
