//! m-vectors as 64-bit words, and the portable kernels' operations on them.

use crate::sys::Block;

/// The low bit of every nibble.
pub const ONES: u64 = 0x1111_1111_1111_1111;
const TOPS: u64 = 0x8888_8888_8888_8888;

/// An m-vector of NW = ceil(m / 16) words. Nibbles after the last element are unspecified: every operation is nibble
/// by nibble, so they never reach a real one, and `store` drops them.
pub type MVec<const NW: usize> = [u64; NW];

/// Multiplies every nibble by x.
#[inline(always)]
pub fn double(word: u64) -> u64 {
    let top = word & TOPS;
    ((word ^ top) << 1) ^ (top >> 3) ^ (top >> 2)
}

/// a, xa, x^2 a, x^3 a.
#[inline(always)]
pub fn powers<const NW: usize>(a: &MVec<NW>) -> [MVec<NW>; 4] {
    let mut out = [*a; 4];
    for p in 1..4 {
        for w in 0..NW {
            out[p][w] = double(out[p - 1][w]);
        }
    }
    out
}

/// The four bits of a secret element as four all-ones or all-zeros words.
#[inline(always)]
pub fn masks(element: u8) -> [u64; 4] {
    let e = u64::from(element);
    // A compiler that recognises all ones or all zeros may branch on them.
    core::hint::black_box([
        0u64.wrapping_sub(e & 1),
        0u64.wrapping_sub(e >> 1 & 1),
        0u64.wrapping_sub(e >> 2 & 1),
        0u64.wrapping_sub(e >> 3 & 1),
    ])
}

/// acc += element * a, the element as masks and a as powers; constant time.
#[inline(always)]
pub fn mul_add<const NW: usize>(acc: &mut MVec<NW>, masks: &[u64; 4], powers: &[MVec<NW>; 4]) {
    for w in 0..NW {
        acc[w] ^= (powers[0][w] & masks[0])
            ^ (powers[1][w] & masks[1])
            ^ (powers[2][w] & masks[2])
            ^ (powers[3][w] & masks[3]);
    }
}

/// acc += a.
#[inline(always)]
pub fn add<const NW: usize>(acc: &mut MVec<NW>, a: &MVec<NW>) {
    for w in 0..NW {
        acc[w] ^= a[w];
    }
}

/// All sixteen multiples of a; the address of one is a public element.
#[inline(always)]
pub fn multiples<const NW: usize>(a: &MVec<NW>) -> [MVec<NW>; 16] {
    let p = powers(a);
    let mut out = [[0; NW]; 16];
    for e in 1..16usize {
        let low = e & e.wrapping_neg();
        for w in 0..NW {
            out[e][w] = out[e ^ low][w] ^ p[low.trailing_zeros() as usize][w];
        }
    }
    out
}

/// Reads an m-vector at a byte offset; reads up to 7 bytes past it.
#[inline(always)]
pub fn load<const NW: usize>(bytes: &[u8], offset: usize) -> MVec<NW> {
    let mut out = [0; NW];
    let source = &bytes[offset..offset + 8 * NW];
    for (word, chunk) in out.iter_mut().zip(source.chunks_exact(8)) {
        let mut b = [0; 8];
        b.copy_from_slice(chunk);
        *word = u64::from_le_bytes(b);
    }
    out
}

/// Writes the first `out.len()` bytes.
#[inline(always)]
pub fn store<const NW: usize>(a: &MVec<NW>, out: &mut [u8]) {
    for (chunk, word) in out.chunks_mut(8).zip(a) {
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

/// Blocks taken by `count` values of T, each m-vector array being a multiple of 8 bytes.
pub const fn blocks_of<T>(count: usize) -> usize {
    (count * size_of::<T>()).div_ceil(64)
}

/// Takes the front of `scratch` as zeroed values. T must be made only of u64.
pub fn take<'a, T: Words>(scratch: &mut &'a mut [Block], count: usize) -> &'a mut [T] {
    let (front, back) = core::mem::take(scratch).split_at_mut(blocks_of::<T>(count));
    *scratch = back;
    front.fill(Block::ZERO);
    // SAFETY: a Block is 64 initialised bytes aligned to 64; T is made only of u64 (see `Words`), so every bit
    // pattern is a value and its alignment of 8 is met; `count` values fit by `blocks_of`.
    unsafe { core::slice::from_raw_parts_mut(front.as_mut_ptr().cast(), count) }
}

/// Types made only of u64.
///
/// # Safety
/// Every bit pattern must be a value, the alignment 8, and there must be no padding.
pub unsafe trait Words {}
// SAFETY: a plain array of u64.
unsafe impl<const N: usize> Words for [u64; N] {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field;

    const NW: usize = 3;

    /// The element in a nibble.
    fn at(a: &MVec<NW>, i: usize) -> u8 {
        (a[i / 16] >> (4 * (i % 16)) & 0xf) as u8
    }

    /// All elements, three times, each time in another order.
    fn all() -> MVec<NW> {
        let mut out = [0; NW];
        for i in 0..16 * NW {
            out[i / 16] |= (((i * [1, 3, 7][i / 16] + [0, 5, 15][i / 16]) % 16) as u64) << (4 * (i % 16));
        }
        out
    }

    #[test]
    fn words_multiply_as_elements_do() {
        let a = all();
        let (powers, multiples) = (powers(&a), multiples(&a));
        for e in 0..16 {
            let mut acc = [0x0123_4567_89ab_cdef; NW];
            let before = acc;
            mul_add(&mut acc, &masks(e), &powers);
            for i in 0..16 * NW {
                let product = field::mul(e, at(&a, i));
                assert_eq!(at(&multiples[usize::from(e)], i), product, "{e} times element {i}");
                assert_eq!(at(&acc, i), at(&before, i) ^ product, "{e} times element {i}, added");
            }
        }
        let mut sum = a;
        add(&mut sum, &multiples[5]);
        assert!((0..16 * NW).all(|i| at(&sum, i) == field::mul(4, at(&a, i))), "a + 5 a is 4 a");
    }

    #[test]
    fn what_is_stored_is_loaded() {
        let a = all();
        for length in [1, 7, 8, 9, 8 * NW] {
            let mut bytes = [0xee; 8 * NW + 5];
            store(&a, &mut bytes[5..5 + length]);
            let back = load::<NW>(&bytes, 5);
            for i in 0..2 * length {
                assert_eq!(at(&back, i), at(&a, i), "element {i} of {length} bytes");
            }
            assert!(bytes[5 + length..].iter().all(|&b| b == 0xee), "{length} bytes are more");
        }
    }

    #[test]
    fn scratch_is_taken_in_whole_blocks_and_zeroed() {
        let mut blocks = vec![Block::ZERO; 3];
        crate::sys::bytes_mut(&mut blocks).fill(0xff);
        let mut scratch = &mut blocks[..];
        let taken: &mut [[u64; 3]] = take(&mut scratch, 3);
        assert!(taken == [[0; 3]; 3]);
        // 72 bytes are two blocks.
        assert_eq!((scratch.len(), blocks_of::<[u64; 3]>(3), blocks_of::<[u64; 3]>(0)), (1, 2, 0));
        assert!(crate::sys::bytes(scratch).iter().all(|&b| b == 0xff), "more was taken than asked for");
    }
}
