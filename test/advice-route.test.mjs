// Advice about a container's partition key from its own server: /_orrery/.../advice.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { SIZES, fill, newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, sharedServer } from "./lib/server.mjs";
import { call, callWith, unique } from "./lib/wire.mjs";

const READ_ONLY = Buffer.from("only to look at").toString("base64");
const server = await sharedServer({ args: ["--durability", "relaxed", "--no-rate-limit", "--read-only-key", READ_ONLY] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: unique("advice") });

const linkOf = (container) => `dbs/${container.database.id}/colls/${container.id}`;

function ask(link, { key = server.key, parameters = "", ...more } = {}) {
    return call({ endpoint: server.endpoint, key }, { path: `/_orrery/${link}/advice${parameters}`, type: "colls", link, ...more });
}

/** Half of all items have one value of the key; "user" would be better. */
async function withHotKey(size) {
    const container = await newContainer(database, size);
    await fill(container, Array.from({ length: 1500 }, (_, i) => ({ id: `${i}`, pk: i % 2 ? "contoso" : `t${i % 40}`, user: `u${(i * 7919) % 499}` })));
    for (let i = 0; i < 3; i++) await container.items.query({ query: "SELECT * FROM c WHERE c.user = @u", parameters: [{ name: "@u", value: `u${i}` }] }).fetchAll();
    return container;
}

test("it is what `orrery advise` says of the same container", async () => {
    for (const size of SIZES) {
        const container = await withHotKey(size);
        const answer = await ask(linkOf(container));
        assert.equal(answer.status, 200, answer.text);
        const advice = answer.json;
        const { status, stdout, stderr } = run(["advise", "--endpoint", server.endpoint, "--database", database.id, "--container", container.id, "--json"]);
        assert.equal(status, 0, stderr);
        const told = JSON.parse(stdout);
        assert.equal(advice.conclusion, told.conclusion);
        assert.equal(advice.sample.items, 1500);
        // They see the same items in another order, so that keys of nearly the same score may change places.
        assert.deepEqual(advice.keys.map(({ key }) => key).sort(), told.keys.map(({ key }) => key).sort());
        assert.equal(advice.keys[0].key, told.keys[0].key);
        for (const key of advice.keys) {
            const other = told.keys.find((one) => one.key === key.key);
            assert.ok(Math.abs(key.score - other.score) < 1, `${key.key}: ${key.score} and ${other.score}`);
            for (const member of ["acceptable", "values", "largestShare", "storageSkew", "storage", "current"])
                assert.deepEqual(key[member], other[member], `${key.key} ${member}`);
        }
        const current = advice.keys.find((key) => key.current);
        assert.equal(current.key, "/pk");
        assert.equal(current.acceptable, false);
        assert.ok(current.findings.some(({ code, text }) => code === "hot-key" && text.includes("contoso")), JSON.stringify(current.findings));
        assert.ok(advice.keys[0].queries.onePartitionShare > current.queries.onePartitionShare);
        assert.ok(current.writes.every((window) => window.length === advice.partitions));
        assert.equal(advice.recorded.executions, 3);
        assert.equal(advice.allKeys, true);
    }
});

test("items with very many properties take a bounded time", async () => {
    const container = await newContainer(database);
    const wide = (i) => Object.fromEntries(Array.from({ length: 400 }, (_, k) => [`p${k}`, `${(i * 7919) % (k + 2)}`]));
    await fill(container, Array.from({ length: 600 }, (_, i) => ({ id: `${i}`, pk: `k${i % 50}`, ...wide(i) })));
    const { status, json, text } = await ask(linkOf(container));
    assert.equal(status, 200, text.slice(0, 200));
    assert.ok(json.keys.length > 3 && json.keys.length <= 120);
});

test("there is one at a time, and the next one is answered", async () => {
    const container = await withHotKey(SIZES[0]);
    const link = linkOf(container);
    await Promise.allSettled(Array.from({ length: 8 }, async () => {
        const answer = await ask(link);
        assert.ok([200, 429].includes(answer.status), answer.text);
        if (answer.status === 429) assert.match(answer.text, /one at a time/);
        return answer;
    })).then((all) => assert.ok(all.every(({ status }) => status === "fulfilled"), JSON.stringify(all)));
    for (let i = 0; i < 50; i++) {
        const { status } = await ask(link);
        if (status === 200) return;
    }
    assert.fail("the server never makes another one");
});

test("without a key, with any token, or from another page nothing is told", async () => {
    const container = await newContainer(database);
    const link = linkOf(container);
    const path = `/_orrery/${link}/advice`;
    errorAnswer(await ask(link), 400, "BadRequest", { message: /no items to learn from/ });
    await container.items.create({ id: "1", pk: "a" });
    assert.equal((await ask(link, { key: READ_ONLY })).status, 200);
    errorAnswer(await callWith(server, undefined, { path }), 401, "Unauthorized", { substatus: 5000 });
    errorAnswer(await ask(link, { key: Buffer.from("wrong").toString("base64") }), 401, "Unauthorized");
    errorAnswer(await ask(link, { headers: { origin: "https://evil.example" } }), 403, "Forbidden");
    errorAnswer(await ask(`dbs/${database.id}/colls/none`), 404, "NotFound", { message: /none/ });
    errorAnswer(await ask(link, { parameters: "?sample=1" }), 400, "BadRequest", { message: /from 10 to 20000/ });
    errorAnswer(await ask(link, { method: "POST" }), 405, "MethodNotAllowed");
    const { user } = await database.users.create({ id: unique("u") });
    const { resource } = await user.permissions.create({ id: "whole", permissionMode: "All", resource: link });
    errorAnswer(await callWith(server, resource._token, { path }), 403, "Forbidden");
});
