/* terms_batch_test.c - batches of changes against a model of sets, and hostile documents. */
#include "index/set.h"
#include "index/terms_int.h"
#include "index/terms_testing_int.h"
#include "store/memory/memory_store.h"

#define KEY TESTING_KEY
static const TermSystem SYSTEM = {.ts_s = 1700000000};
static const StoreMerge MERGE = {
    .kind = TERM_KIND, .merge = set_merge, .is_empty = set_value_is_empty};
enum { SPACE = 7, TERMS_MODEL_MAX = 4096 };

#define ALL "{'includedPaths':[{'path':'/*'}]}"

/* What is indexed of each item, and every (path, value, number) that follows from it. */
enum { ITEMS = 12, POLICIES = 4 };

#define MANY_KINDS                                                              \
    "{'includedPaths':[{'path':'/*'},{'path':'/a/[]/{a, b}/?'}],"               \
    "'compositeIndexes':[[{'path':'/a'},{'path':'/b/c','order':'descending'}]," \
    "[{'path':'/c/[]'},{'path':'/id'}]],"                                       \
    "'spatialIndexes':[{'path':'/*','types':['Point']}]}"
#define FEW_PATHS                                                              \
    "{'includedPaths':[{'path':'/a/*'},{'path':'/b/[]/a/?'},{'path':'/c/?'}]," \
    "'excludedPaths':[{'path':'/*'},{'path':'/a/b/*'}]}"

static const char *const POLICIES_TEXT[POLICIES] = {ALL, MANY_KINDS, FEW_PATHS,
                                                    "{'indexingMode':'none'}"};

typedef struct World {
    Arena *arena;
    Store *store;
    IndexPolicy *policies[POLICIES];
    Json documents[ITEMS];
    TermSystem systems[ITEMS];
    const IndexPolicy *current[ITEMS]; /* NULL if the item is not there or not indexed */
} World;

/* On both sides of a chunk's end, and far away. */
static uint64_t number_of(size_t item)
{
    static const uint64_t BASES[] = {65530, UINT64_C(0x123456789abc) << 16, 65536};
    return BASES[item % ARRAY_COUNT(BASES)] + item / ARRAY_COUNT(BASES) * 4;
}

typedef struct Triple {
    Term term;
    uint64_t number;
} Triple;

