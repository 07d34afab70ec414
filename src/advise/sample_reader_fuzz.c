/* sample_reader_fuzz.c - a hostile sample: read in pieces, judged, and reported without a control
 * character or markup of its own. The first byte says how large the pieces are. */
#include "advise/report.h"
#include "advise/sample_reader.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_text(Slice text, uint32_t width)
{
    size_t column = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];
        column = c == '\n' ? 0 : column + 1;
        require((c >= 0x20 || c == '\n') && c < 0x7F && column <= width);
    }
}

static void check_reports(const Advice *advice)
{
    AUTO(buf_done) Buf out;
    buf_init(&out, REPORT_BYTES_MAX);
    report_text(advice, &(ReportStyle){.width = REPORT_WIDTH_MIN}, &out);
    check_text(buf_view(&out), REPORT_WIDTH_MIN);
    buf_reset(&out);
    report_json(advice, &out);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Json json;
    Error err;
    if (out.len <= JSON_TEXT_BYTES_MAX)
        require(json_parse(&arena, buf_view(&out), &json, &err) == STATUS_OK);
    buf_reset(&out);
    report_html(advice, &out);
    require(memmem(out.ptr, out.len, "<script", 7) == NULL);
    require(json_utf8_valid(buf_view(&out)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    AUTO(sample_done) Sample sample;
    sample_init(&sample, (SampleLimits){SAMPLE_ITEMS_MIN, 1 << 16});
    AUTO(sample_reader_done) SampleReader reader;
    sample_reader_init(&reader, &sample);
    Error err;
    Slice rest = slice_make(data + 1, size - 1);
    Status status = STATUS_OK;
    while (rest.len > 0 && status == STATUS_OK) {
        status = sample_reader_feed(&reader, slice_first(rest, (size_t)data[0] + 1), &err);
        rest = slice_from(rest, (size_t)data[0] + 1);
    }
    if (status != STATUS_OK || sample_reader_end(&reader, &err) != STATUS_OK ||
        sample_finish(&sample, (PropertyPath){0}, &err) != STATUS_OK)
        return 0;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    IndexPolicy *policy = NULL;
    Workload work;
    require(index_policy_new(&arena, JSON_NONE, NULL, 0, &policy, &err) == STATUS_OK);
    require(workload_parse(&arena, SLICE("SELECT * FROM c WHERE c.a = @a ORDER BY c.b"), &work,
                           &err) == STATUS_OK);
    KeyAdviceOptions options = {.partitions = 1 + data[0] % 20U,
                                .growth = data[0] % 2 == 0 ? 0 : 1e9,
                                .policy = policy,
                                .model = charge_model_default(),
                                .now_s = 1767225600};
    Advice advice;
    key_advice_make(&sample, data[0] % 3 == 0 ? &work : NULL, &options, &arena, &advice);
    require(advice.key_count <= KEY_ADVICE_CANDIDATES_MAX);
    check_reports(&advice);
    return 0;
}
