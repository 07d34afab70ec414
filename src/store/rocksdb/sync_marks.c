/* sync_marks.c - see sync_marks_int.h for what a mark is.
 *
 *     file = slot, at byte 0 and once more at byte 4096
 *     slot = | magic u32 | checksum u32 | count u32 | 0 u32 | turn u64 | mark * count |
 *     mark = | number, 56 bits; flags, the upper 8 | bytes u64 |                (all little-endian)
 *
 * The checksum covers all that follows it. A slot fits into one sector of a disk. The slots are
 * written in turn, so that one torn by a loss of power leaves the other, which is a little older
 * and just as true.
 *
 * A slot that cannot be written does no harm: the marks are then older than they could be.
 */
#include "store/rocksdb/sync_marks_int.h"

#include "base/crc32.h"
#include "base/mem.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define MARKS_NAME "SYNCED"

enum {
    SLOT_STRIDE = 4096,
    SLOT_BYTES_MAX = 512,
    SLOT_MAGIC = 0x314d534f, /* "OSM1" */
    FLAG_MANIFEST = 1,
    FLAG_RELAXED = 2,
    FLAG_EXACT = 4,
    FLAGS_SHIFT = 56,
};

typedef struct StoredMark {
    uint64_t number_and_flags;
    uint64_t bytes;
} StoredMark;

typedef struct Slot {
    uint32_t magic;
    uint32_t checksum;
    uint32_t count;
    uint32_t zero;
    uint64_t turn;
    StoredMark marks[SYNC_MARKS_MAX];
} Slot;

enum { SLOT_HEAD_BYTES = offsetof(Slot, marks), SLOT_SUM_FROM = offsetof(Slot, count) };
static_assert(sizeof(Slot) <= SLOT_BYTES_MAX, "a slot fits into a sector");

struct SyncMarks {
    char *path; /* immutable after open */

    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    int fd; /* -1 until it is opened for writing */
    uint64_t turn;
    size_t count;
    bool has_news;                   /* something was noted and not written */
    SyncMark marks[SYNC_MARKS_MAX];  /* as they are, or will be, in the file */
    uint64_t synced[SYNC_MARKS_MAX]; /* bytes that were noted for each of them */
};

static uint32_t sum_of(const Slot *slot, size_t bytes)
{
    return crc32_of(slice_make((const char *)slot + SLOT_SUM_FROM, bytes - SLOT_SUM_FROM));
}

static size_t slot_bytes(uint32_t count)
{
    return SLOT_HEAD_BYTES + count * sizeof(StoredMark);
}

static bool is_valid(const Slot *slot)
{
    return slot->magic == SLOT_MAGIC && slot->count <= SYNC_MARKS_MAX &&
           slot->checksum == sum_of(slot, slot_bytes(slot->count));
}

static void take_slot(SyncMarks *marks, const Slot *slot)
{
    marks->turn = slot->turn;
    marks->count = slot->count;
    for (size_t i = 0; i < slot->count; i++) {
        uint64_t packed = slot->marks[i].number_and_flags;
        uint64_t flags = packed >> FLAGS_SHIFT;
        marks->marks[i] = (SyncMark){
            .kind = (flags & FLAG_MANIFEST) != 0 ? SYNC_MANIFEST : SYNC_LOG,
            .is_relaxed = (flags & FLAG_RELAXED) != 0,
            .is_exact = (flags & FLAG_EXACT) != 0,
            .number = packed & ((UINT64_C(1) << FLAGS_SHIFT) - 1),
            .bytes = slot->marks[i].bytes,
        };
        marks->synced[i] = slot->marks[i].bytes;
    }
}

SyncMarks *sync_marks_open(const char *folder)
{
    SyncMarks *marks = MEM_NEW(SyncMarks);
    size_t size = strlen(folder) + sizeof("/" MARKS_NAME);
    marks->path = mem_alloc(size);
    (void)snprintf(marks->path, size, "%s/" MARKS_NAME, folder);
    marks->fd = -1;
    int failed = pthread_mutex_init(&marks->lock, NULL);
    ASSERT(failed == 0);
    sync_marks_reload(marks);
    return marks;
}

void sync_marks_reload(SyncMarks *marks)
{
    marks->turn = 0;
    marks->count = 0;
    int fd = open(marks->path, O_RDONLY | O_CLOEXEC);
    for (off_t i = 0; fd >= 0 && i < 2; i++) {
        Slot slot = {0};
        if (pread(fd, &slot, sizeof(slot), i * SLOT_STRIDE) >= SLOT_HEAD_BYTES && is_valid(&slot) &&
            slot.turn > marks->turn)
            take_slot(marks, &slot);
    }
    if (fd >= 0)
        (void)close(fd); /* only read from */
}

void sync_marks_close(SyncMarks *marks)
{
    if (marks == NULL)
        return;
    if (marks->fd >= 0)
        (void)close(marks->fd); /* marks may be old */
    (void)pthread_mutex_destroy(&marks->lock);
    mem_free(marks->path);
    mem_free(marks);
}

