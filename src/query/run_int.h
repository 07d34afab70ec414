/* run_int.h - one run of a query: its memory, its budget and the values of its slots.
 *
 * Arenas. Results, groups and sorted rows live in 'keep', the caller's arena. Everything else goes
 * to 'scratch', which points to one of two arenas: 'sources' while the FROM of the outermost query
 * is walked, reset per document, and 'rows' while one of its rows is worked on, reset per row. So
 * memory does not grow with the number of documents or rows that are only looked at.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "query/query.h"
#include "query/value_int.h"
#include "json/json.h"

#include <locale.h>

typedef struct Regexes Regexes;
typedef struct Shapes Shapes;
typedef struct Execution Execution;
typedef struct Run Run;

/* A place among rows that are ordered by ORDER BY. */
typedef struct ResumePoint {
    const Value *values; /* one for each item of ORDER BY */
    bool is_behind;      /* all rows that have these values; otherwise in front of them, or, */
    uint64_t number;     /* if it is not 0, of the document with that number among them */
} ResumePoint;

/* Documents that come one by one, for a page of results: page.c. */
typedef struct Feed {
    /* Puts the next document into its slot, where it lives until the next call. */
    Status (*next)(struct Feed *feed, Run *run, bool *found);

    /* Asked before the first document, and again behind 'again': may give groups that were counted
     * without looking at any, by execution_add_group. NULL: there are none. */
    Status (*groups)(struct Feed *feed, Execution *execution);

    bool is_ordered; /* documents come in the order of ORDER BY */
    uint64_t number; /* of the document at hand; 0: of none */

    /* Where the rows begin that are sorted here; NULL: at the first. Those in front of it count
     * as rows that were returned before. */
    const ResumePoint *resume;
    uint64_t rows_before;

    /* Rows that are gathered have places, if the page may end among them: rows_int.h. Up to
     * 'rows_max' may fit; if they do not, 'again' takes back those that were handed on, and they
     * come in the order of their places. */
    bool has_places;
    bool is_resumed;     /* at this place: */
    Slice place;         /* and after the run of the row that was not taken */
    uint64_t place_rows; /* in front of it, with the same place */
    uint64_t rows_max;
    void (*again)(struct Feed *feed);

    uint64_t rows_to_skip;  /* of the first document, in front of the first that is wanted */
    uint64_t document_rows; /* of the document at hand, that went this way */
    uint64_t skip_left;     /* of OFFSET, and of TOP or LIMIT, before and after the run */
    uint64_t take_left;
    bool is_full; /* set by the sink when it did not take the row: the page ends before it */
} Feed;

struct Run {
    Feed *feed; /* NULL: the documents are these: */
    const Json *documents;
    size_t document_count;
    Value *slots;

    Arena *keep;
    Arena *scratch;
    Arena sources;
    Arena rows;
    size_t keep_before; /* bytes of 'keep' that are not ours */
    size_t held;        /* bytes of other arenas that are kept for this run */
    size_t granted; /* bytes that it may hold without asking the memory that it shares; SIZE_MAX:
                       any */

    QueryOptions options;
    uint64_t steps_left;   /* until the next look at the clock, */
    uint64_t steps_behind; /* and those behind it */
    uint64_t looked_us;    /* what the clock said then, if there is a deadline */
    Random own_random;     /* used when the caller gave none */
    bool has_own_random;
    locale_t locale;      /* for case; opened when it is first needed */
    int64_t static_ticks; /* what GetCurrent...Static() says, once it has been asked */
    bool has_static_ticks;
    Regexes *regexes; /* compiled patterns, NULL until one is needed */
    Shapes *shapes;   /* what was read from GeoJSON, NULL until some is needed */
    Error *err;
};

/* A run that holds more than this is one of those that hold much: short queries never are. */
#define RUN_BYTES_FREE ((size_t)4 << 20)

void run_init(Run *run, QueryOptions options, Arena *keep, Error *err);
void run_done(Run *run);
DEFINE_AUTO_VALUE(Run, run_done)

MUST_USE Status run_out_of_steps(Run *run);

/* For run_charge only: takes what it needs from the steps behind, if there is time. */
MUST_USE Status run_charge_slow(Run *run, uint64_t steps);

static inline MUST_USE Status run_charge(Run *run, uint64_t steps)
{
    if (UNLIKELY(run->steps_left < steps))
        return run_charge_slow(run, steps);
    run->steps_left -= steps;
    return STATUS_OK;
}

/* Looks at the clock, so that others can run (base/workers.h): for work that has paid before, or
 * pays afterwards, about once in STEPS_PER_CLOCK. False if the time is over. */
bool run_look(Run *run);

/* What a piece of work may take that does not pay as it goes: some seconds at worst. */
#define RUN_STEPS_AT_ONCE ((uint64_t)20000000)
static inline uint64_t run_steps_at_once(const Run *run)
{
    uint64_t left = run->steps_left + run->steps_behind;
    return run->options.deadline_us == 0 || left < RUN_STEPS_AT_ONCE ? left : RUN_STEPS_AT_ONCE;
}

/* The price of moving or comparing so many bytes, which the C library does in blocks. */
static inline MUST_USE Status run_charge_bytes(Run *run, size_t bytes)
{
    return run_charge(run, 1 + bytes / 64);
}

/* The price of looking at text character by character. */
static inline MUST_USE Status run_charge_chars(Run *run, size_t bytes)
{
    return run_charge(run, 1 + bytes / 8);
}

/* The price of walking a whole value, as comparing or copying it does. */
static inline MUST_USE Status run_charge_value(Run *run, const Value *value)
{
    if (value->type == JSON_STRING)
        return run_charge_bytes(run, value->string.len);
    return run_charge(run, value->type < JSON_ARRAY ? 1 : 1 + json_size(value->json) / 16);
}

/* Fails if 'bytes' more would be too much. With 0 it asks whether the budget still holds. */
MUST_USE Status run_reserve(Run *run, size_t bytes);

/* Bytes in the scratch arena, within the budget. */
MUST_USE Status run_alloc(Run *run, size_t bytes, void **out);

/* What a builder made, or the error if it was too large or too deep. */
MUST_USE Status run_built(Run *run, JsonBuilder *b, Value *out);

/* An array of those that are defined. */
MUST_USE Status run_array(Run *run, const Value *values, size_t count, Value *out);

/* Now, in ticks of 100 ns since 1970: as the clock has it, and as it had it for the first time. */
int64_t run_ticks(const Run *run);
int64_t run_static_ticks(Run *run);

locale_t run_locale(Run *run);
Random *run_random(Run *run);
