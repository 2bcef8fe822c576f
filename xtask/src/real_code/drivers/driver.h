/* What the drivers of assembly share: inputs that follow from a number, noise in the dead stack before each call, and a hash of all results. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u, digest = 14695981039346656037u;

static uint64_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state * 2685821657736338717u;
}

static void fill(void *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) ((uint8_t *)to)[i] = (uint8_t)(next() >> 56);
}

static void absorb(const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) digest = (digest ^ ((const uint8_t *)from)[i]) * 1099511628211u;
}

static __attribute__((noinline)) void noise(void) {
    volatile uint64_t dead[2048];
    uint64_t x = next();
    for (size_t i = 0; i < 2048; i++) dead[i] = x += 0x9e3779b97f4a7c15u;
}

/* Whether x87 is as the ABI wants it after a call: empty, and with a caller's number in it afterwards. */
static void floats(void) {
    struct { uint32_t control, status, tags, rest[4]; } x87;
    __asm__ volatile("fnstenv %0\n\tfldenv %0" : "=m"(x87));
    absorb(&x87.tags, 2);
    volatile long double third = 1.0L / 3;
    double rounded = (double)(third * 3);
    absorb(&rounded, sizeof rounded);
}

/* A buffer of random bytes, one that is written, a call, and a result. */
#define IN(name, bytes) _Alignas(64) static uint8_t name[bytes]; fill(name, sizeof name)
#define OUT(name, bytes) _Alignas(64) static uint8_t name[bytes]; memset(name, 0, sizeof name)
#define CALL(function, ...) do { extern void function(); noise(); function(__VA_ARGS__); floats(); } while (0)
#define HASH(name) absorb(name, sizeof name)

static int finish(void) {
    printf("%016llx\n", (unsigned long long)digest);
    return 0;
}
