// The change feed, all versions and deletes: every operation on every item, in order, for as long as it is kept.
import assert from "node:assert/strict";
import test, { describe } from "node:test";

import { ChangeFeedMode, ChangeFeedPolicy, ChangeFeedRetentionTimeSpan, ChangeFeedStartFrom } from "@azure/cosmos";

import { errorAnswer, ids, refused } from "./lib/check.mjs";
import { KEY, times } from "./lib/definition.mjs";
import {
    LATEST,
    VERSIONS,
    askFeed,
    checkChain,
    checkEntry,
    currentLsn,
    drainFeed,
    drainVersions,
    feedPage,
    followVersions as follow,
    pageOf,
    pull,
    told,
    withoutLsn,
} from "./lib/feed.mjs";
import { callItems, newContainer, ownContainer, storedCount, until } from "./lib/items.mjs";
import { execute, flow, trigger } from "./lib/scripts.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "versions" });

const { Beginning, Continuation, Now, Time } = ChangeFeedStartFrom;
const ONE = { throughput: 400 };
const FOUR = { throughput: 21_000 };
const changeFeedPolicy = { retentionDuration: 10 };
const HIERARCHY = { paths: ["/name", "/zip", "/state"], kind: "MultiHash", version: 2 };

const DISABLED = /^(?=.*All Versions and Deletes)(?=.*must be enabled)/s;
const RETENTION = /You must read the change feed from within the retention period\./;
const BEGINNING = /Start from beginning is not supported with 'All Versions and Deletes' mode\./;

/** A container that keeps all versions. */
const keeping = (size = ONE, more = {}) => newContainer(database, size, { changeFeedPolicy, ...more });

/** Reads all entries by hand. */
const versionsOf = (container, options, on = server) => drainVersions(on, container, options);

// --- The policy

test("the policy is returned as it was sent, and may be changed", async () => {
    const policy = new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(5));
    const body = { id: unique("c"), partitionKey: KEY, changeFeedPolicy: policy };
    const { container, resource } = await database.containers.create(body);
    assert.deepEqual(resource.changeFeedPolicy, { retentionDuration: 5 });
    for (const minutes of [7, 0, 1440]) {
        const { resource: before } = await container.read();
        const replaced = await container.replace({ ...before, changeFeedPolicy: { retentionDuration: minutes } });
        assert.deepEqual(replaced.resource.changeFeedPolicy, { retentionDuration: minutes });
        assert.deepEqual((await container.read()).resource.changeFeedPolicy, { retentionDuration: minutes });
    }
    for (const retentionDuration of [-1, 1.5, "5"])
        await refused(database.containers.create({ ...body, id: unique("c"), changeFeedPolicy: { retentionDuration } }), 400);
    const { resource: without } = await database.containers.create({ ...body, id: unique("c"), changeFeedPolicy: undefined });
    assert.equal(without.changeFeedPolicy, undefined);
});

test("without a policy the mode must be enabled", async () => {
    for (const more of [{}, { changeFeedPolicy: { retentionDuration: 0 } }]) {
        const container = await newContainer(database, ONE, more);
        await container.items.create({ id: "a", pk: "p" });
        for (const scope of [undefined, "p", (await container.getFeedRanges())[0]])
            for (const start of [Now(scope), Beginning(scope)]) {
                const error = await refused(follow(container, start).readNext(), 400, { message: DISABLED });
                assert.ok(!RETENTION.test(error.message), error.message);
            }
        for (const etag of ["*", '"1"', '"2"', undefined])
            errorAnswer(await askFeed(server, container, { range: "0", mode: VERSIONS, etag }), 400, "BadRequest", { message: DISABLED });
        assert.equal((await pull(container.items.getChangeFeedIterator({ changeFeedStartFrom: Beginning() }))).items.length, 1);
    }
});

