/* key_store_test.c - the files of keys: every state that a crash or a loss can leave behind. */
#include "api/core/key_store.h"

#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SEAL_A "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
#define SEAL_B "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="

typedef struct Place {
    char folder[64];
    char data[80];
    char seal[80]; /* a file outside the data folder */
    Arena arena;
} Place;

static const char *path_of(Place *place, const char *name)
{
    return arena_format(&place->arena, "%s/%s", place->data, name).ptr;
}

static void place_open(Place *place)
{
    *place = (Place){.folder = "/tmp/orrery-key-store-XXXXXX"};
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->data, sizeof(place->data), "%s/data", place->folder);
    (void)snprintf(place->seal, sizeof(place->seal), "%s/outside", place->folder);
    assert_int_equal(mkdir(place->data, 0700), 0);
    arena_init(&place->arena, 1024);
}

static void place_close(Place *place)
{
    static const char *const names[] = {"keys", "keys.new", "seal.key", "seal.key.new"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        (void)unlink(path_of(place, names[i]));
    (void)unlink(place->seal);
    assert_int_equal(rmdir(place->data), 0); /* nothing else was left in it */
    assert_int_equal(rmdir(place->folder), 0);
    arena_done(&place->arena);
}
DEFINE_AUTO_VALUE(Place, place_close)

static void put_file(const char *path, const char *text, size_t len)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static bool exists(Place *place, const char *name)
{
    return access(path_of(place, name), F_OK) == 0;
}

static StoredKeys keys_with(const char *text)
{
    StoredKeys keys = {0};
    keys.slots[KEY_SLOT_PRIMARY].len = (uint16_t)strlen(text);
    memcpy(keys.slots[KEY_SLOT_PRIMARY].bytes, text, strlen(text));
    return keys;
}

static void write_keys(const KeyStoreOptions *options, const char *text)
{
    Error err = {0};
    StoredKeys keys = keys_with(text);
    if (key_store_write(options, &keys, &err) != STATUS_OK)
        fail_msg("%s", err.message);
}

static void expect_keys(const KeyStoreOptions *options, const char *text)
{
    StoredKeys keys = {0};
    bool found = false;
    Error err = {0};
    if (key_store_read(options, &keys, &found, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    assert_true(found);
    assert_int_equal(keys.slots[KEY_SLOT_PRIMARY].len, strlen(text));
    assert_memory_equal(keys.slots[KEY_SLOT_PRIMARY].bytes, text, strlen(text));
}

static void expect_none(const KeyStoreOptions *options)
{
    StoredKeys keys;
    bool found = true;
    Error err = {0};
    assert_int_equal(key_store_read(options, &keys, &found, &err), STATUS_OK);
    assert_false(found);
}

/* Neither reading nor writing works, and neither changes anything. */
static void expect_refused(const KeyStoreOptions *options, const char *words)
{
    StoredKeys keys = keys_with("new");
    bool found = false;
    Error err = {0};
    assert_int_not_equal(key_store_read(options, &keys, &found, &err), STATUS_OK);
    if (strstr(err.message, words) == NULL)
        fail_msg("'%s' is not in: %s", words, err.message);
    assert_null(strstr(err.message, SEAL_A));
}

static void a_folder_without_files_has_no_keys(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    KeyStoreOptions options = {.data = place.data};
    expect_none(&options);
    KeyStoreOptions nowhere = {.data = "/nothing/here"};
    expect_none(&nowhere);
}

static void keys_are_read_as_they_were_written(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    KeyStoreOptions options = {.data = place.data};
    write_keys(&options, "one");
    expect_keys(&options, "one");
    write_keys(&options, "two");
    expect_keys(&options, "two");
    struct stat info;
    assert_int_equal(stat(path_of(&place, "keys"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(stat(path_of(&place, "seal.key"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_false(exists(&place, "keys.new"));
    assert_false(exists(&place, "seal.key.new"));
}

static void a_crash_at_any_step_leaves_the_old_keys_or_the_new(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    KeyStoreOptions options = {.data = place.data};
    /* After the first step of the first write: whole, half, empty. */
    put_file(path_of(&place, "seal.key.new"), SEAL_A "\n", 45);
    expect_none(&options);
    put_file(path_of(&place, "seal.key.new"), SEAL_A, 20);
    expect_none(&options);
    put_file(path_of(&place, "keys.new"), "half", 4);
    expect_none(&options);
    write_keys(&options, "one");
    expect_keys(&options, "one");
    /* After its second step. */
    assert_int_equal(rename(path_of(&place, "seal.key"), path_of(&place, "seal.key.new")), 0);
    expect_keys(&options, "one");
    write_keys(&options, "two");
    expect_keys(&options, "two");
    assert_true(exists(&place, "seal.key"));
    /* In a later write. */
    put_file(path_of(&place, "keys.new"), "half", 4);
    expect_keys(&options, "two");
    write_keys(&options, "three");
    expect_keys(&options, "three");
}

static void a_lost_or_damaged_file_is_no_folder_without_keys(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    KeyStoreOptions options = {.data = place.data};
    char zeros[2000] = {0};
    StoredKeys keys = keys_with("new");
    Error err = {0};

    write_keys(&options, "one");
    assert_int_equal(unlink(path_of(&place, "keys")), 0);
    expect_refused(&options, "keys' is missing");
    assert_int_equal(key_store_write(&options, &keys, &err), STATUS_CORRUPT);
    expect_refused(&options, "keys' is missing");
    assert_int_equal(unlink(path_of(&place, "seal.key")), 0);

    write_keys(&options, "two");
    assert_int_equal(unlink(path_of(&place, "seal.key")), 0);
    expect_refused(&options, "seal.key' is missing");
    assert_int_equal(key_store_write(&options, &keys, &err), STATUS_NOT_FOUND);
    expect_refused(&options, "seal.key' is missing");

    put_file(path_of(&place, "seal.key"), SEAL_A "\n", 45);
    expect_refused(&options, "sealed with another");
    put_file(path_of(&place, "seal.key"), zeros, 45);
    expect_refused(&options, "'seal.key' is damaged");
    put_file(path_of(&place, "seal.key"), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", 44);
    expect_refused(&options, "'seal.key' is damaged");
    put_file(path_of(&place, "seal.key"), "", 0);
    expect_refused(&options, "'seal.key' is damaged");

    put_file(path_of(&place, "seal.key"), SEAL_A, 44);
    static const size_t lengths[] = {0, 100, SEALED_KEYS_BYTES, sizeof(zeros)};
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
        put_file(path_of(&place, "keys"), zeros, lengths[i]);
        expect_refused(&options, "damaged");
    }
}

static void the_sealing_key_may_be_kept_elsewhere(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    KeyStoreOptions inside = {.data = place.data};
    KeyStoreOptions outside = {.data = place.data, .seal_key_file = place.seal};
    StoredKeys keys = keys_with("new");
    Error err = {0};

    expect_none(&outside); /* its file is not needed yet */
    assert_int_equal(key_store_write(&outside, &keys, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.message, "--seal-key-file"));
    assert_false(exists(&place, "keys"));

    put_file(place.seal, SEAL_A "\r\nmore", 50);
    write_keys(&outside, "one");
    expect_keys(&outside, "one");
    expect_refused(&inside, "kept elsewhere");
    put_file(place.seal, SEAL_B "\n", 45);
    expect_refused(&outside, "sealed with another");
    put_file(place.seal, SEAL_A "\n", 45);
    assert_int_equal(unlink(path_of(&place, "keys")), 0);
    expect_refused(&outside, "keys' is missing");
}

static void the_sealing_key_can_be_moved_out(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    KeyStoreOptions inside = {.data = place.data};
    KeyStoreOptions outside = {.data = place.data, .seal_key_file = place.seal};
    write_keys(&inside, "one");
    assert_int_equal(rename(path_of(&place, "seal.key"), place.seal), 0);
    expect_keys(&outside, "one");
    write_keys(&outside, "two");
    expect_keys(&outside, "two");
    expect_refused(&inside, "kept elsewhere");
}

static void what_cannot_be_written_changes_nothing(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    KeyStoreOptions options = {.data = place.data};
    StoredKeys keys = keys_with("two");
    Error err = {0};
    write_keys(&options, "one");
    /* A folder cannot be replaced by a file, nor removed as one. */
    assert_int_equal(mkdir(path_of(&place, "keys.new"), 0700), 0);
    assert_int_equal(key_store_write(&options, &keys, &err), STATUS_IO);
    assert_non_null(strstr(err.message, "keys.new"));
    expect_keys(&options, "one");
    assert_int_equal(rmdir(path_of(&place, "keys.new")), 0);
    KeyStoreOptions nowhere = {.data = "/nothing/here"};
    assert_int_equal(key_store_write(&nowhere, &keys, &err), STATUS_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_without_files_has_no_keys),
        cmocka_unit_test(keys_are_read_as_they_were_written),
        cmocka_unit_test(a_crash_at_any_step_leaves_the_old_keys_or_the_new),
        cmocka_unit_test(a_lost_or_damaged_file_is_no_folder_without_keys),
        cmocka_unit_test(the_sealing_key_may_be_kept_elsewhere),
        cmocka_unit_test(the_sealing_key_can_be_moved_out),
        cmocka_unit_test(what_cannot_be_written_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
