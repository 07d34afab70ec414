/* query_parse_fuzz.c - any text as a query, run over two documents, and as the definition of a
 * computed property.
 *
 * Beyond surviving: an error is whole JSON, what a tree prints as is read as the same tree, what
 * constants are folded into gives the results that they give, and a shape is a query again.
 */
#include "query/eval/query.h"
#include "query/sql/binder_int.h"
#include "query/sql/parser_int.h"
#include "query/sql/query_shape.h"
#include "query/sql/sql_print_int.h"

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

static void check_shape(Arena *arena, Slice text)
{
    AUTO(buf_done) Buf shape;
    buf_init(&shape, PRINTED_BYTES_MAX);
    Select *select;
    Error err;
    if (query_shape(text, parse_fixed(arena, PARAMETERS), &shape))
        ASSERT(parser_run(arena, buf_view(&shape), &select, &err) == STATUS_OK);
}

/* The results as text, or false if the query failed. */
static bool run(Arena *arena, const Query *query, Buf *out)
{
    Json array = parse_fixed(arena, DOCUMENTS);
    Json documents[] = {json_at(array, 0), json_at(array, 1)};
    Random random;
    random_init(&random, 1);
    FakeClock clock;
    fake_clock_init(&clock, UINT64_C(1700000000000000));
    QueryOptions options = {
        .steps_max = 20000, .bytes_max = 1 << 20, .random = &random, .clock = &clock.clock};
    Json *results;
    size_t count;
    Error err;
    if (query_run_with(query, options, documents, 2, arena, &results, &count, &err) != STATUS_OK) {
        check_error(arena, &err);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        ASSERT(results[i].at != NULL);
        json_print(results[i], out);
    }
    return true;
}

static bool parse(Arena *arena, Slice text, Json computed, Query **out, Error *err)
{
    Json parameters = parse_fixed(arena, PARAMETERS);
    if (query_parse_with(arena, text, parameters, computed, out, err) == STATUS_OK)
        return true;
    check_error(arena, err);
    return false;
}

/* The same query as it was before constants were folded. */
static Query *parse_unfolded(Arena *arena, Slice text)
{
    Error err;
    Parameters parameters;
    Query *query = ARENA_NEW(arena, Query);
    query->text = text;
    Status status = parameters_read(arena, parse_fixed(arena, PARAMETERS), &parameters, &err);
    if (status == STATUS_OK)
        status = parser_run(arena, text, &query->select, &err);
    if (status == STATUS_OK)
        status = binder_run(arena, query, &parameters, JSON_NONE, &err);
    ASSERT(status == STATUS_OK);
    return query;
}

static void check_query(Arena *arena, Slice text)
{
    Query *query;
    Error err;
    if (!parse(arena, text, JSON_NONE, &query, &err))
        return;
    AUTO(buf_done) Buf folded;
    AUTO(buf_done) Buf unfolded;
    buf_init(&folded, PRINTED_BYTES_MAX);
    buf_init(&unfolded, PRINTED_BYTES_MAX);
    Query *before = parse_unfolded(arena, text);
    bool both = run(arena, query, &folded) && run(arena, before, &unfolded);
    ASSERT(!both || slice_equal(buf_view(&folded), buf_view(&unfolded)));
}

static void check_definition(Arena *arena, Slice text)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_array(&b);
    json_begin_object(&b);
    json_key(&b, SLICE("name"));
    json_add_string(&b, SLICE("f"));
    json_key(&b, SLICE("query"));
    json_add_string(&b, text);
    json_end(&b);
    json_end(&b);
    Query *query;
    Error err;
    bool may_define = query_check_computed(text, &err) == STATUS_OK;
    bool parsed = parse(arena, SLICE("SELECT r.f, [r.f.n] FROM r WHERE r.f != 1 ORDER BY r.f"),
                        json_built(&b), &query, &err);
    /* A definition alone may be fine, and too large or too deep inside a query. */
    bool too_much = !parsed && (strstr(err.message, "SC1030") || strstr(err.message, "SC3020"));
    ASSERT(parsed ? may_define : !may_define || too_much);
    AUTO(buf_done) Buf out;
    buf_init(&out, PRINTED_BYTES_MAX);
    if (parsed)
        (void)run(arena, query, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice text = slice_make(data, size);
    Select *select;
    Error err;
    if (size <= QUERY_TEXT_BYTES_MAX && json_utf8_valid(text)) {
        if (parser_run(&arena, text, &select, &err) == STATUS_OK) {
            check_printing(&arena, select);
            check_shape(&arena, text);
        } else {
            check_error(&arena, &err);
        }
        check_definition(&arena, text);
    }
    check_query(&arena, text);
    return 0;
}
