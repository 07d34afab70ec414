// model.mjs - what a client believes to be stored under one partition key, and what it may do next.
//
// Every operation is applied to the model first, which says how the server must answer. Nobody else
// writes under the key, so the model is exact. The container has a unique key on /u.
import assert from "node:assert/strict";

import { callItems, contentOf, keyHeader, pathOf } from "./items.mjs";
import { call } from "./wire.mjs";

export const ATOMIC = { "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };

export class KeyModel {
    items = new Map(); // id -> { content, etag }

    constructor(key) {
        this.key = key;
    }

    clone() {
        const copy = new KeyModel(this.key);
        copy.items = new Map(this.items);
        return copy;
    }

    contents() {
        return [...this.items.values()].map(({ content }) => content);
    }

    #isTaken(u, id) {
        return [...this.items].some(([other, { content }]) => other !== id && content.u === u);
    }

    #put(id, content, status) {
        if (this.#isTaken(content.u, id)) return { status: 409 };
        if (id !== content.id) this.items.delete(id);
        this.items.set(content.id, { content, etag: null });
        return { status, content };
    }

    /** What the operation must be answered with; changes the model if that is a success. */
    apply(op) {
        if (op.kind === "batch") return this.#applyBatch(op);
        if (op.kind === "purge") {
            this.items.clear();
            return { status: 200 };
        }
        const old = this.items.get(op.id);
        if (op.kind === "create") return old ? { status: 409 } : this.#put(op.id, op.body, 201);
        if (!old && op.kind !== "upsert") return { status: 404 };
        if (op.kind === "read") return { status: 200, content: old.content };
        if (old && op.ifMatch && op.ifMatch !== old.etag) return { status: 412 };
        if (op.kind === "upsert") return this.#put(op.id, op.body, old ? 200 : 201);
        if (op.kind === "delete") {
            this.items.delete(op.id);
            return { status: 204 };
        }
        if (op.kind === "replace") {
            if (op.body.id !== op.id && this.items.has(op.body.id)) return { status: 409 };
            return this.#put(op.id, op.body, 200);
        }
        const patched = patchedContent(old.content, op.operations);
        return patched ? this.#put(op.id, patched, 200) : { status: 400 };
    }

    #applyBatch(op) {
        const trial = this.clone();
        const results = [];
        for (const one of op.operations) {
            const result = trial.apply(one);
            if (result.status >= 400) {
                const codes = op.operations.map((_, i) => (i === results.length ? result.status : 424));
                return { status: 207, results: codes.map((status) => ({ status })) };
            }
            results.push(result);
        }
        this.items = trial.items;
        return { status: 200, results };
    }

    /** Takes over the ETag of an answer. */
    learn(body) {
        const item = this.items.get(body.id);
        if (item) this.items.set(body.id, { ...item, etag: body._etag });
    }
}

// Of the operations that randomPatch makes; null if one of them cannot be applied.
function patchedContent(content, operations) {
    const result = structuredClone(content);
    for (const { op, path, value } of operations) {
        const name = path.split("/")[1];
        if (op === "set") result[name] = structuredClone(value);
        else if (op === "incr") result[name] = (result[name] ?? 0) + value;
        else if (op === "add" && Array.isArray(result[name])) result[name].push(value);
        else if (op === "remove" && name in result) delete result[name];
        else return null;
    }
    return result;
}

function randomPatch(random, fresh) {
    return Array.from({ length: 1 + random.below(3) }, () =>
        random.pick([
            { op: "set", path: "/n", value: random.below(100) },
            { op: "incr", path: "/n", value: random.below(9) - 4 },
            { op: "remove", path: "/n" },
            { op: "add", path: "/list/-", value: { k: random.below(5) } },
            { op: "set", path: "/list", value: [] },
            { op: "set", path: "/u", value: randomUnique(random, fresh) },
        ]),
    );
}

const randomUnique = (random, fresh) => (random.chance(25) ? random.below(12) : `u${fresh()}`);

function randomBody(random, model, id, fresh) {
    const body = { id, ...model.fields, u: randomUnique(random, fresh), n: random.below(100) };
    if (random.chance(50)) body.list = [random.below(10)];
    if (random.chance(20)) body.text = "x".repeat(random.below(3000));
    return body;
}

/** Something to do with one item; `fresh` gives numbers that were not there before. */
function randomSingle(random, model, fresh) {
    const ids = [...model.items.keys()];
    const id = ids.length > 0 && random.chance(75) ? random.pick(ids) : `i${random.below(40)}`;
    const body = randomBody(random, model, id, fresh);
    const guard = random.chance(25) && { ifMatch: random.chance(60) ? model.items.get(id)?.etag : '"no"' };
    const kind = random.pick(["create", "create", "upsert", "replace", "patch", "patch", "delete", "read"]);
    const op = { kind, id, ...((kind !== "create" && kind !== "read" && guard) || {}) };
    if (!op.ifMatch) delete op.ifMatch;
    if (kind === "patch") op.operations = randomPatch(random, fresh);
    else if (kind !== "delete" && kind !== "read") op.body = body;
    if (kind === "replace" && random.chance(25)) op.body = { ...body, id: `i${random.below(40)}` };
    return op;
}

export function randomOperation(random, model, fresh) {
    const dice = random.below(100);
    if (dice < 2) return { kind: "purge" };
    if (dice < 80) return randomSingle(random, model, fresh);
    const operations = Array.from({ length: 1 + random.below(8) }, () => randomSingle(random, model, fresh));
    // What the batch itself has changed has an ETag that is not known yet.
    for (const operation of operations) delete operation.ifMatch;
    return { kind: "batch", operations };
}

