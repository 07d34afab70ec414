// How queries are run, as the server tells it: indexes used and missing, partitions touched, metrics,
// charges; and that no index changes a result.
import assert from "node:assert/strict";
import test from "node:test";

import { computed, indexing, paths } from "./lib/definition.mjs";
import { callItems, eachSize, fill, listAll, newContainer, SIZES, until } from "./lib/items.mjs";
import { askPage, explain, resultsOf } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { ofOneNode, sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed", "--merge", "always", "--extensions"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: unique("plans") });

const COUNT = 400;
const ITEMS = Array.from({ length: COUNT }, (_, i) => ({
    id: `${i}`,
    pk: `key ${i % 20}`,
    n: i,
    ten: i % 10,
    off: { n: i },
    text: `text ${i}`,
    tags: [`tag ${i % 50}`, "all"],
    parts: [{ k: i % 25 }, { k: 100 + (i % 25) }],
    deep: { er: { n: i % 40 } },
    ...(i % 100 === 27 && { rare: `rare ${(i - 27) / 100}` }),
    place: { type: "Point", coordinates: [i / 10, 0] },
}));
const POLICY = indexing({
    excludedPaths: paths("/off/*", '/"_etag"/?'),
    compositeIndexes: [[{ path: "/ten" }, { path: "/n", order: "descending" }]],
    spatialIndexes: [{ path: "/place/?", types: ["Point"] }],
});

const containers = await eachSize(database, POLICY);
for (const [, container] of containers) await fill(container, ITEMS);

function onEach(name, work, options = {}) {
    for (const [size, container] of containers) test(`${name} (${size})`, options, (t) => work(container, t));
}

const partitionsOf = (container) => container.readPartitionKeyRanges().fetchAll();

// --- Explain

onEach("an index is used where it helps, and said to be", async (container) => {
    for (const [condition, index, count] of [
        ["c.n = 7", "/n/?", 1],
        ["c.id = '17'", "/id/?", 1],
        ["c.ten = 3 AND c.n < 50", "/ten ASC, /n DESC", 5],
        ["c.n IN (1, 2, 3, 5000)", "/n/?", 3],
        ["c.n BETWEEN 10 AND 12", "/n/?", 3],
        ["c.n > 395", "/n/?", 4],
        ["c.n = 1 OR c.text = 'text 2'", "/text/?", 2],
        ["NOT (c.n > 2)", "/n/?", 3],
        ["STARTSWITH(c.text, 'text 39')", "/text/?", 11],
        ["c.text LIKE 'text 39_'", "/text/?", 10],
        ["ARRAY_CONTAINS(c.tags, 'tag 7')", "/tags/[]/?", 8],
        ["EXISTS(SELECT VALUE p FROM p IN c.parts WHERE p.k = 107)", "/parts/[]/k/?", 16],
        ["c.deep.er.n = 5", "/deep/er/n/?", 10],
        ["IS_DEFINED(c.rare)", "/rare/?", 4],
        ["IS_STRING(c.rare) AND c.n < 300", "/rare/?", 3],
        ["NOT IS_DEFINED(c.n) OR c.rare != 'rare 0'", "/rare/?", 3],
        ["c.pk = 'key 7' AND c.rare = 'rare 1'", "/rare/?", 1],
        ["c.n = 1 AND c.text = 'text 1' AND c.deep.er.n = 1", "/text/?", 1],
        ["ST_DISTANCE(c.place, {'type': 'Point', 'coordinates': [20, 0]}) < 50000", "/place/?", 9],
    ]) {
        const told = await explain(server, container, `SELECT * FROM c WHERE ${condition}`);
        const message = `${condition}: ${JSON.stringify({ ...told, rows: 0 }).slice(0, 900)}`;
        assert.equal(told.results, count, message);
        assert.ok(told.itemsRead < COUNT / 4, message);
        assert.ok(told.indexKeysRead > 0, message);
        assert.match(JSON.stringify(told.partitions), new RegExp(`"index":"${escaped(index)}"`), message);
        assert.ok(told.partitions.some(({ by }) => by.startsWith("index")), message);
    }
});

test("every value of an index is looked at rather than every item", async () => {
    const [[, container]] = containers; // of few items it is as well to look at all
    for (const [condition, index, count] of [
        ["CONTAINS(c.text, '39')", "/text/?", 14],
        ["CONTAINS(c.text, 'T 39', true)", "/text/?", 11],
        ["ENDSWITH(c.text, '99')", "/text/?", 4],
        ["REGEXMATCH(c.text, ' 3[0-4]$')", "/text/?", 5],
        ["c.text LIKE '%t 39_'", "/text/?", 10],
        ["STARTSWITH(c.text, 'TEXT 39', true)", "/text/?", 11],
        ["UPPER(c.rare) = 'RARE 2'", "/rare/?", 1],
        ["c.deep.er.n % 20 = 7 AND c.n < 100", "/deep/er/n/?", 5],
    ]) {
        const told = await explain(server, container, `SELECT * FROM c WHERE ${condition}`);
        const message = `${condition}: ${JSON.stringify({ ...told, rows: 0 }).slice(0, 900)}`;
        assert.equal(told.results, count, message);
        assert.ok(told.itemsRead < COUNT / 4, message);
        const pattern = new RegExp(`"filter":"(index scan|range|union)"[^}]*"index":"${escaped(index)}"`);
        assert.match(JSON.stringify(told.partitions), pattern, message);
    }
});

const escaped = (text) => text.replace(/[/?[\]]/g, "\\$&");

onEach("what no index serves is a full scan, and said to be", async (container) => {
    for (const [condition, count] of [
        ["c.off.n = 7", 1],
        ["c.off.n > 390", 9],
        ["c.n = c.off.n AND c.off.n < 3", 3],
        ["LENGTH(c.text) + c.ten = 6", 1],
    ]) {
        const told = await explain(server, container, `SELECT * FROM c WHERE ${condition}`, { size: -1 });
        assert.equal(told.results, count, condition);
        assert.equal(told.itemsRead, COUNT, condition);
        assert.equal(told.partitionsVisited, (await partitionsOf(container)).resources.length);
        for (const { by } of told.partitions) assert.equal(by, "full scan", condition);
    }
});

onEach("what the index has is not read from items", async (container) => {
    const sum = (from, to) => ((to - from + 1) * (from + to)) / 2;
    for (const [query, expected] of [
        ["SELECT VALUE COUNT(1) FROM c", [COUNT]],
        ["SELECT VALUE COUNT(1) FROM c WHERE c.ten = 3", [40]],
        ["SELECT VALUE COUNT(1) FROM c WHERE c.n >= 100 AND c.n < 300", [200]],
        ["SELECT VALUE COUNT(c.deep.er.n) FROM c WHERE c.ten != 3", [360]],
        ["SELECT VALUE COUNT(1) FROM c WHERE CONTAINS(c.text, '39')", [14]],
        ["SELECT VALUE MIN(c.n) FROM c WHERE c.ten = 3", [3]],
        ["SELECT VALUE MAX(c.text) FROM c", ["text 99"]],
        ["SELECT MIN(c.n) AS a, MAX(c.n) AS b, SUM(c.n) AS c FROM c", [{ a: 0, b: 399, c: sum(0, 399) }]],
        ["SELECT VALUE AVG(c.n) FROM c WHERE c.n > 299", [349.5]],
        ["SELECT DISTINCT VALUE c.ten FROM c WHERE c.n < 3 ORDER BY c.ten", [0, 1, 2]],
        ["SELECT c.ten, COUNT(1) AS n FROM c WHERE c.n < 15 AND c.ten > 7 GROUP BY c.ten", [8, 9].map((ten) => ({ ten, n: 1 }))],
        ["SELECT VALUE c.n FROM c WHERE c.n > 395 ORDER BY c.n DESC", [399, 398, 397, 396]],
        ["SELECT TOP 2 c.deep.er.n AS x FROM c WHERE c.deep.er.n > 7 ORDER BY c.deep.er.n", [{ x: 8 }, { x: 8 }]],
    ]) {
        const told = await explain(server, container, query);
        assert.deepEqual(told.rows, expected, query);
        assert.equal(told.itemsRead, 0, query);
        assert.ok(told.indexKeysRead > 0, query);
    }
});

onEach("a partition key's query looks at its logical partition alone", async (container) => {
    for (const [query, count] of [
        ["SELECT * FROM c", 20],
        ["SELECT * FROM c WHERE c.off.n >= 0", 20],
        ["SELECT * FROM c WHERE c.n < 100", 5],
        ["SELECT * FROM c ORDER BY c.n DESC", 20],
        ["SELECT DISTINCT VALUE c.ten FROM c", 1],
        ["SELECT VALUE COUNT(c.off.n) FROM c", 1],
    ]) {
        const told = await explain(server, container, query, { key: "key 7", size: -1 });
        assert.equal(told.results, count, query);
        assert.equal(told.partitionsVisited, 1, query);
        assert.ok(told.itemsRead <= 20, `${query}: ${told.itemsRead} items read`);
        const plain = query.replace("COUNT(c.off.n)", "c.n");
        const nothing = await explain(server, container, plain, { key: "no" });
        assert.deepEqual([nothing.results, nothing.itemsRead, nothing.partitionsVisited], [0, 0, 1], query);
    }
});

onEach("a filter of the partition key is as good as the key", async (container) => {
    const all = (await partitionsOf(container)).resources.length;
    const headers = { "x-ms-documentdb-query-enablecrosspartition": "true" };
    for (const [condition, count, visited = 1] of [
        ["c.pk = 'key 7'", 20],
        ["'key 7' = c.pk AND c.n < 100", 5],
        ["c.n < 100 AND c['pk'] = @key", 5],
        ["c.pk = 'no'", 0],
        ["c.pk = null", 0],
        ["c.pk = 'key 7' AND c.pk = 'key 8'", 0, 0],
        ["c.pk = 'key 7' OR c.n = 8", 21, all],
        ["c.pk IN ('key 7')", 20],
        ["c.pk > 'key 7'", 40, all],
    ]) {
        const parameters = [{ name: "@key", value: "key 7" }];
        const query = { query: `SELECT * FROM c WHERE ${condition}`, parameters };
        const told = await explain(server, container, query, { headers, size: -1 });
        assert.deepEqual([told.results, told.partitionsVisited], [count, visited], condition);
        const { resources } = await container.items.query(query, { maxItemCount: 3 }).fetchAll();
        assert.equal(resources.length, count, condition);
    }
});

test("a filter of the first parts of a hierarchical key leads to them", async () => {
    const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
    const container = await newContainer(database, SIZES.at(-1), { partitionKey });
    const items = Array.from({ length: 90 }, (_, i) => ({ id: `${i}`, tenant: `t${i % 3}`, user: `u${i % 9}` }));
    await fill(container, items);
    for (const [condition, count, read] of [
        ["c.tenant = 't1'", 30, 30],
        ["c.user = 'u4' AND c.tenant = 't1'", 10, 10],
        ["c.tenant = 't1' AND c.user > 'u4'", 10, 30],
        ["c.user = 'u4'", 10, 90],
    ]) {
        const query = `SELECT * FROM c WHERE ${condition}`;
        const told = await explain(server, container, query, { size: -1 });
        assert.equal(told.results, count, condition);
        assert.ok(told.itemsRead <= read, `${condition}: ${told.itemsRead} items read`);
        if (read < 90) assert.equal(told.partitionsVisited, 1, condition);
    }
});

test("a prefix of a hierarchical key looks at what is below it alone", async () => {
    const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
    for (const size of SIZES) {
        const container = await newContainer(database, size, { partitionKey });
        const items = Array.from({ length: 90 }, (_, i) => ({
            id: `${i}`,
            tenant: `t${i % 3}`,
            user: `u${i % 9}`,
            n: i,
        }));
        await fill(container, items);
        for (const [key, count] of [
            [["t1"], 30],
            [["t1", "u4"], 10],
            [["t1", "u0"], 0],
            [["t9"], 0],
        ]) {
            for (const end of ["", " WHERE c.n >= 0", " ORDER BY c.n"]) {
                const query = `SELECT * FROM c${end}`;
                const told = await explain(server, container, query, { key, size: -1 });
                assert.equal(told.results, count, `${key} ${query}`);
                assert.ok(told.itemsRead <= count, `${key} ${query}: ${told.itemsRead} items read`);
            }
            const options = { partitionKey: key, maxItemCount: 4 };
            const { resources } = await container.items.query("SELECT VALUE c.n FROM c", options).fetchAll();
            assert.equal(resources.length, count);
        }
    }
});

onEach("a range's query looks at that range alone", async (container) => {
    const { resources: ranges } = await partitionsOf(container);
    let results = 0;
    for (const { id } of ranges) {
        const headers = { "x-ms-documentdb-partitionkeyrangeid": id };
        const query = "SELECT * FROM c WHERE c.ten = 3";
        const told = await explain(server, container, query, { headers, size: -1 });
        assert.equal(told.partitionsVisited, 1);
        const items = await listAll(server, container, { headers });
        assert.equal(told.results, items.filter(({ ten }) => ten === 3).length);
        results += told.results;
    }
    assert.equal(results, 40);
});

onEach("explanations and index metrics stay short enough for clients", async (container) => {
    const long = Array.from({ length: 200 }, (_, i) => `c["${"ø".repeat(100)} ${i}"] = 1`);
    const both = { "x-orrery-explain": "true", "x-ms-documentdb-populatequerymetrics": "true" };
    for (const name of ["x-ms-cosmos-populateindexmetrics", "x-ms-cosmos-populateindexmetrics-V2"])
        for (const where of [long.join(" OR "), long.slice(0, 40).join(" AND "), long[0]]) {
            const query = `SELECT * FROM c WHERE ${where}`;
            const headers = { ...both, [name]: "True" };
            const answer = await askPage(server, container, query, { headers });
            assert.deepEqual(resultsOf(answer), []);
            const told = JSON.parse(decodeURIComponent(answer.headers["x-orrery-explain"]));
            assert.equal(told.results, 0);
            const bytes = JSON.stringify(answer.headers).length;
            assert.ok(bytes < 14_000, `${bytes} bytes of headers`);
        }
});

test("the partition key is indexed whatever the policy says", async () => {
    for (const policy of [
        indexing({ includedPaths: [], excludedPaths: paths("/*") }),
        indexing({ excludedPaths: paths("/pk/?", "/pk/*") }),
        { indexingPolicy: { indexingMode: "none", automatic: false } },
    ]) {
        const container = await newContainer(database, SIZES[0], policy);
        await fill(container, ITEMS.slice(0, 100));
        for (const [query, results] of [
            ["SELECT VALUE c.n FROM c WHERE c.pk IN ('key 7') AND c.off.n > 50", 2],
            ["SELECT VALUE c.n FROM c WHERE c.id = '17'", 1],
        ]) {
            const told = await explain(server, container, query);
            assert.equal(told.results, results, query);
            assert.ok(told.itemsRead <= 5, `${query}: ${told.itemsRead} items read`);
        }
        const order = "SELECT VALUE c.n FROM c ORDER BY c.pk DESC";
        assert.equal((await explain(server, container, order)).results, 100);
    }
});

// --- Metrics, as the SDK reads them

onEach("the SDK reads query metrics and index metrics", async (container) => {
    const options = { populateQueryMetrics: true, populateIndexMetrics: true };
    const page = async (query, more) => {
        const response = await container.items.query(query, { ...options, ...more }).fetchNext();
        const [metrics] = Object.values(response.queryMetrics);
        return { response, metrics, indexes: JSON.parse(response.indexMetrics) };
    };
    const scan = await page("SELECT * FROM c WHERE c.off.n = 7");
    assert.equal(scan.metrics.retrievedDocumentCount, COUNT);
    assert.equal(scan.metrics.outputDocumentCount, 1);
    assert.ok(scan.metrics.retrievedDocumentSize > 50 * COUNT);
    const { length } = JSON.stringify(scan.response.resources[0]);
    assert.equal(scan.metrics.outputDocumentSize, length);
    assert.ok(scan.metrics.totalQueryExecutionTime.totalMilliseconds() > 0);
    assert.equal(scan.metrics.clientSideMetrics.requestCharge, scan.response.requestCharge);
    assert.deepEqual(scan.indexes.UtilizedIndexes, { SingleIndexes: [], CompositeIndexes: [] });
    assert.deepEqual(scan.indexes.PotentialIndexes.SingleIndexes, [{ IndexSpec: "/off/n/?" }]);

    const found = await page("SELECT * FROM c WHERE c.n = 7");
    assert.equal(found.metrics.retrievedDocumentCount, 1);
    assert.equal(found.metrics.indexHitRatio, 1);
    assert.deepEqual(found.indexes.UtilizedIndexes.SingleIndexes, [{ IndexSpec: "/n/?" }]);
    assert.deepEqual(found.indexes.PotentialIndexes, { SingleIndexes: [], CompositeIndexes: [] });
    assert.deepEqual(found.indexes.Utilized, found.indexes.UtilizedIndexes);
    assert.ok(found.response.requestCharge < scan.response.requestCharge);

    for (const end of ["WHERE c.ten = 3 AND c.n < 50", "ORDER BY c.ten, c.n DESC"]) {
        const several = await page(`SELECT * FROM c ${end}`, { maxItemCount: 5 });
        assert.equal(several.metrics.outputDocumentCount, 5);
        assert.deepEqual(several.indexes.UtilizedIndexes, {
            SingleIndexes: [],
            CompositeIndexes: [{ IndexSpecs: ["/ten ASC", "/n DESC"], IndexImpactScore: "High" }],
        });
    }
    const plain = await container.items.query("SELECT * FROM c WHERE c.n = 7").fetchNext();
    assert.equal(plain.queryMetrics, undefined);
    assert.equal(plain.headers["x-ms-cosmos-index-utilization"], undefined);
    assert.equal(plain.headers["x-orrery-explain"], undefined);
});

onEach("the older form of index metrics is base64 of JSON", async (container) => {
    const headers = { "x-ms-cosmos-populateindexmetrics": "True" };
    const query = "SELECT * FROM c WHERE c.n = 7 AND c.off.n = 7";
    const answer = await askPage(server, container, query, { headers });
    const text = Buffer.from(answer.headers["x-ms-cosmos-index-utilization"], "base64").toString("utf8");
    const entry = (IndexSpec) => ({
        FilterExpression: "",
        IndexSpec,
        FilterPreciseSet: true,
        IndexPreciseSet: true,
        IndexImpactScore: "High",
    });
    assert.deepEqual(JSON.parse(text), {
        UtilizedSingleIndexes: [entry("/n/?")],
        UtilizedCompositeIndexes: [],
        PotentialSingleIndexes: [entry("/off/n/?")],
        PotentialCompositeIndexes: [],
    });
});

onEach("composite indexes that would help are named, in both forms", async (container) => {
    const told = async (query, name) => {
        const headers = { [name]: "True" };
        const answer = await askPage(server, container, query, { headers });
        resultsOf(answer);
        return answer.headers["x-ms-cosmos-index-utilization"];
    };
    for (const [end, ...expected] of [
        ["WHERE c.n = 7 AND c.text = 'text 7'", ["/n ASC", "/text ASC"]],
        [
            "WHERE c.text = 'text 7' AND c.n > 3 AND c.deep.er.n = 7 AND c._ts > 5",
            ["/text ASC", "/deep/er/n ASC", "/n ASC"],
            ["/text ASC", "/deep/er/n ASC", "/_ts ASC"],
        ],
        ["WHERE c.text = 'text 7' ORDER BY c.n DESC", ["/text ASC", "/n DESC"]],
        ["WHERE c.text = 'text 7' ORDER BY c.ten, c.n DESC", ["/text ASC", "/ten ASC", "/n DESC"]],
        ["WHERE c.ten = 3 AND c.n < 50"],
        ["WHERE c.n > 7 AND c.text > 'a'"],
    ]) {
        const query = `SELECT * FROM c ${end}`;
        const v2 = decodeURIComponent(await told(query, "x-ms-cosmos-populateindexmetrics-V2"));
        assert.deepEqual(
            JSON.parse(v2).PotentialIndexes.CompositeIndexes,
            expected.map((IndexSpecs) => ({ IndexSpecs, IndexImpactScore: "High" })),
            end,
        );
        const v1 = Buffer.from(await told(query, "x-ms-cosmos-populateindexmetrics"), "base64").toString();
        assert.deepEqual(
            JSON.parse(v1).PotentialCompositeIndexes,
            expected.map((IndexSpecs) => ({ IndexSpecs, IndexPreciseSet: false, IndexImpactScore: "High" })),
            end,
        );
    }
});

test("names with commas and dots are told whole", async () => {
    const path = '/"a, b"/"c.d/e"';
    const compositeIndexes = [[{ path }, { path: "/n", order: "descending" }]];
    const container = await newContainer(database, SIZES[0], indexing({ compositeIndexes }));
    const items = Array.from({ length: 40 }, (_, i) => ({ id: `${i}`, pk: "p", n: i, "a, b": { "c.d/e": i % 4 } }));
    await fill(container, items);
    const query = "SELECT * FROM c WHERE c['a, b']['c.d/e'] = 1 ORDER BY c.n";
    const options = { populateIndexMetrics: true };
    const { indexMetrics } = await container.items.query(query, options).fetchNext();
    assert.deepEqual(JSON.parse(indexMetrics).UtilizedIndexes.CompositeIndexes, [
        { IndexSpecs: [`${path} ASC`, "/n DESC"], IndexImpactScore: "High" },
    ]);
});

// --- Charges and sessions

onEach("a page has a charge for what it did, and the sessions of what it looked at", async (container) => {
    const ranges = (await partitionsOf(container)).resources.map(({ id }) => id);
    const sessions = (answer) =>
        answer.headers["x-ms-session-token"].split(",").map((one) => one.split(":")[0]);
    const charge = async (query, options) => {
        const answer = await askPage(server, container, query, options);
        resultsOf(answer);
        assert.deepEqual(sessions(answer), options?.key ? [sessions(answer)[0]] : ranges);
        const text = answer.headers["x-ms-request-charge"];
        assert.match(text, /^\d+(\.\d+)?$/);
        return Number(text);
    };
    const one = await charge("SELECT * FROM c WHERE c.n = 7", { key: "key 7" });
    assert.ok(one >= 2 && one < 10, `${one}`);
    const many = await charge("SELECT * FROM c WHERE c.n IN (7, 8)");
    const scan = await charge("SELECT * FROM c WHERE c.off.n = 7");
    assert.ok(one < many && many < scan, `${one} ${many} ${scan}`);
    assert.equal(await charge("SELECT * FROM c WHERE c.off.n = 7"), scan, "the same work has the same price");
    const half = await charge("SELECT * FROM c", { size: 10 });
    assert.ok(half < (await charge("SELECT * FROM c", { size: 400 })));
}, { skip: ofOneNode("a page ends with the ranges of a node") });

test("a query sees what its session has written", async () => {
    for (const [, container] of containers) {
        for (let i = 0; i < 20; i++) {
            const { headers } = await container.items.create({ id: `new ${i}`, pk: `key ${i}`, fresh: i });
            const options = { sessionToken: headers["x-ms-session-token"] };
            const query = `SELECT VALUE c.id FROM c WHERE c.fresh = ${i}`;
            const { resources } = await container.items.query(query, options).fetchAll();
            assert.deepEqual(resources, [`new ${i}`]);
            await container.item(`new ${i}`, `key ${i}`).delete();
            assert.deepEqual((await container.items.query(query).fetchAll()).resources, []);
        }
    }
});

// --- No index changes a result

const CONDITIONS = [
    "c.n = 7",
    "c.n != 7",
    "c.n < 30 AND c.ten >= 5",
    "c.n < 30 OR c.off.n > 350",
    "NOT (c.n > 100 OR c.ten = 2)",
    "c.text > 'text 3'",
    "c.text LIKE '%9_'",
    "STARTSWITH(c.text, 'TEXT 1', true)",
    "ENDSWITH(c.text, '9')",
    "REGEXMATCH(c.text, '[13579]$')",
    "ARRAY_CONTAINS(c.tags, 'tag 3')",
    "c.tags[0] = 'tag 3'",
    "EXISTS(SELECT VALUE p FROM p IN c.parts WHERE p.k > 120)",
    "IS_DEFINED(c.deep.er) AND NOT IS_DEFINED(c.n.x)",
    "IS_NUMBER(c.n) AND IS_OBJECT(c.deep) AND NOT IS_STRING(c.tags)",
    "c.deep = {er: {n: 3}}",
    "c.twice = 14 OR c.n * 2 = 20",
    "ST_DISTANCE(c.place, {'type': 'Point', 'coordinates': [20, 0]}) < 100000",
    "ST_WITHIN(c.place, {'type': 'Polygon', 'coordinates': [[[1, -1], [5, -1], [5, 1], [1, 1], [1, -1]]]})",
];
const QUERIES = [
    ...["c.n", "[COUNT(1), SUM(c.n), MIN(c.ten)]"].flatMap((value) =>
        CONDITIONS.map((condition) => `SELECT VALUE ${value} FROM c WHERE ${condition}`),
    ),
    "SELECT c.ten, COUNT(1) AS count, MAX(c.n) AS max FROM c GROUP BY c.ten",
    "SELECT DISTINCT VALUE c.ten FROM c WHERE c.n > 200",
    "SELECT VALUE t FROM c JOIN t IN c.tags WHERE t != 'all' AND c.n < 20",
];

test("results are the same with any policy", async () => {
    const twice = computed(["twice", "SELECT VALUE c.n * 2 FROM c"]);
    const policies = [
        POLICY,
        { indexingPolicy: { indexingMode: "none", automatic: false } },
        indexing({ includedPaths: [], excludedPaths: paths("/*") }),
        indexing({ includedPaths: paths("/n/?", "/tags/[]/?", "/deep/*"), excludedPaths: paths("/*") }),
        indexing({ excludedPaths: paths("/n/?", "/text/?", "/parts/*") }),
    ];
    const answers = [];
    for (const policy of policies)
        for (const size of SIZES) {
            const container = await newContainer(database, size, { ...policy, ...twice });
            await fill(container, ITEMS);
            const results = [];
            for (const query of QUERIES) {
                const { resources } = await container.items.query(query, { maxItemCount: -1 }).fetchAll();
                results.push([query, resources.map((one) => JSON.stringify(one)).sort()]);
            }
            answers.push(results);
        }
    for (const other of answers.slice(1)) assert.deepEqual(other, answers[0]);
    assert.ok(answers[0].every(([, results]) => results.length > 0));
});

test("items without an index, and those that have expired, are there for no query", async () => {
    const both = await eachSize(database, { defaultTtl: -1 });
    for (const [, container] of both)
        for (const { id, pk, n, ten } of ITEMS.slice(0, 40)) {
            const directive = n % 5 === 0 ? "Exclude" : "Include";
            const body = { id, pk, n, ten, one: 1, ...(n % 4 === 0 && { ttl: 1 }) };
            const headers = { "x-ms-indexing-directive": directive };
            const answer = await callItems(server, container, { method: "POST", key: pk, body, headers });
            assert.equal(answer.status, 201);
        }
    const expected = ITEMS.slice(0, 40).flatMap(({ n }) => (n % 5 === 0 || n % 4 === 0 ? [] : n));
    for (const [, container] of both) {
        const ask = async (query) => (await container.items.query(query).fetchAll()).resources;
        await until(async () => (await ask("SELECT * FROM c")).length === expected.length);
        const count = expected.length;
        for (const [query, results] of [
            ["SELECT VALUE c.n FROM c WHERE c.n >= 0", expected],
            ["SELECT VALUE c.n FROM c WHERE c.n * c.one >= 0", expected],
            ["SELECT VALUE c.n FROM c ORDER BY c.n", expected],
            ["SELECT VALUE COUNT(1) FROM c", [count]],
            ["SELECT VALUE COUNT(1) FROM c WHERE c.one = 1", [count]],
            ["SELECT c.one, COUNT(1) AS count FROM c GROUP BY c.one", [{ one: 1, count }]],
            ["SELECT VALUE MAX(c.n) FROM c WHERE c.ten = 5", []],
            ["SELECT VALUE c.n FROM c WHERE c.id IN ('4', '5', '6')", [6]],
        ]) {
            const found = await ask(query);
            if (found.length > 1) found.sort((a, b) => a - b);
            assert.deepEqual(found, results, query);
        }
    }
});
