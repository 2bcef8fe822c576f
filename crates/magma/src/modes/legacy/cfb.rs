//! CFB with key meshing, RFC 5830, 7 and RFC 4357, 2.3.2. Without meshing it is the CFB of [`crate::modes`].
#![forbid(unsafe_code)]

use inout::InOutBuf;

use super::Meshing;
use super::meshing::Meshed;
use crate::error::Error;
use crate::key::{Core, Gost28147};
use crate::modes::{Stream, cfb};

#[derive(Clone)]
struct State {
    key: Meshed,
    register: cfb::Register,
}

impl State {
    fn new(key: &Gost28147, iv: &[u8], meshing: Meshing) -> Result<State, Error> {
        if iv.len() != 8 {
            return Err(Error::NonceLength { got: iv.len(), want: "8" });
        }
        Ok(State { key: Meshed::new(key, meshing), register: cfb::Register::new(iv)? })
    }

    fn process(
        &mut self,
        mut data: InOutBuf<'_, '_, u8>,
        step: impl Fn(&mut cfb::Register, &Core, InOutBuf<'_, '_, u8>),
    ) -> Result<(), Error> {
        self.key.admit(self.register.at(), data.len())?;
        while !data.is_empty() {
            if self.key.due() {
                self.key.change(self.register.ended().and_then(|iv| iv.try_into().ok()));
            }
            let n = self.key.reach(data.len());
            let (now, rest) = data.split_at(n);
            step(&mut self.register, &self.key.core, now);
            self.key.count(n);
            data = rest;
        }
        Ok(())
    }
}

/// GOST 28147-89 CFB encryption. Serial. Errors as for [`super::Cnt`].
#[derive(Clone)]
pub struct CfbEncryptor(State);

impl CfbEncryptor {
    /// A message under a key and an IV of 8 bytes.
    ///
    /// # Errors
    /// [`Error::NonceLength`].
    pub fn with_key(key: &Gost28147, iv: &[u8], meshing: Meshing) -> Result<CfbEncryptor, Error> {
        Ok(CfbEncryptor(State::new(key, iv, meshing)?))
    }
}

impl Stream for CfbEncryptor {
    fn process(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        self.0.process(data, cfb::Register::encrypt)
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        self.0.key.would_take(self.0.register.at(), bytes)
    }
}

/// GOST 28147-89 CFB decryption. Runs in parallel, under one key at a time. Errors as for [`super::Cnt`].
#[derive(Clone)]
pub struct CfbDecryptor(State);

impl CfbDecryptor {
    /// A message under a key and an IV of 8 bytes.
    ///
    /// # Errors
    /// [`Error::NonceLength`].
    pub fn with_key(key: &Gost28147, iv: &[u8], meshing: Meshing) -> Result<CfbDecryptor, Error> {
        Ok(CfbDecryptor(State::new(key, iv, meshing)?))
    }
}

impl Stream for CfbDecryptor {
    fn process(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        self.0.process(data, cfb::Register::decrypt)
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        self.0.key.would_take(self.0.register.at(), bytes)
    }
}
