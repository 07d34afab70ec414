/* serve_seed.c - see serve_seed.h. */
#include "cli/serve_seed.h"

#include "api/core/auth.h"
#include "base/encoding.h"
#include "client/client.h"
#include "seed/seed.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { TIMEOUT_MS = 60000 };

static void log_resource(void *ctx, SeedChange change, const char *kind, const char *name)
{
    const Log *log = ctx;
    if (change != SEED_UNCHANGED)
        LOG_DEBUG(log, "seed.resource", "change=%s kind=\"%s\" name=\"%s\"",
                  seed_change_word(change), kind, name);
}

static void log_reject(void *ctx, const char *place, const char *reason)
{
    const Log *log = ctx;
    LOG_ERROR(log, "seed.rejected", "place=\"%s\" reason=\"%s\"", place, reason);
}

/* A client with a master key that the server accepts. */
static Status open_client(const ServeSeedOptions *options, Client **out, Error *err)
{
    char text[BASE64_LEN(AUTH_KEY_BYTES_MAX) + 1] = AUTH_DEVELOPMENT_KEY;
    StoredKeys keys = {0};
    bool found = false;
    if (options->key == NULL)
        TRY(key_store_read(&options->stored, &keys, &found, err));
    const StoredKey *key = &keys.slots[KEY_SLOT_PRIMARY];
    if (found && key->len > 0) {
        base64_encode(BASE64_STANDARD, key->bytes, key->len, text);
        text[BASE64_LEN(key->len)] = '\0';
    }
    ClientOptions to_itself = {
        .endpoint = options->endpoint,
        .key = options->key != NULL ? options->key : text,
        .is_insecure = true, /* the certificate may be for another name; the port is our own */
        .timeout_ms = TIMEOUT_MS,
    };
    Status status = client_open(&to_itself, out, err);
    explicit_bzero(&keys, sizeof(keys));
    explicit_bzero(text, sizeof(text));
    return status;
}

Status serve_seed(const ServeSeedOptions *options, bool *is_stopped, Error *err)
{
    AUTO(client_close) Client *client = NULL;
    TRY(open_client(options, &client, err));
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    int stop_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (stop_fd < 0)
        return error_set_errno(err, errno, "cannot wait for signals");
    SeedOptions seed = {
        .client = client,
        .file = options->file,
        .stop_fd = stop_fd,
        .on_resource = log_resource,
        .on_reject = log_reject,
        .ctx = UNCONST(Log, options->log),
    };
    SeedSummary summary;
    Status status = seed_run(&seed, &summary, err);
    (void)close(stop_fd);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* a stopped import has unblocked them */
    *is_stopped = summary.is_interrupted;
    LOG_INFO(options->log, "seed.done",
             "file=%s created=%llu replaced=%llu deleted=%llu unchanged=%llu items_written=%llu "
             "items_unchanged=%llu ok=%s",
             options->file->path, (unsigned long long)summary.resources[SEED_CREATED],
             (unsigned long long)summary.resources[SEED_REPLACED],
             (unsigned long long)summary.resources[SEED_DELETED],
             (unsigned long long)summary.resources[SEED_UNCHANGED],
             (unsigned long long)summary.items_written, (unsigned long long)summary.items_unchanged,
             status == STATUS_OK ? "true" : "false");
    return summary.is_interrupted ? STATUS_OK : status;
}
