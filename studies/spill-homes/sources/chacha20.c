/* ChaCha20 with a nonce of 8 bytes and a counter of 64 bits from 0 (Bernstein's), in general registers alone: sixteen words for
   fewer registers. */
#include <stdint.h>

static inline uint32_t left(uint32_t x, unsigned n) { return x << n | x >> (32 - n); }

static inline uint32_t little_endian(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

#define QUARTER(a, b, c, d)                                                                                            \
    a += b, d = left(d ^ a, 16), c += d, b = left(b ^ c, 12), a += b, d = left(d ^ a, 8), c += d, b = left(b ^ c, 7)

/* `in` may be nothing: then the keystream comes out. */
static inline void stream(uint8_t *out, const uint8_t *in, uint64_t length, const uint8_t *nonce, const uint8_t *key)
{
    uint32_t s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    for (unsigned i = 0; i < 8; i++) s[4 + i] = little_endian(key + 4 * i);
    s[12] = s[13] = 0;
    s[14] = little_endian(nonce);
    s[15] = little_endian(nonce + 4);
    while (length > 0) {
        uint32_t a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
        uint32_t i = s[8], j = s[9], k = s[10], l = s[11], m = s[12], n = s[13], o = s[14], p = s[15];
        for (unsigned round = 0; round < 10; round++) {
            QUARTER(a, e, i, m);
            QUARTER(b, f, j, n);
            QUARTER(c, g, k, o);
            QUARTER(d, h, l, p);
            QUARTER(a, f, k, p);
            QUARTER(b, g, l, m);
            QUARTER(c, h, i, n);
            QUARTER(d, e, j, o);
        }
        const uint32_t x[16] = {a + s[0], b + s[1], c + s[2],  d + s[3],  e + s[4],  f + s[5],  g + s[6],  h + s[7],
                                i + s[8], j + s[9], k + s[10], l + s[11], m + s[12], n + s[13], o + s[14], p + s[15]};
        uint64_t now = length < 64 ? length : 64;
        for (unsigned t = 0; t < now; t++) out[t] = (uint8_t)(x[t / 4] >> 8 * (t % 4)) ^ (in ? in[t] : 0);
        out += now;
        if (in) in += now;
        length -= now;
        s[12] += 1;
        s[13] += s[12] == 0;
    }
}

int spill_chacha20(uint8_t *out, uint64_t length, const uint8_t *nonce, const uint8_t *key)
{
    stream(out, 0, length, nonce, key);
    return 0;
}

int spill_chacha20_xor(uint8_t *out, const uint8_t *in, uint64_t length, const uint8_t *nonce, const uint8_t *key)
{
    stream(out, in, length, nonce, key);
    return 0;
}
