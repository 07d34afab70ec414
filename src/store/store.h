/* store.h - an ordered, transactional key-value store, implemented by engines.
 *
 * Keys live in spaces. A space is a 64-bit number that stands in front of every key (big-endian,
 * so that a space is one contiguous range), and everything of a physical partition is in one
 * space. Order is memcmp order of the key bytes.
 *
 * A transaction collects writes to one space and reads its own writes over the store's newest
 * state. It is written by one owner at a time: the store orders transactions but does not detect
 * conflicts between them, because a partition (and the catalogue) is the only writer of its own
 * space.
 *
 * Commits are grouped: store_txn_commit hands the transaction to the commit thread, which writes
 * all that have gathered as one atomic, durable write (one fsync), makes them visible together,
 * and then calls each completion. Nothing is visible to readers before it is durable. What every
 * engine promises is numbered in README.md.
 *
 * Ownership  Slices handed out say how long they live. Snapshots, cursors and transactions must be
 *            released before the store is closed.
 * Threads    A Store may be used from any thread. A snapshot may be shared; a cursor or a
 *            transaction belongs to one thread at a time. Completions run on the commit thread
 *            and must not block: they pass a message on.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define STORE_KEY_BYTES_MAX   ((size_t)8192)     /* without the space; ids and terms are shorter */
#define STORE_VALUE_BYTES_MAX ((size_t)64 << 20) /* an item is 2 MB, an index chunk far less */

/* A folder with a file of this name is refused: what fills it, a restore, has not come to its end.
 */
#define STORE_INCOMPLETE_FILE "INCOMPLETE"

typedef uint64_t StoreSpace;
/* The next one is the engines' own, and none is larger: engines of a journal have signed numbers.
 */
#define STORE_SPACE_MAX ((StoreSpace)INT64_MAX - 1)

typedef struct Store Store;
typedef struct StoreSnapshot StoreSnapshot;
typedef struct StoreCursor StoreCursor;
typedef struct StoreTxn StoreTxn;

typedef enum StoreDurability {
    STORE_DURABILITY_SYNC,    /* a commit completes after fsync */
    STORE_DURABILITY_RELAXED, /* a commit completes when the system has it; a crash of the machine
                                 (not of the process) may lose the newest ones */
} StoreDurability;

/* A value that the engine keeps in place; release it with store_value_release. */
typedef struct StoreValue {
    Slice data;
    void *owner; /* NULL if there is nothing to release */
    void (*release)(void *owner);
} StoreValue;

/* Called on the commit thread, exactly once. 'err' is NULL when the transaction is durable and
 * visible; otherwise nothing of it is, nor ever will be, unless the message of the error says that
 * this is only known after a restart. */
typedef struct StoreCompletion {
    void (*done)(void *ctx, const Error *err);
    void *ctx;
} StoreCompletion;

typedef enum StoreRead {
    STORE_READ_ANY,    /* may wait for the disk */
    STORE_READ_MEMORY, /* never touches the disk; see store_get */
} StoreRead;

typedef enum StoreFound {
    STORE_ABSENT,
    STORE_FOUND,
    STORE_UNKNOWN, /* only with STORE_READ_MEMORY: the answer is on disk */
} StoreFound;

/* How operands that were written blindly become values: filled in by the layer that knows what the
 * bytes mean, and the same for every start of a data folder. Lives as long as the store. */
typedef struct StoreMerge StoreMerge;
struct StoreMerge {
    uint8_t kind; /* the first byte of the keys that are merged in this way */

    /* Keys of one group differ only in this many bytes at their ends: see store_group_open. */
    uint8_t tail_bytes;

    /* Applies 'count' operands, oldest first, to 'existing' (its pointer is NULL if there is none)
     * and writes the value; with 'is_partial', writes one operand that does what they all do. 'out'
     * is empty. Returns false if the bytes are damaged: readers of the key get STATUS_CORRUPT from
     * then on, whatever operands follow. Called on any thread. */
    bool (*merge)(Slice existing, const Slice *operands, size_t count, bool is_partial, Buf *out);

    /* Whether the value need not be kept, because operands make the same of it as of no value. Its
     * key reads as absent, and is removed in the background. */
    bool (*is_empty)(Slice value);

