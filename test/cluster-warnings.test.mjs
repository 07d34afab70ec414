// What is wrong with the engine of a cluster is said by /healthz and by the metrics, as long as it is wrong; and a node
// lists the changes of owners that it has seen.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { Engine, startCluster } from "./lib/cluster.mjs";
import { run } from "./lib/server.mjs";
import { call, metric, send } from "./lib/wire.mjs";

const WITHIN_MS = 60_000;
let engine;

/** Settings with which the engine that tests share is faster than it is safe. */
const UNSAFE = ["fsync", "full_page_writes"];

before(() => {
    engine = new Engine();
    for (const setting of UNSAFE) set(setting, "on");
});
after(() => {
    for (const setting of UNSAFE) set(setting);
    engine.end();
});

async function until(found, what) {
    for (const end = Date.now() + WITHIN_MS; ; await wait(50)) {
        const answer = await found();
        if (answer) return answer;
        if (Date.now() > end) throw new Error(`not ${what}`);
    }
}

async function health(node) {
    const { status, text } = await send(node.endpoint, { path: "/healthz" });
    assert.equal(status, 200);
    return JSON.parse(text);
}

/** Without a value: as the engine was started. */
function set(setting, value) {
    const change = value === undefined ? `RESET ${setting}` : `SET ${setting} = ${value}`;
    engine.sql(engine.primary, `ALTER SYSTEM ${change}`);
    engine.sql(engine.primary, "SELECT pg_reload_conf()");
}

test("an engine without a standby, or without fsync, is named while it is so", async (t) => {
    const [node] = (await startCluster(t, { engine, count: 1, replicas: 1 })).nodes;
    await until(async () => (await metric(node, "orrery_cluster_journal_bytes")) > 0, "asked");
    assert.equal((await health(node)).warnings, undefined);
    const names = engine.sql(engine.primary, "SHOW synchronous_standby_names").split("\n").pop();
    assert.doesNotMatch(node.stdout, /WARNING/);
    for (const [setting, wrong, right, pattern] of [
        ["synchronous_standby_names", "''", `'${names}'`, /no synchronous standby/],
        ["fsync", "off", "on", /fsync/],
    ]) {
        set(setting, wrong);
        const warned = await until(async () => (await health(node)).warnings, `warned of ${setting}`);
        assert.equal(warned.length, 1);
        assert.match(warned[0], pattern);
        const { warnings } = (await call(node, { path: "/_orrery/cluster", type: "", link: "" })).json;
        assert.equal(warnings.length, 1, String(warnings));
        assert.match(warnings[0], pattern);
        await until(async () => (await metric(node, "orrery_cluster_engine_warning")) === 1, "counted");
        const [later] = (await startCluster(t, { engine, count: 1, replicas: 1 })).nodes;
        const banner = later.stdout.split("\n").filter((line) => line.startsWith("WARNING: "));
        assert.equal(banner.length, 1, later.stdout);
        assert.match(banner[0], pattern);
        set(setting, right);
        await until(async () => (await health(node)).warnings === undefined, "right again");
        await until(async () => (await metric(node, "orrery_cluster_engine_warning")) === 0, "counted");
    }
});

test("fewer nodes than are to have copies are named until there are enough, unless that is wanted", async (t) => {
    const cluster = await startCluster(t, { engine, count: 1, replicas: 2 });
    const [node] = cluster.nodes;
    assert.match(node.stdout, /^WARNING: 1 of the 2 nodes live .*--replicas/m);
    const warned = await until(async () => (await health(node)).warnings, "warned");
    assert.equal(warned.length, 1);
    assert.match(warned[0], /^1 of the 2 nodes live/);
    assert.ok((await cluster.status()).warnings.includes(warned[0]));
    const shown = run(["cluster", "status", "--endpoint", node.endpoint]);
    assert.match(shown.stdout, /^WARNING: 1 of the 2 nodes live/m);
    assert.equal(await metric(node, "orrery_cluster_engine_warning"), 0);
    const second = await cluster.add("b");
    await until(async () => (await health(node)).warnings === undefined, "silent with two nodes");
    assert.doesNotMatch(second.stdout, /WARNING/);
    const [alone] = (await startCluster(t, { engine, count: 1, replicas: 1 })).nodes;
    assert.doesNotMatch(alone.stdout, /WARNING/);
});

test("events have the changes of owners", async (t) => {
    const [node] = (await startCluster(t, { engine, count: 1, replicas: 1 })).nodes;
    const { status, json } = await call(node, { path: "/_orrery/events", type: "", link: "" });
    assert.equal(status, 200);
    const serving = json.cluster.find((event) => event.kind === "serving" && event.space === 1);
    assert.equal(serving.node, "a");
    assert.equal(await metric(node, "orrery_cluster_spaces_owned"), 1);
});
