// What the engine keeps has a bound: a dead node's copies are given up before the journal is full, and made anew when it
// comes back; a journal that is full refuses writes, and takes them again.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test, { after, before } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { eventsOf } from "./lib/chaos.mjs";
import { Engine, startCluster } from "./lib/cluster.mjs";
import { KEY } from "./lib/definition.mjs";
import { until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { metric } from "./lib/wire.mjs";

const MB = 1024 * 1024;
const LIMIT_MB = 256; // the least that --journal-bytes takes
const QUARTER_MB = LIMIT_MB / 4; // from here on dead nodes are not waited for
const ITEMS = 20; // that are written again and again
const WRITERS = 4;
const BEHIND_MB = 50; // what is written between two looks at the journal, and until it is trimmed

const IS_LONG = Number(process.env.ORRERY_TEST_SCALE ?? 1) > 1;

let engine;

before(() => (engine = new Engine()));
after(() => engine.end());

const journalMb = async (node) => (await metric(node, "orrery_cluster_journal_bytes")) / MB;

/** Writers of large items, which cannot be compressed. */
class Flood {
    written_mb = 0;
    largest_mb = 0; // of the journal
    last = new Map(); // id -> n that was acknowledged
    #isRunning = true;

    constructor(node, id) {
        Object.assign(this, { node, id });
        this.container = clientOf(node, {
            connectionPolicy: { enableBackgroundEndpointRefreshing: false, retryOptions: { maxRetryAttemptCount: 0 } },
        }).database("journal").container(id);
        this.work = Array.from({ length: WRITERS }, (_, writer) => this.#write(writer));
        this.watch = this.#look();
    }

    async #write(writer) {
        for (let i = writer; this.#isRunning; i += WRITERS) {
            const id = `i${i % ITEMS}`;
            try {
                await this.container.items.upsert({ id, pk: id, n: i, text: randomBytes(MB * 0.75).toString("base64") });
            } catch (error) {
                if (![408, 429].includes(error.code)) throw error;
                if (/journal/.test(error.message)) this.refusal ??= error;
                if (this.refusal) return;
                await wait(100); // for an owner
                continue;
            }
            this.last.set(id, i);
            this.written_mb++;
        }
    }

    async #look() {
        for (; this.#isRunning; await wait(200)) this.largest_mb = Math.max(this.largest_mb, await journalMb(this.node));
    }

    async stop() {
        this.#isRunning = false;
        await Promise.all([...this.work, this.watch]);
    }

    async check(node) {
        for (const [id, n] of this.last) {
            const { resource } = await clientOf(node).database("journal").container(this.id).item(id, id).read();
            assert.ok(resource.n >= n, `${id} at ${node.name} has ${resource.n}, and ${n} was acknowledged`);
        }
    }
}

/** All nodes live, and have copies of all that was written to. */
function isComplete({ nodes, spaces }) {
    const isThere = ({ tail, replicas }, name) =>
        replicas.some(({ node, state, applied }) => node === name && state === "following" && applied >= tail);
    const isCopied = (space) => space.tail === 0 || nodes.every(({ name }) => name === space.owner || isThere(space, name));
    return nodes.every(({ state }) => state === "live") && spaces.every(isCopied);
}

test("the journal is bounded while a node is dead, and full without copies", { timeout: 300_000 }, async (t) => {
    const cluster = await startCluster(t, { engine, args: ["--journal-bytes", `${LIMIT_MB}M`] });
    const [a, b, c] = cluster.nodes;
    await cluster.until((status) => status.nodes.filter(({ state }) => state === "live").length === 3, "complete");
    const { database } = await clientOf(a).databases.create({ id: "journal" });
    await database.containers.create({ id: "items", partitionKey: KEY }, { offerThroughput: 12_000 });
    await cluster.until(isComplete, "copied");

    await c.kill();
    const flood = new Flood(a, "items");
    const isExpelled = async () => {
        const events = (await Promise.all([a, b].map(eventsOf))).flatMap(({ cluster: list }) => list);
        return events.some(({ kind, node }) => kind === "expelled" && node === "c");
    };
    await until(isExpelled, { timeout_ms: 90_000 });
    const expelled_mb = flood.written_mb;
    await until(() => flood.written_mb > expelled_mb + BEHIND_MB || flood.refusal, { timeout_ms: 90_000 });
    await flood.stop();
    assert.equal(flood.refusal, undefined, "writes were refused while a second node had all of them");
    t.diagnostic(`${flood.written_mb} MB were written, and the journal had ${Math.round(flood.largest_mb)} MB at most`);
    assert.ok(flood.largest_mb > 0 && flood.largest_mb < LIMIT_MB, `${flood.largest_mb} MB`);
    await until(async () => (await journalMb(a)) < QUARTER_MB, { timeout_ms: 90_000 });

    await c.start();
    await cluster.until(isComplete, "copied anew");
    assert.ok(c.lines.some((line) => /seed/.test(line)), c.lines.slice(-40).join("\n"));
    await cluster.compareCopies();
    await flood.check(c);

    if (!IS_LONG) return t.diagnostic("the journal is not filled up without ORRERY_TEST_SCALE=2");

    // Nobody has a second copy, so nothing is trimmed.
    await Promise.all([b.kill(), c.kill()]);
    await cluster.until(({ spaces }) => spaces.every(({ owner, ownerLives }) => owner === "a" && ownerLives), "taken over");
    const last = new Flood(a, "items");
    await until(() => last.refusal, { timeout_ms: 120_000 });
    await last.stop();
    t.diagnostic(`refused after ${last.written_mb} MB: ${last.refusal.message.split("\n")[0]}`);
    await last.check(a);
    await Promise.all([b.start(), c.start()]);
    const back = Date.now();
    await cluster.until(isComplete, "copied again");
    await until(() => last.container.items.upsert({ id: "after", pk: "after" }).catch(() => undefined), { timeout_ms: 90_000 });
    t.diagnostic(`writes were taken again after ${Date.now() - back} ms`);
    await until(async () => (await journalMb(a)) < QUARTER_MB, { timeout_ms: 90_000 });
    await cluster.until(isComplete, "equal");
    await cluster.compareCopies();
    for (const node of cluster.nodes) await last.check(node);
});
