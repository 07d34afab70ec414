/* orrery_swap.c - giving the name of a container to a copy of it: paths under /_orrery/swap.
 *
 *     POST   /_orrery/swap?database=d&container=c&copy=k&milliseconds=n
 *                                            holds the writes of 'c' for so long: a token.
 *                                            Without 'copy' it can only be ended
 *     POST   /_orrery/swap/{token}?name=old  'k' is 'c' from now on, and 'c' is 'old'
 *     DELETE /_orrery/swap/{token}           the writes go on as before
 *
 * All are signed as requests for the account, and need a master key. See swap_session_int.h.
 */
#include "api/admin/orrery_int.h"
#include "api/admin/swap_session_int.h"
#include "api/core/response_int.h"
#include "base/encoding.h"

enum { HOLD_MS_DEFAULT = 5000, HOLD_MS_MIN = 100 };

typedef enum SwapAct { SWAP_HOLD, SWAP_COMMIT, SWAP_RELEASE } SwapAct;

/* Lives in its request's arena. */
typedef struct SwapCall {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    SwapAct act;
    SwapNames names;
    uint32_t ms;
    Slice token; /* these two are in the arena */
    Slice name;

    Status status;
    Error error;
    char made[SWAP_TOKEN_LEN];
} SwapCall;

static void on_worker(WorkerJob *job)
{
    SwapCall *call = CONTAINER_OF(job, SwapCall, job);
    Swaps *swaps = call->request->api->swaps;
    worker_begin_wait();
    switch (call->act) {
    case SWAP_HOLD:
        call->status = swaps_hold(swaps, call->names, call->ms, call->made, &call->error);
        break;
    case SWAP_COMMIT:
        call->status = swaps_commit(swaps, call->token, call->name, &call->error);
        break;
    case SWAP_RELEASE:
        call->status = swaps_release(swaps, call->token, &call->error);
        break;
    }
    worker_end_wait();
    http_loop_post(call->request->http->loop, &call->task);
}

static void on_answer(HttpTask *task)
{
    SwapCall *call = CONTAINER_OF(task, SwapCall, task);
    ApiRequest *r = call->request;
    if (call->status != STATUS_OK) {
        respond_error(r, &call->error);
        return;
    }
    Response response;
    response_begin(r, &response, call->act == SWAP_HOLD ? 201 : 204, SLICE("0"));
    if (call->act == SWAP_HOLD) {
        Buf text;
        buf_init(&text, 256);
        put_open(&text, NULL, '{');
        put_text(&text, "token", slice_make(call->made, SWAP_TOKEN_LEN));
        put_number(&text, "milliseconds", call->ms);
        put_close(&text, '}');
        response_header(&response, SLICE("content-type"), SLICE("application/json"));
        response_own_body(&response, &text);
    }
    response_send(r, &response);
}

/* ---- on the loop ---- */

typedef struct SwapParameter {
    const char *name;
    Slice value; /* decoded, in the arena; empty if it was not given */
} SwapParameter;

static Status read_parameters(ApiRequest *r, Slice query, SwapParameter *known, size_t count,
                              Error *err)
{
    while (query.len > 0) {
        Slice value = slice_cut(&query, '&');
        Slice name = slice_cut(&value, '=');
        size_t i = 0;
        while (i < count && !slice_equal(name, slice_from_cstr(known[i].name)))
            i++;
        Slice decoded;
        if (i == count || known[i].value.len > 0 || value.len == 0 ||
            !percent_decode(r->arena, value, &decoded))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "'%.*s' is not a parameter here, has no value, or was given twice.",
                             SLICE_CUT(name, 60));
        known[i].value = arena_copy(r->arena, decoded);
    }
    return STATUS_OK;
}

static Status need(const SwapParameter *parameter, Error *err)
{
    return parameter->value.len > 0 ? STATUS_OK
                                    : error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                                                "The parameter '%s' is needed.", parameter->name);
}

