/* orrery_snapshots.c - saved states of databases: /_orrery/snapshots and
 * /_orrery/dbs/{db}/snapshots/{name}.
 *
 *     GET    /_orrery/snapshots?db={db}                   which there are
 *     PUT    /_orrery/dbs/{db}/snapshots/{name}           saves; replaces one of that name
 *     POST   /_orrery/dbs/{db}/snapshots/{name}/restore   takes the database back to it
 *     DELETE /_orrery/dbs/{db}/snapshots/{name}
 *
 * The list is signed as a read of the account, and the others as requests for the database, which
 * need not exist any more. They need a master key that may write. Each runs on a worker, because it
 * waits for the disk.
 */
#include "api/admin/orrery_int.h"
#include "api/core/request_audit_int.h"
#include "api/core/response_int.h"
#include "base/encoding.h"
#include "catalog/saved_states.h"

typedef enum SnapshotAct {
    SNAPSHOT_LIST,
    SNAPSHOT_SAVE,
    SNAPSHOT_RESTORE,
    SNAPSHOT_DROP,
} SnapshotAct;

/* Lives in its request's arena. */
typedef struct SnapshotCall {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    SnapshotAct act;
    Slice database; /* in the arena; of a list empty if all are wanted */
    Slice name;

    Status status;
    Error error;
    bool has_replaced;
    uint64_t took_us;
} SnapshotCall;

/* ---- paths ---- */

static Status no_such_path(Error *err)
{
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                     "There is no such path. There are GET /_orrery/snapshots, PUT and DELETE "
                     "/_orrery/dbs/{db}/snapshots/{name} and POST "
                     "/_orrery/dbs/{db}/snapshots/{name}/restore.");
}

/* "/dbs/{db}", "{name}" and perhaps "restore" of a path after /_orrery. */
typedef struct SnapshotPath {
    Slice resource;
    Slice name;
    bool is_restore;
} SnapshotPath;

static bool is_list(Slice path)
{
    return slice_equal(path, SLICE("/snapshots")) || slice_equal(path, SLICE("/snapshots/"));
}

static bool split_path(Slice path, SnapshotPath *out)
{
    Slice rest = path;
    *out = (SnapshotPath){0};
    if (!slice_starts_with(rest, SLICE("/dbs/")))
        return false;
    rest = slice_from(rest, strlen("/dbs/"));
    Slice database = slice_cut(&rest, '/');
    if (database.len == 0 || !slice_equal(slice_cut(&rest, '/'), SLICE("snapshots")))
        return false;
    out->resource = slice_first(path, strlen("/dbs/") + database.len);
    out->name = slice_cut(&rest, '/');
    out->is_restore = slice_equal(rest, SLICE("restore"));
    return out->name.len > 0 && (rest.len == 0 || out->is_restore);
}

bool snapshots_is_path(Slice path)
{
    Slice rest = path;
    if (is_list(path))
        return true;
    if (!slice_starts_with(rest, SLICE("/dbs/")))
        return false;
    rest = slice_from(rest, strlen("/dbs/"));
    (void)slice_cut(&rest, '/');
    return slice_equal(slice_cut(&rest, '/'), SLICE("snapshots"));
}

static bool find_act(const ApiRequest *r, Slice path, SnapshotPath *parts, SnapshotAct *out)
{
    Slice method = r->http->method;
    *out = SNAPSHOT_LIST;
    if (is_list(path))
        return r->is_head || slice_equal(method, SLICE("GET"));
    if (!split_path(path, parts))
        return false;
    *out = parts->is_restore                      ? SNAPSHOT_RESTORE
           : slice_equal(method, SLICE("DELETE")) ? SNAPSHOT_DROP
                                                  : SNAPSHOT_SAVE;
    static const Slice methods[] = {[SNAPSHOT_SAVE] = SLICE_INIT("PUT"),
                                    [SNAPSHOT_RESTORE] = SLICE_INIT("POST"),
                                    [SNAPSHOT_DROP] = SLICE_INIT("DELETE")};
    return slice_equal(method, methods[*out]);
}

Status snapshots_admit(ApiRequest *r, Slice path, Error *err)
{
    SnapshotPath parts = {0};
    SnapshotAct act = SNAPSHOT_LIST;
    if (!find_act(r, path, &parts, &act))
        return no_such_path(err);
    bool is_read = act == SNAPSHOT_LIST;
    TRY(address_parse(r->arena, is_read ? SLICE("/") : parts.resource, &r->address, err));
    if (!is_read && (r->address.type != RESOURCE_DATABASE || r->address.is_feed))
        return no_such_path(err);
    r->operation = is_read ? OPERATION_READ : OPERATION_EXECUTE;
    return request_authorise(r, false, err);
}

/* ---- on a worker ---- */

