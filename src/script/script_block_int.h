/* script_block_int.h - which scripts are blocked, because they used too much CPU too often.
 *
 * A version of a script that has gone beyond its limit SCRIPT_BLOCK_RUNS times is blocked. There is
 * no state on disk: a restart clears all. The table is bounded; when it is full, the version that
 * went beyond its limit the longest time ago is forgotten, and so is each after BLOCK_FORGET_US.
 *
 * Threads    Any. One lock, held for a look at the table.
 */
#pragma once

#include "base/clock.h"
#include "base/slice.h"

#define BLOCK_FORGET_US ((uint64_t)3600 * 1000000)
enum { BLOCK_VERSIONS_MAX = 256 };

typedef struct ScriptBlocks ScriptBlocks;

ScriptBlocks *script_blocks_new(const Clock *clock);
void script_blocks_free(ScriptBlocks *blocks); /* accepts NULL */

/* An empty version is never blocked. */
bool script_blocks_has(ScriptBlocks *blocks, Slice version);

/* Notes that the version went beyond its limit once more. */
void script_blocks_note(ScriptBlocks *blocks, Slice version);
