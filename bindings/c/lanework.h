// Lanework for C and C++: MAYO signatures, the block cipher Magma, and the delay function of Chia.
// SPDX-License-Identifier: MIT OR Apache-2.0
// Generated from bindings/c/src; do not edit.
//
// Statuses. Every function that can fail returns an lw_status; LW_STATUS_OK is 0. lw_status_text() explains it. No function exits
// the process, and no error of the library crosses this boundary in another way. A defect of the library is
// LW_STATUS_INTERNAL; free the handles of that call. Running out of memory aborts the process.
//
// Results. A function that fails sets its results to zero, or to NULL: output buffers over the length that the caller gave,
// handles and numbers. That includes data in place, so nothing that should have been encrypted leaves as it is.
//
// Pointers. NULL is LW_STATUS_NULL_POINTER, except for a buffer of length 0, for which any pointer will do. A misaligned handle,
// array or result is LW_STATUS_MISALIGNED. A buffer that is written must not overlap another buffer of the call:
// LW_STATUS_OVERLAP. Where a function has `input` and `output`, they may be the same address, and must otherwise not overlap.
// A pointer to another result must not lie inside a buffer of the call either.
// A batch whose statuses overlap its jobs, or whose count no array has, writes nothing.
//
// Lengths are in bytes. Those that a key or a standard fixes must be exact: LW_STATUS_LENGTH.
//
// Handles. A function ending in _new, _generate, _from_... or _public makes one. Keys, trees of one and the like are `const *`: any
// number of threads may use one at the same time. They are counted: _ref adds a reference, _free gives one back, and the
// last one wipes the secrets. Other handles are mutable: one thread at a time. _free takes NULL.
//
// Threads. A batch takes a number of them: 1 is the calling thread, 0 one for each core, and at most 1024.


#ifndef LANEWORK_H
#define LANEWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The version that this header belongs to: major, minor and patch level.
#define LW_VERSION_MAJOR 0

// See LW_VERSION_MAJOR.
#define LW_VERSION_MINOR 1

// See LW_VERSION_MAJOR.
#define LW_VERSION_PATCH 0

// MAYO-1 of round 3. A parameter set is a round and a set; rounds never share a key.
#define LW_MAYO1 301

// MAYO-2 of round 3.
#define LW_MAYO2 302

// MAYO-3 of round 3.
#define LW_MAYO3 303

// MAYO-5 of round 3.
#define LW_MAYO5 305

// MAYO-1 of round 2.
#define LW_MAYO1_ROUND2 201

// MAYO-2 of round 2.
#define LW_MAYO2_ROUND2 202

// MAYO-3 of round 2.
#define LW_MAYO3_ROUND2 203

// MAYO-5 of round 2.
#define LW_MAYO5_ROUND2 205

// Bytes of a secret key of LW_MAYO1.
#define LW_MAYO1_SECRET_KEY_BYTES 24

// Bytes of a public key of LW_MAYO1.
#define LW_MAYO1_PUBLIC_KEY_BYTES 1456

// Bytes of a signature of LW_MAYO1.
#define LW_MAYO1_SIGNATURE_BYTES 464

// Bytes of a secret key of LW_MAYO2.
#define LW_MAYO2_SECRET_KEY_BYTES 24

// Bytes of a public key of LW_MAYO2.
#define LW_MAYO2_PUBLIC_KEY_BYTES 2928

// Bytes of a signature of LW_MAYO2.
#define LW_MAYO2_SIGNATURE_BYTES 239

// Bytes of a secret key of LW_MAYO3.
#define LW_MAYO3_SECRET_KEY_BYTES 32

// Bytes of a public key of LW_MAYO3.
#define LW_MAYO3_PUBLIC_KEY_BYTES 2986

// Bytes of a signature of LW_MAYO3.
#define LW_MAYO3_SIGNATURE_BYTES 681

// Bytes of a secret key of LW_MAYO5.
#define LW_MAYO5_SECRET_KEY_BYTES 40

// Bytes of a public key of LW_MAYO5.
#define LW_MAYO5_PUBLIC_KEY_BYTES 5554

// Bytes of a signature of LW_MAYO5.
#define LW_MAYO5_SIGNATURE_BYTES 964

// Bytes of a secret key of LW_MAYO1_ROUND2.
#define LW_MAYO1_ROUND2_SECRET_KEY_BYTES 24

// Bytes of a public key of LW_MAYO1_ROUND2.
#define LW_MAYO1_ROUND2_PUBLIC_KEY_BYTES 1420

// Bytes of a signature of LW_MAYO1_ROUND2.
#define LW_MAYO1_ROUND2_SIGNATURE_BYTES 454

// Bytes of a secret key of LW_MAYO2_ROUND2.
#define LW_MAYO2_ROUND2_SECRET_KEY_BYTES 24

// Bytes of a public key of LW_MAYO2_ROUND2.
#define LW_MAYO2_ROUND2_PUBLIC_KEY_BYTES 4912

// Bytes of a signature of LW_MAYO2_ROUND2.
#define LW_MAYO2_ROUND2_SIGNATURE_BYTES 186

// Bytes of a secret key of LW_MAYO3_ROUND2.
#define LW_MAYO3_ROUND2_SECRET_KEY_BYTES 32

// Bytes of a public key of LW_MAYO3_ROUND2.
#define LW_MAYO3_ROUND2_PUBLIC_KEY_BYTES 2986

