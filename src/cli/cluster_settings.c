/* cluster_settings.c - see cluster_settings.h. */
#include "cli/cluster_settings.h"

#include "base/encoding.h"
#include "journal/journal.h"
#include "journal/postgres/postgres_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_FILE_BYTES_MAX = 256 };

static Status wrong(const char *option, const char *expected, const char *found, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--%s must be %s, not '%.200s'", option,
                     expected, found);
}

static bool is_name(Slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_' || c == '.';
        if (!good)
            return false;
    }
    return text.len > 0 && text.len <= JOURNAL_NAME_MAX;
}

/* "http://10.0.0.1:8081" or https://; without a path. */
static bool is_url(Slice text, Slice *authority)
{
    bool is_plain = slice_starts_with(text, SLICE("http://"));
    if (!is_plain && !slice_starts_with(text, SLICE("https://")))
        return false;
    Slice rest = slice_from(text, is_plain ? 7 : 8);
    if (slice_ends_with(rest, SLICE("/")))
        rest.len--;
    *authority = rest;
    return rest.len > 0 && slice_find(rest, '/') == rest.len && slice_find(rest, '@') == rest.len &&
           slice_find(rest, '?') == rest.len;
}

/* Takes "host:port", "[::1]:port", or a host alone, apart. */
static bool split_authority(Slice text, Slice *host, uint64_t *port)
{
    size_t colon = text.len;
    *port = 0;
    while (colon > 0 && text.ptr[colon - 1] != ':' && text.ptr[colon - 1] != ']')
        colon--;
    bool has_port = colon > 0 && text.ptr[colon - 1] == ':';
    *host = has_port ? slice_first(text, colon - 1) : text;
    bool is_bracketed = slice_starts_with(*host, SLICE("["));
    if (is_bracketed) {
        if (!slice_ends_with(*host, SLICE("]")))
            return false;
        *host = slice_first(slice_from(*host, 1), host->len - 2);
    }
    return host->len > 0 && (is_bracketed || slice_find(*host, ':') == host->len) &&
           (!has_port || (slice_to_u64(slice_from(text, colon), port) && *port <= UINT16_MAX));
}

/* The nodes reach each other where clients reach this one, unless --peer says something else. */
static Status read_peer(Arena *arena, const ClusterTexts *texts, Slice authority,
                        ClusterSettings *out, Error *err)
{
    Slice host;
    uint64_t port = 0;
    if (!split_authority(authority, &host, &port))
        return wrong("advertise", "a URL such as http://10.0.0.1:8081", texts->advertise, err);
    port = 0;
    if (texts->peer[0] != '\0' && !split_authority(slice_from_cstr(texts->peer), &host, &port))
        return wrong("peer", "a host and a port, such as 10.0.0.1:9081", texts->peer, err);
    out->peer_host = arena_cstr(arena, host);
    out->peer_port = (uint16_t)port;
    return STATUS_OK;
}

uint64_t cluster_settings_rotate_bytes(const ClusterSettings *settings)
{
    enum { SHARE = 16 };
    uint64_t bytes = settings->journal_bytes / SHARE;
    return bytes < POSTGRES_JOURNAL_ROTATE_BYTES ? bytes : 0;
}

Status cluster_settings_read(Arena *arena, const ClusterTexts *texts, ClusterSettings *out,
                             Error *err)
{
    const char *const needed[] = {texts->cluster, texts->secret, texts->node, texts->advertise};
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(needed); i++)
        count += needed[i][0] != '\0';
    if (count == 0 && texts->peer[0] == '\0')
        return STATUS_OK;
    if (count < ARRAY_COUNT(needed))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "a node of a cluster needs --cluster URL, --cluster-secret FILE, --node "
                         "NAME and --advertise URL, all of them; see docs/cluster.md");
    Slice url = slice_from_cstr(texts->cluster);
    if (!slice_starts_with(url, SLICE("postgresql://")) &&
        !slice_starts_with(url, SLICE("postgres://")))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--cluster must be the URL of a PostgreSQL server: "
                         "postgresql://USER@HOST:PORT/DATABASE"); /* it may hold a password */
    if (!is_name(slice_from_cstr(texts->node)))
        return wrong("node", "a name of letters, digits, '-', '_' and '.'", texts->node, err);
    Slice authority;
    if (!is_url(slice_from_cstr(texts->advertise), &authority))
        return wrong("advertise", "a URL such as http://10.0.0.1:8081", texts->advertise, err);
    TRY(read_peer(arena, texts, authority, out, err));
    out->engine = texts->cluster;
    out->secret_file = texts->secret;
    out->node = texts->node;
    out->advertise = texts->advertise;
    return STATUS_OK;
}

static Status check_mode(int fd, const char *path, Error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return error_set_errno(err, errno, "cannot read '%s'", path);
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) == 0 || S_ISFIFO(info.st_mode))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "'%s' can be read or changed by others; it holds the secret of the cluster: "
                     "chmod 600 %s",
                     path, path);
}

Status cluster_secret_read(const char *path, uint8_t out[CLUSTER_SECRET_BYTES], Error *err)
{
    char text[SECRET_FILE_BYTES_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot read '%s'", path);
    Status status = check_mode(fd, path, err);
    ssize_t got = status == STATUS_OK ? read(fd, text, sizeof(text)) : 0;
    int code = errno;
    (void)close(fd); /* only read from */
    TRY(status);
    if (got < 0)
        return error_set_errno(err, code, "cannot read '%s'", path);
    Slice line = slice_make(text, (size_t)got);
    line = slice_first(line, slice_find(line, '\n'));
    Slice secret = slice_trim(slice_first(line, slice_find(line, '\r')));
    uint8_t bytes[CLUSTER_SECRET_BYTES];
    size_t len = 0;
    if (!base64_decode(BASE64_STANDARD, secret, bytes, sizeof(bytes), &len) || len != sizeof(bytes))
        return error_set(
            err, STATUS_BAD_REQUEST, SUB_NONE,
            "'%s' does not hold the secret of a cluster; make one with: orrery cluster "
            "secret > %s",
            path, path);
    memcpy(out, bytes, CLUSTER_SECRET_BYTES);
    return STATUS_OK;
}

void cluster_secret_derive(const uint8_t secret[CLUSTER_SECRET_BYTES], const char *use,
                           uint8_t out[CLUSTER_SECRET_BYTES])
{
    unsigned len = 0;
    uint8_t digest[EVP_MAX_MD_SIZE];
    const uint8_t *made = HMAC(EVP_sha256(), secret, CLUSTER_SECRET_BYTES, (const uint8_t *)use,
                               strlen(use), digest, &len);
    ASSERT(made != NULL);
    ASSERT(len == CLUSTER_SECRET_BYTES);
    memcpy(out, digest, CLUSTER_SECRET_BYTES);
}
