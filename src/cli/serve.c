/* serve.c - see serve.h.
 *
 * The parts are opened in this order, and each knows only those before it:
 *
 *     audit log, store, catalog, workers, api, http server
 *
 * They are closed in the opposite order. Signals are blocked in every thread and this one waits for
 * them, so that stopping is ordinary code: the server stops accepting and finishes the requests
 * under way. Everything acknowledged is on disk already.
 */
#include "cli/serve.h"

#include "api/api.h"
#include "base/random.h"
#include "catalog/saved_states.h"
#include "cli/cluster_node.h"
#include "cli/commands.h"
#include "cli/data_files.h"
#include "cli/file_limit.h"
#include "cli/identity_fetch.h"
#include "cli/options.h"
#include "cli/serve_seed.h"
#include "cli/server_sandbox.h"
#include "cli/service_notify.h"
#include "cli/temporary_folder.h"
#include "cli/token_secret.h"
#include "http/cert.h"
#include "http/http.h"
#include "store/rocksdb/rocksdb_store.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    /* A quarter of the cache holds blocks, for searches and scans. The rest holds items, which take
     * less room alone than with their neighbours in a block. */
    CACHE_BLOCKS_SHARE = 4,
    LEAVE_MS = 15000, /* of a node that gives its partitions to others */
    DRAIN_MS = 4000,  /* of the five seconds that stopping may take */
    EXIT_USAGE = 2,
    PACE_MS = 10000,
    HEADER_BYTES_MAX = 64 << 10,
    HTTP_BODY_BYTES_MAX = 4 << 20, /* larger than any resource; the api has the exact limits */
    WORKER_JOBS_MAX = 4096,
    IDENTITY_RELOAD_MS = 10000, /* the least time between two readings for unknown keys */
};

typedef struct Server {
    ServeOptions options;
    bool is_loopback; /* only this machine can reach the port */
    Arena arena;
    Log log;
    Metrics metrics;
    KeyRing *keys;
    Audit *audit; /* NULL without --audit */
    IdentitySource *identities;
    const char *cert;
    const char *cert_key;
    TokenSecret token_secret;
    ClusterNode *node; /* NULL if the server is no node of a cluster */
    Store *store;
    Workers *writers; /* apply writes to partitions */
    Workers *loaders; /* the same, to partitions that a split or a merge fills */
    PartitionHost host;
    HistoryPool histories; /* of the catalogue's partitions, which it outlives */
    Catalog *catalog;
    Workers *workers; /* queries and lists */
    Workers *bodies;  /* large bodies */
    Workers *readers; /* single items that are not in memory */
    Workers *asked;   /* what pages of other nodes ask; no thread starts before one asks */
    ScriptPool *scripts;
    Api *api;
    HttpServer *http;
    SandboxState sandbox;
    TemporaryFolder temporary; /* of --temporary */
    uint64_t begun_us;
    const char *notify_socket; /* of the service manager; NULL if there is none */
} Server;

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static Status host_is_loopback(const char *host, bool *out, Error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *list = NULL;
    int failed = getaddrinfo(host, NULL, &hints, &list);
    if (failed != 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--host '%s' is not an address: %s",
                         host, gai_strerror(failed));
    *out = true;
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next)
        *out = *out && is_loopback(at->ai_addr);
    freeaddrinfo(list);
    return STATUS_OK;
}

static bool uses_development_key(const Server *server)
{
    KeyInfo infos[KEY_SLOT_COUNT];
    key_ring_list(server->keys, infos);
    for (size_t i = 0; i < ARRAY_COUNT(infos); i++) {
        if (infos[i].is_development_key)
            return true;
    }
    return false;
}

/* The well-known key is no secret: every client that reaches the port could do everything (I2). */
static Status check_exposure(Server *server, Error *err)
{
    const ServeOptions *options = &server->options;
    TRY(host_is_loopback(options->host, &server->is_loopback, err));
    if (server->is_loopback || options->allow_development_key || !uses_development_key(server))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "--host %s can be reached by others, and the key in use is the well-known "
                     "development key; make one (orrery key rotate primary --data %s) or "
                     "give one (--key-file), or say "
                     "--allow-development-key if that is what you want",
                     options->host, options->data);
}

