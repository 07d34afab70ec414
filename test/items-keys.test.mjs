// Partition keys of items: every kind of value, missing and nested ones, versions, headers, routing.
import assert from "node:assert/strict";
import test from "node:test";

import { PartitionKeyBuilder } from "@azure/cosmos";

import { errorAnswer, refused } from "./lib/check.mjs";
import { callItems, contentOf, listAll, newContainer, sameItems, SIZES } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "keys" });

const hash = (path, version) => ({ paths: [path], kind: "Hash", ...(version && { version }) });
const VERSIONS = [
    ["V1", undefined],
    ["V2", 2],
];

/** The same test for each size and version of a key with one path. */
function onEach(name, work) {
    for (const size of SIZES)
        for (const [label, version] of VERSIONS)
            test(`${name} (${label}, ${size.partitions} partitions)`, async (t) => {
                const partitionKey = hash("/pk", version);
                await work(await newContainer(database, size, { partitionKey }), t, version ?? 1);
            });
}

const VALUES = [
    "text", "", "a", "A", " ", "ünïcødé", "日本語テキスト", "😀", '"quoted"', "back\\slash", "a/b", "\u0001",
    "null", "1", "true", "x".repeat(99), "x".repeat(100), 0, 1, -1, 1.5, -0.25, 1e300, 5e-324, 9007199254740991, 42,
    4294967296, true, false, null,
];

onEach("a value of any kind is a key of its own", async (container) => {
    for (const [i, pk] of VALUES.entries()) {
        const { resource } = await container.items.create({ id: "same", pk, i });
        assert.deepEqual(contentOf(resource), { id: "same", pk, i });
    }
    await container.items.create({ id: "same", i: "missing" });
    await refused(container.items.create({ id: "same", i: "again" }), 409);
    for (const [i, pk] of VALUES.entries()) {
        assert.equal((await container.item("same", pk).read()).resource?.i, i, JSON.stringify(pk));
        assert.deepEqual(
            (await listAll(server, container, { key: [pk] })).map((item) => item.i),
            [i],
        );
        await refused(container.items.create({ id: "same", pk }), 409);
    }
    assert.equal((await container.item("same", undefined).read()).resource.i, "missing");
    assert.equal((await listAll(server, container)).length, VALUES.length + 1);
    for (const pk of VALUES) await container.item("same", pk).delete();
    assert.deepEqual(
        (await listAll(server, container)).map((item) => item.i),
        ["missing"],
    );
});

onEach("bulk of the SDK and the server agree where every key lives", async (container, t, version) => {
    const random = (i) => {
        const kinds = [`key ${i}`, i * 7919 - 3000, i / 3, `ключ ${i}`, "x".repeat(1 + (i % 100)), `${i}😀`];
        return kinds[i % kinds.length];
    };
    const items = Array.from({ length: 240 }, (_, i) => ({ id: `i${i}`, pk: random(i), n: i }));
    items.push({ id: "t", pk: true }, { id: "f", pk: false }, { id: "n", pk: null });
    const operations = items.map((resourceBody) => ({
        operationType: "Create",
        resourceBody,
        partitionKey: resourceBody.pk,
    }));
    for (let i = 0; i < operations.length; i += 100) {
        const results = await container.items.bulk(operations.slice(i, i + 100));
        for (const [n, { statusCode }] of results.entries())
            assert.equal(statusCode, 201, `V${version} ${JSON.stringify(items[i + n].pk)}`);
    }
    for (const item of items)
        assert.deepEqual(contentOf((await container.item(item.id, item.pk).read()).resource), item);
    sameItems(await listAll(server, container), items);
    const ranges = (await container.readPartitionKeyRanges().fetchAll()).resources;
    const counts = [];
    for (const { id } of ranges) {
        const headers = { "x-ms-documentdb-partitionkeyrangeid": id };
        counts.push((await listAll(server, container, { headers })).length);
    }
    assert.ok(
        counts.every((count) => count > 0),
        `every partition has some: ${counts}`,
    );
});

onEach("header and document must agree", async (container) => {
    await container.items.create({ id: "there", pk: "a", n: 1 });
    const mismatch = {
        substatus: 1001,
        message: /PartitionKey extracted from document doesn't match the one specified in the header/,
    };
    const rows = [
        ["b", { id: "x", pk: "a" }],
        ["a", { id: "x", pk: "A" }],
        ["1", { id: "x", pk: 1 }],
        [1, { id: "x", pk: 1.5 }],
        [null, { id: "x" }],
        [{}, { id: "x", pk: null }],
        [false, { id: "x", pk: true }],
        ["a", { id: "x" }],
        ["a", { id: "x", pk: ["a"] }],
    ];
    for (const [key, body] of rows) {
        const answer = await callItems(server, container, { method: "POST", key: [key], body });
        errorAnswer(answer, 400, "BadRequest", mismatch);
    }
    const put = { method: "PUT", id: "there", key: "a", body: { id: "there", pk: "b" } };
    errorAnswer(await callItems(server, container, put), 400, "BadRequest", mismatch);
    assert.deepEqual((await listAll(server, container)).map(contentOf), [{ id: "there", pk: "a", n: 1 }]);
    // Another key is another place: nothing is there.
    for (const key of ["b", "A", 1, null, true, {}])
        assert.equal((await callItems(server, container, { id: "there", key: [key] })).status, 404);
});

