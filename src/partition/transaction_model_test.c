/* transaction_model_test.c - random transactions, rolled back and committed, between ordinary
 * writes to the same keys, which wait, and to others, against a simple table. ORRERY_TEST_SEED=n
 * repeats a run. */
#include "base/random.h"
#include "base/test_seed.h"
#include "partition/transaction_testing_int.h"

enum { KEYS = 4, IDS = 6, STEPS = 2500, WAITING_MAX = 5, OPS_MAX = 12 };

typedef struct Row {
    bool is_stored; /* though it may have expired */
    int n;
    int ttl_s; /* 0 if it stays */
    uint32_t ts_s;
    Slice etag; /* empty if it is not known */
} Row;

typedef struct Op {
    ItemOp op;
    int id;
    int n;
    int ttl_s;
} Op;

/* A key, with its transaction, and the writes that wait for that. */
typedef struct KeyModel {
    Row rows[IDS];
    PartitionTransaction *transaction; /* NULL if there is none */
    Row own[IDS];                      /* as the transaction sees them */
    uint32_t begun_s;
    TestWrite ops; /* its operations */
    TestWrite waiting[WAITING_MAX];
    Op waiting_ops[WAITING_MAX];
    int waiting_count;
} KeyModel;

typedef struct Run {
    TestPartition *t;
    Random random;
    KeyModel keys[KEYS];
} Run;

static int below(Run *run, int bound)
{
    return (int)random_below(&run->random, (uint64_t)bound);
}

static bool lives(const Row *row, uint32_t now_s)
{
    return row->is_stored && (row->ttl_s == 0 || row->ts_s + (uint32_t)row->ttl_s > now_s);
}

static Op random_op(Run *run)
{
    static const int ttls[] = {0, 0, 2, 5};
    return (Op){
        .op = (ItemOp)below(run, ITEM_READ + 1),
        .id = below(run, IDS),
        .n = below(run, 1000),
        .ttl_s = ttls[below(run, ARRAY_COUNT(ttls))],
    };
}

static ItemWrite *add_model_op(TestWrite *w, int key, const Op *op)
{
    char pk[16];
    char id[16];
    char row[128];
    (void)snprintf(pk, sizeof(pk), "p%d", key);
    (void)snprintf(id, sizeof(id), "i%d", op->id);
    if (op->op == ITEM_READ || op->op == ITEM_DELETE)
        return add_id(w, op->op, pk, id);
    if (op->op == ITEM_PATCH)
        return add_patch(
            w, pk, id, arena_format(&w->arena, "[{'op':'set','path':'/n','value':%d}]", op->n).ptr);
    if (op->ttl_s == 0)
        (void)snprintf(row, sizeof(row), "{'id':'%s','pk':'%s','n':%d}", id, pk, op->n);
    else
        (void)snprintf(row, sizeof(row), "{'id':'%s','pk':'%s','n':%d,'ttl':%d}", id, pk, op->n,
                       op->ttl_s);
    return add_document(w, op->op, row);
}

/* What the operation is to answer, and what it makes of the rows. */
static Status apply_to_model(Row rows[IDS], const Op *op, uint32_t now_s)
{
    Row *row = &rows[op->id];
    bool is_there = lives(row, now_s);
    if (op->op == ITEM_CREATE ? is_there : !is_there && op->op != ITEM_UPSERT)
        return op->op == ITEM_CREATE ? STATUS_CONFLICT : STATUS_NOT_FOUND;
    if (op->op == ITEM_READ)
        return STATUS_OK;
    row->is_stored = op->op != ITEM_DELETE;
    row->n = op->n;
    row->ts_s = now_s;
    row->ttl_s = op->op == ITEM_PATCH ? row->ttl_s : op->ttl_s;
    row->etag = SLICE_EMPTY;
    return STATUS_OK;
}

static void check_item(const Row *row, const Item *item, Arena *arena)
{
    assert_int_equal(json_number(json_get(item->document, SLICE("n"))), row->n);
    assert_int_equal(item->ts_s, row->ts_s);
    if (row->etag.len > 0)
        assert_slice(etag_of(arena, item), row->etag);
}

static void check_rows(Run *run, int key)
{
    char pk[16];
    char id[16];
    const KeyModel *k = &run->keys[key];
    (void)snprintf(pk, sizeof(pk), "p%d", key);
    for (int i = 0; i < IDS; i++) {
        Item item;
        (void)snprintf(id, sizeof(id), "i%d", i);
        bool found = test_get(run->t, pk, id, &item);
        assert_int_equal(found, lives(&k->rows[i], test_now_s(run->t)));
        if (found)
            check_item(&k->rows[i], &item, &run->t->arena);
    }
}

static void check_view(Run *run, int key)
{
    KeyModel *k = &run->keys[key];
    char pk[16];
    (void)snprintf(pk, sizeof(pk), "p%d", key);
    Epk epk;
    make_epk(&run->t->arena, run->t->schema, pk, &epk);
    ScanOptions options = {.order = below(run, 2) == 0 ? SCAN_BY_EPK : SCAN_BY_NUMBER,
                           .epk_from = epk_slice(&epk)};
    AUTO(partition_view_close) PartitionView *view = NULL;
    assert_ok(transaction_view(k->transaction, STORE_READ_ANY, &view, err));
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    assert_ok(partition_view_scan(view, &options, &scan, err));
    int count = 0;
    uint64_t number = 0;
    for (;;) {
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        if (!found)
            break;
        if (!slice_equal(json_string(json_get(item.document, SLICE("pk"))), slice_from_cstr(pk)))
            continue; /* the range has no end */
        assert_true(options.order == SCAN_BY_EPK || item.number > number);
        number = item.number;
        int id = json_string(json_get(item.document, SLICE("id"))).ptr[1] - '0';
        assert_true(lives(&k->own[id], k->begun_s));
        check_item(&k->own[id], &item, &run->t->arena);
        count++;
    }
    for (int i = 0; i < IDS; i++)
        count -= lives(&k->own[i], k->begun_s) ? 1 : 0;
    assert_int_equal(count, 0);
}

