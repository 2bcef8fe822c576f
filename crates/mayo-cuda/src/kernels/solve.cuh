// The linear system of a signature, by one warp: A from M by whipping, Gauss-Jordan in registers, and s from x.
//
// A lane owns the rows lane, lane + 32, ...; a word holds eight columns of a row. For each column the lowest row that is
// free and not 0 there becomes the pivot: found by ballots, sent round by OR-reduction over masks. No address, branch or
// number of steps depends on a secret; released is whether the rank is m. Which rows become pivots changes nothing: the
// pivot columns and the free variables' values determine x.
#pragma once

template <class S> struct Solve {
    typedef Layout<S> L;
    typedef Whip<S> W;
    static constexpr int KO = S::K * S::O;
    // Words of a row of A with y behind it, rows of a lane, words of one x_i.
    static constexpr int WIDE = ceil_div(KO + 1, 8);
    static constexpr int TALL = ceil_div(S::M, 32);
    static constexpr int OW = ceil_div(S::O, 8);
    static constexpr int STEPS = ceil_div(KO, 8);
    // Shared memory: the columns, an odd number of words apart, and x.
    static constexpr int PITCH = W::LONG | 1;
    static constexpr int SHARED = (KO + 1) * PITCH + S::K * OW;

    // Column `col` of A: the sum over j of z^l(i,j) M_j, folded.
    DEVICE void column(const u32 *m, u32 col, u32 *sum) {
        u32 i = col / S::O, c = col % S::O;
        UNROLL for (int w = 0; w < W::LONG; w++) sum[w] = 0;
        ROLLED for (u32 j = 0; j < S::K; j++) {
            u32 l = S::power(i, j), turn = l % 8 * 4, carry = 0;
            const u32 *vector = m + (j * S::O + c) * L::WORDS;
            u32 *to = sum + l / 8;
            UNROLL for (int w = 0; w < L::WORDS; w++) {
                u32 word = vector[w];
                to[w] ^= __funnelshift_l(carry, word, turn);
                carry = word;
            }
            to[L::WORDS] ^= __funnelshift_l(carry, 0u, turn);
        }
        u32 before = 0;
        UNROLL for (int w = 0; w < W::HIGH; w++) {
            u32 next = w + 1 < W::HIGH ? sum[W::BASE + w + 1] : 0u;
            u32 high = __funnelshift_r(sum[W::BASE + w], next, W::SHIFT);
            // Word BASE keeps its low part, which no folded term reaches.
            sum[w] ^= W::folded(before, high);
            before = high;
        }
        sum[W::HIGH] ^= W::folded(before, 0u);
        UNROLL for (int w = 0; w < L::WORDS; w++) sum[w] = W::low(sum[w], w);
    }

    // Eight elements of packed bytes from `at` on, of which `count` are kept.
    DEVICE u32 eight(const u8 *bytes, u32 at, u32 count) {
        u32 word = 0;
        UNROLL for (u32 e = 0; e < 8; e++) {
            if (e < count) word |= nibble(bytes, at + e) << (4 * e);
        }
        return word;
    }

    // One warp. `flags` gets whether there is a solution; if so, `signatures` gets s in front of the salt.
    DEVICE void run(const u32 *list, const u32 *keys, const u32 *us, const u32 *ms, const u8 *targets, const u8 *hashes,
                    const u8 *drawns, const u8 *salts, u8 *signatures, u8 *flags) {
        LW_SHARED(u32, columns);
        u32 lane = threadIdx.x, op = list[blockIdx.x], key = keys ? keys[op] : op;
        const u8 *o = hashes + (u64)key * Hashes<S>::SEED + 16, *vinegar = drawns + (u64)op * Hashes<S>::DRAWN;
        const u8 *free = vinegar + S::K * S::V_BYTES;
        const u32 *m = ms + (u64)op * KO * L::WORDS;
        u32 *xs = columns + (KO + 1) * PITCH;
        for (u32 col = lane; col < KO; col += 32) column(m, col, columns + col * PITCH);
        u32 y = W::run(us + (u64)op * S::PAIRS * L::WORDS) ^ W::target(targets + (u64)op * Hashes<S>::TARGET);
        if (lane < L::WORDS) columns[KO * PITCH + lane] = y;
        __syncwarp();

        u32 a[TALL][WIDE];
        UNROLL for (int s = 0; s < TALL; s++) {
            u32 row = 32 * s + lane;
            UNROLL for (int w = 0; w < WIDE; w++) {
                u32 word = 0;
                UNROLL for (int e = 0; e < 8; e++) {
                    if (8 * w + e <= KO && row < S::M) {
                        word |= ((columns[(8 * w + e) * PITCH + row / 8] >> (row % 8 * 4)) & 15u) << (4 * e);
                    }
                }
                a[s][w] = word;
            }
        }
        // y - A r: the system for what is added to r.
        u32 dot[TALL];
        UNROLL for (int s = 0; s < TALL; s++) dot[s] = 0;
        UNROLL for (int w = 0; w < WIDE; w++) {
            if (8 * w < KO) {
                u32 r = eight(free, 8 * w, KO - 8 * w);
                UNROLL for (int s = 0; s < TALL; s++) dot[s] ^= times_each(a[s][w], r);
            }
        }
        UNROLL for (int s = 0; s < TALL; s++) a[s][KO / 8] ^= sum_nibbles(dot[s]) << (KO % 8 * 4);

        u32 used[TALL], inverses[TALL], pivots[TALL], rank = 0;
        UNROLL for (int s = 0; s < TALL; s++) {
            used[s] = 32 * s + lane < S::M ? 0u : ~0u;
            inverses[s] = 0;
            pivots[s] = ~0u;
        }
        UNROLL for (int w0 = 0; w0 < STEPS; w0++) {
            ROLLED for (int e = 0; e < at_most(KO - 8 * w0, 8); e++) {
                u32 entry[TALL], chosen[TALL], taken = 0, pivot = 0;
                UNROLL for (int s = 0; s < TALL; s++) {
                    entry[s] = (a[s][w0] >> (4 * e)) & 15u;
                    u32 able = __ballot_sync(~0u, mask_nonzero(entry[s]) & ~used[s] & 1u);
                    u32 lowest = able & (0u - able);
                    chosen[s] = mask_of(lowest, lane) & ~taken;
                    taken |= mask_nonzero(able);
                    pivot |= entry[s] & chosen[s];
                }
                pivot = __reduce_or_sync(~0u, pivot);
                PLANT_BRANCH(pivot);
                u32 inverted = inverse(pivot);
                rank += taken & 1u;
                uint4 factor[TALL];
                UNROLL for (int s = 0; s < TALL; s++) {
                    factor[s] = masks_of(times_one(entry[s], inverted) & ~chosen[s]);
                    used[s] |= chosen[s];
                    inverses[s] |= inverted & chosen[s];
                    pivots[s] = (pivots[s] & ~chosen[s]) | ((8 * w0 + e) & chosen[s]);
                }
                UNROLL for (int w = w0; w < WIDE; w++) {
                    u32 p = 0;
                    UNROLL for (int s = 0; s < TALL; s++) p |= a[s][w] & chosen[s];
                    p = __reduce_or_sync(~0u, p);
                    u32 p1 = times_x(p), p2 = times_x(p1), p3 = times_x(p2);
                    UNROLL for (int s = 0; s < TALL; s++) {
                        a[s][w] ^= (p & factor[s].x) ^ (p1 & factor[s].y);
                        a[s][w] ^= (p2 & factor[s].z) ^ (p3 & factor[s].w);
                    }
                }
            }
        }
        u32 solved = lw_declassify16(rank == S::M);

        u32 added[TALL];
        UNROLL for (int s = 0; s < TALL; s++) added[s] = times_one((a[s][KO / 8] >> (KO % 8 * 4)) & 15u, inverses[s]);
        ROLLED for (u32 i = 0; i < S::K; i++) {
            UNROLL for (int w = 0; w < OW; w++) {
                u32 word = 0;
                ROLLED for (int e = 0; e < at_most(S::O - 8 * w, 8); e++) {
                    u32 c = i * S::O + 8 * w + e, x = 0;
                    UNROLL for (int s = 0; s < TALL; s++) x |= added[s] & ~mask_nonzero(pivots[s] ^ c);
                    x = __reduce_or_sync(~0u, x) ^ nibble(free, c);
                    word |= x << (4 * e);
                }
                if (lane == 0) xs[i * OW + w] = word;
            }
        }
        __syncwarp();
        if (solved) {
            u8 *signature = signatures + (u64)op * S::SIG_BYTES;
            constexpr u32 ENCODED = S::SIG_BYTES - S::SALT_BYTES;
            for (u32 byte = lane; byte < ENCODED; byte += 32) {
                u32 both = 0;
                UNROLL for (u32 half = 0; half < 2; half++) {
                    u32 at = 2 * byte + half, i = at / S::N, r = at % S::N;
                    if (i >= S::K) continue;
                    u32 element;
                    if (r < S::V) {
                        u32 products = 0;
                        UNROLL for (int w = 0; w < OW; w++) {
                            products ^= times_each(eight(o, r * S::O + 8 * w, S::O - 8 * w), xs[i * OW + w]);
                        }
                        element = nibble(vinegar + i * S::V_BYTES, r) ^ sum_nibbles(products);
                    } else {
                        element = (xs[i * OW + (r - S::V) / 8] >> ((r - S::V) % 8 * 4)) & 15u;
                    }
                    both |= element << (4 * half);
                }
                signature[byte] = (u8)both;
            }
            for (u32 i = lane; i < S::SALT_BYTES; i += 32) signature[ENCODED + i] = salts[(u64)op * Hashes<S>::SALT + i];
        }
        if (lane == 0) flags[op] = (u8)solved;
        __syncwarp();
        volatile u32 *all = columns;
        for (u32 i = lane; i < SHARED; i += 32) all[i] = 0;
    }
};
