//! One block at a time by tables: two S-boxes and the rotation by 11 in each of four tables of 256 words, as every
//! Magma in use has them. **It leaks**: which of the 64 cache lines are touched depends on the key and the block.

use lanework_magma::Sbox;

use super::Schedule;

/// Byte i of a word to what it contributes to t, rotated by 11.
static TABLES: [[u32; 256]; 4] = {
    let rows = Sbox::Z.rows();
    let mut tables = [[0; 256]; 4];
    let mut i = 0;
    while i < 4 {
        let mut x = 0;
        while x < 256 {
            let both = rows[2 * i][x & 15] | rows[2 * i + 1][x >> 4] << 4;
            tables[i][x] = ((both as u32) << (8 * i)).rotate_left(11);
            x += 1;
        }
        i += 1;
    }
    tables
};

#[inline(always)]
fn f_inlined(x: u32) -> u32 {
    let x = x.to_le_bytes();
    (0..4).fold(0, |y, i| y ^ TABLES[i][usize::from(x[i])])
}

/// As a C compiler that does not inline would call it.
#[inline(never)]
extern "C" fn f_called(x: u32) -> u32 {
    f_inlined(x)
}

#[inline(never)]
extern "C" fn round_called(left: u32, right: u32, key: u32) -> u32 {
    left ^ f_called(right.wrapping_add(key))
}

/// f on eight words. CALLS: functions are called, not inlined.
///
/// # Safety
/// None; the type is that of the vector variants.
pub(crate) unsafe fn f<const CALLS: bool>(words: &[u32; 8]) -> [u32; 8] {
    words.map(if CALLS { |x| f_called(x) } else { f_inlined })
}

/// Encrypts `n` Magma blocks. CALLS: functions are called, not inlined.
///
/// # Safety
/// `input`: 8n readable bytes; `output`: 8n writable bytes; the same address or disjoint; any alignment.
pub(crate) unsafe fn blocks<const CALLS: bool>(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
    for i in 0..n {
        // SAFETY: i < n blocks are readable.
        let number = u64::from_be_bytes(unsafe { input.add(8 * i).cast::<[u8; 8]>().read() });
        let (mut a1, mut a0) = ((number >> 32) as u32, number as u32);
        for key in s.0.chunks_exact(2) {
            if CALLS {
                a1 = round_called(a1, a0, key[0]);
                a0 = round_called(a0, a1, key[1]);
            } else {
                a1 ^= f_inlined(a0.wrapping_add(key[0]));
                a0 ^= f_inlined(a1.wrapping_add(key[1]));
            }
        }
        let number = u64::from(a0) << 32 | u64::from(a1);
        // SAFETY: i < n blocks are writable.
        unsafe { output.add(8 * i).cast::<[u8; 8]>().write(number.to_be_bytes()) };
    }
}
