/* document_query_int.h - one page of a query over items, as the files of queries see it.
 *
 *     document_query.c       reads the request, runs the page, pays for it
 *     document_scope_int.h      which partitions it looks at, and whether it may
 *     document_walk_int.h    partition by partition, where the client merges
 *     document_remote_int.h  where other nodes serve some of them
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

    /* Ranges of several nodes: see document_remote_int.h. */
    bool has_remote;               /* it needs ranges of other nodes */
    struct DocumentRemote *remote; /* how these are asked; NULL if none is */
    bool is_batch;                 /* another node asks for documents of one range */
    Slice asked;                   /* by that node */
    uint32_t batch_range;          /* index in the container's */
    QueryNote note;                /* see query_record_int.h */
} DocumentQuery;

/* A range of the container as the query sees it, still without a view; and what all pages of the
 * query have in common. */
QueryTarget document_query_target(const DocumentQuery *q, uint32_t range);
QueryPageOptions document_query_options(DocumentQuery *q, const QueryTarget *targets, size_t count);

/* How shapes of the container's items lie: on the Earth, or on a plane. */
QueryGeo document_query_geo(const Container *container);
