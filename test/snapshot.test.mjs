// A database goes back to what it was when a snapshot was saved: through the official SDK, while
// others are written to, over splits and restarts.
import assert from "node:assert/strict";
import test from "node:test";

import { times } from "./lib/definition.mjs";
import { fill, until } from "./lib/items.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer } from "./lib/server.mjs";
import { drop, list, observe, restore, save, succeed } from "./lib/snapshots.mjs";
import { SMALL, setPartitions, waitForPartitions } from "./lib/splits.mjs";
import { transferred } from "./lib/transfer.mjs";
import { call } from "./lib/wire.mjs";
import { checkFolder } from "./lib/writers.mjs";

const itemOf = (i) => ({ id: `i${i}`, pk: `k${i % 20}`, n: i, text: "x".repeat(50) });

/** A database with a bit of everything. */
async function prepare(client, id) {
    const { database } = await client.databases.create({ id });
    const { container } = await database.containers.create({ id: "orders", partitionKey: "/pk", throughput: 1000 });
    const unique = { uniqueKeys: [{ paths: ["/n"] }] };
    const { container: other } = await database.containers.create({
        id: "unique",
        partitionKey: "/pk",
        uniqueKeyPolicy: unique,
        defaultTtl: -1,
    });
    await fill(container, times(300, itemOf));
    await fill(other, times(50, itemOf));
    await container.scripts.storedProcedures.create({ id: "p", body: "function () { getContext().getResponse().setBody(1) }" });
    await container.scripts.triggers.create({ id: "t", body: "function () {}", triggerType: "Pre", triggerOperation: "All" });
    await container.scripts.userDefinedFunctions.create({ id: "f", body: "function (x) { return x }" });
    const { user } = await database.users.create({ id: "ann" });
    await user.permissions.create({ id: "read", permissionMode: "Read", resource: container.url.replace(/^\//, "") });
    return { database, container, other };
}

/** Changes, deletes and adds something of each kind. */
async function change({ database, container, other }) {
    for (let i = 0; i < 100; i++) await container.items.upsert({ ...itemOf(i), n: -i, changed: true });
    for (let i = 100; i < 150; i++) await container.item(`i${i}`, `k${i % 20}`).delete();
    for (let i = 0; i < 40; i++) await container.items.create({ ...itemOf(i), id: `new${i}` });
    await container.item("i200", "k0").patch([{ op: "incr", path: "/n", value: 5 }]);
    const { resource } = await container.item("i201", "k1").read();
    await container.item("i201", "k1").replace({ ...resource, id: "renamed" });
    await container.scripts.storedProcedure("p").replace({ id: "p", body: "function () { getContext().getResponse().setBody(2) }" });
    await container.scripts.trigger("t").delete();
    await container.scripts.userDefinedFunctions.create({ id: "g", body: "function (x) { return -x }" });
    await database.users.create({ id: "bob" });
    await database.user("ann").permission("read").delete();
    const { resource: definition } = await container.read();
    await container.replace({ ...definition, defaultTtl: 1000, indexingPolicy: { includedPaths: [], excludedPaths: [{ path: "/*" }] } });
    await database.containers.create({ id: "more", partitionKey: "/x" });
    await other.delete();
    await database.containers.create({ id: "unique", partitionKey: "/other" });
}

/** The same containers through another client. */
const through = (client, id) => {
    const database = client.database(id);
    return { database, container: database.container("orders"), other: database.container("unique") };
};

test("everything that a database has comes back, with its ids, times and ETags", async (t) => {
    const server = await startServer(t, { args: ["--durability", "relaxed"] });
    let client = clientOf(server);
    let prepared = await prepare(client, "shop");
    const { database: neighbour } = await client.databases.create({ id: "neighbour" });
    const { container: busy } = await neighbour.containers.create({ id: "busy", partitionKey: "/pk" });
    const before = await observe(client, "shop");
    assert.equal((await save(server, "shop", "seeded")).status, 201);
    const comesBack = async (what) => {
        await succeed(restore(server, "shop", "seeded"));
        assert.deepEqual(await observe(client, "shop"), before, what);
    };
    const restart = async () => {
        await server.restart(); // it has another port now
        client = clientOf(server);
        prepared = through(client, "shop");
    };

    // Another database is written to meanwhile, and none of its writes is lost.
    let isOver = false;
    let written = 0;
    const working = (async () => {
        for (; !isOver; written++) await busy.items.create(itemOf(written));
    })();
    try {
        await change(prepared);
        assert.notDeepEqual(await observe(client, "shop"), before);
        await comesBack("after changes");
        await prepared.container.items.create({ id: "works", pk: "k1", n: 1 });
        await assert.rejects(prepared.other.items.create({ id: "again", pk: "k1", n: 1 }), { code: 409 }); // unique
        const { resource } = await prepared.container.scripts.storedProcedure("p").execute("k1", []);
        assert.equal(resource, 1);
    } finally {
        isOver = true;
        await working;
    }
    const { resources } = await busy.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll();
    assert.deepEqual(resources, [written]);

    await restart();
    await change(prepared);
    await restart();
    await comesBack("after restarts");
    await prepared.container.delete();
    await prepared.other.delete();
    await comesBack("after containers were deleted");
    await prepared.database.delete();
    await comesBack("after the database was deleted");
    await prepared.database.delete();
    await client.databases.create({ id: "shop" });
    await restart();
    await comesBack("after another of its name was made");
    await server.stop();
    checkFolder(server);
});

test("items come back to partitions that were split and merged since", async (t) => {
    const server = await startServer(t, { args: SMALL });
    const client = clientOf(server);
    const { database, container } = await prepare(client, "shop");
    const offerOf = (world) => delete world.containers.orders.offer && world; // it is what changes
    const before = offerOf(await observe(client, "shop"));
    await succeed(save(server, "shop", "seeded"));
    for (const partitions of [3, 1]) {
        for (let i = 0; i < 60; i++) await container.items.upsert({ ...itemOf(i), n: -i });
        await setPartitions(container, partitions);
        for (let i = 60; i < 90; i++) await container.item(`i${i}`, `k${i % 20}`).delete();
        await waitForPartitions(container, partitions);
        for (let i = 0; i < 30; i++) await container.items.create({ ...itemOf(i), id: `new${partitions}-${i}` });
        await container.item("i100", "k0").delete();
        await succeed(restore(server, "shop", "seeded"));
        assert.deepEqual(offerOf(await observe(client, "shop")), before);
    }
    await database.containers.readAll().fetchAll();
    await server.stop();
    checkFolder(server);
});

test("readers see all of a restore or nothing of it, and writes wait for it", async (t) => {
    const server = await startServer(t, { args: ["--durability", "relaxed"] });
    const client = clientOf(server);
    const { database } = await client.databases.create({ id: "shop" });
    const { container } = await database.containers.create({ id: "c", partitionKey: "/pk", throughput: 20_000 });
    const values = (v) => times(50, (i) => ({ id: `i${i}`, pk: "one", n: v }));
    await fill(container, values(0));
    await succeed(save(server, "shop", "zero"));
    let isOver = false;
    const seen = new Set();
    const reading = (async () => {
        const query = container.items.query("SELECT DISTINCT VALUE c.n FROM c", { partitionKey: "one" });
        while (!isOver) {
            query.reset();
            const { resources } = await query.fetchAll();
            assert.equal(resources.length, 1, `a mix: ${resources}`);
            seen.add(resources[0]);
        }
    })();
    let counted = 0;
    const writing = (async () => {
        for (; !isOver; counted++) await container.items.upsert({ id: `w${counted}`, pk: "two", n: 0 });
    })();
    for (let round = 1; round <= 25; round++) {
        await container.items.batch(
            values(round).map((resourceBody) => ({ operationType: "Upsert", resourceBody })),
            "one",
        );
        await succeed(restore(server, "shop", "zero"));
    }
    isOver = true;
    await Promise.all([reading, writing]);
    assert.ok(seen.has(0) && counted > 0);
});

for (const isServerless of [false, true]) {
    test(`a database ${isServerless ? "of a serverless account" : "with shared throughput"} comes back`, async (t) => {
        const args = ["--durability", "relaxed", ...(isServerless ? ["--serverless"] : [])];
        const server = await startServer(t, { args, isThrottled: true });
        const client = clientOf(server);
        const { database } = await client.databases.create({ id: "shop", ...(isServerless ? {} : { throughput: 1000 }) });
        const partitionKey = { paths: ["/pk", "/n"], kind: "MultiHash", version: 2 };
        const { container: keys } = await database.containers.create({ id: "keys", partitionKey });
        const changeFeedPolicy = { retentionDuration: 60 };
        const { container: kept } = await database.containers.create({ id: "kept", partitionKey: "/pk", defaultTtl: -1, changeFeedPolicy });
        await fill(kept, times(20, itemOf));
        await keys.items.create(itemOf(1));
        await succeed(save(server, "shop", "s"));
        const before = await observe(client, "shop");
        for (let round = 0; round < 2; round++) {
            await keys.delete();
            await kept.items.upsert({ ...itemOf(0), n: round });
            await kept.item("i2", "k2").delete();
            if (!isServerless) {
                const { resource } = await database.readOffer();
                await client.offer(resource.id).replace({ ...resource, content: { offerThroughput: 2000 + round * 100 } });
            }
            await succeed(restore(server, "shop", "s"));
            assert.deepEqual(await observe(client, "shop"), before);
            await keys.items.create(itemOf(2));
        }
        await server.stop();
        checkFolder(server);
    });
}

test("names, bounds and keys are checked", async (t) => {
    const server = await startServer(t, { args: ["--durability", "relaxed"] });
    const client = clientOf(server);
    const { database } = await client.databases.create({ id: "a b" });
    const answers = async (asked, status) => {
        const answer = await asked;
        assert.equal(answer.status, status, answer.text);
    };
    await answers(save(server, "none", "s"), 404);
    await answers(restore(server, "a b", "s"), 404);
    await answers(drop(server, "a b", "s"), 404);
    for (const name of ["x".repeat(101), "a/b", "ü", "a b"]) await answers(save(server, "a b", name), 400);
    await answers(save(server, "a b", "x".repeat(100)), 201);
    await answers(save(server, "a b", "x".repeat(100)), 200);
    for (let i = 1; i < 16; i++) await answers(save(server, "a b", `s${i}`), 201);
    await answers(save(server, "a b", "one-too-many"), 403);
    assert.equal((await list(server, "?db=a%20b")).length, 16);
    assert.equal((await list(server, "?db=other")).length, 0);
    await answers(drop(server, "a b", "s1"), 204);
    await answers(save(server, "a b", "s16"), 201);
    await answers(call(server, { path: "/_orrery/snapshots?x=1", type: "", link: "" }), 400);
    await answers(call(server, { method: "PATCH", path: "/_orrery/dbs/x/snapshots/s", type: "dbs", link: "dbs/x" }), 404);
    await answers(call(server, { method: "PUT", path: "/_orrery/dbs/x/snapshots/s", type: "dbs", link: "dbs/y" }), 401);
    await database.delete();
    await answers(restore(server, "a b", "s2"), 200);
    await database.read();

    const cli = (...args) => run(["snapshot", ...args, "--endpoint", server.endpoint]);
    assert.equal(cli("save", "a b", "s2").status, 0);
    assert.match(cli("restore", "a b", "s2").stdout, /^Restored 's2' of database 'a b' in [\d.]+ ms\.$/m);
    assert.match(cli("list", "a b").stdout, /a b +s2 +/);
    assert.equal(cli("drop", "a b", "s2").status, 0);
    const gone = cli("drop", "a b", "s2");
    assert.equal(gone.status, 1);
    assert.match(gone.stderr, /there is no snapshot 's2'/);
    for (const wrong of [[], ["sav", "x", "y"], ["save", "x"], ["list", "x", "y"], ["drop", "x", "y", "z"]])
        assert.equal(cli(...wrong).status, 2, wrong.join(" "));
});

const STEPS = Number(process.env.ORRERY_TEST_SNAPSHOT_STEPS ?? 120);

test(`${STEPS} random changes, saves and restores end where they should`, { timeout: STEPS * 2000 }, async (t) => {
    const seed = chooseSeed();
    t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
    const random = new Random(seed);
    const server = await startServer(t, { args: SMALL });
    let client = clientOf(server);
    let database = client.database("shop");
    const saved = new Map();
    let made = 0;
    await client.databases.create({ id: "shop" });
    await database.containers.create({ id: "c0", partitionKey: "/pk" });
    const ignoring = (promise) => promise.catch((error) => assert.ok([404, 409, 429].includes(error.code), `${error}`));
    const containers = async () => (await database.containers.readAll().fetchAll()).resources.map(({ id }) => id);
    const anyContainer = async () => {
        const ids = await containers();
        return ids.length === 0 ? null : database.container(random.pick(ids));
    };
    const newContainer = () =>
        database.containers.create({
            id: `c${random.below(4)}`,
            partitionKey: "/pk",
            throughput: 400,
            ...(random.chance(30) ? { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/n"] }] } } : {}),
        });
    const item = () => ({ id: `i${random.below(40)}`, pk: `k${random.below(4)}`, n: random.below(200), made: made++ });
    const steps = [
        [60, async (c) => { for (let i = 0; i < 8; i++) await ignoring(c.items.upsert(item())); }],
        [20, async (c) => ignoring(c.item(`i${random.below(40)}`, `k${random.below(4)}`).delete())],
        [5, async (c) => ignoring(c.deleteAllItemsForPartitionKey(`k${random.below(4)}`))],
        [8, async () => ignoring(newContainer())],
        [4, async (c) => c.delete()],
        [4, async (c) => ignoring(c.scripts.storedProcedures.create({ id: `p${random.below(3)}`, body: `f${made++}` }))],
        [3, async () => ignoring(database.users.create({ id: `u${random.below(3)}` }))],
        [4, async (c) => {
            const { resource } = await c.read();
            await c.replace({ ...resource, defaultTtl: random.chance(50) ? -1 : 100_000 + random.below(10) });
        }],
        [3, async (c) => ignoring(setPartitions(c, 1 + random.below(3)))],
        [10, async () => {
            const name = `s${random.below(4)}`;
            await succeed(save(server, "shop", name));
            saved.set(name, await observe(client, "shop"));
        }],
        [14, async () => {
            if (saved.size === 0) return;
            const name = random.pick([...saved.keys()]);
            await succeed(restore(server, "shop", name));
            assert.deepEqual(await observe(client, "shop"), saved.get(name), `${name} came back as something else`);
        }],
        [2, async () => {
            const [name] = saved.keys();
            if (name) await succeed(drop(server, "shop", name));
            saved.delete(name);
        }],
        [1, async () => {
            await server.restart(); // it has another port now
            client = clientOf(server);
            database = client.database("shop");
        }],
    ];
    const sum = steps.reduce((total, [weight]) => total + weight, 0);
    for (let step = 0; step < STEPS; step++) {
        let dice = random.below(sum);
        const [, act] = steps.find(([weight]) => (dice -= weight) < 0);
        const container = await anyContainer();
        if (container) await act(container);
        else await newContainer();
    }
    for (const [name, expected] of saved) {
        await succeed(restore(server, "shop", name));
        assert.deepEqual(await observe(client, "shop"), expected);
    }
    for (const name of saved.keys()) await succeed(drop(server, "shop", name));
    await until(async () => (await list(server)).length === 0);
    await server.stop();
    checkFolder(server);
});

test("a container that a copy has replaced comes back under its name, and can be written to", async (t) => {
    const server = await startServer(t, { args: ["--durability", "relaxed"] });
    const client = clientOf(server);
    const { container } = await prepare(client, "shop");
    const before = await observe(client, "shop");
    assert.equal((await save(server, "shop", "seeded")).status, 201);
    await transferred("copy", server, container, ["--quiet", "--swap", "--partition-key", "/n"]);
    assert.deepEqual((await container.read()).resource.partitionKey.paths, ["/n"]);
    for (let round = 0; round < 2; round++) {
        await succeed(restore(server, "shop", "seeded"));
        assert.deepEqual(await observe(client, "shop"), before);
        const fresh = clientOf(server).database("shop").container("orders");
        await fresh.items.upsert(itemOf(1));
        await fresh.items.create({ ...itemOf(1), id: "more" });
    }
    const { container: again } = through(clientOf(server), "shop");
    await transferred("copy", server, again, ["--quiet", "--swap", "--partition-key", "/n"]);
    await succeed(drop(server, "shop", "seeded"));
    await server.stop();
    checkFolder(server);
});
