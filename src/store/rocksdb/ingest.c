/* ingest.c - loads: much is written past the log and the memtable, as tables that become part of
 * the database whole.
 *
 *     add: keys of the kind that rises ----------------------> tables --+
 *          all others --> sorted runs (spill.c)                         +--> link
 *     merge, at the end:         runs --> in the order of keys --> tables --+
 *
 * So no two tables overlap: RocksDB puts them at the bottom at once and never rewrites them. Only a
 * load of more than BATCH_RUNS_MAX runs is merged in several batches, whose tables do overlap: the
 * memory of a merge and the temporary file are bounded. While the next batch is gathered, each
 * call of add merges a share of the one before.
 *
 * A table has keys of one kind in one space, so that none covers keys that are in the memtable,
 * which RocksDB would have to write out first, while all others wait.
 *
 * Where the database has nothing of a kind of key yet, operands become values: nobody will merge
 * them later, for a table at the bottom is not rewritten.
 *
 * The tables are made, and synced, in a folder of their own beside the others, and are linked into
 * the database at the end. While RocksDB links tables, all writes wait; so that is done rarely, for
 * a few of them at a time. What a process leaves in the folder is removed by the next one.
 */
#include "base/array.h"
#include "base/mem.h"
#include "store/rocksdb/rocksdb_int.h"
#include "store/rocksdb/spill_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FOLDER          "ingest"
#define TABLE_BYTES_MAX ((size_t)64 << 20) /* of keys and values; then the next table begins */

enum {
    /* Tables with overlapping keys wait for compaction on top of the others, where RocksDB slows
     * all writes down if there are LEVEL0_SLOW of them (rocksdb_options.c). So we wait before that,
     * for a while. */
    WAITING_TABLES_MAX = 28,
    WAIT_MS = 20,
    WAITS_MAX = 500,
    LINKED_TABLES_MAX = 8,      /* at a time */
    BATCH_RUNS_MAX = 1024,      /* each is read from a buffer of its own when they are merged */
    MERGE_STEP_BYTES = 1 << 20, /* of a part, so that the caller can rest in between */
    ADD_STEPS = 64,             /* of each part: the batch before is merged before this one ends */
    RUNS_PER_ADD = 2,           /* operands, and what is put in no order */
    KIND_BYTES = SPACE_BYTES + 1,
};

/* Tables that are made by one thread, in the order of their keys. */
typedef struct Tables {
    Ingester *ingester;
    rocksdb_sstfilewriter_t *writer; /* NULL: none is open */
    char kind[KIND_BYTES];           /* with which its keys begin ... */
    size_t kind_len;                 /* ... so many bytes of it: a key may be empty */
    size_t bytes;                    /* in it */
    char **paths;
    size_t count;
    char *failure; /* RocksDB's words; NULL: it is well */
} Tables;

/* All that the runs have of one key. */
typedef struct KeyRecords {
    Buf key;
    Arena arena;     /* of the values */
    Slice *operands; /* grows */
    size_t count;
    size_t capacity;
    bool is_deleted; /* the newest */
} KeyRecords;

/* The merge of one part of a batch. */
typedef struct PartMerge {
    Tables tables;
    SpillWalk *walk; /* NULL before the first step and after the last one */
    KeyRecords records;
    Buf out;
    SpillRecord next; /* of the walk, if 'has_next' */
    bool has_next;
    bool is_value; /* operands of this kind of key become values */
    bool is_done;
} PartMerge;

/* Runs that are merged together. */
typedef struct Batch {
    Spill *spill; /* NULL once it is merged */
    PartMerge parts[SPILL_PARTS];
} Batch;

struct EngineLoad {
    Ingester *ingester;
    uint8_t rising_kind;
    Tables rising;
    Batch **batches; /* runs are added to the last one; all but the last two are merged */
    size_t batch_count;
    size_t batch_capacity;
};

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

/* The caller frees it. */
static char *new_path(Ingester *ingester)
{
    size_t size = strlen(ingester->folder) + sizeof("/" FOLDER "/18446744073709551615.sst");
    char *path = mem_realloc(NULL, size);
    (void)snprintf(path, size, "%s/" FOLDER "/%llu.sst", ingester->folder,
                   (unsigned long long)atomic_fetch_add(&ingester->next, 1));
    return path;
}

static void table_begin(Tables *tables, Slice key)
{
    Ingester *ingester = tables->ingester;
    Slice kind = kind_of(key);
    memcpy(tables->kind, kind.ptr, kind.len);
    tables->kind_len = kind.len;
    tables->bytes = 0;
    char *path = new_path(ingester);
    tables->paths = mem_realloc(tables->paths, (tables->count + 1) * sizeof(char *));
    tables->paths[tables->count++] = path;
    tables->writer = rocksdb_sstfilewriter_create(ingester->env, ingester->options);
    rocksdb_sstfilewriter_open(tables->writer, path, &tables->failure);
}

