// Every property of a container: sent, brought into its normal form, returned, replaced, refused.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import {
    DEFAULTS,
    KEY,
    computed,
    definitionOf,
    encrypted,
    indexing,
    paths,
    times,
    uniqueKeys,
    vectors,
} from "./lib/definition.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";
import { call, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const { database } = await clientOf(server).databases.create({ id: "definitions" });
const PARENT = "/dbs/definitions/colls";

async function create(body) {
    const full = { id: unique("c"), partitionKey: structuredClone(KEY), ...structuredClone(body) };
    return database.containers.create(full);
}

/** Makes the key that `encrypted` names. */
async function createKey(to, id) {
    const body = { id: "k1", encryptionAlgorithm: "A", wrappedDataEncryptionKey: "AQID", keyWrapMetadata: {} };
    const made = await call(to, { method: "POST", path: `/dbs/${id}/clientencryptionkeys`, body });
    assert.equal(made.status, 201, made.text);
}
await createKey(server, database.id);

const createRaw = (body) => call(server, { method: "POST", path: PARENT, body });
const replaceRaw = (id, body) => call(server, { method: "PUT", path: `${PARENT}/${id}`, body });

// --- What is accepted, and what becomes of it

const EMBEDDINGS = vectors(
    { path: "/v", dimensions: 1536 },
    { path: "/w", dataType: "int8", dimensions: 4096, distanceFunction: "dotproduct" },
    { path: "/x/y", dataType: "uint8", dimensions: 1, distanceFunction: "euclidean" },
    { path: "/h", dataType: "float16", dimensions: 505 },
);
const FULL_TEXT = {
    fullTextPolicy: {
        defaultLanguage: "en-US",
        fullTextPaths: [{ path: "/text", language: "de-DE" }, { path: "/title" }],
    },
};
const SPATIAL_TYPES = ["Point", "LineString", "Polygon", "MultiPolygon"];
const BOX = { xmin: -10, ymin: -20.5, xmax: 10, ymax: 20.5 };
const LOWER = ["lowerName", "SELECT VALUE LOWER(c.name) FROM c"];

// A row: what it shows, what is sent, what comes back (the same if it is left out).
const ACCEPTED = [
    [
        "the name of a partition key's version, as Java sends it",
        { partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: "V2" } },
        { partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: 2 } },
    ],
    ["defaultTtl for ever", { defaultTtl: -1 }],
    ["defaultTtl of a second", { defaultTtl: 1 }],
    ["the largest defaultTtl", { defaultTtl: 2147483647 }],
    ["analyticalStorageTtl for ever", { analyticalStorageTtl: -1 }],
    ["analyticalStorageTtl of an hour", { analyticalStorageTtl: 3600 }],
    [
        "analyticalStorageTtl 0, which is off",
        { analyticalStorageTtl: 0 },
        { analyticalStorageTtl: undefined },
    ],
    ["a plane", { geospatialConfig: { type: "Geometry" } }],
    ["a globe, in another case", { geospatialConfig: { type: "geography" } }, {}],
    ["a change feed policy", { changeFeedPolicy: { retentionDuration: 10 } }],
    ["an empty change feed policy", { changeFeedPolicy: {} }, { changeFeedPolicy: { retentionDuration: 0 } }],
    ["unique keys", uniqueKeys(["/a", "/b/c"], ['/"x y"'])],
    ["no unique keys", uniqueKeys()],
    ["ten unique keys of sixteen paths", uniqueKeys(...times(10, (k) => times(16, (p) => `/k${k}/p${p}`)))],
    [
        "the last writer by a path of its own",
        { conflictResolutionPolicy: { mode: "LastWriterWins", conflictResolutionPath: "/version" } },
        {
            conflictResolutionPolicy: {
                mode: "LastWriterWins",
                conflictResolutionPath: "/version",
                conflictResolutionProcedure: "",
            },
        },
    ],
    [
        "conflicts left to a procedure",
        {
            conflictResolutionPolicy: {
                mode: "custom",
                conflictResolutionProcedure: "dbs/d/colls/c/sprocs/s",
            },
        },
        {
            conflictResolutionPolicy: {
                mode: "Custom",
                conflictResolutionPath: "",
                conflictResolutionProcedure: "dbs/d/colls/c/sprocs/s",
            },
        },
    ],
    ["computed properties", computed(LOWER, ["sum", "SELECT VALUE c.a + c.b FROM c"])],
    ["no computed properties", computed()],
    ["vector embeddings", EMBEDDINGS],
    ["a full-text policy", FULL_TEXT],
    [
        "a full-text policy without a language",
        { fullTextPolicy: { fullTextPaths: [] } },
        { fullTextPolicy: { defaultLanguage: "en-US", fullTextPaths: [] } },
    ],
    ["client encryption", encrypted(1, ["/ssn", "Deterministic"], ["/pay", "Randomized"])],
    ["an encrypted partition key", encrypted(2, ["/pk", "Deterministic"])],
    ["an empty indexing policy", { indexingPolicy: {} }, {}],
    ["only an indexing mode, in another case", { indexingPolicy: { indexingMode: "Consistent" } }, {}],
    ["indexing that is not automatic, which there is not", indexing({ automatic: false }), indexing({})],
    ["lazy indexing, which is consistent", { indexingPolicy: { indexingMode: "Lazy" } }, indexing({})],
    ["a language by its number", { fullTextPolicy: { defaultLanguage: "1033" } }],
    [
        "no index at all",
        { indexingPolicy: { indexingMode: "None", automatic: false } },
        { indexingPolicy: { indexingMode: "none", automatic: false, includedPaths: [], excludedPaths: [] } },
    ],
    [
        "chosen paths",
        indexing({ includedPaths: paths("/a/?", '/"b c"/*', "/tags/[]/?"), excludedPaths: paths("/*") }),
        indexing({
            includedPaths: paths("/a/?", '/"b c"/*', "/tags/[]/?"),
            excludedPaths: paths("/*", '/"_etag"/?'),
        }),
    ],
    [
        "excluded paths, to which _etag is added",
        indexing({ excludedPaths: paths("/big/*") }),
        indexing({ excludedPaths: paths("/big/*", '/"_etag"/?') }),
    ],
    [
        "kinds of indexes, which no longer mean anything",
        indexing({
            includedPaths: [
                {
                    path: "/*",
                    indexes: [
                        { kind: "Range", dataType: "Number", precision: -1 },
                        { kind: "Hash", dataType: "String", precision: 3 },
                    ],
                },
            ],
        }),
        {},
    ],
    [
        "composite indexes",
        indexing({ compositeIndexes: [[{ path: "/a" }, { path: "/b", order: "Descending" }]] }),
        indexing({
            compositeIndexes: [
                [
                    { path: "/a", order: "ascending" },
                    { path: "/b", order: "descending" },
                ],
            ],
        }),
    ],
    [
        "spatial indexes",
        indexing({ spatialIndexes: [{ path: "/loc/*", types: ["point", "Polygon"] }] }),
        indexing({ spatialIndexes: [{ path: "/loc/*", types: SPATIAL_TYPES }] }),
    ],
    [
        "spatial indexes on a plane",
        {
            geospatialConfig: { type: "Geometry" },
            ...indexing({ spatialIndexes: [{ path: "/loc/?", types: SPATIAL_TYPES, boundingBox: BOX }] }),
        },
    ],
    [
        "a spatial index in the older form",
        indexing({
            includedPaths: [
                { path: "/*" },
                { path: "/loc/?", indexes: [{ kind: "Spatial", dataType: "Point" }] },
            ],
        }),
        indexing({
            includedPaths: paths("/*", "/loc/?"),
            spatialIndexes: [{ path: "/loc/?", types: SPATIAL_TYPES }],
        }),
    ],
    [
        "vector indexes",
        {
            ...EMBEDDINGS,
            ...indexing({
                vectorIndexes: [
                    {
                        path: "/v",
                        type: "diskANN",
                        quantizationByteSize: 96,
                        indexingSearchListSize: 100,
                        vectorIndexShardKey: ["/tenant"],
                    },
                    { path: "/w", type: "quantizedFlat", quantizerType: "product" },
                    { path: "/h", type: "flat" },
                ],
            }),
        },
    ],
    ["full-text indexes", { ...FULL_TEXT, ...indexing({ fullTextIndexes: paths("/text") }) }],
    ["a property that is unknown, and is dropped", { colour: "red" }, {}],
];
for (const [what, sent, returned = sent] of ACCEPTED) {
    test(`a container may have ${what}`, async () => {
        const id = unique("p");
        const expected = { id, partitionKey: KEY, ...DEFAULTS, ...returned };
        for (const [name, value] of Object.entries(expected)) if (value === undefined) delete expected[name];

        const { resource, container } = await create({ id, ...sent });
        assert.deepEqual(definitionOf(resource), expected);
        assert.deepEqual((await container.read()).resource, resource);

        // What was read may be sent back and changes nothing.
        const { resource: same, statusCode } = await container.replace(resource);
        assert.equal(statusCode, 200);
        assert.deepEqual(definitionOf(same), expected);
        assert.equal(same._rid, resource._rid);
        assert.notEqual(same._etag, resource._etag);
    });
}

