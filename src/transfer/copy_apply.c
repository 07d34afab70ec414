/* copy_apply.c - the changes of a page become operations on the copy; see copy_int.h.
 *
 * With the same key an item is upserted or deleted under its own key. With another one, the items
 * of the copy that have its id decide (copy_plan.h): they are asked for, unless the item cannot be
 * there yet. What is replaced or deleted must still be what was seen (its ETag), so a request that
 * a killed process has left behind changes nothing afterwards. What does not work out is planned
 * again; what never does is rejected with the reason.
 */
#include "base/array.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "transfer/bulk_body.h"
#include "transfer/copy_int.h"

#include <time.h>

enum {
    BULK_OPERATIONS = 100,
    LOOK_UP_IDS = 100,
    TRIES_MAX = 6,     /* of one change that does not work out */
    ROUNDS_MAX = 2000, /* of a page, throttled ones included */
};
#define BULK_BYTES_TARGET ((size_t)220000)
#define BULK_BYTES_MAX    ((size_t)8 << 20)

typedef enum TodoState { TODO_WAITS, TODO_AGAIN, TODO_DONE, TODO_REJECTED } TodoState;

typedef struct Todo {
    const CopyChange *change;
    TodoState state;
    uint32_t tries;
    size_t steps_left;
    Slice reason; /* why it did not work; in the page's arena */
} Todo;

typedef struct Page {
    Copy *copy;
    Arena *arena;
    Todo *todos;
    size_t count;
    bool looks_up;
    uint32_t wait_ms; /* before the next round */
    CopyStep *steps;
    size_t step_count;
    size_t step_capacity;
} Page;

/* ---- looking up ---- */

static Slice print_query(Arena *arena, const CopyChange *changes, size_t count)
{
    Buf text;
    buf_init(&text, (size_t)4 << 20);
    buf_slice(&text, SLICE("{\"query\":\"SELECT * FROM c WHERE c.id IN ("));
    for (size_t i = 0; i < count; i++)
        buf_format(&text, "%s@p%zu", i == 0 ? "" : ",", i);
    buf_slice(&text, SLICE(")\",\"parameters\":["));
    for (size_t i = 0; i < count; i++) {
        buf_format(&text, "%s{\"name\":\"@p%zu\",\"value\":", i == 0 ? "" : ",", i);
        json_print_string(changes[i].id, &text);
        buf_byte(&text, '}');
    }
    buf_slice(&text, SLICE("]}"));
    Slice copy = arena_copy(arena, buf_view(&text));
    buf_done(&text);
    return copy;
}

static void fill_query(const CopySide *side, Slice query, Slice range, Slice continuation,
                       Arena *arena, CopyCall *call)
{
    copy_call_init(call, side, REMOTE_ITEMS, arena);
    call->wave.call.method = CLIENT_POST;
    call->wave.call.content = query;
    copy_call_header(call, "content-type", SLICE("application/query+json"));
    copy_call_header(call, "x-ms-documentdb-isquery", SLICE("True"));
    copy_call_header(call, "x-ms-documentdb-query-enablecrosspartition", SLICE("True"));
    copy_call_header(call, "x-ms-documentdb-query-enable-scan", SLICE("True"));
    copy_call_header(call, "x-ms-max-item-count", SLICE("1000"));
    copy_call_header(call, "x-ms-documentdb-partitionkeyrangeid", range);
    if (continuation.len > 0)
        copy_call_header(call, "x-ms-continuation", continuation);
}

typedef struct Found {
    CopyItem *items;
    size_t count;
    size_t capacity;
} Found;