// Conditions of one property; `holds` is undefined where SQL says so.
function randomComparison(random) {
    const k = random.below(100);
    const digit = random.below(10);
    const number = (n, holds) => (typeof n === "number" ? holds : undefined);
    const string = (u, holds) => (typeof u === "string" ? holds(u) : undefined);
    return random.pick([
        [`c.n = ${k}`, ({ n }) => (n === undefined ? undefined : n === k)],
        [`c.n != ${k}`, ({ n }) => (n === undefined ? undefined : n !== k)],
        [`c.n < ${k}`, ({ n }) => number(n, n < k)],
        [`c.n >= ${k}`, ({ n }) => number(n, n >= k)],
        [`c.n BETWEEN ${k} AND ${k + 20}`, ({ n }) => number(n, n >= k && n <= k + 20)],
        [`c.n % 7 = ${digit}`, ({ n }) => number(n, n % 7 === digit)],
        [`c.u = ${digit}`, ({ u }) => u === digit],
        ["IS_STRING(c.u)", ({ u }) => typeof u === "string"],
        [`STARTSWITH(c.u, 'u${digit}')`, ({ u }) => string(u, (text) => text.startsWith(`u${digit}`))],
        [`CONTAINS(c.u, '${k}')`, ({ u }) => string(u, (text) => text.includes(`${k}`))],
        ["IS_DEFINED(c.n)", ({ n }) => n !== undefined],
        ["IS_DEFINED(c.text)", ({ text }) => text !== undefined],
        [`ARRAY_CONTAINS(c.list, ${digit})`, ({ list }) => list?.includes(digit)],
        [
            `EXISTS(SELECT VALUE l FROM l IN c.list WHERE l.k = ${digit})`,
            ({ list }) => (list ?? []).some(({ k }) => k === digit),
        ],
        [`c.id >= 'i${digit}'`, ({ id }) => id >= `i${digit}`],
        ["c.n = c.u", ({ n, u }) => (n === undefined ? undefined : n === u)],
    ]);
}

const NOT = (a) => (a === undefined ? undefined : !a);
const AND = (a, b) => (a === false || b === false ? false : a && b);
const OR = (a, b) => (a === true || b === true ? true : a === undefined ? a : b);

/** A condition as text, and as a function of an item that is true, false or undefined. */
export function randomCondition(random, depth = 2) {
    if (depth === 0 || random.chance(30)) return randomComparison(random);
    const [text, holds] = randomCondition(random, depth - 1);
    if (random.chance(25)) return [`NOT (${text})`, (item) => NOT(holds(item))];
    const [other, holdsToo] = randomCondition(random, depth - 1);
    return random.chance(50)
        ? [`(${text}) AND (${other})`, (item) => AND(holds(item), holdsToo(item))]
        : [`(${text}) OR (${other})`, (item) => OR(holds(item), holdsToo(item))];
}

const NAMES = {
    create: "Create",
    upsert: "Upsert",
    replace: "Replace",
    patch: "Patch",
    delete: "Delete",
    read: "Read",
};

export function batchForm({ kind, id, body, operations }) {
    if (kind === "create" || kind === "upsert") return { operationType: NAMES[kind], resourceBody: body };
    if (kind === "replace") return { operationType: "Replace", id, resourceBody: body };
    if (kind === "patch") return { operationType: "Patch", id, resourceBody: { operations } };
    return { operationType: NAMES[kind], id };
}

export const METHODS = {
    create: "POST",
    upsert: "POST",
    replace: "PUT",
    patch: "PATCH",
    delete: "DELETE",
    read: "GET",
};

/** Sends an operation by hand. */
export function sendOperation(server, container, model, op, agent) {
    const { key } = model;
    if (op.kind === "purge") {
        const path = `${pathOf(container)}/operations/partitionkeydelete`;
        const link = pathOf(container).slice(1);
        return call(server, { method: "POST", path, type: "colls", link, headers: keyHeader(key), agent });
    }
    if (op.kind === "batch") {
        const body = JSON.stringify(op.operations.map(batchForm));
        return callItems(server, container, { method: "POST", key, headers: ATOMIC, body, agent });
    }
    const isNamed = op.kind !== "create" && op.kind !== "upsert";
    return callItems(server, container, {
        method: METHODS[op.kind],
        key,
        agent,
        id: isNamed ? op.id : undefined,
        headers: {
            ...(op.kind === "upsert" && { "x-ms-documentdb-is-upsert": "true" }),
            ...(op.ifMatch && { "if-match": op.ifMatch }),
        },
        body: op.kind === "patch" ? { operations: op.operations } : op.body,
    });
}

/** The answer is the expected one, to the last property; the model learns the new ETags. */
export function checkAnswer(model, op, expected, answer, context) {
    const where = () => `${context} key ${JSON.stringify(model.key)} ${JSON.stringify(op).slice(0, 600)}`;
    assert.equal(answer.status, expected.status, `${where()}: ${answer.text.slice(0, 300)}`);
    if (op.kind === "batch") {
        const results = answer.json;
        assert.deepEqual(
            results.map(({ statusCode }) => statusCode),
            expected.results.map(({ status }) => status),
            where(),
        );
        for (const [i, { resourceBody }] of results.entries()) {
            assert.deepEqual(contentOf(resourceBody), expected.results[i].content, where());
            if (resourceBody) model.learn(resourceBody);
        }
    } else if (expected.content) {
        assert.deepEqual(contentOf(answer.json), expected.content, where());
        assert.equal(answer.headers.etag, answer.json._etag);
        model.learn(answer.json);
    }
}

/** The partition keys of one client: a text, a number, something beyond ASCII. */
export function modelsOf(client) {
    const keys = [`client ${client}`, 1000 + client, `клиент ${client} 😀`];
    return keys.map((key) => Object.assign(new KeyModel(key), { fields: { pk: key } }));
}
