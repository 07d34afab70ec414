// Work in the background goes on where a partition has a new owner, and a node that joins soon has everything: rebuilds of
// the index, purges, expiry, copies of many small partitions; and the throughput of a database on several nodes.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { Engine, startCluster } from "./lib/cluster.mjs";
import { KEY, indexing, paths, times } from "./lib/definition.mjs";
import { fill, listAll, newContainer, pathOf, queryAll, sameItems, storedCount, until } from "./lib/items.mjs";
import { impatientClient, readsCost } from "./lib/load.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { runBeside } from "./lib/server.mjs";
import { layoutOf } from "./lib/splits.mjs";
import { call } from "./lib/wire.mjs";
import { checkFolder } from "./lib/writers.mjs";

const CATALOG = 1; // the number of the catalogue's space
const TWO = { throughput: 12_000 }; // partitions
const KEPT = 3000; // items
const PROPERTIES = 60; // of each that are indexed anew
const KEYS = 30; // of them
const PURGED = ["k0", "k1", "k2", "k3", "k4", "k5"];
const EXPIRING = 300;
const LIFE_S = 2;
const PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
const SEEDED_MS = 15_000;

let engine;

before(() => (engine = new Engine()));
after(() => engine.end());

async function startLive(t, options) {
    const cluster = await startCluster(t, { engine, ...options });
    await cluster.until((status) => status.nodes.filter(({ state }) => state === "live").length === cluster.nodes.length, "complete");
    return cluster;
}

const at = (node, { id, database }) => clientOf(node).database(database.id).container(id);

async function order(cluster, ...words) {
    const { status, stderr } = await runBeside(["cluster", ...words, "--endpoint", cluster.living[0].endpoint]);
    assert.equal(status, 0, stderr);
}

/** The spaces of a container, and the node that owns the first of them. */
async function placeOf(cluster, container) {
    const { ranges } = await layoutOf(cluster.nodes[0], container);
    const { spaces } = await cluster.status();
    const { owner } = spaces.find(({ id }) => id === ranges[0].space);
    return { owner: cluster.nodes.find(({ name }) => name === owner), spaces: ranges.map(({ space }) => space) };
}

const othersOf = (cluster, node) => cluster.nodes.filter((other) => other !== node);

/** Ways in which partitions get another owner while they work; what else has to be done in the end. */
const CHANGES = {
    move: async (cluster, { owner, spaces }) => {
        const [other] = othersOf(cluster, owner);
        for (const space of spaces) await order(cluster, "move", String(space), other.name);
    },
    drain: async (cluster, { owner }) => {
        await order(cluster, "drain", owner.name);
        return () => order(cluster, "undrain", owner.name);
    },
    kill: async (cluster, { owner }) => {
        await owner.kill();
        return () => owner.start();
    },
};

async function progress(node, container) {
    const { headers } = await call(node, { path: pathOf(container), headers: { "x-ms-documentdb-populatequotainfo": "true" } });
    return Number(headers[PROGRESS]);
}

/** One client's requests, again for as long as partitions have no owner. */
const patiently = (ask) => until(() => ask().catch((error) => assert.ok([408, 429, 503].includes(error.code), error.message)));

test("rebuilds, purges and expiry come to their ends whatever happens to the owner", { timeout: 240_000 }, async (t) => {
    const cluster = await startLive(t);
    const { database } = await clientOf(cluster.nodes[0]).databases.create({ id: "work" });
    for (const [kind, change] of Object.entries(CHANGES)) {
        const little = indexing({ includedPaths: paths("/pk/?"), excludedPaths: paths("/*") });
        const container = await newContainer(database, TWO, { defaultTtl: -1, ...little });
        const kept = times(KEPT, (i) => ({ id: `i${i}`, pk: `k${i % KEYS}`, a: i % 50, more: times(PROPERTIES, (n) => n * i) }));
        await fill(container, kept);
        await fill(container, times(EXPIRING, (i) => ({ id: `e${i}`, pk: `k${i % KEYS}`, a: i % 50, ttl: LIFE_S })));
        const left = kept.filter(({ pk }) => !PURGED.includes(pk));

        const place = await placeOf(cluster, container);
        const client = at(othersOf(cluster, place.owner)[0], container);
        const { resource } = await client.read();
        await client.replace({ ...resource, ...indexing({}) });
        const purging = PURGED.map((pk) => patiently(() => client.deleteAllItemsForPartitionKey(pk)));
        const begun = await progress(othersOf(cluster, place.owner)[0], container);
        const finish = await change(cluster, place);
        await Promise.all(purging);
        await finish?.();
        await cluster.until((status) => status.nodes.every(({ state }) => state === "live"), "complete");

        for (const node of cluster.nodes) {
            await until(async () => (await progress(node, container)) === 100);
            await until(async () => (await storedCount(node, container)) === left.length, { timeout_ms: 40_000 });
            sameItems(await listAll(node, container), left, `${kind}, ${node.name}`);
            for (const a of [0, 7, 49]) {
                const found = await queryAll(node, container, `SELECT * FROM c WHERE c.a = ${a}`);
                sameItems(found, left.filter((item) => item.a === a), `${kind}, ${node.name}`);
            }
            const [count] = await queryAll(node, container, "SELECT VALUE COUNT(1) FROM c WHERE c.a >= 0");
            assert.equal(count, left.length);
            for (const pk of PURGED) assert.deepEqual(await listAll(node, container, { key: pk }), []);
        }
        t.diagnostic(`${kind}: the index was ${begun}% done when the owner changed`);
    }
    await cluster.compareCopies();
    await Promise.all(cluster.nodes.map((node) => node.stopWell()));
    for (const node of cluster.nodes) checkFolder(node);
});

