//! Threads inside one operation: the products as loops that fork and join, one loop after the other.
//!
//! Every product of MAYO is a set of rows `acc_j += sum_t scalar_tj entry_t` (one call of [`Isa::combine`]), and the rows
//! of one loop do not depend on each other: that is the granularity at which OpenMP pragmas split MAYO's loops, and what
//! is measured here. A loop's rows are handed to a team that lives as long as its thread, as OpenMP's does; the calling
//! thread works too, and members wait awake for a while. The algorithm is that of the plain backends (L is never formed),
//! but each row is written by one thread only, so P1^T V^T is a loop of its own that reads P1 by columns.
//!
//! **Cost.** Key generation forks 2 times, signing 5 times an attempt, verification 2 times; hashing, AES, elimination
//! and whipping stay with the caller. Rows of a triangle are uneven, so they are drawn one by one (OpenMP's
//! `schedule(dynamic)`). With one thread nothing forks: the difference to the plain backend is then what this shape of the code costs.
//!
//! Leak class: constant time in O and V as the plain kernels are; verification is variable time on plain code. The
//! workers' stacks are **not** wiped: keys that a study makes are worth nothing.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod team;

use core::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use lanework_cpu::memory::{Block, bytes, bytes_mut};
use lanework_mayo::internals::operands::{Keygen, Matrices, Sign, Verify};
use lanework_mayo::internals::portable::Widths;
use lanework_mayo::internals::portable::words::{
    add, blocks_of, load, masks, mul_add, multiples, powers, take,
};
use lanework_mayo::internals::{SETS, SetKernels, SetSpec, Sizes};
use lanework_mayo::typed::{round2, round3};

use crate::round1;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;

/// A scalar made ready for one instruction set: masks, a product table or a matrix.
pub(crate) type Scalar = [u64; 4];

/// The most accumulators of a row: o or k, whichever is larger, over all sets.
const WIDEST: usize = 18;

/// The places of a row's m-vectors: the first one's byte, the bytes to the next, and how much that step shrinks each time.
/// A row of a triangle or of a rectangle has even steps, a column of a triangle has shrinking ones.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    at: usize,
    step: usize,
    shrink: usize,
}

impl Walk {
    const fn even(at: usize, step: usize) -> Walk {
        Walk { at, step, shrink: 0 }
    }

    /// The byte of this m-vector; advances to the next.
    #[inline(always)]
    fn advance(&mut self) -> usize {
        let here = self.at;
        self.at += self.step;
        self.step = self.step.wrapping_sub(self.shrink);
        here
    }
}

/// The operations that an instruction set provides.
pub(crate) trait Isa {
    /// Makes an element ready; constant time.
    fn prepare(element: u8) -> Scalar;

    /// acc\[j\] += sum over t < count of scalars\[t * width + j\] * entry(t), for the `width` padded m-vectors of `acc`,
    /// entry(t) being the m-vector of `entries` that `walk` comes to. Nibbles behind an m-vector may be read, up to 96 bytes
    /// from its start, and leave their products in the padding. Constant time unless `PUBLIC`.
    ///
    /// # Safety
    /// The instruction set must be there.
    unsafe fn combine<const NW: usize, const PUBLIC: bool>(
        entries: &[u8],
        walk: Walk,
        count: usize,
        scalars: &[Scalar],
        acc: &mut [Block],
    );
}

/// Plain words.
pub(crate) struct Portable;

impl Isa for Portable {
    fn prepare(element: u8) -> Scalar {
        masks(element)
    }

    unsafe fn combine<const NW: usize, const PUBLIC: bool>(
        entries: &[u8],
        mut walk: Walk,
        count: usize,
        scalars: &[Scalar],
        acc: &mut [Block],
    ) {
        let stride = (NW * 8).next_multiple_of(64);
        let mut sums = [[0; NW]; WIDEST];
        let sums = &mut sums[..acc.len() * 64 / stride];
        for scalars in scalars.chunks_exact(sums.len()).take(count) {
            let entry = load::<NW>(entries, walk.advance());
            if PUBLIC {
                let table = multiples(&entry);
                for (sum, s) in sums.iter_mut().zip(scalars) {
                    let element = s[0] & 1 | s[1] & 2 | s[2] & 4 | s[3] & 8;
                    add(sum, &table[element as usize]);
                }
            } else {
                let entry = powers(&entry);
                for (sum, s) in sums.iter_mut().zip(scalars) {
                    mul_add(sum, s, &entry);
                }
            }
        }
        for (out, sum) in bytes_mut(acc).chunks_exact_mut(stride).zip(sums) {
            for (out, word) in out.chunks_exact_mut(8).zip(sum) {
                out.iter_mut().zip(word.to_le_bytes()).for_each(|(o, w)| *o ^= w);
            }
        }
    }
}

