//! Types that may be copied to a device and back byte for byte.

/// A type without padding whose every bit pattern is a value.
///
/// # Safety
/// Implementors satisfy this, and are `Copy` with an alignment of at most 16 bytes.
pub unsafe trait Plain: Copy + Send + Sync + Default + core::fmt::Debug + 'static {}

macro_rules! plain {
    ($($t:ty),*) => {$(
        // SAFETY: integers have no padding, and every pattern is a value.
        unsafe impl Plain for $t {}
        // SAFETY: an array of such types has no padding either.
        unsafe impl<const N: usize> Plain for [$t; N] where [$t; N]: Default {}
    )*};
}
plain!(u8, u16, u32, u64, i8, i16, i32, i64);
