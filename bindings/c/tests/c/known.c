// Known answers through the C interface, and what it answers to misuse. Sources: bindings of crates/magma/src/internals/known.
#include <lanework.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                                                                   \
    do {                                                                                                                   \
        if (!(condition)) {                                                                                                \
            failures++;                                                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                 \
        }                                                                                                                  \
    } while (0)

// Bytes of hexadecimal digits, in `out`; how many.
static size_t hex(const char *digits, uint8_t *out) {
    size_t n = strlen(digits) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        if (sscanf(digits + 2 * i, "%2x", &byte) != 1) abort();
        out[i] = (uint8_t)byte;
    }
    return n;
}

static bool is(const uint8_t *bytes, const char *digits) {
    uint8_t expected[512];
    return memcmp(bytes, expected, hex(digits, expected)) == 0;
}

static bool zero(const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0) return false;
    return true;
}

static const char KEY[] = "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
static const char PLAIN[] = "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41";

static const lw_magma_key *key_of(const char *digits) {
    uint8_t bytes[32];
    const lw_magma_key *key = NULL;
    CHECK(lw_magma_key_new(bytes, hex(digits, bytes), &key) == LW_STATUS_OK);
    return key;
}

// GOST R 34.12-2015 and GOST R 34.13-2015, annex A.2.
static void modes(void) {
    const lw_magma_key *key = key_of(KEY);
    uint8_t block[8], data[32], plain[32], iv[4], tag[8];
    hex("fedcba9876543210", block);
    CHECK(lw_magma_encrypt_blocks(key, block, block, 8) == LW_STATUS_OK && is(block, "4ee901e5c2d8ca3d"));
    CHECK(lw_magma_decrypt_blocks(key, block, block, 8) == LW_STATUS_OK && is(block, "fedcba9876543210"));
    CHECK(lw_magma_encrypt_blocks(key, block, block, 7) == LW_STATUS_LENGTH && zero(block, 7));

    hex(PLAIN, plain);
    hex("12345678", iv);
    const char ctr[] = "4e98110c97b7b93c3e250d93d6e85d69136d868807b2dbef568eb680ab52a12d";
    CHECK(lw_magma_ctr(key, iv, 4, plain, data, 32) == LW_STATUS_OK && is(data, ctr));
    lw_magma_ctr_stream *stream = NULL;
    CHECK(lw_magma_ctr_new(key, iv, 4, &stream) == LW_STATUS_OK);
    for (size_t at = 0; at < 32; at += 5) CHECK(lw_magma_ctr_update(stream, data + at, data + at, at < 30 ? 5 : 2) == LW_STATUS_OK);
    CHECK(memcmp(data, plain, 32) == 0);
    CHECK(lw_magma_ctr_seek(stream, 1) == LW_STATUS_OK);
    CHECK(lw_magma_ctr_update(stream, plain + 8, data, 24) == LW_STATUS_OK && is(data, ctr + 16));
    CHECK(lw_magma_ctr_seek(stream, UINT64_C(1) << 32) == LW_STATUS_OK);
    data[0] = 7;
    CHECK(lw_magma_ctr_update(stream, data, data, 1) == LW_STATUS_COUNTER_EXHAUSTED && data[0] == 0);
    lw_magma_ctr_free(stream);

    CHECK(lw_magma_omac(key, plain, 32, tag, 4) == LW_STATUS_OK && is(tag, "154e7210"));
    CHECK(lw_magma_omac_verify(key, plain, 32, tag, 4) == LW_STATUS_OK);
    tag[3] ^= 1;
    CHECK(lw_magma_omac_verify(key, plain, 32, tag, 4) == LW_STATUS_REFUSED);
    lw_magma_omac_stream *omac = NULL;
    CHECK(lw_magma_omac_new(key, 8, &omac) == LW_STATUS_OK);
    CHECK(lw_magma_omac_update(omac, plain, 13) == LW_STATUS_OK && lw_magma_omac_update(omac, plain + 13, 19) == LW_STATUS_OK);
    CHECK(lw_magma_omac_final(omac, tag, 8) == LW_STATUS_OK && is(tag, "154e72102030c5bb"));
    CHECK(lw_magma_omac_final(omac, tag, 8) == LW_STATUS_STATE && zero(tag, 8));
    CHECK(lw_magma_omac_update(omac, plain, 1) == LW_STATUS_STATE);
    lw_magma_omac_free(omac);
    lw_magma_key_free(key);
}

