/* pg_target.c - the URL of an engine: which hosts, and whether the way to them is safe. */
#include "journal/postgres/pg_int.h"

#include <arpa/inet.h>

static PQconninfoOption *find(PQconninfoOption *info, const char *keyword)
{
    for (PQconninfoOption *one = info; one->keyword != NULL; one++) {
        if (strcmp(one->keyword, keyword) == 0)
            return one;
    }
    return NULL;
}

static const char *value_of(PQconninfoOption *info, const char *keyword)
{
    const PQconninfoOption *one = find(info, keyword);
    return one == NULL || one->val == NULL || one->val[0] == '\0' ? NULL : one->val;
}

/* Takes "a,b,c" apart. An empty element is NULL. Returns how many there are, or more than
 * PG_HOSTS_MAX. */
static size_t split(Arena *arena, const char *list, const char **out)
{
    size_t count = 0;
    for (Slice rest = list == NULL ? SLICE_EMPTY : slice_from_cstr(list); list != NULL;) {
        bool is_last = slice_find(rest, ',') == rest.len;
        Slice one = slice_cut(&rest, ',');
        if (count < PG_HOSTS_MAX)
            out[count] = one.len == 0 ? NULL : arena_cstr(arena, one);
        count++;
        if (is_last)
            break;
    }
    return count;
}

/* Names are not looked at, but for one: another that begins like an address may be anywhere. */
static bool is_loopback(const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, address, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    if (inet_pton(AF_INET6, address, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcmp(address, "localhost") == 0;
}

/* Whether a connection to this host stays on the machine. A path is a socket in the file system,
 * as is the default. */
static bool is_local(const char *host, const char *hostaddr)
{
    if (hostaddr != NULL)
        return is_loopback(hostaddr);
    return host == NULL || host[0] == '/' || host[0] == '@' || is_loopback(host);
}

static Status find_hosts(PgTarget *target, Error *err)
{
    const char *ports[PG_HOSTS_MAX] = {NULL};
    size_t hosts = split(&target->arena, value_of(target->info, "host"), target->host);
    size_t addresses = split(&target->arena, value_of(target->info, "hostaddr"), target->hostaddr);
    size_t port_count = split(&target->arena, value_of(target->info, "port"), ports);
    size_t count = hosts > addresses ? hosts : addresses;
    if (count == 0)
        count = 1;
    if (count > PG_HOSTS_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the URL of the engine has more than %d hosts", PG_HOSTS_MAX);
    if ((hosts > 0 && addresses > 0 && hosts != addresses) ||
        (port_count > 1 && port_count != count))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the URL of the engine has %zu hosts and %zu ports", count, port_count);
    target->host_count = count;
    target->is_local = true;
    for (size_t i = 0; i < count; i++) {
        target->port[i] = ports[port_count > 1 ? i : 0];
        target->is_local &= is_local(target->host[i], target->hostaddr[i]);
    }
    return STATUS_OK;
}

static bool has_environment(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
    return value != NULL && value[0] != '\0';
}

/* libpq adds what a service or the environment says about hosts to what the URL says, so that what
 * was checked here would not be where it connects to. */
static Status check_sources(const PgTarget *target, Error *err)
{
    if (value_of(target->info, "service") != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the URL of the engine has service=; it must name the hosts itself");
    const char *found = has_environment("PGSERVICE") ? "PGSERVICE" : NULL;
    for (size_t i = 0; i < target->host_count; i++) {
        if (target->host[i] == NULL && has_environment("PGHOST"))
            found = "PGHOST";
        if (target->hostaddr[i] == NULL && has_environment("PGHOSTADDR"))
            found = "PGHOSTADDR";
    }
    if (found == NULL)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "%s is set in the environment; the URL of the engine must name the hosts "
                     "itself, and %s must be unset",
                     found, found);
}

static Status check_safety(const PgTarget *target, bool allow_insecure, Error *err)
{
    if (target->is_local || allow_insecure)
        return STATUS_OK;
    const char *mode = value_of(target->info, "sslmode");
    if (mode != NULL && strcmp(mode, "verify-full") != 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the URL of the engine has sslmode=%.20s; off this machine it must be "
                         "verify-full, unless less is allowed by name",
                         mode);
    const char *binding = value_of(target->info, "channel_binding");
    if (binding != NULL && strcmp(binding, "require") != 0 &&
        value_of(target->info, "sslcert") == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the URL of the engine has channel_binding=%.20s; off this machine it "
                         "must be require, unless there is a client's certificate",
                         binding);
    return STATUS_OK;
}

Status pg_target_parse(const Libpq *libpq, const char *url, bool allow_insecure, PgTarget *out,
                       Error *err)
{
    char *why = NULL;
    PQconninfoOption *info = libpq->conninfoParse(url, &why);
    if (info == NULL) {
        /* libpq's own words may hold the URL, and that a password. */
        if (why != NULL)
            libpq->freemem(why);
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the URL of the engine is not of the form "
                         "postgresql://USER@HOST:PORT/DATABASE?OPTION=VALUE");
    }
    PgTarget target = {.info = info};
    arena_init(&target.arena, 1024);
    Status status = find_hosts(&target, err);
    if (status == STATUS_OK)
        status = check_sources(&target, err);
    if (status == STATUS_OK)
        status = check_safety(&target, allow_insecure, err);
    if (status != STATUS_OK) {
        pg_target_done(libpq, &target);
        return status;
    }
    *out = target;
    return STATUS_OK;
}

void pg_target_done(const Libpq *libpq, PgTarget *target)
{
    if (target->info != NULL)
        libpq->conninfoFree(target->info);
    target->info = NULL;
    arena_done(&target->arena);
}
