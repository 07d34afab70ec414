/* partition_model_test.c - random work on both engines against a model that is too simple to be
 * wrong.
 *
 * The model is a table with a row per partition key and id. Keys and values are few, so that
 * everything meets everything: unique values, names, ETags, expiry, purges, changes of the default
 * TTL and of the indexing policy, the limit of logical partitions, failing commits and reopens, in
 * writes of one to four operations of every mode, one to four writes at a time. A failure prints
 * its seed; put it into the environment as ORRERY_TEST_SEED to see it again.
 */
#include "partition/partition_index_testing_int.h"

#include "base/random.h"
#include "base/test_seed.h"

enum { KEYS = 3, IDS = 7, VALUES = 5, STEPS = 3000, OPS_MAX = 4, WRITES_MAX = 4 };

typedef struct Row {
    bool is_stored; /* though it may have expired */
    uint64_t number;
    uint64_t lsn;
    uint32_t ts_s;
    int ttl_s;
    int u; /* of the unique key; 0 if it is missing */
    int n;
    bool is_unindexed;
} Row;

typedef struct Model {
    Row rows[KEYS][IDS];
    uint64_t lsn;
    uint64_t next; /* number, after those that are stored */
} Model;

/* One operation as the model understands it. */
typedef struct Op {
    ItemOp op;
    int key;
    int id;
    int new_id; /* of the document */
    int ttl_s;
    int u;
    int n;
    Slice if_match;
    IndexDirective directive;
} Op;

typedef struct Run {
    TestPartition *t;
    const char *policy;
    Random random;
    Model model;
    uint64_t next; /* number that is given out: one that is not stored in the end is lost */
    uint64_t seed;
} Run;

static int below(Run *run, int bound)
{
    return (int)random_below(&run->random, (uint64_t)bound);
}

static Slice row_etag(Arena *arena, const Row *row)
{
    Item item = {.number = row->number, .lsn = row->lsn, .ts_s = row->ts_s};
    char etag[ITEM_ETAG_LEN];
    item_etag(&item, etag);
    return arena_copy(arena, slice_make(etag, sizeof(etag)));
}

static bool lives(const Run *run, const Row *row)
{
    int64_t ttl_s = row->ttl_s != 0 ? row->ttl_s : run->t->schema->default_ttl_s;
    bool expires = run->t->schema->default_ttl_s != 0 && ttl_s > 0;
    return row->is_stored && !(expires && test_now_s(run->t) >= row->ts_s + ttl_s);
}

static const char *item_row(Arena *arena, int key, int id, int ttl_s, int u, int n)
{
    Slice unique = u == 0 ? SLICE("") : arena_format(arena, ",'u':'v%d'", u);
    Slice ttl = ttl_s == 0 ? SLICE("") : arena_format(arena, ",'ttl':%d", ttl_s);
    return arena_format(arena, "{'id':'i%d','pk':'p%d','n':%d%.*s%.*s}", id, key, n,
                        SLICE_ARG(unique), SLICE_ARG(ttl))
        .ptr;
}

/* Whether another living item has the value; one that does not live any more goes. */
static bool is_taken(const Run *run, Row rows[IDS], const Row *self, int u)
{
    for (int i = 0; i < IDS; i++) {
        Row *row = &rows[i];
        if (row == self || !row->is_stored || row->u != u)
            continue;
        if (lives(run, row))
            return true;
        row->is_stored = false;
    }
    return false;
}

/* What the row takes in the store; the table's ids are of one length. */
static int64_t row_bytes(Run *run, int key, const Row *row)
{
    Arena *arena = &run->t->arena;
    Json document = row_json(arena, item_row(arena, key, 0, row->ttl_s, row->u, row->n));
    return 1 + EPK_HASH_BYTES + 2 + ITEM_HEADER_BYTES + (int64_t)json_bytes(arena, document).len;
}

static SizeSum model_size(Run *run, const Model *m, int key)
{
    SizeSum sum = {0};
    for (int i = 0; i < IDS; i++) {
        const Row *row = &m->rows[key][i];
        sum.items += row->is_stored ? 1 : 0;
        sum.bytes += row->is_stored ? row_bytes(run, key, row) : 0;
    }
    return sum;
}

/* Whether the key's items would have too many bytes with 'row' as it is now; it had 'before'. */
static bool is_full(Run *run, const Model *m, int key, const Row *row, int64_t before)
{
    int64_t max = (int64_t)run->t->logical_bytes_max;
    return max > 0 && row_bytes(run, key, row) > before && model_size(run, m, key).bytes > max;
}

