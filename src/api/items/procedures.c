/* procedures.c - POST /dbs/{db}/colls/{coll}/sprocs/{id}: a stored procedure is executed.
 *
 * It runs in a transaction of the logical partition that the key header names. Everything it writes
 * is committed when it ends normally, and nothing otherwise. Every container has the procedures
 * of the system.
 */
#include "api/items/document_handlers_int.h"
#include "api/items/script_session_int.h"

typedef struct SystemProcedure {
    Slice id;
    Slice body;
} SystemProcedure;

static const SystemProcedure SYSTEM_PROCEDURES[] = {
    {SLICE_INIT("__.sys.echo"), SLICE_INIT("function (x) { __.response.setBody(x); }")},
};

typedef struct ProcedureTask {
    ScriptSession session;
    StoredScript *script; /* a reference of its own; NULL for one of the system's */
    const SystemProcedure *system;
    Slice arguments;
} ProcedureTask;

static Status run(ScriptSession *session, ScriptRunner *runner, Error *err)
{
    ProcedureTask *t = CONTAINER_OF(session, ProcedureTask, session);
    ScriptRun run = script_session_run(session, SCRIPT_ROLE_PROCEDURE, t->script);
    if (t->system != NULL) {
        run.id = t->system->id;
        run.body = t->system->body;
    }
    run.arguments = t->arguments;
    return script_session_do(session, runner, &run, err);
}

static void answer(ScriptSession *session)
{
    Response response;
    script_session_respond(session, &response, 200);
    response_header(&response, SLICE("content-type"), SLICE("application/json"));
    response.body = session->result.response_body;
    document_send(&session->context, &response);
}

static void release(ScriptSession *session)
{
    stored_script_unref(CONTAINER_OF(session, ProcedureTask, session)->script);
}

/* SDKs say so too where they check it. */
static Status check_key(const ApiRequest *r, Error *err)
{
    if (r->container->partition_key.kind == PARTITION_NONE ||
        request_header(r, "x-ms-documentdb-partitionkey").len > 0)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "PartitionKey value must be supplied for this operation.");
}

static Status find_system(const ApiRequest *r, const SystemProcedure **out, Error *err)
{
    Slice id = r->address.parts[r->address.part_count - 1].id;
    for (size_t i = 0; i < ARRAY_COUNT(SYSTEM_PROCEDURES); i++) {
        if (!slice_equal(id, SYSTEM_PROCEDURES[i].id))
            continue;
        *out = &SYSTEM_PROCEDURES[i];
        return STATUS_OK;
    }
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                     "Resource Not Found. The system has no procedure '%.*s'.", SLICE_CUT(id, 100));
}

Status procedures_execute(ApiRequest *r, Error *err)
{
    const SystemProcedure *system = NULL;
    if (r->script == NULL)
        TRY(find_system(r, &system, err));
    TRY(request_check_size(r, err));
    TRY(check_key(r, err));
    Target target;
    TRY(request_target(r, &target, err));
    ProcedureTask *t = ARENA_NEW(r->arena, ProcedureTask);
    script_session_init(&t->session, r, &target);
    t->session.run = run;
    t->session.answer = answer;
    t->session.release = release;
    t->arguments = arena_copy(r->arena, r->http->body);
    t->system = system;
    t->script = r->script != NULL ? stored_script_ref(r->script) : NULL;
    return script_session_post(&t->session, err);
}
