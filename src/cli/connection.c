/* connection.c - see connection.h. */
#include "cli/connection.h"

#include "api/core/auth.h"
#include "cli/options.h"

enum { TIMEOUT_MS = 60000 };

static Status choose_key(const ConnectionArguments *arguments, Arena *arena,
                         char *const *environment, const char **out, Error *err)
{
    if (arguments->key != NULL && arguments->key_file != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--key and --key-file exclude each other; give one of them");
    *out = AUTH_DEVELOPMENT_KEY;
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, "ORRERY_KEY=", 11) == 0 && (*environment)[11] != '\0')
            *out = *environment + 11;
    }
    if (arguments->key_file != NULL)
        return options_read_key(arena, arguments->key_file, out, err);
    if (arguments->key != NULL)
        *out = arguments->key;
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
    TRY(choose_key(arguments, arena, environment, &options.key, err));
    return client_open(&options, out, err);
}
