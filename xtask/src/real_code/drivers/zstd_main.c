/* Round trips through zstd on three kinds of inputs, all levels; prints a hash of all compressed bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "zstd.h"

static uint64_t state = 1;
static uint32_t next(void) { return (uint32_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 40); }

int main(void) {
    static const char *const words[] = {"spill", "the", "stack", "register", " of ", "home", "a", "\n", "moved", "because", "12", "x87 "};
    enum { MOST = 300000 };
    uint8_t *input = malloc(MOST), *back = malloc(MOST), *packed = malloc(ZSTD_compressBound(MOST));
    uint64_t digest = 14695981039346656037u;
    for (int kind = 0; kind < 3; kind++) {
        for (int level = -3; level <= 19; level++) {
            size_t bytes = 1 + next() % (level > 12 ? 60000 : MOST), n = 0;
            while (n < bytes) {
                const char *word = words[next() % 12];
                for (size_t i = 0; kind == 0 && word[i] && n < bytes; i++) input[n++] = (uint8_t)word[i];
                if (kind == 1) input[n++] = (uint8_t)(next() & next());
                if (kind == 2) input[n] = n > 5000 && next() % 64 ? input[n - 4999] : (uint8_t)next(), n++;
            }
            size_t size = ZSTD_compress(packed, ZSTD_compressBound(MOST), input, bytes, level);
            if (ZSTD_isError(size)) return printf("compress: %s\n", ZSTD_getErrorName(size)), 1;
            size_t got = ZSTD_decompress(back, MOST, packed, size);
            if (got != bytes || memcmp(back, input, bytes)) return printf("kind %d level %d does not come back\n", kind, level), 1;
            for (size_t i = 0; i < size; i++) digest = (digest ^ packed[i]) * 1099511628211u;
            packed[next() % size] ^= 1 << next() % 8; /* A damaged frame ends in an error or in other bytes, the same in both. */
            got = ZSTD_decompress(back, MOST, packed, size);
            digest = (digest ^ (ZSTD_isError(got) ? (size_t)0 - got : got)) * 1099511628211u;
        }
    }
    printf("%016llx\n", (unsigned long long)digest);
    return 0;
}
