// kill-clients.mjs - the clients of cluster-kills.mjs: what they do, what they know, and whether the cluster agrees.
//
// A client asks one node, and another one after an error, as behind a load balancer. No request is sent twice: what
// ended without an answer may have been done or not, and both are fine; what was acknowledged must be there once.
import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { clientOf } from "./sdk.mjs";

export const COUNTERS = 12;
const REQUEST_MS = 4000;
const PROCEDURE = `function append(id, tag) {
    var own = getContext().getCollection();
    var is = own.readDocument(own.getAltLink() + "/docs/" + id, function (error, item) {
        if (error) throw error;
        item.n += 1;
        item.tags.push(tag);
        own.replaceDocument(item._self, item, function (e) { if (e) throw e; });
    });
    if (!is) throw new Error("not accepted");
}`;

/** What happened to an operation, as its client knows it. */
const REFUSED = "refused"; // surely not done
const UNKNOWN = "unknown";

function meaning(error) {
    // 429, 449 and 503 say that nothing was done; 412 and 409 are answers about what is there.
    return [400, 404, 409, 412, 429, 449, 503].includes(error.code) ? REFUSED : UNKNOWN;
}

export class Clients {
    operations = 0;
    byKind = {};
    errors = new Map(); // code -> how often
    longest_ms = 0; // from the first failure of an operation until its object is served again
    longestWhat = "";
    faults = []; // what is wrong, as texts
    #tags = new Map(); // counter -> tag -> "done" or UNKNOWN
    #batches = new Map(); // name -> "done" or "unknown"
    #feed = new Map(); // id -> highest n that was seen, by the reader of the feed
    #place; // where the reader of the feed goes on
    #running = false;
    #work = [];
    #number = 0;

    constructor(nodes, random) {
        this.nodes = nodes;
        this.random = random;
        this.round = -1;
    }

