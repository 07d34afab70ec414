/* top.c - see top.h.
 *
 * Every frame asks for everything that it shows. The server keeps the history, so nothing is
 * remembered here, and all observers see the same at any time.
 */
#include "cli/top.h"

#include "base/clock.h"
#include "base/encoding.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "cli/top_draw.h"
#include "client/client.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    TIMEOUT_MS = 5000,
    INTERVAL_S_MAX = 3600,
    ONCE_WIDTH = 100, /* columns, if the output is not a terminal */
    KEYS_ASKED = 20,
};

typedef struct TopOptions {
    const char *endpoint;
    const char *key;
    const char *cert_file; /* NULL for the system's authorities */
    const char *database;  /* NULL for that of the busiest container */
    const char *container;
    uint32_t interval_s;
    bool is_once;
} TopOptions;

typedef struct TopApp {
    TopOptions options;
    Client *client;
    Arena arena; /* for the options and the chosen container */
    Slice database;
    Slice container;
    Terminal terminal;
    TopCanvas canvas;
    Buf frame;       /* the text of the frame */
    Arena arenas[2]; /* for the answers on the screen and for the next ones */
    size_t current;  /* the arena of the model on the screen */
    TopModel model;
    bool has_model;
} TopApp;

typedef struct TopArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/top_options.def"
#undef ARGUMENT_ROW
} TopArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(TopArguments, field, name, kind, placeholder, fallback, help),
#include "cli/top_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"top", ROWS, ARRAY_COUNT(ROWS)};

const Command TOP_COMMAND = {
    .name = "top",
    .summary = "show live how much partitions and keys use",
    .usage = "top [options]",
    .about =
        "Shows live how much the physical partitions of a container are used: a map of hash range "
        "against time, in which a cell is one second and its shade tells how much of the "
        "partition's request units was used; throttled requests (429); the partition keys that "
        "used most and that were throttled most; and splits and merges of partitions. On a node of "
        "a cluster also which node serves each partition, and how the nodes are.",
    .options = &TABLE,
    .notes = "Keys: q quits; n and p show the next and the previous container, the busiest first."
             "\n\n"
             "How to read it: one dark line among cold ones is a hot partition. A partition has a "
             "fixed share of the container's throughput, however idle the others are. The keys "
             "below the map tell what is using it. A partition with throttled cells needs more "
             "throughput, or the container a better partition key.",
    .examples = "orrery top\n"
                "orrery top --endpoint http://db.example.com:8081 --key-file /etc/orrery/read-key\n"
                "orrery top --database shop --container orders --once\n",
    .main = top_main,
};

/* ---- options ---- */

static Status parse_interval(const char *text, uint32_t *out, Error *err)
{
    uint64_t value = 0;
    if (!slice_to_u64(slice_from_cstr(text), &value) || value == 0 || value > INTERVAL_S_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--interval must be a whole number of seconds from 1 to %d, not '%.80s'",
                         INTERVAL_S_MAX, text);
    *out = (uint32_t)value;
    return STATUS_OK;
}

static Status parse_options(Arena *arena, int argc, char *const *argv, char *const *environment,
                            TopOptions *options, bool *help, Error *err)
{
    TopArguments arguments = {0};
    TRY(arguments_parse(&TABLE, arena, argc, argv, &arguments, NULL, help, err));
    if (*help)
        return STATUS_OK;
    options->is_once = arguments.once;
    TRY(parse_interval(arguments.interval, &options->interval_s, err));
    options->endpoint = arguments.endpoint;
    options->cert_file = arguments.cert;
    options->database = arguments.database;
    options->container = arguments.container;
    return connection_choose_key(arguments.key, arguments.key_file, arena, environment,
                                 &options->key, err);
}

/* ---- asking ---- */

/* Asks everything at the same time. The error is that of the first call that failed; only so many
 * of the calls must not. */
