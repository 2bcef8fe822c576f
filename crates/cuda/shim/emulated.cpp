// The scheduler behind `emulated.h`: fibers, collectives, and the reasons why a launch cannot go on.
#define LANEWORK_EMULATED 1
#include "device.cuh"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

__thread lw_view lw_now;

namespace {

// Valgrind's client requests: a rotation that does nothing on a processor and is a call in valgrind.
enum { STACK_REGISTER = 0x1501, STACK_DEREGISTER = 0x1502, MAKE_UNDEFINED = 0x4d430001, MAKE_DEFINED = 0x4d430002 };
uint64_t request(uint64_t what, uint64_t a, uint64_t b)
{
#if defined(__x86_64__)
    volatile uint64_t words[6] = {what, a, b, 0, 0, 0};
    uint64_t result;
    asm volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
                 : "=d"(result)
                 : "a"(&words[0]), "0"((uint64_t)0)
                 : "cc", "memory");
    return result;
#else
    (void)what, (void)a, (void)b;
    return 0;
#endif
}

enum Waiting { READY, DONE, WARP, BLOCK };

struct Copy {
    void *to;
    const void *from;
    uint32_t group;
};

struct Fiber {
#if defined(__x86_64__)
    void *sp;
#else
    ucontext_t context;
#endif
    unsigned char *stack;
    uint64_t registered; // what valgrind calls its stack
    dim3 thread;
    Waiting waiting;
    int kind, line;
    uint32_t mask, value, from, result; // of a warp collective
    uint32_t words[6];                  // of an exchange
    uint32_t barrier, expected, arrived;
    Copy *copies;
    uint32_t copied, room, group;
};

// One per host thread, kept between launches.
struct Scheduler {
    Fiber *fibers;
    unsigned count, capacity;
    uint64_t stack;
    unsigned char *memory;
    uint64_t mapped;
    unsigned char *shared, *shared_memory;
    uint64_t shared_bytes;
    uint32_t (*warps)[32 * 6]; // the exchange of each warp
    unsigned current;
    bool failed;
    char *why;
    size_t length;
    const lw_kernel *kernel;
    void *const *arguments;
    lw_launch *launch;
    uint32_t random;
    unsigned *turns;
    // Arrivals at the named barriers without waiters; how many threads each expects, and where.
    uint32_t arrivals[16], awaited[16];
    int arrival_lines[16];
#if defined(__x86_64__)
    void *sp;
#else
    ucontext_t context;
#endif
};
__thread Scheduler *here;

const char *const KINDS[] = {"__syncwarp",        "__shfl_sync",       "__ballot_sync (or any, all)", "__reduce_or_sync",
                             "__reduce_and_sync", "__reduce_xor_sync", "__reduce_add_sync",           "__reduce_min_sync",
                             "__reduce_max_sync", "__match_any_sync",  "a matrix product"};

#if defined(__x86_64__)
extern "C" void lw_switch(void **save, void *load);
asm(R"(
.text
.hidden lw_switch
.globl lw_switch
.type lw_switch, @function
lw_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    # Not `ret`: the processor would expect a return to whoever called. Threads of a block mostly go on at the same place.
    popq %rcx
    jmpq *%rcx
.size lw_switch, . - lw_switch
)");
#endif

void leave()
{
    Scheduler *s = here;
    Fiber *f = &s->fibers[s->current];
#if defined(__x86_64__)
    lw_switch(&f->sp, s->sp);
#else
    swapcontext(&f->context, &s->context);
#endif
}

void enter(unsigned index)
{
    Scheduler *s = here;
    Fiber *f = &s->fibers[index];
    s->current = index;
    lw_now.thread = f->thread;
#if defined(__x86_64__)
    lw_switch(&s->sp, f->sp);
#else
    swapcontext(&s->context, &f->context);
#endif
}

__attribute__((format(printf, 1, 2))) void fail(const char *format, ...)
{
    Scheduler *s = here;
    if (s->failed)
        return;
    s->failed = true;
    int n = snprintf(s->why, s->length, "%s, block %u: ", s->kernel->name, lw_now.block.x);
    if (n >= 0 && (size_t)n < s->length) {
        va_list list;
        va_start(list, format);
        vsnprintf(s->why + n, s->length - (size_t)n, format, list);
        va_end(list);
    }
}

// A fiber begins here, and is never resumed after its end.
void begin()
{
    here->kernel->call(here->arguments);
    Fiber *f = &here->fibers[here->current];
    f->waiting = DONE;
    f->copied = 0;
    for (;;)
        leave();
}

