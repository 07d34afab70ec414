/* terms_fuzz.c - a policy and two documents from bytes: neither stops the walk, what comes out is
 * in order, and replacing one document by the other changes exactly what differs.
 *
 * The input is three JSON texts, one line each: the policy as it is stored, and the documents.
 */
#include "base/slice.h"
#include "index/terms.h"

static const HashKey KEY = {1, 2};

static int compare(const Term *a, const Term *b)
{
    if (a->path != b->path)
        return a->path < b->path ? -1 : 1;
    return slice_compare(a->value, b->value);
}

static void check_order(const TermList *list)
{
    for (size_t i = 1; i < list->count; ++i)
        ASSERT(compare(&list->terms[i - 1], &list->terms[i]) < 0);
    for (size_t i = 0; i < list->count; ++i)
        ASSERT(list->terms[i].value.len > 0 && list->terms[i].value.len <= TERM_VALUE_BYTES_MAX);
}

static size_t count_differences(const TermList *a, const TermList *b)
{
    size_t count = 0;
    size_t i = 0;
    size_t k = 0;
    while (i < a->count || k < b->count) {
        int order = i == a->count ? 1 : k == b->count ? -1 : compare(&a->terms[i], &b->terms[k]);
        count += order != 0;
        i += order <= 0;
        k += order >= 0;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    Slice rest = slice_make(data, size);
    Json texts[3] = {JSON_NONE, JSON_NONE, JSON_NONE};
    Error err;
    for (size_t i = 0; i < ARRAY_COUNT(texts); ++i) {
        Slice line = slice_cut(&rest, '\n');
        if (line.len > 0 && json_parse(&arena, line, &texts[i], &err) != STATUS_OK)
            return 0;
        /* Documents are objects. */
        if (i > 0 && line.len > 0 && !json_is(texts[i], JSON_OBJECT))
            return 0;
        /* A stored document has no time of its own: what a client sends as one is left out. */
        if (json_is(texts[i], JSON_OBJECT) &&
            !json_is(json_get(texts[i], SLICE("_ts")), JSON_UNDEFINED))
            return 0;
    }
    static const Slice SEGMENTS[] = {SLICE_INIT("pk"), SLICE_INIT("b")};
    PropertyPath key = {SEGMENTS, ARRAY_COUNT(SEGMENTS)};
    IndexPolicy *policy;
    IndexPolicy *other;
    if (index_policy_new(&arena, texts[0], &key, 1, &policy, &err) != STATUS_OK ||
        index_policy_new(&arena, texts[0], &key, 1, &other, &err) != STATUS_OK)
        return 0;
    ASSERT(index_policy_equal(policy, other));

    TermSystem systems[] = {{1}, {2}};
    TermList lists[2];
    for (size_t i = 0; i < 2; ++i) {
        terms_of(&arena, policy, KEY, texts[1 + i], &systems[i], &lists[i]);
        check_order(&lists[i]);
    }
    size_t differences = count_differences(&lists[0], &lists[1]);
    TermsBatch *batch = terms_batch_new(&arena, KEY);
    ASSERT(terms_batch_change(batch, 1, policy, texts[1], &systems[0], policy, texts[2],
                              &systems[1]) == differences);
    ASSERT(terms_batch_change(batch, 2, policy, texts[1], &systems[0], other, texts[2],
                              &systems[1]) == differences);
    ASSERT(terms_batch_change(batch, 3, NULL, JSON_NONE, NULL, policy, texts[1], &systems[0]) ==
           lists[0].count);
    return 0;
}
