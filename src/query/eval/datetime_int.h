/* datetime_int.h - dates and times as text, as ticks, and as parts.
 *
 * The language has no type for them: a time is a string of the form YYYY-MM-DDThh:mm:ss.fffffffZ,
 * always UTC, of which the time of day, the fraction and the Z may be left out. Here it is a
 * number of ticks of 100 ns since 1970, between the years 1 and 9999. Nothing allocates.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

#define TICKS_PER_US     ((int64_t)10)
#define TICKS_PER_MS     ((int64_t)10000)
#define TICKS_PER_SECOND ((int64_t)10000000)
#define TICKS_PER_DAY    (86400 * TICKS_PER_SECOND)

#define DATETIME_LEN 28 /* 2024-02-29T23:59:59.1234567Z */

/* In the order from large to small. */
typedef enum DatePart {
    DATE_YEAR,
    DATE_MONTH,
    DATE_DAY,
    DATE_HOUR,
    DATE_MINUTE,
    DATE_SECOND,
    DATE_MILLISECOND,
    DATE_MICROSECOND,
    DATE_NANOSECOND,
} DatePart;

typedef struct DateFields {
    int64_t year;
    int64_t month; /* from 1 */
    int64_t day;   /* from 1 */
    int64_t hour;
    int64_t minute;
    int64_t second;
    int64_t fraction; /* of a second, in ticks */
} DateFields;

/* False unless the whole text is a date, or a date and a time, that exists. */
bool datetime_parse(Slice text, int64_t *ticks);

/* Writes exactly DATETIME_LEN characters, not terminated. */
void datetime_print(int64_t ticks, char out[DATETIME_LEN]);

bool datetime_in_range(int64_t ticks);
DateFields datetime_fields(int64_t ticks);
bool datetime_from_fields(const DateFields *fields, int64_t *ticks);

/* "year", "yyyy" or "yy", and so on, in any case. */
bool date_part_find(Slice name, DatePart *out);

/* Of a second the smaller parts are the whole fraction in that unit. */
int64_t datetime_part(DatePart part, int64_t ticks);

/* A month or year on ends on the last day of its month if there is no such day in it; what a
 * nanosecond adds is cut to ticks. False if the result is out of range. */
bool datetime_add(DatePart part, int64_t count, int64_t ticks, int64_t *out);

/* How many boundaries of the part lie between the two, less than zero if 'end' is the earlier. A
 * double, since nanoseconds may be too many for an integer. */
double datetime_diff(DatePart part, int64_t start, int64_t end);

/* The start of the bin that holds 'ticks', when bins of 'size' parts begin at 'origin'. There are
 * none of months and years, nor of less than a tick. */
bool datetime_bin(DatePart part, int64_t size, int64_t origin, int64_t ticks, int64_t *out);

/* Appends the time in the given form: y M d H h m s f F t, repeated, are its parts, a backslash
 * makes the next character an ordinary one. False if the form is not valid. It takes at most
 * DATETIME_FORMAT_GROWTH bytes for each byte of the form. */
#define DATETIME_FORMAT_GROWTH 3
bool datetime_format(int64_t ticks, Slice form, Buf *out);
