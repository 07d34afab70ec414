/* store_model_test.c - random work on every engine against a model that is too simple to be wrong.
 *
 * The model is a sorted array. Keys are few and short, so that everything meets everything: own
 * writes, deletions, operands, savepoints, snapshots, bounds and turns of a cursor. A failure
 * prints its seed; put it into the environment as ORRERY_TEST_SEED to see it again.
 */
#include "store/store_testing_int.h"

#include "base/random.h"
#include "base/test_seed.h"

enum {
    ITEMS_MAX = 512,
    SAVEPOINTS_MAX = 4,
    SNAPSHOTS = 3,
    STEPS = 2500,
    SPACES = 3,
    MERGES_MAX = 1024,
    LETTERS = 5,
};

typedef struct Item {
    StoreSpace space;
    char key[4];    /* terminated */
    uint32_t value; /* of a merged key: a bit for each letter in the set */
} Item;

typedef struct Merge {
    StoreSpace space;
    char key[4];
    uint32_t letter;
    bool add;
} Merge;

typedef struct Model {
    size_t count;
    Item items[ITEMS_MAX];
} Model;

typedef struct Run {
    Random random;
    Store *store;
    Model committed;

    StoreTxn *txn;
    StoreSpace space;         /* to which it writes */
    Model working;            /* what the transaction sees */
    Merge merges[MERGES_MAX]; /* what it does not */
    size_t merge_count;
    Model saved[SAVEPOINTS_MAX];
    size_t saved_merges[SAVEPOINTS_MAX];
    size_t saved_count;

    StoreSnapshot *snapshots[SNAPSHOTS];
    Model snapshot_models[SNAPSHOTS];
    uint32_t next_value;
} Run;

static int item_compare(const Item *item, StoreSpace space, const char *key)
{
    if (item->space != space)
        return item->space < space ? -1 : 1;
    return strcmp(item->key, key);
}

/* The first item at or after the key. */
static size_t model_at(const Model *model, StoreSpace space, const char *key)
{
    size_t i = 0;
    while (i < model->count && item_compare(&model->items[i], space, key) < 0)
        i++;
    return i;
}

static const Item *model_find(const Model *model, StoreSpace space, const char *key)
{
    size_t i = model_at(model, space, key);
    bool there = i < model->count && item_compare(&model->items[i], space, key) == 0;
    return there ? &model->items[i] : NULL;
}

static void model_put(Model *model, StoreSpace space, const char *key, uint32_t value)
{
    size_t i = model_at(model, space, key);
    if (model_find(model, space, key) == NULL) {
        assert_true(model->count < ITEMS_MAX);
        memmove(&model->items[i + 1], &model->items[i], (model->count - i) * sizeof(Item));
        model->count++;
        model->items[i].space = space;
        (void)snprintf(model->items[i].key, sizeof(model->items[i].key), "%s", key);
    }
    model->items[i].value = value;
}

static void model_delete(Model *model, StoreSpace space, const char *key)
{
    size_t i = model_at(model, space, key);
    if (model_find(model, space, key) == NULL)
        return;
    model->count--;
    memmove(&model->items[i], &model->items[i + 1], (model->count - i) * sizeof(Item));
}

static void model_merge(Model *model, const Merge *merge)
{
    const Item *item = model_find(model, merge->space, merge->key);
    uint32_t bit = 1U << merge->letter;
    uint32_t value = item != NULL ? item->value : 0;
    value = merge->add ? value | bit : value & ~bit;
    if (value == 0)
        model_delete(model, merge->space, merge->key);
    else
        model_put(model, merge->space, merge->key, value);
}

static void random_key(Run *run, char key[4])
{
    size_t len = random_below(&run->random, 3); /* 0 to 2: 31 keys of five letters, "" included */
    for (size_t i = 0; i < len; i++)
        key[i] = (char)('a' + random_below(&run->random, 5));
    key[len] = '\0';
}

static void merged_key(Run *run, char key[4])
{
    key[0] = TEST_MERGE_KIND;
    key[1] = (char)('a' + random_below(&run->random, 3));
    key[2] = '\0';
}

/* Of either kind, for reads, seeks and bounds. */
static void any_key(Run *run, char key[4])
{
    if (random_below(&run->random, 3) == 0)
        merged_key(run, key);
    else
        random_key(run, key);
}

static StoreSpace random_space(Run *run)
{
    static const StoreSpace spaces[SPACES] = {6, 7, STORE_SPACE_MAX};
    return spaces[random_below(&run->random, SPACES)];
}

