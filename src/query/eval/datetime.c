/* datetime.c - see datetime_int.h. */
#include "query/eval/datetime_int.h"

enum {
    YEAR_MIN = 1,
    YEAR_MAX = 9999,
    DAYS_TO_1970 = 719162, /* from 0001-01-01 */
    DAYS_IN_400_YEARS = 146097,
};

#define TICKS_MIN (-DAYS_TO_1970 * TICKS_PER_DAY)
#define TICKS_END (2932897 * TICKS_PER_DAY) /* 10000-01-01 */

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const uint8_t DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return DAYS[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
}

/* Rounds down, also below zero. */
static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

/* Days since 1970. Years are counted from March, so that the day that a leap year adds is the last
 * of its year; then the days before a month are a straight line through 30.6 days a month. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t months = month > 2 ? month - 3 : month + 9;
    int64_t days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * months + 2) / 5 + day - 1;
    return days - 306 - DAYS_TO_1970; /* 306 days from 0000-03-01 to 0001-01-01 */
}

static void date_of_days(int64_t days, DateFields *out)
{
    int64_t left = days + DAYS_TO_1970 + 306;
    int64_t era = floor_div(left, DAYS_IN_400_YEARS);
    left -= era * DAYS_IN_400_YEARS;
    int64_t year = (left - left / 1460 + left / 36524 - left / 146096) / 365;
    int64_t day = left - (365 * year + year / 4 - year / 100);
    int64_t months = (5 * day + 2) / 153;
    out->day = day - (153 * months + 2) / 5 + 1;
    out->month = months < 10 ? months + 3 : months - 9;
    out->year = era * 400 + year + (months >= 10 ? 1 : 0);
}

bool datetime_in_range(int64_t ticks)
{
    return ticks >= TICKS_MIN && ticks < TICKS_END;
}

DateFields datetime_fields(int64_t ticks)
{
    DateFields f;
    int64_t days = floor_div(ticks, TICKS_PER_DAY);
    int64_t left = ticks - days * TICKS_PER_DAY;
    date_of_days(days, &f);
    f.fraction = left % TICKS_PER_SECOND;
    left /= TICKS_PER_SECOND;
    f.second = left % 60;
    f.minute = left / 60 % 60;
    f.hour = left / 3600;
    return f;
}