test("neither the beginning nor a time can be read from, in any scope", async () => {
    const container = await keeping(FOUR, { partitionKey: HIERARCHY });
    await container.items.create({ id: "a", name: "n", zip: 1, state: "s" });
    const [range] = await container.getFeedRanges();
    const scopes = [undefined, range, ["n", 1, "s"], ["n", 1], ["n"]];
    for (const scope of scopes)
        for (const start of [Beginning(scope), Time(new Date(Date.now() - 60_000), scope), Time(new Date(Date.now() + 60_000), scope)]) {
            const error = await refused(follow(container, start).readNext(), 400, { message: RETENTION });
            assert.match(error.message, BEGINNING);
            assert.ok(!/must be enabled/.test(error.message), "clients tell the two refusals apart by this");
        }
});

test("a container that begins to keep versions later has those from then on", async () => {
    const container = await newContainer(database, ONE);
    for (let i = 0; i < 5; i++) await container.items.create({ id: `i${i}`, pk: "p" });
    const { resource: definition } = await container.read();
    await container.replace({ ...definition, changeFeedPolicy });
    const { etag, items } = await versionsOf(container, { range: "0", etag: "*" });
    assert.deepEqual([etag, items], ['"6"', []]);
    // What was before that was not kept, so a position there is out of the retention period.
    for (const old of ['"1"', '"3"'])
        errorAnswer(await askFeed(server, container, { range: "0", mode: VERSIONS, etag: old }), 400, "BadRequest", { message: RETENTION });
    await container.items.upsert({ id: "i1", pk: "p", n: 1 });
    await container.item("i2", "p").delete();
    await container.items.create({ id: "new", pk: "p" });
    const { items: later } = await versionsOf(container, { range: "0", etag });
    assert.deepEqual(told(later), ["replace i1", "delete i2", "create new"]);
    assert.deepEqual(later.map(({ metadata }) => metadata.previousImageLSN), [3, 4, undefined]);
    await container.replace({ ...definition, changeFeedPolicy: { retentionDuration: 0 } });
    errorAnswer(await askFeed(server, container, { range: "0", mode: VERSIONS, etag }), 400, "BadRequest", { message: DISABLED });
    assert.equal((await drainFeed(server, container, { range: "0" })).items.length, 5);
});

// --- Entries

test("a create, a replace and a delete have exactly their members", async () => {
    const container = await keeping();
    const { resource: one } = await container.items.create({ id: "1", pk: "p", v: 1, deep: { list: [1, null, "ä"] } });
    const { resource: two } = await container.item("1", "p").replace({ id: "1", pk: "p", v: 2 });
    const before_s = Math.floor(Date.now() / 1000);
    await container.item("1", "p").delete();
    const after_s = Math.floor(Date.now() / 1000);
    for (const scope of [{ range: "0" }, { key: "p" }, { range: "0", interval: { minInclusive: "", maxExclusive: "FF" } }, { range: "0", wire: false }]) {
        const { items, pages } = await versionsOf(container, { ...scope, etag: '"1"' });
        const { crts } = items[2].metadata;
        assert.ok(crts >= before_s && crts <= after_s, `${before_s} <= ${crts} <= ${after_s}`);
        assert.deepEqual(items, [
            { current: one, metadata: { lsn: 2, crts: one._ts, operationType: "create" } },
            { current: two, metadata: { lsn: 3, crts: two._ts, operationType: "replace", previousImageLSN: 2 } },
            {
                current: {},
                previous: two,
                metadata: { lsn: 4, crts, operationType: "delete", previousImageLSN: 3, id: "1", partitionKey: { pk: "p" } },
            },
        ]);
        assert.equal(pages.length, 1);
        assert.equal(pages[0].answer.json._rid, (await container.read()).resource._rid);
    }
});

