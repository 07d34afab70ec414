// Queries over several partitions, merged by the client: the official SDK made to use query plans
// (`forceQueryPlan`), and a client of our own (`lib/merge.mjs`) for what the SDK cannot do.
//
// What the SDK (4.4) does not do well, and what is done about it here:
//  - DISTINCT drops 0, "", false and null: only values that are true are asked for through it.
//  - ORDER BY throws on null, and when ranges begin with values of two types: only our own client
//    sorts such.
//  - COUNTIF is announced and not added up; a SUM, AVG, MIN or MAX that one range leaves undefined is
//    wrong: only our own client asks.
//  - TOP and OFFSET LIMIT without ORDER BY take from whichever range answers first.
//  - Continuation tokens are refused; our own client goes on in the middle.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { indexing } from "./lib/definition.mjs";
import { contentOf, fill, newContainer, SIZES } from "./lib/items.mjs";
import { askPlan, compareValues, goOn, key as keyText, mergeAll, planOf, rangesOf } from "./lib/merge.mjs";
import { askAll, explain } from "./lib/queries.mjs";
import { chooseSeed, Random } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });

/** The ranges that the SDK has asked since it was last looked at. */
let asked = new Set();
const watch = async (context, _diagnostics, next) => {
    const range = context.headers["x-ms-documentdb-partitionkeyrangeid"];
    if (range !== undefined) asked.add(range);
    return next(context);
};
const client = clientOf(server, { plugins: [{ on: "request", plugin: watch }] });
const { database } = await client.databases.create({ id: unique("cross") });

const COUNT = 157;
const MIXED = [undefined, null, false, true, -1.5, 7, "text", "\u{1f600}", "", [1], { a: 1 }];
const ITEMS = Array.from({ length: COUNT }, (_, i) => ({
    id: `item ${i}`,
    pk: `key ${(i * 7) % 23}`,
    n: (i * 31) % COUNT,
    few: 1 + (i % 4),
    half: i / 4 - 10,
    name: `${String.fromCharCode(65 + (i % 26))}${i % 5}`,
    flag: i % 3 === 0,
    o: { x: i % 6 },
    tags: Array.from({ length: i % 3 }, (_, k) => `t${(i + k) % 5}`),
    ...(i % 5 !== 0 && { some: i % 10 }),
    ...(MIXED[i % MIXED.length] !== undefined && { mixed: MIXED[i % MIXED.length] }),
}));
const MORE = {
    ...indexing({
        compositeIndexes: [
            [{ path: "/few" }, { path: "/n" }],
            [{ path: "/few" }, { path: "/n", order: "descending" }],
            [{ path: "/name" }, { path: "/half" }],
            [{ path: "/mixed" }, { path: "/n" }],
        ],
    }),
    computedProperties: [{ name: "lower", query: "SELECT VALUE LOWER(c.name) FROM c" }],
};
const container = await newContainer(database, SIZES[1], MORE);
await fill(container, ITEMS);

const RANGES = (await rangesOf(server, container)).map(({ id }) => id);
assert.equal(RANGES.length, 5);

// ---- what is expected, from the items themselves ----

const by = (...keys) => (a, b) => {
    for (const key of keys) {
        const [get, sign] = Array.isArray(key) ? key : [key, 1];
        const order = compareValues(get(a), get(b));
        if (order !== 0) return sign * order;
    }
    return 0;
};
const down = (get) => [get, -1];
const sorted = (...keys) => [...ITEMS].sort(by(...keys));
const sum = (values) => values.reduce((total, value) => total + value, 0);
const groups = (get, items = ITEMS) =>
    [...new Set(items.map(get))].map((key) => [key, items.filter((item) => get(item) === key)]);
const pairs = ITEMS.flatMap((item) => item.tags.map((tag) => ({ item, tag })));
const n = ({ n }) => n;
const few = ({ few }) => few;
const defined = (list) => list.filter((value) => value !== undefined);

