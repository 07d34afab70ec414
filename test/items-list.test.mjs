// Lists and queries of items: whole container, one key, a prefix, a range; page by page, each item once.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, ids } from "./lib/check.mjs";
import {
    callItems,
    contentOf,
    eachSize,
    fill,
    listAll,
    listPages,
    newContainer,
    ownContainer,
    sameItems,
    SIZES,
} from "./lib/items.mjs";
import { askPage, resultsOf } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { ofOneNode, sharedServer } from "./lib/server.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "lists" });

const KEYS = Array.from({ length: 20 }, (_, i) => `key ${i}`);
const EXPECTED = KEYS.flatMap((pk, i) =>
    Array.from({ length: 3 * i }, (_, n) => ({ id: `item ${n}`, pk, n, text: "x".repeat(n * 10) })),
);

const containers = await eachSize(database);
for (const [, container] of containers) await fill(container, EXPECTED);

function onEach(name, work, options = {}) {
    for (const [size, container] of containers) test(`${name} (${size})`, options, (t) => work(container, t));
}

async function rangesOf(container) {
    return (await container.readPartitionKeyRanges().fetchAll()).resources;
}

onEach("a list has every item once, whatever the page size", async (container) => {
    for (const size of [1, 2, 7, 100, 569, 570, 571, 1000, -1]) {
        const pages = await listPages(server, container, { size });
        sameItems(
            pages.flatMap(({ items }) => items),
            EXPECTED,
            `pages of ${size}`,
        );
        if (size > 0) assert.equal(pages.length, Math.ceil(EXPECTED.length / size), `pages of ${size}`);
        else assert.equal(pages.length, 1);
    }
}, { skip: ofOneNode("a page ends with the ranges of a node") });

test("items of one key come in the order in which they were made", async () => {
    for (const size of SIZES) {
        const container = await newContainer(database, size);
        const made = Array.from({ length: 30 }, (_, i) => ({ id: `${(i * 7) % 30}`, pk: "p" }));
        for (const item of made) await container.items.create(item);
        await container.items.upsert({ ...made[3], again: true });
        for (const pages of [1, 7, 30, -1]) {
            const listed = await listPages(server, container, { key: "p", size: pages });
            assert.deepEqual(ids(listed.flatMap(({ items }) => items)), ids(made), `pages of ${pages}`);
        }
    }
});

onEach("a page has a hundred items if nothing is said", async (container) => {
    const answer = await callItems(server, container);
    assert.equal(answer.json.Documents.length, 100);
    assert.ok(answer.headers["x-ms-continuation"]);
});

onEach("the SDK reads all items, with and without a partition key", async (container) => {
    for (const maxItemCount of [undefined, 33, 1000])
        sameItems((await container.items.readAll({ maxItemCount }).fetchAll()).resources, EXPECTED);
    for (const partitionKey of KEYS) {
        const { resources } = await container.items.readAll({ partitionKey, maxItemCount: 5 }).fetchAll();
        sameItems(
            resources,
            EXPECTED.filter(({ pk }) => pk === partitionKey),
        );
    }
});

onEach("a list of one partition key has its items and no others", async (container) => {
    for (const key of [...KEYS, "no such key"])
        for (const size of [1, 10, -1]) {
            const expected = EXPECTED.filter(({ pk }) => pk === key);
            sameItems(await listAll(server, container, { key, size }), expected);
        }
});

onEach("lists of all ranges are the whole, and none overlaps another", async (container) => {
    const ranges = await rangesOf(container);
    const owner = (await container.read()).resource._rid;
    for (const size of [4, -1]) {
        const all = [];
        for (const { id } of ranges) {
            for (const name of [id, `${owner},${id}`]) {
                const headers = { "x-ms-documentdb-partitionkeyrangeid": name };
                const items = await listAll(server, container, { size, headers });
                if (name === id) all.push(...items);
                else sameItems(items, all.slice(all.length - items.length));
            }
        }
        sameItems(all, EXPECTED);
    }
    const foreign = await callItems(server, container, {
        headers: { "x-ms-documentdb-partitionkeyrangeid": "77" },
    });
    errorAnswer(foreign, 410, "Gone", { substatus: 1002 });
});

