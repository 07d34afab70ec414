/* workload_fuzz.c - any file of queries, and any answer of a server about recorded ones: refused,
 * or routed with keys of every kind, and turned into advice about the index. */
#include "advise/key_queries.h"
#include "advise/policy_advice.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_keys(const Workload *work, Arena *arena)
{
    static const char *const texts[] = {"/a", "/id", "/a,/b", "/a,/b,/id"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        for (KeyKind kind = KEY_SINGLE; kind <= KEY_SUFFIXED; kind++) {
            KeyCandidate key;
            Error err;
            require(key_candidate_parse(arena, slice_from_cstr(texts[i]), &key, &err) == STATUS_OK);
            if ((kind == KEY_SINGLE || kind == KEY_SUFFIXED) && key.path_count > 1)
                continue;
            key.kind = kind;
            key.suffixes = kind == KEY_SUFFIXED ? 10 : 0;
            KeyLayout layout = {.prefix_partitions = {2, 1}};
            KeyQueries queries;
            key_queries_make(&key, &layout, work, 7, charge_model_default(), arena, &queries);
            require(queries.one_share >= 0 && queries.one_share <= 1 + 1e-9);
            require(queries.visits_mean <= 7 + 1e-6);
        }
    }
}

static void check_policy(const Workload *work, Arena *arena)
{
    static const Slice item = SLICE_INIT("{\"id\":\"1\",\"a\":1,\"b\":{\"c\":[1,2]}}");
    AUTO(sample_done) Sample sample;
    sample_init(&sample, (SampleLimits){SAMPLE_ITEMS_MIN, 1 << 16});
    Json document;
    Error err;
    require(json_parse(arena, item, &document, &err) == STATUS_OK);
    require(sample_add(&sample, document, &err) == STATUS_OK);
    require(sample_finish(&sample, (PropertyPath){0}, &err) == STATUS_OK);
    PathTable paths;
    path_stats_collect(&sample, arena, &paths);
    IndexPolicy *policy = NULL;
    require(index_policy_new(arena, JSON_NONE, NULL, 0, &policy, &err) == STATUS_OK);
    KeyCandidate key = {0};
    PolicyAdvice advice;
    policy_advice_make(&paths, &sample, work, policy, &key, charge_model_default(), arena, &advice);
    require(advice.unused_count <= paths.count);
    require(advice.is_known || advice.unused_count == 0);
}

static void check_recorded(Slice text, Arena *arena)
{
    static const Slice name = SLICE_INIT("a");
    static const PropertyPath paths[] = {{&name, 1}, {&name, 1}};
    Json answer;
    Workload work;
    Error err;
    if (json_parse(arena, text, &answer, &err) != STATUS_OK ||
        workload_recorded(arena, answer, paths, ARRAY_COUNT(paths), &work, &err) != STATUS_OK ||
        work.count == 0)
        return;
    check_keys(&work, arena);
    check_policy(&work, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Workload work;
    Error err;
    check_recorded(slice_make(data, size), &arena);
    if (workload_parse(&arena, slice_make(data, size), &work, &err) != STATUS_OK)
        return 0;
    require(work.count > 0 && work.count <= WORKLOAD_QUERIES_MAX);
    check_keys(&work, &arena);
    check_policy(&work, &arena);
    return 0;
}
