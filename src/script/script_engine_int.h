/* script_engine_int.h - the JavaScript engine, loaded by worker processes only.
 *
 * JavaScriptCore is 30 MB with its libraries and is not linked: the server itself never loads it.
 *
 * Ownership  The functions of JavaScriptCore, see its headers.
 * Threads    The worker's only thread.
 */
#pragma once

#include "base/error.h"

#include <JavaScriptCore/JavaScript.h>

/* Exported by the library but not declared in its headers. 'limit_s' is CPU time. The callback
 * says whether to stop; if not, the time begins anew. */
typedef bool (*EngineStopCallback)(JSContextRef context, void *ctx);
/* NOLINTNEXTLINE(readability-identifier-naming): the library's name */
extern void JSContextGroupSetExecutionTimeLimit(JSContextGroupRef group, double limit_s,
                                                EngineStopCallback callback, void *ctx);

#define ENGINE_LIBRARY "libjavascriptcoregtk-4.1.so.0"
#define ENGINE_PACKAGE "libjavascriptcoregtk-4.1-0"

/* Functions that are used, by their names. */
#define ENGINE_FUNCTIONS(X)                \
    X(JSContextGroupCreate)                \
    X(JSContextGroupSetExecutionTimeLimit) \
    X(JSEvaluateScript)                    \
    X(JSGarbageCollect)                    \
    X(JSGlobalContextCreateInGroup)        \
    X(JSGlobalContextRelease)              \
    X(JSObjectCallAsFunction)              \
    X(JSObjectGetProperty)                 \
    X(JSObjectGetPropertyAtIndex)          \
    X(JSStringCreateWithCharacters)        \
    X(JSStringCreateWithUTF8CString)       \
    X(JSStringGetCharactersPtr)            \
    X(JSStringGetLength)                   \
    X(JSStringRelease)                     \
    X(JSValueIsObject)                     \
    X(JSValueIsString)                     \
    X(JSValueIsUndefined)                  \
    X(JSValueMakeBoolean)                  \
    X(JSValueMakeNumber)                   \
    X(JSValueMakeString)                   \
    X(JSValueMakeUndefined)                \
    X(JSValueProtect)                      \
    X(JSValueToBoolean)                    \
    X(JSValueUnprotect)                    \
    X(JSValueToNumber)                     \
    X(JSValueToStringCopy)

typedef struct Engine {
#define ENGINE_MEMBER(name) __typeof__(name) *name;
    ENGINE_FUNCTIONS(ENGINE_MEMBER)
#undef ENGINE_MEMBER
} Engine;

/* STATUS_UNAVAILABLE, with the name of the package, if the library is not installed. */
MUST_USE Status engine_load(Engine *engine, Error *err);
