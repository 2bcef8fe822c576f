// MAYO of round 3 with the functions of NIST's submissions. Define LANEWORK_MAYO as 1, 2, 3 or 5 before, or by -DLANEWORK_MAYO=1.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef LANEWORK_NIST_API_H
#define LANEWORK_NIST_API_H

#ifndef LANEWORK_MAYO
#error "define LANEWORK_MAYO as 1, 2, 3 or 5: the parameter set"
#elif LANEWORK_MAYO == 1
#define CRYPTO_ALGNAME "MAYO-1"
#define CRYPTO_SECRETKEYBYTES 24
#define CRYPTO_PUBLICKEYBYTES 1456
#define CRYPTO_BYTES 464
#define crypto_sign_keypair lanework_mayo1_keypair
#define crypto_sign lanework_mayo1_sign
#define crypto_sign_open lanework_mayo1_open
#elif LANEWORK_MAYO == 2
#define CRYPTO_ALGNAME "MAYO-2"
#define CRYPTO_SECRETKEYBYTES 24
#define CRYPTO_PUBLICKEYBYTES 2928
#define CRYPTO_BYTES 239
#define crypto_sign_keypair lanework_mayo2_keypair
#define crypto_sign lanework_mayo2_sign
#define crypto_sign_open lanework_mayo2_open
#elif LANEWORK_MAYO == 3
#define CRYPTO_ALGNAME "MAYO-3"
#define CRYPTO_SECRETKEYBYTES 32
#define CRYPTO_PUBLICKEYBYTES 2986
#define CRYPTO_BYTES 681
#define crypto_sign_keypair lanework_mayo3_keypair
#define crypto_sign lanework_mayo3_sign
#define crypto_sign_open lanework_mayo3_open
#elif LANEWORK_MAYO == 5
#define CRYPTO_ALGNAME "MAYO-5"
#define CRYPTO_SECRETKEYBYTES 40
#define CRYPTO_PUBLICKEYBYTES 5554
#define CRYPTO_BYTES 964
#define crypto_sign_keypair lanework_mayo5_keypair
#define crypto_sign lanework_mayo5_sign
#define crypto_sign_open lanework_mayo5_open
#else
#error "LANEWORK_MAYO is none of 1, 2, 3 and 5"
#endif

#ifdef __cplusplus
extern "C" {
#endif

// A key pair from the operating system's randomness; no function `randombytes` is called. 0, or -1 with zeros in both.
int crypto_sign_keypair(unsigned char *pk, unsigned char *sk);

// The signature and the message, mlen + CRYPTO_BYTES bytes, and that number in `*smlen`. `sm` may overlap `m`. 0, or -1 with
// zeros over those bytes and in `*smlen`.
int crypto_sign(unsigned char *sm, unsigned long long *smlen, const unsigned char *m, unsigned long long mlen,
                const unsigned char *sk);

// The message, if its signature is valid, smlen - CRYPTO_BYTES bytes, and that number in `*mlen`. `m` may overlap `sm`. 0, or -1
// with zeros over those bytes and in `*mlen`.
int crypto_sign_open(unsigned char *m, unsigned long long *mlen, const unsigned char *sm, unsigned long long smlen,
                     const unsigned char *pk);

#ifdef __cplusplus
}
#endif

#endif
