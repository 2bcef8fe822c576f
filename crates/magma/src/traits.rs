//! The RustCrypto project's traits: what is generic over a block cipher, a stream cipher, a MAC or an AEAD works with this
//! crate, and in bulk at its full speed.
//!
//! | trait | type |
//! |---|---|
//! | `cipher::BlockCipherEncrypt`, `BlockCipherDecrypt` | [`Magma`](crate::Magma), [`Gost28147`](crate::Gost28147) |
//! | `cipher::KeyInit` | [`Magma`](crate::Magma), on this machine's best backend |
//! | `cipher::StreamCipher`, `StreamCipherSeek` | [`modes::Ctr`](crate::modes::Ctr) |
//! | `cipher::KeyIvInit` | [`modes::Ctr<Magma>`](crate::modes::Ctr) |
//! | `aead::AeadInOut` | [`MagmaMgm`] |
//! | `digest::Mac` | [`MagmaOmac`] |
//!
//! The traits of block ciphers and of MACs have no way to say that a key has processed enough: what goes through them is not
//! counted against the key's [limits](crate::limits).
#![forbid(unsafe_code)]

mod aead;
mod block;
mod mac;
mod stream;

pub use aead::{MagmaMgm, TagLength};
pub use mac::MagmaOmac;
