/* partition_stall_testing_int.h - for tests: writes that wait for the disk of the memory engine.
 * Not part of the library. */
#pragma once

#include "partition/partition_testing_int.h"

/* The schema of these tests: items that may have a TTL, and a unique key. */
#define MORTAL .ttl_s = -1, .unique = {"/u"}

static inline void fill_create(TestPartition *t, TestWrite *w, int id)
{
    char row[64];
    (void)snprintf(row, sizeof(row), "{'id':'%d','pk':'p','u':%d}", id, id);
    test_write_init(w, t, WRITE_ATOMIC);
    (void)add_document(w, ITEM_CREATE, row);
}

/* Brings one write to the point where it waits for the disk, so that others gather after it. */
static inline void stall_with(TestPartition *t, TestWrite *w)
{
    memory_store_stall(t->store);
    test_submit(t, w);
    memory_store_wait_stalled(t->store);
}
