/* checkpoint_fuzz.c - any file to resume from: refused, or printed again it is the same. The first
 * byte chooses the kind. */
#include "transfer/checkpoint.h"

#define JOB SLICE("0123456789ABCDEF0123456789ABCDEF")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_import(Arena *arena, Slice text)
{
    ImportCheckpoint first;
    ImportCheckpoint second;
    Error err = {0};
    if (import_checkpoint_parse(arena, text, JOB, &first, &err) != STATUS_OK) {
        ASSERT(err.message[0] != '\0');
        return;
    }
    AUTO(buf_done) Buf again;
    buf_init(&again, CHECKPOINT_BYTES_MAX);
    import_checkpoint_print(&first, JOB, &again);
    ASSERT(import_checkpoint_parse(arena, buf_view(&again), JOB, &second, &err) == STATUS_OK);
    ASSERT(memcmp(&first.digest, &second.digest, sizeof(first.digest)) == 0);
    ASSERT(first.file == second.file);
    ASSERT(first.row == second.row);
}

static void check_export(Arena *arena, Slice text)
{
    ExportCheckpoint first;
    ExportCheckpoint second;
    Error err = {0};
    if (export_checkpoint_parse(arena, text, JOB, &first, &err) != STATUS_OK) {
        ASSERT(err.message[0] != '\0');
        return;
    }
    AUTO(buf_done) Buf again;
    buf_init(&again, CHECKPOINT_BYTES_MAX);
    export_checkpoint_print(&first, JOB, &again);
    ASSERT(export_checkpoint_parse(arena, buf_view(&again), JOB, &second, &err) == STATUS_OK);
    ASSERT(first.part_count == second.part_count);
    for (size_t i = 0; i < first.part_count; i++)
        ASSERT(slice_equal(first.parts[i].token, second.parts[i].token));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice text = slice_make(data + 1, size - 1);
    if (data[0] % 2 == 0)
        check_import(&arena, text);
    else
        check_export(&arena, text);
    return 0;
}
