//! Columns beside the rows of a partial GCD.
#![forbid(unsafe_code)]

use lanework_integer::gcd::euclid::Matrix;
use lanework_integer::kernels::Lane;

/// The first rows' cofactors, and S further columns, all in two's complement.
#[derive(Clone, Copy)]
pub(super) struct Columns<const H: usize, const S: usize> {
    pub(super) cofactor: [[u64; H]; 2],
    pub(super) others: [[[u64; H]; 2]; S],
}

/// The columns of this step and, alternating, of the step before, so that limbs just written are not copied.
pub(super) struct Along<const H: usize, const S: usize> {
    halves: [Columns<H, S>; 2],
    second: bool,
    /// Bits of the cofactors, at most.
    bits: usize,
    /// Whether the matrices so far have determinant -1.
    pub(super) odd: bool,
}

impl<const H: usize, const S: usize> Along<H, S> {
    /// Beside the first rows: cofactors 0 and 1, the others as given.
    #[inline(always)]
    pub(super) fn new(others: [[[u64; H]; 2]; S]) -> Along<H, S> {
        let mut cofactor = [[0; H]; 2];
        cofactor[1][0] = 1;
        Along { halves: [Columns { cofactor, others }; 2], second: false, bits: 1, odd: false }
    }

    #[inline(always)]
    pub(super) fn step<L: Lane>(&mut self, lane: L, m: &Matrix) {
        let [first, second] = &mut self.halves;
        let (now, next) = if self.second { (&*second, first) } else { (&*first, second) };
        let pairs = core::iter::once((&now.cofactor, &mut next.cofactor));
        for (from, to) in pairs.chain(now.others.iter().zip(&mut next.others)) {
            m.row(lane, 0, from, &mut to[0]);
            m.row(lane, 1, from, &mut to[1]);
        }
        self.second = !self.second;
        self.bits += m.bits() as usize;
        self.odd ^= m.determinant() < 0;
    }

    /// The columns, unless a cofactor may have outgrown its limbs.
    #[inline(always)]
    pub(super) fn done(&self) -> Option<&Columns<H, S>> {
        (self.bits < 64 * H).then_some(&self.halves[usize::from(self.second)])
    }
}