// Bytes of a signature of LW_MAYO3_ROUND2.
#define LW_MAYO3_ROUND2_SIGNATURE_BYTES 681

// Bytes of a secret key of LW_MAYO5_ROUND2.
#define LW_MAYO5_ROUND2_SECRET_KEY_BYTES 40

// Bytes of a public key of LW_MAYO5_ROUND2.
#define LW_MAYO5_ROUND2_PUBLIC_KEY_BYTES 5554

// Bytes of a signature of LW_MAYO5_ROUND2.
#define LW_MAYO5_ROUND2_SIGNATURE_BYTES 964

// Bytes of a key.
#define LW_MAGMA_KEY_BYTES 32

// Bytes of a block.
#define LW_MAGMA_BLOCK_BYTES 8

// Bytes of an IV of CTR, CTR-ACPKM and KExp15.
#define LW_MAGMA_IV_BYTES 4

// Bytes of a nonce of MGM.
#define LW_MAGMA_NONCE_BYTES 8

// The fewest bytes of a tag.
#define LW_MAGMA_TAG_BYTES_MIN 4

// The most bytes of a tag.
#define LW_MAGMA_TAG_BYTES_MAX 8

// Bytes by which KExp15 lengthens a secret.
#define LW_MAGMA_KEXP15_OVERHEAD_BYTES 8

// TLSTREE of TLS_GOSTR341112_256_WITH_MAGMA_CTR_OMAC (RFC 9189): a new key every 4,096 records.
#define LW_MAGMA_TLSTREE_CTR_OMAC 1

// TLSTREE of TLS_GOSTR341112_256_WITH_MAGMA_MGM_L (RFC 9367): a new key every 128 records.
#define LW_MAGMA_TLSTREE_MGM_L 2

// TLSTREE of TLS_GOSTR341112_256_WITH_MAGMA_MGM_S (RFC 9367): a new key for every record.
#define LW_MAGMA_TLSTREE_MGM_S 3

// Bytes of a form, up to 1,024 bits of discriminant. lw_vdf_form_bytes has those of longer ones.
#define LW_VDF_FORM_BYTES 100

// Bytes of B, the prime of a compact proof.
#define LW_VDF_B_BYTES 33

// The most bits of a discriminant.
#define LW_VDF_BITS_MAX 2048

// The most segments before the last that verification allows, as in Chia.
#define LW_VDF_DEPTH_MAX 63

// Every form has one encoding.
#define LW_VDF_STRICT 0

// The encodings that Chia's nodes accept by consensus.
#define LW_VDF_LENIENT 1

// lw_vdf_progress.phase: squaring.
#define LW_VDF_SQUARING 0

// lw_vdf_progress.phase: proving, after the squaring.
#define LW_VDF_PROVING 1

// lw_vdf_progress.phase: verifying what was proved.
#define LW_VDF_VERIFYING 2

// The outcome of a call. Further values may be added.
enum lw_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Done.
  LW_STATUS_OK = 0,
  // The signature, tag, check or proof is well formed, and wrong.
  LW_STATUS_REFUSED = 1,
  // A pointer is NULL.
  LW_STATUS_NULL_POINTER = 2,
  // A pointer is not aligned for its type.
  LW_STATUS_MISALIGNED = 3,
  // A buffer that is written overlaps another.
  LW_STATUS_OVERLAP = 4,
  // A buffer has the wrong length.
  LW_STATUS_LENGTH = 5,
  // A parameter is out of its range.
  LW_STATUS_PARAMETER = 6,
  // The call does not fit the handle's state: it is finished, or associated data came after data.
  LW_STATUS_STATE = 7,
  // The message is longer than its mode allows.
  LW_STATUS_TOO_LONG = 8,
  // MGM was given neither data nor associated data.
  LW_STATUS_EMPTY_MESSAGE = 9,
  // The top bit of an MGM nonce is set.
  LW_STATUS_NONCE_TOP_BIT = 10,
  // The counter would repeat.
  LW_STATUS_COUNTER_EXHAUSTED = 11,
  // The key has processed as many bytes as its limit allows.
  LW_STATUS_KEY_EXHAUSTED = 12,
  // The key has refused as many messages as its limit allows; it still seals.
  LW_STATUS_TOO_MANY_REFUSED = 13,
  // The record's number is above the suite's last.
  LW_STATUS_SEQUENCE_OVERFLOW = 14,
  // A key document cannot be read.
  LW_STATUS_UNREADABLE = 15,
  // The operands belong to different parameter sets or rounds.
  LW_STATUS_WRONG_SET = 16,
  // The two halves of a key document do not belong together, or two keys that must differ are the same.
  LW_STATUS_KEY_MISMATCH = 17,
  // The parameter set has no published object identifier, so no DER form; it has a PEM form.
  LW_STATUS_NO_IDENTIFIER = 18,
  // Signing found no solution; this does not happen with honest keys.
  LW_STATUS_NO_SOLUTION = 19,
  // A result did not verify: the machine miscalculated, and nothing was returned.
  LW_STATUS_FAULT = 20,
  // The operating system gave no randomness.
  LW_STATUS_RANDOM = 21,
  // The operating system refused threads.
  LW_STATUS_THREADS = 22,
  // The number, or the challenge, is not a discriminant.
  LW_STATUS_DISCRIMINANT = 23,
  // The bytes are not a form of this discriminant.
  LW_STATUS_FORM = 24,
  // The proof is deeper, longer or for more bits than verification allows.
  LW_STATUS_LIMIT = 25,
  // The progress function stopped the computation.
  LW_STATUS_CANCELLED = 26,
  // The checkpoint cannot be used or written.
  LW_STATUS_CHECKPOINT = 27,
  // A defect of this library.
  LW_STATUS_INTERNAL = 28,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum lw_status lw_status;