/* The table that the key belongs to; NULL after a failure. */
static rocksdb_sstfilewriter_t *table_of(Tables *tables, Slice key, size_t value_len)
{
    Slice kind = slice_make(tables->kind, tables->kind_len);
    if (tables->writer != NULL &&
        (tables->bytes >= TABLE_BYTES_MAX || !slice_equal(kind, kind_of(key))))
        table_end(tables);
    tables->bytes += key.len + value_len;
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

static void add_put(Tables *tables, const SpillRecord *record)
{
    Slice key = record->key;
    Slice value = record->value;
    rocksdb_sstfilewriter_t *table = table_of(tables, key, value.len);
    if (table == NULL)
        return;
    if (record->is_deleted)
        rocksdb_sstfilewriter_delete(table, key.ptr, key.len, &tables->failure);
    else
        rocksdb_sstfilewriter_put(table, key.ptr, key.len, value.ptr, value.len, &tables->failure);
}

static Status check_tables(Tables *tables, Error *err)
{
    if (tables->failure == NULL)
        return STATUS_OK;
    return rocksdb_error(err, tables->ingester->folder, "cannot write", TAKE(tables->failure));
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
 * becomes a value, too, which says that it is damaged: see merge_operands_int.h. */
static void add_operands(Tables *tables, Slice key, const Slice *operands, size_t count,
                         bool is_value, Buf *out)
{
    rocksdb_sstfilewriter_t *table = table_of(tables, key, operands[0].len);
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

/* ---- merging ---- */

static void records_done(KeyRecords *records)
{
    buf_done(&records->key);
    arena_done(&records->arena);
    mem_free(records->operands);
}

static void records_add(KeyRecords *records, const SpillRecord *record)
{
    ARRAY_GROW(records->operands, records->count, records->capacity, 16);
    records->operands[records->count++] = arena_copy(&records->arena, record->value);
    records->is_deleted = record->is_deleted;
}

static void records_begin(KeyRecords *records, const SpillRecord *record)
{
    buf_reset(&records->key);
    buf_slice(&records->key, record->key);
    arena_reset(&records->arena);
    records->count = 0;
}

/* Takes the records of the next key; '*next' is the first of the key after it. */
static Status take_key(SpillWalk *walk, KeyRecords *records, SpillRecord *next, bool *has_next,
                       Error *err)
{
    records_begin(records, next);
    do {
        records_add(records, next);
        TRY(spill_walk_next(walk, next, has_next, err));
    } while (*has_next && slice_equal(next->key, buf_view(&records->key)));
    return STATUS_OK;
}

static void add_key(Tables *tables, const KeyRecords *records, bool is_value, Buf *out)
{
    Slice key = buf_view(&records->key);
    if (merge_of(tables->ingester->merge, key) != NULL) {
        add_operands(tables, key, records->operands, records->count, is_value, out);
        return;
    }
    add_put(tables,
            &(SpillRecord){key, records->operands[records->count - 1], records->is_deleted});
}

/* Whether the database has keys that begin with 'kind'. */
static bool has_kind(Ingester *ingester, Slice kind)
{
    char last[KIND_BYTES];
    memcpy(last, kind.ptr, kind.len);
    size_t len = kind.len;
    while (len > 0 && (uint8_t)last[len - 1] == 0xFF)
        len--;
    if (len > 0)
        last[len - 1]++;
    return len == 0 || has_keys(ingester, kind, slice_make(last, len));
}

static void part_merge_end(PartMerge *merge)
{
    if (merge->walk == NULL)
        return;
    spill_walk_close(TAKE(merge->walk));
    records_done(&merge->records);
    buf_done(&merge->out);
}

static Status part_merge_begin(PartMerge *merge, const Spill *spill, unsigned part, Error *err)
{
    TRY(spill_walk_open(spill, part, &merge->walk, err));
    merge->records = (KeyRecords){0};
    buf_init(&merge->records.key, FULL_KEY_BYTES_MAX);
    arena_init(&merge->records.arena, ARENA_SMALL_BYTES);
    buf_init(&merge->out, STORE_VALUE_BYTES_MAX + 1);
    return spill_walk_next(merge->walk, &merge->next, &merge->has_next, err);
}

/* Puts about MERGE_STEP_BYTES more of a part of a batch into tables. Operands become values where
 * neither the database nor an older batch has anything of the kind. */
static Status merge_step(EngineLoad *load, size_t at, unsigned part, Error *err)
{
    PartMerge *merge = &load->batches[at]->parts[part];
    Tables *tables = &merge->tables;
    ASSERT(!merge->is_done);
    if (merge->walk == NULL)
        TRY(part_merge_begin(merge, load->batches[at]->spill, part, err));
    size_t bytes = 0;
    while (merge->has_next && bytes < MERGE_STEP_BYTES && tables->failure == NULL) {
        Slice kind = slice_make(tables->kind, tables->kind_len);
        if (tables->writer == NULL || !slice_equal(kind, kind_of(merge->next.key)))
            merge->is_value = at == 0 && !has_kind(load->ingester, kind_of(merge->next.key));
        TRY(take_key(merge->walk, &merge->records, &merge->next, &merge->has_next, err));
        add_key(tables, &merge->records, merge->is_value, &merge->out);
        bytes += merge->records.key.len + arena_used(&merge->records.arena);
    }
    TRY(check_tables(tables, err));
    if (merge->has_next)
        return STATUS_OK;
    table_end(tables);
    merge->is_done = true;
    part_merge_end(merge);
    return check_tables(tables, err);
}

/* The temporary file goes when all of it is merged. */
static void batch_close_spill(Batch *batch)
{
    for (size_t i = 0; i < SPILL_PARTS; i++) {
        if (!batch->parts[i].is_done)
            return;
    }
    spill_close(TAKE(batch->spill));
}

Status ingester_load_merge(EngineLoad *load, unsigned part, bool *is_done, Error *err)
{
    *is_done = false;
    for (size_t at = load->batch_count < 2 ? 0 : load->batch_count - 2; at < load->batch_count;
         at++) {
        if (!load->batches[at]->parts[part].is_done)
            return merge_step(load, at, part, err);
    }
    *is_done = true;
    return STATUS_OK;
}

/* ---- adding ---- */

static Batch *newest_batch(const EngineLoad *load)
{
    ASSERT(load->batch_count > 0);
    return load->batches[load->batch_count - 1];
}

static SpillRecord record_of(const TreeEntry *entry)
{
    return (SpillRecord){tree_entry_key(entry), tree_entry_value(entry), entry->deleted};
}

static bool is_rising(const EngineLoad *load, Slice key)
{
    return key.len > SPACE_BYTES && (uint8_t)key.ptr[SPACE_BYTES] == load->rising_kind;
}

/* What is put in no order, while it is added to a run. */
typedef struct PutRun {
    EngineLoad *load;
    bool has_begun;
} PutRun;

static void add_entry(void *ctx, TreeEntry *entry)
{
    PutRun *run = ctx;
    SpillRecord record = record_of(entry);
    if (is_rising(run->load, record.key)) {
        add_put(&run->load->rising, &record);
        return;
    }
    if (!run->has_begun)
        spill_begin_run(newest_batch(run->load)->spill, record.key);
    run->has_begun = true;
    spill_add(newest_batch(run->load)->spill, &record);
}

static Status add_puts(EngineLoad *load, const Tree *tree, Error *err)
{
    PutRun run = {.load = load};
    tree_each(tree, add_entry, &run);
    if (run.has_begun)
        TRY(spill_end_run(newest_batch(load)->spill, err));
    return check_tables(&load->rising, err);
}

static Status add_merges(EngineLoad *load, Slice records, Error *err)
{
    Operands in = {.records = records};
    MergeRecord record;
    for (Slice rest = records; merge_record_next(&rest, &record);)
        in.count++;
    if (in.count == 0)
        return STATUS_OK;
    size_t *memory = mem_realloc(NULL, 2 * in.count * sizeof(size_t));
    in.offsets = memory;
    Slice rest = records;
    for (size_t i = 0; i < in.count; i++) {
        memory[i] = records.len - rest.len;
        (void)merge_record_next(&rest, &record); /* counted above */
    }
    sort_operands(&in, memory + in.count);
    Spill *spill = newest_batch(load)->spill;
    spill_begin_run(spill, operand_at(&in, in.offsets[in.count / 2]).key);
    for (size_t i = 0; i < in.count; i++) {
        MergeRecord sorted = operand_at(&in, in.offsets[i]);
        spill_add(spill, &(SpillRecord){.key = sorted.key, .value = sorted.operand});
    }
    mem_free(memory);
    return spill_end_run(newest_batch(load)->spill, err);
}

static void batch_free(Batch *batch)
{
    if (batch == NULL)
        return;
    for (size_t i = 0; i < SPILL_PARTS; i++) {
        part_merge_end(&batch->parts[i]);
        tables_done(&batch->parts[i].tables);
    }
    spill_close(batch->spill);
    mem_free(batch);
}

static Status begin_batch(EngineLoad *load, Error *err)
{
    Ingester *ingester = load->ingester;
    if (mkdirat(ingester->folder_fd, FOLDER, 0700) != 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make the folder '%.200s/" FOLDER "'",
                               ingester->folder);
    char *path = new_path(ingester);
    Spill *spill = NULL;
    Status status = spill_open(path, &spill, err);
    mem_free(path);
    TRY(status);
    Batch *batch = MEM_NEW(Batch);
    batch->spill = spill;
    for (size_t i = 0; i < SPILL_PARTS; i++)
        batch->parts[i].tables.ingester = ingester;
    ARRAY_GROW(load->batches, load->batch_count, load->batch_capacity, 4);
    load->batches[load->batch_count++] = batch;
    return STATUS_OK;
}

/* Merges a share of the batch before the newest. */
static Status merge_older_batch(EngineLoad *load, Error *err)
{
    if (load->batch_count < 2)
        return STATUS_OK;
    size_t at = load->batch_count - 2;
    for (unsigned part = 0; part < SPILL_PARTS; part++) {
        for (int i = 0; i < ADD_STEPS && !load->batches[at]->parts[part].is_done; i++)
            TRY(merge_step(load, at, part, err));
    }
    batch_close_spill(load->batches[at]);
    return STATUS_OK;
}

/* Makes sure that there is a batch with room for the runs of one more call of add. */
static Status prepare_batch(EngineLoad *load, Error *err)
{
    TRY(merge_older_batch(load, err));
    if (load->batch_count == 0)
        return begin_batch(load, err);
    if (spill_run_count(newest_batch(load)->spill) + RUNS_PER_ADD <= BATCH_RUNS_MAX)
        return STATUS_OK;
    while (load->batch_count >= 2 && load->batches[load->batch_count - 2]->spill != NULL)
        TRY(merge_older_batch(load, err));
    return begin_batch(load, err);
}

EngineLoad *ingester_load_begin(Ingester *ingester, uint8_t rising_kind)
{
    EngineLoad *load = MEM_NEW(EngineLoad);
    *load = (EngineLoad){.ingester = ingester, .rising_kind = rising_kind};
    load->rising.ingester = ingester;
    return load;
}

/* The operands first, which are most: the first run says where the middle is. */
Status ingester_load_add(EngineLoad *load, const EngineWrites *writes, Error *err)
{
    TRY(prepare_batch(load, err));
    TRY(add_merges(load, writes->merges, err));
    return add_puts(load, &writes->tree, err);
}

void ingester_load_end(EngineLoad *load)
{
    if (load == NULL)
        return;
    tables_done(&load->rising);
    for (size_t i = 0; i < load->batch_count; i++)
        batch_free(load->batches[i]);
    mem_free(load->batches);
    mem_free(load);
}

/* ---- linking ---- */

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

static Status link_tables(Ingester *ingester, const char *const *paths, size_t count, Error *err)
{
    wait_for_compaction(ingester);
    rocksdb_ingestexternalfileoptions_t *options = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(options, 1);
    char *failure = NULL;
    rocksdb_ingest_external_file(ingester->db, paths, count, options, &failure);
    rocksdb_ingestexternalfileoptions_destroy(options);
    if (failure == NULL)
        return STATUS_OK;
    return rocksdb_error(err, ingester->folder, "cannot write", failure);
}

static void add_paths(const Tables *tables, const char **paths, size_t *count)
{
    for (size_t i = 0; i < tables->count; i++)
        paths[(*count)++] = tables->paths[i];
}

/* The tables of a batch and, with the last one, those of the keys that rise. */
static Status link_batch(EngineLoad *load, size_t at, Error *err)
{
    const Batch *batch = load->batches[at];
    bool is_last = at + 1 == load->batch_count;
    size_t max = load->rising.count;
    for (size_t i = 0; i < SPILL_PARTS; i++)
        max += batch->parts[i].tables.count;
    AUTO(mem_free) void *memory = MEM_NEW_ARRAY(const char *, max);
    const char **paths = memory;
    size_t count = 0;
    if (is_last)
        add_paths(&load->rising, paths, &count);
    for (size_t i = 0; i < SPILL_PARTS; i++) {
        ASSERT(batch->parts[i].is_done);
        add_paths(&batch->parts[i].tables, paths, &count);
    }
    for (size_t from = 0; from < count; from += LINKED_TABLES_MAX) {
        size_t left = count - from;
        TRY(link_tables(load->ingester, paths + from,
                        left < LINKED_TABLES_MAX ? left : LINKED_TABLES_MAX, err));
    }
    return STATUS_OK;
}

/* Older batches first: what they have of a key is older. */
Status ingester_load_link(EngineLoad *load, Error *err)
{
    table_end(&load->rising);
    TRY(check_tables(&load->rising, err));
    for (size_t at = 0; at < load->batch_count; at++)
        TRY(link_batch(load, at, err));
    return STATUS_OK;
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
