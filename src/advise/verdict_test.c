/* verdict_test.c - the moment at which a measurement becomes a warning, and a warning a refusal. */
#include "advise/verdict.h"

#include "advise/advise_testing_int.h"

#include <math.h>

/* A layout against which nothing can be said. */
static KeyLayout perfect(void)
{
    return (KeyLayout){
        .distinct = 500,
        .largest_share = 0.01,
        .skew = 1.1,
        .split_skew = 1,
        .windows = 10,
        .write_skew = 1.2,
        .window_key_share = 0.01,
        .days_to_full = INFINITY,
        .together_share = NAN,
    };
}

typedef struct Change {
    size_t offset; /* in KeyLayout, of a double */
    double value;
    FindingCode code; /* FINDING_COUNT if nothing is found */
    FindingLevel level;
} Change;

static void judge(const char *key_text, const KeyLayout *layout, const KeyQueries *queries,
                  bool is_small, Arena *arena, Verdict *out)
{
    AUTO(sample_done) Sample sample;
    begin_sample(&sample);
    for (int i = 0; i < 1000; i++)
        add_item(&sample, "{\"a\":\"x\",\"status\":1}");
    end_sample(&sample);
    KeyCandidate key = key_of(arena, key_text);
    VerdictContext context = {
        .sample = &sample, .partitions = 10, .now_s = FIRST_TS, .is_small = is_small};
    verdict_make(&key, layout, queries, &context, arena, out);
}

static void expect(const Verdict *verdict, FindingCode code, FindingLevel level, size_t row)
{
    if (code == FINDING_COUNT) {
        if (verdict->count != 0)
            fail_msg("row %zu: found %s", row, finding_code(verdict->findings[0].code));
        return;
    }
    if (verdict->count == 0 || verdict->findings[0].code != code ||
        verdict->findings[0].level != level)
        fail_msg("row %zu: expected %s, %s", row, finding_code(code), finding_level(level));
}

static void limits_are_exact(void **state)
{
    (void)state;
#define FIELD(name) offsetof(KeyLayout, name)
    static const Change rows[] = {
        {FIELD(skew), 2.0, FINDING_COUNT, FINDING_NOTE},
        {FIELD(skew), 2.1, FINDING_UNEVEN_STORAGE, FINDING_WARNING},
        {FIELD(skew), 3.1, FINDING_UNEVEN_STORAGE, FINDING_REFUSAL},
        {FIELD(largest_share), 0.1, FINDING_COUNT, FINDING_NOTE},
        {FIELD(largest_share), 0.11, FINDING_HOT_KEY, FINDING_WARNING},
        {FIELD(largest_share), 0.21, FINDING_HOT_KEY, FINDING_REFUSAL},
        {FIELD(days_to_full), 5 * 365.0, FINDING_COUNT, FINDING_NOTE},
        {FIELD(days_to_full), 1000, FINDING_FULL_SOON, FINDING_WARNING},
        {FIELD(days_to_full), 300, FINDING_FULL_SOON, FINDING_REFUSAL},
        {FIELD(days_to_full), NAN, FINDING_COUNT, FINDING_NOTE},
        {FIELD(together_share), 1, FINDING_COUNT, FINDING_NOTE},
        {FIELD(together_share), 0.9, FINDING_SPLIT_TRANSACTIONS, FINDING_WARNING},
        {FIELD(changed_share), 0.01, FINDING_VALUE_CHANGES, FINDING_REFUSAL},
    };
#undef FIELD
    double best = 0;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        KeyLayout layout = perfect();
        memcpy((char *)&layout + rows[i].offset, &rows[i].value, sizeof(double));
        Verdict verdict;
        judge("/a", &layout, NULL, false, &arena, &verdict);
        expect(&verdict, rows[i].code, rows[i].level, i);
        if (verdict.count == 0)
            best = verdict.score;
        else
            assert_true(verdict.score < best);
    }
}

static void counts_have_limits_too(void **state)
{
    (void)state;
    static const struct {
        uint64_t distinct;
        uint64_t missing;
        FindingCode code;
        FindingLevel level;
    } rows[] = {
        {100, 0, FINDING_COUNT, FINDING_NOTE},
        {99, 0, FINDING_FEW_VALUES, FINDING_WARNING},
        {10, 0, FINDING_FEW_VALUES, FINDING_WARNING},
        {9, 0, FINDING_FEW_VALUES, FINDING_REFUSAL},
        {950, 0, FINDING_ONE_ITEM_PER_KEY, FINDING_NOTE},
        {500, 1, FINDING_MISSING_VALUES, FINDING_WARNING},
        {500, 51, FINDING_MISSING_VALUES, FINDING_REFUSAL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        KeyLayout layout = perfect();
        layout.distinct = rows[i].distinct;
        layout.missing = rows[i].missing;
        Verdict verdict;
        judge("/a", &layout, NULL, false, &arena, &verdict);
        expect(&verdict, rows[i].code, rows[i].level, i);
    }
}

static void hot_spots_move(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    KeyLayout layout = perfect();
    layout.window_key_share = 0.5;
    layout.window_moves = 9;
    Verdict verdict;
    judge("/a", &layout, NULL, false, &arena, &verdict);
    expect(&verdict, FINDING_MOVING_HOT_SPOT, FINDING_REFUSAL, 0);
    layout.window_moves = 0; /* always the same value: that is a hot key, not a moving one */
    judge("/a", &layout, NULL, false, &arena, &verdict);
    assert_false(verdict_has(&verdict, FINDING_MOVING_HOT_SPOT));
}

static void queries_count(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    KeyLayout layout = perfect();
    KeyQueries good = {.one_share = 1, .visits_mean = 1, .look_ru_s = 2.28, .least_ru_s = 2.28};
    KeyQueries bad = {.one_share = 0.4, .visits_mean = 6, .look_ru_s = 13.7, .least_ru_s = 2.28};
    Verdict with_good;
    Verdict with_bad;
    judge("/a", &layout, &good, false, &arena, &with_good);
    judge("/a", &layout, &bad, false, &arena, &with_bad);
    assert_int_equal(with_good.count, 0);
    expect(&with_bad, FINDING_QUERIES_FAN_OUT, FINDING_WARNING, 0);
    assert_true(with_good.score > 1.5 * with_bad.score);
}

static void in_a_small_container_spread_does_not_matter(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    KeyLayout layout = perfect();
    layout.distinct = 2;
    layout.skew = 5;
    layout.largest_share = 0.5;
    Verdict verdict;
    judge("/a", &layout, NULL, true, &arena, &verdict);
    assert_int_equal(verdict.worst, FINDING_NOTE);
    assert_true(verdict_has(&verdict, FINDING_SMALL_CONTAINER));
    assert_true(verdict.score > 99);
    judge("/status", &layout, NULL, true, &arena, &verdict); /* but it must not change */
    expect(&verdict, FINDING_MAY_CHANGE, FINDING_WARNING, 0);
}

static void every_finding_has_a_code(void **state)
{
    (void)state;
    for (int i = 0; i < FINDING_COUNT; i++) {
        assert_true(strlen(finding_code((FindingCode)i)) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(finding_code((FindingCode)i), finding_code((FindingCode)j));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(counts_have_limits_too),
        cmocka_unit_test(hot_spots_move),
        cmocka_unit_test(queries_count),
        cmocka_unit_test(in_a_small_container_spread_does_not_matter),
        cmocka_unit_test(every_finding_has_a_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