// R 1323565.1.017-2018, A.1.
static void acpkm(void) {
    const lw_magma_key *key = key_of("8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef");
    uint8_t data[56], iv[4];
    size_t n = hex("1122334455667700ffeeddccbbaa998800112233445566778899aabbcceeff0a1122334455667788"
                   "99aabbcceeff0a002233445566778899",
                   data);
    hex("12345678", iv);
    const char answer[] = "2ab81deeeb1e4cab68e104c4bd6b94eac72c67af6c2e5b6b0eafb61770f1b32ea1ae71149eed1382ab"
                          "d467180672ec6f84a2f15b3fca72c1";
    CHECK(n == 56);
    lw_magma_ctr_acpkm_stream *stream = NULL;
    CHECK(lw_magma_ctr_acpkm_new(key, iv, 4, 16, &stream) == LW_STATUS_OK);
    CHECK(lw_magma_ctr_acpkm_update(stream, data, data, 20) == LW_STATUS_OK);
    CHECK(lw_magma_ctr_acpkm_update(stream, data + 20, data + 20, 36) == LW_STATUS_OK && is(data, answer));
    lw_magma_ctr_acpkm_free(stream);
    CHECK(lw_magma_ctr_acpkm(key, iv, 4, 16, data, data, 56) == LW_STATUS_OK && is(data, "1122334455667700ffeedd"));
    CHECK(lw_magma_ctr_acpkm(key, iv, 4, 12, data, data, 56) == LW_STATUS_PARAMETER && zero(data, 56));
    CHECK(lw_magma_ctr_acpkm_new(key, iv, 3, 16, &stream) == LW_STATUS_LENGTH && stream == NULL);
    lw_magma_key_free(key);
}

// RFC 9058, A.2.1.
static void mgm(void) {
    const lw_magma_key *key = key_of(KEY);
    const lw_magma_mgm *mgm = NULL;
    uint8_t nonce[8], aad[64], plain[80], data[80], tag[8];
    hex("12def06b3c130a59", nonce);
    size_t aad_len = hex("01010101010101010202020202020202030303030303030304040404040404040505050505050505ea", aad);
    size_t n = hex("ffeeddccbbaa998811223344556677008899aabbcceeff0a001122334455667799aabbcceeff0a001122334455667788"
                   "aabbcceeff0a00112233445566778899aabbcc",
                   plain);
    const char answer[] = "c795066c5f9ea03b85113342459185ae1f2e00d6bf2b785d940470b8bb9c8e7d9a5dd3731f7ddc70ec27cb0ace6fa576"
                          "70f65c646abb75d547aa37c3bcb5c34e03bb9c";
    CHECK(lw_magma_mgm_new(key, 3, &mgm) == LW_STATUS_LENGTH && mgm == NULL);
    CHECK(lw_magma_mgm_new(key, 8, &mgm) == LW_STATUS_OK);
    CHECK(lw_magma_mgm_ref(mgm) == LW_STATUS_OK);
    lw_magma_mgm_free(mgm);
    lw_magma_key_free(key);
    CHECK(lw_magma_mgm_seal(mgm, nonce, 8, aad, aad_len, plain, data, n, tag, 8) == LW_STATUS_OK);
    CHECK(is(data, answer) && is(tag, "a7928069aa10fd10"));

    // In pieces, by a stream that outlives its key's handle.
    lw_magma_mgm_stream *opener = NULL;
    CHECK(lw_magma_mgm_opener_new(mgm, nonce, 8, &opener) == LW_STATUS_OK);
    CHECK(lw_magma_mgm_open(mgm, nonce, 8, aad, aad_len, data, data, n, tag, 8) == LW_STATUS_OK && memcmp(data, plain, n) == 0);
    CHECK(lw_magma_mgm_open(mgm, nonce, 8, aad, aad_len, data, data, n, tag, 8) == LW_STATUS_REFUSED && zero(data, n));
    CHECK(lw_magma_mgm_seal(mgm, nonce, 8, NULL, 0, NULL, NULL, 0, tag, 8) == LW_STATUS_EMPTY_MESSAGE && zero(tag, 8));
    nonce[0] |= 0x80;
    memcpy(data, plain, n);
    CHECK(lw_magma_mgm_seal(mgm, nonce, 8, aad, aad_len, data, data, n, tag, 8) == LW_STATUS_NONCE_TOP_BIT);
    CHECK(zero(data, n) && zero(tag, 8));
    lw_magma_mgm_free(mgm);
    hex(answer, data);
    hex("a7928069aa10fd10", tag);
    CHECK(lw_magma_mgm_stream_aad(opener, aad, aad_len) == LW_STATUS_OK);
    CHECK(lw_magma_mgm_stream_data(opener, data, data, 30) == LW_STATUS_OK);
    CHECK(lw_magma_mgm_stream_aad(opener, aad, 1) == LW_STATUS_STATE);
    CHECK(lw_magma_mgm_stream_data(opener, data, NULL, 1) == LW_STATUS_NULL_POINTER);
    CHECK(lw_magma_mgm_stream_data(opener, data + 30, data + 30, n - 30) == LW_STATUS_OK && memcmp(data, plain, n) == 0);
    CHECK(lw_magma_mgm_stream_final(opener, tag, 8) == LW_STATUS_STATE);
    hex("a7928069aa10fd10", tag);
    CHECK(lw_magma_mgm_stream_final_verify(opener, tag, 8) == LW_STATUS_OK);
    CHECK(lw_magma_mgm_stream_data(opener, data, data, 1) == LW_STATUS_STATE);
    lw_magma_mgm_stream_free(opener);
}

