// Texts that SDKs, their tests and their users look for in what the server answers.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { call, query } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "texts" });
const { container } = await database.containers.create({
    id: "c",
    partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 },
    throughput: 400,
});
await container.items.create({ id: "i", pk: "p", n: 1 });
const DOCS = "/dbs/texts/colls/c/docs";
const COLLS = "/dbs/texts/colls";
const KEY = { "x-ms-documentdb-partitionkey": '["p"]' };
const BATCH = { ...KEY, "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true" };
const LARGE = "x".repeat(2 * 1024 * 1024);

const post = (path, body, headers = {}) => ({ method: "POST", path, body, headers });
const newContainer = (more) => post(COLLS, { id: "new", partitionKey: { paths: ["/pk"] }, ...more });
const withKey = (partitionKey) => post(COLLS, { id: "new", partitionKey });
const replaced = (more) => ({
    method: "PUT",
    path: `${COLLS}/c`,
    body: { id: "c", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 }, ...more },
});
const batchOf = (count) =>
    post(DOCS, JSON.stringify(Array(count).fill({ operationType: "Read", id: "i" })), BATCH);
const multiHash = (...paths) => withKey({ paths, kind: "MultiHash", version: 2 });

const TOKEN = "Invalid Continuation Token";
const PATHS =
    "Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character";
const MANY_PATHS = "Too many partition key paths";
const SIZE = 'Message: {"Errors":["Request size is too large"]}';
const MISMATCH =
    "Partition key provided either doesn't correspond to definition in the collection or doesn't match " +
    "partition key field values specified in the document.";
const NAME = "Ensure to provide a unique non-empty string less than '255' characters.";
const ITEM_NAME = "Ensure to provide a unique non-empty string less than '1024' characters.";
const INPUTS = "One of the specified inputs is invalid";
const computed = (...computedProperties) => newContainer({ computedProperties });
const LOWER = { name: "lower", query: "SELECT VALUE LOWER(c.name) FROM c" };
const policy = (conflictResolutionPolicy) => newContainer({ conflictResolutionPolicy });

