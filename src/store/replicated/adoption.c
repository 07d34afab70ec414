/* adoption.c - the data of a server without a journal becomes the first copy in a journal.
 *
 * The log of each space begins with one entry in which nothing is written, and is trimmed up to it.
 * So a node that begins at the beginning of the log finds that it was trimmed, and is given a copy;
 * and whoever owns the space has a place to append after.
 *
 * Every step can be repeated, by a later incarnation of the same node: what is in the engine says
 * how far the space has come. Nothing of the data is changed, only places are added, in the space
 * that is the engines' own. They are the last that is made durable: a place tells that the log
 * begins with what is here.
 */
#include "store/replicated/entry_format_int.h"
#include "store/replicated/replicated_int.h"
#include "store/rocksdb/rocksdb_local_int.h"

#include "base/cond.h"

enum {
    SPACES_AT_ONCE = 256, /* in one statement, and one write */
    EPOCHS_MAX = 4096,    /* adoptions of one space that were interrupted */
};

typedef struct Adopter {
    const ReplicationAdoption *options;
    Engine *local;
    Slice first_entry; /* its bytes */
    Arena arena;       /* of one portion */
} Adopter;

static unsigned long long printed(uint64_t number)
{
    return (unsigned long long)number;
}

/* ---- whether the journal is for this folder alone ---- */

static bool has_space(const ReplicationAdoption *options, StoreSpace space)
{
    size_t low = 0;
    size_t high = options->space_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (options->spaces[middle] < space)
            low = middle + 1;
        else
            high = middle;
    }
    return low < options->space_count && options->spaces[low] == space;
}

/* Another node could have taken an empty log for the whole of a space. */
static Status check_alone(const ReplicationAdoption *options, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    const JournalNode *nodes = NULL;
    size_t count = 0;
    TRY(journal_nodes(options->journal, JOURNAL_LANE_ADMIN, &arena, &nodes, &count, err));
    for (size_t i = 0; i < count; i++) {
        if (!slice_equal(nodes[i].name, options->node))
            return error_set(err, STATUS_CONFLICT, SUB_NONE,
                             "the cluster has another node already, '%.*s'; a folder is adopted "
                             "into a new cluster only, in a database of its own",
                             SLICE_CUT(nodes[i].name, JOURNAL_NAME_MAX));
    }
    return STATUS_OK;
}

static Status check_owners(const ReplicationAdoption *options, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    const JournalOwner *owners = NULL;
    size_t count = 0;
    TRY(journal_owners(options->journal, JOURNAL_LANE_ADMIN, NULL, 0, &arena, &owners, &count,
                       err));
    for (size_t i = 0; i < count; i++) {
        if (!slice_equal(owners[i].node, options->node) || !has_space(options, owners[i].space))
            return error_set(err, STATUS_CONFLICT, SUB_NONE,
                             "the cluster has partitions already that the folder has not, such as "
                             "space %llu; a folder is adopted into a new cluster only, in a "
                             "database of its own",
                             printed(owners[i].space));
    }
    return STATUS_OK;
}

/* ---- a portion of the spaces ---- */

typedef struct AdoptedSpace {
    StoreSpace space;
    uint64_t epoch;
    JournalPlace place; /* at the end of the log */
} AdoptedSpace;

/* Of an owner's row that this incarnation did not make. */
static Status take_over(Adopter *adopter, const JournalOwner *row, JournalOwner *out, Error *err)
{
    *out = *row;
    if (row->incarnation == adopter->options->incarnation)
        return STATUS_OK;
    bool is_done = false;
    TRY(journal_take_over(adopter->options->journal, row->space, row->tail.epoch, &adopter->arena,
                          out, &is_done, err));
    if (!is_done)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "space %llu has got another owner during the adoption",
                         printed(row->space));
    return STATUS_OK;
}

/* The log has an entry: it must be the one that an adoption makes, in whichever epoch it did. */
static Status check_first_entry(const Adopter *adopter, const JournalOwner *owner, Error *err)
{
    static const JournalPlace beginning = {.epoch = 0};
    if (owner->tail.seq == 0)
        return STATUS_OK;
    uint64_t last = owner->tail.epoch < EPOCHS_MAX ? owner->tail.epoch : EPOCHS_MAX;
    for (uint64_t epoch = 1; epoch <= last && owner->tail.seq == 1; epoch++) {
        JournalPlace made = journal_place_after(adopter->options->journal, owner->space, &beginning,
                                                epoch, adopter->first_entry);
        if (chain_equal(&made.chain, &owner->tail.chain))
            return STATUS_OK;
    }
    return error_set(err, STATUS_CONFLICT, SUB_NONE,
                     "the log of space %llu has writes that no adoption has made",
                     printed(owner->space));
}

