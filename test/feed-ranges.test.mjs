// Feed ranges: any part of the hash space, finer or coarser than physical partitions, read and queried alone.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { contentOf, fill, listAll, newContainer, sameItems } from "./lib/items.mjs";
import { askAll, askPage, explain, resultsOf } from "./lib/queries.mjs";
import { chooseSeed, Random } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const { database } = await clientOf(server).databases.create({ id: "ranges" });

const seed = chooseSeed();
console.log(`feed-ranges: ORRERY_TEST_SEED=${seed}`);

const COUNT = 600;
const ITEMS = Array.from({ length: COUNT }, (_, n) => ({
    id: `${n}`,
    pk: n % 2 === 0 ? `key ${n % 97}` : n % 89,
    sub: n % 7,
    n,
    ten: n % 10,
}));

const SHAPES = [
    ["1 partition", { throughput: 400 }],
    ["5 partitions", { throughput: 30_000 }],
    ["25 partitions", { throughput: 150_000 }],
    ["5 partitions, version 1", { throughput: 30_000 }, { partitionKey: { paths: ["/pk"], version: 1 } }],
    [
        "5 partitions, hierarchical",
        { throughput: 30_000 },
        { partitionKey: { paths: ["/pk", "/sub"], kind: "MultiHash", version: 2 } },
    ],
];

const containers = [];
for (const [name, size, more] of SHAPES) {
    const container = await newContainer(database, size, more);
    await fill(container, ITEMS);
    containers.push([name, container]);
}

function onEach(name, work) {
    for (const [shape, container] of containers) test(`${name} (${shape})`, (t) => work(container, shape, t));
}

/** As SDKs send a feed range. */
const headersOf = ({ minInclusive, maxExclusive }, more = {}) => ({
    "x-ms-read-key-type": "EffectivePartitionKeyRange",
    "x-ms-start-epk": minInclusive,
    "x-ms-end-epk": maxExclusive,
    ...more,
});

/** Ranges between cuts, which need not be those of partitions. */
function between(cuts) {
    const ends = ["", ...cuts, "FF"];
    return ends.slice(1).map((maxExclusive, i) => ({ minInclusive: ends[i], maxExclusive }));
}

// Version 1 hashes are 32 bits, encoded as a double: between 05C1 and 05C1F0; version 2 begins below 40.
function randomCuts(random, count, shape) {
    const hex = (digits) => Array.from({ length: digits }, () => random.pick([..."0123456789ABCDEF"])).join("");
    const cuts = Array.from({ length: count }, () =>
        shape.includes("version 1") ? `05C1${hex(6)}` : random.pick([..."0123"]) + hex(random.pick([1, 5, 31])),
    );
    return [...new Set(cuts)].sort();
}

onEach("the feed ranges that the SDK gives are the partitions, and together everything", async (container) => {
    const ranges = await container.getFeedRanges();
    const { resources: partitions } = await container.readPartitionKeyRanges().fetchAll();
    assert.equal(ranges.length, partitions.length);
    const found = [];
    for (const range of ranges) {
        const options = { initialHeaders: headersOf(range), maxItemCount: 50 };
        const { resources } = await container.items.query("SELECT * FROM c", options).fetchAll();
        const told = await explain(server, container, "SELECT * FROM c", { headers: headersOf(range) });
        assert.equal(told.partitionsVisited, 1);
        const list = await listAll(server, container, { headers: headersOf(range) });
        sameItems(list, resources.map(contentOf));
        found.push(...resources);
    }
    sameItems(found, ITEMS);
});

onEach("ranges may be finer than partitions, coarser, or across them", async (container, shape) => {
    const random = new Random(seed);
    for (const count of [1, 3, 8, 40]) {
        const ranges = between(randomCuts(random, count, shape));
        const found = [];
        let counted = 0;
        for (const range of ranges) {
            const headers = headersOf(range);
            const items = await askAll(server, container, "SELECT * FROM c", { headers, size: 17 });
            const list = await listAll(server, container, { headers, size: 17 });
            sameItems(list, items.map(contentOf));
            const [total] = await askAll(server, container, "SELECT VALUE COUNT(1) FROM c", { headers });
            assert.equal(total, items.length);
            found.push(...items);
            counted += total;
        }
        sameItems(found, ITEMS);
        assert.equal(counted, COUNT);
    }
});

