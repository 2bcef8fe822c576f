//! Columns beside the rows of a partial GCD.
#![forbid(unsafe_code)]

use lanework_integer::gcd::euclid::Matrix;
use lanework_integer::kernels::Lane;

/// A cofactor's column, as magnitudes, and S columns modulo 2^(64 H), times the determinant so that they need no signs.
#[derive(Clone, Copy)]
pub(super) struct Columns<const H: usize, const S: usize> {
    pub(super) cofactor: [[u64; H]; 2],
    pub(super) signed: [[[u64; H]; 2]; S],
}

impl<const H: usize, const S: usize> Columns<H, S> {
    /// For the first rows: cofactors 0 and 1, the others as given.
    #[inline(always)]
    pub(super) fn new(signed: [[[u64; H]; 2]; S]) -> Columns<H, S> {
        let mut cofactor = [[0; H]; 2];
        cofactor[1][0] = 1;
        Columns { cofactor, signed }
    }
}

/// The columns of this step and, alternating, of the step before, so that limbs just written are not copied.
pub(super) struct Along<const H: usize, const S: usize> {
    halves: [Columns<H, S>; 2],
    second: bool,
    /// Whether the matrices so far have determinant -1.
    pub(super) odd: bool,
    /// Whether no cofactor has outgrown its H limbs.
    pub(super) fits: bool,
}

impl<const H: usize, const S: usize> Along<H, S> {
    #[inline(always)]
    pub(super) fn new(columns: Columns<H, S>) -> Along<H, S> {
        Along { halves: [columns; 2], second: false, odd: false, fits: true }
    }

    #[inline(always)]
    pub(super) fn step<L: Lane>(&mut self, lane: L, m: &Matrix) {
        let [first, second] = &mut self.halves;
        let (now, next) = if self.second { (&*second, first) } else { (&*first, second) };
        let ([v0, v1], [w0, w1]) = (&now.cofactor, &mut next.cofactor);
        let h0 = lane.plus(v0, v1, m.p, m.q, w0);
        let h1 = lane.plus(v0, v1, m.r, m.t, w1);
        for ([e0, e1], [f0, f1]) in now.signed.iter().zip(&mut next.signed) {
            lane.minus(e0, e1, m.p, m.q, f0);
            lane.minus(e1, e0, m.t, m.r, f1);
        }
        self.second = !self.second;
        self.fits &= h0 | h1 == 0;
        self.odd ^= m.odd;
    }

    #[inline(always)]
    pub(super) fn now(&self) -> &Columns<H, S> {
        &self.halves[usize::from(self.second)]
    }
}