test("what may change changes together, and returns to its default when it is left out", async () => {
    const { resource, container } = await create({});
    const changed = {
        defaultTtl: 60,
        analyticalStorageTtl: 7200,
        changeFeedPolicy: { retentionDuration: 5 },
        geospatialConfig: { type: "Geometry" },
        ...computed(LOWER),
        ...FULL_TEXT,
        ...EMBEDDINGS,
        ...indexing({ fullTextIndexes: paths("/title"), excludedPaths: paths("/x/?", '/"_etag"/?') }),
    };
    const base = { id: resource.id, partitionKey: KEY };
    const { resource: full } = await container.replace({ ...base, ...changed });
    assert.deepEqual(definitionOf(full), { ...base, ...DEFAULTS, ...changed });
    const { resource: bare } = await container.replace({ ...base, ...EMBEDDINGS }); // these must stay
    assert.deepEqual(definitionOf(bare), { ...base, ...DEFAULTS, ...EMBEDDINGS });
    assert.deepEqual((await container.read()).resource, bare);
});

// --- What is refused

const included = (path) => indexing({ includedPaths: paths("/*", path) });
const NO_INDEX = { indexingMode: "none", automatic: false };
const REFUSED = [
    ["defaultTtl 0", { defaultTtl: 0 }, /defaultTtl/],
    ["defaultTtl -2", { defaultTtl: -2 }, /defaultTtl/],
    ["defaultTtl beyond 32 bits", { defaultTtl: 2147483648 }, /defaultTtl/],
    ["half a second", { defaultTtl: 0.5 }, /defaultTtl/],
    ["defaultTtl null", { defaultTtl: null }, /defaultTtl/],
    ["defaultTtl as text", { defaultTtl: "60" }, /defaultTtl/],
    ["defaultTtl without an index", { defaultTtl: 60, indexingPolicy: NO_INDEX }, /defaultTtl/],
    ["analyticalStorageTtl -2", { analyticalStorageTtl: -2 }, /analyticalStorageTtl/],
    ["an unknown geography", { geospatialConfig: { type: "Flat" } }, /geospatialConfig/],
    ["a negative retention", { changeFeedPolicy: { retentionDuration: -1 } }, /changeFeedPolicy/],
    ["eleven unique keys", uniqueKeys(...times(11, (i) => [`/k${i}`])), /uniqueKey/],
    ["a unique key of 17 paths", uniqueKeys(times(17, (i) => `/k${i}`)), /unique key/],
    ["a unique key without paths", uniqueKeys([]), /unique key/],
    ["a unique key twice", uniqueKeys(["/a"], ["/a"]), /unique key/],
    ["a path twice in a unique key", uniqueKeys(["/a", "/a"]), /unique key/],
    ["an array in a unique key", uniqueKeys(["/a/[]"]), /unique key/],
    [
        "an unknown conflict mode",
        { conflictResolutionPolicy: { mode: "CoinToss" } },
        /conflictResolutionPolicy/,
    ],
    [
        "the last writer by procedure",
        { conflictResolutionPolicy: { mode: "LastWriterWins", conflictResolutionProcedure: "p" } },
        /conflict resolution procedure/,
    ],
    ["a computed property without a name", computed(["", LOWER[1]]), /Computed property/],
    ["a computed property without a query", computed(["n"]), /Computed property/],
    ["a computed property twice", computed(LOWER, LOWER), /Computed property/],
    ["a computed system property", computed(["id", LOWER[1]]), /computed property/],
    ["a computed property of an object", computed(["n", "SELECT c.a FROM c"]), /Computed property/],
    [
        "a computed property with a filter",
        computed(["n", "SELECT VALUE c.a FROM c WHERE c.b"]),
        /Computed property/,
    ],
    ["a computed property that is no query", computed(["n", "LOWER(c.a)"]), /Computed property/],
    ["21 computed properties", computed(...times(21, (i) => [`n${i}`, LOWER[1]])), /computedProperties/],
    ["a vector of no dimensions", vectors({ dimensions: 0 }), /Dimensions/],
    ["a vector of 4097 dimensions", vectors({ dimensions: 4097 }), /Dimensions/],
    ["a vector of an unknown type", vectors({ dataType: "float64" }), /DataType/],
    ["a vector of an unknown distance", vectors({ distanceFunction: "hamming" }), /DistanceFunction/],
    ["a vector at no path", vectors({ path: "/v/*" }), /Path/],
    [
        "a vector index without an embedding",
        indexing({ vectorIndexes: [{ path: "/v", type: "flat" }] }),
        /Vector/,
    ],
    [
        "an unknown vector index",
        { ...vectors({}), ...indexing({ vectorIndexes: [{ path: "/v", type: "tree" }] }) },
        /Index Type/,
    ],
    [
        "a flat index of 1536 dimensions",
        { ...EMBEDDINGS, ...indexing({ vectorIndexes: [{ path: "/v", type: "flat" }] }) },
        /505/,
    ],
    ["an unknown language", { fullTextPolicy: { defaultLanguage: "tlh" } }, /language/],
    ["a full-text index without a policy", indexing({ fullTextIndexes: paths("/text") }), /Full Text/],
    ["an encrypted nested property", encrypted(1, ["/a/b", "Deterministic"]), /clientEncryptionPolicy/],
    ["a random encryption of the partition key", encrypted(2, ["/pk", "Randomized"]), /encryption/i],
    [
        "an encrypted id of format 1",
        encrypted(1, ["/id", "Deterministic"]),
        /encryption|policyFormatVersion/i,
    ],
    ["an unknown indexing mode", { indexingPolicy: { indexingMode: "eager" } }, /indexingMode/],
    ["no index, automatically", { indexingPolicy: { ...NO_INDEX, automatic: true } }, /automatic/],
    ["no index, but paths", { indexingPolicy: { ...NO_INDEX, includedPaths: paths("/*") } }, /includedPaths/],
    ["paths without the root", indexing({ includedPaths: paths("/a/?") }), /mandatory indexing path/],
    ["the root on both sides", indexing({ excludedPaths: paths("/*") }), /both/],
    ["a path twice", indexing({ includedPaths: paths("/*", "/a/?", '/"a"/?') }), /more than once/],
    ["a path without an ending", included("/a"), /indexing path/],
    ["a path without a slash", included("a/?"), /indexing path/],
    ["a path with something after its end", included("/a/?/b"), /indexing path/],
    ["a path that is not closed", included('/"a/?'), /indexing path/],
    ["1501 paths", indexing({ includedPaths: paths(...times(1501, (i) => `/p${i}/?`)) }), /1500/],
    ["a composite index of one path", indexing({ compositeIndexes: [paths("/a")] }), /composite index/],
    [
        "a composite index of nine paths",
        indexing({ compositeIndexes: [paths(...times(9, (i) => `/p${i}`))] }),
        /composite index/,
    ],
    ["a composite index with a wildcard", indexing({ compositeIndexes: [paths("/a/*", "/b")] }), /composite/],
    [
        "101 composite indexes",
        indexing({ compositeIndexes: times(101, (i) => paths(`/a${i}`, "/b")) }),
        /compositeIndexes/,
    ],
    ["a spatial index of no types", indexing({ spatialIndexes: [{ path: "/l/*", types: [] }] }), /spatial/],
    [
        "a spatial index of circles",
        indexing({ spatialIndexes: [{ path: "/l/*", types: ["Circle"] }] }),
        /spatial/,
    ],
    [
        "a plane without bounds",
        {
            geospatialConfig: { type: "Geometry" },
            ...indexing({ spatialIndexes: [{ path: "/l/*", types: ["Point"] }] }),
        },
        /boundingBox/,
    ],
    [
        "a globe with bounds",
        indexing({ spatialIndexes: [{ path: "/l/*", types: ["Point"], boundingBox: BOX }] }),
        /boundingBox/,
    ],
    ["a policy that is no object", { indexingPolicy: "all" }, /indexingPolicy/],
    ["a list that is none", { computedProperties: {} }, /computedProperties/],
];
test("a body that cannot be is refused, new and as a replacement, and says why", async (t) => {
    const { resource, container } = await create({});
    for (const [what, body, message] of REFUSED) {
        await t.test(what, async () => {
            const id = unique("no");
            errorAnswer(await createRaw({ id, partitionKey: KEY, ...body }), 400, "BadRequest", { message });
            await refused(database.container(id).read(), 404);
            const replacement = { id: resource.id, partitionKey: KEY, ...body };
            errorAnswer(await replaceRaw(resource.id, replacement), 400, "BadRequest", { message });
        });
    }
    assert.deepEqual((await container.read()).resource, resource);
});

