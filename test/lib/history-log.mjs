// history-log.mjs - the order of the writes to one logical partition, as a history proves it.
//
// An acknowledged write is told its LSN, and LSNs of a logical partition never go back, whatever is split or merged. So
// LSNs order the writes. A write whose connection broke may have been done: then the feed of all versions shows it, as a
// whole, with its LSN. Once the order is known, the writes are done again in a table, which tells what each write must have
// been answered with and what each version is.
import { isDeepStrictEqual } from "node:util";

import { contentOf } from "./items.mjs";
import { describeEntry, idOf, isDelete, itemOf, keyOf, lsnOf } from "./history.mjs";

/** How an operation ends on an item, `old`, or undefined: its status, and the content if it writes one. */
function outcomeOf(old, { kind, body, v, ifMatch }) {
    if (kind === "create") return old ? { status: 409 } : { status: 201, content: body };
    if (kind === "upsert" && !old) return { status: 201, content: body };
    if (!old) return { status: 404 };
    if (ifMatch && ifMatch !== old.etag) return { status: 412 };
    if (kind === "delete") return { status: 204 };
    if (kind === "patch") return { status: 200, content: { ...old.content, v, count: old.content.count + 1 } };
    return { status: 200, content: body };
}

const kindOf = (old, content) => (content === undefined ? "delete" : old ? "replace" : "create");

/**
 * Does the operations of one write to a table of items (id -> version), which is not changed. All or nothing: the
 * versions are those of a write that succeeded. The statuses are as an answer has them.
 */
export function replay(state, event) {
    const changed = new Map();
    const versions = [];
    for (const [index, op] of event.ops.entries()) {
        const old = changed.has(op.id) ? changed.get(op.id) : state.get(op.id);
        const { status, content } = outcomeOf(old, op);
        if (status >= 400) {
            const statuses = event.ops.map((_, i) => (i === index ? status : 424));
            return { versions: [], statuses: event.how === "single" ? [status] : statuses };
        }
        const version = { id: op.id, op, index, kind: kindOf(old, content), content, previous: old, event, status };
        versions.push(version);
        changed.set(op.id, content === undefined ? undefined : version);
    }
    return { versions, statuses: versions.map(({ status }) => status) };
}

/** When it was over. What a node was asked may be done by another one, after the client has given up. */
export const endOf = ({ isOpen, completed }) => (isOpen ? Infinity : completed);

/** How many of a list in the order of LSNs have one of at most `lsn`. */
function countUpTo(list, lsn) {
    let [low, high] = [0, list.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (list[middle].lsn <= lsn) low = middle + 1;
        else high = middle;
    }
    return low;
}

/** The writes to one logical partition, in order. */
export class Log {
    transactions = []; // { lsn, event, versions }, in order
    byText = new Map(); // v -> version; without deletes
    #items = new Map(); // id -> its versions that others can see: the last one of each transaction

    constructor(key) {
        this.key = key;
    }

    get lastLsn() {
        return this.transactions.at(-1)?.lsn ?? 0;
    }

    versionsOf(id) {
        return this.#items.get(id) ?? [];
    }

