/* query_record_int.h - notes each query on items for /_orrery/.../queries and orrery advise.
 *
 * A text is noted without its values (query/sql/query_shape.h), when its page was answered; what
 * failed is not noted. Where a client merges partitions, each of its requests is about one of them:
 * the one about the first partition that the query needs counts as the query's beginning.
 *
 * Threads    query_record_begin and query_record_work run where the query does, query_record_end on
 * the loop.
 */
#pragma once

#include "api/items/document_query_int.h"

/* A query was read: works out which partitions it needs. */
void query_record_begin(DocumentQuery *q, const Container *container);

/* The page was made: works out its text, and notes what it took. */
void query_record_work(DocumentQuery *q, const QueryMetrics *metrics);

/* The page is about to be answered. */
void query_record_end(DocumentPage *page);
