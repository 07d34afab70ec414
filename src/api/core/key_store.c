/* key_store.c - see key_store.h.
 *
 *     keys       as sealed_keys.c draws it
 *     seal.key   one line: base64 of the 32 bytes of the sealing key,
 *                or "external" if --seal-key-file names the file that has it
 *     keys.new, seal.key.new    files that are being written
 *
 * A file is written under its second name, synced and renamed. The first time there are two files
 * to make, and a crash may come between any two steps:
 *
 *     1. seal.key.new is written             keys: none,   the keys are those of before
 *     2. keys.new is written, then renamed   keys: exists, and seal.key.new opens it
 *     3. seal.key.new becomes seal.key
 *
 * So seal.key.new without keys means nothing, and seal.key without keys that keys was lost.
 */
#include "api/core/key_store.h"

#include "base/encoding.h"
#include "base/random.h"
#include "base/secret_mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SEAL_TEXT_MAX = 256,
    SEAL_TEXT_LEN = BASE64_LEN(SEAL_KEY_BYTES),
};

#define EXTERNAL "external"

typedef struct Folder {
    const KeyStoreOptions *options;
    int fd;
} Folder;

static void folder_close(Folder *folder)
{
    if (folder->fd >= 0)
        (void)close(folder->fd); /* it was opened for reading */
}
DEFINE_AUTO_VALUE(Folder, folder_close)

static Status folder_open(const KeyStoreOptions *options, Folder *out, Error *err)
{
    *out = (Folder){.options = options};
    out->fd = open(options->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->fd < 0)
        return error_set_errno(err, errno, "cannot open the data folder '%s'", options->data);
    return STATUS_OK;
}

/* Reads a small file of the folder, or any other with 'folder_fd' AT_FDCWD. '*len' is at most
 * 'size', even if the file is larger. */
static Status read_small(int folder_fd, const char *name, void *bytes, size_t size, size_t *len,
                         bool *found, Error *err)
{
    *found = false;
    *len = 0;
    int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return STATUS_OK;
    if (fd < 0)
        return error_set_errno(err, errno, "cannot read '%s'", name);
    ssize_t got = 0;
    while (*len < size && (got = read(fd, (char *)bytes + *len, size - *len)) > 0)
        *len += (size_t)got;
    int code = errno;
    (void)close(fd);
    if (got < 0)
        return error_set_errno(err, code, "cannot read '%s'", name);
    *found = true;
    return STATUS_OK;
}

static Status write_new(const Folder *folder, const char *name, const void *bytes, size_t len,
                        Error *err)
{
    /* Left over from a crash; whoever made it may have given others rights to it. */
    (void)unlinkat(folder->fd, name, 0);
    int fd = openat(folder->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot make '%s/%s'", folder->options->data, name);
    ssize_t written = write(fd, bytes, len);
    bool good = written == (ssize_t)len && fsync(fd) == 0;
    int code = written >= 0 && written != (ssize_t)len ? ENOSPC : errno;
    good = close(fd) == 0 && good;
    if (good)
        return STATUS_OK;
    (void)unlinkat(folder->fd, name, 0);
    return error_set_errno(err, code, "cannot write '%s/%s'", folder->options->data, name);
}

static Status rename_synced(const Folder *folder, const char *from, const char *to, Error *err)
{
    if (renameat(folder->fd, from, folder->fd, to) != 0 || fsync(folder->fd) != 0)
        return error_set_errno(err, errno, "cannot rename '%s/%s'", folder->options->data, from);
    return STATUS_OK;
}

/* ---- the sealing key ---- */

typedef enum SealKind { SEAL_ABSENT, SEAL_KEY, SEAL_EXTERNAL } SealKind;

/* What the text of a file says. A damaged disk leaves zeros, which are a key that is easy to
 * guess; no text of a key decodes to them. */
static SealKind parse_seal(Slice text, SealKey *out)
{
    static const SealKey ZEROS;
    size_t len = 0;
    text = slice_first(text, slice_find(text, '\n'));
    text = slice_trim(slice_first(text, slice_find(text, '\r')));
    if (slice_equal(text, SLICE(EXTERNAL)))
        return SEAL_EXTERNAL;
    if (text.len != SEAL_TEXT_LEN ||
        !base64_decode(BASE64_STANDARD, text, out->bytes, sizeof(out->bytes), &len) ||
        len != SEAL_KEY_BYTES || memcmp(out, &ZEROS, sizeof(ZEROS)) == 0)
        return SEAL_ABSENT;
    return SEAL_KEY;
}

static Status read_seal(int folder_fd, const char *name, const char *shown, SealKind *kind,
                        SealKey *out, Error *err)
{
    char text[SEAL_TEXT_MAX];
    size_t len = 0;
    bool found = false;
    *kind = SEAL_ABSENT;
    TRY(read_small(folder_fd, name, text, sizeof(text), &len, &found, err));
    if (found)
        *kind = parse_seal(slice_make(text, len), out);
    secret_wipe(text, sizeof(text));
    if (found && *kind == SEAL_ABSENT)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "'%s' is damaged or no sealing key; it must be base64 of %d random bytes",
                         shown, SEAL_KEY_BYTES);
    return STATUS_OK;
}

