//! The only raw memory outside kernels: blocks of another crate's type, viewed as bytes.

use cipher::Array;
use cipher::consts::U8;
use inout::InOutBuf;

/// The bytes of blocks.
pub(crate) fn bytes<'i, 'o>(blocks: InOutBuf<'i, 'o, Array<u8, U8>>) -> InOutBuf<'i, 'o, u8> {
    let n = 8 * blocks.len();
    let (input, output) = blocks.into_raw();
    // SAFETY: an `Array` of 8 bytes has 8 bytes, no padding and an alignment of 1, so both pointers are valid for n
    // bytes. They stay equal or disjoint as before, and the lifetimes are kept.
    unsafe { InOutBuf::from_raw(input.cast(), output.cast(), n) }
}
