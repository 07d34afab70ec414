/* page_fuzzing_int.h - what fuzz targets of pages share: a container with a few documents, made
 * once and never changed. Not part of the library. */
#pragma once

#include "query/eval/functions_testing_int.h"
#include "query/page/container_testing_int.h"
#include "query/page/page_random_int.h"

enum { FUZZ_CONTAINERS = ARRAY_COUNT(RANDOM_POLICIES), FUZZ_DOCUMENTS = 40, FUZZ_PAGES_MAX = 60 };

/* One for each policy; the odd ones have three partitions. */
typedef struct FuzzContainers {
    TestContainer list[FUZZ_CONTAINERS];
} FuzzContainers;

static inline void fuzz_fill(TestContainer *t, uint64_t seed)
{
    Random random;
    random_init(&random, seed);
    for (uint64_t i = 0; i < FUZZ_DOCUMENTS; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        AUTO(buf_done) Buf text;
        buf_init(&text, 64 << 10);
        random_document(&random, i, false, &text);
        test_insert(t, arena_cstr(&arena, buf_view(&text)));
    }
}

/* They live as long as the process: a fuzz target has no other place to keep them. */
static inline FuzzContainers *fuzz_containers(void)
{
    static FuzzContainers *made;
    if (made == NULL) {
        made = MEM_NEW(FuzzContainers);
        for (size_t i = 0; i < FUZZ_CONTAINERS; i++) {
            test_container_open(&made->list[i], (TestOptions){.policy = RANDOM_POLICIES[i],
                                                              .partitions = i % 2 == 0 ? 1 : 3});
            fuzz_fill(&made->list[i], i);
        }
    }
    return made;
}

/* Runs pages until there are no more, with what a client could ask for. */
typedef struct FuzzAsked {
    Slice position;
    Json resume_filter;
    uint32_t items_max;
    uint64_t page_us; /* 0 for no limit */
    uint64_t index_keys_max;
    Random *plan_random;
} FuzzAsked;

static inline void fuzz_pages(TestContainer *t, const Query *query, FuzzAsked asked, Arena *arena)
{
    for (int page = 0; page < FUZZ_PAGES_MAX; page++) {
        AUTO(buf_done) Buf text;
        buf_init(&text, 1 << 20);
        buf_byte(&text, '[');
        TestTargets targets;
        test_targets_all(t, &targets);
        const Clock *clock = &t->clock.clock;
        atomic_store(&t->clock.step_us, asked.page_us == 0 ? 0 : 10);
        FakeFunctions fake = {0};
        QueryPageOptions options = {
            .targets = targets.list,
            .target_count = targets.count,
            .schema = t->schema,
            .position = asked.position,
            .resume_filter = asked.resume_filter,
            .items_max = asked.items_max,
            .bytes_max = 100000,
            .deadline_us = asked.page_us == 0 ? 0 : clock_monotonic_us(clock) + asked.page_us,
            .steps_max = 300000,
            .memory_max = (size_t)8 << 20,
            .index_keys_max = asked.index_keys_max,
            .clock = clock,
            .plan_random = asked.plan_random,
            .wants_explain = true,
            .wants_indexes = true,
            .functions = &FAKE_FUNCTIONS,
            .functions_context = &fake,
        };
        QueryPage out;
        Error err;
        Status status = query_page(query, &options, arena, &text, &out, &err);
        test_targets_close(&targets);
        bool is_known = status == STATUS_OK || status == STATUS_BAD_REQUEST ||
                        status == STATUS_TOO_LARGE || status == STATUS_TIMEOUT; /* udf.hangs() */
        ASSERT(is_known);
        if (status != STATUS_OK)
            return;
        buf_byte(&text, ']');
        Json results;
        ASSERT(json_parse(arena, buf_view(&text), &results, &err) == STATUS_OK);
        ASSERT(json_count(results) == out.count && out.count <= asked.items_max);
        if (out.is_done)
            return;
        ASSERT(out.position.len > 0);
        asked.position = out.position;
    }
}
