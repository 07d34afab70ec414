/* patch_test.c - every operation of a patch, and everything that is refused.
 *
 * JSON in rows is written with ' for ", so that it stays readable.
 */
#include "partition/patch.h"

#include "json/json_testing.h"

static Json parse(const char *row)
{
    return row_json(&test_arena, row);
}

/* The partition key is /pk and /place/city. */
static const Slice PK[] = {SLICE_INIT("pk")};
static const Slice CITY[] = {SLICE_INIT("place"), SLICE_INIT("city")};
static const PropertyPath KEYS[] = {{PK, 1}, {CITY, 2}};
static const PatchRules RULES = {.keys = KEYS, .key_count = 2, .bytes_max = 1 << 20};

static Status run(Json document, Json body, Json *out, Error *err)
{
    Patch *patch;
    TRY(patch_parse(&test_arena, body, &RULES, &patch, err));
    return patch_apply(patch, &test_arena, document, out, err);
}

typedef struct Row {
    const char *document;
    const char *operations;
    const char *expected; /* the new document, or how the message of the refusal begins */
} Row;

static void check_results(const Row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Json document = parse(rows[i].document);
        Slice before = json_bytes(&test_arena, document);
        Json result = JSON_NONE;
        Error err = {0};
        if (run(document, parse(rows[i].operations), &result, &err) != STATUS_OK)
            fail_msg("%s on %s: %s", rows[i].operations, rows[i].document, err.message);
        Slice text = json_print_arena(&test_arena, result);
        Slice expected = json_print_arena(&test_arena, parse(rows[i].expected));
        if (!slice_equal(text, expected))
            fail_msg("%s on %s: %.*s", rows[i].operations, rows[i].document, SLICE_CUT(text, 300));
        Json opened;
        assert_int_equal(json_open(json_bytes(&test_arena, result), &opened, &err), STATUS_OK);
        assert_true(slice_equal(json_bytes(&test_arena, document), before));
    }
}

static void check_refusals(const Row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Json result = parse("'untouched'");
        const uint8_t *at = result.at;
        Error err = {0};
        Status status = run(parse(rows[i].document), parse(rows[i].operations), &result, &err);
        if (status != STATUS_BAD_REQUEST)
            fail_msg("%s on %s was not refused", rows[i].operations, rows[i].document);
        assert_int_equal(err.status, STATUS_BAD_REQUEST);
        if (!slice_starts_with(slice_from_cstr(err.message), slice_from_cstr(rows[i].expected)))
            fail_msg("%s on %s: %s", rows[i].operations, rows[i].document, err.message);
        assert_ptr_equal(result.at, at);
    }
}

#define CHECK_RESULTS(rows)  check_results(rows, ARRAY_COUNT(rows))
#define CHECK_REFUSALS(rows) check_refusals(rows, ARRAY_COUNT(rows))

static void add_creates_replaces_and_inserts(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{}", "[{'op':'add','path':'/a','value':1}]", "{'a':1}"},
        {"{'a':1,'b':2}", "[{'op':'add','path':'/a','value':{'x':[]}}]", "{'a':{'x':[]},'b':2}"},
        {"{'a':1}", "[{'op':'add','path':'/b','value':null}]", "{'a':1,'b':null}"},
        {"{'a':{'b':{}}}", "[{'op':'add','path':'/a/b/c','value':true}]", "{'a':{'b':{'c':true}}}"},
        {"{'a':[1,2]}", "[{'op':'add','path':'/a/0','value':0}]", "{'a':[0,1,2]}"},
        {"{'a':[1,2]}", "[{'op':'add','path':'/a/1','value':0}]", "{'a':[1,0,2]}"},
        {"{'a':[1,2]}", "[{'op':'add','path':'/a/2','value':0}]", "{'a':[1,2,0]}"},
        {"{'a':[1,2]}", "[{'op':'add','path':'/a/-','value':0}]", "{'a':[1,2,0]}"},
        {"{'a':[]}", "[{'op':'add','path':'/a/0','value':[1]}]", "{'a':[[1]]}"},
        {"{'a':[]}", "[{'op':'add','path':'/a/-','value':[1]}]", "{'a':[[1]]}"},
        {"{'a':[{'b':1}]}", "[{'op':'add','path':'/a/0/c','value':2}]", "{'a':[{'b':1,'c':2}]}"},
        {"{'a':{}}", "[{'op':'add','path':'/a/-','value':1}]", "{'a':{'-':1}}"},
        {"{'a':{}}", "[{'op':'add','path':'/a/01','value':1}]", "{'a':{'01':1}}"},
    };
    CHECK_RESULTS(rows);
}

