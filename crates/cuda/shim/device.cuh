// The dialect in which kernels of this workspace are written: one header, two meanings.
//
// Under nvcc it adds thin wrappers over instructions that CUDA C++ has no function for. Compiled as plain C++ (with
// LANEWORK_EMULATED set) it brings `emulated.h`, in which a fiber stands for every thread.
//
// Rules of the dialect:
//  * Entry points are `extern "C" __global__ void name(...)`, and one LW_KERNELS(program, LW_KERNEL(name), ...) per program
//    lists them.
//  * Shared memory is dynamic only, by LW_SHARED(type, name); `__shared__` does not compile in emulation.
//  * No exceptions, no library but <stdint.h> and <string.h>, no destructor that matters: a failed launch leaves its
//    fibers where they stand.
//  * Secrets meet no branch and no address. What becomes public by the protocol (a rank, a rejected attempt) goes
//    through lw_declassify, which the lint over the machine code counts and memcheck honours.
#pragma once
#include <stdint.h>

#define LW_WARP 32u
#define LW_ALL 0xffffffffu

#ifdef LANEWORK_EMULATED
#include "emulated.h"
#else

#define LW_KERNELS(program, ...)
#define LW_KERNEL(name)

// All dynamic shared memory of the block, as `type*`; the launch says how many bytes there are.
#define LW_SHARED(type, name)                                                                                          \
    extern __shared__ __align__(128) unsigned char lw_dynamic_shared[];                                                \
    type *name = reinterpret_cast<type *>(lw_dynamic_shared)

// Any function of three words: `table` is what it makes of 0xf0, 0xcc, 0xaa.
template <int table> __device__ __forceinline__ uint32_t lw_lop3(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(c), "n"(table));
    return d;
}

// Barrier `id` (1 to 15; 0 is __syncthreads) among `threads` threads, a multiple of 32. All of a warp come together: the form for warps
// that may have parted costs a subroutine, through which the lint loses sight of what is secret where.
__device__ __forceinline__ void lw_barrier(uint32_t id, uint32_t threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Counts as arrived at barrier `id`, and goes on.
__device__ __forceinline__ void lw_barrier_arrive(uint32_t id, uint32_t threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// 16 bytes from device memory to shared memory, there after lw_copy_wait and a barrier. Both ends are 16-byte aligned.
__device__ __forceinline__ void lw_copy_async16(void *shared, const void *global)
{
    uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}

// Closes a group of copies.
__device__ __forceinline__ void lw_copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most `pending` of this thread's groups are on their way.
template <int pending> __device__ __forceinline__ void lw_copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// d += popcount(A and B) over bits, for a 16 x 256 by 256 x 8 product held by a whole warp. With g = lane / 4 and
// t = lane % 4: a[0], a[2] are row g and a[1], a[3] row g + 8, at columns 32 t.. (a[0], a[1]) and 128 + 32 t..;
// b[0], b[1] are column g at rows 32 t.. and 128 + 32 t..; d[0], d[1] are row g, columns 2 t and 2 t + 1, and d[2], d[3]
// the same of row g + 8.
__device__ __forceinline__ void lw_mma_b1(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// A value of 0 to 65,535 that is public from here on. The instruction it costs (a dot product with the constant 1) stands
// for nothing else in this dialect, so that the lint knows it again.
__device__ __forceinline__ uint32_t lw_declassify16(uint32_t value)
{
    uint32_t d;
    asm volatile("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(value), "r"(1u), "r"(0u));
    return d;
}

// A word that is public from here on.
__device__ __forceinline__ uint32_t lw_declassify(uint32_t value)
{
    return lw_declassify16(value) | (lw_declassify16(value >> 16) << 16);
}

// `base` plus 128 times byte `byte` of a public word: where row `byte` of a table of 128-byte rows begins. One instruction, which
// stands for nothing else in this dialect: the lint takes what comes out for public, and counts it. The emulation does not, so
// that memcheck tells whether it is.
template <int byte> __device__ __forceinline__ uint32_t lw_public_row(uint32_t word, uint32_t base)
{
    uint32_t d;
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(word), "r"(0x80u << (8 * byte)), "r"(base));
    return d;
}

// Cycles of this multiprocessor.
__device__ __forceinline__ uint64_t lw_clock()
{
    return (uint64_t)clock64();
}

#endif

// Overwrites `words` words with zero in a way that no compiler takes out. Every thread may call it on its own part.
__device__ __forceinline__ void lw_wipe(uint32_t *at, uint32_t words)
{
    volatile uint32_t *p = at;
    for (uint32_t i = 0; i < words; i++)
        p[i] = 0;
}

// Lane of this thread in its warp, for blocks of one dimension.
__device__ __forceinline__ uint32_t lw_lane()
{
    return threadIdx.x & (LW_WARP - 1);
}
