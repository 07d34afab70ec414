/* time_value.c - see time_value.h. */
#include "advise/time_value.h"

#include <math.h>
#include <stdio.h>

enum { SECONDS_PER_DAY = 86400, DAYS_MAX = 2932896 }; /* 9999-12-31 */

static const double YEAR_1990_S = 631152000;
static const double YEAR_2100_S = 4102444800;

/* Days since 1970 of a date of the Gregorian calendar. */
static int64_t days_from_date(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static bool take_digits(Slice *text, size_t count, int64_t *out)
{
    if (text->len < count)
        return false;
    int64_t value = 0;
    for (size_t i = 0; i < count; i++) {
        char c = text->ptr[i];
        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (c - '0');
    }
    *text = slice_from(*text, count);
    *out = value;
    return true;
}

static bool take_char(Slice *text, char expected)
{
    if (text->len == 0 || text->ptr[0] != expected)
        return false;
    *text = slice_from(*text, 1);
    return true;
}

static bool take_date(Slice *text, double *seconds)
{
    int64_t year = 0;
    int64_t month = 0;
    int64_t day = 0;
    if (!take_digits(text, 4, &year) || !take_char(text, '-') || !take_digits(text, 2, &month) ||
        !take_char(text, '-') || !take_digits(text, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    *seconds = (double)(days_from_date(year, month, day) * SECONDS_PER_DAY);
    return true;
}

static void skip_fraction(Slice *text)
{
    int64_t ignored = 0;
    if (!take_char(text, '.'))
        return;
    while (take_digits(text, 1, &ignored))
        continue;
}

static bool take_zone(Slice *text, double *seconds)
{
    if (text->len == 0 || take_char(text, 'Z'))
        return true;
    int64_t sign = take_char(text, '+') ? 1 : take_char(text, '-') ? -1 : 0;
    int64_t hours = 0;
    int64_t minutes = 0;
    if (sign == 0 || !take_digits(text, 2, &hours))
        return false;
    (void)take_char(text, ':'); /* may be left out */
    if (!take_digits(text, 2, &minutes) || hours > 14 || minutes > 59)
        return false;
    *seconds -= (double)(sign * (hours * 3600 + minutes * 60));
    return true;
}

static bool read_text(Slice text, double *out)
{
    double seconds = 0;
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0;
    if (!take_date(&text, &seconds))
        return false;
    if (text.len > 0) {
        if (!take_char(&text, 'T') && !take_char(&text, ' '))
            return false;
        if (!take_digits(&text, 2, &hour) || !take_char(&text, ':') ||
            !take_digits(&text, 2, &minute))
            return false;
        if (take_char(&text, ':') && !take_digits(&text, 2, &second))
            return false;
        skip_fraction(&text);
        if (hour > 24 || minute > 59 || second > 60 || !take_zone(&text, &seconds))
            return false;
    }
    *out = seconds + (double)(hour * 3600 + minute * 60 + second);
    return text.len == 0;
}

static bool read_number(double number, double *out)
{
    static const double units[] = {1, 1e3, 1e6, 1e9};
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        double seconds = number / units[i];
        if (seconds >= YEAR_1990_S && seconds < YEAR_2100_S) {
            *out = seconds;
            return true;
        }
    }
    return false;
}

bool time_value(Json value, double *seconds)
{
    if (json_is(value, JSON_NUMBER))
        return read_number(json_number(value), seconds);
    return json_is(value, JSON_STRING) && read_text(json_string(value), seconds);
}

void time_print_day(double seconds, char out[TIME_DAY_LEN])
{
    double days = floor(seconds / SECONDS_PER_DAY);
    int64_t z = (days >= DAYS_MAX ? DAYS_MAX : days <= 0 ? 0 : (int64_t)days) + 719468;
    int64_t era = z / 146097;
    int64_t day_of_era = z - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t mp = (5 * day_of_year + 2) / 153;
    int64_t month = mp < 10 ? mp + 3 : mp - 9;
    int64_t year = year_of_era + era * 400 + (month <= 2);
    int64_t day = day_of_year - (153 * mp + 2) / 5 + 1;
    char text[64];
    (void)snprintf(text, sizeof(text), "%04d-%02d-%02d", (int)year, (int)month, (int)day);
    memcpy(out, text, TIME_DAY_LEN);
}
