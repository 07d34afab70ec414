/* move_testing_int.h - for tests of moves: items of a container, by their partition keys, and what
 * must hold of them whatever has become of its partitions.
 */
#pragma once

#include "catalog/testing_int.h"
#include "partition/partition_check.h"

#include <time.h>

static inline void item_epk(const Container *container, int key, Epk *out)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%d", key);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256);
    JsonBuilder b;
    json_build(&b, &arena);
    json_add_string(&b, slice_make(text, (size_t)len));
    PartitionKey value = {.count = 1};
    value.parts[0] = json_built(&b);
    epk_make(container->partition_key.kind, &value, out);
}

static inline Partition *partition_of(const Container *container, const Epk *epk)
{
    size_t at = 0;
    while (at + 1 < container->range_count &&
           slice_compare(container->ranges[at + 1].min_bytes, epk_slice(epk)) <= 0)
        at++;
    return handle_local(container_handle_at(container, at));
}

/* The item "1" of the key, with this number and so many bytes more; a number of 0 deletes it. */
static inline void fill_item(TestWrite *w, const Container *container, int key, int number,
                             int bytes)
{
    char row[128 + 4096];
    (void)snprintf(row, sizeof(row), "{'pk':'%d','id':'1','n':%d,'t':'%0*d'}", key, number, bytes,
                   0);
    test_write_init(w, row);
    w->item.op = number == 0 ? ITEM_DELETE : ITEM_UPSERT;
    item_epk(container, key, &w->item.epk);
}

/* Waits for a write; if the partition is gone, the write is routed again by the newest map. */
static inline Status finish_item(TestCatalog *t, TestWrite *w, uint32_t database, uint32_t number)
{
    test_write_wait(w);
    while (w->write.status == STATUS_GONE) {
        const Container *container = test_container(t, database, number);
        if (container == NULL)
            return STATUS_NOT_FOUND;
        Error err;
        Status status = partition_submit(partition_of(container, &w->item.epk), &w->write, &err);
        if (status == STATUS_GONE) {
            (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
            continue;
        }
        if (status != STATUS_OK)
            return status;
        test_write_wait(w);
    }
    return w->write.status != STATUS_OK ? w->write.status : w->item.status;
}

static inline Status put_item(TestCatalog *t, uint32_t database, uint32_t number, int key, int n,
                              int bytes)
{
    const Container *container = test_container(t, database, number);
    AUTO(test_write_done) TestWrite w;
    fill_item(&w, container, key, n, bytes);
    Error err;
    Status status = partition_submit(partition_of(container, &w.item.epk), &w.write, &err);
    if (status == STATUS_GONE) {
        w.write.status = STATUS_GONE;
        latch_post(&w.answered);
    } else if (status != STATUS_OK) {
        return status;
    }
    return finish_item(t, &w, database, number);
}

/* The item's number; 0 if there is none. */
static inline int get_item(const Container *container, int key)
{
    Epk epk;
    item_epk(container, key, &epk);
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    Item item;
    assert_ok(partition_get(partition_of(container, &epk), container->schema, &epk, SLICE("1"),
                            STORE_READ_ANY, &item, &value, &found, err));
    return found == STORE_FOUND ? (int)json_number(json_get(item.document, SLICE("n"))) : 0;
}

static inline void fail_finding(void *ctx, const char *finding)
{
    (void)ctx;
    fail_msg("%s", finding);
}

static inline void check_partitions(const Container *container)
{
    CheckReport report = {.found = fail_finding};
    for (size_t i = 0; i < container->range_count; i++) {
        CheckTotals totals = {0};
        assert_ok(partition_check(handle_local(container_handle_at(container, i)),
                                  container->schema, &report, &totals, err));
    }
}
