// The change feed, latest version: every item that lives, once, at the place of its last change.
import assert from "node:assert/strict";
import test, { describe } from "node:test";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { errorAnswer, ids, refused } from "./lib/check.mjs";
import { indexing, times } from "./lib/definition.mjs";
import {
    askFeed,
    currentLsn,
    drainFeed,
    feedPage,
    follow,
    packed,
    pageOf,
    pull,
    sessionOf,
    withoutLsn,
} from "./lib/feed.mjs";
import { callItems, fill, newContainer, pathOf, storedCount, until } from "./lib/items.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { execute, flow, withProcedure } from "./lib/scripts.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { ofOneNode, sharedServer } from "./lib/server.mjs";
import { rangesOf, sameIds } from "./lib/splits.mjs";
import { call } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "feed" });

const ONE = { throughput: 400 };
const FOUR = { throughput: 21_000 };

const { Beginning, Continuation, Now, Time } = ChangeFeedStartFrom;

const sizesOf = (pages) => pages.map((page) => page.length);

/** Writes items in one transaction. */
async function writeTogether(container, pk, items) {
    const operations = items.map((resourceBody) => ({ operationType: "Upsert", resourceBody: { ...resourceBody, pk } }));
    const { code } = await container.items.batch(operations, pk);
    assert.equal(code, 200);
}

/** The same in a stored procedure. */
function writeInProcedure(container, pk, items) {
    const body = flow(async ({ call, self }, key, list) => {
        for (const item of list) await call("upsertDocument", self, { ...item, pk: key });
        return list.length;
    });
    return execute(container, pk, body, pk, items);
}

// --- LSNs

test("a fresh range stands at LSN 1, and each write transaction adds exactly one", async () => {
    const container = await newContainer(database, ONE);
    assert.equal(await currentLsn(server, container), 1);
    const empty = await feedPage(server, container, { range: "0" });
    assert.deepEqual([empty.status, empty.etag], [304, '"1"'], "an empty range, from its beginning");
    const item = (id) => container.item(id, "p");
    const bulk = times(5, (i) => ({ operationType: "Create", resourceBody: { id: `bulk ${i}`, pk: "p" } }));
    const steps = [
        ["a create", () => container.items.create({ id: "a", pk: "p" })],
        ["a create of another key", () => container.items.create({ id: "a", pk: "q" })],
        ["an upsert that inserts", () => container.items.upsert({ id: "b", pk: "p" })],
        ["an upsert that replaces", () => container.items.upsert({ id: "b", pk: "p", n: 1 })],
        ["a replace", () => item("a").replace({ id: "a", pk: "p", n: 1 })],
        ["a replace by the same", () => item("a").replace({ id: "a", pk: "p", n: 1 })],
        ["a patch", () => item("a").patch([{ op: "incr", path: "/n", value: 1 }])],
        ["a delete", () => item("b").delete()],
        ["a batch", () => writeTogether(container, "p", times(3, (i) => ({ id: `batch ${i}` })))],
        ["a procedure", () => writeInProcedure(container, "p", times(3, (i) => ({ id: `script ${i}` })))],
        ["a bulk of five", () => container.items.bulk(bulk), 5],
    ];
    let expected = 1;
    for (const [name, work, count = 1] of steps) {
        const response = await work();
        expected += count;
        const token = response?.headers?.["x-ms-session-token"];
        if (token !== undefined) assert.equal(sessionOf(token).lsn, expected, `the session token of ${name}`);
        assert.equal(await currentLsn(server, container), expected, `after ${name}`);
    }
});

test("what writes nothing takes no LSN", async () => {
    const container = await newContainer(database, ONE);
    const { resource: a } = await container.items.create({ id: "a", pk: "p" });
    const item = container.item("a", "p");
    const condition = { accessCondition: { type: "IfMatch", condition: '"another"' } };
    const failing = flow(async ({ call, self }) => {
        await call("createDocument", self, { id: "never", pk: "p" });
        throw new Error("it changes its mind");
    });
    const reading = flow(async ({ call, self }) => (await call("queryDocuments", self, "SELECT * FROM c"))[0].length);
    const { resource: definition } = await container.read();
    const steps = [
        ["a read", () => item.read()],
        ["a read of what is not there", () => container.item("none", "p").read()],
        ["a query", () => container.items.query("SELECT * FROM c").fetchAll()],
        ["a create of what exists", () => refused(container.items.create({ id: "a", pk: "p" }), 409)],
        ["a replace of another version", () => refused(item.replace({ ...a, n: 1 }, condition), 412)],
        ["a delete of what is not there", () => refused(container.item("none", "p").delete(), 404)],
        ["a patch that cannot be", () => refused(item.patch([{ op: "incr", path: "/id", value: 1 }]), 400)],
        ["a batch of a read", () => container.items.batch([{ operationType: "Read", id: "a" }], "p")],
        [
            "a batch that fails at its end",
            () =>
                container.items.batch(
                    [
                        { operationType: "Create", resourceBody: { id: "never", pk: "p" } },
                        { operationType: "Create", resourceBody: { id: "a", pk: "p" } },
                    ],
                    "p",
                ),
        ],
        ["a procedure that aborts", () => refused(execute(container, "p", failing), 400)],
        ["a procedure that reads", () => execute(container, "p", reading)],
        ["another definition", () => container.replace({ ...definition, ...indexing({ excludedPaths: [{ path: "/n/?" }] }) })],
        ["a page of the feed", () => feedPage(server, container, { range: "0" })],
    ];
    for (const [name, work] of steps) {
        await work();
        assert.equal(await currentLsn(server, container), 2, `after ${name}`);
    }
    assert.equal((await container.items.create({ id: "b", pk: "p" })).headers["x-ms-session-token"], "0:-1#3");
});

