/*
 * The loop of the report magma-lanes in plain C: one block of Magma (RFC 8891), the same each time, in a buffer that stays in the first
 * cache. Our own code, in the shape that the report describes; the study compiles it by gcc under the flags that it compares.
 *
 *   loop scalar COUNT        one block an operation, by four tables of 256 words: it leaks through the cache
 *   loop eight COUNT         eight equal blocks an operation, in AVX2 (needs -mavx2)
 *   loop kuznyechik COUNT    one block an operation by kuznyechik-kernel's magma.c, where KUZNYECHIK names that file
 *
 * It prints the blocks of the last operation as JSON.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

static const uint8_t KEY[32] = {
	0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00,
	0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff,
};
static const uint8_t PLAIN[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};

/* The substitution of the standard, lowest nibble first. */
static const uint8_t SBOX[8][16] = {
	{12, 4, 6, 2, 10, 5, 11, 9, 14, 8, 13, 7, 0, 3, 15, 1}, {6, 8, 2, 3, 9, 10, 5, 12, 1, 14, 4, 7, 11, 13, 0, 15},
	{11, 3, 5, 8, 2, 15, 10, 13, 14, 1, 7, 4, 12, 9, 6, 0}, {12, 8, 2, 1, 13, 4, 15, 6, 7, 0, 10, 5, 3, 14, 9, 11},
	{7, 15, 5, 10, 8, 1, 6, 13, 0, 9, 3, 14, 11, 4, 2, 12}, {5, 13, 15, 6, 9, 2, 12, 10, 11, 7, 8, 1, 4, 3, 14, 0},
	{8, 14, 2, 5, 6, 9, 1, 12, 15, 4, 11, 0, 13, 10, 3, 7}, {1, 7, 14, 13, 0, 5, 8, 3, 4, 15, 10, 6, 9, 12, 11, 2},
};

static uint32_t keys[32];
static uint32_t tables[4][256];

static inline uint32_t load(const uint8_t *p) {
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void store(uint8_t *p, uint32_t x) {
	p[0] = x >> 24;
	p[1] = x >> 16;
	p[2] = x >> 8;
	p[3] = x;
}

static inline uint32_t rotate(uint32_t x) {
	return x << 11 | x >> 21;
}

static void prepare(void) {
	for (int i = 0; i < 32; i++) {
		keys[i] = load(KEY + 4 * (i < 24 ? i % 8 : 7 - i % 8));
	}
	for (int i = 0; i < 4; i++) {
		for (int x = 0; x < 256; x++) {
			uint32_t both = SBOX[2 * i][x & 15] | SBOX[2 * i + 1][x >> 4] << 4;
			tables[i][x] = rotate(both << (8 * i));
		}
	}
}

static inline uint32_t f(uint32_t x) {
	return tables[0][x & 255] ^ tables[1][x >> 8 & 255] ^ tables[2][x >> 16 & 255] ^ tables[3][x >> 24];
}

static void one(uint8_t *out, const uint8_t *in) {
	uint32_t a1 = load(in), a0 = load(in + 4);
	for (int i = 0; i < 32; i += 2) {
		a1 ^= f(a0 + keys[i]);
		a0 ^= f(a1 + keys[i + 1]);
	}
	store(out, a0);
	store(out + 4, a1);
}

#ifdef __AVX2__
/* Two rows of the substitution for byte i of every word, the second in the high nibble, twice. */
static uint8_t rows[4][2][32] __attribute__((aligned(32)));

static void prepare_eight(void) {
	for (int i = 0; i < 4; i++) {
		for (int x = 0; x < 32; x++) {
			rows[i][0][x] = SBOX[2 * i][x % 16];
			rows[i][1][x] = SBOX[2 * i + 1][x % 16] << 4;
		}
	}
}

static inline __m256i f_eight(__m256i x) {
	const __m256i nibble = _mm256_set1_epi8(15);
	__m256i low = _mm256_and_si256(x, nibble), high = _mm256_and_si256(_mm256_srli_epi32(x, 4), nibble);
	__m256i y = _mm256_setzero_si256();
	for (int i = 0; i < 4; i++) {
		__m256i first = _mm256_shuffle_epi8(_mm256_load_si256((const __m256i *)rows[i][0]), low);
		__m256i second = _mm256_shuffle_epi8(_mm256_load_si256((const __m256i *)rows[i][1]), high);
		__m256i mask = _mm256_set1_epi32((int)(255u << (8 * i)));
		y = _mm256_or_si256(y, _mm256_and_si256(_mm256_or_si256(first, second), mask));
	}
	return _mm256_or_si256(_mm256_slli_epi32(y, 11), _mm256_srli_epi32(y, 21));
}

static void eight(uint8_t *out, const uint8_t *in) {
	const __m256i reverse = _mm256_broadcastsi128_si256(
		_mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
	__m256i x = _mm256_shuffle_epi8(_mm256_load_si256((const __m256i *)in), reverse);
	__m256i y = _mm256_shuffle_epi8(_mm256_load_si256((const __m256i *)(in + 32)), reverse);
	/* Even words of both, then odd words; the order of blocks is undone below. */
	__m256i a1 = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(y), 0x88));
	__m256i a0 = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(y), 0xdd));
	for (int i = 0; i < 32; i += 2) {
		a1 = _mm256_xor_si256(a1, f_eight(_mm256_add_epi32(a0, _mm256_set1_epi32((int)keys[i]))));
		a0 = _mm256_xor_si256(a0, f_eight(_mm256_add_epi32(a1, _mm256_set1_epi32((int)keys[i + 1]))));
	}
	_mm256_store_si256((__m256i *)out, _mm256_shuffle_epi8(_mm256_unpacklo_epi32(a0, a1), reverse));
	_mm256_store_si256((__m256i *)(out + 32), _mm256_shuffle_epi8(_mm256_unpackhi_epi32(a0, a1), reverse));
}
#endif

