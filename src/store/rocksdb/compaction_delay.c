/* compaction_delay.c - compacts less often while much is written.
 *
 * RocksDB merges the tables of level 0 with the level below when there are FILES_USUAL of them. As
 * keys are spread by hashes, each time that rewrites the whole level: of a million items of 1 KB
 * that were imported with their index, each was rewritten 2.7 times, for more CPU than everything
 * else the server did for it. If FILES_DELAYED tables may gather, it is less than once.
 *
 * The price is paid by look-ups, which ask the filters of more tables. So this holds only while
 * memtables fill up within seconds; when the writes end, level 0 is compacted as usual. A few
 * tables come while others are compacted: rocksdb_options.c says from how many on writers are
 * slowed down.
 *
 * A larger compaction needs more room on the disk (R3), so there is no delay where room is short.
 */
#include "store/rocksdb/rocksdb_int.h"

#include <stdio.h>

enum {
    FILES_USUAL = 4, /* RocksDB's default */
    FILES_DELAYED = 24,
    WINDOW_US = 1000000,
    /* Seconds in which a memtable fills up: with fewer the delay begins, with more it ends. */
    FILL_S_BEGIN = 6,
    FILL_S_END = 12,
};

static void set(CompactionDelay *delay, bool is_delayed)
{
    if (delay->is_delayed == is_delayed)
        return;
    char files[16];
    (void)snprintf(files, sizeof(files), "%d", is_delayed ? FILES_DELAYED : FILES_USUAL);
    const char *const names[] = {"level0_file_num_compaction_trigger"};
    const char *const values[] = {files};
    char *text = NULL;
    rocksdb_set_options(delay->db, ARRAY_COUNT(names), names, values, &text);
    rocksdb_free(text); /* if it stays as it was, compaction only takes more or less time */
    delay->is_delayed = is_delayed;
}

void compaction_delay_note(CompactionDelay *delay, size_t bytes, uint64_t now_us,
                           bool (*has_room)(void *ctx), void *ctx)
{
    delay->window_bytes += bytes;
    uint64_t passed_us = now_us - delay->window_at_us;
    if (passed_us < WINDOW_US)
        return;
    uint64_t per_s = delay->window_bytes * 1000000 / passed_us;
    if (per_s > delay->memtable_bytes / FILL_S_BEGIN)
        set(delay, has_room(ctx));
    else if (per_s < delay->memtable_bytes / FILL_S_END)
        set(delay, false);
    else if (delay->is_delayed)
        set(delay, has_room(ctx));
    delay->window_at_us = now_us;
    delay->window_bytes = 0;
}

void compaction_delay_end(CompactionDelay *delay)
{
    set(delay, false);
}
