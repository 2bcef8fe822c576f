/* SHAKE128 and SHAKE256 (FIPS 202) in general registers alone. With LANES the permutation's 25 lanes are variables, two sets of them,
   of which a machine with 15 registers spills most; without, they stay in an array and the loops are loops. */
#include <stdint.h>

static const uint64_t ROUND[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
    0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
    0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};

static inline uint64_t left(uint64_t x, unsigned n) { return n == 0 ? x : x << n | x >> (64 - n); }

#ifdef LANES

/* One row of chi from five lanes of rho and pi. */
#define ROW(to, v, w, x, y, z)                                                                                         \
    to##0 = v ^ (~w & x), to##1 = w ^ (~x & y), to##2 = x ^ (~y & z), to##3 = y ^ (~z & v), to##4 = z ^ (~v & w)

static void permute(uint64_t s[25])
{
    uint64_t a0 = s[0], a1 = s[1], a2 = s[2], a3 = s[3], a4 = s[4];
    uint64_t b0 = s[5], b1 = s[6], b2 = s[7], b3 = s[8], b4 = s[9];
    uint64_t c0 = s[10], c1 = s[11], c2 = s[12], c3 = s[13], c4 = s[14];
    uint64_t d0 = s[15], d1 = s[16], d2 = s[17], d3 = s[18], d4 = s[19];
    uint64_t e0 = s[20], e1 = s[21], e2 = s[22], e3 = s[23], e4 = s[24];
    for (unsigned round = 0; round < 24; round++) {
        uint64_t p0 = a0 ^ b0 ^ c0 ^ d0 ^ e0, p1 = a1 ^ b1 ^ c1 ^ d1 ^ e1, p2 = a2 ^ b2 ^ c2 ^ d2 ^ e2;
        uint64_t p3 = a3 ^ b3 ^ c3 ^ d3 ^ e3, p4 = a4 ^ b4 ^ c4 ^ d4 ^ e4;
        uint64_t q0 = p4 ^ left(p1, 1), q1 = p0 ^ left(p2, 1), q2 = p1 ^ left(p3, 1), q3 = p2 ^ left(p4, 1);
        uint64_t q4 = p3 ^ left(p0, 1);
        uint64_t t00 = a0 ^ q0, t01 = left(b1 ^ q1, 44), t02 = left(c2 ^ q2, 43), t03 = left(d3 ^ q3, 21);
        uint64_t t04 = left(e4 ^ q4, 14), t10 = left(a3 ^ q3, 28), t11 = left(b4 ^ q4, 20), t12 = left(c0 ^ q0, 3);
        uint64_t t13 = left(d1 ^ q1, 45), t14 = left(e2 ^ q2, 61), t20 = left(a1 ^ q1, 1), t21 = left(b2 ^ q2, 6);
        uint64_t t22 = left(c3 ^ q3, 25), t23 = left(d4 ^ q4, 8), t24 = left(e0 ^ q0, 18), t30 = left(a4 ^ q4, 27);
        uint64_t t31 = left(b0 ^ q0, 36), t32 = left(c1 ^ q1, 10), t33 = left(d2 ^ q2, 15), t34 = left(e3 ^ q3, 56);
        uint64_t t40 = left(a2 ^ q2, 62), t41 = left(b3 ^ q3, 55), t42 = left(c4 ^ q4, 39), t43 = left(d0 ^ q0, 41);
        uint64_t t44 = left(e1 ^ q1, 2);
        ROW(a, t00, t01, t02, t03, t04);
        ROW(b, t10, t11, t12, t13, t14);
        ROW(c, t20, t21, t22, t23, t24);
        ROW(d, t30, t31, t32, t33, t34);
        ROW(e, t40, t41, t42, t43, t44);
        a0 ^= ROUND[round];
    }
    s[0] = a0, s[1] = a1, s[2] = a2, s[3] = a3, s[4] = a4;
    s[5] = b0, s[6] = b1, s[7] = b2, s[8] = b3, s[9] = b4;
    s[10] = c0, s[11] = c1, s[12] = c2, s[13] = c3, s[14] = c4;
    s[15] = d0, s[16] = d1, s[17] = d2, s[18] = d3, s[19] = d4;
    s[20] = e0, s[21] = e1, s[22] = e2, s[23] = e3, s[24] = e4;
}

#else

static const uint8_t TURN[25] = {0,  1,  62, 28, 27, 36, 44, 6,  55, 20, 3,  10, 43,
                                 25, 39, 41, 45, 15, 21, 8,  18, 2,  61, 56, 14};

static void permute(uint64_t s[25])
{
    uint64_t b[25], c[5];
    for (unsigned round = 0; round < 24; round++) {
        for (unsigned x = 0; x < 5; x++) c[x] = s[x] ^ s[x + 5] ^ s[x + 10] ^ s[x + 15] ^ s[x + 20];
        for (unsigned x = 0; x < 5; x++) {
            uint64_t d = c[x == 0 ? 4 : x - 1] ^ left(c[x == 4 ? 0 : x + 1], 1);
            for (unsigned y = 0; y < 5; y++) {
                unsigned to = 2 * x + 3 * y;
                while (to >= 5) to -= 5;
                b[y + 5 * to] = left(s[x + 5 * y] ^ d, TURN[x + 5 * y]);
            }
        }
        for (unsigned y = 0; y < 25; y += 5) {
            uint64_t v = b[y], w = b[y + 1], x = b[y + 2], z = b[y + 3], u = b[y + 4];
            s[y] = v ^ (~w & x);
            s[y + 1] = w ^ (~x & z);
            s[y + 2] = x ^ (~z & u);
            s[y + 3] = z ^ (~u & v);
            s[y + 4] = u ^ (~v & w);
        }
        s[0] ^= ROUND[round];
    }
}

#endif

static inline void sponge(uint8_t *out, uint64_t wanted, const uint8_t *in, uint64_t length, unsigned rate)
{
    uint64_t s[25];
    unsigned at = 0;
    for (unsigned i = 0; i < 25; i++) s[i] = 0;
    for (; length >= rate; length -= rate, in += rate) {
        for (unsigned i = 0; i < rate / 8; i++) {
            uint64_t x = 0;
            for (unsigned j = 8; j-- > 0;) x = x << 8 | in[8 * i + j];
            s[i] ^= x;
        }
        permute(s);
    }
    for (; at < length; at++) s[at / 8] ^= (uint64_t)in[at] << 8 * (at % 8);
    s[at / 8] ^= (uint64_t)0x1f << 8 * (at % 8);
    s[rate / 8 - 1] ^= (uint64_t)1 << 63;
    for (at = rate; wanted > 0; wanted--, out++, at++) {
        if (at == rate) {
            permute(s);
            at = 0;
        }
        *out = (uint8_t)(s[at / 8] >> 8 * (at % 8));
    }
}

int spill_shake128(uint8_t *out, uint64_t wanted, const uint8_t *in, uint64_t length)
{
    sponge(out, wanted, in, length, 168);
    return 0;
}

int spill_shake256(uint8_t *out, uint64_t wanted, const uint8_t *in, uint64_t length)
{
    sponge(out, wanted, in, length, 136);
    return 0;
}
