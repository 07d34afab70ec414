// clients/test-kit: a server for tests is found, started, seeded, taken back to a snapshot, and never left behind.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import test from "node:test";

import { restore, seed, snapshot, startOrrery } from "../clients/test-kit/index.js";
import { until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { BINARY, ROOT, isRunning, temporaryFolder } from "./lib/server.mjs";

const KIT = join(ROOT, "clients/test-kit");
const SHOP = join(KIT, "examples/shop.json");
const tmp = temporaryFolder();
process.env.TMPDIR = tmp; // where the servers have their data
process.env.ORRERY = BINARY;
const left = () => readdirSync(tmp).filter((name) => name.startsWith("orrery-") && !name.startsWith("orrery-test-"));

test("a server is started with a seed file, serves the SDK, and leaves nothing", async (t) => {
    const orrery = await startOrrery({ seed: SHOP });
    t.after(() => orrery.stop());
    assert.match(orrery.endpoint, /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.equal(orrery.connectionString, `AccountEndpoint=${orrery.endpoint}/;AccountKey=${orrery.key};`);
    assert.ok(await until(() => /server\.ready/.test(orrery.log))); // a line after the endpoint
    assert.equal(left().length, 1);
    const orders = clientOf(orrery).database("shop").container("orders");
    assert.equal((await orders.item("1", "ada").read()).resource.total, 42);
    assert.match(await orrery.seed(SHOP), /Nothing was changed/);
    await orders.item("1", "ada").delete();
    assert.match(await seed(orrery, SHOP), /Items: 1 written, 1 unchanged/);
    const more = { databases: [{ id: "more", containers: [{ id: "c", partitionKey: "/pk", itemsFrom: ["a.jsonl"] }] }] };
    const folder = temporaryFolder();
    writeFileSync(join(folder, "a.jsonl"), '{"id":"1","pk":1}\n');
    assert.match(await orrery.seed(more, { folder }), /created {3}container more\/c/);
    await assert.rejects(orrery.seed({ databases: [{ id: "x", container: [] }] }), /did you mean 'containers'\?/);
    await orrery.stop();
    await orrery.stop();
    assert.ok(!isRunning(orrery.pid));
    assert.deepEqual(left(), []);
});

test("an object as a seed, a key of its own, more options, two servers at a time", async () => {
    const key = Buffer.alloc(64, 1).toString("base64");
    process.env.ORRERY_PORT = "1"; // an option for another server, which must not count here
    const servers = await Promise.all([
        startOrrery({ seed: JSON.parse(readFileSync(SHOP, "utf8")), key, args: ["--log-level", "error"] }),
        startOrrery({ isThrottled: true, binary: BINARY }),
    ]);
    delete process.env.ORRERY_PORT;
    assert.notEqual(servers[0].endpoint, servers[1].endpoint);
    assert.equal((await clientOf(servers[0]).database("shop").container("orders").items.readAll().fetchAll()).resources.length, 2);
    assert.deepEqual((await clientOf(servers[1]).databases.readAll().fetchAll()).resources, []);
    await Promise.all(servers.map((orrery) => orrery.stop()));
    assert.deepEqual(left(), []);
});

test("what goes wrong says why", async (t) => {
    await assert.rejects(startOrrery({ binary: "/nowhere/orrery" }), /there is no '\/nowhere\/orrery': name the program/);
    await assert.rejects(startOrrery({ args: ["--prot", "1"] }), /did you mean 'port'/);
    await assert.rejects(startOrrery({ seed: "/nowhere.json" }), /No such file/);
    await assert.rejects(startOrrery({ seed: { databases: [{}] } }), /'id' is missing/);
    await assert.rejects(startOrrery({ timeoutMs: 1 }), /was not ready within 1 ms/);
    assert.ok(await until(() => left().length === 0));
    // Without the option and the variable the program is looked for on the PATH.
    const folder = temporaryFolder();
    symlinkSync(BINARY, join(folder, "orrery"));
    const path = process.env.PATH;
    t.after(() => Object.assign(process.env, { ORRERY: BINARY, PATH: path }));
    delete process.env.ORRERY;
    process.env.PATH = `${folder}${delimiter}${path}`;
    await (await startOrrery()).stop();
});

/** Runs a script that starts a server and prints its pid; what it does next is `then`. */
function script(then) {
    const code = `const { startOrrery } = require(${JSON.stringify(KIT)});
        startOrrery().then((orrery) => { console.log(orrery.pid); ${then} });`;
    const child = spawn(process.execPath, ["-e", code], { env: process.env, stdio: ["ignore", "pipe", "inherit"] });
    child.server = new Promise((resolve) => child.stdout.once("data", (text) => resolve(Number(text))));
    child.ended = new Promise((resolve) => child.once("close", (status, signal) => resolve(status ?? signal)));
    return child;
}

test("a server ends with the test process: one that forgets it, one that fails, one that is killed", async (t) => {
    for (const [then, how] of [["", 0], ["process.exit(3)", 3], ["setInterval(() => {}, 1000)", "SIGKILL"]]) {
        const child = script(then);
        t.after(() => child.kill("SIGKILL"));
        const pid = await child.server;
        if (how === "SIGKILL") child.kill(how);
        assert.equal(await child.ended, how);
        assert.ok(await until(() => !isRunning(pid) && left().length === 0));
    }
});

test("a database is saved and taken back", async (t) => {
    const orrery = await startOrrery({ seed: SHOP });
    t.after(() => orrery.stop());
    try {
        await orrery.snapshots();
    } catch (error) {
        if (!/: 404 /.test(error.message)) throw error;
        return t.skip("this server has no snapshots");
    }
    const orders = clientOf(orrery).database("shop").container("orders");
    const ids = async () => (await orders.items.readAll().fetchAll()).resources.map(({ id }) => id).sort();
    await snapshot(orrery, "shop");
    await orders.item("1", "ada").delete();
    await orders.items.create({ id: "3", customer: "eve" });
    assert.deepEqual(await ids(), ["2", "3"]);
    await restore(orrery, "shop");
    assert.deepEqual(await ids(), ["1", "2"]);
    await orders.items.create({ id: "4", customer: "eve" });
    await orrery.snapshot("shop", "four");
    await orrery.restore("shop");
    assert.deepEqual(await ids(), ["1", "2"]);
    await orrery.restore("shop", "four");
    assert.deepEqual(await ids(), ["1", "2", "4"]);
    assert.match(JSON.stringify(await orrery.snapshots()), /four/);
    await orrery.dropSnapshot("shop", "four");
    await assert.rejects(orrery.restore("shop", "four"), / 404 /);
    await assert.rejects(orrery.snapshot("nowhere"), / 404 /);

    // The example for node:test, as it stands: beside this file, where the SDK is found.
    const folder = join(temporaryFolder(), "project");
    mkdirSync(join(folder, "node_modules"), { recursive: true });
    symlinkSync(KIT, join(folder, "node_modules/orrery-test-kit"));
    symlinkSync(join(ROOT, "test/node_modules/@azure"), join(folder, "node_modules/@azure"));
    for (const name of ["shop.json", "node.test.mjs"]) writeFileSync(join(folder, name), readFileSync(join(KIT, "examples", name)));
    const { NODE_TEST_CONTEXT: _, ...env } = process.env; // it is a run of its own
    const ran = spawnSync(process.execPath, ["--test", "node.test.mjs"], { cwd: folder, env, encoding: "utf8", timeout: 60_000 });
    assert.equal(ran.status, 0, ran.stdout);
    assert.match(ran.stdout, /pass 2/);
});
