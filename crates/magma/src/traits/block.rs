//! `cipher`'s block ciphers.
//!
//! A call for many blocks goes to the kernel whole. Generic modes pass [`Parallel`] blocks at a time, a whole number of
//! every vector backend's batches.
#![forbid(unsafe_code)]

use core::fmt;

use cipher::common::AlgorithmName;
use cipher::consts::{U8, U32, U256};
use cipher::{
    Array, Block, BlockCipherDecBackend, BlockCipherDecClosure, BlockCipherDecrypt, BlockCipherEncBackend,
    BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, InOut, InOutBuf, Key, KeyInit, KeySizeUser,
    ParBlocks, ParBlocksSizeUser,
};
use inout::NotEqualError;
use zeroize::ZeroizeOnDrop;

use crate::key::{Core, Gost28147, Magma, Sealed};
use crate::sys::bytes;

/// Blocks that a backend takes at a time.
type Parallel = U256;

/// A key for encryption, as `cipher`'s backend.
struct Encrypt<'k>(&'k Core);

/// A key for decryption, as `cipher`'s backend.
struct Decrypt<'k>(&'k Core);

impl BlockSizeUser for Encrypt<'_> {
    type BlockSize = U8;
}

impl BlockSizeUser for Decrypt<'_> {
    type BlockSize = U8;
}

impl ParBlocksSizeUser for Encrypt<'_> {
    type ParBlocksSize = Parallel;
}

impl ParBlocksSizeUser for Decrypt<'_> {
    type ParBlocksSize = Parallel;
}

impl BlockCipherEncBackend for Encrypt<'_> {
    #[inline]
    fn encrypt_block(&self, block: InOut<'_, '_, Block<Self>>) {
        self.0.encrypt_blocks(block.into_buf());
    }

    #[inline]
    fn encrypt_par_blocks(&self, blocks: InOut<'_, '_, ParBlocks<Self>>) {
        self.0.encrypt_blocks(bytes(blocks.into_buf()));
    }

    #[inline]
    fn encrypt_tail_blocks(&self, blocks: InOutBuf<'_, '_, Block<Self>>) {
        self.0.encrypt_blocks(bytes(blocks));
    }
}

impl BlockCipherDecBackend for Decrypt<'_> {
    #[inline]
    fn decrypt_block(&self, block: InOut<'_, '_, Block<Self>>) {
        self.0.decrypt_blocks(block.into_buf());
    }

    #[inline]
    fn decrypt_par_blocks(&self, blocks: InOut<'_, '_, ParBlocks<Self>>) {
        self.0.decrypt_blocks(bytes(blocks.into_buf()));
    }

    #[inline]
    fn decrypt_tail_blocks(&self, blocks: InOutBuf<'_, '_, Block<Self>>) {
        self.0.decrypt_blocks(bytes(blocks));
    }
}

/// The same for both ciphers, which differ only in their schedules.
macro_rules! block_cipher {
    ($cipher:ty, $name:literal) => {
        impl BlockSizeUser for $cipher {
            type BlockSize = U8;
        }

        impl BlockCipherEncrypt for $cipher {
            fn encrypt_with_backend(&self, f: impl BlockCipherEncClosure<BlockSize = U8>) {
                f.call(&Encrypt(self.core()));
            }

            fn encrypt_blocks_inout(&self, blocks: InOutBuf<'_, '_, Array<u8, U8>>) {
                self.core().encrypt_blocks(bytes(blocks));
            }

            fn encrypt_blocks(&self, blocks: &mut [Array<u8, U8>]) {
                self.core().encrypt_blocks(bytes(blocks.into()));
            }

            fn encrypt_blocks_b2b(
                &self,
                input: &[Array<u8, U8>],
                output: &mut [Array<u8, U8>],
            ) -> Result<(), NotEqualError> {
                self.core().encrypt_blocks(bytes(InOutBuf::new(input, output)?));
                Ok(())
            }
        }

        impl BlockCipherDecrypt for $cipher {
            fn decrypt_with_backend(&self, f: impl BlockCipherDecClosure<BlockSize = U8>) {
                f.call(&Decrypt(self.core()));
            }

            fn decrypt_blocks_inout(&self, blocks: InOutBuf<'_, '_, Array<u8, U8>>) {
                self.core().decrypt_blocks(bytes(blocks));
            }

            fn decrypt_blocks(&self, blocks: &mut [Array<u8, U8>]) {
                self.core().decrypt_blocks(bytes(blocks.into()));
            }

            fn decrypt_blocks_b2b(
                &self,
                input: &[Array<u8, U8>],
                output: &mut [Array<u8, U8>],
            ) -> Result<(), NotEqualError> {
                self.core().decrypt_blocks(bytes(InOutBuf::new(input, output)?));
                Ok(())
            }
        }

        impl AlgorithmName for $cipher {
            fn write_alg_name(f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)
            }
        }

        // Both are a core, which wipes its words and schedules itself.
        impl ZeroizeOnDrop for $cipher {}
    };
}

block_cipher!(Magma, "Magma");
block_cipher!(Gost28147, "Gost28147");

impl KeySizeUser for Magma {
    type KeySize = U32;
}

/// On this machine's best backend.
impl KeyInit for Magma {
    fn new(key: &Key<Magma>) -> Magma {
        Magma::new(&key.0)
    }
}
