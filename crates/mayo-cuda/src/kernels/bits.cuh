// Verification with expanded keys by products of bits on tensor cores (BMMA), beside the masks of `products.cuh`.
//
// A product in GF(16) is one of GF(2): the scalar is a 4 x 4 matrix of bits. Row r of P gives, for every coefficient j of its
// m-vectors, R_r[b][j] = sum over c of P[r][c][j] s_b[c]; that is a product of the scalars' bits (four rows to a vector s_b, four
// bits to a column c) by the bits of P (four bits to a column c, a column to a coefficient), and parities of the counts are the
// bits of R. u[a][b] = sum over r of s_a[r] R_r[b] is another one, with the rows of P in place of its columns.
//
// Only x_a^T P x_b + x_b^T P x_a is wanted, so that an entry may stand at (r, c) or at (c, r). Rows and columns go by blocks of
// eight, and of two blocks either may be the row: they are shared out such that every row of P needs eight blocks of columns at
// most, 64 entries, one step of the instruction, and few places stay empty. Within a block entries stand below the diagonal.
//
// A warp takes eight coefficients of SIGS signatures of one key, from P to u; warps of a block share the scalars' bits
// alone. All addresses are public, and nothing branches on what is loaded.
#pragma once

// Eight words of eight nibbles, transposed.
DEVICE void transpose_nibbles(u32 (&x)[8]) {
    UNROLL for (int i = 0; i < 4; i++) {
        u32 a = x[i], b = x[i + 4];
        x[i] = (a & 0x0000ffffu) | (b << 16);
        x[i + 4] = (a >> 16) | (b & 0xffff0000u);
    }
    UNROLL for (int h = 0; h < 8; h += 4) {
        UNROLL for (int i = h; i < h + 2; i++) {
            u32 a = x[i], b = x[i + 2];
            x[i] = (a & 0x00ff00ffu) | ((b & 0x00ff00ffu) << 8);
            x[i + 2] = ((a >> 8) & 0x00ff00ffu) | (b & 0xff00ff00u);
        }
    }
    UNROLL for (int i = 0; i < 8; i += 2) {
        u32 a = x[i], b = x[i + 1];
        x[i] = (a & 0x0f0f0f0fu) | ((b & 0x0f0f0f0fu) << 4);
        x[i + 1] = ((a >> 4) & 0x0f0f0f0fu) | (b & 0xf0f0f0f0u);
    }
}

// Bits of `a` where the mask has ones, of `b` elsewhere.
template <u32 MASK> DEVICE u32 merge(u32 a, u32 b) { return (a & MASK) | (b & ~MASK); }

