// items.mjs - containers to put items into, items by hand, and lists of them.
import assert from "node:assert/strict";

import { KEY } from "./definition.mjs";
import { clientOf } from "./sdk.mjs";
import { startServer } from "./server.mjs";
import { call, unique } from "./wire.mjs";

/** How many physical partitions a test's container has, and the throughput that gives them. */
export const SIZES = [
    { partitions: 1, throughput: 400 },
    { partitions: 5, throughput: 30_000 },
];
export const MANY = { partitions: 25, throughput: 150_000 };
export const HUNDRED = { partitions: 100, throughput: 600_000 };

/** A new container; `more` goes into its definition. */
export async function newContainer(database, { throughput = 400 } = SIZES[0], more = {}) {
    const body = { id: unique("c"), partitionKey: structuredClone(KEY), throughput, ...more };
    const { container } = await database.containers.create(body);
    return container;
}

/** One new container of each size, as pairs of a name for messages and the container. */
export async function eachSize(database, more = {}) {
    const list = [];
    for (const size of SIZES)
        list.push([`${size.partitions} partitions`, await newContainer(database, size, more)]);
    return list;
}

/** Puts items into a container, many at once. */
export async function fill(container, items) {
    const operations = items.map((resourceBody) => ({ operationType: "Create", resourceBody }));
    for (let i = 0; i < operations.length; i += 100) {
        const results = await container.items.bulk(operations.slice(i, i + 100));
        for (const { statusCode } of results) assert.equal(statusCode, 201);
    }
}

/** The same container after a restart of its server, which has another port then. */
export async function afterRestart(server, container) {
    await server.restart();
    return clientOf(server).database(container.database.id).container(container.id);
}

/** A server of one test alone, which may be restarted, with a container. */
export async function ownContainer(t, size, more = {}, args = ["--durability", "relaxed"]) {
    const server = await startServer(t, { args });
    const { database } = await clientOf(server).databases.create({ id: "own" });
    return { server, container: await newContainer(database, size, more) };
}

const SYSTEM = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/** An item without what the server adds. */
export function contentOf(item) {
    if (item === undefined || item === null) return item;
    return Object.fromEntries(Object.entries(item).filter(([name]) => !SYSTEM.includes(name)));
}

export const pathOf = (container) => `/dbs/${container.database.id}/colls/${container.id}`;

/** The header's form of a partition key: an array with one value per path, ASCII only. */
export function keyHeader(key) {
    if (key === undefined) return {};
    const escape = (text) => `\\u${text.charCodeAt(0).toString(16).padStart(4, "0")}`;
    const text = JSON.stringify(Array.isArray(key) ? key : [key]);
    return { "x-ms-documentdb-partitionkey": text.replace(/[\u0080-\uffff]/g, escape) };
}

/** A request by hand for a container's items; `key` is the partition key, `id` the item's. */
export function callItems(server, container, { id, key, headers = {}, link, ...rest } = {}) {
    const owner = pathOf(container);
    const suffix = id === undefined ? "" : `/${encodeURIComponent(id)}`;
    return call(server, {
        path: `${owner}/docs${suffix}`,
        type: "docs",
        link: link ?? `${owner.slice(1)}${id === undefined ? "" : `/docs/${id}`}`,
        headers: { ...keyHeader(key), ...headers },
        ...rest,
    });
}

/** The pages of a list by hand. */
export async function listPages(server, container, { size = -1, key, headers = {}, agent } = {}) {
    const pages = [];
    let token;
    do {
        const answer = await callItems(server, container, {
            key,
            agent,
            headers: {
                "x-ms-max-item-count": String(size),
                ...headers,
                ...(token && { "x-ms-continuation": token }),
            },
        });
        assert.equal(answer.status, 200, answer.text);
        const { Documents, _count } = answer.json;
        assert.equal(_count, Documents.length);
        assert.equal(Number(answer.headers["x-ms-item-count"]), Documents.length);
        if (size > 0) assert.ok(Documents.length <= size, `a page has ${Documents.length} of ${size}`);
        token = answer.headers["x-ms-continuation"];
        if (token) assert.match(token, /^[\x21-\x7e]{1,1024}$/, "a token is short and printable");
        pages.push({ items: Documents, bytes: answer.bytes.length, headers: answer.headers });
        assert.ok(pages.length < 100_000, "the list does not end");
    } while (token);
    return pages;
}

export async function listAll(server, container, options) {
    return (await listPages(server, container, options)).flatMap(({ items }) => items);
}

/** A query by hand over the whole container, or one partition key of it. */
export async function queryAll(server, container, text, { key } = {}) {
    const results = [];
    let token;
    do {
        const answer = await callItems(server, container, {
            method: "POST",
            key,
            headers: {
                "content-type": "application/query+json",
                "x-ms-documentdb-isquery": "true",
                "x-ms-documentdb-query-enablecrosspartition": "true",
                "x-ms-max-item-count": "-1",
                ...(token && { "x-ms-continuation": token }),
            },
            body: { query: text },
        });
        assert.equal(answer.status, 200, answer.text);
        results.push(...answer.json.Documents);
        token = answer.headers["x-ms-continuation"];
    } while (token);
    return results;
}

/** Every item once, whatever the order. */
export function sameItems(found, expected, message = "") {
    const text = (item) => JSON.stringify(contentOf(item));
    const counts = new Map();
    for (const item of expected) counts.set(text(item), (counts.get(text(item)) ?? 0) + 1);
    for (const item of found) counts.set(text(item), (counts.get(text(item)) ?? 0) - 1);
    const wrong = [...counts].filter(([, count]) => count !== 0);
    if (wrong.length === 0) return;
    const list = (sign) =>
        wrong
            .filter(([, count]) => Math.sign(count) === sign)
            .map(([item]) => item.slice(0, 100))
            .slice(0, 3);
    assert.fail(
        `${message}: ${found.length} items, expected ${expected.length}; ` +
            `missing: ${list(1)}; too many: ${list(-1)}`,
    );
}

/** Waits until `condition` holds, which something in the background brings about. */
export async function until(condition, { timeout_ms = 20_000, every_ms = 20 } = {}) {
    const end = performance.now() + timeout_ms;
    for (;;) {
        const result = await condition();
        if (result) return result;
        assert.ok(performance.now() < end, `not within ${timeout_ms} ms: ${condition}`);
        await new Promise((resolve) => setTimeout(resolve, every_ms));
    }
}

/** How many items a container holds on disk, those included that have expired and are not removed yet. */
export async function storedCount(server, container) {
    const answer = await call(server, {
        path: pathOf(container),
        headers: { "x-ms-documentdb-populatequotainfo": "true" },
    });
    return Number(/documentsCount=(\d+);/.exec(answer.headers["x-ms-resource-usage"])[1]);
}