static Status read_outside_seal(const KeyStoreOptions *options, SealKey *out, Error *err)
{
    SealKind kind = SEAL_ABSENT;
    const char *path = options->seal_key_file;
    TRY(read_seal(AT_FDCWD, path, path, &kind, out, err));
    if (kind != SEAL_KEY)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "--seal-key-file '%s' does not exist or has no sealing key; "
                         "'orrery key generate --seal' prints a new one",
                         path);
    return STATUS_OK;
}

/* What is in the folder. */
typedef struct Seals {
    SealKind kept;   /* seal.key */
    SealKind coming; /* seal.key.new; only looked for if there is no seal.key */
    SealKey key;     /* of the one that is there */
} Seals;

static Status read_seals(const Folder *folder, Seals *out, Error *err)
{
    *out = (Seals){0};
    TRY(read_seal(folder->fd, "seal.key", "seal.key", &out->kept, &out->key, err));
    if (out->kept != SEAL_ABSENT)
        return STATUS_OK;
    Error ignored; /* half of a file is no more than none */
    if (read_seal(folder->fd, "seal.key.new", "", &out->coming, &out->key, &ignored) != STATUS_OK)
        out->coming = SEAL_ABSENT;
    return STATUS_OK;
}

/* The key that has sealed, or will seal, the keys of the folder. */
static Status choose_seal(const Folder *folder, const Seals *seals, SealKey *out, Error *err)
{
    const KeyStoreOptions *options = folder->options;
    SealKind kind = seals->kept != SEAL_ABSENT ? seals->kept : seals->coming;
    if (options->seal_key_file != NULL)
        return read_outside_seal(options, out, err);
    switch (kind) {
    case SEAL_KEY:
        *out = seals->key;
        return STATUS_OK;
    case SEAL_EXTERNAL:
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "the keys in '%s' are sealed with a key that is kept elsewhere; name its "
                         "file with --seal-key-file",
                         options->data);
    case SEAL_ABSENT:
        break;
    }
    return error_set(
        err, STATUS_NOT_FOUND, SUB_NONE,
        "'%s/seal.key' is missing, so the keys in '%s/keys' cannot be opened; bring it "
        "back, or name the file that has the sealing key with --seal-key-file",
        options->data, options->data);
}

/* ---- reading ---- */

typedef struct KeysFile {
    bool found;
    size_t len;
    uint8_t bytes[SEALED_KEYS_BYTES + 1]; /* one more, to see a file that is too long */
} KeysFile;

static Status read_keys_file(const Folder *folder, KeysFile *out, Error *err)
{
    return read_small(folder->fd, "keys", out->bytes, sizeof(out->bytes), &out->len, &out->found,
                      err);
}

static Status missing_keys(const char *data, Error *err)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE,
                     "'%s/keys' is missing, although keys were stored there: '%s/seal.key' exists. "
                     "Bring it back, or remove seal.key, too, to begin with new keys",
                     data, data);
}

