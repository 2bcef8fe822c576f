//! Magma's portable kernels as functions that a C caller can reach: the crate's own modules beside this file.
#![allow(dead_code, missing_docs)]

extern crate alloc;
extern crate self as lanework_cpu;
extern crate self as zeroize;

mod library;
mod sbox;
mod schedule;

/// What the modules take from other crates: wiping, which is a plain fill here. Vector registers are left to the caller.
pub mod memory {
    pub fn wipe(memory: &mut [u8]) {
        memory.fill(0);
        core::hint::black_box(memory);
    }

    pub fn wipe_vector_registers() {}
}

/// As above.
pub trait Zeroize {
    fn zeroize(&mut self);
}

impl Zeroize for [u32] {
    fn zeroize(&mut self) {
        self.fill(0);
        core::hint::black_box(self);
    }
}

mod backend {
    mod portable {
        mod circuits;
        mod plane;
        mod rounds;
        mod words;

        use crate::sbox::Sbox;
        use crate::schedule::{ByteOrder, Schedule};

        /// 32 blocks, one after another.
        #[unsafe(no_mangle)]
        pub extern "C" fn spill_magma_words(out: &mut [[u8; 8]; 32], input: &[[u8; 8]; 32], key: &[u8; 32]) {
            let s = Schedule::encrypt(&ByteOrder::Big.words(key), Sbox::Z, ByteOrder::Big);
            for (out, input) in out.iter_mut().zip(input) {
                *out = s.order.block(words::one(&s, s.order.number(*input)));
            }
        }

        /// 128 blocks as bit planes.
        #[unsafe(no_mangle)]
        pub extern "C" fn spill_magma_planes(out: &mut plane::Bytes, input: &plane::Bytes, key: &[u8; 32]) {
            let s = Schedule::encrypt(&ByteOrder::Big.words(key), Sbox::Z, ByteOrder::Big);
            let mut room = rounds::Room::new();
            let masks = room.fill::<circuits::Z>(&s);
            let mut planes = [[plane::Plane::ZERO; 32]; 2];
            plane::to_planes(input, s.order, &mut planes);
            rounds::rounds::<circuits::Z>(&mut planes, masks);
            plane::to_blocks(&mut planes, s.order, out);
            rounds::wipe_planes(&mut planes);
        }
    }
}
