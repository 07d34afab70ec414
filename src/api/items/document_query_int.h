/* document_query_int.h - one page of a query over items, as the files of queries see it.
 *
 *     document_query.c       reads the request, runs the page, pays for it
 *     document_scope_int.h      which partitions it looks at, and whether it may
 *     document_walk_int.h    partition by partition, where the client merges
 *     document_report_int.h  headers that tell what the page has done
 *     query_record_int.h     notes it for /_orrery
 */
#pragma once

#include "api/items/document_page_int.h"
#include "query/eval/query.h"
#include "query/page/page.h"
#include "throughput/query_log.h"

/* What the headers say about looking at several partitions. */
typedef struct QueryCross {
    bool is_allowed;
    bool is_client; /* the client merges the results of partitions */
} QueryCross;

typedef struct DocumentQuery {
    DocumentPage page;

    /* What the request says. */
    Slice body;  /* that is still to be read; empty if it was */
    Slice token; /* of the page before; once read, without the outer part of a walk */
    QueryCross cross;
    unsigned wanted; /* flags of document_report_int.h */

    /* What was made of that. */
    Query *query;
    Slice text;
    Json parameters;    /* undefined if there are none */
    Json resume_filter; /* likewise */
    uint64_t parse_us;  /* time that reading the query took */
    Slice position;     /* where the page begins; empty for the first */
    bool is_walking;    /* results come partition by partition */
    QueryNote note;     /* see query_record_int.h */
} DocumentQuery;

/* How shapes of the container's items lie: on the Earth, or on a plane. */
QueryGeo document_query_geo(const Container *container);
