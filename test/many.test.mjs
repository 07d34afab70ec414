// Many databases and containers, made and dropped by many clients at once.
import assert from "node:assert/strict";
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { ids, pagesOf } from "./lib/check.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";

const SCALE = Number(process.env.ORRERY_TEST_SCALE ?? 1);
const CLIENTS = 32;
const KEY = { paths: ["/pk"], version: 2 };
const server = await sharedServer();

/** Runs `work` for 0 .. count-1, at most `width` at a time. */
async function inParallel(count, width, work) {
    let next = 0;
    const lane = async () => {
        while (next < count) await work(next++);
    };
    await Promise.all(Array.from({ length: Math.min(width, count) }, lane));
}

function folderBytes(folder) {
    let bytes = 0;
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name);
        bytes += entry.isDirectory() ? folderBytes(path) : lstatSync(path).size;
    }
    return bytes;
}

// An empty folder, with the store's own notes, is a fraction of this.
function assertSmall(folder) {
    const bytes = folderBytes(folder);
    assert.ok(bytes < 1 << 20, `${bytes} bytes are left`);
}

async function contents(client) {
    const { resources } = await client.databases.readAll().fetchAll();
    const result = {};
    for (const { id } of resources)
        result[id] = ids((await client.database(id).containers.readAll().fetchAll()).resources).sort();
    return result;
}

test(`${CLIENTS} clients create and drop at once, and readers never notice`, async () => {
    const main = clientOf(server);
    const { database: stable } = await main.databases.create({ id: "stable" });
    const { resource: watched } = await stable.containers.create({ id: "watched", partitionKey: KEY });

    let writing = true;
    let reads = 0;
    const reader = async () => {
        const container = clientOf(server).database("stable").container("watched");
        while (writing) {
            assert.deepEqual((await container.read()).resource, watched);
            reads++;
        }
    };

    // Of every three databases one is dropped whole, one loses a container, one stays.
    const expected = { stable: ["watched"] };
    const writer = async (number) => {
        const client = clientOf(server);
        for (let round = 0; round < 6 * SCALE; round++) {
            const id = `db-${number}-${round}`;
            const { database } = await client.databases.create({ id });
            const names = ["a", "b", "c"];
            await Promise.all(
                names.map((name) => database.containers.create({ id: name, partitionKey: KEY })),
            );
            if (round % 3 === 0) {
                await database.delete();
            } else if (round % 3 === 1) {
                await database.container("b").delete();
                expected[id] = ["a", "c"];
            } else {
                expected[id] = names;
            }
        }
    };

    const readers = [reader(), reader()];
    try {
        await Promise.all(Array.from({ length: CLIENTS }, (_, i) => writer(i)));
    } finally {
        writing = false;
    }
    await Promise.all(readers);
    assert.ok(reads > 20, `only ${reads} reads`);
    assert.deepEqual(await contents(main), expected);

    const offers = (await main.offers.readAll().fetchAll()).resources;
    const containers = Object.values(expected).flat().length;
    assert.equal(offers.length, containers);
    await server.restart();
    assert.deepEqual(await contents(clientOf(server)), expected);
});

test("clients that compete for the same names leave a consistent state", async () => {
    const client = clientOf(server);
    const tally = {};
    await inParallel(400 * SCALE, CLIENTS, async (i) => {
        const database = client.database(`fight-${i % 3}`);
        const work = [
            () => client.databases.create({ id: database.id }),
            () => database.containers.create({ id: `c${i % 4}`, partitionKey: KEY }),
            () => database.container(`c${i % 4}`).delete(),
            () => database.containers.readAll().fetchAll(),
            () => database.delete(),
        ][(i * 7 + (i >> 3)) % 5];
        const code = await work().then(
            ({ statusCode }) => statusCode ?? 200,
            (error) => error.code,
        );
        tally[code] = (tally[code] ?? 0) + 1;
        assert.ok([200, 201, 204, 404, 409].includes(code), `status ${code}`);
    });
    assert.ok(tally[201] > 0 && tally[204] > 0, JSON.stringify(tally));
    const left = await contents(client);
    for (let i = 0; i < 3; i++) {
        const { resource } = await client.databases.createIfNotExists({ id: `fight-${i}` });
        assert.ok(resource._rid);
    }
    await server.restart();
    const after = await contents(clientOf(server));
    for (const [id, names] of Object.entries(left)) assert.deepEqual(after[id], names);
});

test("two thousand containers are listed page by page, and nothing stays when all are dropped", async (t) => {
    const own = await startServer(t);
    const client = clientOf(own);
    const count = 2000;
    const { database } = await client.databases.create({ id: "large" });
    await inParallel(count, CLIENTS, (i) =>
        database.containers.create({ id: `container ${i}`, partitionKey: structuredClone(KEY) }),
    );

    const expected = Array.from({ length: count }, (_, i) => `container ${i}`).sort();
    for (const size of [100, 999]) {
        const pages = await pagesOf(database.containers.readAll({ maxItemCount: size }), size);
        assert.equal(pages.length, Math.ceil(count / size));
        assert.deepEqual(pages.flatMap(ids).sort(), expected);
    }
    const one = await database.containers.query("SELECT * FROM r WHERE r.id = 'container 1234'").fetchAll();
    assert.deepEqual(ids(one.resources), ["container 1234"]);

    await own.restart();
    const again = clientOf(own);
    assert.deepEqual(
        ids((await again.database("large").containers.readAll().fetchAll()).resources).sort(),
        expected,
    );
    await inParallel(count / 2, CLIENTS, (i) => again.database("large").container(`container ${i}`).delete());
    await again.database("large").delete();
    await own.restart();
    assert.deepEqual(await contents(clientOf(own)), {});
    assert.deepEqual((await clientOf(own).offers.readAll().fetchAll()).resources, []);
    assertSmall(own.data);
});

test("a folder does not grow by what comes and goes", async (t) => {
    const own = await startServer(t);
    for (let round = 0; round < 6; round++) {
        const client = clientOf(own);
        const { database } = await client.databases.create({ id: "passing" });
        await inParallel(200 * SCALE, CLIENTS, (i) =>
            database.containers.create({ id: `c${i}`, partitionKey: structuredClone(KEY) }),
        );
        await database.delete();
        await own.restart();
        assertSmall(own.data);
    }
});