    const StoreMerge *next; /* for keys of another kind; NULL if no others are merged */
};

/* Reads one key as of 'snapshot', or the newest durable state if it is NULL. '*value' is written
 * only when '*found' is STORE_FOUND, and is then released by the caller. */
MUST_USE Status store_get(Store *store, const StoreSnapshot *snapshot, StoreSpace space, Slice key,
                          StoreRead read, StoreValue *value, StoreFound *found, Error *err);

/* Turns STORE_UNKNOWN into STATUS_TIMEOUT, for callers that cannot wait. */
MUST_USE Status store_check_known(StoreFound found, Error *err);

static inline void store_value_release(StoreValue *value)
{
    if (value->owner != NULL)
        value->release(value->owner);
    *value = (StoreValue){0};
}
DEFINE_AUTO_VALUE(StoreValue, store_value_release)

/* With STORE_READ_MEMORY, no read of the snapshot waits for the disk: store_get reads memory
 * whatever it is asked for, and a cursor fails with STATUS_TIMEOUT where it would have to wait. */
StoreSnapshot *store_snapshot_open(Store *store, StoreRead read);
void store_snapshot_close(StoreSnapshot *snapshot); /* after its cursors; accepts NULL */
DEFINE_AUTO(StoreSnapshot *, store_snapshot_close)

/* A cursor over the keys of one space in ['from', 'to'); an empty 'to' means the end of the space.
 * 'snapshot' may be NULL for the state at this moment. 'from' and 'to' are copied. The cursor
 * stands before the first key: call store_cursor_next (or _prev to walk down from the end). */
StoreCursor *store_cursor_open(Store *store, const StoreSnapshot *snapshot, StoreSpace space,
                               Slice from, Slice to);

/* A cursor over one group of keys: those that are merged and consist of 'head' and a tail. (No key
 * of another group may begin with 'head'.) The engine skips files that have no key of the group,
 * which makes this faster than store_cursor_open if few files have any. It goes up only. */
StoreCursor *store_group_open(Store *store, const StoreSnapshot *snapshot, StoreSpace space,
                              Slice head);

/* Moves to the next (previous) key and hands out slices that live until the cursor next moves or
 * is closed; keys come without their space. '*found' is false beyond the last (first) one. */
MUST_USE Status store_cursor_next(StoreCursor *cursor, Slice *key, Slice *value, bool *found,
                                  Error *err);
MUST_USE Status store_cursor_prev(StoreCursor *cursor, Slice *key, Slice *value, bool *found,
                                  Error *err);

/* The next store_cursor_next gives the first key at or after 'key' (the next _prev the last key
 * before it), within the cursor's bounds. */
void store_cursor_seek(StoreCursor *cursor, Slice key);
void store_cursor_close(StoreCursor *cursor); /* accepts NULL */
DEFINE_AUTO(StoreCursor *, store_cursor_close)

StoreTxn *store_txn_begin(Store *store);
void store_txn_put(StoreTxn *txn, StoreSpace space, Slice key, Slice value);
void store_txn_delete(StoreTxn *txn, StoreSpace space, Slice key);

/* Adds an operand to a key of a kind that is merged. Costs no look-up. The transaction's own
 * reads do not see it; savepoints do. Such a key is never put or deleted. */
void store_txn_merge(StoreTxn *txn, StoreSpace space, Slice key, Slice operand);

/* Reads the transaction's own writes first, then the newest durable state. The value may point
 * into the transaction: it is valid until it is released or the transaction changes or ends. */
MUST_USE Status store_txn_get(StoreTxn *txn, StoreSpace space, Slice key, StoreValue *value,
                              bool *found, Error *err);

/* Reads only own writes: STORE_UNKNOWN if the transaction has not written the key. */
StoreFound store_txn_get_own(const StoreTxn *txn, StoreSpace space, Slice key, StoreValue *value);

/* Like store_cursor_open, over the transaction's own writes and the newest durable state. Do not
 * write to the transaction while the cursor is open. */
StoreCursor *store_txn_cursor_open(StoreTxn *txn, StoreSpace space, Slice from, Slice to);

/* Savepoints: rollback undoes all writes since the newest one and removes it; release only removes
 * it. They nest. A batch that fails inside a group is undone alone. */
