/* pg_bench_test.c - how fast a real server and its standby take appends.
 *
 * As a test it runs for a moment, and what it has appended must be in the log. With ORRERY_BENCH_MS
 * in the environment each row is measured for that long and printed: see README.md.
 */
#include "journal/postgres/pg_testing_int.h"

#include <stdatomic.h>
#include <sys/resource.h>

enum { CONNECTIONS_MAX = 4, SIZE_MAX_BYTES = 512 << 10 };

typedef struct Writer {
    Journal *journal;
    JournalLane lane;
    uint64_t space;
    size_t size;
    const char *bytes;
    uint64_t until_us;
    JournalPlace place;
    uint64_t done;
    pthread_t thread;
} Writer;

static void *write_all(void *ctx)
{
    Writer *writer = ctx;
    while (clock_monotonic_us(clock_real()) < writer->until_us) {
        JournalAppend one = {.space = writer->space,
                             .before = writer->place,
                             .epoch = 1,
                             .bytes = slice_make(writer->bytes, writer->size)};
        Error error;
        if (journal_append(writer->journal, writer->lane, &one, 1, after_ms(60000), &error) !=
                STATUS_OK ||
            one.outcome != APPEND_DONE)
            return writer;
        writer->place = one.after;
        writer->done++;
    }
    return NULL;
}

static uint64_t cpu_us(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void measure(Journal *const *journals, Writer *writers, unsigned count, size_t size,
                    const char *bytes, uint64_t ms)
{
    uint64_t cpu = cpu_us();
    uint64_t begin_us = clock_monotonic_us(clock_real());
    uint64_t before = 0;
    uint64_t after = 0;
    for (unsigned i = 0; i < count; i++) {
        Writer *writer = &writers[i];
        before += writer->done;
        writer->journal = journals[i / 2];
        writer->lane = i % 2 == 0 ? JOURNAL_LANE_APPEND_0 : JOURNAL_LANE_APPEND_1;
        writer->size = size;
        writer->bytes = bytes;
        writer->until_us = begin_us + ms * 1000;
        assert_ok(thread_start(&writer->thread, "writer", write_all, writer, err));
    }
    for (unsigned i = 0; i < count; i++) {
        void *failed = NULL;
        pthread_join(writers[i].thread, &failed);
        assert_null(failed);
        after += writers[i].done;
    }
    uint64_t took_us = clock_monotonic_us(clock_real()) - begin_us;
    uint64_t done = after - before;
    assert_true(done > 0);
    print_message("%u connections, %3zu KB: %6.0f appends/s, %6.1f MB/s, %5.0f us of the client's "
                  "CPU an append\n",
                  count, size >> 10, (double)done * 1e6 / (double)took_us,
                  (double)(done * size) / (double)took_us, (double)(cpu_us() - cpu) / (double)done);
}

static void appends_go_through_several_connections(void **state)
{
    (void)state;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets it */
    const char *text = getenv("ORRERY_BENCH_MS");
    uint64_t ms = text == NULL ? 50 : strtoull(text, NULL, 10);
    AUTO(pair_end) PostgresPair pair = {0};
    pair_start(&pair);
    Journal *journals[CONNECTIONS_MAX / 2] = {NULL};
    Writer writers[CONNECTIONS_MAX] = {0};
    for (unsigned i = 0; i < CONNECTIONS_MAX / 2; i++) {
        journals[i] = open_postgres(pair_url(&pair, "?sslmode=disable"), 0);
        (void)join_as(journals[i], i == 0 ? "a" : "b", 0);
    }
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        writers[i].space = 1 + i;
        writers[i].place = (JournalPlace){.epoch = 1};
        create_space(journals[i / 2], 1 + i);
    }
    static const size_t sizes[] = {2 << 10, 32 << 10, 128 << 10, SIZE_MAX_BYTES};
    char *bytes = arena_zalloc(&test_arena, SIZE_MAX_BYTES);
    for (size_t i = 0; i < SIZE_MAX_BYTES; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        for (unsigned count = 1; count <= CONNECTIONS_MAX; count *= 2)
            measure(journals, writers, count, sizes[i], bytes, ms);
    }
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        JournalOwner owner = owner_of(journals[i / 2], 1 + i);
        assert_int_equal(owner.tail.seq, writers[i].done);
        assert_memory_equal(&owner.tail.chain, &writers[i].place.chain, JOURNAL_CHAIN_BYTES);
    }
    journal_close(journals[0]);
    journal_close(journals[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(appends_go_through_several_connections, test_arena_setup,
                                        test_arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
