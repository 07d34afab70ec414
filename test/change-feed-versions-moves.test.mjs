// The change feed of all versions and deletes while partitions are split and merged, and the server is restarted or
// killed: every operation on every item, in order.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import test from "node:test";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { CHAOS, cause, moved } from "./lib/chaos.mjs";
import { errorAnswer, ids } from "./lib/check.mjs";
import { times } from "./lib/definition.mjs";
import { VERSIONS, askFeed, byKey, checkChain, drainFeed, drainVersions, followVersions as follow, lsnOfEtag, pull, sessionOf, told } from "./lib/feed.mjs";
import { callItems, newContainer, ownContainer, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { rangesOf } from "./lib/splits.mjs";
import { checkFolder } from "./lib/writers.mjs";

const server = await sharedServer({ args: CHAOS });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "versions-moves" });

const { Continuation, Now } = ChangeFeedStartFrom;
const CRASHES = 4;
const ONE = { throughput: 400 };
const FOUR = { throughput: 21_000 };
const changeFeedPolicy = { retentionDuration: 10 };

/** A container that keeps all versions. */
const keeping = (size = ONE, more = {}) => newContainer(database, size, { changeFeedPolicy, ...more });

/** Reads all entries by hand. */
const versionsOf = (container, options, on = server) => drainVersions(on, container, options);

/** Splits the only range; the ids of its children. */
async function splitAll(container, on = server) {
    await moved(on, (await cause(on, container, "split", { range: "0", by: "hash" })).event);
    return (await rangesOf(container)).map(({ id }) => id);
}

/** Changes of 20 keys, each with its own sequence of operations. */
async function work(container, round, keys = 20) {
    for (let i = 0; i < keys; i++) {
        const pk = `k${i}`;
        await container.items.create({ id: `${round} a`, pk });
        await container.items.create({ id: `${round} b`, pk });
        await container.item(`${round} a`, pk).replace({ id: `${round} a`, pk, round });
        await container.item(`${round} b`, pk).delete();
    }
}
const sequence = (round) => [`create ${round} a`, `create ${round} b`, `replace ${round} a`, `delete ${round} b`];

test("after a split the children have what the parent's position did not, versions and deletes included", async () => {
    const container = await keeping();
    await work(container, 0);
    const { etag } = await versionsOf(container, { range: "0", etag: "*" });
    const iterator = follow(container, Now());
    await iterator.readNext();
    await work(container, 1);
    const before = await versionsOf(container, { range: "0", etag });
    const old = await versionsOf(container, { range: "0", etag: '"1"' });
    const children = await splitAll(container);
    assert.equal(children.length, 2);
    for (const [position, expected] of [
        [etag, before.items],
        ['"1"', old.items],
    ]) {
        const found = [];
        for (const range of children) found.push(...(await versionsOf(container, { range, etag: position, size: 7 })).items);
        assert.deepEqual(byKey(found), byKey(expected), `after ${position}`);
    }
    await work(container, 2);
    const found = [];
    for (const range of children) found.push(...(await versionsOf(container, { range, etag: before.etag, size: 7 })).items);
    for (const [pk, entries] of Object.entries(byKey(found))) {
        assert.deepEqual(told(entries), sequence(2), `${pk}: only what is new`);
        checkChain(entries);
    }
    assert.equal(found.length, 80);
    const { items } = await pull(iterator);
    for (const [pk, entries] of Object.entries(byKey(items))) {
        assert.deepEqual(told(entries), [...sequence(1), ...sequence(2)], `${pk}: the SDK`);
        checkChain(entries);
    }
    assert.equal(items.length, 160);
    errorAnswer(await askFeed(server, container, { range: "0", mode: VERSIONS, etag }), 410, "Gone", { substatus: 1002 });
});

test("after a merge the positions of both parents lose no version and no delete", async () => {
    const container = await keeping();
    const children = await splitAll(container);
    const ranges = await rangesOf(container);
    await work(container, 0);
    const positions = {};
    for (const range of children) positions[range] = (await versionsOf(container, { range, etag: "*" })).etag;
    await work(container, 1);
    // One of the parents gets far ahead of the other.
    const { range: ahead } = sessionOf((await container.items.upsert({ id: "counter", pk: "k3" })).headers["x-ms-session-token"]);
    for (let i = 0; i < 100; i++) await container.items.upsert({ id: "counter", pk: "k3", i });
    assert.ok(children.includes(ahead));
    await moved(server, (await cause(server, container, "merge", { ranges: children })).event);
    const [{ id: merged }] = await rangesOf(container);
    await work(container, 2);
    for (const parent of children) {
        const interval = ranges.find(({ id }) => id === parent);
        const { items } = await versionsOf(container, { range: merged, interval, etag: positions[parent], size: 9 });
        for (const [pk, entries] of Object.entries(byKey(items))) {
            const list = told(entries.filter(({ current, metadata }) => (metadata.id ?? current.id) !== "counter"));
            // Older ones may come again, but those after the position come all, and in order.
            assert.deepEqual(list.slice(-8), [...sequence(1), ...sequence(2)], `${pk} of range ${parent}`);
            if (pk === "k3") assert.equal(entries.length - list.length, 101, "the counter");
        }
    }
});

