// What the items of one partition key may have together, what happens at that limit, and what the
// server says of the room that is used. The limit is 20 GB; here it is a few kilobytes.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import {
    afterRestart,
    callItems,
    listAll,
    newContainer,
    ownContainer,
    pathOf,
    SIZES,
    storedCount,
    until,
} from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, sharedServer } from "./lib/server.mjs";
import { call, unique } from "./lib/wire.mjs";

const KB = 1024;
const ARGS = ["--durability", "relaxed", "--logical-partition-max", "16K"];
const FULL = { substatus: 1014, message: /Partition key reached maximum size of 16 KB/ };

const server = await sharedServer({ args: ARGS });
const { database } = await clientOf(server).databases.create({ id: "limits" });

/** An item that takes about `bytes` bytes. */
const item = (id, pk, bytes, more = {}) => ({ id, pk, text: "x".repeat(bytes), ...more });

/** Puts items of a kilobyte until one is refused; returns how many were taken. */
async function fillUp(container, pk, prefix = "f") {
    for (let count = 0; ; count++) {
        try {
            await container.items.create(item(`${prefix}${count}`, pk, KB));
        } catch (error) {
            assert.equal(error.code, 403, error.message);
            assert.equal(error.substatus, 1014);
            return count;
        }
    }
}

for (const size of SIZES) {
    test(`a full key takes nothing more, and others do (${size.partitions} partitions)`, async () => {
        const container = await newContainer(database, size);
        const count = await fillUp(container, "a");
        // An item has a header and a key besides its text.
        assert.ok(count >= 14 && count <= 15, `${count} items`);
        const before = await listAll(server, container);

        const error = await refused(container.items.create(item("more", "a", KB)), 403, FULL);
        assert.equal(error.substatus, 1014);
        await refused(container.items.upsert(item("more", "a", KB)), 403, FULL);
        await refused(container.items.upsert(item("f0", "a", 3 * KB)), 403, FULL);
        await refused(container.item("f0", "a").replace(item("f0", "a", 3 * KB)), 403, FULL);
        const growth = [{ op: "add", path: "/other", value: "y".repeat(2 * KB) }];
        await refused(container.item("f0", "a").patch(growth), 403, FULL);
        const after = await listAll(server, container);
        assert.deepEqual(after, before);

        for (const pk of ["b", "c", 1, null]) {
            assert.equal((await container.items.create(item("other", pk, 4 * KB))).statusCode, 201);
            await container.items.upsert(item("other", pk, 8 * KB));
        }
    });
}

test("deletes and what makes items smaller work, and make room", async () => {
    const container = await newContainer(database);
    const count = await fillUp(container, "a");
    assert.equal((await container.item("f0", "a").replace(item("f0", "a", KB))).statusCode, 200);
    await container.item("f1", "a").replace(item("f1", "a", 100));
    await container.item("f2", "a").patch([{ op: "remove", path: "/text" }]);
    await container.items.upsert(item("f3", "a", 0));
    await container.items.create(item("new", "a", 2 * KB));
    await refused(container.items.create(item("newer", "a", 2 * KB)), 403, FULL);
    await container.item("f4", "a").delete();
    await container.item("f5", "a").delete();
    assert.equal((await container.items.create(item("newer", "a", 2 * KB))).statusCode, 201);
    for (let i = 6; i < count; i++) await container.item(`f${i}`, "a").delete();
    await fillUp(container, "a", "g");
    await refused(container.items.create(item("last", "a", 2 * KB)), 403, FULL);
});

test("a batch that would pass the limit changes nothing", async () => {
    const container = await newContainer(database);
    await container.items.create(item("old", "a", 10 * KB));
    const { result, code } = await container.items.batch(
        [
            { operationType: "Create", resourceBody: item("b1", "a", 4 * KB) },
            { operationType: "Create", resourceBody: item("b2", "a", 4 * KB) },
            { operationType: "Delete", id: "old" },
        ],
        "a",
    );
    assert.equal(code, 207);
    assert.deepEqual(
        result.map(({ statusCode }) => statusCode),
        [424, 403, 424],
    );
    assert.deepEqual(
        (await listAll(server, container)).map(({ id }) => id),
        ["old"],
    );
    // In another order there is room.
    const again = await container.items.batch(
        [
            { operationType: "Delete", id: "old" },
            { operationType: "Create", resourceBody: item("b1", "a", 4 * KB) },
            { operationType: "Upsert", resourceBody: item("b2", "a", 4 * KB) },
            { operationType: "Replace", id: "b1", resourceBody: item("b1", "a", 10 * KB) },
        ],
        "a",
    );
    assert.deepEqual(
        again.result.map(({ statusCode }) => statusCode),
        [204, 201, 201, 200],
    );
});

