/* script_context.c - see script_context_int.h. */
#include "script/script_context_int.h"

#include "base/buf.h"
#include "base/cond.h"
#include "base/mem.h"
#include "script/script_pool.h"

#include <string.h>

/* The text of server_api.js. */
static const char API_TEXT[] = {
#include "script/server_api.inc"
};

/* How often a script that uses CPU is looked at. */
#define CHECK_EVERY_S 0.02

/* Where stack traces say that code of the API is. No script's file has this name, which has no
 * ".js". */
#define API_FILE "server api"

static const char *const API_NAMES[] = {
#define API_NAME(name) #name,
    API_FUNCTIONS(API_NAME)
#undef API_NAME
};

/* Called by the engine within a script. */
static bool must_stop(JSContextRef ref, void *ctx)
{
    (void)ref;
    ScriptTimes *times = ctx;
    if (cond_now_us() >= times->hard_us)
        times->is_stopped = true;
    return times->is_stopped;
}

/* ---- values ---- */

/* 'text', in which there is a zero byte, as UTF-16. */
static JSStringRef make_wide_string(const Engine *js, Slice text)
{
    JSChar *units = MEM_NEW_ARRAY(JSChar, text.len);
    size_t count = 0;
    size_t at = 0;
    while (at < text.len) {
        uint32_t code = (uint8_t)text.ptr[at++];
        size_t more = code < 0x80 ? 0 : code < 0xE0 ? 1 : code < 0xF0 ? 2 : 3;
        code = more == 0 ? code : code & (0x3Fu >> more);
        for (; more > 0 && at < text.len; more--)
            code = code << 6 | ((uint8_t)text.ptr[at++] & 0x3Fu);
        if (code >= 0x10000) {
            units[count++] = (JSChar)(0xD7C0 + (code >> 10));
            units[count++] = (JSChar)(0xDC00 + (code & 0x3FF));
        } else {
            units[count++] = (JSChar)code;
        }
    }
    JSStringRef string = js->JSStringCreateWithCharacters(units, count);
    mem_free(units);
    return string;
}

/* The engine makes narrow strings of ASCII, which take half the memory and parse faster, but only
 * of terminated text. */
static JSStringRef make_string(const Engine *js, Slice text)
{
    if (text.len > 0 && memchr(text.ptr, 0, text.len) != NULL)
        return make_wide_string(js, text);
    char *copy = mem_alloc(text.len + 1);
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    JSStringRef string = js->JSStringCreateWithUTF8CString(copy);
    mem_free(copy);
    return string;
}

JSValueRef script_text_value(const ScriptContext *context, Slice text)
{
    const Engine *js = &context->engine->js;
    JSStringRef string = make_string(js, text);
    JSValueRef value = js->JSValueMakeString(context->ref, string);
    js->JSStringRelease(string);
    return value;
}

JSValueRef script_number_value(const ScriptContext *context, double number)
{
    return context->engine->js.JSValueMakeNumber(context->ref, number);
}

JSValueRef script_bool_value(const ScriptContext *context, bool value)
{
    return context->engine->js.JSValueMakeBoolean(context->ref, value);
}

static bool is_ascii(const JSChar *units, size_t count)
{
    /* Without a branch in it the loop works on many units at a time. */
    JSChar all = 0;
    for (size_t i = 0; i < count; i++)
        all |= units[i];
    return all < 0x80;
}

/* The code that begins at units[*at], which is moved behind it. Half a pair is no character. */
static uint32_t next_code(const JSChar *units, size_t count, size_t *at)
{
    uint32_t code = units[(*at)++];
    if (code < 0xD800 || code > 0xDFFF)
        return code;
    if (code > 0xDBFF || *at == count || (units[*at] & 0xFC00) != 0xDC00)
        return 0xFFFD;
    return 0x10000 + ((code & 0x3FF) << 10 | (units[(*at)++] & 0x3FFu));
}

/* Writes UTF-8, at most three bytes for a unit, and returns how many. */
static size_t write_utf8(const JSChar *units, size_t count, char *out)
{
    char *to = out;
    size_t at = 0;
    while (at < count) {
        uint32_t code = next_code(units, count, &at);
        size_t more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        static const uint8_t HEADS[] = {0, 0xC0, 0xE0, 0xF0};
        *to++ = (char)(uint8_t)(HEADS[more] | code >> (6 * more));
        while (more-- > 0)
            *to++ = (char)(uint8_t)(0x80 | (code >> (6 * more) & 0x3F));
    }
    return (size_t)(to - out);
}

