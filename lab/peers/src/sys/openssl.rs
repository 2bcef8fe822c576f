//! OpenSSL's libcrypto, opened at run time, with ciphers and codes from a provider or from an engine.
//!
//! Everything runs in OpenSSL's default library context: the provider of gost-engine does not work in
//! another. libcrypto and what it loads stay loaded as long as the program runs, so that nothing has to
//! be torn down in the right order.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::functions;
use crate::cipher::{CipherKey, Direction};

/// The file names under which version 3 of libcrypto is installed.
pub(super) const FILES: [&str; 2] = ["libcrypto.so.3", "libcrypto.3.dylib"];

const INIT_NO_LOAD_CONFIG: u64 = 0x80;
const INIT_ENGINE_DYNAMIC: u64 = 0x400;
const INIT_NO_ATEXIT: u64 = 0x8_0000;
const CTRL_AEAD_GET_TAG: c_int = 0x10;
const CTRL_AEAD_SET_TAG: c_int = 0x11;
/// gost-engine's own: sets the key of an authentication code that poses as a digest.
const CTRL_DIGEST_SET_KEY: c_int = 0x1004;
/// The most bytes given to one call, whose lengths are of type `int`; a multiple of every block.
const MOST: usize = 1 << 30;

/// `OSSL_PARAM` of `core.h`.
#[repr(C)]
struct Param {
    key: *const c_char,
    data_type: c_uint,
    data: *mut c_void,
    data_size: usize,
    return_size: usize,
}

const PARAM_UTF8_PTR: c_uint = 6;

functions! {
    /// The functions of libcrypto that are used, as its public header files declare them.
    struct Functions {
        OPENSSL_init_crypto: fn(u64, *const c_void) -> c_int,
        OpenSSL_version: fn(c_int) -> *const c_char,
        OSSL_PROVIDER_load: fn(*mut c_void, *const c_char) -> *mut c_void,
        OSSL_PROVIDER_get_params: fn(*const c_void, *mut Param) -> c_int,
        OBJ_sn2nid: fn(*const c_char) -> c_int,
        ENGINE_by_id: fn(*const c_char) -> *mut c_void,
        ENGINE_ctrl_cmd_string: fn(*mut c_void, *const c_char, *const c_char, c_int) -> c_int,
        ENGINE_init: fn(*mut c_void) -> c_int,
        ENGINE_get_cipher: fn(*mut c_void, c_int) -> *const c_void,
        ENGINE_get_digest: fn(*mut c_void, c_int) -> *const c_void,
        ERR_get_error: fn() -> u64,
        ERR_clear_error: fn(),
        ERR_error_string_n: fn(u64, *mut c_char, usize),
        EVP_CIPHER_fetch: fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void,
        EVP_CIPHER_get_iv_length: fn(*const c_void) -> c_int,
        EVP_CIPHER_get_key_length: fn(*const c_void) -> c_int,
        EVP_CIPHER_get_block_size: fn(*const c_void) -> c_int,
        EVP_CIPHER_CTX_new: fn() -> *mut c_void,
        EVP_CIPHER_CTX_free: fn(*mut c_void),
        EVP_CIPHER_CTX_reset: fn(*mut c_void) -> c_int,
        EVP_CIPHER_CTX_set_padding: fn(*mut c_void, c_int) -> c_int,
        EVP_CIPHER_CTX_ctrl: fn(*mut c_void, c_int, c_int, *mut c_void) -> c_int,
        EVP_CipherInit_ex: fn(
            *mut c_void, *const c_void, *mut c_void, *const c_uchar, *const c_uchar, c_int
        ) -> c_int,
        EVP_CipherUpdate: fn(*mut c_void, *mut c_uchar, *mut c_int, *const c_uchar, c_int) -> c_int,
        EVP_CipherFinal_ex: fn(*mut c_void, *mut c_uchar, *mut c_int) -> c_int,
        EVP_MAC_fetch: fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void,
        EVP_MAC_CTX_new: fn(*mut c_void) -> *mut c_void,
        EVP_MAC_CTX_free: fn(*mut c_void),
        EVP_MAC_CTX_get_mac_size: fn(*mut c_void) -> usize,
        EVP_MAC_init: fn(*mut c_void, *const c_uchar, usize, *const Param) -> c_int,
        EVP_MAC_update: fn(*mut c_void, *const c_uchar, usize) -> c_int,
        EVP_MAC_final: fn(*mut c_void, *mut c_uchar, *mut usize, usize) -> c_int,
        EVP_MD_get_size: fn(*const c_void) -> c_int,
        EVP_MD_CTX_new: fn() -> *mut c_void,
        EVP_MD_CTX_free: fn(*mut c_void),
        EVP_MD_CTX_ctrl: fn(*mut c_void, c_int, c_int, *mut c_void) -> c_int,
        EVP_DigestInit_ex: fn(*mut c_void, *const c_void, *mut c_void) -> c_int,
        EVP_DigestUpdate: fn(*mut c_void, *const c_void, usize) -> c_int,
        EVP_DigestFinal_ex: fn(*mut c_void, *mut c_uchar, *mut c_uint) -> c_int,
    }
}

