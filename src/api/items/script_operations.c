/* script_operations.c - what scripts ask for: reads, queries and writes of their logical partition,
 * in the transaction of their session.
 *
 * Items that are written are in the request's arena until the commit; answers are in the arena of
 * the operation. A failure is told to the script, which may handle it and go on.
 */
#include "api/items/document_query_int.h"
#include "api/items/document_token_int.h"
#include "api/items/script_session_int.h"
#include "base/encoding.h"
#include "query/eval/query.h"
#include "query/page/page.h"

#define OTHER_KEY                                                                           \
    "Requests originating from scripts cannot reference partition keys other than the one " \
    "for which client request was submitted."

/* Of the results of one query or list. */
enum { SCRIPT_PAGE_BYTES_MAX = 4 << 20, SCRIPT_PAGE_ITEMS_MAX = 10000 };

static void print_item(const ScriptSession *session, const ScriptCall *call, const Item *item,
                       Arena *arena, ScriptAnswer *answer)
{
    if (!call->wants_item)
        return;
    AUTO(buf_done) Buf text;
    buf_init(&text, ITEM_TEXT_BYTES_MAX);
    item_print(session->context.container->schema, item, &text);
    answer->resource = arena_copy(arena, buf_view(&text));
}

/* ---- one item ---- */

/* Applies an operation to the item that a link names: by its resource id, by its id as it stands
 * there, or by what that is when '%' escapes are decoded. */
static Status apply_named(ScriptSession *session, const ScriptCall *call, ItemWrite *w,
                          Arena *arena, Error *err)
{
    Arena *keep = session->context.request->arena;
    bool found = true;
    w->id = arena_copy(keep, call->name);
    if (call->is_rid)
        TRY(script_session_locate(session, call->name, keep, &w->id, &found, err));
    script_session_apply(session, w, w->op == ITEM_READ ? arena : keep);
    Slice decoded;
    if (w->status == STATUS_NOT_FOUND && !call->is_rid &&
        slice_find(call->name, '%') < call->name.len &&
        percent_decode(keep, call->name, &decoded)) {
        w->id = decoded;
        script_session_apply(session, w, w->op == ITEM_READ ? arena : keep);
    }
    if (w->status != STATUS_OK)
        *err = w->error;
    return w->status;
}

static Status read_item(ScriptSession *session, const ScriptCall *call, Arena *arena,
                        ScriptAnswer *answer, Error *err)
{
    ItemWrite w = {.op = ITEM_READ, .if_none_match = call->if_none_match};
    Status status = apply_named(session, call, &w, arena, err);
    answer->is_not_modified = status == STATUS_NOT_MODIFIED;
    answer->status_code = answer->is_not_modified ? 304 : 200;
    if (answer->is_not_modified)
        return STATUS_OK;
    TRY(status);
    print_item(session, call, &w.item, arena, answer);
    return STATUS_OK;
}

static Status delete_item(ScriptSession *session, const ScriptCall *call, Arena *arena,
                          ScriptAnswer *answer, Error *err)
{
    Arena *keep = session->context.request->arena;
    ItemWrite *w = ARENA_NEW(keep, ItemWrite);
    w->op = ITEM_DELETE;
    w->if_match = arena_copy(keep, call->if_match);
    answer->status_code = 204;
    return apply_named(session, call, w, arena, err);
}

static Status write_item(ScriptSession *session, const ScriptCall *call, Arena *arena,
                         ScriptAnswer *answer, Error *err)
{
    static const ItemOp ops[] = {
        [SCRIPT_CALL_CREATE] = ITEM_CREATE,
        [SCRIPT_CALL_UPSERT] = ITEM_UPSERT,
        [SCRIPT_CALL_REPLACE] = ITEM_REPLACE,
    };
    static const IndexDirective directives[] = {
        [SCRIPT_INDEX_DEFAULT] = INDEX_DEFAULT,
        [SCRIPT_INDEX_INCLUDE] = INDEX_INCLUDE,
        [SCRIPT_INDEX_EXCLUDE] = INDEX_EXCLUDE,
    };
    Arena *keep = session->context.request->arena;
    ItemWrite *w = ARENA_NEW(keep, ItemWrite);
    w->op = ops[call->kind];
    w->if_match = arena_copy(keep, call->if_match);
    w->directive = directives[call->index_action];
    Status status = script_session_prepare(session, arena_copy(keep, call->body), w, err);
    if (status == STATUS_BAD_REQUEST && err->sub == SUB_PARTITION_KEY_MISMATCH)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, OTHER_KEY);
    TRY(status);
    if (w->op == ITEM_REPLACE) {
        TRY(apply_named(session, call, w, arena, err));
    } else {
        w->id = w->document_id;
        script_session_apply(session, w, keep);
        if (w->status != STATUS_OK) {
            *err = w->error;
            return w->status;
        }
    }
    answer->status_code = (uint32_t)document_write_status(w);
    print_item(session, call, &w->item, arena, answer);
    return STATUS_OK;
}

