/* query_parse_fuzz.c - any text as a query, run over two documents.
 *
 * Beyond surviving: an error is whole JSON, and what a tree prints as is read as the same tree.
 */
#include "query/parser_int.h"
#include "query/print_int.h"
#include "query/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PRINTED_BYTES_MAX = 1 << 20 };

static const char DOCUMENTS[] =
    "[{\"id\":\"a\",\"n\":1,\"s\":\"Text\",\"b\":true,\"z\":null,\"v\":[1,\"x\",[2],{\"w\":3}],"
    "\"o\":{\"p\":{\"q\":[]}}},"
    "{\"id\":\"b\",\"n\":-2.5,\"s\":\"\",\"v\":[],\"o\":[{\"k\":\"1\"},{\"k\":\"2\"}]}]";
static const char PARAMETERS[] = "[{\"name\":\"@p\",\"value\":[1,\"n\",null]},"
                                 "{\"name\":\"@n\",\"value\":2},{\"name\":\"@u\"}]";

static Json parse_fixed(Arena *arena, const char *text)
{
    Json json = JSON_NONE;
    Error err;
    ASSERT(json_parse(arena, slice_from_cstr(text), &json, &err) == STATUS_OK);
    return json;
}

static void check_error(Arena *arena, const Error *err)
{
    Json json;
    Error json_err;
    ASSERT(err->status == STATUS_BAD_REQUEST);
    ASSERT(json_parse(arena, slice_from_cstr(err->message), &json, &json_err) == STATUS_OK);
}

static void check_printing(Arena *arena, const Select *select)
{
    AUTO(buf_done) Buf first;
    AUTO(buf_done) Buf second;
    buf_init(&first, PRINTED_BYTES_MAX);
    buf_init(&second, PRINTED_BYTES_MAX);
    print_select(select, &first);
    if (buf_full(&first))
        return;
    Select *again;
    Error err;
    if (parser_run(arena, buf_view(&first), &again, &err) != STATUS_OK) {
        /* The parentheses that make operators clear may be too many. */
        ASSERT(strstr(err.message, "SC1030") != NULL);
        return;
    }
    print_select(again, &second);
    ASSERT(slice_equal(buf_view(&first), buf_view(&second)));
}

static void run(Arena *arena, Slice text)
{
    Query *query;
    Error err;
    if (query_parse(arena, text, parse_fixed(arena, PARAMETERS), &query, &err) != STATUS_OK) {
        check_error(arena, &err);
        return;
    }
    Json array = parse_fixed(arena, DOCUMENTS);
    Json documents[] = {json_at(array, 0), json_at(array, 1)};
    QueryOptions options = {.steps_max = 20000, .bytes_max = 1 << 20};
    Json *results;
    size_t count;
    if (query_run_with(query, options, documents, 2, arena, &results, &count, &err) != STATUS_OK) {
        check_error(arena, &err);
        return;
    }
    AUTO(buf_done) Buf out;
    buf_init(&out, PRINTED_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        ASSERT(results[i].at != NULL);
        json_print(results[i], &out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice text = slice_make(data, size);
    Select *select;
    Error err;
    if (size <= QUERY_TEXT_BYTES_MAX && json_utf8_valid(text)) {
        if (parser_run(&arena, text, &select, &err) == STATUS_OK)
            check_printing(&arena, select);
        else
            check_error(&arena, &err);
    }
    run(&arena, text);
    return 0;
}
