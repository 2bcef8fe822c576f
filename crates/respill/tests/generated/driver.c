/* Runs every function of a batch and its rewrites on the same inputs, each on a stack of different noise, and compares what the theorem of
   DESIGN.md names. Output: a line `bad NUMBER VERSION WHAT` for each difference, and last `done RUNS`. Version 0 is the original against
   itself: a difference there is the generator's fault. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
typedef uint64_t u64;
enum { VERSIONS = 6, BELOW = 8192, ABOVE = 512 };

struct state {
    u64 general[16]; /* rax rcx rdx rbx rsp rbp rsi rdi r8 to r15 */
    u64 flags, mxcsr, masks[8];
    unsigned char vectors[32][64];
    unsigned char fx[512] __attribute__((aligned(16)));
};
extern const u64 batch_size;
extern void *const batch[][VERSIONS];

int has512;
static unsigned char stack[BELOW + ABOVE + 65536] __attribute__((aligned(64)));
void *stack_top = stack + 65536 + BELOW;
u64 saved_rsp, saved_rax, saved_out;
void *target;
/* What the functions name. */
u64 g_buf[64], g_idx[16], g_arg[64], *g_ptr, g_dirty;

void enter(struct state *in, struct state *out);
__asm__(
    ".text\n"
    ".globl enter\nenter:\n"
    "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "mov %rsp, saved_rsp(%rip)\n mov %rsi, saved_out(%rip)\n mov %rdi, %rax\n"
    "fninit\n ldmxcsr 136(%rax)\n"
    "cmpl $0, has512(%rip)\n je 1f\n"
    "kmovq 144(%rax), %k0\n kmovq 152(%rax), %k1\n kmovq 160(%rax), %k2\n kmovq 168(%rax), %k3\n"
    "kmovq 176(%rax), %k4\n kmovq 184(%rax), %k5\n kmovq 192(%rax), %k6\n kmovq 200(%rax), %k7\n"
    ".altmacro\n"
    ".macro one_in n\n vmovdqu64 208+64*\\n(%rax), %zmm\\n\n .endm\n"
    ".macro one_out n\n vmovdqu64 %zmm\\n, 208+64*\\n(%rax)\n .endm\n"
    ".macro two_in n\n movdqu 208+64*\\n(%rax), %xmm\\n\n .endm\n"
    ".macro two_out n\n movdqu %xmm\\n, 208+64*\\n(%rax)\n .endm\n"
    ".macro junk n\n vpbroadcastq %rcx, %zmm\\n\n .endm\n"
    ".macro junk_xmm n\n movq %rcx, %xmm\\n\n .endm\n"
    ".macro all name last\n .set j, 0\n .rept \\last\n \\name %j\n .set j, j+1\n .endr\n .endm\n"
    "all one_in 32\n jmp 2f\n"
    "1: all two_in 16\n"
    "2: mov stack_top(%rip), %rsp\n"
    "mov 8(%rax), %rcx\n mov 16(%rax), %rdx\n mov 24(%rax), %rbx\n mov 40(%rax), %rbp\n mov 48(%rax), %rsi\n mov 56(%rax), %rdi\n"
    "mov 64(%rax), %r8\n mov 72(%rax), %r9\n mov 80(%rax), %r10\n mov 88(%rax), %r11\n mov 96(%rax), %r12\n mov 104(%rax), %r13\n"
    "mov 112(%rax), %r14\n mov 120(%rax), %r15\n mov (%rax), %rax\n"
    "call *target(%rip)\n"
    "mov %rax, saved_rax(%rip)\n mov saved_out(%rip), %rax\n mov %rsp, 32(%rax)\n mov saved_rsp(%rip), %rsp\n"
    "pushfq\n pop 128(%rax)\n cld\n fxsave64 2256(%rax)\n fninit\n stmxcsr 136(%rax)\n"
    "mov %rcx, 8(%rax)\n mov %rdx, 16(%rax)\n mov %rbx, 24(%rax)\n mov %rbp, 40(%rax)\n mov %rsi, 48(%rax)\n mov %rdi, 56(%rax)\n"
    "mov %r8, 64(%rax)\n mov %r9, 72(%rax)\n mov %r10, 80(%rax)\n mov %r11, 88(%rax)\n mov %r12, 96(%rax)\n mov %r13, 104(%rax)\n"
    "mov %r14, 112(%rax)\n mov %r15, 120(%rax)\n mov saved_rax(%rip), %rcx\n mov %rcx, (%rax)\n"
    "cmpl $0, has512(%rip)\n je 3f\n all one_out 32\n vzeroupper\n jmp 4f\n"
    "3: all two_out 16\n"
    "4: pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n"
    /* What code outside may do under the ABI: rax stays, and all else that belongs to the callee is made from it. It notes whether x87
       was empty, and uses it. */
    "clobber:\n"
    "sub $40, %rsp\n fnstenv (%rsp)\n cmpw $-1, 8(%rsp)\n je 5f\n movq $1, g_dirty(%rip)\n 5: fldenv (%rsp)\n add $40, %rsp\n"
    ".rept 8\n fldpi\n .endr\n .rept 8\n fstp %st(0)\n .endr\n"
    "lea 1(%rax,%rax,2), %rcx\n"
    "cmpl $0, has512(%rip)\n je 6f\n all junk 32\n"
    "kmovq %rcx, %k0\n kmovq %rcx, %k1\n kmovq %rcx, %k2\n kmovq %rcx, %k3\n kmovq %rcx, %k4\n kmovq %rcx, %k5\n kmovq %rcx, %k6\n kmovq %rcx, %k7\n"
    "jmp 7f\n 6: all junk_xmm 16\n"
    "7: lea 3(%rax), %rdx\n lea 5(%rcx), %rsi\n lea 7(%rcx,%rax), %rdi\n lea 9(%rdx,%rcx,2), %r8\n lea 11(%r8,%rax), %r9\n"
    "lea 13(%r9), %r10\n lea 17(%r10,%r8), %r11\n"
    ".set i, 1\n .rept 16\n mov %rcx, -8*i-16(%rsp)\n .set i, i+1\n .endr\n"
    "ret\n"
    ".macro outside name\n .globl ext_\\name\n ext_\\name: call core_\\name\n call clobber\n ret\n .endm\n"
    "outside a\n outside poke\n outside peek\n outside through\n"
    ".globl ext8\next8: push 16(%rsp)\n push 16(%rsp)\n call core8\n add $16, %rsp\n call clobber\n ret\n"
    ".globl ext_ld\next_ld: call core_a\n call clobber\n push %rax\n fildq (%rsp)\n pop %rax\n ret\n"
    /* ext_cb(function, a): the function begins with junk made from a. */
    ".globl ext_cb\next_cb: push %rdi\n mov %rsi, %rax\n call clobber\n call *(%rsp)\n add $8, %rsp\n"
    "imul $0x1e3779b1, %rax\n call clobber\n ret\n"
    ".noaltmacro\n");

