/* ingest.c - writes much at once past the log and the memtable: as tables that become part of the
 * database whole.
 *
 * A transaction's writes are in order already, but for the operands, which are sorted here. Each
 * kind of key gets a table of its own: keys that rise from one transaction to the next (items) lie
 * in tables that do not overlap, which RocksDB puts at the bottom at once and never rewrites, and
 * none covers keys that are in the memtable, which RocksDB would have to write out first, while
 * all others wait.
 *
 * Where nothing lies in a table's range yet, operands become values: nobody will merge them later,
 * for a table at the bottom is not rewritten.
 *
 * The tables are made, and synced, in a folder of their own beside the others, and are then linked
 * into the database. What a process leaves there when it ends is removed by the next one.
 */
#include "base/mem.h"
#include "store/rocksdb/rocksdb_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FOLDER "ingest"

enum {
    /* Tables with overlapping keys wait for compaction on top of the others, where RocksDB slows
     * all writes down if there are 20 of them. So we wait before that, for a while. */
    WAITING_TABLES_MAX = 12,
    WAIT_MS = 20,
    WAITS_MAX = 500,
    KIND_BYTES = SPACE_BYTES + 1,
};

/* The tables of one transaction. */
typedef struct Tables {
    Ingester *ingester;
    rocksdb_sstfilewriter_t *writer; /* NULL: none is open */
    char kind[KIND_BYTES];           /* with which its keys begin ... */
    size_t kind_len;                 /* ... so many bytes of it: a key may be empty */
    char **paths;
    size_t count;
    char *failure; /* RocksDB's words; NULL: it is well */
} Tables;

/* ---- tables ---- */

static Slice kind_of(Slice key)
{
    return slice_first(key, key.len < KIND_BYTES ? key.len : KIND_BYTES);
}

static void table_end(Tables *tables)
{
    if (tables->writer == NULL)
        return;
    if (tables->failure == NULL)
        rocksdb_sstfilewriter_finish(tables->writer, &tables->failure);
    rocksdb_sstfilewriter_destroy(tables->writer);
    tables->writer = NULL;
}

static void table_begin(Tables *tables, Slice key)
{
    Ingester *ingester = tables->ingester;
    Slice kind = kind_of(key);
    memcpy(tables->kind, kind.ptr, kind.len);
    tables->kind_len = kind.len;
    size_t size = strlen(ingester->folder) + sizeof("/" FOLDER "/18446744073709551615.sst");
    char *path = mem_realloc(NULL, size);
    (void)snprintf(path, size, "%s/" FOLDER "/%llu.sst", ingester->folder,
                   (unsigned long long)atomic_fetch_add(&ingester->next, 1));
    tables->paths = mem_realloc(tables->paths, (tables->count + 1) * sizeof(char *));
    tables->paths[tables->count++] = path;
    tables->writer = rocksdb_sstfilewriter_create(ingester->env, ingester->options);
    rocksdb_sstfilewriter_open(tables->writer, path, &tables->failure);
}

/* The table that the key belongs to; NULL after a failure. */
static rocksdb_sstfilewriter_t *table_of(Tables *tables, Slice key)
{
    Slice kind = slice_make(tables->kind, tables->kind_len);
    if (tables->writer != NULL && !slice_equal(kind, kind_of(key)))
        table_end(tables);
    if (tables->writer == NULL && tables->failure == NULL)
        table_begin(tables, key);
    return tables->failure == NULL ? tables->writer : NULL;
}

static void tables_done(Tables *tables)
{
    table_end(tables);
    for (size_t i = 0; i < tables->count; i++) {
        (void)unlink(tables->paths[i]); /* RocksDB has taken it, or nobody wants it */
        mem_free(tables->paths[i]);
    }
    mem_free(tables->paths);
    rocksdb_free(tables->failure);
}
DEFINE_AUTO_VALUE(Tables, tables_done)

