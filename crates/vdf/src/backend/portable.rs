//! The chain in plain Rust.
#![forbid(unsafe_code)]

use lanework_integer::kernels::Portable;

use super::{Broad, Kernels, Middle, Narrow, chain_kernel};

pub(super) static KERNELS: Kernels = Kernels { narrow, middle, broad };

fn narrow(form: &mut Narrow, stop: usize, n: u64) -> u64 {
    chain_kernel!(Portable, form, stop, n, 4 5 3 9)
}

fn middle(form: &mut Middle, stop: usize, n: u64) -> u64 {
    chain_kernel!(Portable, form, stop, n, 8 9 5 13)
}

fn broad(form: &mut Broad, stop: usize, n: u64) -> u64 {
    chain_kernel!(Portable, form, stop, n, 16 17 9 21)
}
