/* index_names_test.c - the names that an index tells are those of its terms, and no others. */
#include "index/index_names.h"

#include "base/test_seed.h"
#include "index/terms_testing_int.h"
#include "store/memory/memory_store.h"

#include <stdlib.h>

enum { SPACE = 7, DOCUMENTS_MAX = 40, TEXTS_BYTES = 4 << 20 };

static const StoreMerge MERGE = {
    .kind = TERM_KIND,
    .tail_bytes = TERM_CHUNK_BYTES,
    .merge = set_merge,
    .is_empty = set_value_is_empty,
};

/* An index with its items, whose numbers are their places in the list. */
typedef struct Index {
    Arena arena;
    Store *store;
    StoreSnapshot *snapshot;
    IndexPolicy *policy;
    HashKey key;
    Json documents[DOCUMENTS_MAX];
    bool is_gone[DOCUMENTS_MAX];
    size_t count;
    size_t fetches;
    IndexBudget budget;
} Index;

static void index_open(Index *index, const char *policy, HashKey key)
{
    *index = (Index){.key = key, .budget = {.keys_left = UINT64_MAX, .bytes_left = SIZE_MAX}};
    arena_init(&index->arena, 1 << 16);
    memory_store_open_with(&MERGE, &index->store);
    index->policy = policy_of(&index->arena, policy, "/pk");
}

static void index_done(Index *index)
{
    store_snapshot_close(index->snapshot);
    store_close(index->store);
    arena_done(&index->arena);
}
DEFINE_AUTO_VALUE(Index, index_done)

/* Replaces an item, or removes it if 'document' is undefined. */
static void put(Index *index, size_t number, Json document)
{
    static const TermSystem SYSTEM = {.ts_s = 1000};
    bool was_there = number < index->count && !json_is(index->documents[number], JSON_UNDEFINED);
    bool is_there = !json_is(document, JSON_UNDEFINED);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    TermsBatch *batch = terms_batch_new(&arena, index->key);
    (void)terms_batch_change(batch, number, was_there ? index->policy : NULL,
                             was_there ? index->documents[number] : JSON_NONE, &SYSTEM,
                             is_there ? index->policy : NULL, document, &SYSTEM);
    StoreTxn *txn = store_txn_begin(index->store);
    terms_batch_finish(batch, txn, SPACE);
    assert_ok(store_txn_commit_wait(txn, err));
    index->documents[number] = document;
    index->count = number < index->count ? index->count : number + 1;
}

static void add(Index *index, const char *text)
{
    put(index, index->count, row_json(&index->arena, text));
}

static Status fetch(void *ctx, uint64_t number, Json *document, uint32_t *ts_s, bool *found,
                    Error *err)
{
    (void)err;
    Index *index = ctx;
    assert_true(number < index->count);
    index->fetches++;
    *document = index->documents[number];
    *ts_s = 1000;
    *found = !index->is_gone[number];
    return STATUS_OK;
}

static bool collect(Index *index, IndexNames *names)
{
    store_snapshot_close(index->snapshot);
    index->snapshot = store_snapshot_open(index->store, STORE_READ_ANY);
    IndexReader reader = {.store = index->store,
                          .snapshot = index->snapshot,
                          .space = SPACE,
                          .key = index->key,
                          .budget = &index->budget};
    IndexDocuments documents = {
        .fetch = fetch, .ctx = index, .policies = {index->policy, index->policy}};
    bool is_complete = false;
    assert_ok(index_names_collect(names, &reader, &documents, &is_complete, err));
    return is_complete;
}

static int compare_texts(const void *a, const void *b)
{
    return slice_compare(*(const Slice *)a, *(const Slice *)b);
}

/* All names, sorted, with spaces between. */
static Slice texts_of(Arena *arena, const IndexNames *names)
{
    Slice *list = ARENA_NEW_ARRAY(arena, Slice, INDEX_NAMES_MAX);
    AUTO(buf_done) Buf text;
    buf_init(&text, TEXTS_BYTES);
    size_t count = 0;
    for (size_t position = 0; buf_reset(&text), index_names_next(names, &position, &text);)
        list[count++] = arena_copy(arena, buf_view(&text));
    qsort(list, count, sizeof(Slice), compare_texts);
    buf_reset(&text);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(&text, ' ');
        buf_slice(&text, list[i]);
    }
    return arena_copy(arena, buf_view(&text));
}

static void expect_names(Index *index, const char *expected)
{
    IndexNames *names = index_names_new(&index->arena);
    assert_true(collect(index, names));
    assert_slice(texts_of(&index->arena, names), slice_from_cstr(expected));
}

