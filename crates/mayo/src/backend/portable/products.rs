//! The products of keygen, signing and verification in plain words.
//!
//! An entry of P is read once and turned into {1, x, x^2, x^3} times itself (about 6 operations a word); a product with
//! a secret element is then four AND and four XOR a word under masks, for every element. Products with public elements
//! (verification) take a table of the sixteen multiples instead: 15 XOR a word for the table and one for each product.
//!
//! Cost, words of 64 bits being processed two at a time by SSE2: keygen v(v+1)/2 (o + ~1) + v o^2 products, signing
//! v(v+1) k + 2 v o k + v k^2, verification n(n+1)/2 (k + 15) / 8 + n k (k + 15) / 8 in units of one masked product
//! (8 operations a word). Signing never forms L = (P1 + P1^T) O + P2: with U = P1 V^T and W = U + P1^T V^T,
//! M = V L = W^T O + V P2.
//! Leak class: constant time in O, V and everything made of them; `verify*` is variable time in the public s.

use super::words::{MVec, Words, add, blocks_of, load, masks, mul_add, multiples, powers, store, take};
use crate::backend::{SetKernels, SetSpec};
use crate::params::Sizes;
use crate::sys::{Block, bytes, bytes_mut};

/// Masks of one element.
type Masks = [u64; 4];

const fn nw(p: &Sizes) -> usize {
    p.m_bytes().div_ceil(8)
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// Scratch for the largest of this file's kernels and of `solve`.
pub(super) const fn scratch_blocks(p: &Sizes) -> usize {
    let vec_bytes = nw(p) * 8;
    let sign = 2 * (p.v() * p.k * vec_bytes).div_ceil(64)
        + blocks_of::<Masks>(p.v() * p.k)
        + blocks_of::<Masks>(p.v() * p.o);
    let keygen = (p.v() * p.o * vec_bytes).div_ceil(64)
        + blocks_of::<Masks>(p.v() * p.o)
        + (p.o * p.o * vec_bytes).div_ceil(64);
    let verify = (p.n * p.k * vec_bytes).div_ceil(64);
    max(max(sign, keygen), max(verify, super::eliminate::scratch_blocks(p)))
        + (p.k * p.k * vec_bytes).div_ceil(64)
        + 4
}

fn take_masks<'a>(scratch: &mut &'a mut [Block], elements: &[u8]) -> &'a mut [Masks] {
    let out = take::<Masks>(scratch, elements.len());
    for (out, &e) in out.iter_mut().zip(elements) {
        *out = masks(e);
    }
    out
}

/// See `SetKernels::keygen`.
#[inline(never)]
pub(super) fn keygen<S: SetSpec, const NW: usize>(
    p: &[u8],
    o: &[u8],
    p3: &mut [u8],
    mut scratch: &mut [Block],
) where
    MVec<NW>: Words,
{
    let set = S::SIZES;
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let oil_masks = take_masks(&mut scratch, o);
    // X = P1 O + P2.
    let x = take::<MVec<NW>>(&mut scratch, v * oil);
    let mut at = 0;
    for r in 0..v {
        let row = &mut x[r * oil..(r + 1) * oil];
        for c in r..v {
            let entry = powers(&load::<NW>(p, at));
            at += mb;
            for (acc, m) in row.iter_mut().zip(&oil_masks[c * oil..]) {
                mul_add(acc, m, &entry);
            }
        }
        for (j, acc) in row.iter_mut().enumerate() {
            add(acc, &load(p, (set.p1_vecs() + r * oil + j) * mb));
        }
    }
    // Upper(O^T X), both halves added into the upper one.
    let sums = take::<MVec<NW>>(&mut scratch, oil * oil);
    for r in 0..v {
        for j in 0..oil {
            let entry = powers(&x[r * oil + j]);
            for i in 0..oil {
                mul_add(&mut sums[i.min(j) * oil + i.max(j)], &oil_masks[r * oil + i], &entry);
            }
        }
    }
    let mut out = p3.chunks_exact_mut(mb);
    for i in 0..oil {
        for (j, out) in (i..oil).zip(&mut out) {
            store(&sums[i * oil + j], out);
        }
    }
}