    get ids() {
        return [...this.#items.keys()];
    }

    /** The transactions with `after` < LSN <= `to`. */
    between(after, to) {
        return this.transactions.slice(countUpTo(this.transactions, after), countUpTo(this.transactions, to));
    }

    /** The largest LSN that a request which was completed then can have seen. */
    newestBefore(completed) {
        const found = this.transactions.findLast(({ event }) => event.invoked < completed);
        return found?.lsn ?? 0;
    }

    /** The smallest LSN that a request which was invoked then had to see, if nothing may lag behind. */
    settledBefore(invoked) {
        const found = this.transactions.findLast(({ event }) => endOf(event) < invoked);
        return found?.lsn ?? 0;
    }

    /** The version of an item as of an LSN; undefined if there is none. */
    versionAt(id, lsn) {
        const versions = this.versionsOf(id);
        const version = versions[countUpTo(versions, lsn) - 1];
        return version?.kind === "delete" ? undefined : version;
    }

    /** All items as of an LSN: id -> version. */
    stateAt(lsn) {
        const state = new Map();
        for (const id of this.ids) {
            const version = this.versionAt(id, lsn);
            if (version) state.set(id, version);
        }
        return state;
    }

    add(lsn, event, versions) {
        this.transactions.push({ lsn, event, versions });
        for (const version of versions) {
            version.lsn = lsn;
            if (version.kind !== "delete") this.byText.set(version.content.v, version);
            const list = this.#items.get(version.id) ?? [];
            if (list.at(-1)?.lsn === lsn) list.pop();
            if (list.length > 0) list.at(-1).next = version;
            list.push(version);
            this.#items.set(version.id, list);
        }
    }
}

/** Why an item that was shown is not the version; null if it is. */
export function differenceOf(version, item) {
    if (!isDeepStrictEqual(contentOf(item), version.content))
        return `it is ${JSON.stringify(contentOf(item))} instead of ${JSON.stringify(version.content)}`;
    for (const [name, own] of [["_etag", "etag"], ["_ts", "ts"], ["_rid", "rid"]]) {
        version[own] ??= item[name]; // nobody was told it before
        if (item[name] !== version[own]) return `its ${name} is ${item[name]} instead of ${version[own]}`;
    }
    return null;
}

/** Why an entry of the feed of all versions does not show the version; null if it does. */
export function entryDifference(version, entry) {
    const { metadata, previous } = entry;
    if (idOf(entry) !== version.id) return `the item is ${idOf(entry)} instead of ${version.id}`;
    if (metadata.operationType !== version.kind)
        return `the operation is ${metadata.operationType} instead of ${version.kind}`;
    if (version.kind !== "delete" && itemOf(entry)?.v !== version.content.v)
        return `the version is '${itemOf(entry)?.v}' instead of '${version.content.v}'`;
    const before = version.previous?.lsn ?? version.lsn;
    const expected = version.kind === "create" ? undefined : before;
    if ((metadata.previousImageLSN || undefined) !== expected)
        return `the previous LSN is ${metadata.previousImageLSN} instead of ${expected}`;
    if (version.kind === "delete") {
        if (Object.keys(entry.current ?? { none: 1 }).length > 0) return "a delete has content";
        const other = previous ? differenceOf(version.previous, previous) : "there is none";
        return other && `the deleted version: ${other}`;
    }
    if (previous !== undefined) return "there is a previous version";
    const other = differenceOf(version, entry.current);
    return other ?? (metadata.crts === version.ts ? null : `crts is ${metadata.crts} instead of ${version.ts}`);
}

/** Builds the logs of all keys; `fail(rule, key, event, text, id)` is told what is wrong with them. */
export class LogBuilder {
    #logs = new Map();
    #shown = new Map(); // key -> LSN -> { entries, page }
    #done = new Map(); // key -> LSN -> event
    #doubts = new Map(); // key -> events

    constructor(history, fail) {
        this.history = history;
        this.fail = fail;
        for (const key of history.keys.keys())
            for (const map of [this.#shown, this.#done]) map.set(key, new Map());
        for (const event of history.events) {
            if (event.type === "write") this.#takeWrite(event);
            if (event.type === "page" && event.mode === "all") this.#takePage(event);
        }
    }

    build() {
        for (const key of this.history.keys.keys()) this.#logs.set(key, this.#buildLog(key));
        this.#checkNumbers();
        return this.#logs;
    }

    #takeWrite(event) {
        if (event.outcome === "unknown") {
            this.#doubts.set(event.key, [...(this.#doubts.get(event.key) ?? []), event]);
        } else if (event.outcome === "done") {
            const done = this.#done.get(event.key);
            if (done.has(event.lsn)) this.fail("LSN twice", event.key, event, `another write has LSN ${event.lsn}, too`);
            done.set(event.lsn, event);
        }
    }

    #takePage(page) {
        const groups = new Map();
        for (const entry of page.entries) {
            const name = JSON.stringify([keyOf(entry), lsnOf(entry)]);
            groups.set(name, [...(groups.get(name) ?? []), entry]);
        }
        for (const [name, entries] of groups) {
            const [key, lsn] = JSON.parse(name);
            const shown = this.#shown.get(key);
            if (!shown) {
                this.fail("invented", key, page, `nobody writes to this key: ${entries.map(describeEntry)}`);
                continue;
            }
            const other = shown.get(lsn);
            if (!other) shown.set(lsn, { entries, page });
            else if (!isDeepStrictEqual(other.entries, entries)) {
                const theirs = `${other.page.follower} was shown ${other.entries.map(describeEntry)}`;
                this.fail("disagreement", key, page, `LSN ${lsn} is ${entries.map(describeEntry)}; ${theirs}`);
            }
        }
    }

    #buildLog(key) {
        const log = new Log(key);
        const state = new Map();
        const done = this.#done.get(key);
        const shown = this.#shown.get(key);
        const lsns = [...new Set([...done.keys(), ...shown.keys()])].sort((a, b) => a - b);
        let invoked = 0;
        for (const lsn of lsns) {
            const event = done.get(lsn) ?? this.#findDoubt(log, state, shown.get(lsn), lsn);
            if (!event) continue;
            if (endOf(event) < invoked)
                this.fail("order of writes", key, event, `LSN ${lsn} is after one whose write began later`);
            invoked = Math.max(invoked, event.invoked);
            const { versions, statuses } = replay(state, event);
            this.#checkAnswer(event, versions, statuses);
            log.add(lsn, event, versions);
            for (const version of versions) {
                if (version.kind === "delete") state.delete(version.id);
                else state.set(version.id, version);
            }
            if (shown.has(lsn)) this.#checkShown(key, shown.get(lsn), versions, lsn);
        }
        return log;
    }

