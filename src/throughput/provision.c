/* provision.c - see provision.h.
 *
 *     least manual     = max(400 + 100 * s, GB, ever / 100)      in steps of 100
 *     least autoscale  = max(1000 + 1000 * s, 10 * GB, ever / 10) in steps of 1,000
 *     partitions       = RU / what one serves, at least 1
 *
 * GB is the most ever stored, 'ever' the most ever provisioned and s the containers beyond 25
 * that share a database's throughput; all quotients are rounded up.
 */
#include "throughput/provision.h"

#include <stdio.h>

#define KB_PER_GB (UINT64_C(1) << 20)

/* The numbers in which the two modes differ. */
typedef struct ModeRules {
    const char *name;
    uint32_t ru_min;
    uint32_t step;
    uint32_t ru_per_container; /* for each container beyond PROVISION_SHARED_FREE */
    uint32_t ru_per_gb;
    uint32_t ever_divisor;
} ModeRules;

static const ModeRules MODES[] = {
    [PROVISION_MANUAL] = {"throughput", PROVISION_MANUAL_RU_MIN, PROVISION_MANUAL_RU_STEP, 100, 1,
                          100},
    [PROVISION_AUTOSCALE] = {"autoscale maximum throughput", PROVISION_AUTO_RU_MIN,
                             PROVISION_AUTO_RU_STEP, 1000, 10, 10},
};

static uint32_t maximum_ru(const ProvisionHistory *history);
static Status out_of_bounds(ProvisionMode mode, const ProvisionHistory *history, Slice found,
                            Error *err);
static uint64_t divide_up(uint64_t value, uint64_t by);

Status provision_parse(Slice manual, const double *autoscale_max, Provision *out, bool *found,
                       Error *err)
{
    static const ProvisionHistory NEW = {0};
    if (manual.ptr != NULL && autoscale_max != NULL)
        return error_set(
            err, STATUS_BAD_REQUEST, SUB_NONE,
            "Throughput and autoscale settings were both sent; send "
            "x-ms-offer-throughput or x-ms-cosmos-offer-autopilot-settings, not both.");
    Provision provision = {.mode = PROVISION_MANUAL};
    if (manual.ptr != NULL) {
        uint64_t ru;
        if (!slice_to_u64(slice_trim(manual), &ru) || ru > UINT32_MAX)
            return out_of_bounds(PROVISION_MANUAL, &NEW, slice_first(manual, 32), err);
        provision.ru = (uint32_t)ru;
    } else if (autoscale_max != NULL) {
        provision.mode = PROVISION_AUTOSCALE;
        /* The comparison is false for NaN as well. */
        bool fits = *autoscale_max >= 0 && *autoscale_max <= PROVISION_RU_MAX;
        provision.ru = fits ? (uint32_t)*autoscale_max : 0;
        if (!fits || provision.ru != *autoscale_max) {
            char text[32];
            int len = snprintf(text, sizeof(text), "%.10g", *autoscale_max);
            return out_of_bounds(PROVISION_AUTOSCALE, &NEW, slice_make(text, (size_t)len), err);
        }
    }
    *found = manual.ptr != NULL || autoscale_max != NULL;
    if (*found)
        TRY(provision_check(&provision, &NEW, err));
    *out = provision;
    return STATUS_OK;
}

Status provision_check(const Provision *provision, const ProvisionHistory *history, Error *err)
{
    const ModeRules *rules = &MODES[provision->mode];
    if (provision->ru >= provision_minimum_ru(provision->mode, history) &&
        provision->ru <= maximum_ru(history) && provision->ru % rules->step == 0)
        return STATUS_OK;
    char text[16];
    int len = snprintf(text, sizeof(text), "%u", provision->ru);
    return out_of_bounds(provision->mode, history, slice_make(text, (size_t)len), err);
}

uint32_t provision_minimum_ru(ProvisionMode mode, const ProvisionHistory *history)
{
    const ModeRules *rules = &MODES[mode];
    uint64_t extra = history->shared_containers > PROVISION_SHARED_FREE
                         ? history->shared_containers - PROVISION_SHARED_FREE
                         : 0;
    uint64_t ru = rules->ru_min + extra * rules->ru_per_container;
    uint64_t by_storage = divide_up(history->storage_kb, KB_PER_GB) * rules->ru_per_gb;
    uint64_t by_past = divide_up(history->ru_ever, rules->ever_divisor);
    ru = by_storage > ru ? by_storage : ru;
    ru = by_past > ru ? by_past : ru;
    ru = divide_up(ru, rules->step) * rules->step;
    /* A minimum above the maximum would leave no valid value. */
    return ru < maximum_ru(history) ? (uint32_t)ru : maximum_ru(history);
}

Provision provision_migrate(const Provision *from, ProvisionMode to,
                            const ProvisionHistory *history)
{
    uint32_t step = MODES[to].step;
    uint32_t ru = (uint32_t)(divide_up(from->ru, step) * step);
    uint32_t least = provision_minimum_ru(to, history);
    return (Provision){.mode = to, .ru = ru > least ? ru : least};
}

uint32_t provision_current_ru(const Provision *provision, uint64_t used_ru)
{
    if (provision->mode == PROVISION_MANUAL || used_ru >= provision->ru)
        return provision->ru;
    uint32_t floor = provision->ru / 10;
    return used_ru > floor ? (uint32_t)used_ru : floor;
}

static uint32_t partitions_of(const Provision *provision, uint32_t partition_ru)
{
    uint32_t count = (uint32_t)divide_up(provision->ru, partition_ru);
    return count > 0 ? count : 1;
}

uint32_t provision_partitions(const Provision *provision, const ProvisionRules *rules)
{
    return partitions_of(provision, rules->partition_ru);
}

uint32_t provision_partitions_new(const Provision *provision, const ProvisionRules *rules)
{
    bool has_own = provision->mode == PROVISION_MANUAL && rules->new_partition_ru != 0;
    return partitions_of(provision, has_own ? rules->new_partition_ru : rules->partition_ru);
}

uint64_t provision_share(const Provision *provision, size_t partitions)
{
    ASSERT(partitions > 0);
    return (uint64_t)provision->ru * 100 / partitions;
}

static uint32_t maximum_ru(const ProvisionHistory *history)
{
    return history->is_fixed ? PROVISION_FIXED_RU_MAX : PROVISION_RU_MAX;
}

static Status out_of_bounds(ProvisionMode mode, const ProvisionHistory *history, Slice found,
                            Error *err)
{
    uint32_t least = provision_minimum_ru(mode, history);
    uint64_t ru;
    char low[96] = ""; /* SDKs search for this sentence */
    if (slice_to_u64(found, &ru) && ru < least)
        (void)snprintf(low, sizeof(low),
                       "Requested throughput %llu is less than required minimum throughput %u. ",
                       (unsigned long long)ru, least);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "%sThe %s must be between %u and %u request units a second, inclusive, in "
                     "increments of %u; found '%.*s'.",
                     low, MODES[mode].name, least, maximum_ru(history), MODES[mode].step,
                     SLICE_ARG(found));
}

static uint64_t divide_up(uint64_t value, uint64_t by)
{
    ASSERT(by > 0);
    return value / by + (value % by != 0);
}
