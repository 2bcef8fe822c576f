// MAYO, many operations at once, an operation to many threads. `NAME_i` is kernel NAME for parameter set i.
#include "dialect.cuh"

#include "params.cuh"

#include "field.cuh"

#include "keccak.cuh"

#include "hash.cuh"

#include "expand.cuh"

#include "products.cuh"

#include "fused.cuh"

#include "bits.cuh"

#include "whip.cuh"

#include "solve.cuh"

KERNEL mayo_schedules(u32 count, const u32 *list, const u8 *keys, const u8 *nonces, u32 stride, u32 *out) {
    schedules_of(count, list, keys, nonces, stride, out);
}

#define HASH_KERNEL KERNEL __launch_bounds__(128)
#define PRODUCT_KERNEL(set, mode) KERNEL __launch_bounds__((Gram<set, mode>::THREADS))

#define STAMP(i)                                                                                                              \
    HASH_KERNEL mayo_seed_##i(u32 count, const u8 *seeds, u8 *out) { Hashes<Set##i>::seed(count, seeds, out); }               \
    HASH_KERNEL mayo_salt_##i(u32 count, const u8 *digests, const u8 *randomizers, const u8 *seeds, const u32 *keys,          \
                              u8 *salts) {                                                                                    \
        Hashes<Set##i>::salt(count, digests, randomizers, seeds, keys, salts);                                                \
    }                                                                                                                         \
    HASH_KERNEL mayo_target_##i(u32 count, const u8 *digests, const u8 *salts, u32 stride, u8 *out) {                         \
        Hashes<Set##i>::target(count, digests, salts, stride, out);                                                           \
    }                                                                                                                         \
    HASH_KERNEL mayo_draw_##i(u32 count, const u32 *list, u32 attempt, const u8 *digests, const u8 *salts,                    \
                              const u8 *seeds, const u32 *keys, u8 *out) {                                                    \
        Hashes<Set##i>::draw(count, list, attempt, digests, salts, seeds, keys, out);                                         \
    }                                                                                                                         \
    KERNEL __launch_bounds__(32 * EXPAND_WARPS)                                                                               \
        mayo_expand_##i(u32 count, const u32 *schedules, u32 vectors, u32 total, u32 *out) {                                  \
        Expansion<Set##i>::run(count, schedules, vectors, total, out);                                                        \
    }                                                                                                                         \
    KERNEL mayo_place_##i(u32 count, const u8 *keys, u32 total, u32 *out) {                                                   \
        Expansion<Set##i>::place(count, keys, total, out);                                                                    \
    }                                                                                                                         \
    PRODUCT_KERNEL(Set##i, KEYGEN) mayo_keygen_##i(const u32 *p, u32 total, const u8 *hashes, u8 *public_keys) {              \
        Products<Set##i>::keygen(p, total, hashes, public_keys);                                                              \
    }                                                                                                                         \
    KERNEL __launch_bounds__(LOWER_THREADS) mayo_lower_##i(u32 *p, u32 total, const u8 *hashes) { Products<Set##i>::lower(p, total, hashes); } \
    PRODUCT_KERNEL(Set##i, SIGN) mayo_sign_##i(const u32 *list, const u32 *keys, const u32 *p, u32 total, const u32 *lambda,  \
                                 const u8 *hashes, const u8 *drawn, u32 *u, u32 *m) {                                         \
        Products<Set##i>::sign<SIGN>(list, keys, p, total, lambda, hashes, drawn, u, m);                                      \
    }                                                                                                                         \
    PRODUCT_KERNEL(Set##i, SIGN_EXPANDED) mayo_sign_expanded_##i(const u32 *list, const u32 *keys, const u32 *p, u32 total, const u32 *lambda, \
                                          const u8 *hashes, const u8 *drawn, u32 *u, u32 *m) {                                \
        Products<Set##i>::sign<SIGN_EXPANDED>(list, keys, p, total, lambda, hashes, drawn, u, m);                             \
    }                                                                                                                         \
    PRODUCT_KERNEL(Set##i, VERIFY) mayo_verify_##i(const u32 *keys, const u32 *p, u32 total, const u32 *lambda, const u8 *signatures, \
                                   u32 *u) {                                                                                  \
        Products<Set##i>::verify(keys, p, total, lambda, signatures, u);                                                      \
    }                                                                                                                         \
    KERNEL __launch_bounds__(128)                                                                                             \
        mayo_check_##i(u32 count, const u32 *u, const u8 *targets, u8 *valid) {                                               \
        Whip<Set##i>::check(count, u, targets, valid);                                                                        \
    }                                                                                                                         \
    KERNEL __launch_bounds__(32) mayo_solve_##i(const u32 *list, const u32 *keys, const u32 *u, const u32 *m,                 \
                                                const u8 *targets, const u8 *hashes, const u8 *drawn, const u8 *salts,        \
                                                u8 *signatures, u8 *flags) {                                                  \
        Solve<Set##i>::run(list, keys, u, m, targets, hashes, drawn, salts, signatures, flags);                               \
    }

