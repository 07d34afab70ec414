// Executing stored procedures: arguments, results, the log and errors; docs/scripts.md.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { times } from "./lib/definition.mjs";
import { listAll, newContainer } from "./lib/items.mjs";
import { patientClient } from "./lib/load.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { errorsOf, execute, executeOnce, executeRaw, flow, procedure, storeRaw, withProcedure } from "./lib/scripts.mjs";
import { ROOT, sharedServer, startServer } from "./lib/server.mjs";
import { call, unique } from "./lib/wire.mjs";

/* global getContext, __ */

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "procedures" });
const container = await newContainer(database);

const LOGGING = { "x-ms-documentdb-script-enable-logging": "true" };
const LOG = "x-ms-documentdb-script-log-results";

// --- Arguments

const SHOW = function () {
    const list = Array.prototype.map.call(arguments, (one) => (one === undefined ? "undefined" : JSON.stringify(one)));
    getContext().getResponse().setBody(list.join(" "));
};
const shown = await procedure(container, SHOW, "show");

test("the SDK sends arguments as an array, or one that it wraps", async () => {
    for (const [params, text] of [
        [undefined, ""],
        [null, ""],
        [[], ""],
        [[null], "null"],
        [["one"], '"one"'],
        [["one", "two", "three"], '"one" "two" "three"'],
        [{ temp: "so" }, '{"temp":"so"}'],
        [[{ temp: "so" }, [1, [2]], 1.5, true], '{"temp":"so"} [1,[2]] 1.5 true'],
        ["alone", '"alone"'],
        [[""], '""'],
        [["ünï \u2028 😀 \u0000"], JSON.stringify("ünï \u2028 😀 \u0000")],
        [[[]], "[]"],
    ])
        assert.equal((await shown.execute("any", params)).resource, text, JSON.stringify(params));
});

test("an argument has the type that it has in JSON", async () => {
    const body = function (input) {
        getContext().getResponse().setBody("a" + input.temp);
    };
    const made = await procedure(container, body);
    assert.equal((await made.execute("any", [{ temp: "so" }])).resource, "aso");
    assert.equal((await made.execute("any", { temp: "so" })).resource, "aso");
    const types = function (...list) {
        getContext().getResponse().setBody(list.map((one) => (Array.isArray(one) ? "array" : one === null ? "null" : typeof one)));
    };
    const given = ["x", 1, true, null, {}, []];
    assert.deepEqual(await execute(container, "any", types, ...given), ["string", "number", "boolean", "null", "object", "array"]);
});

const THREE = '"one" "two" "three"';

test("a body by hand is applied as a list of arguments", async () => {
    for (const [body, text] of [
        [undefined, ""],
        ["", ""],
        ["[]", ""],
        ["null", ""],
        ["{}", ""],
        ['{"param1":4}', ""],
        ['{"0":4}', ""],
        ["[null]", "null"],
        [' [ "one" , 2 ] ', '"one" 2'],
        ['["one","two","three"]', THREE],
        ['{"0":"one","1":"two","2":"three","length":3}', THREE],
        ['{"0":"one","1":"two","2":"three","length":"3"}', THREE],
        ['{"0":"one","1":"two","2":"three","length":3.9}', THREE],
        ['{"0":"one","1":"two","2":"three","3":"four","length":3}', THREE],
        ['{"length":3,"2":"three","0":"one","1":"two"}', THREE],
        ['{"0":"one","1":"two","2":"three","length":3,"more":{"x":1}}', THREE],
        ['{"0":"one","2":"three","length":3}', '"one" undefined "three"'],
        ['{"0":"one","length":1}', '"one"'],
        ['{"0":"one","length":0}', ""],
    ]) {
        const answer = await executeRaw(server, container, "show", { key: "any", body });
        assert.equal(answer.status, 200, `${body}: ${answer.text}`);
        assert.equal(answer.json, text, body);
    }
});

