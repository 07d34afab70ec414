/* script_session.c - see script_session_int.h. */
#include "api/items/script_session_int.h"

#include "api/core/quota_int.h"
#include "api/core/usage_int.h"
#include "base/array.h"
#include "throughput/charge.h"

/* How long a session waits for what was sent to its key before. */
#define SCRIPT_LOCK_US ((uint64_t)5000000)

/* What of a script's own text is told to the client. */
enum { SCRIPT_TEXT_BYTES_MAX = 16 << 10 };

void script_session_init(ScriptSession *session, ApiRequest *r, const Target *target)
{
    document_context_init(&session->context, r, target->range);
    session->key = target->key;
    session->epk = target->epk;
    session->epk_to = epk_prefix_end(r->arena, epk_slice(&session->epk));
    session->wants_log = request_flag(r, "x-ms-documentdb-script-enable-logging");
    session->self_link = arena_copy(r->arena, r->container->schema->self);
    Response quota = {0};
    quota_headers(r, &quota, r->container, target->range, 1, SLICE_EMPTY);
    session->quota = quota.headers[0].value;
    session->usage = quota.headers[1].value;
    usage_name(r, r->container, &target->key, epk_slice(&target->epk));
    document_functions_find(r, NULL, &session->functions);
}

ScriptRun script_session_run(ScriptSession *session, ScriptRole role, const StoredScript *script)
{
    ScriptRun run = {
        .role = role,
        .self_link = session->self_link,
        .alt_link = session->context.alt_path,
        .quota = session->quota,
        .usage = session->usage,
        .wants_log = session->wants_log,
        .hard_us = session->hard_us,
        .soft_us = session->soft_us,
        .calls = role == SCRIPT_ROLE_PROCEDURE ? &PROCEDURE_OPERATIONS : &SCRIPT_OPERATIONS,
        .ctx = session,
    };
    if (script == NULL)
        return run;
    run.id = script->info.id;
    run.version =
        arena_format(session->context.request->arena, "%llu", (unsigned long long)script->info.lsn);
    run.body = script->body;
    return run;
}

Status script_session_do(ScriptSession *session, ScriptRunner *runner, const ScriptRun *run,
                         Error *err)
{
    const ApiRequest *r = session->context.request;
    session->charge += charge_script(r->api->options.charges);
    return script_run(runner, run, r->arena, &session->result, err);
}

void script_session_apply(ScriptSession *session, ItemWrite *w, Arena *arena)
{
    const ApiRequest *r = session->context.request;
    w->epk = session->epk;
    transaction_apply(session->transaction, w, arena);
    if (w->op == ITEM_READ || w->status != STATUS_OK) {
        session->charge += document_write_charge(r, w);
        return;
    }
    session->ahead += document_write_charge(r, w); /* terms come with the commit */
    ARRAY_GROW_IN(r->arena, session->writes, session->write_count, session->write_capacity, 16);
    session->writes[session->write_count++] = w;
}

void script_session_restart(ScriptSession *session)
{
    const ApiRequest *r = session->context.request;
    transaction_restart(session->transaction);
    document_functions_end(&session->functions);
    session->charge = charge_script(r->api->options.charges);
    session->ahead = 0;
    session->write_count = 0;
}

Status script_session_locate(ScriptSession *session, Slice rid, Arena *arena, Slice *id,
                             bool *found, Error *err)
{
    *found = false;
    Rid parsed;
    if (!rid_parse(rid, &parsed) || parsed.kind != RID_DOCUMENT ||
        parsed.container != session->context.container->info.number)
        return STATUS_OK;
    for (size_t i = session->write_count; i-- > 0;) {
        const ItemWrite *w = session->writes[i];
        if (w->op == ITEM_DELETE || w->item.number != parsed.child)
            continue;
        *id = w->document_id;
        *found = true;
        return STATUS_OK;
    }
    Slice epk;
    TRY(handle_locate(session->context.partition, parsed.child, arena, &epk, id, found, err));
    *found = *found && slice_equal(epk, epk_slice(&session->epk));
    return STATUS_OK;
}

Status script_session_prepare(const ScriptSession *session, Slice text, ItemWrite *w, Error *err)
{
    Arena *arena = session->context.request->arena;
    if (text.len > ITEM_BYTES_MAX)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         ITEM_TOO_LARGE "The item has %zu bytes, at most %zu are accepted.",
                         text.len, ITEM_BYTES_MAX);
    Json body;
    TRY(json_parse(arena, text, &body, err));
    if (!json_is(body, JSON_OBJECT))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "An item must be a JSON object.");
    TRY(item_prepare(arena, body, &w->document, &w->document_id, &w->ttl_s, err));
    PartitionKey own;
    partition_key_extract(&session->context.container->partition_key, w->document, &own);
    return key_header_match(&session->key, &own, err);
}

/* ---- on the runner's thread ---- */

static Status run_in_transaction(ScriptSession *session, ScriptRunner *runner, Error *err)
{
    const ApiRequest *r = session->context.request;
    const Clock *clock = r->api->options.clock;
    PartitionHandle *partition = session->context.partition;
    uint64_t lock_us = clock_monotonic_us(clock) + SCRIPT_LOCK_US;
    TRY(handle_txn_begin(partition, session->context.container->schema, &session->epk, lock_us,
                         &session->transaction, err));
    transaction_set_deadline(session->transaction, r->deadline_us);
    uint64_t now_us = clock_monotonic_us(clock);
    session->hard_us = now_us + SCRIPT_HARD_US;
    session->soft_us = now_us + SCRIPT_SOFT_US;
    session->budget =
        handle_credit(partition, now_us) + handle_share(partition) * (SCRIPT_HARD_US / 1000000);
    Status status = session->run(session, runner, err);
    if (status != STATUS_OK && r->api->options.cluster != NULL && !handle_is_served(partition)) {
        /* Reads were refused, and the script took that for its own failure. Nothing was done. */
        session->result = (ScriptResult){0};
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                         "Another node serves the partition by now.");
    }
    TRY(status);
    return transaction_commit(session->transaction, &session->lsn, err);
}

