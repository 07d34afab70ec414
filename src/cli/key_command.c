/* key_command.c - see key_command.h.
 *
 * With --endpoint a running server is asked; with --data the files of a stopped one are changed. In
 * the second case the store's lock is held meanwhile, which a server that runs on the folder has.
 *
 * A new key is written to standard output and nowhere else, or to the file of --to. That file is
 * made before the key is, so that a key is not lost because the file cannot be made.
 */
#include "cli/key_command.h"

#include "api/core/key_ring.h"
#include "base/date.h"
#include "base/encoding.h"
#include "base/random.h"
#include "base/secret_mem.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/options.h"
#include "client/client.h"
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, TIMEOUT_MS = 30000 };

typedef enum Action { ACTION_LIST, ACTION_ROTATE, ACTION_GENERATE } Action;

typedef struct KeyArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/key_options.def"
#undef ARGUMENT_ROW
} KeyArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(KeyArguments, field, name, kind, placeholder, fallback, help),
#include "cli/key_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"key", ROWS, ARRAY_COUNT(ROWS)};

typedef struct KeyOptions {
    Action action;
    KeySlot slot; /* of a rotation */
    KeyArguments given;
    const char *key; /* the one that signs requests */
} KeyOptions;

typedef struct KeyApp {
    KeyOptions options;
    Arena arena;
} KeyApp;

static bool word_at(size_t index, CommandWord *out)
{
    static const CommandWord words[] = {
        {"Actions", "list",
         "shows which keys the account has: where each comes from, when it was made, and a "
         "fingerprint that tells it from others. Not the keys themselves."},
        {"Actions", "rotate",
         "makes a new key, stores it and prints it, once. The old one is refused from the next "
         "request on. NAME is primary, secondary, primary-read-only or secondary-read-only. A key "
         "that an option of the server gives is not changed."},
        {"Actions", "generate",
         "prints a random key, for --key-file of the server; with --seal one for --seal-key-file."},
    };
    if (index >= ARRAY_COUNT(words))
        return false;
    *out = words[index];
    return true;
}

const Command KEY_COMMAND = {
    .name = "key",
    .summary = "show and change the keys of the account",
    .usage = "key list      [--endpoint URL ... | --data DIR ...]\n"
             "key rotate    NAME [--endpoint URL ... | --data DIR ...] [--to FILE]\n"
             "key generate  [--seal] [--to FILE]",
    .about =
        "Shows and changes the keys of the account: of a running server, or of the data folder "
        "of one that does not run.",
    .word = word_at,
    .options = &TABLE,
    .operands = "list|rotate|generate|primary|secondary|primary-read-only|secondary-read-only",
    .notes = "The exit code is 0 if it was done, 1 if not, and 2 if it was called in a wrong way.",
    .examples = "orrery key list --key-file /etc/orrery/key\n"
                "orrery key rotate secondary --key-file /etc/orrery/key --to /etc/orrery/key2\n"
                "orrery key rotate primary --data /var/lib/orrery > key\n",
    .main = key_main,
};

/* ---- options ---- */

static Status unknown_word(const char *word, Error *err)
{
    static const char *const words[] = {"list", "rotate", "generate", NULL};
    const char *nearest = options_nearest(word, words);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%.80s' is not understood; %s%s%s", word,
                     nearest == NULL ? "'orrery key --help' tells what is" : "did you mean '",
                     nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
}

/* The words that are no options: the action, and the name of a key. */
static Status take_word(const char *word, size_t index, KeyOptions *o, Error *err)
{
    static const char *const actions[] = {
        [ACTION_LIST] = "list", [ACTION_ROTATE] = "rotate", [ACTION_GENERATE] = "generate"};
    if (index == 0) {
        for (size_t i = 0; i < ARRAY_COUNT(actions); i++) {
            if (strcmp(word, actions[i]) == 0) {
                o->action = (Action)i;
                return STATUS_OK;
            }
        }
        return unknown_word(word, err);
    }
    if (index > 1 || o->action != ACTION_ROTATE)
        return unknown_word(word, err);
    if (!key_slot_parse(slice_from_cstr(word), &o->slot))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "there is no key '%.80s'; there are primary, secondary, "
                         "primary-read-only and secondary-read-only",
                         word);
    return STATUS_OK;
}

