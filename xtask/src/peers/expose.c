/* Linked into each build of liboqs, compiled once for each parameter set.
 *
 * liboqs hides two things that a fair race needs to know: which of its implementations runs on this
 * CPU, and how long its verifier spends expanding the public key. Both are answered here by repeating
 * the choice that liboqs' own sig_mayo_N.c and aes_impl.c make, from the same configuration header,
 * so that nothing of liboqs itself has to be changed.
 *
 * MAYO_VARIANT and MAYO_BUILD_TYPE_OPT must be set as for liboqs' own files, LANEWORK_SET to 1, 2, 3
 * or 5; LANEWORK_AES in one of the four only.
 */
#include <stddef.h>
#include <stdint.h>

#include <oqs/common.h>
#include <oqs/oqsconfig.h>

#include <mayo.h>

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define EXPORTED(what) JOIN(lanework_peer_, what##_mayo_, LANEWORK_SET)

#if defined(OQS_ENABLE_SIG_mayo_1_avx2)
#define FAST JOIN(pqmayo_MAYO_, LANEWORK_SET, _avx2_mayo_expand_pk)
#define FAST_NAME "avx2"
#define FAST_EXTENSION OQS_CPU_EXT_AVX2
#elif defined(OQS_ENABLE_SIG_mayo_1_neon)
#define FAST JOIN(pqmayo_MAYO_, LANEWORK_SET, _neon_mayo_expand_pk)
#define FAST_NAME "neon"
#define FAST_EXTENSION OQS_CPU_EXT_ARM_NEON
#endif

#if defined(FAST)
extern int FAST(const void *parameters, const uint8_t *public_key, void *expanded);
#if defined(OQS_DIST_BUILD)
#define FAST_RUNS OQS_CPU_has_extension(FAST_EXTENSION)
#else
#define FAST_RUNS 1
#endif
#endif

/* Which implementation runs. */
OQS_API const char *EXPORTED(code)(void) {
#if defined(FAST)
	if (FAST_RUNS) {
		return FAST_NAME;
	}
#endif
	return "opt";
}

/* Bytes of an expanded public key. */
OQS_API size_t EXPORTED(expanded)(void) {
#if defined(EPK_BYTES_MAX)
	return EPK_BYTES_MAX; /* first round */
#else
	return sizeof(pk_t); /* second round */
#endif
}

/* Expands a public key, as the first step of verifying does. `expanded` is on a 64-byte boundary. */
OQS_API int EXPORTED(expand)(const uint8_t *public_key, uint64_t *expanded) {
#if defined(FAST)
	if (FAST_RUNS) {
		return FAST(0, public_key, expanded);
	}
#endif
	return mayo_expand_pk(0, public_key, (void *)expanded);
}

#if defined(LANEWORK_AES)
/* Which AES runs. */
OQS_API const char *lanework_peer_aes(void) {
#if defined(OQS_DIST_X86_64_BUILD)
	return OQS_CPU_has_extension(OQS_CPU_EXT_AES) ? "aes-ni" : "c";
#elif defined(OQS_DIST_ARM64_V8_BUILD)
	return OQS_CPU_has_extension(OQS_CPU_EXT_ARM_AES) ? "armv8" : "c";
#elif defined(OQS_USE_AES_INSTRUCTIONS)
	return "aes-ni";
#elif defined(OQS_USE_ARM_AES_INSTRUCTIONS)
	return "armv8";
#else
	return "c";
#endif
}
#endif
