// The power fails while a snapshot is saved, restored or dropped: the database is wholly as it was
// before, or wholly as it is after, and `orrery check` finds nothing.
//
// ORRERY_TEST_CRASH_ROUNDS raises the number of rounds, ORRERY_TEST_SNAPSHOT_ITEMS that of items; ORRERY_TEST_SEED repeats the choices of a
// run (the moment of a crash is still the machine's).
import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { times } from "./lib/definition.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { startServer } from "./lib/server.mjs";
import { drop, list, observe, restore, save, succeed } from "./lib/snapshots.mjs";
import { checkFolder } from "./lib/writers.mjs";

const ROUNDS = Number(process.env.ORRERY_TEST_CRASH_ROUNDS ?? 6);
const ITEMS = Number(process.env.ORRERY_TEST_SNAPSHOT_ITEMS ?? 400); // 20000 take several commits

const itemOf = (i, n) => ({ pk: `k${i % 5}`, n, text: "x".repeat(200) });

/** Makes the database something else: many items, and a container that is there or not. */
async function change(database, round) {
    const { container } = await database.containers.createIfNotExists({ id: "items", partitionKey: "/pk", throughput: 20_000 });
    const items = times(ITEMS, (i) => ({ ...itemOf(i, round * 1000 + i), id: `i${i}-${round % 2}` }));
    for (let at = 0; at < ITEMS; at += 100) {
        const operations = items.slice(at, at + 100).map((resourceBody) => ({ operationType: "Upsert", partitionKey: resourceBody.pk, resourceBody }));
        for (const { statusCode } of await container.items.bulk(operations)) assert.ok(statusCode < 300, `${statusCode}`);
    }
    if (round % 2 === 0) await database.containers.createIfNotExists({ id: `extra${round}`, partitionKey: "/pk" });
    if (round % 3 === 2) await container.delete();
}

test(`after ${ROUNDS} crashes in the midst a database is as before or as after`, { timeout: ROUNDS * 60_000 }, async (t) => {
    const seed = chooseSeed();
    t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
    const random = new Random(seed);
    const server = await startServer(t);
    const client = () => clientOf(server);
    let { database } = await client().databases.create({ id: "shop" });
    await change(database, 0);
    await succeed(save(server, "shop", "kept"));
    const kept = await observe(client(), "shop");
    const outcomes = { before: 0, after: 0 };

    for (let round = 1; round <= ROUNDS; round++) {
        database = client().database("shop");
        await change(database, round);
        const before = await observe(client(), "shop");
        const act = random.pick(["restore", "restore", "restore", "save", "drop"]);
        if (act === "drop") await succeed(save(server, "shop", "other"));
        const asked = { restore: () => restore(server, "shop", "kept"), save: () => save(server, "shop", "other"), drop: () => drop(server, "shop", "other") }[act]();
        const answered = asked.then(({ status }) => status < 300, () => false);
        await wait(random.below(act === "restore" ? 20 + ITEMS / 20 : 10));
        await server.kill();
        const isAcknowledged = await answered;
        checkFolder(server);
        if (round % 3 === 0) { // it fails again while it recovers
            const starting = server.start().catch(() => {});
            await wait(60 + random.below(60));
            await server.kill();
            await starting;
        }
        await server.start();
        const found = await observe(client(), "shop");
        const isAfter = JSON.stringify(found) === JSON.stringify(kept);
        if (act !== "restore") assert.deepEqual(found, before, `${act} changes nothing of the database`);
        else if (!isAfter) assert.deepEqual(found, before, "a mix of before and after");
        if (act === "restore") outcomes[isAfter ? "after" : "before"]++;
        assert.ok(act !== "restore" || !isAcknowledged || isAfter, "what was acknowledged has happened");
        const names = (await list(server)).map(({ name }) => name);
        assert.ok(names.includes("kept"));
        assert.ok((await list(server)).every(({ restoring }) => !restoring));
        if (isAcknowledged && act !== "restore") assert.equal(names.includes("other"), act === "save");
        await succeed(restore(server, "shop", "kept"));
        assert.deepEqual(await observe(client(), "shop"), kept);
        if (names.includes("other")) { // it has what was there when it was saved
            await succeed(restore(server, "shop", "other"));
            assert.deepEqual(await observe(client(), "shop"), before);
            await succeed(drop(server, "shop", "other"));
        }
    }
    t.diagnostic(`restores: ${outcomes.before} as before, ${outcomes.after} as after`);
    await server.stop();
    checkFolder(server);
});