static void expect_item(Slice key, Slice value, const Item *expected)
{
    char text[16];
    assert_slice(key, slice_from_cstr(expected->key));
    int len = 0;
    if (expected->key[0] != TEST_MERGE_KIND)
        len = snprintf(text, sizeof(text), "%u", expected->value);
    for (uint32_t i = 0; expected->key[0] == TEST_MERGE_KIND && i < LETTERS; i++)
        if ((expected->value & 1U << i) != 0)
            text[len++] = (char)('a' + i);
    assert_slice(value, slice_make(text, (size_t)len));
}

/* Walks a cursor at random and the model beside it. The model's position is a gap: the index of the
 * item after it. On an item, the cursor is also "on" it, which is a gap on either side. */
static void walk_at_random(Run *run, StoreCursor *cursor, const Model *model, size_t from,
                           size_t to)
{
    enum { FRESH = -1 };
    ptrdiff_t low = FRESH, high = FRESH; /* prev gives items[low - 1], next gives items[high] */
    StoreSpace space = from < model->count ? model->items[from].space : 0;
    for (size_t i = 0; i < 24; i++) {
        uint64_t what = random_below(&run->random, 8);
        if (what == 0 && from < to) {
            char key[4];
            any_key(run, key);
            store_cursor_seek(cursor, slice_from_cstr(key));
            size_t at = model_at(model, space, key);
            at = at < from ? from : at > to ? to : at;
            low = high = (ptrdiff_t)at;
            continue;
        }
        bool up = what % 2 == 0;
        Slice key = {0}, value = {0};
        bool found = false;
        assert_ok(up ? store_cursor_next(cursor, &key, &value, &found, err)
                     : store_cursor_prev(cursor, &key, &value, &found, err));
        if (low == FRESH)
            low = high = (ptrdiff_t)(up ? from : to);
        bool expected = up ? high < (ptrdiff_t)to : low > (ptrdiff_t)from;
        assert_int_equal(found, expected);
        ptrdiff_t at = up ? high : low - 1;
        if (found)
            expect_item(key, value, &model->items[at]);
        low = found ? at : (ptrdiff_t)(up ? to : from);
        high = found ? at + 1 : low;
    }
    store_cursor_close(cursor);
}

static void open_and_walk(Run *run, const Model *model, StoreTxn *txn,
                          const StoreSnapshot *snapshot)
{
    StoreSpace space = random_space(run);
    char from[4], to[4];
    any_key(run, from);
    any_key(run, to);
    Slice first = slice_from_cstr(from), last = slice_from_cstr(to);
    size_t low = model_at(model, space, from);
    size_t high = model_at(model, space, to);
    if (last.len == 0) { /* the end of the space */
        high = low;
        while (high < model->count && model->items[high].space == space)
            high++;
    }
    if (high < low)
        high = low;
    StoreCursor *cursor = txn != NULL ? store_txn_cursor_open(txn, space, first, last)
                                      : store_cursor_open(run->store, snapshot, space, first, last);
    walk_at_random(run, cursor, model, low, high);
}

static void check_get(Run *run, const Model *model, StoreTxn *txn, const StoreSnapshot *snapshot)
{
    StoreSpace space = random_space(run);
    char key[4];
    any_key(run, key);
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    bool there = false;
    if (txn != NULL) {
        assert_ok(store_txn_get(txn, space, slice_from_cstr(key), &value, &there, err));
    } else {
        assert_ok(store_get(run->store, snapshot, space, slice_from_cstr(key), STORE_READ_ANY,
                            &value, &found, err));
        there = found == STORE_FOUND;
    }
    const Item *expected = model_find(model, space, key);
    assert_int_equal(there, expected != NULL);
    if (expected != NULL)
        expect_item(slice_from_cstr(key), value.data, expected);
}

static void change(Run *run)
{
    StoreSpace space = run->space;
    char key[4], text[16];
    random_key(run, key);
    if (random_below(&run->random, 3) == 0) {
        store_txn_delete(run->txn, space, slice_from_cstr(key));
        model_delete(&run->working, space, key);
        return;
    }
    int len = snprintf(text, sizeof(text), "%u", ++run->next_value);
    store_txn_put(run->txn, space, slice_from_cstr(key), slice_make(text, (size_t)len));
    model_put(&run->working, space, key, run->next_value);
}

