/* backup_source.c - see backup_source.h. */
#include "cli/backup_source.h"

#include "api/core/sha256.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/data_files.h"
#include "client/client.h"
#include "partition/partition.h"
#include "store/checkpoint.h"
#include "store/rocksdb/rocksdb_store.h"
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    CALL_MS_MAX = 120000, /* the beginning writes out what is in memory; a sum reads a whole file */
    WAIT_S_MAX = 60,      /* for a backup whose client is gone */
    PIECE_BYTES = 1 << 20,
    AHEAD = 4, /* pieces that are asked for before they are needed */
    FILES_MAX = 1 << 20,
};

#define DATA_FILE_BYTES_MAX ((size_t)1 << 20)

/* What must be free on the disk to open a folder grows with this. */
#define CACHE_BYTES ((size_t)4 << 20)

/* A piece of the file that is being read. */
typedef struct Piece {
    ClientCall call;
    Arena arena;
    uint64_t offset;
    bool is_asked;
    bool is_here;
} Piece;

struct BackupSource {
    Arena arena;
    int64_t time_s;
    Slice version;
    bool is_damaged;
    SourceFile *files;
    size_t count;

    /* Of a server; NULL for a folder. */
    Client *client;
    Slice id;
    uint64_t piece_bytes;
    Piece pieces[AHEAD];
    size_t reading;    /* the file that the pieces are of */
    uint64_t ask_next; /* offset */

    /* Of a folder. */
    Store *store;
    StoreCheckpoint *checkpoint;
    size_t checkpoint_count;
    Slice *contents; /* of the other files */
    char *buffer;
};

/* ---- a server ---- */

/* The server's own words for a refusal. */
static Status refused(const ClientCall *call, Error *err)
{
    Json body;
    Error ignored;
    Slice message = SLICE_EMPTY;
    if (json_parse(call->arena, call->body, &body, &ignored) == STATUS_OK) {
        Json text = json_get(body, SLICE("message"));
        message = json_is(text, JSON_STRING) ? json_string(text) : SLICE_EMPTY;
    }
    message = slice_first(message, slice_find(message, '\r'));
    for (size_t i = 0; i < message.len; i++) {
        if ((uint8_t)message.ptr[i] < ' ' || (uint8_t)message.ptr[i] >= 0x7F)
            message.len = i; /* nothing that a terminal would take for a command */
    }
    Status status = call->http_status == 409                               ? STATUS_CONFLICT
                    : call->http_status == 401 || call->http_status == 403 ? STATUS_UNAUTHORIZED
                    : call->http_status == 404                             ? STATUS_NOT_FOUND
                                                                           : STATUS_UNAVAILABLE;
    return error_set(err, status, SUB_NONE, "the server answered %d: %.*s", call->http_status,
                     SLICE_CUT(message, 400));
}

static Status check_answer(const ClientCall *call, int expected, Error *err)
{
    if (call->error.status != STATUS_OK) {
        *err = call->error;
        return err->status;
    }
    return call->http_status == expected ? STATUS_OK : refused(call, err);
}

/* One call, while no other is under way. */
static Status ask(BackupSource *source, ClientCall *call, int expected, Error *err)
{
    ClientCall *ended = NULL;
    client_start(source->client, call);
    TRY(client_wait(source->client, -1, &ended, err));
    return check_answer(call, expected, err);
}

static Status not_understood(Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the server's answer is not understood; is it of another version?");
}

static Status read_list(BackupSource *source, Json list, Error *err)
{
    size_t count = json_is(list, JSON_ARRAY) ? json_count(list) : 0;
    if (count == 0 || count > FILES_MAX)
        return not_understood(err);
    source->files = ARENA_NEW_ARRAY(&source->arena, SourceFile, count);
    for (JsonIter it = json_iter(list); json_next(&it);) {
        Json name = json_get(it.value, SLICE("name"));
        int64_t size = -1;
        if (!json_is(name, JSON_STRING) || !data_file_is_known(json_string(name)) ||
            !json_to_i64(json_get(it.value, SLICE("size")), &size) || size < 0)
            return not_understood(err);
        source->files[source->count++] = (SourceFile){json_string(name), (uint64_t)size};
    }
    return STATUS_OK;
}

