// Kernels of one set with leaks on purpose, for the emulated device alone: what the check by memcheck has to be seen finding.
#include "device.cuh"

// Outside, so that the compiler must go through with it.
extern "C" {
extern volatile uint32_t lanework_mayo_planted;
volatile uint32_t lanework_mayo_planted;
}
#define PLANT_BRANCH(secret)                                                                                                  \
    if (((secret) & 1u) != 0) lanework_mayo_planted = 1
#define PLANT_LOAD(secret) lanework_mayo_planted = AES_SBOX[(secret) & 255u]

#include "dialect.cuh"

#include "params.cuh"

#include "field.cuh"

#include "keccak.cuh"

#include "hash.cuh"

#include "expand.cuh"

#include "products.cuh"

#include "fused.cuh"

#include "whip.cuh"

#include "solve.cuh"

KERNEL planted_draw(u32 count, const u32 *list, u32 attempt, const u8 *digests, const u8 *salts, const u8 *seeds, const u32 *keys,
                    u8 *out) {
    Hashes<Set5>::draw(count, list, attempt, digests, salts, seeds, keys, out);
}
KERNEL planted_sign(const u32 *list, const u32 *keys, const u32 *p, u32 total, const u32 *lambda, const u8 *hashes, const u8 *drawn,
                    u32 *u, u32 *m) {
    Products<Set5>::sign<SIGN>(list, keys, p, total, lambda, hashes, drawn, u, m);
}
KERNEL planted_solve(const u32 *list, const u32 *keys, const u32 *u, const u32 *m, const u8 *targets, const u8 *hashes,
                     const u8 *drawn, const u8 *salts, u8 *signatures, u8 *flags) {
    Solve<Set5>::run(list, keys, u, m, targets, hashes, drawn, salts, signatures, flags);
}

KERNEL planted_fused_sign(u32 count, const u32 *list, const u32 *schedules, const u32 *lambda, const u8 *hashes, const u8 *drawn, u32 *u,
                          u32 *m) {
    Whole<Set5>::sign(count, list, schedules, lambda, hashes, drawn, u, m);
}

LW_KERNELS(lanework_mayo_planted_kernels, LW_KERNEL(planted_draw), LW_KERNEL(planted_sign), LW_KERNEL(planted_fused_sign),
           LW_KERNEL(planted_solve))
