// The change feed, latest version, as the suites of the SDKs and their users read it: whole containers, keys, prefixes
// and ranges, resumed and followed.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import test from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { ids } from "./lib/check.mjs";
import { times } from "./lib/definition.mjs";
import { VERSIONS, drainFeed, feedPage, follow, lsnOfEtag, pull, sessionOf, withoutLsn } from "./lib/feed.mjs";
import { callItems, fill, newContainer, ownContainer, queryAll } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { rangesOf, sameIds } from "./lib/splits.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "feed-sdk" });

const { Beginning, Continuation, Now } = ChangeFeedStartFrom;
const ONE = { throughput: 400 };
const FOUR = { throughput: 21_000 };
const FIVE = { throughput: 25_100 };

// For how long the last test tries to hit a short moment.
const HOT_MS = 2_000 * Number(process.env.ORRERY_TEST_SCALE ?? 1);

const sizesOf = (pages) => pages.map((page) => page.length);

/** Writes items in one transaction. */
async function writeTogether(container, pk, items) {
    const operations = items.map((resourceBody) => ({ operationType: "Upsert", resourceBody: { ...resourceBody, pk } }));
    const { code } = await container.items.batch(operations, pk);
    assert.equal(code, 200);
}

test("a full hierarchical key: pages of one, one page by default, resume, and from now", async () => {
    const partitionKey = { paths: ["/name", "/zip"], kind: "MultiHash", version: 2 };
    const container = await newContainer(database, FIVE, { partitionKey });
    assert.equal((await rangesOf(container)).length, 5);
    const write = async (name, from) => {
        for (let i = from; i < from + 10; i++) await container.items.create({ id: `item${i}`, name, zip: 7, n: i });
    };
    const now = follow(container, Now(["sample", 7]));
    await write("sample", 0);
    await write("other", 0);
    const expected = times(10, (i) => `item${i}`);
    const first = await now.readNext();
    assert.deepEqual([first.statusCode, first.count], [304, 0]);
    const single = await pull(follow(container, Beginning(["sample", 7]), 1));
    assert.deepEqual(single.pages.map(ids), expected.map((id) => [id]));
    assert.deepEqual((await pull(follow(container, Beginning(["sample", 7])))).pages.map(ids), [expected]);
    const { token } = await pull(follow(container, Beginning(["sample", 7]), 6), 1);
    assert.deepEqual((await pull(follow(container, Continuation(token)))).pages.map(ids), [expected.slice(6)]);
    await write("sample", 10);
    assert.deepEqual((await pull(now)).pages.map(ids), [times(10, (i) => `item${i + 10}`)]);
});

test("a prefix of a hierarchical key, also with components that are undefined", async () => {
    const partitionKey = { paths: ["/name", "/zip", "/state"], kind: "MultiHash", version: 2 };
    const container = await newContainer(database, FIVE, { partitionKey });
    const expected = times(20, (i) => ({ id: `item${i}` }));
    for (let i = 0; i < 20; i++) {
        await container.items.create({ id: `item${i}`, name: "0", zip: 0, state: i % 3 });
        await container.items.create({ id: `other${i}`, name: "0", zip: 1, state: i % 3 });
    }
    const { pages, items } = await pull(follow(container, Beginning(["0", 0])));
    assert.deepEqual(sizesOf(pages), [20], "one page");
    sameIds(items, expected, "the prefix");
    const part = await pull(follow(container, Beginning(["0", 0]), 10), 1);
    const rest = await pull(follow(container, Continuation(part.token)));
    assert.deepEqual(sizesOf(rest.pages), [10]);
    sameIds([...part.items, ...rest.items], expected, "both parts");
    sameIds((await pull(follow(container, Beginning(["0"]), 7))).items, [...expected, ...times(20, (i) => ({ id: `other${i}` }))], "one level");

    const some = [{ id: "none" }, { id: "state", state: "s" }, { id: "zip", zip: 1 }, { id: "both", zip: 1, state: "s" }];
    for (const item of some) await container.items.create(item);
    for (const [key, count] of [
        [[undefined, undefined, undefined], 1],
        [[undefined, undefined], 2],
        [[undefined], 4],
    ]) {
        const found = await pull(follow(container, Beginning(key)));
        sameIds(found.items, some.slice(0, count), `${key.length} levels`);
    }
});

