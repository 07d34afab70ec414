// followers.mjs - clients by hand that follow a change feed over splits, merges and crashes, and record each page
// (history.mjs).
//
// A follower has cursors, each an interval of hashes and the ETag of the last page that it was answered with. A cursor whose
// range is gone (410, sub-status 1002) becomes one for each range that now has a part of its interval, all with its ETag. One
// whose range is larger, after a merge, says which interval it wants. That is what SDKs do.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import { setTimeout as wait } from "node:timers/promises";

import { parseToken, tokenText } from "./history.mjs";
import { callItems } from "./items.mjs";
import { Gone, attempt, whileSpread } from "./sessions.mjs";

const MODES = { latest: "Incremental Feed", all: "Full-Fidelity Feed" };
const WIRE = { "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15" };
const SIZES = [undefined, -1, 1, 2, 3, 7, 20, 100];
const PAUSE_MS = 30; // at most, between two pages

export class Follower {
    tokens = new Map();
    pages = 0;
    entries = 0;
    gone = 0;

    /**
     * `mode`: "latest" or "all". `from`: an LSN, 0 for the beginning, "*" for now. `key`: this key only, asked for by name;
     * `interval`: these hashes only; otherwise everything.
     */
    constructor(name, world, random, { mode, from, key, interval = ["", "FF"] }) {
        Object.assign(this, { name, world, random, mode, history: world.history });
        const [min, max] = interval;
        this.cursors = [{ key, min, max, etag: from, isAtEnd: false }];
        this.isWrapped = mode === "all" || random.chance(50);
        this.sendsTokens = random.chance(50);
    }

    /** Reads on until `isOver` or the server is gone. */
    async follow(server, isOver) {
        await this.#run(server, async () => {
            while (!isOver()) {
                await whileSpread(server, () => this.#poll(this.random.pick(this.cursors)));
                await wait(this.random.below(PAUSE_MS));
            }
        });
    }

    /** Reads on to the end, which must not move meanwhile. */
    async drain(server) {
        await this.#run(server, async () => {
            for (const cursor of this.cursors) cursor.isAtEnd = false;
            for (let next; (next = this.cursors.find(({ isAtEnd }) => !isAtEnd)); )
                await whileSpread(server, () => this.#poll(next));
            this.history.add({ type: "drained", follower: this.name });
        });
    }

    async #run(server, work) {
        this.server = server;
        this.agent = new Agent({ keepAlive: true });
        try {
            await work();
        } catch (error) {
            if (!(error instanceof Gone)) throw error;
        } finally {
            this.agent.destroy();
        }
    }

    /** Puts one cursor for each range into the place of this one. */
    #divide(cursor, ranges) {
        const parts = ranges.map(({ minInclusive, maxExclusive }) => ({
            ...cursor,
            min: minInclusive > cursor.min ? minInclusive : cursor.min,
            max: maxExclusive < cursor.max ? maxExclusive : cursor.max,
        }));
        this.cursors.splice(this.cursors.indexOf(cursor), 1, ...parts);
    }

    async #poll(cursor) {
        if (cursor.key !== undefined) {
            await this.#ask(cursor, { key: cursor.key }, {});
            return;
        }
        const ranges = this.world.ranges.overlapping(cursor.min, cursor.max);
        if (ranges.length > 1) {
            this.#divide(cursor, ranges);
            return;
        }
        const [{ id, minInclusive, maxExclusive }] = ranges;
        const isWhole = minInclusive === cursor.min && maxExclusive === cursor.max;
        await this.#ask(cursor, { range: id, min: cursor.min, max: cursor.max }, {
            "x-ms-documentdb-partitionkeyrangeid": id,
            ...(!isWhole && {
                "x-ms-start-epk": cursor.min,
                "x-ms-end-epk": cursor.max,
                "x-ms-read-key-type": "EffectivePartitionKeyRange",
            }),
        });
    }

    async #ask(cursor, scope, headers) {
        const { etag: from } = cursor;
        const size = this.random.pick(SIZES);
        const sent = this.sendsTokens ? [...this.tokens] : [];
        const page = { type: "page", follower: this.name, mode: this.mode, scope, from, sent, size, isCurrent: true };
        const level = this.world.levels && this.random.pick(this.world.levels);
        page.invoked = this.history.now();
        const answer = await attempt(this.server, () =>
            callItems(this.server, this.world.container, {
                key: scope.key,
                agent: this.agent,
                headers: {
                    "a-im": MODES[this.mode],
                    ...(this.isWrapped && WIRE),
                    ...(from !== 0 && { "if-none-match": from === "*" ? "*" : `"${from}"` }),
                    ...(size !== undefined && { "x-ms-max-item-count": String(size) }),
                    ...(sent.length > 0 && { "x-ms-session-token": tokenText(sent) }),
                    ...(level && { "x-ms-consistency-level": level }),
                    ...headers,
                },
            }),
        );
        page.completed = this.history.now();
        if (answer.status === 410) {
            assert.match(answer.headers["x-ms-substatus"], /^100[27]$/, answer.text);
            this.gone++;
            await this.world.ranges.refresh(this.server, this.agent);
            return;
        }
        this.#record(cursor, page, answer);
    }

    #record(cursor, page, answer) {
        const { status, headers } = answer;
        const isRefused = status === 404 && headers["x-ms-substatus"] === "1002";
        assert.ok(status === 200 || status === 304 || isRefused, `${this.name} after ${page.from}: ${status} ${answer.text}`);
        page.status = isRefused ? 1002 : status;
        page.entries = [];
        this.pages++;
        if (!isRefused) {
            assert.match(headers.etag, /^"\d+"$/);
            page.etag = Number(headers.etag.slice(1, -1));
            page.count = Number(headers["x-ms-item-count"]);
            page.lsnHeader = Number(headers.lsn);
            page.entries = status === 200 ? answer.json.Documents.map((entry) => this.history.intern(entry)) : [];
            const pairs = parseToken(headers["x-ms-session-token"]);
            assert.equal(pairs.length, 1, headers["x-ms-session-token"]);
            [[page.range, page.lsn]] = pairs;
            this.tokens.set(page.range, Math.max(page.lsn, this.tokens.get(page.range) ?? 0));
            cursor.etag = page.etag;
            this.entries += page.entries.length;
        }
        cursor.isAtEnd = status !== 200;
        this.history.add(page);
    }
}
