// Containers: create, read, replace, delete, list and query; their names, ids and partition keys.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, ids, pagesOf, refused } from "./lib/check.mjs";
import { DEFAULTS, KEY, definitionOf } from "./lib/definition.mjs";
import { decodeRid } from "./lib/rid.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { call, query, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database, resource: databaseResource } = await client.databases.create({ id: "containers" });
const PARENT = "/dbs/containers/colls";

async function create(body, options) {
    const full = { id: unique("c"), partitionKey: structuredClone(KEY), ...structuredClone(body) };
    const { resource, container } = await database.containers.create(full, options);
    return { resource, container };
}

const createRaw = (body, headers = {}) => call(server, { method: "POST", path: PARENT, headers, body });

// --- One container

test("a new container has the protocol's shape, with defaults filled in", async () => {
    const id = unique("shape");
    const { resource, headers, statusCode, container } = await database.containers.create({
        id,
        partitionKey: KEY,
    });
    assert.equal(statusCode, 201);
    assert.deepEqual(definitionOf(resource), { id, partitionKey: KEY, ...DEFAULTS });
    const { _rid, _self, _etag, _ts, ...rest } = resource;
    assert.deepEqual(decodeRid(_rid), {
        kind: "container",
        database: decodeRid(databaseResource._rid).database,
        parent: databaseResource._rid,
    });
    assert.equal(_self, `dbs/${databaseResource._rid}/colls/${_rid}/`);
    assert.match(_etag, /^".+"$/);
    assert.ok(Number.isInteger(_ts));
    for (const child of ["docs", "sprocs", "triggers", "udfs", "conflicts"])
        assert.equal(rest[`_${child}`], `${child}/`);
    assert.equal(headers.etag, _etag);
    assert.deepEqual((await container.read()).resource, resource);
});

test("a container that exists is not created again", async () => {
    const { resource } = await create({});
    const body = { id: resource.id, partitionKey: KEY };
    await refused(database.containers.create(structuredClone(body)), 409, { message: /already exists/ });
    const again = await database.containers.createIfNotExists(structuredClone(body));
    assert.equal(again.statusCode, 200);
    assert.equal(again.resource._rid, resource._rid);
    const other = await database.containers.createIfNotExists({ id: unique("new"), partitionKey: KEY });
    assert.equal(other.statusCode, 201);
});

test("the same name in two databases means two containers", async () => {
    const { resource } = await create({});
    const { database: second } = await client.databases.create({ id: unique("second") });
    const { resource: other } = await second.containers.create({ id: resource.id, partitionKey: KEY });
    assert.notEqual(other._rid, resource._rid);
    await second.delete();
    assert.equal((await database.container(resource.id).read()).resource._rid, resource._rid);
});

test("a container that is missing is not found, and its children have no owner", async () => {
    const missing = database.container("missing");
    const message = /Resource Not Found/;
    await refused(missing.read(), 404, { message });
    await refused(missing.delete(), 404, { message });
    await refused(missing.replace({ id: "missing", partitionKey: KEY }), 404, { message });
    await refused(missing.readPartitionKeyRanges().fetchAll(), 404, { substatus: 1003 });
    for (const child of ["docs", "sprocs", "pkranges", "docs/x"])
        errorAnswer(await call(server, { path: `${PARENT}/missing/${child}` }), 404, "NotFound", {
            substatus: 1003,
        });
});

test("a deleted container is gone, and its name is free for another with a new id", async () => {
    const { resource: first, container } = await create({});
    assert.equal((await container.delete()).statusCode, 204);
    await refused(container.read(), 404);
    await refused(container.delete(), 404);
    const { resource: second } = await create({ id: first.id });
    assert.notEqual(second._rid, first._rid);
    assert.notEqual(second._etag, first._etag);
    errorAnswer(await call(server, { path: `/${first._self}` }), 404, "NotFound");
});

// --- Conditions

const ifMatch = (etag) => ({ accessCondition: { type: "IfMatch", condition: etag } });

