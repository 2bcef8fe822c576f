//! 64-bit limbs: the operations in terms of rows of limbs, written once and stamped for `portable` and `adx`.
//!
//! Floor: a product of n by n limbs is n^2 multiplications, one a cycle, and on `adx` four more instructions each. All run
//! in times that depend on values only through branches on signs and, in shifts, on counts.
use core::cmp::Ordering;

use super::{Arithmetic, Kernels, Matrix, Modulus, Number, Sum, word_inverse};
use lanework_integer::kernels::{Lane, Portable};
use lanework_integer::limbs;

/// The operations of an instruction set on a row of limbs.
pub(crate) trait Rows: Lane {
    /// x += y * factor over the length of y; returns the limb carried out. x and y have the same length.
    #[inline(always)]
    fn add_mul(self, x: &mut [u64], y: &[u64], factor: u64) -> u64 {
        limbs::add_mul(x, y, factor)
    }
}

impl Rows for Portable {}

/// One width: N limbs an operand, W a double-width number.
macro_rules! width {
    ($n:literal, $w:literal) => {
        Arithmetic {
            bits: 64 * $n,
            wide_bits: 64 * $w,
            radix: 64,
            montgomery: 64 * $n,
            read,
            read_wide: read,
            write,
            write_wide: write,
            add: add::<_, $n>,
            mul: mul::<_, _, $n>,
            square: square::<_, _, $n>,
            div_exact: div_exact::<_, _, $n, $w>,
            reduce: reduce::<_, _, $n>,
            shift_left: shift_left::<_, $n>,
            shift_right: shift_right::<_, $n>,
            compare,
            apply: apply::<_, $n>,
            add_product: add_product::<_, _, $n, $w>,
            add_wide: add_wide::<_, $w>,
            settle: settle::<_, $w>,
        }
    };
}

/// The kernels of a lane: wrappers with the attributes that its instructions need, and the table of them.
macro_rules! stamp {
    ($lane:expr, $(#[$attribute:meta])*) => {
        $(#[$attribute])*
        unsafe fn read<const V: usize>(limbs: &[u64], negative: bool, out: &mut Number<V>) {
            portable::rows::read(limbs, negative, out);
        }

        $(#[$attribute])*
        unsafe fn write<const V: usize>(x: &Number<V>, out: &mut [u64]) -> usize {
            portable::rows::write(x, out)
        }

        $(#[$attribute])*
        unsafe fn add<const V: usize, const N: usize>(
            x: &Number<V>, y: &Number<V>, minus: bool, out: &mut Number<V>,
        ) -> bool {
            portable::rows::add::<V, N>(x, y, minus, out)
        }

        $(#[$attribute])*
        unsafe fn mul<const V: usize, const D: usize, const N: usize>(
            x: &Number<V>, y: &Number<V>, out: &mut Number<D>,
        ) {
            portable::rows::mul::<_, V, D, N>($lane, x, y, out);
        }

        $(#[$attribute])*
        unsafe fn square<const V: usize, const D: usize, const N: usize>(x: &Number<V>, out: &mut Number<D>) {
            portable::rows::square::<_, V, D, N>($lane, x, out);
        }

        $(#[$attribute])*
        unsafe fn div_exact<const V: usize, const D: usize, const N: usize, const W: usize>(
            x: &Number<D>, d: &Number<V>, out: &mut Number<V>,
        ) -> bool {
            portable::rows::div_exact::<_, V, D, N, W>($lane, x, d, out)
        }

        $(#[$attribute])*
        unsafe fn reduce<const V: usize, const D: usize, const N: usize>(
            x: &Number<D>, m: &Modulus<V>, out: &mut Number<V>,
        ) {
            portable::rows::reduce::<_, V, D, N>($lane, x, m, out);
        }

        $(#[$attribute])*
        unsafe fn shift_left<const V: usize, const N: usize>(x: &Number<V>, k: usize, out: &mut Number<V>) {
            portable::rows::shift_left::<V, N>(x, k, out);
        }

        $(#[$attribute])*
        unsafe fn shift_right<const V: usize, const N: usize>(x: &Number<V>, k: usize, out: &mut Number<V>) {
            portable::rows::shift_right::<V, N>(x, k, out);
        }

        $(#[$attribute])*
        unsafe fn compare<const V: usize>(x: &Number<V>, y: &Number<V>) -> Ordering {
            portable::rows::compare(x, y)
        }

        $(#[$attribute])*
        unsafe fn apply<const V: usize, const N: usize>(
            x: &[Number<V>; 2], m: &Matrix, out: &mut [Number<V>; 2],
        ) -> bool {
            portable::rows::apply::<_, V, N>($lane, x, m, out)
        }

        $(#[$attribute])*
        unsafe fn add_product<const V: usize, const D: usize, const N: usize, const W: usize>(
            sum: &mut Sum<D>, x: &Number<V>, y: &Number<V>, minus: bool,
        ) {
            portable::rows::add_product::<_, V, D, N, W>($lane, sum, x, y, minus);
        }

        $(#[$attribute])*
        unsafe fn add_wide<const D: usize, const W: usize>(sum: &mut Sum<D>, x: &Number<D>, minus: bool) {
            portable::rows::add_wide::<D, W>(sum, x, minus);
        }

        $(#[$attribute])*
        unsafe fn settle<const D: usize, const W: usize>(sum: &Sum<D>, out: &mut Number<D>) -> bool {
            portable::rows::settle::<D, W>(sum, out)
        }

        /// The kernels of this backend.
        pub(crate) static KERNELS: Kernels = Kernels {
            w256: portable::width!(4, 8),
            w512: portable::width!(8, 16),
            w1024: portable::width!(16, 33),
            w2112: portable::width!(33, 66),
        };
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use stamp;
pub(super) use width;

use super::portable;
stamp!(Portable,);

pub(super) mod rows;
