/* mem.h - the general heap, for what lives longer than a request.
 *
 * These functions never return NULL: a process that cannot get a few bytes ends with a message,
 * because no caller could do better. What grows with client data goes into an Arena or a Buf,
 * which are bounded.
 */
#pragma once

#include "base/defs.h"

void *mem_alloc(size_t size);            /* zeroed */
void *mem_realloc(void *p, size_t size); /* not zeroed beyond the old size */
void *mem_copy(const void *p, size_t size);
void mem_free(void *p); /* accepts NULL */

#define MEM_NEW(type)              ((type *)mem_alloc(sizeof(type)))
#define MEM_NEW_ARRAY(type, count) ((type *)mem_alloc(sizeof(type) * (count)))

DEFINE_AUTO(void *, mem_free)
