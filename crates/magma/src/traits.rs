//! The RustCrypto project's traits: code that is generic over a block cipher, a stream cipher, a MAC or an AEAD works
//! with this crate, at full speed in bulk.
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
//! A stream cipher:
//!
//! ```
//! use cipher::{KeyIvInit, StreamCipher};
//! use lanework_magma::Magma;
//! use lanework_magma::modes::Ctr;
//!
//! let (key, iv) = ([7; 32], [0, 0, 0, 1]);
//! let mut data = *b"a message";
//! let mut ctr = Ctr::<Magma>::new(&key.into(), &iv.into());
//! ctr.apply_keystream(&mut data);
//! # let mut ctr = Ctr::<Magma>::new(&key.into(), &iv.into());
//! # ctr.apply_keystream(&mut data);
//! # assert_eq!(&data, b"a message");
//! ```
//!
//! An AEAD. MGM refuses nonces whose top bit is set, which are half of all arrays of 8 bytes;
//! [`Nonce`](crate::mgm::Nonce) never has it set:
//!
//! ```
//! use aead::{Aead, KeyInit, Payload};
//! use getrandom::SysRng;
//! use lanework_magma::mgm::Nonce;
//! use lanework_magma::traits::MagmaMgm;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mgm = <MagmaMgm>::new(&[7; 32].into());
//! let nonce = Nonce::random(&mut SysRng)?;
//! let sealed = mgm.encrypt(&nonce.into(), Payload { msg: b"a message", aad: b"its header" })?;
//! let opened = mgm.decrypt(&nonce.into(), Payload { msg: &sealed, aad: b"its header" })?;
//! assert_eq!(opened, b"a message");
//! # Ok(())
//! # }
//! ```
//!
//! The traits of block ciphers and of MACs cannot refuse, so data through them is not counted against the key's
//! [limits](crate::limits).
#![forbid(unsafe_code)]

mod aead;
mod block;
mod mac;
mod stream;

pub use aead::{MagmaMgm, TagLength};
pub use mac::MagmaOmac;
