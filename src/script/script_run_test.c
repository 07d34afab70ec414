/* script_run_test.c - what scripts see and what clients get, in real worker processes. */
#include "script/script_testing_int.h"

static ScriptPool *pool;

typedef struct Case {
    const char *body;
    const char *arguments; /* NULL: none; ' stands for " */
    Status status;
    uint32_t number;
    const char *expected; /* the response's body, or how the text begins; ' stands for " */
} Case;

static void check_case_with(const ScriptCalls *calls, ScriptRole role, const Case *one)
{
    TestTable table = {.pool = pool};
    ScriptRun run = test_make_run(&table, role, one->body);
    run.calls = calls;
    if (one->arguments != NULL)
        run.arguments = row_text(&test_arena, one->arguments);
    run.request_body = SLICE("{\"id\":\"doc1\",\"n\":1}");
    run.response_body =
        role == SCRIPT_ROLE_POST_TRIGGER ? SLICE("{\"id\":\"doc1\",\"_rid\":\"r\"}") : SLICE_EMPTY;
    ScriptResult result;
    Error err = {.status = STATUS_OK};
    Status status = test_run(pool, &run, &test_arena, &result, &err);
    Slice expected = row_text(&test_arena, one->expected);
    Slice found = status != STATUS_OK               ? slice_first(result.text, expected.len)
                  : role == SCRIPT_ROLE_PRE_TRIGGER ? result.request_body
                                                    : result.response_body;
    if (status != one->status || result.number != one->number || !slice_equal(found, expected))
        fail_msg("%s\n  expected %s/%u '%.*s'\n  found %s/%u '%.*s'\n  %.*s", one->body,
                 status_code(one->status), one->number, SLICE_ARG(expected), status_code(status),
                 result.number, SLICE_ARG(found), SLICE_ARG(result.text));
    test_table_done(&table);
}

/* Whether a script waits for its operations or assumes that they succeed makes no difference. */
static void check_case(ScriptRole role, const Case *one)
{
    check_case_with(&TEST_CALLS, role, one);
    check_case_with(&TEST_REPEATING_CALLS, role, one);
}

static void check_cases(ScriptRole role, const Case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_case(role, &cases[i]);
}

#define CHECK(role, cases) check_cases(role, cases, ARRAY_COUNT(cases))
#define SET(value)         "function () { getContext().getResponse().setBody(" value "); }"
#define ERROR_TEXT         "Encountered exception while executing function. Exception = "

/* A procedure with the short names that the cases use. It collects in 'out', which is the response.
 */
#define WITH(code)                                                                                 \
    "function () { var c = getContext().getCollection(), r = getContext().getResponse(), out = "   \
    "[]; r.setBody(out);"                                                                          \
    " var self = c.getSelfLink(), alt = c.getAltLink();"                                           \
    " function attempt(f) { try { out.push(f()); } catch (e) { out.push(e.number === undefined ? " \
    "e.name : e.number); } }"                                                                      \
    " function put(e, d) { out.push(e ? e.number : d.id); } " code " }"

static void bodies_have_all_the_forms_of_functions(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {SET("1"), NULL, STATUS_OK, 0, "1"},
        {SET("1") ";", NULL, STATUS_OK, 0, "1"},
        {SET("'\\u00e9\\u20ac\\ud83d\\ude00 \\u007f\\u0080\\u07ff\\u0800\\uffff'"), NULL, STATUS_OK,
         0, "'\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 \x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF'"},
        {SET("1") ";  // the end", NULL, STATUS_OK, 0, "1"},
        {"() => { __.response.setBody('arrow'); }", NULL, STATUS_OK, 0, "'arrow'"},
        {"async function () { await null; __.response.setBody('late'); }", NULL, STATUS_OK, 0,
         "'late'"},
        {"\xEF\xBB\xBF// a comment\n/* another */ function x() { __.response.setBody(2); }\r\n",
         NULL, STATUS_OK, 0, "2"},
        {"function main() { __.response.setBody(helper()); }\nfunction helper() { return 3; }",
         NULL, STATUS_OK, 0, "3"},
        {"function () { undeclared = 4; __.response.setBody({a: undeclared, a: 5}); }", NULL,
         STATUS_OK, 0, "{'a':5}"},
        {"function () { class A { f() { return `${1 + 1}` + 'x'.repeat(2); } } "
         "__.response.setBody(new A().f()); }",
         NULL, STATUS_OK, 0, "'2xx'"},
        {"function () { __.response.setBody([typeof setTimeout, typeof require, typeof "
         "WebAssembly, typeof fetch]); }",
         NULL, STATUS_OK, 0, "['undefined','undefined','undefined','undefined']"},
        {"function () { __.response.setBody(new Date(0).getTimezoneOffset()); }", NULL, STATUS_OK,
         0, "0"},
        {"method() { }", NULL, STATUS_BAD_REQUEST, 65535,
         "Encountered exception while compiling Javascript. Exception = SyntaxError: "},
        {"function () { var 5x; }", NULL, STATUS_BAD_REQUEST, 65535,
         "Encountered exception while compiling Javascript. Exception = SyntaxError: No "
         "identifiers allowed directly after numeric literal\r\n"
         "Source information: line: 1, column: 0, source line:\n"
         "(function __docDbMain() { var fn = function () { var 5x; }"},
        {"", NULL, STATUS_BAD_REQUEST, 65535, "Encountered exception while compiling Javascript."},
        {"42", NULL, STATUS_BAD_REQUEST, 0,
         ERROR_TEXT "TypeError: The body of the script is not a function."},
    };
    CHECK(SCRIPT_ROLE_PROCEDURE, CASES);
}

