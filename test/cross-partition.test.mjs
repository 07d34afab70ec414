// Queries over several partitions: which ones are visited, what is refused, and clients that merge rows by
// themselves and begin again in the middle.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { fill, newContainer } from "./lib/items.mjs";
import { askAll, askPage, explain, resultsOf } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const { database } = await clientOf(server).databases.create({ id: "cross" });

const COUNT = 400;
const KEYS = 40;
const VALUES = [null, false, true, -3, 0, 1.5, 7, 7, 7, "", "a", "b", "long ".repeat(40), undefined];
const ITEMS = Array.from({ length: COUNT }, (_, n) => ({
    id: `${n}`,
    pk: `key ${n % KEYS}`,
    sub: n % 3,
    n,
    any: VALUES[n % VALUES.length],
    two: VALUES[(n * 3) % VALUES.length],
}));
const COMPOSITE = [
    [
        { path: "/any", order: "ascending" },
        { path: "/two", order: "descending" },
    ],
];

const containers = [];
for (const [partitions, throughput] of [
    [5, 30_000],
    [25, 150_000],
]) {
    const indexingPolicy = { includedPaths: [{ path: "/*" }], compositeIndexes: COMPOSITE };
    const container = await newContainer(database, { throughput }, { indexingPolicy });
    await fill(container, ITEMS);
    containers.push([partitions, container]);
}

function onEach(name, work) {
    for (const [partitions, container] of containers)
        test(`${name} (${partitions} partitions)`, (t) => work(container, partitions, t));
}

/** The partition of a key: its session token names it. */
async function partitionOf(container, key) {
    const answer = await askPage(server, container, "SELECT VALUE 1 FROM c", { key });
    return answer.headers["x-ms-session-token"].split(":")[0];
}

const partitionsOf = async (container, keys) =>
    new Set(await Promise.all(keys.map((key) => partitionOf(container, key)))).size;

/* ---- routing ---- */

onEach("a query visits the partitions of the keys that its filter names", async (container, partitions) => {
    const keys = (...numbers) => numbers.map((n) => `key ${n}`);
    const all = Array.from({ length: 12 }, (_, i) => i);
    for (const [condition, named] of [
        ["c.pk IN ('key 1', 'key 2', 'key 3')", keys(1, 2, 3)],
        ["c.pk = 'key 1' OR c.pk = 'key 2' AND c.n < 100", keys(1, 2)],
        ["(c.pk = 'key 1' OR c.pk = 'key 2') AND (c.pk = 'key 2' OR c.pk = 'key 3')", keys(2)],
        ["NOT (c.pk != 'key 5')", keys(5)],
        ["NOT (c.pk NOT IN ('key 5', 'key 6'))", keys(5, 6)],
        ["ARRAY_CONTAINS(@list, c.pk)", keys(...all)],
        ["c.pk IN (@one, 'key 9') AND c.n >= 0", keys(8, 9)],
        ["EXISTS(SELECT VALUE 1 FROM c.n x WHERE c.pk = 'key 4')", keys(4)],
        ["c.pk IN ('nobody', 'key 3')", ["nobody", "key 3"]],
    ]) {
        const parameters = [
            { name: "@list", value: keys(...all) },
            { name: "@one", value: "key 8" },
        ];
        const isCut = condition.includes("c.n < 100"); // of 'key 2' alone
        const isWanted = ({ pk, n }) => named.includes(pk) && !(isCut && pk === "key 2" && n >= 100);
        const expected = ITEMS.filter(isWanted);
        const visited = await partitionsOf(container, named);
        for (const query of [
            `SELECT VALUE c.n FROM c WHERE ${condition}`,
            `SELECT VALUE c.n FROM c WHERE ${condition} ORDER BY c.n DESC`,
            `SELECT DISTINCT VALUE c.n FROM c WHERE ${condition}`,
        ]) {
            const told = await explain(server, container, { query, parameters }, { size: -1 });
            assert.deepEqual([told.partitionsVisited, told.partitionsTotal], [visited, partitions], query);
            assert.deepEqual(new Set(told.rows), new Set(expected.map(({ n }) => n)), query);
            const pages = await askAll(server, container, { query, parameters }, { size: 7 });
            assert.deepEqual(new Set(pages), new Set(told.rows), query);
            assert.equal(pages.length, told.rows.length, query);
        }
        const count = { query: `SELECT VALUE COUNT(1) FROM c WHERE ${condition}`, parameters };
        const told = await explain(server, container, count);
        assert.deepEqual(told.rows, [expected.length], condition);
        assert.equal(told.partitionsVisited, visited, condition);
    }
});

