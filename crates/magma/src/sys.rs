//! The one place outside kernels that touches raw memory: blocks of another crate's type, seen as bytes.

use cipher::Array;
use cipher::consts::U8;
use inout::InOutBuf;

/// The bytes of blocks.
pub(crate) fn bytes<'i, 'o>(blocks: InOutBuf<'i, 'o, Array<u8, U8>>) -> InOutBuf<'i, 'o, u8> {
    let n = 8 * blocks.len();
    let (input, output) = blocks.into_raw();
    // SAFETY: an `Array` of 8 bytes is 8 bytes without padding and without an alignment of its own, so both pointers
    // are good for n bytes; whether they are equal or disjoint is as it was, and the lifetimes are kept.
    unsafe { InOutBuf::from_raw(input.cast(), output.cast(), n) }
}
