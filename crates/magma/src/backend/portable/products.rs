//! Carry-less products from integer products, without a branch or an address that depends on the operands.
//!
//! Bits four apart leave room for a sum of up to 15 terms: in the product of x's bits i, i + 4, ... with those of h at
//! j, j + 4, ... the bits at i + j, i + j + 4, ... are right modulo 2, and the bits between are carries. Sixteen terms
//! would meet in only one place, that of x's bits 60 to 63 with h's first, so those four bits are left out of the
//! integer products and added by masks. The carries are masked away once at the end: XOR never moves them to a
//! significant place.
//!
//! Integer multiplication of 64 bits takes the same time for all operands on every x86-64 and on 64-bit Arm cores
//! since Cortex-A53.

/// The bits i, i + 4, ... of a word.
const fn class(i: usize) -> u64 {
    0x1111_1111_1111_1111 << i
}

/// # Safety
/// See `Kernels::products`.
pub(super) unsafe fn products(h: *const u8, x: *const u8, n: usize, sum: &mut [u64; 2]) {
    let mut by_class = [0u128; 4];
    let mut top = 0u128;
    for i in 0..n {
        // SAFETY: i < n blocks are readable.
        let (h, x) =
            unsafe { (h.add(8 * i).cast::<[u8; 8]>().read(), x.add(8 * i).cast::<[u8; 8]>().read()) };
        let (h, x) = (u64::from_be_bytes(h), u64::from_be_bytes(x));
        let rest = x & (u64::MAX >> 4);
        for j in 0..4 {
            for k in 0..4 {
                by_class[(j + k) % 4] ^= u128::from(h & class(j)) * u128::from(rest & class(k));
            }
            let mask = 0u64.wrapping_sub(x >> (60 + j) & 1);
            top ^= u128::from(h & mask) << j;
        }
    }
    let product = (0..4).fold(top << 60, |product, i| {
        product ^ (by_class[i] & (u128::from(class(i)) << 64 | u128::from(class(i))))
    });
    sum[0] ^= product as u64;
    sum[1] ^= (product >> 64) as u64;
}