static bool is_id(Slice id)
{
    bool is_good = id.len > 0 && id.len <= 64;
    for (size_t i = 0; is_good && i < id.len; i++)
        is_good = (id.ptr[i] >= '0' && id.ptr[i] <= '9') || (id.ptr[i] >= 'A' && id.ptr[i] <= 'F');
    return is_good;
}

static Status read_beginning(BackupSource *source, Slice text, Error *err)
{
    Json json;
    if (json_parse(&source->arena, text, &json, err) != STATUS_OK)
        return not_understood(err);
    Json id = json_get(json, SLICE("id"));
    Json version = json_get(json, SLICE("version"));
    Json is_damaged = json_get(json, SLICE("damaged"));
    int64_t piece_bytes = 0;
    if (!json_is(id, JSON_STRING) || !is_id(json_string(id)) || !json_is(version, JSON_STRING) ||
        !json_to_i64(json_get(json, SLICE("time")), &source->time_s) || source->time_s < 0 ||
        !json_to_i64(json_get(json, SLICE("pieceBytes")), &piece_bytes) || piece_bytes <= 0 ||
        (uint64_t)piece_bytes > CLIENT_ANSWER_BYTES_MAX)
        return not_understood(err);
    source->id = json_string(id);
    source->version = json_string(version);
    source->piece_bytes = (uint64_t)piece_bytes;
    source->is_damaged = json_is(is_damaged, JSON_BOOL) && json_bool(is_damaged);
    return read_list(source, json_get(json, SLICE("files")), err);
}

