// Products with the quadratic maps. One routine serves key generation, signing and verification.
//
// Given columns x_0 .. x_(T-1) of scalars and the triangular map P, `Gram` computes for pairs (a, b) the m-vector
//     x_a^T P x_b + x_b^T P x_a        (once if a = b)
// in one pass over P: row r gives R_r[b] = sum over c >= r of P[r][c] x_b[c], and Q[a][b] = sum over r of x_a[r] R_r[b].
// The pairs are symmetric in r and c, so an entry may as well count for row c. Of 32 rows and the columns of the same numbers, each
// row therefore takes the half behind it in a circle: all lanes have an entry at each step, where half of the triangle is empty.
//   key generation   columns of O over the vinegar rows, R_r[j] += P2[r][j]: the pairs are P3
//   signing          vinegar vectors and columns of O, P2 likewise: pairs of vinegar vectors are u, the others M
//   signing, L known vinegar vectors; M_i = sum over r of v_i[r] L_r
//   verification     the k vectors of a signature over all n rows
// The linear term of round 3 is one more summand of R_r[0].
//
// A block works on one slice of the m-vectors of one operation: slices never meet. Shared memory holds four masks for
// each scalar, and all R_r of the slice. In the first stage a thread owns a row and TG columns of scalars. Lanes of a warp read the
// same scalars, or within the circle those of neighbouring rows, an odd number of masks apart: hence without conflicts. Warps with the same columns are teams, which take turns at the columns of P, so that
// all have equally much to do; each column is on its way while the one before it is used. All addresses are public; scalars act
// through masks alone.
#pragma once

enum Mode { KEYGEN, SIGN, SIGN_EXPANDED, VERIFY };

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
__host__ __device__ constexpr int at_most(int a, int b) { return a < b ? a : b; }

// The columns a thread takes: as many as leave the accumulators (four words each) within 128 registers, in so many groups that 8
// or 12 warps are whole teams, and as few superfluous ones as possible.
constexpr int group_size(int columns, int words) {
    int most = 128 / (4 * words), best = most;
    for (int g = most; 2 * g > most; g--) {
        int groups = ceil_div(columns, g);
        bool teams = 8 % groups == 0 || 12 % groups == 0;
        if (teams && groups * g < ceil_div(columns, best) * best) best = g;
    }
    return best < columns ? best : columns;
}

// Threads of a block that makes L.
static constexpr int LOWER_THREADS = 256;

// Position of (r, c) in the upper triangle of `size` columns, r <= c.
DEVICE u32 triangle(u32 size, u32 r, u32 c) { return r * (2 * size + 1 - r) / 2 + (c - r); }

