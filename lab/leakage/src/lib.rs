#![doc = include_str!("../README.md")]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod evidence;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod instructions;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod judge;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod memcheck;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod plants;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
pub mod residue;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sys;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod timing;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod traced;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod valgrind;