test("in bulk only what is too much is refused", async () => {
    const container = await newContainer(database, SIZES[1]);
    const operations = ["a", "b", "c", "d"].flatMap((pk) =>
        Array.from({ length: 6 }, (_, i) => ({
            operationType: "Create",
            partitionKey: pk,
            resourceBody: item(`i${i}`, pk, pk === "a" ? 4 * KB : KB),
        })),
    );
    const results = await container.items.bulk(operations, { continueOnError: true });
    const codes = (from, to) => results.slice(from, to).map(({ statusCode }) => statusCode);
    assert.deepEqual(codes(0, 6).sort(), [201, 201, 201, 403, 403, 403]);
    assert.deepEqual(codes(6, 24), Array(18).fill(201));
});

test("many writers at once do not pass the limit together", async () => {
    const container = await newContainer(database);
    const writes = Array.from({ length: 100 }, (_, i) =>
        container.items.create(item(`i${i}`, "a", KB)).then(
            () => 201,
            (error) => error.code,
        ),
    );
    const codes = await Promise.all(writes);
    const made = codes.filter((code) => code === 201).length;
    assert.ok(made >= 14 && made <= 15, `${made} items`);
    assert.equal(codes.filter((code) => code === 403).length, 100 - made);
    assert.equal((await listAll(server, container)).length, made);
});

test("what has expired makes room", async () => {
    const container = await newContainer(database, SIZES[0], { defaultTtl: -1 });
    await container.items.create(item("mortal", "a", 12 * KB, { ttl: 1 }));
    await refused(container.items.create(item("new", "a", 12 * KB)), 403, FULL);
    await until(async () => (await storedCount(server, container)) === 0);
    assert.equal((await container.items.create(item("new", "a", 12 * KB))).statusCode, 201);
});

test("what was deleted with its partition key makes room", async () => {
    const container = await newContainer(database);
    await fillUp(container, "a");
    await container.items.create(item("stays", "b", 12 * KB));
    await container.deleteAllItemsForPartitionKey("a");
    await until(async () => (await storedCount(server, container)) === 1);
    assert.ok((await fillUp(container, "a", "g")) >= 14);
    await refused(container.items.create(item("more", "b", 12 * KB)), 403, FULL);
});

test("each whole value of a hierarchical key has its own limit", async () => {
    const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
    const container = await newContainer(database, SIZES[0], { partitionKey });
    const big = (id, tenant, user) => ({ id, tenant, user, text: "x".repeat(10 * KB) });
    await container.items.create(big("1", "t", "u"));
    await refused(container.items.create(big("2", "t", "u")), 403, FULL);
    await container.items.create(big("2", "t", "v"));
    await container.items.create(big("2", "t"));
});

test("an old-style container may hold half of it", async () => {
    const id = unique("legacy");
    const created = await call(server, {
        method: "POST",
        path: `/dbs/${database.id}/colls`,
        headers: { "x-ms-version": "2018-06-18" },
        body: { id },
    });
    assert.equal(created.status, 201, created.text);
    const container = database.container(id);
    const post = (body) => callItems(server, container, { method: "POST", body });
    assert.equal((await post(item("a", "p", 5 * KB))).status, 201);
    errorAnswer(await post(item("b", "q", 5 * KB)), 403, "Forbidden", {
        substatus: 1014,
        message: /Partition key reached maximum size of 8 KB/,
    });
    const quota = await quotaOf(server, container);
    assert.equal(quota.quota.collectionSize, 8);
    assert.equal(quota.usage.documentsCount, 1);
});