/** Queries with their results; `order` says that these come in that order. */
const CASES = [
    // plain
    { query: "SELECT * FROM c", results: ITEMS },
    {
        query: "SELECT c.id, c.o.x AS y FROM c WHERE c.few = 2",
        results: ITEMS.filter((i) => i.few === 2).map(({ id, o }) => ({ id, y: o.x })),
    },
    { query: "SELECT VALUE t FROM c JOIN t IN c.tags", results: pairs.map(({ tag }) => tag) },
    {
        query: "SELECT VALUE c.n FROM c WHERE c.n < @n",
        parameters: [{ name: "@n", value: 9 }],
        results: [0, 1, 2, 3, 4, 5, 6, 7, 8],
    },
    // one key, and none
    {
        query: "SELECT VALUE c.n FROM c WHERE c.pk = 'key 3'",
        results: ITEMS.filter((i) => i.pk === "key 3").map(n),
        ranges: 1,
    },
    {
        query: "SELECT VALUE COUNT(1) FROM c WHERE c.pk = @k",
        parameters: [{ name: "@k", value: "key 5" }],
        results: [ITEMS.filter((i) => i.pk === "key 5").length],
        ranges: 1,
    },
    {
        query: "SELECT VALUE c.n FROM c WHERE c.pk = 'key 3' ORDER BY c.n DESC",
        order: true,
        results: ITEMS.filter((i) => i.pk === "key 3").map(n).sort((a, b) => b - a),
        ranges: 1,
    },
    {
        query: "SELECT VALUE MIN(c.n) + 1000 FROM c WHERE c.pk = 'key 3'",
        results: [Math.min(...ITEMS.filter((i) => i.pk === "key 3").map(n)) + 1000],
        ranges: 1,
    },
    { query: "SELECT VALUE 'one' || ' row'", results: ["one row"], ranges: 1 },
    // order
    { query: "SELECT * FROM c ORDER BY c.n", order: true, results: sorted(n) },
    { query: "SELECT VALUE c.n FROM c ORDER BY c.n DESC", order: true, results: sorted(down(n)).map(n) },
    {
        query: "SELECT c.id, c.half FROM c WHERE c.few > 1 ORDER BY c.half",
        order: true,
        results: sorted(({ half }) => half).filter((i) => i.few > 1).map(({ id, half }) => ({ id, half })),
    },
    {
        query: "SELECT VALUE {f: c.few, n: c.n} FROM c ORDER BY c.few, c.n",
        order: true,
        results: sorted(few, n).map(({ few: f, n }) => ({ f, n })),
    },
    {
        query: "SELECT VALUE [c.few, c.n] FROM c ORDER BY c.few, c.n DESC",
        order: true,
        results: sorted(few, down(n)).map((i) => [i.few, i.n]),
    },
    {
        query: "SELECT VALUE c.half FROM c ORDER BY c.name, c.half",
        order: true,
        results: sorted(({ name }) => name, ({ half }) => half).map(({ half }) => half),
    },
    {
        query: "SELECT VALUE c.some FROM c ORDER BY c.n",
        order: true,
        results: defined(sorted(n).map(({ some }) => some)),
    },
    {
        query: "SELECT c.id, c.lower FROM c ORDER BY c.n",
        order: true,
        results: sorted(n).map(({ id, name }) => ({ id, lower: name.toLowerCase() })),
    },
    {
        query: "SELECT VALUE c.lower FROM c ORDER BY c.lower DESC",
        order: true,
        results: sorted(down(({ name }) => name)).map(({ name }) => name.toLowerCase()),
    },
    {
        query: "SELECT VALUE c.flag FROM c ORDER BY c.flag",
        order: true,
        results: sorted(({ flag }) => flag).map(({ flag }) => flag),
    },
    {
        query: "SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags WHERE t != 't1') FROM c ORDER BY c.n",
        order: true,
        results: sorted(n).map(({ tags }) => tags.filter((t) => t !== "t1")),
    },
    {
        query: "SELECT c.n, t FROM c JOIN t IN c.tags ORDER BY c.n",
        order: true,
        results: sorted(n).flatMap(({ n, tags }) => tags.map((t) => ({ n, t }))),
    },
    {
        query: "SELECT VALUE t FROM t IN c.tags ORDER BY t",
        order: true,
        results: pairs.map(({ tag }) => tag).sort(),
    },
    {
        query: "SELECT * FROM c.o ORDER BY o.x",
        order: true,
        results: ITEMS.map(({ o }) => o).sort(by(({ x }) => x)),
    },
    {
        query: "SELECT VALUE s.n FROM (SELECT VALUE c FROM c WHERE c.few = 3) AS s ORDER BY s.n",
        order: true,
        results: sorted(n).filter((i) => i.few === 3).map(n),
    },
    {
        query: "SELECT VALUE s.x FROM (SELECT VALUE c.o FROM c) AS s ORDER BY s.x DESC",
        order: true,
        results: ITEMS.map(({ o }) => o.x).sort((a, b) => b - a),
    },
    // limits
    {
        query: "SELECT TOP 10 VALUE c.n FROM c ORDER BY c.n",
        order: true,
        results: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    },
    {
        query: "SELECT TOP @t VALUE c.n FROM c ORDER BY c.n DESC",
        parameters: [{ name: "@t", value: 3 }],
        order: true,
        results: [156, 155, 154],
    },
    {
        query: "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 50 LIMIT 20",
        order: true,
        results: sorted(n).map(n).slice(50, 70),
    },
    {
        query: "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET @o LIMIT @l",
        parameters: [{ name: "@o", value: 150 }, { name: "@l", value: 100 }],
        order: true,
        results: [150, 151, 152, 153, 154, 155, 156],
    },
    { query: "SELECT TOP 0 * FROM c", results: [] },
    { query: "SELECT TOP 12 VALUE c.n FROM c", some: 12, of: ITEMS.map(n) },
    { query: "SELECT VALUE c.n FROM c OFFSET 5 LIMIT 30", some: 30, of: ITEMS.map(n) },
    { query: "SELECT VALUE c.n FROM c OFFSET 150 LIMIT 30", some: 7, of: ITEMS.map(n) },
    // distinct
    { query: "SELECT DISTINCT VALUE c.few FROM c", results: [1, 2, 3, 4] },
    {
        query: "SELECT DISTINCT c.few, c.name FROM c",
        results: groups(({ few, name }) => `${few},${name}`).map(([, [{ few, name }]]) => ({ few, name })),
    },
    {
        query: "SELECT DISTINCT VALUE c.name FROM c ORDER BY c.name",
        order: true,
        results: [...new Set(ITEMS.map(({ name }) => name))].sort(),
    },
    {
        query: "SELECT DISTINCT TOP 5 VALUE c.name FROM c ORDER BY c.name DESC",
        order: true,
        results: [...new Set(ITEMS.map(({ name }) => name))].sort().reverse().slice(0, 5),
    },
    {
        query: "SELECT DISTINCT c.few FROM c ORDER BY c.few OFFSET 1 LIMIT 2",
        order: true,
        results: [{ few: 2 }, { few: 3 }],
    },
    {
        query: "SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags OFFSET 0 LIMIT 3",
        some: 3,
        of: ["t0", "t1", "t2", "t3", "t4"],
    },
    // aggregates
    { query: "SELECT VALUE COUNT(1) FROM c", results: [COUNT] },
    {
        query: "SELECT VALUE COUNT(c.some) FROM c WHERE c.few = 1",
        results: [ITEMS.filter((i) => i.few === 1 && i.some !== undefined).length],
    },
    { query: "SELECT VALUE COUNT(1) FROM c WHERE c.n < 0", results: [0] },
    { query: "SELECT VALUE SUM(c.half) FROM c", results: [sum(ITEMS.map(({ half }) => half))] },
    { query: "SELECT VALUE AVG(c.n) FROM c", results: [sum(ITEMS.map(n)) / COUNT] },
    { query: "SELECT VALUE MIN(c.half + 1) FROM c", results: [-9] },
    { query: "SELECT VALUE MAX(c.name) FROM c", results: [sorted(({ name }) => name).at(-1).name] },
    { query: "SELECT VALUE SUM(1) FROM c JOIN t IN c.tags", results: [pairs.length] },
    {
        query: "SELECT COUNT(1) AS n, SUM(c.half), MIN(c.n) AS low, MAX(c.n) AS high, AVG(c.n) AS mean, 'x' AS x "
            + "FROM c",
        results: [{ n: COUNT, $1: sum(ITEMS.map(({ half }) => half)), low: 0, high: 156, mean: 78, x: "x" }],
    },
    {
        query: "SELECT VALUE MAKELIST(c.n) FROM c",
        one: (list) => assert.deepEqual(list.sort((a, b) => a - b), sorted(n).map(n)),
    },
    {
        query: "SELECT VALUE MAKESET(c.few) FROM c",
        one: (list) => assert.deepEqual(list.sort(), [1, 2, 3, 4]),
    },
    // groups
    {
        query: "SELECT c.few, COUNT(1) AS count, SUM(c.half) AS total FROM c GROUP BY c.few",
        results: groups(few)
            .map(([few, items]) => ({ few, count: items.length, total: sum(items.map(({ half }) => half)) })),
    },
    {
        query: "SELECT c.name, AVG(c.n) AS mean, MIN(c.n) AS low, MAX(c.n) AS high FROM c WHERE c.few < 4 "
            + "GROUP BY c.name",
        results: groups(({ name }) => name, ITEMS.filter((i) => i.few < 4)).map(([name, items]) => {
            const all = items.map(n);
            return { name, mean: sum(all) / all.length, low: Math.min(...all), high: Math.max(...all) };
        }),
    },
    {
        query: "SELECT c.few, c.o.x FROM c GROUP BY c.few, c.o.x",
        results: groups(({ few, o }) => `${few},${o.x}`).map(([, [{ few, o }]]) => ({ few, x: o.x })),
    },
    {
        query: "SELECT VALUE COUNT(1) FROM c GROUP BY c.few",
        results: groups(few).map(([, items]) => items.length),
    },
    {
        query: "SELECT VALUE c.lower FROM c GROUP BY c.lower",
        results: [...new Set(ITEMS.map(({ name }) => name.toLowerCase()))],
    },
    {
        query: "SELECT c.lower, COUNT(1) AS k FROM c GROUP BY c.lower",
        results: groups(({ name }) => name.toLowerCase()).map(([lower, items]) => ({ lower, k: items.length })),
    },
    {
        query: "SELECT t, COUNT(1) AS k FROM c JOIN t IN c.tags GROUP BY t",
        results: groups(({ tag }) => tag, pairs).map(([t, list]) => ({ t, k: list.length })),
    },
    {
        query: "SELECT TOP 2 c.few, COUNT(1) AS k FROM c GROUP BY c.few",
        some: 2,
        of: groups(few).map(([few, items]) => ({ few, k: items.length })),
    },
    {
        query: "SELECT VALUE {k: c.few} FROM c GROUP BY c.few OFFSET 1 LIMIT 2",
        some: 2,
        of: [{ k: 1 }, { k: 2 }, { k: 3 }, { k: 4 }],
    },
];