static void on_worker(WorkerJob *job)
{
    SnapshotCall *call = CONTAINER_OF(job, SnapshotCall, job);
    const ApiOptions *options = &call->request->api->options;
    uint64_t begun_us = clock_monotonic_us(options->clock);
    worker_begin_wait(); /* others may run while this one waits for the disk */
    switch (call->act) {
    case SNAPSHOT_SAVE:
        call->status = catalog_save_state(options->catalog, call->database, call->name,
                                          &call->has_replaced, &call->error);
        break;
    case SNAPSHOT_RESTORE:
        call->status =
            catalog_restore_state(options->catalog, call->database, call->name, &call->error);
        break;
    case SNAPSHOT_DROP:
        call->status =
            catalog_drop_state(options->catalog, call->database, call->name, &call->error);
        break;
    case SNAPSHOT_LIST:
        ASSERT(!"a list needs no worker");
    }
    worker_end_wait();
    call->took_us = clock_monotonic_us(options->clock) - begun_us;
    http_loop_post(call->request->http->loop, &call->task);
}

/* ---- on the loop ---- */

static void on_answer(HttpTask *task)
{
    SnapshotCall *call = CONTAINER_OF(task, SnapshotCall, task);
    ApiRequest *r = call->request;
    if (call->status != STATUS_OK) {
        respond_error(r, &call->error);
        return;
    }
    if (call->act == SNAPSHOT_DROP) {
        Response response;
        response_begin(r, &response, 204, SLICE("0"));
        response_send(r, &response);
        return;
    }
    AUTO(buf_done) Buf text;
    buf_init(&text, ORRERY_JSON_BYTES_MAX);
    put_open(&text, NULL, '{');
    put_text(&text, "database", call->database);
    put_text(&text, "name", call->name);
    put_number(&text, "tookUs", call->took_us);
    put_close(&text, '}');
    int status = call->act == SNAPSHOT_SAVE && !call->has_replaced ? 201 : 200;
    respond_text(r, status, SLICE("application/json"), arena_copy(r->arena, buf_view(&text)));
}

static void put_state(Buf *out, const SavedState *state)
{
    put_open(out, NULL, '{');
    put_text(out, "database", state->database_id);
    put_text(out, "name", state->name);
    put_number(out, "savedAt", (uint64_t)state->saved_at_s);
    put_number(out, "containers", state->container_count);
    put_bool(out, "restoring", state->is_restoring);
    put_close(out, '}');
}

static void respond_list(ApiRequest *r, Slice database)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, ORRERY_JSON_BYTES_MAX);
    put_open(&text, NULL, '{');
    put_open(&text, "snapshots", '[');
    const Snapshot *snapshot = catalog_read(&r->loop->reader);
    const SavedState *state;
    for (uint32_t from = 0; (state = snapshot_next_saved(snapshot, from)) != NULL;
         from = state->number + 1) {
        if (database.len == 0 || slice_equal(state->database_id, database))
            put_state(&text, state);
    }
    put_close(&text, ']');
    put_close(&text, '}');
    respond_text(r, 200, SLICE("application/json"), arena_copy(r->arena, buf_view(&text)));
}

/* "db=shop", or nothing. */
static Status parse_query(const ApiRequest *r, Slice query, bool can_have, Slice *out, Error *err)
{
    Slice value = query;
    *out = SLICE_EMPTY;
    if (query.len == 0)
        return STATUS_OK;
    Slice parameter = slice_cut(&value, '=');
    if (!can_have || !slice_equal(parameter, SLICE("db")) || value.len == 0 ||
        !percent_decode(r->arena, value, out))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The only parameter is 'db' of GET /_orrery/snapshots: the id of a "
                         "database.");
    return STATUS_OK;
}

Status snapshots_request(ApiRequest *r, Slice path, Slice query, Error *err)
{
    SnapshotPath parts = {0};
    SnapshotCall *call = ARENA_NEW(r->arena, SnapshotCall);
    Slice decoded = SLICE_EMPTY;
    if (!find_act(r, path, &parts, &call->act))
        return no_such_path(err);
    TRY(parse_query(r, query, call->act == SNAPSHOT_LIST, &call->database, err));
    if (call->act == SNAPSHOT_LIST) {
        respond_list(r, call->database);
        return STATUS_OK;
    }
    if (!percent_decode(r->arena, parts.name, &decoded))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The name of the snapshot cannot be decoded.");
    TRY(saved_name_check(decoded, err));
    call->database = arena_copy(r->arena, r->address.parts[0].id);
    call->name = arena_copy(r->arena, decoded);
    call->request = r;
    call->job.run = on_worker;
    call->task.run = on_answer;
    request_audit_subject(r, call->database, SLICE_EMPTY);
    if (!workers_post(r->api->options.workers, &call->job))
        return request_refuse_busy(err);
    return STATUS_OK;
}
