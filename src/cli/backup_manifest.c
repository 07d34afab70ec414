/* backup_manifest.c - see backup_manifest.h.
 *
 *     {"format":1,"generation":7,"time":"2026-11-18T12:00:00Z","version":"0.1.0","damaged":false,
 *      "files":[{"name":"store/000012.sst","size":4711,"sha256":"9f86..."}, ...],
 *      "partitions":[{"database":"shop","container":"carts","range":"0","lsn":17}, ...],
 *      "sha256":"..."}
 *
 * The last member is that of all bytes before its comma.
 */
#include "cli/backup_manifest.h"

#include "cli/data_files.h"
#include "cli/utc_time.h"
#include "json/json.h"

#define TAIL_BEGIN ",\"sha256\":\""
#define TAIL_END   "\"}\n"

enum { FORMAT = 1, TAIL_LEN = sizeof(TAIL_BEGIN) - 1 + SHA256_TEXT_LEN + sizeof(TAIL_END) - 1 };

/* ---- printing ---- */

static void put_member(Buf *out, const char *name, Slice text)
{
    buf_format(out, "\"%s\":", name);
    json_print_string(text, out);
}

void manifest_print(const BackupManifest *manifest, Buf *out)
{
    char time[UTC_TIME_LEN + 1];
    utc_time_print(manifest->time_s, time);
    buf_format(out, "{\"format\":%d,\"generation\":%llu,\"time\":\"%s\",", FORMAT,
               (unsigned long long)manifest->generation, time);
    put_member(out, "version", manifest->version);
    buf_format(out, ",\"damaged\":%s,\n\"files\":[", manifest->is_damaged ? "true" : "false");
    for (size_t i = 0; i < manifest->file_count; i++) {
        const BackupEntry *file = &manifest->files[i];
        buf_slice(out, i == 0 ? SLICE("\n{") : SLICE(",\n{"));
        put_member(out, "name", file->name);
        buf_format(out, ",\"size\":%llu,", (unsigned long long)file->size);
        put_member(out, "sha256", file->sha256);
        buf_byte(out, '}');
    }
    buf_slice(out, SLICE("],\n\"partitions\":["));
    for (size_t i = 0; i < manifest->position_count; i++) {
        const BackupPosition *position = &manifest->positions[i];
        buf_slice(out, i == 0 ? SLICE("\n{") : SLICE(",\n{"));
        put_member(out, "database", position->database);
        buf_byte(out, ',');
        put_member(out, "container", position->container);
        buf_byte(out, ',');
        put_member(out, "range", position->range);
        buf_format(out, ",\"lsn\":%llu}", (unsigned long long)position->lsn);
    }
    buf_byte(out, ']');
    char sum[SHA256_TEXT_LEN];
    sha256_of(buf_view(out), sum);
    buf_slice(out, SLICE(TAIL_BEGIN));
    buf_bytes(out, sum, sizeof(sum));
    buf_slice(out, SLICE(TAIL_END));
}

/* ---- reading ---- */

static Status damaged(Error *err, const char *what)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "the manifest is damaged: %s", what);
}

static Status get_text(Json object, Slice name, Slice *out, Error *err)
{
    Json value = json_get(object, name);
    if (!json_is(value, JSON_STRING))
        return damaged(err, "a text is missing");
    *out = json_string(value);
    return STATUS_OK;
}

static Status get_number(Json object, Slice name, uint64_t *out, Error *err)
{
    int64_t value = 0;
    if (!json_to_i64(json_get(object, name), &value) || value < 0)
        return damaged(err, "a number is missing");
    *out = (uint64_t)value;
    return STATUS_OK;
}

static Status read_file(Json json, BackupEntry *out, Error *err)
{
    TRY(get_text(json, SLICE("name"), &out->name, err));
    TRY(get_number(json, SLICE("size"), &out->size, err));
    TRY(get_text(json, SLICE("sha256"), &out->sha256, err));
    if (!data_file_is_known(out->name) || !sha256_is_text(out->sha256))
        return damaged(err, "it names a file that cannot be one of a backup");
    return STATUS_OK;
}

