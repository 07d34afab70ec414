/* utc_time.h - moments as people write them: 2026-11-18T12:00:00Z. */
#pragma once

#include "base/slice.h"

enum { UTC_TIME_LEN = 20 };

/* Writes exactly UTC_TIME_LEN characters and a 0. A moment before 1970 or after 9999 prints as the
 * nearest that is not. */
void utc_time_print(int64_t unix_s, char out[UTC_TIME_LEN + 1]);

/* Accepts exactly that form, with a date that exists. */
bool utc_time_parse(Slice text, int64_t *unix_s);
