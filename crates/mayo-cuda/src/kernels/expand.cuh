// AES-128 in counter mode by tables in shared memory, for public keys and nonces only: addresses depend on the data.
//
// Two tables of 256 words, each in 32 copies side by side, so that a warp's 32 lookups fall into 32 banks: 64 KiB. The two
// other tables of the usual four are these, turned by 16 bits: one byte permutation for each sum of two. A block of key stream
// takes 138 lookups (of 160, 22 see bytes that no counter changes, and are looked up once for a key), 32 a clock; an address comes
// out of a dot product, which is of the pipe that multiplies.
#pragma once

static constexpr int COPIES = 32;
// Words of a key's schedule in device memory.
static constexpr int SCHEDULE = 44;

// The S-box as the table holds it; `AES_SBOX` comes with the generated header.
DEVICE u32 sub_word(u32 a) {
    return (u32)AES_SBOX[a & 255u] | ((u32)AES_SBOX[(a >> 8) & 255u] << 8) | ((u32)AES_SBOX[(a >> 16) & 255u] << 16) |
           ((u32)AES_SBOX[a >> 24] << 24);
}

DEVICE u32 load_bytes(const u8 *p) { return (u32)p[0] | ((u32)p[1] << 8) | ((u32)p[2] << 16) | ((u32)p[3] << 24); }

// A word of a public seed, or of what lambda comes from: hashed from secrets, and released.
DEVICE u32 public_word(const u8 *p) { return lw_declassify(load_bytes(p)); }

// The 44 round keys of a key; a word holds a column, row 0 lowest.
DEVICE void round_keys_of(const u8 *key, u32 *words) {
    u32 w0 = public_word(key), w1 = public_word(key + 4), w2 = public_word(key + 8), w3 = public_word(key + 12);
    u32 constant = 1;
    ROLLED for (int round = 0; round < 11; round++) {
        words[4 * round] = w0;
        words[4 * round + 1] = w1;
        words[4 * round + 2] = w2;
        words[4 * round + 3] = w3;
        w0 ^= sub_word((w3 >> 8) | (w3 << 24)) ^ constant;
        w1 ^= w0;
        w2 ^= w1;
        w3 ^= w2;
        constant = (constant << 1) ^ ((constant >> 7) * 0x11bu);
    }
}

// (2 S, S, S, 3 S) of byte x.
DEVICE u32 table_word(u32 x) {
    u32 s = AES_SBOX[x], twice = ((s << 1) ^ ((s >> 7) * 0x11bu)) & 255u;
    return twice | (s << 8) | (s << 16) | ((twice ^ s) << 24);
}

// What no counter changes, since only the last two bytes of a block's input vary: in place of round keys 0, 1 and 2.
struct Opened {
    // Word 3 before the first round, words 0 and 1 after it and all four after the second, without what varies.
    u32 last, first0, first1, second[4];

    // What byte BYTE of `word` gives to a column.
    template <int BYTE> DEVICE u32 part(u32 word) {
        u32 entry = table_word((word >> (8 * BYTE)) & 255u);
        return BYTE == 0 ? entry : (entry << (8 * BYTE)) | (entry >> (32 - 8 * BYTE) % 32);
    }

    // From round keys, `n` xored to the first.
    DEVICE Opened of(const u32 *words, const u32 (&n)[4]) {
        u32 s0 = words[0] ^ n[0], s1 = words[1] ^ n[1], s2 = words[2] ^ n[2], s3 = words[3] ^ n[3];
        Opened o;
        o.last = s3;
        o.first0 = part<0>(s0) ^ part<1>(s1) ^ part<2>(s2) ^ words[4];
        o.first1 = part<0>(s1) ^ part<1>(s2) ^ part<3>(s0) ^ words[5];
        u32 t2 = part<0>(s2) ^ part<1>(s3) ^ part<2>(s0) ^ part<3>(s1) ^ words[6];
        u32 t3 = part<0>(s3) ^ part<1>(s0) ^ part<2>(s1) ^ part<3>(s2) ^ words[7];
        o.second[0] = part<2>(t2) ^ part<3>(t3) ^ words[8];
        o.second[1] = part<1>(t2) ^ part<2>(t3) ^ words[9];
        o.second[2] = part<0>(t2) ^ part<1>(t3) ^ words[10];
        o.second[3] = part<0>(t3) ^ part<3>(t2) ^ words[11];
        return o;
    }
};