static Status ask_some(TopApp *app, ClientCall *calls, size_t count, size_t needed, Error *err)
{
    for (size_t i = 0; i < count; i++)
        client_start(app->client, &calls[i]);
    int cancel_fd = app->terminal.is_open ? app->terminal.signal_fd : -1;
    ClientCall *ended = NULL;
    do
        TRY(client_wait(app->client, cancel_fd, &ended, err));
    while (ended != NULL);
    for (size_t i = 0; i < needed; i++) {
        if (calls[i].error.status != STATUS_OK) {
            *err = calls[i].error;
            return err->status;
        }
        if (calls[i].http_status != 200)
            return connection_refused(&calls[i], err);
    }
    return STATUS_OK;
}

static Status ask_all(TopApp *app, ClientCall *calls, size_t count, Error *err)
{
    return ask_some(app, calls, count, count, err);
}

/* A question about the container; 'what' follows its path. */
static ClientCall about_container(const TopApp *app, Arena *arena, Slice what)
{
    Slice keep = SLICE("-_.~");
    Slice database = percent_encode(arena, app->database, keep);
    Slice container = percent_encode(arena, app->container, keep);
    return (ClientCall){
        .path = arena_format(arena, "/_orrery/dbs/%.*s/colls/%.*s/%.*s", SLICE_ARG(database),
                             SLICE_ARG(container), SLICE_ARG(what)),
        .resource_type = SLICE("colls"),
        .resource_link = arena_format(arena, "dbs/%.*s/colls/%.*s", SLICE_ARG(app->database),
                                      SLICE_ARG(app->container)),
        .arena = arena,
    };
}

/* Asks for as much history as fits the screen, up to the time of the layout, so that they agree. */
static Status ask_history(TopApp *app, Arena *arena, TopAnswers *answers, Error *err)
{
    Json layout;
    TRY(json_parse(arena, answers->layout, &layout, err));
    int64_t time_s = 0;
    if (!json_to_i64(json_get(layout, SLICE("time")), &time_s) || time_s < 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the server's answer has no time; is it of another version?");
    long long columns = top_draw_columns(&app->canvas);
    long long from = time_s > columns ? time_s - columns : 0;
    ClientCall call = about_container(
        app, arena,
        arena_format(arena, "history?grain=second&from=%lld&to=%lld", from, (long long)time_s));
    TRY(ask_all(app, &call, 1, err));
    answers->history = call.body;
    return STATUS_OK;
}

static Status ask_model(TopApp *app, Arena *arena, TopModel *out, Error *err)
{
    enum { LAYOUT, BY_RU, BY_THROTTLED, EVENTS, CLUSTER, CALL_COUNT };
    ClientCall calls[CALL_COUNT] = {
        [LAYOUT] = about_container(app, arena, SLICE("layout")),
        [BY_RU] = about_container(app, arena,
                                  arena_format(arena, "top?by=ru&minutes=1&count=%d", KEYS_ASKED)),
        [BY_THROTTLED] = about_container(
            app, arena, arena_format(arena, "top?by=throttled&minutes=1&count=%d", KEYS_ASKED)),
        [EVENTS] = {.path = SLICE("/_orrery/events"), .arena = arena},
        [CLUSTER] = {.path = SLICE("/_orrery/cluster"), .arena = arena},
    };
    /* A server alone is in no cluster, and a node may not reach its engine just now. */
    TRY(ask_some(app, calls, CALL_COUNT, CLUSTER, err));
    TopAnswers answers = {
        .layout = calls[LAYOUT].body,
        .by_ru = calls[BY_RU].body,
        .by_throttled = calls[BY_THROTTLED].body,
        .events = calls[EVENTS].body,
    };
    if (calls[CLUSTER].error.status == STATUS_OK && calls[CLUSTER].http_status == 200)
        answers.cluster = calls[CLUSTER].body;
    app->canvas.has_owners = answers.cluster.len > 0;
    TRY(ask_history(app, arena, &answers, err));
    return top_model_parse(arena, &answers, out, err);
}

/* ---- which container ---- */

static bool is_named(const char *wanted, Slice name)
{
    return wanted == NULL || slice_equal(slice_from_cstr(wanted), name);
}

/* Chooses the container that is 'step' places after the current one in the list, which begins with
 * the busiest; the first that the options allow, if there is no current one. */
static Status choose_container(TopApp *app, int step, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    ClientCall call = {.path = SLICE("/_orrery/containers"), .arena = &arena};
    TRY(ask_all(app, &call, 1, err));
    TopContainer *list = NULL;
    size_t count = 0;
    TRY(top_containers_parse(&arena, call.body, &list, &count, err));
    size_t fitting = 0;
    size_t current = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        if (!is_named(app->options.database, list[i].database) ||
            !is_named(app->options.container, list[i].container))
            continue;
        if (slice_equal(list[i].database, app->database) &&
            slice_equal(list[i].container, app->container))
            current = fitting;
        list[fitting++] = list[i];
    }
    if (fitting == 0)
        return error_set(
            err, STATUS_NOT_FOUND, SUB_NONE, "the server has no container%s to show yet",
            app->options.database == NULL && app->options.container == NULL ? "" : " of that name");
    ASSERT(step == 0 || step == 1 || step == -1);
    size_t chosen =
        current == SIZE_MAX ? 0 : (current + fitting + (size_t)(step + (int)fitting)) % fitting;
    app->database = arena_copy(&app->arena, list[chosen].database);
    app->container = arena_copy(&app->arena, list[chosen].container);
    return STATUS_OK;
}

