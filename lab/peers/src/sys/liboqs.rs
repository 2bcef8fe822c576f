//! Calls into liboqs. Safe code sees only [`Library`], whose calls check every length against the sizes that the library reported when
//! it was opened.

use std::ffi::{CString, c_char, c_int};
use std::path::Path;

use super::{reason, symbol, text};
use crate::flavour::SetFacts;
use crate::random;
use crate::signature::ExpandedKey;

type Keypair = unsafe extern "C" fn(*mut u8, *mut u8) -> c_int;
type Sign = unsafe extern "C" fn(*mut u8, *mut usize, *const u8, usize, *const u8) -> c_int;
type Verify = unsafe extern "C" fn(*const u8, usize, *const u8, usize, *const u8) -> c_int;
type Fill = unsafe extern "C" fn(*mut u8, usize);
type Hook = unsafe extern "C" fn(Option<Fill>);
type NewSignature = unsafe extern "C" fn(*const c_char) -> *mut SignatureHead;
type FreeSignature = unsafe extern "C" fn(*mut SignatureHead);
type Expand = unsafe extern "C" fn(*const u8, *mut u64) -> c_int;
type Size = unsafe extern "C" fn() -> usize;
type Text = unsafe extern "C" fn() -> *const c_char;

/// The beginning of liboqs' `OQS_SIG`, up to the sizes; the same in 0.12 and 0.13.
#[repr(C)]
struct SignatureHead {
    method_name: *const c_char,
    alg_version: *const c_char,
    /// The claimed level and three or four flags, one byte each.
    level_and_flags: [u8; 8],
    public_key: usize,
    secret_key: usize,
    signature: usize,
}

/// One parameter set's functions and sizes, as the library gave them.
struct Set {
    keypair: Keypair,
    sign: Sign,
    verify: Verify,
    expand: Option<Expand>,
    sizes: Sizes,
    code: String,
}

/// What a library says about one parameter set, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    pub(crate) public_key: usize,
    pub(crate) secret_key: usize,
    pub(crate) signature: usize,
    pub(crate) expanded_key: Option<usize>,
}

/// An open shared library of liboqs with the sets that were asked for.
pub(crate) struct Library {
    sets: Vec<Set>,
    aes: String,
    // Last, so that it is closed after everything that points into it is gone.
    _library: libloading::Library,
}

/// Called by the foreign code for every byte of randomness.
///
/// # Safety
/// `out` must be valid for writing `len` bytes.
unsafe extern "C" fn fill_random(out: *mut u8, len: usize) {
    if len == 0 {
        return;
    }
    // SAFETY: the caller, liboqs' OQS_randombytes, passes a buffer of its own of that length. It may be
    // uninitialised, so it is zeroed before a reference to it exists.
    let out = unsafe {
        out.write_bytes(0, len);
        std::slice::from_raw_parts_mut(out, len)
    };
    random::fill(out);
}

impl Library {
    /// Opens `path`, finds the functions of MAYO's sets and of the others after them, and plugs [`random`] in as its generator.
    /// A library of another version is named as one, since it may lack some of them.
    ///
    /// Every symbol is resolved and every size read here, so that nothing can be missing later.
    pub(crate) fn open(
        path: &Path,
        expected: &str,
        mayo: &[SetFacts],
        others: &[SetFacts],
    ) -> Result<Self, String> {
        // SAFETY: opening runs the library's initialisers. The caller has checked that the file is the
        // one its card describes, which is liboqs as built by this project; liboqs has no initialisers
        // with conditions of their own. The default flags keep its symbols to itself.
        let library = unsafe { libloading::Library::new(path) }
            .map_err(|e| format!("the loader refuses {}: {}", path.display(), reason(&e)))?;
        // SAFETY: (all look-ups below) the types are those of liboqs' public header files `common.h`,
        // `rand.h` and `sig.h`, and of the file that `cargo xtask peers` adds to the library.
        let (init, version, hook): (unsafe extern "C" fn(), Text, Hook) = unsafe {
            (
                symbol(&library, "OQS_init")?,
                symbol(&library, "OQS_version")?,
                symbol(&library, "OQS_randombytes_custom_algorithm")?,
            )
        };
        // SAFETY: `OQS_init` may be called any number of times; the hook takes any function of that
        // type, and `fill_random` lives as long as the program.
        unsafe {
            init();
            hook(Some(fill_random));
        }
        // SAFETY: both return pointers to string literals of the library.
        let (version, aes) = unsafe {
            let aes: Text = symbol(&library, "lanework_peer_aes")?;
            (text(version()), text(aes()))
        };
        if version != expected {
            return Err(format!("{} says it is version {version}, its card {expected}", path.display()));
        }
        let sets = mayo
            .iter()
            .map(|fact| Set::find(&library, fact, true))
            .chain(others.iter().map(|fact| Set::find(&library, fact, false)))
            .collect::<Result<_, _>>()?;
        Ok(Self { sets, aes, _library: library })
    }

