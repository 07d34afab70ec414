/* browsers.c - see browsers.h. */
#include "api/core/browsers.h"

Slice browsers_host_name(Slice authority)
{
    if (slice_starts_with(authority, SLICE("["))) {
        size_t end = slice_find(authority, ']');
        return slice_first(authority, end < authority.len ? end + 1 : end);
    }
    Slice host = slice_first(authority, slice_find(authority, ':'));
    /* "localhost." is the same name, written so that nothing is appended to it. */
    return slice_ends_with(host, SLICE(".")) ? slice_first(host, host.len - 1) : host;
}

/* No name looks like this: the last label of a name is never a number, and brackets are for IPv6.
 */
static bool is_address(Slice host)
{
    if (slice_starts_with(host, SLICE("[")))
        return true;
    for (size_t i = 0; i < host.len; i++)
        if (host.ptr[i] != '.' && (host.ptr[i] < '0' || host.ptr[i] > '9'))
            return false;
    return host.len > 0;
}

static bool ends_with_nocase(Slice text, Slice end)
{
    return text.len > end.len && slice_equal_nocase(slice_from(text, text.len - end.len), end);
}

static bool matches_host(Slice pattern, Slice host)
{
    if (slice_equal(pattern, SLICE("*")))
        return true;
    if (slice_starts_with(pattern, SLICE("*.")))
        return ends_with_nocase(host, slice_from(pattern, 1));
    return slice_equal_nocase(pattern, host);
}

bool browsers_host_is_ours(const BrowserRules *rules, Slice authority)
{
    if (!rules->checks_hosts)
        return true;
    Slice host = browsers_host_name(authority);
    if (is_address(host) || slice_equal_nocase(host, SLICE("localhost")) ||
        ends_with_nocase(host, SLICE(".localhost")))
        return true;
    if (rules->takes_short_names && host.len > 0 && slice_find(host, '.') == host.len)
        return true;
    for (Slice list = rules->hosts; list.len > 0;) {
        Slice pattern = slice_trim(slice_cut(&list, ','));
        if (pattern.len > 0 && matches_host(pattern, host))
            return true;
    }
    return false;
}

OriginKind browsers_origin(const BrowserRules *rules, Slice origin, Slice authority)
{
    if (origin.len == 0)
        return ORIGIN_NONE;
    static const Slice schemes[] = {SLICE_INIT("http://"), SLICE_INIT("https://")};
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        if (slice_starts_with(origin, schemes[i]) &&
            slice_equal_nocase(slice_from(origin, schemes[i].len), authority))
            return ORIGIN_NONE;
    }
    for (Slice list = rules->origins; list.len > 0;) {
        Slice allowed = slice_trim(slice_cut(&list, ','));
        if (slice_equal(allowed, SLICE("*")) || slice_equal_nocase(allowed, origin))
            return ORIGIN_ALLOWED;
    }
    return ORIGIN_FOREIGN;
}