const text = (value) => JSON.stringify(value);
const clean = (value) => (value !== null && typeof value === "object" && "_rid" in value ? contentOf(value) : value);

function check(found, c, message) {
    const values = found.map(clean);
    if (c.one) {
        assert.equal(values.length, 1, message);
        c.one(values[0]);
    } else if (c.some !== undefined) {
        assert.equal(values.length, c.some, message);
        const left = c.of.map(text);
        for (const value of values.map(text)) {
            assert.ok(left.includes(value), `${message}: ${value}`);
            left.splice(left.indexOf(value), 1);
        }
    } else if (c.order) {
        assert.deepEqual(values, c.results, message);
    } else {
        assert.deepEqual(values.map(text).sort(), c.results.map(text).sort(), message);
    }
}

// ---- the SDK ----

const OPTIONS = [
    {},
    { maxItemCount: 1000 },
    { maxItemCount: 7 },
    { maxItemCount: 7, maxDegreeOfParallelism: 1 },
    { maxItemCount: 13, maxDegreeOfParallelism: 2, bufferItems: true },
    { maxItemCount: 40, maxDegreeOfParallelism: 5, bufferItems: true },
    { maxItemCount: 3, maxDegreeOfParallelism: -1 },
];

for (const options of OPTIONS)
    test(`the SDK merges queries of every kind by their plans, with ${text(options)}`, async () => {
        for (const c of CASES) {
            const { query, parameters } = c;
            const spec = parameters ? { query, parameters } : query;
            asked = new Set();
            const iterator = container.items.query(spec, { forceQueryPlan: true, ...options });
            const { resources } = await iterator.fetchAll();
            check(resources, c, query);
            // TOP 0 is over before it begins.
            if (query.includes("TOP 0")) continue;
            assert.ok(asked.size >= 1 && asked.size <= (c.ranges ?? RANGES.length), `${query} asked ${asked.size}`);
            if (!c.ranges && c.some === undefined) assert.equal(asked.size, RANGES.length, query);
        }
    });

