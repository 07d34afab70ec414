/* throttle.c - see throttle_int.h. */
#include "api/core/throttle_int.h"

#include "api/core/usage_int.h"

/* x-ms-cosmos-priority-level: High, which is the default, or Low. */
static Status parse_priority(Slice text, bool *is_low, Error *err)
{
    *is_low = slice_equal_nocase(text, SLICE("Low"));
    if (*is_low || text.len == 0 || slice_equal_nocase(text, SLICE("High")))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "x-ms-cosmos-priority-level must be High or Low, not '%.*s'.",
                     SLICE_CUT(text, 40));
}

/* x-ms-cosmos-throughput-bucket. A bucket that the offer does not have limits nothing. */
static Status parse_bucket(Slice text, uint8_t *bucket, Error *err)
{
    uint64_t number = 0;
    if (text.len > 0 && (!slice_to_u64(text, &number) || number < 1 || number > BUDGET_BUCKETS_MAX))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "x-ms-cosmos-throughput-bucket must be a number from 1 to %d, not '%.*s'.",
                         BUDGET_BUCKETS_MAX, SLICE_CUT(text, 40));
    *bucket = (uint8_t)number;
    return STATUS_OK;
}

Status throttle_classify(ApiRequest *r, Error *err)
{
    Slice priority = slice_trim(request_header(r, "x-ms-cosmos-priority-level"));
    Slice bucket = slice_trim(request_header(r, "x-ms-cosmos-throughput-bucket"));
    TRY(parse_priority(priority, &r->class.is_low, err));
    return parse_bucket(bucket, &r->class.bucket, err);
}

/* What the budget says, unless a fault was asked for. */
static BudgetAnswer admit(const ApiRequest *r, PartitionHandle *partition, Charge ahead,
                          uint64_t now_us, bool is_asked, uint32_t *wait_ms)
{
    const Api *api = r->api;
    if (UNLIKELY(api->chaos != NULL) &&
        api->chaos_hooks.throttles(api->chaos, handle_range(partition), is_asked, wait_ms))
        return BUDGET_SPENT;
    return handle_admit(partition, r->class, ahead, now_us, wait_ms);
}

Status throttle_admit_after(ApiRequest *r, PartitionHandle *partition, Charge ahead,
                            uint64_t now_us, Error *err)
{
    uint32_t wait_ms = 0;
    r->space = handle_range(partition)->space;
    if (UNLIKELY(!handle_is_local(partition)))
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                         "Another node of the cluster serves partition key range %u.",
                         handle_range(partition)->id);
    BudgetAnswer answer = admit(r, partition, ahead, now_us, true, &wait_ms);
    if (LIKELY(answer == BUDGET_ADMITTED))
        return STATUS_OK;
    r->refused_by = partition; /* however many operations it has, one request was turned away */
    bool is_bucket = answer == BUDGET_BUCKET_SPENT;
    Status status = error_set(
        err, STATUS_THROTTLED, is_bucket ? SUB_THROUGHPUT_BUCKET_SPENT : SUB_REQUEST_RATE_TOO_LARGE,
        "Request rate is large: partition key range %u is allotted %.2f request units a "
        "second%s. Nothing was done; try again after %u ms.",
        handle_range(partition)->id, (double)handle_share(partition) / 100,
        is_bucket ? ", of which the request's throughput bucket has used its part" : "", wait_ms);
    err->retry_after_ms = wait_ms;
    return status;
}

Status throttle_admit(ApiRequest *r, PartitionHandle *partition, uint64_t now_us, Error *err)
{
    return throttle_admit_after(r, partition, 0, now_us, err);
}

bool throttle_has_credit(const ApiRequest *r, PartitionHandle *partition, uint64_t now_us)
{
    uint32_t wait_ms = 0;
    return admit(r, partition, 0, now_us, false, &wait_ms) == BUDGET_ADMITTED;
}

void throttle_pay(ApiRequest *r, PartitionHandle *partition, Charge charge, uint64_t now_us)
{
    handle_charge(partition, r->class, charge, now_us);
    usage_paid(r, partition, charge, now_us);
}
