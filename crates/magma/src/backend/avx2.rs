//! AVX2: byte planes in bulk, whole words for up to 8 blocks and quadwords for up to 4, carry-less products.
//!
//! Kernels work on batches of up to four groups of 32 blocks. An incomplete last batch passes through a buffer. Round
//! keys, states and leftover keystream on the stack are wiped. The compiler may spill a byte plane to the stack for a
//! few operations; such slots are not wiped. A caller that needs that must wipe the stack.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use lanework_cpu::memory::{Block, wipe};

use super::{Kernels, LANES, LaneBlocks};
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Counter, Schedule};
use count::Counting;
use planes::{GROUP, Group, Keys};
use tables::{PLANES, Planes, QUADWORDS, WORDS};

mod count;
mod planes;
mod products;
mod quadwords;
mod tables;
#[cfg(test)]
mod tests;
mod words;

/// Groups worked on at once.
const GROUPS: usize = 4;

/// The rounds of one to four groups.
type Rounds = [unsafe fn(&Planes, &Keys, *mut Group); GROUPS];

/// The keys of all lanes as planes, and those of the first lanes as words too.
#[repr(C)]
struct LaneKeys {
    planes: planes::LaneKeys,
    words: quadwords::LaneWords,
}

const _: () = assert!(align_of::<LaneKeys>() <= align_of::<Block>());

/// The rounds of one to four groups, each lane under its own key.
type LaneRounds = [unsafe fn(&Planes, &planes::LaneKeys, *mut Group); GROUPS];

/// The operations that differ between the rows of the table that share this code.
trait Tier {
    const ROUNDS: Rounds;
    const LANES: LaneRounds;
}

macro_rules! tier {
    ($tier:ident, $module:ident, $features:literal, $gfni:literal) => {
        struct $tier;

        mod $module {
            use super::planes::{Group, Keys, LaneKeys, lane_rounds, rounds};
            use super::tables::Planes;

            /// # Safety
            /// The tier's features; N groups.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn same_key<const N: usize>(t: &Planes, keys: &Keys, groups: *mut Group) {
                // SAFETY: the caller's promise.
                unsafe { rounds::<N, $gfni>(t, keys, groups) }
            }

            /// # Safety
            /// The tier's features; N groups.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn own_keys<const N: usize>(t: &Planes, keys: &LaneKeys, groups: *mut Group) {
                // SAFETY: the caller's promise.
                unsafe { lane_rounds::<N, $gfni>(t, keys, groups) }
            }
        }

        impl Tier for $tier {
            const ROUNDS: Rounds = [
                $module::same_key::<1>,
                $module::same_key::<2>,
                $module::same_key::<3>,
                $module::same_key::<4>,
            ];
            const LANES: LaneRounds = [
                $module::own_keys::<1>,
                $module::own_keys::<2>,
                $module::own_keys::<3>,
                $module::own_keys::<4>,
            ];
        }
    };
}

tier!(Avx2, plain, "avx2", false);
tier!(Gfni, gfni, "avx2,gfni", true);

/// The backend.
pub(crate) static KERNELS: Kernels = kernels::<Avx2>();

/// The same with nibbles split by GFNI, for CPUs that have it without AVX-512.
pub(crate) static KERNELS_GFNI: Kernels = kernels::<Gfni>();

const fn kernels<T: Tier>() -> Kernels {
    Kernels {
        parallel: GROUPS * GROUP,
        blocks: blocks::<T>,
        counter: counter::<T>,
        keystream: keystream::<T>,
        lane_keys_blocks: size_of::<LaneKeys>().div_ceil(size_of::<Block>()),
        set_lane,
        lanes: lanes::<T>,
        chain: super::chain::plain,
        products: products::products,
    }
}

/// Bytes of a group.
const GROUP_BYTES: usize = 8 * GROUP;

/// The most bytes that whole words take.
const FEW: usize = 8 * words::BLOCKS;

/// The most bytes that quadwords take.
const FEWER: usize = 8 * quadwords::BLOCKS;

