//! Ed25519 of the system's OpenSSL, through its `EVP` interface.
#![forbid(unsafe_code)]

use crate::random;
use crate::sys::ed25519 as sys;

/// The peer's name.
pub const OPENSSL: &str = "openssl";
/// Bytes of a public key.
pub const PUBLIC_KEY_BYTES: usize = 32;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;

/// The version that OpenSSL gives itself.
///
/// # Errors
/// Why it cannot be used here.
pub fn version() -> Result<String, String> {
    sys::version()
}

/// A key pair, ready for use.
pub struct Ed25519(sys::Key);

impl Ed25519 {
    /// A key pair from [`crate::random`].
    ///
    /// # Errors
    /// Why OpenSSL cannot be used here.
    pub fn generate() -> Result<Ed25519, String> {
        let mut key = sys::Key::new(&seed())?;
        key.prepare()?;
        Ok(Ed25519(key))
    }

    /// A public key from [`crate::random`]: what key generation costs, without the contexts for later messages.
    ///
    /// # Errors
    /// As [`Ed25519::generate`].
    pub fn public_key() -> Result<[u8; PUBLIC_KEY_BYTES], String> {
        sys::Key::new(&seed())?.public().ok_or_else(|| "OpenSSL gives no public key".to_owned())
    }

    /// Signs.
    pub fn sign(&mut self, message: &[u8]) -> Option<[u8; SIGNATURE_BYTES]> {
        self.0.sign(message)
    }

    /// Whether a signature is valid.
    pub fn verify(&mut self, message: &[u8], signature: &[u8]) -> bool {
        self.0.verify(message, signature)
    }
}

fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    random::fill(&mut seed);
    seed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_of_rfc_8032() {
        if let Err(why) = version() {
            return eprintln!("SKIPPED {why}");
        }
        let bytes = |hex: &str| -> Vec<u8> {
            let digits: Vec<u8> = hex.chars().map(|c| c.to_digit(16).expect("a digit") as u8).collect();
            digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
        };
        let seed = bytes("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let mut key = sys::Key::new(seed.as_slice().try_into().expect("32 bytes")).expect("a key");
        key.prepare().expect("it is valid");
        let public = bytes("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        assert_eq!(key.public().expect("there").as_slice(), public);
        let signature = key.sign(b"").expect("signed");
        assert_eq!(signature[..4], bytes("e5564300"));
        assert!(key.verify(b"", &signature) && !key.verify(b"x", &signature));
    }
}