/* Host names that clients may use: this machine's, with and without its domain, and those of the
 * options. */
static Slice own_names(Server *server)
{
    const ServeOptions *o = &server->options;
    char machine[HOST_NAME_MAX + 1] = "";
    (void)gethostname(machine, sizeof(machine) - 1); /* if it fails there is one name less */
    Slice name = slice_from_cstr(machine);
    Slice label = slice_first(name, slice_find(name, '.'));
    Slice endpoint = slice_from_cstr(o->public_endpoint);
    endpoint = slice_from(endpoint, slice_find(endpoint, '/') + 2); /* after "https://" */
    endpoint = browsers_host_name(slice_first(endpoint, slice_find(endpoint, '/')));
    return arena_format(&server->arena, "%s,%.*s,%.*s,%.*s,%s", o->host, SLICE_ARG(name),
                        SLICE_ARG(label), SLICE_ARG(endpoint), o->allow_host);
}

/* A web page could do harm through a host name of its own that resolves to this server. So host
 * names are checked on loopback, and wherever the key is no secret (I3). Elsewhere clients use
 * names that we cannot know, and a page has no key. Containers use names without a dot for each
 * other; no attacker can own one in the public DNS, but on loopback they are not needed. */
static BrowserRules browser_rules(Server *server)
{
    return (BrowserRules){
        .origins = slice_from_cstr(server->options.cors),
        .hosts = own_names(server),
        .checks_hosts = server->is_loopback || uses_development_key(server),
        .takes_short_names = !server->is_loopback,
    };
}

/* The keys of the options and those that are stored in the data folder, if it exists. */
static Status open_keys(Server *server, Error *err)
{
    const ServeOptions *o = &server->options;
    KeyRingOptions options = {
        .given =
            {
                .primary = o->key_is_given ? slice_from_cstr(o->key) : SLICE_EMPTY,
                .secondary = slice_from_cstr(o->secondary_key),
                .primary_read_only = slice_from_cstr(o->read_only_key),
                .secondary_read_only = slice_from_cstr(o->secondary_read_only_key),
            },
        .given_by =
            {
                [KEY_SLOT_PRIMARY] = o->key_option,
                [KEY_SLOT_SECONDARY] = "--secondary-key",
                [KEY_SLOT_PRIMARY_READ_ONLY] = "--read-only-key",
                [KEY_SLOT_SECONDARY_READ_ONLY] = "--secondary-read-only-key",
            },
        .store = {.data = o->data, .seal_key_file = o->seal_key_file},
        .clock = server->log.clock,
    };
    key_ring_close(TAKE(server->keys));
    return key_ring_open(&options, &server->keys, err);
}

static Status open_identities(Server *server, Error *err)
{
    const ServeOptions *o = &server->options;
    IdentitySourceOptions options = {
        .rules =
            {
                .issuer = slice_from_cstr(o->identity_issuer),
                .audiences = slice_from_cstr(o->identity_audience),
                .readers = slice_from_cstr(o->identity_readers),
                .contributors = slice_from_cstr(o->identity_contributors),
            },
        .load = identity_fetch,
        .ctx = UNCONST(char, o->identity_keys), /* which is only read */
        .log = &server->log,
        .reload_ms_min = IDENTITY_RELOAD_MS,
    };
    return identity_source_open(&options, &server->identities, err);
}

static Status make_folder(const char *path, Error *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return STATUS_OK;
    return error_set_errno(err, errno, "cannot make the data folder '%s'", path);
}

/* The HTTP server reports what is wrong with the user's own files. */
static Status ensure_certificate(Server *server, Error *err)
{
    if (server->options.cert != NULL)
        return STATUS_OK;
    return cert_ensure(server->cert, server->cert_key, err);
}

static Status open_certificate(Server *server, Error *err)
{
    const ServeOptions *o = &server->options;
    server->cert =
        o->cert != NULL ? o->cert : arena_format(&server->arena, "%s/tls-cert.pem", o->data).ptr;
    server->cert_key = o->cert_key != NULL
                           ? o->cert_key
                           : arena_format(&server->arena, "%s/tls-key.pem", o->data).ptr;
    return ensure_certificate(server, err);
}

