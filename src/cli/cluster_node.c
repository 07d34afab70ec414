/* cluster_node.c - see cluster_node.h. */
#include "cli/cluster_node.h"

#include "base/encoding.h"
#include "base/mem.h"
#include "cluster/cluster.h"
#include "http/node_link.h"
#include "journal/postgres/postgres_journal.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RETIRE_MS = 500, RETIRE_PAUSE_US = 5000 };

static_assert(CLUSTER_SECRET_BYTES == JOURNAL_SECRET_BYTES, "a secret is derived for the journal");
static_assert(CLUSTER_SECRET_BYTES == NODE_SECRET_BYTES, "and for links");

struct ClusterNode {
    /* Immutable after open. */
    ClusterSettings settings;
    uint8_t secret[CLUSTER_SECRET_BYTES];
    NodeSecret links;
    uint16_t peer_port;
    Arena arena;
    const char *engine; /* these two as they were at the start */
    const char *warning;
    ApiCluster api;

    ClusterFolder *folder;
    Journal *journal;
    NodeClient *client;
    Cluster *cluster;
    Replication *replication; /* of the store, which is closed before the node */
    HttpHandler inner;        /* of requests that are not the cluster's own */
};

/* ---- opening ---- */

Status cluster_node_check_absent(const char *data, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256);
    const char *path = arena_format(&arena, "%s/" CLUSTER_FOLDER_FILE, data).ptr;
    if (access(path, F_OK) != 0)
        return STATUS_OK;
    if (cluster_folder_is_adopted_partly(data))
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the data folder '%.200s' is adopted by a cluster only in part: repeat "
                         "`orrery cluster adopt`, or give that up for good by removing the "
                         "files " CLUSTER_FOLDER_FILE " and " CLUSTER_FOLDER_ADOPTING
                         " in it; all data is still in the folder",
                         data);
    return error_set(err, STATUS_CONFLICT, SUB_NONE,
                     "the data folder '%.200s' is that of a node of a cluster, whose newest writes "
                     "may be in the cluster's journal only; start it with --cluster and the "
                     "options that belong to it",
                     data);
}

static void set_port(struct addrinfo *info, uint16_t port)
{
    if (info->ai_family == AF_INET)
        ((struct sockaddr_in *)(void *)info->ai_addr)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)(void *)info->ai_addr)->sin6_port = htons(port);
}

static bool find_port(const struct addrinfo *info, uint16_t *out)
{
    struct sockaddr_storage storage = {0};
    socklen_t len = sizeof(storage);
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_found = fd >= 0 && bind(fd, info->ai_addr, info->ai_addrlen) == 0 &&
                    getsockname(fd, (struct sockaddr *)&storage, &len) == 0;
    if (fd >= 0)
        (void)close(fd); /* nothing was written */
    if (is_found)
        *out = ntohs(storage.ss_family == AF_INET
                         ? ((struct sockaddr_in *)(void *)&storage)->sin_port
                         : ((struct sockaddr_in6 *)(void *)&storage)->sin6_port);
    return is_found;
}

/* The others learn the port when the node joins, which is before its server can be opened. If
 * another process takes it in between, the server does not open, and says so. */
static Status choose_port(ClusterNode *node, Error *err)
{
    const char *host = node->settings.peer_host;
    node->peer_port = node->settings.peer_port;
    if (node->peer_port != 0)
        return STATUS_OK;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, NULL, &hints, &found);
    if (code != 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the other nodes are to reach this one at '%s', which cannot be resolved: "
                         "%s (--peer, or the host of --advertise)",
                         host, gai_strerror(code));
    set_port(found, 0);
    bool is_found = find_port(found, &node->peer_port);
    code = errno;
    freeaddrinfo(found);
    return is_found ? STATUS_OK
                    : error_set_errno(err, code,
                                      "cannot listen on '%s' for the other nodes (--peer, or the "
                                      "host of --advertise)",
                                      host);
}

static Status open_journal(ClusterNode *node, const ClusterNodeOptions *options, Error *err)
{
    PostgresJournalOptions journal = {
        .url = node->settings.engine,
        .allow_insecure = node->settings.allows_weak_engine,
        .format = JOURNAL_FORMAT,
        .rotate_bytes = cluster_settings_rotate_bytes(&node->settings),
        .log = options->log,
        .clock = options->clock,
    };
    cluster_secret_derive(node->secret, "journal", journal.secret);
    return postgres_journal_open(&journal, &node->journal, err);
}