static int compare_triples(const void *left, const void *right)
{
    const Triple *a = left;
    const Triple *b = right;
    int order = compare_terms(&a->term, &b->term);
    return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

static void expected_triples(const World *world, Triple **out, size_t *count)
{
    *out = arena_alloc(world->arena, sizeof(Triple) * ITEMS * TERMS_MODEL_MAX);
    *count = 0;
    for (size_t i = 0; i < ITEMS; ++i) {
        if (world->current[i] == NULL)
            continue;
        TermList list;
        terms_of(world->arena, world->current[i], KEY, world->documents[i], &world->systems[i],
                 &list);
        for (size_t k = 0; k < list.count; ++k)
            (*out)[(*count)++] = (Triple){list.terms[k], number_of(i)};
    }
    qsort(*out, *count, sizeof(Triple), compare_triples);
}

static void check_store(const World *world)
{
    Triple *expected;
    size_t expected_count;
    expected_triples(world, &expected, &expected_count);
    Triple *found = arena_alloc(world->arena, sizeof(Triple) * (expected_count + 1));
    size_t found_count = 0;
    Error err;
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(world->store, NULL, SPACE, SLICE_EMPTY, SLICE_EMPTY);
    for (;;) {
        Slice key, stored;
        bool more;
        assert_int_equal(store_cursor_next(cursor, &key, &stored, &more, &err), STATUS_OK);
        if (!more)
            break;
        Term term;
        uint64_t high;
        assert_true(term_key_read(arena_copy(world->arena, key), &term.path, &term.value, &high));
        SetBuilder *builder = set_builder_new(world->arena);
        assert_int_equal(set_builder_add_value(builder, high, stored, &err), STATUS_OK);
        NumberSet set;
        set_builder_finish(builder, &set);
        SetWalk walk = set_walk_up(&set, 0);
        uint64_t number;
        while (set_walk_next(&walk, &number)) {
            assert_true(found_count < expected_count);
            found[found_count++] = (Triple){term, number};
        }
    }
    assert_int_equal(found_count, expected_count);
    for (size_t i = 0; i < found_count; ++i)
        assert_int_equal(compare_triples(&found[i], &expected[i]), 0);
}

static size_t count_differences(Arena *arena, const IndexPolicy *old_policy, Json old_document,
                                const TermSystem *old_system, const IndexPolicy *new_policy,
                                Json new_document, const TermSystem *new_system)
{
    TermList old = {.count = 0};
    TermList new = {.count = 0};
    if (old_policy != NULL)
        terms_of(arena, old_policy, KEY, old_document, old_system, &old);
    if (new_policy != NULL)
        terms_of(arena, new_policy, KEY, new_document, new_system, &new);
    size_t both = 0;
    for (size_t i = 0; i < old.count; ++i)
        both += new.count > 0 && has_term(&new, old.terms[i].path, old.terms[i].value);
    return old.count + new.count - 2 * both;
}

static void random_change(World *world, Random *random, TermsBatch *batch)
{
    size_t item = random_below(random, ITEMS);
    uint64_t choice = random_below(random, 5);
    const IndexPolicy *policy = choice == 0 ? NULL
                                : choice == 1 || world->current[item] == NULL
                                    ? world->policies[random_below(random, POLICIES)]
                                    : world->current[item];
    Json document = random_document(random, world->arena, world->documents[item]);
    TermSystem system = {.ts_s = (uint32_t)random_below(random, 3)};
    size_t expected = count_differences(world->arena, world->current[item], world->documents[item],
                                        &world->systems[item], policy, document, &system);
    size_t found =
        terms_batch_change(batch, number_of(item), world->current[item], world->documents[item],
                           &world->systems[item], policy, document, &system);
    assert_int_equal(found, expected);
    world->current[item] = policy;
    world->documents[item] = document;
    world->systems[item] = system;
}

static void batches_leave_each_item_under_exactly_its_terms(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 99);
    for (int round = 0; round < 40; ++round) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1 << 20);
        AUTO(store_close) Store *store = NULL;
        memory_store_open_with(&MERGE, &store);
        World world = {.arena = &arena, .store = store};
        for (size_t i = 0; i < POLICIES; ++i)
            world.policies[i] = policy_of(&arena, POLICIES_TEXT[i], NULL);
        for (int group = 0; group < 10; ++group) {
            StoreTxn *txn = store_txn_begin(store);
            TermsBatch *batch = terms_batch_new(&arena, KEY);
            for (uint64_t left = random_below(&random, 12); left > 0; --left)
                random_change(&world, &random, batch);
            terms_batch_finish(batch, txn, SPACE);
            Error err;
            assert_int_equal(store_txn_commit_wait(txn, &err), STATUS_OK);
            check_store(&world);
        }
    }
}

static void write_number(StoreTxn *txn, const Term *term, uint64_t number)
{
    AUTO(buf_done) Buf key;
    AUTO(buf_done) Buf operand;
    buf_init(&key, STORE_KEY_BYTES_MAX);
    buf_init(&operand, STORE_VALUE_BYTES_MAX);
    uint16_t low = (uint16_t)number;
    term_key(&key, term->path, term->value, number >> SET_CHUNK_BITS);
    set_operand(&operand, &low, 1, NULL, 0);
    store_txn_merge(txn, SPACE, buf_view(&key), buf_view(&operand));
}

/* Items that lack samples, or have some of them, get them all and nothing else. */
static void samples_are_added_to_those_that_are_there(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 20);
    AUTO(store_close) Store *store = NULL;
    memory_store_open_with(&MERGE, &store);
    World world = {.arena = &arena, .store = store};
    world.policies[0] = policy_of(&arena, ALL, NULL);
    size_t samples = 0;
    StoreTxn *txn = store_txn_begin(store);
    for (size_t i = 0; i < ITEMS; ++i) {
        AUTO(buf_done) Buf text;
        buf_init(&text, 1 << 16);
        buf_format(&text, "{'id':'%zu','list':[", i);
        for (size_t k = 0; k < 200; ++k)
            buf_format(&text, "%s%zu", k == 0 ? "" : ",", i * 100 + k / 2);
        buf_format(&text, "]}");
        buf_byte(&text, 0);
        world.documents[i] = row_json(&arena, text.ptr);
        world.current[i] = world.policies[0];
        TermList list;
        terms_of(&arena, world.current[i], KEY, world.documents[i], &world.systems[i], &list);
        for (size_t k = 0; k < list.count; ++k) {
            samples += list.terms[k].is_sample;
            if (!list.terms[k].is_sample || (i % 2 == 0 && k % 2 == 0))
                write_number(txn, &list.terms[k], number_of(i));
        }
    }
    assert_true(samples > ITEMS);
    TermsBatch *batch = terms_batch_new(&arena, KEY);
    for (size_t i = 0; i < ITEMS; ++i) {
        terms_batch_add_samples(batch, number_of(i), world.current[i], world.documents[i],
                                &world.systems[i]);
        assert_int_equal(terms_batch_values(batch), 0); /* they are not charged */
    }
    terms_batch_finish(batch, txn, SPACE);
    Error err;
    assert_int_equal(store_txn_commit_wait(txn, &err), STATUS_OK);
    check_store(&world);
}

