/* restore.c - see restore.h.
 *
 *     choose      a generation whose manifest is whole
 *     copy        each file, with its sum; CURRENT last               (restore_target.h)
 *     compare     what the folder holds with what the manifest says   (offline_folder.h)
 *     take back   items to an earlier time, if that is asked for      (restore_time.h)
 *     skip        numbers that the lost server may have given out
 *     finish      the marker goes: now a server opens the folder
 */
#include "cli/restore.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cli/arguments.h"
#include "cli/backup_folder.h"
#include "cli/commands.h"
#include "cli/offline_folder.h"
#include "cli/restore_target.h"
#include "cli/restore_time.h"
#include "cli/utc_time.h"
#include "partition/rewind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    PIECE_BYTES = 1 << 20,
    PROGRESS_US = 200000,

    /* More than a partition does, and for longer than the time since the backup. */
    LSNS_PER_S = 1 << 17,
    ITEMS_PER_S = 1 << 13,
    SKIPPED_S_MIN = 3600,
};

typedef struct Restore {
    const char *from;
    const char *data;
    uint64_t generation; /* 0: the newest */
    bool has_time;
    int64_t at_s;        /* that items are taken back to */
    bool is_best_effort; /* ... as far as their containers can be */

    Arena arena;
    Log log;
    BackupFolder *folder;
    RestoreTarget *target;
    BackupManifest manifest;
    char *buffer;
    bool is_terminal;
    uint64_t shown_us;
    uint64_t bytes_total;
    uint64_t bytes_done;
} Restore;

typedef struct RestoreArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/restore_options.def"
#undef ARGUMENT_ROW
} RestoreArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(RestoreArguments, field, name, kind, placeholder, fallback, help),
#include "cli/restore_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"restore", ROWS, ARRAY_COUNT(ROWS)};

const Command RESTORE_COMMAND = {
    .name = "restore",
    .summary = "make a data folder of a backup",
    .usage = "restore --from DIR --data DATA [options]",
    .about = "Makes the data folder DATA of a backup in DIR, which 'orrery backup' has made. DATA "
             "must be missing or empty. Every file is verified. A restore that was interrupted "
             "leaves a folder that no server opens; run it again.",
    .options = &TABLE,
    .notes = "The exit code is 0 if the folder is complete, else 1.",
    .examples = "orrery restore --from /backups/orrery --data /var/lib/orrery\n"
                "orrery check --data /var/lib/orrery\n"
                "orrery serve --data /var/lib/orrery\n",
    .main = restore_main,
};

/* ---- options ---- */

static Status parse_arguments(Restore *restore, int argc, char *const *argv, bool *help, Error *err)
{
    RestoreArguments a = {0};
    TRY(arguments_parse(&TABLE, &restore->arena, argc, argv, &a, NULL, help, err));
    if (*help)
        return STATUS_OK;
    if (a.from == NULL || a.data == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "say where the backups are and which folder to make: orrery restore "
                         "--from DIR --data DATA");
    if (a.generation != NULL &&
        (!slice_to_u64(slice_from_cstr(a.generation), &restore->generation) ||
         restore->generation == 0))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--generation must be a whole number from 1 on, not '%.80s'",
                         a.generation);
    if (a.at != NULL && !utc_time_parse(slice_from_cstr(a.at), &restore->at_s))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--at must be a time such as 2026-11-18T12:00:00Z, not '%.80s'", a.at);
    if (a.at_best_effort && a.at == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--at-best-effort needs --at TIME");
    restore->from = a.from;
    restore->data = a.data;
    restore->has_time = a.at != NULL;
    restore->is_best_effort = a.at_best_effort;
    return STATUS_OK;
}

/* ---- progress ---- */

static void end_progress(const Restore *restore)
{
    if (restore->is_terminal)
        (void)fprintf(stderr, "\r\033[K");
}

static void show_progress(Restore *restore, uint64_t bytes)
{
    restore->bytes_done += bytes;
    uint64_t now_us = clock_monotonic_us(clock_real());
    if (!restore->is_terminal || now_us < restore->shown_us + PROGRESS_US)
        return;
    restore->shown_us = now_us;
    (void)fprintf(stderr, "\r%llu of %llu MB ", (unsigned long long)(restore->bytes_done >> 20),
                  (unsigned long long)(restore->bytes_total >> 20));
}

/* ---- copying ---- */

static Status read_generation(Restore *restore, uint64_t generation, Error *err)
{
    Error reason;
    Status status = backup_folder_read(restore->folder, generation, &restore->arena,
                                       &restore->manifest, &reason);
    if (status == STATUS_CORRUPT)
        return error_set(err, status, SUB_NONE, "%.400s; --generation chooses another one",
                         reason.message);
    *err = reason;
    return status;
}