    #container(node) {
        node.sdk ??= clientOf(node, {
            connectionPolicy: {
                enableBackgroundEndpointRefreshing: false,
                requestTimeout: REQUEST_MS,
                retryOptions: { maxRetryAttemptCount: 0, maxWaitTimeInSeconds: 0 },
            },
        });
        return node.sdk.database("kills").container("items");
    }

    async prepare() {
        const { database } = await clientOf(this.nodes[0]).databases.create({ id: "kills" });
        const { container } = await database.containers.create(
            { id: "items", partitionKey: { paths: ["/pk"], version: 2 } },
            { offerThroughput: 36_000 },
        );
        await container.scripts.storedProcedures.create({ id: "append", body: PROCEDURE });
    }

    /** New objects for a round, and eight clients that use them. */
    async begin(round) {
        this.round = round;
        this.#tags.clear();
        this.#batches.clear();
        for (let i = 0; i < COUNTERS; i++) {
            const id = `r${round}c${i}`;
            await this.#container(this.nodes[i % this.nodes.length]).items.create({ id, pk: id, n: 0, tags: [] });
            this.#tags.set(id, new Map());
        }
        this.#running = true;
        const kinds = ["patch", "patch", "replace", "procedure", "batch", "batch", "query", "feed"];
        this.#work = kinds.map((kind, i) => this.#live(kind, i));
    }

    async #live(kind, number) {
        const client = { node: this.nodes[number % this.nodes.length] };
        while (this.#running) {
            const counter = `r${this.round}c${this.random.below(COUNTERS)}`;
            const begun = Date.now();
            let first;
            for (;;) {
                first ??= Date.now();
                const outcome = await this.#once(kind, client, counter);
                if (outcome) break;
                if (!this.#running && Date.now() - begun > 60_000) {
                    this.faults.push(`${kind} of ${counter} is not served for 60 s`);
                    return;
                }
                const others = this.nodes.filter((node) => node !== client.node);
                client.node = this.random.pick(others);
                await wait(20);
            }
            const took = Date.now() - first;
            if (took > this.longest_ms) {
                this.longest_ms = took;
                this.longestWhat = `${kind} of ${counter} at ${new Date(first).toISOString()}`;
            }
        }
    }

    /** One attempt; whether it was served. */
    async #once(kind, client, counter) {
        const tag = `${kind}${++this.#number}`;
        try {
            await this[`_${kind}`](client, counter, tag);
            this.operations++;
            this.byKind[kind] = (this.byKind[kind] ?? 0) + 1;
            return true;
        } catch (error) {
            if (error instanceof assert.AssertionError) {
                this.faults.push(`${kind}: ${error.message}`);
                return true;
            }
            if (error.code === 412) return true; // somebody else was first
            if (error.code === 400) this.faults.push(`${kind} of ${counter}: ${error.message}`);
            this.errors.set(String(error.code ?? error.name), (this.errors.get(String(error.code ?? error.name)) ?? 0) + 1);
            if (meaning(error) === REFUSED) {
                this.#tags.get(counter)?.delete(tag);
                this.#batches.delete(tag);
            }
            return false;
        }
    }

    async #append(counter, tag, write) {
        const tags = this.#tags.get(counter);
        tags.set(tag, UNKNOWN);
        await write();
        tags.set(tag, "done");
    }

    _patch(client, counter, tag) {
        const operations = [
            { op: "incr", path: "/n", value: 1 },
            { op: "add", path: "/tags/-", value: tag },
        ];
        return this.#append(counter, tag, () => this.#container(client.node).item(counter, counter).patch(operations));
    }

    async _replace(client, counter, tag) {
        const item = this.#container(client.node).item(counter, counter);
        const before = [...this.#tags.get(counter)].filter(([, state]) => state === "done").map(([known]) => known);
        const { resource, etag } = await item.read();
        assert.ok(resource, `${counter} is not there`);
        for (const known of before) assert.ok(resource.tags.includes(known), `a read did not give ${known} of ${counter}`);
        const next = { ...resource, n: resource.n + 1, tags: [...resource.tags, tag] };
        await this.#append(counter, tag, () => item.replace(next, { accessCondition: { type: "IfMatch", condition: etag } }));
    }

    _procedure(client, counter, tag) {
        const { scripts } = this.#container(client.node);
        return this.#append(counter, tag, () => scripts.storedProcedure("append").execute(counter, [counter, tag]));
    }

    async _batch(client, counter, tag) {
        const name = `r${this.round}${tag}`;
        const pk = `r${this.round}b${this.random.below(8)}`;
        this.#batches.set(tag, { state: UNKNOWN, name, pk });
        const create = (part) => ({
            operationType: "Create",
            resourceBody: { id: `${name}-${part}`, pk, batch: this.round },
        });
        const { result, code } = await this.#container(client.node).items.batch([create(1), create(2)], pk);
        // A batch says of its first operation why none was done.
        const failed = result?.find((one) => one.statusCode !== 201 && one.statusCode !== 424);
        if (failed) throw Object.assign(new Error(failed.message), { code: failed.statusCode });
        assert.ok(result?.every((one) => one.statusCode === 201), `a batch was answered ${code} ${JSON.stringify(result)}`);
        this.#batches.set(tag, { state: "done", name, pk });
    }

    #done() {
        return [...this.#batches.values()].filter(({ state }) => state === "done");
    }

    /** Pages of a query over all partitions, each from any node. */
    async _query(client) {
        const expected = this.#done();
        const query = `SELECT VALUE c.id FROM c WHERE c.batch = ${this.round}`;
        const found = [];
        let continuationToken;
        for (let tries = 0; ; ) {
            const iterator = this.#container(client.node).items.query(query, { maxItemCount: 40, continuationToken, forceQueryPlan: false });
            try {
                const page = await iterator.fetchNext();
                found.push(...(page.resources ?? []));
                continuationToken = page.continuationToken;
                if (!continuationToken) break;
            } catch (error) {
                if (++tries > 3 || !continuationToken) throw error;
                client.node = this.random.pick(this.nodes);
            }
        }
        const seen = new Set(found);
        assert.equal(seen.size, found.length, "a query gave an item twice");
        for (const { name } of expected)
            for (const part of [1, 2]) assert.ok(seen.has(`${name}-${part}`), `a query did not give ${name}-${part}`);
    }

    /** Follows all changes since the first round, each page at any node; places never go back. */
    async _feed(client) {
        const changeFeedStartFrom = this.#place
            ? ChangeFeedStartFrom.Continuation(this.#place)
            : ChangeFeedStartFrom.Beginning();
        const options = { maxItemCount: 100, changeFeedStartFrom };
        const page = await this.#container(client.node).items.getChangeFeedIterator(options).readNext();
        for (const { id, n } of page.result ?? []) {
            if (n === undefined) {
                assert.ok(!this.#feed.has(id), `the feed gave ${id} twice`);
                this.#feed.set(id, 0);
                continue;
            }
            assert.ok(n >= (this.#feed.get(id) ?? 0), `the feed went back in ${id}`);
            this.#feed.set(id, n);
        }
        this.#place = page.continuationToken;
        if (page.statusCode === 304) await wait(50);
    }

    async end() {
        this.#running = false;
        await Promise.all(this.#work);
    }

    /** What every node says of this round's objects. */
    async check() {
        for (const node of this.nodes) {
            for (const [id, tags] of this.#tags) await this.#checkCounter(node, id, tags);
            await this.#checkBatches(node);
        }
        await this.#checkFeed();
    }

    async #checkCounter(node, id, tags) {
        const { resource } = await this.#container(node).item(id, id).read();
        if (!resource) return this.faults.push(`${id} is lost at ${node.name}`);
        const counts = new Map();
        for (const tag of resource.tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
        for (const [tag, count] of counts) {
            if (count > 1) this.faults.push(`${tag} of ${id} is there ${count} times at ${node.name}`);
            if (!tags.has(tag)) this.faults.push(`${tag} of ${id} was refused, and is there at ${node.name}`);
        }
        for (const [tag, state] of tags)
            if (state === "done" && !counts.has(tag)) this.faults.push(`${tag} of ${id} is lost at ${node.name}`);
        if (resource.n !== resource.tags.length)
            this.faults.push(`${id}: ${resource.n} increments, ${resource.tags.length} tags at ${node.name}`);
    }

    async #checkBatches(node) {
        const query = { query: "SELECT c.id, c.pk FROM c WHERE c.batch = @round", parameters: [{ name: "@round", value: this.round }] };
        const { resources } = await this.#container(node).items.query(query).fetchAll();
        const counts = new Map();
        for (const { id } of resources) counts.set(id, (counts.get(id) ?? 0) + 1);
        for (const [id, count] of counts) if (count > 1) this.faults.push(`${id} is there ${count} times at ${node.name}`);
        for (const { state, name } of this.#batches.values()) {
            const parts = [1, 2].filter((part) => counts.has(`${name}-${part}`)).length;
            if (parts === 1) this.faults.push(`half of the batch ${name} is there at ${node.name}`);
            if (parts === 0 && state === "done") this.faults.push(`the batch ${name} is lost at ${node.name}`);
        }
    }

    /** The feed from its beginning has everything that was acknowledged in this round. */
    async #checkFeed() {
        const node = this.random.pick(this.nodes);
        const options = { maxItemCount: 500, changeFeedStartFrom: ChangeFeedStartFrom.Beginning() };
        const iterator = this.#container(node).items.getChangeFeedIterator(options);
        const seen = new Set();
        for (let quiet = 0; quiet < 8; ) {
            const page = await iterator.readNext();
            quiet = page.statusCode === 304 ? quiet + 1 : 0;
            for (const { id } of page.result ?? []) {
                if (seen.has(id)) this.faults.push(`the feed has ${id} twice at ${node.name}`);
                seen.add(id);
            }
        }
        for (const id of this.#tags.keys()) if (!seen.has(id)) this.faults.push(`the feed lacks ${id} at ${node.name}`);
        for (const { name } of this.#done())
            for (const part of [1, 2])
                if (!seen.has(`${name}-${part}`)) this.faults.push(`the feed lacks ${name}-${part} at ${node.name}`);
    }
}
