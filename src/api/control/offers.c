/* offers.c - /offers and /offers/{rid}: the reserved throughput of databases and containers. */
#include "api/control/feed_int.h"
#include "api/control/mutation_int.h"
#include "api/control/resource_handlers_int.h"
#include "api/core/response_int.h"

/* Whether partitions are being split or merged, or are about to be, for this throughput. */
static bool is_pending(Catalog *catalog, const Snapshot *snapshot, const Offer *offer)
{
    const Container *container =
        offer->container == 0 ? NULL
                              : snapshot_container(snapshot, offer->database, offer->container);
    return container != NULL && catalog_is_scaling(catalog, snapshot, container);
}

static const WireResource *next_offer(const Feed *feed, const Snapshot *snapshot, uint32_t from,
                                      Arena *arena)
{
    const Offer *offer = snapshot_next_offer(snapshot, from);
    if (offer == NULL)
        return NULL;
    OfferUsage usage = catalog_offer_usage(snapshot, offer, feed->now_us);
    usage.is_pending = is_pending(feed->catalog, snapshot, offer);
    return wire_offer(offer, &usage, arena);
}

static Feed offers_of(const ApiRequest *r)
{
    return (Feed){
        .catalog = r->api->options.catalog,
        .now_us = r->http->begun_us,
        .next = next_offer,
    };
}

Status offers_list(ApiRequest *r, Error *err)
{
    return feed_list(r, offers_of(r), err);
}

Status offers_query(ApiRequest *r, Error *err)
{
    return feed_query(r, offers_of(r), err);
}

static void respond_offer(ApiRequest *r, const Offer *offer, const OfferUsage *usage,
                          const ProvisionHistory *history, const Snapshot *snapshot, Slice charge)
{
    OfferUsage shown = *usage;
    shown.is_pending = is_pending(r->api->options.catalog, snapshot, offer);
    Response response;
    response_begin(r, &response, 200, charge);
    response_header(&response, SLICE("etag"), offer->info.etag);
    response_header(&response, SLICE("content-type"), SLICE("application/json"));
    response_header(&response, SLICE("x-ms-offer-replace-pending"),
                    shown.is_pending ? SLICE("true") : SLICE("false"));
    response_header(
        &response, SLICE("x-ms-cosmos-min-throughput"),
        arena_format(r->arena, "%u", provision_minimum_ru(offer->provision.mode, history)));
    response.body = wire_offer(offer, &shown, r->arena)->body;
    response_send(r, &response);
}

Status offers_read(ApiRequest *r, Error *err)
{
    (void)err;
    if (request_has_version(r, r->offer->info.etag)) {
        respond_unchanged(r, r->offer->info.etag);
        return STATUS_OK;
    }
    OfferUsage usage = catalog_offer_usage(r->snapshot, r->offer, r->http->begun_us);
    ProvisionHistory history = catalog_provision_history(r->snapshot, r->offer, &usage);
    respond_offer(r, r->offer, &usage, &history, r->snapshot, response_charge_read(r));
    return STATUS_OK;
}

static Status number_of(Json content, const char *name, Provision *provision, Error *err)
{
    int64_t ru = 0;
    if (!json_to_i64(json_get(content, slice_from_cstr(name)), &ru) || ru < 0 || ru > UINT32_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The offer's content must have '%s', a whole number of request units.",
                         name);
    provision->ru = (uint32_t)ru;
    return STATUS_OK;
}

/* What the new body asks for. A change between manual and autoscale must be asked for by a header;
 * the number may then be in the body or follow from the old one. */
static Status parse_replacement(const ApiRequest *r, Json body, Provision *out, Error *err)
{
    Json content = json_get(body, SLICE("content"));
    if (!json_is(content, JSON_OBJECT))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The offer must have 'content', an object with 'offerThroughput'.");
    Json settings = json_get(content, SLICE("offerAutopilotSettings"));
    bool has_settings = json_is(settings, JSON_OBJECT);
    ProvisionMode old = r->offer->provision.mode;
    OfferUsage usage = catalog_offer_usage(r->snapshot, r->offer, r->http->begun_us);
    ProvisionHistory history = catalog_provision_history(r->snapshot, r->offer, &usage);
    uint32_t increment = 0;
    TRY(request_increment(settings, &increment, err));
    if (request_flag(r, "x-ms-cosmos-migrate-offer-to-autopilot")) {
        *out = provision_migrate(&r->offer->provision, PROVISION_AUTOSCALE, &history);
        out->increment_percent = increment;
        return has_settings ? number_of(settings, "maxThroughput", out, err) : STATUS_OK;
    }
    if (request_flag(r, "x-ms-cosmos-migrate-offer-to-manual-throughput")) {
        *out = provision_migrate(&r->offer->provision, PROVISION_MANUAL, &history);
        return STATUS_OK;
    }
    out->mode = old;
    out->increment_percent = increment;
    if (old == PROVISION_AUTOSCALE && has_settings)
        return number_of(settings, "maxThroughput", out, err);
    if (old == PROVISION_AUTOSCALE || has_settings)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "This offer is %s; to change that, send "
                         "x-ms-cosmos-migrate-offer-to-%s: true.",
                         old == PROVISION_AUTOSCALE ? "autoscale" : "manual",
                         old == PROVISION_AUTOSCALE ? "manual-throughput" : "autopilot");
    return number_of(content, "offerThroughput", out, err);
}

