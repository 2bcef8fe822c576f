//! The library that `cargo xtask peers` builds around the packages of RustCrypto.

use std::ffi::c_void;
use std::path::Path;

use super::functions;
use crate::cipher::{CipherKey, Direction};

functions! {
    /// What the library exports; its source is `xtask/src/peers/rustcrypto.rs.in`.
    struct Functions {
        lanework_magma_interface: fn() -> u32,
        lanework_magma_new: fn(u32, u32, *const u8, *const u8) -> *mut c_void,
        lanework_magma_rekey: fn(*mut c_void, *const u8, *const u8) -> i32,
        lanework_magma_restart: fn(*mut c_void, *const u8) -> i32,
        lanework_magma_update: fn(*mut c_void, *const u8, *mut u8, usize) -> i32,
        lanework_magma_mac: fn(*mut c_void, *const u8, usize, *mut u8) -> i32,
        lanework_magma_seal: fn(
            *mut c_void, *const u8, *const u8, usize, *const u8, *mut u8, usize, *mut u8
        ) -> i32,
        lanework_magma_open: fn(
            *mut c_void, *const u8, *const u8, usize, *const u8, *mut u8, usize, *const u8
        ) -> i32,
        lanework_magma_free: fn(*mut c_void),
    }
}

/// The version of these functions that this file is written for.
const INTERFACE: u32 = 1;

/// The number of a mode, and the sizes that its functions read and write.
#[derive(Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) number: u32,
    pub(crate) iv: usize,
    pub(crate) tag: usize,
    pub(crate) granule: usize,
}

/// The library, open.
pub(crate) struct RustCrypto {
    call: Functions,
    // Last, so that it is closed after everything that points into it is gone.
    _library: libloading::Library,
}

impl RustCrypto {
    /// Opens `path`, whose content the caller has compared with its card.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        // SAFETY: the file is the one that this project built, without initialisers of its own, and the
        // types are those of its source; another interface is refused before anything else is called.
        unsafe {
            let library = libloading::Library::new(path)
                .map_err(|e| format!("the loader refuses {}: {}", path.display(), super::reason(&e)))?;
            let call = Functions::load(&library)?;
            match (call.lanework_magma_interface)() {
                INTERFACE => Ok(Self { call, _library: library }),
                other => {
                    Err(format!("{} has interface {other}, this version uses {INTERFACE}", path.display()))
                }
            }
        }
    }
}

/// A mode with its key.
pub(crate) struct Context {
    library: std::sync::Arc<RustCrypto>,
    facts: Facts,
    state: *mut c_void,
}

// SAFETY: the state is plain memory without ties to a thread; it is used through `&mut` only.
unsafe impl Send for Context {}

impl Context {
    /// Opens a mode; the vector must have its size, which is asserted.
    pub(crate) fn new(
        library: std::sync::Arc<RustCrypto>,
        facts: Facts,
        direction: Direction,
        key: &CipherKey,
        iv: &[u8],
    ) -> Option<Self> {
        assert_eq!(iv.len(), facts.iv);
        let decrypt = u32::from(direction == Direction::Decrypt);
        // SAFETY: the key has 32 bytes and the vector the mode's; an unknown number gives null.
        let state =
            unsafe { (library.call.lanework_magma_new)(facts.number, decrypt, key.as_ptr(), iv.as_ptr()) };
        (!state.is_null()).then_some(Self { library, facts, state })
    }

    /// Sets another key; the vector must have the mode's size, which is asserted.
    pub(crate) fn rekey(&mut self, key: &CipherKey, iv: &[u8]) -> i32 {
        assert_eq!(iv.len(), self.facts.iv);
        // SAFETY: the state is this value's own; sizes as in `new`.
        unsafe { (self.library.call.lanework_magma_rekey)(self.state, key.as_ptr(), iv.as_ptr()) }
    }

    /// Sets another vector, whose size is asserted.
    pub(crate) fn restart(&mut self, iv: &[u8]) -> i32 {
        assert_eq!(iv.len(), self.facts.iv);
        // SAFETY: the state is this value's own; sizes as in `new`.
        unsafe { (self.library.call.lanework_magma_restart)(self.state, iv.as_ptr()) }
    }

    /// Encrypts or decrypts; lengths must be equal and whole granules, which is asserted.
    pub(crate) fn update(&mut self, input: &[u8], output: &mut [u8]) -> i32 {
        assert!(input.len() == output.len() && input.len().is_multiple_of(self.facts.granule));
        // SAFETY: the state is this value's own; both buffers are valid for the length passed.
        unsafe {
            (self.library.call.lanework_magma_update)(
                self.state,
                input.as_ptr(),
                output.as_mut_ptr(),
                input.len(),
            )
        }
    }

    /// The tag of `message`; its size is asserted.
    pub(crate) fn mac(&mut self, message: &[u8], tag: &mut [u8]) -> i32 {
        assert_eq!(tag.len(), self.facts.tag);
        // SAFETY: the state is this value's own; the message is readable for its length and the tag
        // writable for as many bytes as the mode's tag has.
        unsafe {
            (self.library.call.lanework_magma_mac)(
                self.state,
                message.as_ptr(),
                message.len(),
                tag.as_mut_ptr(),
            )
        }
    }

    /// Encrypts and authenticates; nonce, tag and equal lengths are asserted.
    pub(crate) fn seal(
        &mut self,
        nonce: &[u8],
        aad: &[u8],
        plain: &[u8],
        sealed: &mut [u8],
        tag: &mut [u8],
    ) -> i32 {
        assert_eq!((nonce.len(), tag.len()), (self.facts.iv, self.facts.tag));
        assert_eq!(plain.len(), sealed.len());
        // SAFETY: the state is this value's own; all buffers are valid for the lengths passed or for the
        // mode's sizes.
        unsafe {
            (self.library.call.lanework_magma_seal)(
                self.state,
                nonce.as_ptr(),
                aad.as_ptr(),
                aad.len(),
                plain.as_ptr(),
                sealed.as_mut_ptr(),
                plain.len(),
                tag.as_mut_ptr(),
            )
        }
    }

    /// Verifies and decrypts; nonce, tag and equal lengths are asserted.
    pub(crate) fn open(
        &mut self,
        nonce: &[u8],
        aad: &[u8],
        sealed: &[u8],
        plain: &mut [u8],
        tag: &[u8],
    ) -> i32 {
        assert_eq!((nonce.len(), tag.len()), (self.facts.iv, self.facts.tag));
        assert_eq!(plain.len(), sealed.len());
        // SAFETY: as in `seal`.
        unsafe {
            (self.library.call.lanework_magma_open)(
                self.state,
                nonce.as_ptr(),
                aad.as_ptr(),
                aad.len(),
                sealed.as_ptr(),
                plain.as_mut_ptr(),
                sealed.len(),
                tag.as_ptr(),
            )
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the state is this value's own and is not used again.
        unsafe { (self.library.call.lanework_magma_free)(self.state) }
    }
}