static bool is_v6(const char *host)
{
    return strchr(host, ':') != NULL;
}

static Status join(ClusterNode *node, const ClusterNodeOptions *options, Error *err)
{
    const char *host = node->settings.peer_host;
    JournalJoin join = {
        .name = slice_from_cstr(node->settings.node),
        .address = arena_format(&node->arena, is_v6(host) ? "[%s]:%u" : "%s:%u", host,
                                (unsigned)node->peer_port),
        .advertise = slice_from_cstr(node->settings.advertise),
        .region = slice_from_cstr(options->region),
    };
    JournalMember member;
    TRY(cluster_folder_join(node->folder, node->journal, &join, &member, err));
    JournalUsage usage;
    TRY(journal_usage(node->journal, JOURNAL_LANE_ADMIN, &node->arena, &usage, err));
    node->engine = arena_cstr(&node->arena, usage.engine);
    node->warning = arena_cstr(&node->arena, usage.warning);
    ClusterOptions cluster = {
        .journal = node->journal,
        .folder = node->folder,
        .member = member,
        .join = join,
        .node = node->settings.node,
        .replicas = node->settings.replicas,
        .keep_ms = node->settings.keep_s * 1000,
        .journal_bytes_max = node->settings.journal_bytes,
        .clock = options->clock,
        .log = options->log,
        .metrics = options->metrics,
        .call = cluster_call_with_client,
        .call_ctx = node->client,
    };
    return cluster_new(&cluster, &node->cluster, err);
}

static Status open_all(ClusterNode *node, const ClusterNodeOptions *options, Error *err)
{
    TRY(cluster_secret_read(node->settings.secret_file, node->secret, err));
    cluster_secret_derive(node->secret, "links", node->links.bytes);
    TRY(cluster_folder_open(options->data, slice_from_cstr(node->settings.node), &node->folder,
                            err));
    TRY(choose_port(node, err));
    TRY(open_journal(node, options, err));
    node->client = node_client_open(&node->links);
    return join(node, options, err);
}

/* ---- what the api asks ---- */

static ApiOwner owner_of(ClusterOwner owner)
{
    ApiOwner out = {
        .is_known = owner.is_known,
        .is_local = owner.is_local,
        .epoch = owner.epoch,
    };
    static_assert(sizeof(out.address) == sizeof(owner.address), "addresses are as long");
    memcpy(out.address, owner.address, sizeof(out.address));
    static_assert(sizeof(out.node) == sizeof(owner.node), "names are as long");
    memcpy(out.node, owner.node, sizeof(out.node));
    return out;
}

static ApiOwner api_owner(void *ctx, StoreSpace space)
{
    return owner_of(cluster_owner(((ClusterNode *)ctx)->cluster, space));
}

static ApiOwner api_catalog_owner(void *ctx)
{
    return owner_of(cluster_catalog_owner(((ClusterNode *)ctx)->cluster));
}

static uint64_t api_life(void *ctx)
{
    return cluster_incarnation(((ClusterNode *)ctx)->cluster);
}

static bool api_lease_holds(void *ctx, uint64_t life)
{
    return cluster_lease_holds(((ClusterNode *)ctx)->cluster, life);
}

static void api_refresh(void *ctx)
{
    cluster_refresh_owners(((ClusterNode *)ctx)->cluster);
}

static void api_note_owner(void *ctx, StoreSpace space, uint64_t epoch, Slice node)
{
    cluster_note_owner(((ClusterNode *)ctx)->cluster, space, epoch, node);
}

static void api_call(void *ctx, NodeCall *call)
{
    node_client_call(((ClusterNode *)ctx)->client, call);
}

static Slice api_warning(void *ctx, Arena *arena)
{
    char engine[CLUSTER_WARNING_MAX];
    char clock[CLUSTER_WARNING_MAX];
    const ClusterNode *node = ctx;
    Slice of_engine = slice_make(engine, cluster_engine_warning(node->cluster, engine));
    Slice of_clock = slice_make(clock, cluster_clock_warning(node->cluster, clock));
    return arena_format(arena, "%.*s%s%.*s", SLICE_ARG(of_engine),
                        of_engine.len > 0 && of_clock.len > 0 ? "; " : "", SLICE_ARG(of_clock));
}

