// A program of NIST's interface, for the set that LANEWORK_MAYO names: signs a message, opens it, and refuses a changed one.
#include "api.h"
#include <stdio.h>
#include <string.h>

int main(void) {
    const unsigned char message[] = "a message";
    unsigned char pk[CRYPTO_PUBLICKEYBYTES], sk[CRYPTO_SECRETKEYBYTES];
    unsigned char sm[sizeof message + CRYPTO_BYTES], m[sizeof message];
    unsigned long long smlen, mlen;
    if (crypto_sign_keypair(pk, sk) != 0) return 1;
    if (crypto_sign(sm, &smlen, message, sizeof message, sk) != 0 || smlen != sizeof sm) return 1;
    if (crypto_sign_open(m, &mlen, sm, smlen, pk) != 0 || mlen != sizeof m || memcmp(m, message, sizeof m) != 0) return 1;
    sm[0] ^= 1;
    int refused = crypto_sign_open(m, &mlen, sm, smlen, pk);
    printf("%s: %s\n", CRYPTO_ALGNAME, refused == -1 ? "a changed message is refused" : "a changed message was accepted");
    return refused == -1 ? 0 : 1;
}
