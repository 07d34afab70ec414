// kill-clients.mjs - the clients of cluster-kills.mjs: what they do, what they know, and whether the cluster agrees.
//
// A client asks one node, and another one after an error, as behind a load balancer. No request is sent twice: what
// ended without an answer may have been done or not, and both are fine; what was acknowledged, or seen by anybody, must be
// there once, and everybody must see it from then on.
import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { clientOf } from "./sdk.mjs";
import { call } from "./wire.mjs";

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
const ITEMS = 6; // that are written and deleted all the time
const CONTAINERS_PERCENT = 3; // of the steps of its client make a container and drop it
const PAGE = { filter: 40, order: 100 };
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

function unlessGone(error) {
    if (error.code !== 404) throw error;
}

/** A page of a query that the server merges; the SDK would do it by itself. */
async function askPage(node, query, token) {
    const headers = {
        "content-type": "application/query+json",
        "x-ms-documentdb-isquery": "true",
        "x-ms-documentdb-query-enablecrosspartition": "true",
        "x-ms-max-item-count": String(PAGE.order),
        ...(token ? { "x-ms-continuation": token } : {}),
    };
    const path = `/dbs/${CONTAINER.database.id}/colls/${CONTAINER.id}/docs`;
    let timer;
    const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("a page takes too long")), REQUEST_MS)));
    const asked = call(node, { method: "POST", path, headers, body: { query } });
    const { status, json, text, headers: got } = await Promise.race([asked, late]).finally(() => clearTimeout(timer));
    if (status !== 200) throw Object.assign(new Error(text.slice(0, 500)), { code: status });
    return { found: json.Documents, next: got["x-ms-continuation"] };
}

