/* query_shape.h - the text of a query without the values in it, so that queries that differ in
 * their values only have the same text, and no data is kept with it.
 *
 *     select * from c where c.user='ada' AND c.n IN (1,2,@x)
 *     SELECT * FROM c WHERE c.user = @s1 AND c.n IN (@n2, @n3, @n4, @n4)
 *
 * Every literal and every parameter becomes a parameter. Its letter says of which type the value
 * was: s string, n number, b boolean, a array, o object, x anything else. What stays: names of
 * properties, however they are written, keywords such as true and null, and the numbers of TOP and
 * LIMIT. Lists of constants are as long as the next power of two, at most QUERY_SHAPE_LIST_MAX.
 * Comments are left out. The result is a query again.
 *
 * Threads    Nothing here has state.
 * Bounds     QUERY_SHAPE_TEXT_MAX of text, and the buffer's.
 */
#pragma once

#include "base/buf.h"
#include "json/json.h"

#define QUERY_SHAPE_TEXT_MAX ((size_t)16 << 10)
#define QUERY_SHAPE_LIST_MAX 16

/* Appends the shape of a query that was parsed without an error; 'parameters' are the request's, or
 * undefined. False if the text is longer than QUERY_SHAPE_TEXT_MAX, or its shape longer than the
 * buffer takes: what was appended is then not whole. */
MUST_USE bool query_shape(Slice text, Json parameters, Buf *out);