test("the operations of an entry are those of the requests", async () => {
    const container = await keeping();
    const item = container.item("a", "p");
    const steps = [
        ["create a", () => container.items.upsert({ id: "a", pk: "p" })],
        ["replace a", () => container.items.upsert({ id: "a", pk: "p", n: 1 })],
        ["replace a", () => item.patch([{ op: "incr", path: "/n", value: 1 }])],
        ["replace a", () => item.replace({ id: "a", pk: "p", n: 5 })],
        ["replace a", () => item.replace({ id: "a", pk: "p", n: 5 })],
        ["delete a", () => item.delete()],
        ["create a", () => container.items.create({ id: "a", pk: "p" })],
        ["create b", () => container.items.bulk([{ operationType: "Create", resourceBody: { id: "b", pk: "p" } }])],
        ["replace b", () => container.items.bulk([{ operationType: "Upsert", resourceBody: { id: "b", pk: "p", n: 2 } }])],
        ["delete b", () => container.items.bulk([{ operationType: "Delete", id: "b", partitionKey: "p" }])],
    ];
    let etag = '"1"';
    for (const [expected, work] of steps) {
        await work();
        const { items, etag: next } = await versionsOf(container, { range: "0", etag });
        assert.deepEqual(told(items), [expected]);
        etag = next;
    }
    // What fails or reads leaves nothing.
    await refused(container.items.create({ id: "a", pk: "p" }), 409);
    await refused(item.replace({ id: "a", pk: "p" }, { accessCondition: { type: "IfMatch", condition: '"x"' } }), 412);
    await refused(container.item("b", "p").delete(), 404);
    await item.read();
    assert.equal((await feedPage(server, container, { range: "0", mode: VERSIONS, etag })).etag, etag);
    const { items } = await versionsOf(container, { range: "0", etag: '"1"' });
    checkChain(items);
    assert.deepEqual(told(items), steps.map(([expected]) => expected));
    assert.deepEqual(items.map(({ metadata }) => metadata.lsn), steps.map((_, i) => i + 2));
});

test("upserts of two items and a delete, in the container and in one key", async () => {
    const container = await keeping();
    const now = follow(container, Now());
    const ofKey = follow(container, Now("p"));
    const { continuationToken } = await now.readNext();
    assert.ok(continuationToken, "the first 304 has a token");
    await ofKey.readNext();
    await container.items.upsert({ id: "other", pk: "q" });
    await container.items.upsert({ id: "a", pk: "p", n: 1 });
    await container.items.upsert({ id: "a", pk: "p", n: 2 });
    await container.item("a", "p").delete();
    for (const iterator of [now, follow(container, Continuation(continuationToken))]) {
        const { items } = await pull(iterator);
        checkChain(items);
        assert.deepEqual(told(items), ["create other", "create a", "replace a", "delete a"]);
    }
    const { items } = await pull(ofKey);
    assert.deepEqual(told(items), ["create a", "replace a", "delete a"]);
    assert.deepEqual(items[2].previous.n, 2);
    assert.deepEqual(items[2].metadata.partitionKey, { pk: "p" });
});

test("a batch is one transaction, with an entry for each operation", async () => {
    const container = await keeping();
    await container.items.create({ id: "old", pk: "p", n: 0 });
    const { result, code } = await container.items.batch(
        [
            { operationType: "Create", resourceBody: { id: "a", pk: "p" } },
            { operationType: "Read", id: "old" },
            { operationType: "Replace", id: "old", resourceBody: { id: "old", pk: "p", n: 1 } },
            { operationType: "Upsert", resourceBody: { id: "b", pk: "p" } },
            { operationType: "Patch", id: "old", resourceBody: { operations: [{ op: "incr", path: "/n", value: 1 }] } },
            { operationType: "Delete", id: "a" },
        ],
        "p",
    );
    assert.equal(code, 200, JSON.stringify(result));
    await container.items.create({ id: "after", pk: "p" });
    const expected = ["create a", "replace old", "create b", "replace old", "delete a"];
    for (const size of [undefined, 1, 3]) {
        const { items, pages } = await versionsOf(container, { range: "0", etag: '"2"', size });
        assert.deepEqual(told(items), [...expected, "create after"]);
        assert.deepEqual(items.map(({ metadata }) => metadata.lsn), [3, 3, 3, 3, 3, 4]);
        assert.deepEqual(items.slice(0, 5).map(({ metadata }) => metadata.previousImageLSN ?? 0), [0, 2, 0, 3, 3]);
        assert.deepEqual(items.map(({ current }) => current.n), [undefined, 1, undefined, 2, undefined, undefined]);
        assert.deepEqual(pages.map((page) => page.items.length), size === undefined ? [6] : [5, 1], "it is never cut");
        for (const entry of items) checkEntry(entry);
    }
    await container.items.batch(
        [
            { operationType: "Create", resourceBody: { id: "c", pk: "p" } },
            { operationType: "Create", resourceBody: { id: "old", pk: "p" } },
        ],
        "p",
    );
    assert.equal((await feedPage(server, container, { range: "0", mode: VERSIONS, etag: '"4"' })).etag, '"4"', "one that fails leaves nothing");
});