static Status take_found(const Copy *copy, const ClientCall *call, Arena *arena, Found *found,
                         Error *err)
{
    Json page;
    TRY(json_parse(arena, call->body, &page, err));
    Json list = json_get(page, SLICE("Documents"));
    for (JsonIter it = json_iter(list); json_is(list, JSON_ARRAY) && json_next(&it);) {
        Json id = json_get(it.value, SLICE("id"));
        Json etag = json_get(it.value, SLICE("_etag"));
        if (!json_is(id, JSON_STRING))
            continue;
        ARRAY_GROW_IN(arena, found->items, found->count, found->capacity, 64);
        CopyItem *item = &found->items[found->count++];
        *item = (CopyItem){.id = json_string(id), .item = it.value};
        item->found.etag = json_is(etag, JSON_STRING) ? json_string(etag) : SLICE_EMPTY;
        partition_key_extract(&copy->keys.source, it.value, &item->found.source_key);
        partition_key_extract(&copy->keys.target, it.value, &item->found.target_key);
    }
    return STATUS_OK;
}

/* One query, on all ranges. '*is_gone' if a range is not there any more. */
static Status look_up_some(Copy *copy, CopySide *side, Arena *arena, Slice query, Found *found,
                           bool *is_gone, Error *err)
{
    size_t count = side->map.count;
    CopyCall *calls = ARENA_NEW_ARRAY(arena, CopyCall, count);
    for (size_t i = 0; i < count; i++)
        fill_query(side, query, side->map.ranges[i].id, SLICE_EMPTY, arena, &calls[i]);
    while (count > 0) {
        TRY(copy_calls_run(side, calls, count, err));
        size_t more = 0;
        for (size_t i = 0; i < count; i++) {
            const ClientCall *call = &calls[i].wave.call;
            if (call->http_status == 410) {
                *is_gone = true;
                return STATUS_OK;
            }
            if (call->http_status != 200)
                return remote_refused(call, err);
            TRY(take_found(copy, call, arena, found, err));
            Slice token = client_header(call, SLICE("x-ms-continuation"));
            Slice range = {0};
            for (size_t h = 0; h < call->header_count; h++) {
                if (strcmp(call->headers[h].name, "x-ms-documentdb-partitionkeyrangeid") == 0)
                    range = call->headers[h].value;
            }
            if (token.len > 0)
                fill_query(side, query, range, token, arena, &calls[more++]);
        }
        count = more;
    }
    return STATUS_OK;
}

Status copy_look_up(Copy *copy, CopySide *side, Arena *arena, const CopyChange *changes,
                    size_t count, CopyItem **out, size_t *out_count, Error *err)
{
    Found found = {0};
    for (size_t from = 0; from < count;) {
        size_t some = count - from < LOOK_UP_IDS ? count - from : LOOK_UP_IDS;
        size_t before = found.count;
        bool is_gone = false;
        Slice query = print_query(arena, &changes[from], some);
        TRY(look_up_some(copy, side, arena, query, &found, &is_gone, err));
        if (is_gone) {
            found.count = before;
            TRY(copy_read_map(side, err));
            continue;
        }
        from += some;
    }
    *out = found.items;
    *out_count = found.count;
    return STATUS_OK;
}

/* ---- planning ---- */

static Slice print_key(Arena *arena, const PartitionKey *key, KeyText form)
{
    Buf text;
    buf_init(&text, 64 << 10);
    container_key_print(key, form, &text);
    Slice copy = arena_copy(arena, buf_view(&text));
    buf_done(&text);
    return copy;
}

static void add_steps(Page *page, size_t at, const CopyStep *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ARRAY_GROW_IN(page->arena, page->steps, page->step_count, page->step_capacity, 256);
        page->steps[page->step_count] = steps[i];
        page->steps[page->step_count++].change = at;
    }
    page->todos[at].steps_left = count;
    page->todos[at].state = count == 0 ? TODO_DONE : TODO_WAITS;
}

/* Without looking: under the same key everything is known; otherwise it cannot be there yet. */
static void plan_blind(Page *page, size_t at)
{
    const Copy *copy = page->copy;
    const CopyChange *change = page->todos[at].change;
    CopyStep step = {.act = COPY_DELETE, .key = change->key};
    if (!json_is(change->item, JSON_UNDEFINED)) {
        step.act = copy->is_mapped ? COPY_CREATE : COPY_UPSERT;
        partition_key_extract(&copy->keys.target, change->item, &step.key);
    }
    add_steps(page, at, &step, 1);
}

