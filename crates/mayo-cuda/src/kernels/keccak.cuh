// SHAKE256 (FIPS 202) in one thread: the state stays in registers, so all its indices are constants.
#pragma once

static constexpr int RATE = 136;

DEVICE u64 rotate(u64 a, int by) { return by == 0 ? a : (a << by) | (a >> (64 - by)); }

struct Sponge {
    u64 a[25];

    DEVICE void clear(Sponge &s) {
        UNROLL for (int i = 0; i < 25; i++) s.a[i] = 0;
    }

    // Keccak-f[1600]. Rotations of rho: (t + 1)(t + 2) / 2 along the walk (x, y) -> (y, 2 x + 3 y).
    DEVICE void permute(Sponge &s) {
        constexpr int turn[25] = {0,  1,  62, 28, 27, 36, 44, 6,  55, 20, 3,  10, 43,
                                  25, 39, 41, 45, 15, 21, 8,  18, 2,  61, 56, 14};
        u64 *a = s.a;
        u32 shift_register = 1;
        ROLLED for (int round = 0; round < 24; round++) {
            u64 parity[5], b[25];
            UNROLL for (int x = 0; x < 5; x++) parity[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
            UNROLL for (int x = 0; x < 5; x++) {
                u64 d = parity[(x + 4) % 5] ^ rotate(parity[(x + 1) % 5], 1);
                UNROLL for (int y = 0; y < 25; y += 5) a[x + y] ^= d;
            }
            UNROLL for (int x = 0; x < 5; x++) {
                UNROLL for (int y = 0; y < 5; y++) b[y + 5 * ((2 * x + 3 * y) % 5)] = rotate(a[x + 5 * y], turn[x + 5 * y]);
            }
            UNROLL for (int y = 0; y < 25; y += 5) {
                UNROLL for (int x = 0; x < 5; x++) a[x + y] = b[x + y] ^ (~b[(x + 1) % 5 + y] & b[(x + 2) % 5 + y]);
            }
            // Bit 2^j - 1 of the round constant is the register's bit after j + 7 round steps (FIPS 202, 3.2.5).
            u64 constant = 0;
            UNROLL for (int j = 0; j < 7; j++) {
                constant |= (u64)(shift_register & 1u) << ((1 << j) - 1);
                shift_register <<= 1;
                shift_register ^= (0u - ((shift_register >> 8) & 1u)) & 0x171u;
            }
            a[0] ^= constant;
        }
    }

    // Absorbs `length` bytes, byte i of which `source(i)` gives, and pads them.
    template <class Source> DEVICE void absorb(Sponge &s, int length, Source source) {
        ROLLED for (int start = 0; start <= length; start += RATE) {
            UNROLL for (int lane = 0; lane < RATE / 8; lane++) {
                u64 word = 0;
                UNROLL for (int byte = 0; byte < 8; byte++) {
                    int at = start + 8 * lane + byte;
                    // What is hashed may be secret; how much never is.
                    u64 value = at < length ? source(at) : at == length ? 0x1fu : 0u;
                    word |= value << (8 * byte);
                }
                if (lane == RATE / 8 - 1 && start + RATE > length) word ^= 1ull << 63;
                s.a[lane] ^= word;
            }
            permute(s);
        }
    }

    // Writes `length` bytes rounded up to a multiple of RATE. `out` is aligned to 8 bytes.
    DEVICE void squeeze(Sponge &s, u8 *out, int length) {
        u64 *words = (u64 *)out;
        ROLLED for (int start = 0; start < length; start += RATE) {
            if (start > 0) permute(s);
            UNROLL for (int lane = 0; lane < RATE / 8; lane++) words[start / 8 + lane] = s.a[lane];
        }
    }
};