test("the first items of a container have the LSNs 2, 3, 4, so a reader that ends at 4 has three", async () => {
    for (const count of [3, 6]) {
        const container = await newContainer(database, ONE);
        for (let i = 0; i < count; i++) await container.items.create({ id: `${i}`, pk: `k${i}` });
        const { pages } = await drainFeed(server, container, { range: "0", size: 1 });
        assert.deepEqual(pages.flatMap(({ items }) => items.map(({ _lsn }) => _lsn)), times(count, (i) => i + 2));
        const until4 = pages.findIndex(({ position }) => position >= 4) + 1;
        assert.equal(until4, 3, `${count} items`);
    }
});

test("each range counts for itself, and its LSN is the number of its writes plus one", async () => {
    const container = await newContainer(database, FOUR);
    const ranges = await rangesOf(container);
    assert.equal(ranges.length, 4);
    const expected = Object.fromEntries(ranges.map(({ id }) => [id, 1]));
    for (const { id } of ranges) assert.equal(await currentLsn(server, container, id), 1);
    for (let i = 0; i < 40; i++) {
        const { headers } = await container.items.create({ id: "x", pk: `k${i}` });
        const { range, lsn } = sessionOf(headers["x-ms-session-token"]);
        assert.equal(lsn, ++expected[range]);
    }
    for (const { id } of ranges) {
        const { lsn, items } = await drainFeed(server, container, { range: id });
        assert.equal(lsn, expected[id]);
        assert.equal(items.length, expected[id] - 1);
        assert.ok(items.length > 0, `range ${id} got none of 40 keys`);
    }
});

// --- Headers and items

test("pages and 304 answers have what clients need, for a range, a part of it and a key", async () => {
    const container = await newContainer(database, ONE);
    const { resource: definition } = await container.read();
    for (let i = 0; i < 5; i++) await container.items.create({ id: `i${i}`, pk: "p" });
    await container.items.create({ id: "last", pk: "q" });
    const scopes = [
        [{ range: "0" }, 6],
        [{ range: "0", interval: { minInclusive: "", maxExclusive: "FF" } }, 6],
        [{ key: "p" }, 5],
        [{ range: "0", key: "p" }, 5],
    ];
    for (const [scope, count] of scopes) {
        const what = JSON.stringify(scope);
        const page = await feedPage(server, container, scope);
        assert.equal(page.status, 200, what);
        assert.equal(page.items.length, count, what);
        assert.equal(page.answer.json._rid, definition._rid, "the body names the container");
        assert.deepEqual(Object.keys(page.answer.json).sort(), ["Documents", "_count", "_rid"]);
        assert.match(page.headers["content-type"], /^application\/json/);
        const end = await feedPage(server, container, { ...scope, etag: page.etag });
        assert.equal(end.status, 304, what);
        assert.equal(end.etag, '"7"', "the current LSN, although the last write may be outside");
        for (let i = 0; i < 3; i++)
            assert.equal((await feedPage(server, container, { ...scope, etag: end.etag })).etag, end.etag, "it stays 304");
    }
    // A key that others do not write to must still advance, or a reader would never reach the session token.
    await container.items.create({ id: "other", pk: "q" });
    const idle = await feedPage(server, container, { key: "p", etag: '"7"' });
    assert.deepEqual([idle.status, idle.etag], [304, '"8"']);
});

test("an item of the feed is the item that a read gives, and its _lsn", async () => {
    const container = await newContainer(database, ONE);
    const values = [
        { text: "ä€😀\u0000\"\\", n: 1.5e300, list: [1, [null, {}], true], object: { a: { b: [] } } },
        { id: "with spaces = and -", empty: "" },
        { _lsn: 999, _metadata: { mine: true } },
    ];
    for (const [i, value] of values.entries()) await container.items.create({ id: `i${i}`, pk: "p", ...value });
    const { items, pages } = await drainFeed(server, container, { range: "0" });
    const names = pages[0].answer.text.match(/"_lsn":/g);
    assert.equal(names.length, values.length, "_lsn is there once in each item, also if the item brought one");
    for (const [i, item] of items.entries()) {
        const { resource } = await container.item(item.id, "p").read();
        assert.equal(item._lsn, i + 2, "the LSN of the transaction that wrote it");
        assert.equal(typeof item._lsn, "number");
        const { _lsn, ...read } = resource;
        delete read._metadata;
        assert.deepEqual(withoutLsn(item), read, "no other property differs");
    }
    assert.equal(items.length, values.length);
});