static void forget(ScriptSession *session)
{
    session->charge = 0;
    session->ahead = 0;
    session->writes = NULL;
    session->write_count = 0;
    session->write_capacity = 0;
    session->result = (ScriptResult){0};
}

static void on_runner(ScriptJob *job, ScriptRunner *runner)
{
    ScriptSession *session = CONTAINER_OF(job, ScriptSession, job);
    forget(session);
    session->status = run_in_transaction(session, runner, &session->error);
    transaction_end(TAKE(session->transaction));
    document_functions_end(&session->functions);
    if (session->status != STATUS_OK)
        session->lsn = handle_lsn(session->context.partition);
    script_gate_leave(session->context.request->api->gate, &session->waiter);
    http_loop_post(session->context.request->http->loop, &session->task);
}

/* ---- on the loop ---- */

Charge script_session_charge(const ScriptSession *session)
{
    const ApiRequest *r = session->context.request;
    Charge sum = session->charge;
    for (size_t i = 0; i < session->write_count; i++)
        sum += document_write_charge(r, session->writes[i]);
    return sum > 0 ? sum : document_failed_charge(r);
}

static void add_log(const ScriptSession *session, Response *response)
{
    if (session->result.log.len == 0)
        return;
    Arena *arena = session->context.request->arena;
    response_header(response, SLICE("x-ms-documentdb-script-log-results"),
                    percent_encode(arena, session->result.log, SLICE("-_.!~*'()")));
}

void script_session_respond(ScriptSession *session, Response *response, int status)
{
    DocumentContext *context = &session->context;
    response_begin(context->request, response, status,
                   document_charge(context, script_session_charge(session)));
    context->wants_quota = true;
    document_headers(context, response, session->lsn);
    add_log(session, response);
}

/* The script's own words, as {"Errors":["..."]}, and its own number. */
static void tell_failure(ScriptSession *session)
{
    ApiRequest *r = session->context.request;
    const ScriptResult *result = &session->result;
    if (result->text.len == 0)
        return;
    AUTO(buf_done) Buf text;
    buf_init(&text, 6 * SCRIPT_TEXT_BYTES_MAX + 64);
    buf_slice(&text, SLICE("Message: {\"Errors\":["));
    bool is_cut = false;
    json_print_string(usage_cut(result->text, SCRIPT_TEXT_BYTES_MAX, &is_cut), &text);
    buf_slice(&text, SLICE("]}"));
    r->error_text = arena_copy(r->arena, buf_view(&text));
    session->error.number = result->number;
}

static void answer_failure(ScriptSession *session)
{
    DocumentContext *context = &session->context;
    Response response;
    tell_failure(session);
    response_error(context->request, &response, &session->error,
                   document_charge(context, script_session_charge(session)));
    document_error_headers(context, &response, &session->error, session->lsn);
    add_log(session, &response);
    document_send(context, &response);
}

static Status enter(ScriptSession *session, Error *err);

static void release(ScriptSession *session)
{
    session->release(session);
    document_functions_release(&session->functions);
}

/* Runs it again where its key is now, if its partition was split or merged: nothing was done. */
static bool runs_again(ScriptSession *session)
{
    if (session->status == STATUS_OK || !document_is_gone(&session->error))
        return false;
    Error err;
    Status status = document_reroute(&session->context, epk_slice(&session->epk), &err);
    if (status == STATUS_OK)
        status = enter(session, &err);
    if (status == STATUS_OK)
        return true;
    session->status = status;
    session->error = err;
    return false;
}

static void on_loop(HttpTask *task)
{
    ScriptSession *session = CONTAINER_OF(task, ScriptSession, task);
    if (runs_again(session))
        return;
    release(session);
    session->context.request->has_only_read = session->write_count == 0;
    if (session->status == STATUS_OK)
        session->answer(session);
    else
        answer_failure(session);
}

/* If too many scripts wait for a thread, that is answered on the loop, as if it had run. */
static void on_turn(ScriptWaiter *waiter)
{
    ScriptSession *session = CONTAINER_OF(waiter, ScriptSession, waiter);
    Api *api = session->context.request->api;
    Error err;
    if (script_pool_post(api->options.scripts, &session->job, &err) == STATUS_OK)
        return; /* it belongs to a runner now, and may be over */
    session->status = err.status;
    session->error = err;
    session->lsn = handle_lsn(session->context.partition);
    script_gate_leave(api->gate, waiter);
    http_loop_post(session->context.request->http->loop, &session->task);
}

static Status enter(ScriptSession *session, Error *err)
{
    return script_gate_enter(session->context.request->api->gate,
                             session->context.container->info.number, epk_slice(&session->epk),
                             &session->waiter, err);
}

static Status check_pool(const ScriptSession *session, Error *err)
{
    if (session->context.request->api->options.scripts != NULL)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "This server runs no scripts.");
}

Status script_session_post(ScriptSession *session, Error *err)
{
    session->job.run = on_runner;
    session->task.run = on_loop;
    session->waiter.enter = on_turn;
    Status status = check_pool(session, err);
    if (status == STATUS_OK)
        status = document_admit(&session->context, err);
    if (status == STATUS_OK) {
        document_hold(&session->context);
        status = enter(session, err);
    }
    if (status == STATUS_OK)
        return STATUS_OK; /* it may be answered already */
    document_release(&session->context);
    release(session);
    return status;
}
