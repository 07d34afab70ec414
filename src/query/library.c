/* library.c - see library_int.h. */
#include "query/library_int.h"

#include "query/sql_error_int.h"

#include <dlfcn.h>
#include <string.h>

static Status cannot_load(const char *file, Error *err)
{
    const char *why = dlerror();
    return sql_error_plain(err, "The query needs the library '%s', which cannot be used: %s.", file,
                           why == NULL ? "a function of it is nowhere" : why);
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

Status library_load(const char *file, const LibraryFunction *functions, size_t count, void *table,
                    Error *err)
{
    /* It stays after it is closed: pointers into it remain good, and the next query finds it. */
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL)
        return cannot_load(file, err);
    Status status = resolve(library, functions, count, table) ? STATUS_OK : cannot_load(file, err);
    (void)dlclose(library); /* only counts down */
    return status;
}
