/* Tests of provision.c. */
/* Rows leave out what they do not care about. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#include "throughput/provision.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static Slice text_or_absent(const char *text)
{
    return text == NULL ? SLICE_EMPTY : slice_from_cstr(text);
}

static void a_request_asks_for_whole_steps_within_the_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *manual;
        double autoscale; /* -1 if it is not sent */
        bool accepted;
        bool found;
        Provision expected;
    } ROWS[] = {
        {NULL, -1, true, false, {PROVISION_MANUAL, 0}},
        {"400", -1, true, true, {PROVISION_MANUAL, 400}},
        {" 500 ", -1, true, true, {PROVISION_MANUAL, 500}},
        {"1000000", -1, true, true, {PROVISION_MANUAL, 1000000}},
        {"399", -1, false, false, {0}},
        {"300", -1, false, false, {0}},
        {"450", -1, false, false, {0}},
        {"1000100", -1, false, false, {0}},
        {"0", -1, false, false, {0}},
        {"", -1, false, false, {0}},
        {"-400", -1, false, false, {0}},
        {"400.0", -1, false, false, {0}},
        {"4e2", -1, false, false, {0}},
        {"many", -1, false, false, {0}},
        {"4294967696", -1, false, false, {0}}, /* 2^32 + 400 */
        {"99999999999999999999", -1, false, false, {0}},
        {NULL, 1000, true, true, {PROVISION_AUTOSCALE, 1000}},
        {NULL, 4000, true, true, {PROVISION_AUTOSCALE, 4000}},
        {NULL, 1000000, true, true, {PROVISION_AUTOSCALE, 1000000}},
        {NULL, 0, false, false, {0}},
        {NULL, 400, false, false, {0}},
        {NULL, 1500, false, false, {0}},
        {NULL, 4000.5, false, false, {0}},
        {NULL, 1001000, false, false, {0}},
        {NULL, 1e300, false, false, {0}},
        {NULL, -4000, false, false, {0}},
        {NULL, INFINITY, false, false, {0}},
        {NULL, NAN, false, false, {0}},
        {"400", 4000, false, false, {0}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        Provision provision = {PROVISION_AUTOSCALE, 77};
        bool found = false;
        Error err;
        Status status = provision_parse(text_or_absent(ROWS[i].manual),
                                        ROWS[i].autoscale == -1 ? NULL : &ROWS[i].autoscale,
                                        &provision, &found, &err);
        print_message("row %zu: %s\n", i, status == STATUS_OK ? "accepted" : err.message);
        assert_int_equal(status, ROWS[i].accepted ? STATUS_OK : STATUS_BAD_REQUEST);
        if (!ROWS[i].accepted) {
            assert_int_equal(provision.ru, 77); /* an output is written only on success */
            continue;
        }
        assert_int_equal(found, ROWS[i].found);
        assert_int_equal(provision.mode, ROWS[i].expected.mode);
        assert_int_equal(provision.ru, ROWS[i].expected.ru);
    }
}

static void a_refusal_names_the_bounds_the_step_and_what_was_found(void **state)
{
    (void)state;
    Error err;
    ProvisionHistory history = {.ru_ever = 500000};
    Provision provision = {PROVISION_MANUAL, 4900};
    assert_int_equal(provision_check(&provision, &history, &err), STATUS_BAD_REQUEST);
    assert_string_equal(err.message,
                        "Requested throughput 4900 is less than required minimum throughput 5000. "
                        "The throughput must be between 5000 and 1000000 request units a second, "
                        "inclusive, in increments of 100; found '4900'.");

    provision = (Provision){PROVISION_AUTOSCALE, 11000};
    history = (ProvisionHistory){.is_fixed = true};
    assert_int_equal(provision_check(&provision, &history, &err), STATUS_BAD_REQUEST);
    assert_string_equal(err.message,
                        "The autoscale maximum throughput must be between 1000 and 10000 request "
                        "units a second, inclusive, in increments of 1000; found '11000'.");
}

