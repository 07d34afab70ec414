// Databases: create, read, delete, list and query, by name and by resource id.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, ids, pagesOf, refused } from "./lib/check.mjs";
import { decodeRid } from "./lib/rid.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";
import { call, query, unique } from "./lib/wire.mjs";

const server = await sharedServer();
const client = clientOf(server);
const byId = (id) => ({
    query: "SELECT * FROM root r WHERE r.id = @id",
    parameters: [{ name: "@id", value: id }],
});

// --- One database

test("a new database has the protocol's shape", async () => {
    const before = Math.floor(Date.now() / 1000);
    const id = unique("shape");
    const { resource, headers, statusCode } = await client.databases.create({ id });
    assert.equal(statusCode, 201);
    assert.deepEqual(Object.keys(resource).sort(), [
        "_colls",
        "_etag",
        "_rid",
        "_self",
        "_ts",
        "_users",
        "id",
    ]);
    assert.equal(resource.id, id);
    assert.equal(resource._self, `dbs/${resource._rid}/`);
    assert.equal(resource._colls, "colls/");
    assert.equal(resource._users, "users/");
    assert.match(resource._etag, /^"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"$/);
    assert.equal(headers.etag, resource._etag);
    assert.ok(Number.isInteger(resource._ts));
    assert.ok(resource._ts >= before && resource._ts <= Date.now() / 1000 + 1);
    assert.equal(decodeRid(resource._rid).kind, "database");
    assert.ok(Number(headers["x-ms-request-charge"]) > 0);
    assert.deepEqual((await client.database(id).read()).resource, resource);
});

test("what the client says about system properties does not count", async () => {
    const body = { id: unique("system"), _rid: "AAAAAA==", _etag: '"x"', _ts: 1, colour: "red" };
    const { resource } = await client.databases.create(body);
    assert.notEqual(resource._rid, body._rid);
    assert.notEqual(resource._etag, body._etag);
    assert.notEqual(resource._ts, body._ts);
    assert.equal(resource.colour, undefined);
});

test("a database that exists is not created again", async () => {
    const id = unique("twice");
    await client.databases.create({ id });
    await refused(client.databases.create({ id }), 409, { message: /already exists/ });
    const again = await client.databases.createIfNotExists({ id });
    assert.equal(again.statusCode, 200);
    assert.equal(again.resource.id, id);
});

test("createIfNotExists creates what is missing", async () => {
    const { statusCode, resource } = await client.databases.createIfNotExists({ id: unique("if") });
    assert.equal(statusCode, 201);
    assert.ok(resource._rid);
});

test("of many that create the same database one succeeds", async () => {
    const id = unique("race");
    const tries = await Promise.allSettled(Array.from({ length: 16 }, () => client.databases.create({ id })));
    assert.equal(tries.filter(({ status }) => status === "fulfilled").length, 1);
    for (const { reason } of tries) if (reason) assert.equal(reason.code, 409);
    const all = await Promise.all(
        Array.from({ length: 8 }, () => client.databases.createIfNotExists({ id })),
    );
    assert.equal(new Set(all.map(({ resource }) => resource._rid)).size, 1);
});

test("a database that is missing is not found, and its children have no owner", async () => {
    const missing = client.database("missing");
    const message = /Resource Not Found/;
    await refused(missing.read(), 404, { message });
    await refused(missing.delete(), 404, { message });
    await refused(missing.containers.readAll().fetchAll(), 404, { substatus: 1003 });
    await refused(missing.container("c").read(), 404, { substatus: 1003 });
    await refused(missing.containers.create({ id: "c", partitionKey: "/p" }), 404, { substatus: 1003 });
});

test("a deleted database is gone with all it held, and its name is free for another", async () => {
    const id = unique("again");
    const { resource: first, database } = await client.databases.create({ id }, { offerThroughput: 400 });
    const { resource: inner } = await database.containers.create({
        id: "c",
        partitionKey: "/p",
        throughput: 400,
    });
    const { statusCode } = await database.delete();
    assert.equal(statusCode, 204);
    await refused(database.read(), 404);
    await refused(database.container("c").read(), 404, { substatus: 1003 });
    await refused(database.delete(), 404);
    const offers = (await client.offers.readAll().fetchAll()).resources;
    const left = offers.filter((offer) => [first._rid, inner._rid].includes(offer.offerResourceId));
    assert.deepEqual(left, []);

    const { resource: second } = await client.databases.create({ id });
    assert.notEqual(second._rid, first._rid);
    assert.notEqual(second._etag, first._etag);
    assert.deepEqual((await client.database(id).containers.readAll().fetchAll()).resources, []);
    const old = await call(server, { path: `/dbs/${first._rid}` });
    errorAnswer(old, 404, "NotFound");
});

