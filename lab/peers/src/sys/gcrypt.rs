//! libgcrypt, opened at run time.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use super::functions;
use crate::cipher::{BLOCK_BYTES, CipherKey, Direction};

const FILES: [&str; 2] = ["libgcrypt.so.20", "libgcrypt.20.dylib"];

const CTL_RESET: c_int = 4;
const CTL_DISABLE_SECMEM: c_int = 37;
const CTL_INITIALIZATION_FINISHED: c_int = 38;
const CTL_INITIALIZATION_FINISHED_P: c_int = 39;
const CTL_SET_SBOX: c_int = 73;

functions! {
    /// The functions of libgcrypt that are used, as `gcrypt.h` declares them.
    struct Functions {
        gcry_check_version: fn(*const c_char) -> *const c_char,
        gcry_cipher_open: fn(*mut *mut c_void, c_int, c_int, c_uint) -> c_uint,
        gcry_cipher_close: fn(*mut c_void),
        gcry_cipher_ctl: fn(*mut c_void, c_int, *mut c_void, usize) -> c_uint,
        gcry_cipher_setkey: fn(*mut c_void, *const c_void, usize) -> c_uint,
        gcry_cipher_setiv: fn(*mut c_void, *const c_void, usize) -> c_uint,
        gcry_cipher_setctr: fn(*mut c_void, *const c_void, usize) -> c_uint,
        gcry_cipher_encrypt: fn(*mut c_void, *mut c_void, usize, *const c_void, usize) -> c_uint,
        gcry_cipher_decrypt: fn(*mut c_void, *mut c_void, usize, *const c_void, usize) -> c_uint,
        gcry_mac_open: fn(*mut *mut c_void, c_int, c_uint, *mut c_void) -> c_uint,
        gcry_mac_close: fn(*mut c_void),
        gcry_mac_ctl: fn(*mut c_void, c_int, *mut c_void, usize) -> c_uint,
        gcry_mac_setkey: fn(*mut c_void, *const c_void, usize) -> c_uint,
        gcry_mac_write: fn(*mut c_void, *const c_void, usize) -> c_uint,
        gcry_mac_read: fn(*mut c_void, *mut c_void, *mut usize) -> c_uint,
    }
}

/// libgcrypt, initialised.
pub(crate) struct Gcrypt {
    call: Functions,
    version: String,
}

/// How a context's vector is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// There is none.
    Nothing,
    /// `gcry_cipher_setiv`.
    Vector,
    /// `gcry_cipher_setctr`.
    Counter,
}

impl Gcrypt {
    /// libgcrypt, opened and initialised at the first call.
    pub(crate) fn get() -> Result<&'static Self, String> {
        static ONE: OnceLock<Result<Gcrypt, String>> = OnceLock::new();
        ONE.get_or_init(Self::open).as_ref().map_err(Clone::clone)
    }

    fn open() -> Result<Self, String> {
        // SAFETY: libgcrypt's initialisers set up nothing that has conditions; the types are those of
        // `gcrypt.h` for the binary interface 20, which the file name stands for. `gcry_control` takes a
        // command and what that command needs: here nothing or a zero. The version is a string literal.
        unsafe {
            let library = super::open_forever(&FILES)?;
            let call = Functions::load(&library)?;
            let control: unsafe extern "C" fn(c_int, ...) -> c_uint =
                super::symbol(&library, "gcry_control")?;
            let version = (call.gcry_check_version)(null());
            if version.is_null() {
                return Err("libgcrypt could not be initialised".to_owned());
            }
            if control(CTL_INITIALIZATION_FINISHED_P) == 0 {
                // No pages are locked: these keys are not secret.
                control(CTL_DISABLE_SECMEM, 0 as c_int);
                control(CTL_INITIALIZATION_FINISHED, 0 as c_int);
            }
            let version = CStr::from_ptr(version).to_string_lossy().into_owned();
            Ok(Self { call, version })
        }
    }

    /// The version the library gives itself.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// A context for an algorithm in a mode, with the substitution of that object identifier.
    pub(crate) fn cipher(
        &'static self,
        algorithm: c_int,
        mode: c_int,
        sbox: &CStr,
        start: Start,
        direction: Direction,
    ) -> Result<Cipher, u32> {
        let mut handle = null_mut();
        // SAFETY: on success the handle is a fresh one; numbers that mean nothing are refused.
        let status = unsafe { (self.call.gcry_cipher_open)(&mut handle, algorithm, mode, 0) };
        if status != 0 {
            return Err(status);
        }
        let cipher = Cipher { library: self, handle, start, encrypt: direction == Direction::Encrypt };
        // SAFETY: the command reads a zero-terminated string and ignores the length.
        let status =
            unsafe { (self.call.gcry_cipher_ctl)(handle, CTL_SET_SBOX, sbox.as_ptr().cast_mut().cast(), 0) };
        if status == 0 { Ok(cipher) } else { Err(status) }
    }

    /// A context for an authentication code; only the standard's own takes a substitution.
    pub(crate) fn mac(&'static self, algorithm: c_int, sbox: Option<&CStr>) -> Result<Mac, u32> {
        let mut handle = null_mut();
        // SAFETY: on success the handle is a fresh one; numbers that mean nothing are refused.
        let status = unsafe { (self.call.gcry_mac_open)(&mut handle, algorithm, 0, null_mut()) };
        if status != 0 {
            return Err(status);
        }
        let mac = Mac { library: self, handle };
        let Some(sbox) = sbox else { return Ok(mac) };
        // SAFETY: the command reads a zero-terminated string and ignores the length.
        let status =
            unsafe { (self.call.gcry_mac_ctl)(handle, CTL_SET_SBOX, sbox.as_ptr().cast_mut().cast(), 0) };
        if status == 0 { Ok(mac) } else { Err(status) }
    }
}