onEach("every visit is paid for", async (container, partitions) => {
    const charge = async (condition) =>
        (await explain(server, container, `SELECT * FROM c WHERE ${condition}`, { size: -1 })).charge;
    const one = await charge("c.pk = 'nobody'");
    const all = await charge("c.none = 1");
    const none = await charge("c.pk = 'nobody' AND c.pk = 'key 1'");
    assert.ok(all > one + partitions / 4, `${all} and ${one} units`);
    assert.ok(none <= one && none > 0, `${none} and ${one} units`);
});

onEach("what contradicts itself is nowhere, and there is nothing of it", async (container) => {
    for (const [query, expected] of [
        ["SELECT * FROM c WHERE c.pk = 'key 1' AND c.pk = 'key 2'", []],
        ["SELECT * FROM c WHERE c.pk IN ('key 1') AND c.pk IN ('key 2') ORDER BY c.n", []],
        ["SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'key 1' AND c.pk = 'key 2'", [0]],
        ["SELECT COUNT(1) AS n, SUM(c.n) AS s, AVG(c.n) AS a FROM c WHERE false", [{ n: 0, s: 0 }]],
        ["SELECT c.pk, COUNT(1) AS n FROM c WHERE false GROUP BY c.pk", []],
        ["SELECT DISTINCT VALUE c.pk FROM c WHERE c.pk = undefined", []],
        ["SELECT VALUE 1 + 1", [2]],
    ]) {
        const told = await explain(server, container, query);
        assert.deepEqual(told.rows, expected, query);
        assert.equal(told.partitionsVisited, 0, query);
        const alone = { "x-ms-documentdb-query-enablecrosspartition": "false" };
        assert.deepEqual(await askAll(server, container, query, { headers: alone }), expected, query);
        const { resources } = await container.items.query(query).fetchAll();
        assert.deepEqual(resources, expected, query);
    }
});

test("several values of each path of a hierarchical key are all their combinations", async () => {
    const partitionKey = { paths: ["/pk", "/sub"], kind: "MultiHash", version: 2 };
    const container = await newContainer(database, { throughput: 150_000 }, { partitionKey });
    await fill(container, ITEMS);
    const pairs = (first, second) => first.flatMap((pk) => second.map((sub) => [pk, sub]));
    for (const [condition, keys] of [
        ["c.pk = 'key 1'", [["key 1"]]],
        ["c.pk IN ('key 1', 'key 2')", [["key 1"], ["key 2"]]],
        ["c.sub = 1 AND c.pk IN ('key 1', 'key 2')", pairs(["key 1", "key 2"], [1])],
        ["c.sub IN (1, 2) AND c.pk IN ('key 1', 'key 2')", pairs(["key 1", "key 2"], [1, 2])],
        ["c.pk = 'key 1' AND c.sub = 1 OR c.pk = 'key 2' AND c.sub = 2", [["key 1", 1], ["key 2", 2]]],
        ["c.pk = 'key 1' AND c.sub > 1", [["key 1"]]],
    ]) {
        const query = `SELECT VALUE c.n FROM c WHERE ${condition}`;
        const told = await explain(server, container, query, { size: -1 });
        let expected = 0;
        const names = new Set();
        for (const key of keys) {
            const answer = await askPage(server, container, query, { key, size: -1 });
            expected += resultsOf(answer).length;
            for (const part of answer.headers["x-ms-session-token"].split(",")) names.add(part.split(":")[0]);
        }
        assert.equal(told.results, expected, condition);
        assert.ok(expected > 0, condition);
        assert.equal(told.partitionsVisited, names.size, condition);
    }
});

/* ---- refusals ---- */

onEach("a query without permission does not cross partitions", async (container) => {
    const headers = { "x-ms-documentdb-query-enablecrosspartition": "false" };
    for (const [query, isAllowed] of [
        ["SELECT * FROM c", false],
        ["SELECT * FROM c WHERE c.n = 1", false],
        ["SELECT * FROM c WHERE c.pk IN ('key 1', 'key 2')", false],
        ["SELECT * FROM c WHERE c.pk > 'key 1'", false],
        ["SELECT * FROM c WHERE c.pk = 'key 1'", true],
        ["SELECT * FROM c WHERE c.pk IN ('key 1', 'key 1')", true],
        ["SELECT * FROM c WHERE c.pk = 0", true],
        ["SELECT * FROM c WHERE c.pk = 'key 1' OR (c.pk = 'key 1' AND c.n = 1) ORDER BY c.n", true],
    ]) {
        const answer = await askPage(server, container, query, { headers });
        if (isAllowed) resultsOf(answer);
        else errorAnswer(answer, 400, "BadRequest", { message: /Cross partition query is required but disabled/ });
    }
});