// RFC 9189, A.1.3.1 and A.1.1.1; RFC 7836, appendix B.
static void keys(void) {
    uint8_t mac[32], encryption[32], iv[4], secret[32], wrapped[40], root[32], leaf[32], tree[64], label[4], seed[8];
    hex("2d8ba8c84cb232ff41f10c3ad924134223254f71e5696d3d29c3e4c9daa6b293", mac);
    hex("849eb6340bffae6928a3c3e4ff92eccb1e8f0cf7a188368e6b748e52ea378b0c", encryption);
    hex("214a6a29", iv);
    hex("a5576ce7924a24f58113808dbd9ef856f5bdc3b183ce5dadca36a53aa077651d", secret);
    const lw_magma_kexp15 *kexp = NULL;
    CHECK(lw_magma_kexp15_new(mac, 32, mac, 32, &kexp) == LW_STATUS_KEY_MISMATCH && kexp == NULL);
    CHECK(lw_magma_kexp15_new(mac, 32, encryption, 32, &kexp) == LW_STATUS_OK);
    CHECK(lw_magma_kexp15_wrap(kexp, iv, 4, secret, 32, wrapped, 40) == LW_STATUS_OK);
    CHECK(is(wrapped, "d7f0f0422367867b25fa4233a954f58bde92e9c9bbfb8816c99f15e6398722a0b2b7bfe8493e9a5c"));
    memset(secret, 1, 32);
    CHECK(lw_magma_kexp15_unwrap(kexp, iv, 4, wrapped, 40, secret, 32) == LW_STATUS_OK && is(secret, "a5576ce7924a24f5"));
    wrapped[0] ^= 1;
    CHECK(lw_magma_kexp15_unwrap(kexp, iv, 4, wrapped, 40, secret, 32) == LW_STATUS_REFUSED && zero(secret, 32));
    CHECK(lw_magma_kexp15_wrap(kexp, iv, 4, secret, 32, wrapped, 39) == LW_STATUS_LENGTH && zero(wrapped, 39));
    lw_magma_kexp15_free(kexp);

    hex("00112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a00", root);
    lw_magma_tlstree *records = NULL;
    CHECK(lw_magma_tlstree_new(root, 32, 9, &records) == LW_STATUS_PARAMETER && records == NULL);
    CHECK(lw_magma_tlstree_new(root, 32, LW_MAGMA_TLSTREE_CTR_OMAC, &records) == LW_STATUS_OK);
    CHECK(lw_magma_tlstree_key(records, 4095, leaf, 32) == LW_STATUS_OK);
    CHECK(is(leaf, "19a76ed30f4d6d1f5b7263ec491ad83817c0b57d8a0356127140fb4f7425494d"));
    const lw_magma_key *record = NULL;
    CHECK(lw_magma_tlstree_cipher(records, 4095, &record) == LW_STATUS_OK);
    CHECK(lw_magma_tlstree_key(records, UINT64_C(1) << 32, leaf, 32) == LW_STATUS_SEQUENCE_OVERFLOW && zero(leaf, 32));
    lw_magma_tlstree_free(records);
    uint8_t block[8] = {0};
    CHECK(lw_magma_encrypt_blocks(record, block, block, 8) == LW_STATUS_OK && lw_magma_key_used(record) == 8);
    lw_magma_key_free(record);

    hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", root);
    hex("26bdb878", label);
    hex("af21434145656378", seed);
    CHECK(lw_magma_kdf_tree(root, 32, label, 4, seed, 8, 1, tree, 64) == LW_STATUS_OK);
    CHECK(is(tree, "22b6837845c6bef65ea71672b265831086d3c76aebe6dae91cad51d83f79d16b074c9330599d7f8d712fca54392f4ddd"
                   "e93751206b3584c8f43f9e6dc51531f9"));
    CHECK(lw_magma_kdf_tree(root, 32, label, 4, seed, 8, 5, tree, 64) == LW_STATUS_PARAMETER && zero(tree, 64));
}