static void what_cancels_out_is_not_written(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    AUTO(store_close) Store *store = NULL;
    memory_store_open_with(&MERGE, &store);
    IndexPolicy *policy = policy_of(&arena, ALL, NULL);
    IndexPolicy *other = policy_of(&arena, ALL, NULL);
    Json document = row_json(&arena, "{'id':'x','a':[1,2,1],'b':{'c':1}}");
    Json moved = row_json(&arena, "{'b':{'c':1},'a':[2,2,1],'id':'x'}");
    Json longer = row_json(&arena, "{'b':{'c':1},'a':[2,2,1],'id':'y'}");
    AUTO(store_txn_abort) StoreTxn *txn = store_txn_begin(store);
    size_t empty = store_txn_bytes(txn);
    TermsBatch *batch = terms_batch_new(&arena, KEY);

    /* The same terms from another document, or by another policy. */
    assert_int_equal(
        terms_batch_change(batch, 1, policy, document, &SYSTEM, policy, moved, &SYSTEM), 0);
    assert_int_equal(terms_batch_change(batch, 1, policy, document, &SYSTEM, other, moved, &SYSTEM),
                     0);
    assert_int_equal(terms_batch_change(batch, 1, NULL, JSON_NONE, NULL, NULL, JSON_NONE, NULL), 0);
    terms_batch_finish(batch, txn, SPACE);
    assert_int_equal(store_txn_bytes(txn), empty);

    /* Created, changed and deleted in one batch; others go on between. */
    size_t made = terms_batch_change(batch, 2, NULL, JSON_NONE, NULL, policy, document, &SYSTEM);
    assert_int_equal(made, 4 + 2 + 5 + 4);
    assert_int_equal(terms_batch_values(batch), 3); /* 1, 2 in "/a", 1 in "/b/c" */
    assert_int_equal(
        terms_batch_change(batch, 2, policy, document, &SYSTEM, policy, longer, &SYSTEM), 2);
    assert_int_equal(terms_batch_values(batch), 0); /* of "/id" */
    assert_int_equal(terms_batch_change(batch, 2, policy, longer, &SYSTEM, NULL, JSON_NONE, NULL),
                     made);
    terms_batch_finish(batch, txn, SPACE);
    assert_int_equal(store_txn_bytes(txn), empty);

    assert_int_equal(
        terms_batch_change(batch, 3, policy, document, &SYSTEM, policy, longer, &SYSTEM), 2);
    terms_batch_finish(batch, txn, SPACE);
    assert_true(store_txn_bytes(txn) > empty);
}

static Json array_of(Arena *arena, size_t count, const char *element)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, (size_t)4 << 20);
    buf_slice(&text, SLICE("{\"a\":["));
    for (size_t i = 0; i < count; ++i) {
        buf_slice(&text, i == 0 ? SLICE_EMPTY : SLICE(","));
        buf_slice(&text, slice_from_cstr(element));
    }
    buf_slice(&text, SLICE("]}"));
    Json value;
    Error err;
    assert_int_equal(json_parse(arena, buf_view(&text), &value, &err), STATUS_OK);
    return value;
}