static void set_creates_and_replaces(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{}", "[{'op':'set','path':'/a','value':1}]", "{'a':1}"},
        {"{'a':1,'b':2}", "[{'op':'set','path':'/a','value':[3]}]", "{'a':[3],'b':2}"},
        {"{'a':[1,2,3]}", "[{'op':'set','path':'/a/0','value':9}]", "{'a':[9,2,3]}"},
        {"{'a':[1,2,3]}", "[{'op':'set','path':'/a/2','value':9}]", "{'a':[1,2,9]}"},
        {"{'a':[1,2,3]}", "[{'op':'set','path':'/a/-','value':9}]", "{'a':[1,2,3,9]}"},
        {"{'a':[{'b':1}]}", "[{'op':'set','path':'/a/0/b','value':2}]", "{'a':[{'b':2}]}"},
    };
    CHECK_RESULTS(rows);
}

static void replace_and_remove_change_what_is_there(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{'a':1,'b':2}", "[{'op':'replace','path':'/a','value':'x'}]", "{'a':'x','b':2}"},
        {"{'a':null}", "[{'op':'replace','path':'/a','value':0}]", "{'a':0}"},
        {"{'a':[1,2]}", "[{'op':'replace','path':'/a/1','value':[]}]", "{'a':[1,[]]}"},
        {"{'a':1,'b':2,'c':3}", "[{'op':'remove','path':'/b'}]", "{'a':1,'c':3}"},
        {"{'a':1}", "[{'op':'remove','path':'/a'}]", "{}"},
        {"{'a':null}", "[{'op':'remove','path':'/a','value':7}]", "{}"},
        {"{'a':[1,2,3]}", "[{'op':'remove','path':'/a/0'}]", "{'a':[2,3]}"},
        {"{'a':[1,2,3]}", "[{'op':'remove','path':'/a/1'}]", "{'a':[1,3]}"},
        {"{'a':[1,2,3]}", "[{'op':'remove','path':'/a/2'}]", "{'a':[1,2]}"},
        {"{'a':[1]}", "[{'op':'remove','path':'/a/0'}]", "{'a':[]}"},
        {"{'a':[{'b':1,'c':2}]}", "[{'op':'remove','path':'/a/0/b'}]", "{'a':[{'c':2}]}"},
    };
    CHECK_RESULTS(rows);
}

static void incr_adds_or_creates(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{'a':1}", "[{'op':'incr','path':'/a','value':41}]", "{'a':42}"},
        {"{'a':1}", "[{'op':'incr','path':'/a','value':-2}]", "{'a':-1}"},
        {"{'a':1}", "[{'op':'incr','path':'/a','value':0.5}]", "{'a':1.5}"},
        {"{'a':1.5}", "[{'op':'incr','path':'/a','value':1.5}]", "{'a':3}"},
        {"{'a':0.1}", "[{'op':'incr','path':'/a','value':0.2}]", "{'a':0.30000000000000004}"},
        {"{}", "[{'op':'incr','path':'/a','value':5}]", "{'a':5}"},
        {"{'a':{}}", "[{'op':'incr','path':'/a/b','value':-1.5}]", "{'a':{'b':-1.5}}"},
        {"{'a':[5]}", "[{'op':'incr','path':'/a/0','value':13}]", "{'a':[18]}"},
        {"{}", "[{'op':'incr','path':'/a','value':1},{'op':'incr','path':'/a','value':1}]",
         "{'a':2}"},
        /* Beyond 64 bits the sum is a double. */
        {"{'a':9223372036854774784}", "[{'op':'incr','path':'/a','value':9223372036854774784}]",
         "{'a':18446744073709549568}"},
    };
    CHECK_RESULTS(rows);
}

static void sums_of_integers_are_exact(void **state)
{
    (void)state;
    Json result = JSON_NONE;
    Error err;
    Json document = parse("{'a':9007199254740992}");
    assert_int_equal(run(document, parse("[{'op':'incr','path':'/a','value':1}]"), &result, &err),
                     STATUS_OK);
    int64_t sum;
    assert_true(json_to_i64(json_get(result, SLICE("a")), &sum));
    assert_int_equal(sum, 9007199254740993);
}

