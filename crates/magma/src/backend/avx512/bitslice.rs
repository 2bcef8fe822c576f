//! One bit of 512 blocks in each register: large inputs under set Z.
//!
//! **The round.** A full adder takes two `vpternlog` a bit, a substitution with the addition to the other word ten (see
//! [`super::circuits`]), and the rotation none: 143 for 512 blocks, or 4.5 for 16 where [`super::permute`] needs eight
//! operations.
//!
//! **Floor.** Zen 4: 143 operations at two a cycle, 71.5 cycles a round, 0.56 cycles a byte; 64 loads of the state and
//! 32 of the key at one a cycle, the latter shared by two sets of 512 blocks: 80 cycles, 0.63; 32 stores at one in two
//! cycles: 64, 0.50. Zen 5: 36 cycles of operations, 40 of loads, 32 of stores or more: 0.31. Transposing blocks to bits
//! takes seven levels of interleavings of 64 registers and a bit matrix, and back six levels: 0.17 on Zen 4, half of it
//! where the input is a counter, whose bits are made in place.
//!
//! **Measured** on Zen 4: 1.3 cycles a byte for counters and 1.6 for blocks, twice the floor and no faster than
//! [`super::permute`]. The carries are a chain of 32 operations a round, and each round loads what the last one stored.
//! So this is a separate backend, for CPUs where it measures faster. With one set instead of two, counters took 1.3 to
//! 1.5.
//!
//! **Layout.** 64 registers of bits: a0 then a1, lowest bit first. In a register, block t = 8 R + 4 l1 + 2 l0 + q0 with
//! R = 32 p3 + 16 p2 + 8 p1 + 4 p0 + 2 q2 + q1 has byte p of 128-bit lane l, and bit 7 - q of the byte. That is how six
//! levels of interleaving lead back to blocks in their order in memory.
//!
//! Leak class: constant time except for lengths, byte order and the public steps of counters. State and key bits lie on the
//! stack and are wiped.

use core::arch::x86_64::*;

use super::circuits::CIRCUITS;
use crate::schedule::{ByteOrder, Counter, Schedule};

type Z = __m512i;

/// Blocks in a set of registers.
pub(super) const SET: usize = 512;

/// Registers of a set.
const BITS: usize = 64;

/// The bits of one set, with padding: if sets were a multiple of 4096 bytes apart, loads of one would match stores of
/// the other.
#[repr(C, align(64))]
struct Set([Z; BITS], [Z; 8]);

/// Two sets, so that the carry chain of one leaves room for that of the other.
type Sets = [Set; 2];

/// All state on the stack.
#[repr(C, align(64))]
struct Work {
    sets: Sets,
    between: [Z; BITS],
    key: KeyBits,
}

impl Work {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn new(s: &Schedule) -> Work {
        let zero = _mm512_setzero_si512();
        Work {
            sets: [const { 0 }; 2].map(|_| Set([zero; BITS], [zero; 8])),
            between: [zero; BITS],
            key: KeyBits::new(s),
        }
    }
}

/// The key's bits, each in all bits of a word.
#[repr(C, align(64))]
struct KeyBits([[u32; 32]; 32]);

impl KeyBits {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn new(s: &Schedule) -> KeyBits {
        let mut bits = KeyBits([[0; 32]; 32]);
        for (bits, &word) in bits.0.iter_mut().zip(&s.rounds) {
            let low = _mm512_maskz_set1_epi32(word as __mmask16, -1);
            let high = _mm512_maskz_set1_epi32((word >> 16) as __mmask16, -1);
            // SAFETY: 128 bytes are writable and aligned.
            unsafe {
                _mm512_store_si512(bits.as_mut_ptr().cast(), low);
                _mm512_store_si512(bits.as_mut_ptr().add(16).cast(), high);
            }
        }
        bits
    }
}