#ifdef KUZNYECHIK
/* What a kernel's headers declare of the things that the file uses; the headers themselves are empty. */
typedef uint8_t u8;
struct crypto_tfm {
	uint32_t context[8];
};
struct cipher_alg {
	unsigned int cia_min_keysize, cia_max_keysize;
	int (*cia_setkey)(struct crypto_tfm *, const u8 *, unsigned int);
	void (*cia_encrypt)(struct crypto_tfm *, u8 *, const u8 *);
	void (*cia_decrypt)(struct crypto_tfm *, u8 *, const u8 *);
};
struct crypto_alg {
	const char *cra_name, *cra_driver_name;
	int cra_priority, cra_flags, cra_blocksize, cra_ctxsize, cra_alignmask;
	void *cra_module;
	union {
		struct cipher_alg cipher;
	} cra_u;
};
#define CRYPTO_ALG_TYPE_CIPHER 0
#define THIS_MODULE 0
#define __init
#define __exit
#define __LITTLE_ENDIAN 1234
#define module_init(f) void *started = (void *)f;
#define module_exit(f) void *ended = (void *)f;
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_ALIAS_CRYPTO(text)
#define crypto_tfm_ctx(tfm) ((void *)(tfm)->context)
#define crypto_register_alg(alg) ((void)(alg), 0)
#define crypto_unregister_alg(alg) ((void)(alg))
#define f kuznyechik_f
#include KUZNYECHIK
#undef f

static struct crypto_tfm kuznyechik_key;

static void kuznyechik(uint8_t *out, const uint8_t *in) {
	magma_encrypt(&kuznyechik_key, out, in);
}
#endif

int main(int argc, char **argv) {
	static uint8_t in[64] __attribute__((aligned(32))), out[64] __attribute__((aligned(32)));
	void (*operation)(uint8_t *, const uint8_t *) = NULL;
	int blocks = 1;
	if (argc != 3) {
		return 2;
	}
	prepare();
	if (!strcmp(argv[1], "scalar")) {
		operation = one;
	}
#ifdef __AVX2__
	if (!strcmp(argv[1], "eight")) {
		prepare_eight();
		operation = eight;
		blocks = 8;
	}
#endif
#ifdef KUZNYECHIK
	if (!strcmp(argv[1], "kuznyechik")) {
		magma_setkey(&kuznyechik_key, KEY, 32);
		operation = kuznyechik;
	}
#endif
	if (!operation) {
		return 2;
	}
	for (int i = 0; i < 8; i++) {
		memcpy(in + 8 * i, PLAIN, 8);
	}
	long count = atol(argv[2]);
	for (long i = 0; i < count; i++) {
		operation(out, in);
		/* The compiler may not leave an operation out because its operand is the last one's. */
		__asm__ volatile("" : : "r"(in), "r"(out) : "memory");
	}
	printf("{\"variant\":\"%s\",\"count\":%ld,\"blocks\":[", argv[1], count);
	for (int i = 0; i < blocks; i++) {
		printf("%s[", i ? "," : "");
		for (int j = 0; j < 8; j++) {
			printf("%s%d", j ? "," : "", out[8 * i + j]);
		}
		printf("]");
	}
	printf("]}\n");
	return 0;
}
