/* document_functions.c - see document_functions_int.h. */
#include "api/items/document_functions_int.h"

#include "api/core/response_int.h"
#include "api/core/usage_int.h"
#include "catalog/snapshot.h"

/* What of the text of a function's error is told. */
enum { FUNCTION_TEXT_BYTES_MAX = 300 };

static bool can_call(Slice text)
{
    return text.len > 0 && memmem(text.ptr, text.len, "udf", 3) != NULL;
}

void document_functions_find(const ApiRequest *r, const Slice *text, DocumentFunctions *out)
{
    *out = (DocumentFunctions){
        .pool = r->api->options.scripts,
        .clock = r->api->options.clock,
        .arena = r->arena,
    };
    if (text != NULL && LIKELY(!can_call(*text)))
        return;
    StoredScriptGroup group = container_scripts(r->container, STORED_FUNCTION);
    size_t count = snapshot_script_count(r->snapshot, group);
    out->scripts = ARENA_NEW_ARRAY(r->arena, StoredScript *, count);
    const StoredScript *script = NULL;
    for (uint32_t from = 0; (script = snapshot_next_script(r->snapshot, group, from)) != NULL;
         from = script->info.number + 1) {
        ASSERT(out->count < count);
        out->scripts[out->count++] = stored_script_ref(script);
    }
}

void document_functions_end(DocumentFunctions *functions)
{
    script_functions_close(TAKE(functions->session));
}

void document_functions_release(DocumentFunctions *functions)
{
    ASSERT(functions->session == NULL);
    for (size_t i = 0; i < functions->count; i++)
        stored_script_unref(functions->scripts[i]);
    functions->count = 0;
}

static bool find(void *context, Slice name, uint32_t *which)
{
    const DocumentFunctions *functions = context;
    for (size_t i = 0; i < functions->count; i++) {
        if (!slice_equal(functions->scripts[i]->info.id, name))
            continue;
        *which = (uint32_t)i;
        return true;
    }
    return false;
}

static void open_session(DocumentFunctions *functions, uint64_t time_us_max)
{
    uint64_t time_us =
        time_us_max == 0 || time_us_max > SCRIPT_HARD_US ? SCRIPT_HARD_US : time_us_max;
    ScriptSource *sources = ARENA_NEW_ARRAY(functions->arena, ScriptSource, functions->count);
    for (size_t i = 0; i < functions->count; i++) {
        const StoredScript *script = functions->scripts[i];
        sources[i] = (ScriptSource){
            .id = script->info.id,
            .version = arena_format(functions->arena, "%llu", (unsigned long long)script->info.lsn),
            .body = script->body,
        };
    }
    functions->session = script_functions_open(functions->pool, sources, functions->count,
                                               clock_monotonic_us(functions->clock) + time_us);
}

static Slice print_arguments(const QueryCall *call, Arena *arena)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, JSON_BUILD_BYTES_MAX);
    buf_byte(&text, '[');
    for (size_t i = 0; i < call->argument_count; i++) {
        if (i > 0)
            buf_byte(&text, ',');
        json_print(call->arguments[i], &text);
    }
    buf_byte(&text, ']');
    return arena_copy(arena, buf_view(&text));
}

/* In the form in which the service tells it, with the number that the function has chosen. */
static const Error *make_error(const ScriptFunctionCall *made, Arena *arena)
{
    AUTO(buf_done) Buf text;
    bool is_cut = false;
    buf_init(&text, sizeof((Error){0}.message));
    json_print_string(usage_cut(made->text, FUNCTION_TEXT_BYTES_MAX, &is_cut), &text);
    Error *error = ARENA_NEW(arena, Error);
    Status status = error_set(error, STATUS_BAD_REQUEST, SUB_NONE, "Message: {\"Errors\":[%.*s]}",
                              SLICE_ARG(buf_view(&text)));
    ASSERT(status == STATUS_BAD_REQUEST);
    error->number = made->number;
    return error;
}

static Status take_result(const ScriptFunctionCall *made, QueryCall *call, Arena *arena, Error *err)
{
    call->result = JSON_NONE;
    call->error = NULL;
    switch (made->kind) {
    case SCRIPT_VALUE_JSON:
        return json_parse(arena, made->text, &call->result, err);
    case SCRIPT_VALUE_ERROR:
        call->error = make_error(made, arena);
        break;
    case SCRIPT_VALUE_UNDEFINED:
    case SCRIPT_VALUE_COUNT:
        break;
    }
    return STATUS_OK;
}

static Status call_all(void *context, QueryCall *calls, size_t count, uint64_t time_us_max,
                       Arena *arena, Error *err)
{
    DocumentFunctions *functions = context;
    if (functions->pool == NULL)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "This server runs no scripts.");
    if (functions->session == NULL)
        open_session(functions, time_us_max);
    ScriptFunctionCall *made = ARENA_NEW_ARRAY(arena, ScriptFunctionCall, count);
    for (size_t i = 0; i < count; i++) {
        made[i].which = calls[i].which;
        made[i].arguments = print_arguments(&calls[i], arena);
    }
    TRY(script_functions_call(functions->session, made, count, arena, err));
    for (size_t i = 0; i < count; i++)
        TRY(take_result(&made[i], &calls[i], arena, err));
    return STATUS_OK;
}

const QueryFunctions DOCUMENT_FUNCTIONS = {.find = find, .call = call_all};