/// The source of blocks, and their destination.
trait Job {
    /// Whether `input` is added to the output.
    const ADDS: bool;
    /// Whether `input` is read at all.
    const READS: bool;
    /// The data for groups, computed once.
    type Groups;
    /// # Safety
    /// AVX2.
    unsafe fn groups(&self) -> Self::Groups;
    /// Blocks `i` to `i + 31` as planes.
    ///
    /// # Safety
    /// AVX2; if `READS` and not `ADDS`, 32 blocks at `input`.
    unsafe fn group(groups: &Self::Groups, input: *const u8, i: usize) -> Group;
    /// Blocks `i` to `i + 7` as words, from `input` or not.
    ///
    /// # Safety
    /// AVX2.
    unsafe fn few(&self, input: [__m256i; 2], i: usize) -> words::Pair;
    /// Blocks `i` to `i + 3` as numbers, from `input` or not.
    ///
    /// # Safety
    /// AVX2.
    unsafe fn fewer(&self, input: __m256i, i: usize) -> __m256i;
}

/// The blocks come from `input`.
struct Blocks(ByteOrder);

impl Job for Blocks {
    const ADDS: bool = false;
    const READS: bool = true;
    type Groups = ByteOrder;

    #[inline(always)]
    unsafe fn groups(&self) -> ByteOrder {
        self.0
    }

    #[inline(always)]
    unsafe fn group(&order: &ByteOrder, input: *const u8, _: usize) -> Group {
        // SAFETY: the caller's promise.
        unsafe { planes::load(input, order) }
    }

    #[inline(always)]
    unsafe fn few(&self, input: [__m256i; 2], _: usize) -> words::Pair {
        // SAFETY: the caller's promise.
        unsafe { words::load(input, self.0) }
    }

    #[inline(always)]
    unsafe fn fewer(&self, input: __m256i, _: usize) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { quadwords::swap(input, self.0) }
    }
}

/// The blocks are counters; with `ADDS`, `input` is added to their encryptions.
struct Count<const ADDS: bool>(Counter);

impl<const ADDS: bool> Job for Count<ADDS> {
    const ADDS: bool = ADDS;
    const READS: bool = ADDS;
    type Groups = Counting;

    #[inline(always)]
    unsafe fn groups(&self) -> Counting {
        // SAFETY: the caller's promise.
        unsafe { Counting::new(&self.0) }
    }

    #[inline(always)]
    unsafe fn group(counting: &Counting, _: *const u8, i: usize) -> Group {
        // SAFETY: the caller's promise.
        unsafe { counting.group(i) }
    }

    #[inline(always)]
    unsafe fn few(&self, _: [__m256i; 2], i: usize) -> words::Pair {
        // SAFETY: the caller's promise.
        unsafe { words::count(&self.0.from(i as u32)) }
    }

    #[inline(always)]
    unsafe fn fewer(&self, _: __m256i, i: usize) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { quadwords::count(&self.0.from(i as u32)) }
    }
}

/// Up to 64 bytes as two registers.
///
/// # Safety
/// AVX2; `n` <= 64 bytes readable at `from`.
#[inline(always)]
unsafe fn fetch(from: *const u8, n: usize) -> [__m256i; 2] {
    // SAFETY: the caller's promise; the buffer has 64 bytes.
    unsafe {
        match n {
            FEW => [_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(32).cast())],
            FEWER => [_mm256_loadu_si256(from.cast()), _mm256_setzero_si256()],
            16 => [_mm256_zextsi128_si256(_mm_loadu_si128(from.cast())), _mm256_setzero_si256()],
            8 => [_mm256_zextsi128_si256(_mm_loadl_epi64(from.cast())), _mm256_setzero_si256()],
            _ => {
                let mut buffer = Block::ZERO;
                from.copy_to_nonoverlapping(buffer.0.as_mut_ptr(), n);
                let at = buffer.0.as_ptr().cast();
                let out = [_mm256_load_si256(at), _mm256_load_si256(at.add(1))];
                wipe(&mut buffer.0);
                out
            }
        }
    }
}

