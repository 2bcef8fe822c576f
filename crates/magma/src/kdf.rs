//! Keys from keys and from passphrases: the derivation functions of RFC 7836 over HMAC with Streebog (GOST R
//! 34.11-2012), and PBKDF2 with the same hash (RFC 9337).
//!
//! The `streebog` package looks bytes up in tables. So, unlike the rest of this crate, derivations leak through the cache
//! which table entries were read.
#![forbid(unsafe_code)]

use hmac::{Hmac, KeyInit, Mac};
use lanework_cpu::memory::wipe_stack_and_registers;
use streebog::{Streebog256, Streebog512};
use zeroize::Zeroizing;

use crate::error::Error;

/// Bytes of the stack below a caller of `hmac` and `pbkdf2`, where they leave copies of keys and of their pads. In the tests' build
/// PBKDF2 uses 3,168; `tests/wiping.rs` looks for the remains.
const STACK: usize = 8192;

/// HMAC_GOSTR3411_2012_256 under a key. Wiped when dropped.
#[derive(Clone)]
pub(crate) struct Prf(Hmac<Streebog256>);

impl Prf {
    /// A key of any length.
    pub(crate) fn new(key: &[u8]) -> Prf {
        let prf = Prf::keyed(key);
        wipe_stack_and_registers::<STACK>();
        prf
    }

    #[inline(never)]
    fn keyed(key: &[u8]) -> Prf {
        match Hmac::new_from_slice(key) {
            Ok(hmac) => Prf(hmac),
            Err(_) => unreachable!("HMAC takes keys of any length"),
        }
    }

    /// HMAC of the parts one after another.
    fn mac(&self, parts: &[&[u8]]) -> Zeroizing<[u8; 32]> {
        let mut out = Zeroizing::new([0; 32]);
        self.mac_to(parts, &mut out);
        wipe_stack_and_registers::<STACK>();
        out
    }

    #[inline(never)]
    fn mac_to(&self, parts: &[&[u8]], out: &mut [u8; 32]) {
        let mut hmac = self.0.clone();
        parts.iter().for_each(|part| hmac.update(part));
        out.copy_from_slice(&hmac.finalize().into_bytes());
    }

    /// KDF_GOSTR3411_2012_256 (RFC 7836, 4.5).
    pub(crate) fn derive(&self, label: &[u8], seed: &[u8]) -> Zeroizing<[u8; 32]> {
        self.mac(&[&[1], label, &[0], seed, &[1, 0]])
    }
}

/// KDF_GOSTR3411_2012_256 (RFC 7836, 4.5): a key of 32 bytes from a key of any length, a label and a seed.
///
/// The protocol should fix the lengths of label and seed: with a variable length, a zero byte in a label makes two
/// inputs the same.
#[must_use]
pub fn kdf(key: &[u8], label: &[u8], seed: &[u8]) -> Zeroizing<[u8; 32]> {
    Prf::new(key).derive(label, seed)
}

/// KDF_TREE_GOSTR3411_2012_256 (RFC 7836, 4.4): fills `out` with keying material from `key`. `width` is R, the bytes of
/// the iteration counter.
///
/// # Errors
/// [`Error::Parameter`] if `width` is not 1 to 4, or `out` is empty or longer than 32 * (2^(8R) - 1) bytes.
pub fn kdf_tree(key: &[u8], label: &[u8], seed: &[u8], width: usize, out: &mut [u8]) -> Result<(), Error> {
    if !(1..=4).contains(&width) {
        return Err(Error::Parameter("KDF_TREE's counter has 1 to 4 bytes"));
    }
    let iterations = out.len().div_ceil(32) as u64;
    if iterations == 0 || iterations >= 1 << (8 * width) {
        return Err(Error::Parameter("KDF_TREE makes 1 to 32 * (2^(8R) - 1) bytes"));
    }
    let prf = Prf::new(key);
    let bits = (out.len() as u64 * 8).to_be_bytes();
    let bits = &bits[bits.iter().take_while(|&&byte| byte == 0).count()..];
    for (i, out) in out.chunks_mut(32).enumerate() {
        let counter = (i as u32 + 1).to_be_bytes();
        let key = prf.mac(&[&counter[4 - width..], label, &[0], seed, bits]);
        out.copy_from_slice(&key[..out.len()]);
    }
    Ok(())
}

/// The fewest iterations of PBKDF2 that RFC 9337, 7.1, allows.
pub const FEWEST_ITERATIONS: u32 = 1000;

