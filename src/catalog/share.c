/* share.c - from offers to budgets, and back: what each partition is allotted, and what an offer
 * shows of what they use.
 *
 * Throughput is divided evenly over the physical partitions of its owner, whatever is stored where
 * and asked of whom: that is what makes a hot partition visible.
 */
#include "catalog/catalog_int.h"

static BudgetTerms terms_of(const Offer *offer, size_t partitions, const ProvisionRules *rules)
{
    BudgetTerms terms = {
        .share = provision_share(&offer->provision, partitions),
        .is_enforced = rules->is_enforced,
        .has_burst = rules->has_burst,
        .is_autoscale = offer->provision.mode == PROVISION_AUTOSCALE,
        .bucket_default = offer->buckets.chosen,
    };
    memcpy(terms.bucket_percent, offer->buckets.percent, sizeof(terms.bucket_percent));
    return terms;
}

/* The budgets that an offer's throughput is divided over. */
typedef struct Sharers {
    const Database *database;   /* of a shared offer, */
    const Container *container; /* or of one's own; both NULL: the owner is gone */
    size_t count;
} Sharers;

static Sharers find_sharers(const Snapshot *snapshot, const Offer *offer)
{
    Sharers sharers = {0};
    if (offer->container == 0) {
        sharers.database = snapshot_database(snapshot, offer->database);
        sharers.count = sharers.database == NULL ? 0 : sharers.database->partitions;
    } else {
        sharers.container = snapshot_container(snapshot, offer->database, offer->container);
        sharers.count = sharers.container == NULL ? 0 : sharers.container->range_count;
    }
    return sharers;
}

static Budget *budget_at(const Sharers *sharers, size_t i)
{
    return sharers->database != NULL ? sharers->database->budgets[i]
                                     : sharers->container->ranges[i].budget;
}

void share_offer(const Snapshot *snapshot, const Offer *offer, const ProvisionRules *rules,
                 uint64_t now_us)
{
    Sharers sharers = find_sharers(snapshot, offer);
    if (sharers.count == 0)
        return;
    BudgetTerms terms = terms_of(offer, sharers.count, rules);
    for (size_t i = 0; i < sharers.count; i++)
        budget_set(budget_at(&sharers, i), &terms, now_us);
}

void share_serverless(const Container *container, const ProvisionRules *rules, uint64_t now_us)
{
    BudgetTerms terms = {
        .share = (uint64_t)100 * PROVISION_SERVERLESS_RU,
        .is_enforced = rules->is_enforced,
    };
    for (size_t i = 0; i < container->range_count; i++)
        budget_set(container->ranges[i].budget, &terms, now_us);
}

static void share_all_serverless(const Snapshot *snapshot, const ProvisionRules *rules,
                                 uint64_t now_us)
{
    const Database *database;
    for (uint32_t d = 0; (database = snapshot_next_database(snapshot, d)) != NULL;
         d = database->info.number + 1) {
        const Container *container;
        for (uint32_t c = 0;
             (container = snapshot_next_container(snapshot, database->info.number, c)) != NULL;
             c = container->info.number + 1)
            share_serverless(container, rules, now_us);
    }
}

void share_all(const Snapshot *snapshot, const ProvisionRules *rules, uint64_t now_us)
{
    if (rules->is_serverless) {
        share_all_serverless(snapshot, rules, now_us);
        return;
    }
    const Offer *offer;
    for (uint32_t from = 0; (offer = snapshot_next_offer(snapshot, from)) != NULL;
         from = offer->info.number + 1)
        share_offer(snapshot, offer, rules, now_us);
}

/* ---- what is shown ---- */

static uint64_t container_bytes(const Container *container)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < container->range_count; i++)
        bytes += partition_usage(container->ranges[i].partition).bytes_ever;
    return bytes;
}

/* Of items, without the index, of which there are only estimates. */
static uint64_t stored_kb(const Snapshot *snapshot, const Sharers *sharers)
{
    uint64_t bytes = sharers->container != NULL ? container_bytes(sharers->container) : 0;
    const Container *container = NULL;
    uint32_t database = sharers->database != NULL ? sharers->database->info.number : 0;
    for (uint32_t from = 0; sharers->database != NULL &&
                            (container = snapshot_next_container(snapshot, database, from)) != NULL;
         from = container->info.number + 1)
        bytes += container->offer == 0 ? container_bytes(container) : 0;
    return (bytes + 1023) / 1024;
}

OfferUsage catalog_offer_usage(const Snapshot *snapshot, const Offer *offer, uint64_t now_us)
{
    Sharers sharers = find_sharers(snapshot, offer);
    OfferUsage usage = {.storage_kb = stored_kb(snapshot, &sharers)};
    Charge busiest = 0;
    for (size_t i = 0; i < sharers.count; i++) {
        Charge second = budget_busiest_second(budget_at(&sharers, i), now_us);
        busiest = second > busiest ? second : busiest;
    }
    /* The busiest partition decides for all: each gets an equal share of what is there. */
    usage.ru = (busiest * sharers.count + 99) / 100;
    if (usage.storage_kb < offer->storage_kb_ever)
        usage.storage_kb = offer->storage_kb_ever;
    return usage;
}

ProvisionHistory catalog_provision_history(const Snapshot *snapshot, const Offer *offer,
                                           const OfferUsage *usage)
{
    const Container *container =
        offer->container == 0 ? NULL
                              : snapshot_container(snapshot, offer->database, offer->container);
    return (ProvisionHistory){
        .ru_ever = offer->ru_ever,
        .storage_kb = usage->storage_kb,
        .shared_containers =
            offer->container == 0 ? (uint32_t)snapshot_shared_count(snapshot, offer->database) : 0,
        .is_fixed = container != NULL && container->partition_key.kind == PARTITION_NONE,
    };
}
