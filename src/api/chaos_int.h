/* chaos_int.h - trouble on purpose, for who wants to see how a client bears it.
 *
 * Only a server that was started with --enable-chaos has a Chaos. Rules are armed under
 * /_orrery/chaos (orrery_chaos.c), and act in three places:
 *
 *     chaos_meet       before a request on items reaches its handler: it is delayed, or fails
 *     chaos_throttles  where a partition is asked whether the request may begin: it may not
 *     chaos_lsn        where a session token is compared: the partition seems to be behind
 *
 * Everybody else pays for it with one look at a pointer in each. Which requests are met is decided
 * by counting, and by a generator with a seed where it is left to chance: the same requests in the
 * same order meet the same.
 *
 * Ownership  The Api owns it; a request that is delayed keeps what it needs in its arena.
 * Threads    Any; the rules are behind a lock.
 */
#pragma once

#include "api/request_int.h"

#define CHAOS_RULES_MAX    64
#define CHAOS_DELAY_MS_MAX 30000 /* also what the end of the server may have to wait for */
#define CHAOS_SECONDS_MAX  3600
#define CHAOS_COUNT_MAX    1000000000

typedef struct Chaos Chaos;

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
    uint32_t range;    /* of throttle and session: */
    StoreSpace space;  /* it is known by where its data is */
    uint64_t left;     /* how often it will act; UINT64_MAX: until it is over or cleared */
    uint64_t acted;    /* how often it has */
    uint64_t until_us; /* monotonic; 0: until it is spent or cleared */

    /* Of faults. */
    ChaosKind kind;
    Status status; /* STATUS_OK: the request goes on, later */
    uint32_t sub;
    uint32_t delay_ms;
    uint32_t percent; /* of the requests that it is about */
    uint64_t seed;
    Random random;

    uint32_t retry_after_ms; /* of faults and throttle */
    uint64_t lag;            /* of session: how many LSNs a partition is behind */
} ChaosRule;

Chaos *chaos_open(const Clock *clock);
void chaos_close(Chaos *chaos); /* accepts NULL; no request is delayed any more */

/* 'rule' gets its number. STATUS_TOO_LARGE if there are CHAOS_RULES_MAX. */
MUST_USE Status chaos_arm(Chaos *chaos, ChaosRule *rule, Error *err);
size_t chaos_clear(Chaos *chaos); /* how many there were */

/* Those that will still act, in the order in which they were armed. */
size_t chaos_rules(Chaos *chaos, ChaosRule out[CHAOS_RULES_MAX]);

/* The request is resolved. '*is_met' if it was answered here, or will be later: the caller is done
 * with it. */
void chaos_meet(ApiRequest *r, bool *is_met);

/* Whether the partition turns the request away, and when to come again. 'is_asked' is false if
 * somebody only wants to know. */
bool chaos_throttles(Chaos *chaos, const PartitionRange *range, bool is_asked, uint32_t *wait_ms);

/* How far the partition seems to be, if it is at 'lsn' and the client wants to see 'wanted'. */
uint64_t chaos_lsn(Chaos *chaos, const PartitionRange *range, uint64_t wanted, uint64_t lsn);
