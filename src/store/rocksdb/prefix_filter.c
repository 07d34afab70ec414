/* prefix_filter.c - what the filters of RocksDB's tables hold: keys, or groups of keys.
 *
 * A filter says whether a table may have a key. Merged keys come in groups, whose keys differ only
 * in their tails and are always read together: for these the filter has the group, which is the key
 * without its tail. For all other keys the "prefix" is the key itself, so that one filter serves
 * both, and has nothing twice.
 *
 * RocksDB asks the filter for Get, and for cursors that do not ask for a total order; those may
 * only seek to keys of their group.
 */
#include "store/merge_operands_int.h"
#include "store/rocksdb/rocksdb_int.h"

/* The name is stored in each table: if the rule changes, the name must change too. */
static const char *name(void *state)
{
    (void)state;
    return "orrery.group";
}

static char *head_of(void *state, const char *key, size_t len, size_t *head_len)
{
    const StoreMerge *merge = merge_of(state, slice_make(key, len));
    size_t tail = merge != NULL ? merge->tail_bytes : 0;
    *head_len = len >= SPACE_BYTES + 1 + tail ? len - tail : len;
    return (char *)key;
}

static unsigned char always(void *state, const char *key, size_t len)
{
    (void)state;
    (void)key;
    (void)len;
    return 1;
}

static void no_destructor(void *state)
{
    (void)state; /* a StoreMerge outlives the database */
}

void rocksdb_set_prefix_filter(rocksdb_options_t *options, const StoreMerge *merge)
{
    rocksdb_options_set_prefix_extractor(
        options,
        rocksdb_slicetransform_create((void *)merge, no_destructor, head_of, always, always, name));
}
