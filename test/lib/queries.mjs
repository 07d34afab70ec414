// queries.mjs - queries by hand, page by page, and what the server says of how it ran them.
import assert from "node:assert/strict";

import { callItems } from "./items.mjs";

const HEADERS = {
    "content-type": "application/query+json",
    "x-ms-documentdb-isquery": "true",
    "x-ms-documentdb-query-enablecrosspartition": "true",
};

const bodyOf = (query) => (typeof query === "string" ? { query } : query);

/** One page; a query is a text, or a text with parameters. */
export function askPage(server, container, query, { size, token, headers, ...rest } = {}) {
    return callItems(server, container, {
        method: "POST",
        headers: {
            ...HEADERS,
            ...(size !== undefined && { "x-ms-max-item-count": String(size) }),
            ...(token && { "x-ms-continuation": token }),
            ...headers,
        },
        body: bodyOf(query),
        ...rest,
    });
}

/** Checks what every page must have, and returns its results. */
export function resultsOf(answer, size = 0) {
    assert.equal(answer.status, 200, answer.text.slice(0, 1000));
    const { Documents, _count } = answer.json;
    assert.equal(_count, Documents.length);
    assert.equal(Number(answer.headers["x-ms-item-count"]), Documents.length);
    if (size > 0) assert.ok(Documents.length <= size, `a page has ${Documents.length} of ${size}`);
    const token = answer.headers["x-ms-continuation"];
    if (token) assert.match(token, /^(?:\[\{"token":|[^[{\s])[\x21-\x7e]{1,1023}$/, "a token is short and printable");
    return Documents;
}

/** All results, page by page, whose `size` may be a function that tells the next one's; `between` is
 *  called with what was seen so far before each next page. */
export async function askAll(server, container, query, { size, between, ...rest } = {}) {
    const results = [];
    let token;
    for (let pages = 1; ; pages++) {
        const next = typeof size === "function" ? size() : size;
        const answer = await askPage(server, container, query, { size: next, token, ...rest });
        results.push(...resultsOf(answer, next));
        token = answer.headers["x-ms-continuation"];
        if (!token) return results;
        assert.ok(pages < 10_000, "the query does not end");
        await between?.(results);
    }
}

/** What the server says about a page: `explain` of how it was run, `results`, and the charge. */
export async function explain(server, container, query, { headers, ...rest } = {}) {
    const answer = await askPage(server, container, query, {
        headers: { "x-orrery-explain": "true", ...headers },
        ...rest,
    });
    const results = resultsOf(answer);
    const told = JSON.parse(decodeURIComponent(answer.headers["x-orrery-explain"]));
    assert.equal(told.results, results.length);
    return { ...told, rows: results, charge: Number(answer.headers["x-ms-request-charge"]) };
}