static void arguments_are_those_of_a_function_application(void **state)
{
    (void)state;
#define ALL  "function (a, b, c) { __.response.setBody('' + a + b + c); }"
#define TYPE "function (a) { __.response.setBody(typeof a + arguments.length); }"
    static const Case CASES[] = {
        {TYPE, NULL, STATUS_OK, 0, "'undefined0'"},
        {TYPE, "[]", STATUS_OK, 0, "'undefined0'"},
        {TYPE, "null", STATUS_OK, 0, "'undefined0'"},
        {TYPE, "{}", STATUS_OK, 0, "'undefined0'"},
        {TYPE, "{'param1':4}", STATUS_OK, 0, "'undefined0'"},
        {TYPE, "{'0':4}", STATUS_OK, 0, "'undefined0'"},
        {TYPE, "[null]", STATUS_OK, 0, "'object1'"},
        {ALL, "['one','two','three']", STATUS_OK, 0, "'onetwothree'"},
        {ALL, "{'0':'one','1':'two','2':'three','length':3}", STATUS_OK, 0, "'onetwothree'"},
        {ALL, "{'length':'3','2':'three','1':'two','0':'one'}", STATUS_OK, 0, "'onetwothree'"},
        {ALL, "{'0':'one','1':'two','2':'three','length':3.9}", STATUS_OK, 0, "'onetwothree'"},
        {ALL, "{'0':'one','1':'two','2':'three','length':2}", STATUS_OK, 0, "'onetwoundefined'"},
        {ALL, "{'0':'one','2':'three','length':3}", STATUS_OK, 0, "'oneundefinedthree'"},
        {ALL, "{'0':'one','length':10000}", STATUS_OK, 0, "'oneundefinedundefined'"},
        {"function (a) { __.response.setBody('a' + a.temp); }", "[{'temp':'so'}]", STATUS_OK, 0,
         "'aso'"},
        {ALL, "{'0':'one','length':600000}", STATUS_BAD_REQUEST, 0,
         "The script has too many arguments"},
        {ALL, "{'0':'one','length':1000000000}", STATUS_BAD_REQUEST, 0,
         "The script has too many arguments"},
        {ALL, "''", STATUS_BAD_REQUEST, 0, "The arguments of the script must be"},
        {ALL, "'hello'", STATUS_BAD_REQUEST, 0, "The arguments of the script must be"},
        {ALL, "0", STATUS_BAD_REQUEST, 0, "The arguments of the script must be"},
        {ALL, "-1.25", STATUS_BAD_REQUEST, 0, "The arguments of the script must be"},
        {ALL, "false", STATUS_BAD_REQUEST, 0, "The arguments of the script must be"},
        {ALL, "undefined", STATUS_BAD_REQUEST, 0,
         "The arguments of the script are not valid JSON."},
        {ALL, "[x:4]", STATUS_BAD_REQUEST, 0, "The arguments of the script are not valid JSON."},
    };
    CHECK(SCRIPT_ROLE_PROCEDURE, CASES);
}

static void the_response_is_serialised_at_the_end(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {"function () { return 5; }", NULL, STATUS_OK, 0, "''"},
        {SET(""), NULL, STATUS_OK, 0, "''"},
        {SET("function () {}"), NULL, STATUS_OK, 0, "''"},
        {SET("null"), NULL, STATUS_OK, 0, "null"},
        {SET("[NaN, Infinity, undefined]"), NULL, STATUS_OK, 0, "[null,null,null]"},
        {SET("new Date(0)"), NULL, STATUS_OK, 0, "'1970-01-01T00:00:00.000Z'"},
        {SET("'{}'"), NULL, STATUS_OK, 0, "'{}'"},
        {SET("'\\ud800'"), NULL, STATUS_OK, 0, "'\\ud800'"},
        {SET("'\\0\\u00e9\\u20ac\\u{1F600}'"), NULL, STATUS_OK, 0,
         "'\\u0000\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80'"},
        {"function () { var o = {a: 1}; __.response.setBody(o); Promise.resolve().then(() => { o.a "
         "= 2; }); }",
         NULL, STATUS_OK, 0, "{'a':2}"},
        {"function () { for (var i = 0; i < 10; i++) __.response.appendValue('Body', i); }", NULL,
         STATUS_OK, 0, "'0123456789'"},
        {"function () { var r = __.response; r.setBody(null); r.appendBody(1); r.appendBody(2); }",
         NULL, STATUS_OK, 0, "3"},
        {"function () { var r = getContext().getResponse(); for (var i = 0; i < 1000; i++) {"
         " if (i > 0 && r.getBody() !== i - 1) throw 'wrong'; r.setBody(i); } }",
         NULL, STATUS_OK, 0, "999"},
        {"function () { var o = {}; o.o = o; __.response.setBody(o); }", NULL, STATUS_BAD_REQUEST,
         0, ERROR_TEXT "TypeError: "},
        {SET("'x'.repeat(5000000)"), NULL, STATUS_BAD_REQUEST, 413,
         ERROR_TEXT "Error: The value of the response property \"Body\""},
        {"function () { var o = {a: ''}; __.response.setBody(o); o.a = 'x'.repeat(5000000); }",
         NULL, STATUS_BAD_REQUEST, 413, ERROR_TEXT},
        {"function () { var r = __.response; r.setBody([typeof r.setValue, typeof "
         "__.request.setBody,"
         " __.request.getBody().length, typeof __.request.getOperationType, r.getValue(undefined) "
         "=== undefined]); }",
         "[1,2]", STATUS_OK, 0, "['function','undefined',2,'undefined',true]"},
        {WITH("attempt(() => r.setValue('Test', 1)); attempt(() => r.getValue('Test')); attempt(() "
              "=> r.setValue('toString', 1));"),
         NULL, STATUS_OK, 0, "[400,'TypeError',400]"},
        {"function () { __.response.setBody(__.response === getContext().getResponse() && "
         "__.getSelfLink() === "
         "getContext().getCollection().getSelfLink() && Object.getPrototypeOf(__) === "
         "getContext().getCollection() && __.getAltLink()); }",
         NULL, STATUS_OK, 0, "'dbs/shop/colls/things'"},
    };
    CHECK(SCRIPT_ROLE_PROCEDURE, CASES);
}