test("If-Match decides whether a database may be deleted", async () => {
    const { resource, database } = await client.databases.create({ id: unique("etag") });
    const condition = (etag) => ({ accessCondition: { type: "IfMatch", condition: etag } });
    const message = /pre-condition is not met/;
    await refused(database.delete(condition('"other"')), 412, { message });
    assert.equal((await database.read()).resource._etag, resource._etag);
    assert.equal((await database.delete(condition(resource._etag))).statusCode, 204);
    const { database: any } = await client.databases.create({ id: unique("etag") });
    assert.equal((await any.delete(condition("*"))).statusCode, 204);
});

test("If-None-Match saves reading a database that has not changed", async () => {
    const { resource, database } = await client.databases.create({ id: unique("cache") });
    const read = (etag) => call(server, { path: `/dbs/${database.id}`, headers: { "if-none-match": etag } });
    const same = await read(resource._etag);
    assert.equal(same.status, 304);
    assert.equal(same.bytes.length, 0);
    assert.equal(same.headers.etag, resource._etag);
    assert.equal((await read('"other"')).status, 200);
});

// --- Names

const NAMES = [
    "with space",
    " leading space",
    "100%",
    "%41",
    "a+b",
    "a&b=c;d,e:f@g$h!i*j'k(l)m",
    "ünïcødé",
    "データベース",
    "🪐",
    "quote\"and'quote",
    "<tag>",
    "CamelCase",
    "camelcase",
    "x".repeat(255),
    "ä".repeat(255),
];
test("names of all kinds work through the SDK", async (t) => {
    for (const id of NAMES) {
        await t.test(id.length > 40 ? `${id[0]} x ${id.length}` : id, async () => {
            const { resource } = await client.databases.create({ id });
            assert.equal(resource.id, id);
            assert.deepEqual((await client.database(id).read()).resource, resource);
            const found = await client.databases.query(byId(id)).fetchAll();
            assert.deepEqual(ids(found.resources), [id]);
            await client.database(id).delete();
        });
    }
});

test("a path may be escaped more than is needed, with either case of digits", async () => {
    const { resource } = await client.databases.create({ id: "Plus+ä" });
    for (const path of [
        "/dbs/Plus+%C3%A4",
        "/dbs/Plus%2B%c3%a4",
        "/dbs/%50lus%2b%C3%a4/",
        "/DBS/Plus+%C3%A4",
    ]) {
        const answer = await call(server, { path });
        assert.equal(answer.status, 200, `${path}: ${answer.text}`);
        assert.equal(answer.json._rid, resource._rid);
    }
    for (const id of ["plus+ä", "Plus ä"]) await refused(client.database(id).read(), 404);
});

const BAD_IDS = [
    ["no id", {}],
    ["an empty id", { id: "" }],
    ["a number", { id: 1 }],
    ["null", { id: null }],
    ["an object", { id: { a: 1 } }],
    ["a slash", { id: "a/b" }],
    ["a backslash", { id: "a\\b" }],
    ["a question mark", { id: "a?b" }],
    ["a hash", { id: "a#b" }],
    ["a space at the end", { id: "a " }],
    ["a line break", { id: "a\nb" }],
    ["a zero character", { id: "a\u0000b" }],
    ["256 characters", { id: "x".repeat(256) }],
    ["256 characters of two bytes", { id: "ä".repeat(256) }],
];
for (const [what, body] of BAD_IDS) {
    test(`${what} is refused as an id`, async () => {
        const answer = await call(server, { method: "POST", path: "/dbs", body });
        errorAnswer(answer, 400, "BadRequest", { message: /\bid\b/ });
    });
}

test("an id that is not UTF-8, or holds half a character, is refused", async () => {
    const create = (body) => call(server, { method: "POST", path: "/dbs", body });
    errorAnswer(await create(Buffer.from('{"id":"\xff"}', "latin1")), 400, "BadRequest");
    errorAnswer(await create('{"id":"half \\ud83e"}'), 400, "BadRequest", { message: /surrogate/ });
});

// --- Resource ids