#else
typedef int32_t lw_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A message in CTR-ACPKM that comes in pieces.
typedef struct lw_magma_ctr_acpkm_stream lw_magma_ctr_acpkm_stream;

// A message in CTR that comes in pieces.
typedef struct lw_magma_ctr_stream lw_magma_ctr_stream;

// The two keys of KExp15 (RFC 9189, 8.2.1).
typedef struct lw_magma_kexp15 lw_magma_kexp15;

// A key of Magma (GOST R 34.12-2015, RFC 8891). It counts the blocks of 8 bytes that are begun under it, and four more for each
// message of MGM. It refuses more than its limit.
typedef struct lw_magma_key lw_magma_key;

// MGM (RFC 9058) under a key, with tags of one length.
typedef struct lw_magma_mgm lw_magma_mgm;

// A message in MGM that comes in pieces: first all associated data, then all data, each cut anywhere.
typedef struct lw_magma_mgm_stream lw_magma_mgm_stream;

// A message for OMAC that comes in pieces.
typedef struct lw_magma_omac_stream lw_magma_omac_stream;

// A tree of record keys (RFC 9189, 8.1). It remembers the last path, so one thread at a time.
typedef struct lw_magma_tlstree lw_magma_tlstree;

// A public key, with everything computed that does not depend on the message: 0.1 to 0.9 MB of memory.
typedef struct lw_mayo_public_key lw_mayo_public_key;

// A secret key, with everything computed that does not depend on the message: 0.3 to 1.8 MB of memory.
typedef struct lw_mayo_secret_key lw_mayo_secret_key;

// A message that comes in pieces, to be signed or verified.
typedef struct lw_mayo_stream lw_mayo_stream;

// A class group, by its discriminant.
typedef struct lw_vdf_discriminant lw_vdf_discriminant;

// A message for lw_mayo_sign_batch.
typedef struct {
  // The message.
  const uint8_t *message;
  // Bytes of `message`.
  size_t message_len;
  // The place for the signature, of lw_mayo_signature_bytes.
  uint8_t *signature;
} lw_mayo_sign_job;

// A signature for lw_mayo_verify_batch.
typedef struct {
  // Any number of jobs may share a key.
  const lw_mayo_public_key *key;
  // The message.
  const uint8_t *message;
  // Bytes of `message`.
  size_t message_len;
  // The signature.
  const uint8_t *signature;
  // Bytes of `signature`.
  size_t signature_len;
} lw_mayo_verify_job;

// A message for lw_magma_mgm_seal_batch.
typedef struct {
  // Any number of jobs may share a key, each with its own nonce.
  const lw_magma_key *key;
  // LW_MAGMA_NONCE_BYTES.
  const uint8_t *nonce;
  // Bytes of `nonce`.
  size_t nonce_len;
  // Associated data.
  const uint8_t *aad;
  // Bytes of `aad`.
  size_t aad_len;
  // Encrypted in place.
  uint8_t *data;
  // Bytes of `data`.
  size_t data_len;
  // The place for the tag, as long as the batch's tags.
  uint8_t *tag;
} lw_magma_seal_job;

// A message for lw_magma_mgm_open_batch.
typedef struct {
  // Any number of jobs may share a key.
  const lw_magma_key *key;
  // LW_MAGMA_NONCE_BYTES.
  const uint8_t *nonce;
  // Bytes of `nonce`.
  size_t nonce_len;
  // Associated data.
  const uint8_t *aad;
  // Bytes of `aad`.
  size_t aad_len;
  // Decrypted in place if the tag is right, and zeroed if not.
  uint8_t *data;
  // Bytes of `data`.
  size_t data_len;
  // The tag, as long as the batch's tags.
  const uint8_t *tag;
} lw_magma_open_job;

// A proof for lw_vdf_verify_batch; see lw_vdf_verify.
typedef struct {
  // The group.
  const lw_vdf_discriminant *discriminant;
  // The form that the chain starts from.
  const uint8_t *x;
  // Bytes of `x`.
  size_t x_len;
  // The result and the proof.
  const uint8_t *proof;
  // Bytes of `proof`.
  size_t proof_len;
  // Squarings.
  uint64_t iterations;
  // Segments before the last.
  uint64_t depth;
} lw_vdf_verify_job;

// How far a computation is.
typedef struct {
  // Done of `total`: squarings, products of forms, or segments verified.
  uint64_t done;
  // `done` at the end of the phase.
  uint64_t total;
  // Squarings that came from the checkpoint.
  uint64_t resumed;
  // LW_VDF_SQUARING, LW_VDF_PROVING or LW_VDF_VERIFYING.
  uint32_t phase;
} lw_vdf_progress;

// Called several times a second, always on the thread of the call; false stops the computation. It returns in the ordinary way: no
// longjmp, no C++ exception.
typedef bool (*lw_vdf_observer)(void *context, const lw_vdf_progress *progress);