/// The inverse of [`fetch`].
///
/// # Safety
/// AVX2; `n` <= 64 bytes writable at `to`.
#[inline(always)]
unsafe fn deliver(x: [__m256i; 2], to: *mut u8, n: usize) {
    // SAFETY: the caller's promise; the buffer has 64 bytes.
    unsafe {
        match n {
            FEW => {
                _mm256_storeu_si256(to.cast(), x[0]);
                _mm256_storeu_si256(to.add(32).cast(), x[1]);
            }
            FEWER => _mm256_storeu_si256(to.cast(), x[0]),
            16 => _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(x[0])),
            8 => _mm_storel_epi64(to.cast(), _mm256_castsi256_si128(x[0])),
            _ => {
                let mut buffer = Block::ZERO;
                let at = buffer.0.as_mut_ptr().cast();
                _mm256_store_si256(at, x[0]);
                _mm256_store_si256(at.add(1), x[1]);
                to.copy_from_nonoverlapping(buffer.0.as_ptr(), n);
                wipe(&mut buffer.0);
            }
        }
    }
}

/// Up to 8 blocks, from block `i` on; the last may be cut.
///
/// # Safety
/// AVX2; `n` <= 64 bytes at `input`, if it is read, and at `output`.
#[inline(always)]
unsafe fn few<J: Job>(s: &Schedule, job: &J, i: usize, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let given = if J::READS { fetch(input, n) } else { [_mm256_setzero_si256(); 2] };
        let mut out = if n <= FEWER {
            let numbers = quadwords::rounds(&QUADWORDS[s.sbox as usize], s, job.fewer(given[0], i));
            [quadwords::swap(numbers, s.order), _mm256_setzero_si256()]
        } else {
            words::rounds(&WORDS[s.sbox as usize], s, job.few(given, i))
        };
        if J::ADDS {
            out = [_mm256_xor_si256(out[0], given[0]), _mm256_xor_si256(out[1], given[1])];
        }
        deliver(out, output, n);
    }
}

/// `count` <= [`GROUPS`] whole groups of a message, from block `first` on.
struct Batch {
    count: usize,
    first: usize,
    /// 256 readable bytes for each group, if the job reads.
    input: *const u8,
    /// 256 writable bytes for each group.
    output: *mut u8,
}

/// The rounds of a batch.
///
/// # Safety
/// The tier's features; the batch as it says; as many groups at `state`.
#[inline(always)]
unsafe fn batch<T: Tier, J: Job>(
    s: &Schedule,
    keys: &Keys,
    groups: &J::Groups,
    state: *mut Group,
    batch: Batch,
) {
    let Batch { count, first, input, output } = batch;
    // SAFETY: the caller's promise.
    unsafe {
        for q in 0..count {
            state.add(q).write(J::group(groups, input.wrapping_add(GROUP_BYTES * q), first + GROUP * q));
        }
        T::ROUNDS[count - 1](&PLANES[s.sbox as usize], keys, state);
        for q in 0..count {
            let out = planes::unload(state.add(q).read(), s.order);
            for k in 0..8 {
                let at = GROUP_BYTES * q + 32 * k;
                let mut out = out[k];
                if J::ADDS {
                    out = _mm256_xor_si256(out, _mm256_loadu_si256(input.add(at).cast()));
                }
                _mm256_storeu_si256(output.add(at).cast(), out);
            }
        }
    }
}

/// Any number of bytes.
///
/// # Safety
/// The tier's features; `n` bytes at `input`, if it is read, and at `output`.
#[inline(always)]
unsafe fn run<T: Tier, J: Job>(s: &Schedule, job: &J, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match n {
            0 => {}
            1..=FEW => few(s, job, 0, input, output, n),
            _ => bulk::<T, J>(s, job, input, output, n),
        }
    }
}

/// More than [`FEW`] bytes. A separate function, since its frame is large and a serial mode would make it for each block.
///
/// # Safety
/// As for [`run`].
#[inline(never)]
#[target_feature(enable = "avx2")]
unsafe fn bulk<T: Tier, J: Job>(s: &Schedule, job: &J, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise; a batch longer than the rest works in the buffer.
    unsafe {
        let (mut keys, groups) = (Keys::new(s), job.groups());
        // Written only as far as it is used: zeroing all of it costs measurable time with one group.
        let mut state = MaybeUninit::<[Group; GROUPS]>::uninit();
        let state = state.as_mut_ptr().cast::<Group>();
        let used = n.div_ceil(GROUP_BYTES).min(GROUPS);
        let mut done = 0;
        while n - done > FEW {
            let count = (n - done).div_ceil(GROUP_BYTES).min(GROUPS);
            let here = (n - done).min(GROUP_BYTES * count);
            let (from, to) = (input.wrapping_add(done), output.add(done));
            let first = done / 8;
            if here == GROUP_BYTES * count {
                batch::<T, J>(s, &keys, &groups, state, Batch { count, first, input: from, output: to });
            } else {
                let mut buffer = MaybeUninit::<[Group; GROUPS]>::uninit();
                let at = buffer.as_mut_ptr().cast::<u8>();
                at.write_bytes(0, GROUP_BYTES * count);
                if J::READS {
                    from.copy_to_nonoverlapping(at, here);
                }
                batch::<T, J>(s, &keys, &groups, state, Batch { count, first, input: at, output: at });
                to.copy_from_nonoverlapping(at, here);
                wipe(core::slice::from_raw_parts_mut(at, GROUP_BYTES * count));
            }
            done += here;
        }
        if done < n {
            few(s, job, done / 8, input.wrapping_add(done), output.add(done), n - done);
        }
        keys.wipe();
        wipe(core::slice::from_raw_parts_mut(state.cast(), GROUP_BYTES * used));
    }
}