size_t sync_marks_read(SyncMarks *marks, SyncMark out[SYNC_MARKS_MAX])
{
    (void)pthread_mutex_lock(&marks->lock);
    size_t count = marks->count;
    memcpy(out, marks->marks, sizeof(SyncMark) * count);
    (void)pthread_mutex_unlock(&marks->lock);
    return count;
}

/* ---- with the lock held ---- */

static bool write_slot(SyncMarks *marks)
{
    if (marks->fd < 0)
        marks->fd = open(marks->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (marks->fd < 0)
        return false;
    Slot slot = {.magic = SLOT_MAGIC, .count = (uint32_t)marks->count, .turn = ++marks->turn};
    for (size_t i = 0; i < marks->count; i++) {
        const SyncMark *mark = &marks->marks[i];
        uint64_t flags = (mark->kind == SYNC_MANIFEST ? FLAG_MANIFEST : 0u) |
                         (mark->is_relaxed ? FLAG_RELAXED : 0u) |
                         (mark->is_exact ? FLAG_EXACT : 0u);
        slot.marks[i] = (StoredMark){mark->number | flags << FLAGS_SHIFT, mark->bytes};
    }
    size_t bytes = slot_bytes(slot.count);
    slot.checksum = sum_of(&slot, bytes);
    off_t at = (off_t)(marks->turn % 2) * SLOT_STRIDE;
    return pwrite(marks->fd, &slot, bytes, at) == (ssize_t)bytes;
}

/* SYNC_MARKS_MAX if there is none. The newest, which each write needs, is the last. */
static size_t find(const SyncMarks *marks, SyncKind kind, uint64_t number)
{
    for (size_t i = marks->count; i-- > 0;) {
        if (marks->marks[i].number == number && marks->marks[i].kind == kind)
            return i;
    }
    return SYNC_MARKS_MAX;
}

static void take_out(SyncMarks *marks, size_t at)
{
    marks->count--;
    for (size_t i = at; i < marks->count; i++) {
        marks->marks[i] = marks->marks[i + 1];
        marks->synced[i] = marks->synced[i + 1];
    }
}

/* Removes the oldest if there are too many, which only means that less is known. */
static size_t append(SyncMarks *marks, SyncMark mark)
{
    if (marks->count == SYNC_MARKS_MAX)
        take_out(marks, 0);
    marks->marks[marks->count] = mark;
    marks->synced[marks->count] = mark.bytes;
    return marks->count++;
}

/* ---- any thread ---- */

void sync_marks_clear(SyncMarks *marks)
{
    (void)pthread_mutex_lock(&marks->lock);
    marks->count = 0;
    (void)pthread_mutex_unlock(&marks->lock);
}

void sync_marks_add_log(SyncMarks *marks, uint64_t number, bool is_relaxed)
{
    (void)pthread_mutex_lock(&marks->lock);
    size_t old = find(marks, SYNC_LOG, number);
    if (old < SYNC_MARKS_MAX)
        take_out(marks, old);
    (void)append(marks, (SyncMark){.kind = SYNC_LOG, .number = number, .is_relaxed = is_relaxed});
    if (write_slot(marks))
        (void)fdatasync(marks->fd);
    (void)pthread_mutex_unlock(&marks->lock);
}

void sync_marks_remove(SyncMarks *marks, SyncKind kind, uint64_t number)
{
    (void)pthread_mutex_lock(&marks->lock);
    size_t at = find(marks, kind, number);
    if (at < SYNC_MARKS_MAX) {
        take_out(marks, at);
        (void)write_slot(marks);
    }
    (void)pthread_mutex_unlock(&marks->lock);
}

void sync_marks_note(SyncMarks *marks, SyncKind kind, uint64_t number, uint64_t bytes)
{
    (void)pthread_mutex_lock(&marks->lock);
    size_t at = find(marks, kind, number);
    if (at == SYNC_MARKS_MAX && kind == SYNC_MANIFEST)
        at = append(marks, (SyncMark){.kind = kind, .number = number});
    if (at < SYNC_MARKS_MAX && marks->synced[at] < bytes) {
        marks->synced[at] = bytes;
        marks->has_news = true;
    }
    (void)pthread_mutex_unlock(&marks->lock);
}

void sync_marks_write(SyncMarks *marks)
{
    (void)pthread_mutex_lock(&marks->lock);
    if (marks->has_news) {
        for (size_t i = 0; i < marks->count; i++) {
            if (!marks->marks[i].is_exact)
                marks->marks[i].bytes = marks->synced[i];
        }
        marks->has_news = false;
        (void)write_slot(marks);
    }
    (void)pthread_mutex_unlock(&marks->lock);
}

bool sync_marks_end_logs(SyncMarks *marks)
{
    (void)pthread_mutex_lock(&marks->lock);
    bool is_certain = true;
    for (size_t i = 0; i < marks->count; i++) {
        SyncMark *mark = &marks->marks[i];
        mark->is_exact = mark->kind == SYNC_LOG && !mark->is_relaxed;
        is_certain = is_certain && (mark->kind != SYNC_LOG || mark->is_exact);
    }
    is_certain = write_slot(marks) && fdatasync(marks->fd) == 0 && is_certain;
    (void)pthread_mutex_unlock(&marks->lock);
    return is_certain;
}
