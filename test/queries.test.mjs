// The query language over items through the SDK: every clause, a sample of every family of functions,
// parameters, errors and bounds; each on one and on five physical partitions.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { computed } from "./lib/definition.mjs";
import { callItems, contentOf, eachSize, fill } from "./lib/items.mjs";
import { askPage } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed", "--merge", "always", "--extensions"] });
const { database } = await clientOf(server).databases.create({ id: unique("queries") });

const CITIES = ["Bergen", "Oslo", "oslo", "Tromsø", "Ålesund"];
const MIXED = [null, false, true, -3, 0, 2.5, "", "a", "b", [], [1], {}, { x: 1 }, undefined, undefined];
const ITEMS = Array.from({ length: 60 }, (_, i) => ({
    id: `item ${i}`,
    pk: `key ${i % 9}`,
    n: i,
    team: i % 4,
    city: CITIES[i % CITIES.length],
    address: { zip: `${1000 + 7 * i}`, lines: [`street ${i % 6}`, "floor 1"] },
    tags: ["all", i % 2 ? "odd" : "even", ...(i % 10 === 0 ? ["ten"] : [])],
    parts: Array.from({ length: i % 4 }, (_, k) => ({ k, size: i + k })),
    mixed: MIXED[i % MIXED.length],
    at: new Date(Date.UTC(2024, 0, 1 + i)).toISOString(),
    place: { type: "Point", coordinates: [10 + i / 100, 60] },
}));
const STORED = ITEMS.map((item) => JSON.parse(JSON.stringify(item))); // without what is undefined

const containers = await eachSize(database);
for (const [, container] of containers) await fill(container, STORED);

function onEach(name, work) {
    for (const [size, container] of containers) test(`${name} (${size})`, (t) => work(container, t));
}

const ask = async (container, query, options) =>
    (await container.items.query(query, options).fetchAll()).resources;

/** A query with parameters, by their names without "@". */
const given = (query, values) => ({
    query,
    parameters: Object.entries(values).map(([name, value]) => ({ name: `@${name}`, value })),
});

const text = (value) => JSON.stringify(value);
const sorted = (list) => list.map(text).sort();

/** Rows of [query, results]; the results may come in any order, unless the query has ORDER BY. */
async function checkRows(container, rows) {
    for (const [query, expected] of rows) {
        const found = (await ask(container, query)).map((one) => (one?._rid ? contentOf(one) : one));
        const words = query.query ?? query;
        const message = `${text(query)}: ${text(found).slice(0, 300)}`;
        if (/ORDER BY/.test(words)) assert.deepEqual(found, expected, message);
        else assert.deepEqual(sorted(found), sorted(expected), message);
    }
}

const where = (condition) => STORED.filter(condition);
const values = (list, of) => list.map(of).filter((value) => value !== undefined);
const sum = (list, of) => list.reduce((total, one) => total + of(one), 0);
const distinct = (list) => [...new Set(list.map(text))].map((one) => JSON.parse(one));

function groupsBy(list, keyOf) {
    const groups = new Map();
    for (const one of list) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
    return [...groups];
}

// --- Clauses

onEach("SELECT projects", (container) =>
    checkRows(container, [
        ["SELECT * FROM c", STORED],
        ["SELECT * FROM c WHERE c.n = 7", [STORED[7]]],
        ["SELECT c FROM c WHERE c.n = -1", []],
        [
            "SELECT c.id, c.n AS number FROM c WHERE c.n < 3",
            where(({ n }) => n < 3).map(({ id, n }) => ({ id, number: n })),
        ],
        ["SELECT VALUE c.n FROM c", STORED.map(({ n }) => n)],
        ["SELECT VALUE c.mixed FROM c", values(STORED, ({ mixed }) => mixed)],
        ["SELECT c.mixed FROM c", STORED.map(({ mixed }) => (mixed === undefined ? {} : { mixed }))],
        ['SELECT VALUE c["address"]["lines"][0] FROM c', STORED.map(({ address }) => address.lines[0])],
        [
            "SELECT c.n, c.n + 1, [c.n, {m: c.team}] AS list FROM c WHERE c.n = 5",
            [{ n: 5, $1: 6, list: [5, { m: 1 }] }],
        ],
        ["SELECT VALUE root.id FROM root WHERE root.n = 5", ["item 5"]],
        ["SELECT VALUE 1", [1]],
        ["SELECT VALUE undefined", []],
        ["SELECT DISTINCT VALUE c.city FROM c", CITIES],
        ["SELECT DISTINCT c.team, c.city FROM c", distinct(STORED.map(({ team, city }) => ({ team, city })))],
        ["SELECT DISTINCT VALUE c.mixed FROM c", distinct(values(STORED, ({ mixed }) => mixed))],
    ]),
);

