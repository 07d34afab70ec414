// Conflicts, of which an account with one write region has none, and the policy that would settle them.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { call, query, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const { database } = await clientOf(server).databases.create({ id: unique("d") });
const KEY = { paths: ["/pk"], version: 2 };
const colls = `/dbs/${database.id}/colls`;

// --- The feed

/** Containers of every kind of partition key, with one partition and with several. */
async function containers() {
    return [
        await newContainer(database),
        await newContainer(database, { throughput: 30_000 }),
        await newContainer(database, undefined, { partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: 2 } }),
    ];
}

test("the list is empty, with and without a key or a range", async () => {
    for (const container of await containers()) {
        const { resource } = await container.read();
        const path = `${colls}/${container.id}/conflicts`;
        for (const headers of [
            {},
            { "x-ms-documentdb-partitionkeyrangeid": "0", "x-ms-max-item-count": "-1" },
            { "x-ms-documentdb-partitionkey": '["p"]', "x-ms-cosmos-allow-tentative-writes": "true" },
        ]) {
            const list = await call(server, { path, headers });
            assert.equal(list.status, 200, list.text);
            assert.deepEqual(list.json, { _rid: resource._rid, Conflicts: [], _count: 0 });
            assert.equal(list.headers["x-ms-item-count"], "0");
            assert.equal(list.headers["x-ms-continuation"], undefined);
            assert.ok(Number(list.headers["x-ms-request-charge"]) > 0);
        }
        assert.deepEqual((await container.conflicts.readAll({ maxItemCount: 1 }).fetchAll()).resources, []);
    }
    errorAnswer(await call(server, { path: `${colls}/none/conflicts` }), 404, "NotFound", { substatus: 1003 });
});

test("a query may not cross partitions unless it says so, and never needs a plan", async () => {
    for (const container of await containers()) {
        const path = `${colls}/${container.id}/conflicts`;
        const message = /enablecrosspartition/;
        errorAnswer(await query(server, path, "SELECT * FROM c"), 400, "BadRequest", { message });
        const no = { "x-ms-documentdb-query-enablecrosspartition": "False" };
        errorAnswer(await query(server, path, "SELECT * FROM c", { headers: no }), 400, "BadRequest", { message });
        for (const headers of [
            { "x-ms-documentdb-query-enablecrosspartition": "True" },
            { "x-ms-documentdb-partitionkey": '["p"]' },
            { "x-ms-documentdb-partitionkeyrangeid": "0" },
        ]) {
            const asked = await query(server, path, "SELECT * FROM c WHERE c.resourceType = 'document'", { headers });
            assert.equal(asked.status, 200, asked.text);
            assert.deepEqual(asked.json.Conflicts, []);
            assert.equal(asked.headers["x-ms-item-count"], "0");
        }
        const every = { "x-ms-documentdb-query-enablecrosspartition": "True" };
        errorAnswer(await query(server, path, "SELECT FROM", { headers: every }), 400, "BadRequest");
        for (const options of [{}, { forceQueryPlan: true }, { partitionKey: "p" }]) {
            const { resources } = await container.conflicts.query("SELECT * from C", options).fetchAll();
            assert.deepEqual(resources, []);
        }
    }
});

test("a conflict that does not exist is not found, whatever its key", async () => {
    for (const container of await containers()) {
        const path = `${colls}/${container.id}/conflicts/x`;
        for (const key of [undefined, '["x"]', "[null]", "[{}]", "[]", "[1]", '["a","b","c","d"]', '"x"', "null", "{", "no json"])
            for (const method of ["GET", "DELETE"]) {
                const headers = key === undefined ? {} : { "x-ms-documentdb-partitionkey": key };
                const answer = await call(server, { method, path, headers });
                errorAnswer(answer, 404, "NotFound");
            }
        for (const key of ["x", null, undefined]) await refused(container.conflict("x", key).delete(), 404);
        // The SDK asks for a path that is none.
        await assert.rejects(container.conflict("x", "x").read(), (error) => error.code >= 400 && error.code < 500);
    }
});

