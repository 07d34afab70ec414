/* backup_manifest_fuzz.c - manifests as a damaged disk, or anybody, may have written them.
 *
 * Few inputs have the sum that they should have, so it is made right first; then everything behind
 * it is reached. What is accepted is printed again, and must be read as the same.
 */
#include "cli/backup_manifest.h"
#include "cli/data_files.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(Arena *arena, const BackupManifest *manifest)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, MANIFEST_BYTES_MAX);
    manifest_print(manifest, &text);
    ASSERT(!buf_full(&text));
    BackupManifest again;
    Error err;
    Status status = manifest_parse(arena, buf_view(&text), &again, &err);
    ASSERT(status == STATUS_OK);
    ASSERT(again.file_count == manifest->file_count);
    ASSERT(again.position_count == manifest->position_count);
    ASSERT(again.time_s == manifest->time_s);
    for (size_t i = 0; i < manifest->file_count; i++) {
        ASSERT(data_file_is_known(manifest->files[i].name));
        ASSERT(manifest_find(manifest, manifest->files[i].name) == &manifest->files[i]);
        ASSERT(slice_equal(again.files[i].sha256, manifest->files[i].sha256));
    }
}

static void try_text(Arena *arena, Slice text)
{
    BackupManifest manifest;
    Error err;
    if (manifest_parse(arena, text, &manifest, &err) == STATUS_OK)
        check_again(arena, &manifest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice bytes = slice_make(data, size);
    try_text(&arena, bytes);
    AUTO(buf_done) Buf summed;
    buf_init(&summed, size + 256);
    char sum[SHA256_TEXT_LEN];
    sha256_of(bytes, sum);
    buf_slice(&summed, bytes);
    buf_format(&summed, ",\"sha256\":\"%.*s\"}\n", SHA256_TEXT_LEN, sum);
    try_text(&arena, buf_view(&summed));
    return 0;
}
