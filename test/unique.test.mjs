// Unique keys: within a logical partition no two items have the same values.
import assert from "node:assert/strict";
import test from "node:test";

import { refused } from "./lib/check.mjs";
import { uniqueKeys } from "./lib/definition.mjs";
import { listAll, newContainer, ownContainer, sameItems, SIZES, storedCount, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const { database } = await clientOf(server).databases.create({ id: "unique" });
const VIOLATION = { message: /Unique index constraint violation/ };

function onEach(name, definition, work) {
    for (const size of SIZES)
        test(`${name} (${size.partitions} partitions)`, async (t) => {
            await work(await newContainer(database, size, definition), t, size);
        });
}

onEach("a value is taken once per partition key", uniqueKeys(["/email"]), async (container) => {
    await container.items.create({ id: "1", pk: "a", email: "x" });
    await refused(container.items.create({ id: "2", pk: "a", email: "x" }), 409, VIOLATION);
    await refused(container.items.upsert({ id: "2", pk: "a", email: "x" }), 409, VIOLATION);
    await container.items.create({ id: "2", pk: "b", email: "x" });
    await container.items.create({ id: "2", pk: "a", email: "y" });
    await refused(container.item("2", "a").replace({ id: "2", pk: "a", email: "x" }), 409, VIOLATION);
    const patch = [{ op: "set", path: "/email", value: "x" }];
    await refused(container.item("2", "a").patch(patch), 409, VIOLATION);
    // An item may keep its own value, whatever else changes, its id included.
    await container.item("1", "a").replace({ id: "1", pk: "a", email: "x", n: 1 });
    await container.items.upsert({ id: "1", pk: "a", email: "x", n: 2 });
    await container.item("1", "a").patch([{ op: "incr", path: "/n", value: 1 }]);
    await container.item("1", "a").replace({ id: "3", pk: "a", email: "x" });
    await refused(container.items.create({ id: "4", pk: "a", email: "x" }), 409, VIOLATION);
    sameItems(await listAll(server, container), [
        { id: "3", pk: "a", email: "x" },
        { id: "2", pk: "b", email: "x" },
        { id: "2", pk: "a", email: "y" },
    ]);
});

onEach("a value is free again when its item changes or goes", uniqueKeys(["/email"]), async (container) => {
    const pk = "p";
    await container.items.create({ id: "1", pk, email: "x" });
    await container.item("1", pk).replace({ id: "1", pk, email: "y" });
    await container.items.create({ id: "2", pk, email: "x" });
    await refused(container.items.create({ id: "3", pk, email: "y" }), 409, VIOLATION);
    await container.item("1", pk).delete();
    await container.items.create({ id: "3", pk, email: "y" });
    await container.item("3", pk).patch([{ op: "set", path: "/email", value: "z" }]);
    await container.items.create({ id: "4", pk, email: "y" });
    for (const [id, email] of [
        ["5", "x"],
        ["5", "y"],
        ["5", "z"],
    ])
        await refused(container.items.create({ id, pk, email }), 409, VIOLATION);
});

const DIFFERENT = [
    "x",
    "X",
    "",
    "1",
    "x\u0000",
    "é",
    "e\u0301",
    1,
    1.5,
    -1,
    true,
    false,
    null,
    "null",
    "true",
    [1],
    ["1"],
    {},
    { a: 1 },
];
onEach("values differ by type and to the byte", uniqueKeys(["/v"]), async (container) => {
    for (const [i, v] of DIFFERENT.entries()) await container.items.create({ id: `a${i}`, pk: "p", v });
    for (const [i, v] of DIFFERENT.entries())
        await refused(container.items.create({ id: `b${i}`, pk: "p", v }), 409, VIOLATION);
    // What is missing counts as null.
    await refused(container.items.create({ id: "none", pk: "p" }), 409, VIOLATION);
    await refused(container.items.create({ id: "zero", pk: "p", v: 1.0 }), 409, VIOLATION);
    await container.items.create({ id: "none", pk: "other" });
    await refused(container.items.create({ id: "none2", pk: "other" }), 409, VIOLATION);
});

const TWO = uniqueKeys(["/a", "/b/c"], ["/d"]);
onEach("several paths count together, several keys each alone", TWO, async (container) => {
    const make = (id, a, c, d) => container.items.create({ id, pk: "p", a, b: { c }, d });
    await make("1", 1, 1, 1);
    await make("2", 1, 2, 2);
    await make("3", 2, 1, 3);
    await refused(make("4", 1, 1, 4), 409, VIOLATION);
    await refused(make("4", 3, 3, 2), 409, VIOLATION);
    await make("4", "1", 1, "1");
    // Where one value ends and the next begins is not a matter of luck.
    await make("5", "ab", "c", 5);
    await make("6", "a", "bc", 6);
});

onEach("a refused write keeps nothing of its values", uniqueKeys(["/a"], ["/b"]), async (container) => {
    await container.items.create({ id: "1", pk: "p", a: 1, b: 1 });
    await refused(container.items.create({ id: "2", pk: "p", a: 2, b: 1 }), 409, VIOLATION);
    await container.items.create({ id: "3", pk: "p", a: 2, b: 2 });
    await refused(container.item("3", "p").replace({ id: "3", pk: "p", a: 3, b: 1 }), 409, VIOLATION);
    await container.items.create({ id: "4", pk: "p", a: 3, b: 3 });
    await refused(container.items.create({ id: "5", pk: "p", a: 2, b: 9 }), 409, VIOLATION);
});

onEach("a batch is checked as it goes, and undone as a whole", uniqueKeys(["/email"]), async (container) => {
    const pk = "p";
    const create = (id, email) => ({ operationType: "Create", resourceBody: { id, pk, email } });
    const codes = ({ result }) => result.map(({ statusCode }) => statusCode);
    await container.items.create({ id: "0", pk, email: "taken" });
    assert.deepEqual(
        codes(await container.items.batch([create("1", "x"), create("2", "x")], pk)),
        [424, 409],
    );
    assert.deepEqual(
        codes(await container.items.batch([create("1", "x"), create("2", "taken")], pk)),
        [424, 409],
    );
    assert.equal((await listAll(server, container)).length, 1);
    // The value moves from one item to the other within the batch.
    const swap = [
        { operationType: "Delete", id: "0" },
        create("1", "taken"),
        {
            operationType: "Patch",
            id: "1",
            resourceBody: { operations: [{ op: "set", path: "/email", value: "new" }] },
        },
        create("2", "taken"),
    ];
    assert.deepEqual(codes(await container.items.batch(swap, pk)), [204, 201, 200, 201]);
    const undone = [{ operationType: "Delete", id: "1" }, create("3", "new"), create("4", "taken")];
    assert.deepEqual(codes(await container.items.batch(undone, pk)), [424, 424, 409]);
    await refused(container.items.create({ id: "5", pk, email: "new" }), 409, VIOLATION);
    const bulk = await container.items.bulk([
        { ...create("6", "six"), partitionKey: pk },
        { ...create("7", "six"), partitionKey: pk },
        { ...create("8", "eight"), partitionKey: pk },
    ]);
    assert.deepEqual(
        bulk.map(({ statusCode }) => statusCode),
        [201, 409, 201],
    );
});

onEach(
    "a value is free when its item has expired, and taken by the next item",
    { ...uniqueKeys(["/email"]), defaultTtl: -1 },
    async (container) => {
        const pk = "p";
        const { resource } = await container.items.create({ id: "1", pk, email: "x", ttl: 1 });
        await until(async () => Date.now() >= (resource._ts + 1) * 1000);
        await container.items.create({ id: "2", pk, email: "x" });
        await refused(container.items.create({ id: "3", pk, email: "x" }), 409, VIOLATION);
        // When the first is taken away for good, the second keeps what it has.
        await until(async () => (await storedCount(server, container)) === 1);
        await refused(container.items.create({ id: "1", pk, email: "x" }), 409, VIOLATION);
        await container.item("2", pk).delete();
        await container.items.create({ id: "1", pk, email: "x" });
    },
);

for (const size of SIZES)
    test(`a value is free when its whole key was deleted (${size.partitions} partitions)`, async (t) => {
        const { server: own, container } = await ownContainer(t, size, uniqueKeys(["/email"]));
        const pk = "p";
        const old = Array.from({ length: 300 }, (_, i) => ({ id: `old${i}`, pk, email: `e${i}` }));
        for (const item of old) await container.items.create(item);
        await container.deleteAllItemsForPartitionKey(pk);
        const again = old.slice(0, 50).map(({ email }, i) => ({ id: `new${i}`, pk, email }));
        for (const item of again) await container.items.create(item);
        await until(async () => (await storedCount(own, container)) === again.length);
        for (const { email } of again)
            await refused(container.items.create({ id: "third", pk, email }), 409, VIOLATION);
        await container.items.create({ id: "third", pk, email: "e299" });
        await own.restart();
        sameItems(await listAll(own, container), [...again, { id: "third", pk, email: "e299" }]);
    });

onEach("of many items with the same value at once, one is created", uniqueKeys(["/email"]), async (container) => {
    for (let round = 0; round < 15; round++) {
        const attempts = Array.from({ length: 12 }, (_, i) =>
            container.items.create({ id: `r${round}-${i}`, pk: "p", email: `e${round}` }).then(
                () => 201,
                ({ code }) => code,
            ),
        );
        const codes = await Promise.all(attempts);
        assert.equal(codes.filter((code) => code === 201).length, 1, `${codes}`);
        assert.equal(codes.filter((code) => code === 409).length, 11, `${codes}`);
    }
    assert.equal((await listAll(server, container)).length, 15);
});
