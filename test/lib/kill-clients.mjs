// kill-clients.mjs - the clients of cluster-kills.mjs: what they do, what they know, and whether the cluster agrees.
//
// A client asks one node, and another one after an error, as behind a load balancer. No request is sent twice: what
// ended without an answer may have been done or not, and both are fine; what was acknowledged, or seen by anybody, must be
// there once, and everybody must see it from then on.
import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { clientOf } from "./sdk.mjs";

export const CONTAINER = { id: "items", database: { id: "kills" } };
const COUNTERS = 12;
const REQUEST_MS = 4000;
const NEVER_MS = 60_000;
const NAME_MAX = 60; // of an error without a code
const LASTING = 4; // items of each round that are there until their time to live is over
const LIFE_S = 1800; // their time to live, which a clock that is an hour ahead is beyond
const LIFE_LEFT_S = 300; // of those that are looked for
const OFF_S_MAX = 10; // of _ts
const CALM_MS = 20_000; // for a request while nothing happens to the cluster
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
const DONE = "done";
const REFUSED = "refused"; // surely not done
const UNKNOWN = "unknown";

function meaning(error) {
    // 410, 429, 449 and 503 say that nothing was done; 412 and 409 are answers about what is there.
    return [400, 404, 409, 410, 412, 429, 449, 503].includes(error.code) ? REFUSED : UNKNOWN;
}

// A script that meets an error of its own writes throws it, so a client gets it as one of the script.
const isOfScript = (error) => error.code === 400 && /Encountered exception while executing function/.test(error.message);

const beginsWith = (list, first) => first.every((one, i) => one === list[i]);

/** A counter has a list, to the end of which each operation appends its tag. Whoever looks at the list must see what others
 * had done, or had seen, before. */
class Counter {
    #operations = new Map(); // tag -> { state, begun, ended }
    #known = []; // the longest list that somebody has seen

    begin(tag) {
        this.#operations.set(tag, { state: UNKNOWN, begun: performance.now(), ended: Infinity });
    }

    end(tag, state) {
        const operation = this.#operations.get(tag);
        if (operation) Object.assign(operation, { state, ended: performance.now() });
    }

    /** Somebody looks: what is wrong with the list that will be found, as a function of it. */
    look() {
        const known = this.#known;
        const done = [...this.#operations].filter(([, { state }]) => state === DONE).map(([tag]) => tag);
        return (list) => {
            const there = new Set(list);
            const wrong = done.filter((tag) => !there.has(tag)).map((tag) => `${tag} is not there`);
            if (!beginsWith(list, known)) wrong.push(`the list does not begin as somebody has seen it before, with ${known}: ${list}`);
            const [shorter, longer] = list.length < this.#known.length ? [list, this.#known] : [this.#known, list];
            if (!beginsWith(longer, shorter)) wrong.push(`two lists differ: ${shorter} and ${longer}`);
            this.#known = longer;
            return wrong;
        };
    }

    /** What is wrong with the list in the end. */
    check({ n, tags: list }) {
        const wrong = this.look()(list);
        if (n !== list.length) wrong.push(`${n} increments, ${list.length} tags`);
        if (new Set(list).size !== list.length) wrong.push(`a tag is there twice: ${list}`);
        let end = Infinity; // of those that come later in the list
        for (const tag of [...list].reverse()) {
            const operation = this.#operations.get(tag);
            if (operation?.state !== UNKNOWN && operation?.state !== DONE) wrong.push(`${tag} was refused, and is there`);
            else if (operation.begun > end) wrong.push(`${tag} began after one that follows it had ended: ${list}`);
            else if (operation.state === DONE) end = Math.min(end, operation.ended);
        }
        return wrong;
    }
}

const TWICE = "a place of the SDK's with a part twice";

/** Whether two parts of a place in the feed are about the same partition keys. The SDK makes such a place if its cache tells it
 * of one split and the answer of a newer one: it then goes on with both the old and the new parts, and gives what follows twice. */
function hasPartTwice(place) {
    const parts = JSON.parse(place).Continuation.sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
    return parts.some(({ minInclusive }, i) => i > 0 && minInclusive < parts[i - 1].maxExclusive);
}

/** A create that had no answer may have been done. */
function unlessThere(error) {
    if (error.code !== 409) throw error;
}

export class Clients {
    operations = 0;
    byKind = {};
    errors = new Map(); // code, or the beginning of a message that has none -> how often
    longest_ms = 0; // from the first attempt at an operation until it is served
    longestWhat = "";
    faults = []; // what is wrong, as texts
    #counters = new Map(); // id -> Counter
    #batches = new Map(); // tag -> { state, name, pk }
    #lasting = new Map(); // id -> { begun_s, ended_s }, when it was created
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
        return node.sdk.database(CONTAINER.database.id).container(CONTAINER.id);
    }