static void errors_have_numbers_and_texts(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {"function f() {\n throw new Error('m'); }", NULL, STATUS_BAD_REQUEST, 0,
         ERROR_TEXT "Error: m\r\nStack trace: Error: m\n   at f (s1.js:2:17)\n   at __docDbMain "
                    "(s1.js:3:14)\n   at Global code (s1.js:1:2)"},
        {"function f() {\n [1].forEach(function () { throw Error(1234, 'm'); }); }", NULL,
         STATUS_BAD_REQUEST, 1234,
         ERROR_TEXT "Error: m\r\nStack trace: Error: m\n   at Anonymous function (s1.js:2:39)\n   "
                    "at forEach (native code)\n   at f (s1.js:2:13)\n   at __docDbMain"},
        {"function () { x.y; }", NULL, STATUS_BAD_REQUEST, 0, ERROR_TEXT "ReferenceError: "},
        {"function () { throw 'only text'; }", NULL, STATUS_BAD_REQUEST, 0, "only text"},
        {"function () { throw {number: 77, a: 1}; }", NULL, STATUS_BAD_REQUEST, 77,
         "{'number':77,'a':1}"},
        {"function () { throw undefined; }", NULL, STATUS_BAD_REQUEST, 0, "undefined"},
        {"function () { throw new Error(-1, 'm'); }", NULL, STATUS_BAD_REQUEST, 0,
         ERROR_TEXT "Error: m"},
        {"function () { throw new TypeError(5, 'm'); }", NULL, STATUS_BAD_REQUEST, 0,
         ERROR_TEXT "TypeError: 5"},
        {"function () { getContext().abort(new Error(999, 'stop')); }", NULL, STATUS_BAD_REQUEST,
         999, ERROR_TEXT "Error: stop"},
        {"function () { try { getContext().abort('stop'); } catch (e) { } }", NULL,
         STATUS_BAD_REQUEST, 0, "stop"},
        {"function () { __.response.setBody(1); Promise.reject(new Error('nobody')); }", NULL,
         STATUS_OK, 0, "1"},
        {"async function () { __.response.setBody(1); throw new Error('inside'); }", NULL,
         STATUS_OK, 0, "1"},
        {"function () { throw {toJSON() { throw 1; }}; }", NULL, STATUS_BAD_REQUEST, 0,
         ERROR_TEXT "Error: the value that"},
        {"function () { var e = new Error(5, 'm'), f = Error('a'); class X extends Error {} "
         "__.response.setBody([e.number, e.message,"
         " e.description, e + '', e instanceof Error, f.number === undefined, f.message, new X(1, "
         "'b').message, new TypeError('t') instanceof Error,"
         " new Error('q', {cause: 3}).cause, Error.name, Error.prototype.constructor === Error]); "
         "}",
         NULL, STATUS_OK, 0, "[5,'m','m','Error: m',true,true,'a','1',true,3,'Error',true]"},
    };
    CHECK(SCRIPT_ROLE_PROCEDURE, CASES);
}

static void operations_check_their_arguments_at_once(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {WITH("attempt(() => c.readDocument()); attempt(() => c.queryDocuments(self)); attempt(() "
              "=> c.createDocument(self));"
              " attempt(() => c.replaceDocument(self + 'docs/x')); attempt(() => "
              "c.deleteDocument());"),
         NULL, STATUS_OK, 0, "[400,400,400,400,400]"},
        {WITH("attempt(() => c.readDocuments(self, 5)); attempt(() => c.readDocuments(self, "
              "null)); attempt(() => c.readDocuments(self, {}, 5));"
              " attempt(() => c.readDocuments(self, {}, null)); attempt(() => "
              "c.readDocuments(self, undefined, undefined));"),
         NULL, STATUS_OK, 0, "[400,'TypeError',400,400,true]"},
        {WITH("['', 'x', 'dbs/a', 'dbs/a/colls', 'dbs/a/colls/b', 'xxx/shop/colls/things', self + "
              "'docs/', 5, alt + '/x', '/' + alt].forEach(l => attempt(() => c.readDocuments(l)));"
              " attempt(() => c.readDocuments(alt)); attempt(() => c.readDocuments(alt + '/'));"),
         NULL, STATUS_OK, 0, "[400,400,400,400,400,400,400,400,400,400,true,true]"},
        {WITH("[alt, alt + '/docs', alt + '/docs/', alt + '/docs/a/b', alt + '/xxx/a', "
              "'dbs/shop/colls/other/docs/a'].forEach(l => attempt(() => c.readDocument(l)));"
              " attempt(() => c.readDocument(alt + '/DOCS/a', () => {})); attempt(() => "
              "c.readDocument(self + 'docs/a/', () => {}));"),
         NULL, STATUS_OK, 0, "[400,400,400,400,400,400,true,true]"},
        {WITH("[null, 5, 'no json', '5', undefined].forEach(b => attempt(() => "
              "c.createDocument(self, b))); attempt(() => c.queryDocuments(self, 5));"
              " attempt(() => c.queryDocuments(self, {}));"),
         NULL, STATUS_OK, 0, "[400,400,400,400,400,400,400]"},
        {"function () { __.readDocuments('nonsense'); }", NULL, STATUS_BAD_REQUEST, 400,
         ERROR_TEXT "Error: Invalid collection link: \"nonsense\"."},
    };
    CHECK(SCRIPT_ROLE_PROCEDURE, CASES);
}

