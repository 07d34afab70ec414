/* top.c - see top.h.
 *
 * Everything that is shown is asked anew for every frame: the server keeps the history, so there is
 * nothing to remember here, and a frame is the same whoever looks, and since when.
 */
#include "cli/top.h"

#include "api/auth.h"
#include "base/clock.h"
#include "base/date.h"
#include "base/encoding.h"
#include "cli/http_get.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "cli/top_draw.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    TIMEOUT_MS = 5000,
    INTERVAL_S_MAX = 3600,
    ONCE_WIDTH = 100, /* of a frame that nobody's terminal has a width for */
    KEYS_ASKED = 20,
};

typedef struct TopOptions {
    Endpoint endpoint;
    const char *key;
    const char *database; /* NULL: of the busiest container */
    const char *container;
    uint32_t interval_s;
    bool is_once;
} TopOptions;

typedef struct TopApp {
    TopOptions options;
    Arena arena; /* of options and of what is chosen */
    Slice database;
    Slice container;
    Terminal terminal;
    TopCanvas canvas;
    Buf buffer;      /* of an answer */
    Buf frame;       /* as it is drawn */
    Arena arenas[2]; /* of the answers before, which are on the screen, and of the next */
    size_t current;  /* which of them the model lives in */
    TopModel model;
    bool has_model;
} TopApp;

static void print_help(void)
{
    (void)printf(
        "Usage: orrery top [options]\n\n"
        "Shows what the physical partitions of a container are asked for, live: a map of hash\n"
        "range against time, in which a cell is one second and its shade the part of the\n"
        "partition's request units that was used; throttled requests (429); the partition keys\n"
        "that used most and that were throttled most; and splits and merges of partitions.\n\n"
        "Options (default):\n"
        "  --endpoint URL     the server (http://localhost:8081)\n"
        "  --key BASE64       a key of it, a read-only one is enough; also ORRERY_KEY in the\n"
        "                     environment (the well-known development key)\n"
        "  --key-file FILE    file that holds the key\n"
        "  --database ID      the database (that of the busiest container)\n"
        "  --container ID     the container (the busiest one)\n"
        "  --interval SECONDS between two looks (1)\n"
        "  --once             print one frame as plain text and end; so it does when the output\n"
        "                     is not a terminal\n\n"
        "Keys: q quits, n and p go to the next and the previous container, by what they used.\n\n"
        "How to read it: one dark line among cold ones is a hot partition. Its share is its\n"
        "part of the container's throughput, however idle the others are; the keys below it\n"
        "say why. A partition whose cells are marked throttled needs more throughput, or its\n"
        "keys another choice.\n\n"
        "Examples:\n"
        "  orrery top\n"
        "  orrery top --endpoint http://db.example.com:8081 --key-file /etc/orrery/read-key\n"
        "  orrery top --database shop --container orders --once\n");
}

/* ---- options ---- */

typedef struct Arguments {
    const char *endpoint;
    const char *key;
    const char *key_file;
    const char *database;
    const char *container;
    const char *interval;
} Arguments;

static Status unknown_option(const char *argument, Error *err)
{
    static const char *const names[] = {"--endpoint", "--key",       "--key-file",
                                        "--database", "--container", "--interval",
                                        "--once",     "--help",      NULL};
    const char *nearest = options_nearest(argument, names);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "there is no option '%.80s'; %s%s%s",
                     argument,
                     nearest == NULL ? "'orrery top --help' lists them" : "did you mean '",
                     nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
}

/* --name value or --name=value; '*found' is false if it is another option. */
static Status take_value(int argc, char *const *argv, int *at, const char *name, const char **out,
                         bool *found, Error *err)
{
    size_t len = strlen(name);
    const char *argument = argv[*at];
    *found = strncmp(argument, name, len) == 0 && (argument[len] == '\0' || argument[len] == '=');
    if (!*found)
        return STATUS_OK;
    if (argument[len] == '=')
        *out = argument + len + 1;
    else if (*at + 1 < argc)
        *out = argv[++*at];
    else
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s needs a value", name);
    if (**out == '\0')
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s must not be empty", name);
    return STATUS_OK;
}

