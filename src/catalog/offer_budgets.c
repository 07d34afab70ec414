/* offer_budgets.c - divides the throughput of offers over the budgets of partitions, and tells what
 * an offer shows of their use.
 *
 * Each physical partition of the owner gets an equal part, whatever it stores and however many
 * requests it gets (I9). That is why a hot partition throttles, as in the service.
 */
#include "catalog/offer_budgets_int.h"

#include "catalog/catalog.h"
#include "catalog/partition_handle_int.h"

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
typedef struct OfferBudgets {
    const Database *database;   /* the owner of a shared offer, otherwise NULL */
    const Container *container; /* the owner of another offer; both are NULL if the owner is gone */
    size_t count;
} OfferBudgets;

static OfferBudgets find_budgets(const Snapshot *snapshot, const Offer *offer)
{
    OfferBudgets budgets = {0};
    if (offer->container == 0) {
        budgets.database = snapshot_database(snapshot, offer->database);
        budgets.count = budgets.database == NULL ? 0 : budgets.database->partitions;
    } else {
        budgets.container = snapshot_container(snapshot, offer->database, offer->container);
        budgets.count = budgets.container == NULL ? 0 : budgets.container->range_count;
    }
    return budgets;
}

static Budget *budget_at(const OfferBudgets *budgets, size_t i)
{
    ASSERT(i < budgets->count);
    return budgets->database != NULL ? budgets->database->budgets[i]
                                     : budgets->container->handles[i].budget;
}

void offer_budgets_set(const Snapshot *snapshot, const Offer *offer, const ProvisionRules *rules,
                       uint64_t now_us)
{
    OfferBudgets budgets = find_budgets(snapshot, offer);
    if (budgets.count == 0)
        return;
    BudgetTerms terms = terms_of(offer, budgets.count, rules);
    for (size_t i = 0; i < budgets.count; i++)
        budget_set(budget_at(&budgets, i), &terms, now_us);
}

void offer_budgets_set_serverless(const Container *container, const ProvisionRules *rules,
                                  uint64_t now_us)
{
    BudgetTerms terms = {
        .share = (uint64_t)100 * PROVISION_SERVERLESS_RU,
        .is_enforced = rules->is_enforced,
    };
    for (size_t i = 0; i < container->range_count; i++)
        handle_set_terms(container_handle_at(container, i), &terms, now_us);
}

static void set_all_serverless(const Snapshot *snapshot, const ProvisionRules *rules,
                               uint64_t now_us)
{
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk))
        offer_budgets_set_serverless(walk.container, rules, now_us);
}

void offer_budgets_set_all(const Snapshot *snapshot, const ProvisionRules *rules, uint64_t now_us)
{
    if (rules->is_serverless) {
        set_all_serverless(snapshot, rules, now_us);
        return;
    }
    const Offer *offer;
    for (uint32_t from = 0; (offer = snapshot_next_offer(snapshot, from)) != NULL;
         from = offer->info.number + 1)
        offer_budgets_set(snapshot, offer, rules, now_us);
}

/* ---- what is shown ---- */

/* What the partitions of containers hold and have spent, here and on other nodes. */
typedef struct Consumption {
    uint64_t bytes_ever;
    Charge busiest; /* of one second of one partition */
} Consumption;

static void add_container(Consumption *sum, const Container *container, uint64_t now_us)
{
    for (size_t i = 0; i < container->range_count; i++) {
        KnownUsage known = handle_known_usage(container_handle_at(container, i), now_us);
        sum->bytes_ever += known.held.bytes_ever;
        sum->busiest = known.busiest > sum->busiest ? known.busiest : sum->busiest;
    }
}

/* Of a shared offer also budgets that no container spends any more. */
static void add_database(Consumption *sum, const Snapshot *snapshot, const Database *database,
                         uint64_t now_us)
{
    uint32_t number = database->info.number;
    const Container *container;
    for (uint32_t from = 0; (container = snapshot_next_container(snapshot, number, from)) != NULL;
         from = container->info.number + 1) {
        if (container->offer == 0)
            add_container(sum, container, now_us);
    }
    for (uint32_t i = 0; i < database->partitions; i++) {
        Charge second = budget_busiest_second(database->budgets[i], now_us);
        sum->busiest = second > sum->busiest ? second : sum->busiest;
    }
}

/* The bytes are those of items. The index is left out, because its size is only estimated. A
 * partition whose owner has said nothing of late counts with the most that it was known to hold. */
OfferUsage catalog_offer_usage(const Snapshot *snapshot, const Offer *offer, uint64_t now_us)
{
    OfferBudgets budgets = find_budgets(snapshot, offer);
    Consumption sum = {0};
    if (budgets.container != NULL)
        add_container(&sum, budgets.container, now_us);
    if (budgets.database != NULL)
        add_database(&sum, snapshot, budgets.database, now_us);
    OfferUsage usage = {.storage_kb = (sum.bytes_ever + 1023) / 1024};
    /* The busiest partition decides, because each gets an equal part of what is provisioned. */
    usage.ru = (sum.busiest * budgets.count + 99) / 100;
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