test("the SDK merges page by page", async () => {
    for (const c of CASES.filter(({ order }) => order))
        for (const size of [1, 6, 50]) {
            const spec = { query: c.query, parameters: c.parameters ?? [] };
            const iterator = container.items.query(spec, { forceQueryPlan: true, maxItemCount: size });
            const found = [];
            while (iterator.hasMoreResults()) {
                const { resources } = await iterator.fetchNext();
                if (resources === undefined) break;
                assert.ok(resources.length <= size);
                found.push(...resources);
            }
            check(found, c, `${c.query} by ${size}`);
        }
});

test("a partition key leads the SDK's plan to one range", async () => {
    const expected = ITEMS.filter(({ pk }) => pk === "key 8").map(n).sort((a, b) => a - b);
    asked = new Set();
    const { resources } = await container.items
        .query("SELECT VALUE c.n FROM c WHERE c.pk = 'key 8' ORDER BY c.n", { forceQueryPlan: true })
        .fetchAll();
    assert.deepEqual(resources, expected);
    assert.equal(asked.size, 1);
});

test("keys of every kind lead the SDK to their ranges", async () => {
    const kinds = [
        { kind: "Hash", version: 1, paths: ["/pk"] },
        { kind: "Hash", version: 2, paths: ["/o/x"] },
        { kind: "MultiHash", version: 2, paths: ["/name", "/few", "/pk"] },
    ];
    const filters = [
        ["c.pk = 'key 2'", (i) => i.pk === "key 2"],
        ["c.o.x = 3", (i) => i.o.x === 3],
        ["c.name = 'C2'", (i) => i.name === "C2"],
        ["c.few = 1 AND c.name = 'C2'", (i) => i.few === 1 && i.name === "C2"],
        ["c.name = 'C2' AND c.few = 3 AND c.pk = 'key 2'", (i) => i.name === "C2" && i.few === 3 && i.pk === "key 2"],
        ["c.pk = 'nobody'", () => false],
        ["c.pk = null", () => false],
    ];
    for (const partitionKey of kinds) {
        const other = await newContainer(database, SIZES[1], { partitionKey });
        await fill(other, ITEMS);
        let narrowed = 0;
        for (const [where, test] of filters) {
            const matches = ITEMS.filter(test).map(n).sort((a, b) => a - b);
            for (const [query, expected] of [
                [`SELECT VALUE c.n FROM c WHERE ${where} ORDER BY c.n`, matches],
                [`SELECT VALUE COUNT(1) FROM c WHERE ${where}`, [matches.length]],
            ]) {
                asked = new Set();
                const { resources } = await other.items.query(query, { forceQueryPlan: true }).fetchAll();
                assert.deepEqual(resources, expected, `${text(partitionKey)} ${query}`);
                narrowed += asked.size < RANGES.length ? 1 : 0;
                assert.deepEqual((await mergeAll(server, other, query)).results, expected, query);
            }
        }
        assert.ok(narrowed >= 2, `${text(partitionKey)}: no range was left out`);
    }
});

