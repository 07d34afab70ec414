/* triggers.c - see triggers_int.h.
 *
 *     find the triggers --> pre-trigger: may change the item --> the write --> post-trigger: may
 *     change the answer --> commit
 *
 * The trigger of a delete, or of a patch, sees the stored item, or what the patch makes of it. A
 * patch is a replacement for triggers. Whatever fails, nothing is written.
 */
#include "api/items/triggers_int.h"

#include "api/items/script_session_int.h"
#include "catalog/snapshot.h"

typedef struct TriggerTask {
    ScriptSession session;

    /* What the request says. */
    const ItemWrite *asked;
    Slice asked_body;  /* empty without one */
    Slice operation;   /* as scripts are told */
    StoredScript *pre; /* references of its own; NULL if there is none */
    StoredScript *post;
    bool is_minimal;

    /* What has become of that. Begins anew with each transaction. */
    ItemWrite *write;
    Slice body;
} TriggerTask;

static const char PRE_HEADER[] = "x-ms-documentdb-pre-trigger-include";
static const char POST_HEADER[] = "x-ms-documentdb-post-trigger-include";

bool triggers_are_asked(const ApiRequest *r)
{
    return UNLIKELY(request_header(r, PRE_HEADER).len > 0) ||
           UNLIKELY(request_header(r, POST_HEADER).len > 0);
}

/* ---- on the runner's thread ---- */

static Slice print_item(const TriggerTask *t, const Item *item)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, ITEM_TEXT_BYTES_MAX);
    item_print(t->session.context.container->schema, item, &text);
    return arena_copy(t->session.context.request->arena, buf_view(&text));
}

static Status read_old(TriggerTask *t, ItemWrite *read, Error *err)
{
    Arena *arena = t->session.context.request->arena;
    ItemWrite *w = t->write;
    *read = (ItemWrite){.op = ITEM_READ, .id = w->id};
    script_session_apply(&t->session, read, arena);
    if (read->status == STATUS_NOT_FOUND && t->session.context.is_rid_path) {
        bool found = false;
        TRY(script_session_locate(&t->session, w->id, arena, &w->id, &found, err));
        read->id = w->id;
        if (found)
            script_session_apply(&t->session, read, arena);
    }
    if (read->status != STATUS_OK)
        *err = read->error;
    return read->status;
}

/* What a patch makes of the item, which a replacement then stores. */
static Status apply_patch(TriggerTask *t, const Item *old, Error *err)
{
    Arena *arena = t->session.context.request->arena;
    ItemWrite *w = t->write;
    if (w->condition != NULL) {
        bool holds = false;
        Json whole = item_document(arena, t->session.context.container->schema, old);
        TRY(w->condition->holds(w->condition->ctx, whole, &holds, err));
        if (!holds)
            return error_set(err, STATUS_PRECONDITION_FAILED, SUB_NONE,
                             "One of the specified pre-condition is not met: the patch's condition "
                             "does not hold for the item.");
    }
    Json patched;
    TRY(patch_apply(w->patch, arena, old->document, &patched, err));
    TRY(item_prepare(arena, patched, &w->document, &w->document_id, &w->ttl_s, err));
    w->op = ITEM_REPLACE;
    return STATUS_OK;
}

/* The text that the pre-trigger sees. What is replaced has the link of the stored item, by which
 * scripts find it, also if the client did not send it. */
static Status prepare_body(TriggerTask *t, Error *err)
{
    ItemWrite *w = t->write;
    if (w->op == ITEM_CREATE || w->op == ITEM_UPSERT)
        return STATUS_OK;
    ItemWrite old;
    TRY(read_old(t, &old, err));
    if (w->op == ITEM_DELETE) {
        t->body = print_item(t, &old.item);
        return STATUS_OK;
    }
    if (w->op == ITEM_PATCH)
        TRY(apply_patch(t, &old.item, err));
    old.item.document = w->document;
    t->body = print_item(t, &old.item);
    return STATUS_OK;
}

static Status run_pre(TriggerTask *t, ScriptRunner *runner, Error *err)
{
    ScriptSession *session = &t->session;
    ItemWrite *w = t->write;
    ScriptRun run = script_session_run(session, SCRIPT_ROLE_PRE_TRIGGER, t->pre);
    run.operation = t->operation;
    run.request_body = t->body;
    TRY(script_session_do(session, runner, &run, err));
    if (w->op == ITEM_DELETE)
        return STATUS_OK;
    t->body = session->result.request_body;
    TRY(script_session_prepare(session, t->body, w, err));
    if (w->op != ITEM_REPLACE)
        w->id = w->document_id;
    return STATUS_OK;
}

static Status run_post(TriggerTask *t, ScriptRunner *runner, Error *err)
{
    ScriptSession *session = &t->session;
    const ItemWrite *w = t->write;
    ScriptRun run = script_session_run(session, SCRIPT_ROLE_POST_TRIGGER, t->post);
    run.operation = t->operation;
    run.request_body = t->body;
    if (w->op != ITEM_DELETE)
        run.response_body = print_item(t, &w->item);
    return script_session_do(session, runner, &run, err);
}

