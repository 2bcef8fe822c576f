//! Operands of the field kernels: shapes stated once, and checked by the safe calls in `backend` before any kernel
//! runs.
//!
//! Operands are borrows, so none overlaps another. A kernel overwrites its outputs whole. `scratch` has at least the
//! length that the set's kernels need, any content, and is wiped by the caller. An element is a byte, an m-vector
//! `m_bytes`, a padded one `stride` bytes, in `Block`s: see `backend`.
//!
//! The table of kernels takes operands by name, the kernels themselves one by one, in the order that `kernel` states
//! once for all backends: the compiler assumes that arguments do not overlap, but not that fields do not, and optimised
//! half of the portable kernels worse with fields. For the same reason those are never inlined into their entries.

use core::mem::MaybeUninit;

use super::{SLACK, SetKernels};
use crate::params::Sizes;
use crate::sys::Block;

/// P and P3, for verification.
#[derive(Clone, Copy)]
pub struct Matrices<'a> {
    /// P1 then P2: `p12_bytes`, and [`SLACK`].
    pub p: &'a [u8],
    /// P3: `p3_vecs` m-vectors, and [`SLACK`].
    pub p3: &'a [u8],
}

/// P3 = Upper(O^T (P1 O + P2)).
pub struct Keygen<'a> {
    /// As in [`Matrices`].
    pub p: &'a [u8],
    /// O: v x o elements.
    pub o: &'a [u8],
    /// Gets P3: `p3_vecs` m-vectors.
    pub p3: &'a mut [u8],
    /// At least the blocks that the set's kernels need.
    pub scratch: &'a mut [Block],
}

/// The vinegar products of one attempt.
pub struct Sign<'a, K> {
    /// P as in [`Matrices`], or the layout that [`ExpandSecret`] made.
    pub key: K,
    /// O: v x o elements.
    pub o: &'a [u8],
    /// The vinegar vectors: k x v elements.
    pub vinegar: &'a [u8],
    /// n m-vectors and [`SLACK`]; empty if the set has no linear term.
    pub lambda: &'a [u8],
    /// Gets k x o padded m-vectors: v_i^T L, and with lambda M_0 += O^T lambda_vinegar + lambda_oil.
    pub m: &'a mut [Block],
    /// Gets padded m-vectors in schedule order: v_i^T P1 v_j + v_j^T P1 v_i (once if i = j), and with lambda, where one
    /// index is 0, + sum of v_j\[r\] lambda_r for the other index j.
    pub u: &'a mut [Block],
    /// At least the blocks that the set's kernels need.
    pub scratch: &'a mut [Block],
}

/// The products of verification.
pub struct Verify<'a, K> {
    /// [`Matrices`], or the layout that [`ExpandPublic`] made.
    pub key: K,
    /// The signature's vectors: k x n elements.
    pub s: &'a [u8],
    /// As in [`Sign`].
    pub lambda: &'a [u8],
    /// Gets padded m-vectors in schedule order.
    pub u: &'a mut [Block],
    /// At least the blocks that the set's kernels need.
    pub scratch: &'a mut [Block],
}

/// y = sum of z^l u_l mod f(z).
pub struct Whip<'a> {
    /// Padded m-vectors in schedule order.
    pub u: &'a [Block],
    /// Gets one m-vector.
    pub y: &'a mut [u8],
}

/// Builds A and y from m, u and t, and solves A x = y with the free variables taken from r; returns whether A has rank
/// m.
pub struct Solve<'a> {
    /// What [`Sign`] gave.
    pub m: &'a [Block],
    /// What [`Sign`] gave.
    pub u: &'a [Block],
    /// The target: one m-vector.
    pub t: &'a [u8],
    /// k x o elements.
    pub r: &'a [u8],
    /// Gets k x o elements.
    pub x: &'a mut [u8],
    /// At least the blocks that the set's kernels need.
    pub scratch: &'a mut [Block],
}

/// s_i = (v_i + O x_i, x_i).
pub struct Finish<'a> {
    /// O: v x o elements.
    pub o: &'a [u8],
    /// The vinegar vectors: k x v elements.
    pub vinegar: &'a [u8],
    /// What [`Solve`] gave.
    pub x: &'a [u8],
    /// Gets k x n elements.
    pub s: &'a mut [u8],
}

/// Lays out an expanded public key.
pub struct ExpandPublic<'a> {
    /// P and P3.
    pub key: Matrices<'a>,
    /// Gets the blocks of the backend's layout: every byte, except that the last block may be left over in part.
    pub layout: &'a mut [MaybeUninit<Block>],
}

