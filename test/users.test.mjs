// Users of a database: made, read, renamed, listed, deleted.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, ids, pagesOf, refused } from "./lib/check.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";
import { call, query, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);

async function newDatabase(of = client) {
    const { database } = await of.databases.create({ id: unique("d") });
    return database;
}

test("a user is created, read, listed, found, renamed and deleted", async () => {
    const database = await newDatabase();
    const { resources: before } = await database.users.readAll().fetchAll();
    const { resource, user, headers } = await database.users.create({ id: "u1" });
    assert.equal(resource.id, "u1");
    assert.equal(headers.etag, resource._etag);
    const { resource: parent } = await database.read();
    assert.equal(resource._self, `dbs/${parent._rid}/users/${resource._rid}/`);
    assert.match(resource._self, /^dbs\/(.*)\/users\/(.*)\/$/);
    assert.equal(resource._permissions, "permissions/");
    assert.equal(Buffer.from(resource._rid.replaceAll("-", "/"), "base64").length, 8);
    assert.deepEqual(Object.keys(resource).sort(), ["_etag", "_permissions", "_rid", "_self", "_ts", "id"]);
    assert.equal((await database.users.readAll().fetchAll()).resources.length, before.length + 1);
    const asked = { query: "SELECT * FROM root r WHERE r.id=@id", parameters: [{ name: "@id", value: "u1" }] };
    assert.deepEqual((await database.users.query(asked).fetchAll()).resources, [resource]);

    const { resource: renamed } = await user.replace({ ...resource, id: "replaced" });
    assert.equal(renamed.id, "replaced");
    assert.equal(renamed._rid, resource._rid);
    assert.notEqual(renamed._etag, resource._etag);
    await refused(user.read(), 404);
    const moved = database.user("replaced");
    assert.deepEqual((await moved.read()).resource, renamed);
    assert.equal((await moved.delete()).statusCode, 204);
    await refused(moved.read(), 404);
    await refused(moved.delete(), 404);
});

test("an upsert goes by the id alone", async () => {
    const database = await newDatabase();
    const first = await database.users.upsert({ id: "u1" });
    assert.equal(first.statusCode, 201);
    assert.ok(first.resource._rid);
    const again = await database.users.upsert(first.resource);
    assert.equal(again.statusCode, 200);
    assert.equal(again.resource._rid, first.resource._rid);
    assert.equal((await database.users.readAll().fetchAll()).resources.length, 1);
    const second = await database.users.upsert({ ...first.resource, id: "u2" });
    assert.equal(second.statusCode, 201);
    assert.notEqual(second.resource._rid, first.resource._rid);
    assert.deepEqual(ids((await database.users.readAll().fetchAll()).resources), ["u1", "u2"]);
});

test("lists and queries come in exact pages", async () => {
    const database = await newDatabase();
    for (let i = 0; i < 5; i++) await database.users.create({ id: `user${i}` });
    const sizes = async (iterator, size) => (await pagesOf(iterator, size)).map((page) => page.length);
    assert.deepEqual(await sizes(database.users.readAll({ maxItemCount: 2 }), 2), [2, 2, 1]);
    assert.deepEqual(await sizes(database.users.query("SELECT * FROM root", { maxItemCount: 3 }), 3), [3, 2]);
    const path = `/dbs/${database.id}/users`;
    const none = await query(server, path, "SELECT * FROM r WHERE r.id = 'none'");
    assert.deepEqual([none.json.Users, none.json._count], [[], 0]);
    assert.equal(none.headers["x-ms-continuation"], undefined);
    const one = await query(server, path, "SELECT * FROM r WHERE STARTSWITH(r.id, 'user3')");
    assert.deepEqual(ids(one.json.Users), ["user3"]);
    const list = await call(server, { path });
    const { resource: parent } = await database.read();
    assert.equal(list.json._rid, parent._rid);
    assert.equal(list.json._count, 5);
    for (const page of [none, one, list]) assert.ok(Number(page.headers["x-ms-request-charge"]) >= 1);
    errorAnswer(await query(server, path, "SELECT FROM"), 400, "BadRequest");
});

test("ids are checked, and taken once", async () => {
    const database = await newDatabase();
    const path = `/dbs/${database.id}/users`;
    const create = (body) => call(server, { method: "POST", path, body });
    assert.equal((await create({ id: "a b" })).status, 201);
    errorAnswer(await create({ id: "a b" }), 409, "Conflict");
    for (const id of ["", "a/b", "a\\b", "a?", "a#b", "end ", "x".repeat(256), 7, null])
        errorAnswer(await create({ id }), 400, "BadRequest");
    errorAnswer(await create({}), 400, "BadRequest");
    errorAnswer(await create("{"), 400, "BadRequest");
    const missing = { method: "POST", path: `/dbs/${unique("none")}/users`, body: { id: "u" } };
    errorAnswer(await call(server, missing), 404, "NotFound", { substatus: 1003 });
    await create({ id: "other" });
    errorAnswer(await call(server, { method: "PUT", path: `${path}/other`, body: { id: "a b" } }), 409, "Conflict");
    const put = { method: "PUT", path: `${path}/other`, body: { id: "x" }, headers: { "if-match": '"stale"' } };
    errorAnswer(await call(server, put), 412, "PreconditionFailed");
    errorAnswer(await call(server, { method: "PATCH", path: `${path}/other`, body: {} }), 405, "MethodNotAllowed");
});

test("users outlive a restart, and go with their database", async (t) => {
    const own = await startServer(t);
    const database = await newDatabase(clientOf(own));
    const { resource } = await database.users.create({ id: "u1" });
    await database.users.create({ id: "u2" });
    await database.user("u2").delete();
    await own.restart();
    const after = clientOf(own).database(database.id);
    assert.deepEqual((await after.users.readAll().fetchAll()).resources, [resource]);
    await after.delete();
    await clientOf(own).databases.create({ id: database.id });
    await refused(after.user("u1").read(), 404);
    await own.restart();
    const again = await clientOf(own).database(database.id).users.create({ id: "u1" });
    assert.notEqual(again.resource._rid, resource._rid);
});