/// libcrypto, initialised.
pub(crate) struct OpenSsl {
    call: Functions,
}

/// Where ciphers and codes come from.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    openssl: &'static OpenSsl,
    /// The provider whose name is in the property query; null for an engine.
    provider: Foreign,
    /// The engine, initialised; null for a provider.
    engine: Foreign,
}

/// A pointer to an object of libcrypto.
#[derive(Clone, Copy)]
struct Foreign(*mut c_void);

// SAFETY: only two kinds of objects are held this way: providers, engines and methods, which libcrypto
// counts and locks itself; and contexts, each owned by one value here and used through `&mut` only.
unsafe impl Send for Foreign {}
// SAFETY: shared references lead only to the first kind.
unsafe impl Sync for Foreign {}

impl OpenSsl {
    /// libcrypto, opened and initialised at the first call. No configuration file is read: it could
    /// change what the names mean.
    pub(crate) fn get() -> Result<&'static Self, String> {
        static ONE: OnceLock<Result<OpenSsl, String>> = OnceLock::new();
        ONE.get_or_init(Self::open).as_ref().map_err(Clone::clone)
    }

    fn open() -> Result<Self, String> {
        // SAFETY: libcrypto's initialisers set up locks and nothing else; the types in `Functions` are
        // those of its header files for version 3, whose binary interface the file name stands for.
        let call = unsafe { Functions::load(&super::open_forever(&FILES)?)? };
        let options = INIT_NO_LOAD_CONFIG | INIT_ENGINE_DYNAMIC | INIT_NO_ATEXIT;
        // SAFETY: options only, no settings.
        if unsafe { (call.OPENSSL_init_crypto)(options, null()) } != 1 {
            return Err("libcrypto could not be initialised".to_owned());
        }
        Ok(Self { call })
    }

    /// libcrypto's version string.
    pub(crate) fn version(&self) -> String {
        // SAFETY: the function returns a string literal of the library for any argument.
        unsafe { CStr::from_ptr((self.call.OpenSSL_version)(0)) }.to_string_lossy().into_owned()
    }

    /// The oldest error of this thread's queue, in OpenSSL's words; the queue is emptied.
    fn error(&self) -> String {
        let mut text = [0 as c_char; 256];
        // SAFETY: the buffer has the length passed, and the function ends what it writes with a zero.
        unsafe {
            let code = (self.call.ERR_get_error)();
            (self.call.ERR_clear_error)();
            if code == 0 {
                return "no reason given".to_owned();
            }
            (self.call.ERR_error_string_n)(code, text.as_mut_ptr(), text.len());
            CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
        }
    }

    /// Loads the provider called `name` from OpenSSL's directory of modules, and the default provider with
    /// it: a program that names any provider has to name that one too.
    pub(crate) fn provider(&'static self, name: &CStr) -> Result<Source, String> {
        // SAFETY: both names are zero-terminated. A provider loaded again is the same one, counted.
        let provider = unsafe {
            (self.call.OSSL_PROVIDER_load)(null_mut(), c"default".as_ptr());
            (self.call.OSSL_PROVIDER_load)(null_mut(), name.as_ptr())
        };
        if provider.is_null() {
            return Err(format!(
                "OpenSSL's provider {} cannot be loaded: {}",
                name.to_string_lossy(),
                self.error()
            ));
        }
        Ok(Source { openssl: self, provider: Foreign(provider), engine: Foreign(null_mut()) })
    }

    /// Loads the engine `gost` from the file `path`, once.
    pub(crate) fn engine(&'static self, path: &Path) -> Result<Source, String> {
        static LOADED: Mutex<BTreeMap<PathBuf, Foreign>> = Mutex::new(BTreeMap::new());
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = loaded.get(path) {
            return Ok(Source { openssl: self, provider: Foreign(null_mut()), engine: *engine });
        }
        let file = path.to_str().and_then(|path| CString::new(path).ok());
        let file = file.ok_or_else(|| format!("{} cannot be passed to OpenSSL", path.display()))?;
        let commands = [(c"SO_PATH", file.as_c_str()), (c"LIST_ADD", c"0"), (c"ID", c"gost")];
        // SAFETY: all strings are zero-terminated. The first call returns a fresh engine that nothing
        // else refers to; LOAD turns it into the one in the file.
        let engine = unsafe {
            let engine = (self.call.ENGINE_by_id)(c"dynamic".as_ptr());
            let mut done = !engine.is_null();
            for (command, value) in commands {
                done = done
                    && (self.call.ENGINE_ctrl_cmd_string)(engine, command.as_ptr(), value.as_ptr(), 0) == 1;
            }
            done = done && (self.call.ENGINE_ctrl_cmd_string)(engine, c"LOAD".as_ptr(), null(), 0) == 1;
            if !(done && (self.call.ENGINE_init)(engine) == 1) {
                return Err(format!("OpenSSL cannot load the engine {}: {}", path.display(), self.error()));
            }
            Foreign(engine)
        };
        loaded.insert(path.to_owned(), engine);
        Ok(Source { openssl: self, provider: Foreign(null_mut()), engine })
    }
}