onEach("a client that wants to merge is sent to its plan", async (container) => {
    const headers = { "x-orrery-cross-partition": "client" };
    for (const [query, isAnswered] of [
        ["SELECT * FROM c", true],
        ["SELECT c.n AS x FROM c WHERE c.n < 10", true],
        ["SELECT * FROM c WHERE c.pk = 'key 1' ORDER BY c.n", true],
        ["SELECT * FROM c ORDER BY c.n", false],
        ["SELECT TOP 5 * FROM c", false],
        ["SELECT * FROM c OFFSET 1 LIMIT 2", false],
        ["SELECT VALUE SUM(c.n) FROM c", false],
        ["SELECT DISTINCT VALUE c.pk FROM c", false],
        ["SELECT c.sub, COUNT(1) AS n FROM c GROUP BY c.sub", false],
    ]) {
        resultsOf(await askPage(server, container, query));
        resultsOf(await askPage(server, container, query, { headers: { "x-orrery-cross-partition": "server" } }));
        resultsOf(await askPage(server, container, query, { headers, key: "key 1" }));
        const answer = await askPage(server, container, query, { headers });
        if (isAnswered) {
            resultsOf(answer);
            continue;
        }
        const message = /^The provided cross partition query can not be directly served by the gateway/;
        errorAnswer(answer, 400, "BadRequest", { substatus: 1004, message });
        const plan = JSON.parse(answer.json.additionalErrorInfo);
        assert.equal(plan.partitionedQueryExecutionInfoVersion, 2);
        assert.deepEqual(plan.queryRanges, [{ min: "", max: "FF", isMinInclusive: true, isMaxInclusive: false }]);
    }
    const aggregates = "SELECT VALUE COUNT(1) + 1 FROM c";
    for (const options of [{}, { headers }]) {
        const refusal = await askPage(server, container, aggregates, options);
        errorAnswer(refusal, 400, "BadRequest", { message: /Compositions of aggregates and other expressions/ });
    }
    const unknown = await askPage(server, container, "SELECT * FROM c", {
        headers: { "x-orrery-cross-partition": "sometimes" },
    });
    errorAnswer(unknown, 400, "BadRequest", { message: /must be 'server' or 'client', not 'sometimes'/ });
});

/* ---- clients that merge ---- */

const TYPES = ["undefined", "object", "boolean", "number", "string"]; // null is an object

function compareValues(a, b) {
    const order = TYPES.indexOf(typeof a) - TYPES.indexOf(typeof b);
    if (order !== 0 || a === b) return order;
    return a < b ? -1 : 1;
}

const keysOf = (row) => row.orderByItems.map(({ item }) => item);

function compareRows(a, b, directions) {
    for (const [i, direction] of directions.entries()) {
        const order = compareValues(keysOf(a)[i], keysOf(b)[i]);
        if (order !== 0) return direction * order;
    }
    return 0;
}

const numberOf = ({ _rid }) => Buffer.from(_rid.replaceAll("-", "/"), "base64").readBigUInt64LE(8);

/** The rows of one range, page by page, as a client asks for them. */
async function readRange(container, { id }, query, resumeFilter, size) {
    const rows = [];
    let token;
    let info;
    do {
        const headers = { "x-ms-documentdb-partitionkeyrangeid": id };
        const answer = await askPage(server, container, { query, resumeFilter }, { headers, token, size });
        rows.push(...resultsOf(answer, size));
        info = JSON.parse(answer.headers["x-ms-cosmos-query-execution-info"]);
        assert.equal(info.reverseRidEnabled, false);
        token = answer.headers["x-ms-continuation"];
    } while (token);
    return { rows, isReversed: info.reverseIndexScan };
}

