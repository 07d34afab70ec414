/* document_changes.c - the change feed: GET .../docs with A-IM.
 *
 * A page is what has changed in one physical partition after a position, which is an LSN and comes
 * and goes as an ETag. Clients that want a container ask for its partitions one by one. A page ends
 * between two transactions, never within one, however large that is: a position cannot stand
 * there. Nothing new is 304, with an ETag to go on from; a page is never empty.
 *
 * src/api/README.md says what was found where the protocol is silent.
 */
#include "api/core/throttle_int.h"
#include "api/items/document_handlers_int.h"
#include "api/items/document_page_int.h"
#include "base/date.h"
#include "query/eval/query.h"
#include "query/plan/query_traits.h"

/* Of the text of a page: a transaction is never cut, so this is not PAGE_BYTES_MAX. */
#define CHANGES_TEXT_BYTES_MAX (2 * TRANSACTION_BYTES_MAX)

/* Entries that a page on the loop looks at. */
enum { BRIEF_ENTRIES_MAX = 64 };

#define AFTER_NOW UINT64_MAX

typedef struct ChangesPage {
    DocumentPage page;
    FeedMode mode;
    bool is_wrapped;    /* each item comes with metadata */
    size_t range;       /* index in the container's */
    uint64_t after_lsn; /* AFTER_NOW for what comes after the request */
    int64_t since_s;
    ScanBudget budget;

    Query *filter;                    /* NULL if all changes are asked for */
    bool filters_deletes_by_previous; /* a delete is compared by what was deleted */
    Arena scratch;                    /* of the filter, for one change */
} ChangesPage;

/* ---- what is asked for ---- */

static Status read_mode(ApiRequest *r, ChangesPage *changes, Error *err)
{
    Slice text = slice_trim(request_header(r, "a-im"));
    if (slice_equal_nocase(text, SLICE("Incremental Feed")))
        changes->mode = FEED_LATEST;
    else if (slice_equal_nocase(text, SLICE("Full-Fidelity Feed")))
        changes->mode = FEED_VERSIONS;
    else
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A-IM '%.*s' is not a change feed; expected 'Incremental Feed' or "
                         "'Full-Fidelity Feed'.",
                         SLICE_CUT(text, 60));
    Slice format = slice_trim(request_header(r, "x-ms-cosmos-changefeed-wire-format-version"));
    changes->is_wrapped =
        changes->mode == FEED_VERSIONS || slice_equal(format, SLICE("2021-09-15"));
    return STATUS_OK;
}

/* With its quotes or without. */
static Status read_etag(Slice text, uint64_t *lsn, Error *err)
{
    Slice digits = text;
    if (digits.len >= 2 && digits.ptr[0] == '"' && digits.ptr[digits.len - 1] == '"')
        digits = slice_first(slice_from(digits, 1), digits.len - 2);
    if (slice_equal(digits, SLICE("*")))
        *lsn = AFTER_NOW;
    else if (!slice_to_u64(digits, lsn) || *lsn == AFTER_NOW)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "If-None-Match %.*s is not a position of a change feed; expected the ETag "
                         "of an earlier answer, or '*' for what comes next.",
                         SLICE_CUT(text, 60));
    return STATUS_OK;
}

/* Some clients name the zone UTC. */
static Status read_time(Slice text, int64_t *since_s, Error *err)
{
    char copy[DATE_LEN];
    if (text.len == DATE_LEN) {
        memcpy(copy, text.ptr, DATE_LEN);
        if (slice_equal_nocase(slice_from(text, DATE_LEN - 3), SLICE("UTC")))
            memcpy(copy + DATE_LEN - 3, "GMT", 3);
    }
    if (text.len != DATE_LEN || !date_parse(slice_make(copy, DATE_LEN), since_s))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "If-Modified-Since '%.*s' is not a date; expected one like 'Tue, 01 Jul "
                         "2025 10:00:00 GMT'.",
                         SLICE_CUT(text, 60));
    return STATUS_OK;
}

static Status check_versions(const ApiRequest *r, bool has_position, Error *err)
{
    if (r->container->schema->retention_s == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Change Feed 'All Versions and Deletes' mode must be enabled. Set the "
                         "container's changeFeedPolicy to {\"retentionDuration\": minutes}.");
    if (!has_position)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Start from beginning is not supported with 'All Versions and Deletes' "
                         "mode. You must read the change feed from within the retention period.");
    return STATUS_OK;
}