test("a list of arguments may be long, but not of any length", async () => {
    const count = function () {
        getContext().getResponse().setBody([arguments.length, arguments[0]]);
    };
    await procedure(container, count, "count");
    const ask = (body) => executeRaw(server, container, "count", { key: "any", body });
    assert.deepEqual((await ask('{"0":"one","length":10000}')).json, [10000, "one"]);
    assert.deepEqual((await ask(JSON.stringify(times(5000, (i) => i)))).json, [5000, 0]);
    for (const length of ["600000", "1000000000", '"1e9"'])
        errorAnswer(await ask(`{"0":"one","length":${length}}`), 400, "BadRequest");
    const large = "x".repeat(1_900_000);
    assert.deepEqual((await ask(JSON.stringify([large]))).json, [1, large]);
    errorAnswer(await ask(JSON.stringify(["x".repeat(2_200_000)])), 413, "RequestEntityTooLarge");
});

test("a body that is no list of arguments is refused", async () => {
    for (const body of ['""', '"hello"', "0", "-1.25", "false", "true", "undefined", "[x:4]", "[1,]", "{", "[1", "'a'", "[1] 2"])
        errorAnswer(await executeRaw(server, container, "show", { key: "any", body }), 400, "BadRequest");
});

// --- Results

const setTo = (expression) => `function () { getContext().getResponse().setBody(${expression}); }`;

test("the answer is the response body as JSON, strings quoted", async () => {
    for (const [body, text] of [
        ["function () {}", '""'],
        ["function () { return 5; }", '""'],
        ["async function () { return 5; }", '""'],
        [setTo("'text'"), '"text"'],
        [setTo("'{\"a\":1}'"), '"{\\"a\\":1}"'],
        [setTo("''"), '""'],
        [setTo("999"), "999"],
        [setTo("1.5"), "1.5"],
        [setTo("true"), "true"],
        [setTo("false"), "false"],
        [setTo("null"), "null"],
        [setTo("[1,[2,null]]"), "[1,[2,null]]"],
        [setTo("({b:1,a:{c:[]}})"), '{"b":1,"a":{"c":[]}}'],
        [setTo("undefined"), '""'],
        [setTo("NaN"), "null"],
        [setTo("-Infinity"), "null"],
        [setTo("[undefined, function () {}]"), "[null,null]"],
        [setTo("({a: undefined, f: function () {}, b: 1})"), '{"b":1}'],
        [setTo("new Date(0)"), '"1970-01-01T00:00:00.000Z"'],
        [setTo("({toJSON: function () { return [7]; }})"), "[7]"],
    ]) {
        const answer = await executeOnce(server, container, body, { key: "any" });
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.text, text, body);
        assert.equal(answer.headers["content-type"], "application/json");
    }
});

test("what the response body is at the end counts, not what it was when it was set", async () => {
    const body = function () {
        const collection = getContext().getCollection();
        const value = { when: "set" };
        getContext().getResponse().setBody(value);
        value.when = "after";
        collection.readDocuments(collection.getSelfLink(), function () {
            value.when = "in the callback";
        });
    };
    assert.deepEqual(await execute(container, "any", body), { when: "in the callback" });
});

test("the response body is set a thousand times, and appended to", async () => {
    const again = function () {
        const response = getContext().getResponse();
        for (let i = 0; i < 1000; i++) {
            if (i > 0 && response.getBody() !== i - 1) throw new Error("the body is " + response.getBody());
            response.setBody(i);
        }
    };
    assert.equal(await execute(container, "any", again), 999);
    const append = function () {
        for (let i = 0; i < 10; i++) getContext().getResponse().appendValue("Body", i);
    };
    assert.equal((await executeOnce(server, container, append, { key: "any" })).text, '"0123456789"');
});

