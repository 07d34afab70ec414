// Disks that are full, read-only or damaged: writes fail with a clear error, nothing acknowledged is
// lost, reads go on where they can, and /healthz tells.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { statSync } from "node:fs";
import { Agent } from "node:http";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { KEY } from "./lib/definition.mjs";
import { damage, endOfLog, limitFiles, needsDisk, smallDisk, storeFiles } from "./lib/disk.mjs";
import { callItems, contentOf, listAll, newContainer, sameItems, storedCount, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer } from "./lib/server.mjs";
import { metric, send } from "./lib/wire.mjs";

// The least that the server makes of it: memtables of 4 MB. It wants room for 5 of them, and for all
// the data once more, so that a disk of this size is full with about 14 MB of data.
const CACHE = ["--cache", "8M"];
const LEFT_MB = 24;
const DISK_MB = 48;
const FULL = /the disk is full/;

const health = (server) => send(server.endpoint, { path: "/healthz" });

async function expectDegraded(server, reason) {
    const answer = await health(server);
    assert.equal(answer.status, 503, answer.text);
    assert.equal(answer.json.status, "degraded");
    assert.match(answer.json.reason, reason);
}

const isHealthy = async (server) => (await health(server)).status === 200;

// Text that cannot be compressed.
const text = (bytes) => randomBytes(bytes).toString("base64");

/** Creates items until the server refuses one, and returns what was acknowledged. */
async function fill(container, prefix, { pk = prefix, bytes = 300_000, items_max = 1000 } = {}) {
    const acknowledged = [];
    let refusal;
    let next = 0;
    const writer = async () => {
        while (!refusal && next < items_max) {
            const item = { id: `${prefix}${next++}`, pk, text: text(bytes) };
            try {
                await container.items.create(item);
                acknowledged.push(item);
            } catch (error) {
                refusal = error;
            }
        }
    };
    await Promise.all(Array.from({ length: 4 }, writer));
    assert.ok(refusal, `${items_max} items were written, and none refused`);
    return { acknowledged, refusal };
}

/** The same, and the space that background work frees afterwards is filled again. */
async function fillUp(disk, container, prefix) {
    const { acknowledged, refusal } = await fill(container, prefix);
    assert.equal(refusal.code, 503, refusal.message);
    assert.match(refusal.message, FULL);
    await disk.quiet();
    disk.leave(LEFT_MB);
    return acknowledged;
}

/** Near the border a write may be refused for a moment, while the background needs the room itself. */
function patiently(write) {
    return until(() =>
        write().then(
            () => true,
            (error) => assert.equal(error.code, 503, error.message),
        ),
    );
}

/** Every one of them, by content, from the list and one by one. */
async function expectItems(server, container, items) {
    sameItems(await listAll(server, container), items);
    for (const item of items) {
        const { resource } = await container.item(item.id, item.pk).read();
        assert.deepEqual(contentOf(resource), item);
    }
}

async function serverOn(disk, t) {
    const server = await startServer(t, { data: disk.data, within: disk.within, args: CACHE });
    const { database } = await clientOf(server).databases.createIfNotExists({ id: "faults" });
    return { server, database };
}

const sameContainer = (server, container) =>
    clientOf(server).database(container.database.id).container(container.id);

test("a full disk refuses what takes room and keeps everything", needsDisk(), async (t) => {
    const disk = await smallDisk(t, 2 * DISK_MB);
    disk.leave(DISK_MB);
    const { server, database } = await serverOn(disk, t);
    const container = await newContainer(database);
    const small = { id: "small", pk: "s", text: "x" };
    await container.items.create(small);
    const items = [small, ...(await fillUp(disk, container, "a"))];
    assert.ok(items.length > 20, `only ${items.length} items before the disk was full`);
    await expectDegraded(server, FULL);

    // The SDK tries an item once more, in case there is another region, and not again and again.
    const failures = 'orrery_requests_total{class="5xx"}';
    const before = await metric(server, failures);
    const writes = [
        () => container.items.create({ id: "new", pk: "s" }),
        () => container.items.upsert({ id: "new", pk: "s" }),
        () => container.item("small", "s").replace({ id: "small", pk: "s" }),
        () => container.item("small", "s").patch([{ op: "add", path: "/x", value: 1 }]),
        () => container.replace({ id: container.id, partitionKey: KEY, defaultTtl: 1 }),
        () => database.containers.create({ id: "new", partitionKey: "/pk" }),
        () => database.client.databases.create({ id: "new" }),
    ];
    for (const write of writes) await refused(write(), 503, { message: FULL });
    const sent = (await metric(server, failures)) - before;
    assert.ok(sent >= writes.length && sent <= 2 * writes.length, `${sent} requests were refused`);
    const body = { id: "new", pk: "s" };
    const raw = await callItems(server, container, { method: "POST", key: "s", body });
    errorAnswer(raw, 503, "ServiceUnavailable", { message: FULL });
    const operations = [
        { operationType: "Delete", id: "small" },
        { operationType: "Create", resourceBody: body },
    ];
    const { result } = await container.items.batch(operations, "s");
    assert.deepEqual(result.map(({ statusCode }) => statusCode), [424, 503]);
    await expectItems(server, container, items);

    await server.kill();
    await server.start();
    await expectItems(server, sameContainer(server, container), items);
    disk.release();
    await until(() => isHealthy(server));
    await sameContainer(server, container).items.create(body);
});

