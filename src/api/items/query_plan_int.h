/* query_plan_int.h - plans of queries, for clients that send a query to each partition by
 * themselves and merge the results. */
#pragma once

#include "api/core/request_int.h"
#include "query/plan/query_route.h"

/* Answers a request that has a query's body and the header x-ms-cosmos-is-query-plan-request. */
MUST_USE Status documents_plan(ApiRequest *r, Error *err);

/* The plan as text, for a client of which nothing is known; empty if there is none. */
Slice document_plan_text(Arena *arena, const Query *query, const QueryRoute *route);