static void operations_answer_in_callbacks(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {WITH("c.createDocument(self, {id: 'a', v: 1}, (e, d, o) => { out.push(d.id, d._etag, "
              "o.statusCode, o.maxCollectionSizeInMB.slice(0, 13));"
              " c.readDocument(d._self, (e, d, o) => { out.push(d.v, o.notModified === undefined);"
              "  c.readDocument(alt + '/docs/a', {ifNoneMatch: d._etag}, function (e, d, o) { "
              "out.push(d === undefined, o.notModified, o.statusCode);"
              "   c.replaceDocument(d_self, {id: 'b'}, {etag: 'e0'}, (e, d) => { out.push(d.id);"
              "    c.deleteDocument(d_self, function (e, o) { out.push(arguments.length, e === "
              "undefined, o.statusCode); }); }); }); }); var d_self = d._self; });"),
         NULL, STATUS_OK, 0, "['a','e0',201,'documentSize=',1,true,true,true,304,'b',2,true,204]"},
        {WITH("c.createDocument(self, {id: 'a'}); c.createDocument(self, {id: 'a'}, (e, d, o) => { "
              "out.push(e.number, e.message === e.body,"
              " JSON.parse(e.message).Errors[0], JSON.parse(JSON.stringify(e)).number, d === "
              "undefined, o.statusCode, e instanceof Error); });"),
         NULL, STATUS_OK, 0,
         "[409,true,'Entity with the specified id already exists in the "
         "system.',409,true,409,true]"},
        {WITH("c.createDocument(self, {id: 'a'}); c.createDocument(self, {id: 'a'});"), NULL,
         STATUS_BAD_REQUEST, 409,
         ERROR_TEXT
         "Error: {'Errors':['Entity with the specified id already exists in the system.']}"},
        {WITH("c.createDocument(self, {id: 'a'}); c.createDocument(self, {id: 'a'}, e => { throw "
              "e; });"),
         NULL, STATUS_BAD_REQUEST, 409,
         ERROR_TEXT
         "Error: {'Errors':['Entity with the specified id already exists in the system.']}"},
        {WITH(
             "c.upsertDocument(self, {id: 'a'}, (e, d, o) => out.push(o.statusCode)); "
             "c.upsertDocument(alt, '{\"id\":\"a\"}', (e, d, o) => out.push(o.statusCode));"
             " c.upsertDocument(self, {id: 'a'}, {etag: 'x'}, put); c.replaceDocument(alt + "
             "'/docs/none', {id: 'x'}, put); c.deleteDocument(alt + '/docs/a', {etag: 'x'}, put);"),
         NULL, STATUS_OK, 0, "[201,200,412,404,412]"},
        {WITH("var d = {v: 1}; c.createDocument(self, d, (e, n) => "
              "out.push(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/"
              ".test(n.id), n.v, 'id' in d));"
              " d.v = 2; c.createDocument(self, '{\"v\":7}', (e, n) => out.push(n.id.length, "
              "n.v)); c.createDocument(self, {}, {disableAutomaticIdGeneration: true}, put);"),
         NULL, STATUS_OK, 0, "[true,1,false,36,7,400]"},
        {WITH("for (var i = 0; i < 5; i++) c.createDocument(self, {id: 'd' + i}); "
              "out.push('queued');"
              " c.readDocuments(self, {pageSize: 2}, function next(e, docs, o) { "
              "out.push(docs.map(d => d.id).join('')); if (o.continuation) c.readDocuments(self, "
              "{pageSize: 2, continuation: o.continuation}, next); else out.push(typeof "
              "o.continuation); });"
              " c.readDocuments(self, {pageSize: -1}, (e, docs) => out.push(docs.length)); "
              "c.readDocuments(self, (e, docs) => out.push(docs.length));"),
         NULL, STATUS_OK, 0, "['queued','d0d1',5,5,'d2d3','d4','undefined']"},
        {WITH("c.readDocuments(self, {pageSize: 1e10}, put); c.readDocuments(self, {pageSize: "
              "1.5}, put); c.readDocuments(self, {pageSize: -2}, put); c.createDocument(self, {id: "
              "'x'}, {indexAction: 'wrong'}, put);"
              " c.createDocument(self, {id: 'x'}, {indexAction: 'exclude'}, put);"),
         NULL, STATUS_OK, 0, "[400,400,400,400,'x']"},
        {WITH("c.queryDocuments(self, 'SELECT 1', (e, d) => out.push(d[0])); "
              "c.queryDocuments(self, {query: 'q', parameters: [{name: '@a', value: 1}]}, "
              "{enableScan: true}, (e, d) => out.push(d[0])); c.queryDocuments(self, 'bad', put);"),
         NULL, STATUS_OK, 0,
         "[{'query':'SELECT "
         "1','parameters':null},{'query':'q','parameters':[{'name':'@a','value':1}]},400]"},
        {WITH("c.queryDocuments(self, 'udf', (e, d) => out.push(d[0]));"), NULL, STATUS_OK, 0,
         "[42]"},
        /* Callbacks never run within the call, and a loop that relies on it ends. */
        {WITH("var i = 0; function go() { if (i >= 20) return out.push(i); if "
              "(!c.createDocument(self, {id: 'n' + i}, e => { if (e) throw e; go(); })) throw "
              "'refused'; i++; } go();"),
         NULL, STATUS_OK, 0, "[20]"},
        {WITH("new Promise((ok, no) => c.createDocument(self, {id: 'p'}, (e, d) => e ? no(e) : "
              "ok(d))).then(d => { out.push(d.id); return 'then'; }).then(x => out.push(x));"),
         NULL, STATUS_OK, 0, "['p','then']"},
    };
    CHECK(SCRIPT_ROLE_PROCEDURE, CASES);
}