impl Source {
    /// The version that the provider gives itself; `None` for an engine.
    pub(crate) fn version(&self) -> Option<String> {
        if self.provider.0.is_null() {
            return None;
        }
        let mut version: *const c_char = null();
        let end =
            Param { key: null(), data_type: 0, data: null_mut(), data_size: 0, return_size: usize::MAX };
        let mut asked = [
            Param {
                key: c"version".as_ptr(),
                data_type: PARAM_UTF8_PTR,
                data: (&raw mut version).cast(),
                data_size: 0,
                return_size: usize::MAX,
            },
            end,
        ];
        // SAFETY: the array ends in an entry without a key; the provider points `version` to a string of
        // its own, which lives as long as the program.
        unsafe {
            let done = (self.openssl.call.OSSL_PROVIDER_get_params)(self.provider.0, asked.as_mut_ptr());
            (done == 1 && !version.is_null()).then(|| CStr::from_ptr(version).to_string_lossy().into_owned())
        }
    }

    fn number(&self, name: &CStr) -> c_int {
        // SAFETY: the name is zero-terminated.
        unsafe { (self.openssl.call.OBJ_sn2nid)(name.as_ptr()) }
    }

    fn method(&self, name: &CStr) -> Option<Foreign> {
        let call = &self.openssl.call;
        // No property is queried: gost-engine's provider has none, and no other has these names.
        // SAFETY: names are zero-terminated and the engine is initialised. Methods live as long as the
        // program: fetched ones are never freed, an engine's belong to the engine.
        let method = unsafe {
            if self.engine.0.is_null() {
                (call.EVP_CIPHER_fetch)(null_mut(), name.as_ptr(), null())
            } else {
                (call.ENGINE_get_cipher)(self.engine.0, self.number(name)).cast_mut()
            }
        };
        if method.is_null() {
            self.openssl.error();
            return None;
        }
        Some(Foreign(method))
    }

    /// Sizes of the cipher called `name`: key, vector, granule.
    pub(crate) fn sizes(&self, name: &CStr) -> Option<[usize; 3]> {
        let method = self.method(name)?.0;
        let call = &self.openssl.call;
        // SAFETY: the method is a cipher's.
        let sizes = unsafe {
            [
                (call.EVP_CIPHER_get_key_length)(method),
                (call.EVP_CIPHER_get_iv_length)(method),
                (call.EVP_CIPHER_get_block_size)(method),
            ]
        };
        Some(sizes.map(|size| usize::try_from(size).unwrap_or(0)))
    }

