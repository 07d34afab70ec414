/* terms.c - see terms.h. The walk over documents is in terms_walk.c.
 *
 * A batch keeps what changed as entries with a sign. An item that changes twice has the entries of
 * both changes. Each change is settled by itself, so the sum of the signs of a term is what changed
 * in the end (I8): +1, -1, or nothing.
 */
#include "index/terms.h"

#include "base/array.h"
#include "index/set.h"
#include "index/terms_int.h"

struct TermsBatch {
    Collector collector; /* its sure entries are those of the batch */
    uint64_t *numbers;   /* of the items, by Entry.item */
    size_t item_count;
    size_t item_capacity;
    bool is_unsorted; /* a number is less than the one before */
};

/* The changes of one chunk. */
typedef struct ChunkChange {
    uint16_t *adds;
    uint16_t *removes;
    size_t add_count;
    size_t remove_count;
} ChunkChange;

void terms_of(Arena *arena, const IndexPolicy *policy, HashKey key, Json document,
              const TermSystem *system, TermList *out)
{
    Collector c;
    collect_init(&c, arena, key);
    c.policy = policy;
    c.sign = 1;
    c.all_loose = true;
    collect_document(&c, document, system);
    collect_settle(&c, true);
    out->count = c.loose.count;
    out->terms = arena_alloc(arena, c.loose.count * sizeof(Term));
    for (size_t i = 0; i < c.loose.count; ++i) {
        const Entry *entry = &c.loose.entries[i];
        out->terms[i] = (Term){.path = entry->path,
                               .value = slice_make(entry->value, entry->len),
                               .is_sample = entry->kind == ENTRY_SAMPLE};
    }
}

TermsBatch *terms_batch_new(Arena *arena, HashKey key)
{
    TermsBatch *batch = ARENA_NEW(arena, TermsBatch);
    collect_init(&batch->collector, arena, key);
    return batch;
}

static uint32_t add_number(TermsBatch *batch, uint64_t number)
{
    ARRAY_GROW_IN(batch->collector.arena, batch->numbers, batch->item_count, batch->item_capacity,
                  64);
    ASSERT(batch->item_count < UINT32_MAX);
    if (batch->item_count > 0 && number < batch->numbers[batch->item_count - 1])
        batch->is_unsorted = true;
    batch->numbers[batch->item_count] = number;
    return (uint32_t)batch->item_count++;
}

size_t terms_batch_change(TermsBatch *batch, uint64_t number, const IndexPolicy *old_policy,
                          Json old_document, const TermSystem *old_system,
                          const IndexPolicy *new_policy, Json new_document,
                          const TermSystem *new_system)
{
    ASSERT(old_policy == NULL || old_system != NULL);
    ASSERT(new_policy == NULL || new_system != NULL);
    Collector *c = &batch->collector;
    c->added = c->added_paid = 0;
    c->item = add_number(batch, number);
    c->all_loose = old_policy != NULL && new_policy != NULL;
    c->loose.count = 0;
    if (c->all_loose && old_policy == new_policy) {
        c->policy = new_policy;
        collect_difference(c, old_document, old_system, new_document, new_system);
    } else {
        c->policy = old_policy;
        c->sign = -1;
        if (old_policy != NULL)
            collect_document(c, old_document, old_system);
        c->policy = new_policy;
        c->sign = 1;
        if (new_policy != NULL)
            collect_document(c, new_document, new_system);
    }
    collect_settle(c, true);
    for (size_t i = 0; i < c->loose.count; ++i)
        (void)collect_sure(c, &c->loose.entries[i]); /* values of loose entries stay in any case */
    return c->added;
}

void terms_batch_add_samples(TermsBatch *batch, uint64_t number, const IndexPolicy *policy,
                             Json document, const TermSystem *system)
{
    Collector *c = &batch->collector;
    c->item = add_number(batch, number);
    c->all_loose = true; /* so that only samples get into the batch */
    c->loose.count = 0;
    c->policy = policy;
    c->sign = 1;
    collect_document(c, document, system);
    collect_settle(c, true);
    for (size_t i = 0; i < c->loose.count; ++i) {
        if (c->loose.entries[i].kind == ENTRY_SAMPLE)
            (void)collect_sure(c, &c->loose.entries[i]); /* likewise */
    }
    c->added_paid = 0;
}

size_t terms_batch_values(const TermsBatch *batch)
{
    return batch->collector.added_paid;
}

/* Adds up the uses of a term that are in one chunk, from 'from' on; returns where they end. */
static size_t gather(const uint64_t *numbers, const TermUses *uses, size_t from,
                     ChunkChange *change)
{
    uint64_t high = numbers[uses->items[from] >> 1] >> SET_CHUNK_BITS;
    change->add_count = change->remove_count = 0;
    size_t i = from;
    while (i < uses->count && numbers[uses->items[i] >> 1] >> SET_CHUNK_BITS == high) {
        uint64_t number = numbers[uses->items[i] >> 1];
        int sum = 0;
        do
            sum += (uses->items[i++] & 1) != 0 ? -1 : 1;
        while (i < uses->count && numbers[uses->items[i] >> 1] == number);
        if (sum > 0)
            change->adds[change->add_count++] = (uint16_t)number;
        else if (sum < 0)
            change->removes[change->remove_count++] = (uint16_t)number;
    }
    return i;
}

void terms_batch_finish(TermsBatch *batch, StoreTxn *txn, StoreSpace space)
{
    TermTable *table = &batch->collector.sure;
    Arena *arena = batch->collector.arena;
    if (table->use_count == 0)
        return;
    TermUses uses;
    term_uses_open(arena, table, batch->numbers, !batch->is_unsorted, &uses);

    size_t chunk_max = (size_t)1 << SET_CHUNK_BITS;
    if (batch->item_count < chunk_max)
        chunk_max = batch->item_count;
    ChunkChange change = {.adds = arena_alloc(arena, chunk_max * sizeof(uint16_t)),
                          .removes = arena_alloc(arena, chunk_max * sizeof(uint16_t))};
    AUTO(buf_done) Buf key;
    AUTO(buf_done) Buf operand;
    buf_init(&key, STORE_KEY_BYTES_MAX);
    buf_init(&operand, STORE_VALUE_BYTES_MAX);
    while (term_uses_next(&uses)) {
        Slice value = slice_make(uses.term->value, uses.term->len);
        for (size_t i = 0; i < uses.count;) {
            uint64_t chunk = batch->numbers[uses.items[i] >> 1] >> SET_CHUNK_BITS;
            i = gather(batch->numbers, &uses, i, &change);
            if (change.add_count + change.remove_count == 0)
                continue;
            buf_reset(&key);
            buf_reset(&operand);
            term_key(&key, uses.term->path, value, chunk);
            set_operand(&operand, change.adds, change.add_count, change.removes,
                        change.remove_count);
            store_txn_merge(txn, space, buf_view(&key), buf_view(&operand));
        }
    }
    term_table_reset(table);
    batch->item_count = 0;
    batch->is_unsorted = false;
}