template <class S, Mode MODE> struct Gram {
    static constexpr int ROWS = MODE == VERIFY ? S::N : S::V;
    // Columns of scalars, and columns of R.
    static constexpr int T = MODE == KEYGEN ? S::O : MODE == SIGN ? S::K + S::O : S::K;
    static constexpr int TR = MODE == SIGN_EXPANDED ? S::K + S::O : T;
    static constexpr int WS = S::WS;
    static constexpr int X = TR * WS;
    static constexpr int TG = group_size(T, WS);
    static constexpr int GROUPS = ceil_div(T, TG);
    static constexpr int WARPS = 8 % GROUPS == 0 ? 8 : 12, TEAMS = WARPS / GROUPS, THREADS = 32 * WARPS;
    static_assert(WARPS % GROUPS == 0, "each warp is of a team");
    // Words from one row's R to the next: an odd number spreads rows over the banks.
    static constexpr int XR = X | 1;
    // The second stage: a thread takes TA scalars of a row and XN of its X words, NX threads apart.
    static constexpr int TA = 4, XN = 4;
    static constexpr int NX = ceil_div(X, XN);
    static constexpr int ITEMS = ceil_div(T, TA) * NX;
    static_assert(ITEMS <= THREADS, "one item to a thread");
    static constexpr int SPLIT = at_most(THREADS / ITEMS, 16);
    // Masks from one row to the next: an odd number spreads rows over the banks. The last group of columns and of scalars may
    // read past the end.
    static constexpr int TP = T | 1;
    static constexpr int MASKS = ROWS * TP + (TG > TA ? TG : TA);
    static constexpr int SHARED = MASKS * 4 + ROWS * XR;
    static constexpr bool SECRET = MODE != VERIFY;

    // Where a row's entries lie: column c at `low + c` for c < v, at `high + c` behind.
    struct Row {
        u32 low, high;
    };
    DEVICE Row row_of(u32 r) {
        Row row;
        if (MODE == VERIFY && r >= S::V) {
            row.low = 0;
            row.high = S::P12_VECS + triangle(S::O, r - S::V, r - S::V) - r;
        } else {
            row.low = triangle(S::V, r, r) - r;
            row.high = S::P1_VECS + r * S::O - S::V;
        }
        return row;
    }

    // 32 rows from `begin` on, or as many as there are. A row meets half of them in `circle` steps, itself first, and then each column
    // behind them.
    struct Panel {
        u32 begin, size, circle, steps;
    };
    DEVICE Panel panel_of(u32 begin) {
        u32 size = begin + 32 < ROWS ? 32 : ROWS - begin, circle = size / 2 + 1;
        return {begin, size, circle, circle + ROWS - begin - size};
    }

    // Row r's m-vector and column at a step.
    DEVICE u32 load(u32 (&word)[WS], const u32 *p, const Panel &panel, const Row &row, u32 r, u32 step) {
        Row from = row;
        u32 c = r + step, to = c;
        if (step < panel.circle) {
            if (c >= panel.begin + panel.size) {
                c -= panel.size;
                // This entry lies in row c.
                from = row_of(c);
                to = r;
            }
        } else {
            c = to = panel.begin + panel.size + step - panel.circle;
        }
        const u32 *vector = p + (u64)((MODE == VERIFY && to >= S::V ? from.high : from.low) + to) * WS;
        UNROLL for (int w = 0; w < WS; w++) word[w] = vector[w];
        return c;
    }

    // acc += an m-vector times the TG scalars of one column of P.
    DEVICE void accumulate(u32 (&acc)[TG][4][WS], const u32 (&word)[WS], const uint4 *masks) {
        UNROLL for (int t = 0; t < TG; t++) {
            uint4 m = masks[t];
            UNROLL for (int w = 0; w < WS; w++) {
                acc[t][0][w] ^= word[w] & m.x;
                acc[t][1][w] ^= word[w] & m.y;
                acc[t][2][w] ^= word[w] & m.z;
                acc[t][3][w] ^= word[w] & m.w;
            }
        }
    }

    // What a team adds to R_r of 32 rows from `begin` on, in one group of columns; a lane to a row.
    DEVICE void rows(u32 begin, u32 group, u32 team, const u32 *p, const u32 *lambda, const uint4 *masks, u32 *sums) {
        u32 r = begin + threadIdx.x % 32;
        bool mine = r < ROWS;
        // A lane without a row goes over the last one, for nothing.
        u32 there = mine ? r : ROWS - 1;
        Row row = row_of(there);
        Panel panel = panel_of(begin);
        u32 acc[TG][4][WS];
        UNROLL for (int t = 0; t < TG; t++) {
            UNROLL for (int w = 0; w < WS; w++) {
                u32 start = 0;
                int column = group * TG + t;
                if (mine && team == 0) {
                    if (MODE == KEYGEN && column < T) start = p[(u64)(row.high + S::V + column) * WS + w];
                    if (MODE == SIGN && column >= S::K && column < T) {
                        start = p[(u64)(row.high + S::V + column - S::K) * WS + w];
                    }
                    if (MODE != KEYGEN && S::LINEAR && column == 0) start = lambda[(u64)r * WS + w];
                }
                acc[t][0][w] = start;
                acc[t][1][w] = acc[t][2][w] = acc[t][3][w] = 0;
            }
        }
        const uint4 *own = masks + group * TG;
        u32 next[WS], c = 0;
        if (team < panel.steps) c = load(next, p, panel, row, there, team);
        ROLLED for (u32 step = team; step < panel.steps; step += TEAMS) {
            u32 word[WS];
            UNROLL for (int w = 0; w < WS; w++) word[w] = next[w];
            const uint4 *column = own + c * TP;
            c = load(next, p, panel, row, there, step + TEAMS < panel.steps ? step + TEAMS : step);
            if (2 * step == panel.size) {
                // Rows that face each other have one entry.
                UNROLL for (int w = 0; w < WS; w++) word[w] = 2 * (r - begin) >= panel.size ? 0u : word[w];
            }
            accumulate(acc, word, column);
        }
        if (!mine) return;
        UNROLL for (int t = 0; t < TG; t++) {
            int column = group * TG + t;
            if (column < T) {
                UNROLL for (int w = 0; w < WS; w++) {
                    u32 sum = combine(acc[t][0][w], acc[t][1][w], acc[t][2][w], acc[t][3][w]);
                    u32 *to = sums + r * XR + column * WS + w;
                    if (TEAMS == 1) *to = sum;
                    if (TEAMS != 1) atomicXor(to, sum);
                }
            }
        }
    }

    // The scalars of column t in row r.
    DEVICE u32 scalar(u32 r, u32 t, const u8 *first, const u8 *second) {
        if (MODE == KEYGEN) return nibble(first, r * S::O + t);
        if (MODE == VERIFY) return nibble(first, t * S::N + r);
        if (MODE == SIGN && t >= S::K) return nibble(second, r * S::O + t - S::K);
        return nibble(first + t * S::V_BYTES, r);
    }

    // One block: Q of slice `slice` at `shared + 4 * MASKS`, X words for each of T scalars' columns.
    // `first`: O, or vinegar vectors, or the signature, packed; `second`: O. `p`, `lambda`, `l` point at the slice.
    DEVICE u32 *run(const u32 *p, const u32 *lambda, const u32 *l, const u8 *first, const u8 *second, u32 *shared) {
        uint4 *masks = (uint4 *)shared;
        u32 *sums = shared + 4 * MASKS;
        for (u32 i = threadIdx.x; i < MASKS; i += blockDim.x) {
            masks[i] = masks_of(i < ROWS * TP && i % TP < T ? scalar(i / TP, i % TP, first, second) : 0u);
        }
        for (u32 i = threadIdx.x; i < ROWS * XR; i += blockDim.x) {
            u32 r = i / XR, x = i % XR;
            sums[i] = MODE == SIGN_EXPANDED && x >= S::K * WS && x < X ? l[r * S::O * WS + x - S::K * WS] : 0u;
        }
        __syncthreads();
        u32 warp = threadIdx.x / 32;
        ROLLED for (u32 begin = 0; begin < ROWS; begin += 32) {
            PLANT_BRANCH(masks[0].x);
            rows(begin, warp % GROUPS, warp / GROUPS, p, lambda, masks, sums);
        }
        __syncthreads();
        u32 item = threadIdx.x % ITEMS, part = threadIdx.x / ITEMS;
        u32 a = item / NX * TA, x = item % NX;
        u32 acc[TA][4][XN];
        UNROLL for (int t = 0; t < TA; t++) {
            UNROLL for (int bit = 0; bit < 4; bit++) {
                UNROLL for (int i = 0; i < XN; i++) acc[t][bit][i] = 0;
            }
        }
        if (part < SPLIT) {
            ROLLED for (u32 r = part; r < ROWS; r += SPLIT) {
                u32 word[XN];
                UNROLL for (int i = 0; i < XN; i++) word[i] = x + i * NX < X ? sums[r * XR + x + i * NX] : 0u;
                UNROLL for (int t = 0; t < TA; t++) {
                    uint4 m = masks[r * TP + a + t];
                    UNROLL for (int i = 0; i < XN; i++) {
                        acc[t][0][i] ^= word[i] & m.x;
                        acc[t][1][i] ^= word[i] & m.y;
                        acc[t][2][i] ^= word[i] & m.z;
                        acc[t][3][i] ^= word[i] & m.w;
                    }
                }
            }
        }
        __syncthreads();
        for (u32 i = threadIdx.x; i < T * X; i += blockDim.x) sums[i] = 0;
        __syncthreads();
        if (part < SPLIT) {
            UNROLL for (int t = 0; t < TA; t++) {
                UNROLL for (int i = 0; i < XN; i++) {
                    if (a + t < T && x + i * NX < X) {
                        u32 sum = combine(acc[t][0][i], acc[t][1][i], acc[t][2][i], acc[t][3][i]);
                        atomicXor(&sums[(a + t) * X + x + i * NX], sum);
                    }
                }
            }
        }
        __syncthreads();
        return sums;
    }

    // Word `w` of x_a^T P x_b + x_b^T P x_a.
    DEVICE u32 pair(const u32 *q, u32 a, u32 b, u32 w) {
        u32 word = q[a * X + b * WS + w];
        if (a != b) word ^= q[b * X + a * WS + w];
        return word;
    }

    // Secrets leave shared memory before the block does.
    DEVICE void wipe(u32 *shared) {
        if (!SECRET) return;
        __syncthreads();
        volatile u32 *all = shared;
        for (u32 i = threadIdx.x; i < SHARED; i += blockDim.x) all[i] = 0;
    }
};

