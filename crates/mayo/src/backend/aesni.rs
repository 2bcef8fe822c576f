//! AES-128 counter mode on the CPU's AES instructions: one loop, stamped for AES-NI (16 bytes a register), VAES-256
//! and, from `avx512/expand.rs`, VAES-512.
//!
//! **Layout.** A register holds 1, 2 or 4 consecutive blocks as they lie in memory; round keys are broadcast to all of
//! them. A *step* is eight registers, enough to hide a latency of four cycles at two instructions a cycle.
//!
//! **Counter caching.** The four counting bytes (12 to 15) go to four different columns in round 1, and round 2 takes
//! one byte from each column into every column of its result. So two rounds are additive in those bytes:
//! `round2(block + j) = round2(block) xor table[j]` for the 256 blocks from a multiple of 256, where the table depends
//! on key and nonce alone. Streams long enough to repay the table spend eight AES instructions on a block, not ten.
//! (Good for fewer than 2^32 blocks.)
//!
//! **Cost model.** `aesenc` issues twice a cycle at 128 and 256 bits; at 512 bits twice on Zen 5, once on Zen 4, which
//! splits it. Eight of them per register (figures below: nine, one round cached) give these floors, and Zen 4 (EPYC
//! 9004 class, 1.41 core cycles to a tick of the time-stamp counter) gives these medians of 300 calls between fenced
//! `rdtsc` reads, in ticks per byte:
//!
//! | width | floor, core cycles per byte | floor, ticks | 144 495 bytes | 16 384 bytes |
//! |---|---|---|---|---|
//! | AES-NI | 0.281 | 0.199 | 0.220 | 0.248 |
//! | VAES-256 | 0.141 | 0.100 | 0.107 | 0.129 |
//! | VAES-512 | 0.141 (Zen 5: 0.070) | 0.100 | 0.104 | 0.127 |
//!
//! Four, eight and sixteen 512-bit registers to a step are equal within 2 %; sixteen are slower on short streams.
//!
//! Source: FIPS 197, SP 800-38A section 6.5; the caching goes back to Bernstein and Schwabe, "New AES software speed
//! records", Indocrypt 2008. Leak class: public inputs (the seed of P), in constant time nevertheless. Nothing is
//! wiped.

use core::arch::x86_64::*;

/// Streams from this many bytes on build the table: it costs 256 first rounds and saves one per block.
pub(crate) const TABLE_FROM: usize = 8192;

/// The round keys of AES-128 (FIPS 197, section 5.2).
#[target_feature(enable = "aes,sse4.1")]
#[inline]
pub(crate) fn round_keys(key: &[u8; 16]) -> [__m128i; 11] {
    #[target_feature(enable = "aes,sse4.1")]
    #[inline]
    fn next<const CONSTANT: i32>(previous: __m128i) -> __m128i {
        let turned = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<CONSTANT>(previous));
        // Word i becomes the sum of words 0 to i.
        let sums = _mm_xor_si128(previous, _mm_slli_si128::<4>(previous));
        let sums = _mm_xor_si128(sums, _mm_slli_si128::<8>(sums));
        _mm_xor_si128(sums, turned)
    }
    // SAFETY: sixteen readable bytes; the load needs no alignment.
    let k0 = unsafe { _mm_loadu_si128(key.as_ptr().cast()) };
    let k1 = next::<0x01>(k0);
    let k2 = next::<0x02>(k1);
    let k3 = next::<0x04>(k2);
    let k4 = next::<0x08>(k3);
    let k5 = next::<0x10>(k4);
    let k6 = next::<0x20>(k5);
    let k7 = next::<0x40>(k6);
    let k8 = next::<0x80>(k7);
    let k9 = next::<0x1b>(k8);
    let k10 = next::<0x36>(k9);
    [k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10]
}

