//! GF(16) = GF(2)\[x\]/(x^4 + x + 1), one element in the low nibble of a byte. Constant time.
#![forbid(unsafe_code)]

/// a * b.
#[must_use]
pub const fn mul(a: u8, b: u8) -> u8 {
    let p = ((a & 1) * b) ^ ((a & 2) * b) ^ ((a & 4) * b) ^ ((a & 8) * b);
    let top = p & 0xf0;
    (p ^ (top >> 4) ^ (top >> 3)) & 0xf
}

/// 1 / a, and 0 for 0: a^14.
#[must_use]
pub const fn inv(a: u8) -> u8 {
    let a2 = mul(a, a);
    let a4 = mul(a2, a2);
    mul(mul(a2, a4), mul(a4, a4))
}

/// Row i of the 4x4 bit matrix of "times a": bit j is bit i of a x^j.
#[cfg(target_arch = "x86_64")]
pub(crate) const fn matrix_row(a: u8, i: usize) -> u8 {
    let (mut row, mut j) = (0, 0);
    while j < 4 {
        row |= (mul(a, 1 << j) >> i & 1) << j;
        j += 1;
    }
    row
}

/// The operand of `vgf2p8affineqb` that makes (a x + b y, c x + d y) of the nibbles (x, y), low nibble first: byte 7 - i
/// makes bit i.
#[cfg(target_arch = "x86_64")]
pub(crate) const fn matrix(a: u8, b: u8, c: u8, d: u8) -> u64 {
    let (mut out, mut i) = (0, 0);
    while i < 4 {
        out |= ((matrix_row(a, i) | matrix_row(b, i) << 4) as u64) << (8 * (7 - i));
        out |= ((matrix_row(c, i) | matrix_row(d, i) << 4) as u64) << (8 * (3 - i));
        i += 1;
    }
    out
}

/// Eight nibbles, each to a byte of its own, by words: the compiler does not vectorise the loop over pairs.
const fn spread(nibbles: u32) -> u64 {
    let x = nibbles as u64;
    let x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    let x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f
}

/// The reverse of [`spread`].
const fn gather(elements: u64) -> u32 {
    let x = (elements | elements >> 4) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) as u32
}

/// Splits packed nibbles, low one first, into one element per byte. An odd count leaves the last high nibble unread.
pub fn unpack(packed: &[u8], elements: &mut [u8]) {
    debug_assert!(packed.len() >= elements.len().div_ceil(2));
    let (eights, rest) = elements.as_chunks_mut::<8>();
    let (fours, packed_rest) = packed.split_at(4 * eights.len());
    for (eight, four) in eights.iter_mut().zip(fours.as_chunks::<4>().0) {
        *eight = spread(u32::from_le_bytes(*four)).to_le_bytes();
    }
    for (pair, &byte) in rest.chunks_mut(2).zip(packed_rest) {
        pair[0] = byte & 0xf;
        if let Some(high) = pair.get_mut(1) {
            *high = byte >> 4;
        }
    }
}

/// Packs elements two to a byte, low nibble first; an odd count leaves the last high nibble 0.
///
/// Not inlined: among AVX2's instructions a compiler takes masked loads for the end, whose time no vendor promises.
#[inline(never)]
pub fn pack(elements: &[u8], packed: &mut [u8]) {
    debug_assert_eq!(packed.len(), elements.len().div_ceil(2));
    let (eights, rest) = elements.as_chunks::<8>();
    let (fours, packed_rest) = packed.split_at_mut(4 * eights.len());
    for (four, eight) in fours.as_chunks_mut::<4>().0.iter_mut().zip(eights) {
        *four = gather(u64::from_le_bytes(*eight)).to_le_bytes();
    }
    for (byte, pair) in packed_rest.iter_mut().zip(rest.chunks(2)) {
        *byte = pair[0] | pair.get(1).map_or(0, |high| high << 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_a_field() {
        for a in 0..16 {
            assert_eq!(mul(a, 1), a);
            assert_eq!(mul(a, inv(a)), u8::from(a != 0));
            for b in 0..16 {
                assert_eq!(mul(a, b), mul(b, a));
                for c in 0..16 {
                    assert_eq!(mul(a, b ^ c), mul(a, b) ^ mul(a, c));
                    assert_eq!(mul(a, mul(b, c)), mul(mul(a, b), c));
                }
            }
        }
        // x * x^3 = x^4 = x + 1 fixes which of the isomorphic fields it is.
        assert_eq!(mul(2, 8), 3);
    }

    #[test]
    fn packing_round_trips_at_even_and_odd_lengths() {
        for n in [0usize, 1, 2, 7, 8, 9, 15, 16, 17, 30, 81] {
            let elements: Vec<u8> = (0..n).map(|i| (i * 7 % 16) as u8).collect();
            let mut packed = vec![0xffu8; n.div_ceil(2)];
            pack(&elements, &mut packed);
            for (i, &byte) in packed.iter().enumerate() {
                assert_eq!(byte, elements[2 * i] | elements.get(2 * i + 1).map_or(0, |high| high << 4));
            }
            let mut back = vec![0xff; n];
            unpack(&packed, &mut back);
            assert_eq!(back, elements);
        }
    }
}