test("a stored procedure is one transaction, with an entry for each operation", async () => {
    const container = await keeping();
    await container.items.create({ id: "old", pk: "p", n: 0 });
    const body = flow(async ({ call, self, link }) => {
        await call("createDocument", self, { id: "a", pk: "p" });
        await call("replaceDocument", link("old"), { id: "old", pk: "p", n: 1 });
        await call("upsertDocument", self, { id: "b", pk: "p" });
        await call("upsertDocument", self, { id: "b", pk: "p", n: 1 });
        await call("deleteDocument", link("a"));
        return true;
    });
    await execute(container, "p", body);
    await container.item("b", "p").delete();
    const { items, pages } = await versionsOf(container, { key: "p", etag: '"2"', size: 2 });
    assert.deepEqual(told(items), ["create a", "replace old", "create b", "replace b", "delete a", "delete b"]);
    assert.deepEqual(items.map(({ metadata }) => metadata.lsn), [3, 3, 3, 3, 3, 4]);
    assert.deepEqual(pages.map((page) => page.items.length), [5, 1]);
    const failing = flow(async ({ call, self }) => {
        await call("createDocument", self, { id: "never", pk: "p" });
        throw new Error("no");
    });
    await refused(execute(container, "p", failing), 400);
    assert.equal((await feedPage(server, container, { range: "0", mode: VERSIONS, etag: '"4"' })).status, 304);
});

test("an item that is written several times in a transaction is there once as the latest version, and each time as a version", async () => {
    const container = await keeping();
    const body = flow(async ({ call, self }) => {
        for (const [id, n] of [["a", 1], ["b", 2], ["a", 3], ["c", 4], ["a", 5]]) await call("upsertDocument", self, { id, pk: "p", n });
        return true;
    });
    await execute(container, "p", body);
    const { items } = await versionsOf(container, { range: "0", etag: '"1"', size: 1 });
    assert.deepEqual(items.map(({ current, metadata }) => [metadata.operationType, current.id, current.n, metadata.lsn]), [
        ["create", "a", 1, 2],
        ["create", "b", 2, 2],
        ["replace", "a", 3, 2],
        ["create", "c", 4, 2],
        ["replace", "a", 5, 2],
    ]);
    const latest = await drainFeed(server, container, { range: "0", size: 1 });
    assert.deepEqual(latest.items.map(({ id, n, _lsn }) => [id, n, _lsn]), [["b", 2, 2], ["c", 4, 2], ["a", 5, 2]]);
});

test("what a trigger writes belongs to the transaction of its request", async () => {
    const container = await keeping();
    const body = `function () {
        const collection = getContext().getCollection();
        const { id, pk } = getContext().getResponse().getBody();
        collection.createDocument(collection.getSelfLink(), { id: "after " + id, pk });
    }`;
    const postTriggerInclude = [await trigger(container, "Post", "Create", body)];
    await container.items.create({ id: "a", pk: "p" }, { postTriggerInclude });
    const { items, lsn } = await versionsOf(container, { range: "0", etag: '"1"', size: 1 });
    assert.deepEqual([told(items), lsn], [["create a", "create after a"], 2]);
    assert.deepEqual(ids((await drainFeed(server, container, { range: "0" })).items), ["a", "after a"]);
});