static Status take_words(const ArgumentList *words, KeyOptions *o, Error *err)
{
    for (size_t i = 0; i < words->count; i++)
        TRY(take_word(words->items[i], i, o, err));
    if (words->count < (o->action == ACTION_ROTATE ? 2 : 1))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         words->count == 0 ? "say what to do: list, rotate or generate"
                                           : "say which key to rotate, such as primary");
    return STATUS_OK;
}

/* What does not go together. */
static Status check_options(Action action, const KeyArguments *o, Error *err)
{
    bool names_server =
        o->endpoint != NULL || o->key != NULL || o->key_file != NULL || o->cert != NULL;
    const char *wrong = NULL;
    if (o->data != NULL && names_server)
        wrong = "--data does not go with --endpoint, --key, --key-file and --cert";
    else if (o->seal_key_file != NULL && o->data == NULL)
        wrong = "--seal-key-file goes with --data";
    else if (action == ACTION_GENERATE && (names_server || o->data != NULL))
        wrong = "generate asks no server and changes no folder; it takes --seal and --to";
    else if (action != ACTION_GENERATE && o->seal)
        wrong = "--seal goes with generate";
    else if (action == ACTION_LIST && o->to != NULL)
        wrong = "--to goes with rotate and generate";
    else if (o->show && action != ACTION_LIST)
        wrong = "--show goes with list";
    else if (o->show && o->data == NULL)
        wrong = "a server does not give its keys away; --show needs --data";
    return wrong == NULL ? STATUS_OK : error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s", wrong);
}

static Status parse_options(KeyApp *app, int argc, char *const *argv, char *const *environment,
                            bool *help, Error *err)
{
    KeyOptions *o = &app->options;
    ArgumentList words = {0};
    TRY(arguments_parse(&TABLE, &app->arena, argc, argv, &o->given, &words, help, err));
    if (*help)
        return STATUS_OK;
    TRY(take_words(&words, o, err));
    TRY(check_options(o->action, &o->given, err));
    return connection_choose_key(o->given.key, o->given.key_file, &app->arena, environment, &o->key,
                                 err);
}

/* ---- where a new key goes ---- */

typedef struct Output {
    const char *to; /* NULL for standard output */
    const char *to_new;
    int fd; /* of 'to_new' */
} Output;

static Status output_open(KeyApp *app, Output *out, Error *err)
{
    *out = (Output){.to = app->options.given.to, .fd = -1};
    if (out->to == NULL)
        return STATUS_OK;
    out->to_new = arena_format(&app->arena, "%s.new", out->to).ptr;
    out->fd = open(out->to_new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out->fd < 0)
        return error_set_errno(err, errno, "cannot make '%s'", out->to_new);
    return STATUS_OK;
}

static void output_cancel(Output *out)
{
    if (out->fd < 0)
        return;
    (void)close(out->fd);
    (void)unlink(out->to_new); /* nothing was written to it */
    out->fd = -1;
}
DEFINE_AUTO_VALUE(Output, output_cancel)

static Status print_line(const char *line, Error *err)
{
    if (printf("%s\n", line) < 0 || fflush(stdout) != 0)
        return error_set_errno(err, errno, "cannot print the key");
    return STATUS_OK;
}

