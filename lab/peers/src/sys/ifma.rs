//! The library that `cargo xtask peers` makes of chiavdf's assembly for AVX-512 IFMA.

use std::path::Path;
use std::sync::Arc;

use super::functions;
use crate::ifma::{Limbs, Radix52};

functions! {
    /// What its `asm_main.h` declares for operands of 512 and of 1,024 bits: a sign (0 or -1) or a signed number of limbs, then data.
    struct Table {
        asm_avx512_func_to_avx512_integer_9_12: fn(u64, *const u64, *mut u64) -> u64,
        asm_avx512_func_to_avx512_integer_17_21: fn(u64, *const u64, *mut u64) -> u64,
        asm_avx512_func_to_gmp_integer_12_9: fn(u64, *const u64, *mut u64) -> u64,
        asm_avx512_func_to_gmp_integer_21_17: fn(u64, *const u64, *mut u64) -> u64,
        asm_avx512_func_to_gmp_integer_41_33: fn(u64, *const u64, *mut u64) -> u64,
        asm_avx512_func_add_12_12_12: fn(u64, *const u64, u64, *const u64, *mut u64) -> u64,
        asm_avx512_func_add_21_21_21: fn(u64, *const u64, u64, *const u64, *mut u64) -> u64,
        asm_avx512_func_multiply_12_12_21: fn(u64, *const u64, u64, *const u64, *mut u64) -> u64,
        asm_avx512_func_multiply_21_21_41: fn(u64, *const u64, u64, *const u64, *mut u64) -> u64,
    }
}

type Convert = unsafe extern "C" fn(u64, *const u64, *mut u64) -> u64;
type Combine = unsafe extern "C" fn(u64, *const u64, u64, *const u64, *mut u64) -> u64;

/// The functions of one width. Each reads and writes whole vectors of its formats' arrays, at places that depend on no limb but those
/// of the operands, and nothing else.
#[derive(Clone)]
pub(crate) struct Functions {
    to: Convert,
    from: Convert,
    from_wide: Convert,
    add: Combine,
    mul: Combine,
    // Last, so that it is closed after everything that points into it is gone.
    _library: Arc<libloading::Library>,
}

impl Functions {
    /// Opens `path`, whose content the caller has compared with its card, on a CPU that has the instructions: the functions of 512 bits
    /// and of 1,024.
    pub(crate) fn open(path: &Path) -> Result<[Self; 2], String> {
        let path = std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()))?;
        // SAFETY: the file is the one that this project made of chiavdf's assembly; it has no initialisers. The types are those of its
        // header.
        let (library, table) = unsafe {
            let library = libloading::Library::new(&path)
                .map_err(|e| format!("the loader refuses {}: {}", path.display(), super::reason(&e)))?;
            let table = Table::load(&library)?;
            (Arc::new(library), table)
        };
        let small = Self {
            to: table.asm_avx512_func_to_avx512_integer_9_12,
            from: table.asm_avx512_func_to_gmp_integer_12_9,
            from_wide: table.asm_avx512_func_to_gmp_integer_21_17,
            add: table.asm_avx512_func_add_12_12_12,
            mul: table.asm_avx512_func_multiply_12_12_21,
            _library: Arc::clone(&library),
        };
        let large = Self {
            to: table.asm_avx512_func_to_avx512_integer_17_21,
            from: table.asm_avx512_func_to_gmp_integer_21_17,
            from_wide: table.asm_avx512_func_to_gmp_integer_41_33,
            add: table.asm_avx512_func_add_21_21_21,
            mul: table.asm_avx512_func_multiply_21_21_41,
            _library: library,
        };
        Ok([small, large])
    }

    #[inline]
    pub(crate) fn to(&self, x: &Limbs, out: &mut Radix52) {
        // SAFETY: both arrays have the length and alignment of the longest format that a function of the table takes, and room for the
        // vectors before and after; the CPU was checked when the library was opened. This holds for all calls below.
        out.sign = unsafe { (self.to)(x.size as u64, x.words.as_ptr(), out.data_mut()) };
    }

    #[inline]
    pub(crate) fn from(&self, x: &Radix52, out: &mut Limbs) {
        // SAFETY: as above.
        out.size = unsafe { (self.from)(x.sign, x.data(), out.words.as_mut_ptr()) } as i64;
    }

    #[inline]
    pub(crate) fn wide_from(&self, x: &Radix52, out: &mut Limbs) {
        // SAFETY: as above.
        out.size = unsafe { (self.from_wide)(x.sign, x.data(), out.words.as_mut_ptr()) } as i64;
    }

    #[inline]
    pub(crate) fn add(&self, x: &Radix52, y: &Radix52, out: &mut Radix52) {
        // SAFETY: as above; signs are 0 or -1, as every function returns them.
        out.sign = unsafe { (self.add)(x.sign, x.data(), y.sign, y.data(), out.data_mut()) };
    }

    #[inline]
    pub(crate) fn mul(&self, x: &Radix52, y: &Radix52, out: &mut Radix52) {
        // SAFETY: as above.
        out.sign = unsafe { (self.mul)(x.sign, x.data(), y.sign, y.data(), out.data_mut()) };
    }
}
