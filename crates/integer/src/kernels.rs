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

    /// Steps of Euclid's algorithm with the nearest quotients on a >= b, until b is below `limit`, which is at least [`PRECISE`].
    /// The result is the two rows of the matrix, packed as those of [`Lane::halve31`].
    #[inline(always)]
    fn nearest(self, mut a: u64, mut b: u64, limit: u64) -> (u64, u64) {
        let (mut m0, mut m1) = (1u64, 1u64 << 32);
        while b >= limit {
            let (quotient, rest) = self.div(a, b);
            let other = b - rest;
            // All ones if the next multiple is nearer. By masks: it is random.
            let above = 0u64.wrapping_sub(u64::from(other < rest));
            let row = m0.wrapping_sub(m1.wrapping_mul(quotient.wrapping_sub(above)));
            (m0, m1) = (m1, (row ^ above).wrapping_sub(above));
            (a, b) = (b, rest.min(other));
        }
        (m0, m1)
    }

    /// out = p a - q b, and the signed limb above. p and q are below 2^63.
    #[inline(always)]
    fn minus<const K: usize>(self, a: &[u64; K], b: &[u64; K], p: u64, q: u64, out: &mut [u64; K]) -> u64 {
        let (mut high, mut low, mut borrow) = (0u64, 0u64, false);
        for ((&a, &b), out) in a.iter().zip(b).zip(out) {
            let (x, y);
            (x, high) = a.carrying_mul(p, high);
            (y, low) = b.carrying_mul(q, low);
            (*out, borrow) = x.borrowing_sub(y, borrow);
        }
        high.wrapping_sub(low).wrapping_sub(u64::from(borrow))
    }

    /// (p a - q b) / 2^shift, rounded down, likewise; shift is from 1 to 63.
    #[inline(always)]
    fn divided<const K: usize>(
        self,
        a: &[u64; K],
        b: &[u64; K],
        p: u64,
        q: u64,
        shift: u32,
        out: &mut [u64; K],
    ) -> u64 {
        let high = self.minus(a, b, p, q, out);
        for i in 1..K {
            out[i - 1] = out[i - 1] >> shift | out[i] << (64 - shift);
        }
        out[K - 1] = out[K - 1] >> shift | high << (64 - shift);
        (high as i64 >> shift) as u64
    }

    /// out = p a + q b, and the limb above.
    #[inline(always)]
    fn plus<const K: usize>(self, a: &[u64; K], b: &[u64; K], p: u64, q: u64, out: &mut [u64; K]) -> u64 {
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

/// The least `limit` of [`Lane::nearest`]: factors stay below 1.5 * 2^30.
pub const PRECISE: u64 = 1 << 34;

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
