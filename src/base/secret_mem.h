/* secret_mem.h - memory for keys: left out of core dumps and wiped when it is given back.
 *
 * Each piece has pages of its own, so it is for few and small things.
 *
 * Threads    As for any memory.
 */
#pragma once

#include "base/defs.h"

void *secret_alloc(size_t size);           /* zeroed; never NULL */
void secret_free(void *p, size_t size);    /* 'size' as it was asked for; accepts NULL */
void secret_wipe(void *bytes, size_t len); /* zeros that no compiler leaves out */
