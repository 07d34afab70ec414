// The checker of histories can fail: of a good history, which a small server in memory makes, one thing is changed, and the
// checker says which rule that breaks.
import assert from "node:assert/strict";
import test from "node:test";

import { epkOf } from "./lib/epk.mjs";
import { History } from "./lib/history.mjs";
import { checkHistory } from "./lib/history-check.mjs";

/** A server with one range and no faults, which writes the history of its clients. */
class Tiny {
    history = new History();
    lsn = 1;
    #items = new Map(); // id -> stored
    #log = []; // entries of the feed of all versions
    #made = 0;

    constructor(...keys) {
        for (const key of keys) this.history.keys.set(key, epkOf(key));
        this.history.add({ type: "ranges", ranges: [{ id: "1", parents: ["0"] }] });
    }

    #answered = () => ({ range: "1", lsn: this.lsn });
    #nameOf = (key, id) => `${key} ${id}`;
    #plain = ({ lsn, ...item }) => item;

    #apply(key, op) {
        const name = this.#nameOf(key, op.id);
        const old = this.#items.get(name);
        const metadata = { lsn: this.lsn, crts: 1000 + this.lsn };
        if (old) metadata.previousImageLSN = old.lsn;
        if (op.kind === "delete") {
            this.#items.delete(name);
            Object.assign(metadata, { operationType: "delete", id: op.id, partitionKey: { pk: key } });
            this.#log.push({ current: {}, previous: this.#plain(old), metadata });
            return { status: 204, item: null };
        }
        const content = op.kind === "patch" ? { ...contentOf(old), v: op.v, count: old.count + 1 } : op.body;
        const item = { ...content, _rid: old?._rid ?? `${name} ${this.#made++}`, _etag: `"${this.#made++}"`, _ts: metadata.crts };
        this.#items.delete(name); // in the order of changes
        this.#items.set(name, { ...item, lsn: this.lsn });
        metadata.operationType = old ? "replace" : "create";
        this.#log.push({ current: item, metadata });
        return { status: old ? 200 : 201, item };
    }

    /** Operations are texts such as "create i1"; all together are one transaction. Returns the event. */
    write(session, key, ...texts) {
        const ops = texts.map((text) => {
            const [kind, id] = text.split(" ");
            const v = `${session}.${this.#made++}`;
            const body = { id, pk: key, v, count: 1 };
            return kind === "patch" || kind === "delete" ? { kind, id, v } : { kind, id, v, body };
        });
        const how = ops.length === 1 ? "single" : "batch";
        const event = { type: "write", session, key, how, ops, outcome: "done", status: 200, invoked: this.history.now() };
        this.lsn++;
        event.results = ops.map((op) => this.#apply(key, op));
        return this.history.add({ ...event, ...this.#answered() });
    }

    /** The connection breaks; `isDone`: after the write was done. */
    writeInDoubt(isDone, session, key, ...texts) {
        const saved = [this.lsn, new Map(this.#items), [...this.#log]];
        const event = this.write(session, key, ...texts);
        if (!isDone) [this.lsn, this.#items, this.#log] = saved;
        Object.assign(event, { outcome: "unknown", range: undefined, lsn: undefined, results: undefined, status: undefined });
        return event;
    }

    /** Does what a client has given up before. */
    land({ key, ops }) {
        this.lsn++;
        for (const op of ops) this.#apply(key, op);
    }

    /** A single operation that cannot be done. */
    refuse(session, key, text, status) {
        const [kind, id] = text.split(" ");
        const v = `${session}.${this.#made++}`;
        const op = { kind, id, v, body: { id, pk: key, v, count: 1 } };
        const event = { type: "write", session, key, how: "single", ops: [op], outcome: "refused", status };
        return this.history.add({ ...event, results: [{ status, item: null }], ...this.#answered() });
    }

    read(session, key, id, sent = []) {
        const stored = this.#items.get(this.#nameOf(key, id));
        const event = { type: "read", session, key, id, sent, status: stored ? 200 : 404 };
        return this.history.add({ ...event, item: stored ? this.#plain(stored) : null, ...this.#answered() });
    }

    look(session, key, more = {}) {
        const items = [...this.#items.values()].filter(({ pk }) => pk === key).map(this.#plain);
        const event = { type: "look", how: "query", session, keys: [key], sent: [], items, isSnapshot: true, ...more };
        return this.history.add({ ...event, ...this.#answered() });
    }

    handOver(from, to) {
        this.history.add({ type: "handover", from, to });
    }

    /** A page up to the end, with everything after `from`; `to` ends it earlier. */
    page(follower, mode, from, to = this.lsn) {
        const latest = [...this.#items.values()]
            .sort((a, b) => a.lsn - b.lsn)
            .map(({ lsn, ...item }) => ({ ...item, _lsn: lsn }));
        const source = mode === "all" ? this.#log : latest;
        const lsnOf = (entry) => entry.metadata?.lsn ?? entry._lsn;
        const entries = structuredClone(source.filter((entry) => lsnOf(entry) > from && lsnOf(entry) <= to));
        const status = entries.length > 0 ? 200 : 304;
        const page = { type: "page", follower, mode, scope: { range: "1", min: "", max: "FF" }, from, sent: [], status };
        const answered = { etag: to, count: entries.length, entries, lsnHeader: this.lsn, ...this.#answered() };
        return this.history.add({ ...page, ...answered });
    }

    drained(follower) {
        this.history.add({ type: "drained", follower });
    }
}

const contentOf = ({ id, pk, v, count }) => ({ id, pk, v, count });

/** A good history; what is in it by name, so that cases can change it. */
function story() {
    const tiny = new Tiny("k", "m");
    const made = { tiny, history: tiny.history };
    made.first = tiny.write("a", "k", "create i1");
    made.other = tiny.write("b", "m", "create i1");
    made.pageBefore = tiny.page("all", "all", 1);
    made.latestBefore = tiny.page("latest", "latest", 0);
    made.second = tiny.write("a", "k", "replace i1");
    made.own = tiny.read("a", "k", "i1");
    made.batch = tiny.write("b", "k", "create i2", "patch i1", "create i3");
    made.look = tiny.look("b", "k");
    tiny.handOver("b", "c");
    made.taken = tiny.read("c", "k", "i2");
    made.byToken = tiny.read("d", "k", "i1", [["0", tiny.lsn]]);
    made.page = tiny.page("all", "all", made.pageBefore.etag);
    made.latest = tiny.page("latest", "latest", made.latestBefore.etag);
    made.refused = tiny.refuse("a", "k", "create i1", 409);
    made.removed = tiny.write("a", "k", "delete i3");
    made.gone = tiny.read("a", "k", "i3");
    made.last = tiny.write("b", "k", "patch i2");
    made.again = tiny.read("d", "k", "i2");
    made.againLater = tiny.read("d", "k", "i2");
    made.pageEnd = tiny.page("all", "all", made.page.etag);
    made.latestEnd = tiny.page("latest", "latest", made.latest.etag);
    made.pageNothing = tiny.page("all", "all", made.pageEnd.etag);
    tiny.drained("all");
    tiny.drained("latest");
    made.final = tiny.look("the end", "k", { isCurrent: true });
    return made;
}

function expectRule(history, rule) {
    const violations = checkHistory(history);
    const rules = violations.map((violation) => violation.rule);
    assert.ok(rules.includes(rule), `expected '${rule}', found ${rules.join(", ") || "nothing"}`);
    const { text } = violations.find((violation) => violation.rule === rule);
    assert.match(text, /\n.*(reads|write of|latest of|all of|query of)/, "it shows what happened");
}

const recount = (page) => Object.assign(page, { count: page.entries.length, status: page.entries.length > 0 ? 200 : 304 });

function without(page, index, count = 1) {
    page.entries.splice(index, count);
    recount(page);
}

/** Puts an entry in front of those that a page has. */
function prepend(page, entry) {
    page.entries.unshift(entry);
    recount(page);
}

const absent = (event) => Object.assign(event, { status: 404, item: null });
const remove = (list, ...values) => values.forEach((value) => list.splice(list.indexOf(value), 1));

function swap(list, i, j) {
    [list[i], list[j]] = [list[j], list[i]];
}

/** The versions of an item, as it was answered to its writers. */
const itemOf = (event, index = 0) => event.results[index].item;

test("a good history has no violations", () => {
    assert.deepEqual(checkHistory(story().history), []);
});

const WRONG = [
    // Sessions
    ["a session does not read its own write", "read your writes", ({ own, first }) => (own.item = itemOf(first))],
    ["an item that a session removed is there", "read your writes", ({ gone, batch }) =>
        Object.assign(gone, { status: 200, item: itemOf(batch, 2) })],
    ["a session reads an older version than before", "monotonic reads", ({ againLater, batch }) =>
        (againLater.item = itemOf(batch))],
    ["an item that a session saw is not there", "monotonic reads", ({ againLater }) => absent(againLater)],
    ["a session reads less than the one whose tokens it has", "tokens taken over", ({ taken }) => absent(taken)],
    ["a read shows less than its token demands", "session token", ({ byToken, second }) => (byToken.item = itemOf(second))],
    ["a token of the server is refused", "session not available", ({ own }) => (absent(own).status = 1002)],
    ["a read is answered with a token before its version", "token behind", ({ own, first }) => (own.lsn = first.lsn)],
    ["a write has a smaller LSN than the session's last one", "monotonic writes", ({ removed, second }) =>
        (removed.lsn = second.lsn - 0.5)],
    ["a query shows half of a batch", "never so", ({ look }) => look.items.pop()],
    ["a query shows an item twice", "twice", ({ look }) => look.items.push(look.items[0])],
    ["the end is not the newest state", "current state", ({ final, batch }) =>
        (final.items = final.items.map((item) => (item.id === "i2" ? itemOf(batch) : item)))],
    ["a read shows what nobody wrote", "invented", ({ own }) => (own.item = { ...own.item, v: "x.1" })],
    ["a read shows another content", "content", ({ own }) => (own.item = { ...own.item, count: 99 })],
    ["a read shows another ETag", "content", ({ own }) => (own.item = { ...own.item, _etag: '"x"' })],
    ["a write is refused for no reason", "refusal", ({ refused }) => (refused.results = [{ status: 412, item: null }])],
    ["a write is answered with another status", "answer", ({ second }) => (second.results[0].status = 201)],
    ["a write is answered with another content", "answer", ({ batch }) => (itemOf(batch, 1).count = 7)],

    // LSNs
    ["two writes have one LSN", "LSN twice", ({ second, first }) => (second.lsn = first.lsn)],
    ["two writes to different keys have one LSN", "LSN twice", ({ other, first }) => (other.lsn = first.lsn)],
    ["an LSN was given to nobody", "LSN missing", ({ history, batch }) => remove(history.events, batch)],
    ["a write is before one that was completed earlier", "order of writes", ({ first, second }) => swapLsns(first, second)],

    // The feed of all versions
    ["an acknowledged write is not in the feed", "lost", ({ page }) => without(page, 0)],
    ["the last write is not in the feed", "lost", ({ pageEnd }) => without(pageEnd, 1)],
    ["a whole page is not in the feed", "lost", ({ page }) => without(page, 0, page.entries.length)],
    ["the feed shows an entry again", "repeated", ({ page, pageBefore }) => prepend(page, pageBefore.entries[0])],
    ["the feed shows an entry twice", "half a write", ({ page }) => prepend(page, page.entries[0])],
    ["the feed shows two writes in another order", "order of the feed", ({ pageEnd }) => swap(pageEnd.entries, 0, 1)],
    ["the feed shows a batch in another order", "order of the feed", ({ page }) => swap(page.entries, 1, 2)],
    ["the feed shows half of a batch", "half a write", ({ page }) => without(page, 3)],
    ["the feed shows what was refused", "invented", ({ pageEnd, refused }) => show(pageEnd, refused)],
    ["the feed shows another content", "entry", ({ page }) => (page.entries[0].current.count = 99)],
    ["the feed shows another operation", "entry", ({ page }) => (page.entries[0].metadata.operationType = "create")],
    ["the feed shows another previous LSN", "entry", ({ page }) => (page.entries[0].metadata.previousImageLSN = 1)],
    ["the feed shows another deleted version", "entry", ({ pageEnd }) => (pageEnd.entries[0].previous.count = 99)],
    ["the feed shows a delete without the version", "entry", ({ pageEnd }) => delete pageEnd.entries[0].previous],
    ["two followers are shown different things", "disagreement", ({ tiny }) =>
        (tiny.page("second", "all", 1).entries[0].current.count = 99)],
    ["a key is shown to a follower of another", "scope", ({ page }) => (page.scope = { key: "m" })],

    // The feed of latest versions
    ["the final version of an item is not in the feed", "lost", ({ latestEnd }) => without(latestEnd, 0)],
    ["an item that did not change is not in a page", "lost", ({ latest }) => without(latest, 0)],
    ["the latest versions go back", "goes back", ({ latestEnd, latestBefore }) => prepend(latestEnd, latestBefore.entries[0])],
    ["a latest version was replaced before", "stale entry", ({ latest, latestBefore }) =>
        (latest.entries[0] = latestBefore.entries[0])],
    ["a latest version was deleted before", "stale entry", ({ latestEnd, latest }) => prepend(latestEnd, latest.entries[2])],
    ["latest versions are not in order", "order of a page", ({ latestBefore }) => swap(latestBefore.entries, 0, 1)],
    ["latest versions of a batch are not in order", "goes back", ({ latest }) => swap(latest.entries, 0, 1)],
    ["a latest version has another LSN", "entry", ({ latest }) => (latest.entries[0]._lsn += 0.5)],

    // Pages
    ["an ETag goes back", "ETag goes back", ({ pageNothing }) => Object.assign(pageNothing, { etag: 2, lsn: 2, lsnHeader: 2 })],
    ["at the end, the ETag is not the LSN of the range", "page", ({ pageNothing }) => (pageNothing.lsnHeader += 1)],
    ["a page is empty and does not say 304", "page", ({ pageNothing }) => (pageNothing.status = 200)],
    ["a page is larger than what was asked for", "page", ({ page }) => (page.size = 2)],
    ["a follower goes on from another ETag", "continuation", ({ pageEnd }) => (pageEnd.from -= 1)],
    ["the feed ends before the last write", "not at the end", ({ history, pageEnd, pageNothing }) =>
        remove(history.events, pageEnd, pageNothing)],
    ["a feed ends before the session token of the request", "session token", ({ pageNothing }) =>
        (pageNothing.sent = [["1", pageNothing.etag + 1]])],
];

function swapLsns(one, other) {
    [one.lsn, other.lsn] = [other.lsn, one.lsn];
}

/** Puts an entry for a write into a page, as if it had been done. */
function show(page, { ops: [op] }) {
    const metadata = { lsn: page.etag, crts: 1, operationType: "create" };
    page.entries.push({ current: { ...op.body, _rid: "x", _etag: '"x"', _ts: 1 }, metadata });
    page.etag += 1;
    metadata.lsn = page.etag;
    Object.assign(page, { lsn: page.etag, lsnHeader: page.etag });
    recount(page);
}

for (const [name, rule, change] of WRONG)
    test(`it is noticed if ${name}`, () => {
        const made = story();
        change(made);
        expectRule(made.history, rule);
    });

for (const isSnapshot of [false, true])
    test(`an item that was deleted and made again is ${isSnapshot ? "not " : ""}there twice in ${isSnapshot ? "one page" : "several"}`, () => {
        const tiny = new Tiny("k");
        tiny.write("a", "k", "create i1");
        const invoked = tiny.history.now();
        const before = tiny.look("b", "k");
        tiny.write("a", "k", "delete i1", "create i1");
        const items = [...before.items, ...tiny.look("c", "k").items];
        tiny.look("d", "k", { items, isSnapshot, invoked });
        assert.deepEqual(checkHistory(tiny.history).map(({ rule }) => rule), isSnapshot ? ["twice"] : []);
    });

// --- Writes without an answer

function doubtful(isDone, ...texts) {
    const tiny = new Tiny("k");
    tiny.write("a", "k", "create i1", "create i2");
    const doubt = tiny.writeInDoubt(isDone, "a", "k", ...texts);
    const page = tiny.page("all", "all", 1);
    const latest = tiny.page("latest", "latest", 0);
    return { tiny, history: tiny.history, doubt, page, latest };
}

for (const texts of [["patch i1"], ["delete i1"], ["create i3", "patch i1", "delete i2"]]) {
    for (const isDone of [true, false])
        test(`a write without an answer may have been ${isDone ? "done" : "lost"}: ${texts}`, () => {
            const { tiny, history, page } = doubtful(isDone, ...texts);
            tiny.look("a", "k");
            tiny.write("b", "k", "upsert i1", "upsert i9");
            tiny.page("all", "all", page.etag);
            tiny.drained("all");
            assert.deepEqual(checkHistory(history), []);
        });
}

const DOUBTS = [
    ["half of a write without an answer is in the feed", "half a write", ({ page }) => without(page, page.entries.length - 1)],
    ["a write without an answer was read, and is not in the feed", "invented", ({ tiny, page }) => {
        tiny.read("a", "k", "i1");
        page.entries.splice(2);
        recount(page);
        Object.assign(page, { etag: 2, lsn: 2, lsnHeader: 2 });
    }],
    ["a write without an answer is in the feed of latest versions only", "invented", ({ page }) => {
        page.entries.splice(2);
        recount(page);
    }],
    ["a write without an answer is done after the crash", "order of writes", ({ doubt }) => {
        Object.assign(doubt, { invoked: -2, completed: -1 }); // before the write that has the smaller LSN
    }],
];

for (const [name, rule, change] of DOUBTS)
    test(`it is noticed if ${name}`, () => {
        const made = doubtful(true, "patch i1", "create i3");
        change(made);
        expectRule(made.history, rule);
    });

// --- What one client was told or shown, all must see: requests that are current, at any node of a cluster

const beCurrent = ({ history }) => history.events.forEach((event) => (event.isCurrent = true));

/** Everybody asks for the first time after `b` has written; nobody has a token. */
function strangers() {
    const tiny = new Tiny("k", "m");
    const made = { tiny, history: tiny.history };
    made.first = tiny.write("a", "k", "create i1");
    made.removed = tiny.write("a", "k", "create i2");
    made.latestBefore = tiny.page("latest", "latest", 0);
    made.second = tiny.write("b", "k", "replace i1", "delete i2");
    made.read = tiny.read("c", "k", "i1");
    made.absent = tiny.read("d", "k", "i2");
    made.look = tiny.look("e", "k");
    made.refused = tiny.refuse("f", "k", "create i1", 409);
    made.nothing = Object.assign(tiny.refuse("f", "k", "create i3", 429), { results: undefined, lsn: undefined });
    made.page = tiny.page("all", "all", 1);
    made.end = tiny.page("all", "all", made.page.etag);
    made.latest = tiny.page("latest", "latest", made.latestBefore.etag);
    made.latestEnd = tiny.page("latest", "latest", made.latest.etag);
    made.other = tiny.write("b", "m", "create i1");
    made.otherEnd = tiny.page("other", "all", tiny.lsn);
    beCurrent(tiny);
    return made;
}

/** A write that is done after its client was told that nobody knows; others see it. */
function late(...texts) {
    const tiny = new Tiny("k");
    const made = { tiny, history: tiny.history };
    made.first = tiny.write("a", "k", "create i1", "create i2");
    made.open = Object.assign(tiny.writeInDoubt(false, "a", "k", ...texts), { isOpen: true });
    made.next = tiny.write("b", "k", "create i3");
    made.before = tiny.read("c", "k", "i1");
    made.latestBefore = tiny.page("latest", "latest", 0);
    tiny.land(made.open);
    made.read = tiny.read("d", "k", "i1");
    made.look = tiny.look("e", "k");
    made.again = tiny.read("g", "k", "i1");
    made.page = tiny.page("all", "all", 1);
    made.last = tiny.look("h", "k");
    made.end = tiny.page("all", "all", made.page.etag);
    made.latest = tiny.page("latest", "latest", made.latestBefore.etag);
    made.latestAnew = tiny.page("anew", "latest", 0);
    made.refused = tiny.refuse("f", "k", "create i3", 409);
    beCurrent(tiny);
    return made;
}

/** The feed ends here, and says so. */
const endAt = (page, lsn) => recount(Object.assign(page, { etag: lsn, lsn, lsnHeader: lsn, entries: [] }));

test("what strangers see is good", () => assert.deepEqual(checkHistory(strangers().history), []));

for (const texts of [["patch i1"], ["delete i1"], ["create i4", "patch i1", "delete i2"]])
    test(`a write may be done after its client has given up: ${texts}`, () =>
        assert.deepEqual(checkHistory(late(...texts).history), []));

const STALE = [
    ["a session reads less than another was told", "current state", strangers, ({ read, first }) => (read.item = itemOf(first))],
    ["a session reads what another has removed", "current state", strangers, ({ absent: read, removed }) =>
        Object.assign(read, { status: 200, item: itemOf(removed) })],
    ["a session queries less than another was told", "current state", strangers, ({ look, first, removed }) =>
        (look.items = [itemOf(first), itemOf(removed)])],
    ["a query of several pages has less than another was told", "current state", strangers, ({ look, first }) =>
        Object.assign(look, { items: [itemOf(first)], isSnapshot: false })],
    ["a write is refused because of what another has removed", "refusal", strangers, ({ refused }) =>
        (refused.ops[0].id = "i2")],
    ["a page that is the end lacks a write that was acknowledged", "current state", strangers, ({ page, end }) => {
        without(page, 2, 2);
        page.etag -= 1;
        Object.assign(endAt(end, page.etag), { from: page.etag });
    }],
    ["a page of latest versions that is the end lacks a write", "current state", strangers, ({ history, latest, latestEnd }) => {
        remove(history.events, latest);
        Object.assign(endAt(latestEnd, latest.from), { from: latest.from });
    }],
    ["a follower begins before what was acknowledged, and not now", "current state", strangers, ({ otherEnd }) =>
        Object.assign(endAt(otherEnd, otherEnd.etag - 1), { from: "*" })],
    ["a follower is shown what was refused", "invented", strangers, ({ otherEnd, nothing }) => {
        show(otherEnd, nothing);
        otherEnd.from -= 1;
    }],
    ["a session reads what was refused", "invented", strangers, ({ read, nothing }) =>
        (read.item = { ...read.item, ...nothing.ops[0].body })],

    ["a session reads less than another", "current state", late, ({ history, again, look, first }) => {
        remove(history.events, look);
        again.item = itemOf(first);
    }],
    ["a session reads less than another has queried", "current state", late, ({ history, again, read, first }) => {
        remove(history.events, read);
        again.item = itemOf(first);
    }],
    ["a session queries less than a follower was shown", "current state", late, ({ history, last, read, look, again, first }) => {
        remove(history.events, read, look, again);
        last.items = last.items.map((item) => (item.id === "i1" ? itemOf(first) : item));
    }],
    ["a follower ends before what another was shown", "current state", late, ({ tiny, page }) =>
        Object.assign(endAt(tiny.page("second", "all", 1), page.etag - 1), { from: page.etag - 1, isCurrent: true })],
    ["a follower is shown what another has seen replaced", "stale entry", late, ({ latestAnew, latestBefore }) =>
        (latestAnew.entries = [...latestBefore.entries])],
    ["a write is refused because of what a follower saw removed", "refusal", () => late("delete i1"), ({ refused }) =>
        (refused.ops[0].id = "i1")],
    ["a write that is over is done late", "order of writes", late, ({ open }) => delete open.isOpen],
];

for (const [name, rule, build, change] of STALE)
    test(`it is noticed if ${name}`, () => {
        const made = build("patch i1");
        change(made);
        expectRule(made.history, rule);
    });