static Status make_rows(Adopter *adopter, const StoreSpace *spaces, size_t count,
                        AdoptedSpace *items, Error *err)
{
    const ReplicationAdoption *options = adopter->options;
    JournalNewSpace *rows = ARENA_NEW_ARRAY(&adopter->arena, JournalNewSpace, count);
    for (size_t i = 0; i < count; i++)
        rows[i] = (JournalNewSpace){
            .space = spaces[i], .node = options->node, .incarnation = options->incarnation};
    TRY(journal_create_spaces(options->journal, JOURNAL_LANE_ADMIN, rows, count, err));
    const JournalOwner *owners = NULL;
    size_t found = 0;
    TRY(journal_owners(options->journal, JOURNAL_LANE_ADMIN, spaces, count, &adopter->arena,
                       &owners, &found, err));
    if (found != count)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the engine has %zu of %zu new partitions", found, count);
    for (size_t i = 0; i < count; i++) {
        JournalOwner owner;
        TRY(take_over(adopter, &owners[i], &owner, err));
        TRY(check_first_entry(adopter, &owner, err));
        items[i] =
            (AdoptedSpace){.space = owner.space, .epoch = owner.tail.epoch, .place = owner.tail};
    }
    return STATUS_OK;
}

static Status append_first(Adopter *adopter, AdoptedSpace *items, size_t count, Error *err)
{
    JournalAppend *appends = ARENA_NEW_ARRAY(&adopter->arena, JournalAppend, count);
    AdoptedSpace **of = ARENA_NEW_ARRAY(&adopter->arena, AdoptedSpace *, count);
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (items[i].place.seq != 0)
            continue;
        of[left] = &items[i];
        appends[left++] = (JournalAppend){
            .space = items[i].space, .epoch = items[i].epoch, .bytes = adopter->first_entry};
    }
    if (left == 0)
        return STATUS_OK;
    Status status = journal_append(adopter->options->journal, JOURNAL_LANE_APPEND_0, appends, left,
                                   cond_now_us() + APPEND_US_MAX, err);
    TRY(status);
    for (size_t i = 0; i < left; i++) {
        if (appends[i].outcome != APPEND_DONE)
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                             "it is not known whether the log of space %llu was begun; adopt the "
                             "folder again, which finds out",
                             printed(appends[i].space));
        of[i]->place = appends[i].after;
    }
    return STATUS_OK;
}

static Status trim(Adopter *adopter, const AdoptedSpace *items, size_t count, Error *err)
{
    Journal *journal = adopter->options->journal;
    uint64_t *spaces = ARENA_NEW_ARRAY(&adopter->arena, uint64_t, count);
    for (size_t i = 0; i < count; i++) {
        spaces[i] = items[i].space;
        TRY(journal_trim(journal, JOURNAL_LANE_ADMIN, items[i].space, items[i].epoch,
                         items[i].place.seq, err));
    }
    const JournalOwner *owners = NULL;
    size_t found = 0;
    TRY(journal_owners(journal, JOURNAL_LANE_ADMIN, spaces, count, &adopter->arena, &owners, &found,
                       err));
    for (size_t i = 0; i < count; i++) {
        if (found != count || owners[i].base != items[i].place.seq)
            return error_set(err, STATUS_CONFLICT, SUB_NONE,
                             "the log of space %llu cannot be trimmed: another node follows it",
                             printed(spaces[i]));
    }
    return STATUS_OK;
}

static Status write_places(Adopter *adopter, const AdoptedSpace *items, size_t count, Error *err)
{
    AUTO(tree_done) Tree tree = {0};
    for (size_t i = 0; i < count; i++)
        place_put(&tree, items[i].space, STORED_WHOLE, &items[i].place);
    EngineWrites writes = {.tree = tree};
    return adopter->local->ops->write(adopter->local, &writes, 1, err);
}

static Status adopt_portion(Adopter *adopter, const StoreSpace *spaces, size_t count, Error *err)
{
    arena_reset(&adopter->arena);
    AdoptedSpace *items = ARENA_NEW_ARRAY(&adopter->arena, AdoptedSpace, count);
    TRY(make_rows(adopter, spaces, count, items, err));
    TRY(append_first(adopter, items, count, err));
    TRY(trim(adopter, items, count, err));
    return write_places(adopter, items, count, err);
}

static Status adopt_all(Adopter *adopter, Error *err)
{
    const ReplicationAdoption *options = adopter->options;
    TRY(check_alone(options, err));
    TRY(check_owners(options, err));
    TRY(places_delete_all(adopter->local, err)); /* those of a journal that was given up */
    for (size_t done = 0; done < options->space_count;) {
        size_t left = options->space_count - done;
        size_t count = left < SPACES_AT_ONCE ? left : SPACES_AT_ONCE;
        TRY(adopt_portion(adopter, options->spaces + done, count, err));
        done += count;
        if (options->progress != NULL)
            options->progress(options->ctx, done, options->space_count);
    }
    TRY(check_alone(options, err));
    return rocksdb_engine_sync(adopter->local, err);
}

Status replication_adopt(const ReplicationAdoption *options, Error *err)
{
    Adopter adopter = {.options = options};
    RocksdbStoreOptions local = options->local;
    local.durability = STORE_DURABILITY_SYNC;
    TRY(rocksdb_engine_open(&local, &adopter.local, err));
    arena_init(&adopter.arena, 64 << 10);
    AUTO(entry_writer_done) EntryWriter writer;
    entry_writer_init(&writer);
    AUTO(buf_done) Buf bytes;
    buf_init(&bytes, 64);
    Status status = entry_finish(&writer, journal_format(options->journal), &bytes, err);
    adopter.first_entry = buf_view(&bytes);
    if (status == STATUS_OK)
        status = adopt_all(&adopter, err);
    arena_done(&adopter.arena);
    adopter.local->ops->close(adopter.local);
    return status;
}
