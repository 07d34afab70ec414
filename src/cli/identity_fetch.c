/* identity_fetch.c - see identity_fetch.h. */
#include "cli/identity_fetch.h"

#include "api/core/identity_keys.h"
#include "client/client.h"

#include <errno.h>
#include <stdio.h>

enum { TIMEOUT_MS = 5000 };

static Status read_file(const char *path, Arena *arena, Slice *text, Error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set_errno(err, errno, "cannot read --identity-keys '%s'", path);
    /* One byte more than is allowed, so that the reader of the set sees that it is too long. */
    char *bytes = arena_alloc(arena, IDENTITY_KEYS_BYTES_MAX + 1);
    size_t len = fread(bytes, 1, IDENTITY_KEYS_BYTES_MAX + 1, file);
    int code = ferror(file) != 0 ? errno : 0;
    (void)fclose(file);
    if (code != 0)
        return error_set_errno(err, code, "cannot read --identity-keys '%s'", path);
    *text = slice_make(bytes, len);
    return STATUS_OK;
}

static Status unavailable(const char *url, const char *reason, Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "--identity-keys %.200s: %.250s", url,
                     reason);
}

static Status ask(Client *client, const char *url, ClientCall *call, Error *err)
{
    ClientCall *ended = NULL;
    client_start(client, call);
    do
        TRY(client_wait(client, -1, &ended, err));
    while (ended != NULL);
    if (call->error.status != STATUS_OK)
        return unavailable(url, call->error.message, err);
    if (call->http_status != 200)
        return unavailable(url, "the answer is not 200", err);
    return STATUS_OK;
}

/* The options have checked that it begins with http:// and is on this machine. */
static Status ask_server(const char *url, Arena *arena, Slice *text, Error *err)
{
    Slice host = slice_from(slice_from_cstr(url), strlen("http://"));
    host = slice_first(host, slice_find(host, '/'));
    size_t end = strlen("http://") + host.len;
    AUTO(client_close) Client *client = NULL;
    ClientOptions options = {
        .endpoint = arena_cstr(arena, slice_make(url, end)),
        .timeout_ms = TIMEOUT_MS,
    };
    TRY(client_open(&options, &client, err));
    Slice path = slice_from(slice_from_cstr(url), end);
    ClientCall call = {.path = path.len > 0 ? path : SLICE("/"), .arena = arena};
    TRY(ask(client, url, &call, err));
    *text = call.body;
    return STATUS_OK;
}

Status identity_fetch(void *ctx, Arena *arena, Slice *text, Error *err)
{
    const char *from = ctx;
    return strncmp(from, "http://", 7) == 0 ? ask_server(from, arena, text, err)
                                            : read_file(from, arena, text, err);
}
