// Every kind of route with every kind of credential, over a real connection. The whole table is in
// src/api/tests/authorisation_matrix_test.c.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { call, callWith, signed, send, unique } from "./lib/wire.mjs";

const READ_ONLY = Buffer.from("r".repeat(64)).toString("base64");
const WRONG = Buffer.from("w".repeat(64)).toString("base64");
const server = await sharedServer({ args: ["--durability", "relaxed", "--read-only-key", READ_ONLY] });

const { database } = await clientOf(server).databases.create({ id: unique("d") });
const container = await newContainer(database);
await container.items.create({ id: "i", pk: "x" });
const { user } = await database.users.create({ id: "u" });
const { user: writer } = await database.users.create({ id: "w" });

async function tokenOf(owner, permissionMode, resource, more = {}) {
    const { resource: made } = await owner.permissions.create({ id: unique("p"), permissionMode, resource, ...more });
    return made._token;
}

const D = `/dbs/${database.id}`;
const C = `/${container.url}`;
const key = { resourcePartitionKey: ["x"] };
const TOKENS = [
    await tokenOf(user, "Read", container.url),
    await tokenOf(writer, "All", container.url),
    await tokenOf(user, "Read", container.url, key),
    await tokenOf(writer, "All", container.url, key),
    await tokenOf(user, "Read", `${container.url}/docs/i`, key),
    await tokenOf(writer, "All", `${container.url}/docs/i`, key),
];

const QUERY = { "x-ms-documentdb-isquery": "True" };
const SQL = { query: "SELECT * FROM c" };

// Letters: the read-only key, then tokens of the container, of a key in it, and of an item, each Read and All.
const ROUTES = [
    ["GET", "/", "yyyyyyy"],
    ["GET", "/dbs", "ynnnnnn"],
    ["POST", "/dbs", "nnnnnnn", {}, { id: "more" }],
    ["GET", D, "ynnnnnn"],
    ["DELETE", D, "nnnnnnn"],
    ["GET", `${D}/colls`, "ynnnnnn"],
    ["GET", C, "yyyyyyy"],
    ["DELETE", C, "nnnnnnn"],
    ["GET", `${C}/pkranges`, "yyyyyyy"],
    ["GET", `${C}/docs`, "yyyyynn"],
    ["GET", `${C}/docs`, "yyyyynn", { "a-im": "Incremental Feed" }],
    ["POST", `${C}/docs`, "yyyyynn", QUERY, SQL],
    ["POST", `${C}/docs`, "yyyyyyy", { "x-ms-cosmos-is-query-plan-request": "True" }, SQL],
    ["POST", `${C}/docs`, "nnynynn", {}, { id: "i", pk: "x" }],
    ["POST", `${C}/docs`, "nnynynn", { "x-ms-documentdb-is-upsert": "True" }, { id: "i", pk: "x" }],
    ["POST", `${C}/docs`, "nnynynn", { "x-ms-cosmos-is-batch-request": "True" }, "[]"],
    ["GET", `${C}/docs/i`, "yyyyyyy"],
    ["PUT", `${C}/docs/i`, "nnynyny", {}, { id: "i", pk: "x" }],
    ["DELETE", `${C}/docs/none`, "nnynynn"],
    ["POST", `${C}/sprocs/none`, "nnynynn", {}, "[]"],
    ["GET", `${C}/sprocs`, "yyynnnn"],
    ["POST", `${C}/triggers`, "nnynnnn", {}, {}],
    ["GET", `${C}/conflicts`, "yyyyynn"],
    ["GET", `${D}/users`, "ynnnnnn"],
    ["GET", `${D}/users/u/permissions`, "nnnnnnn"],
    ["GET", `${D}/clientencryptionkeys/none`, "ynnnnnn"],
    ["GET", "/offers", "ynnnnnn"],
    ["GET", "/_orrery/events", "ynnnnnn"],
    ["GET", `/_orrery${C}/layout`, "ynnnnnn"],
    ["GET", `/_orrery${C}/paths`, "yyynnnn"],
];

for (const [method, path, may, more = {}, body] of ROUTES) {
    const headers = { "x-ms-documentdb-partitionkey": '["x"]', "content-type": "application/json", ...more };
    const request = { method, path, headers, body };
    // What is under /_orrery is signed as a request for the account, or for the container.
    const isOfContainer = path.startsWith(`/_orrery${C}/`);
    const covered = isOfContainer ? { type: "colls", link: C.slice(1) } : path.startsWith("/_orrery") ? { type: "", link: "" } : {};
    test(`${method} ${path} ${Object.keys(more)}`, async () => {
        errorAnswer(await callWith(server, undefined, request), 401, "Unauthorized", { substatus: 5000 });
        errorAnswer(await callWith(server, "null", request), 401, "Unauthorized", { substatus: 5001 });
        errorAnswer(await call({ endpoint: server.endpoint, key: WRONG }, { ...request, ...covered }), 401, "Unauthorized");
        const date = new Date(Date.now() - 7_200_000).toUTCString();
        const old = { ...signed({ key: server.key, method, path, date, ...covered }), ...headers };
        const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
        errorAnswer(await send(server.endpoint, { method, path, headers: old, body: text }), 403, "Forbidden", {
            message: /not valid at the current time/,
        });
        const reader = await call({ endpoint: server.endpoint, key: READ_ONLY }, { ...request, ...covered });
        assert.equal(reader.status === 401, may[0] === "n", reader.text);
        for (const [i, token] of TOKENS.entries()) {
            const answer = await callWith(server, token, request);
            assert.notEqual(answer.status, 401, answer.text);
            assert.equal(answer.status === 403, may[1 + i] === "n", `token ${i}: ${answer.status} ${answer.text}`);
            const other = { ...headers, "x-ms-documentdb-partitionkey": '["y"]' };
            const elsewhere = await callWith(server, token, { ...request, headers: other });
            const isOfKey = i >= 2 && (path.includes("/docs") || /sprocs\/|conflicts/.test(path)) && !more["x-ms-cosmos-is-query-plan-request"];
            if (isOfKey) assert.equal(elsewhere.status, 403, elsewhere.text);
        }
    });
}
