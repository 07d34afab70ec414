// Which clients are let in, and with which signature.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { DEVELOPMENT_KEY, run, sharedServer, startServer, temporaryFolder } from "./lib/server.mjs";
import { authorization, call, send, signature, signed, unique } from "./lib/wire.mjs";

const newKey = () => randomBytes(64).toString("base64");
const keys = {
    primary: newKey(),
    secondary: newKey(),
    readOnly: newKey(),
    secondaryReadOnly: newKey(),
};
const server = await sharedServer({
    key: keys.primary,
    args: [
        "--secondary-key",
        keys.secondary,
        "--read-only-key",
        keys.readOnly,
        "--secondary-read-only-key",
        keys.secondaryReadOnly,
    ],
});

const created = await clientOf(server).databases.create({ id: "auth Db" });
const database = created.resource;
const { resource: container } = await created.database.containers.create({
    id: "Öl & Co",
    partitionKey: "/pk",
});

// --- Keys

for (const name of ["primary", "secondary"]) {
    test(`the ${name} key may do everything`, async () => {
        const client = clientOf(server, { key: keys[name] });
        const { database: own } = await client.databases.create({ id: unique("own") });
        const { container: c } = await own.containers.create({ id: "c", partitionKey: "/pk" });
        const { resource } = await c.read();
        await c.replace({ ...resource, defaultTtl: 60 });
        const { resource: offer } = await c.readOffer();
        await client.offer(offer.id).replace({ ...offer, content: { offerThroughput: 500 } });
        await c.delete();
        await own.delete();
    });
}

for (const name of ["readOnly", "secondaryReadOnly"]) {
    test(`the ${name} key reads, lists and queries, but changes nothing`, async () => {
        const client = clientOf(server, { key: keys[name] });
        const own = client.database(database.id);
        const c = own.container(container.id);
        assert.equal((await own.read()).resource.id, database.id);
        assert.equal((await c.read()).resource.id, container.id);
        assert.equal((await client.databases.readAll().fetchAll()).resources.length, 1);
        assert.equal((await c.readPartitionKeyRanges().fetchAll()).resources.length, 1);
        const found = await own.containers
            .query({
                query: "SELECT * FROM r WHERE r.id = @id",
                parameters: [{ name: "@id", value: container.id }],
            })
            .fetchAll();
        assert.equal(found.resources.length, 1);
        const { resource: offer } = await c.readOffer();

        const message = /read-only key/;
        await refused(client.databases.create({ id: unique("no") }), 401, { message });
        await refused(own.containers.create({ id: "no", partitionKey: "/pk" }), 401, { message });
        await refused(c.replace({ ...container, defaultTtl: 60 }), 401, { message });
        await refused(client.offer(offer.id).replace(offer), 401, { message });
        await refused(c.delete(), 401, { message });
        await refused(own.delete(), 401, { message });
        assert.deepEqual((await c.read()).resource, container);
    });
}

test("the account document's answer says whether the key may write, and nothing of that to others", async () => {
    const told = async (headers) => (await send(server.endpoint, { path: "/", headers })).headers["x-orrery-access"];
    for (const [name, access] of [
        ["primary", "write"],
        ["secondary", "write"],
        ["readOnly", "read"],
        ["secondaryReadOnly", "read"],
    ])
        assert.equal(await told(signed({ key: keys[name], path: "/" })), access, name);
    assert.equal(await told({}), undefined);
    const { user } = await created.database.users.create({ id: unique("user") });
    const resource = `dbs/${database.id}/colls/${container.id}`;
    const { resource: permission } = await user.permissions.create({ id: "p", permissionMode: "All", resource });
    const answer = await send(server.endpoint, {
        path: "/",
        headers: { authorization: encodeURIComponent(permission._token), "x-ms-date": new Date().toUTCString() },
    });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["x-orrery-access"], undefined, "what a token may do depends on the resource");
});

test("a wrong key is refused with the text that the server signed", async () => {
    const error = await refused(clientOf(server, { key: newKey() }).databases.readAll().fetchAll(), 401);
    assert.match(
        error.message,
        /Server used the following payload to sign: 'get\\n\\n\\n[a-z]{3}, .* gmt\\n\\n'/,
    );

    const path = "/dbs/auth%20Db/colls/x";
    const date = new Date().toUTCString();
    const headers = signed({ key: newKey(), path, date });
    const answer = await send(server.endpoint, { path, headers });
    const payload = `'get\\ncolls\\ndbs/auth Db/colls/x\\n${date.toLowerCase()}\\n\\n'`;
    errorAnswer(answer, 401, "Unauthorized");
    assert.ok(answer.json.message.includes(payload), answer.json.message);
});

test("the development key is refused when another one was given", () =>
    refused(clientOf(server, { key: DEVELOPMENT_KEY }).databases.readAll().fetchAll(), 401));

