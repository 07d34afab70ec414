/* token_secret.c - see token_secret.h. */
#include "cli/token_secret.h"

#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A damaged disk leaves zeros, which are a secret that is easy to guess. */
static bool is_blank(const TokenSecret *secret)
{
    static const TokenSecret ZEROS;
    return memcmp(secret, &ZEROS, sizeof(ZEROS)) == 0;
}

Status token_secret_open(Arena *arena, const char *data, TokenSecret *out, Error *err)
{
    const char *path = arena_format(arena, "%s/token.key", data).ptr;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open '%s'", path);
    TokenSecret secret;
    bool is_done =
        read(fd, &secret, sizeof(secret)) == (ssize_t)sizeof(secret) && !is_blank(&secret);
    if (!is_done) {
        random_secret(&secret, sizeof(secret));
        is_done = pwrite(fd, &secret, sizeof(secret), 0) == (ssize_t)sizeof(secret);
    }
    int code = errno;
    (void)close(fd); /* a failed write was reported */
    if (!is_done)
        return error_set_errno(err, code, "cannot write '%s'", path);
    *out = secret;
    return STATUS_OK;
}
