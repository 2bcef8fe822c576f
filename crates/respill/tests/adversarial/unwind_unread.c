#include <stdio.h>
#include <string.h>
#include <unwind.h>
typedef unsigned long u64;
static u64 state = 88172645463325252UL, sum = 1469598103934665603UL;
static u64 next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }
static void add(u64 x) { sum = (sum ^ x) * 1099511628211UL; }
extern u64 f(u64, u64);
extern u64 shell(u64, u64);
u64 seen;
/* What the unwinder finds in rbx for the caller's caller. */
static _Unwind_Reason_Code look(struct _Unwind_Context *c, void *n) { if (++*(int *)n == 3) { seen = _Unwind_GetGR(c, 3); return _URC_END_OF_STACK; } return _URC_NO_REASON; }
__attribute__((noinline)) u64 walk(u64 a) { int n = 0; seen = 0; _Unwind_Backtrace(look, &n); add(seen); return a + 1; }
/* Calls f with rbx = b. */
__asm__(".globl shell\nshell:\n.cfi_startproc\npushq %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx,0\nmovq %rsi,%rbx\ncall f\npopq %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n.cfi_endproc\n");
int main(void) {
    for (int i = 0; i < 300; i++) {
        volatile char noise[4096];
        memset((char *)noise, i * 37 + 1, sizeof noise);
        u64 a = next(), b = next();
        add(shell(a, b));
    }
    printf("%016lx\n", sum);
    return 0;
}