test("with the wire format, items of the latest version are wrapped", async () => {
    const container = await newContainer(database, ONE);
    for (let i = 0; i < 3; i++) await container.items.create({ id: `i${i}`, pk: "p" });
    await container.item("i0", "p").replace({ id: "i0", pk: "p", n: 1 });
    for (const scope of [{ range: "0" }, { key: "p" }, { range: "0", interval: { minInclusive: "", maxExclusive: "FF" } }]) {
        const { items } = await drainFeed(server, container, { ...scope, wire: true, size: 2 });
        assert.deepEqual(items.map(({ current }) => current.id), ["i1", "i2", "i0"]);
        for (const [i, item] of items.entries()) {
            const { resource } = await container.item(item.current.id, "p").read();
            assert.deepEqual(item, { current: resource, metadata: { lsn: i + 3, crts: resource._ts } });
        }
    }
});

test("the mode is compared without regard to case, and a list without it is no feed", async () => {
    const container = await newContainer(database, ONE);
    await container.items.create({ id: "a", pk: "p" });
    for (const mode of ["Incremental feed", "incremental feed", "INCREMENTAL FEED"])
        assert.equal((await feedPage(server, container, { range: "0", mode })).items[0]._lsn, 2, mode);
    const list = await callItems(server, container, { headers: { "x-ms-documentdb-partitionkeyrangeid": "0" } });
    assert.equal(list.status, 200);
    assert.equal(list.json.Documents[0]._lsn, undefined, "_lsn belongs to the feed");
    assert.equal((await container.item("a", "p").read()).resource._lsn, undefined);
});

test("priority, throughput bucket, consistency and metrics headers are accepted", async () => {
    const container = await newContainer(database, ONE);
    await container.items.create({ id: "a", pk: "p" });
    const all = {
        "x-ms-cosmos-priority-level": "Low",
        "x-ms-cosmos-throughput-bucket": "3",
        "x-ms-consistency-level": "Eventual",
        "x-ms-documentdb-populatequerymetrics": "true",
        "x-ms-documentdb-populatequotainfo": "true",
        "x-ms-documentdb-content-serialization-format": "CosmosBinary",
        "x-ms-cosmos-sdk-supportedcapabilities": "11",
    };
    for (const headers of [...Object.entries(all).map(([name, value]) => ({ [name]: value })), all])
        for (const scope of [{ range: "0" }, { key: "p" }]) {
            const page = await feedPage(server, container, { ...scope, headers });
            assert.deepEqual(ids(page.items), ["a"], Object.keys(headers).join());
            const end = await feedPage(server, container, { ...scope, headers, etag: page.etag });
            assert.equal(end.status, 304);
        }
    const own = clientOf(server, { throughputBucket: 2 }).database(database.id).container(container.id);
    assert.deepEqual(ids((await pull(follow(own, Beginning()))).items), ["a"]);
});

test("session tokens count for the feed as for other reads", async () => {
    const container = await newContainer(database, ONE);
    await container.items.create({ id: "a", pk: "p" });
    for (const scope of [{ range: "0" }, { key: "p" }]) {
        const ask = (token, etag) => askFeed(server, container, { ...scope, etag, headers: { "x-ms-session-token": token } });
        for (const etag of [undefined, '"2"', "*"]) {
            errorAnswer(await ask("0:-1#2000", etag), 404, "NotFound", { substatus: 1002 });
            errorAnswer(await ask("0:-1#2,broken", etag), 400, "BadRequest");
            for (const token of ["0:-1#2", "7:-1#99999", "0:-1#1,7:-1#99999"]) pageOf(await ask(token, etag));
        }
    }
    const mine = clientOf(server, { consistencyLevel: "Session" }).database(database.id).container(container.id);
    const iterator = follow(mine, Now());
    await pull(iterator);
    for (let i = 0; i < 20; i++) {
        await mine.items.create({ id: `i${i}`, pk: "p" });
        assert.deepEqual(ids((await pull(iterator)).items), [`i${i}`], "a client sees in the feed what it has written");
    }
});

// --- Order, selection and page size

/** What the feed must give: keeps the last change of each item as answers tell it. */
class Model {
    #items = new Map(); // by key and id: { item, lsn, order }
    #order = 0;

    put(item, lsn) {
        this.#items.set(`${item.pk} ${item.id}`, { item, lsn, order: this.#order++ });
    }

    remove({ pk, id }) {
        this.#items.delete(`${pk} ${id}`);
    }