static Status find(const Snapshot *snapshot, uint32_t database, Slice id, uint32_t *out, Error *err)
{
    const Container *container = snapshot_container_by_id(snapshot, database, id);
    if (container == NULL)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "There is no container '%.*s'.",
                         SLICE_CUT(id, 260));
    *out = container->info.number;
    return STATUS_OK;
}

static Status parse_hold(SwapCall *call, Slice query, Error *err)
{
    ApiRequest *r = call->request;
    SwapParameter p[] = {
        {.name = "database"}, {.name = "container"}, {.name = "copy"}, {.name = "milliseconds"}};
    TRY(read_parameters(r, query, p, ARRAY_COUNT(p), err));
    for (size_t i = 0; i < 2; i++)
        TRY(need(&p[i], err));
    uint64_t ms = HOLD_MS_DEFAULT;
    if (p[3].value.len > 0 &&
        (!slice_to_u64(p[3].value, &ms) || ms < HOLD_MS_MIN || ms > SWAP_HOLD_MS_MAX))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'milliseconds' must be from %d to %d, not '%.*s'.", HOLD_MS_MIN,
                         SWAP_HOLD_MS_MAX, SLICE_CUT(p[3].value, 40));
    call->ms = (uint32_t)ms;
    const Snapshot *snapshot = catalog_read(&r->loop->reader);
    const Database *database = snapshot_database_by_id(snapshot, p[0].value);
    if (database == NULL)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "There is no database '%.*s'.",
                         SLICE_CUT(p[0].value, 260));
    call->names.database = database->info.number;
    TRY(find(snapshot, database->info.number, p[1].value, &call->names.container, err));
    if (p[2].value.len > 0)
        TRY(find(snapshot, database->info.number, p[2].value, &call->names.copy, err));
    if (call->names.container == call->names.copy)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A container cannot take its own name over.");
    return STATUS_OK;
}

static Status parse_commit(SwapCall *call, Slice query, Error *err)
{
    SwapParameter name = {.name = "name"};
    TRY(read_parameters(call->request, query, &name, 1, err));
    TRY(need(&name, err));
    call->name = name.value;
    return resource_id_check(name.value, RESOURCE_ID_NAMED, err);
}

static Status parse(SwapCall *call, Slice path, Slice query, Error *err)
{
    const ApiRequest *r = call->request;
    bool is_post = slice_equal(r->http->method, SLICE("POST"));
    path = slice_from(path, strlen("/swap"));
    if (slice_starts_with(path, SLICE("/")))
        path = slice_from(path, 1);
    call->token = arena_copy(r->arena, path);
    call->act = path.len == 0 ? SWAP_HOLD : is_post ? SWAP_COMMIT : SWAP_RELEASE;
    if (call->act == SWAP_HOLD && is_post)
        return parse_hold(call, query, err);
    if (call->act == SWAP_COMMIT)
        return parse_commit(call, query, err);
    if (call->act == SWAP_RELEASE && slice_equal(r->http->method, SLICE("DELETE")))
        return STATUS_OK;
    return error_set(err, STATUS_METHOD_NOT_ALLOWED, SUB_NONE,
                     "There are POST /_orrery/swap, POST /_orrery/swap/{token} and DELETE "
                     "/_orrery/swap/{token}.");
}

bool swap_is_path(Slice path)
{
    Slice prefix = SLICE("/swap");
    return slice_starts_with(path, prefix) &&
           (path.len == prefix.len || path.ptr[prefix.len] == '/');
}

Status swap_admit(ApiRequest *r, Error *err)
{
    TRY(address_parse(r->arena, SLICE("/"), &r->address, err));
    r->operation = OPERATION_EXECUTE; /* so that a read-only key is refused */
    return request_authorise(r, false, err);
}

Status swap_request(ApiRequest *r, Slice path, Slice query, Error *err)
{
    SwapCall *call = ARENA_NEW(r->arena, SwapCall);
    call->request = r;
    call->job.run = on_worker;
    call->task.run = on_answer;
    TRY(parse(call, path, query, err));
    return workers_post(r->api->options.workers, &call->job) ? STATUS_OK : request_refuse_busy(err);
}