static void large_arrays_of_few_values_need_little_memory(void **state)
{
    (void)state;
    static const struct {
        const char *element;
        size_t terms; /* besides 4, and 3 of "/a": that it is there, an array, has an element */
    } ROWS[] = {{"1", 1}, {"[1]", 3}, {"{}", 1}, {"[[],1,[1,2]]", 7}, {"\"ab\"", 1}};
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1 << 16);
        IndexPolicy *policy = policy_of(&arena, ALL, NULL);
        Json document = array_of(&arena, 200000, ROWS[i].element);
        AUTO(arena_done) Arena scratch;
        arena_init(&scratch, 1 << 16);
        TermsBatch *batch = terms_batch_new(&scratch, KEY);
        print_message("%s\n", ROWS[i].element);
        assert_int_equal(
            terms_batch_change(batch, 1, NULL, JSON_NONE, NULL, policy, document, &SYSTEM),
            7 + ROWS[i].terms);
        /* One entry for each would be more than 40 MB, and as much again for sorting them. */
        assert_true(arena_used(&scratch) < (size_t)16 << 20);
    }
}

/* More different values than fit into a list before it is settled, in an order that defeats the
 * memory of recent ones. */
static void large_arrays_of_many_values_lose_none(void **state)
{
    (void)state;
    enum { DIFFERENT = 50000, ELEMENTS = 200000 };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 20);
    IndexPolicy *policy = policy_of(&arena, ALL, NULL);
    JsonBuilder b;
    json_build(&b, &arena);
    json_begin_object(&b);
    json_key(&b, SLICE("a"));
    json_begin_array(&b);
    for (size_t i = 0; i < ELEMENTS; ++i)
        json_add_i64(&b, (int64_t)(i * 7919 % DIFFERENT));
    json_end(&b);
    json_end(&b);
    Json document = json_built(&b);
    TermList list;
    terms_of(&arena, policy, KEY, document, &SYSTEM, &list);
    /* And samples of them, one in 64 and some more. */
    assert_in_range(list.count, 7 + DIFFERENT + DIFFERENT / 60, 7 + DIFFERENT + DIFFERENT / 40);
    TermsBatch *batch = terms_batch_new(&arena, KEY);
    assert_int_equal(terms_batch_change(batch, 1, policy, row_json(&arena, "{'a':[5]}"), &SYSTEM,
                                        policy, document, &SYSTEM),
                     list.count - 7 - 1);
    assert_int_equal(terms_batch_values(batch), DIFFERENT - 1);
}

static void deep_documents_are_walked(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    IndexPolicy *policy = policy_of(&arena, ALL, NULL);
    char text[4 * JSON_DEPTH_MAX];
    size_t len = 0;
    memcpy(text, "{\"a\":", 5);
    len = 5;
    for (size_t i = 1; i < JSON_DEPTH_MAX; ++i)
        text[len++] = '[';
    for (size_t i = 1; i < JSON_DEPTH_MAX; ++i)
        text[len++] = ']';
    text[len++] = '}';
    Json document;
    Error err;
    assert_int_equal(json_parse(&arena, slice_make(text, len), &document, &err), STATUS_OK);
    TermList list;
    terms_of(&arena, policy, KEY, document, &SYSTEM, &list);
    assert_int_equal(list.count, 4 + 2 * (JSON_DEPTH_MAX - 1));
}

/* ---- sorting ---- */

typedef struct SortCase {
    Entry entry;
    size_t place; /* before */
} SortCase;

static Term term_of_entry(const Entry *entry)
{
    return (Term){.path = entry->path, .value = slice_make(entry->value, entry->len)};
}