/// See `SetKernels::sign`.
#[inline(never)]
pub(super) fn sign<S: SetSpec, const NW: usize>(
    p: &[u8],
    o: &[u8],
    vinegar: &[u8],
    lambda: &[u8],
    m: &mut [Block],
    u: &mut [Block],
    mut scratch: &mut [Block],
) where
    MVec<NW>: Words,
{
    let set = S::SIZES;
    let (v, oil, k, mb) = (set.v(), set.o, set.k, set.m_bytes());
    // Masks by variable, then by vector: [r][i].
    let vin_masks = take::<Masks>(&mut scratch, v * k);
    for (at, &e) in vinegar.iter().enumerate() {
        vin_masks[at % v * k + at / v] = masks(e);
    }
    let oil_masks = take_masks(&mut scratch, o);
    // U = P1 V^T and T = P1^T V^T in one pass over P1.
    let u_rows = take::<MVec<NW>>(&mut scratch, v * k);
    let t_rows = take::<MVec<NW>>(&mut scratch, v * k);
    let mut at = 0;
    for r in 0..v {
        for c in r..v {
            let entry = powers(&load::<NW>(p, at));
            at += mb;
            for i in 0..k {
                mul_add(&mut u_rows[r * k + i], &vin_masks[c * k + i], &entry);
                mul_add(&mut t_rows[c * k + i], &vin_masks[r * k + i], &entry);
            }
        }
    }
    if set.linear_term {
        for r in 0..v {
            add(&mut u_rows[r * k], &load(lambda, r * mb));
        }
    }
    quadratic::<S, NW>(vin_masks, v, u_rows, u, scratch);
    // M = (U + T)^T O + V P2.
    let stride = SetKernels::stride(set);
    let m = bytes_mut(m);
    for i in 0..k {
        for j in 0..oil {
            let mut sum = if set.linear_term && i == 0 { load(lambda, (v + j) * mb) } else { [0; NW] };
            for r in 0..v {
                let mut w = u_rows[r * k + i];
                add(&mut w, &t_rows[r * k + i]);
                mul_add(&mut sum, &oil_masks[r * oil + j], &powers(&w));
                let entry = load(p, (set.p1_vecs() + r * oil + j) * mb);
                mul_add(&mut sum, &vin_masks[r * k + i], &powers(&entry));
            }
            let out = &mut m[(i * oil + j) * stride..][..stride];
            out.fill(0);
            store(&sum, &mut out[..mb]);
        }
    }
}

/// u_l = x_i^T Y_j + x_j^T Y_i for every pair, with Y_i the i-th column of `y` (\[r\]\[i\]) and x masks alike.
fn quadratic<S: SetSpec, const NW: usize>(
    x: &[Masks],
    rows: usize,
    y: &[MVec<NW>],
    u: &mut [Block],
    mut scratch: &mut [Block],
) where
    MVec<NW>: Words,
{
    let set = S::SIZES;
    let k = set.k;
    let sums = take::<MVec<NW>>(&mut scratch, k * k);
    for r in 0..rows {
        for j in 0..k {
            let entry = powers(&y[r * k + j]);
            for i in 0..k {
                mul_add(&mut sums[i.min(j) * k + i.max(j)], &x[r * k + i], &entry);
            }
        }
    }
    store_pairs::<S, NW>(sums, u);
}

/// Writes the upper triangle of k x k sums as padded m-vectors in schedule order.
fn store_pairs<S: SetSpec, const NW: usize>(sums: &[MVec<NW>], u: &mut [Block]) {
    let set = S::SIZES;
    let stride = SetKernels::stride(set);
    for (out, &(a, b)) in bytes_mut(u).chunks_exact_mut(stride).zip(set.schedule) {
        out.fill(0);
        let (i, j) = (usize::from(a.min(b)), usize::from(a.max(b)));
        store(&sums[i * set.k + j], &mut out[..set.m_bytes()]);
    }
}

/// See `SetKernels::verify`.
#[inline(never)]
pub(super) fn verify<S: SetSpec, const NW: usize>(
    p: &[u8],
    p3: &[u8],
    s: &[u8],
    lambda: &[u8],
    u: &mut [Block],
    mut scratch: &mut [Block],
) where
    MVec<NW>: Words,
{
    let set = S::SIZES;
    let (n, v, oil, k, mb) = (set.n, set.v(), set.o, set.k, set.m_bytes());
    let ps = take::<MVec<NW>>(&mut scratch, n * k);
    let (mut at1, mut at2, mut at3) = (0, set.p1_vecs() * mb, 0);
    for r in 0..n {
        let row = &mut ps[r * k..(r + 1) * k];
        for c in r..n {
            let entry = match (r < v, c < v) {
                (true, true) => load::<NW>(p, post_add(&mut at1, mb)),
                (true, false) => load(p, post_add(&mut at2, mb)),
                _ => load(p3, post_add(&mut at3, mb)),
            };
            let table = multiples(&entry);
            for (i, acc) in row.iter_mut().enumerate() {
                add(acc, &table[usize::from(s[i * n + c] & 0xf)]);
            }
        }
        if set.linear_term {
            add(&mut row[0], &load(lambda, r * mb));
        }
    }
    debug_assert_eq!(at3, oil * (oil + 1) / 2 * mb);
    let mut sums = [[0; NW]; 144];
    for r in 0..n {
        for j in 0..k {
            let table = multiples(&ps[r * k + j]);
            for i in 0..k {
                add(&mut sums[i.min(j) * k + i.max(j)], &table[usize::from(s[i * n + r] & 0xf)]);
            }
        }
    }
    store_pairs::<S, NW>(&sums, u);
}