// A result that is known, for lw_vdf_compact.
typedef struct {
  // Squarings.
  uint64_t iterations;
  // The result, a form.
  const uint8_t *y;
  // Bytes of `y`: lw_vdf_form_bytes.
  size_t y_len;
  // The place for the proof in one segment: the result and the proof, lw_vdf_proof_bytes for depth 0.
  uint8_t *proof;
  // The place for its B: LW_VDF_B_BYTES.
  uint8_t *b;
} lw_vdf_claim;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library that runs, such as "0.1.0"; static.
const char *lw_version(void);

// A sentence about a status, static and in English; about a number that is not one, too.
const char *lw_status_text(int32_t status);

// Bytes of a secret key, its seed; 0 for an unknown set.
size_t lw_mayo_secret_key_bytes(uint32_t set);

// Bytes of a public key; 0 for an unknown set.
size_t lw_mayo_public_key_bytes(uint32_t set);

// Bytes of a signature; 0 for an unknown set.
size_t lw_mayo_signature_bytes(uint32_t set);

// Bytes of a randomizer, which are those of a secret key; 0 for an unknown set.
size_t lw_mayo_randomizer_bytes(uint32_t set);

// A key from the operating system's randomness.
lw_status lw_mayo_secret_key_generate(uint32_t set, const lw_mayo_secret_key **out);

// A key from its seed of lw_mayo_secret_key_bytes, which is the whole secret. Never use a seed in two rounds.
lw_status lw_mayo_secret_key_from_seed(uint32_t set,
                                       const uint8_t *seed,
                                       size_t seed_len,
                                       const lw_mayo_secret_key **out);

// Reads a PKCS#8 document in DER, of round 2.
lw_status lw_mayo_secret_key_from_der(const uint8_t *der, size_t der_len, const lw_mayo_secret_key **out);

// Reads a key file in PEM, of any round; `pem` need not end with a 0.
lw_status lw_mayo_secret_key_from_pem(const uint8_t *pem, size_t pem_len, const lw_mayo_secret_key **out);

// Another reference.
lw_status lw_mayo_secret_key_ref(const lw_mayo_secret_key *key);

// Gives a reference back; the last one wipes the key.
void lw_mayo_secret_key_free(const lw_mayo_secret_key *key);

// The parameter set, such as LW_MAYO2; 0 for NULL.
uint32_t lw_mayo_secret_key_set(const lw_mayo_secret_key *key);

// The seed, of lw_mayo_secret_key_bytes.
lw_status lw_mayo_secret_key_seed(const lw_mayo_secret_key *key, uint8_t *seed, size_t seed_len);

// The public key.
lw_status lw_mayo_secret_key_public(const lw_mayo_secret_key *key, const lw_mayo_public_key **out);

// Writes the PKCS#8 document in DER, of round 2: LW_STATUS_NO_IDENTIFIER in round 3. `room` is the bytes of `der`, and `*length` those
// that the document has: with less room the status is LW_STATUS_LENGTH, so NULL and 0 ask for the length.
lw_status lw_mayo_secret_key_to_der(const lw_mayo_secret_key *key,
                                    uint8_t *der,
                                    size_t room,
                                    size_t *length);

// Writes the key file in PEM, without a 0 at its end: PKCS#8 in round 2, this library's own form in round 3. See
// lw_mayo_secret_key_to_der for `room` and `*length`.
lw_status lw_mayo_secret_key_to_pem(const lw_mayo_secret_key *key,
                                    uint8_t *pem,
                                    size_t room,
                                    size_t *length);

// A key from its lw_mayo_public_key_bytes.
lw_status lw_mayo_public_key_from_bytes(uint32_t set,
                                        const uint8_t *key,
                                        size_t key_len,
                                        const lw_mayo_public_key **out);

// Reads an SPKI document in DER, of round 2.
lw_status lw_mayo_public_key_from_der(const uint8_t *der, size_t der_len, const lw_mayo_public_key **out);

// Reads a key file in PEM, of any round; `pem` need not end with a 0.
lw_status lw_mayo_public_key_from_pem(const uint8_t *pem, size_t pem_len, const lw_mayo_public_key **out);

// Another reference.
lw_status lw_mayo_public_key_ref(const lw_mayo_public_key *key);

// Gives a reference back.
void lw_mayo_public_key_free(const lw_mayo_public_key *key);

// The parameter set, such as LW_MAYO2; 0 for NULL.
uint32_t lw_mayo_public_key_set(const lw_mayo_public_key *key);

// The key's lw_mayo_public_key_bytes.
lw_status lw_mayo_public_key_to_bytes(const lw_mayo_public_key *key, uint8_t *bytes, size_t bytes_len);

// Writes the SPKI document in DER, of round 2. See lw_mayo_secret_key_to_der.
lw_status lw_mayo_public_key_to_der(const lw_mayo_public_key *key, uint8_t *der, size_t room, size_t *length);

// Writes the key file in PEM. See lw_mayo_secret_key_to_pem.
lw_status lw_mayo_public_key_to_pem(const lw_mayo_public_key *key, uint8_t *pem, size_t room, size_t *length);

// Signs a message, hedged with the operating system's randomness. The signature has lw_mayo_signature_bytes.
lw_status lw_mayo_sign(const lw_mayo_secret_key *key,
                       const uint8_t *message,
                       size_t message_len,
                       uint8_t *signature,
                       size_t signature_len);

