// Nodes of a cluster whose wall clock is an hour wrong, from their start or from one moment to the next: items are dated right
// there, do not expire before their time, and the node warns of its clock.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { Clock } from "./lib/clock.mjs";
import { Cluster, Engine } from "./lib/cluster.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer } from "./lib/server.mjs";
import { call, send } from "./lib/wire.mjs";

const HOUR_S = 3600;
const LIFE_S = 1800; // of an item: long for the test, short for a clock that is an hour ahead
const OFF_S_MAX = 10;
const ROUNDS_MS = 3000; // of what removes items that have expired, which comes each second
const CATALOGUE = 1;
let engine;

before(() => (engine = new Engine()));
after(() => engine.end());

async function start(t, aheads_s) {
    const cluster = new Cluster(t, { engine, replicas: 2 });
    for (const [name, ahead_s] of Object.entries(aheads_s)) {
        const clock = new Clock();
        clock.set(ahead_s);
        const node = await startServer(t, { ...(await cluster.options(name)), env: clock.env });
        cluster.nodes.push(Object.assign(node, { name, clock }));
    }
    await cluster.until(({ nodes }) => nodes.filter(({ state }) => state === "live").length === cluster.nodes.length, "complete");
    return cluster;
}

async function makeContainer(node) {
    const { database } = await clientOf(node).databases.create({ id: "shop" });
    await database.containers.create({ id: "items", partitionKey: { paths: ["/pk"], version: 2 }, defaultTtl: -1 });
}

const itemsAt = (node) => clientOf(node).database("shop").container("items").items;

async function moveTo(cluster, name) {
    const { spaces } = await cluster.status(cluster.nodes[0]);
    for (const { id } of spaces.filter((space) => space.id !== CATALOGUE)) {
        const path = `/_orrery/cluster/move?space=${id}&node=${name}`;
        const { status, text } = await call(cluster.nodes[0], { method: "POST", path, type: "", link: "" });
        assert.equal(status, 200, text);
    }
    await cluster.until((now) => now.spaces.every(({ id, owner }) => id === CATALOGUE || owner === name), `of ${name}`);
}

const now_s = () => Date.now() / 1000;

/** Creates an item at each node. */
async function create(cluster, id) {
    for (const node of cluster.nodes) {
        const { resource } = await itemsAt(node).create({ id: `${id}-${node.name}`, pk: id, ttl: LIFE_S });
        const off_s = resource._ts - now_s();
        assert.ok(Math.abs(off_s) < OFF_S_MAX, `${id} by ${node.name}: _ts is ${off_s} s ahead`);
    }
}

async function expectAll(cluster, ids) {
    const expected = ids.flatMap((id) => cluster.nodes.map(({ name }) => `${id}-${name}`)).sort();
    for (const node of cluster.nodes) {
        const { resources } = await itemsAt(node).query("SELECT VALUE c.id FROM c").fetchAll();
        assert.deepEqual(resources.sort(), expected, `at ${node.name}`);
    }
}

const clockWarning = (texts) => texts.find((text) => text.includes("the clock of the node"));

/** Waits until a node warns of its clock, or of none if `pattern` is undefined, in all places. */
async function expectWarning(cluster, node, pattern) {
    const isRight = (text) => (pattern ? pattern.test(text) : text === undefined);
    const what = `warned of ${pattern}`;
    await cluster.until(({ warnings }) => isRight(clockWarning(warnings)), what, { node });
    const health = JSON.parse((await send(node.endpoint, { path: "/healthz" })).text);
    assert.ok(isRight(clockWarning(health.warnings ?? [])), JSON.stringify(health));
    const { stdout } = run(["cluster", "status", "--endpoint", node.endpoint]);
    assert.ok(isRight(clockWarning(stdout.split("\n"))), stdout);
}

for (const ahead_s of [HOUR_S, -HOUR_S]) {
    const direction = ahead_s > 0 ? "ahead of" : "behind";
    const pattern = (name) => new RegExp(`the node '${name}' is (3600|3599) s ${direction} that of the engine: set it right`);

    test(`a node that starts with a clock an hour ${direction} the others'`, async (t) => {
        const cluster = await start(t, { a: 0, b: ahead_s });
        const [a, b] = cluster.nodes;
        await makeContainer(b);
        await create(cluster, "anywhere");
        await moveTo(cluster, "b");
        await create(cluster, "at-b");
        await wait(ROUNDS_MS);
        await expectAll(cluster, ["anywhere", "at-b"]);
        await expectWarning(cluster, b, pattern("b"));
        await expectWarning(cluster, a, undefined);
        await moveTo(cluster, "a");
        await create(cluster, "at-a");
        await expectAll(cluster, ["anywhere", "at-b", "at-a"]);
        const { _ts } = (await clientOf(a).database("shop").container("items").read()).resource;
        assert.ok(Math.abs(_ts - now_s()) < 60, `the container was made at ${_ts}`);
        b.clock.set(0);
        await expectWarning(cluster, b, undefined);
    });

    test(`a clock that jumps to an hour ${direction} the others'`, async (t) => {
        const cluster = await start(t, { a: 0, b: 0 });
        const [, b] = cluster.nodes;
        await makeContainer(b);
        await moveTo(cluster, "b");
        await create(cluster, "before");
        b.clock.set(ahead_s);
        for (let i = 0; i < 20; i++) await create(cluster, `jump${i}`);
        await wait(ROUNDS_MS);
        await expectWarning(cluster, b, pattern("b"));
        b.clock.set(0);
        for (let i = 0; i < 20; i++) await create(cluster, `back${i}`);
        await expectWarning(cluster, b, undefined);
        await wait(ROUNDS_MS);
        const twenty = (name) => Array.from({ length: 20 }, (_, i) => `${name}${i}`);
        await expectAll(cluster, ["before", ...twenty("jump"), ...twenty("back")]);
        const { json } = await call(b, { path: "/_orrery/events", type: "", link: "" });
        const kinds = json.cluster.map(({ kind }) => kind).filter((kind) => kind.startsWith("clock"));
        assert.deepEqual(kinds, ["clockRight", "clockWrong"]); // the newest first
    });
}
