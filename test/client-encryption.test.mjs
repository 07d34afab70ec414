// Items whose properties the client encrypts: the server has neither their keys nor their text.
import assert from "node:assert/strict";
import test from "node:test";

import { ChangeFeedMode, ChangeFeedStartFrom, CosmosEncryptedNumberType, EncryptionQueryBuilder } from "@azure/cosmos";

import { errorAnswer, refused } from "./lib/check.mjs";
import { ALGORITHM, encryptingClient, KeyStore, metadataOf, policyOf } from "./lib/encryption.mjs";
import { contentOf } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { call, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const plainClient = clientOf(server);
const KEY = { paths: ["/pk"], version: 2 };
const PATHS = ["/name", "/score", "/flags!", "/deep!"];

/** A database with the keys k1 and k2, and a container whose policy encrypts `paths`. */
async function encrypted(t, paths = PATHS, { partitionKey = KEY, version, definition = {}, ...more } = {}) {
    const store = new KeyStore();
    const client = encryptingClient(t, server, { store, ...more });
    const { database } = await client.databases.create({ id: unique("d") });
    for (const key of ["k1", "k2"]) await database.createClientEncryptionKey(key, ALGORITHM, metadataOf(store, key));
    const id = unique("c");
    const body = { id, partitionKey, clientEncryptionPolicy: policyOf(paths, { version }), ...definition };
    const { container } = await database.containers.create(body);
    const plain = plainClient.database(database.id).container(id);
    return { store, client, database, container, plain, body };
}

const itemOf = (id, more = {}) => ({
    id,
    pk: "p",
    name: `name of ${id}`,
    score: 41,
    flags: [true, false, null],
    deep: { a: { b: "text" }, list: ["x", 2.5] },
    open: "open",
    ...more,
});

/** What the server has is cipher text: base64 without a word of what was meant. */
function isCipher(value) {
    if (value === null) return true;
    if (typeof value === "object") return Object.values(value).every(isCipher);
    return typeof value === "string" && /^[A-Za-z0-9+/_-]{40,}=*$/.test(value);
}

// --- Keys

test("a key is made, made only once, rewrapped, and read by others", async (t) => {
    const { store, database } = await encrypted(t);
    const made = await database.createClientEncryptionKey("k3", ALGORITHM, metadataOf(store, "k3"));
    assert.equal(made.statusCode, 201);
    assert.ok(made.requestCharge > 0);
    assert.equal(made.headers.etag, made.resource._etag);
    assert.deepEqual(made.clientEncryptionKeyProperties.encryptionKeyWrapMetadata, metadataOf(store, "k3"));
    for (const name of ["_cts", "_ts", "_self", "_rid"]) assert.ok(made.resource[name], name);
    await refused(database.createClientEncryptionKey("k3", ALGORITHM, metadataOf(store, "k3")), 409);

    const other = encryptingClient(t, server, { store }).database(database.id);
    assert.deepEqual((await other.readClientEncryptionKey("k3")).resource, made.resource);
    const again = await database.rewrapClientEncryptionKey("k3", metadataOf(store, "k4"));
    assert.equal(again.statusCode, 200);
    assert.ok(again.requestCharge > 0);
    const read = await other.readClientEncryptionKey("k3");
    assert.deepEqual(read.resource, again.resource);
    assert.deepEqual(read.resource.keyWrapMetadata, metadataOf(store, "k4"));
    assert.equal(read.resource._cts, made.resource._cts);
    assert.notEqual(read.resource._etag, made.resource._etag);
    await refused(database.readClientEncryptionKey("none"), 404);
});

test("a key whose vault key was revoked can be used again after it is rewrapped", async (t) => {
    const { store, database, container } = await encrypted(t, ["/name"], { seconds: 0 });
    await container.items.create(itemOf("1"));
    // Another store, so that this client cannot use what the first one still may.
    const lost = new KeyStore();
    lost.revoke("vault/k1");
    const other = encryptingClient(t, server, { store: lost, seconds: 0 });
    const theirs = other.database(database.id).container(container.id);
    await assert.rejects(theirs.item("1", "p").read(), /needs to be rewrapped/);
    await database.rewrapClientEncryptionKey("k1", metadataOf(store, "fresh"));
    assert.equal((await theirs.item("1", "p").read()).resource.name, "name of 1");
    assert.equal((await container.item("1", "p").read()).resource.name, "name of 1");
});

test("hints for caches are ignored, also those of a database that is gone", async (t) => {
    const { database } = await encrypted(t);
    for (const rid of ["AQAAAA==", "no rid"])
        for (const value of ["true", "True"]) {
            const headers = { "x-ms-cosmos-allow-cachedreads": value, "x-ms-cosmos-database-rid": rid };
            const answer = await call(server, { path: `/dbs/${database.id}/clientencryptionkeys/k1`, headers });
            assert.equal(answer.status, 200, answer.text);
        }
});

// --- Policies

test("a policy is echoed in its order, kept by replacements and refused where it would lose items", async (t) => {
    const { database, container, body } = await encrypted(t, ["/zz", "/aa!", "/mm"], { version: 1 });
    const { resource } = await container.read();
    assert.deepEqual(resource.clientEncryptionPolicy, body.clientEncryptionPolicy);
    const fixed = { message: /'clientEncryptionPolicy' cannot be changed as part of collection replace operation\./ };
    const colls = `/dbs/${database.id}/colls`;
    const put = (more) => call(server, { method: "PUT", path: `${colls}/${body.id}`, body: { ...body, ...more } });
    const reordered = policyOf(["/aa!", "/zz", "/mm"], { version: 1 });
    for (const clientEncryptionPolicy of [undefined, null, policyOf(["/zz"]), reordered])
        errorAnswer(await put({ clientEncryptionPolicy }), 400, "BadRequest", fixed);
    const replaced = await put({ indexingPolicy: { indexingMode: "none", automatic: false } });
    assert.equal(replaced.status, 200, replaced.text);
    assert.deepEqual(replaced.json.clientEncryptionPolicy, body.clientEncryptionPolicy);

    const create = (clientEncryptionPolicy) => {
        const definition = { id: unique("c"), partitionKey: KEY, clientEncryptionPolicy };
        return call(server, { method: "POST", path: colls, body: definition });
    };
    assert.equal((await create()).json.clientEncryptionPolicy, undefined);
    const unknown = /ClientEncryptionKey with id '\[unknownKey\]' does not exist\./;
    for (const [policy, message] of [
        [policyOf(["/a"], { key: "unknownKey" }), unknown],
        [policyOf(["/"], { key: "unknownKey" }), unknown],
        [policyOf(["/a", "no path", "/a"], { key: "unknownKey" }), unknown],
        [policyOf(["/a/b"]), /top-level/],
        [policyOf(["/a", "/a"]), /'\/a'/],
        [policyOf(["/a"], { version: 3 }), /policyFormatVersion/],
        [policyOf(["/id"], { version: 1 }), /policyFormatVersion 2/],
        [policyOf(["/pk!"]), /Deterministic/],
    ])
        errorAnswer(await create(policy), 400, "BadRequest", { message });
});

// --- Items

test("items are encrypted on the way in and decrypted on the way out, by every operation", async (t) => {
    const { container, plain } = await encrypted(t);
    const stored = async (id) => {
        const { resource } = await plain.item(id, "p").read();
        for (const name of ["name", "score", "flags", "deep"])
            if (name in resource) assert.ok(isCipher(resource[name]), `${name}: ${JSON.stringify(resource[name])}`);
        assert.doesNotMatch(JSON.stringify(resource), /name of|text/);
        return resource;
    };
    const made = await container.items.create(itemOf("1"));
    assert.equal(made.statusCode, 201);
    assert.deepEqual(contentOf(made.resource), itemOf("1"));
    await stored("1");
    assert.deepEqual(contentOf((await container.item("1", "p").read()).resource), itemOf("1"));

    assert.equal((await container.items.upsert(itemOf("1", { score: 42 }))).statusCode, 200);
    assert.equal((await container.items.upsert(itemOf("2"))).statusCode, 201);
    assert.equal((await container.item("1", "p").read()).resource.score, 42);
    await container.item("2", "p").replace(itemOf("2", { name: "other" }));
    assert.equal((await container.item("2", "p").read()).resource.name, "other");

    const { resource: patched } = await container.item("1", "p").patch([
        { op: "set", path: "/name", value: "patched" },
        { op: "add", path: "/deep/more", value: "text" },
        { op: "replace", path: "/open", value: "shut" },
        { op: "remove", path: "/flags" },
    ]);
    assert.equal(patched.name, "patched");
    const now = await stored("1");
    assert.equal(now.open, "shut");
    assert.equal(now.flags, undefined);
    const read = (await container.item("1", "p").read()).resource;
    assert.equal(read.deep.more, "text");
    assert.equal(read.open, "shut");
    await assert.rejects(container.item("1", "p").patch([{ op: "incr", path: "/score", value: 1 }]));

    assert.equal((await container.item("2", "p").delete()).statusCode, 204);
    await assert.rejects(container.item("2", "p").patch([{ op: "set", path: "/name", value: "x" }]));
    assert.equal((await container.item("2", "p").read()).statusCode, 404);
    await stored("1");
});

test("batches and bulk", async (t) => {
    const { container, plain } = await encrypted(t);
    const { result } = await container.items.batch(
        [
            { operationType: "Create", resourceBody: itemOf("1") },
            { operationType: "Upsert", resourceBody: itemOf("2") },
            { operationType: "Read", id: "1" },
            { operationType: "Replace", id: "2", resourceBody: itemOf("2", { name: "second" }) },
            { operationType: "Patch", id: "1", resourceBody: { operations: [{ op: "set", path: "/name", value: "first" }] } },
        ],
        "p",
    );
    assert.deepEqual(
        result.map((one) => one.statusCode),
        [201, 201, 200, 200, 200],
    );
    assert.equal(result[2].resourceBody.name, "name of 1");
    const conflict = await container.items.batch(
        [
            { operationType: "Create", resourceBody: itemOf("1") },
            { operationType: "Create", resourceBody: itemOf("3") },
        ],
        "p",
    );
    assert.equal(conflict.code, 207);
    assert.deepEqual(
        conflict.result.map((one) => one.statusCode),
        [409, 424],
    );
    for (const [id, name] of [
        ["1", "first"],
        ["2", "second"],
    ]) {
        assert.equal((await container.item(id, "p").read()).resource.name, name);
        assert.ok(isCipher((await plain.item(id, "p").read()).resource.name));
    }
    const items = [...Array(20).keys()].map((i) => itemOf(`b${i}`, { pk: `p${i % 3}` }));
    const operations = items.map((resourceBody) => ({ operationType: "Create", resourceBody }));
    const bulk = await container.items.bulk(operations);
    assert.ok(bulk.every((one) => one.statusCode === 201));
    const reads = operations.map(({ resourceBody: { id, pk } }) => ({ operationType: "Read", id, partitionKey: pk }));
    const found = await container.items.executeBulkOperations(reads);
    assert.deepEqual(
        found.map((one) => one.response.resourceBody.name),
        operations.map((one) => one.resourceBody.name),
    );
});

test("queries find cipher text by parameters, group it and count it", async (t) => {
    const { container, plain } = await encrypted(t);
    for (let i = 0; i < 12; i++)
        await container.items.create(itemOf(`${i}`, { pk: `p${i % 4}`, name: `n${i % 3}`, score: i % 2 }));
    const ask = async (text, parameters) => {
        const builder = new EncryptionQueryBuilder(text);
        for (const [name, value, path] of parameters)
            if (path) builder.addParameter(name, value, path);
            else builder.addUnencryptedParameter(name, value, "/open");
        const iterator = await container.items.getEncryptionQueryIterator(builder);
        return (await iterator.fetchAll()).resources;
    };
    const number = (value) => ({ value, numberType: CosmosEncryptedNumberType.Integer });
    const some = await ask("SELECT * FROM c WHERE c.name = @n AND c.score = @s", [
        ["@n", "n1", "/name"],
        ["@s", number(1), "/score"],
    ]);
    assert.deepEqual(some.map((item) => item.id).sort(), ["1", "7"]);
    assert.ok(some.every((item) => item.name === "n1" && item.score === 1 && item.deep.a.b === "text"));
    const open = await ask("SELECT * FROM c WHERE c.name = @n AND c.open = @o", [
        ["@n", "n1", "/name"],
        ["@o", "open"],
    ]);
    assert.equal(open.length, 4);
    assert.deepEqual(await ask("SELECT * FROM c WHERE c.name = @n", [["@n", "none", "/name"]]), []);
    assert.deepEqual(await ask("SELECT VALUE COUNT(1) FROM c WHERE c.name = @n", [["@n", "n2", "/name"]]), [4]);
    const groups = (await container.items.query("SELECT c.name, COUNT(1) AS n FROM c GROUP BY c.name").fetchAll()).resources;
    assert.deepEqual(
        groups.sort((a, b) => (a.name < b.name ? -1 : 1)),
        ["n0", "n1", "n2"].map((name) => ({ name, n: 4 })),
    );
    assert.equal((await container.items.readAll().fetchAll()).resources.filter((item) => item.name === "n0").length, 4);
    // The text itself is nowhere to be found.
    assert.deepEqual((await plain.items.query("SELECT * FROM c WHERE c.name = 'n1'").fetchAll()).resources, []);
    // What is encrypted differently each time cannot be compared.
    const { resources } = await plain.items.query("SELECT DISTINCT VALUE c.deep.a.b FROM c").fetchAll();
    assert.equal(resources.length, 12);
});

test("change feeds are decrypted, of a whole container and of one key", async (t) => {
    const { container } = await encrypted(t);
    for (let i = 0; i < 6; i++) await container.items.create(itemOf(`${i}`, { pk: `p${i % 2}` }));
    const read = async (start) => {
        const names = [];
        for await (const page of container.items.getChangeFeedIterator({ changeFeedStartFrom: start }).getAsyncIterator()) {
            if (page.statusCode === 304) break;
            names.push(...page.result.map((item) => item.name));
        }
        return names.sort();
    };
    assert.deepEqual(await read(ChangeFeedStartFrom.Beginning()), [0, 1, 2, 3, 4, 5].map((i) => `name of ${i}`));
    assert.deepEqual(await read(ChangeFeedStartFrom.Beginning("p1")), [1, 3, 5].map((i) => `name of ${i}`));
});

test("a change feed with all versions is decrypted, those from before included", async (t) => {
    const definition = { changeFeedPolicy: { retentionDuration: 10 } };
    const { container } = await encrypted(t, ["/name"], { definition });
    const options = { changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes, changeFeedStartFrom: ChangeFeedStartFrom.Now() };
    const feed = container.items.getChangeFeedIterator(options).getAsyncIterator();
    assert.equal((await feed.next()).value.statusCode, 304);
    await container.items.create(itemOf("1"));
    await container.item("1", "p").replace(itemOf("1", { name: "second" }));
    await container.item("1", "p").delete();
    const seen = [];
    while (seen.length < 3) {
        const { value } = await feed.next();
        if (value.statusCode === 304) break;
        seen.push(...value.result);
    }
    assert.deepEqual(
        seen.map((one) => [one.metadata.operationType, one.current?.name, one.previous?.name]),
        [
            ["create", "name of 1", undefined],
            ["replace", "second", undefined],
            ["delete", undefined, "second"],
        ],
    );
});

test("the id and hierarchical keys may be encrypted, too", async (t) => {
    const partitionKey = { paths: ["/a", "/b", "/c"], kind: "MultiHash", version: 2 };
    const { container, plain } = await encrypted(t, ["/id", "/b", "/c", "/name"], { partitionKey });
    const item = { id: "one", a: "a", b: "b", c: "c", name: "n" };
    const made = await container.items.create(item);
    assert.equal(made.resource.id, "one");
    const { resources } = await plain.items.readAll().fetchAll();
    assert.equal(resources.length, 1);
    assert.equal(resources[0].a, "a");
    for (const name of ["id", "b", "c", "name"]) assert.ok(isCipher(resources[0][name]), name);
    const key = ["a", "b", "c"];
    assert.deepEqual(contentOf((await container.item("one", key).read()).resource), item);
    await container.item("one", key).replace({ ...item, name: "m" });
    await container.item("one", key).patch([{ op: "set", path: "/name", value: "o" }]);
    const builder = new EncryptionQueryBuilder("SELECT * FROM c WHERE c.b = @b AND c.id = @id");
    builder.addParameter("@b", "b", "/b");
    builder.addParameter("@id", "one", "/id");
    const found = await (await container.items.getEncryptionQueryIterator(builder)).fetchAll();
    assert.deepEqual(found.resources.map(contentOf), [{ ...item, name: "o" }]);
    await container.items.create({ ...item, id: "two" });
    assert.equal((await container.item("two", key).delete()).statusCode, 204);
    assert.equal((await container.deleteAllItemsForPartitionKey(key)).statusCode, 200);
    assert.equal((await container.item("one", key).read()).statusCode, 404);
});

test("unique keys hold for cipher text that is the same each time", async (t) => {
    const store = new KeyStore();
    const client = encryptingClient(t, server, { store });
    const { database } = await client.databases.create({ id: unique("d") });
    await database.createClientEncryptionKey("k1", ALGORITHM, metadataOf(store, "k1"));
    const { container } = await database.containers.create({
        id: "c",
        partitionKey: KEY,
        uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/name"] }] },
        clientEncryptionPolicy: policyOf(["/name"]),
    });
    await container.items.create(itemOf("1", { name: "same" }));
    await refused(container.items.create(itemOf("2", { name: "same" })), 409);
    await container.items.create(itemOf("3", { name: "other" }));
});

// --- Containers and databases that were made again

/** Each operation that an encrypting client can make, as it is made by one that does not know of the change. */
const CALLS = {
    create: (c) => c.items.create(itemOf("new")),
    upsert: (c) => c.items.upsert(itemOf("new")),
    read: (c) => c.item("1", "p").read(),
    replace: (c) => c.item("1", "p").replace(itemOf("1")),
    patch: (c) => c.item("1", "p").patch([{ op: "set", path: "/open", value: "x" }]),
    delete: (c) => c.item("1", "p").delete(),
    query: (c) => c.items.query("SELECT * FROM c").fetchAll(),
    batch: (c) => c.items.batch([{ operationType: "Upsert", resourceBody: itemOf("new") }], "p"),
    bulk: (c) => c.items.bulk([{ operationType: "Upsert", resourceBody: itemOf("new") }]),
    deleteByKey: (c) => c.deleteAllItemsForPartitionKey("p"),
};

for (const [name, operation] of Object.entries(CALLS))
    test(`${name} of a container that was made again is refused once, and works when it is repeated`, async (t) => {
        const { database, container, store } = await encrypted(t, ["/name"]);
        await container.items.create(itemOf("1"));
        const other = encryptingClient(t, server, { store }).database(database.id);
        await other.container(container.id).delete();
        const made = await other.containers.create({
            id: container.id,
            partitionKey: KEY,
            clientEncryptionPolicy: policyOf(["/score", "/deep!"], { key: "k2" }),
        });
        await made.container.items.create(itemOf("1", { name: "open now" }));
        await assert.rejects(operation(container), /possible mismatch in Client Encryption Policy/);
        const result = await operation(container);
        assert.ok(result !== undefined);
        if (name === "read") assert.equal(result.resource.name, "open now");
    });

test("also where its partition key is another one", async (t) => {
    const { database, container, store } = await encrypted(t, ["/name"]);
    await container.items.create(itemOf("1"));
    const other = encryptingClient(t, server, { store }).database(database.id);
    await other.container(container.id).delete();
    await other.containers.create({
        id: container.id,
        partitionKey: { paths: ["/open", "/pk"], kind: "MultiHash", version: 2 },
        clientEncryptionPolicy: policyOf(["/score"], { key: "k2" }),
    });
    await assert.rejects(container.item("1", "p").read(), /possible mismatch in Client Encryption Policy/);
    const { statusCode } = await container.items.create(itemOf("1"));
    assert.equal(statusCode, 201);
});

test("a database that was made again has keys of its own", async (t) => {
    const { database, container, store, body } = await encrypted(t, ["/name"]);
    await container.items.create(itemOf("1"));
    const { resource: old } = await database.readClientEncryptionKey("k1");
    const other = encryptingClient(t, server, { store });
    await other.database(database.id).delete();
    const { database: made } = await other.databases.create({ id: database.id });
    await made.createClientEncryptionKey("k1", ALGORITHM, metadataOf(store, "anew"));
    const again = await made.containers.create(body);
    await again.container.items.create(itemOf("1", { name: "anew" }));
    const fresh = (await database.readClientEncryptionKey("k1")).resource;
    assert.notEqual(fresh._rid, old._rid);
    assert.notEqual(fresh.wrappedDataEncryptionKey, old.wrappedDataEncryptionKey);
    await assert.rejects(container.item("1", "p").read(), /possible mismatch in Client Encryption Policy/);
    assert.equal((await container.item("1", "p").read()).resource.name, "anew");
    await refused(database.readClientEncryptionKey("k2"), 404);
});

test("an encrypting client serves containers without a policy, in a database without keys", async (t) => {
    const client = encryptingClient(t, server);
    const { database } = await client.databases.create({ id: unique("d") });
    // Where there is no policy at all the SDK itself fails on items that it names by id; these are tried with an empty one.
    for (const clientEncryptionPolicy of [undefined, policyOf([])]) {
        const body = { id: unique("c"), partitionKey: KEY, clientEncryptionPolicy };
        const { container } = await database.containers.create(body);
        const plain = plainClient.database(database.id).container(container.id);
        const item = clientEncryptionPolicy ? (id) => container.item(id, "p") : (id) => plain.item(id, "p");
        assert.equal((await container.items.create(itemOf("1"))).statusCode, 201);
        assert.deepEqual(contentOf((await plain.item("1", "p").read()).resource), itemOf("1"));
        assert.deepEqual(contentOf((await item("1").read()).resource), itemOf("1"));
        assert.deepEqual((await container.items.query("SELECT VALUE c.name FROM c").fetchAll()).resources, ["name of 1"]);
        assert.equal((await container.items.upsert(itemOf("1", { score: 1 }))).statusCode, 200);
        await item("1").patch([{ op: "set", path: "/open", value: "patched" }]);
        assert.equal((await plain.item("1", "p").read()).resource.open, "patched");
        assert.equal((await item("1").delete()).statusCode, 204);
    }
});

// --- The header that names the container

test("another container's id is refused before anything about partition keys, and its own changes nothing", async () => {
    const { database } = await plainClient.databases.create({ id: unique("d") });
    const partitionKey = { paths: ["/a", "/b"], kind: "MultiHash", version: 2 };
    const { resource } = await database.containers.create({ id: "c", partitionKey });
    const coll = `/dbs/${database.id}/colls/c`;
    const docs = `${coll}/docs`;
    const stale = { "x-ms-cosmos-intended-collection-rid": "AQAAAIAAAAE=", "x-ms-cosmos-is-client-encrypted": "true" };
    const wrong = { "x-ms-documentdb-partitionkey": '["a","b","c","d"]', "x-ms-session-token": "0:-1#999999" };
    const batch = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
    const asked = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True" };
    const plan = { "x-ms-cosmos-is-query-plan-request": "True", "content-type": "application/query+json" };
    const whole = { type: "colls", link: coll.slice(1) };
    const rows = [
        { method: "POST", path: docs, body: { id: "i" } },
        { method: "POST", path: docs, body: { id: "i" }, headers: { "x-ms-documentdb-is-upsert": "True" } },
        { path: `${docs}/i` },
        { method: "PUT", path: `${docs}/i`, body: { id: "i" } },
        { method: "PATCH", path: `${docs}/i`, body: { operations: [] } },
        { method: "DELETE", path: `${docs}/i` },
        { path: docs },
        { path: docs, headers: { "a-im": "Incremental Feed" } },
        { method: "POST", path: docs, body: "[]", headers: batch },
        { method: "POST", path: docs, body: { query: "SELECT * FROM c" }, headers: plan },
        { method: "POST", path: docs, body: { query: "SELECT * FROM c" }, headers: asked },
        { method: "POST", path: `${coll}/operations/partitionkeydelete`, ...whole },
    ];
    for (const { headers = {}, ...row } of rows) {
        const what = { substatus: 1024, message: /resource id/ };
        for (const more of [wrong, {}]) {
            const answer = await call(server, { ...row, headers: { ...headers, ...more, ...stale } });
            errorAnswer(answer, 400, "BadRequest", what);
        }
        // Its own id has no effect, nor has the other header alone.
        const plain = await call(server, { ...row, headers: { ...headers, ...wrong } });
        const own = { ...stale, "x-ms-cosmos-intended-collection-rid": resource._rid };
        for (const more of [own, { "x-ms-cosmos-is-client-encrypted": "True" }]) {
            const same = await call(server, { ...row, headers: { ...headers, ...wrong, ...more } });
            assert.equal(same.status, plain.status, same.text);
            assert.equal(same.headers["x-ms-substatus"], plain.headers["x-ms-substatus"]);
        }
    }
    // The container itself can be read with an old id: that is how the client finds the new one.
    const read = await call(server, { path: coll, headers: stale });
    assert.equal(read.json._rid, resource._rid);
    const gone = await call(server, { path: `/dbs/${database.id}/colls/none/docs/i`, headers: { ...stale, ...wrong } });
    errorAnswer(gone, 404, "NotFound", { substatus: 1003 });
});