static Slice api_copies_warning(void *ctx, Arena *arena)
{
    char text[CLUSTER_WARNING_MAX];
    size_t len = cluster_copies_warning(((ClusterNode *)ctx)->cluster, text);
    return arena_copy(arena, slice_make(text, len));
}

static Slice api_events(void *ctx, Arena *arena)
{
    return cluster_events_json(((ClusterNode *)ctx)->cluster, arena);
}

static Status api_status(void *ctx, Arena *arena, Slice *json, Error *err)
{
    return cluster_status(((ClusterNode *)ctx)->cluster, arena, json, err);
}

static Status api_drain(void *ctx, Slice node, bool is_draining, Error *err)
{
    return cluster_drain(((ClusterNode *)ctx)->cluster, node, is_draining, err);
}

static Status api_remove(void *ctx, Slice node, Error *err)
{
    return cluster_remove(((ClusterNode *)ctx)->cluster, node, err);
}

static Status api_move(void *ctx, StoreSpace space, Slice node, Arena *arena, Slice *json,
                       Error *err)
{
    return cluster_move(((ClusterNode *)ctx)->cluster, space, node, arena, json, err);
}

static Status api_upgrade(void *ctx, Arena *arena, Slice *json, Error *err)
{
    return cluster_upgrade(((ClusterNode *)ctx)->cluster, arena, json, err);
}

static Status api_recover(void *ctx, StoreSpace space, Error *err)
{
    return cluster_recover(((ClusterNode *)ctx)->cluster, space, err);
}

static Status api_digest(void *ctx, StoreSpace space, Arena *arena, Slice *json, Error *err)
{
    JournalPlace at = {0};
    uint8_t digest[REPLICATION_DIGEST_BYTES];
    TRY(replication_digest(((ClusterNode *)ctx)->replication, space, &at, digest, err));
    if (at.seq == 0)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "This node has no copy of the space %" PRIu64 ".", (uint64_t)space);
    char text[2 * REPLICATION_DIGEST_BYTES];
    hex_encode(digest, sizeof(digest), text);
    *json = arena_format(arena, "{\"space\":%" PRIu64 ",\"place\":%" PRIu64 ",\"digest\":\"%.*s\"}",
                         (uint64_t)space, at.seq, (int)sizeof(text), text);
    return STATUS_OK;
}

Status cluster_node_open(const ClusterNodeOptions *options, ClusterNode **out, Error *err)
{
    ClusterNode *node = MEM_NEW(ClusterNode);
    node->settings = *options->settings;
    arena_init(&node->arena, 1024);
    node->api = (ApiCluster){
        .ctx = node,
        .node = node->settings.node,
        .owner = api_owner,
        .catalog_owner = api_catalog_owner,
        .life = api_life,
        .lease_holds = api_lease_holds,
        .refresh = api_refresh,
        .note_owner = api_note_owner,
        .call = api_call,
        .warning = api_warning,
        .copies_warning = api_copies_warning,
        .events = api_events,
        .status = api_status,
        .drain = api_drain,
        .remove = api_remove,
        .move = api_move,
        .upgrade = api_upgrade,
        .recover = api_recover,
        .digest = api_digest,
    };
    Status status = open_all(node, options, err);
    if (status == STATUS_OK) {
        *out = node;
        return STATUS_OK;
    }
    cluster_node_stop(node);
    cluster_node_close(node);
    return status;
}

void cluster_node_token_secret(const ClusterNode *node, void *out, size_t size)
{
    uint8_t derived[CLUSTER_SECRET_BYTES];
    ASSERT(size == sizeof(derived));
    cluster_secret_derive(node->secret, "tokens", derived);
    memcpy(out, derived, size);
}

Status cluster_node_open_store(ClusterNode *node, const RocksdbStoreOptions *local, Store **out,
                               Error *err)
{
    ReplicatedStoreOptions options = {
        .local = *local,
        .journal = node->journal,
        .hooks = cluster_hooks(node->cluster),
        .clock = local->log->clock,
    };
    bool is_leader = false;
    TRY(replicated_store_open(&options, out, &node->replication, err));
    return cluster_join_catalog(node->cluster, *out, node->replication, &is_leader, err);
}

const CatalogPlacement *cluster_node_placement(ClusterNode *node)
{
    return cluster_placement(node->cluster);
}

