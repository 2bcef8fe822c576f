// AES and products in one kernel: a block computes a whole operation with a compact key, and P1 and P2 never leave it.
//
// Some warps make key stream, tile by tile, into one of two places in shared memory; the others multiply the tile's vectors by
// the scalars as they come. Named barriers pass the tiles on (`FULL`, `EMPTY`), and a block goes from operation to operation, so that
// the former are a tile or two ahead across the end of one too. What is computed is `Gram`'s pass over the triangle, by panels of 16 rows:
//     R_r[b] = sum over c >= r of P[r][c] x_b[c],   Q[a][b] += x_a[r] R_r[b] for the rows of the panel
// so that R is there for a panel only. Tiles are the triangle at the panel's left end (rows p and 15 - p together have the vectors of
// one row and one more), then K columns at a time, then P2. A counter-mode stream can be entered anywhere: a tile's rows
// begin within some block of AES, and the block is made twice where two tiles share it, which is 2 to 5 % of all.
//
// Which warps do what, by counts per clock of a multiprocessor. AES: 138 lookups for 16 bytes (of 160, 22 see bytes that no counter
// changes, and are looked up once for a key), 32 a clock; 10 to the sum of the other pipe, LOP3 and PRMT (an index comes out of a
// dot product, of the pipe that multiplies), 64 a clock. Products: 4 LOP3 for a word and a scalar, 64 a clock, 12 more for a word of R
// and each team that made a part of it; a mask for every 4 LOP3 * HALF, a word for every 4 * TG, by lookups. For MAYO-1's
// verification that is 42 k clocks of lookups for AES and 10 to 18 k for products, beside 21 k and 36 k of LOP3: both pipes
// come to about 60 k, where separate kernels take 48 k and 47 k one after the other, and P through memory. So neither
// kind may wait for the other. Twelve warps, three to each of four schedulers, have 168 registers to a thread, of which a consumer
// needs 80 to 120 for sums (a thirteenth warp would leave 128); a producer keeps its key's schedule in them, and 16 lookups under way. Four
// consumers issue as much LOP3 as the pipe takes if they seldom wait, and eight producers as many lookups. Where there are more
// columns, products are the larger part, and up to eight consumers stand beside four producers.
//
// A consumer's lane is a row of the panel and one half of the words; a warp has one group of TG columns, and where groups are few,
// teams share the columns of P. All lanes of a warp read the masks of one column. Constant time as in products.cuh:
// scalars act through masks, and the tables are looked up by key stream of released keys alone. Secrets are cleared at the block's end.
#pragma once

// Rows of a panel, and columns of an ordinary tile.
static constexpr int PANEL = 16, COLUMNS = 8;

