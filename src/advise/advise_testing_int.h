/* advise_testing_int.h - what the tests of this folder share: samples of which the right key is
 * known. Not part of the library. */
#pragma once

#include "advise/key_advice.h"
#include "advise/sample_reader.h"
#include "json/json_testing.h"

#include <stdio.h>

/* Adds one item, made as printf does it. */
PRINTF_LIKE(2, 3) static inline void add_item(Sample *sample, const char *format, ...)
{
    char text[2000];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert_true(len > 0 && (size_t)len < sizeof(text));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Error err;
    assert_int_equal(sample_add(sample, text_json(&arena, slice_make(text, (size_t)len)), &err),
                     STATUS_OK);
}

static inline void begin_sample(Sample *sample)
{
    sample_init(sample, (SampleLimits){SAMPLE_ITEMS_DEFAULT, SAMPLE_BYTES_MAX});
}

static inline void end_sample(Sample *sample)
{
    Error err;
    assert_int_equal(sample_finish(sample, (PropertyPath){0}, &err), STATUS_OK);
}

enum { GENERATED = 4000, FIRST_TS = 1767225600 /* 2026-01-01 */, STEP_S = 600 };

/* Users who are all alike; a few countries; a status. */
static inline void generate_users(Sample *sample)
{
    Random random;
    random_init(&random, 1);
    begin_sample(sample);
    for (int i = 0; i < GENERATED; i++)
        add_item(sample,
                 "{\"id\":\"o%d\",\"userId\":\"u%d\",\"country\":\"c%d\",\"status\":\"s%d\","
                 "\"price\":%d.5,\"_ts\":%d}",
                 i, (int)random_below(&random, 1000), (int)random_below(&random, 5),
                 (int)random_below(&random, 3), i, FIRST_TS + i * STEP_S);
    end_sample(sample);
}

/* The same, but one user has a third of everything. */
static inline void generate_celebrity(Sample *sample)
{
    Random random;
    random_init(&random, 2);
    begin_sample(sample);
    for (int i = 0; i < GENERATED; i++) {
        int user = random_below(&random, 3) == 0 ? 0 : 1 + (int)random_below(&random, 1000);
        add_item(sample, "{\"id\":\"o%d\",\"userId\":\"u%d\",\"_ts\":%d}", i, user,
                 FIRST_TS + i * STEP_S);
    }
    end_sample(sample);
}

/* Devices that send one value after the other; each day is a key that only one day uses. */
static inline void generate_series(Sample *sample)
{
    Random random;
    random_init(&random, 3);
    begin_sample(sample);
    for (int i = 0; i < GENERATED; i++)
        add_item(sample,
                 "{\"id\":\"m%d\",\"deviceId\":\"d%d\",\"day\":\"day-%d\",\"at\":%d,\"_ts\":%d}", i,
                 (int)random_below(&random, 500), i * STEP_S / 86400, FIRST_TS + i * STEP_S,
                 FIRST_TS + i * STEP_S);
    end_sample(sample);
}

/* Six tenants, one of them with half of everything, and users of theirs. */
static inline void generate_tenants(Sample *sample)
{
    Random random;
    random_init(&random, 4);
    begin_sample(sample);
    for (int i = 0; i < GENERATED; i++) {
        int tenant = random_below(&random, 2) == 0 ? 0 : 1 + (int)random_below(&random, 5);
        add_item(sample,
                 "{\"id\":\"e%d\",\"tenantId\":\"t%d\",\"userId\":\"u%d\",\"orderId\":\"r%d\","
                 "\"_ts\":%d}",
                 i, tenant, tenant * 1000 + (int)random_below(&random, 300), i / 3,
                 FIRST_TS + i * STEP_S);
    }
    end_sample(sample);
}

static inline KeyCandidate key_of(Arena *arena, const char *text)
{
    KeyCandidate key;
    Error err;
    assert_int_equal(key_candidate_parse(arena, slice_from_cstr(text), &key, &err), STATUS_OK);
    return key;
}

static inline const IndexPolicy *default_policy(Arena *arena)
{
    IndexPolicy *policy = NULL;
    Error err;
    assert_int_equal(index_policy_new(arena, JSON_NONE, NULL, 0, &policy, &err), STATUS_OK);
    return policy;
}

static inline KeyAdviceOptions key_advice_options(Arena *arena)
{
    return (KeyAdviceOptions){
        .partitions = 10,
        .policy = default_policy(arena),
        .model = charge_model_default(),
        .now_s = FIRST_TS,
    };
}

static inline const AdvisedKey *find_advised(const Advice *advice, const char *name)
{
    for (size_t i = 0; i < advice->key_count; i++) {
        if (slice_equal(advice->keys[i]->key.name, slice_from_cstr(name)))
            return advice->keys[i];
    }
    return NULL;
}

static inline Workload workload_of(Arena *arena, const char *text)
{
    Workload work;
    Error err;
    if (workload_parse(arena, slice_from_cstr(text), &work, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.message);
    return work;
}
