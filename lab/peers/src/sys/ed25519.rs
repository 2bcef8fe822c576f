//! Calls into OpenSSL's Ed25519. Safe code sees only [`Key`].

use std::ffi::{c_int, c_uchar, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use super::functions;
use super::openssl::{FILES, OpenSsl};

/// `EVP_PKEY_ED25519` of `evp.h`.
const ED25519: c_int = 1087;

functions! {
    /// The functions of libcrypto that are used, as its public header files declare them.
    struct Functions {
        EVP_PKEY_new_raw_private_key: fn(c_int, *mut c_void, *const c_uchar, usize) -> *mut c_void,
        EVP_PKEY_get_raw_public_key: fn(*const c_void, *mut c_uchar, *mut usize) -> c_int,
        EVP_PKEY_free: fn(*mut c_void),
        EVP_MD_CTX_new: fn() -> *mut c_void,
        EVP_MD_CTX_free: fn(*mut c_void),
        EVP_DigestSignInit: fn(*mut c_void, *mut *mut c_void, *const c_void, *mut c_void, *mut c_void) -> c_int,
        EVP_DigestVerifyInit: fn(*mut c_void, *mut *mut c_void, *const c_void, *mut c_void, *mut c_void) -> c_int,
        EVP_DigestSign: fn(*mut c_void, *mut c_uchar, *mut usize, *const c_uchar, usize) -> c_int,
        EVP_DigestVerify: fn(*mut c_void, *const c_uchar, usize, *const c_uchar, usize) -> c_int,
    }
}

/// libcrypto's functions, looked up at the first call.
fn functions() -> Result<&'static Functions, String> {
    static ONE: OnceLock<Result<Functions, String>> = OnceLock::new();
    let open = || {
        OpenSsl::get()?;
        // SAFETY: libcrypto is open and initialised already; the types in `Functions` are those of its header files for
        // version 3, whose binary interface the file name stands for.
        unsafe { Functions::load(&super::open_forever(&FILES)?) }
    };
    ONE.get_or_init(open).as_ref().map_err(Clone::clone)
}

/// libcrypto's version string.
pub(crate) fn version() -> Result<String, String> {
    functions()?;
    Ok(OpenSsl::get()?.version())
}

/// A key pair with a context for signing and one for verifying; each is freed with it.
pub(crate) struct Key {
    call: &'static Functions,
    pair: *mut c_void,
    signing: *mut c_void,
    verifying: *mut c_void,
}

impl Key {
    /// The key pair of a seed. The public key is computed here.
    pub(crate) fn new(seed: &[u8; 32]) -> Result<Key, String> {
        let call = functions()?;
        // SAFETY: the seed is readable for the length passed; the other calls have no conditions. Null pointers are checked below.
        let key = unsafe {
            Key {
                call,
                pair: (call.EVP_PKEY_new_raw_private_key)(ED25519, null_mut(), seed.as_ptr(), seed.len()),
                signing: (call.EVP_MD_CTX_new)(),
                verifying: (call.EVP_MD_CTX_new)(),
            }
        };
        if key.pair.is_null() || key.signing.is_null() || key.verifying.is_null() {
            return Err("OpenSSL makes no Ed25519 key".to_owned());
        }
        Ok(key)
    }

    /// Prepares both contexts. Each then serves any number of messages.
    pub(crate) fn prepare(&mut self) -> Result<(), String> {
        // SAFETY: key and contexts are this value's own and not null. Ed25519 takes neither a digest nor an engine.
        let done = unsafe {
            (self.call.EVP_DigestSignInit)(self.signing, null_mut(), null(), null_mut(), self.pair) == 1
                && (self.call.EVP_DigestVerifyInit)(self.verifying, null_mut(), null(), null_mut(), self.pair)
                    == 1
        };
        if done { Ok(()) } else { Err("OpenSSL refuses its own Ed25519 key".to_owned()) }
    }

    /// The public key.
    pub(crate) fn public(&self) -> Option<[u8; 32]> {
        let (mut out, mut bytes) = ([0; 32], 32);
        // SAFETY: the key is not null, and the buffer has the length passed.
        let done =
            unsafe { (self.call.EVP_PKEY_get_raw_public_key)(self.pair, out.as_mut_ptr(), &mut bytes) };
        (done == 1 && bytes == out.len()).then_some(out)
    }

    /// Signs. `None` where OpenSSL fails, as it does before [`Key::prepare`].
    pub(crate) fn sign(&mut self, message: &[u8]) -> Option<[u8; 64]> {
        let (mut out, mut bytes) = ([0; 64], 64);
        // SAFETY: the context is not null; both buffers have the lengths passed.
        let done = unsafe {
            (self.call.EVP_DigestSign)(
                self.signing,
                out.as_mut_ptr(),
                &mut bytes,
                message.as_ptr(),
                message.len(),
            )
        };
        (done == 1 && bytes == out.len()).then_some(out)
    }

    /// Whether a signature is valid. False too where OpenSSL fails.
    pub(crate) fn verify(&mut self, message: &[u8], signature: &[u8]) -> bool {
        // SAFETY: the context is not null; both buffers have the lengths passed.
        let done = unsafe {
            (self.call.EVP_DigestVerify)(
                self.verifying,
                signature.as_ptr(),
                signature.len(),
                message.as_ptr(),
                message.len(),
            )
        };
        done == 1
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: all three are this value's own, and each function accepts null.
        unsafe {
            (self.call.EVP_MD_CTX_free)(self.signing);
            (self.call.EVP_MD_CTX_free)(self.verifying);
            (self.call.EVP_PKEY_free)(self.pair);
        }
    }
}
