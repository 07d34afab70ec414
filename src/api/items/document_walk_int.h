/* document_walk_int.h - queries that are answered partition by partition.
 *
 * A page of a query that needs no merging has results of one partition, as the service's gateway
 * gives them, and its token says which one is next:
 *
 *     [{"token":"...","range":{"min":"05C1...","max":"0B82..."}}]
 *
 * The token inside is that of the same query over this range, or null if the range was not begun. A
 * range that was split or merged meanwhile is read from the partitions that serve it by then. The
 * outer part is not signed: it names only what a client may ask for anyway.
 */
#pragma once

#include "api/items/document_query_int.h"

/* Finds the range that the page is about, by its token or the first one, and leaves the inner
 * token.
 */
MUST_USE Status document_walk_begin(DocumentQuery *q, const Container *container, Error *err);

/* The token of the page after one that has ended at 'inner', or at the end of its range if that is
 * empty; empty if there is none. */
Slice document_walk_next(const DocumentQuery *q, Slice inner);
