// cluster-writers.mjs - clients of a cluster while nodes come and go, and whether all of what they wrote is there.
import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { clientOf } from "./sdk.mjs";

const REQUEST_MS = 10_000;
const TRIES_MAX = 20; // of nodes that refuse connections

/** Clients that ask all the time, each after its last answer and at another node, as behind a load balancer: where a
 * connection is refused nothing was done, and the next node is asked. */
class Clients {
    errors = [];
    refused = 0; // connections
    #isRunning = true;
    #sdk = new Map(); // node -> container
    #done;

    constructor(container) {
        this.container = container;
    }

    /** A step is a function of a node and of how many steps its client has done. */
    begin(cluster, steps) {
        this.cluster = cluster;
        this.#done = Promise.all(steps.map((step, client) => this.#ask(step, client)));
    }

    async #ask(step, client) {
        for (let i = 0; this.#isRunning; i++) {
            try {
                await this.#askOne(step, client, i);
            } catch (error) {
                this.errors.push(error);
                await wait(20);
            }
        }
    }

    async #askOne(step, client, i) {
        for (let tries = 0; ; tries++) {
            const nodes = this.cluster.living;
            try {
                return await step(nodes[(i + client + tries) % nodes.length], i);
            } catch (error) {
                // An error of a batch has no code.
                if (!/ECONNREFUSED/.test(error.message) || tries === TRIES_MAX) throw error;
                this.refused++;
                await wait(5);
            }
        }
    }

    /** The container at a node, through a client that is kept, with its connections. */
    at(node) {
        if (!this.#sdk.has(node)) {
            // A request that was broken off has a timer, for which this process waits in the end.
            const client = clientOf(node, { connectionPolicy: { enableBackgroundEndpointRefreshing: false, requestTimeout: REQUEST_MS } });
            this.#sdk.set(node, client.database("shop").container(this.container));
        }
        return this.#sdk.get(node);
    }

    async stop() {
        this.#isRunning = false;
        await this.#done;
    }
}

/** Clients that write all the time, each at any living node; what was acknowledged, and what was not. */
export class Writers extends Clients {
    acknowledged = new Map(); // id -> last acknowledged n
    tried = new Map(); // id -> last n that was sent
    #lastDone = Date.now();
    longestGap_ms = 0;

    constructor(cluster, container, count = 6) {
        super(container);
        this.begin(cluster, Array.from({ length: count }, (_, writer) => this.#writer(writer)));
    }

    #writer(writer) {
        return async (node, i) => {
            const id = `w${writer}-${i % 50}`;
            this.tried.set(id, i);
            await this.at(node).items.upsert({ id, pk: id, n: i });
            this.acknowledged.set(id, i);
            const now = Date.now();
            this.longestGap_ms = Math.max(this.longestGap_ms, now - this.#lastDone);
            this.#lastDone = now;
        };
    }

    /** Every acknowledged write is there, or a later one of which nobody knows. */
    async check(container) {
        for (const [id, n] of this.acknowledged) {
            const { resource } = await container.item(id, id).read();
            assert.ok(resource, `${id} is lost`);
            assert.ok(resource.n >= n && resource.n <= this.tried.get(id), `${id}: ${resource.n}, acknowledged ${n}`);
        }
    }
}

const COUNT = `function count(id) {
    var own = getContext().getCollection();
    var is = own.readDocument(own.getAltLink() + "/docs/" + id, function (error, item) {
        if (error) throw error;
        item.n += 1;
        own.replaceDocument(item._self, item, function (e) { if (e) throw e; });
        getContext().getResponse().setBody(item.n);
    });
    if (!is) throw new Error("not accepted");
}`;

/** One client for each other kind of request: what it knows must be in each answer. */
export class Askers extends Clients {
    done = {}; // kind -> how many
    #seen = new Set(); // by the change feed
    #batches = 0;

    /** Makes the items that are there all the time. */
    async prepare(cluster, count = 40) {
        this.ids = Array.from({ length: count }, (_, i) => `kept${i}`);
        const container = this.at(cluster.nodes[0]);
        for (const id of this.ids) await container.items.create({ id, pk: id, kept: true });
        await container.items.create({ id: "counter", pk: "counter", n: 0 });
        await container.scripts.storedProcedures.create({ id: "count", body: COUNT });
        const kinds = ["read", "query", "order", "feed", "procedure", "batch"];
        const step = (kind) => async (node, i) => {
            await this[`_${kind}`](this.at(node), i);
            this.done[kind] = (this.done[kind] ?? 0) + 1;
        };
        this.begin(cluster, kinds.map(step));
    }

    async _read(container, i) {
        const id = this.ids[i % this.ids.length];
        const { resource } = await container.item(id, id).read();
        assert.equal(resource?.id, id);
    }

    async _query(container) {
        const { resources } = await container.items.query("SELECT VALUE c.id FROM c WHERE c.kept", { maxItemCount: 7 }).fetchAll();
        assert.deepEqual(resources.sort(), [...this.ids].sort());
    }

    async _order(container) {
        const { resources } = await container.items.query("SELECT VALUE c.id FROM c WHERE c.kept ORDER BY c.id").fetchAll();
        assert.deepEqual(resources, [...this.ids].sort());
    }

    /** Each page at another node. */
    async _feed(container) {
        const changeFeedStartFrom = this.place ? ChangeFeedStartFrom.Continuation(this.place) : ChangeFeedStartFrom.Beginning();
        const page = await container.items.getChangeFeedIterator({ changeFeedStartFrom, maxItemCount: 50 }).readNext();
        for (const { id } of page.result ?? []) this.#seen.add(id);
        this.place = page.continuationToken;
    }

    async _procedure(container, i) {
        const { resource } = await container.scripts.storedProcedure("count").execute("counter", ["counter"]);
        assert.equal(resource, i + 1);
    }

    async _batch(container, i) {
        const pk = `batch${i % 8}`;
        const create = (part) => ({ operationType: "Create", resourceBody: { id: `b${i}-${part}`, pk, batch: true } });
        const { result } = await container.items.batch([create(1), create(2)], pk);
        assert.deepEqual(result?.map(({ statusCode }) => statusCode), [201, 201], `batch ${i}`);
        this.#batches = i + 1;
    }

    /** After stop(): all that was answered is there, and the feed gives all of it. */
    async check(container) {
        const { resource } = await container.item("counter", "counter").read();
        assert.equal(resource.n, this.done.procedure);
        const made = Array.from({ length: this.#batches }, (_, i) => [`b${i}-1`, `b${i}-2`]).flat();
        const { resources } = await container.items.query("SELECT VALUE c.id FROM c WHERE c.batch").fetchAll();
        assert.deepEqual(resources.sort(), [...made].sort());
        const wanted = [...this.ids, ...made];
        for (const end = Date.now() + 20_000; !wanted.every((id) => this.#seen.has(id)); await this._feed(container))
            assert.ok(Date.now() < end, `the feed lacks ${wanted.filter((id) => !this.#seen.has(id))}`);
    }
}
