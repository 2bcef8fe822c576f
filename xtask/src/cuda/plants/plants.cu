// Kernels that the lint must refuse, and some that it must let pass. The first word of a name says which.
#include "device.cuh"

// Loops by its arguments, masks by what it loads, stores at public addresses.
extern "C" __global__ void pass_masks(const uint32_t *in, uint32_t *out, uint32_t n)
{
    uint32_t sum = 0;
    for (uint32_t i = threadIdx.x; i < n; i += 32) {
        uint32_t v = in[i];
        sum ^= (0u - (v & 1)) & (v >> 3);
        sum ^= (uint32_t)__reduce_or_sync(LW_ALL, v & sum);
    }
    out[threadIdx.x] = sum;
}

// Branches on what it loads, but says that it is public.
extern "C" __global__ void pass_declassified(const uint32_t *in, uint32_t *out)
{
    uint32_t rank = lw_declassify16(in[threadIdx.x]);
    while (rank > 3) {
        out[rank & 31] = rank;
        rank = lw_declassify16(in[rank & 31]);
    }
}

// Addresses and branches by what it loads from memory that is public.
extern "C" __global__ void pass_open_index(const uint32_t *open, const uint32_t *in, uint32_t *out)
{
    uint32_t i = open[blockIdx.x];
    if (i != 0xffffffffu)
        for (uint32_t j = 0; j < open[i]; j++)
            out[i + j] = in[i + j] ^ in[threadIdx.x];
}

// The same by memory that is not.
extern "C" __global__ void refuse_open_index(const uint32_t *open, const uint32_t *in, uint32_t *out)
{
    uint32_t i = in[blockIdx.x];
    out[threadIdx.x] = open[i & 31];
}

// By what it was that was loaded last.
extern "C" __global__ void refuse_open_either(const uint32_t *open, const uint32_t *in, uint32_t *out, uint32_t n)
{
    const uint32_t *from = n & 1 ? open : in;
    out[from[threadIdx.x] & 31] = n;
}

// Makes memory secret that is said to be public.
extern "C" __global__ void refuse_open_store(uint32_t *open, const uint32_t *in)
{
    open[threadIdx.x] = in[threadIdx.x];
}

// A table of the module's own, read by public numbers and by a secret one.
__device__ const uint32_t PLANTED_TABLE[8] = {5, 3, 9, 30, 11, 23, 12, 1};
extern "C" __global__ void pass_own_table(const uint32_t *in, uint32_t *out)
{
    out[PLANTED_TABLE[threadIdx.x & 7]] = in[threadIdx.x];
}
extern "C" __global__ void refuse_own_table(const uint32_t *in, uint32_t *out)
{
    out[threadIdx.x] = PLANTED_TABLE[in[threadIdx.x] & 7];
}

// A function that is called, and comes back.
static __device__ __noinline__ uint32_t called(uint32_t v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        v = v * 2654435761u ^ i;
    return v;
}
extern "C" __global__ void pass_called(const uint32_t *in, uint32_t *out, uint32_t n)
{
    uint32_t v = called(in[threadIdx.x], n);
    out[threadIdx.x] = called(v, n + 1);
}
extern "C" __global__ void refuse_called(const uint32_t *in, uint32_t *out, uint32_t n)
{
    uint32_t v = called(1, n);
    out[threadIdx.x] = called(v, in[threadIdx.x]);
}

// A branch on a loaded value, with work in it that cannot be predicated away.
extern "C" __global__ void refuse_branch(const uint32_t *in, uint32_t *out, uint32_t n)
{
    uint32_t v = in[threadIdx.x];
    if (v & 4)
        for (uint32_t i = 0; i < n; i++)
            out[i] = v * i;
}

// A loop whose end depends on a loaded value.
extern "C" __global__ void refuse_loop(const uint32_t *in, uint32_t *out)
{
    uint32_t v = in[threadIdx.x], n = 0;
    while (v) {
        v = v * 2654435761u >> 3;
        n++;
    }
    out[threadIdx.x] = n;
}

// An address from a loaded value: a table of secrets' making.
extern "C" __global__ void refuse_address(const uint32_t *in, uint32_t *out)
{
    out[threadIdx.x] = in[32 + (in[threadIdx.x] & 31)];
}

// The same in shared memory.
extern "C" __global__ void refuse_shared_address(const uint32_t *in, uint32_t *out)
{
    LW_SHARED(uint32_t, table);
    table[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    out[threadIdx.x] = table[in[32 + threadIdx.x] & 31];
}

// A store that happens or not.
extern "C" __global__ void refuse_predicated_store(const uint32_t *in, uint32_t *out)
{
    if (in[threadIdx.x] & 1)
        out[threadIdx.x] = 1;
}

// A value that went through a shuffle is no less secret.
extern "C" __global__ void refuse_shuffled_branch(const uint32_t *in, uint32_t *out, uint32_t n)
{
    uint32_t v = __shfl_xor_sync(LW_ALL, in[threadIdx.x], 1);
    if (__ballot_sync(LW_ALL, v & 1) & 0x10)
        for (uint32_t i = 0; i < n; i++)
            out[i] = v * i;
}

// More live values than the registers that it is allowed: they spill.
extern "C" __global__ void __launch_bounds__(1024, 2) refuse_spill(const uint32_t *in, uint32_t *out)
{
    uint32_t v[64];
#pragma unroll
    for (int i = 0; i < 64; i++)
        v[i] = in[threadIdx.x + 32 * i];
#pragma unroll 1
    for (int round = 0; round < 7; round++)
#pragma unroll
        for (int i = 0; i < 64; i++)
            v[i] = v[(i + 1) & 63] * (v[i] | 1) ^ v[(i + 17) & 63];
#pragma unroll
    for (int i = 0; i < 64; i++)
        out[threadIdx.x + 32 * i] = v[i];
}

// A choice among many by a loaded value: jumps in a tree, or through a table.
extern "C" __global__ void refuse_switch(const uint32_t *in, uint32_t *out)
{
    uint32_t v = in[threadIdx.x];
    switch (v & 7) {
    case 0: out[1] = v * 3; __threadfence(); out[9] = v; break;
    case 1: out[2] = v + 3; __threadfence(); out[8] = v; break;
    case 2: out[3] = v ^ 3; __threadfence(); out[7] = v; break;
    case 3: out[4] = v | 3; __threadfence(); out[6] = v; break;
    case 4: out[5] = v & 3; __threadfence(); out[5] = v; break;
    case 5: out[6] = v / 3; __threadfence(); out[4] = v; break;
    case 6: out[7] = v % 3; __threadfence(); out[3] = v; break;
    default: out[8] = ~v;
    }
}