test("a whole container of four ranges: every item once, resumed, one range after the other", async () => {
    const container = await newContainer(database, FOUR);
    const items = times(20, (i) => ({ id: `item${i}`, pk: `sample${i}` }));
    for (const item of items) await container.items.create(item);
    sameIds((await pull(follow(container, Beginning()))).items, items, "by default");
    const part = await pull(follow(container, Beginning(), 1), 10);
    assert.deepEqual(sizesOf(part.pages), times(10, () => 1));
    const [one, two] = part.responses.map(({ headers }) => headers["x-ms-documentdb-partitionkeyrangeid"]);
    assert.ok(one !== undefined && two !== undefined && one !== two, `the first pages are of ranges ${one} and ${two}`);
    const rest = await pull(follow(container, Continuation(part.token), 1));
    assert.equal(rest.items.length, 10);
    sameIds([...part.items, ...rest.items], items, "both parts");
    for (const response of [...part.responses, ...rest.responses]) {
        assert.ok(response.requestCharge > 0);
        assert.ok(response.activityId);
        sessionOf(response.sessionToken);
    }
    const after = await pull(follow(container, Continuation(rest.token)));
    assert.deepEqual(after.items, []);
    await container.items.upsert({ ...items[4], n: 1 });
    assert.deepEqual(ids((await pull(follow(container, Continuation(after.token)))).items), ["item4"]);
    // Its feed ranges one by one.
    const found = [];
    for (const range of await container.getFeedRanges()) found.push(...(await pull(follow(container, Beginning(range), 3))).items);
    sameIds(found, items, "all feed ranges");
});

test("a feed range over two ranges of a container with hashes of version 1", async () => {
    const container = await newContainer(database, FOUR, { partitionKey: { paths: ["/pk"], version: 1 } });
    const ranges = await rangesOf(container);
    assert.equal(ranges[1].maxExclusive, "05C1DFFFFFFFF8");
    const FeedRange = (await container.getFeedRanges())[0].constructor;
    // As many keys of each half as the other has.
    const half = times(4, () => []);
    for (let i = 0; half.some((list) => list.length < 20); i++) {
        const { headers } = await container.items.create({ id: `i${i}`, pk: `sample${i}` });
        const { range } = sessionOf(headers["x-ms-session-token"]);
        const list = half[ranges.findIndex(({ id }) => id === range)];
        if (list.length < 20) list.push({ id: `i${i}` });
        else await container.item(`i${i}`, `sample${i}`).delete();
    }
    const low = await pull(follow(container, Beginning(new FeedRange("", "05C1DFFFFFFFF8"))));
    assert.equal(low.items.length, 40);
    sameIds(low.items, [...half[0], ...half[1]], "the lower half");
    const high = await pull(follow(container, Beginning(new FeedRange("05C1DFFFFFFFF8", "FF")), 7));
    sameIds(high.items, [...half[2], ...half[3]], "the upper half");
    // Across a boundary, with a part of each.
    const cuts = ["", "05C1D3", "05C1D9C0", "05C1E5", "FF"];
    const found = [];
    for (let i = 1; i < cuts.length; i++)
        found.push(...(await pull(follow(container, Beginning(new FeedRange(cuts[i - 1], cuts[i])), 5))).items);
    sameIds(found, half.flat(), "ranges that are not those of partitions");
});

test("the older iterator of the SDK", async () => {
    for (const size of [ONE, FOUR]) {
        const container = await newContainer(database, size);
        const { resource: one } = await container.items.create({ id: "1", pk: "0", n: 1 });
        const { resource: two } = await container.items.create({ id: "2", pk: "0", n: 2 });
        await container.items.create({ id: "3", pk: "1" });
        const iterator = container.items.changeFeed("0", { startFromBeginning: true });
        const { result } = await iterator.fetchNext();
        assert.deepEqual(result.map(withoutLsn), [one, two]);
        assert.notDeepEqual(result[0], one, "a feed item has an _lsn");
        assert.equal((await iterator.fetchNext()).count, 0);
        assert.equal(iterator.hasMoreResults, false);

        const now = container.items.changeFeed("0");
        const first = await now.fetchNext();
        assert.deepEqual([first.statusCode, first.count], [304, 0]);
        assert.ok(first.etag, "the first answer has an ETag");
        assert.equal(first.continuation, first.etag);
        const { resource: changed } = await container.items.upsert({ id: "2", pk: "0", n: 3 });
        const second = await now.fetchNext();
        assert.deepEqual(second.result.map(withoutLsn), [changed]);
        assert.notEqual(second.etag, first.etag);
        const third = await now.fetchNext();
        assert.deepEqual([third.count, now.hasMoreResults], [0, false]);
        assert.ok(third.etag);

        const resumed = container.items.changeFeed("0", { continuation: first.etag });
        assert.deepEqual(ids((await resumed.fetchNext()).result), ["2"]);
        const pages = [];
        for await (const page of container.items.changeFeed("0", { startFromBeginning: true, maxItemCount: 1 }).getAsyncIterator())
            pages.push(ids(page.result));
        assert.deepEqual(pages, [["1"], ["2"]]);
        assert.ok(lsnOfEtag(third.etag) >= 4);
    }
});

