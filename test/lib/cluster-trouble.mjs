// cluster-trouble.mjs - a cluster as clients see it who ask any node, and what happens to it meanwhile: partitions get
// other owners, nodes are killed, stopped and paused. One node at a time, or all at once.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import { setTimeout as wait } from "node:timers/promises";

import { Gone, attempt } from "./sessions.mjs";
import { call } from "./wire.mjs";

const LONGER_THAN_A_LEASE_MS = 7000;
const PAUSED_MAX = 4; // requests that a paused node is given, to answer when it wakes up
const ORDER_MS = 1500;
const CATALOG = 1; // the number of the catalogue's space
const CLEAN_MS = 20_000;
const FIRST_FAULTS = ["kill", "stop", "pause"];
const MORE_FAULTS = ["kill", "killForLong", "killStarting", "killAll", "pauseForALease"];
const SPARE_SPACES = 8; // numbers of partitions that nobody has looked at

/** All nodes as if they were one server: each request goes to another one, at random. */
export class AnyNode {
    isSpread = true;

    constructor(cluster, random) {
        Object.assign(this, { cluster, random });
    }

    get key() {
        return this.cluster.nodes[0].key;
    }

    get endpoint() {
        const { living } = this.cluster;
        const paused = living.find(({ waiting }) => waiting !== undefined);
        if (paused && paused.waiting < PAUSED_MAX && this.random.chance(1)) {
            paused.waiting++;
            return paused.endpoint;
        }
        const asked = living.filter((node) => node !== paused);
        // If there is none, the connection is refused.
        return this.random.pick(asked.length > 0 ? asked : this.cluster.nodes).endpoint;
    }

    /** The node that splits and merges, as any other one knows it. */
    async leader() {
        const { json } = await askCluster(this, { path: "/_orrery/cluster" });
        const { owner } = json.spaces.find(({ id }) => id === CATALOG);
        const leader = this.cluster.living.find(({ name, waiting }) => name === owner && waiting === undefined);
        if (!leader) throw new Gone(`${owner} is away`);
        return { key: leader.key, endpoint: leader.endpoint, isSpread: true };
    }
}

const askCluster = (server, options) => attempt(server, () => call(server, { type: "", link: "", ...options }));

/** Gives partitions, and the catalogue, to other nodes. */
export class OwnerMover {
    done = 0;
    spaces = new Set(); // that were seen

    constructor(world, cluster, random) {
        Object.assign(this, { world, cluster, random });
    }

    async work(server, isOver) {
        this.server = server;
        while (!isOver()) {
            try {
                await this.#move();
            } catch (error) {
                if (!(error instanceof Gone)) throw error;
            }
            await wait(this.random.below(400));
        }
    }

    async #move() {
        const { json } = await askCluster(this.server, { path: "/_orrery/cluster" });
        for (const { id } of json.spaces) this.spaces.add(id);
        const { id, owner } = this.random.pick(json.spaces);
        const others = json.nodes.filter(({ name, state }) => name !== owner && state === "live");
        if (others.length === 0) return;
        const { name } = this.random.pick(others);
        const path = `/_orrery/cluster/move?space=${id}&node=${name}`;
        const answer = await this.#order(path);
        // The space may be gone meanwhile, and the node dead.
        assert.ok([200, 404, 409].includes(answer.status), `${path}: ${answer.status} ${answer.text}`);
        if (answer.status !== 200) return;
        this.done++;
        this.world.history.note(`space ${id} has moved from ${owner} to ${name}`);
    }

    /** One that waits for something is given up; it may still be carried out. */
    async #order(path) {
        const agent = new Agent();
        const timer = setTimeout(() => agent.destroy(), ORDER_MS);
        try {
            return await askCluster(this.server, { method: "POST", path, agent });
        } finally {
            clearTimeout(timer);
            agent.destroy();
        }
    }
}