/* If the file cannot be written the key is printed: it must not get lost. */
static Status output_put(Output *out, Slice key, Error *err)
{
    char line[KEY_RING_TEXT_LEN + 2];
    int len = snprintf(line, sizeof(line), "%.*s\n", SLICE_ARG(key));
    ASSERT((size_t)len < sizeof(line));
    Status status = STATUS_OK;
    if (out->to == NULL) {
        line[len - 1] = '\0';
        status = print_line(line, err);
    } else if (write(out->fd, line, (size_t)len) != len || fsync(out->fd) != 0 ||
               rename(out->to_new, out->to) != 0) {
        status =
            error_set_errno(err, errno, "cannot write '%s'; the key is printed instead", out->to);
        line[len - 1] = '\0';
        Error ignored; /* the first one is reported */
        if (print_line(line, &ignored) == STATUS_OK)
            output_cancel(out);
    } else {
        (void)close(out->fd); /* it is synced */
        out->fd = -1;
    }
    secret_wipe(line, sizeof(line));
    return status;
}

/* ---- a data folder ---- */

static void unlock_folder(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}
DEFINE_AUTO(int, unlock_folder)

/* Takes the lock that the storage engine takes when a server starts. '*fd' is -1 if no server was
 * ever started on the folder. */
static Status lock_folder(KeyApp *app, int *fd, Error *err)
{
    const char *data = app->options.given.data;
    if (mkdir(data, 0700) != 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make the data folder '%s'", data);
    *fd = open(arena_format(&app->arena, "%s/store/LOCK", data).ptr, O_RDWR | O_CLOEXEC);
    if (*fd < 0 && errno == ENOENT)
        return STATUS_OK;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (*fd >= 0 && fcntl(*fd, F_SETLK, &lock) == 0)
        return STATUS_OK;
    if (errno == EAGAIN || errno == EACCES)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "a server runs on '%s', or it may not be changed; ask the server with "
                         "--endpoint",
                         data);
    return error_set_errno(err, errno, "cannot lock the data folder '%s'", data);
}

static KeyStoreOptions store_options(const KeyOptions *o)
{
    return (KeyStoreOptions){.data = o->given.data, .seal_key_file = o->given.seal_key_file};
}

static Status rotate_folder(KeyApp *app, Error *err)
{
    const KeyOptions *o = &app->options;
    KeyStoreOptions store = store_options(o);
    AUTO(unlock_folder) int lock = -1;
    AUTO(output_cancel) Output output = {.fd = -1};
    TRY(lock_folder(app, &lock, err));
    StoredKeys keys = {0};
    bool found = false;
    TRY(key_store_read(&store, &keys, &found, err));
    TRY(output_open(app, &output, err));
    char text[KEY_RING_TEXT_LEN];
    key_ring_renew(&keys.slots[o->slot], clock_wall_s(clock_real()), text);
    Status status = key_store_write(&store, &keys, err);
    secret_wipe(&keys, sizeof(keys));
    TRY(status);
    status = output_put(&output, slice_make(text, sizeof(text)), err);
    secret_wipe(text, sizeof(text));
    return status;
}

/* ---- lists ---- */

static void print_head(void)
{
    (void)printf("%-20s %-11s %-12s %-30s %s\n", "NAME", "KIND", "SOURCE", "MADE", "FINGERPRINT");
}

static void print_row(Slice name, Slice kind, Slice source, int64_t made_at_s, Slice fingerprint)
{
    char made[DATE_LEN + 1] = "-";
    if (made_at_s > 0) {
        date_print(made_at_s, made);
        made[DATE_LEN] = '\0';
    }
    (void)printf("%-20.*s %-11.*s %-12.*s %-30s %.*s\n", SLICE_ARG(name), SLICE_ARG(kind),
                 SLICE_ARG(source), made, SLICE_ARG(fingerprint));
}

