// A history of sessions and change feeds, checked as a whole: sessions that share their items write and read while
// followers read both change feeds, partitions are split and merged, and the power fails again and again. Afterwards
// lib/history-check.mjs proves, by content, that every session has seen its own writes and never went back, and that the
// feeds of each logical partition show what was acknowledged, in order, with nothing lost or repeated.
//
// ORRERY_HISTORY_SECONDS makes it longer; ORRERY_TEST_SEED repeats the choices of a run (the moments are still the
// machine's). ORRERY_HISTORY_FILE names a file for the whole history of a run that failed.
import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { CHAOS } from "./lib/chaos.mjs";
import { times } from "./lib/definition.mjs";
import { Mover, checkFinal, drainAll, firstFollowers, newGuest, newWorld, report } from "./lib/history-run.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { startServer } from "./lib/server.mjs";
import { Session } from "./lib/sessions.mjs";
import { checkRanges } from "./lib/splits.mjs";
import { checkFolder } from "./lib/writers.mjs";

const SECONDS = Number(process.env.ORRERY_HISTORY_SECONDS ?? 24);
const SESSIONS = 8;
const ROUND_MS = [1500, 3500]; // from one crash to the next

// As fast as it goes, most moves are over when the power fails; slower, most are not.
const RATES = ["0", "256K", "64K"];

/** Ends the server, mostly without a warning, while everybody works. */
async function endServer(server, history, random) {
    server.isDoomed = true;
    const isKilled = random.chance(75);
    history.note(isKilled ? "the power fails" : "the server is stopped");
    if (isKilled) await server.kill();
    else await server.stopWell();
}

async function startAgain(server, history, random) {
    server.options.args = [...CHAOS, "--split-rate", random.pick(RATES)];
    if (random.chance(20)) {
        const starting = server.start().catch(() => {});
        await wait(random.below(100));
        await server.kill();
        await starting;
    }
    await server.start();
    server.isDoomed = false;
    history.note("the server is there again");
}

test(
    `sessions and change feeds keep their promises for ${SECONDS} s of splits, merges and crashes`,
    { timeout: (SECONDS + 300) * 1000 },
    async (t) => {
        const seed = chooseSeed();
        t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
        const random = new Random(seed);
        const another = () => new Random(random.below(2 ** 31));
        const server = await startServer(t, { args: CHAOS });
        const world = await newWorld(server, "history");
        const { history, ranges } = world;

        const sessions = times(SESSIONS, (i) => new Session(`s${i}`, world, another()));
        const mover = new Mover(world, another());
        const followers = await firstFollowers(server, world, another);
        const guests = [];

        const until_ms = performance.now() + SECONDS * 1000;
        let hasFailed = false;
        let rounds = 0;
        for (; ; rounds++) {
            const [least, most] = ROUND_MS;
            const end_ms = performance.now() + least + random.below(most - least);
            const isLast = end_ms > until_ms;
            const isOver = () => hasFailed || (isLast && performance.now() > end_ms);
            const present = times(3, (i) => newGuest(`guest-${rounds}-${i}`, world, another()));
            guests.push(...present);
            const working = [
                ...sessions.map((session) => session.work(server, sessions, isOver)),
                ...[...followers, ...present].map((follower) => follower.follow(server, isOver)),
                mover.work(server, isOver),
            ];
            for (const work of working) work.catch(() => (hasFailed = true));
            while (!hasFailed && performance.now() < end_ms) await wait(20);
            if (!isLast && !hasFailed) await endServer(server, history, random);
            await Promise.allSettled(working);
            await Promise.all(working);
            if (isLast) break;
            if (random.chance(30)) checkFolder(server);
            await startAgain(server, history, random);
        }

        await ranges.refresh(server);
        checkRanges(ranges.ranges);
        await checkFinal(server, world);
        const gone = await drainAll(server, world, followers, guests, random, another);
        t.diagnostic(`${rounds} crashes and stops, moves ${JSON.stringify(mover.done)}, ${gone} times 410`);
        report(t, world, seed);
        assert.ok(rounds > 0 && mover.done.split > 0 && mover.done.merge > 0 && gone > 0, "enough has happened");
        await server.stopWell();
        checkFolder(server);
    },
);