/* Continuation tokens of a cluster are good on every node. */
static Status open_token_secret(Server *server, Error *err)
{
    if (server->node == NULL)
        return token_secret_open(&server->arena, server->options.data, &server->token_secret, err);
    cluster_node_token_secret(server->node, &server->token_secret, sizeof(server->token_secret));
    return STATUS_OK;
}

static Status open_audit(Server *server, Error *err)
{
    if (server->options.audit == NULL)
        return STATUS_OK;
    AuditOptions options = {
        .path = server->options.audit,
        .clock = server->log.clock,
        .log = &server->log,
        .metrics = &server->metrics.shards[server->options.threads + 1],
        .queue_bytes_max = AUDIT_QUEUE_BYTES_MAX,
    };
    return audit_open(&options, &server->audit, err);
}

static Status open_node(Server *server, Error *err)
{
    ClusterNodeOptions options = {
        .settings = &server->options.cluster,
        .data = server->options.data,
        .region = server->options.region,
        .clock = server->log.clock,
        .log = &server->log,
        .metrics = &server->metrics.shards[server->options.threads + 2],
    };
    if (options.settings->engine == NULL)
        return cluster_node_check_absent(options.data, err);
    return cluster_node_open(&options, &server->node, err);
}

static Status open_store(Server *server, Error *err)
{
    const ServeOptions *o = &server->options;
    RocksdbStoreOptions options = {
        .path = arena_format(&server->arena, "%s/store", o->data).ptr,
        .durability = o->durability,
        .cache_bytes = o->memory.cache / CACHE_BLOCKS_SHARE,
        .log = &server->log,
        .merge = &PARTITION_MERGE,
        .accepts_lost_writes = o->accept_lost_writes,
    };
    return server->node == NULL
               ? rocksdb_store_open(&options, &server->store, err)
               : cluster_node_open_store(server->node, &options, &server->store, err);
}

/* What clients see of the time: of items, of queries, of dates. The log and the audit log have the
 * machine's, as other programs' have. */
static const Clock *clock_of(const Server *server)
{
    return server->node == NULL ? server->log.clock : cluster_node_clock(server->node);
}

static Status open_catalog(Server *server, Error *err)
{
    server->writers = workers_open("orrery-writer", server->options.threads, UINT32_MAX);
    server->loaders = workers_open("orrery-loader", server->options.threads, UINT32_MAX);
    workers_set_background(server->loaders);
    uint64_t cache_bytes = server->options.memory.cache;
    HashKey key;
    random_secret(&key, sizeof(key));
    server->host = (PartitionHost){
        .store = server->store,
        .writers = server->writers,
        .loaders = server->loaders,
        .clock = clock_of(server),
        .log = &server->log,
        .cache = item_cache_open(cache_bytes - cache_bytes / CACHE_BLOCKS_SHARE, key),
        .logical_bytes_max = server->options.logical_partition_bytes_max,
    };
    CatalogOptions options = {
        .host = &server->host,
        .clock = clock_of(server),
        .log = &server->log,
        .metrics = &server->metrics.shards[server->options.threads],
        .throughput = &server->options.throughput,
        .moves = &server->options.moves,
        .placement = server->node == NULL ? NULL : cluster_node_placement(server->node),
    };
    return catalog_open(&options, &server->catalog, err);
}