    /** Versions learn their ETags from the answers. */
    #checkAnswer(event, versions, statuses) {
        if (event.outcome !== "done") return;
        const given = event.results.map(({ status }, i) => status ?? statuses[i]);
        if (!isDeepStrictEqual(given, statuses))
            this.fail("answer", event.key, event, `${given} instead of ${statuses}, in the order of LSNs`, idIn(event));
        for (const [i, version] of versions.entries()) {
            const { item } = event.results[i];
            const other = item && version.content && differenceOf(version, item);
            if (other) this.fail("answer", event.key, event, `${version.id}: ${other}`, version.id);
        }
    }

    #checkShown(key, { entries, page }, versions, lsn) {
        if (entries.length !== versions.length)
            this.fail("half a write", key, page, `LSN ${lsn} has ${entries.length} entries of ${versions.length}`);
        for (const [i, entry] of entries.slice(0, versions.length).entries()) {
            const other = entryDifference(versions[i], entry);
            if (other) this.fail("entry", key, page, `${describeEntry(entry)}: ${other}`, versions[i].id);
        }
    }

    /** The write without an answer that these entries show. */
    #findDoubt(log, state, { entries, page }, lsn) {
        const doubts = this.#doubts.get(log.key) ?? [];
        const texts = new Set(entries.map((entry) => itemOf(entry)?.v).filter(Boolean));
        const own = doubts.find(({ ops }) => ops.some(({ v, kind }) => kind !== "delete" && texts.has(v)));
        const fits = (event) => {
            const { versions } = replay(state, event);
            return versions.length === entries.length && versions.every((version, i) => isShown(version, entries[i]));
        };
        const found = own ?? doubts.find((event) => this.#isPossible(log, event, lsn) && fits(event));
        const text = entries.map(describeEntry).join(", ");
        if (!found) this.fail("invented", log.key, page, `nobody has written ${text}`);
        else if (!fits(found)) this.fail("half a write", log.key, page, `${text} is not all of ${describeOps(found)}`);
        else {
            this.#doubts.set(log.key, doubts.filter((event) => event !== found));
            return found;
        }
        return undefined;
    }

    /** Deletes have no text of their own: what tells them apart is when they were. */
    #isPossible(log, event, lsn) {
        const before = log.transactions.at(-1)?.event;
        const next = [...this.#done.get(log.key).keys()].filter((one) => one > lsn);
        const after = this.#done.get(log.key).get(Math.min(...next));
        return (!before || before.invoked < endOf(event)) && (!after || event.invoked < after.completed);
    }

    /** The LSNs of a range are given out one after the other, each once. */
    #checkNumbers() {
        const byRange = new Map();
        const unknown = new Set(); // of writes whose range nobody was told
        for (const log of this.#logs.values()) {
            for (const { lsn, event } of log.transactions) {
                if (event.range === undefined) {
                    unknown.add(lsn);
                    continue;
                }
                const events = byRange.get(event.range) ?? new Map();
                const other = events.get(lsn);
                if (other) this.fail("LSN twice", log.key, event, `'${other.key}' has LSN ${lsn} of range ${event.range}, too`);
                events.set(lsn, event);
                byRange.set(event.range, events);
            }
        }
        for (const [range, events] of byRange) {
            const lsns = [...events.keys()].sort((a, b) => a - b);
            for (let i = 1; i < lsns.length; i++)
                for (let lsn = lsns[i - 1] + 1; lsn < lsns[i]; lsn++)
                    if (!unknown.has(lsn)) {
                        const event = events.get(lsns[i]);
                        this.fail("LSN missing", event.key, event, `no write has LSN ${lsn} of range ${range}`);
                        lsn = lsns[i];
                    }
        }
    }
}

/** The item that a write is about, if it is one. */
const idIn = ({ ops }) => (ops.length === 1 ? ops[0].id : undefined);

const describeOps = ({ ops }) => ops.map(({ kind, id, v }) => `${kind} ${id} '${v}'`).join(", ");

function isShown(version, entry) {
    if (isDelete(entry) !== (version.kind === "delete") || idOf(entry) !== version.id) return false;
    return isDelete(entry) || itemOf(entry).v === version.content.v;
}
