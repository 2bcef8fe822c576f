//! The study `ifma-vdf`: when do AVX-512 IFMA integers pay, alone and end to end?
#![forbid(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub mod phases;
#[cfg(target_arch = "x86_64")]
pub mod synthetic;
