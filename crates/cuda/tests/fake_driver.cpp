// A driver for tests: the functions that the crate calls, over the emulation, failing as FAKE_CUDA says. It is a list of
// words: init=CODE count=N version=V memory=BYTES load=CODE capability=MAJOR launch=CODE (the launch succeeds and everything
// after it fails with the code, as with a real device) wrong=1 (launches do nothing) late=1 (copies to the host happen when they
// are waited for).
#define LANEWORK_EMULATED 1
#include "device.cuh"

#include <stdio.h>
#include <stdlib.h>

extern "C" const lw_program lanework_selftest;

static long setting(const char *name, long otherwise)
{
    const char *all = getenv("FAKE_CUDA");
    size_t n = strlen(name);
    for (const char *p = all ? all : ""; *p; p++)
        if ((p == all || p[-1] == ' ') && strncmp(p, name, n) == 0 && p[n] == '=')
            return atol(p + n + 1);
    return otherwise;
}

static unsigned sticky;
#define LIVE                                                                                                           \
    if (sticky)                                                                                                        \
    return sticky

struct Copy {
    void *to;
    const void *from;
    size_t bytes;
};
static Copy late[100];
static size_t lates;

static unsigned settled()
{
    for (size_t i = 0; i < lates && !sticky; i++)
        memcpy(late[i].to, late[i].from, late[i].bytes);
    lates = 0;
    return sticky;
}

struct Block {
    void *at;
    size_t bytes;
};
static Block blocks[1000];
static size_t used;

static Block *find(void *at)
{
    for (Block &b : blocks)
        if (b.at == at && at)
            return &b;
    return nullptr;
}

static unsigned give(void **out, size_t bytes, bool device)
{
    if (device && used + bytes > (size_t)setting("memory", 1 << 30))
        return 2;
    for (Block &b : blocks)
        if (!b.at) {
            b.at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
            memset(b.at, 0x77, bytes);
            b.bytes = bytes;
            used += device ? bytes : 0;
            *out = b.at;
            return 0;
        }
    return 2;
}

static unsigned take(void *at, const char *what)
{
    Block *b = find(at);
    if (!b)
        return 1;
    size_t left = 0;
    for (size_t i = 0; i < b->bytes; i++)
        left += ((unsigned char *)at)[i] != 0;
    fprintf(stderr, "freed %s of %zu bytes, %zu not zero\n", what, b->bytes, left);
    free(at);
    b->at = nullptr;
    return 0;
}