// Statuses over the jobs of a batch: nothing is written. Data over them is refused, and leaves them too.
#define OVER_JOBS(jobs, call)                                                                                              \
    do {                                                                                                                   \
        unsigned char before[sizeof jobs];                                                                                 \
        memcpy(before, &jobs, sizeof jobs);                                                                                \
        for (size_t at = 0; at < sizeof jobs; at += sizeof(lw_status)) {                                                   \
            lw_status *statuses = (lw_status *)(void *)((unsigned char *)&jobs + at);                                      \
            CHECK((call) == LW_STATUS_OVERLAP && memcmp(before, &jobs, sizeof jobs) == 0);                                 \
        }                                                                                                                  \
    } while (0)

static void batches(const lw_magma_key *magma, lw_magma_seal_job *seal) {
    lw_magma_seal_job sealed[2] = {seal[0], seal[1]};
    OVER_JOBS(sealed, lw_magma_mgm_seal_batch(sealed, 2, 8, 1, statuses));
    uint8_t nonce[8] = {0}, tag[8] = {0}, byte = 1, other[2 * sizeof(lw_status)];
    lw_magma_open_job opened[2] = {{magma, nonce, 8, NULL, 0, &byte, 1, tag}, {magma, nonce, 8, NULL, 0, tag, 0, tag}};
    OVER_JOBS(opened, lw_magma_mgm_open_batch(opened, 2, 8, 1, statuses));
    lw_mayo_sign_job signs[2] = {{&byte, 1, NULL}, {&byte, 1, NULL}};
    OVER_JOBS(signs, lw_mayo_sign_batch(NULL, signs, 2, 1, statuses));
    lw_mayo_verify_job verified[2] = {{NULL, &byte, 1, tag, 8}, {NULL, &byte, 1, tag, 8}};
    OVER_JOBS(verified, lw_mayo_verify_batch(verified, 2, 1, statuses));
    lw_vdf_verify_job proofs[2] = {{NULL, &byte, 1, tag, 8, 1, 0}, {NULL, &byte, 1, tag, 8, 1, 0}};
    OVER_JOBS(proofs, lw_vdf_verify_batch(proofs, 2, LW_VDF_STRICT, 1, statuses));
    lw_vdf_claim claims[2] = {{1, tag, 8, NULL, NULL}, {1, tag, 8, NULL, NULL}};
    OVER_JOBS(claims, lw_vdf_compact(NULL, tag, 8, claims, 2, 1, NULL, NULL, NULL, statuses));

    // Data and tags over the jobs, and over the statuses.
    lw_status statuses[2];
    unsigned char before[sizeof sealed];
    sealed[0].data = (uint8_t *)&sealed[1];
    sealed[0].data_len = 16;
    memcpy(before, sealed, sizeof sealed);
    CHECK(lw_magma_mgm_seal_batch(sealed, 2, 8, 1, statuses) == LW_STATUS_OVERLAP && memcmp(before, sealed, sizeof sealed) == 0);
    CHECK(statuses[0] == LW_STATUS_OVERLAP && statuses[1] == LW_STATUS_OVERLAP);
    sealed[0].data = other;
    sealed[0].data_len = sizeof other;
    sealed[0].tag = (uint8_t *)statuses;
    memset(other, 5, sizeof other);
    CHECK(lw_magma_mgm_seal_batch(sealed, 1, 8, 1, statuses) == LW_STATUS_OVERLAP && zero(other, sizeof other));
    CHECK(statuses[0] == LW_STATUS_OVERLAP);
}