// Signs with a randomizer of lw_mayo_randomizer_bytes: for known answers. Fresh randomness in place of it is lw_mayo_sign. The same
// message, seed and randomizer in two rounds reveal the key.
lw_status lw_mayo_sign_with_randomizer(const lw_mayo_secret_key *key,
                                       const uint8_t *message,
                                       size_t message_len,
                                       const uint8_t *randomizer,
                                       size_t randomizer_len,
                                       uint8_t *signature,
                                       size_t signature_len);

// Whether a signature is the key's for this message: LW_STATUS_REFUSED if not.
lw_status lw_mayo_verify(const lw_mayo_public_key *key,
                         const uint8_t *message,
                         size_t message_len,
                         const uint8_t *signature,
                         size_t signature_len);

// Begins a message for keys of this set.
lw_status lw_mayo_stream_new(uint32_t set, lw_mayo_stream **out);

// The next piece, of any length.
lw_status lw_mayo_stream_update(lw_mayo_stream *stream, const uint8_t *message, size_t message_len);

// Signs the message of all pieces as lw_mayo_sign does, and ends the stream. LW_STATUS_WRONG_SET if the key is of another set.
lw_status lw_mayo_stream_sign(lw_mayo_stream *stream,
                              const lw_mayo_secret_key *key,
                              uint8_t *signature,
                              size_t signature_len);

// Verifies a signature of the message of all pieces, and ends the stream. LW_STATUS_WRONG_SET if the key is of another set.
lw_status lw_mayo_stream_verify(lw_mayo_stream *stream,
                                const lw_mayo_public_key *key,
                                const uint8_t *signature,
                                size_t signature_len);

// Frees the stream.
void lw_mayo_stream_free(lw_mayo_stream *stream);

// Signs `count` messages as lw_mayo_sign does. Each has its status; the call's is the first that is not LW_STATUS_OK.
lw_status lw_mayo_sign_batch(const lw_mayo_secret_key *key,
                             const lw_mayo_sign_job *jobs,
                             size_t count,
                             size_t thread_count,
                             lw_status *statuses);

// Verifies `count` signatures. Each has its status; the call's is the first that is not LW_STATUS_OK.
lw_status lw_mayo_verify_batch(const lw_mayo_verify_job *jobs,
                               size_t count,
                               size_t thread_count,
                               lw_status *statuses);

// Bytes of a key: LW_MAGMA_KEY_BYTES.
size_t lw_magma_key_bytes(void);

// Bytes of a block: LW_MAGMA_BLOCK_BYTES.
size_t lw_magma_block_bytes(void);

// Bytes of an IV: LW_MAGMA_IV_BYTES.
size_t lw_magma_iv_bytes(void);

// Bytes of a nonce: LW_MAGMA_NONCE_BYTES.
size_t lw_magma_nonce_bytes(void);

// A key of LW_MAGMA_KEY_BYTES, for at most 2^28 bytes (RFC 9227).
lw_status lw_magma_key_new(const uint8_t *key, size_t key_len, const lw_magma_key **out);

// A key that processes at most `bytes` bytes, or any number with UINT64_MAX. A section of CTR-ACPKM has `section` bytes, a positive
// multiple of 8, unless a call gives another length.
lw_status lw_magma_key_new_limited(const uint8_t *key,
                                   size_t key_len,
                                   uint64_t bytes,
                                   size_t section,
                                   const lw_magma_key **out);

// Another reference to a key.
lw_status lw_magma_key_ref(const lw_magma_key *key);

// Gives a reference back; the last one wipes the key. Streams keep a copy of their key and may live longer.
void lw_magma_key_free(const lw_magma_key *key);

// The bytes that count for a key, and the streams made of it; 0 for NULL.
uint64_t lw_magma_key_used(const lw_magma_key *key);

// Encrypts whole blocks, each by itself: to build modes from, not to encrypt data. `len` is a multiple of 8.
lw_status lw_magma_encrypt_blocks(const lw_magma_key *key, const uint8_t *input, uint8_t *output, size_t len);

// The inverse of lw_magma_encrypt_blocks.
lw_status lw_magma_decrypt_blocks(const lw_magma_key *key, const uint8_t *input, uint8_t *output, size_t len);

// CTR of a message (GOST R 34.13-2015, 5.2); encryption and decryption are one. An IV of LW_MAGMA_IV_BYTES, never twice under one
// key. It does not authenticate.
lw_status lw_magma_ctr(const lw_magma_key *key,
                       const uint8_t *iv,
                       size_t iv_len,
                       const uint8_t *input,
                       uint8_t *output,
                       size_t len);

// Begins a message; see lw_magma_ctr.
lw_status lw_magma_ctr_new(const lw_magma_key *key,
                           const uint8_t *iv,
                           size_t iv_len,
                           lw_magma_ctr_stream **out);

// The next piece, of any length. A refused piece changes nothing in the stream.
lw_status lw_magma_ctr_update(lw_magma_ctr_stream *stream, const uint8_t *input, uint8_t *output, size_t len);

// Goes to the beginning of a block, counted from 0; 2^32 is the end.
lw_status lw_magma_ctr_seek(lw_magma_ctr_stream *stream, uint64_t block);

// Frees the stream, and wipes it.
void lw_magma_ctr_free(lw_magma_ctr_stream *stream);

