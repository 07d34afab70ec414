/* snapshot_command.c - see snapshot_command.h. The server does the work: /_orrery/snapshots. */
#include "cli/snapshot_command.h"

#include "base/date.h"
#include "base/encoding.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/options.h"
#include "cli/top_draw.h"
#include "client/client.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>

/* A restore of very much may take minutes. */
enum { EXIT_USAGE = 2, TIMEOUT_MS = 3600000 };

typedef struct SnapshotArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/snapshot_options.def"
#undef ARGUMENT_ROW
} SnapshotArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(SnapshotArguments, field, name, kind, placeholder, fallback, help),
#include "cli/snapshot_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"snapshot", ROWS, ARRAY_COUNT(ROWS)};

typedef enum Action { ACTION_SAVE, ACTION_RESTORE, ACTION_LIST, ACTION_DROP } Action;

static const char *const ACTIONS[] = {"save", "restore", "list", "drop", NULL};

typedef struct SnapshotApp {
    SnapshotArguments arguments;
    Action action;
    Slice database; /* of a list empty if all are wanted */
    Slice name;
    Arena arena;
    Client *client;
} SnapshotApp;

static bool word_at(size_t index, CommandWord *out)
{
    static const CommandWord words[] = {
        {"Actions", "save",
         "keeps the state of a database under a name: containers, policies, throughput, scripts, "
         "users, permissions and items. One of that name is replaced."},
        {"Actions", "restore",
         "takes the database back to that state, also if it was deleted. This takes as long as it "
         "takes to undo what has changed since: usually milliseconds."},
        {"Actions", "list", "shows which snapshots there are."},
        {"Actions", "drop", "removes one, and what was kept for it."},
    };
    if (index >= ARRAY_COUNT(words))
        return false;
    *out = words[index];
    return true;
}

const Command SNAPSHOT_COMMAND = {
    .name = "snapshot",
    .summary = "keep the state of a database, and take it back to it",
    .usage = "snapshot save    DATABASE NAME [options]\n"
             "snapshot restore DATABASE NAME [options]\n"
             "snapshot list    [DATABASE]    [options]\n"
             "snapshot drop    DATABASE NAME [options]",
    .about = "Keeps states of databases on the server, and takes a database back to one of them.",
    .word = word_at,
    .options = &TABLE,
    .notes =
        "The exit code is 0 if it was done, 1 if it failed, and 2 if it was called in a wrong way.",
    .examples = "orrery snapshot save shop seeded\n"
                "orrery snapshot restore shop seeded\n",
    .main = snapshot_main,
};

/* ---- arguments ---- */

static Status wrong(Error *err, const char *what)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s", what);
}

static Status take_action(SnapshotApp *app, const char *word, Error *err)
{
    for (size_t i = 0; ACTIONS[i] != NULL; i++) {
        if (strcmp(word, ACTIONS[i]) == 0) {
            app->action = (Action)i;
            return STATUS_OK;
        }
    }
    const char *nearest = options_nearest(word, ACTIONS);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%.80s' is not understood; %s%s%s", word,
                     nearest == NULL ? "there are save, restore, list and drop" : "did you mean '",
                     nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
}

static Status take_words(SnapshotApp *app, const ArgumentList *words, Error *err)
{
    if (words->count == 0)
        return wrong(err, "say what to do: save, restore, list or drop");
    TRY(take_action(app, words->items[0], err));
    bool is_list = app->action == ACTION_LIST;
    if (is_list && words->count > 2)
        return wrong(err, "list takes a database, or nothing");
    if (!is_list && words->count != 3)
        return wrong(err, "name the database and the snapshot, such as: shop seeded");
    if (words->count > 1)
        app->database = slice_from_cstr(words->items[1]);
    if (words->count > 2)
        app->name = slice_from_cstr(words->items[2]);
    if (words->count > 1 && app->database.len == 0)
        return wrong(err, "the id of the database is empty");
    return words->count > 2 && app->name.len == 0 ? wrong(err, "the name of the snapshot is empty")
                                                  : STATUS_OK;
}

static Status open_client(SnapshotApp *app, char *const *environment, Error *err)
{
    const SnapshotArguments *a = &app->arguments;
    if (a->insecure && a->cert != NULL)
        return wrong(err, "--insecure and --cert exclude each other; give one of them");
    ClientOptions options = {
        .endpoint = a->endpoint,
        .cert_file = a->cert,
        .is_insecure = a->insecure,
        .timeout_ms = TIMEOUT_MS,
    };
    TRY(connection_choose_key(a->key, a->key_file, &app->arena, environment, &options.key, err));
    return client_open(&options, &app->client, err);
}

static Status parse(SnapshotApp *app, int argc, char *const *argv, char *const *environment,
                    bool *help, Error *err)
{
    ArgumentList words = {0};
    TRY(arguments_parse(&TABLE, &app->arena, argc, argv, &app->arguments, &words, help, err));
    if (*help)
        return STATUS_OK;
    TRY(take_words(app, &words, err));
    return open_client(app, environment, err);
}

/* ---- the request ---- */