test("conflicts cannot be made or changed", async () => {
    const container = await newContainer(database);
    const path = `${colls}/${container.id}/conflicts`;
    const body = { id: "x", resourceType: "document", operationType: "create", content: "{}" };
    errorAnswer(await call(server, { method: "POST", path, body }), 405, "MethodNotAllowed");
    for (const method of ["PUT", "PATCH", "POST"])
        errorAnswer(await call(server, { method, path: `${path}/x`, body }), 405, "MethodNotAllowed");
});

// --- The policy of a container

const last = (path) => ({ mode: "LastWriterWins", conflictResolutionPath: path, conflictResolutionProcedure: "" });
const custom = (procedure) => ({ mode: "Custom", conflictResolutionPath: "", conflictResolutionProcedure: procedure });
const PROCEDURE = "dbs/x/colls/y/sprocs/z"; // of nothing that exists

const create = (conflictResolutionPolicy) =>
    call(server, { method: "POST", path: colls, body: { id: unique("c"), partitionKey: KEY, conflictResolutionPolicy } });
const replace = ({ id }, conflictResolutionPolicy) =>
    call(server, { method: "PUT", path: `${colls}/${id}`, body: { id, partitionKey: KEY, conflictResolutionPolicy } });

const NORMAL = [
    [undefined, last("/_ts")],
    [null, last("/_ts")],
    [{}, last("/_ts")],
    [{ mode: "LastWriterWins" }, last("/_ts")],
    [{ mode: "LastWriterWins", conflictResolutionPath: null }, last("/_ts")],
    [{ mode: "LastWriterWins", conflictResolutionPath: "" }, last("/_ts")],
    [{ mode: "lastWriterWins", conflictResolutionPath: "/lww", conflictResolutionProcedure: null }, last("/lww")],
    [last("/a"), last("/a")],
    [{ mode: "Custom" }, custom("")],
    [{ mode: "custom", conflictResolutionProcedure: null }, custom("")],
    [{ mode: "Custom", conflictResolutionPath: "", conflictResolutionProcedure: "" }, custom("")],
    [{ mode: "Custom", conflictResolutionPath: null, conflictResolutionProcedure: PROCEDURE }, custom(PROCEDURE)],
];

const REFUSED = [
    [last("/a/b"), /Invalid path '\/a\/b' for last writer wins conflict resolution/],
    [last("someText"), /Invalid path 'someText' for last writer wins conflict resolution/],
    [
        { ...last("/a"), conflictResolutionProcedure: PROCEDURE },
        /LastWriterWins conflict resolution mode should not have conflict resolution procedure set\./,
    ],
    [
        { ...custom(PROCEDURE), conflictResolutionPath: "/a" },
        /Custom conflict resolution mode should not have conflict resolution path set\./,
    ],
    [{ mode: "FirstWriterWins" }, /mode/],
    [{ mode: 7 }, /mode/],
    ["Custom", /conflictResolutionPolicy/],
];

const FIXED = /Updating conflict resolution policy is currently not supported/;

for (const [sent, stored] of NORMAL)
    test(`the policy ${JSON.stringify(sent)} becomes ${JSON.stringify(stored)}, and stays so`, async () => {
        const made = await create(sent);
        assert.equal(made.status, 201, made.text);
        assert.deepEqual(made.json.conflictResolutionPolicy, stored);
        assert.deepEqual((await call(server, { path: `${colls}/${made.json.id}` })).json.conflictResolutionPolicy, stored);
        // Each form that becomes the same is the same; one that is left out is kept.
        const same = NORMAL.filter(([, normal]) => JSON.stringify(normal) === JSON.stringify(stored)).map(([form]) => form);
        for (const form of [...same, undefined]) {
            const replaced = await replace(made.json, form);
            assert.equal(replaced.status, 200, replaced.text);
            assert.deepEqual(replaced.json.conflictResolutionPolicy, stored);
        }
        for (const [form, normal] of NORMAL)
            if (form && JSON.stringify(normal) !== JSON.stringify(stored))
                errorAnswer(await replace(made.json, form), 400, "BadRequest", { message: FIXED });
        // What is wrong is said first, also if it may not be changed.
        for (const [form, message] of REFUSED) errorAnswer(await replace(made.json, form), 400, "BadRequest", { message });
    });

test("policies that make no sense are refused", async () => {
    for (const [form, message] of REFUSED) errorAnswer(await create(form), 400, "BadRequest", { message });
});
