// What resource tokens open, through the SDK and as other SDKs send them.
import assert from "node:assert/strict";
import test from "node:test";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { errorAnswer, refused } from "./lib/check.mjs";
import { newContainer } from "./lib/items.mjs";
import { clientOf, clientWith } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { call, callWith, send, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);

const FORBIDDEN = { message: /Insufficient permissions provided in the authorization header/ };
const key = (...values) => ({ "x-ms-documentdb-partitionkey": JSON.stringify(values) });

// A container with three items under the keys 1 and 2, and a user.
async function world() {
    const { database } = await client.databases.create({ id: unique("d") });
    const container = await newContainer(database);
    for (const item of [
        { id: "a", pk: 1 },
        { id: "b", pk: 1 },
        { id: "a", pk: 2 },
    ])
        await container.items.create(item);
    const { user } = await database.users.create({ id: "u" });
    const { resource } = await container.read();
    const { resource: parent } = await database.read();
    const grant = async (mode, link = container.url, more = {}) => {
        const { resource: made } = await user.permissions.create({
            id: unique("p"),
            permissionMode: mode,
            resource: link,
            ...more,
        });
        return made;
    };
    return {
        database,
        container,
        user,
        grant,
        rids: `dbs/${parent._rid}/colls/${resource._rid}`,
        // The same container for a client that has nothing but this token.
        through: (options) => clientWith(server, options).database(database.id).container(container.id),
        tokensOf: (permission) => ({ resourceTokens: { [container.url]: permission._token } }),
    };
}

const all = async (container, options) => (await container.items.readAll(options).fetchAll()).resources;

test("without a credential, or with rubbish, everything is 401", async () => {
    const { container } = await world();
    for (const path of ["/", "/dbs", `/${container.url}`, `/${container.url}/docs`, "/dbs/none/colls/none"]) {
        errorAnswer(await callWith(server, undefined, { path }), 401, "Unauthorized", { substatus: 5000 });
        errorAnswer(await callWith(server, "", { path }), 401, "Unauthorized", { substatus: 5000 });
        for (const text of ["null", "invalid", "type=master", "type=resource&ver=1&sig="])
            for (const isEncoded of [true, false])
                errorAnswer(await callWith(server, text, { path, isEncoded }), 401, "Unauthorized", {
                    substatus: 5001,
                    message: /Authorization header doesn't confirm to the required format/,
                });
        errorAnswer(await callWith(server, "type=resource&ver=1&sig=x;y;", { path }), 401, "Unauthorized");
    }
});

test("a token for reading a container reads, and changes nothing", async () => {
    const { container, grant, through, tokensOf, database } = await world();
    const permission = await grant("Read");
    const mine = through(tokensOf(permission));
    assert.equal((await mine.read()).resource.id, container.id);
    assert.equal((await all(mine)).length, 3);
    assert.equal((await mine.item("a", 1).read()).resource.pk, 1);
    const { resources } = await mine.items.query("SELECT * FROM c WHERE c.id = 'a' ORDER BY c.pk").fetchAll();
    assert.deepEqual(
        resources.map(({ pk }) => pk),
        [1, 2],
    );
    await refused(mine.items.create({ id: "new", pk: 1 }), 403, FORBIDDEN);
    await refused(mine.items.upsert({ id: "a", pk: 1 }), 403, FORBIDDEN);
    await refused(mine.item("a", 1).replace({ id: "a", pk: 1 }), 403, FORBIDDEN);
    await refused(mine.item("a", 1).delete(), 403, FORBIDDEN);
    await refused(mine.delete(), 403, FORBIDDEN);
    const plan = await callWith(server, permission._token, {
        method: "POST",
        path: `/${container.url}/docs`,
        headers: {
            "content-type": "application/query+json",
            "x-ms-cosmos-is-query-plan-request": "True",
            "x-ms-cosmos-supported-query-features": "OrderBy",
        },
        body: { query: "SELECT * FROM c ORDER BY c.pk" },
    });
    assert.equal(plan.status, 200, plan.text);
    for (const path of [
        "/dbs",
        "/offers",
        `/dbs/${database.id}`,
        `/dbs/${database.id}/colls`,
        `/dbs/${database.id}/users`,
        `/dbs/${database.id}/users/u/permissions`,
        `/dbs/${database.id}/clientencryptionkeys/none`,
        `/dbs/${database.id}/colls/none`,
        "/_orrery/containers",
        `/_orrery/${container.url}/layout`,
    ])
        errorAnswer(await callWith(server, permission._token, { path }), 403, "Forbidden", FORBIDDEN);
});

