/* orrery_advice.c - the advice of `orrery advise` for a container, made where its items are.
 *
 * The layer advise does the work, with a sample of the items and the queries that were recorded. It
 * takes a moment of one processor, so there is one at a time, its time is limited, and it stops
 * when the client has gone. Nothing is charged.
 *
 * Other nodes are asked for three parts: the queries that they have recorded (orrery_queries.c),
 *
 *     "counts"          range items          a line for each range that they serve
 *     "sample SHARE"    ids of the ranges, and a line for each item: SHARE of all that they hold
 */
#include "advise/report.h"
#include "api/admin/advice_sample_int.h"
#include "api/admin/range_gather_int.h"
#include "api/admin/yielding_clock_int.h"

#include <stdlib.h>

enum { ADVICE_SAMPLE, ADVICE_PARTITIONS, ADVICE_GROWTH };
enum {
    SAMPLE_DEFAULT = 10000,
    SAMPLE_MAX = 20000,
    QUERIES_MAX = 1000,
    RETRY_MS = 1000,
};

/* Of one answer: the time of work in which items are read, and that after which no more keys are
 * tried. */
#define READ_US_MAX         ((uint64_t)2000000)
#define ADVICE_US_MAX       ((uint64_t)5000000)
#define SERVER_SAMPLE_BYTES ((size_t)32 << 20)
#define QUERIES_BYTES_MAX   ((size_t)8 << 20)

/* To ask all other nodes; a sample takes each of them READ_US_MAX. */
#define COUNTS_ASK_US ((uint64_t)3000000)
#define SAMPLE_ASK_US ((uint64_t)8000000)

static const Slice COUNTS = SLICE_INIT("counts");
#define SAMPLE_PART "sample "

typedef struct AdviceJob {
    OrreryPage *page;
    YieldingClock clock;
    AdviceTime time;
    Arena *arena;
    Sample sample;
    Workload work;
    double share;       /* of all items that the sample has room for */
    RangeGather counts; /* the ranges whose items were counted */
    RangeGather items;  /* and those whose items were read */
} AdviceJob;

static void advice_job_done(AdviceJob *job)
{
    sample_done(&job->sample);
    atomic_store(&job->page->request->api->is_advising, false);
}
DEFINE_AUTO_VALUE(AdviceJob, advice_job_done)

/* As a client would, so that both understand the same. */
static Status read_workload(AdviceJob *job, Error *err)
{
    OrreryPage *page = job->page;
    const ApiOptions *options = &page->request->api->options;
    if (options->histories == NULL || options->no_query_texts)
        return STATUS_OK;
    const PartitionKeyDefinition *key = &page->container->partition_key;
    AUTO(buf_done) Buf text;
    buf_init(&text, QUERIES_BYTES_MAX);
    TRY(orrery_queries_print(page, QUERY_EXECUTIONS, QUERIES_MAX, &text, err));
    if (buf_full(&text))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE, "There are too many recorded queries.");
    Json answer;
    TRY(json_parse(job->arena, arena_copy(job->arena, buf_view(&text)), &answer, err));
    return workload_recorded(job->arena, answer, key->paths, key->path_count, &job->work, err);
}

static bool is_due(void *ctx)
{
    return advice_is_over(ctx);
}

static KeyCandidate current_key(const PartitionKeyDefinition *key)
{
    KeyCandidate out = {.kind = key->path_count > 1 ? KEY_HIERARCHICAL : KEY_SINGLE,
                        .path_count = key->path_count};
    for (size_t i = 0; i < key->path_count; i++)
        out.paths[i] = key->paths[i];
    return out;
}

static Status check_client(const AdviceJob *job, Error *err)
{
    if (!atomic_load_explicit(job->clock.is_abandoned, memory_order_relaxed))
        return STATUS_OK;
    return error_set(err, STATUS_TIMEOUT, SUB_NONE, "The advice was cancelled by its client.");
}

/* ---- counting ---- */

static uint64_t items_of(const GatherRange *range)
{
    return handle_usage(container_handle(range->container, range->range)).items;
}

static Status count_here(void *ctx, const GatherRange *range, Error *err UNUSED)
{
    ((AdviceJob *)ctx)->sample.population += items_of(range);
    return STATUS_OK;
}

static Status take_counts(RangeGather *gather, Slice text, Arena *arena UNUSED, Error *err)
{
    AdviceJob *job = gather->ctx;
    while (text.len > 0) {
        Slice count = slice_cut(&text, '\n');
        uint64_t id = 0;
        uint64_t items = 0;
        if (!slice_to_u64(slice_cut(&count, ' '), &id) || !slice_to_u64(count, &items) ||
            items > ORRERY_NUMBER_MAX)
            return range_gather_refuse(err);
        if (range_gather_claim(gather, job->page->container->info.number, id) != NULL)
            job->sample.population += items;
    }
    return STATUS_OK;
}