static Status check_time(const Restore *restore, Error *err)
{
    if (!restore->has_time || restore->manifest.time_s >= restore->at_s)
        return STATUS_OK;
    char time[UTC_TIME_LEN + 1];
    utc_time_print(restore->manifest.time_s, time);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "the backup is of %s, and has nothing that was written later: --at cannot be "
                     "after that",
                     time);
}

/* The one that was asked for, or the newest; to go back to a time, the first that is not before it:
 * least has to be undone. One that is damaged is not passed over: the user decides whether another
 * one will do. */
static Status choose_generation(Restore *restore, Error *err)
{
    size_t count = 0;
    const uint64_t *generations = backup_folder_generations(restore->folder, &count);
    if (count == 0)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "there is no complete backup in '%.200s'",
                         restore->from);
    if (restore->generation > 0) {
        TRY(read_generation(restore, restore->generation, err));
        return check_time(restore, err);
    }
    TRY(read_generation(restore, generations[count - 1], err));
    TRY(check_time(restore, err));
    for (size_t i = 0; restore->has_time && i < count; i++) {
        TRY(read_generation(restore, generations[i], err));
        if (restore->manifest.time_s >= restore->at_s)
            break;
    }
    return STATUS_OK;
}

static Status damaged(const BackupEntry *file, const char *what, Error *err)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE,
                     "the backup is damaged: files/%.*s, which is '%.*s', %s; --generation chooses "
                     "another one",
                     SLICE_ARG(file->sha256), SLICE_CUT(file->name, 100), what);
}

static Status write_all(int fd, Slice bytes, const BackupEntry *file, Error *err)
{
    for (size_t done = 0; done < bytes.len;) {
        ssize_t put = write(fd, bytes.ptr + done, bytes.len - done);
        if (put < 0 && errno != EINTR)
            return error_set_errno(err, errno, "cannot write '%.*s'", SLICE_CUT(file->name, 100));
        done += put > 0 ? (size_t)put : 0;
    }
    return STATUS_OK;
}

static Status copy_bytes(Restore *restore, const BackupEntry *file, int from, int to, Error *err)
{
    Sha256 sum;
    sha256_init(&sum);
    uint64_t total = 0;
    for (;;) {
        ssize_t got = read(from, restore->buffer, PIECE_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(err, errno, "cannot read files/%.*s of the backup",
                                   SLICE_ARG(file->sha256));
        if (got == 0)
            break;
        Slice piece = slice_make(restore->buffer, (size_t)got);
        sha256_add(&sum, piece);
        total += piece.len;
        if (total > file->size)
            return damaged(file, "is too long", err);
        TRY(write_all(to, piece, file, err));
        show_progress(restore, piece.len);
    }
    char text[SHA256_TEXT_LEN];
    sha256_end(&sum, text);
    if (total < file->size)
        return damaged(file, "is too short", err);
    if (!slice_equal(file->sha256, slice_make(text, sizeof(text))))
        return damaged(file, "has other bytes than were copied", err);
    if (fsync(to) != 0)
        return error_set_errno(err, errno, "cannot write '%.*s'", SLICE_CUT(file->name, 100));
    return STATUS_OK;
}

static Status copy_file(Restore *restore, const BackupEntry *file, Error *err)
{
    int from = -1;
    int to = -1;
    if (backup_folder_open_file(restore->folder, file->sha256, &from, err) != STATUS_OK)
        return damaged(file, "is missing or cannot be opened", err);
    Status status = restore_target_create(restore->target, file->name, &to, err);
    if (status == STATUS_OK)
        status = copy_bytes(restore, file, from, to, err);
    (void)close(from); /* only read from */
    if (to >= 0)
        (void)close(to); /* was synced */
    return status;
}

/* Without CURRENT there is no database, so it comes last: one more reason for which a folder that
 * is not complete is refused. */
static Status copy_all(Restore *restore, Error *err)
{
    const BackupManifest *manifest = &restore->manifest;
    const BackupEntry *last = manifest_find(manifest, SLICE("store/CURRENT"));
    if (last == NULL)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the manifest of generation %llu names no file store/CURRENT",
                         (unsigned long long)manifest->generation);
    for (size_t i = 0; i < manifest->file_count; i++)
        restore->bytes_total += manifest->files[i].size;
    for (size_t i = 0; i < manifest->file_count; i++) {
        if (&manifest->files[i] != last)
            TRY(copy_file(restore, &manifest->files[i], err));
    }
    TRY(restore_target_sync(restore->target, err));
    TRY(copy_file(restore, last, err));
    return restore_target_sync(restore->target, err);
}