void prepare(Fiber *f)
{
    f->waiting = READY;
    f->copied = f->group = 0;
#if defined(__x86_64__)
    // What lw_switch pops, then `begin` as the address to return to, at which the stack is as after a call.
    uint64_t *top = (uint64_t *)(f->stack + here->stack) - 2;
    top[0] = (uint64_t)(uintptr_t)&begin;
    top[1] = 0;
    memset(top - 6, 0, 6 * sizeof *top);
    f->sp = top - 6;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = here->stack;
    f->context.uc_link = nullptr;
    makecontext(&f->context, begin, 0);
#endif
}

void drop_fibers(Scheduler *s)
{
    for (unsigned i = 0; i < s->capacity; i++) {
        request(STACK_DEREGISTER, s->fibers[i].registered, 0);
        free(s->fibers[i].copies);
    }
    free(s->fibers);
    free(s->warps);
    free(s->turns);
    if (s->memory)
        munmap(s->memory, s->mapped);
    s->fibers = nullptr;
    s->warps = nullptr;
    s->turns = nullptr;
    s->memory = nullptr;
    s->capacity = 0;
}

// Room for `count` fibers with stacks of `stack` bytes, each below a page that faults.
bool room(Scheduler *s, unsigned count, uint64_t stack)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    stack = (stack + page - 1) / page * page;
    if (s->capacity >= count && s->stack == stack)
        return true;
    drop_fibers(s);
    s->stack = stack;
    s->mapped = (stack + page) * count;
    s->memory = (unsigned char *)mmap(nullptr, s->mapped, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->memory == MAP_FAILED) {
        s->memory = nullptr;
        return false;
    }
    s->fibers = (Fiber *)calloc(count, sizeof(Fiber));
    s->warps = (uint32_t(*)[32 * 6]) calloc((count + 31) / 32, sizeof *s->warps);
    s->turns = (unsigned *)calloc(count, sizeof(unsigned));
    if (!s->fibers || !s->warps || !s->turns)
        return false;
    for (unsigned i = 0; i < count; i++) {
        unsigned char *guard = s->memory + (stack + page) * i;
        if (mprotect(guard, page, PROT_NONE) != 0)
            return false;
        s->fibers[i].stack = guard + page;
        s->fibers[i].registered = request(STACK_REGISTER, (uint64_t)(uintptr_t)(guard + page),
                                          (uint64_t)(uintptr_t)(guard + page + stack - 1));
    }
    s->capacity = count;
    return true;
}

uint32_t next_random(Scheduler *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 17;
    s->random ^= s->random << 5;
    return s->random;
}

// The order of turns for `n` of something.
void arrange(Scheduler *s, unsigned n, unsigned *turns)
{
    for (unsigned i = 0; i < n; i++)
        turns[i] = s->launch->order == LW_REVERSE ? n - 1 - i : i;
    if (s->launch->order == LW_SHUFFLED)
        for (unsigned i = n; i > 1; i--) {
            unsigned j = next_random(s) % i, t = turns[i - 1];
            turns[i - 1] = turns[j];
            turns[j] = t;
        }
}

// Whether the collective of this lane has all its lanes, and then what each of them gets.
bool release_warp(Scheduler *s, unsigned lane)
{
    Fiber *f = &s->fibers[lane];
    unsigned first = lane & ~31u;
    for (unsigned i = 0; i < 32; i++) {
        if (!(f->mask >> i & 1))
            continue;
        Fiber *o = &s->fibers[first + i];
        if (first + i >= s->count || o->waiting != WARP || o->mask != f->mask || o->kind != f->kind || o->line != f->line)
            return false;
    }
    uint32_t all = f->kind == LW_REDUCE_AND || f->kind == LW_REDUCE_MIN ? ~0u : 0;
    for (unsigned i = 0; i < 32; i++) {
        if (!(f->mask >> i & 1))
            continue;
        uint32_t v = s->fibers[first + i].value;
        switch (f->kind) {
        case LW_BALLOT: all |= (v & 1) << i; break;
        case LW_REDUCE_OR: all |= v; break;
        case LW_REDUCE_AND: all &= v; break;
        case LW_REDUCE_XOR: all ^= v; break;
        case LW_REDUCE_ADD: all += v; break;
        case LW_REDUCE_MIN: all = v < all ? v : all; break;
        case LW_REDUCE_MAX: all = v > all ? v : all; break;
        default: break;
        }
    }
    for (unsigned i = 0; i < 32; i++) {
        if (!(f->mask >> i & 1))
            continue;
        Fiber *o = &s->fibers[first + i];
        o->result = all;
        if (f->kind == LW_SHUFFLE) {
            if (!(f->mask >> (o->from & 31) & 1)) {
                fail("lane %u shuffles at line %d from lane %u, which mask %08x leaves out", i, o->line, o->from & 31, o->mask);
                return false;
            }
            o->result = s->fibers[first + (o->from & 31)].value;
        } else if (f->kind == LW_MATCH_ANY) {
            o->result = 0;
            for (unsigned j = 0; j < 32; j++)
                if ((f->mask >> j & 1) && s->fibers[first + j].value == o->value)
                    o->result |= 1u << j;
        } else if (f->kind == LW_MMA) {
            memcpy(s->warps[lane / 32] + i * 6, o->words, sizeof o->words);
        }
    }
    for (unsigned i = 0; i < 32; i++)
        if (f->mask >> i & 1)
            s->fibers[first + i].waiting = READY;
    s->launch->collectives++;
    return true;
}

