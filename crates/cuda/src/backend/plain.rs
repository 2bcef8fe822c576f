//! What may be copied to a device and back byte for byte.

/// A type of which every pattern of bits is a value, without padding.
///
/// # Safety
/// Implementors hold to that, and to `Copy` types of at most 16 bytes alignment.
pub unsafe trait Plain: Copy + Send + Sync + Default + core::fmt::Debug + 'static {}

macro_rules! plain {
    ($($t:ty),*) => {$(
        // SAFETY: integers have no padding, and every pattern is a value.
        unsafe impl Plain for $t {}
        // SAFETY: nor has an array of them.
        unsafe impl<const N: usize> Plain for [$t; N] where [$t; N]: Default {}
    )*};
}
plain!(u8, u16, u32, u64, i8, i16, i32, i64);
