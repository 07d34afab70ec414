/* page.h - one page of a query: planned over the index, run over what it finds, and resumable.
 *
 * The query runs over one or several partitions as if they were one container. Documents are
 * found by the index where it helps (plan_int.h) and run through the clauses (select.c). A page
 * ends by count, by bytes or by time; its position is then enough to go on from there, with the
 * same query, on whatever partitions serve the same range of keys by then. Documents that were not
 * changed in between are neither lost nor repeated.
 *
 * Queries that must see every document before the first result (GROUP BY, aggregates, an ORDER BY
 * that no index serves) run whole for each page, and fail if their time is over before they have
 * seen all; those with DISTINCT see again what the pages before have seen. They, too, go on when
 * partitions were split or merged meanwhile.
 *
 * Functions of users are called for some tens of documents at a time, those that the page reads
 * next (call_batch_int.h). If one fails that the page needs, the page fails with its error. A page
 * that is brief never calls any, nor does it ask another node.
 *
 * Ownership  Everything that comes out lives in the arena given. Targets are borrowed.
 * Threads    A worker's; it may take as long as 'deadline_us' allows, and a second more for what
 *            cannot be left half-way. With 'is_brief' and views of what is in memory also a loop's.
 *
 * Bounds     Time, steps, memory, and keys of the index: see QueryPageOptions. A position comes
 * back from clients: whatever it holds is an error at worst.
 */
#pragma once

#include "base/workers.h"
#include "partition/view.h"
#include "query/eval/query_options.h"
#include "query/sql/sql.h"

/* Half of a page's time, at most; what needs more of the index is found in another way. */
#define QUERY_INDEX_KEYS_MAX ((uint64_t)20000000)

/* Of a position, whatever values and ids it has to tell: with a signature it fits into the kilobyte
 * of text to which clients limit continuation tokens. */
#define QUERY_POSITION_BYTES_MAX 752

typedef struct QueryRemote QueryRemote;

typedef struct QueryTarget {
    PartitionView *view;       /* NULL if another node serves it, */
    const QueryRemote *remote; /* which is asked by this: see remote_batch.h; otherwise NULL */
    Slice epk_from;            /* the range of EPKs that the query may see */
    Slice epk_to;
    bool is_whole;     /* the query may see all of the partition */
    uint32_t range;    /* for the caller: which range of the container it is */
    uint32_t range_id; /* of that range, for explanations */
} QueryTarget;

typedef struct QueryPageOptions {
    const QueryTarget *targets; /* in order of their EPKs */
    size_t target_count;
    size_t partition_count; /* of the container, to compare with; 0 if not known */
    PartitionSchema *schema;
    const PartitionKey *key; /* the request's, also as values; NULL if none */
    Slice position;          /* of the page before; empty to begin at the start */
    Json resume_filter;      /* of the request: where in its ORDER BY the query begins, also if the
                                position is before that; undefined: at the start */
    uint32_t items_max;
    size_t bytes_max;         /* of the text */
    uint64_t deadline_us;     /* of the monotonic clock; 0 if none */
    uint64_t steps_max;       /* 0 for QUERY_STEPS_DEFAULT */
    size_t memory_max;        /* 0 for QUERY_BYTES_DEFAULT */
    QueryMemory *memory;      /* that it shares with others, see QueryOptions; may be NULL */
    uint64_t index_keys_max;  /* read before the first document; 0 for QUERY_INDEX_KEYS_MAX */
    const Clock *clock;       /* any thread may look, and may have to wait for its turn then */
    const Clock *pause_clock; /* for pages that the next can continue anywhere; NULL for 'clock' */
    const Clock *meter_clock; /* measures how long documents load and results print, without
                                 waiting; NULL if that is not measured */
    Random *random;           /* may be NULL */
    Random *plan_random; /* for tests: any plan that is right instead of the cheapest; else NULL */
    QueryGeo geo;
    const QueryFunctions *functions; /* that udf.name(...) calls; NULL if there are none */
    void *functions_context;
    bool wants_explain;
    Workers *workers;   /* threads that may help; NULL if none */
    size_t slice_items; /* for tests: about how many items of a scan are one slice; 0 for the
                           usual number */
    bool wants_indexes; /* the page tells which indexes it used, and which would have helped */

    /* For a page that must be finished soon: the call fails, with STATUS_TIMEOUT unless another
     * error comes first, where it would pass the deadline, end the page early, or read many
     * documents. */
    bool is_brief;
} QueryPageOptions;

/* What was done with one target, for charges. Results that come out of several targets together,
 * as groups and sorted rows do, count for the first one that was visited. */
typedef struct QueryTargetWork {
    bool is_visited;
    uint64_t documents_read;
    uint64_t document_bytes_read;
    uint64_t index_keys_read;
    uint64_t results;
    uint64_t result_bytes;
    uint64_t user_calls; /* of users' functions, whose values were used */
} QueryTargetWork;

/* What was done with all targets together. */
typedef struct QueryMetrics {
    uint64_t documents_read;
    uint64_t document_bytes_read;
    uint64_t index_keys_read;
    uint64_t results;
    uint64_t result_bytes;
    uint64_t user_calls;
    uint64_t user_us; /* that these took */
    uint64_t index_us;
    uint64_t load_us;  /* of documents; this and the next from samples, see 'meter_clock' */
    uint64_t write_us; /* of results */
    uint64_t total_us;
    uint32_t partitions; /* that were looked at */
} QueryMetrics;

/* A composite index, part by part: "/a ASC". */
typedef struct QueryComposite {
    const Slice *parts;
    size_t part_count;
} QueryComposite;

typedef struct QueryPage {
    size_t count;
    bool is_done;
    Slice position;   /* where the next page goes on, unless it is done */
    bool is_ordered;  /* by ORDER BY; rows with equal keys come by the numbers of their items */
    bool is_reversed; /* rows with equal keys come by descending numbers */
    QueryMetrics metrics;
    const QueryTargetWork *work; /* of each target; together they are the metrics */
    Json explain;                /* if it was wanted: what was planned and what was touched */

    /* If it was wanted: indexes that were used, and those that would have helped; each once. */
    const Slice *used_paths; /* "/a/b/?" */
    size_t used_path_count;
    const Slice *potential_paths;
    size_t potential_path_count;
    const QueryComposite *used_composites;
    size_t used_composite_count;
    const QueryComposite *potential_composites;
    size_t potential_composite_count;
} QueryPage;

/* Appends the results to 'text', separated by commas. */
MUST_USE Status query_page(const Query *query, const QueryPageOptions *options, Arena *arena,
                           Buf *text, QueryPage *out, Error *err);

/* How many documents a page loads, by the planner's rule, if an index serves its ORDER BY and none
 * serves its filter in that order: 'found' of 'all' documents match, and 'rows' of them are wanted.
 */
double query_ordered_loads(double rows, double all, double found);

/* What of a query a position depends on, as text: the order of its rows. A client may go on with
 * another filter. Only where the order follows from more than ORDER BY, as that of groups does, it
 * is the whole query with its parameters. Any bytes may be asked about. */
Slice query_position_scope(const Query *query, Json parameters, Slice position, Arena *arena);
