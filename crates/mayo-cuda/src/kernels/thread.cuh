// One thread to a whole operation, as a plain port of a plain implementation has it: the baseline that the kernels of
// `mayo.cu` are measured against. Expanded matrices and everything else lie in one `Work` per thread, on the thread's own
// stack or on the device's heap. Secrets meet no branch and no address here either.
#pragma once

// Aligned as `Sponge::squeeze` stores, also on a thread's stack.
template <class S> struct alignas(8) Work {
    static constexpr int W = Layout<S>::WORDS;
    static constexpr int KO = S::K * S::O;
    static constexpr int WIDE = Solve<S>::WIDE;
    u8 seed[Hashes<S>::SEED];
    u8 salt[Hashes<S>::SALT];
    u8 target[Hashes<S>::TARGET];
    u8 drawn[Hashes<S>::DRAWN];
    u32 keys[44];
    u32 p[(S::P12_VECS + S::P3_VECS) * W];
    // X = P1 O + P2, or L.
    u32 x[S::V * S::O * W];
    // P times the k vectors.
    u32 pv[S::N * S::K * W];
    u32 lambda[S::N * W];
    u32 m[KO * W];
    u32 u[S::PAIRS * W];
    u32 columns[(KO + 1) * Solve<S>::PITCH];
    u32 rows[S::M * WIDE];
};

// What the report's profile tells apart, in cycles: the whole, the expansion of matrices, the products.
struct Cycles {
    u64 whole, expansion, products;
};