test("a replace that changes the id is a replace of the same item", async () => {
    const container = await keeping();
    await container.items.create({ id: "a", pk: "p" });
    await container.item("a", "p").replace({ id: "b", pk: "p" });
    const { items } = await versionsOf(container, { range: "0", etag: '"1"' });
    assert.deepEqual(told(items), ["create a", "replace b"]);
    assert.equal(items[1].metadata.previousImageLSN, 2);
    assert.equal(items[1].current._rid, items[0].current._rid);
    const latest = await drainFeed(server, container, { range: "0" });
    assert.deepEqual(latest.items.map(({ id, _lsn }) => [id, _lsn]), [["b", 3]], "the latest version has the new id only");
});

test("a page has at most 4 MB of versions, and each of a large item is there", async () => {
    const container = await keeping();
    const text = "x".repeat(1_000_000);
    await container.items.create({ id: "a", pk: "p", n: 0, text });
    for (let n = 1; n < 6; n++) await container.items.upsert({ id: "a", pk: "p", n, text });
    await container.item("a", "p").delete();
    const { items, pages } = await versionsOf(container, { range: "0", etag: '"1"', size: 100 });
    assert.deepEqual(items.map(({ current, previous }) => (previous ?? current).n), [0, 1, 2, 3, 4, 5, 5]);
    for (const { bytes } of pages) assert.ok(bytes <= 4 * 1024 * 1024, `a page has ${bytes} bytes`);
    assert.deepEqual(pages.map((page) => page.items.length), [4, 3], "pages are filled");
});

test("deleting all items of a key gives a delete of each", async () => {
    const container = await keeping();
    const made = [];
    for (let i = 0; i < 12; i++) made.push((await container.items.create({ id: `i${i}`, pk: "p", n: i })).resource);
    await container.items.create({ id: "other", pk: "q" });
    const etag = (await versionsOf(container, { range: "0", etag: "*" })).etag;
    await container.deleteAllItemsForPartitionKey("p");
    const entries = await until(async () => {
        const { items } = await versionsOf(container, { range: "0", etag });
        return items.length >= 12 && items;
    });
    assert.deepEqual(told(entries).sort(), made.map(({ id }) => `delete ${id}`).sort());
    for (const entry of entries) {
        checkEntry(entry);
        const { n } = made.find(({ id }) => id === entry.metadata.id);
        assert.equal(entry.metadata.previousImageLSN, n + 2);
        assert.deepEqual(entry.metadata.partitionKey, { pk: "p" });
        assert.ok(!entry.metadata.timeToLiveExpired, "nothing has expired");
    }
    await container.items.create({ id: "i3", pk: "p", again: true });
    const { items } = await versionsOf(container, { key: "p", etag });
    assert.deepEqual(told(items).at(-1), "create i3");
    assert.equal(items.at(-1).metadata.previousImageLSN ?? 0, 0);
});

test("keys of several levels and of every type are told with a delete", async () => {
    const rows = [
        [HIERARCHY, { name: "n", zip: 7, state: null }, ["n", 7, null], { name: "n", zip: 7, state: null }],
        [{ paths: ["/a/b"], version: 2 }, { a: { b: 1.5 } }, 1.5, { "a/b": 1.5 }],
        [{ paths: ["/pk"], version: 1 }, { pk: true }, true, { pk: true }],
        [{ paths: ["/id"], version: 2 }, {}, "x", { id: "x" }],
    ];
    for (const [partitionKey, body, key, expected] of rows) {
        const container = await keeping(ONE, { partitionKey });
        await container.items.create({ id: "x", ...body });
        await container.item("x", key).delete();
        const { items } = await versionsOf(container, { range: "0", etag: '"1"' });
        assert.deepEqual(told(items), ["create x", "delete x"]);
        assert.deepEqual(items[1].metadata.partitionKey, expected, JSON.stringify(partitionKey));
    }
});