onEach("a query sees its range as if there were nothing else", async (container, shape) => {
    const random = new Random(seed + 1);
    for (const range of between(randomCuts(random, 4, shape))) {
        const headers = headersOf(range);
        const items = await listAll(server, container, { headers });
        const numbers = items.map(({ n }) => n).sort((a, b) => a - b);
        const ask = (query, size) => askAll(server, container, query, { headers, size });
        for (const size of [undefined, 4]) {
            assert.deepEqual(await ask("SELECT VALUE c.n FROM c ORDER BY c.n", size), numbers);
            assert.deepEqual(await ask("SELECT VALUE c.n FROM c ORDER BY c.n DESC", size), [...numbers].reverse());
            const some = numbers.filter((n) => n % 10 === 3);
            assert.deepEqual(await ask("SELECT VALUE c.n FROM c WHERE c.ten = 3 ORDER BY c.n", size), some);
            assert.deepEqual(
                await ask("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 10", size),
                numbers.slice(3, 13),
            );
            const groups = await ask("SELECT c.ten, COUNT(1) AS n FROM c GROUP BY c.ten", size);
            for (const { ten, n } of groups)
                assert.equal(n, numbers.filter((number) => number % 10 === ten).length);
            assert.equal(groups.length, new Set(numbers.map((n) => n % 10)).size);
        }
        const [largest] = await ask("SELECT VALUE MAX(c.n) FROM c");
        assert.equal(largest, numbers.at(-1));
    }
});

onEach("a partition's id and a range meet where they overlap", async (container) => {
    const { resources: partitions } = await container.readPartitionKeyRanges().fetchAll();
    const found = [];
    for (const { id, minInclusive, maxExclusive } of partitions) {
        const cut = minInclusive + "55"; // within, or at least not before
        for (const [from, to] of [
            ["", cut],
            [cut, "FF"],
        ]) {
            const more = { "x-ms-documentdb-partitionkeyrangeid": id };
            const headers = headersOf({ minInclusive: from, maxExclusive: to }, more);
            found.push(...(await askAll(server, container, "SELECT * FROM c", { headers })));
        }
        const outside = headersOf(
            { minInclusive: maxExclusive, maxExclusive: "FF" },
            { "x-ms-documentdb-partitionkeyrangeid": id },
        );
        assert.deepEqual(await askAll(server, container, "SELECT * FROM c", { headers: outside }), []);
    }
    sameItems(found, ITEMS);
});

onEach("one end is enough, and a range may be empty", async (container, shape) => {
    const cut = shape.includes("version 1") ? "05C1D8" : "1A";
    const low = await askAll(server, container, "SELECT * FROM c", { headers: { "x-ms-end-epk": cut } });
    const high = await askAll(server, container, "SELECT * FROM c", { headers: { "x-ms-start-epk": cut } });
    assert.ok(low.length > 0 && high.length > 0);
    sameItems([...low, ...high], ITEMS);
    for (const [from, to] of [
        [cut, cut],
        ["20", "10"],
        ["FF", "FF"],
    ]) {
        const headers = headersOf({ minInclusive: from, maxExclusive: to });
        assert.deepEqual(await askAll(server, container, "SELECT * FROM c", { headers }), []);
        assert.deepEqual(await askAll(server, container, "SELECT VALUE COUNT(1) FROM c", { headers }), [0]);
        assert.deepEqual(await listAll(server, container, { headers }), []);
    }
});

onEach("a range needs no permission to cross partitions, and what is no range is refused", async (container) => {
    const alone = { "x-ms-documentdb-query-enablecrosspartition": "false" };
    const headers = headersOf({ minInclusive: "", maxExclusive: "30" }, alone);
    resultsOf(await askPage(server, container, "SELECT * FROM c ORDER BY c.n", { headers }));
    for (const bad of [
        { "x-ms-start-epk": "xyz" },
        { "x-ms-start-epk": "123" },
        { "x-ms-end-epk": "0x10" },
        { "x-ms-start-epk": "00".repeat(700) },
        { "x-ms-read-key-type": "ResourceId" },
        { "x-ms-read-key-type": "EffectivePartitionKey", "x-ms-start-epk": "10" },
        { "x-ms-read-key-type": "no" },
    ]) {
        const answer = await askPage(server, container, "SELECT * FROM c", { headers: bad });
        errorAnswer(answer, 400, "BadRequest");
    }
});
