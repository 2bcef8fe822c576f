// Arithmetic in GF(16) = GF(2)[x] / (x^4 + x + 1) on packed nibbles: eight elements to a 32-bit word, element 0 lowest.
// Constant time: masks and shifts only.
#pragma once

// Every nibble times x.
DEVICE u32 times_x(u32 a) {
    u32 high = (a >> 3) & 0x11111111u;
    return ((a & 0x77777777u) << 1) ^ (high | (high << 1));
}

// Every nibble times one public constant.
template <int C> DEVICE u32 times_constant(u32 a) {
    u32 sum = (C & 1) ? a : 0u;
    if (C & 14) {
        a = times_x(a);
        if (C & 2) sum ^= a;
    }
    if (C & 12) {
        a = times_x(a);
        if (C & 4) sum ^= a;
    }
    if (C & 8) sum ^= times_x(a);
    return sum;
}

// All ones if bit `at` of `a` is set, else 0.
DEVICE u32 mask_of(u32 a, int at) { return 0u - ((a >> at) & 1u); }

// All ones if `a` is not 0, else 0.
DEVICE u32 mask_nonzero(u32 a) { return 0u - ((a | (0u - a)) >> 31); }

// The four masks of a scalar: a product is then four ANDs, reduced once for a whole sum (`combine`).
DEVICE uint4 masks_of(u32 scalar) {
    uint4 m;
    m.x = mask_of(scalar, 0);
    m.y = mask_of(scalar, 1);
    m.z = mask_of(scalar, 2);
    m.w = mask_of(scalar, 3);
    return m;
}

// The sum a0 + a1 x + a2 x^2 + a3 x^3 of what was selected by each bit.
DEVICE u32 combine(u32 a0, u32 a1, u32 a2, u32 a3) { return times_x(times_x(times_x(a3) ^ a2) ^ a1) ^ a0; }

// Every nibble of `a` times one scalar.
DEVICE u32 times_scalar(u32 a, u32 scalar) {
    u32 x1 = times_x(a), x2 = times_x(x1), x3 = times_x(x2);
    return (a & mask_of(scalar, 0)) ^ (x1 & mask_of(scalar, 1)) ^ (x2 & mask_of(scalar, 2)) ^ (x3 & mask_of(scalar, 3));
}

// Nibble by nibble.
DEVICE u32 times_each(u32 a, u32 b) {
    u32 sum = a & ((b & 0x11111111u) * 15u);
    a = times_x(a);
    sum ^= a & (((b >> 1) & 0x11111111u) * 15u);
    a = times_x(a);
    sum ^= a & (((b >> 2) & 0x11111111u) * 15u);
    a = times_x(a);
    return sum ^ (a & (((b >> 3) & 0x11111111u) * 15u));
}

// The sum of all eight nibbles.
DEVICE u32 sum_nibbles(u32 a) {
    a ^= a >> 16;
    a ^= a >> 8;
    return (a ^ (a >> 4)) & 15u;
}

// One element times another.
DEVICE u32 times_one(u32 a, u32 b) { return times_scalar(a, b) & 15u; }

// The inverse, and 0 of 0: a^14.
DEVICE u32 inverse(u32 a) {
    u32 a2 = times_one(a, a), a4 = times_one(a2, a2), a8 = times_one(a4, a4);
    return times_one(a8, times_one(a4, a2));
}

// Nibble `at` of packed bytes, the low one of a byte first.
DEVICE u32 nibble(const u8 *bytes, u32 at) { return (bytes[at >> 1] >> ((at & 1u) * 4u)) & 15u; }
