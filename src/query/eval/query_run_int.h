/* query_run_int.h - one run of a query: its memory, its budget and the values of its slots.
 *
 * Arenas. Results, groups and sorted rows live in 'keep', the caller's arena. Everything else goes
 * to 'scratch', which points to one of two arenas: 'sources' while the FROM of the outermost query
 * is walked, reset per document, and 'rows' while one of its rows is worked on, reset per row. So
 * memory does not grow with the number of documents or rows that are only looked at.
 *
 * Budget. Every loop over data charges the run, and memory whose size depends on data is reserved
 * (I3).
 */
#pragma once

#include "base/arena.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "query/eval/query_options.h"
#include "query/eval/user_calls_int.h"
#include "query/sql/value_int.h"
#include "json/json.h"

#include <locale.h>

typedef struct Regexes Regexes;
typedef struct Shapes Shapes;
typedef struct Execution Execution;
typedef struct Run Run;

/* A place among rows that are ordered by ORDER BY. */
typedef struct ResumePoint {
    const Value *values; /* one for each item of ORDER BY */
    bool is_after;       /* the place is after all rows that have these values, not before them */
    uint64_t number;     /* if not 0, the place is at the document with this number among them */
} ResumePoint;

/* A document that a feed has put into its slot. */
typedef struct FeedDocument {
    uint64_t number;       /* of its item; 0 if it has none */
    uint64_t rows_to_skip; /* its first rows, which an earlier page has returned */
} FeedDocument;

/* Documents that come one by one, for a page of results. Written by the page only; what a run does
 * with it is in FeedProgress. */
typedef struct Feed {
    void *context; /* of the functions */

    /* Puts the next document into its slot, where it lives until the next call. */
    Status (*next)(void *context, Run *run, FeedDocument *out, bool *found);

    /* Called before the first document, and again after 'again': may give groups that were counted
     * without looking at any, by execution_add_group. NULL if there are none. */
    Status (*groups)(void *context, Execution *execution);

    bool is_ordered; /* documents come in the order of ORDER BY */
    uint64_t skip;   /* rows of OFFSET, and those of TOP or LIMIT, that are left for this page */
    uint64_t take;

    /* Where the rows begin that are sorted here; NULL if at the first. Rows before it count as
     * returned. */
    const ResumePoint *resume;

    /* Rows that are gathered have places, if the page may end among them: gathered_rows_int.h. Up
     * to 'rows_max' may fit; if they do not, 'again' takes back those that were handed on, and they
     * come in the order of their places. */
    bool has_places;
    bool is_resumed;     /* the page begins at 'place', not with the first row */
    Slice place;         /* of the row that the page begins with */
    uint64_t place_rows; /* rows before that row with the same place */
    uint64_t rows_max;
    void (*again)(void *context);
} Feed;

/* How far a run has come with its feed. Written by select.c only; the page reads it. */
typedef struct FeedProgress {
    FeedDocument document;  /* the one at hand */
    uint64_t document_rows; /* of it that were returned, by this page or an earlier one */
    uint64_t skip_left;     /* of OFFSET, and of TOP or LIMIT, after the run */
    uint64_t take_left;
    uint64_t rows_before; /* that Feed.resume has passed over */
    bool is_full;         /* the sink refused a row: the page ends before it */
    Slice place;          /* of the refused row, if rows have places */
    uint64_t place_rows;  /* rows before the refused row with the same place */
} FeedProgress;

struct Run {
    const Feed *feed; /* NULL if the documents are 'documents' */
    FeedProgress progress;
    const Json *documents;
    size_t document_count;
    Value *slots;

    Arena *keep;
    Arena *scratch;
    Arena sources;
    Arena rows;
    size_t keep_before; /* bytes of 'keep' that are not ours */
    size_t held;        /* bytes of other arenas that are kept for this run */
    size_t granted;     /* bytes that it may hold without asking the memory that it shares; SIZE_MAX
                           for no limit */

    QueryOptions options;
    uint64_t steps_left;     /* until the clock is next read */
    uint64_t steps_reserved; /* after that; both together are what is left */
    uint64_t looked_us;      /* what the clock said when it was last read, if there is a deadline */
    Random own_random;       /* used when the caller gave none */
    bool has_own_random;
    locale_t locale;      /* for case; opened when it is first needed */
    int64_t static_ticks; /* what GetCurrent...Static() says, once it has been asked */
    bool has_static_ticks;
    Regexes *regexes; /* compiled patterns, NULL until one is needed */
    Shapes *shapes;   /* what was read from GeoJSON, NULL until some is needed */
    UserCalls calls;
    Error *err;
};

/* A run that holds more than this is one of those that hold much: short queries never are. */
#define RUN_BYTES_FREE ((size_t)4 << 20)

void run_init(Run *run, QueryOptions options, Arena *keep, Error *err);
void run_done(Run *run);
DEFINE_AUTO_VALUE(Run, run_done)

MUST_USE Status run_out_of_steps(Run *run);

/* For run_charge only: takes what it needs from the reserved steps, if there is time. */
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
    uint64_t left = run->steps_left + run->steps_reserved;
    return run->options.deadline_us == 0 || left < RUN_STEPS_AT_ONCE ? left : RUN_STEPS_AT_ONCE;
}

/* Charges for moving or comparing bytes, which the C library does in blocks. */
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

/* ARRAY_GROW_IN within the budget: the Status of reserving what it needs. */
#define RUN_GROW(run, arena, items, count, capacity, first)                                      \
    __extension__({                                                                              \
        Status reserved_ = STATUS_OK;                                                            \
        if ((count) == (capacity))                                                               \
            reserved_ = run_reserve((run), (size_t)ARRAY_CAPACITY_NEXT(items, capacity, first) * \
                                               sizeof(*(items)));                                \
        if (reserved_ == STATUS_OK)                                                              \
            ARRAY_GROW_IN(arena, items, count, capacity, first);                                 \
        reserved_;                                                                               \
    })

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