test("a full disk takes what makes room, and with the room the rest", needsDisk(), async (t) => {
    const disk = await smallDisk(t, DISK_MB);
    const { server, database } = await serverOn(disk, t);
    const [kept, bulk] = [await newContainer(database), await newContainer(database)];
    const mortal = await newContainer(database, undefined, { defaultTtl: -1 });
    const item = { id: "kept", pk: "s", text: text(1000) };
    await kept.items.create(item);
    for (let i = 0; i < 5; i++) await mortal.items.create({ id: `m${i}`, pk: "m", ttl: 1 });
    await mortal.items.create({ id: "stays", pk: "m" });
    let items = await fillUp(disk, bulk, "a");
    await until(async () => (await storedCount(server, mortal)) === 1);

    const dead = items.splice(0, Math.floor(items.length * 0.7));
    const [one, two, ...others] = dead.map(({ id }) => ({ operationType: "Delete", id }));
    await patiently(() => bulk.items.batch([one, two], "a"));
    for (const { id } of others) await patiently(() => bulk.item(id, "a").delete());
    await expectItems(server, bulk, items);
    await until(() => isHealthy(server));
    await patiently(() => kept.items.create({ ...item, id: "after the first" }));

    const second = await fillUp(disk, bulk, "b");
    await expectItems(server, bulk, [...items, ...second]);
    await patiently(() => bulk.deleteAllItemsForPartitionKey("a"));
    items = second;
    await expectItems(server, bulk, items);
    await until(() => isHealthy(server));
    await patiently(() => kept.items.create({ ...item, id: "after the second" }));

    items.push(...(await fillUp(disk, bulk, "c")));
    await expectItems(server, bulk, items);
    await patiently(() => bulk.delete());
    await until(() => isHealthy(server));
    await patiently(() => kept.items.create({ ...item, id: "after the third" }));

    await server.restart();
    const ids = ["kept", "after the first", "after the second", "after the third"];
    const last = ids.map((id) => ({ ...item, id }));
    await expectItems(server, sameContainer(server, kept), last);
});

test("a server whose disk is filled by others to the last byte lives on", needsDisk(), async (t) => {
    const disk = await smallDisk(t, 4 * DISK_MB);
    const { server, database } = await serverOn(disk, t);
    const container = await newContainer(database);
    const writing = fill(container, "a");
    await until(async () => (await storedCount(server, container)) > 10);
    disk.fill();
    const { acknowledged } = await writing;
    await expectDegraded(server, /cannot write|after a restart/);
    await expectItems(server, container, acknowledged);
    disk.release();
    await until(async () => (await isHealthy(server)) || /after a restart/.test((await health(server)).text));
    if (!(await isHealthy(server))) await server.restart();
    await container.items.create({ id: "new", pk: "s" });
    await expectItems(server, container, [...acknowledged, { id: "new", pk: "s" }]);
});

test("a server that starts on a full disk answers reads and says what is wrong", needsDisk(), async (t) => {
    const disk = await smallDisk(t, 64);
    const { server, database } = await serverOn(disk, t);
    const container = await newContainer(database);
    const item = { id: "a", pk: "a", text: text(1000) };
    await container.items.create(item);
    await server.stopWell();
    disk.leave(10);
    await server.start();
    await expectDegraded(server, FULL);
    const again = sameContainer(server, container);
    await expectItems(server, again, [item]);
    await refused(again.items.create({ id: "b", pk: "a" }), 503, { message: FULL });
    await again.item("a", "a").delete();
    disk.release();
    await until(() => isHealthy(server));
    await again.items.create({ id: "b", pk: "a" });

    // Without a byte to begin with there is no server, but a reason.
    await server.stopWell();
    disk.leave(0);
    const { status, stderr } = run(["serve", "--data", disk.data, "--port", "0"], { within: disk.within });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /^orrery: cannot open the data folder '.*': .*the disk is full/m);
});

