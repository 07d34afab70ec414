/* query.h - the SQL of documents: from text to results.
 *
 * query_parse() reads the text, binds its names and checks every rule that can be checked without
 * data; query_run() then runs it over documents that the caller holds in memory, in the order in
 * which they are given. Feeds of small resources (databases, containers, offers) are answered
 * this way, and it is the reference that faster ways of execution are compared with.
 *
 * What is wrong with a query is STATUS_BAD_REQUEST, with the message that sql/sql.h shows.
 *
 * Ownership  A Query and everything it points to lives in the arena given to query_parse. It
 *            keeps slices of the text and views of the parameters, which must live as long.
 *            Results live in the arena given to query_run, or are views of the documents.
 * Threads    A Query is immutable and may be run by many threads at once. A run belongs to one.
 * Bounds     sql/sql.h and eval/query_options.h. A run that needs more steps or memory than it may
 * use fails with STATUS_BAD_REQUEST and says which of the two.
 */
#pragma once

#include "query/eval/query_options.h"
#include "query/sql/sql.h"

/* 'parameters' is the request's array, or undefined. */
MUST_USE Status query_parse(Arena *arena, Slice text, Json parameters, Query **out, Error *err);

/* The same over items of a container that defines computed properties: 'computed' is its array of
 * {"name", "query"}, which must live as long as the Query, or undefined. Wherever the query names
 * one of them it means its expression, whatever an item holds under that name; only whole items,
 * as in SELECT *, are as they are stored. */
MUST_USE Status query_parse_with(Arena *arena, Slice text, Json parameters, Json computed,
                                 Query **out, Error *err);

/* Runs over 'count' documents; '*results' is an array of '*result_count' values in 'arena'. */
MUST_USE Status query_run(const Query *query, const Json *documents, size_t count, Arena *arena,
                          Json **results, size_t *result_count, Error *err);

MUST_USE Status query_run_with(const Query *query, QueryOptions options, const Json *documents,
                               size_t count, Arena *arena, Json **results, size_t *result_count,
                               Error *err);
