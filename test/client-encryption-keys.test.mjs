// Client encryption keys, and resources of which there are none: conflicts.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";
import { call, query, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const ALGORITHM = "AEAD_AES_256_CBC_HMAC_SHA256";

const keyOf = (id, more = {}) => ({
    id,
    encryptionAlgorithm: ALGORITHM,
    wrappedDataEncryptionKey: "erCEofwSAQIDBA==",
    keyWrapMetadata: { type: "custom", name: id, value: "https://vault/keys/k/1", algorithm: "RSA-OAEP" },
    ...more,
});

async function newDatabase(of = client) {
    const { database } = await of.databases.create({ id: unique("d") });
    return database;
}

const feedOf = (database) => `/dbs/${database.id}/clientencryptionkeys`;
const create = (database, body, to = server) => call(to, { method: "POST", path: feedOf(database), body });

test("a key is created, read, rewrapped and listed", async () => {
    const database = await newDatabase();
    const path = `${feedOf(database)}/k1`;
    const made = await create(database, { ...keyOf("k1"), unknown: 1 });
    assert.equal(made.status, 201, made.text);
    const { _rid, _self, _etag, _ts, _cts, ...content } = made.json;
    assert.deepEqual(content, keyOf("k1"));
    assert.equal(made.headers.etag, _etag);
    assert.ok(Number(made.headers["x-ms-request-charge"]) > 0);
    assert.equal(_cts, _ts);
    const { resource: parent } = await database.read();
    assert.equal(_self, `dbs/${parent._rid}/clientencryptionkeys/${_rid}/`);
    assert.equal(Buffer.from(_rid.replaceAll("-", "/"), "base64").length, 16);
    assert.ok(_rid.startsWith(parent._rid.replace(/=+$/, "").slice(0, 5)));
    errorAnswer(await create(database, keyOf("k1")), 409, "Conflict");

    const read = await call(server, { path });
    assert.deepEqual(read.json, made.json);
    const known = await call(server, { path, headers: { "if-none-match": _etag } });
    assert.equal(known.status, 304);
    const byRid = await call(server, {
        path: `/dbs/${parent._rid}/clientencryptionkeys/${_rid}`,
        type: "clientencryptionkeys",
        link: _rid.toLowerCase(),
    });
    assert.deepEqual(byRid.json, made.json);

    const put = (body, headers = {}) => call(server, { method: "PUT", path, body, headers });
    const wrapped = { ...made.json, wrappedDataEncryptionKey: "AQID", keyWrapMetadata: { type: "t", deep: { a: [1] } } };
    errorAnswer(await put(wrapped, { "if-match": '"another"' }), 412, "PreconditionFailed");
    const rewrapped = await put(wrapped, { "if-match": _etag });
    assert.equal(rewrapped.status, 200, rewrapped.text);
    assert.deepEqual(rewrapped.json.keyWrapMetadata, wrapped.keyWrapMetadata);
    assert.equal(rewrapped.json._cts, _cts);
    assert.equal(rewrapped.json._rid, _rid);
    assert.notEqual(rewrapped.json._etag, _etag);
    assert.equal((await call(server, { path, headers: { "if-none-match": _etag } })).status, 200);
    errorAnswer(await put(keyOf("k2")), 400, "BadRequest", { message: /cannot be changed/ });

    await create(database, keyOf("k2"));
    const list = await call(server, { path: feedOf(database) });
    assert.equal(list.headers["x-ms-item-count"], "2");
    assert.deepEqual(
        list.json.ClientEncryptionKeys.map((key) => key.id),
        ["k1", "k2"],
    );
    assert.equal(list.json._rid, parent._rid);
    const asked = await query(server, feedOf(database), "SELECT VALUE k.id FROM k WHERE k.id = 'k2'");
    assert.deepEqual(asked.json.ClientEncryptionKeys, ["k2"]);
    errorAnswer(await call(server, { method: "DELETE", path }), 405, "MethodNotAllowed");
    errorAnswer(await call(server, { path: `${feedOf(database)}/none` }), 404, "NotFound");
    const nowhere = await create({ id: "none" }, keyOf("k"));
    errorAnswer(nowhere, 404, "NotFound", { substatus: 1003 });
});

test("a body that is no key is refused", async () => {
    const database = await newDatabase();
    for (const [body, message] of [
        [{}, /'id'/],
        [keyOf("a/b"), /must not contain/],
        [keyOf("k", { encryptionAlgorithm: undefined }), /encryptionAlgorithm/],
        [keyOf("k", { wrappedDataEncryptionKey: "not base64!" }), /base64/],
        [keyOf("k", { keyWrapMetadata: "text" }), /keyWrapMetadata/],
    ])
        errorAnswer(await create(database, body), 400, "BadRequest", { message });
    assert.deepEqual((await call(server, { path: feedOf(database) })).json.ClientEncryptionKeys, []);
});

test("the policy of a container names keys that exist, and is repeated by replacements", async () => {
    const database = await newDatabase();
    await create(database, keyOf("k1"));
    const policy = (clientEncryptionKeyId, path = "/ssn") => ({
        policyFormatVersion: 1,
        includedPaths: [
            { path, clientEncryptionKeyId, encryptionType: "Deterministic", encryptionAlgorithm: ALGORITHM },
        ],
    });
    const body = (clientEncryptionPolicy) => ({
        id: unique("c"),
        partitionKey: { paths: ["/pk"], version: 2 },
        clientEncryptionPolicy,
    });
    const text = /ClientEncryptionKey with id '\[unknownKey\]' does not exist\./;
    await refused(database.containers.create(body(policy("unknownKey"))), 400, { message: text });
    await refused(database.containers.create(body(policy("unknownKey", "/"))), 400, { message: text });
    const { container, resource } = await database.containers.create(body(policy("k1")));
    assert.deepEqual(resource.clientEncryptionPolicy, policy("k1"));
    const { id, partitionKey, clientEncryptionPolicy } = resource;
    const fixed = { message: /'clientEncryptionPolicy' cannot be changed as part of collection replace operation\./ };
    await refused(container.replace({ id, partitionKey, defaultTtl: 5 }), 400, fixed);
    await refused(container.replace({ id, partitionKey, clientEncryptionPolicy: policy("k1", "/x") }), 400, fixed);
    const { resource: replaced } = await container.replace({ id, partitionKey, clientEncryptionPolicy, defaultTtl: 5 });
    assert.equal(replaced.defaultTtl, 5);
});

test("keys outlive a restart, and go with their database", async (t) => {
    const own = await startServer(t);
    const database = await newDatabase(clientOf(own));
    const { json } = await create(database, keyOf("k1"), own);
    await own.restart();
    const path = `${feedOf(database)}/k1`;
    assert.deepEqual((await call(own, { path })).json, json);
    await clientOf(own).database(database.id).delete();
    await clientOf(own).databases.create({ id: database.id });
    errorAnswer(await call(own, { path }), 404, "NotFound");
    await own.restart();
    errorAnswer(await call(own, { path }), 404, "NotFound");
    const again = await create(database, keyOf("k1"), own);
    assert.equal(again.status, 201, again.text);
    assert.notEqual(again.json._rid, json._rid);
});

test("a read-only key of the account does not change keys", async (t) => {
    const readOnly = Buffer.from("r".repeat(64)).toString("base64");
    const own = await startServer(t, { args: ["--read-only-key", readOnly] });
    const database = await newDatabase(clientOf(own));
    await create(database, keyOf("k1"), own);
    const reader = { endpoint: own.endpoint, key: readOnly };
    assert.equal((await call(reader, { path: feedOf(database) })).status, 200);
    assert.ok((await create(database, keyOf("k2"), reader)).status >= 401);
    assert.equal((await call(own, { path: `${feedOf(database)}/k2` })).status, 404);
});

// --- What there is none of

test("an account with one place to write to has no conflicts", async () => {
    const database = await newDatabase();
    const container = await newContainer(database);
    const { resource } = await container.read();
    const path = `/dbs/${database.id}/colls/${container.id}/conflicts`;
    const list = await call(server, { path: `${path}/`, type: "conflicts", link: path.slice(1, -"/conflicts".length) });
    assert.deepEqual(list.json, { _rid: resource._rid, Conflicts: [], _count: 0 });
    assert.equal(list.headers["x-ms-item-count"], "0");
    assert.ok(Number(list.headers["x-ms-request-charge"]) > 0);
    const text = "SELECT * FROM root";
    errorAnswer(await query(server, path, text), 400, "BadRequest", { message: /enablecrosspartition/ });
    for (const headers of [
        { "x-ms-documentdb-query-enablecrosspartition": "True" },
        { "x-ms-documentdb-partitionkey": '["p"]' },
        { "x-ms-documentdb-partitionkeyrangeid": "0" },
    ])
        assert.deepEqual((await query(server, path, text, { headers })).json.Conflicts, []);
    for (const key of ['["x"]', "[null]", "[{}]", "[]"])
        for (const method of ["GET", "DELETE"]) {
            const headers = { "x-ms-documentdb-partitionkey": key };
            errorAnswer(await call(server, { method, path: `${path}/x`, headers }), 404, "NotFound");
        }
    errorAnswer(await call(server, { method: "POST", path, body: { id: "x" } }), 405, "MethodNotAllowed");
    for (const method of ["PUT", "PATCH", "POST"])
        errorAnswer(await call(server, { method, path: `${path}/x`, body: { id: "x" } }), 405, "MethodNotAllowed");
    for (const key of ["x", null, undefined]) await refused(container.conflict("x", key).delete(), 404);
    assert.deepEqual((await container.conflicts.readAll().fetchAll()).resources, []);
    assert.deepEqual((await container.conflicts.query("SELECT * from C").fetchAll()).resources, []);
});
