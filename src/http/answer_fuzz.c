/* answer_fuzz.c - no bytes make the reader of answers read elsewhere, keep too much, or say one
 * thing about them whole and another when they come in two parts. */
#include "base/mem.h"
#include "http/answer_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_BYTES_MAX = 4096 };

typedef struct Outcome {
    Status status;
    size_t used;
    AnswerReader reader;
} Outcome;

/* Reads the bytes in parts of this size. */
static Outcome read_parts(const uint8_t *data, size_t size, size_t part, bool is_to_head,
                          Arena *arena)
{
    Outcome outcome = {
        .reader = {.arena = arena, .bytes_max = BODY_BYTES_MAX, .is_to_head = is_to_head}};
    Error err;
    while (outcome.used < size && outcome.status == STATUS_OK &&
           outcome.reader.state != ANSWER_DONE) {
        size_t left = size - outcome.used;
        size_t len = part < left ? part : left;
        size_t used = 0;
        char *bytes = mem_copy(data + outcome.used, len); /* the reader may change them */
        outcome.status = answer_read(&outcome.reader, bytes, len, &used, &err);
        if (outcome.status == STATUS_OK) {
            ASSERT(used == len || outcome.reader.state == ANSWER_DONE);
            outcome.used += used;
        }
        mem_free(bytes);
    }
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    Arena whole_arena;
    Arena split_arena;
    arena_init(&whole_arena, ARENA_SMALL_BYTES);
    arena_init(&split_arena, ARENA_SMALL_BYTES);
    bool is_to_head = (data[0] & 1) != 0;
    size_t part = 1 + data[1] % 64;
    Outcome whole = read_parts(data + 2, size - 2, size, is_to_head, &whole_arena);
    Outcome split = read_parts(data + 2, size - 2, part, is_to_head, &split_arena);
    ASSERT(whole.status == split.status);
    ASSERT(whole.reader.body.len <= BODY_BYTES_MAX);
    if (whole.status == STATUS_OK) {
        ASSERT(whole.used == split.used);
        ASSERT(whole.reader.state == split.reader.state);
        ASSERT(slice_equal(whole.reader.body, split.reader.body));
    }
    if (whole.status == STATUS_OK && whole.reader.state == ANSWER_DONE) {
        ASSERT(whole.reader.status >= 200);
        ASSERT(whole.reader.status == split.reader.status);
        ASSERT(whole.reader.ends_connection == split.reader.ends_connection);
        ASSERT(whole.reader.header_count == split.reader.header_count);
        for (size_t i = 0; i < whole.reader.header_count; i++) {
            ASSERT(slice_equal(whole.reader.headers[i].name, split.reader.headers[i].name));
            ASSERT(slice_equal(whole.reader.headers[i].value, split.reader.headers[i].value));
        }
    }
    arena_done(&whole_arena);
    arena_done(&split_arena);
    return 0;
}
