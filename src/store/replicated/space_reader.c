/* space_reader.c - all that is seen in a space at one moment: for digests and copies.
 *
 * Nodes merge the operands of a key when each pleases, and remove values that have become empty
 * when each pleases. So values are read merged, and empty ones are left out: then two nodes
 * that have applied the same entries show the same (J5).
 */
#include "base/mem.h"
#include "store/replicated/replicated_int.h"

#include <openssl/evp.h>

struct SpaceReader {
    Engine *local;
    StoreSnapshot *snapshot;
    EngineCursor *cursor;
    FullKey from_memory; /* the cursor's bounds live as long as the cursor */
    FullKey to_memory;
    Slice from;
    bool is_begun;
    bool has_ended;
};

/* Whether the node has a copy, that is not being dropped or filled; and which. */
static bool find_copy(Replication *replication, StoreSpace space, uint64_t *life)
{
    pthread_mutex_lock(&replication->lock);
    const ReplicaSpace *found = spaces_find(replication, space);
    bool has_copy = found != NULL && found->role != SPACE_ABSENT;
    *life = found != NULL ? found->life : 0;
    pthread_mutex_unlock(&replication->lock);
    return has_copy;
}

static Status no_copy(StoreSpace space, Error *err)
{
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "this node has no copy of space %llu",
                     (unsigned long long)space);
}

Status space_reader_open(Replication *replication, StoreSpace space, SpaceReader **out,
                         JournalPlace *place, Error *err)
{
    uint64_t life_before = 0, life = 0;
    if (!find_copy(replication, space, &life_before))
        return no_copy(space, err);
    Engine *local = replication->local;
    AUTO(space_reader_close) SpaceReader *reader = MEM_NEW(SpaceReader);
    reader->local = local;
    reader->snapshot = local->ops->snapshot_open(local, STORE_READ_ANY);
    reader->from = full_key(&reader->from_memory, space, SLICE_EMPTY);
    Slice to = full_key_end(&reader->to_memory, space);
    reader->cursor = local->ops->cursor_open(local, reader->snapshot, reader->from, to, false);
    JournalPlace read = {0};
    bool found = false;
    TRY(place_read(replication, reader->snapshot, space, &read, &found, err));
    /* A copy without a place is one at the beginning of its log, or was dropped just now. */
    if (!find_copy(replication, space, &life) || life != life_before)
        return no_copy(space, err);
    *place = found ? read : (JournalPlace){0};
    *out = TAKE(reader);
    return STATUS_OK;
}

Status space_reader_next(SpaceReader *reader, EngineItem *item, Slice *seen, bool *found,
                         Error *err)
{
    const EngineOps *ops = reader->local->ops;
    bool is_hidden = true;
    *found = false;
    while (is_hidden && !reader->has_ended) {
        EngineMove move = reader->is_begun ? ENGINE_NEXT : ENGINE_AT_OR_AFTER;
        TRY(ops->cursor_move(reader->cursor, move, reader->is_begun ? SLICE_EMPTY : reader->from,
                             item, found, err));
        reader->is_begun = true;
        reader->has_ended = !*found;
        if (!*found)
            return STATUS_OK;
        *seen = item->value;
        TRY(merge_read(reader->local->merge, item->key, seen, &is_hidden, err));
    }
    return STATUS_OK;
}

void space_reader_close(SpaceReader *reader)
{
    if (reader == NULL)
        return;
    reader->local->ops->cursor_close(reader->cursor);
    reader->local->ops->snapshot_close(reader->snapshot);
    mem_free(reader);
}

/* ---- digests ---- */

static void add_bytes(EVP_MD_CTX *sum, Slice bytes)
{
    uint64_t len = bytes.len; /* so that no byte can move from a key to a value */
    int done = EVP_DigestUpdate(sum, &len, sizeof(len)) +
               EVP_DigestUpdate(sum, bytes.ptr != NULL ? bytes.ptr : "", bytes.len);
    ASSERT(done == 2);
}

static Status add_space(SpaceReader *reader, EVP_MD_CTX *sum, Error *err)
{
    for (;;) {
        EngineItem item = {0};
        Slice seen = {0};
        bool found = false;
        TRY(space_reader_next(reader, &item, &seen, &found, err));
        if (!found)
            return STATUS_OK;
        add_bytes(sum, slice_from(item.key, SPACE_BYTES));
        add_bytes(sum, seen);
    }
}

Status replication_digest(Replication *replication, StoreSpace space, JournalPlace *at,
                          uint8_t out[REPLICATION_DIGEST_BYTES], Error *err)
{
    AUTO(space_reader_close) SpaceReader *reader = NULL;
    JournalPlace place;
    TRY(space_reader_open(replication, space, &reader, &place, err));
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    ASSERT(sum != NULL);
    int done = EVP_DigestInit_ex(sum, EVP_sha256(), NULL);
    Status status = add_space(reader, sum, err);
    unsigned len = 0;
    uint8_t digest[EVP_MAX_MD_SIZE];
    done += EVP_DigestFinal_ex(sum, digest, &len);
    EVP_MD_CTX_free(sum);
    ASSERT(done == 2);
    ASSERT(len == REPLICATION_DIGEST_BYTES);
    TRY(status);
    memcpy(out, digest, REPLICATION_DIGEST_BYTES);
    *at = place;
    return STATUS_OK;
}