static bool is_within(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

bool datetime_from_fields(const DateFields *f, int64_t *ticks)
{
    if (!is_within(f->year, YEAR_MIN, YEAR_MAX) || !is_within(f->month, 1, 12) ||
        !is_within(f->day, 1, days_in_month(f->year, f->month)) || !is_within(f->hour, 0, 23) ||
        !is_within(f->minute, 0, 59) || !is_within(f->second, 0, 59) ||
        !is_within(f->fraction, 0, TICKS_PER_SECOND - 1))
        return false;
    int64_t seconds = (f->hour * 60 + f->minute) * 60 + f->second;
    *ticks = days_of(f->year, f->month, f->day) * TICKS_PER_DAY + seconds * TICKS_PER_SECOND +
             f->fraction;
    return true;
}

/* Takes exactly 'digits' digits off the front. */
static bool take_number(Slice *text, size_t digits, int64_t *out)
{
    if (text->len < digits)
        return false;
    int64_t value = 0;
    for (size_t i = 0; i < digits; i++) {
        unsigned digit = (unsigned)(uint8_t)text->ptr[i] - '0';
        if (digit > 9)
            return false;
        value = 10 * value + digit;
    }
    *text = slice_from(*text, digits);
    *out = value;
    return true;
}

static bool take_char(Slice *text, char c)
{
    if (text->len == 0 || text->ptr[0] != c)
        return false;
    *text = slice_from(*text, 1);
    return true;
}

/* hh:mm:ss and perhaps a fraction of one to seven digits. */
static bool take_time(Slice *text, DateFields *f)
{
    if (!take_number(text, 2, &f->hour) || !take_char(text, ':') ||
        !take_number(text, 2, &f->minute) || !take_char(text, ':') ||
        !take_number(text, 2, &f->second))
        return false;
    if (!take_char(text, '.'))
        return true;
    int64_t unit = TICKS_PER_SECOND / 10;
    int64_t digit;
    if (!take_number(text, 1, &digit))
        return false;
    f->fraction = digit * unit;
    while (unit > 1 && take_number(text, 1, &digit)) {
        unit /= 10;
        f->fraction += digit * unit;
    }
    return true;
}

bool datetime_parse(Slice text, int64_t *ticks)
{
    DateFields f = {0};
    if (!take_number(&text, 4, &f.year) || !take_char(&text, '-') ||
        !take_number(&text, 2, &f.month) || !take_char(&text, '-') ||
        !take_number(&text, 2, &f.day))
        return false;
    if ((take_char(&text, 'T') || take_char(&text, ' ')) && !take_time(&text, &f))
        return false;
    (void)take_char(&text, 'Z'); /* it may be there or not */
    return text.len == 0 && datetime_from_fields(&f, ticks);
}

static char *put_digits(char *at, int64_t value, int digits)
{
    for (int i = digits - 1; i >= 0; i--) {
        at[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + digits;
}

void datetime_print(int64_t ticks, char out[DATETIME_LEN])
{
    DateFields f = datetime_fields(ticks);
    const struct {
        int64_t value;
        int digits;
        char after;
    } parts[] = {{f.year, 4, '-'},   {f.month, 2, '-'},  {f.day, 2, 'T'},     {f.hour, 2, ':'},
                 {f.minute, 2, ':'}, {f.second, 2, '.'}, {f.fraction, 7, 'Z'}};
    char *at = out;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        at = put_digits(at, parts[i].value, parts[i].digits);
        *at++ = parts[i].after;
    }
}

bool date_part_find(Slice name, DatePart *out)
{
    static const struct {
        Slice name;
        DatePart part;
    } NAMES[] = {
        {SLICE_INIT("year"), DATE_YEAR},       {SLICE_INIT("yyyy"), DATE_YEAR},
        {SLICE_INIT("yy"), DATE_YEAR},         {SLICE_INIT("month"), DATE_MONTH},
        {SLICE_INIT("mm"), DATE_MONTH},        {SLICE_INIT("m"), DATE_MONTH},
        {SLICE_INIT("day"), DATE_DAY},         {SLICE_INIT("dd"), DATE_DAY},
        {SLICE_INIT("d"), DATE_DAY},           {SLICE_INIT("hour"), DATE_HOUR},
        {SLICE_INIT("hh"), DATE_HOUR},         {SLICE_INIT("minute"), DATE_MINUTE},
        {SLICE_INIT("mi"), DATE_MINUTE},       {SLICE_INIT("n"), DATE_MINUTE},
        {SLICE_INIT("second"), DATE_SECOND},   {SLICE_INIT("ss"), DATE_SECOND},
        {SLICE_INIT("s"), DATE_SECOND},        {SLICE_INIT("millisecond"), DATE_MILLISECOND},
        {SLICE_INIT("ms"), DATE_MILLISECOND},  {SLICE_INIT("microsecond"), DATE_MICROSECOND},
        {SLICE_INIT("mcs"), DATE_MICROSECOND}, {SLICE_INIT("nanosecond"), DATE_NANOSECOND},
        {SLICE_INIT("ns"), DATE_NANOSECOND},
    };
    for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
        if (NAMES[i].name.len == name.len && slice_equal_nocase(NAMES[i].name, name)) {
            *out = NAMES[i].part;
            return true;
        }
    }
    return false;
}

/* Of the parts that always are as long; a nanosecond is less than a tick. */
static int64_t ticks_of(DatePart part)
{
    static const int64_t TICKS[] = {
        [DATE_DAY] = TICKS_PER_DAY,
        [DATE_HOUR] = 3600 * TICKS_PER_SECOND,
        [DATE_MINUTE] = 60 * TICKS_PER_SECOND,
        [DATE_SECOND] = TICKS_PER_SECOND,
        [DATE_MILLISECOND] = TICKS_PER_MS,
        [DATE_MICROSECOND] = TICKS_PER_US,
    };
    return TICKS[part];
}

int64_t datetime_part(DatePart part, int64_t ticks)
{
    DateFields f = datetime_fields(ticks);
    switch (part) {
    case DATE_YEAR:
        return f.year;
    case DATE_MONTH:
        return f.month;
    case DATE_DAY:
        return f.day;
    case DATE_HOUR:
        return f.hour;
    case DATE_MINUTE:
        return f.minute;
    case DATE_SECOND:
        return f.second;
    case DATE_MILLISECOND:
        return f.fraction / TICKS_PER_MS;
    case DATE_MICROSECOND:
        return f.fraction / TICKS_PER_US;
    case DATE_NANOSECOND:
        break;
    }
    return f.fraction * 100;
}

static bool add_months(int64_t months, int64_t ticks, int64_t *out)
{
    DateFields f = datetime_fields(ticks);
    int64_t month;
    if (__builtin_add_overflow(f.year * 12 + f.month - 1, months, &month))
        return false;
    f.year = floor_div(month, 12);
    f.month = month - f.year * 12 + 1;
    if (!is_within(f.year, YEAR_MIN, YEAR_MAX))
        return false;
    int64_t last = days_in_month(f.year, f.month);
    if (f.day > last)
        f.day = last;
    return datetime_from_fields(&f, out);
}

bool datetime_add(DatePart part, int64_t count, int64_t ticks, int64_t *out)
{
    int64_t months, added, sum;
    if (part <= DATE_MONTH)
        return !__builtin_mul_overflow(count, part == DATE_YEAR ? 12 : 1, &months) &&
               add_months(months, ticks, out);
    if (part == DATE_NANOSECOND)
        added = count / 100;
    else if (__builtin_mul_overflow(count, ticks_of(part), &added))
        return false;
    if (__builtin_add_overflow(ticks, added, &sum) || !datetime_in_range(sum))
        return false;
    *out = sum;
    return true;
}

double datetime_diff(DatePart part, int64_t start, int64_t end)
{
    if (part == DATE_NANOSECOND)
        return (double)(end - start) * 100;
    if (part <= DATE_MONTH) {
        DateFields a = datetime_fields(start);
        DateFields b = datetime_fields(end);
        int64_t years = b.year - a.year;
        return (double)(part == DATE_YEAR ? years : years * 12 + b.month - a.month);
    }
    int64_t unit = ticks_of(part);
    return (double)(floor_div(end, unit) - floor_div(start, unit));
}

bool datetime_bin(DatePart part, int64_t size, int64_t origin, int64_t ticks, int64_t *out)
{
    int64_t width;
    if (part <= DATE_MONTH || size <= 0)
        return false;
    if (part == DATE_NANOSECOND)
        width = size / 100;
    else if (__builtin_mul_overflow(size, ticks_of(part), &width))
        width = INT64_MAX; /* wider than all of time */
    if (width == 0)
        return false;
    int64_t bins = floor_div(ticks - origin, width);
    int64_t offset, start;
    if (__builtin_mul_overflow(bins, width, &offset) ||
        __builtin_add_overflow(origin, offset, &start) || !datetime_in_range(start))
        return false;
    *out = start;
    return true;
}

static void put_padded(Buf *out, int64_t value, size_t digits)
{
    for (size_t i = digits; i > 7; i--)
        buf_byte(out, '0'); /* no value has more digits */
    char text[7];
    int width = digits > 7 ? 7 : (int)digits;
    put_digits(text, value, width);
    buf_bytes(out, text, (size_t)width);
}

/* One digit if that is enough and only one was asked for. */
static void put_two(Buf *out, int64_t value, size_t count)
{
    put_padded(out, value, count > 1 || value > 9 ? 2 : 1);
}

/* Three letters of a name, or all of it. */
static void put_name(Buf *out, const char *name, size_t count)
{
    buf_slice(out, slice_first(slice_from_cstr(name), count == 3 ? 3 : SIZE_MAX));
}

static bool put_fraction(Buf *out, int64_t fraction, size_t count, bool trimmed)
{
    if (count > 7)
        return false;
    char text[7];
    put_digits(text, fraction, 7);
    while (trimmed && count > 0 && text[count - 1] == '0')
        count--;
    buf_bytes(out, text, count);
    return true;
}

static const char *const MONTHS[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const WEEKDAYS[] = {"Thursday", "Friday",  "Saturday", "Sunday",
                                       "Monday",   "Tuesday", "Wednesday"}; /* 1970 began so */

/* The part that 'count' times 'c' stands for; '*is_part' is false if it is an ordinary character.
 */
static bool put_part(Buf *out, int64_t ticks, const DateFields *f, char c, size_t count,
                     bool *is_part)
{
    *is_part = true;
    switch (c) {
    case 'y':
        if (count <= 2)
            put_two(out, f->year % 100, count);
        else
            put_padded(out, f->year, count == 3 && f->year > 999 ? 4 : count);
        return true;
    case 'M':
        if (count <= 2)
            put_two(out, f->month, count);
        else
            put_name(out, MONTHS[f->month - 1], count);
        return true;
    case 'd': {
        int64_t days = floor_div(ticks, TICKS_PER_DAY);
        if (count <= 2)
            put_two(out, f->day, count);
        else
            put_name(out, WEEKDAYS[days - floor_div(days, 7) * 7], count);
        return true;
    }
    case 'H':
        put_two(out, f->hour, count);
        return true;
    case 'h':
        put_two(out, f->hour % 12 == 0 ? 12 : f->hour % 12, count);
        return true;
    case 'm':
        put_two(out, f->minute, count);
        return true;
    case 's':
        put_two(out, f->second, count);
        return true;
    case 'f':
    case 'F':
        return put_fraction(out, f->fraction, count, c == 'F');
    case 't':
        buf_slice(out, slice_first(f->hour < 12 ? SLICE("AM") : SLICE("PM"), count));
        return true;
    default:
        *is_part = false;
        return true;
    }
}

bool datetime_format(int64_t ticks, Slice form, Buf *out)
{
    DateFields f = datetime_fields(ticks);
    size_t at = 0;
    while (at < form.len) {
        char c = form.ptr[at];
        if (c == '\\') {
            if (at + 1 == form.len)
                return false;
            buf_byte(out, (uint8_t)form.ptr[at + 1]); /* of several bytes the others follow */
            at += 2;
            continue;
        }
        size_t count = 1;
        while (at + count < form.len && form.ptr[at + count] == c)
            count++;
        bool is_part;
        if (!put_part(out, ticks, &f, c, count, &is_part))
            return false;
        if (!is_part)
            buf_bytes(out, form.ptr + at, count);
        at += count;
    }
    return true;
}
