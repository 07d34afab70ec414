/* provision.h - the rules of reserved throughput: how much may be asked for, and what it gives.
 *
 * Throughput is reserved in request units a second, either fixed (manual) or up to a maximum
 * (autoscale). What may be asked for has an upper bound, a step, and a lower bound that rises
 * with what was ever reserved and ever stored, because a resource does not shrink for free.
 *
 * Threads    Nothing here has state.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#define PROVISION_MANUAL_RU_MIN    400
#define PROVISION_MANUAL_RU_STEP   100
#define PROVISION_AUTO_RU_MIN      1000
#define PROVISION_AUTO_RU_STEP     1000
#define PROVISION_RU_MAX           1000000
#define PROVISION_FIXED_RU_MAX     10000 /* of an old-style container, which has one partition */
#define PROVISION_PARTITION_RU     10000 /* default of ProvisionRules.partition_ru */
#define PROVISION_PARTITION_RU_MIN 400   /* its least value: bounds the number of partitions */
#define PROVISION_NEW_PARTITION_RU 6000  /* default of ProvisionRules.new_partition_ru */
#define PROVISION_SHARED_FREE      25    /* containers that a shared minimum covers */
#define PROVISION_SERVERLESS_RU    5000  /* what a physical partition serves without a provision */

typedef enum ProvisionMode { PROVISION_MANUAL, PROVISION_AUTOSCALE } ProvisionMode;

typedef struct Provision {
    ProvisionMode mode;
    uint32_t ru;                /* manual: request units a second; autoscale: the maximum */
    uint32_t increment_percent; /* of autoscale, kept for clients that send it; 0 if none did */
} Provision;

#define PROVISION_INCREMENT_MAX 100

/* What the administrator decides about throughput. */
typedef struct ProvisionRules {
    uint32_t partition_ru;     /* that one physical partition serves; with more, it is split */
    uint32_t new_partition_ru; /* for each partition of a new container with manual throughput; 0
                                  means partition_ru */
    Provision fallback;        /* of a container that asks for none and has none to share */
    bool is_enforced;          /* if not, charges are reported, and no request is refused */
    bool has_burst;
    bool is_serverless; /* nothing is provisioned; PROVISION_SERVERLESS_RU for each partition */
} ProvisionRules;

/* The rules of the service. */
#define PROVISION_RULES_DEFAULT                                                              \
    ((ProvisionRules){.partition_ru = PROVISION_PARTITION_RU,                                \
                      .new_partition_ru = PROVISION_NEW_PARTITION_RU,                        \
                      .fallback = {.mode = PROVISION_MANUAL, .ru = PROVISION_MANUAL_RU_MIN}, \
                      .is_enforced = true,                                                   \
                      .has_burst = true})

/* What a minimum depends on. */
typedef struct ProvisionHistory {
    uint32_t ru_ever;           /* the most ever provisioned, 0 for a new resource */
    uint64_t storage_kb;        /* the most ever stored */
    uint32_t shared_containers; /* containers that share a database's throughput; 0 otherwise */
    bool is_fixed;              /* an old-style container: at most PROVISION_FIXED_RU_MAX */
} ProvisionHistory;

/* What a request asks for: 'manual' is the text of x-ms-offer-throughput (its pointer is NULL if
 * the header was not sent) and '*autoscale_max' the maxThroughput of the autoscale settings (NULL
 * if they were not sent). STATUS_BAD_REQUEST if both were sent, or if the number is outside the
 * bounds of a new resource or not a whole step. '*found' is false if neither was sent. */
MUST_USE Status provision_parse(Slice manual, const double *autoscale_max, Provision *out,
                                bool *found, Error *err);

/* STATUS_BAD_REQUEST naming the bounds if 'provision' is outside them or not in a whole step. */
MUST_USE Status provision_check(const Provision *provision, const ProvisionHistory *history,
                                Error *err);

/* The least that provision_check accepts (I1): the header x-ms-cosmos-min-throughput. */
uint32_t provision_minimum_ru(ProvisionMode mode, const ProvisionHistory *history);

/* What a resource gets when it moves to the other mode without a number (I2): from manual to
 * autoscale the next maximum that is not less; from autoscale to manual what was its maximum. */
Provision provision_migrate(const Provision *from, ProvisionMode to,
                            const ProvisionHistory *history);

/* The throughput at the moment: of an autoscale provision what the last seconds used, 'used_ru',
 * but at least a tenth of the maximum. */
uint32_t provision_current_ru(const Provision *provision, uint64_t used_ru);

/* Physical partitions that it needs (I3): with fewer, they are split. */
uint32_t provision_partitions(const Provision *provision, const ProvisionRules *rules);

/* Physical partitions of a new container: leaves room to raise manual throughput without a split.
 * If there are more than these, they may be merged. */
uint32_t provision_partitions_new(const Provision *provision, const ProvisionRules *rules);

/* What each of 'partitions' is allotted, in hundredths of request units a second: an equal share of
 * the throughput, or of the maximum if it is autoscale. */
uint64_t provision_share(const Provision *provision, size_t partitions);
