/* top_draw_test.c - frames as they look, their bounds, and texts that want to be more than text. */
#include "cli/top_draw.h"
#include "cli/top_testing_int.h"

#include <locale.h>

static void model_with(Arena *arena, const char *events, TopModel *model)
{
    TopAnswers answers = {
        .layout = row_text(arena, LAYOUT),
        .history = row_text(arena, HISTORY),
        .by_ru = row_text(arena, BY_RU),
        .by_throttled = row_text(arena, BY_THROTTLED),
        .events = row_text(arena, events),
    };
    Error err;
    assert_int_equal(top_model_parse(arena, &answers, model, &err), STATUS_OK);
}

static void model_of(Arena *arena, TopModel *model)
{
    model_with(arena, NO_EVENTS, model);
}

static void expect_text(Slice found, const char *expected)
{
    if (!slice_equal(found, slice_from_cstr(expected)))
        fail_msg("expected:\n%s\nfound:\n%.*s", expected, SLICE_ARG(found));
}

/* The characters of a frame, with escape sequences made visible. */
static Slice visible(Arena *arena, Slice text)
{
    char *out = arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++)
        out[i] = text.ptr[i] == '\033' ? '^' : text.ptr[i];
    return slice_make(out, text.len);
}

static void a_frame_without_colour_is_plain_text(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    TopModel model;
    model_of(&arena, &model);
    AUTO(buf_done) Buf out;
    buf_init(&out, TOP_FRAME_BYTES_MAX);
    top_draw(&model, &(TopCanvas){.width = 72}, SLICE_EMPTY, &out);
    expect_text(buf_view(&out),
                "orrery top - shop/orders                         2023-11-14 22:13:20 UTC\n"
                "manual 800 RU/s, 2 partitions, 1,200 items, 120 KB, 1,234 keys\n"
                "now 420 RU/s (53%), last minute 12,600 RU, 600 requests, 12 throttled\n"
                "\n"
                "   part  hash from  -30s                       now     RU/s  peak    429\n"
                "      0  -                               .:-=+#@XX      400  100%     12\n"
                "      1  1FFFFFFF                            B....     20.5   12%      0\n"
                "                    0%  .:-=+*#%@ 100%  B burst  X 429\n"
                "\n"
                "        RU  share    part  key, by request units\n"
                "    11,400  90.5%       0  [\"hot\"]\n"
                "       600   4.8%       1  [\"cool\",5]\n"
                "\n"
                "      429s  share    part  key, by throttled requests\n"
                "        12 100.0%       0  [\"hot\"]\n");
}

static void a_frame_with_colour_fills_the_screen(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    TopModel model;
    model_of(&arena, &model);
    model.by_ru.count = model.by_throttled.count = 0;
    model.ranges[0].min = model.ranges[1].min = SLICE_EMPTY;
    AUTO(buf_done) Buf out;
    buf_init(&out, TOP_FRAME_BYTES_MAX);
    top_draw(&model, &(TopCanvas){.width = 40, .height = 10, .has_colour = true}, SLICE("q quits"),
             &out);
    expect_text(
        visible(&arena, buf_view(&out)),
        "orrery top - shop/orders^[K\r\n"
        "manual 800 RU/s, 2 partitions, 1,200 ite^[K\r\n"
        "now 420 RU/s (53%), last minute 12,600 R^[K\r\n"
        "^[K\r\n"
        "   part  hash from  -20s             now^[K\r\n"
        "      0  -          ^[97;48;5;235m           ^[97;48;5;17m ^[97;48;5;19m ^[97;48;5;26m "
        "^[97;48;5;38m ^[97;48;5;71m ^[97;48;5;178m ^[97;48;5;196m xx^[0m^[K\r\n"
        "      1  -          ^[97;48;5;235m               ^[97;48;5;201m ^[97;48;5;17m    "
        "^[0m^[K\r\n"
        "                    0% ^[97;48;5;235m ^[97;48;5;17m ^[97;48;5;19m ^[97;48;5;26m "
        "^[97;48;5;38m ^[97;48;5;71m ^[97;48;5;142m ^[97;48;5;178m ^[97;48;5;208m ^[97;48;5;196m "
        "^[0m 100%  ^[K\r\n"
        "^[K\r\n"
        "q quits^[K");
}

static void splits_and_merges_are_told(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    TopModel model;
    model_with(&arena, EVENTS, &model);
    AUTO(buf_done) Buf out;
    buf_init(&out, TOP_FRAME_BYTES_MAX);
    top_draw(&model, &(TopCanvas){.width = 90}, SLICE_EMPTY, &out);
    const char *text = arena_cstr(&arena, buf_view(&out));
    assert_non_null(strstr(text, "12 throttled\n"
                                 "merge 3, 4 into 5 (asked): copying, 45% of 12.0 MB\n"
                                 "   part  hash"));
    assert_non_null(strstr(text, "[\"hot\"]\n"
                                 "\n"
                                 "       ago  splits and merges\n"
                                 "       10s  split 2 (asked): failed: one key\n"
                                 "       16m  split 0 into 2, 3, 4 (asked): done, 12.0 MB, writes "
                                 "waited 2.1 ms\n"));
}