/* ---- many items ---- */

static Status read_token(const ScriptSession *session, const Query *query, Json parameters,
                         Slice token, Arena *arena, Slice *position, Error *err)
{
    if (token.len == 0)
        return STATUS_OK;
    const Api *api = session->context.request->api;
    Slice rid = session->context.container->info.rid;
    Slice mac;
    TRY(document_token_parse(arena, token, &mac, position, err));
    Slice scope = query_position_scope(query, parameters, *position, arena);
    return document_token_check(arena, &api->options.token_secret, rid, scope, token, mac,
                                *position, err);
}

static void charge_page(ScriptSession *session, const QueryPage *page)
{
    QueryWork work = {
        .index_keys = page->metrics.index_keys_read,
        .items = page->metrics.documents_read,
        .item_bytes = page->metrics.document_bytes_read,
        .results = page->metrics.results,
        .result_bytes = page->metrics.result_bytes,
        .user_calls = page->metrics.user_calls,
    };
    session->charge += charge_query(session->context.request->api->options.charges, &work);
}

static Status run_page(ScriptSession *session, const Query *query, QueryPageOptions *options,
                       Json parameters, Arena *arena, ScriptAnswer *answer, Error *err)
{
    const Api *api = session->context.request->api;
    PartitionView *view = NULL;
    TRY(transaction_view(session->transaction, STORE_READ_ANY, &view, err));
    QueryTarget target = {
        .view = view, .epk_from = epk_slice(&session->epk), .epk_to = session->epk_to};
    options->targets = &target;
    options->target_count = 1;
    AUTO(arena_done) Arena memory;
    arena_init(&memory, ARENA_LARGE_BYTES);
    AUTO(buf_done) Buf text;
    buf_init(&text, SCRIPT_PAGE_BYTES_MAX + 2);
    buf_byte(&text, '[');
    QueryPage page;
    Status status = query_page(query, options, &memory, &text, &page, err);
    partition_view_close(view);
    TRY(status);
    buf_byte(&text, ']');
    charge_page(session, &page);
    answer->status_code = 200;
    answer->resource = arena_copy(arena, buf_view(&text));
    if (!page.is_done)
        answer->continuation = document_token_print(
            arena, &api->options.token_secret, session->context.container->info.rid,
            query_position_scope(query, parameters, page.position, arena), page.position);
    return STATUS_OK;
}

static Status check_page_size(const ScriptCall *call, uint32_t *items_max, Error *err)
{
    *items_max = SCRIPT_PAGE_ITEMS_MAX;
    if (call->page_size == SCRIPT_PAGE_SIZE_DYNAMIC)
        return STATUS_OK;
    if (call->page_size < 1 || call->page_size > SCRIPT_PAGE_ITEMS_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The pageSize is %d, expected -1 or 1 to %d.", (int)call->page_size,
                         SCRIPT_PAGE_ITEMS_MAX);
    *items_max = (uint32_t)call->page_size;
    return STATUS_OK;
}

static Status query_items(ScriptSession *session, const ScriptCall *call, Arena *arena,
                          ScriptAnswer *answer, Error *err)
{
    Api *api = session->context.request->api;
    const Container *container = session->context.container;
    QueryPageOptions options = {
        .partition_count = container->range_count,
        .schema = container->schema,
        .key = container->partition_key.kind == PARTITION_NONE ? NULL : &session->key,
        .bytes_max = SCRIPT_PAGE_BYTES_MAX,
        .deadline_us = session->hard_us,
        .memory_max = api->options.query_bytes_max,
        .memory = &api->query_memory,
        .clock = api->options.clock,
        .geo = document_query_geo(container),
        .functions = &DOCUMENT_FUNCTIONS,
        .functions_context = &session->functions,
    };
    TRY(check_page_size(call, &options.items_max, err));
    Json parameters = JSON_NONE;
    if (call->parameters.len > 0)
        TRY(json_parse(arena, call->parameters, &parameters, err));
    Query *query = NULL;
    Json computed = json_get(container->definition, SLICE("computedProperties"));
    TRY(query_parse_with(arena, call->query, parameters, computed, &query, err));
    TRY(read_token(session, query, parameters, call->continuation, arena, &options.position, err));
    return run_page(session, query, &options, parameters, arena, answer, err);
}

