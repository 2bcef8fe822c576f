//! The modes of GOST 28147-89 (RFC 5830) with CryptoPro key meshing (RFC 4357, 2.3.2), for old data and TLS's CNT_IMIT.
//!
//! Do not use them in new designs: IMIT has 32 bits and half the rounds, and key meshing allows neither random access nor
//! threads.
#![forbid(unsafe_code)]

mod cfb;
mod cnt;
mod imit;
mod meshing;

pub use cfb::{CfbDecryptor, CfbEncryptor};
pub use cnt::Cnt;
pub use imit::Imit;

/// Whether and how the key changes within a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meshing {
    /// The key stays (id-Gost28147-89-None-KeyMeshing): for messages that the key's limits allow.
    None,
    /// After every 1024 bytes (id-Gost28147-89-CryptoPro-KeyMeshing).
    CryptoPro,
}