test("what the SDK cannot do is refused by name", async () => {
    const rows = [
        ["SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.few FROM c)", /does not support: DCount/, 1004],
        ["SELECT VALUE MIN(c.n) + 1 FROM c", /Compositions of aggregates/],
        ["SELECT c.few FROM c GROUP BY c.few ORDER BY c.few", /ORDER BY together with GROUP BY/],
        ["SELECT * FROM c ORDER BY LOWER(c.name)", /could not be mapped to a document path/],
        ["SELECT FROM c", /SC1001/],
    ];
    for (const [query, message, substatus] of rows) {
        const options = { forceQueryPlan: true };
        await refused(container.items.query(query, options).fetchAll(), 400, { message, substatus });
        // Without a plan for it the server merges; otherwise the SDK meets the same refusal.
        if (/together/.test(String(message))) await container.items.query(query).fetchAll();
        else await refused(container.items.query(query).fetchAll(), 400, { message, substatus });
    }
});

// Rows that a client drops if they equal the one before: every value stands many times, in random places.
const SEED = chooseSeed();
const DISTINCT_ITEMS = (() => {
    const r = new Random(SEED);
    return Array.from({ length: 400 }, (_, i) => ({
        id: `${i}`,
        pk: `key ${r.below(7)}`,
        scalar: r.pick([1, 2, 3.5, 1e20, 12]),
        text: r.pick(["a", "b", "x".repeat(200), `${"x".repeat(200)}y`, "\u{1f600}"]),
        any: r.pick([[], [1], [2], [1, 2], [[1]], { a: 1 }, { a: 2 }, { b: [1], a: 1 }, { a: 1, b: [1] }, "s", 7]),
    }));
})();
const distinctItems = await newContainer(database, SIZES[1], {
    ...indexing({ compositeIndexes: [[{ path: "/scalar" }, { path: "/text" }]] }),
});
await fill(distinctItems, DISTINCT_ITEMS);