static void move_removes_then_adds(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{'a':1}", "[{'op':'move','from':'/a','path':'/b'}]", "{'b':1}"},
        {"{'a':1,'b':2}", "[{'op':'move','from':'/a','path':'/b'}]", "{'b':1}"},
        {"{'a':{'b':{'c':1}}}", "[{'op':'move','from':'/a/b/c','path':'/a/b'}]", "{'a':{'b':1}}"},
        {"{'a':{'b':1},'c':{}}", "[{'op':'move','from':'/a/b','path':'/c/d'}]",
         "{'a':{},'c':{'d':1}}"},
        {"{'f':['all','grass','cows','eat']}", "[{'op':'move','from':'/f/1','path':'/f/3'}]",
         "{'f':['all','cows','eat','grass']}"},
        {"{'f':[1,2,3]}", "[{'op':'move','from':'/f/2','path':'/f/0'}]", "{'f':[3,1,2]}"},
        {"{'f':[1,2,3]}", "[{'op':'move','from':'/f/0','path':'/f/-'}]", "{'f':[2,3,1]}"},
        {"{'f':[1,2,3]}", "[{'op':'move','from':'/f/1','path':'/x'}]", "{'f':[1,3],'x':2}"},
        {"{'f':[],'x':2}", "[{'op':'move','from':'/x','path':'/f/0'}]", "{'f':[2]}"},
        {"{'f':[1],'x':{}}", "[{'op':'move','from':'/f','path':'/x/f'}]", "{'x':{'f':[1]}}"},
        {"{'a':1}", "[{'op':'move','from':'/a','path':'/a'}]", "{'a':1}"},
        {"{'f':[1,2]}", "[{'op':'move','from':'/f/0','path':'/f/0'}]", "{'f':[1,2]}"},
        /* "/ab" is beside "/a", not inside it. */
        {"{'a':1}", "[{'op':'move','from':'/a','path':'/ab'}]", "{'ab':1}"},
        /* What was changed before it is moved stays changed, and can be changed again. */
        {"{'a':{'x':[1,2]},'b':[]}",
         "[{'op':'remove','path':'/a/x/0'},{'op':'move','from':'/a','path':'/b/-'},"
         "{'op':'add','path':'/b/0/x/-','value':3}]",
         "{'b':[{'x':[2,3]}]}"},
    };
    CHECK_RESULTS(rows);
}

static void operations_see_those_before_them(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{'price':455.95,'inventory':{'quantity':15},'used':false,'tags':['r-series']}",
         "[{'op':'add','path':'/color','value':'silver'},{'op':'remove','path':'/used'},"
         "{'op':'set','path':'/price','value':355.45},"
         "{'op':'incr','path':'/inventory/quantity','value':10},"
         "{'op':'add','path':'/tags/-','value':'featured'},"
         "{'op':'move','from':'/color','path':'/inventory/color'}]",
         "{'price':355.45,'inventory':{'quantity':25,'color':'silver'},"
         "'tags':['r-series','featured']}"},
        {"{'a':1,'b':2}",
         "[{'op':'remove','path':'/a'},{'op':'add','path':'/a','value':{}},"
         "{'op':'set','path':'/a/x','value':1},{'op':'incr','path':'/a/x','value':1}]",
         "{'b':2,'a':{'x':2}}"},
        {"{'a':[0,1,2,3,4,5]}",
         "[{'op':'remove','path':'/a/1'},{'op':'remove','path':'/a/1'},"
         "{'op':'add','path':'/a/2','value':'x'},{'op':'replace','path':'/a/4','value':'y'},"
         "{'op':'set','path':'/a/0','value':'z'}]",
         "{'a':['z',3,'x',4,'y']}"},
        {"{}",
         "[{'op':'add','path':'/a','value':[]},{'op':'add','path':'/a/-','value':{}},"
         "{'op':'add','path':'/a/0/b','value':[1]},{'op':'incr','path':'/a/0/b/0','value':1}]",
         "{'a':[{'b':[2]}]}"},
    };
    CHECK_RESULTS(rows);
}

static void paths_are_json_pointers(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{}", "[{'op':'add','path':'/a~1b','value':1}]", "{'a/b':1}"},
        {"{'~':0}", "[{'op':'set','path':'/~0','value':1}]", "{'~':1}"},
        {"{'~1':0}", "[{'op':'set','path':'/~01','value':1}]", "{'~1':1}"},
        {"{'a/b':{'~':[1]}}", "[{'op':'remove','path':'/a~1b/~0/0'}]", "{'a/b':{'~':[]}}"},
        {"{}", "[{'op':'add','path':'/','value':1}]", "{'':1}"},
        {"{'':{}}", "[{'op':'add','path':'//','value':1}]", "{'':{'':1}}"},
        {"{'a b':1}", "[{'op':'remove','path':'/a b'}]", "{}"},
        {"{}", "[{'op':'add','path':'/caf\xC3\xA9','value':1}]", "{'caf\xC3\xA9':1}"},
        {"{'Id':1}", "[{'op':'incr','path':'/Id','value':1}]", "{'Id':2}"},
        {"{'a':{}}", "[{'op':'add','path':'/a/id','value':1}]", "{'a':{'id':1}}"},
        {"{'a':{}}", "[{'op':'add','path':'/a/_ts','value':1}]", "{'a':{'_ts':1}}"},
        {"{'a':{}}", "[{'op':'add','path':'/a/pk','value':1}]", "{'a':{'pk':1}}"},
        {"{'place':{'city':1}}", "[{'op':'add','path':'/place/street','value':1}]",
         "{'place':{'city':1,'street':1}}"},
    };
    CHECK_RESULTS(rows);
}

