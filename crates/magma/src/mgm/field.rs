//! GF(2^64) with the polynomial x^64 + x^4 + x^3 + x + 1 (RFC 9058, 3).
#![forbid(unsafe_code)]

/// The field's element for a polynomial of degree up to 127, low half first. In constant time.
pub(crate) fn reduce(sum: [u64; 2]) -> u64 {
    let [low, high] = sum;
    // x^64 is x^4 + x^3 + x + 1. The part pushed beyond x^63 has degree at most 3, and is folded the same way.
    let fold = |x: u64| x ^ x << 1 ^ x << 3 ^ x << 4;
    low ^ fold(high) ^ fold(high >> 63 ^ high >> 61 ^ high >> 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, from the highest power down.
    fn slowly(sum: [u64; 2]) -> u64 {
        let mut value = u128::from(sum[1]) << 64 | u128::from(sum[0]);
        for power in (64..128).rev() {
            if value >> power & 1 == 1 {
                value ^= 0b1_1011 << (power - 64) | 1 << power;
            }
        }
        value as u64
    }

    #[test]
    fn every_power_reduces_to_what_the_polynomial_says() {
        for power in 0..128 {
            let value = 1u128 << power;
            let sum = [value as u64, (value >> 64) as u64];
            assert_eq!(reduce(sum), slowly(sum), "x^{power}");
        }
        // Pairs distinguish sums from unions.
        for (a, b) in (0..128).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let value = 1u128 << a | 1 << b;
            let sum = [value as u64, (value >> 64) as u64];
            assert_eq!(reduce(sum), slowly(sum), "x^{a} + x^{b}");
        }
        assert_eq!(reduce([u64::MAX; 2]), slowly([u64::MAX; 2]));
    }
}