// `ids`: the barriers that have waiters, a bit for each.
bool release_blocks(Scheduler *s, uint32_t ids)
{
    bool any = false;
    for (; ids; ids &= ids - 1) {
        uint32_t id = (uint32_t)__builtin_ctz(ids);
        uint32_t arrived = s->arrivals[id], arrivals = arrived, expected = 0, exited = 0;
        int line = 0, other = 0;
        for (unsigned i = 0; i < s->count; i++) {
            Fiber *f = &s->fibers[i];
            exited += f->waiting == DONE;
            if (f->waiting != BLOCK || f->barrier != id)
            continue;
            arrived++;
            if (expected && f->expected != expected)
                fail("barrier %u is to hold %u threads at line %d and %u at line %d", id, expected, line, f->expected, f->line);
            expected = f->expected;
            if (line && f->line != line)
                other = f->line;
            line = f->line;
        }
        if (!expected)
            continue;
        if (arrivals && s->awaited[id] != expected)
            fail("barrier %u is to hold %u threads at line %d and %u at line %d", id, s->awaited[id], s->arrival_lines[id], expected,
                 line);
        if (id == 0 && exited)
            fail("%u threads have ended before __syncthreads at line %d", exited, line);
        if (id == 0 && other)
            fail("__syncthreads is reached at line %d and at line %d at once", line, other);
        if (arrived > expected)
            fail("barrier %u at line %d holds %u threads and %u came", id, line, expected, arrived);
        if (s->failed)
            return false;
        if (arrived < expected)
            continue;
        for (unsigned i = 0; i < s->count; i++)
            if (s->fibers[i].waiting == BLOCK && s->fibers[i].barrier == id)
                s->fibers[i].waiting = READY;
        s->arrivals[id] = 0;
        s->launch->collectives++;
        any = true;
    }
    return any;
}

// All threads wait and none can be released: reports which thread waits for what.
void explain(Scheduler *s)
{
    unsigned a = 0;
    while (s->fibers[a].waiting == DONE)
        a++;
    Fiber *f = &s->fibers[a];
    if (f->waiting == WARP) {
        unsigned first = a & ~31u;
        for (unsigned i = 0; i < 32; i++) {
            if (!(f->mask >> i & 1))
                continue;
            Fiber *o = &s->fibers[first + i];
            if (first + i >= s->count || o->waiting == DONE) {
                fail("divergent: lane %u of warp %u is at %s, line %d, whose mask %08x names lane %u, which has ended", a & 31,
                     a / 32, KINDS[f->kind], f->line, f->mask, i);
                return;
            }
            if (o->waiting == BLOCK || o->kind != f->kind || o->mask != f->mask || o->line != f->line) {
                fail("divergent: lane %u of warp %u is at %s, line %d, mask %08x; lane %u is at %s, line %d", a & 31, a / 32,
                     KINDS[f->kind], f->line, f->mask, i, o->waiting == BLOCK ? "a barrier" : KINDS[o->kind], o->line);
                return;
            }
        }
    }
    for (unsigned i = 0; i < s->count; i++) {
        Fiber *o = &s->fibers[i];
        if (o->waiting == WARP && f->waiting != WARP) {
            fail("divergent: thread %u is at barrier %u, line %d; thread %u is at %s, line %d", a, f->barrier, f->line, i,
                 KINDS[o->kind], o->line);
            return;
        }
    }
    fail("deadlock: thread %u waits at barrier %u, line %d, for %u threads that do not come", a, f->barrier, f->line, f->expected);
}

