// Encrypts a message in pieces with Magma in MGM, checks its tag before it decrypts, and refuses a forgery.
#include <lanework.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1000 };

static void must(lw_status status, const char *what) {
    if (status != LW_STATUS_OK) {
        fprintf(stderr, "error: %s: %s\n", what, lw_status_text(status));
        exit(1);
    }
}

// `output` is NULL while a verifier reads.
static void pieces(lw_magma_mgm_stream *stream, const uint8_t *input, uint8_t *output, size_t length) {
    for (size_t at = 0; at < length; at += PIECE) {
        size_t n = length - at < PIECE ? length - at : PIECE;
        must(lw_magma_mgm_stream_data(stream, input + at, output ? output + at : NULL, n), "a piece");
    }
}

int main(void) {
    // A real key comes from a key agreement, and the nonce is a counter.
    const uint8_t bytes[LW_MAGMA_KEY_BYTES] = {0x42}, header[] = "header";
    uint8_t nonce[LW_MAGMA_NONCE_BYTES] = {0, 0, 0, 0, 0, 0, 0, 1};
    const lw_magma_key *key;
    const lw_magma_mgm *mgm;
    must(lw_magma_key_new(bytes, sizeof bytes, &key), "key");
    must(lw_magma_mgm_new(key, LW_MAGMA_TAG_BYTES_MAX, &mgm), "MGM");
    lw_magma_key_free(key); // `mgm` has its own

    uint8_t plain[4321], data[sizeof plain], tag[LW_MAGMA_TAG_BYTES_MAX];
    for (size_t i = 0; i < sizeof plain; i++) plain[i] = (uint8_t)i;

    lw_magma_mgm_stream *stream;
    must(lw_magma_mgm_sealer_new(mgm, nonce, sizeof nonce, &stream), "begin");
    must(lw_magma_mgm_stream_aad(stream, header, sizeof header), "header");
    pieces(stream, plain, data, sizeof plain);
    must(lw_magma_mgm_stream_final(stream, tag, sizeof tag), "tag");
    lw_magma_mgm_stream_free(stream);

    // Two readings: no plaintext exists before the tag was right.
    must(lw_magma_mgm_verifier_new(mgm, nonce, sizeof nonce, &stream), "begin");
    must(lw_magma_mgm_stream_aad(stream, header, sizeof header), "header");
    pieces(stream, data, NULL, sizeof data);
    must(lw_magma_mgm_stream_final_verify(stream, tag, sizeof tag), "verify");
    pieces(stream, data, data, sizeof data); // in place
    lw_magma_mgm_stream_free(stream);
    if (memcmp(plain, data, sizeof plain) != 0) return 1;

    // In one call, from one buffer into another.
    uint8_t sealed[sizeof plain];
    nonce[7] = 2;
    must(lw_magma_mgm_seal(mgm, nonce, sizeof nonce, header, sizeof header, plain, sealed, sizeof plain, tag, sizeof tag),
         "seal");
    sealed[17] ^= 1;
    lw_status status =
        lw_magma_mgm_open(mgm, nonce, sizeof nonce, header, sizeof header, sealed, data, sizeof data, tag, sizeof tag);
    printf("a forgery: %s\n", lw_status_text(status));
    for (size_t i = 0; i < sizeof data; i++)
        if (data[i] != 0) return 1;
    lw_magma_mgm_free(mgm);
    return status == LW_STATUS_REFUSED ? 0 : 1;
}
