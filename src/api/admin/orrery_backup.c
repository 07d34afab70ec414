/* orrery_backup.c - copying the server's data while it runs: paths under /_orrery/backup.
 *
 *     POST   /_orrery/backup?owner=name              begins: what there is to copy
 *     GET    /_orrery/backup/{id}/{file}?offset=n    bytes of a file, at most "pieceBytes" of them
 *     GET    /_orrery/backup/{id}/{file}/sum         its SHA-256, for a client that may have it
 *     DELETE /_orrery/backup/{id}                    ends
 *
 * 'file' is the position in the list, so that no request names a path. All are signed as requests
 * for the account, and need a master key: a backup has everything. Each is short, so a slow client
 * holds no thread; a client that does not come back is forgotten (backup_session_int.h).
 */
#include "api/admin/backup_session_int.h"
#include "api/admin/orrery_int.h"
#include "api/core/response_int.h"
#include "api/core/sha256.h"

typedef enum BackupAct { BACKUP_BEGIN, BACKUP_READ, BACKUP_SUM, BACKUP_END } BackupAct;

/* Lives in its request's arena. */
typedef struct BackupCall {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    BackupAct act;
    BackupSession *session; /* a reference; NULL before it has begun */
    Slice owner;            /* in the arena */
    size_t file;
    uint64_t offset;

    Status status;
    Error error;
    Buf text;
} BackupCall;

/* ---- on a worker ---- */

static Status begin(BackupCall *call, Error *err)
{
    /* Writing out a memtable may take a second; others may run meanwhile. */
    worker_begin_wait();
    Status status = backups_begin(call->request->api->backups, call->owner, &call->session, err);
    worker_end_wait();
    TRY(status);
    size_t count = 0;
    const BackupFile *files = backup_session_files(call->session, &count);
    StoreDamage damage;
    store_damage(call->request->api->options.store, &damage);
    Buf *out = &call->text;
    put_open(out, NULL, '{');
    put_text(out, "id", backup_session_id(call->session));
    put_text(out, "version", SLICE(ORRERY_VERSION));
    put_number(out, "time", (uint64_t)backup_session_time_s(call->session));
    put_number(out, "pieceBytes", BACKUP_PIECE_BYTES);
    put_bool(out, "damaged", damage.reads > 0);
    put_open(out, "files", '[');
    for (size_t i = 0; i < count; i++) {
        put_open(out, NULL, '{');
        put_text(out, "name", slice_from_cstr(files[i].name));
        put_number(out, "size", files[i].size);
        put_close(out, '}');
    }
    put_close(out, ']');
    put_close(out, '}');
    if (!buf_full(out))
        return STATUS_OK;
    backup_session_end(call->session);
    return error_set(err, STATUS_TOO_LARGE, SUB_RESPONSE_TOO_LARGE,
                     "The data has too many files (%zu) to be copied in this way; stop the server "
                     "and make the backup from its folder.",
                     count);
}

/* Others may run while this one waits for the disk. */
static Status read_bytes(BackupCall *call, uint64_t offset, size_t *len, Error *err)
{
    worker_begin_wait();
    Status status = backup_session_read(call->session, call->file, offset, call->text.ptr,
                                        BACKUP_PIECE_BYTES, len, err);
    worker_end_wait();
    return status;
}

static Status read_piece(BackupCall *call, Error *err)
{
    size_t len = 0;
    if (!buf_reserve(&call->text, BACKUP_PIECE_BYTES))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE, "The piece is too large.");
    TRY(read_bytes(call, call->offset, &len, err));
    call->text.len = len;
    return STATUS_OK;
}

static Status make_sum(BackupCall *call, Error *err)
{
    if (!buf_reserve(&call->text, BACKUP_PIECE_BYTES))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE, "The piece is too large.");
    Sha256 sum;
    sha256_init(&sum);
    size_t len = 0;
    uint64_t offset = 0;
    do {
        TRY(read_bytes(call, offset, &len, err));
        sha256_add(&sum, slice_make(call->text.ptr, len));
        offset += len;
        (void)worker_yield();
    } while (len > 0);
    char text[SHA256_TEXT_LEN];
    sha256_end(&sum, text);
    put_open(&call->text, NULL, '{');
    put_text(&call->text, "sha256", slice_make(text, sizeof(text)));
    put_close(&call->text, '}');
    return STATUS_OK;
}

static void on_worker(WorkerJob *job)
{
    BackupCall *call = CONTAINER_OF(job, BackupCall, job);
    switch (call->act) {
    case BACKUP_BEGIN:
        call->status = begin(call, &call->error);
        break;
    case BACKUP_READ:
        call->status = read_piece(call, &call->error);
        break;
    case BACKUP_SUM:
        call->status = make_sum(call, &call->error);
        break;
    case BACKUP_END:
        backup_session_end(call->session);
        call->status = STATUS_OK;
        break;
    }
    backup_session_release(TAKE(call->session));
    http_loop_post(call->request->http->loop, &call->task);
}

