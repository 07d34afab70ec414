/* query_with_key.h - a query that came with a partition key in a header, as a text that names the
 * key itself.
 *
 *     SELECT * FROM c WHERE c.a = 1        and the key /tenant, /user
 *     SELECT * FROM c WHERE ((c.a = 1) AND (c.tenant = @key1) AND (c.user = @key2))
 *
 * Ownership  The text lives in the arena given. Threads: nothing here has state.
 */
#pragma once

#include "base/arena.h"
#include "json/property_path.h"

/* '*out' is 'text' with a filter by the first 'count' paths. False if it has no name for the items,
 * as in FROM t IN c.tags, or is no query. */
MUST_USE bool query_with_key(Arena *arena, Slice text, const PropertyPath *paths, size_t count,
                             Slice *out);
