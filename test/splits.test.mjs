// Physical partitions are split and merged while clients go on, and nothing of what they hold in
// their hands (tokens of pages, of sessions) is worth less for it.
import assert from "node:assert/strict";
import test from "node:test";

import { pagesOf, refused } from "./lib/check.mjs";
import { indexing, paths, times, uniqueKeys } from "./lib/definition.mjs";
import { callItems, contentOf, fill, listAll, newContainer, storedCount, until } from "./lib/items.mjs";
import { askAll, askPage, resultsOf } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";
import {
    SMALL,
    bringTo,
    byId,
    checkRanges,
    layoutOf,
    rangesOf,
    sameIds,
    setPartitions,
    waitForPartitions,
} from "./lib/splits.mjs";
import { checkFolder } from "./lib/writers.mjs";

const server = await sharedServer({ args: SMALL });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "splits" });

const itemOf = (i) => ({
    id: `i${String(i).padStart(4, "0")}`,
    pk: `k${i % 60}`,
    n: (i * 7919) % 1000,
    even: i % 2 === 0,
    text: "x".repeat(100),
});
const ITEMS = times(600, itemOf);

/** A container of `partitions` partitions with ITEMS in it. */
async function filled(partitions, more = {}) {
    const throughput = partitions === 1 ? 400 : partitions * 1000;
    const container = await newContainer(database, { throughput }, more);
    await fill(container, ITEMS);
    return container;
}

// --- The map

test("a container gets the partitions that its raised throughput takes, which name their parents", async () => {
    const container = await filled(1);
    const [parent] = await rangesOf(container);
    const before = await container.read();
    const ranges = await bringTo(container, 3);
    checkRanges(ranges);
    for (const { id, parents } of ranges) assert.ok(parents.includes(parent.id), `range ${id}: ${parents}`);
    const { resource } = await container.read();
    assert.equal(resource._etag, before.resource._etag, "the container itself has not changed");
    assert.deepEqual(byId(await listAll(server, container)), byId(ITEMS));
    const layout = await layoutOf(server, container);
    assert.equal(layout.ranges.length, 3);
    assert.equal(layout.totals.items, ITEMS.length);
    assert.equal(layout.totals.ru.allotted, 3000);
});

test("a container gets fewer when its throughput falls, which have all of them for ancestors", async () => {
    const container = await filled(4);
    const parents = (await rangesOf(container)).map(({ id }) => id);
    const ranges = await bringTo(container, 1);
    checkRanges(ranges);
    for (const parent of parents) assert.ok(ranges[0].parents.includes(parent), `${ranges[0].parents}`);
    assert.deepEqual(byId(await listAll(server, container)), byId(ITEMS));
    assert.equal((await layoutOf(server, container)).totals.items, ITEMS.length);
});

const KEYS = [
    ["hashes of version 1", { paths: ["/pk"], kind: "Hash", version: 1 }],
    ["hierarchical keys", { paths: ["/pk", "/n"], kind: "MultiHash", version: 2 }],
];
for (const [name, partitionKey] of KEYS)
    test(`containers with ${name} are split and merged`, async () => {
        const container = await filled(1, { partitionKey });
        for (const partitions of [3, 7, 2]) {
            checkRanges(await bringTo(container, partitions));
            assert.deepEqual(byId(await listAll(server, container)), byId(ITEMS));
            const { ranges } = await layoutOf(server, container);
            for (const { id, items } of ranges) assert.ok(items > 0, `range ${id} is empty`);
            for (const item of ITEMS.slice(0, 50)) {
                const key = partitionKey.paths.length > 1 ? [item.pk, item.n] : item.pk;
                const { resource } = await container.item(item.id, key).read();
                assert.deepEqual(contentOf(resource), item);
            }
        }
        const found = await askAll(server, container, "SELECT * FROM c WHERE c.pk = 'k7'", { size: 3 });
        sameIds(found, ITEMS.filter(({ pk }) => pk === "k7"), "a key");
    });

test("an empty container is split into equal parts", async () => {
    const container = await newContainer(database);
    checkRanges(await bringTo(container, 4));
    await fill(container, ITEMS);
    assert.deepEqual(byId(await listAll(server, container)), byId(ITEMS));
    for (const { items } of (await layoutOf(server, container)).ranges) assert.ok(items > 0);
});

