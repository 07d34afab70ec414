// Permissions of users: made, read, replaced, renamed, listed, deleted. What their tokens open is in resource-tokens.test.mjs.
import assert from "node:assert/strict";
import test from "node:test";

import { PermissionMode } from "@azure/cosmos";

import { errorAnswer, ids, pagesOf, refused } from "./lib/check.mjs";
import { newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, sharedServer, startServer } from "./lib/server.mjs";
import { call, callWith, query, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);

async function newUser(of = client) {
    const { database } = await of.databases.create({ id: unique("d") });
    const container = await newContainer(database);
    const { user } = await database.users.create({ id: "u1" });
    return { database, container, user, path: `/dbs/${database.id}/users/u1/permissions` };
}

const TOKEN = /^type=resource&ver=1&sig=[A-Za-z0-9+/=]{24};[A-Za-z0-9+/=]+;$/;

test("a permission is created, read, replaced, renamed and deleted", async () => {
    const { container, user } = await newUser();
    const { resource, permission, headers } = await user.permissions.create({
        id: "p1",
        permissionMode: PermissionMode.Read,
        resource: container.url,
    });
    assert.equal(resource.resource, container.url);
    assert.match(resource._token, TOKEN);
    assert.ok(resource._token.length < 2048);
    assert.match(resource._self, /^dbs\/(.*)\/users\/(.*)\/permissions\/(.*)\/$/);
    assert.equal(Buffer.from(resource._rid.replaceAll("-", "/"), "base64").length, 16);
    assert.equal(headers.etag, resource._etag);
    const asked = { query: "SELECT * FROM root r WHERE r.id=@id", parameters: [{ name: "@id", value: "p1" }] };
    assert.deepEqual(ids((await user.permissions.query(asked).fetchAll()).resources), ["p1"]);

    const { resource: all } = await permission.replace({ ...resource, permissionMode: PermissionMode.All });
    assert.equal(all.permissionMode, "All");
    assert.equal(all._rid, resource._rid);
    const { resource: renamed } = await permission.replace({ ...all, id: "p2" });
    assert.equal(renamed.id, "p2");
    await refused(permission.read(), 404);
    const { resource: read } = await user.permission("p2").read();
    assert.match(read._token, TOKEN);
    assert.equal((await user.permission("p2").delete()).statusCode, 204);
    await refused(user.permission("p2").read(), 404);
});

test("an upsert replaces by id, and a new id needs a new resource", async () => {
    const { container, user } = await newUser();
    const first = await user.permissions.upsert({ id: "p1", permissionMode: "Read", resource: container.url });
    assert.equal(first.statusCode, 201);
    const again = await user.permissions.upsert({ ...first.resource, permissionMode: "All" });
    assert.equal(again.statusCode, 200);
    assert.equal(again.resource.permissionMode, "All");
    await refused(user.permissions.upsert({ ...first.resource, id: "p2" }), 409);
    const other = await user.permissions.upsert({
        ...first.resource,
        id: "p2",
        resource: "dbs/AQAAAA==/colls/AQAAAJ0fgTc=",
    });
    assert.equal(other.statusCode, 201);
    assert.deepEqual(ids((await user.permissions.readAll().fetchAll()).resources), ["p1", "p2"]);
});

test("what a permission names need not exist, and is given back as it was sent", async () => {
    const { database, path } = await newUser();
    const links = [
        `dbs/${database.id}/colls/myContainer`,
        `dbs/${database.id}/colls/myContainer/docs/doc1`,
        `dbs/${database.id}/colls/myContainer0=`,
        "dbs/my%20db/colls/c",
        "/dbs/d/colls/c/sprocs/s/",
        "dbs/d/colls/c/triggers/t",
        "dbs/d/colls/c/udfs/u",
    ];
    for (const [i, resource] of links.entries()) {
        // As Java writes the mode.
        const body = { id: `p${i}`, permissionMode: i % 2 === 0 ? "read" : "all", resource };
        const made = await call(server, { method: "POST", path, body });
        assert.equal(made.status, 201, made.text);
        assert.equal(made.json.resource, resource);
        assert.equal(made.json.permissionMode, i % 2 === 0 ? "Read" : "All");
        assert.match(made.json._token, TOKEN);
    }
    for (const resource of ["", "dbs/d", "dbs/d/users/u", "dbs/d/colls/c/docs", "c", 7, undefined])
        errorAnswer(
            await call(server, { method: "POST", path, body: { id: "x", permissionMode: "Read", resource } }),
            400,
            "BadRequest",
        );
});

test("one user has a permission for a container by name, by id, and for each of its keys", async () => {
    const { database, container, user } = await newUser();
    const { resource: item } = await container.items.create({ id: "i", pk: "1" });
    const { resource } = await container.read();
    const rows = [
        { resource: container.url },
        { resource: resource._self },
        { resource: `${container.url}/docs/i` },
        { resource: item._self },
        { resource: container.url, resourcePartitionKey: ["1"] },
        { resource: container.url, resourcePartitionKey: ["2"] },
        { resource: container.url, resourcePartitionKey: [{}] },
    ];
    for (const [i, row] of rows.entries())
        assert.equal((await user.permissions.create({ id: `p${i}`, permissionMode: "All", ...row })).statusCode, 201);
    await refused(user.permissions.create({ id: "x", permissionMode: "Read", resource: `/${container.url}/` }), 409);
    const { user: second } = await database.users.create({ id: "u2" });
    await second.permissions.create({ id: "p0", permissionMode: "All", resource: container.url });
});