static void print_stored(KeySlot slot, const StoredKey *key, bool shows)
{
    char fingerprint[KEY_FINGERPRINT_LEN] = "-";
    Slice kind = key_slot_is_read_only(slot) ? SLICE("read-only") : SLICE("read-write");
    if (key->len == 0) {
        print_row(key_slot_name(slot), kind, SLICE("none"), 0, SLICE("-"));
        return;
    }
    key_fingerprint(key->bytes, key->len, fingerprint);
    print_row(key_slot_name(slot), kind, SLICE("stored"), key->made_at_s,
              slice_make(fingerprint, sizeof(fingerprint)));
    if (!shows)
        return;
    char text[BASE64_LEN(AUTH_KEY_BYTES_MAX)];
    base64_encode(BASE64_STANDARD, key->bytes, key->len, text);
    (void)printf("    %.*s\n", (int)BASE64_LEN((size_t)key->len), text);
    secret_wipe(text, sizeof(text));
}

static Status list_folder(KeyApp *app, Error *err)
{
    KeyStoreOptions store = store_options(&app->options);
    StoredKeys keys = {0};
    bool found = false;
    TRY(key_store_read(&store, &keys, &found, err));
    if (!found) {
        (void)printf("No keys are stored in '%s'. A server that is started on it uses the keys of "
                     "its options,\nor the well-known development key.\n",
                     app->options.given.data);
        return STATUS_OK;
    }
    print_head();
    for (int slot = 0; slot < KEY_SLOT_COUNT; slot++)
        print_stored((KeySlot)slot, &keys.slots[slot], app->options.given.show);
    secret_wipe(&keys, sizeof(keys));
    return STATUS_OK;
}

/* ---- a server ---- */

static Status open_client(const KeyApp *app, Client **out, Error *err)
{
    const KeyOptions *o = &app->options;
    ClientOptions options = {
        .endpoint = o->given.endpoint != NULL ? o->given.endpoint : "http://localhost:8081",
        .key = o->key,
        .cert_file = o->given.cert,
        .timeout_ms = TIMEOUT_MS,
    };
    return client_open(&options, out, err);
}

static Status ask(KeyApp *app, Client *client, Slice body, Json *out, Error *err)
{
    static const ClientHeader headers[] = {{"content-type", SLICE_INIT("application/json")}};
    ClientCall call = {
        .method = body.len > 0 ? CLIENT_POST : CLIENT_GET,
        .path = SLICE("/_orrery/keys"),
        .headers = headers,
        .header_count = body.len > 0 ? ARRAY_COUNT(headers) : 0,
        .content = body,
        .arena = &app->arena,
    };
    ClientCall *ended = NULL;
    client_start(client, &call);
    do
        TRY(client_wait(client, -1, &ended, err));
    while (ended != NULL);
    if (call.error.status != STATUS_OK) {
        *err = call.error;
        return err->status;
    }
    Error ignored;
    if (json_parse(&app->arena, call.body, out, &ignored) != STATUS_OK)
        *out = JSON_NONE;
    if (call.http_status == 200 && json_is(*out, JSON_OBJECT))
        return STATUS_OK;
    return connection_refused(&call, err);
}

static Status list_server(KeyApp *app, Error *err)
{
    AUTO(client_close) Client *client = NULL;
    Json answer;
    TRY(open_client(app, &client, err));
    TRY(ask(app, client, SLICE_EMPTY, &answer, err));
    print_head();
    for (JsonIter it = json_iter(json_get(answer, SLICE("keys"))); json_next(&it);) {
        int64_t made = 0;
        Slice source = connection_safe_text(&app->arena, json_get(it.value, SLICE("source")));
        Slice option = connection_safe_text(&app->arena, json_get(it.value, SLICE("option")));
        Slice fingerprint =
            connection_safe_text(&app->arena, json_get(it.value, SLICE("fingerprint")));
        (void)json_to_i64(json_get(it.value, SLICE("madeAt")), &made); /* 0 if it is not there */
        print_row(connection_safe_text(&app->arena, json_get(it.value, SLICE("name"))),
                  connection_safe_text(&app->arena, json_get(it.value, SLICE("kind"))),
                  option.len > 0 ? option : source, made,
                  fingerprint.len > 0 ? fingerprint : SLICE("-"));
    }
    return STATUS_OK;
}

