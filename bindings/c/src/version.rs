//! Which version this is.

use core::ffi::c_char;

/// The version that this header belongs to: major, minor and patch level.
pub const LW_VERSION_MAJOR: u32 = 0;
/// See LW_VERSION_MAJOR.
pub const LW_VERSION_MINOR: u32 = 1;
/// See LW_VERSION_MAJOR.
pub const LW_VERSION_PATCH: u32 = 0;

/// The version of the library that runs, such as "0.1.0"; static.
#[unsafe(no_mangle)]
pub extern "C" fn lw_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_version_is_the_packages() {
        let header = format!("{LW_VERSION_MAJOR}.{LW_VERSION_MINOR}.{LW_VERSION_PATCH}");
        assert_eq!(header, env!("CARGO_PKG_VERSION"));
    }
}
