/* top_model_fuzz.c - answers of a hostile server: read, and drawn without a control character.
 *
 * The five answers stand one after the other, separated by lines of "--".
 */
#include "cli/top_draw.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Slice next_answer(Slice *rest)
{
    static const Slice mark = SLICE_INIT("\n--\n");
    const char *end = rest->len == 0 ? NULL : memmem(rest->ptr, rest->len, mark.ptr, mark.len);
    Slice answer = end == NULL ? *rest : slice_first(*rest, (size_t)(end - rest->ptr));
    *rest = slice_from(*rest, end == NULL ? rest->len : answer.len + mark.len);
    return answer;
}

static void check_frame(Slice frame, uint32_t width)
{
    size_t column = 0;
    for (size_t i = 0; i < frame.len; i++) {
        uint8_t c = (uint8_t)frame.ptr[i];
        column = c == '\n' ? 0 : column + 1;
        if ((c < 0x20 && c != '\n') || c >= 0x7F || column > width)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice rest = slice_make(data, size);
    TopAnswers answers;
    answers.layout = next_answer(&rest);
    answers.history = next_answer(&rest);
    answers.by_ru = next_answer(&rest);
    answers.by_throttled = next_answer(&rest);
    answers.events = next_answer(&rest);
    answers.cluster = next_answer(&rest);
    TopModel model;
    Error err;
    TopContainer *list = NULL;
    size_t count = 0;
    (void)!top_containers_parse(&arena, answers.layout, &list, &count, &err);
    if (top_model_parse(&arena, &answers, &model, &err) != STATUS_OK)
        return 0;
    AUTO(buf_done) Buf out;
    buf_init(&out, TOP_FRAME_BYTES_MAX);
    TopCanvas canvas = {.width = 40 + (uint32_t)(size % 100),
                        .height = size % 3 == 0 ? 0 : 20,
                        .has_owners = answers.cluster.len > 0};
    top_draw(&model, &canvas, SLICE_EMPTY, &out);
    check_frame(buf_view(&out), canvas.width);
    return 0;
}
