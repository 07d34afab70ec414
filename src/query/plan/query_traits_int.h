/* query_traits_int.h - what can be said of one SELECT of a query before it runs. */
#pragma once

#include "query/plan/query_traits.h"
#include "query/sql/query_int.h"

/* As query_is_streaming() has it, of a query or of one in its FROM. */
bool select_is_streaming(const Select *select);

/* SELECT COUNT(1) FROM (SELECT DISTINCT ... FROM c): the only aggregate over such a subquery that
 * clients can add up, by counting what is distinct themselves. */
bool select_is_dcount(const Select *select);