onEach("ranges of effective partition keys cut a container into pieces", async (container) => {
    const cuts = ["", "08", "0CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC", "15A0", "20", "3F000000", "FF"];
    for (const size of [3, -1]) {
        const all = [];
        for (let i = 1; i < cuts.length; i++) {
            const headers = {
                "x-ms-read-key-type": "EffectivePartitionKeyRange",
                "x-ms-start-epk": cuts[i - 1],
                "x-ms-end-epk": cuts[i],
            };
            all.push(...(await listAll(server, container, { size, headers })));
        }
        sameItems(all, EXPECTED);
    }
    // Within a physical range the two headers narrow it.
    const ranges = await rangesOf(container);
    const all = [];
    for (const { id, minInclusive, maxExclusive } of ranges) {
        for (const [start, end] of [
            [minInclusive, "14"],
            ["14", maxExclusive],
        ]) {
            const headers = {
                "x-ms-documentdb-partitionkeyrangeid": id,
                "x-ms-start-epk": start,
                "x-ms-end-epk": end,
            };
            all.push(...(await listAll(server, container, { headers })));
        }
    }
    sameItems(all, EXPECTED);
    for (const bad of ["xyz", "1", "0C C"]) {
        const answer = await callItems(server, container, { headers: { "x-ms-start-epk": bad } });
        errorAnswer(answer, 400, "BadRequest");
    }
});

onEach("a query runs over the whole, over one key, over pages", async (container) => {
    const run = async (text, options) => (await container.items.query(text, options).fetchAll()).resources;
    sameItems(await run("SELECT * FROM c"), EXPECTED);
    sameItems(await run("SELECT * FROM c", { maxItemCount: 7 }), EXPECTED);
    sameItems(
        await run("SELECT * FROM c WHERE c.n = 5"),
        EXPECTED.filter(({ n }) => n === 5),
    );
    assert.deepEqual(await run("SELECT VALUE COUNT(1) FROM c"), [EXPECTED.length]);
    const query = {
        query: "SELECT VALUE c.id FROM c WHERE c.n < @n ORDER BY c.n DESC",
        parameters: [{ name: "@n", value: 4 }],
    };
    assert.deepEqual(await run(query, { partitionKey: "key 7" }), ["item 3", "item 2", "item 1", "item 0"]);
    assert.deepEqual(await run("SELECT VALUE COUNT(1) FROM c", { partitionKey: "key 19" }), [57]);
    assert.deepEqual(await run("SELECT * FROM c", { partitionKey: "nothing" }), []);
});

onEach("a list goes on where it was, whatever is written in between", async (container) => {
    const own = await newContainer(database, SIZES[containers.findIndex(([, c]) => c === container)]);
    const items = Array.from({ length: 60 }, (_, i) => ({ id: `i${i}`, pk: `k${i % 9}`, n: 0 }));
    await fill(own, items);
    const seen = [];
    let token;
    let step = 0;
    do {
        const answer = await callItems(server, own, {
            headers: { "x-ms-max-item-count": "7", ...(token && { "x-ms-continuation": token }) },
        });
        seen.push(...answer.json.Documents.map(({ id }) => id));
        token = answer.headers["x-ms-continuation"];
        // What was seen is deleted, what was not is changed; something new comes in.
        const gone = items.find(({ id }) => id === seen[step]);
        await own.item(gone.id, gone.pk).delete();
        const kept = items.find(({ id }) => !seen.includes(id));
        if (kept) await own.item(kept.id, kept.pk).replace({ ...kept, n: 1 });
        await own.items.create({ id: `new${step}`, pk: `k${step % 9}` });
        step++;
    } while (token);
    const old = seen.filter((id) => id.startsWith("i"));
    assert.deepEqual(old.sort(), items.map(({ id }) => id).sort());
    assert.equal(new Set(seen).size, seen.length, "nothing comes twice");
});

for (const size of SIZES)
    test(`a token survives a restart, a foreign one is refused (${size.partitions} partitions)`, async (t) => {
        const own = await ownContainer(t, size);
        await fill(own.container, EXPECTED);
        const page = (token) =>
            callItems(own.server, own.container, {
                headers: { "x-ms-max-item-count": "250", ...(token && { "x-ms-continuation": token }) },
            });
        const first = await page();
        const token = first.headers["x-ms-continuation"];
        await own.server.restart();
        const items = [...first.json.Documents];
        for (let next = token; next; ) {
            const answer = await page(next);
            assert.equal(answer.status, 200, answer.text);
            items.push(...answer.json.Documents);
            next = answer.headers["x-ms-continuation"];
        }
        sameItems(items, EXPECTED);
        const bad = [
            "x",
            "[]",
            "[{}]",
            "!!",
            "AAAA",
            "MTA=",
            `${token}!`,
            token.slice(1),
            "Q100000001",
            "A".repeat(3000),
        ];
        for (const foreign of bad) errorAnswer(await page(foreign), 400, "BadRequest");
        // Of another kind of list.
        const other = await callItems(own.server, own.container, {
            key: "key 3",
            headers: { "x-ms-continuation": token },
        });
        errorAnswer(other, 400, "BadRequest");
    });

