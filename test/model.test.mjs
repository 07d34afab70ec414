// Random operations of several clients at once, against a model that knows every answer.
//
// ORRERY_TEST_SEED repeats a run; ORRERY_TEST_STEPS says how many steps each client takes.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import test from "node:test";

import { uniqueKeys } from "./lib/definition.mjs";
import { listAll, newContainer, queryAll, sameItems, SIZES, storedCount, until } from "./lib/items.mjs";
import { checkAnswer, modelsOf, randomCondition, randomOperation, sendOperation } from "./lib/model.mjs";
import { askAll } from "./lib/queries.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { startAny } from "./lib/server.mjs";

const STEPS = Number(process.env.ORRERY_TEST_STEPS ?? 3000);
const PHASES = 4;
const CLIENTS = 4;

class Client {
    steps = 0;
    #made = 0;

    constructor(number, seed, containers) {
        this.random = new Random(seed + number);
        this.number = number;
        this.agent = new Agent({ keepAlive: true });
        // A model of each key in each container.
        this.places = containers.flatMap((container) =>
            modelsOf(number).map((model) => ({ container, model })),
        );
    }

    async work(server, steps) {
        for (let i = 0; i < steps; i++) {
            const { container, model } = this.random.pick(this.places);
            const op = randomOperation(this.random, model, () => `${this.number}-${this.#made++}`);
            const expected = model.apply(op);
            const answer = await sendOperation(server, container, model, op, this.agent);
            checkAnswer(model, op, expected, answer, `client ${this.number} step ${this.steps++}`);
            if (this.random.chance(8)) await this.#look(server, container, model);
        }
    }

    async #look(server, container, model) {
        const { key } = model;
        const context = `client ${this.number} step ${this.steps} key ${key}`;
        const size = this.random.pick([1, 3, 10, -1]);
        const found = await listAll(server, container, { key, size });
        sameItems(found, model.contents(), context);
        for (const { id, _etag } of found) {
            const { etag } = model.items.get(id);
            if (etag) assert.equal(_etag, etag, context);
        }
        const text = this.random.pick(["SELECT VALUE COUNT(1) FROM c", "SELECT VALUE SUM(1) FROM c"]);
        const [count] = await queryAll(server, container, text, { key });
        assert.equal(count ?? 0, model.items.size, `${context} ${text}`);
        await this.#ask(server, container, model, { key, size, agent: this.agent });
    }

    async #ask(server, container, model, options) {
        const [condition, holds] = randomCondition(this.random);
        const expected = model.contents().filter((item) => holds(item) === true);
        const context = `client ${this.number} step ${this.steps} key ${options.key} ${condition}`;
        const text = `FROM c WHERE ${condition}`;
        sameItems(await askAll(server, container, `SELECT * ${text}`, options), expected, context);
        const [count] = await askAll(server, container, `SELECT VALUE COUNT(1) ${text}`, options);
        assert.equal(count, expected.length, context);
        const numbers = await askAll(server, container, `SELECT VALUE c.n ${text} ORDER BY c.n`, options);
        const sorted = expected.flatMap(({ n }) => n ?? []).sort((a, b) => a - b);
        assert.deepEqual(numbers, sorted, context);
    }
}

test(`${CLIENTS} clients of ${STEPS} steps get the answers of the model`, { timeout: 600_000 }, async (t) => {
    const seed = chooseSeed();
    t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
    const server = await startAny(t, { args: ["--durability", "relaxed"] });
    const { database } = await clientOf(server).databases.create({ id: "model" });
    const containers = [];
    for (const size of SIZES) containers.push(await newContainer(database, size, uniqueKeys(["/u"])));
    const clients = Array.from({ length: CLIENTS }, (_, i) => new Client(i, seed, containers));

    for (let phase = 0; phase < PHASES; phase++) {
        await Promise.all(clients.map((client) => client.work(server, Math.ceil(STEPS / PHASES))));
        await server.restart();
        for (const container of containers) {
            const places = clients.flatMap((client) => client.places);
            const expected = places
                .filter((place) => place.container === container)
                .flatMap(({ model }) => model.contents());
            sameItems(await listAll(server, container, { size: 50 }), expected, `phase ${phase}`);
            sameItems(await queryAll(server, container, "SELECT * FROM c"), expected, `phase ${phase}`);
            await until(async () => (await storedCount(server, container)) === expected.length);
        }
    }
    for (const { agent } of clients) agent.destroy();
});
