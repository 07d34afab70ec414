// What partitions hold is known on every node, so they are split and merged by size wherever they are, and an offer tells
// the same on every node.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";

import { times } from "./lib/definition.mjs";
import { Engine, startCluster } from "./lib/cluster.mjs";
import { fill, listAll, newContainer, pathOf, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { checkRanges, layoutOf, rangesOf, sameIds, setPartitions } from "./lib/splits.mjs";
import { call } from "./lib/wire.mjs";

const CATALOG = 1; // the number of the catalogue's space
const LARGEST = 300 * 1024; // what a partition may hold
const KB = 1024;
let engine;
let cluster;

before(async () => {
    engine = new Engine();
    const args = ["--partition-ru", "1000", "--partition-max", "300K"];
    cluster = await startCluster({ after: () => undefined }, { engine, args });
    await cluster.until((status) => status.nodes.filter((node) => node.state === "live").length === 3, "three nodes");
    await clientOf(cluster.nodes[0]).databases.create({ id: "sizes" });
});
after(async () => {
    await Promise.all(cluster.nodes.map((node) => node.stopWell()));
    engine.end();
});

/** The node that splits and merges, and the others. */
async function roles() {
    const { spaces } = await cluster.status();
    const { owner } = spaces.find(({ id }) => id === CATALOG);
    const leader = cluster.nodes.find(({ name }) => name === owner);
    return { leader, others: cluster.nodes.filter((node) => node !== leader) };
}

async function moveTo(node, { space }) {
    const path = `/_orrery/cluster/move?space=${space}&node=${node.name}`;
    const answer = await call(cluster.nodes[0], { method: "POST", path, type: "", link: "" });
    assert.equal(answer.status, 200, answer.text);
}

const at = (node, container) => clientOf(node).database("sizes").container(container.id);

const makeContainer = (throughput) => newContainer(clientOf(cluster.nodes[0]).database("sizes"), { throughput });

const itemsOf = (count, name) => times(count, (i) => ({ id: `${name}${i}`, pk: `k${i % 90}`, text: name.repeat(1000) }));

async function mergeSmall(node, container, body) {
    const path = `${pathOf(container)}/operations/partitionmerge`;
    const answer = await call(node, { method: "POST", path, type: "colls", link: pathOf(container).slice(1), body });
    assert.equal(answer.status, 202, answer.text);
    return answer.json;
}

/** What the owner of each range says that it holds. */
async function heldKb(container) {
    const { spaces } = await cluster.status();
    const layouts = new Map();
    for (const node of cluster.nodes) layouts.set(node.name, await layoutOf(node, container));
    const [{ ranges }] = layouts.values();
    const held = ranges.map(({ id, space }) => {
        const owner = spaces.find((one) => one.id === space)?.owner;
        const range = layouts.get(owner)?.ranges.find((range) => range.id === id);
        return range && { id, storageInKB: Math.ceil(range.bytes / KB) };
    });
    return held.every(Boolean) ? held : []; // they were split between two looks
}

async function movesOf(node, container) {
    const { json } = await call(node, { path: "/_orrery/events?count=100", type: "", link: "" });
    return json.moves.filter((move) => move.container === container.id);
}

const offersOf = (container) =>
    Promise.all(
        cluster.nodes.map(async (node) => {
            const offer = (await at(node, container).readOffer()).resource;
            const { resource, headers } = await clientOf(node).offer(offer.id).read();
            const { maxConsumedStorageEverInKB } = resource.content.offerMinimumThroughputParameters;
            return { least: headers["x-ms-cosmos-min-throughput"], most_kb: maxConsumedStorageEverInKB };
        }),
    );

test("a partition of a node that does not lead is split when it has become too large", async () => {
    const container = await makeContainer(400);
    const { leader, others } = await roles();
    const { ranges } = await layoutOf(leader, container);
    await moveTo(others[0], ranges[0]);
    const items = itemsOf(600, "l");
    await fill(container, items);
    await until(async () => {
        const held = await heldKb(container);
        return held.length >= 3 && held.every(({ storageInKB }) => storageInKB <= LARGEST / KB);
    });
    checkRanges(await rangesOf(container));
    const [first] = (await movesOf(leader, container)).reverse();
    assert.deepEqual({ what: first.what, reason: first.reason }, { what: "split", reason: "storage" });
    for (const node of cluster.nodes) sameIds(await listAll(node, at(node, container)), items, node.name);
});

test("what other nodes hold is not moved again and again if it is all of one key", async () => {
    const container = await makeContainer(400);
    const { leader, others } = await roles();
    const { ranges } = await layoutOf(leader, container);
    await moveTo(others[0], ranges[0]);
    await fill(
        container,
        itemsOf(400, "o").map((item) => ({ ...item, pk: "only" })),
    );
    const [failed] = await until(async () => {
        const moves = await movesOf(leader, container);
        return moves.some(({ stage }) => stage === "failed") && moves;
    });
    assert.match(failed.message, /single logical partition/);
    const { spaces } = await cluster.status();
    assert.equal(spaces.find(({ id }) => id === ranges[0].space).owner, others[0].name);
    assert.equal((await rangesOf(container)).length, 1);
});

test("small neighbours on two nodes are merged, and offers tell the same everywhere", async () => {
    const container = await makeContainer(2000);
    const { leader, others } = await roles();
    const { ranges } = await layoutOf(leader, container);
    assert.equal(ranges.length, 2);
    await moveTo(others[0], ranges[0]);
    await moveTo(others[1], ranges[1]);
    const items = itemsOf(100, "s");
    await fill(container, items);
    await setPartitions(container, 1);
    const held = await heldKb(container);
    assert.ok(held.every(({ storageInKB }) => storageInKB > 10));
    await until(async () => {
        const dry = await mergeSmall(leader, container, { isDryRun: true });
        return JSON.stringify(dry.physicalPartitionStorageInfoCollection) === JSON.stringify(held);
    });
    const offers = await until(async () => {
        const all = await offersOf(container);
        return all.every(({ most_kb }) => most_kb === all[0].most_kb) && all;
    });
    assert.ok(offers.every(({ least }) => least === "400"), JSON.stringify(offers));
    const sum_kb = held.reduce((sum, { storageInKB }) => sum + storageInKB, 0);
    assert.ok(Math.abs(offers[0].most_kb - sum_kb) <= 1, `${JSON.stringify(offers)}, ${sum_kb} KB`);
    const { merges } = await mergeSmall(others[0], container, {});
    assert.equal(merges.length, 1);
    await until(async () => (await rangesOf(container)).length === 1);
    for (const node of cluster.nodes) sameIds(await listAll(node, at(node, container)), items, node.name);
    for (const { most_kb } of await offersOf(container)) assert.ok(most_kb >= offers[0].most_kb, "is not forgotten");
});