static void open_api(Server *server)
{
    const MemoryBudget *memory = &server->options.memory;
    /* Besides those that run there are pages of queries that wait for a turn. */
    server->workers = workers_open_sharing("orrery-worker", server->options.threads,
                                           server->options.threads + memory->small_pages,
                                           WORKER_JOBS_MAX, server->log.clock);
    workers_set_background(server->workers);
    /* Half of the processors, so that queries and single items find one free. */
    uint32_t half = server->options.threads > 1 ? server->options.threads / 2 : 1;
    server->bodies = workers_open("orrery-body", half, WORKER_JOBS_MAX);
    workers_set_background(server->bodies);
    server->readers = workers_open("orrery-reader", server->options.threads, WORKER_JOBS_MAX);
    server->asked = workers_open("orrery-asked", server->options.threads, WORKER_JOBS_MAX);
    workers_set_background(server->asked);
    ScriptPoolOptions scripts = {
        .clock = server->log.clock,
        .workers_max = memory->script_jobs,
        .functions_max = memory->script_functions,
        .memory_bytes_max = memory->script_process,
    };
    server->scripts = script_pool_open(&scripts);
    ApiOptions options = {
        .catalog = server->catalog,
        .store = server->store,
        .keys = server->keys,
        .identities = server->identities,
        .workers = server->workers,
        .bodies = server->bodies,
        .readers = server->readers,
        .node_workers = server->asked,
        .scripts = server->scripts,
        .clock = clock_of(server),
        .log = &server->log,
        .metrics = &server->metrics,
        .audit = server->audit,
        .browsers = browser_rules(server),
        .account = slice_from_cstr(server->options.account),
        .region = slice_from_cstr(server->options.region),
        .public_endpoint = slice_from_cstr(server->options.public_endpoint),
        .token_secret = server->token_secret,
        .query_bytes_max = memory->large_page,
        .large_queries_max = memory->large_pages,
        .charges = server->options.charges,
        .consistency = server->options.consistency,
        .histories = server->options.no_statistics ? NULL : &server->histories,
        .no_query_texts = server->options.no_query_texts,
        .data_folder = server->options.data,
        .data_files = DATA_FILES_SENT,
        .loops = server->options.threads,
        .is_loopback = server->is_loopback,
        .failures_max = server->options.address_failures_max,
        .limits_local_failures = server->options.limits_local_failures,
        .trust_forwarded = server->options.trust_forwarded,
        .is_serverless = server->options.throughput.is_serverless,
        .merge = server->options.merge,
        .has_extensions = server->options.extensions,
        .hides_previous_images = server->options.no_previous_images,
        .has_chaos = server->options.enable_chaos,
        .cluster = server->node == NULL ? NULL : cluster_node_api(server->node),
    };
    history_pool_init(&server->histories, HISTORIES_MAX);
    server->api = api_open(&options);
}

static Status open_http(Server *server, Error *err)
{
    const ServeOptions *o = &server->options;
    HttpOptions options = {
        .host = o->host,
        .port = o->port,
        .threads = o->threads,
        .cert_file = server->cert,
        .key_file = server->cert_key,
        .client_ca_file = o->client_ca,
        .requires_tls = o->requires_tls,
        .header_bytes_max = HEADER_BYTES_MAX,
        .body_bytes_max = HTTP_BODY_BYTES_MAX,
        .connections_max = o->connections_max,
        .address_connections_max = o->address_connections_max,
        .limits_local_clients = o->limits_local_connections,
        .idle_ms = o->idle_timeout_s * 1000,
        .request_ms = o->request_timeout_s * 1000,
        .pace_ms = PACE_MS,
        .memory_bytes_max = o->memory.connections,
        .clock = clock_of(server),
        .log = &server->log,
        .metrics = &server->metrics,
        .handler = api_handler(server->api),
    };
    if (server->node != NULL)
        cluster_node_links(server->node, &options);
    return http_server_open(&options, &server->http, err);
}

/* The folder of the audit log, in which a new file is made after a rotation; not if that is the
 * root of all. NULL if there is none. */
static const char *audit_folder(Server *server)
{
    const char *path = server->options.audit;
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    if (path == NULL || slash == path)
        return NULL;
    return slash == NULL ? "."
                         : arena_format(&server->arena, "%.*s", (int)(slash - path), path).ptr;
}

/* The process can write nothing but what is named here from now on. A part that writes elsewhere
 * adds its folder. */
static void enter_sandbox(Server *server)
{
    const ServeOptions *o = &server->options;
    if (o->no_sandbox)
        return;
    const char *const writable[] = {
        o->data,
        arena_format(&server->arena, "%s/store", o->data)
            .ptr,              /* it may be a link to another disk */
        server->options.audit, /* it may be a link, too; the last two may be NULL */
        audit_folder(server),
        NULL,
    };
    server->sandbox = server_sandbox_enter(writable);
}

/* jemalloc's; absent with sanitizers, which have a heap of their own. */
extern int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
    __attribute__((weak));

/* The heap's background thread returns freed memory to the system even while the server is idle. It
 * is started here, since a thread from before the sandbox would not be in it. */
static void start_heap_thread(void)
{
    bool is_on = true;
    if (mallctl != NULL)
        (void)mallctl("background_thread", NULL, NULL, &is_on, sizeof(is_on));
}

