// sessions.mjs - clients by hand that keep session tokens as SDKs do, and record what they did and saw (history.mjs).
//
// All sessions write to the same few items, so that they meet. Half of them send all tokens that they know with every
// request, dead ranges included; the others find out the range of a key, and send the one token that they have for it or
// its parents.
//
// A server may be all nodes of a cluster (`isSpread`): each request goes to another one. Then the loss of one node is not
// the end: a session goes on at the others with all that it knows.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import { setTimeout as wait } from "node:timers/promises";

import { parseToken, tokenText } from "./history.mjs";
import { callItems, pathOf } from "./items.mjs";
import { ATOMIC, METHODS, batchForm } from "./model.mjs";
import { askPage } from "./queries.mjs";
import { executeRaw, flow } from "./scripts.mjs";
import { call } from "./wire.mjs";

/** The server went away during a request, or says that it does not know how the request has ended. */
export class Gone extends Error {}

/** The same, and surely nothing was done. */
export class Refused extends Gone {}

const isConnection = (error) => error.code !== "ERR_ASSERTION" && typeof error.code === "string";

/** What a node answers while another one is away: 408 if a write may have been done, 429 and 503 if nothing was. */
function checkNode(answer) {
    if (answer.status === 408) throw new Gone(answer.text);
    if (answer.status === 503) throw new Refused(answer.text);
    if (answer.status !== 429) return;
    assert.equal(answer.headers["x-ms-substatus"], "3092", answer.text);
    throw new Refused(answer.text);
}

/** Sends, and says Gone if the server, which is about to end, did not answer or failed. */
export async function attempt(server, send) {
    let answer;
    try {
        answer = await send();
    } catch (error) {
        if (error.code === "ECONNREFUSED") throw new Refused(error.message);
        if (isConnection(error)) throw new Gone(error.message);
        throw error;
    }
    if (answer.status >= 500 && server.isDoomed) throw new Gone(`${answer.status}`);
    if (server.isSpread) checkNode(answer);
    return answer;
}

/** One node that is gone is not the end if there are others. */
export async function whileSpread(server, work) {
    try {
        await work();
    } catch (error) {
        if (!server.isSpread || !(error instanceof Gone)) throw error;
    }
}

/** The partition key ranges of a container, as a client remembers them. */
export class RangeMap {
    ranges = [];

    constructor(history, container) {
        Object.assign(this, { history, container });
    }

    async refresh(server, agent) {
        const answer = await attempt(server, () => call(server, { path: `${pathOf(this.container)}/pkranges`, agent }));
        assert.equal(answer.status, 200, answer.text);
        this.ranges = answer.json.PartitionKeyRanges.sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
        this.history.add({ type: "ranges", ranges: this.ranges });
    }

    has = (id) => this.ranges.some((range) => range.id === id);
    of = (epk) => this.ranges.find(({ minInclusive, maxExclusive }) => minInclusive <= epk && epk < maxExclusive);

    /** The ranges that have hashes of [min, max). */
    overlapping(min, max) {
        return this.ranges.filter(({ minInclusive, maxExclusive }) => minInclusive < max && min < maxExclusive);
    }
}

/** Upserts items, and removes the first of them again if it is told so. */
export const PROCEDURE = flow(async ({ call: ask, self, link }, items, isRemoved) => {
    const results = [];
    for (const item of items) results.push((await ask("upsertDocument", self, item))[0]);
    if (isRemoved) await ask("deleteDocument", link(items[0].id));
    return results;
});

const IDS = 6; // of each key
const PAUSE_MS = 12; // at most, between two requests

export class Session {
    tokens = new Map(); // range -> LSN
    done = {};
    #etags = new Map(); // key and id -> the last ETag that was seen
    #made = 0;

    /** `world`: { history, container, ranges, procedureId }, and `levels` of consistency for reads, if they have any */
    constructor(name, world, random) {
        Object.assign(this, { name, world, random, history: world.history });
        this.keys = [...world.history.keys.keys()];
        this.sendsAll = random.chance(50);
    }

    /** Works until the time is over or the server is gone. */
    async work(server, others, isOver) {
        this.server = server;
        this.agent = new Agent({ keepAlive: true });
        try {
            while (!isOver()) {
                const name = this.#choose();
                await whileSpread(server, () => this[name](others));
                this.done[name] = (this.done[name] ?? 0) + 1;
                await wait(this.random.below(PAUSE_MS));
            }
        } catch (error) {
            if (!(error instanceof Gone)) throw error;
        } finally {
            this.agent.destroy();
        }
    }