static Status parse_arguments(int argc, char *const *argv, Arguments *arguments,
                              TopOptions *options, bool *help, Error *err)
{
    const struct {
        const char *name;
        const char **out;
    } rows[] = {
        {"--endpoint", &arguments->endpoint},   {"--key", &arguments->key},
        {"--key-file", &arguments->key_file},   {"--database", &arguments->database},
        {"--container", &arguments->container}, {"--interval", &arguments->interval},
    };
    for (int i = 0; i < argc; i++) {
        bool found = false;
        for (size_t row = 0; row < ARRAY_COUNT(rows) && !found; row++)
            TRY(take_value(argc, argv, &i, rows[row].name, rows[row].out, &found, err));
        if (found)
            continue;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            *help = true;
        else if (strcmp(argv[i], "--once") == 0)
            options->is_once = true;
        else
            return unknown_option(argv[i], err);
    }
    return STATUS_OK;
}

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
    Arguments arguments = {.endpoint = "http://localhost:8081", .interval = "1"};
    TRY(parse_arguments(argc, argv, &arguments, options, help, err));
    if (*help)
        return STATUS_OK;
    if (arguments.key != NULL && arguments.key_file != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--key and --key-file exclude each other; give one of them");
    TRY(endpoint_parse(arguments.endpoint, &options->endpoint, err));
    TRY(parse_interval(arguments.interval, &options->interval_s, err));
    options->database = arguments.database;
    options->container = arguments.container;
    options->key = AUTH_DEVELOPMENT_KEY;
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, "ORRERY_KEY=", 11) == 0 && (*environment)[11] != '\0')
            options->key = *environment + 11;
    }
    if (arguments.key_file != NULL)
        TRY(options_read_key(arena, arguments.key_file, &options->key, err));
    else if (arguments.key != NULL)
        options->key = arguments.key;
    char ignored[AUTH_SIGNATURE_LEN]; /* is it a key at all? */
    return auth_sign(slice_from_cstr(options->key), SLICE("GET"), SLICE_EMPTY, SLICE_EMPTY,
                     SLICE_EMPTY, ignored, err);
}

/* ---- asking ---- */

/* What the server says about a refusal, in one line. */
static Status refused(Arena *arena, const HttpReply *reply, Error *err)
{
    Json body;
    Error ignored;
    Slice message = SLICE_EMPTY;
    if (json_parse(arena, reply->body, &body, &ignored) == STATUS_OK) {
        Json text = json_get(body, SLICE("message"));
        message = json_is(text, JSON_STRING) ? json_string(text) : SLICE_EMPTY;
    }
    message = slice_first(message, slice_find(message, '\r'));
    Status status = reply->status == 401 || reply->status == 403 ? STATUS_UNAUTHORIZED
                    : reply->status == 404                       ? STATUS_NOT_FOUND
                                                                 : STATUS_UNAVAILABLE;
    AUTO(buf_done) Buf safe;
    buf_init(&safe, 4096);
    (void)top_draw_text(message, 400, false, &safe);
    return error_set(err, status, SUB_NONE, "the server answered %d: %.*s", reply->status,
                     SLICE_ARG(buf_view(&safe)));
}

/* The body of 'path', in 'arena'. 'type' and 'link' are what the signature covers. */
static Status ask(TopApp *app, Arena *arena, Slice path, Slice type, Slice link, Slice *body,
                  Error *err)
{
    char date[DATE_LEN];
    date_print(clock_wall_s(clock_real()), date);
    char signature[AUTH_SIGNATURE_LEN];
    TRY(auth_sign(slice_from_cstr(app->options.key), SLICE("GET"), type, link,
                  slice_make(date, DATE_LEN), signature, err));
    Slice token =
        arena_format(arena, "type=master&ver=1.0&sig=%.*s", AUTH_SIGNATURE_LEN, signature);
    Slice encoded = percent_encode(arena, token, SLICE("-_."));
    HttpQuestion question = {
        .endpoint = &app->options.endpoint,
        .path = path,
        .headers = arena_format(arena, "authorization: %.*s\r\nx-ms-date: %.*s\r\n",
                                SLICE_ARG(encoded), DATE_LEN, date),
        .timeout_ms = TIMEOUT_MS,
        .cancel_fd = app->terminal.is_open ? app->terminal.signal_fd : -1,
    };
    HttpReply reply;
    TRY(http_get(&question, &app->buffer, &reply, err));
    if (reply.status != 200)
        return refused(arena, &reply, err);
    *body = arena_copy(arena, reply.body);
    return STATUS_OK;
}

/* Something about the container: what follows its path. */
static Status ask_container(TopApp *app, Arena *arena, Slice what, Slice *body, Error *err)
{
    Slice keep = SLICE("-_.~");
    Slice link = arena_format(arena, "dbs/%.*s/colls/%.*s", SLICE_ARG(app->database),
                              SLICE_ARG(app->container));
    Slice database = percent_encode(arena, app->database, keep);
    Slice container = percent_encode(arena, app->container, keep);
    Slice path = arena_format(arena, "/_orrery/dbs/%.*s/colls/%.*s/%.*s", SLICE_ARG(database),
                              SLICE_ARG(container), SLICE_ARG(what));
    return ask(app, arena, path, SLICE("colls"), link, body, err);
}

