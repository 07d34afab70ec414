/* advise_options.c - see advise_options.h. */
#include "cli/advise_options.h"

#include "cli/connection.h"
#include "cli/options.h"

void advise_options_print_help(void)
{
    (void)printf(
        "Usage: orrery advise FILE [options]\n"
        "       orrery advise --database ID --container ID [options]\n\n"
        "Finds the partition key that a container should have. It takes a sample of items, finds\n"
        "the properties that can be a key, alone or together, lays the items out on physical\n"
        "partitions with the server's own hash, and measures: how evenly storage and writes are\n"
        "spread, when a key is full (20 GB), and which queries visit one partition only.\n\n"
        "FILE has items as JSON, one on each line or in an array; - reads standard input.\n\n"
        "Options (default):\n"
        "  --endpoint URL     the server that has the container (http://localhost:8081)\n"
        "  --key BASE64       a key of the server; a read-only one is enough. Also taken from\n"
        "                     ORRERY_KEY in the environment (the well-known development key)\n"
        "  --key-file FILE    file that holds the key\n"
        "  --cert FILE        trust this certificate (PEM) of an https:// server\n"
        "  --database ID      the database of the container to sample\n"
        "  --container ID     the container to sample; reading an item costs a point read\n"
        "  --queries FILE     queries that the container serves: a JSON array of\n"
        "                     {\"query\": \"SELECT ...\", \"perSecond\": 12}, or one SQL on each "
        "line\n"
        "  --sample N         keep at most so many items, spread over all (20000)\n"
        "  --partitions N     physical partitions to lay the items out on (10)\n"
        "  --growth N         new items a day that you expect (as observed by the time path)\n"
        "  --time-path PATH   where items have the time at which they were written (/_ts)\n"
        "  --together PATH    items with the same value here are written in one transaction\n"
        "  --check KEY        judge this key only, such as /userId or /tenantId,/userId\n"
        "  --json             print JSON; docs/choosing-a-partition-key.md describes it\n"
        "  --html FILE        also write a page with charts\n\n"
        "Exit code: 0, or with --check 0 if the key is acceptable and 1 if it is not; 2 if the\n"
        "usage is wrong or the input cannot be read.\n\n"
        "Examples:\n"
        "  orrery advise orders.jsonl --queries queries.json\n"
        "  orrery advise --database shop --container orders --together /orderId\n"
        "  orrery advise orders.jsonl --check /customerId --growth 50000\n");
}

typedef struct Texts {
    const char *endpoint;
    const char *key;
    const char *key_file;
    const char *cert;
    const char *database;
    const char *container;
    const char *queries;
    const char *sample;
    const char *partitions;
    const char *growth;
    const char *time_path;
    const char *together;
    const char *check;
    const char *html;
} Texts;

typedef struct Row {
    const char *name;
    size_t offset; /* in Texts */
} Row;

static const Row ROWS[] = {
    {"--endpoint", offsetof(Texts, endpoint)},     {"--key", offsetof(Texts, key)},
    {"--key-file", offsetof(Texts, key_file)},     {"--cert", offsetof(Texts, cert)},
    {"--database", offsetof(Texts, database)},     {"--container", offsetof(Texts, container)},
    {"--queries", offsetof(Texts, queries)},       {"--sample", offsetof(Texts, sample)},
    {"--partitions", offsetof(Texts, partitions)}, {"--growth", offsetof(Texts, growth)},
    {"--time-path", offsetof(Texts, time_path)},   {"--together", offsetof(Texts, together)},
    {"--check", offsetof(Texts, check)},           {"--html", offsetof(Texts, html)},
};

static const char **text_of(Texts *texts, const Row *row)
{
    return (const char **)(void *)((char *)texts + row->offset);
}

static Status unknown_option(const char *argument, Error *err)
{
    const char *names[ARRAY_COUNT(ROWS) + 3];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++)
        names[count++] = ROWS[i].name;
    names[count++] = "--json";
    names[count++] = "--help";
    names[count] = NULL;
    const char *nearest = options_nearest(argument, names);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "there is no option '%.80s'; %s%s%s",
                     argument,
                     nearest == NULL ? "'orrery advise --help' lists them" : "did you mean '",
                     nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
}

/* --name value or --name=value; '*found' is false if it is another option. */
static Status take_value(int argc, char *const *argv, int *at, Texts *texts, const Row *row,
                         bool *found, Error *err)
{
    size_t len = strlen(row->name);
    const char *argument = argv[*at];
    const char **out = text_of(texts, row);
    *found =
        strncmp(argument, row->name, len) == 0 && (argument[len] == '\0' || argument[len] == '=');
    if (!*found)
        return STATUS_OK;
    if (argument[len] == '=')
        *out = argument + len + 1;
    else if (*at + 1 < argc)
        *out = argv[++*at];
    else
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s needs a value", row->name);
    if (**out == '\0')
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s must not be empty", row->name);
    return STATUS_OK;
}

