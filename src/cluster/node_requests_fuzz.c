/* node_requests_fuzz.c - whatever another node asks gets an answer of a known kind, and whatever it
 * answers is read or refused. */
#include "base/mem.h"
#include "cluster/cluster_int.h"
#include "journal/memory/memory_journal.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A store with a copy of one space, which cannot be read. */
static ReplicaPlace place(void *ctx, StoreSpace space)
{
    (void)ctx;
    return (ReplicaPlace){.space = space, .role = space == 5 ? SPACE_FOLLOWED : SPACE_ABSENT};
}

static size_t places(void *ctx, ReplicaPlace *out, size_t max)
{
    if (max > 0)
        *out = place(ctx, 5);
    return 1;
}

static void follow(void *ctx, StoreSpace space)
{
    (void)ctx;
    (void)space;
}

static void poke(void *ctx)
{
    (void)ctx;
}

static Status source_open(void *ctx, StoreSpace space, SeedSource **out, Error *err)
{
    (void)ctx;
    (void)out;
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "no copy of %llu", (unsigned long long)space);
}

static void note_usage(void *ctx, SpaceUsage *said, size_t count, uint64_t age_us)
{
    (void)ctx;
    (void)said;
    (void)age_us;
    ASSERT(count == 0); /* nobody owns anything */
}

typedef struct Fixture {
    char folder[32];
    MemoryJournalEngine *engine;
    Journal *journal;
    ClusterFolder *cluster_folder;
    Cluster *cluster;
    Log log;
} Fixture;

static void open_fixture(Fixture *f)
{
    static const uint8_t secret[JOURNAL_SECRET_BYTES] = {1};
    memcpy(f->folder, "/tmp/orrery_fuzz_XXXXXX", 24);
    char *made = mkdtemp(f->folder);
    ASSERT(made != NULL);
    f->engine = memory_journal_engine_new(1);
    memory_journal_open(f->engine, secret, NULL, &f->journal);
    f->log = (Log){.fd = 2, .level = LOG_LEVEL_ERROR, .clock = clock_real()};
    ClusterOptions options = {.journal = f->journal,
                              .node = "n0",
                              .join = {.address = SLICE("a:1"), .advertise = SLICE("http://a/")},
                              .clock = clock_real(),
                              .log = &f->log};
    Error err;
    Status status = cluster_folder_open(f->folder, SLICE("n0"), &f->cluster_folder, &err);
    ASSERT(status == STATUS_OK);
    status =
        cluster_folder_join(f->cluster_folder, f->journal, &options.join, &options.member, &err);
    ASSERT(status == STATUS_OK);
    options.folder = f->cluster_folder;
    status = cluster_create(&options, &f->cluster, &err);
    ASSERT(status == STATUS_OK);
    cluster_bind_store(f->cluster, (ClusterStore){.place = place,
                                                  .places = places,
                                                  .follow = follow,
                                                  .poke = poke,
                                                  .source_open = source_open});
    f->cluster->catalog.note_usage = note_usage;
}

/* One for all inputs, as a node lives long: what one request leaves, the next one meets. */
static Fixture *fixture(void)
{
    static Fixture one;
    if (one.cluster == NULL)
        open_fixture(&one);
    return &one;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Exactly the bytes, so that the sanitizer sees a read beyond them. */
    AUTO(mem_free) void *copy = mem_copy(data, size);
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 16);
    Slice path = slice_make(copy, size);
    if (slice_starts_with(path, SLICE(CLUSTER_PATH)))
        (void)node_request_waits(path);
    int status = node_answer(fixture()->cluster, path, &out);
    ASSERT(status == 200 || status == 400 || status == 404 || status == 421 || status == 429 ||
           status == 503);
    ASSERT(!buf_full(&out));
    (void)usage_note(fixture()->cluster, SLICE("n1"), path, 0);
    return 0;
}
