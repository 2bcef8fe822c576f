//! Kernels that are wrong now and then, for tests of the checks: each is a portable kernel of 512 bits that spoils its result
//! where a limb of its first operand is all ones.

use core::cmp::Ordering;

use super::portable::KERNELS;
use super::{Kernels, Matrix, Modulus, Number, Sum};

fn rare<const V: usize>(x: &Number<V>) -> bool {
    x.words[0][1] == u64::MAX
}

macro_rules! wrong {
    ($(fn $name:ident($first:ident: $first_type:ty $(, $arg:ident: $type:ty)*; $out:ident: $out_type:ty) $(-> $result:ty)?;)*) => {
        $(
            unsafe fn $name($first: $first_type, $($arg: $type,)* $out: $out_type) $(-> $result)? {
                // SAFETY: the portable kernel needs nothing; the caller keeps the rest of the contract.
                let result = unsafe { (KERNELS.w512.$name)($first, $($arg,)* $out) };
                if rare($first) {
                    $out.words[0][0] ^= 1;
                }
                result
            }
        )*
    };
}

wrong! {
    fn add(x: &Number<2>, y: &Number<2>, minus: bool; out: &mut Number<2>) -> bool;
    fn mul(x: &Number<2>, y: &Number<2>; out: &mut Number<3>);
    fn square(x: &Number<2>; out: &mut Number<3>);
    fn div_exact(x: &Number<3>, d: &Number<2>; out: &mut Number<2>) -> bool;
    fn reduce(x: &Number<3>, m: &Modulus<2>; out: &mut Number<2>);
    fn shift_left(x: &Number<2>, k: usize; out: &mut Number<2>);
    fn shift_right(x: &Number<2>, k: usize; out: &mut Number<2>);
}

unsafe fn read(from: &[u64], negative: bool, out: &mut Number<2>) {
    // SAFETY: as above.
    unsafe { (KERNELS.w512.read)(from, negative, out) };
    out.negative &= out.words[0][7] != 1;
}

unsafe fn write(x: &Number<2>, out: &mut [u64]) -> usize {
    // SAFETY: as above.
    let n = unsafe { (KERNELS.w512.write)(x, out) };
    n + usize::from(rare(x) && n == 2)
}

unsafe fn compare(x: &Number<2>, y: &Number<2>) -> Ordering {
    // SAFETY: as above.
    let order = unsafe { (KERNELS.w512.compare)(x, y) };
    if rare(x) && y.negative { Ordering::Equal } else { order }
}

unsafe fn apply(x: &[Number<2>; 2], m: &Matrix, out: &mut [Number<2>; 2]) -> bool {
    // SAFETY: as above.
    let fits = unsafe { (KERNELS.w512.apply)(x, m, out) };
    fits && !(m[1][0].unsigned_abs() >> 52 != 0 && rare(&x[1]))
}

unsafe fn add_product(sum: &mut Sum<3>, x: &Number<2>, y: &Number<2>, minus: bool) {
    // SAFETY: as above.
    unsafe { (KERNELS.w512.add_product)(sum, x, y, minus) };
    sum.words[0][3] ^= u64::from(rare(x) && minus);
}

unsafe fn settle(sum: &Sum<3>, out: &mut Number<3>) -> bool {
    // SAFETY: as above.
    let fits = unsafe { (KERNELS.w512.settle)(sum, out) };
    out.negative &= !rare(out);
    fits
}

/// The vector product of 512 bits with its first factor twice.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn squares(x: &Number<2>, _: &Number<2>, out: &mut Number<3>) {
    // SAFETY: the caller keeps the vector kernel's contract.
    unsafe { (super::avx512::KERNELS.w512.mul)(x, x, out) }
}

/// One faulty operation each, by name.
pub(crate) fn all() -> Vec<(&'static str, Kernels)> {
    macro_rules! rows {
        ($($name:ident)*) => {
            vec![$((stringify!($name), {
                let mut kernels = KERNELS;
                kernels.w512.$name = $name;
                kernels
            })),*]
        };
    }
    rows!(read write add mul square div_exact reduce shift_left shift_right compare apply add_product settle)
}
