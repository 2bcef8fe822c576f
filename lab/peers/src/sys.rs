//! The boundary to foreign code: opening a library, its functions' types, and calling them.
//!
//! All unsafe code of the crate is here, one file for each library.

pub(crate) mod chiavdf;
pub(crate) mod ed25519;
pub(crate) mod gcrypt;
pub(crate) mod ifma;
pub(crate) mod liboqs;
pub(crate) mod openssl;
pub(crate) mod rustcrypto;

use std::ffi::{CStr, c_char};

/// Declares a table of foreign functions, each field named as its symbol, and how to fill it.
macro_rules! functions {
    ($(#[$doc:meta])* struct $table:ident { $($name:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?,)* }) => {
        $(#[$doc])*
        #[allow(non_snake_case, reason = "the fields are the symbols")]
        struct $table { $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)* }

        impl $table {
            /// Looks all of them up.
            ///
            /// # Safety
            /// The types must be those of the library's symbols, and the library must stay open.
            unsafe fn load(library: &libloading::Library) -> Result<Self, String> {
                // SAFETY: passed on to the caller.
                unsafe { Ok(Self { $($name: super::symbol(library, stringify!($name))?,)* }) }
            }
        }
    };
}
use functions;

/// Opens the first of `names` that the loader finds in the system's directories, never to be closed.
///
/// # Safety
/// The initialisers of a library of that name must be harmless.
unsafe fn open_forever(names: &[&str]) -> Result<libloading::Library, String> {
    let mut why = String::from("no name to look for");
    for name in names {
        // SAFETY: passed on to the caller.
        match unsafe { libloading::Library::new(*name) } {
            Ok(library) => {
                // A second handle that is never dropped keeps the library open whatever becomes of this one.
                // SAFETY: as before.
                if let Ok(second) = unsafe { libloading::Library::new(*name) } {
                    std::mem::forget(second);
                }
                return Ok(library);
            }
            Err(error) => why = format!("the loader refuses {name}: {}", reason(&error)),
        }
    }
    Err(why)
}

/// Looks `name` up.
///
/// # Safety
/// `T` must be the function pointer type of that symbol.
unsafe fn symbol<T: Copy>(library: &libloading::Library, name: &str) -> Result<T, String> {
    // SAFETY: passed on to the caller.
    unsafe { library.get::<T>(name) }
        .map(|found| *found)
        .map_err(|_| format!("the library has no symbol {name}"))
}

/// The loader's own message, which libloading wraps in another.
fn reason(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// # Safety
/// `pointer` must point to a zero-terminated string.
unsafe fn text(pointer: *const c_char) -> String {
    // SAFETY: passed on to the caller.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
