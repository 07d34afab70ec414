// Stored procedures, triggers and user-defined functions as resources. What they do when they run is tested elsewhere.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, ids, pagesOf, refused } from "./lib/check.mjs";
import { afterRestart, newContainer, ownContainer, pathOf } from "./lib/items.mjs";
import { decodeRid } from "./lib/rid.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, sharedServer, startServer } from "./lib/server.mjs";
import { call, query, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: unique("d") });

// What differs between the kinds. `all` is the SDK's list, `one` its handle of a single one.
const KINDS = [
    {
        segment: "sprocs",
        array: "StoredProcedures",
        kind: "sproc",
        quota: ["storedProcedures=100;", "storedProcedures="],
        bodies: ["function () { const x = 10; }", "function () { const x = 20; }"],
        more: {},
        all: (container) => container.scripts.storedProcedures,
        one: (container, id) => container.scripts.storedProcedure(id),
    },
    {
        segment: "triggers",
        array: "Triggers",
        kind: "trigger",
        quota: ["triggers=100;", "triggers="],
        bodies: ["serverScript() { var x = 10; }", "serverScript() { var x = 20; }"],
        more: { triggerType: "pre", triggerOperation: "all" },
        all: (container) => container.scripts.triggers,
        one: (container, id) => container.scripts.trigger(id),
    },
    {
        segment: "udfs",
        array: "UserDefinedFunctions",
        kind: "udf",
        quota: ["functions=50;", "functions="],
        bodies: ["() => { const x = 10; }", "() => { const x = 20; }"],
        more: {},
        all: (container) => container.scripts.userDefinedFunctions,
        one: (container, id) => container.scripts.userDefinedFunction(id),
    },
];

const scriptOf = (kind, id, body = kind.bodies[0]) => ({ id, body, ...kind.more });
const feedOf = (container, kind) => `${pathOf(container)}/${kind.segment}`;
const post = (container, kind, body, headers = {}, to = server) =>
    call(to, { method: "POST", path: feedOf(container, kind), body, headers });

function withoutSystem({ _rid, _self, _etag, _ts, ...rest }) {
    return rest;
}