/// Zeroes the secret state by writes that the compiler must keep.
#[target_feature(enable = "avx512f")]
#[inline]
fn wipe<T>(secret: &mut T) {
    const { assert!(size_of::<T>().is_multiple_of(64) && align_of::<T>() >= 64) };
    let at: *mut Z = core::ptr::from_mut(secret).cast();
    for i in 0..size_of::<T>() / 64 {
        // SAFETY: within the value; all types here are plain numbers.
        unsafe { at.add(i).write_volatile(_mm512_setzero_si512()) };
    }
}

/// One substitution: four bits of x, added to four bits of `b`.
macro_rules! substitute {
    ($n:literal, $x:expr, $b:expr) => {{
        let x: [Z; 4] = $x;
        let zero = _mm512_setzero_si512();
        let mut w = [x[0], x[1], x[2], x[3], zero, zero, zero, zero, zero, zero];
        substitute!(@gate $n, w, 0 1 2 3 4 5);
        substitute!(@output $n, w, $b, 0 1 2 3);
    }};
    (@gate $n:literal, $w:ident, $($i:literal)*) => {$(
        const { assert!(CIRCUITS[$n].gates[$i].wires[0] < 4 + $i) };
        $w[4 + $i] = _mm512_ternarylogic_epi64::<{ CIRCUITS[$n].gates[$i].table }>(
            $w[const { CIRCUITS[$n].gates[$i].wires[0] }],
            $w[const { CIRCUITS[$n].gates[$i].wires[1] }],
            $w[const { CIRCUITS[$n].gates[$i].wires[2] }],
        );
    )*};
    (@output $n:literal, $w:ident, $b:expr, $($i:literal)*) => {$({
        const AT: usize = (4 * $n + $i + 11) % 32;
        $b[AT] = _mm512_ternarylogic_epi64::<{ CIRCUITS[$n].outputs[$i].table }>(
            $b[AT],
            $w[const { CIRCUITS[$n].outputs[$i].wires[1] }],
            $w[const { CIRCUITS[$n].outputs[$i].wires[2] }],
        );
    })*};
}

/// One round of both sets: adds the round function of word `A` and the key to the other word.
#[target_feature(enable = "avx512f")]
#[inline]
fn round<const A: usize>(sets: &mut Sets, key: &[u32; 32]) {
    let mut carry = [_mm512_setzero_si512(); 2];
    macro_rules! nibble {
        ($($n:tt)*) => {$({
            let mut x = [[_mm512_setzero_si512(); 4]; 2];
            for i in 0..4 {
                let k = _mm512_set1_epi32(key[4 * $n + i] as i32);
                for q in 0..2 {
                    let a = sets[q].0[32 * A + 4 * $n + i];
                    x[q][i] = _mm512_ternarylogic_epi64::<0x96>(a, k, carry[q]);
                    carry[q] = _mm512_ternarylogic_epi64::<0xe8>(a, k, carry[q]);
                }
            }
            for q in 0..2 {
                let b: &mut [Z; 32] =
                    (&mut sets[q].0[32 * (1 - A)..][..32]).try_into().expect("a word");
                substitute!($n, x[q], b);
            }
            // SAFETY: the assembly is empty. It keeps the state in memory: otherwise the compiler holds some of it in
            // registers and spills the rest to worse places.
            unsafe {
                core::arch::asm!("/* {0} */", in(reg) sets.as_mut_ptr(), options(nostack, preserves_flags));
            }
        })*};
    }
    nibble!(0 1 2 3 4 5 6 7);
}

/// All rounds: the result's low word lies in the upper 32 registers.
#[target_feature(enable = "avx512f")]
#[inline(never)]
fn rounds(sets: &mut Sets, key: &KeyBits) {
    for k in key.0.chunks_exact(2) {
        round::<0>(sets, &k[0]);
        round::<1>(sets, &k[1]);
    }
}