    async prepare() {
        const { database } = await clientOf(this.nodes[0]).databases.create({ id: CONTAINER.database.id });
        const { container } = await database.containers.create(
            { id: CONTAINER.id, partitionKey: { paths: ["/pk"], version: 2 }, defaultTtl: -1 },
            { offerThroughput: 36_000 },
        );
        await container.scripts.storedProcedures.create({ id: "append", body: PROCEDURE });
    }

    /** New objects for a round, and eight clients that use them. */
    async begin(round) {
        this.round = round;
        this.#counters.clear();
        this.#batches.clear();
        for (let i = 0; i < COUNTERS; i++) {
            const id = `r${round}c${i}`;
            const { items } = this.#container(this.nodes[i % this.nodes.length]);
            await this.#calmly(() => items.create({ id, pk: id, n: 0, tags: [] }).catch(unlessThere));
            this.#counters.set(id, new Counter());
        }
        await this.#createLasting();
        this.#running = true;
        const kinds = ["patch", "patch", "replace", "procedure", "batch", "batch", "query", "feed"];
        this.#work = kinds.map((kind, i) => this.#live(kind, i));
    }

    async #createLasting() {
        for (let i = 0; i < LASTING; i++) {
            const id = `r${this.round}l${i}`;
            const { items } = this.#container(this.nodes[i % this.nodes.length]);
            const begun_s = Date.now() / 1000;
            await this.#calmly(() => items.create({ id, pk: id, lasts: true, ttl: LIFE_S }).catch(unlessThere));
            this.#lasting.set(id, { begun_s, ended_s: Date.now() / 1000 });
        }
    }

    async #live(kind, number) {
        const client = { node: this.nodes[number % this.nodes.length] };
        while (this.#running) {
            const counter = `r${this.round}c${this.random.below(COUNTERS)}`;
            const begun = Date.now();
            while (!(await this.#once(kind, client, counter))) {
                if (!this.#running && Date.now() - begun > NEVER_MS) {
                    this.faults.push(`${kind} of ${counter} is not served for ${NEVER_MS} ms`);
                    return;
                }
                client.node = this.#another(client.node);
                await wait(20);
            }
            const took = Date.now() - begun;
            if (took > this.longest_ms) {
                this.longest_ms = took;
                this.longestWhat = `${kind} of ${counter} at ${new Date(begun).toISOString()}`;
            }
        }
    }

    #another(node) {
        return this.random.pick(this.nodes.filter((other) => other !== node));
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
            this.#counters.get(counter).end(tag, meaning(error));
            if (this.#batches.has(tag)) this.#batches.get(tag).state = meaning(error);
            if (error.code === 412) return true; // somebody else was first
            if (error.code === 400 && !isOfScript(error)) this.faults.push(`${kind} of ${counter}: ${error.message}`);
            const name = isOfScript(error) ? "400 of a script" : String(error.code ?? error.message.slice(0, NAME_MAX));
            this.errors.set(name, (this.errors.get(name) ?? 0) + 1);
            return false;
        }
    }

    async #append(id, tag, write) {
        const counter = this.#counters.get(id);
        counter.begin(tag);
        const wrong = counter.look();
        const { resource } = await write();
        counter.end(tag, DONE);
        if (!resource?.tags) return; // a procedure's answer
        assert.equal(resource.tags.at(-1), tag, `a write of ${id} did not give its own tag as the last one`);
        assert.deepEqual(wrong(resource.tags), [], `a write of ${id}`);
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
        const wrong = this.#counters.get(counter).look();
        const { resource, etag } = await item.read();
        assert.ok(resource, `${counter} is not there`);
        assert.deepEqual(wrong(resource.tags), [], `a read of ${counter}`);
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
        this.#batches.get(tag).state = DONE;
    }

    #done() {
        return [...this.#batches.values()].filter(({ state, isSeen }) => state === DONE || isSeen);
    }

    /** Pages of a query over all partitions, each from any node. */
    async _query(client) {
        const expected = this.#done();
        const query = `SELECT VALUE c.id FROM c WHERE c.batch = ${this.round}`;
        const found = [];
        let continuationToken;
        for (let tries = 0; ; ) {
            const options = { maxItemCount: 40, continuationToken, forceQueryPlan: false };
            const iterator = this.#container(client.node).items.query(query, options);
            try {
                const page = await iterator.fetchNext();
                found.push(...(page.resources ?? []));
                continuationToken = page.continuationToken;
                if (!continuationToken) break;
            } catch (error) {
                if (++tries > 3 || !continuationToken) throw error;
                client.node = this.#another(client.node);
            }
        }
        const seen = new Set(found);
        assert.equal(seen.size, found.length, "a query gave an item twice");
        for (const { name } of expected)
            for (const part of [1, 2]) assert.ok(seen.has(`${name}-${part}`), `a query did not give ${name}-${part}`);
        for (const batch of this.#batches.values()) batch.isSeen ||= seen.has(`${batch.name}-1`);
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
        if (hasPartTwice(this.#place)) {
            this.errors.set(TWICE, (this.errors.get(TWICE) ?? 0) + 1);
            this.#place = undefined;
            this.#feed.clear();
        }
        if (page.statusCode === 304) await wait(50);
    }

    /** Partitions may still get other owners: a request may have to be sent again, but not for long. */
    async #calmly(ask) {
        for (const end = Date.now() + CALM_MS; ; await wait(50)) {
            try {
                return await ask();
            } catch (error) {
                if (Date.now() > end) throw error;
            }
        }
    }

    async end() {
        this.#running = false;
        await Promise.all(this.#work);
    }

    /** What every node says of this round's objects. */
    async check() {
        for (const node of this.nodes) {
            for (const id of this.#counters.keys()) await this.#checkCounter(node, id);
            await this.#checkBatches(node);
            await this.#checkLasting(node);
        }
        await this.#checkFeed();
    }

    async #checkCounter(node, id) {
        const { resource } = await this.#calmly(() => this.#container(node).item(id, id).read());
        const wrong = resource ? this.#counters.get(id).check(resource) : ["lost"];
        this.faults.push(...wrong.map((what) => `${id} at ${node.name}: ${what}`));
    }

    async #checkBatches(node) {
        const query = { query: "SELECT c.id, c.pk FROM c WHERE c.batch = @round", parameters: [{ name: "@round", value: this.round }] };
        const { resources } = await this.#calmly(() => this.#container(node).items.query(query).fetchAll());
        const counts = new Map();
        for (const { id } of resources) counts.set(id, (counts.get(id) ?? 0) + 1);
        for (const [id, count] of counts) if (count > 1) this.faults.push(`${id} is there ${count} times at ${node.name}`);
        for (const { state, name, isSeen } of this.#batches.values()) {
            const parts = [1, 2].filter((part) => counts.has(`${name}-${part}`)).length;
            if (parts === 1) this.faults.push(`half of the batch ${name} is there at ${node.name}`);
            if (parts === 0 && (state === DONE || isSeen)) this.faults.push(`the batch ${name} is lost at ${node.name}`);
            if (parts > 0 && state === REFUSED) this.faults.push(`the batch ${name} was refused, and is there at ${node.name}`);
        }
    }

    /** Those of all rounds, as long as they live: whatever clocks have said, none has expired, and `_ts` is right. */
    async #checkLasting(node) {
        const query = "SELECT c.id, c._ts FROM c WHERE c.lasts";
        const { resources } = await this.#calmly(() => this.#container(node).items.query(query).fetchAll());
        const times = new Map(resources.map(({ id, _ts }) => [id, _ts]));
        for (const [id, { begun_s, ended_s }] of this.#lasting) {
            if (Date.now() / 1000 - begun_s > LIFE_S - LIFE_LEFT_S) continue;
            const ts = times.get(id);
            if (ts === undefined) this.faults.push(`${id} at ${node.name} has expired before its time`);
            else if (ts < begun_s - OFF_S_MAX || ts > ended_s + OFF_S_MAX)
                this.faults.push(`${id} at ${node.name} was created from ${begun_s} to ${ended_s}, but its _ts is ${ts}`);
        }
    }

    /** The feed from its beginning has everything that was acknowledged in this round. */
    async #checkFeed() {
        const node = this.random.pick(this.nodes);
        const ids = await this.#calmly(() => this.#wholeFeed(node));
        const seen = new Set(ids);
        if (seen.size < ids.length) {
            const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
            this.faults.push(`the feed has these twice at ${node.name}: ${twice}`);
        }
        for (const id of this.#counters.keys()) if (!seen.has(id)) this.faults.push(`the feed lacks ${id} at ${node.name}`);
        for (const { name } of this.#done())
            for (const part of [1, 2])
                if (!seen.has(`${name}-${part}`)) this.faults.push(`the feed lacks ${name}-${part} at ${node.name}`);
    }

    async #wholeFeed(node) {
        const options = { maxItemCount: 500, changeFeedStartFrom: ChangeFeedStartFrom.Beginning() };
        const iterator = this.#container(node).items.getChangeFeedIterator(options);
        const ids = [];
        for (let quiet = 0; quiet < 8; ) {
            const page = await iterator.readNext();
            quiet = page.statusCode === 304 ? quiet + 1 : 0;
            ids.push(...(page.result ?? []).map(({ id }) => id));
        }
        return ids;
    }
}
