/* utc_time.c - see utc_time.h. */
#include "cli/utc_time.h"

#include "base/date.h"

#include <stdio.h>
#include <time.h>

void utc_time_print(int64_t unix_s, char out[UTC_TIME_LEN + 1])
{
    time_t moment = unix_s < 0 ? 0 : unix_s > DATE_MAX_S ? DATE_MAX_S : unix_s;
    struct tm parts;
    ASSERT(gmtime_r(&moment, &parts) != NULL);
    ASSERT(strftime(out, UTC_TIME_LEN + 1, "%Y-%m-%dT%H:%M:%SZ", &parts) == UTC_TIME_LEN);
}

bool utc_time_parse(Slice text, int64_t *unix_s)
{
    static const char form[] = "dddd-dd-ddTdd:dd:ddZ";
    if (text.len != UTC_TIME_LEN)
        return false;
    int numbers[6] = {0};
    size_t at = 0;
    for (size_t i = 0; i < UTC_TIME_LEN; i++) {
        char c = text.ptr[i];
        if (form[i] != 'd' && c != form[i])
            return false;
        if (form[i] == 'd' && (c < '0' || c > '9'))
            return false;
        if (form[i] == 'd')
            numbers[at] = numbers[at] * 10 + (c - '0');
        else
            at++;
    }
    struct tm parts = {.tm_year = numbers[0] - 1900,
                       .tm_mon = numbers[1] - 1,
                       .tm_mday = numbers[2],
                       .tm_hour = numbers[3],
                       .tm_min = numbers[4],
                       .tm_sec = numbers[5]};
    int64_t moment = timegm(&parts);
    char again[UTC_TIME_LEN + 1];
    utc_time_print(moment, again); /* the 30th of February is printed as another day */
    if (!slice_equal(slice_from_cstr(again), text))
        return false;
    *unix_s = moment;
    return true;
}
