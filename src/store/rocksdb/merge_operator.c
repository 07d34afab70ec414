/* merge_operator.c - has RocksDB merge operands by a StoreMerge, and remove values that are empty.
 *
 * RocksDB merges when it reads a key and when it writes or rewrites a table file. In the latter
 * case a merge that fails would fail the flush or the compaction, and with it every later write. So
 * none fails (I12): merge_full marks the key as damaged instead, and its readers get
 * STATUS_CORRUPT. Joining operands (a partial merge) may be declined: then RocksDB keeps them all.
 *
 * The filter sees a key when a compaction rewrites it, and only values: RocksDB does not show it
 * operands, nor, before the next compaction, a value that the same one has just merged. What it
 * removes RocksDB replaces by a deletion with the same sequence number, so that older operands of
 * the key that lie in another file stay hidden. It does so under snapshots too, which see the key
 * as absent either way.
 */
#include "base/mem.h"
#include "store/rocksdb/rocksdb_int.h"

/* Operands are slices here and two arrays in RocksDB; up to this many cost no allocation. */
enum { OPERANDS_ON_STACK = 64 };

typedef struct Operands {
    Slice *list;
    void *memory; /* NULL if they are on the stack */
    Slice on_stack[OPERANDS_ON_STACK];
} Operands;

static void operands_init(Operands *operands, const char *const *list, const size_t *lengths,
                          size_t count)
{
    operands->memory = count > OPERANDS_ON_STACK ? mem_realloc(NULL, sizeof(Slice) * count) : NULL;
    operands->list = operands->memory != NULL ? operands->memory : operands->on_stack;
    for (size_t i = 0; i < count; i++)
        operands->list[i] = slice_make(list[i], lengths[i]);
}

/* RocksDB copies the bytes, also after a failure, and then calls release_result. */
static char *result_of(Buf *out, size_t *len)
{
    (void)buf_reserve(out, 1); /* never NULL, because RocksDB copies from there */
    *len = out->len;
    return out->ptr;
}

static void release_result(void *state, const char *value, size_t len)
{
    (void)state;
    (void)len;
    mem_free((char *)value);
}

static char *merge_values(void *state, const char *key, size_t key_len, const char *stored,
                          size_t stored_len, const char *const *list, const size_t *lengths,
                          int count, unsigned char *success, size_t *len)
{
    Operands operands;
    operands_init(&operands, list, lengths, (size_t)count);
    Buf out;
    buf_init(&out, STORE_VALUE_BYTES_MAX + 1);
    merge_full(state, slice_make(key, key_len), slice_make(stored, stored_len), operands.list,
               (size_t)count, &out);
    mem_free(operands.memory);
    *success = 1;
    return result_of(&out, len);
}

static char *merge_operands(void *state, const char *key, size_t key_len, const char *const *list,
                            const size_t *lengths, int count, unsigned char *success, size_t *len)
{
    const StoreMerge *merge = merge_of(state, slice_make(key, key_len));
    Operands operands;
    operands_init(&operands, list, lengths, (size_t)count);
    Buf out;
    buf_init(&out, STORE_VALUE_BYTES_MAX);
    *success = merge != NULL &&
               merge->merge((Slice){0}, operands.list, (size_t)count, true, &out) &&
               !buf_full(&out);
    mem_free(operands.memory);
    if (!*success)
        buf_reset(&out);
    return result_of(&out, len);
}

static unsigned char filter_value(void *state, int level, const char *key, size_t key_len,
                                  const char *stored, size_t stored_len, char **new_value,
                                  size_t *new_len, unsigned char *changed)
{
    (void)level;
    (void)new_value;
    (void)new_len;
    *changed = 0;
    return merge_is_removable(state, slice_make(key, key_len), slice_make(stored, stored_len));
}

static void no_destructor(void *state)
{
    (void)state; /* a StoreMerge outlives the database */
}

static const char *name(void *state)
{
    (void)state;
    return "orrery.merge";
}

void rocksdb_set_merge_operator(rocksdb_options_t *options, const StoreMerge *merge,
                                rocksdb_compactionfilter_t **filter)
{
    void *state = (void *)merge;
    rocksdb_options_set_merge_operator(
        options, rocksdb_mergeoperator_create(state, no_destructor, merge_values, merge_operands,
                                              release_result, name));
    *filter = rocksdb_compactionfilter_create(state, no_destructor, filter_value, name);
    rocksdb_options_set_compaction_filter(options, *filter);
}
