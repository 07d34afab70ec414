/* connection.c - see connection.h. */
#include "cli/connection.h"

#include "advise/safe_text.h"
#include "api/core/auth.h"
#include "cli/options.h"

enum { TIMEOUT_MS = 60000, MESSAGE_COLUMNS_MAX = 400 };

Status connection_choose_key(const char *key, const char *key_file, Arena *arena,
                             char *const *environment, const char **out, Error *err)
{
    if (key != NULL && key_file != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--key and --key-file exclude each other; give one of them");
    if (key_file != NULL)
        return options_read_key(arena, key_file, out, err);
    for (; key == NULL && *environment != NULL; environment++) {
        if (strncmp(*environment, "ORRERY_KEY=", 11) == 0 && (*environment)[11] != '\0')
            key = *environment + 11;
    }
    *out = arena_cstr(arena, slice_from_cstr(key != NULL ? key : AUTH_DEVELOPMENT_KEY));
    return STATUS_OK;
}

Status connection_open(const ConnectionArguments *arguments, Arena *arena, char *const *environment,
                       size_t answer_bytes_max, Client **out, Error *err)
{
    if (arguments->database == NULL || arguments->container == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--database and --container are needed");
    if (arguments->insecure && arguments->cert != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--insecure and --cert exclude each other; give one of them");
    ClientOptions options = {
        .endpoint = arguments->endpoint,
        .cert_file = arguments->cert,
        .is_insecure = arguments->insecure,
        .timeout_ms = TIMEOUT_MS,
        .answer_bytes_max = answer_bytes_max,
    };
    TRY(connection_choose_key(arguments->key, arguments->key_file, arena, environment, &options.key,
                              err));
    return client_open(&options, out, err);
}

Slice connection_safe_text(Arena *arena, Json value)
{
    AUTO(buf_done) Buf safe;
    buf_init(&safe, 4096);
    Slice text = json_is(value, JSON_STRING) ? json_string(value) : SLICE_EMPTY;
    text = slice_first(text, slice_find(text, '\r'));
    (void)safe_text(text, MESSAGE_COLUMNS_MAX, SAFE_TEXT_ASCII, &safe);
    return arena_copy(arena, buf_view(&safe));
}

Status connection_refused(const ClientCall *call, Error *err)
{
    Json body;
    Error ignored;
    Slice message = SLICE_EMPTY;
    if (json_parse(call->arena, call->body, &body, &ignored) == STATUS_OK) {
        Json text = json_get(body, SLICE("message"));
        message = connection_safe_text(
            call->arena, json_is(text, JSON_STRING) ? text : json_get(body, SLICE("reason")));
    }
    Status status = call->http_status == 401 || call->http_status == 403 ? STATUS_UNAUTHORIZED
                    : call->http_status == 404                           ? STATUS_NOT_FOUND
                                                                         : STATUS_UNAVAILABLE;
    return error_set(err, status, SUB_NONE, "the server answered %d: %.*s", call->http_status,
                     SLICE_CUT(message, MESSAGE_COLUMNS_MAX));
}
