/* time_value.h - a JSON value as a moment, as far as it looks like one.
 *
 *     number    seconds, milliseconds, microseconds or nanoseconds since 1970, of 1990 to 2100
 *     string    2026-01-31, 2026-01-31T12:00:00, with a fraction, with Z or +01:00
 */
#pragma once

#include "json/json.h"

/* False if it is no time; '*seconds' is since 1970. */
bool time_value(Json value, double *seconds);

/* "2026-01-31", not terminated; moments beyond the year 9999 print as "9999-12-31". */
#define TIME_DAY_LEN 10
void time_print_day(double seconds, char out[TIME_DAY_LEN]);