onEach("FROM and JOIN walk into items", (container) => {
    const parts = STORED.flatMap((item) => item.parts.map((part) => ({ item, part })));
    return checkRows(container, [
        ["SELECT VALUE t FROM t IN c.tags", STORED.flatMap(({ tags }) => tags)],
        ["SELECT VALUE a.zip FROM c.address a", STORED.map(({ address }) => address.zip)],
        [
            "SELECT VALUE p.size FROM c JOIN p IN c.parts WHERE p.k = 2",
            parts.filter(({ part }) => part.k === 2).map(({ part }) => part.size),
        ],
        [
            "SELECT c.id, p.k, q.k AS other FROM c JOIN p IN c.parts JOIN q IN c.parts WHERE p.k < q.k",
            parts.flatMap(({ item, part }) =>
                item.parts
                    .filter(({ k }) => part.k < k)
                    .map(({ k }) => ({ id: item.id, k: part.k, other: k })),
            ),
        ],
        ["SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags WHERE t = 'ten'", [6]],
        ["SELECT VALUE x.zip FROM c JOIN (SELECT VALUE c.address) AS x WHERE c.n < 2", ["1000", "1007"]],
    ]);
});

onEach("WHERE keeps what is true", (container) =>
    checkRows(
        container,
        [
            ["c.n = 7", ({ n }) => n === 7],
            ["c.n != 7", ({ n }) => n !== 7],
            ["c.n >= 10 AND c.n < 20", ({ n }) => n >= 10 && n < 20],
            ["c.n < 5 OR c.n > 55 OR c.team = 3", ({ n, team }) => n < 5 || n > 55 || team === 3],
            ["NOT (c.n > 3)", ({ n }) => n <= 3],
            ["c.n BETWEEN 3 AND 6", ({ n }) => n >= 3 && n <= 6],
            ["c.n IN (1, 3, 99)", ({ n }) => n === 1 || n === 3],
            ["c.n NOT IN (1, 3)", ({ n }) => n !== 1 && n !== 3],
            ["c.city = 'Oslo'", ({ city }) => city === "Oslo"],
            ["c.city > 'P'", ({ city }) => city > "P"],
            ["c.city LIKE '_slo'", ({ city }) => /^.slo$/.test(city)],
            ["c.city LIKE '%s%'", ({ city }) => city.includes("s")],
            ["c.city NOT LIKE 'O%'", ({ city }) => !city.startsWith("O")],
            ["c.address.zip = '1014'", ({ address }) => address.zip === "1014"],
            ["c.tags[2] = 'ten'", ({ n }) => n % 10 === 0],
            ["c.mixed = null", ({ mixed }) => mixed === null],
            ["c.mixed != null", ({ mixed }) => mixed !== undefined && mixed !== null],
            ["c.mixed", ({ mixed }) => mixed === true],
            ["c.mixed < 1", ({ mixed }) => typeof mixed === "number" && mixed < 1],
            ["c.mixed = [1]", ({ mixed }) => text(mixed) === "[1]"],
            ["c.mixed = {x: 1}", ({ mixed }) => text(mixed) === '{"x":1}'],
            ["IS_DEFINED(c.mixed)", ({ mixed }) => mixed !== undefined],
            ["NOT IS_DEFINED(c.mixed)", ({ mixed }) => mixed === undefined],
            ["(c.mixed ?? 'none') = 'none'", ({ mixed }) => mixed === undefined],
            ["(c.n % 2 = 0 ? c.n : -c.n) > 40", ({ n }) => n % 2 === 0 && n > 40],
            ["c.city || '!' = 'Oslo!'", ({ city }) => city === "Oslo"],
            ["(c.n & 3) = 3 AND (c.n ^ 1) > 20", ({ n }) => (n & 3) === 3 && (n ^ 1) > 20],
            ["c.n = c.team", ({ n, team }) => n === team],
            ["c.missing = 1 OR c.n = 1", ({ n }) => n === 1],
            ["c.missing != 1 AND c.n = 1", () => false],
            [
                "EXISTS(SELECT VALUE p FROM p IN c.parts WHERE p.size = 31)",
                ({ parts }) => parts.some(({ size }) => size === 31),
            ],
        ].map(([condition, isWanted]) => [`SELECT * FROM c WHERE ${condition}`, where(isWanted)]),
    ),
);

