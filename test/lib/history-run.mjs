// history-run.mjs - what the tests of histories share: the world of the clients, who works in it besides sessions and
// followers, and the end.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { Agent } from "node:http";
import { setTimeout as wait } from "node:timers/promises";

import { askChaos, eventsOf } from "./chaos.mjs";
import { times } from "./definition.mjs";
import { epkOf } from "./epk.mjs";
import { Follower } from "./followers.mjs";
import { History } from "./history.mjs";
import { checkHistory } from "./history-check.mjs";
import { contentOf, listAll, newContainer, queryAll } from "./items.mjs";
import { procedure } from "./scripts.mjs";
import { clientOf } from "./sdk.mjs";
import { Gone, PROCEDURE, RangeMap, attempt } from "./sessions.mjs";

const KEYS = 20;
const RANGES_MAX = 6;
const RETURNING_MAX = 12; // guests that go on at the end, some of them from long ago
const SHOWN_MAX = 4; // violations that a failure shows

/** A new container with what its clients share; `more` is added to that. */
export async function newWorld(server, databaseId, size, more = {}) {
    const { database } = await clientOf(server).databases.create({ id: databaseId });
    const container = await newContainer(database, size, { changeFeedPolicy: { retentionDuration: 60 } });
    const history = new History();
    for (const name of times(KEYS, (i) => `k${i}`)) history.keys.set(name, epkOf(name));
    const ranges = new RangeMap(history, container);
    const procedureId = (await procedure(container, PROCEDURE)).id;
    await ranges.refresh(server);
    return { history, container, ranges, procedureId, ...more };
}

/** Splits and merges partitions, one at a time. */
export class Mover {
    done = { split: 0, merge: 0, failed: 0 };

    /** `findServer` says which server to ask, if that is not the one for everything else. */
    constructor(world, random, findServer = (server) => server) {
        Object.assign(this, { world, random, findServer });
    }

    async work(server, isOver) {
        while (!isOver()) {
            try {
                await this.#move(server, isOver);
            } catch (error) {
                if (!(error instanceof Gone)) throw error;
                if (!server.isSpread) return;
            }
            await wait(this.random.below(250));
        }
    }

    #choose() {
        const { ranges } = this.world.ranges;
        if (ranges.length === 1 || (ranges.length < RANGES_MAX && this.random.chance(55))) {
            const { id } = this.random.pick(ranges);
            return ["split", { range: id, parts: 2 + this.random.below(2), by: this.random.pick(["size", "hash"]) }];
        }
        const count = 2 + this.random.below(Math.min(2, ranges.length - 1));
        const first = this.random.below(ranges.length - count + 1);
        return ["merge", { ranges: ranges.slice(first, first + count).map(({ id }) => id) }];
    }

    async #move(server, isOver) {
        const { container, history, ranges } = this.world;
        await ranges.refresh(server);
        const [what, body] = this.#choose();
        const asked = await this.findServer(server);
        const answer = await attempt(asked, () => askChaos(asked, container, what, body));
        // A move that an earlier life of the server has left over may be done again.
        assert.ok([202, 409, 410, 429].includes(answer.status), `${answer.status} ${answer.text}`);
        if (answer.status !== 202) return;
        history.note(`${what} ${JSON.stringify(body)} is asked for`);
        for (;;) {
            const { json } = await attempt(asked, async () => ({ status: 200, json: await eventsOf(asked) }));
            const move = json.moves.find(({ event }) => event === answer.json.event);
            if (!move && server.isSpread) return; // another node has done it, or this one was started again
            if (move.stage === "done" || move.stage === "failed") {
                history.note(`${what} of ${move.sources} into ${move.targets} has ${move.stage} ${move.message ?? ""}`);
                this.done[move.stage === "done" ? what : "failed"]++;
                return;
            }
            if (isOver()) return;
            await wait(5);
        }
    }
}

/** Followers that are there from the beginning, one of each kind. */
export async function firstFollowers(server, world, another) {
    const followers = [
        new Follower("latest", world, another(), { mode: "latest", from: 0 }),
        new Follower("all", world, another(), { mode: "all", from: "*" }),
        new Follower("latest-k0", world, another(), { mode: "latest", from: 0, key: "k0" }),
        new Follower("all-k0", world, another(), { mode: "all", from: "*", key: "k0" }),
    ];
    for (const follower of followers) await follower.drain(server); // they know where "now" was
    return followers;
}

/** A follower that comes in the middle of it, and reads in one of all ways. */
export function newGuest(name, world, random) {
    const mode = random.pick(["latest", "all"]);
    const from = mode === "all" || random.chance(50) ? "*" : 0;
    const [key, epk] = random.pick([...world.history.keys]);
    const next = (BigInt(`0x${epk}`) + 1n).toString(16).toUpperCase().padStart(32, "0");
    const scope = random.pick([{}, { key }, { interval: [epk, next] }]);
    return new Follower(name, world, random, { mode, from, ...scope });
}

/** Those who were there, some of the guests, and some who begin only now read all that there is; how often 410 came. */
export async function drainAll(server, world, followers, guests, random, another) {
    const all = [
        ...followers,
        new Follower("latest-anew", world, another(), { mode: "latest", from: 0 }),
        new Follower("all-anew", world, another(), { mode: "all", from: 1 }),
    ];
    while (guests.length > RETURNING_MAX) guests.splice(random.below(guests.length), 1);
    // A write whose client has given it up may come late.
    const seen = () => [...all, ...guests].reduce((sum, follower) => sum + follower.entries, 0);
    for (let before = -1; before !== seen(); ) {
        before = seen();
        for (const follower of [...all, ...guests]) await follower.drain(server);
    }
    return all.reduce((sum, follower) => sum + follower.gone, 0);
}

/** What is stored in the end is what the log has: the last word of all that was acknowledged. */
export async function checkFinal(server, world) {
    const agent = new Agent({ keepAlive: true });
    const look = { type: "look", session: "the end", how: "list", isCurrent: true, isSnapshot: true, range: "all" };
    look.keys = [...world.history.keys.keys()];
    look.invoked = world.history.now();
    look.items = await listAll(server, world.container, { agent });
    world.history.add(look);
    const queried = await queryAll(server, world.container, "SELECT * FROM c");
    const byName = (items) => Object.fromEntries(items.map((item) => [`${item.pk} ${item.id}`, contentOf(item)]));
    assert.deepEqual(byName(queried), byName(look.items));
    agent.destroy();
}

function countBy(list, nameOf) {
    const counts = {};
    for (const one of list) counts[nameOf(one)] = (counts[nameOf(one)] ?? 0) + 1;
    return JSON.stringify(counts);
}

/** Writes the history of a run that failed, if somebody wants it. */
export function keepHistory({ history }) {
    const file = process.env.ORRERY_HISTORY_FILE;
    if (file) writeFileSync(file, history.events.map((event) => `${JSON.stringify(event)}\n`).join(""));
}

/** Checks the history; if it is wrong, fails with the first of what is. */
export function report(t, world, seed) {
    const { events } = world.history;
    const violations = checkHistory(world.history);
    t.diagnostic(countBy(events, ({ type, outcome = "" }) => `${type} ${outcome}`.trim()));
    if (violations.length === 0) return;
    keepHistory(world);
    const shown = violations.slice(0, SHOWN_MAX).map(({ text }) => text);
    const counts = countBy(violations, ({ rule }) => rule);
    assert.fail(`ORRERY_TEST_SEED=${seed}: violations ${counts}, the first of them:\n${shown.join("\n\n")}`);
}
