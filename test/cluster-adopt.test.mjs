// The data folder of one server becomes the first node of a cluster, whatever interrupts that; a second node gets a
// copy of everything, and has it when the first is gone.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { Cluster, Engine } from "./lib/cluster.mjs";
import { chooseSeed, Random } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { BINARY, environment, run, startServer, temporaryFolder } from "./lib/server.mjs";
import { call } from "./lib/wire.mjs";

const ITEMS = 150;
const KILLS = 12;
let engine;

before(() => (engine = new Engine()));
after(() => engine.end());

const itemsOf = (server, container = "items") => clientOf(server).database("shop").container(container);

async function fill(server) {
    const { database } = await clientOf(server).databases.create({ id: "shop" });
    const definition = (id) => ({ id, partitionKey: { paths: ["/pk"], version: 2 } });
    const { container } = await database.containers.create(definition("items"), { offerThroughput: 24_000 });
    await database.containers.create(definition("empty"));
    const made = [];
    for (let i = 0; i < ITEMS; i++) {
        const { resource } = await container.items.create({ id: `i${i}`, pk: `k${i % 40}`, n: i % 7 });
        made.push(resource);
    }
    return made;
}

async function expectItems(server, made) {
    const byId = (list) => [...list].sort((a, b) => (a.id < b.id ? -1 : 1));
    const { resources } = await itemsOf(server).items.readAll().fetchAll();
    assert.deepEqual(byId(resources), byId(made));
    const some = await itemsOf(server).items.query("SELECT * FROM c WHERE c.n = 3").fetchAll();
    assert.deepEqual(byId(some.resources), byId(made.filter((item) => item.n === 3)));
}

/** The options of `orrery cluster adopt` for a folder. */
const adoption = (cluster, data, node = "a") => [
    ...["cluster", "adopt", "--data", data, "--cluster", cluster.url, "--cluster-secret", cluster.secret],
    ...["--node", node, "--advertise", "http://127.0.0.1:1"],
];

async function single(t) {
    const data = join(temporaryFolder(), "data");
    const server = await startServer(t, { data, args: ["--durability", "relaxed"] });
    return { data, server };
}

/** Waits for a file, but no longer than the process lives. */
async function seen(file, child) {
    while (!existsSync(file) && child.exitCode === null) await new Promise(setImmediate);
}

const refusal = (args) => {
    const { status, stderr } = run(args);
    assert.notEqual(status, 0);
    return stderr;
};

test("a server's data becomes a cluster, and a second node has it all", async (t) => {
    const seed = chooseSeed();
    t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
    const random = new Random(seed);
    const { data, server } = await single(t);
    const made = await fill(server);
    const cluster = new Cluster(t, { engine, replicas: 2 });
    assert.match(refusal(adoption(cluster, data)), /used by another process|in use/);
    await server.stopWell();

    const { args } = await cluster.options("a");
    assert.match(refusal(["serve", "--data", data, ...args]), /orrery cluster adopt/);
    let interrupted = 0;
    for (let i = 0; i < KILLS; i++) {
        const child = spawn(BINARY, adoption(cluster, data), { stdio: "ignore", env: environment() });
        // The first one ends as soon as it has begun for sure, the others at any moment.
        const begun = i === 0 ? seen(join(data, "CLUSTER.adopting"), child) : wait(random.below(300));
        await Promise.race([once(child, "close"), begun]);
        child.kill("SIGKILL");
        if (child.exitCode === null && child.signalCode === null) await once(child, "close");
        if (child.exitCode === 0) break;
        if (!existsSync(join(data, "CLUSTER.adopting"))) continue; // it had not begun
        interrupted++;
        assert.match(refusal(["serve", "--data", data, ...args]), /repeat `orrery cluster adopt`/);
        if (existsSync(join(data, "CLUSTER")))
            assert.match(refusal(["serve", "--data", data, "--port", "0"]), /repeat `orrery cluster adopt`/);
    }
    t.diagnostic(`interrupted ${interrupted} times`);
    assert.ok(interrupted > 0);
    if (existsSync(join(data, "CLUSTER.adopting"))) {
        const done = run(adoption(cluster, data));
        assert.equal(done.status, 0, done.stderr);
        assert.match(done.stdout, /(\d+) of \1 partitions/);
    } else if (!existsSync(join(data, "CLUSTER"))) assert.equal(run(adoption(cluster, data)).status, 0);
    assert.match(refusal(adoption(cluster, data)), /already/);
    assert.match(refusal(["serve", "--data", data, "--port", "0"]), /node of a cluster/);

    const a = await startServer(t, { data, args });
    a.name = "a";
    cluster.nodes.push(a);
    await expectItems(a, made);
    await itemsOf(a, "empty").items.create({ id: "1", pk: "x" });
    const { resource } = await itemsOf(a).items.create({ id: "new", pk: "k1", n: 3 });
    made.push(resource);

    const b = await cluster.add("b");
    await expectItems(b, made);
    const whole = (status) =>
        status.spaces.every(
            (space) =>
                space.ownerLives &&
                ["a", "b"].every((name) =>
                    space.replicas.some((copy) => copy.node === name && copy.durable >= space.tail),
                ),
        );
    const status = await cluster.until(whole, "copied", { node: b });
    assert.equal(status.spaceCount, 6); // the catalogue, four partitions and one that was empty
    await a.kill();
    await cluster.until((now) => now.spaces.every((space) => space.owner === "b" && space.ownerLives), "taken over", {
        node: b,
    });
    await expectItems(b, made);
    assert.equal((await itemsOf(b, "empty").item("1", "x").read()).resource.id, "1");
    await itemsOf(b).items.create({ id: "after", pk: "k2" });

    /* As docs/cluster.md says: keys of a stopped node are changed in its folder. */
    const rotated = run(["key", "rotate", "secondary", "--data", data]);
    assert.equal(rotated.status, 0, rotated.stderr);
    await a.start();
    const key = rotated.stdout.trim();
    assert.equal((await call({ endpoint: a.endpoint, key }, { path: "/dbs", type: "dbs", link: "" })).status, 200);
});

test("a cluster that has something already takes no folder", async (t) => {
    const { data, server } = await single(t);
    const made = await fill(server);
    await server.stopWell();
    const cluster = new Cluster(t, { engine, replicas: 1 });
    await cluster.add("b");
    assert.match(refusal(adoption(cluster, data)), /'b'/);
    assert.match(refusal(adoption(cluster, data, "b")), /of the node 'a'/);

    /* Given up, the folder is what it was. */
    const said = refusal(["serve", "--data", data, "--port", "0"]);
    const files = [...said.matchAll(/\bCLUSTER(\.adopting)?\b/g)].map(([name]) => join(data, name));
    assert.equal(files.length, 2, said);
    for (const file of files) rmSync(file);
    await expectItems(await startServer(t, { data }), made);
});

test("what cannot be adopted is refused before anything is made", async (t) => {
    const cluster = new Cluster(t, { engine });
    const empty = temporaryFolder();
    assert.match(refusal(adoption(cluster, empty)), /no data to adopt/);
    assert.ok(!existsSync(join(empty, "CLUSTER")));
    assert.match(refusal(adoption(cluster, empty).slice(0, -2)), /adopt needs .*--advertise/);
    assert.match(refusal(["cluster", "status", "--data", empty]), /options of adopt/);
    assert.match(refusal([...adoption(cluster, empty).slice(0, -1), "nowhere"]), /--advertise must be a URL/);
});
