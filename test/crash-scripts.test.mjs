// The power fails while procedures and triggers write: each is there as a whole or not at all, and what was acknowledged is
// there.
//
// ORRERY_TEST_CRASH_ROUNDS raises the number of rounds; ORRERY_TEST_SEED repeats the choices of a run (the moment of a crash
// is still the machine's).
import assert from "node:assert/strict";
import { Agent } from "node:http";
import test from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { times } from "./lib/definition.mjs";
import { callItems, listAll, newContainer, queryAll, SIZES } from "./lib/items.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { executeRaw, flow, procedure, trigger } from "./lib/scripts.mjs";
import { startServer } from "./lib/server.mjs";
import { checkFolder, crashMoment } from "./lib/writers.mjs";

/* global __, getContext */

const ROUNDS = Number(process.env.ORRERY_TEST_CRASH_ROUNDS ?? 10);
const WRITERS = 4;
const ITEMS = 10;

// Ten new items, the sum of all in one item, and the items of the group before the last are removed.
const WRITE = flow(async ({ call, self, link }, pk, group, count) => {
    const [sum] = await call("readDocument", link("sum"));
    for (let i = 0; i < count; i++) await call("createDocument", self, { id: `${group}-${i}`, pk, group, i });
    if (group % 3 === 2) for (let i = 0; i < count; i++) await call("deleteDocument", link(`${group - 2}-${i}`));
    await call("replaceDocument", sum._self, { ...sum, groups: [...sum.groups, group] }, { etag: sum._etag });
    return group;
});

// A new item has companions, and is counted by the same item.
const COMPANIONS = function () {
    const { pk, group } = getContext().getResponse().getBody();
    const check = (error) => {
        if (error) throw error;
    };
    for (let i = 1; i < 10; i++) __.createDocument(__.getSelfLink(), { id: `${group}-${i}`, pk, group, i }, check);
    if (group % 3 === 2) for (let i = 0; i < 10; i++) __.deleteDocument(`${__.getAltLink()}/docs/${group - 2}-${i}`, check);
    __.readDocument(__.getAltLink() + "/docs/sum", function (error, sum) {
        check(error);
        sum.groups.push(group);
        __.replaceDocument(sum._self, sum, check);
    });
};

/** Which groups' items are there after these groups were written: two of three. */
const kept = (groups) => groups.filter((group) => group % 3 !== 0 || !groups.includes(group + 2));

class ScriptWriter {
    acknowledged = 0;
    #groups = []; // that must be there
    #doubt; // the one that has no answer yet
    #next = 0;

    constructor(container, pk, procedureId, triggerId) {
        Object.assign(this, { container, pk, procedureId, triggerId });
    }

    #send(server, group, agent) {
        const { container, pk: key } = this;
        if (this.procedureId !== undefined)
            return executeRaw(server, container, this.procedureId, { key, body: [key, group, ITEMS], agent });
        const headers = { "x-ms-documentdb-post-trigger-include": this.triggerId };
        const body = { id: `${group}-0`, pk: key, group, i: 0 };
        return callItems(server, container, { method: "POST", key, headers, body, agent });
    }

    /** Works until the server is gone. */
    async work(server) {
        const agent = new Agent({ keepAlive: true });
        try {
            for (;;) {
                this.#doubt = this.#next;
                let answer;
                try {
                    answer = await this.#send(server, this.#next, agent);
                } catch {
                    return; // the connection broke
                }
                // While the server goes down, its scripts may fail before its connections do; they have written nothing.
                if (answer.status !== 200 && answer.status !== 201) {
                    await wait(20);
                    if (server.isRunning && !server.isDoomed) assert.fail(answer.text);
                    return;
                }
                this.#groups.push(this.#next++);
                this.acknowledged++;
                this.#doubt = undefined;
            }
        } finally {
            agent.destroy();
        }
    }

    async check(server, agent) {
        const found = await listAll(server, this.container, { key: this.pk, agent });
        const sum = found.find(({ id }) => id === "sum");
        const doubt = this.#doubt;
        if (doubt !== undefined && sum.groups.includes(doubt)) {
            this.#groups.push(doubt);
            this.#next = doubt + 1;
        }
        this.#doubt = undefined;
        assert.deepEqual(sum.groups, this.#groups, `${this.pk}: the sum has what was acknowledged`);
        const expected = kept(this.#groups).flatMap((group) => times(ITEMS, (i) => `${group}-${i}`));
        const ids = found.map(({ id }) => id).filter((id) => id !== "sum");
        assert.deepEqual(ids.sort(), expected.sort(), `${this.pk}: every group is there as a whole or not at all`);
    }
}

test(`after ${ROUNDS} crashes every script has written all or nothing`, { timeout: ROUNDS * 60_000 }, async (t) => {
    const seed = chooseSeed();
    t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
    const random = new Random(seed);
    const server = await startServer(t, { args: ["--durability", "sync"] });
    const { database } = await clientOf(server).databases.create({ id: "crash" });
    const writers = [];
    const containers = [];
    for (const size of SIZES) {
        const container = await newContainer(database, size);
        const { id: procedureId } = await procedure(container, WRITE);
        const triggerId = await trigger(container, "Post", "Create", COMPANIONS);
        containers.push(container);
        for (let i = 0; i < WRITERS; i++) {
            const pk = `writer ${i}`;
            await container.items.create({ id: "sum", pk, groups: [] });
            writers.push(new ScriptWriter(container, pk, ...(i === 0 ? [undefined, triggerId] : [procedureId])));
        }
    }
    const checkAll = async () => {
        const agent = new Agent({ keepAlive: true });
        for (const writer of writers) await writer.check(server, agent);
        for (const container of containers) {
            const [count] = await queryAll(server, container, "SELECT VALUE COUNT(1) FROM c WHERE c.i = 3");
            const groups = (await listAll(server, container, { agent })).filter(({ i }) => i === 3);
            assert.equal(count, groups.length, "the index has what the items have");
        }
        agent.destroy();
    };

    for (let round = 0; round < ROUNDS; round++) {
        server.isDoomed = false;
        const working = Promise.all(writers.map((writer) => writer.work(server)));
        await crashMoment(random, writers, working, 300);
        server.isDoomed = true;
        await server.kill();
        await working;
        checkFolder(server);
        await server.start();
        await checkAll();
    }
    const acknowledged = writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
    t.diagnostic(`${acknowledged} scripts acknowledged`);
    assert.ok(acknowledged > ROUNDS, `only ${acknowledged} scripts`);
    await server.restart();
    await checkAll();
});
