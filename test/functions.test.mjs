// User-defined functions in queries: where they may stand, arguments, results, errors, limits, pages and partitions.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, pagesOf, refused } from "./lib/check.mjs";
import { times } from "./lib/definition.mjs";
import { callItems, fill, newContainer, SIZES } from "./lib/items.mjs";
import { askAll, askPage, resultsOf } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { execute, flow, storeRaw, userFunction, withFunction } from "./lib/scripts.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "functions" });

const ITEMS = times(300, (i) => ({ id: `${i}`, pk: `k${i % 40}`, n: i, cost: i * 10, tags: [`t${i % 3}`, "all"], ...(i % 10 === 0 && { rare: i }) }));

const FUNCTIONS = {
    tax: (cost) => cost * 0.05,
    twice: "function (x) { return 2 * x; }",
    isEven: (n) => n % 2 === 0,
    add: (a, b, c) => a + b + (c === undefined ? 0 : c),
    count: "function () { return arguments.length; }",
    one: "function () { return 1; }",
    same: (x) => x,
    typed: (x) => (Array.isArray(x) ? "array" : x === null ? "null" : typeof x),
    maybe: (x) => (x > 5 ? x : undefined),
    onlyMatch: (a, b) => (a === b ? true : undefined),
    failing: (x) => {
        throw new Error(32766, "refused " + x);
    },
};

const sizes = [];
for (const size of SIZES) {
    const container = await newContainer(database, size);
    await fill(container, ITEMS);
    for (const [id, body] of Object.entries(FUNCTIONS)) await userFunction(container, body, id);
    sizes.push([`${size.partitions} partitions`, container]);
}
const [[, container]] = sizes;

function onEach(name, work) {
    for (const [size, one] of sizes) test(`${name} (${size})`, (t) => work(one, t));
}

const numbers = (list) => [...list].sort((a, b) => a - b);
const fetch = async (container, query, options) => (await container.items.query(query, options).fetchAll()).resources;
const one = (expression) => askAll(server, container, `SELECT VALUE ${expression} FROM c WHERE c.id = '7'`);

// --- Where they stand

onEach("a function computes what a query selects", async (container) => {
    const query = {
        query: "SELECT t.id, udf.tax(t.cost) AS total FROM t WHERE t.cost > @p",
        parameters: [{ name: "@p", value: 2950 }],
    };
    const found = await fetch(container, query);
    assert.deepEqual(found.sort((a, b) => a.total - b.total), [
        { id: "296", total: 148 },
        { id: "297", total: 148.5 },
        { id: "298", total: 149 },
        { id: "299", total: 149.5 },
    ]);
});

onEach("a function is a condition that holds only if it is true", async (container) => {
    const ids = async (condition) => numbers(await fetch(container, `SELECT VALUE c.n FROM c WHERE ${condition}`));
    assert.deepEqual(await ids("udf.isEven(c.n) AND c.n < 6"), [0, 2, 4]);
    assert.deepEqual(await ids("NOT udf.isEven(c.n) AND c.n < 6"), [1, 3, 5]);
    assert.deepEqual(await ids("udf.isEven(c.n) = true AND c.n BETWEEN 10 AND 12"), [10, 12]);
    assert.deepEqual(await ids("udf.onlyMatch(c.id, '17') = true"), [17]);
    assert.deepEqual(await ids("udf.twice(c.n) = 40"), [20]);
    assert.deepEqual(await ids("(udf.twice(c.n) + 2) = 6"), [2]);
    assert.deepEqual(await ids("udf.same(c.n)"), [], "1 is not true");
    assert.deepEqual(await ids("udf.maybe(c.n) < 9"), [6, 7, 8], "undefined is not less");
    assert.deepEqual(await ids("udf.isEven(c.n) AND udf.one() = 1 AND c.n < 3"), [0, 2]);
    assert.deepEqual(await ids("c.n < 3 OR udf.twice(c.n) = 598"), [0, 1, 2, 299]);
    assert.deepEqual(await ids("udf.twice(udf.twice(c.n)) = 8"), [2]);
    assert.deepEqual(await ids("c.n IN (udf.twice(3), udf.twice(4))"), [6, 8]);
});