test("an execution has the headers of an answer, and no ETag", async () => {
    const { headers } = await executeRaw(server, container, "show", { key: "any" });
    assert.ok(Number(headers["x-ms-request-charge"]) > 0);
    assert.match(headers["x-ms-session-token"], /^0:/);
    assert.match(headers["x-ms-activity-id"], /./);
    assert.match(headers["x-ms-alt-content-path"], /^dbs\/procedures\/colls\//);
    assert.match(headers["x-ms-content-path"], /./);
    assert.match(headers.lsn, /^\d+$/);
    assert.equal(headers["x-ms-documentdb-partitionkeyrangeid"], "0");
    assert.match(headers["x-ms-resource-quota"], /collectionSize=/);
    assert.match(headers["x-ms-resource-usage"], /collectionSize=/);
    assert.equal(headers.etag, undefined);
    assert.equal(headers[LOG], undefined);
    const minimal = await executeRaw(server, container, "show", { key: "any", headers: { prefer: "return=minimal" } });
    assert.equal(minimal.text, '""');
});

test("a response that is too large is an error inside the script", async () => {
    const body = function (isCaught) {
        const response = getContext().getResponse();
        const large = "x".repeat(6 << 20);
        if (!isCaught) return response.setBody(large);
        const numbers = [];
        for (const work of [() => response.setBody(large), () => response.appendBody(large), () => response.setBody([large])])
            try {
                work();
            } catch (error) {
                numbers.push(error.number);
            }
        response.setBody(numbers);
    };
    const made = await procedure(container, body);
    assert.deepEqual((await made.execute("any", [true])).resource, [413, 413, 413]);
    await refused(made.execute("any", [false]), 400, { substatus: 413 });
    const nearly = await execute(container, "any", setTo("'x'.repeat(1 << 20)"));
    assert.equal(nearly.length, 1 << 20);
});

test("a response that JSON cannot have is refused, and nothing is written", async () => {
    const pk = unique("key");
    const body = flow(async ({ call, self, response, context }, key) => {
        await call("createDocument", self, { id: "a", pk: key });
        const cycle = {};
        cycle.self = cycle;
        response.setBody(cycle);
        return cycle;
    });
    await refused(execute(container, pk, body, pk), 400);
    assert.deepEqual(await listAll(server, container, { key: pk }), []);
});

// --- The log

const logOf = async (body, headers = LOGGING) => {
    const answer = await executeOnce(server, container, body, { key: "any", headers });
    return [answer.headers[LOG], answer];
};

test("the log comes only if it was asked for, and leaves the result alone", async () => {
    const body = function () {
        const x = 1;
        console.log("The value of %s is %s.", "x", x);
        getContext().getResponse().setBody("Success!");
    };
    const made = await procedure(container, body);
    for (const enableScriptLogging of [undefined, true, false, true]) {
        const { headers, resource } = await made.execute("any", [], { enableScriptLogging });
        assert.equal(resource, "Success!");
        const expected = enableScriptLogging ? encodeURIComponent("The value of x is 1.") : undefined;
        assert.equal(headers[LOG], expected);
    }
    for (const value of ["True", "TRUE", "true"]) {
        const [log] = await logOf(body, { "x-ms-documentdb-script-enable-logging": value });
        assert.equal(log, "The%20value%20of%20x%20is%201.");
    }
    for (const value of ["False", "false"])
        assert.equal((await logOf(body, { "x-ms-documentdb-script-enable-logging": value }))[0], undefined);
});

test("what is logged is formatted, and joined without anything between", async () => {
    for (const [calls, text] of [
        ["console.log('plain');", "plain"],
        ["console.log('a'); console.log('b'); console.log('c\\n');", "abc\n"],
        ["console.log(5);", "5"],
        ["console.log(null);", "null"],
        ["console.log([1, 2]);", "1,2"],
        ["console.log('%s');", "%s"],
        ["console.log('%s and %s', 1, true);", "1 and true"],
        ["console.log('%s%%', 5);", "5%"],
        ["console.log('%s', 1, 2, 3);", "1"],
        ["console.log('%s and %s', 1);", "1 and undefined"],
        ["console.log('none', 1);", "none"],
        ["console.log('ünï 😀 \"%\\u0001');", 'ünï 😀 "%\u0001'],
    ]) {
        const [log, answer] = await logOf(`function () { ${calls} }`);
        assert.equal(answer.status, 200, answer.text);
        assert.equal(log, encodeURIComponent(text), calls);
    }
    assert.equal((await logOf("function () {}"))[0], undefined, "nothing was logged");
});

test("a call of console.log that makes no sense throws, unless nobody listens", async () => {
    const body = function () {
        const numbers = [() => console.log(), () => console.log(1, 2), () => console.log({}, "x")].map((work) => {
            try {
                work();
            } catch (error) {
                return error.number;
            }
            return 0;
        });
        getContext().getResponse().setBody([numbers, Object.keys(console), typeof console.warn]);
    };
    assert.deepEqual((await logOf(body))[1].json, [[400, 400, 400], ["log"], "undefined"]);
    assert.deepEqual((await logOf(body, {}))[1].json, [[0, 0, 0], ["log"], "undefined"]);
});

test("a log that is too long is an error inside the script, and what was logged is whole", async () => {
    const body = function () {
        let count = 0;
        try {
            for (; count < 100000; count++) console.log("ä");
        } catch (error) {
            getContext().getResponse().setBody([count, error.number]);
        }
    };
    const [log, answer] = await logOf(body);
    const [count, number] = answer.json;
    assert.equal(number, 413);
    assert.ok(count > 100, `only ${count} letters`);
    assert.equal(decodeURIComponent(log), "ä".repeat(count));
});

test("the log of a script that fails is there", async () => {
    const [log, answer] = await logOf("function () { console.log('until here'); throw new Error('no'); }");
    errorAnswer(answer, 400, "BadRequest", { message: /Error: no/ });
    assert.equal(log, "until%20here");
});

// --- Errors

/** The text of the error that a procedure ends with, and the procedure's id. */
function failure(body, substatus) {
    return withProcedure(container, body, async (made) => {
        const error = await refused(made.execute("any"), 400, { substatus });
        const errors = errorsOf(error);
        assert.equal(errors.length, 1);
        return [errors[0], made.id];
    });
}

test("an error that is thrown is 400, with its number as sub-status and where it happened", async () => {
    for (const [statement, substatus, text] of [
        ["throw new Error('m')", 0, "Error: m"],
        ["throw Error('m')", 0, "Error: m"],
        ["throw new Error(1234, 'm')", 1234, "Error: m"],
        ["throw Error(1234, 'm')", 1234, "Error: m"],
        ["throw new Error(404, 'gone')", 404, "Error: gone"],
        ["throw new Error(429, 'slow')", 429, "Error: slow"],
        ["throw new TypeError('t')", 0, "TypeError: t"],
        ["null.x", 0, "TypeError: "],
        ["nothing", 0, "ReferenceError: "],
        ["throw new (class Own extends Error {})('own')", 0, "Error: own"],
        ["getContext().getCollection().createDocument(getContext().getCollection().getSelfLink(), 5)", 400, "Error: "],
    ]) {
        const [found, id] = await failure(`function failing() { ${statement}; }`, substatus);
        const start = `Encountered exception while executing function. Exception = ${text}`;
        assert.ok(found.startsWith(start), `${statement}: ${found}`);
        assert.match(found, /\r\nStack trace: /);
        assert.ok(found.includes(`${id}.js:`), `the source is named: ${found}`);
    }
});

test("a string that is thrown is the text itself; other values are 400 as well", async () => {
    assert.equal((await failure("function () { throw 'just \"this\"'; }", 0))[0], 'just "this"');
    const [text] = await failure("function () { throw { number: 77, why: 'not' }; }", 77);
    assert.match(text, /not/);
    for (const value of ["5", "null", "undefined", "true", "[1]", "Symbol('s')", "new Error(-1, 'm')", "new Error(1.5, 'm')"]) {
        const answer = await executeOnce(server, container, `function () { throw ${value}; }`, { key: "any" });
        assert.equal(answer.status, 400, `${value}: ${answer.text}`);
        assert.ok(answer.json.message.length > 0);
    }
});

test("a script that does not compile is stored, and is 400/65535 when it runs", async () => {
    for (const body of [
        "function () { return",
        "function () { var x = ; }",
        "method() { var x = 10; }",
        "function () { import x from 'y'; }",
        "function () { let a; let a; }",
        "function () { await 1; }",
        "}",
        "",
    ]) {
        const id = unique("broken");
        const stored = await storeRaw(server, container, "sprocs", { id, body });
        assert.equal(stored.body, body);
        const answer = await executeRaw(server, container, id, { key: "any" });
        errorAnswer(answer, 400, "BadRequest", { substatus: 65535 });
        if (body === "") continue;
        const [text] = errorsOf(answer.json);
        assert.match(text, /^Encountered exception while compiling Javascript\. Exception = SyntaxError: /);
    }
    for (const body of ["42", "'text'", "({})", "null"]) {
        const id = unique("no-function");
        await storeRaw(server, container, "sprocs", { id, body });
        assert.equal((await executeRaw(server, container, id, { key: "any" })).status, 400, body);
    }
});

test("an aborted script is 400 with the error's number", async () => {
    const [text] = await failure("function () { getContext().abort(new Error(55, 'enough')); }", 55);
    assert.match(text, /enough/);
    assert.match((await failure("function () { getContext().abort(new Error('plain')); }", 0))[0], /plain/);
    assert.match((await failure("function () { getContext().abort('a text'); }", 0))[0], /a text/);
    const kept = "function () { try { getContext().abort(new Error(56, 'e')); } catch (ignored) {} getContext().getResponse().setBody(1); }";
    await failure(kept, 56);
});

test("an operation's error that nobody handles ends the script with its number", async () => {
    const pk = unique("key");
    await container.items.create({ id: "there", pk });
    const alone = function (key) {
        __.createDocument(__.getSelfLink(), { id: "there", pk: key });
    };
    const rethrown = function (key) {
        __.createDocument(__.getSelfLink(), { id: "there", pk: key }, function (error) {
            if (error) throw error;
        });
    };
    for (const body of [alone, rethrown]) {
        const made = await procedure(container, body);
        const error = await refused(made.execute(pk, [pk]), 400, { substatus: 409 });
        const [text] = errorsOf(error);
        assert.match(text, /Exception = Error: \{"Errors":\[".*"\]\}/);
    }
});

test("an error in a promise that nobody handles leaves the script a success", async () => {
    const pk = unique("key");
    const body = async function (key) {
        getContext().getResponse().setBody("before");
        await new Promise((resolve) => __.createDocument(__.getSelfLink(), { id: "kept", pk: key }, resolve));
        throw new Error("not seen");
    };
    assert.equal(await execute(container, pk, body, pk), "before");
    assert.equal((await container.item("kept", pk).read()).resource.id, "kept");
    const rejected = "function () { Promise.reject(new Error(5, 'x')); getContext().getResponse().setBody('set'); }";
    assert.equal(await execute(container, pk, rejected), "set");
});

test("a procedure that does not exist is 404", async () => {
    await refused(container.scripts.storedProcedure("none").execute("any"), 404);
    const gone = await newContainer(database);
    const made = await procedure(gone, SHOW);
    await gone.delete();
    await refused(made.execute("any"), 404, { substatus: 1003 });
    const renamed = await procedure(container, SHOW);
    await renamed.delete();
    await refused(renamed.execute("any"), 404);
});

test("a procedure that is replaced runs its new body", async () => {
    const made = await procedure(container, setTo("1"));
    assert.equal((await made.execute("any")).resource, 1);
    await made.replace({ id: made.id, body: setTo("2") });
    assert.equal((await made.execute("any")).resource, 2);
});

test("a procedure is executed by its resource id too", async () => {
    const made = await procedure(container, setTo("'by rid'"));
    const { resource } = await made.read();
    const path = `/${resource._self.replace(/\/$/, "")}`;
    const answer = await call(server, {
        method: "POST",
        path,
        type: "sprocs",
        link: resource._rid.toLowerCase(),
        headers: { "x-ms-documentdb-partitionkey": '["any"]' },
    });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json, "by rid");
});

