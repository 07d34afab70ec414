// history-check.mjs - whether a history (history.mjs) keeps what sessions and change feeds promise.
//
// history-log.mjs finds the order of all writes to a logical partition. Everything else is compared with it:
//
// - A session has, for each key, an LSN that it has seen at least (its floor): of its own writes, of versions that it
//   read, of those that a session had whose tokens it took over. What a read shows must be the state as of some LSN from
//   the floor on. The session token of the request is another floor, even if the session itself has seen less. So is, if
//   the event is current, everything that was acknowledged to anybody, or seen by anybody, before the request. So it is for
//   a write that is refused.
// - A page of the feed of all versions shows exactly the writes after the LSN that it continues from, up to its ETag. A
//   page that is the end, and current, has all that a read would have to show.
// - A page of the feed of latest versions shows items in order, each as it was at some time during the request, and none is
//   missing that did not change meanwhile.
// - All pages of a follower together, key by key: what was shown is one unbroken piece of the log, or, in the feed of
//   latest versions, goes forward; a follower that has read everything has come to the end.
//
// A violation is { rule, text }, where the text has the slice of the history that shows it.
import { describeEntry, isDelete, itemOf, keyOf, lsnOf } from "./history.mjs";
import { LogBuilder, differenceOf, replay } from "./history-log.mjs";

const VIOLATIONS_MAX = 50; // one fault is usually seen by many

export function checkHistory(history) {
    const violations = [];
    const fail = (rule, key, event, text, id = undefined) => {
        if (violations.length >= VIOLATIONS_MAX) return;
        const slice = history.slice(key, event, id);
        violations.push({ rule, text: `${rule}: key '${key}' at ${event.completed}: ${text}\n${slice}` });
    };
    const logs = new LogBuilder(history, fail).build();
    const ancestors = ancestorsOf(history);
    const known = new Known(history, logs);
    new SessionChecker(history, logs, ancestors, known, fail).check();
    new FeedChecker(history, logs, ancestors, known, fail).check();
    return violations;
}

/** Which ranges each range came from, as far as any list of ranges has told. */
function ancestorsOf(history) {
    const parents = new Map();
    for (const event of history.events) {
        if (event.type !== "ranges") continue;
        for (const range of event.ranges) parents.set(range.id, range.parents ?? []);
    }
    const find = (id, found = new Set()) => {
        if (found.has(id)) return found;
        found.add(id);
        for (const parent of parents.get(id) ?? []) find(parent, found);
        return found;
    };
    return (id) => find(id);
}

/** What the session token of a request demands of the range that served it. */
function demandOf({ sent = [], range }, ancestors) {
    const own = ancestors(range);
    return Math.max(0, ...sent.filter(([id]) => own.has(id)).map(([, lsn]) => lsn));
}

/** What anybody knew of a key at some time: the largest LSN that was acknowledged or shown to a client. */
class Known {
    #seen = new Map(); // key -> { completed, lsn } in both orders

    constructor(history, logs) {
        this.logs = logs;
        for (const key of logs.keys()) this.#seen.set(key, []);
        for (const event of history.events) {
            if (event.type === "page") for (const entry of event.entries) this.#see(event, keyOf(entry), lsnOf(entry));
            const items = event.type === "look" ? event.items : event.item ? [event.item] : [];
            for (const { pk, v } of items) this.#see(event, pk, logs.get(pk)?.byText.get(v)?.lsn);
        }
    }

    #see({ completed }, key, lsn) {
        const seen = this.#seen.get(key); // of a key that nobody writes to there is none
        if (seen && lsn > (seen.at(-1)?.lsn ?? 0)) seen.push({ completed, lsn });
    }

    /** Before a request was sent. */
    before(invoked, key) {
        const seen = this.#seen.get(key).findLast(({ completed }) => completed < invoked);
        return Math.max(seen?.lsn ?? 0, this.logs.get(key).settledBefore(invoked));
    }
}

// --- Sessions

class SessionChecker {
    #floors = new Map(); // session -> key -> { lsn, rule }

    constructor(history, logs, ancestors, known, fail) {
        Object.assign(this, { history, logs, ancestors, known, fail });
    }

    check() {
        for (const event of this.history.events) {
            if (event.type === "write") this.#checkWrite(event);
            if (event.type === "read") this.#checkRead(event);
            if (event.type === "look") for (const key of event.keys) this.#checkLook(event, key);
            if (event.type === "handover") this.#handOver(event);
        }
    }

    #floorsOf(session) {
        if (!this.#floors.has(session)) this.#floors.set(session, new Map());
        return this.#floors.get(session);
    }

    #floorOf = (session, key) => this.#floorsOf(session).get(key) ?? { lsn: 0, rule: "" };