onEach("functions stand in joins, subqueries, aggregates, groups and sorted queries", async (container) => {
    const ask = (text) => askAll(server, container, text);
    assert.deepEqual(await ask("SELECT VALUE COUNT(1) FROM c WHERE udf.isEven(c.n)"), [150]);
    assert.deepEqual(await ask("SELECT VALUE SUM(udf.twice(c.n)) FROM c WHERE c.n < 4"), [12]);
    assert.deepEqual(await ask("SELECT VALUE udf.twice(c.n) FROM c WHERE udf.isEven(c.n) AND c.n < 7 ORDER BY c.n DESC"), [12, 8, 4, 0]);
    assert.deepEqual((await ask("SELECT VALUE udf.same(t) FROM c JOIN t IN c.tags WHERE c.n = 4")).sort(), ["all", "t1"]);
    assert.deepEqual(await ask("SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags WHERE udf.onlyMatch(t, 't0') = true"), [100]);
    assert.deepEqual(await ask("SELECT VALUE x FROM c JOIN (SELECT VALUE udf.twice(c.n)) x WHERE x = 10"), [10]);
    assert.deepEqual(await ask("SELECT VALUE ARRAY(SELECT VALUE udf.same(t) FROM t IN c.tags) FROM c WHERE c.n = 3"), [["t0", "all"]]);
    assert.deepEqual(await ask("SELECT TOP 2 VALUE udf.twice(c.n) FROM c ORDER BY c.n"), [0, 2]);
    const groups = await ask("SELECT udf.isEven(c.n) AS even, COUNT(1) AS count FROM c GROUP BY udf.isEven(c.n)");
    assert.deepEqual(groups.sort((a, b) => Number(a.even) - Number(b.even)), [
        { even: false, count: 150 },
        { even: true, count: 150 },
    ]);
});

test("a function needs no FROM, and no arguments", async () => {
    assert.deepEqual(await fetch(container, "SELECT udf.one() AS x"), [{ x: 1 }]);
    assert.deepEqual(await fetch(container, "SELECT VALUE udf.twice(21)"), [42]);
    assert.deepEqual(await one("udf.count()"), [0]);
    assert.deepEqual(await one("udf.count(1, 'a', null)"), [3]);
    assert.deepEqual(await one("udf.add(1, 2)"), [3], "a parameter that is not given is undefined");
    assert.deepEqual(await one("udf.add(1, 2, 3)"), [6]);
    assert.deepEqual(await one("udf.add(c.n, c.n) + udf.one()"), [15]);
});

// --- Values

test("arguments are JSON values", async () => {
    for (const [argument, type] of [
        ["'x'", "string"],
        ["1.5", "number"],
        ["true", "boolean"],
        ["null", "null"],
        ["[1, 2]", "array"],
        ["{'a': 1}", "object"],
        ["c.tags", "array"],
        ["c", "object"],
        ["c.n > 3", "boolean"],
    ])
        assert.deepEqual(await one(`udf.typed(${argument})`), [type], argument);
    assert.deepEqual(await one("udf.same({'a': [1, {'b': null}], 'c': c.n})"), [{ a: [1, { b: null }], c: 7 }]);
    assert.deepEqual(await one("udf.same('ünï 😀 \\u2028')"), ["ünï 😀 \u2028"]);
    const [item] = await one("udf.same(c)");
    assert.equal(item.id, "7");
    const withParameters = { query: "SELECT VALUE udf.add(@a, @b)", parameters: [{ name: "@a", value: 1 }, { name: "@b", value: 2 }] };
    assert.deepEqual(await fetch(container, withParameters), [3]);
});

onEach("with an argument that is undefined a function is not called", async (container) => {
    const called = await userFunction(container, () => {
        throw new Error(99, "called");
    });
    assert.deepEqual(await askAll(server, container, `SELECT VALUE udf.${called}(c.absent) FROM c`), []);
    assert.deepEqual(await askAll(server, container, `SELECT c.n, udf.${called}(1, c.absent) AS x FROM c WHERE c.n = 1`), [{ n: 1 }]);
    assert.deepEqual(await askAll(server, container, `SELECT VALUE c.n FROM c WHERE udf.${called}(c.absent)`), []);
    const rare = numbers(await askAll(server, container, "SELECT VALUE udf.twice(c.rare) FROM c WHERE c.n < 25"));
    assert.deepEqual(rare, [0, 20, 40]);
});

