// ORDER BY: the order of all values, which indexes it needs, and the service's words when one is missing.
import assert from "node:assert/strict";
import test from "node:test";

import { refused } from "./lib/check.mjs";
import { indexing, paths } from "./lib/definition.mjs";
import { eachSize, fill, newContainer, until } from "./lib/items.mjs";
import { explain } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const EXCLUDED = /The index path corresponding to the specified order-by item is excluded\./;
const NO_COMPOSITE =
    /The order by query does not have a corresponding composite index that it can be served from\./;

const server = await sharedServer({ args: ["--durability", "relaxed", "--merge", "always", "--extensions"] });
const { database } = await clientOf(server).databases.create({ id: unique("order") });

const ask = async (container, query, options) =>
    (await container.items.query(query, options).fetchAll()).resources;

/** A test of one container of each size, with such a definition and such items. */
function onEach(name, definition, items, work) {
    test(name, async (t) => {
        for (const [size, container] of await eachSize(database, definition)) {
            await fill(container, items);
            await t.test(size, () => work(container));
        }
    });
}

/** Items that are shuffled by their ids and spread over keys; `rank` is their place in the order. */
function ranked(values) {
    return values.map((x, rank) => ({ id: `${(rank * 37) % 101}`, pk: `k${rank % 7}`, rank, x }));
}

const long = "a".repeat(200);
const VALUES = [
    undefined,
    null,
    false,
    true,
    -1e308,
    -9007199254740993,
    -1.5,
    -1e-300,
    0,
    1e-300,
    0.1,
    1,
    9007199254740992,
    1e308,
    "",
    "\u0000",
    "\u0000a",
    " ",
    "A",
    "B",
    "a",
    "a\u0000",
    long,
    `${long}\u0000`,
    `${long}b`,
    `${long}b${long}`,
    `${long}c`,
    "b",
    "ø",
    "中",
    "\uffff",
    "😀", // beyond what UTF-16 orders last
    ["array"],
    { object: 1 },
];

onEach("values of all types have one order", {}, ranked(VALUES), async (container) => {
    const up = VALUES.map((_, rank) => rank);
    for (const maxItemCount of [1, 5, -1]) {
        const options = { maxItemCount };
        assert.deepEqual(await ask(container, "SELECT VALUE c.rank FROM c ORDER BY c.x", options), up);
        const down = await ask(container, "SELECT VALUE c.rank FROM c ORDER BY c.x DESC", options);
        assert.deepEqual(down, [...up].reverse());
    }
    const strings = await ask(container, "SELECT VALUE c.x FROM c WHERE IS_STRING(c.x) ORDER BY c.x");
    assert.deepEqual(strings, VALUES.filter((x) => typeof x === "string"));
    const numbers = await ask(container, "SELECT VALUE c.x FROM c WHERE c.x < 1 ORDER BY c.x DESC");
    assert.deepEqual(numbers, VALUES.filter((x) => typeof x === "number" && x < 1).reverse());
    const defined = await ask(container, "SELECT VALUE c.rank FROM c WHERE IS_DEFINED(c.x) ORDER BY c.x");
    assert.deepEqual(defined, up.slice(1));
});

onEach("a path that no item has orders nothing, and loses nothing", {}, ranked(VALUES), async (container) => {
    const found = await ask(container, "SELECT VALUE c.rank FROM c ORDER BY c.no.such");
    assert.deepEqual(found.sort((a, b) => a - b), VALUES.map((_, rank) => rank));
});

const TIES = Array.from({ length: 80 }, (_, i) => ({
    id: `${i}`,
    pk: `k${i % 7}`,
    n: i,
    same: i % 3,
    a: { b: 79 - i, "odd name": i },
}));

onEach("equal keys come once each, whatever the pages", {}, TIES, async (container) => {
    for (const maxItemCount of [1, 4, 50])
        for (const direction of ["ASC", "DESC"]) {
            const query = `SELECT c.n, c.same FROM c ORDER BY c.same ${direction}`;
            const found = await ask(container, query, { maxItemCount });
            assert.equal(new Set(found.map(({ n }) => n)).size, 80);
            const keys = found.map(({ same }) => same);
            assert.deepEqual(keys, [...keys].sort((x, y) => (direction === "ASC" ? x - y : y - x)));
        }
});

