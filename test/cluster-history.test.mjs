// The history of history.test.mjs on three nodes: each request of the sessions and followers goes to another node, while
// partitions are split, merged and moved from node to node, and nodes are killed, stopped and paused. Reads have all levels
// of consistency, and every one must show what was acknowledged or seen at any node before it.
//
// ORRERY_HISTORY_SECONDS makes it longer; ORRERY_TEST_SEED repeats the choices of a run (the moments are still the
// machine's). ORRERY_HISTORY_FILE names a file for the whole history of a run that failed.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { AnyNode, Faults, OwnerMover, waitUntilClean } from "./lib/cluster-trouble.mjs";
import { Engine, startCluster } from "./lib/cluster.mjs";
import { times } from "./lib/definition.mjs";
import { Mover, checkFinal, drainAll, firstFollowers, keepHistory, newGuest, newWorld, report } from "./lib/history-run.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { Session } from "./lib/sessions.mjs";
import { checkRanges } from "./lib/splits.mjs";
import { checkFolder } from "./lib/writers.mjs";

const SECONDS = Number(process.env.ORRERY_HISTORY_SECONDS ?? 8);
const SESSIONS = 10;
const SIZE = { throughput: 18_000 }; // three partitions
const GUEST_MS = 3000;
const ARGS = ["--enable-chaos", "--merge", "always", "--consistency", "Strong", "--split-rate", "1M"];
const LEVELS = [undefined, "Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"];

let engine;

before(() => (engine = new Engine()));
after(() => engine.end());

test(
    `sessions and change feeds keep their promises on every node for ${SECONDS} s of changing owners`,
    { timeout: (SECONDS + 300) * 1000 },
    async (t) => {
        const seed = chooseSeed();
        t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
        const random = new Random(seed);
        const another = () => new Random(random.below(2 ** 31));
        const cluster = await startCluster(t, { engine, args: ARGS });
        const nodes = new AnyNode(cluster, another());
        const world = await newWorld(nodes, "history", SIZE, { levels: LEVELS });
        const faults = new Faults(world, cluster, another());
        await faults.complete();

        const sessions = times(SESSIONS, (i) => new Session(`s${i}`, world, another()));
        const mover = new Mover(world, another(), () => nodes.leader());
        const owners = new OwnerMover(world, cluster, another());
        const followers = await firstFollowers(nodes, world, another);
        const guests = [];
        let isOver = false;
        const invite = async () => {
            while (!isOver) {
                const end_ms = performance.now() + GUEST_MS;
                const present = times(3, (i) => newGuest(`guest-${guests.length + i}`, world, another()));
                guests.push(...present);
                await Promise.all(present.map((guest) => guest.follow(nodes, () => isOver || performance.now() > end_ms)));
            }
        };

        const working = [
            ...sessions.map((session) => session.work(nodes, sessions, () => isOver)),
            ...followers.map((follower) => follower.follow(nodes, () => isOver)),
            ...[mover, owners].map((one) => one.work(nodes, () => isOver)),
            invite(),
        ];
        for (const work of working) work.catch(() => (isOver = true));
        await faults.work(performance.now() + SECONDS * 1000, () => isOver).finally(() => (isOver = true));
        await Promise.allSettled(working);
        await Promise.all(working).catch((error) => {
            keepHistory(world);
            throw error;
        });

        await world.ranges.refresh(nodes);
        checkRanges(world.ranges.ranges);
        for (const node of cluster.nodes) await checkFinal(node, world);
        const gone = await drainAll(nodes, world, followers, guests, random, another);
        const figures = { ...faults.done, owners: owners.done, ...mover.done, gone };
        t.diagnostic(JSON.stringify(figures));
        report(t, world, seed);
        assert.ok(owners.done > 0 && mover.done.split + mover.done.merge > 0 && gone > 0, "enough has happened");
        await waitUntilClean(cluster, owners.spaces, world.ranges.ranges);
        await cluster.compareCopies();
        await Promise.all(cluster.nodes.map((node) => node.stopWell()));
        for (const node of cluster.nodes) checkFolder(node);
    },
);