static Status read_arguments(int argc, char *const *argv, Texts *texts, AdviseCommand *out,
                             bool *help, Error *err)
{
    for (int i = 0; i < argc; i++) {
        bool found = false;
        for (size_t row = 0; row < ARRAY_COUNT(ROWS) && !found; row++)
            TRY(take_value(argc, argv, &i, texts, &ROWS[row], &found, err));
        if (found)
            continue;
        bool is_file = argv[i][0] != '-' || argv[i][1] == '\0';
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            *help = true;
        else if (strcmp(argv[i], "--json") == 0)
            out->is_json = true;
        else if (is_file && out->file == NULL && argv[i][0] != '\0')
            out->file = argv[i];
        else if (is_file)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "there is one FILE too many: '%.80s'", argv[i]);
        else
            return unknown_option(argv[i], err);
    }
    return STATUS_OK;
}

static Status read_number(const char *name, const char *text, uint64_t least, uint64_t most,
                          uint64_t *out, Error *err)
{
    if (text == NULL)
        return STATUS_OK;
    uint64_t value = 0;
    if (!slice_to_u64(slice_from_cstr(text), &value) || value < least || value > most)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "%s must be a whole number from %llu to %llu, not '%.80s'", name,
                         (unsigned long long)least, (unsigned long long)most, text);
    *out = value;
    return STATUS_OK;
}

static Status read_growth(const char *text, double *out, Error *err)
{
    double value = 0;
    if (text == NULL)
        return STATUS_OK;
    if (!json_number_from_text(slice_from_cstr(text), &value) || !(value > 0) ||
        value > KEY_ADVICE_ITEMS_PER_DAY_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--growth must be a number of items a day above 0, not '%.80s'", text);
    *out = value;
    return STATUS_OK;
}

static Status read_path(Arena *arena, const char *name, const char *text, PropertyPath *out,
                        Error *err)
{
    size_t position = 0;
    if (text == NULL)
        return STATUS_OK;
    if (!property_path_parse(arena, slice_from_cstr(text), out, &position))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "%s must be a path such as /a or /a/b, not '%.80s'", name, text);
    return STATUS_OK;
}

static Status check_source(const Texts *texts, const AdviseCommand *out, Error *err)
{
    bool is_server = texts->endpoint != NULL || texts->key != NULL || texts->key_file != NULL ||
                     texts->cert != NULL || texts->database != NULL || texts->container != NULL;
    if (out->file != NULL && is_server)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "a FILE and the options of a server exclude each other");
    if (out->file == NULL && (texts->database == NULL || texts->container == NULL))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "nothing to learn from: give a FILE of items, or --database and "
                         "--container; 'orrery advise --help' tells more");
    if (out->file != NULL && texts->queries != NULL && strcmp(out->file, "-") == 0 &&
        strcmp(texts->queries, "-") == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "items and queries cannot both come from standard input");
    return STATUS_OK;
}

Status advise_options_parse(Arena *arena, int argc, char *const *argv, char *const *environment,
                            AdviseCommand *out, bool *help, Error *err)
{
    *out = (AdviseCommand){0};
    Texts texts = {0};
    uint64_t sample = SAMPLE_ITEMS_DEFAULT;
    uint64_t partitions = KEY_ADVICE_PARTITIONS_DEFAULT;
    TRY(read_arguments(argc, argv, &texts, out, help, err));
    if (*help)
        return STATUS_OK;
    TRY(check_source(&texts, out, err));
    TRY(connection_choose_key(texts.key, texts.key_file, arena, environment, &out->key, err));
    TRY(read_number("--sample", texts.sample, SAMPLE_ITEMS_MIN, SAMPLE_ITEMS_MAX, &sample, err));
    TRY(read_number("--partitions", texts.partitions, 1, LAYOUT_PARTITIONS_MAX, &partitions, err));
    TRY(read_growth(texts.growth, &out->growth, err));
    TRY(read_path(arena, "--time-path", texts.time_path, &out->time_path, err));
    TRY(read_path(arena, "--together", texts.together, &out->together, err));
    out->has_check = texts.check != NULL;
    if (out->has_check)
        TRY(key_candidate_parse(arena, slice_from_cstr(texts.check), &out->check, err));
    out->endpoint = texts.endpoint != NULL ? texts.endpoint : "http://localhost:8081";
    out->cert_file = texts.cert;
    out->database = texts.database;
    out->container = texts.container;
    out->queries_file = texts.queries;
    out->html_file = texts.html;
    out->sample_max = (size_t)sample;
    out->partitions = (uint32_t)partitions;
    out->are_partitions_given = texts.partitions != NULL;
    return STATUS_OK;
}