static void queries_in_javascript_work_on_pages(void **state)
{
    (void)state;
#define FILL                                                                                      \
    "for (var i = 0; i < 4; i++) c.createDocument(self, {id: 'k' + i, n: (i * 3) % 4, t: [i, [i " \
    "+ 10]]}); "
#define IDS "(e, d) => out.push(e ? e.number : d.map(x => x.id).join(''))"
    static const Case CASES[] = {
        {WITH(FILL "out.push(c.filter(d => d.n > 1, " IDS
                   ").isAccepted); __.filter(__, d => d.n < 1, {pageSize: 2}, " IDS ");"),
         NULL, STATUS_OK, 0, "[true,'k1k2','k0']"},
        {WITH(FILL "c.map(d => d.n, (e, d) => out.push(d)); c.pluck('n', (e, d) => out.push(d)); "
                   "c.sortBy(d => d.n, " IDS "); c.sortByDescending(d => d.id, " IDS ");"),
         NULL, STATUS_OK, 0, "[[0,3,2,1],[0,3,2,1],'k0k3k2k1','k3k2k1k0']"},
        {WITH(FILL "c.chain().filter(d => d.n > 1).pluck('t').flatten(true).value((e, d) => "
                   "out.push(d)); c.chain().pluck('t').flatten().value({pageSize: 1}, (e, d, o) => "
                   "out.push(d, o.continuation));"),
         NULL, STATUS_OK, 0, "[[1,[11],2,[12]],[0,10],'1']"},
        {WITH(FILL "c.unwind(d => d.t, (d, x) => [d.id, x], {pageSize: 1}, (e, d) => out.push(d)); "
                   "c.chain().unwind(d => d.t).value({pageSize: 1}, (e, d) => out.push(d));"),
         NULL, STATUS_OK, 0, "[['k0',0,'k0',[10]],[0,10]]"},
        {WITH("attempt(() => c.filter()); attempt(() => c.pluck('')); attempt(() => c.unwind(() => "
              "[])); attempt(() => c.unwind(x => x, x => x)); attempt(() => c.chain().filter(x => "
              "x, {}));"
              " attempt(() => c.chain().map(5)); attempt(() => c.chain().flatten(true, () => 1));"),
         NULL, STATUS_OK, 0, "[400,400,400,400,400,400,400]"},
        {WITH(FILL "c.filter(d => { throw new Error(7, 'in predicate'); }, " IDS ");"), NULL,
         STATUS_OK, 0, "[7]"},
        {WITH(FILL "c.map(d => { throw new Error(7, 'in predicate'); });"), NULL,
         STATUS_BAD_REQUEST, 7, ERROR_TEXT "Error: in predicate"},
        {"function () { __.createDocument(__.getSelfLink(), {id: 'a'}); __.pluck('id'); }", NULL,
         STATUS_OK, 0, "'[\\'a\\']'"},
    };
    /* The last: text with JSON in it, whose quotes are escaped. */
    CHECK(SCRIPT_ROLE_PROCEDURE, CASES);
}

static void triggers_see_request_and_response(void **state)
{
    (void)state;
    static const Case BEFORE[] = {
        {"function () { }", NULL, STATUS_OK, 0, "{'id':'doc1','n':1}"},
        {"function () { var q = getContext().getRequest(), b = q.getBody(); b.id = "
         "b.id.toUpperCase() + 't1'; q.setBody(b); b.op = q.getOperationType(); }",
         NULL, STATUS_OK, 0, "{'id':'DOC1t1','n':1,'op':'Create'}"},
        {"function () { for (var i = 0; i < 200; i++) __.request.setValue('Body', {id: 'x' + i}); "
         "}",
         NULL, STATUS_OK, 0, "{'id':'x199'}"},
        {"function () { __.request.setBody('{\"id\":\"text\"}'); }", NULL, STATUS_OK, 0,
         "{'id':'text'}"},
        {"function () { var b = __.request.getBody(); __.request.setBody(b); "
         "__.createDocument(__.getSelfLink(), {id: 'm'}, (e, d) => { b.later = d.id; }); }",
         NULL, STATUS_OK, 0, "{'id':'doc1','n':1,'later':'m'}"},
        {"function () { getContext().getResponse(); }", NULL, STATUS_BAD_REQUEST, 0,
         ERROR_TEXT "TypeError: "},
        {"function () { try { __.request.setValue('Test', 1); } catch (e) { __.request.setBody({n: "
         "e.number, m: e.message.slice(0, 22)}); } }",
         NULL, STATUS_OK, 0, "{'n':400,'m':'Cannot set new values:'}"},
        {"function () { try { __.request.setValue('OperationType', 1); } catch (e) { "
         "__.request.setBody({n: e.number, m: e.message.slice(0, 24)}); } }",
         NULL, STATUS_OK, 0, "{'n':403,'m':'Not a writable property:'}"},
        {"function () { console.log(); throw new Error(409, 'no'); }", NULL, STATUS_BAD_REQUEST,
         409, ERROR_TEXT "Error: no"},
        {"function () { __.pluck('id'); }", NULL, STATUS_BAD_REQUEST, 400,
         ERROR_TEXT "Error: The function \"pluck\" needs a callback"},
        {"function () { if (arguments.length || '__' in this !== true || typeof __.response !== "
         "'undefined') throw 'wrong'; }",
         NULL, STATUS_OK, 0, "{'id':'doc1','n':1}"},
    };
    static const Case AFTER[] = {
        {"function () { }", NULL, STATUS_OK, 0, "{'id':'doc1','_rid':'r'}"},
        {"function () { var r = getContext().getResponse(), b = r.getBody(); b.id += '!'; "
         "r.setBody(b); }",
         NULL, STATUS_OK, 0, "{'id':'doc1!','_rid':'r'}"},
        {"function () { __.request.setBody({}); }", NULL, STATUS_BAD_REQUEST, 0,
         ERROR_TEXT "TypeError: "},
        {"function () { __.request.setValue('Body', {}); }", NULL, STATUS_BAD_REQUEST, 0,
         ERROR_TEXT "TypeError: "},
        {"function () { __.response.setValue('x-new', 1); }", NULL, STATUS_BAD_REQUEST, 400,
         ERROR_TEXT "Error: Cannot set new values: "},
        {"function () { "
         "__.response.setBody([__.response.getMaxResourceQuota().indexOf('collectionSize') > 0, "
         "__.response.getResourceQuotaCurrentUsage().indexOf('collectionSize') > 0,"
         " __.request.getBody().n, __.request.getOperationType()]); }",
         NULL, STATUS_OK, 0, "[true,true,1,'Create']"},
        {"function () { throw new Error(4444, 'no'); }", NULL, STATUS_BAD_REQUEST, 4444,
         ERROR_TEXT "Error: no"},
    };
    CHECK(SCRIPT_ROLE_PRE_TRIGGER, BEFORE);
    CHECK(SCRIPT_ROLE_POST_TRIGGER, AFTER);
}

