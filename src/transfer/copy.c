/* copy.c - see copy.h: the phases of a copy. */
#include "transfer/copy.h"

#include "base/clock.h"
#include "base/encoding.h"
#include "transfer/copy_int.h"

#include <stdio.h>
#include <time.h>

enum {
    ALMOST_LEVEL = 200, /* changes of a round: the rest is read while writes wait */
    SWAPS_MAX = 10,
    COMPARES_MAX = 5,
    RESUME_WAIT_MS = 1000,
    FOLLOW_WAIT_MS = 20,
};

/* ---- calls ---- */

void copy_call_init(CopyCall *call, const CopySide *side, RemoteFeed feed, Arena *arena)
{
    *call = (CopyCall){.wave.call = remote_call(&side->remote, feed, arena)};
}

void copy_call_header(CopyCall *call, const char *name, Slice value)
{
    size_t at = call->wave.call.header_count++;
    ASSERT(at < COPY_HEADERS_MAX);
    call->headers[at] = (ClientHeader){.name = name, .value = value};
}

Status copy_calls_run(CopySide *side, CopyCall *calls, size_t count, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    WaveCall *list = ARENA_NEW_ARRAY(&arena, WaveCall, count + 1);
    for (size_t i = 0; i < count; i++) {
        calls[i].wave.call.headers = calls[i].headers; /* it may have been moved */
        list[i] = calls[i].wave;
    }
    Status status = wave_run(&side->wave, list, count, err);
    for (size_t i = 0; i < count; i++)
        calls[i].wave = list[i];
    return status;
}

Status copy_read_map(CopySide *side, Error *err)
{
    Json feed;
    arena_reset(&side->map_arena);
    TRY(remote_read(&side->remote, REMOTE_RANGES, &side->map_arena, &feed, err));
    return container_map_parse(&side->map_arena, feed, &side->map, err);
}

/* ---- the file to resume from ---- */

static Slice job_of(const Copy *copy)
{
    return slice_make(copy->job, sizeof(copy->job));
}

/* Everything that decides what the copy is. */
static void name_job(Copy *copy)
{
    const CopyOptions *o = copy->options;
    AUTO(buf_done) Buf text;
    buf_init(&text, (size_t)4 << 20);
    buf_format(&text, "%s\n%s\n%s\n%s\n%s\n%s\n%d\n", o->database, o->container, o->to_database,
               o->to_container, o->partition_key == NULL ? "" : o->partition_key,
               o->indexing == NULL ? "" : o->indexing, o->swaps);
    checkpoint_job(buf_view(&text), copy->job);
}

Status copy_save(Copy *copy, Error *err)
{
    if (copy->options->resume_path == NULL)
        return STATUS_OK;
    AUTO(buf_done) Buf text;
    buf_init(&text, CHECKPOINT_BYTES_MAX);
    copy_state_print(&copy->state, job_of(copy), &text);
    if (buf_full(&text))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "the file to resume from would be too large");
    return checkpoint_write(copy->options->resume_path, buf_view(&text), err);
}

static Status load(Copy *copy, bool *found, Error *err)
{
    Slice text;
    *found = false;
    if (copy->options->resume_path == NULL)
        return STATUS_OK;
    TRY(checkpoint_read(copy->options->resume_path, &copy->arena, &text, found, err));
    return *found ? copy_state_parse(&copy->state, text, job_of(copy), err) : STATUS_OK;
}

/* ---- phases ---- */

static void rest(uint32_t ms)
{
    (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
                    NULL);
}

static void on_tick(void *ctx)
{
    Copy *copy = ctx;
    ProgressNow now = {
        .items = copy->state.copied,
        .done = copy->state.copied < copy->total ? copy->state.copied : copy->total,
        .total = copy->total,
        .ru = copy->cost.ru,
        .throttled = copy->cost.throttled,
        .rejected = copy->state.reject_count,
    };
    progress_show(&copy->progress, &now, clock_monotonic_us(clock_real()));
}

/* Reads until nothing is left, or almost nothing if the rest is read while writes wait. */
static Status follow(Copy *copy, Error *err)
{
    for (;;) {
        size_t count = 0;
        TRY(copy_round(copy, &count, err));
        bool is_almost = count < ALMOST_LEVEL && !copy->needs_map;
        for (size_t i = 0; i < copy->state.lane_count && is_almost; i++)
            is_almost = copy->state.lanes[i].follows;
        if (copy_is_level(copy) || (copy->options->swaps && is_almost))
            return STATUS_OK;
        if (count == 0)
            rest(FOLLOW_WAIT_MS);
    }
}

static bool is_same(const ItemDigest *a, const ItemDigest *b)
{
    return a->count == b->count && memcmp(&a->sum, &b->sum, sizeof(a->sum)) == 0;
}

/* Until both sides are the same; a source that is written to all the time never is. */
static Status compare(Copy *copy, Error *err)
{
    CopySummary *s = &copy->summary;
    for (int i = 0; i < COMPARES_MAX; i++) {
        if (i > 0)
            TRY(follow(copy, err));
        if (!copy->state.has_versions)
            TRY(copy_remove_others(copy, err));
        TRY(copy_retry_rejects(copy, err));
        TRY(copy_digest(copy, &copy->source, &s->source, err));
        TRY(copy_digest(copy, &copy->target, &s->copy, err));
        s->has_digests = true;
        if (is_same(&s->source, &s->copy) || copy->state.reject_count > 0)
            break;
    }
    return STATUS_OK;
}

