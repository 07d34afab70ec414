/* backup.c - see backup.h.
 *
 *     source          a list of files as of one moment                (backup_source.h)
 *     for each file   what is there already is not copied again       (backup_folder.h)
 *     open            as a store, for reading: how far each partition is (offline_folder.h)
 *     manifest        the backup is complete; then older ones are removed
 *
 * A file is there already if there are contents of its size with the sum that the source tells. So
 * it does not matter which generation has it, or whether the backup that has copied it came to its
 * end.
 */
#include "cli/backup.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cli/arguments.h"
#include "cli/backup_folder.h"
#include "cli/backup_source.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/offline_folder.h"
#include "cli/options.h"
#include "cli/utc_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    SMALL_BYTES = 4 << 10, /* asking for the sum of such a file costs as much as the file */
    PROGRESS_US = 200000,
};

typedef struct Backup {
    const char *from;
    const char *to;
    const char *key;
    const char *cert;
    uint64_t keep; /* 0: all */

    Arena arena;
    Log log;
    BackupFolder *folder;
    BackupSource *source;
    BackupManifest manifest;
    bool is_terminal;
    uint64_t shown_us;

    uint64_t bytes_total;
    uint64_t bytes_done; /* for progress */
    size_t copied_files;
    uint64_t copied_bytes;
} Backup;

typedef struct BackupArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/backup_options.def"
#undef ARGUMENT_ROW
} BackupArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(BackupArguments, field, name, kind, placeholder, fallback, help),
#include "cli/backup_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"backup", ROWS, ARRAY_COUNT(ROWS)};

const Command BACKUP_COMMAND = {
    .name = "backup",
    .summary = "copy the data of a server, running or not",
    .usage = "backup --from ENDPOINT|DATA --to DIR [options]",
    .about =
        "Makes a backup of everything: of a server that runs (by its endpoint), while clients go "
        "on writing, or of the data folder of one that does not. The backup is consistent: it has "
        "all writes that were answered before its moment, and whole transactions only. Each backup "
        "in DIR is a generation of its own; files that an earlier one has are not copied again. An "
        "interrupted backup is never taken for a whole one: run it again.",
    .options = &TABLE,
    .notes = "A backup holds all data and the secret that signs continuation tokens; its files can "
             "be read by their owner only. The exit code is 0 if the backup is complete, else 1.",
    .examples = "orrery backup --from http://localhost:8081 --to /backups/orrery --keep 7\n"
                "orrery backup --from /var/lib/orrery --to /backups/orrery\n",
    .main = backup_main,
};

/* ---- options ---- */

static Status parse_arguments(Backup *backup, int argc, char *const *argv, char *const *environment,
                              bool *help, Error *err)
{
    BackupArguments a = {0};
    TRY(arguments_parse(&TABLE, &backup->arena, argc, argv, &a, NULL, help, err));
    if (*help)
        return STATUS_OK;
    if (a.from == NULL || a.to == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "say what to copy and where to: orrery backup --from "
                         "http://localhost:8081 --to DIR");
    if (a.keep != NULL &&
        (!slice_to_u64(slice_from_cstr(a.keep), &backup->keep) || backup->keep == 0))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--keep must be a whole number from 1 on, not '%.80s'", a.keep);
    backup->from = a.from;
    backup->to = a.to;
    backup->cert = a.cert;
    return connection_choose_key(a.key, a.key_file, &backup->arena, environment, &backup->key, err);
}

/* ---- progress ---- */

static void end_progress(const Backup *backup)
{
    if (backup->is_terminal)
        (void)fprintf(stderr, "\r\033[K");
}

static void show_progress(Backup *backup, uint64_t bytes)
{
    backup->bytes_done += bytes;
    uint64_t now_us = clock_monotonic_us(clock_real());
    if (!backup->is_terminal || now_us < backup->shown_us + PROGRESS_US)
        return;
    backup->shown_us = now_us;
    (void)fprintf(stderr, "\r%llu of %llu MB ", (unsigned long long)(backup->bytes_done >> 20),
                  (unsigned long long)(backup->bytes_total >> 20));
}

static void on_wait(void *ctx)
{
    const Backup *backup = ctx;
    if (backup->is_terminal)
        (void)fprintf(stderr, "\ranother backup is under way; waiting for its end ");
}

/* ---- copying ---- */

static Status copy_file(Backup *backup, size_t index, Slice expected, char sha256[SHA256_TEXT_LEN],
                        Error *err)
{
    TRY(backup_folder_begin(backup->folder, err));
    uint64_t offset = 0;
    for (;;) {
        Slice piece;
        TRY(backup_source_read(backup->source, index, offset, &piece, err));
        if (piece.len == 0)
            break;
        TRY(backup_folder_write(backup->folder, piece, err));
        offset += piece.len;
        show_progress(backup, piece.len);
    }
    TRY(backup_folder_end(backup->folder, expected, sha256, err));
    backup->copied_files++;
    backup->copied_bytes += offset;
    return STATUS_OK;
}

static Status take_file(Backup *backup, size_t index, const SourceFile *file, Error *err)
{
    char *sha256 = arena_alloc(&backup->arena, SHA256_TEXT_LEN);
    Slice sum = slice_make(sha256, SHA256_TEXT_LEN);
    bool is_there = false;
    bool asks = file->size > SMALL_BYTES && backup_folder_has_size(backup->folder, file->size);
    if (asks) {
        TRY(backup_source_sum(backup->source, index, sha256, err));
        is_there = backup_folder_has(backup->folder, sum, file->size);
    }
    if (is_there)
        show_progress(backup, file->size);
    else
        TRY(copy_file(backup, index, asks ? sum : SLICE_EMPTY, sha256, err));
    backup->manifest.files[index] = (BackupEntry){file->name, file->size, sum};
    return STATUS_OK;
}