/// Interleaves the bytes of registers whose numbers differ in `bit`: the number's bit becomes the lowest of a byte's
/// place in its 128 bits, the highest one becomes that bit of the number.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn exchange<const N: usize>(z: [Z; N], bit: usize) -> [Z; N] {
    let mut t = z;
    for i in 0..N {
        if i & bit == 0 {
            t[i] = _mm512_unpacklo_epi8(z[i], z[i | bit]);
            t[i | bit] = _mm512_unpackhi_epi8(z[i], z[i | bit]);
        }
    }
    t
}

/// Where the lowest bit of byte `j` of a block is, among the bits of its number.
fn first_bit(order: ByteOrder, j: usize) -> usize {
    8 * match order {
        ByteOrder::Big => 7 - j,
        ByteOrder::Little => j,
    }
}

/// Blocks to bits.
///
/// # Safety
/// AVX-512 F, BW, GFNI; 4096 bytes are readable.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
#[inline(never)]
unsafe fn to_bits(order: ByteOrder, input: *const u8, bits: &mut [Z; BITS], between: &mut [Z; BITS]) {
    // A place in 128 bits is written (n0 j2 j1 j0), a bit of a byte b; g = (rc rd re rf) and (ra rb) count registers.
    let ones = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    for g in 0..16 {
        // SAFETY: 4 g + 3 < 64 registers are readable.
        let z: [Z; 4] =
            core::array::from_fn(|i| unsafe { _mm512_loadu_si512(input.add(64 * (4 * g + i)).cast()) });
        // (j2 j1 j0 ra), (n0 rb); (j1 j0 ra rb), (n0 j2); (j0 ra rb n0), (j1 j2)
        let z = exchange(exchange(exchange(z, 2), 1), 2);
        for i in 0..4 {
            // (j0 b2 b1 b0), bits ra rb n0 from the top
            between[16 * i + g] = _mm512_gf2p8affine_epi64_epi8::<0>(ones, z[i]);
        }
    }
    for jj in 0..4 {
        let z: [Z; 16] = core::array::from_fn(|g| between[16 * jj + g]);
        // (rc rd re rf), (j0 b2 b1 b0)
        let z = exchange(exchange(exchange(exchange(z, 8), 4), 2), 1);
        let (j1, j2) = (jj >> 1, jj & 1);
        for half in 0..2 {
            let at = first_bit(order, 4 * j2 + 2 * j1 + half);
            bits[at..at + 8].copy_from_slice(&z[8 * half..8 * half + 8]);
        }
    }
}

/// Bits, as the rounds leave them, to blocks: `put` takes register i of them.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
#[inline]
fn to_blocks(order: ByteOrder, bits: &[Z; BITS], between: &mut [Z; BITS], mut put: impl FnMut(usize, Z)) {
    let ones = _mm512_set1_epi64(0x0102_0408_1020_4080);
    for j in 0..8 {
        let at = first_bit(order, j) ^ 32;
        // The bit matrix reverses the order of the bytes.
        let z: [Z; 8] = core::array::from_fn(|b| bits[at + 7 - b]);
        // (p3 p2 p1 p0), (b2 b1 b0) to (p0 b2 b1 b0), (p3 p2 p1)
        let z = exchange(exchange(exchange(z, 4), 2), 1);
        for i in 0..8 {
            // (p0 q2 q1 q0)
            between[8 * j + i] = _mm512_gf2p8affine_epi64_epi8::<0>(ones, z[i]);
        }
    }
    for g in 0..8 {
        let z: [Z; 8] = core::array::from_fn(|j| between[8 * j + g]);
        // (q0 j2 j1 j0), (p0 q2 q1)
        let z = exchange(exchange(exchange(z, 4), 2), 1);
        for i in 0..8 {
            put(8 * g + i, z[i]);
        }
    }
}

