#![doc = include_str!("../README.md")]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod memcheck;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod plants;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
pub mod residue;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sys;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod traced;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod valgrind;