test("a signature for one path, method or type is not good for another", async () => {
    const good = { key: server.key, method: "GET", path: `/dbs/${database._rid}` };
    const rows = [
        { path: "/dbs" },
        { path: `/dbs/${database._rid}/colls` },
        { method: "DELETE" },
        { headers: signed({ ...good, type: "colls" }) },
    ];
    for (const row of rows) {
        const answer = await send(server.endpoint, { ...good, headers: signed(good), ...row });
        errorAnswer(answer, 401, "Unauthorized");
    }
    assert.equal((await send(server.endpoint, { ...good, headers: signed(good) })).status, 200);
});

// --- The header

const now = () => new Date().toUTCString();
const sig = () => signature({ key: server.key, method: "GET", type: "dbs", link: "", date: now() });
const HEADERS = [
    ["no authorization", undefined, 5000],
    ["an empty one", "", 5000],
    ["words", "let me in", 5001],
    ["a broken escape", "type%3dmaster%2", 5001],
    ["a missing part", encodeURIComponent("type=master&sig=x"), 5001],
    ["parts in another order", encodeURIComponent(`ver=1.0&type=master&sig=${sig()}`), 5001],
    ["another version", encodeURIComponent(`type=master&ver=9.0&sig=${sig()}`), 5001],
    ["another type", encodeURIComponent(`type=magic&ver=1.0&sig=${sig()}`), 5001],
    ["a signature that is not base64", encodeURIComponent("type=master&ver=1.0&sig=***"), 5001],
    ["a signature that is too short", encodeURIComponent("type=master&ver=1.0&sig=AAAA"), 5001],
    ["a signature that is too long", encodeURIComponent(`type=master&ver=1.0&sig=${"A".repeat(400)}`), 5001],
    ["a huge header", encodeURIComponent(`type=master&ver=1.0&sig=${"A".repeat(40_000)}`), 5001],
    ["a resource token", encodeURIComponent("type=resource&ver=1.0&sig=abc;def;"), 0],
    ["an identity token", "type=aad&ver=1.0&sig=eyJhbGciOiJub25lIn0.e30.", 5002],
    ["a basic login", "Basic dXNlcjpwYXNz", 5001],
];
for (const [what, header, substatus] of HEADERS) {
    test(`${what} does not get in`, async () => {
        const headers = { "x-ms-date": now() };
        if (header !== undefined) headers.authorization = header;
        const answer = await send(server.endpoint, { path: "/dbs", headers });
        errorAnswer(answer, 401, "Unauthorized", { substatus: substatus || undefined });
    });
}

test("the path of a resource that does not exist tells nothing without a key", async () => {
    for (const path of [`/dbs/${database._rid}`, "/dbs/missing", "/offers/AAAA"])
        errorAnswer(await send(server.endpoint, { path }), 401, "Unauthorized", { substatus: 5000 });
});

// --- The date

const minutes = (count) => new Date(Date.now() + count * 60_000).toUTCString();
for (const [offset, status] of [
    [-29, 200],
    [-14, 200],
    [14, 200],
    [-31, 403],
    [16, 403],
    [-1e6, 403],
]) {
    test(`a signature of ${offset} minutes from now gets ${status}`, async () => {
        const headers = signed({ key: server.key, path: "/dbs", date: minutes(offset) });
        const answer = await send(server.endpoint, { path: "/dbs", headers });
        if (status === 200) assert.equal(answer.status, 200, answer.text);
        else errorAnswer(answer, 403, "Forbidden", { message: /current server time: .* GMT/ });
    });
}

for (const date of ["yesterday", "2024-10-01T12:00:00Z", "Tue, 41 Oct 2024 12:00:00 GMT", "x".repeat(500)]) {
    test(`the date '${date.slice(0, 30)}' is refused`, async () => {
        const headers = signed({ key: server.key, path: "/dbs", date });
        errorAnswer(await send(server.endpoint, { path: "/dbs", headers }), 401, "Unauthorized", {
            message: /date/,
        });
    });
}

for (const date of ["Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 1601 00:00:00 GMT"]) {
    test(`the date '${date}' is refused without a key, and the server goes on`, async () => {
        const headers = signed({ key: newKey(), path: "/dbs", date });
        const answer = await send(server.endpoint, { path: "/dbs", headers });
        errorAnswer(answer, 403, "Forbidden", { message: /token expiry time: .* GMT/ });
        assert.equal((await call(server, { path: "/dbs" })).status, 200);
    });
}

test("a request without any date is refused", async () => {
    const { authorization: header } = signed({ key: server.key, path: "/dbs" });
    const answer = await send(server.endpoint, { path: "/dbs", headers: { authorization: header } });
    errorAnswer(answer, 401, "Unauthorized", { message: /x-ms-date/ });
});