static void plan_found(Page *page, size_t at, const CopyItem *items, size_t count)
{
    Todo *todo = &page->todos[at];
    size_t found_count = 0;
    CopyFound *found = ARENA_NEW_ARRAY(page->arena, CopyFound, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(items[i].id, todo->change->id))
            found[found_count++] = items[i].found;
    }
    CopyStep *steps = ARENA_NEW_ARRAY(page->arena, CopyStep, found_count + 1);
    size_t step_count = 0;
    if (copy_plan(&page->copy->keys, todo->change, found, found_count, steps, &step_count)) {
        add_steps(page, at, steps, step_count);
        return;
    }
    todo->state = TODO_AGAIN;
    todo->tries++;
    todo->reason = SLICE("collision: another item of the source has the same id and the same value "
                         "of the new partition key");
}

static Status plan(Page *page, Error *err)
{
    Copy *copy = page->copy;
    CopyItem *items = NULL;
    size_t count = 0;
    if (page->looks_up && copy->is_mapped) {
        CopyChange *wanted = ARENA_NEW_ARRAY(page->arena, CopyChange, page->count);
        size_t wanted_count = 0;
        for (size_t i = 0; i < page->count; i++) {
            if (page->todos[i].state == TODO_AGAIN)
                wanted[wanted_count++] = *page->todos[i].change;
        }
        TRY(copy_look_up(copy, &copy->target, page->arena, wanted, wanted_count, &items, &count,
                         err));
    }
    page->step_count = 0;
    for (size_t i = 0; i < page->count; i++) {
        Error bad;
        PartitionKey key;
        if (page->todos[i].state != TODO_AGAIN)
            continue;
        if (!json_is(page->todos[i].change->item, JSON_UNDEFINED)) {
            partition_key_extract(&copy->keys.target, page->todos[i].change->item, &key);
            if (partition_key_check(&key, &bad) != STATUS_OK) {
                page->todos[i].state = TODO_REJECTED;
                page->todos[i].reason = arena_copy(page->arena, slice_from_cstr(bad.message));
                continue;
            }
        }
        if (page->looks_up && copy->is_mapped)
            plan_found(page, i, items, count);
        else
            plan_blind(page, i);
    }
    return STATUS_OK;
}

/* ---- sending ---- */

typedef struct Bulk {
    CopyCall call;
    const MapRange *range;
    Buf body;
    size_t steps[BULK_OPERATIONS];
    size_t count;
    bool is_single;
} Bulk;

typedef struct Bulks {
    Bulk **items;
    size_t count;
    size_t capacity;
} Bulks;

static const char *const ACT_NAMES[] = {
    [COPY_CREATE] = "Create",
    [COPY_UPSERT] = "Upsert",
    [COPY_REPLACE] = "Replace",
    [COPY_DELETE] = "Delete",
};

static void print_operation(const Page *page, const CopyStep *step, Buf *out)
{
    const CopyChange *change = page->todos[step->change].change;
    buf_format(out, "%s{\"operationType\":\"%s\",\"partitionKey\":", out->len == 0 ? "[" : ",",
               ACT_NAMES[step->act]);
    json_print_string(print_key(page->arena, &step->key, KEY_TEXT_UTF8), out);
    if (step->act == COPY_REPLACE || step->act == COPY_DELETE) {
        buf_slice(out, SLICE(",\"id\":"));
        json_print_string(change->id, out);
    }
    if (step->etag.len > 0) {
        buf_slice(out, SLICE(",\"ifMatch\":"));
        json_print_string(step->etag, out);
    }
    if (step->act != COPY_DELETE) {
        buf_slice(out, SLICE(",\"resourceBody\":"));
        copy_item_print(change, out);
    }
    buf_byte(out, '}');
}

static const MapRange *range_of(const Page *page, const CopyStep *step)
{
    Epk epk;
    epk_make(page->copy->keys.target.kind, &step->key, &epk);
    AUTO(buf_done) Buf text;
    buf_init(&text, 2 * EPK_BYTES_MAX + 1);
    container_epk_print(&epk, &text);
    return container_map_find(&page->copy->target.map, buf_view(&text));
}

