/* merge_operands.c - see merge_operands_int.h.
 *
 *     record = | key bytes u32 | operand bytes u32 | key | operand |
 *
 * in the machine's own byte order: records exist only in a transaction's memory.
 */
#include "store/merge_operands_int.h"

#include "base/encoding.h"
#include "store/engine_int.h"

enum { STATE_WHOLE = 0, STATE_DAMAGED = 1 };

typedef struct RecordHead {
    uint32_t key_len;
    uint32_t operand_len;
} RecordHead;

void merge_record_append(Buf *out, StoreSpace space, Slice key, Slice operand)
{
    RecordHead head = {(uint32_t)(SPACE_BYTES + key.len), (uint32_t)operand.len};
    char prefix[sizeof(head) + SPACE_BYTES];
    memcpy(prefix, &head, sizeof(head));
    be64_put(prefix + sizeof(head), space);
    buf_bytes(out, prefix, sizeof(prefix));
    buf_slice(out, key);
    buf_slice(out, operand);
    ASSERT(!buf_full(out)); /* a transaction's buffer has no bound */
}

bool merge_record_next(Slice *records, MergeRecord *out)
{
    if (records->len == 0)
        return false;
    RecordHead head;
    ASSERT(records->len >= sizeof(head));
    memcpy(&head, records->ptr, sizeof(head));
    Slice rest = slice_from(*records, sizeof(head));
    ASSERT(rest.len >= (size_t)head.key_len + head.operand_len);
    out->key = slice_first(rest, head.key_len);
    rest = slice_from(rest, head.key_len);
    out->operand = slice_first(rest, head.operand_len);
    *records = slice_from(rest, head.operand_len);
    return true;
}

const StoreMerge *merge_of_kind(const StoreMerge *merges, uint8_t kind)
{
    while (merges != NULL && merges->kind != kind)
        merges = merges->next;
    return merges;
}

const StoreMerge *merge_of(const StoreMerge *merges, Slice key)
{
    return key.len <= SPACE_BYTES ? NULL : merge_of_kind(merges, (uint8_t)key.ptr[SPACE_BYTES]);
}

/* False if it is damaged; '*value' is then what is left of it. */
static bool split_stored(Slice stored, Slice *value)
{
    *value = slice_first(stored, stored.len > 0 ? stored.len - 1 : 0);
    return stored.len > 0 && stored.ptr[stored.len - 1] == STATE_WHOLE;
}

void merge_full(const StoreMerge *merges, Slice key, Slice stored, const Slice *operands,
                size_t count, Buf *out)
{
    ASSERT(out->len == 0);
    /* A kind without a merge can only come from the folder of a newer version. */
    const StoreMerge *merge = merge_of(merges, key);
    Slice existing = {0};
    bool whole = stored.ptr == NULL || split_stored(stored, &existing);
    if (merge != NULL && whole && merge->merge(existing, operands, count, false, out) &&
        !buf_full(out) && out->len <= STORE_VALUE_BYTES_MAX) {
        buf_byte(out, STATE_WHOLE);
        return;
    }
    buf_reset(out);
    buf_slice(out, existing);
    buf_byte(out, STATE_DAMAGED);
}

bool merge_is_removable(const StoreMerge *merges, Slice key, Slice stored)
{
    const StoreMerge *merge = merge_of(merges, key);
    Slice value = {0};
    return merge != NULL && split_stored(stored, &value) && merge->is_empty(value);
}

Status merge_read(const StoreMerge *merges, Slice key, Slice *value, bool *hidden, Error *err)
{
    *hidden = false;
    const StoreMerge *merge = merge_of(merges, key);
    if (merge == NULL)
        return STATUS_OK;
    Slice whole = {0};
    if (!split_stored(*value, &whole))
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "cannot read: what was merged into the key is damaged");
    *hidden = merge->is_empty(whole);
    *value = whole;
    return STATUS_OK;
}