export class Clients {
    operations = 0;
    byKind = {};
    errors = new Map(); // code, or the beginning of a message that has none -> how often
    longest_ms = 0; // from the first attempt at an operation, or a part of one, until it is served
    longestWhat = "";
    faults = []; // what is wrong, as texts
    #counters = new Map(); // id -> Counter
    #batches = new Map(); // tag -> { state, name, pk }
    #items = []; // { id, n }; n is undefined if it is not there
    #left = new Set(); // containers that may be there, as nobody knows whether they were made or dropped
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
        this.#items = Array.from({ length: ITEMS }, () => this.#newItem());
        this.#running = true;
        const kinds = ["patch", "item", "replace", "procedure", "batch", "batchOrContainer", "query", "feed"];
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
            client.waitsSince = begun;
            while (!(await this.#once(kind, client, counter))) {
                if (!this.#running && Date.now() - begun > NEVER_MS) {
                    this.faults.push(`${kind} of ${counter} is not served for ${NEVER_MS} ms`);
                    return;
                }
                client.node = this.#another(client.node);
                await wait(20);
            }
            this.#served(client, `${kind} of ${counter}`);
        }
    }

    /** An operation, or a part of one. */
    #served(client, what) {
        const { waitsSince } = client;
        client.waitsSince = Date.now();
        if (client.waitsSince - waitsSince <= this.longest_ms) return;
        this.longest_ms = client.waitsSince - waitsSince;
        this.longestWhat = `${what} at ${new Date(waitsSince).toISOString()}`;
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

    #newItem() {
        return { id: `r${this.round}i${++this.#number}`, n: undefined };
    }

    /** Items that only this client writes. One that may have been written or not is left alone from then on: a request
     * that nobody waits for any more may still be carried out. */
    async _item(client) {
        const index = this.random.below(ITEMS);
        const { id, n } = this.#items[index];
        const { items } = this.#container(client.node);
        const item = this.#container(client.node).item(id, id);
        const what = this.random.pick(["read", "upsert", "delete"]);
        if (what === "read") {
            const { resource } = await item.read();
            assert.equal(resource?.n, n, `a read of ${id}`);
            return;
        }
        const next = what === "delete" ? undefined : ++this.#number;
        try {
            if (what === "delete") await item.delete();
            else await items.upsert({ id, pk: id, n: next, item: this.round });
        } catch (error) {
            if (meaning(error) === UNKNOWN) this.#items[index] = this.#newItem();
            if (error.code !== 404) throw error;
            assert.equal(n, undefined, `${id} was to be deleted, and is not there`);
        }
        if (this.#items[index].id === id) this.#items[index].n = next;
    }

    _batchOrContainer(client, counter, tag) {
        return this.random.chance(CONTAINERS_PERCENT) ? this.#useContainer(client) : this._batch(client, counter, tag);
    }

    /** A container is known at every node as soon as it was made at one, and nowhere when it was dropped. */
    async #useContainer(client) {
        const id = `r${this.round}k${++this.#number}`;
        const at = (node) => {
            this.#container(node); // makes the client
            return node.sdk.database(CONTAINER.database.id);
        };
        this.#left.add(id);
        await at(client.node).containers.create({ id, partitionKey: { paths: ["/pk"], version: 2 } });
        this.#served(client, `creating ${id}`);
        const item = { id: "1", pk: "1" };
        await this.#anywhere(client, `${id} was made`, async (node) => {
            await at(node).container(id).items.upsert(item);
            const { statusCode } = await at(node).container(id).item("1", "1").read();
            assert.equal(statusCode, 200, `an item of ${id} is not there`);
        });
        this.#served(client, `using ${id}`);
        await at(client.node).container(id).delete();
        this.#left.delete(id);
        this.#served(client, `dropping ${id}`);
        const seen = await at(this.#another(client.node)).container(id).read().catch((error) => error);
        assert.notEqual(seen.statusCode, 200, `${id} was dropped, and another node has it`);
    }

    /** At another node than before, and at others after errors; but it may not say that something is not there. */
    async #anywhere(client, what, ask) {
        for (const end = Date.now() + REQUEST_MS; ; await wait(20)) {
            client.node = this.#another(client.node);
            try {
                return await ask(client.node);
            } catch (error) {
                assert.notEqual(error.code, 404, `${what}, and ${client.node.name} says: ${error.message}`);
                if (Date.now() > end) throw error;
            }
        }
    }

    #done() {
        return [...this.#batches.values()].filter(({ state, isSeen }) => state === DONE || isSeen);
    }

    /** Queries over all partitions, of one kind after the other. */
    async _query(client) {
        const kinds = ["filter", "order", "count"];
        client.queries = (client.queries ?? 0) + 1;
        await this[`_${kinds[client.queries % kinds.length]}`](client);
    }

    /** Pages of the SDK. */
    async _filter(client) {
        const query = `SELECT VALUE c.id FROM c WHERE c.batch = ${this.round}`;
        await this.#readPages(client, async (node, continuationToken) => {
            const options = { maxItemCount: PAGE.filter, continuationToken, forceQueryPlan: false };
            const page = await this.#container(node).items.query(query, options).fetchNext();
            return { found: page.resources ?? [], next: page.continuationToken };
        });
    }

    /** Pages that the server merges. */
    async _order(client) {
        const query = `SELECT VALUE c.id FROM c WHERE c.batch = ${this.round} ORDER BY c.id`;
        const found = await this.#readPages(client, (node, token) => askPage(node, query, token));
        const sorted = [...found].sort();
        assert.deepEqual(found, sorted, "a query with ORDER BY gave its items in another order");
    }

    /** As many as were known before, and no more than have been tried. */
    async _count(client) {
        const least = 2 * this.#done().length;
        const query = `SELECT VALUE COUNT(1) FROM c WHERE c.batch = ${this.round}`;
        const { found } = await askPage(client.node, query);
        const most = 2 * [...this.#batches.values()].filter(({ state }) => state !== REFUSED).length;
        assert.ok(found.length === 1 && found[0] >= least && found[0] <= most, `COUNT is ${found}, not from ${least} to ${most}`);
    }

    /** All pages, each from any node; what was known before they were asked for must be in them, once. */
    async #readPages(client, read) {
        const expected = this.#done();
        const found = [];
        let token;
        for (let tries = 0; ; ) {
            try {
                const page = await read(client.node, token);
                found.push(...page.found);
                token = page.next;
                if (!token) break;
                this.#served(client, "a page");
            } catch (error) {
                if (++tries > 3 || !token) throw error;
                client.node = this.#another(client.node);
            }
        }
        const seen = new Set(found);
        assert.equal(seen.size, found.length, "a query gave an item twice");
        for (const { name } of expected)
            for (const part of [1, 2]) assert.ok(seen.has(`${name}-${part}`), `a query did not give ${name}-${part}`);
        for (const batch of this.#batches.values()) batch.isSeen ||= seen.has(`${batch.name}-1`);
        return found;
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
        for (const id of this.#left) {
            const container = this.nodes[0].sdk.database(CONTAINER.database.id).container(id);
            await this.#calmly(() => container.delete().catch(unlessGone));
        }
        this.#left.clear();
    }

    /** What every node says of this round's objects. */
    async check() {
        for (const node of this.nodes) {
            for (const id of this.#counters.keys()) await this.#checkCounter(node, id);
            await this.#checkBatches(node);
            await this.#checkItems(node);
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

    async #checkItems(node) {
        const query = `SELECT c.id, c.n FROM c WHERE c.item = ${this.round}`;
        const { resources } = await this.#calmly(() => this.#container(node).items.query(query).fetchAll());
        const there = new Map(resources.map(({ id, n }) => [id, n]));
        for (const { id, n } of this.#items)
            if (there.get(id) !== n) this.faults.push(`${id} at ${node.name} has ${there.get(id)} instead of ${n}`);
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