/// Stamps `aes128_ctr` and `aes128_ctr_xor` for one register width.
///
/// `broadcast` copies a block to every block of a register, `counters(c)` makes the blocks `BE128(c)`, `BE128(c + 1)`,
/// ....
macro_rules! counter_mode {
    (
        features: $features:literal, register: $register:ty, blocks: $blocks:literal, step: $step:literal,
        store: $store:path, xor: $xor:path, round: $round:path, last_round: $last_round:path,
        broadcast: $broadcast:path, counters: $counters:path $(,)?
    ) => {
        /// Bytes in a register, in a step, and in 256 blocks.
        const REGISTER_BYTES: usize = 16 * $blocks;
        pub(crate) const STEP_BYTES: usize = $step * REGISTER_BYTES;
        const SPAN_BYTES: usize = 16 * 256;

        /// AES-128 counter mode with a zero nonce: block `i` of the stream is `AES(key, BE128(i))`, from
        /// `i = first_block`, cut to `out.len()` bytes. Public data.
        #[target_feature(enable = $features)]
        pub(crate) fn aes128_ctr(key: &[u8; 16], first_block: u32, out: &mut [u8]) {
            stream(key, &[0; 16], first_block, out);
        }

        /// AES-128 over `nonce xor (0^96 || BE32(i))`, from `i = 0`, cut to `out.len()` bytes (fewer than 2^36). Public
        /// data.
        #[target_feature(enable = $features)]
        pub(crate) fn aes128_ctr_xor(key: &[u8; 16], nonce: &[u8; 16], out: &mut [u8]) {
            stream(key, nonce, 0, out);
        }

        #[target_feature(enable = $features)]
        fn stream(key: &[u8; 16], nonce: &[u8; 16], first_block: u32, out: &mut [u8]) {
            let (keys, whitening) = schedule(key, nonce);
            let block = u64::from(first_block);
            if out.len() < $crate::backend::aesni::TABLE_FROM {
                return plain(&keys, whitening, block, out);
            }
            let (lead, out) = out.split_at_mut(16 * (block.wrapping_neg() % 256) as usize);
            plain(&keys, whitening, block, lead);
            Cached::new(keys, whitening, block.next_multiple_of(256)).rest(out);
        }

        /// The round keys, each in every block of a register, and the first with the nonce.
        #[target_feature(enable = $features)]
        #[inline]
        pub(crate) fn schedule(key: &[u8; 16], nonce: &[u8; 16]) -> ([$register; 11], $register) {
            let small = $crate::backend::aesni::round_keys(key);
            let mut keys = [$broadcast(small[0]); 11];
            for (wide, narrow) in keys[1..].iter_mut().zip(&small[1..]) {
                *wide = $broadcast(*narrow);
            }
            // SAFETY: sixteen readable bytes; the load needs no alignment.
            let nonce = unsafe { _mm_loadu_si128(nonce.as_ptr().cast()) };
            (keys, $xor(keys[0], $broadcast(nonce)))
        }

        /// A stream whose first two rounds come from the table.
        pub(crate) struct Cached {
            keys: [$register; 11],
            whitening: $register,
            table: [$register; 256 / $blocks],
            /// Two rounds of the first of the 256 blocks that are being written.
            base: $register,
            /// The next block.
            pub(crate) block: u64,
        }

        impl Cached {
            /// A stream from `block`, a multiple of 256.
            #[target_feature(enable = $features)]
            pub(crate) fn new(keys: [$register; 11], whitening: $register, block: u64) -> Cached {
                let zero = $xor(whitening, whitening);
                let two_rounds = |state, key| $round($round(state, keys[1]), key);
                let origin = two_rounds($xor(whitening, $broadcast(_mm_setzero_si128())), zero);
                let mut cached = Cached { keys, whitening, table: [zero; 256 / $blocks], base: zero, block };
                for (n, entry) in cached.table.iter_mut().enumerate() {
                    let counted = $xor(whitening, $counters((n * $blocks) as u64));
                    *entry = $xor(two_rounds(counted, zero), origin);
                }
                cached
            }

            /// The next step after two rounds.
            #[target_feature(enable = $features)]
            #[inline]
            pub(crate) fn open(&mut self) -> [$register; $step] {
                let at = (self.block % 256) as usize / $blocks;
                if at == 0 {
                    self.base = self.two_rounds_of(self.block);
                }
                self.block += $step * $blocks;
                self.after_two_rounds(at / $step, self.base)
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn two_rounds_of(&self, block: u64) -> $register {
                let first = _mm_set_epi64x(block.swap_bytes() as i64, 0);
                let first = $xor(self.whitening, $broadcast(first));
                $round($round(first, self.keys[1]), self.keys[2])
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn after_two_rounds(&self, step: usize, base: $register) -> [$register; $step] {
                let mut state = self.table.as_chunks::<$step>().0[step];
                for s in &mut state {
                    *s = $xor(*s, base);
                }
                state
            }

            /// Round `n` of a step.
            #[target_feature(enable = $features)]
            #[inline]
            pub(crate) fn round(&self, n: usize, state: &mut [$register; $step]) {
                round(self.keys[n], state);
            }

            /// The last round of a step, and its bytes.
            #[target_feature(enable = $features)]
            #[inline]
            pub(crate) fn close(&self, state: [$register; $step], out: &mut [u8; STEP_BYTES]) {
                close(self.keys[10], state, out);
            }

            /// The remaining rounds of a step, and its bytes.
            #[target_feature(enable = $features)]
            #[inline]
            fn finish(&self, mut state: [$register; $step], out: &mut [u8; STEP_BYTES]) {
                for n in 3..10 {
                    self.round(n, &mut state);
                }
                self.close(state, out);
            }

            /// Writes the rest of the stream.
            #[target_feature(enable = $features)]
            pub(crate) fn rest(&mut self, out: &mut [u8]) {
                // To the end of the 256 blocks that were begun, in whole steps.
                let begun = 16 * (self.block.wrapping_neg() % 256) as usize;
                let (head, out) = out.split_at_mut(begun.min(out.len() - out.len() % STEP_BYTES));
                for step in head.as_chunks_mut().0 {
                    let state = self.open();
                    self.finish(state, step);
                }
                let (spans, out) = out.as_chunks_mut::<SPAN_BYTES>();
                for span in spans {
                    let base = self.two_rounds_of(self.block);
                    for (n, step) in span.as_chunks_mut().0.iter_mut().enumerate() {
                        self.finish(self.after_two_rounds(n, base), step);
                    }
                    self.block += 256;
                }
                plain(&self.keys, self.whitening, self.block, out);
            }
        }

        /// Writes the stream without the table.
        #[target_feature(enable = $features)]
        fn plain(keys: &[$register; 11], whitening: $register, mut block: u64, out: &mut [u8]) {
            let (steps, rest) = out.as_chunks_mut::<STEP_BYTES>();
            for step in steps {
                plain_step(keys, whitening, block, step);
                block += $step * $blocks;
            }
            if !rest.is_empty() {
                let mut buffer = [0; STEP_BYTES];
                plain_step(keys, whitening, block, &mut buffer);
                rest.copy_from_slice(&buffer[..rest.len()]);
            }
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn plain_step(keys: &[$register; 11], whitening: $register, block: u64, out: &mut [u8; STEP_BYTES]) {
            let mut state = [whitening; $step];
            for (n, s) in state.iter_mut().enumerate() {
                *s = $xor(*s, $counters(block + (n * $blocks) as u64));
            }
            for key in &keys[1..10] {
                round(*key, &mut state);
            }
            close(keys[10], state, out);
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn round(key: $register, state: &mut [$register; $step]) {
            for s in state {
                *s = $round(*s, key);
            }
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn close(key: $register, state: [$register; $step], out: &mut [u8; STEP_BYTES]) {
            for (s, bytes) in state.into_iter().zip(out.as_chunks_mut::<REGISTER_BYTES>().0) {
                // SAFETY: `bytes` is as long as a register, and the store needs no alignment.
                unsafe { $store(bytes.as_mut_ptr().cast(), $last_round(s, key)) };
            }
        }
    };
}
pub(crate) use counter_mode;

#[target_feature(enable = "aes,sse4.1")]
#[inline]
fn one_block(block: __m128i) -> __m128i {
    block
}

#[target_feature(enable = "aes,sse4.1")]
#[inline]
fn one_counter(block: u64) -> __m128i {
    _mm_set_epi64x(block.swap_bytes() as i64, 0)
}

counter_mode! {
    features: "aes,sse4.1", register: __m128i, blocks: 1, step: 8,
    store: _mm_storeu_si128, xor: _mm_xor_si128, round: _mm_aesenc_si128, last_round: _mm_aesenclast_si128,
    broadcast: one_block, counters: one_counter,
}

/// The same with two blocks in a register, for CPUs that have VAES but not AVX-512 (Zen 3, Alder Lake).
pub(crate) mod vaes256 {
    use core::arch::x86_64::*;

    #[target_feature(enable = "aes,vaes,avx2")]
    #[inline]
    fn counters(block: u64) -> __m256i {
        let counted = _mm256_add_epi64(_mm256_set1_epi64x(block as i64), _mm256_setr_epi64x(0, 0, 0, 1));
        let reverse = _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0809_0a0b_0c0d_0e0f, -1));
        _mm256_shuffle_epi8(counted, reverse)
    }

    counter_mode! {
        features: "aes,vaes,avx2", register: __m256i, blocks: 2, step: 8,
        store: _mm256_storeu_si256, xor: _mm256_xor_si256,
        round: _mm256_aesenc_epi128, last_round: _mm256_aesenclast_epi128,
        broadcast: _mm256_broadcastsi128_si256, counters: counters,
    }
}