/* The names of the offer and its owner cannot be replaced. */
static Status check_identity(const ApiRequest *r, Json body, Error *err)
{
    const struct {
        Slice name;
        Slice value;
    } rows[] = {
        {SLICE("id"), r->offer->info.id},
        {SLICE("_rid"), r->offer->info.rid},
        {SLICE("offerResourceId"), r->offer->owner_rid},
        {SLICE("resource"), wire_offer_owner(r->offer, r->arena)},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Json value = json_get(body, rows[i].name);
        if (json_is(value, JSON_UNDEFINED))
            continue;
        if (!json_is(value, JSON_STRING) || !slice_equal(json_string(value), rows[i].value))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "The offer's '%.*s' is '%.*s' and cannot be changed.",
                             SLICE_ARG(rows[i].name), SLICE_ARG(rows[i].value));
    }
    return STATUS_OK;
}

static Status buckets_refused(Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "The offer's 'throughputBuckets' must be a list of objects, each with an 'id' "
                     "of its own from 1 to %d and a 'maxThroughputPercentage' from 1 to 100; one "
                     "may have 'isDefaultBucket': true.",
                     BUDGET_BUCKETS_MAX);
}

static Status parse_bucket(Json bucket, OfferBuckets *out, Error *err)
{
    int64_t id = 0;
    int64_t percent = 0;
    Json chosen = json_get(bucket, SLICE("isDefaultBucket"));
    bool is_chosen = json_is(chosen, JSON_BOOL) && json_bool(chosen);
    bool good =
        json_to_i64(json_get(bucket, SLICE("id")), &id) && id >= 1 && id <= BUDGET_BUCKETS_MAX &&
        json_to_i64(json_get(bucket, SLICE("maxThroughputPercentage")), &percent) && percent >= 1 &&
        percent <= 100 && out->percent[id - 1] == 0 && (!is_chosen || out->chosen == 0);
    if (!good)
        return buckets_refused(err);
    out->percent[id - 1] = (uint8_t)percent;
    if (is_chosen)
        out->chosen = (uint8_t)id;
    return STATUS_OK;
}

/* Clients that do not know of buckets leave them out; that does not remove them. */
static Status parse_buckets(Json content, CatalogChange *change, Error *err)
{
    Json list = json_get(content, SLICE("throughputBuckets"));
    if (json_is(list, JSON_UNDEFINED) || json_is(list, JSON_NULL))
        return STATUS_OK;
    change->has_buckets = true;
    if (!json_is(list, JSON_ARRAY))
        return buckets_refused(err);
    for (JsonIter it = json_iter(list); json_next(&it);)
        TRY(parse_bucket(it.value, &change->buckets, err));
    return STATUS_OK;
}

static void answer_replaced(ApiRequest *r, const CatalogChange *change)
{
    respond_offer(r, change->result_offer, &change->usage, &change->history,
                  catalog_read(&r->loop->reader), response_charge_change(r));
}

enum { PENDING_RETRY_MS = 500 };

/* Partitions are being made for the present throughput, so it cannot be replaced yet. */
static Status check_pending(const ApiRequest *r, Error *err)
{
    if (!is_pending(r->api->options.catalog, r->snapshot, r->offer))
        return STATUS_OK;
    Status status = error_set(err, STATUS_THROTTLED, SUB_OFFER_REPLACE_PENDING,
                              "The container's partitions are being split or merged. Its "
                              "throughput can be replaced again when that is over.");
    err->retry_after_ms = PENDING_RETRY_MS;
    return status;
}

Status offers_replace(ApiRequest *r, Error *err)
{
    TRY(check_pending(r, err));
    Json body;
    TRY(request_json(r, &body, err));
    TRY(check_identity(r, body, err));
    Mutation *mutation = mutation_new(r, CATALOG_REPLACE_OFFER);
    TRY(parse_replacement(r, body, &mutation->change.provision, err));
    TRY(parse_buckets(json_get(body, SLICE("content")), &mutation->change, err));
    mutation->change.offer = r->offer->info.number;
    mutation->answer = answer_replaced;
    mutation_submit(mutation);
    return STATUS_OK;
}