static void misuse(void) {
    uint8_t bytes[64] = {1, 2, 3}, out[64];
    const lw_magma_key *key = key_of(KEY), *none = key;
    CHECK(lw_magma_key_new(bytes, 31, &none) == LW_STATUS_LENGTH && none == NULL);
    CHECK(lw_magma_key_new(bytes, 32, NULL) == LW_STATUS_NULL_POINTER);
    CHECK(lw_magma_key_new(NULL, 32, &none) == LW_STATUS_NULL_POINTER);
    CHECK(lw_magma_key_ref(NULL) == LW_STATUS_NULL_POINTER && lw_magma_key_used(NULL) == 0);
    lw_magma_key_free(NULL);
    lw_magma_ctr_free(NULL);
    lw_mayo_stream_free(NULL);

    // Misaligned.
    CHECK(lw_magma_encrypt_blocks((const lw_magma_key *)(uintptr_t)12345, bytes, out, 8) == LW_STATUS_MISALIGNED);
    // Nothing to do, with any pointers.
    CHECK(lw_magma_ctr(key, bytes, 4, NULL, NULL, 0) == LW_STATUS_OK);
    // Overlaps: data, and a tag within the data.
    memset(out, 5, sizeof out);
    CHECK(lw_magma_ctr(key, bytes, 4, out, out + 1, 8) == LW_STATUS_OVERLAP && zero(out + 1, 8) && out[0] == 5 && out[9] == 5);
    CHECK(lw_magma_omac(key, out, 16, out + 15, 8) == LW_STATUS_OVERLAP && zero(out + 15, 8));
    CHECK(lw_magma_ctr(key, out, 4, bytes, out, 8) == LW_STATUS_OVERLAP && zero(out, 8));
    // A place for a handle or a length within the call's buffers.
    union {
        uint8_t bytes[64];
        const lw_magma_key *key;
        const lw_mayo_secret_key *secret;
        size_t length;
    } both;
    memset(&both, 1, sizeof both);
    CHECK(lw_magma_key_new(both.bytes, 32, &both.key) == LW_STATUS_OVERLAP && both.key == NULL);
    memset(&both, 1, sizeof both);
    CHECK(lw_mayo_secret_key_from_seed(LW_MAYO2, both.bytes, 24, &both.secret) == LW_STATUS_OVERLAP && both.secret == NULL);
    const lw_mayo_secret_key *secret = NULL;
    CHECK(lw_mayo_secret_key_from_seed(LW_MAYO2, both.bytes + 32, 24, &secret) == LW_STATUS_OK);
    CHECK(lw_mayo_secret_key_to_pem(secret, both.bytes, sizeof both, &both.length) == LW_STATUS_OVERLAP);
    CHECK(zero(both.bytes, sizeof both));
    lw_mayo_secret_key_free(secret);
    // A NULL handle leaves zeros too.
    memset(out, 5, sizeof out);
    CHECK(lw_magma_ctr(NULL, bytes, 4, out, out, 8) == LW_STATUS_NULL_POINTER && zero(out, 8));

    // Batches: two places that are one, a number of threads.
    uint8_t nonce[8] = {0}, data[8] = {9, 9}, tag[2][8];
    lw_magma_seal_job jobs[2] = {{key, nonce, 8, NULL, 0, data, 8, tag[0]}, {key, nonce, 8, NULL, 0, data, 8, tag[1]}};
    lw_status statuses[2] = {LW_STATUS_OK, LW_STATUS_OK};
    CHECK(lw_magma_mgm_seal_batch(jobs, 2, 8, 1, statuses) == LW_STATUS_OVERLAP && zero(data, 8));
    CHECK(statuses[0] == LW_STATUS_OVERLAP && statuses[1] == LW_STATUS_OVERLAP);
    CHECK(lw_magma_mgm_seal_batch(jobs, 1, 8, 1025, statuses) == LW_STATUS_PARAMETER);
    CHECK(lw_magma_mgm_seal_batch(NULL, 1, 8, 1, statuses) == LW_STATUS_NULL_POINTER && statuses[0] == LW_STATUS_NULL_POINTER);
    CHECK(lw_magma_mgm_seal_batch(jobs, 1, 8, 1, NULL) == LW_STATUS_NULL_POINTER);
    CHECK(lw_magma_mgm_seal_batch(NULL, 0, 8, 1, NULL) == LW_STATUS_OK);
    CHECK(lw_magma_mgm_seal_batch(jobs, SIZE_MAX, 8, 1, statuses) == LW_STATUS_LENGTH);
    // So many jobs are longer than any array, although their statuses are not.
    statuses[0] = LW_STATUS_INTERNAL;
    CHECK(lw_magma_mgm_seal_batch(jobs, SIZE_MAX / 16, 8, 1, statuses) == LW_STATUS_LENGTH && statuses[0] == LW_STATUS_INTERNAL);
    batches(key, jobs);
    jobs[1].data = out;
    jobs[0].nonce_len = 7;
    CHECK(lw_magma_mgm_seal_batch(jobs, 2, 8, 2, statuses) == LW_STATUS_LENGTH && statuses[1] == LW_STATUS_OK);
    lw_magma_key_free(key);

    // A limit of 16 bytes.
    CHECK(lw_magma_key_new_limited(bytes, 32, 16, 0, &key) == LW_STATUS_PARAMETER);
    CHECK(lw_magma_key_new_limited(bytes, 32, 16, 1024, &key) == LW_STATUS_OK);
    CHECK(lw_magma_ctr(key, bytes, 4, bytes, out, 16) == LW_STATUS_OK);
    CHECK(lw_magma_ctr(key, bytes, 4, bytes, out, 1) == LW_STATUS_KEY_EXHAUSTED && out[0] == 0);
    lw_magma_key_free(key);
}