static void cluster_model(Arena *arena, TopModel *model)
{
    TopAnswers answers = {
        .layout = row_text(arena, LAYOUT_IN_CLUSTER),
        .history = row_text(arena, HISTORY),
        .by_ru = row_text(arena, BY_RU),
        .by_throttled = row_text(arena, NO_KEYS),
        .events = row_text(arena, NO_EVENTS),
        .cluster = row_text(arena, CLUSTER),
    };
    Error err;
    assert_int_equal(top_model_parse(arena, &answers, model, &err), STATUS_OK);
}

static void a_node_of_a_cluster_shows_owners_and_nodes(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    TopModel model;
    cluster_model(&arena, &model);
    AUTO(buf_done) Buf out;
    buf_init(&out, TOP_FRAME_BYTES_MAX);
    top_draw(&model, &(TopCanvas){.width = 82, .has_owners = true}, SLICE_EMPTY, &out);
    expect_text(
        buf_view(&out),
        "orrery top - shop/orders                                   2023-11-14 22:13:20 UTC\n"
        "manual 800 RU/s, 2 partitions, 1,200 items, 120 KB; of 1 nothing is known now\n"
        "now 20.5 RU/s (3%), last minute 600 RU, 600 requests, 0 throttled\n"
        "\n"
        "   part  hash from  -30s                       now     RU/s  peak    429 owner\n"
        "      0  -                               .:-=+#@XX        ?     ?      ? c\n"
        "      1  1FFFFFFF                            B....     20.5   12%      0 a\n"
        "                    0%  .:-=+*#%@ 100%  B burst  X 429\n"
        "\n"
        "  node              state      owns  copies   behind   lease renewed\n"
        "  a                 live          3       4        0       0.3 s ago\n"
        "> b                 draining      0       4       12       0.0 s ago, gives 1 away\n"
        "  c                 dead          1       4    9,000      61.2 s ago\n"
        "\n"
        "        RU  share    part  key, by request units, at node b\n"
        "    11,400  90.5%       0  [\"hot\"]\n"
        "       600   4.8%       1  [\"cool\",5]\n");
}

/* As many partitions as there may be, with as much of a past as fits. */
static void large_model(Arena *arena, TopModel *model, size_t ranges)
{
    model_with(arena, EVENTS, model);
    TopRange *many = ARENA_NEW_ARRAY(arena, TopRange, ranges);
    for (size_t i = 0; i < ranges; i++) {
        many[i] = model->ranges[i % 2];
        many[i].id = arena_format(arena, "%zu", i);
    }
    model->ranges = many;
    model->range_count = ranges;
}

static void add_nodes(Arena *arena, TopModel *model)
{
    TopModel other;
    cluster_model(arena, &other);
    model->node = other.node;
    model->nodes = other.nodes;
    model->node_count = other.node_count;
}

/* Lines of a frame, and the widest of them. */
static size_t count_lines(Slice frame, size_t *widest)
{
    size_t lines = 0;
    *widest = 0;
    while (frame.ptr != NULL && frame.len > 0) {
        Slice line = slice_cut(&frame, '\n');
        *widest = line.len > *widest ? line.len : *widest;
        lines++;
    }
    return lines;
}

static void a_frame_is_never_larger_than_the_screen(void **state)
{
    (void)state;
    static const size_t ranges[] = {1, 2, 3, 7, 40, 1000, TOP_MODEL_RANGES_MAX};
    static const uint32_t widths[] = {40, 41, 61, 62, 63, 80, 200, 1000};
    static const uint32_t heights[] = {10, 11, 12, 13, 17, 24, 50, 300, 0};
    AUTO(buf_done) Buf out;
    buf_init(&out, TOP_FRAME_BYTES_MAX);
    for (size_t r = 0; r < ARRAY_COUNT(ranges); r++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        TopModel model;
        large_model(&arena, &model, ranges[r]);
        if (r % 2 == 0)
            add_nodes(&arena, &model);
        for (size_t w = 0; w < ARRAY_COUNT(widths); w++) {
            for (size_t h = 0; h < ARRAY_COUNT(heights); h++) {
                TopCanvas canvas = {
                    .width = widths[w], .height = heights[h], .has_owners = (h & 1) == 0};
                buf_reset(&out);
                top_draw(&model, &canvas, SLICE("note"), &out);
                assert_false(buf_full(&out));
                size_t widest = 0;
                size_t lines = count_lines(buf_view(&out), &widest);
                assert_true(widest <= widths[w]);
                if (heights[h] == 0)
                    assert_true(lines <= 64 + 30);
                else
                    assert_int_equal(lines, heights[h]);
                assert_non_null(memmem(out.ptr, out.len, "\nnote", 5));
            }
        }
    }
}