const ApiCluster *cluster_node_api(ClusterNode *node)
{
    return &node->api;
}

const Clock *cluster_node_clock(const ClusterNode *node)
{
    return cluster_clock(node->cluster);
}

Status cluster_node_start(ClusterNode *node, Catalog *catalog, Error *err)
{
    return cluster_start(node->cluster, catalog, err);
}

void cluster_node_print(const ClusterNode *node, FILE *to)
{
    if (node == NULL)
        return;
    (void)fprintf(to, "Node '%s' of a cluster whose journal is in %s.\n", node->settings.node,
                  node->engine);
    if (node->warning[0] != '\0')
        (void)fprintf(to, "WARNING: %s\n", node->warning);
    char clock[CLUSTER_WARNING_MAX];
    int clock_len = (int)cluster_clock_warning(node->cluster, clock);
    if (clock_len > 0)
        (void)fprintf(to, "WARNING: %.*s\n", clock_len, clock);
    char copies[CLUSTER_WARNING_MAX];
    int copies_len = (int)cluster_copies_warning(node->cluster, copies);
    if (copies_len > 0)
        (void)fprintf(to, "WARNING: %.*s\n", copies_len, copies);
    (void)fprintf(to, "\n");
    (void)fflush(to);
}

/* ---- requests of other nodes ---- */

static bool is_for_cluster(const HttpRequest *request)
{
    return request->is_node && slice_starts_with(request->path, SLICE(CLUSTER_PATH));
}

static bool on_admit(void *ctx, HttpRequest *request)
{
    const ClusterNode *node = ctx;
    return is_for_cluster(request) || node->inner.admit(node->inner.ctx, request);
}

static void on_request(void *ctx, HttpRequest *request)
{
    const ClusterNode *node = ctx;
    if (!is_for_cluster(request) || !cluster_handle(node->cluster, request))
        node->inner.handle(node->inner.ctx, request);
}

static size_t on_refusal(void *ctx, const HttpRefusal *refusal,
                         HttpHeader headers[HTTP_REFUSAL_HEADERS_MAX])
{
    const ClusterNode *node = ctx;
    return node->inner.refusal_headers(node->inner.ctx, refusal, headers);
}

static void *on_loop_open(void *ctx, HttpLoop *loop)
{
    const ClusterNode *node = ctx;
    return node->inner.loop_open(node->inner.ctx, loop);
}

static void on_loop_close(void *ctx, void *loop_user)
{
    const ClusterNode *node = ctx;
    node->inner.loop_close(node->inner.ctx, loop_user);
}

void cluster_node_links(ClusterNode *node, HttpOptions *options)
{
    node->inner = options->handler;
    options->node_secret = &node->links;
    options->node_host = node->settings.peer_host;
    options->node_port = node->peer_port;
    options->handler = (HttpHandler){
        .ctx = node,
        .admit = on_admit,
        .handle = on_request,
        .refusal_headers = on_refusal,
        .loop_open = on_loop_open,
        .loop_close = on_loop_close,
    };
}

/* ---- closing ---- */

/* Clients go to other nodes, if there are any. A busy one has used each of its connections once
 * more within RETIRE_MS, and was told that it was the last time. */
void cluster_node_leave(ClusterNode *node, HttpServer *http, uint32_t wait_ms)
{
    if (node == NULL || node->cluster == NULL || http == NULL)
        return;
    const Clock *clock = clock_real();
    const struct timespec pause = {.tv_nsec = RETIRE_PAUSE_US * 1000};
    uint64_t until_us = clock_monotonic_us(clock) + RETIRE_MS * 1000;
    http_server_retire(http);
    cluster_leave(node->cluster, wait_ms);
    while (http_server_connections(http) > 0 && clock_monotonic_us(clock) < until_us)
        (void)nanosleep(&pause, NULL); /* an interrupted wait is a short one */
}

void cluster_node_end(ClusterNode *node)
{
    if (node != NULL && node->cluster != NULL)
        cluster_end(node->cluster);
}

void cluster_node_stop(ClusterNode *node)
{
    if (node != NULL)
        cluster_stop(node->cluster);
}

void cluster_node_close(ClusterNode *node)
{
    if (node == NULL)
        return;
    cluster_close(node->cluster);
    node_client_close(node->client);
    journal_close(node->journal);
    cluster_folder_close(node->folder);
    arena_done(&node->arena);
    mem_free(node);
}
