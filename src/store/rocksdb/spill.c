/* spill.c - see spill_int.h.
 *
 *     file   = run*
 *     run    = record*
 *     record = | shared varint | rest varint | value and deleted varint | rest of key | value |
 *
 * 'shared' bytes of the key are those of the record before. The first record of each part of a run
 * shares none, so that a walk can begin there. 'value and deleted' is twice the value's length, and
 * one more for a deletion.
 */
#include "store/rocksdb/spill_int.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
    WRITE_BYTES = 256 << 10,
    READ_BYTES_MIN = 4 << 10, /* of each run */
    READ_BYTES_MAX = 256 << 10,
    READ_BYTES_ALL = 8 << 20, /* of all runs of a walk */
    HEAD_BYTES_MAX = 30,      /* three varints */
};

typedef struct Run {
    uint64_t from[SPILL_PARTS + 1]; /* where each part begins, and where the last one ends */
} Run;

struct Spill {
    int fd;
    Run *runs;
    size_t run_count;
    size_t run_capacity;
    uint64_t bytes;
    Buf middle; /* the first key of the second part */
    bool has_middle;
    Buf last;      /* the key before, in this run and part */
    bool is_first; /* this part of the run has no record yet */
    unsigned part;
    Buf out;    /* not written yet */
    int failed; /* errno; 0: nothing has */
};

/* ---- writing ---- */

Status spill_open(const char *path, Spill **out, Error *err)
{
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot make the file '%.200s'", path);
    (void)unlink(path); /* if it stays, the next start removes it */
    Spill *spill = MEM_NEW(Spill);
    spill->fd = fd;
    buf_init(&spill->middle, FULL_KEY_BYTES_MAX);
    buf_init(&spill->last, FULL_KEY_BYTES_MAX);
    buf_init(&spill->out, SIZE_MAX);
    *out = spill;
    return STATUS_OK;
}

void spill_close(Spill *spill)
{
    if (spill == NULL)
        return;
    (void)close(spill->fd); /* nobody wants what is in it */
    buf_done(&spill->middle);
    buf_done(&spill->last);
    buf_done(&spill->out);
    mem_free(spill->runs);
    mem_free(spill);
}