/**
 * A container of two ranges, one far ahead of the other, that begins to keep versions then; the positions of both at that time.
 * The newest change is `newest`: it matters whether the range's LSN is that of an item or of nothing that is left.
 */
async function keepingLater(newest) {
    const container = await newContainer(database, ONE);
    const children = await splitAll(container);
    const keys = {};
    for (let i = 0; i < 20; i++) {
        const { headers } = await container.items.create({ id: "old", pk: `k${i}` });
        (keys[sessionOf(headers["x-ms-session-token"]).range] ??= []).push(`k${i}`);
    }
    const [ahead, behind] = children;
    for (let n = 0; n < 100; n++) await container.items.upsert({ id: "old", pk: keys[ahead][0], n });
    const { resource: definition } = await container.read();
    await container.replace({ ...definition, changeFeedPolicy });
    const positions = {};
    for (const range of children) positions[range] = (await versionsOf(container, { range, etag: "*" })).etag;
    assert.ok(lsnOfEtag(positions[ahead]) > lsnOfEtag(positions[behind]) + 50, "the ranges stand at LSNs that are far apart");
    for (let i = 0; i < 20; i++) await container.items.create({ id: "new", pk: `k${i}` });
    await container.items.create({ id: "newest", pk: keys[ahead][0] });
    if (newest === "a delete") await container.item("newest", keys[ahead][0]).delete();
    return { container, ahead, behind, keys, positions };
}

for (const newest of ["an item", "a delete"]) {
    test(`what a range did not keep, the children of a split do not have either, and say so (${newest} is the newest)`, async () => {
        const { container, ahead, positions, keys } = await keepingLater(newest);
        const old = `"${lsnOfEtag(positions[ahead]) - 20}"`;
        const ask = (range, etag) => askFeed(server, container, { range, mode: VERSIONS, etag });
        const message = /You must read the change feed from within the retention period\./;
        errorAnswer(await ask(ahead, old), 400, "BadRequest", { message });
        const before = new Set((await rangesOf(container)).map(({ id }) => id));
        await moved(server, (await cause(server, container, "split", { range: ahead, by: "hash" })).event);
        const children = (await rangesOf(container)).filter(({ id }) => !before.has(id));
        assert.equal(children.length, 2);
        const found = [];
        for (const { id } of children) {
            errorAnswer(await ask(id, old), 400, "BadRequest", { message });
            errorAnswer(await ask(id, '"1"'), 400, "BadRequest", { message });
            found.push(...(await versionsOf(container, { range: id, etag: positions[ahead] })).items);
        }
        assert.deepEqual(Object.keys(byKey(found)).sort(), [...keys[ahead]].sort(), "from where it was kept on, all of it is there");
    });

    test(`positions of ranges that are far apart when keeping begins are good after a merge (${newest} is the newest)`, async () => {
        const { container, ahead, behind, keys, positions } = await keepingLater(newest);
        const ranges = await rangesOf(container);
        await moved(server, (await cause(server, container, "merge", { ranges: [ahead, behind] })).event);
        const [{ id: merged }] = await rangesOf(container);
        for (const parent of [ahead, behind]) {
            const interval = ranges.find(({ id }) => id === parent);
            const { items } = await versionsOf(container, { range: merged, interval, etag: positions[parent] });
            const made = items.filter(({ current }) => current.id === "new").map(({ current }) => current.pk);
            assert.deepEqual(made.sort(), [...keys[parent]].sort(), `range ${parent} after ${positions[parent]}`);
        }
    });
}