onEach("aggregates and GROUP BY see all partitions", (container) => {
    const groups = groupsBy(STORED, ({ team }) => team);
    const total = sum(STORED, ({ n }) => n);
    return checkRows(container, [
        ["SELECT VALUE COUNT(1) FROM c", [60]],
        [
            "SELECT COUNT(1) AS count, SUM(c.n) AS sum, AVG(c.n) AS avg, MIN(c.n) AS min, MAX(c.city) AS max FROM c",
            [{ count: 60, sum: total, avg: total / 60, min: 0, max: "Ålesund" }],
        ],
        ["SELECT VALUE COUNT(c.mixed) FROM c", [where(({ mixed }) => mixed !== undefined).length]],
        ["SELECT VALUE SUM(c.n) FROM c WHERE c.n < 0", [0]],
        ["SELECT VALUE AVG(c.n) FROM c WHERE c.n < 0", []],
        ["SELECT VALUE SUM(c.mixed) FROM c", []],
        ["SELECT VALUE MIN(c.n) FROM c WHERE c.team = 2 AND c.n > 20", [22]],
        ["SELECT VALUE COUNT(1) / 2 FROM c", [30]],
        [
            "SELECT c.team, COUNT(1) AS count, MAX(c.n) AS max FROM c GROUP BY c.team",
            groups.map(
                ([team, list]) => ({ team, count: list.length, max: Math.max(...list.map(({ n }) => n)) }),
            ),
        ],
        [
            "SELECT c.city, c.team, SUM(c.n) AS sum FROM c WHERE c.n > 9 GROUP BY c.city, c.team",
            groupsBy(where(({ n }) => n > 9), ({ city, team }) => text([city, team])).map(
                ([, list]) => ({ city: list[0].city, team: list[0].team, sum: sum(list, ({ n }) => n) }),
            ),
        ],
        ["SELECT VALUE c.team FROM c GROUP BY c.team", [0, 1, 2, 3]],
        [
            "SELECT t, COUNT(1) AS count FROM c JOIN t IN c.tags GROUP BY t",
            [
                { t: "all", count: 60 },
                { t: "odd", count: 30 },
                { t: "even", count: 30 },
                { t: "ten", count: 6 },
            ],
        ],
        ["SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.city FROM c)", [5]],
        [
            "SELECT UPPER(c.city) AS city, COUNTIF(c.n < 10) AS few FROM c GROUP BY UPPER(c.city)",
            groupsBy(STORED, ({ city }) => city.toUpperCase()).map(
                ([city, list]) => ({ city, few: list.filter(({ n }) => n < 10).length }),
            ),
        ],
    ]);
});

