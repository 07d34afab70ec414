// The change feed while partitions are split and merged, and the server is restarted: positions that readers hold
// lose nothing, and after a split they repeat nothing.
import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { CHAOS, cause, moved } from "./lib/chaos.mjs";
import { errorAnswer, ids } from "./lib/check.mjs";
import { times } from "./lib/definition.mjs";
import { askFeed, currentLsn, drainFeed, feedPage, follow, lsnOfEtag, pull, sessionOf, withoutLsn } from "./lib/feed.mjs";
import { fill, newContainer, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";
import { checkRanges, rangesOf, sameIds } from "./lib/splits.mjs";
import { checkFolder } from "./lib/writers.mjs";

const server = await sharedServer({ args: CHAOS });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "feed-moves" });

const { Beginning, Continuation, Now, Time } = ChangeFeedStartFrom;
const FOUR = { throughput: 21_000 };

/** Splits a range; the ids of its children in the order of their keys. */
async function split(container, range, { on = server, ...more } = {}) {
    const before = new Set((await rangesOf(container)).map(({ id }) => id));
    await moved(on, (await cause(on, container, "split", { range, by: "hash", ...more })).event);
    const ranges = await rangesOf(container);
    checkRanges(ranges);
    return ranges.filter(({ id }) => !before.has(id)).map(({ id }) => id);
}

/** Merges neighbours; the id of the range that they became. */
async function merge(container, parents, { on = server } = {}) {
    const before = new Set((await rangesOf(container)).map(({ id }) => id));
    await moved(on, (await cause(on, container, "merge", { ranges: parents })).event);
    const made = (await rangesOf(container)).filter(({ id }) => !before.has(id));
    assert.equal(made.length, 1);
    return made[0].id;
}

/** 40 keys with items, of which some were changed and some deleted; what is left, in the order of the feed. */
async function history(container) {
    const order = new Map();
    const put = (item) => {
        order.delete(item.id);
        order.set(item.id, item);
    };
    const items = times(120, (i) => ({ id: `i${i}`, pk: `k${i % 40}`, n: 0 }));
    for (const item of items) {
        await container.items.create(item);
        put(item);
    }
    for (let i = 0; i < 120; i += 7) {
        const item = { ...items[i], n: 1 };
        await container.items.upsert(item);
        put(item);
    }
    for (let i = 5; i < 120; i += 17) {
        await container.item(items[i].id, items[i].pk).delete();
        order.delete(items[i].id);
    }
    return [...order.values()];
}

/** Each key has its items in this order. */
function sameOrder(found, expected, what) {
    const byKey = (items) => {
        const map = new Map();
        for (const { id, pk } of items) map.set(pk, [...(map.get(pk) ?? []), id]);
        return Object.fromEntries([...map].sort());
    };
    assert.deepEqual(byKey(found), byKey(expected), what);
}

// --- Splits

test("after a split every position of the parent gives on its children exactly what followed it", async () => {
    const container = await newContainer(database);
    await history(container);
    const { pages, etag, lsn } = await drainFeed(server, container, { range: "0", size: 1 });
    const all = pages.flatMap(({ items }) => items);
    const [low, high] = await split(container, "0");
    assert.deepEqual([low, high], ["1", "2"], "children are numbered in the order of their keys");
    for (const position of [undefined, '"0"', '"1"', ...pages.filter((_, i) => i % 9 === 0).map((page) => page.etag), etag]) {
        const found = [];
        for (const range of [low, high]) {
            const { items, lsn: current } = await drainFeed(server, container, { range, etag: position, size: 5 });
            assert.ok(current >= lsn, `range ${range} stands at ${current}, its parent stood at ${lsn}`);
            sameOrder(items, all.filter((item) => items.some(({ id }) => id === item.id)), "the order of each key");
            found.push(...items);
        }
        const after = position === undefined ? 0 : lsnOfEtag(position);
        const expected = all.filter(({ _lsn }) => _lsn > after);
        sameIds(found, expected, `after ${position}`);
        const byId = new Map(found.map((item) => [item.id, withoutLsn(item)]));
        for (const item of expected) assert.deepEqual(byId.get(item.id), withoutLsn(item), "no other property has changed");
    }
    for (const position of [undefined, etag, "*"]) {
        const gone = await askFeed(server, container, { range: "0", etag: position });
        errorAnswer(gone, 410, "Gone", { substatus: 1002 });
        assert.ok(gone.json.message.length > 0);
    }
});

