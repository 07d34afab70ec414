// Backups while partitions are split and merged, and going back in time over splits and merges.
import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { backup, check, restore } from "./lib/backups.mjs";
import { CHAOS, cause, moved } from "./lib/chaos.mjs";
import { contentOf, fill, newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { startServer, temporaryFolder } from "./lib/server.mjs";
import { checkRanges, rangesOf } from "./lib/splits.mjs";

const byId = (a, b) => (a.id < b.id ? -1 : 1);

async function contentsOf(container) {
    const { resources } = await container.items.readAll().fetchAll();
    return resources.map(contentOf).sort(byId);
}

test("a backup in the middle of a split or a merge is whole", { timeout: 120_000 }, async (t) => {
    const server = await startServer(t, { args: [...CHAOS, "--split-rate", "2M"] });
    const { database } = await clientOf(server).databases.create({ id: "db" });
    const container = await newContainer(database);
    const items = Array.from({ length: 1500 }, (_, i) => ({ id: `i${i}`, pk: `k${i}`, text: "x".repeat(2000) }));
    await fill(container, items);
    const to = join(temporaryFolder(), "backups");
    const moves = [
        ["split", () => ({ range: "0", by: "hash" })],
        ["merge", (ranges) => ({ ranges: ranges.map(({ id }) => id) })],
    ];
    for (const [what, body] of moves) {
        const { event } = await cause(server, container, what, body(await rangesOf(container)));
        const taken = [];
        let isOver = false;
        const ended = moved(server, event).then(() => (isOver = true));
        while (!isOver && taken.length < 4) taken.push(await backup(server.endpoint, to));
        await ended;
        for (const { generation } of taken) {
            const data = join(temporaryFolder(), "data");
            await restore(to, data, "--generation", String(generation));
            check(data);
            const copy = await startServer(t, { data });
            const again = clientOf(copy).database("db").container(container.id);
            checkRanges(await rangesOf(again));
            assert.deepEqual(await contentsOf(again), [...items].sort(byId));
            await copy.stop();
            check(data);
        }
    }
});

test("items are taken back over a split and a merge", { timeout: 120_000 }, async (t) => {
    const server = await startServer(t, { args: CHAOS });
    const { database } = await clientOf(server).databases.create({ id: "db" });
    const container = await newContainer(database, undefined, { changeFeedPolicy: { retentionDuration: 10 } });
    const moments = [];
    const change = async (round) => {
        for (let i = 0; i < 12; i++) {
            const pk = `k${i % 6}`;
            if ((i + round) % 4 === 0) await container.item(`i${i}`, pk).delete().catch(() => {});
            else await container.items.upsert({ id: `i${i}`, pk, round });
        }
        moments.push({ second: Math.floor(Date.now() / 1000), state: await contentsOf(container) });
        await wait(2100);
    };
    const move = async (what, body) => moved(server, (await cause(server, container, what, body)).event);
    await change(0);
    await move("split", { range: "0", by: "hash" });
    await change(1);
    await move("merge", { ranges: (await rangesOf(container)).map(({ id }) => id) });
    await change(2);
    await change(3);
    const to = join(temporaryFolder(), "backups");
    await backup(server.endpoint, to);
    await server.stop();
    for (const { second, state } of moments) {
        const data = join(temporaryFolder(), "data");
        await restore(to, data, "--at", new Date(second * 1000).toISOString().replace(".000Z", "Z"));
        check(data);
        const copy = await startServer(t, { data });
        assert.deepEqual(await contentsOf(clientOf(copy).database("db").container(container.id)), state);
        await copy.stop();
    }
});