onEach("ORDER BY, TOP and OFFSET LIMIT cut the whole", (container) => {
    const byZip = [...STORED].sort((a, b) => (a.address.zip < b.address.zip ? -1 : 1)).map(({ n }) => n);
    return checkRows(container, [
        ["SELECT VALUE c.n FROM c ORDER BY c.n", STORED.map(({ n }) => n)],
        ["SELECT VALUE c.n FROM c ORDER BY c.n DESC", STORED.map(({ n }) => n).reverse()],
        ["SELECT VALUE c.n FROM c ORDER BY c.address.zip", byZip],
        ["SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", [59, 58, 57]],
        ["SELECT TOP 0 VALUE c.n FROM c", []],
        ["SELECT VALUE c.n FROM c WHERE c.team = 1 ORDER BY c.n OFFSET 2 LIMIT 3", [9, 13, 17]],
        ["SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 58 LIMIT 10", [58, 59]],
        ["SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 60 LIMIT 10", []],
        ["SELECT DISTINCT VALUE c.city FROM c ORDER BY c.city DESC", [...CITIES].sort().reverse()],
        [
            "SELECT c.id, p.size FROM c JOIN p IN c.parts WHERE c.n = 7 ORDER BY c.n",
            [7, 8, 9].map((size) => ({ id: "item 7", size })),
        ],
        [
            "SELECT c.team, COUNT(1) AS count FROM c GROUP BY c.team ORDER BY c.team DESC",
            [3, 2, 1, 0].map((team) => ({ team, count: 15 })),
        ],
    ]);
});

onEach("TOP and LIMIT without an order give as many, each another", async (container) => {
    for (const [query, count] of [
        ["SELECT TOP 7 VALUE c.id FROM c", 7],
        ["SELECT TOP 100 VALUE c.id FROM c", 60],
        ["SELECT VALUE c.id FROM c OFFSET 50 LIMIT 20", 10],
        ["SELECT VALUE c.id FROM c WHERE c.team = 2 OFFSET 3 LIMIT 5", 5],
    ])
        for (const maxItemCount of [1, 4, -1])
            assert.equal(new Set(await ask(container, query, { maxItemCount })).size, count, query);
});

onEach("subqueries are values, arrays and sources", (container) =>
    checkRows(container, [
        [
            "SELECT VALUE (SELECT VALUE COUNT(1) FROM p IN c.parts) FROM c",
            STORED.map(({ parts }) => parts.length),
        ],
        [
            "SELECT VALUE ARRAY(SELECT VALUE p.size FROM p IN c.parts WHERE p.k > 0) FROM c WHERE c.n = 7",
            [[8, 9]],
        ],
        [
            "SELECT c.id, m.total FROM c JOIN (SELECT SUM(p.size) AS total FROM p IN c.parts) AS m WHERE c.n = 7",
            [{ id: "item 7", total: 24 }],
        ],
        [
            "SELECT VALUE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'ten') FROM c WHERE c.n IN (9, 10)",
            [false, true],
        ],
    ]),
);

// --- Functions