const once = (values) => [...new Set(values.map(keyText))].sort();

test("DISTINCT with ORDER BY gives each row once, merged by server or client", async () => {
    for (const [query, rowOf, keyOf] of [
        ["SELECT DISTINCT VALUE c.scalar FROM c ORDER BY c.scalar", (i) => i.scalar, (v) => v],
        ["SELECT DISTINCT VALUE c.text FROM c ORDER BY c.text", (i) => i.text, (v) => v],
        ["SELECT DISTINCT c.scalar, c.text FROM c ORDER BY c.scalar, c.text", ({ scalar, text }) => ({ scalar, text }),
            (v) => v.scalar],
        // The key does not tell the row, which has values that cannot be sorted.
        ["SELECT DISTINCT c.any FROM c ORDER BY c.scalar", ({ any }) => ({ any }), null],
        ["SELECT DISTINCT c.scalar, c.any FROM c ORDER BY c.scalar", ({ scalar, any }) => ({ scalar, any }),
            (v) => v.scalar],
        ["SELECT DISTINCT VALUE {k: c.text, v: c.any} FROM c ORDER BY c.text", (i) => ({ k: i.text, v: i.any }),
            (v) => v.k],
    ]) {
        const expected = once(DISTINCT_ITEMS.map(rowOf));
        const sdk = [];
        for (const maxItemCount of [1, 10, 1000]) {
            const feed = distinctItems.items.query(query, { forceQueryPlan: true, maxItemCount });
            sdk.push((await feed.fetchAll()).resources);
        }
        const { results } = await mergeAll(server, distinctItems, query);
        for (const found of [await askAll(server, distinctItems, query), results, ...sdk]) {
            assert.deepEqual(found.map(keyText).sort(), expected, `${query}, seed ${SEED}`);
            const keys = keyOf ? found.map(keyOf) : [];
            assert.deepEqual(keys, [...keys].sort(compareValues), `${query}, seed ${SEED}`);
        }
    }
});

test("DISTINCT with ORDER BY gives arrays and objects of a key once", async () => {
    for (const key of new Set(DISTINCT_ITEMS.map(({ pk }) => pk)))
        for (const end of ["", " DESC"]) {
            const query = `SELECT DISTINCT VALUE c.any FROM c WHERE c.pk = '${key}' ORDER BY c.any${end}`;
            const expected = once(DISTINCT_ITEMS.filter(({ pk }) => pk === key).map(({ any }) => any));
            for (const maxItemCount of [1, 10, 1000]) {
                const feed = distinctItems.items.query(query, { forceQueryPlan: true, maxItemCount });
                const { resources } = await feed.fetchAll();
                assert.deepEqual(resources.map(keyText).sort(), expected, `${query}, seed ${SEED}`);
            }
            const found = await askAll(server, distinctItems, query);
            assert.deepEqual(found.map(keyText).sort(), expected, `${query}, seed ${SEED}`);
        }
});

test("the SDK does not compare arrays and objects of several ranges", async () => {
    const query = "SELECT DISTINCT VALUE c.any FROM c WHERE IS_ARRAY(c.any) OR IS_OBJECT(c.any) ORDER BY c.any";
    const feed = distinctItems.items.query(query, { forceQueryPlan: true });
    await assert.rejects(feed.fetchAll(), /unrecognizable type object|compare an object/);
    const expected = once(DISTINCT_ITEMS.map(({ any }) => any).filter((value) => typeof value === "object"));
    const found = await askAll(server, distinctItems, query);
    assert.deepEqual(found.map(keyText).sort(), expected, `seed ${SEED}`);
});