static void flush(Spill *spill)
{
    size_t done = 0;
    while (done < spill->out.len && spill->failed == 0) {
        ssize_t n = write(spill->fd, spill->out.ptr + done, spill->out.len - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            spill->failed = errno;
    }
    spill->bytes += done;
    buf_reset(&spill->out);
}

static uint64_t position(const Spill *spill)
{
    return spill->bytes + spill->out.len;
}

void spill_begin_run(Spill *spill, Slice middle)
{
    if (!spill->has_middle)
        buf_slice(&spill->middle, middle);
    spill->has_middle = true;
    ARRAY_GROW(spill->runs, spill->run_count, spill->run_capacity, 16);
    spill->runs[spill->run_count++] = (Run){.from = {position(spill)}};
    spill->part = 0;
    spill->is_first = true;
}

static void next_part(Spill *spill)
{
    spill->runs[spill->run_count - 1].from[++spill->part] = position(spill);
    spill->is_first = true;
}

static void put_varint(Buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_byte(out, (uint8_t)(value | 0x80));
    buf_byte(out, (uint8_t)value);
}

static size_t shared_bytes(Slice a, Slice b)
{
    size_t max = a.len < b.len ? a.len : b.len;
    size_t n = 0;
    while (n < max && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

void spill_add(Spill *spill, const SpillRecord *record)
{
    if (spill->part == 0 && slice_compare(record->key, buf_view(&spill->middle)) >= 0)
        next_part(spill);
    size_t shared = spill->is_first ? 0 : shared_bytes(record->key, buf_view(&spill->last));
    spill->is_first = false;
    Slice rest = slice_from(record->key, shared);
    put_varint(&spill->out, shared);
    put_varint(&spill->out, rest.len);
    put_varint(&spill->out, 2 * (uint64_t)record->value.len + (record->is_deleted ? 1 : 0));
    buf_slice(&spill->out, rest);
    buf_slice(&spill->out, record->value);
    spill->last.len = shared;
    buf_slice(&spill->last, rest);
    if (spill->out.len >= WRITE_BYTES)
        flush(spill);
}

Status spill_end_run(Spill *spill, Error *err)
{
    while (spill->part < SPILL_PARTS)
        next_part(spill);
    flush(spill);
    if (spill->failed == 0)
        return STATUS_OK;
    if (spill->failed == ENOSPC || spill->failed == EDQUOT)
        return error_set(err, STATUS_IO, SUB_NONE, "cannot write: the disk is full");
    return error_set_errno(err, spill->failed, "cannot write a temporary file");
}

size_t spill_run_count(const Spill *spill)
{
    return spill->run_count;
}

/* ---- reading ---- */

/* One run's part. */
typedef struct Reader {
    const Spill *spill;
    size_t run;
    uint64_t at; /* in the file, of what is read next */
    uint64_t end;
    char *bytes; /* read, from 'pos' to 'len' not looked at */
    size_t capacity;
    size_t pos;
    size_t len;
    Buf key;
    Slice value;
    bool is_deleted;
} Reader;

struct SpillWalk {
    Reader *readers;
    size_t reader_count;
    Reader **heap; /* those that have a record, the first one first */
    size_t heap_count;
    bool has_given; /* the first one's record: it is to go on */
};

static Status damaged(Error *err)
{
    return error_set(err, STATUS_IO, SUB_NONE, "a temporary file is not as it was written");
}

/* Makes 'wanted' bytes available, or as many as the part still has. */
static Status fill(Reader *reader, size_t wanted, Error *err)
{
    if (reader->len - reader->pos >= wanted || reader->at == reader->end)
        return STATUS_OK;
    memmove(reader->bytes, reader->bytes + reader->pos, reader->len - reader->pos);
    reader->len -= reader->pos;
    reader->pos = 0;
    if (wanted > reader->capacity) {
        reader->capacity = wanted;
        reader->bytes = mem_realloc(reader->bytes, wanted);
    }
    while (reader->len < wanted && reader->at < reader->end) {
        size_t room = reader->capacity - reader->len;
        uint64_t left = reader->end - reader->at;
        ssize_t n = pread(reader->spill->fd, reader->bytes + reader->len,
                          left < room ? (size_t)left : room, (off_t)reader->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set_errno(err, errno, "cannot read a temporary file");
        if (n == 0)
            return damaged(err);
        reader->len += (size_t)n;
        reader->at += (uint64_t)n;
    }
    return STATUS_OK;
}

static bool get_varint(Reader *reader, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && reader->pos < reader->len; shift += 7) {
        uint8_t byte = (uint8_t)reader->bytes[reader->pos++];
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

static Status read_record(Reader *reader, bool *found, Error *err)
{
    TRY(fill(reader, HEAD_BYTES_MAX, err));
    *found = reader->pos < reader->len;
    if (!*found)
        return STATUS_OK;
    uint64_t shared = 0;
    uint64_t rest = 0;
    uint64_t value = 0;
    if (!get_varint(reader, &shared) || !get_varint(reader, &rest) || !get_varint(reader, &value))
        return damaged(err);
    if (shared > reader->key.len || rest > FULL_KEY_BYTES_MAX || value / 2 > STORE_VALUE_BYTES_MAX)
        return damaged(err);
    size_t value_len = (size_t)(value / 2);
    TRY(fill(reader, (size_t)rest + value_len, err));
    if (reader->len - reader->pos < rest + value_len)
        return damaged(err);
    reader->key.len = (size_t)shared;
    buf_bytes(&reader->key, reader->bytes + reader->pos, (size_t)rest);
    reader->value = slice_make(reader->bytes + reader->pos + rest, value_len);
    reader->is_deleted = value % 2 == 1;
    reader->pos += (size_t)rest + value_len;
    return STATUS_OK;
}

static bool is_before(const Reader *a, const Reader *b)
{
    int order = slice_compare(buf_view(&a->key), buf_view(&b->key));
    return order != 0 ? order < 0 : a->run < b->run;
}

static void sift_down(SpillWalk *walk, size_t at)
{
    Reader *moved = walk->heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= walk->heap_count)
            break;
        if (child + 1 < walk->heap_count && is_before(walk->heap[child + 1], walk->heap[child]))
            child++;
        if (!is_before(walk->heap[child], moved))
            break;
        walk->heap[at] = walk->heap[child];
        at = child;
    }
    walk->heap[at] = moved;
}

static size_t read_bytes(size_t run_count)
{
    size_t bytes = READ_BYTES_ALL / (run_count > 0 ? run_count : 1);
    return bytes < READ_BYTES_MIN   ? READ_BYTES_MIN
           : bytes > READ_BYTES_MAX ? READ_BYTES_MAX
                                    : bytes;
}

Status spill_walk_open(const Spill *spill, unsigned part, SpillWalk **out, Error *err)
{
    AUTO(spill_walk_close) SpillWalk *walk = MEM_NEW(SpillWalk);
    walk->readers = MEM_NEW_ARRAY(Reader, spill->run_count);
    walk->heap = MEM_NEW_ARRAY(Reader *, spill->run_count);
    walk->reader_count = spill->run_count;
    for (size_t i = 0; i < spill->run_count; i++) {
        Reader *reader = &walk->readers[i];
        *reader = (Reader){.spill = spill,
                           .run = i,
                           .at = spill->runs[i].from[part],
                           .end = spill->runs[i].from[part + 1],
                           .capacity = read_bytes(spill->run_count)};
        buf_init(&reader->key, FULL_KEY_BYTES_MAX);
        if (reader->at == reader->end)
            continue;
        reader->bytes = mem_realloc(NULL, reader->capacity);
        bool found = false;
        TRY(read_record(reader, &found, err));
        if (found)
            walk->heap[walk->heap_count++] = reader;
    }
    for (size_t at = walk->heap_count / 2; at > 0; at--)
        sift_down(walk, at - 1);
    *out = TAKE(walk);
    return STATUS_OK;
}

Status spill_walk_next(SpillWalk *walk, SpillRecord *record, bool *found, Error *err)
{
    if (walk->has_given) {
        bool has_more = false;
        TRY(read_record(walk->heap[0], &has_more, err));
        if (!has_more)
            walk->heap[0] = walk->heap[--walk->heap_count];
        if (walk->heap_count > 0)
            sift_down(walk, 0);
    }
    *found = walk->has_given = walk->heap_count > 0;
    if (*found) {
        const Reader *first = walk->heap[0];
        *record = (SpillRecord){buf_view(&first->key), first->value, first->is_deleted};
    }
    return STATUS_OK;
}

void spill_walk_close(SpillWalk *walk)
{
    if (walk == NULL)
        return;
    for (size_t i = 0; i < walk->reader_count; i++) {
        mem_free(walk->readers[i].bytes);
        buf_done(&walk->readers[i].key);
    }
    mem_free(walk->readers);
    mem_free(walk->heap);
    mem_free(walk);
}
