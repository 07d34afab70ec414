/* date.h - the date format of HTTP headers: "Tue, 01 Oct 2024 12:00:00 GMT". */
#pragma once

#include "base/defs.h"
#include "base/slice.h"

#define DATE_LEN 29

/* The dates that this format is read and printed for: the years 1601 to 9999. */
#define DATE_MIN_S INT64_C(-11644473600)
#define DATE_MAX_S INT64_C(253402300799)

/* Writes exactly DATE_LEN characters, not terminated. A time out of reach prints as the nearest
 * date: a client may send the last one, and a clock may stand anywhere. */
void date_print(int64_t unix_s, char out[DATE_LEN]);

/* Accepts exactly that form (names in any case); the day of the week is not checked against the
 * date, as no client depends on it. */
bool date_parse(Slice text, int64_t *unix_s);