test("a token for all of a container changes items and scripts, but not the container", async () => {
    const { container, grant, through, tokensOf, database } = await world();
    const permission = await grant("All");
    const mine = through(tokensOf(permission));
    await mine.items.create({ id: "new", pk: 3 });
    await mine.item("new", 3).patch([{ op: "set", path: "/n", value: 1 }]);
    assert.equal((await mine.item("new", 3).delete()).statusCode, 204);
    const batch = await mine.items.batch([{ operationType: "Read", id: "a" }], 1);
    assert.equal(batch.result[0].statusCode, 200);
    const changes = mine.items.getChangeFeedIterator({
        changeFeedStartFrom: ChangeFeedStartFrom.Beginning(1),
    });
    assert.equal((await changes.readNext()).result.length, 2);
    const body = "function () { getContext().getResponse().setBody('0123456789'); }";
    const { storedProcedure } = await mine.scripts.storedProcedures.create({ id: "s", body });
    const run = await callWith(server, permission._token, {
        method: "POST",
        path: `/${container.url}/sprocs/s`,
        headers: { ...key({}), "content-type": "application/json" },
        body: "[]",
    });
    assert.equal(run.text, '"0123456789"');
    await storedProcedure.delete();
    await refused(mine.delete(), 403, FORBIDDEN);
    const { resource } = await container.read();
    await refused(mine.replace(resource), 403, FORBIDDEN);
    const put = { id: "k", encryptionAlgorithm: "AEAD_AES_256_CBC_HMAC_SHA256", wrappedDataEncryptionKey: "AQID" };
    for (const request of [
        { method: "POST", path: `/dbs/${database.id}/clientencryptionkeys`, body: put },
        { method: "PUT", path: `/dbs/${database.id}/clientencryptionkeys/none`, body: put },
        { method: "POST", path: `/${container.url}/operations/partitionmerge` },
        { method: "DELETE", path: `/dbs/${database.id}` },
    ])
        errorAnswer(await callWith(server, permission._token, request), 403, "Forbidden", FORBIDDEN);
});

test("a token with a partition key is for that key", async () => {
    const { container, grant, through, tokensOf } = await world();
    const read = await grant("Read", container.url, { resourcePartitionKey: [1] });
    const { user: other } = await container.database.users.create({ id: "writer" });
    const { resource: write } = await other.permissions.create({
        id: "p",
        permissionMode: "All",
        resource: container.url,
        resourcePartitionKey: [1],
    });
    const reader = through(tokensOf(read));
    const writer = through(tokensOf(write));
    await writer.items.create({ id: "new", pk: 1 });
    await refused(writer.items.create({ id: "new", pk: 2 }), 403, FORBIDDEN);
    assert.equal((await writer.item("new", 1).delete()).statusCode, 204);
    await refused(reader.items.create({ id: "new", pk: 1 }), 403, FORBIDDEN);
    await refused(reader.item("a", 1).delete(), 403, FORBIDDEN);
    assert.equal((await reader.item("a", 1).read()).resource.pk, 1);
    await refused(reader.item("a", 2).read(), 403, FORBIDDEN);
    const asked = await reader.items.query("SELECT * FROM c WHERE c.id = 'a'", { partitionKey: 1 }).fetchAll();
    assert.deepEqual(
        asked.resources.map(({ pk }) => pk),
        [1],
    );
    await refused(reader.items.query("SELECT * FROM c WHERE c.id = 'a'").fetchAll(), 403, FORBIDDEN);
    await refused(all(reader), 403, FORBIDDEN);
    // The granted key with the id of an item of another key: allowed, and not there.
    await container.items.create({ id: "elsewhere", pk: 2 });
    const missing = await callWith(server, read._token, { path: `/${container.url}/docs/elsewhere`, headers: key(1) });
    errorAnswer(missing, 404, "NotFound");
    const feed = { path: `/${container.url}/docs` };
    const headers = { "a-im": "Incremental Feed" };
    errorAnswer(await callWith(server, read._token, { ...feed, headers }), 403, "Forbidden", FORBIDDEN);
    const range = { ...headers, "x-ms-documentdb-partitionkeyrangeid": "0" };
    errorAnswer(await callWith(server, read._token, { ...feed, headers: range }), 403, "Forbidden", FORBIDDEN);
    const own = await callWith(server, read._token, { ...feed, headers: { ...headers, ...key(1) } });
    assert.deepEqual(
        own.json.Documents.map(({ pk }) => pk),
        [1, 1],
    );
});

