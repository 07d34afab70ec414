// Time to live: what has expired is invisible at once, everywhere, and is taken away later.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { refused } from "./lib/check.mjs";
import {
    listAll,
    newContainer,
    ownContainer,
    queryAll,
    sameItems,
    SIZES,
    storedCount,
    until,
} from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const { database } = await clientOf(server).databases.create({ id: "ttl" });

const gone = (container, id, pk) => async () => (await container.item(id, pk).read()).statusCode === 404;

/** Waits for the moment from which on an item has expired, as its own `_ts` tells. */
async function expired({ _ts }, ttl_s) {
    const wait_ms = (_ts + ttl_s) * 1000 - Date.now();
    if (wait_ms > 0) await new Promise((resolve) => setTimeout(resolve, wait_ms + 20));
}

// Most of this is waiting, so all of it waits together.
describe("time to live", { concurrency: true }, () => {
    function onEach(name, work) {
        for (const size of SIZES) test(`${name} (${size.partitions} partitions)`, (t) => work(size, t));
    }

    onEach("an item with a ttl of a second is gone everywhere when its time is over", async (size) => {
        const container = await newContainer(database, size, { defaultTtl: -1 });
        const keys = ["a", "b", "c", "d"];
        const made = [];
        for (const pk of keys) {
            await container.items.create({ id: "stays", pk });
            made.push((await container.items.create({ id: "goes", pk, ttl: 1 })).resource);
        }
        for (const resource of made) await expired(resource, 1);
        const rest = keys.map((pk) => ({ id: "stays", pk }));
        sameItems(await listAll(server, container), rest);
        for (const pk of keys) {
            const item = container.item("goes", pk);
            assert.equal((await item.read()).statusCode, 404);
            sameItems(await listAll(server, container, { key: pk }), [{ id: "stays", pk }]);
        }
        assert.deepEqual(await queryAll(server, container, "SELECT VALUE COUNT(1) FROM c"), [rest.length]);
        assert.deepEqual(
            await queryAll(server, container, "SELECT VALUE c.id FROM c WHERE c.id = 'goes'"),
            [],
        );
        const [a, b, c, d] = keys;
        await refused(container.item("goes", a).replace({ id: "goes", pk: a }), 404);
        await refused(container.item("goes", a).patch([{ op: "set", path: "/x", value: 1 }]), 404);
        await refused(container.item("goes", a).delete(), 404);
        const { result } = await container.items.batch([{ operationType: "Read", id: "goes" }], a);
        assert.equal(result[0].statusCode, 404);

        const created = await container.items.create({ id: "goes", pk: a, n: 1 });
        assert.equal(created.statusCode, 201);
        assert.notEqual(created.resource._rid, made[0]._rid, "it is a new item");
        assert.equal((await container.items.upsert({ id: "goes", pk: b })).statusCode, 201);
        const batch = await container.items.batch(
            [{ operationType: "Create", resourceBody: { id: "goes", pk: c } }],
            c,
        );
        assert.equal(batch.code, 200);
        const renamed = await container.item("stays", d).replace({ id: "goes", pk: d });
        assert.equal(renamed.statusCode, 200);
    });

    onEach("the container's default is for items that say nothing", async (size) => {
        const container = await newContainer(database, size, { defaultTtl: 1 });
        const { resource } = await container.items.create({ id: "default", pk: "p" });
        await container.items.create({ id: "never", pk: "p", ttl: -1 });
        await container.items.create({ id: "later", pk: "p", ttl: 1000 });
        await refused(container.items.create({ id: "null", pk: "p", ttl: null }), 400, { message: /'ttl'/ });
        await expired(resource, 2);
        sameItems(await listAll(server, container), [
            { id: "never", pk: "p", ttl: -1 },
            { id: "later", pk: "p", ttl: 1000 },
        ]);
    });

    onEach("without a default nothing expires, whatever items say", async (size) => {
        const container = await newContainer(database, size);
        const { resource } = await container.items.create({ id: "x", pk: "p", ttl: 1 });
        await expired(resource, 2);
        assert.equal((await container.item("x", "p").read()).resource.ttl, 1);
        // It does as soon as the container lets it.
        const { resource: definition } = await container.read();
        await container.replace({ ...definition, defaultTtl: -1 });
        assert.equal((await container.item("x", "p").read()).statusCode, 404);
        await until(async () => (await storedCount(server, container)) === 0);
    });

    onEach("a write begins the time again", async (size) => {
        const container = await newContainer(database, size, { defaultTtl: -1 });
        const item = container.item("x", "p");
        const { resource: first } = await container.items.create({ id: "x", pk: "p", n: 0, ttl: 3 });
        let last = first;
        while (last._ts < first._ts + 4) {
            const { resource } = await item.patch([{ op: "incr", path: "/n", value: 1 }]);
            last = resource;
            await new Promise((resolve) => setTimeout(resolve, 300));
        }
        assert.equal((await item.read()).statusCode, 200, "it is older than its ttl by now");
        assert.equal(last._rid, first._rid);
        await item.patch([{ op: "remove", path: "/ttl" }]);
        await expired(last, 4);
        assert.equal((await item.read()).statusCode, 200);
    });

    onEach("a change of the default counts for what is there", async (size) => {
        const container = await newContainer(database, size, { defaultTtl: 1000 });
        const items = Array.from({ length: 40 }, (_, i) => ({ id: `i${i}`, pk: `k${i % 7}` }));
        let last;
        for (const item of items) last = (await container.items.create(item)).resource;
        const { resource: definition } = await container.read();
        await container.replace({ ...definition, defaultTtl: 1 });
        await expired(last, 1);
        assert.deepEqual(await listAll(server, container), []);
        await until(async () => (await storedCount(server, container)) === 0);
        const { defaultTtl, ...without } = (await container.read()).resource;
        assert.equal(defaultTtl, 1);
        await container.replace(without);
        const { resource } = await container.items.create({ id: "x", pk: "p" });
        await expired(resource, 2);
        assert.equal((await listAll(server, container)).length, 1);
    });

    onEach("what has expired is taken away in the background, also after a restart", async (size, t) => {
        const { server: own, container } = await ownContainer(t, size, { defaultTtl: -1 });
        const operations = Array.from({ length: 600 }, (_, i) => ({
            operationType: "Create",
            resourceBody: { id: `i${i}`, pk: `k${i % 11}`, ...(i % 3 !== 0 && { ttl: 1 }) },
        }));
        for (let i = 0; i < 600; i += 100) await container.items.bulk(operations.slice(i, i + 100));
        await until(async () => (await storedCount(own, container)) === 200);
        assert.equal((await listAll(own, container)).length, 200);

        const { resource } = await container.items.create({ id: "late", pk: "k1", ttl: 1 });
        await own.kill();
        await expired(resource, 1);
        await own.start();
        assert.equal((await listAll(own, container)).length, 200);
        await until(async () => (await storedCount(own, container)) === 200);
        await own.restart();
        assert.equal(await storedCount(own, container), 200);
        assert.equal((await listAll(own, container)).length, 200);
    });

    onEach("an item that expires while it is written to over and over is made again", async (size) => {
        const container = await newContainer(database, size, { defaultTtl: -1 });
        const lane = async (pk) => {
            const rids = new Set();
            const end = Date.now() + 2500;
            while (Date.now() < end) {
                const response = await container.items
                    .create({ id: "x", pk, ttl: 1 })
                    .catch(({ code }) => ({ code }));
                if (response.resource) {
                    assert.ok(!rids.has(response.resource._rid), "a resource id comes once");
                    rids.add(response.resource._rid);
                } else {
                    assert.equal(response.code, 409);
                }
            }
            assert.ok(rids.size >= 2, `${rids.size} items`);
            await until(gone(container, "x", pk));
        };
        await Promise.all(["a", "b", "c"].map(lane));
        await until(async () => (await storedCount(server, container)) === 0);
    });
});