extern "C" {
typedef void *H;
unsigned cuInit(unsigned) { return (unsigned)setting("init", 0); }
unsigned cuDriverGetVersion(int *v) { return *v = (int)setting("version", 13000), 0; }
unsigned cuGetErrorName(unsigned code, const char **s)
{
    *s = code == 999 ? nullptr : "FAKE_NAME";
    return code == 999;
}
unsigned cuGetErrorString(unsigned, const char **s) { return *s = "a failure made up for a test", 0; }
unsigned cuDeviceGetCount(int *n) { return *n = (int)setting("count", 1), 0; }
unsigned cuDeviceGet(int *d, int n) { return *d = n, 0; }
unsigned cuDeviceGetName(char *s, int n, int) { return snprintf(s, (size_t)n, "fake card"), 0; }
unsigned cuDeviceGetAttribute(int *v, int a, int)
{
    switch (a) {
    case 75: *v = (int)setting("capability", 9); return 0;
    case 76: *v = 0; return 0;
    case 16: *v = 4; return 0;
    case 97: *v = 232448; return 0;
    case 38: *v = 1 << 20; return 0;
    case 13: *v = 1000; return 0;
    default: return 1;
    }
}
unsigned cuDeviceTotalMem_v2(size_t *n, int) { return *n = 1 << 30, 0; }
unsigned cuDevicePrimaryCtxRetain(H *c, int) { return *c = &sticky, 0; }
unsigned cuDevicePrimaryCtxRelease_v2(int) { return fprintf(stderr, "released\n"), 0; }
unsigned cuCtxSetCurrent(H c) { return c == &sticky ? 0 : 201; }
unsigned cuCtxSynchronize() { return settled(); }
unsigned cuCtxSetLimit(unsigned, size_t bytes) { return bytes > 1 << 20 ? 2 : sticky; }
unsigned cuMemGetInfo_v2(size_t *f, size_t *t) { return *t = 1 << 30, *f = *t - used, sticky; }
unsigned cuMemAlloc_v2(uint64_t *p, size_t bytes)
{
    LIVE;
    return give((void **)p, bytes, true);
}
unsigned cuMemFree_v2(uint64_t p) { return sticky ? sticky : take((void *)p, "device memory"); }
unsigned cuMemHostAlloc(H *p, size_t bytes, unsigned)
{
    LIVE;
    return give(p, bytes, false);
}
unsigned cuMemFreeHost(H p) { return sticky ? sticky : take(p, "pinned memory"); }
unsigned cuMemsetD8_v2(uint64_t p, unsigned char v, size_t n)
{
    LIVE;
    return memset((void *)p, v, n), 0;
}
unsigned cuMemsetD8Async(uint64_t p, unsigned char v, size_t n, H) { return cuMemsetD8_v2(p, v, n); }
unsigned cuMemcpyHtoDAsync_v2(uint64_t d, const void *s, size_t n, H)
{
    LIVE;
    return memcpy((void *)d, s, n), 0;
}
unsigned cuMemcpyDtoHAsync_v2(void *d, uint64_t s, size_t n, H)
{
    LIVE;
    if (setting("late", 0) && lates < 100)
        return late[lates++] = {d, (const void *)s, n}, 0;
    return memcpy(d, (const void *)s, n), 0;
}
unsigned cuMemcpyDtoDAsync_v2(uint64_t d, uint64_t s, size_t n, H)
{
    LIVE;
    return memcpy((void *)d, (const void *)s, n), 0;
}
unsigned cuModuleLoadData(H *m, const void *image)
{
    LIVE;
    // What a fat binary begins with.
    if (*(const uint32_t *)image != 0xba55ed50u)
        return 200;
    return *m = (void *)&lanework_selftest, (unsigned)setting("load", 0);
}
unsigned cuModuleUnload(H) { return sticky; }
unsigned cuModuleGetFunction(H *f, H m, const char *name)
{
    const lw_program *p = (const lw_program *)m;
    for (uint32_t i = 0; i < p->count; i++)
        if (strcmp(p->kernels[i].name, name) == 0)
            return *f = (void *)&p->kernels[i], sticky;
    return 500;
}
unsigned cuFuncGetAttribute(int *v, int a, H) { return *v = a == 0 ? 1024 : a == 6 ? 90 : 0, sticky; }
unsigned cuFuncSetAttribute(H, int, int) { return sticky; }
unsigned cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, H, int threads, size_t) { return *n = 2048 / threads, sticky; }
unsigned cuLaunchKernel(H f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, H,
                        void **arguments, void **)
{
    LIVE;
    sticky = (unsigned)setting("launch", 0);
    if (sticky || setting("wrong", 0))
        return 0;
    lw_launch launch = {{gx, gy, gz}, {bx, by, bz}, shared, 1 << 16, 0, 0, 0, 0};
    char why[500];
    if (lw_run((const lw_kernel *)f, arguments, &launch, why, sizeof why))
        sticky = 719;
    return 0;
}
unsigned cuStreamCreate(H *s, unsigned) { return *s = &used, sticky; }
unsigned cuStreamDestroy_v2(H) { return sticky; }
unsigned cuStreamSynchronize(H) { return settled(); }
unsigned cuStreamWaitEvent(H, H, unsigned) { return sticky; }
unsigned cuEventCreate(H *e, unsigned) { return *e = &used, sticky; }
unsigned cuEventDestroy_v2(H) { return sticky; }
#ifndef LACKS_EVENT_RECORD
unsigned cuEventRecord(H, H) { return sticky; }
#endif
unsigned cuEventSynchronize(H) { return settled(); }
unsigned cuEventQuery(H) { return sticky; }
unsigned cuEventElapsedTime(float *ms, H, H) { return *ms = 1.5f, sticky; }
}