// CTR-ACPKM of a message (RFC 8645, 6.2): CTR that changes its key after every `section` bytes, a multiple of 8; 0 is the key's
// own number, by default 1024. An IV never twice under one key.
lw_status lw_magma_ctr_acpkm(const lw_magma_key *key,
                             const uint8_t *iv,
                             size_t iv_len,
                             size_t section,
                             const uint8_t *input,
                             uint8_t *output,
                             size_t len);

// Begins a message; see lw_magma_ctr_acpkm.
lw_status lw_magma_ctr_acpkm_new(const lw_magma_key *key,
                                 const uint8_t *iv,
                                 size_t iv_len,
                                 size_t section,
                                 lw_magma_ctr_acpkm_stream **out);

// The next piece, of any length. A refused piece changes nothing in the stream.
lw_status lw_magma_ctr_acpkm_update(lw_magma_ctr_acpkm_stream *stream,
                                    const uint8_t *input,
                                    uint8_t *output,
                                    size_t len);

// Frees the stream, and wipes it.
void lw_magma_ctr_acpkm_free(lw_magma_ctr_acpkm_stream *stream);

// OMAC of a message (GOST R 34.13-2015, 5.6): `tag_len` is 4 to 8. Do not encrypt under the same key.
lw_status lw_magma_omac(const lw_magma_key *key,
                        const uint8_t *message,
                        size_t message_len,
                        uint8_t *tag,
                        size_t tag_len);

// Whether `tag` is the message's: LW_STATUS_REFUSED if not. The protocol fixes `tag_len`; do not take it from the message.
lw_status lw_magma_omac_verify(const lw_magma_key *key,
                               const uint8_t *message,
                               size_t message_len,
                               const uint8_t *tag,
                               size_t tag_len);

// Begins a message with a tag of `tag_len` bytes; see lw_magma_omac.
lw_status lw_magma_omac_new(const lw_magma_key *key, size_t tag_len, lw_magma_omac_stream **out);

// The next piece, of any length.
lw_status lw_magma_omac_update(lw_magma_omac_stream *stream, const uint8_t *message, size_t message_len);

// The tag, of as many bytes as were agreed at the beginning. Ends the stream.
lw_status lw_magma_omac_final(lw_magma_omac_stream *stream, uint8_t *tag, size_t tag_len);

// Whether `tag` is the message's: LW_STATUS_REFUSED if not. Ends the stream.
lw_status lw_magma_omac_final_verify(lw_magma_omac_stream *stream, const uint8_t *tag, size_t tag_len);

// Frees the stream, and wipes it.
void lw_magma_omac_free(lw_magma_omac_stream *stream);

// The keys K_Exp_MAC and K_Exp_ENC, LW_MAGMA_KEY_BYTES each: LW_STATUS_KEY_MISMATCH if they are the same.
lw_status lw_magma_kexp15_new(const uint8_t *mac_key,
                              size_t mac_key_len,
                              const uint8_t *encryption_key,
                              size_t encryption_key_len,
                              const lw_magma_kexp15 **out);

// Another reference.
lw_status lw_magma_kexp15_ref(const lw_magma_kexp15 *keys);

// Gives a reference back; the last one wipes the keys.
void lw_magma_kexp15_free(const lw_magma_kexp15 *keys);

// Wraps a secret of up to 2^20 bytes under an IV of LW_MAGMA_IV_BYTES, new for these keys. `wrapped_len` is
// `secret_len + LW_MAGMA_KEXP15_OVERHEAD_BYTES`.
lw_status lw_magma_kexp15_wrap(const lw_magma_kexp15 *keys,
                               const uint8_t *iv,
                               size_t iv_len,
                               const uint8_t *secret,
                               size_t secret_len,
                               uint8_t *wrapped,
                               size_t wrapped_len);

// The secret, if it was wrapped under these keys and this IV: LW_STATUS_REFUSED if not. `secret_len` is
// `wrapped_len - LW_MAGMA_KEXP15_OVERHEAD_BYTES`.
lw_status lw_magma_kexp15_unwrap(const lw_magma_kexp15 *keys,
                                 const uint8_t *iv,
                                 size_t iv_len,
                                 const uint8_t *wrapped,
                                 size_t wrapped_len,
                                 uint8_t *secret,
                                 size_t secret_len);

// A tree under a root of LW_MAGMA_KEY_BYTES, for a suite: LW_MAGMA_TLSTREE_CTR_OMAC, _MGM_L or _MGM_S.
lw_status lw_magma_tlstree_new(const uint8_t *root, size_t root_len, uint32_t suite, lw_magma_tlstree **out);

// The key of record `number`, LW_MAGMA_KEY_BYTES: LW_STATUS_SEQUENCE_OVERFLOW above the suite's last.
lw_status lw_magma_tlstree_key(lw_magma_tlstree *tree, uint64_t number, uint8_t *key, size_t key_len);

// The same as a handle, without a copy of the bytes. Handles of neighbouring records that share a key count together.
lw_status lw_magma_tlstree_cipher(lw_magma_tlstree *tree,
                                  uint64_t number,
                                  const lw_magma_key **out);

// Frees the tree, and wipes it.
void lw_magma_tlstree_free(lw_magma_tlstree *tree);