test("partition keys come back as they were sent", async () => {
    const { container, user, path } = await newUser();
    const body = { id: "p", permissionMode: "All", resource: container.url, resourcePartitionKey: [1] };
    const { resource: created } = await user.permissions.create(body);
    const { resource: upserted } = await user.permissions.upsert(created);
    const { resource: replaced } = await user.permission("p").replace(upserted);
    for (const one of [created, upserted, replaced]) assert.deepEqual(one.resourcePartitionKey, [1]);
    const { resourcePartitionKey, ...rest } = replaced;
    const { resource: dropped } = await user.permission("p").replace(rest);
    assert.equal(dropped.resourcePartitionKey, undefined);
    for (const key of ["x", [["x"]], [{ a: 1 }], {}, 7])
        errorAnswer(
            await call(server, { method: "POST", path, body: { ...body, id: "q", resourcePartitionKey: key } }),
            400,
            "BadRequest",
            { message: /Partition key supplied is not valid/ },
        );
});

test("every element of a list has a token of its own, and pages are exact", async () => {
    const { container, user, path } = await newUser();
    for (let i = 0; i < 5; i++)
        await user.permissions.create({ id: `p${i}`, permissionMode: "Read", resource: `${container.url}/docs/${i}` });
    const sizes = async (iterator, size) => (await pagesOf(iterator, size)).map((page) => page.length);
    assert.deepEqual(await sizes(user.permissions.readAll({ maxItemCount: 3 }), 3), [3, 2]);
    const starts = 'select * from T where STARTSWITH(T.id, "p")';
    assert.deepEqual(await sizes(user.permissions.query(starts, { maxItemCount: 2 }), 2), [2, 2, 1]);
    const list = await call(server, { path });
    const { resource: owner } = await user.read();
    assert.equal(list.json._rid, owner._rid);
    assert.equal(list.json._count, 5);
    assert.equal(new Set(list.json.Permissions.map(({ _token }) => _token)).size, 5);
    for (const { _token } of list.json.Permissions) {
        assert.match(_token, TOKEN);
        assert.equal((await callWith(server, _token, { path: "/" })).status, 200);
    }
    errorAnswer(await query(server, path, "SELECT FROM"), 400, "BadRequest");
    const none = await query(server, path, "SELECT * FROM c WHERE c.id = 'none'");
    assert.equal(none.json._count, 0);
    for (const page of [list, none]) assert.ok(Number(page.headers["x-ms-request-charge"]) >= 1);
});

test("the life of a token is asked for by a header, within bounds", async () => {
    const { container, path } = await newUser();
    const body = { id: "p", permissionMode: "All", resource: container.url };
    const seconds = (value) => ({ "x-ms-documentdb-expiry-seconds": String(value) });
    const made = await call(server, { method: "POST", path, body, headers: seconds(10) });
    assert.equal(made.status, 201, made.text);
    for (const value of [9, 0, -1, 86401, "x", "1.5"])
        for (const request of [
            { path: `${path}/p` },
            { path },
            { method: "PUT", path: `${path}/p`, body },
            { method: "POST", path, body: { ...body, id: "q", resource: `${container.url}/docs/1` } },
        ])
            errorAnswer(await call(server, { ...request, headers: seconds(value) }), 400, "BadRequest", {
                message: /expiry-seconds/,
            });
    for (const value of [10, 3600, 86400])
        assert.equal((await call(server, { path: `${path}/p`, headers: seconds(value) })).status, 200);
});

test("a read-only key reads users, and no permissions", async (t) => {
    const readOnly = Buffer.from("r".repeat(64)).toString("base64");
    const own = await startServer(t, { args: ["--read-only-key", readOnly] });
    const { container, user, path } = await newUser(clientOf(own));
    await user.permissions.create({ id: "p", permissionMode: "All", resource: container.url });
    const reader = { endpoint: own.endpoint, key: readOnly };
    assert.equal((await call(reader, { path: path.replace("/permissions", "") })).status, 200);
    errorAnswer(await call(reader, { path }), 401, "Unauthorized");
    errorAnswer(await call(reader, { path: `${path}/p` }), 401, "Unauthorized");
    errorAnswer(await query(reader, path, "SELECT * FROM c"), 401, "Unauthorized");
});

test("permissions and their tokens outlive a restart, and go with their user; the check knows them", async (t) => {
    const own = await startServer(t);
    const { container, user, path } = await newUser(clientOf(own));
    const { resource } = await user.permissions.create({ id: "p", permissionMode: "Read", resource: container.url });
    await own.restart();
    const opened = await callWith(own, resource._token, { path: `/${container.url}` });
    assert.equal(opened.status, 200, opened.text);
    const again = await call(own, { path: `${path}/p` });
    assert.equal(again.json._rid, resource._rid);
    await own.stopWell();
    const checked = run(["check", "--data", own.data]);
    assert.equal(checked.status, 0, checked.stderr);
    await own.start();
    await clientOf(own).database(container.database.id).user("u1").delete();
    errorAnswer(await callWith(own, resource._token, { path: `/${container.url}` }), 403, "Forbidden");
    await own.restart();
    errorAnswer(await call(own, { path: `${path}/p` }), 404, "NotFound", { substatus: 1003 });
    errorAnswer(await callWith(own, resource._token, { path: `/${container.url}` }), 403, "Forbidden");
});
