/* compare.c - the order of all values, and equality: see json.h.
 *
 * Two objects are walked side by side along their offsets, which are in name order: no sorting, no
 * memory, and time that grows with the shorter of the two. Recursion is bounded by the depth that a
 * document can have.
 */
#include "json/format_int.h"

#include <math.h>

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int compare_numbers(double a, double b)
{
    if (LIKELY(!isnan(a) && !isnan(b)))
        return (a > b) - (a < b);
    return (isnan(b) != 0) - (isnan(a) != 0);
}

static int compare_arrays(const Container *a, const Container *b)
{
    const uint8_t *x = a->body;
    const uint8_t *y = b->body;
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        int order = json_compare((Json){x}, (Json){y});
        if (order != 0)
            return order;
        x = value_end(x);
        y = value_end(y);
    }
    return compare_u32(a->count, b->count);
}

static int compare_objects(const Container *a, const Container *b)
{
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        Slice x = load_string(name_at(a, i));
        Slice y = load_string(name_at(b, i));
        int order = slice_compare(x, y);
        if (order == 0)
            order = json_compare((Json){string_end(x)}, (Json){string_end(y)});
        if (order != 0)
            return order;
    }
    return compare_u32(a->count, b->count);
}

static int compare_containers(Json a, Json b)
{
    Container x = load_container(a.at);
    Container y = load_container(b.at);
    return x.is_object ? compare_objects(&x, &y) : compare_arrays(&x, &y);
}

int json_compare(Json a, Json b)
{
    JsonType type = json_type(a);
    JsonType other = json_type(b);
    if (type != other)
        return type < other ? -1 : 1;
    switch (type) {
    case JSON_UNDEFINED:
    case JSON_NULL:
        return 0;
    case JSON_BOOL:
        return (int)json_bool(a) - (int)json_bool(b);
    case JSON_NUMBER:
        return compare_numbers(json_number(a), json_number(b));
    case JSON_STRING:
        return slice_compare(load_string(a.at), load_string(b.at));
    case JSON_ARRAY:
    case JSON_OBJECT:
        return compare_containers(a, b);
    }
    return 0;
}

bool json_equal(Json a, Json b)
{
    /* Of equal values most have equal bytes; only the order of members, the sign of zero and
     * integers beyond the doubles can make a difference. */
    if (a.at != NULL && b.at != NULL) {
        size_t size = (size_t)(value_end(a.at) - a.at);
        if (size == (size_t)(value_end(b.at) - b.at) && memcmp(a.at, b.at, size) == 0)
            return true;
    }
    return json_compare(a, b) == 0;
}