onEach("paths lead into items, and filters go along", {}, TIES, async (container) => {
    const down = TIES.map(({ n }) => n).reverse();
    for (const [end, expected] of [
        ["ORDER BY c.a.b", down],
        ['ORDER BY c.a["odd name"] DESC', down],
        ['ORDER BY c["a"]["b"]', down],
        ["WHERE c.same = 1 ORDER BY c.a.b", down.filter((n) => n % 3 === 1)],
        ["WHERE c.a.b < 10 ORDER BY c.a.b DESC", [...Array(10).keys()].map((i) => 70 + i)],
        ["WHERE c.n >= 10 AND c.n < 20 AND c.same != 0 ORDER BY c.n", [10, 11, 13, 14, 16, 17, 19]],
        ["WHERE c.n + c.a.b = 79 AND c.n > 77 ORDER BY c.n", [78, 79]],
        ["WHERE c.n = -1 ORDER BY c.n", []],
        ["WHERE c.pk = 'k3' AND c.n < 20 ORDER BY c.n DESC", [17, 10, 3]],
    ])
        assert.deepEqual(await ask(container, `SELECT VALUE c.n FROM c ${end}`), expected, end);
    const options = { partitionKey: "k3", maxItemCount: 2 };
    const ofKey = await ask(container, "SELECT VALUE c.n FROM c WHERE c.n < 20 ORDER BY c.n DESC", options);
    assert.deepEqual(ofKey, [17, 10, 3]);
});

// --- Indexes that are needed

const SPARSE = indexing({
    includedPaths: paths("/*"),
    excludedPaths: paths("/off/*", "/a/off/?"),
    compositeIndexes: [
        [{ path: "/a" }, { path: "/b" }],
        [{ path: "/a" }, { path: "/b", order: "descending" }],
        [{ path: "/a" }, { path: "/b" }, { path: "/c", order: "descending" }],
        [{ path: "/deep/x" }, { path: '/deep/"odd name"' }],
        [{ path: "/off" }, { path: "/a" }],
    ],
});
const X = [undefined, null, 1, 2, "x", [1], { y: 1 }];
const PAIRS = X.flatMap((a, i) =>
    X.map((b, k) => ({ id: `${i}-${k}`, pk: `k${k}`, a, b, c: i, off: k, deep: { x: a, "odd name": b } })),
);

/** What ORDER BY gives for keys of such places in X, each up or down. */
function inOrder(...keys) {
    const compare = (p, q) => {
        for (const [key, sign] of keys) {
            const difference = place(p[key]) - place(q[key]);
            if (difference !== 0) return sign * difference;
        }
        return 0;
    };
    return [...PAIRS].sort(compare).map(({ id }) => id);
}
const place = (value) => X.findIndex((other) => JSON.stringify(other) === JSON.stringify(value));

onEach("several keys need a composite index, up or down", SPARSE, PAIRS, async (container) => {
    for (const maxItemCount of [3, -1])
        for (const [keys, expected] of [
            ["c.a, c.b", inOrder(["a", 1], ["b", 1])],
            ["c.a DESC, c.b DESC", inOrder(["a", -1], ["b", -1])],
            ["c.a ASC, c.b DESC", inOrder(["a", 1], ["b", -1])],
            ["c.a DESC, c.b ASC", inOrder(["a", -1], ["b", 1])],
            ["c.a, c.b, c.c DESC", inOrder(["a", 1], ["b", 1])],
            ["c.a DESC, c.b DESC, c.c", inOrder(["a", -1], ["b", -1])],
            ['c.deep.x, c.deep["odd name"]', inOrder(["a", 1], ["b", 1])],
        ]) {
            const found = await ask(container, `SELECT VALUE c.id FROM c ORDER BY ${keys}`, { maxItemCount });
            assert.deepEqual(found, expected, keys);
        }
    const filtered = await ask(container, "SELECT VALUE c.id FROM c WHERE c.a = 2 ORDER BY c.a, c.b DESC");
    assert.deepEqual(filtered, inOrder(["a", 1], ["b", -1]).filter((id) => id.startsWith("3-")));
});

onEach("without its index an order is refused in the service's words", SPARSE, PAIRS, async (container) => {
    for (const [keys, message] of [
        ["c.b, c.a", NO_COMPOSITE],
        ["c.a, c.c", NO_COMPOSITE],
        ["c.a, c.b, c.c", NO_COMPOSITE],
        ["c.a, c.b DESC, c.c", NO_COMPOSITE],
        ["c.deep.x, c.deep.y", NO_COMPOSITE],
        ["c.off", EXCLUDED],
        ["c.off.below", EXCLUDED],
        ["c.a.off DESC", EXCLUDED],
        ["c._etag, c.a", NO_COMPOSITE],
        ["LOWER(c.a)", /Unsupported ORDER BY clause/],
        ["c.a + 1", /Unsupported ORDER BY clause/],
        ["c.a, c.a", /SC2032.*the same path more than once/],
    ]) {
        const query = `SELECT VALUE c.id FROM c ORDER BY ${keys}`;
        await refused(ask(container, query), 400, { message });
        await refused(ask(container, query, { partitionKey: "k1" }), 400, { message });
    }
    assert.equal((await ask(container, "SELECT * FROM c ORDER BY c.off, c.a")).length, PAIRS.length);
});

test("without any index there is no order, and everything else", async () => {
    const none = { indexingPolicy: { indexingMode: "none", automatic: false } };
    for (const [, container] of await eachSize(database, none)) {
        await fill(container, TIES);
        await refused(ask(container, "SELECT * FROM c ORDER BY c.n"), 400, { message: EXCLUDED });
        await refused(ask(container, "SELECT * FROM c ORDER BY c.n, c.same"), 400, { message: NO_COMPOSITE });
        assert.equal((await ask(container, "SELECT * FROM c WHERE c.same = 2")).length, 26);
    }
});