static void the_minimum_follows_from_the_past_the_storage_and_the_sharing(void **state)
{
    (void)state;
    const uint64_t gb = UINT64_C(1) << 20;
    const struct {
        ProvisionHistory history;
        uint32_t manual, autoscale;
    } rows[] = {
        {{0}, 400, 1000},
        {{.ru_ever = 40000}, 400, 4000},
        {{.ru_ever = 40100}, 500, 5000}, /* 401 and 4,010, rounded up to a step */
        {{.ru_ever = 1000000}, 10000, 100000},
        {{.storage_kb = 1}, 400, 1000},
        {{.storage_kb = 400 * gb}, 400, 4000},
        {{.storage_kb = 400 * gb + 1}, 500, 5000},
        {{.storage_kb = 5000 * gb}, 5000, 50000},
        {{.ru_ever = 70000, .storage_kb = 600 * gb}, 700, 7000},
        {{.shared_containers = 25}, 400, 1000},
        {{.shared_containers = 26}, 500, 2000},
        {{.shared_containers = 30, .ru_ever = 100000}, 1000, 10000},
        {{.is_fixed = true, .storage_kb = 20000 * gb}, 10000, 10000},
        {{.storage_kb = 2000000 * gb, .shared_containers = UINT32_MAX}, 1000000, 1000000},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); ++i) {
        print_message("row %zu\n", i);
        assert_int_equal(provision_minimum_ru(PROVISION_MANUAL, &rows[i].history), rows[i].manual);
        assert_int_equal(provision_minimum_ru(PROVISION_AUTOSCALE, &rows[i].history),
                         rows[i].autoscale);
    }
}

static void the_minimum_itself_is_accepted_and_a_step_less_is_not(void **state)
{
    (void)state;
    Error err;
    for (uint32_t ever = 0; ever <= 1000000; ever += 12300) {
        for (int mode = PROVISION_MANUAL; mode <= PROVISION_AUTOSCALE; ++mode) {
            ProvisionHistory history = {.ru_ever = ever};
            Provision provision = {(ProvisionMode)mode, 0};
            provision.ru = provision_minimum_ru(provision.mode, &history);
            assert_int_equal(provision_check(&provision, &history, &err), STATUS_OK);
            provision.ru -= mode == PROVISION_MANUAL ? 100 : 1000;
            assert_int_equal(provision_check(&provision, &history, &err), STATUS_BAD_REQUEST);
        }
    }
}

static void throughput_decides_the_number_of_partitions(void **state)
{
    (void)state;
    static const struct {
        Provision provision;
        uint32_t floor, partitions, new_partitions;
    } ROWS[] = {
        {{PROVISION_MANUAL, 0}, 0, 1, 1},
        {{PROVISION_MANUAL, 400}, 400, 1, 1},
        {{PROVISION_MANUAL, 6000}, 6000, 1, 1},
        {{PROVISION_MANUAL, 6100}, 6100, 1, 2},
        {{PROVISION_MANUAL, 10000}, 10000, 1, 2},
        {{PROVISION_MANUAL, 10100}, 10100, 2, 2},
        {{PROVISION_MANUAL, 25000}, 25000, 3, 5},
        {{PROVISION_MANUAL, 30000}, 30000, 3, 5},
        {{PROVISION_MANUAL, 1000000}, 1000000, 100, 167},
        {{PROVISION_AUTOSCALE, 1000}, 100, 1, 1},
        {{PROVISION_AUTOSCALE, 10000}, 1000, 1, 1},
        {{PROVISION_AUTOSCALE, 11000}, 1100, 2, 2},
        {{PROVISION_AUTOSCALE, 1000000}, 100000, 100, 100},
    };
    const ProvisionRules rules = PROVISION_RULES_DEFAULT;
    const ProvisionRules alike = {.partition_ru = PROVISION_PARTITION_RU};
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        assert_int_equal(provision_current_ru(&ROWS[i].provision, 0), ROWS[i].floor);
        assert_int_equal(provision_partitions(&ROWS[i].provision, &rules), ROWS[i].partitions);
        assert_int_equal(provision_partitions_new(&ROWS[i].provision, &rules),
                         ROWS[i].new_partitions);
        assert_int_equal(provision_partitions_new(&ROWS[i].provision, &alike), ROWS[i].partitions);
    }
}