/* ---- lists: all items, also those that are not indexed ---- */

static const Slice LIST_SCOPE = SLICE_INIT("script list");

static Status read_position(const ScriptSession *session, Slice token, Arena *arena,
                            Slice *position, Error *err)
{
    if (token.len == 0)
        return STATUS_OK;
    const Api *api = session->context.request->api;
    Slice mac;
    TRY(document_token_parse(arena, token, &mac, position, err));
    TRY(document_token_check(arena, &api->options.token_secret,
                             session->context.container->info.rid, LIST_SCOPE, token, mac,
                             *position, err));
    return partition_scan_is_position(SCAN_BY_EPK, *position) ? STATUS_OK
                                                              : document_token_refuse(token, err);
}

static Status list_items(ScriptSession *session, const ScriptCall *call, Arena *arena,
                         ScriptAnswer *answer, Error *err)
{
    const Api *api = session->context.request->api;
    const Container *container = session->context.container;
    uint32_t items_max = 0;
    TRY(check_page_size(call, &items_max, err));
    ScanBudget budget = {
        .entries = PAGE_ENTRIES_MAX,
        .deadline_us = session->hard_us,
        .clock = api->options.clock,
    };
    ScanOptions options = {
        .order = SCAN_BY_EPK,
        .epk_from = epk_slice(&session->epk),
        .epk_to = session->epk_to,
        .budget = &budget,
    };
    TRY(read_position(session, call->continuation, arena, &options.at, err));
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    TRY(transaction_scan(session->transaction, &options, &scan, err));
    AUTO(buf_done) Buf text;
    buf_init(&text, ITEM_TEXT_BYTES_MAX + SCRIPT_PAGE_BYTES_MAX);
    buf_byte(&text, '[');
    uint32_t count = 0;
    Item item;
    bool found = true;
    TRY(partition_scan_next(scan, &item, &found, err));
    while (found && count < items_max && text.len < SCRIPT_PAGE_BYTES_MAX) {
        if (count++ > 0)
            buf_byte(&text, ',');
        item_print(container->schema, &item, &text);
        session->charge += charge_read(api->options.charges, item.bytes);
        TRY(partition_scan_next(scan, &item, &found, err));
    }
    buf_byte(&text, ']');
    session->charge += charge_feed(api->options.charges, 0);
    answer->status_code = 200;
    answer->resource = arena_copy(arena, buf_view(&text));
    if (found || partition_scan_is_paused(scan))
        answer->continuation =
            document_token_print(arena, &api->options.token_secret, container->info.rid, LIST_SCOPE,
                                 partition_scan_position(scan));
    return STATUS_OK;
}

/* Whether the script has used what it may: request units, or half of the room for own writes, so
 * that what it has queued still fits. */
static bool is_spent(const ScriptSession *session)
{
    return session->charge + session->ahead > session->budget ||
           transaction_bytes(session->transaction) > TRANSACTION_BYTES_MAX / 2;
}

static Status operate(void *ctx, const ScriptCall *call, Arena *arena, ScriptAnswer *answer,
                      Error *err)
{
    ScriptSession *session = ctx;
    Status status = STATUS_OK;
    switch (call->kind) {
    case SCRIPT_CALL_READ:
        status = read_item(session, call, arena, answer, err);
        break;
    case SCRIPT_CALL_LIST:
        status = list_items(session, call, arena, answer, err);
        break;
    case SCRIPT_CALL_QUERY:
        status = query_items(session, call, arena, answer, err);
        break;
    case SCRIPT_CALL_CREATE:
    case SCRIPT_CALL_UPSERT:
    case SCRIPT_CALL_REPLACE:
        status = write_item(session, call, arena, answer, err);
        break;
    case SCRIPT_CALL_DELETE:
        status = delete_item(session, call, arena, answer, err);
        break;
    case SCRIPT_CALL_COUNT:
        ASSERT(!"a call of an unknown kind");
    }
    answer->is_last = is_spent(session);
    return status;
}

static Status repeat(void *ctx, Error *err)
{
    (void)err;
    script_session_restart(ctx);
    return STATUS_OK;
}

const ScriptCalls SCRIPT_OPERATIONS = {.operate = operate};
const ScriptCalls PROCEDURE_OPERATIONS = {.operate = operate, .repeat = repeat};