test("a disk that turns read-only fails writes and nothing else", needsDisk(), async (t) => {
    const disk = await smallDisk(t, 256);
    const { server, database } = await serverOn(disk, t);
    const container = await newContainer(database);
    const first = { id: "first", pk: "f", text: text(1000) };
    await container.items.create(first);
    disk.makeReadOnly();

    // The log, which is open, still takes a few.
    const { acknowledged, refusal } = await fill(container, "a");
    assert.equal(refusal.code, 503, refusal.message);
    assert.match(refusal.message, /[Rr]ead-only/);
    assert.doesNotMatch(refusal.message, /\/(tmp|data|store)/, "clients are not told where the data is");
    await until(async () => !(await isHealthy(server)));
    await expectDegraded(server, /[Rr]ead-only|restart/);
    const all = [first, ...acknowledged];
    await expectItems(server, container, all);
    await refused(container.items.create({ id: "x", pk: "x" }), 503);
    await refused(container.item("first", "f").delete(), 503);
    await refused(container.delete(), 503);
    await expectItems(server, container, all);
    await server.stopWell();

    const { status, stderr } = run(["serve", "--data", disk.data, "--port", "0"], { within: disk.within });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /^orrery: cannot write to the data folder '.*\/store': Read-only file system$/m);

    disk.makeWritable();
    await server.start();
    const again = sameContainer(server, container);
    await expectItems(server, again, all);
    await again.items.create({ id: "x", pk: "x" });
    assert.ok(await isHealthy(server));
});

test("a log that cannot be written fails writes until a restart and nothing else", async (t) => {
    const server = await startServer(t, { args: CACHE });
    const { database } = await clientOf(server).databases.create({ id: "faults" });
    const container = await newContainer(database);
    limitFiles(server.pid, 1_500_000);
    const { acknowledged, refusal } = await fill(container, "a", { bytes: 50_000 });
    assert.equal(refusal.code, 503, refusal.message);
    assert.match(refusal.message, /cannot write/);
    assert.ok(acknowledged.length > 0);
    await expectDegraded(server, /cannot write|restart/);
    await expectItems(server, container, acknowledged);

    // The disk is well again, but what was written last may be half there.
    limitFiles(server.pid, null);
    await refused(container.items.create({ id: "x", pk: "x" }), 503, { message: /after a restart/ });
    await expectDegraded(server, /after a restart/);
    await server.restart();
    const again = sameContainer(server, container);
    await expectItems(server, again, acknowledged);
    await again.items.create({ id: "x", pk: "x" });
    assert.ok(await isHealthy(server));
});

/** Items of several keys in a server's table files, which has stopped then. */
async function writeTables(t, items) {
    const server = await startServer(t, { args: [...CACHE, "--durability", "relaxed"] });
    const { database } = await clientOf(server).databases.create({ id: "faults" });
    const container = await newContainer(database);
    const other = await newContainer(database);
    for (let i = 0; i < items.length; i += 50)
        await Promise.all(items.slice(i, i + 50).map((item) => container.items.create(item)));
    await other.items.create({ id: "other", pk: "o" });
    await server.stopWell();
    return { server, container, other };
}