test("procedures outlive a restart", async (t) => {
    const own = await startServer(t, { args: ["--durability", "sync"] });
    const made = await clientOf(own).databases.create({ id: "own" });
    const kept = await newContainer(made.database);
    const body = flow(async ({ call, self }, key) => (await call("createDocument", self, { id: "a", pk: key }))[0]);
    await procedure(kept, body, "p");
    await own.restart();
    const again = clientOf(own).database("own").container(kept.id);
    const { resource } = await again.scripts.storedProcedure("p").execute("k", ["k"]);
    await own.restart();
    const last = clientOf(own).database("own").container(kept.id);
    assert.deepEqual((await last.item("a", "k").read()).resource, resource);
});

test("a read-only key does not execute", async (t) => {
    const READ_ONLY = Buffer.from("only to look at").toString("base64");
    const own = await startServer(t, { args: ["--durability", "relaxed", "--read-only-key", READ_ONLY] });
    const made = await clientOf(own).databases.create({ id: "own" });
    const guarded = await newContainer(made.database);
    await procedure(guarded, SHOW, "p");
    const reader = { endpoint: own.endpoint, key: READ_ONLY };
    assert.equal((await executeRaw(reader, guarded, "p", { key: "any" })).status, 401);
    assert.equal((await executeRaw(own, guarded, "p", { key: "any" })).status, 200);
});