static void merge(Run *run)
{
    if (run->merge_count == MERGES_MAX)
        return;
    Merge *merge = &run->merges[run->merge_count++];
    merge->space = run->space;
    merged_key(run, merge->key);
    merge->letter = (uint32_t)random_below(&run->random, LETTERS);
    merge->add = random_below(&run->random, 2) == 0;
    char operand[2] = {merge->add ? '+' : '-', (char)('a' + merge->letter)};
    store_txn_merge(run->txn, merge->space, slice_from_cstr(merge->key),
                    slice_make(operand, sizeof(operand)));
}

static void use_savepoints(Run *run)
{
    if (run->saved_count < SAVEPOINTS_MAX && random_below(&run->random, 2) == 0) {
        store_txn_savepoint(run->txn);
        run->saved_merges[run->saved_count] = run->merge_count;
        run->saved[run->saved_count++] = run->working;
    } else if (run->saved_count > 0 && random_below(&run->random, 2) == 0) {
        store_txn_rollback(run->txn);
        run->working = run->saved[--run->saved_count];
        run->merge_count = run->saved_merges[run->saved_count];
    } else if (run->saved_count > 0) {
        store_txn_release(run->txn);
        run->saved_count--;
    }
}

static void begin_transaction(Run *run)
{
    run->txn = store_txn_begin(run->store);
    run->space = random_space(run);
    run->working = run->committed;
    run->saved_count = 0;
    run->merge_count = 0;
}

static void end_transaction(Run *run)
{
    StoreTxn *txn = TAKE(run->txn);
    if (random_below(&run->random, 4) == 0) {
        store_txn_abort(txn);
    } else {
        if (random_below(&run->random, 3) == 0)
            load_now(run->store, txn);
        else
            commit_now(txn);
        run->committed = run->working;
        for (size_t i = 0; i < run->merge_count; i++)
            model_merge(&run->committed, &run->merges[i]);
    }
    begin_transaction(run);
}

static void drop_a_space(Run *run)
{
    if (random_below(&run->random, 8) != 0)
        return;
    StoreSpace space = random_space(run);
    store_txn_abort(TAKE(run->txn));
    assert_ok(store_drop_spaces(run->store, space, space, err));
    size_t kept = 0;
    for (size_t i = 0; i < run->committed.count; i++)
        if (run->committed.items[i].space != space)
            run->committed.items[kept++] = run->committed.items[i];
    run->committed.count = kept;
    begin_transaction(run);
}

static void renew_snapshot(Run *run, size_t which)
{
    store_snapshot_close(run->snapshots[which]);
    run->snapshots[which] = store_snapshot_open(run->store, STORE_READ_ANY);
    run->snapshot_models[which] = run->committed;
}

static void work(Run *run)
{
    size_t which = random_below(&run->random, SNAPSHOTS);
    switch (random_below(&run->random, 16)) {
    case 0:
        end_transaction(run);
        break;
    case 1:
        renew_snapshot(run, which);
        break;
    case 2:
        drop_a_space(run);
        break;
    case 3:
    case 4:
        use_savepoints(run);
        break;
    case 5:
        open_and_walk(run, &run->working, run->txn, NULL);
        break;
    case 6:
        open_and_walk(run, &run->snapshot_models[which], NULL, run->snapshots[which]);
        break;
    case 7:
        open_and_walk(run, &run->committed, NULL, NULL);
        break;
    case 8:
        check_get(run, &run->working, run->txn, NULL);
        check_get(run, &run->committed, NULL, NULL);
        check_get(run, &run->snapshot_models[which], NULL, run->snapshots[which]);
        break;
    case 9:
    case 10:
    case 11:
        merge(run);
        break;
    default:
        change(run);
        break;
    }
}

static void random_work_agrees_with_a_sorted_array(Store *store)
{
    Run *run = MEM_NEW(Run);
    random_init(&run->random, test_seed());
    run->store = store;
    begin_transaction(run);
    for (size_t i = 0; i < SNAPSHOTS; i++)
        renew_snapshot(run, i);

    for (uint32_t step = 0; step < STEPS; step++)
        work(run);

    for (size_t i = 0; i < SNAPSHOTS; i++)
        store_snapshot_close(run->snapshots[i]);
    store_txn_abort(run->txn);
    mem_free(run);
}

int main(void)
{
    static const EngineTest tests[] = {ENGINE_TEST(random_work_agrees_with_a_sorted_array)};
    return run_on_every_engine("store_model", tests, ARRAY_COUNT(tests));
}
