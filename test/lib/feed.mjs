// feed.mjs - the change feed: its pages by hand and through the SDK, and what every page must have.
import assert from "node:assert/strict";

import { callItems, keyHeader } from "./items.mjs";

/** The two modes, as the header A-IM names them. */
export const LATEST = "Incremental Feed";
export const VERSIONS = "Full-Fidelity Feed";

/** A feed that gives more pages than this does not end. */
const PAGES_MAX = 10_000;

/** The headers for a part of a range, as SDKs send them. */
export const intervalHeaders = ({ minInclusive, maxExclusive }) => ({
    "x-ms-read-key-type": "EffectivePartitionKeyRange",
    "x-ms-start-epk": minInclusive,
    "x-ms-end-epk": maxExclusive,
});

/**
 * One request by hand. `range` is the id of a partition key range, `interval` a part of it, `key` a partition key,
 * `etag` where to continue ("*" for now), `since` a date, `size` the page size, `wire` whether items are wrapped.
 */
export function askFeed(server, container, options = {}) {
    const { range, interval, key, etag, since, size, mode = LATEST, wire = mode === VERSIONS, headers, agent, ...rest } = options;
    return callItems(server, container, {
        headers: {
            "a-im": mode,
            ...(range !== undefined && { "x-ms-documentdb-partitionkeyrangeid": range }),
            ...(interval !== undefined && intervalHeaders(interval)),
            ...keyHeader(key),
            ...(etag !== undefined && { "if-none-match": etag }),
            ...(since !== undefined && { "if-modified-since": since }),
            ...(size !== undefined && { "x-ms-max-item-count": String(size) }),
            ...(wire && { "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15" }),
            ...headers,
        },
        agent,
        ...rest,
    });
}

export const lsnOfEtag = (etag) => Number(/^"?(\d+)"?$/.exec(etag)[1]);

/** The range and the LSN of a session token, which must name exactly one range. */
export function sessionOf(token) {
    const found = /^(\d+):-1#(\d+)$/.exec(token ?? "");
    assert.ok(found, `not a session token of one range: ${token}`);
    return { range: found[1], lsn: Number(found[2]) };
}

/** Checks what every page must have. `lsn` is the current one of the range, `position` the one in the ETag. */
export function pageOf(answer) {
    const { status, headers } = answer;
    assert.ok(status === 200 || status === 304, `expected a page of the feed: ${status} ${answer.text.slice(0, 500)}`);
    assert.match(headers.etag ?? "", /^"\d+"$/, "the ETag is an LSN in quotes");
    const position = lsnOfEtag(headers.etag);
    const { range, lsn } = sessionOf(headers["x-ms-session-token"]);
    assert.equal(headers.lsn, String(lsn), "the header lsn agrees with the session token");
    assert.equal(headers["x-ms-documentdb-partitionkeyrangeid"], range, "the page names its range");
    assert.ok(Number(headers["x-ms-request-charge"]) > 0, `charge: ${headers["x-ms-request-charge"]}`);
    assert.match(headers["x-ms-activity-id"] ?? "", /^[0-9A-Za-z_-]+$/, "a page has an activity id");
    assert.equal(headers["x-ms-continuation"], undefined, "the position is in the ETag alone");
    let items = [];
    if (status === 304) {
        assert.equal(answer.bytes.length, 0, "a 304 has no body");
        assert.equal(position, lsn, "the ETag of a 304 is the current LSN of the range");
    } else {
        items = answer.json.Documents;
        assert.ok(items.length > 0, "a page without items must be a 304");
        assert.equal(answer.json._count, items.length);
        assert.ok(position <= lsn, `the ETag ${position} is after the current LSN ${lsn}`);
    }
    assert.equal(headers["x-ms-item-count"], String(items.length));
    return { status, items, etag: headers.etag, position, lsn, range, headers, bytes: answer.bytes.length, answer };
}

export async function feedPage(server, container, options) {
    return pageOf(await askFeed(server, container, options));
}

/** Reads until there is nothing new; the pages that have items, all items, and the ETag at the end. */
export async function drainFeed(server, container, { etag, ...options } = {}) {
    const pages = [];
    let position = -1;
    for (;;) {
        const page = await feedPage(server, container, { ...options, etag });
        assert.ok(page.position >= position, `the ETag went from ${position} back to ${page.position}`);
        if (page.status === 304)
            return { pages, items: pages.flatMap(({ items }) => items), etag: page.etag, lsn: page.lsn, range: page.range };
        assert.ok(page.position > position, `the ETag stays at ${position}, so a reader would see the page again`);
        pages.push(page);
        assert.ok(pages.length < PAGES_MAX, "the feed does not end");
        ({ etag, position } = page);
    }
}

/** The current LSN of a range; the only one of its container if none is given. */
export async function currentLsn(server, container, range = "0") {
    const page = await feedPage(server, container, { range, etag: "*" });
    assert.equal(page.status, 304, "nothing is newer than now");
    return page.lsn;
}

