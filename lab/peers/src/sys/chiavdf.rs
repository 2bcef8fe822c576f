//! The library that `cargo xtask peers` builds from chiavdf's C interface.

use std::path::Path;

use super::functions;

/// An array of bytes that the library allocated; null where it failed.
#[repr(C)]
#[derive(Clone, Copy)]
struct ByteArray {
    data: *mut u8,
    length: usize,
}

functions! {
    /// What `c_bindings/c_wrapper.h` declares.
    struct Table {
        create_discriminant_wrapper: fn(*const u8, usize, usize, *mut u8) -> bool,
        prove_wrapper: fn(*const u8, usize, *const u8, usize, usize, u64) -> ByteArray,
        verify_n_wesolowski_wrapper: fn(*const u8, usize, *const u8, *const u8, usize, u64, u64) -> bool,
        delete_byte_array: fn(ByteArray),
    }
}

/// The library, open.
pub(crate) struct Functions {
    call: Table,
    // Last, so that it is closed after everything that points into it is gone.
    _library: libloading::Library,
}

impl Functions {
    /// Opens `path`, whose content the caller has compared with its card.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        // A relative path without a slash would send the loader searching the system's directories.
        let path = std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()))?;
        // SAFETY: the file is the one that this project built of chiavdf; its initialisers are those of C++ tables and
        // read the CPU's features. The types are those of its header.
        unsafe {
            let library = libloading::Library::new(&path)
                .map_err(|e| format!("the loader refuses {}: {}", path.display(), super::reason(&e)))?;
            Ok(Self { call: Table::load(&library)?, _library: library })
        }
    }

    /// A discriminant as long as `out`, of at least one byte.
    pub(crate) fn discriminant(&self, challenge: &[u8], out: &mut [u8]) -> bool {
        assert!(!out.is_empty());
        // SAFETY: the challenge is readable for its length. The library writes a number of exactly the given bit
        // length, with its highest bit set: the output's bytes.
        unsafe {
            (self.call.create_discriminant_wrapper)(
                challenge.as_ptr(),
                challenge.len(),
                out.len() * 8,
                out.as_mut_ptr(),
            )
        }
    }

    /// A proof, or `None`.
    pub(crate) fn prove(&self, challenge: &[u8], x: &[u8], bits: usize, iterations: u64) -> Option<Vec<u8>> {
        // SAFETY: both inputs are readable for their lengths.
        let array = unsafe {
            (self.call.prove_wrapper)(
                challenge.as_ptr(),
                challenge.len(),
                x.as_ptr(),
                x.len(),
                bits,
                iterations,
            )
        };
        if array.data.is_null() {
            return None;
        }
        // SAFETY: the library gave a pointer to that many bytes, which are the caller's until freed, once.
        unsafe {
            let proof = std::slice::from_raw_parts(array.data, array.length).to_vec();
            (self.call.delete_byte_array)(array);
            Some(proof)
        }
    }

    /// Whether a proof is accepted; x must have the 100 bytes of a form, which is asserted.
    pub(crate) fn verify(
        &self,
        discriminant: &[u8],
        x: &[u8],
        proof: &[u8],
        iterations: u64,
        depth: u64,
    ) -> bool {
        assert_eq!(x.len(), crate::delay::FORM_BYTES);
        // SAFETY: discriminant and proof are readable for their lengths, x for the bytes that the library reads.
        unsafe {
            (self.call.verify_n_wesolowski_wrapper)(
                discriminant.as_ptr(),
                discriminant.len(),
                x.as_ptr(),
                proof.as_ptr(),
                proof.len(),
                iterations,
                depth,
            )
        }
    }
}