static int compare_cases(const void *left, const void *right)
{
    const SortCase *a = left;
    const SortCase *b = right;
    Triple x = {.term = term_of_entry(&a->entry)};
    Triple y = {.term = term_of_entry(&b->entry)};
    int order = compare_triples(&x, &y);
    return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

static void entries_are_sorted_by_path_and_value(void **state)
{
    (void)state;
    enum { COUNT_MAX = 3000 };
    static const Slice VALUES[] = {SLICE_INIT("\0"),         SLICE_INIT("\x05"),
                                   SLICE_INIT("abcdefgh"),   SLICE_INIT("abcdefghi"),
                                   SLICE_INIT("abcdefgh\0"), SLICE_INIT("abcdefgg~~~~"),
                                   SLICE_INIT("\xff\xff")};
    static Entry entries[COUNT_MAX], scratch[COUNT_MAX];
    static SortCase cases[COUNT_MAX];
    Random random;
    random_init(&random, 5);
    for (size_t count = 0; count <= COUNT_MAX; count = count * 3 / 2 + 1) {
        for (size_t i = 0; i < count; ++i) {
            Slice value = VALUES[random_below(&random, ARRAY_COUNT(VALUES))];
            char first[8] = {0};
            memcpy(first, value.ptr, value.len < 8 ? value.len : 8);
            entries[i] =
                (Entry){.path = (random_below(&random, 40) << 56) + random_below(&random, 2),
                        .prefix = be64_get(first),
                        .value = value.ptr,
                        .len = (uint16_t)value.len,
                        .item = (uint32_t)random_below(&random, 5),
                        .sign = random_below(&random, 2) == 0 ? 1 : -1};
            cases[i] = (SortCase){entries[i], i};
        }
        qsort(cases, count, sizeof(SortCase), compare_cases);
        const Entry *sorted = entries_sort(entries, scratch, count);
        for (size_t i = 0; i < count; ++i) {
            assert_true(entries_same_term(&sorted[i], &cases[i].entry));
            assert_int_equal(sorted[i].item, cases[i].entry.item);
            assert_int_equal(sorted[i].sign, cases[i].entry.sign);
        }
    }
}

/* ---- the table of terms ---- */

enum { TABLE_TERMS = 3000, TABLE_ITEMS = 4 };

static Entry table_entry(char *memory, size_t term, uint32_t item)
{
    int len = snprintf(memory, 24, "value of %zu", term % (TABLE_TERMS / 3));
    ASSERT(len > 8);
    return (Entry){.path = term % 3,
                   .prefix = be64_get(memory),
                   .value = memory,
                   .len = (uint16_t)len,
                   .item = item,
                   .sign = item % 2 == 0 ? 1 : -1};
}

/* Adds each term for each item, and expects one walk over them, with the items of each by number.
 * 'is_full' makes all searches fail, so that each use is a term of its own. */
static void expect_walk(const uint64_t *numbers, bool is_rising, bool is_full)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    static char values[TABLE_ITEMS][TABLE_TERMS][24];
    TermTable table = {0};
    for (size_t i = 0; i < (size_t)TABLE_TERMS * TABLE_ITEMS; ++i) {
        char *value = values[i / TABLE_TERMS][i % TABLE_TERMS];
        Entry entry = table_entry(value, i % TABLE_TERMS, (uint32_t)(i / TABLE_TERMS));
        (void)term_table_add(&arena, &table, &entry);
        for (size_t k = 0; is_full && k < table.slot_count; ++k)
            table.slots[k] = 1;
    }
    assert_true(is_full ? table.terms.count > (size_t)TABLE_TERMS * (TABLE_ITEMS - 1)
                        : table.terms.count < TABLE_TERMS + TABLE_TERMS / 10);
    TermUses uses;
    term_uses_open(&arena, &table, numbers, is_rising, &uses);
    size_t count = 0;
    Triple before = {0};
    while (term_uses_next(&uses)) {
        Triple at = {.term = term_of_entry(uses.term)};
        assert_true(count++ == 0 || compare_triples(&before, &at) < 0);
        before = at;
        assert_int_equal(uses.count, TABLE_ITEMS);
        for (size_t i = 0; i < TABLE_ITEMS; ++i) {
            assert_int_equal(uses.items[i] & 1, (uses.items[i] >> 1) % 2);
            assert_true(i == 0 || numbers[uses.items[i - 1] >> 1] < numbers[uses.items[i] >> 1]);
        }
    }
    assert_int_equal(count, TABLE_TERMS);
}

static void each_term_is_walked_once_however_often_it_is_in_the_table(void **state)
{
    (void)state;
    static const uint64_t RISING[TABLE_ITEMS] = {3, 5, 7, 70000};
    static const uint64_t UNSORTED[TABLE_ITEMS] = {70000, 3, 7, 5};
    expect_walk(RISING, true, false);
    expect_walk(RISING, true, true);
    expect_walk(UNSORTED, false, false);
    expect_walk(UNSORTED, false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_leave_each_item_under_exactly_its_terms),
        cmocka_unit_test(samples_are_added_to_those_that_are_there),
        cmocka_unit_test(what_cancels_out_is_not_written),
        cmocka_unit_test(large_arrays_of_few_values_need_little_memory),
        cmocka_unit_test(large_arrays_of_many_values_lose_none),
        cmocka_unit_test(deep_documents_are_walked),
        cmocka_unit_test(entries_are_sorted_by_path_and_value),
        cmocka_unit_test(each_term_is_walked_once_however_often_it_is_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