/* ---- showing ---- */

static uint32_t between(uint32_t value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : value;
}

static void measure(TopApp *app)
{
    uint32_t width = ONCE_WIDTH;
    uint32_t height = 0;
    bool is_terminal = terminal_size(&width, &height);
    app->canvas.width = between(width, TOP_DRAW_WIDTH_MIN, TOP_DRAW_WIDTH_MAX);
    app->canvas.height = 0;
    if (is_terminal && app->canvas.has_colour)
        app->canvas.height = between(height, TOP_DRAW_HEIGHT_MIN, TOP_DRAW_HEIGHT_MAX);
}

static void show(TopApp *app, Slice note)
{
    buf_reset(&app->frame);
    buf_slice(&app->frame, SLICE("\033[H"));
    if (app->has_model)
        top_draw(&app->model, &app->canvas, note, &app->frame);
    else
        (void)top_draw_text(note, app->canvas.width, app->canvas.is_utf8, &app->frame);
    buf_slice(&app->frame, SLICE("\033[J"));
    terminal_write(&app->terminal, buf_view(&app->frame));
}

/* Chooses a container if there is none yet. The old model stays on the screen until the next one is
 * complete. */
static Status refresh(TopApp *app, Error *err)
{
    ASSERT(app->current < ARRAY_COUNT(app->arenas));
    if (app->database.len == 0 || app->container.len == 0)
        TRY(choose_container(app, 0, err));
    ASSERT(app->database.len > 0);
    ASSERT(app->container.len > 0);
    Arena *next = &app->arenas[1 - app->current];
    arena_reset(next);
    TRY(ask_model(app, next, &app->model, err));
    app->current = 1 - app->current;
    app->has_model = true;
    return STATUS_OK;
}