// ---- a client of our own ----

const own = (query, options) => mergeAll(server, container, query, options);

test("our own client merges queries of every kind by their plans", async () => {
    for (const c of CASES)
        for (const size of [-1, 9]) {
            const { query, parameters } = c;
            const { results, ranges } = await own(parameters ? { query, parameters } : query, { size });
            check(results, c, query);
            assert.ok(ranges <= (c.ranges ?? RANGES.length), query);
        }
});

test("values of all types are sorted, and undefined ones are empty sort keys", async () => {
    const value = ({ mixed }) => mixed;
    for (const [query, expected] of [
        ["SELECT VALUE [c.mixed] FROM c ORDER BY c.mixed", sorted(value)],
        ["SELECT VALUE [c.mixed] FROM c ORDER BY c.mixed DESC", sorted(down(value))],
        ["SELECT VALUE [c.mixed, c.n] FROM c ORDER BY c.mixed, c.n", sorted(value, n)],
        ["SELECT VALUE [c.mixed, c.n] FROM c ORDER BY c.mixed DESC, c.n DESC", sorted(down(value), down(n))],
    ]) {
        const { results, rows } = await own(query);
        const ofOne = query.includes("c.n]") ? ({ mixed, n }) => defined([mixed, n]) : ({ mixed }) => defined([mixed]);
        assert.deepEqual(results, expected.map(ofOne), query);
        const empty = rows.filter(({ orderByItems: [key] }) => !("item" in key)).length;
        assert.equal(empty, ITEMS.filter(({ mixed }) => mixed === undefined).length);
    }
});

test("aggregates that a range leaves undefined are undefined", async () => {
    for (const [query, expected] of [
        ["SELECT VALUE SUM(c.mixed) FROM c", []],
        ["SELECT VALUE AVG(c.mixed) FROM c", []],
        ["SELECT VALUE SUM(c.none) FROM c", [0]],
        ["SELECT VALUE AVG(c.none) FROM c", []],
        ["SELECT VALUE MIN(c.none) FROM c", []],
        ["SELECT VALUE MAX(c.mixed) FROM c WHERE IS_PRIMITIVE(c.mixed)", ["\u{1f600}"]],
        ["SELECT VALUE MIN(c.mixed) FROM c WHERE NOT IS_NULL(c.mixed) AND IS_PRIMITIVE(c.mixed)", [false]],
        ["SELECT VALUE COUNTIF(c.few = 1) FROM c", [ITEMS.filter((i) => i.few === 1).length]],
        ["SELECT COUNTIF(c.flag) AS k, SUM(c.mixed) AS s FROM c", [{ k: ITEMS.filter((i) => i.flag).length }]],
    ]) {
        assert.deepEqual((await own(query)).results, expected, query);
        // The server, asked for the results themselves, says the same.
        assert.deepEqual(await askAll(server, container, query), expected, query);
    }
});

test("distinct values are counted", async () => {
    const names = new Set(ITEMS.map(({ name }) => name)).size;
    for (const [query, expected] of [
        ["SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.name FROM c)", names],
        ["SELECT COUNT(1) AS k FROM (SELECT DISTINCT c.name FROM c)", { k: names }],
        ["SELECT COUNT(1) FROM (SELECT DISTINCT c.lower FROM c WHERE c.few > 0) AS s", { $1: names }],
        ["SELECT VALUE COUNT(s) FROM (SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags) AS s", 5],
        ["SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.mixed FROM c)", MIXED.length - 1],
    ]) {
        const { results, info } = await own(query);
        assert.deepEqual(results, [expected], query);
        assert.notEqual(info.dCountInfo, null);
        assert.deepEqual(await askAll(server, container, query), [expected], query);
    }
});

test("falsy values are distinct, too", async () => {
    const { results } = await own("SELECT DISTINCT VALUE c.mixed FROM c");
    assert.deepEqual(results.map(text).sort(), MIXED.slice(1).map(text).sort());
});

