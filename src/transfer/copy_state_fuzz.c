/* copy_state_fuzz.c - any file to resume from, or any page of a feed (by the first byte): refused,
 * or good. A state that is read and printed again is the same. */
#include "transfer/copy_plan.h"
#include "transfer/copy_state.h"

#define JOB SLICE("0123456789ABCDEF0123456789ABCDEF")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_state(Slice text)
{
    CopyState first;
    CopyState second;
    Error err = {0};
    AUTO(buf_done) Buf printed;
    AUTO(buf_done) Buf again;
    buf_init(&printed, COPY_STATE_BYTES_MAX);
    buf_init(&again, COPY_STATE_BYTES_MAX);
    copy_state_init(&first);
    copy_state_init(&second);
    if (copy_state_parse(&first, text, JOB, &err) == STATUS_OK) {
        copy_state_print(&first, JOB, &printed);
        ASSERT(copy_state_parse(&second, buf_view(&printed), JOB, &err) == STATUS_OK);
        copy_state_print(&second, JOB, &again);
        ASSERT(slice_equal(buf_view(&printed), buf_view(&again)));
    } else {
        ASSERT(err.message[0] != '\0');
    }
    copy_state_done(&first);
    copy_state_done(&second);
}

static void check_page(Arena *arena, Slice text)
{
    CopyKeys keys = {.source = {.kind = PARTITION_HASH_V2, .path_count = 1},
                     .target = {.kind = PARTITION_HASH_V2, .path_count = 1}};
    size_t position = 0;
    ASSERT(property_path_parse(arena, SLICE("/pk"), &keys.source.paths[0], &position));
    position = 0;
    ASSERT(property_path_parse(arena, SLICE("/user"), &keys.target.paths[0], &position));
    Json page;
    Error err = {0};
    CopyChange *changes = NULL;
    size_t count = 0;
    if (json_parse(arena, text, &page, &err) != STATUS_OK ||
        copy_changes_parse(arena, page, &keys, &changes, &count, &err) != STATUS_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i && count < 100; j++)
            ASSERT(!slice_equal(changes[i].id, changes[j].id) ||
                   !partition_key_equal(&changes[i].key, &changes[j].key));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice text = slice_make(data + 1, size - 1);
    if (data[0] % 2 == 0)
        check_state(text);
    else
        check_page(&arena, text);
    return 0;
}