static Status model_put(Run *run, Model *m, const Op *op, Row *row, uint64_t lsn, bool is_new)
{
    uint64_t count = is_new ? run->next++ : 0;
    if (is_taken(run, m->rows[op->key], row, op->u))
        return STATUS_CONFLICT;
    int64_t before = is_new ? 0 : row_bytes(run, op->key, row);
    if (is_new) {
        *row = (Row){.is_stored = true, .number = item_number(TEST_PARTITION, count)};
        m->next = count + 1;
    }
    row->lsn = lsn;
    row->ts_s = test_now_s(run->t);
    row->ttl_s = op->ttl_s;
    row->u = op->u;
    row->n = op->n;
    if (op->directive != INDEX_DEFAULT)
        row->is_unindexed = op->directive == INDEX_EXCLUDE;
    else if (op->op != ITEM_PATCH)
        row->is_unindexed =
            run->t->schema->index != NULL && !index_policy_is_automatic(run->t->schema->index);
    return is_full(run, m, op->key, row, before) ? STATUS_FORBIDDEN : STATUS_OK;
}

static Status model_replace(Run *run, Model *m, const Op *op, Row *row, uint64_t lsn)
{
    Row *target = &m->rows[op->key][op->new_id];
    if (target != row) {
        if (lives(run, target))
            return STATUS_CONFLICT;
        *target = *row;
        row->is_stored = false;
    }
    return model_put(run, m, op, target, lsn, false);
}

static Status model_patch(Run *run, Model *m, const Op *op, Row *row, uint64_t lsn)
{
    Op merged = *op;
    merged.n = row->n + op->n;
    merged.u = op->u != 0 ? op->u : row->u;
    merged.ttl_s = row->ttl_s;
    return model_put(run, m, &merged, row, lsn, false);
}

static Status model_apply(Run *run, Model *m, const Op *op, uint64_t lsn)
{
    Row *row = &m->rows[op->key][op->id];
    bool found = lives(run, row);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256);
    bool matches =
        op->if_match.len == 0 || (found && slice_equal(op->if_match, row_etag(&arena, row)));
    if (op->op == ITEM_CREATE)
        return found ? STATUS_CONFLICT : model_put(run, m, op, row, lsn, true);
    if (op->op == ITEM_UPSERT && !found)
        return model_put(run, m, op, row, lsn, true);
    if (!found)
        return STATUS_NOT_FOUND;
    if (op->op == ITEM_READ)
        return STATUS_OK;
    if (!matches)
        return STATUS_PRECONDITION_FAILED;
    if (op->op == ITEM_UPSERT)
        return model_put(run, m, op, row, lsn, false);
    if (op->op == ITEM_REPLACE)
        return model_replace(run, m, op, row, lsn);
    if (op->op == ITEM_PATCH)
        return model_patch(run, m, op, row, lsn);
    row->is_stored = false;
    return STATUS_OK;
}

static void check_answer(const Run *run, const Model *m, const Op *op, const ItemWrite *w,
                         Status expected)
{
    if (w->status != expected)
        fail_msg("operation %d on p%d i%d: expected %s, found %s: %s", (int)op->op, op->key, op->id,
                 status_code(expected), status_code(w->status), w->error.message);
    if (expected != STATUS_OK || op->op == ITEM_DELETE)
        return;
    const Row *row = &m->rows[op->key][op->op == ITEM_REPLACE ? op->new_id : op->id];
    assert_int_equal(w->item.number, row->number);
    assert_int_equal(w->item.lsn, row->lsn);
    assert_int_equal(w->item.ts_s, row->ts_s);
    Arena *arena = &run->t->arena;
    int id = op->op == ITEM_REPLACE ? op->new_id : op->id;
    Json document = row_json(arena, item_row(arena, op->key, id, row->ttl_s, row->u, row->n));
    assert_true(json_equal(w->item.document, document));
}

/* What the write is to answer, and what the model is afterwards. */
static void expect_atomic(Run *run, const Op *ops, TestWrite *w)
{
    Model before = run->model;
    Model *m = &run->model;
    Status statuses[OPS_MAX];
    Model after[OPS_MAX];
    bool writes = false;
    for (size_t i = 0; i < w->write.count; i++) {
        statuses[i] = model_apply(run, m, &ops[i], before.lsn + 1);
        after[i] = *m;
        writes = writes || ops[i].op != ITEM_READ;
        if (statuses[i] == STATUS_OK)
            continue;
        run->model = before;
        for (size_t j = 0; j < w->write.count; j++)
            check_answer(run, m, &ops[j], &w->items[j],
                         j == i ? statuses[i] : STATUS_FAILED_DEPENDENCY);
        return;
    }
    for (size_t i = 0; i < w->write.count; i++)
        check_answer(run, &after[i], &ops[i], &w->items[i], statuses[i]);
    m->lsn += writes ? 1 : 0;
}

