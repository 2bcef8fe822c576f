//! Magma (GOST R 34.12-2015, RFC 8891) and GOST 28147-89 on every lane of the CPU.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(doctest, doc = include_str!("../README.ru.md"))]
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

pub mod backend;
pub mod batch;
#[cfg(any(test, feature = "std"))]
pub mod container;
pub mod error;
#[doc(hidden)]
pub mod internals;
pub mod kdf;
pub mod kexp15;
pub mod key;
pub mod limits;
pub mod mgm;
pub mod modes;
mod release;
pub mod sbox;
mod schedule;
mod sys;
pub mod tlstree;
pub mod traits;

pub use backend::Engine;
pub use error::Error;
pub use kexp15::Kexp15;
pub use key::{Gost28147, Keyed, Magma};
pub use limits::Limits;
pub use mgm::Mgm;
pub use sbox::Sbox;
pub use schedule::ByteOrder;
pub use tlstree::{EspTree, TlsTree};
