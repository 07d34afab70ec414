/* query_record.c - see query_record_int.h. */
#include "api/items/query_record_int.h"

#include "base/mem.h"
#include "query/sql/query_shape.h"

/* Programs send the same few texts again and again, with other values in their parameters. A loop
 * remembers what became of those that it saw last; a text that is in the way of another is
 * replaced. */
enum { SHAPES_MAX = 64, NAMED_TYPES_MAX = 256 };

typedef struct KnownShape {
    uint64_t hash; /* of the text, and of names and types of the parameters; 0 if there is none */
    uint16_t len;
    char text[QUERY_LOG_TEXT_MAX];
} KnownShape;

struct QueryShapes {
    KnownShape rows[SHAPES_MAX];
};

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

/* 0 if there are too many parameters to tell quickly. */
static uint64_t hash_of(const DocumentQuery *q)
{
    char names[NAMED_TYPES_MAX];
    size_t len = 0;
    JsonIter it = json_iter(q->parameters);
    while (json_next(&it)) {
        Json name = json_get(it.value, SLICE("name"));
        Slice text = json_is(name, JSON_STRING) ? json_string(name) : SLICE_EMPTY;
        if (len + text.len + 1 > sizeof(names))
            return 0;
        if (text.len > 0)
            memcpy(names + len, text.ptr, text.len);
        len += text.len;
        names[len++] = (char)json_type(json_get(it.value, SLICE("value"))); /* no name has it */
    }
    HashKey key = q->page.request->api->top_key;
    key.k0 ^= hash_keyed(key, slice_make(names, len));
    return hash_keyed(key, q->text);
}

static void make_text(DocumentQuery *q)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, QUERY_LOG_TEXT_MAX);
    (void)buf_reserve(&text, q->text.len < QUERY_LOG_TEXT_MAX ? q->text.len : QUERY_LOG_TEXT_MAX);
    if (query_shape(q->text, q->parameters, &text))
        q->note.text = arena_copy(q->page.request->arena, buf_view(&text));
}

/* Not before the page is made: one that is throttled needs no text. Only the loop remembers. */
static void find_text(DocumentQuery *q)
{
    if (!is_on(q) || q->note.text.len > 0)
        return;
    uint64_t hash = q->page.is_brief ? hash_of(q) : 0;
    if (hash == 0) {
        make_text(q);
        return;
    }
    ApiLoop *loop = q->page.request->loop;
    if (loop->shapes == NULL)
        loop->shapes = MEM_NEW(struct QueryShapes);
    KnownShape *known = &loop->shapes->rows[hash % SHAPES_MAX];
    if (known->hash == hash) {
        q->note.text = arena_copy(q->page.request->arena, slice_make(known->text, known->len));
        return;
    }
    make_text(q);
    known->hash = hash;
    known->len = (uint16_t)q->note.text.len;
    if (known->len > 0)
        memcpy(known->text, q->note.text.ptr, known->len);
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