static u64 mix(u64 x) {
    x ^= x >> 31; x *= 0x9e3779b97f4a7c15u; x ^= x >> 29; x *= 0xbf58476d1ce4e5b9u; return x ^ x >> 32;
}
u64 core_a(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) { return mix(a + mix(b + mix(c + mix(d + mix(e + mix(f)))))); }
u64 core8(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h) { return core_a(a, b, c, d, e, f) + mix(g + mix(h)); }
u64 core_poke(u64 *p, u64 n, u64 v) {
    for (u64 i = 0; i <= (n & 3); i++) p[i] = p[i] * 3 + v;
    return mix(v);
}
u64 core_peek(u64 *p, u64 n) {
    u64 sum = 0;
    for (u64 i = 0; i <= (n & 3); i++) sum = mix(sum + p[i]);
    return sum;
}
u64 core_through(u64 a) { if (g_ptr) *g_ptr = *g_ptr * 5 + a; return mix(a); }

static u64 seed;
static u64 next(void) { seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17; return seed; }

static void prepare(u64 input, u64 noise, struct state *in) {
    seed = mix(input + 1) | 1;
    for (int i = 0; i < 64; i++) g_buf[i] = next(), g_arg[i] = next();
    for (int i = 0; i < 16; i++) g_idx[i] = next() & 3;
    g_ptr = 0, g_dirty = 0;
    memset(in, 0, sizeof *in);
    /* Small numbers and signs now and then: both ways of branches. */
    for (int i = 0; i < 16; i++) in->general[i] = next() & 3 ? next() : next() % 9 - 4;
    in->general[6] = (u64)g_arg;
    in->mxcsr = 0x1f80;
    for (int i = 0; i < 8; i++) in->masks[i] = next();
    for (int i = 0; i < 32; i++) for (int j = 0; j < 8; j++) { u64 x = next(); memcpy(in->vectors[i] + 8 * j, &x, 8); }
    unsigned char *top = stack_top;
    for (int i = 0; i < ABOVE; i += 8) { u64 x = next(); memcpy(top + i, &x, 8); }
    seed = mix(input * 7 + noise + 3) | 1;
    for (int i = 8; i <= BELOW; i += 8) { u64 x = next(); memcpy(top - i, &x, 8); }
}