static Bulk *add_bulk(Page *page, Bulks *bulks, const MapRange *range)
{
    Bulk *bulk = ARENA_NEW(page->arena, Bulk);
    bulk->range = range;
    bulk->is_single = page->copy->options->no_bulk;
    buf_init(&bulk->body, BULK_BYTES_MAX);
    ARRAY_GROW_IN(page->arena, bulks->items, bulks->count, bulks->capacity, 32);
    bulks->items[bulks->count++] = bulk;
    return bulk;
}

/* The newest bulk of the range, if it has room. */
static Bulk *find_bulk(Page *page, Bulks *bulks, const MapRange *range)
{
    for (size_t i = bulks->count; i > 0; i--) {
        Bulk *bulk = bulks->items[i - 1];
        if (bulk->range != range)
            continue;
        if (bulk->count < BULK_OPERATIONS && bulk->body.len < BULK_BYTES_TARGET && !bulk->is_single)
            return bulk;
        break;
    }
    return add_bulk(page, bulks, range);
}

static void fill_bulk(Page *page, Bulk *bulk)
{
    buf_byte(&bulk->body, ']');
    copy_call_init(&bulk->call, &page->copy->target, REMOTE_ITEMS, page->arena);
    bulk->call.wave.operations = (uint32_t)bulk->count;
    bulk->call.wave.call.method = CLIENT_POST;
    bulk->call.wave.call.content = buf_view(&bulk->body);
    copy_call_header(&bulk->call, "content-type", SLICE("application/json"));
    copy_call_header(&bulk->call, "prefer", SLICE("return=minimal"));
    copy_call_header(&bulk->call, "x-ms-cosmos-is-batch-request", SLICE("True"));
    copy_call_header(&bulk->call, "x-ms-cosmos-batch-atomic", SLICE("False"));
    copy_call_header(&bulk->call, "x-ms-cosmos-batch-continue-on-error", SLICE("True"));
    copy_call_header(&bulk->call, "x-ms-documentdb-partitionkeyrangeid", bulk->range->id);
}

/* One operation as a request of its own. */
static void fill_single(Page *page, Bulk *bulk)
{
    const CopyStep *step = &page->steps[bulk->steps[0]];
    const CopyChange *change = page->todos[step->change].change;
    copy_call_init(&bulk->call, &page->copy->target, REMOTE_ITEMS, page->arena);
    ClientCall *call = &bulk->call.wave.call;
    bool is_named = step->act == COPY_REPLACE || step->act == COPY_DELETE;
    if (is_named) {
        Slice id = percent_encode(page->arena, change->id, SLICE("-_.~"));
        call->path = arena_format(page->arena, "%.*s/%.*s", SLICE_ARG(call->path), SLICE_ARG(id));
        call->resource_link = arena_format(page->arena, "%.*s/docs/%.*s",
                                           SLICE_ARG(call->resource_link), SLICE_ARG(change->id));
    }
    call->method = step->act == COPY_REPLACE  ? CLIENT_PUT
                   : step->act == COPY_DELETE ? CLIENT_DELETE
                                              : CLIENT_POST;
    buf_reset(&bulk->body);
    if (step->act != COPY_DELETE)
        copy_item_print(change, &bulk->body);
    call->content = buf_view(&bulk->body);
    copy_call_header(&bulk->call, "content-type", SLICE("application/json"));
    copy_call_header(&bulk->call, "prefer", SLICE("return=minimal"));
    copy_call_header(&bulk->call, "x-ms-documentdb-partitionkey",
                     print_key(page->arena, &step->key, KEY_TEXT_ASCII));
    if (step->act == COPY_UPSERT)
        copy_call_header(&bulk->call, "x-ms-documentdb-is-upsert", SLICE("True"));
    if (step->etag.len > 0)
        copy_call_header(&bulk->call, "if-match", step->etag);
}