static void expect_each(Run *run, const Op *ops, TestWrite *w)
{
    bool failed = false;
    for (size_t i = 0; i < w->write.count; i++) {
        if (failed) {
            check_answer(run, &run->model, &ops[i], &w->items[i], STATUS_FAILED_DEPENDENCY);
            continue;
        }
        Model before = run->model;
        Status status = model_apply(run, &run->model, &ops[i], before.lsn + 1);
        if (status != STATUS_OK)
            run->model = before;
        else if (ops[i].op != ITEM_READ)
            run->model.lsn++;
        check_answer(run, &run->model, &ops[i], &w->items[i], status);
        failed = status != STATUS_OK && w->write.mode == WRITE_ORDERED;
    }
}

static Op random_op(Run *run)
{
    static const int ttls[] = {0, 0, 0, -1, 3, 8};
    Op op = {
        .op = (ItemOp)below(run, ITEM_READ + 1),
        .key = below(run, KEYS),
        .id = below(run, IDS),
        .ttl_s = ttls[below(run, ARRAY_COUNT(ttls))],
        .u = 1 + below(run, VALUES * 2),
        .n = below(run, 4) == 0 ? below(run, 100) : below(run, 3),
        .directive = below(run, 4) == 0 ? (IndexDirective)below(run, 3) : INDEX_DEFAULT,
    };
    op.new_id = op.id;
    if (op.op == ITEM_REPLACE && below(run, 3) == 0)
        op.new_id = below(run, IDS);
    if (op.op == ITEM_PATCH && below(run, 2) == 0)
        op.u = 0; /* stays */
    /* The ETag of the moment; a write before it in the same batch may make it stale. */
    bool has_etag = op.op != ITEM_CREATE && op.op != ITEM_READ && below(run, 3) == 0;
    if (has_etag)
        op.if_match =
            row_etag(&run->t->arena, &run->model.rows[op.key][below(run, 5) == 0 ? 0 : op.id]);
    return op;
}

static void add_random(TestWrite *w, const Op *op)
{
    char key[16];
    char id[16];
    (void)snprintf(key, sizeof(key), "p%d", op->key);
    (void)snprintf(id, sizeof(id), "i%d", op->id);
    ItemWrite *item = NULL;
    if (op->op == ITEM_PATCH) {
        Slice unique =
            op->u == 0 ? SLICE("")
                       : arena_format(&w->arena, ",{'op':'set','path':'/u','value':'v%d'}", op->u);
        Slice patch = arena_format(&w->arena, "[{'op':'incr','path':'/n','value':%d}%.*s]", op->n,
                                   SLICE_ARG(unique));
        item = add_patch(w, key, id, patch.ptr);
    } else if (op->op == ITEM_DELETE || op->op == ITEM_READ) {
        item = add_id(w, op->op, key, id);
    } else {
        item = add_document(w, op->op,
                            item_row(&w->arena, op->key, op->new_id, op->ttl_s, op->u, op->n));
        item->id = arena_copy(&w->arena, slice_from_cstr(id));
    }
    item->if_match = op->if_match;
    item->directive = op->directive;
}

static void do_writes(Run *run)
{
    TestWrite writes[WRITES_MAX];
    Op ops[WRITES_MAX][OPS_MAX];
    int count = below(run, 3) == 0 ? 1 + below(run, WRITES_MAX) : 1;
    for (int i = 0; i < count; i++) {
        test_write_init(&writes[i], run->t, (WriteMode)below(run, WRITE_CONTINUE + 1));
        int size = 1 + below(run, OPS_MAX);
        for (int j = 0; j < size; j++) {
            ops[i][j] = random_op(run);
            add_random(&writes[i], &ops[i][j]);
        }
    }
    for (int i = 0; i < count; i++)
        test_submit(run->t, &writes[i]);
    for (int i = 0; i < count; i++) {
        assert_status(test_wait(&writes[i]), STATUS_OK);
        if (writes[i].write.mode == WRITE_ATOMIC)
            expect_atomic(run, ops[i], &writes[i]);
        else
            expect_each(run, ops[i], &writes[i]);
        /* What else shared its group may be in it, too. */
        assert_true(writes[i].write.lsn >= run->model.lsn);
        if (i == count - 1)
            assert_int_equal(writes[i].write.lsn, run->model.lsn);
    }
    for (int i = 0; i < count; i++)
        test_write_done(&writes[i]);
}

