//! KExp15 and KImp15 over Magma: keys wrapped for transport (RFC 9189, 8.2.1; R 1323565.1.017-2018).
//!
//! SExp = CTR(K_ENC, IV, S | OMAC(K_MAC, IV | S)). The two keys must be independent. An IV of 4 bytes must never repeat
//! under one pair of keys; random IVs repeat after some 2^16 wraps.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;

use zeroize::Zeroizing;

use crate::backend::Engine;
use crate::error::Error;
use crate::key::{Keyed, Magma};
use crate::modes::{Ctr, Omac, Stream};
use crate::release::equal;

/// Bytes of an IV.
pub const IV: usize = 4;

/// Bytes by which a wrapped secret is longer.
pub const OVERHEAD: usize = 8;

/// The longest secret, far above any key. CTR's counters would allow 2^35 bytes.
pub const LONGEST: usize = 1 << 20;

/// The two keys of KExp15. Wiped when dropped.
#[derive(Clone)]
pub struct Kexp15 {
    mac: Magma,
    encrypt: Magma,
}

impl Kexp15 {
    /// The keys K_Exp_MAC and K_Exp_ENC on a chosen backend.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the two keys are the same.
    pub fn new(mac: &[u8; 32], encrypt: &[u8; 32], engine: Engine) -> Result<Kexp15, Error> {
        if equal(mac, encrypt) {
            return Err(Error::Parameter("KExp15 takes two independent keys, but they are the same"));
        }
        Ok(Kexp15 { mac: Magma::with(mac, engine), encrypt: Magma::with(encrypt, engine) })
    }

    /// KExp15: wraps a secret under an IV of 4 bytes, new for this pair of keys.
    ///
    /// # Errors
    /// [`Error::NonceLength`]; [`Error::Parameter`] for an empty secret; [`Error::TooLong`] above [`LONGEST`];
    /// [`Error::KeyExhausted`].
    pub fn wrap(&self, iv: &[u8], secret: &[u8]) -> Result<Vec<u8>, Error> {
        let mut ctr = Ctr::with_key(&self.encrypt, iv)?;
        if secret.is_empty() {
            return Err(Error::Parameter("there is no secret to wrap"));
        }
        if secret.len() > LONGEST {
            return Err(Error::TooLong { limit: LONGEST as u64 });
        }
        let mut out = Zeroizing::new(Vec::with_capacity(secret.len() + OVERHEAD));
        out.extend_from_slice(secret);
        out.extend_from_slice(check(&self.mac, iv, secret)?.finish().as_ref());
        ctr.apply(&mut out)?;
        Ok(core::mem::take(&mut *out))
    }

    /// KImp15: the secret, if it was wrapped under these keys and this IV. Both keys are charged whether or not it is
    /// authentic, because the check is encrypted. So a sender of forgeries can use the keys up. Refusals count as well
    /// ([`crate::limits`]).
    ///
    /// # Errors
    /// [`Error::NonceLength`]; [`Error::TooLong`]; [`Error::KeyExhausted`]; [`Error::TooManyRefused`];
    /// [`Error::Refused`] for all other faults.
    pub fn unwrap(&self, iv: &[u8], wrapped: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut ctr = Ctr::with_key(&self.encrypt, iv)?;
        if wrapped.len() <= OVERHEAD {
            return Err(Error::Refused);
        }
        if wrapped.len() > LONGEST + OVERHEAD {
            return Err(Error::TooLong { limit: (LONGEST + OVERHEAD) as u64 });
        }
        let mut out = Zeroizing::new(wrapped.to_vec());
        ctr.apply(&mut out)?;
        let (secret, mac) = out.split_at(wrapped.len() - OVERHEAD);
        check(&self.mac, iv, secret)?.verify(mac)?;
        // The check's bytes stay beyond the vector's end, and are wiped with its whole capacity.
        out.truncate(wrapped.len() - OVERHEAD);
        Ok(out)
    }
}

impl fmt::Debug for Kexp15 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kexp15").field("backend", &self.mac.backend()).finish_non_exhaustive()
    }
}

/// OMAC of IV | S, a whole block.
fn check<'k>(key: &'k Magma, iv: &[u8], secret: &[u8]) -> Result<Omac<&'k Magma>, Error> {
    let mut omac = Omac::with_key(key, OVERHEAD)?;
    omac.update(iv)?;
    omac.update(secret)?;
    Ok(omac)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::internals::known::keys::WRAPPED;
    use crate::internals::known::modes::engines;
    use crate::internals::known::{array, bytes};

    #[test]
    fn known_keys_are_wrapped_and_unwrapped() {
        for engine in engines() {
            for w in WRAPPED {
                let keys = Kexp15::new(&array(w.mac), &array(w.encrypt), engine).expect("two keys");
                let wrapped = keys.wrap(&bytes(w.iv), &bytes(w.secret)).expect("a secret");
                assert_eq!(wrapped, bytes(w.wrapped), "{} {}", engine.name(), w.source);
                let secret = keys.unwrap(&bytes(w.iv), &wrapped).expect("its own check");
                assert_eq!(*secret, bytes(w.secret), "{} {}", engine.name(), w.source);
            }
        }
    }

    #[test]
    fn every_length_comes_back_and_every_changed_bit_is_refused() {
        let keys = Kexp15::new(&[1; 32], &[2; 32], Engine::best()).expect("two keys");
        for length in 1..=50u8 {
            let secret: Vec<u8> = (0..length).collect();
            let wrapped = keys.wrap(b"iv00", &secret).expect("a secret");
            assert_eq!(*keys.unwrap(b"iv00", &wrapped).expect("its own check"), secret);
            for bit in 0..8 * wrapped.len() {
                let mut bad = wrapped.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(keys.unwrap(b"iv00", &bad).err(), Some(Error::Refused), "{length} bit {bit}");
            }
            assert_eq!(keys.unwrap(b"iv01", &wrapped).err(), Some(Error::Refused));
            assert_eq!(keys.unwrap(b"iv00", &wrapped[..wrapped.len() - 1]).err(), Some(Error::Refused));
        }
    }

    #[test]
    fn misuse_has_its_errors() {
        assert!(matches!(Kexp15::new(&[1; 32], &[1; 32], Engine::best()), Err(Error::Parameter(_))));
        let keys = Kexp15::new(&[1; 32], &[2; 32], Engine::best()).expect("two keys");
        for got in [0, 3, 5, 8] {
            let wrong = Some(Error::NonceLength { got, want: "4" });
            assert_eq!(keys.wrap(&vec![0; got], b"secret").err(), wrong);
            assert_eq!(keys.unwrap(&vec![0; got], &[0; 40]).err(), wrong);
        }
        assert!(matches!(keys.wrap(&[0; 4], b""), Err(Error::Parameter(_))));
        assert_eq!(keys.wrap(&[0; 4], &vec![0; LONGEST + 1]).err(), Some(Error::TooLong { limit: 1 << 20 }));
        for length in 0..=8 {
            assert_eq!(keys.unwrap(&[0; 4], &vec![0; length]).err(), Some(Error::Refused));
        }
        let long = Some(Error::TooLong { limit: (1 << 20) + 8 });
        assert_eq!(keys.unwrap(&[0; 4], &vec![0; LONGEST + 9]).err(), long);
    }
}
