#include <signal.h>
#include <stdio.h>
#include <string.h>
typedef unsigned long u64;
static u64 state = 88172645463325252UL, sum = 1469598103934665603UL;
static u64 next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }
static void add(u64 x) { sum = (sum ^ x) * 1099511628211UL; }
u64 global[64];
/* Constants that only the linker knows. */
__asm__(".globl bound\n.set bound,4\n.globl place\n.set place,8\n.globl minus\n.set minus,-40");
/* Code outside that goes where a register points. */
__asm__(".globl __x86_indirect_thunk_r11,__x86_indirect_thunk_rax\n__x86_indirect_thunk_r11:jmp *%r11\n"
        "__x86_indirect_thunk_rax:jmp *%rax");
u64 (*pointer)(u64, u64);
/* Where it is there, x87's registers are empty and its top is not 0. */
extern char turned __attribute__((weak));
u64 outer(u64 a, u64 b) { long double x = (long double)(long)a * 3; return (u64)(long)(x / 1024) + b; }
u64 (*outer_table[2])(u64, u64) = {outer, outer};
/* Changes every register that it may. */
__attribute__((noinline)) u64 ext(u64 a) {
    __asm__ volatile("pcmpeqd %%xmm0,%%xmm0\n\tpcmpeqd %%xmm2,%%xmm2\n\tpcmpeqd %%xmm7,%%xmm7\n\tpcmpeqd %%xmm14,%%xmm14\n\t"
                     "pcmpeqd %%xmm15,%%xmm15" ::: "xmm0", "xmm2", "xmm7", "xmm14", "xmm15");
    if (__builtin_cpu_supports("avx512bw"))
        __asm__ volatile("kxorq %k1,%k1,%k1\n\tkxorq %k2,%k2,%k2\n\tkxorq %k3,%k3,%k3\n\tkxorq %k7,%k7,%k7\n\t"
                         "vpxorq %zmm16,%zmm16,%zmm16\n\tvpxorq %zmm31,%zmm31,%zmm31\n\tvpxorq %zmm30,%zmm30,%zmm30");
    return a * 3 + 1;
}
__attribute__((noinline)) u64 ext8(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h) {
    return a + b * 3 + c * 5 + d * 7 + e * 11 + f * 13 + g * 17 + h * 19;
}
__attribute__((noinline)) long double extld(u64 a) { return (long double)(a & 0xffff) * 0.5L; }
__attribute__((noinline)) double extd(double a) { return a * 2 + 1; }
__attribute__((noinline)) u64 apply(u64 (*p)(u64, u64), u64 a, u64 b) { return p(a, b) + ext(a); }
__attribute__((noinline)) void poke(u64 *p) { *p += 3; }
__attribute__((noinline)) u64 peek(u64 *p) { return *p; }
__attribute__((noinline)) u64 peek5(u64 *p) { return p[5]; }
__attribute__((noinline)) u64 peek_back(u64 *p) { return p[-2]; }
static void go_on(int number) { (void)number; }
/* Not a panic of Rust's core, though its name has all the words. */
u64 note(u64) __asm__("_ZN6my4core9panicking4note17h0123456789abcdefE");
u64 note(u64 a) { return a * 3; }
__attribute__((noinline)) u64 peek7(u64 a, u64 b, u64 c, u64 d, u64 e, u64 g, u64 *p) { return *p; }
/* By the lower 16 bits of an address above its own frame. */
__attribute__((noinline)) u64 peek16(u64 low) {
    u64 here = (u64)__builtin_frame_address(0);
    return *(u64 *)(here + (unsigned short)(low - here));
}
extern u64 f(u64, u64);
__attribute__((weak)) long double fld(u64, u64);
__attribute__((weak)) double fd(u64, u64);
int main(void) {
    signal(SIGTRAP, go_on);
    for (int i = 0; i < 300; i++) {
        volatile char noise[4096];
        memset((char *)noise, i * 37 + 1, sizeof noise);
        u64 a = next(), b = next();
        pointer = f;
        if (&turned) __asm__ volatile("fincstp");
        add(f(a, b));
        if (fld) { long double x = fld(a, b); add((u64)(long)x); }
        if (fd) { double x = fd(a, b); u64 w; memcpy(&w, &x, 8); add(w); }
        long double y = (long double)(long)a; /* NaN if x87 is not free */
        y = y * 3 + 1;
        add((u64)(long)(y / 1024));
        for (int j = 0; j < 64; j++) add(global[j]);
    }
    printf("%016lx\n", sum);
    return 0;
}