/* The history that fits the screen ends at the layout's time, so that the two belong together. */
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
    Slice what =
        arena_format(arena, "history?grain=second&from=%lld&to=%lld", from, (long long)time_s);
    return ask_container(app, arena, what, &answers->history, err);
}

static Status ask_model(TopApp *app, Arena *arena, TopModel *out, Error *err)
{
    TopAnswers answers = {0};
    TRY(ask_container(app, arena, SLICE("layout"), &answers.layout, err));
    TRY(ask_history(app, arena, &answers, err));
    Slice by_ru = arena_format(arena, "top?by=ru&minutes=1&count=%d", KEYS_ASKED);
    TRY(ask_container(app, arena, by_ru, &answers.by_ru, err));
    Slice by_throttled = arena_format(arena, "top?by=throttled&minutes=1&count=%d", KEYS_ASKED);
    TRY(ask_container(app, arena, by_throttled, &answers.by_throttled, err));
    TRY(ask(app, arena, SLICE("/_orrery/events"), SLICE_EMPTY, SLICE_EMPTY, &answers.events, err));
    return top_model_parse(arena, &answers, out, err);
}

/* ---- which container ---- */

static bool is_named(const char *wanted, Slice name)
{
    return wanted == NULL || slice_equal(slice_from_cstr(wanted), name);
}

/* The one 'step' behind the current one in the list, which begins with the busiest; the first of
 * those that the options allow, if there is no current one. */
static Status choose_container(TopApp *app, int step, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice body;
    TRY(ask(app, &arena, SLICE("/_orrery/containers"), SLICE_EMPTY, SLICE_EMPTY, &body, err));
    TopContainer *list = NULL;
    size_t count = 0;
    TRY(top_containers_parse(&arena, body, &list, &count, err));
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

/* The model on the screen stays until the next one is whole. */
static Status refresh(TopApp *app, Error *err)
{
    Arena *next = &app->arenas[1 - app->current];
    arena_reset(next);
    TRY(ask_model(app, next, &app->model, err));
    app->current = 1 - app->current;
    app->has_model = true;
    return STATUS_OK;
}

static Status run_once(TopApp *app, Error *err)
{
    if (app->database.len == 0 || app->container.len == 0)
        TRY(choose_container(app, 0, err));
    TRY(refresh(app, err));
    top_draw(&app->model, &app->canvas, SLICE_EMPTY, &app->frame);
    Slice text = buf_view(&app->frame);
    if (fwrite(text.ptr, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
        return error_set(err, STATUS_IO, SUB_NONE, "cannot write to standard output");
    return STATUS_OK;
}

/* What a key asks for; false to end. */
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

/* A server that does not answer for a while may be back; one that does not know us will not. A
 * question is also given up when the terminal has something to say. */
static bool is_final(const TopApp *app, Status status)
{
    return status == STATUS_UNAUTHORIZED || status == STATUS_NOT_FOUND ||
           (!app->has_model && status != STATUS_TIMEOUT);
}

static Status run_live(TopApp *app, Error *err)
{
    Status status = STATUS_OK;
    if (app->database.len == 0 || app->container.len == 0)
        status = choose_container(app, 0, err);
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
    buf_init(&app->buffer, HTTP_GET_BYTES_MAX);
    buf_init(&app->frame, TOP_FRAME_BYTES_MAX);
}

static void app_done(TopApp *app)
{
    arena_done(&app->arena);
    for (size_t i = 0; i < ARRAY_COUNT(app->arenas); i++)
        arena_done(&app->arenas[i]);
    buf_done(&app->buffer);
    buf_done(&app->frame);
}
DEFINE_AUTO_VALUE(TopApp, app_done)

int top_main(int argc, char *const *argv, char *const *environment)
{
    AUTO(app_done) TopApp app;
    app_init(&app);
    Error err;
    bool help = false;
    if (parse_options(&app.arena, argc, argv, environment, &app.options, &help, &err) !=
        STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return EXIT_USAGE;
    }
    if (help) {
        print_help();
        return EXIT_SUCCESS;
    }
    (void)setlocale(LC_CTYPE, ""); /* without, only ASCII is drawn */
    app.canvas.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (run(&app, &err) == STATUS_OK)
        return EXIT_SUCCESS;
    (void)fprintf(stderr, "orrery: %s\n", err.message);
    return EXIT_FAILURE;
}