test("If-Match decides whether a container may be replaced or deleted", async () => {
    const { resource, container } = await create({});
    const body = { ...definitionOf(resource), defaultTtl: 10 };
    const message = /pre-condition is not met/;
    await refused(container.replace(body, ifMatch('"old"')), 412, { message });
    const { resource: second } = await container.replace(body, ifMatch(resource._etag));
    assert.equal(second.defaultTtl, 10);
    assert.notEqual(second._etag, resource._etag);
    assert.equal(second._rid, resource._rid);
    assert.ok(second._ts >= resource._ts);
    await refused(container.replace(body, ifMatch(resource._etag)), 412, { message });
    await refused(container.delete(ifMatch(resource._etag)), 412, { message });
    assert.equal((await container.delete(ifMatch(second._etag))).statusCode, 204);
});

test("of many replacements of one version one succeeds", async () => {
    const { resource, container } = await create({});
    const tries = await Promise.allSettled(
        Array.from({ length: 12 }, (_, i) =>
            container.replace({ ...definitionOf(resource), defaultTtl: i + 1 }, ifMatch(resource._etag)),
        ),
    );
    const won = tries.filter(({ status }) => status === "fulfilled");
    assert.equal(won.length, 1);
    for (const { reason } of tries) if (reason) assert.equal(reason.code, 412);
    assert.deepEqual((await container.read()).resource, won[0].value.resource);
});

test("If-None-Match saves reading a container that has not changed", async () => {
    const { resource, container } = await create({});
    const read = (etag) =>
        call(server, { path: `${PARENT}/${resource.id}`, headers: { "if-none-match": etag } });
    const same = await read(resource._etag);
    assert.equal(same.status, 304);
    assert.equal(same.bytes.length, 0);
    assert.equal(same.headers.etag, resource._etag);
    await container.replace({ ...definitionOf(resource), defaultTtl: 5 });
    assert.equal((await read(resource._etag)).json.defaultTtl, 5);
});

// --- Names and resource ids

const NAMES = [
    "with space",
    "100%",
    "%2F",
    "a+b",
    "a&b=c;d,e:f@g$h",
    "ünïcødé",
    "表",
    "🪐 x",
    "x".repeat(255),
];
test("names of all kinds work through the SDK", async (t) => {
    for (const id of NAMES) {
        await t.test(id.slice(0, 40), async () => {
            const { resource, container } = await create({ id });
            assert.equal(resource.id, id);
            assert.deepEqual((await container.read()).resource, resource);
            assert.equal((await container.readPartitionKeyRanges().fetchAll()).resources.length, 1);
            assert.equal((await container.readOffer()).resource.offerResourceId, resource._rid);
            await container.replace({ ...definitionOf(resource), defaultTtl: 1 });
            await container.delete();
        });
    }
});

for (const [what, body] of [
    ["no id", {}],
    ["an empty id", { id: "" }],
    ["a number", { id: 7 }],
    ["a slash", { id: "a/b" }],
    ["a backslash", { id: "a\\b" }],
    ["a question mark", { id: "a?b" }],
    ["a hash", { id: "a#b" }],
    ["a space at the end", { id: "a " }],
    ["a tabulator", { id: "a\tb" }],
    ["256 characters", { id: "x".repeat(256) }],
]) {
    test(`${what} is refused as an id`, async () => {
        const answer = await createRaw({ partitionKey: KEY, ...body });
        errorAnswer(answer, 400, "BadRequest", { message: /\bid\b/ });
    });
}

