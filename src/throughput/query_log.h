/* query_log.h - which queries a container serves, how often, and what they cost, in memory that
 * does not grow with their number.
 *
 * A log keeps the most frequent of any number of texts ("space saving"): a new one replaces the one
 * with the fewest pages, and inherits its number as an upper bound, so that a text that makes up
 * more than one in as many pages as there are entries is always there. A container has at most half
 * of the entries: many different texts of one do not drive out those of the others.
 *
 * Each thread that serves queries has a log of its own: none waits. query_log_read puts them
 * together.
 *
 * Ownership  The caller frees a QueryLog. Rows live in the arena.
 * Threads    One thread adds to a log. Meanwhile any thread reads, without locks.
 * Bounds     QUERY_LOG_BYTES_MAX for the logs of a process, QUERY_LOG_TEXT_MAX for a text.
 */
#pragma once

#include "base/arena.h"
#include "base/hash.h"
#include "base/slice.h"

#define QUERY_LOG_TEXT_MAX    1024
#define QUERY_LOG_ENTRIES_MIN 32
#define QUERY_LOG_ENTRIES_MAX 256

/* All logs of a process together, unless there are so many threads that QUERY_LOG_ENTRIES_MIN each
 * take more. */
#define QUERY_LOG_BYTES_MAX ((size_t)4 << 20)

/* What is counted of each text. */
typedef enum QueryCount {
    QUERY_PAGES,         /* requests that were answered */
    QUERY_EXECUTIONS,    /* queries that were begun */
    QUERY_ONE_PARTITION, /* of these, needed one physical partition only */
    QUERY_VISITS,        /* of physical partitions, by all pages */
    QUERY_CHARGE,        /* hundredths of a request unit */
    QUERY_RESULTS,
    QUERY_DOCUMENTS,  /* that were loaded */
    QUERY_INDEX_KEYS, /* that were read */
    QUERY_COUNTS
} QueryCount;

typedef struct QueryLog QueryLog;

/* What one page adds. */
typedef struct QueryNote {
    uint32_t container; /* number */
    Slice text;         /* without values; empty if it is too long to be kept */
    uint8_t key_parts;  /* how many values of the partition key the request gave beside the text */
    uint64_t counts[QUERY_COUNTS];
} QueryNote;

typedef struct QueryRow {
    Slice text;
    uint8_t key_parts;
    bool is_exact; /* false if pages may have been counted for other texts before it had an entry */
    uint64_t first_s;
    uint64_t last_s;
    uint64_t counts[QUERY_COUNTS];
} QueryRow;

/* How many entries each log has if 'threads' threads have one. */
uint32_t query_log_entries(uint32_t threads);

QueryLog *query_log_new(uint32_t entries, HashKey key); /* it takes memory when it is first used */
void query_log_free(QueryLog *log);                     /* accepts NULL */
DEFINE_AUTO(QueryLog *, query_log_free)

void query_log_add(QueryLog *log, uint64_t now_s, const QueryNote *note);

/* The rows of a container over several logs, the one with the highest 'by' first; returns how many.
 */
size_t query_log_read(const QueryLog *const *logs, size_t count, uint32_t container, QueryCount by,
                      Arena *arena, QueryRow **rows);