/// A cipher's context.
pub(crate) struct Cipher {
    library: &'static Gcrypt,
    handle: *mut c_void,
    start: Start,
    encrypt: bool,
}

// SAFETY: a handle may be used from any thread, one at a time; it is used through `&mut` only.
unsafe impl Send for Cipher {}

impl Cipher {
    /// Sets what is given; a vector has the size of a block, which is asserted.
    pub(crate) fn init(&mut self, key: Option<&CipherKey>, iv: &[u8]) -> u32 {
        assert_eq!(iv.len(), if self.start == Start::Nothing { 0 } else { BLOCK_BYTES });
        let call = &self.library.call;
        // SAFETY: the handle is this value's own; key and vector are readable for the lengths passed.
        unsafe {
            let mut status = match key {
                Some(key) => (call.gcry_cipher_setkey)(self.handle, key.as_ptr().cast(), key.len()),
                None => (call.gcry_cipher_ctl)(self.handle, CTL_RESET, null_mut(), 0),
            };
            if status == 0 {
                status = match self.start {
                    Start::Nothing => 0,
                    Start::Vector => (call.gcry_cipher_setiv)(self.handle, iv.as_ptr().cast(), iv.len()),
                    Start::Counter => (call.gcry_cipher_setctr)(self.handle, iv.as_ptr().cast(), iv.len()),
                };
            }
            status
        }
    }

    /// Encrypts or decrypts; lengths must be equal, which is asserted.
    pub(crate) fn update(&mut self, input: &[u8], output: &mut [u8]) -> u32 {
        assert_eq!(input.len(), output.len());
        let call = &self.library.call;
        let run = if self.encrypt { call.gcry_cipher_encrypt } else { call.gcry_cipher_decrypt };
        // SAFETY: the handle is this value's own; both buffers are valid for the lengths passed.
        unsafe {
            run(self.handle, output.as_mut_ptr().cast(), output.len(), input.as_ptr().cast(), input.len())
        }
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's own.
        unsafe { (self.library.call.gcry_cipher_close)(self.handle) }
    }
}

/// An authentication code's context.
pub(crate) struct Mac {
    library: &'static Gcrypt,
    handle: *mut c_void,
}

// SAFETY: a handle may be used from any thread, one at a time; it is used through `&mut` only.
unsafe impl Send for Mac {}

impl Mac {
    /// Sets the key.
    pub(crate) fn rekey(&mut self, key: &CipherKey) -> u32 {
        // SAFETY: the handle is this value's own; the key is readable for the length passed.
        unsafe { (self.library.call.gcry_mac_setkey)(self.handle, key.as_ptr().cast(), key.len()) }
    }

    /// The tag of `message` under the key that was set; a tag of another size than the code's is cut or refused.
    pub(crate) fn mac(&mut self, message: &[u8], tag: &mut [u8]) -> u32 {
        let call = &self.library.call;
        let mut written = tag.len();
        // SAFETY: the handle is this value's own, and has a key or refuses; the message is readable and
        // the tag writable for the lengths passed.
        unsafe {
            let mut status = (call.gcry_mac_ctl)(self.handle, CTL_RESET, null_mut(), 0);
            if status == 0 {
                status = (call.gcry_mac_write)(self.handle, message.as_ptr().cast(), message.len());
            }
            if status == 0 {
                status = (call.gcry_mac_read)(self.handle, tag.as_mut_ptr().cast(), &mut written);
            }
            if status == 0 { u32::from(written != tag.len()) } else { status }
        }
    }
}

impl Drop for Mac {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's own.
        unsafe { (self.library.call.gcry_mac_close)(self.handle) }
    }
}