test("a container is read, replaced and deleted by its resource id and self link", async () => {
    const { resource } = await create({});
    const d = databaseResource._rid;
    const c = resource._rid;
    const escaped = encodeURIComponent;
    const rid = (method, path, body) =>
        call(server, { method, path, type: "colls", link: c.toLowerCase(), body });
    for (const path of [
        `/dbs/${d}/colls/${c}`,
        `/dbs/${escaped(d)}/colls/${escaped(c)}/`,
        `/${resource._self}`,
    ])
        assert.deepEqual((await rid("GET", path)).json, resource);
    const replaced = await rid("PUT", `/${resource._self}`, { ...definitionOf(resource), defaultTtl: 9 });
    assert.equal(replaced.json.defaultTtl, 9);
    const listed = await call(server, { path: `/dbs/${d}/colls`, type: "colls", link: d.toLowerCase() });
    assert.ok(ids(listed.json.DocumentCollections).includes(resource.id));
    const ranges = await call(server, {
        path: `/${resource._self}pkranges`,
        type: "pkranges",
        link: c.toLowerCase(),
    });
    assert.equal(ranges.json._rid, c);
    assert.equal((await rid("DELETE", `/${resource._self}`)).status, 204);
    await refused(database.container(resource.id).read(), 404);
});

test("a container's resource id means nothing in another database", async () => {
    const { resource } = await create({});
    const { resource: other } = await client.databases.create({ id: unique("other") });
    const path = `/dbs/${other._rid}/colls/${resource._rid}`;
    errorAnswer(await call(server, { path }), 404, "NotFound");
});

test("a read tells the owner's resource id and path, as the SDKs compare it", async () => {
    const { database: odd, resource: owner } = await client.databases.create({ id: "odd name+ä" });
    const { container } = await odd.containers.create({ id: "c", partitionKey: KEY });
    const { headers } = await container.read();
    assert.equal(headers["x-ms-content-path"], owner._rid);
    assert.equal(headers["x-ms-alt-content-path"], encodeURI("dbs/odd name+ä"));
});

// --- Lists and queries

test("lists and queries come in pages, in the order of creation", async () => {
    const { database: own, resource: parent } = await client.databases.create({ id: unique("list") });
    const names = Array.from({ length: 23 }, (_, i) => `c${i}`);
    for (const id of names) await own.containers.create({ id, partitionKey: KEY });
    for (const size of [1, 10, 23, -1]) {
        const most = size < 0 ? 23 : size;
        const listed = await pagesOf(own.containers.readAll({ maxItemCount: size }), most);
        assert.deepEqual(listed.flatMap(ids), names);
        const queried = await pagesOf(own.containers.query("SELECT * FROM c", { maxItemCount: size }), most);
        assert.deepEqual(queried.flatMap(ids), names);
    }
    const answer = await call(server, {
        path: `/dbs/${parent._rid}/colls`,
        headers: { "x-ms-max-item-count": "5" },
    });
    assert.equal(answer.json._rid, parent._rid);
    assert.equal(answer.json._count, 5);
    assert.equal(answer.headers["x-ms-item-count"], "5");
});

test("queries find containers by their properties", async () => {
    const { resource } = await create({ id: unique("find me") });
    const byId = {
        query: "SELECT * FROM root r WHERE r.id = @id",
        parameters: [{ name: "@id", value: resource.id }],
    };
    assert.deepEqual((await database.containers.query(byId).fetchAll()).resources, [resource]);
    const byRid = await query(server, PARENT, `SELECT * FROM r WHERE r._rid = "${resource._rid}"`);
    assert.deepEqual(byRid.json.DocumentCollections, [resource]);
    const none = await query(server, PARENT, "SELECT * FROM r WHERE r.id = 'nobody'");
    assert.deepEqual(none.json.DocumentCollections, []);
    assert.equal(none.json._rid, databaseResource._rid);
});

// --- Partition keys

