/* page_resume.c - a query that begins in the middle of its order: the resumeFilter of a request.
 *
 *     {"value": [5, "a"], "rid": "8wGqAJI0VgcBAAAAAAAAAA==", "exclude": false}
 *
 * Clients that merge the rows of several partitions ask in this way, after a restart, for what they
 * have not returned yet. 'value' has what the last row was ordered by: scalars as they are, [] for
 * undefined, {"type": "array" or "object", "low", "high"} with a hash for what has no order. The
 * rows begin with the first that has these values or, if 'exclude' is true, behind the last; among
 * those that have them, with the item 'rid' or the first behind it. A position may come along:
 * whichever is further counts, so that the filter may stay the same for all pages.
 *
 * Here all arrays are equal in their order, and all objects. Only the rid tells where among them a
 * client was, so without one they are refused: rows would be lost or come twice.
 */
#include "catalog/rid.h"
#include "query/page_int.h"

static Status refuse(const Page *page, const char *what)
{
    return error_set(page->err, STATUS_BAD_REQUEST, SUB_NONE, "The query's resumeFilter %s.", what);
}

/* False if it is none of the forms above. */
static bool read_value(Json json, Value *out, bool *is_hashed)
{
    if (json_is(json, JSON_ARRAY)) {
        *out = VALUE_UNDEFINED;
        return json_count(json) == 0;
    }
    *out = value_of(json, true);
    if (!json_is(json, JSON_OBJECT))
        return true;
    Json type = json_get(json, SLICE("type"));
    bool is_array = json_is(type, JSON_STRING) && slice_equal(json_string(type), SLICE("array"));
    bool is_object = json_is(type, JSON_STRING) && slice_equal(json_string(type), SLICE("object"));
    out->type = is_array ? JSON_ARRAY : JSON_OBJECT;
    *is_hashed = true;
    return (is_array || is_object) && json_is(json_get(json, SLICE("low")), JSON_NUMBER) &&
           json_is(json_get(json, SLICE("high")), JSON_NUMBER);
}

static Status read_values(const Page *page, Json list, PageResume *out)
{
    size_t count = page->query->select->order_count;
    if (!json_is(list, JSON_ARRAY) || json_count(list) != count)
        return refuse(page, "must have a \"value\" for each item of ORDER BY, in an array");
    Value *values = ARENA_NEW_ARRAY(page->arena, Value, count);
    size_t at = 0;
    for (JsonIter it = json_iter(list); json_next(&it); at++) {
        if (!read_value(it.value, &values[at], &out->is_hashed))
            return refuse(page, "has a \"value\" that is neither a scalar, nor [] for undefined, "
                                "nor the type and hash of an array or object");
    }
    out->point.values = values;
    return STATUS_OK;
}

static Status read_rid(const Page *page, Json json, PageResume *out)
{
    if (json.at == NULL || json_is(json, JSON_NULL))
        return STATUS_OK;
    const PartitionSchema *schema = page->options->schema;
    Rid rid;
    if (!json_is(json, JSON_STRING) || !rid_parse(json_string(json), &rid) ||
        rid.kind != RID_DOCUMENT || rid.database != schema->database ||
        rid.container != schema->container || rid.child == 0)
        return refuse(page, "has a \"rid\" that is not one of the container's items");
    out->point.number = rid.child;
    return STATUS_OK;
}

Status page_resume_read(const Page *page, PageResume *out)
{
    Json filter = page->options->resume_filter;
    const Select *select = page->query->select;
    *out = (PageResume){.is_given = filter.at != NULL};
    if (!out->is_given)
        return STATUS_OK;
    if (!json_is(filter, JSON_OBJECT))
        return refuse(page, "must be an object");
    if (select->order_by == NULL)
        return refuse(page, "needs an ORDER BY");
    Json exclude = json_get(filter, SLICE("exclude"));
    if (exclude.at != NULL && !json_is(exclude, JSON_BOOL))
        return refuse(page, "has an \"exclude\" that is neither true nor false");
    out->point.is_behind = exclude.at != NULL && json_bool(exclude);
    TRY(read_values(page, json_get(filter, SLICE("value")), out));
    return read_rid(page, json_get(filter, SLICE("rid")), out);
}

Status page_resume_check(const Page *page)
{
    const PageResume *resume = &page->resume;
    bool is_known = page->is_ordered && resume->point.number != 0 && !resume->point.is_behind;
    if (!resume->is_hashed || is_known)
        return STATUS_OK;
    return refuse(page, "begins at an array or an object; there is no order among those, so that "
                        "only a \"rid\" could tell where, and an index that serves ORDER BY");
}

/* No item has the number 0, or one with all bits. */
OrderKey page_resume_key(const Page *page, const OrderBy *order)
{
    const ResumePoint *point = &page->resume.point;
    uint64_t first = order->numbers_down ? UINT64_MAX : 0;
    uint64_t number = point->number == 0 ? first : point->number;
    return order_key_of(order, point->values, page->arena, point->is_behind ? ~first : number);
}