/// PBKDF2 with HMAC_GOSTR3411_2012_512 (RFC 9337, 4): fills `out` with key material from a passphrase.
///
/// The salt makes equal passphrases differ. RFC 9337 recommends 32 random bytes.
///
/// # Errors
/// [`Error::Parameter`] if there are fewer than [`FEWEST_ITERATIONS`], if the salt has fewer than 8 bytes, or if `out`
/// is empty.
pub fn pbkdf2(passphrase: &[u8], salt: &[u8], iterations: u32, out: &mut [u8]) -> Result<(), Error> {
    if iterations < FEWEST_ITERATIONS {
        return Err(Error::Parameter("PBKDF2 takes at least 1000 iterations"));
    }
    if salt.len() < 8 {
        return Err(Error::Parameter("PBKDF2's salt has at least 8 bytes"));
    }
    if out.is_empty() {
        return Err(Error::Parameter("PBKDF2 makes at least one byte"));
    }
    stretch(passphrase, salt, iterations, out);
    Ok(())
}

/// [`pbkdf2`] without limits on its parameters, for known answers.
pub(crate) fn stretch(passphrase: &[u8], salt: &[u8], iterations: u32, out: &mut [u8]) {
    stretched(passphrase, salt, iterations, out);
    wipe_stack_and_registers::<STACK>();
}

#[inline(never)]
fn stretched(passphrase: &[u8], salt: &[u8], iterations: u32, out: &mut [u8]) {
    pbkdf2::pbkdf2_hmac::<Streebog512>(passphrase, salt, iterations, out);
}

#[cfg(test)]
mod tests {
    use zeroize::ZeroizeOnDrop;

    use super::*;
    use crate::internals::known::keys::{PBKDF2, TREE};
    use crate::internals::known::{array, bytes};

    #[test]
    fn rfc_7836_appendix_b() {
        let (key, label, seed) = (bytes(TREE.key), bytes(TREE.label), bytes(TREE.seed));
        assert_eq!(*kdf(&key, &label, &seed), array(TREE.one));
        let mut two = [0; 64];
        kdf_tree(&key, &label, &seed, 1, &mut two).expect("allowed");
        assert_eq!(two, array(TREE.two));
        // One key of the tree, with a counter of one byte, is the plain function.
        let mut one = [0; 32];
        kdf_tree(&key, &label, &seed, 1, &mut one).expect("allowed");
        assert_eq!(one, array(TREE.one));
    }

    #[test]
    fn trees_follow_the_definition_word_for_word() {
        for width in 1..=4usize {
            for length in [1, 31, 32, 33, 100, 8160] {
                let mut out = vec![0; length];
                kdf_tree(b"key", b"label", b"seed", width, &mut out).expect("allowed");
                let bits = 8 * length;
                let bits = if bits < 256 { vec![bits as u8] } else { vec![(bits >> 8) as u8, bits as u8] };
                for (i, part) in out.chunks(32).enumerate() {
                    let mut input = vec![0; width - 1];
                    input.push(i as u8 + 1);
                    input.extend(b"label\0seed");
                    input.extend(&bits);
                    let mut hmac = Hmac::<Streebog256>::new_from_slice(b"key").expect("any length");
                    hmac.update(&input);
                    assert_eq!(
                        part,
                        &hmac.finalize().into_bytes()[..part.len()],
                        "R {width}, L {length}, {i}"
                    );
                }
            }
        }
    }

    #[test]
    fn limits_of_the_tree() {
        let limit = |width, length: usize| kdf_tree(b"", b"", b"", width, &mut vec![0; length]).is_err();
        assert!(limit(0, 32) && limit(5, 32) && limit(1, 0) && limit(1, 32 * 255 + 1));
        assert!(!limit(1, 32 * 255) && !limit(2, 32 * 255 + 1));
    }

    #[test]
    fn rfc_9337_appendix_a() {
        for answer in PBKDF2 {
            let mut out = vec![0; answer.key.len() / 2];
            let (passphrase, salt) = (bytes(answer.passphrase), bytes(answer.salt));
            stretch(&passphrase, &salt, answer.iterations, &mut out);
            assert_eq!(out, bytes(answer.key), "{}", answer.source);
            let mut again = vec![0; out.len()];
            let allowed = pbkdf2(&passphrase, &salt, answer.iterations, &mut again);
            assert_eq!(allowed.is_ok(), salt.len() >= 8 && answer.iterations >= 1000);
            assert!(allowed.is_err() || again == out);
        }
    }

    #[test]
    fn a_weak_passphrase_key_is_refused() {
        let mut out = [0; 32];
        assert!(pbkdf2(b"p", &[0; 8], 999, &mut out).is_err());
        assert!(pbkdf2(b"p", &[0; 7], 1000, &mut out).is_err());
        assert!(pbkdf2(b"p", &[0; 8], 1000, &mut []).is_err());
        assert_eq!(out, [0; 32]);
        assert!(pbkdf2(b"p", &[0; 8], 1000, &mut out).is_ok());
    }

    #[test]
    fn hash_states_are_wiped() {
        fn wiped<T: ZeroizeOnDrop>() {}
        // An HMAC is two of these and a buffer that is wiped too, but does not carry the mark itself.
        wiped::<Streebog256>();
        wiped::<Streebog512>();
        wiped::<Zeroizing<[u8; 32]>>();
    }
}
