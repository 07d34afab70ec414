/* shared_library.c - see shared_library.h. */
#include "base/shared_library.h"

#include <dlfcn.h>
#include <string.h>

static Status cannot_load(const char *file, Error *err)
{
    const char *why = dlerror();
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the library '%s' cannot be used: %s", file,
                     why == NULL ? "one of its functions has no address" : why);
}

static bool resolve(void *library, const LibraryFunction *functions, size_t count, void *table)
{
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(library, functions[i].name);
        if (address == NULL)
            return false;
        memcpy((char *)table + functions[i].at, &address, sizeof(address));
    }
    return true;
}

Status shared_library_load(const char *file, const LibraryFunction *functions, size_t count,
                           void *table, Error *err)
{
    ASSERT(count > 0);
    /* NODELETE: it stays after dlclose(), so pointers into it remain valid. */
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL)
        return cannot_load(file, err);
    Status status = resolve(library, functions, count, table) ? STATUS_OK : cannot_load(file, err);
    (void)dlclose(library);
    return status;
}