    #raise(session, key, lsn, rule) {
        if (lsn > this.#floorOf(session, key).lsn) this.#floorsOf(session).set(key, { lsn, rule });
    }

    #handOver({ from, to }) {
        for (const [key, { lsn }] of this.#floorsOf(from)) this.#raise(to, key, lsn, "tokens taken over");
    }

    #checkWrite(event) {
        const { session, key, lsn } = event;
        if (event.outcome === "done") {
            const floor = this.#floorOf(session, key);
            if (lsn <= floor.lsn)
                this.fail("monotonic writes", key, event, `LSN ${lsn} is not after ${floor.lsn}, which the session has seen`);
            this.#raise(session, key, lsn, "read your writes");
        } else if (event.outcome === "refused") this.#checkRefusal(event);
    }

    /** A write that was refused had a reason, in a state that was current while it ran. */
    #checkRefusal(event) {
        if (!event.results) return; // a procedure that gave up
        const log = this.logs.get(event.key);
        const from = Math.max(this.known.before(event.invoked, event.key), this.#floorOf(event.session, event.key).lsn);
        const statuses = JSON.stringify(event.results.map(({ status }) => status));
        const isReason = (lsn) => JSON.stringify(replay(log.stateAt(lsn), event).statuses) === statuses;
        if (this.#search(log, from, event.completed, isReason) === undefined)
            this.fail("refusal", event.key, event, `no state since LSN ${from} gives ${statuses}`);
    }

    /** The first LSN from `from` on, of what can have been seen then, for which the condition holds. */
    #search(log, from, completed, condition) {
        if (condition(from)) return from;
        const found = log.between(from, log.newestBefore(completed)).find(({ lsn }) => condition(lsn));
        return found?.lsn;
    }

    /** The least LSN that the request may be answered from, and which rule says so. */
    #bound(event, key) {
        const floor = this.#floorOf(event.session, key);
        const demands = [{ lsn: demandOf(event, this.ancestors), rule: "session token" }];
        if (event.isCurrent) demands.push({ lsn: this.known.before(event.invoked, key), rule: "current state" });
        return demands.reduce((most, one) => (one.lsn > most.lsn ? one : most), floor);
    }

    /** The version that an item is; it must be exactly that. */
    #versionOf(event, item) {
        const version = this.logs.get(item.pk)?.byText.get(item.v);
        if (!version || version.id !== item.id) {
            this.fail("invented", item.pk, event, `${item.id} '${item.v}' was read, and is not in the log`, item.id);
            return undefined;
        }
        const other = differenceOf(version, item);
        if (other) this.fail("content", item.pk, event, `${item.id} '${item.v}': ${other}`, item.id);
        if (event.lsn < version.lsn)
            this.fail("token behind", item.pk, event, `the answer's token is before LSN ${version.lsn} of '${item.v}'`);
        return version;
    }

    #checkRead(event) {
        const { key, id, item, session } = event;
        if (event.status === 1002) {
            this.fail("session not available", key, event, "a token that the server gave out is refused");
            return;
        }
        const log = this.logs.get(key);
        const version = item ? this.#versionOf(event, item) : undefined;
        if (item && !version) return;
        const isSo = (lsn) => log.versionAt(id, lsn) === version;
        this.#conclude(event, key, `${id} ${item ? `'${item.v}'` : "absent"}`, isSo, this.#bound(event, key), id);
        if (version) this.#raise(session, key, version.lsn, "monotonic reads");
    }

    /** All items of a key. In one page, they are the state of one moment; no batch is there by half. */
    #checkLook(event, key) {
        const log = this.logs.get(key);
        const items = event.items.filter(({ pk }) => pk === key);
        const versions = items.map((item) => this.#versionOf(event, item));
        if (versions.includes(undefined)) return;
        const seen = new Map(versions.map((version) => [version.id, version]));
        // One that was deleted and made again between two pages is another item with the same id.
        const isSame = (one, other) => one.id === other.id && (event.isSnapshot || one._rid === other._rid);
        if (items.some((item, i) => items.findIndex((other) => isSame(item, other)) < i))
            this.fail("twice", key, event, "an item is there twice");
        if (event.isSnapshot) {
            const isState = (lsn) => {
                const state = log.stateAt(lsn);
                return state.size === seen.size && [...state].every(([id, version]) => seen.get(id) === version);
            };
            this.#conclude(event, key, `the ${seen.size} items`, isState);
        } else {
            // Each page is of another moment, but none of one before the request.
            const bound = this.#bound(event, key);
            for (const id of new Set([...log.ids, ...seen.keys()]))
                this.#conclude(event, key, id, (lsn) => log.versionAt(id, lsn) === seen.get(id), bound, id);
        }
        for (const version of versions) this.#raise(event.session, key, version.lsn, "monotonic reads");
    }

    /** What was seen must have been so at some LSN from the bound on, and is now the session's floor. */
    #conclude(event, key, what, condition, bound = this.#bound(event, key), id = undefined) {
        const log = this.logs.get(key);
        const lsn = this.#search(log, bound.lsn, event.completed, condition);
        if (lsn !== undefined) {
            this.#raise(event.session, key, lsn, "monotonic reads");
            return;
        }
        const isStale = this.#search(log, 0, event.completed, condition) !== undefined;
        const rule = isStale ? bound.rule : "never so";
        const text = isStale ? `is older than LSN ${bound.lsn}` : "was at no time so";
        this.fail(rule, key, event, `${what} ${text}`, id);
    }
}