/// Lays out an expanded secret key.
pub struct ExpandSecret<'a> {
    /// As in [`Matrices`].
    pub p: &'a [u8],
    /// O: v x o elements.
    pub o: &'a [u8],
    /// Gets `secret_blocks`, in the backend's layout.
    pub layout: &'a mut [Block],
    /// At least the blocks that the set's kernels need.
    pub scratch: &'a mut [Block],
}

fn check_p(set: &Sizes, p: &[u8]) {
    assert!(p.len() >= set.p12_bytes() + SLACK, "P is too short");
}

fn check_o(set: &Sizes, o: &[u8]) {
    assert_eq!(o.len(), set.v() * set.o);
}

fn check_vinegar(set: &Sizes, vinegar: &[u8]) {
    assert_eq!(vinegar.len(), set.k * set.v());
}

fn check_lambda(set: &Sizes, lambda: &[u8]) {
    let want = if set.linear_term { set.n * set.m_bytes() + SLACK } else { 0 };
    assert!(lambda.len() >= want && (want > 0 || lambda.is_empty()), "lambda has the wrong length");
}

fn check_m(set: &Sizes, m: &[Block]) {
    assert_eq!(m.len(), SetKernels::padded_blocks(set, set.k * set.o));
}

fn check_u(set: &Sizes, u: &[Block]) {
    assert_eq!(u.len(), SetKernels::padded_blocks(set, set.pairs()));
}

fn check_scratch(kernels: &SetKernels, scratch: &[Block]) {
    assert!(scratch.len() >= kernels.scratch_blocks, "scratch is too short");
}

impl Matrices<'_> {
    fn check(&self, set: &Sizes) {
        check_p(set, self.p);
        assert!(self.p3.len() >= set.p3_vecs() * set.m_bytes() + SLACK, "P3 is too short");
    }
}

impl Keygen<'_> {
    pub(super) fn check(&self, kernels: &SetKernels) {
        let set = kernels.sizes;
        check_p(set, self.p);
        check_o(set, self.o);
        assert_eq!(self.p3.len(), set.p3_vecs() * set.m_bytes());
        check_scratch(kernels, self.scratch);
    }

    /// With the first `blocks` of the scratch.
    pub(super) fn within(self, blocks: usize) -> Self {
        Keygen { scratch: &mut self.scratch[..blocks], ..self }
    }
}

impl<K> Sign<'_, K> {
    fn check_others(&self, kernels: &SetKernels) {
        let set = kernels.sizes;
        check_o(set, self.o);
        check_vinegar(set, self.vinegar);
        check_lambda(set, self.lambda);
        check_m(set, self.m);
        check_u(set, self.u);
        check_scratch(kernels, self.scratch);
    }

    /// With the first `blocks` of the scratch.
    pub(super) fn within(self, blocks: usize) -> Self {
        Sign { scratch: &mut self.scratch[..blocks], ..self }
    }
}

impl Sign<'_, &[u8]> {
    pub(super) fn check(&self, kernels: &SetKernels) {
        check_p(kernels.sizes, self.key);
        self.check_others(kernels);
    }
}

impl Sign<'_, &[Block]> {
    pub(super) fn check_expanded(&self, kernels: &SetKernels) {
        assert_eq!(self.key.len(), kernels.secret_blocks);
        self.check_others(kernels);
    }
}

impl<K> Verify<'_, K> {
    fn check_others(&self, kernels: &SetKernels) {
        let set = kernels.sizes;
        assert_eq!(self.s.len(), set.k * set.n);
        check_lambda(set, self.lambda);
        check_u(set, self.u);
        check_scratch(kernels, self.scratch);
    }
}

impl Verify<'_, Matrices<'_>> {
    pub(super) fn check(&self, kernels: &SetKernels) {
        self.key.check(kernels.sizes);
        self.check_others(kernels);
    }
}

impl Verify<'_, &[Block]> {
    pub(super) fn check_expanded(&self, kernels: &SetKernels) {
        assert_eq!(self.key.len(), kernels.public_blocks());
        self.check_others(kernels);
    }
}

impl Whip<'_> {
    pub(super) fn check(&self, kernels: &SetKernels) {
        check_u(kernels.sizes, self.u);
        assert_eq!(self.y.len(), kernels.sizes.m_bytes());
    }
}