static void log_sandbox(const Server *server)
{
    const SandboxState *state = &server->sandbox;
    if (server->options.no_sandbox) {
        LOG_INFO(&server->log, "server.sandbox", "off (--no-sandbox)");
        return;
    }
    LOG_INFO(&server->log, "server.sandbox",
             "no_new_privs=%s landlock=%s landlock_version=%d seccomp=%s threads_before=%d%s%s",
             state->no_new_privs ? "on" : "off", state->landlock > 0 ? "on" : "off",
             state->landlock, state->seccomp ? "on" : "off", state->threads_before,
             state->landlock_error != 0 ? " landlock_error=" : "",
             state->landlock_error != 0 ? strerror(state->landlock_error) : "");
}

/* Opens everything, or as much as succeeds; server_close closes what is open. */
static Status server_open(Server *server, Error *err)
{
    ASSERT(server->options.threads > 0);
    /* One shard per loop, one each for the threads of the catalogue, the audit log and the cluster.
     */
    metrics_init(&server->metrics, server->options.threads + 3);
    TRY(open_keys(server, err));
    TRY(check_exposure(server, err)); /* before anything is made */
    server->options.connections_max =
        file_limit_raise(server->options.connections_max, &server->log);
    TRY(make_folder(server->options.data, err));
    enter_sandbox(server); /* before the first thread */
    start_heap_thread();
    TRY(open_audit(server, err));
    TRY(open_node(server, err));
    TRY(open_store(server, err)); /* also fails if another process has the folder */
    /* From here on nobody else changes the keys in the folder. Until now `orrery key` could. */
    TRY(open_keys(server, err));
    TRY(check_exposure(server, err));
    TRY(open_identities(server, err));
    TRY(open_certificate(server, err));
    TRY(open_token_secret(server, err));
    TRY(open_catalog(server, err));
    open_api(server);
    api_set_starting(server->api, server->options.seed != NULL);
    TRY(open_http(server, err));
    return server->node == NULL ? STATUS_OK
                                : cluster_node_start(server->node, server->catalog, err);
}

static void server_close(Server *server)
{
    catalog_stop_restores(server->catalog);
    cluster_node_leave(server->node, server->http, LEAVE_MS);
    http_server_close(server->http, DRAIN_MS);
    cluster_node_end(server->node); /* a member until then, so that what arrived is served */
    script_pool_close(server->scripts);
    workers_close(server->workers);
    workers_close(server->bodies);
    workers_close(server->readers);
    workers_close(server->asked);
    api_close(server->api);
    audit_close(server->audit);
    /* Background work of partitions ends first. Then the catalogue releases the partitions, so that
     * the store's last completions start nothing new. */
    atomic_store(&server->host.is_closing, true);
    catalog_close(server->catalog);
    partition_host_stop(&server->host);
    workers_close(server->writers);
    workers_close(server->loaders);
    item_cache_close(server->host.cache);
    cluster_node_stop(server->node);
    store_close(server->store);
    cluster_node_close(server->node);
    identity_source_close(server->identities);
    key_ring_close(server->keys);
    metrics_done(&server->metrics);
    arena_done(&server->arena);
}

/* A host as a URL has it. */
static const char *url_host(Arena *arena, const char *host)
{
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        return "localhost";
    return strchr(host, ':') == NULL ? host : arena_format(arena, "[%s]", host).ptr;
}

