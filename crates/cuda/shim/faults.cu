// What a device does not allow, for tests of the emulation. Two warps; `words` has 64.
#include "device.cuh"

// Half of a warp comes to one ballot, half to another.
extern "C" __global__ void divergent_ballot(uint32_t *words)
{
    uint32_t vote;
    if (threadIdx.x & 1)
        vote = __ballot_sync(LW_ALL, 1);
    else
        vote = __ballot_sync(LW_ALL, 0);
    words[threadIdx.x] = vote;
}

// A lane has left.
extern "C" __global__ void exited_lane(uint32_t *words)
{
    if (threadIdx.x == 3)
        return;
    words[threadIdx.x] = __reduce_or_sync(LW_ALL, threadIdx.x);
}

// A thread has left.
extern "C" __global__ void partial_barrier(uint32_t *words)
{
    if (words[threadIdx.x] == 0 && threadIdx.x == 40)
        return;
    __syncthreads();
    words[threadIdx.x] = 1;
}

// A part of a warp waits for the block, the other for the warp.
extern "C" __global__ void barrier_against_shuffle(uint32_t *words)
{
    if (lw_lane() < 16)
        __syncthreads();
    else
        words[threadIdx.x] = __shfl_sync(LW_ALL, 1u, 0);
}

// The block's threads wait in two places.
extern "C" __global__ void two_barriers(uint32_t *words)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    words[threadIdx.x] = 1;
}

// Nobody comes to the other half of barrier 3.
extern "C" __global__ void deadlock(uint32_t *words)
{
    if (threadIdx.x < 32)
        lw_barrier(3, 64);
    words[threadIdx.x] = 1;
}

// A producer that does not say that its work is there: the second warp waits for nothing.
extern "C" __global__ void missing_arrival(uint32_t *words)
{
    LW_SHARED(uint32_t, tile);
    if (threadIdx.x < 32) {
        tile[threadIdx.x] = threadIdx.x;
    } else {
        lw_barrier(2, 64);
        words[threadIdx.x] = tile[threadIdx.x - 32];
    }
}

// The first warp says that it is done; nobody asks.
extern "C" __global__ void unheard_arrival(uint32_t *words)
{
    if (threadIdx.x < 32)
        lw_barrier_arrive(4, 64);
    words[threadIdx.x] = 1;
}

// A producer that is a tile ahead of those who read: it arrives twice before they have come once.
extern "C" __global__ void early_arrival(uint32_t *words)
{
    if (threadIdx.x < 32) {
        lw_barrier_arrive(5, 32);
        lw_barrier_arrive(5, 32);
    }
    words[threadIdx.x] = 1;
}

// Those who arrive and those who wait count differently.
extern "C" __global__ void two_counts(uint32_t *words)
{
    if (threadIdx.x < 32)
        lw_barrier_arrive(6, 32);
    else
        lw_barrier(6, 64);
    words[threadIdx.x] = 1;
}

// Lanes 0 to 7 shuffle among themselves, one of them from lane 9.
extern "C" __global__ void shuffle_from_outside(uint32_t *words)
{
    if (threadIdx.x < 8)
        words[threadIdx.x] = __shfl_sync(0xffu, threadIdx.x, 9);
}

extern "C" __global__ void beyond(uint32_t *words)
{
    words[threadIdx.x + 1] = 1;
}

extern "C" __global__ void below(uint32_t *words)
{
    if (threadIdx.x == 0)
        words[-1] = 1;
}

extern "C" __global__ void beyond_shared(uint32_t *words)
{
    LW_SHARED(uint32_t, tile);
    tile[threadIdx.x & 31] = words[0];
}

extern "C" __global__ void trap(uint32_t *words)
{
    if (threadIdx.x == 5)
        __trap();
    words[threadIdx.x] = 1;
}

// Reads what another thread may or may not have written.
extern "C" __global__ void race(uint32_t *words)
{
    LW_SHARED(uint32_t, tile);
    tile[threadIdx.x] = threadIdx.x;
    words[threadIdx.x] = tile[(threadIdx.x + 1) & 63];
}

LW_KERNELS(lanework_faults, LW_KERNEL(divergent_ballot), LW_KERNEL(exited_lane), LW_KERNEL(partial_barrier),
           LW_KERNEL(barrier_against_shuffle), LW_KERNEL(two_barriers), LW_KERNEL(deadlock), LW_KERNEL(missing_arrival),
           LW_KERNEL(unheard_arrival), LW_KERNEL(early_arrival), LW_KERNEL(two_counts), LW_KERNEL(shuffle_from_outside),
           LW_KERNEL(beyond), LW_KERNEL(below), LW_KERNEL(beyond_shared), LW_KERNEL(trap), LW_KERNEL(race))
