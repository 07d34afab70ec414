/* item_patch.c - what a patch needs from above the partition: the rules of its container, and its
 * condition, which is a piece of SQL. */
#include "api/item_int.h"
#include "query/query.h"

typedef struct Condition {
    PatchCondition condition;
    Arena *arena;
    Query *query;
} Condition;

/* On a writer's thread; the arena is the write's. */
static Status holds(void *ctx, Json document, bool *out, Error *err)
{
    const Condition *condition = ctx;
    Json *results = NULL;
    size_t count = 0;
    TRY(query_run(condition->query, &document, 1, condition->arena, &results, &count, err));
    *out = count > 0;
    return STATUS_OK;
}

static Status condition_make(Arena *arena, Slice text, const PatchCondition **out, Error *err)
{
    *out = NULL;
    if (text.len == 0)
        return STATUS_OK;
    Condition *condition = ARENA_NEW(arena, Condition);
    /* "from c where c.a = 1" becomes a query with one result if it holds. */
    Slice query = arena_format(arena, "SELECT VALUE 1 %.*s", SLICE_ARG(text));
    if (query_parse(arena, query, JSON_NONE, &condition->query, err) != STATUS_OK)
        return error_context(err, "The patch's condition is invalid");
    condition->condition = (PatchCondition){.holds = holds, .ctx = condition};
    condition->arena = arena;
    *out = &condition->condition;
    return STATUS_OK;
}

Status patch_prepare(Arena *arena, const Container *container, Json body, ItemWrite *w, Error *err)
{
    PatchRules rules = {
        .keys = container->partition_key.paths,
        .key_count = container->partition_key.path_count,
        .bytes_max = ITEM_BYTES_MAX,
    };
    Patch *patch = NULL;
    TRY(patch_parse(arena, body, &rules, &patch, err));
    w->patch = patch;
    return condition_make(arena, patch_condition(patch), &w->condition, err);
}
