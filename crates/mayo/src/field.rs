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

/// Splits packed nibbles, low one first, into one element per byte. An odd count leaves the last high nibble unread.
pub fn unpack(packed: &[u8], elements: &mut [u8]) {
    debug_assert!(packed.len() >= elements.len().div_ceil(2));
    let last = elements.len() / 2;
    let mut pairs = elements.chunks_exact_mut(2);
    for (pair, &byte) in (&mut pairs).zip(packed) {
        pair[0] = byte & 0xf;
        pair[1] = byte >> 4;
    }
    if let ([element], Some(&byte)) = (pairs.into_remainder(), packed.get(last)) {
        *element = byte & 0xf;
    }
}

/// Packs elements two to a byte, low nibble first; an odd count leaves the last high nibble 0.
pub fn pack(elements: &[u8], packed: &mut [u8]) {
    debug_assert_eq!(packed.len(), elements.len().div_ceil(2));
    for (byte, pair) in packed.iter_mut().zip(elements.chunks(2)) {
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
        for n in [0usize, 1, 2, 7, 8] {
            let elements: Vec<u8> = (0..n).map(|i| (i * 7 % 16) as u8).collect();
            let mut packed = vec![0xffu8; n.div_ceil(2)];
            pack(&elements, &mut packed);
            let mut back = vec![0xff; n];
            unpack(&packed, &mut back);
            assert_eq!(back, elements);
        }
    }
}