const KEYS = [
    ["a string, as the SDK takes it", "/pk", { paths: ["/pk"], kind: "Hash" }],
    ["Hash without a version", { paths: ["/pk"] }, { paths: ["/pk"], kind: "Hash" }],
    ["Hash version 1", { paths: ["/pk"], kind: "Hash", version: 1 }],
    ["Hash version 2", { paths: ["/pk"], kind: "Hash", version: 2 }],
    [
        "a kind in another case",
        { paths: ["/pk"], kind: "hash", version: 2 },
        { paths: ["/pk"], kind: "Hash", version: 2 },
    ],
    ["MultiHash of one path", { paths: ["/a"], kind: "MultiHash", version: 2 }],
    ["MultiHash of two paths", { paths: ["/a", "/b"], kind: "MultiHash", version: 2 }],
    ["MultiHash of three paths", { paths: ["/a", "/b/c", "/id"], kind: "MultiHash", version: 2 }],
    ["a nested path", { paths: ["/properties/name"], kind: "Hash", version: 2 }],
    ["a quoted path", { paths: ['/"department name"/x'], kind: "Hash", version: 2 }],
    ["the id", { paths: ["/id"], kind: "Hash", version: 2 }],
    ["a system key", { paths: ["/_partitionKey"], kind: "Hash", systemKey: true }],
];
for (const [what, sent, returned = sent] of KEYS) {
    test(`a partition key may be ${what}`, async () => {
        const { resource, container } = await create({ partitionKey: sent });
        assert.deepEqual(resource.partitionKey, returned);
        assert.deepEqual((await container.read()).resource.partitionKey, returned);
        const { resource: replaced } = await container.replace(definitionOf(resource));
        assert.deepEqual(replaced.partitionKey, returned);
    });
}

for (const [what, partitionKey] of [
    ["no paths", {}],
    ["an empty list", { paths: [] }],
    ["two paths of kind Hash", { paths: ["/a", "/b"], kind: "Hash", version: 2 }],
    ["four paths", { paths: ["/a", "/b", "/c", "/d"], kind: "MultiHash", version: 2 }],
    ["MultiHash without version 2", { paths: ["/a", "/b"], kind: "MultiHash" }],
    ["MultiHash of version 1", { paths: ["/a", "/b"], kind: "MultiHash", version: 1 }],
    ["the same path twice", { paths: ["/a", '/"a"'], kind: "MultiHash", version: 2 }],
    ["version 3", { paths: ["/a"], version: 3 }],
    ["an unknown kind", { paths: ["/a"], kind: "Range" }],
    ["a path without a slash", { paths: ["a"] }],
    ["a path with a slash at the end", { paths: ["/a/"] }],
    ["a wildcard", { paths: ["/a/*"] }],
    ["an array position", { paths: ["/a/[]"] }],
    ["the root", { paths: ["/"] }],
    ["a system property", { paths: ["/_ts"] }],
    ["a path that is no text", { paths: [1] }],
    ["a text", "/pk"],
]) {
    test(`a partition key with ${what} is refused`, async () => {
        errorAnswer(await createRaw({ id: unique("bad"), partitionKey }), 400, "BadRequest", {
            message: /partition ?key/i,
        });
    });
}

test("a container without a partition key needs an API version of its time", async () => {
    const id = unique("legacy");
    errorAnswer(await createRaw({ id }, { "x-ms-version": "2020-07-15" }), 400, "BadRequest", {
        message: /partitionKey/,
    });
    errorAnswer(await createRaw({ id }, { "x-ms-version": "2019-01-01" }), 400, "BadRequest");
    const answer = await createRaw({ id }, { "x-ms-version": "2018-06-18" });
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.json.partitionKey, undefined);
    const container = database.container(id);
    assert.equal((await container.readPartitionKeyRanges().fetchAll()).resources.length, 1);
    const { resource } = await container.read();
    const { resource: replaced } = await container.replace({ ...definitionOf(resource), defaultTtl: 3 });
    assert.equal(replaced.defaultTtl, 3);
    assert.deepEqual(replaced.partitionKey, { paths: ["/_partitionKey"], kind: "Hash", systemKey: true });
});

// --- Quota

test("a read tells quota and usage when it is asked to", async () => {
    const { container } = await create({});
    const plain = await container.read();
    assert.equal(plain.headers["x-ms-resource-quota"], undefined);
    const { headers } = await container.read({ populateQuotaInfo: true });
    assert.match(headers["x-ms-resource-quota"], /(^|;)documentsSize=\d+;/);
    assert.match(headers["x-ms-resource-usage"], /(^|;)documentsCount=0;/);
    assert.equal(headers["x-ms-documentdb-collection-index-transformation-progress"], "100");
});