static void partitions_have_equal_shares_and_as_many_as_one_serves(void **state)
{
    (void)state;
    static const struct {
        Provision provision;
        uint32_t partition_ru, partitions;
        uint64_t share;
    } rows[] = {
        {{PROVISION_MANUAL, 400}, 10000, 1, 40000},
        {{PROVISION_MANUAL, 400}, 400, 1, 40000},
        {{PROVISION_MANUAL, 500}, 400, 2, 25000},
        {{PROVISION_MANUAL, 4000}, 1000, 4, 100000},
        {{PROVISION_MANUAL, 25000}, 10000, 3, 833333},
        {{PROVISION_AUTOSCALE, 4000}, 2000, 2, 200000},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint32_t count = provision_partitions(
            &rows[i].provision, &(ProvisionRules){.partition_ru = rows[i].partition_ru});
        assert_int_equal(count, rows[i].partitions);
        assert_int_equal(provision_share(&rows[i].provision, count), rows[i].share);
    }
}

static void autoscale_follows_its_load_between_a_tenth_and_its_maximum(void **state)
{
    (void)state;
    static const struct {
        Provision provision;
        uint64_t used;
        uint32_t current;
    } rows[] = {
        {{PROVISION_AUTOSCALE, 4000}, 0, 400},     {{PROVISION_AUTOSCALE, 4000}, 400, 400},
        {{PROVISION_AUTOSCALE, 4000}, 401, 401},   {{PROVISION_AUTOSCALE, 4000}, 3999, 3999},
        {{PROVISION_AUTOSCALE, 4000}, 4000, 4000}, {{PROVISION_AUTOSCALE, 4000}, 99999, 4000},
        {{PROVISION_MANUAL, 4000}, 0, 4000},       {{PROVISION_MANUAL, 4000}, 99999, 4000},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(provision_current_ru(&rows[i].provision, rows[i].used), rows[i].current);
}

static void moving_to_the_other_mode_chooses_a_number_that_is_accepted(void **state)
{
    (void)state;
    static const struct {
        Provision from;
        ProvisionHistory history;
        uint32_t expected;
    } ROWS[] = {
        {{PROVISION_MANUAL, 400}, {.ru_ever = 400}, 1000},
        {{PROVISION_MANUAL, 1000}, {.ru_ever = 1000}, 1000},
        {{PROVISION_MANUAL, 4500}, {.ru_ever = 4500}, 5000},
        {{PROVISION_MANUAL, 500}, {.ru_ever = 50000}, 5000},
        {{PROVISION_MANUAL, 9900}, {.ru_ever = 9900, .is_fixed = true}, 10000},
        {{PROVISION_AUTOSCALE, 4000}, {.ru_ever = 4000}, 4000},
        {{PROVISION_AUTOSCALE, 1000000}, {.ru_ever = 1000000}, 1000000},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        ProvisionMode to =
            ROWS[i].from.mode == PROVISION_MANUAL ? PROVISION_AUTOSCALE : PROVISION_MANUAL;
        Provision provision = provision_migrate(&ROWS[i].from, to, &ROWS[i].history);
        Error err;
        assert_int_equal(provision.mode, to);
        assert_int_equal(provision.ru, ROWS[i].expected);
        assert_int_equal(provision_check(&provision, &ROWS[i].history, &err), STATUS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_asks_for_whole_steps_within_the_bounds),
        cmocka_unit_test(a_refusal_names_the_bounds_the_step_and_what_was_found),
        cmocka_unit_test(the_minimum_follows_from_the_past_the_storage_and_the_sharing),
        cmocka_unit_test(the_minimum_itself_is_accepted_and_a_step_less_is_not),
        cmocka_unit_test(throughput_decides_the_number_of_partitions),
        cmocka_unit_test(partitions_have_equal_shares_and_as_many_as_one_serves),
        cmocka_unit_test(autoscale_follows_its_load_between_a_tenth_and_its_maximum),
        cmocka_unit_test(moving_to_the_other_mode_chooses_a_number_that_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