static Status count_items(AdviceJob *job, Error *err)
{
    job->counts = (RangeGather){
        .part = COUNTS,
        .time_us = COUNTS_ASK_US,
        .answer_bytes_max = ORRERY_JSON_BYTES_MAX,
        .ctx = job,
        .read_here = count_here,
        .take = take_counts,
    };
    range_gather_init(&job->counts, job->page);
    return range_gather_run(&job->counts, err);
}

/* ---- sampling ---- */

static Status add_item(void *ctx, Json document, Error *err)
{
    return sample_add(&((AdviceJob *)ctx)->sample, document, err);
}

static Status read_items(void *ctx, const GatherRange *range, Error *err)
{
    AdviceJob *job = ctx;
    AdviceSink sink = {.ctx = job, .add = add_item};
    return advice_sample_read(range->container, range->range, job->share, &job->time, sink, err);
}

static Status take_items(RangeGather *gather, Slice text, Arena *answer UNUSED, Error *err)
{
    AdviceJob *job = gather->ctx;
    Slice ids = slice_cut(&text, '\n');
    while (text.len > 0) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, ARENA_SMALL_BYTES);
        Json document;
        TRY(json_parse(&arena, slice_cut(&text, '\n'), &document, err));
        TRY(sample_add(&job->sample, document, err));
    }
    if (!range_gather_claim_ids(gather, ids))
        return range_gather_refuse(err);
    return STATUS_OK;
}

/* A range that was not counted, or not read, is missing. */
static Status sample_items(AdviceJob *job, Error *err)
{
    job->share = advice_sample_share(&job->sample, job->page->container->range_count);
    job->items = (RangeGather){
        .part = arena_format(job->arena, SAMPLE_PART "%.17g", job->share),
        .time_us = SAMPLE_ASK_US,
        .answer_bytes_max = ORRERY_PART_BYTES_MAX,
        .ctx = job,
        .read_here = read_items,
        .take = take_items,
    };
    range_gather_init(&job->items, job->page);
    job->time.deadline_us = clock_monotonic_us(job->time.clock) + READ_US_MAX;
    TRY(range_gather_run(&job->items, err));
    ASSERT(job->items.count == job->counts.count);
    for (size_t i = 0; i < job->items.count; i++)
        job->items.ranges[i].is_taken &= job->counts.ranges[i].is_taken;
    return STATUS_OK;
}

static Status check_sample(const AdviceJob *job, Error *err)
{
    if (job->sample.count > 0)
        return STATUS_OK;
    if (range_gather_is_complete(&job->items))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The container has no items to learn from.");
    Status status = error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                              "The nodes that serve the container's items do not answer.");
    err->retry_after_ms = RETRY_MS;
    return status;
}

/* ---- for another node ---- */

static Status nothing_yet(void *ctx UNUSED, const GatherRange *range UNUSED, Error *err UNUSED)
{
    return STATUS_OK;
}

/* Prints an item; without room the time is over. */
static Status print_item(void *ctx, Json document, Error *err UNUSED)
{
    AdviceJob *job = ctx;
    Buf *out = &job->page->text;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    Slice text = json_print_arena(&arena, document);
    if (text.len > JSON_TEXT_BYTES_MAX) /* numbers that are long as text */
        return STATUS_OK;
    if (job->time.deadline_us == 0 || out->len + text.len + 1 > out->bytes_max) {
        job->time.deadline_us = 0;
        return STATUS_OK;
    }
    buf_slice(out, text);
    buf_byte(out, '\n');
    return STATUS_OK;
}

static Status print_items(AdviceJob *job, Error *err)
{
    AdviceSink sink = {.ctx = job, .add = print_item};
    job->items = (RangeGather){.ctx = job, .read_here = nothing_yet};
    range_gather_init(&job->items, job->page);
    TRY(range_gather_here(&job->items, err));
    range_gather_put_ids(&job->items, &job->page->text);
    job->time.deadline_us = job->page->now_us + READ_US_MAX;
    for (size_t i = 0; i < job->items.count; i++) {
        const GatherRange *range = &job->items.ranges[i];
        if (range->is_taken)
            TRY(advice_sample_read(range->container, range->range, job->share, &job->time, sink,
                                   err));
    }
    return STATUS_OK;
}

static Status print_count(void *ctx, const GatherRange *range, Error *err UNUSED)
{
    buf_format(&((AdviceJob *)ctx)->page->text, "%u %llu\n", range->range->id,
               (unsigned long long)items_of(range));
    return STATUS_OK;
}

static Status print_counts(AdviceJob *job, Error *err)
{
    job->counts = (RangeGather){.ctx = job, .read_here = print_count};
    range_gather_init(&job->counts, job->page);
    return range_gather_here(&job->counts, err);
}

static Status run_part(OrreryPage *page)
{
    const ApiRequest *r = page->request;
    AdviceJob job = {.page = page, .arena = r->arena};
    yielding_clock_init(&job.clock, r->api->options.clock, &r->http->is_abandoned);
    job.time.clock = &job.clock.clock;
    if (orrery_is_queries_part(page))
        return orrery_queries_part(page, QUERY_EXECUTIONS);
    if (slice_equal(page->part, COUNTS))
        return print_counts(&job, &page->error);
    if (slice_starts_with(page->part, SLICE(SAMPLE_PART)) &&
        json_number_from_text(slice_from(page->part, strlen(SAMPLE_PART)), &job.share) &&
        job.share >= 0 && job.share <= 1)
        return print_items(&job, &page->error);
    return error_set(&page->error, STATUS_BAD_REQUEST, SUB_NONE, "There is no part '%.*s'.",
                     SLICE_CUT(page->part, 60));
}

