// The index as clients see it: what is in it, what it costs, and how a new policy takes effect.
import assert from "node:assert/strict";
import test from "node:test";

import { indexing, paths } from "./lib/definition.mjs";
import { SIZES, callItems, listAll, newContainer, ownContainer, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer();
const { database } = await clientOf(server).databases.create({ id: unique("indexing") });

const PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";

async function progress(container) {
    const { headers } = await container.read({ populateQuotaInfo: true });
    const text = headers[PROGRESS];
    assert.match(text, /^\d+$/);
    assert.ok(Number(text) <= 100, text);
    return Number(text);
}

test("a directive is Default, Include or Exclude, in any case", async () => {
    const container = await newContainer(database);
    const send = (id, directive) =>
        callItems(server, container, {
            method: "POST",
            key: "p",
            body: { id, pk: "p" },
            headers: { "x-ms-indexing-directive": directive },
        });
    for (const word of ["Default", "include", "EXCLUDE"]) assert.equal((await send(word, word)).status, 201);
    const refused = await send("other", "Lazy");
    assert.equal(refused.status, 400);
    assert.match(refused.text, /x-ms-indexing-directive is 'Lazy'/);
    assert.equal((await callItems(server, container, { id: "other", key: "p" })).status, 404);
    assert.equal((await callItems(server, container, { id: "EXCLUDE", key: "p" })).status, 200);
});

test("indexing is automatic whatever the policy says, and only items that ask for it are left out", async () => {
    for (const size of SIZES) {
        const container = await newContainer(database, size, indexing({ automatic: false }));
        const send = async (id, directive, method = "POST") => {
            const headers = directive ? { "x-ms-indexing-directive": directive } : {};
            const options = { method, key: "p", body: { id, pk: "p", n: id.length }, headers };
            if (method === "PUT") options.id = id;
            assert.ok((await callItems(server, container, options)).status < 300);
        };
        const found = async (query) => (await container.items.query(query).fetchAll()).resources.sort();
        await send("a");
        await send("b", "Include");
        await send("c", "Default");
        await send("d", "Exclude");
        for (const end of ["", " WHERE c.n = 1", " WHERE c.n * 2 = 2", " ORDER BY c.n"])
            assert.deepEqual(await found(`SELECT VALUE c.id FROM c${end}`), ["a", "b", "c"], end);
        assert.deepEqual(await found("SELECT VALUE COUNT(1) FROM c"), [3]);
        await send("a", "Exclude", "PUT");
        await send("d", undefined, "PUT");
        assert.deepEqual(await found("SELECT VALUE c.id FROM c WHERE c.n = 1"), ["b", "c", "d"]);
        assert.equal((await listAll(server, container)).length, 4, "a list has them all");
    }
});

test("while a policy takes effect, writes and queries go on and are right", async (t) => {
    const { server: own, container } = await ownContainer(t, SIZES[0]);
    const items = new Map();
    const write = async (id, n) => {
        items.set(id, n);
        await container.items.upsert({ id: `${id}`, pk: `p${id % 5}`, n, m: n % 7, place: { type: "Point", coordinates: [n % 90, 0] } });
    };
    for (let i = 0; i < 6000; i += 100) {
        const operations = Array.from({ length: 100 }, (_, k) => {
            items.set(i + k, k);
            const resourceBody = { id: `${i + k}`, pk: `p${(i + k) % 5}`, n: k, m: k % 7, place: { type: "Point", coordinates: [k % 90, 0] } };
            return { operationType: "Create", resourceBody };
        });
        for (const { statusCode } of await container.items.bulk(operations)) assert.equal(statusCode, 201);
    }
    const ask = async (query) => (await container.items.query(query, { maxItemCount: -1 }).fetchAll()).resources;
    const count = (isWanted) => [...items.values()].filter(isWanted).length;
    const check = async () => {
        const near = "ST_DISTANCE(c.place, {'type': 'Point', 'coordinates': [5, 0]}) < 1000";
        assert.deepEqual(await ask("SELECT VALUE COUNT(1) FROM c WHERE c.n = 5"), [count((n) => n === 5)]);
        assert.deepEqual(await ask("SELECT VALUE COUNT(1) FROM c WHERE c.m = 3 AND c.n > 50"), [count((n) => n % 7 === 3 && n > 50)]);
        assert.deepEqual(await ask(`SELECT VALUE COUNT(1) FROM c WHERE ${near}`), [count((n) => n % 90 === 5)]);
        const some = await ask("SELECT VALUE c.n FROM c WHERE c.n > 95 AND c.pk = 'p1'");
        assert.deepEqual(some.sort(), [...items].filter(([id, n]) => id % 5 === 1 && n > 95).map(([, n]) => n).sort());
    };
    const composite = [[{ path: "/m" }, { path: "/n" }]];
    const spatial = [{ path: "/place/?", types: ["Point"] }];
    for (const policy of [
        indexing({ includedPaths: paths("/n/?"), excludedPaths: paths("/*") }),
        indexing({ compositeIndexes: composite, spatialIndexes: spatial }),
        { indexingPolicy: { indexingMode: "none", automatic: false } },
        indexing({ excludedPaths: paths("/m/?"), spatialIndexes: spatial }),
    ]) {
        const { resource } = await container.read();
        await container.replace({ ...resource, ...policy });
        const seen = [];
        for (let rounds = 0; seen.at(-1) !== 100 || rounds < 3; rounds++) {
            seen.push(await progress(container));
            await write(Math.floor(Math.random() * 6100), Math.floor(Math.random() * 100));
            await check();
        }
        assert.deepEqual(seen, [...seen].sort((a, b) => a - b), "progress goes forward");
    }
    await own.stop();
    const { status, stdout } = run(["check", "--data", own.data]);
    assert.equal(status, 0, stdout);
    await own.start();
});

test("what is indexed costs, and what is not does not", async () => {
    const container = await newContainer(database);
    const few = { id: "few", pk: "p" };
    const many = { ...few, id: "many", ...Object.fromEntries([...Array(20).keys()].map((i) => [`n${i}`, i])) };
    const charge = async (body, directive = "Default") => {
        const answer = await callItems(server, container, {
            method: "POST",
            key: "p",
            body,
            headers: { "x-ms-indexing-directive": directive },
        });
        assert.equal(answer.status, 201, answer.text);
        return Number(answer.headers["x-ms-request-charge"]);
    };
    const base = await charge(few);
    assert.equal((await charge(many)).toFixed(2), (base + 20 * 0.2).toFixed(2));
    assert.equal(await charge({ ...many, id: "excluded" }, "Exclude"), base);
});

test("without a change of the policy the index is complete", async () => {
    const container = await newContainer(database);
    assert.equal(await progress(container), 100);
    await container.items.create({ id: "a", pk: "p" });
    assert.equal(await progress(container), 100);
    const { headers } = await container.read();
    assert.equal(headers[PROGRESS], undefined);
});

for (const size of SIZES)
    test(`a new policy takes effect in ${size.partitions} partitions, over a restart too`, async (t) => {
        const { server: own, container } = await ownContainer(t, size);
        for (let i = 0; i < 2000; i += 100) {
            const operations = Array.from({ length: 100 }, (_, k) => ({
                operationType: "Create",
                resourceBody: { id: `${i + k}`, pk: `p${k % 10}`, n: k, u: `${i}-${k}` },
            }));
            for (const response of await container.items.bulk(operations))
                assert.equal(response.statusCode, 201);
        }
        const policies = [
            indexing({ includedPaths: paths("/n/?"), excludedPaths: paths("/*") }),
            { indexingPolicy: { indexingMode: "none", automatic: false } },
            indexing({ includedPaths: paths("/*"), excludedPaths: paths("/n/?") }),
        ];
        for (const policy of policies) {
            const { resource } = await container.read();
            await container.replace({ ...resource, ...policy });
            await until(async () => (await progress(container)) === 100);
        }
        const { resource } = await container.read();
        await container.replace({ ...resource, ...indexing({}) });
        await own.restart(); // perhaps in the middle
        const again = clientOf(own).database(container.database.id).container(container.id);
        await until(async () => (await progress(again)) === 100);
        await own.stop();
        const { status, stdout } = run(["check", "--data", own.data]);
        assert.equal(status, 0, stdout);
        assert.match(stdout, /: everything agrees/);
        await own.start();
    });