test("50 times create, replace and delete are 150 entries in that order", async () => {
    const container = await keeping();
    const now = follow(container, Now());
    await now.readNext();
    for (let i = 0; i < 50; i++) {
        await container.items.create({ id: "x", pk: "p", n: i });
        await container.item("x", "p").replace({ id: "x", pk: "p", n: i + 0.5 });
        await container.item("x", "p").delete();
    }
    const expected = times(150, (i) => ["create", "replace", "delete"][i % 3]);
    const { items } = await pull(now);
    assert.deepEqual(items.map(({ metadata }) => metadata.operationType), expected);
    checkChain(items);
    for (const [i, { current, previous, metadata }] of items.entries()) {
        assert.equal(metadata.lsn, i + 2);
        assert.equal((previous ?? current).n, Math.floor(i / 3) + (i % 3 === 0 ? 0 : 0.5));
    }
    for (const size of [1, 7, 100, 1000]) {
        const found = await versionsOf(container, { key: "p", etag: '"1"', size });
        assert.deepEqual(found.items, items, `pages of ${size}`);
        for (const page of found.pages.slice(0, -1)) assert.equal(page.items.length, size, "pages are filled");
        const position = 1 + Math.min(size, 149);
        assert.deepEqual((await versionsOf(container, { range: "0", etag: `"${position}"`, size })).items, items.slice(position - 1));
    }
});

test("creates, upserts and deletes of a container, its ranges, its keys and prefixes", async () => {
    const container = await keeping(FOUR, { partitionKey: { paths: ["/name", "/zip"], kind: "MultiHash", version: 2 } });
    const key = (i) => [i < 10 ? "first" : "second", i % 10 < 5 ? 1 : 2];
    const item = (i) => ({ id: `item${i}`, name: key(i)[0], zip: key(i)[1] });
    const scopes = [
        ["the container", undefined, 20],
        ["a prefix", ["first"], 10],
        ["a key", ["second", 2], 5],
    ];
    const readers = scopes.map(([name, scope, count]) => ({ name, count, iterators: [follow(container, Now(scope), 5)] }));
    const ranges = (await container.getFeedRanges()).map((range) => follow(container, Now(range), 5));
    readers.push({ name: "all feed ranges", count: 20, iterators: ranges });
    for (const { iterators } of readers) for (const iterator of iterators) assert.equal((await iterator.readNext()).statusCode, 304);
    const rounds = [
        ["create", (i) => container.items.create(item(i))],
        ["replace", (i) => container.items.upsert({ ...item(i), n: 1 })],
        ["delete", (i) => container.item(`item${i}`, key(i)).delete()],
    ];
    for (const [operation, work] of rounds) {
        for (let i = 0; i < 20; i++) await work(i);
        for (const { name, count, iterators } of readers) {
            const found = [];
            for (const iterator of iterators) {
                const { pages } = await pull(iterator);
                for (const page of pages) assert.ok(page.length <= 5, "at most five on a page");
                found.push(...pages.flat());
            }
            assert.equal(found.length, count, `${operation}, ${name}`);
            for (const entry of found) {
                checkEntry(entry);
                assert.equal(entry.metadata.operationType, operation, name);
            }
        }
    }
});

test("read again from the first token, all of it is there again, and a key has only its own", async () => {
    const container = await keeping(FOUR);
    const now = follow(container, Now());
    const { continuationToken } = await now.readNext();
    const ofKey = follow(container, Now("k2"));
    const { continuationToken: keyToken } = await ofKey.readNext();
    const expected = [];
    for (const [operation, work] of [
        ["create", (i) => container.items.create({ id: `doc${i}`, pk: `k${i}` })],
        ["replace", (i) => container.item(`doc${i}`, `k${i}`).replace({ id: `doc${i}`, pk: `k${i}`, n: 1 })],
        ["delete", (i) => container.item(`doc${i}`, `k${i}`).delete()],
    ])
        for (let i = 0; i < 4; i++) {
            await work(i);
            expected.push(`${operation} doc${i}`);
        }
    for (let i = 0; i < 2; i++) {
        const { items } = await pull(follow(container, Continuation(continuationToken), 2));
        assert.deepEqual(told(items).sort(), [...expected].sort());
        const { items: mine } = await pull(follow(container, Continuation(keyToken)));
        assert.deepEqual(told(mine), ["create doc2", "replace doc2", "delete doc2"]);
        checkChain(mine);
    }
});