#define LIST(i)                                                                                                               \
    LW_KERNEL(mayo_seed_##i), LW_KERNEL(mayo_salt_##i), LW_KERNEL(mayo_target_##i), LW_KERNEL(mayo_draw_##i),                 \
        LW_KERNEL(mayo_expand_##i), LW_KERNEL(mayo_place_##i), LW_KERNEL(mayo_keygen_##i), LW_KERNEL(mayo_lower_##i),         \
        LW_KERNEL(mayo_sign_##i), LW_KERNEL(mayo_sign_expanded_##i), LW_KERNEL(mayo_verify_##i), LW_KERNEL(mayo_check_##i),   \
        LW_KERNEL(mayo_solve_##i),

#define FUSED_KERNEL(set, mode) KERNEL __launch_bounds__((Fused<set, mode>::THREADS), 1)
#define STAMP_FUSED(i)                                                                                                        \
    FUSED_KERNEL(Set##i, KEYGEN)                                                                                              \
    mayo_fused_keygen_##i(u32 count, const u32 *schedules, const u8 *hashes, u8 *public_keys) {                               \
        Whole<Set##i>::keygen(count, schedules, hashes, public_keys);                                                         \
    }                                                                                                                         \
    FUSED_KERNEL(Set##i, SIGN)                                                                                                \
    mayo_fused_sign_##i(u32 count, const u32 *list, const u32 *schedules, const u32 *lambda, const u8 *hashes,                \
                        const u8 *drawn, u32 *u, u32 *m) {                                                                    \
        Whole<Set##i>::sign(count, list, schedules, lambda, hashes, drawn, u, m);                                             \
    }                                                                                                                         \
    FUSED_KERNEL(Set##i, VERIFY)                                                                                              \
    mayo_fused_verify_##i(u32 count, const u32 *schedules, const u8 *public_keys, const u32 *lambda, const u8 *signatures,    \
                          u32 *u) {                                                                                           \
        Whole<Set##i>::verify(count, schedules, public_keys, lambda, signatures, u);                                          \
    }
#define LIST_FUSED(i) LW_KERNEL(mayo_fused_keygen_##i), LW_KERNEL(mayo_fused_sign_##i), LW_KERNEL(mayo_fused_verify_##i),

EACH_SET(STAMP)
EACH_SET(STAMP_FUSED)

// Verification with expanded keys by products of bits: keys laid for it, a key to each signature, one key for all.
#define BITS(i)                                                                                                               \
    KERNEL __launch_bounds__(128) mayo_bits_lay_##i(u32 count, const u32 *p, u32 total, u32 *bits) {                          \
        BitLayout<Set##i>::lay(count, p, total, bits);                                                                        \
    }                                                                                                                         \
    KERNEL __launch_bounds__(BitShape<Set##i>::Each::THREADS, 1)                                                              \
        mayo_bits_each_##i(u32 count, const u32 *keys, const u32 *bits, const u32 *lambda, const u8 *signatures, u32 *u) {    \
        BitShape<Set##i>::Each::verify(count, keys, bits, lambda, signatures, u);                                             \
    }                                                                                                                         \
    KERNEL __launch_bounds__(BitShape<Set##i>::One::THREADS, 1)                                                               \
        mayo_bits_one_##i(u32 count, const u32 *bits, const u32 *lambda, const u8 *signatures, u32 *u) {                      \
        BitShape<Set##i>::One::verify(count, 0, bits, lambda, signatures, u);                                                 \
    }
#define BITS_LIST(i) LW_KERNEL(mayo_bits_lay_##i), LW_KERNEL(mayo_bits_each_##i), LW_KERNEL(mayo_bits_one_##i),

EACH_SET(BITS)

#define BITS_SHAPES(i)                                                                                                        \
    {                                                                                                                         \
        typedef BitShape<Set##i> Shape;                                                                                       \
        u32 sizes[6] = {Shape::Each::B::KEY,      Shape::MANY, Shape::Each::PARTS, Shape::Each::THREADS,                      \
                        Shape::Each::SHARED * 4, Shape::One::SHARED * 4};                                                     \
        UNROLL for (int at = 0; at < 6; at++) out[6 * i + at] = sizes[at];                                                    \
    }
KERNEL mayo_bits_shapes(u32 *out) { EACH_SET(BITS_SHAPES) }

// Sizes as the kernels have them, for the host to hold its own against: bytes of the hashes, and of shared memory; threads of blocks.
#define SHAPES(i)                                                                                                             \
    {                                                                                                                         \
        u32 sizes[14] = {Hashes<Set##i>::SEED,        Hashes<Set##i>::TARGET,        Hashes<Set##i>::SALT,                    \
                         Hashes<Set##i>::DRAWN,       Expansion<Set##i>::SHARED * 4, Gram<Set##i, KEYGEN>::SHARED * 4,        \
                         Gram<Set##i, SIGN>::SHARED * 4, Gram<Set##i, SIGN_EXPANDED>::SHARED * 4,                             \
                         Gram<Set##i, VERIFY>::SHARED * 4, Solve<Set##i>::SHARED * 4, Gram<Set##i, KEYGEN>::THREADS,          \
                         Gram<Set##i, SIGN>::THREADS, Gram<Set##i, SIGN_EXPANDED>::THREADS, Gram<Set##i, VERIFY>::THREADS};   \
        UNROLL for (int at = 0; at < 14; at++) out[14 * i + at] = sizes[at];                                                  \
    }
// Threads of a block and bytes of shared memory, for the host to hold its own against.
#define FUSED_SHAPES(i)                                                                                                       \
    {                                                                                                                         \
        u32 sizes[6] = {Fused<Set##i, KEYGEN>::THREADS, Fused<Set##i, KEYGEN>::SHARED * 4, Fused<Set##i, SIGN>::THREADS,      \
                        Fused<Set##i, SIGN>::SHARED * 4, Fused<Set##i, VERIFY>::THREADS, Fused<Set##i, VERIFY>::SHARED * 4};  \
        UNROLL for (int at = 0; at < 6; at++) out[6 * i + at] = sizes[at];                                                    \
    }
KERNEL mayo_shapes(u32 *out) { EACH_SET(SHAPES) }
KERNEL mayo_fused_shapes(u32 *out) { EACH_SET(FUSED_SHAPES) }

LW_KERNELS(lanework_mayo_kernels,
           EACH_SET(LIST) EACH_SET(LIST_FUSED) EACH_SET(BITS_LIST) LW_KERNEL(mayo_shapes), LW_KERNEL(mayo_fused_shapes),
           LW_KERNEL(mayo_bits_shapes), LW_KERNEL(mayo_schedules))
