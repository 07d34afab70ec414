/* report_int.h - numbers and dates as all reports print them. */
#pragma once

#include "advise/report.h"

enum { REPORT_NUMBER_MAX = 32 };

/* "12,345", "0.25", "1.3": terminated. */
const char *report_number(double value, char out[REPORT_NUMBER_MAX]);
const char *report_percent(double share, char out[REPORT_NUMBER_MAX]); /* "12.3%" */
const char *report_times(double factor, char out[REPORT_NUMBER_MAX]);  /* "1.3x" */

/* When the first logical partition is full: "2027-01-31", "never" or "?". */
const char *report_full_day(const Advice *advice, const KeyLayout *layout,
                            char out[REPORT_NUMBER_MAX]);

/* The skew that counts for a key: after splits, if splits can help. */
double report_storage_skew(const AdvisedKey *key);

bool report_is_acceptable(const AdvisedKey *key);