test("the latest version of such a container stays the latest version", async () => {
    const container = await keeping();
    const { resource: a } = await container.items.create({ id: "a", pk: "p" });
    await container.items.create({ id: "b", pk: "p" });
    const { resource: b } = await container.items.upsert({ id: "b", pk: "p", n: 1 });
    await container.items.create({ id: "c", pk: "p" });
    await container.item("c", "p").delete();
    for (const start of [Beginning(), Beginning("p")]) {
        const { items } = await pull(container.items.getChangeFeedIterator({ changeFeedStartFrom: start, changeFeedMode: ChangeFeedMode.LatestVersion }));
        assert.deepEqual(items.map(withoutLsn), [a, b]);
        assert.deepEqual(items.map(({ _lsn }) => _lsn), [2, 4]);
    }
    const wrapped = await drainFeed(server, container, { range: "0", wire: true });
    assert.deepEqual(wrapped.items, [
        { current: a, metadata: { lsn: 2, crts: a._ts } },
        { current: b, metadata: { lsn: 4, crts: b._ts } },
    ]);
    assert.equal((await feedPage(server, container, { range: "0", mode: LATEST, etag: '"4"' })).status, 304, "a delete is no change here");
    // Both modes count alike.
    const { etag } = await versionsOf(container, { range: "0", etag: "*" });
    assert.equal(etag, '"6"');
    assert.equal(await currentLsn(server, container), 6);
    assert.deepEqual(told((await versionsOf(container, { range: "0", etag: '"4"' })).items), ["create c", "delete c"]);
});

test("an ETag that is no LSN is refused, one of the future is answered with the present", async () => {
    const container = await keeping();
    await container.items.create({ id: "a", pk: "p" });
    for (const etag of ["abc", '"abc"', '"-1"', '"1.5"'])
        errorAnswer(await askFeed(server, container, { range: "0", mode: VERSIONS, etag }), 400, "BadRequest");
    for (const etag of ['"2"', '"1000"', "1000"]) {
        const page = await feedPage(server, container, { range: "0", mode: VERSIONS, etag });
        assert.deepEqual([page.status, page.etag], [304, '"2"'], etag);
    }
    errorAnswer(await askFeed(server, container, { range: "9", mode: VERSIONS, etag: "*" }), 410, "Gone", { substatus: 1002 });
    for (const mode of ["full-fidelity feed", "FULL-FIDELITY FEED"])
        assert.equal((await drainFeed(server, container, { range: "0", mode, wire: true, etag: '"1"' })).items.length, 1, mode);
});

test("a query filters entries by their items", async () => {
    const container = await keeping();
    for (let i = 0; i < 5; i++) await container.items.create({ id: `id${i}`, pk: "p", city: `city${i}` });
    await container.item("id3", "p").delete();
    const ask = (query, enableQueryOnPreviousImage) =>
        callItems(server, container, {
            method: "POST",
            headers: {
                "a-im": VERSIONS,
                "if-none-match": '"1"',
                "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15",
                "x-ms-documentdb-partitionkeyrangeid": "0",
                "x-ms-documentdb-isquery": "True",
                "content-type": "application/query+json",
            },
            body: { query, enableQueryOnPreviousImage },
        });
    const text = "select * from c where c.city = 'city3'";
    assert.deepEqual(told(pageOf(await ask(text, false)).items), ["create id3"]);
    assert.deepEqual(told(pageOf(await ask(text, true)).items), ["create id3", "delete id3"]);
    assert.equal(pageOf(await ask("select * from c where c.city = 'none'", true)).status, 304);
});

test("previous images can be switched off", async (t) => {
    const { server: own, container } = await ownContainer(t, ONE, { changeFeedPolicy }, ["--durability", "relaxed", "--no-previous-images"]);
    const { resource: one } = await container.items.create({ id: "1", pk: "p", v: 1 });
    await container.item("1", "p").delete();
    const { items } = await versionsOf(container, { range: "0", etag: '"1"' }, own);
    const { crts } = items[1].metadata;
    assert.deepEqual(items, [
        { current: one, metadata: { lsn: 2, crts: one._ts, operationType: "create" } },
        { current: {}, metadata: { lsn: 3, crts, operationType: "delete", previousImageLSN: 2, id: "1", partitionKey: { pk: "p" } } },
    ]);
});

