/* script_engine.c - see script_engine_int.h. */
#include "script/script_engine_int.h"

#include "base/shared_library.h"

Status engine_load(Engine *engine, Error *err)
{
    static const LibraryFunction FUNCTIONS[] = {
#define ENGINE_ROW(name) LIBRARY_FUNCTION(Engine, name),
        ENGINE_FUNCTIONS(ENGINE_ROW)
#undef ENGINE_ROW
    };
    if (shared_library_load(ENGINE_LIBRARY, FUNCTIONS, ARRAY_COUNT(FUNCTIONS), engine, err) ==
        STATUS_OK)
        return STATUS_OK;
    return error_context(err, "scripts need the package %s, which has the JavaScript engine",
                         ENGINE_PACKAGE);
}