    /// A context for the cipher called `name`, without a key yet.
    pub(crate) fn cipher(&self, name: &CStr, direction: Direction) -> Option<Cipher> {
        let [key, iv, granule] = self.sizes(name)?;
        if key != size_of::<CipherKey>() || granule == 0 {
            return None;
        }
        let method = self.method(name)?;
        // SAFETY: takes nothing.
        let context = unsafe { (self.openssl.call.EVP_CIPHER_CTX_new)() };
        if context.is_null() {
            return None;
        }
        let encrypt = c_int::from(direction == Direction::Encrypt);
        Some(Cipher { source: *self, method, context: Foreign(context), encrypt, iv, granule })
    }

    /// A context for the authentication code called `name`, without a key yet.
    pub(crate) fn mac(&self, name: &CStr) -> Option<Mac> {
        let call = &self.openssl.call;
        // SAFETY: names are zero-terminated and the engine is initialised; as in `method`.
        unsafe {
            if self.engine.0.is_null() {
                let method = (call.EVP_MAC_fetch)(null_mut(), name.as_ptr(), null());
                let context = if method.is_null() { method } else { (call.EVP_MAC_CTX_new)(method) };
                if context.is_null() {
                    self.openssl.error();
                    return None;
                }
                let size = (call.EVP_MAC_CTX_get_mac_size)(context);
                Some(Mac { source: *self, method: Foreign(method), context: Foreign(context), size })
            } else {
                let method = (call.ENGINE_get_digest)(self.engine.0, self.number(name)).cast_mut();
                let context = if method.is_null() { method } else { (call.EVP_MD_CTX_new)() };
                if context.is_null() {
                    self.openssl.error();
                    return None;
                }
                let size = usize::try_from((call.EVP_MD_get_size)(method)).unwrap_or(0);
                Some(Mac { source: *self, method: Foreign(method), context: Foreign(context), size })
            }
        }
    }
}

/// A cipher's context.
pub(crate) struct Cipher {
    source: Source,
    method: Foreign,
    context: Foreign,
    encrypt: c_int,
    iv: usize,
    granule: usize,
}

impl Cipher {
    /// Sets what is given; the vector must have the cipher's size, which is asserted. `anew` forgets
    /// everything first, which some ciphers of gost-engine need to count from the beginning.
    pub(crate) fn init(&mut self, key: Option<&CipherKey>, iv: &[u8], anew: bool) -> c_int {
        assert_eq!(iv.len(), self.iv);
        let call = &self.source.openssl.call;
        let key = key.map_or(null(), |key| key.as_ptr());
        let iv = if iv.is_empty() { null() } else { iv.as_ptr() };
        // SAFETY: the context is this value's own. The key has 32 bytes, which is what the cipher said it
        // reads; so has the vector. The method and the engine belong together; without `anew` they are
        // those of the first call, which must have come before.
        unsafe {
            if !anew {
                return (call.EVP_CipherInit_ex)(self.context.0, null(), null_mut(), key, iv, self.encrypt);
            }
            if (call.EVP_CIPHER_CTX_reset)(self.context.0) != 1 {
                return 0;
            }
            let (method, engine) = (self.method.0, self.source.engine.0);
            let status = (call.EVP_CipherInit_ex)(self.context.0, method, engine, key, iv, self.encrypt);
            if status == 1 {
                (call.EVP_CIPHER_CTX_set_padding)(self.context.0, 0);
            }
            status
        }
    }

    /// Encrypts or decrypts; lengths must be equal and whole granules, which is asserted.
    pub(crate) fn update(&mut self, input: &[u8], output: &mut [u8]) -> c_int {
        assert!(input.len() == output.len() && input.len().is_multiple_of(self.granule));
        for (input, output) in input.chunks(MOST).zip(output.chunks_mut(MOST)) {
            let mut written = 0;
            // SAFETY: both are valid for the length passed, which fits an int. Without padding and with
            // whole granules the cipher keeps nothing back and writes as much as it reads.
            let status = unsafe {
                (self.source.openssl.call.EVP_CipherUpdate)(
                    self.context.0,
                    output.as_mut_ptr(),
                    &mut written,
                    input.as_ptr(),
                    input.len() as c_int,
                )
            };
            if status != 1 || written as usize != input.len() {
                return status.min(0);
            }
        }
        1
    }