onEach("functions of every family are there", (container) => {
    const of = (n, value, ...expected) => [`SELECT VALUE ${value} FROM c WHERE c.n = ${n}`, expected];
    const has = (condition, isWanted) => [
        `SELECT VALUE c.n FROM c WHERE ${condition}`,
        where(isWanted).map(({ n }) => n),
    ];
    const box = "[[[9.995, 59], [10.095, 59], [10.095, 61], [9.995, 61], [9.995, 59]]]";
    return checkRows(container, [
        of(3, "CONCAT(UPPER(c.city), '-', LOWER(c.id))", "TROMSØ-item 3"),
        of(
            4,
            "[LENGTH(c.city), LEFT(c.city, 2), SUBSTRING(c.city, 1, 3), REVERSE(c.city), INDEX_OF(c.city, 'e')]",
            [7, "Ål", "les", "dnuselÅ", 2],
        ),
        of(
            4,
            "[TRIM('  x '), REPLACE(c.city, 'e', 'E'), REPLICATE('ab', 2), TOSTRING(c.team)]",
            ["x", "ÅlEsund", "abab", "0"],
        ),
        has("STARTSWITH(c.city, 'OS', true)", ({ city }) => /^os/i.test(city)),
        has("STARTSWITH(c.address.zip, '12')", ({ address }) => address.zip.startsWith("12")),
        has("ENDSWITH(c.city, 'en') OR CONTAINS(c.city, 'sl')", ({ city }) => /en$|sl/.test(city)),
        has("REGEXMATCH(c.city, '^[a-z]+$', 'i')", ({ city }) => /^[a-z]+$/i.test(city)),
        has("STRINGEQUALS(c.city, 'OSLO', true)", ({ city }) => city.toLowerCase() === "oslo"),
        of(
            9,
            "[ABS(-c.n), SQRT(c.n), POWER(c.n, 2), FLOOR(c.n / 2), CEILING(c.n / 2), ROUND(2.5), SIGN(-c.n)]",
            [9, 3, 81, 4, 5, 3, -1],
        ),
        of(9, "ROUND(LOG10(1000) + SIN(0) + EXP(0))", 4),
        of(
            10,
            "[ARRAY_LENGTH(c.tags), ARRAY_CONCAT(c.tags, [1]), ARRAY_SLICE(c.tags, 1, 1)]",
            [3, ["all", "even", "ten", 1], ["even"]],
        ),
        has("ARRAY_CONTAINS(c.tags, 'ten')", ({ n }) => n % 10 === 0),
        has("ARRAY_CONTAINS(c.parts, {k: 2}, true)", ({ parts }) => parts.length === 3),
        of(10, "SETINTERSECT(c.tags, ['ten', 'x'])", ["ten"]),
        has(
            "IS_STRING(c.mixed) OR IS_ARRAY(c.mixed)",
            ({ mixed }) => typeof mixed === "string" || Array.isArray(mixed),
        ),
        has("IS_NUMBER(c.mixed)", ({ mixed }) => typeof mixed === "number"),
        has(
            "IS_NULL(c.mixed) OR IS_BOOL(c.mixed)",
            ({ mixed }) => mixed === null || typeof mixed === "boolean",
        ),
        has("IS_OBJECT(c.mixed)", ({ mixed }) => text(mixed)?.startsWith("{") ?? false),
        has(
            "IS_PRIMITIVE(c.mixed)",
            ({ mixed }) => mixed !== undefined && (mixed === null || typeof mixed !== "object"),
        ),
        of(5, "[DATETIMEPART('dd', c.at), DATETIMEDIFF('hour', '2024-01-01T00:00:00Z', c.at)]", [6, 120]),
        of(5, "DATETIMEADD('month', 1, c.at)", "2024-02-06T00:00:00.0000000Z"),
        has("c.at >= '2024-02-20T00:00:00.000Z'", ({ at }) => at >= "2024-02-20T00:00:00.000Z"),
        of(
            5,
            "[STRINGTONUMBER(c.address.zip), STRINGTOARRAY('[1]'), STRINGTOBOOLEAN('true'), STRINGTOOBJECT('{}')]",
            [1035, [1], true, {}],
        ),
        of(5, "IIF(c.n > 4, 'more', 'less')", "more"),
        of(0, "ROUND(ST_DISTANCE(c.place, {'type': 'Point', 'coordinates': [10, 61]}) / 1000)", 111),
        has(
            `ST_WITHIN(c.place, {'type': 'Polygon', 'coordinates': ${box}})`,
            ({ n }) => n < 10,
        ),
        of(5, "OBJECTTOARRAY({a: c.n})", [{ k: "a", v: 5 }]),
    ]);
});

onEach("system properties can be asked for", async (container) => {
    const [item] = await ask(container, "SELECT * FROM c WHERE c.id = 'item 3'");
    for (const name of ["_rid", "_self", "_etag", "_ts", "_attachments"]) {
        const values = await ask(container, `SELECT VALUE c.${name} FROM c WHERE c.id = 'item 3'`);
        assert.deepEqual(values, [item[name]]);
        const query = given(`SELECT VALUE c.id FROM c WHERE c.${name} = @v AND c.n = 3`, { v: item[name] });
        assert.deepEqual(await ask(container, query), ["item 3"], name);
        const count = `SELECT VALUE COUNT(1) FROM c WHERE IS_DEFINED(c.${name})`;
        assert.deepEqual(await ask(container, count), [STORED.length], name);
    }
});

// --- Parameters

