// The power fails in the middle of splits and merges, again and again: what was acknowledged is there,
// the map is whole, `orrery check` finds nothing wrong and nothing left over, and it goes on.
//
// ORRERY_TEST_CRASH_ROUNDS raises the number of rounds; ORRERY_TEST_SEED repeats the choices of a run
// (the moment of a crash is still the machine's).
import assert from "node:assert/strict";
import { Agent } from "node:http";
import test from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { times, uniqueKeys } from "./lib/definition.mjs";
import { fill, listAll, newContainer, pathOf, until } from "./lib/items.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { startServer } from "./lib/server.mjs";
import { PARTITION_RU, SMALL, byId, checkRanges, sameIds } from "./lib/splits.mjs";
import { call } from "./lib/wire.mjs";
import { Mortals, Writer, checkCounts, checkFolder, crashMoment } from "./lib/writers.mjs";

const ROUNDS = Number(process.env.ORRERY_TEST_CRASH_ROUNDS ?? 10);
const WRITERS = 4;
const FIXED = times(1500, (i) => ({ id: `f${i}`, pk: `fixed ${i % 100}`, u: i, text: "f".repeat(1000) }));

// As fast as it goes, most moves are over when the power fails; slower, most are not.
const RATES = ["0", "16M", "4M"];

/** By hand: the SDK would go on asking a server that is gone. */
async function askRanges(server, container, agent) {
    const { json } = await call(server, { path: `${pathOf(container)}/pkranges`, agent });
    const ranges = json.PartitionKeyRanges;
    return ranges.sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
}

/** False: it is too early, the last change is still being worked on. */
async function resize(server, offer, partitions) {
    const offerThroughput = partitions === 1 ? 400 : partitions * PARTITION_RU;
    const answer = await call(server, {
        method: "PUT",
        path: `/offers/${offer._rid}`,
        link: offer._rid.toLowerCase(),
        body: { ...offer, content: { offerThroughput } },
    });
    assert.ok(answer.status === 200 || answer.status === 429, answer.text);
    return answer.status === 200;
}

/** Wants other numbers of partitions until the server is gone. */
async function resizeAll(server, offer, random) {
    try {
        for (;;) {
            await resize(server, offer, random.pick([1, 2, 3, 5, 8]));
            await wait(random.below(200));
        }
    } catch (error) {
        if (error.code === "ERR_ASSERTION") throw error;
    }
}

async function checkAll(server, container, writers) {
    const agent = new Agent({ keepAlive: true });
    checkRanges(await askRanges(server, container, agent));
    for (const writer of writers) await writer.check(server, agent);
    await checkCounts(server, container, agent);
    const found = (await listAll(server, container, { agent })).filter(({ pk }) => `${pk}`.startsWith("fixed"));
    sameIds(found, FIXED, "what never changes");
    assert.deepEqual(byId(found), byId(FIXED));
    agent.destroy();
}

test(
    `after ${ROUNDS} crashes in the middle of splits and merges everything acknowledged is there`,
    { timeout: ROUNDS * 60_000 },
    async (t) => {
        const seed = chooseSeed();
        t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
        const random = new Random(seed);
        const server = await startServer(t, { args: [...SMALL, "--split-rate", "0"] });
        const { database } = await clientOf(server).databases.create({ id: "crash" });
        const container = await newContainer(database, undefined, { ...uniqueKeys(["/u"]), defaultTtl: -1 });
        await fill(container, FIXED);
        const { resource: offer } = await container.readOffer();
        const writers = times(WRITERS, (i) => new Writer(i, seed, [container]));
        writers.push(new Mortals(container));

        const counts = new Set();
        let moves = 0;
        for (let round = 0; round < ROUNDS; round++) {
            const working = Promise.all(writers.map((writer) => writer.work(server)));
            const resizing = resizeAll(server, offer, random);
            await Promise.race([crashMoment(random, writers, working, 600), resizing]);
            await server.kill();
            await working;
            await resizing;
            moves += server.lines.filter((line) => line.includes(" move.done ")).length;
            server.lines = [];
            if (random.chance(50)) checkFolder(server); // which also settles what was under way

            server.options.args = [...SMALL, "--split-rate", random.pick(RATES)];
            if (random.chance(20)) {
                const starting = server.start().catch(() => {});
                await wait(random.below(100));
                await server.kill();
                await starting;
            }
            await server.start();
            await checkAll(server, container, writers);
            counts.add((await askRanges(server, container)).length);
        }
        const acknowledged = writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
        t.diagnostic(`${acknowledged} operations and ${moves} moves; ${[...counts].sort()} partitions were seen`);
        assert.ok(moves > 0 && counts.size > 1, "partitions were split and merged");

        for (const partitions of [8, 1]) {
            await until(() => resize(server, offer, partitions));
            await until(async () => (await askRanges(server, container)).length === partitions, {
                timeout_ms: 60_000,
            });
            await checkAll(server, container, writers);
        }
        await server.stopWell();
        assert.match(checkFolder(server), /1 containers with .* everything agrees/);
    },
);