void run_block(Scheduler *s)
{
    memset(s->arrivals, 0, sizeof s->arrivals);
    for (unsigned i = 0; i < s->count; i++) {
        unsigned x = s->launch->threads.x, y = s->launch->threads.y;
        s->fibers[i].thread = dim3{i % x, i / x % y, i / x / y};
        prepare(&s->fibers[i]);
    }
    // Kernels must not rely on the initial content of shared memory.
    memset(s->shared, 0xa5, s->shared_bytes);
    request(MAKE_UNDEFINED, (uint64_t)(uintptr_t)s->shared, s->shared_bytes);
    bool first = true;
    for (;;) {
        bool ran = false;
        // The order of the block stays, but for shuffled turns.
        if (first || s->launch->order == LW_SHUFFLED)
            arrange(s, s->count, s->turns);
        first = false;
        for (unsigned k = 0; k < s->count && !s->failed; k++)
            if (s->fibers[s->turns[k]].waiting == READY) {
                enter(s->turns[k]);
                ran = true;
            }
        if (s->failed)
            return;
        bool released = false, ended = true;
        uint32_t barriers = 0;
        for (unsigned i = 0; i < s->count && !s->failed; i++) {
            Fiber *f = &s->fibers[i];
            ended = ended && f->waiting == DONE;
            if (f->waiting == WARP)
                released |= release_warp(s, i);
            else if (f->waiting == BLOCK)
                barriers |= 1u << f->barrier;
        }
        if (s->failed || ended)
            break;
        if (!released)
            released = release_blocks(s, barriers);
        if (!released && !s->failed && !ran)
            explain(s);
        if (s->failed)
            return;
    }
    for (uint32_t id = 0; id < 16; id++)
        if (s->arrivals[id])
            fail("%u threads arrived at barrier %u, line %d, and the block ended before anybody waited there", s->arrivals[id], id,
                 s->arrival_lines[id]);
    const unsigned char *p = s->shared;
    uint64_t left = 0;
    request(MAKE_DEFINED, (uint64_t)(uintptr_t)s->shared, s->shared_bytes);
    for (uint64_t i = 0; i < s->shared_bytes;) {
        uint64_t word = 1;
        if (s->shared_bytes - i >= sizeof word)
            memcpy(&word, p + i, sizeof word);
        if (word == 0) {
            i += sizeof word;
            continue;
        }
        uint64_t end = i + sizeof word < s->shared_bytes ? i + sizeof word : s->shared_bytes;
        for (; i < end; i++)
            left += p[i] != 0;
    }
    if (left > s->launch->left)
        s->launch->left = left;
    for (int i = -128; i < 0; i++)
        if (s->shared[i] != 0x5a)
            fail("something wrote below the shared memory");
    for (int i = 0; i < 128; i++)
        if (s->shared[s->shared_bytes + i] != 0x5a)
            fail("something wrote beyond the %lu bytes of shared memory", (unsigned long)s->shared_bytes);
}

} // namespace

