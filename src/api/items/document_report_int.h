/* document_report_int.h - headers that tell what a page of a query has done: metrics, the use of
 * indexes, and explanations. */
#pragma once

#include "api/core/request_int.h"
#include "query/page/page.h"

/* What a client may ask for, as flags. */
enum {
    DOCUMENT_REPORT_METRICS = 1,
    DOCUMENT_REPORT_INDEXES = 2,
    DOCUMENT_REPORT_INDEXES_V2 = 4,
    DOCUMENT_REPORT_EXPLAIN = 8,
};

#define DOCUMENT_REPORT_HEADERS_MAX 4

unsigned document_report_wanted(const ApiRequest *r);

/* Makes the headers, with values in the arena; returns how many. 'parse_us' is what reading the
 * query took. */
size_t document_report_headers(Arena *arena, unsigned wanted, uint64_t parse_us,
                               const QueryPage *page, HttpHeader out[DOCUMENT_REPORT_HEADERS_MAX]);
