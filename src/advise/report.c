/* report.c - see report_int.h. */
#include "advise/report_int.h"

#include "advise/time_value.h"

#include <math.h>
#include <stdio.h>

static const double SECONDS_PER_DAY = 86400;
static const double YEARS_SHOWN_MAX = 100;

/* Puts commas between groups of three digits. */
static void group_digits(const char *digits, char out[REPORT_NUMBER_MAX])
{
    size_t len = strlen(digits);
    size_t at = 0;
    for (size_t i = 0; i < len && at + 2 < REPORT_NUMBER_MAX; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

const char *report_number(double value, char out[REPORT_NUMBER_MAX])
{
    char digits[REPORT_NUMBER_MAX];
    if (value >= 1e15 || !(value >= 0))
        (void)snprintf(out, REPORT_NUMBER_MAX, "%.3g", value);
    else if (value < 100 && value != floor(value))
        (void)snprintf(out, REPORT_NUMBER_MAX, value < 1 ? "%.2f" : "%.1f", value);
    else if (snprintf(digits, sizeof(digits), "%.0f", value) > 0)
        group_digits(digits, out);
    return out;
}

const char *report_percent(double share, char out[REPORT_NUMBER_MAX])
{
    double percent = 100 * share;
    (void)snprintf(out, REPORT_NUMBER_MAX, percent < 10 ? "%.1f%%" : "%.0f%%", percent);
    return out;
}

const char *report_times(double factor, char out[REPORT_NUMBER_MAX])
{
    (void)snprintf(out, REPORT_NUMBER_MAX, "%.1fx", factor);
    return out;
}

const char *report_full_day(const Advice *advice, const KeyLayout *layout,
                            char out[REPORT_NUMBER_MAX])
{
    double days = layout->days_to_full;
    if (isnan(days))
        return "?";
    if (days > YEARS_SHOWN_MAX * 365)
        return "never";
    char day[TIME_DAY_LEN];
    time_print_day(advice->options.now_s + days * SECONDS_PER_DAY, day);
    (void)snprintf(out, REPORT_NUMBER_MAX, "%.*s", TIME_DAY_LEN, day);
    return out;
}

double report_storage_skew(const AdvisedKey *key)
{
    return key->key.kind == KEY_HIERARCHICAL ? key->layout.split_skew : key->layout.skew;
}

bool report_is_acceptable(const AdvisedKey *key)
{
    return key->verdict.worst != FINDING_REFUSAL;
}
