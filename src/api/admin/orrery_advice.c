/* orrery_advice.c - the advice of `orrery advise` for a container, made where its items are.
 *
 * The layer advise does the work, with a sample of the items and the queries that were recorded. It
 * takes a moment of one processor, so there is one at a time, its time is limited, and it stops
 * when the client has gone. Nothing is charged.
 */
#include "advise/report.h"
#include "api/admin/advice_sample_int.h"
#include "api/admin/orrery_int.h"
#include "api/admin/yielding_clock_int.h"

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

typedef struct AdviceJob {
    OrreryPage *page;
    YieldingClock clock;
    AdviceTime time;
    Arena *arena;
    Sample sample;
    Workload work;
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
    const OrreryPage *page = job->page;
    const ApiOptions *options = &page->request->api->options;
    if (options->histories == NULL || options->no_query_texts)
        return STATUS_OK;
    const PartitionKeyDefinition *key = &page->container->partition_key;
    AUTO(buf_done) Buf text;
    buf_init(&text, QUERIES_BYTES_MAX);
    orrery_queries_print(page, QUERY_EXECUTIONS, QUERIES_MAX, &text);
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

static Status make_advice(AdviceJob *job, Error *err)
{
    OrreryPage *page = job->page;
    const Container *container = page->container;
    TRY(check_client(job, err));
    TRY(read_workload(job, err));
    job->time.deadline_us = page->now_us + READ_US_MAX;
    TRY(advice_sample_read(container, &job->time, &job->sample, err));
    TRY(check_client(job, err));
    if (job->sample.count == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The container has no items to learn from.");
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
    report_json(&advice, &page->text);
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
};
