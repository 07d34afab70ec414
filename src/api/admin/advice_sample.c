/* advice_sample.c - see advice_sample_int.h.
 *
 *     LSNs of a partition   |====....|==......|====....|   cut into spans, each with a feed of its
 *                           first                 newest   own; the feeds are read in turn
 */
#include "api/admin/advice_sample_int.h"

enum {
    SPANS = 16,
    TURN_ITEMS = 32,     /* of one feed, before the next one has its turn */
    LOOKED_AT_MAX = 100, /* entries of the logs for each item that is wanted: most may be of items
                            that have changed again since */
};

typedef struct Span {
    ChangeFeed *feed; /* NULL when it has ended */
    uint64_t last_lsn;
} Span;

typedef struct Spans {
    Span list[SPANS];
} Spans;

static void spans_done(Spans *spans)
{
    for (size_t i = 0; i < SPANS; i++)
        change_feed_close(spans->list[i].feed);
}
DEFINE_AUTO_VALUE(Spans, spans_done)

typedef struct Reader {
    const Container *container;
    const AdviceTime *time;
    AdviceSink sink;
    ScanBudget budget;
} Reader;

bool advice_is_over(const AdviceTime *time)
{
    return clock_monotonic_us(time->clock) >= time->deadline_us;
}

static Status open_spans(Reader *r, PartitionHandle *partition, Spans *spans, Error *err)
{
    uint64_t newest = handle_lsn(partition);
    for (uint64_t i = 0; i < SPANS; i++) {
        /* Without overflow: the products stay below 2^64 for any LSN that can be reached. */
        uint64_t from = newest / SPANS * i + newest % SPANS * i / SPANS;
        uint64_t to = newest / SPANS * (i + 1) + newest % SPANS * (i + 1) / SPANS;
        if (from == to)
            continue;
        FeedOptions options = {
            .mode = FEED_LATEST,
            .after_lsn = from,
            .since_s = INT64_MIN,
            .epk_from = handle_range(partition)->min_bytes,
            .epk_to = handle_range(partition)->max_bytes,
            .read = STORE_READ_ANY,
            .budget = &r->budget,
        };
        TRY(handle_feed_open(partition, r->container->schema, &options, &spans->list[i].feed, err));
        spans->list[i].last_lsn = to;
    }
    return STATUS_OK;
}

static Status add_item(const Reader *r, const Item *item, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    return r->sink.add(r->sink.ctx, item_document(&arena, r->container->schema, item), err);
}

/* Takes the next items of a span; closes its feed at the end. */
static Status read_turn(const Reader *r, Span *span, uint64_t *left, Error *err)
{
    for (size_t i = 0; i<TURN_ITEMS && * left> 0; i++) {
        ItemChange change;
        bool found = false;
        TRY(change_feed_next(span->feed, &change, &found, err));
        if (!found || change.lsn > span->last_lsn) {
            change_feed_close(TAKE(span->feed));
            return STATUS_OK;
        }
        if (!change.has_item)
            continue;
        TRY(add_item(r, &change.item, err));
        --*left;
    }
    return STATUS_OK;
}

static Status read_partition(Reader *r, PartitionHandle *partition, uint64_t quota, Error *err)
{
    AUTO(spans_done) Spans spans = {0};
    TRY(open_spans(r, partition, &spans, err));
    bool is_more = true;
    while (is_more && quota > 0) {
        is_more = false;
        for (size_t i = 0; i < SPANS && quota > 0; i++) {
            if (spans.list[i].feed == NULL)
                continue;
            if (advice_is_over(r->time))
                return STATUS_OK;
            TRY(read_turn(r, &spans.list[i], &quota, err));
            is_more = is_more || spans.list[i].feed != NULL;
        }
    }
    return STATUS_OK;
}

double advice_sample_share(const Sample *sample, size_t range_count)
{
    /* Fewer than fit, since each partition rounds up, so that the sample is not thinned. */
    double wanted = (double)sample->limits.items_max - 1;
    wanted = wanted > (double)range_count ? wanted - (double)range_count : 1;
    double share = sample->population > 0 ? wanted / (double)sample->population : 0;
    return share < 1 ? share : 1;
}

Status advice_sample_read(const Container *container, const PartitionRange *range, double share,
                          const AdviceTime *time, AdviceSink sink, Error *err)
{
    Reader r = {.container = container, .time = time, .sink = sink};
    PartitionHandle *partition = container_handle(container, range);
    double items = (double)handle_usage(partition).items;
    if (items < 1 || advice_is_over(time))
        return STATUS_OK;
    uint64_t quota = (uint64_t)(items * share) + 1;
    r.budget = (ScanBudget){
        .entries = quota * LOOKED_AT_MAX, .deadline_us = time->deadline_us, .clock = time->clock};
    return read_partition(&r, partition, quota, err);
}