static Status read_folder(const Folder *folder, StoredKeys *out, bool *found, Error *err)
{
    KeysFile file;
    Seals seals;
    TRY(read_keys_file(folder, &file, err));
    TRY(read_seals(folder, &seals, err));
    *found = file.found;
    if (!file.found)
        return seals.kept == SEAL_ABSENT ? STATUS_OK : missing_keys(folder->options->data, err);
    SealKey seal;
    TRY(choose_seal(folder, &seals, &seal, err));
    Status status = sealed_keys_open(slice_make((char *)file.bytes, file.len), &seal, out, err);
    secret_wipe(&seal, sizeof(seal));
    secret_wipe(&seals, sizeof(seals));
    if (status != STATUS_OK)
        return error_context(err, "'%s/keys' cannot be used", folder->options->data);
    return STATUS_OK;
}

Status key_store_read(const KeyStoreOptions *options, StoredKeys *out, bool *found, Error *err)
{
    *found = false;
    if (access(options->data, F_OK) != 0 && errno == ENOENT)
        return STATUS_OK; /* a server that has not been started yet */
    AUTO(folder_close) Folder folder;
    TRY(folder_open(options, &folder, err));
    Status status = read_folder(&folder, out, found, err);
    return status == STATUS_IO ? error_context(err, "data folder '%s'", options->data) : status;
}

/* ---- writing ---- */

/* Makes seal.key.new if the folder has neither of the two. */
static Status prepare_seal(const Folder *folder, Seals *seals, SealKey *out, Error *err)
{
    bool is_outside = folder->options->seal_key_file != NULL;
    char text[SEAL_TEXT_LEN + 1];
    size_t len = sizeof(text);
    if (seals->kept != SEAL_ABSENT)
        return choose_seal(folder, seals, out, err);
    if (is_outside) {
        TRY(read_outside_seal(folder->options, out, err));
        len = strlen(EXTERNAL);
        memcpy(text, EXTERNAL, len);
    } else if (seals->coming == SEAL_KEY) {
        *out = seals->key;
        return STATUS_OK;
    } else {
        random_secret(out->bytes, sizeof(out->bytes));
        base64_encode(BASE64_STANDARD, out->bytes, sizeof(out->bytes), text);
        text[SEAL_TEXT_LEN] = '\n';
    }
    Status status = write_new(folder, "seal.key.new", text, len, err);
    secret_wipe(text, sizeof(text));
    TRY(status);
    if (fsync(folder->fd) != 0)
        return error_set_errno(err, errno, "cannot sync '%s'", folder->options->data);
    return STATUS_OK;
}

/* After a rename whose durability is unknown: what was answered is that nothing has changed. */
static void put_back(const Folder *folder, const KeysFile *before)
{
    Error ignored; /* the first failure is the one to report */
    if (!before->found)
        (void)unlinkat(folder->fd, "keys", 0);
    else if (write_new(folder, "keys.new", before->bytes, before->len, &ignored) == STATUS_OK)
        (void)rename_synced(folder, "keys.new", "keys", &ignored);
    (void)fsync(folder->fd);
}

Status key_store_write(const KeyStoreOptions *options, const StoredKeys *keys, Error *err)
{
    AUTO(folder_close) Folder folder;
    TRY(folder_open(options, &folder, err));
    KeysFile before;
    Seals seals;
    SealKey seal;
    uint8_t sealed[SEALED_KEYS_BYTES];
    TRY(read_keys_file(&folder, &before, err));
    TRY(read_seals(&folder, &seals, err));
    if (!before.found && seals.kept != SEAL_ABSENT)
        return missing_keys(options->data, err);
    if (before.found && seals.kept == SEAL_ABSENT && seals.coming == SEAL_ABSENT &&
        options->seal_key_file == NULL)
        return choose_seal(&folder, &seals, &seal, err); /* which says what is missing */
    TRY(prepare_seal(&folder, &seals, &seal, err));
    sealed_keys_seal(keys, &seal, sealed);
    secret_wipe(&seal, sizeof(seal));
    secret_wipe(&seals.key, sizeof(seals.key));
    TRY(write_new(&folder, "keys.new", sealed, sizeof(sealed), err));
    if (rename_synced(&folder, "keys.new", "keys", err) != STATUS_OK) {
        put_back(&folder, &before);
        return err->status;
    }
    /* If this fails, reading finds the sealing key under its first name. */
    Error ignored;
    if (seals.kept == SEAL_ABSENT)
        (void)rename_synced(&folder, "seal.key.new", "seal.key", &ignored);
    return STATUS_OK;
}