test("an item keeps its resource id, its ETag and its time in a split and a merge", async () => {
    const container = await filled(1);
    const before = await listAll(server, container);
    const all = (items) => new Map(items.map((item) => [item.id, item]));
    await bringTo(container, 3);
    assert.deepEqual(all(await listAll(server, container)), all(before));
    await bringTo(container, 1);
    assert.deepEqual(all(await listAll(server, container)), all(before));
    const [item] = before;
    const { resource } = await container.item(item.id, item.pk).replace(
        { ...contentOf(item), n: -1 },
        { accessCondition: { type: "IfMatch", condition: item._etag } },
    );
    assert.equal(resource._rid, item._rid);
    const { resource: made } = await container.items.create({ id: "new", pk: item.pk });
    assert.ok(before.every(({ _rid }) => _rid !== made._rid));
});

test("a range that is gone is said to be gone, in the way that makes clients ask for the map", async () => {
    const container = await filled(1);
    const [{ id }] = await rangesOf(container);
    await bringTo(container, 2);
    const headers = { "x-ms-documentdb-partitionkeyrangeid": id };
    const answers = [
        await callItems(server, container, { headers }),
        await askPage(server, container, "SELECT * FROM c", { headers }),
    ];
    for (const answer of answers) {
        assert.equal(answer.status, 410, answer.text);
        assert.equal(answer.headers["x-ms-substatus"], "1002");
    }
});

test("clients go on reading, writing and asking while partitions are split and merged", async () => {
    const container = await filled(1);
    const counts = new Map(ITEMS.map(({ id }) => [id, 0]));
    let isOver = false;
    const patch = async (from) => {
        for (let i = from; !isOver; i = (i + 4) % ITEMS.length) {
            const { id, pk } = ITEMS[i];
            const item = container.item(id, pk);
            const { resource } = await item.patch([{ op: "incr", path: "/count", value: 1 }]);
            counts.set(id, counts.get(id) + 1);
            assert.equal(resource.count, counts.get(id));
            assert.equal((await item.read()).resource.count, counts.get(id));
        }
    };
    const ask = async () => {
        while (!isOver) {
            const { resources } = await container.items
                .query("SELECT c.id FROM c ORDER BY c.n", { maxItemCount: 50 })
                .fetchAll();
            sameIds(resources, ITEMS, "a query");
        }
    };
    const working = Promise.all([...times(4, patch), ask()]);
    const resizing = (async () => {
        for (const partitions of [3, 8, 4, 1]) await bringTo(container, partitions);
    })();
    await Promise.race([resizing, working]);
    isOver = true;
    await Promise.all([resizing, working]);
    for (const { id, count = 0 } of await listAll(server, container)) assert.equal(count, counts.get(id), id);
});

test("both kinds of bulk go on with a map that is out of date", async () => {
    const container = await filled(1);
    let made = 0;
    const operations = () =>
        times(60, (i) => ({
            operationType: "Create",
            partitionKey: `k${i}`,
            resourceBody: { id: `b${made++}`, pk: `k${i}` },
        }));
    for (const partitions of [1, 4, 2]) {
        await bringTo(container, partitions);
        for (const { statusCode } of await container.items.bulk(operations())) assert.equal(statusCode, 201);
    }
    for (const partitions of [5, 1]) {
        await bringTo(container, partitions);
        for (const { error } of await container.items.executeBulkOperations(operations()))
            assert.equal(error, undefined, error?.message);
    }
    assert.equal((await listAll(server, container)).length, ITEMS.length + made);
});

// --- Tokens of pages

const QUERIES = [
    ["plain", { text: "SELECT * FROM c" }],
    ["plain, of one key", { text: "SELECT * FROM c", key: "k7" }],
    ["with a filter", { text: "SELECT * FROM c WHERE c.even", of: ({ even }) => even }],
    ["ORDER BY", { text: "SELECT * FROM c ORDER BY c.n", isOrdered: true }],
    ["ORDER BY, down", { text: "SELECT * FROM c ORDER BY c.n DESC", isOrdered: true }],
    ["ORDER BY of one key", { text: "SELECT * FROM c ORDER BY c.n", key: "k7", isOrdered: true }],
    ["ORDER BY with many equal", { text: "SELECT * FROM c ORDER BY c.even", isOrdered: true, by: "even" }],
    ["OFFSET and LIMIT", { text: "SELECT * FROM c ORDER BY c.id OFFSET 100 LIMIT 300", slice: [100, 400] }],
];
const CHANGES = [
    ["a split", 1, [3]],
    ["a split and another", 1, [2, 5]],
    ["a merge", 4, [1]],
    ["a split and a merge", 2, [4, 1]],
];

