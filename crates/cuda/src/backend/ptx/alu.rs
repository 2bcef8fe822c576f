//! What instructions compute for one thread, where Rust has no operator for it. Sections are those of the PTX ISA 9.0.
#![forbid(unsafe_code)]

/// 9.7.8 shl: amounts beyond the width give zero.
#[inline(always)]
pub(super) fn shl(a: u32, b: u32) -> u32 {
    if b > 31 { 0 } else { a << b }
}

#[inline(always)]
pub(super) fn shr(a: u32, b: u32) -> u32 {
    if b > 31 { 0 } else { a >> b }
}

/// 9.7.8 shr of signed integers: filled with the sign.
#[inline(always)]
pub(super) fn shr_signed(a: u32, b: u32) -> u32 {
    ((a as i32) >> b.min(31)) as u32
}

#[inline(always)]
pub(super) fn shl_long(a: u64, b: u32) -> u64 {
    if b > 63 { 0 } else { a << b }
}

#[inline(always)]
pub(super) fn shr_long(a: u64, b: u32) -> u64 {
    if b > 63 { 0 } else { a >> b }
}

/// 9.7.8 shf.l.wrap: the upper word of `b`, `a` shifted to the left.
#[inline(always)]
pub(super) fn funnel_left(a: u32, b: u32, c: u32) -> u32 {
    (((u64::from(b) << 32 | u64::from(a)) << (c & 31)) >> 32) as u32
}

/// 9.7.8 shf.r.wrap: the lower word of `b`, `a` shifted to the right.
#[inline(always)]
pub(super) fn funnel_right(a: u32, b: u32, c: u32) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) >> (c & 31)) as u32
}

/// 9.7.1 bfi: `length` bits of `a` into `b` from bit `position` on.
#[inline(always)]
pub(super) fn insert(a: u32, b: u32, position: u32, length: u32) -> u32 {
    let (position, length) = (position & 0xff, length & 0xff);
    let field = shl(if length > 31 { u32::MAX } else { (1 << length) - 1 }, position);
    b & !field | shl(a, position) & field
}

#[inline(always)]
pub(super) fn insert_long(a: u64, b: u64, position: u32, length: u32) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    let field = shl_long(if length > 63 { u64::MAX } else { (1 << length) - 1 }, position);
    b & !field | shl_long(a, position) & field
}

/// 9.7.9 prmt: four bytes of `b`, `a`, or their signs.
#[inline(always)]
pub(super) fn permute(a: u32, b: u32, selection: u32) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    let mut result = 0;
    for i in 0..4 {
        let selector = selection >> (4 * i);
        let byte = (both >> (8 * (selector & 7))) as u8;
        let byte = if selector & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 };
        result |= u32::from(byte) << (8 * i);
    }
    result
}

/// 9.7.8 lop3: bit `4a + 2b + c` of the table.
#[inline(always)]
pub(super) fn logic3(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let mut result = 0;
    for i in 0..8 {
        let of = |x: u32, bit: u32| if i & bit == 0 { !x } else { x };
        let take = 0u32.wrapping_sub(table >> i & 1);
        result |= of(a, 4) & of(b, 2) & of(c, 1) & take;
    }
    result
}

/// 9.7.1 dp4a: four products of bytes, added.
#[inline(always)]
pub(super) fn dot4(a: u32, b: u32, c: u32) -> u32 {
    (0..4).fold(c, |sum, i| sum.wrapping_add((a >> (8 * i) & 0xff) * (b >> (8 * i) & 0xff)))
}

/// 9.7.1 dp2a.lo: the halves of `a` by the lower two bytes of `b`, added.
#[inline(always)]
pub(super) fn dot2(a: u32, b: u32, c: u32) -> u32 {
    (0..2).fold(c, |sum, i| sum.wrapping_add((a >> (16 * i) & 0xffff).wrapping_mul(b >> (8 * i) & 0xff)))
}

/// 9.7.9 cvt of a signed integer of so many bits.
#[inline(always)]
pub(super) fn extend(a: u32, bits: u32) -> u64 {
    (i64::from(a) << (64 - bits) >> (64 - bits)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_examples_and_limits() {
        assert_eq!((shl(1, 31), shl(1, 32), shr(8, 200), shr_signed(0x8000_0000, 40)), (1 << 31, 0, 0, !0));
        assert_eq!(funnel_left(0x8000_0001, 0x0000_00ff, 4), 0x0000_0ff8);
        assert_eq!(funnel_right(0x8000_0001, 0x0000_00ff, 4), 0xf800_0000);
        assert_eq!(funnel_left(5, 7, 32), 7);
        assert_eq!(insert(0xf, 0, 4, 2), 0x30);
        assert_eq!(insert(0xff, 0x1234, 0, 0), 0x1234);
        assert_eq!(insert(0xff, 0, 28, 29), 0xf000_0000);
        assert_eq!(insert(0xff, 0x77, 32, 8), 0x77);
        assert_eq!(insert_long(!0, 0, 60, 200), 0xf << 60);
        assert_eq!(permute(0x7654_8210, 0xfedc_ba98, 0x7041), 0xfe10_9882);
        assert_eq!(permute(0x0000_8000, 0, 0x0009), 0x0000_00ff);
        assert_eq!(logic3(0xf0, 0xcc, 0xaa, 0x96) & 0xff, 0x96);
        assert_eq!(dot4(0x0102_0304, 0x0101_0180, 10), 10 + 1 + 2 + 3 + 512);
        assert_eq!(dot2(0x0002_ffff, 0x0000_0301, 1), 1 + 0xffff + 6);
        assert_eq!((extend(0x80, 8), extend(0x7f, 8), extend(!0, 32)), (!0x7f, 0x7f, !0));
    }
}