static void print_banner(Server *server)
{
    const ServeOptions *o = &server->options;
    const char *host = url_host(&server->arena, o->host);
    unsigned port = http_server_port(server->http);
    char folder[PATH_MAX];
    const char *data = realpath(o->data, folder) == NULL ? o->data : folder;
    KeyInfo keys[KEY_SLOT_COUNT];
    key_ring_list(server->keys, keys);
    KeySource source = keys[KEY_SLOT_PRIMARY].source;
    bool is_known = source == KEY_SOURCE_DEVELOPMENT;
    const char *key = is_known                      ? AUTH_DEVELOPMENT_KEY
                      : source == KEY_SOURCE_STORED ? "the stored one"
                                                    : "the one you gave";
    const char *scheme = o->requires_tls ? "https" : "http";
    Slice plain = o->requires_tls
                      ? SLICE_EMPTY
                      : arena_format(&server->arena, "http://%s:%u/   and   ", host, port);
    (void)printf("\nOrrery %s\n\n"
                 "  Endpoint     %.*shttps://%s:%u/\n"
                 "  Key          %s%s\n"
                 "  Data         %s (%s)\n"
                 "  Certificate  https://%s:%u/_explorer/emulator.pem\n\n"
                 "  const { CosmosClient } = require(\"@azure/cosmos\");\n"
                 "  const client = new CosmosClient({ endpoint: \"%s://%s:%u\",\n"
                 "    key: \"%s\" });\n\n"
                 "Press Ctrl-C to stop.\n\n",
                 ORRERY_VERSION, SLICE_ARG(plain), host, port, key,
                 is_known ? "\n               (the well-known development key)" : "", data,
                 o->durability == STORE_DURABILITY_SYNC ? "every answer is durable"
                                                        : "durability relaxed",
                 host, port, scheme, host, port, is_known ? key : "...");
    (void)fflush(stdout);
}

/* The audit log may have been moved away; its own thread opens it again and says so. */
static Status reload_audit(Server *server, Error *err UNUSED)
{
    if (server->audit != NULL)
        audit_reopen(server->audit);
    return STATUS_OK;
}

static Status reload_identities(Server *server, Error *err)
{
    return identity_source_reload(server->identities, err);
}

/* New handshakes use the files as they are now; connections go on with what they began with. A pair
 * that the server made by itself is made again if both files are gone. */
static Status reload_tls(Server *server, Error *err)
{
    TRY(ensure_certificate(server, err));
    return http_server_reload_tls(server->http, err);
}

/* What SIGHUP does, in this order. A part that cannot read its files again keeps what it has. */
static const struct {
    const char *part;
    Status (*reload)(Server *server, Error *err);
} RELOADS[] = {
    {"audit", reload_audit},
    {"identity-keys", reload_identities},
    {"tls", reload_tls},
};

static void reload(Server *server)
{
    for (size_t i = 0; i < ARRAY_COUNT(RELOADS); i++) {
        Error err;
        if (RELOADS[i].reload(server, &err) == STATUS_OK)
            LOG_INFO(&server->log, "server.reloaded", "part=%s", RELOADS[i].part);
        else
            LOG_ERROR(&server->log, "server.reload_refused",
                      "part=%s reason=\"%s\" (the old settings stay)", RELOADS[i].part,
                      err.message);
    }
}

/* Reads what has come on standard input, which nobody needs. True at its end. */
static bool is_input_ended(void)
{
    char bytes[4096];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
    return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
}

/* Waits for the signal to stop, and reloads at each SIGHUP until then. Signals that come while it
 * reloads are one signal. With --stop-at-eof the end of standard input is like SIGTERM. */
static Status wait_for_stop(Server *server, const sigset_t *signals, int *number, Error *err)
{
    int fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot wait for signals");
    struct pollfd polls[] = {
        {.fd = fd, .events = POLLIN},
        {.fd = server->options.stop_at_eof ? STDIN_FILENO : -1, .events = POLLIN},
    };
    for (*number = 0; *number == 0;) {
        struct signalfd_siginfo info;
        if (poll(polls, ARRAY_COUNT(polls), -1) < 0)
            continue;
        bool is_signal = read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
        if (is_signal && info.ssi_signo == SIGHUP)
            reload(server);
        else if (is_signal)
            *number = (int)info.ssi_signo;
        else if (polls[1].revents != 0 && is_input_ended())
            *number = SIGTERM;
    }
    (void)close(fd);
    return STATUS_OK;
}

/* Applies the seed file; the server answers requests meanwhile, but is not ready. */
static Status apply_seed(Server *server, const SeedFile *file, bool *is_stopped, Error *err)
{
    const ServeOptions *o = &server->options;
    ServeSeedOptions options = {
        .file = file,
        .endpoint = arena_format(&server->arena, "%s://%s:%u", o->requires_tls ? "https" : "http",
                                 url_host(&server->arena, o->host),
                                 (unsigned)http_server_port(server->http))
                        .ptr,
        .key = o->key_is_given ? o->key : NULL,
        .stored = {.data = o->data, .seal_key_file = o->seal_key_file},
        .log = &server->log,
        .stops_at_eof = o->stop_at_eof,
    };
    TRY(serve_seed(&options, is_stopped, err));
    api_set_starting(server->api, false);
    return STATUS_OK;
}