/* ---- results ---- */

static bool is_passing(int status)
{
    return status == 429 || status == 408 || status == 410 || status == 424 || status == 449 ||
           status >= 500;
}

static void take_result(Page *page, const CopyStep *step, const BulkResult *result)
{
    Todo *todo = &page->todos[step->change];
    int status = result->status;
    bool is_gone = status == 404 && step->act == COPY_DELETE;
    if (status == 200 || status == 201 || status == 204 || is_gone) {
        todo->steps_left--;
        if (todo->steps_left == 0 && todo->state == TODO_WAITS)
            todo->state = TODO_DONE;
        return;
    }
    if (todo->state == TODO_REJECTED)
        return;
    todo->state = TODO_AGAIN;
    if (is_passing(status)) {
        uint32_t wait_ms = result->retry_after_ms > 0 ? result->retry_after_ms : 20;
        page->wait_ms = wait_ms > page->wait_ms ? wait_ms : page->wait_ms;
        page->copy->cost.throttled += status == 429 ? 1 : 0;
        return;
    }
    todo->tries++;
    todo->reason =
        arena_format(page->arena, "the server answered %d%s%.*s", status,
                     result->message.len > 0 ? ": " : "", SLICE_CUT(result->message, 200));
    if (status != 409 && status != 412 && status != 404)
        todo->state = TODO_REJECTED;
}

static void take_single(Page *page, const Bulk *bulk)
{
    const ClientCall *call = &bulk->call.wave.call;
    BulkResult result = {
        .status = call->http_status,
        .retry_after_ms = remote_retry_after_ms(call),
        .message = answer_message(page->arena, call->body),
    };
    take_result(page, &page->steps[bulk->steps[0]], &result);
}

static Status take_bulk(Page *page, const Bulk *bulk, bool *needs_map, Error *err)
{
    const ClientCall *call = &bulk->call.wave.call;
    BulkResult *results = ARENA_NEW_ARRAY(page->arena, BulkResult, bulk->count);
    if (call->http_status == 200 || call->http_status == 207) {
        TRY(bulk_answer_parse(page->arena, call->body, bulk->count, results, err));
    } else if (call->http_status == 410) {
        for (size_t i = 0; i < bulk->count; i++)
            results[i] = (BulkResult){.status = 410};
    } else if (call->http_status == 413) { /* perhaps one of them is too large */
        for (size_t i = 0; i < bulk->count; i++)
            results[i] = (BulkResult){.status = bulk->count == 1 ? 413 : 429};
    } else {
        return remote_refused(call, err);
    }
    for (size_t i = 0; i < bulk->count; i++) {
        *needs_map = *needs_map || results[i].status == 410;
        take_result(page, &page->steps[bulk->steps[i]], &results[i]);
    }
    return STATUS_OK;
}

static Status send_all(Page *page, Bulks *bulks, Error *err)
{
    CopySide *target = &page->copy->target;
    CopyCall *calls = ARENA_NEW_ARRAY(page->arena, CopyCall, bulks->count);
    for (size_t i = 0; i < bulks->count; i++) {
        if (bulks->items[i]->is_single)
            fill_single(page, bulks->items[i]);
        else
            fill_bulk(page, bulks->items[i]);
        calls[i] = bulks->items[i]->call;
    }
    TRY(copy_calls_run(target, calls, bulks->count, err));
    bool needs_map = false;
    for (size_t i = 0; i < bulks->count; i++) {
        bulks->items[i]->call = calls[i];
        if (bulks->items[i]->is_single)
            take_single(page, bulks->items[i]);
        else
            TRY(take_bulk(page, bulks->items[i], &needs_map, err));
    }
    return needs_map ? copy_read_map(target, err) : STATUS_OK;
}

static Status run_steps(Page *page, Error *err)
{
    Bulks bulks = {0};
    for (size_t i = 0; i < page->step_count; i++) {
        Bulk *bulk = find_bulk(page, &bulks, range_of(page, &page->steps[i]));
        print_operation(page, &page->steps[i], &bulk->body);
        bulk->steps[bulk->count++] = i;
    }
    Status status = send_all(page, &bulks, err);
    for (size_t i = 0; i < bulks.count; i++)
        buf_done(&bulks.items[i]->body);
    return status;
}

