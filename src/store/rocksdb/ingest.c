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
#include "base/arena.h"
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

/* Operands as a transaction has them, and where each begins: there may be a million of them, so
 * that no more is kept. */
typedef struct Operands {
    Slice records;
    size_t *offsets;
    size_t count;
} Operands;

static MergeRecord operand_at(const Operands *in, size_t offset)
{
    MergeRecord record;
    Slice rest = slice_from(in->records, offset);
    bool found = merge_record_next(&rest, &record);
    ASSERT(found);
    return record;
}

static bool is_after(const Operands *in, size_t a, size_t b)
{
    return slice_compare(operand_at(in, a).key, operand_at(in, b).key) > 0;
}

/* Merges [from, middle) and [middle, to) of the offsets into 'out'. */
static void merge_runs(const Operands *in, size_t from, size_t middle, size_t to, size_t *out)
{
    size_t left = from;
    size_t right = middle;
    for (size_t i = from; i < to; i++) {
        bool takes_right =
            left == middle || (right < to && is_after(in, in->offsets[left], in->offsets[right]));
        out[i] = in->offsets[takes_right ? right++ : left++];
    }
}

static size_t run_end(const Operands *in, size_t from)
{
    size_t end = from + 1;
    while (end < in->count && !is_after(in, in->offsets[end - 1], in->offsets[end]))
        end++;
    return end;
}

/* By their keys; those of one key stay in their order. They come as some runs that are in order
 * already, which are merged two by two. 'scratch' has room for as many offsets, and may become
 * where they are. */
static void sort_operands(Operands *in, size_t *scratch)
{
    for (size_t runs = 2; runs > 1;) {
        runs = 0;
        for (size_t from = 0; from < in->count; runs++) {
            size_t middle = run_end(in, from);
            size_t to = middle < in->count ? run_end(in, middle) : in->count;
            merge_runs(in, from, middle, to, scratch);
            from = to;
        }
        size_t *sorted = scratch;
        scratch = in->offsets;
        in->offsets = sorted;
    }
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

/* Adds sorted operands from 'from' on, those of one kind of key; returns where the next begins. */
static size_t add_kind(Tables *tables, const Operands *in, size_t from)
{
    Slice first = operand_at(in, in->offsets[from]).key;
    size_t to = from + 1;
    while (to < in->count &&
           slice_equal(kind_of(operand_at(in, in->offsets[to]).key), kind_of(first)))
        to++;
    bool is_value = !has_keys(tables->ingester, first, operand_at(in, in->offsets[to - 1]).key);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    AUTO(buf_done) Buf out;
    buf_init(&out, STORE_VALUE_BYTES_MAX + 1);
    for (size_t i = from; i < to && tables->failure == NULL;) {
        Slice key = operand_at(in, in->offsets[i]).key;
        size_t end = i + 1;
        while (end < to && slice_equal(operand_at(in, in->offsets[end]).key, key))
            end++;
        arena_reset(&arena);
        Slice *operands = ARENA_NEW_ARRAY(&arena, Slice, end - i);
        for (size_t k = i; k < end; k++)
            operands[k - i] = operand_at(in, in->offsets[k]).operand;
        add_operands(tables, key, operands, end - i, is_value, &out);
        i = end;
    }
    return to;
}

static void add_merges(Tables *tables, Slice records)
{
    Operands in = {.records = records};
    MergeRecord record;
    for (Slice rest = records; merge_record_next(&rest, &record);)
        in.count++;
    if (in.count == 0)
        return;
    size_t *memory = mem_realloc(NULL, 2 * in.count * sizeof(size_t));
    in.offsets = memory;
    Slice rest = records;
    for (size_t i = 0; i < in.count; i++) {
        memory[i] = records.len - rest.len;
        (void)merge_record_next(&rest, &record); /* counted above */
    }
    sort_operands(&in, memory + in.count);
    for (size_t from = 0; from < in.count;)
        from = add_kind(tables, &in, from);
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