// Schedules, a thread for each key: for those that `list` names, or all (null). `nonces` lie like the keys; null for zero.
DEVICE void schedules_of(u32 count, const u32 *list, const u8 *keys, const u8 *nonces, u32 stride, u32 *out) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    u64 at = (u64)(list ? list[i] : i) * stride;
    u32 *words = out + (u64)i * SCHEDULE, nonce[4] = {0, 0, 0, 0};
    round_keys_of(keys + at, words);
    if (nonces) {
        UNROLL for (int w = 0; w < 4; w++) nonce[w] = public_word(nonces + at + 4 * w);
    }
    Opened opened = Opened::of(words, nonce);
    words[0] = opened.last;
    words[1] = opened.first0;
    words[2] = opened.first1;
    UNROLL for (int w = 0; w < 4; w++) words[3 + w] = opened.second[w];
}

// A schedule that stays in device memory.
struct Lying {
    const uint4 *at;
    DEVICE Lying of(const u32 *words) {
        Lying k = {(const uint4 *)words};
        return k;
    }
    // Words 4 i to 4 i + 3.
    DEVICE uint4 row(const Lying &k, int i) { return k.at[i]; }
};

// A schedule in registers.
struct Held {
    uint4 rows[SCHEDULE / 4];
    DEVICE Held of(const u32 *words) {
        Held k;
        UNROLL for (int i = 0; i < SCHEDULE / 4; i++) k.rows[i] = ((const uint4 *)words)[i];
        return k;
    }
    DEVICE uint4 row(const Held &k, int i) { return k.rows[i]; }
};

struct Stream {
    // Shared memory: rows of 128 bytes, 32 copies of `table_word` of a byte, and behind them the same turned by a byte.
    const u8 *tables;
    u32 lane;
    static constexpr int WORDS = 2 * 256 * COPIES;

    // Fills the tables. The block waits for all its threads behind it.
    DEVICE Stream fill(u32 *shared) {
        for (u32 i = threadIdx.x; i < 256 * COPIES; i += blockDim.x) {
            u32 word = table_word(i / COPIES);
            shared[i] = word;
            shared[256 * COPIES + i] = (word << 8) | (word >> 24);
        }
        Stream t = {(const u8 *)shared, threadIdx.x % COPIES * 4};
        return t;
    }

    template <int ODD, int BYTE> DEVICE u32 look(const Stream &t, u32 word) {
        return *(const u32 *)(t.tables + ODD * 128 * 256 + lw_public_row<BYTE>(word, t.lane));
    }
    DEVICE u32 turned(u32 word) { return __byte_perm(word, 0, 0x1032); }

    DEVICE u32 column(const Stream &t, u32 a, u32 b, u32 c, u32 d, u32 key) {
        return look<0, 0>(t, a) ^ look<1, 1>(t, b) ^ key ^ turned(look<0, 2>(t, c) ^ look<1, 3>(t, d));
    }

    // Without MixColumns: byte 1 of every entry of the first table is S.
    DEVICE u32 ended(const Stream &t, u32 a, u32 b, u32 c, u32 d, u32 key) {
        u32 low = __byte_perm(look<0, 0>(t, a), look<0, 1>(t, b), 0x0051);
        u32 high = __byte_perm(look<0, 2>(t, c), look<0, 3>(t, d), 0x0051);
        return __byte_perm(low, high, 0x5410) ^ key;
    }

    // Block `number` of the key stream, below 2^16.
    template <class K> DEVICE uint4 block(const Stream &t, const K &k, u32 number) {
        uint4 first = K::row(k, 0), second = K::row(k, 1);
        u32 counter = first.x ^ __byte_perm(number, 0, 0x0144);
        u32 a = first.y ^ turned(look<1, 3>(t, counter)), b = first.z ^ turned(look<0, 2>(t, counter));
        u32 s0 = look<0, 0>(t, a) ^ look<1, 1>(t, b) ^ first.w;
        u32 s1 = look<0, 0>(t, b) ^ turned(look<1, 3>(t, a)) ^ second.x;
        u32 s2 = second.y ^ turned(look<0, 2>(t, a) ^ look<1, 3>(t, b));
        u32 s3 = look<1, 1>(t, a) ^ turned(look<0, 2>(t, b)) ^ second.z;
        UNROLL for (int round = 3; round < 10; round++) {
            uint4 key = K::row(k, round);
            u32 t0 = column(t, s0, s1, s2, s3, key.x), t1 = column(t, s1, s2, s3, s0, key.y);
            u32 t2 = column(t, s2, s3, s0, s1, key.z), t3 = column(t, s3, s0, s1, s2, key.w);
            s0 = t0;
            s1 = t1;
            s2 = t2;
            s3 = t3;
        }
        uint4 key = K::row(k, 10);
        return make_uint4(ended(t, s0, s1, s2, s3, key.x), ended(t, s1, s2, s3, s0, key.y), ended(t, s2, s3, s0, s1, key.z),
                          ended(t, s3, s0, s1, s2, key.w));
    }
};

