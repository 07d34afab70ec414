/* advise.c - see advise.h. Reads the input, lets the layer advise work, and prints. */
#include "cli/advise.h"

#include "advise/report.h"
#include "advise/sample_reader.h"
#include "base/clock.h"
#include "cli/advise_container.h"
#include "cli/advise_options.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    EXIT_NOT_ACCEPTABLE = 1,
    EXIT_USAGE = 2,
    TIMEOUT_MS = 30000,
    PLAIN_WIDTH = 100, /* columns, if the output is not a terminal */
    PIECE_BYTES = 64 << 10,
};
#define ANSWER_BYTES_MAX ((size_t)32 << 20) /* a page has 4 MB, but no transaction is cut */

typedef struct AdviseApp {
    AdviseCommand command;
    Arena arena;
    Sample sample;
    Workload work;
    AdviseContainer container;
} AdviseApp;

static void close_file(FILE *file)
{
    if (file != NULL && file != stdin)
        (void)fclose(file); /* it was only read */
}
DEFINE_AUTO(FILE *, close_file)

static Status open_file(const char *path, FILE **out, Error *err)
{
    *out = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (*out == NULL)
        return error_set_errno(err, errno, "cannot open '%.200s'", path);
    return STATUS_OK;
}

static Status read_sample(AdviseApp *app, Error *err)
{
    AUTO(close_file) FILE *file = NULL;
    AUTO(sample_reader_done) SampleReader reader;
    sample_reader_init(&reader, &app->sample);
    TRY(open_file(app->command.file, &file, err));
    char piece[PIECE_BYTES];
    size_t len = 0;
    while ((len = fread(piece, 1, sizeof(piece), file)) > 0) {
        if (sample_reader_feed(&reader, slice_make(piece, len), err) != STATUS_OK)
            return error_context(err, "'%.200s'", app->command.file);
    }
    if (ferror(file) != 0)
        return error_set_errno(err, errno, "cannot read '%.200s'", app->command.file);
    if (sample_reader_end(&reader, err) != STATUS_OK)
        return error_context(err, "'%.200s'", app->command.file);
    return STATUS_OK;
}

static Status read_container(AdviseApp *app, Error *err)
{
    AUTO(client_close) Client *client = NULL;
    ClientOptions options = {
        .endpoint = app->command.endpoint,
        .key = app->command.key,
        .cert_file = app->command.cert_file,
        .timeout_ms = TIMEOUT_MS,
        .answer_bytes_max = ANSWER_BYTES_MAX,
    };
    TRY(client_open(&options, &client, err));
    return advise_container_read(client, slice_from_cstr(app->command.database),
                                 slice_from_cstr(app->command.container), &app->sample, &app->arena,
                                 &app->container, err);
}

static Status read_queries(AdviseApp *app, Error *err)
{
    AUTO(close_file) FILE *file = NULL;
    AUTO(buf_done) Buf text;
    buf_init(&text, WORKLOAD_BYTES_MAX);
    TRY(open_file(app->command.queries_file, &file, err));
    char piece[PIECE_BYTES];
    size_t len = 0;
    while ((len = fread(piece, 1, sizeof(piece), file)) > 0 && !buf_full(&text))
        buf_bytes(&text, piece, len);
    if (ferror(file) != 0)
        return error_set_errno(err, errno, "cannot read '%.200s'", app->command.queries_file);
    if (buf_full(&text))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%.200s' has more than %zu bytes",
                         app->command.queries_file, WORKLOAD_BYTES_MAX);
    Slice kept = arena_copy(&app->arena, buf_view(&text));
    if (workload_parse(&app->arena, kept, &app->work, err) != STATUS_OK)
        return error_context(err, "'%.200s'", app->command.queries_file);
    return STATUS_OK;
}

static Status read_input(AdviseApp *app, Error *err)
{
    /* The queries first: they are checked at once, a sample may take long. */
    if (app->command.queries_file != NULL)
        TRY(read_queries(app, err));
    if (app->command.file != NULL)
        TRY(read_sample(app, err));
    else
        TRY(read_container(app, err));
    if (app->work.count == 0)
        app->work = app->container.recorded;
    return sample_finish(&app->sample, app->command.time_path, err);
}