// --- Change feeds

const isIn = ({ key, min, max }, epk, name) => (key === undefined ? min <= epk && epk < max : key === name);
const fromOf = (page) => (page.from === "*" ? page.etag : page.from);

class FeedChecker {
    #followers = new Map(); // name -> { mode, pages, isDrained }

    constructor(history, logs, ancestors, known, fail) {
        Object.assign(this, { history, logs, ancestors, known, fail });
    }

    check() {
        for (const event of this.history.events) {
            if (event.type === "page") this.#take(event);
            if (event.type === "drained") this.#followers.get(event.follower).isDrained = true;
        }
        for (const follower of this.#followers.values()) {
            for (const page of follower.pages) this.#checkPage(page);
            for (const key of this.logs.keys()) this.#checkKey(follower, key);
        }
    }

    #take(page) {
        const follower = this.#followers.get(page.follower) ?? { mode: page.mode, pages: [], isDrained: false };
        follower.pages.push(page);
        this.#followers.set(page.follower, follower);
    }

    #checkPage(page) {
        const [first] = this.history.keysIn(page.scope);
        const key = page.entries.length > 0 ? keyOf(page.entries[0]) : first;
        const fail = (rule, text) => this.fail(rule, key, page, text);
        const { entries, from, etag, size } = page;
        if (page.status === 1002) {
            fail("session not available", "a token that the server gave out is refused");
            return;
        }
        if ((page.status === 200) !== entries.length > 0) fail("page", `${page.status} with ${entries.length} entries`);
        if (page.count !== entries.length) fail("page", `x-ms-item-count is ${page.count} for ${entries.length} entries`);
        if (page.status === 304 && (etag !== page.lsn || etag !== page.lsnHeader))
            fail("page", `at the end, ETag ${etag}, session token ${page.lsn} and lsn ${page.lsnHeader} differ`);
        if (page.lsn < etag) fail("page", `the session token is before ETag ${etag}`);
        if (from === "*" && entries.length > 0) fail("page", "from now on, there are entries");
        if (etag < fromOf(page)) fail("ETag goes back", `from ${from} to ${etag}`);
        if (page.status === 200 && etag === from) fail("page", "the ETag did not change");
        const demanded = demandOf(page, this.ancestors);
        if (page.status === 304 && etag < demanded) fail("session token", `ends at ${etag}, before ${demanded}`);
        const transactions = new Set(entries.map(lsnOf)).size;
        if (size > 0 && entries.length > size && transactions > 1) fail("page", `${entries.length} entries of ${size}`);
        this.#checkEntries(page);
        for (const name of this.history.keysIn(page.scope)) {
            if (page.status === 304 && page.isCurrent) this.#checkEnd(page, name);
            if (page.mode === "all") this.#checkAll(page, name);
            else this.#checkLatest(page, name);
        }
    }

    #checkEnd(page, key) {
        const lsn = this.known.before(page.invoked, key);
        if (page.etag < lsn) this.fail("current state", key, page, `the feed ends at ${page.etag}, before LSN ${lsn}`);
    }

    #checkEntries(page) {
        let last = 0;
        for (const entry of page.entries) {
            const fail = (rule, text) => this.fail(rule, keyOf(entry), page, `${describeEntry(entry)}: ${text}`);
            const lsn = lsnOf(entry);
            if (!isIn(page.scope, this.history.keys.get(keyOf(entry)), keyOf(entry))) fail("scope", "not asked for");
            if (lsn < last) fail("order of a page", `after LSN ${last}`);
            if (lsn <= fromOf(page)) fail("repeated", `not after ${page.from}, where the page begins`);
            if (lsn > page.etag) fail("page", `after ETag ${page.etag}`);
            last = lsn;
        }
    }

    #entriesOf = (page, key) => page.entries.filter((entry) => keyOf(entry) === key);

    /** Exactly the writes from one ETag to the next. That each entry is right is known from the log. */
    #checkAll(page, key) {
        const expected = this.logs.get(key).between(fromOf(page), page.etag).flatMap(({ versions }) => versions);
        this.#compare(page, key, this.#entriesOf(page, key), expected);
    }

    #compare(page, key, entries, versions) {
        const isSame = (version, entry) =>
            version.lsn === lsnOf(entry) &&
            (isDelete(entry)
                ? version.kind === "delete" && entry.metadata.id === version.id
                : itemOf(entry).v === version.content?.v);
        for (let i = 0; i < Math.max(entries.length, versions.length); i++) {
            if (i < entries.length && i < versions.length && isSame(versions[i], entries[i])) continue;
            const shown = entries[i] ? describeEntry(entries[i]) : "nothing";
            const version = versions[i];
            const expected = version ? `${version.kind} ${version.id} '${version.op.v}' @${version.lsn}` : "nothing";
            const isLater = version && entries.slice(i).some((entry) => isSame(version, entry));
            const rule = isLater ? "order of the feed" : version ? "lost" : "repeated";
            this.fail(rule, key, page, `${page.follower} was shown ${shown} instead of ${expected}`, version?.id);
            return;
        }
    }

    /** Each item as it was at some time during the request, and all that stayed as they were. */
    #checkLatest(page, key) {
        const log = this.logs.get(key);
        const seen = new Set();
        for (const entry of this.#entriesOf(page, key)) {
            const version = this.#latestVersion(page, key, entry);
            if (!version) continue;
            if (seen.has(version.id)) this.fail("repeated", key, page, `${describeEntry(entry)}: twice in a page`);
            seen.add(version.id);
            if (version.next && version.next.lsn <= this.known.before(page.invoked, key))
                this.fail("stale entry", key, page, `${describeEntry(entry)}: '${version.next.op.v}' came before the request`);
        }
        for (const { versions } of log.between(fromOf(page), page.etag)) {
            for (const version of versions) {
                const { id, lsn, next } = version;
                const isStable =
                    log.versionAt(id, lsn) === version && (!next || next.event.invoked > page.completed);
                if (isStable && !seen.has(id))
                    this.fail("lost", key, page, `${id} '${version.op.v}' @${lsn} is not in the page`, id);
            }
        }
    }

    #latestVersion(page, key, entry) {
        const version = this.logs.get(key).byText.get(itemOf(entry).v);
        const fail = (rule, text) => this.fail(rule, key, page, `${describeEntry(entry)}: ${text}`);
        if (!version || version.id !== itemOf(entry).id) {
            fail("invented", "not in the log");
            return undefined;
        }
        if (version.lsn !== lsnOf(entry)) fail("entry", `its LSN is ${version.lsn}`);
        const isLast = this.logs.get(key).versionAt(version.id, version.lsn) === version;
        if (!isLast) fail("half a write", "a version within a transaction");
        const other = differenceOf(version, itemOf(entry));
        if (other) fail("entry", other);
        return version;
    }

    /** Everything that a follower was shown of a key, from page to page. */
    #checkKey({ mode, pages, isDrained }, key) {
        const epk = this.history.keys.get(key);
        const own = pages.filter(({ scope, status }) => isIn(scope, epk, key) && status !== 1002);
        if (own.length === 0) return;
        for (let i = 1; i < own.length; i++)
            if (own[i].from !== own[i - 1].etag)
                this.fail("continuation", key, own[i], `after ETag ${own[i - 1].etag} it goes on from ${own[i].from}`);
        const log = this.logs.get(key);
        const last = own.at(-1);
        if (isDrained && last.etag < log.lastLsn)
            this.fail("not at the end", key, last, `the last write has LSN ${log.lastLsn}, the feed ends at ${last.etag}`);
        const shown = own.flatMap((page) => this.#entriesOf(page, key));
        const to = isDrained ? log.lastLsn : last.etag;
        const written = log.between(fromOf(own[0]), to).flatMap(({ versions }) => versions);
        if (mode === "all") this.#compare(last, key, shown, written);
        else this.#checkForward(last, key, shown, isDrained ? written : []);
    }

    /** Versions go forward, over all items of a key; the last one of each item is its final state. */
    #checkForward(page, key, shown, written) {
        const log = this.logs.get(key);
        const newest = new Map();
        let before;
        for (const entry of shown) {
            const version = log.byText.get(itemOf(entry).v);
            if (!version) continue;
            const isForward =
                !before || version.lsn > before.lsn || (version.lsn === before.lsn && version.index > before.index);
            if (!isForward)
                this.fail("goes back", key, page, `${describeEntry(entry)} after '${before.op.v}' @${before.lsn}`);
            before = version;
            newest.set(version.id, version);
        }
        for (const version of written) {
            const isFinal = log.versionAt(version.id, log.lastLsn) === version;
            if (isFinal && newest.get(version.id) !== version)
                this.fail("lost", key, page, `${page.follower} was never shown ${version.id} '${version.op.v}'`, version.id);
        }
    }
}