static Status read_position(ApiRequest *r, ChangesPage *changes, Error *err)
{
    Slice etag = slice_trim(request_header(r, "if-none-match"));
    Slice time = slice_trim(request_header(r, "if-modified-since"));
    changes->since_s = INT64_MIN;
    if (etag.len > 0)
        TRY(read_etag(etag, &changes->after_lsn, err));
    if (time.len > 0)
        TRY(read_time(time, &changes->since_s, err));
    return changes->mode == FEED_VERSIONS ? check_versions(r, etag.len > 0, err) : STATUS_OK;
}

/* A client may name a key and a range: the range must still be there. */
static Status find_range(const ApiRequest *r, ChangesPage *changes, Error *err)
{
    const Container *container = r->container;
    const PartitionRange *named = NULL;
    bool is_named = false;
    TRY(request_range(r, &named, &is_named, err));
    size_t count = 0;
    for (size_t i = container->range_count; i-- > 0;) {
        if (!document_extent_needs(&changes->page.extent, &container->ranges[i]))
            continue;
        changes->range = i;
        count++;
    }
    if (count == 0 && is_named) { /* nothing is asked for */
        changes->range = (size_t)(named - container->ranges);
        count = 1;
    }
    if (count == 1)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "The change feed is read from one partition key range at a time, and the "
                     "request asks for %zu. Name one by x-ms-documentdb-partitionkeyrangeid (GET "
                     ".../pkranges lists them), or a partition key.",
                     count);
}

/* A feed with a query has only the changes that the query finds. */
static Status read_filter(ApiRequest *r, ChangesPage *changes, Error *err)
{
    Json body;
    if (r->http->body.len > LOOP_QUERY_BYTES_MAX) /* it is read on the loop */
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "The query of a change feed has %zu bytes, at most %zu are accepted.",
                         r->http->body.len, (size_t)LOOP_QUERY_BYTES_MAX);
    TRY(json_parse(r->arena, r->http->body, &body, err));
    Json text = json_get(body, SLICE("query"));
    if (!json_is(text, JSON_STRING))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The body of a change feed's query must have the member 'query'.");
    Json flag = json_get(body, SLICE("enableQueryOnPreviousImage"));
    changes->filters_deletes_by_previous = json_is(flag, JSON_BOOL) && json_bool(flag);
    TRY(query_parse(r->arena, json_string(text), json_get(body, SLICE("parameters")),
                    &changes->filter, err));
    if (query_is_streaming(changes->filter) && !query_calls_functions(changes->filter))
        return STATUS_OK;
    return error_set(
        err, STATUS_BAD_REQUEST, SUB_NONE,
        "The query of a change feed chooses changes one by one: it cannot sort, group, "
        "count, limit, or call user-defined functions.");
}

/* ---- printing ---- */

static void print_metadata(const ChangesPage *changes, const ItemChange *change, Buf *out)
{
    static const Slice names[] = {
        [CHANGE_CREATE] = SLICE_INIT("create"),
        [CHANGE_REPLACE] = SLICE_INIT("replace"),
        [CHANGE_DELETE] = SLICE_INIT("delete"),
        [CHANGE_EXPIRE] = SLICE_INIT("delete"),
    };
    buf_slice(out, SLICE(",\"metadata\":{\"lsn\":"));
    buf_u64(out, change->lsn);
    buf_slice(out, SLICE(",\"crts\":"));
    buf_u64(out, change->ts_s);
    if (changes->mode == FEED_VERSIONS) {
        ASSERT(change->kind < ARRAY_COUNT(names));
        buf_slice(out, SLICE(",\"operationType\":\""));
        buf_slice(out, names[change->kind]);
        buf_byte(out, '"');
        if (change->previous_lsn != 0) {
            buf_slice(out, SLICE(",\"previousImageLSN\":"));
            buf_u64(out, change->previous_lsn);
        }
    }
    if (change->kind == CHANGE_EXPIRE)
        buf_slice(out, SLICE(",\"timeToLiveExpired\":true"));
    if (change->kind >= CHANGE_DELETE) {
        buf_slice(out, SLICE(",\"id\":"));
        json_print_string(change->id, out);
        buf_slice(out, SLICE(",\"partitionKey\":"));
        json_print(change->key, out);
    }
    buf_byte(out, '}');
}

