// The C interface of chiavdf's libchiavdfc, as `src/c_bindings/c_wrapper.h` of Chia's repository declares it; written anew.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef LANEWORK_CHIAVDFC_H
#define LANEWORK_CHIAVDFC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Bytes that the library allocated.
typedef struct {
    uint8_t *data;
    size_t length;
} ByteArray;

// Writes the absolute value of a challenge's discriminant to `result`, which has size_bits / 8 bytes. False if there is none.
bool create_discriminant_wrapper(const uint8_t *seed, size_t seed_size, size_t size_bits, uint8_t *result);

// Squares a form of x_s_size (100) bytes, and proves the result in one segment: the result and its proof. NULL and 0 on failure.
ByteArray prove_wrapper(const uint8_t *challenge_hash, size_t challenge_size, const uint8_t *x_s, size_t x_s_size,
                        size_t discriminant_size_bits, uint64_t num_iterations);

// Whether the proof shows that its result is the form of 100 bytes at `x_s` squared num_iterations times. `recursion` is the number of
// segments before the last, here at most 255.
bool verify_n_wesolowski_wrapper(const uint8_t *discriminant_bytes, size_t discriminant_size, const uint8_t *x_s,
                                 const uint8_t *proof_blob, size_t proof_blob_size, uint64_t num_iterations, uint64_t recursion);

// Frees what prove_wrapper returned; NULL is allowed.
void delete_byte_array(ByteArray array);

#ifdef __cplusplus
}
#endif

#endif
