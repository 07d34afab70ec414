/* document_scope_int.h - which partitions a query on items looks at, and whether it may. */
#pragma once

#include "api/items/document_query_int.h"

/* Reads what the request's headers say about that; on the loop. */
MUST_USE Status document_scope_read(const ApiRequest *r, DocumentQuery *q, Error *err);

/* Finds the keys that the query names, unless a key or a range was given with the request. Fails if
 * the query would have to look at several partitions and the client has not allowed that, or wants
 * to merge their results itself. */
MUST_USE Status document_scope_check(DocumentQuery *q, const Container *container, Error *err);