function expectedOf({ key, of = () => true, slice = [0] }) {
    return ITEMS.filter((item) => (key === undefined || item.pk === key) && of(item)).slice(...slice);
}

function checkResults(found, query, message) {
    sameIds(found, expectedOf(query), message);
    assert.deepEqual(byId(found), byId(expectedOf(query)), message);
    if (!query.isOrdered) return;
    const values = found.map((item) => Number(item[query.by ?? "n"]));
    const sign = query.text.includes("DESC") ? -1 : 1;
    assert.deepEqual(values, [...values].sort((a, b) => sign * (a - b)), `${message}: in order`);
}

for (const [name, from, to] of CHANGES) {
    test(`queries that were begun before ${name} go on after it`, async () => {
        const container = await filled(from);
        const begun = [];
        for (const [, query] of QUERIES) {
            const size = query.key ? 3 : 70;
            const answer = await askPage(server, container, query.text, { size, key: query.key });
            const token = answer.headers["x-ms-continuation"];
            assert.ok(token, query.text);
            begun.push({ token, found: resultsOf(answer, size), size });
        }
        for (const partitions of to) {
            await bringTo(container, partitions);
            // One more page of each in every state.
            for (const [i, [, query]] of QUERIES.entries()) {
                const { token, found, size } = begun[i];
                const answer = await askPage(server, container, query.text, { size, key: query.key, token });
                found.push(...resultsOf(answer, size));
                begun[i].token = answer.headers["x-ms-continuation"];
            }
        }
        for (const [i, [title, query]] of QUERIES.entries()) {
            let { token, found, size } = begun[i];
            while (token) {
                const answer = await askPage(server, container, query.text, { size, key: query.key, token });
                found.push(...resultsOf(answer, size));
                token = answer.headers["x-ms-continuation"];
            }
            checkResults(found, query, `${title}, after ${name}`);
        }
    });

    test(`lists that were begun before ${name} go on after it`, async () => {
        const container = await filled(from);
        for (const key of [undefined, "k7"]) {
            const page = (token) =>
                callItems(server, container, {
                    key,
                    headers: {
                        "x-ms-max-item-count": key ? "3" : "100",
                        ...(token && { "x-ms-continuation": token }),
                    },
                });
            let answer = await page();
            const found = [...answer.json.Documents];
            for (const partitions of key ? [...to].reverse() : to) {
                await bringTo(container, partitions);
                answer = await page(answer.headers["x-ms-continuation"]);
                found.push(...answer.json.Documents);
            }
            while (answer.headers["x-ms-continuation"]) {
                answer = await page(answer.headers["x-ms-continuation"]);
                assert.equal(answer.status, 200, answer.text);
                found.push(...answer.json.Documents);
            }
            sameIds(found, expectedOf({ key }), `a list of ${key ?? "all"} over ${name}`);
        }
    });

    test(`the SDK's queries that were begun before ${name} go on after it`, async () => {
        const container = await filled(from);
        const begun = [];
        for (const [title, query] of QUERIES) {
            const iterator = container.items.query(query.text, {
                maxItemCount: query.key ? 3 : 20,
                partitionKey: query.key,
            });
            const { resources } = await iterator.fetchNext();
            begun.push({ title, query, iterator, found: [...resources] });
        }
        for (const partitions of to) await bringTo(container, partitions);
        for (const { title, query, iterator, found } of begun) {
            for (const page of await pagesOf(iterator, 1000)) found.push(...page);
            checkResults(found, query, `${title}, after ${name}`);
        }
    });
}

// Results that come of all items together.
const groupsOf = (valueOf, items = ITEMS) =>
    [...new Set(items.map(({ pk }) => pk))].map((k) => ({ k, m: valueOf(items.filter(({ pk }) => pk === k)) }));