    #choose() {
        return this.random.pick([
            ...["write", "write", "write", "write", "write", "write", "batch", "batch", "procedure"],
            ...["read", "read", "read", "read", "readOwn", "query", "list", "queryRange", "takeOver"],
        ]);
    }

    // --- Tokens

    /** The session token for a request about a key: pairs of range and LSN. */
    #tokensFor(key) {
        const range = this.world.ranges.of(this.history.keys.get(key));
        if (this.sendsAll) return [...this.tokens];
        const lsns = [range.id, ...(range.parents ?? [])].map((id) => this.tokens.get(id) ?? 0);
        return Math.max(...lsns) > 0 ? [[range.id, Math.max(...lsns)]] : [];
    }

    #headers(sent) {
        const level = this.world.levels && this.random.pick(this.world.levels);
        return {
            ...(sent.length > 0 && { "x-ms-session-token": tokenText(sent) }),
            ...(level && { "x-ms-consistency-level": level }),
        };
    }

    /** Takes over the token of an answer; a range that is not known yet is a reason to look at the map. */
    async #learn(event, answer) {
        const pairs = parseToken(answer.headers["x-ms-session-token"]);
        assert.equal(pairs.length, 1, `one range has answered: ${answer.headers["x-ms-session-token"]}`);
        [[event.range, event.lsn]] = pairs;
        this.tokens.set(event.range, Math.max(event.lsn, this.tokens.get(event.range) ?? 0));
        if (!this.world.ranges.has(event.range)) await this.world.ranges.refresh(this.server, this.agent);
    }

    async takeOver(others) {
        const other = this.random.pick(others.filter((one) => one !== this));
        for (const [range, lsn] of other.tokens) this.tokens.set(range, Math.max(lsn, this.tokens.get(range) ?? 0));
        this.history.add({ type: "handover", from: other.name, to: this.name });
    }

    // --- Writing

    #remember(item) {
        this.#etags.set(`${item.pk} ${item.id}`, item._etag);
    }

    #operation(key, id = `i${this.random.below(IDS)}`) {
        const kind = this.random.pick(["create", "create", "upsert", "upsert", "replace", "replace", "patch", "patch", "delete"]);
        return this.#operationOf(kind, key, id);
    }

    #operationOf(kind, key, id) {
        const v = `${this.name}.${this.#made++}`;
        const op = { kind, id, v };
        if (kind !== "patch" && kind !== "delete")
            op.body = { id, pk: key, v, count: this.random.below(10), text: "x".repeat(this.random.below(200)) };
        const etag = this.#etags.get(`${key} ${id}`);
        const percent = kind === "replace" ? 70 : 20;
        if (kind !== "create" && etag && this.random.chance(percent)) op.ifMatch = etag;
        return op;
    }

    /** Sends a write and records how it ended. */
    async #record(key, how, ops, send, resultsOf) {
        const event = { type: "write", session: this.name, key, how, ops, invoked: this.history.now(), outcome: "unknown" };
        try {
            const answer = await attempt(this.server, send);
            event.completed = this.history.now();
            event.status = answer.status;
            const { isDone, results } = resultsOf(answer);
            event.outcome = isDone ? "done" : "refused";
            event.results = results;
            for (const { item } of results ?? []) if (item && isDone) this.#remember(item);
            this.history.add(event);
            await this.#learn(event, answer);
        } catch (error) {
            if (event.outcome === "unknown") {
                if (error instanceof Refused) event.outcome = "refused";
                else if (this.server.isSpread) event.isOpen = true;
                this.history.add(event);
            }
            throw error;
        }
    }

    async write() {
        const key = this.random.pick(this.keys);
        const op = this.#operation(key);
        const isNamed = op.kind !== "create" && op.kind !== "upsert";
        const send = () =>
            callItems(this.server, this.world.container, {
                method: METHODS[op.kind],
                key,
                id: isNamed ? op.id : undefined,
                agent: this.agent,
                headers: {
                    ...(op.kind === "upsert" && { "x-ms-documentdb-is-upsert": "true" }),
                    ...(op.ifMatch && { "if-match": op.ifMatch }),
                },
                body: op.kind === "patch" ? { operations: patchOf(op) } : op.body,
            });
        await this.#record(key, "single", [op], send, (answer) => {
            const { status } = answer;
            assert.ok([200, 201, 204, 404, 409, 412].includes(status), `${status} ${answer.text}`);
            const isDone = status < 300;
            return { isDone, results: [{ status, item: isDone && status !== 204 ? answer.json : null }] };
        });
    }

    async batch() {
        const key = this.random.pick(this.keys);
        const ops = Array.from({ length: 1 + this.random.below(5) }, () => this.#operation(key));
        const body = JSON.stringify(ops.map((op) => ({
            ...batchForm({ ...op, operations: patchOf(op) }),
            ...(op.ifMatch && { ifMatch: op.ifMatch }),
        })));
        const send = () =>
            callItems(this.server, this.world.container, { method: "POST", key, headers: ATOMIC, body, agent: this.agent });
        await this.#record(key, "batch", ops, send, ({ status, json, text }) => {
            assert.ok(status === 200 || status === 207, `${status} ${text}`);
            const results = json.map(({ statusCode, resourceBody }) => ({ status: statusCode, item: resourceBody ?? null }));
            if (this.server.isSpread && results.some((result) => result.status === 429)) throw new Refused(text);
            return { isDone: status === 200, results };
        });
    }

    async procedure() {
        const key = this.random.pick(this.keys);
        const ops = Array.from({ length: 1 + this.random.below(3) }, () =>
            this.#operationOf("upsert", key, `i${this.random.below(IDS)}`),
        );
        for (const op of ops) delete op.ifMatch;
        const body = [ops.map((op) => op.body), this.random.chance(40)];
        if (body[1]) ops.push({ kind: "delete", id: ops[0].id, v: `${this.name}.${this.#made++}` });
        const send = () =>
            executeRaw(this.server, this.world.container, this.world.procedureId, { key, body, agent: this.agent });
        await this.#record(key, "procedure", ops, send, ({ status, json, text }) => {
            // A script that had to wait for long may be told to come to an end, and then has written nothing.
            if (status === 400 && text.includes("was not accepted")) return { isDone: false };
            if (status === 400 && text.includes("not served here any more")) throw new Refused(text); // TEMP defect D1
            assert.equal(status, 200, text);
            return { isDone: true, results: ops.map((_, i) => ({ item: json[i] ?? null })) };
        });
    }

    // --- Reading

    async #readItem(key, id) {
        const sent = this.#tokensFor(key);
        const event = { type: "read", session: this.name, key, id, sent, isCurrent: true, invoked: this.history.now() };
        const answer = await attempt(this.server, () =>
            callItems(this.server, this.world.container, { key, id, headers: this.#headers(sent), agent: this.agent }),
        );
        event.completed = this.history.now();
        assert.ok(answer.status === 200 || answer.status === 404, `${answer.status} ${answer.text}`);
        const isRefused = answer.headers["x-ms-substatus"] === "1002";
        event.status = isRefused ? 1002 : answer.status;
        event.item = answer.status === 200 ? answer.json : null;
        this.history.add(event);
        if (isRefused) return;
        if (event.item) this.#remember(event.item);
        await this.#learn(event, answer);
    }

    read = () => this.#readItem(this.random.pick(this.keys), `i${this.random.below(IDS)}`);

    /** An item that the session knows. */
    async readOwn() {
        if (this.#etags.size === 0) return;
        const [key, id] = this.random.pick([...this.#etags.keys()]).split(" ");
        await this.#readItem(key, id);
    }

    /** All pages of something about some keys; `send` is given the headers of a page. */
    async #look(how, keys, sent, send) {
        const event = { type: "look", how, session: this.name, keys, sent, items: [], isCurrent: true };
        event.invoked = this.history.now();
        let token;
        let pages = 0;
        do {
            const headers = { ...this.#headers(sent), ...(token && { "x-ms-continuation": token }) };
            const answer = await attempt(this.server, () => send(headers));
            if (answer.status === 410) {
                await this.world.ranges.refresh(this.server, this.agent);
                return;
            }
            assert.equal(answer.status, 200, `${how} with ${tokenText(sent)}: ${answer.text}`);
            event.items.push(...answer.json.Documents);
            token = answer.headers["x-ms-continuation"];
            pages++;
            event.completed = this.history.now();
            if (!token) {
                event.isSnapshot = pages === 1;
                this.history.add(event);
            }
            await this.#learn(event, answer);
        } while (token);
        for (const item of event.items) this.#remember(item);
        // A read of one item, at once, must not show less than the query did.
        if (event.items.length > 0 && this.random.chance(50)) {
            const newest = event.items.reduce((a, b) => (a._ts > b._ts ? a : b));
            await this.#readItem(newest.pk, newest.id);
        }
    }

    async query() {
        const key = this.random.pick(this.keys);
        const size = this.random.pick([-1, -1, 2]);
        await this.#look("query", [key], this.#tokensFor(key), (headers) =>
            askPage(this.server, this.world.container, "SELECT * FROM c", { key, size, headers, agent: this.agent }),
        );
    }

    async list() {
        const key = this.random.pick(this.keys);
        await this.#look("list", [key], this.#tokensFor(key), (headers) =>
            callItems(this.server, this.world.container, { key, headers, agent: this.agent }),
        );
    }

    /** As SDKs query over several partitions: each range by its id. */
    async queryRange() {
        const { id, minInclusive: min, maxExclusive: max } = this.random.pick(this.world.ranges.ranges);
        const keys = this.history.keysIn({ min, max });
        if (keys.length === 0) return;
        const more = { "x-ms-documentdb-partitionkeyrangeid": id };
        await this.#look("query", keys, this.#tokensFor(keys[0]), (headers) =>
            askPage(this.server, this.world.container, "SELECT * FROM c", {
                size: -1,
                headers: { ...headers, ...more },
                agent: this.agent,
            }),
        );
    }
}

const patchOf = ({ v }) => [
    { op: "set", path: "/v", value: v },
    { op: "incr", path: "/count", value: 1 },
];