onEach("a write without the header finds its key in the document", async (container) => {
    for (const pk of ["x", 7, null, true]) {
        const body = { id: "bare", pk };
        const made = await callItems(server, container, { method: "POST", body });
        assert.equal(made.status, 201, made.text);
        assert.deepEqual((await container.item("bare", pk).read()).resource, made.json);
    }
    const made = await callItems(server, container, { method: "POST", body: { id: "none" } });
    assert.equal(made.status, 201);
    assert.deepEqual((await container.item("none", undefined).read()).resource, made.json);
    const body = { id: "bare", pk: "x", n: 1 };
    const replaced = await callItems(server, container, { method: "PUT", id: "bare", body });
    assert.equal(replaced.status, 200, replaced.text);
    for (const request of [
        { id: "bare" },
        { method: "DELETE", id: "bare" },
        { method: "PATCH", id: "bare", body: [{ op: "set", path: "/n", value: 2 }] },
    ]) {
        const answer = await callItems(server, container, request);
        errorAnswer(answer, 400, "BadRequest", { message: /PartitionKey value must be supplied/ });
    }
    assert.equal((await container.item("bare", "x").read()).resource.n, 1);
});

onEach("objects and arrays count as missing, and so do paths through them", async (container) => {
    const items = [
        { id: "a" },
        { id: "b", pk: {} },
        { id: "c", pk: [] },
        { id: "d", pk: ["x"] },
        { id: "e", pk: { x: 1 } },
    ];
    for (const body of items) {
        const made = await callItems(server, container, { method: "POST", key: [{}], body });
        assert.equal(made.status, 201, made.text);
        assert.deepEqual((await container.item(body.id, undefined).read()).resource, made.json);
    }
    sameItems(await listAll(server, container, { key: [{}] }), items);
    await container.items.create({ id: "f", pk: null });
    sameItems(await listAll(server, container, { key: [null] }), [{ id: "f", pk: null }]);
});

onEach("a header that is no partition key is refused", async (container) => {
    const bad = [
        '"a"',
        "a",
        "[",
        "[1,2]",
        "[]",
        "{}",
        '[{"a":1}]',
        '[["a"]]',
        "[undefined]",
        "null",
        "[NaN]",
    ];
    for (const header of bad) {
        for (const request of [
            { id: "x" },
            { method: "DELETE", id: "x" },
            { method: "POST", body: { id: "x", pk: "a" } },
        ]) {
            const headers = { "x-ms-documentdb-partitionkey": header };
            const answer = await callItems(server, container, { ...request, headers });
            assert.equal(answer.status, 400, `${header}: ${answer.text}`);
            // Another number of values belongs to another definition: SDKs then read the container again.
            const substatus = ["[]", "[1,2]"].includes(header) ? 1001 : undefined;
            errorAnswer(answer, 400, "BadRequest", { message: /x-ms-documentdb-partitionkey/, substatus });
        }
    }
    assert.deepEqual(await listAll(server, container), []);
});

onEach("numbers are the same key however they are written", async (container) => {
    await container.items.create({ id: "n", pk: 100 });
    for (const text of ["[100]", "[100.0]", "[1e2]", "[1E+2]", " [ 100 ] "]) {
        const headers = { "x-ms-documentdb-partitionkey": text };
        assert.equal((await callItems(server, container, { id: "n", headers })).status, 200, text);
    }
    await container.items.create({ id: "u", pk: "é😀" });
    for (const text of ['["\\u00e9\\ud83d\\ude00"]', Buffer.from('["é😀"]').toString("latin1")]) {
        const headers = { "x-ms-documentdb-partitionkey": text };
        assert.equal((await callItems(server, container, { id: "u", headers })).status, 200, text);
    }
});

test("a key has at most 2,048 bytes, in every version", async () => {
    const limit = 2048;
    for (const size of SIZES) {
        for (const version of [undefined, 1, 2]) {
            const container = await newContainer(database, size, { partitionKey: hash("/pk", version) });
            const fits = "k".repeat(limit);
            await container.items.create({ id: "x", pk: fits });
            assert.equal((await container.item("x", fits).read()).statusCode, 200);
            for (const pk of ["k".repeat(limit + 2), "ü".repeat(limit)]) {
                await refused(container.items.create({ id: "x", pk }), 400, { message: /too large/ });
                const answer = await callItems(server, container, { id: "x", key: pk });
                errorAnswer(answer, 400, "BadRequest");
            }
            assert.equal((await listAll(server, container)).length, 1);
        }
    }
});