test("a database is reached by its resource id and by its self link", async () => {
    const { resource } = await client.databases.create({ id: unique("rid") });
    const rid = resource._rid;
    for (const path of [`/dbs/${rid}`, `/dbs/${encodeURIComponent(rid)}`, `/${resource._self}`]) {
        const answer = await call(server, { path, type: "dbs", link: rid.toLowerCase() });
        assert.equal(answer.status, 200, answer.text);
        assert.deepEqual(answer.json, resource);
    }
    const gone = await call(server, {
        method: "DELETE",
        path: `/${resource._self}`,
        type: "dbs",
        link: rid.toLowerCase(),
    });
    assert.equal(gone.status, 204);
    await refused(client.database(resource.id).read(), 404);
});

test("a name that looks like a resource id is a name first", async () => {
    const { resource: first } = await client.databases.create({ id: unique("victim") });
    const { resource: second } = await client.databases.create({ id: first._rid });
    assert.notEqual(second._rid, first._rid);
    assert.equal((await client.database(first._rid).read()).resource._rid, second._rid);
    await client.database(first._rid).delete();
    assert.equal((await client.database(first.id).read()).resource._rid, first._rid);
});

test("resource ids that mean nothing are not found", async () => {
    for (const rid of ["AAAAAA==", "/////w==".replaceAll("/", "-"), "AAAA", "AAAAAAAAAAA="]) {
        const answer = await call(server, { path: `/dbs/${rid}`, type: "dbs", link: `dbs/${rid}` });
        errorAnswer(answer, 404, "NotFound");
    }
});

// --- Lists

test("lists come in pages, in the order of creation, without gaps or doubles", async (t) => {
    const own = clientOf(await startServer(t));
    const names = Array.from({ length: 25 }, (_, i) => `db${i}`);
    for (const id of names) await own.databases.create({ id });
    for (const size of [1, 7, 25, 1000, -1]) {
        const pages = await pagesOf(own.databases.readAll({ maxItemCount: size }), size < 0 ? 25 : size);
        assert.deepEqual(pages.flatMap(ids), names, `pages of ${size}`);
        if (size > 0) assert.equal(pages.length, Math.ceil(25 / size));
        const queried = await pagesOf(
            own.databases.query("SELECT * FROM r", { maxItemCount: size }),
            size < 0 ? 25 : size,
        );
        assert.deepEqual(queried.flatMap(ids), names, `query pages of ${size}`);
    }
});

test("a list goes on where it stopped, on another client, past what came and went", async (t) => {
    const target = await startServer(t);
    const own = clientOf(target);
    for (let i = 0; i < 10; i++) await own.databases.create({ id: `db${i}` });
    const first = await own.databases.readAll({ maxItemCount: 4 }).fetchNext();
    assert.deepEqual(ids(first.resources), ["db0", "db1", "db2", "db3"]);
    await own.database("db1").delete(); // already returned
    await own.database("db4").delete(); // the next one
    await own.database("db7").delete();
    await own.databases.create({ id: "db10" });
    const rest = await clientOf(target)
        .databases.readAll({ maxItemCount: 4, continuationToken: first.continuationToken })
        .fetchAll();
    assert.deepEqual(ids(rest.resources), ["db5", "db6", "db8", "db9", "db10"]);
    await target.restart();
    const later = await clientOf(target)
        .databases.readAll({ maxItemCount: 4, continuationToken: first.continuationToken })
        .fetchNext();
    assert.deepEqual(ids(later.resources), ["db5", "db6", "db8", "db9"]);
});

test("a query goes on where it stopped, past what came and went", async (t) => {
    const own = clientOf(await startServer(t));
    for (let i = 0; i < 10; i++) await own.databases.create({ id: `db${i}` });
    const text = "SELECT VALUE r.id FROM r WHERE r.id != 'db2'";
    const first = await own.databases.query(text, { maxItemCount: 3 }).fetchNext();
    assert.deepEqual(first.resources, ["db0", "db1", "db3"]);
    await own.database("db0").delete(); // already returned
    await own.database("db4").delete(); // the next one
    await own.databases.create({ id: "db10" });
    const rest = await own.databases
        .query(text, { maxItemCount: 3, continuationToken: first.continuationToken })
        .fetchAll();
    assert.deepEqual(rest.resources, ["db5", "db6", "db7", "db8", "db9", "db10"]);
});