static void names_of_operations_have_any_case(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{}", "[{'op':'Add','path':'/a','value':1}]", "{'a':1}"},
        {"{'a':1}", "[{'op':'INCR','path':'/a','value':1,'extra':[]}]", "{'a':2}"},
        {"{'a':1}", "{'operations':[{'op':'Remove','path':'/a'}],'extra':1}", "{}"},
    };
    CHECK_RESULTS(rows);
}

static void what_the_document_does_not_allow_is_refused(void **state)
{
    (void)state;
#define NO_PATH(what)                                                         \
    "For Operation(1): " what                                                 \
    " Operation can only create a child object of an existing node(array or " \
    "object) and cannot create path recursively, no path found beyond: "
#define BOUNDS(index) "For Operation(1): Index(" index ") to operate on is out of array bounds."
    static const Row rows[] = {
        {"{}", "[{'op':'add','path':'/x/y','value':1}]", NO_PATH("Add") "'x'."},
        {"{'x':1}", "[{'op':'add','path':'/x/y','value':1}]", NO_PATH("Add") "'x'."},
        {"{'x':null}", "[{'op':'add','path':'/x/y','value':1}]", NO_PATH("Add") "'x'."},
        {"{'x':'s'}", "[{'op':'set','path':'/x/0','value':1}]", NO_PATH("Given") "'x'."},
        {"{'x':{}}", "[{'op':'set','path':'/x/y/z/w','value':1}]", NO_PATH("Given") "'y'."},
        {"{'x':[[]]}", "[{'op':'set','path':'/x/1/0','value':1}]", NO_PATH("Given") "'1'."},
        {"{'x':[[]]}", "[{'op':'add','path':'/x/-/0','value':1}]", NO_PATH("Add") "'-'."},
        {"{'x':[[]]}", "[{'op':'add','path':'/x/00/0','value':1}]", NO_PATH("Add") "'00'."},
        {"{'x':[1]}", "[{'op':'incr','path':'/x/0/a','value':1}]", NO_PATH("Given") "'0'."},
        {"{}", "[{'op':'replace','path':'/x/y','value':1}]", NO_PATH("Given") "'x'."},
        {"{'a':1}", "[{'op':'move','from':'/a','path':'/x/y'}]", NO_PATH("Given") "'x'."},

        {"{'x':[1]}", "[{'op':'add','path':'/x/2','value':1}]", BOUNDS("2")},
        {"{'x':[]}", "[{'op':'add','path':'/x/1','value':1}]", BOUNDS("1")},
        {"{'x':[1]}", "[{'op':'add','path':'/x/18446744073709551616','value':1}]",
         BOUNDS("18446744073709551616")},
        {"{'x':[1]}", "[{'op':'add','path':'/x/18446744073709551615','value':1}]",
         BOUNDS("18446744073709551615")},
        {"{'x':[1]}", "[{'op':'set','path':'/x/1','value':1}]", BOUNDS("1")},
        {"{'x':[1]}", "[{'op':'replace','path':'/x/1','value':1}]", BOUNDS("1")},
        {"{'x':[1]}", "[{'op':'replace','path':'/x/-','value':1}]", BOUNDS("-")},
        {"{'x':[1]}", "[{'op':'remove','path':'/x/1'}]", BOUNDS("1")},
        {"{'x':[1]}", "[{'op':'remove','path':'/x/-'}]", BOUNDS("-")},
        {"{'x':[1]}", "[{'op':'incr','path':'/x/1','value':1}]", BOUNDS("1")},
        {"{'x':[1]}", "[{'op':'incr','path':'/x/-','value':1}]", BOUNDS("-")},
        {"{'x':[1]}", "[{'op':'move','from':'/x/1','path':'/y'}]", BOUNDS("1")},
        {"{'x':[1]}", "[{'op':'move','from':'/x/-','path':'/y'}]", BOUNDS("-")},
        {"{'x':[1,2]}", "[{'op':'move','from':'/x/0','path':'/x/2'}]", BOUNDS("2")},

        {"{'x':[1]}", "[{'op':'add','path':'/x/a','value':1}]",
         "For Operation(1): Index(a) to operate on is not a position in an array."},
        {"{'x':[1]}", "[{'op':'add','path':'/x/01','value':1}]", "For Operation(1): Index(01)"},
        {"{'x':[1]}", "[{'op':'add','path':'/x/+0','value':1}]", "For Operation(1): Index(+0)"},
        {"{'x':[1]}", "[{'op':'add','path':'/x/-1','value':1}]", "For Operation(1): Index(-1)"},
        {"{'x':[1]}", "[{'op':'set','path':'/x/','value':1}]", "For Operation(1): Index()"},
        {"{'x':[1]}", "[{'op':'remove','path':'/x/00'}]", "For Operation(1): Index(00)"},

        {"{}", "[{'op':'replace','path':'/x','value':1}]",
         "For Operation(1): Node(/x) to be replaced is absent."},
        {"{}", "[{'op':'remove','path':'/x'}]",
         "For Operation(1): Node(/x) to be removed is absent. Note: it may also"},
        {"{}", "[{'op':'remove','path':'/x/y'}]",
         "For Operation(1): Node(/x/y) to be removed is absent."},
        {"{}", "[{'op':'move','from':'/x','path':'/y'}]",
         "For Operation(1): Node(/x) to be removed is absent."},
        {"{'a':{'x':1}}", "[{'op':'remove','path':'/a/x'},{'op':'remove','path':'/a/x'}]",
         "For Operation(2): Node(/a/x) to be removed is absent."},
        {"{'a':{'x':1}}",
         "[{'op':'move','from':'/a','path':'/b'},{'op':'replace','path':'/a','value':1}]",
         "For Operation(2): Node(/a) to be replaced is absent."},

        {"{'x':'1'}", "[{'op':'incr','path':'/x','value':1}]",
         "For Operation(1): Node(/x) is not a number."},
        {"{'x':null}", "[{'op':'incr','path':'/x','value':1}]",
         "For Operation(1): Node(/x) is not a number."},
        {"{'x':[1]}", "[{'op':'incr','path':'/x','value':1}]",
         "For Operation(1): Node(/x) is not a number."},
        {"{'x':1e308}", "[{'op':'incr','path':'/x','value':1e308}]",
         "For Operation(1): The incremented number is out of range."},
    };
#undef NO_PATH
#undef BOUNDS
    CHECK_REFUSALS(rows);
}