test("an ORDER BY query goes on in the middle, wherever that is", async () => {
    const scalar = "(NOT IS_DEFINED(c.mixed) OR IS_PRIMITIVE(c.mixed))";
    for (const query of [
        "SELECT VALUE c.id FROM c ORDER BY c.n",
        "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
        "SELECT VALUE c.id FROM c WHERE c.few != 2 ORDER BY c.name",
        "SELECT VALUE c.id FROM c ORDER BY c.few, c.n",
        "SELECT VALUE c.id FROM c ORDER BY c.few, c.n DESC",
        `SELECT VALUE c.id FROM c WHERE ${scalar} ORDER BY c.mixed`,
        `SELECT VALUE c.id FROM c WHERE ${scalar} ORDER BY c.mixed DESC`,
        `SELECT VALUE c.id FROM c WHERE ${scalar} ORDER BY c.mixed, c.n`,
        "SELECT VALUE c.id FROM c ORDER BY c.some",
        "SELECT VALUE c.id FROM c ORDER BY c.lower",
    ]) {
        const whole = await own(query);
        for (let done = 1; done < whole.rows.length; done += 11) {
            const rest = await goOn(server, container, query, whole, done, { size: 20 });
            const before = whole.results.slice(0, done);
            // Equal rows of one range may come in another order, but each once.
            assert.deepEqual([...before, ...rest].sort(), [...whole.results].sort(), `${query} after ${done}`);
        }
    }
});

// ---- plans ----

test("a plan is made however it is asked for, also with a partition key", async () => {
    const query = { query: "SELECT VALUE c.n FROM c ORDER BY c.n", parameters: [] };
    const plain = await planOf(server, container, query);
    for (const type of ["application/json", "application/query+json", "application/query+json; charset=utf-8"])
        assert.deepEqual(await planOf(server, container, query, { type }), plain);
    const [range] = (await planOf(server, container, query, { key: "key 1" })).queryRanges;
    const filtered = { query: "SELECT * FROM c WHERE c.pk = 'key 1'" };
    assert.deepEqual((await planOf(server, container, filtered)).queryRanges, [range]);
    assert.deepEqual(range, { min: range.min, max: range.min, isMinInclusive: true, isMaxInclusive: true });
    assert.match(range.min, /^[0-9A-F]{32}$/);
});

test("a plan needs what the client can do", async () => {
    const query = "SELECT c.few, COUNT(1) AS a, SUM(c.n) AS b FROM c GROUP BY c.few";
    for (const [features, missing] of [
        [["GroupBy", "NonValueAggregate", "MultipleAggregates"], null],
        [["GroupBy", "NonValueAggregate"], "MultipleAggregates"],
        [["Aggregate", "Distinct"], "NonValueAggregate MultipleAggregates GroupBy"],
        [[], "NonValueAggregate MultipleAggregates GroupBy"],
    ]) {
        const answer = await askPlan(server, container, query, { features });
        if (missing === null) assert.equal(answer.status, 200, answer.text);
        else {
            const message = new RegExp(`does not support: ${missing}\r\n`);
            errorAnswer(answer, 400, "BadRequest", { substatus: 1004, message });
        }
    }
});

test("rewritten queries are answered from the index as the originals are", async () => {
    const headers = { "x-ms-documentdb-partitionkeyrangeid": RANGES[0] };
    for (const [query, how] of [
        ["SELECT TOP 5 * FROM c ORDER BY c.n", "index in the order of ORDER BY"],
        ["SELECT c.id FROM c ORDER BY c.few, c.n DESC", "index in the order of ORDER BY"],
        ["SELECT VALUE COUNT(1) FROM c", "index alone"],
        ["SELECT COUNT(1) AS k, MIN(c.n) AS low FROM c", "index alone"],
        ["SELECT c.few, COUNT(1) AS k FROM c GROUP BY c.few", "index alone"],
    ]) {
        const { queryInfo } = await planOf(server, container, query);
        const sent = queryInfo.rewrittenQuery.replace("{documentdb-formattableorderbyquery-filter}", "true");
        const told = await explain(server, container, sent, { headers });
        assert.equal(told.partitions[0].by, how, query);
    }
});

test("clients merge what the server merges", async () => {
    for (const c of CASES.filter(({ some }) => some === undefined)) {
        const { query, parameters } = c;
        check(await askAll(server, container, parameters ? { query, parameters } : query), c, query);
    }
});
