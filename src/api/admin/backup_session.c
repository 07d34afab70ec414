/* backup_session.c - see backup_session_int.h.
 *
 *              backups_begin             the client ends it, is silent, or the server stops
 *     (none) ---------------> OPEN -----------------------------------------> ENDED --> (none)
 *              a checkpoint      each request notes the time     the last request is answered, the
 *                                                                checkpoint is removed
 *
 * The thread that was started with the session makes all of these transitions but the first. It is
 * joined by the next session's beginning, or by backups_close.
 */
#include "api/admin/backup_session_int.h"

#include "base/cond.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* The other files are small: secrets, certificates. */
#define DATA_FILE_BYTES_MAX ((size_t)1 << 20)

struct BackupSession {
    /* Immutable after the beginning. */
    Backups *backups;
    char id[BACKUP_ID_LEN];
    char owner[BACKUP_OWNER_LEN_MAX];
    size_t owner_len;
    int64_t time_s;
    StoreCheckpoint *checkpoint;
    size_t checkpoint_count; /* the first files are the checkpoint's */
    BackupFile *files;
    Slice *contents; /* of the other files, which are in memory */
    size_t count;
    Arena arena;

    /* Guarded by the lock of 'backups'. */
    size_t references; /* of requests */
    uint64_t used_us;
    bool is_ended;
};

struct Backups {
    BackupsOptions options; /* immutable after open */

    pthread_mutex_t lock;
    pthread_cond_t changed;

    /* Guarded by 'lock'. */
    bool is_making;         /* a session is about to begin */
    BackupSession *session; /* NULL if there is none */
    bool is_removing;       /* the files of the one before */
    bool is_closing;
    bool has_thread; /* that is to be joined */
    pthread_t thread;
};

Backups *backups_open(const BackupsOptions *options)
{
    Backups *backups = MEM_NEW(Backups);
    backups->options = *options;
    int failed = pthread_mutex_init(&backups->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&backups->changed, NULL);
    ASSERT(failed == 0);
    return backups;
}

static void session_free(BackupSession *session)
{
    if (session == NULL)
        return;
    store_checkpoint_close(session->checkpoint);
    arena_done(&session->arena);
    mem_free(session);
}
DEFINE_AUTO(BackupSession *, session_free)

void backups_close(Backups *backups)
{
    if (backups == NULL)
        return;
    pthread_mutex_lock(&backups->lock);
    backups->is_closing = true;
    (void)pthread_cond_broadcast(&backups->changed);
    bool has_thread = backups->has_thread;
    pthread_mutex_unlock(&backups->lock);
    if (has_thread)
        (void)pthread_join(backups->thread, NULL);
    ASSERT(backups->session == NULL);
    (void)pthread_cond_destroy(&backups->changed);
    (void)pthread_mutex_destroy(&backups->lock);
    mem_free(backups);
}

/* ---- the thread ---- */

/* With the lock held: waits for the end of the session; what it ended by. */
static const char *wait_for_end(Backups *backups, BackupSession *session)
{
    uint64_t idle_us = (uint64_t)backups->options.idle_ms * 1000;
    while (!session->is_ended && !backups->is_closing) {
        if (session->references > 0) {
            (void)pthread_cond_wait(&backups->changed, &backups->lock);
            continue;
        }
        uint64_t until_us = session->used_us + idle_us;
        if (cond_now_us() >= until_us)
            return "silence";
        (void)cond_wait_until(&backups->changed, &backups->lock, until_us);
    }
    return session->is_ended ? "client" : "stop";
}

static void *watch(void *ctx)
{
    Backups *backups = ctx;
    pthread_mutex_lock(&backups->lock);
    BackupSession *session = backups->session;
    const char *reason = wait_for_end(backups, session);
    session->is_ended = true;
    while (session->references > 0)
        (void)pthread_cond_wait(&backups->changed, &backups->lock);
    backups->session = NULL;
    backups->is_removing = true;
    pthread_mutex_unlock(&backups->lock);

    LOG_INFO(backups->options.log, "backup.ended", "id=%.*s by=%s", BACKUP_ID_LEN, session->id,
             reason);
    session_free(session); /* without the lock: removing files takes time */
    pthread_mutex_lock(&backups->lock);
    backups->is_removing = false;
    (void)pthread_cond_broadcast(&backups->changed);
    pthread_mutex_unlock(&backups->lock);
    return NULL;
}

/* ---- beginning ---- */

static Status read_data_file(BackupSession *session, const char *name, Error *err)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", session->backups->options.data_folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return STATUS_OK;
    if (fd < 0)
        return error_set_errno(err, errno, "cannot read '%.200s'", name);
    char *bytes = arena_alloc(&session->arena, DATA_FILE_BYTES_MAX);
    ssize_t len = read(fd, bytes, DATA_FILE_BYTES_MAX);
    int code = errno;
    (void)close(fd); /* only read from */
    if (len < 0)
        return error_set_errno(err, code, "cannot read '%.200s'", name);
    session->contents[session->count - session->checkpoint_count] = slice_make(bytes, (size_t)len);
    session->files[session->count++] = (BackupFile){.name = name, .size = (uint64_t)len};
    return STATUS_OK;
}

static Status fill(BackupSession *session, Error *err)
{
    const BackupsOptions *options = &session->backups->options;
    session->time_s = clock_wall_s(options->clock);
    TRY(store_checkpoint_open(options->store, &session->checkpoint, err));
    size_t count = 0;
    const CheckpointFile *files = store_checkpoint_files(session->checkpoint, &count);
    size_t others = 0;
    while (options->data_folder != NULL && options->data_files[others] != NULL)
        others++;
    session->files = ARENA_NEW_ARRAY(&session->arena, BackupFile, count + others);
    session->contents = ARENA_NEW_ARRAY(&session->arena, Slice, others + 1);
    for (size_t i = 0; i < count; i++)
        session->files[i] = (BackupFile){
            .name = arena_format(&session->arena, "store/%s", files[i].name).ptr,
            .size = files[i].size,
        };
    session->checkpoint_count = count;
    session->count = count;
    for (size_t i = 0; i < others; i++)
        TRY(read_data_file(session, options->data_files[i], err));
    return STATUS_OK;
}

