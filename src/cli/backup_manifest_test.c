/* backup_manifest_test.c - manifests are read as they were printed, and not otherwise. */
#include "cli/backup_manifest.h"

#include "base/testing.h"
#include "cli/data_files.h"

#define SUM "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

static BackupEntry example_files[] = {
    {SLICE_INIT("store/000012.sst"), UINT64_C(1) << 40, SLICE_INIT(SUM)},
    {SLICE_INIT("store/CURRENT"), 16, SLICE_INIT(SUM)},
    {SLICE_INIT("token.key"), 0, SLICE_INIT(SUM)},
};
static BackupPosition example_positions[] = {
    {SLICE_INIT("shop"), SLICE_INIT("carts \"of\"\n\xC3\xBC"), SLICE_INIT("0"), 17},
    {SLICE_INIT("shop"), SLICE_INIT("carts"), SLICE_INIT("12"), UINT64_C(1) << 52},
};

static BackupManifest example(void)
{
    return (BackupManifest){
        .generation = 7,
        .time_s = 1795003200,
        .version = SLICE("0.1.0"),
        .is_damaged = true,
        .files = example_files,
        .file_count = ARRAY_COUNT(example_files),
        .positions = example_positions,
        .position_count = ARRAY_COUNT(example_positions),
    };
}

static Slice print(const BackupManifest *manifest)
{
    Buf text;
    buf_init(&text, 1 << 20);
    manifest_print(manifest, &text);
    Slice copy = arena_copy(&test_arena, buf_view(&text));
    buf_done(&text);
    return copy;
}

static void a_manifest_is_read_as_it_was_printed(void **state)
{
    (void)state;
    BackupManifest manifest = example();
    BackupManifest again;
    assert_ok(manifest_parse(&test_arena, print(&manifest), &again, err));
    assert_int_equal(again.generation, 7);
    assert_int_equal(again.time_s, 1795003200);
    assert_slice(again.version, SLICE("0.1.0"));
    assert_true(again.is_damaged);
    assert_int_equal(again.file_count, ARRAY_COUNT(example_files));
    for (size_t i = 0; i < ARRAY_COUNT(example_files); i++) {
        assert_slice(again.files[i].name, example_files[i].name);
        assert_int_equal(again.files[i].size, example_files[i].size);
        assert_slice(again.files[i].sha256, example_files[i].sha256);
        assert_ptr_equal(manifest_find(&again, example_files[i].name), &again.files[i]);
    }
    assert_null(manifest_find(&again, SLICE("store/000013.sst")));
    assert_null(manifest_find(&again, SLICE_EMPTY));
    assert_int_equal(again.position_count, ARRAY_COUNT(example_positions));
    for (size_t i = 0; i < ARRAY_COUNT(example_positions); i++) {
        assert_slice(again.positions[i].container, example_positions[i].container);
        assert_slice(again.positions[i].range, example_positions[i].range);
        assert_int_equal(again.positions[i].lsn, example_positions[i].lsn);
    }
}

static void any_other_byte_makes_it_damaged(void **state)
{
    (void)state;
    BackupManifest manifest = example();
    Slice text = print(&manifest);
    char *bytes = arena_alloc(&test_arena, text.len);
    for (size_t at = 0; at < text.len; at++) {
        memcpy(bytes, text.ptr, text.len);
        bytes[at] ^= 1;
        BackupManifest again;
        Error err;
        assert_status(manifest_parse(&test_arena, slice_make(bytes, text.len), &again, &err),
                      STATUS_CORRUPT);
        assert_status(manifest_parse(&test_arena, slice_first(text, at), &again, &err),
                      STATUS_CORRUPT);
    }
}

/* With a sum that is right: what a mistake, or an attacker, may have written. */
static void what_cannot_be_a_backup_is_refused(void **state)
{
    (void)state;
    static const struct {
        BackupEntry files[2];
        size_t count;
    } rows[] = {
        {{{SLICE_INIT("../x"), 1, SLICE_INIT(SUM)}}, 1},
        {{{SLICE_INIT("/etc/passwd"), 1, SLICE_INIT(SUM)}}, 1},
        {{{SLICE_INIT("store/../x"), 1, SLICE_INIT(SUM)}}, 1},
        {{{SLICE_INIT("store/"), 1, SLICE_INIT(SUM)}}, 1},
        {{{SLICE_INIT("store/.."), 1, SLICE_INIT(SUM)}}, 1},
        {{{SLICE_INIT("store/INCOMPLETE"), 1, SLICE_INIT(SUM)}}, 1},
        {{{SLICE_INIT("other.key"), 1, SLICE_INIT(SUM)}}, 1},
        {{{SLICE_INIT("token.key"), 1, SLICE_INIT("../../x")}}, 1},
        {{{SLICE_INIT("token.key"), UINT64_MAX, SLICE_INIT(SUM)}}, 1},
        {{{SLICE_INIT("token.key"), 1, SLICE_INIT(SUM)},
          {SLICE_INIT("store/a"), 1, SLICE_INIT(SUM)}},
         2},
        {{{SLICE_INIT("store/a"), 1, SLICE_INIT(SUM)}, {SLICE_INIT("store/a"), 1, SLICE_INIT(SUM)}},
         2},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        BackupEntry files[2];
        memcpy(files, rows[i].files, sizeof(files));
        BackupManifest manifest = example();
        manifest.files = files;
        manifest.file_count = rows[i].count;
        BackupManifest again;
        Error err;
        assert_status(manifest_parse(&test_arena, print(&manifest), &again, &err), STATUS_CORRUPT);
        assert_non_null(strstr(err.message, "manifest is damaged"));
    }
}

static void all_rows_of_data_files_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; DATA_FILES[i] != NULL; i++)
        assert_true(data_file_is_known(slice_from_cstr(DATA_FILES[i])));
    for (size_t i = 0; DATA_FILES_SENT[i] != NULL; i++) {
        assert_true(data_file_is_known(slice_from_cstr(DATA_FILES_SENT[i])));
        assert_null(strstr(DATA_FILES_SENT[i], "tls-"));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_manifest_is_read_as_it_was_printed),
        TEST(any_other_byte_makes_it_damaged),
        TEST(what_cannot_be_a_backup_is_refused),
        TEST(all_rows_of_data_files_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
