/* partition_index_testing_int.h - for tests: what the index of a partition says.
 *
 * A path is written "/a/b" or "/tags/[]", the root "".
 */
#pragma once

#include "partition/partition_check_testing_int.h"
#include "partition/view.h"

#define POLICY_ALL     "{'includedPaths':[{'path':'/*'}],'excludedPaths':[]}"
#define POLICY_N       "{'includedPaths':[{'path':'/n/?'}],'excludedPaths':[{'path':'/*'}]}"
#define POLICY_U       "{'includedPaths':[{'path':'/u/?'}],'excludedPaths':[{'path':'/*'}]}"
#define POLICY_NONE    "{'indexingMode':'none','automatic':false}"
#define POLICY_BY_HAND "{'automatic':false,'includedPaths':[{'path':'/*'}],'excludedPaths':[]}"

enum { TEST_STEPS_MAX = 8 };

static inline size_t parse_steps(const char *path, IndexStep steps[TEST_STEPS_MAX])
{
    size_t count = 0;
    Slice rest = slice_from_cstr(path);
    (void)slice_cut(&rest, '/');
    while (rest.ptr != NULL && rest.len > 0) {
        assert_true(count < TEST_STEPS_MAX);
        Slice name = slice_cut(&rest, '/');
        bool is_element = slice_equal(name, SLICE("[]"));
        steps[count++] =
            (IndexStep){.name = is_element ? SLICE_EMPTY : name, .is_element = is_element};
    }
    return count;
}

static inline TermPath test_term_path(HashKey key, const char *path)
{
    IndexStep steps[TEST_STEPS_MAX];
    size_t count = parse_steps(path, steps);
    TermPath at = term_path_root(key);
    for (size_t i = 0; i < count; i++)
        at = steps[i].is_element ? term_path_element(key, at)
                                 : term_path_name(key, at, steps[i].name);
    return at;
}

/* The set of a view's items with this value, a row; NULL for any value. */
static inline NumberSet view_set(TestPartition *t, PartitionView *view, const char *path,
                                 const char *value)
{
    IndexBudget budget = {.keys_left = UINT32_MAX, .bytes_left = (size_t)1 << 30};
    IndexReader reader = partition_view_index(view, &budget);
    AUTO(buf_done) Buf term;
    buf_init(&term, TERM_VALUE_BYTES_MAX);
    bool exact = true;
    if (value == NULL)
        term_put_tag(&term, TERM_PRESENT);
    else
        term_put_json(&term, row_json(&t->arena, value), &exact);
    NumberSet set;
    bool complete = false;
    assert_ok(index_read_value(&reader, test_term_path(reader.key, path), buf_view(&term),
                               &t->arena, &set, &complete, err));
    assert_true(complete);
    return set;
}

static inline PartitionView *test_view(TestPartition *t)
{
    PartitionView *view = NULL;
    assert_ok(partition_view_open(t->partition, t->schema, STORE_READ_ANY, &view, err));
    return view;
}

/* The ids of the items that a view finds so, in the order of their numbers; "?" for one that the
 * index has and the view does not. */
static inline Slice view_ids(TestPartition *t, PartitionView *view, const char *path,
                             const char *value)
{
    AUTO(buf_done) Buf ids;
    buf_init(&ids, 1 << 20);
    NumberSet set = view_set(t, view, path, value);
    SetWalk walk = set_walk_up(&set, 0);
    uint64_t number = 0;
    while (set_walk_next(&walk, &number)) {
        Item item;
        bool found = false;
        assert_ok(partition_view_fetch(view, number, SLICE_EMPTY, SLICE_EMPTY, &item, &found, err));
        if (ids.len > 0)
            buf_byte(&ids, ' ');
        buf_slice(&ids, found ? json_string(json_get(item.document, SLICE("id"))) : SLICE("?"));
    }
    return arena_copy(&t->arena, buf_view(&ids));
}

static inline void expect_ids(TestPartition *t, const char *path, const char *value,
                              const char *ids)
{
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    assert_slice(view_ids(t, view, path, value), slice_from_cstr(ids));
}

static inline bool view_has(const PartitionView *view, const char *path)
{
    IndexStep steps[TEST_STEPS_MAX];
    size_t count = parse_steps(path, steps);
    return partition_view_has_path(view, steps, count);
}

static inline void expect_path(TestPartition *t, const char *path, bool has)
{
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    if (view_has(view, path) != has)
        fail_msg("path '%s' is %susable", path, has ? "not " : "");
}

/* Another policy; the rest of the definition as in ENGINE_TEST. */
static inline void set_policy(TestPartition *t, const char *policy)
{
    test_set_schema(t, (TestSchema){.kind = PARTITION_HASH_V2,
                                    .paths = "/pk",
                                    .ttl_s = t->schema->default_ttl_s,
                                    .index = policy});
}