// --- Expiry: most of this is waiting, so all of it waits together.

describe("time to live", { concurrency: true }, () => {
    const expired = ({ _ts }, ttl_s) => until(() => Date.now() >= (_ts + ttl_s) * 1000 + 20);

    test("what expires is a delete that says so, without the version before it", async () => {
        const container = await keeping(ONE, { defaultTtl: -1 });
        const now = follow(container, Now());
        await now.readNext();
        const { resource } = await container.items.create({ id: "x", pk: "ttl-pk", ttl: 1 });
        const [entry] = (await pull(now)).items;
        assert.deepEqual(entry, { current: resource, metadata: { lsn: 2, crts: resource._ts, operationType: "create" } });
        const [deleted, ...more] = await until(async () => {
            const { items } = await pull(now);
            return items.length > 0 && items;
        });
        assert.deepEqual(more, []);
        const { crts } = deleted.metadata;
        assert.ok(crts >= resource._ts + 1, `it was removed at ${crts}, after it had expired at ${resource._ts + 1}`);
        assert.deepEqual(deleted, {
            current: {},
            metadata: {
                lsn: 3,
                crts,
                operationType: "delete",
                previousImageLSN: 2,
                timeToLiveExpired: true,
                id: "x",
                partitionKey: { pk: "ttl-pk" },
            },
        });
        assert.equal(await currentLsn(server, container), 3);
    });

    test("an id that is taken again after its time is first deleted, then created", async () => {
        const container = await keeping(ONE, { defaultTtl: -1 });
        const makers = {
            create: (item) => container.items.create(item),
            upsert: (item) => container.items.upsert(item),
            batch: async (item) => {
                const { code } = await container.items.batch([{ operationType: "Create", resourceBody: item }], item.pk);
                assert.equal(code, 200);
            },
        };
        const made = [];
        for (const pk of Object.keys(makers)) made.push((await container.items.create({ id: "x", pk, ttl: 1 })).resource);
        await expired(made.at(-1), 1);
        for (const [pk, make] of Object.entries(makers)) await make({ id: "x", pk, again: true });
        await until(async () => (await storedCount(server, container)) === 3);
        for (const [i, pk] of Object.keys(makers).entries()) {
            const { items } = await versionsOf(container, { key: pk, etag: '"1"' });
            assert.deepEqual(told(items), ["create x", "delete x", "create x"], pk);
            checkChain(items);
            assert.equal(items[1].metadata.timeToLiveExpired, true, pk);
            assert.equal(items[1].metadata.previousImageLSN, i + 2, pk);
            assert.equal(items[1].previous, undefined, pk);
            assert.equal(items[2].current.again, true, pk);
        }
    });

    test("an item that is deleted before its time has not expired", async () => {
        const container = await keeping(ONE, { defaultTtl: 1000 });
        const { resource } = await container.items.create({ id: "x", pk: "p", ttl: 100 });
        await container.item("x", "p").delete();
        const { items } = await versionsOf(container, { range: "0", etag: '"1"' });
        assert.deepEqual(items[1].previous, resource);
        assert.ok(!items[1].metadata.timeToLiveExpired);
    });

    test("operations a second apart have different times", async () => {
        const container = await keeping();
        const { resource } = await container.items.create({ id: "x", pk: "p" });
        await expired(resource, 1);
        const { resource: second } = await container.items.upsert({ id: "x", pk: "p", n: 1 });
        await expired(second, 1);
        await container.item("x", "p").delete();
        const { items } = await versionsOf(container, { range: "0", etag: '"1"' });
        const [a, b, c] = items.map(({ metadata }) => metadata.crts);
        assert.ok(a < b && b < c, `${a} < ${b} < ${c}`);
    });
});