test("results are what JSON makes of them", async () => {
    for (const [expression, expected] of [
        ["'text'", "text"],
        ["0", 0],
        ["-0.5", -0.5],
        ["false", false],
        ["null", null],
        ["[1, [2]]", [1, [2]]],
        ["({ b: 1, a: { c: null } })", { b: 1, a: { c: null } }],
        ["({ a: undefined, f: function () {}, b: 1 })", { b: 1 }],
        ["[undefined, 1]", [null, 1]],
        ["new Date(0)", "1970-01-01T00:00:00.000Z"],
        ["'\\u2028 😀'", "\u2028 😀"],
        ["1e300", 1e300],
    ])
        await withFunction(container, `function () { return ${expression}; }`, async (id) => {
            assert.deepEqual(await one(`udf.${id}()`), [expected], expression);
        });
    for (const expression of ["undefined", "NaN", "Infinity", "function () {}", "Symbol('s')"])
        await withFunction(container, `function () { return ${expression}; }`, async (id) => {
            assert.deepEqual(await one(`udf.${id}()`), [], expression);
            assert.deepEqual(await one(`{'n': c.n, 'x': udf.${id}()}`), [{ n: 7 }], expression);
        });
});

test("a function has the language, and neither context nor data", async () => {
    const body = `function (x) {
        const { a = 5, ...rest } = { b: 2, c: 3 };
        undeclared = [...new Set([1, 1, 2])];
        return [a, rest, undeclared, \`\${x}!\`, typeof getContext, typeof __, typeof setTimeout, typeof require, /(?<=a)b/.test("ab")];
    }`;
    const id = await userFunction(container, body);
    assert.deepEqual(await one(`udf.${id}('x')`), [[5, { b: 2, c: 3 }, [1, 2], "x!", "undefined", "undefined", "undefined", "undefined", true]]);
    const helped = await userFunction(container, "function main(x) { return helper(x); }\nfunction helper(x) { return x + 1; }");
    assert.deepEqual(await one(`udf.${helped}(c.n)`), [8]);
    const arrow = await userFunction(container, "(x) => x * 3;");
    assert.deepEqual(await one(`udf.${arrow}(c.n)`), [21]);
});

test("names of functions are those of the resources, to the letter", async () => {
    for (const text of ["udf.Twice(1)", "udf.none(1)", "UDF.twice(1)", "twice(1)"])
        errorAnswer(await askPage(server, container, `SELECT VALUE ${text} FROM c`), 400, "BadRequest");
    const answer = await askPage(server, container, "SELECT VALUE udf.none(c.n) FROM c");
    assert.match(answer.json.message, /SC2003/);
    await storeRaw(server, container, "udfs", { id: "not a name", body: "function () {}" });
    const other = await newContainer(database);
    errorAnswer(await askPage(server, other, "SELECT VALUE udf.twice(1)"), 400, "BadRequest");
    const id = await userFunction(container, "function () { return 1; }");
    assert.deepEqual(await one(`udf.${id}()`), [1]);
    await container.scripts.userDefinedFunction(id).replace({ id, body: "function () { return 2; }" });
    assert.deepEqual(await one(`udf.${id}()`), [2]);
    await container.scripts.userDefinedFunction(id).delete();
    errorAnswer(await askPage(server, container, `SELECT VALUE udf.${id}()`), 400, "BadRequest");
});

// --- Failures

onEach("a function that throws fails the query with its number", async (container) => {
    for (const [body, substatus] of [
        ["function (n) { throw new Error(32766, 'x'); }", 32766],
        ["function (n) { throw new Error('x'); }", 0],
        ["function (n) { throw 'text'; }", 0],
        ["function (n) { return n.x.y; }", 0],
        ["function (n) { (function f() { f(); })(); }", 0],
        ["function (n) { if (n === 150) throw new Error(77, 'only one'); return n; }", 77],
        ["function (n) { no JavaScript }", 65535],
    ])
        await withFunction(container, body, async (id) => {
            for (const text of [`SELECT VALUE udf.${id}(c.n) FROM c`, `SELECT * FROM c WHERE udf.${id}(c.n) = 1`])
                errorAnswer(await askPage(server, container, text, { size: -1 }), 400, "BadRequest", { substatus: substatus || undefined });
        });
    await refused(container.items.query("SELECT VALUE udf.failing(c.n) FROM c").fetchAll(), 400, { substatus: 32766 });
    assert.deepEqual(await askAll(server, container, "SELECT VALUE udf.one() FROM c WHERE c.n = 1"), [1], "the next query is well");
});

onEach("a function that would throw does no harm where its value is not needed", async (container) => {
    const found = await askAll(server, container, "SELECT VALUE c.n FROM c WHERE c.n < 2 AND (c.n >= 0 OR udf.failing(c.n))");
    assert.deepEqual(numbers(found), [0, 1]);
    assert.deepEqual(await askAll(server, container, "SELECT VALUE c.n < 100 ? 1 : udf.failing(c.n) FROM c WHERE c.n = 5"), [1]);
    assert.deepEqual(await askAll(server, container, "SELECT VALUE udf.failing(c.n) FROM c WHERE c.n > 1000"), [], "without rows it never runs");
});