test("each child counts on by one for each write, and gives what is new to readers of the parent", async () => {
    const container = await newContainer(database);
    await history(container);
    const { etag } = await drainFeed(server, container, { range: "0" });
    const children = await split(container, "0");
    const lsns = {};
    for (const range of children) {
        const page = await feedPage(server, container, { range, etag });
        assert.equal(page.status, 304, "a split is no change");
        lsns[range] = page.lsn;
    }
    const made = times(30, (i) => ({ id: `new ${i}`, pk: `k${i}` }));
    for (const item of made) {
        const { headers } = await container.items.create(item);
        const { range, lsn } = sessionOf(headers["x-ms-session-token"]);
        assert.equal(lsn, ++lsns[range], `range ${range}`);
    }
    const found = [];
    for (const range of children) {
        assert.equal(await currentLsn(server, container, range), lsns[range]);
        found.push(...(await drainFeed(server, container, { range, etag, size: 3 })).items);
    }
    sameIds(found, made, "new items");
});

test("a position of a grandparent works on all of its descendants", async () => {
    const container = await newContainer(database);
    const left = await history(container);
    const { pages } = await drainFeed(server, container, { range: "0", size: 40 });
    const { etag } = pages[0];
    const seen = pages[0].items;
    const [low, high] = await split(container, "0");
    await split(container, low, { parts: 3 });
    await split(container, high);
    const ranges = await rangesOf(container);
    assert.equal(ranges.length, 5);
    const rest = [];
    for (const { id } of ranges) rest.push(...(await drainFeed(server, container, { range: id, etag, size: 4 })).items);
    sameIds([...seen, ...rest], left, "before and after the splits");
    sameOrder([...seen, ...rest], left, "the order of each key");
});

test("tokens of the SDK go on after a split, in a client that knows of it and in one that does not", async () => {
    const container = await newContainer(database, FOUR);
    const left = await history(container);
    const kinds = [
        ["the container", () => Beginning()],
        ["a key", () => Beginning("k3"), (item) => item.pk === "k3"],
    ];
    const readers = [];
    for (const [name, start, of = () => true] of kinds) {
        const iterator = follow(container, start(), name === "a key" ? 1 : 6);
        const part = await pull(iterator, name === "a key" ? 1 : 5);
        readers.push({ name, iterator, part, of });
    }
    const [range] = await container.getFeedRanges();
    const inRange = follow(container, Beginning(range), 7);
    const firstOfRange = await pull(inRange, 1);
    const whole = await pull(follow(container, Beginning(range)));
    const [first] = await rangesOf(container);
    await split(container, first.id, { parts: 3 });
    for (const { name, iterator, part, of } of readers) {
        const fresh = clientOf(server).database(database.id).container(container.id);
        const resumed = await pull(follow(fresh, Continuation(part.token), 6));
        sameIds([...part.items, ...resumed.items], left.filter(of), `${name}, a new client`);
        const same = await pull(iterator);
        sameIds([...part.items, ...same.items], left.filter(of), `${name}, the same iterator`);
        sameOrder([...part.items, ...same.items], left.filter(of), name);
    }
    const rest = await pull(inRange);
    sameIds([...firstOfRange.items, ...rest.items], whole.items, "a feed range that was split");
    await container.items.upsert({ id: "last", pk: "k3" });
    for (const { name, iterator } of readers) assert.deepEqual(ids((await pull(iterator)).items), ["last"], `${name}, afterwards`);
});

test("parts of a child, cut by hash, are what the child has", async () => {
    const container = await newContainer(database);
    await history(container);
    const { pages } = await drainFeed(server, container, { range: "0", size: 30 });
    const [low, high] = await split(container, "0");
    const ranges = await rangesOf(container);
    const found = [];
    for (const [id, cut] of [
        [low, "0D"],
        [high, "2A55"],
    ]) {
        const { minInclusive, maxExclusive } = ranges.find((range) => range.id === id);
        for (const interval of [
            { minInclusive, maxExclusive: cut },
            { minInclusive: cut, maxExclusive },
        ])
            found.push(...(await drainFeed(server, container, { range: id, interval, etag: pages[1].etag, size: 2 })).items);
    }
    sameIds(found, pages.slice(2).flatMap(({ items }) => items), "all parts");
});

