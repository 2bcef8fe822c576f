// Whipping: sum of z^l u_l modulo f(z), by one warp for one operation. A lane owns one word of the long sum.
#pragma once

template <class S> struct Whip {
    typedef Layout<S> L;
    static constexpr int WORDS = L::WORDS;
    // Words of a sum of shifted m-vectors.
    static constexpr int LONG = (S::PAIRS - 1) / 8 + WORDS + 1;
    // The first word that holds a coefficient of z^m or above, and where in it that lies.
    static constexpr int BASE = S::M / 8, SHIFT = S::M % 8 * 4;
    // Words above: one folding is enough, as it reaches z^(pairs + 2) at most.
    static constexpr int HIGH = LONG - BASE;
    static_assert(LONG <= 32, "a lane for each word");
    static_assert(S::PAIRS + 4 <= S::M && HIGH <= BASE, "one folding must do");

    // The terms tail_t z^t times the high part, of which `high` and `before` are two neighbouring words.
    DEVICE u32 folded(u32 before, u32 high) {
        u32 sum = times_constant<S::TAIL0>(high);
        if (S::TAIL1) sum ^= times_constant<S::TAIL1>(__funnelshift_l(before, high, 4));
        if (S::TAIL2) sum ^= times_constant<S::TAIL2>(__funnelshift_l(before, high, 8));
        if (S::TAIL3) sum ^= times_constant<S::TAIL3>(__funnelshift_l(before, high, 12));
        return sum;
    }

    // What of word `at` lies below z^m.
    DEVICE u32 low(u32 word, u32 at) {
        constexpr u32 PART = SHIFT == 0 ? 0u : (1u << SHIFT) - 1;
        return at < BASE ? word : at == BASE ? word & PART : 0u;
    }

    // Word `lane` of the result, 0 behind the last.
    DEVICE u32 run(const u32 *u) {
        u32 q = threadIdx.x % 32, sum = 0;
        ROLLED for (u32 l = 0; l < S::PAIRS; l++) {
            // Below 0 wraps round, and is out of reach like what lies above.
            u32 at = q - l / 8;
            u32 here = at < WORDS ? u[l * WORDS + at] : 0u, before = at - 1 < WORDS ? u[l * WORDS + at - 1] : 0u;
            sum ^= __funnelshift_l(before, here, l % 8 * 4);
        }
        u32 first = __shfl_sync(~0u, sum, (q + BASE) % 32), second = __shfl_sync(~0u, sum, (q + BASE + 1) % 32);
        first = q < HIGH ? first : 0u;
        second = q + 1 < HIGH ? second : 0u;
        u32 high = __funnelshift_r(first, second, SHIFT);
        u32 below = __shfl_sync(~0u, high, (q + 31) % 32);
        return low(sum, q) ^ folded(q > 0 ? below : 0u, high);
    }

    // Word `lane` of a target, 0 behind the last.
    DEVICE u32 target(const u8 *t) {
        u32 q = threadIdx.x % 32, word = 0;
        UNROLL for (u32 byte = 0; byte < 4; byte++) {
            if (4 * q + byte < S::M_BYTES) word |= (u32)t[4 * q + byte] << (8 * byte);
        }
        return word;
    }

    // Whether P*(s) is t; one byte for each signature, a warp each.
    DEVICE void check(u32 count, const u32 *u, const u8 *targets, u8 *valid) {
        u32 op = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
        if (op >= count) return;
        u32 different = run(u + (u64)op * S::PAIRS * WORDS) ^ target(targets + (u64)op * Hashes<S>::TARGET);
        u32 any = __reduce_or_sync(~0u, different);
        if (threadIdx.x % 32 == 0) valid[op] = (u8)lw_declassify16(any == 0);
    }
};
