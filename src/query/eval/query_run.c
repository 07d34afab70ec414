/* query_run.c - see query_run_int.h. */
#include "query/eval/query_run_int.h"

#include "base/cond.h"
#include "base/workers.h"
#include "query/eval/geo_int.h"
#include "query/eval/regex_int.h"
#include "query/sql/sql_error_int.h"

enum { STEPS_PER_CLOCK = 10000 }; /* 0.2 to 1 ms */

/* Less than the time after which a page must be answered. */
enum { MEMORY_WAIT_MS = 20000 };

void run_init(Run *run, QueryOptions options, Arena *keep, Error *err)
{
    *run = (Run){.keep = keep, .options = options, .err = err};
    if (run->options.steps_max == 0)
        run->options.steps_max = QUERY_STEPS_DEFAULT;
    if (run->options.bytes_max == 0)
        run->options.bytes_max = QUERY_BYTES_DEFAULT;
    run->steps_reserved = run->options.steps_max;
    run->keep_before = arena_used(keep);
    run->granted = options.memory == NULL ? SIZE_MAX : RUN_BYTES_FREE;
    arena_init(&run->sources, ARENA_SMALL_BYTES);
    arena_init(&run->rows, ARENA_SMALL_BYTES);
    run->scratch = &run->sources;
}

static void give_memory(QueryMemory *memory)
{
    (void)pthread_mutex_lock(&memory->lock);
    memory->left++;
    (void)pthread_cond_signal(&memory->freed);
    (void)pthread_mutex_unlock(&memory->lock);
}

void run_done(Run *run)
{
    if (run->options.memory != NULL && run->granted == SIZE_MAX)
        give_memory(run->options.memory);
    arena_done(&run->sources);
    arena_done(&run->rows);
    if (run->locale != (locale_t)0)
        freelocale(run->locale);
    regexes_free(run->regexes);
    shapes_free(run->shapes);
}

bool run_look(Run *run)
{
    if (run->options.deadline_us == 0)
        return true;
    const Clock *clock = run->options.clock == NULL ? clock_real() : run->options.clock;
    run->looked_us = clock_monotonic_us(clock);
    return run->looked_us < run->options.deadline_us;
}

Status run_charge_slow(Run *run, uint64_t steps)
{
    uint64_t left = run->steps_left + run->steps_reserved;
    if (left < steps)
        return run_out_of_steps(run);
    if (!run_look(run))
        return sql_error_plain(run->err,
                               "The query takes longer than it may, at a place where it cannot "
                               "be interrupted and continued. Narrow it.");
    left -= steps;
    run->steps_left = left < STEPS_PER_CLOCK ? left : STEPS_PER_CLOCK;
    run->steps_reserved = left - run->steps_left;
    return STATUS_OK;
}

Status run_out_of_steps(Run *run)
{
    run->steps_left = 0;
    run->steps_reserved = 0;
    return sql_error_plain(run->err, "The query needs more than %llu steps, which is its limit.",
                           (unsigned long long)run->options.steps_max);
}

/* Waits until the run may hold much. Runs that may need nothing of others but their turns, so
 * each comes to its end. */
static Status take_memory(Run *run)
{
    QueryMemory *memory = run->options.memory;
    (void)pthread_mutex_lock(&memory->lock);
    bool waits = memory->left == 0;
    uint64_t begun_us = cond_now_us();
    uint64_t until_us = cond_after_ms(MEMORY_WAIT_MS);
    if (waits)
        worker_begin_wait();
    while (memory->left == 0 && cond_wait_until(&memory->freed, &memory->lock, until_us))
        continue;
    bool is_taken = memory->left > 0;
    memory->left -= is_taken ? 1 : 0;
    (void)pthread_mutex_unlock(&memory->lock);
    if (waits) {
        worker_tell_wait(cond_now_us() - begun_us);
        worker_end_wait();
    }
    if (!is_taken)
        return error_set(run->err, STATUS_UNAVAILABLE, SUB_NONE,
                         "The queries that run now hold all the memory that there is for queries; "
                         "try again later.");
    run->granted = SIZE_MAX;
    return STATUS_OK;
}

void query_memory_init(QueryMemory *memory, uint32_t runs)
{
    int failed = pthread_mutex_init(&memory->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&memory->freed, NULL);
    ASSERT(failed == 0);
    memory->left = runs;
}

void query_memory_done(QueryMemory *memory)
{
    (void)pthread_cond_destroy(&memory->freed);
    (void)pthread_mutex_destroy(&memory->lock);
}

Status run_reserve(Run *run, size_t bytes)
{
    size_t used = arena_used(run->keep) - run->keep_before + run->held + arena_used(&run->sources) +
                  arena_used(&run->rows);
    if (used <= run->options.bytes_max && bytes <= run->options.bytes_max - used)
        return LIKELY(used + bytes <= run->granted) ? STATUS_OK : take_memory(run);
    return sql_error_plain(run->err, "The query needs more than %zu bytes, which is its limit.",
                           run->options.bytes_max);
}

Status run_alloc(Run *run, size_t bytes, void **out)
{
    TRY(run_charge_bytes(run, bytes));
    TRY(run_reserve(run, bytes));
    *out = arena_alloc(run->scratch, bytes == 0 ? 1 : bytes); /* never NULL */
    return STATUS_OK;
}

Status run_built(Run *run, JsonBuilder *b, Value *out)
{
    TRY(run_reserve(run, 0));
    Json json = json_built(b);
    if (json.at == NULL)
        return sql_error_plain(run->err,
                               "The query makes a value of more than %d levels or %zu bytes.",
                               JSON_BUILD_DEPTH_MAX, JSON_BUILD_BYTES_MAX);
    *out = value_of(json, false);
    return STATUS_OK;
}

Status run_array(Run *run, const Value *values, size_t count, Value *out)
{
    JsonBuilder b;
    json_build(&b, run->scratch);
    json_begin_array(&b);
    for (size_t i = 0; i < count; i++) {
        (void)value_add(&b, NULL, &values[i]); /* undefined has no place in an array */
        TRY(run_reserve(run, 0));
    }
    json_end(&b);
    TRY(run_charge_bytes(run, b.len));
    return run_built(run, &b, out);
}

int64_t run_ticks(const Run *run)
{
    const Clock *clock = run->options.clock == NULL ? clock_real() : run->options.clock;
    return (int64_t)clock_wall_us(clock) * 10;
}

int64_t run_static_ticks(Run *run)
{
    if (!run->has_static_ticks)
        run->static_ticks =
            run->options.static_us == 0 ? run_ticks(run) : (int64_t)run->options.static_us * 10;
    run->has_static_ticks = true;
    return run->static_ticks;
}

locale_t run_locale(Run *run)
{
    /* Without it only ASCII has case, which is better than no answer. */
    if (run->locale == (locale_t)0)
        run->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return run->locale;
}

Random *run_random(Run *run)
{
    if (run->options.random != NULL)
        return run->options.random;
    if (!run->has_own_random)
        random_init_secret(&run->own_random);
    run->has_own_random = true;
    return &run->own_random;
}