// KDF_TREE_GOSTR3411_2012_256 (RFC 7836, 4.4): fills `out` with 1 to 32 * (2^(8R) - 1) bytes. `counter_len` is R, 1 to 4. Its hash
// reads tables at addresses that depend on the key.
lw_status lw_magma_kdf_tree(const uint8_t *key,
                            size_t key_len,
                            const uint8_t *label,
                            size_t label_len,
                            const uint8_t *seed,
                            size_t seed_len,
                            size_t counter_len,
                            uint8_t *out,
                            size_t out_len);

// MGM with tags of `tag_len` bytes, 4 to 8; the protocol fixes it.
lw_status lw_magma_mgm_new(const lw_magma_key *key, size_t tag_len, const lw_magma_mgm **out);

// Another reference.
lw_status lw_magma_mgm_ref(const lw_magma_mgm *mgm);

// Gives a reference back; the last one, of handles and streams, wipes the key.
void lw_magma_mgm_free(const lw_magma_mgm *mgm);

// Encrypts a message, and authenticates it with its associated data. The nonce has LW_MAGMA_NONCE_BYTES, its top bit is 0, and it is
// never used twice under one key: count them. Data and associated data are not both empty.
lw_status lw_magma_mgm_seal(const lw_magma_mgm *mgm,
                            const uint8_t *nonce,
                            size_t nonce_len,
                            const uint8_t *aad,
                            size_t aad_len,
                            const uint8_t *input,
                            uint8_t *output,
                            size_t len,
                            uint8_t *tag,
                            size_t tag_len);

// Decrypts a message if its tag is right: LW_STATUS_REFUSED if not.
lw_status lw_magma_mgm_open(const lw_magma_mgm *mgm,
                            const uint8_t *nonce,
                            size_t nonce_len,
                            const uint8_t *aad,
                            size_t aad_len,
                            const uint8_t *input,
                            uint8_t *output,
                            size_t len,
                            const uint8_t *tag,
                            size_t tag_len);

// Begins to encrypt; see lw_magma_mgm_seal. The key counts the four blocks of every message: LW_STATUS_KEY_EXHAUSTED without room
// for them.
lw_status lw_magma_mgm_sealer_new(const lw_magma_mgm *mgm,
                                  const uint8_t *nonce,
                                  size_t nonce_len,
                                  lw_magma_mgm_stream **out);

// Begins to check a message before it is decrypted in a second reading: lw_magma_mgm_stream_data with the ciphertext and NULL for
// `output`, lw_magma_mgm_stream_final_verify, and then lw_magma_mgm_stream_data again with the same ciphertext, which must not have
// changed.
lw_status lw_magma_mgm_verifier_new(const lw_magma_mgm *mgm,
                                    const uint8_t *nonce,
                                    size_t nonce_len,
                                    lw_magma_mgm_stream **out);

// Begins to decrypt in one reading, before anything is checked. The plaintext is not authentic until
// lw_magma_mgm_stream_final_verify returned LW_STATUS_OK: use none of it before, and destroy it if the tag is refused.
lw_status lw_magma_mgm_opener_new(const lw_magma_mgm *mgm,
                                  const uint8_t *nonce,
                                  size_t nonce_len,
                                  lw_magma_mgm_stream **out);

// The next associated data. LW_STATUS_STATE after data.
lw_status lw_magma_mgm_stream_aad(lw_magma_mgm_stream *stream, const uint8_t *aad, size_t aad_len);

// The next data. A verifier that has not verified yet takes NULL for `output`, and everything else a buffer.
lw_status lw_magma_mgm_stream_data(lw_magma_mgm_stream *stream,
                                   const uint8_t *input,
                                   uint8_t *output,
                                   size_t len);

// The tag of a sealed message, of the key's length. Ends the stream.
lw_status lw_magma_mgm_stream_final(lw_magma_mgm_stream *stream, uint8_t *tag, size_t tag_len);

// Whether `tag` is the message's: LW_STATUS_REFUSED if not. Ends the stream, except that a verifier may then decrypt.
lw_status lw_magma_mgm_stream_final_verify(lw_magma_mgm_stream *stream,
                                           const uint8_t *tag,
                                           size_t tag_len);

// Frees the stream, and wipes it.
void lw_magma_mgm_stream_free(lw_magma_mgm_stream *stream);

// Seals `count` messages with tags of `tag_len` bytes. Each has its status; the call's is the first that is not LW_STATUS_OK.
lw_status lw_magma_mgm_seal_batch(const lw_magma_seal_job *jobs,
                                  size_t count,
                                  size_t tag_len,
                                  size_t thread_count,
                                  lw_status *statuses);

// Opens `count` messages with tags of `tag_len` bytes. Each has its status, LW_STATUS_REFUSED if its tag is wrong; the call's is the
// first that is not LW_STATUS_OK.
lw_status lw_magma_mgm_open_batch(const lw_magma_open_job *jobs,
                                  size_t count,
                                  size_t tag_len,
                                  size_t thread_count,
                                  lw_status *statuses);

// Bytes of a form for a discriminant of `bits` bits.
size_t lw_vdf_form_bytes(size_t bits);

// Bytes of a proof with `depth` segments before the last: the result, its proof, and for each segment its squarings (8 bytes, highest
// first), its B and its proof. 0 above LW_VDF_DEPTH_MAX. A compact proof lacks the result.
size_t lw_vdf_proof_bytes(size_t bits,
                          uint64_t depth);

