// MAYO with one thread to a whole operation: the baseline. `NAME_i` is kernel NAME for parameter set i.
#include "dialect.cuh"

#ifdef LANEWORK_EMULATED
#include <stdlib.h>
#endif

#include "params.cuh"

#include "field.cuh"

#include "keccak.cuh"

#include "hash.cuh"

#include "expand.cuh"

#include "products.cuh"

#include "whip.cuh"

#include "solve.cuh"

#include "thread.cuh"

#define ONE(name, i, what, heap)                                                                                              \
    KERNEL name##i(u32 count, const u8 *keys, const u8 *digests, const u8 *randomizers, u8 *out, u8 *flags, u64 *cycles) {    \
        Thread<Set##i>::run<Thread<Set##i>::what, heap>(count, keys, digests, randomizers, out, flags, cycles);               \
    }

// A thread's stack is 512 KiB at most on any device, so that the larger sets have the heap alone.
#define ON_HEAP(i)                                                                                                            \
    ONE(thread_keygen_heap_, i, KEY, true)                                                                                    \
    ONE(thread_sign_heap_, i, SIGNATURE, true)                                                                                \
    ONE(thread_verify_heap_, i, VERDICT, true)
#define ON_STACK(i)                                                                                                           \
    ONE(thread_keygen_stack_, i, KEY, false)                                                                                  \
    ONE(thread_sign_stack_, i, SIGNATURE, false)                                                                              \
    ONE(thread_verify_stack_, i, VERDICT, false)
#define LIST_HEAP(i) LW_KERNEL(thread_keygen_heap_##i), LW_KERNEL(thread_sign_heap_##i), LW_KERNEL(thread_verify_heap_##i),
#define LIST_STACK(i) LW_KERNEL(thread_keygen_stack_##i), LW_KERNEL(thread_sign_stack_##i), LW_KERNEL(thread_verify_stack_##i),

EACH_SET(ON_HEAP)
EACH_SMALL_SET(ON_STACK)

// Bytes that a thread works in, for each set.
#define SIZE(i) out[i] = (u32)sizeof(Work<Set##i>);
KERNEL thread_bytes(u32 *out) { EACH_SET(SIZE) }

LW_KERNELS(lanework_mayo_thread_kernels, EACH_SMALL_SET(LIST_STACK) EACH_SET(LIST_HEAP) LW_KERNEL(thread_bytes))
