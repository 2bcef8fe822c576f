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

    // The defaults of the two checked methods ask first and charge later. Two clones of a key could both pass in between.
    fn try_apply_keystream_inout(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), StreamCipherError> {
        self.process(data).map_err(|_| StreamCipherError)
    }

    fn try_write_keystream(&mut self, out: &mut [u8]) -> Result<(), StreamCipherError> {
        self.write(out).map_err(|_| StreamCipherError)
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

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;
    use crate::key::{Core, Keyed, Sealed};
    use crate::limits::Limits;

    /// A key with a clone on another thread, which asks for all bytes while this key is in use for the `turn`-th time.
    struct Contended<'a> {
        key: Magma,
        turn: u32,
        looks: Cell<u32>,
        /// Whether the clone got its bytes.
        taken: &'a Cell<bool>,
    }

    impl Sealed for Contended<'_> {
        fn core(&self) -> &Core {
            if self.looks.replace(self.looks.get() + 1) == self.turn {
                let bytes = self.key.limits().bytes();
                self.taken.set(self.key.core().budget.spend(bytes).is_ok());
            }
            self.key.core()
        }
    }
    impl Keyed for Contended<'_> {}
    impl MagmaKey for Contended<'_> {}

    #[test]
    fn two_threads_never_get_the_same_bytes() {
        type Method = fn(&mut Ctr<Contended<'_>>, &mut [u8; 24]) -> Result<(), StreamCipherError>;
        let methods: [Method; 4] = [
            |ctr, data| ctr.try_apply_keystream(data),
            |ctr, data| ctr.try_apply_keystream_inout(data.as_mut_slice().into()),
            |ctr, data| ctr.try_apply_keystream_b2b(&data.clone(), data),
            |ctr, data| ctr.try_write_keystream(data),
        ];
        for method in methods {
            let mut winners = [0; 2];
            for turn in 0..8 {
                let key = Magma::new(&[7; 32]).with_limits(Limits::Custom { bytes: 24, section: 8 });
                let taken = Cell::new(false);
                let key = Contended { key, turn, looks: Cell::new(0), taken: &taken };
                let mut ctr = Ctr::with_key(key, &[0; 4]).expect("an IV");
                let mut data = [0x5a; 24];
                let done = method(&mut ctr, &mut data).is_ok();
                assert!(!(done && taken.get()), "both got the key's last bytes, turn {turn}");
                assert_eq!(done, data != [0x5a; 24], "output only if it was allowed");
                winners[usize::from(done)] += 1;
            }
            assert!(winners[0] > 0 && winners[1] > 0, "{winners:?}");
        }
    }
}
