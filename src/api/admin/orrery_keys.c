/* orrery_keys.c - the account's keys: /_orrery/keys.
 *
 *     GET    which keys there are, with their fingerprints, without the keys themselves
 *     POST   {"name": "primary", "fingerprint": "..."} makes a new key, and answers it once
 *
 * Signed as a request for the account, with a master key: no other credential may see or change
 * keys, and no web page of another origin, even one that may use the rest of the server. The
 * signature does not cover the body; a client that names the fingerprint of the key to be replaced
 * makes a request that works only once, however often it is sent again.
 */
#include "api/admin/orrery_int.h"
#include "api/core/request_audit_int.h"
#include "api/core/response_int.h"
#include "base/mem.h"
#include "base/secret_mem.h"

/* A rotation on its way to a worker and back. */
typedef struct KeyJob {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    KeyRotation rotation;
    Status status;
    Error error;
    KeyInfo info;
    char text[KEY_RING_TEXT_LEN];
} KeyJob;

bool keys_is_path(Slice path)
{
    return slice_equal(path, SLICE("/keys")) || slice_equal(path, SLICE("/keys/"));
}

/* Over plain HTTP anybody on the way could read the new key. */
static bool is_private(const ApiRequest *r)
{
    const ApiOptions *options = &r->api->options;
    return r->http->is_tls || options->is_loopback ||
           (options->trust_forwarded &&
            slice_equal_nocase(slice_trim(request_header(r, "x-forwarded-proto")), SLICE("https")));
}

Status keys_admit(ApiRequest *r, Error *err)
{
    bool is_read = r->is_head || slice_equal(r->http->method, SLICE("GET"));
    if (!is_read && !slice_equal(r->http->method, SLICE("POST")))
        return error_set(err, STATUS_METHOD_NOT_ALLOWED, SUB_NONE,
                         "%.*s is not possible here; GET and POST are.",
                         SLICE_CUT(r->http->method, 20));
    TRY(address_parse(r->arena, SLICE("/"), &r->address, err));
    r->operation = OPERATION_EXECUTE; /* so that a read-only key is refused */
    TRY(request_authorise(r, false, err));
    if (r->principal.kind != PRINCIPAL_KEY)
        return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                         "Only a master key may see or change keys.");
    if (r->origin.len > 0)
        return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                         "Web pages may not see or change keys; use the command 'orrery key'.");
    if (!is_read && !is_private(r))
        return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                         "The answer would show the new key to everybody on the way; ask over "
                         "https.");
    return STATUS_OK;
}

static void put_info(Buf *out, KeySlot slot, const KeyInfo *info)
{
    put_text(out, "name", key_slot_name(slot));
    put_text(out, "kind", key_slot_is_read_only(slot) ? SLICE("read-only") : SLICE("read-write"));
    put_text(out, "source", slice_from_cstr(key_source_name(info->source)));
    if (info->source == KEY_SOURCE_OPTION)
        put_text(out, "option", slice_from_cstr(info->given_by));
    if (info->source == KEY_SOURCE_STORED) {
        put_number(out, "madeAt", info->made_at_s > 0 ? (uint64_t)info->made_at_s : 0);
        put_number(out, "rotations", info->rotations);
    }
    if (info->source != KEY_SOURCE_NONE)
        put_text(out, "fingerprint", slice_make(info->fingerprint, KEY_FINGERPRINT_LEN));
}

static void respond_list(ApiRequest *r)
{
    KeyInfo infos[KEY_SLOT_COUNT];
    key_ring_list(r->api->options.keys, infos);
    AUTO(buf_done) Buf text;
    buf_init(&text, 8192);
    put_open(&text, NULL, '{');
    put_open(&text, "keys", '[');
    for (int slot = 0; slot < KEY_SLOT_COUNT; slot++) {
        put_open(&text, NULL, '{');
        put_info(&text, (KeySlot)slot, &infos[slot]);
        put_close(&text, '}');
    }
    put_close(&text, ']');
    put_close(&text, '}');
    respond_text(r, 200, SLICE("application/json"), arena_copy(r->arena, buf_view(&text)));
}