test("tokens are short however long ids are, and lose nothing when items go", async () => {
    const container = await newContainer(database);
    const lengths = [1023, 1000, 735, 30];
    const items = Array.from({ length: 40 }, (_, i) => {
        const tail = String(i);
        return { id: "x".repeat(lengths[i % lengths.length] - tail.length) + tail, pk: "p" };
    });
    await fill(container, items);
    for (const size of [1, 7]) sameItems(await listAll(server, container, { key: "p", size }), items);
    const { resources } = await container.items.readAll({ partitionKey: "p", maxItemCount: 3 }).fetchAll();
    sameItems(resources, items);
    // Whatever a page shows is deleted before the next one: the token names nothing that is there.
    const seen = [];
    for (let token; ; ) {
        const { headers, json } = await callItems(server, container, {
            key: "p",
            headers: {
                "x-ms-max-item-count": "3",
                "x-ms-documentdb-responsecontinuationtokenlimitinkb": "1",
                ...(token && { "x-ms-continuation": token }),
            },
        });
        seen.push(...json.Documents);
        for (const { id } of json.Documents) await container.item(id, "p").delete();
        token = headers["x-ms-continuation"];
        if (!token) break;
        assert.ok(token.length <= 1024, `${token.length} characters`);
    }
    sameItems(seen, items);
});

onEach("a full page of a query looks only so far for more; then the next is empty", async (container) => {
    // Two properties are compared, which no index helps with, so that items are looked at in turn.
    const text = "SELECT * FROM c WHERE c.n = ARRAY_LENGTH(c.list)";
    const own = await newContainer(database, SIZES[containers.findIndex(([, c]) => c === container)]);
    const items = Array.from({ length: 1000 }, (_, i) => ({ id: `${i}`, pk: `k${i % 10}`, n: i, list: [] }));
    await fill(own, items);
    const first = await askPage(server, own, text, { size: 1 });
    sameItems(resultsOf(first), [items[0]]);
    const token = first.headers["x-ms-continuation"];
    assert.ok(token);
    const second = await askPage(server, own, text, { size: 1, token });
    assert.deepEqual(resultsOf(second), []);
    assert.equal(second.headers["x-ms-continuation"], undefined);
    const { resources } = await own.items.query(text, { maxItemCount: 1 }).fetchAll();
    sameItems(resources, [items[0]]);
    // What must be seen whole is.
    const count = text.replace("*", "VALUE COUNT(1)");
    assert.deepEqual(resultsOf(await askPage(server, own, count, { size: 1 })), [1]);
});

onEach("a query over partitions must be allowed", async (container) => {
    const ask = (text, more) =>
        callItems(server, container, {
            method: "POST",
            ...more,
            headers: {
                "content-type": "application/query+json",
                "x-ms-documentdb-isquery": "true",
                ...more?.headers,
            },
            body: { query: text },
        });
    const name = "x-ms-documentdb-query-enablecrosspartition";
    for (const headers of [{}, { [name]: "false" }, { [name]: "False" }]) {
        const answer = await ask("SELECT * FROM c", { headers });
        errorAnswer(answer, 400, "BadRequest", { message: new RegExp(name) });
    }
    for (const value of ["true", "True"])
        assert.equal((await ask("SELECT * FROM c", { headers: { [name]: value } })).status, 200);
    assert.equal((await ask("SELECT * FROM c", { key: "key 3" })).status, 200);
    const byFilter = await ask("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'key 3'");
    assert.deepEqual(byFilter.json.Documents, [9]);
    const range = { "x-ms-documentdb-partitionkeyrangeid": "0" };
    assert.equal((await ask("SELECT * FROM c", { headers: range })).status, 200);
});

