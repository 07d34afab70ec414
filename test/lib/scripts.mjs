// scripts.mjs - stored procedures, triggers and functions: defining them, executing them, their errors and processes.
//
// The functions that tests pass as bodies are sent to the server as text, so they see nothing of the test around them.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";

import { keyHeader, pathOf } from "./items.mjs";
import { call, unique } from "./wire.mjs";

/** Defines a procedure; the SDK's object to execute it with. */
export async function procedure(container, body, id = unique("procedure")) {
    const { storedProcedure } = await container.scripts.storedProcedures.create({ id, body });
    return storedProcedure;
}

/** Defines a procedure for as long as `work` takes: a container may have a hundred only. */
export async function withProcedure(container, body, work) {
    const made = await procedure(container, body);
    try {
        return await work(made);
    } finally {
        await made.delete();
    }
}

/** Executes a procedure that exists only for this; what it answers. */
export function execute(container, key, body, ...args) {
    return withProcedure(container, body, async (made) => (await made.execute(key, args)).resource);
}

/** The same by hand; the whole answer. */
export function executeOnce(server, container, body, options) {
    return withProcedure(container, body, ({ id }) => executeRaw(server, container, id, options));
}

export async function trigger(container, triggerType, triggerOperation, body, id = unique("trigger")) {
    await container.scripts.triggers.create({ id, body, triggerType, triggerOperation });
    return id;
}

/** Ids of functions are names in queries, so they have no '-'. */
export async function userFunction(container, body, id = unique("f").replace("-", "_")) {
    await container.scripts.userDefinedFunctions.create({ id, body });
    return id;
}

/** Defines a function for as long as `work` takes: a container may have fifty only. */
export async function withFunction(container, body, work) {
    const id = await userFunction(container, body);
    try {
        return await work(id);
    } finally {
        await container.scripts.userDefinedFunction(id).delete();
    }
}

/** An execution by hand; `body` is sent as it stands if it is text. */
export function executeRaw(server, container, id, { key, headers = {}, ...rest } = {}) {
    const owner = pathOf(container);
    return call(server, {
        method: "POST",
        path: `${owner}/sprocs/${encodeURIComponent(id)}`,
        type: "sprocs",
        link: `${owner.slice(1)}/sprocs/${id}`,
        headers: { ...keyHeader(key), ...headers },
        ...rest,
    });
}

/** Stores a script by hand, as the SDK would not. */
export async function storeRaw(server, container, kind, resource) {
    const answer = await call(server, { method: "POST", path: `${pathOf(container)}/${kind}`, body: resource });
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
}

/** The texts in the message of a failed script; `message` is that of an SDK's error or of an answer. */
export function errorsOf({ message }) {
    const found = /^(?:Message: )?(\{"Errors":.*\})\r\nActivityId: /s.exec(message);
    assert.ok(found, `not the message of a script: ${message}`);
    return JSON.parse(found[1]).Errors;
}

/**
 * The body of a procedure that waits for its operations one after the other. `main` is an async function; it gets
 * what is below and the arguments, and its result is the response. If it fails, the procedure is aborted.
 *
 *     call(name, ...)    an operation of the collection; its results after the error, as an array
 *     failure(promise)   number, name and message of the error that a promise ends with
 *     thrown(function)   the same of what a function throws
 */
export const flow = (main) => `function (...given) {
    const context = getContext();
    const collection = context.getCollection();
    const response = context.getResponse();
    const alt = collection.getAltLink();
    const told = (error) => ({ number: error.number, name: error.name, message: error.message });
    const api = {
        context, collection, response, alt, self: collection.getSelfLink(),
        link: (id) => alt + "/docs/" + id,
        call: (name, ...rest) => new Promise((resolve, reject) => {
            const isAccepted = collection[name](...rest, (error, ...results) => (error ? reject(error) : resolve(results)));
            if (isAccepted !== true) reject(new Error(name + " was not accepted: " + isAccepted));
        }),
        failure: (promise) => promise.then(() => "it did not fail", told),
        thrown: (work) => {
            try { work(); } catch (error) { return told(error); }
            return "nothing was thrown";
        },
    };
    (${main})(api, ...given).then((value) => response.setBody(value), (error) => context.abort(error));
}`;

/** The processes that run scripts for a server: their ids, and how much processor time they have used. */
export function workersOf(server) {
    const workers = [];
    for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one))) {
        try {
            const stat = readFileSync(`/proc/${name}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
            const isChild = Number(stat[1]) === server.pid;
            if (isChild && readFileSync(`/proc/${name}/cmdline`, "utf8").includes("script-worker"))
                workers.push({ pid: Number(name), ticks: Number(stat[11]) + Number(stat[12]) });
        } catch {
            // it has ended meanwhile
        }
    }
    return workers;
}