/* ---- rotation ---- */

enum { ANSWER_BYTES_MAX = 1024 };

static void release_answer(void *ctx)
{
    secret_free(ctx, ANSWER_BYTES_MAX);
}

/* On the loop. The body is in secret memory until it was sent. */
static void on_rotated(HttpTask *task)
{
    KeyJob *job = CONTAINER_OF(task, KeyJob, task);
    ApiRequest *r = job->request;
    if (job->status != STATUS_OK) {
        respond_error(r, &job->error);
        return;
    }
    LOG_INFO(r->api->options.log, "keys.rotated", "name=%.*s fingerprint=%.*s by=%.*s",
             SLICE_ARG(key_slot_name(job->rotation.slot)), KEY_FINGERPRINT_LEN,
             job->info.fingerprint, SLICE_ARG(r->principal.name));
    AUTO(buf_done) Buf text;
    buf_init(&text, ANSWER_BYTES_MAX);
    put_open(&text, NULL, '{');
    put_info(&text, job->rotation.slot, &job->info);
    put_text(&text, "key", slice_make(job->text, KEY_RING_TEXT_LEN));
    put_close(&text, '}');
    ASSERT(!buf_full(&text));
    void *body = secret_alloc(ANSWER_BYTES_MAX);
    memcpy(body, text.ptr, text.len);
    Response response;
    response_begin(r, &response, 200, SLICE("0"));
    response_header(&response, SLICE("content-type"), SLICE("application/json"));
    response.body = slice_make(body, text.len);
    response.body_release = release_answer;
    response.body_release_ctx = body;
    secret_wipe(text.ptr, text.len);
    secret_wipe(job->text, sizeof(job->text));
    response_send(r, &response);
}

/* On a worker: it waits for the disk. */
static void on_worker(WorkerJob *worker_job)
{
    KeyJob *job = CONTAINER_OF(worker_job, KeyJob, job);
    Api *api = job->request->api;
    job->status =
        key_ring_rotate(api->options.keys, &job->rotation, job->text, &job->info, &job->error);
    if (job->status == STATUS_OK)
        refresh_loops(api);
    http_loop_post(job->request->http->loop, &job->task);
}

static Status read_rotation(ApiRequest *r, KeyRotation *out, Error *err)
{
    Json body;
    TRY(request_json(r, &body, err));
    Slice fingerprint = SLICE_EMPTY;
    bool has_name = false;
    for (JsonIter it = json_iter(body); json_next(&it);) {
        bool is_text = json_is(it.value, JSON_STRING);
        if (slice_equal(it.name, SLICE("name")))
            has_name = is_text && key_slot_parse(json_string(it.value), &out->slot);
        else if (slice_equal(it.name, SLICE("fingerprint")) && is_text)
            fingerprint = json_string(it.value);
        else
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "The body has no member '%.*s' of that type; there are 'name' and "
                             "'fingerprint', both texts.",
                             SLICE_CUT(it.name, 60));
    }
    if (!has_name)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'name' must be primary, secondary, primary-read-only or "
                         "secondary-read-only.");
    out->fingerprint = arena_copy(r->arena, fingerprint);
    out->version = r->keys_version;
    return STATUS_OK;
}

Status keys_request(ApiRequest *r, Error *err)
{
    if (!slice_equal(r->http->method, SLICE("POST"))) {
        respond_list(r);
        return STATUS_OK;
    }
    KeyJob *job = ARENA_NEW(r->arena, KeyJob);
    job->request = r;
    job->job.run = on_worker;
    job->task.run = on_rotated;
    TRY(read_rotation(r, &job->rotation, err));
    request_audit_subject(r, key_slot_name(job->rotation.slot), SLICE_EMPTY);
    if (!workers_post(r->api->options.readers, &job->job))
        return request_refuse_busy(err);
    return STATUS_OK;
}
