/* page_resume.c - a query that begins in the middle of its order: the resumeFilter of a request.
 *
 *     {"value": [5, "a"], "rid": "8wGqAJI0VgcBAAAAAAAAAA==", "exclude": false}
 *
 * Clients that merge the rows of several partitions ask in this way, after a restart, for what they
 * have not returned yet. 'value' has what the last row was ordered by: scalars as they are, [] for
 * undefined, {"type": "array" or "object", "low", "high"} with a hash for what has no order. The
 * rows begin with the first that has these values or, if 'exclude' is true, after the last; among
 * those that have them, with the item 'rid' or the first after it. A position may come along:
 * whichever is further counts, so that the filter may stay the same for all pages.
 *
 * Here all arrays are equal in their order, and all objects. Only the rid tells where among them a
 * client was, so without one they are refused: rows would be lost or come twice.
 */
#include "base/rid.h"
#include "query/page/page_request_int.h"

static Status refuse(Error *err, const char *what)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "The query's resumeFilter %s.", what);
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

static Status read_values(size_t count, Json list, Arena *arena, PageResume *out, Error *err)
{
    if (!json_is(list, JSON_ARRAY) || json_count(list) != count)
        return refuse(err, "must have a \"value\" for each item of ORDER BY, in an array");
    Value *values = ARENA_NEW_ARRAY(arena, Value, count);
    size_t at = 0;
    for (JsonIter it = json_iter(list); json_next(&it); at++) {
        if (!read_value(it.value, &values[at], &out->is_hashed))
            return refuse(err, "has a \"value\" that is neither a scalar, nor [] for undefined, "
                               "nor the type and hash of an array or object");
    }
    out->point.values = values;
    return STATUS_OK;
}

static Status read_rid(const PartitionSchema *schema, Json json, PageResume *out, Error *err)
{
    if (json.at == NULL || json_is(json, JSON_NULL))
        return STATUS_OK;
    Rid rid;
    if (!json_is(json, JSON_STRING) || !rid_parse(json_string(json), &rid) ||
        rid.kind != RID_DOCUMENT || rid.database != schema->database ||
        rid.container != schema->container || rid.child == 0)
        return refuse(err, "has a \"rid\" that is not one of the container's items");
    out->point.number = rid.child;
    return STATUS_OK;
}

Status page_resume_read(const PageRequest *request, Arena *arena, PageResume *out, Error *err)
{
    Json filter = request->options->resume_filter;
    const Select *select = request->query->select;
    *out = (PageResume){.is_given = filter.at != NULL};
    if (!out->is_given)
        return STATUS_OK;
    if (!json_is(filter, JSON_OBJECT))
        return refuse(err, "must be an object");
    if (select->order_by == NULL)
        return refuse(err, "needs an ORDER BY");
    Json exclude = json_get(filter, SLICE("exclude"));
    if (exclude.at != NULL && !json_is(exclude, JSON_BOOL))
        return refuse(err, "has an \"exclude\" that is neither true nor false");
    out->point.is_after = exclude.at != NULL && json_bool(exclude);
    TRY(read_values(select->order_count, json_get(filter, SLICE("value")), arena, out, err));
    return read_rid(request->options->schema, json_get(filter, SLICE("rid")), out, err);
}

Status page_resume_check(const PageRequest *request, Error *err)
{
    const PageResume *resume = &request->resume;
    bool is_known = request->is_ordered && resume->point.number != 0 && !resume->point.is_after;
    if (!resume->is_hashed || is_known)
        return STATUS_OK;
    return refuse(err, "begins at an array or an object; there is no order among those, so that "
                       "only a \"rid\" could tell where, and an index that serves ORDER BY");
}

/* No item has the number 0, or one with all bits. */
OrderKey page_resume_key(const PageRequest *request, const OrderBy *order, Arena *arena)
{
    const ResumePoint *point = &request->resume.point;
    uint64_t first = order->numbers_down ? UINT64_MAX : 0;
    uint64_t number = point->number == 0 ? first : point->number;
    return order_key_of(order, point->values, arena, point->is_after ? ~first : number);
}
