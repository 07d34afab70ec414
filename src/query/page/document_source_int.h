/* document_source_int.h - documents of a partition, one after the other, in an order that can be
 * resumed.
 *
 *     by number   | number u64 BE |                      a set of the index, or a scan
 *     by EPK      as partition_scan_position             a scan of one logical partition
 *     by value    | number u64 BE | length u16 BE | term | rest |
 *
 * By value, documents come in the order of a term (of ORDER BY, or of a range). Where a string in
 * it was cut the term ends with it, and at ORDER_TERM_BYTES in any case; 'rest' is then more of the
 * string and what follows: never empty, so that without a rest the place is before all
 * documents with that term. Documents with the same of both come by number. Such a place means the
 * same in every partition and for every index that serves the order: its bytes are those of an
 * index that is walked up, inverted where a key is descending, whichever index there is.
 *
 * Ownership  A source lives in memory of its own and borrows its planner. Threads: one.
 */
#pragma once

#include "query/plan/plan_int.h"

enum {
    ORDER_HEAD_BYTES = 10,   /* of a place: number and length */
    ORDER_TERM_BYTES = 280,  /* any value of one path, or a few of a composite index */
    ORDER_REST_BYTES = 400,  /* after it nothing is compared, so that positions stay short */
    ORDER_SORT_MAX = 2000,   /* documents that are sorted at a time */
    ORDER_FETCH_MAX = 50000, /* documents that every page may fetch for sorting */
};

typedef struct OrderKey {
    Slice term;
    Slice rest;
    uint64_t number;
} OrderKey;

/* Where a document stands in an order, and where one with these values would stand. The document is
 * in its slot. */
MUST_USE Status order_key(Planner *planner, const OrderBy *order, Arena *arena, uint64_t number,
                          OrderKey *out);
OrderKey order_key_of(const OrderBy *order, const Value *values, Arena *arena, uint64_t number);
int order_compare(const OrderBy *order, const OrderKey *a, const OrderKey *b);
OrderKey order_keep(Arena *arena, const OrderKey *key);
Slice order_position(Arena *arena, const OrderKey *key);
bool order_position_read(Slice position, OrderKey *out);
static_assert(TERM_VALUE_BYTES_MAX / COMPOSITE_PARTS_MAX <= ORDER_TERM_BYTES,
              "a value of one path is a term that nothing is cut off");

typedef enum SourceKind {
    SOURCE_SET,       /* fetched by numbers, in their order */
    SOURCE_SCAN,      /* all items of a range of EPKs, by number or by EPK */
    SOURCE_WALK,      /* along the values of a path */
    SOURCE_SORT,      /* a small set, fetched and sorted */
    SOURCE_COLLECTED, /* a few items that were read before, by number */
} SourceKind;

typedef struct DocumentSource DocumentSource;

typedef struct SourceOptions {
    SourceKind kind;
    NumberSet set; /* of SOURCE_SET and SOURCE_SORT; of SOURCE_WALK, if 'has_set' */
    bool has_set;
    const Item *items; /* of SOURCE_COLLECTED; borrowed */
    size_t item_count;
    ScanOrder scan_order;
    const OrderBy *order; /* of SOURCE_WALK and SOURCE_SORT */
    Slice from;           /* of SOURCE_WALK: the values, as encoded */
    Slice to;
    bool has_range;         /* otherwise all of them, and those without a value, too */
    const PlanPath *covers; /* of SOURCE_WALK: the one path that is asked for; see below */
    Slice epk_from;
    Slice epk_to;
    Slice position; /* begins with the document there, or the first after it */
    const Clock *clock;
    uint64_t deadline_us; /* 0 if none; what is passed over takes time, too */
} SourceOptions;

/* Closed by the caller also if it fails. */
MUST_USE Status source_open(Planner *planner, const SourceOptions *options, DocumentSource **out);

/* The next item; it lives until the next call. If the source covers a path and the index has all of
 * the value there, the item is not fetched, and its document has nothing but this value. */
MUST_USE Status source_next(DocumentSource *source, Item *item, bool *found);
bool source_was_fetched(const DocumentSource *source); /* the item that came last */

/* Whether it found nothing because time is up: there may be more after its position. A paused
 * source has always made progress, however little time there was. */
bool source_is_paused(const DocumentSource *source);

/* The position of the last item, or, after a pause, the position to continue at. */
Slice source_position(DocumentSource *source, Arena *arena);

/* The same as a key of the source's order. In the order of numbers only the number is set, in the
 * order of EPKs nothing. It lives until the next item. */
OrderKey source_key(const DocumentSource *source);
void source_close(DocumentSource *source); /* accepts NULL */
