/* partition_rebuild_testing_int.h - for tests: items whose index is rebuilt, and writes that
 * disturb it. */
#pragma once

#include "base/random.h"
#include "partition/partition_index_testing_int.h"

/* Rounds at random are done in full with the address sanitizer. The thread sanitizer makes each of
 * them several times as long, and threads are not what they are about: it gets every other one. */
#ifdef __SANITIZE_THREAD__
enum { ROUNDS_SHARE = 2 };
#else
enum { ROUNDS_SHARE = 1 };
#endif

/* Items number 'from' to 'to': 'n' has ten values, 'u' is each item's own. */
static inline void create_items(TestPartition *t, int from, int to)
{
    for (int i = from; i < to;) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_CONTINUE);
        for (; i < to && w.write.count < TEST_OPS_MAX; i++) {
            char row[128];
            (void)snprintf(row, sizeof(row), "{'id':'i%d','pk':'p%d','n':%d,'u':'v%d'}", i, i % 5,
                           i % 10, i);
            (void)add_document(&w, ITEM_CREATE, row);
        }
        test_run(t, &w);
        for (size_t k = 0; k < w.write.count; k++)
            assert_status(w.items[k].status, STATUS_OK);
    }
}

static inline uint64_t count_with(TestPartition *t, const char *path, const char *value)
{
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    return view_set(t, view, path, value).count;
}

/* One random write to the items of create_items. */
static inline void disturb(TestPartition *t, Random *random, int items)
{
    char row[128];
    char id[16];
    char pk[16];
    int i = (int)random_below(random, (uint64_t)items);
    (void)snprintf(row, sizeof(row), "{'id':'i%d','pk':'p%d','n':%d,'u':'w%d'}", i, i % 5,
                   (int)random_below(random, 10), i);
    (void)snprintf(id, sizeof(id), "i%d", i);
    (void)snprintf(pk, sizeof(pk), "p%d", i % 5);
    if (random_below(random, 4) == 0)
        (void)run_id(t, ITEM_DELETE, pk, id);
    else
        assert_status(run_document(t, ITEM_UPSERT, row), STATUS_OK);
}