test("a query has at most ten calls of functions in its text", async () => {
    const calls = (count) => `SELECT VALUE ${times(count, () => "udf.one()").join(" + ")}`;
    assert.deepEqual(await fetch(container, calls(10)), [10]);
    const answer = await askPage(server, container, calls(11));
    const message = /SC3005.*The SQL query exceeded the maximum number of user-defined function calls\. The allowed limit is 10\./s;
    errorAnswer(answer, 400, "BadRequest", { message });
});

test("a function that does not end is stopped, and others go on meanwhile", async () => {
    const endless = await userFunction(container, "function () { for (;;); }");
    const running = askPage(server, container, `SELECT VALUE udf.${endless}() FROM c`);
    let isOver = false;
    void running.finally(() => (isOver = true));
    let rounds = 0;
    for (; !isOver; rounds++) {
        assert.deepEqual(await one("udf.twice(c.n)"), [14]);
        assert.equal((await callItems(server, container, { id: "7", key: "k7" })).status, 200);
    }
    assert.ok(rounds > 1, "others went on");
    const { status, text } = await running;
    assert.ok(status === 408 || status === 403, text);
    assert.deepEqual(await one("udf.twice(c.n)"), [14]);
});

test("a function that takes much memory fails its query", async () => {
    const bomb = await userFunction(container, "function () { const list = []; for (;;) list.push(new Array(10000).fill(1.5)); }");
    const { status, text } = await askPage(server, container, `SELECT VALUE udf.${bomb}() FROM c`);
    assert.ok(status === 400 || status === 408 || status === 403, text);
    assert.deepEqual(await one("udf.twice(c.n)"), [14]);
});

test("a slow function is blocked after it was slow too often, and not before the seventh time", async () => {
    const body = `function () { const begun = Date.now(); while (Date.now() < begun + 400); return true; }`;
    const slow = await userFunction(container, body);
    for (let i = 0; i < 10; i++)
        assert.deepEqual(await askAll(server, container, `SELECT * FROM c WHERE c.n > 1000 AND udf.${slow}()`), []);
    let answer;
    let done = 0;
    do answer = await askPage(server, container, `SELECT VALUE udf.${slow}() FROM c WHERE c.id = '7'`);
    while (answer.status === 200 && done++ < 60);
    const message = new RegExp(`The script with id '${slow}' is blocked for execution because it has violated its allowed resources limit several times\\.`);
    errorAnswer(answer, 403, "Forbidden", { message });
    assert.ok(done >= 6, `blocked after ${done} times`);
    await container.scripts.userDefinedFunction(slow).replace({ id: slow, body: "function () { return 1; }" });
    assert.deepEqual(await one(`udf.${slow}()`), [1]);
});

// --- Pages and partitions

onEach("pages go on, each with its part", async (container) => {
    for (const size of [1, 7, 50, 1000]) {
        const text = "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.isEven(c.n)";
        const found = numbers(await askAll(server, container, text, { size }));
        assert.deepEqual(found, times(150, (i) => 4 * i), `pages of ${size}`);
    }
    const sorted = await askAll(server, container, "SELECT VALUE c.n FROM c WHERE udf.isEven(c.n) ORDER BY c.n DESC", { size: 13 });
    assert.deepEqual(sorted, times(150, (i) => 298 - 2 * i));
    const distinct = await askAll(server, container, "SELECT DISTINCT VALUE udf.isEven(c.n) FROM c", { size: 1 });
    assert.deepEqual(distinct.sort(), [false, true]);
});

onEach("the SDK merges partitions of queries with functions", async (container) => {
    const query = "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.isEven(c.n)";
    for (const options of [{ maxItemCount: 20 }, { maxItemCount: 20, forceQueryPlan: true }, { maxItemCount: 20, maxDegreeOfParallelism: 4 }]) {
        const pages = await pagesOf(container.items.query(query, options), 20);
        assert.deepEqual(numbers(pages.flat()), times(150, (i) => 4 * i), JSON.stringify(options));
    }
    const sorted = await fetch(container, "SELECT c.n, udf.twice(c.n) AS x FROM c WHERE udf.isEven(c.n) ORDER BY c.n", { forceQueryPlan: true });
    assert.deepEqual(sorted, times(150, (i) => ({ n: 2 * i, x: 4 * i })));
    const sum = await fetch(container, "SELECT VALUE SUM(udf.twice(c.n)) FROM c", { forceQueryPlan: true });
    assert.deepEqual(sum, [299 * 300]);
});

