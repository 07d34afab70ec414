// A cluster gets a newer program, node by node, while clients write: until `orrery cluster upgrade` its nodes write what the
// older program reads, and afterwards the older program is refused. The newer program is the same one, which takes the next
// format for its own.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test, { after, before } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { Writers } from "./lib/cluster-writers.mjs";
import { Engine, startCluster } from "./lib/cluster.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { NEXT_BINARY, run } from "./lib/server.mjs";
import { call } from "./lib/wire.mjs";

const OLD = 1;
const NEW = OLD + 1;
let engine;

before(() => (engine = new Engine()));
after(() => engine.end());

const isComplete = (status) => status.nodes.filter((node) => node.state === "live").length === 3;
const formatsOf = (status) => status.nodes.map((node) => node.format).sort();
const upgrade = (node) => run(["cluster", "upgrade", "--endpoint", node.endpoint]);

/** The formats of the entries that the journal of this cluster has. */
function written(cluster) {
    const database = /\/([^/?]+)$/.exec(cluster.url)[1];
    const rows = engine.sql(engine.primary, "SELECT DISTINCT format FROM orrery.entry_all ORDER BY 1", database);
    return rows.split("\n").map(Number);
}

async function runAs(cluster, node, binary) {
    await node.stopWell();
    node.options.binary = binary;
    await node.start();
    await cluster.until(isComplete, "three nodes again");
}

test("nodes get a newer program one by one, and then write its format", { timeout: 180_000 }, async (t) => {
    assert.ok(existsSync(NEXT_BINARY), `${NEXT_BINARY} is missing: build the target orrery_next`);
    const cluster = await startCluster(t, { engine });
    const [a, b, c] = cluster.nodes;
    await cluster.until(isComplete, "three nodes");
    const { database } = await clientOf(a).databases.create({ id: "shop" });
    await database.containers.create({ id: "items", partitionKey: { paths: ["/pk"], version: 2 } }, { offerThroughput: 24_000 });
    assert.match(upgrade(a).stdout, new RegExp(`format ${OLD}, the newest`));

    const writers = new Writers(cluster, "items", 4);
    await wait(500);
    for (const node of [a, b]) await runAs(cluster, node, NEXT_BINARY);
    assert.deepEqual(formatsOf(await cluster.status()), [OLD, NEW, NEW]);
    for (const node of [a, c]) {
        const refused = upgrade(node);
        assert.equal(refused.status, 1);
        assert.match(refused.stderr, new RegExp(`stays at format ${OLD}.*start 'c' with the newer program`));
    }
    assert.deepEqual(written(cluster), [OLD]);
    await runAs(cluster, c, NEXT_BINARY);
    assert.equal((await cluster.status()).format, OLD);

    assert.match(upgrade(b).stdout, new RegExp(`writes format ${NEW} now, instead of ${OLD}`));
    await cluster.until((status) => status.format === NEW, "upgraded", { node: c });
    const before = writers.acknowledged.size;
    await wait(1500);
    await writers.stop();
    assert.ok(before > 0);
    assert.deepEqual(written(cluster), [OLD, NEW]);
    for (const error of writers.errors) assert.ok([408, 429, "ECONNREFUSED", "ECONNRESET", "EPIPE"].includes(error.code), `${error.code}: ${error.message}`);
    for (const node of cluster.nodes) await writers.check(clientOf(node).database("shop").container("items"));
    const { json } = await call(b, { path: "/_orrery/events", type: "", link: "" });
    assert.ok(json.cluster.some(({ kind }) => kind === "upgraded"), JSON.stringify(json.cluster));

    await c.stopWell();
    const older = run(["serve", "--data", c.data, "--host", "127.0.0.1", ...c.options.args]);
    assert.equal(older.status, 1);
    assert.match(older.stderr, new RegExp(`writes format ${NEW}; this program reads up to ${OLD}`));
    await c.start();
    await cluster.until(isComplete, "three nodes at the end");
    await writers.check(clientOf(c).database("shop").container("items"));
});
