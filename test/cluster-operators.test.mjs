// What operators of a cluster do on purpose, and what they have to do when the engine has lost something: three nodes, a
// primary and a standby of their own.
import assert from "node:assert/strict";
import test, { after, before, describe } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { eventsOf } from "./lib/chaos.mjs";
import { Askers, Writers } from "./lib/cluster-writers.mjs";
import { Engine, startCluster } from "./lib/cluster.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { runBeside } from "./lib/server.mjs";
import { call } from "./lib/wire.mjs";

const PARTITIONS = 4;
const SERVED_AGAIN_MS = 10_000;
const LONGER_THAN_A_LEASE_MS = 6000;

const SLOW = `function slow() {
    for (var end = Date.now() + 300; Date.now() < end; );
    getContext().getResponse().setBody("done");
}`;

describe("three nodes", () => {
    let engine;
    let cluster;

    before(async () => {
        engine = new Engine();
        cluster = await startCluster({ after: () => undefined }, { engine });
        await allLive();
        await clientOf(cluster.nodes[0]).databases.create({ id: "shop" });
    });
    after(async () => {
        await Promise.all(cluster.nodes.map((node) => node.stopWell()));
        engine.end();
    });

    const allLive = () => cluster.until((s) => s.nodes.filter((n) => n.state === "live").length === 3, "three nodes");
    const containerAt = (node, id) => clientOf(node).database("shop").container(id);

    function makeContainer(id) {
        const definition = { id, partitionKey: { paths: ["/pk"], version: 2 } };
        const offer = { offerThroughput: PARTITIONS * 6000 };
        return clientOf(cluster.nodes[0]).database("shop").containers.create(definition, offer);
    }

    /** Every partition takes a write. */
    async function served(container) {
        for (let i = 0; i < 40; i++) await container.items.upsert({ id: `again${i}`, pk: `again${i}` });
    }

    /** `orrery cluster` as an operator of that node gives it. */
    async function order(words, node) {
        const { status, stdout, stderr } = await runBeside(["cluster", ...words, "--endpoint", node.endpoint]);
        assert.equal(status, 0, stderr);
        return stdout;
    }

    test("nobody sees an error when nodes are drained, and stopped on purpose, under every kind of request", async (t) => {
        await makeContainer("drained");
        const writers = new Writers(cluster, "drained", 3);
        const askers = new Askers("drained");
        await askers.prepare(cluster);
        for (const node of cluster.nodes) {
            await order(["drain", node.name], cluster.nodes[0]);
            const owns = (status) => status.spaces.some(({ owner }) => owner === node.name);
            await cluster.until((status) => !owns(status), `${node.name} drained`);
            await wait(300);
            await order(["undrain", node.name], node);
            await allLive();
        }
        await containerAt(cluster.nodes[0], "drained").scripts.storedProcedures.create({ id: "slow", body: SLOW });
        for (const node of cluster.nodes) {
            // Answered by the node itself if it owns the partition, and through it otherwise.
            const underWay = [1, 2, 3, 4].map((i) => containerAt(node, "drained").scripts.storedProcedure("slow").execute(`k${i}`));
            await wait(100);
            await node.stopWell();
            for (const { resource } of await Promise.all(underWay)) assert.equal(resource, "done");
            await wait(500);
            await node.start();
            await allLive();
        }
        await Promise.all([writers.stop(), askers.stop()]);
        assert.ok(writers.refused > 0 && askers.refused > 0, "nobody has asked a node that was stopped");
        assert.deepEqual([...writers.errors, ...askers.errors].map((error) => `${error.code} ${error.message}`), []);
        for (const node of cluster.nodes) {
            await writers.check(containerAt(node, "drained"));
            await askers.check(containerAt(node, "drained"));
        }
        t.diagnostic(`${writers.acknowledged.size} items, longest gap ${writers.longestGap_ms} ms, ${JSON.stringify(askers.done)}`);
    });

    test("nothing acknowledged is lost when the primary crashes and comes back", async (t) => {
        await makeContainer("crashed");
        const writers = new Writers(cluster, "crashed", 4);
        for (const away_ms of [0, LONGER_THAN_A_LEASE_MS]) {
            await wait(1000);
            engine.kill(engine.primary);
            await wait(away_ms);
            engine.run(engine.primary);
            const back = Date.now();
            for (const node of cluster.nodes) await served(containerAt(node, "crashed"));
            t.diagnostic(`everything was served ${Date.now() - back} ms after a crash of ${away_ms} ms`);
            assert.ok(Date.now() - back < SERVED_AGAIN_MS);
        }
        await writers.stop();
        for (const { code, message } of writers.errors) assert.ok([408, 429].includes(code), `${code}: ${message}`);
        for (const node of cluster.nodes) await writers.check(containerAt(node, "crashed"));
        await cluster.compareCopies();
    });

    // Node c is away when the writes are made that get lost: its copy is what the others begin with again.
    test("a standby that lacks acknowledged writes is told, refused, and believed when an operator says so", async () => {
        const [a, b, c] = cluster.nodes;
        await makeContainer("lost");
        const container = containerAt(a, "lost");
        const create = (item) => container.items.create(item);
        for (let i = 0; i < 40; i++) await create({ id: `i${i}`, pk: `k${i}` });
        await cluster.compareCopies();
        const { spaces: old } = await cluster.status();
        const all = (node) => containerAt(node, "lost").items.query("SELECT * FROM c ORDER BY c.id").fetchAll();
        const { resources: kept } = await all(a);
        await c.stopWell();

        const [primary, standby] = [engine.primary, engine.primary === "a" ? "b" : "a"];
        engine.sql(primary, "ALTER SYSTEM SET synchronous_standby_names = ''");
        engine.sql(primary, "SELECT pg_reload_conf()");
        engine.kill(standby);
        for (let i = 0; i < 5; i++) await create({ id: `lost${i}`, pk: "k7" });
        await container.item("i7", "k7").replace({ id: "i7", pk: "k7", isLost: true });
        const tail = (spaces, id) => spaces.find((space) => space.id === id)?.tail;
        const hasAll = ({ spaces }) => spaces.every(({ tail, replicas }) => replicas.every((r) => r.node === "c" || r.applied === tail));
        const { spaces: now } = await cluster.until(hasAll, "followed");
        const affected = now.filter(({ id }) => tail(now, id) !== tail(old, id)).map(({ id }) => id);
        assert.equal(affected.length, 1);
        engine.kill(primary);
        engine.run(standby);
        engine.promote();

        // The owner hears of it at its next write.
        const path = "/dbs/shop/colls/lost/docs";
        const headers = { "x-ms-documentdb-partitionkey": '["k7"]' };
        const isRefused = async (node) => {
            const { status } = await call(node, { method: "POST", path, headers, body: { id: "refused", pk: "k7" } });
            assert.ok([408, 429].includes(status), `${status}`);
            return status === 429;
        };
        for (const node of [a, b]) {
            while (!(await isRefused(node)));
            const warning = /The engine has lost acknowledged writes of 1 partitions: see `orrery cluster recover`/;
            await cluster.until(({ warnings }) => warnings.some((text) => warning.test(text)), "warned", { node });
            assert.match(await order(["status"], node), warning);
            const events = (await eventsOf(node)).cluster.filter(({ kind }) => kind === "engineLost");
            assert.deepEqual([...new Set(events.map(({ space }) => space))], affected);
        }
        const read = ({ id, pk }) => {
            const headers = { "x-ms-documentdb-partitionkey": JSON.stringify([pk]) };
            return call(b, { path: `/dbs/shop/colls/lost/docs/${id}`, headers });
        };
        const answers = await Promise.all(kept.map(read));
        const isServed = answers.map(({ status }) => status === 200);
        assert.ok(isServed.filter(Boolean).length > kept.length / 3, "the other partitions are served");
        kept.forEach((item, i) => isServed[i] && assert.deepEqual(answers[i].json, item));
        assert.equal(answers[kept.findIndex(({ id }) => id === "i7")].status, 429);

        await c.start();
        for (const node of [a, b]) await order(["recover", "0"], node);
        await cluster.until(({ warnings }) => !warnings.some((text) => /acknowledged writes of/.test(text)), "recovered");
        for (const node of cluster.nodes) {
            const { resources } = await all(node);
            assert.deepEqual(resources, kept);
            await create({ id: `new ${node.name}`, pk: "k7" });
            await container.item(`new ${node.name}`, "k7").delete();
        }
        await cluster.compareCopies();
    });
});
