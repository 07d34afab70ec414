// A node of a cluster whose disk has damaged data: nothing wrong is told, the others serve what it had, and with an empty
// folder it is whole again.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { rmSync, statSync } from "node:fs";
import test, { after, before } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { Engine, startCluster } from "./lib/cluster.mjs";
import { damage, storeFiles } from "./lib/disk.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run } from "./lib/server.mjs";
import { call } from "./lib/wire.mjs";

const ITEMS = 300;
const SERVED_MS = 30_000;
const CHANGED = 64; // bytes, in every so many
const STEP = 16_384;
let engine;

before(() => (engine = new Engine()));
after(() => engine.end());

/** Bytes that cannot be compressed. */
const textOf = (i) => Array.from({ length: 60 }, (_, k) => createHash("sha256").update(`${i} ${k}`).digest("base64")).join("");
const itemOf = (i) => ({ id: `${i}`, pk: `k${i % 30}`, text: textOf(i) });

/** Which items cannot be read at this node now. None may be wrong. */
async function unreadable(node) {
    const found = [];
    for (let i = 0; i < ITEMS; i++) {
        const { id, pk, text } = itemOf(i);
        const answer = await call(node, {
            path: `/dbs/shop/colls/items/docs/${id}`,
            headers: { "x-ms-documentdb-partitionkey": JSON.stringify([pk]) },
        });
        if (answer.status === 200) assert.equal(answer.json.text, text);
        else if (answer.status === 500 || answer.status === 429) found.push(id);
        else assert.fail(`item ${id}: ${answer.status} ${answer.text}`);
    }
    return found;
}

test("a node whose disk is damaged gives its partitions to the others", async (t) => {
    const cluster = await startCluster(t, { engine, args: ["--cache", "8M"] });
    await cluster.until((status) => status.nodes.filter(({ state }) => state === "live").length === 3, "three nodes");
    const { database } = await clientOf(cluster.nodes[0]).databases.create({ id: "shop" });
    const { container } = await database.containers.create({ id: "items", partitionKey: "/pk" });
    for (let i = 0; i < ITEMS; i++) await container.items.create(itemOf(i));

    const { spaces } = await cluster.status();
    const space = Math.max(...spaces.map(({ id }) => id));
    const node = cluster.nodes.find(({ name }) => name === spaces.find(({ id }) => id === space).owner);
    const other = cluster.nodes.find((one) => one !== node);
    await node.kill();
    await node.start(); // its log becomes files of tables
    await cluster.until((status) => status.spaces.find(({ id }) => id === space).replicas.every(({ durable }) => durable > 0), "durable copies");
    await node.kill();
    const [largest] = storeFiles(node.data, ".sst");
    // Among the items: what is needed for a start is at the beginning and at the end of the file.
    const { size } = statSync(largest);
    for (let at = Math.floor(size * 0.4); at < size * 0.7; at += STEP) damage(largest, at, CHANGED);
    await node.start();

    // Whoever serves it until the damage is met.
    run(["cluster", "move", String(space), node.name, "--endpoint", other.endpoint, "--key", other.key]);
    for (const late = Date.now() + SERVED_MS; ; await wait(200)) {
        const left = await unreadable(other);
        const { nodes } = await cluster.status(other);
        if (left.length === 0 && nodes.find(({ name }) => name === node.name).state === "draining") break;
        assert.ok(Date.now() < late, `${left.length} items cannot be read`);
    }
    const gone = (status) => status.spaces.every(({ owner }) => owner !== node.name);
    await cluster.until(gone, "owners on whole disks", { node: other });
    const { warnings } = await cluster.status(node);
    assert.ok(warnings.some((text) => /damaged.*empty folder/.test(text)), JSON.stringify(warnings));
    await clientOf(other).database("shop").container("items").items.create({ id: "new", pk: "k1" });

    await node.stopWell();
    rmSync(`${node.data}/store`, { recursive: true });
    rmSync(`${node.data}/CLUSTER`);
    await node.start();
    await cluster.until((status) => status.spaces.find(({ id }) => id === space).replicas.length === 3, "three copies");
    await cluster.compareCopies();
});