static void logs_are_kept_if_they_are_wanted(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool is_wanted;
        Status status;
        const char *log;
    } CASES[] = {
        {"function () { var x = 1; console.log('The value of %s is %s.', 'x', x); }", true,
         STATUS_OK, "The value of x is 1."},
        {"function () { var x = 1; console.log('The value of %s is %s.', 'x', x); }", false,
         STATUS_OK, ""},
        {"function () { console.log('a%%'); console.log(5); console.log('%%%s|%s', 1); "
         "console.log('b', 2); console.log({}); console.log(null); }",
         true, STATUS_OK, "a%%5%1|undefinedb[object Object]null"},
        {"function () { console.log('before'); throw 'x'; }", true, STATUS_BAD_REQUEST, "before"},
        {"function () { console.log(); }", true, STATUS_BAD_REQUEST, ""},
        {"function () { console.log(); console.log(1, 2); }", false, STATUS_OK, ""},
        {"function () { console.log(1, 2); }", true, STATUS_BAD_REQUEST, ""},
        {"function () { console.log('x'.repeat(8192)); try { console.log('y'); } catch (e) { if "
         "(e.number !== 413) throw e; } }",
         true, STATUS_OK, NULL},
        {"function () { console.log(' '.repeat(2731)); }", true, STATUS_BAD_REQUEST, ""},
        {"function () { console.log('\\u00e9\\ud800|' + Object.keys(console)); }", true, STATUS_OK,
         "\xC3\xA9\xEF\xBF\xBD|log"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        TestTable table = {.count = 0};
        ScriptRun run = test_make_run(&table, SCRIPT_ROLE_PROCEDURE, CASES[i].body);
        run.wants_log = CASES[i].is_wanted;
        ScriptResult result;
        Error err;
        assert_status(test_run(pool, &run, &test_arena, &result, &err), CASES[i].status);
        if (CASES[i].log != NULL)
            assert_slice_text(result.log, CASES[i].log);
        else
            assert_int_equal(result.log.len, SCRIPT_LOG_ENCODED_BYTES_MAX);
    }
}

static void nothing_survives_a_run(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {"function () { kept = 1; Array.prototype.kept = 2; Object.prototype.kept = 3; Math.kept = "
         "4; __.kept = 5; console.kept = 6; }",
         NULL, STATUS_OK, 0, "''"},
        {"function () { __.response.setBody([typeof kept, [].kept === undefined, Math.kept === "
         "undefined, console.kept === undefined]); }",
         NULL, STATUS_OK, 0, "['undefined',true,true,true]"},
    };
    for (size_t i = 0; i < 20; i++)
        CHECK(SCRIPT_ROLE_PROCEDURE, CASES);
}

static void operations_after_the_soft_limit_are_not_accepted(void **state)
{
    (void)state;
    TestTable table = {.count = 0};
    ScriptRun run = test_make_run(
        &table, SCRIPT_ROLE_PROCEDURE,
        WITH("var n = 0; function go() { n++; if (!c.readDocuments(self, go)) { out.push(n > 1,"
             " c.createDocument(self, {id: 'x'}), c.filter(x => x).isAccepted, c.chain().filter(x "
             "=> x).value().isAccepted); } } go();"));
    run.soft_us = clock_monotonic_us(clock_real()) + 1500000;
    ScriptResult result;
    assert_ok(test_run(pool, &run, &test_arena, &result, err));
    assert_slice_text(result.response_body, "[true,false,false,false]");
    assert_int_equal(table.count, 0);
    assert_true(result.operations > 1);
}

static void an_operation_may_end_the_run(void **state)
{
    (void)state;
    TestTable table = {.ends_next_run = true};
    ScriptRun run =
        test_make_run(&table, SCRIPT_ROLE_PROCEDURE, WITH("c.readDocuments(self, () => {});"));
    ScriptResult result;
    Error failure;
    assert_status(test_run(pool, &run, &test_arena, &result, &failure), STATUS_GONE);
    assert_int_equal(failure.sub, SUB_PARTITION_KEY_RANGE_GONE);
    table.ends_next_run = false;
    assert_ok(test_run(pool, &run, &test_arena, &result, err));
}

static void a_job_may_run_several_scripts(void **state)
{
    (void)state;
    TestTable table = {.count = 0};
    ScriptRun runs[] = {
        test_make_run(&table, SCRIPT_ROLE_PRE_TRIGGER,
                      "function () { x = 1; __.request.setBody({a: 1}); }"),
        test_make_run(&table, SCRIPT_ROLE_POST_TRIGGER,
                      "function () { __.response.setBody(typeof x); }"),
    };
    ScriptResult results[2];
    Status statuses[2];
    Error errors[2];
    TestJob job = {.job = {.run = test_run_job},
                   .runs = runs,
                   .count = 2,
                   .arena = &test_arena,
                   .results = results,
                   .statuses = statuses,
                   .errors = errors};
    latch_init(&job.done);
    assert_ok(script_pool_post(pool, &job.job, err));
    latch_wait(&job.done);
    latch_done(&job.done);
    assert_status(statuses[0], STATUS_OK);
    assert_status(statuses[1], STATUS_OK);
    assert_slice_text(results[0].request_body, "{\"a\":1}");
    assert_slice_text(results[1].response_body, "\"undefined\"");
}

static int open_pool(void **state)
{
    (void)state;
    ScriptPoolOptions options = {
        .command = TEST_COMMAND, .memory_bytes_max = TEST_MEMORY_BYTES, .shows_stderr = true};
    pool = script_pool_open(&options);
    return 0;
}

static int close_pool(void **state)
{
    (void)state;
    script_pool_close(pool);
    return 0;
}

/* ---- operations that are not waited for ---- */