static int by_name(const void *a, const void *b)
{
    return slice_compare(((const BackupEntry *)a)->name, ((const BackupEntry *)b)->name);
}

static Status copy_all(Backup *backup, Error *err)
{
    size_t count = 0;
    const SourceFile *files = backup_source_files(backup->source, &count);
    uint64_t *sizes = ARENA_NEW_ARRAY(&backup->arena, uint64_t, count);
    for (size_t i = 0; i < count; i++) {
        sizes[i] = files[i].size;
        backup->bytes_total += files[i].size;
    }
    TRY(backup_folder_clean(backup->folder, sizes, count, err));
    backup->manifest.files = ARENA_NEW_ARRAY(&backup->arena, BackupEntry, count);
    for (size_t i = 0; i < count; i++)
        TRY(take_file(backup, i, &files[i], err));
    backup->manifest.file_count = count;
    qsort(backup->manifest.files, count, sizeof(BackupEntry), by_name);
    for (size_t i = 1; i < count; i++) {
        if (slice_equal(backup->manifest.files[i - 1].name, backup->manifest.files[i].name))
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                             "the server's list names a file twice");
    }
    return STATUS_OK;
}

/* Opening it also shows that it can be opened. */
static Status find_positions(Backup *backup, Error *err)
{
    const char *path = NULL;
    TRY(backup_folder_show(backup->folder, &backup->manifest, &path, err));
    OfflineOptions options = {.data = path, .log = &backup->log, .is_read_only = true};
    OfflineFolder *opened = NULL;
    if (offline_folder_open(&options, &opened, err) != STATUS_OK)
        return error_context(err, "the copy cannot be opened");
    offline_folder_positions(opened, &backup->arena, &backup->manifest.positions,
                             &backup->manifest.position_count);
    offline_folder_close(opened);
    return STATUS_OK;
}

static Status remove_old(Backup *backup, Error *err)
{
    BackupRemoved removed;
    TRY(backup_folder_prune(backup->folder, backup->keep == 0 ? UINT64_MAX : backup->keep, &removed,
                            err));
    if (removed.is_unsure)
        (void)fprintf(stderr, "orrery: a manifest in '%s' is damaged, so nothing was removed\n",
                      backup->to);
    if (removed.generations > 0)
        (void)printf("removed %zu older generations, %zu files, %llu bytes\n", removed.generations,
                     removed.files, (unsigned long long)removed.bytes);
    return STATUS_OK;
}

static Status run(Backup *backup, Error *err)
{
    TRY(backup_folder_open(backup->to, true, &backup->folder, err));
    BackupSourceOptions options = {
        .from = backup->from,
        .key = backup->key,
        .cert_file = backup->cert,
        .owner = backup_folder_id(backup->folder),
        .log = &backup->log,
        .waits = on_wait,
        .ctx = backup,
    };
    TRY(backup_source_open(&options, &backup->source, err));
    size_t count = 0;
    const uint64_t *generations = backup_folder_generations(backup->folder, &count);
    BackupManifest *manifest = &backup->manifest;
    manifest->generation = count == 0 ? 1 : generations[count - 1] + 1;
    manifest->time_s = backup_source_time_s(backup->source);
    manifest->version = arena_copy(&backup->arena, backup_source_version(backup->source));
    manifest->is_damaged = backup_source_is_damaged(backup->source);
    if (manifest->is_damaged)
        (void)fprintf(stderr, "orrery: the server has found damage in its own data; this backup "
                              "has it, too\n");
    TRY(copy_all(backup, err));
    end_progress(backup);
    TRY(find_positions(backup, err));
    TRY(backup_folder_finish(backup->folder, manifest, err));
    char time[UTC_TIME_LEN + 1];
    utc_time_print(manifest->time_s, time);
    (void)printf("generation %llu of %s: %zu files, %llu bytes; copied %zu files, %llu bytes\n",
                 (unsigned long long)manifest->generation, time, manifest->file_count,
                 (unsigned long long)backup->bytes_total, backup->copied_files,
                 (unsigned long long)backup->copied_bytes);
    return remove_old(backup, err);
}

int backup_main(int argc, char *const *argv, char *const *environment)
{
    Backup backup = {
        .log = {.fd = STDERR_FILENO, .level = LOG_LEVEL_WARN, .clock = clock_real()},
        .is_terminal = isatty(STDERR_FILENO) != 0,
    };
    arena_init(&backup.arena, 64 << 10);
    Error err;
    bool help = false;
    int code = EXIT_SUCCESS;
    Status status = parse_arguments(&backup, argc, argv, environment, &help, &err);
    options_hide(argc, argv, environment);
    if (status != STATUS_OK)
        code = EXIT_USAGE;
    else if (help)
        command_print_help(&BACKUP_COMMAND, stdout);
    else if (run(&backup, &err) != STATUS_OK)
        code = EXIT_FAILURE;
    if (code != EXIT_SUCCESS) {
        end_progress(&backup);
        (void)fprintf(stderr, "orrery: %s\n", err.message);
    }
    backup_source_close(backup.source);
    backup_folder_close(backup.folder);
    arena_done(&backup.arena);
    return code;
}