test("a key of version 1 may be long, and its first 100 characters are the logical partition", async () => {
    for (const size of SIZES) {
        const container = await newContainer(database, size, { partitionKey: hash("/pk") });
        const head = "k".repeat(100);
        const keys = [head, `${head}a`, `${head}${"b".repeat(163)}`, `x${head}`];
        for (const [i, pk] of keys.entries()) {
            await container.items.create({ id: `i${i}`, pk });
            assert.equal((await container.item(`i${i}`, pk).read()).resource.pk, pk);
        }
        // One logical partition: ids are unique in it, and its items are found by each of its keys.
        await refused(container.items.create({ id: "i0", pk: keys[2] }), 409);
        assert.equal((await listAll(server, container, { key: [keys[1]] })).length, 3);
        // A filter is still a comparison of whole values.
        const query = { query: "SELECT VALUE c.id FROM c WHERE c.pk = @pk", parameters: [] };
        for (const [i, pk] of keys.entries()) {
            query.parameters = [{ name: "@pk", value: pk }];
            assert.deepEqual((await container.items.query(query).fetchAll()).resources, [`i${i}`]);
        }
    }
});

const PATHS = [
    ["/a/b", { a: { b: "v" } }, { a: "v" }],
    ["/a/b/c/d", { a: { b: { c: { d: "v" } } } }, { a: { b: { c: ["v"] } } }],
    ['/"department name"', { "department name": "v" }, { department: "v" }],
    ['/a/"b c"/d', { a: { "b c": { d: "v" } } }, { a: { d: "v" } }],
    ['/"a/b"', { "a/b": "v" }, { a: { b: "v" } }],
    ["/schlüssel", { schlüssel: "v" }, { schluessel: "v" }],
    ["/id", { id: "v" }, null],
];
test("a key is found by its path: nested, quoted, the id itself", async (t) => {
    for (const [path, has, hasNot] of PATHS)
        for (const version of [undefined, 2])
            for (const size of SIZES)
                await t.test(`${path} version ${version ?? 1} ${size.partitions} partitions`, async () => {
                    const container = await newContainer(
                        database,
                        size,
                        { partitionKey: hash(path, version) },
                    );
                    const { resource } = await container.items.create({ id: "v", ...has });
                    assert.deepEqual((await container.item("v", "v").read()).resource, resource);
                    if (!hasNot) return;
                    const body = { id: "w", ...hasNot };
                    const made = await callItems(server, container, { method: "POST", key: [{}], body });
                    assert.equal(made.status, 201, made.text);
                    assert.equal((await container.item("w", undefined).read()).statusCode, 200);
                    assert.equal((await container.item("w", "v").read()).statusCode, 404);
                });
});

test("a hierarchical key needs all of its values for one item", async (t) => {
    const partitionKey = { paths: ["/t", "/u/v", "/s"], kind: "MultiHash", version: 2 };
    for (const size of SIZES)
        await t.test(`${size.partitions} partitions`, async () => {
            const container = await newContainer(database, size, { partitionKey });
            const rows = [
                [["a", "b", "c"], { t: "a", u: { v: "b" }, s: "c" }],
                [["a", "b", 1], { t: "a", u: { v: "b" }, s: 1 }],
                [["a", null, true], { t: "a", u: { v: null }, s: true }],
                [[1, 2, 3], { t: 1, u: { v: 2 }, s: 3 }],
                [["é", "", "😀"], { t: "é", u: { v: "" }, s: "😀" }],
            ];
            for (const [key, body] of rows) {
                await container.items.create({ id: "x", ...body });
                assert.deepEqual(
                    contentOf((await container.item("x", key).read()).resource),
                    { id: "x", ...body },
                );
            }
            const partial = new PartitionKeyBuilder().addValue("a").addNoneValue().addValue("c").build();
            await container.items.create({ id: "x", t: "a", s: "c" });
            assert.equal((await container.item("x", partial).read()).resource.s, "c");
            assert.equal((await listAll(server, container)).length, rows.length + 1);

            for (const key of [["a"], ["a", "b"], ["a", "b", "c", "d"], []]) {
                for (const request of [
                    { id: "x" },
                    { method: "DELETE", id: "x" },
                    { method: "PUT", id: "x", body: { id: "x", t: "a", u: { v: "b" }, s: "c" } },
                    { method: "POST", body: { id: "y", t: "a", u: { v: "b" }, s: "c" } },
                ]) {
                    const answer = await callItems(server, container, { ...request, key });
                    errorAnswer(answer, 400, "BadRequest", {
                        substatus: 1001,
                        message: /Partition key provided either doesn't correspond to definition/,
                    });
                }
            }
            const wrong = {
                method: "POST",
                key: ["a", "b", "c"],
                body: { id: "y", t: "a", u: { v: "b" }, s: "d" },
            };
            errorAnswer(await callItems(server, container, wrong), 400, "BadRequest", { substatus: 1001 });
            assert.equal((await listAll(server, container)).length, rows.length + 1);
            const moved = container.item("x", ["a", "b", "c"]).replace({
                id: "x",
                t: "b",
                u: { v: "b" },
                s: "c",
            });
            await refused(moved, 400, { substatus: 1001 });
        });
});
