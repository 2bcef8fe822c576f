//! Byte planes: 32 blocks in 8 registers, register j holding byte j of every block.
//!
//! **Round.** The bytes of a word lie in four registers, so that a byte shuffle substitutes one nibble of 32 blocks by
//! one table, and the rotation by 11 is a renaming of registers (8) and tables that shift (3): the low nibble, shifted,
//! stays within one byte, the high one splits in two. Additions carry from register to register. Every byte has its top
//! bit flipped, so that AVX2's signed comparison orders bytes as unsigned:
//!
//! - the lowest byte carries if s > n with n = 255 - k;
//! - the next two carry if s - n > -c, where c is 1 for a carry from below. c is held as the mask -c, and saturation
//!   keeps the difference's sign, so this takes one subtraction and one comparison.
//!
//! For four registers of a half: 12 operations of addition (2 + 4 + 4 + 2), 12 to split nibbles (shift, two masks), 12
//! shuffles and 12 XORs: **12 a register**. Of these, 4.5 (shuffles, shifts, saturating subtractions) have two ports on
//! Zen 4. GFNI extracts the high nibble by one operation instead of two: 11.
//!
//! **Floor.** 4 vector operations a cycle: 12 cycles a round for 256 bytes, 1.5 cycles a byte; transpositions (64
//! shuffles and 16 flips a group, the shuffles two or three a cycle) add 0.13. With GFNI 1.375 and as much again.
//! `DESIGN.md` has the measurements.

use core::arch::x86_64::*;

use super::tables::Planes;
use crate::schedule::{ByteOrder, Schedule};

/// A register.
pub(super) type Y = __m256i;

/// 32 blocks: the lower half's bytes, lowest first, then the higher half's.
pub(super) type Group = [Y; 8];

/// Blocks of a group.
pub(super) const GROUP: usize = 32;

/// The byte of a plane in which block i of a group lies.
pub(super) const fn place(i: usize) -> usize {
    i / 2 % 2 * 16 + i / 4 * 2 + i % 2
}

/// The operands that a round adds and compares with, in registers.
const ADDENDS: usize = 7;

/// Round keys for planes: k0, k1, k2, k3, and n0, n1, n2 (255 - k with its top bit flipped), each byte four times.
#[repr(C, align(64))]
pub(super) struct Keys([[u32; 32]; ADDENDS]);

impl Keys {
    /// All rounds of a schedule.
    ///
    /// # Safety
    /// AVX2.
    #[inline(always)]
    pub(super) unsafe fn new(s: &Schedule) -> Keys {
        let mut keys = Keys([[0; 32]; ADDENDS]);
        // SAFETY: the caller's promise; all addresses lie in `s.rounds` and `keys`.
        unsafe {
            for i in (0..32).step_by(8) {
                let words = _mm256_loadu_si256(s.rounds.as_ptr().add(i).cast());
                for j in 0..4 {
                    let byte = _mm256_add_epi8(
                        _mm256_setr_epi32(
                            0,
                            0x0404_0404,
                            0x0808_0808,
                            0x0c0c_0c0c,
                            0,
                            0x0404_0404,
                            0x0808_0808,
                            0x0c0c_0c0c,
                        ),
                        _mm256_set1_epi8(j as i8),
                    );
                    let k = _mm256_shuffle_epi8(words, byte);
                    _mm256_storeu_si256(keys.0[j].as_mut_ptr().add(i).cast(), k);
                    if j < 3 {
                        let n = _mm256_xor_si256(k, _mm256_set1_epi8(0x7f));
                        _mm256_storeu_si256(keys.0[4 + j].as_mut_ptr().add(i).cast(), n);
                    }
                }
            }
        }
        keys
    }

    /// The addends of round r.
    #[inline(always)]
    unsafe fn round(&self, r: usize) -> [Y; ADDENDS] {
        // SAFETY: AVX2.
        unsafe {
            let mut addends = [_mm256_setzero_si256(); ADDENDS];
            for i in 0..ADDENDS {
                addends[i] = _mm256_set1_epi32(self.0[i][r] as i32);
            }
            addends
        }
    }