/* ---- on the loop ---- */

static void on_answer(HttpTask *task)
{
    BackupCall *call = CONTAINER_OF(task, BackupCall, task);
    ApiRequest *r = call->request;
    if (call->status != STATUS_OK) {
        buf_done(&call->text);
        respond_error(r, &call->error);
        return;
    }
    int status = call->act == BACKUP_BEGIN ? 201 : call->act == BACKUP_END ? 204 : 200;
    Response response;
    response_begin(r, &response, status, SLICE("0"));
    if (call->act != BACKUP_END)
        response_header(&response, SLICE("content-type"),
                        call->act == BACKUP_READ ? SLICE("application/octet-stream")
                                                 : SLICE("application/json"));
    response_own_body(&response, &call->text);
    response_send(r, &response);
}

static Status no_such_path(Error *err)
{
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                     "There is no such path. There are POST /_orrery/backup, GET "
                     "/_orrery/backup/{id}/{file}?offset=n, GET /_orrery/backup/{id}/{file}/sum "
                     "and DELETE /_orrery/backup/{id}.");
}

static bool is_method(const ApiRequest *r, Slice method)
{
    return slice_equal(r->http->method, method);
}

/* "/{file}?offset=n" or "/{file}/sum", of the session. */
static Status parse_file(BackupCall *call, Slice path, Slice query, Error *err)
{
    uint64_t file = 0;
    size_t count = 0;
    Slice name = slice_cut(&path, '/');
    (void)backup_session_files(call->session, &count);
    if (!slice_to_u64(name, &file) || file >= count)
        return no_such_path(err);
    call->file = (size_t)file;
    call->act = BACKUP_READ;
    if (slice_equal(path, SLICE("sum")) && query.len == 0) {
        call->act = BACKUP_SUM;
        return STATUS_OK;
    }
    if (path.len > 0)
        return no_such_path(err);
    Slice value = query;
    Slice parameter = slice_cut(&value, '=');
    if (query.len > 0 &&
        (!slice_equal(parameter, SLICE("offset")) || !slice_to_u64(value, &call->offset)))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The only parameter is 'offset', a whole number of bytes.");
    return STATUS_OK;
}

/* "owner=1F2E", or nothing. */
static Status parse_owner(BackupCall *call, Slice query, Error *err)
{
    Slice value = query;
    Slice parameter = slice_cut(&value, '=');
    if (query.len == 0)
        return STATUS_OK;
    if (!slice_equal(parameter, SLICE("owner")) || value.len == 0 ||
        value.len > BACKUP_OWNER_LEN_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The only parameter is 'owner', of 1 to %d characters.",
                         BACKUP_OWNER_LEN_MAX);
    call->owner = arena_copy(call->request->arena, value);
    return STATUS_OK;
}

static Status parse(BackupCall *call, Slice path, Slice query, Error *err)
{
    const ApiRequest *r = call->request;
    path = slice_from(path, strlen("/backup"));
    if (slice_starts_with(path, SLICE("/")))
        path = slice_from(path, 1);
    if (path.len == 0) {
        call->act = BACKUP_BEGIN;
        return is_method(r, SLICE("POST")) ? parse_owner(call, query, err) : no_such_path(err);
    }
    TRY(backups_find(r->api->backups, slice_cut(&path, '/'), &call->session, err));
    call->act = BACKUP_END;
    if (path.len == 0 && is_method(r, SLICE("DELETE")))
        return STATUS_OK;
    return is_method(r, SLICE("GET")) ? parse_file(call, path, query, err) : no_such_path(err);
}

bool backup_is_path(Slice path)
{
    Slice prefix = SLICE("/backup");
    return slice_starts_with(path, prefix) &&
           (path.len == prefix.len || path.ptr[prefix.len] == '/');
}

Status backup_admit(ApiRequest *r, Error *err)
{
    TRY(address_parse(r->arena, SLICE("/"), &r->address, err));
    r->operation = OPERATION_EXECUTE; /* so that a read-only key is refused */
    return request_authorise(r, false, err);
}

Status backup_request(ApiRequest *r, Slice path, Slice query, Error *err)
{
    BackupCall *call = ARENA_NEW(r->arena, BackupCall);
    call->request = r;
    call->job.run = on_worker;
    call->task.run = on_answer;
    Status status = parse(call, path, query, err);
    if (status == STATUS_OK) {
        buf_init(&call->text, ORRERY_JSON_BYTES_MAX);
        if (workers_post(r->api->options.workers, &call->job))
            return STATUS_OK;
        status = request_refuse_busy(err);
    }
    backup_session_release(call->session);
    return status;
}