/* Callbacks with one parameter see nothing of an item, unless they look for it. */
static void callbacks_get_what_they_look_at(void **state)
{
    (void)state;
#define CREATE(callback) WITH("c.createDocument(self, {id: 'a'}, " callback ");")
    static const Case CASES[] = {
        {CREATE("function (e) { out.push(typeof e); }"), NULL, STATUS_OK, 0, "['undefined']"},
        {CREATE("e => out.push(typeof e)"), NULL, STATUS_OK, 0, "['undefined']"},
        {CREATE("() => out.push(1)"), NULL, STATUS_OK, 0, "[1]"},
        {CREATE("function (e, d) { out.push(d.id); }"), NULL, STATUS_OK, 0, "['a']"},
        {CREATE("function (e) { out.push(arguments.length, arguments[1].id); }"), NULL, STATUS_OK,
         0, "[3,'a']"},
        {CREATE("function f(e) { (() => out.push(f.arguments[1].id))(); }"), NULL, STATUS_OK, 0,
         "['a']"},
        {CREATE("function (e) { out.push(\\u0061rguments[1].id); }"), NULL, STATUS_OK, 0, "['a']"},
        {CREATE("function (e) { out.push(eval('argu' + 'ments')[1].id); }"), NULL, STATUS_OK, 0,
         "['a']"},
        {CREATE("(...all) => out.push(all.length)"), NULL, STATUS_OK, 0, "[3]"},
        {CREATE("function (e, ...all) { out.push(all[0].id); }"), NULL, STATUS_OK, 0, "['a']"},
        {CREATE("function (e = 1, d) { out.push(e, d.id); }"), NULL, STATUS_OK, 0, "[1,'a']"},
        {CREATE("(function (x, e, d) { out.push(d.id); }).bind(null, 1)"), NULL, STATUS_OK, 0,
         "['a']"},
        {CREATE("new Proxy(function (e) {}, {apply: (f, t, all) => out.push(all.length)})"), NULL,
         STATUS_OK, 0, "[3]"},
        {CREATE("Object.defineProperty((e, d) => out.push(d.id), 'length', {value: 0})"), NULL,
         STATUS_OK, 0, "['a']"},
        {CREATE("function (/* ( */ e /* ) */, d) { out.push(d.id); }"), NULL, STATUS_OK, 0,
         "['a']"},
        {CREATE("function (e /* only */) { out.push(typeof e); }"), NULL, STATUS_OK, 0,
         "['undefined']"},
        {WITH("Function.prototype.toString = () => 'function (e) {}';"
              " c.createDocument(self, {id: 'a'}, (e, d) => out.push(d.id));"),
         NULL, STATUS_OK, 0, "['a']"},
    };
#undef CREATE
    CHECK(SCRIPT_ROLE_PROCEDURE, CASES);
}

#define CHAIN(rest)                                                                                \
    WITH("var i = 0; next(); function next() { if (i < 100) out[0] = ++i; if (i < 100)"            \
         " c.createDocument(self, {id: 'i' + i}, function (e) { if (e) throw e; next(); }); " rest \
         " }")

static void failures_are_found_in_their_order(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {CHAIN(""), NULL, STATUS_OK, 0, "[100]"},
        /* A failure in the middle is told to its own callback, and to no later one. */
        {WITH("['a', 'b', 'a', 'c', 'b'].forEach(id => c.createDocument(self, {id: id},"
              " function (e) { out.push(e ? e.number : 0); }));"),
         NULL, STATUS_OK, 0, "[0,0,409,0,409]"},
        /* What a script throws after a failure that it should have been told of does not count. */
        {WITH("c.createDocument(self, {id: 'a'}); c.createDocument(self, {id: 'a'}, function (e) {"
              " if (!e) throw 'too early'; out.push(e.number); });"),
         NULL, STATUS_OK, 0, "[409]"},
        {WITH("c.createDocument(self, {id: 'a'}); c.createDocument(self, {id: 'a'}); "
              "c.createDocument(self, {id: 'b'}, function () { throw 'too late'; });"),
         NULL, STATUS_BAD_REQUEST, 409, ERROR_TEXT "Error: {'Errors':['Entity with"},
        /* What it throws before that failure counts. */
        {WITH("c.createDocument(self, {id: 'a'}, function () { throw new Error(7, 'first'); });"
              " c.createDocument(self, {id: 'a'});"),
         NULL, STATUS_BAD_REQUEST, 7, ERROR_TEXT "Error: first"},
        {WITH("c.createDocument(self, {id: 'a'}, function (e) { try { getContext().abort(new "
              "Error(8, 'x')); } catch (ignored) {} }); c.createDocument(self, {id: 'b'}, function "
              "() { throw 'never'; });"),
         NULL, STATUS_BAD_REQUEST, 8, ERROR_TEXT "Error: x"},
        /* Reads and queries see what was assumed to be written. */
        {WITH("c.createDocument(self, {id: 'a'}, function () { c.readDocument(alt + '/docs/a', "
              "put); c.deleteDocument(alt + '/docs/a', function () { c.readDocuments(self, "
              "function (e, d) { out.push(d.length); }); }); });"),
         NULL, STATUS_OK, 0, "['a',0]"},
        /* A known failure comes after what was queued before it. */
        {WITH("c.createDocument(self, {id: 'a'}, function () { out.push(1); });"
              " c.readDocuments(self, {pageSize: -7}, function (e) { out.push(e.number); });"
              " c.createDocument(self, {id: 'b'}, function () { out.push(2); });"),
         NULL, STATUS_OK, 0, "[1,400,2]"},
        /* What a callback's promises have made ready comes before the next callback. */
        {WITH("function p(x) { return new Promise(f => c.createDocument(self, {id: x}, function () "
              "{ out.push(x); f(); })); } p('a').then(() => { out.push(1); p('c').then(() => "
              "out.push(3)); }); p('b').then(() => out.push(2));"),
         NULL, STATUS_OK, 0, "['a',1,'b',2,'c',3]"},
        {WITH("function p(x) { return new Promise(f => c.createDocument(self, {id: x}, (e, d) => "
              "{ out.push(d.id); f(); })); } p('a').then(() => { out.push(1); p('c').then(() => "
              "out.push(3)); }); p('b').then(() => out.push(2));"),
         NULL, STATUS_OK, 0, "['a',1,'b',2,'c',3]"},
        /* One that no frame has room for. */
        {WITH("c.createDocument(self, {id: 'a'}, function () { out.push(1); }); "
              "c.createDocument(self,"
              " {id: 'b', s: 'x'.repeat(17 << 20)}, function (e) { out.push(e.number); });"
              " c.createDocument(self, {id: 'b'}, function (e) { out.push(e); });"),
         NULL, STATUS_OK, 0, "[1,413,null]"},
        /* More than one frame. */
        {WITH("for (var i = 0; i < 250; i++) c.createDocument(self, {id: 'i' + i}, function (e) { "
              "if (e) throw e; out[0] = (out[0] || 0) + 1; });"),
         NULL, STATUS_OK, 0, "[250]"},
        {WITH("for (var i = 0; i < 20; i++) c.upsertDocument(self, {id: 'a', n: i, s: "
              "'x'.repeat(200000)}, function (e, d) { out.push(d.n); });"),
         NULL, STATUS_OK, 0, "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]"},
    };
    CHECK(SCRIPT_ROLE_PROCEDURE, CASES);
}

