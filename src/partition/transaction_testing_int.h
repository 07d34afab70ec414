/* transaction_testing_int.h - what the tests of transactions share: operations in one call. */
#pragma once

#include "partition/partition_check_testing_int.h"
#include "partition/transaction_int.h"

#define FAR_US ((uint64_t)60 * 1000000) /* from now: none of these tests takes so long */

static inline uint64_t in_us(const TestPartition *t, uint64_t us)
{
    return clock_monotonic_us(&t->clock.clock) + us;
}

static inline PartitionTransaction *test_begin(TestPartition *t, const char *pk)
{
    PartitionTransaction *transaction = NULL;
    Epk epk;
    make_epk(&t->arena, t->schema, pk, &epk);
    assert_ok(
        transaction_begin(t->partition, t->schema, &epk, in_us(t, FAR_US), &transaction, err));
    return transaction;
}

static inline Status apply_row(PartitionTransaction *transaction, TestWrite *w, ItemOp op,
                               const char *row)
{
    ItemWrite *item = add_document(w, op, row);
    transaction_apply(transaction, item, &w->arena);
    return item->status;
}

static inline Status apply_id(PartitionTransaction *transaction, TestWrite *w, ItemOp op,
                              const char *pk, const char *id)
{
    ItemWrite *item = add_id(w, op, pk, id);
    transaction_apply(transaction, item, &w->arena);
    return item->status;
}

static inline void test_commit(PartitionTransaction *transaction)
{
    uint64_t lsn = 0;
    assert_ok(transaction_commit(transaction, &lsn, err));
    transaction_end(transaction);
}

static inline Slice etag_of(Arena *arena, const Item *item)
{
    char etag[ITEM_ETAG_LEN];
    item_etag(item, etag);
    return arena_copy(arena, slice_make(etag, sizeof(etag)));
}
