/* secret_mem.c - see secret_mem.h. */
#include "base/secret_mem.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

void *secret_alloc(size_t size)
{
    ASSERT(size > 0);
    size_t bytes = whole_pages(size);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT(p != MAP_FAILED); /* as mem_alloc: nobody could do better without a page */
    (void)madvise(p, bytes, MADV_DONTDUMP); /* an old kernel dumps it; everything else works */
    return p;
}

void secret_free(void *p, size_t size)
{
    if (p == NULL)
        return;
    secret_wipe(p, size);
    int failed = munmap(p, whole_pages(size));
    ASSERT(failed == 0);
}

void secret_wipe(void *bytes, size_t len)
{
    if (len > 0)
        explicit_bzero(bytes, len);
}
