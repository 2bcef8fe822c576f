// CUDA threads on a CPU: every thread is a fiber, blocks run one after another, and a collective happens when all
// threads that it names have reached it. What cannot happen on a device (a lane that never comes, an exited lane named,
// a barrier reached by a part of the block) ends the launch with a message.
//
// Included by `device.cuh` only.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __shared__ lanework_shared_memory_is_dynamic_only_use_LW_SHARED

struct dim3 {
    unsigned x, y, z;
};
struct uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
static inline uint2 make_uint2(uint32_t x, uint32_t y) { return uint2{x, y}; }
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return uint4{x, y, z, w}; }
static inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return ulonglong2{x, y}; }

extern "C" {

// The position of the running fiber.
struct lw_view {
    dim3 thread, block, threads, blocks;
    unsigned char *shared;
};
extern __thread lw_view lw_now;

// An argument as a kernel declares it: its size, and whether it is an address.
struct lw_parameter {
    uint16_t bytes, pointer;
};

// An entry point: its name, and how to call it with pointers to its arguments.
struct lw_kernel {
    const char *name;
    void (*call)(void *const *arguments);
    const lw_parameter *parameters;
    uint32_t count;
};

// A program: its entry points.
struct lw_program {
    const lw_kernel *kernels;
    uint32_t count;
};

// The order in which the threads of a block, and the blocks of a grid, take turns.
enum lw_order { LW_FORWARD = 0, LW_REVERSE = 1, LW_SHUFFLED = 2 };

struct lw_launch {
    dim3 blocks, threads;
    uint64_t shared;     // bytes of dynamic shared memory
    uint64_t stack;      // bytes of stack for a thread
    uint32_t order;      // an lw_order
    uint32_t seed;       // of LW_SHUFFLED
    uint64_t left;       // out: bytes of shared memory that a block left other than zero, the most of all blocks
    uint64_t collectives; // out: warp collectives and barriers that happened
};

// Runs a grid. 0, or 1 with the reason in `why` (at most `length` bytes with its end).
int lw_run(const lw_kernel *kernel, void *const *arguments, lw_launch *launch, char *why, size_t length);

enum lw_collective {
    LW_SYNC,
    LW_SHUFFLE,
    LW_BALLOT,
    LW_REDUCE_OR,
    LW_REDUCE_AND,
    LW_REDUCE_XOR,
    LW_REDUCE_ADD,
    LW_REDUCE_MIN,
    LW_REDUCE_MAX,
    LW_MATCH_ANY,
    LW_MMA
};

// One word to the warp and one back. `from` is the lane that a shuffle reads; `line` is where in the source this is.
uint32_t lw_warp(int kind, uint32_t mask, uint32_t value, uint32_t from, int line);
// Six words of every lane for all: the result is valid for the whole warp until its next collective.
const uint32_t *lw_exchange(int kind, const uint32_t *words, int line);
void lw_block(uint32_t id, uint32_t threads, int arrive, int line);
void lw_async_copy(void *to, const void *from);
void lw_async_commit(void);
void lw_async_wait(uint32_t pending);
void lw_trap(int line);
uint32_t lw_defined(uint32_t value);
unsigned lw_current_lane(void);
}

#define threadIdx (lw_now.thread)
#define blockIdx (lw_now.block)
#define blockDim (lw_now.threads)
#define gridDim (lw_now.blocks)
static const int warpSize = 32;