static Status read_files(Arena *arena, Json list, BackupManifest *out, Error *err)
{
    if (!json_is(list, JSON_ARRAY))
        return damaged(err, "the list of files is missing");
    out->files = ARENA_NEW_ARRAY(arena, BackupEntry, json_count(list) + 1);
    for (JsonIter it = json_iter(list); json_next(&it);) {
        BackupEntry *file = &out->files[out->file_count++];
        TRY(read_file(it.value, file, err));
        if (out->file_count > 1 && slice_compare(file[-1].name, file->name) >= 0)
            return damaged(err, "its files are not in order");
    }
    return STATUS_OK;
}

static Status read_positions(Arena *arena, Json list, BackupManifest *out, Error *err)
{
    if (!json_is(list, JSON_ARRAY))
        return damaged(err, "the list of partitions is missing");
    out->positions = ARENA_NEW_ARRAY(arena, BackupPosition, json_count(list) + 1);
    for (JsonIter it = json_iter(list); json_next(&it);) {
        BackupPosition *position = &out->positions[out->position_count++];
        TRY(get_text(it.value, SLICE("database"), &position->database, err));
        TRY(get_text(it.value, SLICE("container"), &position->container, err));
        TRY(get_text(it.value, SLICE("range"), &position->range, err));
        TRY(get_number(it.value, SLICE("lsn"), &position->lsn, err));
    }
    return STATUS_OK;
}

/* Compares the sum at the end with what is before it. */
static Status check_sum(Slice text, Error *err)
{
    if (text.len < TAIL_LEN)
        return damaged(err, "it is too short");
    Slice body = slice_first(text, text.len - TAIL_LEN);
    Slice tail = slice_from(text, body.len);
    Slice sum = slice_first(slice_from(tail, strlen(TAIL_BEGIN)), SHA256_TEXT_LEN);
    char expected[SHA256_TEXT_LEN];
    sha256_of(body, expected);
    if (!slice_starts_with(tail, SLICE(TAIL_BEGIN)) || !slice_ends_with(tail, SLICE(TAIL_END)) ||
        !slice_equal(sum, slice_make(expected, sizeof(expected))))
        return damaged(err, "its checksum does not match");
    return STATUS_OK;
}

Status manifest_parse(Arena *arena, Slice text, BackupManifest *out, Error *err)
{
    TRY(check_sum(text, err));
    Json json;
    BackupManifest manifest = {0};
    uint64_t format = 0;
    Slice time;
    if (json_parse(arena, text, &json, err) != STATUS_OK || !json_is(json, JSON_OBJECT))
        return damaged(err, "it is not a JSON object");
    TRY(get_number(json, SLICE("format"), &format, err));
    if (format != FORMAT)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the manifest has format %llu, and this version reads format %d",
                         (unsigned long long)format, FORMAT);
    TRY(get_number(json, SLICE("generation"), &manifest.generation, err));
    TRY(get_text(json, SLICE("version"), &manifest.version, err));
    TRY(get_text(json, SLICE("time"), &time, err));
    Json is_damaged = json_get(json, SLICE("damaged"));
    if (!utc_time_parse(time, &manifest.time_s) || !json_is(is_damaged, JSON_BOOL))
        return damaged(err, "its time is missing");
    manifest.is_damaged = json_bool(is_damaged);
    TRY(read_files(arena, json_get(json, SLICE("files")), &manifest, err));
    TRY(read_positions(arena, json_get(json, SLICE("partitions")), &manifest, err));
    *out = manifest;
    return STATUS_OK;
}

const BackupEntry *manifest_find(const BackupManifest *manifest, Slice name)
{
    size_t low = 0;
    size_t high = manifest->file_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(manifest->files[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < manifest->file_count && slice_equal(manifest->files[low].name, name);
    return found ? &manifest->files[low] : NULL;
}