test("200 keys of seven items, some of them changed and deleted, in every scope and page size", async () => {
    const container = await newContainer(database, FOUR);
    const items = times(1400, (i) => ({ id: `i${i}`, pk: `key ${i % 200}`, n: 0 }));
    await fill(container, items);
    const change = (i) => container.items.upsert({ ...items[i], n: items[i].n + 1 });
    const remove = (i) => container.item(items[i].id, items[i].pk).delete();
    for (let i = 0; i < 15; i++) await change(i * 61);
    for (let i = 0; i < 6; i++) await remove(i * 61 + 1);
    const deleted = new Set(times(6, (i) => `i${i * 61 + 1}`));
    const first = items.filter(({ id }) => !deleted.has(id));
    assert.equal(first.length, 1394);
    const touched = times(15, (i) => items[i * 61].pk);
    const FeedRange = (await container.getFeedRanges())[0].constructor;
    const scopes = [
        ["the container", [undefined], [undefined, 10]],
        ["its feed ranges", await container.getFeedRanges(), [undefined, 10]],
        ["ranges of hashes", ["", "05", "0F", "13A0", "20", "2B", "FF"].slice(1).map((to, i) => new FeedRange(["", "05", "0F", "13A0", "20", "2B"][i], to)), [undefined]],
    ];
    const readers = [];
    for (const [name, parts, sizes] of scopes)
        for (const size of sizes) {
            const iterators = parts.map((part) => follow(container, Beginning(part), size));
            const found = [];
            for (const iterator of iterators) {
                const { pages } = await pull(iterator);
                for (const page of pages) assert.ok(page.length <= (size ?? 100));
                found.push(...pages.flat());
            }
            sameIds(found, first, name);
            readers.push([`${name}, pages of ${size ?? "any size"}`, iterators]);
        }
    const perKey = new Map();
    const tokens = new Map();
    for (const pk of new Set(items.map((item) => item.pk))) {
        const { items: found, etag } = await drainFeed(server, container, { key: pk });
        perKey.set(pk, found.length);
        tokens.set(pk, etag);
    }
    assert.equal([...perKey.values()].reduce((a, b) => a + b), 1394, "the keys together");
    for (const [pk, count] of perKey) {
        const [expected] = await queryAll(server, container, "SELECT VALUE COUNT(1) FROM c", { key: pk });
        assert.equal(count, expected, pk);
    }
    const iterators = touched.slice(0, 10).map((pk) => follow(container, Beginning(pk)));
    for (const [i, iterator] of iterators.entries()) assert.equal((await pull(iterator)).items.length, perKey.get(touched[i]));

    for (let i = 0; i < 10; i++) await change(i * 61);
    for (const i of [0, 61, 12 * 61]) await remove(i);
    const second = times(8, (i) => ({ id: `i${(i + 2) * 61}` }));
    for (const [name, list] of readers) {
        const found = [];
        for (const iterator of list) found.push(...(await pull(iterator)).items);
        sameIds(found, second, `${name}, the second time`);
        for (const { n } of found) assert.equal(n, 1);
    }
    const found = [];
    for (const [pk, etag] of tokens) found.push(...(await drainFeed(server, container, { key: pk, etag })).items);
    sameIds(found, second, "the keys, the second time");
    const mine = [];
    for (const iterator of iterators) mine.push(...(await pull(iterator)).items);
    sameIds(mine, second, "keys through the SDK, the second time");
});

test("what a feed gives stays the same after a restart and a crash", async (t) => {
    const { server: own, container } = await ownContainer(t, FOUR, {}, []);
    for (let i = 0; i < 60; i++) await container.items.create({ id: `i${i}`, pk: `k${i % 20}` });
    for (let i = 0; i < 60; i += 7) await container.items.upsert({ id: `i${i}`, pk: `k${i % 20}`, again: true });
    for (let i = 3; i < 60; i += 10) await container.item(`i${i}`, `k${i % 20}`).delete();
    const ranges = await rangesOf(container);
    const state = async () => {
        const list = [];
        for (const { id } of ranges) {
            const { pages, etag } = await drainFeed(own, container, { range: id, size: 4 });
            list.push({ pages: pages.map(({ items, etag: at }) => ({ items, at })), etag });
        }
        return list;
    };
    const before = await state();
    await own.restart();
    assert.deepEqual(await state(), before, "after a restart");
    await own.kill();
    await own.start();
    assert.deepEqual(await state(), before, "after a crash");
    const later = clientOf(own).database(container.database.id).container(container.id);
    const { headers } = await later.items.create({ id: "later", pk: "k1" });
    const { range, lsn } = sessionOf(headers["x-ms-session-token"]);
    const { etag } = before[ranges.findIndex(({ id }) => id === range)];
    assert.equal(lsn, lsnOfEtag(etag) + 1, "the next write takes the next LSN");
    assert.deepEqual(ids((await drainFeed(own, container, { range, etag })).items), ["later"]);
});