fn post_add(at: &mut usize, step: usize) -> usize {
    let here = *at;
    *at += step;
    here
}

/// An expanded secret key is P1 unchanged, with slack, and L as m-vectors of whole words.
pub(super) const fn secret_blocks(p: &Sizes) -> usize {
    l_offset(p) + (p.v() * p.o * nw(p) * 8).div_ceil(64)
}

/// Blocks before L.
const fn l_offset(p: &Sizes) -> usize {
    (p.p1_vecs() * p.m_bytes() + crate::backend::SLACK).div_ceil(64)
}

/// See `SetKernels::expand_secret`.
#[inline(never)]
pub(super) fn expand_secret<S: SetSpec, const NW: usize>(
    p: &[u8],
    o: &[u8],
    expanded: &mut [Block],
    mut scratch: &mut [Block],
) where
    MVec<NW>: Words,
{
    let set = S::SIZES;
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let (p1, mut rest) = expanded.split_at_mut(l_offset(set));
    bytes_mut(p1)[..set.p1_vecs() * mb].copy_from_slice(&p[..set.p1_vecs() * mb]);
    let oil_masks = take_masks(&mut scratch, o);
    let l = take::<MVec<NW>>(&mut rest, v * oil);
    for (j, out) in l.iter_mut().enumerate() {
        *out = load(p, (set.p1_vecs() + j) * mb);
    }
    let mut at = 0;
    for r in 0..v {
        // The diagonal of P1 + P1^T is zero.
        at += mb;
        for c in r + 1..v {
            let entry = powers(&load::<NW>(p, at));
            at += mb;
            for j in 0..oil {
                mul_add(&mut l[r * oil + j], &oil_masks[c * oil + j], &entry);
                mul_add(&mut l[c * oil + j], &oil_masks[r * oil + j], &entry);
            }
        }
    }
}

/// See `SetKernels::sign_expanded`.
#[inline(never)]
pub(super) fn sign_expanded<S: SetSpec, const NW: usize>(
    expanded: &[Block],
    o: &[u8],
    vinegar: &[u8],
    lambda: &[u8],
    m: &mut [Block],
    u: &mut [Block],
    mut scratch: &mut [Block],
) where
    MVec<NW>: Words,
{
    let set = S::SIZES;
    let (v, oil, k, mb) = (set.v(), set.o, set.k, set.m_bytes());
    let (p1, l) = expanded.split_at(l_offset(set));
    let (p1, l) = (bytes(p1), bytes(l));
    let vin_masks = take::<Masks>(&mut scratch, v * k);
    for (at, &e) in vinegar.iter().enumerate() {
        vin_masks[at % v * k + at / v] = masks(e);
    }
    let oil_masks = take_masks(&mut scratch, o);
    let u_rows = take::<MVec<NW>>(&mut scratch, v * k);
    let mut at = 0;
    for r in 0..v {
        for c in r..v {
            let entry = powers(&load::<NW>(p1, at));
            at += mb;
            for i in 0..k {
                mul_add(&mut u_rows[r * k + i], &vin_masks[c * k + i], &entry);
            }
        }
        if set.linear_term {
            add(&mut u_rows[r * k], &load(lambda, r * mb));
        }
    }
    quadratic::<S, NW>(vin_masks, v, u_rows, u, scratch);
    let stride = SetKernels::stride(set);
    let m = bytes_mut(m);
    for j in 0..oil {
        let mut sums = [[0; NW]; 12];
        if set.linear_term {
            sums[0] = load(lambda, (v + j) * mb);
        }
        for r in 0..v {
            let entry = powers(&load::<NW>(l, (r * oil + j) * NW * 8));
            for i in 0..k {
                mul_add(&mut sums[i], &vin_masks[r * k + i], &entry);
            }
            if set.linear_term {
                mul_add(&mut sums[0], &oil_masks[r * oil + j], &powers(&load(lambda, r * mb)));
            }
        }
        for (i, sum) in sums[..k].iter().enumerate() {
            let out = &mut m[(i * oil + j) * stride..][..stride];
            out.fill(0);
            store(sum, &mut out[..mb]);
        }
    }
}