static void nested_names_arrays_and_names_to_quote_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        const char *items[3];
        const char *names;
    } rows[] = {
        {NULL, {NULL}, ""},
        {NULL, {"{'id':'1','pk':1}"}, "/_ts /id /pk"},
        {NULL,
         {"{'id':'1','address':{'city':'x','zip':{'code':1}}}", "{'id':'2','address':null,'b':[]}"},
         "/_ts /address /address/city /address/zip /address/zip/code /b /id"},
        {NULL,
         {"{'id':'1','tags':['a',{'name':'b'},[1]]}"},
         "/_ts /id /tags /tags/[] /tags/[]/[] /tags/[]/name"},
        {NULL,
         {"{'first name':1,'[]':2,'a/b':{'':3},'d\\u00e9j\\u00e0':4}"},
         "/\"[]\" /\"a/b\" /\"a/b\"/\"\" /\"first name\" /_ts /d\xc3\xa9j\xc3\xa0"},
        /* What the policy excludes is not in the index; what is on the way to something included
         * is. */
        {"{'includedPaths':[{'path':'/a/b/?'}],'excludedPaths':[{'path':'/*'}]}",
         {"{'id':'1','pk':1,'a':{'b':2,'c':3},'d':4}"},
         "/_ts /a /a/b /id /pk"},
        {"{'includedPaths':[{'path':'/*'}],'excludedPaths':[{'path':'/a/*'}]}",
         {"{'a':{'b':2,'c':3},'d':4}"},
         "/_ts /d"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(index_done) Index index;
        index_open(&index, rows[i].policy, TESTING_KEY);
        for (size_t k = 0; k < ARRAY_COUNT(rows[i].items) && rows[i].items[k] != NULL; k++)
            add(&index, rows[i].items[k]);
        expect_names(&index, rows[i].names);
    }
}

#define EVERY_KIND                                                                       \
    "{'includedPaths':[{'path':'/*'}],'excludedPaths':[{'path':'/b/c/*'}],"              \
    "'compositeIndexes':[[{'path':'/a'},{'path':'/b','order':'descending'}],[{'path':'/" \
    "c'},{'path':'/id'}]],'spatialIndexes':[{'path':'/*','types':['Point','Polygon']}]}"

static void composite_and_spatial_indexes_are_no_names(void **state)
{
    (void)state;
    AUTO(index_done) Index index;
    index_open(&index, EVERY_KIND, TESTING_KEY);
    for (size_t i = 0; i < DOCUMENTS_MAX; i++)
        add(&index, arena_cstr(&index.arena, arena_format(&index.arena,
                                                          "{'a':'%zu','b':%zu,'at':{'type':'Point',"
                                                          "'coordinates':[%zu,%zu]}}",
                                                          i * 7919, i, i, i)));
    expect_names(&index, "/_ts /a /at /at/coordinates /at/coordinates/[] /at/type /b");
}

/* The model: a path has a name if the writer of the index gives an item a term under it. */
static void add_model(Index *index, const TermList *list, Json value, TermPath path, Slice text,
                      Slice *out, size_t *count)
{
    bool has = false;
    for (size_t i = 0; i < list->count && !has; i++)
        has = list->terms[i].path == path && !list->terms[i].is_sample;
    for (size_t i = 0; i < *count && has; i++)
        has = !slice_equal(out[i], text);
    if (has && text.len > 0)
        out[(*count)++] = text;
    JsonIter it = json_iter(value);
    while (json_next(&it)) {
        if (it.is_object)
            add_model(index, list, it.value, term_path_name(index->key, path, it.name),
                      arena_format(&index->arena, "%.*s/%.*s", SLICE_ARG(text), SLICE_ARG(it.name)),
                      out, count);
        else
            add_model(index, list, it.value, term_path_element(index->key, path),
                      arena_format(&index->arena, "%.*s/[]", SLICE_ARG(text)), out, count);
    }
}

static Slice model_texts(Index *index)
{
    Slice *list = ARENA_NEW_ARRAY(&index->arena, Slice, INDEX_NAMES_MAX);
    size_t count = 0;
    TermSystem system = {.ts_s = 1000};
    for (size_t i = 0; i < index->count; i++) {
        TermList terms;
        if (json_is(index->documents[i], JSON_UNDEFINED))
            continue;
        terms_of(&index->arena, index->policy, index->key, index->documents[i], &system, &terms);
        add_model(index, &terms, index->documents[i], term_path_root(index->key), SLICE_EMPTY, list,
                  &count);
    }
    if (count > 0)
        list[count++] = SLICE("/_ts");
    qsort(list, count, sizeof(Slice), compare_texts);
    AUTO(buf_done) Buf text;
    buf_init(&text, TEXTS_BYTES);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(&text, ' ');
        buf_slice(&text, list[i]);
    }
    return arena_copy(&index->arena, buf_view(&text));
}

