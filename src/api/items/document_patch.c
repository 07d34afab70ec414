/* document_patch.c - what a patch needs from above the partition: the rules of its container, and
 * its condition, which is a piece of SQL. */
#include "api/items/document_context_int.h"
#include "query/eval/query.h"

typedef struct Condition {
    PatchCondition condition;
    Arena *arena;
    const Clock *clock;
    Query *query;
} Condition;

/* On a writer's thread; the arena is the write's. */
static Status holds(void *ctx, Json document, bool *out, Error *err)
{
    const Condition *condition = ctx;
    Json *results = NULL;
    size_t count = 0;
    QueryOptions options = {.clock = condition->clock};
    TRY(query_run_with(condition->query, options, &document, 1, condition->arena, &results, &count,
                       err));
    *out = count > 0;
    return STATUS_OK;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Whether the text begins with the word FROM. Without it the text would be read as a part of the
 * SELECT that is put before it, and be true of every document. */
static bool begins_with_from(Slice text)
{
    static const Slice word = SLICE_INIT("from");
    while (text.len > 0 && is_space(text.ptr[0]))
        text = slice_from(text, 1);
    return text.len > word.len && slice_equal_nocase(slice_first(text, word.len), word) &&
           is_space(text.ptr[word.len]);
}

static Status condition_make(const ApiRequest *r, Slice text, const PatchCondition **out,
                             Error *err)
{
    Arena *arena = r->arena;
    *out = NULL;
    if (text.len == 0)
        return STATUS_OK;
    if (!begins_with_from(text))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The patch's condition is invalid: expected 'from c where ...', found "
                         "'%.*s'.",
                         SLICE_CUT(text, 60));
    Condition *condition = ARENA_NEW(arena, Condition);
    /* "from c where c.a = 1" becomes a query with one result if it holds. */
    Slice query = arena_format(arena, "SELECT VALUE 1 %.*s", SLICE_ARG(text));
    if (query_parse(arena, query, JSON_NONE, &condition->query, err) != STATUS_OK)
        return error_context(err, "The patch's condition is invalid");
    condition->condition = (PatchCondition){.holds = holds, .ctx = condition};
    condition->arena = arena;
    condition->clock = r->api->options.clock;
    *out = &condition->condition;
    return STATUS_OK;
}

Status document_patch_prepare(const ApiRequest *r, Json body, ItemWrite *w, Error *err)
{
    const Container *container = r->container;
    PatchRules rules = {
        .keys = container->partition_key.paths,
        .key_count = container->partition_key.path_count,
        .bytes_max = ITEM_BYTES_MAX,
    };
    Patch *patch = NULL;
    TRY(patch_parse(r->arena, body, &rules, &patch, err));
    w->patch = patch;
    return condition_make(r, patch_condition(patch), &w->condition, err);
}