static Status run(ScriptSession *session, ScriptRunner *runner, Error *err)
{
    TriggerTask *t = CONTAINER_OF(session, TriggerTask, session);
    Arena *arena = session->context.request->arena;
    t->write = ARENA_NEW(arena, ItemWrite);
    *t->write = *t->asked;
    t->body = t->asked_body;
    TRY(prepare_body(t, err));
    if (t->pre != NULL)
        TRY(run_pre(t, runner, err));
    script_session_apply(session, t->write, arena);
    if (t->write->status != STATUS_OK) {
        *err = t->write->error;
        return t->write->status;
    }
    return t->post != NULL ? run_post(t, runner, err) : STATUS_OK;
}

/* ---- on the loop ---- */

static void answer(ScriptSession *session)
{
    TriggerTask *t = CONTAINER_OF(session, TriggerTask, session);
    ItemWrite *w = t->write;
    Response response;
    char etag[ITEM_ETAG_LEN];
    script_session_respond(session, &response, document_write_status(w));
    if (w->op != ITEM_DELETE) {
        item_etag(&w->item, etag);
        response_header(&response, SLICE("etag"), slice_make(etag, sizeof(etag)));
    }
    if (w->op != ITEM_DELETE && !t->is_minimal) {
        response_header(&response, SLICE("content-type"), SLICE("application/json"));
        response.body = t->post != NULL ? session->result.response_body : print_item(t, &w->item);
    }
    document_send(&session->context, &response);
}

static void release(ScriptSession *session)
{
    TriggerTask *t = CONTAINER_OF(session, TriggerTask, session);
    stored_script_unref(t->pre);
    stored_script_unref(t->post);
}

static TriggerOperation operation_of(ItemOp op)
{
    switch (op) {
    case ITEM_CREATE:
        return TRIGGER_ON_CREATE;
    case ITEM_UPSERT:
        return TRIGGER_ON_UPSERT;
    case ITEM_DELETE:
        return TRIGGER_ON_DELETE;
    case ITEM_REPLACE:
    case ITEM_PATCH:
    case ITEM_READ:
        break;
    }
    return TRIGGER_ON_REPLACE;
}

static bool covers(TriggerOperation trigger, TriggerOperation operation)
{
    return trigger == TRIGGER_ON_ALL || trigger == operation ||
           (trigger == TRIGGER_ON_UPDATE && operation == TRIGGER_ON_REPLACE);
}

static Slice operation_name(TriggerOperation operation)
{
    switch (operation) {
    case TRIGGER_ON_CREATE:
        return SLICE("Create");
    case TRIGGER_ON_UPSERT:
        return SLICE("Upsert");
    case TRIGGER_ON_DELETE:
        return SLICE("Delete");
    case TRIGGER_ON_REPLACE:
    case TRIGGER_ON_UPDATE:
    case TRIGGER_ON_ALL:
        break;
    }
    return SLICE("Replace");
}

/* The trigger that a header names; NULL if it names none. */
static Status find(const ApiRequest *r, const char *header, TriggerType type,
                   TriggerOperation operation, StoredScript **out, Error *err)
{
    *out = NULL;
    Slice name = slice_trim(request_header(r, header));
    if (name.len == 0)
        return STATUS_OK;
    if (slice_find(name, ',') < name.len)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "%s names more than one trigger: '%.*s'. Only one can run before and one "
                         "after a write.",
                         header, SLICE_CUT(name, 100));
    const StoredScript *script =
        snapshot_script_by_id(r->snapshot, container_scripts(r->container, STORED_TRIGGER), name);
    if (script == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "One of the specified inputs is invalid: the container has no trigger "
                         "'%.*s', which %s names.",
                         SLICE_CUT(name, 100), header);
    if (script->trigger_type != type || !covers(script->trigger_operation, operation))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "One of the specified inputs is invalid: the trigger '%.*s' is not for "
                         "%s this operation (%.*s).",
                         SLICE_CUT(name, 100), type == TRIGGER_PRE ? "before" : "after",
                         SLICE_ARG(operation_name(operation)));
    *out = stored_script_ref(script);
    return STATUS_OK;
}

Status triggers_write(ApiRequest *r, const Target *target, const ItemWrite *w, Slice body,
                      Error *err)
{
    TriggerOperation operation = operation_of(w->op);
    TriggerTask *t = ARENA_NEW(r->arena, TriggerTask);
    script_session_init(&t->session, r, target);
    t->session.run = run;
    t->session.answer = answer;
    t->session.release = release;
    t->asked = w;
    t->asked_body = arena_copy(r->arena, body);
    t->operation = operation_name(operation);
    t->is_minimal = request_is_minimal(r);
    Status status = find(r, PRE_HEADER, TRIGGER_PRE, operation, &t->pre, err);
    if (status == STATUS_OK)
        status = find(r, POST_HEADER, TRIGGER_POST, operation, &t->post, err);
    if (status == STATUS_OK)
        return script_session_post(&t->session, err);
    release(&t->session);
    return status;
}