static void add_entry(void *ctx, TreeEntry *entry)
{
    Tables *tables = ctx;
    Slice key = tree_entry_key(entry);
    Slice value = tree_entry_value(entry);
    rocksdb_sstfilewriter_t *table = table_of(tables, key);
    if (table == NULL)
        return;
    if (entry->deleted)
        rocksdb_sstfilewriter_delete(table, key.ptr, key.len, &tables->failure);
    else
        rocksdb_sstfilewriter_put(table, key.ptr, key.len, value.ptr, value.len, &tables->failure);
}

/* ---- operands ---- */

static bool is_after(const MergeRecord *a, const MergeRecord *b)
{
    return slice_compare(a->key, b->key) > 0;
}

/* Merges [from, middle) and [middle, to) of 'in' into 'out'. */
static void merge_runs(const MergeRecord *in, size_t from, size_t middle, size_t to,
                       MergeRecord *out)
{
    size_t left = from;
    size_t right = middle;
    for (size_t i = from; i < to; i++) {
        bool takes_right = left == middle || (right < to && is_after(&in[left], &in[right]));
        out[i] = takes_right ? in[right++] : in[left++];
    }
}

static size_t run_end(const MergeRecord *records, size_t from, size_t count)
{
    size_t end = from + 1;
    while (end < count && !is_after(&records[end - 1], &records[end]))
        end++;
    return end;
}

/* By their keys; those of one key stay in their order. They come as some runs that are in order
 * already, which are merged two by two. Returns the one of the two that has the result. */
static MergeRecord *sort_records(MergeRecord *records, MergeRecord *scratch, size_t count)
{
    for (size_t runs = 2; runs > 1;) {
        runs = 0;
        for (size_t from = 0; from < count; runs++) {
            size_t middle = run_end(records, from, count);
            size_t to = middle < count ? run_end(records, middle, count) : count;
            merge_runs(records, from, middle, to, scratch);
            from = to;
        }
        MergeRecord *sorted = scratch;
        scratch = records;
        records = sorted;
    }
    return records;
}

/* Whether the database has a key in ['first', 'last']. */
static bool has_keys(Ingester *ingester, Slice first, Slice last)
{
    rocksdb_readoptions_t *options = rocksdb_read_options(STORE_READ_ANY);
    rocksdb_readoptions_set_total_order_seek(options, 1);
    rocksdb_iterator_t *iterator = rocksdb_create_iterator(ingester->db, options);
    rocksdb_iter_seek(iterator, first.ptr, first.len);
    bool found = true; /* also if it cannot be told */
    char *failure = NULL;
    rocksdb_iter_get_error(iterator, &failure);
    if (rocksdb_iter_valid(iterator)) {
        size_t len = 0;
        const char *key = rocksdb_iter_key(iterator, &len);
        found = slice_compare(slice_make(key, len), last) <= 0;
    } else if (failure == NULL) {
        found = false;
    }
    rocksdb_free(failure);
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(options);
    return found;
}

/* Puts the operands together into one; false if that cannot be. */
static bool join_operands(const StoreMerge *merge, const Slice *operands, size_t count, Buf *out)
{
    return merge != NULL && merge->merge((Slice){0}, operands, count, true, out) && !buf_full(out);
}

/* Adds the operands of one key: as one, or as the value that they make. What cannot be put together
 * becomes a value, too, which says that it is damaged: see merge_int.h. */
static void add_operands(Tables *tables, Slice key, const Slice *operands, size_t count,
                         bool is_value, Buf *out)
{
    rocksdb_sstfilewriter_t *table = table_of(tables, key);
    if (table == NULL)
        return;
    const StoreMerge *merges = tables->ingester->merge;
    Slice operand = operands[0];
    buf_reset(out);
    if (!is_value && count > 1) {
        is_value = !join_operands(merge_of(merges, key), operands, count, out);
        operand = buf_view(out);
    }
    if (!is_value) {
        rocksdb_sstfilewriter_merge(table, key.ptr, key.len, operand.ptr, operand.len,
                                    &tables->failure);
        return;
    }
    buf_reset(out);
    merge_full(merges, key, (Slice){0}, operands, count, out);
    rocksdb_sstfilewriter_put(table, key.ptr, key.len, out->ptr, out->len, &tables->failure);
}

