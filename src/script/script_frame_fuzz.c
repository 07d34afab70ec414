/* script_frame_fuzz.c - no bytes from a worker make the server read elsewhere, and what it accepts
 * it would write the same way.
 */
#include "base/mem.h"
#include "script/script_frame_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_operations(Buf *out, const FrameOperations *operations)
{
    frame_begin_operations(out);
    for (size_t i = 0; i < operations->count; i++)
        frame_add_operation(out, &operations->calls[i]);
    frame_end_many(out, operations->count);
}

static void put_answers(Buf *out, const FrameAnswers *answers)
{
    frame_begin_answers(out);
    for (size_t i = 0; i < answers->count; i++) {
        bool is_added = frame_add_answer(out, &answers->answers[i]);
        ASSERT(is_added);
    }
    frame_end_many(out, answers->count);
}

/* Reads a payload and, if it is well formed, writes it again. False if it is not. */
static bool write_again(FrameType type, Slice payload, Arena *arena, Buf *out)
{
    FrameHello hello;
    FrameRun run;
    FrameOperations operations;
    FrameAnswers answers;
    FrameDone done;
    FrameOpen open;
    FrameCalls calls;
    FrameResults results;
    if (type == FRAME_HELLO && frame_get_hello(payload, &hello))
        frame_put_hello(out, &hello);
    else if (type == FRAME_RUN && frame_get_run(payload, &run))
        frame_put_run(out, &run);
    else if (type == FRAME_OPERATIONS && frame_get_operations(payload, arena, &operations))
        put_operations(out, &operations);
    else if (type == FRAME_ANSWERS && frame_get_answers(payload, arena, &answers))
        put_answers(out, &answers);
    else if (type == FRAME_DONE && frame_get_done(payload, &done))
        frame_put_done(out, &done);
    else if (type == FRAME_OPEN && frame_get_open(payload, arena, &open))
        frame_put_open(out, &open);
    else if (type == FRAME_CALL && frame_get_calls(payload, arena, &calls))
        frame_put_calls(out, &calls);
    else if (type == FRAME_RESULTS && frame_get_results(payload, arena, &results))
        frame_put_results(out, &results);
    return out->len > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FrameType type;
    size_t len = 0;
    if (size < SCRIPT_FRAME_HEAD_BYTES || !frame_head((const char *)data, &type, &len) ||
        len != size)
        return 0;
    char *bytes = mem_copy(data, size);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    AUTO(buf_done) Buf out;
    buf_init(&out, SCRIPT_FRAME_BYTES_MAX);
    Slice whole = slice_make(bytes, size);
    if (write_again(type, slice_from(whole, SCRIPT_FRAME_HEAD_BYTES), &arena, &out)) {
        ASSERT(!buf_full(&out));
        ASSERT(slice_equal(buf_view(&out), whole));
    }
    mem_free(bytes);
    return 0;
}
