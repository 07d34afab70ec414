/* script_pool_int.h - how runs and sessions of functions get a process of the pool. */
#pragma once

#include "script/script_block_int.h"
#include "script/script_pool.h"
#include "script/script_process_int.h"

/* A process that does not stop by itself at the end of its time is killed this much later. */
#define PROCESS_GRACE_US ((uint64_t)250000)

/* They are counted apart, so that a script that calls functions in a query does not wait for
 * itself. */
typedef enum ProcessUse { PROCESS_FOR_JOBS, PROCESS_FOR_FUNCTIONS, PROCESS_USES } ProcessUse;

struct ScriptRunner {
    ScriptPool *pool;
    ScriptProcess *process; /* NULL until the first run, and after one that lost it */
};

/* A process that is READY. Waits at most until the moment of the system's monotonic clock. */
MUST_USE Status script_pool_take(ScriptPool *pool, ProcessUse use, uint64_t until_us,
                                 ScriptProcess **out, Error *err);

/* Gives it back, or ends it if it is LOST or has grown large. */
void script_pool_give(ScriptPool *pool, ProcessUse use, ScriptProcess *process);

/* The moment of the system's monotonic clock that is 'moment_us' of the pool's clock. */
uint64_t script_pool_system_us(const ScriptPool *pool, uint64_t moment_us);

const ScriptPoolOptions *script_pool_options(const ScriptPool *pool); /* without zeros */
ScriptBlocks *script_pool_blocks(const ScriptPool *pool);

/* Versions of scripts that were repeated too often: nothing is assumed for them. */
ScriptBlocks *script_pool_repeats(const ScriptPool *pool);
void script_pool_count_run(ScriptPool *pool, bool has_failed);

/* STATUS_TIMEOUT with the text that clients know. */
MUST_USE Status script_timeout(Error *err);
