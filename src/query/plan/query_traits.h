/* query_traits.h - what can be said of a query before it runs.
 *
 * Ownership  What comes out lives in the arena given. Threads: those of the Query, which is
 *            immutable.
 */
#pragma once

#include "query/sql/sql.h"
#include "json/property_path.h"

/* True if every document gives its results by itself: nothing is sorted, grouped, made distinct or
 * cut off. Run on one document after the other, such a query gives what it gives on all of them. */
bool query_is_streaming(const Query *query);

/* Whether it calls functions of users, so that a run of it may have to wait for them. */
bool query_calls_functions(const Query *query);

/* How many of the paths, from the first on, its filter compares with a constant, as in c.a = 1 AND
 * c.b.c = @p, so that it finds documents with these 'values' only, which live in the arena. */
size_t query_fixed(const Query *query, Arena *arena, const PropertyPath *paths, size_t count,
                   Json *values);

/* Fails as the service's planner does, which sees queries that name neither a key nor a range: an
 * aggregate must then be an item of the projection by itself, so that clients can add up what the
 * partitions say, and over a subquery with DISTINCT it must be a plain COUNT; OFFSET and LIMIT are
 * at most QUERY_LIMIT_MAX. Within a key or a range none of this matters. */
MUST_USE Status query_check_cross_partition(const Query *query, Error *err);