/* What a server sent is made harmless before it is shown. */
static Slice harmless(SnapshotApp *app, Json value)
{
    AUTO(buf_done) Buf safe;
    buf_init(&safe, 4096);
    Slice text = json_is(value, JSON_STRING) ? json_string(value) : SLICE_EMPTY;
    text = slice_first(text, slice_find(text, '\r')); /* the id of the request follows */
    (void)top_draw_text(text, 400, false, &safe);
    return arena_copy(&app->arena, buf_view(&safe));
}

static void describe_call(SnapshotApp *app, ClientCall *call)
{
    static const ClientMethod methods[] = {[ACTION_SAVE] = CLIENT_PUT,
                                           [ACTION_RESTORE] = CLIENT_POST,
                                           [ACTION_LIST] = CLIENT_GET,
                                           [ACTION_DROP] = CLIENT_DELETE};
    Slice keep = SLICE("-_.~");
    Slice database = percent_encode(&app->arena, app->database, keep);
    Slice name = percent_encode(&app->arena, app->name, keep);
    *call = (ClientCall){.method = methods[app->action], .arena = &app->arena};
    if (app->action == ACTION_LIST) {
        call->path = database.len == 0 ? SLICE("/_orrery/snapshots")
                                       : arena_format(&app->arena, "/_orrery/snapshots?db=%.*s",
                                                      SLICE_ARG(database));
        return;
    }
    call->path =
        arena_format(&app->arena, "/_orrery/dbs/%.*s/snapshots/%.*s%s", SLICE_ARG(database),
                     SLICE_ARG(name), app->action == ACTION_RESTORE ? "/restore" : "");
    call->resource_type = SLICE("dbs");
    call->resource_link = arena_format(&app->arena, "dbs/%.*s", SLICE_ARG(app->database));
}

static Status ask(SnapshotApp *app, Json *out, Error *err)
{
    ClientCall call;
    ClientCall *ended = NULL;
    describe_call(app, &call);
    client_start(app->client, &call);
    do
        TRY(client_wait(app->client, -1, &ended, err));
    while (ended != NULL);
    if (call.error.status != STATUS_OK) {
        *err = call.error;
        return err->status;
    }
    Error ignored;
    *out = JSON_NONE;
    if (call.body.len > 0 && json_parse(&app->arena, call.body, out, &ignored) != STATUS_OK)
        *out = JSON_NONE;
    if (call.http_status >= 200 && call.http_status < 300)
        return STATUS_OK;
    Slice message = harmless(app, json_get(*out, SLICE("message")));
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the server answered %d: %.*s",
                     call.http_status, SLICE_CUT(message, 400));
}

/* ---- answers ---- */

static void print_list(SnapshotApp *app, Json answer)
{
    (void)printf("%-24s %-24s %-30s %s\n", "DATABASE", "NAME", "SAVED", "CONTAINERS");
    for (JsonIter it = json_iter(json_get(answer, SLICE("snapshots"))); json_next(&it);) {
        int64_t saved_at_s = 0;
        int64_t containers = 0;
        char saved[DATE_LEN + 1] = "-";
        (void)json_to_i64(json_get(it.value, SLICE("savedAt")), &saved_at_s); /* else 0 */
        (void)json_to_i64(json_get(it.value, SLICE("containers")), &containers);
        if (saved_at_s > 0) {
            date_print(saved_at_s, saved);
            saved[DATE_LEN] = '\0';
        }
        Slice database = harmless(app, json_get(it.value, SLICE("database")));
        Slice name = harmless(app, json_get(it.value, SLICE("name")));
        (void)printf("%-24.*s %-24.*s %-30s %lld\n", SLICE_ARG(database), SLICE_ARG(name), saved,
                     (long long)containers);
    }
}

static Status run(SnapshotApp *app, Error *err)
{
    static const char *const done[] = {
        [ACTION_SAVE] = "Saved", [ACTION_RESTORE] = "Restored", [ACTION_DROP] = "Dropped"};
    Json answer;
    int64_t took_us = 0;
    TRY(ask(app, &answer, err));
    if (app->action == ACTION_LIST) {
        print_list(app, answer);
        return STATUS_OK;
    }
    (void)printf("%s '%.*s' of database '%.*s'", done[app->action], SLICE_ARG(app->name),
                 SLICE_ARG(app->database));
    if (json_to_i64(json_get(answer, SLICE("tookUs")), &took_us))
        (void)printf(" in %.1f ms", (double)took_us / 1000);
    (void)printf(".\n");
    return STATUS_OK;
}

int snapshot_main(int argc, char *const *argv, char *const *environment)
{
    SnapshotApp app = {0};
    Error err;
    bool help = false;
    arena_init(&app.arena, 4096);
    Status status = parse(&app, argc, argv, environment, &help, &err);
    bool is_understood = status == STATUS_OK;
    options_hide(argc, argv, environment);
    if (help)
        command_print_help(&SNAPSHOT_COMMAND, stdout);
    else if (is_understood)
        status = run(&app, &err);
    if (status != STATUS_OK)
        (void)fprintf(stderr, "orrery: %s\n", err.message);
    client_close(app.client);
    arena_done(&app.arena);
    return status == STATUS_OK ? EXIT_SUCCESS : is_understood ? EXIT_FAILURE : EXIT_USAGE;
}