onEach("parameters stand for values of any type", (container) => {
    const odd = { "quote'\"": ["ø", "\u0000"] };
    return checkRows(container, [
        ...MIXED.filter((value) => value !== undefined).map((value) => [
            given("SELECT VALUE c.n FROM c WHERE c.mixed = @v", { v: value }),
            where(({ mixed }) => text(mixed) === text(value)).map(({ n }) => n),
        ]),
        [given("SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(@list, c.n)", { list: [1, 2, 99] }), [1, 2]],
        [given("SELECT VALUE c[@name] FROM c WHERE c.n = @n", { name: "city", n: 1 }), ["Oslo"]],
        [given("SELECT TOP @top VALUE c.n FROM c ORDER BY c.n", { top: 2 }), [0, 1]],
        [
            given("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET @from LIMIT @count", { from: 10, count: 2 }),
            [10, 11],
        ],
        [given("SELECT VALUE {n: c.n, v: @v} FROM c WHERE c.n = 1", { v: odd }), [{ n: 1, v: odd }]],
        [given("SELECT VALUE c.n FROM c WHERE c.city = @city", { city: "' OR true --" }), []],
        [given("SELECT VALUE c.n FROM c WHERE c.city = @city AND c.n < 5", { city: "Ålesund" }), [4]],
    ]);
});

onEach("parameters are checked", async (container) => {
    for (const [parameters, message] of [
        [[{ name: "n", value: 1 }], /must be '@' and an identifier, not 'n'/],
        [[{ value: 1 }], /must be an object with a \\?"name\\?"/],
        [[{ name: "@n", value: 1 }, { name: "@n", value: 2 }], /more than one parameter '@n'/],
        [{ "@n": 1 }, /must be an array/],
        ["@n", /must be an array/],
        [[], /SC2004/],
        [undefined, /SC2004/],
        [null, /SC2004/],
    ]) {
        const query = "SELECT * FROM c WHERE c.n = @n";
        const answer = await askPage(server, container, { query, parameters });
        errorAnswer(answer, 400, "BadRequest", { message });
    }
});

// --- Errors

onEach("an error says what, and where", async (container) => {
    for (const [query, code, start, end] of [
        ["SELECT * FORM c", "SC1001", 9, 13],
        ["SELECT * FROM c WHERE", "SC1002", 21, 21],
        ["SELECT 'Ålesund', x FROM c", "SC2001", 18, 19],
        ["SELECT NOSUCH(1) FROM c", "SC2005", 7, 13],
        ["SELECT ABS(1, 2) FROM c", "SC2050", 7, 16],
        ["SELECT c.n FROM c GROUP BY c.city", "SC2102", 7, 10],
        ["SELECT * FROM c JOIN t IN c.tags", "SC2040", 7, 8],
    ]) {
        const { body } = await refused(ask(container, query), 400, { message: new RegExp(code) });
        const [{ severity, location, code: found }] = JSON.parse(body.message.split("\r\n")[0]).errors;
        assert.deepEqual([severity, found, location], ["Error", code, { start, end }], query);
    }
});

onEach("a user-defined function that is not there is named", async (container) => {
    const query = "SELECT VALUE udf.tax(c.n) FROM c";
    await refused(ask(container, query), 400, { message: /SC2003.*User-defined function 'tax'/ });
    const eleven = Array.from({ length: 11 }, () => "udf.tax(1)").join(" + ");
    await refused(ask(container, `SELECT VALUE ${eleven}`), 400, { message: /SC3005/ });
});

test("a query needs a container and a body", async () => {
    const [[, container]] = containers;
    await refused(ask(database.container("nowhere"), "SELECT * FORM c"), 404, { substatus: 1003 });
    const headers = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true" };
    const send = (body) => callItems(server, container, { method: "POST", headers, body });
    for (const body of ["", "{", "[]", "{}", '{"query":1}', '{"query":null}', '{"query":""}', "SELECT 1"])
        errorAnswer(await send(body), 400, "BadRequest");
    for (const body of ['{"query":"SELECT VALUE 1"}', '{"query":"SELECT VALUE 1","parameters":null,"a":{}}'])
        assert.deepEqual((await send(body)).json.Documents, [1]);
});

// --- Bounds

