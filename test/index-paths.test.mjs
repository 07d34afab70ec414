// The names of the properties that the index of a container has: /_orrery/.../paths.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { SIZES, fill, newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { call, callWith, unique } from "./lib/wire.mjs";

const READ_ONLY = Buffer.from("only to look at").toString("base64");
const server = await sharedServer({ args: ["--durability", "relaxed", "--read-only-key", READ_ONLY] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: unique("paths") });

const linkOf = (container) => `dbs/${container.database.id}/colls/${container.id}`;

function ask(link, { key = server.key, what = "paths", ...more } = {}) {
    return call({ endpoint: server.endpoint, key }, { path: `/_orrery/${link}/${what}`, type: "colls", link, ...more });
}

async function pathsOf(container, options) {
    const answer = await ask(linkOf(container), options);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
}

const ALWAYS = ["/_ts", "/id", "/pk"];

test("nested properties, array elements and names to quote are told, of all partitions", async () => {
    for (const size of SIZES) {
        const container = await newContainer(database, size);
        assert.deepEqual((await pathsOf(container)).paths, []);
        const items = Array.from({ length: 40 }, (_, i) => ({ id: `${i}`, pk: `k${i}`, total: i }));
        await fill(container, items);
        await container.items.create({ id: "x", pk: "x", address: { city: "a", "zip code": 1 }, tags: [{ name: "n" }] });
        await container.items.create({ id: "y", pk: "y", "first name": "b", 'say "hi"': null });
        const { paths, isComplete, database: db, container: coll } = await pathsOf(container);
        const rare = ["/address", "/address/city", '/address/"zip code"', "/tags", "/tags/[]", "/tags/[]/name", '/"first name"', '/"say \\"hi\\""'];
        assert.deepEqual(paths, [...ALWAYS, "/total", ...rare].sort());
        assert.ok(isComplete);
        assert.deepEqual([db, coll], [database.id, container.id]);
    }
});

test("it is what the index has: excluded paths, unindexed items and what was deleted are not there", async () => {
    const indexingPolicy = { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/secret/*" }] };
    const container = await newContainer(database, SIZES[0], { indexingPolicy });
    await container.items.create({ id: "1", pk: "a", secret: { word: 1 }, open: 1 });
    await container.items.create({ id: "2", pk: "a", never: 1 }, { indexingDirective: "Exclude" });
    await container.items.create({ id: "3", pk: "a", gone: { soon: 1 } });
    assert.deepEqual((await pathsOf(container)).paths, [...ALWAYS, "/gone", "/gone/soon", "/open"].sort());
    await container.item("3", "a").delete();
    assert.deepEqual((await pathsOf(container)).paths, [...ALWAYS, "/open"].sort());
});

test("5,000 properties are all told, and beyond the bound it says that there are more", async () => {
    const container = await newContainer(database, SIZES[0]);
    const wide = (id, from, count) => ({ id, pk: "p", ...Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${from + i}`, i])) });
    for (let i = 0; i < 5; i++) await container.items.create(wide(`${i}`, i * 1000, 1000));
    const all = await pathsOf(container);
    assert.equal(all.paths.length, 5000 + ALWAYS.length);
    assert.equal(new Set(all.paths).size, all.paths.length);
    assert.ok(all.isComplete);
    for (let i = 5; i < 12; i++) await container.items.create(wide(`${i}`, i * 1000, 1000));
    const some = await pathsOf(container);
    assert.ok(some.paths.length >= 9000 && some.paths.length < 10_000, `${some.paths.length}`);
    assert.equal(some.isComplete, false);
});

test("very long names do not make the answer long", async () => {
    const container = await newContainer(database, SIZES[0]);
    const names = Array.from({ length: 150 }, (_, i) => [`${i}-${"\u0001".repeat(5000)}`, 1]);
    for (let i = 0; i < 3; i++)
        await container.items.create({ id: `${i}`, pk: "p", ok: 1, ...Object.fromEntries(names.slice(i * 50, i * 50 + 50)) });
    const { paths, isComplete } = await pathsOf(container);
    assert.equal(isComplete, false);
    assert.ok(JSON.stringify(paths).length < 4 << 20);
});

test("without a key, from another page, or with a token for less than the container nothing is told", async () => {
    const container = await newContainer(database);
    await container.items.create({ id: "1", pk: "a", mine: 1 });
    await container.items.create({ id: "2", pk: "b", other: 1 });
    const link = linkOf(container);
    assert.deepEqual((await pathsOf(container, { key: READ_ONLY })).paths, [...ALWAYS, "/mine", "/other"].sort());
    errorAnswer(await callWith(server, undefined, { path: `/_orrery/${link}/paths` }), 401, "Unauthorized", { substatus: 5000 });
    errorAnswer(await ask(link, { key: Buffer.from("wrong").toString("base64") }), 401, "Unauthorized");
    errorAnswer(await ask(link, { headers: { origin: "https://evil.example" } }), 403, "Forbidden");
    errorAnswer(await ask(`dbs/${database.id}/colls/none`), 404, "NotFound", { message: /none/ });
    errorAnswer(await ask(link, { what: "paths?count=5" }), 400, "BadRequest", { message: /not a parameter/ });

    const { user } = await database.users.create({ id: unique("u") });
    const tokenFor = async (id, more) => (await user.permissions.create({ id, permissionMode: "Read", ...more })).resource._token;
    const path = `/_orrery/${link}/paths`;
    const whole = await callWith(server, await tokenFor("whole", { resource: link }), { path });
    assert.deepEqual(whole.json.paths, [...ALWAYS, "/mine", "/other"].sort());
    const headers = { "x-ms-documentdb-partitionkey": '["a"]' };
    const ofKey = await tokenFor("key", { resource: link, resourcePartitionKey: ["a"] });
    const ofItem = await tokenFor("item", { resource: `${link}/docs/1`, resourcePartitionKey: ["a"] });
    for (const token of [ofKey, ofItem]) errorAnswer(await callWith(server, token, { path, headers }), 403, "Forbidden");
    const another = await newContainer(database);
    errorAnswer(await callWith(server, await tokenFor("another", { resource: linkOf(another) }), { path }), 403, "Forbidden");
});
