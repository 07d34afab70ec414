/* ru_budget.h - what one physical partition may still spend: which requests are admitted, and how
 * long others must wait. (A token bucket, without tokens.)
 *
 * A limiter of r request units a second is one number, the moment up to which it is paid. A charge
 * of c moves it by c / r seconds, and time passes by itself, so that nothing has to be refilled.
 * While that moment lies in the past the limiter has credit and admits; otherwise the distance to
 * it is how long to wait. Credit is capped: the moment never lies further back than the limiter's
 * window. The cost of a request is known when it has ended, so a request that is admitted may take
 * more than there was; later ones wait for that.
 *
 * A budget has several limiters, and a request must be admitted by all that concern it:
 *
 *     share    what the partition was allotted. Window 1 s; with burst 300 s of unused share
 *     peak     3,000 a second, the most that a burst may take. Window 1 s
 *     bucket   a percentage of the share, for the requests that name it. Window 1 s
 *
 * Ownership  Reference counted, and longer-lived than the catalogue's snapshots, as partitions are.
 * Threads    Any thread admits and charges, without a lock: charges are added atomically, so none
 *            is lost and none counted twice. budget_set is called by one thread at a time.
 */
#pragma once

#include "base/defs.h"
#include "throughput/charge.h"

#define BUDGET_BUCKETS_MAX   5
#define BUDGET_WINDOW_S      1    /* credit that is kept without burst */
#define BUDGET_BURST_S       300  /* of unused share */
#define BUDGET_BURST_PEAK_RU 3000 /* a second; a share as large as this has no burst */
#define BUDGET_LOW_MARGIN_MS 100  /* of credit that is not for requests of low priority */
#define BUDGET_RECENT_S      10   /* seconds that budget_busiest_second looks back */
#define BUDGET_SHARES_MAX    32   /* changes of the share that are remembered */
#define BUDGET_CHARGE_MAX    ((Charge)100 * 1000000) /* of one request; more counts as this */

typedef struct Budget Budget;

/* What a partition is allotted. */
typedef struct BudgetTerms {
    uint64_t share;         /* hundredths of request units a second; 0 if there is no limit */
    bool is_enforced;       /* if not, charges are counted, and all requests are admitted */
    bool has_burst;         /* unused share is kept for BUDGET_BURST_S */
    bool is_autoscale;      /* what was used in the last seconds is remembered */
    uint8_t bucket_default; /* 1 to 5, of requests that name none; 0 if there is none */
    uint8_t bucket_percent[BUDGET_BUCKETS_MAX]; /* of the share; 0 if there is no such bucket */
} BudgetTerms;

/* What a request says about itself. */
typedef struct BudgetClass {
    bool is_low;    /* of low priority: gives way to others */
    uint8_t bucket; /* 1 to 5; 0 if it names none */
} BudgetClass;

typedef enum BudgetAnswer {
    BUDGET_ADMITTED,
    BUDGET_SPENT,        /* beyond what the partition may take */
    BUDGET_BUCKET_SPENT, /* beyond what its bucket may take */
} BudgetAnswer;

/* Begins with the credit of one second. Times are of a monotonic clock. */
Budget *budget_new(const BudgetTerms *terms, uint64_t now_us);
Budget *budget_ref(Budget *budget);
void budget_unref(Budget *budget); /* accepts NULL */
DEFINE_AUTO(Budget *, budget_unref)

/* New terms, from now on. Credit and debt stay what they are in request units. */
void budget_set(Budget *budget, const BudgetTerms *terms, uint64_t now_us);

/* Nothing is left, of burst neither; from now on it earns its rate. Debt stays. For a partition
 * that another process has served: it may have given the second away that has begun. */
void budget_use_up(Budget *budget, uint64_t now_us);

/* Whether a request may begin. If not, '*wait_ms' is how long until one may, provided that nothing
 * is charged meanwhile: after that it is admitted, a millisecond earlier it is not (I7). 'ahead' is
 * the charge of the requests that came together with it and are before it, so that a crowd of them
 * overdraws by the last one only. */
BudgetAnswer budget_admit(Budget *budget, BudgetClass class, Charge ahead, uint64_t now_us,
                          uint32_t *wait_ms);

/* Charges what a request that was admitted with this class has cost (I6). */
void budget_charge(Budget *budget, BudgetClass class, Charge charge, uint64_t now_us);

/* The largest sum of charges in one second of the last BUDGET_RECENT_S, this one included; 0
 * unless the terms are those of autoscale. */
Charge budget_busiest_second(const Budget *budget, uint64_t now_us);

uint64_t budget_share(const Budget *budget); /* hundredths of request units a second */

/* What it was between two moments, on average, as far as the last BUDGET_SHARES_MAX changes tell: a
 * time before them counts as the earliest that is known. */
uint64_t budget_share_between(const Budget *budget, uint64_t from_us, uint64_t to_us);

/* What could be spent at once within the share, burst included. 0 while something is owed, and if
 * nothing is enforced. */
Charge budget_credit(const Budget *budget, uint64_t now_us);