/* ---- a page ---- */

static bool has_more(Page *page)
{
    bool more = false;
    for (size_t i = 0; i < page->count; i++) {
        Todo *todo = &page->todos[i];
        if (todo->state == TODO_AGAIN && todo->tries >= TRIES_MAX)
            todo->state = TODO_REJECTED;
        more = more || todo->state == TODO_AGAIN;
    }
    return more;
}

static Status note_results(Page *page, Error *err)
{
    CopyState *state = &page->copy->state;
    for (size_t i = 0; i < page->count; i++) {
        const Todo *todo = &page->todos[i];
        if (state->reject_count == 0 && todo->state == TODO_DONE)
            continue;
        Slice key = print_key(page->arena, &todo->change->key, KEY_TEXT_UTF8);
        if (todo->state == TODO_REJECTED)
            TRY(copy_state_reject(state, todo->change->id, key, todo->reason, err));
        else
            copy_state_forget(state, todo->change->id, key);
    }
    state->copied += page->count;
    return STATUS_OK;
}

Status copy_apply(Copy *copy, Arena *arena, const CopyChange *changes, size_t count, bool looks_up,
                  Error *err)
{
    Page page = {.copy = copy, .arena = arena, .count = count, .looks_up = looks_up};
    page.todos = ARENA_NEW_ARRAY(arena, Todo, count + 1);
    for (size_t i = 0; i < count; i++)
        page.todos[i] = (Todo){.change = &changes[i], .state = TODO_AGAIN};
    for (int i = 0; has_more(&page); i++) {
        if (i == ROUNDS_MAX)
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                             "the server of the copy refuses for too long: %.*s",
                             SLICE_CUT(page.todos[0].reason, 200));
        page.wait_ms = 0;
        TRY(plan(&page, err));
        TRY(run_steps(&page, err));
        if (page.wait_ms > 0)
            (void)nanosleep(&(struct timespec){.tv_sec = page.wait_ms / 1000,
                                               .tv_nsec = (long)(page.wait_ms % 1000) * 1000000},
                            NULL);
        page.looks_up = true; /* what failed may be there already */
    }
    return note_results(&page, err);
}

/* The change that would bring a rejected item: as the source has it now. */
static CopyChange change_of(const Copy *copy, const CopyReject *reject, Arena *arena,
                            const CopyItem *items, size_t count)
{
    CopyChange change = {.id = reject->id};
    Json parts;
    Error ignored;
    if (json_parse(arena, reject->key, &parts, &ignored) == STATUS_OK &&
        json_is(parts, JSON_ARRAY)) {
        for (JsonIter it = json_iter(parts);
             change.key.count < copy->keys.source.path_count && json_next(&it);)
            change.key.parts[change.key.count++] =
                json_is(it.value, JSON_OBJECT) ? JSON_NONE : it.value;
    }
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(items[i].id, change.id) &&
            partition_key_equal(&items[i].found.source_key, &change.key))
            change.item = items[i].item;
    }
    return change;
}

Status copy_retry_rejects(Copy *copy, Error *err)
{
    size_t count = copy->state.reject_count;
    if (count == 0)
        return STATUS_OK;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256 << 10);
    CopyChange *changes = ARENA_NEW_ARRAY(&arena, CopyChange, count);
    CopyItem *items = NULL;
    size_t item_count = 0;
    for (size_t i = 0; i < count; i++)
        changes[i].id = arena_copy(&arena, copy->state.rejects[i].id);
    TRY(copy_look_up(copy, &copy->source, &arena, changes, count, &items, &item_count, err));
    for (size_t i = 0; i < count; i++)
        changes[i] = change_of(copy, &copy->state.rejects[i], &arena, items, item_count);
    return copy_apply(copy, &arena, changes, count, true, err);
}