    /** The transactions after an LSN, each with its items that were not changed again. */
    after(lsn, pk) {
        const entries = [...this.#items.values()].sort((a, b) => a.order - b.order);
        const transactions = [];
        let last;
        for (const { item, lsn: at } of entries) {
            if (at <= lsn || (pk !== undefined && item.pk !== pk)) continue;
            if (at !== last) transactions.push([]);
            last = at;
            transactions.at(-1).push({ ...item, _lsn: at });
        }
        return transactions;
    }

    pick(random, pk) {
        const list = [...this.#items.values()].filter(({ item }) => item.pk === pk);
        return list.length === 0 ? undefined : random.pick(list).item;
    }
}

test("random writes: every position gives what has changed since, in order, in pages of the size asked for", async (t) => {
    const seed = chooseSeed();
    t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
    const random = new Random(seed);
    const container = await newContainer(database, ONE);
    const model = new Model();
    const keys = times(5, (i) => `k${i}`);
    const positions = [1];
    let lsn = 1;
    let made = 0;
    const put = ({ resource }, pk) => {
        assert.equal(resource.pk, pk);
        model.put(resource, lsn);
    };
    const writes = {
        create: async (pk) => put(await container.items.create({ id: `i${made++}`, pk }), pk),
        upsert: async (pk, old) => put(await container.items.upsert({ id: old.id, pk, n: made++ }), pk),
        replace: async (pk, old) => put(await container.item(old.id, pk).replace({ id: old.id, pk, m: made++ }), pk),
        patch: async (pk, old) => put(await container.item(old.id, pk).patch([{ op: "set", path: "/p", value: made++ }]), pk),
        delete: async (pk, old) => {
            await container.item(old.id, pk).delete();
            model.remove(old);
        },
        batch: async (pk, old) => {
            const operations = times(1 + random.below(6), () => ({
                operationType: "Create",
                resourceBody: { id: `i${made++}`, pk },
            }));
            operations.splice(random.below(operations.length + 1), 0, {
                operationType: "Upsert",
                resourceBody: { id: old.id, pk, b: made++ },
            });
            const { result, code } = await container.items.batch(operations, pk);
            assert.equal(code, 200);
            for (const { resourceBody } of result) model.put(resourceBody, lsn);
        },
    };
    for (let i = 0; i < 250; i++) {
        const pk = random.pick(keys);
        const old = model.pick(random, pk);
        const kind = old === undefined ? "create" : random.pick(["create", "upsert", "replace", "patch", "patch", "delete", "batch"]);
        lsn++;
        await writes[kind](pk, old);
        if (random.chance(10)) positions.push(lsn);
    }
    const check = async (options, position, pk) => {
        const transactions = model.after(position, pk);
        const { pages } = await drainFeed(server, container, { ...options, etag: `"${position}"` });
        const expected = packed(transactions, options.size ?? 100);
        const what = `${JSON.stringify(options)} after ${position}`;
        assert.deepEqual(pages.map(({ items }) => ids(items)), expected.map(ids), what);
        assert.deepEqual(pages.flatMap(({ items }) => items), expected.flat(), what);
    };
    for (const position of [...positions, lsn, 0])
        for (const size of [1, 2, 3, 7, undefined, 1000]) await check({ range: "0", size }, position);
    for (const pk of keys)
        for (const size of [1, 4, 1000])
            for (const position of [1, random.pick(positions)]) await check({ key: pk, size }, position, pk);
    const { pages } = await pull(follow(container, Beginning(), 3));
    assert.deepEqual(pages.map(ids), packed(model.after(1), 3).map(ids), "the SDK sees the same pages");
});

test("an item that was changed appears once at its new place, one that was deleted not at all", async () => {
    const container = await newContainer(database, ONE);
    const iterator = follow(container, Beginning("p"));
    for (const id of ["a", "b", "c", "d"]) await container.items.create({ id, pk: "p", n: 0 });
    await container.item("a", "p").replace({ id: "a", pk: "p", n: 1 });
    await container.item("c", "p").delete();
    await container.item("a", "p").patch([{ op: "set", path: "/n", value: 2 }]);
    const { items } = await pull(iterator);
    assert.deepEqual(items.map(({ id, n, _lsn }) => [id, n, _lsn]), [["b", 0, 3], ["d", 0, 5], ["a", 2, 8]]);
    await container.item("b", "p").delete();
    const { pages } = await pull(iterator);
    assert.deepEqual(pages, [], "a delete produces no entry");
    await container.items.create({ id: "b", pk: "p", n: 9 });
    await container.item("d", "p").replace({ id: "d", pk: "p", n: 5 });
    assert.deepEqual((await pull(iterator)).items.map(({ id, n }) => [id, n]), [["b", 9], ["d", 5]]);
});

test("when all that was made is deleted, the first answer is a 304", async () => {
    const container = await newContainer(database, ONE);
    for (let i = 0; i < 50; i++) await container.items.create({ id: `i${i}`, pk: `k${i % 7}` });
    for (let i = 0; i < 50; i++) await container.item(`i${i}`, `k${i % 7}`).delete();
    const { statusCode, headers } = await follow(container, Beginning()).readNext();
    assert.deepEqual([statusCode, headers.etag], [304, '"101"']);
    for (const scope of [{ range: "0" }, { key: "k3" }, { range: "0", size: 1 }])
        assert.equal((await feedPage(server, container, scope)).etag, '"101"', JSON.stringify(scope));
});

const TRANSACTIONS = [
    ["batches", writeTogether],
    ["stored procedures", writeInProcedure],
];
for (const [name, write] of TRANSACTIONS)
    test(`${name} are never cut by the page size, and keep their order`, async () => {
        const container = await newContainer(database, ONE);
        const sizes = [1, 3, 2, 5, 1, 1, 4, 12, 1];
        let made = 0;
        // The ids fall, so that their order is not the one of the writes.
        const transactions = sizes.map((size) => times(size, () => ({ id: `i${1000 - made++}` })));
        for (const transaction of transactions) await write(container, "p", transaction);
        for (const size of [1, 2, 3, 4, 5, 6, 7, 10, 12, 13, 29, 30, 100, -1]) {
            const expected = packed(transactions, size === -1 ? Infinity : size);
            for (const scope of [{ range: "0" }, { key: "p" }]) {
                const { pages } = await drainFeed(server, container, { ...scope, size });
                assert.deepEqual(pages.map(({ items }) => ids(items)), expected.map(ids), `pages of ${size}`);
                for (const { items } of pages.slice(0, 1)) assert.equal(items[0]._lsn, 2);
            }
            if (size > 0) assert.deepEqual((await pull(follow(container, Beginning("p"), size))).pages.map(ids), expected.map(ids));
        }
        // Of a transaction whose items were changed since, the rest stays together.
        const [first, second, ...rest] = transactions[3];
        await container.item(second.id, "p").replace({ ...second, pk: "p", again: true });
        transactions[3] = [first, ...rest];
        transactions.push([second]);
        const { pages } = await drainFeed(server, container, { range: "0", size: 4 });
        assert.deepEqual(pages.map(({ items }) => ids(items)), packed(transactions, 4).map(ids));
    });

test("a page has a hundred items if nothing is said, and as many as asked for otherwise", async () => {
    const container = await newContainer(database, ONE);
    for (let i = 0; i < 250; i++) await container.items.create({ id: `i${i}`, pk: `k${i % 3}` });
    const rows = [
        [undefined, [100, 100, 50]],
        [100, [100, 100, 50]],
        [150, [150, 100]],
        [249, [249, 1]],
        [250, [250]],
        [1000, [250]],
        [-1, [250]],
    ];
    for (const [size, expected] of rows) {
        const { pages, items } = await drainFeed(server, container, { range: "0", size });
        assert.deepEqual(sizesOf(pages.map((page) => page.items)), expected, `page size ${size}`);
        assert.deepEqual(ids(items), times(250, (i) => `i${i}`), `page size ${size}`);
    }
});

test("a page has at most 4 MB, in whole transactions", async () => {
    const container = await newContainer(database, ONE);
    const body = flow(async ({ call, self }, ...names) => {
        for (const id of names) await call("createDocument", self, { id, pk: "p", text: "x".repeat(1_500_000) });
        return names.length;
    });
    const sizes = { range: "0", size: 6 };
    await withProcedure(container, body, async (made) => {
        for (const names of [["doc0", "doc1"], ["doc2"], ["doc3", "doc4"]]) await made.execute("p", names);
        for (const scope of [sizes, { key: "p", size: 6 }, { range: "0", size: -1 }]) {
            const { pages } = await drainFeed(server, container, scope);
            assert.deepEqual(pages.map(({ items }) => ids(items)), [["doc0", "doc1"], ["doc2"], ["doc3", "doc4"]]);
            for (const { bytes } of pages) assert.ok(bytes <= 4 * 1024 * 1024, `a page has ${bytes} bytes`);
        }
        assert.deepEqual(ids((await pull(follow(container, Beginning(), 6))).items), times(5, (i) => `doc${i}`));
        // A transaction that is larger than a page is given alone.
        await made.execute("p", ["large0", "large1", "large2"]);
        await container.items.create({ id: "small", pk: "p" });
        const { pages } = await drainFeed(server, container, { ...sizes, etag: '"4"' });
        assert.deepEqual(pages.map(({ items }) => ids(items)), [["large0", "large1", "large2"], ["small"]]);
    });
});

// --- Where to start

test("an ETag is taken with and without its quotes", async () => {
    const container = await newContainer(database, ONE);
    for (let i = 0; i < 4; i++) await container.items.create({ id: `i${i}`, pk: "p" });
    for (const scope of [{ range: "0" }, { key: "p" }])
        for (let position = 0; position <= 5; position++)
            for (const etag of [`"${position}"`, `${position}`]) {
                const { items } = await drainFeed(server, container, { ...scope, etag });
                assert.deepEqual(ids(items), times(4, (i) => `i${i}`).slice(Math.max(0, position - 1)), etag);
            }
});

test("an ETag that is no LSN is refused, one of the future is answered with the present", async () => {
    const container = await newContainer(database, ONE);
    await container.items.create({ id: "a", pk: "p" });
    for (const scope of [{ range: "0" }, { key: "p" }]) {
        for (const etag of ["abc", '"abc"', '"-1"', "-1", '"1.5"', '"12', '12"', '"1 2"', '"1","2"', '"0x10"', '"**"'])
            errorAnswer(await askFeed(server, container, { ...scope, etag }), 400, "BadRequest");
        for (const etag of ['"3"', '"1000000"', "1000000", '"9007199254740991"', '"9223372036854775807"']) {
            const page = await feedPage(server, container, { ...scope, etag });
            assert.deepEqual([page.status, page.etag], [304, '"2"'], etag);
        }
    }
});

test("from now gives what is written after the first read, not after the iterator was made", async () => {
    for (const size of [ONE, FOUR]) {
        const container = await newContainer(database, size);
        for (let i = 0; i < 20; i++) await container.items.create({ id: `old ${i}`, pk: `k${i}` });
        const scopes = [undefined, "k3", ...(await container.getFeedRanges())];
        const iterators = scopes.map((scope) => follow(container, Now(scope)));
        iterators.push(container.items.getChangeFeedIterator({}), container.items.getChangeFeedIterator());
        await container.items.create({ id: "still old", pk: "k3" });
        for (const iterator of iterators) {
            const { items, token } = await pull(iterator);
            assert.deepEqual(items, []);
            assert.ok(token, "there is a token before there is an item");
        }
        for (let i = 0; i < 20; i++) await container.items.create({ id: `new ${i}`, pk: `k${i}` });
        const found = [];
        for (const iterator of iterators) found.push(ids((await pull(iterator)).items));
        const all = times(20, (i) => `new ${i}`).sort();
        assert.deepEqual([...found[0]].sort(), all, "the container");
        assert.deepEqual(found[1], ["new 3"], "a key");
        assert.deepEqual(found.slice(2, -2).flat().sort(), all, "its ranges together");
        for (const last of found.slice(-2)) assert.deepEqual([...last].sort(), all, "now is the default");
    }
});

test("a reader from now that is polled for one range only does not see the others again", async () => {
    const container = await newContainer(database, FOUR);
    for (let i = 0; i < 40; i++) await container.items.create({ id: `old ${i}`, pk: `k${i}` });
    const iterator = follow(container, Now(), 1);
    await pull(iterator);
    for (let i = 0; i < 8; i++) await container.items.create({ id: `new ${i}`, pk: `k${i}` });
    const { token, items } = await pull(iterator, 1);
    assert.equal(items.length, 1);
    const rest = await pull(follow(container, Continuation(token), 1));
    sameIds([...items, ...rest.items], times(8, (i) => ({ id: `new ${i}` })), "both parts");
    const [again, , third] = [await pull(iterator), await pull(iterator), await pull(iterator)];
    sameIds([...items, ...again.items], times(8, (i) => ({ id: `new ${i}` })), "the first iterator goes on");
    assert.deepEqual(third.items, []);
});

// What follows waits for the clock, so all of it waits together.
describe("time", { concurrency: true }, () => {
    const clock_s = () => Math.floor(Date.now() / 1000);
    const second = (at_s) => until(() => clock_s() >= at_s);
    const gmt = (at_s) => new Date(at_s * 1000).toUTCString();
    const utc = (at_s) => gmt(at_s).replace("GMT", "UTC");

    test("a start time gives what is newer, in both forms of a date, alone and with an ETag", async () => {
        const container = await newContainer(database, FOUR);
        const made = [];
        const write = async (name) => {
            for (let i = 0; i < 30; i++) made.push((await container.items.create({ id: `${name} ${i}`, pk: `k${i % 10}` })).resource);
            return made.at(-1)._ts;
        };
        const first = await write("first");
        await second(first + 2);
        const last = await write("second");
        const ranges = await rangesOf(container);
        const after = (at_s) => made.filter(({ _ts }) => _ts > at_s);
        for (const at_s of [first - 100, first - 1, first, first + 1, last - 1, last, last + 1])
            for (const form of [gmt, utc]) {
                const since = form(at_s);
                const found = [];
                for (const { id } of ranges) {
                    const { items } = await drainFeed(server, container, { range: id, since, size: 3 });
                    const [page] = (await drainFeed(server, container, { range: id, since })).pages;
                    assert.equal(page?.items.length ?? 0, items.length, "it is delivered at once");
                    found.push(...items);
                }
                sameIds(found, after(at_s), `${since}, first items at ${gmt(first)}`);
                const { items } = await drainFeed(server, container, { key: "k3", since, size: 2 });
                assert.deepEqual(ids(items), ids(after(at_s).filter(({ pk }) => pk === "k3")), `${since}, one key`);
            }
        // The position is the ETag; what is older than the time is left out in addition.
        for (const since of [gmt(first + 1), utc(first + 1)]) {
            for (const etag of ['"1"', '"2"', '"0"']) {
                const { items } = await drainFeed(server, container, { key: "k3", since, etag });
                assert.deepEqual(ids(items), ["second 3", "second 13", "second 23"], `${since} ${etag}`);
            }
            const [page] = (await drainFeed(server, container, { key: "k3", since, size: 1 })).pages;
            assert.deepEqual(ids(page.items), ["second 3"]);
            const { items } = await drainFeed(server, container, { key: "k3", since: gmt(first - 100), etag: page.etag });
            assert.deepEqual(ids(items), ["second 13", "second 23"], "an old time does not bring items back");
        }
        const start = new Date((first + 1) * 1000);
        for (const scope of [undefined, "k3", ranges.length && (await container.getFeedRanges())[2]]) {
            const { items } = await pull(follow(container, Time(start, scope), 2));
            assert.ok(items.length > 0 && items.every(({ _ts }) => _ts > first + 1));
            if (scope === undefined) sameIds(items, after(first + 1), "the SDK, whole container");
        }
        const old = container.items.changeFeed("k3", { startTime: start, maxItemCount: 2 });
        assert.deepEqual(ids((await old.fetchNext()).result), ["second 3", "second 13"]);
        assert.deepEqual(ids((await old.fetchNext()).result), ["second 23"]);
        assert.equal((await old.fetchNext()).statusCode, 304);
    });

    test("a start time in the future gives nothing until it has come", async () => {
        const container = await newContainer(database, ONE);
        await container.items.create({ id: "old", pk: "p" });
        const from_s = clock_s() + 2;
        const since = gmt(from_s);
        const page = await feedPage(server, container, { range: "0", since });
        assert.deepEqual([page.status, page.etag], [304, '"2"']);
        await container.items.create({ id: "too early", pk: "p" });
        const early = await feedPage(server, container, { range: "0", since, etag: page.etag });
        assert.deepEqual([early.status, early.etag], [304, '"3"']);
        await second(from_s + 1);
        await container.items.create({ id: "new", pk: "p" });
        for (const etag of [undefined, page.etag, early.etag]) {
            const { items } = await drainFeed(server, container, { range: "0", since, etag });
            assert.deepEqual(ids(items), ["new"], `continued at ${etag}`);
        }
        for (const far of [gmt(from_s + 100_000), utc(from_s + 100_000), "Fri, 31 Dec 9999 23:59:59 GMT"])
            for (const scope of [{ range: "0" }, { key: "p" }])
                assert.equal((await feedPage(server, container, { ...scope, since: far })).etag, '"4"', far);
        for (const past of ["Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 01 Jan 1970 00:00:00 UTC"])
            assert.equal((await feedPage(server, container, { range: "0", since: past })).items.length, 3, past);
    });

    test("what has expired is gone from the feed at once, and its removal takes an LSN", async () => {
        const container = await newContainer(database, ONE, { defaultTtl: -1 });
        await container.items.create({ id: "stays", pk: "p" });
        const { resource } = await container.items.create({ id: "goes", pk: "p", ttl: 1 });
        const last = await container.items.create({ id: "goes too", pk: "q", ttl: 1 });
        assert.equal(sessionOf(last.headers["x-ms-session-token"]).lsn, 4);
        await second(Math.max(resource._ts, last.resource._ts) + 1);
        assert.equal((await container.item("goes", "p").read()).statusCode, 404);
        assert.deepEqual(ids((await drainFeed(server, container, { range: "0" })).items), ["stays"]);
        const page = await feedPage(server, container, { key: "q" });
        assert.equal(page.status, 304);
        await until(async () => (await storedCount(server, container)) === 1);
        const { items, lsn } = await drainFeed(server, container, { range: "0" });
        assert.deepEqual(ids(items), ["stays"]);
        assert.ok(lsn > 4 && lsn <= 6, `the two removals are writes, at most one transaction each: ${lsn}`);
        await container.items.create({ id: "goes", pk: "p", again: true });
        const { items: later } = await drainFeed(server, container, { range: "0" });
        assert.deepEqual(later.map(({ id, _lsn }) => [id, _lsn]), [["stays", 2], ["goes", lsn + 1]]);
    });

    test("a default time to live hides items from the feed, and taking it away shows those that are left", async () => {
        const container = await newContainer(database, ONE, { defaultTtl: 1 });
        const { resource } = await container.items.create({ id: "short", pk: "p" });
        await container.items.create({ id: "long", pk: "p", ttl: 1000 });
        await container.items.create({ id: "for ever", pk: "p", ttl: -1 });
        await second(resource._ts + 1);
        assert.deepEqual(ids((await pull(follow(container, Beginning()))).items), ["long", "for ever"]);
        assert.deepEqual(ids((await drainFeed(server, container, { key: "p", wire: true })).items.map(({ current }) => current)), [
            "long",
            "for ever",
        ]);
    });
});

// --- Scopes

test("a range that is not there is gone, in the way that makes clients ask for the map", async () => {
    const container = await newContainer(database, FOUR);
    for (const range of ["4", "77", "4294967296"])
        for (const etag of [undefined, "*", '"1"'])
            errorAnswer(await askFeed(server, container, { range, etag }), 410, "Gone", { substatus: 1002 });
});

test("the id of a range may have the container's resource id before it", async () => {
    const container = await newContainer(database, ONE);
    await container.items.create({ id: "a", pk: "p" });
    const { resource } = await container.read();
    assert.deepEqual(ids((await drainFeed(server, container, { range: `${resource._rid},0` })).items), ["a"]);
});

test("parts of ranges are the whole, and none overlaps another", async () => {
    for (const partitionKey of [{ paths: ["/pk"], version: 2 }, { paths: ["/pk"], version: 1 }]) {
        const container = await newContainer(database, FOUR, { partitionKey });
        const items = times(200, (i) => ({ id: `i${i}`, pk: `k${i}` }));
        await fill(container, items);
        const ranges = await rangesOf(container);
        const cuts = partitionKey.version === 2 ? ["08", "0FFF", "1000000000", "17", "25A0", "3E"] : ["05C1", "05C1D9", "05C1DD", "05C1E3"];
        const found = [];
        for (const { id, minInclusive, maxExclusive } of ranges) {
            const whole = (await drainFeed(server, container, { range: id })).items;
            const inside = cuts.filter((cut) => cut > minInclusive && cut < maxExclusive);
            const bounds = [minInclusive, ...inside, maxExclusive];
            const parts = [];
            for (let i = 1; i < bounds.length; i++) {
                const interval = { minInclusive: bounds[i - 1], maxExclusive: bounds[i] };
                const part = await drainFeed(server, container, { range: id, interval, size: 7 });
                for (const { items: page } of part.pages.slice(0, -1)) assert.equal(page.length, 7, "pages are filled");
                parts.push(...part.items);
            }
            sameIds(parts, whole, `parts of range ${id}`);
            // An interval that is larger than the range is cut to it, one that is beside it is empty.
            const all = { minInclusive: "", maxExclusive: "FF" };
            assert.deepEqual((await drainFeed(server, container, { range: id, interval: all })).items, whole);
            const beside = minInclusive === "" ? { minInclusive: maxExclusive, maxExclusive: "FF" } : { minInclusive: "", maxExclusive: minInclusive };
            const none = await feedPage(server, container, { range: id, interval: beside });
            assert.equal(none.status, 304);
            found.push(...whole);
        }
        sameIds(found, items, "all ranges");
    }
});

test("an interval must be one of effective partition keys", async () => {
    const container = await newContainer(database, ONE);
    const interval = { minInclusive: "", maxExclusive: "FF" };
    for (const headers of [
        { "x-ms-read-key-type": "EffectivePartitionKey" },
        { "x-ms-read-key-type": "ResourceId" },
        { "x-ms-read-key-type": "nonsense" },
        { "x-ms-start-epk": "xyz" },
        { "x-ms-end-epk": "123" },
    ])
        errorAnswer(await askFeed(server, container, { range: "0", interval, headers }), 400, "BadRequest");
});

test("a key as an interval of one hash, as a key, and as a key with its range are the same", { skip: ofOneNode("the view of keys is a node's") }, async () => {
    const container = await newContainer(database, FOUR);
    const items = times(60, (i) => ({ id: `i${i}`, pk: `k${i % 12}` }));
    for (const item of items) await container.items.create(item);
    const link = pathOf(container).slice(1);
    const { json } = await call(server, { path: `/_orrery/${link}/top?by=ru&count=100`, type: "colls", link });
    const ranges = await rangesOf(container);
    assert.equal(json.rows.length, 12);
    for (const { key, epk } of json.rows) {
        const [pk] = JSON.parse(key);
        const { id: range } = ranges.find(({ minInclusive, maxExclusive }) => minInclusive <= epk && epk < maxExclusive);
        const next = (BigInt(`0x${epk}`) + 1n).toString(16).toUpperCase().padStart(epk.length, "0");
        const scopes = [{ key: pk }, { range, key: pk }, { range, interval: { minInclusive: epk, maxExclusive: next } }];
        const below = await drainFeed(server, container, { range, interval: { minInclusive: "", maxExclusive: epk } });
        assert.ok(below.items.every((item) => item.pk !== pk), "the end of an interval is not a part of it");
        for (const scope of scopes) {
            const expected = ids(items.filter((item) => item.pk === pk));
            for (const size of [2, 100]) {
                const found = await drainFeed(server, container, { ...scope, size });
                assert.deepEqual(ids(found.items), expected, JSON.stringify(scope));
                assert.equal(found.range, range, "the page names the range of the key");
            }
        }
    }
});

test("keys of every kind have their own feed", async () => {
    const keys = ["A", "x".repeat(263), "ä€", "", 3, -2.5, true, false, null];
    const definitions = [
        { paths: ["/pk"], version: 1 },
        { paths: ["/pk"], version: 2 },
        { paths: ["/pk", "/sub"], kind: "MultiHash", version: 2 },
    ];
    for (const partitionKey of definitions)
        for (const size of [ONE, FOUR]) {
            const container = await newContainer(database, size, { partitionKey });
            const isDeep = partitionKey.paths.length > 1;
            for (const [i, pk] of keys.entries())
                for (let n = 0; n < 3; n++) await container.items.create({ id: `${i} ${n}`, pk, sub: n % 2 });
            for (const [i, pk] of keys.entries()) {
                const expected = times(3, (n) => `${i} ${n}`);
                const what = `key ${pk} of ${JSON.stringify(partitionKey)}`;
                if (isDeep) {
                    const found = await pull(follow(container, Beginning([pk, 0])));
                    assert.deepEqual(ids(found.items), [expected[0], expected[2]], what);
                    sameIds((await pull(follow(container, Beginning([pk])))).items, expected.map((id) => ({ id })), what);
                } else if (pk !== null) {
                    assert.deepEqual(ids((await pull(follow(container, Beginning(pk)))).items), expected, what);
                } else {
                    assert.deepEqual(ids((await drainFeed(server, container, { key: [null] })).items), expected, what);
                }
            }
        }
});

test("items without a partition key are found by the key that says so", async () => {
    const container = await newContainer(database, ONE);
    await container.items.create({ id: "without" });
    await container.items.create({ id: "null", pk: null });
    await container.items.create({ id: "with", pk: "p" });
    assert.deepEqual(ids((await drainFeed(server, container, { key: [{}] })).items), ["without"]);
    assert.deepEqual(ids((await drainFeed(server, container, { key: [null] })).items), ["null"]);
    assert.deepEqual(ids((await drainFeed(server, container, { range: "0" })).items), ["without", "null", "with"]);
});

test("a feed without any scope is refused or is the one of a single range", async () => {
    const container = await newContainer(database, FOUR);
    await fill(container, times(40, (i) => ({ id: `i${i}`, pk: `k${i}` })));
    const answer = await askFeed(server, container);
    if (answer.status === 400) return;
    const page = pageOf(answer);
    const { items } = await drainFeed(server, container, { range: page.range });
    assert.deepEqual(page.items, items.slice(0, page.items.length));
});