/** Waits until nothing is left of partitions that were split or merged: no copy on any node, and no row in the engine. */
export async function waitUntilClean(cluster, seen, ranges) {
    const isClean = ({ spaces }) => spaces.length === ranges.length + 1; // and the catalogue
    const { spaces } = await cluster.until(isClean, "clean", { within_ms: CLEAN_MS });
    const kept = new Set(spaces.map(({ id }) => id));
    const numbers = [...seen].filter((id) => id !== CATALOG);
    for (let id = Math.min(...numbers); id < Math.max(...numbers) + SPARE_SPACES; id++) {
        if (kept.has(id)) continue;
        for (const node of cluster.nodes) await waitUntilForgotten(cluster, node, id);
    }
}

async function waitUntilForgotten(cluster, node, space) {
    const path = `/_orrery/cluster/digest?space=${space}`;
    for (const end_ms = performance.now() + CLEAN_MS; ; await wait(20)) {
        const { status, text } = await call(node, { path, type: "", link: "" });
        if (status === 404) return;
        if (performance.now() < end_ms) continue;
        const { events } = (await call(node, { path: "/_orrery/events", type: "", link: "" })).json.cluster ?? {};
        const told = JSON.stringify(events?.filter((event) => event.space === space) ?? (await cluster.status(node)).warnings);
        assert.fail(`${node.name} still has a copy of space ${space}: ${status} ${text}, ${told}`);
    }
}

/** Ends and pauses nodes, one after the other, and waits after each until all of them are there again. */
export class Faults {
    done = {};
    #deck;

    constructor(world, cluster, random) {
        Object.assign(this, { world, cluster, random });
        this.#deck = this.#shuffle([...FIRST_FAULTS]);
    }

    /** Until the time is over, and each of the first faults has been there. */
    async work(until_ms, hasFailed) {
        const isDue = () => performance.now() < until_ms || FIRST_FAULTS.some((kind) => !this.done[kind]);
        while (!hasFailed() && isDue()) {
            await wait(300 + this.random.below(1200));
            if (this.#deck.length === 0) this.#deck = this.#shuffle([...FIRST_FAULTS, ...MORE_FAULTS]);
            const kind = this.#deck.shift();
            await this[kind](this.random.pick(this.cluster.nodes));
            await this.complete();
            this.#note("all nodes are there");
            this.done[kind] = (this.done[kind] ?? 0) + 1;
        }
    }

    #shuffle(list) {
        for (let i = list.length; i > 1; i--) list.push(...list.splice(this.random.below(i), 1));
        return list;
    }

    #note(text) {
        this.world.history.note(text);
    }

    #isLive = (status) => status.nodes.filter(({ state }) => state === "live").length === this.cluster.nodes.length;

    complete = () => this.cluster.until(this.#isLive, "complete");

    /** It is back before its lease has ended, and still has its partitions. */
    async kill(node, away_ms = this.random.pick([0, this.random.below(3000)])) {
        this.#note(`${node.name} is killed`);
        await node.kill();
        await wait(away_ms);
        await node.start();
    }

    /** Others have taken over what it owned. */
    async killForLong(node) {
        await this.kill(node, LONGER_THAN_A_LEASE_MS);
    }

    async stop(node) {
        this.#note(`${node.name} is stopped`);
        await node.stopWell();
        await wait(this.random.below(2000));
        await node.start();
    }

    /** What it has read and been asked before is answered after others have taken over what it owned. */
    async pause(node, away_ms = LONGER_THAN_A_LEASE_MS) {
        this.#note(`${node.name} is paused`);
        node.waiting = 0;
        await node.pause();
        await wait(away_ms);
        node.resume();
        node.waiting = undefined;
        this.#note(`${node.name} goes on`);
    }

    /** It goes on when its lease has ended or nearly so, and others are about to take over. */
    async pauseForALease(node) {
        await this.pause(node, 4000 + this.random.below(2000));
    }

    async killStarting(node) {
        this.#note(`${node.name} is killed, and again while it starts`);
        await node.kill();
        const starting = node.start().catch(() => {});
        await wait(this.random.below(300));
        await node.kill();
        await starting;
        await node.start();
    }

    async killAll() {
        this.#note("all nodes are killed");
        await Promise.all(this.cluster.nodes.map((node) => node.kill()));
        await Promise.all(this.cluster.nodes.map((node) => node.start()));
    }
}