static void mayo(void) {
    const lw_mayo_secret_key *secret = NULL, *again = NULL;
    const lw_mayo_public_key *public = NULL;
    uint8_t seed[40] = {3}, signature[2][LW_MAYO2_ROUND2_SIGNATURE_BYTES], randomizer[24] = {0}, der[8192];
    size_t length = 0;
    CHECK(lw_mayo_secret_key_from_seed(304, seed, 24, &secret) == LW_STATUS_PARAMETER && secret == NULL);
    CHECK(lw_mayo_secret_key_from_seed(LW_MAYO2_ROUND2, seed, 23, &secret) == LW_STATUS_LENGTH);
    CHECK(lw_mayo_secret_key_from_seed(LW_MAYO2_ROUND2, seed, 24, &secret) == LW_STATUS_OK);
    CHECK(lw_mayo_secret_key_set(secret) == LW_MAYO2_ROUND2);
    CHECK(lw_mayo_secret_key_public(secret, &public) == LW_STATUS_OK);

    // DER: the length, too little room, and back.
    CHECK(lw_mayo_secret_key_to_der(secret, NULL, 0, &length) == LW_STATUS_LENGTH && length > 4912);
    CHECK(lw_mayo_secret_key_to_der(secret, der, length - 1, &length) == LW_STATUS_LENGTH && zero(der, 16));
    CHECK(lw_mayo_secret_key_to_der(secret, der, sizeof der, &length) == LW_STATUS_OK && zero(der + length, sizeof der - length));
    CHECK(lw_mayo_secret_key_from_der(der, length, &again) == LW_STATUS_OK);
    CHECK(lw_mayo_secret_key_seed(again, der, 24) == LW_STATUS_OK && memcmp(der, seed, 24) == 0);
    lw_mayo_secret_key_free(again);
    CHECK(lw_mayo_secret_key_from_pem(der, 24, &again) == LW_STATUS_UNREADABLE && again == NULL);

    // The same randomizer gives the same signature, of one call or of a stream's message.
    CHECK(lw_mayo_sign_with_randomizer(secret, seed, 5, randomizer, 24, signature[0], sizeof signature[0]) == LW_STATUS_OK);
    CHECK(lw_mayo_sign_with_randomizer(secret, seed, 5, randomizer, 24, signature[1], sizeof signature[1]) == LW_STATUS_OK);
    CHECK(memcmp(signature[0], signature[1], sizeof signature[0]) == 0);
    lw_mayo_stream *stream = NULL;
    CHECK(lw_mayo_stream_new(LW_MAYO2_ROUND2, &stream) == LW_STATUS_OK && lw_mayo_stream_update(stream, seed, 5) == LW_STATUS_OK);
    CHECK(lw_mayo_stream_verify(stream, public, signature[0], sizeof signature[0]) == LW_STATUS_OK);
    CHECK(lw_mayo_stream_verify(stream, public, signature[0], sizeof signature[0]) == LW_STATUS_STATE);
    lw_mayo_stream_free(stream);
    CHECK(lw_mayo_stream_new(LW_MAYO2, &stream) == LW_STATUS_OK);
    CHECK(lw_mayo_stream_sign(stream, secret, signature[0], sizeof signature[0]) == LW_STATUS_WRONG_SET);
    CHECK(zero(signature[0], sizeof signature[0]));
    lw_mayo_stream_free(stream);
    CHECK(lw_mayo_sign(secret, seed, 5, signature[0], sizeof signature[0] - 1) == LW_STATUS_LENGTH);
    lw_mayo_public_key_free(public);
    lw_mayo_secret_key_free(secret);

    // Round 3 has no DER form.
    CHECK(lw_mayo_secret_key_generate(LW_MAYO1, &secret) == LW_STATUS_OK);
    CHECK(lw_mayo_secret_key_to_der(secret, der, sizeof der, &length) == LW_STATUS_NO_IDENTIFIER && length == 0);
    lw_mayo_secret_key_free(secret);
}