// Where a set's tiles begin and end, for those who make and those who read them.
template <class S> struct Tiles {
    static constexpr int BYTES = S::M_BYTES;
    // Blocks of AES that may hold some of `vectors` vectors behind one another.
    static constexpr int blocks(int vectors) { return (vectors * BYTES + 16 - common(BYTES, 16) + 15) / 16; }
    // P2's columns, in parts of about equal width; and the last part of P1's.
    static constexpr int OIL_PARTS = ceil_div(S::O, COLUMNS), OIL = ceil_div(S::O, OIL_PARTS);
    static constexpr int SHORT = S::V % COLUMNS;
    static constexpr int WIDE_BLOCKS = blocks(COLUMNS), SHORT_BLOCKS = blocks(SHORT);
    static constexpr int OIL_BLOCKS = blocks(OIL), LAST_BLOCKS = blocks(S::O - OIL * (OIL_PARTS - 1));
    // Rows lie an odd number of blocks apart, which spreads them over the banks.
    static constexpr int STRIDE = (WIDE_BLOCKS > OIL_BLOCKS ? WIDE_BLOCKS : OIL_BLOCKS) | 1;
    // First vector and blocks of row `i` of the triangle of the panel from `row` on.
    static constexpr int corner(int row, int i) { return (row + i) * (2 * S::V + 1 - row - i) / 2; }
    static constexpr int size(int row) { return S::V - row < PANEL ? S::V - row : PANEL; }
    static constexpr int corner_blocks(int row, int i) {
        return i < size(row) ? (corner(row, i) * BYTES % 16 + (size(row) - i) * BYTES + 15) / 16 : 0;
    }
    // Blocks of the largest two rows that share a place.
    static constexpr int largest_pair() {
        int most = 0;
        for (int row = 0; row < S::V; row += PANEL) {
            for (int i = 0; i < PANEL / 2; i++) {
                int both = corner_blocks(row, i) + corner_blocks(row, PANEL - 1 - i);
                most = both > most ? both : most;
            }
        }
        return most;
    }
    static constexpr int PAIR = largest_pair();
    // P3 of up to 16 rows, copied.
    static constexpr int TAIL = (S::P3_VECS * BYTES + 15) / 16;
    static constexpr int MADE = PANEL * STRIDE > PANEL / 2 * PAIR ? PANEL * STRIDE : PANEL / 2 * PAIR;
    // Where vectors are no whole words, the last one's last word is read with the word behind it.
    static constexpr int ROOM = (MADE > TAIL ? MADE : TAIL) + (BYTES % 4 != 0);
    // Whether (at * (65536 / by + 1)) >> 16 is at / by for all of `rows` rows of `by`.
    static constexpr bool divides(int by, int rows) { return by == 0 || rows * by * (by - 65536 % by) < 65536; }
    static_assert(divides(PAIR, PANEL / 2) && divides(WIDE_BLOCKS, PANEL) && divides(SHORT_BLOCKS, PANEL) &&
                      divides(OIL_BLOCKS, PANEL) && divides(LAST_BLOCKS, PANEL),
                  "places of rows are found by a product");
    static_assert(PANEL % COLUMNS == 0, "what is left behind the triangle ends alike in all panels");

    u32 row, rows;
    // Columns of P1 and of rows behind the vinegar rows, or of P2.
    u32 column, columns;
    // 0 or 1: flags of a byte share registers with what lay there, which may have been secret, and the lint refuses.
    u32 corner_tile, oil, tail;

    // The panel behind the one from `row` on: rows of P3 are in panels of their own.
    DEVICE u32 next(u32 row) { return row < S::V && row + PANEL > S::V ? (u32)S::V : row + PANEL; }
    // How many tiles the panel from `row` on has.
    DEVICE u32 count(u32 row) {
        if (row >= S::V) return 1;
        u32 left = S::V - row;
        return 1 + (left > PANEL ? (left - PANEL + COLUMNS - 1) / COLUMNS : 0) + OIL_PARTS;
    }
    DEVICE Tiles of(u32 row, u32 at) {
        u32 left = S::V - row, ordinary = count(row) - OIL_PARTS;
        Tiles t;
        t.tail = row >= S::V;
        if (t.tail) {
            t.row = t.column = row;
            t.columns = S::N - row;
            t.rows = t.columns < PANEL ? t.columns : PANEL;
            t.corner_tile = t.oil = 0;
            return t;
        }
        t.row = row;
        t.rows = left < PANEL ? left : PANEL;
        t.corner_tile = at == 0;
        t.oil = at >= ordinary;
        if (t.oil) {
            t.column = (at - ordinary) * OIL;
            t.columns = S::O - t.column < OIL ? S::O - t.column : OIL;
        } else {
            t.column = at == 0 ? row : row + PANEL + (at - 1) * COLUMNS;
            u32 most = at == 0 ? PANEL : COLUMNS;
            t.columns = S::V - t.column < most ? S::V - t.column : most;
        }
        return t;
    }
    // The bytes of row `i` in the key stream.
    DEVICE u32 begin(const Tiles &t, u32 i) {
        u32 r = t.row + i;
        u32 vector = t.oil ? S::P1_VECS + r * S::O + t.column : r * (2 * S::V + 1 - r) / 2 + (t.corner_tile ? 0 : t.column - r);
        return vector * BYTES;
    }
    DEVICE u32 length(const Tiles &t, u32 i) { return (t.corner_tile ? (i < t.columns ? t.columns - i : 0) : t.columns) * BYTES; }
    // Blocks that hold them, and the place in the tile, in blocks.
    DEVICE u32 held(const Tiles &t, u32 i) {
        u32 from = begin(t, i), bytes = length(t, i);
        return bytes ? (from + bytes + 15) / 16 - from / 16 : 0;
    }
    DEVICE u32 place(const Tiles &t, u32 i) {
        if (!t.corner_tile) return i * STRIDE;
        u32 pair = i < PANEL / 2 ? i : PANEL - 1 - i;
        return pair * PAIR + (i < PANEL / 2 ? 0 : held(t, pair));
    }

    // Vectors of P3 before row `i` of a panel of them, and where that row begins in the tile, in bytes.
    DEVICE u32 before(const Tiles &t, u32 i) {
        u32 r = t.row - S::V + i;
        return r * (2 * S::O + 1 - r) / 2;
    }
    // This lane's row in the tile, in bytes.
    DEVICE u32 at(const Tiles &t, u32 i) {
        if (t.tail) return (before(t, i) - before(t, 0)) * BYTES;
        return place(t, i) * 16 + begin(t, i) % 16;
    }

    // Copies P3's rows from a compact public key; `self` is one of `many` threads.
    DEVICE void copy(const Tiles &t, const u8 *key, u32 *to, u32 self, u32 many) {
        const u8 *from = key + 16 + before(t, 0) * BYTES;
        u32 bytes = (before(t, t.rows) - before(t, 0)) * BYTES;
        ROLLED for (u32 at = 4 * self; at < bytes; at += 4 * many) {
            u32 word = 0;
            UNROLL for (u32 byte = 0; byte < 4; byte++) {
                if (at + byte < bytes) word |= (u32)from[at + byte] << (8 * byte);
            }
            to[at / 4] = word;
        }
    }

    // Makes this warp's part of a tile; `turn` goes round, so that warps have equally much in the end.
    template <int PRODUCERS>
    DEVICE void make(const Tiles &t, const Stream &stream, const Held &key, uint4 *to, u32 warp, u32 &turn) {
        u32 each = t.corner_tile ? PAIR : t.oil ? (t.columns == OIL ? OIL_BLOCKS : LAST_BLOCKS)
                                                : (t.columns == COLUMNS ? WIDE_BLOCKS : SHORT_BLOCKS);
        u32 factor = t.corner_tile ? 65536 / PAIR + 1
                     : t.oil       ? (t.columns == OIL ? 65536 / OIL_BLOCKS + 1 : 65536 / LAST_BLOCKS + 1)
                                   : (t.columns == COLUMNS ? 65536 / WIDE_BLOCKS + 1 : 65536 / (SHORT_BLOCKS + (SHORT == 0)) + 1);
        u32 all = (t.corner_tile ? PANEL / 2 : t.rows) * each, chunks = (all + 31) / 32;
        ROLLED for (u32 chunk = (warp + PRODUCERS - turn) % PRODUCERS; chunk < chunks; chunk += PRODUCERS) {
            u32 at = chunk * 32 + threadIdx.x % 32;
            u32 i = (at * factor) >> 16, j = at - i * each;
            if (t.corner_tile) {
                u32 here = held(t, i);
                if (j >= here) {
                    j -= here;
                    i = PANEL - 1 - i;
                }
            }
            if (at < all && j < held(t, i)) to[place(t, i) + j] = Stream::block(stream, key, begin(t, i) / 16 + j);
        }
        turn = (turn + chunks) % PRODUCERS;
    }
};