// Which blocks are whose, and how P lies for them.
//
// An odd number of blocks up to 15: a block has itself and the half of the others that follow it, in a circle. MAYO-5 has 20: seven
// heavy ones with two tasks of eight blocks each, thirteen light ones with one. Circles among the heavy and among the light
// ones; a heavy block has all light ones but that of its own number, which has it instead.
template <class S> struct BitLayout {
    static constexpr int BLOCKS = ceil_div(S::N, 8);
    static constexpr int HEAVY = BLOCKS == 20 ? 7 : 0, LIGHT = BLOCKS - HEAVY;
    static constexpr int HEAVY_CIRCLE = (HEAVY + 1) / 2, LIGHT_CIRCLE = (LIGHT + 1) / 2;
    static constexpr int SLOTS = HEAVY ? 8 : LIGHT_CIRCLE;
    static constexpr int TASKS = 2 * HEAVY + LIGHT;
    static_assert(LIGHT % 2 == 1 && (HEAVY == 0 || HEAVY % 2 == 1), "circles are odd");
    static_assert(LIGHT_CIRCLE + (HEAVY ? 1 : 0) <= 8 && SLOTS > 4, "a light block has one task");
    static_assert(HEAVY == 0 || HEAVY_CIRCLE + LIGHT - 1 == 16, "a heavy block fills its two");
    // Sums of eight bits each lie side by side (`Bits::chain`): a row's count may reach 256 in the last of them only. A task
    // with a block of its own row has at most 63 entries in all rows but the last; a heavy block's second task has the last
    // block, of which two columns are there.
    static_assert(HEAVY == 0 || (HEAVY < LIGHT && S::N % 8 != 0), "the last block is not full, and in every second task");
    // A lane takes two slots, which lie side by side; the lanes that get none multiply zeros.
    static constexpr int PAIRED = SLOTS / 2;
    static_assert(SLOTS % 2 == 0, "slots come in pairs");
    // Words of m-vectors, and words that a key takes. For each word of the m-vectors and task: even rows and odd ones; of these two and
    // two, the last first; pairs of slots; eight coefficients; two rows; the two slots of a pair.
    static constexpr int WORDS = S::WS * S::SLICES;
    static constexpr int KEY = WORDS * TASKS * SLOTS * 64;

    DEVICE u32 row_block(u32 task) {
        if constexpr (HEAVY > 0) {
            if (task < 2 * HEAVY) return task / 2;
        }
        return task - HEAVY;
    }

    // Whether a task adds to what the one before it found for the same rows.
    DEVICE bool adds(u32 task) {
        if constexpr (HEAVY > 0) return task < 2 * HEAVY && task % 2;
        return false;
    }

    // The block of columns in a slot of a task; BLOCKS where there is none.
    DEVICE u32 column_block(u32 task, u32 slot) {
        if (slot >= SLOTS) return BLOCKS;
        u32 light = task - 2 * HEAVY;
        if constexpr (HEAVY > 0) {
            if (task < 2 * HEAVY) {
                u32 heavy = task / 2, at = task % 2 * 8 + slot;
                if (at < HEAVY_CIRCLE) return (heavy + at) % HEAVY;
                at -= HEAVY_CIRCLE;
                return HEAVY + (at < heavy ? at : at + 1);
            }
            if (slot == LIGHT_CIRCLE) return light < HEAVY ? light : BLOCKS;
        }
        return HEAVY + (light + slot) % LIGHT;
    }

    // Where P[r][c] lies among P1, P2 and P3, for r <= c.
    DEVICE u32 vector_of(u32 r, u32 c) {
        if (c < S::V) return triangle(S::V, r, c);
        if (r < S::V) return S::P1_VECS + r * S::O + c - S::V;
        return S::P12_VECS + triangle(S::O, r - S::V, c - S::V);
    }

    // Keys as `Expansion` leaves them, `total` vectors each, laid for `Bits`. A thread for a row of a slot.
    DEVICE void lay(u32 count, const u32 *p, u32 total, u32 *out) {
        u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
        constexpr u32 EACH = KEY / 8;
        if (at >= (u64)count * EACH) return;
        u32 op = (u32)(at / EACH), rest = (u32)(at % EACH);
        u32 i = rest % 8, slot = rest / 8 % SLOTS, task = rest / 8 / SLOTS % TASKS, word = rest / 8 / SLOTS / TASKS;
        u32 row = row_block(task), column = column_block(task, slot), r = row * 8 + i;
        const u32 *own = p + ((u64)op * S::SLICES + word / S::WS) * total * S::WS + word % S::WS;
        u32 x[8];
        UNROLL for (int j = 0; j < 8; j++) {
            u32 c = column * 8 + j;
            bool there = r < S::N && c < S::N && (column != row || c <= r);
            x[j] = there ? own[(u64)(r < c ? vector_of(r, c) : vector_of(c, r)) * S::WS] : 0u;
        }
        transpose_nibbles(x);
        u32 *to = out + (u64)op * KEY + (u64)(word * TASKS + task) * (SLOTS * 64) + slot % PAIRED * 32 + slot / PAIRED;
        u32 turn = 3 - i / 2;
        to += (i % 2 * 2 + turn / 2) * (PAIRED * 32) + turn % 2 * 2;
        UNROLL for (int j = 0; j < 8; j++) to[j * 4] = x[j];
    }
};