// --- What is fixed

const FIXED = [
    ["the id", { id: "other" }, /\bid\b/],
    ["the partition key's path", { partitionKey: { ...KEY, paths: ["/other"] } }, /partitionKey/],
    ["the partition key's version", { partitionKey: { ...KEY, version: 1 } }, /partitionKey/],
    ["the partition key's kind", { partitionKey: { ...KEY, kind: "MultiHash" } }, /partitionKey/],
    ["the unique keys", uniqueKeys(["/other"]), /uniqueKeyPolicy/],
    ["the conflict resolution", { conflictResolutionPolicy: { mode: "Custom" } }, /conflict resolution policy/],
    ["the encryption", encrypted(1), /clientEncryptionPolicy/],
    ["an embedding", vectors({ dimensions: 4 }), /embedding policy/],
    [
        "an embedding by leaving it out",
        { vectorEmbeddingPolicy: null, indexingPolicy: null },
        /embedding policy/,
    ],
    [
        "a vector index",
        indexing({ vectorIndexes: [{ path: "/v", type: "quantizedFlat" }] }),
        /vector indexing/,
    ],
];
test("what is fixed at creation cannot be replaced", async (t) => {
    const { resource, container } = await create({
        ...uniqueKeys(["/u"]),
        ...vectors({}),
        ...indexing({ vectorIndexes: [{ path: "/v", type: "flat" }] }),
        ...encrypted(1, ["/ssn", "Deterministic"]),
    });
    for (const [what, change, message] of FIXED) {
        await t.test(what, async () => {
            const answer = await replaceRaw(resource.id, { ...definitionOf(resource), ...change });
            errorAnswer(answer, 400, "BadRequest", { message });
        });
    }
    assert.deepEqual((await container.read()).resource, resource);
});