test("what is too large is refused, and says what the limit is", async (t) => {
    const [[, container]] = containers;
    const limit = 512 << 10;
    const long = (bytes) => `SELECT VALUE 1 ${" ".repeat(bytes - 15)}`;
    assert.deepEqual(await ask(container, long(limit)), [1]);
    const joins = (count) => Array.from({ length: count }, (_, i) => `JOIN t${i} IN c.none`).join(" ");
    const refusals = [
        [long(limit + 1), /SC3020.*524288/],
        [`SELECT * FROM c WHERE c.n IN (${"1,".repeat(limit / 2)}1)`, /SC3020/],
        [`SELECT VALUE c.n FROM c ${joins(11)}`, /SC3002.*maximum number of joins.*10/],
        [`SELECT VALUE ${"[".repeat(1000)}1${"]".repeat(1000)}`, /SC1030/],
        [`SELECT VALUE ${"(".repeat(4000)}1${")".repeat(4000)}`, /SC1030/],
        ["SELECT TOP 4294967296 * FROM c", /SC2060/],
        ["SELECT * FROM c OFFSET 0 LIMIT 4294967296", /SC2061/],
    ];
    for (const [query, message] of refusals)
        await t.test(query.slice(0, 60), async () => {
            await refused(ask(container, query), 400, { message });
        });
    assert.deepEqual(await ask(container, `SELECT VALUE c.n FROM c ${joins(10)}`), []);
});

test("many and large parameters are fine, and more than a request may have is refused", async () => {
    const [[, container]] = containers;
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`p${i}`, i]));
    const list = Array.from({ length: 100_000 }, (_, i) => i + 55);
    for (const [query, expected] of [
        [given(`SELECT VALUE c.n FROM c WHERE c.n IN (${Object.keys(many).map((name) => `@${name}`)}) AND c.n > 57`, many), [58, 59]],
        [given("SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(@list, c.n) AND c.n > @p", { list, p: 57 }), [58, 59]],
        [given("SELECT VALUE LENGTH(@text) FROM c WHERE c.n = 1", { text: "x".repeat(1_000_000) }), [1_000_000]],
    ])
        assert.deepEqual((await ask(container, query)).sort(), expected);
    const deep = (levels) => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    assert.deepEqual(await ask(container, given("SELECT VALUE @v", { v: deep(100) })), [deep(100)]);
    const refusedBody = async (value) => askPage(server, container, given("SELECT VALUE @v", { v: value }));
    errorAnswer(await refusedBody(deep(2000)), 400, "BadRequest");
    const { status } = await refusedBody("x".repeat(5 << 20));
    assert.equal(status, 413);
});

test("long lists of values are fine", async () => {
    const list = Array.from({ length: 5000 }, (_, i) => i + 58);
    for (const [, container] of containers) {
        for (const query of [
            `SELECT VALUE c.n FROM c WHERE c.n IN (${list})`,
            `SELECT VALUE c.n FROM c WHERE ${list.map((n) => `c.n = ${n}`).join(" OR ")}`,
            given("SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(@list, c.n)", { list }),
        ])
            assert.deepEqual((await ask(container, query)).sort(), [58, 59]);
    }
});

// --- Computed properties

test("computed properties are asked for like others, and are not in items", async () => {
    const definition = computed(
        ["lower", "SELECT VALUE LOWER(c.city) FROM c"],
        ["double", "SELECT VALUE c.n * 2 FROM c"],
    );
    for (const [, container] of await eachSize(database, definition)) {
        await fill(container, STORED);
        await checkRows(container, [
            ["SELECT * FROM c", STORED],
            [
                "SELECT VALUE c.n FROM c WHERE c.lower = 'oslo'",
                where(({ city }) => /oslo/i.test(city)).map(({ n }) => n),
            ],
            ["SELECT c.double, c.lower FROM c WHERE c.n = 4", [{ double: 8, lower: "ålesund" }]],
            ["SELECT VALUE c.n FROM c WHERE c.double > 100 AND c.double < 104", [51]],
            [
                "SELECT c.lower, COUNT(1) AS count FROM c GROUP BY c.lower",
                groupsBy(STORED, ({ city }) => city.toLowerCase()).map(
                    ([lower, list]) => ({ lower, count: list.length }),
                ),
            ],
            ["SELECT VALUE c.double FROM c ORDER BY c.double DESC OFFSET 0 LIMIT 2", [118, 116]],
        ]);
    }
});
