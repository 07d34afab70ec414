// check.mjs - what a failure must look like.
import assert from "node:assert/strict";

/** The SDK's call fails with this status, sub-status and text. */
export async function refused(promise, code, { substatus, message } = {}) {
    let error;
    try {
        await promise;
    } catch (caught) {
        error = caught;
    }
    assert.ok(error, `expected status ${code}, but the call succeeded`);
    assert.equal(error.code, code, error.message);
    assert.equal(error.substatus ?? 0, substatus ?? 0, error.message);
    if (message) assert.match(error.message, message);
    return error;
}

/** A raw answer is an error in the protocol's form. */
export function errorAnswer(answer, status, code, { substatus, message } = {}) {
    assert.equal(answer.status, status, answer.text);
    assert.equal(answer.headers["content-type"], "application/json");
    assert.equal(Number(answer.headers["content-length"]), answer.bytes.length);
    assert.equal(answer.json.code, code);
    assert.equal(typeof answer.json.message, "string");
    assert.match(answer.headers["x-ms-activity-id"] ?? "", /^[0-9A-Za-z_-]+$/);
    assert.equal(answer.headers["x-ms-substatus"], substatus && String(substatus));
    if (message) assert.match(answer.json.message, message);
}

/** Pages of an SDK iterator, each at most `size` long. */
export async function pagesOf(iterator, size) {
    const pages = [];
    while (iterator.hasMoreResults()) {
        const { resources } = await iterator.fetchNext();
        if (resources === undefined) break;
        assert.ok(resources.length <= size, `a page has ${resources.length} of at most ${size}`);
        pages.push(resources);
    }
    return pages;
}

export const ids = (resources) => resources.map((resource) => resource.id);
