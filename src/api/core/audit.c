/* audit.c - see audit.h.
 *
 *     loop ── Line ──> mailbox ──> writer's thread ── write(2) ──> file
 *
 * A line that was not written whole leaves half a line at the end of the file. It is cut off again,
 * or, if that fails, ended by a line break before the next line.
 */
#include "api/core/audit.h"

#include "base/buf.h"
#include "base/mailbox.h"
#include "base/mem.h"
#include "base/thread.h"
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    /* Bytes of a text as it is printed. An id has at most 255 characters, of which none takes more
     * than six bytes unless it is beyond the basic plane. */
    SHORT_TEXT_MAX = 128,
    NAME_TEXT_MAX = 600,
    ID_TEXT_MAX = 1536,
    PATH_TEXT_MAX = 3072,
    REFUSED_PATH_TEXT_MAX = 768, /* anybody can fill the disk with these */
    SHORT_TEXTS = 9,             /* members of a line that have the first of these bounds */
    MEMBERS_BYTES = 1024,        /* names, punctuation, numbers and the time */
    DROPPED_BYTES_MAX = 64,      /* the member that is added when lines are missing */
    TIME_TEXT_MAX = 64,
};
static_assert(SHORT_TEXTS * SHORT_TEXT_MAX + NAME_TEXT_MAX + ID_TEXT_MAX + PATH_TEXT_MAX +
                      MEMBERS_BYTES + DROPPED_BYTES_MAX <=
                  AUDIT_LINE_BYTES_MAX,
              "a line holds all its members");

typedef struct Line {
    QueueNode node;
    size_t len; /* without a line break; it ends with '}' */
    char text[];
} Line;

struct Audit {
    /* Immutable after open. */
    AuditOptions options;
    pthread_t thread;
    QueueNode stop; /* a message: the last one */

    /* Writer's thread only. */
    int fd;
    bool is_torn;    /* the file ends with half a line */
    bool is_failing; /* the last line was not written */

    /* Any thread. */
    Mailbox mailbox;
    QueueNode reopen; /* a message; posted while 'is_reopening' */
    _Atomic bool is_reopening;
    _Atomic size_t queued_bytes;
    _Atomic uint64_t dropped; /* since the last line that was written */
};

static void *run(void *ctx);
static Status open_file(const char *path, int *out, Error *err);
static void print_record(const AuditRecord *record, uint64_t now_us, Buf *out);

Status audit_open(const AuditOptions *options, Audit **out, Error *err)
{
    ASSERT(options->path != NULL);
    ASSERT(options->queue_bytes_max >= 2 * AUDIT_LINE_BYTES_MAX);
    int fd = -1;
    TRY(open_file(options->path, &fd, err));
    Audit *audit = MEM_NEW(Audit);
    audit->options = *options;
    audit->fd = fd;
    if (audit->options.write == NULL)
        audit->options.write = write;
    mailbox_init(&audit->mailbox);
    if (thread_start(&audit->thread, "orrery-audit", run, audit, err) == STATUS_OK) {
        *out = audit;
        return STATUS_OK;
    }
    mailbox_done(&audit->mailbox);
    (void)close(fd); /* nothing was written */
    mem_free(audit);
    return err->status;
}

void audit_close(Audit *audit)
{
    if (audit == NULL)
        return;
    mailbox_post(&audit->mailbox, &audit->stop);
    (void)pthread_join(audit->thread, NULL); /* fails only if we wrote a bug */
    mailbox_done(&audit->mailbox);
    if (close(audit->fd) != 0)
        LOG_ERROR(audit->options.log, "audit.close_failed", "reason=\"%s\"", strerror(errno));
    mem_free(audit);
}

bool audit_post(Audit *audit, const AuditRecord *record)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, AUDIT_LINE_BYTES_MAX);
    print_record(record, clock_wall_us(audit->options.clock), &text);
    ASSERT(!buf_full(&text));
    size_t bytes = sizeof(Line) + text.len;
    size_t bytes_max = audit->options.queue_bytes_max;
    if (record->event == AUDIT_REFUSAL)
        bytes_max /= 2;
    size_t before = atomic_fetch_add(&audit->queued_bytes, bytes);
    if (before + bytes > bytes_max) {
        atomic_fetch_sub(&audit->queued_bytes, bytes);
        atomic_fetch_add(&audit->dropped, 1);
        return false;
    }
    Line *line = mem_alloc(bytes);
    line->len = text.len;
    memcpy(line->text, text.ptr, text.len);
    mailbox_post(&audit->mailbox, &line->node);
    return true;
}