test("a node that joins soon has copies of many small partitions", async (t) => {
    const cluster = await startLive(t, { count: 2, args: ["--partition-ru", "1000"] });
    const { database } = await clientOf(cluster.nodes[0]).databases.create({ id: "small" });
    const container = await newContainer(database, { throughput: 40_000 });
    await fill(container, times(400, (i) => ({ id: `i${i}`, pk: `k${i}` })));
    const begun = Date.now();
    await cluster.add("c");
    const started_ms = Date.now() - begun;
    const isCopied = ({ spaces }) =>
        spaces.length === 41 &&
        spaces.every(({ owner, tail, replicas }) =>
            owner === "c" || replicas.some(({ node, state, applied }) => node === "c" && state === "following" && applied >= tail),
        );
    await cluster.until(isCopied, "copied");
    const copied_ms = Date.now() - begun;
    t.diagnostic(`40 partitions were copied in ${copied_ms} ms, of which ${started_ms} ms are the start`);
    assert.ok(copied_ms < SEEDED_MS, `${copied_ms} ms`);
    await cluster.compareCopies();
});

test("containers that share throughput have no more of it on three nodes", async (t) => {
    const OFFER = 3000;
    const SECONDS = 6;
    const args = ["--partition-ru", "1000", "--no-burst", ...readsCost(20)];
    const cluster = await startLive(t, { args, isThrottled: true });
    const { database } = await clientOf(cluster.nodes[0]).databases.create({ id: "shared", throughput: OFFER });
    const containers = await Promise.all(
        ["x", "y", "z"].map(async (id) => (await database.containers.create({ id, partitionKey: KEY })).container),
    );
    const keys = times(12, (i) => `key ${i}`);
    for (const { items } of containers) for (const pk of keys) await until(() => items.upsert({ id: "x", pk }).catch(() => undefined));
    const { spaces } = await cluster.status();
    const owners = new Set(spaces.filter(({ id }) => id !== CATALOG).map(({ owner }) => owner));
    assert.ok(owners.size > 1, `all of it belongs to node ${[...owners]}`);
    await wait(1000); // what they have saved up, which is a second's worth

    let units = 0;
    let throttled = 0;
    const begun = performance.now();
    const ask = async (client, first) => {
        for (let i = first; performance.now() < begun + SECONDS * 1000; i++) {
            const { id } = containers[i % containers.length];
            try {
                const { requestCharge } = await client.database("shared").container(id).item("x", keys[i % keys.length]).read();
                units += requestCharge;
            } catch (error) {
                assert.equal(error.code, 429, error.message);
                throttled++;
                await wait(1);
            }
        }
    };
    const working = cluster.nodes.flatMap((node) => [0, 5].map((first) => ask(impatientClient(node), first)));
    // A budget that moves does not give its second away twice.
    await wait((SECONDS * 1000) / 2);
    const { id, owner } = spaces.find((space) => space.id !== CATALOG);
    await order(cluster, "move", String(id), ["a", "b", "c"].find((name) => name !== owner));
    await Promise.all(working);
    const passed_s = (performance.now() - begun) / 1000;
    t.diagnostic(`${Math.round(units / passed_s)} of ${OFFER} RU/s were used on ${owners.size} nodes, ${throttled} requests were refused`);
    assert.ok(throttled > 0, "the clients have asked for less than there is");
    assert.ok(units <= OFFER * (passed_s + 1) * 1.1, `${units} RU in ${passed_s} s`);
    assert.ok(units >= OFFER * passed_s * 0.5, `${units} RU in ${passed_s} s`);
});
