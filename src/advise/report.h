/* report.h - an Advice as text for a terminal, as JSON, and as a page of HTML with charts.
 *
 * Names, values and queries in a report are chosen by others: control characters and markup in them
 * are escaped (safe_text.h). No line of text is wider than the style says. The page refers to
 * nothing outside of itself and has no script.
 *
 * Bounds     REPORT_BYTES_MAX: a caller gives a Buf of that size.
 */
#pragma once

#include "advise/key_advice.h"
#include "base/buf.h"

#define REPORT_BYTES_MAX ((size_t)16 << 20)
#define REPORT_WIDTH_MIN 72
#define REPORT_WIDTH_MAX 160

typedef struct ReportStyle {
    uint32_t width; /* REPORT_WIDTH_MIN to REPORT_WIDTH_MAX */
    bool is_utf8;
    bool has_colour;
} ReportStyle;

/* With KeyAdviceOptions.check it is about that key, else about all. */
void report_text(const Advice *advice, const ReportStyle *style, Buf *out);

/* One object; its members are described in docs/choosing-a-partition-key.md. */
void report_json(const Advice *advice, Buf *out);

void report_html(const Advice *advice, Buf *out);