    /// Takes data that is authenticated only. The call is made even for no data: without it gost-engine's
    /// MGM decrypts from an unset state and refuses valid messages.
    pub(crate) fn authenticate(&mut self, data: &[u8]) -> c_int {
        let empty = data.is_empty().then_some(data);
        for data in empty.into_iter().chain(data.chunks(MOST)) {
            let mut written = 0;
            // SAFETY: an authenticating cipher reads the data and, given no output, writes none.
            let status = unsafe {
                (self.source.openssl.call.EVP_CipherUpdate)(
                    self.context.0,
                    null_mut(),
                    &mut written,
                    data.as_ptr(),
                    data.len() as c_int,
                )
            };
            if status != 1 {
                return status;
            }
        }
        1
    }

    /// Ends an authenticated message.
    pub(crate) fn finish(&mut self) -> c_int {
        let (mut rest, mut written) = ([0; 64], 0);
        // SAFETY: the buffer has more than a block's room.
        let status = unsafe {
            (self.source.openssl.call.EVP_CipherFinal_ex)(self.context.0, rest.as_mut_ptr(), &mut written)
        };
        if status != 1 {
            self.source.openssl.error();
        }
        status
    }

    /// The tag of the message just ended.
    pub(crate) fn tag(&mut self, tag: &mut [u8]) -> c_int {
        // SAFETY: the tag is writable for the length passed.
        unsafe { self.ctrl(CTRL_AEAD_GET_TAG, tag.as_mut_ptr().cast(), tag.len()) }
    }

    /// The tag that the message must have.
    pub(crate) fn expect_tag(&mut self, tag: &[u8]) -> c_int {
        // SAFETY: the tag is readable for the length passed, and setting it only reads.
        unsafe { self.ctrl(CTRL_AEAD_SET_TAG, tag.as_ptr().cast_mut().cast(), tag.len()) }
    }

    /// # Safety
    /// `data` must be valid for what the command does with it.
    unsafe fn ctrl(&mut self, command: c_int, data: *mut c_void, length: usize) -> c_int {
        // SAFETY: passed on to the caller; tags are short.
        unsafe {
            (self.source.openssl.call.EVP_CIPHER_CTX_ctrl)(self.context.0, command, length as c_int, data)
        }
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: the context is this value's own.
        unsafe { (self.source.openssl.call.EVP_CIPHER_CTX_free)(self.context.0) }
    }
}

/// An authentication code's context; an engine's poses as a digest.
pub(crate) struct Mac {
    source: Source,
    method: Foreign,
    context: Foreign,
    size: usize,
}

impl Mac {
    /// The tag's size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The tag of `message` under `key`; the tag must have the code's size, which is asserted.
    pub(crate) fn mac(&mut self, key: &CipherKey, message: &[u8], tag: &mut [u8]) -> c_int {
        assert_eq!(tag.len(), self.size);
        let call = &self.source.openssl.call;
        let context = self.context.0;
        // SAFETY: the context is this value's own and of the kind that its source makes. The key is
        // readable for 32 bytes, the message for its length, and the tag writable for the code's size,
        // to which a digest is held by the assertion.
        unsafe {
            if self.source.engine.0.is_null() {
                let mut written = 0;
                let done = (call.EVP_MAC_init)(context, key.as_ptr(), key.len(), null()) == 1
                    && (call.EVP_MAC_update)(context, message.as_ptr(), message.len()) == 1
                    && (call.EVP_MAC_final)(context, tag.as_mut_ptr(), &mut written, tag.len()) == 1;
                return c_int::from(done && written == tag.len());
            }
            let mut written = 0;
            let bytes = key.as_ptr().cast_mut().cast();
            let done = (call.EVP_DigestInit_ex)(context, self.method.0, self.source.engine.0) == 1
                && (call.EVP_MD_CTX_ctrl)(context, CTRL_DIGEST_SET_KEY, key.len() as c_int, bytes) == 1
                && (call.EVP_DigestUpdate)(context, message.as_ptr().cast(), message.len()) == 1
                && (call.EVP_DigestFinal_ex)(context, tag.as_mut_ptr(), &mut written) == 1;
            c_int::from(done && written as usize == tag.len())
        }
    }
}

impl Drop for Mac {
    fn drop(&mut self) {
        let call = &self.source.openssl.call;
        // SAFETY: the context is this value's own and of the kind that its source makes.
        unsafe {
            if self.source.engine.0.is_null() {
                (call.EVP_MAC_CTX_free)(self.context.0);
            } else {
                (call.EVP_MD_CTX_free)(self.context.0);
            }
        }
    }
}
