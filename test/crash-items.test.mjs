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
import {
    callItems,
    contentOf,
    listAll,
    newContainer,
    pathOf,
    queryAll,
    SIZES,
    storedCount,
    until,
} from "./lib/items.mjs";
import { checkAnswer, modelsOf, randomOperation, sendOperation } from "./lib/model.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer } from "./lib/server.mjs";
import { call } from "./lib/wire.mjs";

const ROUNDS = Number(process.env.ORRERY_TEST_CRASH_ROUNDS ?? 50);
const WRITERS = 6;

function isEqual(a, b) {
    try {
        assert.deepEqual(a, b);
        return true;
    } catch {
        return false;
    }
}

const byId = (contents) => Object.fromEntries(contents.map((content) => [content.id, content]));

/** Writes under its own keys, one request after the other, and knows what must be there. */
class Writer {
    acknowledged = 0;
    #doubt = null; // the operation that has no answer yet: { place, after }
    #rids = new Set();
    #made = 0;

    constructor(number, seed, containers) {
        this.number = number;
        this.random = new Random(seed + number);
        this.places = containers.flatMap((container) =>
            modelsOf(number).map((model) => ({ container, model })),
        );
    }

    /** Works until the server is gone. */
    async work(server) {
        const agent = new Agent({ keepAlive: true });
        try {
            for (;;) {
                const place = this.random.pick(this.places);
                const fresh = () => `${this.number}-${this.#made++}`;
                const op = randomOperation(this.random, place.model, fresh);
                const after = Object.assign(place.model.clone(), { fields: place.model.fields });
                const expected = after.apply(op);
                this.#doubt = { place, after };
                let answer;
                try {
                    answer = await sendOperation(server, place.container, place.model, op, agent);
                } catch {
                    return; // the connection broke
                }
                checkAnswer(after, op, expected, answer, `writer ${this.number}`);
                if (answer.status === 201) this.#newRid(answer.json._rid);
                place.model = after;
                this.#doubt = null;
                this.acknowledged++;
            }
        } finally {
            agent.destroy();
        }
    }

    // A resource id is given out once, also if the server had no time to say so.
    #newRid(rid) {
        assert.ok(!this.#rids.has(rid), `the resource id ${rid} was used before`);
        this.#rids.add(rid);
    }

    /** Every key has what was acknowledged, or that and the one operation that is in doubt. */
    async check(server, agent) {
        for (const place of this.places) {
            const { container, model } = place;
            const found = await listAll(server, container, { key: model.key, agent });
            for (const { _rid } of found) this.#rids.add(_rid);
            const contents = byId(found.map(contentOf));
            const after = this.#doubt?.place === place ? this.#doubt.after : null;
            if (after && isEqual(contents, byId(after.contents()))) place.model = after;
            else assert.deepEqual(contents, byId(model.contents()), `writer ${this.number} key ${model.key}`);
            for (const item of found) {
                const { etag } = place.model.items.get(item.id);
                if (etag) assert.equal(item._etag, etag, "an acknowledged version has its ETag");
                place.model.learn(item);
            }
        }
        this.#doubt = null;
        const { container, model } = this.random.pick(this.places);
        const [id] = model.items.keys();
        if (!id) return;
        const read = await callItems(server, container, { id, key: model.key, agent });
        assert.deepEqual(contentOf(read.json), model.items.get(id).content);
    }
}

/** Makes items that expire, each with a value of its own which is taken again after its time. */
class Mortals {
    key = "mortal";
    acknowledged = 0;
    #items = [];
    #made = 0;

    constructor(container) {
        this.container = container;
    }

    async work(server) {
        const agent = new Agent({ keepAlive: true });
        try {
            for (;;) {
                const body = { id: `m${this.#made++}`, pk: this.key, u: `mortal ${this.#made}`, ttl: 1 };
                const answer = await callItems(server, this.container, {
                    method: "POST",
                    key: this.key,
                    body,
                    agent,
                });
                assert.equal(answer.status, 201, answer.text);
                this.#items.push(answer.json);
                this.acknowledged++;
            }
        } catch (error) {
            if (error.code === "ERR_ASSERTION") throw error;
        } finally {
            agent.destroy();
        }
    }

    async check(server, agent) {
        const before_s = Math.floor(Date.now() / 1000);
        const found = await listAll(server, this.container, { key: this.key, agent });
        const after_s = Math.floor(Date.now() / 1000);
        for (const { id, _ts } of found) assert.ok(_ts + 1 > before_s, `${id} has expired and is there`);
        const ids = new Set(found.map(({ id }) => id));
        for (const { id, _ts } of this.#items)
            assert.ok(_ts + 1 <= after_s || ids.has(id), `${id} has not expired and is gone`);
        this.#items = this.#items.filter(({ _ts }) => _ts + 1 > after_s);
    }
}

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

function checkFolder(server) {
    const { status, stdout, stderr } = run(["check", "--data", server.data]);
    assert.equal(status, 0, `${stdout}${stderr}`);
}

async function checkCounts(server, container, agent) {
    const items = await listAll(server, container, { agent });
    const living = items.filter(({ ttl }) => ttl === undefined);
    const text = "SELECT VALUE COUNT(1) FROM c WHERE NOT IS_DEFINED(c.ttl)";
    assert.deepEqual(await queryAll(server, container, text), [living.length]);
    assert.equal(new Set(items.map(({ _rid }) => _rid)).size, items.length);
    const values = new Set(items.map(({ pk, u }) => JSON.stringify([pk, u])));
    assert.equal(values.size, items.length, "no two items of a key have the same value");
    return living.length;
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
            // A writer that finds a fault stops waiting for the crash.
            await Promise.race([wait(1 + random.below(200)), working]);
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