for (const kind of KINDS) {
    test(`${kind.segment}: created, found, replaced and deleted through the SDK`, async () => {
        const container = await newContainer(database);
        const all = kind.all(container);
        const before = (await all.readAll().fetchAll()).resources;
        assert.deepEqual(before, []);

        const definition = scriptOf(kind, "sample script");
        const made = await all.create(definition);
        assert.equal(made.statusCode ?? made.code, 201);
        assert.deepEqual(withoutSystem(made.resource), definition);
        assert.ok(made.requestCharge > 0);
        assert.equal(made.etag ?? made.headers.etag, made.resource._etag);
        assert.equal((await all.readAll().fetchAll()).resources.length, 1);
        await refused(all.create(definition), 409);

        for (const text of [
            "SELECT * FROM root r",
            "SELECT * FROM root r WHERE r.id='sample script'",
            { query: "SELECT * FROM root r WHERE r.id=@id", parameters: [{ name: "@id", value: "sample script" }] },
            'SELECT * FROM T WHERE STARTSWITH(T.id,"sample")',
        ]) {
            const { resources } = await all.query(text).fetchAll();
            assert.deepEqual(resources, [made.resource]);
        }
        assert.deepEqual((await all.query("SELECT * FROM r WHERE r.id='sample'").fetchAll()).resources, []);

        const one = kind.one(container, "sample script");
        assert.deepEqual((await one.read()).resource, made.resource);
        // With the system properties, as after a read.
        const changed = await one.replace({ ...made.resource, body: kind.bodies[1] });
        assert.equal(changed.resource.body, kind.bodies[1]);
        assert.equal(changed.resource._rid, made.resource._rid);
        assert.notEqual(changed.resource._etag, made.resource._etag);
        assert.ok(changed.resource._ts >= made.resource._ts);
        assert.deepEqual((await one.read()).resource, changed.resource);

        const gone = await one.delete();
        assert.equal(gone.statusCode ?? gone.code, 204);
        assert.ok(gone.requestCharge > 0);
        await refused(one.read(), 404);
        await refused(one.delete(), 404);
    });

    test(`${kind.segment}: headers, resource ids and versions`, async () => {
        const container = await newContainer(database);
        const { resource: parent } = await container.read();
        const { resource: grandparent } = await database.read();
        const [quota, usage] = kind.quota;
        const answered = (answer, status, count) => {
            assert.equal(answer.status, status, answer.text);
            assert.ok(Number(answer.headers["x-ms-request-charge"]) > 0);
            assert.equal(answer.headers["x-ms-resource-quota"], quota);
            assert.equal(answer.headers["x-ms-resource-usage"], `${usage}${count};`);
            assert.equal(answer.headers["x-ms-session-token"], undefined);
            assert.match(answer.headers.etag, /^".+"$/);
            if (status !== 304) assert.equal(answer.headers.etag, answer.json._etag);
        };
        const made = await post(container, kind, { ...scriptOf(kind, "s"), unknown: 1 }, { "x-ms-documentdb-partitionkey": '["x"]' });
        answered(made, 201, 1);
        assert.deepEqual(withoutSystem(made.json), scriptOf(kind, "s"));
        const { _rid, _self, _etag, _ts } = made.json;
        assert.equal(decodeRid(_rid).kind, kind.kind);
        assert.equal(decodeRid(_rid).parent, parent._rid);
        assert.equal(_self, `dbs/${grandparent._rid}/colls/${parent._rid}/${kind.segment}/${_rid}/`);
        assert.ok(Math.abs(_ts - Date.now() / 1000) < 100);

        const path = `${feedOf(container, kind)}/s`;
        const bySelf = (rest) => call(server, { path: `/${_self}`, type: kind.segment, link: _rid.toLowerCase(), ...rest });
        const read = await call(server, { path });
        answered(read, 200, 1);
        assert.deepEqual(read.json, made.json);
        answered(await bySelf({}), 200, 1);
        const known = await call(server, { path, headers: { "if-none-match": _etag } });
        answered(known, 304, 1);
        assert.equal(known.bytes.length, 0);

        const second = { ...scriptOf(kind, "s"), body: "2" };
        errorAnswer(
            await call(server, { method: "PUT", path, body: second, headers: { "if-match": '"other"' } }),
            412,
            "PreconditionFailed",
        );
        const replaced = await call(server, { method: "PUT", path, body: second, headers: { "if-match": _etag } });
        answered(replaced, 200, 1);
        answered(await bySelf({ method: "PUT", body: { ...second, body: "3" } }), 200, 1);
        errorAnswer(await call(server, { method: "DELETE", path, headers: { "if-match": _etag } }), 412, "PreconditionFailed");

        const upserted = await post(container, kind, { ...second, body: "4" }, { "x-ms-documentdb-is-upsert": "true" });
        answered(upserted, 200, 1);
        assert.equal(upserted.json._rid, _rid);
        answered(await post(container, kind, scriptOf(kind, "t"), { "x-ms-documentdb-is-upsert": "true" }), 201, 2);

        // Another id renames it, if the name is free.
        errorAnswer(await call(server, { method: "PUT", path, body: scriptOf(kind, "t") }), 409, "Conflict");
        const renamed = await call(server, { method: "PUT", path, body: scriptOf(kind, "u") });
        answered(renamed, 200, 2);
        assert.equal(renamed.json._rid, _rid);
        errorAnswer(await call(server, { path }), 404, "NotFound");
        const gone = await bySelf({ method: "DELETE" });
        assert.equal(gone.status, 204);
        assert.equal(gone.bytes.length, 0);
        assert.ok(Number(gone.headers["x-ms-request-charge"]) > 0);
        const list = await call(server, { path: feedOf(container, kind) });
        assert.deepEqual(Object.keys(list.json), ["_rid", kind.array, "_count"]);
        assert.equal(list.json._rid, parent._rid);
        assert.deepEqual(ids(list.json[kind.array]), ["t"]);
    });

    test(`${kind.segment}: the text of a script is never changed`, async () => {
        const container = await newContainer(database);
        const bodies = [
            "",
            "42",
            "function f( ) {\r\n\t// é \u{1fa90} \u2028\u2029\ufeff\u0000\u001f\\n\"'\n\n}  ",
            '\ufefffunction () { return "<a href=\\"x/y\\">"; }',
            "x".repeat(1_000_000),
        ];
        for (const [i, body] of bodies.entries()) {
            const { resource } = await kind.all(container).create(scriptOf(kind, `s${i}`, body));
            assert.equal(resource.body, body);
            assert.equal((await kind.one(container, `s${i}`).read()).resource.body, body);
        }
        const { resources } = await kind.all(container).readAll().fetchAll();
        assert.deepEqual(resources.map(({ body }) => body), bodies);
        const asked = await kind.all(container).query("SELECT VALUE c.body FROM c ORDER BY c.id").fetchAll();
        assert.deepEqual(asked.resources, bodies);
    });

    test(`${kind.segment}: lists and queries come in pages, each script once`, async () => {
        const container = await newContainer(database);
        for (const id of ["a", "b", "c"]) await kind.all(container).create(scriptOf(kind, id));
        for (const size of [1, 2, 3]) {
            const options = { maxItemCount: size };
            assert.deepEqual(ids((await pagesOf(kind.all(container).readAll(options), size)).flat()), ["a", "b", "c"]);
            const asked = kind.all(container).query("SELECT * FROM c", options);
            assert.deepEqual(ids((await pagesOf(asked, size)).flat()), ["a", "b", "c"]);
        }
        const seen = [];
        for await (const { resources } of kind.all(container).readAll({ maxItemCount: 1 }).getAsyncIterator())
            seen.push(...resources);
        assert.deepEqual(ids(seen), ["a", "b", "c"]);
    });

    test(`${kind.segment}: names may be odd`, async () => {
        const container = await newContainer(database);
        const names = [
            " leading",
            "with in  side",
            "éü漢字\u{1fa90}",
            ",=.:~+-@()^${}[]!_",
            "BQE1D3PdG4N4bzU9TKaCIM3qc0TVcZ2-Y3jnsRfwdHC1ombkX3F1dot==",
            "a%20b",
            "%E9%AB%98",
            "a&b;c'd\"e|f<g>h`i*j",
            "8wGqAJI0VgcBAAAAAAAAgA==",
            "x".repeat(255),
        ];
        for (const name of names) {
            const made = await post(container, kind, scriptOf(kind, name));
            assert.equal(made.status, 201, made.text);
            const path = `${feedOf(container, kind)}/${encodeURIComponent(name)}`;
            assert.equal((await call(server, { path })).json.id, name);
            assert.equal((await kind.one(container, name).read()).resource.id, name);
            await kind.one(container, name).delete();
            errorAnswer(await call(server, { path }), 404, "NotFound");
        }
        for (const name of ["a/b", "a\\b", "a?b", "a#b", "", "x".repeat(256)])
            errorAnswer(await post(container, kind, scriptOf(kind, name)), 400, "BadRequest");
    });

    test(`${kind.segment}: what is missing is said`, async () => {
        const container = await newContainer(database);
        const whole = scriptOf(kind, "s");
        for (const name of Object.keys(whole)) {
            const { [name]: left, ...rest } = whole;
            const message = new RegExp(`The input content is invalid because the required properties - '${name}; ' - are missing`);
            errorAnswer(await post(container, kind, rest), 400, "BadRequest", { message });
        }
        errorAnswer(await post(container, kind, {}), 400, "BadRequest", { message: /'id; body; / });
        errorAnswer(await post(container, kind, { ...whole, body: 7 }), 400, "BadRequest", { message: /must be a string/ });
        errorAnswer(await post(container, kind, "{"), 400, "BadRequest");
        errorAnswer(await post(container, kind, { ...whole, body: "x".repeat(2 << 20) }), 413, "RequestEntityTooLarge");
        assert.deepEqual((await kind.all(container).readAll().fetchAll()).resources, []);
    });

    test(`${kind.segment}: the container's quota is kept`, async () => {
        const container = await newContainer(database);
        const max = Number(/\d+/.exec(kind.quota[0])[0]);
        const made = await Promise.all(
            Array.from({ length: max + 5 }, (_, i) => post(container, kind, scriptOf(kind, `s${i}`))),
        );
        assert.equal(made.filter(({ status }) => status === 201).length, max);
        const refusals = made.filter(({ status }) => status !== 201);
        for (const answer of refusals) errorAnswer(answer, 403, "Forbidden", { message: /the most there can be/ });
        const { resources } = await kind.all(container).readAll().fetchAll();
        assert.equal(new Set(ids(resources)).size, max);
        await kind.one(container, resources[0].id).delete();
        assert.equal((await post(container, kind, scriptOf(kind, "one more"))).status, 201);
    });
}

test("a trigger's words are in any letter case, and come back as they were sent", async () => {
    const container = await newContainer(database);
    const triggers = KINDS[1];
    for (const triggerType of ["Pre", "post", "POST"]) {
        for (const triggerOperation of ["All", "create", "Update", "REPLACE", "delete", "Upsert"]) {
            const body = { id: unique("t"), body: "x", triggerType, triggerOperation };
            const made = await post(container, triggers, body);
            assert.equal(made.status, 201, made.text);
            assert.deepEqual(withoutSystem(made.json), body);
        }
    }
    for (const wrong of [{ triggerType: "During" }, { triggerOperation: "Read" }, { triggerType: 1 }]) {
        const body = { ...scriptOf(triggers, "wrong"), ...wrong };
        errorAnswer(await post(container, triggers, body), 400, "BadRequest", { message: /One of the specified inputs is invalid/ });
    }
});

test("scripts of three kinds and of two containers may have one name", async () => {
    const containers = [await newContainer(database), await newContainer(database)];
    for (const container of containers)
        for (const kind of KINDS) await kind.all(container).create(scriptOf(kind, "same"));
    await KINDS[0].one(containers[0], "same").delete();
    for (const kind of KINDS.slice(1)) await kind.one(containers[0], "same").read();
    for (const kind of KINDS) await kind.one(containers[1], "same").read();
    const quota = await containers[0].read({ populateQuotaInfo: true });
    assert.match(quota.headers["x-ms-resource-usage"], /^functions=1;storedProcedures=0;triggers=1;/);
});

test("scripts go with their container", async () => {
    for (const kind of KINDS) {
        const container = await newContainer(database);
        const path = feedOf(container, kind);
        await kind.all(container).create(scriptOf(kind, "s"));
        await container.delete();
        const substatus = 1003;
        errorAnswer(await call(server, { path }), 404, "NotFound", { substatus });
        errorAnswer(await query(server, path, "SELECT * FROM c"), 404, "NotFound", { substatus });
        errorAnswer(await post(container, kind, scriptOf(kind, "s")), 404, "NotFound", { substatus });
        for (const method of ["GET", "PUT", "DELETE"]) {
            const body = method === "PUT" ? scriptOf(kind, "s") : undefined;
            errorAnswer(await call(server, { method, path: `${path}/s`, body }), 404, "NotFound", { substatus });
        }
        await database.containers.create({ id: container.id, partitionKey: "/pk" });
        errorAnswer(await call(server, { path: `${path}/s` }), 404, "NotFound");
        assert.deepEqual((await kind.all(container).readAll().fetchAll()).resources, []);
    }
});

test("a read-only key reads and queries scripts", async (t) => {
    const readOnly = Buffer.from("read-only-key-of-a-test").toString("base64");
    const own = await startServer(t, { args: ["--durability", "relaxed", "--read-only-key", readOnly] });
    const made = await clientOf(own).databases.create({ id: "d" });
    const container = await newContainer(made.database);
    const reader = { endpoint: own.endpoint, key: readOnly };
    for (const kind of KINDS) {
        await kind.all(container).create(scriptOf(kind, "s"));
        const path = `${feedOf(container, kind)}/s`;
        assert.equal((await call(reader, { path })).status, 200);
        assert.equal((await call(reader, { path: feedOf(container, kind) })).json._count, 1);
        assert.equal((await query(reader, feedOf(container, kind), "SELECT * FROM c")).json._count, 1);
        errorAnswer(await post(container, kind, scriptOf(kind, "t"), {}, reader), 401, "Unauthorized");
        errorAnswer(await call(reader, { method: "PUT", path, body: scriptOf(kind, "s") }), 401, "Unauthorized");
        errorAnswer(await call(reader, { method: "DELETE", path }), 401, "Unauthorized");
    }
    const execution = { method: "POST", path: `${feedOf(container, KINDS[0])}/s`, body: "[]" };
    errorAnswer(await call(reader, execution), 401, "Unauthorized");
});

test("a restart finds the same scripts, and the folder is whole", async (t) => {
    const { server: own, container } = await ownContainer(t, { throughput: 400 });
    const before = [];
    for (const kind of KINDS) {
        await kind.all(container).create(scriptOf(kind, "stays"));
        await kind.all(container).create(scriptOf(kind, "large", "é".repeat(500_000)));
        await kind.all(container).create(scriptOf(kind, "goes"));
        await kind.one(container, "stays").replace(scriptOf(kind, "stays", kind.bodies[1]));
        await kind.one(container, "goes").delete();
        before.push((await kind.all(container).readAll().fetchAll()).resources);
    }
    const again = await afterRestart(own, container);
    for (const [i, kind] of KINDS.entries()) {
        assert.deepEqual((await kind.all(again).readAll().fetchAll()).resources, before[i]);
        const { resource } = await kind.all(again).create(scriptOf(kind, "goes"));
        assert.ok(!before.flat().some(({ _rid }) => _rid === resource._rid));
    }
    const { resource: parent } = await again.read();
    assert.deepEqual(parent._rid, decodeRid(before[0][0]._rid).parent);
    await own.stop();
    const checked = run(["check", "--data", own.data]);
    assert.equal(checked.status, 0, checked.stdout + checked.stderr);
    assert.match(checked.stdout, /everything agrees/);
});