static void vdf(void) {
    const lw_vdf_discriminant *group = NULL;
    uint8_t bytes[2] = {0, 23}, challenge[1] = {0}, form[LW_VDF_FORM_BYTES], long_number[300];
    CHECK(lw_vdf_discriminant_from_bytes(bytes, 2, &group) == LW_STATUS_OK);
    CHECK(lw_vdf_discriminant_bits(group) == 5 && lw_vdf_discriminant_is_prime(group));
    CHECK(lw_vdf_discriminant_to_bytes(group, form, 1) == LW_STATUS_OK && form[0] == 23);
    CHECK(lw_vdf_generator(group, form, sizeof form) == LW_STATUS_OK && form[0] == 8);
    CHECK(lw_vdf_verify(group, LW_VDF_STRICT, form, 99, form, 100, 1, 0) == LW_STATUS_LENGTH);
    CHECK(lw_vdf_verify(group, 2, form, 100, form, 100, 1, 0) == LW_STATUS_PARAMETER);
    lw_vdf_discriminant_free(group);
    bytes[1] = 21;
    CHECK(lw_vdf_discriminant_from_bytes(bytes, 2, &group) == LW_STATUS_DISCRIMINANT && group == NULL);
    memset(long_number, 0xff, sizeof long_number);
    CHECK(lw_vdf_discriminant_from_bytes(long_number, sizeof long_number, &group) == LW_STATUS_DISCRIMINANT);
    CHECK(lw_vdf_discriminant_from_challenge(challenge, 0, 1024, &group) == LW_STATUS_DISCRIMINANT);
    CHECK(lw_vdf_discriminant_from_challenge(challenge, 1, 1023, &group) == LW_STATUS_PARAMETER);
    CHECK(!lw_vdf_discriminant_is_prime(NULL));
    CHECK(lw_vdf_form_bytes(1024) == LW_VDF_FORM_BYTES && lw_vdf_proof_bytes(1024, 2) == 482);
    CHECK(lw_vdf_proof_bytes(1024, 64) == 0);
}

int main(void) {
    modes();
    acpkm();
    mgm();
    keys();
    misuse();
    mayo();
    vdf();
    CHECK(strcmp(lw_version(), "0.1.0") == 0 && strlen(lw_status_text(-5)) > 0);
    printf("%d failures\n", failures);
    return failures != 0;
}
