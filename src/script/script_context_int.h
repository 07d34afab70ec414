/* script_context_int.h - a fresh global object with the server-side API in it, and values of the
 * engine.
 *
 * The API is server_api.js. A ScriptContext is made while the worker is idle and is used for one
 * run, or for one session of functions; then it is released, and nothing of it is left.
 *
 * Ownership  The worker owns the engine and the context. A JSValueRef is valid while it is on the
 *            stack or reachable from the global object.
 * Threads    The worker's only thread.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "script/script_engine_int.h"

/* What server_api.js returns, by name. */
#define API_FUNCTIONS(X) \
    X(begin)             \
    X(setArguments)      \
    X(start)             \
    X(take)              \
    X(deliver)           \
    X(refuse)            \
    X(settle)            \
    X(listAssumed)       \
    X(finish)            \
    X(getLog)            \
    X(describe)          \
    X(describeCompile)   \
    X(defineFunction)    \
    X(callFunction)      \
    X(setFile)

typedef enum ApiFunction {
#define API_MEMBER(name) API_##name,
    API_FUNCTIONS(API_MEMBER)
#undef API_MEMBER
        API_COUNT
} ApiFunction;

/* When a script must stop, and when it can begin no more operations: monotonic, of this process. */
typedef struct ScriptTimes {
    uint64_t hard_us;
    uint64_t soft_us;
    bool is_stopped; /* the engine was stopped because of hard_us */
} ScriptTimes;

typedef struct ScriptEngine {
    Engine js;
    JSContextGroupRef group;
    JSStringRef api_text; /* of server_api.js; lives as long as the process */
    ScriptTimes times;
} ScriptEngine;

typedef struct ScriptContext {
    ScriptEngine *engine;
    JSGlobalContextRef ref; /* NULL if there is none */
    JSObjectRef api;
    JSObjectRef functions[API_COUNT];
} ScriptContext;

/* What the client is told about a failure. */
typedef struct ScriptFailure {
    bool is_timeout;
    uint32_t number;
    Slice text;
} ScriptFailure;

MUST_USE Status script_engine_open(ScriptEngine *engine, Error *err);

MUST_USE Status script_context_init(ScriptContext *context, ScriptEngine *engine, Error *err);
void script_context_done(ScriptContext *context);

/* ---- values ---- */

JSValueRef script_text_value(const ScriptContext *context, Slice text);
JSValueRef script_number_value(const ScriptContext *context, double number);
JSValueRef script_bool_value(const ScriptContext *context, bool value);

/* The value as UTF-8, terminated. Empty if it cannot be converted. */
Slice script_value_text(const ScriptContext *context, JSValueRef value, Arena *arena);

/* Properties of an object of the API, which has no accessors. */
JSValueRef script_get(const ScriptContext *context, JSValueRef object, const char *name);
JSValueRef script_get_at(const ScriptContext *context, JSValueRef object, unsigned index);
Slice script_get_text(const ScriptContext *context, JSValueRef object, const char *name,
                      Arena *arena);
double script_get_number(const ScriptContext *context, JSValueRef object, const char *name);
bool script_get_bool(const ScriptContext *context, JSValueRef object, const char *name);

/* ---- calls ---- */

/* Calls a function of the API, which may call the user's code, and then everything that promises
 * have made ready. False if it threw, or if the time is over: 'failure' is filled then. */
MUST_USE bool script_call_api(ScriptContext *context, ApiFunction which, size_t count,
                              const JSValueRef *arguments, JSValueRef *result, Arena *arena,
                              ScriptFailure *failure);

/* Compiles a script into a function: the text stands in it as the right side of an assignment. The
 * function calls its first argument with the value. 'id' names the source. */
MUST_USE bool script_compile(ScriptContext *context, Slice id, Slice body, JSValueRef *main,
                             Arena *arena, ScriptFailure *failure);