/* ---- comparing ---- */

static bool is_same_position(const BackupPosition *a, const BackupPosition *b)
{
    return slice_equal(a->database, b->database) && slice_equal(a->container, b->container) &&
           slice_equal(a->range, b->range) && a->lsn == b->lsn;
}

static Status compare(const Restore *restore, OfflineFolder *opened, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    BackupPosition *list = NULL;
    size_t count = 0;
    offline_folder_positions(opened, &arena, &list, &count);
    bool is_same = count == restore->manifest.position_count;
    for (size_t i = 0; is_same && i < count; i++)
        is_same = is_same_position(&list[i], &restore->manifest.positions[i]);
    return is_same ? STATUS_OK
                   : error_set(err, STATUS_CORRUPT, SUB_NONE,
                               "the folder does not hold what the manifest of generation %llu says",
                               (unsigned long long)restore->manifest.generation);
}

/* The lost server may have gone on after the backup. Its clients know LSNs and numbers that this
 * one has not given out, and must not take for others: as many are skipped as it can have used. */
static Status skip_numbers(const Restore *restore, OfflineFolder *opened, Error *err)
{
    int64_t lost_s = clock_wall_s(clock_real()) - restore->manifest.time_s;
    uint64_t seconds = SKIPPED_S_MIN + (lost_s > 0 ? (uint64_t)lost_s : 0);
    const Snapshot *snapshot = offline_folder_snapshot(opened);
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk)) {
        for (size_t i = 0; i < walk.container->range_count; i++)
            TRY(partition_skip_numbers(handle_local(container_handle_at(walk.container, i)),
                                       seconds * LSNS_PER_S, seconds * ITEMS_PER_S, err));
    }
    return catalog_skip_numbers(offline_folder_catalog(opened),
                                seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX, err);
}

static Status complete(Restore *restore, Error *err)
{
    OfflineOptions options = {
        .data = restore->data,
        .log = &restore->log,
        .takes_incomplete = true,
    };
    AUTO(offline_folder_close) OfflineFolder *opened = NULL;
    TRY(offline_folder_open(&options, &opened, err));
    TRY(compare(restore, opened, err));
    RestoreTime time = {
        .at_s = restore->at_s,
        .backup_s = restore->manifest.time_s,
        .is_best_effort = restore->is_best_effort,
    };
    if (restore->has_time)
        TRY(restore_time_go_back(opened, &time, err));
    return skip_numbers(restore, opened, err);
}

static Status run(Restore *restore, Error *err)
{
    TRY(backup_folder_open(restore->from, false, &restore->folder, err));
    TRY(choose_generation(restore, err));
    TRY(restore_target_open(restore->data, &restore->target, err));
    restore->buffer = arena_alloc(&restore->arena, PIECE_BYTES);
    TRY(copy_all(restore, err));
    end_progress(restore);
    TRY(complete(restore, err));
    TRY(restore_target_finish(restore->target, err));
    const BackupManifest *manifest = &restore->manifest;
    char time[UTC_TIME_LEN + 1];
    utc_time_print(manifest->time_s, time);
    if (manifest->is_damaged)
        (void)fprintf(stderr, "orrery: the server had found damage in its data before this backup; "
                              "'orrery check' tells what is damaged\n");
    (void)printf("restored generation %llu of %s to '%s': %zu files, %llu bytes, all verified\n",
                 (unsigned long long)manifest->generation, time, restore->data,
                 manifest->file_count, (unsigned long long)restore->bytes_total);
    return STATUS_OK;
}

int restore_main(int argc, char *const *argv, char *const *environment)
{
    (void)environment; /* no option is taken from it */
    Restore restore = {
        .log = {.fd = STDERR_FILENO, .level = LOG_LEVEL_WARN, .clock = clock_real()},
        .is_terminal = isatty(STDERR_FILENO) != 0,
    };
    arena_init(&restore.arena, 64 << 10);
    Error err;
    bool help = false;
    int code = EXIT_SUCCESS;
    if (parse_arguments(&restore, argc, argv, &help, &err) != STATUS_OK)
        code = EXIT_USAGE;
    else if (help)
        command_print_help(&RESTORE_COMMAND, stdout);
    else if (run(&restore, &err) != STATUS_OK)
        code = EXIT_FAILURE;
    if (code != EXIT_SUCCESS) {
        end_progress(&restore);
        (void)fprintf(stderr, "orrery: %s\n", err.message);
    }
    restore_target_close(restore.target);
    backup_folder_close(restore.folder);
    arena_done(&restore.arena);
    return code;
}
