/* date.c - see date.h. Written out because the C library's own functions depend on the locale. */
#include "base/date.h"

#include <stdio.h>
#include <time.h>

static const char *const DAYS[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char *const MONTHS[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

void date_print(int64_t unix_s, char out[DATE_LEN])
{
    int64_t within = unix_s < DATE_MIN_S ? DATE_MIN_S : unix_s > DATE_MAX_S ? DATE_MAX_S : unix_s;
    time_t t = (time_t)within;
    struct tm tm;
    struct tm *ok = gmtime_r(&t, &tm);
    ASSERT(ok != NULL);
    char text[64];
    (void)snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT", DAYS[tm.tm_wday],
                   tm.tm_mday, MONTHS[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                   tm.tm_sec);
    memcpy(out, text, DATE_LEN);
}

/* A number of exactly 'count' digits at 'at'; -1 if there is none. */
static int digits(const char *at, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (at[i] < '0' || at[i] > '9')
            return -1;
        value = value * 10 + (at[i] - '0');
    }
    return value;
}

static int name_index(const char *at, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (slice_equal_nocase(slice_make(at, 3), slice_make(names[i], 3)))
            return i;
    }
    return -1;
}

/* Days since 1970 of a date of the Gregorian calendar: counting years from March puts the leap day
 * at the end of the year, which makes the formula regular. */
static int64_t days_since_1970(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t m = month <= 2 ? month + 9 : month - 3;
    return y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + (day - 1) - 719468;
}

bool date_parse(Slice text, int64_t *unix_s)
{
    if (text.len != DATE_LEN)
        return false;
    const char *t = text.ptr;
    bool fixed = t[3] == ',' && t[4] == ' ' && t[7] == ' ' && t[11] == ' ' && t[16] == ' ' &&
                 t[19] == ':' && t[22] == ':' &&
                 slice_equal_nocase(slice_make(t + 25, 4), SLICE(" GMT"));
    if (!fixed || name_index(t, DAYS, 7) < 0)
        return false;
    int day = digits(t + 5, 2);
    int month = name_index(t + 8, MONTHS, 12) + 1;
    int year = digits(t + 12, 4);
    int hour = digits(t + 17, 2);
    int minute = digits(t + 20, 2);
    int second = digits(t + 23, 2);
    static const int lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (day < 1 || month < 1 || day > lengths[month - 1])
        return false;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    int64_t s = ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    if (s < DATE_MIN_S || s > DATE_MAX_S)
        return false;
    *unix_s = s;
    return true;
}