void store_txn_savepoint(StoreTxn *txn);
void store_txn_rollback(StoreTxn *txn);
void store_txn_release(StoreTxn *txn);

size_t store_txn_bytes(const StoreTxn *txn); /* roughly what it will write */

/* Says that the transaction makes room rather than takes it: it deletes, or notes what is to be
 * deleted. When room is short it is refused later than others, so that room can be made (I5). */
void store_txn_makes_room(StoreTxn *txn);

/* Hands the transaction over; it is consumed whatever the outcome. Transactions committed by one
 * thread are applied in that order. */
void store_txn_commit(StoreTxn *txn, StoreCompletion completion);
void store_txn_abort(StoreTxn *txn); /* accepts NULL */
DEFINE_AUTO(StoreTxn *, store_txn_abort)

/* Commits and waits: for start-up, tools and tests, never on a loop thread. */
MUST_USE Status store_txn_commit_wait(StoreTxn *txn, Error *err);

/* A load writes much, more than fits into memory, into spaces that nobody reads or writes
 * meanwhile: the engine may make files of it that need neither the log nor compaction. Keys that
 * begin with the byte 'rising_kind' must rise from one transaction to the next; others need not.
 *
 * What was added is durable and visible when the load has finished. Before that, and after a
 * failure, any part of it may be there: the caller drops the spaces then (I15). */
typedef struct StoreLoad StoreLoad;
StoreLoad *store_load_begin(Store *store, uint8_t rising_kind);

/* Takes the transaction over. A thread of the load's own works on it while the caller gathers the
 * next one, so a failure may be returned by a later call. */
MUST_USE Status store_load_add(StoreLoad *load, StoreTxn *txn, Error *err);

/* Puts what was added in order, a step of a few milliseconds on two threads, so that the caller can
 * rest in between or give up. Call it until '*is_done'; then nothing may be added any more. */
MUST_USE Status store_load_merge(StoreLoad *load, bool *is_done, Error *err);

/* Both take the load over; the second accepts NULL. Finishing merges what is not merged yet. */
MUST_USE Status store_load_finish(StoreLoad *load, Error *err);
void store_load_abort(StoreLoad *load);

/* Removes every key of the spaces [first, last] at once, durably; the bytes come back in the
 * background. Waits for the disk. The caller knows that nobody writes there any more. */
MUST_USE Status store_drop_spaces(Store *store, StoreSpace first, StoreSpace last, Error *err);

/* The first space at or after 'from' in which there is a key. */
MUST_USE Status store_next_space(Store *store, StoreSpace from, StoreSpace *space, bool *found,
                                 Error *err);

/* About how many bytes the keys and values in ['from', 'to') take; an empty 'to' means the end of
 * the space. Costs no reading. What was written lately may not be counted: on disk, that is up to
 * three memtables of the whole store. */
uint64_t store_estimate_bytes(Store *store, StoreSpace space, Slice from, Slice to);

/* STATUS_OK while there is room for what takes some; otherwise the reason with which it would be
 * refused. A caller that gathers the writes of many clients in one transaction asks first, so that
 * those that make room are not refused together with the others. */
MUST_USE Status store_room(Store *store, Error *err);

/* What the engine occupies and holds in memory, roughly; for metrics. */
typedef struct StoreUsage {
    uint64_t disk_bytes;
    uint64_t memory_bytes;
} StoreUsage;
void store_usage(Store *store, StoreUsage *usage);

/* STATUS_OK while the engine takes writes; otherwise the reason why it does not (disk full,
 * read-only, damaged). Reads may still work. Does not wait, unless the system does when it is asked
 * how much room is left. */
MUST_USE Status store_health(Store *store, Error *err);

/* Reads that met something else than was written, since the store was opened, and the error of the
 * newest. Damage that is known from an earlier start counts as one read. Such a read fails with
 * STATUS_CORRUPT, alone: everything else goes on (I13). */
typedef struct StoreDamage {
    uint64_t reads;
    Error newest; /* STATUS_OK if there was none */
} StoreDamage;
void store_damage(Store *store, StoreDamage *out);

/* Waits for commits under way, makes everything durable, releases everything. Accepts NULL. */
void store_close(Store *store);
DEFINE_AUTO(Store *, store_close)