static Status make_session(Backups *backups, Slice owner, BackupSession **out, Error *err)
{
    AUTO(session_free) BackupSession *session = MEM_NEW(BackupSession);
    arena_init(&session->arena, 4096);
    session->backups = backups;
    session->owner_len = owner.len;
    if (owner.len > 0)
        memcpy(session->owner, owner.ptr, owner.len);
    uint8_t secret[BACKUP_ID_LEN / 2];
    random_secret(secret, sizeof(secret));
    hex_encode(secret, sizeof(secret), session->id);
    TRY(fill(session, err));
    session->references = 1;
    session->used_us = cond_now_us();
    *out = TAKE(session);
    return STATUS_OK;
}

/* With the lock held: publishes the session and starts its thread. */
static Status publish(Backups *backups, BackupSession *session, Error *err)
{
    if (backups->is_closing)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "The server is stopping.");
    backups->session = session;
    Status status = thread_start(&backups->thread, "orrery-backup", watch, backups, err);
    backups->has_thread = status == STATUS_OK;
    if (status != STATUS_OK)
        backups->session = NULL;
    return status;
}

/* With the lock held: ends a session of the same owner, and waits until its files are gone. */
static void replace_own(Backups *backups, Slice owner)
{
    BackupSession *session = backups->session;
    if (session == NULL || owner.len == 0 ||
        !slice_equal(owner, slice_make(session->owner, session->owner_len)))
        return;
    session->is_ended = true;
    (void)pthread_cond_broadcast(&backups->changed);
    while (backups->session == session || backups->is_removing)
        (void)pthread_cond_wait(&backups->changed, &backups->lock);
}

Status backups_begin(Backups *backups, Slice owner, BackupSession **out, Error *err)
{
    ASSERT(owner.len <= BACKUP_OWNER_LEN_MAX);
    pthread_mutex_lock(&backups->lock);
    replace_own(backups, owner);
    bool is_free = backups->session == NULL && !backups->is_making && !backups->is_removing &&
                   !backups->is_closing;
    bool has_thread = backups->has_thread;
    pthread_t ended = backups->thread;
    if (is_free) {
        backups->is_making = true;
        backups->has_thread = false;
    }
    pthread_mutex_unlock(&backups->lock);
    if (!is_free)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "Another backup is under way. One whose client is gone ends by itself "
                         "within %u seconds.",
                         backups->options.idle_ms / 1000);
    if (has_thread)
        (void)pthread_join(ended, NULL); /* it has let go of its session */

    BackupSession *session = NULL;
    Status status = make_session(backups, owner, &session, err);
    pthread_mutex_lock(&backups->lock);
    backups->is_making = false;
    if (status == STATUS_OK)
        status = publish(backups, session, err);
    pthread_mutex_unlock(&backups->lock);
    if (status != STATUS_OK) {
        session_free(session);
        return status;
    }
    LOG_INFO(backups->options.log, "backup.begun", "id=%.*s files=%zu", BACKUP_ID_LEN, session->id,
             session->count);
    *out = session;
    return STATUS_OK;
}

/* ---- using ---- */

Status backups_find(Backups *backups, Slice id, BackupSession **out, Error *err)
{
    pthread_mutex_lock(&backups->lock);
    BackupSession *session = backups->session;
    bool found = session != NULL && !session->is_ended && !backups->is_closing &&
                 slice_equal(id, backup_session_id(session));
    if (found)
        session->references++;
    pthread_mutex_unlock(&backups->lock);
    if (!found)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "There is no such backup, or it has ended: that happens when its client "
                         "has asked for nothing in %u seconds.",
                         backups->options.idle_ms / 1000);
    *out = session;
    return STATUS_OK;
}

void backup_session_release(BackupSession *session)
{
    if (session == NULL)
        return;
    Backups *backups = session->backups;
    pthread_mutex_lock(&backups->lock);
    ASSERT(session->references > 0);
    session->references--;
    session->used_us = cond_now_us();
    (void)pthread_cond_broadcast(&backups->changed);
    pthread_mutex_unlock(&backups->lock);
}

void backup_session_end(BackupSession *session)
{
    Backups *backups = session->backups;
    pthread_mutex_lock(&backups->lock);
    session->is_ended = true;
    (void)pthread_cond_broadcast(&backups->changed);
    pthread_mutex_unlock(&backups->lock);
}

Slice backup_session_id(const BackupSession *session)
{
    return slice_make(session->id, BACKUP_ID_LEN);
}

int64_t backup_session_time_s(const BackupSession *session)
{
    return session->time_s;
}

const BackupFile *backup_session_files(const BackupSession *session, size_t *count)
{
    *count = session->count;
    return session->files;
}

Status backup_session_read(const BackupSession *session, size_t index, uint64_t offset, void *out,
                           size_t size, size_t *len, Error *err)
{
    ASSERT(index < session->count);
    if (index < session->checkpoint_count)
        return store_checkpoint_read(session->checkpoint, index, offset, out, size, len, err);
    Slice rest =
        offset > SIZE_MAX
            ? SLICE_EMPTY
            : slice_from(session->contents[index - session->checkpoint_count], (size_t)offset);
    *len = rest.len < size ? rest.len : size;
    if (*len > 0)
        memcpy(out, rest.ptr, *len);
    return STATUS_OK;
}