    /// Zeroes the keys.
    ///
    /// # Safety
    /// AVX2.
    #[inline(always)]
    pub(super) unsafe fn wipe(&mut self) {
        for plane in &mut self.0 {
            for word in plane.chunks_exact_mut(8) {
                // SAFETY: 32 bytes, aligned as this type is, of words for which zero is valid; volatile, so the
                // compiler keeps the write.
                unsafe { word.as_mut_ptr().cast::<Y>().write_volatile(_mm256_setzero_si256()) };
            }
        }
    }
}

/// The high nibbles of all bytes.
#[inline(always)]
unsafe fn high<const GFNI: bool>(x: Y) -> Y {
    // SAFETY: AVX2, and GFNI where the caller says so.
    unsafe {
        if GFNI {
            _mm256_gf2p8affine_epi64_epi8::<0>(x, _mm256_set1_epi64x(0x1020_4080_0000_0000))
        } else {
            _mm256_and_si256(_mm256_srli_epi16::<4>(x), _mm256_set1_epi8(15))
        }
    }
}

/// One table in both lanes.
#[inline(always)]
unsafe fn table(t: &[u8; 16]) -> Y {
    // SAFETY: 16 bytes are readable.
    unsafe { _mm256_broadcastsi128_si256(_mm_load_si128(t.as_ptr().cast())) }
}

/// The same tables, hidden from the compiler, which would read all twelve before the first round and keep some in
/// registers instead of the state.
#[expect(clippy::pointers_in_nomem_asm_block, reason = "nothing is read through it there")]
#[inline(always)]
fn here(t: &Planes) -> &Planes {
    let mut at: *const Planes = t;
    // SAFETY: the assembly is empty, so the pointer is unchanged.
    unsafe {
        core::arch::asm!("/* {0} */", inout(reg) at, options(nomem, nostack, preserves_flags));
        &*at
    }
}

/// One round of P groups: adds g of the half at A to the other.
///
/// Groups take turns at every step, so a pair loads each table and each addend once. A round of one group alone has 27
/// loads, more than two a cycle.
#[inline(always)]
unsafe fn round<const P: usize, const GFNI: bool, const A: usize>(
    t: &Planes,
    g: *mut Group,
    addends: &[[Y; ADDENDS]; P],
) {
    // SAFETY: AVX2, and GFNI where the caller says so; P groups at `g`.
    unsafe {
        let b = 4 - A;
        let t = here(t);
        let g = &mut *g.cast::<[Group; P]>();
        let low_nibble = _mm256_set1_epi8(15);
        // All reads precede all writes, since the compiler cannot exclude that tables and keys overlap the groups.
        let mut other = [[low_nibble; 4]; P];
        for p in 0..P {
            for j in 0..4 {
                other[p][j] = g[p][b + j];
            }
        }
        let mut x = [[low_nibble; P]; 4];
        let mut carry = [low_nibble; P];
        for p in 0..P {
            let [k, .., n, _, _] = addends[p];
            let s = g[p][A];
            x[0][p] = _mm256_add_epi8(s, k);
            carry[p] = _mm256_cmpgt_epi8(s, n);
        }
        for j in 1..4 {
            for p in 0..P {
                let s = g[p][A + j];
                x[j][p] = _mm256_sub_epi8(_mm256_add_epi8(s, addends[p][j]), carry[p]);
                if j < 3 {
                    carry[p] = _mm256_cmpgt_epi8(_mm256_subs_epi8(s, addends[p][4 + j]), carry[p]);
                }
            }
        }
        for j in 0..4 {
            let (to, next) = ((j + 1) % 4, (j + 2) % 4);
            let (low, bit, rest) = (table(&t.low[j]), table(&t.high_bit[j]), table(&t.high_rest[j]));
            for p in 0..P {
                let x = x[j][p];
                let h = high::<GFNI>(x);
                let low = _mm256_shuffle_epi8(low, _mm256_and_si256(x, low_nibble));
                let bit = _mm256_shuffle_epi8(bit, h);
                let rest = _mm256_shuffle_epi8(rest, h);
                other[p][to] = _mm256_xor_si256(other[p][to], _mm256_xor_si256(low, bit));
                other[p][next] = _mm256_xor_si256(other[p][next], rest);
            }
        }
        for p in 0..P {
            for j in 0..4 {
                g[p][b + j] = other[p][j];
            }
        }
    }
}

