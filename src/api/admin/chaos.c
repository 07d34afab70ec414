/* chaos.c - see chaos_int.h. */
#include "api/admin/chaos_int.h"

#include "api/admin/chaos_delay_int.h"
#include "api/core/response_int.h"
#include "base/mem.h"

#include <pthread.h>

struct Chaos {
    const Clock *clock;
    Delays delays;
    _Atomic size_t armed; /* how many rules there are, to be read without the lock */

    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    ChaosRule rules[CHAOS_RULES_MAX];
    size_t count;
    uint32_t id_last;
};

Chaos *chaos_open(const Clock *clock)
{
    Chaos *chaos = MEM_NEW(Chaos);
    chaos->clock = clock;
    int failed = pthread_mutex_init(&chaos->lock, NULL);
    ASSERT(failed == 0);
    delays_open(&chaos->delays);
    return chaos;
}

void chaos_close(Chaos *chaos)
{
    if (chaos == NULL)
        return;
    delays_close(&chaos->delays);
    (void)pthread_mutex_destroy(&chaos->lock);
    mem_free(chaos);
}

/* ---- rules ---- */

static void lock(Chaos *chaos)
{
    (void)pthread_mutex_lock(&chaos->lock);
}

static void unlock(Chaos *chaos)
{
    atomic_store(&chaos->armed, chaos->count);
    (void)pthread_mutex_unlock(&chaos->lock);
}

/* Removes the rules that will not act any more; under the lock. */
static void sweep(Chaos *chaos)
{
    uint64_t now_us = clock_monotonic_us(chaos->clock);
    size_t kept = 0;
    for (size_t i = 0; i < chaos->count; i++) {
        const ChaosRule *rule = &chaos->rules[i];
        bool is_over = rule->left == 0 || (rule->until_us != 0 && rule->until_us <= now_us);
        if (!is_over)
            chaos->rules[kept++] = *rule;
    }
    chaos->count = kept;
}

Status chaos_arm(Chaos *chaos, ChaosRule *rule, Error *err)
{
    ASSERT(rule->percent <= 100);
    ASSERT(rule->delay_ms <= CHAOS_DELAY_MS_MAX);
    lock(chaos);
    sweep(chaos);
    bool has_room = chaos->count < CHAOS_RULES_MAX;
    if (has_room) {
        rule->id = ++chaos->id_last;
        random_init(&rule->random, rule->seed);
        chaos->rules[chaos->count++] = *rule;
    }
    unlock(chaos);
    if (has_room)
        return STATUS_OK;
    return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                     "%d rules are armed, which is the limit; DELETE /_orrery/chaos clears them.",
                     CHAOS_RULES_MAX);
}

size_t chaos_clear(Chaos *chaos)
{
    lock(chaos);
    sweep(chaos);
    size_t count = chaos->count;
    chaos->count = 0;
    unlock(chaos);
    return count;
}

size_t chaos_rules(Chaos *chaos, ChaosRule out[CHAOS_RULES_MAX])
{
    lock(chaos);
    sweep(chaos);
    size_t count = chaos->count;
    memcpy(out, chaos->rules, count * sizeof(*out));
    unlock(chaos);
    return count;
}

static void act(ChaosRule *rule)
{
    rule->acted++;
    if (rule->left != UINT64_MAX)
        rule->left--;
}

static bool is_armed(const Chaos *chaos)
{
    return atomic_load_explicit(&chaos->armed, memory_order_relaxed) > 0;
}

/* The first rule about this range, or NULL; under the lock. */
static ChaosRule *find_of_range(Chaos *chaos, ChaosWhat what, const PartitionRange *range)
{
    sweep(chaos);
    for (size_t i = 0; i < chaos->count; i++) {
        ChaosRule *rule = &chaos->rules[i];
        if (rule->what == what && rule->space == range->space)
            return rule;
    }
    return NULL;
}

bool chaos_throttles(Chaos *chaos, const PartitionRange *range, bool is_asked, uint32_t *wait_ms)
{
    if (!is_armed(chaos))
        return false;
    lock(chaos);
    ChaosRule *rule = find_of_range(chaos, CHAOS_THROTTLE, range);
    if (rule != NULL) {
        uint64_t now_us = clock_monotonic_us(chaos->clock);
        uint64_t left_us = rule->until_us > now_us ? rule->until_us - now_us : 0;
        *wait_ms = rule->until_us == 0 ? rule->retry_after_ms : (uint32_t)(left_us / 1000) + 1;
        if (is_asked)
            act(rule);
    }
    unlock(chaos);
    return rule != NULL;
}

