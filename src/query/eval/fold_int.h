/* fold_int.h - constants are evaluated once, when a query is parsed.
 *
 * A polygon that a query spells out is an object of arrays of arrays: building it anew costs a
 * hundred times what looking at it does. So whatever says the same for every document and every run
 * is replaced by its value: it names no source, asks no subquery and no user, and calls no function
 * that may answer differently the next time or that depends on options of the run (ST_...).
 *
 * Nothing else changes. Names of results and places of errors were settled by the binder before,
 * paths stay paths, and what cannot be evaluated within a small budget, or is no value that text
 * could spell, stays as it is: the run then says what is wrong with it, if it gets there at all.
 */
#pragma once

#include "query/sql/query_int.h"

void fold_constants(Arena *arena, Query *query);
