// The power fails, again and again: what was acknowledged is there, and nothing is there by half.
//
// ORRERY_TEST_CRASH_ROUNDS raises the number of rounds; ORRERY_TEST_SEED repeats the choices of a
// run (the moment of a crash is still the machine's).
import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { Random, chooseSeed } from "./lib/random.mjs";
import { startServer } from "./lib/server.mjs";
import { call } from "./lib/wire.mjs";
import { observe, randomChange, settled } from "./lib/world.mjs";
import { crashMoment } from "./lib/writers.mjs";

const ROUNDS = Number(process.env.ORRERY_TEST_CRASH_ROUNDS ?? 15);
const WRITERS = 6;

/** Changes its own databases, one request after the other, and knows what must be there. */
class Writer {
    world = {}; // after the last acknowledged change
    doubtful = null; // the change that has no answer yet
    acknowledged = 0;
    #made = 0;

    constructor(number, seed, history) {
        this.prefix = `w${number}-`;
        this.random = new Random(seed + number);
        this.history = history;
    }

    owns(id) {
        return id.startsWith(this.prefix);
    }

    /** Works until the server is gone. */
    async work(server) {
        const newName = (kind) => `${this.prefix}${kind}${this.#made++}`;
        for (;;) {
            const change = randomChange(this.random, this.world, newName);
            this.doubtful = change;
            let answer;
            try {
                answer = await this.#send(server, change);
            } catch {
                return; // the connection broke
            }
            if (change.offerOf && answer.headers["x-ms-substatus"] === "3205") {
                this.doubtful = null; // its partitions are still being split for the change before
                continue;
            }
            assert.equal(answer.status, change.status, `${change.target}: ${answer.text}`);
            this.world = change.after;
            this.doubtful = null;
            this.acknowledged++;
            if (answer.status !== 204) this.history.remember(answer.json, answer.status === 201);
        }
    }

    async #send(server, { method, path, headers, body, offerOf }) {
        if (!offerOf) return call(server, { method, path, headers, body });
        const [database, container] = offerOf;
        const { json } = await call(server, { path: `/dbs/${database}/colls/${container}` });
        const found = await call(server, {
            method: "POST",
            path: "/offers",
            headers: { "x-ms-documentdb-isquery": "true" },
            body: { query: `SELECT * FROM r WHERE r.offerResourceId = '${json._rid}'` },
        });
        const [offer] = found.json.Offers;
        return call(server, { method, path: `/offers/${offer._rid}`, body: { ...offer, ...body } });
    }

    /** The server has the acknowledged world, or the one with the doubtful change. */
    check(observed) {
        const mine = Object.fromEntries(Object.entries(observed).filter(([id]) => this.owns(id)));
        const matches = (world) => {
            try {
                assert.deepEqual(mine, world);
                return true;
            } catch {
                return false;
            }
        };
        if (!this.doubtful || !matches(this.doubtful.after)) assert.deepEqual(mine, this.world);
        this.world = mine;
        this.doubtful = null;
    }
}

/** Bodies that were acknowledged, by resource id. An id is never given out twice. */
class History {
    #bodies = new Map();
    #used = new Set();

    remember(body, isNew) {
        if (isNew) {
            assert.ok(!this.#used.has(body._rid), `the resource id ${body._rid} was used before`);
            this.#used.add(body._rid);
        }
        this.#bodies.set(body._rid, settled(body));
    }

    /** What is there is what was answered, to the last character, unless a change was in doubt. */
    check(found, doubtfulNames) {
        for (const { name, body } of found) {
            const known = this.#bodies.get(body._rid);
            if (known && !doubtfulNames.has(name)) assert.deepEqual(body, known);
            this.#bodies.set(body._rid, body);
            this.#used.add(body._rid);
        }
    }
}

test(
    `after ${ROUNDS} crashes at any moment everything acknowledged is there`,
    { timeout: ROUNDS * 60_000 },
    async (t) => {
        const seed = chooseSeed();
        t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
        const random = new Random(seed);
        const history = new History();
        const writers = Array.from({ length: WRITERS }, (_, i) => new Writer(i, seed, history));
        const server = await startServer(t, { args: ["--durability", "sync"] });

        for (let round = 0; round < ROUNDS; round++) {
            const working = Promise.all(writers.map((writer) => writer.work(server)));
            await crashMoment(random, writers, working, 150);
            await server.kill();
            await working;

            // Every third time the power fails again while the server recovers.
            if (round % 3 === 2) {
                const starting = server.start().catch(() => {});
                await wait(random.below(30));
                await server.kill();
                await starting;
            }
            await server.start();
            const { world, found } = await observe(server);
            const doubtful = writers.filter((writer) => writer.doubtful);
            history.check(found, new Set(doubtful.map((writer) => writer.doubtful.target)));
            for (const writer of writers) writer.check(world);
        }

        const acknowledged = writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
        t.diagnostic(`${acknowledged} changes acknowledged`);
        assert.ok(acknowledged > ROUNDS * WRITERS, `only ${acknowledged} changes`);
        const before = await observe(server);
        await server.restart();
        assert.deepEqual(await observe(server), before);
    },
);