// Python reads the container before each item, with the item's token; Java does so by resource ids.
test("a token for an item opens the container that a client needs to read first", async () => {
    const { container, grant, rids, through } = await world();
    const link = `${container.url}/docs/a`;
    const read = await grant("Read", link, { resourcePartitionKey: [1] });
    for (const path of ["/", `/${container.url}`, `/${container.url}/pkranges`, `/${rids}`, `/${rids}/pkranges`]) {
        const answer = await callWith(server, read._token, { path });
        assert.equal(answer.status, 200, answer.text);
    }
    const path = `/${link}`;
    assert.equal((await callWith(server, read._token, { path, headers: key(1) })).status, 200);
    errorAnswer(await callWith(server, read._token, { path, headers: key(2) }), 403, "Forbidden", FORBIDDEN);
    const remove = { method: "DELETE", path, headers: key(1) };
    errorAnswer(await callWith(server, read._token, remove), 403, "Forbidden", FORBIDDEN);
    errorAnswer(await callWith(server, read._token, { path: `/${container.url}/docs` }), 403, "Forbidden", FORBIDDEN);
    const write = await grant("All", link);
    const mine = through({ resourceTokens: { [link]: write._token, [container.url]: write._token } });
    assert.equal((await mine.item("a", 1).read()).resource.id, "a");
    assert.equal((await mine.item("a", 1).delete()).statusCode, 204);
    await refused(mine.item("b", 1).delete(), 403, FORBIDDEN);
});

test("links and paths may be of names or of resource ids", async () => {
    const { container, user, grant, rids } = await world();
    const { resource: item } = await container.item("a", 1).read();
    const { resource } = await container.read();
    for (const link of [rids, resource._self, `/${container.url}/`]) {
        const { id, _token } = await grant("All", link);
        for (const path of [`/${container.url}`, `/${rids}`, `/${resource._self}`]) {
            assert.equal((await callWith(server, _token, { path })).status, 200);
            const feed = await callWith(server, _token, { path: `${path}/docs`.replace("//docs", "/docs") });
            assert.equal(feed.json._count, 3, feed.text);
        }
        // As Java does it: made by name with the key that stands for none, and asked for by id.
        const none = { id: "none" };
        const made = { method: "POST", path: `/${container.url}/docs`, headers: key({}), body: none };
        const first = await callWith(server, _token, made);
        assert.equal(first.status, 201, first.text);
        const self = await callWith(server, _token, { path: `/${first.json._self}`, headers: key({}) });
        assert.equal(self.json.id, "none");
        const gone = { method: "DELETE", path: `/${container.url}/docs/none`, headers: key({}) };
        assert.equal((await callWith(server, _token, gone)).status, 204);
        await user.permission(id).delete(); // the next link may differ in its slashes alone
    }
    const { _token } = await grant("Read", item._self);
    assert.equal((await callWith(server, _token, { path: `/${item._self}`, headers: key(1) })).json.id, "a");
});

test("the SDK takes a list of permissions, and a function that gives tokens", async () => {
    const { grant, through } = await world();
    const permission = await grant("Read");
    const fed = through({ permissionFeed: [permission] });
    assert.equal((await fed.item("a", 1).read()).resource.pk, 1);
    const account = await clientWith(server, { permissionFeed: [permission] }).getDatabaseAccount();
    assert.ok(account.resource.writableLocations.length > 0);
    const asked = [];
    const provided = through({
        tokenProvider: async (request) => {
            asked.push(request.path);
            return permission._token;
        },
    });
    assert.equal((await provided.item("a", 1).read()).resource.pk, 1);
    await refused(provided.item("a", 1).delete(), 403, FORBIDDEN);
    assert.ok(asked.length > 0);
});