/** Pages of an iterator of the SDK until it says 304, at most `most` of them, and its token after the last one. */
export async function pull(iterator, most = PAGES_MAX) {
    const pages = [];
    const responses = [];
    let token;
    while (pages.length < most) {
        const response = await iterator.readNext();
        token = response.continuationToken;
        responses.push(response);
        if (response.statusCode === 304) {
            assert.equal(response.count, 0, "a 304 has no items");
            break;
        }
        assert.equal(response.statusCode, 200);
        assert.ok(response.count > 0, "a page without items must be a 304");
        pages.push(response.result);
        assert.ok(pages.length < PAGES_MAX, "the feed does not end");
    }
    return { pages, items: pages.flat(), responses, token };
}

/** An item of the feed without what only the feed adds. */
export function withoutLsn({ _lsn, ...item }) {
    assert.ok(Number.isSafeInteger(_lsn) && _lsn > 1, `_lsn of ${item.id}: ${_lsn}`);
    delete item._metadata;
    return item;
}

/** Pages as the rules make them: whole transactions, as many as fit; one that is larger than a page has it alone. */
export function packed(transactions, size) {
    const pages = [];
    let page = [];
    for (const transaction of transactions.filter((one) => one.length > 0)) {
        if (page.length > 0 && page.length + transaction.length > size) {
            pages.push(page);
            page = [];
        }
        page.push(...transaction);
    }
    return page.length > 0 ? [...pages, page] : pages;
}

/** An iterator of the SDK; of all versions if the mode says so. */
export function follow(container, changeFeedStartFrom, maxItemCount, changeFeedMode = LATEST) {
    return container.items.getChangeFeedIterator({ changeFeedMode, changeFeedStartFrom, ...(maxItemCount && { maxItemCount }) });
}

// --- All versions and deletes

export const followVersions = (container, start, maxItemCount) => follow(container, start, maxItemCount, VERSIONS);

/** Reads all entries by hand. */
export const drainVersions = (server, container, options) => drainFeed(server, container, { mode: VERSIONS, ...options });

/** What happened to which item, in a word each. */
export const told = (entries) => entries.map(({ current, metadata }) => `${metadata.operationType} ${metadata.id ?? current.id}`);

/** Checks what every entry must have. */
export function checkEntry(entry) {
    const text = JSON.stringify(entry);
    const { current, previous, metadata, ...rest } = entry;
    assert.deepEqual(rest, {}, `an entry has nothing but current, previous and metadata: ${text}`);
    assert.ok(current !== null && typeof current === "object", `current is always there: ${text}`);
    assert.ok(Number.isSafeInteger(metadata.lsn) && metadata.lsn > 1, text);
    assert.ok(Number.isSafeInteger(metadata.crts) && metadata.crts > 1_500_000_000, text);
    const isDelete = metadata.operationType === "delete";
    if (isDelete) {
        assert.deepEqual(current, {}, `current of a delete is empty: ${text}`);
        assert.equal(typeof metadata.id, "string", text);
        assert.equal(typeof metadata.partitionKey, "object", text);
    } else {
        assert.ok(["create", "replace"].includes(metadata.operationType), text);
        assert.equal(metadata.id, undefined, text);
        assert.equal(metadata.partitionKey, undefined, text);
        assert.equal(previous, undefined, `only a delete has the version before it: ${text}`);
        assert.equal(current._ts, metadata.crts, `crts is the time of the operation: ${text}`);
        assert.equal(current._lsn, undefined, text);
    }
    if (metadata.operationType === "create") assert.ok(!metadata.previousImageLSN, text);
    else assert.ok(metadata.previousImageLSN > 0 && metadata.previousImageLSN <= metadata.lsn, text);
    if (!isDelete) assert.ok(!metadata.timeToLiveExpired, text);
}

/** Each entry names the LSN of the one before it of the same item. */
export function checkChain(entries) {
    const last = new Map();
    for (const entry of entries) {
        checkEntry(entry);
        const { current, metadata } = entry;
        const id = metadata.id ?? current.id;
        const { state, lsn } = last.get(id) ?? {};
        const text = `${metadata.operationType} of ${id} at ${metadata.lsn}`;
        if (metadata.operationType === "create") assert.ok(state === undefined || state === "delete", `${text} after ${state}`);
        else {
            assert.ok(state === "create" || state === "replace", `${text} after ${state}`);
            assert.equal(metadata.previousImageLSN, lsn, `${text} follows the version of ${lsn}`);
        }
        last.set(id, { state: metadata.operationType, lsn: metadata.lsn });
    }
}

/** Entries of each key, in their order. */
export function byKey(entries) {
    const map = {};
    for (const entry of entries) (map[entry.current.pk ?? entry.metadata.partitionKey.pk] ??= []).push(entry);
    return map;
}