/// All rounds of N groups under one key; afterwards the lower half is where the higher one was.
///
/// # Safety
/// AVX2, and GFNI where the caller says so; N groups at `groups`.
#[inline(always)]
pub(super) unsafe fn rounds<const N: usize, const GFNI: bool>(t: &Planes, keys: &Keys, groups: *mut Group) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut few = [[_mm256_setzero_si256(); 8]; 2];
        if N <= 2 {
            few[..N].copy_from_slice(core::slice::from_raw_parts(groups, N));
        }
        // As locals, one group and most of two stay in registers. Through memory a round would wait for the previous
        // round's stores; with more groups other work fills that time.
        let state = if N <= 2 { few.as_mut_ptr() } else { groups };
        for r in (0..32).step_by(2) {
            same_key::<N, GFNI, 0>(t, keys.round(r), state);
            same_key::<N, GFNI, 4>(t, keys.round(r + 1), state);
        }
        if N <= 2 {
            core::slice::from_raw_parts_mut(groups, N).copy_from_slice(&few[..N]);
        }
    }
}

/// One round of N groups under one key.
#[inline(always)]
unsafe fn same_key<const N: usize, const GFNI: bool, const A: usize>(
    t: &Planes,
    addends: [Y; ADDENDS],
    groups: *mut Group,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if N == 1 {
            round::<1, GFNI, A>(t, groups, &[addends]);
        }
        if N >= 2 {
            round::<2, GFNI, A>(t, groups, &[addends; 2]);
        }
        if N == 3 {
            round::<1, GFNI, A>(t, groups.add(2), &[addends]);
        }
        if N == 4 {
            round::<2, GFNI, A>(t, groups.add(2), &[addends; 2]);
        }
    }
}

/// Keys of 128 lanes: bytes by word of the key, group, byte of the word.
pub(super) type LaneKeys = [[[[u8; GROUP]; 4]; 4]; 8];

/// The addends of one word of a group's keys.
#[inline(always)]
unsafe fn lane_addends(word: &[[u8; GROUP]; 4]) -> [Y; ADDENDS] {
    // SAFETY: AVX2; every plane is 32 bytes, aligned with the blocks that hold them.
    unsafe {
        let k = word.as_ptr().cast::<Y>();
        let flip = _mm256_set1_epi8(0x7f);
        let (k0, k1, k2, k3) = (k.read(), k.add(1).read(), k.add(2).read(), k.add(3).read());
        let (n0, n1, n2) =
            (_mm256_xor_si256(k0, flip), _mm256_xor_si256(k1, flip), _mm256_xor_si256(k2, flip));
        [k0, k1, k2, k3, n0, n1, n2]
    }
}

/// All rounds of encryption of N groups, each lane under its own key.
///
/// # Safety
/// AVX2, and GFNI where the caller says so; N groups at `groups`, N <= 4; `keys` aligned to 32 bytes.
#[inline(always)]
pub(super) unsafe fn lane_rounds<const N: usize, const GFNI: bool>(
    t: &Planes,
    keys: &LaneKeys,
    groups: *mut Group,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut few = [[_mm256_setzero_si256(); 8]; 2];
        if N <= 2 {
            few[..N].copy_from_slice(core::slice::from_raw_parts(groups, N));
        }
        let state = if N <= 2 { few.as_mut_ptr() } else { groups };
        for r in (0..32).step_by(2) {
            // Words 0 to 7 three times, then 7 to 0.
            let (even, odd) = if r < 24 { (r % 8, r % 8 + 1) } else { (31 - r, 30 - r) };
            own_keys::<N, GFNI, 0>(t, &keys[even], state);
            own_keys::<N, GFNI, 4>(t, &keys[odd], state);
        }
        if N <= 2 {
            core::slice::from_raw_parts_mut(groups, N).copy_from_slice(&few[..N]);
        }
    }
}

/// One round of N groups, each lane under its own key.
#[inline(always)]
unsafe fn own_keys<const N: usize, const GFNI: bool, const A: usize>(
    t: &Planes,
    keys: &[[[u8; GROUP]; 4]; 4],
    groups: *mut Group,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if N == 1 {
            round::<1, GFNI, A>(t, groups, &[lane_addends(&keys[0])]);
        }
        if N >= 2 {
            round::<2, GFNI, A>(t, groups, &[lane_addends(&keys[0]), lane_addends(&keys[1])]);
        }
        if N == 3 {
            round::<1, GFNI, A>(t, groups.add(2), &[lane_addends(&keys[2])]);
        }
        if N == 4 {
            round::<2, GFNI, A>(t, groups.add(2), &[lane_addends(&keys[2]), lane_addends(&keys[3])]);
        }
    }
}