/* An item may have a member of its own with the name that the feed adds. */
static Item without_lsn(ChangesPage *changes, const Item *item)
{
    Item copy = *item;
    if (LIKELY(json_is(json_get(item->document, SLICE("_lsn")), JSON_UNDEFINED)))
        return copy;
    arena_reset(&changes->scratch);
    JsonBuilder b;
    json_build(&b, &changes->scratch);
    json_begin_object(&b);
    JsonIter it = json_iter(item->document);
    while (json_next(&it)) {
        if (slice_equal(it.name, SLICE("_lsn")))
            continue;
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    json_end(&b);
    copy.document = json_built(&b);
    return copy;
}

static void print_change(ChangesPage *changes, const ItemChange *change, Buf *out)
{
    const PartitionSchema *schema = changes->page.container->schema;
    const ApiOptions *options = &changes->page.request->api->options;
    if (!changes->is_wrapped) {
        Item item = without_lsn(changes, &change->item);
        item_print(schema, &item, out);
        if (buf_full(out))
            return;
        out->len--; /* the closing brace */
        buf_slice(out, SLICE(",\"_lsn\":"));
        buf_u64(out, change->lsn);
        buf_byte(out, '}');
        return;
    }
    buf_slice(out, SLICE("{\"current\":"));
    if (change->kind >= CHANGE_DELETE)
        buf_slice(out, SLICE("{}"));
    else
        item_print(schema, &change->item, out);
    if (change->kind == CHANGE_DELETE && change->has_item && !options->hides_previous_images) {
        buf_slice(out, SLICE(",\"previous\":"));
        item_print(schema, &change->item, out);
    }
    print_metadata(changes, change, out);
    buf_byte(out, '}');
}

/* ---- a page ---- */

/* Whether the filter finds the change, by the version that it has made or deleted. */
static Status is_wanted(ChangesPage *changes, const ItemChange *change, bool *out)
{
    Error *err = &changes->page.answer.error;
    *out = changes->filter == NULL;
    if (*out)
        return STATUS_OK;
    Arena *arena = &changes->scratch;
    arena_reset(arena);
    bool is_delete = change->kind >= CHANGE_DELETE;
    if (is_delete && !(changes->filters_deletes_by_previous && change->has_item))
        return STATUS_OK;
    Json document = item_document(arena, changes->page.container->schema, &change->item);
    Json *results = NULL;
    size_t count = 0;
    const DocumentClock *clock = &changes->page.clock;
    QueryOptions options = {.clock = &clock->pauses, .deadline_us = clock->deadline_us};
    TRY(query_run_with(changes->filter, options, &document, 1, arena, &results, &count, err));
    *out = count > 0;
    return STATUS_OK;
}

/* Where a page could end. */
typedef struct PageEnd {
    uint64_t lsn;
    size_t text_len;
    size_t count;
    Charge reads;
} PageEnd;

static bool is_over(const ChangesPage *changes)
{
    const PageAnswer *answer = &changes->page.answer;
    return answer->count > changes->page.items_max ||
           answer->text.len > PAGE_BYTES_MAX - ENVELOPE_BYTES_MAX || buf_full(&answer->text);
}

/* Fills the page; '*end' is where it ends. A transaction that does not fit, and is not the first,
 * is left for the next page. */
static Status fill(ChangesPage *changes, ChangeFeed *feed, PageEnd *end)
{
    PageAnswer *answer = &changes->page.answer;
    const ChargeModel *model = changes->page.request->api->options.charges;
    *end = (PageEnd){.text_len = answer->text.len};
    PageEnd now = *end;
    for (;;) {
        ItemChange change;
        bool found = false;
        bool wanted = false;
        TRY(change_feed_next(feed, &change, &found, &answer->error));
        if (found && change.lsn != now.lsn && now.count > 0)
            *end = now; /* the transaction before is complete */
        if (!found) {
            now.lsn = change_feed_seen_lsn(feed);
            *end = now;
            return STATUS_OK;
        }
        if (end->count > 0 && end->count >= changes->page.items_max)
            return STATUS_OK;
        TRY(is_wanted(changes, &change, &wanted));
        if (!wanted)
            continue;
        if (answer->count > 0)
            buf_byte(&answer->text, ',');
        print_change(changes, &change, &answer->text);
        answer->count++;
        size_t bytes = change.has_item ? change.item.bytes : 0;
        now = (PageEnd){
            .lsn = change.lsn,
            .text_len = answer->text.len,
            .count = answer->count,
            .reads = now.reads + charge_read(model, bytes),
        };
        if (end->count > 0 && is_over(changes))
            return STATUS_OK;
    }
}

static void end_page(ChangesPage *changes, const PartitionRange *range, const PageEnd *end,
                     uint64_t lsn)
{
    DocumentPage *page = &changes->page;
    PageAnswer *answer = &page->answer;
    const ChargeModel *model = page->request->api->options.charges;
    ASSERT(end->text_len <= answer->text.len);
    answer->text.len = end->text_len;
    answer->text.full = false;
    answer->count = end->count;
    answer->is_not_modified = end->count == 0;
    document_page_session_at(page, range, lsn);
    document_page_charge(page, range, charge_feed(model, end->reads));
    ASSERT(answer->header_count < PAGE_HEADERS_MAX);
    answer->headers[answer->header_count++] = (HttpHeader){
        .name = SLICE("etag"),
        .value = arena_format(page->request->arena, "\"%llu\"", (unsigned long long)end->lsn),
    };
}

static Status run_feed(ChangesPage *changes, const PartitionRange *range)
{
    DocumentPage *page = &changes->page;
    /* Something has come since the request seemed to be an instant one. */
    if (page->is_brief && changes->filter != NULL)
        return error_set(&page->answer.error, STATUS_TIMEOUT, SUB_NONE, "a worker must do this");
    changes->budget = (ScanBudget){
        /* A worker goes on while it has time: 304 would say that there is nothing more. */
        .entries = page->is_brief ? BRIEF_ENTRIES_MAX : UINT64_MAX,
        .deadline_us = page->is_brief ? 0 : page->clock.deadline_us,
        .clock = page->is_brief ? NULL : &page->clock.pauses,
    };
    FeedOptions options = {
        .mode = changes->mode,
        .after_lsn = changes->after_lsn,
        .since_s = changes->since_s,
        .epk_from = page->extent.epk_from,
        .epk_to = page->extent.epk_to,
        .read = page->is_brief ? STORE_READ_MEMORY : STORE_READ_ANY,
        .budget = &changes->budget,
    };
    AUTO(change_feed_close) ChangeFeed *feed = NULL;
    TRY(handle_feed_open(container_handle(page->container, range), page->container->schema,
                         &options, &feed, &page->answer.error));
    PageEnd end;
    arena_init(&changes->scratch, ARENA_SMALL_BYTES);
    Status status = fill(changes, feed, &end);
    arena_done(&changes->scratch);
    TRY(status);
    if (page->is_brief && changes->budget.entries == 0)
        return error_set(&page->answer.error, STATUS_TIMEOUT, SUB_NONE, "a worker must do this");
    end_page(changes, range, &end, change_feed_lsn(feed));
    return STATUS_OK;
}

static Status run(DocumentPage *page)
{
    ChangesPage *changes = CONTAINER_OF(page, ChangesPage, page);
    const PartitionRange *range = &page->container->ranges[changes->range];
    if (!page->bill.is_admitted)
        TRY(document_page_admit(page, range));
    page->bill.is_admitted = true;
    uint64_t lsn = handle_lsn(container_handle(page->container, range));
    if (changes->after_lsn < lsn)
        return run_feed(changes, range);
    /* What most followers hear most of the time. */
    PageEnd end = {.lsn = lsn, .text_len = page->answer.text.len};
    end_page(changes, range, &end, lsn);
    return STATUS_OK;
}

Status documents_changes(ApiRequest *r, Error *err)
{
    ChangesPage *changes = ARENA_NEW(r->arena, ChangesPage);
    DocumentPage *page = &changes->page;
    r->counted_as = HISTORY_CHANGES;
    TRY(document_page_init(page, r, run, err));
    TRY(read_mode(r, changes, err));
    TRY(read_position(r, changes, err));
    TRY(find_range(r, changes, err));
    if (r->http->body.len > 0)
        TRY(read_filter(r, changes, err));
    const PartitionRange *range = &r->container->ranges[changes->range];
    page->text_bytes_max = CHANGES_TEXT_BYTES_MAX;
    page->is_instant = changes->after_lsn >= handle_lsn(container_handle(r->container, range));
    page->can_be_brief =
        page->is_instant || (changes->filter == NULL && r->api->limits.brief_us > 0);
    return document_page_post(page, err);
}