/* The engine's own function for UTF-8 takes several times as long for ASCII, which nearly all text
 * is. */
static Slice copy_utf8(const JSChar *units, size_t count, Arena *arena)
{
    if (!is_ascii(units, count)) {
        char *text = arena_alloc(arena, 3 * count);
        return slice_make(text, write_utf8(units, count, text));
    }
    char *text = arena_alloc(arena, count);
    for (size_t i = 0; i < count; i++)
        text[i] = (char)units[i];
    return slice_make(text, count);
}

Slice script_value_text(const ScriptContext *context, JSValueRef value, Arena *arena)
{
    const Engine *js = &context->engine->js;
    JSStringRef string = js->JSValueIsString(context->ref, value)
                             ? js->JSValueToStringCopy(context->ref, value, NULL)
                             : NULL;
    if (string == NULL)
        return SLICE_EMPTY;
    Slice text =
        copy_utf8(js->JSStringGetCharactersPtr(string), js->JSStringGetLength(string), arena);
    js->JSStringRelease(string);
    return text;
}

JSValueRef script_get(const ScriptContext *context, JSValueRef object, const char *name)
{
    const Engine *js = &context->engine->js;
    ASSERT(js->JSValueIsObject(context->ref, object));
    JSStringRef string = js->JSStringCreateWithUTF8CString(name);
    /* An object is a value; the API's types do not say so in this direction. */
    JSObjectRef target = UNCONST(struct OpaqueJSValue, object);
    JSValueRef value = js->JSObjectGetProperty(context->ref, target, string, NULL);
    js->JSStringRelease(string);
    return value;
}

JSValueRef script_get_at(const ScriptContext *context, JSValueRef object, unsigned index)
{
    JSObjectRef target = UNCONST(struct OpaqueJSValue, object);
    return context->engine->js.JSObjectGetPropertyAtIndex(context->ref, target, index, NULL);
}

Slice script_get_text(const ScriptContext *context, JSValueRef object, const char *name,
                      Arena *arena)
{
    return script_value_text(context, script_get(context, object, name), arena);
}

double script_get_number(const ScriptContext *context, JSValueRef object, const char *name)
{
    JSValueRef value = script_get(context, object, name);
    return context->engine->js.JSValueToNumber(context->ref, value, NULL);
}

bool script_get_bool(const ScriptContext *context, JSValueRef object, const char *name)
{
    return context->engine->js.JSValueToBoolean(context->ref, script_get(context, object, name));
}

/* ---- the context ---- */

Status script_engine_open(ScriptEngine *engine, Error *err)
{
    *engine = (ScriptEngine){.group = NULL};
    TRY(engine_load(&engine->js, err));
    engine->times.hard_us = UINT64_MAX;
    engine->group = engine->js.JSContextGroupCreate();
    engine->api_text = make_string(&engine->js, slice_make(API_TEXT, sizeof(API_TEXT)));
    engine->js.JSContextGroupSetExecutionTimeLimit(engine->group, CHECK_EVERY_S, must_stop,
                                                   &engine->times);
    return STATUS_OK;
}

static JSValueRef evaluate(const ScriptContext *context, JSStringRef text, Slice file,
                           JSValueRef *exception)
{
    const Engine *js = &context->engine->js;
    JSStringRef url = make_string(js, file);
    JSValueRef value = js->JSEvaluateScript(context->ref, text, NULL, url, 1, exception);
    js->JSStringRelease(url);
    return value;
}