/* The fingerprint of the key that a slot has now; "none" if it is empty. */
static Slice current_fingerprint(Json list, Slice name)
{
    for (JsonIter it = json_iter(json_get(list, SLICE("keys"))); json_next(&it);) {
        Json found = json_get(it.value, SLICE("name"));
        Json fingerprint = json_get(it.value, SLICE("fingerprint"));
        if (json_is(found, JSON_STRING) && slice_equal(json_string(found), name) &&
            json_is(fingerprint, JSON_STRING))
            return json_string(fingerprint);
    }
    return SLICE("none");
}

static Status rotate_server(KeyApp *app, Error *err)
{
    Slice name = key_slot_name(app->options.slot);
    AUTO(client_close) Client *client = NULL;
    AUTO(output_cancel) Output output = {.fd = -1};
    Json answer;
    TRY(open_client(app, &client, err));
    TRY(ask(app, client, SLICE_EMPTY, &answer, err));
    Slice fingerprint = current_fingerprint(answer, name);
    TRY(output_open(app, &output, err));
    Slice body = arena_format(&app->arena, "{\"name\":\"%.*s\",\"fingerprint\":\"%.*s\"}",
                              SLICE_ARG(name), SLICE_CUT(fingerprint, KEY_FINGERPRINT_LEN));
    TRY(ask(app, client, body, &answer, err));
    Json key = json_get(answer, SLICE("key"));
    uint8_t bytes[KEY_RING_KEY_BYTES];
    size_t len = 0;
    if (!json_is(key, JSON_STRING) ||
        !base64_decode(BASE64_STANDARD, json_string(key), bytes, sizeof(bytes), &len) ||
        len != sizeof(bytes))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the answer of the server has no key; is it an Orrery server?");
    secret_wipe(bytes, sizeof(bytes));
    return output_put(&output, json_string(key), err);
}

/* ---- all of them ---- */

static Status generate(KeyApp *app, Error *err)
{
    uint8_t bytes[KEY_RING_KEY_BYTES];
    char text[KEY_RING_TEXT_LEN];
    size_t len = app->options.given.seal ? SEAL_KEY_BYTES : KEY_RING_KEY_BYTES;
    AUTO(output_cancel) Output output = {.fd = -1};
    TRY(output_open(app, &output, err));
    random_secret(bytes, len);
    base64_encode(BASE64_STANDARD, bytes, len, text);
    Status status = output_put(&output, slice_make(text, BASE64_LEN(len)), err);
    secret_wipe(bytes, sizeof(bytes));
    secret_wipe(text, sizeof(text));
    return status;
}

static Status run(KeyApp *app, Error *err)
{
    bool has_folder = app->options.given.data != NULL;
    switch (app->options.action) {
    case ACTION_LIST:
        return has_folder ? list_folder(app, err) : list_server(app, err);
    case ACTION_ROTATE:
        return has_folder ? rotate_folder(app, err) : rotate_server(app, err);
    case ACTION_GENERATE:
        break;
    }
    return generate(app, err);
}

int key_main(int argc, char *const *argv, char *const *environment)
{
    KeyApp app = {0};
    Error err;
    bool help = false;
    arena_init(&app.arena, 4096);
    Status status = parse_options(&app, argc, argv, environment, &help, &err);
    bool is_understood = status == STATUS_OK;
    options_hide(argc, argv, environment);
    if (help)
        command_print_help(&KEY_COMMAND, stdout);
    else if (is_understood)
        status = run(&app, &err);
    if (status != STATUS_OK)
        (void)fprintf(stderr, "orrery: %s\n", err.message);
    arena_done(&app.arena);
    return status == STATUS_OK ? EXIT_SUCCESS : is_understood ? EXIT_FAILURE : EXIT_USAGE;
}