/// The rows of one loop, handed out one by one to free members.
struct Rows<'a> {
    first: *mut Block,
    each: usize,
    count: usize,
    next: AtomicUsize,
    borrowed: PhantomData<&'a mut [Block]>,
}

// SAFETY: a row is touched by the one member that drew its number from `next`.
unsafe impl Sync for Rows<'_> {}

impl<'a> Rows<'a> {
    fn of(all: &'a mut [Block], each: usize) -> Rows<'a> {
        let (first, count) = (all.as_mut_ptr(), all.len() / each);
        Rows { first, each, count, next: AtomicUsize::new(0), borrowed: PhantomData }
    }

    fn draw(&self) -> Option<(usize, &'a mut [Block])> {
        let r = self.next.fetch_add(1, Ordering::Relaxed);
        if r >= self.count {
            return None;
        }
        // SAFETY: row r lies within the blocks that `of` borrowed for 'a, and no other call gets the same r.
        let row = unsafe { core::slice::from_raw_parts_mut(self.first.add(r * self.each), self.each) };
        Some((r, row))
    }
}

/// Runs `row` on every run of `each` blocks: the fork and the join of one loop.
fn rows(threads: usize, all: &mut [Block], each: usize, row: impl Fn(usize, &mut [Block]) + Sync) {
    if threads == 1 {
        all.chunks_exact_mut(each).enumerate().for_each(|(r, acc)| row(r, acc));
        return;
    }
    let loops = Rows::of(all, each);
    team::of(threads).run(&|_| {
        while let Some((r, acc)) = loops.draw() {
            row(r, acc);
        }
    });
}

/// Blocks of one padded m-vector.
const fn vec_blocks(p: &Sizes) -> usize {
    SetKernels::stride(p) / 64
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// Scratch of the largest of the three kernels.
const fn scratch_blocks(p: &Sizes) -> usize {
    let vec = vec_blocks(p);
    let sign = blocks_of::<Scalar>(p.v() * p.k)
        + blocks_of::<Scalar>(p.v() * p.o)
        + (2 * p.v() * p.k + p.o * p.k) * vec;
    let keygen = blocks_of::<Scalar>(p.v() * p.o) + (p.v() + p.o) * p.o * vec;
    let verify = blocks_of::<Scalar>(p.n * p.k) + p.n * p.k * vec;
    max(max(sign, keygen), verify) + p.k * p.k * vec
}

fn take_blocks<'a>(scratch: &mut &'a mut [Block], count: usize) -> &'a mut [Block] {
    let (front, back) = core::mem::take(scratch).split_at_mut(count);
    *scratch = back;
    front.fill(Block::ZERO);
    front
}

/// `count` rows of scalars from elements that lie vector by vector (`transpose`) or row by row.
fn take_scalars<'a, I: Isa>(
    scratch: &mut &'a mut [Block],
    elements: &[u8],
    vectors: Option<usize>,
) -> &'a mut [Scalar] {
    let out = take::<Scalar>(scratch, elements.len());
    let (k, len) = vectors.map_or((1, elements.len()), |k| (k, elements.len() / k));
    for (i, vector) in elements.chunks_exact(len).enumerate() {
        for (r, &e) in vector.iter().enumerate() {
            out[r * k + i] = I::prepare(e & 0xf);
        }
    }
    out
}

/// Position of (r, c), r <= c, in the upper triangle of `size` columns.
fn upper(size: usize, r: usize, c: usize) -> usize {
    r * (2 * size + 1 - r) / 2 + (c - r)
}

fn xor(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t ^= f);
}

fn keygen_on<const NW: usize, I: Isa>(
    set: &Sizes,
    threads: usize,
    Keygen { p, o, p3, mut scratch }: Keygen<'_>,
) {
    let (v, oil, mb, vec) = (set.v(), set.o, set.m_bytes(), vec_blocks(set));
    let scalars = &*take_scalars::<I>(&mut scratch, o, None);
    // X = P1 O + P2.
    let x = take_blocks(&mut scratch, v * oil * vec);
    rows(threads, x, oil * vec, |r, acc| {
        for (j, out) in bytes_mut(acc).chunks_exact_mut(vec * 64).enumerate() {
            out[..mb].copy_from_slice(&p[(set.p1_vecs() + r * oil + j) * mb..][..mb]);
        }
        let at = upper(v, r, r) * mb;
        // SAFETY: these kernels are reached only through a backend whose features were checked.
        unsafe { I::combine::<NW, false>(p, Walk::even(at, mb), v - r, &scalars[r * oil..], acc) }
    });
    // Column j of O^T X, then the two halves added.
    let sums = take_blocks(&mut scratch, oil * oil * vec);
    let x = bytes(x);
    rows(threads, sums, oil * vec, |j, acc| {
        // SAFETY: as above.
        unsafe { I::combine::<NW, false>(x, Walk::even(j * vec * 64, oil * vec * 64), v, scalars, acc) }
    });
    fold(bytes(sums), oil, vec * 64, |i, j| i * (2 * oil + 1 - i) / 2 + (j - i), p3, mb, mb);
}