test("an index that comes later serves when it is built, and is used", async () => {
    const container = await newContainer(database, undefined, indexing({ excludedPaths: paths("/n/?") }));
    await fill(container, TIES);
    const single = "SELECT VALUE c.n FROM c ORDER BY c.n";
    const double = "SELECT VALUE c.n FROM c ORDER BY c.same, c.n DESC";
    await refused(ask(container, single), 400, { message: EXCLUDED });
    await refused(ask(container, double), 400, { message: NO_COMPOSITE });
    const { resource } = await container.read();
    const compositeIndexes = [[{ path: "/same" }, { path: "/n", order: "descending" }]];
    await container.replace({ ...resource, ...indexing({ excludedPaths: [], compositeIndexes }) });
    const expected = [...TIES].sort((p, q) => p.same - q.same || q.n - p.n).map(({ n }) => n);
    assert.deepEqual(await ask(container, single), TIES.map(({ n }) => n));
    assert.deepEqual(await ask(container, double), expected);
    const used = async (query) => {
        const told = await explain(server, container, query, { size: 5 });
        return told.partitions[0].orderedBy;
    };
    await until(async () => (await used(single)) === "/n/?" && (await used(double)) === "/same ASC, /n DESC");
    assert.deepEqual(await ask(container, double, { maxItemCount: 7 }), expected);
});

const SYSTEM = indexing({
    includedPaths: paths("/*", '/"_etag"/?'),
    excludedPaths: [],
    compositeIndexes: ["/_ts", "/_rid", "/_etag"].map((path) => [{ path: "/same" }, { path }]),
});

onEach("what the server adds to items orders them too", SYSTEM, TIES, async (container) => {
    const select = async (end) => ask(container, `SELECT * FROM c ${end}`);
    const [{ _ts: first }] = await select("WHERE c.n = 0");
    const changed = await until(async () => {
        const { resource } = await container.item("0", "k0").replace(TIES[0]);
        return resource._ts > first && resource;
    });
    for (const name of ["_ts", "_rid", "_etag"]) {
        const key = (item) => item[name];
        for (const [end, sign] of [
            [`ORDER BY c.same, c.${name}`, 1],
            [`ORDER BY c.same DESC, c.${name} DESC`, -1],
        ]) {
            const found = await select(end);
            assert.equal(found.length, TIES.length, end);
            const told = await explain(server, container, `SELECT * FROM c ${end}`, { size: 5 });
            const isServed = told.partitions.every(({ orderedBy }) => orderedBy === "/same ASC, /_ts ASC");
            assert.equal(isServed && told.itemsRead <= 20, name === "_ts", end);
            for (const [i, item] of found.entries()) {
                const before = found[i - 1] ?? item;
                assert.ok(sign * (item.same - before.same) >= 0, end);
                if (item.same === before.same)
                    assert.ok(sign > 0 ? key(item) >= key(before) : key(item) <= key(before), end);
            }
        }
        const literal = JSON.stringify(key(changed));
        const [{ n }] = await select(`WHERE c.same = 0 AND c.${name} = ${literal} ORDER BY c.n`);
        assert.equal(n, 0, name);
        if (name === "_ts") {
            const since = `SELECT * FROM c WHERE c.same = 0 AND c._ts > ${first}`;
            const told = await explain(server, container, since);
            assert.deepEqual(told.rows.map((item) => item.n), [0]);
            assert.match(JSON.stringify(told.partitions), /"index":"\/same ASC, \/_ts ASC"/);
        }
        const range = `WHERE c.same = 0 AND c.${name} >= ${literal} AND c.n = 0`;
        assert.equal((await select(range)).length, 1, name);
        assert.equal((await select(`ORDER BY c.${name}`)).length, TIES.length, name);
    }
});

const NUMBERS = Array.from({ length: 500 }, (_, i) => ({
    id: `${i}`,
    pk: `k${i}`,
    a: i % 10,
    b: (i * 7) % 500,
}));

onEach("a page of an ordered query reads little more than it shows", SPARSE, NUMBERS, async (container) => {
    for (const query of [
        "SELECT * FROM c ORDER BY c.b",
        "SELECT * FROM c ORDER BY c.b DESC",
        "SELECT * FROM c ORDER BY c.a, c.b DESC",
        "SELECT TOP 10 * FROM c WHERE c.b > 100 ORDER BY c.b",
        "SELECT * FROM c WHERE c.b >= 0 ORDER BY c.b",
    ]) {
        const told = await explain(server, container, query, { size: 10 });
        assert.equal(told.results, 10);
        assert.ok(told.itemsRead <= 20, `${query}: ${JSON.stringify(told).slice(0, 500)}`);
    }
});
