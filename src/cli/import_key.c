/* import_key.c - see import_key.h. */
#include "cli/import_key.h"

#include "advise/key_advice.h"
#include "advise/report.h"
#include "advise/safe_text.h"
#include "base/clock.h"
#include "transfer/import_sample.h"
#include "transfer/remote.h"

#include <stdio.h>

enum {
    WARNINGS_MAX = 3,   /* that are printed with the key */
    TEXT_COLUMNS = 200, /* of a name or a reason */
};

static Status exists(const ImportOptions *options, Arena *arena, bool *out, Error *err)
{
    Remote remote;
    remote_init(&remote, arena, options->client, options->stop_fd, options->database,
                options->container);
    ClientCall call = remote_call(&remote, REMOTE_CONTAINER, arena);
    TRY(remote_ask(&remote, &call, err));
    *out = call.http_status == 200;
    return call.http_status == 200 || call.http_status == 404 ? STATUS_OK
                                                              : remote_refused(&call, err);
}

static Status take_item(void *context, Json item, Error *err)
{
    return sample_add(context, item, err);
}

/* Whether --partition-key, which separates paths by commas, can have the key. */
static bool can_be_named(const KeyCandidate *key)
{
    for (size_t i = 0; i < key->path_count; i++) {
        for (size_t j = 0; j < key->paths[i].count; j++) {
            if (slice_find(key->paths[i].segments[j], ',') < key->paths[i].segments[j].len)
                return false;
        }
    }
    return true;
}

/* The best key that the rows have themselves: one that is made of others needs --set. */
static const AdvisedKey *best_plain(const Advice *advice)
{
    for (size_t i = 0; i < advice->key_count; i++) {
        const AdvisedKey *key = advice->keys[i];
        if (key->key.kind <= KEY_HIERARCHICAL && key->verdict.worst != FINDING_REFUSAL &&
            can_be_named(&key->key))
            return key;
    }
    return NULL;
}

static void put_paths(const KeyCandidate *key, Buf *out)
{
    for (size_t i = 0; i < key->path_count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        property_path_print(key->paths[i], out);
    }
}

/* How to make a key of others while importing; false if that is not so simple. */
static bool put_recipe(const KeyCandidate *key, Buf *out)
{
    for (size_t i = 0; i < key->path_count; i++) {
        if (key->kind != KEY_SYNTHETIC || key->paths[i].count != 1)
            return false;
    }
    buf_slice(out, SLICE(" But two of them joined are: --set '/partitionKey="));
    for (size_t i = 0; i < key->path_count; i++)
        buf_format(out, "%s{%.*s}", i == 0 ? "" : "-", SLICE_ARG(key->paths[i].segments[0]));
    buf_slice(out, SLICE("' --partition-key /partitionKey."));
    return true;
}

static Status refuse(const Advice *advice, Error *err)
{
    AUTO(buf_done) Buf text;
    AUTO(buf_done) Buf safe;
    buf_init(&text, 64 << 10);
    buf_init(&safe, 64 << 10);
    if (advice->best == NULL) {
        buf_slice(&text, advice->conclusion);
    } else if (!put_recipe(&advice->best->key, &text)) {
        buf_format(&text, " A new property would do: %.*s.",
                   SLICE_ARG(safe_text_cut(advice->best->key.name, TEXT_COLUMNS)));
    }
    (void)safe_text(buf_view(&text), SIZE_MAX / 2, SAFE_TEXT_ASCII, &safe);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "no property of the rows is a good partition key.%s%.*s Nothing was made; "
                     "'orrery advise' on the same file explains each.",
                     advice->best == NULL ? " " : "", SLICE_CUT(buf_view(&safe), 330));
}

static void print_line(const char *first, Slice text)
{
    AUTO(buf_done) Buf safe;
    buf_init(&safe, 64 << 10);
    (void)safe_text(text, 2 * TEXT_COLUMNS, SAFE_TEXT_ASCII, &safe);
    (void)fprintf(stderr, "%s%.*s\n", first, SLICE_ARG(buf_view(&safe)));
}

/* What a user should know about the key that a container will have for ever. */
static void explain(const Advice *advice, const AdvisedKey *key)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 64 << 10);
    buf_slice(&text, SLICE("partition key "));
    put_paths(&key->key, &text);
    buf_format(&text, ", advised by %zu of the rows: %zu values, the most frequent has %.1f%%",
               advice->sample->count, (size_t)key->layout.distinct,
               100 * key->layout.largest_share);
    print_line("orrery: ", buf_view(&text));
    size_t shown = 0;
    for (size_t i = 0; i < key->verdict.count && shown < WARNINGS_MAX; i++) {
        if (key->verdict.findings[i].level == FINDING_NOTE)
            continue;
        print_line("  ! ", key->verdict.findings[i].text);
        shown++;
    }
    for (size_t i = 0; i < advice->key_count; i++) {
        const AdvisedKey *other = advice->keys[i];
        if (other == key)
            continue;
        buf_reset(&text);
        buf_format(&text,
                   "next best: %.*s, with %.0f points instead of %.0f; queries were not "
                   "looked at (orrery advise --queries)",
                   SLICE_ARG(safe_text_cut(other->key.name, TEXT_COLUMNS)), other->verdict.score,
                   key->verdict.score);
        print_line("  . ", buf_view(&text));
        break;
    }
}

static Status advise(const Sample *sample, const ImportOptions *options, Arena *arena,
                     const char **out, Error *err)
{
    IndexPolicy *policy = NULL;
    TRY(index_policy_new(arena, JSON_NONE, NULL, 0, &policy, err));
    KeyAdviceOptions wanted = {
        .partitions = KEY_ADVICE_PARTITIONS_DEFAULT,
        .policy = policy,
        .model = charge_model_default(),
        .now_s = (double)clock_wall_s(clock_real()),
    };
    Advice advice;
    key_advice_make(sample, NULL, &wanted, arena, &advice);
    const AdvisedKey *key = best_plain(&advice);
    if (key == NULL)
        return refuse(&advice, err);
    AUTO(buf_done) Buf paths;
    buf_init(&paths, PARTITION_KEY_PATHS_MAX * (PROPERTY_PATH_CANONICAL_BYTES_MAX + 1));
    put_paths(&key->key, &paths);
    *out = arena_cstr(arena, buf_view(&paths));
    if (!options->is_quiet)
        explain(&advice, key);
    return STATUS_OK;
}

Status import_key_choose(const ImportOptions *options, Arena *arena, Buf *begun, const char **out,
                         Error *err)
{
    bool is_there = false;
    TRY(exists(options, arena, &is_there, err));
    if (is_there) {
        *out = NULL;
        return STATUS_OK;
    }
    AUTO(sample_done) Sample sample;
    sample_init(&sample, (SampleLimits){SAMPLE_ITEMS_DEFAULT, SAMPLE_BYTES_MAX});
    TRY(import_sample(options, take_item, &sample, begun, err));
    if (sample.count == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "there are no rows to learn a partition key from; name one");
    TRY(sample_finish(&sample, (PropertyPath){0}, err));
    return advise(&sample, options, arena, out, err);
}