    /// The AES code that runs on this CPU.
    pub(crate) fn aes(&self) -> &str {
        &self.aes
    }

    /// The code of set `index` that runs on this CPU.
    pub(crate) fn code(&self, index: usize) -> &str {
        &self.sets[index].code
    }

    /// The sizes of set `index`.
    pub(crate) fn sizes(&self, index: usize) -> Sizes {
        self.sets[index].sizes
    }

    /// Makes a key pair; the slices must have the set's sizes, which is asserted.
    pub(crate) fn keypair(&self, index: usize, public_key: &mut [u8], secret_key: &mut [u8]) -> c_int {
        let set = &self.sets[index];
        assert_eq!((public_key.len(), secret_key.len()), (set.sizes.public_key, set.sizes.secret_key));
        // SAFETY: both are valid for writing as many bytes as the library said it writes.
        let status = unsafe { (set.keypair)(public_key.as_mut_ptr(), secret_key.as_mut_ptr()) };
        random::resume_panic();
        status
    }

    /// Signs; the slices must have the set's sizes, which is asserted. Returns status and length.
    pub(crate) fn sign(
        &self,
        index: usize,
        signature: &mut [u8],
        message: &[u8],
        secret_key: &[u8],
    ) -> (c_int, usize) {
        let set = &self.sets[index];
        assert_eq!((signature.len(), secret_key.len()), (set.sizes.signature, set.sizes.secret_key));
        let mut written = 0;
        // SAFETY: the signature is valid for writing as many bytes as the library said it writes at
        // most, the secret key for reading as many as it said it has, the message for its length.
        let status = unsafe {
            (set.sign)(
                signature.as_mut_ptr(),
                &mut written,
                message.as_ptr(),
                message.len(),
                secret_key.as_ptr(),
            )
        };
        random::resume_panic();
        (status, written.min(signature.len()))
    }

    /// Verifies; signature and key must have the set's sizes, which is asserted.
    pub(crate) fn verify(&self, index: usize, message: &[u8], signature: &[u8], public_key: &[u8]) -> c_int {
        let set = &self.sets[index];
        assert_eq!((signature.len(), public_key.len()), (set.sizes.signature, set.sizes.public_key));
        // SAFETY: all three are valid for reading: the message and the signature for the lengths passed,
        // the public key for as many bytes as the library said it has.
        unsafe {
            (set.verify)(
                message.as_ptr(),
                message.len(),
                signature.as_ptr(),
                signature.len(),
                public_key.as_ptr(),
            )
        }
    }

    /// Expands a public key; the sizes must be the set's, which is asserted. `None` if not offered.
    pub(crate) fn expand(&self, index: usize, public_key: &[u8], out: &mut ExpandedKey) -> Option<c_int> {
        let set = &self.sets[index];
        let expand = set.expand?;
        assert_eq!((public_key.len(), Some(out.len())), (set.sizes.public_key, set.sizes.expanded_key));
        // SAFETY: the key is readable for its size; the output is on a 64-byte boundary and writable for
        // as many bytes as the library said an expanded key has.
        Some(unsafe { expand(public_key.as_ptr(), out.as_mut_ptr()) })
    }
}

impl Set {
    fn find(library: &libloading::Library, facts: &SetFacts, exposed: bool) -> Result<Self, String> {
        let name = facts.symbol;
        // SAFETY: the types are those of liboqs' `sig.h` and of `sig_mayo.h` and its like, and of our own added file.
        unsafe {
            let new: NewSignature = symbol(library, "OQS_SIG_new")?;
            let free: FreeSignature = symbol(library, "OQS_SIG_free")?;
            let code = match exposed {
                true => text(symbol::<Text>(library, &format!("lanework_peer_code_{name}"))?()),
                false => String::new(),
            };
            let expanded: Option<Size> = symbol(library, &format!("lanework_peer_expanded_{name}")).ok();
            let method = CString::new(facts.method).map_err(|e| e.to_string())?;
            let head = new(method.as_ptr());
            if head.is_null() {
                return Err(format!("the library was built without {}", facts.method));
            }
            let sizes = Sizes {
                public_key: (*head).public_key,
                secret_key: (*head).secret_key,
                signature: (*head).signature,
                expanded_key: expanded.map(|size| size()),
            };
            free(head);
            Ok(Self {
                keypair: symbol(library, &format!("OQS_SIG_{name}_keypair"))?,
                sign: symbol(library, &format!("OQS_SIG_{name}_sign"))?,
                verify: symbol(library, &format!("OQS_SIG_{name}_verify"))?,
                expand: symbol(library, &format!("lanework_peer_expand_{name}")).ok(),
                sizes,
                code,
            })
        }
    }
}