template <class S, Mode MODE> struct Fused {
    typedef Layout<S> L;
    typedef Tiles<S> Tile;
    static_assert(MODE != SIGN_EXPANDED, "an expanded key has no AES");
    static constexpr int ROWS = MODE == VERIFY ? S::N : S::V;
    static constexpr int T = MODE == KEYGEN ? S::O : MODE == SIGN ? S::K + S::O : S::K;
    // The columns of O among them begin here.
    static constexpr int OILS = MODE == SIGN ? S::K : 0;
    static constexpr int W = L::WORDS, HALF = W / 2, X = T * W;
    static_assert(W % 2 == 0 && HALF % S::WS == 0, "a lane has one half of the words, in whole slices");
    static constexpr int TG = group_size(T, HALF), GROUPS = ceil_div(T, TG);
    static constexpr int TEAMS = GROUPS >= 4 ? 1 : GROUPS == 1 ? 4 : 2;
    static constexpr int CONSUMERS = GROUPS * TEAMS, PRODUCERS = 12 - CONSUMERS;
    static_assert(PRODUCERS >= 4, "a warp of either kind to each scheduler");
    static constexpr int THREADS = 32 * (CONSUMERS + PRODUCERS), EATERS = 32 * CONSUMERS;
    // Barriers: FULL and EMPTY have one for each of the two places.
    static constexpr u32 FULL = 1, EMPTY = 3, AMONG_CONSUMERS = 5;
    // The second stage, as in `Gram`. For signing, rows of Q behind the first K have the first K columns alone.
    static constexpr int TA = T % 4 == 0 ? 4 : T % 5 == 0 ? 5 : T % 3 == 0 ? 3 : 4, XN = 4;
    static constexpr int XS = S::K * W;
    static constexpr int Q_WORDS = MODE == SIGN ? S::K * X + S::O * XS : T * X;
    // Words of shared memory: tables, masks, two tiles, R of a panel, Q. The last group of columns and of scalars may read past the
    // last mask, and must not meet a tile there: those who make tiles do not wait for it.
    static constexpr int SCALARS = MODE == SIGN ? S::K + ceil_div(S::O, TA) * TA : ceil_div(T, TA) * TA;
    static constexpr int PAST = (GROUPS * TG > SCALARS ? GROUPS * TG : SCALARS) - T;
    static constexpr int MASKS = Stream::WORDS, TILES = MASKS + 4 * (ROWS * T + PAST);
    static constexpr int SUMS = TILES + 2 * 4 * Tile::ROOM, Q = SUMS + PANEL * X, SHARED = Q + Q_WORDS;
    static constexpr bool SECRET = MODE != VERIFY;

    struct Inputs {
        // O; vinegar vectors; or a signature: packed. Then O for signing. Then a compact public key.
        const u8 *first, *second, *key;
        // Of this operation, in slices; null where there is none.
        const u32 *lambda;
    };

    DEVICE u32 q_of(u32 a) { return MODE == SIGN && a >= S::K ? S::K * X + (a - S::K) * XS : a * X; }
    DEVICE u32 term(const u32 *lambda, u32 r, u32 word) {
        return lambda[(u64)(word / S::WS * S::N + r) * S::WS + word % S::WS];
    }
    // Word `w` of x_a^T P x_b + x_b^T P x_a.
    DEVICE u32 pair(const u32 *q, u32 a, u32 b, u32 w) {
        u32 word = q[q_of(a) + b * W + w];
        if (a != b) word ^= q[q_of(b) + a * W + w];
        return word;
    }

    // This lane's half of the vector `at` bytes into a tile.
    DEVICE void load(u32 (&word)[HALF], const u32 *tile, u32 at, u32 half) {
        at += half * HALF * 4;
        if (S::M_BYTES % 16 == 0 && HALF == 4) {
            uint4 all = ((const uint4 *)tile)[at / 16];
            word[0] = all.x;
            word[1] = all.y;
            word[2] = all.z;
            word[HALF - 1] = all.w;
            return;
        }
        const u32 *from = tile + at / 4;
        if (S::M_BYTES % 4 == 0) {
            UNROLL for (int w = 0; w < HALF; w++) word[w] = from[w];
            return;
        }
        u32 low = from[0];
        UNROLL for (int w = 0; w < HALF; w++) {
            u32 high = from[w + 1];
            word[w] = __funnelshift_r(low, high, at % 4 * 8);
            low = high;
        }
        word[HALF - 1] &= half ? (1u << (S::M_BYTES % 4 * 8)) - 1 : ~0u;
    }

    DEVICE void accumulate(u32 (&acc)[TG][4][HALF], const u32 (&word)[HALF], const uint4 *masks) {
        UNROLL for (int t = 0; t < TG; t++) {
            uint4 m = masks[t];
            UNROLL for (int w = 0; w < HALF; w++) {
                acc[t][0][w] ^= word[w] & m.x;
                acc[t][1][w] ^= word[w] & m.y;
                acc[t][2][w] ^= word[w] & m.z;
                acc[t][3][w] ^= word[w] & m.w;
            }
        }
    }

    // Adds what a tile gives to the rows of its panel.
    DEVICE void add(u32 (&acc)[TG][4][HALF], const Tile &t, const u32 *tile, const uint4 *masks, u32 group, u32 team) {
        u32 i = threadIdx.x % 16, half = threadIdx.x % 32 / 16;
        bool mine = i < t.rows;
        u32 begin = mine ? Tile::at(t, i) : 0;
        const uint4 *own = masks + group * TG;
        if (t.oil && MODE != VERIFY) {
            UNROLL for (int at = 0; at < TG; at++) {
                u32 j = group * TG + at - OILS - t.column;
                if (group * TG + at < T && j < t.columns && j % TEAMS == team && mine) {
                    u32 word[HALF];
                    load(word, tile, begin + j * S::M_BYTES, half);
                    UNROLL for (int w = 0; w < HALF; w++) acc[at][0][w] ^= word[w];
                }
            }
            return;
        }
        u32 first = t.corner_tile || t.tail ? i : 0;
        const uint4 *mask = own + ((t.oil ? S::V : 0) + t.column) * T;
        ROLLED for (u32 c = team; c < t.columns; c += TEAMS) {
            if (mine && c >= first) {
                u32 word[HALF];
                load(word, tile, begin + (c - first) * S::M_BYTES, half);
                accumulate(acc, word, mask + c * T);
            }
        }
    }

    DEVICE void start(u32 (&acc)[TG][4][HALF], u32 r, const u32 *lambda, u32 group, u32 team) {
        u32 half = threadIdx.x % 32 / 16;
        UNROLL for (int t = 0; t < TG; t++) {
            UNROLL for (int w = 0; w < HALF; w++) acc[t][0][w] = acc[t][1][w] = acc[t][2][w] = acc[t][3][w] = 0;
        }
        if (MODE != KEYGEN && S::LINEAR && group == 0 && team == 0 && r < ROWS) {
            // A half is whole slices.
            const u32 *own = lambda + (half * (HALF / S::WS) * S::N + r) * S::WS;
            UNROLL for (int w = 0; w < HALF; w++) acc[0][0][w] = own[w / S::WS * S::N * S::WS + w % S::WS];
        }
    }

    // Part of the second stage: scalars `from` to `to` times the first `width` words of the rows' R.
    template <int FROM, int TO, int WIDTH> DEVICE void fold(u32 row, u32 rows, const uint4 *masks, const u32 *sums, u32 *q) {
        constexpr int NX = (WIDTH + XN - 1) / XN, ITEMS = (TO - FROM + TA - 1) / TA * NX;
        constexpr int SPLIT = ITEMS * 2 > EATERS ? 1 : at_most(EATERS / ITEMS, 4);
        ROLLED for (u32 item = threadIdx.x - 32 * PRODUCERS; item < ITEMS * SPLIT; item += EATERS) {
            u32 part = item / ITEMS, a = FROM + item % ITEMS / NX * TA, x = item % ITEMS % NX;
            u32 acc[TA][4][XN];
            UNROLL for (int t = 0; t < TA; t++) {
                UNROLL for (int i = 0; i < XN; i++) acc[t][0][i] = acc[t][1][i] = acc[t][2][i] = acc[t][3][i] = 0;
            }
            ROLLED for (u32 r = part; r < rows; r += SPLIT) {
                u32 word[XN];
                UNROLL for (int i = 0; i < XN; i++) word[i] = x + i * NX < WIDTH ? sums[r * X + x + i * NX] : 0u;
                UNROLL for (int t = 0; t < TA; t++) {
                    uint4 m = masks[(row + r) * T + a + t];
                    UNROLL for (int i = 0; i < XN; i++) {
                        acc[t][0][i] ^= word[i] & m.x;
                        acc[t][1][i] ^= word[i] & m.y;
                        acc[t][2][i] ^= word[i] & m.z;
                        acc[t][3][i] ^= word[i] & m.w;
                    }
                }
            }
            UNROLL for (int t = 0; t < TA; t++) {
                UNROLL for (int i = 0; i < XN; i++) {
                    if (a + t < TO && x + i * NX < WIDTH) {
                        u32 sum = combine(acc[t][0][i], acc[t][1][i], acc[t][2][i], acc[t][3][i]);
                        u32 *to = q + q_of(a + t) + x + i * NX;
                        if (SPLIT == 1) *to ^= sum;
                        if (SPLIT != 1) atomicXor(to, sum);
                    }
                }
            }
        }
    }

    // R of a panel into shared memory, and from there into Q.
    DEVICE void close(const u32 (&acc)[TG][4][HALF], u32 row, u32 rows, u32 *shared, u32 group) {
        const uint4 *masks = (const uint4 *)(shared + MASKS);
        u32 *sums = shared + SUMS, *q = shared + Q;
        u32 i = threadIdx.x % 16, half = threadIdx.x % 32 / 16;
        UNROLL for (int t = 0; t < TG; t++) {
            u32 column = group * TG + t;
            if (i < rows && column < T) {
                UNROLL for (int w = 0; w < HALF; w++) {
                    u32 sum = combine(acc[t][0][w], acc[t][1][w], acc[t][2][w], acc[t][3][w]);
                    u32 *to = sums + i * X + column * W + half * HALF + w;
                    if (TEAMS == 1) *to = sum;
                    if (TEAMS != 1) atomicXor(to, sum);
                }
            }
        }
        lw_barrier(AMONG_CONSUMERS, EATERS);
        PLANT_BRANCH(masks[0].x);
        if constexpr (MODE == SIGN) {
            fold<0, S::K, X>(row, rows, masks, sums, q);
            fold<S::K, T, XS>(row, rows, masks, sums, q);
        } else {
            fold<0, T, X>(row, rows, masks, sums, q);
        }
        lw_barrier(AMONG_CONSUMERS, EATERS);
        if (TEAMS != 1) {
            for (u32 x = threadIdx.x - 32 * PRODUCERS; x < PANEL * X; x += EATERS) sums[x] = 0;
        }
    }

    DEVICE u32 scalar(u32 r, u32 t, const Inputs &in) {
        if (MODE == KEYGEN) return nibble(in.first, r * S::O + t);
        if (MODE == VERIFY) return nibble(in.first, t * S::N + r);
        if (MODE == SIGN && t >= S::K) return nibble(in.second, r * S::O + t - S::K);
        return nibble(in.first + t * S::V_BYTES, r);
    }

    // One operation, for those who multiply. `left` counts the block's tiles down, for both kinds.
    DEVICE void multiply(const Inputs &in, u32 *shared, u32 &left) {
        uint4 *masks = (uint4 *)(shared + MASKS);
        u32 self = threadIdx.x - 32 * PRODUCERS, warp = self / 32;
        u32 group = TEAMS == 1 ? warp : warp % GROUPS, team = TEAMS == 1 ? 0 : warp / GROUPS;
        for (u32 i = self; i < ROWS * T + PAST; i += EATERS) masks[i] = masks_of(i < ROWS * T ? scalar(i / T, i % T, in) : 0u);
        for (u32 i = self; i < PANEL * X; i += EATERS) shared[SUMS + i] = 0;
        for (u32 i = self; i < Q_WORDS; i += EATERS) shared[Q + i] = 0;
        u32 acc[TG][4][HALF];
        ROLLED for (u32 row = 0; row < ROWS; row = Tile::next(row)) {
            start(acc, row + threadIdx.x % 16, in.lambda, group, team);
            u32 count = Tile::count(row), rows = 0;
            ROLLED for (u32 at = 0; at < count; at++) {
                Tile t = Tile::of(row, at);
                rows = t.rows;
                lw_barrier(FULL + left % 2, THREADS);
                add(acc, t, shared + TILES + left % 2 * 4 * Tile::ROOM, masks, group, team);
                // All of the warp have read the tile. Nobody waits for the last two places.
                __syncwarp();
                if (left > 2) lw_barrier_arrive(EMPTY + left % 2, THREADS);
                left--;
            }
            close(acc, row, rows, shared, group);
        }
    }

    DEVICE u32 tiles_of_all() {
        u32 count = 0;
        for (u32 row = 0; row < ROWS; row = Tile::next(row)) count += Tile::count(row);
        return count;
    }

    // The block: operations `blockIdx.x`, and so many as there are blocks further on. `inputs` and `output` are called with the number of
    // an operation, the latter with Q and the number of the thread among EATERS.
    template <class I, class O> DEVICE void run(u32 count, const u32 *schedules, const I &inputs, const O &output) {
        LW_SHARED(u32, shared);
        Stream stream = Stream::fill(shared);
        __syncthreads();
        u32 warp = threadIdx.x / 32, left = (count - blockIdx.x + gridDim.x - 1) / gridDim.x * tiles_of_all();
        if (warp < PRODUCERS) {
            u32 turn = 0, new_places = 2;
            ROLLED for (u32 op = blockIdx.x; op < count; op += gridDim.x) {
                Held key = Held::of(schedules + (u64)op * SCHEDULE);
                const u8 *public_key = inputs(op).key;
                ROLLED for (u32 row = 0; row < ROWS; row = Tile::next(row)) {
                    u32 some = Tile::count(row);
                    ROLLED for (u32 at = 0; at < some; at++) {
                        if (new_places == 0) lw_barrier(EMPTY + left % 2, THREADS);
                        new_places -= new_places != 0;
                        uint4 *to = (uint4 *)(shared + TILES) + left % 2 * Tile::ROOM;
                        Tile t = Tile::of(row, at);
                        if (MODE == VERIFY && t.tail) {
                            Tile::copy(t, public_key, (u32 *)to, threadIdx.x, 32 * PRODUCERS);
                        } else {
                            Tile::template make<PRODUCERS>(t, stream, key, to, warp, turn);
                        }
                        __syncwarp();
                        lw_barrier_arrive(FULL + left % 2, THREADS);
                        left--;
                    }
                }
            }
        } else {
            ROLLED for (u32 op = blockIdx.x; op < count; op += gridDim.x) {
                multiply(inputs(op), shared, left);
                output(op, shared + Q, threadIdx.x - 32 * PRODUCERS);
                lw_barrier(AMONG_CONSUMERS, EATERS);
            }
        }
        if (SECRET) {
            __syncthreads();
            volatile u32 *words = shared;
            for (u32 i = threadIdx.x; i < SHARED; i += blockDim.x) words[i] = 0;
        }
    }
};

