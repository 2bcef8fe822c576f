//! Many messages of GOST 28147-89 in CFB side by side, each with a key of its own that meshes (RFC 4357, 2.3.2).
#![forbid(unsafe_code)]

use lanework_magma::batch::{Batch, CfbJob};
use lanework_magma::modes::Stream;
use lanework_magma::modes::hazmat::{EcbDecryptor, EcbEncryptor};
use lanework_magma::{Engine, Error, Gost28147, Limits, Sbox};

/// Bytes between two keys.
const SECTION: usize = 1024;

/// What an old key decrypts into the next.
const C: [u8; 32] = [
    0x69, 0x00, 0x72, 0x22, 0x64, 0xc9, 0x04, 0x23, 0x8d, 0x3a, 0xdb, 0x96, 0x46, 0xe9, 0x2a, 0xc4, 0x18,
    0xfe, 0xac, 0x94, 0x00, 0xed, 0x07, 0x12, 0xc0, 0x86, 0xdc, 0xc2, 0xef, 0x4c, 0xa9, 0x2b,
];

/// The key of message number `i`.
#[must_use]
pub(crate) fn key(i: usize) -> [u8; 32] {
    let mut key = [0; 32];
    super::fill(&mut key, 1000 + i as u64);
    key
}

/// Its initialisation vector.
#[must_use]
pub(crate) fn iv(i: usize) -> [u8; 8] {
    let mut iv = [0; 8];
    super::fill(&mut iv, 5000 + i as u64);
    iv
}

/// Messages of one length, all different.
#[must_use]
pub(crate) fn data(messages: usize, bytes: usize) -> Vec<Vec<u8>> {
    (0..messages)
        .map(|i| {
            let mut message = vec![0; bytes];
            super::fill(&mut message, 9000 + i as u64);
            message
        })
        .collect()
}

/// The messages' states.
pub(crate) struct Many {
    engine: Engine,
    keys: Vec<Gost28147>,
    ivs: Vec<[u8; 8]>,
    /// Bytes that each has processed under its present key.
    used: usize,
}

impl Many {
    /// This many messages on a backend.
    #[must_use]
    pub(crate) fn new(engine: Engine, messages: usize) -> Many {
        let keys = (0..messages).map(|i| under(&key(i), engine)).collect();
        Many { engine, keys, ivs: (0..messages).map(iv).collect(), used: 0 }
    }

    fn mesh(&mut self) -> Result<(), Error> {
        for (key, iv) in self.keys.iter_mut().zip(&mut self.ivs) {
            let mut next = C;
            EcbDecryptor::with_key(&*key).apply(&mut next)?;
            *key = under(&next, self.engine);
            EcbEncryptor::with_key(&*key).apply(iv)?;
        }
        self.used = 0;
        Ok(())
    }

    /// Encrypts the next bytes of every message in place: whole blocks, of one length.
    ///
    /// # Errors
    /// [`Error::Lengths`], [`Error::Unaligned`]; what a batch gives for a job; [`Error::Threads`].
    pub(crate) fn apply(&mut self, data: &mut [Vec<u8>]) -> Result<(), Error> {
        let bytes = data.first().map_or(0, Vec::len);
        if let Some(other) = data.iter().find(|d| d.len() != bytes) {
            return Err(Error::Lengths { input: bytes, output: other.len() });
        }
        if !bytes.is_multiple_of(8) {
            return Err(Error::Unaligned(bytes));
        }
        let mut at = 0;
        while at < bytes {
            if self.used == SECTION {
                self.mesh()?;
            }
            let n = (bytes - at).min(SECTION - self.used);
            let mut jobs: Vec<_> = self
                .keys
                .iter()
                .zip(&self.ivs)
                .zip(&mut *data)
                .map(|((key, iv), data)| CfbJob { key, iv, data: &mut data[at..at + n] })
                .collect();
            Batch::new(self.engine).cfb_encrypt(&mut jobs)?.into_iter().collect::<Result<(), _>>()?;
            for (iv, data) in self.ivs.iter_mut().zip(&*data) {
                iv.copy_from_slice(&data[at + n - 8..at + n]);
            }
            at += n;
            self.used += n;
        }
        Ok(())
    }
}

fn under(key: &[u8; 32], engine: Engine) -> Gost28147 {
    Gost28147::with(key, Sbox::Z, engine).with_limits(Limits::Unlimited)
}
