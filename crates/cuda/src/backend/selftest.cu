// Small kernels that use every part of the dialect once, so that a device, its driver and the emulation can be held
// against an answer computed on the CPU. No secrets.
#include "device.cuh"

// A word scrambled: three rounds of xor, shift and multiply.
static __device__ __forceinline__ uint32_t scramble(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

// out[i] = scramble(in[i] + i + salt) for i < n: addresses, arguments and a ragged last block.
extern "C" __global__ void lanework_map(const uint32_t *in, uint32_t *out, uint32_t n, uint32_t salt)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = scramble(in[i] + i + salt);
}

// Whole warps, whole blocks of 128: reverses the block's words through shared memory (brought there asynchronously),
// then stores for each thread the xor of: its warp's shuffle, ballot, or and xor reductions.
extern "C" __global__ void __launch_bounds__(128) lanework_warps(const uint32_t *in, uint32_t *out)
{
    LW_SHARED(uint32_t, tile);
    const uint32_t t = threadIdx.x, base = blockIdx.x * 128;
    if (t < 32)
        lw_copy_async16(tile + 4 * t, in + base + 4 * t);
    lw_copy_commit();
    lw_copy_wait<0>();
    __syncthreads();
    uint32_t v = tile[127 - t];
    uint32_t r = __shfl_xor_sync(LW_ALL, v, 5) ^ (__ballot_sync(LW_ALL, v & 1) << 1);
    r ^= __reduce_or_sync(LW_ALL, v & 0x00ff00ffu) ^ scramble(__reduce_xor_sync(LW_ALL, v));
    r = lw_lop3<0x96>(r, v, __byte_perm(v, r, 0x2541));
    __syncthreads();
    lw_wipe(tile + t, 1);
    out[base + t] = r;
}

// One warp: the 16 x 8 sums of a bit product of 16 x 256 by 256 x 8. `left` has 8 words a row, `right` 8 words a column.
extern "C" __global__ void __launch_bounds__(32) lanework_bits(const uint32_t *left, const uint32_t *right, uint32_t *out)
{
    const uint32_t lane = lw_lane(), g = lane >> 2, t = lane & 3;
    uint32_t a[4] = {left[g * 8 + t], left[(g + 8) * 8 + t], left[g * 8 + 4 + t], left[(g + 8) * 8 + 4 + t]};
    uint32_t b[2] = {right[g * 8 + t], right[g * 8 + 4 + t]};
    int32_t d[4] = {0, 0, 0, 0};
    lw_mma_b1(d, a, b);
    out[g * 8 + 2 * t] = (uint32_t)d[0];
    out[g * 8 + 2 * t + 1] = (uint32_t)d[1];
    out[(g + 8) * 8 + 2 * t] = (uint32_t)d[2];
    out[(g + 8) * 8 + 2 * t + 1] = (uint32_t)d[3];
}

LW_KERNELS(lanework_selftest, LW_KERNEL(lanework_map), LW_KERNEL(lanework_warps), LW_KERNEL(lanework_bits))
