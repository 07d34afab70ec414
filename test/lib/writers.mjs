// writers.mjs - clients by hand that write until the power fails, and know afterwards what must be there.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import { setTimeout as wait } from "node:timers/promises";

import { callItems, contentOf, listAll, queryAll } from "./items.mjs";
import { checkAnswer, modelsOf, randomOperation, sendOperation } from "./model.mjs";
import { Random } from "./random.mjs";
import { run } from "./server.mjs";

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
export class Writer {
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
export class Mortals {
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

/** Everything in a data folder is consistent, and nothing in it is without an owner. */
export function checkFolder(server) {
    const { status, stdout, stderr } = run(["check", "--data", server.data]);
    assert.equal(status, 0, `${stdout}${stderr}`);
    return stdout;
}

/** Lists, queries and unique keys agree on how many items there are that do not expire. */
export async function checkCounts(server, container, agent) {
    const items = await listAll(server, container, { agent });
    const living = items.filter(({ ttl }) => ttl === undefined);
    const text = "SELECT VALUE COUNT(1) FROM c WHERE NOT IS_DEFINED(c.ttl)";
    assert.deepEqual(await queryAll(server, container, text), [living.length]);
    assert.equal(new Set(items.map(({ _rid }) => _rid)).size, items.length);
    const values = new Set(items.map(({ pk, u }) => JSON.stringify([pk, u])));
    assert.equal(values.size, items.length, "no two items of a key have the same value");
    return living.length;
}

/**
 * Waits for the moment of a crash: some time within `ms_max`, and mostly a number of acknowledged
 * changes as well, since a busy machine may get little done in that time. If a writer finds a fault,
 * `working` fails and so does this.
 */
export async function crashMoment(random, writers, working, ms_max) {
    const acknowledged = () => writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
    const enough = acknowledged() + (random.chance(30) ? 0 : random.below(16 * writers.length));
    let isOver = false;
    const moment = async () => {
        await wait(1 + random.below(ms_max));
        while (!isOver && acknowledged() < enough) await wait(1);
    };
    await Promise.race([moment(), working.finally(() => (isOver = true))]);
}