// --- How other SDKs sign

test("a signature in lower-case escapes is accepted, as .NET sends it", async () => {
    const headers = signed({ key: server.key, path: "/dbs" });
    headers.authorization = headers.authorization.replace(/%[0-9A-F]{2}/g, (text) => text.toLowerCase());
    assert.equal((await send(server.endpoint, { path: "/dbs", headers })).status, 200);
});

test("a signature that is not escaped at all is accepted", async () => {
    const headers = signed({ key: server.key, path: "/dbs" });
    headers.authorization = decodeURIComponent(headers.authorization);
    assert.equal((await send(server.endpoint, { path: "/dbs", headers })).status, 200);
});

test("paths with a slash at the end are accepted, as Python sends them", async () => {
    const link = "dbs/auth Db/colls/Öl & Co";
    for (const [path, type, signedLink] of [
        ["/dbs/", "dbs", ""],
        ["/dbs/auth%20Db/", "dbs", "dbs/auth Db"],
        ["/dbs/auth%20Db/colls/", "colls", "dbs/auth Db"],
        ["//dbs/auth%20Db/colls/%C3%96l%20%26%20Co/pkranges/", "pkranges", link],
        ["/dbs/auth%20Db/colls/%c3%96l%20&%20Co/", "colls", link],
    ]) {
        const answer = await call(server, { path, type, link: Buffer.from(signedLink).toString() });
        assert.equal(answer.status, 200, `${path}: ${answer.text}`);
    }
});

test("a link may be signed as it stands in the path, with its escapes", async () => {
    const path = "/dbs/auth%20Db/colls/%C3%96l%20%26%20Co";
    const answer = await call(server, { path, type: "colls", link: path.slice(1) });
    assert.equal(answer.status, 200, answer.text);
});

test("a path of resource ids is signed with the lower-case id alone", async () => {
    const d = database._rid;
    const c = container._rid;
    const escaped = (rid) => encodeURIComponent(rid);
    for (const [path, type, link] of [
        [`/dbs/${d}`, "dbs", d],
        [`/dbs/${d}/colls`, "colls", d],
        [`/dbs/${d}/colls/${c}`, "colls", c],
        [`/dbs/${escaped(d)}/colls/${escaped(c)}`, "colls", c],
        [`/dbs/${d}/colls/${c}/pkranges`, "pkranges", c],
        [`/${container._self}`, "colls", c],
        [`/${container._self}pkranges/`, "pkranges", c],
    ]) {
        const answer = await call(server, { path, type, link: link.toLowerCase() });
        assert.equal(answer.status, 200, `${path}: ${answer.text}`);
    }
});

test("an offer's id is signed in lower case", async () => {
    const { resource: offer } = await clientOf(server)
        .database(database.id)
        .container(container.id)
        .readOffer();
    const path = `/offers/${offer._rid}`;
    const answer = await call(server, { path, type: "offers", link: offer._rid.toLowerCase() });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json._rid, offer._rid);
});

test("the Date header takes the place of x-ms-date", async () => {
    const date = now();
    const header = authorization({
        key: server.key,
        method: "GET",
        type: "dbs",
        link: "",
        date: "",
        plainDate: date,
    });
    const answer = await send(server.endpoint, { path: "/dbs", headers: { authorization: header, date } });
    assert.equal(answer.status, 200, answer.text);
});

// --- The development key

test("without a key the server takes the development key", async (t) => {
    const own = await startServer(t);
    assert.equal((await clientOf(own).databases.readAll().fetchAll()).resources.length, 0);
});

test("the development key is refused on addresses that others can reach", () => {
    const data = join(temporaryFolder(), "data");
    const rows = [
        [],
        ["--key", DEVELOPMENT_KEY],
        ["--key", newKey(), "--secondary-key", DEVELOPMENT_KEY],
        ["--key", newKey(), "--read-only-key", DEVELOPMENT_KEY],
    ];
    for (const args of rows) {
        const result = run(["serve", "--data", data, "--port", "0", "--host", "0.0.0.0", ...args]);
        assert.equal(result.status, 1);
        assert.match(result.stderr, /development key.*--allow-development-key/s);
    }
});

test("--allow-development-key accepts it there", async (t) => {
    const own = await startServer(t, { host: "0.0.0.0", args: ["--allow-development-key"] });
    assert.equal((await clientOf(own).databases.readAll().fetchAll()).resources.length, 0);
});

test("with a key of its own the server listens on every address", async (t) => {
    const own = await startServer(t, { host: "0.0.0.0", key: newKey() });
    assert.equal((await clientOf(own).databases.readAll().fetchAll()).resources.length, 0);
    await refused(clientOf(own, { key: DEVELOPMENT_KEY }).databases.readAll().fetchAll(), 401);
});