test("what is fixed may be left out of a replacement and stays", async () => {
    const { resource, container } = await create(uniqueKeys(["/u"]));
    const answer = await replaceRaw(resource.id, { id: resource.id, defaultTtl: 7 });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.json.partitionKey, KEY);
    assert.deepEqual(answer.json.uniqueKeyPolicy, resource.uniqueKeyPolicy);
    assert.deepEqual((await container.read()).resource, answer.json);
});

test("embeddings and vector indexes may be added, and an index taken away", async () => {
    const { resource, container } = await create(vectors({}));
    const body = { id: resource.id, partitionKey: KEY, ...vectors({}, { path: "/more" }) };
    const flat = indexing({ vectorIndexes: [{ path: "/more", type: "flat" }] });
    const { resource: added } = await container.replace({ ...body, ...flat });
    assert.deepEqual(definitionOf(added), { ...body, ...DEFAULTS, ...flat });
    const { resource: taken } = await container.replace(body);
    assert.deepEqual(definitionOf(taken), { ...body, ...DEFAULTS });
});

// --- After a restart

test("every definition is the same after a restart", async (t) => {
    const target = await startServer(t);
    const { database: own } = await clientOf(target).databases.create({ id: "kept" });
    await createKey(target, "kept");
    for (const [, sent] of ACCEPTED)
        await own.containers.create({ id: unique("k"), partitionKey: KEY, ...structuredClone(sent) });
    const all = async () =>
        (await clientOf(target).database("kept").containers.readAll().fetchAll()).resources;
    const expected = await all();
    assert.equal(expected.length, ACCEPTED.length);
    await target.restart();
    assert.deepEqual(await all(), expected);
});
