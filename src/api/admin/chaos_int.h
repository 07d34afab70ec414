/* chaos_int.h - faults on request, to test how clients handle them.
 *
 * Only a server that was started with --enable-chaos has a Chaos. Rules are armed under
 * /_orrery/chaos (orrery_chaos.c), and act in three places:
 *
 *     chaos_meet       before a request on items reaches its handler: delays it, or fails it
 *     chaos_throttles  where a partition is asked to admit a request: refuses it
 *     chaos_lsn        where a session token is compared: makes the partition look older
 *
 * A server without it pays with one look at a pointer in each place. Which requests are hit is
 * decided by counting and by a random generator with a seed: the same requests in the same order
 * meet the same faults.
 *
 * Ownership  The Api owns it; a request that is delayed keeps what it needs in its arena.
 * Threads    Any; a lock guards the rules.
 */
#pragma once

#include "api/core/request_int.h"

#define CHAOS_RULES_MAX    64
#define CHAOS_DELAY_MS_MAX 30000 /* stopping the server may have to wait as long */
#define CHAOS_SECONDS_MAX  3600
#define CHAOS_COUNT_MAX    1000000000

typedef enum ChaosWhat { CHAOS_FAULTS, CHAOS_THROTTLE, CHAOS_SESSION } ChaosWhat;

/* Requests on items: flags. */
typedef enum ChaosKind {
    CHAOS_READ = 1,  /* of one item */
    CHAOS_WRITE = 2, /* also batches and bulk, and deleting by partition key */
    CHAOS_QUERY = 4, /* also lists */
    CHAOS_ANY = CHAOS_READ | CHAOS_WRITE | CHAOS_QUERY,
} ChaosKind;

typedef struct ChaosRule {
    uint32_t id; /* counts from 1; given when it is armed */
    ChaosWhat what;
    uint32_t database;
    uint32_t container;
    uint32_t range;    /* of throttle and session: id of the range */
    StoreSpace space;  /* space of that range, by which it is recognised */
    uint64_t left;     /* how often it will still act; UINT64_MAX for no limit */
    uint64_t acted;    /* how often it has acted */
    uint64_t until_us; /* monotonic; 0 for no limit */

    /* Of faults. */
    ChaosKind kind;
    Status status; /* STATUS_OK if the request is only delayed */
    uint32_t sub;
    uint32_t delay_ms;
    uint32_t percent; /* of the requests that it fits */
    uint64_t seed;
    Random random;

    uint32_t retry_after_ms; /* of faults and throttle */
    uint64_t lag;            /* of session: how many LSNs the partition seems to be behind */
} ChaosRule;

Chaos *chaos_open(const Clock *clock);
void chaos_close(Chaos *chaos); /* accepts NULL; no request is delayed any more */

/* 'rule' gets its number. STATUS_TOO_LARGE if there are CHAOS_RULES_MAX. */
MUST_USE Status chaos_arm(Chaos *chaos, ChaosRule *rule, Error *err);
size_t chaos_clear(Chaos *chaos); /* returns how many there were */

/* Those that will still act, in the order in which they were armed. */
size_t chaos_rules(Chaos *chaos, ChaosRule out[CHAOS_RULES_MAX]);

/* For a request that is resolved. Sets '*is_met' if it was answered here or will be answered later;
 * the caller then leaves it alone. */
void chaos_meet(ApiRequest *r, bool *is_met);

/* Whether the partition is to turn the request away, and for how long. 'is_asked' is false if the
 * caller only asks and no request is refused. */
bool chaos_throttles(Chaos *chaos, const PartitionRange *range, bool is_asked, uint32_t *wait_ms);

/* The LSN that the partition is to show, if it is at 'lsn' and the client has seen 'wanted'. */
uint64_t chaos_lsn(Chaos *chaos, const PartitionRange *range, uint64_t wanted, uint64_t lsn);