/// The bits of a block's number t, lowest first.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn places() -> [Z; 9] {
    let lane = |bit: u32| {
        let on = |l: i64| -(l >> bit & 1);
        _mm512_setr_epi64(on(0), on(0), on(1), on(1), on(2), on(2), on(3), on(3))
    };
    let byte = |bit: u32| {
        let mut mask = 0u64;
        let mut p = 0;
        while p < 64 {
            mask |= (p >> bit & 1) << p;
            p += 1;
        }
        _mm512_maskz_set1_epi8(mask, -1)
    };
    [
        _mm512_set1_epi8(0x55),
        lane(0),
        lane(1),
        _mm512_set1_epi8(0x33),
        _mm512_set1_epi8(0x0f),
        byte(0),
        byte(1),
        byte(2),
        byte(3),
    ]
}

/// The bits of `start` + t in all blocks, or of `start` unless `counts`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn count(start: u32, counts: bool, bits: &mut [Z]) {
    let places = places();
    let mut carry = _mm512_setzero_si512();
    for i in 0..32 {
        let word = _mm512_set1_epi32(-((start >> i & 1) as i32));
        let place = if counts && i < places.len() { places[i] } else { _mm512_setzero_si512() };
        bits[i] = _mm512_ternarylogic_epi64::<0x96>(word, place, carry);
        carry = _mm512_ternarylogic_epi64::<0xe8>(word, place, carry);
    }
}

/// Encrypts or decrypts whole sets of blocks and returns the number of blocks done.
///
/// # Safety
/// AVX-512 F, BW, GFNI; as `Kernels::blocks`, and the schedule's set is Z.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
// Inlined, it would take its 21 KiB of stack for a few blocks, too. What these leave then lies too deep for `wipe_derived`.
#[inline(never)]
pub(super) unsafe fn blocks(s: &Schedule, input: *const u8, output: *mut u8, n: usize) -> usize {
    let mut work = Work::new(s);
    let mut done = 0;
    while n - done >= 2 * SET {
        for (q, set) in work.sets.iter_mut().enumerate() {
            // SAFETY: as many blocks as two sets are left.
            unsafe { to_bits(s.order, input.add(8 * (done + SET * q)), &mut set.0, &mut work.between) };
        }
        rounds(&mut work.sets, &work.key);
        for (q, set) in work.sets.iter().enumerate() {
            to_blocks(s.order, &set.0, &mut work.between, |i, x| {
                // SAFETY: as above.
                unsafe { _mm512_storeu_si512(output.add(8 * (done + SET * q) + 64 * i).cast(), x) };
            });
        }
        done += 2 * SET;
    }
    wipe(&mut work);
    done
}

/// Keystream for whole sets of blocks, added to the input if `XOR`. Returns the number of blocks done: 0 if the
/// counter's steps are other than 0 and 1.
///
/// # Safety
/// AVX-512 F, BW, GFNI; as `Kernels::counter`, `n` in blocks, and the schedule's set is Z; `input` is not read unless
/// `XOR`.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
// As for `blocks`.
#[inline(never)]
pub(super) unsafe fn stream<const XOR: bool>(
    s: &Schedule,
    counter: Counter,
    input: *const u8,
    output: *mut u8,
    n: usize,
) -> usize {
    if counter.step_low > 1 || counter.step_high > 1 {
        return 0;
    }
    let mut work = Work::new(s);
    let mut done = 0;
    while n - done >= 2 * SET {
        for (q, set) in work.sets.iter_mut().enumerate() {
            let counter = counter.from((done + SET * q) as u32);
            let (low, high) = set.0.split_at_mut(32);
            count(counter.low, counter.step_low == 1, low);
            count(counter.high, counter.step_high == 1, high);
        }
        rounds(&mut work.sets, &work.key);
        for (q, set) in work.sets.iter().enumerate() {
            to_blocks(s.order, &set.0, &mut work.between, |i, mut x| {
                let at = 8 * (done + SET * q) + 64 * i;
                // SAFETY: as many blocks as two sets are left.
                unsafe {
                    if XOR {
                        x = _mm512_xor_si512(x, _mm512_loadu_si512(input.add(at).cast()));
                    }
                    _mm512_storeu_si512(output.add(at).cast(), x);
                }
            });
        }
        done += 2 * SET;
    }
    wipe(&mut work);
    done
}