static void neighbours_share_a_line_when_there_are_too_many(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    TopModel model;
    large_model(&arena, &model, 10);
    AUTO(buf_done) Buf out;
    buf_init(&out, TOP_FRAME_BYTES_MAX);
    top_draw(&model, &(TopCanvas){.width = 72, .height = 15}, SLICE_EMPTY, &out);
    /* The hotter of the two counts for the shade, both for the numbers. */
    assert_non_null(strstr(arena_cstr(&arena, buf_view(&out)),
                           "    0-2  -                               .:-=B#@XX      820  100%     "
                           "24\n"));
    assert_non_null(strstr(arena_cstr(&arena, buf_view(&out)), "\n      9  1FFFFFFF"));
}

static void without_an_allotment_shades_follow_the_busiest_second(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    TopModel model;
    model_of(&arena, &model);
    model.ranges[0].ru_allotted = model.ranges[1].ru_allotted = 0;
    AUTO(buf_done) Buf out;
    buf_init(&out, TOP_FRAME_BYTES_MAX);
    top_draw(&model, &(TopCanvas){.width = 72}, SLICE_EMPTY, &out);
    const char *text = arena_cstr(&arena, buf_view(&out));
    assert_non_null(strstr(text, "now 420 RU/s, last"));
    assert_non_null(strstr(text, "     @....   "));
    assert_null(strstr(text, "B.."));
}

static void texts_of_others_are_made_harmless_and_cut(void **state)
{
    (void)state;
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    static const struct {
        const char *text;
        uint32_t width;
        bool is_utf8;
        const char *drawn;
        uint32_t used;
    } rows[] = {
        {"plain", 10, true, "plain", 5},
        {"plain", 5, true, "plain", 5},
        {"plain", 4, true, "pla~", 4},
        {"plain", 1, true, "~", 1},
        {"plain", 0, true, "", 0},
        {"", 5, true, "", 0},
        {"a\033[2Jb", 20, true, "a\\u001b[2Jb", 11},
        {"a\nb\rc\td\x7f", 40, true, "a\\u000ab\\u000dc\\u0009d\\u007f", 28},
        {"caf\xC3\xA9", 20, true, "caf\xC3\xA9", 4},
        {"caf\xC3\xA9", 20, false, "caf\\u00e9", 9},
        {"\xE6\x97\xA5\xE6\x9C\xAC", 4, true, "\xE6\x97\xA5\xE6\x9C\xAC", 4}, /* two columns each */
        {"\xE6\x97\xA5\xE6\x9C\xAC", 3, true, "\xE6\x97\xA5~", 3},
        {"\xC2\x9B"
         "31m",
         20, true, "\\u009b31m", 9},              /* a command of one byte */
        {"\xE2\x80\x8B", 20, true, "\\u200b", 6}, /* no width */
        {"\xF0\x9F\x98\x80", 20, false, "\\ud83d\\ude00", 12},
        {"\xF0\x9F\x98\x80", 11, false, "~", 1},
        {"\xFF\xC3", 20, true, "\\ufffd\\ufffd", 12}, /* not UTF-8 */
        {"\xC0\xAF\xED\xA0\x80", 30, true, "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd",
         30}, /* too long, a surrogate */
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(buf_done) Buf out;
        buf_init(&out, 1000);
        uint32_t used =
            top_draw_text(slice_from_cstr(rows[i].text), rows[i].width, rows[i].is_utf8, &out);
        expect_text(buf_view(&out), rows[i].drawn);
        assert_int_equal(used, rows[i].used);
    }
}

/* It would turn round what follows, also in this file if it stood there as text. */
static void a_line_is_not_turned_round(void **state)
{
    (void)state;
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    static const uint8_t text[] = {0xE2, 0x80, 0xAE, 'a', 'b', 'c'}; /* U+202E */
    AUTO(buf_done) Buf out;
    buf_init(&out, 1000);
    (void)top_draw_text(slice_make(text, sizeof(text)), 20, true, &out);
    expect_text(buf_view(&out), "\\u202eabc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_without_colour_is_plain_text),
        cmocka_unit_test(a_frame_with_colour_fills_the_screen),
        cmocka_unit_test(splits_and_merges_are_told),
        cmocka_unit_test(a_node_of_a_cluster_shows_owners_and_nodes),
        cmocka_unit_test(a_frame_is_never_larger_than_the_screen),
        cmocka_unit_test(neighbours_share_a_line_when_there_are_too_many),
        cmocka_unit_test(without_an_allotment_shades_follow_the_busiest_second),
        cmocka_unit_test(texts_of_others_are_made_harmless_and_cut),
        cmocka_unit_test(a_line_is_not_turned_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
