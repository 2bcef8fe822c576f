//! The few operations that decide how fast a GCD is, as a trait: an algorithm is written once over it and stamped for
//! each instruction set.

#[cfg(target_arch = "x86_64")]
mod adx;
#[cfg(target_arch = "x86_64")]
pub use adx::Adx;

/// Multiply, divide and halve on one instruction set. Values of this type carry no data: they prove that the CPU has it.
///
/// Every method has a plain definition, which all implementations must equal.
pub trait Lane: Copy {
    /// a / b and a mod b. b is not 0.
    #[inline(always)]
    fn div(self, a: u64, b: u64) -> (u64, u64) {
        (a / b, a % b)
    }

    /// 31 shifts of the binary algorithm on (a, b), b odd: subtract the smaller from the larger when both are odd,
    /// then halve the even one. The result is the two rows of the matrix. Each word has the factor of a in the low
    /// half and that of b in the high half, both signed: m0 = f0 + 2^32 g0.
    #[inline(always)]
    fn halve31(self, a: u64, b: u64) -> (u64, u64) {
        halve31_plain(a, b)
    }

    /// out = p a - q b over as many limbs as all three have, and the signed limb above them. p and q are below 2^63.
    #[inline(always)]
    fn minus(self, a: &[u64], b: &[u64], p: u64, q: u64, out: &mut [u64]) -> u64 {
        let (mut high, mut low, mut borrow) = (0u64, 0u64, false);
        for ((&a, &b), out) in a.iter().zip(b).zip(out) {
            let (x, y);
            (x, high) = a.carrying_mul(p, high);
            (y, low) = b.carrying_mul(q, low);
            (*out, borrow) = x.borrowing_sub(y, borrow);
        }
        high.wrapping_sub(low).wrapping_sub(u64::from(borrow))
    }

    /// out = p a + q b, likewise.
    #[inline(always)]
    fn plus(self, a: &[u64], b: &[u64], p: u64, q: u64, out: &mut [u64]) -> u64 {
        let (mut high, mut low, mut carry) = (0u64, 0u64, false);
        for ((&a, &b), out) in a.iter().zip(b).zip(out) {
            let (x, y);
            (x, high) = a.carrying_mul(p, high);
            (y, low) = b.carrying_mul(q, low);
            (*out, carry) = x.carrying_add(y, carry);
        }
        high + low + u64::from(carry)
    }
}

/// Lanes without any special instruction.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Lane for Portable {}

#[inline(always)]
fn halve31_plain(mut a: u64, mut b: u64) -> (u64, u64) {
    let (mut m0, mut m1) = (1u64, 1u64 << 32);
    // A bit that shifts along and marks how many shifts are left.
    let mut guard = 1u64 << 31;
    let z = (a | guard).trailing_zeros();
    a >>= z;
    m1 <<= z;
    guard >>= z;
    while guard > 1 {
        let less = 0u64.wrapping_sub(u64::from(a < b));
        let difference = a.wrapping_sub(b);
        let z = (difference | guard).trailing_zeros();
        // Selections by mask: the outcome is random.
        let row = m0.wrapping_sub(m1);
        b ^= (a ^ b) & less;
        m1 ^= (m0 ^ m1) & less;
        a = ((difference ^ less).wrapping_sub(less)) >> z;
        m0 = (row ^ less).wrapping_sub(less);
        m1 <<= z;
        guard >>= z;
    }
    (m0, m1)
}

/// The two signed halves of a row of [`Lane::halve31`]: they lie in (-2^31, 2^31].
#[inline(always)]
#[must_use]
pub fn unpack(row: u64) -> (i64, i64) {
    const BIAS: i64 = 0x7fff_ffff;
    let biased = row.wrapping_add(0x7fff_ffff_7fff_ffff);
    (i64::from(biased as u32) - BIAS, (biased >> 32) as i64 - BIAS)
}