/// # Safety
/// See `Kernels::blocks`; the tier's features.
#[target_feature(enable = "avx2")]
unsafe fn blocks<T: Tier>(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { run::<T, _>(s, &Blocks(s.order), input, output, 8 * n) }
}

/// # Safety
/// See `Kernels::counter`; the tier's features.
#[target_feature(enable = "avx2")]
unsafe fn counter<T: Tier>(s: &Schedule, counter: Counter, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { run::<T, _>(s, &Count::<true>(counter), input, output, n) }
}

/// # Safety
/// See `Kernels::keystream`; the tier's features.
#[target_feature(enable = "avx2")]
unsafe fn keystream<T: Tier>(s: &Schedule, counter: Counter, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { run::<T, _>(s, &Count::<false>(counter), core::ptr::null(), output, 8 * n) }
}

/// # Safety
/// See `Kernels::set_lane`.
unsafe fn set_lane(keys: &mut [Block], lane: usize, words: &[u32; 8]) {
    let (group, place) = (lane / GROUP, planes::place(lane % GROUP));
    // SAFETY: the keys have `lane_keys_blocks` blocks, which are as many bytes, with a greater alignment.
    let keys = unsafe { &mut *keys.as_mut_ptr().cast::<LaneKeys>() };
    for (planes, word) in keys.planes.iter_mut().zip(words) {
        for (plane, byte) in planes[group].iter_mut().zip(word.to_le_bytes()) {
            plane[place] = byte;
        }
    }
    if lane < quadwords::BLOCKS {
        for (lanes, &word) in keys.words.iter_mut().zip(words) {
            lanes[lane] = word;
        }
    }
}

/// # Safety
/// See `Kernels::lanes`; the tier's features.
#[target_feature(enable = "avx2")]
unsafe fn lanes<T: Tier>(keys: &[Block], sbox: Sbox, order: ByteOrder, data: &mut LaneBlocks, n: usize) {
    const { assert!(LANES == GROUPS * GROUP) };
    if n == 0 {
        return;
    }
    let count = n.div_ceil(GROUP);
    let at = data.as_mut_ptr().cast::<u8>();
    // SAFETY: the caller's promise; `data` has all four groups, `keys` as in `set_lane`.
    unsafe {
        let keys = &*keys.as_ptr().cast::<LaneKeys>();
        if n <= quadwords::BLOCKS {
            let blocks = quadwords::swap(_mm256_loadu_si256(at.cast()), order);
            let out = quadwords::lane_rounds(&QUADWORDS[sbox as usize], &keys.words, blocks);
            _mm256_storeu_si256(at.cast(), quadwords::swap(out, order));
            return;
        }
        let mut state = MaybeUninit::<[Group; GROUPS]>::uninit();
        let state = state.as_mut_ptr().cast::<Group>();
        for q in 0..count {
            state.add(q).write(planes::load(at.add(GROUP_BYTES * q), order));
        }
        T::LANES[count - 1](&PLANES[sbox as usize], &keys.planes, state);
        for q in 0..count {
            let out = planes::unload(state.add(q).read(), order);
            for k in 0..8 {
                _mm256_storeu_si256(at.add(GROUP_BYTES * q + 32 * k).cast(), out[k]);
            }
        }
        wipe(core::slice::from_raw_parts_mut(state.cast(), GROUP_BYTES * count));
    }
}