/// The order of bytes in two blocks side by side, sorted by plane.
#[inline(always)]
unsafe fn gather(order: ByteOrder) -> Y {
    // SAFETY: AVX2.
    unsafe {
        let flip = _mm256_set1_epi8(if order == ByteOrder::Big { 7 } else { 0 });
        _mm256_xor_si256(
            flip,
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)),
        )
    }
}

/// The inverse of `gather`.
#[inline(always)]
unsafe fn scatter(order: ByteOrder) -> Y {
    // SAFETY: AVX2.
    unsafe {
        let flip = _mm256_set1_epi8(if order == ByteOrder::Big { 14 } else { 0 });
        _mm256_xor_si256(
            flip,
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15)),
        )
    }
}

/// Transposes 8 by 8 pairs of bytes within each lane.
#[inline(always)]
unsafe fn transpose(z: Group) -> Group {
    // SAFETY: AVX2.
    unsafe {
        let [z0, z1, z2, z3, z4, z5, z6, z7] = z;
        let (a0, a1) = (_mm256_unpacklo_epi16(z0, z1), _mm256_unpackhi_epi16(z0, z1));
        let (b0, b1) = (_mm256_unpacklo_epi16(z2, z3), _mm256_unpackhi_epi16(z2, z3));
        let (c0, c1) = (_mm256_unpacklo_epi16(z4, z5), _mm256_unpackhi_epi16(z4, z5));
        let (d0, d1) = (_mm256_unpacklo_epi16(z6, z7), _mm256_unpackhi_epi16(z6, z7));
        let (e0, e1) = (_mm256_unpacklo_epi32(a0, b0), _mm256_unpackhi_epi32(a0, b0));
        let (e2, e3) = (_mm256_unpacklo_epi32(a1, b1), _mm256_unpackhi_epi32(a1, b1));
        let (f0, f1) = (_mm256_unpacklo_epi32(c0, d0), _mm256_unpackhi_epi32(c0, d0));
        let (f2, f3) = (_mm256_unpacklo_epi32(c1, d1), _mm256_unpackhi_epi32(c1, d1));
        [
            _mm256_unpacklo_epi64(e0, f0),
            _mm256_unpackhi_epi64(e0, f0),
            _mm256_unpacklo_epi64(e1, f1),
            _mm256_unpackhi_epi64(e1, f1),
            _mm256_unpacklo_epi64(e2, f2),
            _mm256_unpackhi_epi64(e2, f2),
            _mm256_unpacklo_epi64(e3, f3),
            _mm256_unpackhi_epi64(e3, f3),
        ]
    }
}

/// 32 blocks as planes.
///
/// # Safety
/// 256 bytes are readable; AVX2.
#[inline(always)]
pub(super) unsafe fn load(input: *const u8, order: ByteOrder) -> Group {
    // SAFETY: the caller's promise.
    unsafe {
        let by_plane = gather(order);
        let flip = _mm256_set1_epi8(-128);
        let mut z = [by_plane; 8];
        for i in 0..8 {
            z[i] = _mm256_shuffle_epi8(_mm256_loadu_si256(input.add(32 * i).cast()), by_plane);
        }
        let mut planes = transpose(z);
        for p in &mut planes {
            *p = _mm256_xor_si256(*p, flip);
        }
        planes
    }
}

/// The blocks of planes after `rounds`: the inverse of [`load`], with the halves swapped.
///
/// # Safety
/// AVX2.
#[inline(always)]
pub(super) unsafe fn unload(group: Group, order: ByteOrder) -> Group {
    // SAFETY: the caller's promise.
    unsafe {
        let by_block = scatter(order);
        let flip = _mm256_set1_epi8(-128);
        let mut planes = group;
        for j in 0..8 {
            planes[j] = _mm256_xor_si256(group[(j + 4) % 8], flip);
        }
        let mut z = transpose(planes);
        for z in &mut z {
            *z = _mm256_shuffle_epi8(*z, by_block);
        }
        z
    }
}
