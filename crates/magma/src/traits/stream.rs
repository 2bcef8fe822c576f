//! `cipher`'s stream ciphers for CTR.
#![forbid(unsafe_code)]

use cipher::common::IvSizeUser;
use cipher::consts::{U4, U32};
use cipher::{
    Iv, Key, KeyIvInit, KeySizeUser, OverflowError, SeekNum, StreamCipher, StreamCipherError,
    StreamCipherSeek,
};
use inout::InOutBuf;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::key::Magma;
use crate::modes::{Ctr, MagmaKey, Stream};

impl KeySizeUser for Ctr<Magma> {
    type KeySize = U32;
}

impl IvSizeUser for Ctr<Magma> {
    type IvSize = U4;
}

/// On this machine's best backend.
impl KeyIvInit for Ctr<Magma> {
    fn new(key: &Key<Self>, iv: &Iv<Self>) -> Self {
        match Ctr::with_key(Magma::new(&key.0), iv) {
            Ok(ctr) => ctr,
            Err(_) => unreachable!("an IV of 4 bytes"),
        }
    }
}

/// Pieces that CTR's counter or the key's limits refuse give `StreamCipherError`. The unchecked methods continue beyond
/// both: the counter, and with it the keystream, then restarts at 0.
impl<K: MagmaKey> StreamCipher for Ctr<K> {
    fn check_remaining(&self, bytes: usize) -> Result<(), StreamCipherError> {
        self.would_take(bytes as u64).map_err(|_| StreamCipherError)
    }

    fn unchecked_apply_keystream_inout(&mut self, data: InOutBuf<'_, '_, u8>) {
        self.go_on(data);
    }

    fn unchecked_write_keystream(&mut self, out: &mut [u8]) {
        out.zeroize();
        self.go_on(out.into());
    }
}

/// Positions count bytes from the beginning of the message; 2^35 is the end.
impl<K: MagmaKey> StreamCipherSeek for Ctr<K> {
    fn try_current_pos<T: SeekNum>(&self) -> Result<T, OverflowError> {
        // `SeekNum` counts the current block as begun: byte 8 of a block means its end.
        let (whole, used) = (self.position() / 8, (self.position() % 8) as u8);
        if used == 0 { T::from_block_byte(whole, 8, 8) } else { T::from_block_byte(whole + 1, used, 8) }
    }

    fn try_seek<T: SeekNum>(&mut self, position: T) -> Result<(), StreamCipherError> {
        let (block, byte): (u64, u8) = position.into_block_byte(8)?;
        self.seek_byte(block, byte).map_err(|_| StreamCipherError)
    }
}

impl<K: MagmaKey + ZeroizeOnDrop> ZeroizeOnDrop for Ctr<K> {}
