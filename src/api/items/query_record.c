/* query_record.c - see query_record_int.h. */
#include "api/items/query_record_int.h"

#include "query/sql/query_shape.h"

static bool is_on(const DocumentQuery *q)
{
    return q->page.request->loop->queries != NULL;
}

/* The index of the first partition that a query needs, and how many those are. */
static size_t count_needed(const DocumentExtent *extent, const Container *container, size_t *first)
{
    size_t count = 0;
    for (size_t i = 0; i < container->range_count; i++) {
        if (!document_extent_needs(extent, &container->ranges[i]))
            continue;
        if (count++ == 0)
            *first = i;
    }
    return count;
}

/* A request about one of the partitions that a client merges: which ones does the whole query need?
 */
static void begin_part(DocumentQuery *q, const Container *container)
{
    QueryRoute route;
    query_route(q->query, q->page.request->arena, &container->partition_key, &route);
    const DocumentExtent whole = {.epk_to = SLICE("\xFF"), .route = route.is_all ? NULL : &route};
    size_t first = 0;
    size_t count = count_needed(&whole, container, &first);
    const DocumentExtent *extent = &q->page.extent;
    q->note.counts[QUERY_EXECUTIONS] =
        document_extent_overlaps(&container->ranges[first], extent->epk_from, extent->epk_to);
    q->note.counts[QUERY_ONE_PARTITION] = q->note.counts[QUERY_EXECUTIONS] && count <= 1;
}

void query_record_begin(DocumentQuery *q, const Container *container)
{
    if (!is_on(q))
        return;
    const DocumentExtent *extent = &q->page.extent;
    q->note = (QueryNote){.container = container->info.number, .counts = {[QUERY_PAGES] = 1}};
    bool has_header = extent->is_given && extent->has_key;
    if (has_header)
        q->note.key_parts = (uint8_t)extent->key.count;
    if (q->token.len > 0 || !json_is(q->resume_filter, JSON_UNDEFINED))
        return;
    if (extent->is_given && !has_header) {
        begin_part(q, container);
        return;
    }
    size_t first = 0;
    q->note.counts[QUERY_EXECUTIONS] = 1;
    q->note.counts[QUERY_ONE_PARTITION] = count_needed(extent, container, &first) <= 1;
}

/* Not before the page is made: one that is throttled needs no text. */
static void find_text(DocumentQuery *q)
{
    if (!is_on(q) || q->note.text.len > 0)
        return;
    AUTO(buf_done) Buf text;
    buf_init(&text, QUERY_LOG_TEXT_MAX);
    (void)buf_reserve(&text, q->text.len < QUERY_LOG_TEXT_MAX ? q->text.len : QUERY_LOG_TEXT_MAX);
    if (query_shape(q->text, q->parameters, &text))
        q->note.text = arena_copy(q->page.request->arena, buf_view(&text));
}

void query_record_work(DocumentQuery *q, const QueryMetrics *metrics)
{
    find_text(q);
    q->note.counts[QUERY_VISITS] = metrics->partitions;
    q->note.counts[QUERY_RESULTS] = metrics->results;
    q->note.counts[QUERY_DOCUMENTS] = metrics->documents_read;
    q->note.counts[QUERY_INDEX_KEYS] = metrics->index_keys_read;
}

void query_record_end(DocumentPage *page)
{
    DocumentQuery *q = CONTAINER_OF(page, DocumentQuery, page);
    if (!is_on(q) || page->answer.status != STATUS_OK)
        return;
    q->note.counts[QUERY_CHARGE] = page->bill.sum;
    uint64_t now_s = (uint64_t)clock_wall_s(page->request->api->options.clock);
    query_log_add(page->request->loop->queries, now_s, &q->note);
}
