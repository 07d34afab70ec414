/* query_maker.h - queries over orders (order_text.h), each time with other parameters.
 *
 * The parameters are derived from a seed and the number of the turn, by a hash that pgbench also
 * has: its scripts (bench/queries.sh) run the same query in the same turn. A query of the user has
 * no parameters, and is the same in each turn.
 *
 * Ownership  A QueryMaker owns its memory until query_maker_done. What query_maker_print returns
 *            lives until the next call.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "load/item_maker.h"

enum { QUERY_PAGE_SIZE = 100, QUERY_PAGE_SIZE_MAX = 1000000, QUERY_SQL_BYTES_MAX = 65536 };

/* X(name, text, what, sql). KEY has the header of a partition key as well. */
#define QUERY_MAKER_QUERIES(X)                                                                 \
    X(UNIQUE, "unique", "the order with a number", "SELECT * FROM c WHERE c.orderNumber = @a") \
    X(KEY, "key", "about 10 of the 100 orders of a partition key",                             \
      "SELECT * FROM c WHERE c.status = @a")                                                   \
    X(RANGE, "range", "the first 100 of 1% of all orders, sorted",                             \
      "SELECT TOP 100 * FROM c WHERE c.total >= @a AND c.total < @b ORDER BY c.total")         \
    X(COUNT, "count", "how many are among 1% of all orders",                                   \
      "SELECT COUNT(1) AS n FROM c WHERE c.category = @a")                                     \
    X(GROUP, "group", "how many orders each status has",                                       \
      "SELECT c.status, COUNT(1) AS n FROM c GROUP BY c.status")                               \
    X(SUM, "sum", "what the products of 1% of all orders add up to",                           \
      "SELECT VALUE SUM(c.quantity * c.price) FROM c WHERE c.category = @a")                   \
    X(TAG, "tag", "100 of the orders with a tag, which are 0.1% of all",                       \
      "SELECT TOP 100 * FROM c WHERE ARRAY_CONTAINS(c.tags, @a)")                              \
    X(SCAN, "scan", "the few orders for which a product and a length are large",               \
      "SELECT * FROM c WHERE c.quantity * c.price > @a AND LENGTH(c.note) > @b")               \
    X(FUNCTION, "function", "how many of all orders the function 'accept' accepts",            \
      "SELECT VALUE COUNT(1) FROM c WHERE udf.accept(c.quantity)")                             \
    X(WHOLE, "whole", "every order", "SELECT * FROM c")                                        \
    X(ALL, "all", "every order, sorted", "SELECT * FROM c ORDER BY c.total")

typedef enum QueryKind {
#define X(name, text, what, sql) QUERY_##name,
    QUERY_MAKER_QUERIES(X)
#undef X
        QUERY_KIND_COUNT,
} QueryKind;

/* False if there is no query of that name. */
bool query_maker_find(Slice name, QueryKind *out);

typedef struct QueryOptions {
    QueryKind kind;
    uint64_t count; /* orders 0 to count - 1 exist; at least 1 */
    uint64_t seed;
    Slice sql;          /* instead of 'kind', if it is not empty; at most QUERY_SQL_BYTES_MAX */
    uint32_t page_size; /* results of a page at most; 0 for QUERY_PAGE_SIZE */
} QueryOptions;

typedef struct QueryMaker {
    QueryOptions options;
    Buf sql; /* as it stands in a JSON text */
    Buf headers;
    Buf body;
} QueryMaker;

void query_maker_init(QueryMaker *maker, const QueryOptions *options);
void query_maker_done(QueryMaker *maker);
DEFINE_AUTO_VALUE(QueryMaker, query_maker_done)

/* The request for a page: the first one if 'continuation' is empty, else what goes on there. */
ItemRequest query_maker_print(QueryMaker *maker, uint64_t turn, Slice continuation);

/* Any number below 'below', which is at most 2^32; 'which' tells those of one turn apart. In the
 * language of pgbench:
 *     ((hash_fnv1a(turn * 16 + which, seed) >> 16) & 1073741823) * below / 1073741824 */
uint64_t query_maker_draw(uint64_t seed, uint64_t turn, uint32_t which, uint64_t below);