test("readers that follow fast writers miss nothing and see each key in order", async () => {
    const container = await newContainer(database, FOUR);
    const KEYS = 8;
    const COUNT = 40;
    let isOver = false;
    const write = async (k) => {
        for (let n = 0; n < COUNT; n++) {
            const item = { id: `${k} ${n}`, pk: `k${k}`, n };
            if (n % 5 === 4) await writeTogether(container, item.pk, [item, { id: `twin ${k} ${n}`, n }]);
            else await container.items.create(item);
        }
    };
    const read = async (size) => {
        const iterator = follow(container, Beginning(), size);
        const last = new Map();
        let count = 0;
        for (;;) {
            const wasOver = isOver;
            const { items } = await pull(iterator);
            for (const { id, pk, n } of items) {
                count++;
                if (id.startsWith("twin")) assert.equal(n, last.get(pk), "the second of a transaction follows the first");
                else assert.equal(n, (last.get(pk) ?? -1) + 1, `key ${pk}`);
                last.set(pk, n);
            }
            if (wasOver && items.length === 0) return count;
            await wait(1);
        }
    };
    const readers = [1, 3, undefined].map(read);
    await Promise.all(times(KEYS, write));
    isOver = true;
    const expected = KEYS * (COUNT + COUNT / 5);
    assert.deepEqual(await Promise.all(readers), [expected, expected, expected]);
});

test("a key is found after very many changes of another, at once and to the end", async () => {
    // Pages of lists and queries look at fewer entries than this. A feed must not end there: a 304 says that it is at its end.
    const MANY = 21_000;
    const more = { indexingPolicy: { indexingMode: "none", automatic: false }, changeFeedPolicy: { retentionDuration: 10 } };
    const container = await newContainer(database, ONE, more);
    await fill(container, times(MANY, (i) => ({ id: `${i}`, pk: "many" })));
    await container.items.create({ id: "wanted", pk: "few" });
    const old = container.items.changeFeed("few", { startFromBeginning: true });
    assert.deepEqual(ids((await old.fetchNext()).result), ["wanted"], "the older iterator, which ends at a 304");
    const { items } = await pull(follow(container, Beginning("few")));
    assert.deepEqual(ids(items), ["wanted"]);
    const { items: versions } = await drainFeed(server, container, { key: "few", mode: VERSIONS, etag: '"1"' });
    assert.deepEqual(versions.map(({ current }) => current.id), ["wanted"], "all versions");
    const none = await drainFeed(server, container, { key: "none" });
    assert.deepEqual([none.items, none.etag], [[], `"${MANY + 2}"`], "of a key without items the first 304 is at the end");
});

test("readers of items that are changed over and over never miss the last change", async (t) => {
    const container = await newContainer(database, ONE);
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const headers = { "x-ms-documentdb-is-upsert": "true" };
    const items = times(16, (k) => ({ id: `hot ${k}`, pk: `k${k}` }));
    let isWriting = false;
    // By hand, because the moment in which a change could be missed is short.
    const readers = times(3, () => ({ etag: undefined, position: 0, seen: new Map() }));
    const poll = async (reader) => {
        const { status, etag, position, items: found } = await feedPage(server, container, { range: "0", etag: reader.etag, agent });
        assert.ok(position >= reader.position, `the ETag went from ${reader.position} back to ${position}`);
        Object.assign(reader, { etag, position });
        for (const { id, n } of found) reader.seen.set(id, n);
        return status;
    };
    const end = performance.now() + HOT_MS;
    let rounds = 0;
    while (performance.now() < end) {
        const n = rounds++;
        isWriting = true;
        const reading = readers.map(async (reader) => {
            while (isWriting) await poll(reader);
            while ((await poll(reader)) === 200);
        });
        const write = async (item) => {
            const answer = await callItems(server, container, { method: "POST", key: item.pk, headers, body: { ...item, n }, agent });
            assert.ok(answer.status === 200 || answer.status === 201, answer.text);
        };
        await Promise.all(items.map(write)).finally(() => (isWriting = false));
        await Promise.all(reading);
        for (const { seen, etag } of readers)
            for (const { id } of items) assert.equal(seen.get(id), n, `round ${n}: a reader is at ${etag} and has missed '${id}'`);
    }
    t.diagnostic(`${rounds} rounds`);
});