/// Adds entry (j, i) to entry (i, j) of `size` x `size` sums and writes `mb` bytes of each of the upper half at
/// `place(i, j) * stride`.
fn fold(
    sums: &[u8],
    size: usize,
    from: usize,
    place: impl Fn(usize, usize) -> usize,
    out: &mut [u8],
    stride: usize,
    mb: usize,
) {
    for i in 0..size {
        for j in i..size {
            let out = &mut out[place(i, j) * stride..][..stride];
            out.fill(0);
            out[..mb].copy_from_slice(&sums[(j * size + i) * from..][..mb]);
            if i != j {
                xor(&mut out[..mb], &sums[(i * size + j) * from..][..mb]);
            }
        }
    }
}

/// u_l = x_i^T Y_j + x_j^T Y_i for every pair, Y being \[r\]\[j\].
fn quadratic<const NW: usize, I: Isa, const PUBLIC: bool>(
    set: &Sizes,
    threads: usize,
    scalars: &[Scalar],
    count: usize,
    y: &[u8],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let (k, vec) = (set.k, vec_blocks(set));
    let sums = take_blocks(&mut scratch, k * k * vec);
    rows(threads, sums, k * vec, |j, acc| {
        // SAFETY: these kernels are reached only through a backend whose features were checked.
        unsafe { I::combine::<NW, PUBLIC>(y, Walk::even(j * vec * 64, k * vec * 64), count, scalars, acc) }
    });
    let place = |i: usize, j: usize| {
        let is = |&(a, b): &(u8, u8)| (usize::from(a.min(b)), usize::from(a.max(b))) == (i, j);
        // Every pair is in the schedule.
        set.schedule.iter().position(is).unwrap_or(0)
    };
    fold(bytes(sums), k, vec * 64, place, bytes_mut(u), vec * 64, set.m_bytes());
}

fn sign_on<const NW: usize, I: Isa>(
    set: &Sizes,
    threads: usize,
    Sign { key: p, o, vinegar, lambda, m, u, mut scratch }: Sign<'_, &[u8]>,
) {
    let (v, oil, k, mb, vec) = (set.v(), set.o, set.k, set.m_bytes(), vec_blocks(set));
    let vin = &*take_scalars::<I>(&mut scratch, vinegar, Some(k));
    let oils = &*take_scalars::<I>(&mut scratch, o, None);
    // U = P1 V^T, in round 3 with the linear term in the first column.
    let y = take_blocks(&mut scratch, v * k * vec);
    rows(threads, y, k * vec, |r, acc| {
        let at = upper(v, r, r) * mb;
        // SAFETY: these kernels are reached only through a backend whose features were checked.
        unsafe { I::combine::<NW, false>(p, Walk::even(at, mb), v - r, &vin[r * k..], acc) }
        if set.linear_term {
            xor(&mut bytes_mut(acc)[..mb], &lambda[r * mb..][..mb]);
        }
    });
    let y = &*y;
    // W = U + P1^T V^T, by the columns of P1.
    let w = take_blocks(&mut scratch, v * k * vec);
    rows(threads, w, k * vec, |c, acc| {
        acc.copy_from_slice(&y[c * k * vec..][..k * vec]);
        // SAFETY: as above.
        unsafe {
            I::combine::<NW, false>(p, Walk { at: c * mb, step: (v - 1) * mb, shrink: mb }, c + 1, vin, acc)
        }
    });
    // V P2, oil column by oil column: [j][i].
    let vp2 = take_blocks(&mut scratch, oil * k * vec);
    rows(threads, vp2, k * vec, |j, acc| {
        // SAFETY: as above.
        unsafe { I::combine::<NW, false>(p, Walk::even((set.p1_vecs() + j) * mb, oil * mb), v, vin, acc) }
    });
    // M = W^T O + V P2.
    let (w, vp2) = (bytes(w), bytes(vp2));
    rows(threads, m, oil * vec, |i, acc| {
        acc.fill(Block::ZERO);
        // SAFETY: as above.
        unsafe { I::combine::<NW, false>(w, Walk::even(i * vec * 64, k * vec * 64), v, oils, acc) }
        for (j, out) in bytes_mut(acc).chunks_exact_mut(vec * 64).enumerate() {
            out[mb..].fill(0);
            xor(&mut out[..mb], &vp2[(j * k + i) * vec * 64..][..mb]);
            if set.linear_term && i == 0 {
                xor(&mut out[..mb], &lambda[(v + j) * mb..][..mb]);
            }
        }
    });
    quadratic::<NW, I, false>(set, threads, vin, v, bytes(y), u, scratch);
}