template <class S> struct Thread {
    typedef Work<S> Wk;
    static constexpr int W = Wk::W;

    // to += scalar * from: a product of each bit with the scalar's multiple, as small multiplications of words.
    DEVICE void add_times(u32 *to, const u32 *from, u32 scalar) {
        u32 t1 = times_x(scalar), t2 = times_x(t1), t3 = times_x(t2);
        for (int w = 0; w < W; w++) {
            u32 word = from[w];
            to[w] ^= (word & 0x11111111u) * scalar ^ ((word >> 1) & 0x11111111u) * t1 ^ ((word >> 2) & 0x11111111u) * t2 ^
                     ((word >> 3) & 0x11111111u) * t3;
        }
    }

    DEVICE void add(u32 *to, const u32 *from) {
        for (int w = 0; w < W; w++) to[w] ^= from[w];
    }

    DEVICE u32 mix(u32 column) {
        u32 twice = ((column & 0x7f7f7f7fu) << 1) ^ (((column >> 7) & 0x01010101u) * 0x1bu), turned = (column >> 8) | (column << 24);
        u32 triple = twice ^ column;
        return twice ^ ((triple >> 8) | (triple << 24)) ^ ((column >> 16) | (column << 16)) ^ ((turned >> 16) | (turned << 16));
    }

    // `count` m-vectors of AES-128 key stream. Byte by byte over the S-box: keys are public.
    DEVICE void expand(const u8 *key, const u8 *nonce, u32 count, u32 *keys, u32 *to) {
        round_keys_of(key, keys);
        u32 n[4] = {0, 0, 0, 0};
        if (nonce) {
            for (int i = 0; i < 4; i++) n[i] = public_word(nonce + 4 * i);
        }
        u8 *bytes = (u8 *)to;
        u32 vector = 0, within = 0;
        for (u32 block = 0; vector < count; block++) {
            u32 s[4] = {n[0] ^ keys[0], n[1] ^ keys[1], n[2] ^ keys[2], n[3] ^ __byte_perm(block, 0, 0x0123) ^ keys[3]};
            for (int round = 1; round <= 10; round++) {
                u32 t[4];
                for (int c = 0; c < 4; c++) {
                    u32 column = sub_word((s[c] & 0xffu) | (s[(c + 1) % 4] & 0xff00u) | (s[(c + 2) % 4] & 0xff0000u) |
                                          (s[(c + 3) % 4] & 0xff000000u));
                    t[c] = (round < 10 ? mix(column) : column) ^ keys[4 * round + c];
                }
                for (int c = 0; c < 4; c++) s[c] = t[c];
            }
            for (int byte = 0; byte < 16 && vector < count; byte++) {
                bytes[vector * 4 * W + within++] = (u8)(s[byte / 4] >> (8 * (byte % 4)));
                if (within == S::M_BYTES) {
                    while (within < 4 * W) bytes[vector * 4 * W + within++] = 0;
                    within = 0;
                    vector++;
                }
            }
        }
    }

    DEVICE u32 oil(const Wk &k, u32 r, u32 j) { return nibble(k.seed + 16, r * S::O + j); }
    DEVICE u32 *p1(Wk &k, u32 r, u32 c) { return k.p + triangle(S::V, r, c) * W; }

    DEVICE void take_seed(Wk &k, const u8 *seed) {
        hash_parts<S::SALT_BYTES, 0, 0, 0>(seed, 0, 0, 0, k.seed, 16 + S::O_BYTES);
    }

    DEVICE void keygen(Wk &k, const u8 *seed, u8 *key, Cycles &cycles) {
        u64 start = lw_clock();
        take_seed(k, seed);
        u64 from = lw_clock();
        expand(k.seed, 0, S::P12_VECS, k.keys, k.p);
        cycles.expansion = lw_clock() - from;
        from = lw_clock();
        for (u32 i = 0; i < S::V * S::O * W; i++) k.x[i] = k.p[S::P1_VECS * W + i];
        for (u32 r = 0; r < S::V; r++) {
            for (u32 c = r; c < S::V; c++) {
                for (u32 j = 0; j < S::O; j++) add_times(k.x + (r * S::O + j) * W, p1(k, r, c), oil(k, c, j));
            }
        }
        cycles.products = lw_clock() - from;
        for (int i = 0; i < 16; i++) key[i] = k.seed[i];
        key += 16;
        for (u32 i = 0; i < S::O; i++) {
            for (u32 j = i; j < S::O; j++) {
                u32 sum[W] = {};
                for (u32 r = 0; r < S::V; r++) {
                    add_times(sum, k.x + (r * S::O + j) * W, oil(k, r, i));
                    if (i != j) add_times(sum, k.x + (r * S::O + i) * W, oil(k, r, j));
                }
                for (int byte = 0; byte < S::M_BYTES; byte++) key[byte] = (u8)(sum[byte / 4] >> (8 * (byte % 4)));
                key += S::M_BYTES;
            }
        }
        cycles.whole = lw_clock() - start;
    }

    DEVICE void take_target(Wk &k, const u8 *digest, const u8 *salt) {
        hash_parts<S::DIGEST_BYTES, S::SALT_BYTES, 0, 0>(digest, salt, 0, 0, k.target, S::M_BYTES + (S::LINEAR ? 32 : 0));
        if (S::LINEAR) expand(k.target + S::M_BYTES, k.target + S::M_BYTES + 16, S::N, k.keys, k.lambda);
    }

    // u from x_i (elements `element(i, r)`) and P x_i, over `rows` rows.
    template <class Element> DEVICE void pairs(Wk &k, u32 rows, Element element) {
        for (u32 i = 0; i < S::PAIRS * W; i++) k.u[i] = 0;
        for (u32 l = 0; l < S::PAIRS; l++) {
            u32 a = S::schedule(l, 0), b = S::schedule(l, 1), *to = k.u + l * W;
            for (u32 r = 0; r < rows; r++) {
                add_times(to, k.pv + (r * S::K + b) * W, element(a, r));
                if (a != b) add_times(to, k.pv + (r * S::K + a) * W, element(b, r));
                if (S::LINEAR && (a == 0 || b == 0)) add_times(to, k.lambda + r * W, element(a == 0 ? b : a, r));
            }
        }
    }

    // The target less the whipped sum of u, into `to`.
    DEVICE void whip(const Wk &k, u32 *to) {
        typedef Whip<S> Wh;
        u32 sum[Wh::LONG] = {};
        for (u32 l = 0; l < S::PAIRS; l++) {
            u32 carry = 0, turn = l % 8 * 4;
            for (int w = 0; w < W; w++) {
                sum[l / 8 + w] ^= __funnelshift_l(carry, k.u[l * W + w], turn);
                carry = k.u[l * W + w];
            }
            sum[l / 8 + W] ^= __funnelshift_l(carry, 0u, turn);
        }
        u32 before = 0;
        for (int w = 0; w <= Wh::HIGH; w++) {
            u32 high = w < Wh::HIGH ? sum[Wh::BASE + w] : 0u, next = w + 1 < Wh::HIGH ? sum[Wh::BASE + w + 1] : 0u;
            high = __funnelshift_r(high, next, Wh::SHIFT);
            u32 folded = Wh::folded(before, high);
            // Where the folded terms end, the high part's first word may begin: it is done with by then.
            sum[w] ^= folded;
            before = high;
        }
        for (int w = 0; w < W; w++) {
            u32 t = 0;
            for (int byte = 4 * w; byte < 4 * w + 4 && byte < S::M_BYTES; byte++) t |= (u32)k.target[byte] << (8 * (byte % 4));
            to[w] = Wh::low(sum[w], w) ^ t;
        }
    }

    // Rows of A and y from M, and x in place of r: `drawn` behind the vinegar vectors becomes x, one nibble each.
    DEVICE bool solve(Wk &k) {
        constexpr int KO = Wk::KO, WIDE = Wk::WIDE, PITCH = Solve<S>::PITCH;
        u8 *free = k.drawn + S::K * S::V_BYTES;
        for (u32 col = 0; col < KO; col++) Solve<S>::column(k.m, col, k.columns + col * PITCH);
        whip(k, k.columns + KO * PITCH);
        for (u32 row = 0; row < S::M; row++) {
            u32 *a = k.rows + row * WIDE, dot = 0;
            for (int w = 0; w < WIDE; w++) a[w] = 0;
            for (u32 col = 0; col <= KO; col++) {
                u32 e = (k.columns[col * PITCH + row / 8] >> (row % 8 * 4)) & 15u;
                if (col < KO) dot ^= times_one(e, nibble(free, col));
                a[col / 8] |= (col == KO ? e ^ dot : e) << (col % 8 * 4);
            }
        }
        // Row echelon: row `rank` collects from the rows below it until its entry is not 0, then clears the others.
        u32 rank = 0;
        u32 place[S::M];
        for (u32 row = 0; row < S::M; row++) place[row] = ~0u;
        for (u32 c = 0; c < KO; c++) {
            u32 shift = c % 8 * 4, found = 0, chosen = 0, pivot[WIDE] = {};
            for (u32 row = 0; row < S::M; row++) {
                const u32 *a = k.rows + row * WIDE;
                u32 able = mask_nonzero((a[c / 8] >> shift) & 15u) & ~mask_nonzero(~place[row]) & ~found;
                for (int w = c / 8; w < WIDE; w++) pivot[w] |= a[w] & able;
                chosen |= row & able;
                found |= able;
            }
            u32 scale = inverse((pivot[c / 8] >> shift) & 15u);
            for (int w = c / 8; w < WIDE; w++) pivot[w] = times_scalar(pivot[w], scale);
            for (u32 row = 0; row < S::M; row++) {
                u32 *a = k.rows + row * WIDE, self = found & ~mask_nonzero(row ^ chosen);
                u32 factor = (a[c / 8] >> shift) & 15u & found & ~self;
                for (int w = c / 8; w < WIDE; w++) a[w] = (a[w] & ~self) ^ (pivot[w] & self) ^ times_scalar(pivot[w], factor);
                place[row] = (place[row] & ~self) | (c & self);
            }
            rank += found & 1u;
        }
        if (!lw_declassify16(rank == S::M)) return false;
        for (u32 c = 0; c < KO; c++) {
            u32 x = 0;
            for (u32 row = 0; row < S::M; row++) {
                x |= (k.rows[row * WIDE + KO / 8] >> (KO % 8 * 4)) & 15u & ~mask_nonzero(place[row] ^ c);
            }
            free[c / 2] ^= (u8)(x << (c % 2 * 4));
        }
        return true;
    }

    DEVICE bool sign(Wk &k, const u8 *seed, const u8 *digest, const u8 *randomizer, u8 *signature, Cycles &cycles) {
        u64 start = lw_clock();
        take_seed(k, seed);
        expand(k.seed, 0, S::P12_VECS, k.keys, k.p);
        for (u32 r = 0; r < S::V; r++) {
            for (u32 j = 0; j < S::O; j++) {
                u32 *l = k.x + (r * S::O + j) * W;
                for (int w = 0; w < W; w++) l[w] = k.p[(S::P1_VECS + r * S::O + j) * W + w];
                for (u32 c = 0; c < S::V; c++) {
                    if (c != r) add_times(l, c < r ? p1(k, c, r) : p1(k, r, c), oil(k, c, j));
                }
            }
        }
        cycles.expansion = lw_clock() - start;
        hash_parts<S::DIGEST_BYTES, S::SALT_BYTES, S::SALT_BYTES, 0>(digest, randomizer, seed, 0, k.salt, S::SALT_BYTES);
        take_target(k, digest, k.salt);
        cycles.products = 0;
        bool solved = false;
        for (u32 attempt = 0; attempt < 256 && !solved; attempt++) {
            hash_parts<S::DIGEST_BYTES, S::SALT_BYTES, S::SALT_BYTES, 1>(digest, k.salt, seed, attempt, k.drawn,
                                                                         S::K * S::V_BYTES + S::R_BYTES);
            auto vinegar = [&](u32 i, u32 r) { return nibble(k.drawn + i * S::V_BYTES, r); };
            u64 from = lw_clock();
            for (u32 i = 0; i < S::V * S::K * W; i++) k.pv[i] = 0;
            for (u32 r = 0; r < S::V; r++) {
                for (u32 c = r; c < S::V; c++) {
                    for (u32 i = 0; i < S::K; i++) add_times(k.pv + (r * S::K + i) * W, p1(k, r, c), vinegar(i, c));
                }
            }
            cycles.products += lw_clock() - from;
            for (u32 i = 0; i < S::K * S::O; i++) {
                u32 *to = k.m + i * W, j = i % S::O;
                for (int w = 0; w < W; w++) to[w] = 0;
                if (S::LINEAR && i < S::O) add(to, k.lambda + (S::V + j) * W);
                for (u32 r = 0; r < S::V; r++) {
                    add_times(to, k.x + (r * S::O + j) * W, vinegar(i / S::O, r));
                    if (S::LINEAR && i < S::O) add_times(to, k.lambda + r * W, oil(k, r, j));
                }
            }
            pairs(k, S::V, vinegar);
            solved = solve(k);
        }
        if (solved) {
            const u8 *x = k.drawn + S::K * S::V_BYTES;
            constexpr u32 ENCODED = S::SIG_BYTES - S::SALT_BYTES;
            for (u32 i = 0; i < ENCODED; i++) signature[i] = 0;
            for (u32 at = 0; at < S::K * S::N; at++) {
                u32 i = at / S::N, r = at % S::N, e;
                if (r < S::V) {
                    e = nibble(k.drawn + i * S::V_BYTES, r);
                    for (u32 j = 0; j < S::O; j++) e ^= times_one(oil(k, r, j), nibble(x, i * S::O + j));
                } else {
                    e = nibble(x, i * S::O + r - S::V);
                }
                signature[at / 2] |= (u8)(e << (at % 2 * 4));
            }
            for (u32 i = 0; i < S::SALT_BYTES; i++) signature[ENCODED + i] = k.salt[i];
        }
        cycles.whole = lw_clock() - start;
        return solved;
    }

    DEVICE bool verify(Wk &k, const u8 *key, const u8 *digest, const u8 *signature, Cycles &cycles) {
        u64 start = lw_clock();
        expand(key, 0, S::P12_VECS, k.keys, k.p);
        cycles.expansion = lw_clock() - start;
        for (u32 i = 0; i < S::P3_VECS * W; i++) {
            u32 vector = i / W, from = i % W * 4, word = 0;
            for (u32 byte = 0; byte < 4 && from + byte < S::M_BYTES; byte++) {
                word |= (u32)key[16 + vector * S::M_BYTES + from + byte] << (8 * byte);
            }
            k.p[S::P12_VECS * W + i] = word;
        }
        take_target(k, digest, signature + S::SIG_BYTES - S::SALT_BYTES);
        auto s = [&](u32 i, u32 r) { return nibble(signature, i * S::N + r); };
        u64 from = lw_clock();
        for (u32 i = 0; i < S::N * S::K * W; i++) k.pv[i] = 0;
        for (u32 r = 0; r < S::N; r++) {
            for (u32 c = r; c < S::N; c++) {
                u32 at = c < S::V ? triangle(S::V, r, c)
                         : r < S::V ? S::P1_VECS + r * S::O + c - S::V
                                    : S::P12_VECS + triangle(S::O, r - S::V, c - S::V);
                for (u32 i = 0; i < S::K; i++) add_times(k.pv + (r * S::K + i) * W, k.p + at * W, s(i, c));
            }
        }
        pairs(k, S::N, s);
        cycles.products = lw_clock() - from;
        u32 y[W], different = 0;
        whip(k, y);
        for (int w = 0; w < W; w++) different |= y[w];
        cycles.whole = lw_clock() - start;
        return lw_declassify16(different == 0) != 0;
    }

    DEVICE void wipe(Wk &k) {
        volatile u32 *all = (volatile u32 *)&k;
        for (u32 i = 0; i < sizeof(Wk) / 4; i++) all[i] = 0;
    }

    // keygen, sign and verify of operation `i` of a batch, whichever `what` names. Whether there was memory and a result.
    enum What { KEY, SIGNATURE, VERDICT };
    template <What WHAT>
    DEVICE bool one(Wk &k, u32 i, const u8 *keys, const u8 *digests, const u8 *randomizers, u8 *out, Cycles &cycles) {
        const u8 *digest = digests + (u64)i * S::DIGEST_BYTES;
        bool made = true;
        if (WHAT == KEY) keygen(k, keys + (u64)i * S::SALT_BYTES, out + (u64)i * S::PK_BYTES, cycles);
        if (WHAT == SIGNATURE) {
            made = sign(k, keys + (u64)i * S::SALT_BYTES, digest, randomizers + (u64)i * S::SALT_BYTES,
                        out + (u64)i * S::SIG_BYTES, cycles);
        }
        if (WHAT == VERDICT) made = verify(k, keys + (u64)i * S::PK_BYTES, digest, out + (u64)i * S::SIG_BYTES, cycles);
        if (WHAT != VERDICT) wipe(k);
        return made;
    }

    // `flags`: 0 refused or exhausted, 1 made or valid, 2 no heap left.
    template <What WHAT, bool HEAP>
    DEVICE void run(u32 count, const u8 *keys, const u8 *digests, const u8 *randomizers, u8 *out, u8 *flags, u64 *cycles) {
        u32 i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= count) return;
        Cycles spent = {0, 0, 0};
        if (HEAP) {
            Wk *k = (Wk *)malloc(sizeof(Wk));
            flags[i] = 2;
            if (!k) return;
            flags[i] = one<WHAT>(*k, i, keys, digests, randomizers, out, spent);
            free(k);
        } else {
            Wk k;
            flags[i] = one<WHAT>(k, i, keys, digests, randomizers, out, spent);
        }
        cycles[3 * (u64)i] = spent.whole;
        cycles[3 * (u64)i + 1] = spent.expansion;
        cycles[3 * (u64)i + 2] = spent.products;
    }
};