static Status run_repeating(TestTable *table, const char *body, Slice version, ScriptResult *result)
{
    ScriptRun run = test_make_run(table, SCRIPT_ROLE_PROCEDURE, body);
    run.calls = &TEST_REPEATING_CALLS;
    run.version = version;
    Error err;
    return test_run(pool, &run, &test_arena, result, &err);
}

static void a_run_is_repeated_only_after_a_wrong_assumption(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        uint32_t repeats;
        uint32_t operations;
    } CASES[] = {
        {CHAIN(""), 0, 99},
        {CHAIN("if (i === 50) c.deleteDocument(alt + '/docs/none', function () {});"), 1, 100},
        /* One that gets items is not assumed to succeed, and neither is its failure wrong. */
        {WITH("c.createDocument(self, {id: 'a'}, put); c.createDocument(self, {id: 'a'}, put);"), 0,
         2},
        /* What was queued after a callback that throws is not made. */
        {WITH("for (var i = 0; i < 9; i++) c.createDocument(self, {id: 'i' + i}, function () { if "
              "(out.push(1) === 3) throw 'third'; });"),
         0, 3},
        {WITH("for (var i = 0; i < 9; i++) c.createDocument(self, {id: 'a'}, function (e) { if (e) "
              "throw e; });"),
         1, 2},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        TestTable table = {.pool = pool};
        ScriptResult result;
        (void)run_repeating(&table, CASES[i].body, SLICE_EMPTY, &result);
        assert_int_equal(table.repeats, CASES[i].repeats);
        assert_int_equal(result.operations, CASES[i].operations);
        test_table_done(&table);
    }
}

/* Both that assume and that wait accept the same operations. */
static void acceptance_ends_at_the_same_operation(void **state)
{
    (void)state;
    static const char BODY[] =
        WITH("var i = 0; next(); function next() { if (c.createDocument(self, {id: 'i' + i}, "
             "function (e) { if (e) throw e; out[0] = ++i; next(); })) return; out.push('no'); }");
    static const ScriptCalls *const CALLS[] = {&TEST_CALLS, &TEST_REPEATING_CALLS};
    for (size_t i = 0; i < ARRAY_COUNT(CALLS); i++) {
        TestTable table = {.pool = pool, .last_at = 40};
        ScriptRun run = test_make_run(&table, SCRIPT_ROLE_PROCEDURE, BODY);
        run.calls = CALLS[i];
        ScriptResult result;
        assert_ok(test_run(pool, &run, &test_arena, &result, err));
        assert_slice(result.response_body, SLICE("[40,\"no\"]"));
        assert_int_equal(table.repeats, i);
        test_table_done(&table);
    }
}

static void a_version_that_is_often_repeated_waits(void **state)
{
    (void)state;
    static const char BODY[] =
        WITH("for (var i = 0; i < 2; i++) c.createDocument(self, {id: 'a'}, function (e) {});");
    TestTable table = {.pool = pool};
    for (uint32_t i = 0; i < SCRIPT_BLOCK_RUNS + 3; i++) {
        ScriptResult result;
        assert_int_equal(run_repeating(&table, BODY, SLICE("often"), &result), STATUS_OK);
        test_table_done(&table);
    }
    assert_int_equal(table.repeats, SCRIPT_BLOCK_RUNS);
}

int main(int argc, char **argv)
{
    TEST_WORKER_MAIN(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
    const struct CMUnitTest tests[] = {
        TEST(callbacks_get_what_they_look_at),
        TEST(failures_are_found_in_their_order),
        TEST(a_run_is_repeated_only_after_a_wrong_assumption),
        TEST(acceptance_ends_at_the_same_operation),
        TEST(a_version_that_is_often_repeated_waits),
        TEST(bodies_have_all_the_forms_of_functions),
        TEST(arguments_are_those_of_a_function_application),
        TEST(the_response_is_serialised_at_the_end),
        TEST(errors_have_numbers_and_texts),
        TEST(operations_check_their_arguments_at_once),
        TEST(operations_answer_in_callbacks),
        TEST(queries_in_javascript_work_on_pages),
        TEST(triggers_see_request_and_response),
        TEST(logs_are_kept_if_they_are_wanted),
        TEST(nothing_survives_a_run),
        TEST(operations_after_the_soft_limit_are_not_accepted),
        TEST(an_operation_may_end_the_run),
        TEST(a_job_may_run_several_scripts),
    };
    return cmocka_run_group_tests(tests, open_pool, close_pool);
}