// --- Merges

/** A container of two ranges, of which the first has had far more writes than the second. */
async function uneven() {
    const container = await newContainer(database);
    const [low, high] = await split(container, "0");
    const ranges = await rangesOf(container);
    const written = { [low]: [], [high]: [] };
    for (let i = 0; written[low].length < 60 || written[high].length < 8; i++) {
        const item = { id: `i${i}`, pk: `key ${i}` };
        const { headers } = await container.items.create(item);
        const { range } = sessionOf(headers["x-ms-session-token"]);
        if (range === high && written[high].length >= 8) await container.item(item.id, item.pk).delete();
        else written[range].push(item);
    }
    // Deletes have raised the second; now the first gets more.
    for (const item of written[low]) for (let n = 0; n < 4; n++) await container.items.upsert({ ...item, n });
    const interval = (id) => ranges.find((range) => range.id === id);
    return { container, low, high, written, interval };
}

test("after a merge the positions of both parents lose nothing", async () => {
    const { container, low, high, written, interval } = await uneven();
    const before = {};
    for (const range of [low, high]) before[range] = await drainFeed(server, container, { range, size: 1 });
    assert.ok(before[low].lsn > before[high].lsn + 50, "the parents stand at LSNs that are far apart");
    const made = await merge(container, [low, high]);
    const all = (await drainFeed(server, container, { range: made, size: 7 })).items;
    sameIds(all, [...written[low], ...written[high]], "from the beginning, each once");
    sameOrder(all, [...before[low].items, ...before[high].items], "from the beginning");
    const lsns = all.map(({ _lsn }) => _lsn);
    assert.deepEqual(lsns, [...lsns].sort((a, b) => a - b), "the order is the one of _lsn");
    assert.ok((await currentLsn(server, container, made)) >= Math.max(before[low].lsn, before[high].lsn), "the merged range stands above both");

    const later = times(20, (i) => ({ id: `later ${i}`, pk: `key ${i}` }));
    for (const item of later) await container.items.create(item);
    const found = [];
    for (const parent of [low, high]) {
        const { pages, items, etag } = before[parent];
        for (const [i, page] of [...pages.entries()].filter(([n]) => n % 5 === 0)) {
            const rest = await drainFeed(server, container, { range: made, interval: interval(parent), etag: page.etag, size: 6 });
            const has = new Set(ids(rest.items));
            const missing = ids(items.slice(i + 1)).filter((id) => !has.has(id));
            assert.deepEqual(missing, [], `range ${parent} after ${page.etag}`);
            const known = new Set([...ids(items), ...ids(later)]);
            assert.ok(rest.items.every(({ id }) => known.has(id)), "only what belongs to the old range");
        }
        const rest = await drainFeed(server, container, { range: made, interval: interval(parent), etag, size: 6 });
        found.push(...rest.items.filter(({ id }) => id.startsWith("later")));
    }
    sameIds(found, later, "what was written after the merge");
    for (const parent of [low, high])
        errorAnswer(await askFeed(server, container, { range: parent, etag: before[parent].etag }), 410, "Gone", { substatus: 1002 });
});

test("a merge loses nothing of readers of the SDK, and they come to an end", async () => {
    const { container, low, high, written } = await uneven();
    const all = [...written[low], ...written[high]];
    const iterator = follow(container, Beginning(), 5);
    const part = await pull(iterator, 6);
    const atEnd = follow(container, Beginning());
    const { token } = await pull(atEnd);
    const now = follow(container, Now());
    await pull(now);
    await merge(container, [low, high]);
    const fresh = clientOf(server).database(database.id).container(container.id);
    for (const [name, rest] of [
        ["the same iterator", await pull(iterator)],
        ["a new client", await pull(follow(fresh, Continuation(part.token), 5))],
    ]) {
        const seen = new Set([...ids(part.items), ...ids(rest.items)]);
        assert.deepEqual(all.filter(({ id }) => !seen.has(id)), [], `${name}: lost`);
    }
    const later = times(20, (i) => ({ id: `later ${i}`, pk: `key ${i}` }));
    for (const item of later) await container.items.create(item);
    for (const [name, reader] of [
        ["one that had read all", atEnd],
        ["its token", follow(fresh, Continuation(token))],
        ["one from now", now],
    ]) {
        const seen = new Set(ids((await pull(reader)).items));
        assert.deepEqual(later.filter(({ id }) => !seen.has(id)), [], `${name}: lost`);
        assert.deepEqual((await pull(reader)).items, [], `${name}: it ends`);
    }
});