test("entries are the same after a restart and a crash, and the next write follows", async (t) => {
    const { server: own, container } = await ownContainer(t, ONE, { changeFeedPolicy }, []);
    await work(container, 0);
    const { token } = await pull(follow(container, Now()));
    await work(container, 1);
    const state = () => versionsOf(container, { range: "0", etag: '"1"', size: 11 }, own);
    const before = await state();
    assert.equal(before.items.length, 160);
    await own.restart();
    assert.deepEqual((await state()).items, before.items, "after a restart");
    await own.kill();
    await own.start();
    assert.deepEqual((await state()).items, before.items, "after a crash");
    const later = clientOf(own).database(container.database.id).container(container.id);
    await later.item("1 a", "k0").delete();
    const { items } = await pull(follow(later, Continuation(token)));
    assert.equal(items.length, 81);
    assert.deepEqual(told(items).at(-1), "delete 1 a");
    assert.equal(items.at(-1).metadata.lsn, before.lsn + 1);
    checkChain(byKey(items).k0);
    await own.stopWell();
    checkFolder(own);
});

test("expiry, deletes of a key and prefixes go on in the children of a split", async () => {
    const partitionKey = { paths: ["/pk", "/sub"], kind: "MultiHash", version: 2 };
    const container = await keeping(ONE, { partitionKey, defaultTtl: -1 });
    const iterators = { prefix: follow(container, Now(["a"])), all: follow(container, Now()), other: follow(container, Now(["b", 1])) };
    for (const iterator of Object.values(iterators)) assert.equal((await iterator.readNext()).statusCode, 304);
    for (let i = 0; i < 12; i++) {
        await container.items.create({ id: `a${i}`, pk: "a", sub: i % 4 });
        await container.items.create({ id: `b${i}`, pk: "b", sub: i % 4, ...(i % 2 === 0 && { ttl: 1 }) });
    }
    const children = await splitAll(container);
    assert.equal(children.length, 2);
    await container.deleteAllItemsForPartitionKey(["a", 3]);
    const count = (list, pk, operation) => list.filter((entry) => entry.startsWith(`${operation} ${pk}`)).length;
    const found = { prefix: [], all: [], other: [] };
    await until(async () => {
        for (const [name, iterator] of Object.entries(iterators)) found[name].push(...told((await pull(iterator)).items));
        return count(found.all, "b", "delete") === 6 && count(found.all, "a", "delete") === 3;
    });
    assert.deepEqual([count(found.all, "a", "create"), count(found.all, "b", "create")], [12, 12]);
    found.prefix.push(...told((await pull(iterators.prefix)).items));
    assert.deepEqual([...found.prefix].sort(), found.all.filter((entry) => / a/.test(entry)).sort(), "a prefix has the operations of its keys");
    assert.deepEqual(found.other, ["create b1", "create b5", "create b9"]);
});

test("after crashes every acknowledged operation is in both feeds, and no half of a batch", async (t) => {
    const { server: own, container } = await ownContainer(t, ONE, { changeFeedPolicy, defaultTtl: -1 }, ["--durability", "sync"]);
    const KEYS = 6;
    const acknowledged = times(KEYS, () => 0);
    let inDoubt = [];
    const write = async (k) => {
        const pk = `k${k}`;
        const agent = new Agent({ keepAlive: true });
        const headers = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
        try {
            for (;;) {
                const n = acknowledged[k] + 1;
                const body = [
                    { operationType: "Upsert", resourceBody: { id: "counter", pk, n } },
                    { operationType: "Create", resourceBody: { id: `entry ${n}`, pk, n } },
                    ...(n % 3 === 0 ? [{ operationType: "Delete", id: `entry ${n - 1}` }] : []),
                ];
                const answer = await callItems(own, container, { method: "POST", key: pk, headers, body: JSON.stringify(body), agent });
                assert.equal(answer.status, 200, answer.text);
                acknowledged[k] = n;
            }
        } catch (error) {
            if (error.code === "ERR_ASSERTION") throw error;
        } finally {
            agent.destroy();
        }
    };
    const expected = (k) => {
        const list = [];
        for (let n = 1; n <= acknowledged[k]; n++) {
            list.push(n === 1 ? "create counter" : "replace counter", `create entry ${n}`);
            if (n % 3 === 0) list.push(`delete entry ${n - 1}`);
        }
        return list;
    };
    for (let round = 0; round < CRASHES; round++) {
        const before = acknowledged.reduce((a, b) => a + b);
        const writing = Promise.all(times(KEYS, write));
        await until(() => acknowledged.reduce((a, b) => a + b) >= before + 30 + 17 * round, { every_ms: 1 });
        await own.kill();
        await writing;
        await own.start();
        const found = byKey((await versionsOf(container, { range: "0", etag: '"1"', size: 50 }, own)).items);
        const latest = (await drainFeed(own, container, { range: "0", size: 50 })).items;
        inDoubt = [];
        for (let k = 0; k < KEYS; k++) {
            const entries = told(found[`k${k}`] ?? []);
            // The write that was not answered may be there, but then all of it.
            if (entries.length > expected(k).length) {
                acknowledged[k]++;
                inDoubt.push(k);
            }
            assert.deepEqual(entries, expected(k), `round ${round}: k${k}`);
            checkChain(found[`k${k}`] ?? []);
            const living = times(acknowledged[k], (i) => i + 1).filter((n) => (n + 1) % 3 !== 0 || n === acknowledged[k]);
            const order = ids(latest.filter(({ pk }) => pk === `k${k}`));
            const names = [...living.slice(0, -1).map((n) => `entry ${n}`), "counter", `entry ${living.at(-1)}`];
            if (acknowledged[k] > 0) assert.deepEqual(order, names, `round ${round}: the latest versions of k${k}`);
        }
    }
    t.diagnostic(`${acknowledged.reduce((a, b) => a + b)} batches, ${inDoubt.length} in doubt at the end`);
    await own.stopWell();
    checkFolder(own);
});