// What the kernels do. `schedules` are the AES schedules of the operations, in their order here.
template <class S> struct Whole {
    typedef Layout<S> L;

    // As `Products::keygen`.
    DEVICE void keygen(u32 count, const u32 *schedules, const u8 *hashes, u8 *public_keys) {
        typedef Fused<S, KEYGEN> F;
        auto inputs = [=] (u32 op) {
            typename F::Inputs in = {hashes + (u64)op * Hashes<S>::SEED + 16, 0, 0, 0};
            return in;
        };
        F::run(count, schedules, inputs, [=] (u32 op, const u32 *q, u32 self) {
            const u8 *hash = hashes + (u64)op * Hashes<S>::SEED;
            u8 *key = public_keys + (u64)op * S::PK_BYTES;
            if (self < 16) key[self] = hash[self];
            for (u32 i = self; i < S::O * S::O * F::W; i += F::EATERS) {
                u32 a = i / (S::O * F::W), b = i / F::W % S::O, w = i % F::W;
                if (a > b) continue;
                u32 word = F::pair(q, a, b, w);
                u8 *to = key + 16 + triangle(S::O, a, b) * S::M_BYTES + 4 * w;
                UNROLL for (u32 byte = 0; byte < 4; byte++) {
                    if (4 * w + byte < S::M_BYTES) to[byte] = (u8)(word >> (8 * byte));
                }
            }
        });
    }

    // As `Products::sign`: operation i is message `list[i]`, whose O is numbered like it.
    DEVICE void sign(u32 count, const u32 *list, const u32 *schedules, const u32 *lambda, const u8 *hashes, const u8 *drawn,
                     u32 *u, u32 *m) {
        typedef Fused<S, SIGN> F;
        auto term = [=] (u32 op) { return S::LINEAR ? lambda + (u64)op * S::N * F::W : (const u32 *)0; };
        auto inputs = [=] (u32 i) {
            u32 op = list[i];
            typename F::Inputs in = {drawn + (u64)op * Hashes<S>::DRAWN, hashes + (u64)op * Hashes<S>::SEED + 16, 0, term(op)};
            return in;
        };
        F::run(count, schedules, inputs, [=] (u32 at, const u32 *q, u32 self) {
            u32 op = list[at], *to = u + (u64)op * S::PAIRS * F::W;
            for (u32 i = self; i < S::PAIRS * F::W; i += F::EATERS) {
                to[i] = F::pair(q, S::schedule(i / F::W, 0), S::schedule(i / F::W, 1), i % F::W);
            }
            to = m + (u64)op * S::K * S::O * F::W;
            for (u32 i = self; i < S::K * S::O * F::W; i += F::EATERS) {
                u32 a = i / (S::O * F::W), j = i / F::W % S::O, w = i % F::W;
                u32 word = F::pair(q, a, S::K + j, w);
                if (S::LINEAR && a == 0) word ^= F::term(term(op), S::V + j, w);
                to[i] = word;
            }
        });
    }

    // As `Products::verify`, P3 as it lies in the compact public keys.
    DEVICE void verify(u32 count, const u32 *schedules, const u8 *public_keys, const u32 *lambda, const u8 *signatures, u32 *u) {
        typedef Fused<S, VERIFY> F;
        auto inputs = [=] (u32 op) {
            typename F::Inputs in = {signatures + (u64)op * S::SIG_BYTES, 0, public_keys + (u64)op * S::PK_BYTES,
                                     S::LINEAR ? lambda + (u64)op * S::N * F::W : (const u32 *)0};
            return in;
        };
        F::run(count, schedules, inputs, [=] (u32 op, const u32 *q, u32 self) {
            u32 *to = u + (u64)op * S::PAIRS * F::W;
            for (u32 i = self; i < S::PAIRS * F::W; i += F::EATERS) {
                to[i] = F::pair(q, S::schedule(i / F::W, 0), S::schedule(i / F::W, 1), i % F::W);
            }
        });
    }
};
