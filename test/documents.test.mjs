// What a document is, beside Node's own JSON: random documents come back as Node prints them, and
// values are ordered as Node compares them.
import assert from "node:assert/strict";
import test from "node:test";

import { callItems, eachSize, fill, queryAll } from "./lib/items.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const { database } = await clientOf(server).databases.create({ id: "documents" });
const containers = await eachSize(database);

function onEach(name, work) {
    for (const [size, container] of containers) {
        test(`${name} (${size})`, async (t) => {
            const seed = chooseSeed();
            t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
            await work(container, new Random(seed));
        });
    }
}

const TEXTS = ["", "a", "Z", '"', "\\", "/", "é", "ß", "€", "\u2028", "😀", ..."\n\t\b\f\r\0\x1f\x7f"];
const EDGES = [0, 1, 0.1, 1e21, 1e-7, 5e-324, Number.MAX_VALUE, 2 ** 31, 2 ** 32, 2 ** 53 - 1, 0.1 + 0.2];

function randomDouble(random) {
    const bytes = new DataView(new ArrayBuffer(8));
    for (let i = 0; i < 8; i++) bytes.setUint8(i, random.below(256));
    const value = bytes.getFloat64(0);
    return Number.isFinite(value) ? value : 0;
}

/** Any number but -0, which JSON does not have, and the integers that only 64 bits hold exactly. */
function randomNumber(random) {
    const value = random.pick([
        () => random.below(1000) - 500,
        () => random.pick(EDGES) * random.pick([1, -1]),
        () => randomDouble(random),
        () => random.below(1e9) / 10 ** random.below(12),
    ])();
    const isExact = !Number.isInteger(value) || Math.abs(value) < 2 ** 53 || Math.abs(value) > 2 ** 63;
    return isExact && value !== 0 ? value : 0;
}

const randomText = (random) => Array.from({ length: random.below(12) }, () => random.pick(TEXTS)).join("");

const randomScalar = (random) =>
    random.pick([() => null, () => random.chance(50), () => randomNumber(random), () => randomText(random)])();

function randomValue(random, depth) {
    if (depth === 0 || random.chance(50)) return randomScalar(random);
    const count = random.below(5);
    if (random.chance(50)) return Array.from({ length: count }, () => randomValue(random, depth - 1));
    // A name that is a number would come first in JavaScript, and only there.
    const name = () => `n${randomText(random)}`;
    return Object.fromEntries(Array.from({ length: count }, () => [name(), randomValue(random, depth - 1)]));
}

onEach("random documents come back as Node prints them", async (container, random) => {
    for (let i = 0; i < 300; i++) {
        const sent = { id: `d${i}`, pk: `k${i % 7}`, v: randomValue(random, 6) };
        const body = JSON.stringify(sent);
        const made = await callItems(server, container, { method: "POST", key: sent.pk, body });
        assert.equal(made.status, 201, `${made.text} of ${body}`);
        const read = await callItems(server, container, { id: sent.id, key: sent.pk });
        assert.ok(read.text.startsWith(`${body.slice(0, -1)},"_rid":`), `${read.text} of ${body}`);
        const [shown] = await queryAll(server, container, `SELECT VALUE c.v FROM c WHERE c.id = 'd${i}'`);
        assert.deepEqual(shown, sent.v);
    }
});

const RANK = { object: 0, boolean: 1, number: 2, string: 3 }; // the only object is null

function compare(a, b) {
    if (typeof a !== typeof b) return RANK[typeof a] - RANK[typeof b];
    if (typeof a === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b));
    return Number(a) - Number(b) || 0;
}

onEach("values are ordered as Node compares them", async (container, random) => {
    const long = "x".repeat(120); // longer than what the index keeps of a text
    const values = Array.from({ length: 400 }, () => {
        const value = randomScalar(random);
        return typeof value === "string" && random.chance(20) ? long + value : value;
    });
    await fill(
        container,
        values.map((o, i) => ({ id: `o${i}`, pk: `k${i % 9}`, o })),
    );
    const sorted = [...values].sort(compare);
    const query = "SELECT VALUE c.o FROM c ORDER BY c.o";
    assert.deepEqual(await queryAll(server, container, query), sorted);
    assert.deepEqual(await queryAll(server, container, `${query} DESC`), sorted.reverse());
    const pivot = random.pick(values.filter((value) => typeof value === "number"));
    const less = await queryAll(server, container, `SELECT VALUE c.o FROM c WHERE c.o < ${pivot}`);
    assert.equal(less.length, values.filter((value) => typeof value === "number" && value < pivot).length);
});

// --- Many items by their keys, as clients that have such a call ask for them

onEach("many items are read by id and key, range by range, in the forms of the SDKs", async (container) => {
    const items = Array.from({ length: 60 }, (_, i) => ({ id: `m${i}`, pk: `m${i % 12}`, same: i }));
    await fill(container, items);
    const wanted = items.filter((_, i) => i % 3 === 0);
    const pairs = wanted.map((_, i) => `(c.id = @id${i} AND c["pk"] = @pk${i})`);
    const parameters = wanted.flatMap(({ id, pk }, i) => [
        { name: `@id${i}`, value: id },
        { name: `@pk${i}`, value: pk },
    ]);
    const forms = [
        { query: `SELECT * FROM c WHERE (${pairs.join(" OR ")})`, parameters },
        { query: `SELECT * FROM c WHERE c.id IN (${wanted.map((_, i) => `@id${i}`).join(",")})`, parameters },
    ];
    const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
    for (const form of forms) {
        const found = [];
        for (const { id } of ranges) {
            const answer = await callItems(server, container, {
                method: "POST",
                headers: {
                    "content-type": "application/query+json",
                    "x-ms-documentdb-isquery": "true",
                    "x-ms-documentdb-partitionkeyrangeid": id,
                    "x-ms-max-item-count": "-1",
                },
                body: JSON.stringify(form),
            });
            assert.equal(answer.status, 200, answer.text);
            found.push(...answer.json.Documents.map(({ same }) => same));
        }
        found.sort((a, b) => a - b);
        assert.deepEqual(found, wanted.map(({ same }) => same));
    }
});