void audit_reopen(Audit *audit)
{
    if (!atomic_exchange(&audit->is_reopening, true))
        mailbox_post(&audit->mailbox, &audit->reopen);
}

/* ---- the writer's thread ---- */

/* Not blocking, in case that the path names a pipe which is not read. */
static Status open_file(const char *path, int *out, Error *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open the audit log '%s'", path);
    *out = fd;
    return STATUS_OK;
}

/* Takes back the 'len' bytes that were written last. */
static void cut_off(Audit *audit, size_t len)
{
    struct stat now;
    off_t end = lseek(audit->fd, 0, SEEK_CUR); /* where the last write ended */
    bool is_last = end >= (off_t)len && fstat(audit->fd, &now) == 0 && S_ISREG(now.st_mode) &&
                   now.st_size == end;
    audit->is_torn = !is_last || ftruncate(audit->fd, end - (off_t)len) != 0;
}

/* All of it or nothing. */
static bool write_whole(Audit *audit, const char *text, size_t len)
{
    ssize_t written;
    do
        written = audit->options.write(audit->fd, text, len);
    while (written < 0 && errno == EINTR);
    if (written == (ssize_t)len)
        return true;
    if (written >= 0)
        errno = ENOSPC; /* what a write of a part of a line means */
    int code = errno;
    if (written > 0)
        cut_off(audit, (size_t)written);
    errno = code;
    return false;
}

/* Writes the line, and before it what has happened to others. */
static void write_line(Audit *audit, const char *text, size_t len)
{
    const Log *log = audit->options.log;
    char bytes[AUDIT_LINE_BYTES_MAX + 1];
    ASSERT(len + DROPPED_BYTES_MAX <= AUDIT_LINE_BYTES_MAX);
    uint64_t dropped = atomic_exchange(&audit->dropped, 0);
    size_t at = 0;
    if (audit->is_torn)
        bytes[at++] = '\n';
    memcpy(bytes + at, text, len);
    at += len;
    if (dropped > 0)
        at += (size_t)snprintf(bytes + at - 1, DROPPED_BYTES_MAX, ",\"dropped\":%llu}",
                               (unsigned long long)dropped) -
              1;
    bytes[at++] = '\n';
    if (!write_whole(audit, bytes, at)) {
        if (!audit->is_failing)
            LOG_ERROR(log, "audit.write_failed", "path='%s' reason=\"%s\"", audit->options.path,
                      strerror(errno));
        audit->is_failing = true;
        atomic_fetch_add(&audit->dropped, dropped + 1);
        metrics_add(audit->options.metrics, METRIC_AUDIT_DROPPED, 1);
        return;
    }
    audit->is_torn = false;
    audit->is_failing = false;
    metrics_add(audit->options.metrics, METRIC_AUDIT_LINES, 1);
    if (dropped > 0)
        LOG_ERROR(log, "audit.lines_lost", "path='%s' count=%llu", audit->options.path,
                  (unsigned long long)dropped);
}

static void reopen_file(Audit *audit)
{
    Error err;
    int fd = -1;
    atomic_store(&audit->is_reopening, false);
    if (open_file(audit->options.path, &fd, &err) != STATUS_OK) {
        LOG_ERROR(audit->options.log, "audit.reopen_failed", "reason=\"%s\"", err.message);
        return;
    }
    if (close(audit->fd) != 0)
        LOG_ERROR(audit->options.log, "audit.close_failed", "reason=\"%s\"", strerror(errno));
    audit->fd = fd;
    audit->is_torn = false;
    LOG_INFO(audit->options.log, "audit.reopened", "path='%s'", audit->options.path);
}

static size_t print_time(uint64_t us, char out[TIME_TEXT_MAX])
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm = {0};
    (void)gmtime_r(&seconds, &tm); /* 64 bits of microseconds are less than any year it refuses */
    return (size_t)snprintf(out, TIME_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%06uZ",
                            tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                            tm.tm_sec, (unsigned)(us % 1000000));
}

/* The last line, if no other can say how many are missing. */
static void write_loss(Audit *audit)
{
    if (atomic_load(&audit->dropped) == 0)
        return;
    char time[TIME_TEXT_MAX];
    char text[2 * TIME_TEXT_MAX];
    size_t time_len = print_time(clock_wall_us(audit->options.clock), time);
    int len =
        snprintf(text, sizeof(text), "{\"time\":\"%.*s\",\"event\":\"loss\"}", (int)time_len, time);
    write_line(audit, text, (size_t)len);
}

