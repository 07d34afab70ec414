/* query_scope_int.h - which partitions a query on items looks at, and whether it may. */
#pragma once

#include "api/item_page_int.h"

/* Reads what the request's headers say about that; on the loop. */
MUST_USE Status query_scope_begin(const ApiRequest *r, ItemPage *page, Error *err);

/* Finds the keys that the page's query names, unless a key or a range was given with the request.
 * Fails if the query would have to look at several partitions and the client has not allowed that,
 * or wants to put their results together itself. */
MUST_USE Status query_scope_find(ItemPage *page, const Container *container, Error *err);
