// Deleting all items of a partition key: gone at once, for good, and nothing else with them.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import {
    afterRestart,
    listAll,
    newContainer,
    ownContainer,
    pathOf,
    queryAll,
    sameItems,
    SIZES,
} from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { call } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const { database } = await clientOf(server).databases.create({ id: "purge" });

/** The same test for each size. */
function onEach(name, work) {
    for (const size of SIZES) test(`${name} (${size.partitions} partitions)`, (t) => work(size, t));
}

onEach("all items of a key are gone at once, the others stay", async (size, t) => {
    const { server: own, container } = await ownContainer(t, size);
    const keys = ["a", "b", 1, null];
    const items = keys.flatMap((pk) => Array.from({ length: 30 }, (_, i) => ({ id: `i${i}`, pk })));
    for (const item of items) await container.items.create(item);
    const response = await container.deleteAllItemsForPartitionKey("a");
    assert.equal(response.statusCode, 200);
    const rest = items.filter(({ pk }) => pk !== "a");
    sameItems(await listAll(own, container), rest);
    assert.deepEqual(await listAll(own, container, { key: "a" }), []);
    assert.deepEqual(await queryAll(own, container, "SELECT VALUE COUNT(1) FROM c"), [rest.length]);
    assert.equal((await container.item("i0", "a").read()).statusCode, 404);
    await refused(container.item("i1", "a").replace({ id: "i1", pk: "a" }), 404);
    await refused(container.item("i2", "a").delete(), 404);
    await refused(container.item("i3", "a").patch([{ op: "set", path: "/x", value: 1 }]), 404);

    // What is made now is new, also under the old ids.
    const again = [
        { id: "i5", pk: "a", n: 1 },
        { id: "other", pk: "a" },
    ];
    for (const item of again) assert.equal((await container.items.create(item)).statusCode, 201);
    const last = { id: "i6", pk: "a", n: 2 };
    assert.equal((await container.items.upsert(last)).statusCode, 201);
    again.push(last);
    sameItems(await listAll(own, container), [...rest, ...again]);

    const later = await afterRestart(own, container);
    sameItems(await listAll(own, later), [...rest, ...again]);
    await later.deleteAllItemsForPartitionKey(null);
    await later.deleteAllItemsForPartitionKey("no such key");
    await own.restart();
    sameItems(
        await listAll(own, later),
        [...rest, ...again].filter(({ pk }) => pk !== null),
    );
});

onEach("a crash right after the answer does not bring anything back", async (size, t) => {
    const { server: own, container } = await ownContainer(t, size, {}, []);
    const items = ["a", "b"].flatMap((pk) => Array.from({ length: 700 }, (_, i) => ({ id: `i${i}`, pk })));
    for (let i = 0; i < items.length; i += 100) {
        const part = items.slice(i, i + 100);
        await container.items.bulk(part.map((resourceBody) => ({ operationType: "Create", resourceBody })));
    }
    sameItems(await listAll(own, container), items);
    await container.deleteAllItemsForPartitionKey("a");
    await own.kill();
    await own.start();
    sameItems(
        await listAll(own, container),
        items.filter(({ pk }) => pk === "b"),
    );
});

onEach("keys are deleted and filled again by many clients at once", async (size, t) => {
    const { server: own, container } = await ownContainer(t, size);
    const kept = [];
    const lane = async (number) => {
        const pk = `lane ${number}`;
        for (let round = 0; round < 12; round++) {
            for (let i = 0; i < 5; i++) await container.items.create({ id: `r${round % 2}-${i}`, pk });
            await container.deleteAllItemsForPartitionKey(pk);
            assert.deepEqual(await listAll(own, container, { key: pk }), []);
        }
        await container.items.create({ id: "last", pk });
        kept.push({ id: "last", pk });
    };
    await Promise.all(Array.from({ length: 8 }, (_, i) => lane(i)));
    sameItems(await listAll(own, container), kept);
    await own.restart();
    sameItems(await listAll(own, container), kept);
});

onEach("a prefix of a hierarchical key deletes all below it", async (size, t) => {
    const partitionKey = { paths: ["/t", "/u"], kind: "MultiHash", version: 2 };
    const { server: own, container } = await ownContainer(t, size, { partitionKey });
    const items = [];
    for (const t of ["a", "b", "c"]) for (const u of ["1", "2", "3"]) items.push({ id: "x", t, u });
    for (const item of items) await container.items.create(item);
    await container.deleteAllItemsForPartitionKey(["a"]);
    let rest = items.filter(({ t }) => t !== "a");
    sameItems(await listAll(own, container), rest);
    await container.deleteAllItemsForPartitionKey(["b", "2"]);
    rest = rest.filter(({ t, u }) => t !== "b" || u !== "2");
    sameItems(await listAll(own, container), rest);
    rest.push({ id: "new", t: "a", u: "1" });
    await container.items.create(rest.at(-1));
    await own.restart();
    sameItems(await listAll(own, container), rest);
});

test("without a good key header nothing is deleted", async () => {
    const container = await newContainer(database);
    await container.items.create({ id: "x", pk: "a" });
    const request = {
        method: "POST",
        path: `${pathOf(container)}/operations/partitionkeydelete`,
        type: "colls",
        link: pathOf(container).slice(1),
    };
    const cases = [
        [undefined],
        ["[]", 1001],
        ['["a","b"]', 1001],
        ["a"],
        ['[["a"]]'],
    ];
    for (const [key, substatus] of cases) {
        const headers = key === undefined ? {} : { "x-ms-documentdb-partitionkey": key };
        errorAnswer(await call(server, { ...request, headers }), 400, "BadRequest", { substatus });
    }
    assert.equal((await listAll(server, container)).length, 1);
});
