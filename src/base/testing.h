/* testing.h - what the tests of all folders share. For tests only: no part of the product includes
 * it.
 *
 * A test includes this file instead of cmocka's header, which wants four headers of the C library
 * before itself.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/mem.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- assertions ---- */

/* 'call' has an 'err' to pass as its last argument; if it fails, its message is shown. */
#define assert_ok(call)                                                    \
    do {                                                                   \
        Error assert_err_ = {0};                                           \
        Error *err = &assert_err_;                                         \
        Status assert_result_ = (call);                                    \
        if (assert_result_ != STATUS_OK)                                   \
            fail_msg("%s: %s", status_code(assert_result_), err->message); \
    } while (0)

#define assert_status(actual, expected)                                          \
    do {                                                                         \
        Status assert_actual_ = (actual);                                        \
        Status assert_expected_ = (expected);                                    \
        if (assert_actual_ != assert_expected_)                                  \
            fail_msg("expected %s, found %s: %s", status_code(assert_expected_), \
                     status_code(assert_actual_), #actual);                      \
    } while (0)

#define assert_slice(actual, expected)                                             \
    do {                                                                           \
        Slice assert_actual_ = (actual);                                           \
        Slice assert_expected_ = (expected);                                       \
        if (!slice_equal(assert_actual_, assert_expected_))                        \
            fail_msg("expected '%.*s', found '%.*s'", SLICE_ARG(assert_expected_), \
                     SLICE_ARG(assert_actual_));                                   \
    } while (0)

#define assert_slice_text(actual, expected) assert_slice((actual), slice_from_cstr(expected))

/* ---- rows ---- */

/* The text of a row, in which ' stands for ", so that JSON in C stays readable. Terminated. */
static inline Slice row_text(Arena *arena, const char *row)
{
    char *text = arena_cstr(arena, slice_from_cstr(row));
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    return slice_from_cstr(text);
}

/* ---- memory ---- */

/* An arena that is fresh for each test: cmocka_unit_test_setup_teardown with these two. */
static Arena test_arena UNUSED;

static inline int test_arena_setup(void **state)
{
    (void)state;
    arena_init(&test_arena, 64 << 10);
    return 0;
}

static inline int test_arena_teardown(void **state)
{
    (void)state;
    arena_done(&test_arena);
    return 0;
}

/* ---- time ---- */

static inline void sleep_ms(uint32_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

/* ---- folders ---- */

static inline int test_remove_entry(const char *path, const struct stat *info, int kind,
                                    struct FTW *ftw)
{
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void test_remove_folder(const char *path)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a test removes one folder at a time */
    (void)nftw(path, test_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A new folder of the test's own; its end removes all that is in it. */
typedef struct TestFolder {
    char path[64]; /* "" if there is none */
} TestFolder;

static inline void test_folder_init(TestFolder *folder)
{
    (void)snprintf(folder->path, sizeof(folder->path), "/tmp/orrery_test_XXXXXX");
    assert_non_null(mkdtemp(folder->path));
}

static inline void test_folder_done(TestFolder *folder)
{
    if (folder->path[0] != '\0')
        test_remove_folder(folder->path);
    folder->path[0] = '\0';
}
DEFINE_AUTO_VALUE(TestFolder, test_folder_done)

/* ---- variants ---- */

/* How to run tests once for each variant of what they test, such as each engine of a store. The
 * tests are an array of the caller's own type, whose first member is the test's name. */
typedef struct TestVariants {
    const char *const *names; /* of the variants */
    size_t count;
    void (*run)(size_t variant, const void *test);
} TestVariants;

typedef struct TestVariantCase {
    const TestVariants *variants;
    size_t variant;
    const void *test;
    char name[128];
} TestVariantCase;

static inline void test_run_case(void **state)
{
    const TestVariantCase *one = *state;
    one->variants->run(one->variant, one->test);
}

static inline int test_run_variants(const char *group, const TestVariants *variants,
                                    const void *tests, size_t test_size, size_t test_count)
{
    size_t total = test_count * variants->count;
    TestVariantCase *cases = MEM_NEW_ARRAY(TestVariantCase, total);
    struct CMUnitTest *units = MEM_NEW_ARRAY(struct CMUnitTest, total);
    for (size_t i = 0; i < total; i++) {
        TestVariantCase *one = &cases[i];
        one->variants = variants;
        one->variant = i / test_count;
        one->test = (const char *)tests + i % test_count * test_size;
        (void)snprintf(one->name, sizeof(one->name), "%s: %s", variants->names[one->variant],
                       *(const char *const *)one->test);
        units[i] = (struct CMUnitTest){
            .name = one->name, .test_func = test_run_case, .initial_state = one};
    }
    int failed = _cmocka_run_group_tests(group, units, total, NULL, NULL);
    mem_free(cases);
    mem_free(units);
    return failed;
}
