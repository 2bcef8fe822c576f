// Seals many records and verifies many signatures at once; each item has its own status.
#include <lanework.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 40, BYTES = 100 };

static void must(lw_status status, const char *what) {
    if (status != LW_STATUS_OK) {
        fprintf(stderr, "error: %s: %s\n", what, lw_status_text(status));
        exit(1);
    }
}

int main(void) {
    static uint8_t data[ITEMS][BYTES], tags[ITEMS][8], nonces[ITEMS][8], signatures[ITEMS][LW_MAYO1_SIGNATURE_BYTES];
    lw_status statuses[ITEMS];

    const uint8_t bytes[LW_MAGMA_KEY_BYTES] = {1};
    const lw_magma_key *key;
    must(lw_magma_key_new(bytes, sizeof bytes, &key), "key");
    lw_magma_seal_job seal[ITEMS];
    lw_magma_open_job open[ITEMS];
    for (size_t i = 0; i < ITEMS; i++) {
        nonces[i][7] = (uint8_t)i;
        seal[i] = (lw_magma_seal_job){key, nonces[i], 8, NULL, 0, data[i], BYTES, tags[i]};
        open[i] = (lw_magma_open_job){key, nonces[i], 8, NULL, 0, data[i], BYTES, tags[i]};
    }
    must(lw_magma_mgm_seal_batch(seal, ITEMS, 8, 1, statuses), "seal");
    tags[7][0] ^= 1;
    lw_status first = lw_magma_mgm_open_batch(open, ITEMS, 8, 2, statuses);
    for (size_t i = 0; i < ITEMS; i++) {
        if (statuses[i] != (i == 7 ? LW_STATUS_REFUSED : LW_STATUS_OK)) return 1;
        for (size_t j = 0; j < BYTES; j++)
            if (data[i][j] != 0) return 1; // the plaintext, and the place of the forgery
    }
    printf("one of %d records: %s\n", ITEMS, lw_status_text(first));
    lw_magma_key_free(key);

    const lw_mayo_secret_key *secret;
    const lw_mayo_public_key *public;
    must(lw_mayo_secret_key_generate(LW_MAYO1, &secret), "generate");
    must(lw_mayo_secret_key_public(secret, &public), "public key");
    lw_mayo_sign_job sign[ITEMS];
    lw_mayo_verify_job verify[ITEMS];
    for (size_t i = 0; i < ITEMS; i++) {
        sign[i] = (lw_mayo_sign_job){nonces[i], 8, signatures[i]};
        verify[i] = (lw_mayo_verify_job){public, nonces[i], 8, signatures[i], sizeof signatures[i]};
    }
    must(lw_mayo_sign_batch(secret, sign, ITEMS, 2, statuses), "sign");
    signatures[3][0] ^= 1;
    verify[4].signature_len--;
    first = lw_mayo_verify_batch(verify, ITEMS, 0, statuses);
    for (size_t i = 0; i < ITEMS; i++) {
        lw_status expected = i == 3 ? LW_STATUS_REFUSED : i == 4 ? LW_STATUS_LENGTH : LW_STATUS_OK;
        if (statuses[i] != expected) return 1;
    }
    printf("two of %d signatures: %s, %s\n", ITEMS, lw_status_text(first), lw_status_text(statuses[4]));
    lw_mayo_public_key_free(public);
    lw_mayo_secret_key_free(secret);
    return 0;
}