static void what_identifies_an_item_cannot_be_touched(void **state)
{
    (void)state;
#define DOCUMENT "{'id':'1','pk':{'x':1},'place':{'city':'Bonn','zip':5},'a':1}"
#define SYSTEM   "Invalid patch request: Cannot patch system property "
#define KEY      "Invalid patch request: Cannot patch "
    static const Row rows[] = {
        {DOCUMENT, "[{'op':'set','path':'/id','value':1}]", SYSTEM "'id'"},
        {DOCUMENT, "[{'op':'set','path':'/id/x','value':1}]", SYSTEM "'id'"},
        {DOCUMENT, "[{'op':'remove','path':'/_rid'}]", SYSTEM "'_rid'"},
        {DOCUMENT, "[{'op':'add','path':'/_self','value':1}]", SYSTEM "'_self'"},
        {DOCUMENT, "[{'op':'replace','path':'/_etag','value':1}]", SYSTEM "'_etag'"},
        {DOCUMENT, "[{'op':'incr','path':'/_ts','value':1}]", SYSTEM "'_ts'"},
        {DOCUMENT, "[{'op':'move','from':'/_attachments','path':'/b'}]", SYSTEM "'_attachments'"},
        {DOCUMENT, "[{'op':'move','from':'/a','path':'/_attachments'}]", SYSTEM "'_attachments'"},
        {DOCUMENT, "[{'op':'add','path':'/a','value':1},{'op':'move','from':'/id','path':'/b'}]",
         SYSTEM "'id'"},

        {DOCUMENT, "[{'op':'set','path':'/pk','value':1}]", KEY "'/pk'"},
        {DOCUMENT, "[{'op':'set','path':'/pk/x','value':1}]", KEY "'/pk/x'"},
        {DOCUMENT, "[{'op':'remove','path':'/place/city'}]", KEY "'/place/city'"},
        {DOCUMENT, "[{'op':'remove','path':'/place'}]", KEY "'/place'"},
        {DOCUMENT, "[{'op':'set','path':'/place','value':{'city':'Bonn'}}]", KEY "'/place'"},
        {DOCUMENT, "[{'op':'move','from':'/place','path':'/b'}]", KEY "'/place'"},
        {DOCUMENT, "[{'op':'move','from':'/place/zip','path':'/place'}]", KEY "'/place'"},
        {DOCUMENT, "[{'op':'move','from':'/a','path':'/place/city/x'}]", KEY "'/place/city/x'"},
    };
#undef DOCUMENT
#undef SYSTEM
#undef KEY
    CHECK_REFUSALS(rows);
}