// The discriminant of a challenge: the negative of a prime of `bits` bits, a multiple of 8 up to LW_VDF_BITS_MAX.
lw_status lw_vdf_discriminant_from_challenge(const uint8_t *challenge,
                                             size_t challenge_len,
                                             size_t bits,
                                             const lw_vdf_discriminant **out);

// The discriminant whose absolute value these bytes are, highest first. It must be 1 modulo 4, but need not be the negative of a
// prime: a proof in the group of a composite number shows nothing. See lw_vdf_discriminant_is_prime.
lw_status lw_vdf_discriminant_from_bytes(const uint8_t *magnitude,
                                         size_t magnitude_len,
                                         const lw_vdf_discriminant **out);

// Another reference.
lw_status lw_vdf_discriminant_ref(const lw_vdf_discriminant *discriminant);

// Gives a reference back.
void lw_vdf_discriminant_free(const lw_vdf_discriminant *discriminant);

// Bits of its absolute value; 0 for NULL.
size_t lw_vdf_discriminant_bits(const lw_vdf_discriminant *discriminant);

// Whether it is the negative of a prime; false for NULL. It takes milliseconds.
bool lw_vdf_discriminant_is_prime(const lw_vdf_discriminant *discriminant);

// Its absolute value, highest byte first, in (bits + 7) / 8 bytes.
lw_status lw_vdf_discriminant_to_bytes(const lw_vdf_discriminant *discriminant,
                                       uint8_t *magnitude,
                                       size_t magnitude_len);

// The form that Chia's chains start from, in lw_vdf_form_bytes: LW_STATUS_DISCRIMINANT unless the discriminant is 1 modulo 8.
lw_status lw_vdf_generator(const lw_vdf_discriminant *discriminant,
                           uint8_t *form,
                           size_t form_len);

// Whether a proof shows that its result is `x` squared `iterations` times: LW_STATUS_REFUSED if not. `encoding` is LW_VDF_STRICT or
// LW_VDF_LENIENT. `proof` has lw_vdf_proof_bytes, and begins with the result. Take the discriminant from a challenge, or check that it
// is prime.
lw_status lw_vdf_verify(const lw_vdf_discriminant *discriminant,
                        uint32_t encoding,
                        const uint8_t *x,
                        size_t x_len,
                        const uint8_t *proof,
                        size_t proof_len,
                        uint64_t iterations,
                        uint64_t depth);

// lw_vdf_verify with the discriminant of a challenge. Malformed questions are refused before the search for it.
lw_status lw_vdf_verify_challenge(const uint8_t *challenge,
                                  size_t challenge_len,
                                  size_t bits,
                                  uint32_t encoding,
                                  const uint8_t *x,
                                  size_t x_len,
                                  const uint8_t *proof,
                                  size_t proof_len,
                                  uint64_t iterations,
                                  uint64_t depth);

// The result that a compact proof leads to, in lw_vdf_form_bytes, given the last segment's B of LW_VDF_B_BYTES. LW_STATUS_REFUSED if it
// does not prove a result for that prime.
lw_status lw_vdf_verify_compact(const lw_vdf_discriminant *discriminant,
                                uint32_t encoding,
                                const uint8_t *b,
                                size_t b_len,
                                const uint8_t *x,
                                size_t x_len,
                                const uint8_t *proof,
                                size_t proof_len,
                                uint64_t iterations,
                                uint64_t depth,
                                uint8_t *y,
                                size_t y_len);

// Verifies `count` proofs. Each has its status; the call's is the first that is not LW_STATUS_OK.
lw_status lw_vdf_verify_batch(const lw_vdf_verify_job *jobs,
                              size_t count,
                              uint32_t encoding,
                              size_t thread_count,
                              lw_status *statuses);

// The segments before the last, at most `most`, that lw_vdf_prove makes for this many squarings: the depth of its proof.
uint64_t lw_vdf_depth(uint64_t iterations,
                      uint64_t most);

// Squares `x` `iterations` times and proves the result, in at most `most_segments` segments before the last, of Chia's lengths. The proof
// has lw_vdf_proof_bytes for the depth that lw_vdf_depth tells; it is verified before it is returned. `b` takes the last segment's B, of
// LW_VDF_B_BYTES, or is empty. `observer` may be NULL. `checkpoint` is NULL, or the name of a file from which the same call continues after
// a stop.
lw_status lw_vdf_prove(const lw_vdf_discriminant *discriminant,
                       const uint8_t *x,
                       size_t x_len,
                       uint64_t iterations,
                       uint64_t most_segments,
                       size_t thread_count,
                       const char *checkpoint,
                       lw_vdf_observer observer,
                       void *context,
                       uint8_t *proof,
                       size_t proof_len,
                       uint8_t *b,
                       size_t b_len);

// Proves `count` results of one chain in one segment each, while squaring `x` once, up to the longest (Chia's blueboxes). Each has
// its status: LW_STATUS_REFUSED if the chain has another result there. Everything else is as in lw_vdf_prove. Results that were
// proved before a stop are kept, and their status is LW_STATUS_OK.
lw_status lw_vdf_compact(const lw_vdf_discriminant *discriminant,
                         const uint8_t *x,
                         size_t x_len,
                         const lw_vdf_claim *claims,
                         size_t count,
                         size_t thread_count,
                         const char *checkpoint,
                         lw_vdf_observer observer,
                         void *context,
                         lw_status *statuses);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LANEWORK_H */
