/* user_calls.c - see user_calls_int.h. */
#include "query/eval/user_calls_int.h"

#include "base/workers.h"
#include "query/eval/eval_int.h"
#include "query/sql/query_int.h"

#include <math.h>

enum {
    ROUNDS_MAX = 16, /* of asking and making: calls of calls, and calls that decide about others */
    ASK_ROWS_MAX = 1024, /* of one document, */
    ASK_CALLS_MAX = 256, /* and its calls */
    ASK_BLOCK_BYTES = 1024,
};

Status user_calls_begin(Run *run, const Query *query)
{
    const QueryOptions *o = &run->options;
    for (uint32_t i = 0; i < query->user_call_count; i++) {
        const UserCallPlace *place = &query->user_calls[i];
        if (o->functions == NULL ||
            !o->functions->find(o->functions_context, place->name, &run->calls.which[i]))
            return sql_error(run->err, query->text, place->span, "SC2003",
                             "User-defined function '%.*s' could not be resolved.",
                             SLICE_CUT(place->name, SQL_QUOTE_BYTES));
    }
    return STATUS_OK;
}

void user_calls_enter(Run *run, KnownCalls *known)
{
    run->calls.known = known;
    for (KnownCall *call = known == NULL ? NULL : known->first; call != NULL; call = call->next)
        call->is_used = false;
}

/* ---- calling ---- */

static uint64_t time_left(const Run *run, uint64_t now_us)
{
    uint64_t deadline_us = run->options.deadline_us;
    if (deadline_us == 0)
        return 0;
    return deadline_us > now_us ? deadline_us - now_us : 1;
}

/* Others may run meanwhile. Waiting for the next turn does not count: the page's clock stands still
 * then. */
static Status call_functions(Run *run, QueryCall *calls, size_t count, Arena *arena)
{
    const QueryOptions *o = &run->options;
    const Clock *clock = o->clock == NULL ? clock_real() : o->clock;
    ASSERT(o->functions != NULL);
    uint64_t begun_us = clock_monotonic_us(clock);
    uint64_t left_us = time_left(run, begun_us);
    worker_begin_wait();
    Status status =
        o->functions->call(o->functions_context, calls, count, left_us, arena, run->err);
    worker_end_wait();
    run->looked_us = clock_monotonic_us(clock);
    run->calls.us += run->looked_us - begun_us;
    return status;
}

/* An argument that lives as long as 'arena', or, if that is NULL, as the scratch arena. */
static Status make_argument(Run *run, Arena *arena, const Value *value, Json *out)
{
    bool is_there = value->json.at != NULL && (value->stable || arena == NULL);
    TRY(run_charge_value(run, value));
    *out = is_there ? value->json
                    : value_json(arena == NULL ? run->scratch : arena, run->scratch, value);
    if (out->at == NULL)
        return sql_error_plain(run->err, "The query makes a value of more than %zu bytes.",
                               JSON_BUILD_BYTES_MAX);
    return STATUS_OK;
}

static Status make_call(Run *run, const Node *node, Arena *arena, const Value *args, uint32_t count,
                        QueryCall *out)
{
    Json *list = arena_alloc(arena == NULL ? run->scratch : arena, (count + 1) * sizeof(Json));
    for (uint32_t i = 0; i < count; i++)
        TRY(make_argument(run, arena, &args[i], &list[i]));
    *out = (QueryCall){
        .which = run->calls.which[node->call.slot], .arguments = list, .argument_count = count};
    return run_reserve(run, 0);
}

static Status use_result(Run *run, const QueryCall *call, Value *out)
{
    if (call->error != NULL) {
        *run->err = *call->error;
        return call->error->status;
    }
    *out = value_of(call->result, false);
    return run_charge_value(run, out);
}

static Status call_now(Run *run, const Node *node, const Value *args, uint32_t count, Value *out)
{
    QueryCall call;
    TRY(make_call(run, node, NULL, args, count, &call));
    TRY(call_functions(run, &call, 1, run->scratch));
    TRY(run_reserve(run, 0));
    return use_result(run, &call, out);
}

/* ---- calls that are known ---- */

static bool is_call_of(const KnownCall *known, const Value *args)
{
    for (size_t i = 0; i < known->call.argument_count; i++) {
        Value argument = value_of(known->call.arguments[i], true);
        if (!value_equal(&argument, &args[i]))
            return false;
    }
    return true;
}

static KnownCall *find_known(const KnownCalls *known, uint32_t place, uint64_t hash,
                             const Value *args)
{
    KnownCall *call = known->first;
    while (call != NULL &&
           (call->is_used || call->place != place || call->hash != hash || !is_call_of(call, args)))
        call = call->next;
    return call;
}