test("a page of a hundred is the default, and its envelope is the protocol's", async (t) => {
    const target = await startServer(t, { args: ["--durability", "relaxed"] });
    const own = clientOf(target);
    await Promise.all(Array.from({ length: 101 }, (_, i) => own.databases.create({ id: `db${i}` })));
    const answer = await call(target, { path: "/dbs" });
    assert.deepEqual(Object.keys(answer.json), ["_rid", "Databases", "_count"]);
    assert.equal(answer.json._rid, "");
    assert.equal(answer.json._count, 100);
    assert.equal(answer.json.Databases.length, 100);
    assert.equal(answer.headers["x-ms-item-count"], "100");
    const token = answer.headers["x-ms-continuation"];
    assert.match(token, /^[\x21-\x7e]{1,1024}$/);
    const last = await call(target, { path: "/dbs", headers: { "x-ms-continuation": token } });
    assert.equal(last.json._count, 1);
    assert.equal(last.headers["x-ms-continuation"], undefined);
});

test("a continuation of another feed or kind is refused", async (t) => {
    const target = await startServer(t);
    const own = clientOf(target);
    for (const id of ["a", "b"]) {
        const { database } = await own.databases.create({ id });
        for (const name of ["c", "d"]) await database.containers.create({ id: name, partitionKey: "/p" });
    }
    const headers = { "x-ms-max-item-count": "1" };
    const token = async (path) => (await call(target, { path, headers })).headers["x-ms-continuation"];
    const queryToken = (await query(target, "/dbs", "SELECT * FROM r", { headers })).headers[
        "x-ms-continuation"
    ];
    assert.ok(queryToken);
    for (const [path, foreign] of [
        ["/dbs", await token("/dbs/a/colls")],
        ["/dbs/b/colls", await token("/dbs/a/colls")],
        ["/offers", await token("/dbs")],
        ["/dbs", queryToken],
        ["/dbs", "0"],
        ["/dbs", "L1000000000000000g"],
        ["/dbs", "x".repeat(5000)],
    ]) {
        const answer = await call(target, { path, headers: { "x-ms-continuation": foreign } });
        errorAnswer(answer, 400, "BadRequest", { message: /Invalid Continuation Token/ });
    }
});

// --- Queries

test("queries find databases by their properties", async (t) => {
    const own = clientOf(await startServer(t));
    for (const id of ["a", "b", "c"]) await own.databases.create({ id });
    const { resources: all } = await own.databases.readAll().fetchAll();
    const found = async (text, parameters) =>
        (await own.databases.query(parameters ? { query: text, parameters } : text).fetchAll()).resources;
    assert.deepEqual(
        ids(await found("SELECT * FROM root r WHERE r.id = @id", [{ name: "@id", value: "b" }])),
        ["b"],
    );
    assert.deepEqual(ids(await found('select * from root r where r.id="c"')), ["c"]);
    assert.deepEqual(await found('SELECT * FROM root r WHERE r.id = "missing"'), []);
    assert.deepEqual(ids(await found(`SELECT * FROM r WHERE r._rid = '${all[1]._rid}'`)), ["b"]);
});

test("SQL on a feed is the whole language", async (t) => {
    const own = clientOf(await startServer(t));
    for (const id of ["a", "b", "c"]) await own.databases.create({ id });
    const found = async (text) => (await own.databases.query(text).fetchAll()).resources;
    assert.deepEqual(await found("SELECT VALUE r.id FROM r ORDER BY r.id DESC"), ["c", "b", "a"]);
    assert.deepEqual(await found("SELECT VALUE COUNT(1) FROM r"), [3]);
    assert.deepEqual(await found("SELECT r.id AS name FROM r WHERE r.id IN ('a', 'c')"), [
        { name: "a" },
        { name: "c" },
    ]);
    assert.deepEqual(await found("SELECT TOP 1 VALUE UPPER(r.id) FROM r WHERE STARTSWITH(r._self, 'dbs/')"), [
        "A",
    ]);
});

test("a query that is wrong says where", async () => {
    const error = await refused(client.databases.query("SELEC * FROM r").fetchAll(), 400);
    assert.match(error.message, /"code":"SC1001"/);
    for (const body of ["", "{}", '{"query":1}', "[]", '{"query":"SELECT * FROM r","parameters":{}}']) {
        const answer = await call(server, {
            method: "POST",
            path: "/dbs",
            headers: { "content-type": "application/query+json" },
            body,
        });
        errorAnswer(answer, 400, "BadRequest");
    }
});
