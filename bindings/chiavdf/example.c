// A program of chiavdf's C interface: proves a short chain, and verifies the proof.
#include "chiavdfc.h"
#include <stdio.h>

int main(void) {
    const uint8_t challenge[32] = {1, 2, 3}, generator[100] = {8};
    uint8_t discriminant[64];
    if (!create_discriminant_wrapper(challenge, sizeof challenge, 512, discriminant)) return 1;
    ByteArray proof = prove_wrapper(challenge, sizeof challenge, generator, sizeof generator, 512, 10000);
    bool right = verify_n_wesolowski_wrapper(discriminant, 64, generator, proof.data, proof.length, 10000, 0);
    bool wrong = verify_n_wesolowski_wrapper(discriminant, 64, generator, proof.data, proof.length, 10001, 0);
    delete_byte_array(proof);
    printf("a proof is %s, one of another chain %s\n", right ? "accepted" : "refused", wrong ? "accepted" : "refused");
    return right && !wrong ? 0 : 1;
}