test("what was merged can be split and merged again, and old positions still lose nothing", async () => {
    const { container, low, high, written, interval } = await uneven();
    const positions = {};
    for (const range of [low, high]) {
        const { pages } = await drainFeed(server, container, { range, size: 3 });
        positions[range] = { etag: pages[1].etag, rest: pages.slice(2).flatMap(({ items }) => items) };
    }
    let made = await merge(container, [low, high]);
    const children = await split(container, made, { parts: 3 });
    made = await merge(container, children.slice(0, 2));
    await split(container, made, { parts: 2 });
    const ranges = await rangesOf(container);
    for (const parent of [low, high]) {
        const { minInclusive, maxExclusive } = interval(parent);
        const found = new Set();
        for (const range of ranges) {
            const from = range.minInclusive > minInclusive ? range.minInclusive : minInclusive;
            const to = range.maxExclusive < maxExclusive ? range.maxExclusive : maxExclusive;
            if (from >= to) continue;
            const options = { range: range.id, interval: { minInclusive: from, maxExclusive: to }, etag: positions[parent].etag };
            for (const { id } of (await drainFeed(server, container, options)).items) found.add(id);
        }
        assert.deepEqual(positions[parent].rest.filter(({ id }) => !found.has(id)), [], `positions of range ${parent}`);
    }
    sameIds((await pull(follow(container, Beginning()))).items, [...written[low], ...written[high]], "from the beginning, each once");
});

for (const newest of ["an item", "a delete"])
    test(`a start time finds all that is newer after a merge, whatever order the items have (${newest} is the newest)`, async () => {
        const { container, low, high, written } = await uneven();
        const items = (await pull(follow(container, Beginning()))).items;
        const last_s = Math.max(...items.map(({ _ts }) => _ts));
        await until(() => Date.now() >= (last_s + 1) * 1000);
        const later = times(10, (i) => ({ id: `later ${i}`, pk: `key ${i}` }));
        for (const item of later) await container.items.create(item);
        // The range that is ahead decides at which LSN the merged one stands.
        const [{ pk }] = written[low];
        const last = { id: "last", pk };
        await container.items.create(last);
        if (newest === "a delete") await container.item("last", pk).delete();
        else later.push(last);
        await merge(container, [low, high]);
        const { items: found } = await pull(follow(container, Time(new Date(last_s * 1000)), 3));
        sameIds(found, later, "newer than the time");
    });

// --- Restarts

test("a reader goes on after restarts, a crash, a split and a merge", async (t) => {
    const own = await startServer(t, { args: ["--enable-chaos", "--merge", "always"] });
    const { database: mine } = await clientOf(own).databases.create({ id: "restart" });
    let container = await newContainer(mine);
    const items = times(80, (i) => ({ id: `i${i}`, pk: `k${i % 16}` }));
    await fill(container, items);
    const seen = [];
    let token;
    const read = async (pages) => {
        container = clientOf(own).database(mine.id).container(container.id);
        const part = await pull(follow(container, token ? Continuation(token) : Beginning(), 9), pages);
        ({ token } = part);
        seen.push(...part.items);
    };
    await read(2);
    await own.restart();
    await read(2);
    const children = await split(container, "0", { on: own });
    await read(1);
    await own.restart();
    await read(1);
    await own.kill();
    await own.start();
    await read(1);
    sameIds(seen, [...new Set(ids(seen))].map((id) => ({ id })), "nothing was repeated by now");
    await merge(container, children, { on: own });
    await own.restart();
    await read();
    const missing = items.filter(({ id }) => !seen.some((item) => item.id === id));
    assert.deepEqual(missing, [], "nothing was lost");
    await container.items.create({ id: "last", pk: "k1" });
    seen.length = 0;
    await read();
    assert.deepEqual(ids(seen), ["last"]);
    await own.stopWell();
    checkFolder(own);
});

