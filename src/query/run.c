/* run.c - see run_int.h. */
#include "query/run_int.h"

#include "query/geo_int.h"
#include "query/regex_int.h"
#include "query/sql_error_int.h"

enum { STEPS_PER_CLOCK = 10000 }; /* 0.2 to 1 ms */

#define MEMORY_PIECE ((size_t)1 << 20)

void run_init(Run *run, QueryOptions options, Arena *keep, Error *err)
{
    *run = (Run){.keep = keep, .options = options, .err = err};
    if (run->options.steps_max == 0)
        run->options.steps_max = QUERY_STEPS_DEFAULT;
    if (run->options.bytes_max == 0)
        run->options.bytes_max = QUERY_BYTES_DEFAULT;
    run->steps_behind = run->options.steps_max;
    run->keep_before = arena_used(keep);
    run->granted = options.memory == NULL ? SIZE_MAX : RUN_BYTES_FREE;
    arena_init(&run->sources, ARENA_SMALL_BYTES);
    arena_init(&run->rows, ARENA_SMALL_BYTES);
    run->scratch = &run->sources;
}

void run_done(Run *run)
{
    if (run->options.memory != NULL)
        atomic_fetch_add_explicit(&run->options.memory->bytes_left,
                                  (int64_t)(run->granted - RUN_BYTES_FREE), memory_order_relaxed);
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
    uint64_t left = run->steps_left + run->steps_behind;
    if (left < steps)
        return run_out_of_steps(run);
    if (!run_look(run))
        return sql_error_plain(run->err,
                               "The query takes longer than it may, at a place where it cannot "
                               "be interrupted and continued. Narrow it.");
    left -= steps;
    run->steps_left = left < STEPS_PER_CLOCK ? left : STEPS_PER_CLOCK;
    run->steps_behind = left - run->steps_left;
    return STATUS_OK;
}

Status run_out_of_steps(Run *run)
{
    run->steps_left = 0;
    run->steps_behind = 0;
    return sql_error_plain(run->err, "The query needs more than %llu steps, which is its limit.",
                           (unsigned long long)run->options.steps_max);
}

/* Takes what is missing out of the memory that all runs share, in pieces. */
static Status take_memory(Run *run, size_t bytes)
{
    _Atomic int64_t *left = &run->options.memory->bytes_left;
    size_t missing = bytes - run->granted;
    int64_t taken = (int64_t)((missing + MEMORY_PIECE - 1) / MEMORY_PIECE * MEMORY_PIECE);
    if (atomic_fetch_sub_explicit(left, taken, memory_order_relaxed) < taken) {
        atomic_fetch_add_explicit(left, taken, memory_order_relaxed);
        return error_set(run->err, STATUS_UNAVAILABLE, SUB_NONE,
                         "The queries that run now hold all the memory that there is for queries; "
                         "try again later.");
    }
    run->granted += (size_t)taken;
    return STATUS_OK;
}

Status run_reserve(Run *run, size_t bytes)
{
    size_t used = arena_used(run->keep) - run->keep_before + run->held + arena_used(&run->sources) +
                  arena_used(&run->rows);
    if (used <= run->options.bytes_max && bytes <= run->options.bytes_max - used)
        return LIKELY(used + bytes <= run->granted) ? STATUS_OK : take_memory(run, used + bytes);
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