static Status begin_at_server(BackupSource *source, const BackupSourceOptions *options, Error *err)
{
    ClientOptions client = {
        .endpoint = options->from,
        .key = options->key,
        .cert_file = options->cert_file,
        .timeout_ms = CALL_MS_MAX,
    };
    TRY(client_open(&client, &source->client, err));
    for (int waited_s = 0;; waited_s++) {
        ClientCall call = {
            .method = CLIENT_POST,
            .path = arena_format(&source->arena, "/_orrery/backup?owner=%.*s",
                                 SLICE_ARG(options->owner)),
            .arena = &source->arena,
        };
        Status status = ask(source, &call, 201, err);
        if (status == STATUS_OK)
            return read_beginning(source, call.body, err);
        if (status != STATUS_CONFLICT || waited_s == WAIT_S_MAX)
            return status;
        options->waits(options->ctx);
        (void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
}

/* A failure only means that the server ends it by itself, later. */
static void end_at_server(BackupSource *source)
{
    if (source->client == NULL || source->id.len == 0)
        return;
    ClientCall *ended = NULL;
    Error ignored;
    while (client_wait(source->client, -1, &ended, &ignored) == STATUS_OK && ended != NULL)
        continue; /* pieces that are not needed any more */
    ClientCall call = {
        .method = CLIENT_DELETE,
        .path = arena_format(&source->arena, "/_orrery/backup/%.*s", SLICE_ARG(source->id)),
        .arena = &source->arena,
    };
    (void)ask(source, &call, 204, &ignored);
}

static Status sum_at_server(BackupSource *source, size_t index, char out[SHA256_TEXT_LEN],
                            Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    ClientCall call = {
        .path = arena_format(&arena, "/_orrery/backup/%.*s/%zu/sum", SLICE_ARG(source->id), index),
        .arena = &arena,
    };
    TRY(ask(source, &call, 200, err));
    Json json;
    if (json_parse(&arena, call.body, &json, err) != STATUS_OK)
        return not_understood(err);
    Json sum = json_get(json, SLICE("sha256"));
    if (!json_is(sum, JSON_STRING) || !sha256_is_text(json_string(sum)))
        return not_understood(err);
    memcpy(out, json_string(sum).ptr, SHA256_TEXT_LEN);
    return STATUS_OK;
}

/* Asks for as many pieces of the file as may be under way. */
static void ask_ahead(BackupSource *source)
{
    for (size_t i = 0; i < AHEAD; i++) {
        Piece *piece = &source->pieces[i];
        if (piece->is_asked || source->ask_next >= source->files[source->reading].size)
            continue;
        arena_reset(&piece->arena);
        piece->offset = source->ask_next;
        piece->is_asked = true;
        piece->is_here = false;
        piece->call = (ClientCall){
            .path = arena_format(&piece->arena, "/_orrery/backup/%.*s/%zu?offset=%llu",
                                 SLICE_ARG(source->id), source->reading,
                                 (unsigned long long)piece->offset),
            .arena = &piece->arena,
        };
        client_start(source->client, &piece->call);
        source->ask_next += source->piece_bytes;
    }
}

static Piece *find_piece(BackupSource *source, uint64_t offset)
{
    for (size_t i = 0; i < AHEAD; i++) {
        if (source->pieces[i].is_asked && source->pieces[i].offset == offset)
            return &source->pieces[i];
    }
    return NULL;
}

static Status read_at_server(BackupSource *source, size_t index, uint64_t offset, Slice *out,
                             Error *err)
{
    uint64_t size = source->files[index].size;
    if (offset == 0) {
        source->reading = index;
        source->ask_next = 0;
    }
    ASSERT(source->reading == index);
    ASSERT(offset % source->piece_bytes == 0 || offset == size);
    /* The piece before this one has been used. */
    for (size_t i = 0; i < AHEAD; i++) {
        if (source->pieces[i].is_asked && source->pieces[i].is_here &&
            source->pieces[i].offset < offset)
            source->pieces[i].is_asked = false;
    }
    *out = SLICE_EMPTY;
    if (offset == size)
        return STATUS_OK;
    ask_ahead(source);
    Piece *wanted = find_piece(source, offset);
    ASSERT(wanted != NULL);
    while (!wanted->is_here) {
        ClientCall *ended = NULL;
        TRY(client_wait(source->client, -1, &ended, err));
        ASSERT(ended != NULL);
        CONTAINER_OF(ended, Piece, call)->is_here = true;
    }
    TRY(check_answer(&wanted->call, 200, err));
    uint64_t expected = size - offset < source->piece_bytes ? size - offset : source->piece_bytes;
    if (wanted->call.body.len != expected)
        return not_understood(err);
    *out = wanted->call.body;
    if (offset + expected == size)
        wanted->is_asked = false; /* the arena stays until the next is asked for */
    return STATUS_OK;
}

/* ---- a folder ---- */

static Status read_data_file(BackupSource *source, const char *folder, const char *name, Error *err)
{
    const char *path = arena_format(&source->arena, "%s/%s", folder, name).ptr;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return STATUS_OK;
    if (fd < 0)
        return error_set_errno(err, errno, "cannot read '%.300s'", path);
    char *bytes = arena_alloc(&source->arena, DATA_FILE_BYTES_MAX);
    ssize_t len = read(fd, bytes, DATA_FILE_BYTES_MAX);
    int code = errno;
    (void)close(fd); /* only read from */
    if (len < 0)
        return error_set_errno(err, code, "cannot read '%.300s'", path);
    source->contents[source->count - source->checkpoint_count] = slice_make(bytes, (size_t)len);
    source->files[source->count++] = (SourceFile){slice_from_cstr(name), (uint64_t)len};
    return STATUS_OK;
}

static Status open_store(BackupSource *source, const BackupSourceOptions *options, Error *err)
{
    const char *path = arena_format(&source->arena, "%s/store", options->from).ptr;
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "'%.200s' is not a data folder of orrery",
                         options->from);
    RocksdbStoreOptions store = {
        .path = path, .cache_bytes = CACHE_BYTES, .log = options->log, .merge = &PARTITION_MERGE};
    Error reason;
    Status status = rocksdb_store_open(&store, &source->store, &reason);
    if (status == STATUS_UNAVAILABLE)
        return error_set(err, status, SUB_NONE,
                         "%.300s; if a server runs on it, give its endpoint instead: --from "
                         "http://localhost:8081",
                         reason.message);
    *err = reason;
    return status;
}

static Status begin_at_folder(BackupSource *source, const BackupSourceOptions *options, Error *err)
{
    TRY(open_store(source, options, err));
    source->time_s = clock_wall_s(clock_real());
    source->version = SLICE(ORRERY_VERSION);
    TRY(store_checkpoint_open(source->store, &source->checkpoint, err));
    StoreDamage damage;
    store_damage(source->store, &damage);
    source->is_damaged = damage.reads > 0;
    size_t others = 0;
    while (DATA_FILES[others] != NULL)
        others++;
    const CheckpointFile *files =
        store_checkpoint_files(source->checkpoint, &source->checkpoint_count);
    source->files = ARENA_NEW_ARRAY(&source->arena, SourceFile, source->checkpoint_count + others);
    source->contents = ARENA_NEW_ARRAY(&source->arena, Slice, others);
    source->buffer = arena_alloc(&source->arena, PIECE_BYTES);
    for (size_t i = 0; i < source->checkpoint_count; i++)
        source->files[source->count++] =
            (SourceFile){arena_format(&source->arena, "store/%s", files[i].name), files[i].size};
    for (size_t i = 0; i < others; i++)
        TRY(read_data_file(source, options->from, DATA_FILES[i], err));
    return STATUS_OK;
}

static Status read_at_folder(BackupSource *source, size_t index, uint64_t offset, Slice *out,
                             Error *err)
{
    if (index >= source->checkpoint_count) {
        *out = slice_from(source->contents[index - source->checkpoint_count], (size_t)offset);
        return STATUS_OK;
    }
    size_t len = 0;
    TRY(store_checkpoint_read(source->checkpoint, index, offset, source->buffer, PIECE_BYTES, &len,
                              err));
    *out = slice_make(source->buffer, len);
    return STATUS_OK;
}

static Status sum_at_folder(BackupSource *source, size_t index, char out[SHA256_TEXT_LEN],
                            Error *err)
{
    Sha256 sum;
    sha256_init(&sum);
    Slice piece;
    uint64_t offset = 0;
    do {
        TRY(read_at_folder(source, index, offset, &piece, err));
        sha256_add(&sum, piece);
        offset += piece.len;
    } while (piece.len > 0);
    sha256_end(&sum, out);
    return STATUS_OK;
}

/* ---- both ---- */

Status backup_source_open(const BackupSourceOptions *options, BackupSource **out, Error *err)
{
    AUTO(backup_source_close) BackupSource *source = MEM_NEW(BackupSource);
    arena_init(&source->arena, 64 << 10);
    for (size_t i = 0; i < AHEAD; i++)
        arena_init(&source->pieces[i].arena, 4096);
    if (strstr(options->from, "://") != NULL)
        TRY(begin_at_server(source, options, err));
    else
        TRY(begin_at_folder(source, options, err));
    *out = TAKE(source);
    return STATUS_OK;
}

void backup_source_close(BackupSource *source)
{
    if (source == NULL)
        return;
    end_at_server(source);
    client_close(source->client);
    store_checkpoint_close(source->checkpoint);
    store_close(source->store);
    for (size_t i = 0; i < AHEAD; i++)
        arena_done(&source->pieces[i].arena);
    arena_done(&source->arena);
    mem_free(source);
}

int64_t backup_source_time_s(const BackupSource *source)
{
    return source->time_s;
}

Slice backup_source_version(const BackupSource *source)
{
    return source->version;
}

bool backup_source_is_damaged(const BackupSource *source)
{
    return source->is_damaged;
}

const SourceFile *backup_source_files(const BackupSource *source, size_t *count)
{
    *count = source->count;
    return source->files;
}

Status backup_source_sum(BackupSource *source, size_t index, char out[SHA256_TEXT_LEN], Error *err)
{
    ASSERT(index < source->count);
    return source->client != NULL ? sum_at_server(source, index, out, err)
                                  : sum_at_folder(source, index, out, err);
}

Status backup_source_read(BackupSource *source, size_t index, uint64_t offset, Slice *out,
                          Error *err)
{
    ASSERT(index < source->count);
    return source->client != NULL ? read_at_server(source, index, offset, out, err)
                                  : read_at_folder(source, index, offset, out, err);
}
