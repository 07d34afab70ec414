/* advise_options.c - see advise_options.h. */
#include "cli/advise_options.h"

#include "cli/advise.h"
#include "cli/commands.h"
#include "cli/connection.h"

typedef struct Texts {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/advise_options.def"
#undef ARGUMENT_ROW
} Texts;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(Texts, field, name, kind, placeholder, fallback, help),
#include "cli/advise_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"advise", ROWS, ARRAY_COUNT(ROWS)};

const Command ADVISE_COMMAND = {
    .name = "advise",
    .summary = "find the partition key that a container should have",
    .usage = "advise FILE [options]\n"
             "advise --database ID --container ID [options]",
    .about =
        "Finds the partition key that a container should have. It takes a sample of items, finds "
        "the properties that can be a key, alone or together, lays the items out on physical "
        "partitions with the server's own hash, and measures: how evenly storage and writes are "
        "spread, when a key is full (20 GB), and which queries visit one partition only.\n\n"
        "FILE has items as JSON, one on each line or in an array; - reads standard input.",
    .options = &TABLE,
    .operands = "FILE",
    .notes = "The exit code is 0, or with --check 0 if the key is acceptable and 1 if it is not; 2 "
             "if the usage is wrong or the input cannot be read.",
    .examples = "orrery advise orders.jsonl --queries queries.json\n"
                "orrery advise --database shop --container orders --together /orderId\n"
                "orrery advise orders.jsonl --check /customerId --growth 50000\n",
    .main = advise_main,
};

static Status read_arguments(Arena *arena, int argc, char *const *argv, Texts *texts,
                             AdviseCommand *out, bool *help, Error *err)
{
    ArgumentList files = {0};
    TRY(arguments_parse(&TABLE, arena, argc, argv, texts, &files, help, err));
    if (files.count > 1)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "there is one FILE too many: '%.80s'",
                         files.items[1]);
    out->file = files.count > 0 ? files.items[0] : NULL;
    out->is_json = texts->json;
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
    TRY(read_arguments(arena, argc, argv, &texts, out, help, err));
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