uint64_t chaos_lsn(Chaos *chaos, const PartitionRange *range, uint64_t wanted, uint64_t lsn)
{
    if (!is_armed(chaos))
        return lsn;
    lock(chaos);
    ChaosRule *rule = find_of_range(chaos, CHAOS_SESSION, range);
    if (rule != NULL) {
        lsn = lsn > rule->lag ? lsn - rule->lag : 0;
        if (wanted > lsn)
            act(rule);
    }
    unlock(chaos);
    return lsn;
}

/* ---- faults ---- */

/* Returns 0 for other requests. Plans do not count as queries: whether a client asks for one is its
 * own choice. */
static unsigned kind_of(const ApiRequest *r)
{
    if (r->address.operation.len > 0)
        return slice_equal_nocase(r->address.operation, SLICE("partitionkeydelete")) ? CHAOS_WRITE
                                                                                     : 0;
    if (r->address.type != RESOURCE_DOCUMENT)
        return 0;
    switch (r->operation) {
    case OPERATION_READ:
        return CHAOS_READ;
    case OPERATION_LIST:
        return CHAOS_QUERY;
    case OPERATION_QUERY:
        return request_flag(r, "x-ms-cosmos-is-query-plan-request") ? 0 : CHAOS_QUERY;
    case OPERATION_CREATE:
    case OPERATION_REPLACE:
    case OPERATION_PATCH:
    case OPERATION_DELETE:
        return CHAOS_WRITE;
    case OPERATION_EXECUTE:
    case OPERATION_COUNT:
        break;
    }
    return 0;
}

/* Finds the rule that acts on the request; false if there is none. The rules that fit draw a random
 * number in turn, until one acts. */
static bool take_fault(Chaos *chaos, const ApiRequest *r, unsigned kind, ChaosRule *out)
{
    lock(chaos);
    sweep(chaos);
    bool found = false;
    for (size_t i = 0; i < chaos->count && !found; i++) {
        ChaosRule *rule = &chaos->rules[i];
        if (rule->what != CHAOS_FAULTS || rule->container != r->container->info.number ||
            ((unsigned)rule->kind & kind) == 0 || random_below(&rule->random, 100) >= rule->percent)
            continue;
        act(rule);
        *out = *rule;
        found = true;
    }
    unlock(chaos);
    return found;
}

static void respond_fault(ApiRequest *r, const ChaosRule *rule)
{
    Error err;
    if (error_set(&err, rule->status, SUB_NONE,
                  "The request was made to fail by rule %u of /_orrery/chaos. Nothing was done.",
                  rule->id) == STATUS_OK)
        return;
    err.retry_after_ms = rule->retry_after_ms;
    Response response;
    response_error(r, &response, &err, SLICE("0"));
    if (rule->sub != 0)
        response_header(&response, SLICE("x-ms-substatus"),
                        arena_format(r->arena, "%u", rule->sub));
    if (rule->retry_after_ms > 0 && rule->status != STATUS_THROTTLED)
        response_header(&response, SLICE("x-ms-retry-after-ms"),
                        arena_format(r->arena, "%u", rule->retry_after_ms));
    response_send(r, &response);
}

typedef struct Held {
    Delay delay;
    ApiRequest *request;
    ChaosRule rule;
} Held;

static void on_due(HttpTask *task)
{
    Held *held = CONTAINER_OF(CONTAINER_OF(task, Delay, task), Held, delay);
    if (held->rule.status != STATUS_OK)
        respond_fault(held->request, &held->rule);
    else
        request_again(held->request);
}

static void hold(ApiRequest *r, const ChaosRule *rule)
{
    Held *held = ARENA_NEW(r->arena, Held);
    held->request = r;
    held->rule = *rule;
    held->delay.loop = r->http->loop;
    held->delay.task.run = on_due;
    request_keep(r);
    delays_add(&r->api->chaos->delays, &held->delay, rule->delay_ms);
}

void chaos_meet(ApiRequest *r, bool *is_met)
{
    Chaos *chaos = r->api->chaos;
    ChaosRule rule;
    unsigned kind = r->is_past_chaos || !is_armed(chaos) ? 0 : kind_of(r);
    *is_met = kind != 0 && take_fault(chaos, r, kind, &rule);
    if (!*is_met)
        return;
    if (rule.delay_ms > 0)
        hold(r, &rule);
    else
        respond_fault(r, &rule);
}
