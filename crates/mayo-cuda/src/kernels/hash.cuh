// The hashes of an operation, one thread each. Everything hashed has one length for all operations of a batch.
#pragma once

// SHAKE256 of up to three strings and a counter byte, each of a fixed length.
template <int A, int B, int C, int COUNTER>
DEVICE void hash_parts(const u8 *a, const u8 *b, const u8 *c, u32 counter, u8 *out, int length) {
    Sponge sponge;
    Sponge::clear(sponge);
    Sponge::absorb(sponge, A + B + C + COUNTER, [=](int at) -> u64 {
        if (at < A) return a[at];
        if (at < A + B) return b[at - A];
        if (at < A + B + C) return c[at - A - B];
        return counter;
    });
    PLANT_LOAD((u32)sponge.a[0]);
    Sponge::squeeze(sponge, out, length);
}

// Bytes rounded up to what the sponge writes.
constexpr int squeezed(int length) { return (length + RATE - 1) / RATE * RATE; }

template <class S> struct Hashes {
    // seed_pk and packed O of a seed.
    static constexpr int SEED = squeezed(16 + S::O_BYTES);
    // t, and the key and nonce of lambda.
    static constexpr int TARGET = squeezed(S::M_BYTES + (S::LINEAR ? 32 : 0));
    // The salt; only its first SALT_BYTES mean anything.
    static constexpr int SALT = RATE;
    // Vinegar vectors and r, packed.
    static constexpr int DRAWN = squeezed(S::K * S::V_BYTES + S::R_BYTES);

    DEVICE void seed(u32 count, const u8 *seeds, u8 *out) {
        u32 i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= count) return;
        hash_parts<S::SALT_BYTES, 0, 0, 0>(seeds + (u64)i * S::SALT_BYTES, 0, 0, 0, out + (u64)i * SEED, 16 + S::O_BYTES);
    }

    // `keys`: which seed belongs to which message, or null where they are numbered alike.
    DEVICE void salt(u32 count, const u8 *digests, const u8 *randomizers, const u8 *seeds, const u32 *keys, u8 *salts) {
        u32 i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= count) return;
        u32 key = keys ? keys[i] : i;
        hash_parts<S::DIGEST_BYTES, S::SALT_BYTES, S::SALT_BYTES, 0>(
            digests + (u64)i * S::DIGEST_BYTES, randomizers + (u64)i * S::SALT_BYTES, seeds + (u64)key * S::SALT_BYTES, 0,
            salts + (u64)i * SALT, S::SALT_BYTES);
    }

    // Salts lie `stride` bytes apart: behind one another, or at the ends of signatures.
    DEVICE void target(u32 count, const u8 *digests, const u8 *salts, u32 stride, u8 *out) {
        u32 i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= count) return;
        hash_parts<S::DIGEST_BYTES, S::SALT_BYTES, 0, 0>(digests + (u64)i * S::DIGEST_BYTES, salts + (u64)i * stride, 0, 0,
                                                         out + (u64)i * TARGET, S::M_BYTES + (S::LINEAR ? 32 : 0));
    }

    // One attempt's vinegar vectors and r for those signatures that `list` names.
    DEVICE void draw(u32 count, const u32 *list, u32 attempt, const u8 *digests, const u8 *salts, const u8 *seeds,
                     const u32 *keys, u8 *out) {
        u32 at = blockIdx.x * blockDim.x + threadIdx.x;
        if (at >= count) return;
        u32 i = list[at], key = keys ? keys[i] : i;
        hash_parts<S::DIGEST_BYTES, S::SALT_BYTES, S::SALT_BYTES, 1>(
            digests + (u64)i * S::DIGEST_BYTES, salts + (u64)i * SALT, seeds + (u64)key * S::SALT_BYTES, attempt,
            out + (u64)i * DRAWN, S::K * S::V_BYTES + S::R_BYTES);
    }
};