onEach("one partition key alone is asked", async (container) => {
    const found = await fetch(container, "SELECT VALUE udf.twice(c.n) FROM c", { partitionKey: "k3" });
    assert.deepEqual(numbers(found), [6, 86, 166, 246, 326, 406, 486, 566]);
});

test("a thousand items with a function fit one page", async () => {
    const large = await newContainer(database);
    await fill(large, times(1000, (i) => ({ id: `${i}`, pk: "one", n: i })));
    const id = await userFunction(large, (n) => n + 1);
    const answer = await askPage(server, large, `SELECT VALUE udf.${id}(c.n) FROM c`, { size: 1000, key: "one" });
    assert.deepEqual(numbers(resultsOf(answer)), times(1000, (i) => i + 1));
    assert.equal(answer.headers["x-ms-continuation"], undefined);
});

test("a function keeps nothing from one query to the next", async () => {
    const body = "function () { counter = (typeof counter === 'undefined' ? 0 : counter) + 1; return counter; }";
    const id = await userFunction(container, body);
    for (let i = 0; i < 3; i++) assert.deepEqual(await one(`udf.${id}()`), [1]);
    const poison = await userFunction(container, "function () { Array.prototype.map = null; Math.max = () => 5; JSON.stringify = () => 'x'; return [1]; }");
    assert.deepEqual(await one(`udf.${poison}()`), [[1]]);
    const clean = await userFunction(container, "function () { return [[1].map(String), Math.max(1, 9)]; }");
    assert.deepEqual(await one(`udf.${clean}()`), [[["1"], 9]]);
});

test("the plan of a query with a function is an ordinary one", async () => {
    const answer = await callItems(server, container, {
        method: "POST",
        headers: {
            "content-type": "application/query+json",
            "x-ms-cosmos-is-query-plan-request": "True",
            "x-ms-cosmos-supported-query-features": "Aggregate,Distinct,OrderBy,OffsetAndLimit,Top",
            "x-ms-cosmos-query-version": "1.4",
            "x-ms-documentdb-query-enablecrosspartition": "True",
        },
        body: { query: "SELECT udf.func(1) AS x FROM Root r" },
    });
    assert.equal(answer.status, 200, answer.text);
    const { queryInfo, queryRanges } = answer.json;
    assert.equal(queryInfo.rewrittenQuery ?? "", "");
    assert.deepEqual([queryInfo.orderBy, queryInfo.aggregates, queryInfo.groupByExpressions], [[], [], []]);
    assert.equal(queryRanges.length, 1);
    assert.deepEqual([queryRanges[0].min, queryRanges[0].max], ["", "FF"]);
});

test("functions add to the charge, and to the metrics", async () => {
    const metrics = { "x-ms-documentdb-populatequerymetrics": "True" };
    const plain = await askPage(server, container, "SELECT VALUE c.n + 1 FROM c", { size: 1000, headers: metrics });
    const called = await askPage(server, container, "SELECT VALUE udf.twice(c.n) FROM c", { size: 1000, headers: metrics });
    const charge = ({ headers }) => Number(headers["x-ms-request-charge"]);
    assert.ok(charge(called) > charge(plain), `${charge(called)} and ${charge(plain)} RU`);
    const timeOf = ({ headers }) => Number(/userFunctionExecuteTimeInMs=([0-9.]+)/i.exec(headers["x-ms-documentdb-query-metrics"])[1]);
    assert.equal(timeOf(plain), 0);
    assert.ok(timeOf(called) > 0);
});

test("procedures use functions in their queries", async () => {
    const body = flow(async ({ call, self }) => (await call("queryDocuments", self, "SELECT VALUE udf.twice(c.n) FROM c WHERE c.n < 50"))[0]);
    assert.deepEqual(numbers(await execute(container, "k3", body)), [6, 86]);
});

test("functions outlive a restart, and their pages go on after it", async (t) => {
    const own = await startServer(t, { args: ["--durability", "sync"] });
    const made = await clientOf(own).databases.create({ id: "own" });
    const kept = await newContainer(made.database);
    await fill(kept, times(20, (i) => ({ id: `${i}`, pk: "k", n: i })));
    const id = await userFunction(kept, (n) => n + 1);
    const text = `SELECT VALUE udf.${id}(c.n) FROM c`;
    const first = await askPage(own, kept, text, { size: 5 });
    await own.restart();
    const rest = await askPage(own, kept, text, { size: 100, token: first.headers["x-ms-continuation"] });
    assert.deepEqual(numbers([...resultsOf(first), ...resultsOf(rest)]), times(20, (i) => i + 1));
});
