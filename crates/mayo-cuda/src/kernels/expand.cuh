// AES-128 in counter mode by tables in shared memory, for public keys and nonces only: addresses depend on the data.
//
// Two tables of 256 words, each in 32 copies side by side, so that a warp's 32 lookups fall into 32 banks: 64 KiB. The two
// other tables of the usual four are these, turned by 16 bits: one byte permutation for each sum of two. Per byte of
// key stream 10 lookups (the limit: 3.2 bytes per clock and multiprocessor) and about 20 other instructions.
#pragma once

static constexpr int COPIES = 32;
// Bytes of key stream that a block makes at a time, before it lays them out.
static constexpr int STREAM = 16384;

// The S-box as the table holds it; `AES_SBOX` comes with the generated header.
DEVICE u32 sub_word(u32 a) {
    return (u32)AES_SBOX[a & 255u] | ((u32)AES_SBOX[(a >> 8) & 255u] << 8) | ((u32)AES_SBOX[(a >> 16) & 255u] << 16) |
           ((u32)AES_SBOX[a >> 24] << 24);
}

DEVICE u32 load_bytes(const u8 *p) { return (u32)p[0] | ((u32)p[1] << 8) | ((u32)p[2] << 16) | ((u32)p[3] << 24); }

// A word of a public seed, or of what lambda comes from: hashed from secrets, and released.
DEVICE u32 public_word(const u8 *p) { return lw_declassify(load_bytes(p)); }

// The 44 words of a key's schedule; a word holds a column, row 0 lowest.
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

// A thread for each key: for those that `list` names, or all (null).
DEVICE void round_keys(u32 count, const u32 *list, const u8 *keys, u32 stride, u32 *out) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) round_keys_of(keys + (u64)(list ? list[i] : i) * stride, out + (u64)i * 44);
}

struct Tables {
    // Shared memory: word `COPIES * x + lane` of `even` is (2 S, S, S, 3 S) of byte x, of `odd` the same turned by a byte.
    u32 *even, *odd;
    u32 lane;

    DEVICE void fill(Tables &t, u32 *shared) {
        t.even = shared;
        t.odd = shared + 256 * COPIES;
        t.lane = threadIdx.x % COPIES;
        for (u32 i = threadIdx.x; i < 256 * COPIES; i += blockDim.x) {
            u32 s = AES_SBOX[i / COPIES], twice = ((s << 1) ^ ((s >> 7) * 0x11bu)) & 255u;
            u32 word = twice | (s << 8) | (s << 16) | ((twice ^ s) << 24);
            t.even[i] = word;
            t.odd[i] = (word << 8) | (word >> 24);
        }
    }

    template <int BYTE> DEVICE u32 look(const Tables &t, const u32 *table, u32 word) {
        return table[__byte_perm(word, 0, 0x4440 + BYTE) * COPIES + t.lane];
    }

    DEVICE u32 column(const Tables &t, u32 a, u32 b, u32 c, u32 d, u32 key) {
        u32 low = look<0>(t, t.even, a) ^ look<1>(t, t.odd, b) ^ key;
        u32 high = look<2>(t, t.even, c) ^ look<3>(t, t.odd, d);
        return low ^ __byte_perm(high, 0, 0x1032);
    }

    // Without MixColumns: byte 1 of every entry of `even` is S.
    DEVICE u32 last(const Tables &t, u32 a, u32 b, u32 c, u32 d, u32 key) {
        u32 low = __byte_perm(look<0>(t, t.even, a), look<1>(t, t.even, b), 0x0051);
        u32 high = __byte_perm(look<2>(t, t.even, c), look<3>(t, t.even, d), 0x0051);
        return __byte_perm(low, high, 0x5410) ^ key;
    }

    DEVICE uint4 encrypt(const Tables &t, const u32 *key, u32 s0, u32 s1, u32 s2, u32 s3) {
        s0 ^= key[0];
        s1 ^= key[1];
        s2 ^= key[2];
        s3 ^= key[3];
        UNROLL for (int round = 1; round < 10; round++) {
            const u32 *k = key + 4 * round;
            u32 t0 = column(t, s0, s1, s2, s3, k[0]), t1 = column(t, s1, s2, s3, s0, k[1]);
            u32 t2 = column(t, s2, s3, s0, s1, k[2]), t3 = column(t, s3, s0, s1, s2, k[3]);
            s0 = t0;
            s1 = t1;
            s2 = t2;
            s3 = t3;
        }
        uint4 out;
        out.x = last(t, s0, s1, s2, s3, key[40]);
        out.y = last(t, s1, s2, s3, s0, key[41]);
        out.z = last(t, s2, s3, s0, s1, key[42]);
        out.w = last(t, s3, s0, s1, s2, key[43]);
        return out;
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
        u32 word = __funnelshift_r(bytes[offset / 4], bytes[offset / 4 + 1], 8 * (offset % 4));
        constexpr int TAIL = S::M_BYTES % 4;
        if (TAIL != 0 && at == WORDS - 1) word &= (1u << (8 * TAIL)) - 1;
        return word;
    }
};

template <class S> struct Expansion {
    typedef Layout<S> L;
    // m-vectors to a tile, and words of shared memory: tables, stream with slack, one key schedule.
    static constexpr int TILE = (STREAM - 32) / S::M_BYTES;
    static constexpr int SHARED = 2 * 256 * COPIES + STREAM / 4 + 4 + 44;

    // `vectors` m-vectors for each of `count` keys, into buffers of `total` vectors. `nonces`: null for zero.
    DEVICE void run(u32 count, const u32 *schedules, const u8 *nonces, u32 nonce_stride, u32 vectors, u32 total, u32 *out) {
        LW_SHARED(u32, shared);
        Tables tables;
        Tables::fill(tables, shared);
        uint4 *stream = (uint4 *)(shared + 2 * 256 * COPIES);
        u32 *key = shared + 2 * 256 * COPIES + STREAM / 4 + 4;
        u32 tiles = (vectors + TILE - 1) / TILE;
        for (u32 item = blockIdx.x; item < count * tiles; item += gridDim.x) {
            u32 op = item / tiles, first = item % tiles * TILE;
            u32 some = vectors - first < TILE ? vectors - first : TILE;
            __syncthreads();
            if (threadIdx.x < 44) key[threadIdx.x] = schedules[(u64)op * 44 + threadIdx.x];
            __syncthreads();
            u32 n0 = 0, n1 = 0, n2 = 0, n3 = 0;
            if (nonces) {
                const u8 *nonce = nonces + (u64)op * nonce_stride;
                n0 = public_word(nonce);
                n1 = public_word(nonce + 4);
                n2 = public_word(nonce + 8);
                n3 = public_word(nonce + 12);
            }
            u32 begin = first * S::M_BYTES / 16, end = ((first + some) * S::M_BYTES + 15) / 16;
            for (u32 block = begin + threadIdx.x; block < end; block += blockDim.x) {
                stream[block - begin] = Tables::encrypt(tables, key, n0, n1, n2, n3 ^ __byte_perm(block, 0, 0x0123));
            }
            __syncthreads();
            u32 *to = out + (u64)op * total * L::WORDS;
            for (u32 at = threadIdx.x; at < some * L::WORDS; at += blockDim.x) {
                u32 slice = at / (some * S::WS), rest = at % (some * S::WS);
                u32 vector = rest / S::WS, word = rest % S::WS;
                u32 offset = (first + vector) * S::M_BYTES - begin * 16;
                to[((u64)slice * total + first + vector) * S::WS + word] =
                    L::word_of((const u32 *)stream, offset, slice * S::WS + word);
            }
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
