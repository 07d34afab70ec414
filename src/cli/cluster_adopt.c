/* cluster_adopt.c - see cluster_adopt.h. */
#include "cli/cluster_adopt.h"

#include "base/array.h"
#include "base/mem.h"
#include "catalog/catalog.h"
#include "cli/cluster_settings.h"
#include "cluster/cluster_folder.h"
#include "journal/postgres/postgres_journal.h"
#include "partition/partition.h"
#include "store/replicated/replicated_store.h"

#include <unistd.h>

typedef struct Adoption {
    ClusterSettings settings;
    const char *store; /* the folder */
    FILE *to;
    Log log;
    Arena arena;
    ClusterFolder *folder;
    Journal *journal;
    StoreSpace *spaces;
    size_t space_count;
    size_t space_capacity;
} Adoption;

static void add_space(void *ctx, StoreSpace space)
{
    Adoption *a = ctx;
    ARRAY_GROW(a->spaces, a->space_count, a->space_capacity, 64);
    a->spaces[a->space_count++] = space;
}

static RocksdbStoreOptions store_options(const Adoption *a)
{
    return (RocksdbStoreOptions){.path = a->store, .log = &a->log, .merge = &PARTITION_MERGE};
}

/* Fails if a server has the folder. */
static Status read_spaces(Adoption *a, Error *err)
{
    AUTO(store_close) Store *store = NULL;
    RocksdbStoreOptions options = store_options(a);
    TRY(rocksdb_store_open(&options, &store, err));
    a->space_count = 0;
    return catalog_find_all_spaces(store, add_space, a, err);
}

static Status open_journal(Adoption *a, Error *err)
{
    uint8_t secret[CLUSTER_SECRET_BYTES];
    TRY(cluster_secret_read(a->settings.secret_file, secret, err));
    PostgresJournalOptions options = {
        .url = a->settings.engine,
        .allow_insecure = a->settings.allows_weak_engine,
        .format = JOURNAL_FORMAT,
        .log = &a->log,
        .clock = a->log.clock,
    };
    cluster_secret_derive(secret, "journal", options.secret);
    return postgres_journal_open(&options, &a->journal, err);
}

/* As the node that the folder becomes, which says where the others reach it when it starts. */
static Status join(Adoption *a, JournalMember *out, Error *err)
{
    JournalJoin join = {
        .name = slice_from_cstr(a->settings.node),
        .address = arena_format(&a->arena, "%s:0", a->settings.peer_host),
        .advertise = slice_from_cstr(a->settings.advertise),
    };
    return cluster_folder_join(a->folder, a->journal, &join, out, err);
}

static void show_progress(void *ctx, size_t done, size_t total)
{
    const Adoption *a = ctx;
    (void)fprintf(a->to, "%zu of %zu partitions\n", done, total);
    (void)fflush(a->to);
}

static Status print_engine(Adoption *a, Error *err)
{
    JournalUsage usage;
    TRY(journal_usage(a->journal, JOURNAL_LANE_ADMIN, &a->arena, &usage, err));
    (void)fprintf(a->to, "The journal is in %.*s.\n", SLICE_ARG(usage.engine));
    if (usage.warning.len > 0)
        (void)fprintf(a->to, "WARNING: %.*s\n", SLICE_ARG(usage.warning));
    (void)fflush(a->to);
    return STATUS_OK;
}

static Status adopt(Adoption *a, const char *data, Error *err)
{
    TRY(cluster_folder_adopt(data, slice_from_cstr(a->settings.node), &a->folder, err));
    TRY(read_spaces(a, err)); /* before anything is made: whether the folder can be read */
    TRY(open_journal(a, err));
    JournalMember member;
    TRY(join(a, &member, err));
    TRY(print_engine(a, err));
    TRY(read_spaces(a, err)); /* from the join on no server opens it */
    ReplicationAdoption options = {
        .local = store_options(a),
        .journal = a->journal,
        .node = slice_from_cstr(a->settings.node),
        .incarnation = member.incarnation,
        .spaces = a->spaces,
        .space_count = a->space_count,
        .progress = show_progress,
        .ctx = a,
    };
    TRY(replication_adopt(&options, err));
    return cluster_folder_end_adoption(a->folder, err);
}

static void print_done(const Adoption *a)
{
    (void)fprintf(
        a->to,
        "The data folder is that of node '%s' now. Start it with `orrery serve --cluster` "
        "and the same options; then add other nodes.\n",
        a->settings.node);
}

Status cluster_adopt(const ClusterAdoptOptions *options, Error *err)
{
    Adoption a = {
        .to = options->to,
        .log = {.fd = STDERR_FILENO, .level = LOG_LEVEL_WARN, .clock = clock_real()},
    };
    arena_init(&a.arena, 1024);
    a.store = arena_format(&a.arena, "%s/store", options->data).ptr;
    ClusterTexts texts = {
        .cluster = options->cluster,
        .secret = options->secret,
        .node = options->node,
        .advertise = options->advertise,
        .peer = "",
    };
    Status status = cluster_settings_read(&a.arena, &texts, &a.settings, err);
    a.settings.allows_weak_engine = options->allows_weak_engine;
    if (status == STATUS_OK)
        status = adopt(&a, options->data, err);
    if (status == STATUS_OK)
        print_done(&a);
    journal_close(a.journal);
    cluster_folder_close(a.folder);
    mem_free(a.spaces);
    arena_done(&a.arena);
    return status;
}