static Status run(AdviseApp *app, Advice *out, Error *err)
{
    TRY(read_input(app, err));
    const IndexPolicy *policy = app->container.policy;
    if (policy == NULL) {
        IndexPolicy *fallback = NULL;
        TRY(index_policy_new(&app->arena, JSON_NONE, NULL, 0, &fallback, err));
        policy = fallback;
    }
    KeyAdviceOptions options = {
        .partitions = app->command.partitions,
        .are_partitions_given = app->command.are_partitions_given,
        .growth = app->command.growth,
        .together = app->command.together,
        .check = app->command.has_check ? &app->command.check : NULL,
        .current = app->container.key.path_count > 0 ? &app->container.key : NULL,
        .policy = policy,
        .model = charge_model_default(),
        .now_s = (double)clock_wall_s(clock_real()),
        .no_queries = " No queries were given: with --queries the advice also counts which "
                      "partitions they visit.",
    };
    key_advice_make(&app->sample, app->work.count > 0 ? &app->work : NULL, &options, &app->arena,
                    out);
    return STATUS_OK;
}

/* ---- output ---- */

static Status write_file(const char *path, Slice text, Error *err)
{
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return error_set_errno(err, errno, "cannot write '%.200s'", path);
    bool is_written = fwrite(text.ptr, 1, text.len, file) == text.len;
    if (fclose(file) != 0 || !is_written)
        return error_set_errno(err, errno, "cannot write '%.200s'", path);
    return STATUS_OK;
}

static bool wants_colour(void)
{
    const char *none = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && (none == NULL || none[0] == '\0') &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

static Status print(const AdviseApp *app, const Advice *advice, Error *err)
{
    AUTO(buf_done) Buf out;
    buf_init(&out, REPORT_BYTES_MAX);
    if (app->command.html_file != NULL) {
        report_html(advice, &out);
        TRY(write_file(app->command.html_file, buf_view(&out), err));
        buf_reset(&out);
    }
    uint32_t width = PLAIN_WIDTH;
    uint32_t height = 0;
    (void)terminal_size(&width, &height); /* leaves the width as it is if there is no terminal */
    ReportStyle style = {
        .width = width < REPORT_WIDTH_MIN   ? REPORT_WIDTH_MIN
                 : width > REPORT_WIDTH_MAX ? REPORT_WIDTH_MAX
                                            : width,
        .is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
        .has_colour = wants_colour(),
    };
    if (app->command.is_json)
        report_json(advice, &out);
    else
        report_text(advice, &style, &out);
    Slice text = buf_view(&out);
    if (fwrite(text.ptr, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
        return error_set(err, STATUS_IO, SUB_NONE, "cannot write to standard output");
    return STATUS_OK;
}

static void app_done(AdviseApp *app)
{
    sample_done(&app->sample);
    arena_done(&app->arena);
}
DEFINE_AUTO_VALUE(AdviseApp, app_done)

int advise_main(int argc, char *const *argv, char *const *environment)
{
    AUTO(app_done) AdviseApp app = {0};
    arena_init(&app.arena, ARENA_LARGE_BYTES);
    Error err;
    bool help = false;
    Status status =
        advise_options_parse(&app.arena, argc, argv, environment, &app.command, &help, &err);
    options_hide(argc, argv, environment);
    if (status == STATUS_OK && help) {
        command_print_help(&ADVISE_COMMAND, stdout);
        return EXIT_SUCCESS;
    }
    Advice advice = {0};
    if (status == STATUS_OK) {
        (void)setlocale(LC_CTYPE, ""); /* if it fails, only ASCII is printed */
        sample_init(&app.sample, (SampleLimits){app.command.sample_max, SAMPLE_BYTES_MAX});
        status = run(&app, &advice, &err);
    }
    if (status == STATUS_OK)
        status = print(&app, &advice, &err);
    if (status != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return EXIT_USAGE;
    }
    bool is_refused = advice.checked != NULL && advice.checked->verdict.worst == FINDING_REFUSAL;
    return is_refused ? EXIT_NOT_ACCEPTABLE : EXIT_SUCCESS;
}
