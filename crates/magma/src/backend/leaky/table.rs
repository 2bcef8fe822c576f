//! The cipher by tables, as a plant: the key and the block decide which of the 64 cache lines are touched.

use crate::sbox::Sbox;
use crate::schedule::Schedule;

/// The contribution of byte i of a word to t, rotated by 11.
static TABLES: [[u32; 256]; 4] = {
    let rows = Sbox::Z.rows();
    let mut tables = [[0; 256]; 4];
    let mut at = 0;
    while at < 1024 {
        let (i, x) = (at / 256, at % 256);
        let both = rows[2 * i][x & 15] | rows[2 * i + 1][x >> 4] << 4;
        tables[i][x] = ((both as u32) << (8 * i)).rotate_left(11);
        at += 1;
    }
    tables
};

/// Encrypts `n` Magma blocks.
///
/// # Safety
/// `input`: 8n readable bytes; `output`: 8n writable bytes; the same address or disjoint; any alignment.
pub(super) unsafe fn blocks(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
    let f = |x: u32| x.to_le_bytes().iter().zip(&TABLES).fold(0, |y, (&x, table)| y ^ table[usize::from(x)]);
    for i in 0..n {
        // SAFETY: i < n blocks are readable.
        let number = u64::from_be_bytes(unsafe { input.add(8 * i).cast::<[u8; 8]>().read() });
        let (mut a1, mut a0) = ((number >> 32) as u32, number as u32);
        for key in s.rounds.chunks_exact(2) {
            a1 ^= f(a0.wrapping_add(key[0]));
            a0 ^= f(a1.wrapping_add(key[1]));
        }
        let number = u64::from(a0) << 32 | u64::from(a1);
        // SAFETY: i < n blocks are writable.
        unsafe { output.add(8 * i).cast::<[u8; 8]>().write(number.to_be_bytes()) };
    }
}
