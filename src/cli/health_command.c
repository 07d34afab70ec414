/* health_command.c - see health_command.h. The request is GET /healthz, which needs no key. */
#include "cli/health_command.h"

#include "cli/commands.h"
#include "cli/connection.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, TIMEOUT_S_MAX = 3600, MS_PER_S = 1000 };

typedef struct HealthArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/health_options.def"
#undef ARGUMENT_ROW
} HealthArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(HealthArguments, field, name, kind, placeholder, fallback, help),
#include "cli/health_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"health", ROWS, ARRAY_COUNT(ROWS)};

const Command HEALTH_COMMAND = {
    .name = "health",
    .summary = "ask whether a server takes requests",
    .usage = "health [options]",
    .about = "Asks a server whether it is well, and prints its answer: 'ok', or 'damaged' with the "
             "reason if some data cannot be read. It needs no key. Container runtimes and scripts "
             "that wait for a server can call it.",
    .options = &TABLE,
    .notes = "The exit code is 0 if the server takes requests, 1 if it cannot write, refuses or "
             "cannot be reached, and 2 if the command was called in a wrong way.",
    .examples = "orrery health\n"
                "until orrery health --quiet; do sleep 0.1; done\n"
                "orrery health --endpoint https://localhost:8081 --insecure\n",
    .main = health_main,
};

/* The value of a variable; NULL if it is not set or empty. */
static const char *variable(char *const *environment, const char *name)
{
    size_t len = strlen(name);
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=' &&
            (*environment)[len + 1] != '\0')
            return *environment + len + 1;
    }
    return NULL;
}

/* A server on this machine that has the same environment, as in a container. Its certificate is of
 * its own making, and nothing secret is sent. */
static Status choose_endpoint(Arena *arena, char *const *environment, ClientOptions *o, Error *err)
{
    const char *port_text = variable(environment, "ORRERY_PORT");
    const char *tls_text = variable(environment, "ORRERY_REQUIRE_TLS");
    uint64_t port = 8081;
    bool is_tls = false;
    if (port_text != NULL &&
        (!slice_to_u64(slice_from_cstr(port_text), &port) || port == 0 || port > UINT16_MAX))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "ORRERY_PORT must be a port from 1 to 65535, not '%.80s'", port_text);
    if (tls_text != NULL && !slice_to_bool(slice_from_cstr(tls_text), &is_tls))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "ORRERY_REQUIRE_TLS must be true or false, not '%.80s'", tls_text);
    o->endpoint =
        arena_format(arena, "http%s://localhost:%u", is_tls ? "s" : "", (unsigned)port).ptr;
    o->is_insecure = o->is_insecure || (is_tls && o->cert_file == NULL);
    return STATUS_OK;
}

static Status open_client(const HealthArguments *a, Arena *arena, char *const *environment,
                          Client **out, Error *err)
{
    uint32_t timeout_s = 0;
    ClientOptions options = {
        .endpoint = a->endpoint, .cert_file = a->cert, .is_insecure = a->insecure};
    if (a->insecure && a->cert != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--insecure and --cert exclude each other; give one of them");
    TRY(argument_number("timeout", a->timeout, 1, TIMEOUT_S_MAX, &timeout_s, err));
    if (options.endpoint == NULL)
        TRY(choose_endpoint(arena, environment, &options, err));
    options.timeout_ms = timeout_s * MS_PER_S;
    return client_open(&options, out, err);
}

static Status ask(Client *client, Arena *arena, bool is_quiet, Error *err)
{
    ClientCall call = {.path = SLICE("/healthz"), .arena = arena};
    ClientCall *ended = NULL;
    client_start(client, &call);
    do
        TRY(client_wait(client, -1, &ended, err));
    while (ended != NULL);
    if (call.error.status != STATUS_OK) {
        *err = call.error;
        return err->status;
    }
    if (call.http_status != 200)
        return connection_refused(&call, err);
    Json answer;
    Error ignored;
    if (json_parse(arena, call.body, &answer, &ignored) != STATUS_OK ||
        !json_is(json_get(answer, SLICE("status")), JSON_STRING))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the answer has no status; is it an Orrery server?");
    Slice word = connection_safe_text(arena, json_get(answer, SLICE("status")));
    Slice reason = connection_safe_text(arena, json_get(answer, SLICE("reason")));
    if (!is_quiet)
        (void)printf("%.*s%s%.*s\n", SLICE_ARG(word), reason.len > 0 ? ": " : "",
                     SLICE_ARG(reason));
    return STATUS_OK;
}

int health_main(int argc, char *const *argv, char *const *environment)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(client_close) Client *client = NULL;
    HealthArguments arguments = {0};
    bool help = false;
    Error err;
    Status status = arguments_parse(&TABLE, &arena, argc, argv, &arguments, NULL, &help, &err);
    if (status == STATUS_OK && help) {
        command_print_help(&HEALTH_COMMAND, stdout);
        return EXIT_SUCCESS;
    }
    if (status == STATUS_OK)
        status = open_client(&arguments, &arena, environment, &client, &err);
    bool is_understood = status == STATUS_OK || status == STATUS_UNAVAILABLE;
    if (status == STATUS_OK)
        status = ask(client, &arena, arguments.quiet, &err);
    if (status != STATUS_OK)
        (void)fprintf(stderr, "orrery: %s\n", err.message);
    return status == STATUS_OK ? EXIT_SUCCESS : is_understood ? EXIT_FAILURE : EXIT_USAGE;
}