test("readers follow every operation through a split and a merge", async () => {
    const container = await keeping();
    const KEYS = 12;
    const rounds = times(KEYS, () => 0);
    let isOver = false; // writers begin nothing more
    let isWritten = false; // and have ended what they had begun
    const write = async (lane) => {
        for (let i = lane; !isOver; i = (i + 4) % KEYS) {
            const pk = `k${i}`;
            const n = rounds[i] + 1;
            await container.items.create({ id: `${n}`, pk });
            await container.item(`${n}`, pk).replace({ id: `${n}`, pk, n });
            await container.item(`${n}`, pk).delete();
            rounds[i] = n;
        }
    };
    const iterator = follow(clientOf(server).database(database.id).container(container.id), Now(), 10);
    await iterator.readNext();
    const reading = (async () => {
        const seen = times(KEYS, () => 0); // how many operations of a key were seen without a gap
        for (;;) {
            const wasWritten = isWritten;
            const { items } = await pull(iterator);
            for (const [pk, entries] of Object.entries(byKey(items)))
                for (const { current, metadata } of entries) {
                    const k = Number(pk.slice(1));
                    const kind = ["create", "replace", "delete"].indexOf(metadata.operationType);
                    const at = (Number(metadata.id ?? current.id) - 1) * 3 + kind;
                    assert.ok(at <= seen[k], `${pk}: operation ${at} came when ${seen[k]} was expected`);
                    seen[k] = Math.max(seen[k], at + 1);
                }
            if (wasWritten && items.length === 0) return seen;
        }
    })();
    const writers = times(4, write);
    const more = async (count) => {
        const sum = () => rounds.reduce((a, b) => a + b);
        const before = sum();
        await until(() => sum() >= before + count);
    };
    const moves = async () => {
        await more(20);
        const children = await splitAll(container);
        await more(20);
        await moved(server, (await cause(server, container, "merge", { ranges: children })).event);
        await more(20);
    };
    await Promise.race([moves().finally(() => (isOver = true)), reading, ...writers]);
    isOver = true;
    await Promise.all(writers);
    isWritten = true;
    assert.deepEqual(await reading, rounds.map((n) => n * 3));
});

test("readers that follow writers see every operation of each key in order", async () => {
    const container = await keeping(FOUR);
    const iterator = follow(container, Now(), 10);
    await iterator.readNext();
    const KEYS = 8;
    const ROUNDS = 12;
    const expected = times(ROUNDS, (n) => ["create", "replace", "replace", "delete"].map((operation) => `${operation} ${n}`)).flat();
    let isOver = false;
    const reading = (async () => {
        const found = [];
        for (;;) {
            const wasOver = isOver;
            const { items } = await pull(iterator);
            found.push(...items);
            if (wasOver && items.length === 0) return byKey(found);
        }
    })();
    const write = async (k) => {
        const pk = `k${k}`;
        for (let n = 0; n < ROUNDS; n++) {
            await container.items.create({ id: `${n}`, pk });
            await container.items.upsert({ id: `${n}`, pk, n });
            await container.item(`${n}`, pk).patch([{ op: "set", path: "/p", value: n }]);
            await container.item(`${n}`, pk).delete();
        }
    };
    await Promise.all(times(KEYS, write));
    isOver = true;
    const found = await reading;
    assert.deepEqual(Object.keys(found).sort(), times(KEYS, (k) => `k${k}`));
    for (const [pk, entries] of Object.entries(found)) {
        assert.deepEqual(told(entries), expected, pk);
        checkChain(entries);
    }
});