static Status swap(Copy *copy, Error *err)
{
    bool is_late = true;
    for (int i = 0; i < SWAPS_MAX && is_late; i++) {
        TRY(follow(copy, err));
        TRY(copy_swap(copy, &is_late, err));
    }
    if (is_late)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE,
                         "the last changes could not be copied within %u ms, %d times; give more "
                         "time with --hold, or try at another hour",
                         copy->options->hold_ms, SWAPS_MAX);
    return STATUS_OK;
}

static Status finish_swap(Copy *copy, Error *err)
{
    (void)snprintf(copy->summary.old_name, sizeof(copy->summary.old_name), "%.*s",
                   SLICE_CUT(copy->state.old_name, 299));
    copy->summary.is_swapped = true;
    if (copy->options->drops_old)
        TRY(copy_drop_old(copy, err));
    return STATUS_OK;
}

static Status run_phases(Copy *copy, Error *err)
{
    bool is_resumed = false;
    bool is_known = false;
    name_job(copy);
    TRY(load(copy, &is_resumed, err));
    copy->has_state = true;
    copy->summary.is_resumed = is_resumed;
    bool was_clean = copy->state.is_clean;
    copy->state.is_clean = false;
    if (!copy->state.is_swapped)
        TRY(copy_set_up(copy, is_resumed, err));
    if (copy->state.is_swapped) {
        copy->summary.was_swapped = true;
        TRY(copy_save(copy, err));
        return finish_swap(copy, err);
    }
    if (copy->options->swaps && !copy->state.has_versions)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--swap needs a source that keeps all versions (changeFeedPolicy), so "
                         "that no delete is missed; leave --no-retention out");
    /* What a process that was killed has sent last may still be on its way through the server. */
    if (is_resumed && !was_clean)
        rest(RESUME_WAIT_MS);
    TRY(copy_count(&copy->source, &copy->total, &is_known, err));
    TRY(copy_open_lanes(copy, err));
    TRY(copy_save(copy, err));
    if (copy->options->swaps) {
        TRY(swap(copy, err));
        return finish_swap(copy, err);
    }
    TRY(follow(copy, err));
    TRY(compare(copy, err));
    /* With rejects it will be run again, and must not miss a delete until then. */
    if (copy->state.reject_count == 0)
        TRY(copy_restore_retention(copy, err));
    return copy_save(copy, err);
}

/* ---- rejects ---- */

static Status write_rejects(const Copy *copy, Error *err)
{
    const CopyOptions *o = copy->options;
    if (o->rejects_path == NULL || copy->state.reject_count == 0)
        return STATUS_OK;
    AUTO(buf_done) Buf text;
    buf_init(&text, CHECKPOINT_BYTES_MAX);
    for (size_t i = 0; i < copy->state.reject_count; i++) {
        const CopyReject *reject = &copy->state.rejects[i];
        buf_slice(&text, SLICE("{\"id\":"));
        json_print_string(reject->id, &text);
        buf_slice(&text, SLICE(",\"partitionKey\":"));
        buf_slice(&text, reject->key);
        buf_slice(&text, SLICE(",\"reason\":"));
        json_print_string(reject->reason, &text);
        buf_slice(&text, SLICE("}\n"));
    }
    return checkpoint_write(o->rejects_path, buf_view(&text), err);
}

/* ---- the whole ---- */

static void side_init(Copy *copy, CopySide *side, Client *client, const char *database,
                      const char *container)
{
    const CopyOptions *o = copy->options;
    remote_init(&side->remote, &copy->arena, client, o->stop_fd, database, container);
    wave_init(&side->wave, client, o->stop_fd, o->concurrency, &copy->cost);
    side->wave.tick = on_tick;
    side->wave.ctx = copy;
    arena_init(&side->map_arena, 16 << 10);
}

static void copy_done(Copy *copy)
{
    copy_state_done(&copy->state);
    arena_done(&copy->source.map_arena);
    arena_done(&copy->target.map_arena);
    arena_done(&copy->arena);
}
DEFINE_AUTO_VALUE(Copy, copy_done)

Status copy_run(const CopyOptions *options, CopySummary *out, Error *err)
{
    ASSERT(options->concurrency > 0);
    AUTO(copy_done) Copy copy = {.options = options};
    uint64_t begun_us = clock_monotonic_us(clock_real());
    arena_init(&copy.arena, 64 << 10);
    copy_state_init(&copy.state);
    ru_limit_init(&copy.cost.limit, options->ru_per_s_max, begun_us);
    side_init(&copy, &copy.source, options->from, options->database, options->container);
    side_init(&copy, &copy.target, options->to, options->to_database, options->to_container);
    progress_init(&copy.progress, options->is_quiet, begun_us);
    Status status = run_phases(&copy, err);
    Error late;
    bool is_stopped = copy.source.wave.is_stopped || copy.target.wave.is_stopped;
    copy.state.is_clean = status == STATUS_OK || is_stopped;
    if (copy.has_state && copy.state.source.len > 0 && copy_save(&copy, &late) != STATUS_OK &&
        status == STATUS_OK) {
        *err = late; /* what was done is kept; the first error is told */
        status = late.status;
    }
    if (write_rejects(&copy, &late) != STATUS_OK && status == STATUS_OK) {
        *err = late;
        status = late.status;
    }
    progress_clear(&copy.progress);
    CopySummary *s = &copy.summary;
    s->copied = copy.state.copied;
    s->rejected = copy.state.reject_count;
    s->requests = copy.cost.requests;
    s->throttled = copy.cost.throttled;
    s->ru = copy.cost.ru;
    s->has_versions = copy.state.has_versions;
    s->is_interrupted = is_stopped;
    s->seconds = (double)(clock_monotonic_us(clock_real()) - begun_us) / 1e6;
    *out = *s;
    return status;
}
