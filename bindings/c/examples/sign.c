// Signs a file's worth of pieces with MAYO-2, verifies it, and carries the public key as a key file.
#include <lanework.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(lw_status status, const char *what) {
    if (status != LW_STATUS_OK) {
        fprintf(stderr, "error: %s: %s\n", what, lw_status_text(status));
        exit(1);
    }
}

int main(void) {
    const lw_mayo_secret_key *secret;
    const lw_mayo_public_key *ours;
    must(lw_mayo_secret_key_generate(LW_MAYO2, &secret), "generate");
    must(lw_mayo_secret_key_public(secret, &ours), "public key");

    // The key file that the other side reads. First its length, then its text.
    size_t length;
    lw_mayo_public_key_to_pem(ours, NULL, 0, &length);
    uint8_t *pem = malloc(length);
    if (!pem) return 1;
    must(lw_mayo_public_key_to_pem(ours, pem, length, &length), "write the key");
    const lw_mayo_public_key *theirs;
    must(lw_mayo_public_key_from_pem(pem, length, &theirs), "read the key");
    free(pem);

    // One message at once.
    const uint8_t message[] = "a message in two pieces";
    uint8_t signature[LW_MAYO2_SIGNATURE_BYTES];
    must(lw_mayo_sign(secret, message, sizeof message, signature, sizeof signature), "sign");
    must(lw_mayo_verify(theirs, message, sizeof message, signature, sizeof signature), "verify");

    // The same message in pieces.
    lw_mayo_stream *stream;
    must(lw_mayo_stream_new(LW_MAYO2, &stream), "begin");
    must(lw_mayo_stream_update(stream, message, 10), "first piece");
    must(lw_mayo_stream_update(stream, message + 10, sizeof message - 10), "second piece");
    must(lw_mayo_stream_sign(stream, secret, signature, sizeof signature), "sign the pieces");
    lw_mayo_stream_free(stream);
    must(lw_mayo_verify(theirs, message, sizeof message, signature, sizeof signature), "verify the whole");

    // A changed signature.
    signature[0] ^= 1;
    lw_status refused = lw_mayo_verify(theirs, message, sizeof message, signature, sizeof signature);
    printf("a changed signature: %s\n", lw_status_text(refused));

    lw_mayo_public_key_free(theirs);
    lw_mayo_public_key_free(ours);
    lw_mayo_secret_key_free(secret);
    return refused == LW_STATUS_REFUSED ? 0 : 1;
}
