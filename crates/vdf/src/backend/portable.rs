//! The chain in plain Rust.
#![forbid(unsafe_code)]

use lanework_integer::kernels::Portable;

use super::generic::nucomp;
use super::{Form512, Form1024, Form2048, Kernels, candidates, chain_kernel, one_by_one};

pub(super) static KERNELS: Kernels = Kernels {
    square512,
    square1024,
    square2048,
    compose512,
    compose1024,
    compose2048,
    multiply1024,
    worthwhile: usize::MAX,
    candidates: &candidates::portable::CANDIDATES,
};

fn square512(form: &mut Form512, stop: usize, n: u64) -> u64 {
    chain_kernel!(Portable, form, stop, n, 4 5 3 9)
}

fn square1024(form: &mut Form1024, stop: usize, n: u64) -> u64 {
    chain_kernel!(Portable, form, stop, n, 8 9 5 13)
}

fn square2048(form: &mut Form2048, stop: usize, n: u64) -> u64 {
    chain_kernel!(Portable, form, stop, n, 16 17 9 21)
}

fn compose512(x: &Form512, y: &Form512, stop: usize) -> Option<Form512> {
    nucomp::compose::<_, 4, 5, 3, 6, 10>(Portable, x, y, stop)
}

fn compose1024(x: &Form1024, y: &Form1024, stop: usize) -> Option<Form1024> {
    nucomp::compose::<_, 8, 9, 5, 10, 14>(Portable, x, y, stop)
}

fn compose2048(x: &Form2048, y: &Form2048, stop: usize) -> Option<Form2048> {
    nucomp::compose::<_, 16, 17, 9, 18, 22>(Portable, x, y, stop)
}

fn multiply1024(pairs: &mut [(Form1024, Form1024)], stop: usize) -> u64 {
    one_by_one!(pairs, |x, y| compose1024(x, y, stop))
}