/** What the .NET SDK does: rows of equal keys come from the leftmost range first. */
async function merge(container, ranges, query, directions, last) {
    const all = [];
    for (const [at, range] of ranges.entries()) {
        let filter;
        if (last !== undefined) {
            const value = keysOf(last.row).map((key) => (key === undefined ? [] : key));
            if (at < last.at) filter = { value, exclude: true };
            else if (at === last.at) filter = { value, rid: last.row._rid, exclude: false };
            else filter = { value, exclude: false };
        }
        let { rows, isReversed } = await readRange(container, range, query, filter, 13);
        if (last !== undefined && at === last.at) {
            // Up to the row itself everything was returned before.
            const isDone = (row) => {
                if (compareRows(row, last.row, directions) !== 0) return false;
                const [number, lastNumber] = [numberOf(row), numberOf(last.row)];
                return number === lastNumber || number > lastNumber === isReversed;
            };
            const skipped = rows.filter(isDone).length;
            assert.ok(skipped <= 1, `${skipped} rows came again`);
            rows = rows.filter((row) => !isDone(row));
        }
        all.push(...rows.map((row) => ({ row, at })));
    }
    return all.sort((a, b) => compareRows(a.row, b.row, directions) || a.at - b.at);
}

onEach("a client that merges goes on after any row", async (container, partitions) => {
    const ranges = (await container.readPartitionKeyRanges().fetchAll()).resources.sort((a, b) =>
        a.minInclusive < b.minInclusive ? -1 : 1,
    );
    assert.equal(ranges.length, partitions);
    const one = (order) =>
        `SELECT c._rid, [{"item": c.any}] AS orderByItems, c.n AS payload
         FROM c WHERE (true) ORDER BY c.any ${order}`;
    const two = (first, second) =>
        `SELECT c._rid, [{"item": c.any}, {"item": c.two}] AS orderByItems, c.n AS payload
         FROM c WHERE ((c.n >= 20) AND (true)) ORDER BY c.any ${first}, c.two ${second}`;
    for (const [query, directions] of [
        [one("ASC"), [1]],
        [one("DESC"), [-1]],
        [two("ASC", "DESC"), [1, -1]],
        [two("DESC", "ASC"), [-1, 1]],
    ]) {
        const whole = await merge(container, ranges, query, directions);
        assert.equal(new Set(whole.map(({ row }) => row.payload)).size, whole.length);
        const count = ITEMS.filter(({ n }) => directions.length === 1 || n >= 20).length;
        assert.equal(whole.length, count);
        const step = partitions > 5 ? 61 : 17;
        for (let i = 0; i < whole.length; i += step) {
            const rest = await merge(container, ranges, query, directions, whole[i]);
            assert.deepEqual(
                rest.map(({ row }) => row.payload),
                whole.slice(i + 1).map(({ row }) => row.payload),
                `${query} after row ${i}: ${JSON.stringify(whole[i])}`,
            );
        }
    }
});

onEach("the server itself begins in the middle of an order over all partitions", async (container) => {
    const query = 'SELECT c._rid, [{"item": c.any}] AS orderByItems, c.n FROM c ORDER BY c.any DESC';
    const whole = await askAll(server, container, query, { size: 50 });
    for (const at of [0, 1, 57, 200, 399]) {
        const value = keysOf(whole[at]).map((key) => (key === undefined ? [] : key));
        const resumeFilter = { value, rid: whole[at]._rid, exclude: false };
        const rest = await askAll(server, container, { query, resumeFilter }, { size: 33 });
        assert.deepEqual(rest, whole.slice(at));
    }
});

onEach("a filter that says nothing sensible is refused", async (container) => {
    const [{ _rid }] = resultsOf(await askPage(server, container, "SELECT TOP 1 * FROM c"));
    const ordered = "SELECT * FROM c ORDER BY c.n";
    for (const [query, resumeFilter] of [
        ["SELECT * FROM c", { value: [1] }],
        [ordered, []],
        [ordered, "x"],
        [ordered, {}],
        [ordered, { value: [] }],
        [ordered, { value: [1, 2] }],
        [ordered, { value: [[1]] }],
        [ordered, { value: [{}] }],
        [ordered, { value: [{ type: "array", low: 1, high: 2 }] }],
        [ordered, { value: [1], rid: "nonsense" }],
        [ordered, { value: [1], rid: _rid.slice(0, 12) }],
        [ordered, { value: [1], exclude: "yes" }],
    ]) {
        const answer = await askPage(server, container, { query, resumeFilter });
        errorAnswer(answer, 400, "BadRequest", { message: /resumeFilter/ });
    }
    const good = await askPage(server, container, { query: ordered, resumeFilter: { value: [398], rid: _rid } });
    assert.ok(resultsOf(good).length <= 2);
});
