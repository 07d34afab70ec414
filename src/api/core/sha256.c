/* sha256.c - see sha256.h. */
#define OPENSSL_API_COMPAT 10101
#include "api/core/sha256.h"

#include <openssl/sha.h>

static_assert(sizeof(SHA256_CTX) <= sizeof(Sha256), "OpenSSL's state lies in ours");
static_assert(_Alignof(SHA256_CTX) <= _Alignof(Sha256), "likewise");

static SHA256_CTX *ctx_of(Sha256 *sum)
{
    return (SHA256_CTX *)(void *)sum->state;
}

/* These functions fail only if they are used in the wrong order. */
void sha256_init(Sha256 *sum)
{
    (void)SHA256_Init(ctx_of(sum));
}

void sha256_add(Sha256 *sum, Slice bytes)
{
    if (bytes.len > 0)
        (void)SHA256_Update(ctx_of(sum), bytes.ptr, bytes.len);
}

void sha256_end(Sha256 *sum, char out[SHA256_TEXT_LEN])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[SHA256_DIGEST_LENGTH];
    (void)SHA256_Final(bytes, ctx_of(sum));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
}

void sha256_of(Slice bytes, char out[SHA256_TEXT_LEN])
{
    Sha256 sum;
    sha256_init(&sum);
    sha256_add(&sum, bytes);
    sha256_end(&sum, out);
}

bool sha256_is_text(Slice text)
{
    bool is_text = text.len == SHA256_TEXT_LEN;
    for (size_t i = 0; is_text && i < text.len; i++)
        is_text = (text.ptr[i] >= '0' && text.ptr[i] <= '9') ||
                  (text.ptr[i] >= 'a' && text.ptr[i] <= 'f');
    return is_text;
}
