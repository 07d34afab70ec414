/* sha256.h - SHA-256 of bytes that come piece by piece, for the files of a backup. */
#pragma once

#include "base/slice.h"

enum { SHA256_TEXT_LEN = 64 }; /* lower-case hexadecimal */

typedef struct Sha256 {
    uint64_t state[16]; /* OpenSSL's */
} Sha256;

void sha256_init(Sha256 *sum);
void sha256_add(Sha256 *sum, Slice bytes);
void sha256_end(Sha256 *sum, char out[SHA256_TEXT_LEN]);

/* Of all bytes at once. */
void sha256_of(Slice bytes, char out[SHA256_TEXT_LEN]);

/* Whether 'text' is a sum as it is written here. */
bool sha256_is_text(Slice text);