static void malformed_bodies_are_refused(void **state)
{
    (void)state;
#define SYNTAX "Invalid patch request: check syntax of patch specification"
#define OP(n)  SYNTAX ". Operation(" #n "): "
    static const Row rows[] = {
        {"{}", "1", SYNTAX ": Expected an array of operations"},
        {"{}", "'x'", SYNTAX ": Expected an array of operations"},
        {"{}", "null", SYNTAX ": Expected an array of operations"},
        {"{}", "{}", SYNTAX ": Expected an array of operations"},
        {"{}", "{'operations':{}}", SYNTAX ": Expected an array of operations"},
        {"{}", "{'op':'add','path':'/a','value':1}", SYNTAX ": Expected an array of operations"},
        {"{}", "[]", SYNTAX ": There are no operations."},
        {"{}", "{'operations':[]}", SYNTAX ": There are no operations."},
        {"{}", "[1]", OP(1) "Expected an object whose 'op' is a string."},
        {"{}", "[[]]", OP(1) "Expected an object whose 'op' is a string."},
        {"{}", "[{}]", OP(1) "Expected an object whose 'op' is a string."},
        {"{}", "[{'op':1,'path':'/a'}]", OP(1) "Expected an object whose 'op' is a string."},
        {"{}", "[{'op':'copy','path':'/a','from':'/b'}]", OP(1) "Expected 'op' to be add, set, "},
        {"{}", "[{'op':'','path':'/a'}]", OP(1) "Expected 'op' to be add, set, "},
        {"{}", "[{'op':'add','path':'/a','value':1},{'op':'test'}]", OP(2) "Expected 'op' to be"},
        {"{}", "[{'op':'add','value':1}]", OP(1) "Expected 'path' to be a string."},
        {"{}", "[{'op':'add','path':['a'],'value':1}]", OP(1) "Expected 'path' to be a string."},
        {"{}", "[{'op':'remove','path':null}]", OP(1) "Expected 'path' to be a string."},
        {"{}", "[{'op':'add','path':'','value':1}]",
         OP(1) "Expected a path that begins with '/', found ''."},
        {"{}", "[{'op':'add','path':'a/b','value':1}]",
         OP(1) "Expected a path that begins with '/', found 'a/b'."},
        {"{}", "[{'op':'add','path':'/a~','value':1}]", OP(1) "Expected '0' or '1' after each '~'"},
        {"{}", "[{'op':'add','path':'/a~2b/c','value':1}]", OP(1) "Expected '0' or '1' after each"},
        {"{}", "[{'op':'add','path':'/a~/0','value':1}]", OP(1) "Expected '0' or '1' after each"},
        {"{}", "[{'op':'add','path':'/a'}]", OP(1) "'value' is missing."},
        {"{}", "[{'op':'set','path':'/a'}]", OP(1) "'value' is missing."},
        {"{}", "[{'op':'replace','path':'/a'}]", OP(1) "'value' is missing."},
        {"{}", "[{'op':'incr','path':'/a'}]", OP(1) "'value' is missing."},
        {"{}", "[{'op':'incr','path':'/a','value':'1'}]", OP(1) "Expected 'value' of an increment"},
        {"{}", "[{'op':'incr','path':'/a','value':null}]", OP(1) "Expected 'value' of an incremen"},
        {"{}", "[{'op':'move','path':'/a'}]", OP(1) "Expected 'from' to be a string."},
        {"{}", "[{'op':'move','path':'/a','from':5}]", OP(1) "Expected 'from' to be a string."},
        {"{}", "[{'op':'move','path':'/a','from':''}]", OP(1) "Expected a path that begins with"},
        {"{'a':{}}", "[{'op':'move','from':'/a','path':'/a/b'}]",
         OP(1) "'path' cannot be a JSON child of 'from', which is '/a'."},
        {"{'a':[1,[]]}", "[{'op':'move','from':'/a/0','path':'/a/0/0'}]",
         OP(1) "'path' cannot be a JSON child of 'from'"},
        {"{}", "{'operations':[{'op':'add','path':'/a','value':1}],'condition':1}",
         SYNTAX ": Expected 'condition' to be a string."},
    };
#undef OP
#undef SYNTAX
    CHECK_REFUSALS(rows);
}

static Json body_of(size_t operations)
{
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_begin_array(&b);
    for (size_t i = 0; i < operations; i++)
        json_add(&b, parse("{'op':'incr','path':'/n','value':1}"));
    json_end(&b);
    return json_built(&b);
}

static void ten_operations_are_enough(void **state)
{
    (void)state;
    Json result = JSON_NONE;
    Error err;
    Patch *patch;
    assert_int_equal(patch_parse(&test_arena, body_of(10), &RULES, &patch, &err), STATUS_OK);
    assert_int_equal(patch_operation_count(patch), 10);
    assert_int_equal(patch_apply(patch, &test_arena, parse("{}"), &result, &err), STATUS_OK);
    assert_true(json_equal(result, parse("{'n':10}")));
    assert_int_equal(run(parse("{}"), body_of(11), &result, &err), STATUS_BAD_REQUEST);
    assert_string_equal(err.message, "The number of patch operations cannot exceed 10, found 11.");
}

static void the_condition_is_handed_on(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *condition;
    } rows[] = {
        {"[{'op':'add','path':'/a','value':1}]", ""},
        {"{'operations':[{'op':'add','path':'/a','value':1}]}", ""},
        {"{'operations':[{'op':'add','path':'/a','value':1}],'condition':null}", ""},
        {"{'operations':[{'op':'add','path':'/a','value':1}],'condition':''}", ""},
        {"{'condition':'from c where c.x = 1','operations':[{'op':'remove','path':'/a'}]}",
         "from c where c.x = 1"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Patch *patch;
        Error err;
        assert_int_equal(patch_parse(&test_arena, parse(rows[i].body), &RULES, &patch, &err),
                         STATUS_OK);
        assert_true(slice_equal(patch_condition(patch), slice_from_cstr(rows[i].condition)));
    }
}