Status script_context_init(ScriptContext *context, ScriptEngine *engine, Error *err)
{
    const Engine *js = &engine->js;
    *context = (ScriptContext){.engine = engine};
    context->ref = js->JSGlobalContextCreateInGroup(engine->group, NULL);
    JSValueRef exception = NULL;
    JSValueRef make = evaluate(context, engine->api_text, SLICE(API_FILE), &exception);
    JSValueRef api = NULL;
    if (exception == NULL && js->JSValueIsObject(context->ref, make)) {
        JSValueRef arguments[] = {
            script_number_value(context, (double)SCRIPT_RESPONSE_UNITS_MAX),
            script_number_value(context, (double)SCRIPT_LOG_ENCODED_BYTES_MAX),
        };
        api = js->JSObjectCallAsFunction(context->ref, UNCONST(struct OpaqueJSValue, make), NULL,
                                         ARRAY_COUNT(arguments), arguments, &exception);
    }
    if (exception != NULL || !js->JSValueIsObject(context->ref, api)) {
        script_context_done(context);
        return error_set(err, STATUS_INTERNAL, SUB_NONE, "the server-side API cannot be made");
    }
    /* It keeps its functions alive. */
    js->JSValueProtect(context->ref, api);
    context->api = UNCONST(struct OpaqueJSValue, api);
    for (size_t i = 0; i < API_COUNT; i++) {
        JSValueRef function = script_get(context, api, API_NAMES[i]);
        context->functions[i] = UNCONST(struct OpaqueJSValue, function);
    }
    return STATUS_OK;
}

void script_context_done(ScriptContext *context)
{
    if (context->ref == NULL)
        return;
    const Engine *js = &context->engine->js;
    if (context->api != NULL)
        js->JSValueUnprotect(context->ref, context->api);
    js->JSGlobalContextRelease(context->ref);
    *context = (ScriptContext){.engine = context->engine};
}

/* ---- calls ---- */

static bool is_over(const ScriptContext *context)
{
    const ScriptTimes *times = &context->engine->times;
    return times->is_stopped || cond_now_us() >= times->hard_us;
}

/* Fills in what the API says about an exception. */
static void read_failure(ScriptContext *context, ApiFunction describe, size_t count,
                         const JSValueRef *arguments, Arena *arena, ScriptFailure *failure)
{
    const Engine *js = &context->engine->js;
    *failure = (ScriptFailure){.is_timeout = is_over(context)};
    if (failure->is_timeout)
        return;
    JSValueRef exception = NULL;
    JSValueRef told = js->JSObjectCallAsFunction(context->ref, context->functions[describe], NULL,
                                                 count, arguments, &exception);
    failure->is_timeout = context->engine->times.is_stopped;
    if (exception != NULL || told == NULL) {
        failure->text = SLICE("Encountered exception while executing function. Exception = Error: "
                              "there is no room to describe it");
        return;
    }
    failure->number = (uint32_t)script_get_number(context, told, "number");
    failure->text = script_get_text(context, told, "text", arena);
}

bool script_call_api(ScriptContext *context, ApiFunction which, size_t count,
                     const JSValueRef *arguments, JSValueRef *result, Arena *arena,
                     ScriptFailure *failure)
{
    const Engine *js = &context->engine->js;
    JSValueRef exception = NULL;
    *result = js->JSObjectCallAsFunction(context->ref, context->functions[which], NULL, count,
                                         arguments, &exception);
    if (exception == NULL && *result != NULL && !is_over(context))
        return true;
    if (exception == NULL)
        exception = js->JSValueMakeUndefined(context->ref);
    read_failure(context, API_describe, 1, &exception, arena, failure);
    return false;
}

bool script_compile(ScriptContext *context, Slice id, Slice body, JSValueRef *main, Arena *arena,
                    ScriptFailure *failure)
{
    static const Slice BEFORE = SLICE_INIT("(function __docDbMain() { var fn = ");
    static const Slice AFTER = SLICE_INIT("\n;arguments[0](fn); })");
    AUTO(buf_done) Buf text;
    buf_init(&text, SIZE_MAX);
    buf_slice(&text, BEFORE);
    buf_slice(&text, body);
    buf_slice(&text, AFTER);
    Slice file = arena_format(arena, "%.*s.js", SLICE_ARG(id));
    JSValueRef exception = NULL;
    JSStringRef source = make_string(&context->engine->js, buf_view(&text));
    *main = evaluate(context, source, file, &exception);
    context->engine->js.JSStringRelease(source);
    if (exception == NULL && context->engine->js.JSValueIsObject(context->ref, *main))
        return true;
    if (exception == NULL) {
        *failure =
            (ScriptFailure){.number = SCRIPT_COMPILE_ERROR_NUMBER,
                            .text = SLICE("Encountered exception while compiling Javascript. "
                                          "Exception = SyntaxError: not one expression")};
        return false;
    }
    JSValueRef arguments[] = {exception, script_text_value(context, buf_view(&text))};
    read_failure(context, API_describeCompile, ARRAY_COUNT(arguments), arguments, arena, failure);
    return false;
}