/* The same on a disk that fails, once. */
static void do_failing_write(Run *run)
{
    if (run->t->engine != TEST_MEMORY)
        return;
    test_settle(run->t); /* the write is to fail, and no piece of a rebuild */
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, run->t, WRITE_ATOMIC);
    Op op = random_op(run);
    add_random(&w, &op);
    memory_store_fail_commits(run->t->store, 1, STATUS_IO);
    test_submit(run->t, &w);
    Status status = test_wait(&w);
    memory_store_fail_commits(run->t->store, 0, STATUS_IO);
    Model before = run->model;
    Status expected = model_apply(run, &run->model, &op, before.lsn + 1);
    run->model = before;
    bool commits = expected == STATUS_OK && op.op != ITEM_READ;
    assert_status(status, commits ? STATUS_IO : STATUS_OK);
    if (!commits)
        assert_status(w.items[0].status, expected);
    assert_int_equal(w.write.lsn, before.lsn);
}

/* Background work has taken what is not visible, and raised the LSN as it liked. */
static void after_maintenance(Run *run)
{
    test_settle(run->t);
    for (int key = 0; key < KEYS; key++) {
        for (int id = 0; id < IDS; id++) {
            Row *row = &run->model.rows[key][id];
            row->is_stored = lives(run, row);
        }
    }
    uint64_t lsn = partition_lsn(run->t->partition);
    assert_true(lsn >= run->model.lsn);
    run->model.lsn = lsn;
}

static void do_purge(Run *run)
{
    char key[16];
    int purged = below(run, KEYS);
    (void)snprintf(key, sizeof(key), "p%d", purged);
    assert_status(run_purge(run->t, key), STATUS_OK);
    for (int id = 0; id < IDS; id++)
        run->model.rows[purged][id].is_stored = false;
    run->model.lsn++;
    after_maintenance(run);
}

/* A rebuild begins at once, and does what else there is to be done in the background. */
static void set_definition(Run *run, int64_t ttl_s, const char *policy)
{
    TestPartition *t = run->t;
    test_settle(t);
    bool is_rebuilt = policy != run->policy || partition_index_progress(t->partition) < 100;
    run->policy = policy;
    test_set_schema(t, (TestSchema){.kind = PARTITION_HASH_V2,
                                    .paths = "/pk",
                                    .ttl_s = ttl_s,
                                    .unique = {"/u"},
                                    .index = policy});
    if (is_rebuilt && ttl_s != 0)
        after_maintenance(run);
}

static void do_default_ttl(Run *run)
{
    static const int64_t ttls[] = {0, -1, 4, 10, 30};
    set_definition(run, ttls[below(run, ARRAY_COUNT(ttls))], run->policy);
}

static void do_policy(Run *run)
{
    static const char *const policies[] = {NULL,        POLICY_ALL,     POLICY_N, POLICY_U,
                                           POLICY_NONE, POLICY_BY_HAND, ""};
    set_definition(run, run->t->schema->default_ttl_s, policies[below(run, ARRAY_COUNT(policies))]);
}

/* A stop in the middle; what was under way goes on, or waits for the next maintenance. */
static void do_reopen(Run *run)
{
    test_reopen(run->t);
    run->next = run->model.next;
    if (run->t->schema->default_ttl_s == 0 && below(run, 2) == 0)
        (void)partition_maintain(run->t->partition);
}

static void check_rows(Run *run)
{
    TestPartition *t = run->t;
    for (int key = 0; key < KEYS; key++) {
        for (int id = 0; id < IDS; id++) {
            const Row *row = &run->model.rows[key][id];
            char pk[16];
            char name[16];
            (void)snprintf(pk, sizeof(pk), "p%d", key);
            (void)snprintf(name, sizeof(name), "i%d", id);
            Item item;
            assert_int_equal(test_get(t, pk, name, &item), lives(run, row));
            if (!lives(run, row))
                continue;
            assert_int_equal(item.number, row->number);
            assert_int_equal(item.lsn, row->lsn);
            assert_int_equal(item.ts_s, row->ts_s);
            const char *text = item_row(&t->arena, key, id, row->ttl_s, row->u, row->n);
            assert_true(json_equal(item.document, row_json(&t->arena, text)));
        }
    }
}

