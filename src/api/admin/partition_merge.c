/* partition_merge.c - POST {container}/operations/partitionmerge: fewer physical partitions, if
 * throughput and storage need fewer.
 *
 * As the management plane has it, {"isDryRun": true} only tells what would be done. Merges are done
 * in the background; the answer names the events that show their progress.
 */
#include "api/admin/orrery_int.h"
#include "api/core/request_audit_int.h"
#include "api/core/response_int.h"

static Status read_dry_run(const ApiRequest *r, bool *out, Error *err)
{
    *out = false;
    if (slice_trim(r->http->body).len == 0)
        return STATUS_OK;
    Json body;
    TRY(request_json(r, &body, err));
    Json value = json_get(body, SLICE("isDryRun"));
    if (json_is(value, JSON_BOOL))
        *out = json_bool(value);
    else if (!json_is(value, JSON_UNDEFINED))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'isDryRun' must be true or false.");
    return STATUS_OK;
}

/* The ids from 'first' to 'last', in the order of the map. */
static void put_run(Buf *out, const Container *container, uint32_t first, uint32_t last)
{
    size_t i = (size_t)(container_range(container, first) - container->ranges);
    put_open(out, "ranges", '[');
    do
        put_id(out, NULL, container->ranges[i].id);
    while (container->ranges[i++].id != last);
    put_close(out, ']');
}

/* What a partition of another node holds is what that node has said last. */
static void put_storage(Buf *out, const Container *container, uint64_t now_us)
{
    put_open(out, "physicalPartitionStorageInfoCollection", '[');
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        put_open(out, NULL, '{');
        put_id(out, "id", range->id);
        KnownUsage known = handle_known_usage(container_handle_at(container, i), now_us);
        put_number(out, "storageInKB", (known.held.bytes + 1023) / 1024);
        put_close(out, '}');
    }
    put_close(out, ']');
}

/* If one merge is refused, those that were ordered before it are still done. */
static Status order_all(ApiRequest *r, const MoveOrder *orders, size_t count, uint64_t *events,
                        Error *err)
{
    Catalog *catalog = r->api->options.catalog;
    if (catalog_is_moving(catalog, r->container))
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "Partitions of the container are being split or merged; try again when "
                         "that is over.");
    for (size_t i = 0; i < count; i++)
        TRY(catalog_order_move(catalog, &orders[i], &events[i], err));
    return STATUS_OK;
}

Status containers_merge(ApiRequest *r, Error *err)
{
    bool is_dry = false;
    TRY(read_dry_run(r, &is_dry, err));
    if (is_dry)
        request_audit_forget(r);
    const Container *container = r->container;
    request_audit_subject(r, container->info.id, container->info.rid);
    MoveOrder *orders = NULL;
    size_t count =
        catalog_plan_merges(r->api->options.catalog, r->snapshot, container, r->arena, &orders);
    uint64_t *events = ARENA_NEW_ARRAY(r->arena, uint64_t, count);
    if (!is_dry)
        TRY(order_all(r, orders, count, events, err));
    AUTO(buf_done) Buf text;
    buf_init(&text, ORRERY_JSON_BYTES_MAX);
    put_open(&text, NULL, '{');
    put_bool(&text, "isDryRun", is_dry);
    put_storage(&text, container, r->http->begun_us);
    put_open(&text, "merges", '[');
    for (size_t i = 0; i < count; i++) {
        put_open(&text, NULL, '{');
        put_run(&text, container, orders[i].range_first, orders[i].range_last);
        if (!is_dry)
            put_number(&text, "event", events[i]);
        put_close(&text, '}');
    }
    put_close(&text, ']');
    put_close(&text, '}');
    respond_text(r, 202, SLICE("application/json"), arena_copy(r->arena, buf_view(&text)));
    return STATUS_OK;
}
