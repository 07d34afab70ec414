/* request_audit.c - see request_audit_int.h. */
#include "api/core/request_audit_int.h"

static const Slice ORRERY_PREFIX = SLICE_INIT("/_orrery");

static bool is_orrery(const ApiRequest *r)
{
    return slice_starts_with(r->http->path, ORRERY_PREFIX);
}

/* Resources whose changes are not the control plane's: items, and what is made from them. */
static bool is_data(ResourceType type)
{
    return type == RESOURCE_DOCUMENT || type == RESOURCE_ATTACHMENT || type == RESOURCE_CONFLICT;
}

static bool is_change(const ApiRequest *r)
{
    if (r->is_head || slice_equal(r->http->method, SLICE("GET")) || r->operation == OPERATION_QUERY)
        return false;
    if (is_orrery(r))
        return true;
    if (is_data(r->address.type))
        return false;
    /* Of POSTs to single resources: running a procedure, and deleting the items of a key, are not;
     * a merge of partitions is. */
    return r->operation != OPERATION_EXECUTE ||
           slice_equal_nocase(r->address.operation, SLICE("partitionmerge"));
}

static bool can_upsert(ResourceType type)
{
    return type == RESOURCE_STORED_PROCEDURE || type == RESOURCE_TRIGGER ||
           type == RESOURCE_USER_DEFINED_FUNCTION || type == RESOURCE_USER ||
           type == RESOURCE_PERMISSION || type == RESOURCE_DOCUMENT;
}

static Slice operation_name(const ApiRequest *r)
{
    static const Slice names[OPERATION_COUNT] = {
        [OPERATION_LIST] = SLICE_INIT("list"),       [OPERATION_CREATE] = SLICE_INIT("create"),
        [OPERATION_QUERY] = SLICE_INIT("query"),     [OPERATION_READ] = SLICE_INIT("read"),
        [OPERATION_REPLACE] = SLICE_INIT("replace"), [OPERATION_PATCH] = SLICE_INIT("patch"),
        [OPERATION_DELETE] = SLICE_INIT("delete"),   [OPERATION_EXECUTE] = SLICE_INIT("execute"),
    };
    if (r->address.operation.len > 0)
        return arena_copy(r->arena, r->address.operation);
    if (r->operation == OPERATION_CREATE && can_upsert(r->address.type) &&
        request_flag(r, "x-ms-documentdb-is-upsert"))
        return SLICE("upsert");
    return names[r->operation];
}

/* A principal that was verified has a name. */
static Slice principal_kind(const ApiRequest *r)
{
    if (r->principal.name.len == 0)
        return request_header(r, "authorization").len == 0 ? SLICE("none") : SLICE("unknown");
    switch (r->principal.kind) {
    case PRINCIPAL_KEY:
    case PRINCIPAL_READ_ONLY_KEY:
        break;
    case PRINCIPAL_RESOURCE_TOKEN:
        return SLICE("token");
    case PRINCIPAL_IDENTITY:
        return SLICE("identity");
    }
    return SLICE("key");
}

void request_audit_begin(ApiRequest *r, bool is_authorised)
{
    r->audit = NULL; /* a request may run again */
    if (LIKELY(r->api->options.audit == NULL) || (is_authorised && !is_change(r)))
        return;
    const Address *address = &r->address;
    Slice parameters = r->http->path;
    AuditRecord *record = ARENA_NEW(r->arena, AuditRecord);
    *record = (AuditRecord){
        .event = is_authorised ? AUDIT_CHANGE : AUDIT_REFUSAL,
        .activity_id = r->activity_id,
        .client = arena_copy(r->arena, r->http->peer),
        .principal_kind = principal_kind(r),
        .principal_name = r->principal.name,
        .method = arena_copy(r->arena, r->http->method),
        .path = arena_copy(r->arena, slice_cut(&parameters, '?')),
        .operation = operation_name(r),
        .resource_type = is_orrery(r) ? SLICE("_orrery") : address_segment(address->type),
    };
    if (is_authorised && !address->is_feed && address->part_count > 0)
        record->id = arena_copy(r->arena, address->parts[address->part_count - 1].id);
    r->audit = record;
}

void request_audit_subject(ApiRequest *r, Slice id, Slice rid)
{
    if (LIKELY(r->audit == NULL))
        return;
    if (id.len > 0)
        r->audit->id = arena_copy(r->arena, id);
    if (rid.len > 0)
        r->audit->rid = arena_copy(r->arena, rid);
}

void request_audit_forget(ApiRequest *r)
{
    r->audit = NULL;
}

void request_audit_end(ApiRequest *r, int status, uint32_t sub_status)
{
    if (LIKELY(r->audit == NULL))
        return;
    r->audit->status = status;
    r->audit->sub_status = sub_status;
    if (!audit_post(r->api->options.audit, r->audit))
        metrics_add(http_loop_metrics(r->http->loop), METRIC_AUDIT_DROPPED, 1);
    r->audit = NULL;
}