// --- Writes during moves

test("readers follow writers through splits and merges: nothing is lost, and each key is in order", async (t) => {
    const container = await newContainer(database);
    const KEYS = 24;
    const counts = times(KEYS, () => 0);
    const made = times(KEYS, () => 0);
    let isOver = false; // writers begin nothing more
    let isWritten = false; // and have ended what they had begun
    const write = async (lane) => {
        for (let i = 0; !isOver; i++) {
            const k = lane + 4 * (i % (KEYS / 4));
            const pk = `k${k}`;
            // One item of each key is changed over and over, and each time a new one is made with it.
            const n = counts[k] + 1;
            const operations = [
                { operationType: "Upsert", resourceBody: { id: "counter", pk, n } },
                { operationType: "Create", resourceBody: { id: `entry ${n}`, pk, n } },
            ];
            const { code } = await container.items.batch(operations, pk);
            assert.equal(code, 200);
            counts[k] = n;
            made[k]++;
            await wait(5);
        }
    };
    // After a merge a position may give again what was read before it, so repetitions are counted, not refused.
    const read = async (iterator, what) => {
        const counters = new Map();
        const entries = new Map();
        let repeated = 0;
        for (;;) {
            const wasWritten = isWritten;
            const { items } = await pull(iterator);
            for (const { id, pk, n } of items) {
                if (id === "counter") {
                    if (n < (counters.get(pk) ?? 0)) repeated++;
                    counters.set(pk, n);
                    continue;
                }
                const next = (entries.get(pk) ?? 0) + 1;
                assert.ok(n <= next, `${what}: entry ${n} of ${pk} came when ${next} was expected`);
                if (n < next) repeated++;
                else entries.set(pk, n);
            }
            if (wasWritten && items.length === 0) break;
            await wait(1);
        }
        for (const [k, n] of counts.entries()) {
            assert.equal(entries.get(`k${k}`), made[k], `${what}: entries of k${k}`);
            assert.equal(counters.get(`k${k}`), n, `${what}: the last state of k${k}`);
        }
        return repeated;
    };
    const own = () => clientOf(server).database(database.id).container(container.id);
    const readers = [
        read(follow(own(), Beginning(), 1), "pages of one"),
        read(follow(own(), Beginning(), 10), "pages of ten"),
        read(follow(own(), Beginning()), "any page"),
    ];
    const writers = times(4, write);
    const written = () => made.reduce((a, b) => a + b);
    const progress = async () => {
        const before = written();
        await until(() => written() > before + 40);
    };
    const moves = async () => {
        await progress();
        const [low, high] = await split(container, "0");
        await progress();
        const three = await split(container, high, { parts: 3 });
        await progress();
        await merge(container, [low, three[0]]);
        await progress();
        await merge(container, three.slice(1));
        await progress();
    };
    await Promise.race([moves().finally(() => (isOver = true)), ...readers, ...writers]);
    isOver = true;
    await Promise.all(writers);
    isWritten = true;
    const repeated = await Promise.all(readers);
    t.diagnostic(`${written()} entries, repeated after merges: ${repeated}`);
});

test("a reader that follows splits only sees nothing twice", async () => {
    const container = await newContainer(database);
    const items = times(400, (i) => ({ id: `i${i}`, pk: `k${i % 50}` }));
    let isOver = false;
    const reading = (async () => {
        const iterator = follow(container, Beginning(), 4);
        const found = [];
        for (;;) {
            const wasOver = isOver;
            const { items: more } = await pull(iterator);
            found.push(...more);
            if (wasOver && more.length === 0) return found;
        }
    })();
    const writing = (async () => {
        for (const item of items) await container.items.create(item);
    })();
    const [low, high] = await split(container, "0");
    await Promise.all([low, high].map((id) => cause(server, container, "split", { range: id, by: "hash" }).then(({ event }) => moved(server, event))));
    await writing;
    isOver = true;
    const found = await reading;
    sameIds(found, items, "each item once");
    sameOrder(found, items, "each key in order");
});