impl Solve<'_> {
    pub(super) fn check(&self, kernels: &SetKernels) {
        let set = kernels.sizes;
        check_m(set, self.m);
        check_u(set, self.u);
        assert_eq!(self.t.len(), set.m_bytes());
        assert_eq!(self.r.len(), set.k * set.o);
        assert_eq!(self.x.len(), self.r.len());
        check_scratch(kernels, self.scratch);
    }

    /// With the first `blocks` of the scratch.
    pub(super) fn within(self, blocks: usize) -> Self {
        Solve { scratch: &mut self.scratch[..blocks], ..self }
    }
}

impl Finish<'_> {
    pub(super) fn check(&self, kernels: &SetKernels) {
        let set = kernels.sizes;
        check_o(set, self.o);
        check_vinegar(set, self.vinegar);
        assert_eq!(self.x.len(), set.k * set.o);
        assert_eq!(self.s.len(), set.k * set.n);
    }
}

impl ExpandPublic<'_> {
    pub(super) fn check(&self, kernels: &SetKernels) {
        self.key.check(kernels.sizes);
        assert_eq!(self.layout.len(), kernels.public_blocks());
    }
}

impl ExpandSecret<'_> {
    pub(super) fn check(&self, kernels: &SetKernels) {
        check_p(kernels.sizes, self.p);
        check_o(kernels.sizes, self.o);
        assert_eq!(self.layout.len(), kernels.secret_blocks);
        check_scratch(kernels, self.scratch);
    }
}

/// The entry of the table for a kernel of this name: takes the operands apart.
macro_rules! kernel {
    (keygen: $($kernel:tt)*) => {
        kernel!(@ [$($kernel)*] Keygen<'_>, Keygen { p, o, p3, scratch }, (p, o, p3, scratch) -> ())
    };
    (sign: $($kernel:tt)*) => {
        kernel!(@ [$($kernel)*] Sign<'_, &[u8]>, Sign { key, o, vinegar, lambda, m, u, scratch },
            (key, o, vinegar, lambda, m, u, scratch) -> ())
    };
    (verify: $($kernel:tt)*) => {
        kernel!(@ [$($kernel)*] Verify<'_, Matrices<'_>>, Verify { key, s, lambda, u, scratch },
            (key.p, key.p3, s, lambda, u, scratch) -> ())
    };
    (whip: $($kernel:tt)*) => { kernel!(@ [$($kernel)*] Whip<'_>, Whip { u, y }, (u, y) -> ()) };
    (solve: $($kernel:tt)*) => {
        kernel!(@ [$($kernel)*] Solve<'_>, Solve { m, u, t, r, x, scratch }, (m, u, t, r, x, scratch) -> bool)
    };
    (finish: $($kernel:tt)*) => {
        kernel!(@ [$($kernel)*] Finish<'_>, Finish { o, vinegar, x, s }, (o, vinegar, x, s) -> ())
    };
    (expand_public: $($kernel:tt)*) => {
        kernel!(@ [$($kernel)*] ExpandPublic<'_>, ExpandPublic { key, layout }, (key.p, key.p3, layout) -> ())
    };
    (verify_expanded: $($kernel:tt)*) => {
        kernel!(@ [$($kernel)*] Verify<'_, &[$crate::sys::Block]>, Verify { key, s, lambda, u, scratch },
            (key, s, lambda, u, scratch) -> ())
    };
    (expand_secret: $($kernel:tt)*) => {
        kernel!(@ [$($kernel)*] ExpandSecret<'_>, ExpandSecret { p, o, layout, scratch }, (p, o, layout, scratch) -> ())
    };
    (sign_expanded: $($kernel:tt)*) => {
        kernel!(@ [$($kernel)*] Sign<'_, &[$crate::sys::Block]>, Sign { key, o, vinegar, lambda, m, u, scratch },
            (key, o, vinegar, lambda, m, u, scratch) -> ())
    };
    (@ [$($kernel:ident)::+ <$set:ident $(, $width:ident)*>] $type:ty, $operands:pat, ($($argument:expr),*) -> $gives:ty) => {{
        use $crate::backend::operands::*;
        // Generic, so that entries are instantiated as if the kernels were in the table themselves. Portable ones are
        // safe to call.
        #[allow(unused_unsafe)]
        unsafe fn entry<$set: SetSpec $(, const $width: usize)*>($operands: $type) -> $gives {
            // SAFETY: only the safe calls of `SetKernels` call entries, on a backend whose features were checked and
            // with operands of the contract's lengths.
            unsafe { $($kernel)::+::<$set $(, $width)*>($($argument),*) }
        }
        entry::<$set $(, $width)*>
    }};
}
pub(crate) use kernel;