extern "C" {

int lw_run(const lw_kernel *kernel, void *const *arguments, lw_launch *launch, char *why, size_t length)
{
    if (!here)
        here = (Scheduler *)calloc(1, sizeof(Scheduler));
    uint64_t threads = (uint64_t)launch->threads.x * launch->threads.y * launch->threads.z;
    uint64_t blocks = (uint64_t)launch->blocks.x * launch->blocks.y * launch->blocks.z;
    if (!here || length == 0 || threads == 0 || threads > 1024 || blocks == 0 || !room(here, (unsigned)threads, launch->stack)) {
        if (length)
            snprintf(why, length, "%s: %lu threads with %lu bytes of stack cannot be allocated", kernel->name, (unsigned long)threads,
                     (unsigned long)launch->stack);
        return 1;
    }
    Scheduler *s = here;
    s->count = (unsigned)threads;
    s->kernel = kernel;
    s->arguments = arguments;
    s->launch = launch;
    s->failed = false;
    s->why = why;
    s->length = length;
    s->random = launch->seed | 1;
    launch->left = launch->collectives = 0;
    // A red zone of 128 bytes on both sides, and the alignment that LW_SHARED promises.
    s->shared_bytes = launch->shared;
    s->shared_memory = (unsigned char *)aligned_alloc(128, (launch->shared + 127) / 128 * 128 + 256);
    if (!s->shared_memory) {
        snprintf(why, length, "%s: %lu bytes of shared memory cannot be allocated", kernel->name, (unsigned long)launch->shared);
        return 1;
    }
    memset(s->shared_memory, 0x5a, (launch->shared + 127) / 128 * 128 + 256);
    s->shared = s->shared_memory + 128;
    lw_now.shared = s->shared;
    lw_now.threads = launch->threads;
    lw_now.blocks = launch->blocks;
    for (uint64_t i = 0; i < blocks && !s->failed; i++) {
        uint64_t b = launch->order == LW_REVERSE ? blocks - 1 - i : i;
        unsigned x = launch->blocks.x, y = launch->blocks.y;
        lw_now.block = dim3{(unsigned)(b % x), (unsigned)(b / x % y), (unsigned)(b / x / y)};
        run_block(s);
    }
    memset(s->shared_memory, 0, launch->shared + 256);
    free(s->shared_memory);
    // The next launch maps its stacks anew where this one was left amid its work.
    if (s->failed)
        drop_fibers(s);
    return s->failed;
}

// Frees what this host thread keeps between launches.
void lw_forget(void)
{
    if (here) {
        drop_fibers(here);
        free(here);
        here = nullptr;
    }
}

unsigned lw_current_lane(void) { return here->current & 31; }

uint32_t lw_warp(int kind, uint32_t mask, uint32_t value, uint32_t from, int line)
{
    Scheduler *s = here;
    Fiber *f = &s->fibers[s->current];
    if (!(mask >> (s->current & 31) & 1)) {
        fail("lane %u is at %s, line %d, whose mask %08x leaves it out", s->current & 31, KINDS[kind], line, mask);
        leave();
    }
    f->waiting = WARP;
    f->kind = kind;
    f->mask = mask;
    f->value = value;
    f->from = from;
    f->line = line;
    leave();
    return f->result;
}

const uint32_t *lw_exchange(int kind, const uint32_t *words, int line)
{
    Scheduler *s = here;
    memcpy(s->fibers[s->current].words, words, sizeof s->fibers[0].words);
    (void)lw_warp(kind, ~0u, 0, 0, line);
    return s->warps[s->current / 32];
}

void lw_block(uint32_t id, uint32_t threads, int arrive, int line)
{
    Scheduler *s = here;
    Fiber *f = &s->fibers[s->current];
    if (id > 15 || (id != 0 && (threads == 0 || threads % 32 || threads > s->count))) {
        fail("barrier %u for %u threads, at line %d, is none that a block of %u threads can have", id, threads, line, s->count);
        leave();
    }
    if (arrive) {
        if (s->arrivals[id] && s->awaited[id] != threads)
            fail("barrier %u is to hold %u threads at line %d and %u at line %d", id, s->awaited[id], s->arrival_lines[id], threads,
                 line);
        else if (s->arrivals[id] >= threads)
            fail("barrier %u holds %u threads, and one more arrived at line %d", id, threads, line);
        if (s->failed)
            leave();
        s->arrivals[id]++;
        s->awaited[id] = threads;
        s->arrival_lines[id] = line;
        return;
    }
    f->waiting = BLOCK;
    f->barrier = id;
    f->expected = id == 0 && threads == 0 ? s->count : threads;
    f->line = line;
    leave();
}

// The bytes move when they are waited for, so a thread that does not wait finds them missing.
void lw_async_copy(void *to, const void *from)
{
    Scheduler *s = here;
    Fiber *f = &s->fibers[s->current];
    if (((uintptr_t)to | (uintptr_t)from) & 15) {
        fail("an asynchronous copy of 16 bytes is not aligned to 16");
        leave();
    }
    if (f->copied == f->room) {
        uint32_t more = f->room ? f->room * 2 : 64;
        Copy *copies = (Copy *)realloc(f->copies, more * sizeof(Copy));
        if (!copies) {
            fail("out of memory for asynchronous copies");
            leave();
        }
        f->copies = copies;
        f->room = more;
    }
    f->copies[f->copied++] = Copy{to, from, f->group};
}

void lw_async_commit(void) { here->fibers[here->current].group++; }

void lw_async_wait(uint32_t pending)
{
    Fiber *f = &here->fibers[here->current];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->copied; i++) {
        if (f->copies[i].group + pending < f->group)
            memcpy(f->copies[i].to, f->copies[i].from, 16);
        else
            f->copies[kept++] = f->copies[i];
    }
    f->copied = kept;
}

void lw_trap(int line)
{
    fail("thread %u trapped at line %d", here->current, line);
    leave();
}

// Marks memory as holding nothing that may be looked at, for memcheck.
void lw_undefined(void *memory, uint64_t bytes)
{
    request(MAKE_UNDEFINED, (uint64_t)(uintptr_t)memory, bytes);
}

uint32_t lw_defined(uint32_t value)
{
    request(MAKE_DEFINED, (uint64_t)(uintptr_t)&value, sizeof value);
    return value;
}
}
