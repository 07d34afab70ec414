/* backup_folder_test.c - generations share files, lose what nobody needs, and nothing else. */
#include "cli/backup_folder.h"

#include "base/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static BackupFolder *open_writer(const TestFolder *folder)
{
    BackupFolder *backups = NULL;
    assert_ok(backup_folder_open(folder->path, true, &backups, err));
    return backups;
}

/* Adds contents, and their entry to the manifest. */
static void add(BackupFolder *backups, BackupManifest *manifest, const char *name, const char *text)
{
    char *sum = arena_alloc(&test_arena, SHA256_TEXT_LEN);
    assert_ok(backup_folder_begin(backups, err));
    assert_ok(backup_folder_write(backups, slice_from_cstr(text), err));
    assert_ok(backup_folder_end(backups, SLICE_EMPTY, sum, err));
    manifest->files[manifest->file_count++] =
        (BackupEntry){slice_from_cstr(name), strlen(text), slice_make(sum, SHA256_TEXT_LEN)};
}

static BackupManifest generation(uint64_t number)
{
    return (BackupManifest){.generation = number,
                            .version = SLICE("1"),
                            .files = ARENA_NEW_ARRAY(&test_arena, BackupEntry, 4)};
}

static size_t count_generations(const BackupFolder *backups)
{
    size_t count = 0;
    (void)backup_folder_generations(backups, &count);
    return count;
}

static void old_generations_go_and_shared_files_stay(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(backup_folder_close) BackupFolder *backups = open_writer(&folder);
    Slice id = arena_copy(&test_arena, backup_folder_id(backups));
    BackupManifest list[3];
    for (uint64_t i = 0; i < 3; i++) {
        list[i] = generation(i + 1);
        add(backups, &list[i], "store/a", "shared");
        add(backups, &list[i], "store/b", arena_format(&test_arena, "own %d", (int)i).ptr);
        assert_ok(backup_folder_finish(backups, &list[i], err));
    }
    BackupRemoved removed;
    assert_ok(backup_folder_prune(backups, 5, &removed, err));
    assert_int_equal(removed.generations + removed.files, 0);
    assert_ok(backup_folder_prune(backups, 2, &removed, err));
    assert_int_equal(removed.generations, 1);
    assert_int_equal(removed.files, 1);
    assert_int_equal(removed.bytes, 5);
    assert_true(backup_folder_has(backups, list[0].files[0].sha256, 6));
    assert_false(backup_folder_has(backups, list[0].files[1].sha256, 5));
    assert_true(backup_folder_has(backups, list[1].files[1].sha256, 5));
    assert_false(backup_folder_has(backups, list[1].files[1].sha256, 6));
    backup_folder_close(TAKE(backups));

    backups = open_writer(&folder);
    assert_slice(backup_folder_id(backups), id);
    assert_int_equal(count_generations(backups), 2);
    assert_true(backup_folder_has_size(backups, 6));
    assert_false(backup_folder_has_size(backups, 7));
    BackupManifest read;
    Error why;
    assert_status(backup_folder_read(backups, 1, &test_arena, &read, &why), STATUS_NOT_FOUND);
    assert_ok(backup_folder_read(backups, 3, &test_arena, &read, err));
    assert_int_equal(read.file_count, 2);
}

/* An interrupted backup leaves files without a manifest. */
static void what_no_manifest_names_goes_unless_it_may_be_needed(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(backup_folder_close) BackupFolder *backups = open_writer(&folder);
    BackupManifest whole = generation(1);
    BackupManifest torn = generation(2);
    add(backups, &whole, "store/a", "kept");
    assert_ok(backup_folder_finish(backups, &whole, err));
    add(backups, &torn, "store/b", "seven..");
    add(backups, &torn, "store/c", "eight...");
    uint64_t sizes[] = {100, 7};
    assert_ok(backup_folder_clean(backups, sizes, ARRAY_COUNT(sizes), err));
    assert_true(backup_folder_has(backups, whole.files[0].sha256, 4));
    assert_true(backup_folder_has(backups, torn.files[0].sha256, 7));
    assert_false(backup_folder_has(backups, torn.files[1].sha256, 8));
    BackupRemoved removed;
    assert_ok(backup_folder_prune(backups, 1, &removed, err));
    assert_int_equal(removed.files, 1);
    assert_true(backup_folder_has(backups, whole.files[0].sha256, 4));
}

static void a_damaged_manifest_keeps_everything(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(backup_folder_close) BackupFolder *backups = open_writer(&folder);
    for (uint64_t i = 1; i <= 2; i++) {
        BackupManifest manifest = generation(i);
        add(backups, &manifest, "store/a", i == 1 ? "one" : "two");
        assert_ok(backup_folder_finish(backups, &manifest, err));
    }
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/generations/000001.json", folder.path);
    assert_int_equal(truncate(path, 10), 0);
    BackupRemoved removed;
    assert_ok(backup_folder_prune(backups, 1, &removed, err));
    assert_true(removed.is_unsure);
    assert_int_equal(removed.generations + removed.files, 0);
    assert_int_equal(count_generations(backups), 2);
}

static void a_file_with_another_sum_is_not_taken(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(backup_folder_close) BackupFolder *backups = open_writer(&folder);
    char expected[SHA256_TEXT_LEN];
    char sum[SHA256_TEXT_LEN];
    sha256_of(SLICE("right"), expected);
    Error why;
    assert_ok(backup_folder_begin(backups, err));
    assert_ok(backup_folder_write(backups, SLICE("wrong"), err));
    assert_status(backup_folder_end(backups, slice_make(expected, sizeof(expected)), sum, &why),
                  STATUS_CORRUPT);
    assert_false(backup_folder_has(backups, slice_make(sum, sizeof(sum)), 5));
    assert_false(backup_folder_has(backups, slice_make(expected, sizeof(expected)), 5));
}

static void one_command_at_a_time(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(backup_folder_close) BackupFolder *backups = open_writer(&folder);
    for (int i = 0; i < 2; i++) {
        BackupFolder *other = NULL;
        Error why;
        assert_status(backup_folder_open(folder.path, i == 0, &other, &why), STATUS_UNAVAILABLE);
        assert_null(other);
    }
    backup_folder_close(TAKE(backups));
    AUTO(backup_folder_close) BackupFolder *first = NULL;
    AUTO(backup_folder_close) BackupFolder *second = NULL;
    assert_ok(backup_folder_open(folder.path, false, &first, err));
    assert_ok(backup_folder_open(folder.path, false, &second, err));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(old_generations_go_and_shared_files_stay),
        TEST(what_no_manifest_names_goes_unless_it_may_be_needed),
        TEST(a_damaged_manifest_keeps_everything),
        TEST(a_file_with_another_sum_is_not_taken),
        TEST(one_command_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