test("the system's procedure that echoes is in every container, and in no list", async () => {
    for (const key of ["any", 5, null]) {
        const { resource } = await container.scripts.storedProcedure("__.sys.echo").execute(key, [{ say: key }]);
        assert.deepEqual(resource, { say: key });
    }
    const { resources } = await container.scripts.storedProcedures.readAll().fetchAll();
    assert.deepEqual(resources.filter(({ id }) => id.startsWith("__")), []);
});

test("an execution that is throttled is tried again by the SDK", async (t) => {
    const own = await startServer(t, { isThrottled: true, args: ["--durability", "relaxed", "--no-burst"] });
    const made = await patientClient(own, { requestTimeout: 5_000 }).databases.create({ id: "own" });
    const small = await newContainer(made.database);
    const body = flow(async ({ call, self }, key) => {
        for (let i = 0; i < 20; i++) await call("createDocument", self, { pk: key, text: "x".repeat(1000) });
        return 20;
    });
    const costly = await procedure(small, body);
    let retries = 0;
    let done = 0;
    for (; retries === 0 && done < 200; done++) {
        const { headers, resource } = await costly.execute("k", ["k"]);
        assert.equal(resource, 20);
        retries += Number(headers["x-ms-throttle-retry-count"] ?? 0);
    }
    assert.ok(retries > 0, `${done} executions were not throttled`);
    const { resources } = await small.items.readAll({ partitionKey: "k" }).fetchAll();
    assert.equal(resources.length, 20 * done);
});

// --- The document

test("the example of docs/scripts.md runs as it stands", (t) => {
    const text = readFileSync(join(ROOT, "docs/scripts.md"), "utf8");
    const blocks = [...text.matchAll(/^```js\n(.*?)^```$/gms)];
    assert.equal(blocks.length, 1);
    const path = join(ROOT, `test/.scripts-${process.pid}.mjs`); // beside this file, where the SDK is found
    t.after(() => rmSync(path, { force: true }));
    writeFileSync(path, blocks[0][1]);
    const env = { ...process.env, COSMOS_ENDPOINT: server.endpoint, COSMOS_KEY: server.key };
    const { status, stdout, stderr } = spawnSync(process.execPath, [path], { env, encoding: "utf8", timeout: 60_000 });
    assert.equal(status, 0, stderr);
    assert.equal(stdout, /^```text\n(.*?)^```$/ms.exec(text)[1]);
});