static u64 arg_after[64], buf_after[64], idx_after[16];
static u64 *ptr_after, dirty_after;
static unsigned char above[ABOVE];
static void keep(void) {
    memcpy(arg_after, g_arg, sizeof g_arg); memcpy(buf_after, g_buf, sizeof g_buf); memcpy(idx_after, g_idx, sizeof g_idx);
    memcpy(above, stack_top, ABOVE); ptr_after = g_ptr; dirty_after = g_dirty;
}
static const char *compare(const struct state *a, const struct state *b) {
    static const char *const names[16] = {"rax", 0, "rdx", "rbx", "rsp", "rbp", 0, 0, 0, 0, 0, 0, "r12", "r13", "r14", "r15"};
    for (int i = 0; i < 16; i++) if (names[i] && a->general[i] != b->general[i]) return names[i];
    if ((a->flags ^ b->flags) & 0x400) return "direction";
    if (a->mxcsr != b->mxcsr) return "mxcsr";
    if (memcmp(a->vectors, b->vectors, 128)) return "xmm0-1";
    if (memcmp(a->fx, b->fx, 2)) return "x87-control";
    int top = a->fx[3] >> 3 & 7;
    if (top != (b->fx[3] >> 3 & 7)) return "x87-top";
    if (a->fx[4] != b->fx[4]) return "x87-tags";
    for (int i = 0; i < 8; i++)
        if (a->fx[4] >> ((top + i) & 7) & 1 && memcmp(a->fx + 32 + 16 * i, b->fx + 32 + 16 * i, 10)) return "x87";
    if (memcmp(arg_after, g_arg, sizeof g_arg) || memcmp(buf_after, g_buf, sizeof g_buf) || memcmp(idx_after, g_idx, sizeof g_idx)
        || ptr_after != g_ptr) return "memory";
    if (dirty_after != g_dirty) return "x87-at-a-call";
    if (memcmp(above, stack_top, ABOVE)) return "caller's-frame";
    return 0;
}

struct place { volatile u64 function, version, runs; };

static void child(struct place *at, u64 inputs) {
    static struct state in, one, two;
    for (; at->function < batch_size; at->function++, at->version = 0)
        for (; at->version < VERSIONS; at->version++) {
            void *version = batch[at->function][at->version];
            if (!version) continue;
            /* A second of the processor's time, not of the clock's. */
            setitimer(ITIMER_VIRTUAL, &(struct itimerval){{0, 0}, {1, 0}}, 0);
            for (u64 i = 0; i < inputs; i++) {
                prepare(i + at->function * 1000, 1, &in);
                target = batch[at->function][0];
                enter(&in, &one);
                keep();
                prepare(i + at->function * 1000, 2 + at->version, &in);
                target = version;
                enter(&in, &two);
                at->runs++;
                const char *what = compare(&one, &two);
                if (what) { printf("bad %lu %lu %s\n", at->function, at->version, what); break; }
            }
        }
}

int main(int argc, char **argv) {
    u64 inputs = argc > 1 ? strtoull(argv[1], 0, 10) : 16;
    setvbuf(stdout, 0, _IONBF, 0);
    has512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    struct place *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 2;
    while (at->function < batch_size) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid < 0) return 2;
        if (pid == 0) { child(at, inputs); fflush(stdout); _exit(0); }
        int status;
        if (waitpid(pid, &status, 0) < 0) return 2;
        if (WIFSIGNALED(status)) {
            printf("bad %lu %lu signal-%d\n", at->function, at->version, WTERMSIG(status));
            if (++at->version == VERSIONS) at->version = 0, at->function++;
        } else if (WEXITSTATUS(status)) return 2;
    }
    printf("done %lu\n", at->runs);
    return 0;
}