// The table of entry points: what LW_KERNELS and LW_KERNEL make.
namespace lw {
template <unsigned... I> struct indices {};
template <unsigned N, unsigned... I> struct count_to : count_to<N - 1, N - 1, I...> {};
template <unsigned... I> struct count_to<0, I...> {
    typedef indices<I...> type;
};
template <typename T> struct is_pointer {
    static const uint16_t value = 0;
};
template <typename T> struct is_pointer<T *> {
    static const uint16_t value = 1;
};
template <typename T, T function> struct entry;
template <typename... A, void (*function)(A...)> struct entry<void (*)(A...), function> {
    static constexpr lw_parameter parameters[sizeof...(A) + 1] = {{(uint16_t)sizeof(A), is_pointer<A>::value}..., {0, 0}};
    template <unsigned... I> static void spread(void *const *p, indices<I...>) { function(*(A *)p[I]...); }
    static void call(void *const *p)
    {
        (void)p;
        spread(p, typename count_to<sizeof...(A)>::type());
    }
    static constexpr lw_kernel named(const char *name) { return {name, &call, parameters, (uint32_t)sizeof...(A)}; }
};
} // namespace lw
#define LW_KERNEL(function) lw::entry<decltype(&function), &function>::named(#function)
#define LW_KERNELS(program, ...)                                                                                       \
    static const lw_kernel program##_kernels[] = {__VA_ARGS__};                                                        \
    extern "C" {                                                                                                       \
    extern const lw_program program;                                                                                   \
    const lw_program program = {program##_kernels, sizeof program##_kernels / sizeof(lw_kernel)};                      \
    }
#define LW_SHARED(type, name) type *name = reinterpret_cast<type *>(lw_now.shared)

// Collectives. The line is the caller's, so that a message can point at the source.
#define LW_LINE int line = __builtin_LINE()
static inline void __syncthreads(LW_LINE) { lw_block(0, 0, 0, line); }
static inline void __syncwarp(uint32_t mask = 0xffffffffu, LW_LINE) { (void)lw_warp(LW_SYNC, mask, 0, 0, line); }
static inline void lw_barrier(uint32_t id, uint32_t threads, LW_LINE) { lw_block(id, threads, 0, line); }
static inline void lw_barrier_arrive(uint32_t id, uint32_t threads, LW_LINE) { lw_block(id, threads, 1, line); }
static inline uint32_t __ballot_sync(uint32_t mask, int p, LW_LINE) { return lw_warp(LW_BALLOT, mask, p != 0, 0, line); }
static inline int __any_sync(uint32_t mask, int p, LW_LINE) { return lw_warp(LW_BALLOT, mask, p != 0, 0, line) != 0; }
static inline int __all_sync(uint32_t mask, int p, LW_LINE)
{
    return lw_warp(LW_BALLOT, mask, p == 0, 0, line) == 0;
}
static inline uint32_t __reduce_or_sync(uint32_t m, uint32_t v, LW_LINE) { return lw_warp(LW_REDUCE_OR, m, v, 0, line); }
static inline uint32_t __reduce_and_sync(uint32_t m, uint32_t v, LW_LINE) { return lw_warp(LW_REDUCE_AND, m, v, 0, line); }
static inline uint32_t __reduce_xor_sync(uint32_t m, uint32_t v, LW_LINE) { return lw_warp(LW_REDUCE_XOR, m, v, 0, line); }
static inline uint32_t __reduce_add_sync(uint32_t m, uint32_t v, LW_LINE) { return lw_warp(LW_REDUCE_ADD, m, v, 0, line); }
static inline uint32_t __reduce_min_sync(uint32_t m, uint32_t v, LW_LINE) { return lw_warp(LW_REDUCE_MIN, m, v, 0, line); }
static inline uint32_t __reduce_max_sync(uint32_t m, uint32_t v, LW_LINE) { return lw_warp(LW_REDUCE_MAX, m, v, 0, line); }
static inline uint32_t __match_any_sync(uint32_t m, uint32_t v, LW_LINE) { return lw_warp(LW_MATCH_ANY, m, v, 0, line); }

template <typename T> static inline T lw_shuffle(uint32_t mask, T value, uint32_t from, int line)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "words and double words are shuffled");
    uint32_t w[2] = {0, 0};
    memcpy(w, &value, sizeof(T));
    w[0] = lw_warp(LW_SHUFFLE, mask, w[0], from, line);
    if (sizeof(T) == 8)
        w[1] = lw_warp(LW_SHUFFLE, mask, w[1], from, line);
    memcpy(&value, w, sizeof(T));
    return value;
}
// The lane read, as PTX defines it for segments of `width` lanes: one outside the segment is the reader itself.
template <typename T> static inline T __shfl_sync(uint32_t m, T v, int from, int width = 32, LW_LINE)
{
    unsigned lane = lw_current_lane(), w = (unsigned)width;
    return lw_shuffle(m, v, (lane & ~(w - 1)) | ((unsigned)from & (w - 1)), line);
}
template <typename T> static inline T __shfl_xor_sync(uint32_t m, T v, int with, int width = 32, LW_LINE)
{
    unsigned lane = lw_current_lane(), from = lane ^ (unsigned)with, last = lane | ((unsigned)width - 1);
    return lw_shuffle(m, v, from <= last ? from : lane, line);
}
template <typename T> static inline T __shfl_up_sync(uint32_t m, T v, unsigned by, int width = 32, LW_LINE)
{
    unsigned lane = lw_current_lane(), first = lane & ~((unsigned)width - 1);
    return lw_shuffle(m, v, lane >= first + by ? lane - by : lane, line);
}
template <typename T> static inline T __shfl_down_sync(uint32_t m, T v, unsigned by, int width = 32, LW_LINE)
{
    unsigned lane = lw_current_lane(), last = lane | ((unsigned)width - 1);
    return lw_shuffle(m, v, lane + by <= last ? lane + by : lane, line);
}

