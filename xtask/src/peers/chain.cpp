// A process that squares with chiavdf's own functions, on request: one word a line comes in, one line goes out.
//
//   asm N       N squarings by the pipeline of two threads          -> how many of them took the slow way
//   square N    N squarings by NUDUPL over GMP, on one thread       -> 0
//   form        the form reached, reduced                           -> a b c in hexadecimal
//
// The chain starts from the generator of the discriminant whose magnitude is the only argument (hexadecimal). A program that
// starts this once can time squarings without timing its start.
#include "include.h"
#include "bit_manipulation.h"
#include "double_utility.h"
#include "parameters.h"
#include "integer.h"
#include "alloc.hpp"
#include "vdf_new.h"
#include "nucomp.h"
#include "picosha2.h"
#include "proof_common.h"
#include "asm_main.h"
#include "threading.h"
#include "avx512_integer.h"
#include "vdf_fast.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace {

struct Chain {
    integer discriminant, bound;
    form reached;
    PulmarkReducer reducer;

    explicit Chain(const char *magnitude) {
        mpz_set_str(discriminant.impl, magnitude, 16);
        mpz_neg(discriminant.impl, discriminant.impl);
        bound = root(-discriminant, 4);
        reached = form::generator(discriminant);
    }

    void slowly(bool always) {
        nudupl_form(reached, reached, discriminant, bound);
        if (always || __GMP_ABS(reached.a.impl->_mp_size) > 8) {
            reducer.reduce(reached);
        }
    }

    void square(uint64_t count) {
        while (count-- > 0) {
            slowly(false);
        }
    }

    // False if the pipeline lost the discriminant.
    bool pipeline(uint64_t count, uint64_t &slow) {
        while (count > 0) {
            square_state_type state;
            state.pairindex = 0;
            uint64_t done = repeated_square_fast(state, reached, discriminant, bound, 0, count, nullptr);
            if (done == ~uint64_t(0)) {
                return false;
            }
            if (done == 0) {
                slowly(true);
                slow += 1;
                done = 1;
            }
            count -= done;
        }
        return true;
    }
};

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        return 2;
    }
    init_gmp();
    set_rounding_mode();
    Chain chain(argv[1]);
    char word[16];
    uint64_t count;
    while (std::scanf("%15s", word) == 1) {
        if (!std::strcmp(word, "form")) {
            form copy = chain.reached;
            chain.reducer.reduce(copy);
            gmp_printf("%Zx %Zx %Zx\n", copy.a.impl, copy.b.impl, copy.c.impl);
        } else if (std::scanf("%" SCNu64, &count) != 1) {
            return 2;
        } else if (!std::strcmp(word, "asm")) {
            uint64_t slow = 0;
            if (!chain.pipeline(count, slow)) {
                return 1;
            }
            std::printf("%" PRIu64 "\n", slow);
        } else if (!std::strcmp(word, "square")) {
            chain.square(count);
            std::printf("0\n");
        } else {
            return 2;
        }
        std::fflush(stdout);
    }
    return 0;
}