const sizes = groupsOf((items) => items.length);
const numbers = [...new Set(ITEMS.map(({ n }) => n))];
const WHOLE = [
    ["SELECT c.pk AS k, COUNT(1) AS m FROM c GROUP BY c.pk", sizes],
    [
        "SELECT c.pk AS k, MAX(c.n) AS m FROM c WHERE c.even GROUP BY c.pk",
        groupsOf(
            (items) => Math.max(...items.map(({ n }) => n)),
            ITEMS.filter(({ even }) => even),
        ),
    ],
    ["SELECT DISTINCT c.n AS k FROM c", numbers.map((k) => ({ k }))],
    ["SELECT DISTINCT c.n AS k, c.text AS m FROM c", numbers.map((k) => ({ k, m: "x".repeat(100) }))],
    ["SELECT x.k, x.m FROM (SELECT c.pk AS k, COUNT(1) AS m FROM c GROUP BY c.pk) AS x WHERE x.m > 1", sizes],
];
const sorted = (rows) => rows.map(({ k, m }) => JSON.stringify({ k, m })).sort();

for (const [name, from, to] of CHANGES)
    test(`results of all items together that were begun before ${name} go on after it`, async () => {
        const container = await filled(from);
        const size = 7;
        const begun = [];
        for (const [text] of WHOLE) {
            const answer = await askPage(server, container, text, { size });
            begun.push({ found: resultsOf(answer, size), token: answer.headers["x-ms-continuation"] });
            assert.ok(begun.at(-1).token, text);
        }
        for (const partitions of to) {
            await bringTo(container, partitions);
            for (const [i, [text]] of WHOLE.entries()) {
                const answer = await askPage(server, container, text, { size, token: begun[i].token });
                begun[i].found.push(...resultsOf(answer, size));
                begun[i].token = answer.headers["x-ms-continuation"];
            }
        }
        for (const [i, [text, expected]] of WHOLE.entries()) {
            let { found, token } = begun[i];
            while (token) {
                const answer = await askPage(server, container, text, { size: 50, token });
                found.push(...resultsOf(answer, 50));
                token = answer.headers["x-ms-continuation"];
            }
            assert.deepEqual(sorted(found), sorted(expected), `${text}, after ${name}`);
        }
    });

/** As clients that merge by themselves ask: a part of the hash space, in the range that has it now. */
const askRange = (container, text, { range, from, to, token, size }) =>
    askPage(server, container, text, {
        size,
        token,
        headers: {
            "x-ms-documentdb-partitionkeyrangeid": range.id,
            ...(from !== undefined && {
                "x-ms-read-key-type": "EffectivePartitionKeyRange",
                "x-ms-start-epk": from,
                "x-ms-end-epk": to,
            }),
        },
    });

/** What is left of ranges, cut where the ranges of today meet. */
const piecesOf = (parts, ranges) =>
    parts
        .flatMap(({ from, to, token }) =>
            ranges.map((range) => ({
                range,
                from: range.minInclusive > from ? range.minInclusive : from,
                to: range.maxExclusive < to ? range.maxExclusive : to,
                token,
            })),
        )
        .filter(({ from, to }) => from < to);

/** The first page of each range, given to `take`; and what is left of it: each part has its token. */
async function beginRanges(container, text, take) {
    const parts = [];
    for (const range of await rangesOf(container)) {
        const answer = await askRange(container, text, { range, size: 40 });
        take(resultsOf(answer, 40));
        const token = answer.headers["x-ms-continuation"];
        assert.ok(token);
        parts.push({ from: range.minInclusive, to: range.maxExclusive, token });
    }
    return parts;
}

/** The next page of each part, from whatever partition has it by now; and what is left. */
async function goOn(container, text, { parts, ranges, size }, take) {
    const next = [];
    for (const part of piecesOf(parts, ranges)) {
        const answer = await askRange(container, text, { ...part, size });
        take(resultsOf(answer, size));
        const token = answer.headers["x-ms-continuation"];
        if (token) next.push({ ...part, token });
    }
    return next;
}