static void random_items_have_the_names_of_their_terms(void **state)
{
    (void)state;
    static const char *const policies[] = {
        NULL, EVERY_KIND,
        "{'includedPaths':[{'path':'/a/[]/b/?'},{'path':'/c/*'}],'excludedPaths':[{'path':'/*'}]}"};
    Random random;
    random_init(&random, test_seed());
    for (size_t round = 0; round < 60; round++) {
        AUTO(index_done) Index index;
        index_open(&index, policies[round % ARRAY_COUNT(policies)], TESTING_KEY);
        size_t count = 1 + (size_t)random_below(&random, 12);
        for (size_t i = 0; i < count; i++)
            put(&index, i, random_document(&random, &index.arena, JSON_NONE));
        for (size_t i = 0; i < count; i++) { /* changes leave terms that nobody has */
            uint64_t what = random_below(&random, 3);
            if (what > 0)
                put(&index, i,
                    what == 1 ? JSON_NONE : random_document(&random, &index.arena, JSON_NONE));
        }
        IndexNames *names = index_names_new(&index.arena);
        assert_true(collect(&index, names));
        assert_slice(texts_of(&index.arena, names), model_texts(&index));
    }
}

static void several_indexes_have_one_list_and_known_names_take_no_items(void **state)
{
    (void)state;
    AUTO(index_done) Index first;
    AUTO(index_done) Index second;
    index_open(&first, NULL, TESTING_KEY);
    index_open(&second, NULL, (HashKey){5, 6});
    add(&first, "{'id':'1','a':{'b':1}}");
    add(&first, "{'id':'2','a':{'b':2}}");
    add(&second, "{'id':'1','a':{'b':1}}");
    IndexNames *names = index_names_new(&first.arena);
    assert_true(collect(&first, names));
    assert_int_equal(first.fetches, 1);
    assert_true(collect(&second, names));
    assert_int_equal(second.fetches, 0);
    add(&second, "{'id':'3','a':{'c':1}}");
    assert_true(collect(&second, names));
    assert_int_equal(second.fetches, 1);
    assert_slice(texts_of(&first.arena, names), SLICE("/_ts /a /a/b /a/c /id"));
}

static void items_that_have_gone_tell_nothing(void **state)
{
    (void)state;
    AUTO(index_done) Index index;
    index_open(&index, NULL, TESTING_KEY);
    add(&index, "{'secret':1}");
    add(&index, "{'id':'2'}");
    index.is_gone[0] = true;
    expect_names(&index, "/_ts /id");
    /* With so many that not all are asked, nobody knows. */
    for (size_t i = 2; i < DOCUMENTS_MAX; i++) {
        index.is_gone[i] = true;
        add(&index, "{'secret':1}");
    }
    IndexNames *names = index_names_new(&index.arena);
    assert_false(collect(&index, names));
    assert_slice(texts_of(&index.arena, names), SLICE("/_ts /id"));
}

static Json wide_item(Arena *arena, size_t first, size_t names, size_t name_bytes)
{
    char *name = arena_alloc(arena, name_bytes + 32);
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    for (size_t i = first; i < first + names; i++) {
        int len = snprintf(name, name_bytes + 32, "p%0*zu", (int)name_bytes, i);
        json_key(&b, slice_make(name, (size_t)len));
        json_add_number(&b, (double)i);
    }
    json_end(&b);
    return json_built(&b);
}

static size_t count_names(const IndexNames *names)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, TEXTS_BYTES);
    size_t count = 0;
    for (size_t position = 0; index_names_next(names, &position, &text);)
        count++;
    return count;
}

static void bounds_end_the_collection_and_say_so(void **state)
{
    (void)state;
    static const struct {
        size_t items, names, name_bytes, expected;
        uint64_t keys;
        bool is_complete;
    } rows[] = {
        {1, 5000, 8, 5001, UINT64_MAX, true},
        {5, 1000, 8, 5001, UINT64_MAX, true},
        {1, 9998, 4, 9999, UINT64_MAX, true}, /* with the root, as many as there may be */
        {1, 9999, 4, 9999, UINT64_MAX, false},
        {3, 5000, 4, 9999, UINT64_MAX, false},
        {1, 2000, 1000, 0, UINT64_MAX, false}, /* bytes */
        {1, 100, 4, 0, 50, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(index_done) Index index;
        index_open(&index, NULL, TESTING_KEY);
        for (size_t k = 0; k < rows[i].items; k++)
            put(&index, k,
                wide_item(&index.arena, k * rows[i].names, rows[i].names, rows[i].name_bytes));
        index.budget.keys_left = rows[i].keys;
        IndexNames *names = index_names_new(&index.arena);
        bool is_complete = collect(&index, names);
        if (is_complete != rows[i].is_complete)
            fail_msg("row %zu: complete is %d", i, is_complete);
        size_t count = count_names(names);
        if (rows[i].expected > 0 ? count != rows[i].expected : count == 0 || count >= rows[i].names)
            fail_msg("row %zu: %zu names", i, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_names_arrays_and_names_to_quote_are_told),
        cmocka_unit_test(composite_and_spatial_indexes_are_no_names),
        cmocka_unit_test(random_items_have_the_names_of_their_terms),
        cmocka_unit_test(several_indexes_have_one_list_and_known_names_take_no_items),
        cmocka_unit_test(items_that_have_gone_tell_nothing),
        cmocka_unit_test(bounds_end_the_collection_and_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