static Status run(Server *server, const sigset_t *signals, Error *err)
{
    SeedFile seed;
    bool is_stopped = false;
    if (server->options.seed != NULL)
        TRY(seed_file_open(&server->arena, server->options.seed, &seed, err));
    TRY(server_open(server, err));
    if (server->options.seed != NULL)
        TRY(apply_seed(server, &seed, &is_stopped, err));
    if (is_stopped)
        return STATUS_OK;
    print_banner(server);
    cluster_node_print(server->node, stdout);
    log_sandbox(server);
    LOG_INFO(&server->log, "server.ready", "port=%u threads=%u memory_mb=%llu took_ms=%.1f",
             http_server_port(server->http), server->options.threads,
             (unsigned long long)(server->options.memory.total >> 20),
             (double)(clock_monotonic_us(server->log.clock) - server->begun_us) / 1000);
    (void)service_notify(server->notify_socket, "READY=1"); /* there may be no service manager */
    int number = 0;
    Status status = wait_for_stop(server, signals, &number, err);
    (void)service_notify(server->notify_socket, "STOPPING=1");
    if (status != STATUS_OK)
        return status;
    LOG_INFO(&server->log, "server.stopping", "signal=%d", number);
    return STATUS_OK;
}

const Command SERVE_COMMAND = {
    .name = "serve",
    .summary = "run the server",
    .usage = "serve [options]",
    .about = "Serves the REST protocol of Azure Cosmos DB for NoSQL on one port, HTTP and HTTPS.",
    .options = &SERVE_OPTIONS,
    .notes =
        "Each option can also be set in the environment (ORRERY_KEY_FILE for --key-file) or in "
        "a configuration file (key-file = secret.txt); the command line wins, then the "
        "environment.\n\n"
        "SIGTERM and SIGINT stop the server, SIGHUP makes it read certificates and key sets "
        "again and open its audit log again. The exit code is 0 if it stopped as told, 1 if it "
        "could not start, and 2 if it was called in a wrong way.",
    .examples = "orrery serve\n"
                "orrery serve --data /var/lib/orrery --port 9000 --cache 2G\n"
                "orrery serve --host 0.0.0.0 --key-file /etc/orrery/key\n",
    .main = serve_main,
};

int serve_main(int argc, char *const *argv, char *const *environment)
{
    Server server = {.log = {.fd = STDERR_FILENO, .level = LOG_LEVEL_INFO, .clock = clock_real()}};
    server.begun_us = clock_monotonic_us(server.log.clock);
    server.notify_socket = service_notify_socket(environment);
    arena_init(&server.arena, 4096);
    Error err;
    bool help = false;
    Status parsed =
        options_parse(&server.arena, argc, argv, environment, &server.options, &help, &err);
    options_hide(argc, argv, environment);
    if (parsed != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        arena_done(&server.arena);
        return EXIT_USAGE;
    }
    if (help) {
        command_print_help(&SERVE_COMMAND, stdout);
        arena_done(&server.arena);
        return EXIT_SUCCESS;
    }
    server.log.level = server.options.log_level;

    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a failed write, not the end */

    Status status = STATUS_OK;
    if (server.options.stop_at_eof &&
        (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY) /* see keep_standard_files */
        status = error_set(&err, STATUS_BAD_REQUEST, SUB_NONE,
                           "--stop-at-eof needs a standard input, which is closed");
    if (server.options.temporary && status == STATUS_OK)
        status = temporary_folder_open(&server.arena, &server.temporary, &err);
    if (server.options.temporary && status == STATUS_OK)
        server.options.data = server.temporary.path;
    if (status == STATUS_OK)
        status = run(&server, &signals, &err);
    if (status != STATUS_OK)
        (void)fprintf(stderr, "orrery: %s\n", err.message);
    Log log = server.log;
    TemporaryFolder temporary = server.temporary;
    server_close(&server);
    temporary_folder_close(&temporary);
    if (status == STATUS_OK)
        LOG_INFO(&log, "server.stopped", "clean=true");
    return status == STATUS_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
