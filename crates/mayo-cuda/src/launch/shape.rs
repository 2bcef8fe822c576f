//! Sizes that the host shares with the kernels: the layout of m-vectors, bytes of hashes, shared memory. A test
//! compares them with the kernels' own.
#![forbid(unsafe_code)]

use lanework_mayo::Params;

/// 32-bit words of an m-vector.
pub(crate) const fn words(params: &Params) -> usize {
    params.m_bytes().div_ceil(4)
}

/// Words of a slice of an m-vector, a divisor of the words of the whole: slices are as wide as registers and 99 KiB of
/// shared memory allow.
pub(crate) const fn slice_words(params: &Params) -> usize {
    match words(params) {
        8 => 4,
        10 => 5,
        14 => 7,
        18 => 3,
        other => other,
    }
}

/// The bytes that a sponge writes for `length` bytes.
const fn squeezed(length: usize) -> usize {
    length.div_ceil(136) * 136
}

/// The products that a block computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Products {
    Keygen,
    Sign,
    SignExpanded,
    Verify,
}

/// Threads of a block that makes L, or puts P3 in its place.
pub(crate) const LOWER_THREADS: u32 = 256;
/// Threads of a block that hashes.
pub(crate) const HASH_THREADS: u32 = 128;
/// Threads of a block that expands matrices.
pub(crate) const EXPAND_THREADS: u32 = 1024;
/// Bytes that the sponge writes for a salt.
pub(crate) const SALT: usize = 136;

/// Bytes of shared memory of a block that expands: two tables in 32 copies, and for each warp 32 blocks of stream with
/// slack.
pub(crate) const EXPAND_SHARED: usize = (2 * 256 * 32 + 32 * (32 * 4 + 4)) * 4;

/// At least as many vectors as a warp expands at a time: 32 blocks of stream, less one for where they begin.
pub(crate) const fn expand_tile(p: &Params) -> usize {
    (32 * 16 - 15) / p.m_bytes()
}

/// Bytes for the hash of a seed.
pub(crate) const fn seed(p: &Params) -> usize {
    squeezed(16 + p.o_bytes())
}

/// Bytes for t, and for lambda's key and nonce.
pub(crate) const fn target(p: &Params) -> usize {
    squeezed(p.m_bytes() + if p.linear_term() { 32 } else { 0 })
}

/// Bytes for the vinegar vectors and r.
pub(crate) const fn drawn(p: &Params) -> usize {
    squeezed(p.k() * p.v_bytes() + p.r_bytes())
}

/// Vectors of P1 and P2.
pub(crate) const fn p12(p: &Params) -> usize {
    p.p1_vecs() + p.p2_vecs()
}

/// Vectors of an expanded public key: P1, P2 and P3.
pub(crate) const fn public_vecs(p: &Params) -> usize {
    p12(p) + p.p3_vecs()
}

/// Vectors of an expanded secret key: the public one's, and L.
pub(crate) const fn secret_vecs(p: &Params) -> usize {
    public_vecs(p) + p.p2_vecs()
}

/// Columns of scalars.
pub(super) const fn columns(p: &Params, what: Products) -> usize {
    match what {
        Products::Keygen => p.o(),
        Products::Sign => p.k() + p.o(),
        Products::SignExpanded | Products::Verify => p.k(),
    }
}

/// Bytes of shared memory of a block of products.
pub(crate) fn products_shared(p: &Params, what: Products) -> usize {
    let rows = if what == Products::Verify { p.n() } else { p.v() };
    let columns = columns(p, what);
    let sums = if what == Products::SignExpanded { p.k() + p.o() } else { columns };
    let masks = rows * (columns | 1) + group(columns, slice_words(p)).max(4);
    (masks * 4 + rows * ((sums * slice_words(p)) | 1)) * 4
}

/// Threads of a block of products: eight warps or twelve, the same number for each group of columns.
pub(crate) fn product_threads(p: &Params, what: Products) -> u32 {
    let columns = columns(p, what);
    if 8_usize.is_multiple_of(columns.div_ceil(group(columns, slice_words(p)))) { 256 } else { 384 }
}

/// Columns that one thread takes, of this many words.
pub(super) fn group(columns: usize, words: usize) -> usize {
    let most = 128 / (4 * words);
    let covered = |g: usize| columns.div_ceil(g) * g;
    let teams = |g: usize| [8_usize, 12].iter().any(|warps| warps.is_multiple_of(columns.div_ceil(g)));
    let mut best = most;
    for g in (most / 2 + 1..=most).rev() {
        if teams(g) && covered(g) < covered(best) {
            best = g;
        }
    }
    best.min(columns)
}

/// Bytes of shared memory of the warp that solves a system.
pub(crate) fn solve_shared(p: &Params) -> usize {
    let long = (p.pairs() - 1) / 8 + words(p) + 1;
    ((p.k() * p.o() + 1) * (long | 1) + p.k() * p.o().div_ceil(8)) * 4
}

/// Bytes of shared memory of a block that makes L.
pub(crate) const fn lower_shared(p: &Params) -> usize {
    p.v() * p.o() * 16
}

/// Sizes of verification by products of bits (`bits.cuh`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    /// Words of a key.
    pub(crate) key: usize,
    /// Signatures that share a key in a block of the kernel for one key.
    pub(crate) many: usize,
    /// Blocks that share the words of an m-vector.
    pub(crate) parts: usize,
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Bytes of shared memory of a block with a signature of its own, and of one with `many`.
    pub(crate) shared_each: usize,
    pub(crate) shared_one: usize,
}

impl Bits {
    pub(crate) const fn of(p: &Params) -> Bits {
        let (blocks, words) = (p.n().div_ceil(8), words(p));
        // Blocks of rows with 64 columns each: in a circle; of twenty blocks, seven count twice and thirteen once.
        let (tasks, slots) = if blocks == 20 { (27, 8) } else { (blocks, blocks.div_ceil(2)) };
        let many = if p.k() < 8 { 4 } else { 2 };
        let warps = if words == 18 { 3 } else { words / 2 };
        Bits {
            key: words * tasks * slots * 64,
            many,
            parts: words / warps,
            threads: 32 * warps as u32,
            shared_each: Bits::shared(p, 1, warps),
            shared_one: Bits::shared(p, many, warps),
        }
    }

    const fn shared(p: &Params, signatures: usize, warps: usize) -> usize {
        let (blocks, vectors) = (p.n().div_ceil(8), signatures * p.k());
        let across = (4 * vectors.div_ceil(4) + 5) / 8 * 8 + 2;
        let sums = vectors * (blocks | 1) * 8;
        ((blocks + 1) * across * 4 + warps * (sums + p.k() * p.k())) * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_make_up_the_vector() {
        for p in Params::all() {
            assert_eq!(words(p) % slice_words(p), 0, "{}", p.name());
            assert_eq!(p.tail()[4], 0, "{}: kernels fold with four coefficients", p.name());
        }
    }

    #[test]
    fn every_kernel_fits_99_kib_of_shared_memory() {
        const MOST: usize = 99 * 1024;
        const { assert!(EXPAND_SHARED <= MOST) }
        for p in Params::all() {
            for what in [Products::Keygen, Products::Sign, Products::SignExpanded, Products::Verify] {
                assert!(products_shared(p, what) <= MOST, "{} {what:?}", p.name());
            }
            assert!(solve_shared(p).max(lower_shared(p)) <= MOST, "{}", p.name());
            let bits = Bits::of(p);
            assert!(bits.shared_each.max(bits.shared_one) <= MOST, "{}: {bits:?}", p.name());
        }
    }
}
