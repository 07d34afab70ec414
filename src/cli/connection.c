/* connection.c - see connection.h. */
#include "cli/connection.h"

#include "api/core/auth.h"
#include "cli/options.h"

enum { TIMEOUT_MS = 60000 };

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