template <class S> struct Products {
    typedef Layout<S> L;

    // P3 and seed_pk into compact public keys. Hashes are those of `Hashes::seed`.
    DEVICE void keygen(const u32 *p, u32 total, const u8 *hashes, u8 *public_keys) {
        typedef Gram<S, KEYGEN> G;
        LW_SHARED(u32, shared);
        u32 op = blockIdx.x / S::SLICES, slice = blockIdx.x % S::SLICES;
        const u8 *hash = hashes + (u64)op * Hashes<S>::SEED;
        u8 *key = public_keys + (u64)op * S::PK_BYTES;
        const u32 *q = G::run(p + ((u64)op * S::SLICES + slice) * total * S::WS, 0, 0, hash + 16, 0, shared);
        if (slice == 0 && threadIdx.x < 16) key[threadIdx.x] = hash[threadIdx.x];
        for (u32 i = threadIdx.x; i < S::O * S::O * S::WS; i += blockDim.x) {
            u32 a = i / (S::O * S::WS), b = i / S::WS % S::O, w = i % S::WS;
            if (a > b) continue;
            u32 word = G::pair(q, a, b, w), from = 4 * (slice * S::WS + w);
            u8 *to = key + 16 + triangle(S::O, a, b) * S::M_BYTES + from;
            UNROLL for (u32 byte = 0; byte < 4; byte++) {
                if (from + byte < S::M_BYTES) to[byte] = (u8)(word >> (8 * byte));
            }
        }
        G::wipe(shared);
    }

    // u (schedule order) and M (k x o) of one attempt, m-vectors of WORDS words, for the signatures in `list`.
    // `keys`: which matrices and which O belong to which message. Null: O is numbered like the message, and matrices lie in the
    // order of the list, since only those of one part of a chunk are there.
    template <Mode MODE>
    DEVICE void sign(const u32 *list, const u32 *keys, const u32 *p, u32 total, const u32 *lambda, const u8 *hashes,
                     const u8 *drawn, u32 *u, u32 *m) {
        typedef Gram<S, MODE> G;
        LW_SHARED(u32, shared);
        u32 place = blockIdx.x / S::SLICES, slice = blockIdx.x % S::SLICES;
        u32 op = list[place], key = op;
        if (keys) place = key = keys[op];
        const u8 *o = hashes + (u64)key * Hashes<S>::SEED + 16, *vinegar = drawn + (u64)op * Hashes<S>::DRAWN;
        const u32 *own = p + ((u64)place * S::SLICES + slice) * total * S::WS;
        const u32 *term = S::LINEAR ? lambda + ((u64)op * S::SLICES + slice) * S::N * S::WS : 0;
        // L lies behind P1, P2 and P3.
        const u32 *l = own + (u64)(S::P12_VECS + S::P3_VECS) * S::WS;
        const u32 *q = G::run(own, term, l, vinegar, o, shared);
        u32 *to = u + (u64)op * S::PAIRS * L::WORDS + slice * S::WS;
        for (u32 i = threadIdx.x; i < S::PAIRS * S::WS; i += blockDim.x) {
            u32 at = i / S::WS, w = i % S::WS;
            to[at * L::WORDS + w] = G::pair(q, S::schedule(at, 0), S::schedule(at, 1), w);
        }
        to = m + (u64)op * S::K * S::O * L::WORDS + slice * S::WS;
        for (u32 i = threadIdx.x; i < S::K * S::O * S::WS; i += blockDim.x) {
            u32 a = i / (S::O * S::WS), j = i / S::WS % S::O, w = i % S::WS;
            u32 word = q[a * G::X + (S::K + j) * S::WS + w];
            if (MODE == SIGN) word ^= q[(S::K + j) * G::X + a * S::WS + w];
            if (S::LINEAR && a == 0) {
                word ^= term[(u64)(S::V + j) * S::WS + w];
                if (MODE == SIGN_EXPANDED) {
                    ROLLED for (u32 r = 0; r < S::V; r++) {
                        word ^= times_scalar(term[(u64)r * S::WS + w], nibble(o, r * S::O + j));
                    }
                }
            }
            to[(a * S::O + j) * L::WORDS + w] = word;
        }
        G::wipe(shared);
    }

    // u of signatures, `stride` bytes apart.
    DEVICE void verify(const u32 *keys, const u32 *p, u32 total, const u32 *lambda, const u8 *signatures, u32 *u) {
        typedef Gram<S, VERIFY> G;
        LW_SHARED(u32, shared);
        u32 op = blockIdx.x / S::SLICES, slice = blockIdx.x % S::SLICES, key = keys ? keys[op] : op;
        const u32 *own = p + ((u64)key * S::SLICES + slice) * total * S::WS;
        const u32 *term = S::LINEAR ? lambda + ((u64)op * S::SLICES + slice) * S::N * S::WS : 0;
        const u32 *q = G::run(own, term, 0, signatures + (u64)op * S::SIG_BYTES, 0, shared);
        u32 *to = u + (u64)op * S::PAIRS * L::WORDS + slice * S::WS;
        for (u32 i = threadIdx.x; i < S::PAIRS * S::WS; i += blockDim.x) {
            u32 at = i / S::WS, w = i % S::WS;
            to[at * L::WORDS + w] = G::pair(q, S::schedule(at, 0), S::schedule(at, 1), w);
        }
    }

    // L = (P1 + P1^T) O + P2 behind P1, P2 and P3, for `Gram<SIGN_EXPANDED>`: a thread to a row and a word.
    static constexpr int LOWER_MASKS = S::V * S::O;
    DEVICE void lower(u32 *p, u32 total, const u8 *hashes) {
        LW_SHARED(u32, shared);
        uint4 *masks = (uint4 *)shared;
        u32 op = blockIdx.x / S::SLICES, slice = blockIdx.x % S::SLICES;
        const u8 *o = hashes + (u64)op * Hashes<S>::SEED + 16;
        u32 *own = p + ((u64)op * S::SLICES + slice) * total * S::WS;
        u32 *l = own + (u64)(S::P12_VECS + S::P3_VECS) * S::WS;
        for (u32 i = threadIdx.x; i < LOWER_MASKS; i += blockDim.x) masks[i] = masks_of(nibble(o, i));
        __syncthreads();
        for (u32 i = threadIdx.x; i < S::V * S::WS; i += blockDim.x) {
            u32 r = i / S::WS, w = i % S::WS;
            u32 acc[S::O][4];
            UNROLL for (int j = 0; j < S::O; j++) {
                acc[j][0] = own[(u64)(S::P1_VECS + r * S::O + j) * S::WS + w];
                acc[j][1] = acc[j][2] = acc[j][3] = 0;
            }
            ROLLED for (u32 c = 0; c < S::V; c++) {
                if (c == r) continue;
                u32 word = own[(u64)(c < r ? triangle(S::V, c, r) : triangle(S::V, r, c)) * S::WS + w];
                UNROLL for (int j = 0; j < S::O; j++) {
                    uint4 mask = masks[c * S::O + j];
                    acc[j][0] ^= word & mask.x;
                    acc[j][1] ^= word & mask.y;
                    acc[j][2] ^= word & mask.z;
                    acc[j][3] ^= word & mask.w;
                }
            }
            UNROLL for (int j = 0; j < S::O; j++) {
                l[(u64)(r * S::O + j) * S::WS + w] = combine(acc[j][0], acc[j][1], acc[j][2], acc[j][3]);
            }
        }
        __syncthreads();
        volatile u32 *all = shared;
        for (u32 i = threadIdx.x; i < LOWER_MASKS * 4; i += blockDim.x) all[i] = 0;
    }
};
