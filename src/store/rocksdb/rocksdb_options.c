/* rocksdb_options.c - how RocksDB is set up, and why.
 *
 * The aims, in this order: nothing acknowledged is lost; a point read is one look-up in memory or
 * one read of the disk; an empty store opens in a few milliseconds and a small one needs a few
 * megabytes; what grows is bounded. One number, cache_bytes, scales the rest, so that a small
 * container and a large server need no further settings.
 */
#include "store/rocksdb/memtable_int.h"
#include "store/rocksdb/rocksdb_int.h"

#include <stdio.h>

enum {
    BLOOM_BITS_PER_KEY = 10, /* one look-up in a hundred reads a block in vain */
    OPEN_FILES_MAX = 512,    /* leaves sockets enough under the usual limit of 1024 */
    COMPRESSION_LZ4 = rocksdb_lz4_compression,
    INFO_LOG_WARN = 2,
    SHARD_BITS_MAX = 6,
    LEVEL0_SLOW = 36, /* tables in level 0: beyond what compaction_delay.c lets gather */
    LEVEL0_STOP = 52,
    REFUSE_DAMAGED_LOG = rocksdb_tolerate_corrupted_tail_records_recovery,
};

#define MEMTABLE_BYTES_MIN ((size_t)4 << 20)
#define MEMTABLE_BYTES_MAX ((size_t)64 << 20)
#define BLOCK_BYTES        ((size_t)8 << 10)
#define SHARD_BYTES        ((size_t)16 << 20)

size_t rocksdb_memtable_bytes(size_t cache_bytes)
{
    size_t bytes = cache_bytes;
    if (bytes < MEMTABLE_BYTES_MIN)
        return MEMTABLE_BYTES_MIN;
    return bytes > MEMTABLE_BYTES_MAX ? MEMTABLE_BYTES_MAX : bytes;
}

/* RocksDB would cut even a small cache into shards of half a megabyte. The filter and the index of
 * one table are about that large: two in the same shard push each other out, and almost every
 * look-up reads them from the file again. */
rocksdb_cache_t *rocksdb_tuned_cache(size_t cache_bytes)
{
    int bits = 0;
    while (bits < SHARD_BITS_MAX && cache_bytes >> (bits + 1) >= SHARD_BYTES)
        bits++;
    rocksdb_lru_cache_options_t *options = rocksdb_lru_cache_options_create();
    rocksdb_lru_cache_options_set_capacity(options, cache_bytes);
    rocksdb_lru_cache_options_set_num_shard_bits(options, bits);
    rocksdb_cache_t *cache = rocksdb_cache_create_lru_opts(options);
    rocksdb_lru_cache_options_destroy(options);
    return cache;
}

static void set_tables(rocksdb_options_t *options, rocksdb_cache_t *cache)
{
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    /* An item of a kilobyte or an index chunk: eight to a block keeps the index of a table small
     * without reading much that is not needed. */
    rocksdb_block_based_options_set_block_size(table, BLOCK_BYTES);
    rocksdb_block_based_options_set_block_cache(table, cache);
    /* Creating an item asks for a key that is almost never there, and a value of the index is in
     * few tables: filters know whole keys of the one kind, groups of the other (prefix_filter.c).
     * Other cursors are kept in their range by bounds. */
    rocksdb_block_based_options_set_filter_policy(
        table, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS_PER_KEY));
    rocksdb_block_based_options_set_whole_key_filtering(table, 0);
    /* Inside the cache, so that the cache's size is the bound of everything that is read, and in
     * its better half, so that a long scan cannot push them out. */
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
}

static void set_sizes(rocksdb_options_t *options, size_t cache_bytes)
{
    size_t memtable = rocksdb_memtable_bytes(cache_bytes);
    rocksdb_options_set_write_buffer_size(options, memtable);
    rocksdb_options_set_max_write_buffer_number(options, 3);
    rocksdb_options_set_db_write_buffer_size(options, 3 * memtable);
    rocksdb_options_set_max_total_wal_size(options, 4 * memtable);
    /* A memtable takes its memory in pieces of this size: a small store stays small. */
    rocksdb_options_set_arena_block_size(options, (size_t)256 << 10);
    rocksdb_options_set_target_file_size_base(options, 2 * memtable);
    rocksdb_options_set_max_bytes_for_level_base(options, 8 * memtable);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    rocksdb_options_set_level0_slowdown_writes_trigger(options, LEVEL0_SLOW);
    rocksdb_options_set_level0_stop_writes_trigger(options, LEVEL0_STOP);
    rocksdb_options_set_compression(options, COMPRESSION_LZ4);
    rocksdb_options_set_max_open_files(options, OPEN_FILES_MAX);
    rocksdb_options_set_max_manifest_file_size(options, (size_t)16 << 20);
    rocksdb_options_set_manifest_preallocation_size(options, (size_t)64 << 10);
}

static void set_threads(rocksdb_options_t *options)
{
    /* One flush and one compaction at a time; more only fight over one disk. */
    rocksdb_options_set_max_background_jobs(options, 2);
    rocksdb_options_set_max_file_opening_threads(options, 2);
    /* The commit thread is the only writer: it need not wait for others. */
    rocksdb_options_set_allow_concurrent_memtable_write(options, 0);
    rocksdb_options_set_enable_write_thread_adaptive_yield(options, 0);
    /* A file that is no longer needed is deleted in the background, not by the reader that closes
     * the last cursor on it. */
    rocksdb_options_set_avoid_unnecessary_blocking_io(options, 1);
}

/* RocksDB's C interface takes neither a memtable nor this environment, but finds both by name. */
static rocksdb_options_t *options_with_our_parts(const char *env)
{
    char parts[128];
    (void)snprintf(parts, sizeof(parts), "memtable_factory=%s;env=%s", memtable_register(), env);
    rocksdb_options_t *plain = rocksdb_options_create();
    rocksdb_options_t *options = rocksdb_options_create();
    char *failed = NULL;
    rocksdb_get_options_from_string(plain, parts, options, &failed);
    ASSERT(failed == NULL);
    rocksdb_options_destroy(plain);
    return options;
}

rocksdb_options_t *rocksdb_tuned_options(size_t cache_bytes, rocksdb_cache_t *cache,
                                         const char *env)
{
    rocksdb_options_t *options = options_with_our_parts(env);
    rocksdb_options_set_paranoid_checks(options, 1);
    /* What a crash has torn at the end of a log is not shown to RocksDB: see folder_check.c. */
    rocksdb_options_set_wal_recovery_mode(options, REFUSE_DAMAGED_LOG);
    /* Written out little by little: one large flush at the end would make commits wait for it. */
    rocksdb_options_set_bytes_per_sync(options, (uint64_t)1 << 20);
    /* RocksDB's own log file is for the rare post mortem; the server counts its own statistics. */
    rocksdb_options_set_info_log_level(options, INFO_LOG_WARN);
    rocksdb_options_set_max_log_file_size(options, (size_t)1 << 20);
    rocksdb_options_set_keep_log_file_num(options, 2);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
    set_tables(options, cache);
    set_sizes(options, cache_bytes);
    set_threads(options);
    return options;
}
