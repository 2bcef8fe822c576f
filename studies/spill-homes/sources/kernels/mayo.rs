//! MAYO's portable kernels as functions that a C caller can reach: the crate's own modules beside this file.
#![allow(dead_code, missing_docs)]

extern crate alloc;
extern crate self as zeroize;

mod field;
mod library;
mod params;

/// What the modules take from elsewhere: blocks of memory.
mod sys {
    #[derive(Clone, Copy)]
    #[repr(C, align(64))]
    pub struct Block(pub [u8; 64]);

    impl Block {
        pub const ZERO: Block = Block([0; 64]);
    }

    pub fn bytes(blocks: &[Block]) -> &[u8] {
        // SAFETY: a block is 64 bytes and has no padding.
        unsafe { core::slice::from_raw_parts(blocks.as_ptr().cast(), blocks.len() * 64) }
    }

    pub fn bytes_mut(blocks: &mut [Block]) -> &mut [u8] {
        // SAFETY: as above, and all values are valid.
        unsafe { core::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), blocks.len() * 64) }
    }
}

/// And wiping, which is a plain fill here.
pub trait Zeroize {
    fn zeroize(&mut self);
}

impl<T: Copy + Default> Zeroize for [T] {
    fn zeroize(&mut self) {
        self.fill(T::default());
        core::hint::black_box(self);
    }
}

mod backend {
    mod sponge;

    use crate::params::Sizes;

    /// Bytes behind a kernel's input that it may read.
    pub(crate) const SLACK: usize = 128;

    pub(crate) struct SetKernels;

    impl SetKernels {
        pub(crate) const fn stride(sizes: &Sizes) -> usize {
            sizes.m_bytes().next_multiple_of(64)
        }
    }

    /// A parameter set as a type.
    pub(crate) trait SetSpec {
        const SIZES: &'static Sizes;
    }

    mod portable {
        mod eliminate;
        mod expand;
        mod products;
        mod whip;
        mod words;

        use super::SetSpec;
        use crate::params::{Params, Round, Set, Sizes};
        use crate::sys::{Block, bytes_mut};

        struct Mayo1;

        impl SetSpec for Mayo1 {
            const SIZES: &'static Sizes = Params::of(Round::Three, Set::Mayo1).sizes();
        }

        const P: &Sizes = Mayo1::SIZES;
        const NW: usize = P.m_bytes().div_ceil(8);
        const STRIDE: usize = P.m_bytes().next_multiple_of(64) / 64;
        const COLUMNS: usize = P.k * P.o;
        const ROOM: usize = eliminate::scratch_blocks(P);

        /// Aligned copies of a C caller's bytes.
        #[inline(always)]
        fn blocks<const N: usize>(from: &[[u8; 64]; N]) -> [Block; N] {
            from.map(Block)
        }

        /// The linear system of one signature: as many bytes as [`COLUMNS`], [`Sizes::pairs`] and m say.
        #[unsafe(no_mangle)]
        pub extern "C" fn spill_mayo_solve(
            x: &mut [u8; COLUMNS + 1],
            m: &[[u8; 64]; COLUMNS * STRIDE],
            u: &[[u8; 64]; P.pairs() * STRIDE],
            t: &[u8; P.m_bytes()],
            r: &[u8; COLUMNS],
        ) {
            let mut scratch = [Block::ZERO; ROOM];
            let (front, rank) = x.split_at_mut(COLUMNS);
            let nibbles = r.map(|r| r & 15);
            let full = eliminate::solve::<Mayo1, NW>(&blocks(m), &blocks(u), t, &nibbles, front, &mut scratch);
            rank[0] = u8::from(full);
            bytes_mut(&mut scratch).fill(0);
            core::hint::black_box(&mut scratch);
        }

        /// SHAKE256: 1,000 bytes of 1,000.
        #[unsafe(no_mangle)]
        pub extern "C" fn spill_mayo_shake256(out: &mut [u8; 1000], input: &[u8; 1000]) {
            expand::shake256(&[input], out);
        }
    }
}