/* Adds sorted operands, all of one kind of key. */
static void add_kind(Tables *tables, const MergeRecord *records, size_t count)
{
    bool is_value = !has_keys(tables->ingester, records[0].key, records[count - 1].key);
    Slice *operands = mem_realloc(NULL, count * sizeof(Slice));
    AUTO(buf_done) Buf out;
    buf_init(&out, STORE_VALUE_BYTES_MAX + 1);
    for (size_t i = 0; i < count && tables->failure == NULL;) {
        size_t same = 0;
        while (i + same < count && slice_equal(records[i + same].key, records[i].key)) {
            operands[same] = records[i + same].operand;
            same++;
        }
        add_operands(tables, records[i].key, operands, same, is_value, &out);
        i += same;
    }
    mem_free(operands);
}

static void add_merges(Tables *tables, Slice bytes)
{
    size_t count = 0;
    MergeRecord record;
    for (Slice rest = bytes; merge_record_next(&rest, &record);)
        count++;
    if (count == 0)
        return;
    MergeRecord *memory = mem_realloc(NULL, 2 * count * sizeof(MergeRecord));
    for (size_t i = 0; merge_record_next(&bytes, &memory[i]);)
        i++;
    const MergeRecord *sorted = sort_records(memory, memory + count, count);
    for (size_t from = 0; from < count;) {
        size_t to = from + 1;
        while (to < count && slice_equal(kind_of(sorted[to].key), kind_of(sorted[from].key)))
            to++;
        add_kind(tables, sorted + from, to - from);
        from = to;
    }
    mem_free(memory);
}

/* ---- the whole ---- */

static size_t waiting_tables(Ingester *ingester)
{
    char *text = rocksdb_property_value(ingester->db, "rocksdb.num-files-at-level0");
    size_t count = text == NULL ? 0 : strtoul(text, NULL, 10);
    rocksdb_free(text);
    return count;
}

static void wait_for_compaction(Ingester *ingester)
{
    for (int i = 0; i < WAITS_MAX && waiting_tables(ingester) >= WAITING_TABLES_MAX; i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
}

static void link_tables(Tables *tables)
{
    rocksdb_ingestexternalfileoptions_t *options = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(options, 1);
    rocksdb_ingest_external_file(tables->ingester->db, (const char *const *)tables->paths,
                                 tables->count, options, &tables->failure);
    rocksdb_ingestexternalfileoptions_destroy(options);
}

Status ingester_write(Ingester *ingester, const EngineWrites *writes, Error *err)
{
    if (mkdirat(ingester->folder_fd, FOLDER, 0700) != 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make the folder '%.200s/" FOLDER "'",
                               ingester->folder);
    AUTO(tables_done) Tables tables = {.ingester = ingester};
    tree_each(&writes->tree, add_entry, &tables);
    add_merges(&tables, writes->merges);
    table_end(&tables);
    if (tables.failure == NULL && tables.count > 0) {
        wait_for_compaction(ingester);
        link_tables(&tables);
    }
    if (tables.failure == NULL)
        return STATUS_OK;
    return rocksdb_error(err, ingester->folder, "cannot write", TAKE(tables.failure));
}

static void remove_leftovers(int folder_fd)
{
    int fd = openat(folder_fd, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL) {
        if (fd >= 0)
            (void)close(fd); /* only read from */
        return;
    }
    const struct dirent *file;
    while ((file = readdir(folder)) != NULL)
        (void)unlinkat(fd, file->d_name, 0); /* "." and ".." stay; others only take room */
    (void)closedir(folder);                  /* only read from */
}

void ingester_init(Ingester *ingester, const IngesterOptions *options)
{
    ingester->db = options->db;
    ingester->folder = options->folder;
    ingester->folder_fd = options->folder_fd;
    ingester->merge = options->merge;
    ingester->options = options->tables;
    ingester->env = rocksdb_envoptions_create();
    if (!options->is_read_only)
        remove_leftovers(options->folder_fd);
}

void ingester_done(Ingester *ingester)
{
    rocksdb_envoptions_destroy(ingester->env);
    rocksdb_options_destroy(ingester->options);
}
