// The power fails while items are written: what was acknowledged is there, to the last property, no
// batch is there by half, and the index has what the items have, also while it is being rebuilt.
//
// ORRERY_TEST_CRASH_ROUNDS raises the number of rounds; ORRERY_TEST_SEED repeats the choices of a
// run (the moment of a crash is still the machine's).
import assert from "node:assert/strict";
import { Agent } from "node:http";
import test from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { indexing, paths, uniqueKeys } from "./lib/definition.mjs";
import { newContainer, pathOf, SIZES, storedCount, until } from "./lib/items.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { startServer } from "./lib/server.mjs";
import { call } from "./lib/wire.mjs";
import { Mortals, Writer, checkCounts, checkFolder, crashMoment } from "./lib/writers.mjs";

const ROUNDS = Number(process.env.ORRERY_TEST_CRASH_ROUNDS ?? 50);
const WRITERS = 6;

const POLICIES = [
    indexing({}),
    indexing({ includedPaths: paths("/u/?"), excludedPaths: paths("/*") }),
    indexing({ includedPaths: [], excludedPaths: paths("/*") }),
    indexing({
        compositeIndexes: [
            [{ path: "/u" }, { path: "/_ts", order: "descending" }],
            [{ path: "/pk", order: "descending" }, { path: "/u" }, { path: "/ttl" }],
        ],
        spatialIndexes: [{ path: "/*", types: ["Point", "Polygon"] }],
    }),
];

/** Another policy, while the others write; the server may be gone before it answers. */
async function changePolicy(server, container, random) {
    const path = pathOf(container);
    const ask = (more) => call(server, { path, type: "colls", link: path.slice(1), ...more });
    try {
        const { json } = await ask({});
        const body = { ...json, ...random.pick(POLICIES) };
        const answer = await ask({ method: "PUT", body });
        assert.equal(answer.status, 200, answer.text);
    } catch (error) {
        if (error.code === "ERR_ASSERTION") throw error;
    }
}

test(
    `after ${ROUNDS} crashes every acknowledged item is there, and no half of a batch`,
    { timeout: ROUNDS * 60_000 },
    async (t) => {
        const seed = chooseSeed();
        t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
        const random = new Random(seed);
        const server = await startServer(t, { args: ["--durability", "sync"] });
        const { database } = await clientOf(server).databases.create({ id: "crash" });
        const containers = [];
        for (const size of SIZES)
            containers.push(await newContainer(database, size, { ...uniqueKeys(["/u"]), defaultTtl: -1 }));
        const writers = Array.from({ length: WRITERS }, (_, i) => new Writer(i, seed, containers));
        writers.push(...containers.map((container) => new Mortals(container)));

        for (let round = 0; round < ROUNDS; round++) {
            const working = Promise.all(writers.map((writer) => writer.work(server)));
            const changing =
                round % 3 === 2 ? changePolicy(server, random.pick(containers), random) : undefined;
            await crashMoment(random, writers, working, 200);
            await server.kill();
            await working;
            await changing;
            checkFolder(server);

            // Every fifth time the power fails again while the server recovers.
            if (round % 5 === 4) {
                const starting = server.start().catch(() => {});
                await wait(random.below(30));
                await server.kill();
                await starting;
            }
            await server.start();
            const agent = new Agent({ keepAlive: true });
            for (const writer of writers) await writer.check(server, agent);
            for (const container of containers) await checkCounts(server, container, agent);
            agent.destroy();
        }

        const acknowledged = writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
        t.diagnostic(`${acknowledged} operations acknowledged`);
        assert.ok(acknowledged > ROUNDS * WRITERS, `only ${acknowledged} operations`);
        await server.restart();
        for (const writer of writers) await writer.check(server);
        for (const container of containers)
            await until(
                async () => (await storedCount(server, container)) === (await checkCounts(server, container)),
            );
    },
);
