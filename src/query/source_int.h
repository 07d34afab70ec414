/* source_int.h - documents of a partition, one after the other, in an order that can be resumed.
 *
 *     by number   | number u64 BE |                      a set of the index, or a scan
 *     by EPK      as partition_scan_position             a scan of one logical partition
 *     by value    | number u64 BE | length u16 BE | term | rest |
 *
 * By value, documents come in the order of a term (of ORDER BY, or of a range). Where a string in
 * it was cut the term ends with it, and 'rest' is more of the string and what follows. Documents
 * with the same of both come by number; walking down, all of that in reverse.
 */
#pragma once

#include "query/plan_int.h"

enum { ORDER_PARTS_MAX = 8, ORDER_REST_BYTES = 400, ORDER_SORT_MAX = 2000 };

/* What documents are ordered by: an indexed path, or a composite index. */
typedef struct OrderBy {
    const Node *values[ORDER_PARTS_MAX];
    bool inverted[ORDER_PARTS_MAX]; /* as the composite index has it */
    size_t count;
    bool is_composite;
    bool is_down;
    PlanPath plan_path; /* if it is not composite */
    TermPath path;
    Slice spec;
} OrderBy;

typedef struct OrderKey {
    Slice term;
    Slice rest;
    uint64_t number;
} OrderKey;

/* Where a document stands in an order. The document is in its slot. */
MUST_USE Status order_key(Planner *planner, const OrderBy *order, Arena *arena, uint64_t number,
                          OrderKey *out);
int order_compare(const OrderKey *a, const OrderKey *b, bool is_down);
Slice order_position(Arena *arena, const OrderKey *key);
bool order_position_read(Slice position, OrderKey *out);

typedef enum SourceKind {
    SOURCE_SET,  /* fetched by numbers, in their order */
    SOURCE_SCAN, /* all items of a range of EPKs, by number or by EPK */
    SOURCE_WALK, /* along the values of a path */
    SOURCE_SORT, /* a small set, fetched and sorted */
} SourceKind;

typedef struct DocumentSource DocumentSource;

typedef struct SourceOptions {
    SourceKind kind;
    NumberSet set; /* of SOURCE_SET and SOURCE_SORT; of SOURCE_WALK, if 'has_set' */
    bool has_set;
    ScanOrder scan_order;
    const OrderBy *order; /* of SOURCE_WALK and SOURCE_SORT */
    Slice from;           /* of SOURCE_WALK: the values, as encoded */
    Slice to;
    bool has_range; /* otherwise all of them, and those without a value, too */
    Slice epk_from;
    Slice epk_to;
    Slice position; /* begins with the document there, or the first behind it */
    const Clock *clock;
    uint64_t deadline_us; /* 0: none; items that are gone take time, too */
} SourceOptions;

MUST_USE Status source_open(Planner *planner, const SourceOptions *options, DocumentSource **out);

/* The next item; it lives until the next call. */
MUST_USE Status source_next(DocumentSource *source, Item *item, bool *found);

/* Whether it found nothing because time is over: there may be more behind its position. */
bool source_is_paused(const DocumentSource *source);

/* Where the item stands that came last, or where to go on. */
Slice source_position(DocumentSource *source, Arena *arena);
void source_close(DocumentSource *source); /* accepts NULL */