static void a_patch_can_be_applied_again(void **state)
{
    (void)state;
    Patch *patch;
    Error err;
    Json first, second;
    Json body = parse("[{'op':'add','path':'/a/-','value':{'x':1}},"
                      "{'op':'incr','path':'/a/0/x','value':1}]");
    assert_int_equal(patch_parse(&test_arena, body, &RULES, &patch, &err), STATUS_OK);
    assert_int_equal(patch_apply(patch, &test_arena, parse("{'a':[]}"), &first, &err), STATUS_OK);
    assert_int_equal(patch_apply(patch, &test_arena, first, &second, &err), STATUS_OK);
    assert_true(json_equal(first, parse("{'a':[{'x':2}]}")));
    assert_true(json_equal(second, parse("{'a':[{'x':3},{'x':1}]}")));
}

/* 'levels' arrays, one in the other. */
static Json nested(size_t levels)
{
    JsonBuilder b;
    json_build(&b, &test_arena);
    for (size_t i = 0; i < levels; i++)
        json_begin_array(&b);
    for (size_t i = 0; i < levels; i++)
        json_end(&b);
    return json_built(&b);
}

static Json operation(const char *op, const char *from, Slice path, Json value)
{
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_begin_array(&b);
    json_begin_object(&b);
    json_key(&b, SLICE("op"));
    json_add_string(&b, slice_from_cstr(op));
    json_key(&b, SLICE("from"));
    json_add_string(&b, slice_from_cstr(from));
    json_key(&b, SLICE("path"));
    json_add_string(&b, path);
    json_key(&b, SLICE("value"));
    json_add(&b, value);
    json_end(&b);
    json_end(&b);
    return json_built(&b);
}

static Json member(const char *name, Json value)
{
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_begin_object(&b);
    json_key(&b, slice_from_cstr(name));
    json_add(&b, value);
    json_end(&b);
    return json_built(&b);
}

/* "/a" and then "/0" so often that there are 'segments'. */
static Slice long_path(size_t segments)
{
    char *text = arena_alloc(&test_arena, 2 * segments);
    for (size_t i = 0; i < segments; i++)
        memcpy(text + 2 * i, "/0", 2);
    text[1] = 'a';
    return slice_make(text, 2 * segments);
}

static void documents_do_not_get_too_deep(void **state)
{
    (void)state;
    Json result = JSON_NONE;
    Error err;
    Json empty = parse("{}"), deep = member("a", nested(JSON_DEPTH_MAX - 1));
    Json body = operation("add", "", SLICE("/a"), nested(JSON_DEPTH_MAX - 1));
    assert_int_equal(run(empty, body, &result, &err), STATUS_OK);
    assert_int_equal(json_depth(result), JSON_DEPTH_MAX);

    /* One level more: in the value, at the end of the longest path, and by a move. */
    body = operation("set", "", SLICE("/b"), nested(JSON_DEPTH_MAX - 2));
    assert_int_equal(run(empty, body, &result, &err), STATUS_OK);
    body = operation("set", "", SLICE("/a/-"), nested(JSON_DEPTH_MAX - 1));
    assert_int_equal(run(deep, body, &result, &err), STATUS_BAD_REQUEST);
    assert_string_equal(err.message, "For Operation(1): The document would have 129 levels, "
                                     "expected at most 128.");
    body = operation("add", "", long_path(JSON_DEPTH_MAX), parse("1"));
    assert_int_equal(run(deep, body, &result, &err), STATUS_OK);
    assert_int_equal(json_depth(result), JSON_DEPTH_MAX);
    body = operation("add", "", long_path(JSON_DEPTH_MAX), parse("[]"));
    assert_int_equal(run(deep, body, &result, &err), STATUS_BAD_REQUEST);
    body = operation("add", "", long_path(JSON_DEPTH_MAX + 1), parse("1"));
    assert_int_equal(run(deep, body, &result, &err), STATUS_BAD_REQUEST);
    assert_string_equal(err.message, "Invalid patch request: check syntax of patch specification. "
                                     "Operation(1): Expected a path of at most 128 segments, "
                                     "found 129.");
}