static Status note_call(Run *run, const Node *node, uint64_t hash, const Value *args,
                        uint32_t count)
{
    UserCalls *calls = &run->calls;
    KnownCalls *known = calls->known;
    if (known->count == ASK_CALLS_MAX || calls->rows_left == 0)
        return CALL_PENDING;
    size_t before = arena_used(calls->asking);
    KnownCall *call = ARENA_NEW(calls->asking, KnownCall);
    Status status = make_call(run, node, calls->asking, args, count, &call->call);
    run->held += arena_used(calls->asking) - before;
    TRY(status);
    TRY(run_reserve(run, 0));
    call->place = node->call.slot;
    call->hash = hash;
    call->is_used = true; /* equal ones are calls of their own */
    *(known->last != NULL ? &known->last->next : &known->first) = call;
    known->last = call;
    known->count++;
    calls->asked++;
    return CALL_PENDING;
}

/* What JSON cannot say is as good as undefined. */
static bool is_argument(const Value *value)
{
    bool is_json = value->type != JSON_NUMBER || value->is_integer || isfinite(value->number);
    return value_defined(value) && is_json;
}

Status user_call(Run *run, const Node *node, const Value *args, uint32_t count, Value *out)
{
    UserCalls *calls = &run->calls;
    uint64_t hash = count;
    *out = VALUE_UNDEFINED;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_argument(&args[i]))
            return STATUS_OK;
        TRY(run_charge_value(run, &args[i]));
        hash = hash * 31 + value_hash(&args[i]);
    }
    calls->used += calls->asking == NULL;
    if (calls->known == NULL)
        return call_now(run, node, args, count, out);
    TRY(run_charge(run, 1 + calls->known->count / 8));
    KnownCall *known = find_known(calls->known, node->call.slot, hash, args);
    if (known == NULL)
        return calls->asking == NULL ? call_now(run, node, args, count, out)
                                     : note_call(run, node, hash, args, count);
    known->is_used = true;
    return known->is_made ? use_result(run, &known->call, out) : CALL_PENDING;
}

/* ---- many documents ---- */

static Status drop_row(void *context UNUSED, Run *run UNUSED, const Value *row UNUSED,
                       RowAnswer *answer UNUSED)
{
    return STATUS_OK;
}

/* What fails otherwise than by a call that is pending is left to the run, which fails if it has
 * to. */
static void ask(Run *run, const Select *select, CallDocument *document, Arena *arena)
{
    AUTO(arena_done) Arena keep; /* of groups and distinct rows of this document alone */
    arena_init(&keep, ASK_BLOCK_BYTES);
    Run before = *run;
    run->feed = NULL;
    run->documents = &document->document;
    run->document_count = 1;
    run->held += arena_used(run->keep) - run->keep_before + arena_used(arena);
    run->keep = &keep;
    run->keep_before = 0;
    run->calls.asking = arena;
    run->calls.rows_left = ASK_ROWS_MAX;
    uint32_t asked = run->calls.asked;
    user_calls_enter(run, &document->known);
    Status status = select_run(run, select, SELECT_OUTERMOST, &keep, drop_row, NULL);
    document->is_asked = status != CALL_PENDING || run->calls.asked == asked;

    user_calls_enter(run, NULL);
    run->calls.asking = NULL;
    run->keep = before.keep;
    run->keep_before = before.keep_before;
    run->held = before.held;
    run->feed = before.feed;
    run->documents = before.documents;
    run->document_count = before.document_count;
    run->scratch = before.scratch;
    arena_reset(&run->rows);
    arena_reset(&run->sources);
}

/* Makes all calls that were noted. */
static Status make_calls(Run *run, CallDocument *documents, size_t count, Arena *arena)
{
    size_t made = 0;
    QueryCall *calls = ARENA_NEW_ARRAY(arena, QueryCall, run->calls.asked);
    KnownCall **places = ARENA_NEW_ARRAY(arena, KnownCall *, run->calls.asked);
    for (size_t i = 0; i < count; i++) {
        for (KnownCall *known = documents[i].known.first; known != NULL; known = known->next) {
            if (known->is_made)
                continue;
            places[made] = known;
            calls[made++] = known->call;
        }
    }
    ASSERT(made == run->calls.asked);
    run->calls.asked = 0;
    TRY(call_functions(run, calls, made, arena));
    for (size_t i = 0; i < made; i++) {
        places[i]->call = calls[i];
        places[i]->is_made = true;
    }
    return STATUS_OK;
}

Status user_calls_prepare(Run *run, const Select *select, CallDocument *documents, size_t count,
                          Arena *arena)
{
    for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
        for (size_t i = 0; i < count; i++) {
            if (!documents[i].is_asked)
                ask(run, select, &documents[i], arena);
        }
        if (run->calls.asked == 0)
            break;
        TRY(make_calls(run, documents, count, arena));
        TRY(run_reserve(run, arena_used(arena)));
    }
    return STATUS_OK;
}
