/* mem.c - see mem.h. */
#include "base/mem.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

NORETURN static void out_of_memory(size_t size)
{
    (void)fprintf(stderr, "orrery: out of memory (%zu bytes wanted)\n", size);
    abort();
}

/* glibc's calloc does not use the free blocks that each thread caches, as malloc does, and saves
 * the zeroing only for large blocks. */
enum { SMALL_BYTES = 4096 };

void *mem_alloc(size_t size)
{
    bool is_small = size > 0 && size <= SMALL_BYTES;
    void *p = is_small ? malloc(size) : calloc(1, size > 0 ? size : 1);
    if (p == NULL)
        out_of_memory(size);
    return is_small ? memset(p, 0, size) : p;
}

void *mem_realloc(void *p, size_t size)
{
    void *q = realloc(p, size > 0 ? size : 1);
    if (q == NULL)
        out_of_memory(size);
    return q;
}

void *mem_copy(const void *p, size_t size)
{
    void *q = malloc(size > 0 ? size : 1);
    if (q == NULL)
        out_of_memory(size);
    if (size > 0)
        memcpy(q, p, size);
    return q;
}

void mem_free(void *p)
{
    free(p);
}

void assert_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "orrery: internal error: %s does not hold at %s:%d\n", condition, file,
                  line);
    abort();
}