// How m-vectors lie in device memory: cut into SLICES slices of WS words each; a buffer holds slice after slice, in
// each the vectors one behind the other. The last word's missing nibbles are 0. All products work slice by slice.
template <class S> struct Layout {
    static constexpr int WORDS = S::SLICES * S::WS;
    static_assert(WORDS * 4 >= S::M_BYTES && WORDS * 4 < S::M_BYTES + 4, "the slices must be the m-vector");

    // Word `at` of an m-vector that begins `offset` bytes into `bytes` (aligned words, one more readable behind).
    DEVICE u32 word_of(const u32 *bytes, u32 offset, int at) {
        offset += 4 * at;
        if (S::M_BYTES % 4 == 0) return bytes[offset / 4];
        u32 word = __funnelshift_r(bytes[offset / 4], bytes[offset / 4 + 1], 8 * (offset % 4));
        constexpr int TAIL = S::M_BYTES % 4;
        if (TAIL != 0 && at == WORDS - 1) word &= (1u << (8 * TAIL)) - 1;
        return word;
    }
};

constexpr int common(int a, int b) { return b == 0 ? a : common(b, a % b); }

// The most warps of a block that expands.
static constexpr int EXPAND_WARPS = 32;

template <class S> struct Expansion {
    typedef Layout<S> L;
    static_assert(S::P12_VECS * S::M_BYTES / 16 < 65536, "a block's number has two bytes");
    // m-vectors to a tile, which is a warp's: as many as its 32 blocks hold wherever in one they begin.
    static constexpr int TILE = (32 * 16 - 16 + common(S::M_BYTES, 16)) / S::M_BYTES;
    // Words of shared memory: tables, and for each warp its blocks; the last vector's last word is read with the one behind it.
    static constexpr int ROOM = 32 * 4 + 4, SHARED = Stream::WORDS + EXPAND_WARPS * ROOM;

    // `vectors` m-vectors for each of `count` keys, into buffers of `total` vectors. Warps wait for nobody.
    DEVICE void run(u32 count, const u32 *schedules, u32 vectors, u32 total, u32 *out) {
        LW_SHARED(u32, shared);
        Stream stream = Stream::fill(shared);
        __syncthreads();
        u32 warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32;
        u32 *own = shared + Stream::WORDS + warp * ROOM;
        u32 tiles = (vectors + TILE - 1) / TILE;
        ROLLED for (u32 item = blockIdx.x * warps + warp; item < count * tiles; item += gridDim.x * warps) {
            u32 op = item / tiles, first = item % tiles * TILE;
            u32 some = vectors - first < TILE ? vectors - first : TILE;
            u32 begin = first * S::M_BYTES / 16, blocks = ((first + some) * S::M_BYTES + 15) / 16 - begin;
            if (lane < blocks) {
                ((uint4 *)own)[lane] = Stream::block(stream, Lying::of(schedules + (u64)op * SCHEDULE), begin + lane);
            }
            __syncwarp();
            UNROLL for (u32 slice = 0; slice < S::SLICES; slice++) {
                u32 *to = out + (((u64)op * S::SLICES + slice) * total + first) * S::WS;
                for (u32 at = lane; at < some * S::WS; at += 32) {
                    u32 offset = first * S::M_BYTES - begin * 16 + at / S::WS * S::M_BYTES;
                    to[at] = L::word_of(own, offset, slice * S::WS + at % S::WS);
                }
            }
            __syncwarp();
        }
    }

    // P3 of public keys, behind P1 and P2. `keys` are compact public keys, `stride` bytes apart.
    DEVICE void place(u32 count, const u8 *keys, u32 total, u32 *out) {
        u32 at = blockIdx.x * blockDim.x + threadIdx.x;
        constexpr u32 EACH = S::P3_VECS * L::WORDS;
        if (at >= count * EACH) return;
        u32 op = at / EACH, rest = at % EACH;
        u32 slice = rest / (S::P3_VECS * S::WS), vector = rest / S::WS % S::P3_VECS, word = rest % S::WS;
        const u8 *bytes = keys + (u64)op * S::PK_BYTES + 16 + vector * S::M_BYTES;
        u32 value = 0, from = 4 * (slice * S::WS + word);
        UNROLL for (u32 byte = 0; byte < 4; byte++) {
            if (from + byte < S::M_BYTES) value |= (u32)bytes[from + byte] << (8 * byte);
        }
        out[((u64)op * L::WORDS + slice * S::WS) * total + (u64)(S::P12_VECS + vector) * S::WS + word] = value;
    }
};