test("a page is at most 4 MB", { skip: ofOneNode("a page ends with the ranges of a node") }, async () => {
    for (const size of SIZES) {
        const container = await newContainer(database, size);
        const items = [];
        for (let i = 0; i < 14; i++) {
            const item = { id: `large ${i}`, pk: `k${i % 4}`, text: "x".repeat(900_000) };
            items.push({ id: item.id, pk: item.pk });
            await container.items.create(item);
        }
        for (const options of [{}, { size: 1000 }, { key: "k1" }]) {
            const pages = await listPages(server, container, options);
            for (const { bytes, items: page } of pages) {
                assert.ok(bytes <= 4 << 20, `${bytes} bytes`);
                assert.ok(page.length >= 1, "each page makes some way");
            }
            const expected = items.filter(({ pk }) => !options.key || pk === options.key);
            const found = pages.flatMap(({ items: page }) => page.map(({ id, pk }) => ({ id, pk })));
            sameItems(found, expected);
        }
        const { resources } = await container.items.query("SELECT * FROM c").fetchAll();
        assert.deepEqual(ids(resources).sort(), ids(items).sort());
    }
});

test("a page does not outgrow 4 MB by what stands around its items", async () => {
    const limit = 4 << 20;
    const sizeOf = async (texts) => {
        const container = await newContainer(database);
        for (const [i, text] of texts.entries()) await container.items.create({ id: `i${i}`, pk: "p", text });
        const pages = await listPages(server, container);
        const query = await callItems(server, container, {
            method: "POST",
            headers: {
                "content-type": "application/query+json",
                "x-ms-documentdb-isquery": "true",
                "x-ms-documentdb-query-enablecrosspartition": "true",
                "x-ms-max-item-count": "-1",
            },
            body: { query: "SELECT * FROM c" },
        });
        assert.equal(query.status, 200, query.text.slice(0, 200));
        assert.ok(query.bytes.length <= limit, `${query.bytes.length} bytes of a query`);
        for (const { bytes } of pages) assert.ok(bytes <= limit, `${bytes} bytes of a list`);
        return pages.map(({ bytes }) => bytes);
    };
    const [empty] = await sizeOf(["", "", ""]);
    const third = "x".repeat(1_300_000);
    const rest = (bytes) => "x".repeat(bytes - empty - 2 * third.length);
    for (let over = -300; over <= 100; over += 50) await sizeOf([third, third, rest(limit + over)]);
    assert.equal((await sizeOf([third, third, rest(limit - 1000)])).length, 1);
});

// --- Hierarchical keys

test("a prefix of a hierarchical key lists all that is below it", async (t) => {
    const partitionKey = { paths: ["/tenant", "/user", "/session"], kind: "MultiHash", version: 2 };
    for (const size of SIZES) {
        await t.test(`${size.partitions} partitions`, async () => {
            const container = await newContainer(database, size, { partitionKey });
            const items = [];
            for (const tenant of ["a", "b", "c"])
                for (const user of ["1", "2", "3"])
                    for (const session of ["x", "y", "z"])
                        for (const id of ["i", "j"]) items.push({ id, tenant, user, session });
            await fill(container, items);
            const below = (prefix) =>
                items.filter(({ tenant, user, session }) =>
                    prefix.every((value, i) => [tenant, user, session][i] === value),
                );
            for (const key of [["a"], ["b", "2"], ["c", "3", "z"], ["d"], ["a", "4"], ["a", "1", "w"]]) {
                for (const pages of [1, 5, -1])
                    sameItems(await listAll(server, container, { key, size: pages }), below(key), `${key}`);
                const options = { partitionKey: key };
                const found = await container.items.query("SELECT * FROM c", options).fetchAll();
                sameItems(found.resources, below(key), `${key}`);
            }
            sameItems(await listAll(server, container, { size: 10 }), items);
            for (const item of items) {
                const key = [item.tenant, item.user, item.session];
                assert.deepEqual(contentOf((await container.item(item.id, key).read()).resource), item);
            }
        });
    }
});

// --- Refusals

test("a list refuses what it does not understand", async () => {
    const [[, container]] = containers;
    const rows = [
        ["a page size of -2", { "x-ms-max-item-count": "-2" }],
        ["a page size in words", { "x-ms-max-item-count": "many" }],
        ["a key that is no array", { "x-ms-documentdb-partitionkey": '"a"' }],
        ["a key with too many values", { "x-ms-documentdb-partitionkey": '["a","b"]' }, 1001],
        ["a key that is not JSON", { "x-ms-documentdb-partitionkey": "[a]" }],
        ["a range that is no number", { "x-ms-documentdb-partitionkeyrangeid": "first" }],
    ];
    for (const [what, headers, substatus] of rows) {
        const answer = await callItems(server, container, { headers });
        assert.equal(answer.status, 400, `${what}: ${answer.text}`);
        errorAnswer(answer, 400, "BadRequest", { substatus });
    }
});