for (const text of ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.n"])
    test(`clients that ask range by range take their tokens to the children, and to the merged: ${text}`, async () => {
        const container = await filled(2);
        const found = [];
        const take = (rows) => found.push(...rows);
        let parts = await beginRanges(container, text, take);
        for (const partitions of [5, 3, 1]) {
            const ranges = await bringTo(container, partitions);
            parts = await goOn(container, text, { parts, ranges, size: 10 }, take);
        }
        const [range] = await rangesOf(container);
        for (let { from, to, token } of parts)
            while (token) {
                const answer = await askRange(container, text, { range, from, to, token, size: 100 });
                found.push(...resultsOf(answer, 100));
                token = answer.headers["x-ms-continuation"];
            }
        sameIds(found, ITEMS, text);
    });

test("clients that add up groups range by range take their tokens to the children, and to the merged", async () => {
    const text = "SELECT c.even AS k, c.n AS n, COUNT(1) AS m FROM c GROUP BY c.even, c.n";
    const container = await filled(2);
    const counts = new Map();
    const add = (rows) => {
        for (const { k, n, m } of rows) counts.set(`${k} ${n}`, (counts.get(`${k} ${n}`) ?? 0) + m);
    };
    let parts = await beginRanges(container, text, add);
    for (const partitions of [5, 3, 1]) {
        const ranges = await bringTo(container, partitions);
        parts = await goOn(container, text, { parts, ranges, size: partitions === 1 ? 1000 : 10 }, add);
    }
    assert.deepEqual(parts, []);
    const expected = new Map();
    for (const { even, n } of ITEMS) expected.set(`${even} ${n}`, (expected.get(`${even} ${n}`) ?? 0) + 1);
    assert.deepEqual(counts, expected);
});

test("a token of the SDK that was kept goes on after a split and after a merge", async () => {
    const container = await filled(2);
    const ask = (continuationToken) =>
        container.items.query("SELECT * FROM c ORDER BY c.n", {
            partitionKey: "k7",
            maxItemCount: 2,
            continuationToken,
        });
    const query = { key: "k7", isOrdered: true, text: "" };
    const found = [];
    let token;
    for (const partitions of [2, 5, 1, 3]) {
        await bringTo(container, partitions);
        const answer = await ask(token).fetchNext();
        found.push(...answer.resources);
        token = answer.continuationToken;
        assert.ok(token);
    }
    found.push(...(await ask(token).fetchAll()).resources);
    checkResults(found, query, "a kept token");
});

// --- Sessions

test("a session goes on: tokens of parents are good for children", async () => {
    const container = await filled(1);
    const token = async (item) => (await container.item(item.id, item.pk).read()).headers["x-ms-session-token"];
    const read = (item, sessionToken) =>
        container.item(item.id, item.pk).read({ consistencyLevel: "Session", sessionToken });
    const kept = [await token(ITEMS[0])];
    for (const partitions of [4, 2, 3]) {
        await bringTo(container, partitions);
        for (const sessionToken of kept)
            for (const item of ITEMS.slice(0, 20)) {
                const { resource, headers } = await read(item, sessionToken);
                assert.deepEqual(contentOf(resource), item);
                assert.equal(headers["x-ms-substatus"], undefined);
            }
        for (const item of ITEMS.slice(0, 5)) {
            const { headers } = await container.items.upsert(item);
            kept.push(headers["x-ms-session-token"]);
        }
    }
});

test("what a session has seen of a parent, a child must have", async () => {
    const container = await filled(1);
    const [parent] = await rangesOf(container);
    const read = ({ id, pk }, lsn) =>
        callItems(server, container, {
            id,
            key: pk,
            headers: { "x-ms-consistency-level": "Session", "x-ms-session-token": `${parent.id}:-1#${lsn}` },
        });
    for (const partitions of [1, 2, 1]) {
        await bringTo(container, partitions);
        for (const item of ITEMS.slice(0, 10)) {
            assert.equal((await read(item, 1)).status, 200);
            const ahead = await read(item, 1_000_000);
            assert.equal(ahead.status, 404, ahead.text);
            assert.equal(ahead.headers["x-ms-substatus"], "1002");
        }
    }
});

test("a child's LSN is not below its parent's, so a session never goes back", async () => {
    const container = await filled(1);
    const lsnOf = ({ headers }) => Number(/-1#(\d+)$/.exec(headers["x-ms-session-token"].split(",")[0])[1]);
    const item = ITEMS[3];
    let newest = lsnOf(await container.items.upsert(item));
    for (const partitions of [3, 1, 2]) {
        await bringTo(container, partitions);
        const lsn = lsnOf(await container.items.upsert(item));
        assert.ok(lsn > newest, `${lsn} after ${newest}`);
        newest = lsn;
    }
});

// --- Unique keys, expiry

test("unique keys hold over a split and a merge", async () => {
    const container = await newContainer(database, { throughput: 400 }, uniqueKeys(["/u"]));
    await fill(container, times(120, (i) => ({ id: `u${i}`, pk: `k${i % 12}`, u: i })));
    for (const partitions of [3, 1]) {
        await bringTo(container, partitions);
        for (let i = 0; i < 12; i++)
            await refused(container.items.create({ id: "other", pk: `k${i % 12}`, u: i }), 409);
    }
    await container.item("u5", "k5").delete();
    const { resource } = await container.items.create({ id: "other", pk: "k5", u: 5 });
    assert.equal(resource.u, 5);
    await bringTo(container, 2);
    await refused(container.items.create({ id: "u5", pk: "k5", u: 5 }), 409);
});

test("items expire in the partitions that took them over", async () => {
    const container = await newContainer(database, { throughput: 400 }, { defaultTtl: -1 });
    const mortal = times(60, (i) => ({ id: `m${i}`, pk: `k${i}`, ttl: 3 }));
    const immortal = times(60, (i) => ({ id: `i${i}`, pk: `k${i}` }));
    await fill(container, [...mortal, ...immortal]);
    await bringTo(container, 3);
    await until(async () => (await storedCount(server, container)) === immortal.length);
    sameIds(await listAll(server, container), immortal, "after a split");
    await fill(container, mortal);
    await bringTo(container, 1);
    await until(async () => (await storedCount(server, container)) === immortal.length);
    sameIds(await listAll(server, container), immortal, "after a merge");
});

// --- Where partitions are cut

/** The size of a key falls with its rank, as Zipf's law has it; `flat` takes the peak off. */
function zipf(keys, flat) {
    const items = [];
    for (let k = 0; k < keys; k++)
        for (let i = 0; i < Math.ceil((100 * flat) / (k + flat)); i++)
            items.push({ id: `z${k}-${i}`, pk: `key ${k}`, text: "z".repeat(1000) });
    return items;
}

async function halvesOf(items) {
    const container = await newContainer(database, { throughput: 400 });
    await fill(container, items);
    await bringTo(container, 2);
    const { ranges } = await layoutOf(server, container);
    sameIds(await listAll(server, container), items, "all");
    return ranges.map(({ bytes }) => bytes);
}

test("children of skewed data hold equally much, within a tenth", async () => {
    const [a, b] = await halvesOf(zipf(500, 5));
    assert.ok(Math.abs(a - b) <= 0.1 * ((a + b) / 2), `${a} and ${b} bytes`);
});

test("where one key holds much, children differ by no more than that key", async () => {
    const [a, b] = await halvesOf(zipf(500, 1));
    assert.ok(Math.abs(a - b) <= 100 * 1200, `${a} and ${b} bytes`);
});

test("a partition that has become too large is split", async (t) => {
    const own = await startServer(t, { args: ["--durability", "relaxed", "--partition-max", "300K"] });
    const made = await clientOf(own).databases.create({ id: "large" });
    const container = await newContainer(made.database);
    const items = times(900, (i) => ({ id: `l${i}`, pk: `k${i % 90}`, text: "l".repeat(1000) }));
    await fill(container, items);
    await until(async () => {
        const { ranges, totals } = await layoutOf(own, container);
        return ranges.length >= 4 && totals.items === items.length && ranges.every(({ bytes }) => bytes <= 300 * 1024);
    });
    const ranges = await rangesOf(container);
    checkRanges(ranges);
    const layout = await layoutOf(own, container);
    assert.equal(layout.totals.ru.allotted, 400, "throughput is what was paid for");
    sameIds(await listAll(own, container), items, "all");
    await own.stopWell();
    assert.match(checkFolder(own), /everything agrees/);
});

for (const [name, count, partitionKey] of [
    ["nothing", 0, { paths: ["/pk"] }],
    ["one item", 1, { paths: ["/pk"] }],
    ["one key", 1, { paths: ["/pk"], version: 1 }],
    ["one hierarchical key", 1, { paths: ["/pk", "/n"], kind: "MultiHash", version: 2 }],
]) {
    test(`raised throughput splits a container that holds ${name}`, async () => {
        const container = await newContainer(database, { throughput: 400 }, { partitionKey });
        const items = times(count, (i) => ({ id: `o${i}`, pk: "only", n: i }));
        await fill(container, items);
        checkRanges(await bringTo(container, 4));
        const more = times(200, (i) => ({ id: `m${i}`, pk: `k${i}`, n: i }));
        await fill(container, more);
        sameIds(await listAll(server, container), [...items, ...more], "all");
        const { ranges } = await layoutOf(server, container);
        assert.ok(
            ranges.every((range) => range.items > 10),
            `keys are spread over all: ${ranges.map((range) => range.items)}`,
        );
        await container.delete();
    });
}

test("a container whose second key comes while its throughput is raised is split", async () => {
    for (let round = 0; round < 5; round++) {
        const container = await newContainer(database, { throughput: 400 });
        await fill(container, [{ id: "a", pk: "a" }]);
        await setPartitions(container, 3);
        await fill(container, [{ id: "b", pk: "b" }]);
        checkRanges(await waitForPartitions(container, 3));
        sameIds(await listAll(server, container), [{ id: "a" }, { id: "b" }], "all");
        await container.delete();
    }
});

test("a partition of one key that holds too much is reported and not split", async (t) => {
    const own = await startServer(t, { args: ["--durability", "relaxed", "--partition-max", "100K"] });
    const made = await clientOf(own).databases.create({ id: "hot" });
    const container = await newContainer(made.database);
    const items = times(200, (i) => ({ id: `h${i}`, pk: "hot", text: "h".repeat(1000) }));
    await fill(container, items);
    await own.logged(/ WARN .*single logical partition|move\..*single logical partition/i);
    assert.equal((await rangesOf(container)).length, 1);
    const told = own.lines.filter((line) => line.includes("single logical partition"));
    assert.ok(told.length <= 3, `it is said now and then, not all the time: ${told.length}`);
    sameIds(await listAll(own, container), items, "all");
});

// --- In the middle of a split

/** A server that copies slowly, and a container on it that is being split. */
async function slowSplit(t, more = {}) {
    const args = ["--durability", "relaxed", "--partition-ru", "1000", "--auto-merge", "--split-rate", "1M"];
    const own = await startServer(t, { args });
    const made = await clientOf(own).databases.create({ id: "slow" });
    const container = await newContainer(made.database, undefined, more);
    const items = times(3000, (i) => ({ id: `s${i}`, pk: `k${i % 300}`, n: i, text: "s".repeat(1000) }));
    await fill(container, items);
    await setPartitions(container, 2);
    return { own, database: made.database, container, items };
}

test("a container can be deleted in the middle of a split", async (t) => {
    const { own, database, container } = await slowSplit(t);
    assert.equal((await rangesOf(container)).length, 1);
    await container.delete();
    await refused(container.read(), 404);
    const other = await newContainer(database);
    await fill(other, ITEMS);
    await bringTo(other, 2); // the mover goes on with other splits
    sameIds(await listAll(own, other), ITEMS, "another container");
    await own.stopWell();
    assert.match(checkFolder(own), /1 containers with 600 items: everything agrees/);
});

test("an indexing policy can be changed in the middle of a split", async (t) => {
    const { own, container, items } = await slowSplit(t, indexing({ includedPaths: paths("/id/?"), excludedPaths: paths("/*") }));
    const { resource } = await container.read();
    const composite = [[{ path: "/pk", order: "ascending" }, { path: "/n", order: "descending" }]];
    await container.replace({ ...resource, ...indexing({ compositeIndexes: composite }) });
    assert.equal((await rangesOf(container)).length, 1, "the split is still going on");
    await container.item("s5", "k5").patch([{ op: "set", path: "/n", value: -5 }]);
    await waitForPartitions(container, 2);
    await until(async () => {
        const { headers } = await container.read({ populateQuotaInfo: true });
        const progress = headers["x-ms-documentdb-collection-index-transformation-progress"];
        return progress === undefined || Number(progress) === 100;
    });
    const text = "SELECT c.id, c.pk, c.n FROM c ORDER BY c.pk ASC, c.n DESC";
    const found = await askAll(own, container, text, { size: 500 });
    const expected = items
        .map(({ id, pk, n }) => ({ id, pk, n: id === "s5" ? -5 : n }))
        .sort((a, b) => (a.pk < b.pk ? -1 : a.pk > b.pk ? 1 : b.n - a.n));
    assert.deepEqual(found, expected);
    await own.stopWell();
    assert.match(checkFolder(own), /1 containers with 3000 items: everything agrees/);
});

test("a server that is stopped in the middle of a split starts it again", async (t) => {
    const { own, container, items } = await slowSplit(t);
    await own.stopWell();
    assert.match(checkFolder(own), /1 containers with 3000 items: everything agrees/);
    await own.start();
    const again = clientOf(own).database(container.database.id).container(container.id);
    checkRanges(await waitForPartitions(again, 2));
    sameIds(await listAll(own, again), items, "all");
});