fn verify_on<const NW: usize, I: Isa>(
    set: &Sizes,
    threads: usize,
    Verify { key: Matrices { p, p3 }, s, lambda, u, mut scratch }: Verify<'_, Matrices<'_>>,
) {
    let (n, v, oil, k, mb, vec) = (set.n, set.v(), set.o, set.k, set.m_bytes(), vec_blocks(set));
    let scalars = &*take_scalars::<I>(&mut scratch, s, Some(k));
    let ps = take_blocks(&mut scratch, n * k * vec);
    rows(threads, ps, k * vec, |r, acc| {
        // SAFETY: these kernels are reached only through a backend whose features were checked.
        unsafe {
            if r < v {
                let at = upper(v, r, r) * mb;
                I::combine::<NW, true>(p, Walk::even(at, mb), v - r, &scalars[r * k..], acc);
                let at = (set.p1_vecs() + r * oil) * mb;
                I::combine::<NW, true>(p, Walk::even(at, mb), oil, &scalars[v * k..], acc);
            } else {
                let at = upper(oil, r - v, r - v) * mb;
                I::combine::<NW, true>(p3, Walk::even(at, mb), n - r, &scalars[r * k..], acc);
            }
        }
        if set.linear_term {
            xor(&mut bytes_mut(acc)[..mb], &lambda[r * mb..][..mb]);
        }
    });
    quadratic::<NW, I, true>(set, threads, scalars, n, bytes(ps), u, scratch);
}

/// See [`Keygen`].
fn keygen<S: SetSpec, const NW: usize, const T: usize, I: Isa>(operands: Keygen<'_>) {
    keygen_on::<NW, I>(S::SIZES, T, operands);
}

/// See [`Sign`].
fn sign<S: SetSpec, const NW: usize, const T: usize, I: Isa>(operands: Sign<'_, &[u8]>) {
    sign_on::<NW, I>(S::SIZES, T, operands);
}

/// See [`Verify`].
fn verify<S: SetSpec, const NW: usize, const T: usize, I: Isa>(operands: Verify<'_, Matrices<'_>>) {
    verify_on::<NW, I>(S::SIZES, T, operands);
}

/// `plain` with its products of compact keys split over T threads; all other kernels stay its own.
///
/// # Safety
/// The kernels of `plain` may be reached only where the CPU has what `I` needs.
unsafe fn one_set<S: SetSpec, const NW: usize, const T: usize, I: Isa>(plain: SetKernels) -> SetKernels {
    assert_eq!(plain.sizes(), S::SIZES);
    let blocks = scratch_blocks(S::SIZES);
    // SAFETY: the products above are those of the set, within this much scratch; the features are the caller's promise.
    unsafe { plain.with_products(blocks, keygen::<S, NW, T, I>, sign::<S, NW, T, I>, verify::<S, NW, T, I>) }
}

/// The kernels of all shipped sets and of round 1's, their products split over T threads.
///
/// # Safety
/// The kernels may be reached only where the CPU has what `I` needs.
pub(crate) unsafe fn split<const T: usize, I: Isa>(
    shipped: &[SetKernels; SETS],
    round1: &[SetKernels; 4],
) -> ([SetKernels; SETS], [SetKernels; 4]) {
    macro_rules! split {
        ($plain:expr, $set:ty) => {{
            const NW: usize = Widths::of(<$set as SetSpec>::SIZES).words;
            // SAFETY: the caller's promise.
            unsafe { one_set::<$set, NW, T, I>($plain) }
        }};
    }
    (
        [
            split!(shipped[0], round3::Mayo1),
            split!(shipped[1], round3::Mayo2),
            split!(shipped[2], round3::Mayo3),
            split!(shipped[3], round3::Mayo5),
            split!(shipped[4], round2::Mayo1),
            split!(shipped[5], round2::Mayo2),
            split!(shipped[6], round2::Mayo3),
            split!(shipped[7], round2::Mayo5),
        ],
        [
            split!(round1[0], round1::Mayo1),
            split!(round1[1], round1::Mayo2),
            split!(round1[2], round1::Mayo3),
            split!(round1[3], round1::Mayo5),
        ],
    )
}