static inline void lw_mma_b1(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], LW_LINE)
{
    uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const uint32_t *all = lw_exchange(LW_MMA, mine, line);
    unsigned lane = lw_current_lane(), row = lane >> 2, column = (lane & 3) * 2;
    for (unsigned i = 0; i < 4; i++) {
        // Row `row` of A is in the words of four lanes, and so is column `column` of B.
        unsigned high = i >> 1, c = column + (i & 1);
        uint32_t sum = 0;
        for (unsigned t = 0; t < 4; t++) {
            const uint32_t *left = all + (row * 4 + t) * 6, *right = all + (c * 4 + t) * 6;
            sum += (uint32_t)__builtin_popcount(left[high] & right[4]) + (uint32_t)__builtin_popcount(left[2 + high] & right[5]);
        }
        d[i] = (int32_t)((uint32_t)d[i] + sum);
    }
}

// Plain instructions. Selectors and tables are constants nearly always, and loops over them are to vanish then: AES is bytes by
// `__byte_perm` and nothing else.
template <int byte> static __forceinline__ uint32_t lw_public_row(uint32_t word, uint32_t base)
{
    return base + 128 * ((word >> (8 * byte)) & 255);
}
template <int table> static __forceinline__ uint32_t lw_lop3(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d = 0;
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        if (table >> i & 1)
            d |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return d;
}
static __forceinline__ uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t s)
{
    // Two that compilers do not see in the loop.
    if (__builtin_constant_p(s) && s == 0x1032)
        return a << 16 | a >> 16;
    if (__builtin_constant_p(s) && s == 0x0123)
        return __builtin_bswap32(a);
    uint64_t from = (uint64_t)b << 32 | a;
    uint32_t d = 0;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        uint32_t k = s >> (4 * i), byte = (uint32_t)(from >> (8 * (k & 7))) & 0xffu;
        if (k & 8)
            byte = (0u - (byte >> 7)) & 0xffu;
        d |= byte << (8 * i);
    }
    return d;
}
static inline uint32_t __funnelshift_l(uint32_t lo, uint32_t hi, uint32_t s)
{
    return (uint32_t)(((uint64_t)hi << 32 | lo) << (s & 31) >> 32);
}
static inline uint32_t __funnelshift_r(uint32_t lo, uint32_t hi, uint32_t s)
{
    return (uint32_t)(((uint64_t)hi << 32 | lo) >> (s & 31));
}
static inline int __popc(uint32_t v) { return __builtin_popcount(v); }
static inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
static inline int __clz(int v) { return v ? __builtin_clz((uint32_t)v) : 32; }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline uint32_t __brev(uint32_t v)
{
    v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
    v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(v);
}
static inline uint32_t __umulhi(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
static inline uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t max(uint32_t a, uint32_t b) { return a < b ? b : a; }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a < b ? b : a; }
template <typename T> static inline T __ldg(const T *p) { return *p; }

// Atomics: fibers take turns, so that plain reads and writes are as good.
template <typename T> static inline T lw_replace(T *p, T with)
{
    T old = *p;
    *p = with;
    return old;
}
template <typename T> static inline T atomicAdd(T *p, T v) { return lw_replace(p, (T)(*p + v)); }
template <typename T> static inline T atomicOr(T *p, T v) { return lw_replace(p, (T)(*p | v)); }
template <typename T> static inline T atomicAnd(T *p, T v) { return lw_replace(p, (T)(*p & v)); }
template <typename T> static inline T atomicXor(T *p, T v) { return lw_replace(p, (T)(*p ^ v)); }
template <typename T> static inline T atomicMax(T *p, T v) { return lw_replace(p, *p < v ? v : *p); }
template <typename T> static inline T atomicMin(T *p, T v) { return lw_replace(p, *p < v ? *p : v); }
template <typename T> static inline T atomicExch(T *p, T v) { return lw_replace(p, v); }
template <typename T> static inline T atomicCAS(T *p, T was, T v) { return lw_replace(p, *p == was ? v : *p); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __nanosleep(unsigned) {}
static inline void __trap(LW_LINE) { lw_trap(line); }

static inline void lw_copy_async16(void *shared, const void *global) { lw_async_copy(shared, global); }
static inline void lw_copy_commit() { lw_async_commit(); }
template <int pending> static inline void lw_copy_wait() { lw_async_wait(pending); }
static inline uint32_t lw_declassify(uint32_t value) { return lw_defined(value); }
static inline uint32_t lw_declassify16(uint32_t value) { return lw_defined(value) & 0xffffu; }
static inline uint64_t lw_clock() { return 0; }
#undef LW_LINE