test("a damaged block fails the reads that need it, and no others", async (t) => {
    const one = (_, i) => ({ id: `i${i}`, pk: `k${i % 10}`, text: text(1000) });
    const items = Array.from({ length: 800 }, one);
    const { server, container, other } = await writeTables(t, items);
    const [table] = storeFiles(server.data, ".sst");
    damage(table, Math.floor(statSync(table).size / 2));
    await server.start();
    assert.ok(await isHealthy(server), "nothing has been read yet");
    assert.equal((await health(server)).json.status, "ok");

    const again = sameContainer(server, container);
    const broken = [];
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    for (const item of items) {
        const answer = await callItems(server, again, { id: item.id, key: item.pk, agent });
        const { status, json, text: body } = answer;
        if (status === 200) {
            assert.deepEqual(contentOf(json), item);
            continue;
        }
        assert.equal(status, 500, body);
        broken.push(item);
    }
    t.diagnostic(`${broken.length} of ${items.length} items are in the damaged block`);
    assert.ok(broken.length > 0, "the damage was not found");
    assert.ok(broken.length < 50, `${broken.length} items cannot be read`);

    const message = /damaged|checksum/;
    const [{ id, pk }] = broken;
    await refused(again.item(id, pk).read(), 500, { message });
    const raw = await callItems(server, again, { id, key: pk });
    errorAnswer(raw, 500, "InternalServerError", { message });
    assert.doesNotMatch(raw.text, /\/(tmp|data|store)/, "clients are not told where the data is");
    await refused(again.items.readAll().fetchAll(), 500, { message });
    await refused(again.items.query("SELECT * FROM c").fetchAll(), 500, { message });

    // Requests that need the old version fail too; all others are served.
    await refused(again.items.upsert({ id, pk }), 500, { message });
    await refused(again.item(id, pk).delete(), 500, { message });
    const [well] = items.filter((item) => !broken.some(({ pk: key }) => key === item.pk));
    const same = items.filter((item) => item.pk === well.pk);
    sameItems(await listAll(server, again, { key: well.pk }), same);
    const fresh = { id: "fresh", pk: "fresh", text: "x" };
    await again.items.create(fresh);
    const elsewhere = sameContainer(server, other);
    await elsewhere.items.create(fresh);
    await expectItems(server, elsewhere, [{ id: "other", pk: "o" }, fresh]);

    // It takes writes, so it is no reason to send clients elsewhere, but it is one to look.
    const answer = await health(server);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json.status, "damaged");
    assert.match(answer.json.reason, message);
    assert.ok((await metric(server, "orrery_store_damaged_reads_total")) >= broken.length);
    await server.restart();
    assert.equal((await health(server)).json.status, "damaged", "it is remembered");
    const { resource } = await sameContainer(server, container).item("fresh", "fresh").read();
    assert.deepEqual(contentOf(resource), fresh);
});

test("damage in one container does not keep the others from being served", async (t) => {
    const server = await startServer(t, { args: [...CACHE, "--durability", "relaxed"] });
    const { database } = await clientOf(server).databases.create({ id: "faults" });
    const containers = [];
    const item = { id: "i", pk: "k", text: text(3000) };
    for (let i = 0; i < 40; i++) {
        containers.push(await newContainer(database));
        await containers[i].items.create(item);
    }
    await server.stopWell();
    const [table] = storeFiles(server.data, ".sst");
    damage(table, Math.floor(statSync(table).size * 0.7));
    await server.start();

    const found = { 200: 0, 500: 0 };
    for (const one of containers) {
        const container = sameContainer(server, one);
        const { status, text: body } = await callItems(server, container, { id: "i", key: "k" });
        found[status]++;
        if (status === 200) {
            await expectItems(server, container, [item]);
            await container.items.create({ id: "more", pk: "k" });
        } else {
            assert.equal(status, 500, body);
            await refused(container.items.readAll().fetchAll(), 500, { message: /damaged/ });
            await refused(container.items.create({ id: "more", pk: "k" }), 500, { message: /damaged/ });
        }
    }
    t.diagnostic(`${found[500]} of ${containers.length} containers are damaged`);
    assert.ok(found[500] > 0 && found[500] < 8, `${found[500]} containers are damaged`);
    assert.equal((await health(server)).json.status, "damaged");
});

test("a log that is damaged in its middle is not taken for a shorter one", async (t) => {
    const server = await startServer(t, { args: CACHE });
    const { database } = await clientOf(server).databases.create({ id: "faults" });
    const container = await newContainer(database);
    const items = Array.from({ length: 100 }, (_, i) => ({ id: `i${i}`, pk: "k", text: text(1000) }));
    for (const item of items) await container.items.create(item);
    await server.kill();

    // What a loss of power leaves at the end was never acknowledged.
    const [log] = storeFiles(server.data, ".log");
    damage(log, endOfLog(log), 300);
    await server.start();
    await expectItems(server, sameContainer(server, container), items);
    const more = { id: "more", pk: "k", text: text(1000) };
    const again = sameContainer(server, container);
    for (const item of [more, ...items.slice(0, 50)]) await again.items.upsert(item);
    items.push(more);
    await server.kill();

    const [next] = storeFiles(server.data, ".log");
    damage(next, Math.floor(endOfLog(next) / 2));
    const { status, stderr } = run(["serve", "--data", server.data, "--port", "0"]);
    assert.equal(status, 1, stderr);
    assert.match(stderr, /^orrery: .*\d+\.log.*damaged/m);
    assert.match(stderr, /--accept-lost-writes/);

    // With --accept-lost-writes the server starts with what was written before the damage.
    server.options.args = [...CACHE, "--accept-lost-writes"];
    await server.start();
    await expectItems(server, sameContainer(server, container), items);
    server.options.args = CACHE;
    await server.restart();
    await expectItems(server, sameContainer(server, container), items);
});