// As .NET's AzureKeyCredential.Update: one connection, other credentials.
test("credentials are judged request by request", async () => {
    const { container, grant } = await world();
    const wrong = Buffer.from("w".repeat(64)).toString("base64");
    const path = `/${container.url}/docs`;
    const create = (id) => ({ method: "POST", path, headers: key(1), body: { id, pk: 1 } });
    const reads = await grant("Read");
    await container.database.users.create({ id: "v" });
    const { resource: writes } = await container.database.user("v").permissions.create({
        id: "p",
        permissionMode: "All",
        resource: container.url,
    });
    assert.equal((await call(server, create("n1"))).status, 201);
    errorAnswer(await call({ endpoint: server.endpoint, key: wrong }, create("n2")), 401, "Unauthorized");
    assert.equal((await call(server, create("n2"))).status, 201);
    assert.equal((await callWith(server, writes._token, create("n3"))).status, 201);
    errorAnswer(await callWith(server, reads._token, create("n4")), 403, "Forbidden", FORBIDDEN);
    errorAnswer(await call({ endpoint: server.endpoint, key: wrong }, create("n4")), 401, "Unauthorized");
});

test("tokens are taken encoded or not, with or without their end", async () => {
    const { container, grant } = await world();
    const { _token } = await grant("Read");
    for (const text of [_token, _token.slice(0, -1), _token.replace("ver=1&", "ver=1.0&")])
        for (const isEncoded of [true, false])
            assert.equal((await callWith(server, text, { path: `/${container.url}`, isEncoded })).status, 200);
    for (const text of [
        _token.slice(0, -2),
        _token.replace("type=", "Type="),
        _token.replace(/sig=./, (found) => `sig=${found.at(-1) === "A" ? "B" : "A"}`),
        `${_token.slice(0, -1)}A;`,
    ])
        errorAnswer(await callWith(server, text, { path: `/${container.url}` }), 401, "Unauthorized", {
            substatus: text.startsWith("Type") ? 5001 : undefined,
        });
});

test("a token dies with its permission, and when that grants less", async () => {
    const { container, user, grant } = await world();
    const path = `/${container.url}`;
    const permission = await grant("All");
    const { _token } = permission;
    assert.equal((await callWith(server, _token, { path })).status, 200);
    // Sent again as it is, or with another name: nothing is lost.
    await user.permissions.upsert(permission);
    await user.permission(permission.id).replace({ ...permission, id: "renamed" });
    assert.equal((await callWith(server, _token, { path })).status, 200);
    await user.permission("renamed").replace({ ...permission, id: "renamed", permissionMode: "Read" });
    errorAnswer(await callWith(server, _token, { path }), 403, "Forbidden", FORBIDDEN);
    const { resource: now } = await user.permission("renamed").read();
    assert.equal((await callWith(server, now._token, { path })).status, 200);
    await user.permission("renamed").delete();
    errorAnswer(await callWith(server, now._token, { path }), 403, "Forbidden", FORBIDDEN);
});

test("a token is good until it expires", async () => {
    const { container, user } = await world();
    const path = `/dbs/${container.database.id}/users/${user.id}/permissions`;
    const body = { id: "p", permissionMode: "Read", resource: container.url };
    const headers = { "x-ms-documentdb-expiry-seconds": "10" };
    const made = await call(server, { method: "POST", path, body, headers });
    const begun = Date.now();
    for (;;) {
        const answer = await callWith(server, made.json._token, { path: `/${container.url}` });
        if (answer.status !== 200) {
            errorAnswer(answer, 403, "Forbidden", {
                message: /not valid at the current time.*token start time: .* GMT, token expiry time: .* GMT/,
            });
            break;
        }
        assert.ok(Date.now() - begun < 60_000, "the token should have expired");
        await new Promise((resolve) => setTimeout(resolve, 500));
    }
    assert.ok(Date.now() - begun >= 8_000, "the token has expired too early");
});

test("a recreated container is opened by its name, not by its old id", async () => {
    const { container, grant, rids } = await world();
    const byName = await grant("Read");
    const byRid = await grant("Read", rids);
    await container.delete();
    await newContainer(container.database, undefined, { id: container.id });
    assert.equal((await callWith(server, byName._token, { path: `/${container.url}` })).status, 200);
    errorAnswer(await callWith(server, byRid._token, { path: `/${container.url}` }), 403, "Forbidden", FORBIDDEN);
    errorAnswer(await callWith(server, byRid._token, { path: `/${rids}` }), 404, "NotFound");
});

test("two authorization headers are refused", async () => {
    const { container, grant } = await world();
    const { _token } = await grant("Read");
    const answer = await send(server.endpoint, {
        path: `/${container.url}`,
        headers: ["authorization", _token, "authorization", _token, "host", "localhost"],
    });
    assert.equal(answer.status, 400);
});