static void moves_cannot_stack_branches(void **state)
{
    (void)state;
    Json result = JSON_NONE;
    Error err;
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_begin_object(&b);
    json_key(&b, SLICE("a"));
    json_add(&b, nested(100));
    json_key(&b, SLICE("b"));
    json_add(&b, nested(40));
    json_end(&b);
    Json document = json_built(&b);

    Json body = operation("move", "/b", long_path(88), parse("0"));
    assert_int_equal(run(document, body, &result, &err), STATUS_OK);
    assert_int_equal(json_depth(result), JSON_DEPTH_MAX);
    body = operation("move", "/b", long_path(89), parse("0"));
    assert_int_equal(run(document, body, &result, &err), STATUS_BAD_REQUEST);
    assert_string_equal(err.message, "For Operation(1): The document would have 129 levels, "
                                     "expected at most 128.");
}

static void documents_do_not_get_too_large(void **state)
{
    (void)state;
    Json document = parse("{'a':'0123456789'}");
    Json body = parse("[{'op':'add','path':'/b','value':'0123456789'}]");
    Json expected = parse("{'a':'0123456789','b':'0123456789'}"), result = JSON_NONE;
    Error err;
    Patch *patch;
    PatchRules rules = {.bytes_max = json_size(expected)};
    assert_int_equal(patch_parse(&test_arena, body, &rules, &patch, &err), STATUS_OK);
    assert_int_equal(patch_apply(patch, &test_arena, document, &result, &err), STATUS_OK);
    assert_true(json_equal(result, expected));

    rules.bytes_max--;
    result = document;
    assert_int_equal(patch_parse(&test_arena, body, &rules, &patch, &err), STATUS_OK);
    assert_int_equal(patch_apply(patch, &test_arena, document, &result, &err), STATUS_TOO_LARGE);
    assert_ptr_equal(result.at, document.at);
}

/* Ten changes in an array of many small numbers: memory for a few copies of its bytes at most. */
static void memory_does_not_follow_the_number_of_elements(void **state)
{
    (void)state;
    enum { ELEMENTS = 300000 };
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_begin_array(&b);
    for (size_t i = 0; i < ELEMENTS; i++)
        json_add_i64(&b, (int64_t)(i % 10));
    json_end(&b);
    Json document = member("a", json_built(&b)), result = JSON_NONE;
    Json body = parse("[{'op':'remove','path':'/a/299999'},{'op':'remove','path':'/a/0'},"
                      "{'op':'add','path':'/a/150000','value':'x'},"
                      "{'op':'set','path':'/a/1','value':'y'},"
                      "{'op':'incr','path':'/a/2','value':0.5},"
                      "{'op':'move','from':'/a/200000','path':'/a/100000'},"
                      "{'op':'replace','path':'/a/250000','value':[]},"
                      "{'op':'add','path':'/a/250000/-','value':1},"
                      "{'op':'add','path':'/a/-','value':'end'},"
                      "{'op':'move','from':'/a','path':'/b'}]");
    AUTO(arena_done) Arena other;
    arena_init(&other, 4096);
    Patch *patch;
    Error err;
    assert_int_equal(patch_parse(&other, body, &RULES, &patch, &err), STATUS_OK);
    assert_int_equal(patch_apply(patch, &other, document, &result, &err), STATUS_OK);
    assert_true(arena_used(&other) < (size_t)8 * ELEMENTS);
    Json array = json_get(result, SLICE("b"));
    assert_int_equal(json_count(array), ELEMENTS);
    assert_true(json_equal(json_at(array, 1), parse("'y'")));
    assert_true(json_equal(json_at(array, 2), parse("3.5")));
    assert_true(json_equal(json_at(array, 100000), parse("0")));
    assert_true(json_equal(json_at(array, 150001), parse("'x'")));
    assert_true(json_equal(json_at(array, 250000), parse("[1]")));
    assert_true(json_equal(json_at(array, ELEMENTS - 1), parse("'end'")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_creates_replaces_and_inserts),
        cmocka_unit_test(set_creates_and_replaces),
        cmocka_unit_test(replace_and_remove_change_what_is_there),
        cmocka_unit_test(incr_adds_or_creates),
        cmocka_unit_test(sums_of_integers_are_exact),
        cmocka_unit_test(move_removes_then_adds),
        cmocka_unit_test(operations_see_those_before_them),
        cmocka_unit_test(paths_are_json_pointers),
        cmocka_unit_test(names_of_operations_have_any_case),
        cmocka_unit_test(what_the_document_does_not_allow_is_refused),
        cmocka_unit_test(what_identifies_an_item_cannot_be_touched),
        cmocka_unit_test(malformed_bodies_are_refused),
        cmocka_unit_test(ten_operations_are_enough),
        cmocka_unit_test(the_condition_is_handed_on),
        cmocka_unit_test(a_patch_can_be_applied_again),
        cmocka_unit_test(documents_do_not_get_too_deep),
        cmocka_unit_test(moves_cannot_stack_branches),
        cmocka_unit_test(documents_do_not_get_too_large),
        cmocka_unit_test(memory_does_not_follow_the_number_of_elements),
    };
    return cmocka_run_group_tests(tests, test_arena_setup, test_arena_teardown);
}