// Products for up to SIGS signatures of one key, by WARPS warps to a block.
template <class S, int SIGS, int WARPS_EACH> struct Bits {
    typedef BitLayout<S> B;
    static constexpr int K = S::K, BLOCKS = B::BLOCKS;
    static constexpr int VECTORS = SIGS * K;
    // Sixteen rows of the first product are four vectors with four bits each.
    static constexpr int TILES = ceil_div(VECTORS, 4);
    static constexpr int PARTS = B::WORDS / WARPS_EACH;
    static_assert(PARTS * WARPS_EACH == B::WORDS, "every word of an m-vector has a warp");
    static constexpr int THREADS = 32 * WARPS_EACH;
    // The scalars' bits: a uint4 for each vector and block of columns, a block of zeros behind the last. The distance of two blocks
    // is two uint4 modulo eight, so that a half-warp's accesses meet in no bank but by the circle's end.
    static constexpr int ACROSS = (4 * TILES + 5) / 8 * 8 + 2;
    static_assert(ACROSS >= 4 * TILES, "all vectors of all tiles");
    static constexpr int TABLE = (BLOCKS + 1) * ACROSS * 4;
    // R: for each vector and block of rows eight words, one for each coefficient; an odd distance, for the banks.
    static constexpr int HIGH = BLOCKS % 2 ? BLOCKS : BLOCKS + 1;
    static constexpr int SUMS = VECTORS * HIGH * 8;
    static constexpr int SHARED = TABLE + WARPS_EACH * (SUMS + K * K);
    // The second product: four vectors a to a tile, 64 rows of P to a step.
    static constexpr int LEFT = ceil_div(K, 4), STEPS = ceil_div(BLOCKS, 8);

    // For eight scalars, a nibble each: bit e of nibble c of word i is bit i of scalar c times x^e. Words 0, 2, 1, 3.
    DEVICE uint4 matrices(u32 s) {
        u32 x[4], bits[4];
        x[0] = s;
        UNROLL for (int e = 1; e < 4; e++) x[e] = times_x(x[e - 1]);
        UNROLL for (int i = 0; i < 4; i++) {
            bits[i] = 0;
            UNROLL for (int e = 0; e < 4; e++) bits[i] |= ((x[e] >> i) & 0x11111111u) << e;
        }
        return make_uint4(bits[0], bits[2], bits[1], bits[3]);
    }

    // Scalars 8 `block`.. of vector `b` of a signature. Behind the last vector lies the salt, so that whole words may be read.
    DEVICE u32 scalars(const u8 *signature, u32 b, u32 block) {
        u32 at = b * S::N + block * 8;
        const u8 *from = signature + at / 2;
        u32 word = __funnelshift_r(load_bytes(from), from[4], at % 2 * 4);
        constexpr u32 LAST = S::N % 8 ? (1u << (S::N % 8 * 4)) - 1 : ~0u;
        return block == BLOCKS - 1 ? word & LAST : word;
    }

    // Counts of four rows in one word, eight bits each: every second row, from `half` on, the first lowest. Its lowest bits: of `d`
    // the parities of bit h, and two above them those of bit h + 2; anything elsewhere.
    DEVICE void chain(u32 (&out)[TILES][2], const u32 (&a)[TILES][4], const u32 *from) {
        uint4 first = *(const uint4 *)from, second = *(const uint4 *)(from + B::PAIRED * 32);
        u32 right[4][2] = {{first.x, first.y}, {first.z, first.w}, {second.x, second.y}, {second.z, second.w}};
        int32_t d[TILES][4];
        UNROLL for (int t = 0; t < TILES; t++) {
            UNROLL for (int i = 0; i < 4; i++) d[t][i] = 0;
        }
        UNROLL for (int row = 0; row < 4; row++) {
            UNROLL for (int t = 0; t < TILES; t++) {
                if (row) {
                    UNROLL for (int i = 0; i < 4; i++) d[t][i] = (int32_t)((u32)d[t][i] << 8);
                }
                lw_mma_b1(d[t], a[t], right[row]);
            }
        }
        UNROLL for (int t = 0; t < TILES; t++) {
            out[t][0] = merge<0x01010101u>((u32)d[t][0], (u32)d[t][2] << 2);
            out[t][1] = merge<0x01010101u>((u32)d[t][1], (u32)d[t][3] << 2);
        }
    }

    // All R of eight coefficients; `key` points at them.
    DEVICE void rows(const u32 *key, const uint2 *table, u32 *sums) {
        u32 lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, v = g / 2, h = g % 2;
        // A lane without slots loads what another one does: it meets zeros.
        bool idle = t >= B::PAIRED;
        const u32 *own = key + (idle ? 0 : t) * 32 + g * 4;
        ROLLED for (u32 task = 0; task < B::TASKS; task++) {
            u32 row = B::row_block(task);
            const uint2 *low = table + (B::column_block(task, idle ? B::SLOTS : t) * ACROSS + v) * 2 + h;
            const uint2 *high = table + (B::column_block(task, idle ? B::SLOTS : t + B::PAIRED) * ACROSS + v) * 2 + h;
            u32 a[TILES][4];
            UNROLL for (int tile = 0; tile < TILES; tile++) {
                uint2 first = low[tile * 8], second = high[tile * 8];
                a[tile][0] = first.x;
                a[tile][1] = first.y;
                a[tile][2] = second.x;
                a[tile][3] = second.y;
            }
            const u32 *from = own + task * (B::SLOTS * 64);
            u32 even[TILES][2], odd[TILES][2];
            chain(even, a, from);
            chain(odd, a, from + B::SLOTS * 32);
            u32 *to = sums + row * 8 + 2 * t + h;
            UNROLL for (int tile = 0; tile < TILES; tile++) {
                u32 w0 = merge<0x0f0f0f0fu>(even[tile][0], odd[tile][0] << 4);
                u32 w1 = merge<0x0f0f0f0fu>(even[tile][1], odd[tile][1] << 4);
                // Bits h and h + 2 of coefficients 2 t and 2 t + 1: the neighbour has the others.
                u32 got = __shfl_xor_sync(LW_ALL, h ? w0 : w1, 4);
                u32 word = merge<0x55555555u>(h ? got : w0, (h ? w1 : got) << 1);
                u32 vector = tile * 4 + v;
                if (4 * tile + 3 < VECTORS || vector < VECTORS) {
                    u32 *at = to + vector * (HIGH * 8);
                    *at = B::adds(task) ? *at ^ word : word;
                }
            }
        }
    }

    // Q[a][b] for one signature: its scalars' bits are from `table` on, its R from `sums` on.
    DEVICE void squares(const uint2 *table, const u32 *sums, u32 *q) {
        u32 lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, v = g / 2, h = g % 2;
        ROLLED for (u32 left = 0; left < LEFT; left++) {
            // The last tile's rows may be another signature's, or nobody's, and count for nothing.
            u32 own = left * 4 + v < K ? left * 4 + v : K - 1;
            u32 a[STEPS][4];
            UNROLL for (u32 step = 0; step < STEPS; step++) {
                u32 low = step * 8 + t, high = low + 4;
                uint2 first = table[((low < BLOCKS ? low : BLOCKS) * ACROSS + own) * 2 + h];
                uint2 second = table[((high < BLOCKS ? high : BLOCKS) * ACROSS + own) * 2 + h];
                a[step][0] = first.x;
                a[step][1] = first.y;
                a[step][2] = second.x;
                a[step][3] = second.y;
            }
            UNROLL for (int group = 0; group < K; group += 8) {
                u32 y[8];
                UNROLL for (int i = 0; i < 8; i++) {
                    y[i] = 0;
                    if (group + i < K) {
                        int32_t d[4] = {0, 0, 0, 0};
                        UNROLL for (u32 step = 0; step < STEPS; step++) {
                            u32 low = step * 8 + t, high = low + 4;
                            const u32 *from = sums + (group + i) * (HIGH * 8) + g;
                            u32 b[2] = {from[(low < BLOCKS ? low : BLOCKS - 1) * 8], from[(high < BLOCKS ? high : BLOCKS - 1) * 8]};
                            lw_mma_b1(d, a[step], b);
                        }
                        // Nibbles 0 and 1 of a byte: coefficients 2 t and 2 t + 1.
                        u32 x = merge<1u>((u32)d[0], (u32)d[2] << 2), z = merge<1u>((u32)d[1], (u32)d[3] << 2);
                        y[i] = ((x & 5u) | (z & 5u) << 4) << (8 * t + h);
                    }
                }
                // Eight lanes have a part of each word: after three exchanges each of them has one whole.
                UNROLL for (int half = 4; half > 0; half /= 2) {
                    bool up = (lane & half) != 0;
                    UNROLL for (int i = 0; i < half; i++) {
                        u32 other = __shfl_xor_sync(LW_ALL, up ? y[i] : y[i + half], half);
                        y[i] = (up ? y[i + half] : y[i]) | other;
                    }
                }
                u32 b = group + lane % 8;
                if (left * 4 + v < K && b < K) q[(left * 4 + v) * K + b] = y[0];
            }
        }
    }

    // u of signatures. `keys`: which key is whose; null: the first is everybody's.
    DEVICE void verify(u32 count, const u32 *keys, const u32 *bits, const u32 *lambda, const u8 *signatures, u32 *u) {
        LW_SHARED(u32, shared);
        u32 first = blockIdx.x / PARTS * SIGS, part = blockIdx.x % PARTS;
        for (u32 i = threadIdx.x; i < (BLOCKS + 1) * ACROSS; i += blockDim.x) {
            u32 block = i / ACROSS, vector = i % ACROSS, op = first + vector / K, word = 0;
            if (block < BLOCKS && vector < VECTORS && op < count) {
                word = scalars(signatures + (u64)op * S::SIG_BYTES, vector % K, block);
            }
            ((uint4 *)shared)[i] = matrices(word);
        }
        __syncthreads();
        const uint2 *table = (const uint2 *)shared;
        u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, word = part * WARPS_EACH + warp;
        u32 *sums = shared + TABLE + warp * (SUMS + K * K), *q = sums + SUMS;
        u32 key = keys ? keys[first] : 0u;
        rows(bits + (u64)key * B::KEY + (u64)word * (B::TASKS * B::SLOTS * 64), table, sums);
        __syncwarp();
        ROLLED for (u32 i = 0; i < SIGS; i++) {
            u32 op = first + i;
            if (op >= count) break;
            u32 *own = sums + i * (K * HIGH * 8);
            if (S::LINEAR && lane < BLOCKS) {
                const u32 *term = lambda + ((u64)op * S::SLICES + word / S::WS) * S::N * S::WS + word % S::WS;
                u32 x[8];
                UNROLL for (int j = 0; j < 8; j++) x[j] = lane * 8 + j < S::N ? term[(lane * 8 + j) * S::WS] : 0u;
                transpose_nibbles(x);
                UNROLL for (int j = 0; j < 8; j++) own[lane * 8 + j] ^= x[j];
            }
            __syncwarp();
            squares(table + i * K * 2, own, q);
            __syncwarp();
            u32 *to = u + (u64)op * S::PAIRS * B::WORDS + word;
            for (u32 at = lane; at < S::PAIRS; at += 32) {
                u32 a = S::schedule(at, 0), b = S::schedule(at, 1);
                to[at * B::WORDS] = q[a * K + b] ^ (a != b ? q[b * K + a] : 0u);
            }
            __syncwarp();
        }
    }
};

// Signatures of one key that share its bits, and warps to a block: by what registers and shared memory allow.
template <class S> struct BitShape {
    static constexpr int MANY = S::K < 8 ? 4 : 2;
    static constexpr int WORDS = S::WS * S::SLICES;
    static constexpr int WARPS_EACH = WORDS == 18 ? 3 : WORDS / 2;
    typedef Bits<S, 1, WARPS_EACH> Each;
    typedef Bits<S, MANY, WARPS_EACH> One;
};