static void begin(Run *run, int key)
{
    KeyModel *k = &run->keys[key];
    char pk[16];
    (void)snprintf(pk, sizeof(pk), "p%d", key);
    k->transaction = test_begin(run->t, pk);
    k->begun_s = test_now_s(run->t);
    memcpy(k->own, k->rows, sizeof(k->own));
    test_write_init(&k->ops, run->t, WRITE_ATOMIC);
}

static void operate(Run *run, int key)
{
    KeyModel *k = &run->keys[key];
    if (k->ops.write.count == OPS_MAX)
        return;
    Op op = random_op(run);
    ItemWrite *w = add_model_op(&k->ops, key, &op);
    if (below(run, 4) == 0 && op.op != ITEM_CREATE && op.op != ITEM_READ)
        w->if_match = k->own[op.id].etag; /* which must be right */
    Status expected = apply_to_model(k->own, &op, k->begun_s);
    transaction_apply(k->transaction, w, &k->ops.arena);
    assert_status(w->status, expected);
    if (expected == STATUS_OK && op.op == ITEM_READ)
        check_item(&k->own[op.id], &w->item, &run->t->arena);
    else if (expected == STATUS_OK && op.op != ITEM_DELETE)
        k->own[op.id].etag = etag_of(&run->t->arena, &w->item);
}

/* The writes that have waited come next, in their order. */
static void finish(Run *run, int key, bool commits)
{
    KeyModel *k = &run->keys[key];
    uint64_t before = partition_lsn(run->t->partition);
    uint64_t lsn = 0;
    bool writes = transaction_has_writes(k->transaction);
    if (commits) {
        assert_ok(transaction_commit(k->transaction, &lsn, err));
        assert_true(lsn == before + (writes ? 1 : 0));
        memcpy(k->rows, k->own, sizeof(k->rows));
    }
    transaction_end(TAKE(k->transaction));
    for (int i = 0; i < k->waiting_count; i++) {
        assert_status(test_wait(&k->waiting[i]), STATUS_OK);
        Status expected = apply_to_model(k->rows, &k->waiting_ops[i], test_now_s(run->t));
        assert_status(k->waiting[i].items[0].status, expected);
        test_write_done(&k->waiting[i]);
    }
    k->waiting_count = 0;
    test_write_done(&k->ops);
}

static void write_alone(Run *run, int key)
{
    KeyModel *k = &run->keys[key];
    if (k->waiting_count == WAITING_MAX)
        return;
    Op op = random_op(run);
    TestWrite *w = &k->waiting[k->waiting_count];
    test_write_init(w, run->t, WRITE_ATOMIC);
    (void)add_model_op(w, key, &op);
    test_submit(run->t, w);
    if (k->transaction != NULL) {
        k->waiting_ops[k->waiting_count++] = op;
        return;
    }
    assert_status(test_wait(w), STATUS_OK);
    assert_status(w->items[0].status, apply_to_model(k->rows, &op, test_now_s(run->t)));
    test_write_done(w);
}

static void end_all(Run *run)
{
    for (int i = 0; i < KEYS; i++) {
        if (run->keys[i].transaction != NULL)
            finish(run, i, below(run, 2) == 0);
    }
}

static void step(Run *run)
{
    int key = below(run, KEYS);
    KeyModel *k = &run->keys[key];
    int what = below(run, 100);
    if (what < 10 && k->transaction == NULL)
        begin(run, key);
    else if (what < 45 && k->transaction != NULL)
        operate(run, key);
    else if (what < 55 && k->transaction != NULL)
        finish(run, key, below(run, 3) > 0);
    else if (what < 65 && k->transaction != NULL)
        check_view(run, key);
    else if (what < 90)
        write_alone(run, key);
    else if (what < 93)
        test_advance_s(run->t, 1);
    else if (what < 96)
        test_maintain(run->t);
    else
        check_rows(run, key);
    if (below(run, 150) == 0) {
        end_all(run);
        test_maintain(run->t);
        check_space(run->t);
        if (below(run, 2) == 0)
            test_reopen(run->t);
    }
}

static void random_transactions_agree_with_the_model(TestPartition *t)
{
    Run *run = MEM_NEW(Run);
    run->t = t;
    random_init(&run->random, test_seed());
    int steps = t->engine == TEST_MEMORY ? STEPS : STEPS / 4;
    for (int i = 0; i < steps; i++)
        step(run);
    end_all(run);
    for (int i = 0; i < KEYS; i++)
        check_rows(run, i);
    check_space(t);
    mem_free(run);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(random_transactions_agree_with_the_model, .ttl_s = -1),
    };
    return run_on_every_engine("transaction_model", tests, ARRAY_COUNT(tests));
}