test("the limit holds after a restart and after a crash", async (t) => {
    const { server: own, container } = await ownContainer(t, SIZES[0], {}, ARGS);
    const count = await fillUp(container, "a");
    await container.items.create(item("x", "b", KB));
    let later = await afterRestart(own, container);
    await refused(later.items.create(item("more", "a", KB)), 403, FULL);
    await own.kill();
    await own.start();
    later = clientOf(own).database(container.database.id).container(container.id);
    await refused(later.items.create(item("more", "a", KB)), 403, FULL);
    await later.item("f0", "a").delete();
    await later.items.create(item("more", "a", KB));
    assert.equal((await listAll(own, later)).length, count + 1);
    await own.stop();
    const { status, stdout } = run(["check", "--data", own.data]);
    assert.equal(status, 0, stdout);
});

test("without a limit there is none", async (t) => {
    const args = ["--durability", "relaxed", "--logical-partition-max", "0"];
    const { container } = await ownContainer(t, SIZES[0], {}, args);
    for (let i = 0; i < 5; i++) await container.items.create(item(`i${i}`, "a", 1000 * KB));
});

// --- Quota and usage

const numbersOf = (header) =>
    Object.fromEntries(
        header
            .split(";")
            .filter((part) => part !== "")
            .map((part) => part.split("="))
            .map(([name, value]) => [name, Number(value)]),
    );

async function quotaOf(own, container) {
    const { headers } = await call(own, {
        path: pathOf(container),
        headers: { "x-ms-documentdb-populatequotainfo": "true" },
    });
    return {
        quota: numbersOf(headers["x-ms-resource-quota"]),
        usage: numbersOf(headers["x-ms-resource-usage"]),
    };
}

for (const size of SIZES) {
    test(`quota and usage of a container (${size.partitions} partitions)`, async () => {
        const container = await newContainer(database, size);
        const empty = await quotaOf(server, container);
        const gigabytes = 10; // whatever it may hold: this is what the service says
        assert.deepEqual(empty.quota, {
            documentSize: gigabytes * KB,
            documentsSize: gigabytes * KB * KB,
            documentsCount: -1,
            collectionSize: gigabytes * KB * KB,
        });
        assert.equal(empty.usage.documentsCount, 0);
        assert.equal(empty.usage.documentsSize, 0);
        for (let i = 0; i < 200; i++) await container.items.create(item(`i${i}`, `k${i}`, 10 * KB));
        const { usage } = await quotaOf(server, container);
        assert.equal(usage.documentsCount, 200);
        assert.ok(usage.documentsSize >= 2000 && usage.documentsSize < 2050, usage.documentsSize);
        assert.ok(usage.collectionSize >= usage.documentsSize);
        assert.equal(usage.documentSize, Math.floor(usage.collectionSize / KB));
        assert.equal(usage.storedProcedures, 0);
    });
}

test("an offer tells the most that was ever stored", async (t) => {
    const { server: own, container } = await ownContainer(t, SIZES[0], {}, ["--durability", "relaxed"]);
    const most = async (of) => {
        const { resource } = await of.readOffer();
        return resource.content.offerMinimumThroughputParameters.maxConsumedStorageEverInKB;
    };
    assert.equal(await most(container), 0);
    await container.items.create(item("a", "a", 100 * KB));
    await container.items.create(item("b", "b", 100 * KB));
    assert.equal(await most(container), 201);
    await container.item("a", "a").delete();
    assert.equal(await most(container), 201);
    assert.equal(await most(await afterRestart(own, container)), 201);
});

test("answers about items tell what their partition holds, if asked", async () => {
    const container = await newContainer(database);
    const headers = { "x-ms-documentdb-populatequotainfo": "true" };
    const post = { method: "POST", key: "a", body: item("1", "a", 4 * KB) };
    const plain = await callItems(server, container, post);
    assert.equal(plain.headers["x-ms-resource-usage"], undefined);
    const body = item("2", "a", 4 * KB);
    const made = await callItems(server, container, { ...post, headers, body });
    assert.equal(made.status, 201, made.text);
    const read = await callItems(server, container, { id: "2", key: "a", headers });
    for (const answer of [made, read]) {
        const usage = numbersOf(answer.headers["x-ms-resource-usage"]);
        assert.equal(usage.documentsCount, 2);
        assert.equal(usage.documentsSize, 9);
        assert.equal(usage.storedProcedures, undefined);
        assert.equal(numbersOf(answer.headers["x-ms-resource-quota"]).collectionSize, 10 * KB * KB);
    }
});