/* The living items, by their numbers. */
static void check_scan(Run *run)
{
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    ScanOptions options = {.order = SCAN_BY_NUMBER};
    assert_ok(partition_scan_open(run->t->partition, run->t->schema, &options, &scan, err));
    uint64_t number = 0;
    for (;;) {
        uint64_t next = UINT64_MAX;
        for (int i = 0; i < KEYS * IDS; i++) {
            const Row *row = &run->model.rows[i / IDS][i % IDS];
            if (lives(run, row) && row->number > number && row->number < next)
                next = row->number;
        }
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        assert_int_equal(found, next != UINT64_MAX);
        if (!found)
            return;
        assert_int_equal(item.number, next);
        number = next;
    }
}

/* What the index says of the rows, in so far as it may be asked. */
static void check_index_reads(Run *run)
{
    TestPartition *t = run->t;
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    if (!view_has(view, "/id"))
        return;
    bool has_n = view_has(view, "/n");
    NumberSet all = view_set(t, view, "", NULL);
    NumberSet ones = view_set(t, view, "/n", "1");
    uint64_t living = 0;
    for (int i = 0; i < KEYS * IDS; i++) {
        const Row *row = &run->model.rows[i / IDS][i % IDS];
        if (!lives(run, row))
            continue;
        bool is_one = has_n && row->n == 1 && !row->is_unindexed;
        assert_int_equal(set_has(&all, row->number), !row->is_unindexed);
        if (has_n)
            assert_int_equal(set_has(&ones, row->number), is_one);
        living += row->is_unindexed ? 0 : 1;
        Item item;
        bool found = false;
        assert_ok(
            partition_view_fetch(view, row->number, SLICE_EMPTY, SLICE_EMPTY, &item, &found, err));
        assert_true(found);
        assert_int_equal(item.lsn, row->lsn);
    }
    NumberSet gone;
    bool complete = false;
    assert_ok(partition_view_list_gone(view, &t->arena, &gone, &complete, err));
    if (complete)
        assert_int_equal(all.count - set_and_count(&all, &gone), living);
}

static void check_sizes(Run *run)
{
    TestPartition *t = run->t;
    uint64_t logical = 0;
    for (int key = 0; key < KEYS; key++) {
        char pk[16];
        (void)snprintf(pk, sizeof(pk), "p%d", key);
        SizeSum expected = model_size(run, &run->model, key);
        LogicalSize size = test_size_of(t, pk);
        assert_int_equal(size.items, expected.items);
        assert_int_equal(size.bytes, expected.bytes);
        logical += expected.items > 0 ? 1 : 0;
    }
    LogicalCount count;
    assert_ok(logical_partitions_count(t->partition, t->schema, SLICE_EMPTY, SLICE_EMPTY, NULL,
                                       &count, err));
    assert_true(count.is_exact);
    assert_int_equal(count.count, logical);
}

static void check_all(Run *run)
{
    test_settle(run->t);
    check_rows(run);
    check_sizes(run);
    check_scan(run);
    check_index_reads(run);
    assert_int_equal(partition_lsn(run->t->partition), run->model.lsn);
    check_space(run->t);
}

static void do_limit(Run *run)
{
    static const uint64_t limits[] = {0, 200, 350, 351, 500};
    test_set_limit(run->t, limits[below(run, ARRAY_COUNT(limits))]);
}

static void step(Run *run)
{
    int what = below(run, 100);
    if (what < 70) {
        do_writes(run);
    } else if (what < 80) {
        test_advance_s(run->t, (uint64_t)below(run, 4));
    } else if (what < 84) {
        do_failing_write(run);
    } else if (what < 90) {
        test_maintain(run->t);
        if (run->t->schema->default_ttl_s != 0)
            after_maintenance(run);
    } else if (what < 93) {
        do_purge(run);
    } else if (what < 95) {
        do_default_ttl(run);
    } else if (what < 96) {
        do_policy(run);
    } else if (what < 97) {
        do_reopen(run);
    } else if (what < 98) {
        do_limit(run);
    } else {
        check_all(run);
    }
    arena_reset(&run->t->arena);
}

static void random_work_agrees_with_the_model(TestPartition *t)
{
    Run run = {.t = t, .seed = test_seed(), .model = {.lsn = 1, .next = 1}, .next = 1};
    random_init(&run.random, run.seed);
    int steps = t->engine == TEST_MEMORY ? STEPS : STEPS / 4; /* a disk takes its time */
    for (int i = 0; i < steps; i++)
        step(&run);
    check_all(&run);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(random_work_agrees_with_the_model, .ttl_s = 10, .unique = {"/u"}),
    };
    return run_on_every_engine("model", tests, ARRAY_COUNT(tests));
}