static void *run(void *ctx)
{
    Audit *audit = ctx;
    for (;;) {
        QueueNode *node = mailbox_wait(&audit->mailbox);
        while (node != NULL) {
            QueueNode *next = node->next;
            if (node == &audit->stop) {
                write_loss(audit);
                return NULL;
            }
            if (node == &audit->reopen) {
                reopen_file(audit);
            } else {
                Line *line = CONTAINER_OF(node, Line, node);
                write_line(audit, line->text, line->len);
                atomic_fetch_sub(&audit->queued_bytes, sizeof(Line) + line->len);
                mem_free(line);
            }
            node = next;
        }
    }
}

/* ---- the text of a line ---- */

/* The character that 'text' begins with, and its length; 0 if the first byte begins none. */
static size_t decode(Slice text, uint32_t *out)
{
    unsigned char first = (unsigned char)text.ptr[0];
    size_t len = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (len > text.len || !json_utf8_valid(slice_first(text, len)))
        return 0;
    uint32_t value = len == 1 ? first : first & (0xffU >> (len + 1));
    for (size_t i = 1; i < len; i++)
        value = value << 6 | ((unsigned char)text.ptr[i] & 0x3f);
    *out = value;
    return len;
}

/* How one character, or one byte that is none, is printed: in ASCII, and none that could end the
 * string or the line. */
static int escape(Slice text, size_t *used, char out[16])
{
    uint32_t c = 0;
    *used = decode(text, &c);
    if (*used == 0) {
        *used = 1;
        return snprintf(out, 16, "%%%02X", (unsigned char)text.ptr[0]);
    }
    if (c == '"' || c == '\\')
        return snprintf(out, 16, "\\%c", (char)c);
    if (c >= ' ' && c < 0x7f)
        return snprintf(out, 16, "%c", (char)c);
    if (c < 0x10000)
        return snprintf(out, 16, "\\u%04x", c);
    c -= 0x10000;
    return snprintf(out, 16, "\\u%04x\\u%04x", 0xd800 + (c >> 10), 0xdc00 + (c & 0x3ff));
}

/* A member whose value has at most 'bytes_max' bytes in print; "..." ends one that was cut. */
static void put_member(Buf *out, const char *name, Slice text, size_t bytes_max)
{
    static const Slice cut = SLICE_INIT("...");
    if (text.len == 0)
        return;
    char last = out->ptr[out->len - 1];
    buf_format(out, "%s\"%s\":\"", last == '{' ? "" : ",", name);
    size_t room = bytes_max - cut.len;
    while (text.len > 0) {
        char shown[16];
        size_t used = 0;
        size_t len = (size_t)escape(text, &used, shown);
        if (len > room) {
            buf_slice(out, cut);
            break;
        }
        buf_bytes(out, shown, len);
        room -= len;
        text = slice_from(text, used);
    }
    buf_byte(out, '"');
}

static void print_record(const AuditRecord *record, uint64_t now_us, Buf *out)
{
    char time[TIME_TEXT_MAX];
    size_t len = print_time(now_us, time);
    buf_byte(out, '{');
    put_member(out, "time", slice_make(time, len), SHORT_TEXT_MAX);
    put_member(out, "event", record->event == AUDIT_CHANGE ? SLICE("change") : SLICE("refusal"),
               SHORT_TEXT_MAX);
    put_member(out, "activityId", record->activity_id, SHORT_TEXT_MAX);
    put_member(out, "client", record->client, SHORT_TEXT_MAX);
    buf_slice(out, SLICE(",\"principal\":{"));
    put_member(out, "kind", record->principal_kind, SHORT_TEXT_MAX);
    put_member(out, "name", record->principal_name, NAME_TEXT_MAX);
    buf_byte(out, '}');
    put_member(out, "method", record->method, SHORT_TEXT_MAX);
    put_member(out, "path", record->path,
               record->event == AUDIT_REFUSAL ? REFUSED_PATH_TEXT_MAX : PATH_TEXT_MAX);
    put_member(out, "operation", record->operation, SHORT_TEXT_MAX);
    put_member(out, "resourceType", record->resource_type, SHORT_TEXT_MAX);
    buf_format(out, ",\"status\":%d,\"subStatus\":%u", record->status, record->sub_status);
    put_member(out, "id", record->id, ID_TEXT_MAX);
    put_member(out, "rid", record->rid, SHORT_TEXT_MAX);
    buf_byte(out, '}');
}