static Status run_once(TopApp *app, Error *err)
{
    TRY(refresh(app, err));
    top_draw(&app->model, &app->canvas, SLICE_EMPTY, &app->frame);
    Slice text = buf_view(&app->frame);
    if (fwrite(text.ptr, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
        return error_set(err, STATUS_IO, SUB_NONE, "cannot write to standard output");
    return STATUS_OK;
}

/* Does what a key asks for; false to end. */
static bool on_key(TopApp *app, char key, Error *err, Status *status)
{
    if (key == 'q' || key == 'Q')
        return false;
    if (key == 'n' || key == 'p')
        *status = choose_container(app, key == 'n' ? 1 : -1, err);
    return true;
}

static bool wait_and_act(TopApp *app, Error *err, Status *status)
{
    uint64_t end_us =
        clock_monotonic_us(clock_real()) + (uint64_t)app->options.interval_s * 1000000;
    for (;;) {
        uint64_t now_us = clock_monotonic_us(clock_real());
        if (now_us >= end_us)
            return true;
        char key = 0;
        switch (terminal_wait(&app->terminal, (uint32_t)((end_us - now_us + 999) / 1000), &key)) {
        case TERMINAL_NOTHING:
            break;
        case TERMINAL_KEY:
            return on_key(app, key, err, status);
        case TERMINAL_REDRAW:
            measure(app);
            return true;
        case TERMINAL_END:
            return false;
        }
    }
}

/* A server that does not answer may do so later; one that refuses the key will not. STATUS_TIMEOUT
 * is also the result when a signal cancels the calls. */
static bool is_final(const TopApp *app, Status status)
{
    return status == STATUS_UNAUTHORIZED || status == STATUS_NOT_FOUND ||
           (!app->has_model && status != STATUS_TIMEOUT);
}

static Status run_live(TopApp *app, Error *err)
{
    Status status = STATUS_OK;
    do {
        if (status == STATUS_OK)
            status = refresh(app, err);
        if (status != STATUS_OK && is_final(app, status))
            return status;
        show(app, status == STATUS_OK ? SLICE("q quits, n and p: next and previous container")
                                      : slice_from_cstr(err->message));
        status = STATUS_OK;
    } while (wait_and_act(app, err, &status));
    return STATUS_OK;
}

static Status run(TopApp *app, Error *err)
{
    if (app->options.database != NULL)
        app->database = slice_from_cstr(app->options.database);
    if (app->options.container != NULL)
        app->container = slice_from_cstr(app->options.container);
    if (isatty(STDOUT_FILENO) == 0)
        app->options.is_once = true;
    app->canvas.has_colour = !app->options.is_once;
    measure(app);
    if (app->options.is_once)
        return run_once(app, err);
    TRY(terminal_open(&app->terminal, err));
    Status status = run_live(app, err);
    terminal_close(&app->terminal);
    return status;
}

static void app_init(TopApp *app)
{
    *app = (TopApp){0};
    arena_init(&app->arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(app->arenas); i++)
        arena_init(&app->arenas[i], 256 << 10);
    buf_init(&app->frame, TOP_FRAME_BYTES_MAX);
}

static void app_done(TopApp *app)
{
    arena_done(&app->arena);
    for (size_t i = 0; i < ARRAY_COUNT(app->arenas); i++)
        arena_done(&app->arenas[i]);
    client_close(app->client);
    buf_done(&app->frame);
}
DEFINE_AUTO_VALUE(TopApp, app_done)

static Status open_client(TopApp *app, Error *err)
{
    ClientOptions options = {
        .endpoint = app->options.endpoint,
        .key = app->options.key,
        .cert_file = app->options.cert_file,
        .timeout_ms = TIMEOUT_MS,
    };
    return client_open(&options, &app->client, err);
}

int top_main(int argc, char *const *argv, char *const *environment)
{
    AUTO(app_done) TopApp app;
    app_init(&app);
    Error err;
    bool help = false;
    Status status = parse_options(&app.arena, argc, argv, environment, &app.options, &help, &err);
    options_hide(argc, argv, environment);
    if (status == STATUS_OK && help) {
        command_print_help(&TOP_COMMAND, stdout);
        return EXIT_SUCCESS;
    }
    if (status == STATUS_OK)
        status = open_client(&app, &err);
    if (status != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return status == STATUS_UNAVAILABLE ? EXIT_FAILURE : EXIT_USAGE;
    }
    (void)setlocale(LC_CTYPE, ""); /* if it fails, only ASCII is drawn */
    app.canvas.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (run(&app, &err) == STATUS_OK)
        return EXIT_SUCCESS;
    (void)fprintf(stderr, "orrery: %s\n", err.message);
    return EXIT_FAILURE;
}