/* ---- the advice ---- */

static void put_advice(const AdviceJob *job, const Advice *advice)
{
    Buf *out = &job->page->text;
    if (job->page->request->api->options.cluster == NULL) {
        report_json(advice, out);
        return;
    }
    AUTO(buf_done) Buf report;
    buf_init(&report, ORRERY_JSON_BYTES_MAX);
    report_json(advice, &report);
    Slice rest = slice_from(slice_trim(buf_view(&report)), 1); /* an object, and not an empty one */
    buf_byte(out, '{');
    put_missing(out, &job->items, job->page->container);
    buf_byte(out, ',');
    buf_slice(out, rest);
}

static Status make_advice(AdviceJob *job, Error *err)
{
    OrreryPage *page = job->page;
    const Container *container = page->container;
    TRY(check_client(job, err));
    TRY(read_workload(job, err));
    TRY(count_items(job, err));
    TRY(sample_items(job, err));
    TRY(check_client(job, err));
    TRY(check_sample(job, err));
    TRY(sample_finish(&job->sample, (PropertyPath){0}, err));
    job->time.deadline_us = page->now_us + ADVICE_US_MAX;
    KeyCandidate current = current_key(&container->partition_key);
    IndexPolicy *policy = NULL;
    if (container->schema->index == NULL)
        TRY(index_policy_new(job->arena, JSON_NONE, NULL, 0, &policy, err));
    KeyAdviceOptions options = {
        .partitions = page->advice.partitions,
        .are_partitions_given = page->values[ADVICE_PARTITIONS].len > 0,
        .growth = page->advice.growth,
        .current = current.path_count > 0 ? &current : NULL,
        .policy = policy != NULL ? policy : container->schema->index,
        .model = charge_model_default(),
        .now_s = (double)page->now_s,
        .no_queries = " No queries were recorded yet: with them the advice also counts which "
                      "partitions they visit.",
        .stop = {.is_due = is_due, .ctx = &job->time},
    };
    Advice advice;
    key_advice_make(&job->sample, job->work.count > 0 ? &job->work : NULL, &options, job->arena,
                    &advice);
    TRY(check_client(job, err));
    put_advice(job, &advice);
    return STATUS_OK;
}

static Status run_advice(OrreryPage *page)
{
    Api *api = page->request->api;
    if (atomic_exchange(&api->is_advising, true)) {
        Status status = error_set(&page->error, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                                  "Another advice is being made; there is one at a time.");
        page->error.retry_after_ms = RETRY_MS;
        return status;
    }
    AUTO(advice_job_done)
    AdviceJob job = {
        .page = page,
        .arena = page->request->arena,
    };
    yielding_clock_init(&job.clock, api->options.clock, &page->request->http->is_abandoned);
    job.time.clock = &job.clock.clock;
    sample_init(&job.sample, (SampleLimits){page->advice.sample, SERVER_SAMPLE_BYTES});
    return make_advice(&job, &page->error);
}

static Status parse_growth(OrreryPage *page, Error *err)
{
    Slice text = page->values[ADVICE_GROWTH];
    double value = 0;
    page->advice.growth = 0;
    if (text.len == 0)
        return STATUS_OK;
    if (!json_number_from_text(text, &value) || !(value > 0) ||
        value > KEY_ADVICE_ITEMS_PER_DAY_MAX)
        return orrery_refuse(page, ADVICE_GROWTH, "a number of items a day above 0", err);
    page->advice.growth = value;
    return STATUS_OK;
}

static Status parse_advice(OrreryPage *page, Error *err)
{
    uint64_t sample = 0;
    uint64_t partitions = 0;
    TRY(orrery_number(page, ADVICE_SAMPLE, SAMPLE_ITEMS_MIN, SAMPLE_MAX, SAMPLE_DEFAULT, &sample,
                      err));
    TRY(orrery_number(page, ADVICE_PARTITIONS, 1, LAYOUT_PARTITIONS_MAX,
                      KEY_ADVICE_PARTITIONS_DEFAULT, &partitions, err));
    TRY(parse_growth(page, err));
    page->advice.sample = (uint32_t)sample;
    page->advice.partitions = (uint32_t)partitions;
    page->is_long = true;
    return STATUS_OK;
}

const OrreryKind ORRERY_ADVICE = {
    .name = SLICE_INIT("advice"),
    .is_of_container = true,
    .parameters = {[ADVICE_SAMPLE] = "sample",
                   [ADVICE_PARTITIONS] = "partitions",
                   [ADVICE_GROWTH] = "growth"},
    .parse = parse_advice,
    .run = run_advice,
    .run_part = run_part,
};