// What is asked, and what the answer says: status, sub-status, text.
const ROWS = {
    "a token of another server, for databases": [
        { path: "/dbs", headers: { "x-ms-continuation": "rubbish" } },
        400, 0, TOKEN,
    ],
    "a token of another server, for items": [
        { path: DOCS, headers: { "x-ms-continuation": "rubbish" } },
        400, 0, TOKEN,
    ],
    "a token of another server, for ranges": [
        { path: `${COLLS}/c/pkranges`, headers: { "x-ms-continuation": "rubbish" } },
        400, 0, TOKEN,
    ],
    "a path that ends in a slash": [withKey({ paths: ["/a/"] }), 400, 0, PATHS],
    "a path with a wildcard": [withKey({ paths: ["/a/*"] }), 400, 0, PATHS],
    "a path with other characters": [withKey({ paths: ["/a b"] }), 400, 0, PATHS],
    "four paths": [multiHash("/a", "/b", "/c", "/d"), 400, 0, MANY_PATHS],
    "two paths of a plain key": [withKey({ paths: ["/a", "/b"], version: 2 }), 400, 0, MANY_PATHS],
    "a batch of nothing": [batchOf(0), 400, 0, "Batch request has no operations."],
    "a batch of 101": [batchOf(101), 400, 0, "Batch request has more operations than what is supported."],
    "a large item": [post(DOCS, { id: "l", pk: "p", LARGE }, KEY), 413, 0, SIZE],
    "a large patch": [
        { method: "PATCH", path: `${DOCS}/i`, headers: KEY, body: `[{"op":"add","path":"/x","value":"${LARGE}"}]` },
        413, 0, SIZE,
    ],
    "a large batch": [
        post(DOCS, JSON.stringify([{ operationType: "Upsert", resourceBody: { id: "l", pk: "p", LARGE } }]), BATCH),
        413, 0, SIZE,
    ],
    "a key that is not the document's": [post(DOCS, { id: "x", pk: "q" }, KEY), 400, 1001, MISMATCH],
    "a key with too many values": [
        { path: `${DOCS}/i`, headers: { "x-ms-documentdb-partitionkey": '["p","q"]' } },
        400, 1001, MISMATCH,
    ],
    "a database without a name": [post("/dbs", { id: "" }), 400, 0, NAME],
    "a database with a long name": [post("/dbs", { id: "x".repeat(256) }), 400, 0, NAME],
    "a database with a slash in its name": [post("/dbs", { id: "a/b" }), 400, 0, NAME],
    "a container without a name": [newContainer({ id: "" }), 400, 0, NAME],
    "a container with a space at the end": [newContainer({ id: "c " }), 400, 0, NAME],
    "an item without a name": [post(DOCS, { id: "", pk: "p" }, KEY), 400, 0, ITEM_NAME],
    "an item with a long name": [post(DOCS, { id: "x".repeat(1024), pk: "p" }, KEY), 400, 0, ITEM_NAME],
    "computed properties that are no list": [newContainer({ computedProperties: LOWER }), 400, 0, INPUTS],
    "a computed property without a query": [computed({ name: "x" }), 400, 0, INPUTS],
    "a computed property twice": [computed(LOWER, LOWER), 400, 0, INPUTS],
    "a computed property with a bad query": [computed({ name: "x", query: "SELECT 1" }), 400, 0, INPUTS],
    "a computed property with a spatial index": [
        newContainer({
            computedProperties: [LOWER],
            indexingPolicy: { spatialIndexes: [{ path: "/lower/?", types: ["Point"] }] },
        }),
        400, 0, INPUTS,
    ],
    "too little throughput": [
        post("/dbs", { id: "little" }, { "x-ms-offer-throughput": "300" }),
        400, 0, "Requested throughput 300 is less than required minimum throughput 400",
    ],
    "too little autoscale throughput": [
        post("/dbs", { id: "little" }, { "x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":900}' }),
        400, 0, "Requested throughput 900 is less than required minimum throughput 1000",
    ],
    "a path of conflicts that is nested": [
        policy({ mode: "LastWriterWins", conflictResolutionPath: "/a/b" }),
        400, 0, "Invalid path '/a/b' for last writer wins conflict resolution",
    ],
    "a path of conflicts that is none": [
        policy({ mode: "LastWriterWins", conflictResolutionPath: "someText" }),
        400, 0, "Invalid path 'someText' for last writer wins conflict resolution",
    ],
    "the last writer with a procedure": [
        policy({ mode: "LastWriterWins", conflictResolutionProcedure: "dbs/d/colls/c/sprocs/s" }),
        400, 0, "LastWriterWins conflict resolution mode should not have conflict resolution procedure set.",
    ],
    "a custom mode with a path": [
        policy({ mode: "Custom", conflictResolutionPath: "/a" }),
        400, 0, "Custom conflict resolution mode should not have conflict resolution path set.",
    ],
    "another policy of conflicts": [
        replaced({ conflictResolutionPolicy: { mode: "Custom" } }),
        400, 0, "Updating conflict resolution policy is currently not supported",
    ],
    "a bad path in another policy of conflicts": [
        replaced({ conflictResolutionPolicy: { mode: "LastWriterWins", conflictResolutionPath: "/a/b" } }),
        400, 0, "Invalid path '/a/b' for last writer wins conflict resolution",
    ],
};

for (const [name, [request, status, substatus, text]] of Object.entries(ROWS))
    test(`${name}: ${text.slice(0, 60)}`, async () => {
        const answer = await call(server, request);
        const code = status === 413 ? "RequestEntityTooLarge" : "BadRequest";
        errorAnswer(answer, status, code, { substatus: substatus || undefined });
        assert.ok(answer.json.message.includes(text), answer.json.message);
        if (text === SIZE) assert.ok(answer.json.message.startsWith(text), answer.json.message);
    });

test("a query with a token of another server", async () => {
    const answer = await query(server, DOCS, "SELECT * FROM c", {
        headers: { ...KEY, "x-ms-continuation": "rubbish" },
    });
    errorAnswer(answer, 400, "BadRequest");
    assert.ok(answer.json.message.includes(TOKEN), answer.json.message);
});

test("a policy without a path is the stored one, when that is the default", async () => {
    const answer = await call(server, replaced({ conflictResolutionPolicy: { mode: "LastWriterWins" } }));
    assert.equal(answer.status, 200, answer.text);
});
