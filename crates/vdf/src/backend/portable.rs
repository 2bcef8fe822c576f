//! The chain in plain Rust.
#![forbid(unsafe_code)]

use lanework_integer::gcd::binary::{self, Inverse};
use lanework_integer::kernels::Portable;

use super::generic::nucomp;
use super::generic::nudupl::multiples;
use super::{Broad, Compose, Kernels, Middle, Narrow, Phase, Tally, candidates, chain_kernel, phases_kernel};

pub(super) static KERNELS: Kernels = Kernels {
    narrow,
    middle,
    broad,
    compose: COMPOSE,
    phases,
    candidates: &candidates::portable::CANDIDATES,
};

pub(super) const COMPOSE: Compose =
    Compose { narrow: compose_narrow, middle: compose_middle, broad: compose_broad };

fn narrow(form: &mut Narrow, stop: usize, n: u64) -> u64 {
    chain_kernel!(Portable, form, stop, n, 4 5 3 9)
}

fn middle(form: &mut Middle, stop: usize, n: u64) -> u64 {
    chain_kernel!(Portable, form, stop, n, 8 9 5 13)
}

fn broad(form: &mut Broad, stop: usize, n: u64) -> u64 {
    chain_kernel!(Portable, form, stop, n, 16 17 9 21)
}

fn phases(forms: &[Middle], stop: usize, upto: Phase) -> Tally {
    let invert = |a: &_, b: &_| binary::invert(Portable, a, b);
    phases_kernel!(Portable, forms, stop, upto, invert, |form: &_| multiples(form, invert))
}

fn compose_narrow(x: &Narrow, y: &Narrow, stop: usize) -> Option<Narrow> {
    nucomp::compose::<_, 4, 5, 3, 6, 10>(Portable, x, y, stop)
}

fn compose_middle(x: &Middle, y: &Middle, stop: usize) -> Option<Middle> {
    nucomp::compose::<_, 8, 9, 5, 10, 14>(Portable, x, y, stop)
}

fn compose_broad(x: &Broad, y: &Broad, stop: usize) -> Option<Broad> {
    nucomp::compose::<_, 16, 17, 9, 18, 22>(Portable, x, y, stop)
}
